// The shading of the map: how densely items lie, in the colours of their genres, and where each genre is at home.

import { genreColour, partsOf } from "./colours.js";

const CELLS = 110; // along each side
const MARGIN = 1.25; // of the extent that is shaded
const BLUR = 3; // cells; three box blurs come close to a Gaussian
const DARKEST = 0.34;
const FEWEST = 0.012; // share of the items that a genre has where it is named

/** Return {picture, box, homes}: a picture of a part of the map, and where the densest places of genres are, by their colour. */
export function shadingOf(app, [[middleX, reachX], [middleY, reachY]], groups) {
  const box = [middleX - MARGIN * reachX, middleY + MARGIN * reachY, 2 * MARGIN * reachX, 2 * MARGIN * reachY];
  const fields = densities(app, box, groups);
  const total = new Float32Array(CELLS * CELLS);
  for (const { field } of fields) for (let cell = 0; cell < total.length; cell++) total[cell] += field[cell];
  return { picture: pictureOf(fields, total), box, homes: homesOf(fields, total, box) };
}

function densities(app, [left, top, width, height], groups) {
  const { n, places, mapped } = app.map;
  const fields = groups.map((group) => ({ group, count: 0, field: new Float32Array(CELLS * CELLS) }));
  const of = new Map(fields.map((one) => [one.group, one]));
  for (let item = 0; item < n; item++) {
    const one = mapped[item] ? of.get(app.catalogue.colourOf(item)) : undefined;
    const column = Math.floor(((places[2 * item] - left) / width) * CELLS);
    const row = Math.floor(((top - places[2 * item + 1]) / height) * CELLS);
    if (!one || column < 0 || row < 0 || column >= CELLS || row >= CELLS) continue;
    one.field[row * CELLS + column] += 1;
    one.count += 1;
  }
  for (const one of fields) for (let pass = 0; pass < 3; pass++) one.field = blurred(blurred(one.field, 1), CELLS);
  return fields;
}

/** Return means over a window along one axis: `step` is 1 for rows and CELLS for columns. */
function blurred(field, step) {
  const found = new Float32Array(field.length);
  const across = step === 1 ? CELLS : 1;
  for (let line = 0; line < CELLS; line++) {
    let sum = 0;
    for (let place = -BLUR; place < CELLS; place++) {
      if (place + BLUR < CELLS) sum += field[line * across + (place + BLUR) * step];
      if (place - BLUR - 1 >= 0) sum -= field[line * across + (place - BLUR - 1) * step];
      if (place >= 0) found[line * across + place * step] = sum / (2 * BLUR + 1);
    }
  }
  return found;
}

function pictureOf(fields, total) {
  const picture = new OffscreenCanvas(CELLS, CELLS);
  const context = picture.getContext("2d");
  const image = context.createImageData(CELLS, CELLS);
  const colours = fields.map(({ group }) => partsOf(genreColour(group)));
  const usual = meanOf(total);
  for (let cell = 0; cell < total.length; cell++) {
    let weights = 0;
    const mixed = [0, 0, 0];
    fields.forEach(({ field }, place) => {
      const weight = field[cell] ** 3; // the genre that most items here are of
      weights += weight;
      for (const part of [0, 1, 2]) mixed[part] += weight * colours[place][part];
    });
    if (!(weights > 0)) continue;
    for (const part of [0, 1, 2]) image.data[4 * cell + part] = mixed[part] / weights;
    image.data[4 * cell + 3] = 255 * DARKEST * (1 - Math.exp(-total[cell] / (2 * usual)));
  }
  context.putImageData(image, 0, 0);
  return picture;
}

/** Return the mean density that an item sees. */
function meanOf(total) {
  let [square, sum] = [0, 0];
  for (const density of total) [square, sum] = [square + density * density, sum + density];
  return sum > 0 ? square / sum : 1;
}

function homesOf(fields, total, [left, top, width, height]) {
  const all = fields.reduce((sum, { count }) => sum + count, 0);
  return fields.filter(({ count }) => count > 2 && count >= FEWEST * all).map(({ group, field }) => {
    let [found, most] = [0, -1];
    for (let cell = 0; cell < field.length; cell++) {
      const here = total[cell] > 0 ? field[cell] ** 2 / total[cell] : 0;
      if (here > most) [found, most] = [cell, here];
    }
    const [column, row] = [found % CELLS, Math.floor(found / CELLS)];
    return { group, place: [left + ((column + 0.5) / CELLS) * width, top - ((row + 0.5) / CELLS) * height] };
  });
}

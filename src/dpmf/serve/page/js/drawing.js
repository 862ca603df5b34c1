// Draws the map on a canvas: items, what somebody rated, what is recommended, and their taste.

import { clamped } from "./camera.js";
import { colour, genreColour, partsOf } from "./colours.js";
import { makeLabels } from "./labels.js";

const LABELLED = 6;
const MARK = 8; // pixels from the middle of a ring or a star that no text may cover
const GLOW = 0.09; // of the map, around each item that suits somebody
const GLOWING = 0.36;
const EDGE = 14; // pixels within which the taste is named, wherever it lies

/** Draw everything. `chosen` is an item or null; `only` the place of a genre or null; `shading` from `shadingOf`. */
export function drawMap(canvas, app, camera, { chosen, only, shading }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const { places, n } = app.map;
  const at = (item) => camera.toScreen(places[2 * item], places[2 * item + 1]);
  const isMapped = (item) => app.map.mapped[item] === 1;
  drawShading(context, app, camera, shading);
  const taste = drawTaste(context, app, camera, at);
  drawItems(context, app, at, n, only, width, height);
  const rated = app.store.used().map((entry) => entry.position).filter(isMapped);
  for (const item of rated) ring(context, at(item), 5.5, colour("ink"), 2);
  const best = app.store.used().length ? app.best.slice(0, LABELLED).map((one) => one.item).filter(isMapped) : [];
  for (const item of best) star(context, at(item), colour("accent"));
  const labels = makeLabels(context, width, height);
  for (const item of [...rated, ...best]) labels.keepFree(...at(item), MARK);
  const font = getComputedStyle(document.body).fontFamily;
  context.font = `700 13px ${font}`;
  if (taste) labels.write("your taste", [clamped(taste[0], EDGE, width - EDGE), clamped(taste[1], EDGE, height - EDGE)], colour("taste"), true);
  context.font = `600 12px ${font}`;
  for (const item of best) labels.write(app.catalogue.titles[item], at(item), colour("accent"));
  for (const item of rated.slice(-LABELLED)) labels.write(app.catalogue.titles[item], at(item), colour("ink"));
  context.font = `750 13px ${font}`;
  for (const { group, place } of shading.homes) {
    if (only === null || only === group) labels.name(genreName(app, group), camera.toScreen(...place), genreColour(group));
  }
  if (chosen !== null) ring(context, at(chosen), 8, colour("ink"), 2.5);
}

function drawShading(context, app, camera, { picture, box: [left, top, width, height] }) {
  const [x, y] = camera.toScreen(left, top);
  const [right, bottom] = camera.toScreen(left + width, top - height);
  context.imageSmoothingEnabled = true;
  context.imageSmoothingQuality = "high";
  context.drawImage(picture, x, y, right - x, bottom - y);
}

const genreName = (app, group) => app.catalogue.coloured[group] ?? null;

function drawItems(context, app, at, n, only, width, height) {
  const count = app.map.mapped.reduce((total, is) => total + is, 0);
  const size = count > 5000 ? 1.6 : count > 1000 ? 2.6 : 3.6;
  const groups = new Map();
  for (let item = 0; item < n; item++) {
    if (!app.map.mapped[item]) continue;
    const group = app.catalogue.colourOf(item);
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(item);
  }
  for (const [group, items] of [...groups].sort(([one], [other]) => other - one)) {
    context.fillStyle = genreColour(group);
    context.globalAlpha = only === null ? 0.72 : only === group ? 0.95 : 0.08;
    context.beginPath();
    for (const item of items) {
      const [x, y] = at(item);
      if (x < -4 || y < -4 || x > width + 4 || y > height + 4) continue;
      context.moveTo(x + size, y);
      context.arc(x, y, size, 0, 2 * Math.PI);
    }
    context.fill();
  }
  context.globalAlpha = 1;
}

/** Let the map glow around the items that suit somebody best, and return where it glows most: in pixels, null for nowhere. */
function drawTaste(context, app, camera, at) {
  const radius = camera.length(GLOW);
  const points = app.taste.map(at);
  const glow = partsOf(colour("taste")).join(" ");
  const strength = GLOWING / Math.sqrt(points.length || 1);
  for (const [x, y] of points) {
    const light = context.createRadialGradient(x, y, 0, x, y, radius);
    light.addColorStop(0, `rgb(${glow} / ${strength})`);
    light.addColorStop(0.5, `rgb(${glow} / ${strength / 3})`);
    light.addColorStop(1, `rgb(${glow} / 0)`);
    context.fillStyle = light;
    context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
  }
  const near = ([x, y], [u, v]) => Math.exp(-((x - u) ** 2 + (y - v) ** 2) / (radius * radius));
  let [centre, most] = [null, -1];
  for (const one of points) {
    const here = points.reduce((sum, other) => sum + near(one, other), 0);
    if (here > most) [centre, most] = [one, here];
  }
  return centre;
}

function ring(context, [x, y], radius, stroke, width) {
  context.strokeStyle = stroke;
  context.lineWidth = width;
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.stroke();
}

function star(context, [x, y], fill) {
  context.fillStyle = fill;
  context.strokeStyle = colour("surface");
  context.lineWidth = 1.5;
  context.beginPath();
  for (let corner = 0; corner < 10; corner++) {
    const radius = corner % 2 ? 3.2 : 7.5;
    const angle = (Math.PI * corner) / 5 - Math.PI / 2;
    context.lineTo(x + radius * Math.cos(angle), y + radius * Math.sin(angle));
  }
  context.closePath();
  context.fill();
  context.stroke();
}

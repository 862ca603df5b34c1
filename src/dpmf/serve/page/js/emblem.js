// A small shape for every item, drawn from its first principal components: items that are alike look alike.

import { icon } from "./dom.js";

const CENTRE = 44; // of index.html's icon
const LEAST = 3; // corners

/** Return a picture of an item. It is decoration: the title says all. */
export function emblem(app, position) {
  const picture = icon("emblem");
  picture.classList.add(`g${app.catalogue.colourOf(position)}`);
  const corners = cornersOf(app.shapes, position);
  [...picture.children].forEach((path, place) => path.setAttribute("d", closedCurve(corners, 1 - place / 3)));
  return picture;
}

function cornersOf({ places, width, spreads }, position) {
  const count = Math.max(width, LEAST);
  return Array.from({ length: count }, (_, a) => {
    const height = a < width ? places[position * width + a] / (2 * spreads[a] || 1) : 0;
    const radius = CENTRE * (0.74 + 0.42 * Math.tanh(height));
    const angle = (2 * Math.PI * a) / count - Math.PI / 2;
    return [radius * Math.cos(angle), radius * Math.sin(angle)];
  });
}

/** Return a smooth closed curve near the corners, drawn smaller by a factor. */
function closedCurve(corners, factor) {
  const at = ([x, y]) => `${(CENTRE + factor * x).toFixed(1)} ${(CENTRE + factor * y).toFixed(1)}`;
  const between = ([x, y], [u, v]) => [(x + u) / 2, (y + v) / 2];
  const curves = corners.map((corner, place) =>
    `Q${at(corner)} ${at(between(corner, corners[(place + 1) % corners.length]))}`);
  return `M${at(between(corners.at(-1), corners[0]))}${curves.join("")}Z`;
}

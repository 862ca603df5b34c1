// A small shape for every item, drawn from its first principal components: items that are alike look alike.

import { genreColour } from "./colours.js";
import { h } from "./dom.js";

const SIZE = 44;

/** Return a canvas with the emblem of an item. It is decoration: the title says all. */
export function emblem(app, position) {
  const canvas = h("canvas.emblem", { "aria-hidden": "true", width: SIZE * 2, height: SIZE * 2 });
  draw(canvas, app, position);
  return canvas;
}

function draw(canvas, app, position) {
  const { places, width, spreads } = app.map;
  const context = canvas.getContext("2d");
  const colour = genreColour(app.catalogue.colourOf(position));
  const points = [];
  for (let a = 0; a < width; a++) {
    const height = places[position * width + a] / (2 * spreads[a] || 1);
    const radius = SIZE * (0.74 + 0.42 * Math.tanh(height));
    const angle = (2 * Math.PI * a) / width - Math.PI / 2;
    points.push([SIZE + radius * Math.cos(angle), SIZE + radius * Math.sin(angle)]);
  }
  if (width < 3) points.push([SIZE, SIZE * 1.6], [SIZE * 0.4, SIZE], [SIZE * 1.6, SIZE]);
  for (const [scale, alpha] of [[1, 0.22], [0.66, 0.45], [0.33, 1]]) {
    context.globalAlpha = alpha;
    context.fillStyle = colour;
    closedCurve(context, points.map(([x, y]) => [SIZE + scale * (x - SIZE), SIZE + scale * (y - SIZE)]));
    context.fill();
  }
}

/** Trace a smooth closed curve near the points. */
function closedCurve(context, points) {
  const between = ([x, y], [u, v]) => [(x + u) / 2, (y + v) / 2];
  context.beginPath();
  context.moveTo(...between(points.at(-1), points[0]));
  points.forEach((point, place) => {
    context.quadraticCurveTo(...point, ...between(point, points[(place + 1) % points.length]));
  });
  context.closePath();
}

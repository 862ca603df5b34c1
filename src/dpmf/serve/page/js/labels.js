// Names on the map: beside their points, within the map, and never over each other or over a mark.

import { clamped } from "./camera.js";
import { colour } from "./colours.js";

const GAP = 10; // pixels between a point and its name
const HALF = 9; // pixels above and below the middle of a line
const EDGE = 4;
const WIDEST = 0.5; // of the map
const CONTROLS = [64, 154]; // width and height of the buttons in the lower right corner

/** Return {keepFree, name, write} for a map of this size. */
export function makeLabels(context, width, height) {
  const taken = [[width - CONTROLS[0], height - CONTROLS[1], width, height]];
  const isFree = ([left, top, right, bottom]) =>
    left >= EDGE && top >= EDGE && right <= width - EDGE && bottom <= height - EDGE &&
    !taken.some(([a, b, c, d]) => left < c && a < right && top < d && b < bottom);

  /** Keep labels at least this many pixels away from a point. */
  function keepFree(x, y, radius) {
    taken.push([x - radius, y - radius, x + radius, y + radius]);
  }

  /** Write a text at that side of a point where there is room; if there is none, nowhere, unless it must be there. */
  function write(text, [x, y], fill, mustBeThere = false) {
    const shown = shortened(context, text, WIDEST * width);
    const size = context.measureText(shown).width;
    const middle = x - size / 2;
    const below = y + GAP + HALF;
    const above = y - GAP - HALF;
    const corners = [
      [x + GAP, y], [x - GAP - size, y], [middle, above], [middle, below], [x + GAP, above], [x + GAP, below],
      [x - GAP - size, above], [x - GAP - size, below],
    ];
    const found = corners.find(([left, line]) => isFree([left - 2, line - HALF, left + size + 2, line + HALF]));
    if (!found && !mustBeThere) return;
    put(shown, size, found ?? [clamped(middle, EDGE, width - EDGE - size), clamped(above, EDGE + HALF, height - EDGE - HALF)], fill);
  }

  /** Write the name of a region over its middle, if there is room. */
  function name(text, [x, y], fill) {
    if (text === null) return;
    const size = context.measureText(text).width;
    const left = x - size / 2;
    const line = [0, -1, 1, -2, 2].map((step) => y + step * HALF * 1.5).find((middle) => isFree([left - 4, middle - HALF, left + size + 4, middle + HALF]));
    if (line !== undefined) put(text, size, [left, line], fill);
  }

  function put(text, size, [left, line], fill) {
    taken.push([left - 2, line - HALF, left + size + 2, line + HALF]);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = 4;
    context.strokeStyle = colour("surface");
    context.strokeText(text, left, line);
    context.fillStyle = fill;
    context.fillText(text, left, line);
  }
  return { keepFree, name, write };
}

function shortened(context, text, most) {
  if (context.measureText(text).width <= most) return text;
  let end = text.length;
  while (end > 1 && context.measureText(`${text.slice(0, end).trimEnd()}…`).width > most) end--;
  return `${text.slice(0, end).trimEnd()}…`;
}

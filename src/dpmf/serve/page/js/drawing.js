// Draws the map on a canvas: items, what somebody rated, what is recommended, and their taste.

import { clamped } from "./camera.js";
import { colour, genreColour } from "./colours.js";
import { makeLabels } from "./labels.js";

const LABELLED = 6;
const MARK = 8; // pixels from the middle of a ring or a star that no text may cover
const MARGIN = 18; // pixels between the arrow and the edge
const SHORTEST = 36; // arrow, in pixels

/** Draw everything. `chosen` is an item or null; `only` the place of a genre or null. */
export function drawMap(canvas, app, camera, { chosen, only }) {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  const { places, width: axes, n } = app.map;
  const at = (item) => camera.toScreen(places[item * axes], axes > 1 ? places[item * axes + 1] : 0);
  const isMapped = (item) => app.map.mapped[item] === 1;
  drawCross(context, camera, width, height);
  drawItems(context, app, at, n, only, width, height);
  const rated = app.store.used().map((entry) => entry.position).filter(isMapped);
  for (const item of rated) ring(context, at(item), 5.5, colour("ink"), 2);
  const best = app.store.used().length ? app.best.slice(0, LABELLED).map((one) => one.item).filter(isMapped) : [];
  for (const item of best) star(context, at(item), colour("accent"));
  const labels = makeLabels(context, width, height);
  for (const item of [...rated, ...best]) labels.keepFree(...at(item), MARK);
  drawTaste(context, app, camera, labels, width, height);
  context.font = `600 12px ${getComputedStyle(document.body).fontFamily}`;
  for (const item of best) labels.write(app.catalogue.titles[item], at(item), colour("accent"));
  for (const item of rated.slice(-LABELLED)) labels.write(app.catalogue.titles[item], at(item), colour("ink"));
  if (chosen !== null) ring(context, at(chosen), 8, colour("ink"), 2.5);
}

function drawCross(context, camera, width, height) {
  const [x, y] = camera.toScreen(0, 0);
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(0, y);
  context.lineTo(width, y);
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
}

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

/**
 * The arrow is as long as the share of the taste that these two directions show, but never longer than the map, and it stays
 * on it when the map is enlarged.
 */
function drawTaste(context, app, camera, labels, width, height) {
  const { x, y, share } = app.taste;
  const norm = Math.hypot(x, y);
  if (!norm) return;
  const [dx, dy] = [x / norm, -y / norm];
  const inside = (from, step, size) => (step === 0 ? Infinity : ((step > 0 ? size - MARGIN : MARGIN) - from) / step);
  let [fromX, fromY] = camera.toScreen(0, 0);
  const room = Math.min(inside(fromX, dx, width), inside(fromY, dy, height));
  const length = clamped(camera.reach() * (0.1 + 0.8 * share), SHORTEST, Math.max(SHORTEST, room));
  fromX = clamped(fromX, MARGIN - Math.min(0, dx * length), width - MARGIN - Math.max(0, dx * length));
  fromY = clamped(fromY, MARGIN - Math.min(0, dy * length), height - MARGIN - Math.max(0, dy * length));
  const [toX, toY] = [fromX + dx * length, fromY + dy * length];
  context.strokeStyle = context.fillStyle = colour("taste");
  context.lineWidth = 3.5;
  context.lineCap = "round";
  context.beginPath();
  context.moveTo(fromX, fromY);
  context.lineTo(toX - dx * 8, toY - dy * 8);
  context.stroke();
  context.beginPath();
  context.moveTo(toX, toY);
  context.lineTo(toX - dx * 15 - dy * 7, toY - dy * 15 + dx * 7);
  context.lineTo(toX - dx * 15 + dy * 7, toY - dy * 15 - dx * 7);
  context.fill();
  context.font = `700 13px ${getComputedStyle(document.body).fontFamily}`;
  for (let part = 0; part <= length; part += MARK) labels.keepFree(fromX + dx * part, fromY + dy * part, MARK / 2);
  labels.write("your taste", [toX, toY], colour("taste"), true);
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

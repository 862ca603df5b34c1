// The colours of style.css, for canvases.

import { $ } from "./dom.js";

let known = new Map();

/** Forget colours, since the theme changed. */
export function forgetColours() {
  known = new Map();
}

/** Return what a custom property of style.css amounts to in the present theme. */
export function colour(name) {
  if (!known.has(name)) {
    const probe = $("probe");
    probe.style.color = `var(--${name})`;
    known.set(name, getComputedStyle(probe).color);
  }
  return known.get(name);
}

/** Return red, green and blue of such a colour, from 0 to 255. */
export const partsOf = (text) => text.match(/[\d.]+/g).slice(0, 3).map(Number);

/** Return the colour of a genre, by its place in the catalogue's list. */
export const genreColour = (place) => colour(`genre-${place}`);

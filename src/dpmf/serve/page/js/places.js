// Where items are on the map, as dpmf.serve.map writes it into about.json.

import { Damaged } from "./errors.js";

const MOST = 65534;
const NOWHERE = 65535;

/** Return {n, places, mapped}: two coordinates of each item, from −1 to 1, and whether it has a place on the map. */
export function placesOf(text, n) {
  let bytes;
  try {
    bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
  } catch {
    throw new Damaged("about.json has no map");
  }
  if (bytes.length !== 4 * n) throw new Damaged("the map is one of other items");
  const numbers = new DataView(bytes.buffer);
  const places = new Float32Array(2 * n);
  const mapped = new Uint8Array(n);
  for (let item = 0; item < n; item++) {
    if (numbers.getUint16(4 * item, true) === NOWHERE) continue;
    mapped[item] = 1;
    for (const axis of [0, 1]) places[2 * item + axis] = (2 * numbers.getUint16(4 * item + 2 * axis, true)) / MOST - 1;
  }
  return { n, places, mapped };
}

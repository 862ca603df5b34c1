// One's own share of the noise of a sum, from the browser's cryptographic generator.

import { draw, shareSquare, tableOf } from "./discrete.js";

const MOST_BYTES = 65536; // that the generator gives at once

/** Uniform bits of the browser's generator, for `draw`. */
export const systemBits = {
  words(_, count) {
    const words = new Uint32Array(count);
    for (let place = 0; place < count; place += MOST_BYTES / 4) {
      crypto.getRandomValues(words.subarray(place, place + MOST_BYTES / 4));
    }
    return words;
  },
  refine() {
    const words = crypto.getRandomValues(new BigUint64Array(2));
    return (words[1] << 64n) | words[0];
  },
};

/** Return a function that draws shares: `nShares` of them, from different people, are the noise of one sum. */
export function makeNoise(nShares, bits = systemBits) {
  const table = tableOf(shareSquare(nShares));
  return (count) => draw(table, count, bits);
}

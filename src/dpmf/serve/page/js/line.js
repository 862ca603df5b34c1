// How far down a list by pairs titles stand out from noise.

const WRONG = 0.1; // the share of titles above the line that may be there by noise

/**
 * Return the least score that stands out from noise, Infinity if none does.
 *
 * Noise pushes scores up as often as down. So around the middle of somebody's scores, those that lie a distance below or
 * further tell how many of those that lie as far above are there by noise: at most a tenth of them may be. Dislikes lie below
 * as well, which makes the line stricter.
 * @param {Float32Array|number[]} scores of all items that pairs are known of, without somebody's own
 */
export function lineOf(scores) {
  const sorted = Float64Array.from(scores).sort();
  if (!sorted.length) return Infinity;
  const middle = sorted[sorted.length >> 1];
  let line = Infinity;
  let below = 0;
  for (let above = 1; above <= sorted.length && sorted.at(-above) > middle; above++) {
    const distance = sorted.at(-above) - middle;
    while (middle - sorted[below] >= distance) below += 1;
    if (below <= WRONG * above) line = sorted.at(-above);
  }
  return line;
}

// One person's part of a sum over everybody, in whole steps of the public grid: bounded here, whoever asks. The same
// operations in the same order as dpmf.kernels.bounded_sums and item_pairs, so the same bits; docs/proofs/als.md and ease.md
// have the bounds. Items ascend and are positions in the catalogue; a part is rounded toward zero.

export const SAFETY = 1.0 - 1e-6;
const LEAST_TOTAL = 1e-250; // squares that make up a smaller sum may have lost digits

/** Return a, just below 1/‖weights‖ over the items, or 0 if that is not precise. */
export function weightNormalizer(items, weights) {
  let total = 0;
  for (const item of items) total += weights[item] * weights[item];
  return inverseRoot(total);
}

const inverseRoot = (total) => (LEAST_TOTAL < total && total < Infinity ? SAFETY / Math.sqrt(total) : 0);

/** Scale a row down to a length below the radius; set it to 0 if a number in it is not finite. */
export function clipNorm(row, radius) {
  let total = 0;
  for (const number of row) total += number * number;
  if (!(total < Infinity)) {
    row.fill(0);
    return;
  }
  const length = Math.sqrt(total);
  const factor = SAFETY * (length > radius ? radius / length : 1);
  for (let k = 0; k < row.length; k++) row[k] *= factor;
}

/** Return the weights of one's items; the length is at most `steps`. */
export function counts({ items }, weights, steps) {
  const sums = new Float64Array(weights.length);
  const scale = weightNormalizer(items, weights) * steps;
  if (scale > 0) for (const item of items) sums[item] += Math.trunc(scale * weights[item]);
  return sums;
}

/** Return how much one likes items; the length is at most `steps`. */
export function preferences({ items, values }, nItems, ramp, steps) {
  const sums = new Float64Array(nItems);
  const liked = values.map((value) => preference(value, ramp));
  const scale = inverseRoot(liked.reduce((total, weight) => total + weight * weight, 0)) * steps;
  if (scale > 0) items.forEach((item, place) => (sums[item] += Math.trunc(scale * liked[place])));
  return sums;
}

/** Return how much one likes pairs of items of the head, as a packed triangle; the length is at most `steps`. */
export function pairs({ items, values }, head, ramp, steps) {
  const sums = new Float64Array((head.length * (head.length + 1)) / 2);
  const rows = new Map(Array.from(head.toSorted(), (item, row) => [item, row]));
  const found = [];
  let total = 0;
  items.forEach((item, place) => {
    if (!rows.has(item)) return;
    const weight = preference(values[place], ramp);
    total += weight * weight;
    if (weight > 0) found.push({ row: rows.get(item), weight });
  });
  const normalizer = inverseRoot(total);
  if (!(normalizer * steps > 0)) return sums;
  for (const one of found) one.z = normalizer * one.weight;
  found.forEach(({ row, z }, a) => {
    const base = (row * (row + 1)) / 2;
    sums[base + row] += Math.trunc(steps * z * z);
    const twice = steps * SAFETY * Math.SQRT2 * z;
    for (let b = 0; b < a; b++) sums[base + found[b].row] += Math.trunc(twice * found[b].z);
  });
  return sums;
}

/** Return the weight of a rating, from 0 to 1. */
function preference(value, { none, full }) {
  if (value >= full) return 1;
  const weight = value > none ? (value - none) / (full - none) : 0;
  return weight >= 0 && weight <= 1 ? weight : 0;
}

/** Return second moments of factors, as a packed triangle; the length is at most `steps` times the squared radius. */
export function moments(factors, radius, steps) {
  const row = Float64Array.from(factors);
  clipNorm(row, radius);
  return triangle(row, steps);
}

/** Return weighted second moments of factors for one's items; bounded as above. */
export function itemMoments({ items }, weights, factors, radius, steps) {
  const row = Float64Array.from(factors);
  const size = (row.length * (row.length + 1)) / 2;
  const sums = new Float64Array(weights.length * size);
  const scale = weightNormalizer(items, weights) * steps;
  if (!(scale > 0)) return sums;
  clipNorm(row, radius);
  for (const item of items) sums.set(triangle(row, scale * weights[item]), item * size);
  return sums;
}

function triangle(row, scale) {
  const packed = new Float64Array((row.length * (row.length + 1)) / 2);
  let place = 0;
  for (let k = 0; k < row.length; k++) {
    packed[place++] = Math.trunc(scale * row[k] * row[k]);
    for (let other = 0; other < k; other++) {
      packed[place++] = Math.trunc(scale * SAFETY * Math.SQRT2 * row[k] * row[other]);
    }
  }
  return packed;
}

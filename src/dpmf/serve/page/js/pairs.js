// The ranking part of a release, as dpmf.model.ranking has it: scores of items from what somebody has.
//
// The score of an item h of the head, for somebody with items j of weights w_j there:
//     Σ_j w_j (left_j · right_h + pairs_jh).
// All other items follow, the most popular first. So a score is a sum with one term for each item: that is the "why".

import { Damaged } from "./errors.js";
import { unpackFactors, unpackHalves } from "./packed.js";
import { best } from "./ranking.js";

const LARGEST = 1e12; // as in dpmf.model.ranking
const TYPES = {
  items: "I32", left: "U8", left_exponents: "I16", right: "U8", right_exponents: "I16", indptr: "I64", pairs: "I32",
  values: "F16", popularity: "F32",
};

/**
 * Return the ranking part of a release, or throw `Damaged`.
 * @param {object} facts of release.json
 * @param {Map} tensors of release.safetensors
 * @param {number} n the size of the catalogue
 */
export function rankingOf(facts, tensors, n) {
  const { n_items: size, n_factors: K, n_pairs: count, value_exponent: exponent, threshold, lowest_weight: lowest } = facts.ranking;
  const found = {};
  for (const [name, type] of Object.entries(TYPES)) {
    const tensor = tensors.get(`ranking_${name}`);
    if (tensor?.dtype !== type) throw new Damaged(`the ranking has no ${name}`);
    found[name] = tensor.data;
  }
  const indptr = Float64Array.from(found.indptr, Number);
  const lengths = [
    [found.items, size], [found.left, size * 3 * Math.ceil(K / 2)], [found.right, size * 3 * Math.ceil(K / 2)],
    [found.left_exponents, size + K], [found.right_exponents, size + K], [indptr, size + 1], [found.pairs, count],
    [found.values, count], [found.popularity, n],
  ];
  if (!lengths.every(([data, length]) => data.length === length)) throw new Damaged("the ranking has parts of other sizes");
  if (!ascends(Float64Array.of(0, size), found.items, n) || !ascends(indptr, found.pairs, size)) {
    throw new Damaged("the ranking has items out of order");
  }
  const places = new Int32Array(n).fill(-1);
  found.items.forEach((item, place) => (places[item] = place));
  const { popularity } = found;
  const ranking = {
    n, K, places, indptr, popularity, threshold: Math.fround(threshold), lowest,
    span: facts.scale.hi - threshold, from: threshold, implicit: facts.feedback === "implicit",
    items: found.items, pairs: found.pairs,
    left: unpackFactors(found.left, found.left_exponents, size, K),
    right: unpackFactors(found.right, found.right_exponents, size, K),
    values: unpackHalves(found.values, exponent),
    order: Int32Array.from({ length: n }, (_, j) => j).sort((a, b) => popularity[b] - popularity[a] || a - b),
  };
  const usable = [ranking.left, ranking.right, ranking.values].every((numbers) => numbers.every((one) => Math.abs(one) <= LARGEST));
  if (!usable || !popularity.every(Number.isFinite)) {
    throw new Damaged("the ranking holds something that is not a number");
  }
  return ranking;
}

function ascends(indptr, columns, most) {
  if (indptr[0] !== 0 || indptr.at(-1) !== columns.length) return false;
  for (let row = 0; row + 1 < indptr.length; row++) {
    if (!(indptr[row] <= indptr[row + 1])) return false;
    for (let p = indptr[row]; p < indptr[row + 1]; p++) {
      if (columns[p] < 0 || columns[p] >= most || (p > indptr[row] && columns[p] <= columns[p - 1])) return false;
    }
  }
  return true;
}

/** Return how much an item with this rating counts; for implicit feedback, one that somebody had this often. */
export function weightOf(ranking, rating) {
  if (ranking.implicit) return countWeight(ranking, rating);
  const given = Math.fround(rating);
  if (given < ranking.threshold) return 0;
  const share = ranking.span > 0 ? Math.min(1, Math.max(0, (given - ranking.from) / ranking.span)) : 1;
  return Math.fround(ranking.lowest + (1 - ranking.lowest) * share);
}

/** As dpmf.model.ranking does it: 1 for a count of one, and more the more often. */
function countWeight({ from: full, lowest }, count) {
  if (!(full > 1 && lowest > 0)) return 1;
  const share = Math.log2(Math.min(Math.max(count, 1), full)) / Math.log2(full);
  return Math.fround(1 + (1 / lowest - 1) * share);
}

/** Return what of somebody's items counts: {items, weights, factors}, and the sum of what they contribute. */
export function ownerOf(ranking, items, values) {
  const counted = items
    .map((item, place) => ({ item, weight: weightOf(ranking, values[place]) }))
    .filter(({ item, weight }) => ranking.places[item] >= 0 && weight > 0);
  const { K, left } = ranking;
  const factors = new Float64Array(K);
  for (const { item, weight } of counted) {
    const row = ranking.places[item] * K;
    for (let k = 0; k < K; k++) factors[k] += weight * left[row + k];
  }
  return { items: counted.map((one) => one.item), weights: counted.map((one) => one.weight), factors };
}

/**
 * Return scores of all items. All items outside the head have the same, just below the lowest of the head; if nothing
 * that somebody has counts, it is the popularity. Among equals, `ranking.order` decides.
 */
export function rankingScores(ranking, owner) {
  const { n, K, right, items, indptr, pairs, values } = ranking;
  if (owner.items.length === 0) return Float32Array.from(ranking.popularity);
  const u = owner.factors;
  const ofHead = new Float64Array(items.length);
  const whole = K - (K % 4);
  for (let h = 0, row = 0; h < items.length; h++, row += K) {
    let first = 0;
    let second = 0;
    let k = 0;
    for (; k < whole; k += 4) {
      first += u[k] * right[row + k] + u[k + 1] * right[row + k + 1];
      second += u[k + 2] * right[row + k + 2] + u[k + 3] * right[row + k + 3];
    }
    for (; k < K; k++) first += u[k] * right[row + k];
    ofHead[h] = first + second;
  }
  owner.items.forEach((item, place) => {
    const j = ranking.places[item];
    for (let p = indptr[j]; p < indptr[j + 1]; p++) ofHead[pairs[p]] += owner.weights[place] * values[p];
  });
  const scores = new Float32Array(n);
  let lowest = Infinity;
  for (const score of ofHead) lowest = Math.min(lowest, score);
  scores.fill(justBelow(lowest));
  for (let h = 0; h < items.length; h++) scores[items[h]] = ofHead[h];
  return scores;
}

/** Return the greatest 32-bit number below another. */
function justBelow(number) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, number);
  const bits = view.getInt32(0);
  if (view.getFloat32(0) === 0) view.setInt32(0, -0x7fffffff);
  else view.setInt32(0, bits > 0 ? bits - 1 : bits + 1);
  return view.getFloat32(0);
}

/** Return what each of somebody's items adds to the score of an item; null if its place is by popularity alone. */
export function rankingParts(ranking, owner, item) {
  if (ranking.places[item] < 0 || owner.items.length === 0) return null;
  return owner.items.map((own, place) => owner.weights[place] * pairScore(ranking, ranking.places[own], ranking.places[item]));
}

function pairScore({ K, left, right, indptr, pairs, values }, j, h) {
  let total = 0;
  for (let k = 0; k < K; k++) total += left[j * K + k] * right[h * K + k];
  let [low, high] = [indptr[j], indptr[j + 1]];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pairs[middle] < h) low = middle + 1;
    else high = middle;
  }
  return low < indptr[j + 1] && pairs[low] === h ? total + values[low] : total;
}

/** Return the k items that have the greatest scores for somebody who has one item only, [{item, score}]; null if unknown. */
export function together(ranking, item, k) {
  const j = ranking.places[item];
  if (j < 0) return null;
  const factors = Float64Array.from(ranking.left.subarray(j * ranking.K, (j + 1) * ranking.K));
  if (factors.every((factor) => factor === 0) && ranking.indptr[j] === ranking.indptr[j + 1]) return null;
  const scores = rankingScores(ranking, { items: [item], weights: [1], factors });
  const others = (other) => other !== item && ranking.places[other] >= 0;
  return best(scores, k, others, ranking.order).map((other) => ({ item: other, score: scores[other] }));
}

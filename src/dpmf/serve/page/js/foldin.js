// A person from their own ratings: ridge regression by Cholesky, as dpmf.kernels.ridge and dpmf.kernels.als_implicit do it.
//
// Ratings r_j of items j, minimised over the bias b and the factors u:
//     Σ_j (r_j - mean - c_j - b - u·v_j)² + n^exponent (ridge_b b² + ridge_u ‖u‖²).
// What somebody has, p_j being 1 for it and 0 for the rest, minimised over u:
//     Σ_all (p_j - c_j - u·v_j)² + α Σ_own (1 - c_j - u·v_j)² + ridge_u ‖u‖².
// Both are linear in what is given, so a score is a sum with one term for each rating: that is the "why".

import { factorize, solve } from "./linear.js";

/**
 * Return somebody's bias and factors, and what `contributions` needs.
 * @param {object} model from `modelOf`
 * @param {number[]} items positions, ascending
 * @param {number[]} values ratings; ignored for implicit feedback
 */
export function foldIn(model, items, values) {
  if (items.length === 0) return { bias: 0, factors: new Float32Array(model.K), items, weights: [], L: null };
  return model.implicit ? observer(model, items) : rater(model, items, values);
}

function rater(model, items, values) {
  const { K, V, c, mean } = model;
  const size = K + 1; // the bias comes last
  const A = squaresOf(model, items);
  const y = new Float64Array(size);
  const weights = items.map((j, place) => Math.fround(values[place]) - mean - c[j]);
  const z = new Float64Array(size);
  items.forEach((j, place) => {
    for (let k = 0; k < K; k++) z[k] = V[j * K + k];
    z[K] = 1;
    for (let a = 0; a < size; a++) y[a] += weights[place] * z[a];
  });
  const scale = items.length ** model.exponent;
  for (let k = 0; k < K; k++) A[k * size + k] += model.ridgeFactors * scale;
  A[K * size + K] += model.ridgeBias * scale;
  factorize(A, size);
  solve(A, size, y);
  return { bias: Math.fround(y[K]), factors: Float32Array.from(y.subarray(0, K)), items, weights, L: A };
}

/**
 * Return Σ z_j z_j' over somebody's items, z_j being the factors of an item with a 1 for the bias. With thousands of items that
 * is most of the work, and from one rating to the next hardly any of it changes: what was summed last is kept up to date.
 */
function squaresOf(model, items) {
  const { K, V } = model;
  const size = K + 1;
  const now = new Set(items);
  const last = model.summed ?? { items: new Set(), A: new Float64Array(size * size) };
  const gone = [...last.items].filter((j) => !now.has(j));
  const isFar = gone.length > items.length / 2;
  const A = isFar ? new Float64Array(size * size) : last.A;
  const come = isFar ? items : items.filter((j) => !last.items.has(j));
  const z = new Float64Array(size).fill(1);
  for (const [some, sign] of [[come, 1], [isFar ? [] : gone, -1]]) {
    for (const j of some) {
      for (let k = 0; k < K; k++) z[k] = V[j * K + k];
      addOuter(A, size, z, sign);
    }
  }
  model.summed = { items: now, A };
  return A.slice();
}

function observer(model, items) {
  const { K, V, c, alpha } = model;
  const { gramian, pull } = commonOf(model);
  const A = Float64Array.from(gramian);
  const y = pull.map((value) => -value);
  const weights = items.map((j) => 1 + alpha * (1 - c[j]));
  const v = new Float64Array(K);
  items.forEach((j, place) => {
    for (let k = 0; k < K; k++) v[k] = V[j * K + k];
    addOuter(A, K, v, alpha);
    for (let k = 0; k < K; k++) y[k] += weights[place] * v[k];
  });
  factorize(A, K);
  solve(A, K, y);
  return { bias: 0, factors: Float32Array.from(y), items, weights, L: A };
}

/** Add weight · z z' to the lower triangle of A. */
function addOuter(A, size, z, weight) {
  for (let a = 0; a < size; a++) {
    const left = weight * z[a];
    for (let k = 0; k <= a; k++) A[a * size + k] += left * z[k];
  }
}

/** Return what the fits of all people have in common, V'V + ridge and Σ c_j v_j; computed once for a model. */
export function commonOf(model) {
  model.common ??= computeCommon(model);
  return model.common;
}

function computeCommon({ n, K, V, c, ridgeFactors }) {
  const gramian = new Float64Array(K * K);
  const pull = new Float64Array(K);
  const v = new Float64Array(K);
  for (let j = 0; j < n; j++) {
    for (let k = 0; k < K; k++) v[k] = V[j * K + k];
    addOuter(gramian, K, v, 1);
    for (let k = 0; k < K; k++) pull[k] += c[j] * v[k];
  }
  for (let k = 0; k < K; k++) gramian[k * K + k] += ridgeFactors;
  return { gramian, pull };
}

/** Return mean + bias + c_j + u·v_j for all items. */
export function scoresOf(model, person) {
  const { n, K, V, c, mean } = model;
  const u = person.factors;
  const base = mean + person.bias;
  const scores = new Float32Array(n);
  const whole = K - (K % 4);
  for (let j = 0, row = 0; j < n; j++, row += K) {
    let first = 0;
    let second = 0;
    let k = 0;
    for (; k < whole; k += 4) {
      first += u[k] * V[row + k] + u[k + 1] * V[row + k + 1];
      second += u[k + 2] * V[row + k + 2] + u[k + 3] * V[row + k + 3];
    }
    for (; k < K; k++) first += u[k] * V[row + k];
    scores[j] = base + c[j] + first + second;
  }
  return scores;
}

/**
 * Return how a score comes about: what it would be without one's ratings, and what each of them adds. The sum is the
 * score, before it is kept within the scale.
 */
export function contributions(model, person, item) {
  const { K, V, c, mean, implicit } = model;
  const start = mean + c[item];
  if (!person.L) return { start, parts: [] };
  const size = implicit ? K : K + 1;
  const w = new Float64Array(size);
  for (let k = 0; k < K; k++) w[k] = V[item * K + k];
  if (!implicit) w[K] = 1;
  solve(person.L, size, w);
  const along = (j) => {
    let total = implicit ? 0 : w[K];
    for (let k = 0; k < K; k++) total += w[k] * V[j * K + k];
    return total;
  };
  const parts = person.items.map((j, place) => along(j) * person.weights[place]);
  if (!implicit) return { start, parts };
  const { pull } = commonOf(model);
  let absent = 0; // what all that one does not have takes away
  for (let k = 0; k < K; k++) absent += w[k] * pull[k];
  return { start: start - absent, parts };
}

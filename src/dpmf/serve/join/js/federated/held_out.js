// By how much one's ratings differ from what one's other ratings predict, times the factors that go with that. The same
// operations in the same order as dpmf.kernels.held_out, so the same bits; the method is explained there.

import { SAFETY, clipNorm, weightNormalizer } from "./sums.js";

const BATCH = 4; // ratings per pass: it decides the order in which products are added up
const LEAST_SLACK = 1e-6; // of 1 - h: a rating that all but decides the fit cannot be predicted from the others
const LEAST_PIVOT = 1e-30;

/**
 * Return residuals times (factors, height), shape (items, K + 1), or alone times height; the length is at most
 * steps·clip·√(radius² + height²), or steps·clip·height.
 * @param {{items: Int32Array, values: Float64Array}} own ratings
 * @param {{V: Float32Array, c: Float32Array, weights: Float64Array, mean, ridgeB, ridgeU, length, nAsked}} asked; residuals
 *   are multiplied with the first nAsked factors
 * @param {{clip, radius, height, alone}} agreed
 */
export function heldOutResiduals(own, asked, agreed, steps) {
  const { V, c, weights, length } = asked;
  const { clip, radius, height, alone } = agreed;
  const n = V.length / c.length + 1; // factors, and the bias
  const added = alone ? 0 : asked.nAsked;
  const sums = new Float64Array(c.length * (added + 1));
  const scale = weightNormalizer(own.items, weights) * steps;
  if (!(scale > 0)) return sums;
  const fit = fitPerson(own, asked, n);
  const row = new Float64Array(added);
  const z = new Float64Array(n).fill(1);
  own.items.forEach((j, place) => {
    for (let k = 0; k < n - 1; k++) z[k] = V[j * (n - 1) + k];
    const g = multiplied(z, fit.inverse, n);
    const e = own.values[place] - asked.mean - c[j];
    let [h, residual] = [0, e];
    for (let k = 0; k < n; k++) {
      h += z[k] * g[k];
      residual -= z[k] * fit.solution[k];
    }
    if (!(1 - h > LEAST_SLACK)) return;
    residual /= 1 - h;
    for (let k = 0; k < added; k++) row[k] = fit.solution[k] - g[k] * residual;
    if (length > 0) {
      if (added === n - 1) residual = e - (fit.total - e) / (Math.max(own.items.length - 1, 0) + asked.ridgeB);
      else for (let k = 0; k < added; k++) residual += z[k] * row[k];
      rescale(row, length);
    }
    clipNorm(row, radius);
    if (!(Math.abs(residual) < Infinity)) return;
    const amount = scale * weights[j] * Math.min(Math.max(residual, -clip), clip);
    for (let k = 0; k < added; k++) sums[j * (added + 1) + k] += Math.trunc(amount * row[k]);
    sums[j * (added + 1) + added] += Math.trunc(amount * SAFETY * height);
  });
  return sums;
}

/** Return the inverse of the normal equations' matrix, their solution (factors, bias), and Σ e. */
function fitPerson({ items, values }, { V, c, mean, ridgeB, ridgeU }, n) {
  const A = new Float64Array(n * n);
  const y = new Float64Array(n);
  let total = 0;
  for (let first = 0; first < items.length; first += BATCH) {
    const [Z, e] = [new Float64Array(BATCH * n), new Float64Array(BATCH)];
    for (let held = 0; held < BATCH && first + held < items.length; held++) {
      const j = items[first + held];
      e[held] = values[first + held] - mean - c[j];
      total += e[held];
      for (let k = 0; k < n - 1; k++) Z[held * n + k] = V[j * (n - 1) + k];
      Z[held * n + n - 1] = 1;
    }
    addProducts(Z, e, A, y, n);
  }
  for (let k = 0; k < n; k++) for (let other = 0; other < k; other++) A[other * n + k] = A[k * n + other];
  for (let k = 0; k < n - 1; k++) A[k * n + k] += ridgeU;
  A[n * n - 1] += ridgeB;
  const inverse = inverted(A, n);
  const solution = new Float64Array(n);
  for (let k = 0; k < n; k++) for (let other = 0; other < n; other++) solution[k] += inverse[k * n + other] * y[other];
  return { inverse, solution, total };
}

/** Add Z'Z to the lower triangle of A, and Z'e to y, four ratings at a time. */
function addProducts(Z, e, A, y, n) {
  for (let k = 0; k < n; k++) {
    const [a0, a1, a2, a3] = [Z[k], Z[n + k], Z[2 * n + k], Z[3 * n + k]];
    y[k] += a0 * e[0] + a1 * e[1] + a2 * e[2] + a3 * e[3];
    for (let other = 0; other <= k; other++) {
      A[k * n + other] += a0 * Z[other] + a1 * Z[n + other] + a2 * Z[2 * n + other] + a3 * Z[3 * n + other];
    }
  }
}

/** Return A⁻¹ by elimination, overwriting A: symmetric and positive definite, so pivots need no search. */
function inverted(A, n) {
  const inverse = new Float64Array(n * n);
  for (let a = 0; a < n; a++) inverse[a * n + a] = 1;
  for (let a = 0; a < n; a++) {
    const pivot = 1 / Math.max(A[a * n + a], LEAST_PIVOT);
    for (let k = 0; k < n; k++) {
      A[a * n + k] *= pivot;
      inverse[a * n + k] *= pivot;
    }
    for (let row = 0; row < n; row++) {
      if (row === a) continue;
      const factor = A[row * n + a];
      for (let k = 0; k < n; k++) {
        A[row * n + k] -= factor * A[a * n + k];
        inverse[row * n + k] -= factor * inverse[a * n + k];
      }
    }
  }
  return inverse;
}

function multiplied(z, M, n) {
  const product = new Float64Array(n);
  for (let k = 0; k < n; k++) for (let other = 0; other < n; other++) product[other] += z[k] * M[k * n + other];
  return product;
}

function rescale(row, length) {
  let total = 0;
  for (const number of row) total += number * number;
  if (!(total > 0 && total < Infinity)) return;
  const factor = length / Math.sqrt(total);
  for (let k = 0; k < row.length; k++) row[k] *= factor;
}

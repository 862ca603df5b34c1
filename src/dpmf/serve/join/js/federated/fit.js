// One's own factors by ridge regression, as dpmf.kernels.ridge, for the moments that a round of least squares asks for.
// Python's fit may add up in another order, so the last bits differ; no bound depends on them.

import { factorize, solve } from "../linear.js";

/** Return one's first nAsked factors, in single precision as in Python: of those that fit one's ratings best, with a bias. */
export function fittedFactors({ items, values }, { V, c, mean, ridgeB, ridgeU, length, nAsked }) {
  const K = V.length / c.length;
  const n = K + 1;
  const A = new Float64Array(n * n);
  const y = new Float64Array(n);
  const z = new Float64Array(n).fill(1);
  items.forEach((j, place) => {
    for (let k = 0; k < K; k++) z[k] = V[j * K + k];
    const e = values[place] - mean - c[j];
    for (let a = 0; a < n; a++) {
      y[a] += e * z[a];
      for (let b = 0; b <= a; b++) A[a * n + b] += z[a] * z[b];
    }
  });
  for (let k = 0; k < K; k++) A[k * n + k] += ridgeU;
  A[n * n - 1] += ridgeB;
  if (items.length) {
    factorize(A, n);
    solve(A, n, y);
  }
  const factors = Float32Array.from(y.subarray(0, nAsked));
  const total = Math.sqrt(factors.reduce((sum, number) => sum + number * number, 0));
  return length > 0 ? factors.map((number) => (total > 0 ? number * (length / total) : 0)) : factors;
}

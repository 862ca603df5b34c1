// Small linear algebra: Cholesky factors of a symmetric positive definite matrix, and what they solve.

const LEAST_PIVOT = 1e-30; // what rounding may leave of a positive pivot

/** Overwrite the lower triangle of A (size × size, row after row) with its Cholesky factor. */
export function factorize(A, size) {
  for (let a = 0; a < size; a++) {
    const row = a * size;
    for (let b = 0; b <= a; b++) {
      const other = b * size;
      let total = A[row + b];
      for (let k = 0; k < b; k++) total -= A[row + k] * A[other + k];
      A[row + b] = a === b ? Math.sqrt(Math.max(total, LEAST_PIVOT)) : total / A[other + b];
    }
  }
}

/** Overwrite y with A⁻¹y, given what `factorize` left of A. */
export function solve(L, size, y) {
  for (let a = 0; a < size; a++) {
    let total = y[a];
    for (let k = 0; k < a; k++) total -= L[a * size + k] * y[k];
    y[a] = total / L[a * size + a];
  }
  for (let a = size - 1; a >= 0; a--) {
    y[a] /= L[a * size + a];
    for (let k = 0; k < a; k++) y[k] -= L[a * size + k] * y[a];
  }
}

// Principal components of the item factors: they make an item's emblem, and say how far apart items are.

const MOST_PRODUCTS = 1e8; // beyond that, every so many-th item stands for all
const ROUNDS = 80;

/**
 * Return {places, width}: `width` coordinates of all items, relative to the mean.
 * @param {object} model {n, K, V}
 * @param {number} most axes
 * @param {(item: number) => boolean} counts whether an item has a say in the mean and the axes
 */
export function principal({ n, K, V }, most, counts = () => true) {
  const width = Math.min(most, K);
  const items = Array.from({ length: n }, (_, item) => item).filter(counts);
  const centre = meanRow(V, items, K);
  const axes = leading(covariance(V, items, K, centre), K, width);
  const places = new Float32Array(n * width);
  for (let j = 0; j < n; j++) {
    for (let a = 0; a < width; a++) {
      let total = 0;
      for (let k = 0; k < K; k++) total += (V[j * K + k] - centre[k]) * axes[a * K + k];
      places[j * width + a] = total;
    }
  }
  return { places, width };
}

function meanRow(V, items, K) {
  const centre = new Float64Array(K);
  for (const j of items) for (let k = 0; k < K; k++) centre[k] += V[j * K + k] / items.length;
  return centre;
}

function covariance(V, items, K, centre) {
  const C = new Float64Array(K * K);
  const v = new Float64Array(K);
  const step = Math.max(1, Math.ceil((items.length * K * K) / MOST_PRODUCTS));
  for (let place = 0; place < items.length; place += step) {
    const j = items[place];
    for (let k = 0; k < K; k++) v[k] = V[j * K + k] - centre[k];
    for (let a = 0; a < K; a++) for (let k = 0; k <= a; k++) C[a * K + k] += v[a] * v[k];
  }
  for (let a = 0; a < K; a++) for (let k = a + 1; k < K; k++) C[a * K + k] = C[k * K + a];
  return C;
}

/** Return the leading eigenvectors of a symmetric matrix, by repeated multiplication; the same in every run. */
function leading(C, K, width) {
  let axes = Float64Array.from({ length: width * K }, (_, place) => Math.sin(1 + place * 12.9898));
  orthonormalize(axes, K, width);
  for (let round = 0; round < ROUNDS; round++) {
    const next = new Float64Array(width * K);
    for (let a = 0; a < width; a++) {
      for (let row = 0; row < K; row++) {
        let total = 0;
        for (let k = 0; k < K; k++) total += C[row * K + k] * axes[a * K + k];
        next[a * K + row] = total;
      }
    }
    orthonormalize(next, K, width);
    axes = next;
  }
  return axes;
}

function orthonormalize(axes, K, width) {
  for (let a = 0; a < width; a++) {
    for (let b = 0; b < a; b++) {
      let dot = 0;
      for (let k = 0; k < K; k++) dot += axes[a * K + k] * axes[b * K + k];
      for (let k = 0; k < K; k++) axes[a * K + k] -= dot * axes[b * K + k];
    }
    let square = 0;
    for (let k = 0; k < K; k++) square += axes[a * K + k] ** 2;
    const length = Math.sqrt(square) || 1;
    for (let k = 0; k < K; k++) axes[a * K + k] /= length;
  }
}

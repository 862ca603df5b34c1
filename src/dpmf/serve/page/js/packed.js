// Numbers as the ranking part of a release stores them: factors in 12 bits, values of pairs in 16-bit floats. See
// dpmf.model.ranking_tensors.

const CENTRE = 2048; // the code of zero

/**
 * Return the n × K numbers, row after row, of which `bytes` holds two codes in every three bytes.
 * @param {Uint8Array} bytes rows of ⌈K/2⌉ · 3
 * @param {Int16Array} exponents of two: n for the rows, then K for the columns
 */
export function unpackFactors(bytes, exponents, n, K) {
  const numbers = new Float32Array(n * K);
  const columns = Float64Array.from({ length: K }, (_, k) => 2 ** exponents[n + k]);
  for (let j = 0, from = 0; j < n; j++) {
    const row = 2 ** exponents[j];
    for (let k = 0; k < K; k += 2, from += 3) {
      const [low, middle, high] = [bytes[from], bytes[from + 1], bytes[from + 2]];
      numbers[j * K + k] = ((low | ((middle & 15) << 8)) - CENTRE) * row * columns[k];
      if (k + 1 < K) numbers[j * K + k + 1] = (((middle >> 4) | (high << 4)) - CENTRE) * row * columns[k + 1];
    }
  }
  return numbers;
}

/** Return 16-bit floats, given by their bits, as numbers multiplied by a power of two. */
export function unpackHalves(bits, exponent) {
  return Float32Array.from(bits, (half) => {
    const size = (half >> 10) & 31;
    const rest = half & 1023;
    const number = size === 0 ? rest * 2 ** -24 : size === 31 ? NaN : (1024 + rest) * 2 ** (size - 25);
    return (half & 0x8000 ? -number : number) * 2 ** exponent;
  });
}

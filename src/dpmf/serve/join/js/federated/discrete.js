// A sampler for the discrete Gaussian, P(k) ∝ exp(-k²/2σ²), from uniform bits: the tables of dpmf.privacy.discrete, to the
// last of 160 bits. Three draws from a small table make one number: A²·X1 + A·X2 + X3. docs/proofs/noise.md and shares.md
// say how far this is from the exact distribution. Fractions are integers here, so no rounding decides a bit.

const LEVELS = 3;
const REACH = 16n; // columns reach at least 16·s to either side
const WORD_BITS = 32;
const REFINING_BITS = 128n;
const UNIT_BITS = 160n; // probabilities are multiples of 2⁻¹⁶⁰
const FRACTION = 512n; // bits after the point, while densities are computed

/** σ² of one of n shares of noise: (2²⁸)²/n, as a fraction. */
export const shareSquare = (nShares) => ({ above: 2n ** 56n, below: BigInt(nShares) });

/** Return the table for σ² = above/below: {stretch, columnBits, thresholds, refined, moves}. */
export function tableOf({ above, below }) {
  const { stretch, divisor } = stretchOf(above, below);
  let columnBits = 1n;
  while (4n ** (columnBits - 1n) * divisor < REACH * REACH * above) columnBits++;
  const heights = weightsOf(above, divisor, columnBits);
  const full = 1n << (UNIT_BITS - columnBits);
  const limits = heights.map(() => 0n);
  const moves = new Int32Array(heights.length);
  const small = [];
  const large = [];
  heights.forEach((height, column) => (height < full ? small : large).push(column));
  while (small.length) {
    const column = small.pop();
    const donor = large[large.length - 1];
    limits[column] = heights[column];
    moves[column] = donor - column;
    heights[donor] -= full - heights[column];
    if (heights[donor] < full) small.push(large.pop());
  }
  const bits = Number(columnBits);
  const first = (limit, column) => column * 2 ** (WORD_BITS - bits) + Number(limit >> REFINING_BITS);
  return {
    stretch: Number(stretch),
    columnBits: bits,
    thresholds: Uint32Array.from(limits, first),
    refined: limits.map((limit) => BigInt.asUintN(Number(REFINING_BITS), limit)),
    moves,
  };
}

/**
 * Return independent draws, whole numbers.
 * @param {object} bits `words(level, count)` returns uniform words of 32 bits; `refine(level)` a number of 128 bits, and is
 *   called where a word alone does not decide
 */
export function draw(table, count, bits) {
  const { stretch, columnBits, thresholds, refined, moves } = table;
  const drawn = new Float64Array(count);
  for (let level = 0; level < LEVELS; level++) {
    bits.words(level, count).forEach((word, place) => {
      const column = word >>> (WORD_BITS - columnBits);
      const limit = thresholds[column];
      const moved = word > limit || (word === limit && bits.refine(level) >= refined[column]);
      drawn[place] = drawn[place] * stretch + column + (moved ? moves[column] : 0);
    });
  }
  const centre = 2 ** (columnBits - 1) * (stretch * stretch + stretch + 1);
  return drawn.map((number) => number - centre);
}

/** Return the largest A for which the sum is smooth enough, and what σ² is divided by to give s². */
function stretchOf(above, below) {
  const guess = Math.cbrt(Math.sqrt(Number(above) / Number(below) / 4));
  for (let stretch = BigInt(Math.ceil(guess)) + 2n; ; stretch--) {
    const square = stretch * stretch;
    const divisor = below * (square * square + square + 1n);
    if (10000n * above >= 39999n * (1n + square) * divisor) return { stretch, divisor };
  }
}

/** Return the probability of each column in units of 2⁻¹⁶⁰, for s² = above/divisor; they sum to 2¹⁶⁰ exactly. */
function weightsOf(above, divisor, columnBits) {
  const one = 1n << FRACTION;
  const rate = (one * divisor) / above;
  // exp(-(x+1)²/2s²) = exp(-x²/2s²)·exp(-(2x+1)/2s²): a running product of a running product
  let ratio = expOfMinus(rate / 2n);
  const step = expOfMinus(rate);
  const densities = [one];
  while (densities.length < 2 ** Number(columnBits - 1n)) {
    densities.push((densities[densities.length - 1] * ratio) >> FRACTION);
    ratio = (ratio * step) >> FRACTION;
  }
  const total = 2n * densities.reduce((sum, density) => sum + density, 0n) - one;
  const half = densities.slice(1).map((density) => (density << UNIT_BITS) / total);
  const centre = (1n << UNIT_BITS) - 2n * half.reduce((sum, weight) => sum + weight, 0n);
  return [0n, ...half.toReversed(), centre, ...half];
}

/** Return exp(-x) of a small fraction, both with FRACTION bits after the point. */
function expOfMinus(x) {
  let [term, total] = [1n << FRACTION, 0n];
  for (let k = 1n; term !== 0n; k++) {
    total += term;
    term = (-term * x) / (k << FRACTION);
  }
  return total;
}

// What Gaussian noise on sums over everybody costs, composed: as dpmf.privacy.accounting, and rounded up.
//
// A release with noise multiplier z has the Gaussian privacy 1/z; releases compose to √Σ 1/z², and that is (ε, δ)-private
// for δ ≥ Φ(g/2 − ε/g) − e^ε·Φ(−g/2 − ε/g). What the sampler's inaccuracy costs is docs/proofs/noise.md, Theorem 1.

const ROUNDING = 1e-13; // more than the error of the logarithms below, relative to their size
const TIGHT = 1e-12;
const HAIR = 1e-9;
const EPSILON_PER_COORDINATE = 2 ** -53;
const DELTA_PER_COORDINATE = 2 ** -111;
const ROOT_TWO_PI = Math.sqrt(2 * Math.PI);
const ROUNDS = 100;

/**
 * Return an ε, rounded up, such that all events together are (ε, delta)-private; perhaps Infinity.
 * @param {{noise_multiplier: number, count: number, coordinates: number}[]} events sums over everybody, with Gaussian noise
 */
export function epsilonOf(events, delta) {
  const gdp = Math.sqrt(events.reduce((sum, one) => sum + one.count / one.noise_multiplier ** 2, 0)) * (1 + TIGHT);
  const coordinates = events.reduce((sum, one) => sum + one.coordinates, 0);
  const extraEpsilon = coordinates * EPSILON_PER_COORDINATE * (1 + TIGHT);
  let epsilon = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const missed = coordinates * DELTA_PER_COORDINATE * (1 + Math.exp(epsilon + extraEpsilon)) * (1 + TIGHT);
    if (!(missed < delta)) return Infinity;
    const enough = gaussianEpsilon(gdp, (delta - missed) * Math.exp(-extraEpsilon)) + extraEpsilon;
    if (enough <= epsilon || enough === Infinity) return Math.max(enough, epsilon);
    epsilon = enough * (1 + HAIR); // what the sampler costs depends on ε: raise ε until it suffices
  }
  return Infinity;
}

function gaussianEpsilon(gdp, delta) {
  if (gdp === 0) return 0;
  const target = Math.log(delta);
  if (logDelta(gdp, 0) <= target) return 0;
  let [low, high] = [0, (gdp * gdp) / 2 + gdp * Math.sqrt(-2 * target)];
  while (logDelta(gdp, high) > target) high *= 1.01;
  while (high - low > TIGHT * high) {
    const middle = (low + high) / 2;
    if (logDelta(gdp, middle) > target) low = middle;
    else high = middle;
  }
  return high;
}

/** Return the logarithm of δ, rounded up: neither e^ε nor the tails of Φ overflow or vanish. */
function logDelta(gdp, epsilon) {
  const far = gdp / 2 + epsilon / gdp;
  const first = logNormal(gdp / 2 - epsilon / gdp);
  const second = epsilon + logNormal(-far);
  const kept = -Math.expm1(Math.min(second - first, 0)) + ROUNDING * (4 + far * far);
  return Math.min(first + Math.log(kept), 0);
}

/** Return ln Φ(x). */
export function logNormal(x) {
  if (x > 0) return Math.log1p(-Math.exp(logNormal(-x)));
  const t = -x;
  if (t < 3) {
    let [term, sum] = [t, t]; // Φ(t) = 1/2 + φ(t)·(t + t³/3 + t⁵/15 + …)
    for (let odd = 3; term > 1e-18 * sum; odd += 2) sum += term *= (t * t) / odd;
    return Math.log(0.5 - (sum * Math.exp((-t * t) / 2)) / ROOT_TWO_PI);
  }
  let fraction = t; // Φ(−t) = φ(t) / (t + 1/(t + 2/(t + 3/(t + …
  for (let k = 200; k > 0; k--) fraction = t + k / fraction;
  return (-t * t) / 2 - Math.log(ROOT_TWO_PI * fraction);
}

// What a round of an agreement asks, and how it is answered. Every number that bounds an answer comes from the agreement, and
// none from whoever asks; what an answer can weigh is worked out here, and has to be what the agreement states.

import { Refused } from "./bytes.js";
import { fittedFactors } from "./fit.js";
import { heldOutResiduals } from "./held_out.js";
import { counts, itemMoments, moments, pairs, preferences } from "./sums.js";

/** S: how many steps of the grid make a standard deviation of the noise of a sum. */
export const STEPS = 2 ** 28;

const MOST_STEPS = 2 ** 45; // per unit of sensitivity
const SAME = 1e-12; // relatively: more than rounding, far less than the 10⁻⁶ that every bound keeps clear of

/**
 * Return {what, size, answer} of a question, or refuse one that this page cannot answer, or that is not what it says.
 * `answer(own, told)` returns one's part of the sum in whole steps; it has a length of at most STEPS / noise multiplier.
 * @param {{name, constants, neighbours, nItems}} method what was agreed upon
 * @param {{what, shape, sensitivity, noise_multiplier, steps}} listed
 * @param {object[]} told the arrays that come with the question
 */
export function makeQuestion(method, listed, told) {
  const half = halfOf(method, listed.what);
  const make = MAKERS[half.name]?.[listed.what];
  if (!make) throw new Refused(`this page cannot answer what is asked about ${listed.what}: use dpmf federate join`);
  const question = make(half, shapesOf(told));
  const { reach, nonnegative, shape, answer } = question;
  const bound = reach * (method.neighbours !== "replace" ? 1 : nonnegative ? Math.SQRT2 : 2);
  const steps = STEPS / (listed.noise_multiplier * listed.sensitivity);
  if (!(Math.abs(listed.sensitivity - bound) <= SAME * bound)) throw new Refused("a question weighs more than it says");
  if (JSON.stringify(listed.shape) !== JSON.stringify(shape)) throw new Refused("a question has another shape");
  if (steps !== listed.steps || !(steps * bound <= MOST_STEPS)) throw new Refused("a question has another grid");
  if (listed.sampling_rate !== null) throw new Refused("this page cannot toss secret coins");
  const size = shape.reduce((total, length) => total * length, 1);
  return { what: listed.what, size, answer: (own, arrays) => answer(own, arrays, steps) };
}

const MAKERS = {
  als: {
    "item popularity": weighed,
    "item weights": weighed,
    "item biases": (method, shapes) => residuals(method, shapes, true),
    "item factors": (method, shapes) => residuals(method, shapes, false),
    "user moments": momentsOf,
  },
  ease: {
    "item popularity": ({ constants, nItems }) => ({
      reach: 1,
      nonnegative: true,
      shape: [nItems],
      answer: (own, _, steps) => preferences(own, nItems, rampOf(constants), steps),
    }),
    "item pairs": ({ constants }, { head }) => ({
      reach: 1,
      nonnegative: true,
      shape: [(head[0] * (head[0] + 1)) / 2],
      answer: (own, told, steps) => pairs(own, told.head, rampOf(constants), steps),
    }),
  },
};

/** Return the method that a release belongs to: the one that ranks and predicts has two halves. */
function halfOf(method, what) {
  if (method.name !== "joint") return method;
  const ranks = Object.hasOwn(MAKERS.ease, what);
  const constants = ranks ? method.constants.ranking : method.constants.ratings;
  return { ...method, name: ranks ? "ease" : "als", constants };
}

function weighed({ nItems }, { weights }) {
  if (weights[0] !== nItems) throw new Refused("a question has weights of other items");
  return { reach: 1, nonnegative: true, shape: [nItems], answer: (own, told, steps) => counts(own, told.weights, steps) };
}

function residuals({ constants, nItems }, shapes, alone) {
  const K = factorsOf(shapes, nItems);
  const traits = traitsOf(constants, shapes, nItems);
  const { clip, radius } = numbersOf(constants, ["clip", "radius", "mean"]);
  const height = alone ? 1 : numbersOf(constants, ["height"]).height;
  return {
    reach: clip * Math.hypot(alone ? 0 : radius, height),
    nonnegative: false,
    shape: [nItems, alone ? 1 : K + 1],
    answer: (own, told, steps) => heldOutResiduals(own, fitOf(constants, told, traits), { clip, radius, height, alone }, steps),
  };
}

function momentsOf({ constants, nItems, perItem }, shapes) {
  const K = factorsOf(shapes, nItems);
  const traits = traitsOf(constants, shapes, nItems);
  const { radius } = numbersOf(constants, ["radius", "mean"]);
  const size = (K * (K + 1)) / 2;
  return {
    reach: radius ** 2,
    nonnegative: false,
    shape: perItem ? [nItems, size] : [size],
    answer(own, told, steps) {
      const factors = fittedFactors(own, fitOf(constants, told, traits));
      return perItem ? itemMoments(own, told.weights, factors, radius, steps) : moments(factors, radius, steps);
    },
  };
}

function factorsOf({ V, c, weights, ridges, length }, nItems) {
  const sizes = [V?.[0], c?.[0], weights?.[0]];
  const isWhole = sizes.every((size) => size === nItems) && ridges?.[0] === 2 && length?.[0] === 1 && V.length === 2;
  if (!isWhole) throw new Refused("a question comes with other arrays than it needs");
  return V[1];
}

/** Return the public traits of the items that tastes are fitted to beside factors, one after the other; none if there are none. */
function traitsOf({ traits = "" }, shapes, nItems) {
  const bytes = Uint8Array.from(atob(traits), (one) => one.charCodeAt(0));
  const isWhole = bytes.length % (4 * nItems) === 0 && (shapes["trait size"]?.[0] === 1) === bytes.length > 0;
  if (!isWhole) throw new Refused("the agreement has traits of other items");
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, place) => view.getFloat32(4 * place, true));
}

/** Return what people fit to: traits of the size that was told stand behind the factors that are asked about. */
function fitOf({ mean }, { weights, ridges, length, c, V, "trait size": size = [0] }, traits) {
  const nAsked = V.length / c.length;
  const fit = { mean, weights, c, ridgeB: ridges[0], ridgeU: ridges[1], length: length[0], nAsked };
  if (!traits.length || !(size[0] > 0)) return { ...fit, V };
  const [nTraits, by] = [traits.length / c.length, Math.fround(size[0])];
  const together = new Float32Array(V.length + traits.length);
  for (let j = 0; j < c.length; j++) {
    const row = together.subarray(j * (nAsked + nTraits), (j + 1) * (nAsked + nTraits));
    row.set(V.subarray(j * nAsked, (j + 1) * nAsked));
    for (let k = 0; k < nTraits; k++) row[nAsked + k] = traits[j * nTraits + k] * by;
  }
  return { ...fit, V: together };
}

function rampOf(constants) {
  const { none, full } = numbersOf(constants, ["none", "full"]);
  if (constants.counts) throw new Refused("this page has ratings, and is asked for counts");
  return { none, full };
}

function numbersOf(constants, names) {
  if (names.every((name) => Number.isFinite(constants[name]))) return constants;
  throw new Refused("the agreement lacks a number that bounds an answer");
}

const shapesOf = (told) => Object.fromEntries(told.map(({ name, shape }) => [name, shape]));

// A release as the page uses it: facts of release.json and tensors of release.safetensors that fit together.

import { Damaged } from "./errors.js";
import { rankingOf } from "./pairs.js";
import { readTensors } from "./safetensors.js";

const NEWEST_FORMAT = 5;
const LARGEST_FACTOR = 1e12; // as in dpmf.model.ranking: products of more would not be numbers
const PUT_BACK = 4; // as in dpmf.model.release: times the width of the scale
const LEAST_RIDGE = 1e-6; // as in dpmf.model.release: without a penalty there would be more than one answer

/**
 * Return what fold-in needs: sizes, factors V (n × K, row after row), biases c, mean and penalties; and the ranking part,
 * null if there is none. `predicts` is false if there is nothing but a ranking part.
 * @param {object} facts of release.json
 * @param {ArrayBuffer} buffer of release.safetensors
 */
export function modelOf(facts, buffer) {
  const tensors = readTensors(buffer);
  const factors = tensors.get("item_factors");
  const biases = tensors.get("item_biases");
  const areFloats = factors?.dtype === "F32" && biases?.dtype === "F32";
  if (!areFloats || factors.shape.length !== 2 || biases.shape.length !== 1) throw new Damaged("item factors or biases are missing");
  const [n, K] = factors.shape;
  if (biases.shape[0] !== n || facts.items.ids.length !== n) throw new Damaged("items and factors do not fit together");
  if (!factors.data.every(isUsable) || !biases.data.every(isUsable)) {
    throw new Damaged("item factors are not numbers");
  }
  const ranking = facts.ranking ? rankingOf(facts, tensors, n) : null;
  return {
    n,
    K,
    V: factors.data,
    c: biases.data,
    mean: facts.mean,
    ridgeBias: facts.ridge.bias,
    ridgeFactors: Math.max(facts.ridge.factors, LEAST_RIDGE),
    exponent: facts.ridge.exponent ?? (facts.ridge.per_rating ? 1 : 0),
    implicit: facts.feedback === "implicit",
    alpha: facts.alpha ?? 0,
    ranking,
    known: knownOf(facts, n, "with_factors"),
    behind: ranking ? null : behindOf(facts, n),
    learnt: facts.configuration?.learnt ?? null,
    predicts: !ranking || K > 0 || biases.data.some((bias) => bias !== 0),
  };
}

/** Return how far items are put back in lists of expected ratings, as dpmf.model.release has it; null if none is. */
function behindOf(facts, n) {
  const { lo, hi } = facts.scale;
  const known = knownOf(facts, n, "with_ratings");
  return known?.includes(1) ? Float32Array.from(known, (one) => (one ? 0 : PUT_BACK * (hi - lo))) : null;
}

/** Return of which items factors, or ratings, are more than noise, as dpmf.model.learnt records it; null for all. */
function knownOf(facts, n, name) {
  const packed = facts.configuration?.learnt?.[name];
  if (typeof packed !== "string") return null;
  let bits = "";
  try {
    bits = atob(packed);
  } catch {
    throw new Damaged("the record of what was learnt is damaged");
  }
  if (bits.length !== Math.ceil(n / 8)) throw new Damaged("the record of what was learnt is of another number of items");
  return Uint8Array.from({ length: n }, (_, j) => (bits.charCodeAt(j >> 3) >> (7 - (j & 7))) & 1);
}

/** Return whether a factor is a number that can be computed with. */
const isUsable = (factor) => Math.abs(factor) <= LARGEST_FACTOR;

/** Throw `Damaged` unless release.json has what the page relies on. */
export function checkFacts(facts) {
  if (facts?.format !== "dpmf-release") throw new Damaged("release.json does not describe a release");
  if (!(facts.version <= NEWEST_FORMAT)) throw new Damaged(`the release has format ${facts.version}, too new for this page`);
  const { items, scale, ridge, mean } = facts;
  const lists = [items?.ids, items?.titles, items?.genres];
  if (!lists.every(Array.isArray) || !lists.every((list) => list.length === items.ids.length)) {
    throw new Damaged("release.json has no complete catalogue");
  }
  const isText = (one) => typeof one === "string";
  if (!items.titles.every(isText) || !items.genres.every(isText) || !items.ids.every((id) => isText(id) || Number.isInteger(id))) {
    throw new Damaged("release.json has a catalogue of something else than texts");
  }
  const penalties = [ridge?.bias, ridge?.factors];
  if (![scale?.lo, scale?.hi, mean, ...penalties].every(Number.isFinite) || !(scale.lo < scale.hi) || ![scale.lo, scale.hi].every(isUsable)) {
    throw new Damaged("release.json has no scale, mean or penalties");
  }
  const exponent = ridge.exponent ?? 0;
  const alpha = facts.alpha ?? 0;
  const isSound = ridge.bias >= 0 && ridge.factors >= 0 && exponent >= 0 && exponent <= 1 && alpha >= 0 && Number.isFinite(alpha);
  if (!isSound || !(scale.lo <= mean && mean <= scale.hi)) throw new Damaged("release.json has a mean or penalties out of range");
  const { ranking } = facts;
  const sizes = [ranking?.n_items, ranking?.n_factors, ranking?.n_pairs];
  const numbers = [ranking?.threshold, ranking?.lowest_weight, ranking?.value_exponent, ...sizes];
  if (ranking && !(ranking.lowest_weight >= 0 && ranking.lowest_weight <= 1)) {
    throw new Damaged("release.json has a ranking with a weight out of range");
  }
  if (ranking && !(numbers.every(Number.isFinite) && sizes.every((size) => Number.isInteger(size) && size >= 0))) {
    throw new Damaged("release.json has no threshold or sizes of its ranking");
  }
}

// Everything that takes time, off the main thread. It gets messages and answers them; it fetches nothing.

import { commonOf, contributions, foldIn, scoresOf } from "./foldin.js";
import { directionOf, principal } from "./projection.js";
import { best, similar, telling } from "./ranking.js";
import { modelOf } from "./release.js";

const AXES = 8;
const STARTERS = 24;

let model = null;
let genres = []; // of every item, a set
let components = null;
let person = null;

const answers = {
  /** Take in a release; answer what the page shows of the catalogue as a whole. */
  open({ facts, buffer }) {
    model = modelOf(facts, buffer);
    genres = facts.items.genres.map((text) => new Set(text.split("|")));
    components = principal(model, AXES);
    if (model.implicit) commonOf(model);
    return { n: model.n, K: model.K, places: components.places, width: components.width, starters: telling(model, STARTERS) };
  },

  /** Fold ratings in; answer all scores, the best unrated items with their main reason, and the taste on the map. */
  person({ items, values, k, genre }) {
    person = foldIn(model, items, values);
    const scores = scoresOf(model, person);
    const rated = new Set(items);
    const allowed = (j) => !rated.has(j) && (!genre || genres[j].has(genre));
    const found = best(scores, k, allowed).map((item) => ({ item, reason: mainReason(item) }));
    return { scores, best: found, taste: tasteOf(person.factors) };
  },

  /** Answer why an item has its score, and what is like it. */
  item({ item, k }) {
    const { start, parts } = contributions(model, person, item);
    const why = parts.map((part, place) => ({ item: person.items[place], part }));
    why.sort((one, other) => Math.abs(other.part) - Math.abs(one.part));
    return { start, why, similar: similar(model, item, k) };
  },
};

/** Return where factors point on the map, and which share of their length that is. */
function tasteOf(factors) {
  const [x, y = 0] = directionOf(components, factors);
  const length = Math.hypot(...factors);
  return { x, y, share: length ? Math.hypot(x, y) / length : 0 };
}

/** Return the rated item that pushes a score up most, if any does. */
function mainReason(item) {
  const { parts } = contributions(model, person, item);
  const greatest = parts.reduce((most, part, place) => (part > (parts[most] ?? 0) ? place : most), -1);
  return greatest === -1 ? null : person.items[greatest];
}

self.addEventListener("message", ({ data: { id, question, content } }) => {
  try {
    self.postMessage({ id, answer: answers[question](content) });
  } catch (error) {
    self.postMessage({ id, failure: error.message });
  }
});
self.postMessage({ ready: true });

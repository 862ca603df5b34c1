// Everything that takes time, off the main thread. It gets messages and answers them; it fetches nothing.

import { commonOf, contributions, foldIn, scoresOf } from "./foldin.js";
import { ownerOf, rankingParts, rankingScores, together } from "./pairs.js";
import { directionOf, principal } from "./projection.js";
import { best, similar, telling } from "./ranking.js";
import { modelOf } from "./release.js";

const AXES = 8;
const STARTERS = 24;

let model = null;
let genres = []; // of every item, a set
let components = null;
let byRatings = true; // whether the map shows the rating model's factors, or what the ranking goes by
let person = null; // bias and factors, from the ratings
let owner = null; // what counts for the ranking

const answers = {
  /** Take in a release; answer what the page shows of the catalogue as a whole. */
  open({ facts, buffer }) {
    model = modelOf(facts, buffer);
    genres = facts.items.genres.map((text) => new Set(text.split("|")));
    const { ranking, predicts } = model;
    const ranked = ranking?.items.length > 0;
    byRatings = predicts && (model.K > 1 || !ranked); // a rating model of few people has no directions to show
    components = byRatings ? principal(model, AXES) : principalOfHead(ranking);
    if (predicts && model.implicit) commonOf(model);
    const popularFirst = ranked || !predicts; // by what goes with these, lists are ordered
    const starters = popularFirst ? popularOf(ranking) : telling(model, STARTERS);
    return { n: model.n, places: components.places, width: components.width, starters: [...starters], popularFirst };
  },

  /**
   * Fold ratings in; answer the expected ratings of all items (null if there are none to show), the best unrated items
   * with their main reason, how many of somebody's items the ranking counts, and the taste on the map.
   */
  person({ items, values, k, genre }) {
    const { ranking, predicts } = model;
    if (predicts) person = foldIn(model, items, values);
    if (ranking) owner = ownerOf(ranking, items, values);
    const expected = predicts ? scoresOf(model, person) : null;
    const rated = new Set(items);
    const allowed = (j) => !rated.has(j) && (!genre || genres[j].has(genre));
    const found = ranking ? best(rankingScores(ranking, owner), k, allowed, ranking.order) : best(expected, k, allowed);
    return {
      scores: ranking && model.implicit ? null : expected, // for implicit feedback, only one kind of score has a meaning
      best: found.map((item) => ({ item, reason: mainReason(item) })),
      counted: ranking ? owner.items.length : items.length,
      taste: tasteOf(byRatings ? person.factors : owner.factors),
    };
  },

  /** Answer why an item has its score, and what is like it; `start` is null if a ranking has nothing to start from. */
  item({ item, k }) {
    const { start, items, parts } = reasonsOf(item);
    const why = parts.map((part, place) => ({ item: items[place], part }));
    why.sort((one, other) => Math.abs(other.part) - Math.abs(one.part));
    const { ranking } = model;
    const alike = (ranking && together(ranking, item, k)) ?? (model.predicts ? similar(model, item, k) : []);
    return { start, why, similar: alike };
  },
};

/** Return the most popular items that say something about others. */
function popularOf(ranking) {
  return ranking.order.filter((item) => ranking.places[item] >= 0).slice(0, STARTERS);
}

/** Return principal components of what owned items contribute, for all items: those outside the head are in the middle. */
function principalOfHead({ n, K, items, left }) {
  const { axes, places, width } = principal({ n: items.length, K, V: left }, AXES);
  const all = new Float32Array(n * width);
  items.forEach((item, place) => all.set(places.subarray(place * width, (place + 1) * width), item * width));
  return { axes, places: all, n, width };
}

/** Return what the score by which an item is ordered starts from, and what each of somebody's items adds. */
function reasonsOf(item) {
  if (model.ranking) return { start: null, items: owner.items, parts: rankingParts(model.ranking, owner, item) ?? [] };
  return { items: person.items, ...contributions(model, person, item) };
}

/** Return where factors point on the map, and which share of their length that is. */
function tasteOf(factors) {
  const [x, y = 0] = directionOf(components, factors);
  const length = Math.sqrt(factors.reduce((total, factor) => total + factor * factor, 0));
  return { x, y, share: length ? Math.hypot(x, y) / length : 0 };
}

/** Return the rated item that pushes a score up most, if any does. */
function mainReason(item) {
  const { items, parts } = reasonsOf(item);
  const greatest = parts.reduce((most, part, place) => (part > (parts[most] ?? 0) ? place : most), -1);
  return greatest === -1 ? null : items[greatest];
}

self.addEventListener("message", ({ data: { id, question, content } }) => {
  try {
    self.postMessage({ id, answer: answers[question](content) });
  } catch (error) {
    self.postMessage({ id, failure: error.message });
  }
});
self.postMessage({ ready: true });

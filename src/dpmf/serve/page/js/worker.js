// Everything that takes time, off the main thread. It gets messages and answers them; it fetches nothing.

import { commonOf, contributions, foldIn, scoresOf } from "./foldin.js";
import { lineOf } from "./line.js";
import { orderedBy } from "./order.js";
import { ownerOf, rankingParts, rankingScores, together } from "./pairs.js";
import { placesOf } from "./places.js";
import { principal } from "./projection.js";
import { best, listed, similar, tellsApart } from "./ranking.js";
import { modelOf } from "./release.js";
import { startersOf } from "./starters.js";

const AXES = 8;
const STARTERS = 60;
const SUITING = 40; // items that show where a taste lies

let model = null;
let genres = []; // of every item, a set
let map = null;
let person = null; // bias and factors, from the ratings
let owner = null; // what counts for the ranking

const answers = {
  /** Take in a release; answer what the page shows of the catalogue as a whole. */
  open({ facts, buffer, places }) {
    model = modelOf(facts, buffer);
    map = placesOf(places, model.n);
    genres = facts.items.genres.map((text) => new Set(text.split("|").filter(Boolean)));
    const { ranking, predicts } = model;
    const ranked = ranking?.items.length > 0;
    const byRatings = predicts && (model.K > 1 || !ranked); // a rating model of few people has no directions to show
    const components = byRatings ? principal(model, AXES, (item) => map.mapped[item] === 1) : principalOfHead(ranking);
    if (predicts && model.implicit) commonOf(model);
    const starters = startersOf(components, ranking?.popularity ?? new Float32Array(model.n).fill(1), genres, isKnown, STARTERS);
    const { places: shapes, width } = components;
    return { map, shapes: { places: shapes, width }, starters, areKnown: Boolean(ranking) };
  },

  /**
   * Fold ratings in; answer the expected ratings of all items (null if there are none to show: without a rating of their
   * own, nobody's level is known), the best unrated items with their main reason, whether they follow by popularity, after all that is linked to somebody's items, and whether they
   * stand out from noise, what
   * decides the order, and items on the map that suit them best, if any of it is their taste.
   */
  person({ items, values, k, genre }) {
    const { ranking, predicts } = model;
    if (predicts) person = foldIn(model, items, values);
    if (ranking) owner = ownerOf(ranking, items, values);
    const expected = predicts ? scoresOf(model, person) : null;
    const order = orderedBy(model, person, owner);
    const rated = new Set(items);
    const allowed = (j) => !rated.has(j) && (!genre || genres[j].has(genre));
    const scores = ranking ? rankingScores(ranking, owner) : listed(model, expected);
    const first = (count, accept) => best(scores, count, accept, ranking?.order);
    const isPersonal = order === "pairs" || order === "factors";
    const found = first(k, allowed);
    const line = order === "pairs" ? lineOf(Array.from(ranking.items).filter((j) => !rated.has(j)).map((j) => scores[j])) : -Infinity;
    return {
      scores: ranking && (model.implicit || !items.length) ? null : expected, // of implicit feedback, only the order has a meaning
      best: found.map((item) => ({
        item,
        reason: mainReason(item),
        follows: order === "pairs" && ranking.places[item] < 0,
        isSure: !(scores[item] < line),
      })),
      order,
      taste: isPersonal ? first(SUITING, (j) => map.mapped[j] === 1 && !rated.has(j)) : [],
    };
  },

  /**
   * Answer why an item has its score, and what is like it, with a `cosine` or by a `score`, and whether cosines tell items
   * apart; `start` is null if a ranking has nothing to start from.
   */
  item({ item, k }) {
    const { start, items, parts } = reasonsOf(item);
    const why = parts.map((part, place) => ({ item: items[place], part }));
    why.sort((one, other) => Math.abs(other.part) - Math.abs(one.part));
    const { ranking } = model;
    const alike = (ranking && together(ranking, item, k)) ?? (model.predicts ? similar(model, item, k) : []);
    const likely = alike.filter(({ cosine, score }) => (cosine ?? score) > 0); // less than nothing is not alike
    return { start, why, similar: likely, tellsApart: likely.length > 0 && likely[0].score === undefined && tellsApart(model, item) };
  },
};

/** Return whether an item says something about others; if none does, all may be shown. */
function isKnown(item) {
  const { ranking, known } = model;
  if (ranking?.items.length) return ranking.places[item] >= 0;
  return !known || !known.includes(1) || known[item] === 1;
}

/** Return principal components of what owned items contribute, for all items: those outside the head are in the middle. */
function principalOfHead({ n, K, items, left }) {
  const { places, width } = principal({ n: items.length, K, V: left }, AXES);
  const all = new Float32Array(n * width);
  items.forEach((item, place) => all.set(places.subarray(place * width, (place + 1) * width), item * width));
  return { places: all, width };
}

/** Return what the score by which an item is ordered starts from, and what each of somebody's items adds. */
function reasonsOf(item) {
  if (model.ranking) return { start: null, items: owner.items, parts: rankingParts(model.ranking, owner, item) ?? [] };
  return { items: person.items, ...contributions(model, person, item) };
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

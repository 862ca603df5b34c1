// Which items come first: the best by score, and the nearest by direction.

const MOST_BY_CHANCE = 0.3; // mean squared cosine of all with one: with three directions alike in strength it is a third

/** Return the positions of the k greatest scores, greatest first; among equals, those that are earlier in `order`. */
export function best(scores, k, allowed = () => true, order = null) {
  const found = []; // ascending, so that the least of the best is at the front
  for (let turn = 0; turn < scores.length; turn++) {
    const j = order ? order[turn] : turn;
    if (found.length === k && !(scores[j] > scores[found[0]])) continue;
    if (!allowed(j)) continue;
    let place = 0;
    while (place < found.length && scores[found[place]] < scores[j]) place++;
    found.splice(place, 0, j);
    if (found.length > k) found.shift();
  }
  return found.reverse();
}

/** Return expected ratings as lists go by them: items of which no more than noise is known come after all others. */
export function listed({ behind }, scores) {
  return behind ? scores.map((score, j) => score - behind[j]) : scores;
}

/** Return the k items whose factors point most nearly the same way as an item's: [{item, cosine}]. */
export function similar(model, item, k) {
  const lengths = lengthsOf(model);
  if (!lengths[item]) return [];
  const cosines = cosinesOf(model, item);
  return best(cosines, k, (j) => j !== item && lengths[j] > 0).map((j) => ({ item: j, cosine: cosines[j] }));
}

/**
 * Return whether cosines with an item tell others apart: with one or two directions that matter, half of a catalogue points
 * the same way, and a cosine of 1 means nothing.
 */
export function tellsApart(model, item) {
  const lengths = lengthsOf(model);
  if (!lengths[item]) return false;
  let [square, count] = [0, 0];
  cosinesOf(model, item).forEach((cosine, j) => {
    if (j === item || !lengths[j]) return;
    square += cosine ** 2;
    count += 1;
  });
  return count > 0 && square / count < MOST_BY_CHANCE;
}

function cosinesOf(model, item) {
  const { n, K, V } = model;
  const [from, to] = leaningsOf(model);
  const lengths = lengthsOf(model);
  const cosines = new Float32Array(n);
  for (let j = 0; j < n; j++) {
    let dot = 0;
    for (let i = 0; i < K; i++) dot += i < from || i >= to ? V[item * K + i] * V[j * K + i] : 0;
    cosines[j] = lengths[j] ? dot / (lengths[item] * lengths[j]) : -Infinity;
  }
  return cosines;
}

/** Return the range of factors that are how popular and how well liked items are: they do not tell what an item is like. */
function leaningsOf({ K, learnt }) {
  const to = K - (learnt?.traits ?? 0);
  return [to - (learnt?.leanings ?? 0), to];
}

function lengthsOf(model) {
  const [from, to] = leaningsOf(model);
  model.lengths ??= Float64Array.from({ length: model.n }, (_, j) => {
    if (model.known && !model.known[j]) return 0; // more noise than anything else
    let square = 0;
    for (let k = 0; k < model.K; k++) square += k < from || k >= to ? model.V[j * model.K + k] ** 2 : 0;
    return Math.sqrt(square);
  });
  return model.lengths;
}

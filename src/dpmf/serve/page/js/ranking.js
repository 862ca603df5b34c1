// Which items come first: the best by score, the nearest by direction, and those that tell most about a taste.

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

/** Return the k items whose factors point most nearly the same way as an item's: [{item, cosine}]. */
export function similar(model, item, k) {
  const { n, K, V } = model;
  const lengths = lengthsOf(model);
  if (!lengths[item]) return [];
  const cosines = new Float32Array(n);
  for (let j = 0; j < n; j++) {
    let dot = 0;
    for (let i = 0; i < K; i++) dot += V[item * K + i] * V[j * K + i];
    cosines[j] = lengths[j] ? dot / (lengths[item] * lengths[j]) : -Infinity;
  }
  return best(cosines, k, (j) => j !== item && lengths[j] > 0).map((j) => ({ item: j, cosine: cosines[j] }));
}

/**
 * Return k items whose ratings would tell most about somebody: the longest vector first, then always the one that is
 * longest across those chosen already.
 */
export function telling(model, k) {
  const { n, K, V } = model;
  const rest = Float32Array.from(V);
  const chosen = [];
  while (chosen.length < Math.min(k, n)) {
    const longest = longestRow(rest, n, K, chosen);
    if (longest === -1) break;
    chosen.push(longest);
    removeDirection(rest, n, K, longest);
  }
  return chosen;
}

function longestRow(rows, n, K, except) {
  let found = -1;
  let most = 1e-12;
  for (let j = 0; j < n; j++) {
    let square = 0;
    for (let k = 0; k < K; k++) square += rows[j * K + k] ** 2;
    if (square > most && !except.includes(j)) [found, most] = [j, square];
  }
  return found;
}

function removeDirection(rows, n, K, which) {
  const direction = Float64Array.from(rows.subarray(which * K, (which + 1) * K));
  const length = Math.hypot(...direction);
  for (let k = 0; k < K; k++) direction[k] /= length;
  for (let j = 0; j < n; j++) {
    let dot = 0;
    for (let k = 0; k < K; k++) dot += rows[j * K + k] * direction[k];
    for (let k = 0; k < K; k++) rows[j * K + k] -= dot * direction[k];
  }
}

function lengthsOf(model) {
  model.lengths ??= Float64Array.from({ length: model.n }, (_, j) => {
    let square = 0;
    for (let k = 0; k < model.K; k++) square += model.V[j * model.K + k] ** 2;
    return Math.sqrt(square);
  });
  return model.lengths;
}

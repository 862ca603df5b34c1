// Which items to ask somebody about first: well known ones that lie far apart.

const FAINT = 1e-6; // a distance that decides among items in the same place

/**
 * Return up to k of the allowed items: the best known one, then always the one whose popularity times its distance from
 * those chosen is greatest. Genres that none of those has count for up to as much again.
 * @param {object} map {places, width}, from `principal`
 * @param {ArrayLike<number>} popularity of all items; only items with more than 0 are chosen
 * @param {Set<string>[]} genres of all items
 */
export function startersOf({ places, width }, popularity, genres, allowed, k) {
  const candidates = [];
  for (let item = 0; item < popularity.length; item++) if (popularity[item] > 0 && allowed(item)) candidates.push(item);
  const distances = candidates.map(() => Infinity);
  const seen = new Set();
  const chosen = [];
  while (chosen.length < Math.min(k, candidates.length)) {
    const place = greatest(candidates, (item, at) => {
      if (distances[at] < 0) return -1; // chosen already
      const distance = chosen.length ? distances[at] + FAINT : 1;
      return popularity[item] * distance * (1 + novelty(genres[item], seen));
    });
    const item = candidates[place];
    chosen.push(item);
    for (const genre of genres[item]) seen.add(genre);
    candidates.forEach((other, at) => (distances[at] = Math.min(distances[at], distance(places, width, item, other))));
    distances[place] = -1;
  }
  return chosen;
}

function novelty(genres, seen) {
  let count = 0;
  for (const genre of genres) count += !seen.has(genre);
  return genres.size ? count / genres.size : 0;
}

function distance(places, width, one, other) {
  let square = 0;
  for (let a = 0; a < width; a++) square += (places[one * width + a] - places[other * width + a]) ** 2;
  return Math.sqrt(square);
}

function greatest(candidates, value) {
  let [found, most] = [-1, -Infinity];
  candidates.forEach((item, at) => {
    const here = value(item, at);
    if (here > most) [found, most] = [at, here];
  });
  return found;
}

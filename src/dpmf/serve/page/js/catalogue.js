// The public list of items: finding them by id, by title and by what somebody types.

const COLOURS = 8; // genres with a colour of their own; the rest share one

/** Return the catalogue of a release. Positions are those of its rows of factors. */
export function makeCatalogue({ ids, titles, genres }) {
  const listed = genres.map((text) => text.split("|").filter(Boolean));
  const byCount = countGenres(listed);
  const coloured = new Map(byCount.slice(0, COLOURS).map((name, place) => [name, place]));
  const byId = new Map();
  ids.forEach((id, position) => {
    if (byId.has(id)) byId.get(id).push(position); // only numbers too long for the browser coincide
    else byId.set(id, [position]);
  });
  const byTitle = new Map();
  titles.forEach((title, position) => byTitle.set(title, byTitle.has(title) ? null : position));
  let folded = null;
  return {
    size: ids.length,
    ids,
    titles,
    genresOf: (position) => listed[position],
    genres: byCount,
    coloured: [...coloured.keys()],
    colourOf: (position) => coloured.get(listed[position][0]) ?? COLOURS,
    /**
     * Return the position of an item by id, or by a title that only one item has if there is no such id; null if there
     * is none, or if the item with this id is called something else: ids of another catalogue may mean other items.
     */
    find(id, title) {
      const found = byId.get(id);
      if (found) return found.find((position) => titles[position] === title) ?? null;
      return byTitle.get(title) ?? null;
    },
    /** Return the positions of items whose titles hold all words, the closest first. */
    search(text, most) {
      folded ??= titles.map(fold);
      return search(folded, listed, fold(text).split(" ").filter(Boolean), most);
    },
  };
}

/** Return text in lower case, without accents, with single spaces. */
export function fold(text) {
  return text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().replace(/\s+/g, " ").trim();
}

function countGenres(listed) {
  const counts = new Map();
  for (const names of listed) for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one) || (one < other ? -1 : 1));
}

function search(folded, listed, words, most) {
  if (words.length === 0) return { found: [], total: 0 };
  const whole = words.join(" ");
  const matches = [];
  for (let position = 0; position < folded.length; position++) {
    const title = folded[position];
    if (words.every((word) => title.includes(word))) matches.push([rank(title, whole, words), position]);
    else if (listed[position].some((genre) => fold(genre) === whole)) matches.push([4, position]);
  }
  matches.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  return { found: matches.slice(0, most).map(([, position]) => position), total: matches.length };
}

/** Return 0 for the title itself, then for one that begins so, has words that begin so, or has it inside. */
function rank(title, whole, words) {
  if (title === whole) return 0;
  if (title.startsWith(whole)) return 1;
  return words.every((word) => title.startsWith(word) || title.includes(` ${word}`)) ? 2 : 3;
}

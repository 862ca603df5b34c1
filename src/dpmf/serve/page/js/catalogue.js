// The public list of items: finding them by id, by title and by what somebody types.

import { makeSearch } from "./search.js";

const COLOURS = 8; // genres with a colour of their own; the rest share one

/** Return the catalogue of a release. Positions are those of its rows of factors. */
export function makeCatalogue({ ids, titles, genres }) {
  const listed = genres.map((text) => text.split("|").filter(Boolean));
  const byCount = countGenres(listed);
  const coloured = new Map(byCount.slice(0, COLOURS).map((name, place) => [name, place]));
  const telling = listed.map((names) => Math.max(-1, ...names.map((name) => coloured.get(name) ?? -1)));
  const byId = new Map();
  ids.forEach((id, position) => {
    if (byId.has(id)) byId.get(id).push(position); // only numbers too long for the browser coincide
    else byId.set(id, [position]);
  });
  const byTitle = new Map();
  titles.forEach((title, position) => byTitle.set(title, byTitle.has(title) ? null : position));
  let search = null;
  return {
    size: ids.length,
    ids,
    titles,
    genresOf: (position) => listed[position],
    genres: byCount,
    coloured: [...coloured.keys()],
    /** Return the colour of an item: that of its rarest genre that has one, which says most about it. */
    colourOf: (position) => (telling[position] === -1 ? COLOURS : telling[position]),
    /**
     * Return the position of an item by id, or by a title that only one item has if there is no such id; null if there
     * is none, or if the item with this id is called something else: ids of another catalogue may mean other items.
     */
    find(id, title) {
      const found = byId.get(id);
      if (found) return found.find((position) => titles[position] === title) ?? null;
      return byTitle.get(title) ?? null;
    },
    /** Return {found, total, how}: the positions of items that are called something like this, the closest first. */
    search(text, most) {
      search ??= makeSearch(titles, listed);
      return search(text, most);
    },
  };
}

function countGenres(listed) {
  const counts = new Map();
  for (const names of listed) for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one) || (one < other ? -1 : 1));
}

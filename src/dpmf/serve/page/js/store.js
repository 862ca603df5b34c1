// Somebody's ratings. They live in this browser's local storage, and nowhere else.

import { Unusable } from "./errors.js";

const FORMAT = "dpmf-ratings";
const MOST_BYTES = 5_000_000;
const MOST_RATINGS = 100_000;

/** Return where ratings are kept: several sites may share an origin, so the folder of the page is part of the name. */
export function storageName(pathname) {
  return `${FORMAT}:${pathname.replace(/[^/]*$/, "")}`;
}

/** Return the browser's storage, or null where it is switched off or full. */
export function openStorage() {
  try {
    const storage = window.localStorage;
    storage.setItem(`${FORMAT}:probe`, "");
    storage.removeItem(`${FORMAT}:probe`);
    return storage;
  } catch {
    return null;
  }
}

/**
 * Return the ratings of this browser. An entry is {item, title, rating, position}; the position is null for an item
 * that is not in the catalogue, which is kept and not used.
 */
export function makeStore({ storage, name, catalogue, scale, implicit }) {
  let entries = read(storage?.getItem(name) ?? null);
  let isKept = storage !== null;
  const listeners = new Set();

  function read(text) {
    try {
      return text === null ? [] : parse(text, catalogue, scale, implicit).entries;
    } catch {
      return []; // not ours to complain about: nobody but this page should write there
    }
  }

  function changed() {
    if (storage) {
      try {
        if (entries.length) storage.setItem(name, store.text());
        else storage.removeItem(name);
        isKept = true;
      } catch {
        isKept = false; // full: the ratings are here until the page is closed
      }
    }
    for (const listener of listeners) listener();
  }

  const store = {
    get isKept() {
      return isKept;
    },
    entries: () => entries,
    used: () => entries.filter((entry) => entry.position !== null),
    get: (position) => entries.find((entry) => entry.position === position)?.rating ?? null,
    onChange: (listener) => listeners.add(listener),
    set(position, rating) {
      const known = entries.find((entry) => entry.position === position);
      if (known) known.rating = rating;
      else entries.push({ item: catalogue.ids[position], title: catalogue.titles[position], rating, position });
      changed();
    },
    remove(position) {
      entries = entries.filter((entry) => entry.position !== position);
      changed();
    },
    erase() {
      entries = [];
      changed();
    },
    /** Return all ratings as the text of a file. */
    text() {
      const ratings = entries.map(({ item, title, rating }) => (implicit ? { item, title } : { item, title, rating }));
      return `${JSON.stringify({ format: FORMAT, version: 1, ratings }, null, 1)}\n`;
    },
    /** Add what such a file holds; the file wins where both rate an item. Return how many were taken and left out. */
    take(text) {
      const { entries: taken, refused } = parse(text, catalogue, scale, implicit);
      const keys = new Set(taken.map(keyOf));
      entries = [...entries.filter((entry) => !keys.has(keyOf(entry))), ...taken];
      changed();
      return { taken: taken.length, unknown: taken.filter((entry) => entry.position === null).length, refused };
    },
    /** Take over what another tab wrote. */
    reread() {
      entries = read(storage?.getItem(name) ?? null);
      for (const listener of listeners) listener();
    },
  };
  return store;
}

const keyOf = ({ item, title, position }) => position ?? `${typeof item}:${item}:${title}`;

function parse(text, catalogue, scale, implicit) {
  if (text.length > MOST_BYTES) throw new Unusable("The file is too large to be a list of ratings.");
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Unusable("The file is not JSON: choose one that this page exported.");
  }
  if (content?.format !== FORMAT || !Array.isArray(content.ratings)) {
    throw new Unusable("The file holds no ratings: choose one that this page exported.");
  }
  if (content.version !== 1) throw new Unusable("The file comes from a newer page than this one.");
  if (content.ratings.length > MOST_RATINGS) throw new Unusable("The file holds too many ratings.");
  const entries = new Map();
  let refused = 0;
  for (const one of content.ratings) {
    const entry = entryOf(one, catalogue, scale, implicit);
    if (entry) entries.set(keyOf(entry), entry);
    else refused++;
  }
  return { entries: [...entries.values()], refused };
}

function entryOf(one, catalogue, scale, implicit) {
  const { item, title, rating } = one ?? {};
  const named = typeof item === "string" || typeof item === "number";
  if (!named || typeof title !== "string") return null;
  if (!implicit && !(typeof rating === "number" && scale.lo <= rating && rating <= scale.hi)) return null;
  return { item, title, rating: implicit ? 1 : rating, position: catalogue.find(item, title) };
}

// Somebody's ratings. They live in this browser's local storage, and nowhere else.

import { Unusable } from "./errors.js";

const FORMAT = "dpmf-ratings";
const MOST_BYTES = 5_000_000;
const MOST_RATINGS = 100_000;

/**
 * Return where ratings are kept: several sites may share an origin, so the folder of the page is part of the name, and
 * another release may take the place of this one, so what kind of ratings they are is, too.
 */
export function storageName(pathname, { feedback, lo, hi }) {
  return `${oldName(pathname)}:${feedback}:${lo}-${hi}`;
}

/** Return where older pages kept them, whatever kind they were of. */
export const oldName = (pathname) => `${FORMAT}:${pathname.replace(/[^/]*$/, "")}`;

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

/** Take ratings over, once, from where older pages kept them: they are moved if they fit, and else they stay there. */
export function migrate(storage, from, to, reader) {
  try {
    const text = storage?.getItem(from) ?? null;
    if (text === null || storage.getItem(to) !== null || !reader.fits(text)) return;
    storage.setItem(to, text);
    storage.removeItem(from);
  } catch {
    // unreadable, or no room: it stays where it is
  }
}

/**
 * Return the ratings of this browser. An entry is {item, title, rating, position}. One that cannot be used, because its
 * item is not in the catalogue or its rating not on the scale, is {kept, position: null}, and stays as it was.
 */
export function makeStore({ storage, name, site, reader, catalogue }) {
  let entries = new Map(); // by key, in the order in which they came
  let used = null;
  let isKept = storage !== null;
  let unreadable = null; // what was there and is not to be lost
  const listeners = new Set();

  function open() {
    const text = storage?.getItem(name) ?? null;
    used = null;
    unreadable = null;
    try {
      entries = byKey(text === null ? [] : reader.read(text).entries);
    } catch {
      entries = new Map();
      unreadable = text;
    }
  }

  function save() {
    if (unreadable !== null) {
      setAside(storage, `${name}:unreadable`, unreadable);
      unreadable = null;
    }
    if (entries.size) storage.setItem(name, store.text());
    else storage.removeItem(name);
  }

  function changed() {
    used = null;
    if (storage) {
      try {
        save();
        isKept = true;
      } catch {
        isKept = false; // full: the ratings are here until the page is closed
      }
    }
    for (const listener of listeners) listener();
  }

  const store = {
    name,
    get isKept() {
      return isKept;
    },
    get size() {
      return entries.size;
    },
    /** Whether there is nothing to erase: no ratings here, nor of another kind from another release at this address. */
    get isEmpty() {
      return entries.size === 0 && namesOf(storage, site).length === 0;
    },
    used: () => (used ??= [...entries.values()].filter((entry) => entry.position !== null)),
    get: (position) => entries.get(position)?.rating ?? null,
    onChange: (listener) => listeners.add(listener),
    set(position, rating) {
      const known = entries.get(position);
      if (known) known.rating = rating;
      else entries.set(position, { item: catalogue.ids[position], title: catalogue.titles[position], rating, position });
      changed();
    },
    remove(position) {
      entries.delete(position);
      changed();
    },
    /** Forget all that was entered at this address: what is not used, of another kind or unreadable, too. */
    erase() {
      entries = new Map();
      unreadable = null;
      for (const one of namesOf(storage, site)) storage.removeItem(one);
      changed();
    },
    /** Return all ratings as the text of a file. */
    text() {
      return reader.write([...entries.values()]);
    },
    /** Add what such a file holds; the file wins where both rate an item. Return how many were taken and left out. */
    take(text) {
      const { entries: found, refused } = reader.read(text);
      const taken = found.filter((entry) => entry.isRating);
      for (const [key, entry] of byKey(taken)) {
        entries.delete(key);
        entries.set(key, entry);
      }
      changed();
      return { taken: taken.length, unknown: taken.filter((entry) => entry.position === null).length, refused };
    },
    /** Take over what another tab wrote. */
    reread() {
      open();
      for (const listener of listeners) listener();
    },
  };
  open();
  return store;
}

const byKey = (entries) => new Map(entries.map((entry) => [keyOf(entry), entry]));

function keyOf({ kept, isRating, position }) {
  if (position !== null) return position;
  return isRating ? `${typeof kept.item}:${kept.item}:${kept.title}` : JSON.stringify(kept);
}

/** Return all names under which ratings of a site are kept. */
function namesOf(storage, site) {
  const isOurs = (name) => name === site || (name.startsWith(`${site}:`) && !name.slice(site.length).includes("/"));
  return storage ? Object.keys(storage).filter(isOurs) : [];
}

/** Keep a text under a name, or under one with a number if the name is taken by another text. */
function setAside(storage, name, text) {
  for (let number = 1; ; number++) {
    const free = number === 1 ? name : `${name}:${number}`;
    const there = storage.getItem(free);
    if (there === null) storage.setItem(free, text);
    if (there === null || there === text) return;
  }
}

/** Return {read, fits, write}: between the text of a file and entries that this catalogue and scale give a meaning. */
export function makeReader({ catalogue, scale, implicit }) {
  const isOnScale = (rating) => typeof rating === "number" && scale.lo <= rating && rating <= scale.hi;

  /** Return an entry; one that cannot be used is kept as it is. */
  function entryOf(one) {
    const { item, title, rating } = one ?? {};
    const isNamed = (typeof item === "string" || typeof item === "number") && typeof title === "string";
    const isRating = isNamed && (implicit || isOnScale(rating));
    const position = isRating ? catalogue.find(item, title) : null;
    if (position === null) return { kept: one, isRating, position };
    return { item, title, rating: implicit ? 1 : rating, isRating, position };
  }

  function read(text) {
    const entries = ratingsIn(text).map(entryOf);
    return { entries: [...byKey(entries).values()], refused: entries.filter((entry) => !entry.isRating).length };
  }

  /** Return whether all that a text holds is of this kind, and some of it of this catalogue. */
  function fits(text) {
    const isOfThisKind = (one) => (implicit ? one?.rating === undefined : isOnScale(one?.rating));
    return ratingsIn(text).every(isOfThisKind) && read(text).entries.some((entry) => entry.position !== null);
  }

  function write(entries) {
    const ratings = entries.map(({ item, title, rating, kept, position }) =>
      position === null ? kept : implicit ? { item, title } : { item, title, rating });
    return `${JSON.stringify({ format: FORMAT, version: 1, ratings }, null, 1)}\n`;
  }
  return { read, fits, write };
}

function ratingsIn(text) {
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
  return content.ratings;
}

// Finding items by what somebody types: words, their beginnings, numerals, initials, and words with typing errors.

const LEAST_INITIALS = 3; // letters
const LEAST_JOINED = 4; // letters of a word that may have spaces in the title
const NUMBERS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const ROMAN = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi"];
const ARTICLES = new Set(["the", "a", "an"]);
const PARTLY = 0.75; // of what the best title has of the words, to be shown beside it

/** Return text in lower case, without accents and apostrophes, with single spaces. */
export function fold(text) {
  return text.normalize("NFD").replace(/[\p{M}'’]/gu, "").toLowerCase().replace(/\s+/g, " ").trim();
}

const wordsOf = (folded) => folded.split(/[^\p{L}\p{N}]+/u).filter(Boolean);

/**
 * Return what a typed word may be in a title: 4 is iv or four, too. A letter is a numeral beside digits only: "I" is not
 * "one".
 */
function readingsOf(word) {
  const value = [Number.parseInt(word, 10), NUMBERS.indexOf(word), ROMAN.indexOf(word)].find((place) => place > -1);
  if (value === undefined || (/^\d/.test(word) && String(value) !== word)) return new Set([word]);
  const spelt = [String(value), NUMBERS[value], ROMAN[value]].filter(Boolean);
  const isLetter = (one) => one.length === 1 && !isNumber(one);
  return new Set([word, ...spelt.filter((one) => isNumber(word) || isNumber(one) || !(isLetter(word) || isLetter(one)))]);
}

const isNumber = (word) => /^\d+$/.test(word);

/**
 * Return a function (text, most) → {found, total, how}: positions, the closest first, and how they match:
 * "all" the words, all but for "typing" errors, "some" of them, or "none".
 * @param {string[]} titles
 * @param {string[][]} genres of every title
 */
export function makeSearch(titles, genres) {
  const entries = titles.map((title, position) => entryOf(title, genres[position]));
  const counts = new Map(); // word → titles that have it
  for (const { words } of entries) for (const word of new Set(words)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return (text, most) => {
    const whole = fold(text);
    if (!whole) return { found: [], total: 0, how: "none" };
    const words = wordsOf(whole);
    const typed = (words.length ? words : [whole]).map((word) => ({ word, readings: readingsOf(word) })); // also "???"
    for (const [how, scorer] of [
      ["all", () => (entry) => rankOf(entry, whole, typed)],
      ["typing", () => typingCost(typed, counts)],
      ["some", () => partlyCost(typed, counts, entries)],
    ]) {
      const score = scorer();
      const matches = [];
      entries.forEach((entry, position) => {
        const cost = score(entry);
        if (cost < Infinity) matches.push([cost, position]);
      });
      if (matches.length === 0) continue;
      matches.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
      return { found: matches.slice(0, most).map(([, position]) => position), total: matches.length, how };
    }
    return { found: [], total: 0, how: "none" };
  };
}

function entryOf(title, genres) {
  const text = fold(title);
  const words = wordsOf(text);
  const named = ARTICLES.has(words[0]) ? words.slice(1) : words;
  return {
    text, words, genres: genres.map(fold), joined: words.join(""),
    initials: named.map((word) => word[0]).join(""),
  };
}

/** Return 0 for the title itself, 1 for one that begins so, then 2 to 6 by the word that matches worst. */
function rankOf(entry, whole, typed) {
  if (entry.text === whole) return 0;
  let worst = 0;
  for (const one of typed) {
    worst = Math.max(worst, wordRank(entry, one));
    if (worst === Infinity) break;
  }
  if (worst < Infinity) return entry.text.startsWith(whole) ? 1 : 2 + worst;
  return entry.genres.includes(whole) ? 6 : Infinity;
}

/** Return 0 for a word of the title, 1 for a beginning of one, 2 for initials and joined words, 3 for text inside. */
function wordRank({ text, words, joined, initials }, { word, readings }) {
  if (words.some((one) => readings.has(one))) return 0;
  if (words.some((one) => one.startsWith(word))) return 1;
  if (word.length >= LEAST_INITIALS && initials.startsWith(word)) return 2;
  if (joined.startsWith(word) || (word.length >= LEAST_JOINED && joined.includes(word))) return 2;
  return !isNumber(word) && text.includes(word) ? 3 : Infinity; // a 4 is not meant for 1984
}

/** Return what it costs to read a title's words for those typed: the errors, over all words; Infinity for too many. */
function typingCost(typed, counts) {
  const near = typed.map(({ word }) => nearWords(word, counts.keys()));
  return (entry) => {
    let total = 0;
    for (let place = 0; place < typed.length && total < Infinity; place++) {
      if (wordRank(entry, typed[place]) < Infinity) continue;
      let least = Infinity;
      for (const one of entry.words) least = Math.min(least, near[place].get(one) ?? Infinity);
      total += least;
    }
    return total;
  };
}

/** Return how many errors one may make in a word of this length. */
const mostErrors = (length) => (length < 4 ? 0 : length < 8 ? 1 : 2);

/** Return those words that somebody may have meant: word → errors, and half of one more if only its beginning was typed. */
function nearWords(typed, words) {
  const most = mostErrors(typed.length);
  const found = new Map();
  if (most === 0) return found;
  for (const word of words) {
    if (word.length < typed.length - most) continue;
    const [whole, beginning] = errors(typed, word);
    if (whole <= most) found.set(word, whole);
    else if (beginning <= most && typed.length > 4) found.set(word, beginning + 0.5);
  }
  return found;
}

/**
 * Return how many letters were left out, put in, confused or swapped with the next one: in a word, and in that beginning
 * of it that comes closest.
 */
function errors(typed, word) {
  let before = null;
  let last = Array.from({ length: word.length + 1 }, (_, column) => column);
  for (let row = 1; row <= typed.length; row++) {
    const next = [row];
    for (let column = 1; column <= word.length; column++) {
      const same = typed[row - 1] === word[column - 1];
      let least = Math.min(last[column] + 1, next[column - 1] + 1, last[column - 1] + (same ? 0 : 1));
      const swapped = row > 1 && column > 1 && typed[row - 1] === word[column - 2] && typed[row - 2] === word[column - 1];
      if (swapped) least = Math.min(least, before[column - 2] + 1);
      next.push(least);
    }
    [before, last] = [last, next];
  }
  return [last[word.length], Math.min(...last)];
}

/** Return a cost by the words that a title has, rare ones counting most; Infinity for titles with much less than the best. */
function partlyCost(typed, counts, entries) {
  if (typed.length === 1) return () => Infinity;
  const near = typed.map(({ word }) => nearWords(word, counts.keys()));
  const has = ({ words }, { word, readings }, place) =>
    words.some((one) => readings.has(one) || near[place].has(one) || (word.length > 2 && one.startsWith(word)));
  const held = entries.map((entry) => typed.map((one, place) => has(entry, one, place)));
  const weights = typed.map((_, place) => {
    const known = held.reduce((count, row) => count + row[place], 0);
    return known ? Math.log(1 + entries.length / known) : 0;
  });
  const sums = new Map(held.map((row, position) => [entries[position], row.reduce((sum, is, place) => sum + (is ? weights[place] : 0), 0)]));
  const most = Math.max(...new Set(sums.values()));
  return (entry) => (most > 0 && sums.get(entry) >= PARTLY * most ? -sums.get(entry) : Infinity);
}

// One item: its expected rating, why, and what is like it.

import { emblem } from "../emblem.js";
import { genreTags } from "../card.js";
import { $, h } from "../dom.js";
import { ratingControl } from "../rating.js";

const SIMILAR = 6;
const REASONS = 7;

/** Set the dialog up, and return {open, render}. */
export function makeItemView(app) {
  const dialog = $("item-dialog");
  const digits = app.ranking ? 3 : app.scale.digits; // of the parts of a score
  let position = null;
  let control = null;
  let before = []; // items to go back to

  async function show() {
    const item = position;
    const { start, why, similar, tellsApart } = await app.engine.ask("item", { item, k: SIMILAR });
    if (item !== position) return;
    const parts = why.filter((one) => app.store.get(one.item) !== null);
    $("item-score").textContent = app.scores ? app.scale.show(app.scores[item]) : "";
    $("item-score-words").textContent = !app.scores ? "" : app.scale.implicit ? "score" : `expected, of ${app.scale.showRating(app.scale.hi)}`;
    $("item-why").replaceChildren(...reasons(item, start, parts));
    $("item-why-words").textContent = whyWords(app, parts);
    const most = similar[0]?.score; // of a ranking
    $("item-similar").replaceChildren(...similar.map(({ item, cosine, score }) =>
      similarRow(item, most !== undefined ? score / most : tellsApart ? cosine : null, most === undefined)));
    $("item-similar-words").textContent = similarWords(most !== undefined, tellsApart);
    $("item-similar-words").hidden = similar.length === 0;
    $("no-similar").hidden = similar.length > 0;
  }

  function reasons(item, start, parts) {
    const named = parts.slice(0, REASONS);
    const rest = parts.slice(REASONS).reduce((total, { part }) => total + part, 0);
    const most = Math.max(...named.map(({ part }) => Math.abs(part)), Math.abs(rest), 1e-9);
    const rows = [];
    if (start !== null) rows.push(h("li.start", {}, h("span.what", {}, "Everybody, on the whole"), h("span.value", {}, start.toFixed(digits))));
    for (const { item: rated, part } of named) rows.push(reasonRow(ratedWords(rated, item), part, most));
    if (parts.length > REASONS) rows.push(reasonRow([`${parts.length - REASONS} others together`], rest, most));
    if (parts.length) {
      const total = (start ?? 0) + parts.reduce((sum, { part }) => sum + part, 0);
      rows.push(h("li.total", {}, h("span.what", {}, "Together"), h("span.value", {}, total.toFixed(digits))));
    }
    return rows;
  }

  function ratedWords(rated, item) {
    const words = [h("b", {}, rated === item ? "This one itself" : app.catalogue.titles[rated])];
    if (!app.scale.implicit) words.push(h("span.gave", {}, `you gave ${app.scale.showRating(app.store.get(rated))}`));
    return words;
  }

  function reasonRow(words, part, most) {
    const bar = h(`span.push.${part < 0 ? "down" : "up"}`, { "aria-hidden": "true" });
    bar.style.setProperty("--length", Math.abs(part) / most);
    return h("li", {}, h("span.what", {}, ...words), h("span.track", { "aria-hidden": "true" }, bar), h("span.value", {}, signed(part, digits)));
  }

  /** Return an item with how alike it is, a share; null if that cannot be told. */
  function similarRow(item, share, inWords) {
    const degree = h("span.degree", {}, share !== null && inWords ? `${Math.round(100 * share)} % alike` : null);
    degree.style.setProperty("--share", share ?? 0);
    return h("li", {},
      h("button", { type: "button", onclick: () => go(item) }, emblem(app, item),
        h("span.what", {}, app.catalogue.titles[item]), share === null ? null : degree));
  }

  function fill() {
    control = ratingControl(app, position);
    $("item-title").textContent = app.catalogue.titles[position];
    $("item-emblem").replaceChildren(emblem(app, position));
    $("item-genres").replaceChildren(genreTags(app, position));
    $("item-rating").replaceChildren(control.element);
    $("item-rating-words").textContent = app.scale.implicit ? "Do you have it?" : "Your rating";
    $("item-back").hidden = before.length === 0;
    $("item-map").hidden = !app.map.mapped[position];
    show();
  }

  function go(item) {
    before.push(position);
    position = item;
    fill();
    dialog.scrollTop = 0;
    $("item-title").focus();
  }

  function open(item) {
    before = [];
    position = item;
    fill();
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    $("item-title").focus();
  }

  $("item-back").addEventListener("click", () => {
    position = before.pop();
    fill();
    $("item-title").focus();
  });
  $("item-close").addEventListener("click", () => dialog.close());
  $("item-map").addEventListener("click", () => {
    const item = position;
    dialog.close();
    app.showOnMap(item);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // the backdrop
  });
  dialog.addEventListener("close", () => {
    position = null;
  });
  return {
    open,
    render: () => {
      if (position === null) return;
      control.sync();
      show();
    },
  };
}

/** Return what the sum is that is shown. */
function whyWords({ ranking, store }, parts) {
  if (!ranking) {
    return "The score is a sum: how people rate this title on the whole, plus what each thing that you entered adds or takes away.";
  }
  if (parts.length) return "Its place in the list follows from this sum: what each thing that you like adds or takes away.";
  return store.used().length ? "Its place in the list follows from its popularity: nothing links it to what you like." : "Its place in the list follows from its popularity.";
}

/** Return what the degrees beside similar items mean. */
function similarWords(byRanking, tellsApart) {
  if (byRanking) return "What people who like this one tend to like. The longer the bar, the stronger the link.";
  if (tellsApart) return "At 100 %, the same people would like and dislike both, as far as this release can tell.";
  return "Liked by much the same people. This release knows too little about tastes to say how alike they are.";
}

function signed(value, digits) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}

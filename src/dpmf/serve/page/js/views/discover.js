// "For you": search, what to rate first, and recommendations.

import { announce } from "../announce.js";
import { makeCard } from "../card.js";
import { $, arrange, h } from "../dom.js";
import { makeStarters } from "./starters.js";

const MORE = 12;
const FEW = 5; // ratings below which it is worth saying that more would help
const MOST_FOUND = 48;
const SUGGESTED = 6; // where nothing is found
const LESS_SURE = "From here on, titles hardly stand out from the noise that protects people. Rate more to see further.";
const NOT_SURE = "None of these stands out from the noise that protects people. Rate more to see further.";

/** Set the view up, and return {render}. */
export function makeDiscover(app) {
  const cards = new Map(); // position → card
  const list = $("recommendations");
  const search = $("search");
  const starters = makeStarters(app);
  const line = h("li.line", {});
  let said = "";
  let shown = [];

  function card(position, one) {
    if (!cards.has(position)) cards.set(position, makeCard(app, position));
    const found = cards.get(position);
    found.update(one);
    return found.element;
  }

  function render() {
    const words = search.value.trim();
    const { title, note, items } = words ? found(words) : recommended();
    $("list-title").textContent = title;
    $("list-note").textContent = note;
    shown = withFocused(items);
    const from = shown.findIndex((one) => one.isSure === false); // the first that does not stand out from noise
    const elements = shown.map((one) => card(one.item, one));
    if (from !== -1) elements.splice(from, 0, line);
    line.replaceChildren(from > 0 ? LESS_SURE : NOT_SURE);
    arrange(list, elements);
    $("more").hidden = Boolean(words) || app.best.length < app.wanted;
    $("genre-filter").hidden = Boolean(words) || app.catalogue.genres.length < 2;
    $("hero").classList.toggle("small", app.store.used().length > 0);
    $("clear-search").hidden = !words;
    starters.render(!words);
    const change = words ? `${title}. ${note}` : first(items);
    if (change && change !== said) announce(change);
    said = change;
    $("nothing").hidden = items.length > 0;
  }

  /** Keep the card that somebody is using where it is, even if it has just left the list by being rated. */
  function withFocused(items) {
    const focused = document.activeElement?.closest?.("#recommendations > .card");
    if (!focused) return items;
    const position = Number(focused.dataset.item);
    const place = shown.findIndex((one) => one.item === position);
    if (place === -1) return items;
    const rest = items.filter((one) => one.item !== position);
    const own = items.find((one) => one.item === position) ?? { item: position, reason: null, follows: false };
    return [...rest.slice(0, place), own, ...rest.slice(place)];
  }

  function recommended() {
    const count = app.store.used().length;
    const plural = count === 1 ? "" : "s";
    const source = app.scale.implicit ? `From the ${count} item${plural} that you have.` : `From your ${count} rating${plural}.`;
    const isPersonal = app.order === "pairs" || app.order === "factors";
    const why = isPersonal ? (count < FEW ? `${source} A few more will sharpen them.` : source) : sameForAll(app, count);
    const note = [why, ORDERS[app.order], numberWords(app)].filter(Boolean).join(" ");
    return { title: isPersonal ? "For you" : TITLES[app.order], note, items: app.best };
  }

  function found(words) {
    const { found: items, total, how } = app.catalogue.search(words, MOST_FOUND);
    const suggested = how === "none" ? app.starters.slice(0, SUGGESTED) : items;
    const note = foundWords({ how, total, shown: items.length }, suggested.length);
    return { title: `“${words}”`, note, items: suggested.map((item) => ({ item, reason: null, follows: false })) };
  }

  function first(items) {
    if (items.length === 0 || app.store.used().length === 0) return "";
    return `Recommendations updated. First: ${app.catalogue.titles[items[0].item]}.`;
  }

  search.addEventListener("input", render);
  $("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("button.title")?.focus();
  });
  $("clear-search").addEventListener("click", () => {
    search.value = "";
    search.focus();
    render();
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && search.value) {
      event.preventDefault();
      search.value = "";
      render();
    }
  });
  $("more").addEventListener("click", () => app.want(app.wanted + MORE));
  $("genre").append(...app.catalogue.genres.map((name) => h("option", { value: name }, name)));
  $("genre").addEventListener("change", (event) => app.only(event.target.value));
  // A card that was only kept for its focus goes when the focus does.
  for (const container of [list, $("starter-list")]) {
    container.addEventListener("focusout", () => setTimeout(render));
  }
  return { render };
}

/** Return how what was found matches what was typed; or that nothing does, and what is shown in place of it. */
function foundWords({ how, total, shown }, suggested) {
  const nothing = "Nothing in the catalogue is called that.";
  const count =
    total > shown ? `${total.toLocaleString("en")} matches, the closest ${shown} shown.` :
    total === 1 ? "1 match." : `${total} matches.`;
  return {
    all: count,
    typing: `${nothing} Did you mean ${total === 1 ? "this" : "one of these"}?`,
    some: `Nothing has all of these words. ${total === 1 ? "This has" : "These have"} some of them.`,
    none: suggested ? `${nothing} Check the spelling, or try one of these.` : `${nothing} Check the spelling.`,
  }[how];
}

const TITLES = { ratings: "Liked by most", popularity: "Most popular", nothing: "In no particular order" };
const ORDERS = { pairs: "Ordered by what goes with the titles you like." };

/** Return why a list is the same for everybody. */
function sameForAll({ ranking, scale, order }, count) {
  if (order === "nothing") return "Too little is known about these titles to order them.";
  if (count === 0) return "Before anything is known about you.";
  if (!ranking || ranking.n_items === 0) return "The same for everybody: too little is known about how tastes differ.";
  if (scale.implicit) return "Too little is known about what you have.";
  return `Ratings from ${scale.showRating(ranking.threshold)} on count, of titles that enough is known about: yours do not yet.`;
}

/** Return what the number beside a title is; it orders the list unless something else does. */
function numberWords({ scores, scale, order }) {
  if (!scores || order === "nothing") return "";
  if (scale.implicit) return order === "factors" ? "Ordered by the number: how well a title suits you." : "";
  const orders = order === "factors" || order === "ratings";
  return orders ? "Ordered by your expected rating, the number." : "The number is your expected rating.";
}

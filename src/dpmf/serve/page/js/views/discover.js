// "For you": search, what to rate first, and recommendations.

import { announce } from "../announce.js";
import { makeCard } from "../card.js";
import { $, arrange, h } from "../dom.js";

const MORE = 12;
const FEW = 5; // ratings below which it is worth saying that more would help
const MOST_FOUND = 48;

/** Set the view up, and return {render}. */
export function makeDiscover(app) {
  const cards = new Map(); // position → card
  const list = $("recommendations");
  const search = $("search");
  let said = "";
  let shown = [];

  function card(position, reason) {
    if (!cards.has(position)) cards.set(position, makeCard(app, position));
    const found = cards.get(position);
    found.update(reason);
    return found.element;
  }

  function render() {
    const words = search.value.trim();
    const { title, note, items } = words ? found(words) : recommended();
    $("list-title").textContent = title;
    $("list-note").textContent = note;
    shown = withFocused(items);
    arrange(list, shown.map(({ item, reason }) => card(item, reason)));
    $("more").hidden = Boolean(words) || app.best.length < app.wanted;
    $("genre-filter").hidden = Boolean(words) || app.catalogue.genres.length < 2;
    $("hero").classList.toggle("small", app.store.used().length > 0);
    $("clear-search").hidden = !words;
    renderStarters(words);
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
    const own = items.find((one) => one.item === position) ?? { item: position, reason: null };
    return [...rest.slice(0, place), own, ...rest.slice(place)];
  }

  function recommended() {
    const count = app.store.used().length;
    const plural = count === 1 ? "" : "s";
    const source = app.scale.implicit ? `From the ${count} item${plural} that you have.` : `From your ${count} rating${plural}.`;
    if (app.ranking && app.counted === 0) return { title: "Most popular", note: popularWords(app, count), items: app.best };
    if (count === 0) return { title: "Liked by most", note: "Before anything is known about you.", items: app.best };
    const note = count < FEW ? `${source} A few more will sharpen them.` : source;
    return { title: "For you", note: app.ranking ? `${note} ${rankingWords(app)}` : note, items: app.best };
  }

  function found(words) {
    const { found: items, total } = app.catalogue.search(words, MOST_FOUND);
    const note =
      total === 0 ? "Nothing in the catalogue is called that." :
      total > items.length ? `${total.toLocaleString("en")} matches, the closest ${items.length} shown.` :
      total === 1 ? "1 match." : `${total} matches.`;
    return { title: `“${words}”`, note, items: items.map((item) => ({ item, reason: null })) };
  }

  function first(items) {
    if (items.length === 0 || app.store.used().length === 0) return "";
    return `Recommendations updated. First: ${app.catalogue.titles[items[0].item]}.`;
  }

  function renderStarters(words) {
    const section = $("starters");
    const open = !words && (app.store.used().length < FEW || section.contains(document.activeElement));
    section.hidden = !open;
    if (!open) return;
    const candidates = app.starters.filter((item) => app.store.get(item) === null || usedNow(item)).slice(0, 6);
    arrange($("starter-list"), candidates.map((item) => starterCard(item)));
  }

  const starters = new Map();
  function starterCard(position) {
    if (!starters.has(position)) starters.set(position, makeCard(app, position));
    const one = starters.get(position);
    one.update(null);
    return one.element;
  }
  const usedNow = (item) => starters.get(item)?.element.contains(document.activeElement) ?? false;

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

/** Return what a list by popularity is due to. */
function popularWords({ ranking, scale }, count) {
  if (count === 0) return "Before anything is known about you.";
  if (ranking.n_items === 0) return "The same for everybody: too little is known about what goes together.";
  if (scale.implicit) return "Too little is known about what you have.";
  return `Ratings from ${scale.showRating(ranking.threshold)} on count, of titles that enough is known about: yours do not yet.`;
}

/** Return what the order means, and what the numbers mean. */
function rankingWords({ scores }) {
  const order = "Ordered by what goes with the things you like";
  return scores ? `${order}; the number is the rating to expect.` : `${order}.`;
}

// "Start with these": what to ask somebody about first, until they have said enough.

import { makeCard } from "../card.js";
import { $, arrange, h } from "../dom.js";

const SHOWN = 12;
const ENOUGH = 5; // ratings

/** Set the section up, and return {render}; `render(false)` hides it, for a search say. */
export function makeStarters(app) {
  const section = $("starters");
  const list = $("starter-list");
  const cards = new Map(); // position → card
  const passed = new Set(); // not known to somebody, or not looked for
  const unknown = app.scale.implicit ? "Not mine" : "Don’t know it";
  let open = true;

  function card(position) {
    if (!cards.has(position)) cards.set(position, makeCard(app, position, passButton(position)));
    const found = cards.get(position);
    found.update({ reason: null, follows: false });
    return found.element;
  }

  const passButton = (position) =>
    h("button.pass", { type: "button", "aria-label": `${unknown}: ${app.catalogue.titles[position]}`, onclick: () => pass(position) }, unknown);

  /** Put another in the place of one, and the focus on what has come there. */
  function pass(position) {
    const place = [...list.children].indexOf(cards.get(position).element);
    passed.add(position);
    document.activeElement?.blur(); // a card that has the focus would stay
    render(open);
    const next = list.children[Math.min(place, list.children.length - 1)];
    (next?.querySelector(".pass") ?? $("search")).focus();
  }

  const inUse = (item) => cards.get(item)?.element.contains(document.activeElement) ?? false;
  const left = () => app.starters.filter((item) => inUse(item) || (!passed.has(item) && app.store.get(item) === null));

  function render(wanted) {
    open = wanted;
    const items = left();
    const isShown = open && (items.length > 0 || passed.size > 0) && (app.store.used().length < ENOUGH || section.contains(document.activeElement));
    section.hidden = !isShown;
    if (!isShown) return;
    arrange(list, items.slice(0, SHOWN).map(card));
    $("starters-more").textContent = items.length > SHOWN ? "More titles" : "Show those passed over again";
    $("starters-more").hidden = items.length <= SHOWN && passed.size === 0;
    $("starters-none").hidden = items.length > 0;
  }

  $("starters-more").addEventListener("click", () => {
    const items = left();
    if (items.length > SHOWN) for (const item of items.slice(0, SHOWN)) passed.add(item);
    else passed.clear();
    render(open);
    list.querySelector("button.title")?.focus();
  });
  $("starters-words").textContent = startWords(app);
  return { render };
}

function startWords({ areKnown, scale }) {
  const what = areKnown ? "Well known, and far apart in taste." : "Far apart in taste.";
  return scale.implicit ? `${what} Say which of them you have.` : `${what} Rate those that you know: five are enough to begin with.`;
}

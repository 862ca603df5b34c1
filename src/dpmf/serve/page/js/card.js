// An item in a list: emblem, title, genres, expected rating if there is one, why, and a control to rate it.

import { emblem } from "./emblem.js";
import { h, icon } from "./dom.js";
import { ratingControl } from "./rating.js";

/**
 * Return {element, position, update}; `update({reason, follows})` shows the present score and the item that pushes it most,
 * or that it follows by popularity.
 * @param {Element} [action] what stands beside the control, in place of "Why?"
 */
export function makeCard(app, position, action = whyButton(app, position)) {
  const { catalogue, scale } = app;
  const title = catalogue.titles[position];
  const control = ratingControl(app, position);
  const score = h("span.number", {});
  const scoreLine = h("p.score", {});
  const scoreWords = h("span.caption", {}, scale.implicit ? "score" : "expected");
  const because = h("p.because", {});
  const details = h(
    "button.title",
    { type: "button", "aria-haspopup": "dialog", onclick: () => app.openItem(position) },
    title,
  );
  const element = h(
    "li.card",
    { "data-item": position },
    h("div.top", {}, emblem(app, position), h("div.names", {}, h("h3", {}, details), genreTags(app, position)),
      scoreLine),
    because,
    h("div.bottom", {}, control.element, action),
  );
  scoreLine.append(score, scoreWords);
  function update({ reason, follows }) {
    control.sync();
    const rated = app.store.get(position) !== null;
    element.classList.toggle("rated", rated);
    scoreLine.hidden = !app.scores;
    if (app.scores) {
      score.textContent = scale.show(app.scores[position]);
      score.style.setProperty("--share", scale.share(app.scores[position]));
    }
    because.replaceChildren(...reasonWords(app, { rated, reason, follows }));
  }
  return { element, position, update };
}

function whyButton(app, position) {
  const said = { type: "button", "aria-haspopup": "dialog", "aria-label": `Why ${app.catalogue.titles[position]}?` };
  return h("button.why", { ...said, onclick: () => app.openItem(position) }, "Why?", icon("arrow"));
}

function reasonWords(app, { rated, reason, follows }) {
  if (rated) return [h("span", {}, app.scale.implicit ? "Among what you have" : "You have rated this")];
  if (follows) return ["By popularity: nothing links it to what you like"];
  if (reason === null) return [];
  const value = app.scale.implicit ? "" : ` (${app.scale.showRating(app.store.get(reason) ?? 0)})`;
  return ["Mostly because of ", h("b", {}, app.catalogue.titles[reason]), value];
}

/** Return the genres of an item, each with its colour. */
export function genreTags(app, position) {
  const names = app.catalogue.genresOf(position);
  return h("p.genres", {}, ...names.slice(0, 3).map((name) => genreTag(app, name)));
}

function genreTag(app, name) {
  const place = app.catalogue.coloured.indexOf(name);
  return h(`span.genre.g${place === -1 ? app.catalogue.coloured.length && 8 : place}`, {}, name);
}

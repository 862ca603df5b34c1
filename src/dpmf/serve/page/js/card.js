// An item in a list: emblem, title, genres, expected rating if there is one, why, and a control to rate it.

import { emblem } from "./emblem.js";
import { h, icon } from "./dom.js";
import { ratingControl } from "./rating.js";

/** Return {element, position, update}; `update(reason)` shows the present score and the item that pushes it most. */
export function makeCard(app, position) {
  const { catalogue, scale } = app;
  const title = catalogue.titles[position];
  const control = ratingControl(app, position);
  const score = h("span.number", {});
  const scoreLine = h("p.score", {});
  const scoreWords = h("span.hidden", {});
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
    h("div.bottom", {}, control.element,
      h("button.why", { type: "button", "aria-haspopup": "dialog", "aria-label": `Why ${title}?`, onclick: () => app.openItem(position) },
        "Why?", icon("arrow"))),
  );
  scoreLine.append(scoreWords, score);
  function update(reason) {
    control.sync();
    const rated = app.store.get(position) !== null;
    element.classList.toggle("rated", rated);
    scoreLine.hidden = !app.scores;
    if (app.scores) {
      score.textContent = scale.show(app.scores[position]);
      score.style.setProperty("--share", scale.share(app.scores[position]));
    }
    scoreWords.textContent = scale.implicit ? "Score " : "Expected rating ";
    because.replaceChildren(...reasonWords(app, rated, reason));
  }
  return { element, position, update };
}

function reasonWords(app, rated, reason) {
  if (rated) return [h("span", {}, app.scale.implicit ? "Among what you have" : "You have rated this")];
  if (reason === null || reason === undefined) return [];
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

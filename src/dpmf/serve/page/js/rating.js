// The control with which an item is rated: stars, buttons, a slider, or "I have it". All are native controls.

import { h, icon } from "./dom.js";

let count = 0;

/** Return {element, sync}: a control for an item, and what to call when ratings have changed elsewhere. */
export function ratingControl(app, position) {
  const title = app.catalogue.titles[position];
  const make = { have: haveIt, slider, stars: choices, buttons: choices }[app.scale.control];
  const control = make(app, position, title);
  if (app.scale.control === "have") return control;
  const clear = h(
    "button.clear",
    {
      type: "button",
      "aria-label": `Remove your rating of ${title}`,
      title: "Remove your rating",
      onclick: () => {
        control.focus();
        app.store.remove(position);
      },
    },
    icon("cross"),
  );
  const element = h("div.rating", {}, control.element, clear);
  const sync = () => {
    const rating = app.store.get(position);
    control.sync(rating);
    clear.hidden = rating === null;
  };
  sync();
  return { element, sync };
}

function choices(app, position, title) {
  const name = `rating-${++count}`;
  const element = h(`fieldset.choices.${app.scale.control}`, {}, h("legend.hidden", {}, `Your rating of ${title}`));
  const inputs = app.scale.choices.map((value) => {
    const id = `${name}-${value}`;
    const text = app.scale.showRating(value);
    const isStar = app.scale.control === "stars";
    const said = isStar ? `${text} ${value === 1 ? "star" : "stars"}` : text;
    const onchange = () => app.store.set(position, value);
    const input = h("input", { type: "radio", name, id, value, "aria-label": said, onchange });
    element.append(input, h("label", { for: id, title: said }, isStar ? icon("star") : text));
    return input;
  });
  return {
    element,
    focus: () => inputs[0].focus(),
    sync: (rating) => {
      for (const input of inputs) input.checked = rating === Number(input.value);
    },
  };
}

function slider(app, position, title) {
  const { lo, hi, step, showRating } = app.scale;
  const shown = h("output", {});
  const input = h("input", {
    type: "range", min: lo, max: hi, step, "aria-label": `Your rating of ${title}`,
    oninput: () => app.store.set(position, Number(input.value)),
  });
  return {
    element: h("div.slider", {}, input, shown),
    focus: () => input.focus(),
    sync: (rating) => {
      input.value = rating ?? (lo + hi) / 2;
      input.setAttribute("aria-valuetext", rating === null ? "not rated" : showRating(rating));
      shown.textContent = rating === null ? "–" : showRating(rating);
    },
  };
}

function haveIt(app, position, title) {
  const words = h("span", {});
  const element = h(
    "button.have",
    {
      type: "button",
      "aria-label": `I have ${title}`,
      onclick: () => (app.store.get(position) === null ? app.store.set(position, 1) : app.store.remove(position)),
    },
    icon("check"),
    words,
  );
  const sync = () => {
    const has = app.store.get(position) !== null;
    element.setAttribute("aria-pressed", String(has));
    words.textContent = has ? "Have it" : "I have it";
  };
  sync();
  return { element, sync };
}

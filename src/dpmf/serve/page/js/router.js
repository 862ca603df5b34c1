// Which view is shown: the part of the address after "#", which browsers never send.

import { $ } from "./dom.js";

const VIEWS = ["discover", "ratings", "map", "privacy"];

/** Follow the address, and return {go, onChange}. */
export function makeRouter() {
  let listener = () => {};
  let first = true;
  const current = () => (VIEWS.includes(location.hash.slice(1)) ? location.hash.slice(1) : VIEWS[0]);
  const show = () => {
    const view = current();
    document.body.dataset.view = view;
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    if (!first) {
      window.scrollTo(0, 0);
      $(`${view}-title`).focus({ preventScroll: true });
    }
    first = false;
    listener();
  };
  window.addEventListener("hashchange", () => {
    if (location.hash === "" || VIEWS.includes(location.hash.slice(1))) show(); // "#main" only moves the focus
  });
  show();
  return {
    go: (view) => {
      if (current() === view) show();
      else {
        history.pushState(null, "", `#${view}`);
        show();
      }
    },
    onChange: (handler) => {
      listener = handler;
    },
  };
}

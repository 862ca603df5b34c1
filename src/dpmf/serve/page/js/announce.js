// Says what changed to those who do not see it, and shows short notices to those who do.

import { $ } from "./dom.js";

const QUIET = 500; // milliseconds: several changes in a row are one announcement
const SHOWN = 6000;

let soon = 0;
let hiding = 0;

/** Have a screen reader say something, when it has nothing more urgent to say. */
export function announce(text) {
  clearTimeout(soon);
  soon = setTimeout(() => {
    $("live").textContent = text;
  }, QUIET);
}

/** Show a notice for a while; it is read out, too. */
export function notify(text, kind = "info") {
  const notice = $("notice");
  notice.textContent = text;
  notice.dataset.kind = kind;
  notice.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => {
    notice.hidden = true;
  }, SHOWN);
}

// The privacy label: a title and a few rows in plain words, made by dpmf.disclosure.label.

import { $, h } from "../dom.js";

/** Shown in place of a label that the release does not bear out. */
const NO_LABEL = {
  verdict: "none",
  title: "Not private",
  rows: [{ heading: "Who says so", text: "This site says one thing about what it publishes, and what it publishes says another. Believe neither." }],
};

/** Show a label; null is shown as "not private". */
export function fillLabel(label) {
  const { verdict, title, rows } = label ?? NO_LABEL;
  $("label").dataset.verdict = verdict;
  $("label-title").textContent = title;
  $("label-rows").replaceChildren(...rows.map(({ heading, text }) => h("div", {}, h("dt", {}, heading), h("dd", {}, text))));
}

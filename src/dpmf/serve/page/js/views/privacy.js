// "Privacy": what is promised about the release, what stays here, and what ε means, as a picture.

import { $, h } from "../dom.js";
import { fillLabel } from "./label.js";

const DOTS = 100;

/** Fill the view from about.json and the guarantee of release.json. It does not change afterwards. */
export function fillPrivacy({ about: said, facts, sizes }) {
  const about = agreed(said, facts.guarantee);
  $("banner").hidden = about.certified;
  if (!about.certified) $("banner-words").textContent = bannerWords(about);
  fillLabel(about.certified || about.label?.verdict !== "certified" ? about.label : null);
  $("chip").textContent = chipWords(about);
  $("chip").dataset.certified = String(about.certified);
  $("promise").replaceChildren(...(about.certified ? promise(about) : noPromise(about)));
  $("sections").replaceChildren(...about.sections.map(section));
  $("downloaded").textContent =
    `${about.items.toLocaleString("en")} items with ${contentWords(about, facts.ranking)} (${sizeWords(sizes)}), ` +
    "the same for everybody.";
}

function contentWords({ factors }, ranking) {
  const numbers = `${factors} number${factors === 1 ? "" : "s"} each`;
  if (!ranking) return numbers;
  const order = `${2 * ranking.n_factors} numbers for each of ${ranking.n_items.toLocaleString("en")} to order them by`;
  return factors ? `${numbers}, and ${order}` : order;
}

/** Return what is said about a release; no promise unless the release itself says so, too. */
function agreed(about, guarantee) {
  if (about.certified !== true) return { ...about, certified: false };
  if (guarantee?.certified === true && guarantee.mode === about.mode && guarantee.epsilon === about.epsilon) return about;
  const summary = "What this site says about the release is not what the release says about itself.";
  return { ...about, certified: false, mode: "none", epsilon: null, summary, label: null, sections: [] };
}

function bannerWords({ mode }) {
  const what = {
    none: "Nothing is promised about the people whose ratings this was made from.",
    paper: "What is promised about the people whose ratings this was made from is a published claim that is not proven.",
    certified: "The noise in this release came from a seed: it protects nobody.",
  }[mode];
  return `${what} It should not have been published. Your own ratings still stay on this device.`;
}

function chipWords({ certified, mode, epsilon, unit }) {
  if (certified) return `ε = ${short(epsilon)} per ${unit}, certified`;
  return mode === "paper" ? `ε = ${short(epsilon)} claimed, not proven` : "Not private";
}

function promise(about) {
  const most = Math.min(DOTS, Math.ceil(DOTS * about.guess.promised - 1e-9));
  const question = about.neighbours === "replace" ? "which of two things you contributed" : "whether you were in the data";
  const whose = about.unit === "rating" ? "one rating of yours" : "all your ratings together";
  return [
    dots(most),
    h("div", {},
      h("p.lead", {}, "Say somebody knows everything else, and has to guess ", h("b", {}, question), "."),
      h("p", {}, `A coin is right 50 times of 100. With this release, at most ${most}, whoever they are and however they compute. ` +
        `That is what ε = ${short(about.epsilon)} means.`),
      h("ul.key", {},
        h("li.chance", {}, "right by chance alone"),
        h("li.gain", {}, "the most that the release can add"),
        h("li.none", {}, "wrong, whatever they do")),
      factList([
        ["ε", short(about.epsilon), "the smaller, the less can be learnt about you"],
        ["δ", String(about.delta), "the probability for which this is not promised"],
        ["Unit", about.unit, `${whose} are protected`.replace("one rating of yours are", "one rating of yours is")],
        ["Neighbours", about.neighbours, about.neighbours === "replace" ? "your ratings, or others in their place" : "your ratings, or none"],
        ["Mode", about.mode, "computed from what was done, and anybody can compute it again"],
      ])),
  ];
}

function noPromise(about) {
  const rows = [["Mode", about.mode, about.mode === "paper" ? "a published claim" : "no protection"]];
  if (about.epsilon !== null) {
    rows.push(["ε", short(about.epsilon), "claimed"], ["δ", String(about.delta), "claimed"], ["Unit", about.unit, "of the claim"]);
  }
  return [h("div", {}, h("p.lead", {}, "Nothing is proven about this release."), h("p", {}, about.summary), factList(rows))];
}

const factList = (rows) =>
  h("dl.facts", {}, ...rows.flatMap(([name, value, words]) => [h("dt", {}, name), h("dd", {}, h("b", {}, value), ` ${words}`)]));

function dots(most) {
  const label = `Of 100 guesses, 50 are right by chance, and at most ${most} with the release.`;
  const kinds = Array.from({ length: DOTS }, (_, place) => (place < 50 ? "chance" : place < most ? "gain" : "none"));
  return h("div.dots", { role: "img", "aria-label": label }, ...kinds.map((kind) => h(`span.${kind}`, {})));
}

function section({ title, sentences }) {
  return h("details", {}, h("summary", {}, title), h("ul", {}, ...sentences.map((text) => h("li", {}, text))));
}

const sizeWords = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const short = (epsilon) => String(Number(epsilon.toPrecision(4)));

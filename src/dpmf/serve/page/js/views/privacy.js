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
  const worst = about.guess.promised;
  const used = Math.min(about.guess.exact, worst);
  const question = about.neighbours === "replace" ? "which of two things you contributed" : "whether you were in the data";
  const whose = about.unit === "rating" ? "one rating of yours" : "all your ratings together";
  const epsilon = short(about.epsilon);
  return [
    h("div", {},
      h("p.lead", {}, "Say somebody knows everything else, and has to guess ", h("b", {}, question), ". How often are they right?"),
      h("dl.odds", {},
        ...odds("50", "of 100 times, by tossing a coin"),
        ...odds(`≤ ${times(used)}`, "with this release, for the noise that was actually used"),
        ...odds(`≤ ${times(worst)}`, `at worst: the most that ε = ${epsilon} and δ = ${about.delta} allow`))),
    dots(used, worst),
    h("div", {},
      h("ul.key", {},
        h("li.chance", {}, "right by chance alone"),
        h("li.gain", {}, "the most that this release can add"),
        h("li.limit", {}, "what ε and δ alone would allow"),
        h("li.none", {}, "wrong, whatever they do")),
      h("p.plainly", {}, h("b", {}, "In plain words: "),
        `of 100 people who guess, 50 are right by luck. Studying this release makes at most ${times(used - 0.5)} more of them right, ` +
        "whoever they are, whatever they know and however they compute."),
      factList([
        ["ε", epsilon, "the smaller, the less can be learnt about you"],
        ["δ", String(about.delta), "the small probability that ε leaves uncovered"],
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

const odds = (number, words) => [h("dt", {}, number), h("dd", {}, words)];

/** Return how many of 100 guesses a probability is, to one decimal; a limit is rounded up. */
const times = (probability) => (Math.ceil(10 * DOTS * probability - 1e-9) / 10).toFixed(1);

/** Draw 100 guesses: those right by chance, then what the noise used and what ε and δ allow, to a part of a dot. */
function dots(used, worst) {
  const label =
    `Of 100 guesses, 50 are right by chance, at most ${times(used)} with this release, and at most ${times(worst)} with any ` +
    "of this ε and δ.";
  const filled = (most, place) => Math.max(0, Math.min(1, DOTS * most - place));
  const elements = Array.from({ length: DOTS }, (_, place) => {
    if (place < DOTS / 2) return h("span.chance", {});
    const [gain, limit] = [filled(used, place), filled(worst, place)];
    const dot = h(gain > 0 ? "span.gain" : limit > 0 ? "span.limit" : "span.none", {});
    dot.style.setProperty("--gain", gain);
    dot.style.setProperty("--limit", limit);
    return dot;
  });
  return h("div.dots", { role: "img", "aria-label": label }, ...elements);
}

function section({ title, sentences }) {
  return h("details", {}, h("summary", {}, title), h("ul", {}, ...sentences.map((text) => h("li", {}, text))));
}

const sizeWords = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const short = (epsilon) => String(Number(epsilon.toPrecision(4)));

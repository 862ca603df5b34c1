// What an agreement says, in words for whoever is about to join.

import { h } from "../dom.js";

/** Fill what is known before anybody joins. */
export function fillAgreement($, agreement) {
  const { recommender, third_party: third } = agreement.servers;
  const { per_round: asked, dropouts, colluders } = agreement.people;
  const up = agreement.rounds.reduce((total, { bytesUp }) => total + bytesUp, 0);
  const down = agreement.rounds.reduce((total, { bytesDown }) => total + bytesDown, 0);
  const epsilon = short(agreement.epsilon);
  $("agreement-title").textContent = agreement.name;
  $("cost").textContent = `ε = ${epsilon}, δ = ${agreement.budget.delta}, for all of it together`;
  $("agreement-facts").replaceChildren(...[
    ["Learns", `${recommender.name}, at ${recommender.url}`],
    ["Adds up", `${third.name}, at ${third.url}: the third party`],
    ["Invites", agreement.admission.by],
    ["People", `${asked} in each round; up to ${dropouts} may be missing, and ${colluders} may tell others what they sent`],
    ["Rounds", `${agreement.rounds.length}, one answer of yours in each`],
    ["You send", `${sizeOf(up)} in all, and fetch ${sizeOf(down)}: the same for everybody, whatever you rated`],
    ["When", `${dateOf(agreement.begins)} to ${dateOf(agreement.ends)}; leave this page open, or come back`],
  ].flatMap(([name, words]) => [h("dt", {}, name), h("dd", {}, words)]));
  $("promise").replaceChildren(...[
    `${recommender.name} and everybody who sees what is learnt: they get sums over at least ${asked - dropouts} people, with ` +
      `noise that people drew for themselves. All of it together is (ε, δ)-private, with ε = ${epsilon} and ` +
      `δ = ${agreement.budget.delta}, for all your ratings together, even if ${colluders} of the others help them.`,
    `In plain words: somebody who knows everything else, and guesses ` +
      `${agreement.budget.neighbours === "replace" ? "which of two sets of ratings is yours" : "whether your ratings count"}, is ` +
      `right at most ${odds(agreement)} times out of 100. A coin is right 50 times.`,
    `${third.name}: it gets your numbers behind a mask that it cannot lift, and learns no more than what everybody learns.`,
    "Everybody on the way: messages are sealed for one server each, and have the same length whatever you rated.",
    "This browser decides: it keeps to the bound and draws the noise whatever it is asked, answers every round once, and " +
      "writes that down before anything is sent.",
  ].map((words) => h("li", {}, words)));
  $("not-promised").replaceChildren(...[
    `Against ${recommender.name} and ${third.name} together: they would see your answers with your own noise alone.`,
    "That you take part is hidden from nobody, nor is when you answer.",
    "This page comes from its host, whom you trust to have sent you the true one; and other pages at the same address can " +
      "read what it keeps here.",
  ].map((words) => h("li", {}, words)));
}

/** Return what a person's ratings mean for an agreement. */
export function ownWords({ items }) {
  const count = items.length;
  if (!count) return "You have no ratings in this browser yet. You could join all the same; rate something first, and you help more.";
  return `${count} rating${count === 1 ? "" : "s"} in this browser will count: what is here when you join, however many come later.`;
}

/** Fill what this browser's ledger says. */
export function fillLedger($, { cap, entries, spent, total }) {
  if (cap) {
    $("limit").value = cap.epsilon;
    $("limit").disabled = true;
  }
  const before = entries.length ? `So far ε = ${short(spent)} is spent in this browser. ` : "Nothing is spent in this browser so far. ";
  const fixed = cap ? "Your limit was fixed when you first joined." : "Your limit holds for this browser, and cannot be changed afterwards.";
  $("ledger").textContent = `${before}With this agreement it is ε = ${short(total)}. ${fixed}`;
  $("no-entries").hidden = entries.length > 0;
  $("entries").replaceChildren(...entries.map(({ label, date, answers }) => {
    const bytes = answers.reduce((sum, one) => sum + one.bytes, 0);
    return h("li", {}, `${label}, since ${dateOf(new Date(date))}: ${answers.length} answer${answers.length === 1 ? "" : "s"}, ${sizeOf(bytes)}`);
  }));
}

/** Return a line about a message that left this browser. */
export const sentRow = ({ to, what, bytes, round }) =>
  h("tr", {},
    h("td", {}, new Date().toLocaleTimeString("en-GB")),
    h("td", {}, to),
    h("td", {}, round === null ? what : `${what} of round ${round + 1}: bounded, noisy, masked, sealed`),
    h("td", {}, bytes.toLocaleString("en")));

/** Return how a state is told. */
export function statusWords({ state, reason }) {
  return {
    connecting: reason ? `Connecting to ${reason} again …` : "Connecting to both servers …",
    joined: "You take part. Answers leave by themselves when you are asked; you can close this page at any time.",
    left: "You left. What was answered stays in the sums; nothing more is sent.",
    over: reason === "finished"
      ? "The run is over. Thank you for taking part: nobody saw your ratings."
      : "The run was given up. Nothing more is sent.",
    stopped: `Stopped: ${reason}. Nothing more is sent.`,
  }[state];
}

/** Return how often of 100 times a guess is right at most, rounded up. */
function odds({ epsilon, budget }) {
  const most = (1 + budget.delta / Math.exp(epsilon)) / (1 + Math.exp(-epsilon));
  return Math.min(100, Math.ceil(1000 * most - 1e-9) / 10).toFixed(1);
}

export const sizeOf = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);
const short = (epsilon) => (epsilon === Infinity ? "∞" : String(Number(epsilon.toPrecision(4))));
const dateOf = (date) => date.toISOString().slice(0, 16).replace("T", " ");

// A link to the page on which people can join an agreement, on sites that offer one; and what the page says of itself then.

import { $ } from "../dom.js";

/** Show the offer that about.json states, if it states one. */
export function fillOffer({ joining }) {
  if (typeof joining?.name !== "string" || !Array.isArray(joining.servers)) return;
  $("offer-words").textContent =
    `${joining.servers.join(" and ")} learn from people who never show their ratings: “${joining.name}”. If you were ` +
    "invited, another page of this site can let yours count. It sends sums with noise, behind masks, and shows each message.";
  $("offer-link").setAttribute("href", "join.html");
  $("offer").hidden = false;
  $("you-title").textContent = "You: nothing leaves this device unless you join";
  $("hero-words").textContent =
    "Everything is computed in this tab. What you enter is sent to nobody, not even to this site, unless you join an agreement " +
    "on another page. What leaves then is bounded, noisy and masked, and shown to you.";
  $("kept-words").textContent = "Kept in this browser. This page never sends it; to join an agreement, you go to another page.";
}

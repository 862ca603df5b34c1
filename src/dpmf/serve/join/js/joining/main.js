// The page on which people join an agreement: it is fetched by whoever asks for it, and connects to the two servers of the
// agreement, to nobody else, and only when somebody clicks.

import { makeCatalogue } from "../catalogue.js";
import { $ } from "../dom.js";
import { Damaged, Unreachable } from "../errors.js";
import { readAgreement } from "../federated/agreement.js";
import { Refused } from "../federated/bytes.js";
import { checkInvitation, readInvitation } from "../federated/identity.js";
import { openLedger } from "../federated/ledger.js";
import { takePart } from "../federated/session.js";
import { ownRatings } from "../federated/user.js";
import { forbidAllBut } from "../lock.js";
import { makeScale } from "../scale.js";
import { makeReader, openStorage, storageName } from "../store.js";
import { startTheme } from "../theme.js";
import { fetchAgreement } from "./files.js";
import { fillAgreement, fillLedger, ownWords, sentRow, statusWords } from "./words.js";

const PREFIX = "#dpmf-invitation-1:";

async function start() {
  const storage = openStorage();
  startTheme(storage, () => {});
  takeInvitation();
  await checkCiphers();
  const { text, catalogue } = await fetchAgreement();
  const agreement = await readAgreement(text, catalogue);
  forbidAllBut(Object.values(agreement.servers).map(({ url }) => url));
  const ledger = await openLedger();
  fillAgreement($, agreement);
  $("own").textContent = ownWords(ratingsOf(storage, agreement));
  $("limit").value = Math.ceil(10 * agreement.budget.epsilon) / 10;
  await showLedger(ledger, agreement);
  $("join-form").addEventListener("submit", (event) => {
    event.preventDefault();
    join(storage, ledger, agreement).catch((error) => tell(agreement, ledger, { state: "stopped", reason: reasonOf(error) }));
  });
  document.body.dataset.state = "ready";
  $("joining").hidden = false;
}

async function checkCiphers() {
  if (!globalThis.crypto?.subtle) throw new Refused("a browser offers its ciphers to pages over https alone");
  try {
    for (const [name, uses] of [["X25519", ["deriveBits"]], ["Ed25519", ["sign"]]]) {
      await crypto.subtle.generateKey({ name }, false, uses);
    }
  } catch {
    throw new Refused("this browser lacks X25519 or Ed25519: a newer one has them");
  }
}

/** Take an invitation out of the address, so that it is not in the history of this browser. */
function takeInvitation() {
  if (!location.hash.startsWith(PREFIX)) return;
  $("invitation").value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
}

/** Return the ratings that another page of this site left in this browser, of items of the agreement's catalogue. */
function ratingsOf(storage, { scale: [lo, hi], items }) {
  const catalogue = makeCatalogue(items);
  const reader = makeReader({ catalogue, scale: makeScale({ lo, hi }, false), implicit: false });
  const text = storage?.getItem(storageName(location.pathname, { feedback: "explicit", lo, hi })) ?? null;
  const entries = text === null ? [] : reader.read(text).entries.filter(({ position }) => position !== null);
  return ownRatings(entries, [lo, hi], items.ids.length);
}

async function join(storage, ledger, agreement) {
  $("join").disabled = true;
  const invitation = await readInvitation($("invitation").value);
  await checkInvitation(invitation, agreement);
  if (Date.now() > agreement.ends) throw new Refused("the agreement is over");
  const cap = { epsilon: Number($("limit").value), delta: agreement.budget.delta };
  const account = await ledger.enter(agreement, cap); // on disk before there is a connection
  navigator.storage?.persist?.().catch(() => false); // a ledger that the browser may drop protects less
  await showLedger(ledger, agreement);
  const own = ratingsOf(storage, agreement);
  const part = takePart({ agreement, invitation, own, account }, (change) => tell(agreement, ledger, change));
  $("leave").hidden = false;
  $("leave").onclick = () => part.leave();
}

function tell(agreement, ledger, change) {
  if (change.sent) showSent(change.sent);
  if (change.sent?.what === "answer") showLedger(ledger, agreement);
  if (!change.state) return;
  $("status").textContent = statusWords(change);
  $("status").dataset.state = change.state;
  if (["left", "over", "stopped"].includes(change.state)) {
    $("leave").hidden = true;
    $("join").disabled = change.state === "over";
  }
}

let sentBytes = 0;

function showSent(sent) {
  sentBytes += sent.bytes;
  $("sent").hidden = false;
  $("sent").tBodies[0].append(sentRow(sent));
  $("sent-words").textContent = `${sentBytes.toLocaleString("en")} bytes since you joined, in these messages.`;
}

async function showLedger(ledger, agreement) {
  const [cap, entries] = await Promise.all([ledger.cap(), ledger.entries()]);
  const spent = entries.length ? await ledger.spent(agreement.budget.delta) : 0;
  fillLedger($, { cap, entries, spent, total: await ledger.wouldSpend(agreement) });
}

const isOurs = (error) => [Refused, Damaged, Unreachable].some((kind) => error instanceof kind);
const reasonOf = (error) => (isOurs(error) ? error.message : "this browser cannot do what it needs");

function fail(error) {
  if (!isOurs(error)) console.error(error);
  $("failure-title").textContent = "This page cannot be used to join";
  $("failure-words").textContent = `Nothing was sent. ${isOurs(error) ? `The reason: ${error.message}.` : "It needs a browser of the last two years."}`;
  document.body.dataset.state = "failed";
  $("failure-title").focus();
}

$("retry").addEventListener("click", () => location.reload());
start().catch(fail);

// A participant's connections, one to each server: docs/federated-protocol.md. They are opened again whenever they end,
// until the run is over, somebody refuses, or the person leaves.

import { Refused, hex, joined, unhex } from "./bytes.js";
import { isSigned, joinMessage } from "./identity.js";
import { makeUser } from "./user.js";

const ROLES = ["recommender", "third_party"];
const PATH = "/v1/join";
const [MALFORMED, REFUSED, REPLACED] = [4400, 4401, 4409];
const MOST_CONTROL = 4096;
const BEAT = 250; // milliseconds: answers leave on the beat, so that the time does not tell how many ratings were computed with
const [FIRST_PAUSE, LONGEST_PAUSE] = [1000, 60_000];

/**
 * Take part in an agreement, and return {leave}.
 * @param {{agreement, invitation, own, account}} with `account` from the ledger, in which the agreement is entered already
 * @param {(change: {state?: string, reason?: string, sent?: {to, what, bytes}, round?: number}) => void} tell
 */
export function takePart({ agreement, invitation, own, account, noise }, tell) {
  const links = Object.fromEntries(ROLES.map((role) => [role, { role, socket: null, public: null, joined: false, tries: 0 }]));
  let [user, earlier, used, message, pending, isOver] = [null, null, null, null, null, false];
  let unheard = 0; // answers sent on this connection of the third party that it has not said it received
  let queue = Promise.resolve();

  const inTurn = (work) => {
    queue = queue.then(() => (isOver ? null : work())).catch((error) => end("stopped", wordsOf(error), MALFORMED));
  };

  function connect(link) {
    if (isOver) return;
    const socket = new WebSocket(`${agreement.servers[link.role].url}${PATH}`);
    socket.binaryType = "arraybuffer";
    Object.assign(link, { socket, public: null, joined: false, isWelcome: false, pause: null });
    socket.onmessage = ({ data }) => {
      const arrived = performance.now();
      inTurn(() => socket === link.socket && receive(link, data, arrived));
    };
    socket.onclose = ({ code }) => inTurn(() => socket === link.socket && reopen(link, code));
  }

  async function receive(link, data, arrived) {
    if (typeof data !== "string") {
      if (link.role === "recommender") await answer(new Uint8Array(data), arrived);
      return;
    }
    if (data.length > MOST_CONTROL) throw new Refused("a server's message is too long");
    const control = JSON.parse(data);
    if (control?.type === "hello") await meet(link, control);
    else if (control?.type === "welcome") welcome(link);
    else if (link.role === "third_party" && control?.type === "received") pending = --unheard > 0 ? pending : null;
    else if (link.role === "third_party" && control?.type === "closed") user?.forget(control.round);
    else if (control?.type === "busy") link.pause = 1000 * Math.min(Math.max(Number(control.seconds) || 1, 1), 3600);
    else if (control?.type === "refused") end("stopped", `${nameOf(link)} says: ${String(control.reason).slice(0, 200)}`);
    else if (control?.type === "over") end("over", control.outcome === "finished" ? "finished" : "failed");
  }

  /** Verify who a server is; once both are known, join, or join again where a connection was lost. */
  async function meet(link, { role, agreement: id, public: key, signature }) {
    const content = joined(`${link.role}:`, agreement.id, unhex(key, 32));
    const isTrue = await isSigned(agreement.servers[link.role].key, "session", content, unhex(signature, 64));
    if (role !== link.role || id !== hex(agreement.id) || !isTrue) {
      throw new Refused(`${nameOf(link)} is not the server of the agreement`);
    }
    link.public = unhex(key, 32);
    if (used && hex(used[link.role]) !== key) {
      [user, earlier, used, message, pending] = [null, user, null, null, null]; // another session: new keys, join both again
      for (const other of Object.values(links)) if (other.joined) other.socket.close();
    }
    const all = Object.values(links);
    if (!user && all.every((one) => one.public && !one.joined)) await prepare();
    if (user) for (const one of all.filter(({ public: known, joined: is }) => known && !is)) send(one, message, "who joins");
  }

  async function prepare() {
    const [recommender, thirdParty] = ROLES.map((role) => links[role].public);
    user = await makeUser({ agreement, own, recommender, thirdParty, account, noise, earlier });
    used = { recommender, third_party: thirdParty };
    message = await joinMessage(invitation, agreement, user.public, [recommender, thirdParty]);
  }

  function welcome(link) {
    link.isWelcome = true;
    link.tries = 0;
    if (link.role === "third_party") {
      unheard = 0;
      deliver(); // an answer for which nothing was received: the same bytes
    }
    if (Object.values(links).every((one) => one.isWelcome)) tell({ state: "joined" });
  }

  async function answer(question, arrived) {
    if (!user) return;
    const answering = user;
    let made;
    try {
      made = await answering.receive(question);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      tell({ refused: error.message }); // the round goes on without us
      return;
    }
    const beats = Math.max(Math.ceil((performance.now() - arrived) / BEAT), 1);
    setTimeout(() => {
      if (answering !== user) return; // sealed for a session that has ended
      pending = made;
      deliver();
    }, Math.max(arrived + beats * BEAT - performance.now(), 0));
  }

  function deliver() {
    if (!pending || !links.third_party.isWelcome || isOver) return;
    unheard++;
    send(links.third_party, pending.message, "answer", pending.round);
  }

  function send(link, content, what, round = null) {
    if (link.socket.readyState !== WebSocket.OPEN) return;
    link.joined = true;
    link.socket.send(content);
    tell({ sent: { to: nameOf(link), what, bytes: content.length, round } });
  }

  function reopen(link, code) {
    if (code === MALFORMED || code === REFUSED) return end("stopped", `${nameOf(link)} refused the connection`);
    if (code === REPLACED) return end("stopped", "you joined with the same invitation somewhere else");
    link.isWelcome = false;
    tell({ state: "connecting", reason: nameOf(link) });
    const pause = Math.min(FIRST_PAUSE * 2 ** link.tries++, LONGEST_PAUSE) * (0.5 + Math.random());
    return setTimeout(() => connect(link), link.pause ?? pause);
  }

  function end(state, reason, code = 1000) {
    if (isOver) return;
    isOver = true;
    for (const { socket } of Object.values(links)) socket?.close(code);
    tell({ state, reason });
  }

  const nameOf = ({ role }) => agreement.servers[role].name;

  tell({ state: "connecting" });
  Object.values(links).forEach(connect);
  return { leave: () => end("left") };
}

const wordsOf = (error) => (error instanceof Refused ? error.message : "a message was not what it should be");

// An agreement, as both servers signed it: docs/federated-protocol.md has every field. What it says about privacy is worked
// out here again, from the noise of every release, and has to agree with what it promises.

import { epsilonOf } from "./accounting.js";
import { Refused, hex, joined, sha256, unhex } from "./bytes.js";
import { OVERHEAD } from "./channel.js";
import { isSigned } from "./identity.js";
import { ANSWER_START, INQUIRY_START, isArray, toldBytes } from "./messages.js";
import { makeQuestion } from "./questions.js";

const ROLES = ["recommender", "third_party"];
const MOST_SHARES = 2 ** 20;
const MOST_ELEMENTS = 2 ** 24;
const LARGEST_DELTA = 1e-3; // more would hardly be a promise
const HAIR = 1e-6; // by which ε may come out larger here: both are rounded up, in their own ways

/**
 * Return an agreement that this page can join, or refuse it.
 * @param {string} text of the file
 * @param {Uint8Array} catalogue the bytes of the catalogue's file
 */
export async function readAgreement(text, catalogue) {
  try {
    return await read(text, catalogue);
  } catch (error) {
    throw error instanceof Refused ? error : new Refused("the agreement is damaged");
  }
}

async function read(text, catalogue) {
  const { signed, content } = opened(text);
  const id = await sha256(joined(signed.agreement));
  const servers = Object.fromEntries(ROLES.map((role) => [role, serverOf(content[role])]));
  for (const role of ROLES) {
    const signature = unhex(signed.signatures?.[role], 64);
    if (!(await isSigned(servers[role].key, "agreement", id, signature))) {
      throw new Refused(`${servers[role].name} did not sign the agreement`);
    }
  }
  if (hex(servers.recommender.key) === hex(servers.third_party.key)) throw new Refused("both servers have the same key");
  if (hex(await sha256(catalogue)) !== content.catalogue.sha256) throw new Refused("the catalogue is another one");
  const items = JSON.parse(new TextDecoder().decode(catalogue));
  const { computed, budget, people, timing } = content;
  const nShares = people.per_round - people.dropouts - people.colluders;
  const method = {
    name: content.method.name,
    constants: computed.constants,
    neighbours: budget.neighbours,
    nItems: items.ids.length,
    perItem: content.method.settings.moments === "per-item",
  };
  if (content.wire !== 2) throw new Refused("a page needs version 2 of the wire: use dpmf federate join");
  if (!Array.isArray(content.scale) || !content.scale.every(Number.isFinite)) {
    throw new Refused("this page has ratings, and the agreement is about something else");
  }
  if (!(budget.delta > 0 && budget.delta <= LARGEST_DELTA)) throw new Refused("the agreement promises next to nothing");
  if (budget.unit !== "user" || !["add-remove", "replace"].includes(budget.neighbours)) {
    throw new Refused("the agreement does not protect a person, but less");
  }
  const isPeople = Object.values(people).every((count) => isWhole(count, 0, MOST_SHARES)) && isWhole(nShares, 1, MOST_SHARES);
  if (!isPeople || nShares !== computed.n_shares) throw new Refused("there are not as many shares of noise as it takes");
  const rounds = computed.rounds.map((round) => roundOf(method, round));
  checkEvents(computed, nShares);
  const epsilon = epsilonOf(computed.events, budget.delta);
  if (!(epsilon <= budget.epsilon * (1 + HAIR))) throw new Refused("what is asked for costs more than the agreement says");
  const { kind, by, key, most } = content.admission;
  if (kind !== "invitations") throw new Refused("people are listed: a page can only be invited; use dpmf federate join");
  return {
    id,
    name: String(content.name),
    digest: unhex(computed.digest, 16),
    method: method.name,
    scale: content.scale,
    budget,
    epsilon,
    events: computed.events,
    people,
    nShares,
    begins: new Date(timing.begins),
    ends: new Date(timing.ends),
    servers,
    admission: { by: String(by), key: unhex(key, 32), most },
    items,
    rounds,
  };
}

function opened(text) {
  try {
    const signed = JSON.parse(text);
    const content = JSON.parse(signed.agreement);
    const isOurs = signed.format === "dpmf-signed-agreement" && content.format === "dpmf-agreement";
    if (isOurs && signed.version === 1 && content.version === 1) return { signed, content };
  } catch {
    // damaged
  }
  throw new Refused("the file is no agreement, or one of another version");
}

function serverOf({ name, url, key }) {
  const { protocol, hostname, host } = new URL(url);
  const isNear = ["localhost", "[::1]"].includes(hostname) || /^127(\.\d+){3}$/.test(hostname);
  const isPlain = /^[\w.:[\]-]+$/.test(host); // nothing that a content policy reads as more than an address
  if (!isPlain || (protocol !== "wss:" && !(protocol === "ws:" && isNear))) throw new Refused("a server has no safe address");
  return { name: String(name), url: `${protocol}//${host}`, key: unhex(key, 32) };
}

function roundOf(method, { ring_bytes: ringBytes, elements, told, questions: listed, ...lengths }) {
  if (!isWhole(ringBytes, 1, 8) || !told.every(isArray)) throw new Refused("a round has numbers of an unknown kind");
  const questions = listed.map((one) => makeQuestion(method, one, told));
  const size = questions.reduce((total, one) => total + one.size, 0);
  if (size !== elements || size > MOST_ELEMENTS) throw new Refused("a round has another number of numbers");
  const down = OVERHEAD + INQUIRY_START + toldBytes(told);
  const up = OVERHEAD + ANSWER_START + size * ringBytes;
  if (down !== lengths.bytes_down || up !== lengths.bytes_up) throw new Refused("a round has messages of another length");
  return { ringBytes, told, questions, bytesDown: down, bytesUp: up };
}

/** Refuse an agreement whose rounds ask for more, or with less noise, than its events say. */
function checkEvents({ events, rounds }, nShares) {
  const byName = new Map(events.map((event) => [event.what, event]));
  if (byName.size !== events.length) throw new Refused("two events have the same name");
  for (const { kind, noise_multiplier: z, count, coordinates } of events) {
    const isKnown = kind === "gaussian-noise" && z >= 1e-100 && z <= 1e100;
    if (!isKnown || !isWhole(count, 1, 2 ** 53) || !isWhole(coordinates, 0, 2 ** 53)) {
      throw new Refused("the agreement has noise of a kind that this page does not know");
    }
  }
  const used = new Map();
  for (const { what, shape, noise_multiplier: z } of rounds.flatMap(({ questions }) => questions)) {
    const event = byName.get(what);
    used.set(what, (used.get(what) ?? 0) + 1);
    if (!event || event.noise_multiplier !== z || used.get(what) > event.count) {
      throw new Refused("the rounds ask for something else than the agreement pays for");
    }
    const size = shape.reduce((total, length) => total * length, 1);
    if (size > Math.floor(event.coordinates / (event.count * nShares))) {
      throw new Refused("a round asks for more numbers than the agreement pays for");
    }
  }
}

const isWhole = (number, least, most) => Number.isSafeInteger(number) && number >= least && number <= most;

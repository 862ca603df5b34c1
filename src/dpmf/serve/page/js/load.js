// Fetches what the page needs, once, and checks that it is whole and of one release.

import { Damaged, Unreachable } from "./errors.js";
import { checkFacts } from "./release.js";
import { sha256 } from "./sha256.js";

const FACTS = "release/release.json";
const TENSORS = "release/release.safetensors";
const AGAIN = 3;
const PAUSE = 300; // milliseconds

/**
 * Return {about, facts, buffer}: what is said about the release, release.json, and the bytes of its tensors. Files of
 * two releases may arrive when one replaces the other, or from a cache: then all are fetched again, a few times.
 */
export async function load() {
  for (let again = 0; ; again++) {
    try {
      return await fetchAll(again ? "reload" : "default");
    } catch (error) {
      if (!(error instanceof Damaged) || again === AGAIN) throw error;
    }
    await new Promise((done) => setTimeout(done, PAUSE));
  }
}

async function fetchAll(cache) {
  const [said, text, buffer] = await Promise.all(["about.json", FACTS, TENSORS].map((path) => fetched(path, cache)));
  const about = json(said, "about.json");
  if (about?.format !== "dpmf-site") throw new Damaged("about.json does not describe a site");
  for (const [path, content] of [[FACTS, text], [TENSORS, buffer]]) {
    if ((await sha256(content)) !== about.sha256?.[path]) throw new Damaged(`${path} is not the one that about.json describes`);
  }
  const facts = json(text, "release.json");
  checkFacts(facts);
  if (about.sha256[TENSORS] !== facts.sha256) throw new Damaged("the item factors are not those that release.json describes");
  return { about, facts, buffer };
}

async function fetched(path, cache) {
  let response;
  try {
    response = await fetch(path, { cache, credentials: "omit", referrerPolicy: "no-referrer" });
    if (response.ok) return await response.arrayBuffer();
  } catch {
    response = null;
  }
  throw new Unreachable(`${path} could not be fetched${response ? ` (${response.status})` : ""}`);
}

function json(buffer, name) {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(buffer));
  } catch {
    throw new Damaged(`${name} is not JSON`);
  }
}

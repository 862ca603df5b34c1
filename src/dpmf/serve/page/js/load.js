// Fetches what the page needs, once, and checks that it arrived whole.

import { Damaged, Unreachable } from "./errors.js";
import { checkFacts } from "./release.js";

/** Return {about, facts, buffer}: what is said about the release, release.json, and the bytes of its tensors. */
export async function load() {
  const about = json(await fetched("about.json", "default"), "about.json");
  if (about?.format !== "dpmf-site") throw new Damaged("about.json does not describe a site");
  try {
    return { about, ...(await release("default")) };
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    return { about, ...(await release("reload")) }; // a cache may hold one file of an older release
  }
}

async function release(cache) {
  const [text, buffer] = await Promise.all([
    fetched("release/release.json", cache),
    fetched("release/release.safetensors", cache),
  ]);
  const facts = json(text, "release.json");
  checkFacts(facts);
  if ((await isWhole(buffer, facts.sha256)) === false) {
    throw new Damaged("the item factors are not those that release.json describes");
  }
  return { facts, buffer };
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

/** Return whether bytes have this SHA-256; undefined where the browser does not tell (pages that are not secure). */
async function isWhole(buffer, sha256) {
  if (!globalThis.crypto?.subtle) return undefined;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", buffer));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("") === sha256;
}

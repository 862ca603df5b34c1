// Fetches what the page needs, once, and checks that it is whole and of one release.

import { Damaged, Unreachable } from "./errors.js";
import { checkFacts } from "./release.js";
import { sha256 } from "./sha256.js";

const ABOUT = "about.json";
const FACTS = "release/release.json";
const TENSORS = "release/release.safetensors";
const PAUSES = [300, 600, 1200]; // milliseconds before each further attempt

/**
 * Return {about, facts, buffer, fetched}: what is said about the release, release.json, the bytes of its tensors, and the
 * bytes of all three files by path.
 *
 * about.json is always revalidated; it holds the digests of the two files, and their paths, which change with their
 * content. While a release is being replaced, files may be missing or belong to two releases: then all are fetched again,
 * a few times. A page that about.json no longer belongs to is loaded again as a whole.
 */
export async function load() {
  for (let attempt = 0; ; attempt++) {
    try {
      return await fetchAll(attempt ? "reload" : "no-cache");
    } catch (error) {
      if (attempt === PAUSES.length) throw error;
    }
    await new Promise((done) => setTimeout(done, PAUSES[attempt]));
  }
}

async function fetchAll(cache) {
  const bytes = await fetched(ABOUT, cache);
  const about = json(bytes, ABOUT);
  if (about?.format !== "dpmf-site") throw new Damaged("about.json does not describe a site");
  if (about.page !== document.querySelector("meta[name=page-version]").content) {
    await reloadOnce();
    throw new Damaged("about.json belongs to another version of this page");
  }
  const later = cache === "no-cache" ? "default" : cache; // a name stands for its content
  const [text, buffer] = await Promise.all([FACTS, TENSORS].map((name) => fetched(pathOf(about, name), later)));
  for (const [name, content] of [[FACTS, text], [TENSORS, buffer]]) {
    if ((await sha256(content)) !== about.sha256?.[name]) throw new Damaged(`${name} is not the one that about.json describes`);
  }
  const facts = json(text, "release.json");
  checkFacts(facts);
  if (about.sha256[TENSORS] !== facts.sha256) throw new Damaged("the item factors are not those that release.json describes");
  return { about, facts, buffer, fetched: { [ABOUT]: bytes, [pathOf(about, FACTS)]: text, [pathOf(about, TENSORS)]: buffer } };
}

/** Load the page again, which revalidates index.html, and never return; return at once if that has just been done. */
async function reloadOnce() {
  if (performance.getEntriesByType("navigation")[0]?.type === "reload") return;
  location.reload();
  await new Promise(() => {});
}

function pathOf(about, name) {
  const path = about.paths?.[name];
  if (typeof path !== "string") throw new Damaged(`about.json has no path for ${name}`);
  return path;
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

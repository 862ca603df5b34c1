// Keeps a copy of this site in the browser, so that it opens without a network (see sw.js). Files of the site and nothing else:
// whatever somebody enters is in local storage. All of it happens before the page gives up the right to connect.

const PREFIX = "dpmf-site:"; // as in sw.js
const MANIFEST = "about.json";
const PATIENCE = 30_000; // milliseconds that the page waits for its copy
const WORKER = new URL("../sw.js", import.meta.url).href;

/**
 * Store what makes this site: the fetched parts of the release and all files of the page. Where that is impossible, for
 * lack of room or of a secure address, the page just needs a network.
 * @param {object} about the manifest, which lists all files
 * @param {Record<string, ArrayBuffer>} fetched path → content, as checked
 */
export async function keepCopy(about, fetched) {
  if (!("serviceWorker" in navigator) || !("caches" in window)) return;
  try {
    await Promise.race([store(about, fetched), patience()]);
    await navigator.serviceWorker.register(WORKER);
  } catch (error) {
    console.info(`No copy for use without a network: ${error.message}`);
  }
}

/** Throw after a while: a host that does not answer must not keep the page from opening. */
function patience() {
  return new Promise((_, reject) => {
    AbortSignal.timeout(PATIENCE).addEventListener("abort", () => reject(new Error("it takes too long")));
  });
}

async function store(about, fetched) {
  const site = `${PREFIX}${location.pathname.replace(/[^/]*$/, "")}:`;
  const cache = await caches.open(site + about.page); // a new version of the page is complete before an old one goes
  const there = await cache.match(MANIFEST);
  if (there && sameBytes(await there.arrayBuffer(), fetched[MANIFEST])) return;
  const has = new Set((await cache.keys()).map(({ url }) => url));
  const isThere = (path) => has.has(new URL(path, location.href).href);
  for (const [path, content] of Object.entries(fetched)) {
    if (path !== MANIFEST && !isThere(path)) await cache.put(path, answer(path, content));
  }
  if (!isThere("./")) await cache.put("./", await indexOf(about.page));
  await cache.addAll(about.files.filter((path) => path !== MANIFEST && path !== "index.html" && !isThere(path) && !(path in fetched)));
  await cache.put(MANIFEST, answer(MANIFEST, fetched[MANIFEST])); // from here on, this is the copy that is used
  const wanted = new Set(["./", ...about.files].map((path) => new URL(path, location.href).href));
  for (const request of await cache.keys()) if (!wanted.has(request.url)) await cache.delete(request);
  for (const name of await caches.keys()) if (name.startsWith(site) && name !== site + about.page) await caches.delete(name);
}

/** Return index.html as it was sent, of this version of the page: most likely from the browser's cache. */
async function indexOf(version) {
  for (const cache of ["force-cache", "no-cache"]) {
    const response = await fetch("./", { cache, credentials: "omit" });
    const text = await response.clone().text();
    if (response.ok && !response.redirected && text.includes(`content="${version}"`)) return response;
  }
  throw new Error("the host has another version of the page by now");
}

const answer = (path, content) =>
  new Response(content, { headers: { "Content-Type": path.endsWith(".json") ? "application/json" : "application/octet-stream" } });

function sameBytes(one, other) {
  const [here, there] = [new Uint8Array(one), new Uint8Array(other)];
  return here.length === there.length && here.every((byte, place) => byte === there[place]);
}

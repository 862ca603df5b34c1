// The service worker: lets the page open without a network. It only reads what js/offline.js has stored, and where that is
// not wanted passes the page's own request on. It stores nothing, hears no messages, and asks for nothing by itself.

const PREFIX = "dpmf-site:";
const MANIFEST = "about.json"; // stored last: a cache that has it is complete
// From the network wherever there is one. All other names change with their content.
const FRESH = ["", "index.html", MANIFEST, "js/recovery.js"];

addEventListener("install", () => skipWaiting());

addEventListener("fetch", (event) => {
  const { request } = event;
  const path = pathOf(request);
  if (path === null) return; // the browser's own business
  const isFresh = FRESH.includes(path) || request.cache === "reload";
  event.respondWith(isFresh ? fresh(request, path) : kept(request, path));
});

/** Return the path of a request within this site, null for anything but a plain GET of a file of it. */
function pathOf({ method, url }) {
  const { scope } = registration;
  const address = url.split("#", 1)[0];
  return method === "GET" && address.startsWith(scope) && !address.includes("?") ? address.slice(scope.length) : null;
}

async function fresh(request, path) {
  try {
    return await fetch(request);
  } catch (error) {
    const found = await stored(path === "index.html" ? "" : path);
    if (found) return found;
    throw error;
  }
}

async function kept(request, path) {
  return (await stored(path)) ?? fetch(request);
}

/** Return a file of the newest complete copy of this site, if there is any. */
async function stored(path) {
  const { scope } = registration;
  const names = (await caches.keys()).filter((name) => name.startsWith(`${PREFIX}${new URL(scope).pathname}:`));
  for (const name of names.reverse()) {
    const cache = await caches.open(name);
    if (await cache.match(scope + MANIFEST)) return cache.match(scope + path);
  }
  return undefined;
}

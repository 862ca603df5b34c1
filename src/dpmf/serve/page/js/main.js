// Puts the page together: loads the release, gives up the right to connect, and shows what changes.

import { startEngine } from "./engine.js";
import { makeCatalogue } from "./catalogue.js";
import { forgetColours } from "./colours.js";
import { $ } from "./dom.js";
import { Damaged, Unreachable } from "./errors.js";
import { completeManifest } from "./install.js";
import { load } from "./load.js";
import { forbidConnections, forbidEverything } from "./lock.js";
import { keepCopy } from "./offline.js";
import { makeScale } from "./scale.js";
import { makeReader, makeStore, migrate, oldName, openStorage, storageName } from "./store.js";
import { startTheme } from "./theme.js";
import { makeDiscover } from "./views/discover.js";
import { makeItemView } from "./views/item.js";
import { makeMap } from "./views/map.js";
import { fillOffer } from "./views/offer.js";
import { fillPrivacy } from "./views/privacy.js";
import { makeRatings } from "./views/ratings.js";
import { makeRouter } from "./router.js";

const FIRST = 12; // recommendations

const measure = (name, start) => performance.measure(name, { start }); // for whoever looks at the browser's timeline

async function start() {
  const storage = openStorage();
  let views = [];
  startTheme(storage, () => {
    forgetColours();
    for (const view of views) view.render();
  });
  completeManifest();
  const { about, facts, buffer, fetched } = await load();
  fillPrivacy({ about, facts, sizes: buffer.byteLength });
  fillOffer(about);
  await keepCopy(about, fetched);
  forbidConnections();
  const engine = await startEngine();
  forbidEverything();

  const app = makeApp(storage, facts, engine);
  const opened = await opening(engine, { facts, buffer, places: about.map });
  app.map = opened.map;
  app.shapes = { ...opened.shapes, spreads: spreadsOf(opened.shapes, opened.map) };
  app.starters = opened.starters;
  app.areKnown = opened.areKnown; // whether starters are by popularity
  const router = makeRouter();
  const item = makeItemView(app);
  const map = makeMap(app);
  app.openItem = item.open;
  app.showOnMap = (position) => {
    router.go("map");
    map.show(position);
  };
  views = [makeDiscover(app), makeRatings(app), map, item];
  router.onChange(() => map.render());

  const update = () => {
    const begun = performance.now();
    const used = [...app.store.used()].sort((one, other) => one.position - other.position);
    const content = {
      items: used.map((entry) => entry.position), values: used.map((entry) => entry.rating),
      k: app.wanted, genre: app.genre,
    };
    $("recommendations").setAttribute("aria-busy", "true");
    engine.askLatest("person", content, (answer, isLatest) => {
      const { scores, best, order, taste } = answer;
      Object.assign(app, { scores, best, order, taste });
      for (const view of views) view.render();
      $("recommendations").setAttribute("aria-busy", String(!isLatest));
      measure("update", begun);
      requestAnimationFrame(() => setTimeout(() => measure("paint", begun)));
      document.body.dataset.state = "ready";
    });
  };
  app.want = (count) => {
    app.wanted = count;
    update();
  };
  app.only = (genre) => {
    app.genre = genre;
    app.wanted = FIRST;
    update();
  };
  app.store.onChange(update);
  window.addEventListener("storage", (event) => event.key === app.store.name && app.store.reread());
  update();
}

function makeApp(storage, facts, engine) {
  const implicit = facts.feedback === "implicit";
  const catalogue = makeCatalogue(facts.items);
  const scale = makeScale(facts.scale, implicit);
  const reader = makeReader({ catalogue, scale, implicit });
  const site = oldName(location.pathname);
  const name = storageName(location.pathname, { feedback: implicit ? "implicit" : "explicit", lo: scale.lo, hi: scale.hi });
  migrate(storage, site, name, reader);
  const store = makeStore({ storage, name, site, reader, catalogue });
  document.body.classList.toggle("implicit", implicit);
  const { ranking = null } = facts; // its threshold, if items are ordered by a ranking part
  return {
    catalogue, scale, store, engine, ranking, wanted: FIRST, genre: "", scores: null, best: [], order: "nothing",
    taste: [],
  };
}

async function opening(engine, content) {
  try {
    return await engine.ask("open", content, [content.buffer]);
  } catch (error) {
    throw new Damaged(error.message);
  }
}

function spreadsOf({ places, width }, { n, mapped }) {
  return Array.from({ length: width }, (_, axis) => {
    let [square, count] = [0, 0];
    for (let item = 0; item < n; item++) {
      if (!mapped[item]) continue; // emblems tell those apart of which something is known
      square += places[item * width + axis] ** 2;
      count += 1;
    }
    return Math.sqrt(square / count);
  });
}

function fail(error) {
  if (!(error instanceof Damaged || error instanceof Unreachable)) console.error(error);
  const [title, words] =
    error instanceof Damaged ? ["The release is damaged", `It cannot be used: ${error.message}. Whoever runs this site should export it again.`] :
    error instanceof Unreachable ? ["The release cannot be reached", `${error.message}. Check the connection, and try again.`] :
    ["This browser cannot run the page", "It needs a browser of the last few years, with JavaScript modules and workers."];
  $("failure-title").textContent = title;
  $("failure-words").textContent = `${words} Your ratings, if you gave any, are still in this browser.`;
  document.body.dataset.state = "failed";
  $("failure-title").focus();
}

$("retry").addEventListener("click", () => location.reload());
start().catch(fail);

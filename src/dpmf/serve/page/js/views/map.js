// The map: items that the same people like near each other, and where somebody's taste lies.

import { announce } from "../announce.js";
import { $, h } from "../dom.js";
import { drawMap } from "../drawing.js";
import { clamped, extentOf, makeCamera } from "../camera.js";
import { colour } from "../colours.js";
import { shadingOf } from "../shading.js";

const REACH = 22; // pixels within which a point is meant
const STEP = 1.6; // of zooming
const LISTED = 6;
const OTHER = 8; // the colour of genres without one of their own

/** Set the view up, and return {render, show}. */
export function makeMap(app) {
  const canvas = $("map-canvas");
  const tip = $("map-tip");
  const extent = extentOf(app.map);
  const camera = makeCamera(extent);
  let shading = null; // and the colours and the genre that it is of
  let chosen = null; // under the pointer, or walked to with the keyboard
  let only = null; // a genre
  let drag = null;

  const draw = () => {
    if (document.body.dataset.view !== "map") return;
    camera.fit(canvas.clientWidth, canvas.clientHeight);
    drawMap(canvas, app, camera, { chosen, only, shading: currentShading() });
    placeTip();
    listBest();
  };

  function currentShading() {
    const of = `${colour("surface")} ${only}`;
    const groups = only === null ? Array.from({ length: OTHER + 1 }, (_, group) => group) : [only];
    if (shading?.of !== of) shading = { of, ...shadingOf(app, extent, groups) };
    return shading;
  }

  /** Say in words what the stars on the map are. */
  function listBest() {
    const best = app.store.used().length ? app.best.slice(0, LISTED) : [];
    $("map-best").replaceChildren(...best.map(({ item }) =>
      h("li", {}, h("button", { type: "button", onclick: () => app.openItem(item), onmouseenter: () => choose(item) },
        h(`span.tint.g${app.catalogue.colourOf(item)}`, { "aria-hidden": "true" }), h("span.what", {}, app.catalogue.titles[item]),
        app.scores && h("span.value", {}, app.scale.show(app.scores[item]))))));
    $("map-best-empty").hidden = best.length > 0;
    $("map-taste").hidden = best.length === 0 || app.taste.length > 0;
  }

  function placeTip() {
    tip.hidden = chosen === null;
    if (chosen === null) return;
    const [x, y] = camera.toScreen(...placeOf(chosen));
    const expected = app.scores ? `expected ${app.scale.show(app.scores[chosen])}` : "";
    const rating = app.store.get(chosen);
    const words = rating === null || app.scale.implicit ? expected : `you gave ${app.scale.showRating(rating)}`;
    const genres = app.catalogue.genresOf(chosen).join(", ");
    const left = clamped(x, tip.offsetWidth / 2 + 4, canvas.clientWidth - tip.offsetWidth / 2 - 4);
    tip.replaceChildren(h("b", {}, app.catalogue.titles[chosen]), h("span", {}, [genres, words].filter(Boolean).join(" · ")));
    tip.style.setProperty("--x", `${left}px`);
    tip.style.setProperty("--y", `${y}px`);
    tip.classList.toggle("below", y < 90);
  }

  const placeOf = (item) => [app.map.places[2 * item], app.map.places[2 * item + 1]];
  const isShown = (item) => app.map.mapped[item] === 1 && (only === null || app.catalogue.colourOf(item) === only);

  /** Return the item nearest to a point of the screen, if `accept` takes it. */
  function nearest(x, y, limit, accept = () => true) {
    let found = null;
    let least = limit * limit;
    for (let item = 0; item < app.map.n; item++) {
      if (!isShown(item)) continue;
      const [px, py] = camera.toScreen(...placeOf(item));
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least && accept(px - x, py - y, item)) [found, least] = [item, distance];
    }
    return found;
  }

  function choose(item) {
    if (item === chosen) return;
    chosen = item;
    requestAnimationFrame(draw);
  }

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = at(event);
    if (drag) {
      camera.pan(x - drag.x, y - drag.y);
      drag = { x, y, moved: drag.moved + Math.abs(x - drag.x) + Math.abs(y - drag.y) };
      requestAnimationFrame(draw);
    } else {
      choose(nearest(x, y, REACH));
    }
  });
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = at(event);
    if (event.pointerType !== "mouse") choose(nearest(x, y, REACH));
    drag = { x, y, moved: 0 };
  });
  canvas.addEventListener("pointerup", (event) => {
    const clicked = drag && drag.moved < 6;
    drag = null;
    // A finger has no hover: the first tap names an item, and the tip opens it.
    if (clicked && event.pointerType === "mouse" && chosen !== null) app.openItem(chosen);
  });
  canvas.addEventListener("pointerleave", () => {
    drag = null;
  });
  tip.addEventListener("click", () => chosen !== null && app.openItem(chosen));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // scrolling stays scrolling
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 100), ...at(event));
  }, { passive: false });

  function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
    camera.zoom(factor, x, y);
    canvas.classList.toggle("zoomed", camera.isZoomed());
    requestAnimationFrame(draw);
  }
  $("map-in").addEventListener("click", () => zoom(STEP));
  $("map-out").addEventListener("click", () => zoom(1 / STEP));
  $("map-reset").addEventListener("click", () => zoom(0));

  const turns = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(STEP);
    else if (event.key === "-") zoom(1 / STEP);
    else if (event.key === "Enter" && chosen !== null) app.openItem(chosen);
    else if (event.key in turns) walk(...turns[event.key]);
    else return;
    event.preventDefault();
  });

  /** Go to the nearest item that lies more this way than to either side. */
  function walk(dx, dy) {
    const from = chosen === null ? [canvas.clientWidth / 2, canvas.clientHeight / 2] : camera.toScreen(...placeOf(chosen));
    const ahead = (x, y, item) => item !== chosen && x * dx + y * dy > Math.abs(x * dy + y * dx) && x * dx + y * dy > 2;
    const found = nearest(...from, Infinity, chosen === null ? undefined : ahead);
    if (found === null) return;
    choose(found);
    announce(`${app.catalogue.titles[found]}, ${app.catalogue.genresOf(found).join(", ")}`);
  }

  const genres = app.catalogue.coloured.map((name, place) => [name, place]);
  const rest = app.map.mapped.some((is, item) => is && app.catalogue.colourOf(item) === OTHER);
  if (rest) genres.push([genres.length ? "Other or none" : "All", OTHER]);
  const legend = genres.map(([name, place]) =>
    h(`button.genre.g${place}`, {
      type: "button", "aria-pressed": "false",
      onclick: (event) => {
        only = only === place ? null : place;
        for (const button of $("legend").children) button.setAttribute("aria-pressed", "false");
        event.currentTarget.setAttribute("aria-pressed", String(only === place));
        chosen = null;
        draw();
      },
    }, name));
  $("legend").append(...legend);
  const count = app.map.mapped.reduce((total, is) => total + is, 0);
  if (count < app.map.n) {
    $("map-known").textContent =
      `${count.toLocaleString("en")} of ${app.map.n.toLocaleString("en")} titles are on the map: of the others, too little is known to place them.`;
  }
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(canvas);
  return {
    render: draw,
    show: (item) => {
      only = null;
      chosen = item;
      camera.zoom(0);
      requestAnimationFrame(draw);
      canvas.focus();
    },
  };
}

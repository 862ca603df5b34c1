// "Your ratings": what somebody rated, and taking it out, in and away.

import { notify } from "../announce.js";
import { $, arrange, h } from "../dom.js";
import { Unusable } from "../errors.js";
import { ratingControl } from "../rating.js";

const FIRST = 100; // rows: thousands would slow every change down
const MORE = 400;

/** Set the view up, and return {render}. */
export function makeRatings(app) {
  const rows = new Map();
  let shown = FIRST;

  function row(position) {
    if (!rows.has(position)) {
      const control = ratingControl(app, position);
      const title = h(
        "button.title",
        { type: "button", "aria-haspopup": "dialog", onclick: () => app.openItem(position) },
        app.catalogue.titles[position],
      );
      const tint = h(`span.tint.g${app.catalogue.colourOf(position)}`, { "aria-hidden": "true" });
      rows.set(position, { element: h("li", {}, tint, title, control.element), sync: control.sync });
    }
    rows.get(position).sync();
    return rows.get(position).element;
  }

  function render() {
    const used = app.store.used();
    const unused = app.store.size - used.length;
    arrange($("rated"), used.slice(-shown).map(({ position }) => row(position)).reverse());
    $("rated-more").hidden = used.length <= shown;
    $("rated-more").textContent = `Show more of ${used.length.toLocaleString("en")}`;
    $("rated-count").textContent = used.length ? used.length.toLocaleString("en") : "";
    $("nav-count").textContent = used.length ? used.length.toLocaleString("en") : "";
    $("rated-empty").hidden = used.length > 0;
    $("rated-unused").hidden = unused === 0;
    $("rated-unused").textContent =
      `${unused} more ${unused === 1 ? "is" : "are"} not in this catalogue or not on its scale: kept, and not used.`;
    $("export").disabled = app.store.size === 0;
    $("erase").disabled = app.store.isEmpty;
    $("not-kept").hidden = app.store.isKept;
  }

  $("rated-more").addEventListener("click", () => {
    const last = $("rated").lastElementChild;
    shown += MORE;
    render();
    last.nextElementSibling?.querySelector("button.title").focus();
  });
  $("export").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([app.store.text()], { type: "application/json" }));
    h("a", { href: address, download: "my-ratings.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 1000);
    notify("Saved as my-ratings.json, on this device.");
  });
  $("import").addEventListener("click", () => $("import-file").click());
  $("import-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = ""; // the same file may be chosen again
    if (file) await take(file);
  });
  $("erase").addEventListener("click", () => $("erase-dialog").showModal());
  $("erase-dialog").addEventListener("close", () => {
    if ($("erase-dialog").returnValue !== "erase") return;
    app.store.erase();
    notify("Erased. This browser keeps nothing of them.");
    $("ratings-title").focus();
  });

  async function take(file) {
    try {
      if (file.size > 5_000_000) throw new Unusable("The file is too large to be a list of ratings.");
      notify(takenWords(app.store.take(await file.text())));
    } catch (error) {
      notify(error instanceof Unusable ? error.message : "The file cannot be read.", "error");
    }
  }
  return { render };
}

function takenWords({ taken, unknown, refused }) {
  const words = [`${taken} imported.`];
  if (unknown) words.push(`${unknown} not in this catalogue, kept and not used.`);
  if (refused) words.push(`${refused} left out: not on the scale, or not a rating.`);
  return words.join(" ");
}

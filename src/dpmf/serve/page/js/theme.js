// Light or dark: as the system says, until somebody chooses.

import { $ } from "./dom.js";

const NAME = "dpmf-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

/** Follow the system and the button; call `redraw` when colours change. */
export function startTheme(storage, redraw) {
  let chosen = storage?.getItem(NAME) ?? null;
  const apply = () => {
    const theme = chosen ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    $("theme").setAttribute("aria-pressed", String(theme === "dark"));
    redraw();
  };
  system.addEventListener("change", apply);
  $("theme").addEventListener("click", () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try {
      storage?.setItem(NAME, chosen);
    } catch {
      // it is only a colour
    }
    apply();
  });
  apply();
}

// Fetches what the page needs from its own host, once: the agreement, and the catalogue that it is about.

import { Damaged, Unreachable } from "../errors.js";

const NAMES = ["join/agreement.json", "join/catalogue.json"];

/** Return {text, catalogue}: the agreement's file, and the bytes of the catalogue's. */
export async function fetchAgreement() {
  const { paths } = JSON.parse(decoded(await fetched("about.json")));
  const [text, catalogue] = await Promise.all(NAMES.map((name) => {
    if (typeof paths?.[name] !== "string") throw new Damaged("this site offers no agreement");
    return fetched(paths[name]);
  }));
  return { text: decoded(text), catalogue };
}

const decoded = (bytes) => new TextDecoder().decode(bytes);

async function fetched(path) {
  const asked = { cache: "no-cache", credentials: "omit", referrerPolicy: "no-referrer" };
  const response = await fetch(path, asked).catch(() => null);
  if (!response?.ok) throw new Unreachable(`${path} could not be fetched`);
  return new Uint8Array(await response.arrayBuffer());
}

// Reads releases as the page does, and says of each whether it was read, refused, or neither.
//
// node page.mjs SCRIPTS FOLDER: SCRIPTS is the folder of the page's modules, and FOLDER has folders 0, 1, 2, … of releases.

import { existsSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [scripts, folder] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${scripts}/${name}`).href);
let answer = null;
let listen = null;
globalThis.self = { addEventListener: (_, listener) => (listen = listener), postMessage: (message) => (answer = message) };
const [{ Damaged }, { checkFacts }, { makeCatalogue }, { makeScale }] = await Promise.all(
  ["errors.js", "release.js", "catalogue.js", "scale.js"].map(load),
);
await load("worker.js");

function ask(question, content) {
  listen({ data: { id: 1, question, content } });
  if (answer.failure) throw new Error(answer.failure);
  return answer.answer;
}

function read(place) {
  let facts;
  try {
    facts = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(readFileSync(`${place}/release.json`)));
  } catch {
    return "refused";
  }
  const bytes = readFileSync(`${place}/release.safetensors`);
  try {
    checkFacts(facts);
  } catch (error) {
    if (error instanceof Damaged) return "refused";
    throw error;
  }
  const catalogue = makeCatalogue(facts.items);
  const scale = makeScale(facts.scale, facts.feedback === "implicit");
  try {
    const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    ask("open", { facts, buffer, places: Buffer.alloc(4 * catalogue.size).toString("base64") }); // all in one place
  } catch {
    return "refused"; // the page says that the release is damaged
  }
  if (catalogue.size === 0) return "read";
  const items = [...new Set([0, Math.floor(catalogue.size / 2)])];
  const { scores, best } = ask("person", { items, values: items.map(() => scale.hi), k: 3, genre: "" });
  if (scores && ![...scores].every(Number.isFinite)) throw new Error("a score is not a number");
  for (const { item } of best) ask("item", { item, k: 3 });
  catalogue.search("a", 3);
  return "read";
}

for (let number = 0; existsSync(`${folder}/${number}`); number++) {
  let outcome;
  try {
    outcome = read(`${folder}/${number}`);
  } catch (error) {
    outcome = String(error.stack ?? error).split("\n").slice(0, 2).join(" ");
  }
  console.log(outcome);
}

// Bytes, hexadecimal digits and texts.

/** What somebody else sent is not what it should be. The text says what is wrong, and nothing of the content. */
export class Refused extends Error {}

/** Return bytes as hexadecimal digits. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Return the bytes that hexadecimal digits stand for; refuse anything else, or another number of bytes. */
export function unhex(text, length) {
  if (typeof text !== "string" || !/^([0-9a-f]{2})*$/.test(text) || text.length !== 2 * length) {
    throw new Refused("a key, a signature or a digest is not one");
  }
  return Uint8Array.from({ length }, (_, place) => parseInt(text.slice(2 * place, 2 * place + 2), 16));
}

/** Return texts and arrays of bytes, one after the other. */
export function joined(...parts) {
  const all = parts.map((part) => (typeof part === "string" ? new TextEncoder().encode(part) : part));
  const found = new Uint8Array(all.reduce((total, part) => total + part.length, 0));
  let place = 0;
  for (const part of all) {
    found.set(part, place);
    place += part.length;
  }
  return found;
}

/** Return a whole number below 2³² as 4 bytes. */
export function fourBytes(number) {
  const found = new Uint8Array(4);
  new DataView(found.buffer).setUint32(0, number, true);
  return found;
}

/** Return -1, 0 or 1: which of two arrays of the same length comes first. */
export function compared(one, other) {
  const place = one.findIndex((byte, at) => byte !== other[at]);
  return place < 0 ? 0 : Math.sign(one[place] - other[place]);
}

/** Return SHA-256. */
export const sha256 = async (bytes) => new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));

// SHA-256 (FIPS 180-4), for pages on which the browser does not offer it: those fetched over plain http.

const ROUNDS = 64;
const { K, START } = constants();

/** Return the SHA-256 of a buffer in hexadecimal. */
export async function sha256(buffer) {
  const subtle = globalThis.crypto?.subtle;
  return subtle ? hex(new Uint8Array(await subtle.digest("SHA-256", buffer))) : sha256Here(buffer);
}

/** Return the same, computed here. */
export function sha256Here(buffer) {
  const bytes = new Uint8Array(buffer);
  const whole = bytes.length - (bytes.length % 64);
  const state = Uint32Array.from(START);
  const words = new Uint32Array(ROUNDS);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let offset = 0; offset < whole; offset += 64) mix(state, words, view, offset);
  const rest = padded(bytes.subarray(whole), bytes.length);
  for (let offset = 0; offset < rest.byteLength; offset += 64) mix(state, words, rest, offset);
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((word, place) => digest.setUint32(4 * place, word));
  return hex(new Uint8Array(digest.buffer));
}

/** Return the last bytes with a one, zeros and the length of all in bits after them. */
function padded(tail, length) {
  const bytes = new Uint8Array(tail.length < 56 ? 64 : 128);
  bytes.set(tail);
  bytes[tail.length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 8, Math.floor(length / 2 ** 29));
  view.setUint32(bytes.length - 4, (length * 8) >>> 0);
  return view;
}

function mix(state, w, view, offset) {
  for (let t = 0; t < 16; t++) w[t] = view.getUint32(offset + 4 * t);
  for (let t = 16; t < ROUNDS; t++) {
    const early = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ (w[t - 15] >>> 3);
    const late = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ (w[t - 2] >>> 10);
    w[t] = w[t - 16] + early + w[t - 7] + late;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let t = 0; t < ROUNDS; t++) {
    const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
    const two = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  [a, b, c, d, e, f, g, h].forEach((word, place) => (state[place] += word));
}

const turned = (word, by) => (word >>> by) | (word << (32 - by));
const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Return the first 32 bits of the fractions of cube roots and square roots of the first primes. */
function constants() {
  const primes = [];
  for (let n = 2; primes.length < ROUNDS; n++) if (primes.every((prime) => n % prime)) primes.push(n);
  const bits = (root) => Math.floor((root - Math.floor(root)) * 2 ** 32);
  return { K: Uint32Array.from(primes, (prime) => bits(Math.cbrt(prime))), START: primes.slice(0, 8).map((prime) => bits(Math.sqrt(prime))) };
}

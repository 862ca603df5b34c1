// Sealed channels between two parties, as in dpmf.federated.wire.channels, version 2: X25519, HKDF-SHA-256 and AES-256-GCM.
// The nonce is a counter that precedes the sealed message. Keys cannot be extracted, and are gone with the page.

import { Refused, compared, joined } from "./bytes.js";

const COUNTER = 8;
const TAG = 16;
const INFO = "dpmf federated channel 2";

/** How many bytes longer a message is once sealed. */
export const OVERHEAD = COUNTER + TAG;

/** Return new keys: {privateKey, public}. */
export async function makeKeys() {
  const { privateKey, publicKey } = await crypto.subtle.generateKey({ name: "X25519" }, false, ["deriveBits"]);
  return { privateKey, public: new Uint8Array(await crypto.subtle.exportKey("raw", publicKey)) };
}

/** Return one end of a channel: {seal, open}. */
export async function openChannel(keys, other) {
  const order = compared(keys.public, other);
  if (order === 0) throw new Refused("the public key is our own");
  const [first, second] = await channelKeys(keys, other, order < 0);
  const [outgoing, incoming] = order < 0 ? [first, second] : [second, first];
  let [sealed, opened] = [0n, 0n];
  return {
    /** Return bytes sealed, preceded by the counter. */
    async seal(content) {
      const nonce = nonceOf(++sealed);
      return joined(nonce.subarray(4), new Uint8Array(await crypto.subtle.encrypt(gcm(nonce), outgoing, content)));
    },
    /** Return the content of a sealed message, which has to be newer than all that were opened before. */
    async open(message) {
      if (message.length < OVERHEAD) throw new Refused("the message is too short to be sealed");
      const number = new DataView(message.buffer, message.byteOffset).getBigUint64(0, true);
      const content = await crypto.subtle
        .decrypt(gcm(nonceOf(number)), incoming, message.subarray(COUNTER))
        .catch(() => Promise.reject(new Refused("the seal is broken")));
      if (number <= opened) throw new Refused("the message was received before, or is older than one that was");
      opened = number;
      return new Uint8Array(content);
    },
  };
}

async function channelKeys(keys, other, isFirst) {
  const [one, two] = isFirst ? [keys.public, other] : [other, keys.public];
  try {
    const theirs = await crypto.subtle.importKey("raw", other, { name: "X25519" }, false, []);
    const secret = await crypto.subtle.deriveBits({ name: "X25519", public: theirs }, keys.privateKey, 256);
    const base = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    const how = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info: joined(INFO, one, two) };
    const bits = await crypto.subtle.deriveBits(how, base, 512);
    const keyOf = (part) => crypto.subtle.importKey("raw", part, "AES-GCM", false, ["encrypt", "decrypt"]);
    return [await keyOf(bits.slice(0, 32)), await keyOf(bits.slice(32))];
  } catch {
    throw new Refused("the public key is not valid");
  }
}

function nonceOf(number) {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setBigUint64(4, number, true);
  return nonce;
}

const gcm = (iv) => ({ name: "AES-GCM", iv, tagLength: 8 * TAG });

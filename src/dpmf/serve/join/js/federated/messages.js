// Questions and answers as bytes, as in dpmf.federated.certified.messages: refused unless they are what was agreed upon.

import { Refused, compared, joined } from "./bytes.js";

const VERSION = 2;
const HEADER = 6;
const INQUIRY = 16;
const ANSWER = 17;
const DIGEST = 16;
const SEED = 32;
const ARRAYS = { "<f8": Float64Array, "<f4": Float32Array, "<i4": Int32Array };

/** How many bytes an answer has before its numbers, and a question before its arrays. */
export const ANSWER_START = HEADER;
export const INQUIRY_START = HEADER + DIGEST + SEED;

/** Return how many bytes the arrays of a round have together. */
export const toldBytes = (told) => told.reduce((total, one) => total + sizeOf(one) * bytesOf(one), 0);

/** Return whether a question may come with an array of this kind. */
export const isArray = ({ dtype }) => Object.hasOwn(ARRAYS, dtype);

/** Return {round, seed, told}: what a question asks for, with its arrays by name. */
export function readInquiry(content, agreement) {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  if (content.length < INQUIRY_START) throw new Refused("the message is too short");
  if (view.getUint8(0) !== VERSION) throw new Refused("the message has another version of the wire");
  if (view.getUint8(1) !== INQUIRY) throw new Refused("the message is of another kind");
  const round = view.getUint32(2, true);
  if (round >= agreement.rounds.length) throw new Refused("the round is not in the agreement");
  if (compared(content.subarray(HEADER, HEADER + DIGEST), agreement.digest) !== 0) {
    throw new Refused("the question is of another agreement");
  }
  const listed = agreement.rounds[round].told;
  if (content.length !== INQUIRY_START + toldBytes(listed)) throw new Refused("the message has the wrong length");
  const seed = content.slice(HEADER + DIGEST, INQUIRY_START);
  const told = {};
  let place = INQUIRY_START;
  for (const one of listed) {
    const end = place + sizeOf(one) * bytesOf(one);
    told[one.name] = new ARRAYS[one.dtype](content.slice(place, end).buffer); // the same byte order as every browser's
    if (!told[one.name].every((number) => number >= one.least && number <= one.most)) {
      throw new Refused(`${one.name} is out of range`);
    }
    place = end;
  }
  return { round, seed, told };
}

/** Return an answer as bytes. */
export function answerBytes(round, packed) {
  const header = new DataView(new ArrayBuffer(HEADER));
  header.setUint8(0, VERSION);
  header.setUint8(1, ANSWER);
  header.setUint32(2, round, true);
  return joined(new Uint8Array(header.buffer), packed);
}

const sizeOf = ({ shape }) => shape.reduce((total, length) => total * length, 1);
const bytesOf = ({ dtype }) => ARRAYS[dtype].BYTES_PER_ELEMENT;

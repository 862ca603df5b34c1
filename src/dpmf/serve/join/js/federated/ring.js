// Integers modulo P = 256ⁿ, what is added up behind masks. A number takes 4 bytes of a mask, or 8 from five on, and n on
// the wire. Whole numbers of up to 53 bits are exact as JavaScript has them; an element of more is in two halves of 32.

const WORD = 2 ** 32;

/** Return how many bytes of a mask an element takes. */
export const maskBytes = (nBytes) => (nBytes <= 4 ? 4 : 8);

/**
 * Return numbers behind a mask, packed.
 * @param {Float64Array} numbers whole, below 2⁵³ in size
 * @param {Uint8Array} stream `maskBytes(nBytes)` for each of them
 * @param {number} nBytes of an element on the wire, from 1 to 8
 */
export function masked(numbers, stream, nBytes) {
  const packed = new Uint8Array(numbers.length * nBytes);
  const masks = new DataView(stream.buffer, stream.byteOffset, stream.byteLength);
  const element = new DataView(new ArrayBuffer(8));
  const size = maskBytes(nBytes);
  numbers.forEach((number, place) => {
    if (!Number.isSafeInteger(number)) throw new RangeError("a number of an answer is not whole, or too large");
    const low = (number >>> 0) + masks.getUint32(size * place, true);
    element.setUint32(0, low, true); // modulo 2³²
    if (size === 8) {
      const high = (Math.floor(number / WORD) >>> 0) + masks.getUint32(8 * place + 4, true) + (low >= WORD ? 1 : 0);
      element.setUint32(4, high, true);
    }
    for (let byte = 0; byte < nBytes; byte++) packed[nBytes * place + byte] = element.getUint8(byte);
  });
  return packed;
}

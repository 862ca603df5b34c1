// Reads a safetensors file: eight bytes with the length of a JSON header, the header, and the numbers.

import { Damaged } from "./errors.js";

const LENGTH_BYTES = 8;
const TYPES = {
  F32: [Float32Array, "getFloat32"], F16: [Uint16Array, "getUint16"], I64: [BigInt64Array, "getBigInt64"],
  I32: [Int32Array, "getInt32"], I16: [Int16Array, "getInt16"], U8: [Uint8Array, "getUint8"],
}; // 16-bit floats are left as bits: not every browser has an array of them
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/**
 * Return the tensors of a file: name → {dtype, shape, data}. `data` shares memory with the buffer where it can.
 * @param {ArrayBuffer} buffer
 */
export function readTensors(buffer) {
  if (buffer.byteLength < LENGTH_BYTES) throw new Damaged("the tensor file is too short");
  const view = new DataView(buffer);
  const length = Number(view.getBigUint64(0, true));
  const start = LENGTH_BYTES + length;
  if (!(start <= buffer.byteLength)) throw new Damaged("the tensor file is cut off");
  const header = parse(new Uint8Array(buffer, LENGTH_BYTES, length));
  const tensors = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name !== "__metadata__") tensors.set(name, tensor(buffer, start, name, entry));
  }
  return tensors;
}

function parse(bytes) {
  try {
    const header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    if (header && typeof header === "object") return header;
  } catch {
    // said below
  }
  throw new Damaged("the tensor file has no header");
}

function tensor(buffer, start, name, entry) {
  const { dtype, shape, data_offsets: offsets } = entry ?? {};
  if (!Object.hasOwn(TYPES, dtype)) throw new Damaged(`the tensor ${name} has a type that this page does not read`);
  if (!Array.isArray(shape) || !Array.isArray(offsets)) throw new Damaged(`the tensor ${name} has no shape`);
  const count = shape.reduce((product, size) => product * size, 1);
  const [first, last] = offsets;
  if (!Number.isInteger(count) || last - first !== TYPES[dtype][0].BYTES_PER_ELEMENT * count || first < 0 || start + last > buffer.byteLength) {
    throw new Damaged(`the tensor ${name} is cut off`);
  }
  return { dtype, shape, data: numbers(buffer, start + first, count, ...TYPES[dtype]) };
}

function numbers(buffer, offset, count, Type, read) {
  const size = Type.BYTES_PER_ELEMENT;
  if (LITTLE_ENDIAN && offset % size === 0) return new Type(buffer, offset, count);
  if (LITTLE_ENDIAN) return new Type(buffer.slice(offset, offset + size * count));
  const view = new DataView(buffer, offset, size * count);
  return Type.from({ length: count }, (_, place) => view[read](size * place, true));
}

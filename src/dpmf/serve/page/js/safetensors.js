// Reads a safetensors file: eight bytes with the length of a JSON header, the header, and the numbers.

import { Damaged } from "./errors.js";

const LENGTH_BYTES = 8;
const LITTLE_ENDIAN = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/**
 * Return the float32 tensors of a file: name → {shape, data}. `data` shares memory with the buffer where it can.
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
  if (dtype !== "F32") throw new Damaged(`the tensor ${name} should hold 32-bit numbers`);
  if (!Array.isArray(shape) || !Array.isArray(offsets)) throw new Damaged(`the tensor ${name} has no shape`);
  const count = shape.reduce((product, size) => product * size, 1);
  const [first, last] = offsets;
  if (!Number.isInteger(count) || last - first !== 4 * count || first < 0 || start + last > buffer.byteLength) {
    throw new Damaged(`the tensor ${name} is cut off`);
  }
  return { shape, data: floats(buffer, start + first, count) };
}

function floats(buffer, offset, count) {
  if (LITTLE_ENDIAN && offset % 4 === 0) return new Float32Array(buffer, offset, count);
  if (LITTLE_ENDIAN) return new Float32Array(buffer.slice(offset, offset + 4 * count));
  const view = new DataView(buffer, offset, 4 * count);
  return Float32Array.from({ length: count }, (_, place) => view.getFloat32(4 * place, true));
}

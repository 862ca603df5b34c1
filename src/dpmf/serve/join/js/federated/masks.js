// Masks: key streams of AES-256 in counter mode, which whoever knows the 32 bytes of the seed can compute.

/** Return the first bytes of the key stream of a seed. */
export async function maskStream(seed, nBytes) {
  const key = await crypto.subtle.importKey("raw", seed, "AES-CTR", false, ["encrypt"]);
  const start = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  return new Uint8Array(await crypto.subtle.encrypt(start, key, new Uint8Array(nBytes)));
}

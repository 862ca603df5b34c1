// Ed25519 identities: what servers, inviters and participants sign. Every signature begins with what it is for.

import { Refused, fourBytes, hex, joined } from "./bytes.js";

const PREFIX = "dpmf-invitation-1:";
const [HANDLE, SEED, CERTIFICATE] = [4, 32, 64];
const PKCS8 = Uint8Array.of(48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32); // what precedes a seed (RFC 8410)

/** Return whether the owner of a public key signed content for a purpose. */
export async function isSigned(publicKey, purpose, content, signature) {
  try {
    const key = await crypto.subtle.importKey("raw", publicKey, { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, joined(`dpmf-${purpose}:`, content));
  } catch {
    return false;
  }
}

/** Return {handle, key, publicKey, certificate}: what an invitation holds. It is a secret of one person. */
export async function readInvitation(text) {
  const content = decoded(text.trim());
  const seed = content.subarray(HANDLE, HANDLE + SEED);
  const imported = (isExtractable) =>
    crypto.subtle.importKey("pkcs8", joined(PKCS8, seed), { name: "Ed25519" }, isExtractable, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", await imported(true)); // the public key
  const key = await imported(false);
  return {
    handle: new DataView(content.buffer).getUint32(0, true),
    publicKey: fromBase64(x),
    certificate: content.slice(HANDLE + SEED),
    sign: async (purpose, signed) =>
      new Uint8Array(await crypto.subtle.sign("Ed25519", key, joined(`dpmf-${purpose}:`, signed))),
  };
}

/** Refuse an invitation to something else, or by somebody else. */
export async function checkInvitation({ handle, publicKey, certificate }, agreement) {
  const { admission, id } = agreement;
  const invited = joined(id, fourBytes(handle), publicKey);
  if (handle < admission.most && (await isSigned(admission.key, "invitation", invited, certificate))) return;
  throw new Refused(`this invitation is not to this agreement, or not from ${admission.by}`);
}

/** Return what a participant says first, to both servers alike. */
export async function joinMessage(invitation, agreement, publicKey, sessions) {
  const { handle, certificate } = invitation;
  const content = joined(agreement.id, fourBytes(handle), publicKey, ...sessions);
  return JSON.stringify({
    type: "join",
    handle,
    public: hex(publicKey),
    sessions: sessions.map(hex),
    key: hex(invitation.publicKey),
    certificate: hex(certificate),
    signature: hex(await invitation.sign("join", content)),
  });
}

function decoded(text) {
  const content = text.startsWith(PREFIX) ? fromBase64(text.slice(PREFIX.length)) : new Uint8Array(0);
  if (content.length === HANDLE + SEED + CERTIFICATE) return content;
  throw new Refused(`this is no invitation, or a part of one: it should begin with ${PREFIX}`);
}

function fromBase64(text) {
  if (!/^[\w-]*$/.test(text)) return new Uint8Array(0);
  try {
    return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array(0);
  }
}

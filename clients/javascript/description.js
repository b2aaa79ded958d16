/** Descriptions of clients: whether one is intact, and what is read in it. */

/** What no report can be made from: a damaged or foreign file, or a value outside. */
export class ClientError extends Error {
  get name() {
    return "ClientError";
  }
}

/** The bytes of a text. Those of ASCII need nothing of the system, which may be a small one. */
export function utf8(text) {
  if (!/^[\0-\x7f]*$/.test(text)) {
    if (typeof TextEncoder === "undefined") throw new ClientError("this system has no TextEncoder");
    return new TextEncoder().encode(text);
  }
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}

export const hex = (bytes) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
export const own = (object, key) => Object.prototype.hasOwnProperty.call(object, key);
export const plain = (value) =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** A copy of the description, which nobody can change, if it is intact and of this version. */
export function checked(given, version) {
  const content = plain(given) && given.format === "mechdesign.protocol" ? given.client : given;
  if (!plain(content) || content.format !== "mechdesign.client") {
    throw new ClientError("no description of a client: make one with protocol.client()");
  }
  if (content.version !== 1 && content.version !== 2) {
    throw new ClientError(`version ${shown(content.version)}, this client reads 1 and 2`);
  }
  if (content.version !== version) {
    const other = version === 1 ? "loadMemoised" : "load";
    throw new ClientError(`version ${content.version}: use ${other} for questions like this`);
  }
  if (content.digest !== digestOf(content)) {
    throw new ClientError("the digest does not match: the description was changed");
  }
  return JSON.parse(canonical(content), (_, one) => Object.freeze(one));
}

/** Of everything but the digest itself. */
export function digestOf(content) {
  const { digest, ...rest } = content;
  return `shake256:${hex(sponge(canonical(rest), 32))}`;
}

/** JSON as Python writes it with sorted keys and without spaces: ASCII alone. */
export function canonical(content) {
  if (Array.isArray(content)) return `[${content.map(canonical).join()}]`;
  if (plain(content)) {
    const keys = Object.keys(content).sort();
    return `{${keys.map((key) => `${canonical(key)}:${canonical(content[key])}`).join()}}`;
  }
  if (typeof content === "number" && !Number.isSafeInteger(content)) {
    throw new ClientError(`${content} in a description is no integer, or too large for one`);
  }
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(content).replace(/[\u007f-\uffff]/g, escaped);
}

/** The same with BigInts in the place of numbers, and of texts of digits, which are large ones. */
export function numbers(content) {
  if (Array.isArray(content)) return content.map(numbers);
  if (plain(content)) {
    return Object.fromEntries(Object.entries(content).map(([key, one]) => [key, numbers(one)]));
  }
  if (typeof content === "string") return /^[0-9]+$/.test(content) ? BigInt(content) : content;
  return typeof content === "number" ? BigInt(content) : content;
}

/** So many bytes of SHAKE-256. */
export function sponge(text, size) {
  const state = new Int32Array(50);
  const rate = 136;
  const result = new Uint8Array(size);
  let place = 0;
  for (const byte of utf8(text)) {
    state[place >> 2] ^= byte << (8 * (place & 3));
    place = (place + 1) % rate;
    if (place === 0) permute(state);
  }
  state[place >> 2] ^= 0x1f << (8 * (place & 3));
  state[(rate - 1) >> 2] ^= 0x80 << 24;
  for (place = 0; place < size; place++) {
    if (place % rate === 0) permute(state);
    result[place] = state[(place % rate) >> 2] >>> (8 * (place & 3));
  }
  return result;
}

/** Keccak-f[1600]: 25 lanes of 64 bits, the lower half of each first. */
function permute(s) {
  const row = new Int32Array(10);
  let feedback = 1;
  for (let round = 0; round < 24; round++) {
    for (let x = 0; x < 10; x++) row[x] = s[x] ^ s[x + 10] ^ s[x + 20] ^ s[x + 30] ^ s[x + 40];
    for (let x = 0; x < 10; x += 2) {
      const low = row[(x + 2) % 10];
      const high = row[(x + 3) % 10];
      const first = row[(x + 8) % 10] ^ ((low << 1) | (high >>> 31));
      const second = row[(x + 9) % 10] ^ ((high << 1) | (low >>> 31));
      for (let y = x; y < 50; y += 10) {
        s[y] ^= first;
        s[y + 1] ^= second;
      }
    }
    let low = s[2];
    let high = s[3];
    for (let t = 0; t < 24; t++) {
      const to = LANES[t];
      const by = TURNS[t] % 32;
      const a = TURNS[t] < 32 ? low : high;
      const b = TURNS[t] < 32 ? high : low;
      low = s[to];
      high = s[to + 1];
      s[to] = by ? (a << by) | (b >>> (32 - by)) : a;
      s[to + 1] = by ? (b << by) | (a >>> (32 - by)) : b;
    }
    for (let y = 0; y < 50; y += 10) {
      for (let x = 0; x < 10; x++) row[x] = s[y + x];
      for (let x = 0; x < 10; x++) s[y + x] ^= ~row[(x + 2) % 10] & row[(x + 4) % 10];
    }
    for (let j = 0; j < 7; j++) {
      const bit = (1 << j) - 1;
      if (feedback & 1) s[bit >> 5] ^= 1 << (bit & 31);
      feedback = (feedback << 1) ^ ((feedback >> 7) * 0x171);
    }
  }
}

/** Where lanes move to, one after the other, and by how much they are turned. */
const LANES = [];
const TURNS = [];
for (let t = 1, x = 1, y = 0; t < 25; t++) {
  [x, y] = [y, (2 * x + 3 * y) % 5];
  LANES.push(10 * y + 2 * x);
  TURNS.push(((t * (t + 1)) / 2) % 64);
}

/** A value, or the start of it, for messages. */
export function shown(value) {
  if (plain(value) || Array.isArray(value)) return Array.isArray(value) ? "a list" : "an object";
  return (typeof value === "string" ? JSON.stringify(value) : String(value)).slice(0, 40);
}

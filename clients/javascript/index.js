/**
 * Make private reports in browsers, Deno and Node, without dependencies.
 *
 * A client runs the description of a protocol's client half, which `Protocol.client` gives and
 * protocol files hold: what a value is, which part of the question is answered, which public coins
 * are tossed, and how the answer is randomised, by integers alone. `docs/wire.md` says what each
 * step does; the same steps in Python are in `frequency/clients/device.py`.
 *
 * Words, items and public coins may have 64 bits: they are BigInts, as is what is computed with
 * them. Sizes, widths and places in arrays are Numbers.
 */

import { ClientError, canonical, checked, hex, numbers, utf8 } from "./description.js";
import { checkIntegers, put, systemRandom, systemWords } from "./draws.js";
import { memoised } from "./memoised.js";
import { node } from "./nodes.js";
import { SKIPPED, taker } from "./values.js";

export { ClientError };

/**
 * The client of a protocol: see index.d.ts.
 *
 * Whatever is wrong with the file is found here, before anything is drawn.
 */
export function load(json, words) {
  return loaded(json, 1, (description) => client(description, words));
}

/**
 * The client of a question that is asked every day: see index.d.ts.
 *
 * Whatever is wrong with the description or the state is found here, before anything is drawn.
 */
export function loadMemoised(json, store, start, words) {
  return loaded(json, 2, (description) => {
    return memoised(description, partsOf(description, words), store, start);
  });
}

function loaded(json, version, make) {
  checkIntegers();
  try {
    return make(checked(typeof json === "string" ? JSON.parse(json) : json, version));
  } catch (error) {
    if (error instanceof ClientError) throw error;
    throw new ClientError(`no protocol file, or a malformed one: ${error.message}`);
  }
}

/** What makes an item of a value, the bytes of the wire, the step that draws, and its words. */
function partsOf({ protocol, epsilon, odds, wire, takes, report: steps, bytes }, words) {
  const take = taker(takes);
  const word = words || systemWords();
  const step = node(numbers(steps), word);
  if (step.size !== bytes) throw new ClientError(`reports of ${step.size} bytes, not ${bytes}`);
  if (!/^[0-9a-f]{16}$/.test(wire)) throw new ClientError("no name of the protocol");
  if (![protocol, epsilon, odds].every((text) => typeof text === "string")) {
    throw new ClientError("no protocol, epsilon or odds in the description");
  }
  const name = wire.match(/../g).map((byte) => parseInt(byte, 16));
  return { take, name, step, word };
}

function client(description, words) {
  const { protocol, epsilon, odds, wire, takes } = description;
  const { take, name, step } = partsOf(description, words);
  const { size, draw, idle } = step;
  const report = (value) => {
    const item = take(value);
    if (item === SKIPPED) return null;
    const out = new Uint8Array(8 + size);
    out.set(name);
    if (item === null) idle(out, 8);
    else draw(item, out, 8);
    return out;
  };
  return Object.freeze({ report, protocol, epsilon, odds, wire, takes });
}

/** A report as text: standard base64. */
export function base64(bytes) {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

/** A file of reports of one client, counted once; null, of users who skip, is left out. */
export function batch(client, reports) {
  const told = Array.from(reports).filter((report) => report !== null);
  const size = told.length && told[0].length;
  const named = (one) => one instanceof Uint8Array && hex(one.subarray(0, 8)) === client.wire;
  if (!told.every((one) => named(one) && one.length === size)) {
    throw new ClientError(`not all of these are reports of ${client.protocol}`);
  }
  const id = hex(systemRandom(new Uint8Array(16)));
  const header = { count: told.length, id, kind: "reports", protocol: client.wire, version: 2 };
  const text = utf8(canonical(header));
  const body = (size - 8) * told.length;
  const result = new Uint8Array(8 + text.length + (told.length && body));
  result.set(utf8("LDPF"));
  put(result, 4, 4, BigInt(text.length));
  result.set(text, 8);
  told.forEach((one, k) => result.set(one.subarray(8), 8 + text.length + k * (size - 8)));
  return result;
}

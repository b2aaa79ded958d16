/** Reports of many days, made of permanent ones that the device keeps: see `docs/wire.md`. */

import { ClientError, canonical, digestOf, hex, numbers, plain, shown } from "./description.js";
import { rational } from "./draws.js";
import { SKIPPED } from "./values.js";

const FORMAT = "mechdesign.permanent_reports";

/** The client of a description, with the state in a store: see `loadMemoised` in index.d.ts. */
export function memoised(description, { take, name, step, word }, store, start) {
  const { protocol, epsilon, odds, wire, takes, digest: client, memoised: given } = description;
  const { values, starts, day } = given;
  const { kept, permanent, blank } = numbers({ ...given, day: "" });
  const send = rational(word, kept);
  const accepted = [permanent, blank].map((chances) => chances.map((one) => rational(word, one)));
  if (accepted.some((chances) => chances.length !== step.likelihoods)) {
    throw new ClientError("not as many chances as a report has likelihoods");
  }
  if (!day || ![values, starts].every((number) => Number.isSafeInteger(number) && number > 0)) {
    throw new ClientError("no day, values or starts in the description");
  }
  const isStart = (number) => Number.isInteger(number) && number >= 1 && number <= starts;

  /** The start, and the permanent report of each item, in order of appearance. */
  const read = () => {
    const text = store.read();
    if (typeof text !== "string") throw new ClientError("the state is lost");
    let state;
    try {
      state = JSON.parse(text);
    } catch (error) {
      throw new ClientError(`no state of a client: ${error.message}`);
    }
    if (!plain(state) || state.format !== FORMAT) throw new ClientError("no state of a client");
    if (state.version !== 1) {
      throw new ClientError(`version ${shown(state.version)} of a state, this client reads 1`);
    }
    if (state.digest !== digestOf(state)) {
      throw new ClientError("the digest does not match: the state was changed");
    }
    if (state.client !== client) {
      throw new ClientError("a state of another question, or of other parameters");
    }
    let known;
    let inside;
    try {
      known = new Map(state.kept.map(entry));
      inside = state.kept.every(([item]) => isItem(takes, numbers(item)));
    } catch (error) {
      throw new ClientError(`no state of a client: ${error.message}`);
    }
    if (!inside) throw new ClientError("a state with an item beyond the domain");
    const sized = [...known.values()].every((payload) => payload.length === step.size);
    const few = isStart(state.start) && known.size <= values && sized;
    if (!few || written(state.start, known) !== canonical(state)) {
      throw new ClientError("a state that this client did not write");
    }
    return { start: state.start, known };
  };

  const written = (number, known) => {
    const reports = [...known].map(([item, payload]) => [JSON.parse(item), hex(payload)]);
    const state = { format: FORMAT, version: 1, client, start: number, kept: reports };
    return canonical({ ...state, digest: digestOf(state) });
  };

  /** A report, kept with one of the chances of its kind that its likelihood decides. */
  const drawn = (item, chances) => {
    for (;;) {
      const payload = new Uint8Array(step.size);
      step.draw(item, payload, 0);
      if (chances[step.place(payload, 0, item)]()) return payload;
    }
  };

  const report = (value) => {
    const item = take(value);
    if (item === SKIPPED) return null;
    if (item === null) throw new ClientError("a value is not an item: no report could be kept");
    const { start: number, known } = read();
    const key = named(item);
    if (!known.has(key) && known.size < values) {
      known.set(key, drawn(item, accepted[0]));
      store.write(written(number, known));
    }
    let payload = known.get(key) || [...known.values()].pop();
    if (!send()) payload = drawn(Array.isArray(item) ? item.map(() => 0n) : 0n, accepted[1]);
    const out = new Uint8Array(8 + step.size);
    out.set(name);
    out.set(payload, 8);
    return out;
  };

  if (typeof store.read() !== "string") {
    if (start === undefined) {
      throw new ClientError(
        "no state. To begin, say which start of this user's device it is: 1 is the first, and" +
          " each further one reveals as much again",
      );
    }
    if (!isStart(start)) {
      throw new ClientError(`start ${shown(start)} is not one of 1 .. ${starts}`);
    }
    store.write(written(start, new Map()));
  }
  const { start: found } = read();
  if (start !== undefined && start !== found) {
    throw new ClientError(`a state of start ${found}, not ${shown(start)}`);
  }
  return Object.freeze({ report, protocol, epsilon, odds, day, start: found, wire, takes });
}

/** An item as a state has it: canonical JSON, in which large integers are texts. */
function named(item) {
  if (Array.isArray(item)) return `[${item.map(named).join()}]`;
  return item < 1n << 53n ? `${item}` : `"${item}"`;
}

/** Whether values of this kind have such an item: a number, or one for each part. */
function isItem(takes, item) {
  const { kind, sizes, size, bytes, limbs, number, as } = takes;
  if (kind === "schema") return isItem(as, item);
  const several = kind === "spelt" || (kind === "record" && !number);
  let ends = (sizes || [size]).map((one) => BigInt(one ?? 0));
  if (kind === "spelt") ends = Array(limbs).fill(1n << 64n);
  if (kind === "string") ends = [256n ** BigInt(bytes)];
  const parts = several ? item : [item];
  if (!several) ends = [ends.reduce((product, one) => product * one, 1n)];
  const inside = (one, k) => typeof one === "bigint" && one >= 0n && one < ends[k];
  return Array.isArray(parts) && parts.length === ends.length && parts.every(inside);
}

/** An item and its report, from a state. */
function entry([item, text]) {
  const bytes = text.match(/../g) || [];
  return [named(numbers(item)), Uint8Array.from(bytes, (byte) => parseInt(byte, 16))];
}

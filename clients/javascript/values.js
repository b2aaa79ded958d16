/** What a user has: values as items, records or sets of items. */

import { ClientError, own, plain, shown, utf8 } from "./description.js";
import { bisect, mixed } from "./expressions.js";

export const SKIPPED = Symbol("the user does not report");

/** The function that makes an item, a record or a set of a value; null for a user without. */
export function taker(takes) {
  const make = TAKERS.get(takes.kind);
  if (!make) throw new ClientError(`values of an unknown kind: ${shown(takes.kind)}`);
  const take = make(takes);
  return takes.none === true ? (value) => (value === null ? null : take(value)) : take;
}

function integerTaker(size) {
  const many = BigInt(size);
  return (value) => {
    const whole = typeof value === "bigint" || Number.isSafeInteger(value);
    if (whole && value >= 0 && value < many) return BigInt(value);
    throw new ClientError(`${shown(value)} is not an integer in 0 .. ${many - 1n}`);
  };
}

/** The bytes of a text; null of anything else, of U+0000 and of half a surrogate pair. */
function spelling(value) {
  const text = typeof value === "string" && !value.includes("\0") && !/\p{Surrogate}/u.test(value);
  return text ? utf8(value) : null;
}

function stringTaker({ bytes }) {
  return (value) => {
    const spelt = spelling(value);
    if (spelt === null || spelt.length > bytes) {
      const expected = `a text of at most ${bytes} bytes of UTF-8 without U+0000`;
      throw new ClientError(`${shown(value)} is not ${expected}`);
    }
    const filled = new Uint8Array(bytes);
    filled.set(spelt);
    return filled.reduce((item, byte) => (item << 8n) | BigInt(byte), 0n);
  };
}

/** Texts by a prefix code: a word as a list of integers of 64 bits, the first bits in the first. */
function speltTaker({ bytes, limbs, codes: lengths }) {
  const check = stringTaker({ bytes });
  const codes = [];
  let code = 0n;
  let before = 0;
  const order = [...lengths.keys()].filter((byte) => lengths[byte] > 0);
  for (const byte of order.sort((a, b) => lengths[a] - lengths[b] || a - b)) {
    codes[byte] = code << BigInt(lengths[byte] - before);
    code = codes[byte] + 1n;
    before = lengths[byte];
  }
  return (value) => {
    check(value);
    let word = 0n;
    let bits = 64 * limbs;
    for (const byte of [...utf8(value), 0]) {
      const inside = byte >= 0x80 && byte < 0xc0;
      bits -= inside ? 6 : lengths[byte];
      word |= (inside ? BigInt(byte & 0x3f) : codes[byte]) << BigInt(bits);
    }
    return Array.from({ length: limbs }, (_, k) =>
      BigInt.asUintN(64, word >> BigInt(64 * (limbs - 1 - k))),
    );
  };
}

/** The values of a list, or of an object by names; `more` of which there may be. */
function entries(value, names, more = false) {
  const all = plain(value) && names.every((name) => own(value, name));
  if (all && (more || Object.keys(value).length === names.length)) {
    return names.map((name) => value[name]);
  }
  if (Array.isArray(value) && value.length === names.length) return Array.from(value); // no holes
  const absent = plain(value) ? names.filter((name) => !own(value, name)) : [];
  const got = absent.length ? `none for ${absent.join(", ")}` : `${shown(value)}`;
  throw new ClientError(`expected a value for each of ${names.join(", ")}, got ${got}`);
}

function recordTaker({ names, sizes, number }) {
  const each = sizes.map(integerTaker);
  const many = sizes.map(BigInt);
  return (value) => {
    const record = entries(value, names).map((entry, place) => each[place](entry));
    return number ? mixed(record.map((entry, place) => [entry, many[place]])) : record;
  };
}

function setTaker({ size, kept, of }) {
  const one = of ? taker(of) : integerTaker(size);
  const wanted = kept === null ? null : new Set(kept.map(BigInt));
  return (value) => {
    if (!Array.isArray(value) && !(value instanceof Set)) {
      throw new ClientError(`expected a list of items, got ${shown(value)}`);
    }
    const items = [...new Set(Array.from(value, one))];
    return items.filter((item) => !wanted || wanted.has(item)).sort((a, b) => (a < b ? -1 : 1));
  };
}

/** Values in labels and units, of one attribute or of several. */
function schemaTaker({ attributes, as }) {
  const names = attributes.map(({ name }) => name);
  const each = attributes.map(attributeTaker);
  const take = taker(as);
  return (value) => {
    const alone = names.length === 1 && !plain(value);
    const given = alone ? [value] : entries(value, names, true);
    const found = given.map((entry, place) => each[place](entry));
    if (found.includes(SKIPPED)) return SKIPPED;
    return take(as.kind === "record" ? found : found[0]);
  };
}

const MISSING = Symbol("a missing value");
const BELOW = Symbol("below");
const ABOVE = Symbol("above");
const NO_VALUE = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "<NA>"];
const SPACE = "[\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const SPACES = new RegExp(`^${SPACE}+|${SPACE}+$`, "g");
const NUMBER = /^[ \t\r\n]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t\r\n]*$/;
const CLOCK = /(\d\d)(?::(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?)?/.source;
const TIME = new RegExp(
  `^[ \\t-\\r]*(\\d{4})-(\\d\\d)(?:-(\\d\\d)(?:[T ](?:${CLOCK})?)?)?[ \\t-\\r]*$`,
);
const TRUTHS = new Map();
for (const text of ["false", "no", "n", "f", "0"]) TRUTHS.set(text, 0);
for (const text of ["true", "yes", "y", "t", "1"]) TRUTHS.set(text, 1);

const isNothing = (value) => value === null || value === undefined || Number.isNaN(value);
const stripped = (text) => text.replace(SPACES, "");
const isNoValue = (value) =>
  isNothing(value) || (typeof value === "string" && NO_VALUE.includes(stripped(value)));

const READABLE = "a text, a number, true or false";

/** A value as its label is written; undefined if it cannot be one. */
function labelOf(value) {
  if (typeof value !== "number") {
    return ["string", "bigint", "boolean"].includes(typeof value) ? `${value}` : undefined;
  }
  if (Number.isInteger(value)) return `${BigInt(value)}`;
  if (!Number.isFinite(value)) return undefined;
  const [, sign, digits, places] = /^(-?)([0-9.]+)(?:e-([0-9]+))?$/.exec(`${value}`);
  if (!places) return `${value}`;
  return `${sign}0.${"0".repeat(places - 1)}${digits.replace(".", "")}`; // 1e-7 in full
}

function attributeTaker(attribute) {
  const { name, kind, missing, outside } = attribute;
  const refuse = (value, expected) => {
    throw new ClientError(`${name}: ${shown(value)} is not ${expected}`);
  };
  if (kind === "text") return textTaker(attribute, refuse);
  const make = ATTRIBUTES.get(kind);
  if (!make) throw new ClientError(`an attribute of an unknown kind: ${shown(kind)}`);
  const { bins, bin, expected } = make(attribute, refuse);
  const extra = new Map();
  if (outside === "item") extra.set("outside", bins);
  if (missing === "item") extra.set("missing", bins + extra.size);
  return (value) => {
    const found = bin(value, extra);
    if (found === MISSING) {
      if (missing === "skip") return SKIPPED;
      return extra.get("missing") ?? refuse(value, "a value");
    }
    if (typeof found === "number") return found;
    if (outside === "item") return bins;
    if (outside !== "clip") return refuse(value, expected);
    return found === BELOW ? 0 : bins - 1;
  };
}

function textTaker({ bytes, missing, outside }, refuse) {
  return (value) => {
    if (isNothing(value)) {
      if (missing === "skip") return SKIPPED;
      return missing === "item" ? "" : refuse(value, "a value");
    }
    const text = labelOf(value);
    const spelt = spelling(text);
    if (spelt !== null && spelt.length <= bytes) return text;
    if (spelt === null || outside !== "clip") {
      return refuse(value, `a text of at most ${bytes} bytes of UTF-8`);
    }
    let end = bytes; // a character that is cut is left out
    while ((spelt[end] & 0xc0) === 0x80) end--;
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(spelt.subarray(0, end));
  };
}

function labelled(bins, expected, find, refuse) {
  const bin = (value, extra) => {
    if (!isNothing(value) && typeof value === "object") refuse(value, READABLE);
    return find(labelOf(value)) ?? extra.get(value) ?? (isNoValue(value) ? MISSING : ABOVE);
  };
  return { bins, bin, expected };
}

const ATTRIBUTES = new Map(
  Object.entries({
    categorical: ({ labels }, refuse) => {
      const places = new Map(labels.map((label, place) => [label, place]));
      return labelled(labels.length, "one of its labels", (text) => places.get(text), refuse);
    },
    boolean: (_, refuse) => {
      const find = (text) => (text === undefined ? text : TRUTHS.get(stripped(text).toLowerCase()));
      return labelled(2, "yes or no", find, refuse);
    },
    numeric: ({ whole, cuts }, refuse) => {
      const { bins, first, last, find } = binsOf(cuts);
      const expected = whole ? "an integer" : "a finite number";
      const bin = (value, extra) => {
        if (extra.has(value)) return extra.get(value);
        if (isNoValue(value)) return MISSING;
        const number = numberOf(value);
        if (Number.isNaN(number)) refuse(value, "a number");
        if (whole ? !Number.isInteger(number) : !Number.isFinite(number)) refuse(value, expected);
        if (number < first) return BELOW;
        if (number >= last) return number === last && !whole ? bins - 1 : ABOVE;
        return find(number);
      };
      return { bins, bin, expected: `from ${first} to ${last - (whole ? 1 : 0)}` };
    },
    dates: ({ cuts }, refuse) => {
      const { bins, first, last, find } = binsOf(cuts);
      const bin = (value, extra) => {
        if (extra.has(value)) return extra.get(value);
        if (isNoValue(value)) return MISSING;
        const time = typeof value === "string" ? timeOf(value) : NaN;
        if (Number.isNaN(time)) refuse(value, "a date or time as 2024-01-31 or 2024-01-31 09:30");
        return time < first ? BELOW : time >= last ? ABOVE : find(time);
      };
      const day = (time) => new Date(1000 * time).toISOString().slice(0, 16);
      return { bins, bin, expected: `from ${day(first)} until ${day(last)}` };
    },
  }),
);

/** Bins between edges, which are a list, or some of one width. */
function binsOf(cuts) {
  if (Array.isArray(cuts)) {
    const edges = cuts.map(Number);
    const bins = edges.length - 1;
    return { bins, first: edges[0], last: edges[bins], find: (x) => bisect(edges, x) - 1 };
  }
  const { first, step, bins } = cuts;
  const find = (x) => {
    const bin = Math.floor((x - first) / step);
    return first + step * bin > x ? bin - 1 : bin; // what is just below an edge was rounded up
  };
  return { bins, first, last: first + step * bins, find };
}

/** A number, or what a text spells; NaN for what is none. */
function numberOf(value) {
  const spelt = typeof value === "string" ? NUMBER.test(value) : typeof value === "bigint";
  return spelt || typeof value === "number" ? Number(value) : NaN;
}

/** Seconds since 1970 of a date or time, both without a zone; NaN for what is none. */
function timeOf(text) {
  const [, year, month, ...rest] = (TIME.exec(text) || []).map(Number);
  const [day, hour, minute, second] = rest.map((part, k) => (isNaN(part) ? +(k === 0) : part));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const real = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  const known = real && hour < 24 && minute < 60 && second < 60;
  return known ? date.getTime() / 1000 + 3600 * hour + 60 * minute + second : NaN;
}

const TAKERS = new Map(
  Object.entries({
    item: ({ size }) => integerTaker(size),
    string: stringTaker,
    spelt: speltTaker,
    record: recordTaker,
    set: setTaker,
    schema: schemaTaker,
  }),
);

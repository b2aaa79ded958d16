/** Randomness, word for word: every probability is an integer over 2^64. */

import { ClientError } from "./description.js";

export const WORD = 1n << 64n;

/**
 * Refuse a system whose integers of 64 bits are wrong: its reports would be wrong in silence.
 *
 * Some have signs where there are none. Each check is of an operation that draws are made of.
 */
export function checkIntegers() {
  const half = 1n << 63n;
  const bytes = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0x80);
  const view = new DataView(bytes.buffer);
  const lane = BigUint64Array.of(half | 5n);
  lane[0] |= (WORD - 1n) & ~half;
  const checks = {
    "BigInt.asUintN":
      BigInt.asUintN(64, half) === half &&
      BigInt.asUintN(64, -1n) === WORD - 1n &&
      BigInt.asUintN(64, WORD + half) === half &&
      BigInt.asUintN(6, -7n) === 57n,
    BigUint64Array: lane[0] === WORD - 1n && new BigUint64Array([half])[0] === half,
    "DataView.getBigUint64": view.getBigUint64(0, true) === half,
    BigInt:
      BigInt("11482347865694053996") === 0x9f597e8c3a28a66cn &&
      half / 3n === 0x2aaaaaaaaaaaaaaan &&
      (WORD - 1n) % 10n === 5n &&
      (half * half) >> 64n === 1n << 62n &&
      (-1n >> 1n) + 1n === 0n &&
      half > 0n &&
      Number(half >> 60n) === 8,
    SplitMix64: new Coins(12n).word(0n) === 0xbb907c16b9bbb361n,
  };
  const wrong = Object.keys(checks).filter((name) => !checks[name]);
  if (wrong.length) throw new ClientError(`this system computes wrongly with ${wrong.join(", ")}`);
}

export function systemRandom(bytes) {
  const source = globalThis.crypto;
  if (!source || typeof source.getRandomValues !== "function") {
    throw new ClientError("this system has no crypto.getRandomValues to draw randomness from");
  }
  return source.getRandomValues(bytes);
}

/** Words of the system's randomness, which is read in blocks. */
export function systemWords() {
  const block = new BigUint64Array(512);
  const bytes = new Uint8Array(block.buffer);
  systemRandom(bytes.subarray(0, 1));
  let left = 0;
  return () => {
    if (left === 0) {
      systemRandom(bytes);
      left = block.length;
    }
    return block[--left];
  };
}

/** Uniform numbers 0 .. size - 1. */
export function below(word, size) {
  const step = WORD / size;
  const draw = () => {
    let number;
    do number = word() / step;
    while (number >= size);
    return number;
  };
  return size === 1n ? () => 0n : draw;
}

/** Several such numbers: those that were too large are drawn again after all others. */
export function belows(word, count, size) {
  const step = WORD / size;
  const drawn = Array(count).fill(size);
  if (size === 1n) return drawn.fill(0n);
  while (drawn.some((number) => number >= size)) {
    const over = [...drawn.keys()].filter((place) => drawn[place] >= size);
    for (const place of over) drawn[place] = word() / step;
  }
  return drawn;
}

/** 0 for the truth, 1 .. outcomes - 1 for the lies, for each of which `lie` words stand. */
export function lies(word, outcomes, lie) {
  if (outcomes > 1n && !(lie > 0n && (outcomes - 1n) * lie < WORD)) {
    throw new ClientError(`lies of ${lie} words each leave none for the truth`);
  }
  const draw = () => {
    const place = word() / lie;
    return place < outcomes - 1n ? place + 1n : 0n;
  };
  return outcomes === 1n ? () => 0n : draw;
}

/** True with probability weight / 2^64. */
export function chance(word, weight) {
  if (!(weight >= 0n && weight <= WORD)) throw new ClientError(`a weight of ${weight} words`);
  return weight === WORD ? () => true : () => word() < weight;
}

/** True with any rational probability: 64 more binary places are looked at while they tie. */
export function rational(word, [numerator, denominator]) {
  if (!(numerator >= 0n && numerator <= denominator && denominator > 0n)) {
    throw new ClientError(`${numerator} of ${denominator} is no probability`);
  }
  return () => {
    for (let rest = numerator; ; ) {
      const places = (rest << 64n) / denominator;
      rest = (rest << 64n) % denominator;
      const drawn = word();
      if (drawn !== places || !rest) return drawn < places;
    }
  };
}

/**
 * Bits that are 1 with probability weight / 2^64 each, in bytes.
 *
 * Every bit compares its own uniform number with the weight, the highest place first; 64 of them
 * are a lane, and a lane without an undecided bit draws no more.
 */
export function bits(word, places, weight) {
  const lanes = new BigUint64Array(Math.ceil(places / 64));
  const undecided = lanes.map(() => WORD - 1n);
  let play = [...lanes.keys()];
  let rest = weight;
  for (let place = 63n; play.length && place >= 0n; place--) {
    const one = rest >> place;
    rest -= one << place;
    for (const lane of play) {
      const drawn = word();
      if (one) lanes[lane] |= undecided[lane] & ~drawn;
      undecided[lane] &= one ? drawn : ~drawn;
    }
    if (!rest) break;
    if (place < 59n) play = play.filter((lane) => undecided[lane]);
  }
  const result = new Uint8Array(Math.ceil(places / 8));
  result.forEach((_, at) => put(result, at, 1, lanes[at >> 3] >> BigInt(8 * (at & 7))));
  if (places & 7) result[places >> 3] &= (1 << (places & 7)) - 1;
  return result;
}

export const bitAt = (bytes, place) => (bytes[place >> 3] >> (place & 7)) & 1;

export function setBit(bytes, place, bit) {
  if (bitAt(bytes, place) !== Number(bit)) bytes[place >> 3] ^= 1 << (place & 7);
}

/** Write a number into so many bytes, the lowest first. */
export function put(out, at, width, number) {
  for (let k = 0; k < width; k++) out[at + k] = Number((number >> BigInt(8 * k)) & 255n);
}

/** The number in so many bytes, the lowest first. */
export function get(bytes, at, width) {
  let number = 0n;
  for (let k = width; k--; ) number = (number << 8n) | BigInt(bytes[at + k]);
  return number;
}

/** Public words of a user, any of them computed when it is needed (SplitMix64). */
export class Coins {
  constructor(user, first = 0n) {
    this.user = user;
    this.first = first;
  }

  word(place) {
    return stirred(stirred(this.user) + (this.first + place + 1n) * 0x9e3779b97f4a7c15n);
  }

  below(place, size) {
    return (this.word(place) * size) >> 64n;
  }

  after(count) {
    return new Coins(this.user, this.first + count);
  }
}

function stirred(sum) {
  let word = BigInt.asUintN(64, sum);
  word = BigInt.asUintN(64, (word ^ (word >> 30n)) * 0xbf58476d1ce4e5b9n);
  word = BigInt.asUintN(64, (word ^ (word >> 27n)) * 0x94d049bb133111ebn);
  return word ^ (word >> 31n);
}

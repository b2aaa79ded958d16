/** Items of parts of a question: what is made of an item or a record, and of public coins. */

import { ClientError, shown, sponge } from "./description.js";
import { WORD } from "./draws.js";

/** Whether the number of ones among 64 bits is odd, as 0n or 1n. */
export function parity(value) {
  let bits = Number((value ^ (value >> 32n)) & 0xffffffffn);
  for (let by = 16; by; by >>= 1) bits ^= bits >>> by;
  return BigInt(bits & 1);
}

/** The number with these digits, each with its radix, the last counting fastest. */
export const mixed = (digits) =>
  digits.reduce((number, [digit, radix]) => number * radix + digit, 0n);

/** The digits of a number in these radices, the last counting fastest. */
export function digitsOf(number, radices) {
  const digits = [];
  for (const radix of [...radices].reverse()) {
    digits.unshift(number % radix);
    number /= radix;
  }
  return digits;
}

/** How many of some ascending numbers are at most x. */
export function bisect(ascending, x) {
  let low = 0;
  let high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= x) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The sums of the first numbers: of one, of two, and so on. */
export function accumulated(given) {
  let sum = 0n;
  return given.map((one) => (sum += one));
}

/**
 * F_q, q = p^k: the digits of 0 .. q - 1 in base p are the coefficients of polynomials.
 *
 * `top` is x^k.
 */
export class Field {
  constructor([p, k, top]) {
    Object.assign(this, { p, k, top, q: p ** k });
  }

  /** The sum of two elements, or of vectors of them. */
  add(a, b) {
    if (this.p === 2n) return a ^ b;
    let sum = 0n;
    for (let place = 1n; a || b; place *= this.p) {
      sum += ((a + b) % this.p) * place;
      [a, b] = [a / this.p, b / this.p];
    }
    return sum;
  }

  multiply(a, b) {
    if (this.k === 1n) return (a * b) % this.p;
    let result = 0n;
    const high = this.q / this.p;
    for (let place = high; place; place /= this.p) {
      // Horner's rule
      const over = result / high;
      result = (result % high) * this.p;
      for (let k = 0n; k < over; k++) result = this.add(result, this.top);
      for (let k = (a / place) % this.p; k; k--) result = this.add(result, b);
    }
    return result;
  }

  inverse(a) {
    let result = 1n;
    for (let rest = this.q - 2n; rest; rest >>= 1n) {
      // a^(q - 2)
      if (rest & 1n) result = this.multiply(result, a);
      a = this.multiply(a, a);
    }
    return result;
  }

  /** The inner product of vectors, which are integers with digits in base q. */
  dot(a, x) {
    if (this.q === 2n) return parity(a & x);
    let sum = 0n;
    for (; a && x; a /= this.q, x /= this.q) {
      sum = this.add(sum, this.multiply(a % this.q, x % this.q));
    }
    return sum;
  }
}

/** x^3 in GF(2^64). */
function cubed(x) {
  let result = x;
  for (let k = 0; k < 2; k++) {
    let power = result;
    result = 0n;
    for (let rest = x; rest; rest >>= 1n) {
      if (rest & 1n) result ^= power;
      power <<= 1n;
      if (power >> 64n) power ^= WORD | 27n;
    }
  }
  return result;
}

/** Numbers whose bits are those of an item under so many public functions, from a first one on. */
function publicBits(text, rows) {
  let stream; // made when it is needed
  return (first, places, x) => {
    stream = stream || new DataView(sponge(text, 17 * rows).buffer);
    const cube = cubed(x);
    let result = 0n;
    for (let place = 0; place < places; place++) {
      const row = first + place;
      const linear = stream.getBigUint64(8 * row, true);
      const cubic = stream.getBigUint64(8 * (rows + row), true);
      const constant = BigInt(stream.getUint8(16 * rows + row) & 1);
      result |= (parity((linear & x) ^ (cubic & cube)) ^ constant) << BigInt(place);
    }
    return result;
  };
}

export function linearHash(text, places) {
  const stream = new DataView(sponge(text, 8 * places + 8).buffer);
  const words = Array.from({ length: places + 1 }, (_, k) => stream.getBigUint64(8 * k, true));
  const constant = BigInt.asUintN(places, words.shift());
  return (x) => words.reduce((hash, row, k) => hash ^ (parity(row & x) << BigInt(k)), constant);
}

/** A linear hash of lists of so many integers of 64 bits. */
function wideHash(text, places, limbs) {
  const stream = new DataView(sponge(text, 8 * places * limbs + 8).buffer);
  const constant = BigInt.asUintN(places, stream.getBigUint64(0, true));
  const rows = Array.from({ length: places * limbs }, (_, k) =>
    stream.getBigUint64(8 * k + 8, true),
  );
  return (words) =>
    rows.reduce((hash, row, k) => {
      const place = Math.floor(k / limbs);
      return hash ^ (parity(row & words[k % limbs]) << BigInt(place));
    }, constant);
}

/** Which signs of an item's codeword are -1. */
export function codeword(symbol, field, through) {
  const outer = new Field(field);
  const half = symbol - 1n;
  const mask = (1n << symbol) - 1n;
  return (x, index) => {
    const value = through[index >> half].reduce((sum, factor, i) => {
      return sum ^ outer.multiply(factor, (x >> (symbol * BigInt(i))) & mask);
    }, 0n);
    return parity(value & index & (mask >> 1n)) ^ (value >> half);
  };
}

/** How many cells an axis has, and the cell of each value. */
export function axisOf(axis) {
  if (Array.isArray(axis)) {
    return [BigInt(axis.length + 1), (v) => BigInt(bisect(axis, v))];
  }
  const { width, cells } = axis;
  return [cells, (v) => (v / width < cells ? v / width : cells - 1n)];
}

/** What is made of an item or a record v, and of public coins c. */
export function expression([name, ...given], axes = []) {
  const make = EXPRESSIONS.get(name);
  const all = name === "grid" ? [axes, ...given] : given;
  if (!make || make.length !== all.length) {
    throw new ClientError(`unknown expression ${shown(name)}`);
  }
  return make(...all);
}

function sketch(text, hashes, places) {
  const cell = publicBits(text, Number(hashes * places));
  return (v, c) => cell(Number(c[0] * places), Number(places), v);
}

function cuts(all) {
  const sizes = all.map(([, size]) => size);
  const arcs = all.map(([kind, ...own]) => arcOf[kind](...own));
  return (v, c) =>
    mixed(digitsOf(v, sizes).map((value, j) => [arcs[j](value, c[j]), all[j][2]]));
}

const arcOf = {
  wave(size, arcs, levels) {
    const own = levels.flatMap((many, level) =>
      Array.from({ length: Number(many) }, (_, phase) => [BigInt(level), BigInt(phase), many]),
    );
    return (value, coin) => {
      const [level, phase, phases] = own[coin];
      const turn = ((2n * value + 1n) << level) * arcs * phases + (2n * phase + 1n) * size;
      return (turn / (2n * phases * size)) % arcs;
    };
  },
  masks(size, arcs, masks) {
    return (value, coin) =>
      masks[coin].reduce((sum, mask, bit) => sum + (parity(mask & value) << BigInt(bit)), 0n);
  },
};

function levels(text, places, widths) {
  const many = widths.map((each) => BigInt(each.length));
  const ends = accumulated(many);
  const cell = publicBits(text, Number(places * ends[ends.length - 1]));
  return (v, c) => {
    const hash = digitsOf(c[0], many).reduce((sum, level, j) => {
      const first = Number(places * (ends[j] - many[j] + level));
      return sum ^ cell(first, Number(places), v[j] / widths[j][level]);
    }, 0n);
    return parity(hash & c[1]);
  };
}

const EXPRESSIONS = new Map(
  Object.entries({
    same: () => (v) => v,
    divide: (width) => (v) => v / width,
    hashed: (shift, text, places) => {
      const hash = linearHash(text, Number(places));
      return (v) => hash(v >> shift);
    },
    spelt: (length, text, places) => {
      const rest = BigInt.asUintN(6, -length);
      const limbs = Number((length + rest) / 64n);
      const hash = wideHash(text, Number(places), limbs);
      return (v) => hash([...v.slice(0, limbs - 1), (v[limbs - 1] >> rest) << rest]);
    },
    digits: (steps) => (v) => mixed(steps.map(([step, size]) => [(v / step) % size, size])),
    phase: (steps, order) => (v) =>
      steps.reduce((sum, [step, size, factor]) => sum + ((v / step) % size) * factor, 0n) % order,
    combine: (places) => (v) => mixed(places.map(([place, size]) => [v[place], size])),
    grid: (axes, places) => {
      const own = places.map(([place, axis]) => [place, ...axes[axis]]);
      return (v) => mixed(own.map(([place, size, cell]) => [cell(v[place]), size]));
    },
    sides: (steps) => (v) => {
      let node = 0n;
      let side = 0n;
      for (const [place, shift, bits] of steps) {
        const child = v[place] >> shift;
        node = (node << bits) + (child >> 1n);
        side ^= child & 1n;
      }
      return 2n * node + side;
    },
    turn: (size, width) => (v, c) => ((v + c[0]) % size) / width,
    half: (order) => (v, c) => ((v + c[0]) % order >= (order + 1n) / 2n ? 1n : 0n),
    dot: (field) => {
      const space = new Field(field);
      return (v, c) => space.dot(c[0], v);
    },
    multiple: (field, factors) => {
      const space = new Field(field);
      return (v, c) => {
        let direction = c[0] / factors;
        let power = 1n;
        for (; direction >= power; power *= space.q) direction -= power;
        return space.multiply((c[0] % factors) + 1n, space.dot(direction + power, v));
      };
    },
    walsh: () => (v, c) =>
      c.reduce((signs, index, i) => signs | (parity(index & v) << BigInt(i)), 0n),
    haar: () => (v, c) => parity(c[0] & (v >> 1n)) ^ (v & 1n),
    projection: (text, rows) => {
      const bit = publicBits(text, Number(rows));
      return (v, c) => bit(Number(c[0]), 1, v);
    },
    cell: sketch,
    sketch: (text, hashes, places) => {
      const cell = sketch(text, hashes, places);
      return (v, c) => parity(c[1] & cell(v, c));
    },
    code: (symbol, field, through) => {
      const minus = codeword(symbol, field, through);
      return (v, c) => minus(v, c[0]);
    },
    waves: (all) => cuts(all.map((own) => ["wave", ...own])),
    cuts,
    levels,
  }),
);

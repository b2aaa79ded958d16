/**
 * Steps of a description: how an item becomes a report.
 *
 * A node has the `size` of a report in bytes; `draw(item, out, at)`, which writes a report into the
 * array `out` of zeros from the place `at` on; `likely(coins, item, number, most)`: which of its
 * `likelihoods` the candidate of this number has that the coins draw, and `place(report, at, item)`
 * which the report in an array has; `idle(out, at)`, a report of nobody's item; and of sets
 * `slot(items)`: which of them a report is about.
 */

import { ClientError, shown } from "./description.js";
import { Coins, WORD, belows, below, bitAt, bits, chance } from "./draws.js";
import { get, lies, put, setBit } from "./draws.js";
import { Field, accumulated, axisOf, bisect, codeword, digitsOf } from "./expressions.js";
import { expression, linearHash, mixed } from "./expressions.js";

/** The node of a description; `word` gives uniform integers 0 .. 2^64 - 1. */
export function node({ do: name, ...given }, word) {
  const [names, make] = NODES.get(name) || [];
  if (!make) throw new ClientError(`unknown step ${shown(name)}`);
  if (Object.keys(given).sort().join() !== names.split(" ").sort().join()) {
    throw new ClientError(`a ${name} step of other parts than ${names}`);
  }
  return { likelihoods: 2, slot: (item) => item, ...make(word, given) };
}

const plus = (a, b) => a + b;
const modulo = (a, m) => ((a % m) + m) % m;

function lieNode(word, { outcomes, lie, width, field, signs }) {
  const told = lies(word, outcomes, lie);
  const fair = below(word, outcomes);
  const size = Number(signs || width);
  const space = field && new Field(field);
  const answer = space ? (x) => space.add(x, told()) : (x) => (x + told()) % outcomes;
  const write = signs ? putSigns : put;
  return {
    size,
    draw: (item, out, at) => write(out, at, size, signs ? item ^ told() : answer(item)),
    likely: (coins, item, number) => {
      if (!signs) return Number((coins.below(0n, outcomes) + number) % outcomes === item);
      const drawn = coins.word(0n);
      let blank = number % outcomes;
      for (let i = 0n; i < signs; i++) blank ^= ((drawn >> (63n - i)) & 1n) << i;
      return Number(blank === item);
    },
    place: (report, at, item) => {
      if (!signs) return Number(get(report, at, size) === item);
      const sent = report.subarray(at, at + size);
      return Number(sent.every((sign, i) => (sign === 255) === ((item >> BigInt(i)) & 1n) > 0n));
    },
    idle: (out, at) => write(out, at, size, fair()),
  };
}

function windowNode(word, { outcomes, accepted, inside, width, field }) {
  if (!(accepted > 0n && accepted < outcomes)) {
    throw new ClientError(`${accepted} of ${outcomes} values are no window`);
  }
  const on = chance(word, inside);
  const near = below(word, accepted);
  const far = below(word, outcomes - accepted);
  const fair = below(word, outcomes);
  const space = new Field(field);
  const size = Number(width);
  const less = (item, told) => space.add(item, space.multiply(space.p - 1n, told));
  const placed = (report, item) => Number(less(item, report) < accepted);
  return {
    size,
    draw: (item, out, at) => {
      // All are drawn, so that the time is the same for what is told
      const [told, window, other] = [on(), near(), far()];
      put(out, at, size, less(item, told ? window : accepted + other));
    },
    likely: (coins, item, number) => placed((coins.below(0n, outcomes) + number) % outcomes, item),
    place: (report, at, item) => placed(get(report, at, size), item),
    idle: (out, at) => put(out, at, size, fair()),
  };
}

/** Signs as bytes: 1, and 255 where a bit is set. */
function putSigns(out, at, count, minus) {
  for (let i = 0; i < count; i++) out[at + i] = (minus >> BigInt(i)) & 1n ? 255 : 1;
}

function bitsNode(word, { places, own, other }) {
  const many = Number(places);
  const mine = chance(word, own);
  return {
    size: Math.ceil(many / 8),
    draw: (item, out, at) => {
      const report = bits(word, many, other);
      setBit(report, Number(item), mine());
      out.set(report, at);
    },
    likely: (coins, item) => Number(coins.word(item) < other),
    place: placeOfBit,
  };
}

const placeOfBit = (report, at, item) => bitAt(report.subarray(at), Number(item));

function subsetNode(word, { places, size, inclusion, start }) {
  const many = Number(places);
  const wanted = Number(size);
  const mine = chance(word, inclusion);
  const other = below(word, places);
  return {
    size: Math.ceil(many / 8),
    draw: (item, out, at) => {
      const report = bits(word, many, start);
      const place = Number(item);
      setBit(report, place, mine());
      let excess = -wanted;
      for (let i = 0; i < many; i++) excess += bitAt(report, i);
      while (excess) {
        const picked = Number(other());
        const bit = bitAt(report, picked);
        if (picked !== place && (bit === 1) === excess > 0) {
          setBit(report, picked, 1 - bit);
          excess -= Math.sign(excess);
        }
      }
      out.set(report, at);
    },
    likely: (coins, item, number) => {
      const drawn = Array.from({ length: many }, (_, i) => coins.word(BigInt(i)));
      const order = [...drawn.keys()].sort((i, j) => (drawn[i] < drawn[j] ? -1 : 1));
      return Number(order.slice(0, wanted).includes(Number(modulo(item - number, places))));
    },
    place: placeOfBit,
  };
}

function hyperplaneNode(word, { field, dimension, lie, width }) {
  const space = new Field(field);
  const size = Number(width);
  const { q } = space;
  const powers = Array.from({ length: Number(dimension) + 1 }, (_, j) => q ** BigInt(j));
  const firsts = powers.map((power) => (power - 1n) / (q - 1n));
  const directions = firsts[firsts.length - 1];
  const told = lies(word, q, lie);
  const vectors = below(word, powers[powers.length - 1]);
  const vector = (direction) => {
    const j = bisect(firsts, direction) - 1;
    return direction - firsts[j] + powers[j];
  };
  const directionOf = (a) => {
    const j = bisect(powers, a) - 1;
    const scale = space.inverse(a / powers[j]);
    const scaled = powers.slice(0, -1).map((power) => {
      return space.multiply(scale, (a / power) % q) * power;
    });
    return scaled.reduce(plus) - powers[j] + firsts[j];
  };
  const through = (report, item) => Number(space.dot(vector(report), vector(item)) === 0n);
  return {
    size,
    draw: (item, out, at) => {
      const product = told();
      const point = vector(item);
      const power = powers[bisect(powers, point) - 1];
      let a = 0n;
      while (!a) {
        a = vectors();
        const minus = space.multiply(space.p - 1n, space.dot(a, point));
        const digit = (a / power) % q;
        a += (space.add(digit, space.add(product, minus)) - digit) * power;
      }
      put(out, at, size, directionOf(a));
    },
    likely: (coins, item, number) => {
      return through((coins.below(0n, directions) + number) % directions, item);
    },
    place: (report, at, item) => through(get(report, at, size), item),
  };
}

function tableNode(word, { denominator, columns, width }) {
  const size = Number(width);
  const ends = columns.map((column) =>
    accumulated(column)
      .filter((end) => end < denominator)
      .map((end) => [(end << 64n) / denominator, (end << 64n) % denominator]),
  );
  const drawn = (item) => {
    const first = word();
    const wholes = ends[item].map(([whole]) => whole);
    const low = bisect(wholes, first - 1n);
    const high = bisect(wholes, first);
    const rests = ends[item].slice(low, high).map(([, rest]) => rest);
    for (let prefix = 0n, more = 0n; ; prefix = (prefix << 64n) | word(), more += 64n) {
      const scaled = rests.map((rest) => rest << more);
      const least = bisect(scaled, prefix * denominator);
      if (least === bisect(scaled, (prefix + 1n) * denominator - 1n)) return BigInt(low + least);
    }
  };
  const outputs = [...columns[0].keys()].filter((output) => columns.some((one) => one[output]));
  const rows = outputs.map((output) => columns.map((column) => column[output]));
  const sums = rows.map((row) => row.reduce(plus));
  const means = sums.map((sum) => (WORD * sum) / (denominator * BigInt(columns.length)));
  const largest = means.indexOf(means.reduce((a, b) => (a < b ? b : a)));
  means[largest] += WORD - means.reduce(plus);
  const blanks = accumulated(means).slice(0, -1);
  const values = rows.map((row) => [...new Set(row)].sort((a, b) => (a < b ? -1 : 1)));
  const before = values.map((_, k) => values.slice(0, k).flat().length);
  const kind = (report, item) => before[report] + values[report].indexOf(rows[report][item]);
  return {
    size,
    draw: (item, out, at) => put(out, at, size, drawn(item)),
    likely: (coins, item) => {
      return kind(bisect(blanks, coins.word(0n)), item);
    },
    place: (report, at, item) => kind(outputs.indexOf(Number(get(report, at, size))), item),
    likelihoods: values.flat().length,
  };
}

function waveNode(word, { places, reach, far, width }) {
  const near = 2n * reach + 1n;
  const outputs = places + 2n * reach;
  const size = Number(width);
  const away = chance(word, far);
  const close = below(word, near);
  const beyond = below(word, places > 1n ? places - 1n : 1n);
  const answer = (item) => {
    if (!away()) return item + close();
    const drawn = beyond();
    return drawn >= item ? drawn + near : drawn;
  };
  const isNear = (report, item) => Number(places > 1n && report >= item && report - item < near);
  return {
    size,
    draw: (item, out, at) => put(out, at, size, answer(item)),
    likely: (coins, item, number, most) => {
      const step = (number * outputs) / (outputs < most ? outputs : most);
      return isNear((coins.below(0n, outputs) + step) % outputs, item);
    },
    place: (report, at, item) => isNear(get(report, at, size), item),
    likelihoods: places > 1n ? 2 : 1,
  };
}

function attributesNode(word, { attributes, width, places }) {
  const size = Number(width);
  const sizes = attributes.map(([many]) => many);
  const told = attributes.map(([many, lie]) => lies(word, many, lie));
  const kinds = [...new Set(sizes)].filter((many) => many > 1n);
  const radices = kinds.map((kind) => 1n + BigInt(sizes.filter((many) => many === kind).length));
  const alike = (digits, item) => {
    const same = digitsOf(item, sizes).map((digit, j) => digits[j] === digit);
    const agreeing = (kind) => BigInt(sizes.filter((many, j) => many === kind && same[j]).length);
    return Number(places[mixed(kinds.map((kind, k) => [agreeing(kind), radices[k]]))]);
  };
  return {
    size,
    draw: (item, out, at) => {
      const digits = digitsOf(item, sizes).map((digit, j) => {
        return [(digit + told[j]()) % sizes[j], sizes[j]];
      });
      put(out, at, size, mixed(digits));
    },
    likely: (coins, item) => {
      return alike(
        sizes.map((many, j) => coins.below(BigInt(j), many)),
        item,
      );
    },
    place: (report, at, item) => alike(digitsOf(get(report, at, size), sizes), item),
    likelihoods: new Set(places).size,
  };
}

function channelsNode(word, { channels, length, lie, texts, code, width, oracle }) {
  const each = Number(channels);
  const all = each * texts.length;
  const wide = Number(width);
  const minus = codeword(...code);
  const told = lies(word, 2n, lie);
  const then = node(oracle, word);
  const hashes = texts.map((text) => linearHash(text, each.toString(2).length - 1));
  const mine = (item) => hashes.map((hash, t) => t * each + Number(hash(item)));
  return {
    size: (wide + 1) * all + then.size,
    draw: (item, out, at) => {
      const indices = belows(word, all, length);
      const signs = belows(word, all, 2n);
      for (const c of mine(item)) signs[c] = minus(item, indices[c]) ^ told();
      indices.forEach((index, c) => put(out, at + wide * c, wide, index));
      signs.forEach((sign, c) => putSigns(out, at + wide * all + c, 1, sign));
      then.draw(item, out, at + (wide + 1) * all);
    },
    likely: (coins, item, number, most) => {
      const agree = mine(item).filter((c) => {
        const coin = coins.below(BigInt(c), 2n * length);
        return (coin & 1n) === minus(item, coin >> 1n);
      });
      return agree.length + then.likely(coins.after(BigInt(all)), item, number, most);
    },
    place: (report, at, item) => {
      const agree = mine(item).filter((c) => {
        const sign = report[at + wide * all + c];
        return (sign === 255) === minus(item, get(report, at + wide * c, wide)) > 0n;
      });
      return agree.length + then.place(report, at + (wide + 1) * all, item);
    },
    likelihoods: texts.length + 2,
  };
}

/** From how many numbers a coin draws one, what each of them says, and in how many bytes. */
function coinOf({ width, start, count, phases }) {
  if (!phases) return { width: Number(width), count, face: (number) => start + number };
  const most = phases.reduce((a, b) => (a < b ? b : a));
  const deck = [];
  let configuration = 0n;
  phases.forEach((many, level) => {
    const times = (most / many) << BigInt(phases.length - 1 - level);
    for (let phase = 0n; phase < many; phase++, configuration++) {
      for (let k = 0n; k < times; k++) deck.push(configuration);
    }
  });
  return { width: Number(width), count: BigInt(deck.length), face: (number) => deck[number] };
}

function publicNode(word, { coins, distinct, cell, then }) {
  const own = expression(cell);
  const rest = node(then, word);
  const all = coins.map(coinOf);
  const each = all.map(({ count }) => below(word, count));
  const [{ count, face }] = all;
  const body = all.map(({ width }) => width).reduce(plus);
  const toss = () => {
    if (!distinct) return all.map((coin, j) => coin.face(each[j]()));
    let drawn;
    do drawn = belows(word, all.length, count);
    while (new Set(drawn).size < drawn.length);
    return drawn.map(face);
  };
  const tossed = (out, at) => {
    const numbers = toss();
    let place = at;
    all.forEach(({ width }, j) => {
      put(out, place, width, numbers[j]);
      place += width;
    });
    return numbers;
  };
  return {
    size: body + rest.size,
    draw: (item, out, at) => {
      const told = tossed(out, at);
      rest.draw(own(item, told), out, at + body);
    },
    likely: (drawn, item, number, most) => {
      const told = [];
      all.forEach((coin, j) => {
        const size = distinct ? coin.count - BigInt(all.length - 1 - j) : coin.count;
        const found = coin.face(drawn.below(BigInt(j), size));
        told.push(distinct && told.includes(found) ? coin.face(size - 1n) : found);
      });
      return rest.likely(drawn.after(BigInt(all.length)), own(item, told), number, most);
    },
    place: (report, at, item) => {
      let from = at;
      const told = all.map(({ width }) => {
        from += width;
        return get(report, from - width, width);
      });
      return rest.place(report, from, own(item, told));
    },
    likelihoods: rest.likelihoods,
    idle: (out, at) => {
      tossed(out, at);
      rest.idle(out, at + body);
    },
  };
}

function mixtureNode(word, { width, weights, channels, kinds, maps, axes }) {
  const nodes = channels.map((one) => node(one, word));
  const cuts = axes.map(axisOf);
  const items = maps.map((map) => expression(map, cuts));
  const wide = Number(width);
  const parts = BigInt(maps.length);
  const asked = maps.map((_, part) => BigInt(part)).filter((part) => !weights || weights[part]);
  const ends = weights
    ? accumulated(asked.map((part) => weights[part])).slice(0, -1)
    : asked.slice(0, -1).map((part) => ((part + 1n) * WORD) / parts);
  const likelihoods = nodes.map((one) => one.likelihoods);
  const before = likelihoods.map((_, k) => likelihoods.slice(0, k).reduce(plus, 0));
  return {
    size: wide + Math.max(...nodes.map(({ size }) => size)),
    draw: (item, out, at) => {
      const part = asked[bisect(ends, word())];
      put(out, at, wide, part);
      nodes[kinds[part]].draw(items[part](item), out, at + wide);
    },
    likely: (coins, item, number, most) => {
      const part = asked[bisect(ends, coins.word(0n))];
      const kind = kinds[part];
      return before[kind] + nodes[kind].likely(coins.after(1n), items[part](item), number, most);
    },
    place: (report, at, item) => {
      const part = get(report, at, wide);
      const kind = kinds[part];
      return before[kind] + nodes[kind].place(report, at + wide, items[part](item));
    },
    likelihoods: likelihoods.reduce(plus),
  };
}

function slotsNode(word, { size, empty, then }) {
  const rest = node(then, word);
  const slot = (items) => {
    const many = BigInt(items.length);
    const chosen = below(word, many > size ? many : size)();
    return chosen < many ? items[chosen] : empty;
  };
  return { ...rest, slot, draw: (items, out, at) => rest.draw(slot(items), out, at) };
}

function choiceNode(word, { seed, width, most, acceptance, candidates, then }) {
  const rest = node(then, word);
  const favour = below(word, 2n);
  const wide = Number(width);
  const largest = candidates.reduce((a, b) => (a < b ? b : a));
  const keep = (out, at, user, count, likely) => {
    const drawn = word();
    let above = 0n;
    let kept = 0n;
    for (let number = 0n; number < count && !kept; number++) {
      const likelihood = likely(number);
      if (number < candidates[likelihood]) above += acceptance[likelihood];
      if (drawn < above) kept = number + 1n;
    }
    put(out, at, 8, user);
    put(out, at + 8, wide, kept);
  };
  return {
    size: 8 + wide,
    draw: (value, out, at) => {
      const user = word();
      const item = rest.slot(value);
      const coins = new Coins(user + seed);
      keep(out, at, user, largest, (number) => rest.likely(coins, item, number, most));
    },
    idle: (out, at) => {
      const user = word();
      const favoured = favour();
      keep(out, at, user, candidates[0], (number) => Number(number === favoured));
    },
  };
}

const NODES = new Map(
  Object.entries({
    lie: ["outcomes lie width field signs", lieNode],
    window: ["outcomes accepted inside width field", windowNode],
    bits: ["places own other", bitsNode],
    subset: ["places size inclusion start", subsetNode],
    hyperplane: ["field dimension lie width", hyperplaneNode],
    table: ["denominator columns width", tableNode],
    wave: ["places reach far width", waveNode],
    attributes: ["attributes width places", attributesNode],
    channels: ["channels length lie texts code width oracle", channelsNode],
    public: ["coins distinct cell then", publicNode],
    mixture: ["width weights channels kinds maps axes", mixtureNode],
    slots: ["size empty then", slotsNode],
    choice: ["seed width most acceptance candidates then", choiceNode],
  }),
);

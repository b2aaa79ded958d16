"""Make private reports with nothing but the standard library: one file, to copy to a device.

A client runs the description of a protocol's client half, which `Protocol.client` gives and
protocol files hold: what a value is, which part of the question is answered, which public coins are
tossed, and how the answer is randomised, by integers alone. `docs/wire.md` says what each step
does.

    >>> client = load_client("protocol.json")                             # doctest: +SKIP
    >>> client.report("female").hex()                                     # doctest: +SKIP
    '5f3a1c0099aa77e102'

    python device.py protocol.json female male      (a report a line, in base64)

Other users of a machine can see the values on a command line, but not those on standard input.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
import sys
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

WORD = 1 << 64
"""The number of words of 64 bits, in which randomness comes."""


class ClientError(ValueError):
    """A file from which no report can be made: damaged, changed, or of an unknown kind."""


class RefusedValue(ValueError):
    """A value that the protocol does not take: nothing was drawn."""


def load_client(source: Any, words: Callable[[], int] | None = None) -> Client:
    """The client of a protocol.

    Parameters
    ----------
    source : str, os.PathLike or dict
        The path of a protocol file, or what ``protocol.client()`` gives.
    words : callable, optional
        Gives uniform integers 0 .. 2^64 - 1; None: the operating system's randomness. For tests.

    Returns
    -------
    Client
        Whose reports the protocol's server counts.

    Raises
    ------
    ClientError
        No such file, one that was changed, or no source of randomness.
    """
    return Client(source if isinstance(source, dict) else _read(source), words)


class Client:
    """Makes reports from values, one user's at a time: see `load_client`.

    Parameters
    ----------
    content : dict
        A description, or the content of a protocol file.
    words : callable, optional
        Gives uniform integers 0 .. 2^64 - 1; None: the operating system's randomness.

    Attributes
    ----------
    description : dict
        What is run.
    protocol : str
        The protocol's name.
    epsilon, odds : str
        What a report may reveal, rounded up: by how much it changes anybody's odds at most.

    Raises
    ------
    ClientError
        As `load_client`.
    """

    def __init__(self, content: dict[str, Any], words: Callable[[], int] | None = None) -> None:
        try:
            os.urandom(1)
        except NotImplementedError as error:
            raise ClientError("this system has no source of randomness") from error
        try:
            self.description = description = _checked(content)
            self.protocol: str = description["protocol"]
            self.epsilon: str = description["epsilon"]
            self.odds: str = description["odds"]
            self._wire = bytes.fromhex(description["wire"])
            self._item = _taker(description["takes"])
            self._node = _node(_numbers(description["report"]), words or _word)
            self._size: int = description["bytes"]
            if self._node.size != self._size:
                raise ClientError(f"reports of {self._node.size} bytes, not {self._size}")
        except ClientError:
            raise
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise ClientError(f"malformed description: {error!r:.200}") from error

    def report(self, value: Any) -> bytes | None:
        """One report, as it travels: eight bytes that name the protocol, and the payload.

        Parameters
        ----------
        value : object
            The user's, as the protocol takes it.

        Returns
        -------
        bytes or None
            None if the value is missing and such users do not report.

        Raises
        ------
        RefusedValue
            For a value that the protocol does not take; nothing was drawn.
        """
        payload = self.privatize_one(value)
        return None if payload is None else self._wire + payload

    def privatize_one(self, value: Any) -> bytes | None:
        """The payload of `report`: the bytes of one report of the protocol's ``report_dtype``.

        Parameters
        ----------
        value : object
            As for `report`.

        Returns
        -------
        bytes or None
            As for `report`.

        Raises
        ------
        RefusedValue
            As `report`.
        """
        item = self._item(value)
        if item is _SKIPPED:
            return None
        report = self._node.idle() if item is None else self._node.draw(item)
        return report.to_bytes(self._size, "little")


def _read(path: Any) -> Any:
    try:
        with open(path, encoding="utf-8") as stream:
            return json.load(stream)
    except (OSError, ValueError, RecursionError) as error:
        raise ClientError(f"{path}: no protocol file: {error}") from error


def _checked(content: Any) -> dict[str, Any]:
    """The description, if it is intact."""
    if isinstance(content, dict) and content.get("format") == "mechdesign.protocol":
        content = content.get("client")
    if not isinstance(content, dict) or content.get("format") != "mechdesign.client":
        raise ClientError("no description of a client: make one with protocol.client()")
    if type(content.get("version")) is not int or content["version"] != 1:
        raise ClientError(f"version {content.get('version')!r:.20}, this client reads 1")
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    if content.get("digest") != f"shake256:{_sponge(text, 32).hex()}":
        raise ClientError("the digest does not match: the description was changed")
    return content


def _numbers(content: Any) -> Any:
    """The same with numbers in the place of texts of digits, as which JSON has large ones."""
    if isinstance(content, list):
        return [_numbers(entry) for entry in content]
    if isinstance(content, dict):
        return {key: _numbers(entry) for key, entry in content.items()}
    return int(content) if isinstance(content, str) and content.isdecimal() else content


def _sponge(text: str, size: int) -> bytes:
    return hashlib.shake_256(text.encode()).digest(size)


# --------------------------------------------------------------------- values: what a user has

_SKIPPED = object()
"""In the place of an item: the user does not report."""


def _taker(takes: dict[str, Any]) -> Callable[[Any], Any]:
    """The function that makes an item, a record or a set of a value; None for a user without."""
    kind = takes["kind"]
    if kind == "item":
        take: Callable[[Any], Any] = _integer_taker(int(takes["size"]))
    elif kind == "string":
        take = _string_taker(takes["bytes"])
    elif kind == "record":
        take = _record_taker(takes)
    elif kind == "set":
        take = _set_taker(takes)
    else:
        raise ClientError(f"values of an unknown kind: {kind!r:.40}")
    if not takes.get("none", False):
        return take
    return lambda value: None if value is None else take(value)


def _integer_taker(size: int) -> Callable[[Any], int]:
    def take(value: Any) -> int:
        if type(value) is int and 0 <= value < size:
            return value
        if isinstance(value, float) and value.is_integer() and 0 <= value < size:
            return int(value)
        raise RefusedValue(f"{value!r:.40} is not an integer in 0 .. {size - 1}")

    return take


def _string_taker(size: int) -> Callable[[Any], int]:
    def take(value: Any) -> int:
        try:
            spelt = value.encode() if isinstance(value, str) and "\0" not in value else None
        except UnicodeEncodeError:  # half of a surrogate pair
            spelt = None
        if spelt is None or len(spelt) > size:
            raise RefusedValue(
                f"{value!r:.40} is not a text of at most {size} bytes of UTF-8 without U+0000"
            )
        return int.from_bytes(spelt.ljust(size, b"\0"), "big")

    return take


def _record_taker(takes: dict[str, Any]) -> Callable[[Any], Any]:
    names, sizes = takes["names"], [int(size) for size in takes["sizes"]]
    values = [_integer_taker(size) for size in sizes]

    def take(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) != set(names):
                raise RefusedValue(f"expected values of {', '.join(names)}, got {value!r:.100}")
            value = [value[name] for name in names]
        if not isinstance(value, (list, tuple)) or len(value) != len(names):
            raise RefusedValue(f"expected a value for each of {', '.join(names)}")
        record = [one(entry) for one, entry in zip(values, value, strict=True)]
        return _mixed(zip(record, sizes, strict=True)) if takes["number"] else record

    return take


def _set_taker(takes: dict[str, Any]) -> Callable[[Any], list[int]]:
    one = _taker(takes["of"]) if takes["of"] else _integer_taker(int(takes["size"]))
    kept = None if takes["kept"] is None else frozenset(takes["kept"])

    def take(value: Any) -> list[int]:
        if not isinstance(value, (list, tuple, set, frozenset)):
            raise RefusedValue(f"expected a list of items, got {value!r:.40}")
        items = {one(entry) for entry in value}
        return sorted(items if kept is None else items & kept)

    return take


def _mixed(digits: Any) -> int:
    """The number with these digits, each with its radix, the last counting fastest."""
    result = 0
    for digit, radix in digits:
        result = result * radix + digit
    return result


# ------------------------------------------------------------------- randomness, word for word

_block: list[int] = []


def _word() -> int:
    """A word of the operating system's randomness, which is read in blocks."""
    while True:
        try:
            return _block.pop()
        except IndexError:
            _block.extend(struct.unpack("<512Q", os.urandom(4096)))


if hasattr(os, "register_at_fork"):  # a child must not draw what its parent does
    os.register_at_fork(after_in_child=_block.clear)


def _below(word: Callable[[], int], size: int) -> Callable[[], int]:
    """Uniform numbers 0 .. size - 1."""
    step = WORD // size

    def draw() -> int:
        while (number := word() // step) >= size:
            pass
        return number

    return (lambda: 0) if size == 1 else draw


def _belows(word: Callable[[], int], count: int, size: int) -> list[int]:
    """Several such numbers: those that were too large are drawn again after all others."""
    step = WORD // size
    numbers = [word() // step for _ in range(count)]
    while over := [place for place, number in enumerate(numbers) if number >= size]:
        for place in over:
            numbers[place] = word() // step
    return numbers


def _lies(word: Callable[[], int], outcomes: int, lie: int) -> Callable[[], int]:
    """0 for the truth, 1 .. outcomes - 1 for the lies, for each of which ``lie`` words stand."""
    last = outcomes - 1

    def draw() -> int:
        place = word() // lie
        return place + 1 if place < last else 0

    return draw if last else lambda: 0


def _chance(word: Callable[[], int], weight: int) -> Callable[[], bool]:
    """True with probability weight / 2^64."""
    return (lambda: True) if weight == WORD else lambda: word() < weight


def _bits(word: Callable[[], int], places: int, weight: int) -> int:
    """A number whose bits are 1 with probability weight / 2^64 each.

    Every bit compares its own uniform number with the weight, the highest place first; 64 of them
    are a lane, and a lane without an undecided bit draws no more.
    """
    play = list(range(-(-places // 64)))
    result, undecided = [0 for _ in play], [WORD - 1 for _ in play]
    last = (weight & -weight).bit_length() - 1 if weight else 63
    for place in range(63, last - 1, -1):
        one = weight >> place & 1
        for lane in play:
            drawn = word()
            if one:
                result[lane] |= undecided[lane] & ~drawn
                undecided[lane] &= drawn
            else:
                undecided[lane] &= ~drawn
        if place < 59:
            play = [lane for lane in play if undecided[lane]]
    return sum(lane << 64 * k for k, lane in enumerate(result)) & (1 << places) - 1


class _Coins(NamedTuple):
    """Public words of a user, any of them computed when it is needed (SplitMix64)."""

    user: int
    first: int = 0

    def word(self, place: int) -> int:
        """The word at a place."""
        return _stirred(_stirred(self.user) + (self.first + place + 1) * 0x9E3779B97F4A7C15)

    def below(self, place: int, size: int) -> int:
        """The word at a place as a number 0 .. size - 1."""
        return self.word(place) * size >> 64

    def after(self, count: int) -> _Coins:
        """The words from the count-th on."""
        return _Coins(self.user, self.first + count)


def _stirred(word: int) -> int:
    word %= WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB % WORD
    return word ^ word >> 31


# ---------------------------------------------------------------------------- finite algebra


def _parity(value: int) -> int:
    return value.bit_count() & 1


class _Field:
    """F_q, q = p^k: the digits of 0 .. q - 1 in base p are the coefficients of polynomials.

    ``top`` is x^k.
    """

    def __init__(self, p: int, k: int, top: int) -> None:
        self.p, self.k, self.top, self.q = p, k, top, p**k
        self.multiply = lru_cache(1 << 16)(self._multiply)
        self.inverse = lru_cache(1 << 8)(self._inverse)

    def add(self, a: int, b: int) -> int:
        """The sum of two elements, or of vectors of them."""
        if self.p == 2:
            return a ^ b
        if a < self.p > b:
            return (a + b) % self.p
        return (a + b) % self.p + self.p * self.add(a // self.p, b // self.p)

    def _multiply(self, a: int, b: int) -> int:
        if self.k == 1:
            return a * b % self.p
        result, high = 0, self.q // self.p
        for place in reversed(range(self.k)):  # Horner's rule
            over, result = result // high, result % high * self.p
            for summand, times in ((self.top, over), (b, a // self.p**place % self.p)):
                for _ in range(times):
                    result = self.add(result, summand)
        return result

    def _inverse(self, a: int) -> int:
        if self.k == 1:
            return pow(a, -1, self.p)
        return next(b for b in range(self.q) if self.multiply(a, b) == 1)

    def dot(self, a: int, x: int) -> int:
        """The inner product of vectors, which are integers with digits in base q."""
        if self.q == 2:
            return _parity(a & x)
        total = 0
        while a and x:
            total = self.add(total, self.multiply(a % self.q, x % self.q))
            a, x = a // self.q, x // self.q
        return total


class _PublicBits:
    """Public random functions from items to bits."""

    def __init__(self, text: str, rows: int) -> None:
        self._rows, self._stream = rows, lru_cache(1)(lambda: _sponge(text, 17 * rows))

    def cell(self, first: int, places: int, x: int) -> int:
        """The number whose bits are those of an item under so many functions."""
        stream, rows, cube, result = self._stream(), self._rows, _cubed(x), 0
        for place in range(places):
            row = first + place
            linear = int.from_bytes(stream[8 * row : 8 * row + 8], "little")
            row += rows
            cubic = int.from_bytes(stream[8 * row : 8 * row + 8], "little")
            bit = _parity(linear & x ^ cubic & cube) ^ stream[15 * rows + row] & 1
            result |= bit << place
        return result


def _cubed(x: int) -> int:
    """x^3 in GF(2^64)."""
    result = x
    for _ in range(2):
        power, result, rest = result, 0, x
        while rest:
            if rest & 1:
                result ^= power
            power, rest = power << 1, rest >> 1
            if power >> 64:
                power ^= WORD | 27
    return result


def _linear_hash(text: str, places: int) -> Callable[[int], int]:
    constant, *rows = struct.unpack(f"<{places + 1}Q", _sponge(text, 8 * places + 8))
    constant %= 1 << places
    return lambda x: constant ^ sum(_parity(row & x) << place for place, row in enumerate(rows))


def _codeword(symbol: int, field: Sequence[int], through: Any) -> Callable[[int, int], int]:
    """Which signs of an item's codeword are -1."""
    multiply, half = _Field(*field).multiply, symbol - 1

    def minus(x: int, index: int) -> int:
        value = 0
        for i, factor in enumerate(through[index >> half]):
            value ^= multiply(factor, x >> symbol * i & (1 << symbol) - 1)
        return _parity(value & index & (1 << half) - 1) ^ value >> half

    return minus


# -------------------------------------------------- expressions: from an item to that of a part


def _expression(described: Sequence[Any], axes: Sequence[Any] = ()) -> Callable[..., int]:
    """What is made of an item or a record v, and of public coins c."""
    name, *given = described
    made: Callable[..., Callable[..., int]] | None = _EXPRESSIONS.get(name)
    if made is None:
        raise ClientError(f"unknown expression {name!r:.40}")
    return made(axes, *given) if name == "grid" else made(*given)


def _digits(steps: Any) -> Callable[..., int]:
    return lambda v: _mixed((v // step % size, size) for step, size in steps)


def _phase(steps: Any, order: int) -> Callable[..., int]:
    return lambda v: sum(v // step % size * factor for step, size, factor in steps) % order


def _hashed(shift: int, text: str, places: int) -> Callable[..., int]:
    hashed = _linear_hash(text, places)
    return lambda v: hashed(v >> shift)


def _grid(axes: Sequence[Any], places: Any) -> Callable[..., int]:
    cuts = [(place, *axes[axis]) for place, axis in places]
    return lambda v: _mixed((cell(v[place]), size) for place, size, cell in cuts)


def _axis(axis: Any) -> tuple[int, Callable[[int], int]]:
    """How many cells an axis has, and the cell of each value."""
    if isinstance(axis, dict):
        width, last = axis["width"], axis["cells"] - 1
        return last + 1, lambda v: min(v // width, last)
    return len(axis) + 1, lambda v: bisect_right(axis, v)


def _sides(steps: Any) -> Callable[..., int]:
    def item(v: Sequence[int]) -> int:
        node = side = 0
        for place, shift, bits in steps:
            child = v[place] >> shift
            node, side = (node << bits) + (child >> 1), side ^ child & 1
        return 2 * node + side

    return item


def _sketch(text: str, hashes: int, places: int) -> Callable[..., int]:
    cell = _PublicBits(text, hashes * places).cell
    return lambda v, c: cell(c[0] * places, places, v)


def _sketch_sign(text: str, hashes: int, places: int) -> Callable[..., int]:
    cell = _sketch(text, hashes, places)
    return lambda v, c: _parity(c[1] & cell(v, c))


def _projection(text: str, rows: int) -> Callable[..., int]:
    cell = _PublicBits(text, rows).cell
    return lambda v, c: cell(c[0], 1, v)


def _code(*described: Any) -> Callable[..., int]:
    minus = _codeword(*described)
    return lambda v, c: minus(v, c[0])


def _dot(field: Sequence[int]) -> Callable[..., int]:
    dot = _Field(*field).dot
    return lambda v, c: dot(c[0], v)


def _waves(waves: Any) -> Callable[..., int]:
    cuts = [
        [(level, phase, many) for level, many in enumerate(phases) for phase in range(many)]
        for _, _, phases in waves
    ]

    def cell(v: int, c: Sequence[int]) -> int:
        result, scale = 0, 1
        for (size, arcs, _), own, coin in zip(
            reversed(waves), reversed(cuts), reversed(c), strict=True
        ):
            v, value = divmod(v, size)
            level, phase, many = own[coin]
            turn = ((2 * value + 1 << level) * arcs * many + (2 * phase + 1) * size) // (
                2 * many * size
            )
            result, scale = result + turn % arcs * scale, scale * arcs
        return result

    return cell


def _levels(text: str, places: int, widths: Any) -> Callable[..., int]:
    firsts = [0, *accumulate(places * len(own) for own in widths)]
    public = _PublicBits(text, firsts.pop())

    def minus(v: Sequence[int], c: Sequence[int]) -> int:
        level, cell = c[0], 0
        for value, own, first in zip(reversed(v), reversed(widths), reversed(firsts), strict=True):
            level, mine = divmod(level, len(own))
            cell ^= public.cell(first + places * mine, places, value // own[mine])
        return _parity(cell & c[1])

    return minus


_EXPRESSIONS: dict[str, Callable[..., Callable[..., int]]] = {
    "same": lambda: lambda v: v,
    "divide": lambda width: lambda v: v // width,
    "hashed": _hashed,
    "digits": _digits,
    "phase": _phase,
    "combine": lambda places: lambda v: _mixed((v[place], size) for place, size in places),
    "grid": _grid,
    "sides": _sides,
    "turn": lambda size, width: lambda v, c: (v + c[0]) % size // width,
    "half": lambda order: lambda v, c: int((v + c[0]) % order >= (order + 1) // 2),
    "dot": _dot,
    "walsh": lambda: lambda v, c: sum(_parity(index & v) << i for i, index in enumerate(c)),
    "haar": lambda: lambda v, c: _parity(c[0] & v >> 1) ^ v & 1,
    "projection": _projection,
    "cell": _sketch,
    "sketch": _sketch_sign,
    "code": _code,
    "waves": _waves,
    "levels": _levels,
}


# ----------------------------------------------------------- nodes: how an item becomes a report


class _Node(NamedTuple):
    """A step of a description: how an item becomes a report, as a number of so many bytes.

    Attributes
    ----------
    size : int
        The bytes of a report.
    draw : callable
        A report of an item.
    likely : callable
        Of coins, an item, a number and the most candidates: which of the ``likelihoods`` the
        candidate of this number has that the coins draw.
    likelihoods : int
        How many there are.
    idle : callable
        A report of nobody's item.
    slot : callable
        What a report is about: of sets one of their items.
    """

    size: int
    draw: Callable[[Any], int]
    likely: Callable[[_Coins, Any, int, int], int]
    likelihoods: int = 2
    idle: Any = None
    slot: Callable[[Any], Any] = lambda item: item


def _node(content: dict[str, Any], word: Callable[[], int]) -> _Node:
    """The node of a description; ``word`` gives uniform integers 0 .. 2^64 - 1."""
    given = {key: value for key, value in content.items() if key != "do"}
    if content["do"] not in _NODES:
        raise ClientError(f"unknown step {content['do']!r:.40}")
    return _NODES[content["do"]](word, **given)


def _lie(word: Callable[[], int], outcomes: int, lie: int, width: int, field: Any) -> _Node:
    told = _lies(word, outcomes, lie)
    draw: Callable[[int], int] = lambda item: (item + told()) % outcomes  # noqa: E731
    if field is not None:
        add = _Field(*field).add
        draw = lambda item: add(item, told())  # noqa: E731
    return _Node(width, draw, lambda c, x, k, most: (c.below(0, outcomes) + k) % outcomes == x)


def _signs(word: Callable[[], int], count: int, lie: int) -> _Node:
    told, fair = _lies(word, 1 << count, lie), _below(word, 2)

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        blank = sum((coins.word(0) >> 63 - i & 1) << i for i in range(count))
        return blank ^ number & (1 << count) - 1 == item

    return _Node(
        count, lambda item: _spelt(item ^ told(), count), likely, idle=lambda: _spelt(fair(), 1)
    )


def _spelt(minus: int, count: int) -> int:
    """Signs as bytes: 1, and 255 where a bit is set."""
    return sum((255 if minus >> i & 1 else 1) << 8 * i for i in range(count))


def _unary(word: Callable[[], int], places: int, own: int, other: int) -> _Node:
    mine = _chance(word, own)

    def draw(item: int) -> int:
        report, place = _bits(word, places, other), 1 << item
        return report | place if mine() else report & ~place

    return _Node(-(-places // 8), draw, lambda coins, x, k, most: coins.word(x) < other)


def _subset(word: Callable[[], int], places: int, size: int, inclusion: int, start: int) -> _Node:
    mine, other = _chance(word, inclusion), _below(word, places)

    def draw(item: int) -> int:
        report, place = _bits(word, places, start), 1 << item
        report = report | place if mine() else report & ~place
        excess = report.bit_count() - size
        while excess:
            picked = other()
            if picked != item and (report >> picked & 1) == (excess > 0):
                report ^= 1 << picked
                excess -= 1 if excess > 0 else -1
        return report

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        return (item - number) % places in sorted(range(places), key=coins.word)[:size]

    return _Node(-(-places // 8), draw, likely)


def _hyperplane(word: Callable[[], int], field: Any, dimension: int, lie: int, width: int) -> _Node:
    space = _Field(*field)
    q, powers = space.q, [space.q**place for place in range(dimension + 1)]
    firsts = [(power - 1) // (q - 1) for power in powers]
    told, vectors = _lies(word, q, lie), _below(word, powers[-1])

    def vector(direction: int) -> int:
        place = bisect_right(firsts, direction) - 1
        return direction - firsts[place] + powers[place]

    def direction_of(a: int) -> int:
        place = bisect_right(powers, a) - 1
        scale = space.inverse(a // powers[place])
        unit = sum(space.multiply(scale, a // power % q) * power for power in powers[:-1])
        return unit - powers[place] + firsts[place]

    def draw(item: int) -> int:
        product, point, a = told(), vector(item), 0
        power = powers[bisect_right(powers, point) - 1]
        while not a:
            a = vectors()
            missing = space.add(product, space.multiply(space.p - 1, space.dot(a, point)))
            a += (space.add(a // power % q, missing) - a // power % q) * power
        return direction_of(a)

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        report = (coins.below(0, firsts[-1]) + number) % firsts[-1]
        return not space.dot(vector(report), vector(item))

    return _Node(width, draw, likely)


def _table(word: Callable[[], int], denominator: int, columns: Any, width: int) -> _Node:
    ends = [
        [divmod(end << 64, denominator) for end in accumulate(column) if end < denominator]
        for column in columns
    ]
    wholes = [[whole for whole, _ in column] for column in ends]

    def draw(item: int) -> int:
        first = word()
        low, high = bisect_left(wholes[item], first), bisect_right(wholes[item], first)
        rests, prefix, bits = [rest for _, rest in ends[item][low:high]], 0, 0
        while True:
            scaled = [rest << bits for rest in rests]
            least = bisect_right(scaled, prefix * denominator)
            if least == bisect_right(scaled, (prefix + 1) * denominator - 1):
                return low + least
            prefix, bits = prefix << 64 | word(), bits + 64

    rows = [row for row in zip(*columns, strict=True) if any(row)]
    means = [WORD * sum(row) // (denominator * len(columns)) for row in rows]
    means[means.index(max(means))] += WORD - sum(means)
    blanks, values = list(accumulate(means))[:-1], [sorted(set(row)) for row in rows]
    before = [0, *accumulate(map(len, values))]

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        report = bisect_right(blanks, coins.word(0))
        return before[report] + values[report].index(rows[report][item])

    return _Node(width, draw, likely, before[-1])


def _wave(word: Callable[[], int], places: int, reach: int, far: int, width: int) -> _Node:
    near, outputs = 2 * reach + 1, places + 2 * reach
    away, close, beyond = _chance(word, far), _below(word, near), _below(word, max(places - 1, 1))

    def draw(item: int) -> int:
        if not away():
            return item + close()
        drawn = beyond()
        return drawn + near if drawn >= item else drawn

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        report = (coins.below(0, outputs) + number * outputs // min(outputs, most)) % outputs
        return places > 1 and 0 <= report - item < near

    return _Node(width, draw, likely, 2 if places > 1 else 1)


def _attributes(word: Callable[[], int], attributes: Any, width: int, places: Any) -> _Node:
    sizes = [size for size, _ in attributes]
    lies = [_lies(word, size, lie) for size, lie in attributes]
    kinds = Counter(size for size in sizes if size > 1)

    def digits(item: int) -> list[int]:
        found = []
        for size in reversed(sizes):
            item, digit = divmod(item, size)
            found.append(digit)
        return found[::-1]

    def draw(item: int) -> int:
        result = 0
        for digit, lie, size in zip(digits(item), lies, sizes, strict=True):
            result = result * size + (digit + lie()) % size
        return result

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        told = enumerate(zip(digits(item), sizes, strict=True))
        same = Counter(size for j, (digit, size) in told if coins.below(j, size) == digit)
        return int(places[_mixed((same[size], many + 1) for size, many in kinds.items())])

    return _Node(width, draw, likely, len(set(places)))


def _channels(
    word: Callable[[], int],
    channels: int,
    length: int,
    lie: int,
    texts: Sequence[str],
    code: Any,
    width: int,
    oracle: Any,
) -> _Node:
    every, minus, then = len(texts) * channels, _codeword(*code), _node(oracle, word)
    told, hashes = (
        _lies(word, 2, lie),
        [_linear_hash(text, channels.bit_length() - 1) for text in texts],
    )

    def mine(item: int) -> list[int]:
        return [t * channels + hashed(item) for t, hashed in enumerate(hashes)]

    def draw(item: int) -> int:
        indices, bits = _belows(word, every, length), _belows(word, every, 2)
        for channel in mine(item):
            bits[channel] = minus(item, indices[channel]) ^ told()
        signs = _spelt(sum(bit << channel for channel, bit in enumerate(bits)), every)
        result = then.draw(item) << 8 * every | signs
        return result << 8 * width * every | _joined(indices, [width] * every)

    def likely(coins: _Coins, item: int, number: int, most: int) -> int:
        agree = then.likely(coins.after(every), item, number, most)
        for channel in mine(item):
            coin = coins.below(channel, 2 * length)
            agree += (coin & 1) == minus(item, coin >> 1)
        return agree

    return _Node((width + 1) * every + then.size, draw, likely, len(texts) + 2)


def _joined(numbers: Any, widths: Sequence[int]) -> int:
    """Numbers in so many bytes each, the first one lowest."""
    result = shift = 0
    for number, width in zip(numbers, widths, strict=True):
        result, shift = result | number << shift, shift + 8 * width
    return result


def _public(
    word: Callable[[], int], coins: Sequence[Any], distinct: bool, cell: Any, then: Any
) -> _Node:
    own, rest = _expression(cell), _node(then, word)
    tossed, widths = [_coin(coin) for coin in coins], [coin["width"] for coin in coins]
    each = [(_below(word, count), face) for count, face in tossed]
    count, face = tossed[0]

    def toss() -> list[int]:
        if not distinct:
            return [face(draw()) for draw, face in each]
        while len(set(numbers := _belows(word, len(tossed), count))) < len(numbers):
            pass
        return [face(number) for number in numbers]

    def with_coins(report: Callable[[list[int]], int]) -> int:
        public = toss()
        return _joined([*public, report(public)], [*widths, rest.size])

    def likely(drawn: _Coins, item: Any, number: int, most: int) -> int:
        public = list[int]()
        for place, (count, face) in enumerate(tossed):
            size = count - len(tossed) + 1 + place if distinct else count
            found = face(drawn.below(place, size))
            public.append(face(size - 1) if distinct and found in public else found)
        return rest.likely(drawn.after(len(tossed)), own(item, public), number, most)

    return _Node(
        sum(widths) + rest.size,
        lambda item: with_coins(lambda public: rest.draw(own(item, public))),
        likely,
        rest.likelihoods,
        lambda: with_coins(lambda public: rest.idle()),
    )


def _coin(coin: dict[str, Any]) -> tuple[int, Callable[[int], int]]:
    """From how many numbers a coin draws one, and what each of them says."""
    if "phases" not in coin:
        start = coin["start"]
        return coin["count"], lambda number: start + number
    phases, deck = coin["phases"], list[int]()
    for level, many in enumerate(phases):
        times = max(phases) // many << len(phases) - 1 - level
        deck += [sum(phases[:level]) + phase for phase in range(many) for _ in range(times)]
    return len(deck), deck.__getitem__


def _mixture(
    word: Callable[[], int],
    width: int,
    weights: Any,
    channels: Any,
    kinds: Any,
    maps: Any,
    axes: Any,
) -> _Node:
    nodes, cuts, parts = [_node(each, word) for each in channels], list(map(_axis, axes)), len(maps)
    items = [_expression(each, cuts) for each in maps]
    asked = [part for part in range(parts) if weights is None or weights[part]]
    if weights is None:
        ends = [(part + 1) * WORD // parts for part in asked][:-1]
    else:
        ends = list(accumulate(weights[part] for part in asked))[:-1]
    before = [0, *accumulate(node.likelihoods for node in nodes)]

    def draw(item: Any) -> int:
        part = asked[bisect_right(ends, word())]
        return nodes[kinds[part]].draw(items[part](item)) << 8 * width | part

    def likely(coins: _Coins, item: Any, number: int, most: int) -> int:
        part = asked[bisect_right(ends, coins.word(0))]
        kind = kinds[part]
        return before[kind] + nodes[kind].likely(coins.after(1), items[part](item), number, most)

    return _Node(width + max(node.size for node in nodes), draw, likely, before[-1])


def _slots(word: Callable[[], int], size: int, empty: int, then: Any) -> _Node:
    rest = _node(then, word)

    def slot(items: Sequence[int]) -> int:
        chosen = _below(word, max(len(items), size))()
        return items[chosen] if chosen < len(items) else empty

    return rest._replace(draw=lambda items: rest.draw(slot(items)), slot=slot)


def _choice(
    word: Callable[[], int],
    seed: int,
    width: int,
    most: int,
    acceptance: Sequence[int],
    candidates: Sequence[int],
    then: Any,
) -> _Node:
    rest, favour, numbers = _node(then, word), _below(word, 2), range(max(candidates))

    def kept(user: int, likelihoods: Iterable[int]) -> int:
        drawn, above = word(), 0
        for number, likelihood in enumerate(likelihoods):
            above += acceptance[likelihood] if number < candidates[likelihood] else 0
            if drawn < above:
                return user | number + 1 << 64
        return user

    def draw(value: Any) -> int:
        user = word()
        item, coins = rest.slot(value), _Coins((user + seed) % WORD)
        return kept(user, (rest.likely(coins, item, number, most) for number in numbers))

    def idle() -> int:
        user, favoured = word(), favour()
        return kept(user, (favoured == number for number in range(candidates[0])))

    return _Node(8 + width, draw, rest.likely, idle=idle)


_NODES: dict[str, Callable[..., _Node]] = {
    "lie": _lie,
    "signs": _signs,
    "bits": _unary,
    "subset": _subset,
    "hyperplane": _hyperplane,
    "table": _table,
    "wave": _wave,
    "attributes": _attributes,
    "channels": _channels,
    "public": _public,
    "mixture": _mixture,
    "slots": _slots,
    "choice": _choice,
}


def main(arguments: list[str]) -> int:
    """Print a report of each value named after the file, or of each line of standard input.

    Returns the exit code: 2, after a message, if anything is wrong.
    """
    if not arguments or arguments[0].startswith("-"):
        print("usage: device.py PROTOCOL.json [VALUE ...]", file=sys.stderr)
        return 2
    try:
        client = load_client(arguments[0])
        texts = arguments[1:] or sys.stdin.read().splitlines()
        reports = [client.report(_spoken(text)) for text in texts]
    except ValueError as error:
        print(f"device.py: {error}", file=sys.stderr)
        return 2
    print(*(base64.b64encode(report).decode() for report in reports if report), sep="\n")
    return 0


def _spoken(text: str) -> Any:
    """A value on a command line: JSON where it is some, or a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

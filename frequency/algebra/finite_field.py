"""Finite fields, vectors over them, and the Fourier transform that counts incidences.

It takes O(q^t log q^t) steps.

The elements of F_q, q = p^k, are the integers 0 .. q-1: the base-p digits are the coefficients of a
polynomial modulo a fixed irreducible one. A vector of F_q^t is the integer 0 .. q^t - 1 whose
base-q digits are its coordinates. The *directions* are the points of projective space, one for each
line through the origin: that vector on it whose most significant nonzero digit is 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import shown, whole

AnyIntegers: TypeAlias = npt.NDArray[np.integer[Any]]

# The largest size of fields that multiply by table, and may be of any prime power order; larger
# ones are prime.
_TABLED = 256

#: The largest number of entries of a table with a number for each vector, for which fields are
#: chosen; or 8 for each item.
TABLE_LIMIT = 1 << 22

# The largest order of a field: products of two elements of a larger one exceed 63 bits.
_LARGEST = 1 << 31

# The number of numbers to transform at a time, about, where there are many rows.
_TOGETHER = 1 << 18

#: The lengths at which the Walsh-Hadamard transform changes its loops: a piece of `_IN_CACHE`
#: numbers stays in the cache.
_NEAR, _IN_CACHE = 1 << 6, 1 << 14

# The number of bits of q times the sum of the counts up to which transforms in floats, rounded back
# to integers, are right:
#
# an output is off by at most about 2^-53 log2(n) sqrt(n) times the norm of the input, below 0.1 for
# n = 2^24 vectors.
_EXACT_BITS = 36


@lru_cache(maxsize=1 << 12)
def prime_power(q: int) -> tuple[int, int] | None:
    """Return (p, k) with q = p^k and p prime, or None."""
    p = next((d for d in range(2, int(q**0.5) + 2) if q % d == 0 and d < q), q)
    k, rest = 0, q
    while q > 1 and rest % p == 0:
        rest, k = rest // p, k + 1
    return (p, k) if q > 1 and rest == 1 else None


def field_power(q: int) -> tuple[int, int] | None:
    """Return (p, k) if there is a field of q = p^k elements here, a prime or a small power."""
    power = prime_power(q)
    return power if power and (power[1] == 1 or q <= _TABLED) else None


def most_vectors(domain: int) -> int:
    """Return how many vectors a space for so many items may have: its table is gone through."""
    return max(TABLE_LIMIT, 8 * domain)


def directions(q: int, t: int) -> int:
    """Return the number of directions, and of hyperplanes, of F_q^t."""
    return (q**t - 1) // (q - 1)


def orders_near(target: float, low: int, high: int) -> Iterator[int]:
    """Yield the orders of fields in low .. high that are nearest to a target.

    At most two: the nearest at or above it (brought into the range), and the nearest below.
    """
    start = math.ceil(max(low, min(high, target)))
    for candidates in (range(start, high + 1), range(start - 1, low - 1, -1)):
        order = next(
            (q for q in candidates if field_power(q)),
            None,
        )
        if order is not None:
            yield order


def best_order(
    domain: int,
    target: float,
    least_t: int,
    capacity: Callable[[int, int], int],
    variance: Callable[[int, int], float],
) -> tuple[int, int]:
    """Return the field order q and dimension t of least variance, with room for the domain.

    Orders near ``target`` are compared; q^t is at most `most_vectors`.
    """
    limit = most_vectors(domain)
    choices: list[tuple[float, int, int]] = []
    for t in range(least_t, limit.bit_length()):
        high = int(limit ** (1 / t) + 1e-9)
        low = 2 + bisect_left(
            range(2, high + 1),
            domain,
            key=lambda q, t=t: capacity(q, t),  # type: ignore[misc]
        )
        # Beside the orders near the target, the least that has room: for few items a space without
        # spare points is better.
        candidates = {*orders_near(target, low, high), *orders_near(low, low, high)}
        choices += [(variance(q, t), t, q) for q in candidates if q <= _LARGEST]
    _, t, q = min(choices)
    return q, t


def checked_order(
    name: str,
    given: Sequence[int],
    length: int,
    capacity: Callable[[int, int], int],
    domain: int,
) -> tuple[int, ...]:
    """Return numbers that begin with a field order and a dimension, which users may choose.

    ValueError unless there is such a space, small enough for a table, with room for the domain.
    """
    numbers = tuple(whole(number, name, 1, _LARGEST) for number in given)
    if len(numbers) != length:
        raise ValueError(f"{name} must be {length} numbers, got {shown(given)}")
    q, t = numbers[:2]
    limit = most_vectors(domain)
    small = q > 1 and t < limit.bit_length() and q**t <= limit
    if not small or field_power(q) is None or capacity(q, t) < domain:
        raise ValueError(
            f"{name} must begin with the order of a field, a prime or a prime power up to"
            f" {_TABLED}, and a dimension: with room for {domain} items, and at most {limit}"
            f" vectors; got {shown(given)}"
        )
    return numbers


class Field:
    """The arithmetic of F_q on arrays of integers 0 .. q-1.

    q is a prime up to 2^31, or a prime power up to 256: else ValueError.
    """

    def __init__(self, q: int) -> None:
        power = field_power(q)
        if power is None or q > _LARGEST:
            raise ValueError(
                "the order of a field must be a prime up to 2^31, or a prime power up to"
                f" {_TABLED}, got {q}"
            )
        self.q, (self.p, self.k) = q, power

    @cached_property
    def _digits(self) -> npt.NDArray[np.int64]:
        return np.arange(self.q)[:, None] // self.p ** np.arange(self.k) % self.p

    @cached_property
    def _place(self) -> npt.NDArray[np.int64]:
        return self.p ** np.arange(self.k)

    @cached_property
    def products(self) -> npt.NDArray[np.int64]:
        """The multiplication table."""
        q, p, k, digits = self.q, self.p, self.k, self._digits
        long = np.zeros((q, q, 2 * k - 1), dtype=np.int64)
        for i in range(k):
            long[:, :, i : i + k] += digits[:, None, i, None] * digits[None, :, :]
        # Its polynomial is the first, in the order of integers, that leaves no zero divisors
        for low in range(q):  # x^k = -(the polynomial with these digits)
            rest = long.copy()
            for top in range(2 * k - 2, k - 1, -1):
                rest[:, :, top - k : top] -= rest[:, :, top, None] * digits[low]
            table: npt.NDArray[np.int64] = rest[:, :, :k] % p @ self._place
            # A finite ring without zero divisors is a field, hence the polynomial irreducible: as
            # quick to test as irreducibility, at these sizes, and it is the table itself that is
            # tested.
            if table[1:, 1:].all():
                return table
        raise AssertionError("unreachable: irreducible polynomials of every degree exist")

    @property
    def described(self) -> list[int]:
        """The numbers p, k and x^k as an element (0 for k = 1): all that a client must know."""
        top = int(self.products[self.p, self.p ** (self.k - 1)]) if self.k > 1 else 0
        return [self.p, self.k, top]

    @cached_property
    def _sum(self) -> npt.NDArray[np.int64]:
        return (self._digits[:, None] + self._digits) % self.p @ self._place

    @cached_property
    def _negative(self) -> npt.NDArray[np.int64]:
        return -self._digits % self.p @ self._place

    def add(self, a: AnyIntegers, b: AnyIntegers) -> AnyIntegers:
        """Return sums of elements, entry by entry (arrays broadcast)."""
        if self.p == 2:
            return a ^ b
        if self.k == 1:
            total = a + b
            return np.where(total >= self.q, total - self.q, total)
        return self._sum.ravel()[a * self.q + b]

    def negative(self, a: AnyIntegers) -> AnyIntegers:
        """Return the elements that give 0 when added."""
        return (-a) % self.q if self.k == 1 else self._negative[a]

    def multiply(self, a: AnyIntegers, b: AnyIntegers) -> AnyIntegers:
        """Return products of elements, entry by entry (arrays broadcast)."""
        return self.products.ravel()[a * self.q + b] if self.q <= _TABLED else a * b % self.q

    def inverse(self, a: AnyIntegers) -> AnyIntegers:
        """Return multiplicative inverses of nonzero elements."""
        return self._inverse[a]

    @cached_property
    def _inverse(self) -> AnyIntegers:
        power: AnyIntegers = np.arange(self.q)
        # The multiplicative group has q - 1 elements (Fermat and Lagrange); by repeated squaring,
        # for all elements at once.
        result, exponent = np.ones_like(power), self.q - 2  # a^(q-2)
        while exponent:
            if exponent & 1:
                result = self.multiply(result, power)
            power, exponent = self.multiply(power, power), exponent >> 1
        return result

    @cached_property
    def dual(self) -> npt.NDArray[np.int64]:
        """The dual z* of each z: Tr(z y) is the dot product of the base-p digits of z* and y."""
        if self.k == 1:
            return np.arange(self.q)
        basis = np.multiply.outer(np.ones(self.q, dtype=np.int64), self._place)
        term = self.products[np.arange(self.q)[:, None], basis]
        trace = term
        # Tr(a) = a + a^p + ... + a^(p^(k-1)): the characters of F_q are exp(2 pi i Tr(z y) / p), so
        # that its Fourier transform is one over digits in base p.
        for _ in range(self.k - 1):
            power = term
            for _ in range(self.p - 1):
                power = self.products[power, term]
            term = power
            trace = self._sum[trace, term]
        # The digits of z* are the traces of z x^i
        return trace @ self._place  # traces lie in F_p: their own lowest digit


@lru_cache(maxsize=16)
def field_of(q: int) -> Field:
    """Return F_q; its tables are made once."""
    return Field(q)


@lru_cache(maxsize=16)
def space(q: int, t: int) -> VectorSpace:
    """Return F_q^t; its tables are made once for each q and t."""
    return VectorSpace(q, t)


class VectorSpace:
    """The space F_q^t: inner products and scaling of vectors, and the incidence transform.

    ValueError unless q is a prime, or a prime power up to 256, t >= 1, and ``size`` = q^t <= 2^53.
    """

    def __init__(self, q: int, t: int) -> None:
        self.field, self.q, self.t = field_of(q), q, t
        self.size, self.directions = q**t, directions(q, t)
        if t < 1 or self.size > 1 << 53:
            raise ValueError(
                "a vector space needs a dimension of at least 1 and at most 2^53 vectors, got"
                f" {q}^{t}"
            )
        self.powers = np.array([q**j for j in range(t + 1)], dtype=np.int64)
        # As many digits at a time as a table of all pairs can hold.
        self._chunk = max(m for m in range(1, 9) if m == 1 or q**m <= _TABLED)

    @cached_property
    def _dot(self) -> npt.NDArray[np.uint8]:
        """The inner products of all pairs of ``_chunk`` digits, at index a q^chunk + x."""
        wide = np.arange(self.q**self._chunk)
        total: AnyIntegers = np.zeros((len(wide), len(wide)), dtype=np.int64)
        for j in range(self._chunk):
            digit = wide // self.q**j % self.q
            total = self.field.add(total, self.field.products[np.ix_(digit, digit)])
        return total.astype(np.uint8).ravel()

    def dot(self, a: AnyIntegers, x: AnyIntegers) -> npt.NDArray[np.int64]:
        """Return <a, x> in F_q of vectors given as integers."""
        if self.q == 2:
            return (np.bitwise_count(a & x) & 1).astype(np.int64)
        base = self.q**self._chunk
        total: AnyIntegers = np.zeros(np.shape(a), dtype=np.int64)
        for place in range(0, self.t, self._chunk):
            last = place + self._chunk >= self.t
            a, here_a = (a, a) if last else divmod(a, base)
            x, here_x = (x, x) if last else divmod(x, base)
            part = (
                self._dot[here_a * base + here_x].astype(np.int64)
                if self.q <= _TABLED
                else here_a * here_x % self.q
            )
            total = self.field.add(total, part) if place else part
        return np.asarray(total, dtype=np.int64)

    def _digitwise(self, image: npt.NDArray[np.int64], digits: int) -> npt.NDArray[np.int64]:
        """Return the map of F_q^digits, (q^digits,), that sends every digit z to image[z]."""
        table = np.zeros(1, dtype=np.int64)
        for j in range(digits):
            table = (image[:, None] * self.q**j + table).ravel()
        return table

    @cached_property
    def _scaled(self) -> npt.NDArray[np.int64]:
        """The products of c and every group of ``_chunk`` digits, at index c q^chunk + group."""
        return np.concatenate([self._digitwise(row, self._chunk) for row in self.field.products])

    def scale(self, c: AnyIntegers, a: AnyIntegers) -> npt.NDArray[np.int64]:
        """Return the vectors c a, shaped like `a`."""
        if self.q == 2:
            return (c * a).astype(np.int64)
        base = self.q**self._chunk
        result = np.zeros(np.shape(a), dtype=np.int64)
        for place in range(0, self.t, self._chunk):
            a, here = divmod(a, base)
            result += self.q**place * (
                self._scaled[c * base + here] if self.q <= _TABLED else c * here % self.q
            )
        return result

    def digit(self, a: AnyIntegers, place: AnyIntegers) -> AnyIntegers:
        """Return coordinates of vectors."""
        return a // self.powers[place] % self.q

    def leading(self, a: AnyIntegers) -> AnyIntegers:
        """Return the place of the leading nonzero digit; a must be nonzero."""
        if self.field.p == 2:
            # The binary exponent, exact as vectors are below 2^53.
            return (np.frexp(a.astype(np.float64))[1] - 1) // self.field.k
        return np.searchsorted(self.powers, a, side="right") - 1

    def vector(self, direction: AnyIntegers) -> npt.NDArray[np.int64]:
        """Return the vector of each direction."""
        offsets = (self.powers - 1) // (self.q - 1)
        place = np.searchsorted(offsets, direction, side="right") - 1
        return direction - offsets[place] + self.powers[place]

    def direction(self, a: AnyIntegers) -> tuple[npt.NDArray[np.int64], AnyIntegers]:
        """Return the direction of nonzero vectors, and the c with a = c (direction's vector)."""
        place = self.leading(a)
        lead = a // self.powers[place]
        unit = a if self.q == 2 else self.scale(self.field.inverse(lead), a)
        power = self.powers[place]
        return unit - power + (power - 1) // (self.q - 1), lead

    def rank(self, vectors: Sequence[int]) -> int:
        """Return how many of the vectors are independent, at most."""
        field, basis = self.field, dict[int, AnyIntegers]()
        for vector in vectors:
            digits = self.digit(np.array(vector), np.arange(self.t))
            for place, other in basis.items():  # each is 0 where those before it lead
                times = np.full(self.t, field.negative(digits[place]))
                digits = field.add(digits, field.multiply(times, other))
            if digits.any():
                place = int(np.flatnonzero(digits)[-1])
                inverse = np.full(self.t, field.inverse(digits[place]))
                basis[place] = field.multiply(inverse, digits)
        return len(basis)

    def difference(self, a: int, b: int) -> int:
        """Return the vector a - b, of two vectors 0 .. q^t - 1."""
        first, other = (self.digit(np.array(x), np.arange(self.t)) for x in (a, b))
        digits = self.field.add(first, self.field.negative(other))
        return int(digits @ self.powers[: self.t])

    def _blocks(self, back: bool = False) -> Iterator[tuple[int, slice, slice, AnyIntegers]]:
        """Yield for c* = 1 .. q-1 and each place j where the directions that lead at j are found.

        c*, these directions, where the dual indices of c times their vectors are, and in which
        order; ``back``: in which order the directions are for these.
        """
        field = self.field
        original = np.empty_like(field.dual)
        original[field.dual] = np.arange(self.q)
        for star in range(1, self.q):
            # Only what is below `_half`, as of real numbers the others follow
            # All that lead at the last place are beyond where c* is
            leads = self.t if star < self._half(1) else self.t - 1
            c = original[star]
            image = field.dual[field.multiply(np.full(self.q, c), np.arange(self.q))]
            order = self._digitwise(np.argsort(image) if back else image, max(leads - 1, 0))
            for j in range(leads):
                first, power = (self.q**j - 1) // (self.q - 1), self.q**j
                there = slice(star * power, (star + 1) * power)
                yield star, slice(first, first + power), there, order[:power]

    def _half(self, digits: int) -> int:
        """Return how many entries a transform over F_q^digits has: fewer if some follow."""
        p = self.field.p
        # In odd characteristic the entry at -b is the conjugate of that at b, and those are left
        # out whose first digit in base p is above p / 2
        return self.q**digits if p == 2 else (p // 2 + 1) * (self.q**digits // p)

    def _split(self, digits: int) -> tuple[tuple[int, ...], range]:
        """Return the shape of q^digits numbers as digits in base p, and its axes, reversed."""
        axes = self.field.k * digits
        return (self.field.p,) * axes, range(-1, -axes - 1, -1)

    def _transform(self, values: npt.NDArray[Any], digits: int) -> npt.NDArray[Any]:
        """Return the Fourier transform over the last axis, of length q^digits.

        Entry b* is the sum over x of value[x] chi(-<b, x>): of real numbers, the first `_half`.
        """
        # Integers stay integers, exactly, in characteristic 2. Others become complex
        if self.field.p == 2:
            return _walsh_hadamard(np.array(values, order="C"))
        (shape, axes), outer = self._split(digits), values.shape[:-1]
        spectrum = scipy.fft.rfftn(values.reshape(*outer, *shape), axes=axes)
        return spectrum.reshape(*outer, self._half(digits))

    def _reversed(self, spectrum: npt.NDArray[Any], digits: int, wanted: int) -> npt.NDArray[Any]:
        """Return q^digits times the first real numbers that `_transform` makes this spectrum of.

        The spectrum may be overwritten.
        """
        p = self.field.p
        if p == 2:
            return _walsh_hadamard(spectrum)[..., :wanted]
        (shape, axes), outer = self._split(digits), spectrum.shape[:-1]
        half, rest = p // 2 + 1, self.q**digits // p
        firsts = -(-wanted // rest)
        if 4 * firsts <= p:  # of the first digit: what others lead is not computed
            turn = np.exp(2j * np.pi / p * np.outer(np.arange(firsts), np.arange(half)))
            turn[:, 1:] *= 2  # with their conjugates
            some = (turn @ spectrum.reshape(*outer, half, rest)).reshape(*outer, firsts, *shape[1:])
            values = scipy.fft.ifftn(some, axes=axes[:-1], norm="forward", overwrite_x=True).real
        else:
            halved = spectrum.reshape(*outer, half, *shape[1:])
            firsts, values = p, scipy.fft.irfftn(halved, s=shape, axes=axes, norm="forward")
        return np.asarray(values).reshape(*outer, firsts * rest)[..., :wanted]

    def incident(self, counts: npt.NDArray[Any], wanted: int | None = None) -> npt.NDArray[Any]:
        """Return for every vector x the sum over directions a of counts[a, <a, x>].

        Shapes: `counts` (..., directions, q); returns (..., wanted).
        """
        if self.t == 1:
            return counts[
                ..., 0, :wanted
            ].copy()  # one direction, and <1, x> = x: nothing to transform
        return self._exactly(
            counts,
            lambda part: self._divided(
                self._incident(
                    part.sum(axis=(-2, -1)), self._transform(part, 1), wanted or self.size
                )
            ),
        )

    def through(self, counts: npt.NDArray[Any], wanted: int | None = None) -> npt.NDArray[Any]:
        """Return for every direction x the sum of counts[a] over directions a with <a, x> = 0.

        Shapes: `counts` (..., directions); returns (..., wanted).
        """
        wanted = self.directions if wanted is None else wanted
        rows = counts.reshape(-1, self.directions)
        kind = np.float64 if counts.dtype.kind == "f" else np.int64
        result = np.empty((len(rows), wanted), dtype=kind)
        step = max(1, _TOGETHER // self.size)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            result[part] = self._exactly(rows[part], lambda some: self._through(some, wanted))
        return result.reshape(*counts.shape[:-1], wanted)

    def _through(self, counts: npt.NDArray[Any], wanted: int) -> npt.NDArray[Any]:
        incidences = self._incident(counts.sum(axis=-1), counts[..., None], self.size)
        result = np.empty((len(counts), wanted), dtype=incidences.dtype)
        for j in range(self.t):  # the directions that lead at place j
            power = self.q**j
            first = (power - 1) // (self.q - 1)
            last = min(first + power, wanted)
            if first < last:
                result[:, first:last] = incidences[:, power : power + last - first]
        return self._divided(result)

    def _divided(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values over q, which divides them if they are integers."""
        if values.dtype.kind == "i":  # of characteristic 2
            return values >> (self.q.bit_length() - 1)
        return values / self.q

    def _exactly(
        self, counts: npt.NDArray[Any], transform: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]
    ) -> npt.NDArray[Any]:
        """Return a transform of integers, exact whatever their size."""
        if counts.dtype.kind == "f":
            return transform(counts)

        def small(part: npt.NDArray[np.int64], kind: type = np.int64) -> npt.NDArray[np.int64]:
            return (
                transform(part.astype(kind, copy=False)).astype(np.int64, copy=False)
                if self.field.p == 2
                else np.rint(transform(part.astype(np.float64))).astype(np.int64)
            )

        # Exact while its numbers are small; larger ones go a group of binary digits at a time
        room = (62 if self.field.p == 2 else _EXACT_BITS) - self.q.bit_length()
        needed = int(counts.sum()).bit_length()
        if needed <= room:
            return small(counts, np.int32 if needed <= room - 32 else np.int64)
        # A transform is linear: groups of binary digits are transformed apart, each exactly, and
        # added up with Python's or numpy's integers. So many digits keep the sum of a group within
        # the room.
        width = max(1, room - counts.size.bit_length())
        total: Any = 0
        for shift in range(0, 63, width):
            part = (counts >> shift) & ((1 << width) - 1)
            if part.any():
                total = total + (small(part) << shift)
        return np.asarray(total)

    def _incident(
        self, total: npt.NDArray[Any], lines: npt.NDArray[Any], wanted: int
    ) -> npt.NDArray[Any]:
        # [<a, x> = y] is the mean over c in F_q of chi(c (<a, x> - y)); every nonzero vector is c a
        # for one c and one direction a.
        spectrum = np.empty((*total.shape, self._half(self.t)), dtype=lines.dtype)
        negative = self.field.negative(np.arange(self.q))
        for star, where, there, order in self._blocks(back=True):
            if lines.shape[-1] == 1:
                part = lines[..., where, 0]
            elif star < lines.shape[-1]:
                part = lines[..., where, star]
            else:
                part = np.conj(lines[..., where, int(negative[star])])
            spectrum[..., there] = np.take(part, order, axis=-1)
        spectrum[..., 0] = total
        return self._reversed(spectrum, self.t, wanted)

    def sums(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return for every direction a and y the sum of weights[x] over the x with <a, x> = y.

        It is the adjoint of `incident`. Shapes: `weights` (..., q^t); returns (..., directions, q).
        """
        if self.t == 1:
            return weights[..., None, :].astype(np.float64)
        # The projection-slice theorem: the transform of the sums along a direction is the transform
        # of the weights on the line through 0 in that direction.
        spectrum = self._transform(weights, self.t)
        half = self._half(1)
        lines = np.zeros((*weights.shape[:-1], self.directions, half), dtype=spectrum.dtype)
        lines[..., 0] = weights.sum(axis=-1, keepdims=True)
        for star, where, there, order in self._blocks():
            if star < half:
                lines[..., where, star] = spectrum[..., there][..., order]
        return self._reversed(lines, 1, self.q) / self.q


def _walsh_hadamard(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the Walsh-Hadamard transform over the last, contiguous axis, 2^m long, in place.

    Entry b is the sum over x of (-1)^(b . x) value[x].
    """
    result, length = values, values.shape[-1]
    near, block = min(length, _NEAR), min(length, _IN_CACHE)
    # Near neighbours: turned, so that numpy's inner loops are long. Then all that is in the cache,
    # then far apart, piece by piece.
    rows = result.reshape(-1, near)
    for start in range(0, len(rows), _IN_CACHE // near):
        part = np.ascontiguousarray(rows[start : start + _IN_CACHE // near].T)
        _butterflies(part)
        rows[start : start + _IN_CACHE // near] = part.T
    for part in result.reshape(-1, block // near, near) if block > near else ():
        _butterflies(part)
    half = block
    while half < length:
        for left, right in result.reshape(-1, 2, half // block, block):
            for a, b in zip(left, right, strict=True):
                _butterfly(a, b)
        half *= 2
    return result


def _butterflies(values: npt.NDArray[Any]) -> None:
    """Transform over the first axis, in place."""
    half = 1
    while half < len(values):
        pairs = values.reshape(-1, 2, half, values.shape[1])
        _butterfly(pairs[:, 0], pairs[:, 1])
        half *= 2


def _butterfly(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> None:
    difference = a - b
    a += b
    b[...] = difference


def binary_basis(numbers: Iterable[int]) -> list[int]:
    """Return independent ones of some numbers, vectors of binary digits over F_2, reduced."""
    basis: list[int] = []
    for number in numbers:
        for other in basis:  # whose highest digit no later one has
            number = min(number, number ^ other)
        if number:
            basis.append(number)
    return basis


def walsh_hadamard(values: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return the (unnormalised) Walsh-Hadamard transform over the last axis, of length 2^m."""
    array = np.asarray(values)
    if array.dtype.kind in "biu":
        array = array.astype(np.int64)
    if array.shape[-1] & (array.shape[-1] - 1) or array.shape[-1] == 0:
        raise ValueError(f"the length must be a power of two, got {array.shape[-1]}")
    return _walsh_hadamard(np.array(array, order="C"))

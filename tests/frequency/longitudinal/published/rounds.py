"""The laws of both rounds of every system, from its paper: in fractions, by enumeration.

`rounds_of` never asks the code that draws; what days tell together follows by summing over what
users keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import singledispatch
from itertools import combinations, product
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from frequency.longitudinal.published import LGRR, LOLOHA, DBitFlipPM, LongitudinalSystem
from frequency.longitudinal.published.two_rounds import UnaryRounds
from tests.tape import WORD


class Rounds(NamedTuple):
    """Given what is drawn once for all values, with a probability.

    ``told`` maps a value to what its permanent report is about; ``first[x][about]`` is the
    probability of the permanent report x, and ``second[y][x]`` that of the day's report y.
    """

    probability: Fraction
    reports: list[bytes]
    told: dict[int, int]
    first: list[dict[int, Fraction]]
    second: list[list[Fraction]]


def response(k: int, kept: Fraction) -> list[list[Fraction]]:
    """Randomised response of k symbols, which are otherwise uniform."""
    return [[kept * (x == y) + (1 - kept) / k for x in range(k)] for y in range(k)]


def weight(system: LongitudinalSystem, name: str) -> Fraction:
    """A published integer of the permanent report, in units of 2^-64."""
    return Fraction(int(system.permanent.parameters[name]), WORD)


def bits_to_bytes(bits: Sequence[int]) -> bytes:
    return np.packbits(np.array(bits, dtype=np.uint8), bitorder="little").tobytes()


def bit_laws(
    vectors: Sequence[tuple[int, ...]], about: Sequence[int], p: Fraction, q: Fraction
) -> list[dict[int, Fraction]]:
    """The probability of each vector of bits, the one of ``about`` being a user's own."""
    return [
        {
            own: prod(
                (
                    (p if place == own else q) if bit else 1 - (p if place == own else q)
                    for place, bit in enumerate(bits)
                ),
                start=Fraction(1),
            )
            for own in about
        }
        for bits in vectors
    ]


@singledispatch
def rounds_of(system: Any) -> Iterator[Rounds]:
    """For everything that may be drawn once."""
    raise NotImplementedError(type(system).__name__)


@rounds_of.register
def _(system: UnaryRounds) -> Iterator[Rounds]:
    items = range(system.domain)
    vectors = list(product((0, 1), repeat=system.domain))
    bit = response(2, system.kept)
    second = [
        [prod(bit[y][x] for y, x in zip(a, b, strict=True)) for b in vectors] for a in vectors
    ]
    first = bit_laws(vectors, items, weight(system, "p"), weight(system, "q"))
    reports = [bits_to_bytes(bits) for bits in vectors]
    yield Rounds(Fraction(1), reports, {item: item for item in items}, first, second)


def item_laws(system: LongitudinalSystem, k: int) -> list[dict[int, Fraction]]:
    truth, lie = weight(system, "truth"), weight(system, "lie")
    return [{own: truth if x == own else lie for own in range(k)} for x in range(k)]


@rounds_of.register
def _(system: LGRR) -> Iterator[Rounds]:
    k = system.domain
    told = {item: item for item in range(k)}
    reports = [bytes([item]) for item in range(k)]
    yield Rounds(Fraction(1), reports, told, item_laws(system, k), response(k, system.kept))


@rounds_of.register
def _(system: LOLOHA) -> Iterator[Rounds]:
    protocol, items = system.protocol, np.arange(system.domain)
    q, t = protocol.parameters["field"], protocol.parameters["dimension"]
    for function in range(q**t):
        values = protocol.hashed(np.full(len(items), function), items)
        rows = np.array([(function, value) for value in range(q)], dtype=protocol.report_dtype)
        yield Rounds(
            Fraction(1, q**t),
            [row.tobytes() for row in rows],
            dict(enumerate(values.tolist())),
            item_laws(system, q),
            response(q, system.kept),
        )


@rounds_of.register
def _(system: DBitFlipPM) -> Iterator[Rounds]:
    domain, d = system.domain, system.asked
    sets = list(combinations(range(domain), d))
    for asked in sets:
        mask = [int(item in asked) for item in range(domain)]
        shorter = list(product((0, 1), repeat=d))
        told = {item: asked.index(item) if item in asked else d for item in range(domain)}
        first = bit_laws(shorter, range(d + 1), weight(system, "p"), weight(system, "q"))
        reports = []
        for bits in shorter:
            whole = [0] * domain
            for item, bit in zip(asked, bits, strict=True):
                whole[item] = bit
            reports.append(bits_to_bytes(mask) + bits_to_bytes(whole))
        same = [[Fraction(x == y) for x in range(2**d)] for y in range(2**d)]
        yield Rounds(Fraction(1, len(sets)), reports, told, first, same)


def joint_law(system: LongitudinalSystem, values: Sequence[int]) -> dict[bytes, Fraction]:
    """Of the reports of all days, one value a day."""
    law: dict[bytes, Fraction] = {}
    for rounds in rounds_of(system):
        about = [rounds.told[value] for value in values]
        for sent in product(range(len(rounds.reports)), repeat=len(values)):
            chance = rounds.probability
            for one in dict.fromkeys(about):
                mine = [y for y, other in zip(sent, about, strict=True) if other == one]
                chance *= sum(
                    rounds.first[x][one] * prod(rounds.second[y][x] for y in mine)
                    for x in range(len(rounds.reports))
                )
            law[b"".join(rounds.reports[y] for y in sent)] = chance
    return law


def worst_ratio(
    system: LongitudinalSystem, first: Sequence[int], second: Sequence[int]
) -> Fraction | float:
    """The largest ratio of the reports of all days under two sequences of values."""
    one, other = joint_law(system, first), joint_law(system, second)
    assert set(one) == set(other)
    pairs = [sorted((one[sent], other[sent])) for sent in one if one[sent] or other[sent]]
    return max(most / least if least else inf for least, most in pairs)

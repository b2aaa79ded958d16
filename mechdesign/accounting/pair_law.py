"""Pair laws: how reports of two values of a user compare with a law that hides them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import permutations
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base.arrays import Floats
from mechdesign.exceptions import UnboundedRatio

_ATTACKS = 2
"""How many attacks on a table are tried."""

LARGEST_RATIO = 1 << 900
"""The largest likelihood ratio of several pairs: floats end there.

:meta hide-value:
"""

_UNBOUNDED = (
    "an output is possible under one input and impossible under another: nothing hides it, whatever"
    " the other users hold"
)


class PairClass(NamedTuple):
    """Reports y with the same likelihoods, relative to omega(y).

    omega is a measure on the reports: a blanket, at most the probability of a report under every
    value; or, of an attack, the probability under one value.

    Attributes
    ----------
    weight : Fraction
        The measure omega of the class, above 0.
    first, second : Fraction
        The probability of a report under the first and the second value, over omega; at least 0.
    """

    weight: Fraction
    first: Fraction
    second: Fraction


PairLaw: TypeAlias = tuple[PairClass, ...]
"""All reports in classes: ``weight * first`` adds up to 1, and so does ``weight * second``; the
weights add up to at most 1.
"""


def merged(classes: Iterable[PairClass]) -> PairLaw:
    """The same law, with the classes of equal likelihoods made one, in order of these.

    >>> half = Fraction(1, 2)
    >>> merged([PairClass(half, Fraction(1), Fraction(1))] * 2)
    (PairClass(weight=Fraction(1, 1), first=Fraction(1, 1), second=Fraction(1, 1)),)
    """
    weights: defaultdict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for weight, first, second in classes:
        weights[first, second] += weight
    return tuple(PairClass(weight, *pair) for pair, weight in sorted(weights.items()) if weight)


def require_pair_law(law: Sequence[PairClass]) -> PairLaw:
    """The law itself; ValueError if its weights and ratios are none that reports have."""
    law = tuple(PairClass(*item) for item in law)
    if any(item.weight <= 0 or min(item.first, item.second) < 0 for item in law):
        raise ValueError("the classes of a pair law have weights above 0 and ratios of at least 0")
    sums = [sum((w * r for w, *pair in law for r in pair[k : k + 1]), Fraction(0)) for k in (0, 1)]
    if sums != [1, 1] or sum(item.weight for item in law) > 1:
        raise ValueError(
            "the probabilities of a pair law add up to 1 for both values, and its weights to at"
            " most 1"
        )
    return law


class PairLaws:
    """Several pair laws, of which the largest delta is wanted.

    Parameters
    ----------
    laws : sequence of PairLaw
        As protocols state them.

    Raises
    ------
    ValueError
        Numbers that are no law.
    """

    def __init__(self, laws: Sequence[Sequence[PairClass]]) -> None:
        self._laws = tuple(dict.fromkeys(map(require_pair_law, laws)))

    def __len__(self) -> int:
        return len(self._laws)

    def __getitem__(self, k: int) -> PairLaw:
        return self._laws[k]

    @cached_property
    def largest_ratio(self) -> Fraction:
        """The largest likelihood ratio of two values, at least 1."""
        found = Fraction(1)
        for law in self._laws:
            for _, first, second in law:
                if not first or not second:
                    raise UnboundedRatio(_UNBOUNDED)
                found = max(found, first / second, second / first)
        return found

    @cached_property
    def largest(self) -> Fraction:
        """The largest likelihood, relative to omega."""
        return max(
            (max(first, second) for law in self._laws for _, first, second in law),
            default=Fraction(1),
        )

    @property
    def terms(self) -> int:
        """How many roundings a number of `floats` has seen, at most."""
        return 1

    @cached_property
    def floats(self) -> list[Floats]:
        """Each law as weights, firsts and seconds: shape (3, classes), rounded to nearest."""
        return [np.array([[float(x) for x in item] for item in law]).T for law in self._laws]


class TableLaws(PairLaws):
    """The laws of all ordered pairs of inputs of a table, under its largest blanket.

    omega is the least probability of an output under any input. Laws are made when asked for, as
    there are many pairs; pairs with the same law count once.

    Parameters
    ----------
    weights : sequence of sequence of int
        Shape (outputs, inputs): probabilities in units of the sum of each column.

    Raises
    ------
    UnboundedRatio
        An output is possible under one input and impossible under another.
    """

    def __init__(self, weights: Sequence[Sequence[int]]) -> None:
        self._rows = [row for row in weights if any(row)]
        if not all(map(all, self._rows)):
            raise UnboundedRatio(_UNBOUNDED)
        self._omega = [min(row) for row in self._rows]
        self._total = sum(row[0] for row in self._rows)
        ratios = [
            [Fraction(w, low) for w in row]
            for row, low in zip(self._rows, self._omega, strict=True)
        ]
        self._ratios = sorted({ratio for row in ratios for ratio in row})
        if self._ratios[-1] > LARGEST_RATIO:
            raise UnboundedRatio(
                "an output is more than 2^900 times as likely under one input as under another"
            )
        place = {ratio: k for k, ratio in enumerate(self._ratios)}
        self._places = np.array([[place[ratio] for ratio in row] for row in ratios])
        kinds = {low: k for k, low in enumerate(dict.fromkeys(self._omega))}
        kind = np.array([kinds[low] for low in self._omega])
        pairs: dict[bytes, tuple[int, int]] = {}
        for pair in permutations(range(len(self._rows[0])), 2):
            classes = self._classes(pair) * len(kinds) + kind
            classes.sort()
            pairs.setdefault(classes.tobytes(), pair)
        self._pairs = list(pairs.values())

    def _classes(self, pair: tuple[int, int]) -> npt.NDArray[np.int64]:
        """A number for the two likelihoods of each output: shape (outputs,)."""
        first, second = pair
        found: npt.NDArray[np.int64] = (
            self._places[:, first] * len(self._ratios) + self._places[:, second]
        )
        return found

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, k: int) -> PairLaw:
        weights: defaultdict[int, int] = defaultdict(int)
        for number, low in zip(self._classes(self._pairs[k]).tolist(), self._omega, strict=True):
            weights[number] += low
        return tuple(
            PairClass(
                Fraction(weight, self._total),
                *(self._ratios[place] for place in divmod(number, len(self._ratios))),
            )
            for number, weight in sorted(weights.items())
        )

    @cached_property
    def largest_ratio(self) -> Fraction:
        return self._ratios[-1]  # of the least one, which is 1

    @property
    def largest(self) -> Fraction:
        return self._ratios[-1]

    @property
    def terms(self) -> int:
        return len(self._rows)

    @cached_property
    def floats(self) -> list[Floats]:
        omega = np.array([low / self._total for low in self._omega])
        ratios = np.array([float(ratio) for ratio in self._ratios])
        found = []
        for pair in self._pairs:
            classes, place = np.unique(self._classes(pair), return_inverse=True)
            first, second = np.divmod(classes, len(ratios))
            found.append(np.array([np.bincount(place, omega), ratios[first], ratios[second]]))
        return found


def attack_laws_of(weights: Sequence[Sequence[int]]) -> tuple[PairLaw, ...]:
    """The laws when all other users hold one value, for the values that reveal a user the most.

    Parameters
    ----------
    weights : sequence of sequence of int
        Shape (outputs, inputs), no output impossible under some inputs only: probabilities in
        units of the sum of each column.

    Returns
    -------
    tuple of PairLaw
        omega is the probability under the others' value. They are the ones with the largest
        variance of first - second, in floats: which are taken is a choice, and each is exact.
    """
    rows = [row for row in weights if any(row)]
    total = sum(row[0] for row in rows)
    least = 2.0**-1000  # of rows whose probabilities are 0 in floats
    table = np.array([[max(w / total, least) for w in row] for row in rows])
    scores = []
    for held in range(table.shape[1]):
        scaled = table / np.sqrt(table[:, [held]])
        squares = (scaled**2).sum(axis=0)
        apart = squares[:, None] + squares[None, :] - 2 * scaled.T @ scaled
        first, second = np.unravel_index(np.argsort(apart, axis=None)[-_ATTACKS:], apart.shape)
        scores += [
            (apart[x, z], held, int(x), int(z))
            for x, z in zip(first, second, strict=True)
            if x != z
        ]
    best = sorted(scores, reverse=True)[:_ATTACKS]
    return tuple(
        dict.fromkeys(
            merged(
                PairClass(
                    Fraction(row[held], total),
                    Fraction(row[x], row[held]),
                    Fraction(row[z], row[held]),
                )
                for row in rows
            )
            for _, held, x, z in best
        )
    )

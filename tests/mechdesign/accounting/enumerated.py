"""Slow twins: exact hockey-stick divergences, by listing everything that can happen."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any


def multiset_law(columns):
    """The exact law of the multiset of independent outputs, one of each column."""
    law: Counter[tuple[int, ...]] = Counter({(): Fraction(1)})
    for column in columns:
        longer: Counter[tuple[int, ...]] = Counter()
        for outputs, probability in law.items():
            for output, p in enumerate(column):
                if p:
                    longer[tuple(sorted((*outputs, output)))] += probability * p
        law = longer
    return law


def divergence(first, second, ratio):
    """sum_y (first(y) - ratio second(y))_+."""
    return sum((max(p - ratio * second[y], Fraction(0)) for y, p in first.items()), Fraction(0))


def shuffled_delta(table, n, ratio):
    """The largest divergence over all pairs of values and all datasets of the other users."""
    columns = list(zip(*table, strict=True))
    worst = Fraction(0)
    for others in combinations_with_replacement(columns, n - 1):
        laws = [multiset_law([column, *others]) for column in columns]
        for first, second in product(laws, repeat=2):
            worst = max(worst, divergence(first, second, ratio))
    return worst


def composed_delta(pairs, ratio):
    """The divergence of independent outputs, each of a pair (first, second) of columns."""
    total = Fraction(0)
    for outputs in product(*(range(len(first)) for first, _ in pairs)):
        p = q = Fraction(1)
        for output, (first, second) in zip(outputs, pairs, strict=True):
            p, q = p * first[output], q * second[output]
        total += max(p - ratio * q, Fraction(0))
    return total


def counted(calls: list[object], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which leaves a mark at every call."""

    def calling(*asked: Any) -> Any:
        calls.append(asked)
        return function(*asked)

    return calling

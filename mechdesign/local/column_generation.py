"""Column generation over extremal rows, whose entries are 1 and alpha up to a factor.

The restricted master program finds the best weights of the patterns in a pool, of 2^domain in all.
Its multipliers are a price for each item. A pattern whose utility exceeds the price of its row has
a positive reduced cost and enters the pool; if there is none, the prices prove that the weights are
optimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from math import ceil, gcd, prod
from typing import TypeAlias

import numpy as np
from flint import fmpq
from scipy import sparse

from mechdesign.base import Floats, ProgressMeter
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.basis import ONE, ZERO, Program, to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.lp.highs import FloatProgram, solve, to_float
from mechdesign.utilities.sublinear_utility import Pattern, Utility, upper

#: A pattern up to swaps of interchangeable items: the number of each class at level 1.
Counts: TypeAlias = tuple[int, ...]

#: The largest number of patterns, symmetric ones counted once, that are enumerated.
ENUMERATED = 1 << 16

_MAX_ROUNDS = 200
_AT_ONCE = 40
_CLOSE = fmpq(1, 1 << 40)


class Candidates:
    """The rows with entries 1 and alpha, and their utility."""

    # Rows that differ by a swap of interchangeable items are counted as one.

    def __init__(self, utility: Utility, alpha: fmpq) -> None:
        self.utility, self.alpha = utility, alpha
        self.classes = utility.classes()
        self.sizes = [len(each) for each in self.classes]
        self.few = alpha == 1 or prod(size + 1 for size in self.sizes) <= ENUMERATED
        self._worth: dict[Counts, fmpq] = {}

    def everything(self) -> list[Counts]:
        """Return all patterns but the one with no item at level 1, a multiple of that with all."""
        if self.alpha == 1:
            return [tuple(self.sizes)]
        return [
            counts for counts in product(*(range(size + 1) for size in self.sizes)) if any(counts)
        ]

    def counts(self, pattern: Pattern) -> Counts:
        """Return the number of items of each class that are at the higher level of a pattern."""
        return tuple(sum(pattern[x] for x in each) for each in self.classes)

    def by_item(self, prices: Sequence[fmpq]) -> list[fmpq]:
        """Return a price for each item from one for each class."""
        by_item = [ZERO] * self.utility.items
        for members, y in zip(self.classes, prices, strict=True):
            for x in members:
                # The constraint of a class is the mean of those of its items: its price is their
                # sum.
                by_item[x] = y / len(members)
        return by_item

    def averages(self, counts: Counts) -> list[fmpq]:
        """Return the average level of each class."""
        return [
            self.alpha + (1 - self.alpha) * fmpq(count, size)
            for count, size in zip(counts, self.sizes, strict=True)
        ]

    def float_averages(self, every: Sequence[Counts]) -> Floats:
        """Return the average levels in floats, a row for each element of ``every``."""
        averages: Floats = to_float(self.alpha) + to_float(1 - self.alpha) * (
            np.array(every) / np.array(self.sizes)
        )
        return averages

    def worth(self, counts: Counts) -> fmpq:
        """Return an upper bound on the utility of the row, the least that is known."""
        if counts not in self._worth:
            row = [self.alpha] * self.utility.items
            for items, count in zip(self.classes, counts, strict=True):
                # Any representative: the utility does not change with swaps within a class.
                for x in items[:count]:
                    row[x] = ONE
            self._worth[counts] = upper(self.utility.worth(row))
        return self._worth[counts]

    def excess(self, counts: Counts, prices: Sequence[fmpq]) -> fmpq:
        """Return the reduced cost of the row: its utility less its price, by a price per class."""
        return self.worth(counts) - sum(
            (y * a for y, a in zip(prices, self.averages(counts), strict=True)), ZERO
        )

    def rows(self, weights: dict[Counts, Fraction]) -> dict[Pattern, Fraction]:
        """Return patterns with weights such that all items of a class have the wanted average."""
        # Systematic sampling: for a phase u in [0, 1), item j of a class is chosen if there is an
        # integer in [j c/n - u, (j + 1) c/n - u). That chooses c items of n, each for a measure c/n
        # of phases, and few sets in all.
        patterns: dict[Pattern, Fraction] = {}
        for counts, weight in weights.items():
            steps = [
                size // gcd(size, count) for size, count in zip(self.sizes, counts, strict=True)
            ]
            # Between neighbouring multiples of 1 / step no ceiling below changes: a pattern for
            # each interval of phases, with its length as the weight. The number of items is not
            # exponential as that of all orders would be.
            for start, end in pairwise(
                sorted({Fraction(j, step) for step in steps for j in range(step + 1)})
            ):
                pattern = [False] * self.utility.items
                for items, count in zip(self.classes, counts, strict=True):
                    size = len(items)
                    edges = [ceil(Fraction(j * count, size) - start) for j in range(size + 1)]
                    for x, (left, right) in zip(items, pairwise(edges), strict=True):
                        pattern[x] = right > left
                key = tuple(pattern)
                patterns[key] = patterns.get(key, Fraction(0)) + weight * (end - start)
        return patterns


def generated(patterns: Candidates, progress: bool) -> tuple[dict[Counts, Fraction], list[fmpq]]:
    """Return the weights of an optimal mechanism's patterns, and a price for every item."""
    # At these prices no row has a positive reduced cost, which proves the bound.
    price = _by_enumeration(patterns) if patterns.few else _by_utility(patterns)
    items = patterns.utility.items
    # The constant row is a mechanism by itself: every master program is feasible.
    pool = {tuple(patterns.sizes)}
    best: tuple[fmpq, list[fmpq]] | None = None

    def improved(trial: Sequence[fmpq]) -> set[Counts]:
        """Return patterns with a positive reduced cost that are not in the pool.

        If this proves a bound, it is kept if it is the best so far.
        """
        nonlocal best
        excess, priced = price(trial)
        if excess is not None:
            # Dual feasibility from any prices (Farley's bound): every row sums to at least
            # 1 + alpha (items - 1), so that raising every price by this much covers the excess.
            # The sum of feasible prices bounds the utility, whatever the pool is.
            more = max(excess, ZERO) / (1 + patterns.alpha * (items - 1))
            total = sum(trial, more * items)
            if best is None or total < best[0]:
                best = (
                    total,
                    [y + more * size for y, size in zip(trial, patterns.sizes, strict=True)],
                )
        return set(priced) - pool

    if not patterns.few and (start := patterns.utility.warm_start(patterns.alpha)):
        candidates, trial = start
        pool |= {counts for counts in map(patterns.counts, candidates) if any(counts)}
        pool |= improved([sum((trial[x] for x in each), ZERO) for each in patterns.classes])
    # Prices from floats while the pool grows; exact ones at the end, when no pattern is new.
    rough = not patterns.few
    with ProgressMeter(f"extremal k = {items}", unit="rounds", shown=progress) as meter:
        for _ in range(_MAX_ROUNDS):
            meter.update()
            weights, prices = (_guessed if rough else _master)(patterns, list(pool))
            new = improved(prices)
            meter.say(f"{len(pool)} patterns")
            # Tiny utilities in the tail of the pool can go on for ever; the bound shows what they
            # are worth.
            close = (
                not patterns.few
                and best is not None
                and best[0] - sum(prices, ZERO) <= _CLOSE * abs(best[0])
            )
            if not new or close:
                if not rough:
                    break
                rough = False
            pool |= new
        else:
            weights, _ = _master(patterns, list(pool))
    if best is None:
        raise SolverFailure(f"no bound on the utility was proved in {_MAX_ROUNDS} rounds")
    return weights, patterns.by_item(best[1])


def _master(
    patterns: Candidates, pool: Sequence[Counts]
) -> tuple[dict[Counts, Fraction], list[fmpq]]:
    """Return the best weights of these patterns, and a price for each class, exactly."""
    worth = [patterns.worth(counts) for counts in pool]
    # Costs of order 1: the tolerances of the solver are absolute.
    largest = max(map(abs, worth)) or ONE
    cells = np.arange(len(pool))[None, :]
    averages = zip(*(patterns.averages(counts) for counts in pool), strict=True)
    groups = (
        Constraints(cells, tuple(map(to_fraction, column)), Fraction(1), True, f"class {i}")
        for i, column in enumerate(averages)
    )
    solution = certify(
        Program(tuple(to_fraction(-value / largest) for value in worth), tuple(groups))
    )
    weights = {counts: weight for counts, weight in zip(pool, solution.x, strict=True) if weight}
    return weights, [-largest * to_fmpq(value) for value in solution.multipliers]


def _guessed(
    patterns: Candidates, pool: Sequence[Counts]
) -> tuple[dict[Counts, Fraction], list[fmpq]]:
    """Return nearly the same prices in floats, which is quicker, and no weights."""
    # Any prices prove a bound, so these need not be exact.
    worth = [patterns.worth(counts) for counts in pool]
    largest = max(map(abs, worth)) or ONE
    cost = np.array([to_float(-value / largest) for value in worth])
    matrix = patterns.float_averages(pool).T
    ones = np.ones(len(matrix))
    try:
        # Only the basis is taken from the solver. Prices solve its system anew, B'y = c: by least
        # squares, as the basis may contain slacks and have fewer columns than rows.
        basic = solve(
            FloatProgram(sparse.csr_array(matrix), ones, ones, np.zeros(len(cost)), cost)
        ).basis.columns
    except (Infeasible, SolverFailure):
        return _master(patterns, pool)
    prices = np.linalg.lstsq(matrix[:, basic].T, -cost[basic])[0]
    return {}, [largest * to_fmpq(Fraction(value)) for value in prices.tolist()]


# The type of pricing: from a price for each class to a bound and to patterns.
#
# The bound, if known, is a proved upper bound on the reduced cost of any row. The patterns are some
# with a positive reduced cost.
_Pricing: TypeAlias = Callable[[Sequence[fmpq]], tuple[fmpq | None, list[Counts]]]


def _by_enumeration(patterns: Candidates) -> _Pricing:
    every = patterns.everything()
    worth = np.array([to_float(patterns.worth(counts)) for counts in every])
    averages = patterns.float_averages(every)
    slack = 1e-11 * float(np.max(np.abs(worth)))

    def price(prices: Sequence[fmpq]) -> tuple[fmpq | None, list[Counts]]:
        floats = worth - averages @ np.array([to_float(y) for y in prices])
        seen = [every[int(v)] for v in np.argsort(-floats)[:_AT_ONCE] if floats[v] > slack]
        # Floats find candidates; exact arithmetic over all patterns is needed for the proof only,
        # in the last round. Utilities beyond `slack` cannot be mistaken by rounding.
        if improving := [counts for counts in seen if patterns.excess(counts, prices) > 0]:
            return None, improving
        exact = {counts: patterns.excess(counts, prices) for counts in every}
        improving = sorted(
            (counts for counts, excess in exact.items() if excess > 0),
            key=lambda counts: -exact[counts],
        )
        return max(exact.values()), improving[:_AT_ONCE]

    return price


def _by_utility(patterns: Candidates) -> _Pricing:
    def price(prices: Sequence[fmpq]) -> tuple[fmpq | None, list[Counts]]:
        bound, candidates = patterns.utility.pricing(patterns.by_item(prices), patterns.alpha)
        exact = {
            counts: patterns.excess(counts, prices)
            for counts in set(map(patterns.counts, candidates))
            if any(counts)
        }
        # If the bound is far above what patterns reach, more patterns would not lower it.
        improving = sorted(
            (counts for counts, excess in exact.items() if excess > bound / 10),
            key=lambda counts: -exact[counts],
        )
        return bound, improving[:_AT_ONCE]

    return price

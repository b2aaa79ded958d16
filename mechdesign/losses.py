"""Losses: a cost |i - j|^p beyond a distance, or any, averaged over a prior or in the worst case.

Every loss here is the *plain* expectation of Definition 21 (thesis 6.2). The thesis also reports a
scaled L0, eq. 6.1: (n + 1)/n times the plain one under the uniform prior, so that the uniform
mechanism scores 1. That one is `Mechanism.scaled_l0`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from flint import fmpz

from mechdesign.base import Rational, brief, exact, set_fields, shown, whole
from mechdesign.exceptions import InvalidPrior, NotSquare
from mechdesign.mechanism.values import Values, distances, errors, values_of

_ROOT_BITS = 64  # binary digits after the point of a cost that is not rational

_LARGEST_POWER = 100


@dataclass(frozen=True, kw_only=True)
class Loss(ABC):
    """A cost for every (output, input), and how the costs of the inputs combine.

    Attributes
    ----------
    prior : tuple of Fraction or None
        Exact weights over the inputs, shape (inputs,), that sum to one; None is uniform. See
        `prior` and `binomial` for ways to make one.
    worst_case : bool
        False: the expectation over the prior. True: the largest expected cost over the inputs. With
        a prior that is the largest of the costs times their weights, as Definition 21 has it; with
        None each input counts in full, n + 1 times as much as by the uniform weights.
    """

    prior: tuple[Fraction, ...] | None = None
    worst_case: bool = False

    def __post_init__(self) -> None:
        if self.prior is not None:
            set_fields(self, prior=_distribution(self.prior))

    @abstractmethod
    def cost(self, output: int, input: int) -> Fraction:
        """The cost >= 0 of answering ``output`` when the truth is ``input``."""

    def costs(self, outputs: Values | int, inputs: Values | int) -> list[list[Fraction]]:
        """The cost of every output for every input: rows are outputs.

        A band costs as much as that of its counts which is nearest to the truth.

        Parameters
        ----------
        outputs, inputs : Values or int
            What rows and columns stand for; an integer k stands for the counts 0 .. k-1.

        Raises
        ------
        InvalidMechanism
            The loss has no costs for such values, as those of pairs of counts.
        """
        apart = errors(values_of(outputs), values_of(inputs)).tolist()
        return [[self.cost(j + error, j) for j, error in enumerate(row)] for row in apart]

    def weights(self, inputs: int) -> tuple[Fraction, ...]:
        """Return what the expected cost of each of ``inputs`` inputs is multiplied with.

        Raises InvalidPrior when the prior has another length.
        """
        if self.worst_case and self.prior is None:
            return (Fraction(1),) * whole(inputs, "inputs", 1, what="a number of inputs")
        return prior_over(inputs, self.prior)


@dataclass(frozen=True)
class Power(Loss):
    """|i - j|^p where |i - j| > d, else 0 (so p = 0, d = 0 is the probability of a wrong answer).

    |i - j| is the distance of `mechdesign.mechanism.values.distances`: also of bands and of pairs
    of counts. The thesis writes |i - j| >= d for L0,d but describes "more than d steps" and wants
    L0,0 = L0: that is ``> d``.

    Parameters
    ----------
    p : Fraction, int, str or Decimal
        Exact, at least 0, at most 100, with a denominator of at most 100. When |i - j|^p is
        irrational the cost is that number rounded down to 64 binary places, and all that is proved
        is proved for the rounded costs.
    d : int, default 0
        Distance up to which an error costs nothing.
    """

    p: Fraction
    d: int = 0

    def __init__(
        self,
        p: Rational,
        d: int = 0,
        prior: Iterable[Rational] | None = None,
        worst_case: bool = False,
    ) -> None:
        power = exact(p, "p")
        if not 0 <= power <= _LARGEST_POWER or power.denominator > _LARGEST_POWER:
            raise ValueError(
                f"the power of a loss must be at least 0, and at most {_LARGEST_POWER}, with a"
                f" denominator of at most {_LARGEST_POWER}, got {brief(power)}"
            )
        d = whole(d, "the distance threshold")
        for name, value in (
            ("p", power),
            ("d", d),
            ("worst_case", bool(worst_case)),
            ("prior", prior),
        ):
            set_fields(self, **{name: value})
        self.__post_init__()

    def cost(self, output: int, input: int) -> Fraction:
        distance = abs(int(output) - int(input))
        return _power(distance, self.p) if distance > self.d else Fraction(0)

    def costs(self, outputs: Values | int, inputs: Values | int) -> list[list[Fraction]]:
        apart = distances(values_of(outputs), values_of(inputs))
        known = {distance: self.cost(distance, 0) for distance in np.unique(apart).tolist()}
        return [[known[distance] for distance in row] for row in apart.tolist()]

    def __repr__(self) -> str:
        name = f"L{self.p}" if self.p.denominator == 1 else f"L{float(self.p):g}"
        parts = (
            [f"d={shown(self.d)}"] * bool(self.d)
            + ["prior=..."] * bool(self.prior)
            + ["worst_case=True"] * self.worst_case
        )
        return f"{name}({', '.join(parts)})"


@dataclass(frozen=True)
class Costs(Loss):
    """Any table of costs >= 0, rows are outputs and columns inputs, entries exact."""

    table: tuple[tuple[Fraction, ...], ...] = field(repr=False)

    def __init__(
        self,
        table: Iterable[Iterable[Rational]],
        prior: Iterable[Rational] | None = None,
        worst_case: bool = False,
    ) -> None:
        rows = tuple(tuple(exact(entry, "a cost") for entry in row) for row in table)
        if not rows or not rows[0] or len({len(row) for row in rows}) != 1:
            raise ValueError("a table of costs needs at least one row and rows of one length")
        if min(min(row) for row in rows) < 0:
            raise ValueError("costs must be at least 0; add a constant to a column to make them so")
        for name, value in (("table", rows), ("worst_case", bool(worst_case)), ("prior", prior)):
            set_fields(self, **{name: value})
        self.__post_init__()

    def cost(self, output: int, input: int) -> Fraction:
        return self.table[output][input]

    def costs(self, outputs: Values | int, inputs: Values | int) -> list[list[Fraction]]:
        rows, columns = values_of(outputs).size, values_of(inputs).size
        if (rows, columns) != (len(self.table), len(self.table[0])):
            raise NotSquare(
                f"the costs are {len(self.table)} x {len(self.table[0])}, the mechanism is"
                f" {rows} x {columns}"
            )
        return [list(row) for row in self.table]


def L0(d: int = 0, prior: Iterable[Rational] | None = None, worst_case: bool = False) -> Power:
    """The probability of an answer more than d steps off (plain, not the scaled one of eq. 6.1)."""
    return Power(0, d, prior, worst_case)


def L1(d: int = 0, prior: Iterable[Rational] | None = None, worst_case: bool = False) -> Power:
    """The expected absolute error, counting only errors of more than d steps."""
    return Power(1, d, prior, worst_case)


def L2(d: int = 0, prior: Iterable[Rational] | None = None, worst_case: bool = False) -> Power:
    """The expected squared error, counting only errors of more than d steps."""
    return Power(2, d, prior, worst_case)


def prior(weights: Sequence[Rational]) -> tuple[Fraction, ...]:
    """Exact weights >= 0, such as a histogram of earlier counts, divided by their sum.

    >>> prior([1, 2, 1])
    (Fraction(1, 4), Fraction(1, 2), Fraction(1, 4))
    """
    values = [exact(weight, "a prior weight") for weight in weights]
    total = sum(values, Fraction(0))
    if total <= 0 or min(values) < 0:
        raise InvalidPrior("prior weights must be at least 0 and not all 0")
    return tuple(value / total for value in values)


def binomial(n: int, p: Rational) -> tuple[Fraction, ...]:
    """The prior of a count of n independent bits, each 1 with probability p (thesis 6.7.3)."""
    n, q = whole(n, "n", what="a whole number of respondents"), exact(p, "p")
    if not 0 <= q <= 1:
        raise InvalidPrior(f"a probability must lie in [0, 1], got {brief(q)}")
    return tuple(math.comb(n, j) * q**j * (1 - q) ** (n - j) for j in range(n + 1))


def prior_over(inputs: int, weights: Iterable[Rational] | None = None) -> tuple[Fraction, ...]:
    """Exact weights over ``inputs`` inputs; the uniform ones if None.

    Raises InvalidPrior unless they are a distribution over these inputs.
    """
    inputs = whole(inputs, "inputs", 1, what="a number of inputs", error=InvalidPrior)
    if weights is None:
        return (Fraction(1, inputs),) * inputs
    values = _distribution(weights)
    if len(values) != inputs:
        raise InvalidPrior(f"the prior has {len(values)} weights for {inputs} inputs")
    return values


#: Weights of counts from 0 on, or what gives those of a largest count, which sum to 1.
Prior: TypeAlias = Sequence[Rational] | Callable[[int], Iterable[Rational]]


def prior_for(n: int, given: Prior | None) -> tuple[Fraction, ...] | None:
    """Exact weights of the counts 0 .. n: of a list its first ones, divided by their sum.

    None stays None. Raises InvalidPrior if there are too few, or these are no distribution.
    """
    if given is None:
        return None
    if callable(given):
        return prior_over(n + 1, given(n))
    if len(given) <= n:
        raise InvalidPrior(f"the prior has {len(given)} weights for the counts 0 .. {n}")
    return prior(given[: n + 1])


def _distribution(weights: Iterable[Rational]) -> tuple[Fraction, ...]:
    values = tuple(exact(weight, "a prior weight") for weight in weights)
    if any(value < 0 for value in values):
        raise InvalidPrior(f"a prior weight is negative: {brief(min(values))}")
    if sum(values) != 1:
        raise InvalidPrior(
            f"the prior sums to {brief(sum(values, Fraction(0)), 12)}, not to 1; losses.prior()"
            " divides by the sum"
        )
    return values


def _power(base: int, power: Fraction) -> Fraction:
    if power.denominator == 1:
        return Fraction(base**power.numerator)
    # floor of the root of an integer: exact, so the same on every machine.
    scaled = fmpz(base) ** power.numerator << (_ROOT_BITS * power.denominator)
    return Fraction(int(scaled.root(power.denominator)), 1 << _ROOT_BITS)

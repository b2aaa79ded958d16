"""ApproximatePrivacy: what a table promises with (epsilon, delta), and between which inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import Rational, brief, exact, set_fields
from mechdesign.privacy import Metric, Neighbours, Privacy


@dataclass(frozen=True, slots=True, init=False)
class ApproximatePrivacy:
    """A bound on how well neighbouring inputs are told apart, but for a probability of delta.

    A mechanism P keeps it when ``Pr[S | j] <= Pr[S | j'] / alpha + delta`` for every set S of
    outputs and all neighbours j, j', both ways: (epsilon, delta)-differential privacy with
    alpha = exp(-epsilon). At alpha 1 delta bounds the total variation distance.

    Parameters
    ----------
    alpha : Fraction, int, str or Decimal
        An exact rational in (0, 1]; for an epsilon see `from_epsilon`.
    delta : Fraction, int, str or Decimal
        An exact rational of 0 to 1. A table with a delta of 0 promises the `Privacy` that is
        ``pure``; 1 promises nothing.
    neighbours : str, int, or iterable of pairs of int, default "adjacent"
        As of `Privacy`, but for a `Metric`: what delta is at a distance, it does not say.

    Raises
    ------
    ValueError
        A number out of range, or a `Metric`.

    Examples
    --------
    >>> ApproximatePrivacy(alpha="1/2", delta="1/100")
    ApproximatePrivacy(alpha=1/2, delta=0.01, neighbours='adjacent')
    """

    pure: Privacy  #: The promise of the same epsilon and neighbours without a delta.
    delta: Fraction  #: The delta, exact.

    def __init__(
        self,
        *,
        alpha: Rational,
        delta: Rational,
        neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent",
    ) -> None:
        pure, allowed = Privacy(alpha=alpha, neighbours=neighbours), exact(delta, "delta")
        if not 0 <= allowed <= 1:
            raise ValueError(f"delta is 0 to 1, got {brief(allowed, 12)}")
        if isinstance(pure.neighbours, Metric):
            raise ValueError(
                "a metric allows epsilon once for each unit of distance, and says nothing of delta:"
                " list the neighbours instead"
            )
        set_fields(self, pure=pure, delta=allowed)

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float | Rational,
        delta: Rational,
        neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent",
    ) -> ApproximatePrivacy:
        """Return the promise of an epsilon, whose alpha is that of `Privacy.from_epsilon`.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            As of `Privacy.from_epsilon`.
        delta : Fraction, int, str or Decimal
            As of the class.
        neighbours : str, int, or iterable of pairs of int, default "adjacent"
            As of the class.

        Returns
        -------
        ApproximatePrivacy

        Raises
        ------
        ValueError
            A number out of range, or a `Metric`.
        """
        alpha = Privacy.from_epsilon(epsilon).alpha
        return cls(alpha=alpha, delta=delta, neighbours=neighbours)

    @property
    def alpha(self) -> Fraction:
        """exp(-epsilon), exact: no promise without `delta`."""
        return self.pure.alpha

    @property
    def epsilon(self) -> float:
        """-ln(alpha), rounded up: no promise without `delta`."""
        return self.pure.epsilon

    @property
    def neighbours(self) -> Neighbours:
        """Which inputs are neighbours."""
        return self.pure.neighbours

    def at(self, epsilon: float | Rational) -> ApproximatePrivacy:
        """Return the promise of another epsilon with the same delta and neighbours."""
        return self.from_epsilon(epsilon, self.delta, self.neighbours)

    def between(self, neighbours: Neighbours | Iterable[tuple[int, int]]) -> ApproximatePrivacy:
        """Return the same promise between other neighbours."""
        return ApproximatePrivacy(alpha=self.alpha, delta=self.delta, neighbours=neighbours)

    def pairs(self, inputs: int) -> npt.NDArray[np.int64]:
        """Return the neighbours among inputs ``0 .. inputs-1``, as `Privacy.pairs` does."""
        return self.pure.pairs(inputs)

    def pair_count(self, inputs: int) -> int:
        """Count the `pairs`."""
        return self.pure.pair_count(inputs)

    def distances(self, inputs: int) -> npt.NDArray[np.int64]:
        """The distances of the `pairs`, all of which are 1: shape (pairs,)."""
        return self.pure.distances(inputs)

    def delta_between(self, one: Iterable[int], other: Iterable[int], total: int) -> Fraction:
        """Return the least delta that holds with alpha, one way, for the laws of two inputs.

        Parameters
        ----------
        one, other : iterable of int
            Weights of the outputs, in the same order.
        total : int
            What the weights of an input add up to, at least 1.

        Returns
        -------
        Fraction
            The hockey-stick divergence: the largest ``Pr[S | one] - Pr[S | other] / alpha``.
        """
        top, bottom = self.alpha.as_integer_ratio()
        beyond = sum(max(0, p * top - q * bottom) for p, q in zip(one, other, strict=True) if p)
        return Fraction(beyond, total * top)

    def __repr__(self) -> str:
        stated = repr(self.pure).partition("(")[2]
        alpha, _, neighbours = stated.partition(", ")
        return f"ApproximatePrivacy({alpha}, delta={brief(self.delta, 12)}, {neighbours}"


#: What a table may promise: epsilon alone, or with a delta.
Promise: TypeAlias = Privacy | ApproximatePrivacy

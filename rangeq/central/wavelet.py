"""Noise on Haar coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mechdesign.base.linear_algebra import Floats, Integers
from rangeq.central.estimate import CentralEstimate, Summed
from rangeq.central.mechanism import CentralMechanism
from rangeq.core.haar import Haar, blocks, cells_of
from rangeq.core.tree_errors import TreeErrors


@dataclass(frozen=True)
class Wavelet(CentralMechanism):
    """Privelet: noise on the Haar coefficients, of several attributes on their tensor products.

    Xiao, Wang, Gehrke 2010; Qardaji et al., section 4. Asked along an attribute are the total and,
    for each inner node of the binary tree, the difference left half - right half: 1 + log2 D levels
    of numbers, of each of which a user changes one by one. The paper's coefficients are these
    differences over the number of cells below, and its weights multiply by that number again: the
    noise is the same. Of several attributes all products are asked, and the numbers of levels
    multiply; epsilon is split equally.

    Sizes that are no powers of two are no matter: what lies beyond them is known to be empty, which
    least squares use (`rangeq.core.haar`).

    Parameters
    ----------
    shape : int or sequence of int
        The number of cells of one attribute, or along each of several: as for `CentralMechanism`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one release, at least 2^-32.
    """

    privacy_source: ClassVar[str] = "hierarchical histograms, section 4"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.noise  # noqa: B018  an epsilon too small for so many levels is found here

    @cached_property
    def _haar(self) -> list[Haar]:
        return [Haar(size) for size in self.sizes]

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        levels = math.prod(len(haar.levels) for haar in self._haar)
        return (Fraction(1, levels),) * levels

    def errors_of(self, variances: Sequence[Any]) -> TensorErrors:
        return TensorErrors(self._haar, variances[0])

    def levels(self, counts: Integers) -> list[Integers]:
        for axis, haar in enumerate(self._haar):
            counts = np.moveaxis(haar.coefficients(np.moveaxis(counts, axis, 0)), 0, axis)
        return [counts[block] for block in blocks(self._haar).values()]

    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        levels = dict(zip(blocks(self._haar), noisy, strict=True))
        return Summed(self, cells_of(self._haar, levels))


class TensorErrors:
    """The variances of queries, where those of each attribute multiply.

    Parameters
    ----------
    factors : sequence of TreeErrors
        One an attribute, exact.
    noise : float or Fraction
        The variance of the noise of a coefficient, of which those are multiples: a Fraction for
        exact variances.
    """

    def __init__(self, factors: Sequence[TreeErrors], noise: float | Fraction) -> None:
        self._noise = noise
        self._factors = (
            factors
            if isinstance(noise, Fraction)
            else [
                TreeErrors(one.tree, [table.astype(np.float64) for table in one.variances])
                for one in factors
            ]
        )

    def variance(self, first: Integers, last: Integers) -> Any:
        """The variances of the sums over boxes: see `rangeq.central.estimate.Errors`."""
        result: Any = self._noise
        for one, low, high in zip(self._factors, first, last, strict=True):
            result = result * one.variance(low[None], high[None])
        return result

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """The variance of the sum over a product of sets of places."""
        return float(self._noise) * math.prod(
            one.variance_of([own]) for one, own in zip(self._factors, weights, strict=True)
        )

    def mean(self) -> Any:
        """The mean of `variance` over all boxes."""
        return self._noise * math.prod(one.mean() for one in self._factors)

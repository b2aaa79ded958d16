"""Noise on every cell, and ranges by adding up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from mechdesign._support.arrays import Integers
from rangeq.central.estimate import CentralEstimate, Summed
from rangeq.central.mechanism import CentralMechanism
from rangeq.central.spectrum import Spectrum, tree_over, tree_spectrum


@dataclass(frozen=True)
class CentralFlat(CentralMechanism):
    """Every cell with noise of its own, and ranges that add them up: the baseline.

    Qardaji et al., section 3.1. The variance of a range is its length times that of the noise.
    `rangeq.Flat` is the same under local privacy.

    Parameters
    ----------
    domain : int
        The number of cells, 1 to 2^26: as for `CentralMechanism`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one release, at least 2^-32.
    """

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def _levels(self, counts: Integers) -> list[Integers]:
        return [counts]

    def _estimate(self, noisy: list[Integers]) -> CentralEstimate:
        starts = np.cumsum(noisy[0]) - noisy[0]  # whole users: nothing is rounded
        return Summed(self, starts.astype(np.float64), noisy[0].astype(np.float64))

    def _spectrum(self, variances: Sequence[Fraction | None]) -> Spectrum:
        return tree_spectrum(tree_over(self.domain, (self.domain,)), variances)

"""Noise on Haar coefficients."""

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
from rangeq.core.tree import padded


@dataclass(frozen=True)
class Wavelet(CentralMechanism):
    """Privelet: noise on the Haar coefficients.

    Xiao, Wang, Gehrke 2010; Qardaji et al., section 4. Asked are the total and, for each inner node
    of the binary tree, the difference left half - right half: 1 + log2 D levels of numbers, of each
    of which a user changes one by one. The paper's coefficients are these differences over the
    number of cells below, and its weights multiply by that number again: the noise is the same. A
    domain that is no power of two is padded with empty cells at the right, which answers never
    show.

    Parameters
    ----------
    domain : int
        The number of cells, 1 to 2^26: as for `CentralMechanism`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one release, at least 2^-32.
    """

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        levels = 1 + (self.domain - 1).bit_length()
        return (Fraction(1, levels),) * levels

    def _spectrum(self, variances: Sequence[Fraction | None]) -> Spectrum:
        total, *differences = (variance for variance in variances if variance is not None)
        tree = tree_over(self.domain, [2] * len(differences) or [1])
        if not differences:
            return tree_spectrum(tree, [total])  # the total is the only cell
        # A difference is a contrast times the length of its vector, the root of 2.
        return Spectrum(tree, total, tuple(variance / 2 for variance in differences))

    def _levels(self, counts: Integers) -> list[Integers]:
        sums = padded(counts, 1 << (len(self.shares) - 1))
        levels = []
        while len(sums) > 1:
            halves = sums.reshape(-1, 2)
            levels.append(halves[:, 0] - halves[:, 1])
            sums = halves.sum(axis=1)
        return [sums, *levels[::-1]]

    def _estimate(self, noisy: list[Integers]) -> CentralEstimate:
        nodes, starts = noisy[0].astype(np.float64), np.zeros(1)
        for differences in noisy[1:]:
            left = (nodes + differences) / 2
            starts = np.stack([starts, starts + left], axis=1).ravel()
            nodes = np.stack([left, nodes - left], axis=1).ravel()
        return Summed(self, starts, nodes)

"""Noise on every cell, and boxes by adding up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

from mechdesign.base.linear_algebra import Integers
from rangeq.central.box_tree import BoxTree
from rangeq.central.estimate import CentralEstimate, Summed
from rangeq.central.inference import Inference
from rangeq.central.mechanism import CentralMechanism
from rangeq.central.tree_errors import TreeErrors


@dataclass(frozen=True)
class CentralFlat(CentralMechanism):
    """Every cell with noise of its own, and boxes that add them up: the baseline.

    Qardaji et al., section 3.1. The variance of a box is that of the noise times its number of
    cells. `rangeq.Flat` is the same under local privacy.

    Parameters
    ----------
    shape : int or sequence of int
        The number of cells of one attribute, or along each of several: as for `CentralMechanism`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one release, at least 2^-32.
    """

    privacy_source: ClassVar[str] = "hierarchical histograms, section 3.1"

    @cached_property
    def shares(self) -> tuple[Fraction, ...]:
        return (Fraction(1),)

    def levels(self, counts: Integers) -> list[Integers]:
        return [counts]

    def estimate(self, noisy: list[Integers]) -> CentralEstimate:
        return Summed(self, noisy[0])  # whole users: nothing is rounded

    def errors_of(self, variances: Sequence[Any]) -> TreeErrors:
        return Inference(BoxTree(self.sizes, (self.sizes,)), variances)

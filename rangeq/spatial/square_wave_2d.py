"""SquareWave2D: a square wave on each of two attributes, with half of epsilon each."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from frequency.algebra.exact_draws import root
from frequency.core.channel import Reports
from mechdesign import Audit
from mechdesign.base.arrays import Floats, Items
from mechdesign.base.randomness import BitSource
from mechdesign.symbolic.proof_rules import BudgetShare, CompositionProof
from rangeq.local.square_wave import SquareWave
from rangeq.spatial.likelihood import LikelihoodChannel, LikelihoodProtocol


@dataclass(frozen=True)
class PartWave(SquareWave):
    """A square wave that is a part of a report.

    Parameters
    ----------
    domain : int
        The number of items.
    epsilon : float, Fraction, int, str or Decimal
        The part's share, which the bandwidth is for.
    ratio : Fraction
        The largest likelihood ratio allowed, about exp(epsilon).
    """

    ratio: Fraction

    @property
    def max_ratio(self) -> Fraction:
        return self.ratio


@dataclass(frozen=True)
class WavePair(LikelihoodChannel):
    """The reports of two square waves, each about one of two attributes.

    Parameters
    ----------
    domain : int
        The number of different records.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    attributes : Domain
        Two.
    """

    @property
    def _share(self) -> Fraction:
        """Of epsilon, for each attribute of more than one value: at most two."""
        return Fraction(1, max(sum(size > 1 for size in self.attributes.sizes), 1))

    @cached_property
    def waves(self) -> tuple[PartWave, PartWave]:
        """Of the attributes: the product of their likelihood ratios is at most the one allowed."""
        ratio = root(self.max_ratio, self._share.denominator)
        each = float(self.privacy.epsilon) * float(self._share)
        one, other = (PartWave(size, each, ratio) for size in self.attributes.sizes)
        return one, other

    @property
    def report_bits(self) -> int:
        return sum(wave.report_bits for wave in self.waves)

    def _details(self) -> dict[str, Any]:
        return {"waves": [{**wave.parameters} for wave in self.waves]}

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        for name, wave, values in zip(("x", "y"), self.waves, items.T, strict=True):
            part = np.zeros(len(items), dtype=wave.report_dtype)
            wave.fill(values, part, source)
            reports[name] = part["output"]

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return tuple(wave.outputs for wave in self.waves)

    def audit(self) -> Audit:
        one, other = (wave.audit() for wave in self.waves)
        return Audit(one.ratio * other.ratio, self.max_ratio, "outputs 0, 0", (0, self.domain - 1))

    def proof(self) -> CompositionProof:
        return CompositionProof(
            tuple(BudgetShare(self._share, 1, wave.proof()) for wave in self.waves),
            name=type(self).__name__,
        )

    @cached_property
    def _tables(self) -> tuple[Floats, Floats]:
        """Of each wave the probability of each output under each value."""
        one, other = (
            np.stack([wave.reported(row) for row in np.eye(wave.domain)], axis=1)
            for wave in self.waves
        )
        return one, other

    def reported(self, frequencies: Floats) -> Floats:
        one, other = self._tables
        return np.asarray(one @ frequencies @ other.T)

    def backward(self, numbers: Floats) -> Floats:
        one, other = self._tables
        return np.asarray(one.T @ numbers @ other)


@dataclass(frozen=True)
class SquareWave2D(LikelihoodProtocol):
    """The square wave in two dimensions: every user reports on both attributes, by halves.

    The joint distribution is found by expectation maximisation over both reports together. `MSW`
    has all of epsilon for one attribute, and knows nothing of how both go together. Devices without
    packages have no description of it.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The values of two attributes: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    smooth : bool, default False
        EMS instead of EM: neighbouring cells are averaged after every round.

    Examples
    --------
    >>> protocol = SquareWave2D({"x": 15, "y": 15}, epsilon=2.0)
    >>> [wave.reach for wave in protocol.channel.waves]
    [3, 3]
    >>> protocol.audit().holds
    True
    """

    @cached_property
    def channel(self) -> WavePair:
        return WavePair(self.attributes.size, self.epsilon, self.attributes)

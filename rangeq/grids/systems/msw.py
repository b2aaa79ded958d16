"""MSW: the product of the attributes' distributions, each by the square wave (section 3.5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from frequency.core import Aggregate
from mechdesign.base import Items
from rangeq.grids.channel import GroupChannel
from rangeq.grids.estimate import ProductEstimate, even
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.local.square_wave import SquareWave


@dataclass(frozen=True)
class AttributeWaves(GroupChannel):
    """The channel of one random attribute, each as likely, by its square wave."""

    @cached_property
    def parts(self) -> tuple[SquareWave, ...]:
        return tuple(SquareWave(size, self.epsilon) for size in self.attributes.sizes)

    def part_expression(self, part: int) -> list[Any]:
        return self.combination([part])

    def part_items(self, part: int, items: Items) -> Items:
        return items[:, part]


@dataclass(frozen=True)
class MSW(ConjunctionProtocol):
    """Multiplied square wave: every user reports on one attribute (section 3.5).

    A query's answer is the product of its ranges' answers: right for independent attributes,
    without any account of correlation. An attribute that nobody reported on counts as uniform.

    Parameters
    ----------
    sizes, epsilon, n : as of `ConjunctionProtocol`
        The sizes of the attributes, and the privacy loss of a report; ``n`` is not used.
    smooth : bool, default False
        EMS instead of EM (which this paper uses): see
        `rangeq.local.square_wave.SquareWave.estimate`.
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.5"
    untold: ClassVar[str] = "they tell of single attributes, and nothing of how these go together"

    smooth: bool = False

    @cached_property
    def channel(self) -> AttributeWaves:
        return AttributeWaves(self.attributes.size, self.epsilon, self.attributes)

    def _estimate(self, aggregate: Aggregate) -> ProductEstimate:
        distributions = []
        for k, wave in enumerate(self.channel.parts if aggregate.n else ()):
            level = self.channel.part_aggregate(aggregate, k)
            distributions.append(
                wave.estimate(level, self.smooth) if level.n else even(wave.domain)
            )
        return ProductEstimate(self.attributes, aggregate.n, distributions)

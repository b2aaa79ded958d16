"""Relabelled: a channel whose reports are those of another, under parameters of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate, SignSum
from frequency.core.channel import Channel, Reports
from frequency.core.deployable import Step
from frequency.core.tally import Sample
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw, PairLaws
from mechdesign.base import BitSource, Items
from mechdesign.symbolic import PrivacyProof


@dataclass(frozen=True)
class Relabelled(Channel):
    """A channel whose reports are those of `inner`; a subclass says what its parameters are."""

    inner: Channel

    def __post_init__(self) -> None:
        pass  # the inner channel has been checked

    @property
    def max_ratio(self) -> Fraction:
        return self.inner.max_ratio

    @property
    def takes(self) -> dict[str, Any]:
        return self.inner.takes

    @property
    def client_half(self) -> Step:
        return self.inner.client_half

    def items_of(self, values: Any) -> Items:
        return self.inner.items_of(values)

    @property
    def report_dtype(self) -> np.dtype[np.void]:
        return self.inner.report_dtype

    @property
    def report_bits(self) -> int:
        return self.inner.report_bits

    @property
    def batch_size(self) -> int:
        return self.inner.batch_size

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        self.inner.fill(items, reports, source)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return self.inner.possible(reports)

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return self.inner.counts_shape

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        return self.inner.counts_of(reports)

    @property
    def sign_sums(self) -> Sequence[SignSum]:
        return self.inner.sign_sums

    def add_counts(
        self, reports: Reports, counts: npt.NDArray[np.int64] | None = None
    ) -> npt.NDArray[np.int64]:
        return self.inner.add_counts(reports, counts)

    def consistent(self, aggregate: Aggregate) -> bool:
        return self.inner.consistent(self.inner_aggregate(aggregate))

    def inner_aggregate(self, aggregate: Aggregate) -> Aggregate:
        """The same counts, as those of the inner channel."""
        return aggregate.under(self.inner.signature)

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        return self.inner.samples(n, counts)

    def every_item(self) -> Items:
        return self.inner.every_item()

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        return self.inner.simulated_counts(items, counts, rng)

    def audit(self) -> Audit:
        return self.inner.audit()

    def proof(self) -> PrivacyProof:
        return self.inner.proof()

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        return self.inner.pair_laws()

    def attack_laws(self) -> Sequence[PairLaw]:
        return self.inner.attack_laws()

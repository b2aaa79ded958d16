"""Protocols that perturb the whole record, as one item: InpRR, InpPS, InpOLH, InpHTCMS.

Source: thesis 4.3.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from frequency.core import Aggregate, Likelihood, Oracle, Relabelled, forwarded
from frequency.marginals.log_linear import cas
from frequency.marginals.protocol import MarginalProtocol, Table
from frequency.oracles import GRR, OLH, OUE, HadamardCountMeanSketch
from mechdesign.base import Floats, Items, set_fields, shown, whole
from mechdesign.symbolic import PrivacyProof

LARGEST = 1 << 22  #: How many different records the server tells apart one by one.

_AT_ONCE = 1 << 22  # how many weights of sums of records to hold at a time


@dataclass(frozen=True)
class Records(Relabelled):
    """An oracle whose items are the records of some attributes: others may have as many records."""

    name: str  # what the parameters call the protocol
    attributes: tuple[tuple[str, int], ...]  # names and numbers of values

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The parameters that client and server agree on: the attributes, too."""
        entries = {"protocol": self.name, "attributes": [list(pair) for pair in self.attributes]}
        return {**self.inner.parameters, **entries}

    def proof(self) -> PrivacyProof:
        return self.inner.proof().called(self.name)

    likelihoods = forwarded("inner.likelihoods")
    blank = forwarded("inner.blank")
    likelihood = forwarded("inner.likelihood")
    menus = forwarded("inner.menus")
    candidate = forwarded("inner.candidate")
    joint_law = forwarded("inner.joint_law")
    dominating_law = forwarded("inner.dominating_law")


class InputProtocol(MarginalProtocol):
    """A frequency oracle over all records; a marginal's cell is the sum of the records in it.

    There are at most 2^22 different records.
    """

    def __post_init__(self) -> None:
        size = getattr(self.domain, "size", 0)
        if size > LARGEST:
            raise ValueError(
                f"{type(self).__name__} counts every record by itself: {shown(size)} are more than"
                f" {LARGEST}"
            )
        super().__post_init__()

    oracle: ClassVar[type[Oracle]]  #: Of the whole record.
    channel_name: ClassVar[str]  #: What the parameters of reports call it.

    def _parameters(self) -> dict[str, Any]:
        """The parameters of the oracle, besides its domain, epsilon and attributes."""
        return {}

    @cached_property
    def records(self) -> Oracle:
        """The oracle over all records."""
        return self.oracle(self.domain.size, self.epsilon, **self._parameters())

    @cached_property
    def channel(self) -> Records:
        """The channel of records: the oracle's, of these attributes."""
        attributes = tuple((name, self.domain[name]) for name in self.domain)
        size = self.domain.size
        return Records(size, self.epsilon, self.records, self.channel_name, attributes)

    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        cells = self.domain.cells(np.arange(self.domain.size), attributes)
        return np.bincount(cells, weights=self.records.frequencies_of(aggregate, None)).astype(
            np.float64
        )

    def tables_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> list[tuple[Table, Items, float]]:
        # One for all marginals: that of the records
        return [("records", self.domain.cells(np.arange(self.domain.size), attributes), 1.0)]

    def likelihood_of(self, aggregate: Aggregate, table: Table) -> Likelihood:
        return self.records.likelihood_of(aggregate)

    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        cells = self.domain.cells(np.arange(self.domain.size), attributes)
        frequencies = self.records.frequencies_of(aggregate, None)
        parts = [
            self.records.linear_variances_of(weights[block][:, cells], aggregate, frequencies, None)
            for block in self._blocks(len(weights))
        ]
        return np.concatenate(parts)

    def _blocks(self, sums: int) -> Iterator[slice]:
        """Return slices of sums of records to look at together."""
        # Several, since oracles do some of the work once for all of them; not all, as each takes as
        # many numbers as there are records
        step = max(1, _AT_ONCE // self.domain.size)
        return (slice(start, start + step) for start in range(0, max(sums, 1), step))

    def moment_variances(self, n: int) -> dict[tuple[str, ...], float]:
        # Those of all moments are alike at even frequencies, as records are
        sizes = [self.domain[name] for name in self.domain]
        place = next((place for place, size in enumerate(sizes) if size > 1), None)
        if place is None:
            return dict.fromkeys(self.measured, 0.0)
        index = np.zeros((1, len(sizes)), dtype=np.int64)
        index[0, place] = 1
        row = cas(sizes, index, self.domain.values(np.arange(self.domain.size)))
        even = np.full(self.domain.size, 1 / self.domain.size)
        return dict.fromkeys(self.measured, float(self.records.linear_variance(n, row, even)[0]))

    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        # That of the sum of the records in the cell: at even frequencies alike for all cells
        names = self.checked(attributes)
        first = self.domain.cells(np.arange(self.domain.size), names) == 0
        even = np.full(self.domain.size, 1 / self.domain.size)
        variance = self.records.linear_variance(n, first[None].astype(np.float64), even)
        return np.full(self.domain.project(names).shape, variance[0])


@dataclass(frozen=True)
class InpRR(InputProtocol):
    """InpRR: a bit for every possible record, each perturbed by itself.

    Source: thesis 4.3.2, Theorem 3; the oracle is `frequency.OUE`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values: at most 2^22 different records.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    privacy_source: ClassVar[str] = "thesis, Theorem 3"
    oracle: ClassVar[type[Oracle]] = OUE
    channel_name: ClassVar[str] = "RecordsByOUE"


@dataclass(frozen=True)
class InpPS(InputProtocol):
    """InpPS, preferential sampling: the record, or any other one.

    Source: thesis 4.3.2, Theorem 4; the oracle is `frequency.GRR`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values: at most 2^22 different records.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    privacy_source: ClassVar[str] = "thesis, Theorem 4"
    oracle: ClassVar[type[Oracle]] = GRR
    channel_name: ClassVar[str] = "RecordsByGRR"


@dataclass(frozen=True)
class InpOLH(InputProtocol):
    """InpOLH: a hash of the record, by randomised response.

    Source: thesis 2.4.2; the oracle is `frequency.OLH`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values: at most 2^22 different records.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    oracle: ClassVar[type[Oracle]] = OLH
    channel_name: ClassVar[str] = "RecordsByOLH"


@dataclass(frozen=True)
class InpHTCMS(InputProtocol):
    """InpHTCMS: a Walsh-Hadamard coefficient of the hashed record, as one bit.

    Source: thesis 4.4.6; the oracle is `frequency.HadamardCountMeanSketch`.

    Estimates are unbiased, and have the variances told, on average over hash functions.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values: at most 2^22 different records.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    hashes : int, default 5
        The number of hash functions, at least 1.
    width : int, default 256
        The number of cells of each, a power of two.

    Raises
    ------
    ValueError
        A parameter out of range, or more than 2^22 different records.
    """

    privacy_source: ClassVar[str] = "thesis, section 4.4.6"

    hashes: int = 5
    width: int = 256

    oracle: ClassVar[type[Oracle]] = HadamardCountMeanSketch
    channel_name: ClassVar[str] = "RecordsBySketch"

    def __post_init__(self) -> None:
        hashes, width = whole(self.hashes, "hashes", 1), whole(self.width, "width", 1)
        set_fields(self, hashes=hashes, width=width)
        super().__post_init__()

    def _parameters(self) -> dict[str, Any]:
        return {"hashes": self.hashes, "width": self.width}

"""Slow, obvious twins of the protocols for marginals: all reports with their exact probabilities,
from the definitions.

A protocol's channel is a list of parts (one, for those that perturb the whole record): for each the
probability that it is asked, its reports, and ``chances[r, x]`` = Pr[report r | record x, this
part].
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from frequency import Aggregate
from frequency.marginals import MarginalEstimate, MarginalProtocol
from frequency.marginals.fourier import Directions, Phase
from frequency.marginals.views import Views
from frequency.marginals.whole_record import Records
from tests.contracts.oracle import Twin, reports_of
from tests.frequency.oracles import twins as oracles
from tests.tape import WORD

TWINS = {
    "GRR": oracles.TestGRR,
    "OUE": oracles.TestOUE,
    "HRR": oracles.TestHRR1,
    "OLH": oracles.TestOLH,
}


class Part(NamedTuple):
    weight: Fraction
    reports: np.ndarray
    chances: list


def phase_twin(channel: Phase) -> Twin:
    """The shift is uniform, or 0 for two phases; the sign is + in the first half, told with weight
    ``truth``.
    """
    truth, lie = (int(channel.parameters[name]) for name in ("truth", "lie"))
    order = channel.domain
    shifts = order if order > 2 else 1
    rows = [(shift, sign) for shift in range(shifts) for sign in (1, -1)]

    def chance(shift: int, sign: int, phase: int) -> Fraction:
        true = 1 if 2 * ((phase + shift) % order) < order else -1
        return Fraction(truth if sign == true else lie, WORD * shifts)

    return Twin(
        reports_of(channel, rows), [[chance(*row, phase) for phase in range(order)] for row in rows]
    )


def twin_of(channel) -> Twin:
    if isinstance(channel, Phase):
        return phase_twin(channel)
    if isinstance(channel, Records):
        return twin_of(channel.inner)
    known = (TWINS[kind.__name__] for kind in type(channel).__mro__ if kind.__name__ in TWINS)
    return next(known)().twin(channel)


def record_of(domain, item: int) -> dict[str, int]:
    values = {}
    for name in reversed(domain.attributes):
        item, values[name] = divmod(item, domain[name])
    return values


def node(channel, part: int, item: int) -> int:
    """By definition: the phase along a direction, as a fraction of the circle; or the cell of a
    view.
    """
    domain, record = channel.attributes, record_of(channel.attributes, item)
    if isinstance(channel, Directions):
        c = channel.parameters["characters"][part]
        turn = sum(Fraction(c[j] * record[name], domain[name]) for j, name in enumerate(domain)) % 1
        result = turn * channel.parts[part].domain
        assert result.denominator == 1
        return int(result)
    view = channel.parameters["sets"][part]
    return int(
        np.ravel_multi_index([record[name] for name in view], [domain[name] for name in view])
    )


@cache
def parts_of(protocol: MarginalProtocol) -> list[Part]:
    channel = protocol.channel
    if not isinstance(channel, (Directions, Views)):
        return [Part(Fraction(1), *twin_of(channel))]
    found, items = [], range(protocol.domain.size)
    for k, weight in enumerate(channel.parameters[f"{channel.kind} weights"]):
        twin = twin_of(channel.parts[k])
        size = twin.reports.dtype.itemsize
        rows = np.zeros(len(twin.reports), dtype=channel.report_dtype)
        rows[channel.kind] = k
        rows["body"][:, :size] = (
            np.ascontiguousarray(twin.reports).view(np.uint8).reshape(len(rows), size)
        )
        nodes = [node(channel, k, item) for item in items]
        found.append(
            Part(Fraction(int(weight), WORD), rows, [[row[n] for n in nodes] for row in twin.table])
        )
    return found


def table_of(protocol: MarginalProtocol) -> Twin:
    """All reports of all parts."""
    parts = parts_of(protocol)
    return Twin(
        np.concatenate([p.reports for p in parts]),
        [[p.weight * c for c in row] for p in parts for row in p.chances],
    )


class Enumerated:
    """Estimates are affine in what the users of each part send, when their numbers are given.

    ``origin`` is the estimate when all send the first report of their part; ``effects[part]``
    (reports, cells) is what changes when the users of the part all send another one. So the
    contributions of single users are these over the number of users.
    """

    def __init__(
        self, protocol: MarginalProtocol, sets: list[tuple[str, ...]], users: list[int]
    ) -> None:
        self.protocol, self.sets, self.users, self.parts = protocol, sets, users, parts_of(protocol)
        self.chances = [
            np.array([[float(c) for c in row] for row in p.chances]) for p in self.parts
        ]
        self.counts = [
            [protocol.aggregate(p.reports[r : r + 1]).counts for r in range(len(p.reports))]
            for p in self.parts
        ]
        first = [counts[0] for counts in self.counts]
        self.origin = self.cells(first)
        self.effects = []
        for k, counts in enumerate(self.counts):
            others = [self.cells([*first[:k], one, *first[k + 1 :]]) for one in counts]
            self.effects.append(np.array(others) - self.origin)

    def cells(self, counts) -> np.ndarray:
        total = sum(n * one for n, one in zip(self.users, counts, strict=True))
        estimate = MarginalEstimate(
            self.protocol, Aggregate(self.protocol.channel.signature, sum(self.users), total)
        )
        return np.concatenate([estimate.marginal(names).ravel() for names in self.sets])

    def truth(self) -> np.ndarray:
        """For every record (rows) the cells it is in."""
        rows = []
        for item in range(self.protocol.domain.size):
            record, found = record_of(self.protocol.domain, item), []
            for names in self.sets:
                marginal = np.zeros([self.protocol.domain[name] for name in names])
                marginal[tuple(record[name] for name in names)] = 1
                found.append(marginal.ravel())
            rows.append(np.concatenate(found))
        return np.array(rows)

    def mean(self) -> np.ndarray:
        """The expectation of the cells (columns) when everybody has the same record (rows)."""
        return self.origin + sum(p.T @ x for p, x in zip(self.chances, self.effects, strict=True))

    def covariance(self, held: np.ndarray) -> np.ndarray:
        """Of the cells, for users whose records are held with these frequencies and who are put on
        parts at random, times n.

        Users of different parts are disjoint samples without replacement of the same users, whose
        number is large.
        """
        n, total = sum(self.users), -covariance(np.eye(len(held)), held, self.truth())
        for users, chances, effects in zip(self.users, self.chances, self.effects, strict=True):
            total += n / users * covariance(chances, held, effects)
        return total

    def aggregate(self, held: np.ndarray) -> Aggregate:
        """What is expected of users with these records, as whole numbers."""
        total = np.zeros(self.counts[0][0].shape)
        for users, chances, counts in zip(self.users, self.chances, self.counts, strict=True):
            total += np.tensordot(users * (chances @ held), np.array(counts, dtype=float), axes=1)
        return Aggregate(
            self.protocol.channel.signature, sum(self.users), np.rint(total).astype(np.int64)
        )


def covariance(chances: np.ndarray, held: np.ndarray, effects: np.ndarray) -> np.ndarray:
    """Of the effect of the report of one random user."""
    p = chances @ held
    return (effects.T * p) @ effects - np.outer(p @ effects, p @ effects)

"""Protocols that perturb one random marginal of k attributes: MargRR, MargPS, MargHT.

Source: thesis 4.3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, cast

import numpy as np

from frequency.core import Aggregate, Likelihood, Mixture, Oracle, json_integers
from frequency.marginals.protocol import MarginalProtocol, Table
from frequency.oracles import GRR, HRR, OUE
from frequency.schema import Domain
from frequency.schema.domain import LARGEST_RECORDS
from mechdesign.base import Floats, Items, listed

#: The most sets of attributes that users report on: the parameters, and messages, name them.
LARGEST_VIEWS = 1 << 14

_AT_ONCE = 1 << 22  # the number of weights of sums of a view's cells that are held at a time

_ORACLES: dict[str, type[Oracle]] = {"OUE": OUE, "GRR": GRR, "HRR": HRR}


@dataclass(frozen=True)
class Views(Mixture):
    """A mixture of sets of attributes, and the cell of the set's marginal that holds the record.

    Each set is as likely; the cell is reported by an oracle.
    """

    attributes: Domain  # of the records
    views: tuple[tuple[str, ...], ...]  # sets of attributes, by their names
    oracle: str  # the name of that of a marginal's cells

    kind: ClassVar[str] = "view"
    largest_domain: ClassVar[int] = LARGEST_RECORDS

    @cached_property
    def parts(self) -> tuple[Oracle, ...]:
        sizes = [self.attributes.project(view).size for view in self.views]
        made = {size: self._oracle(size) for size in set(sizes)}
        return tuple(made[size] for size in sizes)

    def _oracle(self, cells: int) -> Oracle:
        """Return the oracle of a view of so many cells."""
        return _ORACLES[self.oracle](cells, self.epsilon)

    def _details(self) -> dict[str, Any]:
        return {"sets": [list(view) for view in self.views], **super()._details()}

    def part_expression(self, part: int) -> list[Any]:
        place = dict(zip(self.attributes, self.attributes.steps, strict=True))
        view = self.views[part]
        return ["digits", [json_integers([place[name], self.attributes[name]]) for name in view]]

    def part_items(self, part: int, items: Items) -> Items:
        return self.attributes.cells(items, self.views[part])


class ViewProtocol(MarginalProtocol):
    """A protocol for marginals of k attributes, each from the users who reported on it.

    Smaller ones are estimated from all that contain them, weighed by their predicted precisions.
    """

    oracle: ClassVar[str]  #: The name of the oracle over the cells of a view.

    @property
    def views(self) -> tuple[tuple[str, ...], ...]:
        """The sets of attributes that users report on: all of k; ValueError if more than 2^14."""
        if math.comb(len(self.domain), self.k) > LARGEST_VIEWS:
            raise ValueError(
                f"there are {math.comb(len(self.domain), self.k)} sets of {self.k} attributes, more"
                f" than {LARGEST_VIEWS}"
            )
        return self.domain.views(self.k)

    @property
    def measured(self) -> tuple[tuple[str, ...], ...]:
        """The sets of up to k attributes that a view holds together, smaller ones first."""
        order = {name: place for place, name in enumerate(self.domain)}
        sets = {
            names
            for view in self.views
            for size in range(1, min(self.k, len(view)) + 1)
            for names in combinations(sorted(view, key=order.__getitem__), size)
        }
        return tuple(sorted(sets, key=lambda names: (len(names), self.domain.places(names))))

    @cached_property
    def channel(self) -> Views:
        return Views(self.domain.size, self.epsilon, self.domain, self.views, self.oracle)

    def inside(self, attributes: tuple[str, ...]) -> list[tuple[int, Items]]:
        """Return the views with all these attributes, and the cell that each cell of them is in."""
        views = []
        for part, view in enumerate(self.views):
            if set(attributes) <= set(view):
                domain = self.domain.project(view)
                views.append((part, domain.cells(np.arange(domain.size), attributes)))
        if not views:
            raise ValueError(f"no view holds {listed(attributes)}")
        return views

    def _shares(self, attributes: tuple[str, ...], users: Floats) -> list[tuple[int, Items, float]]:
        """Return the weight of each view, for a marginal of attributes that it holds."""
        inside = self.inside(attributes)
        weights = []
        # In proportion to its users over the mean variance of a cell from one of them
        for part, cells in inside:
            variance = float(self._one_user(part, cells).mean())
            # Cells that hold everybody have no variance
            weights.append(users[part] / max(variance, 1e-30))
        total = sum(weights)
        return [
            (part, cells, weight / total if total else 0.0)
            for (part, cells), weight in zip(inside, weights, strict=True)
        ]

    def _one_user(self, part: int, cells: Items) -> Floats:
        """Return the variance of each cell of a marginal from one user of a view that holds it.

        Users are evenly spread over the cells of the view.
        """
        oracle, even = self.channel.parts[part], np.full(len(cells), 1 / len(cells))
        every = np.arange(cells.max() + 1)[:, None]
        # Some at a time, as each takes as many numbers as the view has cells
        step = max(1, _AT_ONCE // len(cells))
        parts = [
            oracle.linear_variance(
                1, (every[start : start + step] == cells).astype(np.float64), even
            )
            for start in range(0, len(every), step)
        ]
        return np.concatenate(parts)

    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        channel = self.channel
        shares = self._shares(attributes, channel.part_users(aggregate))
        size = int(shares[0][1].max()) + 1
        total = np.zeros(size)
        for part, cells, share in shares:
            if share:
                frequencies = channel.parts[part].frequencies_of(
                    channel.part_aggregate(aggregate, part), None
                )
                total += share * np.bincount(cells, weights=frequencies, minlength=size)
        return total if any(share for *_, share in shares) else np.full(size, np.nan)

    def tables_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> list[tuple[Table, Items, float]]:
        # That of each view which holds the attributes
        return list(self._shares(attributes, self.channel.part_users(aggregate)))

    def likelihood_of(self, aggregate: Aggregate, table: Table) -> Likelihood:
        part = cast(int, table)
        return self.channel.parts[part].likelihood_of(self.channel.part_aggregate(aggregate, part))

    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        channel, users = self.channel, self.channel.part_users(aggregate)
        shares = self._shares(attributes, users)
        if not any(share for *_, share in shares):
            return np.full(len(weights), np.inf)
        # Users of a view are drawn from the population: their sampling variance is added for each
        # view, and that of the whole population, which the estimate is about, taken off once.
        total = -_spread(weights, self.marginal_of(aggregate, attributes)) / aggregate.n
        for part, cells, share in shares:
            if share:
                level, rows = channel.part_aggregate(aggregate, part), weights[:, cells]
                frequencies = channel.parts[part].frequencies_of(level, None)
                noise = channel.parts[part].linear_variances_of(rows, level, frequencies, None)
                total += share**2 * (noise + _spread(rows, frequencies) / users[part])
        return total

    def moment_variances(self, n: int) -> dict[tuple[str, ...], float]:
        # From all views that hold the set, weighed by their precision
        precisions = dict.fromkeys(self.measured, 0.0)
        users, known = self.channel.expected_users(n), dict[int, float]()
        for part, view in enumerate(self.views):
            oracle = self.channel.parts[part]
            cells = oracle.domain
            if cells not in known:
                known[cells] = oracle.difference_variance(1) / 2 + 1 / cells if cells > 1 else 1.0
            for size in range(1, min(self.k, len(view)) + 1):
                for inside in combinations(view, size):
                    precisions[inside] += users[part] / (cells * known[cells])
        return {names: 1 / precision - 1 / n for names, precision in precisions.items()}

    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        # That of the weighted mean over all views that hold the attributes.
        names = self.checked(attributes)
        users = self.channel.expected_users(n)
        shape = self.domain.project(names).shape
        even = 1 / math.prod(shape)  # of the users, by each cell
        total = np.full(math.prod(shape), -even * (1 - even) / n)
        for part, cells, share in self._shares(names, users):
            variances = self._one_user(part, cells) + even * (1 - even)
            total += share**2 * variances / users[part]
        return total.reshape(shape)


def _spread(weights: Floats, frequencies: Floats) -> Floats:
    """Return the variance of the weight of a random member of a population.

    Its estimated frequencies may be negative.
    """
    shares = np.maximum(frequencies, 0.0)
    shares = shares / max(float(shares.sum()), 1e-300)
    return weights**2 @ shares - (weights @ shares) ** 2


@dataclass(frozen=True)
class MargRR(ViewProtocol):
    """MargRR: the cells of a random marginal as bits, each perturbed by itself.

    Source: thesis 4.3.3; the oracle is `frequency.OUE`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    privacy_source: ClassVar[str] = "thesis, section 4.3.3"
    oracle: ClassVar[str] = "OUE"


@dataclass(frozen=True)
class MargPS(ViewProtocol):
    """MargPS: the cell of a random marginal by preferential sampling.

    Source: thesis 4.3.3; the oracle is `frequency.GRR`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    privacy_source: ClassVar[str] = "thesis, Lemma 7"
    oracle: ClassVar[str] = "GRR"


@dataclass(frozen=True)
class MargHT(ViewProtocol):
    """MargHT: one Walsh-Hadamard coefficient of a random marginal, as one bit.

    Source: thesis 4.3.3; the oracle is `frequency.HRR`.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    """

    privacy_source: ClassVar[str] = "thesis, Lemma 7"
    oracle: ClassVar[str] = "HRR"

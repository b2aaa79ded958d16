"""RangeProtocol: every user reports on one randomly chosen level of resolution, by that level's own oracle."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.aggregate import Aggregate
from frequency.channel import Channel, Floats, Items, Reports
from frequency.draws import WORD
from frequency.oracle import Oracle, checked_users
from mechdesign import Audit
from mechdesign.rational import exact
from mechdesign.sampling import BitSource
from rangeq.estimate import RangeEstimate
from rangeq.tree import Tree, mean_over, spread


@dataclass(frozen=True)
class RangeProtocol(Oracle):
    """Protocols for one ordered attribute under local privacy: the verbs of `frequency.Oracle`, and an estimate that knows ranges.

    A report is ``level`` (0 for the coarsest) and ``body``, the bytes of the report of that level's oracle, padded with zeros. The
    level does not depend on the item, so a report loses what its oracle's does. The sum of all items is the population: known.
    """

    @property
    @abstractmethod
    def levels(self) -> tuple[Channel, ...]:
        """What users report on, the coarsest first."""

    @property
    @abstractmethod
    def level_weights(self) -> tuple[int, ...]:
        """The probability of each level, in units of 2^-64."""

    @abstractmethod
    def _nodes(self, level: int, items: Items) -> Items:
        """The item of a level's oracle that stands for each item."""

    @abstractmethod
    def _held(self, level: int, counts: Items) -> Items:
        """How many users hold each item of a level's oracle, from how many hold each item."""

    # ------------------------------------------------------------------------------------------------ client

    @property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("level", "u1"), ("body", "u1", (max(oracle.report_dtype.itemsize for oracle in self.levels),))])

    @property
    def report_bits(self) -> int:
        return (len(self.levels) - 1).bit_length() + max(oracle.report_bits for oracle in self.levels)

    @property
    def _batch(self) -> int:
        return min(oracle._batch for oracle in self.levels) * len(self.levels)

    def _details(self) -> dict[str, Any]:
        weights = [str(weight) for weight in self.level_weights]
        levels = [{**oracle.parameters} for oracle in self.levels]
        return {"level weights": weights, "levels": levels}

    def _privatize(self, items: Items, reports: Reports, source: BitSource) -> None:
        asked = [k for k, weight in enumerate(self.level_weights) if weight]
        ends = np.array(list(accumulate(self.level_weights[k] for k in asked))[:-1], dtype=np.uint64)
        level = np.array(asked)[np.searchsorted(ends, source(len(items)), side="right")]
        reports["level"] = level
        for k, oracle in enumerate(self.levels):
            mine = np.flatnonzero(level == k)
            if len(mine):
                part = np.zeros(len(mine), dtype=oracle.report_dtype)
                oracle._privatize(self._nodes(k, items[mine]), part, source)
                body = np.zeros((len(mine), reports.dtype["body"].itemsize), dtype=np.uint8)
                body[:, : part.itemsize] = part.view(np.uint8).reshape(len(mine), -1)
                reports["body"][mine] = body

    def _split(self, reports: Reports) -> Iterator[tuple[int, Channel, npt.NDArray[np.int64], Reports]]:
        """For each level that occurs: its number, oracle, the positions of its reports, and these as its oracle's own."""
        for k, oracle in enumerate(self.levels):
            mine = np.flatnonzero(reports["level"] == k)
            if len(mine):
                size = oracle.report_dtype.itemsize
                body = np.ascontiguousarray(reports["body"][mine][:, :size])
                yield k, oracle, mine, body.view(oracle.report_dtype).reshape(-1)

    def _possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        good = np.zeros(len(reports), dtype=np.bool_)
        for _, oracle, mine, part in self._split(reports):
            unused = reports["body"][mine][:, oracle.report_dtype.itemsize :]
            good[mine] = oracle._possible(part) & ~unused.any(axis=1)
        return good

    # ------------------------------------------------------------------------------------------------ server
    # The counts are the number of reports of each level, then the counts of the levels' own aggregates, one after the other.

    @cached_property
    def _places(self) -> list[slice]:
        sizes = [int(np.prod(oracle._shape)) for oracle in self.levels]
        ends = list(accumulate(sizes, initial=len(self.levels)))
        return [slice(start, end) for start, end in pairwise(ends)]

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self._places[-1].stop,)

    def _aggregate(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.zeros(self._shape, dtype=np.int64)
        for k, oracle, mine, part in self._split(reports):
            counts[k] = len(mine)
            counts[self._places[k]] = oracle._aggregate(part).ravel()
        return counts

    def _level(self, aggregate: Aggregate, k: int) -> Aggregate:
        """The aggregate of the reports of one level."""
        oracle = self.levels[k]
        return Aggregate(oracle._signature, int(aggregate.counts[k]), aggregate.counts[self._places[k]].reshape(oracle._shape))

    def _users(self, aggregate: Aggregate) -> Floats:
        return aggregate.counts[: len(self.levels)].astype(np.float64)

    def _consistent(self, aggregate: Aggregate) -> bool:
        users = aggregate.counts[: len(self.levels)]
        if (users < 0).any() or sum(map(int, users)) != aggregate.n:
            return False
        return all(oracle._consistent(self._level(aggregate, k)) for k, oracle in enumerate(self.levels))

    def _simulate(self, held: Items, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        counts = np.zeros(self._shape, dtype=np.int64)
        left, weight = held, WORD
        for k, oracle in enumerate(self.levels):
            # Of the users not yet on a level, each takes this one with its share of the weight that is left.
            mine = self.level_weights[k]
            if not mine:
                continue
            here = left if mine == weight else rng.binomial(left, mine / weight)
            left, weight = left - here, weight - mine
            counts[k] = here.sum()
            if counts[k]:
                counts[self._places[k]] = oracle._simulate(self._held(k, here), rng).ravel()
        return counts

    def estimate(self, aggregate: Aggregate, items: npt.ArrayLike | None = None) -> RangeEstimate:
        """Unbiased estimates of items and ranges. ``items`` must be None: ranges need the whole domain."""
        if items is not None:
            raise ValueError("a range protocol estimates its whole domain; items must be None")
        return RangeEstimate(self, self._own(aggregate), None)

    # Users are sampled to levels without replacement: the variances below are those of independent samples, less what they share.

    @abstractmethod
    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        """The variances of ranges from independent samples of so many users on each level; infinite where those do not tell."""

    @abstractmethod
    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        """The same of weights @ frequencies: weights have shape (..., domain)."""

    def _range_variance(self, aggregate: Aggregate, first: Items, last: Items, fraction: Floats) -> Floats:
        inside = np.clip(fraction, 0.0, 1.0)
        own = self._own_range_variance(first, last, self._users(aggregate))
        return np.maximum(own - inside * (1 - inside) / aggregate.n, 0.0)

    def _variances(self, aggregate: Aggregate, frequencies: Floats, items: Items | None) -> Floats:
        item = np.arange(self.domain)
        return self._range_variance(aggregate, item, item, frequencies)

    def _slope(self, n: int) -> float:
        return 0.0

    def _linear_variance(self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None) -> Floats:
        own = self._own_linear_variance(weights, self._users(aggregate))
        return np.maximum(own - spread(weights, frequencies) / aggregate.n, 0.0)

    # ------------------------------------------------------------------------------------------------ known beforehand

    def _expected_users(self, n: int) -> Floats:
        return checked_users(n) * np.array([weight / WORD for weight in self.level_weights])

    def average_rmse(self, n: int, workload: str = "ranges", frequencies: npt.ArrayLike | None = None) -> float:
        """The root of the average variance over a workload, for n users: noise, sampling of levels and of coefficients included.

        Parameters
        ----------
        workload
            "ranges" (all 0 <= a < b < domain), "all ranges" (single items too) or "prefixes".
        frequencies
            Shape (domain,): of the population, for small domains only (see `largest_population`). None: all items are equally
            frequent.
        """
        if frequencies is None:
            return even_rmse(self.domain, n, workload, self._average_variance(n, workload))
        f, d = np.asarray(frequencies, dtype=np.float64), self.domain
        if f.shape != (d,) or not (f >= 0).all() or abs(f.sum() - 1) > 1e-9 or d > self.largest_population:
            raise ValueError(
                f"frequencies must be {d} numbers of at least 0 that sum to 1, for a domain of at most {self.largest_population}"
            )
        prefixes = np.tri(d)
        both = np.concatenate([prefixes, prefixes.sum(axis=0)[None], np.eye(d)])
        variances = self._population_variance(n, both, f)
        return float(mean_over(workload, variances[:d], float(variances[d]), variances[d + 1 :]) ** 0.5)

    largest_population: ClassVar[int] = 4096
    """The largest domain for which `average_rmse` takes frequencies."""

    @abstractmethod
    def _average_variance(self, n: int, workload: str) -> float:
        """The mean over a workload of `_own_range_variance`, for the expected number of users on each level."""

    @abstractmethod
    def _population_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        """The variances of weights @ estimates for a population, with the expected number of users on each level.

        Disjoint random samples of the users report on the levels: the variances of the samples' means add up, less what they share.
        Exact, but that so sampled means of few users vary more, by n / (n - 1).
        """

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """The variance of a single item's estimate, the mean over items; of a light item, whatever ``frequency``."""
        item = np.arange(self.domain)
        mean = float(self._own_range_variance(item, item, self._expected_users(n)).mean())
        return mean if np.ndim(frequency) == 0 else np.full(np.shape(frequency), mean)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        d = held or self.domain
        weights = np.eye(d, self.domain)
        weights[:, :d] -= 1 / d
        return float(2 * self._own_linear_variance(weights, self._expected_users(n)).sum() / max(d - 1, 1))

    def audit(self) -> Audit:
        return max((oracle.audit() for oracle in self.levels), key=lambda audit: audit.ratio)


@dataclass(frozen=True)
class TreeProtocol(RangeProtocol):
    """Protocols whose levels are those of a tree: see `rangeq.tree` for their errors."""

    @property
    @abstractmethod
    def tree(self) -> Tree:
        """The tree over the domain."""

    @property
    @abstractmethod
    def levels(self) -> tuple[Oracle, ...]:
        """The oracle of each level 1 .. height: its domain is the nodes of the level."""

    @abstractmethod
    def _leaves(self, aggregate: Aggregate) -> Floats:
        """Unbiased estimates of all leaves."""

    @abstractmethod
    def _contrasts(self, users: Floats) -> Floats:
        """The variance of a contrast of unit length among the children of each level of parents, for so many users a level."""

    @abstractmethod
    def _level_weights(self, leaves: Floats, users: Floats, level: int) -> Floats:
        """How much each node's estimate of one level counts in a query: shape (queries, nodes), from its weights of the leaves."""

    def _nodes(self, level: int, items: Items) -> Items:
        return items // self.tree.widths[level]

    def _held(self, level: int, counts: Items) -> Items:
        return self.tree.sums(self.tree.padded(counts), level)

    def _details(self) -> dict[str, Any]:
        return {"branching": list(self.tree.branching), **super()._details()}

    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        leaves = self._leaves(aggregate)[: self.domain]
        if self.tree.leaves == self.domain:
            return leaves
        # Nobody is in the padding: all items sum to 1, and each gives up what it shares with the error of the sum.
        contrasts = self._contrasts(self._users(aggregate))
        shared = np.diff(self.tree.with_everything(np.arange(-1, self.domain), contrasts))
        return leaves + shared / shared.sum() * (1 - leaves.sum())

    def _own_range_variance(self, first: Items, last: Items, users: Floats) -> Floats:
        return self.tree.range_variance(first, last, self._contrasts(users))

    def _own_linear_variance(self, weights: Floats, users: Floats) -> Floats:
        return self.tree.linear_variance(weights, self._contrasts(users))

    def _average_variance(self, n: int, workload: str) -> float:
        return self.tree.average_variance(self._contrasts(self._expected_users(n)), workload)

    def _population_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        tree, users = self.tree, self._expected_users(n)
        if tree.leaves > self.domain:  # the estimates give up what they share with the error of their sum
            shared = np.diff(tree.with_everything(np.arange(-1, self.domain), self._contrasts(users)))
            weights = weights - (weights @ (shared / shared.sum()))[:, None]
        leaves, held = tree.padded(weights), tree.padded(frequencies)
        total = -spread(weights, frequencies) / n
        for level, oracle in enumerate(self.levels):
            if not users[level]:
                continue
            own, nodes = self._level_weights(leaves, users, level), tree.sums(held, level)
            total += (oracle.linear_variance(1, own, nodes) + spread(own, nodes)) / users[level]
        return np.maximum(total, 0.0)


def even_rmse(domain: int, n: int, workload: str, variance: float) -> float:
    """The root of a mean variance of independent samples of an even population, less what disjoint samples of n users share."""
    held = np.arange(1, domain + 1) / domain
    all_prefixes = held[::-1] * domain  # how often each item is in a prefix
    sums = float((all_prefixes**2).mean() - all_prefixes.mean() ** 2)
    shared = mean_over(workload, held * (1 - held), sums, np.full(domain, held[0] * (1 - held[0])))
    return max(variance - shared / n, 0.0) ** 0.5


def level_weights(height: int, probabilities: Sequence[Any] | None) -> tuple[int, ...]:
    """Probabilities of levels (None: all the same) as integers that sum to 2^64. ValueError unless they sum to exactly 1."""
    given = [Fraction(1, height)] * height if probabilities is None else [exact(p, "a level's probability") for p in probabilities]
    if len(given) != height or min(given) < 0 or sum(given) != 1:
        raise ValueError(f"level probabilities must be {height} numbers of at least 0 that sum to exactly 1")
    ends = [int(end * WORD) for end in accumulate(given)]
    return tuple(end - start for start, end in zip([0, *ends], ends, strict=False))

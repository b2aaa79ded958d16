"""InpEM: every attribute perturbed by itself, marginals by expectation maximisation.

Source: thesis 4.3.4, after Fanti et al. 2016.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from frequency.algebra import Coins, TruthOrLie, root
from frequency.core import (
    Aggregate,
    Channel,
    JointLaw,
    Likelihood,
    Reports,
    Sample,
    Step,
    cells,
    checked_users,
    independent,
    joint_law_of,
    json_integers,
    law_of_ratio,
    product_law,
    smallest_integer,
    two_likelihoods,
)
from frequency.marginals.estimate import MarginalEstimate
from frequency.marginals.protocol import MarginalProtocol, Table
from frequency.schema import Domain
from frequency.schema.domain import LARGEST_RECORDS
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import BitSource, Floats, Items, exact_sum, set_fields, shown, whole
from mechdesign.symbolic.proof_rules import BudgetShare, CompositionProof, favouring

#: The largest number of cells of the marginals of all sets of k attributes together.
MOST_CELLS = 1 << 24

#: The most ways in which the values of two records agree, for public coins to draw reports.
MOST_AGREEMENTS = 1 << 12

# The number of cells up to which a step is a matrix product; above, attribute by attribute.
_DENSE = 256

_TOGETHER = 1 << 13  # the number of cells of small marginals that are decoded at once


@dataclass(frozen=True)
class AttributeWise(Channel):
    """A channel whose report is a record, as a number, each of whose values is perturbed by itself.

    Each of the d attributes with more than one value has a likelihood ratio whose d-th power is at
    most the ratio allowed: epsilon / d. An aggregate holds how many reports are in each cell of the
    marginals of all sets of ``k`` attributes, one after the other.
    """

    privacy_source: ClassVar[str] = "thesis, section 4.3.4"

    attributes: Domain  # of the records
    k: int  # attributes of a counted marginal

    largest_domain: ClassVar[int] = LARGEST_RECORDS

    def __post_init__(self) -> None:
        cells = [1] + [0] * self.k  # of all marginals of 0, 1, .. k attributes so far
        for size in self.attributes.shape:
            cells = [1] + [more + size * fewer for fewer, more in pairwise(cells)]
        if cells[self.k] > MOST_CELLS:
            raise ValueError(
                f"the marginals of {self.k} attributes have {shown(cells[self.k])} cells, "
                f"more than {MOST_CELLS}"
            )
        super().__post_init__()
        for choice in self.choices:
            if choice.k > 1:
                choice.require()

    @cached_property
    def choices(self) -> tuple[TruthOrLie, ...]:
        """The randomised response of each attribute."""
        shape = self.attributes.shape
        # Independent perturbations multiply their ratios: the d-th root, rounded down exactly.
        each = root(self.max_ratio, max(sum(size > 1 for size in shape), 1))
        return tuple(TruthOrLie.within(each, size) for size in shape)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("record", smallest_integer(self.domain - 1))])

    @property
    def report_bits(self) -> int:
        return (self.domain - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        return {
            "attributes": [[name, self.attributes[name]] for name in self.attributes],
            "k": self.k,
            "truths": [str(choice.truth) for choice in self.choices],
            "lies": [str(choice.lie) for choice in self.choices],
        }

    @property
    def client_half(self) -> Step:
        try:
            places = self._agreements[1].tolist()
        except TypeError:  # more than public coins take: nobody asks for them
            places = []
        attributes = [json_integers([choice.k, choice.lie]) for choice in self.choices]
        width = self.report_dtype.itemsize
        return {"do": "attributes", "attributes": attributes, "width": width, "places": places}

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        record = np.zeros(len(items), dtype=np.int64)
        for value, choice in zip(self.attributes.values(items).T, self.choices, strict=True):
            value = value + choice.draw(len(items), source)
            record = record * choice.k + np.where(value >= choice.k, value - choice.k, value)
        reports["record"] = record

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return reports["record"] <= self.domain - 1

    @cached_property
    def views(self) -> tuple[tuple[str, ...], ...]:
        """The sets of k attributes."""
        return self.attributes.views(self.k)

    @cached_property
    def _ends(self) -> Items:
        return np.cumsum([self.attributes.project(view).size for view in self.views])

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (int(self._ends[-1]),)

    def _tables(self, counts: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
        """Return the perturbed marginal of each view, one axis an attribute."""
        parts = np.split(counts, self._ends[:-1])
        return [
            part.reshape(self.attributes.project(view).shape)
            for view, part in zip(self.views, parts, strict=True)
        ]

    def _counted(self, items: Items, times: Items | None = None) -> npt.NDArray[np.int64]:
        """Return the counts of records, each so many times (None: once)."""
        columns = dict(
            zip(self.attributes, np.ascontiguousarray(self.attributes.values(items).T), strict=True)
        )
        parts = []
        for view in self.views:
            cells = np.zeros(len(items), dtype=np.int64)
            for name in view:
                cells = cells * self.attributes[name] + columns[name]
            size = self.attributes.project(view).size
            part = np.zeros(size, dtype=np.int64)
            if times is None:
                part += np.bincount(cells, minlength=size)
            else:
                np.add.at(part, cells, times)
            parts.append(part)
        return np.concatenate(parts)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        records = reports["record"].astype(np.int64)
        if self.domain > len(records):
            return self._counted(records)
        times = np.bincount(records, minlength=self.domain)
        return self._counted(np.arange(self.domain), times)

    def consistent(self, aggregate: Aggregate) -> bool:
        if (aggregate.counts < 0).any():
            return False
        # Any two views are linked by views that differ in one attribute and keep what the two
        # share: these agree, so all do.
        seen: dict[tuple[str, ...], npt.NDArray[np.int64]] = (
            {(): np.array(aggregate.n)} if self.k == 1 else {}
        )
        for view, table in zip(self.views, self._tables(aggregate.counts), strict=True):
            for axis in range(self.k):
                smaller = table.sum(axis=axis)
                if not np.array_equal(
                    seen.setdefault(view[:axis] + view[axis + 1 :], smaller), smaller
                ):
                    return False
        first = aggregate.counts[: self._ends[0]]
        return exact_sum(first) == aggregate.n

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        return [cells(n, table, view) for view, table in enumerate(self._tables(counts))]

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        true_counts = self._held(items, counts)
        # Attribute by attribute: with probability truth - lie the value stays, otherwise it is any
        # value, all equally likely.
        table = true_counts.reshape(self.attributes.shape)
        for axis, choice in enumerate(self.choices):
            if choice.k > 1:
                kept = rng.binomial(table, float(choice.p - choice.q))
                lost = (table - kept).sum(axis=axis)
                table = kept + np.moveaxis(
                    rng.multinomial(lost, np.full(choice.k, 1 / choice.k)), -1, axis
                )
        return self._counted(np.arange(self.domain), table.ravel())

    def perturbed(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        """Return the fractions of reports in the cells of a marginal of up to k attributes."""
        part = next(part for part, view in enumerate(self.views) if set(attributes) <= set(view))
        start, end = int(self._ends[part - 1]) if part else 0, int(self._ends[part])
        domain = self.attributes.project(self.views[part])
        cells = domain.cells(np.arange(domain.size), attributes)
        shape = self.attributes.project(attributes).shape
        result: Floats = (
            np.bincount(cells, weights=aggregate.counts[start:end], minlength=math.prod(shape))
            / aggregate.n
        )
        return result.reshape(shape)

    # Without an item every record is as likely. How likely it is under an item depends on how many
    # attributes of each size agree.

    @cached_property
    def _sizes(self) -> dict[int, int]:
        """The number of attributes of each size above 1."""
        return Counter(size for size in self.attributes.shape if size > 1)

    @cached_property
    def _agreements(self) -> tuple[tuple[Fraction, ...], Items]:
        """The likelihoods, and the place of that of each combination of agreements."""
        if math.prod(many + 1 for many in self._sizes.values()) > MOST_AGREEMENTS:
            raise TypeError(
                "attributes of so many different sizes agree in more than"
                f" {MOST_AGREEMENTS} ways: too many for public coins"
            )
        pairs = {choice.k: choice.likelihoods for choice in self.choices if choice.k > 1}
        ratios = [
            math.prod(
                (
                    pairs[size][1] ** same * pairs[size][0] ** (many - same)
                    for (size, many), same in zip(self._sizes.items(), agree, strict=True)
                ),
                start=Fraction(1),
            )
            for agree in product(*(range(many + 1) for many in self._sizes.values()))
        ]
        values = sorted(set(ratios))
        order = {value: place for place, value in enumerate(values)}
        return tuple(values), np.array([order[ratio] for ratio in ratios])

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (self._agreements[0],)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        record = np.zeros(len(coins), dtype=np.int64)
        for place, size in enumerate(self.attributes.shape):
            record = record * size + coins.uniform(place, size)
        reports["record"] = record
        return reports

    def likelihood(self, reports: Reports, items: Items) -> Items:
        values = self.attributes.values(reports["record"].astype(np.int64))
        same, shape = values == self.attributes.values(items), np.array(self.attributes.shape)
        place = np.zeros(len(items), dtype=np.int64)
        for size, many in self._sizes.items():
            place = place * (many + 1) + same[:, shape == size].sum(axis=1)
        return self._agreements[1][place]

    def joint_law(self, items: Items) -> JointLaw:
        return independent(
            _of_one(choice, column.tolist())
            for choice, column in zip(self.choices, self.attributes.values(items).T, strict=True)
        )

    def dominating_law(self) -> PairLaw:
        # Of records that differ in every attribute
        different = math.prod(math.comb(many + 2, 2) for many in self._sizes.values())
        if different > MOST_AGREEMENTS:
            return law_of_ratio(Fraction(self.audit().ratio))
        return product_law(
            two_likelihoods(*choice.likelihoods, Fraction(0))
            for choice in self.choices
            if choice.k > 1
        )

    def attack_laws(self) -> Sequence[PairLaw]:
        different = math.prod(math.comb(many + 3, 3) for many in self._sizes.values())
        return super().attack_laws() if different <= MOST_AGREEMENTS else ()

    def audit(self) -> Audit:
        # The report 0 .. 0 under the record 0 .. 0, and under the record that differs in every
        # attribute that can.
        ratio = math.prod((choice.ratio for choice in self.choices), start=Fraction(1))
        other = 0
        for size in self.attributes.shape:
            other = other * size + min(1, size - 1)
        return Audit(ratio, self.max_ratio, 0, (0, other))

    def proof(self) -> CompositionProof:
        sizes = Counter(self.attributes.shape)
        share = Fraction(1, max(sum(times for size, times in sizes.items() if size > 1), 1))
        return CompositionProof(
            tuple(
                BudgetShare(
                    share,
                    times,
                    favouring(1, size - 1, name=f"randomised response of {size} values"),
                )
                for size, times in sizes.items()
            ),
            name=type(self).__name__,
            source=self.privacy_source,
        )


def _of_one(choice: TruthOrLie, values: list[int]) -> JointLaw:
    """Return the joint law of one attribute's perturbed value, under some values."""
    low, high = choice.likelihoods
    alone = len(set(values)) * Fraction(1, choice.k)
    outcomes = [(Fraction(1, choice.k), outcome) for outcome in set(values)]
    return joint_law_of(
        [
            (1 - alone, [low] * len(values)),
            *(
                (chance, [high if value == outcome else low for value in values])
                for chance, outcome in outcomes
            ),
        ]
    )


class Convergence(NamedTuple):
    """A report of how expectation maximisation ended.

    Attributes
    ----------
    iterations : int
        How many steps were made.
    converged : bool
        Whether the last step moved no cell by ``tolerance`` or more; otherwise the limit of steps
        was reached.
    failed : bool
        Whether that was the first step: then the marginal is the uniform prior, moved by less than
        ``tolerance`` (the failures that thesis Table 4.2 counts). A population that is uniform
        looks the same.
    log_likelihood : float
        The mean over reports of the log of the probability of their cell under the marginal, in
        nats. No step lowers it.
    """

    iterations: int
    converged: bool
    failed: bool
    log_likelihood: float


class EMEstimate(MarginalEstimate):
    """An estimate by expectation maximisation: proper distributions, biased.

    Each is found by itself, so that they may disagree. `consistent` gives unbiased ones that agree.
    Variances are those of the inverse Fisher information at the estimate, for this population: as
    if no cell were at 0, which makes errors smaller, and as if the iteration had not stopped early,
    which leaves an unknown bias (see `report`).
    """

    def __init__(self, protocol: InpEM, aggregate: Aggregate) -> None:
        super().__init__(protocol, aggregate)
        self._em = protocol
        self._found: dict[tuple[str, ...], tuple[Floats, Convergence]] = {}

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the marginal, one axis an attribute in the order asked for."""
        names = self._em.checked(attributes)
        return self._decoded(names)[0] if self.reports else super().marginal(names)

    def _variances(self, names: tuple[str, ...], weights: Floats) -> Floats:
        joint = self._decoded(names)[0].ravel()
        seen = self._em.perturbation(names)(joint)
        return self._em.noise_of(names, weights, seen, joint) / self.reports

    def report(self, attributes: Sequence[str]) -> Convergence:
        """Return how the iteration for a marginal ended: look here before trusting it.

        ValueError if there are no reports.
        """
        names = self._em.checked(attributes)
        if not self.reports:
            raise ValueError("no reports: there is nothing to decode")
        return self._decoded(names)[1]

    def _together(self, key: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Return the marginals to decode with one: all of its shape, if they are small."""
        shape = self.domain.project(key).shape
        if math.comb(len(self.domain), len(key)) * math.prod(shape) > _TOGETHER:
            return [key]
        # Together they take hardly longer
        return [
            names
            for names in self.domain.views(len(key))
            if self.domain.project(names).shape == shape
        ]

    def _decoded(self, names: tuple[str, ...]) -> tuple[Floats, Convergence]:
        key = tuple(name for name in self.domain if name in names)
        if key not in self._found:
            self._found.update(self._em.decode(self.aggregate, self._together(key)))
        table, convergence = self._found[key]
        return np.transpose(table, [key.index(name) for name in names]), convergence


@dataclass(frozen=True)
class InpEM(MarginalProtocol):
    """InpEM: every attribute by randomised response with epsilon / d, decoded by EM.

    Source: thesis 4.3.4, Algorithm 3.

    A heuristic without a guarantee: it may stop far from the most likely marginal, or at the
    uniform prior (see `EMEstimate.report`). A report is at most as long as the record; aggregates
    hold all marginals of k attributes, which may have 2^24 cells together.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    tolerance : float, default 1e-05
        Omega in Algorithm 3: iterations stop when no cell moves by as much.
    max_iterations : int, default 100000
        Or after so many. Neither concerns clients: aggregates made with other limits are the same.

    Examples
    --------
    >>> InpEM(Domain.binary("a", "b", "c"), k=2, epsilon=1.0).audit().holds
    True
    """

    tolerance: float = 1e-5
    max_iterations: int = 100_000

    def __post_init__(self) -> None:
        if (
            isinstance(self.tolerance, bool)
            or not isinstance(self.tolerance, (int, float))
            or not 0 < self.tolerance < 1
        ):
            raise ValueError(f"tolerance must lie between 0 and 1, got {shown(self.tolerance)}")
        steps = whole(self.max_iterations, "max_iterations", 1, what="a number of steps")
        set_fields(self, max_iterations=steps)
        super().__post_init__()

    @cached_property
    def channel(self) -> AttributeWise:
        return AttributeWise(self.domain.size, self.epsilon, self.domain, self.k)

    def estimate(self, aggregate: Aggregate) -> EMEstimate:
        """Return marginals of up to k attributes, decoded when asked for."""
        return EMEstimate(self, self.channel.require_own(aggregate))

    def decode(
        self, aggregate: Aggregate, sets: Sequence[tuple[str, ...]]
    ) -> dict[tuple[str, ...], tuple[Floats, Convergence]]:
        """Decode marginals of one shape by expectation maximisation (thesis, Algorithm 3).

        A cell of the guess becomes the mean over reports of Pr[cell | report] under the guess so
        far, that starts uniform. Each marginal stops by itself.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol, with at least one report.
        sets : sequence of tuple of str
            Sets of up to k attributes in the domain's order, with the same numbers of values.

        Returns
        -------
        dict
            For each set its marginal, one axis an attribute, and how the iteration ended.
        """
        tables = np.stack([self.channel.perturbed(aggregate, names).ravel() for names in sets])
        shape, cells = self.domain.project(sets[0]).shape, tables.shape[1]
        by_attribute = self.perturbation(sets[0])
        # The perturbation is linear: applied to unit vectors it is its matrix.
        dense = by_attribute(np.eye(cells)) if cells <= _DENSE else None
        guess = np.full(tables.shape, 1 / cells)
        iterations, moved = np.zeros(len(tables), dtype=np.int64), np.full(len(tables), np.inf)
        # Marginals that have stopped leave the arrays: the slowest ones need most of the steps.
        left, now, seen = np.arange(len(tables)), guess.copy(), tables
        for step in range(1, self.max_iterations + 1):
            # E and M step in one: with Q = Pr[report | cell], cell c becomes p_c sum_r seen_r Q_rc
            # / (Q p)_r. It stays a distribution, and its likelihood never falls (Dempster, Laird
            # and Rubin 1977).
            after = (
                now * by_attribute(seen / by_attribute(now))
                if dense is None
                else now * (seen / (now @ dense) @ dense)
            )
            change = np.abs(after - now).max(axis=1)
            now, done = after, change < self.tolerance
            if step == self.max_iterations or done.any():
                guess[left], iterations[left], moved[left] = now, step, change
                left, now, seen = left[~done], now[~done], seen[~done]
                if not len(left):
                    break
        result = {}
        for names, table, row, steps, last in zip(
            sets, guess, tables, iterations.tolist(), moved.tolist(), strict=True
        ):
            converged, some = last < self.tolerance, row > 0
            likelihood = float(row[some] @ np.log(by_attribute(table)[some]))
            table.setflags(write=False)
            result[names] = (
                table.reshape(shape),
                Convergence(steps, converged, converged and steps == 1, likelihood),
            )
        return result

    def perturbation(self, names: tuple[str, ...]) -> Callable[[Floats], Floats]:
        """Return the function that perturbs marginals of these attributes: (..., cells), flat."""
        shape = self.domain.project(names).shape
        choices = [self.channel.choices[place] for place in self.domain.places(names)]

        # Pr[report | cell] is symmetric, so that one function serves both halves of a step
        def by_attribute(rows: Floats) -> Floats:
            table = rows.reshape(-1, *shape)
            for axis, choice in enumerate(choices, start=1):
                if choice.k > 1:
                    # (p - q) I + q 11': one sum per attribute instead of a matrix of all cells.
                    table = float(choice.p - choice.q) * table + float(choice.q) * table.sum(
                        axis=axis, keepdims=True
                    )
            return table.reshape(rows.shape)

        return by_attribute

    def tables_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> list[tuple[Table, Items, float]]:
        # The marginal itself, from what all reports say of its attributes
        table = tuple(name for name in self.domain if name in attributes)
        domain = self.domain.project(table)
        return [(table, domain.cells(np.arange(domain.size), attributes), 1.0)]

    def likelihood_of(self, aggregate: Aggregate, table: Table) -> Likelihood:
        names = cast(tuple[str, ...], table)
        fractions = self.channel.perturbed(aggregate, names).ravel()
        perturb = self.perturbation(names)
        return Likelihood(len(fractions), aggregate.n * fractions, perturb, perturb)

    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        return self._undone(attributes, self.channel.perturbed(aggregate, attributes).ravel())

    def _undone(self, names: tuple[str, ...], rows: Floats) -> Floats:
        """Return the inverse of `perturbation`: shape (..., cells), flat."""
        shape = self.domain.project(names).shape
        table = rows.reshape(-1, *shape)
        for axis, place in enumerate(self.domain.places(names), start=1):
            choice = self.channel.choices[place]
            if choice.k > 1:
                # Sherman-Morrison: sums along the axis are unchanged, as p + (k - 1) q = 1, so that
                # what was added is known.
                even = float(choice.q) * table.sum(axis=axis, keepdims=True)
                table = (table - even) / float(choice.p - choice.q)
        return table.reshape(rows.shape)

    def noise_of(
        self, names: tuple[str, ...], weights: Floats, seen: Floats, held: Floats
    ) -> Floats:
        """Return the variances of unbiased sums of the cells of a marginal, from one report.

        Parameters
        ----------
        names : tuple of str
            The attributes.
        weights : numpy.ndarray of float64
            Shape (sums, cells).
        seen, held : numpy.ndarray of float64
            The fractions of reports, and of users, in each cell.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,).
        """
        # A report in a cell adds that cell's value, whose mean over a user's reports is the weight
        return self._undone(names, weights) ** 2 @ seen - weights**2 @ held

    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        seen = self.channel.perturbed(aggregate, attributes).ravel()
        estimates = self._undone(attributes, seen)
        return np.maximum(self.noise_of(attributes, weights, seen, estimates) / aggregate.n, 0.0)

    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        # Those of unbiased estimates; all cells are alike
        names = self.checked(attributes)
        shape = self.domain.project(names).shape
        even = np.full(math.prod(shape), 1 / math.prod(shape))
        (variance,) = self.noise_of(names, np.eye(1, even.size), even, even)
        return np.full(shape, variance / checked_users(n))

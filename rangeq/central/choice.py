"""The tasks of releases: "curated-ranges", "curated-attributes", and others.

They are tasks of `mechdesign.plan`. Errors follow from the sizes and epsilon alone: no data enter
the choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Any, ClassVar, NamedTuple

import numpy as np

from frequency.schema import Domain, Schema
from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.accounting.pair_law import exact_delta
from mechdesign.base import Rational, brief, is_whole, listed, ordered, set_fields, shown, whole
from mechdesign.planning.task import Offer, Task
from rangeq.central.branching import best_branching
from rangeq.central.hierarchy import CentralFlat, Hierarchy, Wavelet
from rangeq.central.inputs import cells_along, checked_quantiles, checked_shape
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.several_attributes import marginal_weights
from rangeq.central.matrix_mechanism.strategy import Strategy
from rangeq.central.matrix_mechanism.workload import Workload
from rangeq.central.mechanism import CentralMechanism
from rangeq.central.quantile_release import QuantileRelease, TreeQuantiles
from rangeq.central.released_quantiles import ordered_attribute


def usual_task(schema: Schema, quantiles: bool = False) -> str:
    """The name of the task for what a curator releases of some attributes."""
    if quantiles:
        return "curated-quantiles"
    return "curated-attributes" if len(schema) > 2 else "curated-ranges"


_TREES = 4  # so many of the best trees of equal budgets are tried with optimised ones

_OCTAVES = 10  # halves of octaves: designs are for an epsilon from 2^-5 to 2^5

#: Cells along an attribute up to which a plan designs strategies.
_WIDEST_FOR_LAPLACE_NOISE, _WIDEST = 256, 1024

_PARTS = 1000  # optimised budgets are in such parts of epsilon


@dataclass(frozen=True)
class CuratedRanges(Task):
    """The number of users in a range, or a box of several attributes, from a curator's histogram.

    Candidates are `CentralFlat`, the best `Hierarchy` that is found, `Wavelet`, and the strategies
    of `workload_optimal` with Laplace noise ("strategy") and, if a delta is given, with Gaussian
    noise ("gaussian"). Along an attribute without an order nobody asks for ranges: the tree is
    split into its items at the top, and each item has the best tree over the ordered attributes. If
    none is ordered there is only the flat histogram.

    Attributes
    ----------
    domain : int, sequence of int, mapping of str to int or Schema
        The number of cells of one attribute, or along each of up to 8: 2^26 in all at most. Or a
        `frequency.schema.Schema`, which says what is unordered.
    unordered : str or sequence of str, default ()
        The attributes whose items have no order: names, or where there are none places such as "0".
        A string has commas between them.
    workload : {"ranges", "prefixes"}, default "ranges"
        What is asked along each ordered attribute.
    delta : float, Fraction, int, str or Decimal, optional
        Of (epsilon, delta)-differential privacy, strictly between 0 and 1. None: epsilon holds with
        a delta of 0, which Gaussian noise does not keep.
    """

    example: ClassVar[str] = "--domain 64 --epsilon 1"

    unordered: Any = ()
    workload: str = "ranges"
    delta: Any = None

    users_report: ClassVar[bool] = False
    described: ClassVar[str] = (
        "docs/protocols/central; strategy, gaussian: docs/workload-release.md"
    )

    def __post_init__(self) -> None:
        given, asked = self.unordered, self.domain
        if isinstance(asked, Schema):
            given = [attribute.name for attribute in asked if not attribute.ordered]
            asked = dict(zip(asked.names, cells_along(asked), strict=True))
        domain = Domain.of([asked] if is_whole(asked) else asked)
        checked_shape(domain.sizes)
        if isinstance(given, str):
            given = [name.strip() for name in given.split(",")]
        unordered = tuple(given)
        if unknown := [name for name in unordered if name not in domain.names]:
            raise ValueError(
                f"unordered must be among {listed(domain.names)}, got {shown(unknown[0])}"
            )
        if self.workload not in ("ranges", "prefixes"):
            raise ValueError(f"workload must be ranges or prefixes, got {shown(self.workload)}")
        delta = None if self.delta is None else exact_delta(self.delta)
        set_fields(self, domain=domain, unordered=unordered, delta=delta)

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Whether ranges are asked along each attribute."""
        return tuple(name not in self.unordered for name in self.domain.names)

    @property
    def question(self) -> str:
        kind = "boxes" if len(self.ordered) > 1 else self.workload
        kind = kind if any(self.ordered) else "single cells"
        sizes = " x ".join(map(str, self.domain.sizes))
        return f"{kind} of {sizes} cells{_from_curator(self.delta)}"

    @property
    def error_is(self) -> str:
        along = [name for name in self.domain.names if name not in self.unordered]
        query = "a prefix" if self.workload == "prefixes" else "a range"
        kind = "a box" if len(along) > 1 else query if along else "a cell"
        one_of = f" for one item of {listed(self.unordered)}" if along and self.unordered else ""
        return f"root mean square error of {kind}{one_of}, in users, for any data"

    @property
    def names(self) -> tuple[str, ...]:
        return ("flat", "tree", "wavelet", "strategy", *(["gaussian"] if self.delta else []))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        sizes, ordered = self.domain.sizes, self.ordered
        # The mechanism restricted to one item of each unordered attribute: one cell if all are
        along = tuple(
            size for size, is_ordered in zip(sizes, ordered, strict=True) if is_ordered
        ) or (1,)
        mechanism: CentralMechanism
        restricted: CentralMechanism
        if name == "flat":
            mechanism, restricted = CentralFlat(sizes, epsilon), CentralFlat(along, epsilon)
        elif name == "gaussian" or (name == "strategy" and max(along) > 1):
            asked = [self.workload if is_ordered else "cells" for is_ordered in ordered]
            delta = self.delta if name == "gaussian" else None
            designed = designed_mechanism(sizes, tuple(asked), epsilon, delta)
            return Offer(designed, math.sqrt(designed.workload_variance(asked)))
        elif max(along) == 1:
            raise ValueError(f"no ranges are asked: there is nothing for a {name} to gain")
        elif name == "tree":
            best = best_tree(along)
            restricted = best.under(along, (True,) * len(along), epsilon)
            mechanism = restricted if all(ordered) else best.under(sizes, ordered, epsilon)
        elif all(ordered):
            mechanism = restricted = Wavelet(sizes, epsilon)
        else:
            raise ValueError("a wavelet is for ordered attributes only")
        return Offer(mechanism, self._error(restricted))

    def _error(self, mechanism: CentralMechanism) -> float:
        """Over ordered attributes alone."""
        if self.workload == "ranges":
            return math.sqrt(mechanism.sampled_average_variance())
        last = np.indices(mechanism.sizes).reshape(len(mechanism.sizes), -1)
        return math.sqrt(np.mean(mechanism.errors.variance(np.zeros_like(last), last)))

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        if not all(self.ordered):
            raise ValueError("candidates of one's own are compared on ordered attributes only")
        mechanism = candidate(self.domain.sizes, epsilon)
        return Offer(mechanism, self._error(mechanism))


def _from_curator(delta: Fraction | None) -> str:
    return ", from a curator" + (f", delta = {brief(delta)}" if delta else "")


def designed_mechanism(
    sizes: tuple[int, ...],
    workload: str | tuple[str, ...],
    epsilon: float | Rational,
    delta: Fraction | None = None,
    ways: tuple[int, ...] = (),
) -> MatrixMechanism:
    """Return what `workload_optimal` designs, where that takes seconds.

    Of names for each attribute, in sets of so many of ``ways``; all attributes together if that is
    empty.
    """
    promise: Promise
    if delta is not None:
        promise = ApproximateDP(epsilon, delta)
        return MatrixMechanism(_strategy(sizes, workload, ZCDP(1), ways).finer(), promise)
    promise = Privacy.from_epsilon(epsilon)
    # Noise in whole steps has other optima at every epsilon, but they change little: a search for
    # one asks for the designs of few
    near = min(max(round(2 * math.log2(promise.epsilon)), -_OCTAVES), _OCTAVES)
    designed = Privacy.from_epsilon(2.0 ** (near / 2))
    return MatrixMechanism(_strategy(sizes, workload, designed, ways), promise)


@lru_cache(maxsize=32)
def _strategy(
    sizes: tuple[int, ...],
    workload: str | tuple[str, ...],
    promise: Promise,
    ways: tuple[int, ...] = (),
) -> Strategy:
    widest = _WIDEST_FOR_LAPLACE_NOISE if isinstance(promise, Privacy) else _WIDEST
    if max(sizes) > widest:
        raise ValueError(
            f"of more than {widest} cells along an attribute a design takes long: workload_optimal"
            " makes it, and mechdesign curate --strategy best"
        )
    asked: Any = workload if isinstance(workload, str) else list(workload)
    if ways:  # every set of attributes counts alike, however many queries are about it
        views = [view for k in ways for view in combinations(range(len(sizes)), k)]
        asked = []
        for view in views:
            names = [workload[i] if i in view else "total" for i in range(len(sizes))]
            weight = 1 / Workload.of(names, sizes).count / math.comb(len(sizes), len(view))
            asked.append((weight, names))
        if set(workload) == {"cells"} and isinstance(promise, Privacy):
            return marginal_weights(Workload.of(asked, sizes))  # alone, in a second
    return workload_optimal(asked, sizes, promise).strategy


class BestTree(NamedTuple):
    """A tree over ordered attributes, and how epsilon is split over its levels."""

    branching: tuple[tuple[int, ...], ...]  # for each attribute, from the root down
    budget: tuple[int, ...]  # weights of the levels, from the top

    def under(
        self, sizes: Sequence[int], ordered: Sequence[bool], epsilon: float | Rational
    ) -> Hierarchy:
        """Return such a tree for each item, or combination of items, of further attributes."""
        # A box of one such item has the variance that it has in the tree by itself
        fanouts = iter(self.branching)
        below = (1,) * (len(self.budget) - 1)
        lists = [
            next(fanouts) if is_ordered else (size, *below)
            for size, is_ordered in zip(sizes, ordered, strict=True)
        ]
        branching = lists if len(lists) > 1 else lists[0]
        return Hierarchy(tuple(sizes), epsilon, branching, budget=self.budget)


@lru_cache(maxsize=64)
def best_tree(shape: tuple[int, ...]) -> BestTree:
    """Return the tree of least average variance that a quick search finds, with its best budget."""
    # The best trees of equal budgets are tried with optimised ones: of one attribute of 2^16 cells
    # all takes a tenth of a second
    table = best_branching(shape, 1, alternatives=2 * _TREES, exhaustive=False, drawn=False).table
    variances: dict[BestTree, float] = {}
    for row in table:
        lists = (row.fanouts,) if len(shape) == 1 else row.fanouts
        if len(lists[0]) == 1 and len(table) > 1:
            continue  # the flat histogram
        trial = Hierarchy(shape, 1, lists, budget="optimal")
        height = len(lists[0])
        *upper, leaves = (round(_PARTS * share) for share in trial.shares)
        for budget in ((1,) * height, (*upper, max(leaves, 1))):
            if any(budget[:-1]) or height == 1:  # else it is the flat histogram, too
                tree = Hierarchy(shape, 1, lists, budget=budget)
                variances[BestTree(lists, budget)] = tree.average_variance()
    return ordered(variances, variances.__getitem__)[0]


_ASKED = 4096  # so many queries of a kind have their variances averaged, at most

_ONE_AND_TWO = ("one: cell", "range", "quantile", "two: cell", "range x range")


@dataclass(frozen=True)
class CuratedAttributes(CuratedRanges):
    """What is asked of a release of several attributes: about one of them, and about two together.

    Ranges are asked along ordered attributes and single items of the others. Candidates are those
    of `CuratedRanges`, the strategy for these questions, and besides the marginals of all single
    attributes and pairs with weights of least error ("marginals"); if a delta is given, "gaussian"
    is the strategy for these questions with Gaussian noise. Candidates are ranked by the root mean
    square of the errors of questions about one attribute and about two, half each.

    Attributes
    ----------
    domain, unordered, workload, delta : as of `CuratedRanges`
        Of two attributes or more.
    """

    example: ClassVar[str] = "--domain age=8,smokes=2,works=2 --epsilon 1"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.domain) < 2:
            raise ValueError("of one attribute plan curated-ranges")

    @property
    def question(self) -> str:
        sizes = " x ".join(map(str, self.domain.sizes))
        return f"questions about one and two attributes of {sizes} cells{_from_curator(self.delta)}"

    @property
    def error_is(self) -> str:
        along = "ranges along ordered attributes, items of others"
        return f"root mean square error of {along}, in users, for any data"

    @property
    def other_errors_are(self) -> str:  # type: ignore[override]
        return (
            "one, two: root mean square errors of a cell of one attribute, or of two, of a range"
            " along ordered ones, and of the rank of a quantile"
        )

    @property
    def names(self) -> tuple[str, ...]:
        gaussian = ["gaussian"] if self.delta else []
        return ("flat", "tree", "wavelet", "strategy", "marginals", *gaussian)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        mechanism: Any
        if name in ("strategy", "marginals", "gaussian"):
            kinds = tuple(self._kinds if name != "marginals" else ["cells"] * len(self.ordered))
            delta = self.delta if name == "gaussian" else None
            mechanism = designed_mechanism(self.domain.sizes, kinds, epsilon, delta, ways=(1, 2))
        else:
            mechanism = super().offer(name, epsilon, n).protocol
        errors = [self._squared(mechanism, ways, self._kinds) for ways in (1, 2)]
        return Offer(mechanism, math.sqrt(sum(errors) / 2))

    @property
    def _kinds(self) -> list[str]:
        return [self.workload if is_ordered else "cells" for is_ordered in self.ordered]

    def other_errors(self, protocol: Any, n: int | None) -> tuple[tuple[str, float], ...]:
        cells = ["cells"] * len(self.ordered)
        ranges = ["ranges" if is_ordered else "cells" for is_ordered in self.ordered]
        prefixes = ["prefixes" if is_ordered else "" for is_ordered in self.ordered]
        asked = ((1, cells), (1, ranges), (1, prefixes), (2, cells), (2, ranges))
        found = []
        for name, (ways, kinds) in zip(_ONE_AND_TWO, asked, strict=True):
            if kinds is cells or any(self.ordered):
                found.append((name, math.sqrt(self._squared(protocol, ways, kinds))))
        return tuple(found)

    def _squared(self, mechanism: Any, ways: int, kinds: Sequence[str]) -> float:
        """The mean squared error of products of queries along so many attributes."""
        # Along attributes of the kind "" nothing is asked
        places = [place for place, kind in enumerate(kinds) if kind]
        errors = []
        for view in combinations(places, ways):
            if isinstance(mechanism, MatrixMechanism):
                names = [kinds[i] if i in view else "total" for i in range(len(kinds))]
                errors.append(mechanism.workload_variance(names))
                continue
            errors.append(float(np.mean(mechanism.errors.variance(*self._boxes(view, kinds)))))
        return float(np.mean(errors))

    def _boxes(self, view: Sequence[int], kinds: Sequence[str]) -> tuple[Any, Any]:
        """All boxes of these kinds along some attributes, or many of them."""
        sizes = self.domain.sizes
        ends = []
        for place in view:
            cell = np.arange(sizes[place])
            if kinds[place] == "ranges":
                ends.append(np.triu_indices(sizes[place]))
            else:
                ends.append((cell if kinds[place] == "cells" else 0 * cell, cell))
        number = math.prod(len(first) for first, _ in ends)
        if number <= _ASKED:
            chosen = np.indices([len(first) for first, _ in ends]).reshape(len(view), -1)
        else:  # of a fixed seed: a plan is the same every time
            rng = np.random.default_rng(0)
            chosen = np.array([rng.integers(0, len(first), _ASKED) for first, _ in ends])
        boxes = np.zeros((2, len(sizes), chosen.shape[1]), dtype=np.int64)
        boxes[1] = np.array(sizes)[:, None] - 1
        for place, which, pair in zip(view, chosen, ends, strict=True):
            boxes[:, place] = [end[which] for end in pair]
        return boxes[0], boxes[1]


@dataclass(frozen=True)
class CuratedMarginals(Task):
    """The numbers of users in the cells of all marginals of ``k`` attributes, from a curator.

    Candidates are the histogram of all records, `CentralFlat`, whose noise adds up in a marginal's
    cell ("records"); a `CentralFlat` for each marginal, which share epsilon evenly ("marginals"):
    its protocol is a dictionary of them; and the strategies of `workload_optimal` with Laplace
    noise ("strategy") and, if a delta is given, with Gaussian noise ("gaussian").

    Attributes
    ----------
    domain : sequence of int, mapping or Domain
        The numbers of values of the attributes.
    k : int
        How many attributes a marginal has.
    delta : float, Fraction, int, str or Decimal, optional
        As for `CuratedRanges`.
    """

    example: ClassVar[str] = "--domain age=8,smokes=2,works=2 --epsilon 1"

    k: int = 2
    delta: Any = None

    users_report: ClassVar[bool] = False
    described: ClassVar[str] = (
        "records, marginals: docs/protocols/central/flat.md, once or for each marginal; strategy,"
        " gaussian: docs/workload-release.md"
    )

    def __post_init__(self) -> None:
        domain = Domain.of(self.domain)
        k = whole(self.k, "k", 1, len(domain), what="a number of attributes")
        delta = None if self.delta is None else exact_delta(self.delta)
        set_fields(self, domain=domain, k=k, delta=delta)

    @property
    def question(self) -> str:
        return (
            f"marginals of {self.k} of {len(self.domain)} attributes of"
            f" {' x '.join(map(str, self.domain.sizes))} values{_from_curator(self.delta)}"
        )

    @property
    def error_is(self) -> str:
        return "root mean square error of a cell of a marginal, in users, for any data"

    @property
    def names(self) -> tuple[str, ...]:
        return ("records", "marginals", "strategy", *(["gaussian"] if self.delta else []))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        if name in ("strategy", "gaussian"):
            asked = f"{self.k}-way marginals"
            delta = self.delta if name == "gaussian" else None
            designed = designed_mechanism(self.domain.sizes, asked, epsilon, delta)
            return Offer(designed, math.sqrt(designed.workload_variance(asked)))
        views = list(combinations(self.domain.names, self.k))
        shapes = [tuple(self.domain[attribute] for attribute in view) for view in views]
        if name == "records":
            whole_table = CentralFlat(self.domain.sizes, epsilon)
            (noise,) = whole_table.rounded_variances
            assert noise is not None
            cells = math.prod(self.domain.sizes)
            parts = [cells / math.prod(shape) for shape in shapes]
            return Offer(whole_table, math.sqrt(noise * sum(parts) / len(parts)))
        share = epsilon / len(views)
        tables = {
            view: CentralFlat(shape, share) for view, shape in zip(views, shapes, strict=True)
        }
        (noise,) = tables[views[0]].rounded_variances
        assert noise is not None
        return Offer(tables, math.sqrt(noise))


@dataclass(frozen=True)
class CuratedQuantiles(Task):
    """Quantiles of one ordered attribute, from a curator, and nothing else.

    Candidates are the exponential mechanism (`QuantileRelease`), which is best for a few, and the
    smoothed cells of a tree (`TreeQuantiles`), whose error does not grow with their number.

    Attributes
    ----------
    domain : int or Schema
        How many values there may be. Or a `frequency.schema.Schema` of one ordered attribute, of
        whose bins the quantiles are.
    q : str or number or sequence of numbers, default "0.5"
        The quantiles, each in [0, 1]. A string has commas between them.
    """

    example: ClassVar[str] = "--domain 64 --epsilon 1"

    q: Any = "0.5"

    users_report: ClassVar[bool] = False
    described: ClassVar[str] = "docs/packages/rangeq.central.md"

    def __post_init__(self) -> None:
        given = tuple(self.q.split(",")) if isinstance(self.q, str) else self.q
        domain = self.domain
        if isinstance(domain, Schema):
            domain = ordered_attribute(domain).bins
        asked = QuantileRelease(domain, given, 1)
        set_fields(self, domain=asked.domain, q=checked_quantiles(given))

    @property
    def question(self) -> str:
        many = f"{len(self.q)} quantiles" if len(self.q) > 1 else f"the {float(self.q[0])}-quantile"
        return f"{many} over {self.domain} values, from a curator"

    @property
    def error_is(self) -> str:
        return "root mean square error of a quantile's rank, in users, for values evenly spread"

    @property
    def names(self) -> tuple[str, ...]:
        return ("exponential", "tree")

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        kind = QuantileRelease if name == "exponential" else TreeQuantiles
        return self.offer_of(kind, epsilon, n)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        mechanism = candidate(self.domain, self.q, epsilon)
        return Offer(mechanism, mechanism.predicted_error())

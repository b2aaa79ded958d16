"""The tasks of `mechdesign.plan` about ranges, quantiles and conjunctions of ranges."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

import rangeq.grids
from frequency import HRR
from frequency.schema import Domain
from mechdesign.base import ordered, set_fields, whole
from mechdesign.planning.task import CuratedTask, Offer, Task
from rangeq.core import RangeProtocol, checked_shares
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.grids.sampling import ExpectedRecords
from rangeq.grids.simulated_errors import conjunction_errors
from rangeq.grids.wavegrid.protocol import WaveGrid, checked_apart, checked_categorical
from rangeq.local.circular import CircularHistogram
from rangeq.local.composite import ShiftedHistogram
from rangeq.local.haar import HaarHRR
from rangeq.local.hierarchy import HierarchicalHistogram
from rangeq.local.optimisation import Optimised, describe, least_rmse, optimise
from rangeq.local.smoothed import shaped, shaped_errors
from rangeq.local.square_wave import SquareWave

# The optimised ones: their levels, oracles and probabilities are others at every epsilon.
_OPTIMISED = _CIRCULAR, _SHIFTED, _TREE = "circular", "shifted", "tree"

_SHAPED = "Shaped"

# The quantiles that a curator is asked for: each more costs accuracy there, and none here.
_DECILES = tuple(Fraction(tenth, 10) for tenth in range(1, 10))


@dataclass(frozen=True)
class _OrderedAttribute(Task):
    """Ranges of one ordered attribute, with smoothed estimates as a candidate.

    Their errors rest on the population, which may be given.
    """

    like: Any = field(default=None, kw_only=True)

    workload: ClassVar[str] = "ranges"

    def __post_init__(self) -> None:
        domain = whole(
            self.domain, "domain", 1, RangeProtocol.largest_domain, what="a number of items"
        )
        set_fields(self, domain=domain)
        if self.like is not None:
            set_fields(self, like=checked_shares(self.like, self.domain))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        if name != _SHAPED:
            return self._unsmoothed(name, epsilon, n)
        protocol = shaped(self.domain, epsilon, n, self.workload)
        errors = shaped_errors(self.domain, epsilon, n, self.workload, self.like)
        return Offer(
            protocol,
            _root_mean_square(errors),
            protocol.report_bits,
            "log D",
            "n + L q D log D",
            populations=errors,
        )

    def error(self, name: str, epsilon: float | Fraction, n: int) -> float:
        if name != _SHAPED:
            return super().error(name, epsilon, n)
        return _root_mean_square(shaped_errors(self.domain, epsilon, n, self.workload, self.like))

    @abstractmethod
    def _unsmoothed(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """The offer of any other candidate."""


@dataclass(frozen=True)
class Ranges(_OrderedAttribute):
    """The fraction of users between a and b, on an ordered attribute.

    "circular" and "tree" are the best circular hierarchy and the best tree, optimised at each
    epsilon.

    Attributes
    ----------
    domain : int
        The number of items.
    like : array_like, optional
        How many users may hold each item, or other numbers in these proportions: the population to
        predict errors on. None: an even one, and for estimates whose errors rest on the population
        those of `rangeq.core.workload_sums`, by their root mean square.
    """

    asked: ClassVar[str] = "ranges"
    unit: ClassVar[str] = "root mean square error of a range"
    described: ClassVar[str] = (
        "docs/protocols/ranges; circular, shifted, tree: the best hierarchy of the kind; HH_4 OUE:"
        " the one with branching 4 and OUE"
    )
    symbols: ClassVar[str] = (
        "D items, L levels, q values of a hash or of a field's element, n reports"
    )

    @property
    def question(self) -> str:
        return f"{self.asked} over {self.domain} items"

    @property
    def error_is(self) -> str:
        exact = self.domain <= HaarHRR.largest_population
        of = "the population given" if self.like is not None and exact else "an even population"
        return f"{self.unit}, for {of}"

    @property
    def names(self) -> tuple[str, ...]:
        return (*_families(self.domain, 1.0, self.workload), _SHAPED)

    def _unsmoothed(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        families = _families(self.domain, epsilon if name in _OPTIMISED else 1.0, self.workload)
        protocol = (
            families[name] if name in _OPTIMISED else replace(families[name], epsilon=epsilon)
        )
        error = self._error(protocol, n)
        return Offer(protocol, error, protocol.report_bits, *_costs(protocol))

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        protocol = candidate(self.domain, epsilon)
        if not isinstance(protocol, RangeProtocol):
            raise ValueError(
                f"{type(protocol).__name__} is no range protocol; an oracle is part of one, as in"
                " Flat(64, 1.0, oracle=GRR)"
            )
        return Offer(protocol, self._error(protocol, n), protocol.report_bits)

    def _error(self, protocol: RangeProtocol, n: int) -> float:
        like = self.like if self.domain <= protocol.largest_population else None
        return protocol.average_rmse(n, self.workload, like)

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        return (
            "no unbiased estimate of an even population errs less than"
            f" {least_rmse(self.domain, epsilon, n, self.workload):.4g};"
            f" {_SHAPED}'s estimate is biased, and may err less"
        )

    def by_curator(self) -> CuratedTask:
        return CuratedTask("curated-ranges", self.domain, {"workload": self.workload})


@dataclass(frozen=True)
class PrefixQueries(Ranges):
    """The fraction of users at or below b: `Ranges` for the workload of all prefixes."""

    workload: ClassVar[str] = "prefixes"
    asked: ClassVar[str] = "prefixes"
    unit: ClassVar[str] = "root mean square error of a prefix"


@dataclass(frozen=True)
class Quantiles(Ranges):
    """The item below which a fraction of the users is: the protocols for prefixes.

    Their errors are what the ranks of ``estimate.quantile(q)`` err by at most, measured a tenth to
    two fifths less where noise is large over many items. In a coarse domain the share of single
    items comes on top.
    """

    workload: ClassVar[str] = "prefixes"
    asked: ClassVar[str] = "quantiles"
    unit: ClassVar[str] = (
        "root mean square error, at most, of the rank of a quantile, as a fraction of the users"
    )

    def by_curator(self) -> CuratedTask:
        return CuratedTask("curated-quantiles", self.domain, {"q": _DECILES})


@dataclass(frozen=True)
class ShapedRanges(_OrderedAttribute):
    """Ranges of one ordered attribute by estimates that are distributions, and biased.

    How much they err rests on how smooth the data are.

    Attributes
    ----------
    domain : int
        The number of items.
    like : array_like, optional
        As that of `Ranges`.
    """

    described: ClassVar[str] = "docs/protocols/ranges"

    @property
    def question(self) -> str:
        return f"a distribution over {self.domain} items, for ranges"

    @property
    def error_is(self) -> str:
        return "of a range, which rests on how smooth the data are"

    @property
    def names(self) -> tuple[str, ...]:
        return (_SHAPED, "SquareWave")

    def _unsmoothed(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        return self.offer_of(SquareWave, epsilon, n)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        protocol = candidate(self.domain, epsilon)
        return Offer(protocol, math.nan, protocol.report_bits)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        return _SHAPED, (
            "estimates are as smooth as the reports say, and have intervals, which those of"
            " SquareWave have not"
        )


@lru_cache(maxsize=32)
def _optimised(domain: int, epsilon: float | Fraction, workload: str) -> Optimised:
    return optimise(domain, epsilon, 1, workload)  # all errors fall alike with n


def _families(domain: int, epsilon: float | Fraction, workload: str) -> dict[str, RangeProtocol]:
    """The best protocol of each family."""
    protocols: dict[str, RangeProtocol] = {}
    for protocol, _ in _optimised(domain, epsilon, workload).alternatives:
        protocols.setdefault(_family(protocol), protocol)
    return protocols


def _root_mean_square(errors: tuple[tuple[str, float], ...]) -> float:
    return math.sqrt(math.fsum(error * error for _, error in errors) / len(errors))


def _family(protocol: RangeProtocol) -> str:
    if isinstance(protocol, CircularHistogram):
        return _CIRCULAR
    if isinstance(protocol, ShiftedHistogram):
        return _SHIFTED
    if isinstance(protocol, HierarchicalHistogram):
        return (
            f"HH_{protocol.branching} {protocol.oracle}"
            if isinstance(protocol.oracle, str)
            else _TREE
        )
    return describe(protocol)


def _costs(protocol: RangeProtocol) -> tuple[str, str]:
    """Elementary steps up to a constant, as those of the task "frequencies"."""
    if _family(protocol) in _OPTIMISED:
        return "log D", "n + L q D log D"
    if isinstance(protocol, HaarHRR) or all(isinstance(level, HRR) for level in protocol.parts):
        return "1", "n + D log D"
    return "D", "n D"


# The candidates, in order; the last one is the baseline.
_SYSTEMS = "WaveGrid", "HDG", "TDG", "RangeCALM", "LHIO", "HIO", "MSW", "Uniform"


def _system(name: str) -> type[ConjunctionProtocol]:
    """A system of this name: published ones are loaded when they are asked for."""
    return getattr(rangeq.grids, name)


@dataclass(frozen=True)
class Conjunctions(Task):
    """Ranges over several ordered attributes at once: the systems of `rangeq.grids`.

    Errors are those of a range of each of two attributes, of one where there is one, predicted by
    simulation on populations (`rangeq.grids.simulated_errors`), and ranked by their root mean
    square over these: what a system cannot see of a population is in them as well as its noise.

    Attributes
    ----------
    domain : sequence of int or mapping
        The numbers of values of the attributes: a list, or a mapping of names to them.
    like : array_like, DataFrame or mapping, optional
        Records like those to come, a row each, of which errors are predicted: integers of shape
        (records, attributes). None: those of
        `rangeq.grids.sampling.REFERENCE_RECORDS`.
    categorical : sequence of str or int, or str, default ()
        The attributes, by name or by place, whose values are categories (one text: names with
        commas between them): `WaveGrid` takes them. Of these a question names one value.
    apart : mapping of str or int to int, default ()
        How many of the last values of an attribute are no neighbours of others: as for `WaveGrid`.
    """

    example: ClassVar[str] = "--domain age=80,income=64 --n 100000 --epsilon 1"

    described: ClassVar[str] = "docs/protocols/grids"
    one_population: ClassVar[bool] = False

    like: Any = field(default=None, kw_only=True)
    categorical: Any = field(default=(), kw_only=True)
    apart: Any = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        set_fields(self, domain=Domain.of(self.domain))
        if len(self.apart):
            set_fields(self, apart=checked_apart(self.apart, self.domain, {}))
        if self.like is not None:
            set_fields(self, like=ExpectedRecords.of(self.like, self.domain))
        if isinstance(self.categorical, str):
            set_fields(self, categorical=[name.strip() for name in self.categorical.split(",")])
        if len(self.categorical):
            named = checked_categorical(self.categorical, self.domain)
            # Two values have no order, and all systems take them
            set_fields(
                self,
                categorical=tuple(attribute for attribute in named if self.domain[attribute] > 2),
            )

    @property
    def question(self) -> str:
        return (
            f"conjunctions of ranges over {len(self.domain)} attributes of"
            f" {' x '.join(map(str, self.domain.sizes))} values"
        )

    @property
    def error_is(self) -> str:
        asked = "a range of each of two attributes" if len(self.domain) > 1 else "a range"
        where = "reference populations" if self.like is None else "the records given"
        if len(self.categorical):
            asked = f"{asked}, or a category"
        return f"root mean square error of {asked}, over {where}"

    baseline = _SYSTEMS[-1]

    @property
    def advice(self) -> str:  # type: ignore[override]
        if len(self.domain) < 3:
            return ""
        return (
            "answers about more than two attributes together rest on the dependence of pairs, and"
            " may miss by far where a small group is unlike all others: plan marginals for these"
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._made(1.0, 10**6))

    def _made(self, epsilon: float | Fraction, n: int) -> dict[str, ConjunctionProtocol]:
        wave_grid = partial(WaveGrid, self.domain, epsilon, n, self.categorical, apart=self.apart)
        if len(self.categorical):
            return {
                "WaveGrid": wave_grid(),
                self.baseline: _system(self.baseline)(self.domain, epsilon, n),
            }
        protocols = _made(self.domain, epsilon, n)
        if self.apart and "WaveGrid" in protocols:
            return {**protocols, "WaveGrid": wave_grid()}
        return protocols

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        system = self._made(epsilon, n).get(name)
        if system is None:
            raise ValueError(f"{name} cannot serve these attributes with {n} users")
        named = len(self.categorical) > 0 and name == "WaveGrid"
        made = _of_categories(self.categorical) if named else _system(name)
        return self._offer(made, system, epsilon, n)

    def error(self, name: str, epsilon: float | Fraction, n: int) -> float:
        if name == self.baseline:
            return math.inf  # no number of users, and no epsilon, makes it any better
        return super().error(name, epsilon, n)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        return self._offer(candidate, candidate(self.domain, epsilon, n), epsilon, n)

    def _offer(
        self,
        candidate: Callable[..., ConjunctionProtocol],
        system: ConjunctionProtocol,
        epsilon: float | Fraction,
        n: int,
    ) -> Offer:
        places = tuple(self.domain.names.index(name) for name in self.categorical)
        errors = conjunction_errors(candidate, self.domain, epsilon, n, self.like, places)
        error = _root_mean_square(errors) if errors else math.nan
        resting = errors if len(errors) > 1 or self.like is not None else ()
        return Offer(system, error, system.report_bits, populations=resting)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        protocols = self._made(epsilon, n)
        errors = {
            name: self.offer(name, epsilon, n).error for name in protocols if name != self.baseline
        }
        best = ordered(errors, errors.__getitem__)[0]
        if best != "MSW" or len(self.domain) == 1:
            return "", ""
        return best, (
            f"error {errors[best]:.3g} is the least of those that learn from reports; it takes"
            " attributes for independent, and errs more where they depend on each other more than"
            " in these populations"
        )

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        return (
            f"{self.baseline}, which takes all records for equally frequent whatever users report,"
            f" errs {self.offer(self.baseline, epsilon, n).error:.3g} on the same populations"
        )


@lru_cache(maxsize=64)  # the same function for the same, of which errors are kept
def _of_categories(categorical: tuple[str, ...]) -> partial[WaveGrid]:
    return partial(WaveGrid, categorical=categorical)


@lru_cache(maxsize=64)
def _made(attributes: Domain, epsilon: float | Fraction, n: int) -> dict[str, ConjunctionProtocol]:
    """The systems that these attributes allow: not too many cells or levels, enough attributes."""
    systems = {}
    for name in _SYSTEMS:
        with suppress(ValueError):
            systems[name] = _system(name)(attributes, epsilon, n)
    return systems

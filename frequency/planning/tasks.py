"""The planner's tasks of this package: "frequencies", "marginals" and "heavy hitters"."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, islice
from typing import Any, ClassVar, NamedTuple

import numpy as np

from frequency.algebra import WORD_BITS
from frequency.core import Oracle, local_privacy
from frequency.exceptions import UnknownVariance
from frequency.heavy import Gate, PrefixExtension, TreeHist, Universe, lower_bound
from frequency.heavy.error_bound import ItemErrors
from frequency.heavy.listing import nothing
from frequency.heavy.prefix_tree import FEWEST_TEXTS, PrefixProtocol, _kept
from frequency.heavy.prefixes import Level, PartEstimates, Prefixes, SpeltPrefixes
from frequency.longitudinal import Memoised, day_covariance, linked_share
from frequency.longitudinal.linkage import KINDS, checked_linked, with_parameters
from frequency.marginals import (
    CALM,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MarginalProtocol,
    MargPS,
    MargRR,
)
from frequency.marginals.prediction import FittedErrors, linear_variance
from frequency.marginals.views import ViewProtocol
from frequency.marginals.whole_record import InputProtocol
from frequency.oracles import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    AffineSelection,
    CountMeanSketch,
    HadamardCountMeanSketch,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    oracle_over,
)
from frequency.schema.domain import LARGEST_RECORDS, Domain
from mechdesign.base import Rational, brief, ordered, set_fields, whole
from mechdesign.exceptions import UnstatedLikelihoods
from mechdesign.planning import trust as search
from mechdesign.planning.task import CuratedTask, InvalidRequest, Offer, Task
from mechdesign.privacy import exact_epsilon

_CONFIDENCE = 0.95  # of the statement about heavy hitters

_VIEWS = 64  # of how many marginals, at most, the errors are averaged

# Elementary steps up to a constant, to make one report and to turn n of them into estimates of the
# whole domain.
_ORACLES: dict[type[Oracle], tuple[str, str]] = {
    GRR: ("1", "n + D"),
    SUE: ("D", "n D"),
    OUE: ("D", "n D"),
    SubsetSelection: ("D", "n D"),
    OLH: ("log D", "n + q D log D"),
    ProjectiveGeometry: ("log D", "n + q D log D"),
    AffineSelection: ("log D", "n s + q D log D"),
    HRR: ("1", "n + D log D"),
    CountMeanSketch: ("width", "n width + hashes D"),
    HadamardCountMeanSketch: ("log width", "n + hashes (width log width + D)"),
    JLOracle: ("log D", "n + rows D"),
}

LARGEST_DAYS = 10**6  #: The most days that a plan is made for.

#: Beyond it the errors of permanent reports overflow: a day is chosen as for this one.
LARGEST_EPSILON = 300.0

# By how much more than with the largest epsilon of a day the mean over the days may err.
_NEARLY = 1.1

# By how much a variance may be above that of another oracle with reports as short, at most.
_AS_GOOD = 1.05

_SHORT = 64  # bits of a report that costs nothing worth mentioning to send

_MEMORY = 1 << 32  # bytes of a server's table beyond which an oracle is left out


@dataclass(frozen=True)
class Frequencies(Task):
    """The frequencies of items: the oracles of `frequency`.

    Taken is GRR below 3 exp(epsilon) + 2 items (thesis 2.4.2), unless its variance is more than
    1.05 times that of another whose reports are no longer; otherwise the most accurate whose
    report is a few bytes, the shortest report where two are within one per cent. The error is
    that of an item of the share 1/domain, and the table shows that of an item that nobody has, too.
    The error of sketches is that of the worst population.

    With several ``days`` the same users are asked on each of them, by `Memoised` oracles, their
    values changing up to ``changes`` times. Epsilon is then what the reports of all days together
    tell, (changes + 1) times that of a value; see there for whom. The error is that of one day, and
    the table shows that of the mean over all days, too, for users whose values stay the same. A
    ``day`` tells so much; None: the least with which the mean over the days errs by at most a tenth
    more than with any other. Permanent reports are fingerprints, and the table shows which share of
    the users they link: with ``linked``, a share, those that link more are left out, and taken are
    blocks and geometries that link fewer, see `frequency.longitudinal.linkage_curve`.
    """

    days: int = 1
    changes: int = 0
    day: Any = None
    linked: Any = None

    symbols: ClassVar[str] = (
        "D items, q values of a hash or of a field's element, s of them accepted, n reports"
    )
    described: ClassVar[str] = "docs/protocols/oracles"
    advice: ClassVar[str] = (
        "errors are those of unbiased estimates; frequency.postprocess.empirical_bayes makes them a"
        " distribution, with lower errors on nearly all data"
    )

    def __post_init__(self) -> None:
        JLOracle(self.domain, 1.0)  # refuses what no oracle takes
        set_fields(self, domain=int(self.domain))
        whole(self.days, "days", 1, LARGEST_DAYS, what="a number of days")
        whole(self.changes, "changes", 0, self.days - 1, what="a number of changes between days")
        if self.day is not None:
            if self.days == 1:
                raise ValueError("day is the epsilon of one of several days: give the days, too")
            local_privacy(self.day)  # which refuses what is none
        if self.linked is not None:
            if self.days == 1:
                raise ValueError("linked is of reports of several days: give the days, too")
            set_fields(self, linked=checked_linked(self.linked))

    @property
    def question(self) -> str:
        if self.days == 1:
            return f"frequencies of {self.domain} items"
        return (
            f"frequencies of {self.domain} items on each of {self.days} days, changes of a user's"
            f" value at most {self.changes}"
        )

    @property
    def other_errors_are(self) -> str:  # type: ignore[override]
        if self.days == 1:
            return "absent: standard error of the frequency of an item that nobody has"
        return (
            "mean: standard error of the item's mean frequency over all days, if no value changes;"
            " linked: the share of the users, at most, who are recognised under another pseudonym;"
            " - is not known"
        )

    @property
    def error_is(self) -> str:
        phrase = f"standard error of the frequency of an item of the share 1/{self.domain}"
        return phrase if self.days == 1 else f"{phrase} on one day"

    def epsilons(self, epsilon: float | Fraction) -> tuple[Fraction, float | Rational]:
        """Return the losses of reports of several days about a value, and of those of one day."""
        total = exact_epsilon(epsilon) / (self.changes + 1)
        if self.day is not None:
            return total, self.day
        bounded = min(total, Fraction(LARGEST_EPSILON))
        most = math.exp(float(bounded))

        def mean(day: float) -> float:
            ratio = math.exp(day)
            size = 1 / (ratio + 1)  # of the sets, as a fraction of the items
            norm = 1 + size * (most - 1)
            lasting = norm**2 / (size * (1 - size) * (most - 1) ** 2)
            return math.sqrt((4 * ratio / (ratio - 1) ** 2 + (self.days - 1) * lasting) / self.days)

        goal = _NEARLY * 2 * math.sqrt(most) / (most - 1)
        day_loss = search.least(mean, goal, search.epsilons(bounded))
        return total, total if day_loss is None else day_loss

    @cached_property
    def _kinds(self) -> dict[str, type[Oracle]]:
        taken = (kind for kind in _ORACLES if self.domain <= kind.largest_domain)
        return {kind.__name__: kind for kind in taken if _fits(kind(self.domain, 1.0))}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._kinds)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        return self.offer_of(self._kinds[name], epsilon, n)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        total, day = (epsilon, epsilon) if self.days == 1 else self.epsilons(epsilon)
        oracle = oracle_over(candidate, self.domain, day)
        if self.linked is not None:
            oracle = self._linking_few(candidate, oracle, total, n)
        if not _fits(oracle):
            name = type(oracle).__name__
            raise ValueError(f"{name} needs too much memory for {self.domain} items")
        try:
            protocol = oracle if self.days == 1 else Memoised(oracle, total)
        except UnstatedLikelihoods as unstated:
            raise ValueError(str(unstated)) from unstated
        error = math.sqrt(oracle.variance(n, 1 / self.domain))
        return Offer(protocol, error, oracle.report_bits, *_ORACLES.get(type(oracle), ("", "")))

    def _linking_few(
        self, candidate: Callable[..., Any], oracle: Oracle, total: float | Fraction, n: int
    ) -> Oracle:
        """Return the most accurate oracle of a kind that links no more users than may be."""
        some = [oracle]
        if candidate in KINDS:
            some += [each for _, each in with_parameters(type(oracle), self.domain, oracle.epsilon)]
        shares = [self._linked(Memoised(each, total), n) for each in some]
        found = [each for each, share in zip(some, shares, strict=True) if share <= self.linked]
        if not found:
            raise ValueError(
                f"{type(oracle).__name__} links {brief(min(shares), 3)} of the users at least"
                if not math.isnan(shares[0])
                else f"of {type(oracle).__name__} it is not known how many users it links"
            )
        return ordered(
            found, lambda each: each.variance(n, 1 / self.domain), lambda each: each.report_bits
        )[0]

    def _linked(self, question: Memoised, n: int) -> float:
        try:
            return linked_share(question, n, self.days)
        except TypeError:  # of an oracle of one's own
            return math.nan

    def other_errors(self, protocol: Any, n: int | None) -> tuple[tuple[str, float], ...]:
        users, rare = n or 1, 1 / self.domain
        if self.days == 1:
            return (("absent", math.sqrt(protocol.variance(users, 0.0))),)
        linked = self._linked(protocol, users)
        try:
            both = (self.days - 1) * day_covariance(protocol, users, rare)
        except UnknownVariance:
            return ("mean", math.nan), ("linked", linked)
        day_variance = protocol.protocol.variance(users, rare)
        return ("mean", math.sqrt((day_variance + both) / self.days)), ("linked", linked)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        if self.linked is not None:
            return "", ""
        if self.days > 1:
            epsilon = exact_epsilon(self.epsilons(epsilon)[1])
        short = {}
        for name, kind in self._kinds.items():
            oracle = kind(self.domain, epsilon)
            if oracle.report_bits <= _SHORT and _fits(oracle):
                short[name] = oracle.variance(n, 1 / self.domain), oracle.report_bits
        small = 3 * math.exp(min(float(epsilon), 700.0)) + 2
        simple, bits = short.get("GRR", (math.inf, 0))
        if self.domain < small and all(
            simple <= _AS_GOOD * variance for variance, size in short.values() if size <= bits
        ):
            return "GRR", (
                f"the domain, {self.domain}, is below 3 e^epsilon + 2 = {small:.4g}, so the"
                " simplest oracle is good"
            )
        enough = 1.01**2 * min(variance for variance, _ in short.values())
        good = [name for name, (variance, _) in short.items() if variance <= enough]
        return ordered(good, lambda name: short[name][1], lambda name: short[name][0])[0], ""

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        if self.days == 1:
            return ""
        total, day = self.epsilons(epsilon)
        values = "a value" if self.changes == 0 else f"each of {self.changes + 1} values"
        return (
            f"the reports of one day tell {brief(exact_epsilon(day), 4)} at most, and those of all"
            f" days {brief(total, 4)} about {values}; that a value has changed they do not hide"
        )

    def by_curator(self) -> CuratedTask:
        if self.days > 1:
            raise InvalidRequest(
                "no plan is known for a curator who publishes on several days: plan for one of them"
            )
        if self.domain == 2:  # one count, which changes by one; the other is the rest of n
            return CuratedTask("curated-ranges", 1, {}, changed=1)
        return CuratedTask("curated-ranges", self.domain, {"unordered": "0"})


def _fits(oracle: Oracle) -> bool:
    return 8 * math.prod(oracle.counts_shape) <= _MEMORY


# Elementary steps up to a constant, as those of `_ORACLES`.
_MARGINALS: dict[type[MarginalProtocol], tuple[str, str]] = {
    InpRR: ("R", "n R"),
    InpPS: ("1", "n + R"),
    InpOLH: ("log R", "n + q R log R"),
    InpHTCMS: ("log w", "n + h (w log w + R)"),
    MargRR: ("c", "n c"),
    MargPS: ("1", "n + v c"),
    MargHT: ("1", "n + v c log c"),
    InpHT: ("d", "n + v c log c"),
    CALM: ("c", "n c"),
}

# Different records beyond which protocols that tell them apart one by one are left out: errors grow
# with their root.
_RECORDS = 1 << 16


class _MarginalErrors(NamedTuple):
    """Predicted errors of a cell: of estimates as they are, consistent, and fitted."""

    raw: float
    consistent: float
    fitted: float


@dataclass(frozen=True)
class Marginals(Task):
    """Joint distributions of any ``k`` of several attributes.

    ``domain`` has the numbers of values of the attributes: a list, a mapping of names to them, or a
    `frequency.schema.Domain`. Offered are the protocols of `frequency.marginals` whose errors are
    known. They are ranked by the error of unbiased, consistent marginals
    (`frequency.marginals.consistent`), which is the same for every population, about. Taken is the
    one with the least error of `estimate.fitted()`, on reference populations: even, skewed and
    independent, dependent, and with rare values.
    """

    example: ClassVar[str] = "--domain age=5,smokes=2,works=2 --n 10000 --epsilon 1"

    k: int = 2

    described: ClassVar[str] = "docs/protocols/marginals"
    symbols: ClassVar[str] = (
        "R different records, d attributes, v marginals of c cells, w cells and h functions of a"
        " sketch, q hash values, n reports"
    )

    other_errors_are: ClassVar[str] = (
        "error is that of consistent marginals; raw: of estimates as they are; fitted: of"
        " estimate.fitted(), root mean square on even, skewed, dependent and rare records"
    )
    advice: ClassVar[str] = (
        "estimate.fitted() has the least errors, and intervals that hold on average over cells;"
        " those of unbiased estimates hold for each cell; where no report tells of all attributes"
        " of a marginal, CALM, unless fitted, assumes maximum entropy, and its intervals leave out"
        " the error of that"
    )

    def __post_init__(self) -> None:
        set_fields(self, domain=Domain.of(self.domain, LARGEST_RECORDS))
        self.domain.require_numbered()
        k = whole(self.k, "k", 1, len(self.domain), what="a number of attributes")
        set_fields(self, k=k)

    @property
    def question(self) -> str:
        return (
            f"marginals of {self.k} of {len(self.domain)} attributes of"
            f" {' x '.join(map(str, self.domain.shape))} values"
        )

    @property
    def error_is(self) -> str:
        return (
            f"standard error of a cell of a marginal of {self.k} attributes, root mean square, for"
            " evenly spread records"
        )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(kind.__name__ for kind in _MARGINALS)

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        kind = next(kind for kind in _MARGINALS if kind.__name__ == name)
        if issubclass(kind, InputProtocol) and self.domain.size > _RECORDS:
            raise ValueError(
                f"{name} tells records apart one by one, and {self.domain.size} are too many"
            )
        if (
            kind is InpOLH
            and self.domain.size * max(self.domain.project(view).size for view, _ in self._alike)
            > _RECORDS
        ):
            raise ValueError(
                f"{name}'s error takes too long to predict for {self.domain.size} different records"
            )
        covered = {"covered": self.k} if kind is CALM else {}
        protocol = kind(self.domain, self.k, epsilon, **covered)
        error = self._known(protocol, n).consistent
        return Offer(protocol, error, protocol.report_bits, *_MARGINALS[kind])

    def _known(self, protocol: MarginalProtocol, n: int) -> _MarginalErrors:
        """Return the errors predicted of a protocol, kept as that may take long."""
        if (protocol, n) not in self._errors:
            variances = protocol.moment_variances(n)
            some = self._some if isinstance(protocol, ViewProtocol) else self._alike
            raw = self._error(
                protocol, n, self._some if isinstance(protocol, CALM) else self._alike
            )
            squares = sum(
                times * linear_variance(self.domain, view, variances) for view, times in some
            )
            # Estimates of whole records agree as they are, and their sum has an error, too
            agrees = isinstance(protocol, InputProtocol)
            consistent = raw if agrees else math.sqrt(squares / sum(times for _, times in some))
            fitted = self._populations.on_populations(variances) if self._populations else ()
            mean = sum(error**2 for _, error in fitted) / max(len(fitted), 1)
            self._errors[protocol, n] = _MarginalErrors(
                raw, consistent, math.sqrt(mean) if fitted else math.nan
            )
        return self._errors[protocol, n]

    @cached_property
    def _errors(self) -> dict[tuple[MarginalProtocol, int], _MarginalErrors]:
        return {}

    @cached_property
    def _populations(self) -> FittedErrors | None:
        try:
            return FittedErrors(self.domain, self.k)
        except ValueError:
            return None

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        protocol = candidate(self.domain, self.k, epsilon)
        try:
            error = self._known(protocol, n).consistent
        except UnknownVariance:
            error = math.nan
        return Offer(protocol, error, protocol.report_bits)

    def other_errors(self, protocol: Any, n: int | None) -> tuple[tuple[str, float], ...]:
        unknown = _MarginalErrors(math.nan, math.nan, math.nan)
        known = unknown if n is None else self._errors.get((protocol, n), unknown)
        return ("raw", known.raw), ("fitted", known.fitted)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        fitted, bits = {}, {}
        for name in self.names:
            try:
                offer = self.offer(name, epsilon, n)
            except ValueError:
                continue
            fitted[name], bits[name] = self._known(offer.protocol, n).fitted, offer.bits
        if not fitted or math.isnan(min(fitted.values())):
            return "", ""
        name = ordered(fitted, fitted.__getitem__, bits.__getitem__)[0]
        return name, f"the error of its fitted estimate, {fitted[name]:.3g}, is the least"

    def by_curator(self) -> CuratedTask:
        return CuratedTask("curated-marginals", self.domain, {"k": self.k})

    @staticmethod
    def _error(
        protocol: MarginalProtocol, n: int, views: list[tuple[tuple[str, ...], int]]
    ) -> float:
        """The root mean square over some marginals, each counted so often."""
        squares = sum(
            times * float(protocol.cell_variances(n, view).mean()) for view, times in views
        )
        return math.sqrt(squares / sum(times for _, times in views))

    @cached_property
    def _alike(self) -> list[tuple[tuple[str, ...], int]]:
        """A marginal of each shape, and how many have it: all but CALM treat these alike."""
        shapes: dict[tuple[int, ...], tuple[tuple[str, ...], int]] = {}
        for view in combinations(self.domain, self.k):
            shape = tuple(sorted(self.domain[name] for name in view))
            shapes[shape] = (
                (view, 1) if shape not in shapes else (shapes[shape][0], shapes[shape][1] + 1)
            )
        return list(shapes.values())

    @cached_property
    def _some(self) -> list[tuple[tuple[str, ...], int]]:
        """All marginals, or some of them far apart."""
        number = math.comb(len(self.domain), self.k)
        step = max(1, -(-number // _VIEWS))
        return [(view, 1) for view in islice(combinations(self.domain, self.k), 0, None, step)]


@dataclass(frozen=True)
class HeavyHitters(Task):
    """The frequent items of a universe too large to list.

    Items have ``domain`` bits, 1 .. 64; strings, with ``text``, up to 512, 8 for each byte. Offered
    are the protocols over prefixes, for any number of frequent items. The prediction is for users
    of whom none but the item in question is frequent: `Found.complete_above` of such a run, with
    the levels' cuts where noise is expected to put them. Of strings of more than 8 bytes, it is for
    those that are spelt in at most 64 bits, which are some ten letters.
    """

    example: ClassVar[str] = "--domain 32 --n 1000000 --epsilon 2"

    text: bool = False

    described: ClassVar[str] = "docs/protocols/heavy"
    symbols: ClassVar[str] = (
        "b bits, m prefixes looked at on each of L levels of up to s cells, n reports"
    )

    def __post_init__(self) -> None:
        set_fields(self, domain=Universe(self.domain, self.text).bits)

    @property
    def question(self) -> str:
        what = (
            f"strings of up to {self.domain // 8} bytes"
            if self.text
            else f"items of {self.domain} bits"
        )
        return f"heavy hitters among {what}"

    @property
    def error_is(self) -> str:
        return f"the smallest frequency listed with {_CONFIDENCE:.0%}"

    @property
    def names(self) -> tuple[str, ...]:
        long = self.domain > WORD_BITS
        return tuple(name for name in _HEAVY if not long or name == "PrefixExtension")

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        kind, client, server = _HEAVY[name]
        protocol = kind(self.domain, epsilon, self.text)
        return Offer(protocol, smallest_listed(protocol, n), protocol.report_bits, client, server)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        protocol = candidate(self.domain, epsilon, self.text)
        known = isinstance(protocol, PrefixProtocol)
        error = smallest_listed(protocol, n) if known else math.nan
        return Offer(protocol, error, protocol.report_bits)

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        least = lower_bound(n, 1 << self.domain, epsilon)
        return (
            f"no protocol's largest error of a frequency is below {least:.3g} on average, for some"
            " distribution of the items"
        )


_HEAVY: dict[str, tuple[type[PrefixProtocol], str, str]] = {
    "PrefixExtension": (PrefixExtension, "b", "n + L (s log s + m)"),
    "TreeHist": (TreeHist, "b", "n + L (s log s + m)"),
}


def smallest_listed(protocol: PrefixProtocol, n: int, confidence: float = _CONFIDENCE) -> float:
    """The least frequency of an item that is expected to be listed with this probability.

    By the union bound over the levels, for normal errors, among items that are otherwise rare: as
    `Found.complete_above` says afterwards, with the cuts of the run.
    """
    channel = protocol.channel
    long = isinstance(channel, SpeltPrefixes)
    kept, considered, gates = FEWEST_TEXTS if long else _kept(channel.lengths), 1, []
    errors, before, confusion = None, 0, 0.0
    left = iter(zip(channel.levels, channel.probabilities, strict=True))
    for level, share in left:
        users = round(n * share)
        if users < 2:
            return math.inf
        considered = min(considered, kept) << (level.length - before)
        confusion = channel.confusion(level, _noise(channel, level, users))
        errors = ItemErrors.of(channel.parts[level.first], users, n, confusion)
        gates.append(
            Gate(
                errors.beyond(kept / considered) if considered > kept else -math.inf,
                errors.deviation,
            )
        )
        before = level.length
        if long and level.length >= WORD_BITS:
            break
    assert errors is not None
    # Who reports on longer prefixes counts for a text that has ended
    users = errors.users + round(n * sum(share for _, share in left))
    errors = ItemErrors.of(channel.parts[-1], users, n, confusion)
    gates.append(Gate(errors.beyond((1 - confidence) / considered), errors.deviation))
    return replace(nothing(protocol.universe, confidence, n), gates=tuple(gates)).complete_above


def _noise(channel: Prefixes, level: Level, users: int) -> list[PartEstimates]:
    """Return estimates of a level's parts as large as their noise, where no item is frequent."""
    part_users = max(1, users // len(level.parts))
    return [
        PartEstimates(
            part,
            part_users,
            1 / len(level.parts),
            np.full(oracle.domain, math.sqrt(oracle.variance(part_users, 1 / oracle.domain))),
        )
        for part in level.parts
        for oracle in [channel.parts[part]]
        if level.functions
    ]

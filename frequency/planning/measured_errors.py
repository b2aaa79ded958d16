"""measure_errors: a survey tried out on public or synthetic data, predicted beside measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, conditions
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.heavy import Found
from frequency.marginals import MarginalProtocol
from frequency.schema import Dates, Encoded, Ordered, Ordinal, Survey, SurveyEstimate
from frequency.schema.attribute import ItemAttribute
from frequency.schema.survey import universe_of
from mechdesign.base import (
    Between,
    Floats,
    Items,
    ProgressMeter,
    aligned,
    comma_separated,
    shown,
    whole,
)

CONFIDENCE = 0.95  #: Of the intervals whose coverage is measured, each by itself.

_MOST = 256  # questions about an attribute, or about several together

_GROUPS = 32  # marginals, or pairs of attributes, that are asked about

# Most weights of items, or of cells of a marginal, that questions may take together.
_WEIGHTS = 1 << 22

_FREQUENT = 20  # of how many items it is looked whether they are found

_DECILES = np.arange(1, 10) / 10


class FamilyErrors(NamedTuple):
    """The errors of the answers to questions of one kind.

    Attributes
    ----------
    questions : str
        What is asked.
    number : int
        How many questions there are.
    unit : str
        Of the errors: "fraction" of the users, or that of the attribute.
    answered : float
        The share of the questions that were answered, of all repeats: below 1 where frequent items
        were not found.
    predicted : float
        The root of the mean of the variances that the estimates state; of deciles, of those of the
        fraction below, over the squared density of the data. NaN where a question has none.
    measured : float
        The root mean square error.
    coverage : float
        The share of the 95 % intervals that hold the truth; NaN where there are none.
    worst : float
        The largest error.
    """

    questions: str
    number: int
    unit: str
    answered: float
    predicted: float
    measured: float
    coverage: float
    worst: float


@dataclass(frozen=True)
class MeasuredErrors:
    """The errors that `measure_errors` measured; ``print(found)`` shows the table.

    Attributes
    ----------
    users, skipped : int
        How many reported, each time; and how many rows have no value, and so no report.
    clipped : int
        How many values were put into the first or last bin, or cut short: so the truth is counted.
    repeats : int
        How often the reports were drawn.
    rows : tuple of FamilyErrors
        One for each kind of questions.
    """

    users: int
    skipped: int
    clipped: int
    repeats: int
    rows: tuple[FamilyErrors, ...]

    def csv(self) -> str:
        """The table as comma-separated values with a header; what is not known is empty."""
        rows = [["" if value != value else value for value in row] for row in self.rows]
        return comma_separated([FamilyErrors._fields, *rows])

    def __str__(self) -> str:
        rows: list[list[str]] = [[*FamilyErrors._fields]]
        for row in self.rows:
            numbers = (row.predicted, row.measured, row.coverage, row.worst)
            answered = "all" if row.answered == 1 else f"{row.answered:.1%}"
            written = ["unknown" if value != value else f"{value:.3g}" for value in numbers]
            rows.append([row.questions, str(row.number), row.unit, answered, *written])
        left_out = f" ({self.skipped} rows have none)" if self.skipped else ""
        clipped = f", {self.clipped} values clipped" if self.clipped else ""
        head = f"{self.users} users{left_out}{clipped}, {self.repeats} repeats"
        return "\n".join([head, *aligned(rows)])


def measure_errors(
    survey: Survey,
    table: Any,
    repeats: int = 20,
    rng: np.random.Generator | None = None,
    *,
    progress: bool = False,
) -> MeasuredErrors:
    """Repeat a survey on data that are public or synthetic, and compare answers with the truth.

    Reports are not made user by user, but their aggregate is drawn, from the same distribution (see
    `Channel.simulate`). Asked are up to 256 random questions of each kind that the estimate
    answers: items, ranges between random ends and deciles of each attribute; cells of marginals;
    and conjunctions of a random range, or of an item, of each of two attributes. Of protocols that
    list frequent items it is the 20 most frequent ones.

    What is returned are statistics of the data, without any privacy.

    Parameters
    ----------
    survey : Survey
        What is tried out.
    table : DataFrame, mapping or Encoded
        One row a user: see `Schema.encode`, or what that returned.
    repeats : int, default 20
        How often, 1 to 10^6.
    rng : numpy.random.Generator, optional
        For the questions and the reports; None: a fresh one.
    progress : bool, default False
        Show progress on standard error.

    Returns
    -------
    MeasuredErrors
        One row for each kind of questions.

    Raises
    ------
    InvalidCell, UnknownColumn
        The first thing wrong with the table.
    ValueError
        No number of repeats, or no user who reports.

    Examples
    --------
    >>> from frequency import Numeric, Schema, plan_survey
    >>> people = Schema([Numeric("age", low=0, high=63, whole=True, unit="years")])
    >>> survey = plan_survey("ranges", people, epsilon=1, n=50_000).survey
    >>> ages = np.random.default_rng(1).binomial(63, 0.4, 50_000)
    >>> found = measure_errors(survey, {"age": ages}, 5, np.random.default_rng(2))
    >>> [(row.questions, row.unit) for row in found.rows]
    [('items of age', 'fraction'), ('ranges of age', 'fraction'), ('deciles of age', 'years')]
    >>> 0.5 < found.rows[1].measured / found.rows[1].predicted < 2
    True
    """
    times = whole(repeats, "repeats", 1, 10**6, what="a number of repeats")
    if not isinstance(survey, Survey):
        raise ValueError(f"expected a frequency.Survey, got {shown(survey)}")
    encoded = table if isinstance(table, Encoded) else survey.schema.encode(table)
    if not len(encoded.columns[0]):
        raise ValueError("no user reports: there is nothing to try the survey out on")
    generator = np.random.default_rng() if rng is None else rng
    columns, counts = _different(encoded.columns)
    items = survey.inner_items(Encoded(columns, {}, 0))
    families = _families(survey, columns, counts, generator)
    with ProgressMeter("simulate", times, "repeats", shown=progress) as meter:
        for _ in range(times):
            estimate = survey.estimate(survey.channel.simulate(counts, generator, items))
            families = [family for family in families if family.measure(estimate)]
            meter.update()
    rows = tuple(family.row() for family in families)
    clipped = sum(encoded.clipped.values())
    return MeasuredErrors(int(counts.sum()), encoded.skipped, clipped, times, rows)


def _different(columns: tuple[npt.NDArray[Any], ...]) -> tuple[tuple[npt.NDArray[Any], ...], Items]:
    """The different rows, and how many users have each."""
    if len(columns) == 1:
        values, counts = np.unique(columns[0], return_counts=True)
        return (values,), counts
    rows, counts = np.unique(np.stack(columns, axis=1), axis=0, return_counts=True)
    return tuple(np.ascontiguousarray(column) for column in rows.T), counts


# --------------------------------------------------------------------------------------- questions


class _Told(NamedTuple):
    """Answers to the questions of a family, shape (questions,); NaN for what is not known."""

    value: Floats
    variance: Floats
    low: Floats
    high: Floats


class _Family:
    """Questions of one kind, their true answers, and what was measured."""

    def __init__(
        self, questions: str, unit: str, truth: Floats, ask: Callable[[SurveyEstimate], _Told]
    ) -> None:
        self._questions, self._unit, self._truth, self._ask = questions, unit, truth, ask
        self._asked = self._answered = self._intervals = self._covered = 0
        self._squares = self._variances = self._worst = 0.0

    def measure(self, estimate: SurveyEstimate) -> bool:
        """Whether such an estimate answers such questions: if so, one repeat is counted."""
        try:
            answer = self._ask(estimate)
        except InvalidQuestion:
            return False
        there = ~np.isnan(answer.value)
        errors = np.abs(answer.value - self._truth)[there]
        self._asked += len(self._truth)
        self._answered += len(errors)
        self._squares += float((errors**2).sum())
        self._variances += float(answer.variance[there].sum())
        self._worst = max(self._worst, float(errors.max(initial=0.0)))
        known = there & ~np.isnan(answer.low)
        self._intervals += int(known.sum())
        inside = (answer.low <= self._truth) & (self._truth <= answer.high)
        self._covered += int(inside[known].sum())
        return True

    def row(self) -> FamilyErrors:
        """The row of the table about it."""
        there = self._answered or math.nan
        return FamilyErrors(
            self._questions,
            len(self._truth),
            self._unit,
            self._answered / self._asked,
            math.sqrt(self._variances / there),
            math.sqrt(self._squares / there),
            self._covered / (self._intervals or math.nan),
            self._worst if self._answered else math.nan,
        )


class _Truth:
    """The exact answers of data, as an estimate gives its own.

    An array of items for each attribute has the different rows; ``counts`` users have each.
    """

    def __init__(self, survey: Survey, columns: tuple[Items, ...], counts: Items) -> None:
        self._names, self._sizes = survey.schema.names, survey.schema.sizes
        self._columns, self._counts = columns, counts
        self.n = int(counts.sum())

    def _before(self, place: int) -> Items:
        """Return the number of users before each item of an attribute: shape (size + 1,)."""
        user_counts = np.zeros(self._sizes[place] + 1, dtype=np.int64)
        np.add.at(user_counts, self._columns[place] + 1, self._counts)
        return np.cumsum(user_counts)

    def answer(self, where: Any) -> Answer:
        """The fraction of the users, of variance 0."""
        shape, asked = conditions(where, self._names, self._sizes)
        if len(asked) == 1:
            before = self._before(asked[0].place)
            value = asked[0].total(lambda first, last: before[last + 1] - before[first])
            return Answer(np.asarray(value / self.n), 0.0)
        value = np.zeros(shape)
        for index in np.ndindex(shape):
            inside = np.ones(len(self._counts), dtype=bool)
            for condition in asked:
                column = self._columns[condition.place]
                inside &= (column >= condition.first[index]) & (column <= condition.last[index])
            value[index] = self._counts[inside].sum() / self.n
        return Answer(value, 0.0)

    def quantile(self, phi: npt.ArrayLike, attribute: int = 0) -> Any:
        """The least item with the fraction phi of the users at or below it."""
        cdf = self._before(attribute)[1:] / self.n
        return np.searchsorted(cdf, np.asarray(phi) * (1 - 1e-12))


def _families(
    survey: Survey, columns: tuple[Any, ...], counts: Items, rng: np.random.Generator
) -> list[_Family]:
    """Return the families of questions that may be asked of a survey of these users."""
    schema = survey.schema
    if universe_of(survey.protocol) is not None:
        return [_frequent(columns[0], counts)]
    truth = SurveyEstimate(schema, _Truth(survey, columns, counts))
    families = []
    for place, attribute in enumerate(schema):
        assert isinstance(attribute, ItemAttribute)  # text is for those that find it
        families.append(
            _of_items(truth, f"items of {attribute.name}", [{place: _some(attribute.size, rng)}])
        )
        if isinstance(attribute, Ordered) and attribute.bins > 1:
            number = max(1, min(_MOST, _WEIGHTS // attribute.bins))
            ends = {place: _ends(attribute.bins, rng, number)}
            families.append(_of_items(truth, f"ranges of {attribute.name}", [ends]))
            if (columns[place] < attribute.bins).any():  # somebody has a value
                families.append(_deciles(truth, place, attribute))
    if isinstance(survey.protocol, MarginalProtocol):
        k = survey.protocol.k
        if k > 1:
            families.append(_of_items(truth, f"marginals of {k}", list(_cells(survey, k, rng))))
    elif len(schema) > 1:
        families.append(_of_items(truth, "conjunctions of 2", list(_boxes(survey, rng))))
    return families


def _some(size: int, rng: np.random.Generator) -> Items:
    """All items, or some of many."""
    return np.arange(size) if size <= _MOST else rng.integers(0, size, _MOST)


def _ends(bins: int, rng: np.random.Generator, number: int) -> Between:
    """Ranges between random ends."""
    return Between(*np.sort(rng.integers(0, bins, (2, number)), axis=0))


def _views(survey: Survey, k: int, rng: np.random.Generator) -> Iterator[tuple[int, ...]]:
    """All sets of k attributes, by their places, or some of many."""
    names = survey.schema.names
    if math.comb(len(names), k) <= _GROUPS:
        views = survey.schema.domain.views(k)
        yield from (survey.schema.domain.places(view) for view in views)
        return
    for _ in range(_GROUPS):
        yield tuple(sorted(rng.choice(len(names), k, replace=False).tolist()))


def _cells(survey: Survey, k: int, rng: np.random.Generator) -> Iterator[dict[int, Any]]:
    """Cells of marginals of k attributes."""
    for places in _views(survey, k, rng):
        shape = tuple(survey.schema.sizes[place] for place in places)
        cells = _some(math.prod(shape), rng)[: max(1, _WEIGHTS // math.prod(shape))]
        yield dict(zip(places, np.unravel_index(cells, shape), strict=True))


def _boxes(survey: Survey, rng: np.random.Generator) -> Iterator[dict[int, Any]]:
    """Conjunctions of ranges, of what has no order of items, of two attributes."""
    views = list(_views(survey, 2, rng))
    number = -(-_MOST // len(views))
    for places in views:
        yield {
            place: _ends(attribute.bins, rng, number)
            if isinstance(attribute := survey.schema.attributes[place], Ordered)
            else rng.integers(0, survey.schema.sizes[place], number)
            for place in places
        }


def _answer(estimate: SurveyEstimate, where: dict[int, Any]) -> Answer:
    """The answer to a question about items, by the attributes' places."""
    return estimate.estimate.answer(where[0] if len(estimate.schema) == 1 else where)


def _of_items(truth: SurveyEstimate, name: str, questions: list[dict[int, Any]]) -> _Family:
    """Questions about items."""

    def ask(estimate: SurveyEstimate) -> _Told:
        answers = [_told(_answer(estimate, where)) for where in questions]
        return _Told(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))

    return _Family(name, "fraction", ask(truth).value, ask)


def _told(answer: Answer) -> _Told:
    value = np.asarray(answer.value, dtype=np.float64)
    variance, (low, high) = np.full(value.shape, np.nan), np.full((2, *value.shape), np.nan)
    with suppress(UnknownVariance):
        variance = np.broadcast_to(np.asarray(answer.variance, dtype=np.float64), value.shape)
    with suppress(UnknownVariance):
        low, high = (np.asarray(end) for end in answer.interval(CONFIDENCE))
    return _Told(value, variance, low, high)


def _deciles(truth: SurveyEstimate, place: int, one: Ordered) -> _Family:
    """The deciles of an attribute in its unit; of dates in days."""

    def number(values: Any) -> Floats:
        if isinstance(one, Ordinal) and np.asarray(values).dtype == object:
            return one.places(values)
        array = np.asarray(values)
        days = array.dtype.kind == "M"
        return array.astype("datetime64[s]").astype(float) / 86_400 if days else array.astype(float)

    share = _answer(truth, {place: Between(0, one.bins - 1)}).value
    bins = truth.estimate.quantile(_DECILES * share, place)
    slope = np.diff(number(one.cuts))[bins] / _answer(truth, {place: bins}).value

    def ask(estimate: SurveyEstimate) -> _Told:
        value = number(estimate.quantile(_DECILES, one.name))
        prefixes = _told(_answer(estimate, {place: Between(np.zeros_like(bins), bins)}))
        low, high = np.full((2, *value.shape), np.nan)
        with suppress(UnknownVariance):
            low, high = map(number, estimate.quantile_interval(_DECILES, CONFIDENCE, one.name))
        return _Told(value, slope**2 * prefixes.variance, low, high)

    unit = "days" if isinstance(one, Dates) else one.unit
    unit = "labels" if isinstance(one, Ordinal) else unit
    return _Family(f"deciles of {one.name}", unit, ask(truth).value, ask)


def _frequent(values: npt.NDArray[Any], counts: Items) -> _Family:
    """Whether the most frequent items are found, and their frequencies."""
    order = np.argsort(-counts, kind="stable")[:_FREQUENT]
    items, truth = values[order].tolist(), counts[order] / counts.sum()

    def ask(estimate: SurveyEstimate) -> _Told:
        hitters: Found = estimate.estimate
        listed = set(hitters.items.tolist())
        there = np.array([item in listed for item in items])
        answers = _Told(*np.full((4, len(items)), np.nan))
        if there.any():
            present = np.array(
                [item for item in items if item in listed], dtype=hitters.items.dtype
            )
            for whole_family, part in zip(answers, _told(hitters.answer(present)), strict=True):
                whole_family[there] = part
        return answers

    return _Family(f"the {len(items)} most frequent", "fraction", truth, ask)

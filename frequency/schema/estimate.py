"""SurveyEstimate: estimates that answer in labels and units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.core import (
    Answer,
    ConditionalQuantiles,
    ConfidenceInterval,
    WeightedCounts,
    by_place,
    fractions,
    normal_quantile,
    place_of,
    plain,
)
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema.attribute import COUNTED, FRACTION, MISSING, ItemAttribute, Span
from frequency.schema.numeric import Numeric, Ordered
from frequency.schema.schema import Schema
from mechdesign.base import Between, Floats, Integers, printable, untaken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from frequency.schema.joint_plot import Kind

_CUT = (
    "the range ends within bins, where the distribution of users is not known: its interval holds"
    " for any"
)

MOST_CELLS = 1 << 20  #: The largest number of answers of a table of all combinations.


class SurveyEstimate:
    """An estimate that answers in the labels and units of a schema.

    Parameters
    ----------
    schema : Schema
        Of the attributes that were asked for.
    estimate : object
        Of `frequency` or `rangeq`: what answers questions about their items.
    measure : str, default "fraction of the users"
        What answers are: of a curator's release "users", or "rows" where a user has several.
    """

    def __init__(self, schema: Schema, estimate: Any, measure: str = FRACTION) -> None:
        self.schema, self.estimate, self.measure = schema, estimate, measure

    @property
    def unit_of_shares(self) -> str:
        """What answers are in `shares`."""
        return FRACTION.replace("users", self.measure) if self.measure in COUNTED else FRACTION

    #: The attributes of whose values only sums and means are known.
    numbers: tuple[str, ...] = ()

    @property
    def n(self) -> Any:
        """The number of users that the answers are about, as the estimate knows it."""
        return self.estimate.n

    @property
    def has_quantiles(self) -> bool:
        """Whether ordered attributes have quantiles."""
        return hasattr(self.estimate, "quantile")

    @property
    def joined(self) -> int:
        """The most attributes that may be asked about together."""
        return getattr(self.estimate, "joined", len(self.schema))

    def caveats(self, several: bool = False) -> tuple[str, ...]:
        """Return what is to be known of answers, in sentences, as the estimate says it.

        Parameters
        ----------
        several : bool, default False
            Whether answers are about several attributes together.

        Returns
        -------
        tuple of str
        """
        return getattr(self.estimate, "caveats", lambda several: ())(several)

    def answer(self, where: Any) -> Answer:
        """Return how many users have these values.

        Parameters
        ----------
        where : mapping
            For each attribute that matters, by its name: a value or label, a list of them, or a
            closed range `Between` two ends in the attribute's unit, None where it is open:
            ``{"age": Between(20, 40)}``, as text ``{"age": "20:40"}``, is a range, and
            ``{"age": [20, 40]}`` the values 20 and 40.
            "missing" and "outside" where these are items. Arrays of ends or values are many
            questions. With one attribute the mapping may be left out.

        Returns
        -------
        Answer
            In `measure`. A range whose ends lie within bins is interpolated, as if users were even
            within them. It has no variance then; its interval reaches from that of the bins that
            lie in the range to that of the bins that it meets, and so holds for any users within.

        Raises
        ------
        InvalidQuestion
            What is no question: the first thing wrong.

        Examples
        --------
        >>> from frequency import Between
        >>> import frequency as fq
        >>> schema = fq.Schema([fq.Numeric("delay", [-60, 0, 15, 60, 600], unit="minutes")])
        >>> survey = fq.Survey(fq.GRR(4, 3.0), schema)
        >>> minutes = np.random.default_rng(1).uniform(-60, 60, 50_000)
        >>> reports = survey.privatize({"delay": minutes}, np.random.default_rng(2))
        >>> estimate = survey.estimate(survey.aggregate(reports))
        >>> early, late = estimate.answer(Between(-30, 0)), estimate.answer(Between(0, 60))
        >>> round(late.value, 1), round(early.value, 2)
        (0.5, 0.25)
        """
        asked = self._asked(where)
        spans = {place: span for place, span in asked.items() if isinstance(span, Span)}
        if all(_is_whole(span.first) and _is_whole(span.last) for span in spans.values()):
            return self._of_items({**asked, **{k: _ends(*span) for k, span in spans.items()}})
        return self._of_cut_bins(asked, spans)

    def shares(self, answer: Answer) -> Answer:
        """An answer of `answer` or `cells` in fractions of the users.

        Of a curator's release the number of users is estimated, too. Both errors are added up, as
        if they went together: intervals are somewhat wider than they must be.

        Parameters
        ----------
        answer : Answer
            Of this estimate.

        Returns
        -------
        Answer
            As it is, if users reported: then it is in fractions already.

        Raises
        ------
        ValueError
            The estimated number of users is not above 0.
        """
        if self.measure not in COUNTED:
            return answer
        everybody = self._of_items({0: Between(0, self.schema.attributes[0].size - 1)})
        if not everybody.value > 0:
            raise ValueError(
                f"by the estimate there are no {self.measure}: there are no shares of them"
            )
        share = answer.value / everybody.value

        def together(error: Any, of_all: Any) -> Any:
            return (error + np.abs(share) * of_all) / everybody.value

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            low, high = answer.interval(confidence)
            first, last = everybody.interval(confidence)
            half = together((high - low) / 2, (last - first) / 2)
            middle = (low + high) / 2 / everybody.value
            return ConfidenceInterval(middle - half, middle + half)

        try:
            error = together(np.sqrt(answer.variance), np.sqrt(everybody.variance))
        except UnknownVariance as unknown:
            return Answer(share, None, str(unknown), interval)
        return Answer(share, np.asarray(error) ** 2, _interval=interval)

    def _asked(self, where: Any) -> dict[int, Any]:
        """Return what is asked of the items of each attribute, by its place."""
        given = by_place(where, self.schema.names)
        return {place: self.schema.attributes[place].asked(part) for place, part in given.items()}

    def _of_items(self, asked: Mapping[int, Any]) -> Answer:
        """The answer to a question about items."""
        return self.estimate.answer(asked[0] if len(self.schema) == 1 else dict(asked))

    def _of_cut_bins(self, asked: dict[int, Any], spans: Mapping[int, Span]) -> Answer:
        """Return an answer by interpolation, linear in the position of each end, within its bin."""
        corners = []
        for place, (first, last) in spans.items():
            for side, end in ((0, first), (1, last)):
                below = np.floor(end)
                part = end - below
                corners.append([(place, side, below, 1 - part), (place, side, np.ceil(end), part)])
        value: Any = 0.0
        for corner in product(*corners):
            weight: Any = 1.0
            ends: dict[int, list[Any]] = {place: [None, None] for place in spans}
            for place, side, end, part in corner:
                ends[place][side] = end
                weight = weight * part
            if np.any(weight):
                value = value + weight * self._signed(asked, ends)
        outer = {k: [np.floor(span.first), np.ceil(span.last)] for k, span in spans.items()}
        around = self._of_boxes(asked, outer)

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            inner = {k: [np.ceil(span.first), np.floor(span.last)] for k, span in spans.items()}
            shape = np.shape(value)
            holds = np.logical_and.reduce(
                [np.broadcast_to(a < b, shape) for a, b in inner.values()]
            )
            low = np.zeros(shape)
            if holds.any():
                least = self._of_boxes(asked, inner).interval(confidence).low
                low = np.where(holds, least, 0.0)
            return ConfidenceInterval(low, np.asarray(around.interval(confidence).high))

        average = around.holds_on_average
        return Answer(np.asarray(value), None, _CUT, interval, _average=average)

    def _signed(self, asked: dict[int, Any], ends: Mapping[int, Sequence[Floats]]) -> Any:
        """The answer between ends in whole bins, with the sign of last - first of all of them."""
        sign: Any = 1.0
        for first, last in ends.values():
            sign = sign * np.sign(last - first)
        if not np.any(sign):
            return sign
        return sign * self._of_boxes(asked, ends).value

    def _of_boxes(self, asked: dict[int, Any], ends: Mapping[int, Sequence[Floats]]) -> Answer:
        """The answer between ends in whole bins, in any order; of no bins that of some."""
        boxes = {}
        for place, (first, last) in ends.items():
            low, high = np.minimum(first, last), np.maximum(first, last)
            low = np.minimum(low, self._attribute(place).bins - 1)
            boxes[place] = _ends(low, np.maximum(high, low + 1))
        return self._of_items({**asked, **boxes})

    def _attribute(self, place: int) -> Any:
        return self.schema.attributes[place]

    # ------------------------------------------------------------------------------------ quantiles

    def quantile(
        self,
        phi: npt.ArrayLike,
        attribute: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value with the fraction phi of the users at or below it, of those who have a value.

        Interpolated within its bin, as if users were even there; of whole numbers and dates the
        value where that is.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        attribute : str, optional
            Its name; None: the only one.
        where : mapping, optional
            A question about other attributes, as for `answer`, with ends of ranges that are those
            of bins: the quantile is among the users who meet it. None: among all.

        Returns
        -------
        int, float, numpy.datetime64 or numpy.ndarray
            In the attribute's unit; an array, of the shape of ``phi``, for an array.

        Raises
        ------
        InvalidQuestion
            The attribute has no order, or the protocol's estimates have no quantiles, or do not
            answer about these attributes together.
        ValueError
            A phi outside of [0, 1], no reports, or nobody is estimated to meet the condition.

        Examples
        --------
        >>> import frequency as fq
        >>> from rangeq.grids import WaveGrid
        >>> hours = fq.Numeric("hours", low=0, high=79, whole=True, unit="hours")
        >>> schema = fq.Schema([hours, fq.Boolean("manager")])
        >>> rng = np.random.default_rng(1)
        >>> manager = rng.random(60_000) < 0.3
        >>> people = {"hours": rng.binomial(79, np.where(manager, 0.6, 0.4)), "manager": manager}
        >>> survey = fq.Survey(WaveGrid(schema, 2.0), schema)
        >>> told = survey.estimate(survey.aggregate(survey.privatize(people, rng)))
        >>> told.quantile(0.5, "hours"), told.quantile(0.5, "hours", {"manager": True})
        (34, 47)
        """
        if where is not None:
            ordered, among = self._among(attribute, where)
            at = fractions(phi) * among.cumulative[-1]
            return self._value_at(ordered, among.bins(phi), at, among.cumulative)
        place, ordered = self._ordered(attribute)
        wanted = fractions(phi)
        cells = np.arange(ordered.bins)
        cdf = np.asarray(self._of_items({place: Between(np.zeros_like(cells), cells)}).value)
        if np.isnan(cdf).any():
            raise ValueError("no reports: there are no quantiles")
        total = self._total
        share = 1.0 if not ordered.extra else float(np.clip(cdf[-1] / total, 0.0, 1.0))
        found = np.asarray(self.estimate.quantile(wanted * share, **self._place(place)))
        bins = np.minimum(found, ordered.bins - 1)
        return self._value_at(ordered, bins, wanted * share * total, cdf)

    @staticmethod
    def _value_at(one: Ordered, bins: Integers, wanted: Floats, cumulative: Floats) -> Any:
        """The value within each bin at which so many users are at or below it."""
        below = np.where(bins > 0, cumulative[bins - 1], 0.0)
        within = cumulative[bins] - below
        with np.errstate(divide="ignore", invalid="ignore"):
            part = np.where(within > 0, (wanted - below) / within, 0.5)
        return plain(one.values_in(bins, np.clip(part, 0.0, 1.0)))

    def _among(
        self, attribute: str | None, where: Mapping[str, Any]
    ) -> tuple[Ordered, ConditionalQuantiles]:
        """The attribute, and its quantiles among the users who meet a condition."""
        place, ordered = self._with_order(attribute)
        asked = self._whole_bins(where, place)
        return ordered, ConditionalQuantiles(self._of_items, asked, place, ordered.bins)

    def _whole_bins(self, where: Mapping[str, Any], place: int) -> dict[int, Any]:
        """What is asked of the items of other attributes than that at a place."""
        asked = self._asked(where)
        if place in asked:
            name = printable(self.schema.names[place])
            raise InvalidQuestion(f"the condition is about {name} itself")
        for at, given in asked.items():
            if isinstance(given, Span):
                if not (_is_whole(given.first) and _is_whole(given.last)):
                    raise InvalidQuestion(
                        f"the condition of a quantile or mean is of whole bins of"
                        f" {printable(self.schema.names[at])}"
                    )
                asked[at] = _ends(*given)
        return asked

    def quantile_interval(
        self,
        phi: npt.ArrayLike,
        confidence: float = 0.95,
        attribute: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> tuple[Any, Any]:
        """The values between which the phi-quantile lies, with about this probability.

        From the beginning of the first to the end of the last bin in which it may be.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        confidence : float, default 0.95
            In (0, 1).
        attribute : str, optional
            Its name; None: the only one.
        where : mapping, optional
            As for `quantile`. The interval is wider than it must be, where what is at and what is
            above the quantile do not err together.

        Returns
        -------
        tuple
            The first and the last value, like those of `quantile`.

        Raises
        ------
        InvalidQuestion, ValueError
            As for `quantile`, and for a confidence out of range.
        UnknownVariance
            The protocol does not know its errors.
        """
        if isinstance(confidence, str):
            raise InvalidQuestion(
                "the second argument is the confidence: name the attribute, as in"
                f" quantile_interval({phi!r:.20}, attribute={confidence!r:.40})"
            )
        normal_quantile(confidence)  # refuses what is none
        if where is not None:
            ordered, among = self._among(attribute, where)
            return self._values_of(ordered, among.ends(phi, confidence))
        place, ordered = self._ordered(attribute)
        wanted = fractions(phi)
        shares = [1.0, 1.0]
        if ordered.extra:  # the fraction of those with a value is estimated too
            confidence = 1 - (1 - confidence) / 2
            counts = self._of_items({place: Between(0, ordered.bins - 1)}).interval(confidence)
            shares = [float(np.clip(end / self._total, 0.0, 1.0)) for end in counts]
        if not hasattr(self.estimate, "quantile_interval"):
            raise UnknownVariance(f"a {type(self.estimate).__name__} does not know its errors")
        interval, axis = self.estimate.quantile_interval, self._place(place)
        first, last = (
            np.minimum(interval(wanted * share, confidence, **axis)[side], ordered.bins - 1)
            for side, share in enumerate(shares)
        )
        return self._values_of(ordered, (first, last))

    @staticmethod
    def _values_of(one: Ordered, ends: tuple[Integers, Integers]) -> tuple[Any, Any]:
        """The first value of the first bins, and the last of the last ones."""
        first, last = (
            plain(one.values_in(np.asarray(end), np.asarray(float(side))))
            for side, end in enumerate(ends)
        )
        return first, last

    # ------------------------------------------------------------------------------ means and sums

    def mean(self, attribute: str | None = None, where: Mapping[str, Any] | None = None) -> Answer:
        """The mean value of the users who have one, in one of the attribute's bins.

        Nothing is asked of users again: it is the mean of the middles of bins, weighted by their
        users. Of bins of several values it is interpolated.

        Parameters
        ----------
        attribute : str, optional
            A numeric attribute's name; None: the only one.
        where : mapping, optional
            A question about other attributes, with ends of ranges that are those of bins, as for
            `quantile`: the mean is of the users who meet it. None: of all.

        Returns
        -------
        Answer
            In the attribute's unit. Its interval is Fieller's, of a ratio of two estimates. Of bins
            of several values it has no variance, and its interval holds wherever in their bins the
            users are.

        Raises
        ------
        InvalidQuestion
            The attribute is not numeric, or the protocol does not answer about ranges of it, or
            about these attributes together.
        ValueError
            By the estimate nobody meets the condition, or no reports.

        Examples
        --------
        >>> import frequency as fq
        >>> from rangeq import HaarHRR
        >>> hours = fq.Numeric("hours", low=0, high=79, whole=True, unit="hours")
        >>> survey = fq.Survey(HaarHRR(80, 2.0), fq.Schema([hours]))
        >>> rng = np.random.default_rng(1)
        >>> people = {"hours": rng.binomial(79, 0.5, 100_000)}
        >>> estimate = survey.estimate(survey.aggregate(survey.privatize(people, rng)))
        >>> low, high = estimate.mean("hours").interval()
        >>> bool(low < 39.5 < high), bool(high - low < 2)
        (True, True)
        """
        bins, users = self._weighted(attribute, where)
        told = users.mean(bins.middles)
        # Wherever the users of a bin are, the mean moves by less than so much
        apart = float(bins.halves @ np.clip(users.counts, 0, None) / users.counts.sum())
        return _widened(told, apart)

    def total(self, attribute: str | None = None, where: Mapping[str, Any] | None = None) -> Answer:
        """The sum of the values of the users who have one: as of `mean`.

        Parameters
        ----------
        attribute, where : as of `mean`
            Whose values are added up, and of whom.

        Returns
        -------
        Answer
            In the attribute's unit, of all users.

        Raises
        ------
        InvalidQuestion, ValueError
            As for `mean`.
        """
        bins, users = self._weighted(attribute, where)
        reported = 1.0 if self.measure in COUNTED else float(self.n)
        told = users.total(reported * bins.middles)
        return _widened(told, reported * float(bins.halves @ np.clip(users.counts, 0, None)))

    def variance(
        self, attribute: str | None = None, where: Mapping[str, Any] | None = None
    ) -> Answer:
        """The variance of the values of the users who have one: as of `mean`.

        Parameters
        ----------
        attribute, where : as of `mean`
            Whose values, and of whom.

        Returns
        -------
        Answer
            In the square of the attribute's unit. Of bins of several values the interval allows for
            any places of users within them: standard deviations differ by what is within bins at
            most.

        Raises
        ------
        InvalidQuestion, ValueError
            As for `mean`.
        """
        bins, users = self._weighted(attribute, where)
        told = users.variance(bins.middles, bins.squares)
        within = np.clip(users.counts, 0, None)
        apart = math.sqrt(float(bins.halves**2 @ within / within.sum()))
        if not apart:
            return told

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            low, high = map(math.sqrt, told.interval(confidence))
            return ConfidenceInterval(max(low - apart, 0.0) ** 2, (high + apart) ** 2)

        return Answer(told.value, None, _CUT, interval)

    def _weighted(
        self, attribute: str | None, where: Mapping[str, Any] | None
    ) -> tuple[Bins, WeightedCounts]:
        """The values in the bins of an attribute, and the users in them who meet a condition."""
        place, ordered = self._with_order(attribute)
        if not isinstance(ordered, Numeric):
            raise InvalidQuestion(f"{printable(ordered.name)} has no numbers: it has no mean")
        bins = np.arange(ordered.bins)
        first, last = (
            np.asarray(ordered.values_in(bins, np.full(len(bins), part)), dtype=np.float64)
            for part in (0.0, 1.0)
        )
        asked = {} if where is None else self._whole_bins(where, place)
        middles = (first + last) / 2
        known = Bins(middles, (last - first) / 2, (middles - middles[0]) ** 2)
        users = WeightedCounts(self._of_items, asked, place, ordered.bins, self._deviations)
        if np.isnan(users.counts).any():
            raise ValueError("no reports: there is no mean")
        return known, users

    def _deviations(self, confidence: float) -> float:
        """How many standard errors an interval reaches from its answer."""
        return normal_quantile(confidence)

    @property
    def _total(self) -> float:
        return float(self.estimate.n) if self.measure in COUNTED else 1.0

    def _ordered(self, attribute: str | None) -> tuple[int, Ordered]:
        """The place of an attribute with an order, of an estimate that has quantiles."""
        place, ordered = self._with_order(attribute)
        if not self.has_quantiles:
            raise InvalidQuestion(
                f"a {type(self.estimate).__name__} has no quantiles: protocols for ranges have,"
                " such as rangeq.HaarHRR"
            )
        return place, ordered

    def _with_order(self, attribute: str | None) -> tuple[int, Ordered]:
        names = self.schema.names
        if attribute is None and len(names) > 1:
            raise InvalidQuestion(f"there are {len(names)} attributes: name one")
        place = 0 if attribute is None else place_of(attribute, names)
        asked = self.schema.attributes[place]
        if not isinstance(asked, Ordered):
            raise InvalidQuestion(
                f"{printable(asked.name)} has no order, and so no quantiles: ask for its labels"
            )
        return place, asked

    def _place(self, place: int) -> dict[str, int]:
        return {} if len(self.schema) == 1 else {"attribute": place}

    # --------------------------------------------------------------------------------------- tables

    def cells(self, attributes: Sequence[str] | None = None) -> Answer:
        """The answer about each item of an attribute, or each combination of items of several.

        Parameters
        ----------
        attributes : sequence of str, optional
            Their names; None: all.

        Returns
        -------
        Answer
            Its arrays have one axis an attribute, in the order asked for. Of protocols that list
            frequent items, those that were found.

        Raises
        ------
        InvalidQuestion
            Other names, too many combinations, or what the protocol does not tell.
        """
        places = self._places(attributes)
        if self._found is not None:
            return self.estimate.answer(self._found)
        sizes = [self.schema.sizes[place] for place in places]
        if np.prod(np.array(sizes, dtype=float)) > MOST_CELLS:
            raise InvalidQuestion(f"there are more than {MOST_CELLS} combinations: ask for some")
        axes = np.ix_(*(np.arange(size) for size in sizes))
        return self._of_items(dict(zip(places, axes, strict=True)))

    @property
    def frequencies(self) -> Floats:
        """The frequencies of items or combinations, in `measure`: see `cells`."""
        return np.asarray(self.cells().value)

    @property
    def variances(self) -> Floats:
        """The variances of the frequencies; UnknownVariance where they are not known."""
        return np.asarray(self.cells().variance)

    def interval(self, confidence: float = 0.95) -> ConfidenceInterval[Floats]:
        """Return intervals for the frequencies, each by itself.

        Parameters
        ----------
        confidence : float, default 0.95
            Strictly between 0 and 1.

        Returns
        -------
        ConfidenceInterval
            ``low`` and ``high``, shaped like the frequencies.

        Raises
        ------
        UnknownVariance
            Where they are not known.
        """
        return self.cells().interval(confidence)

    def _places(self, attributes: Sequence[str] | None) -> list[int]:
        names = self.schema.names
        wanted = names if attributes is None else attributes
        places = [
            place_of(name, names) for name in ([wanted] if isinstance(wanted, str) else wanted)
        ]
        if not places or len(set(places)) < len(places):
            raise InvalidQuestion(f"attributes are distinct names, got {wanted!r:.60}")
        return places

    @property
    def _found(self) -> npt.NDArray[Any] | None:
        """The items that the estimate is about, of protocols that list some; None: all."""
        return getattr(self.estimate, "items", None)

    def item_labels(self, attribute: str) -> Sequence[Any]:
        """Return what the items of an attribute are called; where items are listed, those found."""
        named = self.schema[attribute]
        if self._found is None:
            return named.item_labels if isinstance(named, ItemAttribute) else range(named.size)
        items: Sequence[Any] = self._found.tolist()
        if not isinstance(named, ItemAttribute):
            return items
        # Protocols that list frequent integers may have room for more than there are
        labels = named.item_labels
        return [labels[k] if k < named.size else f"no item ({k})" for k in items]

    def columns(
        self, attributes: Sequence[str] | None = None, confidence: float = 0.95
    ) -> dict[str, list[Any]]:
        """The estimates as columns of a table, one row for each item or combination.

        Parameters
        ----------
        attributes : sequence of str, optional
            Their names; None: all.
        confidence : float, default 0.95
            Of each interval by itself.

        Returns
        -------
        dict of str to list
            For each attribute the labels; then "frequency" or what is counted ("users", "rows"),
            "standard error", "low" and "high": None where they are not known. Where an attribute
            has such a name, that of the result ends in " (result)".

        Raises
        ------
        InvalidQuestion
            As for `cells`.
        """
        names = [self.schema.names[place] for place in self._places(attributes)]
        answer = self.cells(names)
        rows = list(product(*(self.item_labels(name) for name in names)))
        table: dict[str, list[Any]] = {
            name: [row[place] for row in rows] for place, name in enumerate(names)
        }
        value = np.asarray(answer.value, dtype=np.float64).ravel()
        error: list[Any] = [None] * len(value)
        low, high = list(error), list(error)
        with suppress(UnknownVariance):
            error = np.sqrt(np.asarray(answer.variance)).ravel().tolist()
        with suppress(UnknownVariance):
            low, high = (np.asarray(end).ravel().tolist() for end in answer.interval(confidence))
        what = self.measure if self.measure in COUNTED else "frequency"
        results: dict[str, list[Any]] = {
            what: value.tolist(),
            "standard error": error,
            "low": low,
            "high": high,
        }
        return table | {untaken(name, names): column for name, column in results.items()}

    def sample(self, n: int, rng: np.random.Generator | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return synthetic rows of the table that users were asked for, in labels and units.

        They have the estimate's distribution, for programs that take a table. **They are not
        people**: no row is anybody's, and what the estimate does not know, such as how three
        attributes depend on each other if pairs were asked for, is not in them.

        Parameters
        ----------
        n : int
            How many rows, at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        dict of str to numpy.ndarray
            A column of n values for each attribute: labels; of ordered attributes values, even
            within bins, as `Schema.encode` takes them. None where a value is missing, and
            "outside" where it is.

        Raises
        ------
        InvalidQuestion
            The estimate cannot be sampled from.
        ValueError
            No number of rows, or no reports.

        Examples
        --------
        >>> import frequency as fq
        >>> from frequency.marginals import InpHT
        >>> schema = fq.Schema([fq.Boolean("smokes"), fq.Categorical("sex", ["female", "male"])])
        >>> survey = fq.Survey(InpHT(schema.domain, 2, 4.0), schema)
        >>> people = {"smokes": [True] + 9 * [False], "sex": ["male", "female"] * 5}
        >>> reports = survey.privatize(people, np.random.default_rng(1))
        >>> rows = survey.estimate(survey.aggregate(reports)).sample(1000)
        >>> sorted(set(rows["sex"]))
        ['female', 'male']
        """
        generator = np.random.default_rng() if rng is None else rng
        return self._labelled(self._sampler("sample")(n, generator), generator)

    def samples(
        self, n: int, number: int, rng: np.random.Generator | None = None
    ) -> list[dict[str, npt.NDArray[Any]]]:
        """Return several synthetic tables, whose differences tell how uncertain they are.

        Each is of another distribution that is as likely: see `frequency.of_samples`.

        Parameters
        ----------
        n, number : int
            How many rows each has, and how many tables: each at least 1.
        rng : numpy.random.Generator, optional
            To draw with.

        Returns
        -------
        list of dict
            Each as `sample` gives it: no row is anybody's.

        Raises
        ------
        InvalidQuestion
            The estimate cannot be sampled from.
        ValueError
            No number of rows or tables, or no reports.
        """
        generator = np.random.default_rng() if rng is None else rng
        drawn = self.item_samples(n, number, generator)
        return [self._labelled(items, generator) for items in drawn]

    def item_samples(self, n: int, number: int, rng: np.random.Generator) -> list[Integers]:
        """Return several synthetic tables as items: see `samples`.

        Parameters
        ----------
        n, number, rng : as of `samples`
            Rows of each, how many tables, and what draws them.

        Returns
        -------
        list of numpy.ndarray of int64
            Each of shape (n, attributes).

        Raises
        ------
        InvalidQuestion, ValueError
            As of `samples`.
        """
        drawn = self._sampler("samples")(n, number, rng)
        return [np.asarray(items).reshape(n, -1) for items in drawn]

    def fitted(self) -> SurveyEstimate:
        """The same answers from a model that is fitted to the reports, which mostly errs less.

        Returns
        -------
        SurveyEstimate
            With the estimate's own ``fitted()``, of marginals or of ranges of several attributes
            (of `rangeq.grids`).

        Raises
        ------
        InvalidQuestion
            Nothing can be fitted to the estimate.
        """
        if not hasattr(self.estimate, "fitted"):
            raise InvalidQuestion(
                "no model is fitted to this estimate: it is neither of marginals nor of ranges of"
                " several attributes"
            )
        return SurveyEstimate(self.schema, self.estimate.fitted(), self.measure)

    def _sampler(self, name: str) -> Any:
        if not hasattr(self.estimate, name):
            raise InvalidQuestion(
                f"no {name} of this estimate: it gives no distribution that could be drawn from"
            )
        return getattr(self.estimate, name)

    def _labelled(self, items: Integers, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        """Return items as values of the attributes: shape (rows,), or (rows, attributes)."""
        columns = items.reshape(len(items), -1).T
        return {
            attribute.name: _values(attribute, column, rng)
            for attribute, column in zip(self.schema, columns, strict=True)
        }

    def to_frame(
        self,
        attributes: Sequence[str] | None = None,
        confidence: float = 0.95,
        backend: Literal["pandas", "polars", "pyarrow"] = "pandas",
    ) -> Any:
        """The estimates as a DataFrame: label, frequency, standard error, interval.

        Parameters
        ----------
        attributes : sequence of str, optional
            Their names; None: all.
        confidence : float, default 0.95
            Of each interval by itself.
        backend : str, default "pandas"
            "pandas", "polars" or "pyarrow", which must be installed.

        Returns
        -------
        DataFrame
            See `columns`.

        Raises
        ------
        InvalidQuestion
            As for `cells`.
        ImportError
            The backend is not installed.
        """
        import narwhals as nw

        columns = self.columns(attributes, confidence)
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError as error:
            raise ImportError(f"to_frame needs {backend}: pip install {backend}") from error

    def plot(
        self,
        attributes: Sequence[str] | None = None,
        kind: Kind | None = None,
        confidence: float = 0.95,
        *,
        shares: bool = False,
    ) -> Figure:
        """A picture of the estimates, in units and labels, with their intervals.

        Numbers are drawn as they are estimated, but for the areas of a mosaic: see
        `frequency.schema.plot`.

        Parameters
        ----------
        attributes : sequence of str, optional
            Their names, at most three but for bars; None: all.
        kind : str, optional
            "bars", of more than 40 items those of the largest; "cdf" or "histogram", of an ordered
            attribute; "heat map", of two; "map", at scale, of longitude and latitude, or of x and y
            in one unit, by their names; "mosaic", of two or three with few items. None: the cdf of
            an ordered attribute and the bars of another one; a map of two that are places, else a
            heat map, but a mosaic if neither has an order and both have few items; a mosaic of
            three.
        confidence : float, default 0.95
            Of each interval by itself, in (0, 1); of a heat map or a map, whose cells are blank
            where they cannot be told from 0, of the intervals of all cells at once.
        shares : bool, default False
            Draw fractions of the users, also of a release, which is in users: see `shares`.

        Returns
        -------
        matplotlib.figure.Figure
            `mechdesign.plot.save` writes it. Without intervals where errors are not known.

        Raises
        ------
        ValueError
            Another kind, or one that the attributes do not fit; no reports; another confidence.
        InvalidQuestion
            Other names, or what the protocol does not tell: see `cells`.
        """
        from frequency.schema.joint_plot import picture_of  # loads matplotlib

        return picture_of(self, attributes, kind, confidence, shares)

    def __repr__(self) -> str:
        return f"<SurveyEstimate of {', '.join(self.schema.names)}: {self.estimate!r}>"


class Bins(NamedTuple):
    """The values in the bins of an attribute: arrays (bins,)."""

    middles: Floats
    halves: Floats  # how far values are from the middles, at most
    squares: Floats  # of the middles less the first one


def _widened(told: Answer, apart: float) -> Answer:
    """An answer that may be off by so much besides its error; without a variance then."""
    if not apart:
        return told

    def interval(confidence: float) -> ConfidenceInterval[Any]:
        low, high = told.interval(confidence)
        return ConfidenceInterval(low - apart, high + apart)

    return Answer(told.value, None, _CUT, interval)


def _is_whole(positions: Floats) -> bool:
    return bool((positions == np.floor(positions)).all())


def _ends(first: Floats, last: Floats) -> Between:
    """Return the items between positions in whole bins."""
    low, high = np.asarray(first).astype(np.int64), np.asarray(last).astype(np.int64) - 1
    return Between(int(low), int(high)) if not low.ndim and not high.ndim else Between(low, high)


def _values(attribute: Any, items: Integers, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return items in the attribute's unit, or as labels."""
    if not isinstance(attribute, ItemAttribute):
        return items
    known = items < attribute.bins
    if isinstance(attribute, Ordered):
        inside = np.where(known, items, 0)
        values = attribute.drawn_in(inside, rng)
    else:
        labels = np.array(attribute.item_labels, dtype=object)
        values = labels[items]
    if known.all():
        return values
    extra = [None if label == MISSING else label for label in attribute.extra]
    result = values.astype(object)
    result[~known] = np.array(extra, dtype=object)[items[~known] - attribute.bins]
    return result

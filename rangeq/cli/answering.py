"""Questions to a survey's estimate on the command line, and their answers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations, islice, product, repeat
from typing import Any, NamedTuple

import numpy as np

from frequency.core import Answer, difference, place_of, plain, ratio, share
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema import Attribute, Ordered, Schema, SurveyEstimate, least_squares
from frequency.schema.attribute import COUNTED, MOST_ITEMS, OUTSIDE, ItemAttribute, Span
from frequency.schema.column import number_of
from mechdesign.base import listed, printable, shown
from rangeq.central import ReleasedQuantiles, UnanswerableQuery
from rangeq.cli.answer_rows import AnswerRow, compared
from rangeq.cli.where_text import where_of

#: Of an ordered attribute with at most so many items each is told, and not only the deciles.
FEW = 16

# Questions about the users who have a value.
_OF_VALUES = ("quantile ", "mean ", "sum ", "variance ")


#: What every answer from such a release says.
SEEDED = "The release was made with a seed: it is reproducible, and therefore not private."


class AskedText(NamedTuple):
    """A question of the command line."""

    kind: str  # "where", "quantile", "mean", "sum", "variance", "line" or "marginal"
    text: str  # what is asked for; of "marginal" "" stands for all attributes
    names: tuple[str, ...] = ()  # of "marginal": the attributes, instead of a text
    group: str = ""  # of one question for each label of an attribute: the label
    of: str = ""  # and the question without it
    cell: Mapping[str, str] = {}  # the label of each attribute that it is one of

    @property
    def question(self) -> str:
        """What is asked for, in words."""
        return f"{'' if self.kind == 'where' else f'{self.kind} '}{self.text.strip()}"


GIVEN = " given "  #: Between the conditions of a fraction and those of the users that it is of.

MOST_GROUPS = 1000  #: The most labels that a question is asked for each of.


def by_labels(asked: Sequence[AskedText], names: Sequence[str], schema: Schema) -> list[AskedText]:
    """Ask every question of each label of an attribute, or each combination of those of some."""
    labels = []
    for name in names:
        attribute = schema.attributes[place_of(name, schema.names)]
        if not isinstance(attribute, ItemAttribute) or attribute.size > MOST_GROUPS:
            raise InvalidQuestion(f"--by {name}: it has more than {MOST_GROUPS} labels")
        labels.append([*map(str, attribute.item_labels)])
        if len(set(labels[-1])) < len(labels[-1]):
            raise InvalidQuestion(f"--by {name}: two of its bins have the same label")
    if (number := math.prod(map(len, labels))) > MOST_GROUPS:
        raise InvalidQuestion(f"--by {listed(names)}: {number} groups, and {MOST_GROUPS} at most")
    groups = []
    for one, group in product(asked, product(*labels)):
        if one.kind in ("marginal", "line"):
            raise InvalidQuestion("--by is for --where, --quantile, --mean and other numbers")
        text = one.text.strip()
        where = " and ".join(f"{name} {label}" for name, label in zip(names, group, strict=True))
        if text:
            if one.kind == "where" and text.endswith(GIVEN.rstrip()):
                where = f" {where}"
            elif one.kind == "where" or " where " in text:
                where = f" and {where}"
            else:
                where = f" where {where}"
        cell = dict(zip(names, group, strict=True))
        groups.append(
            AskedText(one.kind, f"{text}{where}", group=", ".join(group), of=text, cell=cell)
        )
    return groups


class _Told(NamedTuple):
    """An answer, and how it is to be read."""

    answer: Answer
    unit: str
    within: bool  # whether users are taken to be even within bins


class EstimateSource(NamedTuple):
    """An estimate that answers, and how sure intervals are to be."""

    name: str  # what collected, or released: for messages
    estimate: SurveyEstimate
    confidence: float  # of each interval by itself, in (0, 1)
    shares: bool = False  # whether answers are fractions of the users, also of a release
    reproducible: bool = False  # whether it is a release that was made with a seed
    on_average: bool = False  # whether intervals of models hold on average over questions alone

    @property
    def schema(self) -> Schema:
        """The attributes that conditions are about."""
        return self.estimate.schema

    @property
    def found(self) -> Sequence[str] | None:
        """The labels of the items that were found, of protocols that list some; None: all."""
        if getattr(self.estimate.estimate, "items", None) is None:
            return None
        return [*map(str, self.estimate.item_labels(self.estimate.schema.names[0]))]

    @property
    def n(self) -> float | None:
        """The number of users: whole if they reported, else an estimate, if any."""
        return None if self.estimate.measure == "values" else self.estimate.n

    @property
    def counted(self) -> str:
        """What n is a number of."""
        return self.estimate.measure if self.estimate.measure in COUNTED else "users"

    def answers(self, asked: Sequence[AskedText]) -> list[AnswerRow]:
        """The answers to questions, in their order."""
        quantiles = iter(
            self._quantiles([question.text for question in asked if question.kind == "quantile"])
        )
        rows: list[AnswerRow] = []
        for question in asked:
            if question.kind == "quantile":
                rows.append(next(quantiles)._replace(cell=question.cell))
            elif question.kind == "line":
                rows += self._line(question.text)
            elif question.kind == "marginal":
                rows += self._cells(question)
            else:
                row = self._row(question.question, self._single(question))
                rows.append(row._replace(cell=question.cell))
        return rows

    def usual(self) -> list[AskedText]:
        """Return what is asked where nothing is asked: see the help of the command."""
        schema = self.estimate.schema
        if self.estimate.numbers:
            return self._usual_numbers()
        if self.estimate.measure == "values":  # of which sums over groups are of nothing
            return [AskedText("marginal", "", schema.names)]
        if len(schema) > 1 and not self.estimate.has_quantiles:
            views = combinations(schema.names, min(self.estimate.joined, len(schema)))
            return [AskedText("marginal", "", names) for names in views]
        return [asked for attribute in schema for asked in self._usual_of(attribute)]

    def _usual_numbers(self) -> list[AskedText]:
        """Return what is asked of numbers of which sums and means are known: by their groups."""
        means = [AskedText("mean", name) for name in self.estimate.numbers]
        if not self._groups:
            return means
        return [
            AskedText("marginal", "", self._groups),
            *by_labels(means, self._groups, self.schema),
        ]

    @property
    def _groups(self) -> tuple[str, ...]:
        """The attributes of which more is known than sums and means."""
        return tuple(name for name in self.schema.names if name not in self.estimate.numbers)

    def _usual_of(self, one: Attribute) -> Iterator[AskedText]:
        """Return what is asked of an attribute where nothing is asked."""
        of = f" of {one.name}" if len(self.estimate.schema) > 1 else ""
        if isinstance(one, Ordered) and self.estimate.has_quantiles:
            yield from (AskedText("quantile", f"{k / 10}{of}") for k in range(1, 10))
            if one.size > FEW:
                yield from (AskedText("where", f"{one.name} {label}") for label in one.extra)
                return
        yield AskedText("marginal", "", (one.name,))

    def notes(self, rows: Sequence[AnswerRow], asked: Sequence[AskedText] = ()) -> list[str]:
        """Return what is to be known of answers, in sentences."""
        if all(row.low is None for row in rows):
            notes = [f"{self.name} knows no error of these answers: they have no intervals."]
        else:
            notes = self._coverage(rows)
            if any(row.inner is not None for row in rows):
                notes.append(
                    "Values and standard errors are of a model of all reports. Intervals are of the"
                    " reports alone: they are longer where these leave more open, and may end at"
                    " the value."
                )
            if any(row.low is None for row in rows):
                notes.append("Where there is none, the error is not known.")
            if any(row.error == math.inf for row in rows):
                notes.append(
                    "Where none is shown it has no ends: nobody reported on a part of the question."
                )
        if any(row.interpolated for row in rows):
            notes.append(
                "Interpolated answers (* in tables) take users to be even within bins; their"
                " intervals hold for any users there."
            )
        extra = {
            label for attribute in self.estimate.schema for label in getattr(attribute, "extra", ())
        }
        if extra and any(row.question.startswith(_OF_VALUES) for row in rows):
            within = " in one of the bins" if OUTSIDE in extra else ""
            notes.append(f"Quantiles, means and sums are of the users who have a value{within}.")
        notes += [
            f"{attribute.name}: {attribute.title}"
            for attribute in self.estimate.schema
            if attribute.title and any(attribute.name in row.question for row in rows)
        ]
        notes += [
            f"People often give {attribute.rounding} as {attribute.name}: a range holds all who do"
            " at its ends."
            for attribute in self.estimate.schema
            if isinstance(attribute, Ordered) and attribute.rounding
            if any(attribute.name in row.question for row in rows)
        ]
        notes += self.estimate.caveats(any(" and " in row.question for row in rows))
        notes += self._unequal(rows, asked)
        if self.found is not None:
            notes = [
                "Intervals allow for the choice of the values that are listed.",
                self.estimate.estimate.statement,
            ]
        if any(row.question.startswith("line ") for row in rows):
            notes.append(
                "Lines are of the middles of bins, and their intervals from samples of the model:"
                " they hold on average over kinds of data."
            )
        if self.reproducible:
            notes.append(SEEDED)
        return notes

    def _coverage(self, rows: Sequence[AnswerRow]) -> list[str]:
        """Say for whom the intervals hold."""
        held = f"{100 * self.confidence:.12g}%"
        each = f"each interval holds the truth with a probability of about {held}, by itself."
        average = (
            f"about {held} of the intervals of many questions hold the truth; where something is"
            " unusual, as at a peak or a step, fewer do."
        )
        if self.on_average or all(row.average for row in rows if row.low is not None):
            texts = [average]
        elif any(row.average for row in rows):
            texts = [f"of one or two attributes {each}", f"of more attributes {average}"]
        else:
            texts = [each]
        return [text[0].upper() + text[1:] for text in texts]

    def _unequal(self, rows: Sequence[AnswerRow], asked: Sequence[AskedText]) -> Iterator[str]:
        """Say of which attributes the cells do not add up to all users."""
        left = iter(rows)
        for one in asked:
            names = self._names(one) if one.kind == "marginal" else []
            sizes = [len(self.estimate.item_labels(name)) for name in names]
            number = 3 if one.kind == "line" else math.prod(sizes)
            taken = [row.value for row in islice(left, number)]
            if not names or self._unit != self.estimate.unit_of_shares or self.found is not None:
                continue
            if abs((whole := sum(taken)) - 1) >= 0.005:
                yield (
                    f"The cells of {listed(names)} add up to {whole:.3g}: they are estimated one by"
                    " one."
                )

    def picture(self, asked: Sequence[AskedText], kind: Any = None) -> Any:
        """The picture of the attributes that are asked about, or of all."""
        if self.estimate.numbers and self._groups and not asked:
            mean = AskedText("mean", self.estimate.numbers[0])
            each = by_labels([mean], self._groups, self.schema)
            title = f"mean {mean.text} by {listed(self._groups)}"
            return compared(title, [one.group for one in each], self.answers(each), self.confidence)
        names = dict.fromkeys(name for question in asked for name in self._about(question))
        return self.estimate.plot(list(names) or None, kind, self.confidence, shares=self.shares)

    # -------------------------------------------------------------------------------------- answers

    def _about(self, one: AskedText) -> list[str]:
        """The attributes that a question is about."""
        if one.kind == "where":
            return list(self._conditions(one.text)[0])
        if one.kind == "line":
            return [self._attribute_of(one.text.partition(" on ")[0])]
        if one.kind in ("mean", "sum", "variance"):
            return [self._attribute_of(one.text.partition(" where ")[0])]
        return [self._quantile(one.text)[1]] if one.kind == "quantile" else self._names(one)

    def _attribute_of(self, text: str) -> str:
        """The name of an attribute."""
        names = self.estimate.schema.names
        return names[place_of(text.strip(), names)]

    def _row(self, question: str, told: _Told) -> AnswerRow:
        value, error, low, high = self._numbers_of(told.answer)
        inner, average = self._inner(told.answer), told.answer.holds_on_average
        return AnswerRow(question, value, error, low, high, told.unit, told.within, inner, average)

    def _inner(self, answer: Answer) -> tuple[Any, Any] | None:
        """The interval of a model that holds on average, beside that of the reports alone."""
        if not answer.has_model or self.on_average:
            return None
        low, high = answer.interval(self.confidence, on_average=True)
        return low, high

    def _mean(self, one: AskedText) -> _Told:
        asked, _, conditions = one.text.partition(" where ")
        name, schema = self._attribute_of(asked), self.estimate.schema
        where = where_of(conditions, schema, self.found) if conditions.strip() else None
        try:
            ask = {"mean": "mean", "sum": "total", "variance": "variance"}[one.kind]
            answer = getattr(self.estimate, ask)(name, where)
        except (InvalidQuestion, UnanswerableQuery) as refusal:
            raise self._advised(refusal, [name, *(where or ())]) from None
        except ValueError:
            if not one.group:
                raise
            answer = Answer(math.nan, None, "nobody is estimated to be there")
        attribute = schema[name]
        within = name not in self.estimate.numbers and not getattr(attribute, "single", True)
        unit = attribute.unit or name
        return _Told(answer, f"({unit})^2" if one.kind == "variance" else unit, within)

    def _conditions(self, text: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """All conditions of a question, and those of the group that it is a fraction of, if any."""
        schema = self.estimate.schema
        asked, given, group = text.rpartition(GIVEN)
        try:
            return where_of(text, schema, self.found), {}  # labels may hold the word
        except InvalidQuestion:
            if not given:
                raise
        inside, among = (where_of(part, schema, self.found) for part in (asked, group))
        if twice := inside.keys() & among.keys():
            raise InvalidQuestion(f"{listed(sorted(twice))}: on both sides of{GIVEN.rstrip()}")
        return inside | among, among

    def _where(self, text: str) -> _Told:
        schema = self.estimate.schema
        where, group = self._conditions(text)
        try:
            answer = self.estimate.answer(where)
            if group:
                answer = share(answer, self.estimate.answer(group))
        except ValueError as refusal:
            raise self._advised(refusal, list(where)) from None
        asked = [schema[name].asked(given) for name, given in where.items()]
        cut = any(
            isinstance(condition, Span) and bool(condition.first % 1 or condition.last % 1)
            for condition in asked
        )
        if group:
            return _Told(answer, "fraction of these", cut)
        return _Told(self._scaled(answer), self._unit, cut)

    def _single(self, one: AskedText) -> _Told:
        return self._where(one.text) if one.kind == "where" else self._mean(one)

    def beside(self, asked: Sequence[AskedText], group: str, over: bool) -> list[AnswerRow]:
        """The answers of `by_labels` beside those about one group: less it, or over it."""
        known = {(one.kind, one.of, one.group): one for one in asked}
        told: dict[tuple[str, str], _Told] = {}  # of the group
        rows = []
        for one in asked:
            if one.kind == "quantile":
                raise InvalidQuestion("quantiles have no error that differences could have")
            other = known.get((one.kind, one.of, group))
            if other is None:
                groups = list(dict.fromkeys(each.group for each in asked))
                raise InvalidQuestion(f"there is no group {shown(group)} among {listed(groups)}")
            if one is other:
                continue
            if (one.kind, one.of) not in told:
                told[one.kind, one.of] = self._single(other)
            first, second = self._single(one), told[one.kind, one.of]
            if over:
                answer = ratio(first.answer, second.answer)
            else:
                answer = difference(first.answer, second.answer, self._both(one, other))
            unit = "times" if over else first.unit
            question = f"{one.question} {'over' if over else 'less'} {group}"
            within = first.within or second.within
            rows.append(self._row(question, _Told(answer, unit, within)))
        return rows

    def _both(self, one: AskedText, other: AskedText) -> Answer | None:
        """The answer about two groups together; None where none, or no error, is known."""
        if one.kind != "where":
            return None
        first, second = (where_of(each.text, self.schema, self.found) for each in (one, other))
        apart = [name for name in first if first[name] != second[name]]
        if len(apart) != 1:
            return None
        (name,) = apart
        with suppress(InvalidQuestion, UnanswerableQuery, UnknownVariance):
            together = self.estimate.answer({**first, name: [first[name], second[name]]})
            together = self._scaled(together)
            together.variance  # noqa: B018  which may not be known
            return together
        return None

    def _line(self, text: str) -> Iterator[AnswerRow]:
        of, on, other = text.partition(" on ")
        if not on:
            raise InvalidQuestion(f"--line is such as 'income on age', got {shown(text)}")
        names = self._attribute_of(of), self._attribute_of(other)
        line = least_squares(self.estimate, *names)
        units = [self.schema[name].unit or name for name in names]
        for what, answer, unit in (
            ("intercept", line.intercept, units[0]),
            ("slope", line.slope, f"{units[0]} / {units[1]}"),
            ("correlation", line.correlation, ""),
        ):
            told = _Told(answer, unit, False)
            yield self._row(f"line {names[0]} on {names[1]}: {what}", told)

    @property
    def _unit(self) -> str:
        return self.estimate.unit_of_shares if self.shares else self.estimate.measure

    def _scaled(self, answer: Answer) -> Answer:
        """An answer in users, in fractions of them if these are asked for."""
        return self.estimate.shares(answer) if self.shares else answer

    def _numbers_of(self, answer: Answer) -> list[Any]:
        """The value, its standard error and its interval: None where they are not known."""
        numbers: list[Any] = [answer.value, None, None, None]
        with suppress(UnknownVariance):
            numbers[1] = np.sqrt(answer.variance)
        with suppress(UnknownVariance):
            numbers[2:] = answer.interval(self.confidence, on_average=self.on_average)
        return [number if number is None else plain(np.asarray(number)) for number in numbers]

    def _quantile(self, text: str) -> tuple[float, str, str]:
        """The fraction, the attribute, and the conditions of users among whom it is, perhaps ""."""
        names = self.estimate.schema.names
        # For an example that is not refused in its turn
        ordered = next(
            (attribute.name for attribute in self.estimate.schema if attribute.ordered), names[0]
        )
        asked, _, conditions = text.partition(" where ")
        number, of, name = asked.partition(" of ")
        phi = number_of(number)
        if phi is None or not 0 <= phi <= 1:
            raise InvalidQuestion(
                "--quantile is a fraction from 0 to 1, such as 0.5 or '0.5 of"
                f" {ordered}', got {shown(text)}"
            )
        if not of and len(names) > 1:
            raise InvalidQuestion(
                f"there are {len(names)} attributes: name one, such as --quantile '{number} of"
                f" {ordered}'"
            )
        name = names[place_of(name.strip(), names)] if of else names[0]
        return phi, name, conditions.strip()

    def _quantiles(self, texts: Sequence[str]) -> Iterator[AnswerRow]:
        read = [self._quantile(text) for text in texts]
        # All of an attribute at once: large domains take a while
        answers = {
            group: self._quantiles_of(*group, [phi for phi, *other in read if other == [*group]])
            for group in dict.fromkeys((name, conditions) for _, name, conditions in read)
        }
        for text, (_, name, conditions) in zip(texts, read, strict=True):
            value, low, high = next(answers[name, conditions])
            attribute = self.estimate.schema[name]
            within, unit = not getattr(attribute, "single", True), attribute.unit or name
            yield AnswerRow(f"quantile {text.strip()}", value, None, low, high, unit, within)

    def _quantiles_of(
        self, name: str, conditions: str, phis: Sequence[float]
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The quantiles of an attribute and their intervals, None where these are not known."""
        attribute = self.estimate.schema[name]
        if attribute.ordered and not (conditions or self.estimate.has_quantiles):
            instead = "curate --quantile" if self.estimate.numbers else "protocol quantiles"
            raise InvalidQuestion(f"{self.name} has no quantiles; for these: mechdesign {instead}")
        if attribute.ordered and not isinstance(attribute, Ordered):
            raise InvalidQuestion(f"quantiles are of at most {MOST_ITEMS} items here")
        wanted = np.array(phis)
        where = where_of(conditions, self.estimate.schema, self.found) if conditions else None
        try:
            values = self.estimate.quantile(wanted, name, where).tolist()
        except (InvalidQuestion, UnanswerableQuery) as refusal:
            raise self._advised(refusal, [name, *(where or ())]) from None
        columns = [values, repeat(None), repeat(None)]
        with suppress(UnknownVariance):
            ends = self.estimate.quantile_interval(wanted, self.confidence, name, where)
            columns[1:] = [end.tolist() for end in ends]
        return zip(*columns, strict=False)

    def _names(self, one: AskedText) -> list[str]:
        """The attributes of a marginal: their names may hold commas."""
        names, result, rest = self.estimate.schema.names, [], one.text.strip()
        if not rest:
            return list(one.names or names)
        while rest:
            begun = [
                name
                for name in sorted(names, key=len, reverse=True)
                if rest.startswith(name) and rest[len(name) :].lstrip()[:1] in ("", ",")
            ]
            if not begun:
                place_of(rest.partition(",")[0].strip(), names)  # raises that it is none
            result.append(begun[0])
            rest = rest[len(begun[0]) :].lstrip().removeprefix(",").lstrip()
        return result

    def _cells(self, one: AskedText) -> Iterator[AnswerRow]:
        names = self._names(one)
        try:
            answer = self._scaled(self.estimate.cells(names))
        except ValueError as refusal:
            raise self._advised(refusal, names) from None
        columns = [
            [None] * np.size(answer.value) if number is None else np.ravel(number).tolist()
            for number in self._numbers_of(answer)
        ]
        ends, average = self._inner(answer), answer.holds_on_average
        inner: Iterator[Any] = repeat(None)
        if ends is not None:
            inner = zip(*(np.ravel(end).tolist() for end in ends), strict=True)
        labels = product(*map(self.estimate.item_labels, names))
        for values, value, error, low, high, around in zip(labels, *columns, inner, strict=False):
            cell = dict(zip(names, map(str, values), strict=True))
            question = " and ".join(f"{name} {label}" for name, label in cell.items())
            told = question, value, error, low, high, self._unit
            yield AnswerRow(*told, inner=around, average=average, cell=cell)

    def _advised(self, refusal: ValueError, names: Sequence[str]) -> ValueError:
        """The message, and of what does not follow what answers it all the same."""
        if isinstance(refusal, UnanswerableQuery):
            return InvalidQuestion(
                f"{refusal}; --fitted answers from the model of what was released"
            )
        if len(set(names)) <= self.estimate.joined:
            return refusal
        return InvalidQuestion(
            f"{refusal}; for several attributes together: mechdesign protocol conjunctions"
        )


class QuantileSource(NamedTuple):
    """Quantiles that a curator released, and nothing else."""

    released: ReleasedQuantiles
    counted: str = "users"  # what n would be a number of

    @property
    def n(self) -> None:
        """The number of users is not released."""

    def answers(self, asked: Sequence[AskedText]) -> list[AnswerRow]:
        """The answers to questions: see `EstimateSource.answers`."""
        return [self._answer(question) for question in asked]

    def _answer(self, one: AskedText) -> AnswerRow:
        attribute, known = self.released.attribute, [*map(float, self.released.q)]
        number, of, name = one.text.partition(" of ")
        if one.kind != "quantile" or number_of(number) not in known:
            raise InvalidQuestion(
                f"only quantiles of {printable(attribute.name)} were released, --quantile"
                f" {listed(map(str, known))}; for others, and for ranges: mechdesign curate without"
                " --quantile"
            )
        if of:
            place_of(name.strip(), [attribute.name])
        value = self.released.values[known.index(float(number))]
        unit = attribute.unit or attribute.name
        question = f"quantile {one.text.strip()}"
        return AnswerRow(question, plain(value), None, None, None, unit, not attribute.single)

    def usual(self) -> list[AskedText]:
        """All that were released."""
        return [AskedText("quantile", str(float(phi))) for phi in self.released.q]

    def notes(self, rows: Sequence[AnswerRow], asked: Sequence[AskedText] = ()) -> list[str]:
        """Return what is to be known of answers, in sentences."""
        notes = ["Only quantiles were released: they have no intervals."]
        if any(row.interpolated for row in rows):
            notes.append("Interpolated answers (* in tables) are the middles of their bins.")
        if self.released.reproducible:
            notes.append(SEEDED)
        return notes

    def picture(self, asked: Sequence[AskedText], kind: Any = None) -> Any:
        """Raise ValueError, since nothing can be drawn."""
        raise ValueError("only quantiles were released: there is nothing to draw")

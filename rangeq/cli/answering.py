"""What may be asked of a survey's estimate on the command line, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from frequency.core.answer import Answer, place_of, plain
from frequency.exceptions import InvalidQuestion, UnknownVariance
from frequency.schema import Ordered, SurveyEstimate
from frequency.schema.attribute import MOST_ITEMS, Span
from frequency.schema.column import number_of
from mechdesign._support.text import listed, printable, shown
from rangeq.central import ReleasedQuantiles
from rangeq.cli.answer_rows import AnswerRow
from rangeq.cli.where_text import where_of

FEW = 16
"""Of an ordered attribute with at most so many items each is told, and not only the deciles."""


class AskedText(NamedTuple):
    """A question of the command line.

    Attributes
    ----------
    kind : str
        "where", "quantile" or "marginal".
    text : str
        What is asked for; of "marginal" "" stands for all attributes.
    """

    kind: str
    text: str


class EstimateSource(NamedTuple):
    """An estimate that answers, and how sure intervals are to be.

    Attributes
    ----------
    name : str
        What collected, or released: for messages.
    estimate : SurveyEstimate
        The estimate.
    confidence : float
        Of each interval by itself, in (0, 1).
    """

    name: str
    estimate: SurveyEstimate
    confidence: float

    @property
    def found(self) -> Sequence[str] | None:
        """The labels of the items that were found, of protocols that list some; None: all."""
        if getattr(self.estimate.estimate, "items", None) is None:
            return None
        return [*map(str, self.estimate.item_labels(self.estimate.schema.names[0]))]

    @property
    def has_quantiles(self) -> bool:
        """Whether the estimates of ordered attributes have quantiles."""
        return hasattr(self.estimate.estimate, "quantile")

    @property
    def n(self) -> float:
        """How many users there are: whole if they reported, else an estimate."""
        n: float = self.estimate.n
        return n

    def answers(self, one: AskedText) -> Iterator[AnswerRow]:
        """The answers to a question.

        Parameters
        ----------
        one : AskedText
            The question.

        Returns
        -------
        iterator of AnswerRow
            One, or one for each cell.

        Raises
        ------
        ValueError
            What is no question, or one that the protocol does not answer: it says which does.
        """
        kinds = {"where": self._where, "quantile": self._quantiles, "marginal": self._cells}
        return kinds[one.kind](one.text)

    def usual(self) -> list[AskedText]:
        """What is asked where nothing is asked: see the help of the command."""
        schema = self.estimate.schema
        if len(schema) > 1:
            # How many attributes a marginal may have
            k = getattr(getattr(self.estimate.estimate, "protocol", None), "k", 1)
            views = combinations(schema.names, min(k, len(schema)))
            return [AskedText("marginal", ",".join(names)) for names in views]
        (one,) = schema
        if not isinstance(one, Ordered) or not self.has_quantiles:
            return [AskedText("marginal", "")]
        deciles = [AskedText("quantile", f"{k / 10}") for k in range(1, 10)]
        if one.size <= FEW:
            return [*deciles, AskedText("marginal", "")]
        return [*deciles, *(AskedText("where", f"{one.name} {label}") for label in one.extra)]

    def notes(self, rows: Sequence[AnswerRow]) -> list[str]:
        """What is to be known of answers, in sentences."""
        if all(row.low is None for row in rows):
            notes = [f"{self.name} has no confidence intervals: its errors are not known."]
        else:
            notes = [
                f"Each interval holds the truth with a probability of about"
                f" {100 * self.confidence:g}%, by itself."
            ]
            if any(row.low is None for row in rows):
                notes.append("Where there is none, the error is not known.")
        if any(row.interpolated for row in rows):
            notes.append(
                "Interpolated answers (* in tables) take users to be even within bins; their"
                " intervals hold for any users there."
            )
        if self.found is not None:
            notes = [
                "Intervals allow for the choice of the values that are listed.",
                self.estimate.estimate.statement,
            ]
        return notes

    def picture(self, asked: Sequence[AskedText]) -> Any:
        """The picture of the attributes that are asked about, or of all.

        Parameters
        ----------
        asked : sequence of AskedText
            The questions; none: all attributes.

        Returns
        -------
        matplotlib.figure.Figure
            See `SurveyEstimate.plot`.

        Raises
        ------
        ValueError
            More attributes than are drawn, or what the protocol does not tell.
        """
        names = dict.fromkeys(name for one in asked for name in self._about(one))
        return self.estimate.plot(list(names) or None, confidence=self.confidence)

    # -------------------------------------------------------------------------------------- answers

    def _about(self, one: AskedText) -> list[str]:
        """The attributes that a question is about."""
        if one.kind == "where":
            return list(where_of(one.text, self.estimate.schema, self.found))
        return [self._quantile(one.text)[1]] if one.kind == "quantile" else self._names(one.text)

    def _where(self, text: str) -> Iterator[AnswerRow]:
        schema = self.estimate.schema
        where = where_of(text, schema, self.found)
        try:
            answer = self.estimate.answer(where)
        except ValueError as refusal:
            raise self._advised(refusal, len(where) > 1) from None
        asked = [schema[name].asked(given) for name, given in where.items()]
        cut = any(isinstance(one, Span) and bool(one.first % 1 or one.last % 1) for one in asked)
        value, error, low, high = self._told(answer)
        yield AnswerRow(text.strip(), value, error, low, high, self.estimate.measure, cut)

    def _told(self, answer: Answer) -> list[Any]:
        """The value, its standard error and its interval: None where they are not known."""
        told: list[Any] = [answer.value, None, None, None]
        with suppress(UnknownVariance):
            told[1] = np.sqrt(answer.variance)
        with suppress(UnknownVariance):
            told[2:] = answer.interval(self.confidence)
        return [one if one is None else plain(np.asarray(one)) for one in told]

    def _quantile(self, text: str) -> tuple[float, str]:
        """The fraction and the attribute."""
        names = self.estimate.schema.names
        number, of, name = text.partition(" of ")
        phi = number_of(number)
        if phi is None or not 0 <= phi <= 1:
            raise InvalidQuestion(
                "--quantile is a fraction from 0 to 1, such as 0.5 or '0.5 of"
                f" {names[0]}', got {shown(text)}"
            )
        if not of and len(names) > 1:
            raise InvalidQuestion(
                f"there are {len(names)} attributes: name one, such as --quantile '{number} of"
                f" {names[0]}'"
            )
        return phi, names[place_of(name.strip(), names)] if of else names[0]

    def _quantiles(self, text: str) -> Iterator[AnswerRow]:
        phi, name = self._quantile(text)
        one = self.estimate.schema[name]
        if one.ordered and not self.has_quantiles:
            raise InvalidQuestion(
                f"{self.name} has no quantiles; for these: mechdesign protocol quantiles"
            )
        if one.ordered and not isinstance(one, Ordered):
            raise InvalidQuestion(f"quantiles are of at most {MOST_ITEMS} items here")
        value = self.estimate.quantile(phi, name)
        ends: tuple[Any, Any] = (None, None)
        with suppress(UnknownVariance):
            ends = self.estimate.quantile_interval(phi, self.confidence, name)
        within = not getattr(one, "single", True)
        yield AnswerRow(f"quantile {text.strip()}", value, None, *ends, one.unit or name, within)

    def _names(self, text: str) -> list[str]:
        """The attributes of a marginal: their names may hold commas."""
        names, found, rest = self.estimate.schema.names, [], text.strip()
        if not rest:
            return list(names)
        while rest:
            begun = [
                name
                for name in sorted(names, key=len, reverse=True)
                if rest.startswith(name) and rest[len(name) :].lstrip()[:1] in ("", ",")
            ]
            if not begun:
                place_of(rest.partition(",")[0].strip(), names)  # raises
            found.append(begun[0])
            rest = rest[len(begun[0]) :].lstrip().removeprefix(",").lstrip()
        return found

    def _cells(self, text: str) -> Iterator[AnswerRow]:
        names = self._names(text)
        try:
            answer = self.estimate.cells(names)
        except ValueError as refusal:
            raise self._advised(refusal, len(names) > 1) from None
        columns = [
            [None] * np.size(answer.value) if one is None else np.ravel(one).tolist()
            for one in self._told(answer)
        ]
        labels = product(*map(self.estimate.item_labels, names))
        for values, value, error, low, high in zip(labels, *columns, strict=True):
            pairs = zip(names, values, strict=True)
            question = " and ".join(f"{name} {label}" for name, label in pairs)
            yield AnswerRow(question, value, error, low, high, self.estimate.measure)

    def _advised(self, refusal: ValueError, several: bool) -> ValueError:
        """Of a question about several attributes: the message, and what answers such."""
        if not several:
            return refusal
        return InvalidQuestion(
            f"{refusal}; for several attributes together: mechdesign protocol conjunctions"
        )


class QuantileSource(NamedTuple):
    """Quantiles that a curator released, and nothing else.

    Attributes
    ----------
    released : ReleasedQuantiles
        What there is.
    """

    released: ReleasedQuantiles

    @property
    def n(self) -> None:
        """The number of users is not released."""

    def answers(self, one: AskedText) -> Iterator[AnswerRow]:
        """The answer to a question: see `EstimateSource.answers`."""
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
        yield AnswerRow(question, plain(value), None, None, None, unit, not attribute.single)

    def usual(self) -> list[AskedText]:
        """All that were released."""
        return [AskedText("quantile", str(float(phi))) for phi in self.released.q]

    def notes(self, rows: Sequence[AnswerRow]) -> list[str]:
        """What is to be known of answers, in sentences."""
        notes = ["Only quantiles were released: they have no intervals."]
        if any(row.interpolated for row in rows):
            notes.append("Interpolated answers (* in tables) are the middles of their bins.")
        return notes

    def picture(self, asked: Sequence[AskedText]) -> Any:
        """Nothing can be drawn: ValueError."""
        raise ValueError("only quantiles were released: there is nothing to draw")

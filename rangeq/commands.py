"""The command ``mechdesign query``: from an aggregate to answers with intervals, as CSV."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency import Aggregate, IncompatibleAggregate, Oracle
from frequency.core.answer import Answer, normal_quantile
from frequency.exceptions import UnknownVariance
from frequency.heavy import GenProt, HeavyHitterProtocol
from frequency.marginals import MarginalProtocol
from mechdesign import InvalidFile
from mechdesign._support.files import replacing
from mechdesign._support.text import comma_separated, printable
from mechdesign.cli.options import AddCommand, add_force, check_suffix, check_targets, say
from rangeq.core.protocol import RangeProtocol
from rangeq.grids import ConjunctionProtocol
from rangeq.local.smoothed import Shaped
from rangeq.local.square_wave import SquareWave


class Row(NamedTuple):
    """A line of the table.

    Attributes
    ----------
    query : str
        The question.
    estimate : float or int
        The answer.
    low, high : float or int
        The ends of its interval; NaN where the protocol has no intervals.
    """

    query: str
    estimate: Any
    low: Any = math.nan
    high: Any = math.nan


def query(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "query",
        _query,
        "estimate from an aggregate, with confidence intervals, as CSV",
        "query aggregate.ldp --protocol protocol.json --range 18:64 --quantile 0.5 --out"
        " answers.csv",
    )
    chosen.epilog = (
        "Without a question: the frequent items that a heavy-hitter protocol finds, the deciles of"
        f" a range protocol, all\nmarginals, or the frequencies of all items.\n\n{chosen.epilog}"
    )
    chosen.add_argument("aggregate", type=Path, help="what collect or save_aggregate wrote")
    chosen.add_argument(
        "--protocol", type=Path, required=True, help="what save_protocol wrote (.json)"
    )
    for question in _QUESTIONS.values():
        text = f"{question.text}; may be repeated"
        chosen.add_argument(
            f"--{question.name}", action="append", default=[], metavar=question.metavar, help=text
        )
    chosen.add_argument(
        "--confidence", type=float, default=0.95, help="of each interval by itself (default 0.95)"
    )
    chosen.add_argument("--out", type=Path, help="write the answers (.csv); default: print them")
    add_force(chosen)


def _query(options: argparse.Namespace) -> int:
    check_targets(options, options.out)
    check_suffix(options.out, ".csv")
    normal_quantile(options.confidence)
    from frequency.storage import load_aggregate, load_protocol

    protocol = load_protocol(options.protocol)
    try:
        aggregate = load_aggregate(options.aggregate, protocol)
    except IncompatibleAggregate as error:
        raise InvalidFile(f"{options.aggregate}: {error}") from error
    if not aggregate.n:
        raise ValueError(f"{options.aggregate} holds no reports: there is nothing to estimate from")
    asked = [(name, text) for name in _QUESTIONS for text in getattr(options, name)]
    answers = list(answered(protocol, aggregate, asked, options.confidence))
    rows = [
        [answer.query, *("" if value != value else value for value in map(_plain, answer[1:]))]
        for answer in answers
    ]
    head = ["query", "estimate", "low", "high"]
    if options.out is None:
        shown = [[printable(query), *numbers] for query, *numbers in rows]
        print(comma_separated([head, *shown]), end="")
    else:
        with replacing(options.out) as stream:
            stream.write(comma_separated([head, *rows]).encode())
        say(f"wrote {options.out}: {len(answers)} answers from {aggregate.n} reports")
    if answers and all(answer.low != answer.low for answer in answers):
        print(f"mechdesign: {type(protocol).__name__} has no confidence intervals", file=sys.stderr)
    return 0


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Source:
    """What is asked, and how sure intervals are to be.

    Parameters
    ----------
    collected : RangeProtocol, ConjunctionProtocol, Oracle, GenProt or any other
        What was collected by.
    aggregate : Aggregate
        Of its reports.
    confidence : float
        Of the intervals, in (0, 1).
    """

    collected: Any
    aggregate: Aggregate
    confidence: float

    @property
    def protocol(self) -> Any:
        """The protocol that answers."""
        return self.collected.inner if isinstance(self.collected, GenProt) else self.collected

    @cached_property
    def estimate(self) -> Any:
        """The protocol's estimate, for all questions."""
        return self.collected.estimate(self.aggregate)


def answered(
    protocol: Any, aggregate: Aggregate, asked: list[tuple[str, str]], confidence: float
) -> Iterator[Row]:
    """The answers to questions as on the command line.

    Parameters
    ----------
    protocol : RangeProtocol, ConjunctionProtocol, Oracle or any other
        Of which the aggregate is.
    aggregate : Aggregate
        What was counted.
    asked : list of (str, str)
        Names and texts of the questions; none: those that the protocol is for.
    confidence : float
        Of the intervals, in (0, 1).

    Returns
    -------
    iterator of Row
        One for each thing asked.

    Raises
    ------
    ValueError
        A question that is none, or not one for this protocol.
    """
    source = Source(protocol, aggregate, confidence)
    if isinstance(source.protocol, HeavyHitterProtocol):
        if asked:
            raise ValueError(
                f"{type(protocol).__name__} lists the frequent items: ask no other question"
            )
        found = protocol.find(aggregate, confidence=confidence)
        yield from map(Row, map(str, found.items), found.frequencies, *found.interval())
        return
    protocol = source.protocol
    mine = {
        name: question
        for name, question in _QUESTIONS.items()
        if isinstance(protocol, question.kinds)
    }
    for name, text in asked or _everything(protocol):
        if name not in mine:
            raise ValueError(
                f"{type(protocol).__name__} does not answer --{name}; it answers"
                f" {', '.join(f'--{n}' for n in mine)}"
            )
        yield from mine[name].answers(source, text)


def _everything(protocol: Any) -> list[tuple[str, str]]:
    if isinstance(protocol, _ORDERED):
        return [("quantile", f"{k / 10}") for k in range(1, 10)]
    if isinstance(protocol, MarginalProtocol):
        return [
            ("marginal", ",".join(names))
            for names in protocol.domain.views(min(protocol.k, len(protocol.domain)))
        ]
    if isinstance(protocol, Oracle):
        return [("item", f"0:{protocol.domain - 1}")]
    raise ValueError(f"{type(protocol).__name__} has too many answers to list: ask --where")


def _items(source: Source, text: str) -> Iterator[Row]:
    protocol, (first, last) = source.protocol, _ends(text, "--item")
    if last >= protocol.domain:
        raise ValueError(f"--item {text}: items are 0 .. {protocol.domain - 1}")
    items = np.arange(first, last + 1)
    some = isinstance(protocol, Oracle) and len(items) < protocol.domain
    # Of a domain that may be too large to list
    estimate = source.collected.estimate(source.aggregate, items=items) if some else source.estimate
    answer = estimate.answer(items)
    ends = _interval(answer, source.confidence)
    for place, item in enumerate(items):
        yield Row(f"item {item}", answer.value[place], *(end[place] for end in ends))


def _interval(answer: Answer, confidence: float) -> tuple[Any, ...]:
    """Both ends; none where the variance is not known."""
    try:
        return answer.interval(confidence)
    except UnknownVariance:
        return ()


def _range(source: Source, text: str) -> Iterator[Row]:
    first, last = _ends(text, "--range")
    answer = source.estimate.answer((first, last))
    yield Row(f"range {first}:{last}", answer.value, *_interval(answer, source.confidence))


def _quantile(source: Source, text: str) -> Iterator[Row]:
    try:
        phi = float(text)
    except ValueError:
        raise ValueError(f"--quantile is a fraction from 0 to 1, got {text!r}") from None
    estimate = source.estimate
    ends: tuple[Any, ...] = ()
    with suppress(UnknownVariance):
        ends = estimate.quantile_interval(phi, source.confidence)
    yield Row(f"quantile {text}", estimate.quantile(phi), *ends)


def _marginal(source: Source, text: str) -> Iterator[Row]:
    names, estimate = text.split(","), source.estimate
    answer = estimate.cells(names)
    ends = _interval(answer, source.confidence)
    for values in product(*map(range, answer.value.shape)):
        where = ",".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        yield Row(f"where {where}", answer.value[values], *(end[values] for end in ends))


def _where(source: Source, text: str) -> Iterator[Row]:
    asked: dict[str, tuple[int, int]] = {}
    for condition in text.split(","):
        name, given, values = condition.partition("=")
        if not given or name in asked:
            raise ValueError(
                "--where takes distinct attributes with a value or range each, such as"
                f" age=30:39,sex=1, got {text!r}"
            )
        asked[name] = _ends(values, "--where")
    answer = source.estimate.answer(asked)
    yield Row(f"where {text}", answer.value, *_interval(answer, source.confidence))


def _ends(text: str, option: str) -> tuple[int, int]:
    """``7`` or ``3:9``."""
    first, _, last = text.partition(":")
    parts = [first, last or first]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{option}: a value or a closed range, such as 7 or 3:9, got {text!r}")
    if int(parts[0]) > int(parts[1]):
        raise ValueError(f"{option} {text}: the left end is above the right one")
    return int(parts[0]), int(parts[1])


class Question(NamedTuple):
    """An option of the command.

    Attributes
    ----------
    name : str
        The option's.
    kinds : tuple of type
        The classes of the protocols that answer it.
    answers : callable
        From a source and the option's text to answers.
    metavar : str
        What stands for the text in the help.
    text : str
        The help.
    """

    name: str
    kinds: tuple[type, ...]
    answers: Callable[[Source, str], Iterator[Row]]
    metavar: str
    text: str


_ORDERED = (RangeProtocol, Shaped, SquareWave)

_QUESTIONS = {
    question.name: question
    for question in (
        Question(
            "item", (Oracle, *_ORDERED), _items, "X", "the frequency of an item, or of each in A:B"
        ),
        Question("range", _ORDERED, _range, "A:B", "the fraction in A .. B, both included"),
        Question(
            "quantile", _ORDERED, _quantile, "PHI", "the item with the fraction PHI at or below it"
        ),
        Question(
            "marginal",
            (MarginalProtocol,),
            _marginal,
            "NAMES",
            "each combination of values of some attributes, such as a,b",
        ),
        Question(
            "where",
            (MarginalProtocol, ConjunctionProtocol),
            _where,
            "CONDITIONS",
            "the fraction that meets them all, such as age=30:39,sex=1",
        ),
    )
}

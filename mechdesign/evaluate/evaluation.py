"""evaluate: how much protocols err, measured on populations, as a tidy table."""

from __future__ import annotations

import csv
import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mechdesign.base import Floats, aligned, comma_separated, opened, shown, whole, write_csv
from mechdesign.evaluate.measures import Measure, Population, RepeatErrors, Summary, first, truth
from mechdesign.evaluate.sweeps import apart, sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ErrorTable:
    """The errors that `evaluate` measured. ``print(found)`` shows the summary as a table.

    Attributes
    ----------
    rows : tuple of RepeatErrors
        One for each repeat and family of queries.
    """

    rows: tuple[RepeatErrors, ...]

    def summary(self) -> list[Summary]:
        """All repeats together, by population, family, epsilon and protocol.

        Returns
        -------
        list of Summary
            One for each protocol, population, epsilon and family of queries.
        """
        groups: dict[tuple[Any, ...], list[RepeatErrors]] = {}
        for row in self.rows:
            case = row.population, row.queries, row.epsilon, row.protocol, row.users
            groups.setdefault(case, []).append(row)
        orders = [list(dict.fromkeys(column)) for column in zip(*groups, strict=True)]
        summaries = []
        for (population, queries, epsilon, protocol, users), rows in sorted(
            groups.items(),
            key=lambda group: [
                order.index(value) for order, value in zip(orders, group[0], strict=True)
            ],
        ):
            squares = np.array([row.squared for row in rows])
            error = math.sqrt(squares.mean())
            spread = squares.std(ddof=1) / math.sqrt(len(squares)) if len(rows) > 1 else math.nan
            summaries.append(
                Summary(
                    protocol,
                    population,
                    epsilon,
                    users,
                    queries,
                    len(rows),
                    error,
                    float(spread / (2 * error)) if error else 0.0,
                    math.sqrt(np.mean([row.stated for row in rows])),
                    float(np.mean([row.covered for row in rows])),
                    {
                        name: float(np.mean([row.measures[name] for row in rows]))
                        for name in rows[0].measures
                    },
                )
            )
        return summaries

    def to_frame(self) -> Any:
        """All rows as a pandas DataFrame: the fields of `RepeatErrors`, a column each measure.

        Raises ImportError where pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error

        names = self.rows[0].measures if self.rows else ()
        return pd.DataFrame([_cells(row) for row in self.rows], columns=[*_FIXED, *names])

    def plot(self, queries: str | None = None) -> Figure:
        """Errors against epsilon, a panel for each population, both axes logarithmic.

        Parameters
        ----------
        queries : str, optional
            The family of queries; None: the first.

        Returns
        -------
        matplotlib.figure.Figure
            With bars of two standard errors; `mechdesign.plot.save` writes it.

        Raises
        ------
        ValueError
            Another family, or nothing was measured.
        """
        from mechdesign.evaluate.picture import errors_by_epsilon  # loads matplotlib

        return errors_by_epsilon(self.summary(), queries)

    def __str__(self) -> str:
        head = ["population", "queries", "epsilon", "protocol", "error", "+-", "stated", "covered"]
        summaries = self.summary()
        rows = [
            [
                row.population,
                row.queries,
                f"{row.epsilon:g}",
                row.protocol,
                *(_number(error) for error in (row.error, row.standard_error, row.stated)),
                _number(row.covered, ".0%"),
                *map(_number, row.measures.values()),
            ]
            for row in summaries
        ]
        head += summaries[0].measures if summaries else ()
        return "\n".join(aligned([head, *rows]))


_FIXED = RepeatErrors._fields[:-1]  # the columns that every table has

# How far the truth may be out of an interval: of what is known exactly that has no width.
_ROUNDING = 1e-9


def _cells(row: RepeatErrors) -> tuple[object, ...]:
    return *row[:-1], *row.measures.values()


def _number(value: float, how: str = ".3g") -> str:
    return "-" if math.isnan(value) else format(value, how)


def evaluate(
    protocols: Mapping[str, Callable[[float], Any]],
    populations: Mapping[str, Any],
    queries: Mapping[str, Sequence[Any]],
    epsilons: Sequence[float],
    repeats: int = 10,
    *,
    users: int | None = None,
    confidence: float | None = 0.95,
    measures: Mapping[str, Measure] | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    workers: int = 1,
    scheduler: str | None = None,
) -> ErrorTable:
    """Measure protocols: every one, on every population, at every epsilon, some times.

    In a repeat all protocols have the same users. Results do not depend on where cases are
    computed, nor on which others there are.

    Parameters
    ----------
    protocols : mapping of str to callable
        By its name what makes a protocol from epsilon: ``{"OUE": lambda epsilon: OUE(64,
        epsilon)}``. A protocol has ``privatize(values, rng)``, ``aggregate(reports)`` and
        ``estimate(aggregate)``, whose result answers queries as ``answer(where)``: one's own may
        be of any class. An answer has a ``value``, a fraction of the users, and, where it states
        them, a ``variance`` and ``interval(confidence)``, as `frequency.core.answer.Answer` has.
        Where a protocol has ``simulate``, ``simulate(counts, rng)`` is taken of counts, and
        ``simulate(1, rng, values)`` of records.
    populations : mapping of str to array_like or mapping
        By its name the counts of the items, shape (items,); shares of the items, floats that sum
        to 1, with ``users``; records, integers of shape (users, attributes); a table, columns by
        name; or a function that draws any of these from a generator, for each repeat anew.
    queries : mapping of str to sequence
        By the name of a family its queries, each as ``answer`` takes it; also arrays of questions.
    epsilons : sequence of float
        Privacy losses of one report.
    repeats : int, default 10
        How often, at least 1.
    users : int, optional
        How many users are drawn for each repeat; None: those given report.
    confidence : float, optional
        Of the intervals whose coverage is measured, default 0.95. None: none are asked for, as
        where a bootstrap would take long.
    measures : mapping of str to callable, optional
        By its name what else is made of the answers of a family, beside their mean squared error: a
        function of them and of the truth, two float64 arrays of shape (number,), to a number, such
        as `mean_absolute`.
    seed : int, default 1
        Of all randomness.
    out : path, optional
        A CSV file with the rows, written as they are computed. What it has already is not
        computed again: an evaluation that was interrupted goes on, and one with more cases
        computes these. Rows of others are kept. A protocol is known by its name, class and
        attributes, not by its code, and functions by their names: where code has changed, take
        another file.
    workers : int, default 1
        How many processes compute: see `sweep`.
    scheduler : str, optional
        Where to compute: see `sweep`.

    Returns
    -------
    ErrorTable

    Raises
    ------
    ValueError
        Nothing to evaluate, a number out of range, what is no population, a question about records
        that is no mapping or about items that there are not, or a file with other columns, such as
        those of other measures. Nothing was computed.
    Exception
        What a protocol raises, with a note that names it.
    """
    _check_cases(protocols, populations, queries, epsilons)
    functions = dict(measures or {})
    whole(repeats, "repeats", 1)
    whole(seed, "seed", 0)
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    for name, measure in functions.items():
        if not callable(measure) or name in RepeatErrors._fields:
            raise ValueError(
                f"measure {shown(name)} must be a function of answers and truth with a name that is"
                f" no column's, got {shown(measure)}"
            )
    people = [Population(name, given, users) for name, given in populations.items()]
    rng = np.random.default_rng(seed)
    asked = {name: list(family) for name, family in queries.items()}
    for population in people:
        sample = first(population.drawn(np.random.default_rng(0)))  # enough to check questions
        for family in asked.values():
            for where in family:
                truth(where, sample)
    made = []
    for epsilon in epsilons:
        for name, make in protocols.items():
            with _named(name, epsilon):
                made.append((name, float(epsilon), make(epsilon)))
    keys, cases, order = [], [], []
    for place, population in enumerate(people):
        repeated = [Repeat(population, number, asked, rng) for number in range(repeats)]
        for name, epsilon, protocol in made:
            key = _key(name, epsilon, protocol, population, asked, seed=seed, confidence=confidence)
            for repeat in repeated:
                keys.append((key, repeat.number))
                case = Case(name, epsilon, protocol, repeat, key, confidence, functions)
                cases.append((case, rng))
                order.append((place, repeat.number))
    path = None if out is None else Path(out)
    known = {} if path is None else _kept(path, set(keys), len(asked), list(functions))
    left = [place for place, case in enumerate(keys) if case not in known]
    left.sort(key=order.__getitem__)  # all protocols on the same users, and then on others

    def keep(place: int, rows: list[RepeatErrors]) -> None:
        if path is not None:
            with path.open("a", encoding="utf-8", newline="") as file:
                file.write(comma_separated(map(_cells, rows)))

    try:
        computed = sweep(
            measured, [cases[place] for place in left], workers, scheduler, "evaluation", keep
        )
    finally:
        _users.cache_clear()
    known.update({keys[place]: rows for place, rows in zip(left, computed, strict=True)})
    return ErrorTable(tuple(row for case in keys for row in known[case]))


def _check_cases(protocols: Any, populations: Any, queries: Any, epsilons: Any) -> None:
    """Refuse, with a ValueError, what cannot be evaluated whatever the populations hold."""
    for what, given in (("protocols", protocols), ("populations", populations)):
        if not isinstance(given, Mapping) or not given:
            raise ValueError(f"{what} must be a mapping of names, and not empty: {shown(given)}")
    if not isinstance(queries, Mapping) or not all(len(family) for family in queries.values()):
        raise ValueError(f"queries must be a mapping of names to lists, got {shown(queries)}")
    if not queries or not np.ndim(epsilons) or not len(epsilons):
        raise ValueError(f"there are no queries, or epsilons is no list: {shown(epsilons)}")
    for name, make in protocols.items():
        if not callable(make):
            raise ValueError(
                f"protocol {shown(name)} must be a function of epsilon that makes it, such as"
                f" lambda epsilon: GRR(64, epsilon); got {shown(make)}"
            )


@dataclass(frozen=True, eq=False)
class Repeat:
    """Users who are asked."""

    population: Population
    number: int  # of the repeat, from 0
    queries: dict[str, list[Any]]  # families of questions by name
    rng: np.random.Generator  # whose seed the users depend on


@lru_cache(maxsize=1)  # for all protocols in turn
def _users(repeat: Repeat) -> tuple[Any, dict[str, list[Floats]]]:
    """The users, and the true answers to the questions of each family."""
    users = repeat.population.drawn(apart(repeat.rng, repeat.population.name, repeat.number))
    return users, {
        family: [truth(where, users) for where in asked] for family, asked in repeat.queries.items()
    }


class Case(NamedTuple):
    """A protocol, a repeat of it, and what is measured: see `evaluate`."""

    name: str
    epsilon: float
    protocol: Any
    repeat: Repeat
    key: str
    confidence: float | None
    measures: dict[str, Measure]


def measured(case: Case, rng: np.random.Generator) -> list[RepeatErrors]:
    """Measure one repeat of a case: see `evaluate`."""
    name, epsilon, protocol, repeat, key, confidence, measures = case
    population = repeat.population.name
    users, truths = _users(repeat)
    generator = apart(rng, name, population, epsilon, repeat.number)
    counted = not isinstance(users, dict) and users.ndim == 1
    began = time.perf_counter()
    with _named(name, epsilon, f", population {shown(population)}"):
        if hasattr(protocol, "simulate"):
            aggregate = protocol.simulate(
                *((users, generator) if counted else (1, generator, users))
            )
        else:
            values = np.repeat(np.arange(len(users)), users) if counted else users
            aggregate = protocol.aggregate(protocol.privatize(values, generator))
        estimate = protocol.estimate(aggregate)
        answers = {
            family: [estimate.answer(where) for where in asked]
            for family, asked in repeat.queries.items()
        }
    seconds = time.perf_counter() - began
    some = next(iter(users.values())) if isinstance(users, dict) else users
    number = int(some.sum()) if counted else len(some)
    rows = []
    for family, family_answers in answers.items():
        values, right, inside, variances = [], [], [], []
        for answer, true in zip(family_answers, truths[family], strict=True):
            both = np.broadcast_arrays(np.asarray(answer.value, dtype=np.float64), true)
            values.append(np.ravel(both[0]))
            right.append(np.ravel(both[1]))
            inside.append(_inside(answer, true, confidence))
            variances.append(_stated(answer, true.shape))
        outcomes, expected = np.concatenate(values), np.concatenate(right)
        errors = outcomes - expected
        rows.append(
            RepeatErrors(
                name,
                population,
                epsilon,
                number,
                repeat.number,
                family,
                len(errors),
                float((errors**2).mean()),
                float(np.abs(errors).max()),
                float(np.concatenate(variances).mean()),
                float(np.concatenate(inside).mean()),
                round(seconds, 6),
                key,
                {title: float(measure(outcomes, expected)) for title, measure in measures.items()},
            )
        )
    return rows


@contextmanager
def _named(name: str, epsilon: float, more: str = "") -> Iterator[None]:
    """A protocol's exception says whose it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"protocol {shown(name)}, epsilon {epsilon!r}{more}")
        raise


def _inside(answer: Any, true: Any, confidence: float | None) -> Any:
    if confidence is None:
        return np.full(true.size, math.nan)
    with suppress(ValueError, TypeError, AttributeError):
        low, high = answer.interval(confidence)
        low, high = np.asarray(low) - _ROUNDING, np.asarray(high) + _ROUNDING
        return np.ravel((low <= true) & (true <= high)).astype(np.float64)
    return np.full(true.size, math.nan)


def _stated(answer: Any, shape: tuple[int, ...]) -> Any:
    with suppress(ValueError, TypeError, AttributeError):
        return np.ravel(np.broadcast_to(np.asarray(answer.variance, dtype=np.float64), shape))
    return np.full(math.prod(shape), math.nan)


def _key(
    name: str,
    epsilon: float,
    protocol: Any,
    population: Population,
    queries: dict[str, list[Any]],
    *,
    seed: int,
    confidence: float | None,
) -> str:
    digest = hashlib.sha256()
    case = name, epsilon, population.name, population.users, seed, confidence
    digest.update(repr(case).encode())
    people = population.columns if population.columns is not None else population.given
    for given in (getattr(protocol, "parameters", None), protocol, people, queries):
        for part in _told(given):
            digest.update(part)
    return digest.hexdigest()[:16]


def _told(given: Any, above: tuple[int, ...] = ()) -> Iterator[bytes]:
    """Whatever was given, as bytes that differ where its numbers do; not where it is in memory."""
    if isinstance(given, Mapping):
        for name, value in given.items():
            yield repr(name).encode()
            yield from _told(value, above)
    elif isinstance(given, (list, tuple)):
        yield f"{type(given).__name__} {len(given)}".encode()
        for value in given:
            yield from _told(value, above)
    elif isinstance(given, (set, frozenset)):  # the order of text differs between processes
        yield repr(sorted(map(repr, given))).encode()
    elif isinstance(given, np.ndarray) and given.dtype.kind in "iufb":
        yield repr((given.dtype.str, given.shape)).encode()
        yield np.ascontiguousarray(given).tobytes()
    elif isinstance(given, np.ndarray):
        yield repr(given.tolist()).encode()
    elif (state := _state(given)) and id(given) not in above:
        yield type(given).__qualname__.encode()
        yield from _told(state, (*above, id(given)))
    else:
        yield re.sub(" at 0x[0-9a-fA-F]+", "", repr(given)).encode()


def _state(given: Any) -> dict[str, Any]:
    """The attributes of an object; without what it has computed from others."""
    state = None if isinstance(given, type) else object.__getstate__(given)
    known, slots = state if isinstance(state, tuple) else (state, None)
    return {
        name: value
        for name, value in {**(known or {}), **(slots or {})}.items()
        if not isinstance(getattr(type(given), name, None), cached_property)
    }


def _kept(
    path: Path, wanted: set[tuple[str, int]], families: int, measures: list[str]
) -> dict[tuple[str, int], list[RepeatErrors]]:
    """The rows of a file by case; what an interrupt left half-written is taken out of it."""
    text = ""
    if path.exists():
        with opened(path, "r", encoding="utf-8") as stream:
            text = stream.read()
    lines = text[: text.rfind("\n") + 1]
    reader = csv.reader(lines.splitlines())
    columns = [*_FIXED, *measures]
    if next(reader, columns) != columns:
        raise ValueError(
            f"{path} is no table of an evaluation with these measures: it has other columns"
        )
    results: dict[tuple[str, int], list[RepeatErrors]] = {}
    for cells in reader:
        fixed = [kind(cell) for kind, cell in zip(_KINDS, cells, strict=False)]
        more = dict(zip(measures, map(float, cells[len(fixed) :]), strict=True))
        row = RepeatErrors._make([*fixed, more])
        results.setdefault((row.key, row.repeat), []).append(row)
    torn = [case for case in results if case in wanted and len(results[case]) != families]
    for case in torn:
        del results[case]
    if torn or lines != text or not text:
        rows = [_cells(row) for case in results.values() for row in case]
        write_csv(path, [columns, *rows])
    return {case: rows for case, rows in results.items() if case in wanted}


# Of the columns of `_FIXED`.
_KINDS: tuple[Callable[[str], Any], ...] = (
    str,
    str,
    float,
    int,
    int,
    str,
    int,
    *(float,) * 5,
    str,
)

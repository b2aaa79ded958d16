"""Which protocol to take, and what it needs: candidates ranked by error, or by the epsilon or the people that an error takes.

A `Task` knows the protocols for one kind of question, and predicts their errors; `plan` ranks and searches. Tasks are found by
name among the entry points of the group "mechdesign.tasks", which any package may add to.
"""

from __future__ import annotations

import csv
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mechdesign.budget import BudgetExceeded, Ledger
from mechdesign.exceptions import MechanismError
from mechdesign.privacy import face_value
from mechdesign.rational import Rational
from mechdesign.text import aligned, brief, printable, shown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from matplotlib.figure import Figure

GROUP = "mechdesign.tasks"
"""The entry points that name tasks."""

LEAST_EPSILON, LARGEST_EPSILON = Fraction(1, 1000), Fraction(16)
"""Between these a search looks for an epsilon: beyond the larger, odds of nine million to one protect nobody."""

LARGEST_N = 10**12
"""A search for a number of people ends here."""

_DIGITS = 4
"""Significant digits of an epsilon that was searched for: it is rounded up, and short to write."""


class InvalidRequest(MechanismError, ValueError):
    """A plan cannot be made from these arguments: not two of n, epsilon and error, one out of range, or an unknown detail."""


class UnknownTask(MechanismError, ValueError):
    """No installed package has a task of this name."""


class Unreachable(MechanismError):
    """No candidate reaches the error.

    Attributes: ``error``, asked for, and ``least``, the least that any candidate is predicted to have within the bounds.
    """

    def __init__(self, error: float, least: float, within: str) -> None:
        self.error, self.least, self.within = error, least, within
        best = (
            f"the least predicted is {least:.4g}"
            if math.isfinite(least)
            else "no candidate has a predicted error there"
        )
        super().__init__(f"no candidate reaches an error of {error:.4g} {within}: {best}")


@dataclass(frozen=True)
class Offer:
    """A protocol, and what is known of it beforehand.

    Attributes
    ----------
    protocol
        Ready to use.
    error
        Predicted, in the task's unit; NaN where nothing is known.
    bits
        Information in a report; None where nobody reports.
    client, server
        Elementary steps up to a constant, to make a report and to turn n of them into estimates; empty where not stated.
    """

    protocol: Any
    error: float
    bits: int | None = None
    client: str = ""
    server: str = ""


@dataclass(frozen=True)
class Task(ABC):
    """A kind of question: its candidates, and how wrong they are.

    A subclass is a frozen dataclass: further fields are the details that may be given. It names the class in an entry point.

    Attributes
    ----------
    domain
        What is asked about.
    """

    domain: Any

    people_report: ClassVar[bool] = True
    """Whether n people report; False where a curator knows the truth."""

    symbols: ClassVar[str] = ""
    """What the letters of the costs stand for."""

    @property
    @abstractmethod
    def question(self) -> str:
        """What is asked, in words."""

    @property
    @abstractmethod
    def error_is(self) -> str:
        """What the error is, in words."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The candidates."""

    @abstractmethod
    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """A candidate at this epsilon, for n reports; ValueError if it cannot serve there."""

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        """The candidate to take when nothing speaks against it, and why; empty: the first of the ranking."""
        return "", ""

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        """What no protocol can do, in a sentence; empty if nothing is known."""
        return ""


@dataclass(frozen=True)
class Candidate:
    """A protocol with its predicted error, at an epsilon and a number of people: given, or the least that it needs.

    Attributes are those of `Offer`, and ``name``, ``epsilon`` and ``n`` (None where nobody reports).
    """

    name: str
    protocol: Any = field(repr=False)
    error: float
    epsilon: float | Fraction
    n: int | None
    bits: int | None
    client: str
    server: str


@dataclass(frozen=True)
class Plan:
    """What `plan` found; ``print(plan)`` shows the table.

    Attributes
    ----------
    task
        What was asked.
    solved_for
        "error", "epsilon" or "n": what was not given, and candidates are ranked by.
    target
        The error that was asked for, if it was.
    candidates
        Those that can serve, the best first; of unknown error last.
    best
        The one to take when nothing speaks against it: ``best.protocol`` is ready to use, ``best.epsilon`` what to spend.
    reason
        Why it is that one.
    unreachable
        The names of candidates that are not predicted to reach the error ``within`` the bounds of the search.
    unknown
        The names of candidates of which nothing is predicted, so that no search finds what they need.
    bound
        What no protocol can do at the best one's epsilon and n; may be empty.
    """

    task: Task
    solved_for: str
    target: float | None
    candidates: tuple[Candidate, ...]
    best: Candidate
    reason: str
    unreachable: tuple[str, ...]
    unknown: tuple[str, ...]
    within: str
    bound: str

    def rows(self) -> list[dict[str, object]]:
        """One dictionary a candidate, ranked, with the columns of `csv`."""
        return [
            {
                "candidate": item.name,
                "best": item is self.best,
                "error": item.error,
                "epsilon": float(item.epsilon),
                "n": item.n,
                "bits": item.bits,
                "client": item.client,
                "server": item.server,
                "protocol": repr(item.protocol),
            }
            for item in self.candidates
        ]

    def csv(self) -> str:
        """The table in full, as comma-separated values with a header; unknown errors are empty."""
        text = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {**row, "error": "" if math.isnan(item.error) else row["error"]}
            for row, item in zip(rows, self.candidates, strict=True)
        )
        return text.getvalue()

    def plot(self) -> Figure:
        """The errors of all candidates against epsilon: see `mechdesign.plot.error_against_epsilon`."""
        from mechdesign import plot

        return plot.error_against_epsilon(self)

    def errors(self, epsilons: Iterable[float]) -> dict[str, list[float]]:
        """The predicted error of every candidate at other epsilons, for the best one's n; NaN where it cannot serve."""
        grid, n = list(epsilons), self.best.n or 0
        found = {
            item.name: [_error(self.task, item.name, epsilon, n) for epsilon in grid]
            for item in self.candidates
        }
        return {
            name: [error if math.isfinite(error) else math.nan for error in row]
            for name, row in found.items()
        }

    def __str__(self) -> str:
        given = {"n": str(self.best.n or ""), "epsilon": brief(self.best.epsilon)}
        known = [name for name in given if name != self.solved_for and given[name]]
        said = [self.task.question, *(f"{name} = {given[name]}" for name in known)]
        if self.target is not None:
            said.append(f"error at most {brief(self.target)}")
        shown_columns = ["error"] if self.solved_for == "error" else [self.solved_for, "error"]
        rows = [("", "candidate", *shown_columns, "bits", "client", "server")]
        for item in self.candidates:
            cells = {
                "error": "unknown" if math.isnan(item.error) else f"{item.error:.3g}",
                "n": str(item.n),
                "epsilon": brief(item.epsilon),
            }
            bits = "" if item.bits is None else str(item.bits)
            mark = "*" if item is self.best else " "
            rows.append(
                (
                    mark,
                    item.name,
                    *(cells[name] for name in shown_columns),
                    bits,
                    item.client,
                    item.server,
                )
            )
        kept = [k for k, column in enumerate(zip(*rows, strict=True)) if k == 0 or any(column[1:])]
        lines = [
            f"{', '.join(said)}; error: {self.task.error_is}",
            *aligned([[row[k] for k in kept] for row in rows]),
        ]
        lines.append(f"* {self.best.name}: {self.reason}")
        if self.unreachable:
            lines.append(
                f"not predicted to reach that {self.within}: {', '.join(self.unreachable)}"
            )
        if self.unknown:
            lines.append(f"nothing is predicted of: {', '.join(self.unknown)}")
        if self.task.symbols and any(item.server for item in self.candidates):
            lines.append(f"costs: {self.task.symbols}")
        if self.bound:
            lines.append(
                f"at epsilon {brief(self.best.epsilon)}{f' and n = {self.best.n}' if self.best.n else ''} {self.bound}"
            )
        return "\n".join(map(printable, lines))


def plan(
    task: str,
    domain: Any,
    *,
    n: int | None = None,
    epsilon: float | Rational | None = None,
    error: float | Rational | None = None,
    ledger: Ledger | None = None,
    **details: Any,
) -> Plan:
    """The protocols for a task, ranked: by predicted error, or by the epsilon or the number of people that a target error takes.

    Of n, epsilon and error exactly two are given (of epsilon and error one, where a curator knows the truth), and the third is
    predicted for each candidate. An epsilon found has four digits, rounded up, between 0.001 and 16; an n is exact. Planning spends
    nothing: `Plan.best` says what to spend.

    Parameters
    ----------
    task
        "count", "frequencies", "marginals", "heavy hitters", "ranges", "prefixes", "quantiles", "conjunctions", or a task that
        another package adds.
    domain
        What the task is about: people in the group; items; numbers of values of the attributes; bits of an item. See the task.
    n
        How many people report, 1 to 10^12.
    epsilon
        What a report may lose, above 0.
    error
        The target, above 0, in the task's unit.
    ledger
        A budget: an epsilon given must fit what remains for everybody. An epsilon not given is all
        that remains; or, if n and error are given, at most that. Of a ledger in a file that is what
        remains now: nothing is reserved, and `Ledger.spend` may still refuse what was planned.
    details
        See the task.

    Raises
    ------
    UnknownTask, InvalidRequest
        The message lists the tasks, or the details, that there are.
    Unreachable
        No candidate reaches the error with an epsilon up to 16, or with 10^12 people.
    BudgetExceeded
        The ledger has less left.

    >>> found = plan("count", 8, epsilon="0.1", loss="L0", properties=["WH"])
    >>> found.best.name, found.best.protocol.audit().holds
    ('WM', True)
    """
    asked = _task(task, domain, details)
    n, epsilon, target = _number(n), _epsilon(epsilon), _target(error)
    largest = LARGEST_EPSILON
    if ledger is not None and epsilon is not None:
        ledger.require(epsilon, "this plan")
    elif ledger is not None:
        remaining = ledger.remaining  # asked once: others may be spending from the same file
        if remaining <= 0:
            raise BudgetExceeded(LEAST_EPSILON, remaining, "this plan")
        if target is None or (n is None and asked.people_report):
            epsilon = remaining
        else:
            largest = min(largest, remaining)
    _check_given(asked, n, epsilon, target)
    if target is None:
        return _ranked(asked, "error", None, dict.fromkeys(asked.names, (epsilon, n)))
    if epsilon is None:
        scale, within = _epsilons(largest), f"with an epsilon of at most {brief(largest)}"
    else:
        scale, within = _PEOPLE, f"with at most {LARGEST_N} people"

    def place(value: Any) -> tuple[Any, Any]:
        return (value, n) if epsilon is None else (epsilon, value)

    def least(name: str) -> Any:
        return _least(lambda value: _error(asked, name, *place(value)), target, scale)

    found = {name: least(name) for name in asked.names}
    reached = {name: place(value) for name, value in found.items() if value is not None}
    missed = tuple(name for name in found if name not in reached)
    if not reached:
        end = (
            [_error(asked, name, *place(scale.value(scale.last))) for name in missed]
            if scale.last >= 0
            else []
        )
        raise Unreachable(target, min(end, default=math.inf), within)
    unknown = tuple(
        name for name in missed if _is_unknown(asked, name, *place(scale.value(scale.last)))
    )
    missed = tuple(name for name in missed if name not in unknown)
    return _ranked(
        asked, "epsilon" if epsilon is None else "n", target, reached, missed, unknown, within
    )


def task_names() -> tuple[str, ...]:
    """The tasks there are, of all installed packages."""
    return tuple(sorted(_entries()))


def _entries() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes longer to import than most of this package

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def _task(name: str, domain: Any, details: dict[str, Any]) -> Task:
    entries = _entries()
    key = (
        "-".join(name.lower().replace("_", " ").replace("-", " ").split())
        if isinstance(name, str)
        else ""
    )
    if key not in entries:
        raise UnknownTask(
            f"no task {shown(name)}; there are {', '.join(sorted(entries)) or 'none: install the package'}"
        )
    kind = entries[key].load()
    allowed = [item.name for item in fields(kind) if item.name != "domain"]
    unknown = [detail for detail in details if detail not in allowed]
    if unknown:
        known = f"its details are {', '.join(allowed)}" if allowed else "it has no details"
        raise InvalidRequest(f"{key} does not know {', '.join(unknown)}; {known}")
    try:
        made: Task = kind(domain, **details)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"{key}: {error}") from error
    return made


def _number(n: Any) -> int | None:
    if n is None:
        return None
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or not 1 <= n <= LARGEST_N:
        raise InvalidRequest(f"n must be a number of people, 1 to {LARGEST_N}, got {shown(n)}")
    return int(n)


def _epsilon(epsilon: Any) -> float | Fraction | None:
    if epsilon is None:
        return None
    try:
        value = face_value(epsilon)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f"epsilon must be a finite number above 0, got {shown(epsilon)}"
        ) from error
    if value == 0:
        raise InvalidRequest("epsilon must be above 0: at 0 no answer may depend on anybody")
    return epsilon if isinstance(epsilon, float) else value


def _target(error: Any) -> float | None:
    if error is None:
        return None
    try:
        value = float(face_value(error))
    except (ValueError, TypeError, OverflowError) as mistake:
        raise InvalidRequest(
            f"error must be a finite number above 0, got {shown(error)}"
        ) from mistake
    if not 0 < value < math.inf:
        raise InvalidRequest(
            f"error must be above 0, got {shown(error)}: no private answer is always right"
        )
    return value


def _check_given(
    task: Task, n: int | None, epsilon: float | Fraction | None, target: float | None
) -> None:
    values = {"n": n, "epsilon": epsilon, "error": target}
    if not task.people_report:
        if n is not None:
            raise InvalidRequest(
                "here a curator knows the truth and nobody reports: give no n; the domain says how many there are"
            )
        del values["n"]
    given = [name for name, value in values.items() if value is not None]
    if len(given) != len(values) - 1:
        wanted = (
            "exactly one of epsilon and error"
            if len(values) == 2
            else "exactly two of n, epsilon and error"
        )
        raise InvalidRequest(f"{wanted} must be given, got {' and '.join(given) or 'none'}")


def _error(task: Task, name: str, epsilon: Any, n: int | None) -> float:
    """Of a candidate; infinite where it cannot serve or nothing is known."""
    try:
        error = task.offer(name, epsilon, n or 0).error
    except ValueError:
        return math.inf
    return math.inf if math.isnan(error) else error


def _is_unknown(task: Task, name: str, epsilon: Any, n: int | None) -> bool:
    """Whether a candidate can serve but nothing is predicted of it."""
    try:
        return math.isnan(task.offer(name, epsilon, n or 0).error)
    except ValueError:
        return False


def _ranked(
    task: Task,
    solved_for: str,
    target: float | None,
    places: Mapping[str, tuple[Any, int | None]],
    missed: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    within: str = "",
) -> Plan:
    candidates, refused = [], None
    for name, (epsilon, n) in places.items():
        try:
            offer = task.offer(name, epsilon, n or 0)
        except ValueError as error:
            refused = refused or error
            continue
        candidates.append(
            Candidate(
                name,
                offer.protocol,
                offer.error,
                epsilon,
                n,
                offer.bits,
                offer.client,
                offer.server,
            )
        )
    if not candidates:
        raise refused or InvalidRequest("this task has no candidates")

    def rank(item: Candidate) -> tuple[float, int, float]:
        value = float(getattr(item, solved_for))
        return math.inf if math.isnan(value) else value, item.bits or 0, item.error

    candidates.sort(key=rank)
    first = candidates[0]
    preferred, why = task.preferred(first.epsilon, first.n or 0)
    best = next((item for item in candidates if item.name == preferred), first)
    if solved_for != "error" or not why or best.name != preferred:
        why = _reason(candidates, best, solved_for)
    if preferred in unknown:
        why += f", of those of which something is predicted; {preferred} is the one to take for a given n and epsilon"
    bound = task.bound(best.epsilon, best.n or 0)
    return Plan(
        task, solved_for, target, tuple(candidates), best, why, missed, unknown, within, bound
    )


def _reason(candidates: Sequence[Candidate], best: Candidate, solved_for: str) -> str:
    def value(item: Candidate) -> float:
        return float(getattr(item, solved_for))

    first, what = candidates[0], "number of people" if solved_for == "n" else solved_for
    amount = f"{what} {best.n if solved_for == 'n' else brief(value(best), 4)}"
    if value(best) > value(first):
        bits = (
            f", with {best.bits} bits instead of {first.bits}"
            if (best.bits or 0) < (first.bits or 0)
            else ""
        )
        return f"{amount} is {100 * (value(best) / value(first) - 1):.1f}% above the least, that of {first.name}{bits}"
    equal = [
        item.name
        for item in candidates
        if item is not best and brief(value(item), 4) == brief(value(best), 4)
    ]
    if equal:
        return f"{amount} is the least, as is that of {', '.join(equal)}"
    next_ = next((item for item in candidates if best is not item and value(item) < math.inf), None)
    return f"{amount} is the least" + (
        f", {100 * (1 - value(best) / value(next_)):.1f}% below {next_.name}'s" if next_ else ""
    )


@dataclass(frozen=True)
class _Scale:
    """The numbers that a search may try, in order: ``value(0) .. value(last)``; ``rank(x)`` is about the last that is at most x.

    The search begins at ``start``, and expects errors to fall as the numbers to the power -``power``.
    """

    value: Callable[[int], Any]
    rank: Callable[[float], int]
    last: int
    start: float
    power: float


_PEOPLE = _Scale(lambda rank: rank + 1, lambda n: math.floor(n) - 1, LARGEST_N - 1, 1e6, 0.5)


def _epsilons(largest: Fraction) -> _Scale:
    """Decimals of four digits from 0.001 to ``largest``."""
    steps = 9 * 10 ** (_DIGITS - 1)

    def value(rank: int) -> Fraction:
        power, digits = divmod(rank, steps)
        return Fraction(LEAST_EPSILON * 10**power * (1 + Fraction(10 * digits, 10**_DIGITS)))

    def rank(epsilon: float) -> int:
        times = epsilon / float(LEAST_EPSILON)
        power = math.floor(math.log10(times))
        return int(power * steps + math.floor((times / math.pow(10, power) - 1) * steps / 9))

    last = max(rank(float(largest)) + 1, -1)
    while last >= 0 and value(last) > largest:
        last -= 1
    return _Scale(value, rank, last, 1.0, 1.0)


def _least(error: Callable[[Any], float], target: float, scale: _Scale) -> Any:
    """The least number at which the error is at most the target, for errors that fall; None if none is.

    Bisection of a bracket, at where a power law through its ends would have the target, right at once for power laws; every third
    time in the middle. Should errors not fall all the way: what is found reaches the target, the number before it does not.
    """
    below, above = -1, scale.last + 1
    ends: dict[bool, tuple[float, float]] = {}
    guess, tries = scale.start, 0
    while above - below > 1:
        rank = min(max(scale.rank(guess), below + 1), above - 1)
        value = scale.value(rank)
        found = error(value)
        reached = found <= target
        below, above = (below, rank) if reached else (rank, above)
        ends[reached] = float(value), found
        tries += 1
        if len(ends) == 1:  # further than it seems to need, the more so the longer it takes
            factor = min(
                max((max(found, 1e-300) / target) ** (1 / scale.power), 0.1),
                10.0 if math.isinf(found) else 1e12,
            )
            further = 4.0**tries / 1e4 if tries > 1 else 0.0
            guess = float(value) * (factor / (1 + further) if reached else factor * (1 + further))
            continue
        (low, large), (high, small) = ends[False], ends[True]
        share = 0.5
        if tries % 3 and math.isfinite(large) and small > 0:
            share = math.log(large / target) / math.log(large / small)
        guess = low * (high / low) ** share
    return None if above > scale.last else scale.value(above)

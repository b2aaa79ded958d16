"""Plan: the candidates for a task, ranked, and the one to take."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from textwrap import fill
from typing import TYPE_CHECKING, Any

from mechdesign.base import aligned, brief, ordered, printable
from mechdesign.planning.task import InvalidRequest, Task, offered, predicted_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Candidate:
    """A protocol with its predicted error, at an epsilon and a number of users.

    Both are given, or one is the least that the protocol needs. Attributes are those of `Offer`,
    and ``name``, ``epsilon`` (of the promise, central or local), ``n`` (None where no user reports)
    and `Task.other_errors`.
    """

    name: str
    protocol: Any = field(repr=False)
    error: float
    epsilon: float | Fraction
    n: int | None
    bits: int | None
    client: str
    server: str
    #: Returns `other_errors`, which may take longer than all that candidates are ranked by.
    further: Callable[[], tuple[tuple[str, float], ...]] = field(repr=False, compare=False)
    local_epsilon: float | Fraction | None = None
    populations: tuple[tuple[str, float], ...] = ()

    @cached_property
    def other_errors(self) -> tuple[tuple[str, float], ...]:
        """What `Task.other_errors` says of it."""
        return self.further()

    @property
    def resting_on(self) -> str:
        """The errors on the populations, in words; empty where it rests on none."""
        errors = ", ".join(f"{name} {error:.3g}" for name, error in self.populations)
        if len(self.populations) > 1:
            errors += f"; root mean square {self.error:.3g}"
        return errors


@dataclass(frozen=True)
class Plan:
    """The result of `plan`; ``print(plan)`` shows the table.

    Attributes
    ----------
    task : Task
        What was asked.
    solved_for : str
        "error", "epsilon" or "n": the one that was not given, by which candidates are ranked.
    target : float or None
        The error that was asked for, if it was.
    candidates : tuple of Candidate
        Those that can serve, the best first; of unknown error last.
    best : Candidate
        The recommended one: its ``protocol`` is ready to use, its ``epsilon`` is the one to spend.
    reason : str
        Why it is recommended.
    unreachable, unknown : tuple of str
        The names of candidates that are not predicted to reach the error ``within`` the bounds of
        the search, and of those of which nothing is predicted, so that no search finds what they
        need.
    within : str
        The bounds of the search, in words; empty if nothing was searched for.
    bound : str
        What holds of every protocol at the best one's epsilon and n; may be empty.
    refused : tuple of (str, str)
        The names of candidates that cannot serve at all, each with the reason.
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
    refused: tuple[tuple[str, str], ...] = ()

    def rows(self) -> list[dict[str, object]]:
        """Return one dictionary a candidate, ranked, with the columns of `csv`."""
        return [
            {
                "candidate": item.name,
                "best": item is self.best,
                "error": item.error,
                **dict(item.other_errors),
                **self._on_populations(item),
                **self._promised(item),
                "n": item.n,
                "bits": item.bits,
                "client": item.client,
                "server": item.server,
                "protocol": repr(item.protocol),
            }
            for item in self.candidates
        ]

    def _on_populations(self, item: Candidate) -> dict[str, float]:
        """Return the columns of errors that rest on the population, if any candidate has some."""
        known = dict(item.populations)
        names = dict.fromkeys(name for each in self.candidates for name, _ in each.populations)
        return {f"error, {name}": known.get(name, math.nan) for name in names}

    @property
    def _resting(self) -> str:
        """The note that some errors are of other populations, if they are."""
        others = any(item.populations for item in self.candidates)
        return " unless said below" if others and self.task.one_population else ""

    @property
    def _central(self) -> str:
        """The delta and the trust that a central epsilon comes with."""
        return f"delta = {brief(self.task.central_delta)}, trust = {self.task.trust}"

    def _promised(self, item: Candidate) -> dict[str, object]:
        """Return the columns of a candidate's epsilons."""
        if not self.task.trust:
            return {"epsilon": float(item.epsilon)}
        local = item.local_epsilon
        return {
            "trust": self.task.trust,
            "central epsilon": float(item.epsilon),
            "delta": float(self.task.central_delta),
            "local epsilon": "" if local is None else float(local),
        }

    def csv(self) -> str:
        """Return the table in full as comma-separated values; unknown errors are empty."""
        text = io.StringIO(newline="")
        rows = self.rows()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {
                name: "" if isinstance(value, float) and math.isnan(value) else value
                for name, value in row.items()
            }
            for row in rows
        )
        return text.getvalue()

    def plot(self, epsilons: Iterable[float] | None = None) -> Figure:
        """Draw the predicted errors of the candidates against epsilon, on logarithmic axes.

        They are for the number of users of the best candidate, which is marked at its epsilon.
        Candidates of unknown error are left out.

        Parameters
        ----------
        epsilons : iterable of float, optional
            Each above 0, joined in order. None: thirteen values from 1/8 to 8 times the epsilon of
            the best candidate, and that epsilon.

        Returns
        -------
        matplotlib.figure.Figure
            One curve a candidate.

        Raises
        ------
        ValueError
            No epsilon, or errors that are all unknown.
        """
        from mechdesign.plot import error_against_epsilon  # loads matplotlib

        best = self.best
        middle = float(best.epsilon)
        grid = [middle * 2 ** (step / 2) for step in range(-6, 7)] if epsilons is None else epsilons
        curves = self.errors(grid := list(grid))
        known = {name: row for name, row in curves.items() if not all(map(math.isnan, row))}
        if grid and not known:
            raise ValueError("the errors of all candidates are unknown: there is nothing to draw")
        users = "" if best.n is None else f", n = {best.n}"
        if self.task.trust:
            users += f", central epsilon, {self._central}"
        title = fill(f"{self.task.question}{users}; error: {self.task.error_is}", 75)
        label = f"{best.name}\n({brief(middle, 4)}, {brief(best.error, 3)})"
        marked = None if math.isnan(best.error) else (middle, best.error, label)
        return error_against_epsilon(grid, known, title, marked)

    def errors(self, epsilons: Iterable[float]) -> dict[str, list[float]]:
        """Return the predicted error of every candidate at other epsilons, for the best one's n.

        It is NaN where a candidate cannot serve.
        """
        grid, n = list(epsilons), self.best.n or 0
        predicted = {
            item.name: [predicted_error(self.task, item.name, epsilon, n) for epsilon in grid]
            for item in self.candidates
        }
        return {
            name: [error if math.isfinite(error) else math.nan for error in row]
            for name, row in predicted.items()
        }

    def __str__(self) -> str:
        given = {"n": str(self.best.n or ""), "epsilon": brief(self.best.epsilon)}
        known = [name for name in given if name != self.solved_for and given[name]]
        titles = self._titles
        request = [self.task.question, *(f"{titles.get(k, k)} = {given[k]}" for k in known)]
        if self.task.trust:
            request.append(self._central)
        if self.target is not None:
            request.append(f"error at most {brief(self.target)}")
        lines = [
            f"{', '.join(request)}; error: {self.task.error_is}{self._resting}",
            *aligned(self._rows()),
            f"* {self.best.name}: {self.reason}",
            *self._remarks(),
        ]
        return "\n".join(map(printable, lines))

    @property
    def _titles(self) -> dict[str, str]:
        """The titles of columns that are not their names."""
        return {"epsilon": "central epsilon"} if self.task.trust else {}

    def _rows(self) -> list[list[str]]:
        """Return the table of the candidates under its titles, without columns that are empty."""
        columns = ["error"] if self.solved_for == "error" else [self.solved_for, "error"]
        titles = [self._titles.get(name, name) for name in columns]
        others = [name for name, _ in self.best.other_errors]
        rows = [["", "candidate", "local epsilon", *titles, *others, "bits", "client", "server"]]
        for item in self.candidates:
            cells = {"error": _error(item.error), "n": str(item.n), "epsilon": brief(item.epsilon)}
            local = "" if item.local_epsilon is None else brief(item.local_epsilon, 4)
            further = [_error(value, "-") for _, value in item.other_errors]
            bits = "" if item.bits is None else str(item.bits)
            mark = "*" if item is self.best else " "
            shown_cells = [cells[name] for name in columns]
            rows.append(
                [mark, item.name, local, *shown_cells, *further, bits, item.client, item.server]
            )
        kept = [k for k, column in enumerate(zip(*rows, strict=True)) if k == 0 or any(column[1:])]
        return [[row[k] for k in kept] for row in rows]

    def _remarks(self) -> Iterator[str]:
        """Yield what is to be known beside the table, a line each."""
        task = self.task
        for item in self.candidates:
            if item.populations:
                yield f"{item.name}: its error rests on the population: {item.resting_on}"
        if self.unreachable:
            yield f"not predicted to reach that {self.within}: {', '.join(self.unreachable)}"
        if self.unknown:
            yield f"nothing is predicted of: {', '.join(self.unknown)}"
        for name, reason in self.refused:
            if name in task.added or self.best.local_epsilon is not None:
                yield f"cannot serve: {name}: {reason}"
        if task.symbols and any(item.server for item in self.candidates):
            yield f"costs: {task.symbols}"
        if self.bound:
            users = f" and n = {self.best.n}" if self.best.n else ""
            bound = f"at epsilon {brief(self.best.epsilon)}{users} {self.bound}"
        else:
            bound = ""
        errors = task.other_errors_are if self.best.other_errors else ""
        candidates = f"candidates: {task.described}" if task.described else ""
        yield from filter(None, (task.advice, errors, bound, task.trusted, candidates))


def _error(value: float, unknown: str = "unknown") -> str:
    """Return an error in three digits."""
    return unknown if math.isnan(value) else f"{value:.3g}"


def ranked(
    task: Task,
    solved_for: str,
    target: float | None,
    places: Mapping[str, tuple[Any, int | None]],
    *,
    missed: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    within: str = "",
) -> Plan:
    """Return the plan of the candidates at these places; ValueError if none can serve."""
    candidates: list[Candidate] = []
    refused = {}
    for name, (epsilon, n) in places.items():
        try:
            offer = offered(task, name, epsilon, n)
        except ValueError as error:
            refused[name] = error
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
                partial(task.other_errors, offer.protocol, n),
                offer.local_epsilon,
                offer.populations,
            )
        )
    if not candidates:
        raise next(iter(refused.values()), InvalidRequest("this task has no candidates"))

    def needs(item: Candidate) -> float:
        value = float(getattr(item, solved_for))
        return math.inf if math.isnan(value) else value

    # Of equal needs the shortest reports come first, then the least errors, then what the task has
    # first: so on every machine, however it rounds
    candidates = ordered(
        candidates,
        needs,
        lambda item: item.bits or 0,
        lambda item: math.inf if math.isnan(item.error) else item.error,
    )
    first = next((item for item in candidates if item.name != task.baseline), candidates[0])
    preferred, why = "", ""
    if first.name not in task.added:  # the task knows nothing of those
        preferred, why = task.preferred(first.epsilon, first.n or 0)
    best = next((item for item in candidates if item.name == preferred), first)
    if solved_for != "error" or not why or best.name != preferred:
        why = _reason(candidates, best, solved_for)
    if candidates[0].name == task.baseline and best is not candidates[0]:
        why += (
            f"; {task.baseline} ranks first, and learns nothing from reports, which are too few or"
            " too private here to tell more"
        )
    if preferred in unknown:
        why += (
            f", of those of which something is predicted; {preferred} is the one to take for a"
            " given n and epsilon"
        )
    bound = task.bound(best.epsilon, best.n or 0)
    return Plan(
        task,
        solved_for,
        target,
        tuple(candidates),
        best,
        why,
        missed,
        unknown,
        within,
        bound,
        tuple((name, str(error)) for name, error in refused.items()),
    )


def _reason(candidates: Sequence[Candidate], best: Candidate, solved_for: str) -> str:
    def value(item: Candidate) -> float:
        return float(getattr(item, solved_for))

    first, what = candidates[0], "number of users" if solved_for == "n" else solved_for
    amount = f"{what} {best.n if solved_for == 'n' else brief(value(best), 4)}"
    if value(best) > value(first):
        bits = (
            f", with {best.bits} bits instead of {first.bits}"
            if (best.bits or 0) < (first.bits or 0)
            else ""
        )
        return (
            f"{amount} is {100 * (value(best) / value(first) - 1):.1f}% above the least, that of"
            f" {first.name}{bits}"
        )
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

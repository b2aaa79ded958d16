"""The planner: candidates ranked by error, or by the epsilon or number of users that they need.

A `Task` knows the protocols for one kind of question, and predicts their errors; `plan` ranks and
searches. Tasks are found by name among the entry points of the group "mechdesign.tasks", which any
package may add to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from mechdesign.accounting import Ledger
from mechdesign.accounting.account import BudgetExceeded
from mechdesign.accounting.pair_law import exact_delta
from mechdesign.base import Rational, brief, shown, whole
from mechdesign.planning import trust as search
from mechdesign.planning.ranking import Plan, ranked
from mechdesign.planning.task import (
    InvalidRequest,
    Task,
    all_names,
    is_unknown,
    predicted_error,
    unknown_task,
)
from mechdesign.planning.trust import (
    CURATOR,
    LARGEST_EPSILON,
    LARGEST_N,
    LEAST_EPSILON,
    LOCAL,
    SHUFFLED,
    TRUSTS,
    USERS,
    ByCurator,
    ByShuffler,
    Unreachable,
    epsilons,
    with_delta,
)
from mechdesign.privacy import exact_epsilon

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "mechdesign.tasks"  #: The group of entry points that name tasks.


def plan(
    task: str,
    domain: Any,
    *,
    n: int | None = None,
    epsilon: float | Rational | None = None,
    error: float | Rational | None = None,
    delta: float | Rational | None = None,
    trust: str = LOCAL,
    ledger: Ledger | None = None,
    **details: Any,
) -> Plan:
    """Rank the protocols for a task by predicted error, or by the epsilon or n that an error takes.

    Of n, epsilon and error exactly two are given (of epsilon and error one, where a curator knows
    the truth), and the third is predicted for each candidate. An epsilon found has four digits,
    rounded up, between 0.001 and 16; an n is exact. Planning spends nothing: `Plan.best` says what
    to spend.

    Parameters
    ----------
    task : str
        "count", "frequencies", "marginals", "heavy hitters", "ranges", "prefixes", "quantiles",
        "shaped", "conjunctions", "curated ranges", "curated marginals", "curated quantiles", or
        a task that another package adds.
    domain : int, sequence of int or mapping of str to int
        Respondents in the group; items; numbers of values of attributes; bits of an item: see the
        task.
    n : int, optional
        How many users report, 1 to 10^12.
    epsilon : float, Fraction, int, str or Decimal, optional
        The privacy loss of a report, or of the release of a curator, above 0; unless ``trust``
        is "local", that of what is published of all users.
    error : float, Fraction, int, str or Decimal, optional
        The target, above 0, in the task's unit.
    delta : float, Fraction, int, str or Decimal, optional
        Of the central promise, strictly between 0 and 1: far below 1/n. Required for "shuffled",
        optional for "curator", and where a curator knows the truth anyway: then mechanisms with
        Gaussian noise are ranked, too.
    trust : {"local", "shuffled", "curator"}, default "local"
        Nobody; a shuffler, who publishes all reports without their senders; a curator, who knows
        all values. The same ``epsilon`` and ``delta`` are then the same promise, about datasets of
        n users that differ in one user's value. For "shuffled" n and epsilon are given, and each
        protocol has the largest local epsilon whose n shuffled reports are proved to keep the
        promise: ``best.local_epsilon``; ``shuffled(best.protocol, n)`` states it in full. Where a
        curator knows the truth anyway, "curator" changes nothing.
    ledger : Ledger, optional
        A budget: an epsilon given must fit what remains for all users. An epsilon not given is all
        that remains; or, if n and error are given, at most that. Of a ledger in a file that is what
        remains now: nothing is reserved, and `Ledger.spend` may still refuse what was planned.
    **details : object
        See the task. Every task takes ``candidates``: classes of one's own, or functions that make
        a protocol, or a mapping of names to these. They are called with what the task's own ones
        are made of: ``(domain, epsilon)`` for frequencies
        and ranges of any kind, ``(domain, k, epsilon)`` for marginals, ``(bits, epsilon, text)``
        for heavy hitters, ``(sizes, epsilon, n)`` for conjunctions, ``(sizes, epsilon)`` and
        ``(domain, q, epsilon)`` for a curator's ranges and quantiles, ``(n, privacy)`` for counts.

    Returns
    -------
    Plan
        The candidates in order, the one to take, and the names of those that cannot serve.

    Raises
    ------
    UnknownTask, InvalidRequest
        The message lists the tasks, or the details, that there are.
    Unreachable
        No candidate reaches the error with an epsilon up to 16, or with 10^12 users.
    BudgetExceeded
        Less than the epsilon remains in the ledger, or nothing.

    Examples
    --------
    >>> found = plan("count", 8, epsilon="0.1", loss="L0", properties=["WH"])
    >>> found.best.name, found.best.protocol.audit().holds
    ('WM', True)
    """
    asked = _task(task, domain, details)
    n, epsilon, target = _number(n), _epsilon(epsilon), _target(error)
    asked = _trusting(
        asked,
        trust,
        _exact("delta", delta, exact_delta, "strictly between 0 and 1"),
        ledger,
        target,
    )
    largest = LARGEST_EPSILON
    if ledger is not None and epsilon is not None:
        ledger.require(epsilon, "this plan")
    elif ledger is not None:
        remaining = ledger.remaining  # read once: other processes may spend from the same file
        if remaining <= 0:
            raise BudgetExceeded(LEAST_EPSILON, remaining, "the smallest plan")
        if target is None or (n is None and asked.users_report):
            epsilon = remaining
        else:
            largest = min(largest, remaining)
    _check_given(asked, n, epsilon, target)
    if target is None:
        return ranked(asked, "error", None, dict.fromkeys(all_names(asked), (epsilon, n)))
    if epsilon is None:
        scale, within = epsilons(largest), f"with an epsilon of at most {brief(largest)}"
    else:
        scale, within = USERS, f"with at most {LARGEST_N} users"

    def place(value: Any) -> tuple[Any, Any]:
        return (value, n) if epsilon is None else (epsilon, value)

    def least(name: str) -> Any:
        return search.least(
            lambda value: predicted_error(asked, name, *place(value)), target, scale
        )

    needed = {name: least(name) for name in all_names(asked)}
    reached = {name: place(value) for name, value in needed.items() if value is not None}
    missed = tuple(name for name in needed if name not in reached)
    if not reached:
        end = (
            [predicted_error(asked, name, *place(scale.value(scale.last))) for name in missed]
            if scale.last >= 0
            else []
        )
        raise Unreachable(target, min(end, default=math.inf), within)
    unknown = tuple(
        name for name in missed if is_unknown(asked, name, *place(scale.value(scale.last)))
    )
    missed = tuple(name for name in missed if name not in unknown)
    return ranked(
        asked,
        "epsilon" if epsilon is None else "n",
        target,
        reached,
        missed=missed,
        unknown=unknown,
        within=within,
    )


def task_names() -> tuple[str, ...]:
    """Return the tasks there are, of all installed packages."""
    return tuple(sorted(_entries()))


def task_key(name: Any) -> str:
    """Return the name of a task in entry points, as "heavy-hitters"; "" for what is no text."""
    if not isinstance(name, str):
        return ""
    return "-".join(name.lower().replace("_", " ").replace("-", " ").split())


def _entries() -> dict[str, EntryPoint]:
    from importlib.metadata import entry_points  # takes as long as the rest of this package

    return {entry.name: entry for entry in entry_points(group=GROUP)}


def known_task(name: Any) -> EntryPoint:
    """Return the task of this name, not yet loaded; UnknownTask if there is none."""
    entries = _entries()
    key = task_key(name)
    if key not in entries:
        raise unknown_task(name, sorted(entries))
    return entries[key]


def _task(name: str, domain: Any, details: dict[str, Any]) -> Task:
    key, kind = task_key(name), known_task(name).load()
    allowed = [item.name for item in fields(kind) if item.name != "domain"]
    unknown = [detail for detail in details if detail not in allowed]
    if unknown:
        known = f"its details are {', '.join(allowed)}" if allowed else "it has no details"
        raise InvalidRequest(f"{key} does not know {', '.join(unknown)}; {known}")
    try:
        made: Task = kind(domain, **details)
        _ = made.added  # what is wrong with them is wrong now
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"{key}: {error}") from error
    return made


def _trusting(
    asked: Task, trust: Any, delta: Fraction | None, ledger: Ledger | None, target: float | None
) -> Task:
    """Return the task of the same question under a central promise, if there is one."""
    if trust not in TRUSTS:
        raise InvalidRequest(f"trust must be one of {', '.join(TRUSTS)}, got {shown(trust)}")
    if trust != SHUFFLED and not asked.users_report and delta is not None:
        weaker = with_delta(asked, delta)
        if weaker is not asked:
            return weaker
    if trust == LOCAL:
        if delta is not None:
            raise InvalidRequest(
                'delta is for a central promise, trust="shuffled" or "curator": the epsilon of a'
                " report, or of a release, holds with a delta of 0"
            )
        return asked
    if trust == CURATOR:
        if not asked.users_report:
            return asked
        curated = asked.by_curator()
        if asked.added:
            raise InvalidRequest(
                "candidates that users report by are not ranked with a curator's: give those to a"
                f" plan for {curated.task}"
            )
        answering = _task(curated.task, curated.domain, curated.details)
        return ByCurator(asked.domain, asked, answering, curated.changed, delta)
    if not asked.users_report:
        raise InvalidRequest(
            "here a curator knows the truth and no user reports: there is nothing to shuffle"
        )
    if delta is None:
        raise InvalidRequest(
            'trust="shuffled" needs a delta strictly between 0 and 1, far below 1/n'
        )
    if target is not None or ledger is not None:
        raise InvalidRequest(
            'trust="shuffled" takes n and epsilon, and predicts the error: give no error and no'
            " ledger"
        )
    return ByShuffler(asked.domain, asked, delta)


def _exact(what: str, given: Any, read: Callable[[Any], Fraction], wanted: str) -> Fraction | None:
    """Return a number that is given; InvalidRequest for what is not the one that is wanted."""
    if given is None:
        return None
    try:
        return read(given)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"{what} must be {wanted}, got {shown(given)}") from error


def _number(n: Any) -> int | None:
    if n is None:
        return None
    return whole(n, "n", 1, LARGEST_N, what="a number of users", error=InvalidRequest)


def _epsilon(epsilon: Any) -> float | Fraction | None:
    value = _exact("epsilon", epsilon, exact_epsilon, "a finite number above 0")
    if value == 0:
        raise InvalidRequest("epsilon must be above 0: at 0 no answer may depend on any user")
    return epsilon if isinstance(epsilon, float) else value


def _target(error: Any) -> float | None:
    value = _exact("error", error, exact_epsilon, "a finite number above 0")
    if value is None:
        return None
    with suppress(OverflowError):
        if 0 < float(value) < math.inf:
            return float(value)
    raise InvalidRequest(
        f"error must be a finite number above 0, got {shown(error)}: no private answer is always"
        " right"
    )


def _check_given(
    task: Task, n: int | None, epsilon: float | Fraction | None, target: float | None
) -> None:
    values = {"n": n, "epsilon": epsilon, "error": target}
    if not task.users_report:
        if n is not None:
            raise InvalidRequest(
                "here a curator knows the truth and no user reports: give no n, on which the error"
                " does not depend; for errors as fractions of n users plan what reports answer,"
                " such as ranges, with trust curator"
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

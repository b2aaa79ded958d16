"""plan_survey: the protocols for a question about attributes of a schema, and a survey by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from frequency.schema import Attribute, Schema, Survey, Text
from frequency.schema.attribute import ItemAttribute
from mechdesign import InvalidRequest, Ledger, Plan, plan
from mechdesign.base import Rational, brief, listed, printable, shown
from mechdesign.planning.planner import task_key
from mechdesign.planning.ranking import Candidate
from mechdesign.planning.task import unknown_task

MOST_OF_A_MARGINAL = 3  #: How many attributes a marginal has at most, unless it is said.

FEW_ITEMS = 256  #: So many items are all listed, and none of them has to be found.


#: An error of this much tells nothing: so far is 1/2 from a number drawn between 0 and 1.
USELESS = 12**-0.5


class Asked(NamedTuple):
    """The questions of a task about attributes."""

    # from the task's name and attributes to the planner's domain; else InvalidRequest
    domain: Callable[[str, Schema], Any]
    details: Callable[[Schema], dict[str, Any]]  # of the task, that follow from attributes
    error: str  # a sentence about the predicted error, with a place for it


@dataclass(frozen=True)
class SurveyPlan:
    """The protocols for a question, ranked, and a survey by one of them: made by `plan_survey`.

    ``print(found)`` shows the table, why this protocol was taken, and by how much it errs.

    Attributes
    ----------
    task : str
        What is asked.
    schema : Schema
        Of the attributes that are asked for.
    plan : Plan
        The protocols for it.
    chosen : Candidate
        The one that was taken: the plan's best, or the one that was asked for.
    """

    task: str
    schema: Schema
    plan: Plan
    chosen: Candidate

    @cached_property
    def survey(self) -> Survey:
        """The protocol that was taken with the schema: ready to use, and to be saved."""
        return Survey(self.chosen.protocol, self.schema)

    @property
    def expectation(self) -> str:
        """By how much answers are predicted to err, in words."""
        name, error, n = self.chosen.name, self.chosen.error, self.chosen.n
        if not math.isfinite(error):
            return (
                f"{name}: nothing is predicted, since errors rest on the data; try it out on public"
                " or synthetic ones (mechdesign simulate)"
            )
        users = f"{100 * error:.2g} % of the users"
        if n is not None:
            users += (
                f" ({error * n:.3g} of {n})" if error * n < 999 else f" ({error * n:.0f} of {n})"
            )
        of = f"on populations: {self.chosen.resting_on}" if self.chosen.populations else ""
        line = f"{name}: {_TASKS[self.task].error.format(users)}: {of or self.plan.task.error_is}"
        if error < USELESS:
            return line
        users = "" if n is None else f" and {n} users"
        return (
            f"{line}\nanswers would tell nothing at epsilon {brief(self.chosen.epsilon)}{users}:"
            " mechdesign plan says how many users, or which epsilon, an error takes"
        )

    def __str__(self) -> str:
        lines = [str(self.plan)]
        if self.chosen is not self.plan.best:
            lines.append(f"taken, since it was asked for: {printable(self.chosen.name)}")
        return "\n".join([*lines, *map(printable, self.expectation.split("\n"))])


def plan_survey(
    task: str,
    schema: Schema,
    attributes: str | Sequence[str] | None = None,
    *,
    n: int | None = None,
    epsilon: float | Rational | None = None,
    error: float | Rational | None = None,
    protocol: str | None = None,
    ledger: Ledger | None = None,
    **details: Any,
) -> SurveyPlan:
    """A survey by the protocol to take for a question about attributes of a schema.

    `mechdesign.plan`, with the attributes' numbers of items. Nothing is spent.

    Parameters
    ----------
    task : str
        "frequencies", "ranges", "prefixes", "quantiles" and "shaped" ask for one attribute, which
        is ordered but for the first; "marginals" and "conjunctions" for one or more; "heavy
        hitters" for short text, or an attribute of more than 256 items.
    schema : Schema
        With these attributes, and perhaps others.
    attributes : str or sequence of str, optional
        Their names; None: all.
    n : int, optional
        How many users report. Of n, epsilon and error two are given: see `mechdesign.plan`.
    epsilon : float, Fraction, int, str or Decimal, optional
        The privacy loss of a report, above 0.
    error : float, Fraction, int, str or Decimal, optional
        The target, above 0, in the task's unit.
    protocol : str, optional
        The name of one of the task's candidates; None: the recommended one.
    ledger : Ledger, optional
        A budget: see `mechdesign.plan`.
    **details : object
        Of the task: see `mechdesign.plan`. Marginals are of all attributes, by default ``k`` <= 3.

    Returns
    -------
    SurveyPlan
        ``.survey`` is ready to use, ``.plan`` says why.

    Raises
    ------
    UnknownTask
        No such question may be asked of a schema.
    InvalidRequest
        Of these attributes it cannot be asked; no such protocol; or as for `mechdesign.plan`.
    ValueError
        Attributes that are not there.
    Unreachable, BudgetExceeded
        As for `mechdesign.plan`.

    Examples
    --------
    >>> from frequency import Categorical, Numeric, Schema
    >>> age = Numeric("age", low=0, high=120, whole=True, unit="years")
    >>> people = Schema([age, Categorical("sex", ["female", "male"])])
    >>> found = plan_survey("frequencies", people, "sex", epsilon=1, n=100_000)
    >>> found.chosen.name, found.survey.schema.names
    ('GRR', ('sex',))
    >>> found.expectation.rpartition(":")[0]
    'GRR: the share of a rare item errs by about 0.3 % of the users (303 of 100000)'
    """
    key = task_key(task)
    if key not in _TASKS:
        raise unknown_task(task, _TASKS)
    part = schema if attributes is None else schema.project(attributes)
    asked = _TASKS[key]
    domain, fixed = asked.domain(key, part), asked.details(part)
    clashes = [name for name in details if name in fixed and name != "k"]
    if clashes:
        raise InvalidRequest(f"{key}: {listed(clashes)} follows from the attribute")
    if "days" in details:
        raise InvalidRequest(
            f"{key}: a survey is asked once; mechdesign.plan is for several days, without a schema"
        )
    result = plan(
        key, domain, n=n, epsilon=epsilon, error=error, ledger=ledger, **{**fixed, **details}
    )
    chosen = result.best if protocol is None else _named(result, protocol)
    return SurveyPlan(key, part, result, chosen)


def _named(found: Plan, name: str) -> Candidate:
    for candidate in found.candidates:
        if candidate.name == name:
            return candidate
    refused = dict(found.refused)
    if name in refused:
        raise InvalidRequest(f"{name} cannot serve: {refused[name]}")
    if name in found.unreachable:
        raise InvalidRequest(f"{name} is not predicted to reach that error {found.within}")
    if name in found.unknown:
        raise InvalidRequest(
            f"nothing is predicted of {name}: give n and epsilon instead of an error"
        )
    names = ", ".join(repr(candidate.name) for candidate in found.candidates)
    raise InvalidRequest(f"there is no protocol {shown(name)} for this; there are {names}")


# ------------------------------------------------------------------------------------------- tasks


def _listable(one: Attribute) -> ItemAttribute:
    if not isinstance(one, ItemAttribute):
        raise InvalidRequest(
            f"{printable(one.name)} is text, which nobody can list: heavy-hitters finds what is"
            " frequent"
        )
    return one


def _single(task: str, schema: Schema) -> Attribute:
    if len(schema) > 1:
        raise InvalidRequest(
            f"{task} asks for one attribute, got {listed(schema.names)}; several at once are for"
            " conjunctions, and their joint distribution for marginals"
        )
    return schema.attributes[0]


def _items(task: str, schema: Schema) -> int:
    return _listable(_single(task, schema)).size


def _ordered_items(task: str, schema: Schema) -> int:
    attribute = _listable(_single(task, schema))
    if not attribute.ordered:
        raise InvalidRequest(
            f"{printable(attribute.name)} has no order, which {task} needs: its labels are for"
            " frequencies"
        )
    return attribute.size


def _records(task: str, schema: Schema) -> Any:
    for attribute in schema:
        _listable(attribute)
    return schema.domain


def _bits(task: str, schema: Schema) -> int:
    attribute = _single(task, schema)
    if isinstance(attribute, Text):
        return 8 * attribute.bytes
    if attribute.size <= FEW_ITEMS:
        raise InvalidRequest(
            f"{printable(attribute.name)} has {attribute.size} items, which frequencies lists"
            f" all: {task} is for short text, and for more than {FEW_ITEMS} items"
        )
    return (attribute.size - 1).bit_length()


def _nothing(schema: Schema) -> dict[str, Any]:
    return {}


_TASKS: dict[str, Asked] = {
    "frequencies": Asked(_items, _nothing, "the share of a rare item errs by about {}"),
    "ranges": Asked(_ordered_items, _nothing, "a range errs by about {}"),
    "prefixes": Asked(_ordered_items, _nothing, "the share up to a value errs by about {}"),
    "quantiles": Asked(_ordered_items, _nothing, "the rank of a quantile errs by at most {}"),
    "shaped": Asked(_ordered_items, _nothing, "a range errs by about {}"),
    "marginals": Asked(
        _records,
        lambda schema: {"k": min(len(schema), MOST_OF_A_MARGINAL)},
        "a cell of a marginal errs by about {}",
    ),
    "conjunctions": Asked(
        _records,
        lambda schema: {
            "categorical": [attribute.name for attribute in schema if not attribute.ordered],
            "apart": schema.apart,
        },
        "a conjunction errs by about {}",
    ),
    "heavy-hitters": Asked(
        _bits,
        lambda schema: {"text": isinstance(schema.attributes[0], Text)},
        "what at least {} have is found with 95 %",
    ),
}

"""Task: a kind of question, the protocols that answer it, and their predicted errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

from mechdesign import named
from mechdesign.base import brief, listed, meant, set_fields, shown, whole
from mechdesign.exceptions import MechanismError, PrivacyViolation
from mechdesign.losses import L0, L1, L2, Loss
from mechdesign.mechanism.comparison import UNBIASED, StandardErrors
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.optimisation.optimal import design
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, resolve


class InvalidRequest(MechanismError, ValueError):
    """The error that a plan cannot be made from these arguments.

    Not two of n, epsilon and error are given, one is out of range, or a detail is unknown.
    """


class UnknownTask(MechanismError, ValueError):
    """The error that no installed package has a task of this name."""


def unknown_task(name: object, known: Iterable[str]) -> UnknownTask:
    """Return the error for a name that is not among those known: it lists these."""
    names = list(known)
    there = listed(names) or "none: install the package"
    return UnknownTask(f"unknown task {shown(name)}; there are {there}{meant(name, names)}")


@dataclass(frozen=True)
class Offer:
    """A protocol, and what is known of it beforehand.

    Attributes
    ----------
    protocol : Mechanism or protocol
        Ready to use.
    error : float
        Predicted, in the task's unit; NaN where nothing is known.
    bits : int or None
        The information in a report, in bits; None where no user reports.
    client, server : str
        Elementary steps to make a report and to estimate from n, up to a constant; empty if not
        stated.
    local_epsilon : float, Fraction or None
        The privacy loss of a report alone, if epsilon is that of all shuffled reports.
    populations : tuple of (str, float)
        If the error rests on the population: the errors predicted on some, by name; ``error`` is
        their root mean square.
    """

    protocol: Any
    error: float
    bits: int | None = None
    client: str = ""
    server: str = ""
    local_epsilon: float | Fraction | None = None
    populations: tuple[tuple[str, float], ...] = ()


class CuratedTask(NamedTuple):
    """A curator's task that answers the question of a task of reports, in numbers of users.

    Attributes
    ----------
    task : str
        The name of the curator's task among the entry points.
    domain : object
        As of the task of reports.
    details : dict of str to object
        Of that task.
    changed : int, default 2
        How often a mechanism's epsilon is lost when one user's value changes: 2 if it is the loss
        by one user more or less.
    """

    task: str
    domain: Any
    details: dict[str, Any]
    changed: int = 2


@dataclass(frozen=True)
class Task(ABC):
    """A kind of question: its candidates, and their predicted errors.

    A subclass is a frozen dataclass: further fields are the details that may be given. A package
    registers the class by an entry point.

    Attributes
    ----------
    domain : int, sequence of int or mapping of str to int
        The number of items, of respondents or of bits, or the numbers of values of the attributes.
    candidates : sequence or mapping, default ()
        Protocols of one's own to rank with the others: classes, or functions of what makes the
        task's own ones; by their names, or those of a mapping.
    """

    domain: Any
    candidates: Any = field(default=(), kw_only=True)

    #: Whether n users report; False where a curator knows the truth.
    users_report: ClassVar[bool] = True

    #: What `mechdesign plan` may be given for it, as an example.
    example: ClassVar[str] = "--domain 64 --n 100000 --epsilon 1"

    symbols: ClassVar[str] = ""  #: The meaning of the letters of the costs.

    other_errors_are: ClassVar[str] = ""  #: The meaning of the names of `other_errors`.

    #: What is recommended, or to be known before, in a sentence; empty where nothing is.
    advice: ClassVar[str] = ""

    #: The page of the documentation that describes the task's own candidates, in words, if any.
    described: ClassVar[str] = ""

    #: Whether `error_is` is of one population, and a candidate's may be of several others.
    one_population: ClassVar[bool] = True

    #: The one whom a central promise trusts; empty where only the protocols promise anything.
    trust: ClassVar[str] = ""

    @property
    def trusted(self) -> str:
        """The trust that is needed, in a sentence."""
        return ""

    @property
    def central_delta(self) -> Fraction:
        """The delta of a central promise."""
        return Fraction(0)

    @property
    @abstractmethod
    def question(self) -> str:
        """The question that is asked, in words."""

    @property
    @abstractmethod
    def error_is(self) -> str:
        """The meaning of the error, in words."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the candidates."""

    @property
    def baseline(self) -> str:
        """The candidate that learns nothing from reports, if there is one.

        It is ranked to be compared with, and never recommended.
        """
        return ""

    @abstractmethod
    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        """Return a candidate at this epsilon, for n reports, with its predicted error.

        Parameters
        ----------
        name : str
            One of `names`.
        epsilon : float or Fraction
            The privacy loss of one report, or of the release, above 0.
        n : int
            The number of reports; ignored where a curator knows the truth.

        Returns
        -------
        Offer

        Raises
        ------
        ValueError
            The candidate cannot serve at this epsilon and n.
        """

    def error(self, name: str, epsilon: float | Fraction, n: int) -> float:
        """Return the predicted error of a candidate alone, for searches.

        Parameters
        ----------
        name : str
            One of `names`.
        epsilon : float or Fraction
            The privacy loss of one report, or of the release, above 0.
        n : int
            The number of reports; ignored where a curator knows the truth.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            As `offer` does.
        """
        return self.offer(name, epsilon, n).error

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        """Return a candidate of one's own at this epsilon, as `offer` gives the task's.

        Parameters
        ----------
        candidate : callable
            One of the ``candidates``.
        epsilon : float or Fraction
            The privacy loss of one report, or of the release, above 0.
        n : int
            The number of reports; ignored where a curator knows the truth.

        Returns
        -------
        Offer

        Raises
        ------
        ValueError
            The candidate cannot serve at this epsilon and n.
        InvalidRequest
            The task takes no candidates.
        """
        raise InvalidRequest(f"a plan for {self.question} takes no candidates")

    @cached_property
    def added(self) -> dict[str, Callable[..., Any]]:
        """The candidates of one's own, by name.

        Raises
        ------
        InvalidRequest
            One that cannot be called, or a name that occurs twice.
        """
        given = self.candidates
        pairs = (
            list(given.items())
            if isinstance(given, Mapping)
            else [(getattr(item, "__name__", ""), item) for item in given]
        )
        for name, item in pairs:
            if not callable(item) or not isinstance(name, str) or not name:
                raise InvalidRequest(
                    "candidates are classes, or functions of what makes the task's own ones, or a"
                    f" mapping of names to these; got a {type(item).__name__}"
                    + (" without a name" if callable(item) else "")
                )
        names = [*self.names, *(name for name, _ in pairs)]
        if len(set(names)) < len(names):
            raise InvalidRequest(f"a candidate's name occurs twice among {', '.join(names)}")
        return dict(pairs)

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        """Return the recommended candidate, and why.

        Parameters
        ----------
        epsilon : float or Fraction
            The privacy loss of one report, or of the release, above 0.
        n : int
            The number of reports; ignored where a curator knows the truth.

        Returns
        -------
        name, reason : str
            One of `names`, and why, in words; both empty: the first of the ranking is taken.
        """
        return "", ""

    def by_curator(self) -> CuratedTask:
        """Return how a trusted curator answers the same question.

        Its errors, divided by n, are in the unit of this task.

        Raises
        ------
        InvalidRequest
            There is no such task.
        """
        raise InvalidRequest(f"no mechanism of a curator is known for {self.question}")

    def other_errors(self, protocol: Any, n: int | None) -> tuple[tuple[str, float], ...]:
        """Return the errors that a plan shows of a candidate beside the one it is ranked by.

        Parameters
        ----------
        protocol : Mechanism or protocol
            That of an `Offer`.
        n : int or None
            The number of reports; None where a curator knows the truth.

        Returns
        -------
        tuple of (str, float)
            Short names of errors, the same for all candidates, and values; NaN where there is none.
        """
        return ()

    def bound(self, epsilon: float | Fraction, n: int) -> str:
        """Return what holds of every protocol, in a sentence.

        Parameters
        ----------
        epsilon : float or Fraction
            The privacy loss of one report, or of the release, above 0.
        n : int
            The number of reports; ignored where a curator knows the truth.

        Returns
        -------
        str
            A lower bound on the error, or what else follows from both, in words that go on after
            "at epsilon .. and n = .."; empty if nothing does.
        """
        return ""


def all_names(task: Task) -> tuple[str, ...]:
    """Return the task's own candidates, then those that were added."""
    return (*task.names, *task.added)


def offered(task: Task, name: str, epsilon: Any, n: int | None) -> Offer:
    """Return a candidate of either kind at this epsilon, for n reports."""
    if name in task.added:
        offer = task.offer_of(task.added[name], epsilon, n or 0)
        audit, allowed = offer.protocol.audit(), 1 / Privacy.from_epsilon(epsilon).alpha
        if audit.ratio > allowed:
            raise PrivacyViolation(audit.ratio, allowed, audit.output, audit.inputs)
        return offer
    return task.offer(name, epsilon, n or 0)


def predicted_error(task: Task, name: str, epsilon: Any, n: int | None) -> float:
    """Return the predicted error of a candidate; infinite where it cannot serve or is unknown."""
    try:
        error = (
            offered(task, name, epsilon, n).error
            if name in task.added
            else task.error(name, epsilon, n or 0)
        )
    except ValueError:
        return math.inf
    return math.inf if math.isnan(error) else error


def is_unknown(task: Task, name: str, epsilon: Any, n: int | None) -> bool:
    """Whether a candidate can serve but nothing is predicted of it."""
    try:
        return math.isnan(offered(task, name, epsilon, n).error)
    except ValueError:
        return False


# ------------------------------------------------------------------------------------------------
# The task "count" of the planner: a curator's count, by the mechanisms of this package.


#: The largest group whose count the task "count" plans for.
#:
#: Tables are exact, and a search makes many.
LARGEST_GROUP = 128

# The largest group of which linear programs are among the candidates.
#
# A search solves a few of them at every step, which still takes a second or so.
_PROGRAMS = 24


@dataclass(frozen=True)
class Count(Task):
    """A curator's count of the respondents in a group, 0 .. ``domain``.

    Candidates are the named mechanisms and, for small groups, linear programs. The table shows both
    `StandardErrors` of each.

    Attributes
    ----------
    domain : int
        How many respondents the group has, 1 to 128.
    loss : str, default "RMSE"
        For uniform counts: "RMSE", "L0", the chance to be wrong, or "L1", the mean absolute error.
    properties : str or iterable of str, optional
        What the mechanism must have: short names of the seven properties, such as ["WH", "CM"], or
        "WH,CM".
    """

    example: ClassVar[str] = "--domain 8 --epsilon 1"

    loss: str = "RMSE"
    properties: Any = ()

    users_report: ClassVar[bool] = False
    other_errors_are: ClassVar[str] = UNBIASED
    described: ClassVar[str] = (
        "docs/protocols/counts; L1+CM, L2+CM: designs of least absolute and squared error with CM"
    )

    def __post_init__(self) -> None:
        whole(self.domain, "domain", 1, LARGEST_GROUP, what="the size of the group")
        if self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {', '.join(_LOSSES)}, got {shown(self.loss)}")
        given = self.properties.split(",") if isinstance(self.properties, str) else self.properties
        names = tuple(
            resolve(item.strip() if isinstance(item, str) else item).text for item in given
        )
        unknown = [name for name in names if name not in {item.short for item in SEVEN}]
        if unknown:
            raise ValueError(
                f"properties must be among {' '.join(item.short for item in SEVEN)}, got"
                f" {', '.join(unknown)}"
            )
        set_fields(self, domain=int(self.domain), properties=names)

    @property
    def question(self) -> str:
        asked = f", with {' '.join(self.properties)}" if self.properties else ""
        return f"the count of a group of {self.domain}{asked}"

    @property
    def error_is(self) -> str:
        return f"{_LOSSES[self.loss]}, for uniformly distributed counts"

    @property
    def names(self) -> tuple[str, ...]:
        return ("GM", "EM", "UM", *(_DESIGNS if self.domain <= _PROGRAMS else ()))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        mechanism = _count_mechanism(
            name, self.domain, Privacy.from_epsilon(epsilon).alpha, self.properties
        )
        return self._offer(name, mechanism, epsilon)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        privacy = Privacy.from_epsilon(epsilon)
        mechanism = candidate(self.domain, privacy)
        if not isinstance(mechanism, Mechanism) or mechanism.inputs != self.domain + 1:
            raise ValueError(f"a candidate is a mechanism of counts 0 .. {self.domain}")
        return self._offer("a candidate", mechanism, epsilon)

    def _offer(self, name: str, mechanism: Mechanism, epsilon: float | Fraction) -> Offer:
        properties = mechanism.properties()
        lacking = [short for short in self.properties if not properties[short]]
        if lacking:
            raise ValueError(
                f"{name} does not have {' '.join(lacking)} for a group of {self.domain} at epsilon"
                f" {brief(epsilon)}"
            )
        errors = mechanism.error_distribution()
        error = (
            errors.rmse
            if self.loss == "RMSE"
            else float(errors.tail() if self.loss == "L0" else mechanism.loss(L1()))
        )
        return Offer(mechanism, error)

    def other_errors(self, protocol: Mechanism, n: int | None) -> tuple[tuple[str, float], ...]:
        errors = StandardErrors.of(protocol)
        unbiased = math.nan if errors.unbiased is None else errors.unbiased
        both = ("RMSE", errors.published), ("unbiased SE", unbiased)
        return both[1:] if self.loss == "RMSE" else both

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        if self.loss != "L0" or self.domain > _PROGRAMS:
            return "", ""
        chosen = named.recommend(
            self.domain, alpha=Privacy.from_epsilon(epsilon).alpha, properties=self.properties
        )
        return chosen.name, chosen.reason


_LOSSES = {
    "RMSE": "root mean square error",
    "L0": "chance to be wrong",
    "L1": "mean absolute error",
}

# The losses that linear programs minimise, by the name of the candidate.
#
# They have the properties asked for, and WH (WM) or CM as well: without those, some counts are
# never reported.
_DESIGNS: dict[str, Loss] = {"WM": L0(), "L1+CM": L1(), "L2+CM": L2()}


@lru_cache(maxsize=256)
def _count_mechanism(name: str, n: int, alpha: Fraction, properties: tuple[str, ...]) -> Mechanism:
    if name == "UM":
        return named.uniform(n)
    if name in _DESIGNS:
        wanted = {"WH", "RM", "S"} if name == "WM" else {"CM"}
        if "CH" in properties:
            wanted.add("CM")  # the loss is the same then, and the program shorter
        return design(
            n, Privacy(alpha=alpha), _DESIGNS[name], sorted(wanted.union(properties))
        ).mechanism
    return {"GM": named.geometric, "EM": named.explicit_fair}[name](n, alpha=alpha)

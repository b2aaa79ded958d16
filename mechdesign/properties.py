"""Structural properties of count mechanisms (thesis 6.4, 7.1.3), as constraints and as checks.

To add a property, subclass `Property`: give it a ``short`` name and the constraints that define it.
The same constraints go into the program, into the certificate and into the exact check of a table,
so nothing else needs to be kept consistent with them.

>>> from mechdesign.lp.constraints import Constraints
>>> class EqualEnds(Property):
...     "The two extreme counts are reported truthfully equally often."
...     short = "ENDS"
...     def constraints(self, at, privacy):
...         yield Constraints.equal(at[0, 0], at[-1, -1])
>>> from mechdesign import named
>>> EqualEnds().holds(named.geometric(3, alpha="1/2"))
True
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeAlias

import numpy as np

from mechdesign.base import Integers, brief, exact, set_fields, to_text
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.table import IndexTable, Table
from mechdesign.mechanism.values import Bands
from mechdesign.privacy import Privacy

_REGISTRY: dict[str, type[Property]] = {}


class Property(ABC):
    """A set of mechanisms described by linear constraints.

    Subclasses with a ``short`` name can be asked for by that name.

    Attributes
    ----------
    short : str
        The name in `design` and in files. Unique among the properties; no spaces or colons. A file
        whose certificate names a property of yours can be loaded once the module that defines it
        has been imported.
    implies : frozenset of str
        Short names of properties that follow from this one for every mechanism; their constraints
        are then left out. A wrong entry is detected: the finished mechanism is checked against
        everything that was asked for.
    """

    short: ClassVar[str]
    implies: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "short" in cls.__dict__:
            if not re.fullmatch("[^\\s:]+", cls.short) or cls.short == "privacy":
                raise ValueError(
                    "a short name has neither spaces nor colons, and is not 'privacy'; got"
                    f" {cls.short!r}"
                )
            known = _REGISTRY.get(cls.short)
            if known is not None and (known.__module__, known.__qualname__) != (
                cls.__module__,
                cls.__qualname__,
            ):
                raise ValueError(
                    f"the short name {cls.short!r} already belongs to {known.__qualname__}"
                )
            _REGISTRY[cls.short] = cls

    @abstractmethod
    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterable[Constraints]:
        """Return the constraints that define the property, in groups with the same coefficients.

        Parameters
        ----------
        at : IndexTable
            ``at[i, j]`` is the number of the variable P[i, j] = Pr[output i | input j], shape
            (outputs, inputs); slice it freely. ``at.truth`` are the cells where the output is the
            input, ``at.distances`` how far every output is from every input, ``at.outputs`` and
            ``at.inputs`` what they stand for.
        privacy : Privacy
            That of the mechanism, of its epsilon alone, for constraints that depend on alpha.

        Returns
        -------
        Iterable[Constraints]
        """

    def holds(self, mechanism: Table) -> bool:
        """Whether a mechanism has the property, exactly."""
        if mechanism.closed is not None and type(self) in map(type, SEVEN):
            return self.short in mechanism.closed.holds
        at = IndexTable(mechanism.output_values, mechanism.input_values)
        entries = [weight for row in mechanism.weights for weight in row]
        return not any(
            True
            for group in self.constraints(at, mechanism.promise.pure)
            for _ in group.violations(entries, mechanism.denominator)
        )

    @property
    def text(self) -> str:
        """The short name, and a parameter after a colon if there is one: `resolve` takes it back.

        A class with a parameter overrides it, as `OutputRatio` does: files and messages name the
        property by it.
        """
        return self.short

    @classmethod
    def from_parameter(cls, parameter: str) -> Property:
        """The property with what follows the colon of `text`.

        Unless a subclass says otherwise, that is its one argument.
        """
        return cls(parameter)  # type: ignore[call-arg]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _state(self) == _state(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


#: A property, its class, or its short name (with a parameter after a colon: ``"OR:9/10"``).
PropertyLike: TypeAlias = Property | type[Property] | str


class RowHonesty(Property):
    """RH, eq. 6.2: output i is most probable when the input is i."""

    short = "RH"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        apart, true = at.distances, np.sort(at.truth)
        rows = true // at.inputs.size
        truth, others = np.broadcast_arrays(true[:, None], at[rows])
        compared = (apart[rows] > 0) | (truth == others)
        yield Constraints.at_least(truth[compared], others[compared])


class RowMonotone(Property):
    """RM, eq. 6.3: output i is no more probable the farther the input is from i."""

    short = "RM"
    implies = frozenset({"RH"})

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        at.require_ordered()
        yield _not_growing(at[:], at.distances)
        if isinstance(at.outputs, Bands):  # the counts of a band are all at the same distance, 0
            yield from RowHonesty().constraints(at, privacy)


class ColumnHonesty(Property):
    """CH, eq. 6.4: the truth is the most probable output."""

    short = "CH"
    implies = frozenset({"WH"})

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        yield Constraints.at_least(at.truth[None, :], at)


class ColumnMonotone(Property):
    """CM, eq. 6.5: outputs are no more probable the farther they are from the truth."""

    short = "CM"
    implies = frozenset({"CH", "WH"})

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        at.require_ordered()
        yield _not_growing(at[:].T, at.distances.T)


class Fairness(Property):
    """F, eq. 6.6: the truth is reported with the same probability, whatever it is."""

    short = "F"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        truth = at.truth
        yield Constraints.equal(truth[:-1], truth[1:])


class WeakHonesty(Property):
    """WH, eq. 6.8: the truth is reported at least as often as by a uniform guess."""

    short = "WH"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        yield Constraints.at_least_value(at.truth, Fraction(1, len(at)))


class Symmetry(Property):
    """S, eq. 6.9: P[i, j] = P[n-i, n-j].

    For rectangular tables the last output and the last input take the place of n.
    """

    short = "S"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        half = (at.size + 1) // 2
        flat = at.ravel()
        yield Constraints.equal(flat[:half], flat[::-1][:half])


@dataclass(frozen=True, repr=False)
class OutputRatio(Property):
    """OR, thesis 7.1.3: neighbouring outputs of one input differ by a factor of at most 1/beta.

    beta is alpha unless given.
    """

    beta: Fraction | None = None
    short = "OR"

    def __post_init__(self) -> None:
        if self.beta is not None:
            beta = exact(self.beta, "beta")
            if not 0 < beta <= 1:
                raise ValueError(f"beta must lie in (0, 1], got {brief(beta)}")
            set_fields(self, beta=beta)

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        beta = privacy.alpha if self.beta is None else self.beta
        yield Constraints.at_least(at[:-1], at[1:], beta)
        yield Constraints.at_least(at[1:], at[:-1], beta)

    @property
    def text(self) -> str:
        return self.short if self.beta is None else f"{self.short}:{to_text(self.beta)}"

    def __repr__(self) -> str:
        return "OutputRatio()" if self.beta is None else f"OutputRatio(beta={brief(self.beta)})"


#: The properties of thesis 6.4, in its order: RH RM CH CM F WH S.
SEVEN: tuple[Property, ...] = (
    RowHonesty(),
    RowMonotone(),
    ColumnHonesty(),
    ColumnMonotone(),
    Fairness(),
    WeakHonesty(),
    Symmetry(),
)

_JOINTLY: tuple[tuple[frozenset[str], str], ...] = (
    # Thesis 6.4, below eq. 6.6: every entry is at most the common diagonal
    (frozenset({"F", "RH"}), "CH"),
    (frozenset({"F", "CH"}), "RH"),
)


def resolve(item: PropertyLike) -> Property:
    """Return the property of an instance, a class or a short name.

    ValueError for an unknown name, or a parameter that the property does not take or forgets.
    """
    if isinstance(item, Property):
        if "short" not in type(item).__dict__:
            raise ValueError(
                f"the property {type(item).__qualname__} needs a short name of its own"
            )
        return item
    if isinstance(item, type) and issubclass(item, Property):
        return resolve(item())
    if isinstance(item, str):
        short, colon, parameter = item.partition(":")
        if short in _REGISTRY:
            try:
                result = _REGISTRY[short].from_parameter(parameter) if colon else _REGISTRY[short]()
            except TypeError as error:
                raise ValueError(
                    f"the property {short} does not take the parameter {parameter!r}"
                    if colon
                    else f"the property {short} needs a parameter, after a colon"
                ) from error
            if colon and result.text == short:
                raise ValueError(
                    f"the text of the property {short} does not tell its parameter {parameter!r}:"
                    " override text, as mechdesign.properties.OutputRatio does"
                )
            return result
    raise ValueError(
        f"unknown property {item!r}; known: {', '.join(_REGISTRY)}; one of your own when its module"
        " is imported (--import)"
    )


def implied(short: Iterable[str], aligned: bool = True) -> frozenset[str]:
    """Return everything that follows from the named properties, the names themselves included.

    ``aligned`` says whether outputs and inputs are the same counts: some follow only then.
    """
    known = set(short)
    while True:
        more = set[str]().union(*(_REGISTRY[name].implies for name in known if name in _REGISTRY))
        more |= {result for causes, result in _JOINTLY if aligned and causes <= known}
        if more <= known:
            return frozenset(known)
        known |= more


def irredundant(properties: Iterable[Property], aligned: bool = True) -> list[Property]:
    """Return the properties without those that the others imply: each once, in this order.

    ``aligned`` says whether outputs and inputs are the same counts; some are implied only then.
    """
    kept = list(dict.fromkeys(properties))
    for item in list(kept):
        others = [other for other in kept if other is not item]
        # Of two properties that imply each other only one may be left out: `others` shrinks as
        # they are.
        if item.short in implied(
            (other.short for other in others if other.short != item.short), aligned
        ):
            kept.remove(item)
    return kept


def _state(item: object) -> dict[str, object]:
    slots = (name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ()))
    return {**{name: getattr(item, name, None) for name in slots}, **vars(item)}


def _not_growing(at: Integers, distances: Integers) -> Constraints:
    """Along each row of ``at``, entries do not grow with the distance from the truth."""
    left, right = at[:, :-1], at[:, 1:]
    towards = distances[:, 1:] < distances[:, :-1]
    apart = distances[:, 1:] != distances[:, :-1]
    nearer, farther = np.where(towards, right, left), np.where(towards, left, right)
    return Constraints.at_least(nearer[apart], farther[apart])

"""Requirements of one's own: probabilities of single outputs, errors, unbiasedness, inequalities.

They are properties as those of `mechdesign.properties`, and may be asked for by their texts:
``"at-least:0,0=3/5"``, ``"within:3=9/10"``, ``"unbiased"``, ``"linear:P[0,0] + P[1,1] >= 3/2"``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from mechdesign.base import Rational, brief, exact, set_fields, shown, to_text, whole
from mechdesign.exceptions import InvalidMechanism
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Bands, Counts, Values
from mechdesign.privacy import Privacy
from mechdesign.properties import Property

Relation: TypeAlias = Literal[">=", "<=", "=="]

_CELL = re.compile(r"\s*(-?[0-9]{1,10})\s*,\s*(-?[0-9]{1,10})\s*=\s*(\S+)\s*", re.ASCII)
_DISTANCE = re.compile(r"\s*([0-9]{1,10})\s*=\s*(\S+)\s*", re.ASCII)
_SIDES = re.compile(r"(.*?)(>=|<=|==)(.*)", re.ASCII | re.DOTALL)
_TERM = re.compile(
    r"\s*([+-])?\s*(?:([0-9./xa-f]+)\s*\*?\s*)?P\[\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*\]\s*",
    re.ASCII,
)


@dataclass(frozen=True, repr=False)
class _CellBound(Property):
    """A bound on the probability of one output for one input."""

    output: int
    input: int
    probability: Fraction

    def __init__(self, output: int, input: int, probability: Rational) -> None:
        set_fields(
            self,
            output=_count(output, "output"),
            input=_count(input, "input"),
            probability=_probability(probability),
        )

    @classmethod
    def from_parameter(cls, parameter: str) -> Property:
        match = _CELL.fullmatch(parameter)
        if match is None:
            raise ValueError(f"{cls.short} is OUTPUT,INPUT=PROBABILITY, got {shown(parameter)}")
        return cls(int(match[1]), int(match[2]), match[3])

    @property
    def text(self) -> str:
        return f"{self.short}:{self.output},{self.input}={to_text(self.probability)}"

    def __repr__(self) -> str:
        arguments = f"{self.output}, {self.input}, {brief(self.probability)}"
        return f"{type(self).__name__}({arguments})"

    def _cell(self, at: IndexTable) -> int:
        return int(at[_number(at.outputs, self.output), _number(at.inputs, self.input)])


class AtLeast(_CellBound):
    """at-least:I,J=P: output I has probability at least P when the true count is J.

    Parameters
    ----------
    output, input : int
        Counts; of outputs that are bands, a count stands for its band.
    probability : Fraction, int, str or Decimal
        Exact, 0 to 1.

    Raises
    ------
    ValueError
        They are not such numbers.

    Examples
    --------
    >>> AtLeast(0, 0, "0.6").text
    'at-least:0,0=3/5'
    """

    short = "at-least"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        yield Constraints.at_least_value([self._cell(at)], self.probability)


class AtMost(_CellBound):
    """at-most:I,J=P: output I has probability at most P when the true count is J.

    Parameters and errors are those of `AtLeast`.
    """

    short = "at-most"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        yield Constraints.at_most_value([self._cell(at)], self.probability)


@dataclass(frozen=True, repr=False)
class Within(Property):
    """within:D=P: whatever the count, the error is at most D with probability at least P.

    Parameters
    ----------
    distance : int
        At least 0; see `mechdesign.mechanism.values.distances`.
    probability : Fraction, int, str or Decimal
        Exact, 0 to 1.

    Raises
    ------
    ValueError
        They are not such numbers.
    """

    distance: int
    probability: Fraction
    short = "within"

    def __init__(self, distance: int, probability: Rational) -> None:
        set_fields(
            self,
            distance=whole(distance, "the distance"),
            probability=_probability(probability),
        )

    @classmethod
    def from_parameter(cls, parameter: str) -> Property:
        match = _DISTANCE.fullmatch(parameter)
        if match is None:
            raise ValueError(f"within is DISTANCE=PROBABILITY, got {shown(parameter)}")
        return cls(int(match[1]), match[2])

    @property
    def text(self) -> str:
        return f"{self.short}:{self.distance}={to_text(self.probability)}"

    def __repr__(self) -> str:
        return f"Within({self.distance}, {brief(self.probability)})"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        near = at.distances <= self.distance
        for j in range(at.inputs.size):
            yield Constraints.sum_at_least(at[near[:, j], j], self.probability)


@dataclass(frozen=True, repr=False)
class Unbiased(Property):
    """unbiased: the expected output is the true count, whatever it is.

    No private mechanism whose outputs are the counts 0 .. n has it: at 0 every error is upwards.
    Ask for wider outputs, or say what number each output stands for: ``unbiased:T0,T1,...``. Of
    pairs of counts both are unbiased.

    Parameters
    ----------
    values : iterable of (Fraction, int, str or Decimal), optional
        The number that stands for each output, such as the estimate that is made from it; the
        outputs themselves unless given.
    """

    values: tuple[Fraction, ...] | None = None
    short = "unbiased"

    def __init__(self, values: Iterable[Rational] | None = None) -> None:
        given = None if values is None else tuple(exact(value, "a value") for value in values)
        set_fields(self, values=given)

    @classmethod
    def from_parameter(cls, parameter: str) -> Property:
        return cls(parameter.split(","))

    @property
    def text(self) -> str:
        return self.short if self.values is None else f"{self.short}:{self._listed}"

    @property
    def _listed(self) -> str:
        return ",".join(map(to_text, self.values or ()))

    def __repr__(self) -> str:
        return "Unbiased()" if self.values is None else f"Unbiased({shown(self._listed)})"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        truth = at.inputs.coordinates
        if self.values is None:
            stand_for = [tuple(map(Fraction, each)) for each in at.outputs.coordinates.T.tolist()]
        elif len(self.values) == len(at):
            stand_for = [self.values]
        else:
            raise InvalidMechanism(f"{len(self.values)} values do not fit {len(at)} outputs")
        for counts, terms in zip(truth.T.tolist(), stand_for, strict=True):
            for j, value in enumerate(counts):
                yield Constraints(at[:, j][None, :], terms, Fraction(value), True)


class Inequality(NamedTuple):
    """The constraint ``sum coefficient * P[i, j]`` over ``terms`` in ``relation`` to ``bound``."""

    # the coefficient of each entry, by its row and column, numbered from 0
    terms: Mapping[tuple[int, int], Rational]
    relation: Relation
    bound: Rational


@dataclass(frozen=True, repr=False)
class Linear(Property):
    """linear:...: inequalities and equations between entries, such as P[0,0] + 2*P[1,1] >= 3/2.

    Rows (outputs) and columns (inputs) are numbered from 0, whatever they stand for. Each
    constraint is ``stated`` as its terms (row, column, coefficient), its relation and its bound.

    Parameters
    ----------
    constraints : str or iterable of Inequality
        As a text, constraints separated by semicolons: a sum of terms such as ``P[0,0]``,
        ``-1/3*P[2,2]``, then ``>=``, ``<=`` or ``==``, and an exact number.

    Raises
    ------
    ValueError
        A text that is none of these; no constraint, or one without terms.

    Examples
    --------
    >>> Linear("P[0,0] + 2 P[1,1] >= 1.5").text
    'linear:1*P[0,0] +2*P[1,1] >= 3/2'
    """

    stated: tuple[tuple[tuple[tuple[int, int, Fraction], ...], Relation, Fraction], ...]
    short = "linear"
    _SIGNS: ClassVar[Mapping[str | None, int]] = {None: 1, "+": 1, "-": -1}

    def __init__(self, constraints: str | Iterable[Inequality]) -> None:
        if isinstance(constraints, str):
            constraints = [self._parsed(each) for each in constraints.split(";")]
        stated = []
        for terms, relation, bound in constraints:
            if relation not in (">=", "<=", "=="):
                raise ValueError(f"a relation is >=, <= or ==, got {shown(relation)}")
            sides = {
                (whole(i, "a row"), whole(j, "a column")): exact(c, "a coefficient")
                for (i, j), c in terms.items()
            }
            kept = tuple((i, j, c) for (i, j), c in sorted(sides.items()) if c)
            if not kept:
                raise ValueError("a linear constraint needs an entry P[i,j]")
            stated.append((kept, relation, exact(bound, "a bound")))
        if not stated:
            raise ValueError("no linear constraint was given")
        set_fields(self, stated=tuple(stated))

    @classmethod
    def _parsed(cls, text: str) -> Inequality:
        sides = _SIDES.fullmatch(text)
        if sides is None:
            raise ValueError(f"a linear constraint has one of >=, <=, ==, got {shown(text)}")
        terms: dict[tuple[int, int], Rational] = {}
        place = 0
        while place < len(sides[1]):
            match = _TERM.match(sides[1], place)
            if match is None or (place and match[1] is None):
                raise ValueError(
                    f"expected a term such as +2*P[0,1], got {shown(sides[1][place:].strip())}"
                )
            value = Fraction(1) if match[2] is None else exact(match[2], "a coefficient")
            cell = int(match[3]), int(match[4])
            if cell in terms:
                raise ValueError(f"P[{cell[0]},{cell[1]}] stands twice in {shown(text)}")
            terms[cell] = cls._SIGNS[match[1]] * value
            place = match.end()
        relation: Relation = sides[2]  # type: ignore[assignment]
        return Inequality(terms, relation, exact(sides[3].strip(), "a bound"))

    @property
    def text(self) -> str:
        return f"{self.short}:" + "; ".join(
            " ".join(
                f"{'+' if k and c > 0 else ''}{to_text(c)}*P[{i},{j}]"
                for k, (i, j, c) in enumerate(terms)
            )
            + f" {relation} {to_text(bound)}"
            for terms, relation, bound in self.stated
        )

    def __repr__(self) -> str:
        return f"Linear({shown(self.text.partition(':')[2])})"

    def constraints(self, at: IndexTable, privacy: Privacy) -> Iterator[Constraints]:
        for terms, relation, bound in self.stated:
            rows, columns = zip(*((i, j) for i, j, _ in terms), strict=True)
            if max(rows) >= len(at) or max(columns) >= at.inputs.size:
                raise InvalidMechanism(
                    f"{self!r} names an entry that a table of {len(at)} x {at.inputs.size} has not"
                )
            sign = -1 if relation == "<=" else 1
            yield Constraints(
                at[np.array(rows), np.array(columns)][None, :],
                tuple(sign * c for _, _, c in terms),
                sign * bound,
                relation == "==",
            )


def _count(value: int, name: str) -> int:
    return whole(value, name, -(1 << 31), 1 << 31, what="a count")


def _probability(value: Rational) -> Fraction:
    probability = exact(value, "the probability")
    if not 0 <= probability <= 1:
        raise ValueError(f"a probability lies in 0 to 1, got {brief(probability)}")
    return probability


def _number(values: Values, count: int) -> int:
    """The number of a count, or of the band that it is in, among the inputs or outputs."""
    spans: Iterable[tuple[int, int]] = ()
    if isinstance(values, Bands):
        spans = values.bands
    elif isinstance(values, Counts):
        spans = ((value, value) for value in range(values.low, values.high + 1))
    for number, (low, high) in enumerate(spans):
        if low <= count <= high:
            return number
    raise InvalidMechanism(f"{count} is not among {', '.join(values.labels[:3])}, ...")

"""Privacy: an exact alpha = exp(-epsilon), and which inputs are neighbours.

Neighbours may be at different distances.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, Never, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from mechdesign.base import Rational, brief, exact, fraction, is_whole, set_fields, shown, whole

#: `Privacy.from_epsilon` treats a larger epsilon as this one.
#:
#: Privacy is then stronger than asked for, and e^-1024 is negligible already.
EPSILON_LIMIT = 1024

# `Privacy.from_epsilon` refuses a smaller epsilon above 0: alpha would be too long.
_LEAST = Fraction(1, 1 << 4096)

DISTANCE_LIMIT = 1024  #: The largest distance in a `Metric`: alpha is raised to it, exactly.

# 1 - 2^-24, written out: arithmetic here never uses the caller's decimal context.
_SLACK = Decimal("0.999999940395355224609375")


@dataclass(frozen=True, slots=True, init=False)
class Metric:
    """A distance for every two inputs: metric privacy (thesis 2.4.3 and its reference [61]).

    At distance d, epsilon is allowed d times. Privacy losses add up along a chain of neighbours, so
    the distance ``|j - j'|`` for all pairs states the same privacy as ``neighbours="adjacent"``.
    The table need not obey the triangle inequality.

    Parameters
    ----------
    distances : iterable of iterable of (int or None)
        A square table with a row for each input: 0 on the diagonal, elsewhere an integer from 1 to
        1024, the same from j to j' as from j' to j, or None where j and j' are not neighbours.
        A distance of 0 between different inputs is refused: make them one input.

    Raises
    ------
    TypeError
        A distance that is not an integer.
    ValueError
        A table that is not square or not symmetric, a distance out of range, or no neighbours at
        all; the message names it.

    Examples
    --------
    >>> Metric([[min(abs(j - k), 2) for k in range(4)] for j in range(4)])
    Metric(distances=((0, 1, 2, 2), (1, 0, 1, 2), (2, 1, 0, 1), (2, 2, 1, 0)))
    """

    distances: tuple[tuple[int | None, ...], ...]

    def __init__(self, distances: Iterable[Iterable[int | None]]) -> None:
        table = tuple(
            tuple(None if entry is None else _distance(entry) for entry in row) for row in distances
        )
        for j, row in enumerate(table):
            if len(row) != len(table):
                raise ValueError(
                    f"distances between inputs must be a square table, but row {j} of {len(table)}"
                    f" has {len(row)}"
                )
            for k, distance in enumerate(row):
                if (distance == 0) != (j == k):
                    raise ValueError(
                        f"inputs {j} and {k} cannot be at distance {distance}: 0 is from an input"
                        " to itself"
                    )
                if k < j and distance != table[k][j]:
                    raise ValueError(
                        f"distances must be symmetric: {distance} from input {j} to {k},"
                        f" {table[k][j]} back"
                    )
        if not any(row[k] is not None for j, row in enumerate(table) for k in range(j)):
            raise ValueError(
                "a metric without neighbours protects nothing; give a distance to at least one pair"
            )
        set_fields(self, distances=table)


_NOT_GIVEN: Any = object()

Edges: TypeAlias = tuple[tuple[int, int], ...]
Neighbours: TypeAlias = Literal["adjacent", "all"] | int | Edges | Metric


@dataclass(frozen=True, slots=True, init=False)
class Privacy:
    """A bound on the change of the probability of any output between neighbouring inputs.

    A mechanism P keeps it when ``alpha <= P[i, j] / P[i, j'] <= 1 / alpha`` for every output i and
    all neighbours j, j' (thesis Definition 20; alpha = exp(-epsilon), nearer 1 is more private, 1
    is perfect). Under a `Metric` alpha^d takes the place of alpha for neighbours at distance d.

    Parameters
    ----------
    alpha : Fraction, int, str or Decimal
        An exact rational in (0, 1], by its name. Floats are refused (`InexactNumber`). For an
        epsilon see `from_epsilon`.
    neighbours : str, int, iterable of pairs of int, or Metric, default "adjacent"
        ``"adjacent"``: counts that differ by one (central privacy for a count);
        ``"all"``: every two inputs (local privacy); an integer k >= 1: inputs at distance at most k
        (limited precision, thesis Definition 13); pairs ``[(j, j'), ...]``: exactly these; or a
        `Metric`: those that it gives a distance. Inputs that no chain of neighbours connects are
        not protected from each other.

    Examples
    --------
    >>> Privacy(alpha="9/10")
    Privacy(alpha=9/10, neighbours='adjacent')
    """

    alpha: Fraction
    neighbours: Neighbours

    def __init__(
        self,
        *bare: Never,
        alpha: Rational = _NOT_GIVEN,
        neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent",
    ) -> None:
        if bare or alpha is _NOT_GIVEN:
            raise TypeError(
                "Privacy takes alpha by its name, such as Privacy(alpha='9/10'); for an epsilon"
                " there is Privacy.from_epsilon(0.1)"
            )
        value = exact(alpha, "alpha")
        if not 0 < value <= 1:
            raise ValueError(f"alpha = exp(-epsilon) must lie in (0, 1], got {brief(value)}")
        set_fields(self, alpha=value, neighbours=_neighbours(neighbours))

    @classmethod
    def from_epsilon(
        cls,
        epsilon: float | Rational,
        neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent",
    ) -> Privacy:
        """Return a short rational alpha whose epsilon is at most ``epsilon``, and nearly equal.

        It has the smallest denominator of those whose epsilon lies in
        ``[epsilon * (1 - 2**-24), epsilon]``. The bound alpha >= exp(-epsilon) is rigorous: exp is
        taken with directed rounding, and the fraction is chosen inside the interval that is left.

        Parameters
        ----------
        epsilon : float, Fraction, int, str or Decimal
            0, for an alpha of exactly 1, or any finite number of at least 2^-4096; above 1024 it is
            treated as 1024. A float stands for the binary number that it is; a string is read
            exactly.
        neighbours : str, int, iterable of pairs of int, or Metric, default "adjacent"
            As in `Privacy`.

        Returns
        -------
        Privacy

        Raises
        ------
        ValueError
            An epsilon that is not finite, is below 0, or lies between 0 and 2^-4096.

        Examples
        --------
        >>> Privacy.from_epsilon(0).alpha
        Fraction(1, 1)
        >>> Privacy.from_epsilon(1.0).epsilon <= 1.0
        True
        """
        value = min(exact_epsilon(epsilon), Fraction(EPSILON_LIMIT))
        if value == 0:
            return cls(alpha=1, neighbours=neighbours)
        if value < _LEAST:
            raise ValueError("epsilon must be 0, or at least 2^-4096")
        # Enough digits that 1 - alpha, about epsilon when epsilon is small, keeps some forty of
        # them.
        digits = 60 + max(0, value.denominator.bit_length() - value.numerator.bit_length()) // 3
        down, up = (
            Context(prec=digits, rounding=ROUND_FLOOR),
            Context(prec=digits, rounding=ROUND_CEILING),
        )
        above, below = (
            context.divide(Decimal(value.numerator), Decimal(value.denominator))
            for context in (up, down)
        )
        # Decimal.exp is correctly rounded to nearest whatever the context says, so a step outwards
        # makes it a bound.
        lowest = up.next_plus(up.exp(up.minus(below)))
        highest = down.next_minus(down.exp(down.minus(up.multiply(above, _SLACK))))
        alpha = _simplest_between(Fraction(lowest), Fraction(highest))
        return cls(alpha=alpha, neighbours=neighbours)

    @classmethod
    def of(
        cls,
        privacy: Privacy | float | Rational | None = None,
        *,
        alpha: Rational | None = None,
        neighbours: Neighbours | Iterable[tuple[int, int]] = "adjacent",
    ) -> Privacy:
        """Return the privacy that is given: itself, or by a number, its epsilon, or by an alpha.

        Parameters
        ----------
        privacy : Privacy, float, Fraction, int, str or Decimal, optional
            Itself, or an epsilon as for `from_epsilon`.
        alpha : Fraction, int, str or Decimal, optional
            Instead: exact, in (0, 1].
        neighbours : str, int, iterable of pairs of int, or Metric, default "adjacent"
            As in `Privacy`; of an epsilon or an alpha.

        Returns
        -------
        Privacy

        Raises
        ------
        TypeError
            Both of the two are given, or neither (`InexactNumber`).
        ValueError
            As for `Privacy` and `from_epsilon`.

        Examples
        --------
        >>> Privacy.of(alpha="1/2") == Privacy.of(Privacy(alpha="1/2"))
        True
        """
        if alpha is not None:
            if privacy is not None:
                raise TypeError("give a Privacy or an epsilon, or alpha= instead, and not both")
            return cls(alpha=alpha, neighbours=neighbours)
        if isinstance(privacy, Privacy):
            return privacy
        return cls.from_epsilon(cast("float | Rational", privacy), neighbours)  # refuses None

    @property
    def epsilon(self) -> float:
        """-ln(alpha), rounded up: an upper bound on the loss between neighbours at distance 1."""
        if self.alpha == 1:
            return 0.0
        digits = 40 + self.alpha.denominator.bit_length() // 3
        context = Context(prec=digits, rounding=ROUND_FLOOR)
        below = context.next_minus(
            context.divide(Decimal(self.alpha.numerator), Decimal(self.alpha.denominator))
        )
        return math.nextafter(float(context.next_minus(context.ln(below)).copy_negate()), math.inf)

    @property
    def pure(self) -> Privacy:
        """This promise itself, since it has no delta."""
        return self

    @property
    def delta(self) -> Fraction:
        """0: no output is left out of the bound."""
        return Fraction(0)

    def at(self, epsilon: float | Rational) -> Privacy:
        """Return the promise of another epsilon between the same neighbours."""
        return Privacy.from_epsilon(epsilon, self.neighbours)

    def between(self, neighbours: Neighbours | Iterable[tuple[int, int]]) -> Privacy:
        """Return the same promise between other neighbours."""
        return Privacy(alpha=self.alpha, neighbours=neighbours)

    def pairs(self, inputs: int) -> npt.NDArray[np.int64]:
        """Return the neighbours among inputs ``0 .. inputs-1``: integers of shape (pairs, 2).

        The smaller input of a pair comes first. Raises ValueError when an explicit pair names an
        input that does not exist, or a metric is over another number of inputs.
        """
        inputs = whole(inputs, "inputs", what="a number of inputs")
        if isinstance(self.neighbours, Metric):
            table = self.neighbours.distances
            if len(table) != inputs:
                raise ValueError(
                    f"the metric is between {len(table)} inputs, but there are {inputs}"
                )
            listed = [
                (j, k)
                for j in range(inputs)
                for k in range(j + 1, inputs)
                if table[j][k] is not None
            ]
            return np.array(listed, dtype=np.int64)
        if isinstance(self.neighbours, tuple):
            largest = max((pair[1] for pair in self.neighbours), default=0)
            if largest >= inputs:
                raise ValueError(
                    f"the neighbour list names input {shown(largest)}, but the inputs are 0 .."
                    f" {inputs - 1}"
                )
            return np.array(self.neighbours, dtype=np.int64).reshape(-1, 2)
        first = np.arange(inputs)
        pieces = [
            np.column_stack([first[:-gap], first[gap:]])
            for gap in range(1, _reach(self.neighbours, inputs) + 1)
        ]
        return np.concatenate(pieces) if pieces else np.empty((0, 2), dtype=np.int64)

    def pair_count(self, inputs: int) -> int:
        """Count the `pairs`, also where they would not fit into memory."""
        if isinstance(self.neighbours, (Metric, tuple)):
            return len(self.pairs(inputs))
        inputs = whole(inputs, "inputs", what="a number of inputs")
        reach = _reach(self.neighbours, inputs)
        return reach * inputs - reach * (reach + 1) // 2

    def distances(self, inputs: int) -> npt.NDArray[np.int64]:
        """The loss allowed for each of `pairs`, as a multiple of epsilon: shape (pairs,).

        That is 1 unless a `Metric` says otherwise.
        """
        pairs = self.pairs(inputs)
        if not isinstance(self.neighbours, Metric):
            return np.ones(len(pairs), dtype=np.int64)
        return np.array(
            [self.neighbours.distances[j][k] for j, k in pairs.tolist()], dtype=np.int64
        )

    def steps(self, difference: int) -> int:
        """In how many steps between neighbours a count becomes another, at most.

        The privacy loss between any two counts that differ by so much is at most epsilon times
        this (group privacy).

        Parameters
        ----------
        difference : int
            Of the two counts, at least 0.

        Returns
        -------
        int
            The difference itself, where neighbours differ by one.

        Raises
        ------
        ValueError
            Neighbours are listed, or at distances of their own, so that it is not said by the
            difference; or that is below 0.

        Examples
        --------
        >>> [Privacy(alpha="9/10", neighbours=k).steps(5) for k in ("adjacent", 2, "all")]
        [5, 3, 1]
        """
        difference = whole(difference, "the difference of two counts")
        if isinstance(self.neighbours, (Metric, tuple)):
            raise ValueError(
                "which counts are neighbours is not said by their difference, but by a list or a"
                f" table: {self!r}"
            )
        return -(-difference // _reach(self.neighbours, difference + 1)) if difference else 0

    def __repr__(self) -> str:
        alpha = str(self.alpha) if self.alpha.denominator < 10**20 else f"~{brief(self.alpha, 12)}"
        return f"Privacy(alpha={alpha}, neighbours={shown(self.neighbours)})"


def _reach(neighbours: str | int, inputs: int) -> int:
    """The largest difference between neighbours among so many inputs."""
    if isinstance(neighbours, str):
        neighbours = {"adjacent": 1, "all": inputs}[neighbours]
    return min(neighbours, inputs - 1)


def _distance(value: int) -> int:
    if not is_whole(value):
        raise TypeError(
            f"a distance between inputs must be an integer or None, got {type(value).__name__}"
            f" {shown(value)}"
        )
    if not 0 <= value <= DISTANCE_LIMIT:
        raise ValueError(
            f"a distance between inputs must lie in 0 .. {DISTANCE_LIMIT}, got {shown(value)}"
        )
    return int(value)


def _neighbours(value: Neighbours | Iterable[tuple[int, int]]) -> Neighbours:
    if isinstance(value, Metric):
        return value
    if isinstance(value, str):
        if value not in ("adjacent", "all"):
            raise ValueError(
                "neighbours must be 'adjacent', 'all', a distance, pairs of inputs, or a Metric,"
                f" got {value!r}"
            )
        return value
    if is_whole(value):
        distance = whole(value, "a distance between neighbours", 1)
        return "adjacent" if distance == 1 else distance
    if isinstance(value, int):
        raise ValueError(
            "neighbours must be 'adjacent', 'all', a distance, pairs of inputs, or a Metric, got"
            f" {value!r}"
        )
    edges = set()
    for pair in value:
        first, second = pair
        if not (is_whole(first) and is_whole(second)):
            raise ValueError(f"a pair of neighbours must be two integers, got {shown(pair)}")
        if first == second or min(first, second) < 0:
            raise ValueError(
                f"a pair of neighbours must be two different inputs >= 0, got {shown(pair)}"
            )
        edges.add((int(min(first, second)), int(max(first, second))))
    if not edges:
        raise ValueError("an empty neighbour list protects nothing; name at least one pair")
    return tuple(sorted(edges))


def _simplest_between(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction of smallest denominator in [low, high], 0 < low <= high."""
    # By continued fractions.
    if not 0 < low <= high:
        raise ArithmeticError(f"no fraction lies between {brief(low, 20)} and {brief(high, 20)}")
    terms = []
    while True:
        whole = -(-low.numerator // low.denominator)
        if whole <= high:
            terms.append(whole)
            break
        terms.append(whole - 1)
        low, high = 1 / (high - (whole - 1)), 1 / (low - (whole - 1))
    value = Fraction(terms.pop())
    while terms:
        value = terms.pop() + 1 / value
    return value


def exact_epsilon(epsilon: float | Rational) -> Fraction:
    """The exact epsilon, without rounding: a float stands for its binary value.

    Raises ValueError unless it is finite and at least 0.
    """
    value = fraction(epsilon, "epsilon", "finite and not negative")
    if value < 0:
        raise ValueError(f"epsilon must not be negative, got {brief(value)}")
    return value

"""Staircase noise: noise on several integers at once, in steps around a set of points.

Independent noise on two numbers is not the best there is for what readers compute from both.
Staircase noise is constant on each of the sets of points at distance 0, 1, 2, .. of a given set, in
the sum of absolute differences, and falls by the factor alpha from one to the next. So it keeps
what independent noise of that alpha keeps, for numbers that a user moves by 1 in all, and the set
can be given the shape that is best for the reader. With the point 0 alone it is independent
discrete Laplace noise. Of one real number it is the staircase mechanism of Geng and Viswanath (The
optimal mechanism in differential privacy, ISIT 2014); of several with one radius that of Geng,
Kairouz, Oh and Viswanath (The staircase mechanism in differential privacy, 2015).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mechdesign.base import BitSource, Floats, Integers, Rational
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.noise.sampling import uniform

#: The most numbers that one law is about, points of its set, and points of the box around them.
MOST_NUMBERS, MOST_POINTS, LARGEST_BOX = 8, 1 << 12, 1 << 22

_CHUNK = 1 << 20  # distances that are held at a time

_LEAST_BATCH, _BATCH = 16, 1 << 16  # proposals that are made at a time


class Staircase:
    """The distribution on integer vectors with ``Pr[x]`` proportional to ``alpha^d(x)``.

    d(x) is the least sum of absolute differences of x and one of the points. It changes by at most
    1 with any of the numbers: so a user who moves the numbers by v changes no probability by more
    than the factor alpha^-(|v_1| + |v_2| + ..), whatever the points.

    Parameters
    ----------
    alpha : Fraction, int, str or Decimal
        As of `DiscreteLaplace`.
    points : array_like
        Shape (points, numbers): different integer vectors, of 1 to 8 numbers.

    Raises
    ------
    ValueError
        For another alpha, points that are none, or of a box of more than 2^22 integer vectors.

    Examples
    --------
    >>> law = Staircase(alpha="1/2", points=[[0, 0], [1, -1], [-1, 1]])
    >>> law.covariance.round(6).tolist()
    [[4.8, -1.6], [-1.6, 4.8]]
    """

    def __init__(self, *, alpha: Rational, points: npt.ArrayLike) -> None:
        self.laplace = DiscreteLaplace(alpha=alpha)
        given = np.asarray(points)
        if given.ndim != 2 or given.dtype.kind not in "iu" or not given.size:
            raise ValueError("points are integers of shape (points, numbers), at least one")
        count, numbers = given.shape
        if count > MOST_POINTS or numbers > MOST_NUMBERS:
            raise ValueError(
                f"a law has at most {MOST_POINTS} points of {MOST_NUMBERS} numbers, got {count} of"
                f" {numbers}"
            )
        low, high = given.min(axis=0).tolist(), given.max(axis=0).tolist()
        box = math.prod(last - first + 1 for first, last in zip(low, high, strict=True))
        if box > LARGEST_BOX or max(map(abs, low + high)) > LARGEST_BOX:
            raise ValueError(f"the points are in a box of more than {LARGEST_BOX} vectors")
        self.points: Integers = given.astype(np.int64)
        if len(np.unique(self.points, axis=0)) < count:
            raise ValueError("a point is given twice")
        self.points.setflags(write=False)

    @property
    def alpha(self) -> Fraction:
        """The factor of a step."""
        return self.laplace.alpha

    @property
    def numbers(self) -> int:
        """How many numbers a draw has."""
        return int(self.points.shape[1])

    @cached_property
    def _moments(self) -> tuple[float, Floats, Floats]:
        """The sum of all alpha^d, the mean, and the covariance matrix."""
        return staircase_moments(self.points, float(self.laplace.alpha))

    @property
    def mean(self) -> Floats:
        """The mean of a draw, (numbers,): the centre of the points, if they have one."""
        return self._moments[1]

    @property
    def covariance(self) -> Floats:
        """The covariance matrix of a draw, (numbers, numbers)."""
        return self._moments[2]

    @cached_property
    def acceptance(self) -> float:
        """The share of proposals that become draws: see `draw`."""
        alpha = float(self.laplace.alpha)
        return self._moments[0] / len(self.points) * ((1 - alpha) / (1 + alpha)) ** self.numbers

    def draw(self, size: int, source: BitSource) -> Integers:
        """Return independent draws, shape (size, numbers).

        Parameters
        ----------
        size : int
            How many, at least 0.
        source : callable
            Gives as many random 64-bit words as it is asked for.
        """
        # Discrete Laplace noise around one of the points has the law sum of alpha^|x - s| over all
        # points s; kept where s is the first of the nearest, it has alpha^d(x) alone, exactly
        result = np.empty((size, self.numbers), dtype=np.int64)
        done = 0
        while done < size:
            batch = min(math.ceil((size - done) / self.acceptance) + _LEAST_BATCH, _BATCH)
            if len(self.points) == 1:
                batch = size - done
            around = uniform(batch, len(self.points), source)
            noise = self.laplace.draw(batch * self.numbers, source).reshape(batch, self.numbers)
            drawn = self.points[around] + noise
            # Which draws of a batch are used does not depend on their values
            kept = drawn[self._is_of(drawn, around, np.abs(noise).sum(axis=1))][: size - done]
            result[done : done + len(kept)] = kept
            done += len(kept)
        return result

    def _is_of(self, drawn: Integers, around: Integers, away: Integers) -> npt.NDArray[np.bool_]:
        """Whether points are the first of the nearest of vectors, which are so far away."""
        low, table = self._box
        # Beyond the box the distance grows by 1 with every step away from it
        inside = np.clip(drawn, low, low + np.array(table.shape) - 1)
        nearest = table[tuple((inside - low).T)] + np.abs(drawn - inside).sum(axis=1)
        found = np.asarray(nearest == away)
        places = np.flatnonzero(found)
        for some in np.array_split(places, 1 + len(places) * self.points.size // _CHUNK):
            distances = np.abs(drawn[some, None, :] - self.points).sum(axis=2)
            # `argmin` returns the first of equal ones
            found[some] = distances.argmin(axis=1) == around[some]
        return found

    @cached_property
    def _box(self) -> tuple[Integers, Integers]:
        """The least corner of the box around the points, and the distances of its vectors."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        return low, _distances(self.points - low, high - low + 1)

    def __repr__(self) -> str:
        return f"<Staircase of {self.numbers} numbers around {len(self.points)} points>"


class GroupedNoise:
    """Independent staircase noise on groups of numbers, one after the other.

    Parameters
    ----------
    laws : sequence of Staircase
        By group; of one object all draws are made together.
    """

    #: Whoever has noise of several laws has its variances already: they are counted once.
    variance = 1.0

    def __init__(self, laws: Sequence[Staircase]) -> None:
        self.laws = tuple(laws)

    @property
    def alphas(self) -> list[Fraction]:
        """The alpha of each group."""
        return [law.alpha for law in self.laws]

    def draw(self, size: int, source: BitSource) -> Integers:
        """Return the noise of all numbers once.

        Parameters
        ----------
        size : int
            How many numbers the groups have.
        source : callable
            As of `Staircase.draw`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (size,).
        """
        ends = np.cumsum([law.numbers for law in self.laws])
        assert size == ends[-1]
        result = np.empty(size, dtype=np.int64)
        for law in dict.fromkeys(self.laws):
            groups = [group for group, other in enumerate(self.laws) if other is law]
            places = ends[groups][:, None] - np.arange(law.numbers, 0, -1)
            result[places] = law.draw(len(groups), source)
        return result


def staircase_moments(points: Integers, alpha: float) -> tuple[float, Floats, Floats]:
    """Return the sum of alpha^d over all integer vectors, and the mean and covariance of the law.

    Parameters
    ----------
    points : numpy.ndarray of int64
        Shape (points, numbers), as of `Staircase`.
    alpha : float
        In (0, 1).
    """
    # Beyond the box around the points the distance grows by 1 with every step away from it: so the
    # sums over all vectors are sums over the box, with the moments of a geometric tail at its sides
    low, high = points.min(axis=0), points.max(axis=0)
    weights = alpha ** _distances(points - low, high - low + 1)
    tail = alpha / (1 - alpha)
    first, second = tail / (1 - alpha), tail * (1 + alpha) / (1 - alpha) ** 2
    centre = (low + high) / 2  # moments about it, so that little cancels
    tables = []
    for least, most, middle in zip(low, high, centre, strict=True):
        place = np.arange(least, most + 1) - middle
        table = np.stack([np.ones_like(place), place, place * place])
        for end, sign in ((0, -1), (-1, 1)):
            at = place[end]
            table[:, end] += (
                tail,
                at * tail + sign * first,
                at * at * tail + 2 * sign * at * first + second,
            )
        tables.append(table)

    # The sums of all products of powers 0, 1, 2, one axis after the other
    sums = weights
    for table in tables:
        sums = np.tensordot(sums, table, axes=(0, 1))
    numbers = len(tables)
    unit = np.eye(numbers, dtype=np.int64)
    mass = float(sums[(0,) * numbers])
    mean = np.array([sums[tuple(row)] for row in unit]) / mass
    covariance = np.empty((numbers, numbers))
    for i in range(numbers):
        for j in range(i + 1):
            covariance[i, j] = covariance[j, i] = sums[tuple(unit[i] + unit[j])] / mass
    return mass, mean + centre, covariance - np.outer(mean, mean)


def _distances(points: Integers, shape: Integers) -> Integers:
    """The distance of every vector of a box from the nearest point."""
    distance = np.full(shape, np.iinfo(np.int32).max, dtype=np.int64)
    distance[tuple(points.T)] = 0
    for axis in range(distance.ndim):
        # Of sums of absolute differences the transform is done along each axis in turn
        lines = np.moveaxis(distance, axis, 0)
        for place in range(1, len(lines)):
            lines[place] = np.minimum(lines[place], lines[place - 1] + 1)
        for place in range(len(lines) - 2, -1, -1):
            lines[place] = np.minimum(lines[place], lines[place + 1] + 1)
    return distance

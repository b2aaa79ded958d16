"""StaircaseStrategy: numbers in groups, each with a noise of its own, and its design.

Under Laplace noise what is measured has often whole weights, and noise in whole steps has less
variance than continuous noise in proportion to the weights: at epsilon 4 a third. So here numbers
have the integers that they are, and groups of them a noise of their own: independent discrete
Laplace noise of some part of epsilon, or noise on several numbers at once (see
`mechdesign.noise.staircase`).

For one group, with a workload whose Gram matrix is H on it, the mean of c(z) = z'Hz over the noise
z is to be small, among all laws that change by the factor alpha at most with every step. That is a
linear program over infinitely many vectors. Its optima fall as fast as they may where c is large,
and stay high where it is small: noise around the points of an ellipsoid {c <= r}, whose centre is
one of the integer vectors or in the middle between some, comes within a per cent of them (measured,
for two and three numbers). So neighbouring cells get noise that cancels in sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from flint import arb

from mechdesign import Privacy
from mechdesign.base import Floats, Integers, ball, one_thread, precision, rational_of
from mechdesign.noise.discrete import laplace_variance
from mechdesign.noise.staircase import MOST_POINTS, GroupedNoise, Staircase, staircase_moments
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy
from rangeq.central.matrix_mechanism.p_identity import cells_in_order, merged_cells
from rangeq.central.matrix_mechanism.strategy import SLACK
from rangeq.central.mechanism import CentralMechanism

_BITS = 128

_LARGEST = (1 << 63) - 1  # of the integers of a file

_SHORT = 64  # the largest power of an alpha that is written out

# A strategy is taken as it is for a promise of which it uses so much
_NEARLY = 1 - Fraction(1, 1 << 20)


class StaircaseStrategy(DenseStrategy):
    """Integer numbers in groups, each with staircase noise of its own.

    Its variances are those of the noise that it has: for a promise of another epsilon `keeping`
    returns the same numbers with more or less noise.

    Parameters
    ----------
    matrix : array_like
        As for `DenseStrategy`.
    alphas : sequence of Fraction
        The factor of a step of each group's noise: see `Staircase`.
    points : sequence of array_like
        For each group the points of its noise, shape (points, numbers). The numbers of all groups
        are the rows of the matrix, in this order.
    sizes : int or sequence of int, optional
        As for `DenseStrategy`.

    Raises
    ------
    ValueError
        Anything else.

    Examples
    --------
    >>> from fractions import Fraction
    >>> half = Fraction(1, 2)
    >>> strategy = StaircaseStrategy([[1, 0], [0, 1]], [half], [[[0, 0], [1, -1], [-1, 1]]])
    >>> strategy.loss  # for one user more or less
    Fraction(2, 1)
    """

    kind: ClassVar[str] = "staircase"

    noise: GroupedNoise  #: What is added to the numbers.

    def __init__(
        self,
        matrix: npt.ArrayLike,
        alphas: Sequence[Fraction],
        points: Sequence[npt.ArrayLike],
        sizes: int | Sequence[int] | None = None,
    ) -> None:
        super().__init__(matrix, sizes)
        if any(alpha.denominator > _LARGEST for alpha in alphas):
            raise ValueError("the alpha of a group is a fraction of integers of 64 bits")
        known: dict[tuple[Fraction, bytes, int], Staircase] = {}
        laws = []
        for alpha, some in zip(alphas, points, strict=True):
            law = Staircase(alpha=alpha, points=some)
            key = law.alpha, law.points.tobytes(), law.numbers
            laws.append(known.setdefault(key, law))
        if sum(law.numbers for law in laws) != self.rows:
            raise ValueError("the groups of a staircase strategy are those of its numbers")
        self.noise = GroupedNoise(laws)

    @classmethod
    def of_levels(cls, mechanism: CentralMechanism) -> StaircaseStrategy:
        """Return what a mechanism of levels measures, with its noise."""
        matrix, level = rows_of_levels(mechanism)
        alphas = [law.alpha for law in mechanism.noise if law is not None]
        return cls(matrix, [alphas[i] for i in level], [[[0]]] * len(matrix), mechanism.sizes)

    @cached_property
    def _whitened(self) -> Floats:
        """The inverse of a root of the noise's covariance matrix: (rows, rows), by blocks."""
        result, start = np.zeros((self.rows, self.rows)), 0
        for law in self.noise.laws:
            block = slice(start, start + law.numbers)
            result[block, block] = np.linalg.inv(np.linalg.cholesky(law.covariance))
            start += law.numbers
        return result

    @cached_property
    def _weighted(self) -> Floats:
        """The matrix whose numbers have independent noise of variance 1."""
        return self._whitened @ self.matrix

    @cached_property
    def _square(self) -> float:
        return float((self._weighted**2).sum(axis=0).max())

    @cached_property
    def _scaled(self) -> Floats:
        return self._weighted / self._unit

    @cached_property
    def inverse(self) -> Floats:
        return super().inverse @ self._whitened

    def estimate(self, noisy: npt.NDArray[Any]) -> Floats:
        mean = np.concatenate([law.mean for law in self.noise.laws])
        return super().estimate(self._whitened @ (noisy - mean))

    @cached_property
    def moved(self) -> Integers:
        """How far a user of each cell moves the numbers of each group: (groups, cells)."""
        starts = np.cumsum([0, *(law.numbers for law in self.noise.laws[:-1])])
        moved: Integers = np.add.reduceat(np.abs(self.matrix), starts, axis=0)
        return moved

    @cached_property
    def loss(self) -> Fraction:
        """The largest likelihood ratio of the noisy numbers for one user more or less, rounded up.

        The product of alpha^-d over the groups, where d is how far the user moves their numbers.
        """
        alphas = self.noise.alphas
        kinds = list(dict.fromkeys(alphas))
        # By equal noise first, as alphas are few and groups may be many
        place = np.array([kinds.index(alpha) for alpha in alphas])
        steps = np.stack([self.moved[place == kind].sum(axis=0) for kind in range(len(kinds))])
        most = int(steps.max())
        if len(kinds) == 1 and most <= _SHORT:
            return 1 / kinds[0] ** most  # exactly
        with precision(_BITS):
            rates = [-ball(alpha).log() for alpha in kinds]
            losses = [
                sum((int(d) * rate for d, rate in zip(column, rates, strict=True)), arb(0)).upper()
                for column in np.unique(steps, axis=1).T
            ]
            return rational_of(max(losses, key=float).exp().upper())

    def keeping(self, promise: object) -> StaircaseStrategy:
        if not isinstance(promise, Privacy):
            raise ValueError(
                "the noise of a staircase strategy is for a Privacy, got a"
                f" {type(promise).__name__}: it keeps no other promise"
            )
        given, allowed = self.loss, 1 / promise.alpha
        if given <= allowed and math.log(given) >= _NEARLY * math.log(allowed):
            return self
        ratio = Fraction(promise.epsilon) * SLACK / Fraction(_log(given))
        alphas = [_alpha(Fraction(_log(1 / alpha)) * ratio) for alpha in self.noise.alphas]
        return StaircaseStrategy(
            self.matrix, alphas, [law.points for law in self.noise.laws], self.sizes
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        laws = self.noise.laws
        return {
            "matrix": self.matrix,
            "groups": np.array([[len(law.points), law.numbers] for law in laws]),
            "points": np.concatenate([law.points.ravel() for law in laws]),
            "alphas": np.array([[a.numerator, a.denominator] for a in self.noise.alphas]),
        }

    @classmethod
    def of_arrays(
        cls, sizes: tuple[int, ...], arrays: dict[str, npt.NDArray[Any]]
    ) -> StaircaseStrategy:
        if sorted(arrays) != ["alphas", "groups", "matrix", "points"]:
            raise ValueError("a staircase strategy has a matrix, groups, their points, and alphas")
        groups, points, alphas = arrays["groups"], arrays["points"], arrays["alphas"]
        if (
            groups.ndim != 2
            or groups.shape != alphas.shape
            or groups.shape[1:] != (2,)
            or points.ndim != 1
            or (groups < 1).any()
            or (groups > len(points)).any()
            or int((groups[:, 0] * groups[:, 1]).sum()) != len(points)
            or (alphas < 1).any()
        ):
            raise ValueError("groups, points and alphas do not fit each other")
        ends = np.cumsum(groups[:, 0] * groups[:, 1])[:-1]
        parts = zip(np.split(points, ends), groups.tolist(), strict=True)
        return cls(
            arrays["matrix"],
            [Fraction(*pair) for pair in alphas.tolist()],
            [part.reshape(shape) for part, shape in parts],
            sizes,
        )

    def __repr__(self) -> str:
        groups = len(self.noise.laws)
        return (
            f"<StaircaseStrategy of {self.rows} numbers of {self.matrix.shape[1]} cells in"
            f" {groups} group{'s' * (groups > 1)}>"
        )


def rows_of_levels(mechanism: CentralMechanism) -> tuple[Integers, Integers]:
    """Return the numbers of a mechanism of levels as rows, and the level of each, from the top."""
    cells = math.prod(mechanism.sizes)
    units = np.eye(cells, dtype=np.int64).reshape(cells, *mechanism.sizes)
    columns = zip(*map(mechanism.levels, units), strict=True)
    levels = [
        np.stack([level.ravel() for level in column], axis=1)
        for column, law in zip(columns, mechanism.noise, strict=True)
        if law is not None
    ]
    levels = [level[level.any(axis=1)] for level in levels]  # a wavelet's own cells may be more
    return np.concatenate(levels), np.repeat(np.arange(len(levels)), list(map(len, levels)))


def _log(ratio: Fraction) -> float:
    """ln(ratio), also where it is near 1 or no float."""
    with precision(_BITS):
        return float(ball(ratio).log().mid())


def _alpha(rate: Fraction) -> Fraction:
    """An alpha of at least exp(-rate), nearly equal to it, of integers that fit in 64 bits."""
    return Privacy.from_epsilon(rate).alpha


# ------------------------------------------------------------------------------------------------
# The design of groups of cells, and of the points of their noise.


# The most cells of a group: where nothing else is measured, and where there are other rows.
_MOST, _MOST_BESIDE = 4, 3

# The most cells for which all ways to cut them into groups are compared.
_COMPARED = 16

# How many times more points each trial has, and how many worse ones end the search.
_GROWTH, _PATIENCE = 1.3, 3

_FEWER = 3  # times fewer points than were best before are the first to be tried

_AHEAD = 4  # times the points of a trial are enumerated at once

_LEAST_ACCEPTANCE = 2.0**-11  # of proposals in a draw

# Epsilon of a group from which centres between integers are tried, too: the smaller it is, the
# less it matters where the middle of many points is
_COARSE = 0.3

_FLAT = 1e-4  # eigenvalues of a group's cost, relative to the largest, are taken for no less

_LARGEST_TRIED = 1 << 15  # vectors among which the points of a trial are looked for

# The bits of rows that are no integers; and the largest epsilon: with more alpha is no fraction of
# integers of 64 bits, and nothing is gained.
_ROW_BITS, _LARGEST_EPSILON = 12, 32


class _Group(NamedTuple):
    """A noise for some cells."""

    cost: float  # the mean of z'Hz
    points: Integers
    rate: float  # -ln(alpha)


@one_thread
def strategy_for_cells(
    gram: Floats, epsilon: float, sizes: tuple[int, ...], rows: Floats | None = None
) -> StaircaseStrategy:
    """Return a strategy that measures all cells with staircase noise, for one epsilon.

    Parameters
    ----------
    gram : numpy.ndarray of float64
        W'W of the queries, shape (cells, cells).
    epsilon : float
        What a user may lose, above 0.
    sizes : tuple of int
        The cells along each attribute.
    rows : numpy.ndarray of float64, optional
        A strategy for Laplace noise, (rows, cells), with columns of absolute sums of at most 1:
        what it measures besides single cells is measured, too, and has the same part of epsilon.

    Raises
    ------
    ValueError
        Epsilon is too small or too large for such noise.
    """
    if not epsilon <= _LARGEST_EPSILON:
        raise ValueError(f"staircase noise is designed for an epsilon up to {_LARGEST_EPSILON}")
    first, together = merged_cells(gram)
    order = cells_in_order(gram[np.ix_(first, first)])
    first, together = first[order], together[order]
    asked = gram[np.ix_(first, first)]
    matrix, spent = np.zeros((0, len(first)), dtype=np.int64), np.zeros(len(first))
    rate = epsilon * 2.0**-_ROW_BITS
    if rows is not None:
        # Of cells that no query tells apart the columns are the same
        matrix = np.rint(rows[:, first] * 2.0**_ROW_BITS).astype(np.int64)
        matrix = matrix[(matrix != 0).sum(axis=1) > 1]
        spent = np.abs(matrix).sum(axis=0) * rate
    left = epsilon - spent
    if (left <= 0).any():
        raise ValueError("nothing of epsilon is left for some cells")
    cost = asked
    if len(matrix):
        # With K of those rows the error tr(G (C^-1 + K)^-1) is concave in the covariance C of the
        # cells' noise: it falls by at least as much as its tangent, which has a cost for each group
        inverse = np.diag([1 / laplace_variance(rate) for rate in left])
        joint = np.linalg.inv(inverse + matrix.T @ matrix / laplace_variance(rate))
        cost = inverse @ joint @ asked @ joint @ inverse
    groups = _cut(cost, left, _MOST_BESIDE if len(matrix) else _MOST)
    alone = _Group(0.0, np.zeros((1, 1), dtype=np.int64), rate)
    groups = [alone] * len(matrix) + groups
    alphas = [_alpha(Fraction(group.rate) * SLACK) for group in groups]
    points = [group.points for group in groups]
    cells = np.concatenate([matrix, np.eye(len(first), dtype=np.int64)]) @ together
    return StaircaseStrategy(cells, alphas, points, sizes)


def _cut(cost: Floats, left: Floats, most: int) -> list[_Group]:
    """Cut cells in order into groups: of least cost, where that is not too long a search."""

    def group(a: int, b: int, start: float = 0.0) -> _Group:
        return best_group(cost[a:b, a:b], float(left[a:b].min()), start)

    cells = len(cost)
    if cells > _COMPARED:
        groups: list[_Group] = []
        for a in range(0, cells, most):
            # Neighbouring groups have about as many points
            start = len(groups[-1].points) / _FEWER if groups else 0.0
            groups.append(group(a, min(a + most, cells), start))
        return groups
    best: list[tuple[float, list[_Group]]] = [(0.0, [])]
    for b in range(1, cells + 1):
        trials = []
        for a in range(max(b - most, 0), b):
            last = group(a, b)
            trials.append((best[a][0] + last.cost, [*best[a][1], last]))
        best.append(min(trials, key=lambda trial: trial[0]))
    return best[-1][1]


def best_group(cost: Floats, rate: float, start: float = 0.0) -> _Group:
    """Find the points whose noise has the least mean of z'Hz, among ellipsoids of so many first."""
    numbers, alpha = len(cost), math.exp(-rate)
    origin = np.zeros((1, numbers), dtype=np.int64)
    best = _Group(float(np.trace(cost)) * laplace_variance(rate), origin, rate)
    if numbers == 1:
        return best
    usual = ((1 - alpha) / (1 + alpha)) ** numbers
    values, vectors = np.linalg.eigh(cost)
    cost = (vectors * np.maximum(values, _FLAT * values[-1])) @ vectors.T
    start = min(max((0.4 / rate) ** numbers, start), MOST_POINTS / 4)
    for centre in product((0.0, 0.5) if rate > _COARSE else (0.0,), repeat=numbers):
        least, worse = math.inf, 0
        for points in _ellipsoids(cost, np.array(centre), start):
            mass, _, covariance = staircase_moments(points, alpha)
            value = float(np.sum(cost * covariance))
            worse, least = (0, value) if value < least else (worse + 1, least)
            if worse == _PATIENCE or mass * usual < _LEAST_ACCEPTANCE * len(points):
                break
            if value < best.cost * (1 - 1e-6):
                best = _Group(value, points, rate)
        start = max(start, len(best.points) / _FEWER)  # sizes differ little between centres
    return best


def _ellipsoids(cost: Floats, centre: Floats, start: float) -> Iterator[Integers]:
    """Yield the integer vectors z of small c(z + centre): more and more of them."""
    numbers = len(cost)
    inverse, unit = np.linalg.inv(cost), math.pi ** (numbers / 2) / math.gamma(numbers / 2 + 1)
    volume, size, done = unit / math.sqrt(np.linalg.det(cost)), max(start, 1.0), 0
    while size <= MOST_POINTS:
        most = _AHEAD * size
        while True:
            # Along an axis the ellipsoid c <= r has the half width (r C^-1_ii)^(1/2)
            radius = (1.5 * most / volume) ** (2 / numbers)
            halves = np.ceil(np.sqrt(radius * np.diag(inverse))).astype(np.int64)
            if math.prod((2 * halves + 1).tolist()) <= _LARGEST_TRIED:
                break
            most /= _GROWTH
            if most < size:
                return
        vectors = np.indices(2 * halves + 1).reshape(numbers, -1).T - halves
        away = vectors + centre
        costs = ((away @ cost) * away).sum(axis=1)
        inside = np.flatnonzero(costs <= radius)
        order = inside[np.argsort(costs[inside], kind="stable")]
        costs = costs[order]
        while size <= min(most, len(order)):
            # All of the same cost, so that the points are symmetric
            last = costs[int(size) - 1] * (1 + 1e-9)
            end = int(np.searchsorted(costs, last, "right"))
            if end > MOST_POINTS:
                return
            if end > done:
                yield vectors[order[:end]]
                done = end
            size = max(size * _GROWTH, size + 1)
        size = max(size, most + 1)

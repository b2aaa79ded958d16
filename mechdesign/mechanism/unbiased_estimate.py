"""UnbiasedEstimate: the true count estimated without bias from a released output, with variances.

What a mechanism releases is biased, since its outputs have two ends. Numbers t with
``sum_i t_i P[i, j] = j`` for every true count j remove the bias: t of the output is an unbiased
estimate, and the sum of such estimates over cells is one of their total.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
from flint import arb_mat, fmpq, fmpq_mat, fmpz_mat

from mechdesign.base import Booleans, Floats, Integers, Rational, exact, precision
from mechdesign.exceptions import InvalidPrior, NoUnbiasedEstimate, TooLarge
from mechdesign.losses import prior_over
from mechdesign.mechanism.closed_form import FairLaw, GeometricLaw, Law, Number
from mechdesign.mechanism.table import Table
from mechdesign.mechanism.values import Counts

_PRECISIONS = (128, 512, 2048)  # the precisions in bits that are tried before exact arithmetic

# The largest error of what is enclosed, relative to the largest number of its kind.
_ACCURACY = 2.0**-51


class UnbiasedEstimate:
    """The unbiased estimate of the true count from each output, with exact variances.

    For a square table with independent columns there is one. Where there are several, this is the
    one of least variance under ``prior``.

    Parameters
    ----------
    table : Table
        A mechanism.
    prior : sequence of Fraction, int, str or Decimal, optional
        Weights of the inputs, shape (inputs,), that sum to one; uniform if None. It matters only
        where there are several unbiased estimates.
    quantity : sequence of Fraction, int, str or Decimal, optional
        What is estimated, a number for each input, shape (inputs,); None: the count. Kept as a
        tuple.

    Raises
    ------
    NoUnbiasedEstimate
        There is none: see the message.
    InvalidPrior
        The prior is no distribution over the inputs; or there are several estimates, and an output
        occurs only for inputs of weight 0.
    ValueError
        The quantity has another length than there are inputs.

    Examples
    --------
    >>> from mechdesign import named
    >>> estimate = UnbiasedEstimate(named.geometric(2, alpha="1/2"))
    >>> estimate.values
    (Fraction(-1, 1), Fraction(1, 1), Fraction(3, 1))
    >>> estimate.variances
    (Fraction(7, 3), Fraction(8, 3), Fraction(7, 3))
    """

    def __init__(
        self,
        table: Table,
        prior: Sequence[Rational] | None = None,
        *,
        quantity: Sequence[Rational] | None = None,
    ) -> None:
        if quantity is None:
            if not isinstance(table.input_values, Counts):
                raise NoUnbiasedEstimate("of pairs of counts say which quantity is estimated")
            quantity = range(table.inputs)
        self.quantity = tuple(exact(value, "a quantity") for value in quantity)
        if len(self.quantity) != table.inputs:
            raise ValueError(
                f"the quantity has {len(self.quantity)} numbers for {table.inputs} inputs"
            )
        goal = [_fmpq(value) for value in self.quantity]
        weights = [_fmpq(weight) for weight in prior_over(table.inputs, prior)]
        columns = fmpz_mat([*zip(*table.weights, strict=True)])
        means = [table.denominator * value for value in goal]
        squares = [table.denominator * value**2 for value in goal]
        solution, second = _solutions(columns, (means, squares), weights)
        if solution is None:
            raise NoUnbiasedEstimate(_reason(table, columns.rank()))
        self._values = solution
        # Squares in integers over one denominator: a sum of fractions would reduce each of them.
        numerators, below = solution.numer_denom()
        square = fmpz_mat([[value**2] for value in numerators.entries()])
        scale = fmpq(1, table.denominator) / below**2
        self._variances = [
            scale * mean - value**2
            for mean, value in zip((columns * square).entries(), goal, strict=True)
        ]
        self._second = second

    @cached_property
    def values(self) -> tuple[Fraction, ...]:
        """The estimates from the outputs, exact, shape (outputs,); 0 for one that never occurs."""
        return _fractions(self._values.entries())

    @cached_property
    def variances(self) -> tuple[Fraction, ...]:
        """The variances of the estimate for the true counts, exact, shape (inputs,)."""
        return _fractions(self._variances)

    @cached_property
    def variance_estimates(self) -> tuple[Fraction, ...]:
        """The estimates of the variance from the outputs, exact, shape (outputs,).

        They are unbiased, and may therefore be negative. Where that is impossible, since the square
        of the quantity has no unbiased estimate, each is the largest of `variances`.
        """
        if self._second is None:
            return (max(self.variances),) * len(self.values)
        pairs = zip(self._values.entries(), self._second.entries(), strict=True)
        # t^2 estimates E t^2, and s the square of the quantity without bias: the difference of the
        # two has the mean Var t.
        return _fractions(value**2 - square for value, square in pairs)

    def variance(self, prior: Sequence[Rational] | None = None) -> Fraction:
        """Return the variance for a true count drawn from ``prior``, uniform if None; exact.

        It is the mean of `variances`, which is the expected squared error. Raises InvalidPrior.
        """
        weights = prior_over(len(self.quantity), prior)
        pairs = zip(weights, self._variances, strict=True)
        return _fraction(sum((_fmpq(weight) * variance for weight, variance in pairs), fmpq(0)))

    def standard_error(self, prior: Sequence[Rational] | None = None) -> float:
        """Return the square root of `variance`."""
        return math.sqrt(self.variance(prior))


class ApproximateEstimate(NamedTuple):
    """An `UnbiasedEstimate` of the count in floats, for statistics of many groups.

    Of each array the errors are at most 2^-50 of its largest number, whatever the table.
    """

    values: Floats  # shape (outputs,)
    variances: Floats  # shape (inputs,)
    variance_estimates: Floats  # shape (outputs,)

    def estimates(self, outputs: Integers) -> Floats:
        """Return the estimates from outputs, shape (outputs,)."""
        return np.asarray(self.values[outputs])

    def estimated_variances(self, outputs: Integers) -> Floats:
        """Return the unbiased estimates of the variances from outputs, shape (outputs,)."""
        return np.asarray(self.variance_estimates[outputs])

    @classmethod
    def of(cls, table: Table) -> ApproximateEstimate:
        """Return the numbers of ``UnbiasedEstimate(table)``, far faster where they are long."""
        # They are enclosed by intervals of increasing precision, and exact if none is enough.
        if table.outputs == table.inputs and isinstance(table.input_values, Counts):
            columns = fmpz_mat([*zip(*table.weights, strict=True)])
            for bits in _PRECISIONS:
                with precision(bits):
                    enclosed = _enclosed(columns, table.denominator)
                if enclosed is not None:
                    return cls(*enclosed)
        exact = UnbiasedEstimate(table)
        lists = exact.values, exact.variances, exact.variance_estimates
        return cls(*(np.array([*map(float, numbers)]) for numbers in lists))


# ------------------------------------------------------------------------------------------------
# Closed forms: the estimate is the output itself, but for a layer at both ends of their range.


# Corrections of the layer fall as alpha^i with the distance i from the end: it is as wide as they
# are above this.
_NEGLIGIBLE = 1e-18

_WIDEST = 1 << 22  # the widest layer


@dataclass(frozen=True)
class LawEstimate:
    """The unbiased estimate of the count from an output of a closed form, in floats.

    Between two layers at the ends of the outputs the estimate is the output, and its variance that
    of counts far from both ends. For GM its layers are one output wide, and it is the only one;
    with a margin, or without bounds, it subtracts the noise, and is unbiased for all counts of any
    size; for EM it is the only one, and within about 1e-9 of its standard error.

    Attributes
    ----------
    law : Law
        The closed form.
    shifts : numpy.ndarray of float64
        Estimate minus output, for the outputs from the smallest on; from the largest on downwards
        these are negative.
    variance_estimates : numpy.ndarray of float64
        The unbiased estimate of the variance, for the same outputs.
    variances : numpy.ndarray of float64
        The variance of the estimate for the counts from 0 on, or from n downwards; of GM with a
        wide layer for some of them, spread by their logarithm.
    inner, inner_estimate : float
        The variance of the counts, and its estimate from the outputs, between the layers.
    spread, tails : float
        The largest variance of the estimate of the variance, over counts, and the largest fourth
        cumulant of the estimate, at least 0.
    """

    law: Law
    shifts: Floats
    variance_estimates: Floats
    variances: Floats
    inner: float
    inner_estimate: float
    spread: float
    tails: float

    @classmethod
    def of(cls, law: Law) -> LawEstimate:
        """Return the estimate for a closed form.

        Raises
        ------
        NoUnbiasedEstimate
            The output does not depend on the count.
        """
        if isinstance(law, (GeometricLaw, FairLaw)):
            # Where the layers are far apart, they are those of a smaller n.
            reach = math.ceil(math.log(_NEGLIGIBLE) / math.log1p(-float(1 - law.alpha)))
            narrow = replace(law, n=min(law.n, 4 * reach + law.n % 2))
            found = _of_noise(narrow) if isinstance(narrow, GeometricLaw) else _of_fair(narrow)
            return replace(found, law=law)
        if law.n:
            raise NoUnbiasedEstimate(
                "there is no unbiased estimate: the output does not depend on the count"
            )
        nothing = np.zeros(1)
        return cls(law, nothing, nothing, nothing, 0.0, 0.0, 0.0, 0.0)

    def estimates(self, outputs: Integers) -> Floats:
        """Return the estimates from outputs, shape (outputs,)."""
        place, mirrored = self._places(outputs)
        shifts = np.append(self.shifts, 0.0)[place]
        return np.asarray(outputs + np.where(mirrored, -shifts, shifts))

    def estimated_variances(self, outputs: Integers) -> Floats:
        """Return the unbiased estimates of the variances from outputs, shape (outputs,)."""
        return np.append(self.variance_estimates, self.inner_estimate)[self._places(outputs)[0]]

    def _places(self, outputs: Integers) -> tuple[Integers, Booleans]:
        """The place of each output in the layers, or their width; and which layer is nearer."""
        bounds = self.law.outputs
        if not isinstance(bounds, Counts):
            return np.zeros_like(outputs), np.zeros(len(outputs), dtype=np.bool_)
        below, above = outputs - bounds.low, bounds.high - outputs
        return np.minimum(np.minimum(below, above), len(self.shifts)), above < below

    @property
    def least(self) -> float:
        """The smallest variance, over counts."""
        return float(min(self.variances.min(), self.inner))

    @property
    def worst(self) -> float:
        """The largest variance, over counts."""
        return float(max(self.variances.max(), self.inner))


def mean_variance(law: Law) -> float | None:
    """Return the variance of the unbiased estimate for counts that are equally likely, or None."""
    if isinstance(law, GeometricLaw):
        n, margin = law.n, law.margin

        def variance(a: Number) -> Number:
            clamped = 0 if margin is None else a**margin * (1 - a ** (n + 1)) / (1 - a)
            return 2 * a / (1 - a) ** 2 * (1 - clamped / ((n + 1) * (1 + a)))

        return float(law._value(variance))
    try:
        estimate = LawEstimate.of(law)
    except NoUnbiasedEstimate:
        return None
    width = min(len(estimate.variances), (law.n + 1) // 2)
    ends = 2 * math.fsum(estimate.variances[:width])
    return (ends + (law.n + 1 - 2 * width) * estimate.inner) / (law.n + 1)


@lru_cache(256)
def _of_noise(law: GeometricLaw) -> LawEstimate:
    """The estimate for clamped geometric noise: a bound stands for itself and the mean excess."""
    a = float(law.alpha)
    rest = float(1 - law.alpha)  # before rounding
    variance, third = 2 * a / rest**2, a * (1 + a) / rest**3
    fourth = a * (1 + 7 * a + a**2) / rest**4  # central moments of the excess, of mean a / (1 - a)
    if law.margin is None:
        tails = 2 * a * (1 + 10 * a + a**2) / rest**4 - 3 * variance**2
        none = np.empty(0)
        return LawEstimate(law, none, none, np.array([variance]), variance, variance, 0.0, tails)
    # The counts up to the middle, or some of many
    width = law.n // 2 + 1
    counts = np.arange(width) if width <= 4096 else np.unique(np.geomspace(1, width, 4096) // 1 - 1)
    below, above = counts + law.margin, law.n - counts + law.margin
    chances = [np.exp(np.log1p(-rest) * h) / (1 + a) for h in (below, above)]
    both = chances[0] + chances[1]
    variances = variance - both * a / rest**2
    moment = 2 * a * (1 + 10 * a + a**2) / rest**4
    for chance, h in zip(chances, (below, above), strict=True):
        mean = h + a / rest
        moment = moment - chance * (6 * mean**2 * a / rest**2 + 4 * mean * third + fourth)
    # The estimate of the variance is half of it at bounds
    spread = (variance / 2) ** 2 * float((both * (1 - both)).max())
    tails = max(float((moment - 3 * variances**2).max()), 0.0)
    return LawEstimate(
        law,
        np.array([-a / rest]),
        np.array([variance / 2]),
        variances,
        float(variances[-1]),
        variance,
        spread,
        tails,
    )


@lru_cache(256)
def _of_fair(law: FairLaw) -> LawEstimate:
    """The estimate for EM, by two sparse systems of the width of both layers."""
    n, a = law.n, float(law.alpha)
    if n > _WIDEST:
        raise TooLarge(n, 1e-4 * n, 1000 * n, "a larger epsilon, or GM")
    fair = _FairColumns(n, a)
    half = n / 2
    places: Floats = np.arange(n // 2 + 1, dtype=np.float64)
    centred = fair.estimated(places - half, -1)
    squares = fair.estimated((places - half) ** 2, 1)
    estimates = centred**2 - squares
    means = [fair.means(centred**p, (-1) ** p) for p in (2, 3, 4)]
    true = places - half
    variances = means[0] - true**2
    fourth = means[2] - 4 * true * means[1] + 6 * true**2 * means[0] - 3 * true**4
    spread = fair.means(estimates**2, 1) - variances**2
    return LawEstimate(
        law,
        centred + half - places,
        estimates,
        variances,
        float(variances[-1]),
        float(estimates[-1]),
        max(float(spread.max()), 0.0),
        max(float((fourth - 3 * variances**2).max()), 0.0),
    )


class _FairColumns:
    """Means of functions of the output of EM, for the counts up to n / 2, and their inverses.

    A function of the outputs 0 .. n is even or odd about n / 2, and given for the lower half, shape
    (n // 2 + 1,).
    """

    def __init__(self, n: int, a: float) -> None:
        self._n, self._a, self._half = n, a, n // 2
        outputs = np.arange(n + 1)
        # sum of alpha^(i / 2), powers rounded up, over all outputs
        self._sum = float((a ** np.ceil(outputs / 2)).sum())

    def means(self, lower: Floats, sign: int) -> Floats:
        """Return the means of a function for the counts 0 .. n / 2."""
        from scipy.signal import lfilter  # here: it takes longer to import than all else

        a, n, half = self._a, self._n, self._half
        values = self._whole(lower, sign)
        left = lfilter([1.0], [1.0, -a], values)
        right = lfilter([1.0], [1.0, -a], values[::-1])[::-1]  # from an output on
        by_two = np.zeros(half + 2)  # the sums over the outputs 2q - 1 and 2q, of one power
        by_two[0] = values[0]
        odd, even = values[1::2], values[2::2]
        by_two[1 : 1 + len(odd)] += odd
        by_two[1 : 1 + len(even)] += even
        tail = lfilter([1.0], [1.0, -a], by_two[::-1])[::-1]
        counts = np.arange(half + 1)
        # From output 2j on: its own power j, and those of 2j + 1, 2j + 2, .. from j + 1 on
        from_there = values[2 * counts] + a * tail[counts + 1]
        between = a * right[np.minimum(counts + 1, n)] - a**counts * right[2 * counts]
        total = left[counts] + between + a**counts * from_there
        total[0] = from_there[0]
        return np.asarray(total / self._sum)

    def _whole(self, lower: Floats, sign: int) -> Floats:
        upper = sign * lower[: (self._n + 1) // 2][::-1]
        return np.concatenate([lower, upper])

    def estimated(self, goal: Floats, sign: int) -> Floats:
        """Return the function whose means for the counts 0 .. n / 2 are given."""
        from scipy.sparse.linalg import LinearOperator, gmres

        size, a = self._half + 1, self._a

        def nearly(means: Floats) -> Floats:
            """The function, were every column as that of geometric noise."""
            below, above = np.roll(means, 1), np.roll(means, -1)
            above[-1] = sign * means[self._n - size]  # that of count size, by symmetry
            result = (1 + a**2) * means - a * (below + above)
            result[0] = means[0] - a * above[0]
            return np.asarray(result * self._sum / (1 - a**2))

        kind = (size, size)
        solved, _ = gmres(
            LinearOperator(kind, lambda lower: self.means(lower, sign), dtype=np.float64),
            goal,
            rtol=1e-14,
            M=LinearOperator(kind, nearly, dtype=np.float64),
            restart=60,
            maxiter=20,
        )
        return np.asarray(solved)


def _enclosed(columns: fmpz_mat, denominator: int) -> list[Floats] | None:
    """Return values, variances and variance estimates of a square table, or None if too rough."""
    inputs = columns.nrows()
    goals = [[denominator * j, denominator * j**2] for j in range(inputs)]
    try:
        solved = arb_mat(columns).solve(arb_mat(goals)).tolist()
    except ZeroDivisionError:
        return None
    squares = arb_mat([[value**2] for value, _ in solved])
    means = (arb_mat(columns) * squares).entries()
    lists = (
        [value for value, _ in solved],
        [mean / denominator - j**2 for j, mean in enumerate(means)],
        [value**2 - square for value, square in solved],
    )
    arrays = []
    for numbers in lists:
        middles = np.array([float(number.mid()) for number in numbers])
        radius = max(float(number.rad()) for number in numbers)
        # `not <=` also refuses radii that are not numbers.
        if not radius <= _ACCURACY * np.abs(middles).max() < math.inf:
            return None
        arrays.append(middles)
    return arrays


def _solutions(
    columns: fmpz_mat, goals: Sequence[Sequence[fmpq]], prior: Sequence[fmpq]
) -> list[fmpq_mat | None]:
    """Return for each goal the t with ``columns t = goal`` of least mean square, or None.

    Shapes: `columns` (inputs, outputs), `goals` (goals, inputs), `prior` (inputs,); t (outputs, 1).
    """
    if columns.nrows() == columns.ncols():
        try:
            solution = fmpq_mat(columns).solve(fmpq_mat([*zip(*goals, strict=True)]))
        except ZeroDivisionError:  # the columns are dependent
            pass
        else:
            return [_column(each) for each in zip(*solution.tolist(), strict=True)]
    # The t of least sum_i m_i t_i^2 is t_i = (B' y)_i / m_i, with B a basis of the columns. Others
    # are combinations of it: there is a t if their goals are the same combinations.
    reduced, below, rank = columns.transpose().rref()
    sums = reduced.tolist()[:rank]
    chosen = [row.index(below) for row in sums]
    basis = fmpq_mat([columns.tolist()[j] for j in chosen])
    means = (fmpq_mat([prior]) * fmpq_mat(columns)).entries()
    occurs = [any(output) for output in zip(*columns.tolist(), strict=True)]
    solutions: list[fmpq_mat | None] = []
    for goal in goals:
        known = fmpq_mat([[goal[j] for j in chosen]])
        if known * fmpq_mat(fmpz_mat(sums)) != below * fmpq_mat([goal]):
            solutions.append(None)
            continue
        if any(possible and not mean for possible, mean in zip(occurs, means, strict=True)):
            raise InvalidPrior(
                "an output occurs only for inputs of weight 0: the prior does not say which"
                " unbiased estimate is best"
            )
        shares = [1 / mean if mean else mean for mean in means]
        weighted = fmpq_mat(
            [
                [share * entry for share, entry in zip(shares, row, strict=True)]
                for row in basis.tolist()
            ]
        )
        solved = (weighted * basis.transpose()).solve(known.transpose())
        solutions.append(weighted.transpose() * solved)
    return solutions


def _reason(table: Table, rank: int) -> str:
    """Return why there is no unbiased estimate."""
    columns = [*zip(*table.weights, strict=True)]
    for (j, first), (k, second) in combinations(enumerate(columns), 2):
        if first == second:
            return (
                f"there is no unbiased estimate: inputs {j} and {k} give every output with the same"
                " probability"
            )
    return (
        f"there is no unbiased estimate: the {table.inputs} columns of the table have rank {rank},"
        " so that the distribution of the output does not determine what is estimated"
    )


def _column(values: Iterable[fmpq]) -> fmpq_mat:
    return fmpq_mat([[value] for value in values])


def _fractions(values: Iterable[fmpq]) -> tuple[Fraction, ...]:
    return tuple(map(_fraction, values))


def _fraction(value: fmpq) -> Fraction:
    return Fraction(int(value.p), int(value.q))


def _fmpq(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)

"""Dependence of each two attributes: log-linear interactions in smooth terms.

The joint distribution of a pair is log P(x, y) = alpha(x) + beta(y) + sum_ab theta_ab psi_a(x)
phi_b(y), with the margins held (Goodman 1981; the density of a copula in exponential form). psi_1
is the normal score of the rank, so that one term alone is close to a normal copula, and psi_2,
psi_3, ... are Legendre polynomials of the rank, all orthonormal under the margin. With the scores T
of products of functions, whose mean is N G P H and whose covariance is (N / I) G x H, the
log-likelihood is I (<T, P> - N tr(P' G P H) / 2).

Values that are no neighbours of others ("missing") have no rank: the smooth terms are those of the
other values, 0 at these, and each of these has a term of its own, all of which share their tau.

theta_ab ~ N(mu [a = b = 1], tau_ab^2) for all pairs, tau_ab = tau_ba: mu and tau maximise the
evidence by Laplace's approximation (MacKay 1992), together with weak priors of their own. For the
few pairs unlike the others there are fits under other priors, which do not depend on the others.
What these few terms cannot follow is left to `rangeq.grids.wavegrid.local_terms`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
import scipy

from mechdesign.base import Floats, Items
from rangeq.grids.fitting import Expansion, climb

Key = TypeVar("Key")

_Table = tuple[Floats, Floats | None]  # A table P and exp(beta)

DEGREE = 4  #: The number of terms along each attribute: with local terms more are worth nothing.

#: The prior scales tau: of the first term, a correlation of 0.4 or so, and of values apart, and of
#: all others.
_FIRST, _OTHERS = 0.5, 0.05

_COMMON = 2.0  # the prior deviation of mu

_LEAST, _MOST = 1e-3, 20.0  #: Bounds of tau: terms below and above are off, and free.

#: Starts of the search for tau: high for the first term and the others, and low for all.
_START, _LOW = (3.0, 1.0), 0.1

_SETTLED = 0.05  # the changes of the logarithm of the first tau and of mu below which rounds end

_STEPS = 12  # the most steps of a fit under another prior

_ROUNDS = 8  # the most rounds of fits and scales by turns

# The largest total error of the margins for which a step is taken: tables that are nearly a line
# would take too long to scale.
_OFF = 1e-3

_REFINED = 3000  # the most turns of the last scaling of a fit: it is not tried again

_GAIN = 1e-3  # the gain of the log-posterior below which a step is the last

_EMPTY = 1e-9  # the mass below which a cell is empty, and has no part in scores of ranks

_SEEN = 1e-3  # the relative squared norm below which a function adds nothing to the information

_SINGULAR = 1e-13  # the part of the information of all terms that each has at least

_TINY = 1e-300  # A positive number that keeps quotients of nothing by nothing finite


class Terms(NamedTuple):
    """Functions of an attribute, orthonormal under its distribution, of mean 0."""

    functions: Floats  # psi_1, psi_2, ...: shape (cells, functions)
    # The row of tau of each: 0, 1, ... for psi_1, psi_2, ..., and -1, the last, for all that belong
    # to a value apart
    numbers: tuple[int, ...]

    def reordered(self, order: Items) -> Terms:
        """The same functions of the cells in another order."""
        return self._replace(functions=self.functions[order])


def terms(mass: Floats, degree: int, apart: int = 0) -> Terms:
    """Return psi_1 .. psi_degree on cells of this mass, and one function for each that is apart."""
    near = len(mass) - apart
    # Orthonormal under the distribution of the near cells; the root of their share makes them so
    # under the whole distribution, with 0 at the values apart
    total = max(float(mass[:near].sum()), _EMPTY)
    smooth = _smooth(mass[:near] / total, degree) / np.sqrt(total)
    functions = [*np.pad(smooth, ((0, apart), (0, 0))).T]
    number = len(functions)
    for cell in range(near, len(mass)):
        term = (np.arange(len(mass)) == cell) - mass[cell]
        # An indicator less its mean is orthogonal to the smooth functions, which are 0 there and
        # have the mean 0: only those of other values apart are taken off
        for other in functions[number:]:
            term = term - other * (mass @ (term * other))
        if (left := mass @ term**2) > _EMPTY:
            functions.append(term / np.sqrt(left))
    numbers = *range(number), *[-1] * (len(functions) - number)
    return Terms(np.array(functions).reshape(-1, len(mass)).T, numbers)


def _smooth(mass: Floats, degree: int) -> Floats:
    """Return psi_1 .. psi_degree: shape (cells, degree), or as many as the cells can have."""
    # A cell's normal score is the mean of the normal quantiles of its ranks; those of 0 and 1 are
    # infinite
    ends = np.clip(np.concatenate([[0.0], np.cumsum(mass)]), 1e-12, 1 - 1e-12)
    rank = (ends[1:] + ends[:-1]) / 2
    density = np.exp(-(scipy.special.ndtri(ends) ** 2) / 2) / np.sqrt(2 * np.pi)
    # The mean of the normal quantile over ranks a .. b is (phi(z_a) - phi(z_b)) / (b - a), with phi
    # = 0 at both ends, whatever they were clipped to
    density[[0, -1]] = 0.0
    occupied = mass > _EMPTY
    # Where a cell has no mass both differences are rounding
    at_rank = scipy.special.ndtri(np.clip(rank, _EMPTY, 1 - _EMPTY))
    normal = np.where(occupied, (density[:-1] - density[1:]) / np.maximum(mass, _EMPTY), at_rank)
    basis: list[Floats] = []
    for raw in (
        np.ones_like(mass),
        normal,
        *(np.polynomial.Legendre.basis(k)(2 * rank - 1) for k in range(2, degree + 1)),
    ):
        term, length = raw, np.sqrt(mass @ raw**2)
        for _ in range(2):  # Gram and Schmidt, twice for the sake of rounding
            for other in basis:
                term = term - other * (mass @ (term * other))
        left = np.sqrt(mass @ term**2)
        # Polynomials of ranks become dependent where few cells hold nearly all users: what is left
        # of one is then rounding, blown up to length 1
        if left > 1e-3 * max(length, 1e-12) and len(basis) < occupied.sum():
            basis.append(term / left)
    return np.array(basis[1 : degree + 1]).reshape(-1, len(mass)).T


def scaled_to(
    logarithms: Floats,
    rows: Floats,
    columns: Floats,
    start: Floats | None = None,
    turns: int = 300,
) -> tuple[Floats, Floats]:
    """Return the table exp(logarithms + alpha + beta') with given margins, and exp(beta)."""
    # By iterative proportional fitting
    # A constant is absorbed by alpha, and without the maximum the exponential would overflow
    kernel = np.exp(logarithms - logarithms.max())
    right = np.ones(len(columns)) if start is None else start
    for turn in range(turns):
        left = rows / np.maximum(kernel @ right, _TINY)
        sums = kernel.T @ left
        # Rows are exact here, so the columns alone tell how far the table is off; looked at now and
        # then, as a look costs nearly as much as a turn of a small table
        if turn % 5 == 4 and np.abs(right * sums - columns).sum() < 1e-7:
            break
        right = columns / np.maximum(sums, _TINY)
    return left[:, None] * kernel * right, right


@dataclass(frozen=True, eq=False)
class Interaction:
    """The fit of one pair, at one degree.

    The log-likelihood is about pull'theta - theta' information theta / 2 around theta, but for a
    constant.
    """

    terms: tuple[Terms, Terms]  # psi and phi: shapes (cells, a) and (cells, b)
    theta: Floats  # the coefficients: shape (a, b)
    joint: Floats  # P: shape (cells, cells)
    right: Floats | None  # exp(beta), where the next scaling begins
    likelihood: float  # logarithmic, at theta
    information: Floats  # shape (a b, a b)
    pull: Floats  # shape (a b,)
    covariance: Floats  # of the coefficients, a posteriori


@dataclass(frozen=True, eq=False)
class Halves:
    """The likelihood of reports on the halves of two attributes.

    The log-likelihood of s = left'P right, the mass of records whose values are both in the lower
    or both in the upper half less that of the others, is score s - precision s^2 / 2.
    """

    left: Floats  # 1 in the lower half of the attribute, -1 in the upper: shape (cells,)
    right: Floats
    score: float  # I T
    precision: float  # I N

    def difference(self, table: Floats) -> float:
        """The difference s of a table of shape (cells, cells)."""
        return float(self.left @ table @ self.right)

    def likelihood(self, table: Floats) -> float:
        """The log-likelihood of a table, but for a constant."""
        s = self.difference(table)
        return self.score * s - 0.5 * self.precision * s**2

    def merged(self, left: Floats, right: Floats) -> Halves:
        """The same of fewer cells, given the shares of old ones in new ones: (old, new) each."""
        return replace(self, left=left.T @ self.left, right=right.T @ self.right)

    def with_more(self, other: Halves) -> Halves:
        """The likelihood with more reports."""
        return replace(
            self, score=self.score + other.score, precision=self.precision + other.precision
        )


@dataclass(frozen=True, eq=False)
class Pair:
    """The likelihood of a pair, and its margins."""

    scores: Floats  # I T: shape (cells, cells)
    precision: float  # I N
    grams: tuple[Floats, Floats]  # G and H
    margins: tuple[Floats, Floats]  # the distribution of each attribute
    halves: Halves  # what reports on the halves of both tell besides
    # How many of the last cells of each are no neighbours of others
    apart: tuple[int, int] = (0, 0)

    @cached_property
    def _roots(self) -> tuple[Floats, Floats]:
        """The roots R of G = R R' and S of H: reports see R'P S of P."""
        return _root(self.grams[0]), _root(self.grams[1])

    def with_more(self, other: Pair) -> Pair:
        """The likelihood with more reports, of the same functions and margins."""
        return replace(
            self,
            scores=self.scores + other.scores,
            precision=self.precision + other.precision,
            halves=self.halves.with_more(other.halves),
        )

    def independent(self) -> Interaction:
        """The fit without any terms."""
        rows, columns = self.margins
        left, right = (Terms(np.zeros((len(mass), 0)), ()) for mass in self.margins)
        joint, none = np.outer(rows, columns), np.zeros((0, 0))
        return Interaction(
            (left, right), none, joint, None, self.likelihood(joint), none, np.zeros(0), none
        )

    def start(self, degree: int) -> Interaction:
        """The start of the fit of so many terms along each attribute: coefficients 0."""
        left, right = (
            terms(mass, degree, number_apart)
            for mass, number_apart in zip(self.margins, self.apart, strict=True)
        )
        theta = np.zeros((len(left.numbers), len(right.numbers)))
        return replace(self.independent(), terms=(left, right), theta=theta)

    def merged(self, groups: tuple[Items, Items]) -> Pair:
        """Return the pair in fewer cells, the numbers of which `groups` has for each old one."""
        shares = []
        for group, mass in zip(groups, self.margins, strict=True):
            # Within a coarse cell old cells keep their proportions: a function of the coarse cell
            # is the conditional mean. The small term shares empty ones evenly
            inside = group[:, None] == np.arange(group[-1] + 1)
            masses = inside * (mass + _EMPTY / len(mass))[:, None]
            shares.append(masses / masses.sum(axis=0))
        left, right = shares
        return Pair(
            left.T @ self.scores @ right,
            self.precision,
            (left.T @ self.grams[0] @ left, right.T @ self.grams[1] @ right),
            (
                np.bincount(groups[0], self.margins[0]).astype(np.float64),
                np.bincount(groups[1], self.margins[1]).astype(np.float64),
            ),
            self.halves.merged(left, right),
            self.apart,
        )

    def refined(self, fits: Sequence[Interaction]) -> list[Interaction]:
        """Return fits of merged cells as fits of these: of the same coefficients."""
        # Without any, where the cells have other terms, as nearly all users are in a few of them,
        # or where these coefficients leave no table with the margins
        coarse = fits[0].terms
        rows, columns = (
            terms(mass, sum(number >= 0 for number in coarse_terms.numbers), number_apart)
            for mass, coarse_terms, number_apart in zip(
                self.margins, coarse, self.apart, strict=True
            )
        )
        if (rows.numbers, columns.numbers) != tuple(each.numbers for each in coarse):
            return [self.independent() for _ in fits]
        return [self._with_terms(fit, rows, columns) for fit in fits]

    def _with_terms(self, fit: Interaction, rows: Terms, columns: Terms) -> Interaction:
        """A fit of the same coefficients of these terms, or of none: see `refined`."""
        logarithms = rows.functions @ fit.theta @ columns.functions.T
        joint, right = scaled_to(logarithms, *self.margins, turns=_REFINED)
        if self._off(joint) > _OFF:
            return self.independent()
        return replace(
            fit,
            terms=(rows, columns),
            joint=joint,
            right=right,
            likelihood=self.likelihood(joint),
        )

    def _off(self, joint: Floats) -> float:
        """The sum of absolute differences of the margins of a table from those of the pair."""
        return float(
            sum(
                np.abs(joint.sum(axis=1 - axis) - margin).sum()
                for axis, margin in enumerate(self.margins)
            )
        )

    def likelihood(self, joint: Floats) -> float:
        """The log-likelihood of a table, but for a constant."""
        # tr(P' G P H) = |R' P S|^2, a sum of squares: at least 0 in every order of summation, and
        # cheaper, as the roots are narrower than the cells
        left, right = self._roots
        return float(
            (self.scores * joint).sum()
            - 0.5 * self.precision * ((left.T @ joint @ right) ** 2).sum()
            + self.halves.likelihood(joint)
        )

    def unexplained(self, joint: Floats) -> Floats:
        """The slopes of the log-likelihood in the entries of P."""
        halves = self.halves.score * np.outer(self.halves.left, self.halves.right)
        return self.scores + halves - self.information(joint)

    def information(self, changes: Floats) -> Floats:
        """Fisher's information about the sizes of some changes of P and each of its entries."""
        halves = self.halves
        waves = self.precision * (self.grams[0] @ changes @ self.grams[1])
        differences = halves.precision * (changes @ halves.right @ halves.left)
        return waves + np.multiply.outer(differences, np.outer(halves.left, halves.right))

    def slopes(self, psi: Floats, phi: Floats, joint: Floats) -> Floats:
        """Return the derivatives dP / dtheta with the margins held: shape (a b, rows, columns)."""
        # P (psi phi - alpha' - beta'), where the changes alpha' and beta' cancel those of both
        # margins
        return self._slopes(_products(psi, phi), psi, phi, joint)

    def _slopes(self, products: Floats, psi: Floats, phi: Floats, joint: Floats) -> Floats:
        rows, columns = (mass + 1e-12 for mass in self.margins)
        # The sums of the products times P, without a look at every cell
        # d log P = psi phi - alpha' - beta' must leave both margins as they are: two linear
        # equations for alpha' and beta'. alpha' is eliminated (Schur complement), as its block is
        # diagonal
        by_row = psi.T[:, None] * (joint @ phi).T
        by_column = (psi.T @ joint)[:, None] * phi.T
        by_row, by_column = by_row.reshape(-1, len(rows)), by_column.reshape(-1, len(columns))
        # beta' is known but for a constant: the outer product fixes that.
        # A Laplacian matrix, whose columns sum to 0: the diagonal is a sum, and not a difference
        root = joint / np.sqrt(rows)[:, None]
        shared = root.T @ root
        np.fill_diagonal(shared, 0.0)
        matrix = np.outer(columns, columns) - shared
        matrix.flat[:: len(columns) + 1] += shared.sum(axis=0) + 1e-12
        beta = np.linalg.solve(matrix, (by_column - (by_row / rows) @ joint).T).T
        alpha = (by_row - beta @ joint.T) / rows
        slopes = products - alpha[:, :, None]
        slopes -= beta[:, None, :]
        slopes *= joint
        return slopes

    @cached_property
    def _seen(self) -> tuple[Floats, Floats]:
        """The columns of the roots, but for those of negligible norm."""
        left, right = (
            root[:, squares > _SEEN * squares.max(initial=0.0)]
            for root, squares in ((root, (root**2).sum(axis=0)) for root in self._roots)
        )
        return left, right

    def told_of(self, slopes: Floats) -> Floats:
        """Return Fisher's information about the sizes of some changes of P: (changes, changes)."""
        left, right = self._seen
        several, rows, columns = slopes.shape
        # One matrix product for all changes instead of one each; the order of the two roots does
        # not matter, so the cells of the second attribute, which lie together in memory, go first
        inner = slopes.reshape(several * rows, columns) @ right
        inner = inner.reshape(several, rows, right.shape[1])
        seen = np.matmul(left.T, inner).reshape(several, left.shape[1] * right.shape[1])
        halves = np.matmul(slopes @ self.halves.right, self.halves.left)
        # Information as root root': positive semidefinite whatever the rounding, as `climbed`
        # inverts it with the prior
        root = np.column_stack(
            [np.sqrt(self.precision) * seen, np.sqrt(self.halves.precision) * halves]
        )
        return np.asarray(root @ root.T)

    def climbed(self, fit: Interaction, precision: Floats, mean: Floats, steps: int) -> Interaction:
        """Climb steps of damped Gauss-Newton to the mode under theta ~ N(mean, 1 / precision)."""

        psi, phi = (each.functions for each in fit.terms)
        products, start = _products(psi, phi), (fit.joint, fit.right)
        weights, middle = precision.ravel(), mean.ravel()

        def penalised(theta: Floats, last: _Table | None) -> tuple[float, _Table]:
            penalty = 0.5 * float((weights * (theta - middle) ** 2).sum())
            # At the start the table is known: nothing is scaled
            if last is None:
                return fit.likelihood - penalty, start
            logarithms = psi @ theta.reshape(fit.theta.shape) @ phi.T
            state = scaled_to(logarithms, *self.margins, last[1])
            # Where the scaling does not arrive the table has other margins, and its likelihood
            # would be compared with one of another problem: the step is refused, and damped
            off = self._off(state[0])
            return (-np.inf if off > _OFF else self.likelihood(state[0]) - penalty), state

        def around(theta: Floats, state: _Table) -> Expansion[Floats]:
            if state is start and fit.information.size:  # known from the last climb
                information, gradient = fit.information, fit.pull - fit.information @ theta
            else:
                slopes = self._slopes(products, psi, phi, state[0])
                information = self.told_of(slopes)
                gradient = slopes.reshape(len(slopes), -1) @ self.unexplained(state[0]).ravel()
            return Expansion(
                information,
                gradient - weights * (theta - middle),
                information + np.diag(weights),
            )

        # Gauss-Newton: the likelihood is quadratic in P, so without the second derivatives of P in
        # theta the Hessian is Fisher's information, which is never indefinite
        theta, value, (joint, right), here = climb(
            fit.theta.ravel(), penalised, around, steps, _GAIN
        )
        # The prior is taken off value and slope again, so that another prior can use the expansion
        off = weights * (theta - middle)
        covariance = np.asarray(np.linalg.inv(_steady(here.hessian)), dtype=np.float64)
        return replace(
            fit,
            theta=theta.reshape(fit.theta.shape),
            joint=joint,
            right=right,
            likelihood=value + 0.5 * float(off @ (theta - middle)),
            information=here.known,
            pull=here.known @ theta + here.gradient + off,
            covariance=covariance,
        )


@dataclass(frozen=True, eq=False)
class Scales:
    """The prior of all pairs' coefficients."""

    # Shape (degree + 1, degree + 1): the deviations of the coefficients, the last of values apart.
    # Symmetric, where they are learnt from pairs.
    tau: Floats
    mu: float  # the mean of the first one

    @classmethod
    def of(cls, degree: int, first: float, others: float, mu: float = 0.0) -> Scales:
        """Scales with two values of tau."""
        tau = np.full((degree + 1, degree + 1), others)
        tau[np.ix_([0, -1], [0, -1])] = first
        return cls(tau, mu)

    def along(self, axis: int, tau: float) -> Scales:
        """Scales with another tau of the first term of one attribute, with any of the other's."""
        # `moveaxis` gives a view, so that assigning to it changes the copy
        changed = self.tau.copy()
        np.moveaxis(changed, axis, 0)[0] = tau
        return replace(self, tau=changed)

    def prior(self, both: tuple[Terms, Terms]) -> tuple[Floats, Floats]:
        """Precisions and means of the coefficients of a pair with such terms: both (a, b)."""
        left, right = (np.array(each.numbers) for each in both)
        mean = self.mu * np.multiply.outer(left == 0, right == 0)
        return self.tau[np.ix_(left, right)] ** -2.0, mean

    @property
    def log_prior(self) -> float:
        """The logarithm of the prior of tau, 0 where it is as expected, and of mu."""
        # tau^2 counts as if one coefficient of the expected size had been seen
        ratio = (_expected(len(self.tau) - 1) / self.tau)[np.triu_indices(len(self.tau))] ** 2
        return float(0.5 * (np.log(ratio) - ratio + 1).sum() - 0.5 * (self.mu / _COMMON) ** 2)

    def evidence(self, fits: Sequence[Interaction]) -> float:
        """Return Laplace's log evidence, with likelihoods linearised at the last fits."""
        total = self.log_prior
        for fit in fits:
            precision, mean = (part.ravel() for part in self.prior(fit.terms))
            # The quadratic log-likelihood times a normal prior, integrated by completing the square
            hessian = _steady(fit.information + np.diag(precision))
            pull = fit.pull + precision * mean
            best = float(pull @ np.linalg.solve(hessian, pull) - precision @ mean**2)
            total += 0.5 * (
                best + float(np.log(precision).sum()) - float(np.linalg.slogdet(hessian)[1])
            )
        return total

    def pair_evidence(self, fit: Interaction) -> float:
        """The logarithm of one pair's evidence, by the likelihood itself, for a fit at its mode."""
        precision, mean = self.prior(fit.terms)
        hessian = _steady(fit.information + np.diag(precision.ravel()))
        total = fit.likelihood - 0.5 * float((precision * (fit.theta - mean) ** 2).sum())
        return total + 0.5 * (float(np.log(precision).sum()) - float(np.linalg.slogdet(hessian)[1]))

    def improved(self, fits: Sequence[Interaction], rounds: int = 60) -> Scales:
        """A fixed point of tau, where the evidence of the linearised problem is stationary."""
        # tau^2 = sum (theta - mean)^2 / sum (1 - variance / tau^2), over the coefficients of the
        # same two terms; the denominator is how many coefficients are known
        # Pairs with the same terms are stacked, so that one call inverts all of their matrices
        alike: dict[tuple[tuple[int, ...], ...], list[Interaction]] = {}
        for fit in fits:
            alike.setdefault(tuple(each.numbers for each in fit.terms), []).append(fit)
        stacks = [
            (
                numbers,
                same[0].terms,
                np.array([fit.information for fit in same]),
                np.array([fit.pull for fit in same]),
            )
            for numbers, same in alike.items()
        ]
        scales, expected = self, _expected(len(self.tau) - 1)
        for _ in range(rounds):
            squares, known, first = np.zeros(self.tau.shape), np.zeros(self.tau.shape), []
            for numbers, both, information, pull in stacks:
                precision, mean = (part.ravel() for part in scales.prior(both))
                covariance = np.linalg.inv(_steady(information + np.diag(precision)))
                theta = np.einsum("mij,mj->mi", covariance, pull + precision * mean)
                here, shape = np.ix_(*numbers), tuple(map(len, numbers))
                seen = ((theta - mean) ** 2).sum(axis=0)
                determined = (1 - np.einsum("mii->mi", covariance) * precision).sum(axis=0)
                # `add.at`, as all values apart share the number -1: `+=` would count one of them
                np.add.at(squares, here, seen.reshape(shape))
                np.add.at(known, here, determined.reshape(shape))
                if numbers[0][0] == numbers[1][0] == 0:
                    first.extend(theta[:, 0].tolist())
            squares, known = _both_ways(squares), _both_ways(known)
            # With a prior worth one coefficient of the expected size; coefficients that are less
            # than known, by rounding, count as not at all
            tau = np.clip(
                np.sqrt((squares + expected**2) / (np.maximum(known, 0) + 1)), _LEAST, _MOST
            )
            # The posterior mean of mu given the first coefficients; a single pair says nothing of
            # what pairs have in common
            weight = scales.tau[0, 0] ** -2
            mu = (
                float(weight * np.sum(first) / (len(first) * weight + _COMMON**-2))
                if len(first) > 1
                else 0.0
            )
            change, scales = np.abs(np.log(tau / scales.tau)).max(), Scales(tau, mu)
            if change < 0.01:
                break
        return scales


def fitted(pairs: Mapping[Key, Pair]) -> tuple[dict[Key, Interaction], Scales]:
    """Return the fits of all pairs, without terms if one attribute is constant, and their prior."""
    result = {key: pair.start(DEGREE) for key, pair in pairs.items()}
    fits = {key: fit for key, fit in result.items() if fit.theta.size}
    scales = Scales.of(DEGREE, *_START)
    if not fits:
        return result, scales
    for round_ in range(_ROUNDS):
        # Few steps: the modes move with the scales, and the next round goes on from them
        _climb(pairs, fits, scales, 3 if round_ else 5)
        here = list(fits.values())
        # The evidence may have several maxima: terms that are off stay off.
        starts = (
            scales,
            Scales.of(DEGREE, *_START, scales.mu),
            Scales.of(DEGREE, _LOW, _LOW, scales.mu),
        )
        old, scales = (
            scales,
            max(
                (start.improved(here) for start in starts),
                key=lambda candidate: candidate.evidence(here),
            ),
        )
        if (
            round_
            and abs(np.log(scales.tau[0, 0] / old.tau[0, 0])) < _SETTLED
            and abs(scales.mu - old.mu) < _SETTLED
        ):
            break
    _climb(pairs, fits, scales, 6)
    result.update(fits)
    return result, scales


def refitted(
    pairs: Mapping[Key, Pair], fits: Mapping[Key, Interaction], scales: Scales
) -> dict[Key, Interaction]:
    """The fits of all pairs under another prior, from these on."""
    changed = {key: fit for key, fit in fits.items() if fit.theta.size}
    _climb(pairs, changed, scales, _STEPS)
    return {**fits, **changed}


def _climb(
    pairs: Mapping[Key, Pair], fits: dict[Key, Interaction], scales: Scales, steps: int
) -> None:
    for key, fit in fits.items():
        fits[key] = pairs[key].climbed(fit, *scales.prior(fit.terms), steps)


def _products(psi: Floats, phi: Floats) -> Floats:
    """The products psi_a(x) phi_b(y): shape (a b, rows, columns)."""
    products = psi.T[:, None, :, None] * phi.T[None, :, None, :]
    return products.reshape(-1, len(psi), len(phi))


def _expected(degree: int) -> Floats:
    """The tau expected of all terms."""
    return Scales.of(degree, _FIRST, _OTHERS).tau


def _both_ways(sums: Floats) -> Floats:
    """Sums over terms (a, b) and (b, a)."""
    result: Floats = sums + sums.T
    np.fill_diagonal(result, np.diag(sums))
    return result


def _steady(information: Floats) -> Floats:
    """A matrix, or a stack, of what is told and of a prior, with an inverse in floats."""
    # Of much that is told priors vanish in rounding, and terms may depend on each other
    ridge = _SINGULAR * np.trace(information, axis1=-2, axis2=-1)[..., None, None]
    return np.asarray(information + ridge * np.eye(information.shape[-1]))


def _root(gram: Floats) -> Floats:
    # By eigenvectors, as Gram matrices have less than full rank: the root has as many columns as
    # functions are seen
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-9 * max(values[-1], _TINY)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))

"""AdaptiveMarginals: the second half of the budget goes where the first one left most unknown.

Residuals of all single attributes and pairs are measured with half of the budget, as
`posterior_optimal` would with all of it. What was released says which pairs depend: these have the
other half. Both halves have noise of the same sigma^2, so together they are the numbers of one
`MarginalStrategy` that measures some views twice, and everything that a `MatrixMechanism` can do
follows. That its later numbers were chosen after earlier ones changes nothing of what is promised:
see `mechdesign.accounting.gaussian_loss`; and for rho-zero-concentrated privacy Bun and Steinke
(TCC 2016), lemma 2.3.

The choice costs nothing, as it reads only what was released. Let the shares of a table be (1 + sum
of g_a e_a) / cells, with e_a as in `posterior_optimal`, and the variances of the coefficients g_a
of a set of attributes be in proportion to those there, by a factor D. The measured coefficients
say how probable each D of a grid is. The expected risk, with the budget b_S for each set in the
second half, falls as p v / (p + v) averaged over D; budgets of the least sum of roots of the risks
of pairs are found by steps in proportion to b_S times the root of the slope.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.accounting import ZCDP, ApproximateDP
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.base import Floats, Integers, one_thread, shown
from mechdesign.exceptions import PrivacyViolation
from mechdesign.noise.discrete import DiscreteGaussian
from rangeq.central.inputs import LARGEST_MARGINALS, MarginalCounts, checked_shape
from rangeq.central.matrix_mechanism.design import entry_bits
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.mechanism import MatrixEstimate, MatrixMechanism
from rangeq.central.matrix_mechanism.posterior_design import (
    checked_users,
    falling,
    marginals_for_posterior,
)
from rangeq.central.matrix_mechanism.strategy import View

_DEPENDENCE = 10.0 ** np.arange(-4, 2.1, 0.5)  # the grid of D

_STEPS = 60  # towards the budgets

_LEAST = 1e-3  # of an even budget; what has less is not measured again

_SAFE = 1 - 2.0**-20  # for the rounding of floats; the sum is compared in integers

_TOTAL = 1e6  # of the prior variance of the total, which is that of no share


class BothStages(NamedTuple):
    """What was measured in both stages."""

    mechanism: MatrixMechanism  # of all numbers together
    numbers: Integers  # shape (mechanism.strategy.rows,): those of the first stage, and the others


class AdaptiveMarginals:
    """Single attributes and pairs in two stages, the second where the first one says.

    For several attributes of which few pairs depend on each other, more so the more there are. The
    releases are for `CentralEstimate.posterior`, as those of `posterior_optimal`, and unbiased
    answers follow, too.

    Parameters
    ----------
    domain : sequence of int
        The number of cells along each of up to 100 attributes, two of which have more than one.
    promise : ZCDP or ApproximateDP
        What both stages together keep, for one user more or less.
    users : float
        How many there are, about, from what is public: at least 1.

    Attributes
    ----------
    first : MatrixMechanism
        What is measured before anything is known.

    Raises
    ------
    ValueError, TypeError
        Another domain or promise, or a number of users that is none.

    Examples
    --------
    >>> adaptive = AdaptiveMarginals((10, 10, 2), ApproximateDP(1, "1e-9"), users=5000)
    >>> adaptive.first.strategy.rows, adaptive.first.audit().noise / adaptive.cost.squared_mu
    (163, Fraction(1, 2))
    """

    def __init__(self, domain: Sequence[int], promise: ZCDP | ApproximateDP, users: float) -> None:
        self.sizes = checked_shape(domain, LARGEST_MARGINALS)
        self.promise, self._users = promise, checked_users(users)
        if not isinstance(promise, (ZCDP, ApproximateDP)):
            raise TypeError(
                "what is measured in two stages has Gaussian noise, by a ZCDP or an ApproximateDP,"
                f" got a {type(promise).__name__}"
            )
        ratio = promise.noise_ratio
        # With half of the budget a number has twice the variance
        unit = 2 * float(ratio) / users**2
        self._marginals = marginals_for_posterior(self.sizes, unit, 1, entry_bits(ratio))
        self._budget = 2 * self._marginals.l2_squared
        self._sigma2 = Fraction(math.ceil(self._budget * ratio))
        self.first = MatrixMechanism(self._marginals, promise, self._sigma2)

    @property
    def cost(self) -> GaussianLoss:
        """The cost of both stages, for `mechdesign.Ledger.spend`: the most, whatever is chosen.

        Raises
        ------
        ValueError
            The integers of the strategy are so small that only `ZCDP` is proved of the noise.
        """
        noise = self.first.noise
        assert isinstance(noise, DiscreteGaussian)
        return GaussianLoss.of(noise, self._budget)

    def measured(
        self, counts: npt.ArrayLike | MarginalCounts, rng: np.random.Generator | None = None
    ) -> BothStages:
        """Draw the noisy numbers of both stages: all that a release discloses.

        Every call is a release of its own, and costs the promise again.

        Parameters
        ----------
        counts : array_like or MarginalCounts
            A histogram of shape ``sizes``, or its tables of pairs, from `count_marginals`.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.

        Returns
        -------
        BothStages
            The numbers, and the mechanism of which they are.

        Raises
        ------
        InvalidHistogram, PrivacyViolation
            As of `MatrixMechanism.release`; nothing was drawn.
        """
        numbers = self.first.noisy_numbers(counts, rng)
        second = self.second(numbers)
        both = self._both(second)
        others = MatrixMechanism(second, self.promise, self._sigma2).noisy_numbers(counts, rng)
        return BothStages(both, np.concatenate([numbers, others]))

    def release(
        self, counts: npt.ArrayLike | MarginalCounts, rng: np.random.Generator | None = None
    ) -> MatrixEstimate:
        """Release both stages: see `measured`.

        Parameters
        ----------
        counts, rng : as of `measured`
            The histogram or its tables, and the randomness.

        Returns
        -------
        MatrixEstimate
            Of all numbers together.

        Raises
        ------
        InvalidHistogram, PrivacyViolation
            As of `measured`.
        """
        both, numbers = self.measured(counts, rng)
        return both.estimate(numbers)

    @one_thread
    def second(self, numbers: Integers) -> MarginalStrategy:
        """Return what is measured after these numbers.

        Parameters
        ----------
        numbers : numpy.ndarray of int64
            What the first stage released.

        Returns
        -------
        MarginalStrategy
            Its squared sensitivity and that of the first together are within the budget.
        """
        first = self._marginals
        rest = self._budget - first.l2_squared
        # The precision of an orthonormal coefficient of shares, and what all of the rest would add
        unit = self._users**2 / self.first.noise_variance
        views: list[_View] = []
        for view, part in first.parts(numbers).items():
            sizes = [self.sizes[i] for i in view]
            squares = math.prod(n * (n - 1) for n in sizes)
            told = unit * first.precisions[view]
            more = unit * rest * math.prod(sizes) ** 2 / squares
            views.append(_View(view, sizes, part / self._users, told, more, squares))
        # Rounded down, so that their squared sensitivity is at most the rest
        found = {
            each.view: math.isqrt(math.floor(rest * _SAFE * budget) // each.squares)
            for each, budget in zip(views, _budgets(views), strict=True)
        }
        kept = {view: weight for view, weight in found.items() if weight} or {(): math.isqrt(rest)}
        return MarginalStrategy(self.sizes, [*kept], [*kept.values()], True)

    def _both(self, second: MarginalStrategy) -> MatrixMechanism:
        """The mechanism of the numbers of both stages."""
        first = self._marginals
        strategy = MarginalStrategy(
            self.sizes, first.views + second.views, first.weights + second.weights, True
        )
        if strategy.l2_squared > self._budget:
            allowed = 1 / self.promise.noise_ratio
            loss = strategy.l2_squared / Fraction(self.first.noise.variance)
            raise PrivacyViolation(loss, allowed, "the noisy numbers", (0, 1))
        return MatrixMechanism(strategy, self.promise, self._sigma2)

    def __repr__(self) -> str:
        return f"<AdaptiveMarginals of {shown(self.sizes)} cells, {self.promise!r}>"


class _View(NamedTuple):
    """What is known of a set of attributes after the first stage."""

    view: View
    sizes: Sequence[int]
    part: Floats  # the measured residual, in shares
    told: float  # the precision of an orthonormal coefficient of it
    more: float  # and what all of the rest of the budget would add
    squares: int  # a column of a residual of weight w has the squared norm w^2 times this


def _budgets(views: Sequence[_View]) -> Floats:
    """The part of the rest for each set of attributes."""
    from scipy.fft import dctn

    places = {each.view: place for place, each in enumerate(views)}
    told = np.array([each.told for each in views])
    more = np.array([each.more for each in views])
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for place, each in enumerate(views):
        alike[tuple(each.sizes)].append(place)
    # Relative to even shares, in which a table of q cells has q times the square
    priors = {}
    for sizes, group in alike.items():
        squares: Floats = np.ones(1)
        for n in sizes:
            squares = np.outer(squares, falling(n)).ravel()
        cells = math.prod(sizes)
        noise = cells / told[group]
        chances: Floats = np.ones((len(group), 1))
        variances = _TOTAL * squares[None]
        if sizes:
            variances = _DEPENDENCE[:, None] * squares
            axes = tuple(range(1, len(sizes) + 1))
            stack = dctn(np.stack([views[k].part for k in group]), axes=axes, norm="ortho")
            own = stack[(slice(None), *(slice(1, None),) * len(sizes))].reshape(len(group), -1)
            spread = variances + noise[:, None, None]
            fit = np.log(spread) + cells * own[:, None] ** 2 / spread
            chances = np.exp(-0.5 * (fit.sum(axis=2) - fit.sum(axis=2).min(axis=1)[:, None]))
            chances /= chances.sum(axis=1, keepdims=True)
        priors[sizes] = cells, variances, chances
    pairs = [place for place, each in enumerate(views) if len(each.view) == 2]
    parents = np.array([[places[()], *(places[i,] for i in views[k].view)] for k in pairs])
    budgets = np.full(len(views), 1 / len(views))
    for _ in range(_STEPS):
        left, slopes = np.empty(len(views)), np.empty(len(views))
        for sizes, group in alike.items():
            cells, variances, chances = priors[sizes]
            precision = told[group] + more[group] * budgets[group]
            noise = (cells / precision)[:, None, None]
            known = variances / (variances + noise)
            left[group] = (chances * (known * noise).sum(axis=2)).sum(axis=1)
            falls = (chances * (known**2 * noise).sum(axis=2)).sum(axis=1)
            slopes[group] = falls * more[group] / precision
        weight = 1 / np.sqrt(left[pairs] + left[parents].sum(axis=1))
        every = np.zeros(len(views))
        np.add.at(every, pairs, weight)
        np.add.at(every, parents, np.broadcast_to(weight[:, None], parents.shape))
        slopes *= every
        budgets = budgets * np.sqrt(slopes / slopes.max())
        budgets /= budgets.sum()
    budgets[budgets < _LEAST / len(views)] = 0.0
    return np.asarray(budgets / budgets.sum())

"""shuffle_optimal(...): the table of little variance for a workload whose reports are shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm

from mechdesign.accounting.pair_law import exact_delta
from mechdesign.accounting.shuffling import LARGEST_N, TRUST, Shuffled, shuffled
from mechdesign.base import Floats, ProgressMeter, Rational, brief, one_thread, shown, whole
from mechdesign.local.bounds import MomentProgram
from mechdesign.local.optimality import variances_by_input
from mechdesign.local.patterns import gram
from mechdesign.local.windows import (
    Target,
    Windows,
    largest_moment,
    optimised,
    randomised_response,
)
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.privacy import Privacy, exact_epsilon

_UNITS = 1 << 62  # weights of the table are integers that add up to this in every column

_LEAST_BLANKET = 1e-6  # the least mass of the blanket, also if less would keep (epsilon, delta)

_CLOSE = 1e-3  # the tolerance of the odds of the blanket, relative to them

# The relative excess over the bound up to which randomised response is not improved on.
_CLOSE_ENOUGH = 0.01


@dataclass(frozen=True)
class ShuffleDesign:
    """A local mechanism for a workload, whose reports are shuffled.

    Attributes
    ----------
    mechanism : Mechanism
        Exact and audited, ``neighbours="all"``: its privacy is that of each report alone.
    central : Shuffled
        The privacy of the shuffled reports of n users. ``central.delta(epsilon)`` is at most
        ``delta``: proved for this very table.
    epsilon, delta : Fraction
        What was asked for.
    queries : int
        How many queries the workload has.
    variance : float
        The sum over queries of the variance of the best unbiased estimate from one user, for
        equally likely inputs. For n users, divide by n.
    bound : float
        No table has less whose second moment of W (`mechdesign.local.bounds`) is for no two
        items larger than this one's, nor than that of randomised response with the same
        (epsilon, delta); in floats. By the central limit theorem that moment decides delta for many
        users, as long as epsilon is small. It is not a bound for all tables with the same delta.
    gram : numpy.ndarray of float64
        The Gram matrix of the queries, shape (domain, domain).
    """

    mechanism: Mechanism
    central: Shuffled
    epsilon: Fraction
    delta: Fraction
    queries: int
    variance: float
    bound: float
    gram: Floats

    @property
    def n(self) -> int:
        """The number of users who must follow the protocol."""
        return self.central.n

    @property
    def gap(self) -> float:
        """The excess of the variance over the bound, relative to it; infinite when that is 0."""
        if self.variance <= self.bound:
            return 0.0
        return self.variance / self.bound - 1 if self.bound > 0 else np.inf

    def __str__(self) -> str:
        m = self.mechanism
        return (
            f"{m.outputs} outputs for {m.inputs} inputs: average variance"
            f" {self.variance / self.queries:.6g} a query and user, {100 * self.gap:.2g}% above the"
            f" bound\n{self.n} shuffled reports: epsilon {brief(self.epsilon)}, delta"
            f" {float(self.delta):.3g}; each alone: epsilon {self.central.local_epsilon:.4g}\n"
            f"{TRUST}. If it does not, what holds is each report's epsilon."
        )


@one_thread
def shuffle_optimal(
    workload: str | npt.ArrayLike,
    domain: int,
    n: int,
    epsilon: float | Rational,
    delta: float | Rational,
    *,
    progress: bool = False,
) -> ShuffleDesign:
    """Return a local mechanism of little total variance for a workload of shuffled reports.

    What is charged is the (epsilon, delta) of the collection, not the likelihood ratio of a report
    as by `workload_optimal`. So a report may be nearly truthful if it is lost among others that are
    drawn at random. The search is among tables of windows (`mechdesign.local.windows`): a report
    names the user's item or some adjacent ones around it. Randomised response is one of them; what
    is returned is never worse than it is at the same (epsilon, delta). For histograms nothing is
    better (`mechdesign.local.bounds`). For prefixes and ranges windows are better the more
    items there are, the fewer users, and the smaller epsilon is.

    The second moment of W guides the search; `mechdesign.accounting.shuffled` decides.

    Parameters
    ----------
    workload : str or array_like
        "histogram", "prefixes", "ranges" (all 0 <= a <= b < domain), or a matrix of shape (queries,
        domain), as those of `mechdesign.local.patterns`. Windows help if items are in an
        order that matters.
    domain : int
        The number of inputs, 1 to 256.
    n : int
        At least how many users will follow the protocol, 1 to 10^12.
    epsilon, delta : float, Fraction, int, str or Decimal
        The privacy of the collection: epsilon from 1e-4 to 10, delta strictly between 0 and 1.
        Neighbouring datasets differ in one user's value.
    progress : bool, default False
        Show how far it is, on standard error.

    Returns
    -------
    ShuffleDesign

    Raises
    ------
    ValueError
        A workload, domain, n, epsilon or delta outside these.
    """
    k = whole(domain, "domain", 1, 256, what="a number of inputs")
    users = whole(n, "n", 1, LARGEST_N, what="a number of users")
    matrix, queries = gram(workload, k)
    asked, allowed = exact_epsilon(epsilon), exact_delta(delta)
    if not Fraction(1, 10**4) <= asked <= 10:
        raise ValueError(f"epsilon must be between 1e-4 and 10, got {shown(epsilon)}")
    if k == 1:
        only = Mechanism([[1]], Privacy(alpha=1, neighbours="all"))
        return ShuffleDesign(only, shuffled(only, users), asked, allowed, queries, 0.0, 0.0, matrix)
    ratio = float(np.exp(float(asked)))
    with ProgressMeter(f"shuffled design of {k} inputs", unit="tables", shown=progress) as meter:
        # Three steps: the moment for which a normal distribution gives this delta, randomised
        # response with the exact delta, and windows that are optimised for the moment which that
        # one has.
        moment = _normal_moment(users, ratio, float(allowed))
        response = randomised_response(k)
        mechanism, central = _hidden(response, users, asked, allowed, moment, meter)
        variance = _average_variance(mechanism, matrix)
        # The exact delta differs from that of a normal distribution: what randomised response may
        # have is what others are allowed
        moment = largest_moment(mechanism.matrix, ratio)
        bound = MomentProgram(matrix, ratio, moment).bound(mechanism.matrix)
        # For histograms the bound shows that nothing is to be gained, and the descent is spared.
        if variance > (1 + _CLOSE_ENOUGH) * bound:
            windows = optimised(Target(matrix, ratio, moment))
            other, its_central = _hidden(windows, users, asked, allowed, moment, meter)
            # The bound falls as the moment rises: with the larger of the two it holds for either
            # table.
            moment = max(moment, largest_moment(other.matrix, ratio))
            bound = MomentProgram(matrix, ratio, moment).bound(other.matrix)
            if (improved := _average_variance(other, matrix)) < variance:
                mechanism, central, variance = other, its_central, improved
    return ShuffleDesign(
        mechanism,
        central,
        asked,
        allowed,
        queries,
        max(variance, 0.0),
        max(min(bound, variance), 0.0),
        matrix,
    )


def _average_variance(mechanism: Mechanism, matrix: Floats) -> float:
    even = np.full(len(matrix), 1 / len(matrix))
    return float(np.mean(variances_by_input(mechanism.matrix, matrix, even)))


def _normal_moment(n: int, ratio: float, delta: float) -> float:
    """Return the second moment of W for which delta is reached, if the mean of n is normal."""
    drift = ratio - 1

    def excess(log_variance: float) -> float:
        deviation = float(np.exp(log_variance / 2))
        # delta = E[max(0, mean of W)]; the mean of W is 1 - e^epsilon, and E[max(0, N)] for a
        # normal N with mean -drift is deviation phi(x) - drift Phi(-x).
        x = drift / deviation
        return deviation * float(norm.pdf(x)) - drift * float(norm.sf(x)) - delta

    # In logarithms, around the variance drift^2 where x = 1: delta rises with the variance.
    low, high = 2 * np.log(drift) - 20, 2 * np.log(drift) + 20
    while excess(high) < 0:
        high += 20
    solution = brentq(excess, low, high) if excess(low) < 0 else low
    return n * float(np.exp(solution)) + drift**2


def _hidden(
    windows: Windows,
    n: int,
    epsilon: Fraction,
    delta: Fraction,
    moment: float,
    meter: ProgressMeter,
) -> tuple[Mechanism, Shuffled]:
    """Return the table with nearly the least blanket whose shuffled reports keep the privacy."""
    # With so much blanket that reports keep epsilon alone, delta is 0: that is where the search
    # ends at the latest.
    ratio, most = float(np.exp(float(epsilon))), windows.most()
    kept: dict[float, tuple[Mechanism, Shuffled]] = {}

    def excess(log_odds: float) -> float:
        meter.update()
        gamma = float(expit(log_odds))
        weights = windows.weights(gamma, _UNITS)
        # Weights are rounded before the privacy is computed: it is that of the very table returned.
        alpha = min(Fraction(min(row), max(row)) for row in weights)
        mechanism = Mechanism.from_weights(weights, _UNITS, Privacy(alpha=alpha, neighbours="all"))
        central = shuffled(mechanism, n)
        reached = central.delta(epsilon)
        if reached <= delta:
            kept[gamma] = mechanism, central
        # Above 0 where the collection is not private enough.
        return _scale(float(delta)) - _scale(reached)

    # At `last` each report keeps epsilon: (1 - gamma) s <= (e - 1) gamma b for every output.
    first, last = float(logit(_LEAST_BLANKET)), float(np.log(most / (ratio - 1))) + 1e-9
    begin = Target(np.eye(2), ratio, moment).blanket(windows.apart(ratio))[0]
    low = high = min(max(float(logit(begin)), first), last)
    # The start is good, and each delta takes long: a bracket is sought with small steps that grow
    # by three, instead of bisection between `first` and `last`.
    step = 0.05
    if excess(low) > 0:
        while high < last and excess(high := min(last, high + step)) > 0:
            low, step = high, 3 * step
    else:
        while low > first and excess(low := max(first, low - step)) <= 0:
            high, step = low, 3 * step
    if low < high:
        root = brentq(excess, low, high, xtol=_CLOSE / 2)
        # The root itself may be on the wrong side by its tolerance: one more point, slightly above.
        if min(kept) > expit(root + _CLOSE):
            excess(root + _CLOSE / 2)
    mechanism, central = kept[min(kept)]
    mechanism.audit().require()
    return mechanism, central


def _scale(delta: float) -> float:
    """Return a function of delta that is nearly linear in the log odds of the blanket."""
    # About the quantile of a normal tail of probability delta (Chernoff): delta itself changes by
    # orders of magnitude, and a secant of it would be useless to Brent's method.
    return float(np.sqrt(-2 * np.log(max(delta, 1e-300))))

"""compose(...): the privacy loss of several releases about the same users together."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from flint import arb

from mechdesign.accounting.dummy_counts import AmongDummies
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.accounting.inversion import Advantage, Mean, Summands
from mechdesign.accounting.pair_law import PrivacyCurve, exact_delta, exp_below, float_above
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.accounting.promises import RenyiCurve, exact_order
from mechdesign.accounting.shuffling import Shuffled
from mechdesign.base import Rational, ball, precision
from mechdesign.mechanism.table import Table

#: The type of what is composed: mechanisms, their privacy losses, and shuffled collections.
Release: TypeAlias = Table | PrivacyLoss | Shuffled | AmongDummies | GaussianLoss

_BITS = 192  # the precision of logarithms of ratios

#: The smoothings, and the factor by which a bound must improve for the finer one to be used.
_SMOOTHINGS, _ENOUGH = (0.05, 0.02), 1.03

# The factor by which an epsilon from floats is enlarged before it is proved, for rounding.
_BEYOND = 1 + 2.0**-16


class Composition(PrivacyCurve):
    """The privacy of several releases together: see `compose`.

    Attributes
    ----------
    losses : Counter of PrivacyLoss
        How often each privacy loss occurs.
    gaussian : GaussianLoss or None
        That of all Gaussian noise together.
    """

    def __init__(self, losses: Counter[PrivacyLoss], gaussian: GaussianLoss | None = None) -> None:
        self.losses, self.gaussian = losses, gaussian

    @cached_property
    def largest_epsilon(self) -> float:
        if self.gaussian or any(loss.infinite for loss in self.losses):
            return math.inf
        with precision(_BITS):
            logs = (times * ball(loss.ratios[-1][0]).log() for loss, times in self.losses.items())
            return float_above(sum(logs, arb(0)))

    @precision()
    def renyi(self, order: float | Rational) -> float:
        """Return an upper bound on the Renyi divergence, the largest between neighbours.

        It is that of the privacy losses themselves, without a detour by delta.

        Parameters
        ----------
        order : float, Fraction, int, str or Decimal
            Above 1. A float stands for the binary number that it is.

        Returns
        -------
        float
            Rounded up; ``math.inf`` if some output is impossible for a neighbour.

        Raises
        ------
        ValueError
            Another order.

        Examples
        --------
        >>> from mechdesign import named
        >>> f"{compose([named.geometric(8, alpha='9/10')] * 100).renyi(2):.4f}"
        '1.1050'
        """
        exactly = exact_order(order)
        return float_above(self._renyi_curve.divergence(exactly) + self._rho * ball(exactly))

    @cached_property
    @precision()
    def rho(self) -> float:
        """The least rho of zero-concentrated privacy (rho-zCDP), to within a millionth of it.

        For every order a > 1 the Renyi divergence is at most ``rho * a`` (Bun and Steinke, TCC
        2016, definition 1.1); rounded up, and ``math.inf`` if some output is impossible for a
        neighbour. From the pure epsilon alone it would be epsilon^2 / 2.

        >>> from mechdesign import named
        >>> f"{compose([named.geometric(8, alpha='9/10')] * 100).rho:.4f}"
        '0.5545'
        """
        return float_above(self._renyi_curve.rho() + self._rho)

    @property
    def _rho(self) -> arb:
        """The rho of the Gaussian noise."""
        return ball(self.gaussian.rho) if self.gaussian else arb(0)

    @property
    def _renyi_curve(self) -> RenyiCurve:
        return RenyiCurve(tuple(self.losses.items()))

    def to_dp_event(self) -> Any:
        """Return the composition as an event of dp_accounting, for its Renyi accountant.

        It is a ``ZCDpEvent`` with `rho`: what dp_accounting makes of it is never below the truth,
        but it is what zero-concentrated privacy knows, which is less than `epsilon` does.

        Needs the extra ``accounting``.

        Returns
        -------
        dp_accounting.DpEvent
            ``NonPrivateDpEvent`` if `rho` is infinite.

        Raises
        ------
        ImportError
            The package dp-accounting is not installed.
        """
        return dp_event(self.rho)

    def to_dp_accounting(self, interval: float = 1e-4) -> Any:
        """Return the composition as a privacy loss distribution of dp_accounting.

        It is pessimistic: delta is at least that of the mechanisms for every epsilon, up to the
        floating-point arithmetic of dp_accounting, which composes.

        Needs the extra ``accounting``.

        Parameters
        ----------
        interval : float, default 1e-4
            Privacy losses are multiples of it, as in all distributions that are composed with this
            one: the smaller, the tighter and the slower.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            For either order of two neighbours.

        Raises
        ------
        ImportError
            The package dp-accounting is not installed.
        ValueError
            An interval that is not a number above 0.
        """
        return pessimistic_pld(tuple(self._finite.items()), interval)

    @cached_property
    def _finite(self) -> Counter[PrivacyLoss]:
        """The privacy losses, that of Gaussian noise bounded by one of finitely many values."""
        return self.losses + Counter([self.gaussian.profile] if self.gaussian else [])

    def epsilon(self, delta: float | Rational) -> float:
        """Return an epsilon as `PrivacyCurve.epsilon` does, exactly where sums can be listed."""
        if self.gaussian and not self.losses:
            return self.gaussian.epsilon(delta)
        if self._listed is not None and not self.gaussian:
            return self._listed.epsilon(exact_delta(delta))
        return super().epsilon(delta)

    def quick_epsilon(self, delta: float | Rational) -> float:
        """Return an epsilon as `epsilon` does, quicker, and perhaps a ten-thousandth larger.

        Floats say where to search, and one bound in balls proves what they found.

        Parameters
        ----------
        delta : float, Fraction, int, str or Decimal
            As of `epsilon`.

        Returns
        -------
        float
            An epsilon for which this delta is proved.

        Raises
        ------
        ValueError
            A delta that is not between 0 and 1.
        """
        target = exact_delta(delta)
        if (self.gaussian and not self.losses) or self._listed is not None:
            return self.epsilon(delta)
        for smoothing in _SMOOTHINGS:
            crossing = self._crossing(self._in_floats, smoothing, target)[1]
            proposed = min(self.largest_epsilon, crossing * _BEYOND)
            if proposed == 0 or proposed >= self.largest_epsilon or smoothing == _SMOOTHINGS[-1]:
                break
            coarse, fine = (self._in_floats(exp_below(Fraction(proposed)), x) for x in _SMOOTHINGS)
            if coarse <= fine * _ENOUGH:
                break
        # The proof: floats may be wrong in any way, and the number is returned only if this holds.
        if proposed < math.inf and self.holds(Fraction(proposed), target, smoothing):
            return proposed
        return super().epsilon(delta)

    @precision()
    def holds(self, epsilon: Fraction, delta: Fraction, smoothing: float) -> bool:
        """Whether an epsilon at a delta is proved with this smoothing, by a single bound."""
        return bool(self.above(exp_below(epsilon), smoothing) <= ball(delta))

    @precision()
    def _in_floats(self, ratio: Fraction, smoothing: float) -> arb:
        """Return about `above`, in floats: no bound."""
        with np.errstate(all="ignore"):
            estimate = _mean(self._summands, ratio).nearly(smoothing)
        return arb(estimate if math.isfinite(estimate) else 1.0) + _infinite(self._finite)

    @cached_property
    def _listed(self) -> PrivacyLoss | None:
        """The list of all sums of the privacy losses, if they are few; without Gaussian noise."""
        return PrivacyLoss.together(self.losses)

    @precision()
    def above(self, ratio: Fraction, smoothing: float) -> arb:
        if self.gaussian and not self.losses:
            return self.gaussian.above(ratio, smoothing)
        if self._listed is not None:
            return self._by_list(self._listed, ratio)
        return _mean(self._summands, ratio).upper(smoothing) + _infinite(self._finite)

    @precision(_BITS)
    def _by_list(self, listed: PrivacyLoss, ratio: Fraction) -> arb:
        """Return delta at the logarithm of a ratio: the mean over listed losses of the noise's."""
        if self.gaussian is None:
            return ball(listed.delta(ratio))
        total = ball(listed.infinite)
        # Independent losses add up: given one that is listed, the noise has to exceed the rest of
        # epsilon. That may be negative, where the curve is known by symmetry only:
        for listed_ratio, p in listed.ratios:
            left = ratio / listed_ratio
            delta = self.gaussian.above(max(left, 1 / left), 0.0)
            # delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon)
            total += ball(p) * (delta if left >= 1 else 1 - ball(left) * (1 - delta))
        return total

    @precision()
    def below(self, ratio: Fraction, smoothing: float) -> arb:
        return _mean(self._known_summands, ratio).lower(smoothing) + _infinite(self._known)

    @cached_property
    def _summands(self) -> list[Summands]:
        return _summands(self._finite)

    @cached_property
    def _known(self) -> Counter[PrivacyLoss]:
        """The privacy losses of neighbours that there are, for lower bounds."""
        known = Counter[PrivacyLoss]()
        for loss, times in self.losses.items():
            known[loss.known] += times
        return known

    @cached_property
    def _known_summands(self) -> list[Summands]:
        return _summands(self._known)


def _summands(losses: Counter[PrivacyLoss]) -> list[Summands]:
    """Return the privacy losses where both neighbours make the outputs possible."""
    with precision(_BITS):
        return [
            Summands(
                tuple(ball(p) for _, p in loss.ratios),
                tuple(ball(ratio).log() for ratio, _ in loss.ratios),
                times,
                False,
            )
            for loss, times in losses.items()
        ]


def _mean(summands: list[Summands], ratio: Fraction) -> Mean:
    with precision(_BITS):
        return Mean(summands, ball(ratio).log(), Advantage)


def _infinite(losses: Counter[PrivacyLoss]) -> arb:
    """Return the probability that some output is one that the second neighbour makes impossible."""
    with precision(_BITS):
        possible = arb(1)
        for loss, times in losses.items():
            possible *= ball(1 - loss.infinite) ** times
        return 1 - possible


def compose(releases: Iterable[Release]) -> Composition:
    """Return the privacy of several releases about the same users, with bounds on both sides.

    Each of them may be chosen after the earlier ones have been seen, and be about another count or
    value: the bounds are for the worst neighbours of each. The distribution of the total
    privacy loss is never listed: delta is read off its transform, see
    `mechdesign.accounting.inversion`.

    Parameters
    ----------
    releases : iterable of Table, PrivacyLoss, Shuffled, AmongDummies or GaussianLoss
        Mechanisms (or any tables), by their exact entries; privacy losses; shuffled collections;
        Gaussian noise, of which nothing is proved from below. ``[mechanism] * k`` for k releases of
        one kind.

    Returns
    -------
    Composition
        With ``epsilon(delta)``, ``delta(epsilon)``, and lower bounds.

    Raises
    ------
    TypeError
        Something else.
    ValueError
        A table whose neighbours are at several distances; Gaussian noise of a squared mu of more
        than 400 in all.

    Examples
    --------
    >>> from mechdesign import named
    >>> geometric = named.geometric(8, alpha="9/10")
    >>> many = compose([geometric] * 100)
    >>> f"{many.epsilon('1e-6'):.3f}, at least {many.epsilon_at_least('1e-6'):.3f}"
    '5.054, at least 5.033'
    """
    listed = list(releases)
    times = Counter(map(id, listed))  # the same object many times is looked at once
    losses: Counter[PrivacyLoss] = Counter()
    squared_mu = Fraction(0)
    for release in {id(release): release for release in listed}.values():
        if isinstance(release, GaussianLoss):
            squared_mu += times[id(release)] * release.squared_mu
        else:
            losses[_loss(release)] += times[id(release)]
    return Composition(losses, GaussianLoss(squared_mu) if squared_mu else None)


def _loss(release: Release) -> PrivacyLoss:
    if isinstance(release, Table):
        return PrivacyLoss.of(release)
    if isinstance(release, (Shuffled, AmongDummies)):
        return release.profile
    if isinstance(release, PrivacyLoss):
        return release
    raise TypeError(
        "releases are mechanisms, privacy losses or shuffled collections, got"
        f" {type(release).__name__}"
    )


# ------------------------------------------------------------------------------------------------
# What dp_accounting (Google) is told of composed privacy losses: never less than is lost.


_EXPORTED_BITS = 128


def pessimistic_pld(parts: Sequence[tuple[PrivacyLoss, int]], interval: float) -> Any:
    """Return a distribution of dp_accounting whose delta is at least that of the losses.

    A loss between two multiples of ``interval`` is moved to both such that the means of 1 and of
    e^-loss under the first distribution are kept (Doroshenko et al., PETS 2022).
    """
    # A mean-preserving spread of the likelihood ratio raises delta at every epsilon, and far less
    # than rounding all losses upwards would. Probabilities are rounded up to floats; what
    # dp_accounting makes of them is in its own floating-point arithmetic.
    if not 0 < interval < math.inf:
        raise ValueError(f"the step of privacy losses must be a number above 0, got {interval}")
    distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    make = distributions.PrivacyLossDistribution.create_from_rounded_probability
    composed = None
    for loss, times in parts:
        with precision(_EXPORTED_BITS):
            single = make(_on_multiples(loss, interval), float_above(ball(loss.infinite)), interval)
        many = single if times == 1 else single.self_compose(times)
        composed = many if composed is None else composed.compose(many)
    return composed


def dp_event(rho: float) -> Any:
    """Return dp_accounting's event of rho-zCDP, or of no privacy; ImportError without it."""
    events = import_module("dp_accounting.dp_event")
    return events.NonPrivateDpEvent() if rho == math.inf else events.ZCDpEvent(rho)


def _on_multiples(loss: PrivacyLoss, interval: float) -> dict[int, float]:
    """Return the probabilities, rounded up, of multiples of the interval."""
    step = arb(interval)
    masses: defaultdict[int, arb] = defaultdict(arb)
    for ratio, p in loss.ratios:
        probability, value = ball(p), ball(ratio).log()
        below = int((value / step).upper().floor().fmpz())
        # One too many, where the loss is a multiple, moves up what belongs to it
        # The share s that goes to the upper multiple keeps the mean of e^-loss under the first,
        # which is the mass under the second: (1 - s) e^-below + s e^-(below + 1) = e^-value, in
        # steps.
        up = ((step * below - value).exp() - 1) / ((-step).exp() - 1)
        up = up.nonnegative_part()
        masses[below] += probability * (1 - up).nonnegative_part()
        masses[below + 1] += probability * up
    return {place: float_above(mass) for place, mass in masses.items() if mass.upper() > 0}

"""compose(...): what several releases about the same users tell together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from flint import arb, ctx

from mechdesign.accounting.inversion import Advantage, Mean, Summands, ball
from mechdesign.accounting.privacy_curve import PrivacyCurve
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.accounting.shuffling import Shuffled
from mechdesign.table import Table

Release: TypeAlias = Table | PrivacyLoss | Shuffled
"""What is composed: mechanisms, their privacy losses, and shuffled collections."""

_BITS = 192
"""The precision of logarithms of ratios."""


class Composition(PrivacyCurve):
    """The privacy of several releases together: see `compose`.

    Attributes
    ----------
    losses : Counter of PrivacyLoss
        How often each privacy loss occurs.
    """

    def __init__(self, losses: Counter[PrivacyLoss]) -> None:
        self.losses = losses

    @cached_property
    def largest_ratio(self) -> Fraction | float:
        if any(loss.infinite for loss in self.losses):
            return math.inf
        return math.prod(
            (loss.ratios[-1][0] ** times for loss, times in self.losses.items()), start=Fraction(1)
        )

    def above(self, ratio: Fraction, smoothing: float) -> arb:
        return _delta(self.losses, ratio).upper(smoothing) + _infinite(self.losses)

    def below(self, ratio: Fraction, smoothing: float) -> arb:
        known = Counter[PrivacyLoss]()
        for loss, times in self.losses.items():
            known[loss.known] += times
        return _delta(known, ratio).lower(smoothing) + _infinite(known)


def _delta(losses: Counter[PrivacyLoss], ratio: Fraction) -> Mean:
    """The part of delta that is from outputs that both neighbours make possible."""
    with ctx.workprec(_BITS):
        parts = [
            Summands(
                tuple(ball(p) for _, p in loss.ratios),
                tuple(ball(ratio).log() for ratio, _ in loss.ratios),
                times,
                False,
            )
            for loss, times in losses.items()
        ]
        return Mean(parts, ball(ratio).log(), Advantage)


def _infinite(losses: Counter[PrivacyLoss]) -> arb:
    """The probability that some output is one that the second neighbour makes impossible."""
    with ctx.workprec(_BITS):
        possible = arb(1)
        for loss, times in losses.items():
            possible *= ball(1 - loss.infinite) ** times
        return 1 - possible


def compose(releases: Iterable[Release]) -> Composition:
    """The privacy of several releases about the same users, with proved bounds on both sides.

    Each of them may be chosen after the earlier ones have been seen. The distribution of the total
    privacy loss is never listed: delta is read off its transform, see
    `mechdesign.accounting.inversion`.

    Parameters
    ----------
    releases : iterable of Table, PrivacyLoss or Shuffled
        Mechanisms (or any tables), by their exact entries; privacy losses; shuffled collections.
        ``[mechanism] * k`` for k releases of one kind.

    Returns
    -------
    Composition
        With ``epsilon(delta)``, ``delta(epsilon)``, and lower bounds.

    Raises
    ------
    TypeError
        Something else.
    ValueError
        A table whose neighbours are at several distances.

    >>> from mechdesign import named
    >>> geometric = named.geometric(8, "9/10")
    >>> many = compose([geometric] * 100)
    >>> f"{many.epsilon('1e-6'):.3f}, at least {many.epsilon_at_least('1e-6'):.3f}"
    '5.053, at least 5.042'
    """
    losses: Counter[PrivacyLoss] = Counter()
    known: dict[int, PrivacyLoss] = {}
    held = list(releases)
    for release in held:
        if id(release) not in known:
            known[id(release)] = _loss(release)
        losses[known[id(release)]] += 1
    return Composition(losses)


def _loss(release: Release) -> PrivacyLoss:
    if isinstance(release, Table):
        return PrivacyLoss.of(release)
    if isinstance(release, Shuffled):
        return release.profile()
    if isinstance(release, PrivacyLoss):
        return release
    raise TypeError(
        "releases are mechanisms, privacy losses or shuffled collections, got"
        f" {type(release).__name__}"
    )

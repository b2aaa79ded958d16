"""MutualInformation: how much an output tells about the item, in nats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy
from flint import arb, fmpq

from mechdesign.base.arrays import Booleans, Floats
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import Rational
from mechdesign.lp.basis import ZERO, to_fmpq
from mechdesign.lp.highs import to_float
from mechdesign.utilities.sublinear_utility import (
    Number,
    Pattern,
    Utility,
    alike,
    distribution,
    upper,
)


@dataclass(frozen=True, repr=False)
class MutualInformation(Utility):
    """I(X; Y) of the item and the output in nats, for items drawn from an exact prior."""

    prior: tuple[Fraction, ...]

    def __init__(self, prior: Iterable[Rational]) -> None:
        set_fields(self, prior=distribution(prior))

    @property
    def items(self) -> int:
        return len(self.prior)

    def worth(self, row: Sequence[fmpq]) -> Number:
        mass: dict[fmpq, Fraction] = defaultdict(Fraction)
        for weight, entry in zip(self.prior, row, strict=True):
            mass[entry] += weight
        mean = sum((to_fmpq(weight) * entry for entry, weight in mass.items()), ZERO)
        terms = (to_fmpq(weight) * entry * arb(entry).log() for entry, weight in mass.items())
        return sum(terms, -mean * arb(mean).log())

    def classes(self) -> list[list[int]]:
        return alike(self.prior)

    def warm_start(self, alpha: fmpq) -> tuple[list[Pattern], list[fmpq]] | None:
        """No patterns, and prices in proportion to the prior.

        The prices would be optimal if for every probability there were a set of items that has it.
        """
        a = to_float(alpha)

        def per_mean(mass: float) -> float:
            mean = a + (1 - a) * mass
            return -(a * math.log(a or 1) * (1 - mass) - mean * math.log(mean)) / mean

        most = -float(
            scipy.optimize.minimize_scalar(
                per_mean, bounds=(1e-9, 1.0), method="bounded", options={"xatol": 1e-12}
            ).fun
        )
        return [], [to_fmpq(Fraction(most) * weight) for weight in self.prior]

    def pricing(self, prices: Sequence[fmpq], alpha: fmpq) -> tuple[fmpq, list[Pattern]]:
        """A bound that is linear in the row for every t, minimised over t, and a local search.

        For every t > 0, ``-m log m <= t - m - m log t``, where m is the mean of the row under the
        prior. The patterns are found by exchanging items for as long as that raises information
        less price, from patterns with the items of least price for their prior at level 1.

        Parameters
        ----------
        prices : sequence of flint.fmpq
            One exact number for each item, shape (items,).
        alpha : flint.fmpq
            The lower of the two entries of a row, in (0, 1].

        Returns
        -------
        tuple[fmpq, list[Pattern]]
            A proved upper bound on ``worth(row) - prices row``, in nats, and as many patterns as
            items, found from different starts; some may be equal.
        """
        prior = [to_fmpq(weight) for weight in self.prior]

        def bound(t: fmpq) -> fmpq:
            slope = -arb(t).log() - 1
            high = (upper(p * slope - y) for p, y in zip(prior, prices, strict=True))
            low = (
                upper(alpha * (p * (slope + arb(alpha).log()) - y))
                for p, y in zip(prior, prices, strict=True)
            )
            return sum(map(max, high, low), t)

        def float_bound(t: float) -> float:
            return to_float(bound(to_fmpq(Fraction(float(t)))))

        bounds = (to_float(alpha), 1.0)
        best = scipy.optimize.minimize_scalar(
            float_bound, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        )
        p, y = np.array([[to_float(value) for value in values] for values in (prior, prices)])
        order = np.argsort(y / np.maximum(p, 1e-300))
        starts = np.argsort(order)[None, :] < np.arange(1, self.items + 1)[:, None]
        climbed = (_climbed(start, p, y, to_float(alpha)) for start in starts)
        return bound(to_fmpq(Fraction(float(best.x)))), [
            tuple(pattern.tolist()) for pattern in climbed
        ]


def _climbed(chosen: Booleans, p: Floats, y: Floats, alpha: float) -> Booleans:
    """A local maximum of information less price.

    No exchange of at most one item for at most one other raises it.
    """
    p, y = np.append(p, 0.0), np.append(y, 0.0)  # the last stands for no item, on either side
    inside = np.append(chosen, True)

    def net(mass: Floats, price: Floats) -> Floats:
        mean = alpha + (1 - alpha) * mass
        return alpha * math.log(alpha) * (1 - mass) - mean * np.log(mean) - (1 - alpha) * price

    while True:
        leave, enter = np.flatnonzero(inside), np.append(np.flatnonzero(~inside), len(p) - 1)
        mass, price = (p[:-1] @ inside[:-1], y[:-1] @ inside[:-1])
        after = net(mass - p[leave][:, None] + p[enter], price - y[leave][:, None] + y[enter])
        out, into = divmod(int(after.argmax()), len(enter))
        if after[out, into] <= net(mass, price) + 1e-15 or not (
            inside[:-1].sum() > 1 or into < len(enter) - 1
        ):
            return inside[:-1]
        inside[leave[out]], inside[enter[into]] = False, True
        inside[-1] = True

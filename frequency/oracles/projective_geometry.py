"""Projective geometry response: the accuracy of subset selection in a report of log D bits."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import (
    Coins,
    TruthOrLie,
    VectorSpace,
    best_order,
    checked_order,
    directions,
    space,
    uniform,
)
from frequency.core import (
    Fingerprints,
    Menu,
    Oracle,
    Reports,
    Step,
    Support,
    in_blocks,
    json_integer,
    smallest_integer,
    spread_out,
    variance_of,
    variance_of_scores,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, set_fields
from mechdesign.symbolic.proof_rules import Randomiser, favouring


@dataclass(frozen=True, repr=False)
class ProjectiveGeometry(Oracle):
    """Projective geometry response (Feldman, Nelson, Nguyen, Talwar, ICML 2022).

    Items are points of the projective space of F_q^t, a report is a hyperplane, and it supports the
    points on it. The hyperplanes through the holder's point are more likely than the others by
    exp(epsilon). Every two points lie on equally many hyperplanes, so the estimator is that of
    subset selection with sets of size (q^(t-1) - 1) / (q - 1); q near e^eps + 1 makes that size the
    best. There are as many hyperplanes as points, the fewest that such an estimator may have
    (Fisher's inequality): where there is a geometry of about as many points as items, reports are
    shorter than those of `frequency.AffineSelection`, which has blocks for every epsilon. The
    server counts the reports orthogonal to every point by the transform that decodes OLH.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    order : tuple of int, optional
        Another geometry than the one chosen: q and t, at least 2, with points for all items.

    Raises
    ------
    ValueError
        A parameter out of range, or no such geometry.
    """

    order: tuple[int, ...] = ()

    privacy_source: ClassVar[str] = "Feldman et al. 2022"
    added_later: ClassVar[tuple[str, ...]] = ("order",)

    def __post_init__(self) -> None:
        set_fields(self, order=tuple(self.order))
        super().__post_init__()

    @cached_property
    def _order(self) -> tuple[int, int]:
        if self.order:
            q, t = checked_order("order", self.order, 2, directions, self.domain)
            return q, t
        e = float(min(self.max_ratio, Fraction(1 << 60)))
        return best_order(self.domain, e + 1, 2, directions, lambda q, t: _variance(q, t, e))

    @property
    def _space(self) -> VectorSpace:
        return space(*self._order)

    @cached_property
    def _through(self) -> TruthOrLie:
        """The inner product of hyperplane and point: 0, or another element of the field."""
        # The zero vector is no hyperplane, so there is one vector fewer orthogonal to the point
        # than with each other product.
        q, t = self._order
        return TruthOrLie.within(self.max_ratio * (1 - Fraction(1, q ** (t - 1))), q)

    @cached_property
    def support(self) -> Support:
        # A hyperplane through the holder's point is one of m, lam of which hold the other point; m
        # - lam of the rest do.
        (order, t), p = self._order, self._through.p
        m, lam, all_ = directions(order, t - 1), directions(order, t - 2), directions(order, t)
        return Support(p, p * Fraction(lam, m) + (1 - p) * Fraction(m - lam, all_ - m))

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("hyperplane", smallest_integer(self._space.directions - 1))])

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self._space.directions)

    @property
    def report_bits(self) -> int:
        return (self._space.directions - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        q, t = self._order
        return {
            "field": q,
            "dimension": t,
            "through": str(self._through.truth),
            "beside": str(self._through.lie),
        }

    @property
    def client_half(self) -> Step:
        return {
            "do": "hyperplane",
            "field": self._space.field.described,
            "dimension": self._order[1],
            "lie": json_integer(self._through.lie),
            "width": self.report_dtype.itemsize,
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        v, todo = self._space, np.arange(len(items))
        product = self._through.draw(len(items), source)
        point = v.vector(items)
        place = v.leading(point)
        while len(todo):
            # A uniform vector, moved along one axis so that its product with the point is the one
            # drawn; not the zero vector.
            a, at, x = uniform(len(todo), v.size, source), place[todo], point[todo]
            missing = v.field.add(product[todo], v.field.negative(v.dot(a, x)))
            digit = v.digit(a, at)
            a += (v.field.add(digit, missing) - digit) * v.powers[at]
            good = a != 0
            if not good.all():
                a, todo, again = a[good], todo[good], todo[~good]
            else:
                again = todo[:0]
            reports["hyperplane"][todo] = v.direction(a)[0]
            todo = again

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return reports["hyperplane"] < self._space.directions

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self._space.directions,)

    def cells_of(self, reports: Reports) -> Items:
        return reports["hyperplane"].astype(np.int64)[:, None]

    def _supporters(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return self._space.through(counts, self.domain)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # From the probabilities that a hyperplane holds one, and both, of two points. A third point
        # is on the line of two others or not: the mean over the ways to number the items is taken
        # Of the hyperplanes, `with_one` hold a given point, `with_two` another as well, and
        # `with_three` a third that is not on their line.
        order, t = self._order
        with_one, with_two, with_three, number = (
            directions(order, max(t - k, 0)) for k in (1, 2, 3, 0)
        )
        p, d = self.p, held or self.domain
        # Of each hyperplane, given the holder's point
        through, beside = p / with_one, (1 - p) / (number - with_one)
        on_line = Fraction(order - 1, max(directions(order, t) - 2, 1))
        of_third = on_line * with_two * through + (1 - on_line) * (
            with_three * through + (with_two - with_three) * beside
        )
        single = (p + (d - 1) * self.q) / d
        both = (2 * with_two * through + (d - 2) * of_third) / d
        return float(variance_of(n, 2 * (single - both) / (p - self.q) ** 2 - Fraction(2, d)))

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        order, t = self._order
        share = Fraction(directions(order, t - 1), directions(order, t))
        return (((1 - self.p) / (1 - share), self.p / share),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["hyperplane"] = coins.uniform(0, self._space.directions)
        return reports

    # Of all hyperplanes every point is on as many.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        order, t = self._order
        return (Menu.of(directions(order, t), directions(order, t - 1), largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        planes = reports["hyperplane"].astype(np.int64) + numbers
        result["hyperplane"] = planes % self._space.directions
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        v = self._space
        return (
            v.dot(v.vector(reports["hyperplane"].astype(np.int64)), v.vector(items)) == 0
        ).astype(np.int64)

    def _likely_together(self, items: Items) -> Fraction:
        (order, t), space = self._order, self._space
        rank = space.rank(space.vector(items).tolist())
        return Fraction(directions(order, t - rank), directions(order, t))

    def audit(self) -> Audit:
        # A hyperplane through the point is (q - 1) of the q^(t-1) - 1 nonzero vectors orthogonal to
        # it; one that is not is (q - 1) of the q^(t-1) vectors of each other product, one for each
        # product.
        q, t = self._order
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        ratio = self._through.ratio * Fraction(q ** (t - 1), q ** (t - 1) - 1)
        return Audit(
            ratio, self.max_ratio, "a hyperplane through point 0 and not through point 1", (0, 1)
        )

    def proof(self) -> Randomiser:
        order, t = self._order
        through = directions(order, t - 1)
        return favouring(
            through,
            directions(order, t) - through,
            name=type(self).__name__,
            source=self.privacy_source,
        )

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        v, (order, t), p, q = self._space, self._order, float(self.p), float(self.q)
        (shares,) = spread_out(frequencies[None], None, v.directions)
        through, number = directions(order, t - 1), directions(order, t)
        on = v.through(shares)
        kinds = p / through * on + (1 - p) / (number - through) * (1 - on)
        variances = []
        for rows in in_blocks(weights, v.size):
            # Incidence is symmetric: points on a hyperplane are summed like hyperplanes through a
            # point.
            supported = v.through(spread_out(rows, None, v.directions))
            scores = (supported - q * rows.sum(axis=1, keepdims=True)) / (p - q)
            variances.append(variance_of_scores(n, scores, kinds, rows, frequencies))
        return np.concatenate(variances)


def _variance(q: int, t: int, e: float) -> float:
    m, lam, all_ = directions(q, t - 1), directions(q, t - 2), directions(q, t)
    weight = 1 / (e * m + all_ - m)
    other = (e * lam + m - lam) * weight
    return other * (1 - other) / ((e - 1) * (m - lam) * weight) ** 2

"""Optimised local hashing with a linear hash over a finite field.

The server need not try every item for every user.
"""

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
    space,
    uniform,
    walkable,
    walked,
)
from frequency.core import (
    Aggregate,
    Fingerprints,
    Likelihood,
    Menu,
    Oracle,
    Reports,
    Sample,
    Step,
    Support,
    coin,
    in_blocks,
    lies,
    public,
    smallest_integer,
    spread_out,
    tossed,
    variance_of,
    variance_of_scores,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items
from mechdesign.symbolic.proof_rules import PublicDrawProof, favouring


@dataclass(frozen=True)
class OLH(Oracle):
    """OLH, INPOLH: a hash function of the user's own, and the hash by randomised response.

    Source: Wang et al., USENIX Security 2017; thesis 2.4.2.

    The hash is H_a(x) = <a, x> over F_q^t with a uniform, where the digits of x in base q are its
    coordinates. Two items collide with probability exactly 1/q, so the family is universal and the
    textbook's estimator is unbiased; and the number of users whose report supports x, #{i : <a_i,
    x> = y_i}, comes for all x at once from a Fourier transform, in O(n + q D log D) instead of O(n
    D). q is the prime power that minimises the variance, the one nearest to e^eps + 1, unless the
    server's table of about q^t numbers would be too large
    (`frequency.algebra.finite_field.TABLE_LIMIT`).

    A report is (a, y): ``hash`` in 0 .. q^t - 1 and ``value`` in 0 .. q - 1. The variance at
    frequency 0 is (e^eps + q - 1)^2 / (n (e^eps - 1)^2 (q - 1)), which is 4 e^eps / (n (e^eps -
    1)^2) when q = e^eps + 1.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    """

    privacy_source: ClassVar[str] = "thesis, section 2.4.2"

    @cached_property
    def _order(self) -> tuple[int, int]:
        e = float(min(self.max_ratio, Fraction(1 << 60)))
        return best_order(
            self.domain, e + 1, 1, lambda q, t: q**t, lambda q, t: (e + q - 1) ** 2 / (q - 1)
        )

    @property
    def hashes_to(self) -> int:
        """q, the number of values of the hash."""
        return self._order[0]

    @property
    def _space(self) -> VectorSpace:
        return space(*self._order)

    @property
    def functions(self) -> int:
        """q^t, the number of hash functions: they are numbered from 0."""
        return self._space.size

    def hashed(self, functions: npt.NDArray[Any], items: Items) -> Items:
        """The values that hash functions give items.

        Parameters
        ----------
        functions : numpy.ndarray
            Shape (users,), integers in 0 .. `functions` - 1.
        items : numpy.ndarray of int64
            Shape (users,): an item for each.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,), each in 0 .. `hashes_to` - 1.
        """
        return self._space.dot(functions.astype(np.int64), items)

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.max_ratio, self.hashes_to)

    @cached_property
    def support(self) -> Support:
        return Support(self._choice.p, Fraction(1, self.hashes_to))

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype(
            [
                ("hash", smallest_integer(self._space.size - 1)),
                ("value", smallest_integer(self.hashes_to - 1)),
            ]
        )

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self.functions * self.hashes_to)

    @property
    def report_bits(self) -> int:
        return (self._space.size - 1).bit_length() + (self.hashes_to - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        q, t = self._order
        return {
            "field": q,
            "dimension": t,
            "truth": str(self._choice.truth),
            "lie": str(self._choice.lie),
        }

    @property
    def client_half(self) -> Step:
        field = self._space.field.described
        width = self.report_dtype["value"].itemsize
        response = lies(self.hashes_to, self._choice.lie, width, field=field)
        return tossed([coin(range(self._space.size))], ["dot", field], response)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        field, users = self._space.field, len(items)
        a = uniform(users, self.functions, source)
        reports["hash"] = a
        # Adding a nonzero element of the field is a lie; every lie is as likely.
        reports["value"] = field.add(self.hashed(a, items), self._choice.draw(users, source))

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return (reports["hash"] < self._space.size) & (reports["value"] < self.hashes_to)

    # The report (c a, c y) supports the same items as (a, y), so that only directions and values
    # are counted; and one cell more for the reports with a = 0: those with y = 0 support
    # everything, others nothing.

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self._space.directions * self.hashes_to + 2,)

    def cells_of(self, reports: Reports) -> Items:
        v, q = self._space, self.hashes_to
        a, y = reports["hash"].astype(np.int64), reports["value"].astype(np.int64)
        zero = a == 0
        direction, lead = v.direction(np.where(zero, 1, a))
        value = y if q == 2 else v.field.multiply(v.field.inverse(lead), y)
        return np.where(zero, v.directions * q + (y == 0), direction * q + value)[:, None]

    def _supporters(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        v = self._space
        lines = counts[..., :-2].reshape(*counts.shape[:-1], v.directions, self.hashes_to)
        if walkable(v, lines, self.domain):
            return walked(v, lines, self.domain) + counts[-1:]
        return v.incident(lines, self.domain) + counts[..., -1:]

    def _kinds(self, frequencies: Floats) -> Floats:
        """The probability of each cell, for users with these frequencies: shape `counts_shape`."""
        # A cell is the q - 1 multiples of a hash with their values; the zero hash gives every item
        # the value 0.
        v, lie = self._space, float(self._choice.q)
        (shares,) = spread_out(frequencies[None], None, v.size)
        more = float(self.p) - lie
        cells = (lie + more * v.sums(shares).ravel()) * ((self.hashes_to - 1) / v.size)
        zero = [lie * (self.hashes_to - 1) / v.size, (lie + more) / v.size]
        return np.concatenate([cells, zero])

    def likelihood_of(self, aggregate: Aggregate) -> Likelihood:
        v, q, lie = self._space, self.hashes_to, float(self._choice.q)

        def transposed(numbers: Floats) -> Floats:
            lines, other, zero = numbers[:-2], float(numbers[-2]), float(numbers[-1])
            sums = v.incident(lines.reshape(v.directions, q), self.domain)
            shared = (
                lie * float(lines.sum()) * (q - 1) + lie * (q - 1) * other + float(self.p) * zero
            )
            return ((float(self.p) - lie) * (q - 1) * sums + shared) / v.size

        return Likelihood(self.domain, aggregate.counts.astype(np.float64), self._kinds, transposed)

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        v, zero = self._space, int(counts[-2:].sum())
        hashes = [*counts[:-2].reshape(v.directions, -1).sum(axis=1), zero]
        shares = np.full(len(hashes), (self.hashes_to - 1) / v.size)
        shares[-1] = 1 / v.size
        return [*super().samples(n, counts), public(n, hashes, shares)]

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # From the probabilities that a report supports one, and both, of two items. A third item's
        # report supports both with probability q^2, or p q if its vector is on their line: the mean
        # over the ways to number the items is taken
        p, q, d, size = self.p, self.q, held or self.domain, self._space.size
        on_line = Fraction(self.hashes_to - 2, max(size - 2, 1))
        single = (p + (d - 1) * q) / d
        both = (2 * p * q + (d - 2) * (on_line * p * q + (1 - on_line) * q**2)) / d
        return float(variance_of(n, 2 * (single - both) / (p - q) ** 2 - Fraction(2, d)))

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (self._choice.likelihoods,)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["hash"], reports["value"] = (
            coins.uniform(0, self._space.size),
            coins.uniform(1, self.hashes_to),
        )
        return reports

    # The hash function is public: of all values every item has one.

    def menus(self, largest: int) -> tuple[Menu, ...]:
        return (Menu.of(self.hashes_to, 1, largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        result["value"] = (reports["value"].astype(np.int64) + numbers) % self.hashes_to
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        true = self.hashed(reports["hash"], items)
        return (reports["value"] == true).astype(np.int64)

    def _likely_together(self, items: Items) -> Fraction:
        # The hashes of all items agree for those a that are orthogonal to their differences
        first, *others = items.tolist()
        rank = self._space.rank([self._space.difference(item, first) for item in others])
        return Fraction(1, self.hashes_to ** (rank + 1))

    @property
    def _always_likely(self) -> Fraction:
        q, t = self._order  # items 0, 1, q, q^2 ..
        return Fraction(1, q ** (1 + sum(q**place < self.domain for place in range(t))))

    def audit(self) -> Audit:
        # a does not depend on the item. Given a, the value of the hash is told with weight
        # ``truth``, any other with ``lie``; some a tells any two items apart.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(self._choice.ratio, self.max_ratio, "hash 1, value 0", (0, 1))

    def proof(self) -> PublicDrawProof:
        hashed = favouring(1, self.hashes_to - 1, name="randomised response of the hash")
        functions = self._space.size
        return PublicDrawProof(
            hashed,
            ((functions, Fraction(1, functions)),),
            name=type(self).__name__,
            source=self.privacy_source,
        )

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        v, p, q = self._space, float(self.p), float(self.q)
        kinds, variances = self._kinds(frequencies), []
        for rows in in_blocks(weights, v.size):
            total = rows.sum(axis=1, keepdims=True)
            sums = v.sums(spread_out(rows, None, v.size)).reshape(len(rows), len(kinds) - 2)
            supported = np.concatenate([sums, np.zeros_like(total), total], axis=1)
            scores = (supported - q * total) / (p - q)
            variances.append(variance_of_scores(n, scores, kinds, rows, frequencies))
        return np.concatenate(variances)

"""Oracles and mechanisms as users of the packages would write them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from frequency import Oracle
from frequency.algebra.exact_draws import WORD, TruthOrLie, bernoulli, uniform
from frequency.core.channel import smallest_integer
from frequency.core.enumerated_oracle import EnumeratedOracle
from frequency.core.oracle import variance_of
from mechdesign import Audit, Mechanism, Privacy, named


@dataclass(frozen=True)
class Exclusion(EnumeratedOracle):
    """A report is an item that is probably not the user's. At least two items."""

    @cached_property
    def own(self):
        return -int(-WORD // (1 + self.max_ratio * (self.domain - 1)))

    @cached_property
    def law(self):
        own, items = Fraction(self.own, WORD), range(self.domain)
        other = (1 - own) / (self.domain - 1)
        return Mechanism([[own if x == v else other for v in items] for x in items], self.privacy)

    @cached_property
    def report_dtype(self):
        return np.dtype([("item", smallest_integer(self.domain - 1))])

    def fill(self, items, reports, source):
        own = bernoulli(len(items), self.own, source)
        told = uniform(len(items), self.domain - 1, source)
        reports["item"] = np.where(own, items, told + (told >= items))

    def possible(self, reports):
        return reports["item"] <= self.domain - 1

    def kinds_of(self, reports):
        return reports["item"].astype(np.int64)


@dataclass(frozen=True)
class Bare(Oracle):
    """Randomised response by the members that every oracle must have, and no others."""

    @cached_property
    def choice(self):
        return TruthOrLie.within(self.max_ratio, self.domain)

    @property
    def report_dtype(self):
        return np.dtype([("item", "<u4")])

    def fill(self, items, reports, source):
        reports["item"] = (items + self.choice.draw(len(items), source)) % self.domain

    def possible(self, reports):
        return reports["item"] < self.domain

    @property
    def counts_shape(self):
        return (self.domain,)

    def counts_of(self, reports):
        return np.bincount(reports["item"], minlength=self.domain)

    def frequencies_of(self, aggregate, items):
        q = float(self.choice.q) if self.domain > 1 else 0.0
        found = (aggregate.counts / aggregate.n - q) / (float(self.choice.p) - q)
        return found if items is None else found[items]

    def linear_variance(self, n, weights, frequencies):
        p, q = float(self.choice.p), float(self.choice.q) if self.domain > 1 else 0.0
        scores = (weights - q * weights.sum(axis=1, keepdims=True)) / (p - q)
        square = scores**2 @ (q + (p - q) * frequencies)
        return np.atleast_1d(variance_of(n, square - weights**2 @ frequencies))

    def audit(self):
        return Audit(self.choice.ratio, self.max_ratio, 0, (0, min(1, self.domain - 1)))


def lopsided(epsilon: float) -> Mechanism:
    """A local mechanism of four inputs that tells some pairs of them apart better than others."""
    privacy = Privacy.from_epsilon(epsilon, neighbours="all")
    all_four, halves = named.krr(4, alpha=privacy.alpha), named.krr(2, alpha=privacy.alpha)
    share, rest = Fraction(3, 5) / all_four.denominator, Fraction(2, 5) / halves.denominator
    rows = [[share * weight for weight in row] for row in all_four.weights]
    rows += [[rest * row[j // 2] for j in range(4)] for row in halves.weights]
    return Mechanism(rows, privacy)

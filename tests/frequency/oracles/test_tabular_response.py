"""Oracles of any table keep the contract of oracles."""

import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import NotIdentifiable, Tabular
from mechdesign import Mechanism, Privacy, PrivacyViolation, named
from tests.contracts.oracle import OracleContract, Twin, close, moments, reports_of
from tests.tape import WORD


class TabularContract(OracleContract):
    symmetric = False
    big_domains = (20,)

    def table(self, domain, epsilon):
        raise NotImplementedError

    def make(self, domain, epsilon):
        return Tabular(self.table(domain, epsilon))

    def twin(self, oracle):
        sent = [(y, row) for y, row in enumerate(oracle.mechanism.table) if any(row)]
        return Twin(reports_of(oracle, [(y,) for y, _ in sent]), [list(row) for _, row in sent])

    def tapes(self, oracle):
        for v in range(oracle.domain):
            total = Fraction(0)
            for y, row in enumerate(oracle.mechanism.table):
                first, total = total, total + row[v]
                low, high = math.ceil(first * WORD), math.floor(total * WORD) - 1
                if low <= high:
                    yield v, [low], (y,)
                    yield v, [high], (y,)

    def test_variance_is_the_enumerated_one(self, case):
        """The mean over items of the variance for the item when all others are equally frequent."""
        oracle, _, _, P, E = self.enumerated(case)
        mean, _ = moments(P, E)
        square = P.T @ E**2
        close(mean, np.eye(oracle.domain), E)
        for f in (0.0, 0.3, 1.0) if oracle.domain > 1 else (1.0,):
            expected = []
            for x in range(oracle.domain):
                held = np.full(oracle.domain, (1 - f) / max(oracle.domain - 1, 1))
                held[x] = f
                # Users' values are fixed, and each contributes the variance under its own.
                expected.append(held @ (square[:, x] - mean[:, x] ** 2))
            close(9 * oracle.variance(9, f), np.mean(expected), E**2)

    def test_variances_are_unbiased(self, case):
        """They are those of single items, which `test_variances_of_sums_are_unbiased` tests, cut at
        0.
        """
        oracle, reports, _, _, _ = self.enumerated(case)
        eye = np.eye(oracle.domain)
        for r in range(len(reports)):
            aggregate = oracle.aggregate(reports[r : r + 1])
            estimate = oracle.estimate(aggregate)
            raw = oracle.linear_variances_of(eye, aggregate, estimate.frequencies, None)
            close(estimate.variances, np.maximum(raw, 0), raw)

    def test_wrong_domain(self):
        for wrong in (None, 3, [[1]], "krr"):
            with pytest.raises(TypeError, match="mechanism must be"):
                Tabular(wrong)

    def test_wrong_epsilon(self):
        with pytest.raises(PrivacyViolation):
            Tabular(Mechanism(self.table(3, 1.0).table, Privacy(alpha="9/10", neighbours="all")))


class TestTabularKRR(TabularContract):
    def table(self, domain, epsilon):
        return named.krr(domain, alpha=Privacy.from_epsilon(epsilon, neighbours="all").alpha)


class TestTabularGeometric(TabularContract):
    """Private for adjacent items only, as the mechanism says."""

    def table(self, domain, epsilon):
        return named.geometric(domain - 1, alpha=Privacy.from_epsilon(epsilon).alpha)

    def pairs(self, oracle):
        return [(v, v + 1) for v in range(oracle.domain - 1)]


class TestTabularRectangular(TabularContract):
    """More outputs than items, with different amounts of information, one of no information and one
    that never occurs.
    """

    def table(self, domain, epsilon):
        alpha = Privacy.from_epsilon(epsilon, neighbours="all").alpha
        strong, weak = (named.krr(domain, alpha=a).table for a in (alpha, (1 + alpha) / 2))
        rows = [[p / 2 for p in row] for row in strong] + [
            [p * Fraction(3, 10) for p in row] for row in weak
        ]
        return Mechanism(
            [*rows, [Fraction(1, 5)] * domain, [Fraction(0)] * domain],
            Privacy(alpha=alpha, neighbours="all"),
        )

    def test_weighs_outputs_by_what_they_say(self, case):
        """No other unbiased estimator has a smaller variance summed over items, for equally
        frequent ones (Gauss and Markov).
        """
        oracle, _, _, P, E = self.enumerated(case)
        rng = np.random.default_rng(0)
        mean = P.mean(axis=1)
        for _ in range(3):
            # Anything that the columns of P are orthogonal to may be added.
            other = rng.normal(size=(oracle.domain, len(P)))
            other -= other @ P @ np.linalg.pinv(P)
            product = (E.T * mean) @ other.T
            assert np.abs(np.diag(product)).max() <= 1e-8 * np.abs(E).max()


def test_tables_that_do_not_identify():
    for table in (
        named.uniform(2),
        Mechanism([[1, 1, 0], [0, 0, 1]], Privacy(alpha="1/2", neighbours=((0, 1),))),
    ):
        with pytest.raises(NotIdentifiable, match="rank"):
            Tabular(table)

"""Hadamard response keeps the contract of oracles, with one coefficient and with more."""

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from frequency import HRR, Aggregate
from tests.contracts.oracle import (
    OracleContract,
    Twin,
    choice_words,
    rejected_words,
    reports_of,
    uniform_words,
    weights_of,
)
from tests.frequency.core.messages import countable, signature
from tests.frequency.oracles.closed_forms import EPSILONS, is_near
from tests.frequency.oracles.huge_counts import huge
from tests.tape import WORD


class HRRContract(OracleContract):
    """t distinct indices of 1 .. S-1, uniform; their signs with weight truth, other patterns with
    weight lie (thesis 4.7).
    """

    t = 1

    def make(self, domain, epsilon):
        valid = isinstance(domain, int) and not isinstance(domain, bool) and 0 < domain < 1 << 32
        return HRR(
            domain,
            epsilon,
            coefficients=min(self.t, max(1, (domain - 1).bit_length())) if valid else 1,
        )

    @staticmethod
    def signs(indices, v):
        return tuple(1 - 2 * ((j & v).bit_count() % 2) for j in indices)

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        t, s = oracle.parameters["coefficients"], 1 << max(1, (oracle.domain - 1).bit_length())
        rows = [
            (j, sign) for j in permutations(range(1, s), t) for sign in product((1, -1), repeat=t)
        ]
        drawn = WORD * math.perm(s - 1, t)
        table = [
            [
                Fraction(truth if self.signs(j, v) == sign else lie, drawn)
                for v in range(oracle.domain)
            ]
            for j, sign in rows
        ]
        return Twin(reports_of(oracle, rows), table)

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        t, s = oracle.parameters["coefficients"], 1 << max(1, (oracle.domain - 1).bit_length())
        for v, indices in product(
            {0, oracle.domain - 1}, [tuple(range(1, t + 1)), tuple(range(s - 1, s - 1 - t, -1))]
        ):
            drawn = [uniform_words(j - 1, s - 1)[-1] for j in indices] if s > 2 else []
            if t == 1:
                drawn = rejected_words(s - 1) + drawn
            for word, flips in choice_words(1 << t, truth, lie):
                sign = tuple(
                    x * (1 - 2 * (flips >> j & 1)) for j, x in enumerate(self.signs(indices, v))
                )
                yield v, [*drawn, word], (indices, sign)

    def test_contrast_is_the_literature_s(self):
        """Thesis 4.7: a coefficient is kept with probability p_r = (e^eps + 2^(t-1) - 1) / (e^eps +
        2^t - 1).
        """
        oracle, reports, _, P, _ = self.enumerated((5, 1))
        t, e = self.t, math.exp(1)
        own = np.array(
            [
                [s * x for s, x in zip(r["sign"], self.signs(r["index"].tolist(), 3), strict=True)]
                for r in reports
            ]
        )
        kept = P[:, 3] @ (own == 1)
        np.testing.assert_allclose(kept, (e + 2 ** (t - 1) - 1) / (e + 2**t - 1), rtol=1e-6)
        np.testing.assert_allclose(float(oracle._contrast), 2 * kept - 1, rtol=1e-9)

    def test_size_of_a_report(self):
        """An index of log2 S bits and a sign, t times."""
        assert self.make(8, 1.0).report_bits == self.t * 4


class TestHRR1(HRRContract):
    t = 1


class TestHRR2(HRRContract):
    t = 2


class TestHRR3(HRRContract):
    t = 3


@pytest.mark.parametrize("coefficients", [0, -1, 4, 1.0, True, None, "1"])
def test_wrong_coefficients(coefficients):
    with pytest.raises(ValueError, match="coefficients must be an integer up to log2"):
        HRR(5, 1.0, coefficients=coefficients)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 8, 1000, 1024])
def test_variance_of_hadamard_response(domain, epsilon):
    """A user's report is +-scale, scale = ((S-1)/S) (e+1)/(e-1), times the sign of the item; its
    mean is 1 - 1/S or -1/S.
    """
    e, s = math.exp(epsilon), 1 << max(1, (domain - 1).bit_length())
    scale = (s - 1) / s * (e + 1) / (e - 1)
    is_near(HRR(domain, epsilon).variance(10, 1.0), (scale**2 - (1 - 1 / s) ** 2) / 10)
    is_near(HRR(domain, epsilon).variance(10, 0.0), (scale**2 - 1 / s**2) / 10)


@pytest.mark.parametrize(
    ("t", "n"),
    [
        *((1, n) for n in (2**40, 2**62 + 12346, 2**63 - 2)),
        *((t, n) for n in (2**40, 2**61) for t in (2, 3)),
        *((t, n) for n in (2**62 + 12346, 2**63 - 2) for t in (2, 3)),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_hrr_estimates_from_huge_counts_as_exact_integers_do(
    t: int, n: int, epsilon: float
) -> None:
    oracle = HRR(8, epsilon, t)
    truth, lie = (int(oracle.parameters[key]) for key in ("truth", "lie"))
    scale = Fraction(7, 8 * t) / (Fraction(truth - lie, 1 << 64) * n)
    rng = np.random.default_rng(9)
    for users in huge(7, n * t, rng):
        # Indices at most n times each; what is over goes to others.
        for k in range(7):
            over = max(0, users[k] - n)
            users[k] -= over
            users[(k + 1) % 7] += over
        for signs in ([1] * 7, [-1] * 7, [int(s) for s in rng.choice([1, -1], 7)]):
            counts = [0, *(s * u for s, u in zip(signs, users, strict=True))]
            aggregate = Aggregate(signature(oracle), n, np.array(counts))
            assert countable(oracle, n, aggregate.counts)
            found = oracle.estimate(oracle.aggregate_from_bytes(aggregate.to_bytes()))
            sums = [
                sum((-1) ** (j & x).bit_count() * counts[j] for j in range(8)) for x in range(8)
            ]
            assert found.frequencies == pytest.approx(
                [float(Fraction(1, 8) + scale * s) for s in sums], rel=1e-12, abs=1e-12
            )

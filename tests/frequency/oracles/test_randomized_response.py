"""Randomised response keeps the contract of oracles, for two items and for more."""

import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import GRR, RR, Tabular
from mechdesign import named
from tests.contracts.oracle import OracleContract, Twin, choice_words, close, reports_of, weights_of
from tests.frequency.oracles.closed_forms import EPSILONS, is_near
from tests.tape import WORD


class TestGRR(OracleContract):
    """Pr[y | v] is truth for y = v, lie for every other y (thesis 2.4.2)."""

    make = staticmethod(GRR)

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        items = range(oracle.domain)
        return Twin(
            reports_of(oracle, [(y,) for y in items]),
            [[Fraction(truth if y == v else lie, WORD) for v in items] for y in items],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        if oracle.domain > 1:
            for v in range(oracle.domain):
                for word, told in choice_words(oracle.domain, truth, lie):
                    yield v, [word], ((v + told) % oracle.domain,)


class TestRR(TestGRR):
    domains, big_domains = (2,), ()

    def make(self, domain, epsilon):
        # The suite asks for other domains too; those are GRR's.
        return RR(domain, epsilon) if domain == 2 else GRR(domain, epsilon)

    def test_is_grr_for_two_items(self):
        binary, general = RR(2, 1.0), GRR(2, 1.0)
        assert {**binary.parameters, "protocol": "GRR"} == general.parameters
        assert binary.mechanism == general.mechanism
        assert binary.audit() == general.audit()
        values = np.arange(1000) % 2
        mine, theirs = (
            oracle.privatize(values, np.random.default_rng(0)) for oracle in (binary, general)
        )
        assert mine.tobytes() == theirs.tobytes()
        assert binary.variance(10, 0.3) == general.variance(10, 0.3)

    @pytest.mark.parametrize("domain", [1, 3, 1000])
    def test_other_domains(self, domain):
        with pytest.raises(ValueError, match="RR is for two items"):
            RR(domain, 1.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("domain", [2, 3, 5, 20])
def test_grr_is_the_named_mechanism(domain, epsilon):
    """`mechdesign.named.krr` at the ratio that is sampled, entry by entry, is what GRR samples by
    definition.
    """
    oracle = GRR(domain, epsilon)
    truth, lie = weights_of(oracle, "truth", "lie")
    table = [
        [Fraction(truth if y == v else lie, WORD) for v in range(domain)] for y in range(domain)
    ]
    assert [list(row) for row in oracle.mechanism.table] == table
    assert oracle.mechanism == named.krr(domain, alpha=Fraction(lie, truth))
    assert [list(row) for row in oracle.mechanism.table] == TestGRR().twin(oracle).table
    assert oracle.mechanism.audit().ratio == oracle.audit().ratio


def test_the_mechanism_of_grr_estimates_as_grr():
    """Deployed as a table it has the same reports and estimates."""
    oracle = GRR(5, 1.0)
    table = Tabular(oracle.mechanism)
    reports = oracle.privatize(np.arange(500) % 5, np.random.default_rng(0))
    other = np.array([(int(r["item"]),) for r in reports], dtype=table.report_dtype)
    mine, theirs = (
        oracle.estimate(oracle.aggregate(reports)),
        table.estimate(table.aggregate(other)),
    )
    close(mine.frequencies, theirs.frequencies, [1.0])
    w = np.arange(5.0)
    close(mine.linear(w).variance, theirs.linear(w).variance, [1.0])


def test_binary_randomised_response_is_the_thesis_s():
    for epsilon in EPSILONS:
        found = RR(2, epsilon).mechanism.matrix
        is_near(found[0, 0], math.exp(epsilon) / (math.exp(epsilon) + 1))
        assert found[0, 0] == found[1, 1]

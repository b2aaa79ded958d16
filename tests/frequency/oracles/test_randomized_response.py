"""Randomised response keeps the contract of oracles, for two items and for more."""

from fractions import Fraction

import numpy as np
import pytest

from frequency import GRR, RR
from tests.contracts.oracle import OracleContract, Twin, choice_words, reports_of, weights_of
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

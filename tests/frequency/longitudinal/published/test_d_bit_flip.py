"""The bits of a random set of items keep the contract of oracles, and so does a hash of one bit."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import comb, prod

import numpy as np
import pytest

from frequency import SUE, Aggregate, IncompatibleAggregate
from frequency.longitudinal.published import BLH, LGRR, DBitFlip, DBitFlipPM
from tests.contracts.oracle import OracleContract, Twin, reports_of, subset_bytes, weights_of
from tests.contracts.test_laws import of_ratio
from tests.contracts.test_proofs import check_law, check_ratio
from tests.frequency.oracles.test_local_hashing import TestOLH as HashingContract
from tests.tape import WORD


class TestDBitFlip(OracleContract):
    """The bits of a uniform set of items, each true with weight p: here of two, or of half."""

    epsilons = (0.1, 1, 3, 10, 1e-6, 700)
    domains = (1, 2, 5)

    def make(self, domain, epsilon):
        return DBitFlip(domain, epsilon, 1 if domain in (1, "5", None) else max(2, domain // 2))

    def fits(self, domain, epsilon):
        return epsilon <= 10

    def twin(self, oracle):
        p, q = (Fraction(w, WORD) for w in weights_of(oracle, "p", "q"))
        rows, table, d = [], [], oracle.domain
        for asked in combinations(range(d), oracle.asked):
            for size in range(len(asked) + 1):
                for ones in combinations(asked, size):
                    rows.append((subset_bytes(asked, d), subset_bytes(ones, d)))
                    table.append(
                        [
                            prod(
                                one if x in ones else 1 - one
                                for x in asked
                                for one in [p if x == v else q]
                            )
                            / comb(d, oracle.asked)
                            for v in range(d)
                        ]
                    )
        return Twin(reports_of(oracle, rows), table)


class TestBLH(HashingContract):
    """OLH with two values."""

    make = staticmethod(BLH)
    epsilons = (0.1, 1, 3)
    domains = (1, 2, 5)

    def test_the_range(self):
        assert {BLH(d, 3.0).hashes_to for d in (1, 2, 3, 1000)} == {2}
        ratio = BLH(100, 1.0).audit().ratio
        expected = (ratio + 1) ** 2 / (ratio - 1) ** 2 / 50
        assert BLH(100, 1.0).variance(50) == pytest.approx(float(expected))


def test_one_bit_loses_half_of_epsilon() -> None:
    one, two = DBitFlip(5, 1, 1).audit(), DBitFlip(5, 1, 2).audit()
    assert one.ratio**2 == two.ratio == SUE(5, 1).audit().ratio


@pytest.mark.parametrize(("domain", "asked"), [(1, 1), (2, 2), (3, 2), (4, 3)])
def test_the_proof_states_the_law(domain: int, asked: int) -> None:
    """Report by report, and the audit comes to what is proved."""
    for ratio in (Fraction(9), Fraction(25, 16)):
        with of_ratio(ratio):
            oracle = DBitFlip(domain, 1, asked)
            proof = oracle.proof()
            assert proof.holds
            check_law(oracle, tuple(range(domain)), proof)
            if domain > 1:
                check_ratio(oracle, proof)
    other = DBitFlip(3, 1, 2)
    with pytest.raises(AssertionError):
        check_law(other, (0, 1), DBitFlip(3, 1, 3).proof())
    with pytest.raises(TypeError, match="half of epsilon"):
        DBitFlip(3, 1, 1).proof()


def test_the_integers_of_numpy_make_the_same() -> None:
    assert DBitFlip(np.int64(5), 1, np.uint8(2)) == DBitFlip(5, 1, 2)
    assert repr(DBitFlipPM(np.int64(5), 1, np.uint8(2))) == "DBitFlipPM(domain=5, total=1, asked=2)"
    assert repr(LGRR(np.int64(5), 2, 1)) == "LGRR(domain=5, total=2, day=1)"


@pytest.mark.parametrize("asked", [1, 3, 12])
def test_variance_is_that_of_all_bits_by_the_share_asked(asked: int) -> None:
    oracle, whole = DBitFlip(12, 2, asked), SUE(12, 2)
    assert oracle.variance(7) == pytest.approx(12 / asked * whole.variance(7))
    own = 12 / asked * (1 + 7 * whole.variance(7, 1.0)) - 1
    assert 7 * oracle.variance(7, 1.0) == pytest.approx(own)


def test_sets_are_uniform() -> None:
    """Of three of five items, all ten are as frequent."""
    rng = np.random.default_rng(2)
    reports = DBitFlip(5, 1, 3).privatize(np.zeros(50_000, dtype=int), rng)
    counts = np.bincount(reports["asked"][:, 0])
    counts = counts[counts > 0]
    assert len(counts) == 10
    assert ((counts - 5000) ** 2).sum() / 5000 < 50  # chi-square of 9: a false alarm in 10^7
    assert (reports["bits"] & ~reports["asked"] == 0).all()


def test_what_is_refused() -> None:
    for asked in (0, 6, True, 2.5):
        with pytest.raises(ValueError, match="asked"):
            DBitFlip(5, 1, asked)
    oracle = DBitFlip(5, 1, 2)
    counts = oracle.aggregate(oracle.privatize([0, 1])).counts
    for wrong in (counts + 1, counts * [[1], [0]] + [[0], [3]]):
        with pytest.raises(IncompatibleAggregate, match="no 2 reports"):
            oracle.estimate(Aggregate(oracle.signature, 2, wrong))

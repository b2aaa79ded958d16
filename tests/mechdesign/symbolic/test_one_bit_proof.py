"""Reports that users keep or not: in proportion to their likelihoods, and never too often."""

from dataclasses import replace
from fractions import Fraction as Q

import pytest

from mechdesign.symbolic import ALPHA, Acceptance, OneBitProof, TableProof, krr
from mechdesign.symbolic.privacy_proof import acceptances
from mechdesign.symbolic.proof_rules import favouring
from mechdesign.symbolic.semialgebraic import rational
from mechdesign.symbolic.table import SymbolicMechanism
from tests.mechdesign.symbolic.test_proof_rules import ONE, A, refused


@pytest.mark.parametrize("items", [2, 3, 50])
def test_one_bit(items):
    inner = favouring(1, items - 1, name="inner")
    proof = OneBitProof(inner, acceptances(inner), name="bit")
    assert proof.verify()
    ((least, largest, *_),) = proof.kinds
    assert (least, largest) == (A / (ONE + A), ONE / (ONE + A))
    refused(replace(proof, part=replace(inner, exponent=0)), "inner")
    refused(replace(proof, part=replace(inner, exponent=2)), "2 times epsilon")
    refused(replace(proof, kinds=()), "in proportion")
    refused(replace(proof, kinds=(Acceptance(ONE, ONE),)), "in proportion")
    # The source keeps with half of the likelihood relative to a uniform report: right for signs
    half = ONE / (ONE + A * (items - 1)) * Q(items, 2)
    paper = replace(proof, kinds=(Acceptance(half * A, half),))
    assert paper.holds == (items == 2)
    assert (items == 2) == ("but" not in paper.verify().reason)
    # A report may always be kept less often
    assert replace(proof, kinds=(Acceptance(least * Q(1, 3), largest * Q(1, 3)),)).holds
    assert not replace(proof, kinds=(Acceptance(least * 2, largest * 2),)).holds


def test_one_bit_about_a_table():
    """Rows of other spreads have other acceptances."""
    weights = [[2, 2, 2], [3 + 0 * ALPHA, 2, 2], [1, 2, 2]]
    table = TableProof(SymbolicMechanism(weights, 6 + 0 * ALPHA, "all"), name="table")
    assert table.spreads == {ONE, rational(Q(2, 3)), rational(Q(1, 2))}
    kinds = acceptances(table)
    assert Acceptance(rational(Q(1, 2)), rational(Q(1, 2))) in kinds
    alpha = Q(1, 3)
    for least, largest, *_ in kinds:  # a 0 loses exactly epsilon, where it says anything
        if least != largest:
            assert (1 - largest(alpha)) == alpha * (1 - least(alpha))
    assert OneBitProof(TableProof(krr(3)), acceptances(TableProof(krr(3)))).holds


@pytest.mark.parametrize("menu", [(3, 0, 1), (3, 1, 1), (4, 1, 3), (5, 0, 5)])
def test_one_of_several_candidates(menu):
    """None kept loses epsilon, unless as many are likely for all; no more can be kept."""
    candidates, fewest, most = menu
    inner = favouring(1, 9, name="inner")
    (kind,) = acceptances(inner, (menu,))
    proof = OneBitProof(inner, (kind,), name="some bits")
    assert proof.verify()
    for alpha in (Q(1, 9), Q(1, 2), Q(8, 9)):
        few, many = (
            likely * kind.largest(alpha) + (candidates - likely) * kind.least(alpha)
            for likely in (fewest, most)
        )
        assert (few, many) == tuple(total(alpha) for total in kind.sums())
        assert 1 - many == alpha * (1 - few)
        assert fewest < most or many == 1
    more = kind._replace(least=kind.least * Q(101, 100), largest=kind.largest * Q(101, 100))
    refused(replace(proof, kinds=(more,)), "but")
    refused(replace(proof, kinds=(kind._replace(most=most + 1),)), "but")

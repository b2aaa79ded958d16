"""The rules for what is composed: each is checked, and a planted mistake in any is refused."""

from dataclasses import replace
from fractions import Fraction as Q
from itertools import product

import pytest

from mechdesign.symbolic import (
    ALPHA,
    BudgetShare,
    CompositionProof,
    ExponentialProof,
    MixturePart,
    MixtureProof,
    ProcessedProof,
    PublicDrawProof,
    TableProof,
)
from mechdesign.symbolic.proof_rules import favouring, unchanged
from mechdesign.symbolic.semialgebraic import rational
from mechdesign.symbolic.table import SymbolicMechanism
from tests.mechdesign.symbolic.alphas import NONE

A, ONE = rational(ALPHA), rational(1)
TOLD, IDLE = favouring(1, 2, name="told"), unchanged(Q(1, 2), Q(1, 2), name="idle")
WRONG = replace(TOLD, exponent=0)


def refused(proof, reason):
    assert not proof.holds
    assert reason in proof.verify().reason, proof.verify().reason
    assert not proof.region.everywhere


def test_a_public_draw_costs_nothing():
    proof = PublicDrawProof(TOLD, ((2, Q(1, 4)), (4, Q(1, 8))), name="draw")
    assert proof.verify()
    assert (proof.loss, proof.spreads) == (1, TOLD.spreads)
    assert PublicDrawProof(IDLE, ((1, Q(1)),)).loss == 0
    refused(replace(proof, settings=((2, Q(1, 4)),)), "sum to 1/2")
    refused(replace(proof, settings=((1, Q(2)), (1, Q(-1)))), "what is drawn")
    refused(replace(proof, settings=()), "sum to 0")
    refused(replace(proof, part=WRONG), "told")


def test_a_mixture_costs_its_worst_part():
    parts = (MixturePart(2, Q(1, 4), TOLD), MixturePart(1, Q(1, 2), IDLE))
    proof = MixtureProof(parts, name="mixture")
    assert proof.verify()
    assert proof.loss == 1
    assert replace(proof, parts=(MixturePart(1, Q(1), IDLE),)).loss == 0
    refused(replace(proof, parts=parts[:1]), "sum to 1/2")  # a level is forgotten
    refused(replace(proof, parts=()), "sum to 0")
    refused(replace(proof, parts=(parts[0], parts[1]._replace(part=WRONG))), "told")
    refused(replace(proof, parts=(parts[0], parts[1]._replace(times=2))), "sum to 3/2")
    twice = replace(TOLD, exponent=2)
    refused(replace(proof, parts=(parts[0], parts[1]._replace(part=twice))), "2 times epsilon")


def test_losses_add_up():
    parts = (
        BudgetShare(Q(1, 4), 3, TOLD),
        BudgetShare(Q(1, 4), 1, PublicDrawProof(TOLD, ((1, Q(1)),), name="draw")),
        BudgetShare(Q(1, 4), 9, IDLE),
    )
    proof = CompositionProof(parts, name="composition")
    assert proof.verify()
    assert proof.loss == 1
    assert CompositionProof((BudgetShare(Q(1, 3), 5, IDLE),)).holds  # nothing is lost
    for k in (0, 1):  # a part is forgotten, or told with epsilon itself
        refused(replace(proof, parts=parts[:k] + parts[k + 1 :]), "shares of epsilon")
        more = (*parts[:k], parts[k]._replace(share=Q(1)), *parts[k + 1 :])
        refused(replace(proof, parts=more), "shares of epsilon")
        more = (*parts[:k], parts[k]._replace(times=parts[k].times + 1), *parts[k + 1 :])
        refused(replace(proof, parts=more), "shares of epsilon")
        wrong = (*parts[:k], parts[k]._replace(part=WRONG), *parts[k + 1 :])
        refused(replace(proof, parts=wrong), "told")
    twice = parts[0]._replace(part=replace(TOLD, exponent=2), share=Q(1, 4))
    refused(replace(proof, parts=(twice, *parts[1:])), "2 times its budget")
    refused(replace(proof, parts=(*parts, BudgetShare(Q(0), 1, IDLE))), "no share")
    refused(replace(proof, parts=(*parts, BudgetShare(Q(1), -1, IDLE))), "no share")


def test_a_region_of_a_share_is_one_of_other_alphas():
    third = TableProof(
        SymbolicMechanism([[3 + 0 * ALPHA, 1 + 0 * ALPHA], [1, 3]], 4 + 0 * ALPHA, "all")
    )
    assert str(CompositionProof((BudgetShare(Q(1), 1, third),)).region) == "0 < α ≤ 1/3"
    assert CompositionProof((BudgetShare(Q(1, 2), 2, third),)).region == NONE


def test_processing_costs_nothing():
    proof = ProcessedProof(TOLD, "about a random item", name="processed")
    assert proof.verify()
    assert (proof.loss, proof.spreads) == (1, TOLD.spreads)
    refused(replace(proof, part=WRONG), "told")


CHANGES = ((ONE, A), (A, ONE), (ONE, ONE))


def test_weights_count_twice():
    proof = ExponentialProof(CHANGES, Q(1, 2), name="weights")
    assert proof.verify()
    assert proof.loss == 1
    refused(replace(proof, share=Q(1)), "1 of epsilon each")  # the sum is forgotten
    refused(replace(proof, share=Q(1, 4)), "1/4 of epsilon each")
    refused(replace(proof, weights=(*CHANGES, (ONE, A * A))), "α^2")
    refused(replace(proof, weights=((A * -1, A * -1),)), "-α")


@pytest.mark.parametrize("beta", [Q(1, 3), Q(9, 10)])
def test_the_exponential_mechanism_of_a_few_places(beta):
    """Losses of places that change by at most one: probabilities change by beta^2 at most."""
    worst = Q(1)
    for losses in product(range(3), repeat=3):
        for change in product((-1, 0, 1), repeat=3):
            others = [max(0, loss + more) for loss, more in zip(losses, change, strict=True)]
            one, other = ([beta**loss for loss in found] for found in (losses, others))
            for a, b in zip(one, other, strict=True):
                worst = max(worst, a / sum(one) / (b / sum(other)))
    assert worst <= 1 / beta**2
    assert worst > 1 / beta


def test_proofs_are_text():
    parts = tuple(MixturePart(1, Q(1, 6), favouring(1, k, name=f"of {k}")) for k in range(1, 7))
    lines = str(MixtureProof(parts, name="levels")).splitlines()
    assert lines[:2] == [
        "levels: ratio at most 1/α",
        "  one of 6 parts, drawn whatever the item: the worst one counts",
    ]
    assert lines[-1] == "    and 2 other, checked alike"
    assert len(lines) == 2 + 4 * 2 + 1
    alike = tuple(part._replace(part=part.part.called("level")) for part in parts)
    assert len(str(MixtureProof(alike, name="levels")).splitlines()) == 2 + 2 + 1
    split = CompositionProof((BudgetShare(Q(1, 3), 3, TOLD), BudgetShare(Q(1, 3), 7, IDLE)))
    assert "  3 with 1/3 of epsilon" in str(split)
    assert "  7 that say nothing" in str(split)

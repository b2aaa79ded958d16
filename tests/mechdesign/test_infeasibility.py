"""Farkas proofs: what they prove, that altered ones prove nothing, and what the error says."""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction

import pytest

from mechdesign import Bands, Counts, FarkasProof, Incompatible, Privacy, Request
from mechdesign.optimisation.infeasibility import refutation
from mechdesign.properties import resolve

HALF = Privacy(alpha="1/2")
TINY = Fraction(1, 10**30)


def request(n=2, privacy=HALF, texts=("at-least:0,0=4/5", "at-least:1,1=4/5"), outputs=None):
    inputs = Counts(0, n)
    return Request(outputs or inputs, inputs, privacy, tuple(map(resolve, texts)))


@pytest.fixture
def proof():
    found = refutation(request())
    assert found is not None
    return found


def altered(proof, name, number, value):
    multipliers = {key: dict(chosen) for key, chosen in proof.multipliers.items()}
    multipliers.setdefault(name, {})[number] = value
    return replace(proof, multipliers=multipliers)


def test_a_proof_names_its_requirements_and_holds(proof):
    assert proof.verify()
    assert proof.excess > 0
    assert "add up to 0 >=" in proof.verify().reason
    assert proof.request.requirements == ("privacy", "at-least:0,0=4/5", "at-least:1,1=4/5")


def test_a_proof_by_hand():
    """P[0,0] >= 4/5 leaves at most 1/5 of column 0 to output 1; privacy 2/5, not 4/5, to P[1,1]."""
    wanted = request(n=1)
    groups = {group.name: group for group in wanted.constraints()}
    row = groups["privacy"].cells.tolist().index([2, 3])  # P[1,0] >= P[1,1] / 2
    multipliers = {
        "column sums": {0: Fraction(-1)},
        "privacy": {row: Fraction(1)},
        "at-least:0,0=4/5": {0: Fraction(1)},
        "at-least:1,1=4/5": {0: Fraction(1, 2)},
    }
    assert FarkasProof(wanted, multipliers).excess == Fraction(4, 5) + Fraction(2, 5) - 1


def test_every_multiplier_is_needed_and_none_may_change_its_sign(proof):
    for name, chosen in proof.multipliers.items():
        for number, value in chosen.items():
            verdicts = [
                altered(proof, name, number, changed).verify()
                for changed in (-value, Fraction(0), value + TINY, value - TINY, 2 * value)
            ]
            assert not all(verdicts)
            if name != "column sums":
                assert not verdicts[0]
            assert not altered(proof, name, number, value + 100).verify()


def test_multipliers_of_something_else_prove_nothing(proof):
    assert "no constraints called" in altered(proof, "unknown", 0, 1).verify().reason
    assert "are 0 .." in altered(proof, "privacy", 10**6, 1).verify().reason
    assert "are 0 .." in altered(proof, "privacy", -1, 1).verify().reason
    assert "is negative" in altered(proof, "privacy", 0, -TINY).verify().reason
    assert "add up to 0 >= 0" in FarkasProof(proof.request, {}).verify().reason
    with pytest.raises(TypeError):
        altered(proof, "privacy", 0, 0.5)


def test_a_proof_is_about_its_request_alone(proof):
    for other in (
        replace(proof.request, privacy=Privacy(alpha="1/10")),
        replace(proof.request, properties=proof.request.properties[:1]),
        replace(proof.request, private=False),
        replace(proof.request, outputs=Counts(-1, 2)),
        request(texts=("at-least:0,0=1/5", "at-least:1,1=1/5")),
    ):
        assert not FarkasProof(other, proof.multipliers).verify()
    stronger = replace(proof.request, privacy=Privacy(alpha="1/2", neighbours="all"))
    assert refutation(stronger) is not None


def test_proofs_and_errors_can_be_copied(proof):
    error = Incompatible(proof, Privacy(alpha="1/4"), HALF)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert str(again) == str(error)
        assert again.conflict == error.conflict
        assert again.possible == Privacy(alpha="1/4")
        assert again.impossible == HALF
        assert again.proof == proof
        assert again.proof.verify()


def test_a_proof_cannot_be_changed(proof):
    with pytest.raises(TypeError):
        proof.multipliers["privacy"] = {}
    with pytest.raises(TypeError):
        proof.multipliers["privacy"][0] = 1


def test_the_message_is_one_sentence(proof):
    asked = "no mechanism meets at-least:0,0=4/5, at-least:1,1=4/5 and privacy at epsilon 0.693147"
    assert str(Incompatible(proof, Privacy(alpha="1/4"), HALF)) == (
        f"{asked} together (proved); all that was asked for is possible from an epsilon of 1.38629"
        " on, not at 0.693147"
    )
    assert str(Incompatible(proof, None, Privacy(alpha="1/4"))) == (
        f"{asked} together (proved); an epsilon of 1.38629 is not enough, either"
    )
    assert str(Incompatible(proof, None, HALF)) == f"{asked} together (proved)"
    alone = refutation(replace(request(texts=["linear:P[0,0] >= 2"]), private=False))
    assert alone is not None
    assert str(Incompatible(alone)) == (
        "no mechanism meets linear:1*P[0,0] >= 2, at any epsilon (proved)"
    )


def test_constraints_of_a_request_without_privacy():
    wanted = request(texts=["CM", "within:0=1/2"], outputs=Bands([(0, 0), (1, 2)]))
    wanted = replace(wanted, properties=wanted.properties[1:])
    assert any(group.kind == "privacy" for group in wanted.constraints())
    names = [group.name for group in replace(wanted, private=False).constraints()]
    assert names == ["column sums", "within 0", "within 1", "within 2"]

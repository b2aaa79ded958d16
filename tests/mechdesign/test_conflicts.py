"""Smallest conflicts and critical epsilons, against a search of all subsets by another solver."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Inexact, localcontext
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from mechdesign import (
    Bands,
    Constraints,
    CountPairs,
    Counts,
    Incompatible,
    Infeasible,
    Metric,
    Privacy,
    Property,
    Request,
    SolverFailure,
    design,
)
from mechdesign.losses import L0, L1
from mechdesign.optimisation import infeasibility as conflicts
from mechdesign.optimisation.infeasibility import (
    critical_privacy,
    incompatible,
    refutation,
    smallest_conflict,
)
from mechdesign.properties import resolve

HALF = Privacy(alpha="1/2")


def request(n, privacy, texts, outputs=None):
    inputs = Counts(0, n) if isinstance(n, int) else n
    return Request(outputs or inputs, inputs, privacy, tuple(map(resolve, texts)))


def least_violation(wanted):
    """The least sum of violations, in floats, with every constraint of privacy as it is stated."""
    size = wanted.outputs.size * wanted.inputs.size
    # Asked for without RM, which would let half of privacy be left out.
    rows, bounds, kinds = [], [], []
    for group in wanted.constraints():
        for cells in group.cells.tolist():
            row = np.zeros(size)
            np.add.at(row, cells, [float(c) for c in group.coefficients])
            rows.append(row)
            bounds.append(float(group.bound))
            kinds.append(group.equality)
    matrix, right, equal = np.array(rows), np.array(bounds), np.array(kinds)
    bought = np.hstack([np.eye(len(rows)), -np.eye(len(rows))[:, equal]])
    cost = np.concatenate([np.zeros(size), np.ones(bought.shape[1])])
    found = linprog(
        cost,
        A_ub=-np.hstack([matrix, bought])[~equal],
        b_ub=-right[~equal],
        A_eq=np.hstack([matrix, bought])[equal],
        b_eq=right[equal],
    )
    assert found.status == 0
    return found.fun


def met(wanted):
    violation = least_violation(wanted)
    assert not 1e-9 < violation < 1e-6, "too close to tell in floats"
    return violation < 1e-9


def smallest_by_search(wanted):
    """The number of requirements in the smallest conflict, over all subsets."""
    for count in range(1, 2 + len(wanted.properties)):
        for private in (False, True):
            for chosen in combinations(wanted.properties, count - private):
                if not met(replace(wanted, properties=chosen, private=private)):
                    return count
    return None


def random_text(rng, n):
    i, j = (int(value) for value in rng.integers(0, n + 1, 2))
    d = int(rng.integers(0, n))
    share = Fraction(int(rng.integers(0, 11)), 10)
    other = Fraction(int(rng.integers(1, 8)), 7)
    return [
        f"at-least:{i},{j}={share}",
        f"at-most:{i},{j}={share}",
        f"within:{d}={share}",
        f"linear:P[{i},{d}] -{other}*P[{j},{d + 1}] >= {share - Fraction(1, 2)}",
        f"linear:P[{i},{d}] + P[{j},{d + 1}] == {share}",
        "unbiased",
        *("WH", "CM", "F", "S", "RM", "OR"),
    ][int(rng.integers(0, 12))]


@pytest.mark.parametrize("seed", range(12))
def test_the_conflict_is_a_smallest_of_all_subsets(seed):
    rng = np.random.default_rng(seed)
    conflicting = 0
    for _ in range(6):
        n = int(rng.integers(1, 4))
        privacy = Privacy(
            alpha=Fraction(int(rng.integers(1, 10)), 10),
            neighbours=["adjacent", "all"][int(rng.integers(2))],
        )
        texts = list(dict.fromkeys(random_text(rng, n) for _ in range(int(rng.integers(1, 6)))))
        outputs = [None, Counts(-1, n + 1)][int(rng.integers(2))]
        if outputs is not None:
            texts = [text for text in texts if text not in ("CM", "RM", "S", "WH", "F", "OR")]
        wanted = request(n, privacy, texts, outputs)
        if least_violation(wanted) < 1e-6:
            assert (refutation(wanted) is None) == met(wanted)
            continue
        conflicting += 1
        proof = smallest_conflict(wanted)
        assert proof.verify()
        assert set(proof.request.requirements) <= set(wanted.requirements)
        assert len(proof.request.requirements) == smallest_by_search(wanted)
        for item in proof.request.properties:
            left = tuple(other for other in proof.request.properties if other != item)
            assert refutation(replace(proof.request, properties=left)) is None
        if proof.request.private:
            assert refutation(replace(proof.request, private=False)) is None
    assert conflicting


def test_the_search_finds_a_planted_conflict_among_others():
    """Two of ten contradict each other; and three of ten, where no two do."""
    harmless = ["CM", "WH", "S", "at-most:0,4=1/2", "at-most:4,0=1/2", "within:3=1/2", "OR", "RM"]
    wanted = request(4, HALF, [*harmless, "at-least:1,1=2/5", "at-most:1,1=1/3"])
    assert smallest_conflict(wanted).request.requirements == ("at-least:1,1=2/5", "at-most:1,1=1/3")
    three = ["at-least:0,2=2/5", "at-least:1,2=2/5", "at-least:3,2=2/5"]
    wanted = request(4, Privacy(alpha="1/10"), [*three[:2], "F", "at-most:4,0=1/2", three[2], "OR"])
    assert smallest_conflict(wanted).request.requirements == tuple(three)
    # of conflicts of equal size, one without privacy
    wanted = request(1, Privacy(alpha="9/10"), ["at-least:0,0=4/5", "at-most:0,0=1/10"])
    assert smallest_conflict(wanted).request.requirements == (
        "at-least:0,0=4/5",
        "at-most:0,0=1/10",
    )


@pytest.mark.parametrize(
    ("n", "outputs", "texts", "alpha"),
    [
        # P[0,0], P[1,1] >= p leave 1 - p to P[0,1] >= alpha P[0,0]: alpha <= (1 - p) / p
        (1, None, ["at-least:0,0=3/5", "at-least:1,1=3/5"], Fraction(2, 3)),
        # P[0,1] >= alpha P[0,0]
        (1, None, ["at-least:0,0=4/5", "at-most:0,1=1/10"], Fraction(1, 8)),
        (CountPairs(0, 1), None, ["within:0=3/5"], Fraction(2, 3)),
        (3, Bands([(0, 1), (2, 3)]), ["within:0=9/10"], Fraction(1, 9)),
        # unbiased on -1, 0, 1 of 0, 1: P[1, 1] = 1
        (1, Counts(-1, 1), ["unbiased"], None),
        (1, None, ["within:0=1"], None),
    ],
)
def test_the_critical_epsilon(n, outputs, texts, alpha):
    wanted = request(n, Privacy(alpha="19/20"), texts, outputs)
    if isinstance(n, CountPairs):
        wanted = replace(wanted, privacy=Privacy(alpha="19/20", neighbours=n.neighbours()))
    proof = refutation(wanted)
    assert proof is not None
    possible, impossible = critical_privacy(proof)
    assert refutation(replace(wanted, privacy=impossible)) is not None
    if alpha is None:
        assert possible is None
        assert math.isclose(impossible.epsilon, 10, rel_tol=1e-6)
        return
    assert possible is not None
    assert possible.alpha <= alpha < impossible.alpha
    assert (possible.epsilon - impossible.epsilon) / possible.epsilon < 1.1e-5
    assert refutation(replace(wanted, privacy=possible)) is None
    # what is said can be typed
    said = Privacy.from_epsilon(f"{possible.epsilon:.6g}", possible.neighbours)
    assert said == possible


@pytest.mark.parametrize("neighbours", ["all", Metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]])])
def test_the_critical_epsilon_for_other_neighbours(neighbours):
    wanted = request(2, Privacy(alpha="19/20", neighbours=neighbours), ["within:0=9/10", "CM"])
    proof = refutation(wanted)
    assert proof is not None
    possible, impossible = critical_privacy(proof)
    assert possible is not None
    assert least_violation(replace(wanted, privacy=possible)) < 1e-8
    weaker = Privacy(alpha=possible.alpha * Fraction(999, 1000), neighbours=neighbours)
    stronger = Privacy(alpha=impossible.alpha * Fraction(1001, 1000), neighbours=neighbours)
    assert met(replace(wanted, privacy=weaker))
    assert not met(replace(wanted, privacy=stronger))


def test_epsilon_zero_and_large():
    wanted = request(1, Privacy(alpha=1), ["at-least:0,0=51/100", "at-least:1,1=51/100"])
    proof = refutation(wanted)
    assert proof is not None
    possible, impossible = critical_privacy(proof)
    assert possible is not None
    assert possible.alpha <= Fraction(49, 51) < impossible.alpha
    # enough as soon as epsilon is above 0: at 1e-9 it is not told apart from 0
    little = request(1, Privacy(alpha=1), ["linear:P[0,0] -1*P[0,1] >= 1/1000000000000"])
    proof = refutation(little)
    assert proof is not None
    possible, impossible = critical_privacy(proof)
    assert possible is not None
    assert possible.epsilon < 1.1e-9
    assert impossible == Privacy(alpha=1)
    # beyond the largest epsilon nothing is tried
    large = request(1, Privacy.from_epsilon(12), ["unbiased"])
    proof = refutation(large)
    assert proof is not None
    assert critical_privacy(proof) == (None, large.privacy)
    assert str(incompatible(large)).endswith("privacy at epsilon 12 together (proved)")


def test_what_can_be_met_is_not_incompatible():
    said: list[str] = []
    assert incompatible(request(4, HALF, ["CM", "unbiased"], Counts(0, 4)), said.append) is not None
    assert said == [
        "looking for a contradiction",
        "looking for the smallest conflict",
        "looking for the smallest epsilon",
    ]
    assert incompatible(request(4, HALF, ["CM", "within:1=1/2"])) is None
    assert incompatible(request(4, HALF, ["unbiased"], Counts(-9, 13))) is None
    assert incompatible(request(0, HALF, [])) is None
    assert incompatible(request(0, HALF, ["at-least:0,0=1"])) is None


def test_design_raises_it():
    for loss in (L0(), L1(worst_case=True)):
        with pytest.raises(Incompatible) as caught:
            design(4, HALF, loss, ["unbiased", "CM", "at-most:0,0=1"])
        assert caught.value.conflict == ("privacy", "unbiased")
        assert caught.value.proof.verify()
        assert str(caught.value).count("\n") == 0
    assert design(4, HALF, L0(), ["unbiased"], outputs=Counts(-8, 12)).certificate.optimal


def test_a_property_of_ones_own_in_a_conflict():
    class Never(Property):
        short = "NEVER-0"

        def constraints(self, at, privacy):
            yield Constraints.at_most_value(at[0], 0)

    with pytest.raises(Infeasible, match="NEVER-0 and WH together, at any epsilon"):
        design(3, HALF, properties=[Never(), "WH", "S"])


def test_where_an_epsilon_cannot_be_decided(monkeypatch):
    wanted = request(3, Privacy(alpha="19/20"), ["at-least:0,0=4/5", "at-most:0,3=1/10"])
    proof = refutation(wanted)
    assert proof is not None
    honest = conflicts.refutation

    def undecided(low, high):
        def decide(some):
            if low < some.privacy.epsilon < high:
                raise SolverFailure("out of order")
            return honest(some)

        return decide

    monkeypatch.setattr(conflicts, "refutation", undecided(0.1, 10))
    assert critical_privacy(proof) == (None, wanted.privacy)
    monkeypatch.setattr(conflicts, "refutation", undecided(0.83, 3))  # it is about 0.84
    possible, impossible = critical_privacy(proof)
    assert possible is not None
    assert possible.epsilon > 3
    assert impossible.epsilon < 0.83
    monkeypatch.setattr(conflicts, "refutation", undecided(0, 100))
    with pytest.raises(SolverFailure):
        incompatible(wanted)
    with pytest.raises(Infeasible) as caught:  # by exact simplex steps, without an explanation
        design(3, wanted.privacy, properties=wanted.properties)
    assert not isinstance(caught.value, Incompatible)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 40])
def test_larger_requests_are_refused_with_a_proof(n):
    with pytest.raises(Incompatible) as caught:
        design(n, Privacy(alpha="9/10"), L1(), ["within:1=1/2", "CM", "WH"])
    assert caught.value.conflict == ("privacy", "within:1=1/2")
    assert caught.value.proof.verify()
    assert caught.value.possible is not None


def test_the_critical_epsilon_is_the_same_in_any_context_of_decimals():
    asked = refutation(
        request(1, Privacy(alpha="19/20"), ["at-least:0,0=4/5", "at-most:0,1=1/10"], None)
    )
    alone = critical_privacy(asked)
    with localcontext(prec=2) as context:
        context.traps[Inexact] = True
        assert critical_privacy(asked) == alone

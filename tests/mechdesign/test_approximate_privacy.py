"""Designs with (epsilon, delta): optimal by brute force, audited, kept in files, refused."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from mechdesign import (
    ApproximateDP,
    ApproximatePrivacy,
    Bands,
    CertificateRejected,
    CountPairs,
    Counts,
    DeltaViolation,
    Incompatible,
    InvalidFile,
    Mechanism,
    Metric,
    NotPure,
    Privacy,
    TooLarge,
    design,
    explain,
)
from mechdesign.accounting import PrivacyLoss, shuffled
from mechdesign.base.files import digest_of
from mechdesign.cli import main
from mechdesign.losses import L0, L1, L2
from mechdesign.lp.basis import reduce_by_symmetry
from mechdesign.mechanism.device import Device
from mechdesign.mechanism.table import DeltaAudit, IndexTable
from mechdesign.mechanism.values import distances
from mechdesign.optimisation.formulation import mechanism_program, reflection, slacks_of
from mechdesign.optimisation.unbiased_design import least_variance
from mechdesign.properties import SEVEN, resolve


def sets(outputs: int) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(range(outputs), k) for k in range(1, outputs + 1)))


def least_loss(inputs: int, promise: ApproximatePrivacy, loss, properties=(), outputs=None):
    """By a constraint for every set of outputs, in floats; slacks are not needed."""
    outputs = inputs if outputs is None else outputs.size
    at = IndexTable(outputs, inputs)
    upper, limits, equal, right = [], [], [], []
    for j in range(inputs):
        row = np.zeros(at.size)
        row[at[:, j]] = 1
        equal.append(row)
        right.append(1)
    for pair in promise.pairs(inputs).tolist():
        for j, k in (pair, pair[::-1]):
            for chosen in sets(outputs):
                row = np.zeros(at.size)
                row[at[chosen, j]] = 1
                row[at[chosen, k]] = -1 / float(promise.alpha)
                upper.append(row)
                limits.append(float(promise.delta))
    for item in map(resolve, properties):
        for group in item.constraints(at, promise.pure):
            for cells in group.cells.tolist():
                row = np.zeros(at.size)
                np.add.at(row, cells, [float(a) for a in group.coefficients])
                (equal if group.equality else upper).append(row if group.equality else -row)
                (right if group.equality else limits).append(
                    float(group.bound if group.equality else -group.bound)
                )
    costs = np.array(loss.costs(at.outputs, at.inputs), dtype=np.float64)
    costs = (costs * np.array([float(w) for w in loss.weights(inputs)])).ravel()
    found = linprog(costs, np.array(upper), limits, np.array(equal), right)
    assert found.status == 0
    return float(found.fun)


PROMISES = [
    ApproximatePrivacy(alpha="1/2", delta="1/20"),
    ApproximatePrivacy(alpha="9/10", delta="1/3", neighbours="all"),
    ApproximatePrivacy(alpha=1, delta="1/7", neighbours=2),
    ApproximatePrivacy(alpha="2/3", delta="1/1000", neighbours=[(0, 1), (1, 3)]),
]


@pytest.mark.parametrize("promise", PROMISES, ids=repr)
@pytest.mark.parametrize("loss", [L0(), L1(), L2()], ids=repr)
@pytest.mark.parametrize(
    "properties", [(), ("WH", "S"), ("F", "RM"), ("CM",), ("OR",), ("RH", "CH")], ids=str
)
def test_the_optimum_is_that_over_all_sets_of_outputs(promise, loss, properties):
    found = design(3, promise, loss, properties)
    expected = least_loss(4, promise, loss, properties)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-8)
    kept = found.mechanism.properties()
    assert all(kept[name] for name in properties if name in kept)


@pytest.mark.parametrize("short", [item.short for item in SEVEN])
def test_every_property_is_designed_for(short):
    promise = ApproximatePrivacy(alpha="3/4", delta="1/50")
    found = design(4, promise, L1(), [short])
    assert found.mechanism.properties()[short]
    expected = least_loss(5, promise, L1(), [short])
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-8)


def test_a_worst_case_and_other_values_are_designed_for():
    promise = ApproximatePrivacy(alpha="1/2", delta="1/10")
    worst = design(2, promise, L0(worst_case=True))
    # The least of the largest error is that of fair mechanisms here
    assert worst.certificate.gap == 0
    assert worst.certificate.objective == design(2, promise, L0(), ["F"]).certificate.objective
    wide = design(2, promise, L2(), ["unbiased"], outputs=Counts(-2, 4))
    assert wide.certificate.gap == 0
    assert wide.mechanism.error_distribution().bias == 0
    bands = Bands([(0, 1), (2, 3)])
    coarse = design(3, promise, L0(), outputs=bands)
    expected = least_loss_of_bands(promise, bands)
    assert float(coarse.certificate.objective) == pytest.approx(expected, abs=1e-8)
    pairs = design(CountPairs(1, 1), promise)
    assert pairs.certificate.gap == 0
    assert pairs.mechanism.promise.neighbours == CountPairs(1, 1).neighbours(1)


def least_loss_of_bands(promise: ApproximatePrivacy, bands: Bands) -> float:
    # Two outputs: delta bounds how fast the chance of the second may rise along the inputs
    x, delta = 1 / float(promise.alpha), float(promise.delta)
    upper, limits = [], []
    for j in range(3):
        for a, b in ((j, j + 1), (j + 1, j)):
            for sign, shift in ((1, 0), (-1, 1)):  # the second output, and the first, 1 - p
                row = np.zeros(4)
                row[a], row[b] = sign, -sign * x
                upper.append(row)
                limits.append(delta - shift + shift * x)
    wrong = np.array(distances(bands, Counts(0, 3))) > 0
    cost = np.where(wrong[1], 1.0, -1.0) / 4
    found = linprog(cost, np.array(upper), limits, bounds=(0, 1))
    assert found.fun is not None
    return float(found.fun + 2 / 4)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_without_a_delta_it_is_the_design_of_epsilon_alone(n):
    pure = Privacy(alpha="2/3")
    found = design(n, ApproximatePrivacy(alpha="2/3", delta=0), L1(), ["CM"])
    assert found.mechanism == design(n, pure, L1(), ["CM"]).mechanism
    assert found.mechanism.privacy == pure
    # and a delta that is nearly 0 changes the optimum by little
    near = design(n, ApproximatePrivacy(alpha="2/3", delta=Fraction(1, 10**9)), L1(), ["CM"])
    assert 0 <= found.certificate.objective - near.certificate.objective < Fraction(1, 10**6)


@pytest.mark.parametrize("delta", ["1/10", "1/4", "2/3"])
def test_at_epsilon_0_two_counts_are_as_far_apart_as_delta(delta):
    found = design(1, ApproximatePrivacy(alpha=1, delta=delta))
    # Of total variation t at most, the best guess of one of two is wrong (1 - t) / 2 of the time
    assert found.certificate.objective == (1 - Fraction(delta)) / 2
    audit = found.mechanism.audit()
    assert isinstance(audit, DeltaAudit)
    assert audit.delta == Fraction(delta)


def test_randomised_response_with_a_delta_is_as_good_as_theory_says():
    # Two inputs: the least error is (1 - delta) / (1 + e^epsilon), of Kairouz, Oh and Viswanath
    # (ICML 2015, theorem 3.4): with delta the truth is told, else by randomised response
    for alpha, delta in (("1/2", "1/10"), ("9/10", "1/100")):
        a, d = Fraction(alpha), Fraction(delta)
        found = design(1, ApproximatePrivacy(alpha=alpha, delta=delta))
        assert found.certificate.objective == (1 - d) * a / (1 + a)


def test_the_larger_delta_loses_less_at_hundreds_of_entries():
    losses = [
        design(24, ApproximateDP(1, delta), L2(), ["CM"]).certificate
        for delta in ("1e-6", "1e-3", "1e-1")
    ]
    assert all(each.gap == 0 for each in losses)
    assert losses[0].objective > losses[1].objective > losses[2].objective


# ------------------------------------------------------------------------------------------------
# Audits.


def some_table(rng: np.random.Generator) -> list[list[int]]:
    columns = [rng.multinomial(12, rng.dirichlet([0.5] * 4)).tolist() for _ in range(4)]
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize("seed", range(12))
def test_the_audit_is_the_largest_over_all_sets_of_outputs(seed):
    rng = np.random.default_rng(seed)
    drawn = Mechanism.from_weights(some_table(rng), 12, Privacy(alpha=1))
    for neighbours in ("adjacent", "all"):
        promise = ApproximatePrivacy(alpha="4/5", delta="1/9", neighbours=neighbours)
        mechanism = Mechanism(drawn.table, promise)
        audit = mechanism.audit()
        assert isinstance(audit, DeltaAudit)
        columns = list(zip(*mechanism.table, strict=True))
        most = max(
            sum(columns[j][i] - columns[k][i] / promise.alpha for i in chosen)
            for pair in promise.pairs(4).tolist()
            for j, k in (pair, pair[::-1])
            for chosen in sets(4)
        )
        assert audit.delta == max(0, most)
        j, k = audit.worst
        assert promise.delta_between(
            [row[j] for row in mechanism.weights],
            [row[k] for row in mechanism.weights],
            mechanism.denominator,
        ) == max(0, most)
        assert audit.ratio == Mechanism(drawn.table, promise.pure).audit().ratio
        assert audit.holds == (most <= Fraction(1, 9))
        loss = PrivacyLoss.of(mechanism)
        assert loss is not None


def test_what_is_claimed_falsely_is_not_released(tmp_path):
    table = [["1/2", "1/10"], ["1/2", "9/10"]]
    wrong = Mechanism(table, PROMISES[0])
    audit = wrong.audit()
    assert not audit.holds
    with pytest.raises(DeltaViolation, match=r"0 and 1 need a delta of 0\.3, above") as error:
        wrong.release([0])
    again = pickle.loads(pickle.dumps(error.value))
    assert (again.delta, str(again)) == (Fraction(3, 10), str(error.value))
    with pytest.raises(DeltaViolation):
        wrong.save(tmp_path / "wrong.json")
    right = Mechanism(table, ApproximatePrivacy(alpha="1/2", delta="3/10"))
    assert right.audit().holds
    assert set(right.release([0, 1, 1]).tolist()) <= {0, 1}
    # The smallest delta less: exact
    below = Fraction(3, 10) - Fraction(1, 10**30)
    assert not Mechanism(table, ApproximatePrivacy(alpha="1/2", delta=below)).audit().holds


def test_who_needs_epsilon_alone_is_refused():
    mechanism = design(2, PROMISES[0]).mechanism
    with pytest.raises(NotPure, match="a delta besides its epsilon"):
        _ = mechanism.privacy
    with pytest.raises(TypeError):
        Privacy.of(mechanism.promise)
    with pytest.raises(NotPure):
        shuffled(design(2, PROMISES[1]).mechanism, 10)
    with pytest.raises(TypeError):
        least_variance(3, PROMISES[0])
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    assert "delta=0.05" in repr(mechanism)
    assert "delta 0.05" in explain(mechanism).statement
    assert explain(mechanism).to_dict()["delta"]["exact"] == "1/20"
    pytest.importorskip("cvxpy")
    with pytest.raises(NotPure, match="not linear"):
        design(2, PROMISES[0], objective=lambda table: (table**2).sum())


def test_promises_are_checked():
    for wrong in ("-1/10", "3/2"):
        with pytest.raises(ValueError, match="delta is 0 to 1"):
            ApproximatePrivacy(alpha="1/2", delta=wrong)
    with pytest.raises(ValueError, match="list the neighbours"):
        ApproximatePrivacy(alpha="1/2", delta="1/10", neighbours=Metric([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="names input 5"):
        Mechanism([["1/2", "1/2"], ["1/2", "1/2"]], ApproximateDP(1, "1e-3").between([(0, 5)]))
    assert ApproximateDP(1, "1e-3").between() == ApproximatePrivacy.from_epsilon(1, "1e-3")
    assert PROMISES[0].at("0.3").delta == PROMISES[0].delta
    with pytest.raises(TooLarge):
        design(400, PROMISES[0])


# ------------------------------------------------------------------------------------------------
# Conflicts.


def test_a_conflict_names_the_delta_and_the_epsilon_that_would_do():
    promise = ApproximatePrivacy(alpha="9/10", delta="1/20")
    wanted = ["at-least:0,0=9/10", "at-least:3,3=9/10", "CM"]
    with pytest.raises(Incompatible, match=r"epsilon 0.105361, delta 0.05 together") as error:
        design(3, promise, properties=wanted)
    conflict = error.value
    assert conflict.conflict == ("privacy", "at-least:0,0=9/10", "at-least:3,3=9/10")
    assert conflict.proof.verify()
    possible, impossible = conflict.possible, conflict.impossible
    assert possible is not None
    assert impossible is not None
    assert possible.delta == impossible.delta == promise.delta
    assert 0 < possible.epsilon - impossible.epsilon < 2e-5
    found = design(3, possible, properties=wanted)
    assert found.certificate.gap == 0
    with pytest.raises(Incompatible):
        design(3, impossible, properties=wanted)


# ------------------------------------------------------------------------------------------------
# Files.


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    design(3, ApproximatePrivacy(alpha="1/2", delta="1/20"), L1(), ["CM"]).save(path)
    return path


def rewritten(path: Path, **changed: object) -> None:
    content = json.loads(path.read_text())
    del content["digest"]
    content |= changed
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


def test_files_keep_the_promise_and_the_proof(saved):
    content = json.loads(saved.read_text())
    assert (content["version"], content["delta"]) == (5, "1/20")
    loaded = Mechanism.load(saved)
    assert loaded.promise == ApproximatePrivacy(alpha="1/2", delta="1/20")
    assert loaded.certificate is not None
    assert loaded.certificate.gap == 0
    assert loaded == design(3, loaded.promise, L1(), ["CM"]).mechanism
    device = Device(str(saved))
    assert device.answer("2") in {"0", "1", "2", "3"}
    for suffix in (".csv", ".npz"):
        loaded.save(saved.with_suffix(suffix))
    assert float(np.load(saved.with_suffix(".npz"))["delta"]) == 0.05


@pytest.mark.parametrize("claim", [{"delta": "1/21"}, {"alpha": "501/1000"}], ids=str)
def test_files_that_claim_too_much_are_refused(saved, claim):
    rewritten(saved, **claim)
    with pytest.raises(DeltaViolation):
        Mechanism.load(saved)
    with pytest.raises(ValueError, match="told apart better than alpha and delta allow"):
        Device(str(saved))


def test_files_whose_proof_is_of_another_delta_are_refused(saved):
    rewritten(saved, delta="1/19")  # it holds, but less is lost with that
    with pytest.raises(CertificateRejected):
        Mechanism.load(saved)
    assert Mechanism.load(saved, certificate=False).promise.delta == Fraction(1, 19)


@pytest.mark.parametrize(
    "claim", [{"delta": "0"}, {"delta": "2"}, {"delta": 0.05}, {"version": 2}], ids=str
)
def test_files_that_are_malformed_are_refused(saved, claim):
    rewritten(saved, **claim)
    with pytest.raises(InvalidFile):
        Mechanism.load(saved)


def test_the_command_designs_and_audits(tmp_path, capsys):
    path = tmp_path / "m.json"
    asked = ["design", "--n", "3", "--epsilon", "1", "--delta", "1/100", "--out", str(path)]
    assert main(asked) == 0
    assert "delta        0.01 of at most 0.01" in capsys.readouterr().out
    assert main(["audit", str(path)]) == 0
    assert "delta=0.01" in capsys.readouterr().out
    assert main([*asked[:-2], "--loss", "total"]) != 0


# ------------------------------------------------------------------------------------------------
# Reductions, and what takes such mechanisms.


@pytest.mark.parametrize("neighbours", ["adjacent", "all", 2, [(0, 1), (3, 4)]])
def test_reflection_halves_the_program(neighbours):
    promise = ApproximatePrivacy(alpha="1/2", delta="1/9", neighbours=neighbours)
    program = mechanism_program(5, 5, promise, L1(worst_case=True), [])
    image = reflection(5, 5, program.variables, promise)
    assert (image[image] == np.arange(program.variables)).all()
    plain = mechanism_program(5, 5, promise, L1(), [])
    reduced = reduce_by_symmetry(plain, reflection(5, 5, plain.variables, promise))
    assert reduced is not None
    assert reduced.program.variables <= (plain.variables + 1) // 2
    # An entry and its slacks go with those of the reflected one
    at, slacks = IndexTable(5, 5), slacks_of(IndexTable(5, 5), promise)
    assert image[at[1, 0]] == at[3, 4]
    pairs = [tuple(pair) for pair in promise.pairs(5).tolist()]
    opposite = pairs.index((3, 4))
    assert image[slacks[pairs.index((0, 1)), 0, 1]] == slacks[opposite, 1, 3]


def test_neighbours_without_a_reflection_are_solved_whole():
    promise = ApproximatePrivacy(alpha="1/2", delta="1/9", neighbours=[(0, 1), (1, 2)])
    program = mechanism_program(4, 4, promise, L1(), [])
    image = reflection(4, 4, program.variables, promise)
    assert (image[image] == np.arange(program.variables)).all()
    assert reduce_by_symmetry(program, image) is None
    found = design(3, promise, L1())
    assert float(found.certificate.objective) == pytest.approx(least_loss(4, promise, L1()))


def test_canonical_designs_and_single_inputs():
    found = design(4, PROMISES[0], canonical=True)
    assert found.canonical is not None
    assert found.certificate.verify(found.mechanism)
    assert found.canonical.verify(found.mechanism)
    alone = design(0, PROMISES[0])
    assert alone.mechanism.audit().holds
    assert alone.certificate.objective == 0


def test_losses_of_several_releases_are_those_of_the_table():
    """The exact privacy loss of a table is followed, not its claim."""
    mechanism = Mechanism([["1/2", "1/10"], ["1/2", "9/10"]], PROMISES[0])
    loss = PrivacyLoss.of(mechanism)
    assert loss.infinite == 0
    assert max(ratio for ratio, _ in loss.ratios) == 5

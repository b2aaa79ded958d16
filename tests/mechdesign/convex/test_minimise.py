"""Convex designs: as good as cvxpy's own optimum, exactly private, with a small proved gap."""

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import Bands, Counts, Privacy, design
from mechdesign.losses import L1
from tests.mechdesign.convex.proofs import proof


def squared(P):
    i, j = np.indices(P.shape)
    return cp.sum(cp.multiply((i - j) ** 2, P), axis=0)


def information(P):
    k = P.shape[1]
    prior = np.full(k, 1 / k)
    return cp.sum(cp.rel_entr(P / k, cp.outer(P @ prior, prior)))


def wanted(P):
    i, j = np.indices(P.shape)
    near = 1.0 * (abs(i - j) <= 1)
    return near / near.sum(axis=0)


PROGRAMS = {
    "worst squared error": (lambda P: cp.max(squared(P)), None, []),
    "information": (information, lambda P: [cp.max(squared(P)) <= 2], []),
    "frobenius": (lambda P: cp.norm(P - wanted(P), "fro"), None, ["WH", "S"]),
    "distance": (lambda P: cp.norm1(P - wanted(P)), None, ["CM"]),
    "log-loss": (lambda P: -cp.sum(cp.log(cp.diag(P))), None, []),
    "norms": (
        lambda P: cp.sum(cp.norm(P[:, 1:] - P[:, :-1], 2, axis=0)),
        lambda P: [cp.trace(P) >= 2],
        [],
    ),
    "fixed entries": (
        lambda P: cp.sum_squares(P - wanted(P)),
        lambda P: [P[0, 0] == 0.5, P[2, :] == 0],
        [],
    ),
}


def plain(objective, constraints, alpha, n):
    """The slow twin: cvxpy's own optimum, of the program written plainly."""
    P = cp.Variable((n + 1, n + 1))
    limits = [P >= 0, cp.sum(P, axis=0) == 1]
    limits += [P[:, :-1] >= alpha * P[:, 1:], P[:, 1:] >= alpha * P[:, :-1]]
    problem = cp.Problem(cp.Minimize(objective(P)), [*limits, *(constraints or (lambda _: []))(P)])
    problem.solve(solver="CLARABEL")
    return problem.value


@pytest.mark.parametrize("name", PROGRAMS)
def test_designs_are_exactly_private_and_have_a_small_gap(name):
    objective, constraints, properties = PROGRAMS[name]
    d = design(
        4, Privacy(alpha="1/2"), objective=objective, constraints=constraints, properties=properties
    )
    assert d.mechanism.audit().holds
    assert proof(d).relative_gap <= 1e-6
    assert proof(d).verify(d.mechanism)
    assert d.certificate.verify(d.mechanism)
    P = cp.Variable((5, 5))
    P.value = d.mechanism.matrix
    assert objective(P).value == pytest.approx(float(proof(d).objective), abs=1e-9)
    assert float(proof(d).bound) <= objective(P).value + 1e-12


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - {"frobenius", "distance", "norms"}))
def test_the_optimum_is_that_of_the_program_written_plainly(name):
    objective, constraints, _ = PROGRAMS[name]
    d = design(4, Privacy(alpha="1/2"), objective=objective, constraints=constraints)
    expected = plain(objective, constraints, 0.5, 4)
    assert float(proof(d).objective) == pytest.approx(expected, rel=1e-5)


def test_a_loss_may_have_convex_constraints():
    def near(P):
        return [cp.norm(P - wanted(P), "fro") <= 0.9]

    for loss in (L1(), L1(worst_case=True)):
        d = design(4, Privacy(alpha="1/2"), loss, constraints=near)
        free = design(4, Privacy(alpha="1/2"), loss)
        assert proof(d).relative_gap <= 1e-6
        assert d.mechanism.loss(loss) <= proof(d).objective
        assert proof(d).objective > free.certificate.objective
        assert np.linalg.norm(d.mechanism.matrix - wanted(d.mechanism.matrix)) <= 0.9


@pytest.mark.parametrize("alpha", ["1/100000", "9999/10000", "1"])
@pytest.mark.parametrize("n", [1, 2])
def test_extreme_privacy(n, alpha):
    d = design(n, Privacy(alpha=alpha), objective=lambda P: cp.norm(P - np.eye(n + 1) / 2, "fro"))
    assert d.mechanism.audit().holds
    assert proof(d).relative_gap <= 1e-6


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_scale_of_an_objective_does_not_matter(scale):
    d = design(
        3, Privacy(alpha="1/2"), objective=lambda P: scale * cp.sum(cp.kl_div(wanted(P) + 0.1, P))
    )
    assert proof(d).relative_gap <= 1e-6


def test_canonical_designs_are_those_of_linear_programs():
    affine = design(3, Privacy(alpha="1/2"), objective=lambda P: -cp.trace(P), canonical=True)
    assert affine.canonical is not None
    assert proof(affine).verify(affine.mechanism)
    with pytest.raises(ValueError, match="canonical"):
        design(3, Privacy(alpha="1/2"), objective=lambda P: cp.norm(P, "fro"), canonical=True)


def test_one_input_has_nothing_to_hide():
    d = design(0, Privacy(alpha="1/2"), objective=lambda P: cp.exp(P[0, 0]), properties=["WH"])
    assert d.mechanism.table == ((1,),)
    assert proof(d).relative_gap <= 1e-6


def test_outputs_may_be_bands_and_wide_and_neighbours_all():
    bands = design(
        Counts(0, 5),
        Privacy(alpha="1/2", neighbours="all"),
        outputs=Bands([(0, 2), (3, 5)]),
        objective=lambda P: information(P) - cp.sum(P[0, :3]) - cp.sum(P[1, 3:]),
    )
    assert proof(bands).relative_gap <= 1e-6
    assert bands.mechanism.outputs == 2
    values = np.arange(-4, 8)
    wide = design(
        Counts(0, 3),
        Privacy(alpha="1/2"),
        outputs=Counts(-4, 7),
        properties=["unbiased"],
        objective=lambda P: cp.norm(values**2 @ P - np.arange(4) ** 2),
    )
    assert proof(wide).relative_gap <= 1e-6
    assert (values @ wide.mechanism.matrix).round(9).tolist() == [0, 1, 2, 3]


def test_the_saved_mechanism_keeps_the_linear_certificate(tmp_path):
    d = design(3, Privacy(alpha="1/2"), objective=lambda P: cp.norm(P - np.eye(4), "fro"))
    d.save(tmp_path / "m.json")
    loaded = type(d.mechanism).load(tmp_path / "m.json")
    assert loaded == d.mechanism
    assert loaded.certificate is not None
    assert loaded.certificate.verify(loaded)
    assert proof(d).verify(loaded)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    target = rng.dirichlet(np.ones(n + 1), n + 1).T
    root = rng.integers(-3, 4, (n + 1, n + 1))
    parts = [
        lambda P: cp.norm1(P - target),
        lambda P: cp.norm(P - target, "fro"),
        lambda P: cp.sum(cp.norm(P - target, 2, axis=int(rng.integers(2)))),
        lambda P: cp.sum(cp.exp(2 * squared(P) / n**2)),
        lambda P: cp.quad_form(P[:, 0], (root @ root.T).astype(float)),
        lambda P: information(P),
        lambda P: cp.log_sum_exp(3 * cp.vec(P, order="C")),
        lambda P: -cp.geo_mean(cp.diag(P)),
        lambda P: cp.sum_largest(squared(P), 2) / n,
        lambda P: cp.sum(cp.kl_div(target, P)),
    ]
    chosen = [(parts[k], float(rng.integers(1, 9)) / 4) for k in rng.choice(len(parts), 3, False)]
    alpha = Privacy(alpha=f"{rng.integers(1, 10)}/10")
    d = design(n, alpha, objective=lambda P: sum(weight * part(P) for part, weight in chosen))
    assert d.mechanism.audit().holds
    assert proof(d).relative_gap <= 1e-6
    assert proof(d).verify(d.mechanism)

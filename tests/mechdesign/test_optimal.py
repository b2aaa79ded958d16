"""Designs: what is refused, and the optimum against another solver's."""

from __future__ import annotations

import pickle
import sys
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import (
    Constraints,
    Infeasible,
    Mechanism,
    MechanismError,
    Privacy,
    Property,
    TooLarge,
    design,
    losses,
    named,
)
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial
from tests.mechdesign.programs import HALF, NINE

ADJACENT, ALL = Privacy(alpha="9/10"), Privacy(alpha="9/10", neighbours="all")


@pytest.mark.parametrize(
    ("n", "privacy"),
    [(3000, ADJACENT), (100_000, ADJACENT), (100_000, ALL), (700, ALL), (1 << 62, ADJACENT)],
)
def test_what_is_too_large_is_refused_before_any_work(n: int, privacy: Privacy) -> None:
    with pytest.raises(TooLarge, match=r"would take about .* GiB; nothing was done") as error:
        design(n, privacy, L1())
    assert isinstance(error.value, MechanismError)
    assert error.value.seconds > 86400 or error.value.bytes > 1 << 34
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("n", [(1 << 62) + 1, 10**400])
def test_no_count_is_larger_than_64_bits_hold(n: int) -> None:
    """Not even where a closed form is the optimum of any n."""
    for make in (design, named.geometric, named.explicit_fair):
        with pytest.raises(ValueError, match=r"0 to 2\^62"):
            make(n, ADJACENT)


def test_the_estimate_is_that_of_the_neighbours() -> None:
    with pytest.raises(TooLarge, match=r"24 hours and 54\.1 GiB"):
        design(900, ALL)
    with pytest.raises(TooLarge, match=r"8 hours and 34\.8 GiB"):
        design(3000, ADJACENT, L1())


def test_what_is_asked_for_all_the_same_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mechdesign.optimisation.optimal"], "_SECONDS", 0)
    with pytest.raises(TooLarge):
        design(2, ADJACENT)
    assert design(2, ADJACENT, however_large=True).certificate.gap == 0


# The same program, written plainly from the definitions, for another solver.


def plain_optimum(n, alpha, reach, cost, wanted, worst_case=False, weights=None):
    size, alpha = n + 1, float(alpha)
    p = cp.Variable((size, size), nonneg=True)
    rules = [cp.sum(p, axis=0) == 1]
    for j in range(size):
        for k in range(size):
            if j != k and abs(j - k) <= reach:
                rules.append(p[:, j] >= alpha * p[:, k])
    for name in wanted:
        for i in range(size):
            for j in range(size):
                if name == "RH":
                    rules.append(p[i, i] >= p[i, j])
                if name == "CH":
                    rules.append(p[j, j] >= p[i, j])
                if name == "RM" and j != i:
                    rules.append(p[i, j + (1 if j < i else -1)] >= p[i, j])
                if name == "CM" and j != i:
                    rules.append(p[i + (1 if i < j else -1), j] >= p[i, j])
                if name == "S":
                    rules.append(p[i, j] == p[n - i, n - j])
            if name == "F":
                rules.append(p[i, i] == p[0, 0])
            if name == "WH":
                rules.append(p[i, i] >= 1 / size)
    costs = np.array([[cost(i, j) for j in range(size)] for i in range(size)])
    expected = cp.sum(cp.multiply(costs, p), axis=0)
    if worst_case:
        objective = cp.max(expected if weights is None else cp.multiply(weights, expected))
    else:
        objective = expected @ (np.full(size, 1 / size) if weights is None else weights)
    problem = cp.Problem(cp.Minimize(objective), rules)
    problem.solve(solver=cp.HIGHS)
    return problem.value


CASES = [
    (1, "9/10", "adjacent", 1, 0, 0, False, ""),
    (2, "9/10", "adjacent", 1, 0, 0, False, "WH"),
    (4, "9/10", "adjacent", 1, 0, 0, False, "WH CM"),
    (6, "9/10", "adjacent", 1, 0, 0, False, "CH"),
    (6, "2/3", "adjacent", 1, 1, 0, False, "WH RM CM S"),
    (5, "9/10", "adjacent", 1, 2, 1, False, "RH CH"),
    (6, "9/10", "adjacent", 1, 1, 0, True, ""),
    (5, "4/5", "adjacent", 1, 2, 0, True, "F"),
    (4, "9/10", "adjacent", 1, 0, 2, True, "S RM"),
    (4, "9/10", "all", 9, 0, 0, False, ""),
    (4, "1/3", "all", 9, 1, 0, False, "WH"),
    (5, "9/10", "all", 9, 1, 0, True, "RM CM"),
    (5, "9/10", 2, 2, 0, 0, False, "WH"),
    (6, "3/4", 2, 2, 1, 0, False, "RM F"),
    (4, "9/10", 2, 2, 2, 0, True, ""),
    (4, 1, "adjacent", 1, 0, 0, False, ""),
    (4, 1, "adjacent", 1, 1, 0, False, ""),
    (4, 1, "all", 9, 2, 0, True, "WH"),
    (5, 1, "adjacent", 1, 2, 0, False, "RH RM CH CM F WH S"),
    (5, "99/100", "adjacent", 1, 0, 1, False, "RH RM CH CM F WH S"),
]


@pytest.mark.parametrize("weights", [[1, 2, 3, 4, 5], [1, 1, 4, 1, 1], [0, 1, 0, 2, 0]])
@pytest.mark.parametrize("wanted", ["", "WH CM", "S"])
@pytest.mark.parametrize("p", [0, 1])
def test_weighted_maxima_agree_with_cvxpy(p, wanted, weights) -> None:
    """Definition 21 as printed: the weights are under the maximum."""
    given = losses.prior(weights)
    loss = Power(p, prior=given, worst_case=True)
    found = design(4, Privacy(alpha="9/10"), loss, wanted.split())

    def cost(i, j):
        return abs(i - j) ** p if i != j else 0

    floats = np.array([float(weight) for weight in given])
    expected = plain_optimum(4, 0.9, 1, cost, wanted.split(), True, floats)
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7)
    assert found.certificate.gap == 0
    assert found.mechanism.loss(loss) == found.certificate.objective
    in_full = design(4, Privacy(alpha="9/10"), Power(p, worst_case=True), wanted.split())
    uniform = Power(p, prior=losses.prior([1] * 5), worst_case=True)
    even = design(4, Privacy(alpha="9/10"), uniform, wanted.split())
    assert 5 * even.certificate.objective == in_full.certificate.objective


@pytest.mark.parametrize(
    ("n", "alpha", "neighbours", "reach", "p", "d", "worst_case", "wanted"), CASES
)
def test_objective_agrees_with_cvxpy(n, alpha, neighbours, reach, p, d, worst_case, wanted):
    found = design(
        n,
        Privacy(alpha=alpha, neighbours=neighbours),
        Power(p, d, worst_case=worst_case),
        wanted.split(),
    )

    def cost(i, j):
        return abs(i - j) ** p if abs(i - j) > d else 0

    expected = plain_optimum(n, Fraction(alpha), reach, cost, wanted.split(), worst_case)
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)


@pytest.mark.parametrize("wanted", [[], ["WH", "CM"], ["S"]], ids=" ".join)
def test_priors_and_costs_agree_with_cvxpy(wanted):
    weights = binomial(4, "1/3")
    found = design(4, NINE, L1(prior=weights), wanted)
    expected = plain_optimum(
        4, 0.9, 1, lambda i, j: abs(i - j), wanted, weights=np.array([float(w) for w in weights])
    )
    assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7)
    # Underestimates cost three times as much.
    table = [[3 * max(j - i, 0) + max(i - j, 0) for j in range(5)] for i in range(5)]
    found = design(4, NINE, Costs(table), wanted)
    assert float(found.certificate.objective) == pytest.approx(
        plain_optimum(4, 0.9, 1, lambda i, j: table[i][j], wanted), abs=1e-7
    )


@pytest.mark.parametrize("n", [0, 1])
def test_the_smallest(n):
    for alpha in ("1/2", 1):
        for loss in (L0(), L2(), L1(worst_case=True)):
            found = design(n, Privacy(alpha=alpha, neighbours="all"), loss, ["WH", "F", "S"])
            assert found.certificate.optimal
            assert found.mechanism == Mechanism(
                named.krr(n + 1, alpha=alpha).table, Privacy(alpha=alpha, neighbours="all")
            )


def test_barely_feasible_and_barely_not():
    """The truth can be at least 1/(1+alpha) for one person, and not a bit more."""
    best = 1 / (1 + Fraction(9, 10))

    def wanted(share):
        class Share(Property):
            short = "SHARE"

            def constraints(self, at, privacy):
                yield Constraints.at_least_value(np.diagonal(at), share)

        return Share()

    found = design(1, NINE, L0(), [wanted(best)])
    assert found.mechanism.table[0][0] == best
    with pytest.raises(Infeasible):
        design(1, NINE, L0(), [wanted(best + Fraction(1, 1000))])


@pytest.mark.parametrize("n", [-1, 1.5, True, "3", None], ids=repr)
def test_bad_sizes(n):
    with pytest.raises(ValueError, match="n must be a whole number"):
        design(n, HALF)


@pytest.mark.parametrize("epsilon", ["9/10", Fraction(9, 10), 0.9], ids=repr)
def test_a_bare_number_is_an_epsilon(epsilon):
    assert design(2, epsilon).mechanism == design(2, Privacy.from_epsilon(epsilon)).mechanism


@pytest.mark.parametrize("privacy", [None, "a", [1], -1])
def test_bad_privacy(privacy):
    with pytest.raises((TypeError, ValueError), match="epsilon"):
        design(2, privacy)

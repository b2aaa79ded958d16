"""The named mechanisms are the definitions of the thesis, for numbers and for alpha as a symbol."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

import pytest

from mechdesign import Privacy, named, symbolic
from mechdesign.losses import L0
from mechdesign.lp.exact_solution import certify
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.named import explicit_fair_weights, geometric_weights, krr_weights
from mechdesign.optimisation.diagonal_program import DiagonalProgram
from tests.mechdesign.programs import full

ALPHAS = [Q(1, 10**9), Q(1, 3), Q(9, 10), 1 - Q(1, 10**9), Q(1)]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_closed_forms_in_alpha_are_those_of_numbers(n: int, alpha: Q) -> None:
    assert symbolic.geometric(n).at(alpha).table == named.geometric(n, alpha=alpha).table
    assert symbolic.explicit_fair(n).at(alpha).table == named.explicit_fair(n, alpha=alpha).table
    assert symbolic.uniform(n).at(alpha).table == named.uniform(n).table
    assert symbolic.krr(n + 1).at(alpha).table == named.krr(n + 1, alpha=alpha).table


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ALPHAS[:-1])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_geometric_mechanism_is_clamped_two_sided_noise(n: int, alpha: Q) -> None:
    table = named.geometric(n, alpha=alpha).table
    far = 400  # of the noise beyond, alpha^400 / (1 + alpha) is left
    for i, j in product(range(n + 1), repeat=2):
        noise = {d: (1 - alpha) * alpha ** abs(d) / (1 + alpha) for d in range(-far, far + 1)}
        clamped = sum(p for d, p in noise.items() if min(max(j + d, 0), n) == i)
        assert 0 <= table[i][j] - clamped <= 2 * alpha**far


@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_and_denominators_make_columns_of_one(alpha: Q) -> None:
    for weights, denominator in (
        geometric_weights(4, alpha),
        explicit_fair_weights(5, alpha),
        krr_weights(3, alpha),
    ):
        for column in zip(*weights, strict=True):
            assert sum(column) == denominator


def test_recommendations_have_what_was_asked_for() -> None:
    for n, alpha, wanted in product((1, 3, 6), ("1/3", "9/10"), ((), ("WH",), ("CM",), ("F",))):
        found = named.recommend(n, alpha=alpha, properties=wanted)
        held = found.mechanism.properties()
        assert all(held[short] for short in wanted)
        assert found.mechanism.audit().holds
        assert found.mechanism.privacy == Privacy(alpha=alpha)
        assert found.errors == StandardErrors.of(found.mechanism)
        assert str(found) == f"{found.name}: {found.reason}; {found.errors}"


def least_l0(n: int, alpha: Q, wanted: tuple[str, ...]) -> Q:
    """The optimum, by the program of the diagonal, which another test compares to the table's."""
    program = DiagonalProgram.of(
        full(n, Privacy(alpha=alpha), L0(), wanted), n + 1, Privacy(alpha=alpha)
    )
    assert program is not None
    solution = certify(program.program)
    assert program.table(solution.x) is not None
    return sum((c * x for c, x in zip(program.program.cost, solution.x, strict=True)), Q(0))


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6, 7, 12, 13])
def test_bounds_of_the_weakly_honest_mechanism_are_attained(n: int) -> None:
    """From n/(n+2) on with WH, and from m/(m+1) on with CM: exactly there, and beyond."""
    m = n // 2
    for wanted, threshold in ((("WH", "RM"), Q(n, n + 2)), (("RM", "CM"), Q(m, m + 1))):
        for alpha in (threshold, (1 + threshold) / 2, Q(999, 1000)):
            found = named.closed_form(n, alpha=alpha, properties=wanted)
            assert found.bound == least_l0(n, alpha, wanted)
        below = threshold - Q(1, 100)
        if 2 * below > 1:
            found = named.closed_form(n, alpha=below, properties=wanted)
            best = least_l0(n, below, wanted)
            assert found.bound < best <= found.loss if "CM" in wanted else found.bound == best


@pytest.mark.parametrize("n", [0, 1, 2, 3, 8, 9])
def test_the_loss_in_closed_form_is_that_of_the_mechanism(n: int) -> None:
    makers = {"GM": named.geometric, "EM": named.explicit_fair}
    for alpha, wanted in product(ALPHAS, ((), ("S",), ("WH",), ("CH",), ("CM", "S"), ("F",))):
        found = named.closed_form(n, alpha=alpha, properties=wanted)
        made = named.uniform(n) if alpha == 1 else makers[found.name](n, alpha=alpha)
        assert made.loss(L0()) == found.loss
        assert all(made.properties()[short] for short in wanted)
        assert 0 <= found.excess <= 2 * alpha / ((1 + alpha) * (n + 1))


def test_any_number_of_respondents_has_a_closed_form() -> None:
    found = named.closed_form(10_000, alpha="9/10", properties=["CM"])
    assert (found.name, found.excess < Q(1, 10_000)) == ("EM", True)
    assert named.closed_form(10_000, alpha="9/10", properties=["WH"]).excess == 0
    with pytest.raises(ValueError, match="not OR; use design"):
        named.closed_form(5, alpha="9/10", properties=["OR"])
    with pytest.raises(ValueError, match="n must be"):
        named.closed_form(-1, alpha="9/10")

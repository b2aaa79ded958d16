"""Programs solved in chains have the optimum of the whole program, and prove it."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Constraints, Privacy, design
from mechdesign.losses import L0, L1, L2, Power
from mechdesign.lp import chains
from mechdesign.lp.basis import reduce_by_symmetry, unreduced
from mechdesign.lp.chains import solve_by_chains
from mechdesign.lp.exact_solution import certify
from mechdesign.optimisation.formulation import compact
from tests.mechdesign.lp.test_exact_solution import check_solution
from tests.mechdesign.programs import full


def in_chains(n, alpha, loss, wanted, symmetric=True):
    """A program, and the places of its variables."""
    privacy = Privacy(alpha=alpha)
    shorter = compact(full(n, privacy, loss, wanted), n + 1, n + 1, privacy, "RM" in wanted)
    reduced = symmetric and reduce_by_symmetry(shorter.program, shorter.symmetry)
    reduced = reduced or unreduced(shorter.program)
    assert shorter.places is not None
    return reduced.program, shorter.places.renumbered(reduced.orbit)


SETS = [(), ("WH",), ("CH",), ("WH", "CM"), ("RM",), ("WH", "CM", "RM"), ("F", "S"), ("RH", "CM")]
LOSSES = [L0(), L1(), L2(), Power("1/2"), L0(2), L2(worst_case=True)]


@pytest.mark.parametrize("alpha", ["1/100", "1/3", "3/5", "9/10", "99/100"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n", [2, 3, 8, 17, 24])
def test_the_optimum_is_that_of_the_whole_program(n, loss, alpha):
    found = []
    for wanted in SETS:
        program, places = in_chains(n, alpha, loss, wanted)
        solution = solve_by_chains(program, places, Fraction(alpha))
        found.append(solution is not None)
        if solution is not None:
            best, _ = check_solution(program, certify(program))
            assert check_solution(program, solution) == (best, best)
    # Floats may be misled; the whole program is solved then.
    assert sum(found) >= len(SETS) - 2


@pytest.mark.parametrize("wanted", SETS, ids="+".join)
def test_what_floats_overlook_is_cut_exactly(monkeypatch, wanted):
    """Chains that gain by a cut, and no cut of which floats see."""
    monkeypatch.setattr(
        chains._Search, "_cuts", lambda self, now: np.zeros(len(self.pairs.u), bool)
    )
    for n, alpha in ((9, "3/5"), (16, "9/10")):
        program, places = in_chains(n, alpha, L2(), wanted)
        solution = solve_by_chains(program, places, Fraction(alpha))
        best, _ = check_solution(program, certify(program))
        assert check_solution(program, solution) == (best, best)


def test_without_a_solution_there_is_none():
    """Of every guess, and where floats cannot solve the program in chains."""
    program, places = in_chains(9, "9/10", L0(), ("WH", "CM"))
    impossible = replace(
        program,
        constraints=(
            *program.constraints,
            Constraints.at_least_value(np.arange(program.variables), Fraction(1, 2)),
        ),
    )
    assert solve_by_chains(impossible, places, Fraction("9/10")) is None


@pytest.mark.parametrize(
    "alpha", [Fraction(1, 10**30), Fraction(1, 2**1200), 1 - Fraction(1, 10**9)]
)
def test_powers_that_floats_do_not_hold(alpha):
    program, places = in_chains(20, alpha, L2(), ("WH",))
    solution = solve_by_chains(program, places, alpha)
    if solution is not None:
        best, proof = check_solution(program, solution)
        assert best == proof


@pytest.mark.parametrize("wanted", [("WH",), ("WH", "CM", "RM")], ids="+".join)
def test_designs_of_large_groups_are_proved(wanted):
    found = design(70, Privacy(alpha="3/5"), L2(), wanted)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)

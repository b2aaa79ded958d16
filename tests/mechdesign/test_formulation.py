"""The program of a mechanism as data: its constraints, names, costs and reflection."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Privacy
from mechdesign.losses import L0, L1, prior
from mechdesign.optimisation.formulation import (
    PRIVACY,
    mechanism_program,
    privacy_constraints,
    reflection,
)
from mechdesign.properties import resolve
from tests.mechdesign.programs import NINE, full
from tests.mechdesign.relations import capped


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_reflection(n):
    size = n + 1
    for variables in (size * size, size * size + 1):
        symmetry = reflection(size, size, variables)
        assert symmetry[symmetry].tolist() == list(range(variables))
        for i, j in itertools.product(range(size), repeat=2):
            assert symmetry[i * size + j] == (n - i) * size + (n - j)
        assert symmetry[size * size :].tolist() == list(range(size * size, variables))


@pytest.mark.parametrize("neighbours", ["adjacent", "all", 2, [(0, 2), (1, 3)]], ids=repr)
def test_privacy_constraints_are_the_definition(neighbours):
    at = np.arange(12).reshape(3, 4)
    privacy = Privacy(alpha="9/10", neighbours=neighbours)
    expected = {
        (at[i, a], at[i, b])
        for i in range(3)
        for j, k in privacy.pairs(4).tolist()
        for a, b in ((j, k), (k, j))
    }
    found = [tuple(cells) for cells in privacy_constraints(at, privacy).cells.tolist()]
    assert len(found) == len(set(found))
    assert set(found) == expected
    rows = privacy_constraints(at, privacy)
    assert rows.coefficients == (1, Fraction(-9, 10))
    assert (rows.bound, rows.equality) == (0, False)
    perfect = privacy_constraints(at, Privacy(alpha=1, neighbours=neighbours))
    assert perfect.equality
    assert {frozenset(cells) for cells in perfect.cells.tolist()} == {
        frozenset(cells) for cells in expected
    }


@pytest.mark.parametrize("neighbours", ["adjacent", "all", 2, [(0, 2), (1, 3)]], ids=repr)
def test_privacy_constraints_left_out_under_row_monotonicity_follow_from_it(neighbours):
    """The one left out says nearer >= alpha farther; nearer >= farther is a constraint of RM."""
    at = np.arange(16).reshape(4, 4)
    privacy = Privacy(alpha="9/10", neighbours=neighbours)
    every = {tuple(cells) for cells in privacy_constraints(at, privacy).cells.tolist()}
    kept = {
        tuple(cells) for cells in privacy_constraints(at, privacy, row_monotone=True).cells.tolist()
    }
    assert kept < every
    for larger, smaller in every - kept:
        i, (j, k) = larger // 4, (larger % 4, smaller % 4)
        assert smaller // 4 == i
        assert i <= j < k or k < j <= i


def test_rows_are_named_once():
    for wanted in ([], ["WH"], ["RM", "CM", "F", "S", "OR"]):
        for loss in (L0(), L0(worst_case=True)):
            names = [group.name for group in full(4, NINE, loss, wanted).constraints]
            assert len(set(names)) == len(names)
            assert all(names)


def test_costs_of_a_program():
    loss = L1(prior=prior([1, 2, 3]))
    program = full(2, NINE, loss)
    for i, j in itertools.product(range(3), repeat=2):
        assert program.cost[3 * i + j] == abs(i - j) * Fraction(j + 1, 6)
    worst = full(2, NINE, L1(worst_case=True))
    assert worst.variables == 10
    assert worst.cost == (0,) * 9 + (1,)


def test_privacy_is_told_by_its_kind_and_not_by_its_name():
    program = mechanism_program(4, 4, Privacy(alpha="1/2"), L0(), [resolve("WH")])
    assert [(group.name, group.kind) for group in program.constraints] == [
        ("column sums", ""),
        ("privacy", PRIVACY),
        ("WH", ""),
    ]
    assert program.constraints[1].named("other").kind == PRIVACY
    assert privacy_constraints(np.arange(9).reshape(3, 3), Privacy(alpha=1)).kind == PRIVACY


def test_privacy_constraints_by_distance():
    privacy = Privacy(alpha="1/2", neighbours=capped(3, 2))
    program = full(3, privacy)
    groups = {group.name: group for group in program.constraints}
    assert set(groups) == {"column sums", "privacy 0", "privacy 1"}
    assert groups["privacy 0"].coefficients == (1, Fraction(-1, 2))
    assert groups["privacy 1"].coefficients == (1, Fraction(-1, 4))
    for name, d in (("privacy 0", 1), ("privacy 1", 2)):
        expected = {
            (4 * i + j, 4 * i + k)
            for i in range(4)
            for j in range(4)
            for k in range(4)
            if j != k and min(abs(j - k), 2) == d
        }
        assert {tuple(cells) for cells in groups[name].cells.tolist()} == expected
        rows = privacy_constraints(np.arange(16).reshape(4, 4), privacy, distance=d)
        assert rows.cells.tolist() == groups[name].cells.tolist()

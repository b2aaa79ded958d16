"""The program of the diagonal: its optimum is that of the whole table; where it is used."""

import random
import sys
from fractions import Fraction

import pytest

from mechdesign import Mechanism, Privacy, Property, design
from mechdesign.losses import L0, L1, Costs, prior
from mechdesign.lp.basis import reduce_by_symmetry, unreduced
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.optimisation.certificate import dual_bound
from mechdesign.optimisation.diagonal_program import DiagonalProgram
from mechdesign.properties import resolve
from tests.mechdesign.programs import NINE, SUBSETS, full

ALPHAS = ("1/10", "1/2", "62/100", "2/3", "76/100", "9/10", "10/11", "99/100")
FREE = [(), ("WH",), ("RM",), ("F",), ("WH", "RM"), ("F", "RM")]
"""Sets of properties without which every solution fills a table."""


def solved(n, privacy, loss, wanted):
    """The table or None, the bound proved by the program of the diagonal, and its loss."""
    program = full(n, privacy, loss, wanted)
    shorter = DiagonalProgram.of(program, n + 1, privacy)
    assert shorter is not None
    reduced = reduce_by_symmetry(shorter.program, shorter.symmetry)
    reduced = reduced or unreduced(shorter.program)
    solution = certify(reduced.program)
    x = [solution.x[v] for v in reduced.orbit.tolist()]
    bound = dual_bound(program, shorter.restored(reduced.expand(solution.multipliers)))
    assert bound == sum(c * v for c, v in zip(shorter.program.cost, x, strict=True))
    return shorter.table(x), bound


def check(n, alpha, wanted, loss):
    privacy = Privacy(alpha=alpha)
    table, bound = solved(n, privacy, loss, wanted)
    found = Mechanism(table, privacy)
    assert found.audit().holds
    assert all(resolve(name).holds(found) for name in wanted)
    assert found.loss(loss) == bound
    return bound


def test_sets_of_properties_have_the_optimum_of_the_whole_table():
    rng = random.Random(7)
    for wanted in SUBSETS[::3]:
        n, alpha = rng.choice([1, 2, 3, 4, 5, 6]), rng.choice(ALPHAS)
        found = check(n, alpha, wanted, L0())
        assert found == design(n, Privacy(alpha=alpha), L0(), wanted).certificate.objective


@pytest.mark.slow
@pytest.mark.parametrize(("n", "step"), [(2, 1), (7, 3), (20, 16)])
def test_every_set_at_every_alpha(n, step):
    for wanted in SUBSETS[::step]:
        for alpha in ALPHAS:
            check(n, alpha, wanted, L0())


@pytest.mark.parametrize("wanted", FREE, ids=" ".join)
def test_any_prior_without_column_honesty(wanted):
    rng = random.Random(8)
    for n in (1, 2, 5, 6):
        loss = L0(prior=prior([rng.randint(1, 9) for _ in range(n + 1)]))
        for alpha in ("1/2", "9/10"):
            found = check(n, alpha, wanted, loss)
            assert found == design(n, Privacy(alpha=alpha), loss, wanted).certificate.objective


def test_costs_of_too_much_and_of_too_little():
    costs = Costs([[2 * (j > i) + 3 * (i > j) for j in range(6)] for i in range(6)])
    for wanted in FREE:
        found = check(5, "9/10", wanted, costs)
        assert found == design(5, NINE, costs, wanted).certificate.objective


class EqualEndsHere(Property):
    short = "ENDS-HERE"

    def constraints(self, at, privacy):
        yield Constraints.equal(at[0, 0], at[-1, -1])


@pytest.mark.parametrize(
    ("n", "privacy", "loss", "wanted"),
    [
        (0, NINE, L0(), ()),
        (4, NINE, L1(), ()),
        (4, NINE, L0(1), ()),
        (4, NINE, L0(worst_case=True), ()),
        (4, Privacy(alpha=1), L0(), ()),
        (4, Privacy(alpha="9/10", neighbours="all"), L0(), ()),
        (4, Privacy(alpha="9/10", neighbours=2), L0(), ()),
        (4, NINE, L0(), (EqualEndsHere(),)),
        (4, NINE, L0(), ("OR",)),
        (4, NINE, L0(prior=prior([1, 2, 3, 4, 5])), ("S",)),
    ],
)
def test_where_it_does_not_apply(n, privacy, loss, wanted):
    assert DiagonalProgram.of(full(n, privacy, loss, wanted), n + 1, privacy) is None


def test_a_table_that_cannot_be_filled_in(monkeypatch):
    """Then the program of the whole table is solved, whose optimum is larger than the bound."""
    loss = L0(prior=prior([1, 6, 3, 2, 5, 1]))
    wanted = ("RM", "CM")
    table, bound = solved(5, NINE, loss, wanted)
    assert table is None
    monkeypatch.setattr(sys.modules["mechdesign.optimisation.optimal"], "SMALL", 0)
    found = design(5, NINE, loss, wanted)
    assert found.certificate.gap == 0
    assert found.certificate.objective >= bound


def test_sums_that_no_table_has_are_refused():
    program = DiagonalProgram.of(full(2, NINE, L0()), 3, NINE)
    third, zero = Fraction(1, 3), Fraction(0)
    even = [third] * 3 + [2 * third, third, zero] + [zero, third, 2 * third]
    assert program is not None
    assert Mechanism(program.table(even), NINE).audit().holds
    too_little = [third] * 3 + [Fraction(1, 10), third, zero] + [zero, third, 2 * third]
    assert program.table(too_little) is None
    too_much = [third] * 3 + [Fraction(9, 10), third, zero] + [zero, third, 2 * third]
    assert program.table(too_much) is None


@pytest.mark.slow
def test_designs_of_many_counts_use_it():
    found = design(65, NINE, L0(), ["WH", "RM", "CM", "S"])
    assert found.certificate.gap == 0
    small = design(40, NINE, L0(), ["WH", "RM", "CM", "S"])
    assert small.certificate.objective < found.certificate.objective
    names = {name.split()[0] for name in found.certificate.multipliers}
    assert names <= {"column", "privacy", "RM", "CM"}


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [["WH", "RM", "S"], ["CH"]], ids=" ".join)
def test_160_respondents(wanted):
    assert design(160, Privacy(alpha="99/100"), L0(), wanted).certificate.gap == 0

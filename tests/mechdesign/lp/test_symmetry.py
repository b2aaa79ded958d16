"""Reduction by symmetry: when it is allowed, and that it loses nothing and proves the same."""

import math
import random
from fractions import Fraction

import pytest

from mechdesign import Constraints, Privacy, Property, named
from mechdesign.losses import L0, L1, L2, Costs, Power, prior
from mechdesign.lp.basis import Program, reduce_by_symmetry, unreduced
from mechdesign.lp.exact_solution import certify
from mechdesign.optimisation.certificate import dual_bound
from mechdesign.optimisation.formulation import mechanism_program, reflection
from mechdesign.properties import OutputRatio
from tests.mechdesign.programs import NINE, SUBSETS, full


class Sided(Property):
    """At least a third for one of the two extreme counts."""

    short = "SIDED"

    def __init__(self, end=0):
        self.end = end

    def constraints(self, at, privacy):
        yield Constraints.at_least_value(at[self.end, self.end], Fraction(1, 3))


def try_to_reduce(program, n):
    return reduce_by_symmetry(program, reflection(n + 1, n + 1, program.variables))


def cost_of(program, x):
    return sum(c * v for c, v in zip(program.cost, x, strict=True))


def feasible(program, x):
    common = math.lcm(*(value.denominator for value in x))
    whole = [int(value * common) for value in x]
    return min(x) >= 0 and not any(
        True for group in program.constraints for _ in group.violations(whole, common)
    )


def prove(program, reduced):
    """Solve the reduced program; carry the point and the multipliers back; both must do for the
    original one.
    """
    solution = certify(reduced.program)
    x = [solution.x[v] for v in reduced.orbit.tolist()]
    assert feasible(program, x)
    groups = reduced.expand(solution.multipliers)
    names = [group.name for group in program.constraints]
    assert len(set(names)) == len(names)
    bound = dual_bound(program, dict(zip(names, groups, strict=True)))
    assert cost_of(reduced.program, solution.x) == cost_of(program, x)
    assert bound <= cost_of(program, x)
    return cost_of(program, x), bound


LOSSES = [L0(), L1(), L2(1), Power("1/2"), L1(worst_case=True), L0(1, worst_case=True)]


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_reduction_by_symmetry_keeps_the_optimum(n, loss):
    """Every subset of the seven is met for some n and loss; each n and loss meets a fixed sample of
    the subsets.
    """
    sample = random.Random(f"{n} {loss!r}").sample(SUBSETS, 10)
    for wanted in [(), ("S",), *sample]:
        program = full(n, NINE, loss, wanted)
        reduced = try_to_reduce(program, n)
        assert reduced is not None, wanted
        assert reduced.program.variables < program.variables
        smaller, plain = prove(program, reduced), prove(program, unreduced(program))
        assert smaller[0] == plain[0], wanted
        # Both are proofs: without a gap, since these programs are easy.
        assert smaller[0] == smaller[1]
        assert plain[0] == plain[1]


@pytest.mark.parametrize("wanted", SUBSETS, ids=lambda subset: "-".join(subset) or "none")
def test_every_subset_is_reduced_to_the_same_optimum(wanted):
    program = full(3, NINE, L1(), wanted)
    reduced = try_to_reduce(program, 3)
    value, bound = prove(program, reduced)
    assert value == bound == prove(program, unreduced(program))[0]


@pytest.mark.parametrize(
    "neighbours", ["adjacent", "all", 2, [(0, 1), (2, 3)], [(0, 3)], [(0, 2), (1, 3)]], ids=repr
)
@pytest.mark.parametrize("alpha", ["9/10", "1/3", 1])
def test_reduction_by_symmetry_under_other_neighbours(neighbours, alpha):
    for loss, wanted in ((L0(), ["WH"]), (L2(), ["CM", "OR"]), (L1(worst_case=True), ["RM"])):
        program = full(3, Privacy(alpha=alpha, neighbours=neighbours), loss, wanted)
        reduced = try_to_reduce(program, 3)
        assert reduced is not None
        assert prove(program, reduced) == prove(program, unreduced(program))


@pytest.mark.parametrize(
    ("privacy", "loss", "wanted"),
    [
        (NINE, L0(prior=prior([1, 2, 3, 4])), []),
        (NINE, L0(prior=prior([1, 2, 2, 2])), ["S"]),
        (NINE, Costs([[abs(i - j) + (i == 0) for j in range(4)] for i in range(4)]), []),
        (
            NINE,
            Costs([[abs(i - j) + (i == 0) for j in range(4)] for i in range(4)], worst_case=True),
            [],
        ),
        (NINE, L0(), [Sided()]),
        (NINE, L0(), ["WH", Sided(-1)]),
        (NINE, L1(worst_case=True), [Sided()]),
        (Privacy(alpha="9/10", neighbours=[(0, 1)]), L0(), []),
        (Privacy(alpha="9/10", neighbours=[(0, 1), (1, 2)]), L0(), ["S", "CM"]),
        (Privacy(alpha=1, neighbours=[(0, 2)]), L0(), []),
    ],
    ids=[
        "prior",
        "prior+S",
        "costs",
        "worst costs",
        "property",
        "property+WH",
        "worst property",
        "edge",
        "edges",
        "perfect edge",
    ],
)
def test_no_reduction_without_symmetry(privacy, loss, wanted):
    program = full(3, privacy, loss, wanted)
    assert try_to_reduce(program, 3) is None
    value, bound = prove(program, unreduced(program))
    assert value == bound


def test_rows_that_say_nothing_are_left_out():
    """Under the symmetry, S says that every variable equals itself, and its middle row does so
    anyway.
    """
    program = full(2, NINE, L0(), ["S"])
    middle = unreduced(program)
    assert [group.name for group in middle.program.constraints] == [
        group.name for group in program.constraints
    ]
    assert len(middle.program.constraints[-1].cells) == len(program.constraints[-1].cells) - 1
    assert middle.origin[-1].tolist().count(-1) == 1
    reduced = try_to_reduce(program, 2)
    assert len(reduced.program.constraints[-1].cells) == 0
    assert set(reduced.origin[-1].tolist()) == {-1}
    assert (
        reduced.expand(
            [Fraction(1)] * sum(len(group.cells) for group in reduced.program.constraints)
        )[-1]
        == {}
    )


def test_programs_of_symmetric_priors_and_costs_are_reduced():
    assert try_to_reduce(full(3, NINE, L0(prior=prior([1, 2, 2, 1]))), 3) is not None
    assert (
        try_to_reduce(
            full(
                3,
                NINE,
                Costs([[abs(i - j) ** 3 for j in range(4)] for i in range(4)], worst_case=True),
            ),
            3,
        )
        is not None
    )


def test_programs_with_a_property_on_each_side_are_reduced():
    class Both(Property):
        short = "BOTH"

        def constraints(self, at, privacy):
            yield Constraints.at_least_value([at[0, 0], at[-1, -1]], Fraction(1, 3))

    program = full(3, NINE, L1(), [Both()])
    reduced = try_to_reduce(program, 3)
    assert reduced is not None
    assert prove(program, reduced) == prove(program, unreduced(program))


def test_reduction_with_a_prior_that_only_looks_symmetric():
    """A difference far below what a float shows."""
    step = Fraction(1, 10**40)
    loss = L0(prior=[Fraction(1, 4) + step, Fraction(1, 4), Fraction(1, 4), Fraction(1, 4) - step])
    assert try_to_reduce(full(3, NINE, loss), 3) is None


def random_program(rng, n, extra, equalities):
    """The rows of a mechanism program and more, in mirrored pairs, that a given symmetric mechanism
    keeps.
    """
    size = n + 1
    point = [entry for line in named.explicit_fair(n, alpha="9/10").table for entry in line]
    program = full(n, NINE, L1())
    groups = list(program.constraints)
    while len(groups) < len(program.constraints) + extra:
        u, v = rng.sample(range(size * size), 2)
        larger, smaller = (u, v) if point[u] >= point[v] else (v, u)
        mirrored = [larger, size * size - 1 - larger], [smaller, size * size - 1 - smaller]
        equal = point[u] == point[v]
        if equalities and not equal:
            continue
        # Half of the equalities have the larger variable first.
        made = Constraints.equal(*mirrored) if equalities else Constraints.at_least(*mirrored)
        groups.append(made.named(f"extra {len(groups)}"))
    return Program(program.cost, tuple(groups))


def check_random_program(seed, equalities):
    rng = random.Random(seed)
    n = rng.choice([2, 3, 4])
    program = random_program(rng, n, rng.randrange(1, 6), equalities)
    reduced = try_to_reduce(program, n)
    assert reduced is not None
    assert prove(program, reduced) == prove(program, unreduced(program))


@pytest.mark.parametrize("seed", range(20))
def test_random_symmetric_inequalities(seed):
    check_random_program(seed, equalities=False)


def test_random_symmetric_equalities():
    for seed in range(20):
        check_random_program(seed, equalities=True)


@pytest.mark.parametrize(
    "keep",
    [unreduced, lambda program: reduce_by_symmetry(program, reflection(3, 3, program.variables))],
    ids=["unreduced", "reduced"],
)
def test_multipliers_of_equalities_written_with_the_larger_variable_first(keep):
    program = full(2, NINE, L0())
    backwards = Constraints.equal([4, 4], [0, 8]).named("backwards")
    program = Program(program.cost, (*program.constraints, backwards))
    value, bound = prove(program, keep(program))
    assert value == bound


def test_multipliers_of_constraints_that_are_repeated_on_one_side():
    program = full(3, NINE, L0(), ["WH"])
    twice = Constraints.at_least_value([5, 5, 5], Fraction(1, 4)).named("twice")
    program = Program(program.cost, (*program.constraints, twice))
    reduced = try_to_reduce(program, 3)
    assert reduced is not None
    value, bound = prove(program, reduced)
    assert value == bound


def test_rectangular_programs():
    program = mechanism_program(2, 4, NINE, L0(), [OutputRatio("1/2")])
    reduced = reduce_by_symmetry(program, reflection(2, 4, program.variables))
    # |i - j| is not symmetric in a rectangle, so the program cannot be reduced.
    assert reduced is None
    value, bound = prove(program, unreduced(program))
    assert value == bound

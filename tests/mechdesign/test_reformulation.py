"""The shorter program: its optimum, its symmetry, its length, and proofs carried back."""

import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import Privacy
from mechdesign.losses import L0, L1, L2, prior
from mechdesign.lp.basis import reduce_by_symmetry, unreduced
from mechdesign.lp.exact_solution import certify
from mechdesign.optimisation.certificate import dual_bound
from mechdesign.optimisation.formulation import compact
from tests.mechdesign.programs import full
from tests.mechdesign.relations import RELATIONS, capped, equal, line

SETTINGS = settings(max_examples=150, deadline=None, derandomize=True, database=None)


def short(program, n, privacy, wanted=()):
    return compact(program, n + 1, n + 1, privacy, "RM" in wanted)


def multipliers_by_group(program, values):
    left = iter(values)
    return [
        {r: y for r in range(len(group.cells)) if (y := next(left))}
        for group in program.constraints
    ]


def restored(program, shorter, loss, privacy):
    """Solve the shorter program; its proof, carried back, must hold for the program as stated."""
    reduced = reduce_by_symmetry(shorter.program, shorter.symmetry) or unreduced(shorter.program)
    solution = certify(reduced.program)
    x = [solution.x[v] for v in reduced.orbit.tolist()][: program.variables]
    common = math.lcm(*(value.denominator for value in x))
    assert not any(
        True
        for group in program.constraints
        for _ in group.violations([int(value * common) for value in x], common)
    )
    cost = sum(c * value for c, value in zip(program.cost, x, strict=True))
    return cost, dual_bound(program, shorter.restored(reduced.expand(solution.multipliers)))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [2, 7, 8])
def test_the_shorter_program_has_the_same_optimum_and_proves_it(relation, n):
    neighbours = RELATIONS[relation](n)
    skew = prior(range(1, n + 2))
    for alpha, loss, wanted in (
        ("9/10", L1(), ()),
        ("1/2", L1(prior=skew), ("WH",)),
        ("1/2", L1(worst_case=True), ()),
        ("9/10", L0(), ("RM",)),
        ("2/3", L2(prior=skew), ("RM", "CM")),
        (1, L0(1), ()),
        (1, L2(prior=skew), ("RM",)),
    ):
        privacy = Privacy(alpha=alpha, neighbours=neighbours)
        program = full(n, privacy, loss, wanted)
        shorter = short(program, n, privacy, wanted)
        cost, bound = restored(program, shorter, loss, privacy)
        assert cost == bound
        # Certificates by the constraints of the statement alone stay valid: files hold such.
        rows = unreduced(program)
        solution = certify(rows.program)
        assert cost == sum(c * value for c, value in zip(program.cost, solution.x, strict=True))
        assert cost == dual_bound(
            program,
            dict(
                zip(
                    (group.name for group in program.constraints),
                    rows.expand(solution.multipliers),
                    strict=True,
                )
            ),
        )


@pytest.mark.parametrize("n", [15, 16])
@pytest.mark.parametrize(
    "relation", ["adjacent", "all", "2", "half", "n-1", "line", "capped", "ring", "equal"]
)
def test_the_shorter_program_is_as_symmetric_as_the_one_it_stands_for(relation, n):
    privacy = Privacy(alpha="9/10", neighbours=RELATIONS[relation](n))
    for wanted in ((), ("RM",)):
        program = full(n, privacy, L1(), wanted)
        shorter = short(program, n, privacy, wanted)
        assert reduce_by_symmetry(shorter.program, shorter.symmetry) is not None
        assert shorter.symmetry[shorter.symmetry].tolist() == list(range(shorter.program.variables))


def test_the_shorter_program_is_short():
    n, size = 32, 33

    def rows(neighbours, wanted=()):
        privacy = Privacy(alpha="9/10", neighbours=neighbours)
        shorter = short(full(n, privacy, L1(), wanted), n, privacy, wanted).program
        return sum(
            len(group.cells)
            for group in shorter.constraints
            if not group.name.startswith(("column", "RM"))
        )

    adjacent = 2 * n * size
    assert rows("adjacent") == rows(line(n)) == rows(capped(n, n)) == adjacent
    assert rows("all") == rows(n) == rows(equal(n)) == 2 * size * size
    assert rows(capped(n, 4)) == adjacent + 2 * size * size
    # Two cliques, of the neighbours of either end, and the two pairs across them for every further
    # step.
    assert rows(n - 4) == size * (4 * (n - 3) + 4 * 3)
    # The ends against the output itself, and neither for an output at an end.
    assert rows("all", ("RM",)) == 2 * size - 2
    assert rows(line(n), ("RM",)) == n * size


def test_perfect_privacy_is_a_chain():
    for neighbours in ("all", 3, capped(8, 3)):
        privacy = Privacy(alpha=1, neighbours=neighbours)
        assert (
            Counter(
                group.name.split()[0]
                for group in short(full(8, privacy), 8, privacy).program.constraints
            )["above"]
            == 0
        )
        shorter = short(full(8, privacy), 8, privacy).program
        assert sum(len(group.cells) for group in shorter.constraints) == 9 + 8 * 9


@pytest.mark.slow
@SETTINGS
@given(st.integers(0, 10**6), st.sampled_from(["all", "n-1", "capped", "equal"]))
def test_restored_multipliers_never_pull_more(seed, relation):
    """For any multipliers that sum to no more below an auxiliary variable than above it."""
    n, rng = 9, random.Random(seed)
    privacy = Privacy(alpha="2/3", neighbours=RELATIONS[relation](n))
    program = full(n, privacy)
    shorter = short(program, n, privacy)
    assert shorter.cliques
    lean = shorter.program
    values = [
        Fraction(rng.choice([0, 0, 1, 2, 5]), rng.randint(1, 6))
        for group in lean.constraints
        for _ in group.cells
    ]
    chosen = multipliers_by_group(lean, values)

    def pulls(of, multipliers):
        total = [Fraction(0)] * of.variables
        for group, rows in zip(of.constraints, multipliers, strict=True):
            for r, value in rows.items():
                for v, a in zip(group.cells[r].tolist(), group.coefficients, strict=True):
                    total[v] += a * value
        return total

    for v, pull in enumerate(pulls(lean, chosen)):
        if v >= program.variables and pull > 0:  # take more from above
            r = next(
                (g, r)
                for g, group in enumerate(lean.constraints)
                for r in range(len(group.cells))
                if group.cells[r, 1] == v
            )
            chosen[r[0]][r[1]] = chosen[r[0]].get(r[1], 0) + pull
    back = shorter.restored(chosen)
    assert all(value > 0 for rows in back.values() for value in rows.values())
    after = pulls(program, [back[group.name] for group in program.constraints])
    assert all(
        new <= old for new, old in zip(after, pulls(lean, chosen)[: program.variables], strict=True)
    )

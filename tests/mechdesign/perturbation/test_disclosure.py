"""What a table reveals: as brute force over sets of outputs has it, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from mechdesign.perturbation import DeltaCurve, Disclosure, PerturbationTable
from mechdesign.perturbation.disclosure import SUPPRESSED
from tests.mechdesign.perturbation.random_tables import published_rule, random_table

RATIOS = [Fraction(*each) for each in ((1, 1), (5, 4), (2, 1), (3, 1), (7, 2), (100, 1))]


def divergence(one: dict, other: dict, ratio: Fraction) -> Fraction:
    """The hockey-stick divergence, output by output."""
    return sum(
        (max(Fraction(0), one.get(o, 0) - ratio * other.get(o, 0)) for o in one), Fraction(0)
    )


def law(table: PerturbationTable, count: int, threshold: int, empty: str) -> dict:
    """Key by key; a cell of nobody has no records, and the sum of no keys is 0."""
    found: dict[int, Fraction] = {}
    for key in range(table.keys):
        key = key if count or empty == "drawn" else 0
        output = count + int(table.noise([count], [key])[0])
        output = output if output >= threshold else SUPPRESSED
        found[output] = found.get(output, Fraction(0)) + Fraction(1, table.keys)
    return found


def check(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng)
    threshold = int(rng.integers(0, 4))
    empty = ("zero", "drawn")[seed % 2]
    found = Disclosure(table, threshold, empty_key=empty)
    laws = [law(table, count, threshold, empty) for count in range(24)]
    worst = [
        max(
            divergence(one, other, ratio)
            for a, b in pairwise(laws)
            for one, other in ((a, b), (b, a))
        )
        for ratio in RATIOS
    ]
    assert [found.curve.at_ratio(ratio) for ratio in RATIOS] == worst
    for target in (Fraction(0), Fraction(1, 100), Fraction(1, 3), Fraction(1)):
        least = found.curve.least_ratio(target)
        if least is None:
            assert found.curve.unbounded > target
            assert math.isinf(found.curve.epsilon(target))
        else:
            assert found.curve.at_ratio(least) <= target
            nearly = least * Fraction(999, 1000)
            assert nearly < 1 or found.curve.at_ratio(nearly) > target
            assert found.curve.epsilon(target) >= math.log(least) * (1 - 1e-15)
    for count in range(6):
        one, other = laws[count], laws[count + 1]
        same = sum(one.get(o, 0) * other.get(o, 0) for o in one)
        assert found.differing(count) == 1 - same
        for output in one:
            expected = other.get(output, 0) / one[output]
            assert found.odds(count, output) == expected
    for output in {o for each in laws[:6] for o in each}:
        # A flat prior: counts far above cannot lead to it
        weights = {c: each[output] for c, each in enumerate(laws) if output in each}
        total = sum(weights.values())
        assert found.truth(output) == {c: w / total for c, w in weights.items()}
        prior = [1, 2, 0, 3]
        weights = {c: w * prior[c] for c, w in weights.items() if c < 4 and prior[c]}
        total = sum(weights.values())
        assert found.truth(output, prior) == {c: w / total for c, w in weights.items()}


@pytest.mark.parametrize("seed", range(60))
def test_everything_is_as_brute_force_has_it(seed: int) -> None:
    check(seed)


@pytest.mark.slow
def test_everything_is_as_brute_force_has_it_in_2000_tables() -> None:
    for seed in range(100, 2100):
        check(seed)


def test_curves_have_rational_vertices_and_no_piece_too_many() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        pairs = [rng.multinomial(40, rng.dirichlet(np.ones(6) / 2), size=2).T for _ in range(3)]
        curve = DeltaCurve.of_pairs([[(int(p), int(q)) for p, q in pair] for pair in pairs], 40)
        starts = [piece.start for piece in curve.pieces]
        assert starts[0] == 1
        assert starts == sorted(set(starts))
        slopes = [piece.slope for piece in curve.pieces]
        assert slopes == sorted(set(slopes), reverse=True)
        for piece, before in zip(curve.pieces[1:], curve.pieces[:-1], strict=True):
            at = piece.height - piece.slope * piece.start
            assert before.height - before.slope * piece.start == at


def test_what_is_possible_for_one_count_only_is_listed() -> None:
    table = PerturbationTable.of_laws(4, [{0: 4}, {-1: 1, 0: 2, 1: 1}])
    found = Disclosure(table)
    assert found.one_sided[0] == (1, 0, (1, 2), Fraction(3, 4))
    assert found.one_sided[1:] == (
        (1, 2, (0,), Fraction(1, 4)),
        (2, 1, (3,), Fraction(1, 4)),
    )
    assert found.odds(0, 2) == math.inf
    with pytest.raises(ValueError, match="neither"):
        found.odds(0, 7)


def test_the_published_rule_hides_nobody() -> None:
    found = Disclosure(published_rule(), threshold=10)
    assert found.curve.unbounded == 1
    assert found.curve.epsilon("1/2") == math.inf
    assert found.truth(SUPPRESSED) == {count: Fraction(1, 10) for count in range(10)}
    assert (12, 13, (10,), 1) in found.one_sided
    assert found.differing_extent == (0, 1)
    assert "infinite" in str(found)
    assert "No epsilon can be promised" in found.words
    json = found.json()
    assert json["delta"]["1"] == "1"
    assert json["epsilon"]["1/100"] is None


def test_wrong_numbers_are_refused() -> None:
    table = PerturbationTable.of_laws(4, [{0: 4}])
    with pytest.raises(ValueError, match="threshold"):
        Disclosure(table, -1)
    with pytest.raises(ValueError, match="delta is 0 to 1"):
        Disclosure(table).curve.least_ratio(2)
    with pytest.raises(ValueError, match="prior"):
        Disclosure(table).truth(0, [-1])

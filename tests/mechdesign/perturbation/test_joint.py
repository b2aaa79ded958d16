"""Tables with margins: the joint law, key by key, and bounds on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechdesign.perturbation import (
    JointDisclosure,
    PerturbationTable,
    best_guess,
    design_perturbation,
    joint_curve,
    joint_law,
    key_leak,
    scattered,
    spectrum,
)
from mechdesign.perturbation.joint import _chi_squared_of_margins
from mechdesign.perturbation.key_assignment import convolved
from tests.mechdesign.perturbation.random_tables import random_table
from tests.mechdesign.perturbation.test_disclosure import RATIOS, divergence

THREE = PerturbationTable(256, [[(256, 0)], [(64, -1), (128, 0), (64, 1)]])


def small_table(rng: np.random.Generator, keys: int, noise: int = 1) -> PerturbationTable:
    """Of few outputs, with a cell of nobody unperturbed."""
    rows = [rng.integers(-min(c, noise), noise + 1, size=keys) for c in range(1, 4)]
    return PerturbationTable.of_noise(np.array([np.zeros(keys, dtype=np.int64), *rows]))


def by_every_key(table: PerturbationTable, counts: np.ndarray) -> dict[tuple, Fraction]:
    """The joint law by all assignments of keys to cells."""
    counts = np.asarray(counts)
    choices = [range(table.keys) if count else range(1) for count in counts.ravel()]
    found: Counter[tuple] = Counter()
    for assigned in product(*choices):
        keys = np.array(assigned).reshape(counts.shape)

        def out(parts, sums):
            parts, sums = np.atleast_1d(parts), np.atleast_1d(sums)
            return tuple((parts + table.noise(parts, sums)).tolist())

        outputs = [*out(counts.ravel(), keys.ravel())]
        if counts.ndim == 2:
            outputs += [*out(counts.sum(axis=1), keys.sum(axis=1))]
            outputs += [*out(counts.sum(axis=0), keys.sum(axis=0))]
        found[(*outputs, *out(counts.sum(), keys.sum()))] += 1
    return {o: Fraction(n, found.total()) for o, n in found.items()}


SHAPES = [([1, 2], 8), ([3, 0, 1], 8), ([[1, 2], [2, 1]], 4), ([[2, 0], [1, 3]], 8), ([4, 1, 2], 4)]


@pytest.mark.parametrize(("counts", "keys"), SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_the_joint_law_is_that_of_all_keys(counts, keys: int, seed: int) -> None:
    table = small_table(np.random.default_rng(seed), keys)
    assert joint_law(table, counts) == by_every_key(table, counts)


@pytest.mark.slow
def test_the_joint_law_of_2000_tables_is_that_of_all_keys() -> None:
    rng = np.random.default_rng(59)
    for _ in range(2000):
        keys = int(rng.integers(4, 17))
        table = random_table(rng) if keys > 8 else small_table(rng, keys, int(rng.integers(1, 4)))
        shapes = [(2,), (3,), (2, 2)][: 1 + (table.keys < 9) + (table.keys < 6)]
        counts = rng.integers(0, 7, size=shapes[int(rng.integers(0, len(shapes)))])
        assert joint_law(table, counts) == by_every_key(table, counts)


@pytest.mark.parametrize(("counts", "keys"), SHAPES[:3])
@pytest.mark.parametrize("seed", range(3))
def test_the_joint_curve_is_that_of_all_keys(counts, keys: int, seed: int) -> None:
    table = small_table(np.random.default_rng(seed), keys)
    counts = np.array(counts)
    cell = (0,) * counts.ndim
    within = counts.copy()
    within[cell] += 1
    one, other = by_every_key(table, counts), by_every_key(table, within)
    curve = joint_curve(table, counts, cell)
    for ratio in RATIOS:
        expected = max(divergence(one, other, ratio), divergence(other, one, ratio))
        assert curve.at_ratio(ratio) == expected


def test_any_two_cells_are_independent_and_three_are_not() -> None:
    law = joint_law(small_table(np.random.default_rng(4), 8), [2, 3])
    for places in ((0, 1), (0, 2), (1, 2)):
        pair: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        ones: list[defaultdict[int, Fraction]] = [defaultdict(Fraction), defaultdict(Fraction)]
        for outputs, p in law.items():
            chosen = tuple(outputs[k] for k in places)
            pair[chosen] += p
            for each, output in zip(ones, chosen, strict=True):
                each[output] += p
        assert all(p == ones[0][a] * ones[1][b] for (a, b), p in pair.items())
    assert len(law) > 1


def independent(table: PerturbationTable, counts: np.ndarray) -> dict[tuple, Fraction]:
    """All cells and margins with independent keys."""
    counts = np.asarray(counts)
    numbers = [*counts.ravel()]
    if counts.ndim == 2:
        numbers += [*counts.sum(axis=1), *counts.sum(axis=0)]
    found: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for number in [*numbers, counts.sum()]:
        law = table.law(int(number)) if number else {0: table.keys}
        found = {
            (*outputs, int(number) + v): p * Fraction(keys, table.keys)
            for outputs, p in found.items()
            for v, keys in law.items()
        }
    return found


BOUNDED = [
    *(([1, 2], 8), ([3, 2, 1], 8), ([2, 0, 3, 2, 1], 4), ([[1, 2], [2, 3]], 4)),
    *(([[1, 2], [0, 3]], 4), ([[1, 2, 0], [2, 1, 0]], 4), ([[1, 2, 1], [2, 0, 3]], 3)),
]


@pytest.mark.parametrize(("counts", "keys"), [*BOUNDED, ([[1, 2, 3], [2, 3, 1]], 2)])
@pytest.mark.parametrize("seed", range(3))
def test_bounds_hold_where_all_keys_can_be_listed(counts, keys: int, seed: int) -> None:
    table = small_table(np.random.default_rng(seed + 10), keys)
    counts = np.array(counts)
    found = JointDisclosure(table, counts)
    curves = []
    for cell in map(tuple, np.argwhere(found.covered).tolist()):
        within = counts.copy()
        within[cell] += 1
        for each in (counts, within):
            joint, alone = by_every_key(table, each), independent(table, each)
            apart = sum(max(Fraction(0), p - alone.get(o, 0)) for o, p in joint.items())
            assert float(apart) <= found.dependence
        curves.append(joint_curve(table, counts, cell) if keys**counts.size < 5000 else None)
    for epsilon in (0, 1):
        low, high = found.delta(epsilon)
        worst = max(curve.delta(epsilon) for curve in curves if curve)
        assert low <= worst <= high


def exact_chi_squared(rho: np.ndarray, held: np.ndarray) -> float:
    """By every character."""
    keys, total = len(rho), 0.0
    rows, columns = held.shape
    for f in product(range(keys), repeat=rows):
        for g in product(range(keys), repeat=columns):
            matrix = (np.array(f)[:, None] + np.array(g)) % keys
            total += float(rho[matrix][held].prod()) / keys
    return total - 1


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3)])
@pytest.mark.parametrize("keys", [2, 3, 4])
def test_the_bound_on_characters_holds(shape, keys: int) -> None:
    rng = np.random.default_rng(keys)
    for _ in range(5):
        rho = rng.random(keys)
        rho[0] = 1
        rho = np.minimum(rho, rho[-np.arange(keys)])
        held = np.ones(shape, dtype=bool)
        exact, bound = exact_chi_squared(rho, held), _chi_squared_of_margins(rho, *shape)
        assert exact <= bound * (1 + 1e-9)
        for _ in range(3):  # cells of nobody here and there
            held = rng.random(shape) < 0.7
            empty = max(int((~held).sum(axis=axis).max()) for axis in (0, 1))
            if empty < min(shape):
                exact = exact_chi_squared(rho, held)
                assert exact <= _chi_squared_of_margins(rho, shape[0], shape[1], empty) * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_convolutions_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, other = (rng.integers(0, 1 << 62, size=9).astype(object) ** 3 for _ in range(2))
    expected = [sum(one[k] * other[(s - k) % 9] for k in range(9)) for s in range(9)]
    assert convolved(one, other).tolist() == expected


# ---------------------------------------------------------------------------------------- guesses


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_guess_is_that_of_all_keys(cells: int, seed: int) -> None:
    table = small_table(np.random.default_rng(seed), 8)
    seen: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for keys in product(range(8), repeat=cells):
        noise = [int(table.noise([3], [k])[0]) for k in keys]
        total = int(table.noise([3], [sum(keys)])[0])
        seen[total - sum(noise)][noise[0]] += 1
    found = best_guess(table, cells)
    assert found.right == Fraction(sum(max(each.values()) for each in seen.values()), 8**cells)
    certain = sum(each.total() for each in seen.values() if len(each) == 1)
    assert found.certain == Fraction(certain, 8**cells)


def test_keys_in_order_give_cells_away_and_scattered_ones_do_not() -> None:
    """Two cells and their total; noise -1, 0, 1 with 1/4, 1/2, 1/4."""
    ordered, apart = best_guess(THREE, 2), best_guess(scattered(THREE), 2)
    assert ordered.certain == Fraction(1, 16)
    assert ordered.certain_if_independent == apart.certain_if_independent == Fraction(1, 32)
    assert apart.certain == pytest.approx(1 / 32, abs=2e-3)
    assert float(apart.right_if_independent) == pytest.approx(0.5938, abs=1e-4)
    assert float(apart.right) == pytest.approx(0.5938, abs=2e-3)


def test_scattering_reaches_nearly_the_least_leak_and_keeps_the_laws() -> None:
    table = design_perturbation(5, noise=5, variance=2, objective="entropy").rounded(256).table
    apart = scattered(table)
    for count in range(9):
        assert apart.law(count) == table.law(count)
    assert apart == scattered(table)
    ordered, best = key_leak(table, 5), key_leak(apart, 5)
    assert ordered.least == best.least
    assert ordered.chi_squared > 9 * best.least
    assert best.least <= best.chi_squared < 1.03 * best.least
    rho = spectrum(apart, 5)
    assert rho[0] == pytest.approx(1)
    assert rho[1:].mean() == pytest.approx((len(table.law(5)) - 1) / 255)
    counts = np.full((50, 50), 9)
    assert JointDisclosure(apart, counts).dependence < 1e-30
    assert JointDisclosure(table, counts).dependence > 0.1
    low, high = JointDisclosure(apart, counts).delta(1)
    assert high - low < Fraction(1, 10**29)
    guess = best_guess(table, 2)
    assert guess.right > guess.right_if_independent + Fraction(1, 100)
    guess = best_guess(apart, 2)
    assert abs(guess.right - guess.right_if_independent) < Fraction(1, 1000)


def test_what_cannot_be_followed_is_refused() -> None:
    many = PerturbationTable.of_laws(8192, [{0: 8192}, {-1: 4096, 1: 4096}])
    with pytest.raises(ValueError, match="4096 keys at most"):
        scattered(many)
    with pytest.raises(ValueError, match="in every cell a person is alone"):
        JointDisclosure(THREE, np.array([[1, 0]])).delta(1)
    with pytest.raises(ValueError, match="shape"):
        JointDisclosure(THREE, np.ones((1, 1, 1), dtype=np.int64))
    with pytest.raises(ValueError, match="too large"):
        joint_law(THREE, [[1, 2, 3], [3, 4, 1]])
    with pytest.raises(ValueError, match="number of cells"):
        best_guess(THREE, 1)


@pytest.mark.parametrize("keys", [4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_margins_never_give_less_away_than_independent_noise(keys: int, seed: int) -> None:
    table = small_table(np.random.default_rng(seed + 20), keys)
    for counts in ([2, 1], [1, 3, 2], [[1, 2], [3, 1]])[: 2 + (keys == 4)]:
        found = JointDisclosure(table, np.array(counts))
        for cell in np.ndindex(found.counts.shape):
            curve = joint_curve(table, counts, cell)
            alone = JointDisclosure(table, np.array(counts)).independent_of(cell)
            for ratio in RATIOS:
                assert curve.at_ratio(ratio) >= alone.at_ratio(ratio)
        low, high = found.delta(1)
        assert low == found.independent.delta(1)
        worst = max(joint_curve(table, counts, c).delta(1) for c in np.ndindex(found.counts.shape))
        assert low <= worst <= high


@pytest.mark.parametrize(
    ("counts", "cell"),
    [([2, 1], 0), ([0, 0], 1), ([0, 2, 3], 0), ([5, 0, 1], 2), ([4], 0), ([0], 0), ([2, 2, 2], -1)],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_curve_of_one_axis_is_that_of_all_keys(counts, cell: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.integers(-min(c, 1), 2, size=6) for c in range(4)]
    table = PerturbationTable.of_noise(np.array(rows))  # noise at a count of 0, too
    within = np.array(counts)
    within[cell] += 1
    one, other = by_every_key(table, np.array(counts)), by_every_key(table, within)
    curve = joint_curve(table, counts, cell)
    for ratio in RATIOS:
        expected = max(divergence(one, other, ratio), divergence(other, one, ratio))
        assert curve.at_ratio(ratio) == expected


def test_many_cells_in_a_line_are_followed_exactly() -> None:
    counts = [3] * 12
    for table in (THREE, scattered(THREE)):
        found = JointDisclosure(table, np.array(counts))
        low, high = found.delta("1/2")
        assert low <= joint_curve(table, counts, 0).delta("1/2") <= high
    noisy = PerturbationTable.of_laws(16, [{0: 16}, {v - 1: 1 for v in range(16)}])
    with pytest.raises(ValueError, match="can publish too much"):
        joint_curve(noisy, [1] * 20, 0)
    assert joint_curve(THREE, [3] * 4, 0) == joint_curve(THREE, [3] * 4, 2)


def test_two_by_two_cells_of_256_keys_are_followed_exactly() -> None:
    """The lower bound is that of independent noise; keys in order are well above it."""
    counts = np.full((2, 2), 9)
    alone = JointDisclosure(THREE, counts).independent.delta(1)
    ordered, apart = (joint_curve(t, counts, (0, 0)).delta(1) for t in (THREE, scattered(THREE)))
    assert alone <= apart < alone + Fraction(1, 10**4)
    assert ordered > alone + Fraction(3, 100)

"""The best attack on one cell: as listing all true counts and all keys has it."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechdesign.perturbation import (
    PerturbationTable,
    best_guess,
    best_guess_of_table,
    scattered,
    true_count,
)
from tests.mechdesign.perturbation.test_joint import THREE, by_every_key, small_table


def by_every_truth(table, published, weights) -> dict[tuple, dict[tuple, Fraction]]:
    """By all true counts, and all keys: what is published -> cells -> their joint weight."""
    shape = np.shape(published)
    found: defaultdict[tuple, dict[tuple, Fraction]] = defaultdict(dict)
    for counts in product(range(len(weights)), repeat=int(np.prod(shape))):
        weight = Fraction(int(np.prod([weights[n] for n in counts])))
        for outputs, p in by_every_key(table, np.array(counts).reshape(shape)).items():
            found[outputs][counts] = weight * p
    return found


CASES = [((2,), 4), ((2,), 8), ((2,), 16), ((3,), 4), ((2, 2), 4)]


@pytest.mark.parametrize(("shape", "keys"), CASES)
@pytest.mark.parametrize("seed", range(2))
def test_the_true_count_is_that_of_all_truths_and_keys(shape, keys: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = small_table(rng, keys)
    weights = [1, 2, 1] if len(shape) == 2 else [3, 1, 0, 2]
    prior = [Fraction(w, 7) for w in weights]
    every = by_every_truth(table, np.zeros(shape), weights)
    listed = sorted(every)
    for k in rng.permutation(len(listed))[:25]:
        outputs = listed[k]
        size = int(np.prod(shape))
        cells, rest = np.array(outputs[:size]).reshape(shape), outputs[size:]
        margins = {}
        if len(shape) == 2:
            margins = {"rows": rest[: shape[0]], "columns": rest[shape[0] : -1]}
        for place in np.ndindex(shape):
            expected: defaultdict[int, Fraction] = defaultdict(Fraction)
            for counts, weight in every[outputs].items():
                expected[int(np.array(counts).reshape(shape)[place])] += weight
            total = sum(expected.values())
            where = place if len(shape) == 2 else place[0]
            found = true_count(table, cells, rest[-1], cell=where, prior=prior, **margins)
            assert found == {n: w / total for n, w in sorted(expected.items()) if w}


def test_a_flat_prior_is_that_of_all_counts_that_can_be() -> None:
    table = small_table(np.random.default_rng(3), 8)
    flat = true_count(table, [4, 2, 0], 7)
    assert flat == true_count(table, [4, 2, 0], 7, prior=[1] * 9)
    assert sum(flat.values()) == 1
    assert true_count(table, [4, 2, 0], 30) == {}  # it cannot be published


def test_a_total_can_give_a_cell_away() -> None:
    alone = true_count(THREE, [4], 4)  # a cell that is its own total has its key
    assert alone == {3: Fraction(1, 4), 4: Fraction(1, 2), 5: Fraction(1, 4)}
    assert true_count(THREE, [4], 5) == {}
    assert true_count(THREE, [10, 10], 20) == {10: 1}  # keys in order
    assert true_count(THREE, [10, 10], 23) == {}
    apart = true_count(scattered(THREE), [10, 10], 20)
    assert list(apart) == [9, 10, 11]
    assert float(apart[10]) == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(("keys", "shape"), [(2, (2, 3)), (4, (2, 2)), (5, (2, 2)), (2, (3, 2))])
@pytest.mark.parametrize("seed", range(2))
def test_the_best_guess_in_a_table_is_that_of_all_keys(keys: int, shape, seed: int) -> None:
    table = small_table(np.random.default_rng(seed), keys)
    rows, columns = shape

    def noise(k):
        return table.noise(np.full(np.shape(k), 3), np.asarray(k) % keys)

    seen: defaultdict[tuple, Counter[int]] = defaultdict(Counter)
    for assigned in product(range(keys), repeat=rows * columns):
        grid = np.array(assigned).reshape(shape)
        own = noise(grid)
        residuals = (
            *(noise(grid.sum(axis=1)) - own.sum(axis=1)).tolist(),
            *(noise(grid.sum(axis=0)) - own.sum(axis=0)).tolist(),
            int(noise(grid.sum()) - own.sum()),
        )
        seen[residuals][int(own[0, 0])] += 1
    found = best_guess_of_table(table, shape)
    everything = keys ** (rows * columns)
    assert found.right == Fraction(sum(max(e.values()) for e in seen.values()), everything)
    certain = sum(e.total() for e in seen.values() if len(e) == 1)
    assert found.certain == Fraction(certain, everything)


def test_the_best_guess_beside_independent_noise_is_that_of_all_laws() -> None:
    table = PerturbationTable.of_laws(4, [{0: 4}, {-1: 1, 0: 2, 1: 1}])
    seen: defaultdict[tuple, Counter[int]] = defaultdict(Counter)
    law = table.law(1)
    for v in product(law, repeat=9):
        weight = int(np.prod([law[x] for x in v]))
        a, b, c, d, r, s, t, u, total = v
        residuals = r - a - b, s - c - d, t - a - c, u - b - d, total - a - b - c - d
        seen[residuals][a] += weight
    found = best_guess_of_table(table, (2, 2))
    assert found.right_if_independent == Fraction(sum(max(e.values()) for e in seen.values()), 4**9)
    certain = sum(e.total() for e in seen.values() if len(e) == 1)
    assert found.certain_if_independent == Fraction(certain, 4**9)


def test_margins_of_two_axes_give_more_away_in_order_than_scattered() -> None:
    ordered, apart = (best_guess_of_table(t, (2, 2)) for t in (THREE, scattered(THREE)))
    alone = ordered.right_if_independent
    assert alone == apart.right_if_independent
    assert ordered.right > alone + Fraction(2, 100)
    assert abs(apart.right - alone) < Fraction(1, 1000)
    assert ordered.certain > 2 * ordered.certain_if_independent
    assert abs(apart.certain - apart.certain_if_independent) < Fraction(2, 1000)
    assert ordered.right > best_guess(THREE, 2).right


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        true_count(THREE, [[[1]]], 1)
    with pytest.raises(ValueError, match="one for each"):
        true_count(THREE, [1, 2], 3, rows=[3])
    with pytest.raises(ValueError, match="two of a table of two axes"):
        true_count(THREE, [[1, 2]], 3, rows=[3], columns=[1, 2])
    with pytest.raises(ValueError, match="a place"):
        true_count(THREE, [1, 2], 3, cell=2)
    with pytest.raises(ValueError, match="at least 0"):
        true_count(THREE, [1, 2], 3, prior=[1, -1])
    with pytest.raises(ValueError, match="too many to follow"):
        true_count(THREE, np.ones((3, 2), dtype=int), 6, rows=[2] * 3, columns=[3] * 2, cell=(0, 0))
    with pytest.raises(ValueError, match="take too long to follow"):
        true_count(THREE, [9] * 150, 1350)
    with pytest.raises(ValueError, match="too large"):
        best_guess_of_table(THREE, (3, 3))
    with pytest.raises(ValueError, match="a number of rows or columns"):
        best_guess_of_table(THREE, (1, 3))

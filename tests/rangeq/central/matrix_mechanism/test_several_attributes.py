"""Strategies for several attributes, against programs over all cells at once."""

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, ApproximateDP, Privacy
from rangeq.central.matrix_mechanism.dense_strategy import ProductStrategy
from rangeq.central.matrix_mechanism.design import workload_optimal
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.residual_strategy import (
    ResidualStrategy,
    residual_optimum,
    tells_differences,
)
from rangeq.central.matrix_mechanism.several_attributes import (
    exchangeable,
    least_error,
    marginal_optimum,
    marginal_weights,
    product_for_laplace_noise,
    product_optimum,
)
from rangeq.central.matrix_mechanism.workload import QuerySet, Workload, gram_of
from tests.rangeq.central.matrix_mechanism.strategies import dense_of


def mean(strategy, workload, power):
    """The mean variance for columns of norm 1, from the matrices written out."""
    matrix = dense_of(strategy).astype(float)
    norm = (np.abs(matrix) ** power).sum(axis=0).max() ** (2 / power)
    inverse = np.linalg.pinv(matrix)
    gram, _ = gram_of(workload)
    return norm * np.sum(gram * (inverse @ inverse.T)) / workload.weight


MARGINALS = [
    ("marginals", (2, 3, 4)),
    ("1-way marginals", (4, 5)),
    ("2-way marginals", (2, 2, 2, 2)),
    ("3-way marginals", (2, 3, 4)),
    (["cells", "total"], (3, 4)),
    ([(3, "1-way marginals"), (1, "marginals")], (3, 1, 4)),
    ("total", (3, 4)),
]


@pytest.mark.parametrize(("asked", "sizes"), MARGINALS)
def test_residuals_are_optimal_for_marginals(asked, sizes):
    workload = Workload.of(asked, sizes)
    assert exchangeable(workload)
    strategy, least = marginal_optimum(workload)
    gram, _ = gram_of(workload)
    assert least == pytest.approx(optimal_gram(gram, 1e-9).bound, rel=1e-7)
    found = mean(strategy, workload, 2)
    assert least / workload.weight <= found <= least / workload.weight * (1 + 1e-6)
    assert strategy.workload_variance(workload) * strategy.l2_squared == pytest.approx(found)


@pytest.mark.parametrize(
    ("asked", "sizes"), [*MARGINALS, ([(1e-9, "1-way marginals"), (1, "total")], (3, 4))]
)
def test_weighted_marginals_for_laplace_noise(asked, sizes):
    workload = Workload.of(asked, sizes)
    strategy = marginal_weights(workload)
    found = mean(strategy, workload, 1)
    assert strategy.workload_variance(workload) * strategy.l1**2 == pytest.approx(found)
    # No worse than each asked marginal with the same weight, or all cells
    views = sorted(
        {tuple(i for i, f in enumerate(t.factors) if f.name == "cells") for t in workload.terms}
    )
    even = MarginalStrategy(sizes, views, [1000] * len(views))
    cells = MarginalStrategy(sizes, [tuple(range(len(sizes)))], [1000])
    assert found <= 1.0001 * min(mean(even, workload, 1), mean(cells, workload, 1))


@pytest.mark.slow
def test_weights_of_marginals_are_better_than_those_of_hdmm():
    """All cells of all marginals: theirs are in benchmarks/hdmm_figures.py, with their source."""
    sizes = (50, 100, 7, 4, 2)
    parts = [
        (1.0, Workload.of(list(names), sizes)) for names in product(("cells", "total"), repeat=5)
    ]
    workload = Workload.of(parts, sizes)
    strategy = marginal_weights(workload)
    found = math.sqrt(strategy.workload_variance(workload)) * strategy.l1
    assert 1.8585 < found < 3.4214


@pytest.mark.parametrize(
    ("last", "rows"),
    [
        ([[1, 0], [0, 1], [1, 1]], 3),  # cells and total
        ([[1, 0], [0, 1], [-1, -1]], 3),  # as good as these
        ([[1, 0], [0, 1], [0, 1]], 2),  # of any shape
        ([[1, 0], [0, 1], [1, -1]], 2),  # a I + b J with b < 0: cells and total are not the best
    ],
)
def test_matrices_as_good_as_cells_and_totals_take_few_bits(last, rows):
    def asked(size):
        return np.vstack([np.eye(size), np.ones((1, size))])

    workload = Workload.of(
        ["prefixes", "prefixes", asked(7), asked(4), np.array(last)], (20, 30, 7, 4, 2)
    )
    strategy = product_optimum(workload, 1e-5)
    assert [factor.rows for factor in strategy.factors] == [20, 30, 8, 5, rows]
    found = strategy.workload_variance(workload) * strategy.l2_squared * workload.weight
    assert found < (1.02 if rows == 3 else 1.1) * least_error(workload, 1e-5)


PRODUCTS: list[tuple[Any, tuple[int, ...]]] = [
    ("ranges", (5, 4)),
    (["ranges", "cells"], (6, 3)),
    (["prefixes", "total", "width-2"], (4, 3, 5)),
    (["ranges", np.array([[1.0, 1, 0], [0, 1, 2]])], (4, 3)),
]


@pytest.mark.parametrize(("asked", "sizes"), PRODUCTS, ids=str)
def test_the_product_of_optima_is_optimal(asked, sizes):
    workload = Workload.of(asked, sizes)
    least = least_error(workload, 1e-6) / workload.weight
    strategy = product_optimum(workload, 1e-6)
    found = mean(strategy, workload, 2)
    assert strategy.workload_variance(workload) * strategy.l2_squared == pytest.approx(found)
    gram, _ = gram_of(workload)
    together = optimal_gram(gram, 1e-6)
    assert least <= together.value / workload.weight
    assert together.bound / workload.weight <= found <= least * 1.01
    assert found <= together.value / workload.weight * 1.01


SUMS: list[tuple[Any, tuple[int, ...]]] = [
    ([(1, "1-way marginals"), (1, "ranges")], (5, 4)),
    ([(1, "ranges"), (4, "total")], (6, 3)),
    ([(1, ["ranges", "cells"]), (1, ["ranges", "total"])], (4, 5)),
]


def test_few_bits_for_each_of_many_attributes():
    """Of products with cells and totals on every side, rounding costs little."""
    sizes = (50, 100, 7, 4, 2)
    queries = [np.vstack([np.eye(n), np.ones((1, n))]) for n in sizes]
    sides = [optimal_gram(one.T @ one).bound for one in queries]
    names = ["prefixes", "prefixes", "cells", "cells", "cells"]
    terms = Workload(sizes, ())
    for mask in range(8):
        asked = [n if i < 2 or mask >> (i - 2) & 1 else "total" for i, n in enumerate(names)]
        terms = Workload(sizes, terms.terms + Workload.of(asked, sizes).terms)
    strategy = product_optimum(terms, 1e-4)
    prefixes = [optimal_gram(QuerySet("prefixes", n).gram).value for n in sizes[:2]]
    least = math.prod(prefixes) * math.prod(sides[2:])
    found = strategy.l2_squared * strategy.workload_variance(terms) * terms.weight
    assert found <= 1.01 * least


@pytest.mark.parametrize(("asked", "sizes"), SUMS)
def test_sums_of_products_are_between_the_bound_and_cells(asked, sizes):
    workload = Workload.of(asked, sizes)
    least = least_error(workload, 1e-6) / workload.weight
    gram, _ = gram_of(workload)
    together = optimal_gram(gram, 1e-6).value / workload.weight
    found = mean(product_optimum(workload, 1e-6), workload, 2)
    assert least <= together <= found * 1.0001
    assert found < np.trace(gram) / workload.weight


@pytest.mark.parametrize(("asked", "sizes"), PRODUCTS + SUMS, ids=str)
def test_products_for_laplace_noise(asked, sizes):
    workload = Workload.of(asked, sizes)
    strategy = product_for_laplace_noise(workload)
    found = mean(strategy, workload, 1)
    assert strategy.workload_variance(workload) * strategy.l1**2 == pytest.approx(found)
    gram, _ = gram_of(workload)
    assert found <= 1.001 * np.trace(gram) / workload.weight
    assert least_error(workload, 1e-6) / workload.weight <= found


LOW_ORDER: list[tuple[Any, tuple[int, ...]]] = [
    ([(1, ["ranges", "total"]), (1, ["total", "ranges"])], (16, 8)),
    ([(1, ["ranges", "cells", "total"]), (1, ["total", "cells", "cells"])], (12, 4, 3)),
    ([(2, ["prefixes", "total", "cells"]), (1, ["total", "width-2", "total"])], (9, 5, 2)),
    ([(1, "1-way marginals"), (1, ["ranges", "total", "total"])], (8, 1, 2)),
]


@pytest.mark.parametrize(("asked", "sizes"), LOW_ORDER)
def test_residuals_for_ranges_of_few_attributes_at_once(asked, sizes):
    """Within a tenth of the optimum over all cells, where products may be a third above."""
    workload = Workload.of(asked, sizes)
    strategy = residual_optimum(workload, 1e-4)
    found = mean(strategy, workload, 2)
    assert strategy.workload_variance(workload) * strategy.l2_squared == pytest.approx(found)
    gram, _ = gram_of(workload)
    together = optimal_gram(gram, 1e-5)
    least = together.bound / workload.weight
    assert least <= found <= 1.1 * least
    assert least_error(workload, 1e-5) <= together.value


@pytest.mark.parametrize(("asked", "sizes"), MARGINALS)
def test_residuals_are_searched_to_the_closed_form(asked, sizes):
    workload = Workload.of(asked, sizes)
    found = mean(residual_optimum(workload, 1e-4), workload, 2)
    assert found == pytest.approx(marginal_optimum(workload)[1] / workload.weight, rel=1e-4)


def test_residuals_are_for_queries_that_tell_all_differences():
    asked = [(1, ["width-11", "total"]), (1, ["total", "ranges"])]
    workload = Workload.of(asked, (33, 40))
    assert not tells_differences(workload)
    design = workload_optimal(workload, (33, 40), ZCDP(1))
    assert isinstance(design.strategy, ProductStrategy)
    assert tells_differences(workload + Workload.of(["prefixes", "total"], (33, 40)))


@pytest.mark.slow
def test_queries_that_leave_cells_without_weight():
    """Under Laplace noise the weights of some sums grow without end beside those of cells."""
    asked = Workload.of(
        [
            (1, ["ranges", "total", "prefixes", "total"]),
            (149.137, ["width-16", "total", "ranges", "prefixes"]),
            (1.51603, ["prefixes", "width-6", "total", "cells"]),
        ],
        (20, 12, 3, 2),
    )
    design = workload_optimal(asked, (20, 12, 3, 2), Privacy(alpha="9/10"))
    assert design.mechanism.audit().holds
    assert design.bound <= design.variance < math.inf


def test_the_better_of_products_and_residuals_is_taken():
    sizes = (60, 40)
    apart = Workload.of([(1, ["ranges", "total"]), (1, ["total", "ranges"])], sizes)
    together = Workload.of([(1, "ranges"), (0.01, "total")], sizes)
    assert isinstance(workload_optimal(apart, sizes, ZCDP(1)).strategy, ResidualStrategy)
    assert isinstance(workload_optimal(together, sizes, ZCDP(1)).strategy, ProductStrategy)


@pytest.mark.parametrize("weight", [0.001, 0.02, 0.3, 1, 7, 150])
@pytest.mark.parametrize("power", [1, 2])
def test_small_integers_leave_room_for_a_fine_grid(weight, power):
    """Of cells and totals along both attributes, whatever their weights."""
    sizes = (50, 40)
    asked = [(weight, "1-way marginals"), (1, "cells"), (3, ["total", "cells"])]
    workload = Workload.of(asked, sizes)
    make = product_for_laplace_noise if power == 1 else lambda own: product_optimum(own, 1e-4)
    strategy = make(workload)
    assert strategy.l2_squared >= 1 << 32
    for promise in (Privacy(alpha="1/2"), ApproximateDP(1, "1e-6")):
        assert workload_optimal(workload, sizes, promise).mechanism.audit().holds


def test_designs_of_many_cells():
    for promise in (ZCDP("1/2"), Privacy.from_epsilon(1.0)):
        design = workload_optimal("marginals", (10,) * 6, promise)
        assert design.mechanism.audit().holds
        assert isinstance(design.strategy, MarginalStrategy)
        estimate = design.release(np.full((10,) * 6, 3), np.random.default_rng(1))
        answer = estimate.answer({0: 3, 4: Between(2, 5)})
        assert abs(answer.value - 120_000) < 7 * math.sqrt(answer.variance)
    optimal = workload_optimal("marginals", (10,) * 6, ZCDP("1/2"))
    assert optimal.variance == pytest.approx(11.964, abs=0.001)
    assert optimal.continuous_gap < 1e-6
    boxes = workload_optimal("ranges", (64, 64), ZCDP("1/2"))
    assert boxes.continuous_gap < 0.001


@pytest.mark.slow
def test_boxes_of_marginals_are_answered_with_their_variances():
    workload = Workload.of("marginals", (3, 4, 2))
    design = workload_optimal(workload, (3, 4, 2), ZCDP("1/8"))
    truth = np.arange(24).reshape(3, 4, 2)
    rng = np.random.default_rng(3)
    answers = [design.release(truth, rng).answer({0: 1, 1: Between(1, 2)}) for _ in range(2000)]
    errors = np.array([one.value for one in answers]) - truth[1, 1:3].sum()
    assert abs((errors**2).mean() / answers[0].variance - 1) < 7 * math.sqrt(2 / 2000)


def test_marginals_of_tens_of_millions_of_cells() -> None:
    workload = Workload.of("marginals", (6000, 6000))
    strategy, bound = marginal_optimum(workload)
    assert strategy.l2_squared < (1 << 28) ** 2
    assert strategy.workload_variance(workload) * strategy.l2_squared <= bound / workload.weight * (
        1 + 1e-5
    )

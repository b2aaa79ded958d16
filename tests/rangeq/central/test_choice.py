"""Which release of a curator is chosen: the errors of the candidates, and the planner's tasks."""

import math
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product

import numpy as np
import pytest

from frequency import Between
from mechdesign import ApproximateDP, InvalidRequest, Privacy, plan
from mechdesign.planning.ranking import ranked
from rangeq.central import (
    CentralFlat,
    Hierarchy,
    QuantileRelease,
    TreeQuantiles,
    Wavelet,
    workload_optimal,
)
from rangeq.central.choice import (
    BestTree,
    CuratedAttributes,
    CuratedMarginals,
    CuratedQuantiles,
    CuratedRanges,
    best_tree,
)
from tests.rangeq.central.examples import boxes


def errors(task, epsilon="1"):
    return {item.name: item.error for item in ranking(task, epsilon).candidates}


def ranking(task, epsilon="1"):
    return ranked(task, "error", None, dict.fromkeys(task.names, (Fraction(epsilon), None)))


@pytest.mark.parametrize("domain", [2, 3, 8, 40, (5, 9), (3, 1, 4)])
@pytest.mark.parametrize("epsilon", ["1/4", "1", "8"])
def test_errors_are_the_mean_variances_of_what_is_released(domain, epsilon):
    found = ranking(CuratedRanges(domain), epsilon)
    for item in found.candidates:
        variances = item.protocol.variance(dict(enumerate(map(Between, *boxes(item.protocol)))))
        assert item.error**2 == pytest.approx(np.mean(variances))
        assert item.protocol.audit().holds
    assert found.best.error == min(item.error for item in found.candidates)


@pytest.mark.parametrize(
    ("sizes", "unordered"), [((6, 3), ()), ((4, 3, 2), ("1",)), ((2, 3, 2, 3), "0,1,2,3")]
)
def test_errors_of_questions_about_one_and_two_attributes(sizes, unordered):
    """Beside the mean variances of every such question, asked by itself."""
    task = CuratedAttributes(sizes, unordered, delta="1e-6")
    found = ranking(task)
    asked = {"flat", "tree", "wavelet", "strategy", "marginals", "gaussian"}
    cannot = {name for name, _ in found.refused}
    assert {item.name for item in found.candidates} == asked - cannot
    assert cannot <= {"tree", "wavelet"}
    for item in found.candidates:
        means: dict[str, list[float]] = {}
        for ways, view in ((k, v) for k in (1, 2) for v in combinations(range(len(sizes)), k)):
            kinds = [
                {
                    "cells": [(c, c) for c in range(sizes[i])],
                    "own": list(combinations_with_replacement(range(sizes[i]), 2)),
                    "prefixes": [(0, c) for c in range(sizes[i])],
                }
                for i in view
            ]
            for kind in ("cells", "own", "prefixes"):
                if kind == "prefixes" and (ways > 1 or not task.ordered[view[0]]):
                    continue
                lists = [
                    one["cells" if kind == "own" and not task.ordered[i] else kind]
                    for one, i in zip(kinds, view, strict=True)
                ]
                variances = [
                    item.protocol.variance(
                        {i: Between(*ends) for i, ends in zip(view, box, strict=True)}
                    )
                    for box in product(*lists)
                ]
                means.setdefault(f"{ways} {kind}", []).append(float(np.mean(variances)))
        squares = {name: float(np.mean(values)) for name, values in means.items()}
        assert item.error**2 == pytest.approx((squares["1 own"] + squares["2 own"]) / 2)
        named = {
            "one: cell": "1 cells",
            "range": "1 own",
            "quantile": "1 prefixes",
            "two: cell": "2 cells",
            "range x range": "2 own",
        }
        others = dict(item.other_errors)
        assert set(others) == (set(named) if any(task.ordered) else {"one: cell", "two: cell"})
        for name, error in others.items():
            assert error**2 == pytest.approx(squares[named[name]])
        assert item.protocol.audit().holds


def test_of_many_attributes_marginals_err_less_about_one_than_all_cells_do():
    sizes = {"age": 20, "sex": 2, "vote": 4, "region": 5, "married": 2}
    found = ranking(CuratedAttributes(sizes, unordered="sex,vote,region,married"))
    by_name = {item.name: dict(item.other_errors)["one: cell"] for item in found.candidates}
    assert by_name[found.best.name] < 0.4 * by_name["flat"]
    with pytest.raises(ValueError, match="plan curated-ranges"):
        CuratedAttributes(9)
    wide = CuratedAttributes((400, 3), unordered="1")  # queries are sampled
    tree = dict(wide.other_errors(wide.offer("tree", 1, 0).protocol, None))
    exactly = CuratedRanges(400).offer("tree", 1, 0)
    assert 0 < exactly.error < tree["range"]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 3), (3, 40), (2, 40, 3), (9, 3, 10), (3, 9, 1)])
def test_errors_beside_unordered_attributes_are_those_of_one_item(shape):
    unordered = [str(i) for i, size in enumerate(shape) if size <= 3]
    task = CuratedRanges(shape, unordered)
    found = ranking(task)
    assert {item.name for item in found.candidates} == {"flat", "tree", "strategy"}
    along = [i for i, own in enumerate(task.ordered) if own]
    first, last = boxes(CentralFlat(tuple(shape[i] for i in along), 1))
    for item in found.candidates:
        found_variances = []
        for items in product(*(range(size) for size in shape if size <= 3)):
            one = dict(zip((i for i, size in enumerate(shape) if size <= 3), items, strict=True))
            ranges = dict(zip(along, map(Between, first, last), strict=True))
            found_variances.append(np.mean(item.protocol.variance({**one, **ranges})))
        if item.name == "strategy":  # some items may have less noise than others
            assert item.error**2 == pytest.approx(np.mean(found_variances))
        else:
            assert [item.error**2] * len(found_variances) == pytest.approx(found_variances)
    # One user changes one number of each level, also with items at the top
    assert all(item.protocol.audit().holds for item in found.candidates)


@pytest.mark.slow
def test_small_domains_get_flat_histograms_and_large_ones_trees():
    best = {n: ranking(CuratedRanges(n)).best for n in (1, 2, 5, 30, 121, 1024)}
    # Noise on several cells at once beats the flat histogram from two cells on
    assert [best[n].name for n in best] == ["flat", *["strategy"] * 4, "tree"]
    for n in (3, 4, 5, 12, (3, 5), (9, 32)):
        asked = ranking(CuratedRanges(n))
        tree = next(item for item in asked.candidates if item.name == "tree")
        assert sum(share > 0 for share in tree.protocol.shares) > 1
        flat = next(item for item in asked.candidates if item.name == "flat")
        assert tree.error > flat.error
    assert isinstance(best[1].protocol, CentralFlat)
    assert isinstance(best[1024].protocol, Hierarchy)
    assert set(errors(CuratedRanges(1))) == {"flat"}
    assert errors(CuratedRanges(1024))["wavelet"] ** 2 == pytest.approx(
        Wavelet(1024, 1).sampled_average_variance()
    )


def test_unordered_attributes_get_the_flat_histogram():
    for domain, unordered in ((300, "0"), ({"a": 90, "b": 90}, "a, b")):
        found = ranking(CuratedRanges(domain, unordered))
        assert [item.name for item in found.candidates] == ["flat"]
        single = CentralFlat(1, 1).sampled_average_variance()
        assert found.best.error == pytest.approx(math.sqrt(single))


@pytest.mark.slow
def test_large_epsilon_leaves_nothing_for_trees():
    """Noise in whole users vanishes exponentially: to split epsilon costs more than it gains."""
    assert ranking(CuratedRanges(121), "1").best.name == "strategy"
    assert errors(CuratedRanges(121))["tree"] < errors(CuratedRanges(121))["flat"]
    assert ranking(CuratedRanges(121), "30").best.name == "flat"


@pytest.mark.slow
def test_the_best_tree_is_no_worse_than_usual_ones():
    for n in (50, 256, 1000):
        error = errors(CuratedRanges(n))["tree"]
        for b in (2, 4, 16):
            other = Hierarchy(n, 1, b, budget="optimal").sampled_average_variance()
            assert error**2 <= other * (1 + 1e-4)  # budgets are rounded to a thousandth


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(2,), (65536,), (65536, 16), (64,) * 3])
def test_large_shapes(shape):
    """How long that takes: ``python benchmarks/central_boxes.py``."""
    task = CuratedRanges(shape)
    assert all(math.isfinite(error) for error in errors(task).values())
    assert best_tree(shape) is best_tree(shape)
    assert len(best_tree(shape).budget) == len(best_tree(shape).branching[0])


def test_a_tree_under_items():
    tree = BestTree(((3, 4),), (1, 2)).under((5, 12, 2), (False, True, False), 1)
    assert tree.fanouts == ((5, 1), (3, 4), (2, 1))
    assert [level.shape for level in tree.levels(np.zeros((5, 12, 2), dtype=int))] == [
        (5, 3, 2),
        (5, 12, 2),
    ]


@pytest.mark.parametrize("q", ["0.5", "0.1,0.5,0.9", (0, 1), 0.25, [Fraction(1, 3)]])
def test_quantiles_by_predicted_errors(q):
    found = ranking(CuratedQuantiles(100, q))
    asked = found.task.q
    assert {item.name: item.error for item in found.candidates} == {
        "exponential": QuantileRelease(100, asked, 1).predicted_error(),
        "tree": TreeQuantiles(100, asked, 1).predicted_error(),
    }


@pytest.mark.slow
@pytest.mark.parametrize("domain", [64, (12, 9)])
def test_prefixes_are_planned_by_their_own_errors(domain):
    task = CuratedRanges(domain, workload="prefixes")
    found = ranking(task)
    last = np.indices(task.domain.sizes).reshape(len(task.domain), -1)
    for item in found.candidates:
        ends = {i: Between(np.zeros_like(own), own) for i, own in enumerate(last)}
        variances = item.protocol.variance(ends)
        assert item.error**2 == pytest.approx(np.mean(variances))
    assert found.best.name == "strategy"
    assert "prefix" in str(found) or "box" in str(found)


@pytest.mark.slow
def test_a_delta_admits_gaussian_noise():
    found = ranking(CuratedRanges(64, delta="1e-6"))
    (gaussian,) = (item for item in found.candidates if item.name == "gaussian")
    assert gaussian.protocol.audit().holds
    assert gaussian.protocol.promise == ApproximateDP(1, "1e-6")
    many = ranking(CuratedMarginals((4,) * 8, 2, delta="1e-6"), "1/4")
    assert many.best.name == "gaussian"
    assert many.best.error < 0.6 * min(
        item.error for item in many.candidates if item.name != "gaussian"
    )
    with pytest.raises(ValueError, match="delta"):
        CuratedRanges(64, delta=1)
    with pytest.raises(ValueError, match="workload"):
        CuratedRanges(64, workload="cells")


@pytest.mark.slow
@pytest.mark.parametrize("trust", ["local", "curator"])
@pytest.mark.parametrize(
    ("task", "domain"), [("curated-ranges", 32), ("curated-marginals", (4, 3, 5))]
)
def test_a_plan_of_a_curator_takes_a_delta(task, domain, trust):
    found = plan(task, domain, epsilon=1, delta="1e-6", trust=trust)
    promises = {item.name: item.protocol for item in found.candidates}
    assert promises["gaussian"].promise == ApproximateDP(1, "1e-6")
    assert promises["strategy"].promise == Privacy.from_epsilon(1)
    assert "from a curator, delta = 1e-06, epsilon = 1" in str(found)
    pure = plan(task, domain, epsilon=1, trust=trust)
    assert "gaussian" not in {item.name for item in pure.candidates}
    assert "delta" not in str(pure)
    wanted = plan(task, domain, error=9, delta="1e-6", trust=trust).candidates
    (gaussian,) = (item for item in wanted if item.name == "gaussian")
    assert gaussian.protocol.promise.delta == Fraction("1e-6")
    assert 0.9 * 9 < gaussian.error <= 9


def test_a_curator_of_quantiles_keeps_an_epsilon_alone():
    with pytest.raises(InvalidRequest, match="delta is for a central promise"):
        plan("curated-quantiles", 32, epsilon=1, delta="1e-6")
    assert plan("curated-quantiles", 32, epsilon=1, delta="1e-6", trust="curator") == plan(
        "curated-quantiles", 32, epsilon=1
    )
    with pytest.raises(InvalidRequest, match="no user reports"):
        plan("curated-ranges", 32, epsilon=1, delta="1e-6", trust="shuffled")


@pytest.mark.slow
def test_designs_that_take_long_are_left_to_those_who_ask_for_them():
    found = ranking(CuratedRanges(512, delta="1e-6"))
    assert {item.name for item in found.candidates} == {"flat", "tree", "wavelet", "gaussian"}
    assert "takes long" in dict(found.refused)["strategy"]


def test_few_quantiles_by_the_exponential_mechanism_and_many_by_a_tree():
    assert ranking(CuratedQuantiles(100)).best.name == "exponential"
    many = ranking(CuratedQuantiles(100, tuple(Fraction(i, 50) for i in range(1, 50))))
    assert many.best.name == "tree"
    beyond = ranking(CuratedQuantiles(1 << 21, "0.1,0.5"))
    assert [item.name for item in beyond.candidates] == ["exponential"]


@pytest.mark.slow
def test_the_planner_knows_the_tasks():
    found = plan("curated-ranges", {"age": 121, "sex": 2}, epsilon=1, unordered="sex")
    assert [item.name for item in found.candidates] == ["strategy", "tree", "flat"]
    assert "a range for one item of sex, in users" in str(found)
    needed = plan("curated-ranges", 121, error=50)
    assert 0.1 < needed.best.epsilon < 0.2
    assert needed.best.error <= 50
    assert plan("curated-quantiles", 121, epsilon=1, q="0.25,0.75").best.name == "exponential"
    mine = plan("curated-ranges", 121, epsilon=1, candidates={"b": lambda d, e: Hierarchy(d, e, 4)})
    assert {item.name for item in mine.candidates} == {"flat", "tree", "wavelet", "strategy", "b"}


@pytest.mark.parametrize(
    ("task", "domain", "details"),
    [
        ("curated-ranges", 0, {}),
        ("curated-ranges", 1 << 27, {}),
        ("curated-ranges", (2,) * 9, {}),
        ("curated-ranges", {"a": 3}, {"unordered": "b"}),
        ("curated-quantiles", 0, {}),
        ("curated-quantiles", 5, {"q": "2"}),
        ("curated-quantiles", 5, {"q": ""}),
        ("curated-quantiles", 5, {"q": "half"}),
    ],
)
def test_what_cannot_be_planned(task, domain, details):
    with pytest.raises(InvalidRequest):
        plan(task, domain, epsilon=1, **details)


@pytest.mark.slow
def test_marginals_by_a_curator_from_one_table_or_from_one_each():
    sizes = {"age": 5, "sex": 2, "works": 3}
    found = {item.name: item for item in plan("curated-marginals", sizes, epsilon=1).candidates}
    records = found["records"].protocol
    cells = [float(records.variance({a: 0, b: 0})) for a, b in combinations(range(3), 2)]
    assert found["records"].error == pytest.approx(math.sqrt(sum(cells) / 3))
    tables = found["marginals"].protocol
    assert list(tables) == list(combinations(sizes, 2))
    assert [table.sizes for table in tables.values()] == [(5, 2), (5, 3), (2, 3)]
    ratio = math.prod(table.audit().ratio for table in tables.values())
    assert ratio <= 1 / Privacy.from_epsilon(1).alpha
    for table in tables.values():
        assert table.variance({0: 0, 1: 0}) == pytest.approx(found["marginals"].error ** 2)
    # Of pairs noise adds up over 3, 2 or 5 cells, or is that of a third of epsilon: 9 times more
    assert found["records"].error < found["marginals"].error
    one = errors(CuratedMarginals(sizes, 1))
    assert one["marginals"] < one["records"]
    for k in (1, 2, 3):
        found_errors = errors(CuratedMarginals(sizes, k))
        # Noise in whole users has a little less variance than on a grid
        assert found_errors["strategy"] <= 1.05 * min(found_errors.values())
    assert plan("curated-marginals", [2] * 12, epsilon=1, k=2).best.name == "marginals"
    for details in ({"k": 0}, {"k": 4}, {"k": "2"}):
        with pytest.raises(InvalidRequest):
            plan("curated-marginals", sizes, epsilon=1, **details)


@pytest.mark.parametrize("epsilon", [0.3, 1.3, 4.0])
def test_what_is_planned_is_ranked_by_the_noise_that_is_drawn(epsilon):
    found = plan("curated-ranges", 40, epsilon=epsilon)
    found_errors = {item.name: item.error for item in found.candidates}
    flat = CentralFlat(40, epsilon).sampled_average_variance()
    assert found_errors["flat"] == pytest.approx(math.sqrt(flat), rel=1e-6)
    best = workload_optimal("ranges", 40, Privacy.from_epsilon(epsilon))
    # Designed for an epsilon near by, and drawn for this one
    assert found_errors["strategy"] == pytest.approx(math.sqrt(best.variance), rel=0.03)
    assert found.best.error == min(found_errors.values())

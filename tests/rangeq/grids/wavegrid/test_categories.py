"""Attributes without order: estimates that do not rest on it, sets of values, and many attributes.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from frequency import Between, UnknownVariance, of_samples, plan_survey
from frequency.exceptions import InvalidQuestion
from frequency.schema import Boolean, Categorical, Numeric, Schema
from mechdesign import InvalidRequest, plan
from mechdesign.base.numbers import Floats, Integers
from rangeq.core.density import CATEGORIES, Told, posterior_densities
from rangeq.grids import WaveEstimate, WaveGrid, best
from rangeq.grids.wavegrid import local_terms, posterior, shrinkage
from rangeq.grids.wavegrid.distributions import FittedJoint
from rangeq.grids.wavegrid.interactions import Pair
from rangeq.grids.wavegrid.local_terms import PairCandidate, PairCandidates, PairTerms
from rangeq.grids.wavegrid.posterior import category_terms
from rangeq.grids.wavegrid.shrinkage import (
    DEGREES,
    KINDS,
    TermCells,
    bases,
    each_cell,
    smooth_bases,
    turned,
)
from tests.rangeq.grids.populations import collected, told_halves
from tests.rangeq.grids.wavegrid.test_local_terms import dense, pair_about

SIZES = {"age": 30, "job": 9, "smokes": 2, "town": 12}
NAMED = ["job", "town"]


def people(n: int, rng: np.random.Generator) -> Integers:
    """Jobs have ages of their own, scattered over their numbers, and towns have jobs."""
    job = rng.choice(9, size=n, p=np.array([30, 20, 14, 10, 8, 7, 5, 4, 2]) / 100)
    middle = np.array([20, 5, 26, 12, 3, 22, 9, 15, 28])[job]
    age = np.clip(np.rint(rng.normal(middle, 4.0)), 0, 29).astype(np.int64)
    town = np.where(rng.random(n) < 0.6, (job * 5) % 12, rng.integers(0, 12, n))
    smokes = (rng.random(n) < np.where(np.isin(job, [1, 4, 6]), 0.7, 0.2)).astype(np.int64)
    return np.stack([age, job, smokes, town], axis=1)


@cache
def found() -> tuple[Integers, WaveEstimate]:
    records = people(200_000, np.random.default_rng(10))
    return records, collected(WaveGrid(SIZES, 2.0, categorical=NAMED), records)


# ------------------------------------------------------------------------------------- the priors


def test_the_posterior_of_categories_does_not_rest_on_their_order() -> None:
    rng = np.random.default_rng(2)
    functions = rng.choice([-1.0, 1.0], size=(40, 7))
    gram, order = functions.T @ functions / 40, rng.permutation(7)
    scores, widths = 900 * gram @ rng.dirichlet(np.ones(7)) + rng.normal(size=7), np.ones(7)
    told = Told(scores, 900 * gram, widths)
    moved = Told(scores[order], 900 * gram[np.ix_(order, order)], widths)
    one, other = (posterior_densities([each], CATEGORIES)[0] for each in (told, moved))
    np.testing.assert_allclose(other.frequencies, one.frequencies[order], rtol=1e-6)
    np.testing.assert_allclose(
        other.covariance, one.covariance[np.ix_(order, order)], rtol=1e-4, atol=1e-9
    )
    ordered = posterior_densities([told])[0], posterior_densities([moved])[0]
    assert np.abs(ordered[1].frequencies - ordered[0].frequencies[order]).max() > 1e-3


def test_the_posterior_of_a_pair_does_not_rest_on_the_order_of_categories() -> None:
    rng = np.random.default_rng(3)
    joint = rng.dirichlet(np.ones(48)).reshape(6, 8)
    root = [rng.normal(size=(cells, 40)) / 40**0.5 for cells in (6, 8)]
    grams = root[0] @ root[0].T, root[1] @ root[1].T
    scores = 500 * grams[0] @ joint @ grams[1] + rng.normal(size=(6, 8))
    halves = told_halves(joint, 200.0)
    pair = Pair(scores, 500, grams, (joint.sum(axis=1), joint.sum(axis=0)), halves)
    order, same = rng.permutation(6), np.arange(8)
    (first,) = _explained(pair).values()
    (other,) = _explained(
        Pair(
            scores[order],
            500,
            (grams[0][np.ix_(order, order)], grams[1]),
            (pair.margins[0][order], pair.margins[1]),
            replace(halves, left=halves.left[order]),
        )
    ).values()
    np.testing.assert_allclose(
        FittedJoint(pair, other).mean, FittedJoint(pair, first).mean[order], rtol=1e-6
    )
    turned = FittedJoint(pair, first).reordered(order, same)
    np.testing.assert_allclose(turned.mean, FittedJoint(pair, other).mean, rtol=1e-6)
    ends = (np.array([0.0, 1.0]), np.array([2.0, 5.0])), (np.zeros(2), np.array([3.0, 7.5]))
    np.testing.assert_allclose(
        turned.variances(*ends), FittedJoint(pair, other).variances(*ends), rtol=1e-6
    )


def _explained(pair: Pair) -> Any:
    cells = TermCells(pair.margins[1], np.arange(9), pair.grams[1])
    ordered = [
        *smooth_bases(cells),
        *bases(cells),
    ]
    kinds = len(DEGREES) + KINDS
    likely = np.repeat([0.5, 0.5 / kinds], [1, kinds])
    return PairCandidates.of({0: pair}, {0: category_terms(pair, ordered, 0)}, likely).explained()


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_of_categories_maximise_the_evidence(
    axis: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against a search that looks at the evidence of a dense Gaussian alone."""
    rng, tau = np.random.default_rng(4), 0.4
    for module in (shrinkage, posterior):
        monkeypatch.setattr(module, "SCALES", np.array([tau]))
    table = np.outer(rng.dirichlet(np.full(6, 9.0)), rng.dirichlet(np.full(5, 9.0)))
    table[2] *= np.array([3.0, 1.0, 0.4, 0.4, 0.4])  # the only row that is unlike the others
    table /= table.sum()
    pair = pair_about(rng, table if axis == 0 else table.T, 20_000.0)
    mass, gram = pair.margins[1 - axis], pair.grams[1 - axis]
    partner = smooth_bases(TermCells(mass, np.arange(6), gram))[:1]
    found = category_terms(pair, partner, axis)
    independent = pair.independent()

    def loss(logarithms: Floats) -> float:
        root = [each_cell(mass) for mass in pair.margins]
        root[axis] = root[axis] * np.exp(logarithms / 2)
        root[1 - axis] = partner[0].functions
        prior = (1 - logarithms - np.exp(-logarithms)).sum() / 2
        return -dense(pair, independent.joint, np.kron(*root), tau)[0] - prior

    best = -float(minimize(loss, np.zeros(6)).fun)
    candidate = PairCandidate(independent, independent.likelihood)
    (none, terms), *_ = local_terms._logarithms(pair, [candidate], found)
    assert -loss(np.zeros(6)) < best - 0.5
    assert best - 0.05 < terms - none < best + 1e-4


def test_a_category_that_alone_depends_on_another_attribute_is_shrunk_as_if_it_were_alone() -> None:
    """Cooks alone are young: with one scale for all jobs errors are half as large again."""
    rng, squares = np.random.default_rng(5), np.zeros(2)
    table = np.outer(rng.dirichlet(np.full(20, 9.0)), rng.dirichlet(np.full(16, 9.0)))
    table[3, 8:] *= 0.1
    table /= table.sum()
    for _ in range(8):
        pair = pair_about(rng, table, 1_000_000.0)
        ordered = smooth_bases(TermCells(pair.margins[1], np.arange(17), pair.grams[1]))
        alike = turned(each_cell(pair.margins[0]), pair.grams[0])[0]
        for place, details in enumerate(
            (category_terms(pair, ordered, 0), PairTerms([alike] * 3, ordered))
        ):
            likely = np.repeat([0.1, 0.3], [1, 3])
            each = PairCandidates.of({0: pair}, {0: details}, likely).explained()[0]
            squares[place] += ((FittedJoint(pair, each).mean - table) ** 2).sum()
    assert squares[1] > 2 * squares[0]


@pytest.mark.slow
def test_two_independent_attributes_of_many_categories_are_answered_as_independent() -> None:
    """With a scale for each category noise was fitted: this was 0.03 and more in six of ten."""
    off = []
    for seed in range(10):
        rng, n = np.random.default_rng(seed), 100_000
        shares = rng.dirichlet(np.full(60, 2.0), size=2)
        records = np.stack([rng.choice(60, n, p=own) for own in shares], axis=1)
        joint = collected(WaveGrid([60, 60], 1.0, n, categorical=[0, 1]), records).joints[0, 1]
        off.append(np.sqrt(((joint.mean - np.outer(*joint.margins)) ** 2).sum()))
    assert np.mean(off) < 0.005


# ---------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize("seed", [19, 28, 31, 32])
def test_several_attributes_have_no_more_than_each(seed: int) -> None:
    """Answers of many categories, each at least 0, are added up: here to more than all."""
    rng, n = np.random.default_rng(seed), 1000
    records = np.stack([rng.integers(0, size, n) for size in (32, 16, 8)], axis=1)
    estimate = collected(WaveGrid([32, 16, 8], 0.3, n, categorical=[1]), records)
    answer = estimate.answer({0: Between(3, 28), 1: list(range(15)), 2: Between(0, 6)})
    for where in ({0: Between(3, 28)}, {1: list(range(15))}, {2: Between(0, 6)}):
        assert answer.value <= estimate.answer(where).value + 1e-9
    low, high = answer.interval()
    assert low <= answer.value <= high


@pytest.mark.slow
def test_sets_of_values_have_the_sum_of_their_answers_and_an_error() -> None:
    records, estimate = found()
    cases: list[tuple[str, list[int], dict[str, int]]] = [
        ("job", [0, 2, 7], {}),
        ("job", [1, 4, 6], {"smokes": 1}),
        ("town", [11, 0], {}),
    ]
    for name, values, rest in cases:
        each = [estimate.answer({name: value, **rest}).value for value in values]
        answer = estimate.answer({name: values, **rest})
        assert answer.value == pytest.approx(sum(each), abs=1e-9)
        held = np.isin(records[:, list(SIZES).index(name)], values)
        for other, value in rest.items():
            held &= records[:, list(SIZES).index(other)] == value
        assert abs(answer.value - held.mean()) < 6 * answer.variance**0.5
    # Of ordered attributes, too
    ages = estimate.answer({"age": [3, 4, 20], "job": [0, 1]})
    assert ages.value == pytest.approx(
        sum(estimate.answer({"age": age, "job": Between(0, 1)}).value for age in (3, 4, 20)),
        abs=1e-9,
    )
    # All values together are no condition, and none are nobody
    assert estimate.answer({"job": list(range(9)), "age": Between(0, 9)}).value == pytest.approx(
        estimate.answer({"age": Between(0, 9)}).value
    )
    assert estimate.answer({"job": [], "age": Between(0, 9)}).value == 0


def test_the_error_of_a_set_is_that_of_its_categories_together() -> None:
    _, estimate = found()
    axis, places = estimate.axes[1], [0, 2, 7]
    expected = axis.changes[np.ix_(places, places)].sum()
    answer = estimate.answer({"job": places})
    assert answer.variance == pytest.approx(
        expected + answer.value * (1 - answer.value) / estimate.reports
    )


@pytest.mark.slow
def test_an_order_that_is_none_misleads() -> None:
    records, estimate = found()
    rng, ordered = np.random.default_rng(4), collected(WaveGrid(SIZES, 2.0), records)
    squares = np.zeros(2)
    for _ in range(60):
        jobs, first = rng.choice(9, 4, replace=False).tolist(), int(rng.integers(0, 15))
        age = Between(first, first + 14)
        held = np.isin(records[:, 1], jobs)
        held &= (records[:, 0] >= first) & (records[:, 0] <= first + 14)
        for k, one in enumerate((estimate, ordered)):
            squares[k] += (one.answer({"job": jobs, "age": age}).value - held.mean()) ** 2
    assert squares[0] < squares[1]
    assert (squares[0] / 60) ** 0.5 < 0.02


def test_an_attribute_of_categories_has_no_quantiles() -> None:
    _, estimate = found()
    assert estimate.quantile(0.5, "age") in range(10, 22)
    with pytest.raises(InvalidQuestion, match="categories"):
        estimate.quantile(0.5, "job")
    with pytest.raises(InvalidQuestion, match="categories"):
        estimate.quantile_interval(0.5, attribute="town")


@pytest.mark.slow
def test_intervals_cover() -> None:
    """Collections are independent, answers of one are not: 85 % of 1,600, where 92 to 97 are
    measured for others.
    """
    rng, held = np.random.default_rng(5), []
    for seed in range(8):
        records = people(60_000, np.random.default_rng(100 + seed))
        estimate = collected(WaveGrid(SIZES, 1.0, categorical=NAMED), records, seed)
        for _ in range(200):
            jobs, towns = (rng.choice(k, k // 2, replace=False).tolist() for k in (9, 12))
            first = int(rng.integers(0, 16))
            where = {"job": jobs, "town": towns, "age": Between(first, first + 14), "smokes": 1}
            kept = rng.choice(list(where), rng.integers(1, 4), replace=False).tolist()
            low, high = estimate.answer({name: where[name] for name in kept}).interval(0.95)
            inside = np.ones(len(records), dtype=bool)
            for name in kept:
                column, values = records[:, list(SIZES).index(name)], where[name]
                wanted = np.arange(first, first + 15) if name == "age" else values
                inside &= np.isin(column, wanted)
            held.append(low <= inside.mean() <= high)
    assert np.mean(held) > 0.85


# ---------------------------------------------------------------------------------------- samples


@pytest.mark.slow
def test_samples_differ_as_much_as_answers_err() -> None:
    _, estimate = found()
    samples = estimate.samples(100_000, 24, np.random.default_rng(12))
    assert all(sample.shape == (100_000, 4) for sample in samples)
    ratios = []
    for where in (
        {"job": [0, 2, 7]},
        {"age": Between(5, 14)},
        {"job": [1, 4], "smokes": 1},
        {"age": Between(0, 9), "town": [0, 3, 5]},
        {"age": Between(10, 20), "job": [3, 5, 6]},
    ):
        told = []
        for sample in samples:
            inside = np.ones(len(sample), dtype=bool)
            for name, asked in where.items():
                column = sample[:, list(SIZES).index(name)]
                values = asked
                if isinstance(asked, Between):
                    values = np.arange(asked.first, asked.last + 1)
                inside &= np.isin(column, values)
            told.append(inside.mean())
        answer = estimate.answer(where)
        together = of_samples(told)
        assert abs(together.value - answer.value) < 4 * answer.variance**0.5
        ratios.append(together.variance / answer.variance)
    # Of 5 variances, each with 23 degrees of freedom: by chance hardly ever off by half
    assert 0.5 < np.mean(ratios) < 1.6
    # Copies of one sample would tell nothing
    assert len({sample.tobytes() for sample in samples}) == 24
    for number in (0, 1.5):
        with pytest.raises(ValueError, match="number"):
            estimate.samples(10, number)


def test_nobody_has_no_samples() -> None:
    nobody = collected(WaveGrid(SIZES, 1.0), people(1, np.random.default_rng(1))[:0])
    with pytest.raises(ValueError, match="no reports"):
        nobody.samples(10, 2)


# ------------------------------------------------------------------------------- many attributes


@pytest.mark.slow
def test_queries_may_name_all_of_many_attributes() -> None:
    rng = np.random.default_rng(6)
    hidden = rng.random((40_000, 1)) < 0.5
    records = ((rng.random((40_000, 25)) < 0.15) ^ hidden).astype(np.int64)
    pairs = [(place, place + 1) for place in range(24)]
    estimate = collected(WaveGrid([2] * 25, 4.0, pairs=pairs), records)
    whole = estimate.answer(dict.fromkeys(range(25), Between(0, 1)))
    assert whole.value == 1
    fifteen = dict.fromkeys(range(15), 1)
    answer = estimate.answer(fifteen)
    # A chain of pairs, each of which agrees with the one before in .85^2 + .15^2 of the records
    assert answer.value == pytest.approx(0.5 * 0.745**14, rel=0.5)
    assert answer.variance > 0
    low, high = answer.interval()
    assert low < answer.value < high
    # One pair of these was not asked about
    with pytest.raises(UnknownVariance):
        _ = estimate.answer({0: 1, 5: 1}).variance


def test_pairs_that_were_not_asked_about_follow_from_others() -> None:
    rng = np.random.default_rng(7)
    first = rng.integers(0, 6, 100_000)
    steps = rng.random((2, 100_000)) < 0.9
    second = np.where(steps[0], (first * 5 + 2) % 6, rng.integers(0, 6, 100_000))
    third = np.where(steps[1], second, rng.integers(0, 6, 100_000))
    records = np.stack([first, second, third], axis=1)
    protocol = WaveGrid([6] * 3, 3.0, categorical=[0, 1, 2], pairs=[(0, 1), (2, 1)])
    estimate = collected(protocol, records)
    truth = np.mean((first <= 1) & (third == 2))
    assert estimate.answer({0: [0, 1], 2: 2}).value == pytest.approx(truth, abs=0.02)
    assert np.mean((first <= 1) * np.mean(third == 2)) < truth - 0.05
    assert estimate.response_matrix(2, 0).sum() == pytest.approx(1)


# ------------------------------------------------------------------------------------- two rounds


@pytest.mark.slow
def test_a_second_round_asks_about_the_pairs_that_matter() -> None:
    rng = np.random.default_rng(8)
    records = rng.integers(0, 5, size=(60_000, 8))
    agree = rng.random(60_000) < 0.7
    records[agree, 3] = (records[agree, 1] * 3) % 5
    records[agree, 6] = records[agree, 2]
    first = WaveGrid([5] * 8, 3.0, categorical=[1, 3])
    earlier = first.aggregate(first.privatize(records[:20_000], rng))
    second = first.second_round(earlier, 40_000)
    assert {("1", "3"), ("2", "6")} <= set(second.pairs)
    assert len(second.pairs) < 28
    few = first.second_round(earlier, 40_000, most=2).pairs
    assert len(few) <= 16
    for pairs in (few, second.pairs):
        partners = Counter(name for pair in pairs for name in pair)
        assert set(partners) == set(second.attributes.names)
        assert min(partners.values()) >= 2
    later = second.aggregate(second.privatize(records[20_000:], rng))
    both = second.estimate(later, [(first, earlier)])
    assert both.reports == 60_000
    # Every pair has reports, and those of the second round have fewer errors
    where = {1: 2, 3: 1}
    before, after = (
        np.mean([one.answer({1: a, 3: b}).variance for a in range(5) for b in range(5)])
        for one in (first.estimate(earlier), both)
    )
    assert after < before / 4
    assert both.answer({0: 1, 5: 1}).variance > 0
    assert abs(both.answer(where).value - np.mean((records[:, 1] == 2) & (records[:, 3] == 1))) < (
        6 * both.answer(where).variance ** 0.5
    )
    # Rounds of the same protocol are one collection
    again = first.aggregate(first.privatize(records[20_000:], rng))
    together, apart = first.estimate(earlier + again), first.estimate(again, [(first, earlier)])
    assert apart.answer(where).value == pytest.approx(together.answer(where).value, abs=1e-6)


def test_what_is_no_round_is_refused() -> None:
    protocol = WaveGrid([5, 4, 3], 1.0)
    empty = protocol.aggregate(protocol.privatize(np.zeros((0, 3), dtype=int)))
    with pytest.raises(ValueError, match="no reports"):
        protocol.second_round(empty, 100)
    some = protocol.aggregate(protocol.privatize(np.zeros((10, 3), dtype=int)))
    for most in (0, -1, 1.5):
        with pytest.raises(ValueError, match="most"):
            protocol.second_round(some, 100, most)
    with pytest.raises(ValueError, match="n must be"):
        protocol.second_round(some, 0)
    other = WaveGrid([5, 4, 2], 1.0)
    with pytest.raises(ValueError, match="same attributes"):
        protocol.estimate(some, [(other, empty)])
    alone = WaveGrid([5], 1.0)
    with pytest.raises(ValueError, match="pairs"):
        alone.second_round(alone.aggregate(alone.privatize([[1]])), 10)


# -------------------------------------------------------------------------------- wrong parameters


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"categorical": ["height"]}, "height"),
        ({"categorical": [3]}, "place"),
        ({"pairs": [("a", "b")]}, "asks about c"),
        ({"pairs": [("a", "a"), ("b", "c")]}, "different"),
        ({"pairs": ["ab", ("b", "c")]}, "two attributes"),
        ({"pairs": [("a", "b", "c")]}, "two attributes"),
        ({"pairs": []}, "asks about"),
        ({"pairs": [("a", "d"), ("b", "c")]}, "'d'"),
    ],
)
def test_parameters_are_checked(more: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        WaveGrid({"a": 5, "b": 4, "c": 3}, 1.0, **more)


def test_many_categories_are_refused() -> None:
    assert WaveGrid([256, 3], 1.0, categorical=[0]).report_bits > 0
    with pytest.raises(ValueError, match="join the rare ones"):
        WaveGrid([257, 3], 1.0, categorical=[0])


def test_a_schema_says_which_attributes_are_categorical() -> None:
    schema = Schema(
        [
            Numeric("age", low=0, high=30, bins=30),
            Categorical("job", list("abcdefghi")),
            Boolean("smokes"),
            Categorical("town", list("abcdefghijkl")),
        ]
    )
    assert WaveGrid(schema, 2.0).parameters == WaveGrid(SIZES, 2.0, categorical=NAMED).parameters
    assert best(schema, 2.0, 1000).categorical == ("job", "smokes", "town")


@pytest.mark.parametrize("sizes", [[3], [3, 1], [1, 1], [256, 2]])
def test_few_users_and_odd_domains(sizes: list[int]) -> None:
    protocol = WaveGrid(sizes, 1.0, categorical=range(len(sizes)))
    records = np.zeros((1, len(sizes)), dtype=int)
    estimate = collected(protocol, records)
    assert 0 <= estimate.answer({0: [0, sizes[0] - 1]}).value <= 1
    nobody = collected(protocol, records[:0])
    assert np.isnan(nobody.answer({0: 0}).value)
    assert nobody.answer({0: [0, sizes[0] - 1]}).value != 0


@pytest.mark.slow
def test_plans_take_categories_for_what_they_are() -> None:
    found = plan("conjunctions", SIZES, epsilon=2.0, n=100_000, categorical=NAMED)
    assert {one.name for one in found.candidates} == {"WaveGrid", "Uniform"}
    assert found.best.protocol.parameters == WaveGrid(SIZES, 2.0, categorical=NAMED).parameters
    in_one = plan("conjunctions", SIZES, epsilon=2.0, n=100_000, categorical=", ".join(NAMED))
    assert in_one.best.protocol == found.best.protocol
    assert "a range of each of two attributes, or a category, over" in str(found)
    with pytest.raises(InvalidRequest, match="height"):
        plan("conjunctions", SIZES, epsilon=2.0, n=100_000, categorical=["height"])
    schema = Schema(
        [Numeric("age", low=0, high=30, bins=30), Categorical("job", list("abcdefghi"))]
    )
    some = partial(WaveGrid, categorical=["job"], pairs=[("age", "job"), ("smokes", "town")])
    own = plan("conjunctions", SIZES, epsilon=2.0, n=100_000, candidates={"mine": some})
    assert next(one for one in own.candidates if one.name == "mine").error > 0
    survey = plan_survey("conjunctions", schema, epsilon=2.0, n=100_000).survey
    assert survey.protocol.categorical == ("job",)

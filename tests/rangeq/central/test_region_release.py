"""Regions in regions: privacy by enumeration, estimates by expectation, slow twins."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import scipy

from frequency.exceptions import InvalidQuestion
from mechdesign import InvalidCount, Privacy, named
from mechdesign.base.files import digest_of
from mechdesign.base.numbers import bit_source
from mechdesign.exceptions import InvalidFile, InvalidTable
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.tables import TableRelease
from rangeq.central.region_release import RegionRelease, RegionStatement, release_regions
from rangeq.central.regions import Regions
from tests.rangeq.core.test_tree_inference import brute

PATHS = [
    ("E", "K", "a"),
    ("E", "K", "b"),
    ("E", "S", "c"),
    ("E", "S", "d"),
    ("E", "S", "e"),
    ("E", "f"),
]

BUDGETS = ["equal", "leaves", (1, 0, 3)]


def laplace(alpha, noise):
    """The probability of discrete Laplace noise."""
    return (1 - alpha) / (1 + alpha) * alpha ** abs(noise)


def worst_ratio(levels):
    """The largest ratio of likelihoods over neighbouring counts, of two leaves of one person."""
    top, own = levels
    m = named.geometric(1, alpha=own)
    likelihoods = {}
    for counts in product(range(2), repeat=2):
        for outputs in product(range(2), repeat=2):
            leaves = m.table[outputs[0]][counts[0]] * m.table[outputs[1]][counts[1]]
            # Beyond these the ratio is that at the ends
            for root in range(-1, 4):
                told = 1 if top is None else laplace(top, root - sum(counts))
                likelihoods[counts, outputs, root] = leaves * told
    return max(
        likelihoods[counts, outputs, root] / likelihoods[others, outputs, root]
        for counts, outputs, root in likelihoods
        for others in product(range(2), repeat=2)
        if sum(abs(a - b) for a, b in zip(counts, others, strict=True)) == 1
    )


@pytest.mark.parametrize("levels", [("1/2", "2/3"), ("9/10", "1/5"), (None, "1/3")])
def test_the_stated_privacy_is_the_worst_ratio_of_all_outputs(levels):
    levels = tuple(None if own is None else Fraction(own) for own in levels)
    statement = RegionStatement(levels)
    assert worst_ratio(levels) == 1 / statement.alpha
    if levels[0] is not None:
        # A statement that forgets a level is found out
        assert worst_ratio(levels) > 1 / RegionStatement((None, levels[1])).alpha


def released(regions, outputs, noisy, mechanisms, sizes, levels):
    leaves = TableRelease(outputs, sizes, mechanisms)
    return RegionRelease(regions, leaves, noisy, levels)


def test_estimates_and_their_variances_are_unbiased_over_all_outputs():
    regions = Regions([("E", "a"), ("E", "b"), ("c",)])
    sizes, counts = np.array([1, 2, 1]), np.array([1, 2, 0])
    alpha, top = Fraction(1, 2), Fraction(2, 3)
    mechanisms = {n: named.geometric(n, alpha=alpha) for n in (1, 2)}
    truth = regions.sums(counts)
    mean, second, told = np.zeros((3, 4))
    # The estimate is linear in the noise: two of its values of mean 0 and its variance are enough
    deviation = float(2 * top / (1 - top) ** 2) ** 0.5
    for outputs in product(*(range(n + 1) for n in sizes)):
        columns = [mechanisms[n].table for n in sizes]
        chance = np.prod([float(t[i][j]) for t, i, j in zip(columns, outputs, counts, strict=True)])
        for sign in (-1, 1):
            noisy = np.where(regions.inner, truth + sign * deviation, 0.0)
            parts = released(regions, outputs, noisy, mechanisms, sizes, [top])
            estimate = parts.estimate()
            mean += chance / 2 * estimate.values
            second += chance / 2 * estimate.values**2
            told += chance / 2 * estimate.variances
    np.testing.assert_allclose(mean, truth, atol=1e-9)
    np.testing.assert_allclose(told, second - mean**2, atol=1e-9)
    assert (second - mean**2 <= estimate.worst_variances + 1e-9).all()


@pytest.mark.parametrize("budget", BUDGETS)
def test_it_is_dense_least_squares(budget):
    regions, rng = Regions(PATHS), np.random.default_rng(2)
    sizes = np.array([2, 5, 3, 3, 2, 5])
    counts = np.array([1, 4, 0, 3, 2, 5])
    found = release_regions(regions, counts, sizes, "0.7", budget=budget, rng=rng)
    noise, y = np.full(len(regions), np.inf), found.noisy.astype(float)
    for leaf, size, output in zip(regions.leaves, sizes, found.leaves.released, strict=True):
        law = UnbiasedEstimate(found.leaves.mechanisms[size])
        noise[leaf], y[leaf] = max(law.variances), law.values[output]
    for depth, alpha in enumerate(found.statement.levels[:-1]):
        if alpha is not None:
            inner = [k for k in range(len(regions)) if k in regions.parents]
            for k in inner:
                if regions.depths[k] == depth:
                    noise[k] = 2 * alpha / (1 - alpha) ** 2
    matrix = brute(regions.parents.tolist(), noise)
    estimate = found.estimate()
    np.testing.assert_allclose(estimate.values, matrix @ y, atol=1e-9)
    leaves = matrix[:, regions.leaves]
    for name, rows in (("E", [0]), (["K", ("E", "S", "d")], [1, regions.number("d")])):
        answer = estimate.answer(name)
        assert answer.value == pytest.approx((matrix @ y)[rows].sum())
        weights = matrix[rows].sum(axis=0)
        own = [weights**2 @ each for each in estimate.errors[:3]]
        assert answer.variance == pytest.approx(min(max(own[0], own[1]), own[2]))
    if budget == "leaves":
        np.testing.assert_allclose(leaves, regions_below(regions), atol=1e-12)
        assert estimate.answer("E").value == pytest.approx(y[regions.leaves].sum())


def regions_below(regions):
    return np.array([regions.covered([k]) for k in range(len(regions))]).astype(float)


def test_alphas_multiply_to_the_one_that_was_asked_for():
    regions, zeros = Regions(PATHS), np.zeros(6, dtype=int)
    for alpha in ("1/2", "9/10", "1/1000", "12345/12346"):
        for budget in ("equal", "leaves", (0, 1, 7), ("1/3", 0.125, 2)):
            found = release_regions(regions, zeros, zeros, Privacy(alpha=alpha), budget=budget)
            assert found.statement.alpha == Fraction(alpha)
            assert all(own is None or 0 < own < 1 for own in found.statement.levels)
    only = release_regions(regions, zeros, zeros, Privacy(alpha="9/10"), budget="leaves")
    assert only.statement.levels == (None, None, Fraction(9, 10))


def test_intervals_cover():
    """A binomial count of 400 draws is below 351 with probability 4e-9 if each has 95%."""
    regions, rng = Regions(PATHS), np.random.default_rng(7)
    sizes = np.full(6, 3)
    counts = np.array([0, 1, 3, 2, 0, 3])
    truth, asked = regions.sums(counts), ["E", "S", "a", ["K", "f"]]
    true = [truth[0], truth[regions.number("S")], 0, truth[regions.number("K")] + 3]
    covered, narrow = np.zeros(4), np.zeros(4)
    first = release_regions(regions, counts, sizes, Privacy(alpha="1/8"), rng=rng)
    assert first.statement.levels == (Fraction(1, 2),) * 3
    law = DiscreteLaplace(alpha=first.statement.levels[0])
    mechanism = first.leaves.mechanisms[3]
    for _ in range(400):
        leaves = TableRelease(mechanism.release(counts, rng), sizes, {3: mechanism})
        noisy = np.where(regions.inner, truth + law.draw(len(regions), bit_source(rng)), 0)
        estimate = replace(first, leaves=leaves, noisy=noisy).estimate()
        for k, (names, value) in enumerate(zip(asked, true, strict=True)):
            answer = estimate.answer(names)
            low, high = answer.interval(0.95)
            covered[k] += low <= value <= high
            narrow[k] += abs(answer.value - value) <= answer.variance**0.5
    assert (covered >= 351).all()
    # Intervals of one standard error are found out
    assert (narrow < 351).all()


def test_one_leaf_alone_and_regions_of_nobody():
    regions = Regions([("a",)])
    found = release_regions(regions, [0], [0], 1)
    assert found.statement.levels == (Fraction(found.statement.alpha),)
    assert found.estimate().answer("a").value == 0
    assert found.estimate().answer([]).value == 0


def test_it_prints_whom_it_protects_and_what_it_estimates():
    regions = Regions([("E", "a"), ("E", "b")])
    found = release_regions(
        regions, [1, 0], [1, 1], Privacy(alpha="1/6"), budget=(0, 1), rng=np.random.default_rng(1)
    )
    assert str(found).splitlines()[1:] == [
        "protected   one person's answer: the count of one leaf may change by one, and that",
        "            of each region above it",
        "loss        likelihoods change by a factor of at most 1/alpha,",
        "            alpha = 1/6, exactly, the product of: depth 0 not asked, leaves 1/6;",
        "            epsilon at most 1.79175947, rounded up",
        "public      the sizes of leaves",
        "randomness  SEEDED: reproducible, and therefore not private",
    ]
    assert str(found.estimate()).splitlines()[2].startswith("E / a   ")


def test_what_does_not_go_together_is_refused():
    regions = Regions([("E", "a"), ("E", "b")])
    for counts, sizes in (([1], [1, 1]), ([1, 1], [1]), (1, 1)):
        with pytest.raises(InvalidTable, match="a count and a size for each of the 2 leaves"):
            release_regions(regions, counts, sizes, 1)
    with pytest.raises(InvalidCount):
        release_regions(regions, [1, 2], [1, 1], 1)
    for budget in ("optimal", (1,), (1, 0), (1, -1), (1, 1, 1)):
        with pytest.raises(ValueError, match=r"budget must be|weights must be"):
            release_regions(regions, [1, 1], [1, 1], 1, budget=budget)
    with pytest.raises(ValueError, match="too small a share"):
        release_regions(regions, [1, 1], [1, 1], 1, budget=(1e-30, 1))
    for neighbours in ("all", 2, [(0, 1)]):
        with pytest.raises(ValueError, match="differ by one"):
            release_regions(regions, [1, 1], [1, 1], Privacy(alpha="1/2", neighbours=neighbours))
    with pytest.raises(ValueError, match="epsilon of 0"):
        release_regions(regions, [1, 1], [1, 1], 0)
    estimate = release_regions(regions, [1, 1], [1, 1], 1).estimate()
    for names in (["E", "a"], ["a", "a"]):
        with pytest.raises(InvalidQuestion, match="nobody in common"):
            estimate.answer(names)


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_file_holds_all_that_was_released(budget, tmp_path):
    path, regions, rng = tmp_path / "regions.json", Regions(PATHS), np.random.default_rng(1)
    saved = release_regions(regions, [1, 0, 2, 1, 0, 3], [3] * 6, 1, budget=budget, rng=rng)
    saved.save(path)
    loaded = RegionRelease.load(path)
    assert loaded.regions.paths == regions.paths
    assert str(loaded) == str(saved)
    assert loaded.estimate().values.tolist() == saved.estimate().values.tolist()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["regions"].pop(),
        lambda content: content["regions"].append(content["regions"][0]),
        lambda content: content.update(regions=3),
        lambda content: content["levels"].pop(),
        lambda content: content["levels"].__setitem__(0, "3/2"),
        lambda content: content["levels"].__setitem__(0, 0.5),
        lambda content: content["noisy"].pop(),
        lambda content: content["noisy"].__setitem__(0, 0.5),
        lambda content: content["noisy"].__setitem__(0, 1 << 70),
        lambda content: content["leaves"].update(overlap=2),
        lambda content: content["leaves"].update(released=[9] * 6),
        lambda content: content.update(leaves=None),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(change, tmp_path):
    path, regions = tmp_path / "regions.json", Regions(PATHS)
    release_regions(regions, [1, 0, 2, 1, 0, 3], [3] * 6, 1).save(path)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps({**content, "digest": digest_of(content)}))
    with pytest.raises(InvalidFile):
        RegionRelease.load(path)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("size", [1, 4, 40])
def test_whole_numbers_are_the_nearest_that_are_possible_and_add_up(budget, size):
    regions = Regions(PATHS)
    rng = np.random.default_rng(size)
    sizes = rng.integers(0, size + 1, len(PATHS))
    for seed in range(6):
        counts = rng.integers(0, sizes + 1)
        estimate = release_regions(
            regions, counts, sizes, "1/2", budget=budget, rng=np.random.default_rng(seed)
        ).estimate()
        whole = estimate.whole()
        assert (whole >= 0).all()
        assert (whole <= estimate.sizes).all()
        # Each region is the sum of the leaves in it
        member = np.array(
            [[leaf[: len(path)] == path for leaf in PATHS] for path in regions.paths], dtype=float
        )
        assert (whole == member @ whole[regions.leaves]).all()
        noise = np.where(estimate.inference.noise > 0, estimate.inference.noise, np.inf)
        root = noise[:, None] ** -0.5 * member
        target = root @ estimate.values[regions.leaves]
        top = np.maximum(sizes, 1e-12)
        nearest = scipy.optimize.lsq_linear(root, target, (0, top), tol=1e-12).x
        # Rounding moves each leaf by less than one
        assert np.abs(whole[regions.leaves] - nearest).max() < 1 + 1e-3

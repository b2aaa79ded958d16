"""`rangeq.core.estimate`: answers about ranges, prefixes and quantiles."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy.special import ndtri

from frequency.exceptions import InvalidQuestion
from rangeq import (
    Between,
    DecomposedHistogram,
    Distribution,
    Flat,
    HaarHRR,
    HierarchicalHistogram,
    RangeEstimate,
    shaped,
)
from rangeq.core.estimate import InvalidRange

KINDS = [
    HaarHRR(20, 1.0),
    HierarchicalHistogram(20, 1.0, 4),
    DecomposedHistogram(20, 1.0, 4, "HRR"),
    Flat(20, 1.0),
]
kinds = pytest.mark.parametrize("protocol", KINDS, ids=lambda p: type(p).__name__)
HELD = np.arange(20) * 30 + 10


def estimated(protocol, n: int = 100, seed: int = 0) -> RangeEstimate:
    return protocol.estimate(protocol.simulate(HELD * n // 100, np.random.default_rng(seed)))


def plain() -> Distribution:
    return Distribution(np.array([0.1, 0.2, 0.0, 0.4, 0.3]))


def test_closed_intervals() -> None:
    d = plain()
    assert d.range(0, 0) == pytest.approx(0.1)
    assert d.range(1, 3) == pytest.approx(0.6)
    assert d.range(2, 2) == pytest.approx(0, abs=1e-15)
    assert d.range(0, 4) == pytest.approx(1)
    assert d.prefix(0) == pytest.approx(0.1)
    assert d.prefix(3) == pytest.approx(0.7)
    assert d.cdf() == pytest.approx([0.1, 0.3, 0.3, 0.7, 1.0])
    assert d.prefix(np.arange(5)) == pytest.approx(d.cdf())
    assert isinstance(d.range(1, 3), float)
    assert isinstance(d.prefix(3), float)
    assert isinstance(d.quantile(0.5), int)


def test_scalars_and_arrays() -> None:
    d = plain()
    assert d.range([0, 1], 3) == pytest.approx([0.7, 0.6])
    assert d.range(np.uint8(1), np.int16(3)) == pytest.approx(0.6)
    assert d.range([[0], [1]], [2, 3, 4]).shape == (2, 3)
    assert d.range(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).shape == (0,)
    assert d.quantile([0.0, 0.5]).tolist() == [0, 3]
    assert d.quantile(np.array([[0.5], [1.0]])).tolist() == [[3], [4]]


def test_cdf_is_a_copy() -> None:
    d = plain()
    d.cdf()[0] = 5
    assert d.cdf()[0] == pytest.approx(0.1)
    with pytest.raises(ValueError, match="read-only"):
        d.frequencies[0] = 5


BAD = [
    (-1, 2),
    (0, 5),
    (3, 2),
    (5, 5),
    (0.0, 2),
    (0, 2.5),
    ("0", 1),
    (True, 2),
    (None, 2),
    ([0, 3], 2),
    ([0, 0], [1, 5]),
    (1 << 64, 1 << 65),
]


@pytest.mark.parametrize("ends", BAD, ids=str)
def test_wrong_ends(ends) -> None:
    protocol = HaarHRR(5, 1.0)
    estimate = protocol.estimate(protocol.simulate(np.full(5, 100), np.random.default_rng(0)))
    for answer in (plain().range, estimate.range):
        with pytest.raises(ValueError, match="range"):
            answer(*ends)
    with pytest.raises(InvalidQuestion):
        estimate.answer(ends)
    inconsistent = DecomposedHistogram(5, 1.0, 2)
    estimate = inconsistent.estimate(
        inconsistent.simulate(np.full(5, 100), np.random.default_rng(0))
    )
    with pytest.raises(ValueError, match="range"):
        estimate.range(*ends)
    with pytest.raises(InvalidQuestion):
        estimate.answer(ends)


@pytest.mark.parametrize("last", [-1, 5, 2.0, "1", None, [0, 5]])
def test_wrong_prefixes(last) -> None:
    with pytest.raises(ValueError, match="range"):
        plain().prefix(last)


def test_wrong_ends_are_named() -> None:
    with pytest.raises(InvalidRange, match=r"\[3, 2\] is not a range within 0 .. 4") as refusal:
        plain().range([0, 3], [1, 2])
    assert refusal.value.index == 1


@pytest.mark.parametrize("phi", [-0.1, 1.1, math.nan, [0.5, 2.0], math.inf])
def test_wrong_fractions(phi) -> None:
    with pytest.raises(ValueError, match="phi"):
        plain().quantile(phi)
    with pytest.raises(ValueError, match="phi"):
        estimated(KINDS[0]).quantile_interval(phi)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan])
def test_wrong_confidence(confidence) -> None:
    estimate = estimated(KINDS[0])
    with pytest.raises(ValueError, match="confidence"):
        estimate.answer(Between(0, 3)).interval(confidence)
    with pytest.raises(ValueError, match="confidence"):
        estimate.quantile_interval(0.5, confidence)


def test_quantiles_by_definition() -> None:
    """The least item with at least phi at or below it."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        f = rng.dirichlet(np.full(9, 0.3))
        d = Distribution(f.copy())
        for phi in (0.0, 0.1, 0.25, 0.5, 0.9, 1.0):
            expected = next((x for x in range(9) if f[: x + 1].sum() >= phi - 1e-12), 8)
            assert d.quantile(phi) == expected
    d = plain()
    assert d.quantile([0.1, 0.3, 0.7, 1.0]).tolist() == [0, 1, 3, 4]  # reached exactly
    assert d.quantile([0.11, 0.31, 0.71]).tolist() == [1, 3, 4]


def test_where_the_cdf_falls_the_middle_of_what_reaches_phi_counts() -> None:
    d = Distribution(np.array([0.5, -0.4, 0.3, 0.6]))  # cdf 0.5, 0.1, 0.4, 1.0
    assert d.quantile([0.05, 0.3, 0.45, 0.51, 1.0]).tolist() == [0, 1, 1, 3, 3]


@pytest.mark.slow
def test_quantiles_lean_to_neither_side() -> None:
    """Where noise is many times a step of the cdf, the first item that reaches phi would be far too
    low.
    """
    protocol, rng = HaarHRR(4096, 1.1), np.random.default_rng(5)
    phi = np.arange(1, 10) / 10
    off = [
        protocol.estimate(protocol.simulate(np.full(4096, 25), rng)).quantile(phi) / 4096 - phi
        for _ in range(40)
    ]
    mean, deviation = np.mean(off), np.std(np.mean(off, axis=1)) / 40**0.5
    assert abs(mean) < 5 * deviation
    # A lean of 0.01 would be seen
    assert 5 * deviation < 0.01 < np.mean([np.abs(row).max() for row in off])


@kinds
def test_quantiles_are_monotone_and_their_intervals_bracket_them(protocol) -> None:
    phi = np.linspace(0, 1, 101)
    for seed in range(10):
        for n in (1, 100, 10_000):
            estimate = estimated(protocol, n, seed)
            found = estimate.quantile(phi)
            assert (np.diff(found) >= 0).all()
            low, high = estimate.quantile_interval(phi)
            assert (low <= found).all()
            assert (found <= high).all()
            wide = estimate.quantile_interval(phi, 0.999)
            assert (wide[0] <= low).all()
            assert (wide[1] >= high).all()
            assert found.min() >= 0
            assert high.max() <= 19
    assert all(isinstance(end, int) for end in estimate.quantile_interval(0.5))


@pytest.mark.slow
def test_quantile_intervals_cover() -> None:
    protocol = HaarHRR(64, 1.0)
    held = np.full(64, 400)
    rng = np.random.default_rng(7)
    phi = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    true = np.ceil(phi * 64).astype(int) - 1
    inside = []
    for _ in range(600):
        low, high = protocol.estimate(protocol.simulate(held, rng)).quantile_interval(phi)
        inside.append((low <= true) & (true <= high))
    assert np.mean(inside) > 0.94  # discrete, so rather more than 0.95


@kinds
def test_intervals(protocol) -> None:
    estimate = estimated(protocol)
    first, last = np.triu_indices(20, 1)
    low, high = estimate.answer(Between(first, last)).interval(0.9)
    middle, variance = estimate.range(first, last), estimate.answer(Between(first, last)).variance
    assert (low + high) / 2 == pytest.approx(middle)
    assert (high - low) / 2 == pytest.approx(ndtri(0.95) * np.sqrt(variance))
    one = estimate.answer(Between(3, 7)).interval()
    assert np.ndim(one.low) == np.ndim(one.high) == 0
    assert isinstance(estimate.answer(Between(3, 7)).variance, float)
    assert estimate.answer(Between([[3]], [[7]])).variance.shape == (1, 1)


@kinds
def test_distributions(protocol) -> None:
    for n in (1, 100, 10_000):
        for seed in range(5):
            estimate = estimated(protocol, n, seed)
            for d in (estimate.nonnegative(), estimate.monotone()):
                assert type(d) is Distribution
                assert (d.frequencies >= 0).all()
                assert d.frequencies.sum() == pytest.approx(1)
                assert d.frequencies.shape == (20,)
                assert (np.diff(d.cdf()) >= -1e-15).all()
                assert not d.frequencies.flags.writeable


def test_monotone_is_the_nearest_cdf() -> None:
    """No other distribution's cdf is nearer to the estimated one: random ones, and small steps
    towards the items.
    """
    rng = np.random.default_rng(1)
    estimate = estimated(HaarHRR(20, 1.0), 2)
    cdf, best = estimate.cdf(), estimate.monotone()
    distance = ((best.cdf() - cdf) ** 2).sum()
    assert distance > 1e-6
    others = [*rng.dirichlet(np.ones(20), 200), estimate.nonnegative().frequencies]
    for other in others:
        for step in (1.0, 0.1, 1e-3):
            mixed = best.cdf() * (1 - step) + step * np.cumsum(other)
            assert ((mixed - cdf) ** 2).sum() >= distance - 1e-12
    for item in np.eye(20):
        mixed = best.cdf() * 0.999 + 0.001 * np.cumsum(item)
        assert ((mixed - cdf) ** 2).sum() >= distance - 1e-12


def test_what_is_monotone_and_nonnegative_stays() -> None:
    protocol = HierarchicalHistogram(4, 3.0, 2)
    estimate = protocol.estimate(protocol.simulate(np.full(4, 1 << 30), np.random.default_rng(0)))
    for d in (estimate.nonnegative(), estimate.monotone()):
        assert d.frequencies == pytest.approx(estimate.frequencies)
        assert d.range(1, 2) == pytest.approx(estimate.range(1, 2))


def test_one_item() -> None:
    protocol = HaarHRR(1, 1.0)
    estimate = protocol.estimate(protocol.simulate([100], np.random.default_rng(0)))
    assert estimate.quantile([0.0, 0.5, 1.0]).tolist() == [0, 0, 0]
    assert estimate.monotone().frequencies.tolist() == [1.0]
    assert estimate.nonnegative().frequencies == pytest.approx([1.0])
    assert estimate.range(0, 0) == pytest.approx(1)


def test_ranges_are_sums_of_items_when_consistent() -> None:
    for protocol in (KINDS[0], KINDS[1], KINDS[3]):
        estimate = estimated(protocol)
        first, last = np.triu_indices(20)
        sums = [estimate.frequencies[a : b + 1].sum() for a, b in zip(first, last, strict=True)]
        assert estimate.range(first, last) == pytest.approx(sums, abs=1e-12)
        value, variance = estimate.linear(np.arange(20) <= 7)
        assert value == pytest.approx(estimate.prefix(7))
        assert variance == pytest.approx(estimate.answer(Between(0, 7)).variance)
        assert estimate.variances == pytest.approx(
            estimate.answer(Between(np.arange(20), np.arange(20))).variance
        )


def test_inconsistent_prefixes_are_what_quantiles_use() -> None:
    estimate = estimated(KINDS[2])
    assert estimate.cdf() == pytest.approx(estimate.prefix(np.arange(20)))
    assert estimate.cdf() != pytest.approx(np.cumsum(estimate.frequencies))


@pytest.mark.slow
@kinds
def test_a_million_queries(protocol) -> None:
    estimate = estimated(protocol)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 1_000_000)
    last = rng.integers(first, 20)
    start = time.process_time()
    values, variances = estimate.range(first, last), estimate.answer(Between(first, last)).variance
    assert time.process_time() - start < 30  # some 2 are usual
    assert values.shape == variances.shape == (1_000_000,)
    for k in (0, 999_999):
        assert values[k] == pytest.approx(estimate.range(int(first[k]), int(last[k])))
        assert variances[k] == pytest.approx(
            estimate.answer(Between(int(first[k]), int(last[k]))).variance
        )


def test_nobody_has_no_quantiles() -> None:
    """Nor distributions: nothing is known, and NaN must not pass for item 0."""
    protocol = HaarHRR(8, 1.0)
    estimate = protocol.estimate(
        protocol.simulate(np.zeros(8, dtype=int), np.random.default_rng(0))
    )
    assert estimate.quantile_interval(0.5) == (0, 7)
    assert np.isnan(estimate.range(0, 3))
    with pytest.raises(ValueError):  # noqa: PT011
        estimate.nonnegative()
    with pytest.raises(ValueError):  # noqa: PT011
        estimate.monotone()
    with pytest.raises(ValueError):  # noqa: PT011
        estimate.quantile(0.5)


# --------------------------------------------------------------------------------- synthetic items


def smooth(domain):
    """Two smooth hills."""
    places = np.arange(domain) / domain
    held = np.exp(-(((places - 0.3) / 0.1) ** 2)) + 0.5 * np.exp(-(((places - 0.7) / 0.15) ** 2))
    return held / held.sum()


def test_samples_share_out_the_distribution():
    protocol = shaped(32, 1.0, 20_000)
    held = np.random.default_rng(1).multinomial(20_000, smooth(32))
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(2)))
    items = estimate.sample(5_000, np.random.default_rng(3))
    below = np.searchsorted(np.sort(items), np.arange(32), side="right") / 5_000
    assert np.abs(below - estimate.cdf()).max() <= 1.01 / 5_000
    assert not np.array_equal(items, np.sort(items))
    raw = estimate.unbiased
    assert raw.frequencies.min() < 0
    assert (raw.sample(5_000, np.random.default_rng(4)) >= 0).all()
    assert Distribution(np.array([0.5, 0.5])).sample(4, np.random.default_rng(5)).sum() == 2
    with pytest.raises(ValueError, match="n must be"):
        estimate.sample(0)
    nobody = protocol.estimate(protocol.simulate(0 * held, np.random.default_rng(6)))
    for ask in (lambda: nobody.sample(5), lambda: nobody.samples(5, 2)):
        with pytest.raises(ValueError, match="no reports"):
            ask()
    wide = Flat(2000, 1.0)
    many = wide.estimate(wide.simulate(np.ones(2000, int), np.random.default_rng(7)))
    with pytest.raises(ValueError, match="at most 1024"):
        many.samples(5, 2)


def test_ranges_of_samples_err_about_as_answers_do():
    """Prefixes of data in few items, where negative estimates that are set to 0 one by one move a
    quarter of the users. Seeded.
    """
    items, rng = np.arange(256), np.random.default_rng(1)
    held = rng.multinomial(20_000, np.exp(-items / 40) / np.exp(-items / 40).sum())
    true = np.cumsum(held) / 20_000
    for protocol in (HaarHRR(256, 1.0), HierarchicalHistogram(256, 1.0, 4, "OUE")):
        answers, samples = [], []
        for _ in range(20):
            estimate = protocol.estimate(protocol.simulate(held, rng))
            counted = np.bincount(estimate.sample(5_000, rng), minlength=256) / 5_000
            answers.append(estimate.cdf() - true)
            samples.append(np.cumsum(counted) - true)
        assert np.sqrt(np.mean(np.square(samples))) < 1.5 * np.sqrt(np.mean(np.square(answers)))


def test_several_samples_differ_as_the_errors_do():
    """Variances between 200 samples, each with a deviation of 10 %, against those stated."""
    protocol = shaped(32, 1.0, 20_000)
    held = np.random.default_rng(1).multinomial(20_000, smooth(32))
    estimate = protocol.estimate(protocol.simulate(held, np.random.default_rng(2)))
    first, last = np.array([0, 4, 8, 16]), np.array([9, 15, 12, 31])
    answers = []
    for items in estimate.samples(20_000, 200, np.random.default_rng(3)):
        below = np.concatenate([[0], np.cumsum(np.bincount(items, minlength=32))]) / 20_000
        answers.append(below[last + 1] - below[first])
    told = estimate.answer(Between(first, last))
    ratio = np.var(answers, axis=0) / told.variance
    assert 0.5 < ratio.mean() < 1.5
    assert np.abs(np.mean(answers, axis=0) - told.value).max() < 0.5 * np.sqrt(told.variance).max()

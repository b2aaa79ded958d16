"""The variances, the privacy and the randomness of mechanisms of a curator; what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from frequency import Between
from mechdesign import InexactNumber, Privacy
from rangeq.central import CentralFlat, Hierarchy, Wavelet
from tests.rangeq.central.examples import (
    ALL,
    FLATS,
    SEVERAL,
    TREES,
    WAVELETS,
    boxes,
    dense,
    design,
    indicators,
    name,
)


@pytest.mark.parametrize("m", ALL, ids=name)
def test_budget_is_kept(m):
    audit = m.audit()
    assert audit.holds
    ratio = math.prod(
        (1 / noise.alpha for noise in m.noise if noise is not None), start=Fraction(1)
    )
    assert audit.ratio == ratio
    assert audit.allowed == 1 / Privacy.from_epsilon(m.epsilon).alpha
    assert math.log(ratio) == pytest.approx(m.epsilon, rel=2e-7)
    assert sum(m.shares) == 1
    for share, noise in zip(m.shares, m.noise, strict=True):
        if share:
            assert -math.log(noise.alpha) == pytest.approx(m.epsilon * float(share), rel=2e-7)


@pytest.mark.parametrize("epsilon", [2.0**-28, 1e-5, 0.1, 1, 30, 1024, 5000, "1/3", Fraction(7, 5)])
@pytest.mark.parametrize(
    "kind",
    [
        CentralFlat,
        Wavelet,
        lambda d, e: Hierarchy(d, e, 2),
        lambda d, e: Hierarchy(d, e, 4, budget="geometric"),
    ],
)
def test_budget_is_kept_at_any_epsilon(kind, epsilon):
    m = kind(16, epsilon)
    assert m.audit().holds
    losses = [
        math.log(noise.alpha.denominator) - math.log(noise.alpha.numerator) for noise in m.noise
    ]
    assert sum(losses) == pytest.approx(min(float(Fraction(epsilon)), 1024), rel=2e-7, abs=1e-12)
    m.release(np.zeros(16, dtype=int), np.random.default_rng(0))


@pytest.mark.parametrize("m", ALL + SEVERAL, ids=name)
def test_a_person_changes_one_number_of_each_level_by_one(m):
    counts = np.arange(m.domain).reshape(m.sizes)
    before = m.levels(counts)
    rows, levels = design(m)
    flat = np.concatenate([level.ravel() for level in before])
    np.testing.assert_array_equal(flat, rows @ counts.ravel())
    assert np.bincount(levels).tolist() == [level.size for level in before]
    for cell in range(m.domain):
        more = counts.copy()
        more.flat[cell] += 1
        for old, new in zip(before, m.levels(more), strict=True):
            assert np.abs(new - old).sum() == 1


def test_every_level_gets_its_own_noise():
    """The released numbers minus the true ones have the variances of the levels; a planted swap of
    two levels is seen.
    """
    m = Hierarchy(4096, 1.0, [16, 16, 16], budget=[1, 2, 4])
    seen = []
    object.__setattr__(m, "estimate", lambda noisy: seen.append(noisy))
    for seed in range(20):
        m.release(np.full(4096, 7), np.random.default_rng(seed))
    for level, size in enumerate((256, 16, 1)):
        law, noise = m.noise[level], np.concatenate([noisy[level] - 7 * size for noisy in seen])
        assert law is not None
        scaled = (noise.astype(float) ** 2).mean() / float(law.variance)
        assert abs(scaled - 1) < 6 * math.sqrt(5 / len(noise))
        assert abs(scaled * 4 - 1) > 6 * math.sqrt(5 / len(noise))
        assert len(noise) < 1000 or abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 6 / math.sqrt(
            len(noise)
        )


def test_a_privacy_violation_releases_nothing():
    m = Hierarchy(8, 1.0, 2)
    object.__setattr__(m, "noise", Hierarchy(8, 1.01, 2).noise)  # a planted error
    assert not m.audit().holds
    with pytest.raises(Exception, match="not private"):
        m.release(np.zeros(8, dtype=int))


def test_randomness():
    counts = np.arange(20)
    for m in (CentralFlat(20, 1.0), Hierarchy(20, 1.0, 3), Wavelet(20, 1.0)):
        first, second, third = (
            m.release(counts, np.random.default_rng(s)).counts for s in (1, 1, 2)
        )
        assert (first == second).all()
        assert (first != third).any()
        assert (m.release(counts).counts != m.release(counts).counts).any()
        with pytest.raises(TypeError, match="rng must be"):
            m.release(counts, 7)


def test_equality_and_immutability():
    assert Hierarchy(8, 1.0, [2, 4]) == Hierarchy([8], 1.0, (2, 4))
    assert hash(Hierarchy(8, 1.0, [2, 4], budget=[1, 2])) == hash(
        Hierarchy(8, 1.0, (2, 4), budget=(1, 2))
    )
    assert Hierarchy(8, 1.0, 2) != Hierarchy(8, 1.0, 2, inference=False)
    with pytest.raises(AttributeError):
        CentralFlat(8, 1.0).shape = 4  # type: ignore[misc]  # read-only


@pytest.mark.parametrize("m", TREES + WAVELETS + FLATS + SEVERAL, ids=name)
def test_variance_and_its_average_are_those_of_least_squares(m):
    first, last = boxes(m)
    for variances, average in (
        (m.noise_variances, m.sampled_average_variance()),
        ([2 / (m.given_epsilon * s) ** 2 if s else None for s in m.shares], m.average_variance()),
    ):
        _, covariance = dense(m, variances)
        r = indicators(m)
        expected = np.einsum("ri,ij,rj->r", r, covariance, r)
        if variances is m.noise_variances:
            asked = dict(enumerate(map(Between, first, last)))
            np.testing.assert_allclose(m.variance(asked), expected, rtol=1e-9)
            if len(m.sizes) == 1:
                np.testing.assert_array_equal(m.range_variance(*first, *last), m.variance(asked))
                assert m.range_variance(0, 0) == pytest.approx(expected[0])
            exact = m.errors_of(m.noise_variances)
            values = exact.variance(first, last)
            assert exact.mean() == sum(values) / Fraction(len(values))
            np.testing.assert_allclose(values.astype(float), expected, rtol=1e-9)
        assert average == pytest.approx(expected.mean(), rel=1e-9)


@pytest.mark.parametrize("kind", [CentralFlat, Wavelet, lambda d, e: Hierarchy(d, e, 2)])
def test_refused_parameters(kind):
    for epsilon in (0, 0.0, -1, -0.5, math.nan, math.inf, 2.0**-33, "x"):
        with pytest.raises(ValueError, match=r"epsilon must be|finite"):
            kind(4, epsilon)
    for wrong in (None, True, [1.0]):
        with pytest.raises(InexactNumber):
            kind(4, wrong)
    for shape in (0, -1, 2.0, True, None, "4", (1 << 26) + 1, (), (4, 0), (4, 2.0), [1] * 9):
        with pytest.raises(ValueError, match="shape must be"):
            kind(shape, 1.0)
    with pytest.raises(ValueError, match="more than 2\\^26"):
        kind((1 << 14, 1 << 13), 1.0)

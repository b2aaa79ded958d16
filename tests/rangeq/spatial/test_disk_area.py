"""The disk area mechanism against its definition: areas, laws, privacy, maximum likelihood.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from frequency import Between, IncompatibleAggregate, InvalidReport, InvalidValue
from rangeq.spatial import DiskArea
from rangeq.spatial.disk_area import disk_radius, disk_shares
from tests.goodness_of_fit import FALSE_ALARM

SMALL = [((3, 3), 1.0), ((4, 2), 2.0), ((1, 5), 0.5), ((5, 1), 3.0), ((2, 2), 6.0), ((3, 4), 0.01)]


def table(channel):
    """``table[x, y][item]``: the definition, a cell at a time."""
    items = list(np.ndindex(channel.attributes.sizes))
    return np.array(
        [
            [channel.likelihood_of(output, item) for item in items]
            for output in np.ndindex(channel.counts_shape)
        ],
        dtype=object,
    )


@pytest.mark.parametrize("radius", [0.5, 0.7, 1.0, 1.5, 2.3, 7.4375])
def test_shares_are_areas_of_a_disk(radius) -> None:
    shares = disk_shares(radius)
    assert shares.sum() == pytest.approx(math.pi * radius**2)
    fine = (np.arange(400) + 0.5) / 400 - 0.5
    middle = len(shares) // 2
    for a, b in np.ndindex(shares.shape):
        x, y = a - middle + fine[:, None], b - middle + fine
        assert shares[a, b] == pytest.approx((x**2 + y**2 <= radius**2).mean(), abs=2e-3)
    np.testing.assert_allclose(shares, shares.T, atol=1e-12)
    np.testing.assert_allclose(shares, shares[::-1], atol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-4, 0.7, 2.1, 5.0])
@pytest.mark.parametrize("sides", [(1, 1), (15, 15), (20, 3)])
def test_the_radius_passes_on_most_information(epsilon, sides) -> None:
    """Against the mutual information itself, maximised by search."""
    (across, along), ratio = sides, math.exp(epsilon)

    def lost(b):
        near = math.pi * b**2
        far = across * along + 2 * b * (across + along)
        q = 1 / (near * ratio + far)
        return -(math.log(near + far) + math.log(q) + near * q * ratio * epsilon)

    radius = disk_radius(epsilon, across, along)
    if epsilon < 1e-3:  # where the search is in the noise of rounding: the limit, u = 1
        near, far = math.pi * radius**2, across * along + 2 * radius * (across + along)
        assert near / far == pytest.approx(1, abs=1e-3)
    else:
        best = optimize.minimize_scalar(lost, bounds=(1e-3, 200), method="bounded")
        assert radius == pytest.approx(best.x, rel=1e-3)


def test_the_radius_of_a_square_is_that_of_the_paper() -> None:
    """(2 m + sqrt(4 m^2 + pi e^eps m n)) / (pi e^eps n), as a fraction of the side."""
    for epsilon in (0.7, 1.4, 2.8, 5.0):
        e = math.exp(epsilon)
        n, m = e - 1 - epsilon, 1 - e + e * epsilon
        expected = (2 * m + math.sqrt(4 * m**2 + math.pi * e * m * n)) / (math.pi * e * n)
        assert disk_radius(epsilon, 1, 1) == pytest.approx(expected)


@pytest.mark.parametrize(("sides", "epsilon"), SMALL)
def test_every_output_of_every_item_is_within_the_ratio(sides, epsilon) -> None:
    protocol = DiskArea(list(sides), epsilon)
    laws, audit = table(protocol.channel), protocol.audit()
    assert all(sum(laws[:, item]) == 1 for item in range(laws.shape[1]))
    reached = [row for row in laws if any(row)]
    assert all(all(row) for row in reached)
    assert audit.ratio == max(max(row) / min(row) for row in reached)
    assert audit.holds
    assert audit.ratio <= audit.allowed <= Fraction(math.exp(epsilon) * (1 + 1e-12))
    assert float(audit.ratio) == pytest.approx(math.exp(epsilon), rel=1e-6)
    # Nothing can be saved: with one part in 2^64 less of the background it would not hold
    channel, least = protocol.channel, protocol.channel.far_weight - 1
    vars(channel)["far_weight"] = least
    assert not channel.audit().holds


@pytest.mark.parametrize(("sides", "epsilon"), [*SMALL, ((1, 1), 1.0)])
def test_what_is_proved_for_points_is_what_is_drawn_for_cells(sides, epsilon) -> None:
    """A cell is as likely as its points together: those in the disk, and those beyond it."""
    protocol = DiskArea(list(sides), epsilon)
    proof: Any = protocol.proof()
    channel, alpha = protocol.channel, protocol.privacy.alpha
    assert proof.verify()
    ((kinds,),) = (law.classes for law in proof.laws)
    inside, *beyond = (kind.likelihood(alpha) for kind in kinds)
    cells = len([row for row in table(channel) if any(row)])
    most, item = int(channel.kernel.max()), (sides[0] - 1, 0)
    for output in np.ndindex(channel.counts_shape):
        drawn = channel.likelihood_of(output, item)
        if drawn:
            apart = [one - own for one, own in zip(output, item, strict=True)]
            held = all(0 <= step < len(channel.kernel) for step in apart)
            part = Fraction(int(channel.kernel[tuple(apart)]) if held else 0, most)
            expected = (part * inside + (1 - part) * sum(beyond)) / cells
            assert abs(drawn / expected - 1) < Fraction(1, 1 << 54)


@pytest.mark.parametrize("sides", [(40, 9), (64, 64)])
def test_large_grids_are_audited_in_closed_form(sides) -> None:
    protocol = DiskArea(list(sides), 2.0)
    assert protocol.audit().holds
    assert float(protocol.audit().ratio) == pytest.approx(math.exp(2), rel=1e-6)
    channel, rng = protocol.channel, np.random.default_rng(1)
    outputs = [tuple(cell) for cell in rng.integers(0, channel.counts_shape, size=(40, 2)).tolist()]
    items = [tuple(cell) for cell in rng.integers(0, sides, size=(40, 2)).tolist()]
    items += [(0, 0), (sides[0] - 1, sides[1] - 1), (0, sides[1] - 1)]
    for output in outputs:
        found = [channel.likelihood_of(output, item) for item in items]
        if any(found):
            assert max(found) / min(found) <= protocol.audit().ratio


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_reports_have_the_stated_law(epsilon) -> None:
    protocol, n = DiskArea([4, 3], epsilon), 40_000
    channel, laws = protocol.channel, table(protocol.channel).astype(float)
    item, other = (1, 2), (3, 0)
    column, wrong = (laws[:, np.ravel_multi_index(one, (4, 3))] for one in (item, other))
    rng = np.random.default_rng(5)
    held = np.zeros((4, 3), dtype=int)
    held[item] = n
    for aggregate in (
        protocol.aggregate(protocol.privatize(np.tile(item, (n, 1)), rng)),
        protocol.simulate(held.ravel(), rng),
    ):
        counts = aggregate.counts.ravel()
        some = column > 0
        assert not counts[~some].any()
        assert stats.chisquare(counts[some], column[some] * n).pvalue > FALSE_ALARM
        assert stats.chisquare(counts[some], wrong[some] * n).pvalue < FALSE_ALARM
    assert channel.report_bits == (int((column > 0).sum()) - 1).bit_length()


@pytest.mark.parametrize("sides", [(1, 1), (1, 6), (5, 4), (20, 33)])
def test_maps_by_fourier_transform_are_those_of_the_table(sides) -> None:
    channel = DiskArea(list(sides), 2.0).channel
    rng = np.random.default_rng(6)
    f = rng.dirichlet(np.ones(math.prod(sides))).reshape(sides)
    numbers = rng.random(channel.counts_shape)
    reported, back = channel.reported(f), channel.backward(numbers)
    assert reported.sum() == pytest.approx(1)
    assert (reported * numbers).sum() == pytest.approx((f * back).sum())
    if math.prod(sides) < 30:
        laws = table(channel).astype(float)
        np.testing.assert_allclose(reported.ravel(), laws @ f.ravel(), atol=1e-12)
        np.testing.assert_allclose(back.ravel(), laws.T @ numbers.ravel(), atol=1e-12)


def test_em_finds_the_maximum_of_the_likelihood() -> None:
    protocol = DiskArea([5, 4], 3.0)
    held = np.arange(20) * 500
    aggregate = protocol.simulate(held, np.random.default_rng(7))
    fit, laws = protocol.fit(aggregate), table(protocol.channel).astype(float)
    counts = aggregate.counts.ravel()
    some = counts > 0
    gradient = laws[some].T @ (counts[some] / (laws[some] @ fit.frequencies.ravel())) / aggregate.n
    assert gradient.max() < 1 + 2e-3  # at the maximum it is 1 where f > 0, and at most 1 elsewhere
    assert fit.frequencies.sum() == pytest.approx(1)
    smooth = DiskArea([5, 4], 3.0, smooth=True)
    assert smooth.channel == protocol.channel
    assert np.abs(np.diff(smooth.fit(aggregate).frequencies, axis=0)).max() < 0.2


def test_many_cells_are_found_again() -> None:
    rng, n = np.random.default_rng(8), 200_000
    records = np.clip(rng.normal([10, 30], [3, 6], size=(n, 2)), 0, [31, 47]).astype(int)
    protocol = DiskArea([32, 48], 3.0)
    held = np.zeros((32, 48), dtype=int)
    np.add.at(held, tuple(records.T), 1)
    estimate = protocol.estimate(protocol.simulate(held.ravel(), rng))
    for box in (
        {0: Between(5, 12), 1: Between(25, 40)},
        {0: Between(0, 31), 1: Between(0, 25)},
        {0: Between(15, 25)},
    ):
        rows, columns = box.get(0, Between(0, 31)), box.get(1, Between(0, 47))
        held_there = held[rows.first : rows.last + 1, columns.first : columns.last + 1]
        truth = held_there.sum() / n
        assert estimate.answer(box).value == pytest.approx(truth, abs=0.03)


def test_intervals_are_bootstrapped() -> None:
    rng = np.random.default_rng(9)
    records = np.clip(rng.normal([2, 3], 1, size=(20_000, 2)), 0, 4).astype(int)
    protocol = DiskArea([5, 5], 5.0)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    truth = ((records >= 3).all(axis=1)).mean()
    low, high = estimate.answer({0: Between(3, 4), 1: Between(3, 4)}).interval(1 - 1e-6)
    assert low <= truth <= high
    assert high - low < 0.2


def test_wrong_inputs() -> None:
    protocol = DiskArea([4, 3], 1.0)
    with pytest.raises(InvalidValue):
        protocol.privatize([[4, 0]])
    with pytest.raises(ValueError, match="two attributes"):
        DiskArea([4, 3, 2], 1.0)
    with pytest.raises(ValueError, match="two attributes"):
        DiskArea([4], 1.0)
    with pytest.raises(ValueError, match="domain"):
        DiskArea([4096, 4096], 1.0)
    with pytest.raises(ValueError, match="no reports"):
        protocol.fit(protocol.simulate(np.zeros(12, dtype=int)))
    reports = protocol.privatize([[0, 0]], np.random.default_rng(1))
    for x, y in ((200, 0), (0, 200), (0, 0)):  # the corners of the border are beyond all disks
        reports["x"], reports["y"] = x, y
        with pytest.raises(InvalidReport):
            protocol.aggregate(reports)
    aggregate = protocol.simulate(np.full(12, 9), np.random.default_rng(2))
    with pytest.raises(IncompatibleAggregate):
        DiskArea([3, 4], 1.0).estimate(aggregate)
    moved = aggregate.counts.copy()
    moved[0, 0] += 1
    moved[tuple(np.argwhere(moved > 0)[-1])] -= 1
    with pytest.raises(IncompatibleAggregate, match="no 108 reports"):
        protocol.channel.require_own(type(aggregate)(aggregate.parameters, aggregate.n, moved))


def test_no_reports() -> None:
    protocol = DiskArea([4, 3], 1.0)
    estimate = protocol.estimate(protocol.simulate(np.zeros(12, dtype=int)))
    assert math.isnan(estimate.answer({0: Between(0, 1)}).value)

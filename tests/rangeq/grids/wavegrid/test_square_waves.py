"""Square waves: what users are asked and report, its privacy, and what of it is counted.

Statistical bounds have a false alarm in less than one of 10^6 runs, and generators are seeded.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from frequency import IncompatibleAggregate, InvalidReport
from frequency.core.aggregate import Aggregate
from frequency.oracles.subset_selection import SubsetSelection
from rangeq.core.levels import ContrastLaw
from rangeq.grids import WaveGrid, best
from rangeq.grids.cells import equal_cells
from rangeq.grids.wavegrid.square_waves import (
    FINE,
    LARGEST,
    PHASES,
    Wave,
    WaveCells,
    half_of,
    information,
)
from tests.goodness_of_fit import FALSE_ALARM


def phases_of(wave: Wave, level: int) -> int:
    """Enough to shift an arc by single cells."""
    return next(
        1 << k
        for k in range(6)
        if 1 << k == PHASES or (1 << k) * wave.arcs * 2**level >= min(wave.size, FINE)
    )


def arc_of(wave: Wave, configuration: int, value: int) -> int:
    """The definition, in fractions."""
    level, phases = 0, phases_of(wave, 0)
    while configuration >= phases:
        configuration, level = configuration - phases, level + 1
        phases = phases_of(wave, level)
    periods = Fraction(2 * value + 1, 2 * wave.size) * 2**level + Fraction(
        2 * configuration + 1, 2 * phases * wave.arcs
    )
    return math.floor(periods * wave.arcs) % wave.arcs


WAVES = [
    *(Wave(size, 2) for size in (2, 3, 5, 64, 300)),
    *(Wave(10, 4), Wave(100, 4), Wave(64, 32), Wave(40, 32)),
    *(Wave(5, 5), Wave(7, 7), Wave(20, 20)),
]


@pytest.mark.parametrize("wave", WAVES, ids=str)
def test_arcs_are_those_of_the_definition(wave: Wave) -> None:
    values = np.arange(wave.size)
    for configuration in range(wave.configurations):
        found = wave.arc(np.full(wave.size, configuration), values)
        assert found.tolist() == [arc_of(wave, configuration, x) for x in range(wave.size)]


@pytest.mark.parametrize("wave", [*WAVES, Wave(1000, 2), Wave(1, 1)], ids=str)
def test_shares_count_the_values_of_cells(wave: Wave) -> None:
    for cells in {1, 2, 7, 50, wave.size} & set(range(1, min(wave.size, FINE) + 1)):
        edges = equal_cells(wave.size, cells)
        shares = wave.shares(edges)
        assert shares.shape == (wave.configurations, wave.arcs, cells)
        arcs = wave.arc(np.arange(wave.configurations)[:, None], np.arange(wave.size)[None])
        for arc in range(wave.arcs):
            expected = np.add.reduceat(arcs == arc, edges[:-1], axis=1, dtype=np.int64) / np.diff(
                edges
            )
            np.testing.assert_allclose(shares[:, arc], expected, atol=1e-14)


def test_huge_attributes_lose_no_digit() -> None:
    wave = Wave(LARGEST - 1, 4)
    rng = np.random.default_rng(1)
    for value in (0, 1, LARGEST - 2, *rng.integers(0, LARGEST - 1, 20).tolist()):
        configuration = int(rng.integers(wave.configurations))
        assert wave.arc(np.array([configuration]), np.array([value]))[0] == arc_of(
            wave, configuration, value
        )
    shares = wave.shares(equal_cells(wave.size, FINE))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares.min() >= 0


def test_every_arc_is_as_long_on_average_and_waves_tell_all_values_apart() -> None:
    for wave in (
        Wave(64, 2),
        Wave(2, 2),
        Wave(3, 2),
        Wave(7, 2),
        Wave(10, 2),
        Wave(41, 2),
        Wave(64, 4),
        Wave(128, 4),
    ):
        shares = wave.shares(equal_cells(wave.size, wave.size)) - 1 / wave.arcs
        gram = wave.arcs * np.einsum("k,kax,kay->xy", wave.probabilities, shares, shares)
        centred = np.eye(wave.size) - 1 / wave.size  # that frequencies sum to 1 is known
        assert np.linalg.eigvalsh(centred @ gram @ centred)[1] > 0.01
        np.testing.assert_allclose(np.diag(gram), wave.arcs - 1)


def test_levels_halve_their_probability() -> None:
    wave = Wave(64, 2)
    assert wave.phases == (32, 16, 8, 4, 2, 1)
    of_levels = [wave.probabilities[wave.cuts[0] == level] for level in range(6)]
    assert all(np.ptp(level) == 0 for level in of_levels)
    np.testing.assert_allclose(
        [level.sum() for level in of_levels], 2.0 ** -np.arange(6) / (2 - 2.0**-5)
    )
    assert wave.probabilities.sum() == pytest.approx(1)
    cells = WaveCells(64, 1.0, (wave,))
    reports = cells.privatize(np.zeros(200_000, dtype=int), np.random.default_rng(2))
    drawn = np.bincount(reports["waves"][:, 0], minlength=wave.configurations)
    assert stats.chisquare(drawn, 200_000 * wave.probabilities).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("sizes", "epsilon"), [((2, 3), 0.7), ((3, 2), 2.0), ((8, 9), 4.0), ((5,), 1.0)]
)
def test_the_audit_is_the_worst_ratio_of_all_reports(
    sizes: tuple[int, ...], epsilon: float
) -> None:
    channel = WaveGrid(list(sizes), epsilon).channel
    cells = channel.parts[0]
    assert isinstance(cells, WaveCells)
    p, q, k, d = cells.base.p, cells.base.q, cells.base.size, cells.base.domain
    records = list(product(*map(range, sizes)))
    worst = Fraction(0)
    within, without = p / math.comb(d - 1, k - 1), (1 - p) / math.comb(d - 1, k)
    asked = [range(wave.configurations) for wave in cells.waves]
    # All, if there are so few
    some = np.random.default_rng(3).permutation(math.prod(map(len, asked)))[:200]
    for configurations in (list(product(*asked))[number] for number in some):
        held = set()
        for record in records:
            arcs = [arc_of(*both) for both in zip(cells.waves, configurations, record, strict=True)]
            held.add(int(np.ravel_multi_index(arcs, cells.arcs)))
        for chosen in combinations(range(d), k):
            ratios = [within if cell in chosen else without for cell in held]
            worst = max(worst, max(ratios) / min(ratios))
    audit = WaveGrid(list(sizes), epsilon).audit()
    assert audit.holds
    assert worst == audit.ratio <= audit.allowed
    assert float(p + (d - 1) * q) == pytest.approx(k)


def test_reports_have_the_stated_probabilities() -> None:
    protocol = WaveGrid([4, 3], 1.5)
    (cells,) = protocol.channel.parts
    assert isinstance(cells, WaveCells)
    reports = protocol.privatize([[1, 2]] * 300_000, np.random.default_rng(4))
    body = np.ascontiguousarray(reports["body"]).view(cells.report_dtype).ravel()
    inside = np.zeros(len(body), dtype=np.int64)
    for wave, axis, value in zip(cells.waves, (0, 1), (1, 2), strict=True):
        inside = inside * wave.arcs + wave.arc(
            body["waves"][:, axis].astype(np.int64), np.array(value)
        )
    bits = np.unpackbits(body["cell"]["bits"], axis=1, count=4, bitorder="little")
    held = int(bits[np.arange(len(bits)), inside].sum())
    assert stats.binomtest(held, len(bits), float(cells.base.p)).pvalue > FALSE_ALARM
    both = np.bincount(
        body["waves"][:, 0].astype(int) * 64 + body["waves"][:, 1], minlength=64 * 64
    ).reshape(64, 64)
    expected = len(bits) * np.outer(*(wave.probabilities for wave in cells.waves))
    counted = both[: expected.shape[0], : expected.shape[1]]
    assert stats.chisquare(counted.ravel(), expected.ravel()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_aggregates_and_scores_are_those_of_a_loop(epsilon: float) -> None:
    sizes = [9, 1, 13]
    protocol = WaveGrid(sizes, epsilon)
    channel = protocol.channel
    records = np.random.default_rng(5).integers(0, sizes, size=(400, 3))
    reports = protocol.privatize(records, np.random.default_rng(6))
    waves, halves = channel.heard(protocol.aggregate(reports))
    alone = [(0,), (2,)] if epsilon > 3 else []
    assert [heard.places for heard in waves] == [(0, 1), (0, 2), (1, 2), *alone]
    assert [heard.places for heard in halves] == [(0, 2)]
    parts = zip([*waves, *halves], channel.parts, strict=True)
    for number, (heard, part) in enumerate(parts):
        base = part.base if isinstance(part, WaveCells) else part
        p, q = float(base.p), float(base.q)
        expected = np.zeros(heard.held.shape)
        for row in reports[reports["group"] == number]:
            body = row["body"][: part.report_dtype.itemsize].view(part.report_dtype)[0]
            if isinstance(part, WaveCells):
                cell, place, shape = body["cell"], tuple(body["waves"]), part.arcs
            else:
                cell, place, shape = body, (), (2, 2)
            bits = np.unpackbits(cell["bits"], count=base.domain, bitorder="little")
            expected[place] += ((bits - q) / (p - q)).reshape(shape)
        np.testing.assert_allclose(heard.held, expected, atol=1e-9)
        assert heard.held.sum() == pytest.approx((reports["group"] == number).sum())


def test_a_sixth_of_those_asked_about_two_wide_ordered_attributes_report_on_halves() -> None:
    sizes = {"a": 8, "b": 101, "c": 7, "d": 40, "e": 9}
    channel = WaveGrid(sizes, 1.0, categorical=["d"]).channel
    assert [grid.places for grid in channel.halves] == [(0, 1), (0, 4), (1, 4)]
    assert channel.part_places == (*combinations(range(5), 2), (0, 1), (0, 4), (1, 4))
    chances = [Fraction(weight, 1 << 64) for weight in channel.part_weights]
    for places in combinations(range(5), 2):
        own = [
            chance for chance, of in zip(chances, channel.part_places, strict=True) if of == places
        ]
        halved = len(own) == 2
        expected = [Fraction(5, 60), Fraction(1, 60)] if halved else [Fraction(1, 10)]
        assert [float(chance) for chance in own] == pytest.approx(list(map(float, expected)))
    records = np.array(list(product((3, 4), (49, 50), (0,), (0,), (3, 4))))
    upper = {0: records[:, 0] > 3, 1: records[:, 1] > 49, 4: records[:, 4] > 3}
    for part, (j, k) in enumerate(channel.part_places[10:], start=10):
        assert channel.part_items(part, records).tolist() == (2 * upper[j] + upper[k]).tolist()
    single = WaveGrid([64], 1.0).channel
    assert single.halves == ()
    assert len(single.parts) == 1


def test_a_fifth_report_on_one_attribute_where_pairs_have_four_arcs() -> None:
    sizes = {"a": 64, "b": 5, "c": 1, "d": 40}
    channel = WaveGrid(sizes, 3.0, categorical=["d"]).channel
    pairs = tuple(combinations(range(4), 2))
    assert channel.part_places == (*pairs, (0,), (1,), (3,))
    chances = [Fraction(weight, 1 << 64) for weight in channel.part_weights]
    expected = [Fraction(4, 30)] * 6 + [Fraction(1, 15)] * 3
    assert [float(chance) for chance in chances] == pytest.approx(list(map(float, expected)))
    alone = [part.waves for part in channel.parts[6:] if isinstance(part, WaveCells)]
    assert alone == [(Wave(64, 16),), (Wave(5, 5),), (Wave(40, 40),)]
    records = np.array([[63, 4, 0, 39], [7, 0, 0, 3]])
    assert [channel.part_items(part, records).tolist() for part in (6, 7, 8)] == [
        [63, 7],
        [4, 0],
        [39, 3],
    ]
    assert WaveGrid(sizes, 2.0).channel.alone == ()
    many = WaveGrid([4] * 16, 3.0).channel
    assert sum(many.part_weights[120:]) / 2**64 == pytest.approx(2 / 16)
    arcs = {1.0: 4, 1.5: 4, 2.0: 8, 3.0: 16, 4.0: 32, 5.0: 64, 9.0: 64}
    for epsilon, expected_arcs in arcs.items():
        (single,) = WaveGrid([256], epsilon).channel.parts
        assert isinstance(single, WaveCells)
        assert single.arcs == (expected_arcs,)


def test_halves_of_cells_count_their_values() -> None:
    for size, cells in ((8, 8), (9, 9), (9, 4), (101, 7), (1000, 256), (1, 1)):
        edges = equal_cells(size, cells)
        lower = np.arange(size) < size // 2
        signs = np.add.reduceat(np.where(lower, 1.0, -1.0), edges[:-1]) / np.diff(edges)
        np.testing.assert_allclose(half_of(edges), signs, atol=1e-12)


def test_scores_are_unbiased_with_the_stated_information() -> None:
    for epsilon in (0.5, 2.0):
        cells = WaveCells(16, epsilon, (Wave(4, 2), Wave(4, 2)))
        n = 200_000
        reports = cells.privatize(np.full(n, 6), np.random.default_rng(7))
        p, q = float(cells.base.p), float(cells.base.q)
        bits = np.unpackbits(reports["cell"]["bits"], axis=1, count=4, bitorder="little")
        # The product of both waves
        scores = (bits - q) / (p - q) @ np.array([1.0, -1.0, -1.0, 1.0])
        signs = [
            1 - 2 * wave.arc(reports["waves"][:, axis].astype(int), np.array(v))
            for axis, (wave, v) in enumerate(zip(cells.waves, (1, 2), strict=True))
        ]
        products = scores * signs[0] * signs[1]
        assert abs(products.mean() - 1) < 5 * products.std() / n**0.5
        # The mean square, at least the variance
        assert (products**2).mean() == pytest.approx(1 / cells.information, rel=0.03)


def test_four_cells_tell_what_theory_says() -> None:
    for epsilon in (0.3, 1.0, 2.4):
        of_two, of_one = (
            math.tanh(epsilon / 2) ** 2 / 3,
            ((math.exp(epsilon) - 1) / (math.exp(epsilon) + 3)) ** 2,
        )
        (cells,) = WaveGrid([6, 6], epsilon).channel.parts
        assert isinstance(cells, WaveCells)
        assert cells.information == information(cells.base) == pytest.approx(max(of_two, of_one))
        assert ContrastLaw.of(cells.base).information(4) == pytest.approx(cells.information)
        assert cells.base.size == (2 if of_two > of_one else 1)
    assert WaveGrid([64, 7], 2.0).channel.waves == (Wave(64, 2), Wave(7, 2))
    assert WaveGrid([64, 7], 4.0).channel.waves == (Wave(64, 4), Wave(7, 7))


def test_impossible_reports_are_refused() -> None:
    protocol = best([8, 5, 3], 0.4, 3000)
    reports = protocol.privatize(np.zeros((100, 3), dtype=int), np.random.default_rng(10))
    tally: Counter[str] = Counter()
    bad = reports[reports["group"] == 0][:20].copy()
    bad["group"][1] = 3
    bad["body"][2, 0] = 7  # configurations of 8 values are 0 .. 6
    bad["body"][3, 2] = 0b0111  # one cell too many
    bad["body"][4, 2] = 0b10001  # a cell that is not there
    assert protocol.aggregate(bad, tally).n == 16
    assert tally == {"impossible": 4}
    with pytest.raises(InvalidReport, match=r"reports\[1\]"):
        protocol.aggregate(bad)


def test_impossible_aggregates_are_refused() -> None:
    protocol = best([8, 5], 0.4, 3000)  # two cells a report
    whole = protocol.aggregate(
        protocol.privatize(np.zeros((200, 2), dtype=int), np.random.default_rng(11))
    )

    def changed(*changes: tuple[int, int]) -> Aggregate:
        counts = whole.counts.copy()
        for place, by in changes:
            counts[place] += by
        return Aggregate(whole.parameters, whole.n, counts)

    # The first cell of a configuration that was asked
    held = np.flatnonzero(whole.counts[1:])[:1] // 4 * 4 + 1
    (place,) = held.tolist()
    for bad in (
        changed((0, 1)),
        changed((place, 1)),
        changed((place, -1000), (place + 1, 1000)),
        changed((place, 1), (place + 4, -1)),
        changed((place, 100), (place + 1, 100), (0, 100)),
        Aggregate(whole.parameters, whole.n + 1, whole.counts),
    ):
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(bad)
    assert protocol.estimate(changed()).n == 200


@pytest.mark.parametrize(("epsilon", "arcs"), [(0.3, 2), (1.0, 2), (4.0, 4)])
def test_counts_of_a_population_have_the_law_of_reports(epsilon: float, arcs: int) -> None:
    """The counts of each setting and cell, against probabilities from the arcs of every record."""
    cells = WaveCells(40, epsilon, (Wave(8, arcs), Wave(5, 2)))
    rng, users = np.random.default_rng(3), 10**9
    shares = rng.dirichlet(np.full(40, 0.5)).reshape(8, 5)
    p, q = float(cells.base.p), float(cells.base.q)

    def expected(shares: np.ndarray) -> np.ndarray:
        found = np.full(cells.counts_shape, q)
        for x, y in np.ndindex(8, 5):
            for one, other in np.ndindex(*cells.counts_shape[:2]):
                a, b = (
                    int(wave.arc(np.array([configuration]), np.array([value]))[0])
                    for wave, configuration, value in zip(
                        cells.waves, (one, other), (x, y), strict=True
                    )
                )
                found[one, other, a * 2 + b] += (p - q) * shares[x, y]
        settings = np.multiply.outer(*(wave.probabilities for wave in cells.waves))
        return settings[:, :, None] * found

    drawn = cells.drawn_counts(shares, users, rng)
    assert drawn.sum() == users * cells.base.size
    assert (drawn.sum(axis=2) % cells.base.size == 0).all()

    def least_p_value(shares: np.ndarray) -> float:
        law = stats.binom(users, expected(shares))
        return float(2 * np.minimum(law.cdf(drawn), law.sf(drawn - 1)).min() * drawn.size)

    assert least_p_value(shares) > FALSE_ALARM
    assert least_p_value(np.full((8, 5), 1 / 40)) < FALSE_ALARM


@pytest.mark.parametrize(("epsilon", "arcs"), [(0.5, 2), (2.0, 2), (3.0, 4), (4.5, 4), (6.0, 8)])
def test_arcs_grow_with_epsilon(epsilon: float, arcs: int) -> None:
    channel = WaveGrid({"a": 64, "b": 8, "c": 5, "d": 40}, epsilon, categorical=["d"]).channel
    assert [wave.arcs for wave in channel.waves] == [
        arcs,
        arcs,
        5 if arcs > 2 else 2,
        min(arcs, 4),
    ]
    # As the rule has it: all functions of so many cells together
    known = {
        each: (each**2 - 1) * float(information(SubsetSelection(each**2, epsilon)))
        for each in (2, 4, 8)
    }
    assert (known[4] > 1.5 * known[2]) == (arcs > 2)
    assert (known[8] > 2.5 * known[4]) == (arcs > 4)

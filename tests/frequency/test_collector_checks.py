"""Checks of collectors: its chi-squares against exact covariances, its false alarms, and the
lies that it finds.

Statistical tests are seeded. A p-value is compared with 1e-6 for each of about 50 families of
protocols: a false alarm for one of 20000 seeds.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    Aggregate,
    CountMeanSketch,
    HadamardCountMeanSketch,
    IncompatibleAggregate,
    JLOracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.core.protocol import channel_of
from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram, UniqueHeavyHitter
from frequency.marginals import Domain, InpEM, InpHT, MargPS
from frequency.storage.collection import Collected
from frequency.storage.collector_checks import (
    LEAST,
    MANY,
    ChiSquareStatistic,
    _adjusted,
    _chi_square,
    _groups,
    check_collectors,
)
from mechdesign import named
from rangeq import CircularHistogram, HaarHRR, HierarchicalHistogram
from rangeq.local.square_wave import SquareWave
from tests.contracts.examples import WITH_VALUES
from tests.goodness_of_fit import FALSE_ALARM

ATTRIBUTES = Domain({"a": 4, "b": 2, "c": 4})


def zipf(domain):
    weights = 1 / np.arange(1, domain + 1)
    return weights / weights.sum()


def peaked(domain):
    """Nearly all users hold one item."""
    weights = np.full(domain, 0.05 / max(domain - 1, 1))
    weights[0] = 0.95
    return weights / weights.sum()


FAMILIES = {
    "GRR": GRR(32, 1.0),
    "GRR, large epsilon": GRR(32, 4.0),
    "Tabular": Tabular(named.krr(8, alpha="1/3")),
    "OLH": OLH(32, 1.0),
    "ProjectiveGeometry": ProjectiveGeometry(32, 1.0),
    "SubsetSelection": SubsetSelection(12, 0.8),
    "SubsetSelection of one": SubsetSelection(8, 4.0),
    "OUE": OUE(32, 1.0),
    "SUE": SUE(32, 4.0),
    "OUE of few": OUE(3, 4.0),
    "HRR": HRR(32, 1.0),
    "HRR, large epsilon": HRR(4, 4.0),
    "HRR of one index": HRR(2, 1.0),
    "HRR of three signs": HRR(32, 3.0, 3),
    "JLOracle": JLOracle(32, 1.0, rows=64),
    "JLOracle of many rows": JLOracle(32, 1.0, rows=4096),
    "CountMeanSketch": CountMeanSketch(32, 1.0, hashes=4, width=16),
    "HadamardCountMeanSketch": HadamardCountMeanSketch(32, 1.0, hashes=4, width=16),
    "SquareWave": SquareWave(32, 1.0),
    "HierarchicalHistogram": HierarchicalHistogram(32, 1.0, 4, "OLH"),
    "HaarHRR": HaarHRR(32, 1.0),
    "CircularHistogram": CircularHistogram(32, 1.0),
    "CircularHistogram of sets": CircularHistogram(32, 0.3, oracle="SubsetSelection"),
    "MargPS": MargPS(ATTRIBUTES, 2, 1.0),
    "InpHT": InpHT(ATTRIBUTES, 2, 1.0),
    "PrefixExtension": PrefixExtension(bits=8, epsilon=1.0),
    "UniqueHeavyHitter": UniqueHeavyHitter(bits=8, epsilon=1.0),
    "SuccinctHistogram": SuccinctHistogram(
        bits=8, epsilon=1.0, n=100, hashes=1, channels=2, rows=64
    ),
    "OneBit": OneBit(HRR(32, 0.6)),
    "OneBit of OUE": OneBit(OUE(8, 0.6)),
}
HIDE_DRAWS = {
    "GRR", "GRR, large epsilon", "Tabular", "ProjectiveGeometry", "SubsetSelection",
    "SubsetSelection of one", "OUE", "SUE", "OUE of few", "HRR", "HRR, large epsilon",
    "HRR of one index", "HRR of three signs", "JLOracle", "JLOracle of many rows",
    "HadamardCountMeanSketch", "SquareWave", "UniqueHeavyHitter", "SuccinctHistogram",
}  # fmt: skip
"""Whose counts show nothing that is public."""


def shares_of(channel, population):
    """Of the first 64 items at most: universes of heavy hitters are large."""
    shares = np.zeros(channel.domain)
    few = min(64, channel.domain)
    shares[:few] = population(few)
    return shares


def honest(protocol, n, rng, population=zipf):
    channel = channel_of(protocol)
    return channel.simulate(rng.multinomial(n, shares_of(channel, population)), rng)


def checks_of(protocol, runs, sizes, rng, population=zipf):
    """The checks of the first of some honest collectors, many times."""
    found = []
    for _ in range(runs):
        collectors = {str(k): honest(protocol, n, rng, population) for k, n in enumerate(sizes)}
        found.append(check_collectors(protocol, collectors).collectors[0])
    return [item.rest for item in found], [item.draws for item in found]


def uniform(values):
    return stats.kstest(values, "uniform").pvalue


# ---------------------------------------------------------------------------------- the slow twin


def reports_of(oracle, item):
    """All reports of an oracle, as rows of what they add to the counts, and their probabilities for
    a holder of the item.
    """
    d, (p, q) = oracle.domain, map(float, oracle.support or (0, 0))
    rows, chances = [], []
    if isinstance(oracle, SubsetSelection):
        k = oracle.size
        for chosen in itertools.combinations(range(d), k):
            rows.append(np.isin(np.arange(d), chosen))
            chances.append(
                p / math.comb(d - 1, k - 1) if item in chosen else (1 - p) / math.comb(d - 1, k)
            )
    elif isinstance(oracle, OUE):
        for bits in itertools.product((0, 1), repeat=d):
            one = np.where(np.arange(d) == item, p, q)
            rows.append(bits)
            chances.append(np.prod(np.where(bits, one, 1 - one)))
    elif isinstance(oracle, HRR):
        t, s = oracle.coefficients, oracle.padded
        for chosen in itertools.combinations(range(1, s), t):
            true = 1 - 2 * (np.bitwise_count(np.array(chosen) & item) & 1).astype(int)
            for told in itertools.product((1, -1), repeat=t):
                row = np.zeros(s)
                row[list(chosen)] = told
                rows.append(row)
                weight = oracle._choice.p if tuple(true) == told else oracle._choice.q
                chances.append(float(weight) / math.comb(s - 1, t))
    else:
        return np.eye(d), np.where(np.arange(d) == item, p, q)
    return np.array(rows, dtype=float), np.array(chances)


@pytest.mark.parametrize("population", [zipf, peaked])
@pytest.mark.parametrize(
    "oracle",
    [
        GRR(5, 1.0),
        OUE(5, 1.0),
        HRR(8, 1.0),
        HRR(8, 2.0, 2),
        HRR(8, 1.0, 3),
        SubsetSelection(6, 0.3),
        SubsetSelection(7, 0.5),
    ],
    ids=lambda oracle: f"{type(oracle).__name__}({oracle.domain})",
)
def test_the_quadratic_form_is_that_of_the_exact_covariance(oracle, population):
    rows, _ = reports_of(oracle, 0)
    chance = sum(
        share * reports_of(oracle, item)[1] for item, share in enumerate(population(oracle.domain))
    )
    assert chance.sum() == pytest.approx(1)
    mean = chance @ rows
    covariance = (rows - mean).T @ ((rows - mean) * chance[:, None])
    n = 10**12
    counts = np.rint(n * mean).astype(np.int64)
    counts[-1] += n - counts.sum() if isinstance(oracle, GRR) else 0
    (pool,) = oracle.samples(n, counts)
    inverse = np.linalg.pinv(covariance, rcond=1e-9, hermitian=True)
    rank = np.linalg.matrix_rank(covariance, tol=1e-9)
    for report in rows[:: max(1, len(rows) // 20)]:
        gap = report - mean
        (own,) = oracle.samples(n, np.rint(n * report).astype(np.int64))
        value, freedom = _chi_square((own.sums - pool.sums) / n, pool, 1.0, n)
        assert value == pytest.approx(gap @ inverse @ gap, rel=1e-6)
        assert freedom == rank


def test_groups_keep_frequent_cells_and_fill_up_rare_ones():
    rng = np.random.default_rng(3)
    for size in (1, 2, 5, 40, 1000):
        for scale in (0.1, 3.0, 30.0):
            expected = rng.exponential(scale, size)
            group = _groups(expected)
            total = np.bincount(group, expected)
            assert sorted(set(group.tolist())) == list(range(len(total)))
            assert (total >= LEAST).all() or expected.sum() < LEAST or len(total) == 1
            assert (np.bincount(group)[group[expected >= 2 * LEAST]] == 1).all() or expected[
                expected < LEAST
            ].sum() < LEAST


def test_holm_against_its_definition():
    p = [0.01, float("nan"), 0.04, 0.03, 0.005]
    # In ascending order times 4, 3, 2, 1, and never less than the one before.
    assert _adjusted(p) == pytest.approx([0.03, 1.0, 0.06, 0.06, 0.02])


def test_chi_squares_are_two_sided_if_there_are_many_degrees_of_freedom():
    for freedom in (1, MANY - 1, MANY, 1000):
        law = stats.chi2(freedom)
        assert ChiSquareStatistic(law.isf(1e-5), freedom).p == pytest.approx(
            2e-5 if freedom >= MANY else 1e-5, rel=1e-6
        )
        assert ChiSquareStatistic(law.ppf(1e-5), freedom).p == pytest.approx(
            2e-5 if freedom >= MANY else 1 - 1e-5, rel=1e-6
        )
        assert ChiSquareStatistic(law.median(), freedom).p == pytest.approx(
            1.0 if freedom >= MANY else 0.5, rel=1e-6
        )


# ----------------------------------------------------------------------------------- false alarms


@pytest.mark.slow
@pytest.mark.parametrize("population", [zipf, peaked])
@pytest.mark.parametrize("name", FAMILIES)
def test_p_values_of_honest_collectors_are_uniform(name, population):
    rng = np.random.default_rng([7, *name.encode(), population is zipf])
    rest, draws = checks_of(FAMILIES[name], 60, (1000, 4000), rng, population)
    assert uniform([check.p for check in rest]) > FALSE_ALARM
    if name in HIDE_DRAWS:
        assert all(math.isnan(check.p) for check in draws)
    else:
        assert uniform([check.p for check in draws]) > FALSE_ALARM


@pytest.mark.slow
def test_small_p_values_are_as_rare_as_they_should_be():
    rng = np.random.default_rng(11)
    some = [FAMILIES[name] for name in ("GRR", "OLH", "OUE", "HRR", "CountMeanSketch", "HaarHRR")]
    values = [
        check.p
        for protocol in some
        for checks in checks_of(protocol, 250, (300, 900, 30), rng)
        for check in checks
    ]
    known = np.array([value for value in values if not math.isnan(value)])
    for level in (0.05, 0.01, 0.001):
        false = int((known <= level).sum())
        assert stats.binom.sf(false - 1, len(known), level) > FALSE_ALARM
        # Three times as many would be seen
        assert stats.binom.sf(int(3 * level * len(values)) + 5, len(values), level) < 0.01


def test_a_wrong_variance_is_rejected():
    rng = np.random.default_rng(12)
    rest, _ = checks_of(FAMILIES["HRR"], 150, (1000, 4000), rng)
    assert uniform([check.p for check in rest]) > FALSE_ALARM
    for factor in (0.8, 1.25):
        wrong = [
            ChiSquareStatistic(check.chi_square.value * factor, check.chi_square.freedom)
            for check in rest
        ]
        below = [stats.chi2(value.freedom).cdf(value.value) for value in wrong]
        assert uniform(below) < FALSE_ALARM


def test_least_p_values_of_overlapping_marginals_are_not_too_small():
    rng = np.random.default_rng(13)
    rest, draws = checks_of(InpEM(ATTRIBUTES, 2, 1.0), 150, (1000, 4000), rng)
    values = np.array([check.p for check in rest])
    for level in (0.3, 0.1, 0.01):
        assert stats.binom.sf(int((values <= level).sum()) - 1, len(values), level) > FALSE_ALARM
    assert (values < 0.2).any()
    assert math.isnan(draws[0].p)


@pytest.mark.slow
def test_checks_of_many_honest_collectors_of_all_sizes_rarely_flag_one():
    rng = np.random.default_rng(14)
    sizes = (1, 3, 10, 30, 100, 300, 1000, 3000, 10000)
    flagged = 0
    for protocol in (
        GRR(16, 3.0),
        OLH(16, 1.0),
        OUE(16, 5.0),
        HRR(16, 5.0),
        HaarHRR(16, 1.0),
        SquareWave(16, 1.0),
    ):
        for _ in range(50):
            found = check_collectors(
                protocol, {str(n): honest(protocol, n, rng, peaked) for n in sizes}, level=0.01
            )
            flagged += bool(found.flagged)
    assert stats.binom.sf(flagged - 1, 300, 0.01) > FALSE_ALARM


# ------------------------------------------------------------------------------------------- lies

N = 20_000


def constant(channel, rng):
    """The report of one device, again and again."""
    return channel.aggregate(np.repeat(channel.privatize(np.zeros(1, dtype=np.int64), rng), N))


def other_population(channel, rng):
    shares = shares_of(channel, zipf)
    shares[: min(64, channel.domain)] = shares[: min(64, channel.domain)][::-1]
    return channel.simulate(rng.multinomial(N, shares), rng)


@pytest.mark.parametrize("lie", [constant, other_population])
@pytest.mark.parametrize("name", [*FAMILIES, "InpEM"])
def test_liars_are_flagged_in_every_family(name, lie):
    protocol = FAMILIES.get(name) or InpEM(ATTRIBUTES, 2, 1.0)
    if (name, lie) in [
        ("UniqueHeavyHitter", other_population),
        ("SuccinctHistogram", other_population),
        ("HRR of one index", constant),
    ]:
        pytest.skip("too little of it shows in so few reports")
    rng = np.random.default_rng([15, *name.encode()])
    channel = channel_of(protocol)
    collectors = {name: honest(protocol, 4 * N, rng) for name in "abcd"}
    assert not check_collectors(protocol, collectors).flagged
    found = check_collectors(protocol, {**collectors, "liar": lie(channel, rng)})
    assert "liar" in found.flagged
    assert "liar" in str(found)


def test_devices_that_do_not_randomise_and_a_wrong_epsilon_are_flagged():
    rng = np.random.default_rng(16)
    for kind in (GRR, HRR, OUE, SUE, SubsetSelection):
        oracle = kind(16, 1.0)
        collectors = {name: honest(oracle, 2 * N, rng) for name in "abcd"}
        for epsilon in (1.5, 20.0):  # at 20 hardly anybody lies
            if kind is SubsetSelection:
                continue  # its size would differ, and its reports be refused
            strong = honest(kind(16, epsilon), 2 * N, rng)
            found = check_collectors(
                oracle,
                {**collectors, "liar": Aggregate(oracle.signature, strong.n, strong.counts)},
            )
            assert found.collectors[4].rest.adjusted < 1e-6
        truthful = np.zeros(2 * N, dtype=oracle.report_dtype)
        if isinstance(oracle, SubsetSelection):
            items, size = rng.choice(16, 2 * N, p=zipf(16)), oracle.size
            ones = rng.permuted(np.tile(np.arange(15) < size - 1, (2 * N, 1)), axis=1)
            both = np.insert(ones, 0, True, axis=1)
            column = np.argsort(
                np.where(np.arange(16) == items[:, None], -1, np.arange(16)), axis=1, kind="stable"
            )
            sets = np.zeros_like(both)
            # Always the own item, and others at random
            np.put_along_axis(sets, column, both, axis=1)
            truthful["bits"] = np.packbits(sets, axis=1, bitorder="little")
            found = check_collectors(oracle, {**collectors, "liar": oracle.aggregate(truthful)})
            assert found.collectors[4].rest.adjusted < 1e-6


def test_an_index_that_is_always_the_first_is_flagged():
    rng = np.random.default_rng(17)
    oracle = HRR(64, 1.0)
    collectors = {name: honest(oracle, 2 * N, rng) for name in "abcd"}
    reports = oracle.privatize(rng.choice(64, N, p=zipf(64)), rng)
    signs = 1 - 2 * (
        np.bitwise_count(np.uint8(1) & rng.choice(64, N, p=zipf(64)).astype(np.uint8)) & 1
    ).astype(int)
    lies = rng.random(N) >= float(oracle._choice.p)
    reports["index"], reports["sign"] = 1, np.where(lies, -signs, signs)[:, None]
    found = check_collectors(oracle, {**collectors, "liar": oracle.aggregate(reports)})
    # So large a liar makes the others unlike the rest, too; without the one that is most unlike,
    # nothing is left to ask.
    assert "liar" in found.flagged
    assert max(found.collectors, key=lambda item: item.rest.chi_square.value).collector == "liar"
    assert not check_collectors(oracle, collectors).flagged


def test_public_draws_tell_a_lie_from_another_population():
    rng = np.random.default_rng(18)
    protocol = HaarHRR(64, 1.0)
    collectors = {name: honest(protocol, 2 * N, rng) for name in "abcd"}
    region = honest(protocol, 2 * N, rng, peaked)
    reports = protocol.privatize(rng.choice(64, 4 * N, p=zipf(64)), rng)
    # Fewer on the first level
    hasty = protocol.aggregate(reports[(reports["level"] > 0) | (rng.random(4 * N) < 0.5)][: 2 * N])
    found = check_collectors(protocol, {**collectors, "region": region, "hasty": hasty})
    verdicts = {item.collector: found.verdict(item) for item in found.collectors}
    assert verdicts["region"] == "unlike the rest"
    assert verdicts["hasty"] == "not drawn as the protocol says"
    alone = check_collectors(protocol, {"hasty": hasty})
    assert alone.flagged == ("hasty",)
    # What it says of its users cannot be judged
    assert not check_collectors(protocol, {"region": region}).flagged


def test_counts_that_are_too_much_like_the_rest_are_flagged():
    rng = np.random.default_rng(19)
    for protocol in (GRR(64, 1.0), HRR(64, 1.0), OUE(64, 1.0), OLH(64, 1.0)):
        collectors = {name: honest(protocol, 2 * N, rng) for name in "abcd"}
        everything = sum(collectors.values())
        counts = everything.counts // 8
        n = int(counts.sum()) if isinstance(protocol, (GRR, OLH)) else everything.n // 8
        # So that n signs can have these sums
        n -= int(counts.sum()) % 2 if isinstance(protocol, HRR) else 0
        copied = Aggregate(everything.parameters, n, counts)
        assert "copy" in check_collectors(protocol, {**collectors, "copy": copied}).flagged


# What frequency.storage.collector_checks says of its power: shares of made-up reports that are
# found at most once, or at least nine times, in ten.
POWER = {GRR: (0.002, 0.005), HRR: (0.015, 0.04), OLH: (0.01, 0.025)}


def made_up(oracle, item, count, rng):
    """Reports for one item, as a liar makes them who wants to look like a client."""
    reports = np.zeros(count, dtype=oracle.report_dtype)
    if isinstance(oracle, GRR):
        reports["item"] = item
    elif isinstance(oracle, OLH):
        reports["hash"] = rng.integers(0, oracle._space.size, count)
        reports["value"] = oracle._space.dot(reports["hash"].astype(np.int64), np.full(count, item))
    else:
        index = rng.integers(1, oracle.padded, count)
        reports["index"], reports["sign"] = (
            index[:, None],
            (1 - 2 * (np.bitwise_count(index & item) & 1).astype(int))[:, None],
        )
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("kind", POWER)
def test_the_power_against_made_up_reports_of_an_item(kind):
    rng, n, item, tries = np.random.default_rng(20), 100_000, 40, 30
    oracle, shifts, found = kind(64, 1.0), [], []
    for share in POWER[kind]:
        lies, flagged = int(share * n), 0
        for _ in range(tries):
            mine = honest(oracle, n - lies, rng) + oracle.aggregate(
                made_up(oracle, item, lies, rng)
            )
            others = {str(k): honest(oracle, n, rng) for k in range(9)}
            flagged += "liar" in check_collectors(oracle, {"liar": mine, **others}).flagged
        found.append(flagged / tries)
        contrast = (
            (64 - 1) / 64 / float(oracle._contrast)
            if kind is HRR
            else float((1 - oracle.q) / (oracle.p - oracle.q))
        )
        shifts.append(share * contrast)
    assert found[0] <= 0.1
    assert found[1] >= 0.9
    low, high = {GRR: (0.075, 0.188), HRR: (0.032, 0.085), OLH: (0.033, 0.083)}[kind]
    assert shifts == pytest.approx([low, high], abs=0.002)


# ------------------------------------------------------------------------- what else may be given


def test_hostile_and_trivial_collectors():
    oracle, rng = HRR(16, 1.0), np.random.default_rng(21)
    some = honest(oracle, 1000, rng)
    nobody = oracle.aggregate(np.zeros(0, dtype=oracle.report_dtype))
    one = oracle.aggregate(oracle.privatize([3], rng))
    with pytest.raises(ValueError, match="no collectors"):
        check_collectors(oracle, {})
    with pytest.raises(IncompatibleAggregate):
        check_collectors(
            oracle, {"a": some, "b": HRR(16, 1.1).aggregate(np.zeros(0, dtype=oracle.report_dtype))}
        )
    with pytest.raises(IncompatibleAggregate):
        # No 5 reports have these counts
        check_collectors(oracle, {"a": some, "b": Aggregate(oracle.signature, 5, some.counts)})
    with pytest.raises(TypeError, match="Aggregate"):
        check_collectors(oracle, {"a": some, "b": 7})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="protocol"):
        check_collectors("HRR", {"a": some})
    for level in (0.0, 1.0, -1.0, float("nan"), True, "0.1"):
        with pytest.raises(ValueError, match="level"):
            check_collectors(oracle, {"a": some}, level)
    for given in (
        {"a": some},
        {"a": some, "nobody": nobody},
        {"nobody": nobody},
        {"one": one},
        {"one": one, "another": one},
    ):
        found = check_collectors(oracle, given)
        assert not found.flagged
        assert all(math.isnan(item.rest.p) and item.rest.adjusted == 1 for item in found.collectors)
    found = check_collectors(oracle, {"a": some, "nobody": nobody, "one": one})
    assert [item.reports for item in found.collectors] == [1000, 0, 1]
    assert sum(item.share for item in found.collectors) == pytest.approx(1)


@pytest.mark.slow
@WITH_VALUES
def test_collectors_of_every_protocol(protocol, values):
    rng = np.random.default_rng(22)
    values = np.concatenate([values] * 5)
    halves = (np.sort(half) for half in np.array_split(rng.permutation(len(values)), 2))
    found = check_collectors(
        protocol,
        {
            str(k): protocol.aggregate(protocol.privatize(values[half], rng))
            for k, half in enumerate(halves)
        },
    )
    assert not found.flagged


def test_the_table_shows_what_was_left_out():
    oracle, rng = GRR(16, 1.0), np.random.default_rng(23)
    files = {"day-1.parquet": {"impossible": 3}, "day-2.parquet": {"impossible": 1, "malformed": 2}}
    north = Collected(
        honest(oracle, 4000, rng), {"day-1.parquet": 2000, "day-2.parquet": 2000}, {}, files, 2
    )
    lies = oracle.aggregate(np.full(1000, 5).astype([("item", "u1")]))
    found = check_collectors(
        oracle, {"north": north, "south": honest(oracle, 5000, rng), "west": lies}
    )
    assert found.rows()[0] == [
        "collector",
        "reports",
        "share",
        "left out",
        "p: rest",
        "p: draws",
        "verdict",
    ]
    assert found.rows()[1][:4] == ["north", "4000", "40.0%", "6"]
    assert found.rows()[3][:4] == ["west", "1000", "10.0%", "0"]
    assert found.rows()[3][5:] == ["-", "unlike the rest"]
    assert len(str(found).splitlines()) == 5

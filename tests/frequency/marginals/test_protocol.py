"""Protocols for marginals: audits and predictions are exactly those of the enumerated reports;
predictions are simulated.

False alarms: every statistical test alarms falsely at most once in a million times, is seeded, and
rejects a planted error.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtri

from frequency import Aggregate, IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.exceptions import InvalidQuestion
from frequency.marginals import (
    Domain,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MargPS,
    MargRR,
)
from tests.contracts.oracle import codes, positions, ratio_of
from tests.frequency.marginals.examples import (
    ALL,
    B3,
    B4,
    INPUT,
    MIXED,
    VIEW,
    all_cells,
    make,
    named,
    sets_of,
    small,
    users_of,
)
from tests.frequency.marginals.twins import Enumerated, node, table_of
from tests.goodness_of_fit import FALSE_ALARM, goodness

# -------------------------------------------------------------------------- exact, by enumeration


@small
def test_audit_is_the_enumerated_ratio(protocol) -> None:
    """And the reports are a distribution, all of them accepted, of no more kinds than their bits
    can tell.
    """
    twin, size = table_of(protocol), protocol.domain.size
    assert [sum(column) for column in zip(*twin.table, strict=True)] == [1] * size
    assert protocol.audit().ratio == ratio_of(twin.table, list(combinations(range(size), 2)))
    assert protocol.audit().holds
    assert protocol.audit().ratio <= protocol.channel.max_ratio
    assert size == 1 or math.log(protocol.audit().ratio) >= protocol.epsilon * (1 - 1e-6)
    assert protocol.aggregate(twin.reports).n == len(twin.reports)
    assert len(np.unique(twin.reports)) == len(twin.reports) <= 2**protocol.report_bits
    assert protocol.report_bits <= 8 * twin.reports.dtype.itemsize
    if twin.reports.dtype.itemsize <= 2:
        width = twin.reports.dtype.itemsize
        everything = np.arange(1 << 8 * width, dtype=f"<u{width}").view(twin.reports.dtype)
        accepted = everything[protocol.channel.possible(everything)]
        assert set(codes(accepted).tolist()) == set(codes(twin.reports).tolist())


@small
def test_predictions_for_even_populations_are_the_enumerated_ones(protocol) -> None:
    n, sets = 10**12, sets_of(protocol, 4)
    twin, even = (
        Enumerated(protocol, sets, users_of(protocol, n)),
        np.full(protocol.domain.size, 1 / protocol.domain.size),
    )
    expected = np.diag(twin.covariance(even)) / n
    found = [protocol.cell_variances(n, names) for names in sets]
    np.testing.assert_allclose(
        np.concatenate([v.ravel() for v in found]),
        expected,
        rtol=1e-7,
        atol=1e-9 * (expected.max() + 1 / n),
    )
    for names, variances in zip(sets, found, strict=True):
        assert variances.shape == tuple(protocol.domain[name] for name in names)
        assert protocol.total_variation(n, names) == pytest.approx(
            math.sqrt(2 / math.pi) * np.sqrt(variances).sum() / 2
        )
        np.testing.assert_allclose(
            protocol.cell_variances(n // 100, names), 100 * variances, rtol=1e-9
        )


# ------------------------------------------------------------------------------------ the sampler

SAMPLED = [
    InpHT(B3, 2, 1.0),
    InpHT(B4, 4, 1.0),
    InpHT(MIXED, 2, 1.0),
    InpHT(Domain({"a": 6, "b": 2}), 2, 1.0),
    MargPS(MIXED, 2, 1.0),
    MargHT(MIXED, 2, 1.0),
    MargRR(B3, 2, 1.0),
]


@pytest.mark.parametrize("protocol", SAMPLED, ids=named)
def test_sampler_has_the_distribution(protocol) -> None:
    """For every record, among 20 000 users of others, who are handled together; the neighbouring
    record's is rejected.
    """
    twin, users, size = table_of(protocol), 20_000, protocol.domain.size
    P = np.array([[float(p) for p in row] for row in twin.table])
    order = np.random.default_rng(0).permutation(np.repeat(np.arange(size), users))
    reports = protocol.privatize(protocol.domain.values(order), np.random.default_rng(20_250_101))
    found = positions(reports, twin.reports)
    for item in range(size):
        counts = np.bincount(found[order == item], minlength=len(P))
        assert goodness(counts, P[:, item]) > FALSE_ALARM / size, item
        other = (item + 1) % size
        if np.abs(P[:, item] - P[:, other]).sum() > 0.2:
            assert goodness(counts, P[:, other]) < FALSE_ALARM / size


@pytest.mark.parametrize(
    "protocol", [*SAMPLED, InpHT(Domain({"a": 4, "b": 6, "c": 2}), 3, 1.0)], ids=named
)
def test_nodes_of_many_users_are_those_of_the_definition(protocol) -> None:
    channel, rng = protocol.channel, np.random.default_rng(0)
    parts = rng.integers(len(channel.parts), size=500).astype(channel.report_dtype[channel.kind])
    items = rng.integers(protocol.domain.size, size=500)
    found = channel._nodes_of(parts, items)
    assert found.tolist() == [
        node(channel, int(part), int(item)) for part, item in zip(parts, items, strict=True)
    ]
    assert found.tolist() == [
        int(channel.part_items(int(p), np.array([x]))[0]) for p, x in zip(parts, items, strict=True)
    ]
    assert channel._nodes_of(parts[:0], items[:0]).shape == (0,)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", [p for p in SAMPLED if p.domain.size < 20], ids=named)
def test_simulation_has_the_moments(protocol) -> None:
    """Mean of every count against the table, and the two ways to get aggregates against each other:
    5.5 standard errors.
    """
    held, runs, rng = np.arange(protocol.domain.size) % 4 * 10, 600, np.random.default_rng(3)
    n = int(held.sum())
    one = np.array([protocol.simulate(held, rng).counts for _ in range(runs)], dtype=float)
    reports = protocol.channel.privatize(
        np.tile(np.repeat(np.arange(len(held)), held), runs), rng
    ).reshape(runs, n)
    two = np.array([protocol.aggregate(row).counts for row in reports], dtype=float)
    expected = sum(
        float(c) * held[item] * protocol.aggregate(twin_report).counts
        for row, twin_report in zip(
            table_of(protocol).table, table_of(protocol).reports[:, None], strict=True
        )
        for item, c in enumerate(row)
    )
    for counts in (one, two):
        scale = counts.std(axis=0, ddof=1) / math.sqrt(runs) + 1e-9
        assert (np.abs(counts.mean(axis=0) - expected) < 5.5 * scale).all()
        wrong = expected + np.roll(expected, 1) * 0.2
        assert (np.abs(counts.mean(axis=0) - wrong) > 5.5 * scale).any()
    random = one.var(axis=0) > 1e-9
    assert np.abs(np.log(one.var(axis=0)[random] / two.var(axis=0)[random])).max() < 0.5


# -------------------------------------------------------------------------------------- simulated


@pytest.mark.slow
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_predictions_against_simulation(kind) -> None:
    """The sum of squared errors of all cells of all marginals, d = 4, k = 2, an even population of
    1600.

    Allowed are 5 standard errors, about 2% each, and 2% for the chance in the numbers of users of
    parts. A fifth more or less is rejected, and two fifths for InpHTCMS, where the prediction is an
    average over hash functions.
    """
    runs, n, rng = (
        {InpHTCMS: 250, InpHT: 500, MargHT: 350}.get(kind, 1000),
        1600,
        np.random.default_rng(20_250_103),
    )
    protocol, planted = kind(B4, 2, 1.0), 1.4 if kind is InpHTCMS else 1.2
    sets = [view for size in (1, 2) for view in B4.views(size)]
    predicted = sum(protocol.cell_variances(n, names).sum() for names in sets)
    truth = np.concatenate([np.full(2 ** len(names), 2.0 ** -len(names)) for names in sets])
    errors = np.empty((runs, len(truth)))
    claimed, covered = 0.0, 0.0
    for run in range(runs):
        estimate = protocol.estimate(protocol.simulate(np.full(16, n // 16), rng))
        errors[run] = all_cells(estimate, sets) - truth
        if run < 40:
            claimed += sum(estimate.cells(names).variance.sum() for names in sets) / 40
            low, high = estimate.cells(("b", "d")).interval()
            covered += ((low <= 1 / 4) & (high >= 1 / 4)).mean() / 40
    squares = (errors**2).sum(axis=1)
    allowed = 5 * squares.std(ddof=1) / math.sqrt(runs) + 0.02 * squares.mean()
    assert allowed < 0.8 * (planted - 1) * squares.mean()
    assert abs(squares.mean() - predicted) < allowed
    assert abs(squares.mean() - planted * predicted) > allowed
    assert claimed == pytest.approx(predicted, rel=0.1)
    assert covered > 0.8  # of 95%; 160 cells, in 40 independent groups
    mean = errors.mean(axis=0)
    assert (
        np.abs(mean) < -ndtri(FALSE_ALARM / 100) * errors.std(axis=0, ddof=1) / math.sqrt(runs)
    ).all()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_records_of_users(kind) -> None:
    """From records to marginals, of 40 000 users who are not evenly spread: no cell is further off
    than one in a million times.

    A record that is moved, by swapping two attributes, is noticed.
    """
    domain, n, rng = Domain({"a": 3, "b": 2, "c": 4}), 40_000, np.random.default_rng(5)
    records = np.stack(
        [rng.binomial(2, 0.2, n), rng.random(n) < 0.9, rng.binomial(3, 0.1, n)], axis=1
    )
    records[:, 2] = np.where(records[:, 1] == 1, records[:, 2], 3)
    protocol = kind(domain, 2, 2.0)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    worst = -ndtri(FALSE_ALARM / 100)
    for names in (("a",), ("c", "b"), ("a", "c")):
        assert (
            np.abs(estimate.marginal(names) - domain.marginal(records, names))
            < worst * np.sqrt(estimate.cells(names).variance)
        ).all()
        assert estimate.total_variation(names) > 0
    wrong = domain.marginal(np.roll(records, 1, axis=0) % [3, 2, 4] * [1, 0, 1], ("c", "b"))
    assert (
        np.abs(estimate.marginal(("c", "b")) - wrong)
        > worst * np.sqrt(estimate.cells(("c", "b")).variance)
    ).any()


def test_table_4_1_communication() -> None:
    """No more bits than the table allows: InpRR 2^d, InpPS d, InpHT d + 1, MargRR d + 2^k, MargPS d
    + k, MargHT d + k + 1.
    """
    for d, k in ((2, 1), (4, 1), (4, 2), (8, 2), (8, 3), (16, 2), (20, 3)):
        domain = Domain.binary(*map(str, range(d)))
        T, views = sum(math.comb(d, j) for j in range(1, k + 1)), math.comb(d, k)
        assert InpHT(domain, k, 1.0).report_bits == math.ceil(math.log2(T)) + 1 <= d + 1
        if d <= 16:
            assert InpRR(domain, k, 1.0).report_bits == 2**d
            assert InpPS(domain, k, 1.0).report_bits == d
            assert InpOLH(domain, k, 1.0).report_bits < 100
            assert InpHTCMS(domain, k, 1.0).report_bits == 3 + 9
        which = math.ceil(math.log2(views))
        assert which <= d
        assert MargRR(domain, k, 1.0).report_bits == which + 2**k
        assert MargPS(domain, k, 1.0).report_bits == which + k
        assert MargHT(domain, k, 1.0).report_bits == which + k + 1


# ------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_nobody_and_somebody(kind) -> None:
    protocol = make(kind, MIXED, 2, 1.0)
    nobody = protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros((0, 4), dtype=int))))
    assert nobody.n == 0
    assert nobody.marginal(["b", "a"]).shape == nobody.cells(["b", "a"]).variance.shape == (3, 2)
    assert np.isnan(nobody.marginal(["b", "a"])).all()
    assert (nobody.cells(["b", "a"]).variance == np.inf).all()
    assert (nobody.cells(["b"]).interval().low == -np.inf).all()
    assert (nobody.cells(["b"]).interval().high == np.inf).all()
    assert math.isnan(nobody.answer({"a": 1}).value)
    assert nobody.answer({"a": 1}).variance == math.inf
    assert nobody.total_variation("a") == math.inf
    with pytest.raises(ValueError, match="no reports"):
        nobody.distribution("a")
    assert protocol.simulate(np.zeros(MIXED.size, dtype=int)) == nobody.aggregate
    for seed in range(6):
        rng = np.random.default_rng(seed)
        one = protocol.estimate(protocol.aggregate(protocol.privatize([[1, 2, 0, 1]], rng)))
        for names in sets_of(protocol):
            marginal, variances = one.marginal(names), one.cells(names).variance
            # What nobody reported on has no value, and no precision
            assert (np.isfinite(marginal) | (variances == np.inf)).all()
            assert (variances >= 0).all()
        assert one.n == 1


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_messages_and_merging(kind) -> None:
    protocol, rng = make(kind, MIXED, 2, 1.0), np.random.default_rng(1)
    reports = protocol.privatize(rng.integers(0, MIXED.shape, size=(300, 4)), rng)
    assert reports.dtype == protocol.channel.report_dtype
    whole = protocol.aggregate(reports)
    assert protocol.aggregate(reports[:77]) + protocol.aggregate(reports[77:]) == whole
    assert sum(protocol.aggregate(reports[k : k + 1]) for k in range(300)) == whole
    assert protocol.aggregate(rng.permutation(reports)) == whole
    message = protocol.reports_to_bytes(reports)
    assert protocol.reports_from_bytes(message).tobytes() == reports.tobytes()
    tally: Counter[str] = Counter()
    assert len(protocol.reports_from_bytes(message[:-1], tally)) == 299
    assert tally == {"truncated": 1}
    again = protocol.aggregate_from_bytes(whole.to_bytes())
    assert again == whole
    assert (protocol.estimate(again).marginal("b") == protocol.estimate(whole).marginal("b")).all()
    first, second = (
        protocol.privatize(np.zeros((50, 4), dtype=int), np.random.default_rng(4)) for _ in range(2)
    )
    assert first.tobytes() == second.tobytes()
    # Estimates do not mix up aggregates that come one after the other.
    half = protocol.estimate(protocol.aggregate(reports[:150])).marginal(["a", "b"])
    estimate = protocol.estimate(whole)
    assert estimate.marginal(["a", "b"]).tolist() != half.tolist()
    assert (
        protocol.estimate(protocol.aggregate(reports[:150])).marginal(["a", "b"]).tolist()
        == half.tolist()
    )
    fresh = make(kind, MIXED, 2, 1.0)
    assert fresh == protocol
    assert hash(fresh) == hash(protocol)
    assert fresh.parameters == protocol.parameters
    assert (
        fresh.estimate(whole).marginal(["a", "b"]).tolist()
        == estimate.marginal(["a", "b"]).tolist()
    )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_foreign_aggregates(kind) -> None:
    protocol = make(kind, MIXED, 2, 1.0)
    mine = protocol.aggregate(protocol.privatize([[0, 0, 0, 0]]))
    others = [
        make(kind, MIXED, 2, 1.25),
        make(kind, B4, 2, 1.0),
        *(make(other, MIXED, 2, 1.0) for other in ALL if other is not kind),
    ]
    others += [
        make(kind, Domain({"x": 2, "b": 3, "c": 1, "d": 2}), 2, 1.0),
        make(kind, Domain({"b": 3, "a": 2, "c": 1, "d": 2}), 2, 1.0),
    ]
    if kind not in INPUT:  # which tell the record, for marginals of any number of attributes
        others.append(make(kind, MIXED, 1, 1.0))
    for other in others:
        theirs = other.aggregate(other.privatize([[0, 0, 0, 0]]))
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(theirs)
        with pytest.raises(IncompatibleAggregate):
            mine + theirs
        with pytest.raises(IncompatibleAggregate):
            protocol.aggregate_from_bytes(theirs.to_bytes())
        with pytest.raises(InvalidReport):
            protocol.reports_from_bytes(other.reports_to_bytes(other.privatize([[0, 0, 0, 0]])))
    for counts in (mine.counts * 0 - 1, mine.counts + 5):
        with pytest.raises(IncompatibleAggregate):
            protocol.estimate(Aggregate(mine.parameters, mine.n, counts))


@pytest.mark.parametrize("kind", [*VIEW, InpHT], ids=lambda kind: kind.__name__)
def test_changed_reports_are_refused(kind) -> None:
    protocol, rng = kind(Domain({"a": 2, "b": 3, "c": 5}), 1, 1.0), np.random.default_rng(1)
    good = protocol.privatize(rng.integers(0, protocol.domain.shape, size=(400, 3)), rng)
    channel, field = protocol.channel, protocol.channel.kind

    def refused(bad, position) -> None:
        with pytest.raises(InvalidReport, match=rf"reports\[{position}\].* cannot have been sent"):
            protocol.aggregate(bad)
        tally: Counter[str] = Counter()
        assert protocol.aggregate(bad, tally) == protocol.aggregate(np.delete(good, position))
        assert tally == {"impossible": 1}

    for part in (len(channel.parts), 255):
        bad = good.copy()
        bad[field][7] = part
        refused(bad, 7)
    for k, part in enumerate(channel.parts):
        place = int(np.flatnonzero(good[field] == k)[0])
        for byte in range(part.report_dtype.itemsize, good.dtype["body"].itemsize):
            bad = good.copy()
            bad["body"][place, byte] = 1
            refused(bad, place)
        names = (
            {"shift": (part.domain, 255), "sign": (0, 2, -2, 127)}
            if kind is InpHT
            else {"sign": (0, 3)}
            if kind is MargHT
            else {}
        )
        for name, values in names.items():
            for value in values:
                own = np.zeros(1, dtype=part.report_dtype)
                own["sign"] = 1
                if kind is MargHT:
                    own["index"] = 1
                own[name] = value
                bad = good.copy()
                bad["body"][place, : own.itemsize] = own.view(np.uint8)
                refused(bad, place)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("k", [0, 5, -1, 1.0, True, None, "2", np.float64(2), [1]], ids=str)
def test_wrong_k(kind, k) -> None:
    with pytest.raises(ValueError, match="k must be a number of attributes, 1 to 4"):
        make(kind, B4, k, 1.0)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_wrong_arguments(kind) -> None:
    for epsilon in (0, -1.0, math.nan, math.inf, None, True, "much", 2.0**-40):
        with pytest.raises((ValueError, TypeError), match="epsilon"):
            make(kind, B3, 2, epsilon)
    for domain in ({"a": 2}, 8, None, ("a", "b")):
        with pytest.raises(ValueError, match="domain must be"):
            make(kind, domain, 1, 1.0)
    for large in (Domain.binary(*map(str, range(63))), Domain({"a": 1 << 62, "b": 1 << 62})):
        with pytest.raises(ValueError, match=r"records, more than 2\^62|by itself"):
            make(kind, large, 1, 1.0)
    protocol = make(kind, B3, 2, Fraction(11, 10))
    assert protocol.audit().holds
    assert make(kind, B3, np.int64(2), "1.1").parameters == protocol.parameters
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize([[0, 1, 1], [1, 1, 0]])))
    asked = (
        estimate.marginal,
        estimate.cells,
        estimate.distribution,
        lambda names: protocol.cell_variances(10, names),
        lambda names: protocol.total_variation(10, names),
    )
    for ask in asked:
        for names in ([], ["x"], ["a", "a"], [0], [True], ["a", None]):
            with pytest.raises(ValueError, match="attributes must be distinct names among a, b, c"):
                ask(names)
        with pytest.raises(ValueError, match="marginals of up to 2 attributes, got 3"):
            ask(["a", "b", "c"])
    for value in (2, -1, 0.5, True, None, "0", [0, 2], [True], [[0]], [0.0], ["0"], (0, 1, 1)):
        with pytest.raises(InvalidQuestion):
            estimate.answer({"a": value})
    for where in ({}, {"x": 0}, {3: 0}, {True: 0}, {None: 0}, {"a": 0, 0: 0}, 5):
        with pytest.raises(InvalidQuestion):
            estimate.answer(where)
    with pytest.raises(ValueError, match="marginals of up to 2 attributes, got 3"):
        estimate.answer({"a": 0, "b": 0, "c": 0})
    for n in (0, 1.5, True, None):
        with pytest.raises(ValueError, match="n must be a number of users"):
            protocol.cell_variances(n, ["a"])
    for records in ([[0, 0, 2]], [[0, 0, -1]], [[0, 0, math.nan]]):
        with pytest.raises(InvalidValue):
            protocol.privatize(records)
    for shapeless in ([0, 0, 0], [[0, 0]]):
        with pytest.raises(ValueError, match="shape"):
            protocol.privatize(shapeless)
    with pytest.raises(ValueError, match="counts must be 8"):
        protocol.simulate([1, 2])


def test_domains_that_are_too_large() -> None:
    wide = Domain.binary(*map(str, range(62)))
    for kind in INPUT:
        with pytest.raises(ValueError, match="counts every record by itself"):
            kind(wide, 2, 1.0)
        with pytest.raises(ValueError, match="counts every record by itself"):
            kind(Domain({"a": (1 << 22) + 1}), 1, 1.0)
    for viewing in VIEW:
        with pytest.raises(ValueError, match="sets of 31 attributes"):
            viewing(wide, 31, 1.0)
    with pytest.raises(ValueError, match="coefficients, more than"):
        InpHT(wide, 31, 1.0)
    with pytest.raises(ValueError, match="coefficients, more than"):
        InpHT(Domain({"a": 1 << 40}), 1, 1.0)
    with pytest.raises(ValueError, match="counts, more than"):
        InpHT(Domain({"a": 97, "b": 101}), 2, 1.0)


@pytest.mark.slow
def test_many_attributes() -> None:
    """Items of 62 bits: marginals of two attributes out of 62, from few users on each."""
    domain, rng = Domain.binary(*map(str, range(62))), np.random.default_rng(0)
    records = np.ones((30_000, 62), dtype=np.uint8)
    records[::3, 0] = 0
    for kind in (InpHT, MargPS):
        protocol = kind(domain, 2, 4.0)
        estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
        for names in (("0", "61"), ("61", "30")):
            error = np.abs(estimate.marginal(names) - domain.marginal(records, names))
            assert (
                error < -ndtri(FALSE_ALARM / 20) * np.sqrt(estimate.cells(names).variance) + 1e-9
            ).all()

"""Protocols for marginals: audits, estimates and variances are exactly those of the enumerated
reports; predictions are simulated.

False alarms: every statistical test alarms falsely at most once in a million times, is seeded, and
rejects a planted error.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

from frequency import Aggregate, IncompatibleAggregate, InvalidReport, InvalidValue
from frequency.core.mixture import weights_of
from frequency.exceptions import InvalidQuestion
from frequency.marginals import (
    Domain,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MarginalEstimate,
    MargPS,
    MargRR,
)
from frequency.marginals.fourier import Phase
from frequency.marginals.views import Views
from tests.contracts.oracle import LN3, close, codes, positions, ratio_of, some_weights
from tests.frequency.marginals.twins import Enumerated, node, parts_of, phase_twin, table_of
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD

INPUT, VIEW = (InpRR, InpPS, InpOLH, InpHTCMS), (MargRR, MargPS, MargHT)
ALL = (*INPUT, *VIEW, InpHT)
B2, B3, B4 = (Domain.binary(*"abcd"[:d]) for d in (2, 3, 4))
MIXED = Domain({"a": 2, "b": 3, "c": 1, "d": 2})
SMALL = [
    *[kind(B3, 2, 1.0) for kind in (InpRR, InpPS, InpOLH, MargRR, MargPS, MargHT, InpHT)],
    *[
        kind(B4, k, 0.5)
        for kind in (InpPS, MargRR, MargPS, MargHT, InpHT)
        for k in (1, 2, 4)
        if (kind, k) != (MargRR, 4)
    ],
    *[
        kind(Domain({"a": 3, "b": 2}), 2, LN3)
        for kind in (InpRR, InpPS, InpOLH, MargPS, MargHT, InpHT)
    ],
    *[kind(MIXED, 3, 2.0) for kind in (InpPS, MargHT, InpHT)],
    *[kind(MIXED, 2, 0.1) for kind in (MargRR, MargPS, MargHT, InpHT)],
    InpHT(Domain({"a": 5, "b": 4}), 2, 1.0),
    InpHT(Domain({"a": 6, "b": 4, "c": 2}), 2, 1.0),
    InpHT(Domain({"a": 7}), 1, 1.0),
    *[kind(Domain({"a": 1}), 1, 1.0) for kind in (InpPS, MargPS, InpHT)],
]


def named(protocol) -> str:
    return f"{type(protocol).__name__}-{'x'.join(map(str, protocol.domain.shape))}-k{protocol.k}"


small = pytest.mark.parametrize("protocol", SMALL, ids=named)


def make(kind, domain, k, epsilon, **more):
    return kind(
        domain, k, epsilon, **({"hashes": 3, "width": 4} if kind is InpHTCMS else {}), **more
    )


def sets_of(protocol, largest=6):
    """Sets of up to k attributes: all, and some in another order than the domain's."""
    names = list(protocol.domain)
    found = [view for size in range(1, protocol.k + 1) for view in combinations(names, size)]
    return [*found[-largest:], found[0], *([found[-1][::-1]] if protocol.k > 1 else [])]


def some_population(domain, seed=0):
    """Not even, and not all records occur."""
    held = np.random.default_rng(seed).dirichlet(np.ones(domain.size))
    held[1::3] = 0
    return held / held.sum()


def users_of(protocol, n):
    return [round(n * part.weight) for part in parts_of(protocol)]


def all_cells(estimate, sets):
    return np.concatenate([estimate.marginal(names).ravel() for names in sets])


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
        accepted = everything[protocol.channel._possible(everything)]
        assert set(codes(accepted).tolist()) == set(codes(twin.reports).tolist())


@small
def test_estimates_are_unbiased(protocol) -> None:
    """For every record and marginal, whatever the numbers of users of the parts; and affine in the
    counts.
    """
    sets, rng = sets_of(protocol), np.random.default_rng(1)
    parts = len(parts_of(protocol))
    for users in (list(range(1, parts + 1)), rng.integers(1, 40, parts).tolist()):
        twin = Enumerated(protocol, sets, users)
        close(twin.mean(), twin.truth(), 100)
        drawn = [
            rng.integers(len(p.reports), size=n) for p, n in zip(twin.parts, users, strict=True)
        ]
        reports = np.concatenate([p.reports[d] for p, d in zip(twin.parts, drawn, strict=True)])
        expected = twin.origin + sum(
            x[d].mean(axis=0) for x, d in zip(twin.effects, drawn, strict=True)
        )
        close(
            all_cells(protocol.estimate(protocol.aggregate(rng.permutation(reports))), sets),
            expected,
            100,
        )


@small
def test_variances_are_the_enumerated_ones(protocol) -> None:
    """Of cells, of sums and of answers, when what is plugged in is the truth: from counts that are
    as expected of 10^12 users.
    """
    n, sets, rng = 10**12, sets_of(protocol, 4), np.random.default_rng(2)
    twin, held = Enumerated(protocol, sets, users_of(protocol, n)), some_population(protocol.domain)
    estimate = MarginalEstimate(protocol, twin.aggregate(held))
    total = sum(twin.users)
    # Counts are rounded
    np.testing.assert_allclose(all_cells(estimate, sets), held @ twin.truth(), atol=1e-8)
    covariance, start = twin.covariance(held), 0
    for names in sets:
        marginal = estimate.marginal(names)
        own = covariance[start : start + marginal.size, start : start + marginal.size]
        start += marginal.size
        scale = np.diag(own).max() + 1e-3
        weights = some_weights(marginal.size)
        expected = ((weights @ own) * weights).sum(axis=1)
        for found, wanted in (
            (estimate.variances(names).ravel(), np.diag(own)),
            (estimate._linear(names, weights).variance, expected),
        ):
            np.testing.assert_allclose(
                total * found, wanted, rtol=1e-7, atol=1e-7 * scale * (1 + (weights**2).sum())
            )
        where = {
            name: np.flatnonzero(rng.integers(0, 2, protocol.domain[name])).tolist()
            for name in names
        }
        chosen = np.zeros(marginal.shape)
        chosen[np.ix_(*where.values())] = 1
        value, variance = estimate.answer(where)
        assert value == pytest.approx((chosen * marginal).sum(), abs=1e-12)
        assert total * variance == pytest.approx(
            chosen.ravel() @ own @ chosen.ravel(), rel=1e-7, abs=1e-7 * scale * marginal.size
        )
    # A planted error: another population's variances are told apart.
    if protocol.domain.size > 1:
        other = np.diag(twin.covariance(some_population(protocol.domain, 1)))
        found = np.concatenate([estimate.variances(names).ravel() for names in sets])
        assert not np.allclose(total * found, other, rtol=1e-7, atol=1e-9) or np.allclose(
            np.diag(covariance), other
        )


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


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, 7, 12])
def test_phases(order) -> None:
    """Every multiple that has a gain is told without bias; its second moment is 1 / (contrast
    gain)^2 for any phase.
    """
    channel = Phase(order, 1.0)
    twin = phase_twin(channel)
    P = np.array([[float(p) for p in row] for row in twin.table])
    X = np.array(
        [channel.coefficients(channel.aggregate(twin.reports[r : r + 1])) for r in range(len(P))]
    )
    wave = np.exp(2j * np.pi * np.outer(np.arange(order), np.arange(order)) / order)
    some = channel.gains > 1e-9
    assert some[0] == (order == 0)
    assert some[1 : order // 2 + 1 : 2].all()
    close((P.T @ X)[:, some], wave[:, some], X.real)
    close(
        (P.T @ np.abs(X) ** 2)[:, some],
        np.tile((channel.contrast * channel.gains[some]) ** -2, (order, 1)),
        np.abs(X) ** 2,
    )
    assert not X[:, ~some].any()
    assert channel.audit().ratio == ratio_of(twin.table, list(combinations(range(order), 2)))


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
        int(channel._nodes(int(p), np.array([x]))[0]) for p, x in zip(parts, items, strict=True)
    ]
    assert channel._nodes_of(parts[:0], items[:0]).shape == (0,)


def test_parity_of_bits() -> None:
    """Where phases are parities of an item's bits they are counted as such: for the halves of even
    attributes too.
    """
    masks = InpHT(Domain.binary(*map(str, range(62))), 1, 1.0).channel._masks
    assert masks is not None
    assert masks.tolist() == [1 << 61 - k for k in range(62)]
    masks = InpHT(B3, 2, 1.0).channel._masks
    assert masks is not None
    assert masks.tolist() == [4, 2, 1, 6, 5, 3]
    assert InpHT(MIXED, 2, 1.0).channel._masks is None
    assert InpHT(Domain({"a": 2, "b": 4}), 1, 1.0).channel._masks is None


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
            claimed += sum(estimate.variances(names).sum() for names in sets) / 40
            low, high = estimate.interval(("b", "d"))
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
            < worst * np.sqrt(estimate.variances(names))
        ).all()
        assert estimate.total_variation(names) > 0
    wrong = domain.marginal(np.roll(records, 1, axis=0) % [3, 2, 4] * [1, 0, 1], ("c", "b"))
    assert (
        np.abs(estimate.marginal(("c", "b")) - wrong)
        > worst * np.sqrt(estimate.variances(("c", "b")))
    ).any()


# -------------------------------------------------------------------------------------- published


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 3), (4, 4)])
def test_theorem_5_variance_of_a_coefficient(d, k, epsilon) -> None:
    """A coefficient of mean 0 has variance T / (2p - 1)^2 - 1 = 4 T p (1-p) / (2p-1)^2 + T - 1,
    times 1 / n, for p_s = 1 / T.

    Where the thesis has 4 T e^eps / (e^eps - 1)^2 + 1 (4.6), by (4.4): there the users who sample
    another coefficient count as an error of 1, but the estimate of those who sample it is scaled
    after its error is taken, not before. By enumeration the right one is the larger. (Coefficients
    are equally likely when all are needed by as many marginals.)
    """
    T, protocol = (
        sum(math.comb(d, j) for j in range(1, k + 1)),
        InpHT(Domain.binary(*"abcd"[:d]), k, epsilon),
    )
    assert (
        max(protocol.channel.part_weights) - min(protocol.channel.part_weights) <= 2**64 / T * 1e-9
    )
    p = Fraction(int(protocol.channel.parts[0].parameters["truth"]), WORD)
    outcomes = [
        (Fraction(1, T) * p, T / (2 * p - 1)),
        (Fraction(1, T) * (1 - p), -T / (2 * p - 1)),
        (1 - Fraction(1, T), Fraction(0)),
    ]
    assert sum(chance * value for chance, value in outcomes) == 1
    variance = sum(chance * (value - 1) ** 2 for chance, value in outcomes)
    assert variance == 4 * T * p * (1 - p) / (2 * p - 1) ** 2 + T - 1
    e = math.exp(epsilon)
    assert float(variance) == pytest.approx(4 * T * e / (e - 1) ** 2 + T - 1)
    assert variance > 4 * T * p * (1 - p) / (2 * p - 1) ** 2 + 1 - Fraction(1, T) or T < 2
    for name in protocol.domain:  # a cell of a marginal of one attribute is (1 +- coefficient) / 2
        np.testing.assert_allclose(
            4 * 1000 * protocol.cell_variances(1000, [name]), float(variance), rtol=1e-9
        )


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
def test_theorem_4_variance_of_preferential_sampling(epsilon) -> None:
    """p_s (1 - p_s) (D / Delta)^2 for the record held, (1 - p_s) (D + p_s - 1) / Delta^2 for
    others; D / Delta as simplified.
    """
    D, e = 2**4 - 1, math.exp(epsilon)
    p = 1 / (1 + D / e)
    delta = D * p + p - 1
    assert D / delta == pytest.approx(1 / (1 - 1 / e) + D / (e - 1))
    own, other = p * (1 - p) * (D / delta) ** 2, (1 - p) * (D + p - 1) / delta**2
    protocol = InpPS(B4, 4, epsilon)
    np.testing.assert_allclose(
        protocol.cell_variances(50, list("abcd")), (own / 16 + other * 15 / 16) / 50, rtol=1e-6
    )
    held = np.eye(16)[5]
    twin = Enumerated(protocol, [tuple("abcd")], [10**12])
    np.testing.assert_allclose(
        np.diag(twin.covariance(held)), np.where(held, own, other), rtol=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
def test_theorem_3_variance_of_unary_encoding(epsilon) -> None:
    """OUE: 4 e^eps / (e^eps - 1)^2 for a record nobody holds, never more than the theorem's a / (a
    - 1)^2, a = e^(eps/2).

    (The theorem has four times that, for -1 and 1 in place of 0 and 1.) Bits are independent: the
    variance of a cell of 2^(d-k) records is the sum of theirs.
    """
    e, a = math.exp(epsilon), math.exp(epsilon / 2)
    other = 4 * e / (e - 1) ** 2
    assert other <= a / (a - 1) ** 2
    own = other + 1  # p = 1/2: 1 / (4 (p - q)^2) for the holder
    assert own == pytest.approx((e + 1) ** 2 / (e - 1) ** 2)
    for k in (1, 2, 3):
        protocol = InpRR(B4, k, epsilon)
        expected = 2 ** (4 - k) * other + (own - other) / 2**k
        np.testing.assert_allclose(
            protocol.cell_variances(1, list("abcd"[:k])), expected, rtol=1e-6
        )
        assert expected <= 2 ** (4 - k) * a / (a - 1) ** 2 + 1


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


def test_lemma_6_marginals_from_coefficients() -> None:
    """The marginal of beta is 2^-k times the sum over alpha inside beta of (-1)^<alpha, gamma>
    theta_alpha: of no others.
    """
    protocol, rng = InpHT(B4, 3, 1.0), np.random.default_rng(7)
    records = rng.integers(0, 2, size=(3000, 4)) * rng.integers(0, 2, size=(3000, 4))
    reports = protocol.privatize(records, rng)
    theta, contrast = {(0, 0, 0, 0): 1.0}, protocol.channel.parts[0].contrast
    for part, alpha in enumerate(protocol.channel.parameters["characters"]):
        # After the shift, which is 0
        signs = reports["body"][reports["direction"] == part][:, 1].view("i1")
        theta[tuple(alpha)] = signs.mean() / contrast
    assert len(theta) == 1 + 4 + 6 + 4
    estimate = protocol.estimate(protocol.aggregate(reports))
    for names in [view for k in (1, 2, 3) for view in permutations("abcd", k)]:
        places, found = ["abcd".index(name) for name in names], estimate.marginal(names)
        for gamma in product((0, 1), repeat=len(names)):
            total = 0.0
            for inside in product((0, 1), repeat=len(names)):
                alpha = [0, 0, 0, 0]
                for place, value in zip(places, inside, strict=True):
                    alpha[place] = value
                total += (-1) ** sum(a * g for a, g in zip(inside, gamma, strict=True)) * theta[
                    tuple(alpha)
                ]
            assert found[gamma] == pytest.approx(total / 2 ** len(names), abs=1e-12)


# ----------------------------------------------------------------------------------- coefficients

SEVEN = Domain({"two": 2, "three": 3, "four": 4, "one": 1, "five": 5, "six": 6, "seven": 7})


@pytest.fixture(scope="module")
def of_many() -> tuple[InpHT, np.ndarray, Aggregate]:
    """What is expected of 10^12 users with these records: sums of signs by the definition of
    phases.
    """
    protocol, rng = InpHT(SEVEN, 2, 1.0), np.random.default_rng(9)
    records = rng.binomial(np.array(SEVEN.shape) - 1, 0.3, size=(60, 7))
    channel, n = protocol.channel, 10**12
    counts, contrast = [], channel.parts[0].contrast
    users = [round(n * weight / WORD) for weight in channel.part_weights]
    for part, (phase, mine) in enumerate(zip(channel.parts, users, strict=True)):
        m = phase.domain
        c = channel.directions[part]
        held = Counter(
            int(
                sum(Fraction(a * x, r) for a, x, r in zip(c, row, SEVEN.shape, strict=True)) % 1 * m
            )
            for row in records.tolist()
        )
        for shift in range(m if m > 2 else 1):
            mean = sum(k / 60 * (1 if 2 * ((p + shift) % m) < m else -1) for p, k in held.items())
            counts.append(round(mine * contrast * mean / (m if m > 2 else 1)))
    aggregate = Aggregate(
        channel._signature, sum(users), np.array([*users, *counts], dtype=np.int64)
    )
    return protocol, records, aggregate


def test_coefficients_of_mixed_cardinalities(of_many) -> None:
    """The transform of every marginal is the mean of exp(2 pi i sum_j c_j x_j / r_j), by complex
    sums over the records.
    """
    protocol, records, aggregate = of_many
    estimate = MarginalEstimate(protocol, aggregate)
    for names in [view for k in (1, 2) for view in permutations(SEVEN, k)]:
        columns, shape = records[:, SEVEN.places(names)], [SEVEN[name] for name in names]
        found = protocol._transform(aggregate, names)
        for c in product(*map(range, shape)):
            expected = np.exp(2j * np.pi * (columns * np.array(c) / shape).sum(axis=1)).mean()
            assert abs(found[c] - expected) < 1e-8
            if any(c):
                assert (
                    abs(
                        found[c]
                        - np.exp(
                            2j * np.pi * (columns * (np.array(c) + 1) / shape).sum(axis=1)
                        ).mean()
                    )
                    > 1e-8
                    or max(shape) == 1
                )
        np.testing.assert_allclose(
            estimate.marginal(names), SEVEN.marginal(records, names), atol=1e-8
        )


def test_a_planted_error_is_rejected(of_many) -> None:
    """One sum of signs of one direction in another place."""
    protocol, records, aggregate = of_many
    part = next(
        k
        for k, c in enumerate(protocol.channel.directions)
        if sum(map(bool, c)) == 2 and c[2] and c[5]
    )
    counts = aggregate.counts.copy()
    place = protocol.channel._places[part]
    assert np.ptp(counts[place])
    counts[place] = np.roll(counts[place], 1)
    wrong = MarginalEstimate(protocol, Aggregate(aggregate.parameters, aggregate.n, counts))
    assert (
        np.abs(wrong.marginal(("four", "six")) - SEVEN.marginal(records, ("four", "six"))).max()
        > 1e-4
    )


@pytest.mark.parametrize("domain", [B4, SEVEN, Domain({"a": 5, "b": 2, "c": 6})], ids=repr)
def test_directions_are_the_coefficients_of_low_order(domain) -> None:
    """One of every conjugate pair; all that marginals need are seen; and no more are asked than
    there are.
    """
    for k in (1, 2, 3):
        protocol, shape = InpHT(domain, k, 1.0), domain.shape
        directions = protocol.channel.directions
        assert directions == protocol.channel.directions
        low = [c for c in product(*map(range, shape)) if 1 <= sum(map(bool, c)) <= k]
        conjugate = [tuple(-a % r for a, r in zip(c, shape, strict=True)) for c in low]
        assert set(directions) | {
            tuple(-a % r for a, r in zip(c, shape, strict=True)) for c in directions
        } == set(low)
        assert len(directions) == sum(c <= d for c, d in zip(low, conjugate, strict=True))
        assert set(low) <= set(protocol._seen)
        for coefficient, ways in protocol._seen.items():
            for part, multiple in ways:
                assert (
                    tuple(multiple * a % r for a, r in zip(directions[part], shape, strict=True))
                    == coefficient
                )


@pytest.mark.parametrize("domain", [B4, MIXED, Domain({"a": 5, "b": 2, "c": 6})], ids=repr)
def test_part_weights_are_the_roots_of_what_they_cost(domain) -> None:
    """By summing over all marginals of k attributes 1 / cells for each coefficient of one of them,
    and counting conjugates.
    """
    for k in range(1, len(domain) + 1):
        channel = InpHT(domain, k, 1.0).channel
        roots = []
        for direction in channel.directions:
            involved = {name for name, c in zip(domain, direction, strict=True) if c}
            cost = sum(
                1 / domain.project(view).size for view in domain.views(k) if involved <= set(view)
            )
            own = all(2 * c % r == 0 for c, r in zip(direction, domain.shape, strict=True))
            # Else it stands for its conjugate, too
            roots.append(math.sqrt(cost) * (1 if own else 2))
        np.testing.assert_allclose(
            np.array(channel.part_weights, dtype=float) / WORD,
            np.array(roots) / sum(roots),
            rtol=1e-11,
        )
        assert sum(channel.part_weights) == WORD


def test_attributes_of_many_values_cost_less_than_as_bits() -> None:
    """d = 6, k = 2: the root of the mean variance of the cells of all marginals, at most 0.9 of
    that over binary attributes.

    There an attribute is ceil(log2 r) bits, and the marginal of two is one of twice as many; codes
    that are not used are left out.
    """
    rivals = {}
    for r in (3, 5, 6, 7):
        bits, n = (r - 1).bit_length(), 1 << 20
        if bits not in rivals:
            binary = InpHT(
                Domain.binary(*(f"{a}{b}" for a in range(6) for b in range(bits))), 2 * bits, 1.1
            )
            rivals[bits] = math.sqrt(
                binary.cell_variances(n, binary.domain.attributes[: 2 * bits]).mean()
            )
        own = InpHT(Domain({f"a{k}": r for k in range(6)}), 2, 1.1)
        variances = [own.cell_variances(n, view) for view in own.domain.views(2)]
        assert np.ptp(variances) < 1e-9 * np.mean(variances)
        assert math.sqrt(np.mean(variances)) <= 0.9 * rivals[bits]


# ----------------------------------------------------------------------------- marginals together


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_orders_of_attributes(kind) -> None:
    protocol, rng = make(kind, MIXED, 3, 1.0), np.random.default_rng(1)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(rng.integers(0, MIXED.shape, size=(500, 4)), rng))
    )
    base = ("a", "b", "d")
    for order in permutations(range(3)):
        names = [base[place] for place in order]
        close(estimate.marginal(names), estimate.marginal(base).transpose(order), 10)
        close(estimate.variances(names), estimate.variances(base).transpose(order), 10)
        close(
            protocol.cell_variances(500, names),
            protocol.cell_variances(500, base).transpose(order),
            10,
        )
        where: dict[str, Any] = {"a": 1, "b": [0, 2], "d": 0}
        assert tuple(estimate.answer({name: where[name] for name in names})) == pytest.approx(
            tuple(estimate.answer(where))
        )
    assert not estimate.marginal("a").flags.writeable
    assert (estimate.marginal("a") == estimate.marginal(["a"])).all()
    assert estimate.distribution(base).sum() == pytest.approx(1)
    assert estimate.distribution(base).min() >= 0
    assert repr(estimate) == "<Estimate of marginals of up to 3 of 4 attributes from 500 reports>"


@pytest.mark.parametrize("kind", [*INPUT, InpHT], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("domain", [B4, SEVEN, MIXED], ids=["binary", "seven", "mixed"])
def test_marginals_of_overlapping_sets_agree(kind, domain) -> None:
    """They are of one estimate: of all records, or of coefficients. (Not so where every view is
    estimated by itself.)
    """
    if domain is SEVEN and kind is not InpHT:
        domain = Domain({"two": 2, "three": 3, "five": 5})
    k = min(3, len(domain))
    protocol, rng = make(kind, domain, k, 1.0), np.random.default_rng(2)
    estimate = protocol.estimate(
        protocol.aggregate(
            protocol.privatize(rng.integers(0, domain.shape, size=(20_000, len(domain))), rng)
        )
    )
    for names in list(domain.views(k))[:10]:
        for name in names:
            axes = tuple(k for k, other in enumerate(names) if other != name)
            np.testing.assert_allclose(
                estimate.marginal(names).sum(axis=axes), estimate.marginal([name]), atol=1e-11
            )
        if kind is InpHT:
            assert estimate.marginal(names).sum() == pytest.approx(1, abs=1e-12)
            assert (
                estimate._linear(names, np.ones((1, estimate.marginal(names).size))).variance[0]
                < 1e-15
            )


def test_smaller_marginals_of_views_use_all_that_hold_them() -> None:
    """More precise than any one view: as many times as there are, by and large."""
    protocol = MargPS(B4, 2, 1.0)
    single = MargPS(B2, 2, 1.0).cell_variances(1000, ["a"])
    np.testing.assert_allclose(protocol.cell_variances(6000, ["a"]), single / 3, rtol=0.05)


# ------------------------------------------------------------------------------------------ edges


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_nobody_and_somebody(kind) -> None:
    protocol = make(kind, MIXED, 2, 1.0)
    nobody = protocol.estimate(protocol.aggregate(protocol.privatize(np.zeros((0, 4), dtype=int))))
    assert nobody.n == 0
    assert nobody.marginal(["b", "a"]).shape == nobody.variances(["b", "a"]).shape == (3, 2)
    assert np.isnan(nobody.marginal(["b", "a"])).all()
    assert (nobody.variances(["b", "a"]) == np.inf).all()
    assert (nobody.interval(["b"]).low == -np.inf).all()
    assert (nobody.interval(["b"]).high == np.inf).all()
    assert math.isnan(nobody.answer({"a": 1}).value)
    assert nobody.answer({"a": 1}).variance == math.inf
    assert nobody.total_variation("a") == math.inf
    with pytest.raises(ValueError, match="no reports"):
        nobody.distribution("a")
    assert protocol.simulate(np.zeros(MIXED.size, dtype=int)) == nobody._aggregate
    for seed in range(6):
        rng = np.random.default_rng(seed)
        one = protocol.estimate(protocol.aggregate(protocol.privatize([[1, 2, 0, 1]], rng)))
        for names in sets_of(protocol):
            marginal, variances = one.marginal(names), one.variances(names)
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
    protocol = make(kind, B3, 2, Fraction(11, 10))
    assert protocol.audit().holds
    assert make(kind, B3, np.int64(2), "1.1").parameters == protocol.parameters
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize([[0, 1, 1], [1, 1, 0]])))
    asked = (
        estimate.marginal,
        estimate.variances,
        estimate.interval,
        estimate.total_variation,
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


def test_answers_with_sets_of_values() -> None:
    protocol, rng = InpHT(Domain({"a": 5, "b": 3}), 2, 1.0), np.random.default_rng(0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(rng.integers(0, [5, 3], size=(400, 2)), rng))
    )
    table = estimate.marginal(["a", "b"])
    values: Any
    for values in ([1, 3], {1, 3}, range(1, 4, 2), [np.int8(1), 3, 3]):
        assert estimate.answer({"a": values, "b": 2}).value == pytest.approx(table[[1, 3], 2].sum())
    assert estimate.answer({"a": (1, 3), "b": 2}).value == pytest.approx(table[1:4, 2].sum())
    many = estimate.answer({"a": (np.array([0, 1]), np.array([[3], [4]])), "b": np.array([2, 0])})
    assert many.value.shape == many.variance.shape == (2, 2)
    assert many.value[1, 0] == pytest.approx(table[0:5, 2].sum())
    assert many.value[0, 1] == pytest.approx(table[1:4, 0].sum())
    assert many.interval().low.shape == (2, 2)
    assert tuple(estimate.answer({"a": [], "b": 2})) == (0, 0)
    everybody = estimate.answer({"a": range(5), "b": range(3)})
    assert tuple(everybody) == pytest.approx((1, 0), abs=1e-12)
    assert tuple(estimate.answer({"b": 0})) == pytest.approx(
        (estimate.marginal("b")[0], estimate.variances("b")[0])
    )


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
                error < -ndtri(FALSE_ALARM / 20) * np.sqrt(estimate.variances(names)) + 1e-9
            ).all()


def test_mixtures_of_views_of_unlike_cells() -> None:
    """Some views only, each with an oracle of its own size."""
    views = Views(MIXED.size, 1.0, MIXED, (("b", "a"), ("d",)), "GRR")
    assert [part.domain for part in views.parts] == [6, 2]
    assert views.part_weights == weights_of(2, None)
    reports = views.privatize(np.arange(12), np.random.default_rng(0))
    assert views.aggregate(reports).n == 12
    assert views.audit().holds

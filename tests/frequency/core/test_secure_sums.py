"""Aggregates of which servers that add up secret shares know nothing but the sums.

The shares are those of Prio3 of the IETF's Verifiable Distributed Aggregation Functions
(draft-irtf-cfrg-vdaf), elements of Field128 in 16 bytes, little-endian, against its own test
vectors. What Prio3 adds to that, proofs that a measurement is valid, is not the subject here.
"""

import json
from fractions import Fraction
from pathlib import Path
from random import Random

import numpy as np
import pytest

import frequency
import rangeq
from frequency import (
    GRR,
    HRR,
    OUE,
    SUE,
    IncompatibleAggregate,
    InvalidReport,
    Oracle,
    SubsetSelection,
)
from frequency.core.protocol import channel_of
from mechdesign import named
from tests.contracts.examples import WITH_VALUES, numbers

VECTORS = json.loads((Path(__file__).parent / "vdaf_vectors.json").read_text())
FIELD = int(VECTORS["field"])
USERS = 20
SINGLE = (
    *("GRR", "RR", "Tabular", "OLH", "ProjectiveGeometry", "SquareWave", "InpPS", "InpOLH"),
    *("HRR", "JLOracle", "HadamardCountMeanSketch", "UniqueHeavyHitter", "InpHTCMS"),
)
"""Those of which Prio3Histogram takes the measurements, by docs/collecting.md."""


def elements(share):
    """A vector of Field128 in bytes as integers."""
    return [int.from_bytes(share[k : k + 16], "little") for k in range(0, len(share), 16)]


def encoded(vector):
    return b"".join((number % FIELD).to_bytes(16, "little") for number in vector)


def added(shares):
    """The sum of vectors of Field128: what an aggregator makes of its shares."""
    return encoded(sum(column) for column in zip(*map(elements, shares), strict=True))


def two_shares(vector, random):
    """A vector as the sum of two, of which each by itself is uniformly random."""
    masks = [random.randrange(FIELD) for _ in vector]
    rest = [number - mask for number, mask in zip(vector, masks, strict=True)]
    return encoded(masks), encoded(rest)


def aggregated_in_secret(protocol, reports):
    """The aggregate that a collector makes, who sees two aggregators' sums of shares."""
    random = Random(1)
    shares = [two_shares(row, random) for row in protocol.measurements(reports).tolist()]
    leader, helper = (added(mine) for mine in zip(*shares, strict=True))
    return protocol.aggregate_from_sums(elements(added([leader, helper])), len(reports))


def sums_of(protocol, reports):
    return protocol.measurements(reports).sum(axis=0, dtype=np.int64)


@pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
def test_shares_are_those_of_prio3(vector):
    result = elements(added(map(bytes.fromhex, vector["agg_shares"])))
    assert result == vector["agg_result"]
    n, length = len(vector["measurements"]), vector["length"]
    if vector["name"].startswith("Prio3Histogram"):
        oracle: Oracle = GRR(length, 1.0)
        reports = np.array(vector["measurements"], "u1").view(oracle.report_dtype)
    else:
        oracle = OUE(length, 1.0)
        bits = np.array(vector["measurements"]) > 0
        reports = np.packbits(bits, axis=1, bitorder="little").view(oracle.report_dtype).ravel()
    if max(result) <= n:
        assert oracle.aggregate_from_sums(result, n) == oracle.aggregate(reports)
    else:  # of numbers of more than one bit
        with pytest.raises(IncompatibleAggregate, match=r"sums\[0\] = 256 is not an integer 0"):
            oracle.aggregate_from_sums(result, n)


HISTOGRAM = [
    (frequency.GRR(5, 1.0), 5),
    (frequency.RR(2, 1.0), 2),
    (frequency.Tabular(named.krr(4, alpha=Fraction(1, 3))), 4),
    (frequency.ProjectiveGeometry(20, 1.0), 21),
    (frequency.OLH(9, 1.0), 22),
    (frequency.HRR(10, 1.0), 32),
    (frequency.JLOracle(50, 1.0, rows=16), 32),
    (frequency.HadamardCountMeanSketch(50, 1.0, hashes=2, width=8), 32),
    (rangeq.SquareWave(10, 1.0), None),
]


@pytest.mark.parametrize(("protocol", "length"), HISTOGRAM, ids=lambda p: type(p).__name__)
def test_one_position(protocol, length):
    # Prio3Histogram, whose measurement is where the 1 is
    items = numbers(protocol.domain)
    told = protocol.measurements(protocol.privatize(items, np.random.default_rng(1)))
    assert told.shape[1] == (protocol.outputs if length is None else length)
    assert (told.sum(axis=1) == 1).all()
    assert told.any(axis=0).sum() > 1


def test_what_the_numbers_stand_for():
    grr, oue, subset = GRR(4, 1.0), OUE(10, 1.0), SubsetSelection(20, 1.0)
    assert grr.measurements(np.array([(2,), (0,)], grr.report_dtype)).tolist() == [
        [0, 0, 1, 0],
        [1, 0, 0, 0],
    ]
    report = np.array([([0b101, 0b10],)], oue.report_dtype)
    assert oue.measurements(report).tolist() == [[1, 0, 1, 0, 0, 0, 0, 0, 0, 1]]
    assert subset.size == 5  # the weight for Prio3MultihotCountVec
    drawn = subset.privatize(numbers(20), np.random.default_rng(1))
    assert (subset.measurements(drawn).sum(axis=1) == 5).all()
    hrr = HRR(4, 1.0)  # the signs +1 of the four coefficients, then the signs -1
    reports = np.array([([3], [1]), ([1], [-1])], hrr.report_dtype)
    assert hrr.measurements(reports).tolist() == [
        [0, 0, 0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
    ]
    # A mixture: the part, then those of the parts: of Haar's levels, each with its signs +1; then
    # the signs -1 of each level
    haar = rangeq.HaarHRR(4, 1.0)
    two, one = (part.counts_shape[0] for part in haar.channel.parts)
    reports = np.zeros(2, haar.report_dtype)
    reports["level"] = [0, 1]
    first, second = (
        np.array([row], part.report_dtype)
        for part, row in zip(haar.channel.parts, [(two - 1, -1), (one - 1, 1)], strict=True)
    )
    for row, body in zip(reports, (first, second), strict=True):
        row["body"][: body.itemsize] = np.frombuffer(body.tobytes(), np.uint8)
    told = haar.measurements(reports)
    assert told.shape == (2, 2 + 2 * (two + one))
    assert np.flatnonzero(told[0]).tolist() == [0, 2 + two + one + two - 1]
    assert np.flatnonzero(told[1]).tolist() == [1, 2 + two + one - 1]


@pytest.mark.parametrize(
    "protocol",
    [
        *(kind(20, 1.0) for kind in (GRR, OUE, SUE, SubsetSelection, HRR)),
        rangeq.HierarchicalHistogram(16, 1.0, branching=4, oracle=("OUE", "HRR")),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_shares_among_two_aggregators(protocol):
    reports = protocol.privatize(numbers(16), np.random.default_rng(1))
    found, whole = aggregated_in_secret(protocol, reports), protocol.aggregate(reports)
    assert found == whole
    assert found.to_bytes() == whole.to_bytes()
    told, known = protocol.estimate(found), protocol.estimate(whole)
    for ours, theirs in zip(told.interval(0.95), known.interval(0.95), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@WITH_VALUES
def test_every_protocol(protocol, values):
    reports = protocol.privatize(values[:USERS], np.random.default_rng(1))
    told = protocol.measurements(reports)
    assert set(np.unique(told)) <= {0, 1}
    if type(protocol).__name__ in SINGLE and getattr(protocol, "coefficients", 1) == 1:
        assert (told.sum(axis=1) == 1).all()
    sums = told.sum(axis=0, dtype=np.int64)
    assert protocol.aggregate_from_sums(sums, len(reports)) == protocol.aggregate(reports)
    part = protocol.aggregate_from_sums(sums_of(protocol, reports[:7]), 7)
    rest = protocol.aggregate_from_sums(sums_of(protocol, reports[7:]), len(reports) - 7)
    assert part + rest == protocol.aggregate(reports)
    nobody = protocol.measurements(reports[:0])
    assert nobody.shape == (0, told.shape[1])
    assert protocol.aggregate_from_sums(nobody.sum(axis=0), 0) == protocol.aggregate(reports[:0])


def refused(protocol, sums, n):
    with pytest.raises(IncompatibleAggregate) as error:
        protocol.aggregate_from_sums(sums, n)
    return str(error.value)


@WITH_VALUES
def test_sums_that_no_reports_have(protocol, values):
    reports = protocol.privatize(values[:USERS], np.random.default_rng(1))
    sums, n = sums_of(protocol, reports), len(reports)
    length = len(sums)
    for wrong in (sums[:-1], np.append(sums, 0), sums[:, None], int(sums[0])):
        assert f"expected {length} sums" in refused(protocol, wrong, n)
    first = int(np.argmax(sums))
    for value, shown in ((-1, "-1"), (n + 1, str(n + 1)), (1 << 70, str(1 << 70)), (0.5, "0.5")):
        wrong = sums.astype(object)
        wrong[first] = value
        message = f"sums[{first}] = {shown} is not an integer 0 .. {n}, as of {n} reports"
        assert message in refused(protocol, wrong, n)
    for bad in (-1, None, 2.5, True, "3", 1 << 63):
        assert "n must be a number of reports" in refused(protocol, sums, bad)
    with pytest.raises(TypeError):
        protocol.aggregate_from_sums(sums)
    with pytest.raises(InvalidReport):
        protocol.measurements(reports[reports.dtype.names[0]])


@WITH_VALUES
def test_a_sign_less_of_each_kind(protocol, values):
    # As many of +1 and of -1 are gone: the counts might be those of reports, but the sums are not
    signs = list(channel_of(protocol).sign_sums)
    reports = protocol.privatize(values[:USERS], np.random.default_rng(1))
    sums, n = sums_of(protocol, reports), len(reports)
    if not signs:
        assert len(sums) == np.prod(channel_of(protocol).counts_shape)
        return
    size, first = int(np.prod(channel_of(protocol).counts_shape)), 0
    changed = False
    for part in signs:
        plus = sums[part.start : part.stop]
        minus = sums[size + first : size + first + part.stop - part.start]
        first += part.stop - part.start
        if plus.any() and minus.any():
            plus[int(np.argmax(plus))] -= 1
            minus[int(np.argmax(minus))] -= 1
            changed = True
    assert changed
    assert f"no {n} reports have these sums" in refused(protocol, sums, n)


@pytest.mark.parametrize("protocol", [protocol for protocol, _ in HISTOGRAM], ids=type)
def test_any_other_sum_of_positions(protocol):
    reports = protocol.privatize(numbers(protocol.domain, 40), np.random.default_rng(1))
    sums, n = sums_of(protocol, reports), len(reports)
    for place in range(len(sums)):
        for step in (-1, 1):
            wrong = sums.copy()
            wrong[place] += step
            refused(protocol, wrong, n)
    for wrong in (n - 1, n + 1, 0):
        refused(protocol, sums, wrong)
    # A masked sum is missing
    refused(protocol, np.ma.masked_array(sums, mask=sums == sums.max()), n)


def test_sums_that_would_overflow():
    n = (1 << 63) - 1
    assert "more signs than reports" in refused(HRR(2, 1.0), [0, n, 0, n], n)
    assert HRR(2, 1.0).aggregate_from_sums([0, n - 1, 0, 1], n).counts.tolist() == [0, n - 2]
    refused(OUE(2, 1.0), [n, 1 << 63], n)
    refused(GRR(2, 1.0), [n, n], n)

"""Aggregates travel, add and compare: a typed refusal for everything changed, forged or foreign."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    RR,
    SUE,
    Aggregate,
    CountMeanSketch,
    HadamardCountMeanSketch,
    IncompatibleAggregate,
    InvalidReport,
    JLOracle,
    Oracle,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from mechdesign import Mechanism, Privacy
from tests.frequency.core.messages import (
    AGGREGATES_EACH,
    ORACLES,
    TABLE,
    aggregate_header,
    countable,
    damaged,
    every_oracle,
    header_of,
    message,
    odd_headers,
    sealed,
    signature,
    slow_header,
    some_reports,
)

# ---------------------------------------------------------------------------------------- fuzzing


def corrupted_aggregates(oracle: Oracle, rng: np.random.Generator, number: int) -> Iterator[bytes]:
    """Changed bytes of an aggregate, without its digest."""
    aggregate = oracle.aggregate(some_reports(oracle, 3))
    body = aggregate.counts.astype("<i8").tobytes()
    header = aggregate_header(oracle)
    yield from (message(odd, body) for odd in odd_headers(header))
    yield from (message(odd, b"") for odd in odd_headers(header))
    small = oracle.aggregate_from_bytes(aggregate.to_bytes()).to_bytes()[:-32]
    if len(small) < 1000:
        yield from damaged(small, rng, number)
    for _ in range(number):
        counts = aggregate.counts.copy().ravel()
        for _ in range(rng.integers(1, 4)):
            at, step = (
                rng.integers(counts.size),
                int(rng.choice([-(2**62), -4, -2, -1, 1, 2, 4, 2**62])),
            )
            counts[at] = max(-(2**63), min(2**63 - 1, int(counts[at]) + step))
        yield message(
            {**header, "n": int(rng.choice([0, 1, 2, 3, 3, 3, 4, 5]))},
            counts.astype("<i8").tobytes(),
        )
    yield from (
        message({**header, "parameters": signature(other)}, body)
        for other in ORACLES.values()
        if other != oracle
    )
    yield message(header_of(oracle), body)


@every_oracle
def test_changed_aggregates_are_never_accepted(name: str) -> None:
    oracle, made = ORACLES[name], 0
    whole = oracle.aggregate(some_reports(oracle, 3)).to_bytes()
    rng = np.random.default_rng(4)
    cases = damaged(whole if len(whole) < 1000 else whole[:300] + whole[-300:], rng, 2000)
    digest = whole[-32:]
    resealed = (content + digest for content in corrupted_aggregates(oracle, rng, 1000))
    for data in itertools.chain(
        cases,
        resealed,
        (rng.bytes(length) for length in range(100)),
        [hashlib.sha256(b"").digest()],
    ):
        made += 1
        for read in (Aggregate.from_bytes, oracle.aggregate_from_bytes):
            try:
                read(data)
                assert data == whole
            except IncompatibleAggregate:
                assert data != whole
    assert made >= AGGREGATES_EACH


@pytest.mark.slow
@every_oracle
def test_forged_aggregates_are_accepted_only_if_possible_whatever_the_digest(name: str) -> None:
    oracle, accepted = ORACLES[name], 0
    for content in corrupted_aggregates(oracle, np.random.default_rng(5), 1000):
        found = slow_header(content)
        try:
            read = oracle.aggregate_from_bytes(sealed(content))
        except IncompatibleAggregate:
            continue
        assert found is not None
        header, body = found
        assert (header["kind"], header["parameters"], header["n"]) == (
            "aggregate",
            signature(oracle),
            read.n,
        )
        assert type(header["n"]) is int
        assert read.counts.tobytes() == body
        assert list(read.counts.shape) == aggregate_header(oracle)["shape"]
        assert countable(oracle, read.n, read.counts), content
        accepted += 1
    assert accepted


# ------------------------------------------------------------------------------------- aggregates


@pytest.mark.parametrize("shape", [5, -1, None, [-1], [-5]], ids=str)
def test_a_shape_that_is_not_written_out_is_refused(shape: Any) -> None:
    data = sealed(message(aggregate_header(ORACLES["GRR"], n=0, shape=shape), bytes(40)))
    with pytest.raises(IncompatibleAggregate):
        ORACLES["GRR"].aggregate_from_bytes(data)


OTHERS: list[tuple[Oracle, Oracle]] = [
    *((GRR(5, 1.0), other) for other in (GRR(5, 1.0000001), GRR(6, 1.0), GRR(5, 2.0), SUE(5, 1.0))),
    *(
        (SUE(9, 1.0), other)
        for other in (OUE(9, 1.0), SUE(9, 1.5), SUE(10, 1.0), SubsetSelection(9, 1.0))
    ),
    (RR(2, 1.0), GRR(2, 1.0)),
    (OLH(11, 1.0), OLH(12, 1.0)),
    (ProjectiveGeometry(11, 1.0), ProjectiveGeometry(12, 1.0)),
    *((HRR(11, 1.0), other) for other in (HRR(11, 1.0, 2), HRR(12, 1.0))),
    *(
        (CountMeanSketch(9, 1.0, 4, 8, 1), other)
        for other in (
            *(
                CountMeanSketch(9, 1.0, 4, 8, 2),
                CountMeanSketch(9, 1.0, 8, 4, 1),
                CountMeanSketch(9, 1.0, 4, 16, 1),
            ),
            *(CountMeanSketch(8, 1.0, 4, 8, 1), HadamardCountMeanSketch(9, 1.0, 4, 8, 1)),
        )
    ),
    (HadamardCountMeanSketch(9, 1.0, 4, 8, 1), HadamardCountMeanSketch(9, 1.0, 4, 8, 2)),
    *(
        (JLOracle(9, 1.0, 40, 1), other)
        for other in (JLOracle(9, 1.0, 40, 2), JLOracle(9, 1.0, 41, 1), JLOracle(9, 2.0, 40, 1))
    ),
    (
        Tabular(TABLE),
        Tabular(
            Mechanism(
                [["2/3", "1/3"], ["1/3", "2/3"], [0, 0]], Privacy(alpha="1/2", neighbours="all")
            )
        ),
    ),
    (
        Tabular(TABLE),
        Tabular(Mechanism([["2/3", "1/3"], [0, 0], ["1/3", "2/3"]], Privacy(alpha="1/2"))),
    ),
]


@pytest.mark.parametrize(("mine", "other"), OTHERS, ids=repr)
def test_what_is_of_another_oracle_is_refused(mine: Oracle, other: Oracle) -> None:
    a, b = mine.aggregate(some_reports(mine, 5)), other.aggregate(some_reports(other, 5))
    assert a != b
    for refuse in (
        *(
            lambda: a + b,
            lambda: b + a,
            lambda: sum([a, b]),
            lambda: mine.estimate(b),
            lambda: other.estimate(a),
        ),
        *(
            lambda: mine.aggregate_from_bytes(b.to_bytes()),
            lambda: other.aggregate_from_bytes(a.to_bytes()),
        ),
    ):
        with pytest.raises(IncompatibleAggregate):
            refuse()
    tally: Counter[str] = Counter()
    assert len(mine.reports_from_bytes(other.reports_to_bytes(some_reports(other, 5)), tally)) == 0
    assert tally == Counter(foreign=5)
    with pytest.raises(InvalidReport, match=r"^reports of .*, not of "):
        mine.reports_from_bytes(other.reports_to_bytes(some_reports(other, 5)))


@every_oracle
def test_aggregates_add_compare_and_cannot_be_written_to(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 30)
    parts = [
        oracle.aggregate(reports[:1]),
        oracle.aggregate(reports[1:13]),
        oracle.aggregate(reports[13:]),
        oracle.aggregate(reports[:0]),
    ]
    whole = oracle.aggregate(reports)
    for order in itertools.permutations(parts):
        assert sum(order) == whole
    assert (parts[0] + parts[1]) + parts[2] == parts[0] + (parts[1] + parts[2]) == whole
    assert whole + parts[3] == whole
    assert whole != parts[0]
    assert whole != 0
    assert whole != oracle.aggregate(np.concatenate([reports, reports]))
    assert oracle.aggregate(reports[::-1]) == whole
    for aggregate in (whole, parts[0] + parts[1], oracle.aggregate_from_bytes(whole.to_bytes())):
        with pytest.raises(ValueError, match="read-only"):
            aggregate.counts[...] = 0
    with pytest.raises(TypeError, match="unhashable"):
        hash(whole)
    for thing in (1, None, "0", whole.counts.tolist()):
        with pytest.raises(TypeError):
            thing + whole
        with pytest.raises(TypeError):
            whole + thing  # type: ignore[operator]
    assert sum([]) == 0  # nothing knows of which oracle it would be
    with pytest.raises((AttributeError, TypeError)):
        whole.n = 3  # type: ignore[misc]  # read-only


@pytest.mark.parametrize("parameters", [None, 3, True, [], {}, ["x"], {"protocol": "GRR"}], ids=str)
def test_parameters_that_are_no_text_are_refused_before_the_oracle_is_known(
    parameters: Any,
) -> None:
    data = sealed(message(aggregate_header(ORACLES["GRR"], parameters=parameters, n=0), bytes(40)))
    with pytest.raises(IncompatibleAggregate, match="must be a text"):
        Aggregate.from_bytes(data)


def test_counts_are_compared_and_summed_without_wrapping_around() -> None:
    oracle = ORACLES["GRR"]
    mine, other = (
        oracle.aggregate(some_reports(oracle, 5)),
        oracle.aggregate(some_reports(oracle, 5, seed=2)),
    )
    assert mine.n == other.n
    assert mine != other
    wrapped = np.array([2**62, 2**62, 2**62, 2**62, 3])  # 2^64 + 3
    with pytest.raises(IncompatibleAggregate):
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), 3, wrapped).to_bytes())


def test_fewer_than_two_to_the_63_reports_fit() -> None:
    oracle = ORACLES["SUE"]

    def of(n: int) -> Aggregate:
        return oracle.aggregate_from_bytes(
            Aggregate(signature(oracle), n, np.full(11, n // 2)).to_bytes()
        )

    most = of(2**62) + of(2**62 - 1)
    assert most.n == 2**63 - 1
    assert oracle.aggregate_from_bytes(most.to_bytes()) == most
    assert np.isfinite(oracle.estimate(most).frequencies).all()
    for a, b in ((of(2**62), of(2**62)), (most, of(1)), (most, most)):
        with pytest.raises(OverflowError):
            a + b


def test_aggregates_whose_counts_have_other_shapes_do_not_add() -> None:
    oracle = ORACLES["SUE"]
    mine = oracle.aggregate(some_reports(oracle, 5))
    for shape in ((1,), (4,), (11, 1), (0,)):
        forged = Aggregate.from_bytes(
            Aggregate(signature(oracle), 2, np.ones(shape, dtype=np.int64)).to_bytes()
        )
        for refuse in (lambda forged=forged: mine + forged, lambda forged=forged: forged + mine):
            with pytest.raises(IncompatibleAggregate):
                refuse()

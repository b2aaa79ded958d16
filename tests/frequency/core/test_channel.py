"""Reports and their counts travel: exact round trips, published layouts, and a typed refusal for
everything corrupted or forged.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
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
from tests.frequency.core.messages import (
    AGGREGATES_EACH,
    HOSTILE,
    LAYOUTS,
    MESSAGES_EACH,
    ORACLES,
    REPORTS_EACH,
    TABLE,
    aggregate_header,
    batch_header,
    countable,
    damaged,
    every_oracle,
    header_of,
    message,
    odd_headers,
    sealed,
    sendable,
    signature,
    slow_read,
    some_reports,
    wire,
)


def layout_of(dtype: np.dtype[np.void]) -> Mapping[str, tuple[Any, ...]]:
    """The type and the offset of each field."""
    assert dtype.fields is not None
    return dtype.fields


# -------------------------------------------------------------- round trips and what is published


@every_oracle
def test_the_layout_is_packed_little_endian_and_as_published(name: str) -> None:
    dtype = ORACLES[name].report_dtype
    at = 0
    assert list(dtype.names) == [field for field, _, _ in LAYOUTS[name]]
    for field, size, number in LAYOUTS[name]:
        part, offset = layout_of(dtype)[field][:2]
        assert (offset, part.itemsize) == (at, size * number)
        assert part.base.str in (
            ("<" if size > 1 else "|") + ("i" if field == "sign" else "u") + str(size),
        )
        at += size * number
    assert dtype.itemsize == at
    assert ORACLES[name].report_bits <= 8 * at


@pytest.mark.parametrize(
    ("domain", "size"), [(1, 1), (256, 1), (257, 2), (1 << 16, 2), ((1 << 16) + 1, 4), (1 << 32, 4)]
)
def test_items_take_as_few_bytes_as_hold_them(domain: int, size: int) -> None:
    assert GRR(domain, 1.0).report_dtype == np.dtype([("item", f"<u{size}")])


@every_oracle
@pytest.mark.parametrize("users", [0, 1, 3, 1000])
def test_round_trips_are_exact(name: str, users: int) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, users)
    assert all(sendable(name, raw.tobytes()) for raw in reports)
    sent = oracle.reports_to_bytes(reports)
    tally: Counter[str] = Counter()
    for back in (oracle.reports_from_bytes(sent), oracle.reports_from_bytes(sent, tally)):
        assert back.dtype == oracle.report_dtype
        assert np.array_equal(back, reports)
    assert not tally
    batch = oracle.transport.batch
    identity = batch(sent).id
    assert sent == message(batch_header(oracle, count=users, id=identity), reports.tobytes())
    assert batch(oracle.reports_to_bytes(reports)).id != identity
    older = message(header_of(oracle, count=users), reports.tobytes())
    assert np.array_equal(oracle.reports_from_bytes(older), reports)
    single = oracle.single_reports_to_bytes(reports)
    assert single == [wire(oracle) + report.tobytes() for report in reports]
    assert np.array_equal(oracle.single_reports_from_bytes(iter(single)), reports)

    aggregate = oracle.aggregate(reports)
    data = aggregate.to_bytes()
    assert aggregate.n == users
    assert countable(oracle, users, aggregate.counts)
    shape = list(aggregate.counts.shape)
    assert data == sealed(
        message(
            aggregate_header(oracle, n=users, shape=shape), aggregate.counts.astype("<i8").tobytes()
        )
    )
    for again in (Aggregate.from_bytes(data), oracle.aggregate_from_bytes(data)):
        assert again == aggregate
        assert (again.n, again.counts.dtype, again.counts.shape) == (
            users,
            np.int64,
            aggregate.counts.shape,
        )
        assert again.to_bytes() == data
        assert not again.counts.flags.writeable


@every_oracle
def test_any_view_of_reports_travels(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 12)
    assert np.array_equal(
        oracle.reports_from_bytes(oracle.reports_to_bytes(reports[::-3])), reports[::-3]
    )
    assert np.array_equal(
        oracle.reports_from_bytes(bytearray(oracle.reports_to_bytes(reports))), reports
    )
    assert oracle.aggregate(reports[::2]) + oracle.aggregate(reports[1::2]) == oracle.aggregate(
        reports
    )


# ---------------------------------------------------------------------------------------- fuzzing


def damaged_reports(name: str, rng: np.random.Generator) -> bytes:
    """Reports with every bit flipped, of edge values, with swapped bytes, and of noise."""
    size = ORACLES[name].report_dtype.itemsize
    good = np.frombuffer(some_reports(ORACLES[name], 60).tobytes(), dtype="u1").reshape(-1, size)
    flips = np.packbits(np.eye(8 * size, dtype=bool), axis=1)
    noise = rng.integers(0, 256, (REPORTS_EACH // 2, size), dtype=np.uint8)
    edges = rng.choice(
        np.array([0, 1, 2, 3, 4, 5, 7, 8, 11, 13, 15, 16, 127, 128, 254, 255], dtype=np.uint8),
        (REPORTS_EACH // 4, size),
    )
    small = (
        good[rng.integers(0, 60, REPORTS_EACH // 4)]
        + rng.integers(-1, 2, (REPORTS_EACH // 4, size))
    ).astype(np.uint8)
    parts = [
        good,
        (good[:, None] ^ flips).reshape(-1, size),
        np.roll(good, 1, axis=1),
        noise,
        edges,
        small,
    ]
    return np.concatenate(parts)[rng.permutation(sum(map(len, parts)))].tobytes()


def test_the_fuzz_tests_make_more_than_four_hundred_thousand_inputs() -> None:
    # Each test counts its own
    assert len(ORACLES) * (REPORTS_EACH + MESSAGES_EACH + AGGREGATES_EACH) > 4 * 10**5


@every_oracle
def test_corrupted_reports_are_kept_exactly_if_they_can_have_been_sent(name: str) -> None:
    oracle, size = ORACLES[name], ORACLES[name].report_dtype.itemsize
    body = damaged_reports(name, np.random.default_rng(2))
    number = len(body) // size
    assert number >= REPORTS_EACH
    raw = [body[at : at + size] for at in range(0, len(body), size)]
    known = {piece: sendable(name, piece) for piece in set(raw)}
    kept = [piece for piece in raw if known[piece]]
    assert kept
    sent = message(header_of(oracle, count=number), body)
    everything = np.frombuffer(body, dtype=oracle.report_dtype)
    wrong = Counter(impossible=number - len(kept)) if len(kept) < number else Counter()

    tally: Counter[str] = Counter()
    found = oracle.reports_from_bytes(sent, tally)
    assert found.tobytes() == b"".join(kept)
    assert tally == wrong
    tally.clear()
    aggregate = oracle.aggregate(everything, tally)
    assert tally == wrong
    assert aggregate == oracle.aggregate(found)
    assert aggregate.n == len(kept)
    assert countable(oracle, aggregate.n, aggregate.counts)
    if wrong:
        first = next(k for k, piece in enumerate(raw) if not known[piece])
        for refuse in (
            lambda: oracle.reports_from_bytes(sent),
            lambda: oracle.aggregate(everything),
        ):
            with pytest.raises(
                InvalidReport, match=rf"^reports\[{first}\] = .* cannot have been sent"
            ):
                refuse()
        with pytest.raises(InvalidReport, match=rf"^reports\[{first}\] "):
            oracle.reports_to_bytes(everything)


def corrupted_messages(name: str, rng: np.random.Generator) -> Iterator[bytes]:
    oracle = ORACLES[name]
    good = oracle.reports_to_bytes(some_reports(oracle, 3))
    body = some_reports(oracle, 3).tobytes()
    for older in (header_of, batch_header):
        yield from (message(header, body) for header in odd_headers(older(oracle)))
        yield from (message(older(oracle, count=count), body) for count in range(20))
        yield from (
            message(older(oracle), body + extra) for extra in (b"\0", body, body[1:], bytes(100))
        )
        yield from (message(older(other), body) for other in ORACLES.values())
    yield from damaged(good, rng, 2500)
    yield from damaged(message(header_of(oracle), body), rng, 1000)
    yield from (
        message(header_of(oracle), body, magic)
        for magic in (b"LDPG", b"ldpf", b"FPDL", b"\0\0\0\0", b"", b"LDP")
    )
    yield oracle.aggregate(some_reports(oracle, 3)).to_bytes()
    yield from (
        b"LDPF" + size.to_bytes(4, "little") + good[8:]
        for size in (0, 1, 2**31, 2**32 - 1, len(good), len(good) - 8)
    )
    yield from (rng.bytes(length) for length in range(200))
    yield from (b"LDPF" + rng.bytes(length) for length in range(100))


@pytest.mark.slow
@every_oracle
def test_corrupted_messages_give_what_the_definition_says_or_a_typed_error(name: str) -> None:
    oracle, made, kept_some = ORACLES[name], 0, 0
    for data in corrupted_messages(name, np.random.default_rng(3)):
        made += 1
        kept, wrong = slow_read(name, data)
        tally: Counter[str] = Counter()
        found = oracle.reports_from_bytes(data, tally)
        assert found.dtype == oracle.report_dtype
        assert found.tobytes() == b"".join(kept), data
        kept_some += bool(kept)
        assert tally == wrong, data
        assert sum(tally.values()) <= max(1, len(data))
        try:
            assert oracle.reports_from_bytes(data).tobytes() == b"".join(kept)
            assert not wrong, data
        except InvalidReport:
            assert wrong, data
    assert made >= MESSAGES_EACH
    assert kept_some > 100


# -------------------------------------------------------------------------------------- the tally


@every_oracle
def test_each_fault_is_counted_under_its_reason_and_good_reports_stay_in_order(name: str) -> None:
    oracle = ORACLES[name]
    reports, size = some_reports(oracle, 9), oracle.report_dtype.itemsize
    body = reports.tobytes()
    tally: Counter[str] = Counter()

    def check(data: bytes, kept: np.ndarray, **wrong: int) -> None:
        tally.clear()
        assert np.array_equal(oracle.reports_from_bytes(data, tally), kept)
        assert tally == Counter(wrong)
        with pytest.raises(InvalidReport):
            oracle.reports_from_bytes(data)

    check(message(header_of(oracle, count=12), body), reports, truncated=3)
    check(message(header_of(oracle, count=9), body[:-1]), reports[:8], truncated=1)
    check(message(header_of(oracle, count=9), body[: 4 * size]), reports[:4], truncated=5)
    check(message(header_of(oracle, count=7), body), reports[:7], malformed=2)
    check(message(header_of(oracle, count=9), body + b"\1"), reports, malformed=1)
    check(message(header_of(oracle, count=9, parameters="else"), body), reports[:0], foreign=9)
    check(message(header_of(oracle, kind="aggregate"), body), reports[:0], malformed=1)
    check(message(header_of(oracle, version=2), body), reports[:0], malformed=1)
    check(message(batch_header(oracle, version=1), body), reports[:0], malformed=1)
    check(message(batch_header(oracle, id="0" * 31), body), reports[:0], malformed=1)
    check(message(batch_header(oracle, id=None), body), reports[:0], malformed=1)
    check(message(batch_header(oracle, protocol="00" * 8, count=9), body), reports[:0], foreign=9)
    check(message(batch_header(oracle, protocol=None, count=9), body), reports[:0], malformed=1)
    check(message(batch_header(oracle, count=12), body), reports, truncated=3)
    check(message(batch_header(oracle, count=7), body), reports[:7], malformed=2)
    check(b"", reports[:0], malformed=1)
    check(oracle.aggregate(reports).to_bytes(), reports[:0], malformed=1)
    if bad := HOSTILE[name][1]:
        mixed = np.zeros(9 + 3, dtype=oracle.report_dtype)
        mixed[[0, 1, 3, 4, 5, 6, 8, 9, 11]] = reports
        for at in (2, 7, 10):
            mixed[at] = np.array(bad[at % len(bad)], dtype=oracle.report_dtype)
        check(message(header_of(oracle, count=12), mixed.tobytes()), reports, impossible=3)
        check(
            message(header_of(oracle, count=14), mixed.tobytes()),
            reports,
            impossible=3,
            truncated=2,
        )
        check(
            message(header_of(oracle, count=12), mixed.tobytes() + b"\0"),
            reports,
            impossible=3,
            malformed=1,
        )
        with pytest.raises(InvalidReport, match=r"^reports\[2\] = .* cannot have been sent"):
            oracle.aggregate(mixed)
        tally.clear()
        assert oracle.aggregate(mixed, tally) == oracle.aggregate(reports)
        assert tally == Counter(impossible=3)


@every_oracle
def test_a_message_counts_for_no_more_reports_than_it_has_bytes(name: str) -> None:
    """Whatever it announces: of what did not arrive there is no word but its own."""
    oracle = ORACLES[name]
    tally: Counter[str] = Counter()
    reports = some_reports(oracle, 2)
    for parameters, kept in (("else", 0), (signature(oracle), 2)):
        sent = message(header_of(oracle, count=2**63 - 1, parameters=parameters), reports.tobytes())
        tally.clear()
        assert len(oracle.reports_from_bytes(sent, tally)) == kept
        assert sum(tally.values()) == len(sent)


@every_oracle
def test_reports_that_come_one_by_one_are_each_judged_by_themselves(name: str) -> None:
    """Whole, cut anywhere, longer, with any byte of the wire changed, of others, and noise."""
    oracle, rng = ORACLES[name], np.random.default_rng(5)
    sent = oracle.single_reports_to_bytes(some_reports(oracle, 4))
    first, size = sent[0], oracle.report_dtype.itemsize
    messages = [*sent, *(first[:length] for length in range(len(first))), first + b"\0", first * 2]
    messages += [first[:k] + bytes([first[k] ^ 1]) + first[k + 1 :] for k in range(8)]
    messages += [other.single_reports_to_bytes(some_reports(other, 1))[0] for other in TINY]
    messages += [wire(oracle) + rng.bytes(size) for _ in range(500)]
    messages += [rng.bytes(int(length)) for length in rng.integers(0, 40, 100)]
    rng.shuffle(messages)
    kept, wrong = [], Counter[str]()
    for one in messages:  # a slow twin
        raw = one[8:]
        if len(one) < 8:
            wrong["malformed"] += 1
        elif one[:8] != wire(oracle):
            wrong["foreign"] += 1
        elif len(raw) != size:
            wrong["truncated" if len(raw) < size else "malformed"] += 1
        elif not sendable(name, raw):
            wrong["impossible"] += 1
        else:
            kept.append(raw)
    tally: Counter[str] = Counter()
    assert oracle.single_reports_from_bytes(messages, tally).tobytes() == b"".join(kept)
    assert tally == wrong
    assert len(kept) >= 4
    for one in (first[:-1], first + b"\0", b"", b"\0" + first[1:]):
        with pytest.raises(InvalidReport, match="message 1 is "):
            oracle.single_reports_from_bytes([first, one])


def test_one_tally_collects_over_messages() -> None:
    oracle, tally = ORACLES["GRR"], Counter(foreign=5)
    oracle.reports_from_bytes(message(header_of(GRR(6, 1.0), count=4), b"\0\0\0\0"), tally)
    oracle.reports_from_bytes(b"noise", tally)
    oracle.reports_from_bytes(message(header_of(oracle, count=3), b"\0\7"), tally)
    assert tally == Counter(foreign=9, malformed=1, truncated=1, impossible=1)


@pytest.mark.parametrize("beyond", [1, 2, 1000, 2**31, 2**32 - 1000])
def test_a_header_cut_short_is_refused_even_where_its_text_is_whole(beyond: int) -> None:
    oracle = ORACLES["GRR"]
    data = bytearray(oracle.reports_to_bytes(some_reports(oracle, 0)))
    data[4:8] = (int.from_bytes(data[4:8], "little") + beyond).to_bytes(4, "little")
    with pytest.raises(InvalidReport, match="cut short within the header"):
        oracle.reports_from_bytes(bytes(data))


# -------------------------------------------------------------------------------- hostile reports


@every_oracle
def test_reports_at_the_edge_are_accepted_and_beyond_refused(name: str) -> None:
    oracle = ORACLES[name]
    good, bad = (np.array(rows, dtype=oracle.report_dtype) for rows in HOSTILE[name])
    assert all(sendable(name, raw.tobytes()) for raw in good)
    assert not any(sendable(name, raw.tobytes()) for raw in bad)
    assert oracle.aggregate(good).n == len(good)
    assert np.array_equal(oracle.reports_from_bytes(oracle.reports_to_bytes(good)), good)
    for k in range(len(bad)):
        one = bad[k : k + 1]
        for refuse in (
            lambda one=one: oracle.aggregate(one),
            lambda one=one: oracle.reports_to_bytes(one),
            lambda one=one: oracle.reports_from_bytes(
                message(header_of(oracle, count=1), one.tobytes())
            ),
        ):
            with pytest.raises(InvalidReport, match=r"^reports\[0\] = .* cannot have been sent"):
                refuse()


@every_oracle
def test_what_is_no_array_of_reports_is_refused(name: str) -> None:
    oracle = ORACLES[name]
    reports = some_reports(oracle, 4)
    wider = [
        (field, ">u4" if part.base.kind == "u" else ">i4", part.shape)
        for field, (part, *_) in layout_of(oracle.report_dtype).items()
    ]
    renamed = reports.astype(
        [(field + "_", part) for field, (part, *_) in layout_of(oracle.report_dtype).items()]
    )
    things: list[tuple[Any, int]] = [
        *(
            (None, 1),
            (3, 1),
            ("reports", 1),
            (b"\0", 1),
            ([], 1),
            (reports.tolist(), 1),
            (list(reports), 1),
            (reports[0], 1),
        ),
        *(
            (reports.reshape(2, 2), 4),
            (reports[:, None], 4),
            (reports[0:1].reshape(()), 1),
            (reports.astype(object), 4),
        ),
        *(
            (reports.astype(wider), 4),
            (renamed, 4),
            (reports.view(f"V{oracle.report_dtype.itemsize}"), 4),
        ),
        *(
            (np.arange(4), 4),
            (np.zeros(4), 4),
            (np.array(["a", "b"]), 2),
            (np.array([None]), 1),
            (reports[next(iter(layout_of(oracle.report_dtype)))], 0),
        ),
    ]
    for thing, count in things:
        tally: Counter[str] = Counter()
        assert oracle.aggregate(thing, tally).n == 0
        assert tally == Counter(malformed=count or thing.size)
        for refuse in (oracle.aggregate, oracle.reports_to_bytes):
            with pytest.raises(InvalidReport, match="must be a one-dimensional array"):
                refuse(thing)


@every_oracle
def test_reports_under_a_mask_are_refused(name: str) -> None:
    oracle = ORACLES[name]
    masked = np.ma.array(some_reports(oracle, 4))
    masked[0] = np.ma.masked
    masked.data[0] = np.frombuffer(
        b"\xff" * oracle.report_dtype.itemsize, dtype=oracle.report_dtype
    )[0]
    for refuse in (oracle.aggregate, oracle.reports_to_bytes):
        with pytest.raises(InvalidReport):
            refuse(masked)


# ------------------------------------------------------------------------------------- aggregates

TINY: list[Oracle] = [
    *(
        RR(2, 1.0),
        GRR(1, 1.0),
        GRR(3, 1.0),
        SUE(3, 1.0),
        OUE(2, 1.0),
        SubsetSelection(4, 0.5),
        SubsetSelection(5, 0.1),
    ),
    *(ProjectiveGeometry(3, 1.0), OLH(2, 0.2), OLH(2, 1.0), HRR(2, 1.0), HRR(4, 1.0), HRR(2, 0.5)),
    *(
        CountMeanSketch(5, 1.0, hashes=2, width=2),
        HadamardCountMeanSketch(5, 1.0, hashes=2, width=4),
        JLOracle(5, 1.0, rows=3),
    ),
    *(HRR(4, 1.0, 2), HRR(5, 1.0, 3), Tabular(TABLE)),
]


def kinds_of_reports(oracle: Oracle) -> set[tuple[int, ...]]:
    """The counts of every report that can be sent."""
    size = oracle.report_dtype.itemsize
    if isinstance(oracle, HRR):
        t, signs = oracle.coefficients, itertools.product((1, -1), repeat=oracle.coefficients)
        rows = itertools.product(itertools.combinations(range(1, oracle.padded), t), signs)
        everything = np.array(list(rows), dtype=oracle.report_dtype)
    else:
        noise = (
            np.indices((256,) * size if size < 3 else (4, 8, 256)).reshape(size, -1).T.astype("u1")
        )
        everything = np.frombuffer(noise.tobytes(), dtype=oracle.report_dtype)
    kept = everything[oracle.possible(everything)]
    return {
        tuple(oracle.aggregate(kept[k : k + 1]).counts.ravel().tolist()) for k in range(len(kept))
    }


@pytest.mark.parametrize(
    "oracle",
    TINY,
    ids=repr,
)
def test_counts_are_accepted_exactly_if_reports_have_them(oracle: Oracle) -> None:
    kinds = np.array(sorted(kinds_of_reports(oracle)))
    shape = oracle.aggregate(some_reports(oracle, 0)).counts.shape
    cells, rng = int(np.prod(shape)), np.random.default_rng(6)
    zero = np.zeros(cells, dtype=int)
    # All counts of up to two reports; those of three are such counts and one report more.
    pairs = (kinds[:, None] + kinds).reshape(-1, cells)
    possible = [set(map(tuple, counts.tolist())) for counts in (zero[None], kinds, pairs)]
    for n in range(4):
        some = kinds[rng.integers(0, len(kinds), (300, n))].sum(axis=1)
        near = some[:200] + rng.integers(-2, 3, (200, cells)) * (rng.random((200, cells)) < 0.4)
        noise = rng.integers(-n - 1, n + 2, (200, cells))
        sums = rng.integers(0, n + 1, (200, cells))
        for counts in np.unique(np.concatenate([some, near, noise, sums]), axis=0):
            array = counts.reshape(shape)
            data = Aggregate(signature(oracle), n, array).to_bytes()
            fewer = counts - kinds if n == 3 else counts[None]
            right = not possible[min(n, 2)].isdisjoint(map(tuple, fewer.tolist()))
            assert countable(oracle, n, array) == right, (n, array)
            try:
                assert oracle.aggregate_from_bytes(data).n == n
                assert right, (n, array)
            except IncompatibleAggregate:
                assert not right, (n, array)


@every_oracle
def test_tampered_counts_with_a_fresh_digest_are_refused(name: str) -> None:
    oracle = ORACLES[name]
    good = oracle.aggregate(some_reports(oracle, 40))
    kind = oracle.parameters["protocol"]

    def refused(n: int, counts: np.ndarray) -> None:
        with pytest.raises(IncompatibleAggregate):
            oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, counts).to_bytes())

    def change(*changes: tuple[int, int]) -> np.ndarray:
        counts = good.counts.copy()
        for cell, value in changes:
            counts.flat[cell] += value
        return counts

    last = good.counts.size - 1
    signed = kind in ("HRR", "HadamardCountMeanSketch", "JLOracle")
    refused(good.n, change((last, 2**62)))
    refused(good.n, change((last, -(2**62))))
    refused(good.n, good.counts.ravel()[:-1].copy())
    refused(good.n, np.append(good.counts, 0))
    refused(good.n, good.counts[None].copy())
    refused(good.n, good.counts[..., None].copy())
    refused(good.n, np.zeros((0,), dtype=np.int64))
    refused(good.n, np.array(0))
    refused(0, good.counts.copy())
    if kind not in ("SUE", "OUE"):
        refused(good.n, change((last, 1)))
        refused(good.n, change((last, -1)))
    if kind not in ("SUE", "OUE") and not (
        kind == "HRR" and oracle.parameters["coefficients"] == 2
    ):
        refused(good.n + 1, good.counts.copy())
    if signed and kind != "JLOracle":  # the constant coefficient
        refused(good.n, change((0, 2)))
    if not signed:
        at = int(np.flatnonzero(good.counts.ravel())[0])
        refused(
            good.n,
            change(
                (at, -int(good.counts.flat[at]) - 1),
                ((at + 1) % (last + 1), int(good.counts.flat[at]) + 1),
            ),
        )
    if good.counts.ndim == 2:
        refused(good.n, good.counts.ravel().copy())
        refused(good.n, np.ascontiguousarray(good.counts.T))
    for n in (-1, 2**63, 2**64, 10**40):
        with pytest.raises(
            IncompatibleAggregate, match=r"n must be an integer from 0 to 2\^63 - 1"
        ):
            oracle.aggregate_from_bytes(
                sealed(message(aggregate_header(oracle, n=n), good.counts.tobytes()))
            )


def test_counts_of_valid_aggregates_do_not_overflow_when_added() -> None:
    oracle, n = ORACLES["HRR, t = 3"], 2**61 + 2
    counts = np.zeros(16, dtype=np.int64)
    counts[1] = 2**62 + 2
    # An index occurs at most once in a report: no more than n times
    with pytest.raises(IncompatibleAggregate):
        oracle.aggregate_from_bytes(Aggregate(signature(oracle), n, counts).to_bytes())

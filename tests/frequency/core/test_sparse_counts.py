"""Aggregates of few reports take little room, and are those of all counts written out."""

import copy
import hashlib
import io
import itertools
import json
import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from frequency import OUE, Aggregate, IncompatibleAggregate
from frequency.core.tally import SparseCounts, sparse
from frequency.heavy import PrefixExtension

SIZE = 5000
LARGEST = 2**63 - 1


def counts_of(values, shape=(SIZE,), seed=0):
    counts = np.zeros(int(np.prod(shape)), dtype=np.int64)
    places = np.random.default_rng(seed).permutation(len(counts))[: len(values)]
    counts[places] = values
    return counts.reshape(shape)


def parts_of(message):
    end = 8 + int.from_bytes(message[4:8], "little")
    return json.loads(message[8:end]), message[end:-32]


def sealed(header, body):
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    content = b"LDPF" + len(text).to_bytes(4, "little") + text + body
    return content + hashlib.sha256(content).digest()


def dense_message(aggregate):
    """Version 1, from the definition."""
    header = {
        "kind": "aggregate",
        "n": aggregate.n,
        "parameters": aggregate.parameters,
        "shape": list(aggregate.shape),
        "version": 1,
    }
    return sealed(header, aggregate.counts.astype("<i8").tobytes())


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ([], 1),
        ([1], 1),
        ([127, -128], 1),
        ([128], 2),
        ([-129, 3], 2),
        ([2**15], 4),
        ([2**31 - 1], 4),
        ([-(2**31) - 1], 8),
        ([LARGEST, -LARGEST], 8),
        (range(1, 626), 2),
    ],
    ids=repr,
)
@pytest.mark.parametrize("shape", [(SIZE,), (50, 100), (1, SIZE, 1)], ids=str)
def test_few_counts_come_back(values, width, shape):
    counts = counts_of(list(values), shape)
    aggregate = Aggregate("p", LARGEST, counts.copy())
    message = aggregate.to_bytes()
    header, body = parts_of(message)
    assert (header["version"], header["places"], header["shape"]) == (2, len(values), [*shape])
    assert len(body) == len(values) * (2 + width)
    copies = (
        Aggregate.from_bytes(message),
        Aggregate.from_bytes(dense_message(aggregate)),
        pickle.loads(pickle.dumps(aggregate)),
        copy.deepcopy(aggregate),
    )
    for again in (aggregate, *copies):
        assert again == aggregate
        assert again.shape == again.counts.shape == shape
        assert again.counts.dtype == np.int64
        assert_array_equal(again.counts, counts)
        assert again.to_bytes() == message
        for place in (slice(0, 0), slice(0, SIZE), slice(7, 3000), slice(SIZE - 1, SIZE)):
            assert_array_equal(again.part(place), counts.ravel()[place])
        with pytest.raises(ValueError, match="read-only"):
            again.counts[...] = 0
    assert len(pickle.dumps(aggregate)) < 20 * len(values) + 1000


def test_many_counts_are_written_out():
    for counts in (counts_of([1] * 626), counts_of([5], (4096,)), np.ones(SIZE, dtype=np.int64)):
        aggregate = Aggregate("p", 7, counts)
        assert aggregate.to_bytes() == dense_message(aggregate)
        assert Aggregate.from_bytes(aggregate.to_bytes()) == aggregate


def test_sums_are_those_of_the_counts():
    """Of few and many in any order; also where counts cancel, or their sum is no longer of few."""
    rng = np.random.default_rng(1)
    kinds = [
        counts_of(rng.integers(-5, 6, number), (100, 50), seed=number % 3)
        for number in (0, 1, 3, 400, 500, 600, 3000)
    ]
    kinds += [-kind for kind in kinds]
    for a, b in itertools.product(kinds, repeat=2):
        one, other = Aggregate("p", 10, a.copy()), Aggregate("p", 20, b.copy())
        total, plain = one + other, Aggregate("p", 30, a + b)
        assert total == plain
        assert_array_equal(total.counts, a + b)
        assert total.to_bytes() == plain.to_bytes()


def test_whatever_is_changed_is_refused_or_read_as_it_stands():
    """Under a right digest: what is read is written again as it was."""
    whole = Aggregate("p", 9, counts_of([1, -2, 300], seed=4)).to_bytes()
    header, body = parts_of(whole)
    rng, read = np.random.default_rng(2), 0
    cases = [({**header, "places": many}, body) for many in (0, 2, 4, -1, 2.0, True, None, 2**70)]
    cases += [({**header, "shape": shape}, body) for shape in ([4096], [2**60], [70_000], [0], [])]
    cases += [(header, body[:cut]) for cut in range(len(body))]
    cases += [(header, body + extra) for extra in (b"\0", b"\0" * 3, b"\0" * 6)]
    cases += [({k: v for k, v in header.items() if k != "places"}, body)]
    cases += [({**header, "version": version}, body) for version in (1, 3)]
    for _ in range(3000):
        changed = bytearray(body)
        for _ in range(rng.integers(1, 3)):
            changed[rng.integers(len(body))] = rng.choice([0, 1, 2, 127, 128, 255])
        cases.append((header, bytes(changed)))
    cases += [(header, body[2:4] + body[:2] + body[4:]), (header, body[:2] * 2 + body[4:])]
    for head, content in cases:
        message = sealed(head, content)
        try:
            found = Aggregate.from_bytes(message)
        except IncompatibleAggregate:
            continue
        read += 1
        assert found.to_bytes() == message
    assert 100 < read < 3000


def test_what_is_not_few_is_not_read_as_few():
    """One aggregate has one message."""
    few = counts_of([1] * 626)
    places = np.flatnonzero(few)
    written = SparseCounts(few.shape, places, few[places])
    header = {**parts_of(dense_message(Aggregate("p", 7, few)))[0], "version": 2}
    with pytest.raises(IncompatibleAggregate, match="not written by their places"):
        Aggregate.from_bytes(sealed({**header, "places": 626}, written.to_bytes()))


def test_shapes_are_compared_before_anything_is_laid_out():
    """A short message does not fill the server's memory."""
    oracle = OUE(10, 1.0)
    huge = SparseCounts((1 << 52,), np.array([5]), np.array([1]))
    message = Aggregate(oracle.signature, 1, huge).to_bytes()
    for refuse in (
        lambda: oracle.aggregate_from_bytes(message),
        lambda: Aggregate.from_bytes(message) + oracle.aggregate(oracle.privatize([1])),
    ):
        with pytest.raises(IncompatibleAggregate):
            refuse()
    assert Aggregate.from_bytes(message) != oracle.aggregate(oracle.privatize([1]))


@pytest.mark.slow
def test_a_thousand_reports_on_long_words():
    protocol = PrefixExtension(64, 2.0)
    rng = np.random.default_rng(3)
    reports = protocol.privatize(rng.integers(0, 1 << 63, 1000), rng)
    aggregate, stream = protocol.aggregate(reports), io.BytesIO()
    aggregate.write(stream)
    assert aggregate.counts.nbytes > 50e6
    room = len(protocol.channel.signature) + 1000
    assert len(stream.getvalue()) < 8000 + room
    assert len(pickle.dumps(aggregate)) < 20_000 + room
    assert isinstance(sparse(aggregate.counts), SparseCounts)
    parts = [protocol.aggregate(part) for part in np.split(reports, 10)]
    assert sum(parts) == aggregate == protocol.aggregate_from_bytes(stream.getvalue())


def test_parts_are_written_as_if_they_were_wholes():
    """Of few counts and of many, whatever they are a part of."""
    few, many = counts_of([1, 2], (2 * SIZE,), seed=9), counts_of([1] * 3000, (2 * SIZE,), seed=9)
    for counts in (few, many):
        whole = Aggregate("p", 9, counts.copy())
        for place in (slice(0, 10), slice(0, SIZE), slice(40, 9000), slice(0, 2 * SIZE)):
            part = whole.within("q", 3, place, (place.stop - place.start,))
            own = Aggregate("q", 3, counts[place].copy())
            assert part == own
            assert part.to_bytes() == own.to_bytes()
            assert Aggregate.from_bytes(part.to_bytes()) == own
            assert part + own == Aggregate("q", 6, 2 * counts[place])
            with pytest.raises(ValueError, match="read-only"):
                part.counts[...] = 0

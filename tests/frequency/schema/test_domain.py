"""Domain: records, items, values and cells are numbered as they are said to be, by counting; what
is wrong is refused.
"""

from __future__ import annotations

import math
from collections import UserDict
from itertools import product
from typing import Any

import numpy as np
import pytest

import frequency.marginals
from frequency import InvalidQuestion, InvalidValue
from frequency.schema import Domain

DOMAINS = [
    Domain({"a": 5, "b": 2, "c": 3}),
    Domain({"a": 1}),
    Domain({"a": 1, "b": 4, "c": 1}),
    Domain.binary("a", "b", "c", "d"),
    Domain({"z": 2, "a": 7}),
]
domains = pytest.mark.parametrize("domain", DOMAINS, ids=repr)


def all_records(domain: Domain) -> np.ndarray:
    """In the order of items: the last attribute's value counts fastest."""
    return np.array(list(product(*(range(r) for r in domain.shape))))


@domains
def test_items_count_records(domain) -> None:
    records = all_records(domain)
    assert domain.size == len(records) == math.prod(domain.shape)
    assert domain.items(records).tolist() == list(range(domain.size))
    assert domain.values(np.arange(domain.size)).tolist() == records.tolist()
    assert domain.items(domain.records(records)).dtype == np.int64
    for place, step in enumerate(domain.steps):
        one = np.eye(len(domain), dtype=int)[place] * (domain.shape[place] > 1)
        assert one @ np.array(domain.steps) == step * (domain.shape[place] > 1)


@domains
def test_cells_count_values_in_any_order(domain) -> None:
    records, items = all_records(domain), np.arange(domain.size)
    rng = np.random.default_rng(0)
    for _ in range(10):
        names = tuple(rng.permutation(list(domain))[: rng.integers(1, len(domain) + 1)].tolist())
        columns = records[:, [domain.attributes.index(name) for name in names]]
        shape = tuple(domain[name] for name in names)
        assert domain.values(items, names).tolist() == columns.tolist()
        assert domain.cells(items, names).tolist() == [
            int(np.ravel_multi_index(row, shape)) for row in columns
        ]
        assert domain.project(names).shape == shape
        assert domain.places(names) == tuple(domain.attributes.index(name) for name in names)
        assert int(domain.cells(np.array(items[-1]), names)) == math.prod(shape) - 1
        drawn = rng.integers(0, domain.size, size=50)
        expected = np.zeros(shape)
        for row in columns[drawn]:
            expected[tuple(row)] += 1 / 50
        np.testing.assert_allclose(domain.marginal(records[drawn], names), expected, atol=1e-12)
    assert domain.marginal(records[:0], [domain.attributes[0]]).sum() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "domain",
    [
        Domain.binary(*(f"a{k}" for k in range(62))),
        Domain.binary(*(f"a{k}" for k in range(24))),
        Domain({"a": 1 << 62}),
        Domain({"a": 1 << 31, "b": 1, "c": 1 << 31}),
        Domain({"a": 3**20, "b": 7**10, "c": 3}),
    ],
    ids=lambda domain: f"{len(domain)}",
)
def test_large_domains(domain) -> None:
    """Against Python's integers; the last item is 2^62 - 1 where the domain is the largest."""
    rng, shape = np.random.default_rng(1), np.array(domain.shape)
    records = np.concatenate(
        [rng.integers(0, shape, size=(10_000, len(shape))), [shape - 1], [0 * shape]]
    )
    items = domain.items(records)
    for row, item in zip(records[::97].tolist(), items[::97].tolist(), strict=True):
        expected = 0
        for value, size in zip(row, domain.shape, strict=True):
            expected = expected * size + value
        assert item == expected
    assert items[-2] == domain.size - 1
    assert (domain.values(items) == records).all()
    names = domain.attributes[::-1][:2]
    assert (domain.values(items, names) == records[:, domain.places(names)]).all()


def test_records_of_any_integers() -> None:
    domain = Domain({"a": 5, "b": 2})
    rows = [[4, 1], [0, 0], [3, 1]]
    kinds = [
        np.array(rows, dtype=kind)
        for kind in ("u1", "i1", "<i2", ">i4", "u8", "i8", "f4", "f8", object)
    ]
    tables = [
        rows,
        tuple(map(tuple, rows)),
        *kinds,
        np.asfortranarray(rows),
        np.array(rows * 2)[::2][[0, 2, 1]][[0, 2, 1]][:1],
    ]
    for table in tables[:-1]:
        assert domain.items(table).tolist() == [9, 0, 7]
        found = domain.records(table)
        assert found.dtype == np.int64
        assert found.tolist() == rows
    given = np.array(rows)
    domain.records(given)[0, 0] = 0  # a copy
    assert given.tolist() == rows
    assert domain.items(np.zeros((0, 2), dtype=int)).shape == (0,)
    assert Domain.binary("a").items([[True], [False]]).tolist() == [1, 0]
    # More than are handled at a time
    assert domain.items(np.ones((10_000, 2), dtype="u1")).tolist() == [3] * 10_000


@pytest.mark.parametrize("kind", ["u1", "i1", "i8", "u8", "f8", object])
def test_wrong_values_are_named(kind) -> None:
    """Too large for their attribute, though not for another; the first in the order of rows."""
    domain = Domain({"a": 5, "b": 2, "c": 7})
    good = np.tile(np.array([[4, 1, 6]]), (9000, 1))
    for value, place in (
        (2, 1),
        (5, 0),
        (7, 2),
        (100, 1),
        *(((-1, 1),) if kind != "u1" and kind != "u8" else ()),
    ):
        table = good.astype(kind)
        table[8999, 2], table[8000, place] = 7, value
        with pytest.raises(InvalidValue) as refused:
            domain.items(table)
        assert refused.value.index == (8000, place)
        assert refused.value.largest == domain.shape[place] - 1
        with pytest.raises(InvalidValue):
            domain.records(table)


@pytest.mark.parametrize(
    "table",
    [
        [[0.5, 0]],
        [[math.nan, 0]],
        [[math.inf, 0]],
        [["0", 0]],
        [[None, 0]],
        [[1 << 70, 0]],
        np.array([[1 << 63, 0]], dtype=np.uint64),
        np.ma.array([[0, 0]], mask=[[True, False]]),
        [[0, True], [7, True]],
    ],
    ids=str,
)
def test_what_is_no_number_is_refused(table) -> None:
    with pytest.raises(InvalidValue):
        Domain({"a": 5, "b": 2}).items(table)


@pytest.mark.parametrize(
    "table",
    [[0, 1], 5, [[0], [1]], [[0, 0, 0]], [[[0, 0]]], [], np.zeros((0, 3), dtype=int)],
    ids=str,
)
def test_wrong_shapes(table) -> None:
    with pytest.raises(ValueError, match=r"shape \(n, 2\)"):
        Domain({"a": 5, "b": 2}).items(table)


class Frame(dict):
    """What a table of columns must be able to do."""

    columns = property(lambda self: list(self))


def test_tables_of_columns() -> None:
    domain = Domain({"a": 5, "b": 2})
    assert domain.items(Frame(b=[1, 0], other=["x", "y"], a=[4, 3])).tolist() == [9, 6]
    with pytest.raises(ValueError, match="no column 'b'"):
        domain.items(Frame(a=[1]))
    with pytest.raises(InvalidValue):
        domain.items(Frame(a=[1, 5], b=[0, 0]))
    with pytest.raises(InvalidValue):
        domain.items(Frame(a=[1, math.nan], b=[0, 0]))


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    domain = Domain({"a": 5, "b": 2})
    table = pandas.DataFrame({"b": [1, 0], "other": ["x", "y"], "a": [4, 3]})
    assert domain.items(table).tolist() == [9, 6]
    assert domain.records(table).tolist() == [[4, 1], [3, 0]]
    with pytest.raises(ValueError, match="no column 'b'"):
        domain.items(table[["a"]])
    with pytest.raises(InvalidValue):
        domain.items(pandas.DataFrame({"a": [1, None], "b": [0, 0]}))


@pytest.mark.parametrize(
    "given",
    [
        {},
        None,
        5,
        [("a", 2)],
        ["a"],
        {"a": 0},
        {"a": -1},
        {"a": 2.0},
        {"a": True},
        {"a": "2"},
        {"a": None},
        {1: 2},
        {"a": (1 << 62) + 1},
        dict.fromkeys(map(str, range(257)), 2),
    ],
    ids=lambda given: f"{given!r:.40}",
)
def test_wrong_domains(given) -> None:
    with pytest.raises(
        ValueError,
        match=r"domain is a mapping|an attribute is a name|257 attributes, more",
    ):
        Domain(given)


def test_an_attribute_named_twice_is_refused() -> None:
    class Twice(UserDict[str, int]):
        """A mapping that says so; no dictionary does."""

        def items(self) -> Any:
            return [("a", 2), ("b", 3), ("a", 2)]

    for made in (Domain, Domain.of):
        with pytest.raises(ValueError, match="distinct names, got 'a' twice"):
            made(Twice(a=2, b=3))
    domain = Domain({"a": 2, "b": 3})
    for names in (["a", "a"], ["a", 0], [1, "a", 1]):
        with pytest.raises(InvalidQuestion, match="distinct names"):
            domain.every(names)
    for refused in (domain.values, domain.cells):
        with pytest.raises(ValueError, match="distinct names"):
            refused(np.arange(6), ["a", "a"])


def test_sizes_come_in_many_forms() -> None:
    named = Domain.of({"age": 100, "income": 8})
    assert named == Domain({"age": 100, "income": 8}) == Domain.of(named)
    assert Domain.of([100, 8]) == Domain.of(np.array([100, 8])) == Domain({"0": 100, "1": 8})
    assert (named.names, named.sizes) == (named.attributes, named.shape)
    assert (named.size, named.pairs) == (800, ((0, 1),))
    assert Domain.binary("a", "b", "c").pairs == ((0, 1), (0, 2), (1, 2))
    assert frequency.marginals.Domain is Domain


@pytest.mark.parametrize("given", [{}, [], None, 5, "ab", b"ab", [2, 0], [2.0], [True], {1: 2}])
def test_wrong_sizes(given) -> None:
    with pytest.raises(ValueError, match=r"sizes must be a list|an attribute is a name and a size"):
        Domain.of(given)


def test_a_domain_is_no_way_around_the_largest_size() -> None:
    large = {"a": (1 << 32) + 1}
    for given in (large, Domain(large), [(1 << 32) + 1]):
        with pytest.raises(ValueError, match=f"a size of 1 to {1 << 32}, got"):
            Domain.of(given)
        assert Domain.of(given, 1 << 62).sizes == ((1 << 32) + 1,)


def test_every_combination_is_asked_for_along_axes() -> None:
    domain = Domain({"a": 2, "b": 3, "c": 5})
    found = domain.every(["c", 0])
    assert {name: axis.shape for name, axis in found.items()} == {"c": (5, 1), "a": (1, 2)}
    assert all(axis.ravel().tolist() == list(range(domain[name])) for name, axis in found.items())
    with pytest.raises(InvalidQuestion, match="one of a, b, c"):
        domain.every(["d"])


@pytest.mark.parametrize(
    "domain",
    [
        Domain({"a": 1 << 31, "b": (1 << 31) + 1}),
        Domain.binary(*map(str, range(63))),
        Domain(dict.fromkeys(map(str, range(256)), 1 << 62)),  # a number of 4,779 digits
    ],
    ids=lambda domain: f"{len(domain)}",
)
def test_more_records_than_have_numbers(domain) -> None:
    """They are records all the same: read, projected and asked for by attribute."""
    records = np.array([[0] * len(domain), [size - 1 for size in domain.sizes]])
    assert domain.records(records).tolist() == records.tolist()
    assert domain.size == math.prod(domain.sizes) > 1 << 62
    name = domain.names[0]
    assert domain.project([name]).items(records[:, :1]).tolist() == records[:, 0].tolist()
    none = np.zeros(0, dtype=np.int64)
    for numbering in (
        lambda: domain.items(records),
        lambda: domain.steps,
        lambda: domain.values(none),
        lambda: domain.values(none, [name]),
        lambda: domain.cells(none, [name]),
        domain.require_numbered,
    ):
        with pytest.raises(ValueError, match=r"different records, more than 2\^62"):
            numbering()


def test_marginals_of_more_records_than_have_numbers() -> None:
    domain = Domain({"a": 3, "b": 1 << 62, "c": 2})
    records = [[0, 5, 1], [2, (1 << 62) - 1, 1], [2, 0, 0], [2, 0, 0]]
    assert domain.marginal(records, ["c", "a"]).tolist() == [[0, 0, 0.5], [0.25, 0, 0.25]]
    with pytest.raises(InvalidValue) as refused:  # of an attribute that is not asked for
        domain.marginal([[0, 1 << 62, 0]], ["a"])
    assert refused.value.index == (0, 1)


def test_wrong_binary_domains() -> None:
    with pytest.raises(ValueError, match="mapping"):
        Domain.binary()
    with pytest.raises(ValueError, match="distinct"):
        Domain.binary("a", "b", "a")


@pytest.mark.parametrize(
    "attributes",
    [[], ["a", "a"], ["x"], ["a", "x"], "ab", [0], [True], [None], ("a", "b", "a")],
    ids=str,
)
def test_wrong_attributes(attributes) -> None:
    with pytest.raises(ValueError, match="attributes must be distinct names among a, b; "):
        Domain({"a": 5, "b": 2}).checked(attributes)


def test_a_domain_is_a_value() -> None:
    sizes: dict[str, Any] = {"a": np.int64(5), "b": 2}
    domain = Domain(sizes)
    assert domain == Domain({"a": 5, "b": 2})
    assert hash(domain) == hash(Domain({"a": 5, "b": 2}))
    assert domain != Domain({"b": 2, "a": 5})  # the order says how records are numbered
    assert domain != {"a": 5, "b": 2}
    assert eval(repr(domain), {"Domain": Domain}) == domain
    assert (list(domain), len(domain), domain["a"], "b" in domain, "c" in domain) == (
        ["a", "b"],
        2,
        5,
        True,
        False,
    )
    assert domain.checked("a") == ("a",)
    assert domain.project(["b", "a"]) == Domain({"b": 2, "a": 5})
    assert Domain.binary("a", "b", "c").views(2) == (("a", "b"), ("a", "c"), ("b", "c"))
    with pytest.raises(KeyError):
        domain["c"]

"""The intervals are those of all tables that would have been published alike."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from mechdesign.tables import suppression_reconstruction
from mechdesign.tables.suppression import SuppressedTable, SuppressionRule, with_totals
from mechdesign.tables.suppression_reconstruction import reconstruct

SHAPES = {(1,): 9, (4,): 5, (1, 3): 8, (2, 2): 6, (3, 2): 3, (2, 2, 2): 2, (3, 3): 1}
"""Shapes of small tables, and the largest size of a group in them."""


@cache
def all_tables(shape: tuple[int, ...]) -> np.ndarray:
    """Every table with its totals, shape (tables, a + 1, b + 1, ...)."""
    cells = np.array(list(product(range(SHAPES[shape] + 1), repeat=int(np.prod(shape)))))
    table = cells.reshape(-1, *shape)
    for axis in range(1, table.ndim):
        table = np.concatenate([table, table.sum(axis, keepdims=True)], axis)
    return table


def alike(published: SuppressedTable) -> np.ndarray:
    """Every table that may be published so, by the words of the rule for each entry."""
    rule, values, marked = published.rule, published.values, published.suppressed
    shape = tuple(length - 1 for length in values.shape)
    table = all_tables(shape)
    cells = tuple(slice(length) for length in shape)
    small = (table < rule.threshold) & (rule.zeros | (table > 0))
    if rule.complementary:  # the mark is the same; zeros have it only if all have, the grand total
        mark = marked & (rule.zeros | (table > 0))
        mark[(slice(None), *[-1] * len(shape))] &= small[(slice(None), *[-1] * len(shape))]
    else:
        mark = marked & small
    lowest, rest = table // rule.base * rule.base, table % rule.base
    if rule.rounding == "random":
        rounded = (values == lowest) | ((values == lowest + rule.base) & (rest > 0))
    else:
        rounded = values == lowest + rule.base * (2 * rest >= rule.base)
    exact = table == values
    inner = np.zeros(values.shape, bool)
    inner[cells] = True
    number = np.where(inner | (rule.totals == "rounded"), rounded, exact) & ~marked & ~small
    fits = mark | number
    if rule.totals == "none":
        fits |= ~inner
    if published.sizes is not None:
        fits[(slice(None), *cells)] &= table[(slice(None), *cells)] <= published.sizes
    return table[fits.reshape(len(table), -1).all(1)]


def drawn(rng: np.random.Generator) -> SuppressedTable:
    """A small table under some rule, with sizes that the tables above reach."""
    shape = list(SHAPES)[rng.integers(len(SHAPES))]
    counts = rng.integers(0, SHAPES[shape] + 1, shape)
    sizes = np.minimum(counts + rng.integers(0, 4, shape), SHAPES[shape])
    totals = str(rng.choice(["exact", "rounded", "none"]))
    while True:
        try:
            rule = SuppressionRule(
                int(rng.integers(0, 6)),
                int(rng.choice([1, 2, 3, 5])),
                "random" if rng.integers(2) else "nearest",
                bool(rng.integers(2)),
                totals != "none" and bool(rng.integers(2)),
                totals,
            )
        except ValueError:
            continue
        return rule.publish(counts, sizes, rng)


def differs(published: SuppressedTable) -> bool:
    """Whether the reconstruction is another than by looking at all tables."""
    found, tables = reconstruct(published), alike(published)
    assert len(tables)
    least, most = tables.min(0), tables.max(0)
    if not found.tight.all() or (found.low != least).any() or (found.high != most).any():
        return True
    assert (found.recovered == (published.protected & (least == most))).all()
    return bool((found.within_one != (published.protected & (most - least <= 2))).any())


def compared(tables: int, seed: int) -> int:
    """How many of so many random tables differ."""
    rng = np.random.default_rng(seed)
    return sum(differs(drawn(rng)) for _ in range(tables))


@pytest.mark.slow
def test_the_intervals_are_those_of_all_tables_published_alike() -> None:
    assert compared(40, 1) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_the_intervals_of_thousands_of_tables_are_right(seed: int) -> None:
    assert compared(1000, seed) == 0


def test_without_sizes_totals_bound_the_counts() -> None:
    """Exact totals of small tables bound them enough to look at all."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        counts = rng.integers(0, 3, (2, 2))
        published = SuppressionRule(2, zeros=bool(rng.integers(2))).publish(counts)
        tables = alike(published)
        found = reconstruct(published)
        assert (found.low == tables.min(0)).all()
        assert (found.high == tables.max(0)).all()


def test_wrong_bounds_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that are too weak, lines that tighten too much, and a reach of rounding that is wrong,
    either way.
    """
    search = suppression_reconstruction._Search
    least, propagate = search._least, suppression_reconstruction._propagate

    def hasty(low: np.ndarray, high: np.ndarray) -> bool:
        fits = propagate(low, high)
        np.minimum(high, np.maximum(low, 3), out=high)
        return fits

    def wrong() -> bool:
        rng = np.random.default_rng(1)
        try:
            return any(differs(drawn(rng)) for _ in range(60))
        except ValueError:
            return True

    for owner, name, value in (
        (search, "_least", lambda self, *given: least(self, *given) - 5040),
        (suppression_reconstruction, "_propagate", hasty),
        (SuppressionRule, "reach", property(lambda self: (self.base, self.base))),
        (SuppressionRule, "reach", property(lambda self: (0, 0))),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value)
            assert wrong(), name


def test_a_row_with_one_suppressed_cell_is_no_secret() -> None:
    found = reconstruct(SuppressionRule(7).publish([[3, 12], [20, 31]]))
    assert (found.low[0, 0], found.high[0, 0]) == (3, 3)
    assert found.recovered.astype(int).tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 0]]
    found = reconstruct(SuppressionRule(7, complementary=True).publish([[3, 12], [20, 31]]))
    assert not found.recovered.any()
    assert found.low[:2, :2].tolist() == [[1, 1], [9, 29]]
    assert found.high[:2, :2].tolist() == [[14, 14], [22, 42]]


def integer_program(published: SuppressedTable, entry: int, sign: int) -> int:
    """The least (1) or largest (-1) count of an entry, by a solver's branch and bound."""
    shape = tuple(length - 1 for length in published.values.shape)
    units = np.eye(int(np.prod(shape)), dtype=int).reshape(-1, *shape)
    sums = np.array([with_totals(unit).ravel() for unit in units]).T
    low, high = published.known()
    found = milp(
        sign * sums[entry],
        integrality=np.ones(len(units)),
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(sums, low.ravel(), high.ravel()),
    )
    return sign * round(found.fun)


def disagreements(published: SuppressedTable) -> int:
    """In how many ends of intervals the reconstruction and integer programs differ."""
    found = reconstruct(published)
    assert found.tight.all()
    ends = zip(found.low.flat, found.high.flat, strict=True)
    return sum(
        (low, high) != (integer_program(published, k, 1), integer_program(published, k, -1))
        for k, (low, high) in enumerate(ends)
    )


HARD = SuppressionRule(4, 3, zeros=True, totals="rounded").publish(
    [[[0, 2, 0], [1, 1, 0]], [[2, 0, 0], [1, 1, 1]]]
)
"""One linear program for each end of each interval is not enough for it."""


def test_tables_of_three_axes_need_branch_and_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreements(HARD) == 0
    whole = reconstruct(HARD)
    monkeypatch.setattr(suppression_reconstruction, "_NODES", 1)
    cut = reconstruct(HARD)
    assert not cut.tight.all()
    assert (cut.low <= whole.low).all()
    assert (cut.high >= whole.high).all()


@pytest.mark.slow
def test_tables_of_three_axes_agree_with_integer_programs() -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        counts = rng.integers(0, 6, rng.integers(2, 4, 3))
        rule = SuppressionRule(
            int(rng.integers(3, 5)),
            int(rng.integers(1, 4)),
            complementary=bool(rng.integers(2)),
            totals="rounded" if rng.integers(2) else "exact",
        )
        assert disagreements(rule.publish(counts)) == 0


def test_what_nobody_could_have_published() -> None:
    rule = SuppressionRule(7)
    values = np.array([[0, 12, 13], [20, 31, 51], [27, 43, 64]])
    marked = values == 0
    with pytest.raises(ValueError, match="no table of counts"):
        reconstruct(SuppressedTable(rule, values, marked))  # the grand total is 63 or 70

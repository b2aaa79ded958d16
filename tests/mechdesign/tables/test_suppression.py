"""Suppression and rounding: what is published, and what each entry says by itself."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mechdesign import InvalidCount
from mechdesign.tables.suppression import (
    LARGEST_TOTAL,
    SuppressedTable,
    SuppressionRule,
    lines,
    totals_of,
    with_totals,
)


def shown(table: SuppressedTable) -> list[str]:
    marks = zip(table.values.flat, table.suppressed.flat, strict=True)
    return ["*" if mark else str(value) for value, mark in marks]


def test_totals_of_every_order_are_sums_of_cells() -> None:
    counts = np.arange(24).reshape(2, 3, 4)
    table = with_totals(counts)
    assert (table[:2, :3, :4] == counts).all()
    assert (table[2, :3, :4] == counts.sum(0)).all()
    assert (table[2, :3, 4] == counts.sum((0, 2))).all()
    assert table[2, 3, 4] == counts.sum()
    for line in lines(table.shape):
        assert table.ravel()[line[:-1]].sum() == table.ravel()[line[-1]]
    assert totals_of(table.shape).sum() == table.size - counts.size


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (SuppressionRule(0), "0 2 2 7 12 19 7 14 21"),
        (SuppressionRule(7), "0 * * 7 12 19 7 14 21"),
        (SuppressionRule(7, zeros=True), "* * * 7 12 19 7 14 21"),
        (SuppressionRule(7, 5), "0 * * 5 10 19 7 14 21"),
        (SuppressionRule(7, 5, totals="rounded"), "0 * * 5 10 20 5 15 20"),
        (SuppressionRule(7, 5, totals="none"), "0 * 0 5 10 0 0 0 0"),
        (SuppressionRule(7, 2, zeros=True), "* * * 8 12 19 7 14 21"),  # halves upwards
        # Of the second column 12, and of the totals of rows 19
        (SuppressionRule(7, complementary=True), "0 * * 7 * * 7 14 21"),
    ],
    ids=str,
)
def test_what_is_published(rule: SuppressionRule, expected: str) -> None:
    counts = [[0, 2], [7, 12]]  # totals 2, 19; 7, 14; 21
    assert " ".join(shown(rule.publish(counts))) == expected


def test_no_line_has_one_suppressed_entry_after_complementary_suppression() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        counts = rng.poisson(6, rng.integers(1, 5, rng.integers(1, 4)))
        zeros = bool(rng.integers(2))
        primary = SuppressionRule(4, zeros=zeros).publish(counts).suppressed
        found = SuppressionRule(4, zeros=zeros, complementary=True).publish(counts).suppressed
        assert (found >= primary).all()
        table = with_totals(counts)
        assert not (found & ~primary & (table == 0)).any()
        assert found.flat[-1] == primary.flat[-1]
        for line in lines(table.shape):
            alone = found.ravel()[line].sum() == 1
            left = line[~found.ravel()[line] & (table.ravel()[line] > 0)]
            assert not alone or set(left) <= {table.size - 1}


def test_random_rounding_has_the_right_mean() -> None:
    """Seeded; each mean is within seven standard errors, by chance wrong once in 10^11."""
    rule = SuppressionRule(0, 5, "random", totals="none")
    counts = np.arange(11)
    rng = np.random.default_rng(2)
    draws = np.array([rule.publish(counts, rng=rng).values[:-1] for _ in range(2000)])
    assert (draws % 5 == 0).all()
    assert (abs(draws - counts) < 5).all()
    rest = counts % 5
    errors = abs(draws.mean(0) - counts)
    assert (errors <= 7 * np.sqrt(rest * (5 - rest) / 2000)).all()
    assert abs(draws.mean(0) - counts - 0.5).max() > 7 * np.sqrt(6.25 / 2000)  # a bias is found


RULES = [
    SuppressionRule(threshold, base, rounding, zeros, totals="none")
    for threshold, base, rounding, zeros in product(
        (0, 1, 4, 7), (1, 2, 3, 5), ("nearest", "random"), (False, True)
    )
    if zeros or not 1 < threshold <= (base - 1 if rounding == "random" else (base - 1) // 2)
]


def test_what_an_entry_stands_for_is_what_would_be_published_so() -> None:
    """By looking at every count up to 40, and at many draws of random rounding.

    That one of two multiples never comes has a chance of (4/5)^150 for each of 1,000: 10^-11 in all
    """
    rng = np.random.default_rng(3)
    counts = np.tile(np.arange(41), 150)
    for rule in RULES:
        table = rule.publish(counts, rng=rng)
        low, high = table.known()
        behind: dict[str, set[int]] = {}
        for text, count in zip(shown(table), counts.tolist(), strict=False):
            behind.setdefault(text, set()).add(count)
        for text, place in {text: place for place, text in enumerate(shown(table)[:-1])}.items():
            if max(behind[text]) <= 32:  # otherwise some may be above 40
                assert behind[text] == set(range(low[place], high[place] + 1)), rule


def test_what_totals_stand_for() -> None:
    for totals, expected in (
        ("exact", (11, 11)),
        ("rounded", (8, 12)),
        ("none", (0, LARGEST_TOTAL)),
    ):
        low, high = SuppressionRule(7, 5, totals=totals).publish([3, 8]).known()
        assert (low[-1], high[-1]) == expected
    assert SuppressionRule(7, 5).publish([3, 2]).known()[1].tolist() == [6, 6, 6]


def test_sizes_and_totals_that_are_not_published_bound_what_is_known() -> None:
    low, high = SuppressionRule(7, totals="none").publish([3, 30]).known()
    assert low.tolist() == [1, 30, 0]
    assert high.tolist() == [6, 30, LARGEST_TOTAL]
    low, high = SuppressionRule(7, totals="none").publish([3, 30], sizes=[4, 50]).known()
    assert high.tolist() == [4, 30, 54]
    low, high = SuppressionRule(7, complementary=True).publish([3, 30]).known()
    assert low.tolist() == [1, 1, 33]
    assert high.tolist() == [LARGEST_TOTAL, LARGEST_TOTAL, 33]
    low, high = SuppressionRule(7, complementary=True).publish([3, 2]).known()
    assert high.tolist() == [LARGEST_TOTAL, LARGEST_TOTAL, 6]


def test_what_is_protected() -> None:
    table = SuppressionRule(7, 5).publish([[0, 2], [7, 12]])
    assert table.protected.astype(int).tolist() == [[0, 1, 1], [1, 1, 0], [0, 0, 0]]
    table = SuppressionRule(1, 5, totals="rounded").publish([[0, 2]])
    assert table.protected.all()  # a rounded 0 can stand for 1 and 2
    assert not SuppressionRule(0).publish([[0, 2]]).protected.any()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((-1,), "threshold must be"),
        ((7.0,), "threshold must be"),
        ((7, 0), "base must be"),
        ((7, 5, "up"), "rounding must be 'nearest' or 'random', got 'up'"),
        ((7, 5, "nearest", 2), "zeros must be"),
        ((7, 5, "nearest", False, False, "all"), "totals must be"),
        ((7, 5, "nearest", False, True, "none"), "hides counts from totals"),
        ((3, 10), "could stand for 0 or for 3"),
        ((4, 5, "random"), "more than 4"),
    ],
)
def test_rules_that_are_none(arguments: tuple[object, ...], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SuppressionRule(*arguments)


def test_tables_that_are_none() -> None:
    rule = SuppressionRule(7)
    empty: object
    for empty in ([], [[]], 3):
        with pytest.raises(ValueError, match="at least one axis and one cell"):
            rule.publish(empty)
    with pytest.raises(InvalidCount, match=r"counts\[\(1, 0\)\] = -1"):
        rule.publish([[1, 2], [-1, 4]])
    with pytest.raises(InvalidCount, match="between 0 and 4"):
        rule.publish([1, 5], sizes=[3, 4])
    with pytest.raises(ValueError, match="sizes"):
        rule.publish([1, 5], sizes=[3, 4, 6])
    with pytest.raises(ValueError, match="grand total"):
        rule.publish([LARGEST_TOTAL, 1])
    assert shown(rule.publish([LARGEST_TOTAL]))[-1] == str(LARGEST_TOTAL)


def test_a_published_table_can_be_typed_in_if_it_fits() -> None:
    rule = SuppressionRule(7, 5)
    typed = SuppressedTable(rule, [0, 10, 15], [True, False, False], [6, 20])
    low, high = typed.known()
    assert (low.tolist(), high.tolist()) == ([1, 8, 15], [6, 12, 15])
    for values, marks, sizes, reason in (
        ([0, 10, 15], [True, False], None, "as many marks"),
        ([15], [False], None, "cells and totals along each axis"),
        ([0, 10, 15], [True, False, False], [6, 20, 26], r"\(2,\) cells"),
        ([0, 11, 15], [True, False, False], None, "11 is no multiple of 5"),
        ([0, 10, -1], [True, False, False], None, "is not an integer between 0"),
    ):
        with pytest.raises(ValueError, match=reason):
            SuppressedTable(rule, values, marks, sizes)
    assert SuppressedTable(rule, [0, 10, 16], [True, False, False]).values[-1] == 16  # exact

"""The statement of a table's privacy, against the law of whole tables, enumerated."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest

from mechdesign import Mechanism, Privacy, PrivacyViolation, named
from mechdesign.tables import TableRelease, TableStatement, release

HALF = Privacy(alpha="1/2")


def law(mechanisms, sizes, counts):
    """The exact probability of every released table, from the weights that draws follow."""
    columns = []
    for size, count in zip(sizes, counts, strict=True):
        weights = mechanisms[size].sampler.weights
        total = sum(row[0] for row in weights)
        columns.append([Fraction(row[count], total) for row in weights])
    return {
        given: math.prod(column[i] for column, i in zip(columns, given, strict=True))
        for given in product(*(range(len(column)) for column in columns))
    }


def worst_for_a_person(mechanisms, cells, people):
    """The largest ratio over all databases that differ in one person's answer.

    ``cells`` has for each cell the people in it; an answer is yes or no, a cell counts yes.
    """
    sizes = [len(cell) for cell in cells]
    laws: dict = {}
    for answers in product((0, 1), repeat=people):
        counts = tuple(sum(answers[person] for person in cell) for cell in cells)
        laws[answers] = laws.get(answers) or law(mechanisms, sizes, counts)
    worst: float | Fraction = Fraction(1)
    for answers, person in product(laws, range(people)):
        other = tuple(a ^ (k == person) for k, a in enumerate(answers))
        for given, p in laws[answers].items():
            if p:
                worst = max(worst, p / laws[other][given] if laws[other][given] else math.inf)
    return worst


ONE_WAY = [[0], [1, 2], [3, 4]], 5, 1
"""The people in each cell, how many there are, and in how many cells one can be."""

TWO_TABLES = [[0, 1], [2, 3], [0], [1, 2, 3]], 4, 2
"""By region and by sex: everybody is in one cell of each."""

THREE_TABLES = [[0, 1, 2], [0], [1, 2], [], [0, 1, 2]], 3, 3


@pytest.mark.parametrize(("cells", "people", "overlap"), [ONE_WAY, TWO_TABLES, THREE_TABLES])
@pytest.mark.parametrize("properties", [[], ["WH", "CM"], ["F"]])
def test_the_whole_table_is_as_private_as_stated(cells, people, overlap, properties) -> None:
    sizes = [len(cell) for cell in cells]
    counts = [len(cell) // 2 for cell in cells]
    released = release(counts, sizes, Privacy(alpha="2/3"), properties=properties, overlap=overlap)
    statement = released.statement
    assert statement.alpha == Fraction(2, 3) ** overlap
    found = worst_for_a_person(released.mechanisms, cells, people)
    assert found <= statement.ratio <= 1 / statement.alpha
    if properties != ["F"]:  # whose worst cells need not share a person
        assert found == statement.ratio


def test_an_overlap_that_is_too_small_is_seen() -> None:
    """Planted: the statement would be false if people were in more cells than it says."""
    cells, people, overlap = TWO_TABLES
    sizes = [len(cell) for cell in cells]
    released = release([0] * 4, sizes, HALF, overlap=overlap - 1)
    assert worst_for_a_person(released.mechanisms, cells, people) > 1 / released.statement.alpha


def test_a_mechanism_that_leaks_is_refused() -> None:
    leaky = Mechanism([["3/4", "1/5"], ["1/4", "4/5"]], HALF)
    assert worst_for_a_person({1: leaky}, [[0]], 1) > 2
    with pytest.raises(PrivacyViolation):
        TableRelease([0], [1], {1: leaky})


def test_the_worst_ratio_is_that_of_the_cells_that_can_share_a_person() -> None:
    """The largest ratios, as many as the overlap; groups of nobody hide nothing."""
    strict = named.uniform(2, HALF)
    mechanisms = {0: named.uniform(0, HALF), 1: named.geometric(1, alpha="1/2"), 2: strict}
    for overlap, ratio in ((1, 2), (2, 4), (3, 4), (9, 4)):
        found = TableRelease([0, 1, 0, 2], [0, 1, 1, 2], mechanisms, overlap).statement
        assert found.ratio == ratio
        assert found.alpha == Fraction(1, 2**overlap)


def test_epsilon_is_rounded_up() -> None:
    statement = TableStatement(10, 3, Privacy.from_epsilon(1), Fraction(2), False)
    assert statement.alpha == statement.privacy.alpha**3
    assert 3 * (1 - 2**-23) <= statement.epsilon <= 3.0000001
    assert math.exp(-statement.epsilon) <= statement.alpha


def test_words_for_readers() -> None:
    text = str(TableStatement(5000, 2, HALF, Fraction(4), False))
    assert "at most 2 cells: each of these counts may change\n" in text
    assert "by at most one with their answer" in text
    assert "no table of 5,000 counts is more than 4 times as likely" in text
    assert "(alpha^2 = (1/2)^2, exactly; epsilon at most 1.38629436, rounded up)" in text
    assert "randomness  of the operating system" in text
    one = str(TableStatement(1, 1, Privacy(alpha="1/2", neighbours="all"), Fraction(2), True))
    assert "counted in one cell" in one
    assert "to any other with their answer" in one
    assert "(alpha = 1/2, exactly;" in one
    assert "SEEDED: reproducible, and therefore not private" in one
    assert "by at most 3 with" in str(
        TableStatement(1, 1, Privacy(alpha="1/2", neighbours=3), Fraction(2), True)
    )
    small = TableStatement(1, 1, Privacy(alpha=Fraction(10**60, 10**60 + 1)), Fraction(1), False)
    assert "(alpha = about 1; epsilon at most 1e-60, rounded up)" in str(small)

"""Constraints: what they say, what says the same, and what is none."""

from fractions import Fraction

import numpy as np
import pytest

from mechdesign import Constraints, InexactNumber
from mechdesign.lp.constraints import canonical


def test_canonical_codes():
    """Two rows have one code if and only if they say the same."""
    groups = [
        Constraints.equal([0, 1, 2], [1, 0, 0]),
        Constraints.at_least([0, 1], [1, 0]),
        Constraints.at_least([0], [1], Fraction(1, 2)),
        Constraints(np.array([[1, 0], [0, 1]]), (Fraction(-1), Fraction(1)), Fraction(0), False),
        Constraints(np.array([[0, 1]]), (Fraction(1), Fraction(-1)), Fraction(1), False),
        Constraints.equal_to([[0, 1], [1, 0]], 0),
        Constraints.equal_to([[0, 1], [1, 0]], 1),
    ]
    said = [
        ["x0=x1", "x0=x1", "x0=x2"],
        ["x0>=x1", "x1>=x0"],
        ["x0>=x1/2"],
        ["x0>=x1", "x1>=x0"],
        ["x0>=x1+1"],
        ["x0+x1=0"] * 2,
        ["x0+x1=1"] * 2,
    ]
    meaning: dict[bytes, set[str]] = {}
    signs = []
    for (codes, sign), texts in zip(canonical(groups), said, strict=True):
        signs.append(sign.tolist())
        for code, text in zip(codes, texts, strict=True):
            meaning.setdefault(code.tobytes(), set()).add(text)
    assert all(len(texts) == 1 for texts in meaning.values())
    assert len(meaning) == len({text for texts in said for text in texts})
    assert signs[0] == [1, -1, -1]
    assert all(sign == 1 for later in signs[1:] for sign in later)


@pytest.mark.parametrize(
    "make",
    [lambda: Constraints.at_least([0], [1], 0.9), lambda: Constraints.at_least_value([0], 0.1)],
    ids=["factor", "value"],
)
def test_rows_refuse_floats(make):
    with pytest.raises(InexactNumber):
        make()


def test_rows_of_the_wrong_width():
    with pytest.raises(ValueError, match="do not fit"):
        Constraints(np.array([[0, 1, 2]]), (Fraction(1), Fraction(1)), Fraction(0), False)


def test_rows_say_what_they_say():
    x = [3, 1, 0, 2]  # over 4
    assert list(Constraints.at_least([0, 1, 2], [3, 3, 2]).violations(x, 4)) == [1]
    assert list(Constraints.at_least([1], [3], Fraction(1, 2)).violations(x, 4)) == []
    assert list(Constraints.equal([0, 1], [0, 3]).violations(x, 4)) == [1]
    assert list(Constraints.at_least_value([0, 1, 3], Fraction(1, 2)).violations(x, 4)) == [1]
    assert list(Constraints.equal_to([[0, 1], [1, 2]], 1).violations(x, 4)) == [1]
    assert list(Constraints.equal_to([0, 0], Fraction(3, 2)).violations(x, 4)) == []
    assert Constraints.at_least([0], [0]).vacuous().tolist() == [True]
    assert Constraints.at_least([0], [0], 2).vacuous().tolist() == [False]
    assert Constraints.at_least_value([0], 0).vacuous().tolist() == [True]
    assert Constraints.equal_to([[0]], 0).vacuous().tolist() == [False]


def test_rows_refuse_variables_that_are_not_numbers():
    for cells in (0.5, [0.0, 1.0], "a"):
        with pytest.raises(TypeError, match="numbered by integers"):
            Constraints.at_least(0, cells)
        with pytest.raises(TypeError, match="numbered by integers"):
            Constraints.at_least_value(cells, 1)


def test_constraints_are_found_by_their_variables():
    at = np.arange(12).reshape(3, 4)
    group = Constraints.at_least(at[:, 1:], at[:, :-1])
    assert group.find([[3, 2], [1, 0]]).tolist() == [2, 0]
    assert group.find(np.empty((0, 2), dtype=np.int64)).tolist() == []
    with pytest.raises(KeyError):
        group.find([[2, 3]])

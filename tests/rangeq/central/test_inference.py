"""Variances of nodes after inference against the published recurrences."""

from fractions import Fraction

import numpy as np
import pytest

from rangeq.central.box_tree import tree_over
from rangeq.central.inference import Inference


def from_below(b, h):
    """Algorithm 1 with equal budgets, from the leaves (level 1) up, in units of V_O."""
    down = [Fraction(1)]
    for _ in range(h - 1):
        down.append(b * down[-1] / (1 + b * down[-1]))
    return down


@pytest.mark.parametrize(("b", "h"), [(2, 5), (3, 4), (4, 4), (16, 3)])
def test_proposition_3(b, h):
    for level, variance in enumerate(from_below(b, h), 1):
        assert variance == Fraction(b ** (level - 1), sum(b**i for i in range(level)))
        assert variance > Fraction(b - 1, b)
        if level > 1:
            assert variance <= Fraction(b, b + 1)
            assert (variance == Fraction(b, b + 1)) == (level == 2)
    if b == 2:
        assert from_below(2, 4) == [1, Fraction(2, 3), Fraction(4, 7), Fraction(8, 15)]


def node_variances(b, h):
    """Variances of nodes after inference, from the leaves up, in units of V_O, exactly."""
    errors = Inference(tree_over((b**h,), b), [Fraction(1)] * h)
    last = np.array([[b**level - 1 for level in range(h)]])
    return errors.variance(np.zeros_like(last), last).tolist()


@pytest.mark.parametrize(("b", "h"), [(2, 3), (2, 9), (3, 5), (4, 4), (16, 3)])
def test_proposition_4_and_algorithm_1(b, h):
    down = from_below(b, h)
    up = [Fraction(1)]  # from the top: the paper's "from above"
    for level in range(h - 1, 0, -1):
        parent = up[0] + (b - 1) * down[level - 1]
        up.insert(0, parent / (1 + parent))
    found = node_variances(b, h)
    for level in range(1, h + 1):
        below = b * down[level - 2] if level > 1 else None
        combined = (
            up[level - 1] if below is None else below * up[level - 1] / (below + up[level - 1])
        )
        assert found[level - 1] == combined
        assert found[level - 1] > Fraction(b - 1, b + 1)
        assert up[level - 1] > Fraction(b - 1, b)
    if h >= 9:
        assert min(found) - Fraction(b - 1, b + 1) < Fraction(1, 100)


def test_two_levels_of_section_3_3():
    """The mean over k = 1 .. b - 1 children is 1 / (b - 1) times what is printed; the last step,
    (b-1)(b+4) / 3b(b+1), is right.
    """
    for b in (2, 3, 16):
        v, above = Fraction(3, 7), Fraction(5, 11)
        total = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b))
        printed = (b * (b - 1) * (b + 1) * v * v + 3 * b * (b - 1) * above * v) / (
            6 * (above + b * v)
        )
        assert total == printed  # and not total / (b - 1)
        v = above = Fraction(b - 1, b)
        mean = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b)) / (b - 1)
        assert mean / Fraction(b, 2) == Fraction((b - 1) * (b + 4), 3 * b * (b + 1))
        # Printed as equal to the line above
        assert mean == Fraction((b * b + 4 * b) * (b - 1), 6 * (b + 1) * b)

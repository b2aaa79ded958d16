"""The four facts that put one pair law above another, on all laws of a grid, in fractions."""

from fractions import Fraction
from itertools import product

import pytest

from frequency.core.blanket import (
    ALIKE,
    independent,
    joint_law_of,
    law_above,
    law_of_ratio,
    mixed_law,
    of_two_likelihoods,
    product_law,
    two_likelihoods,
)
from mechdesign.accounting.pair_law import PairClass, merged, require_pair_law
from tests.contracts.test_pair_laws import above

LOW, HIGH = Fraction(1, 2), Fraction(2)
LIKELY = (1 - LOW) / (HIGH - LOW)


def test_apart_is_worse():
    laws = [two_likelihoods(LOW, HIGH, LIKELY * Fraction(k, 6)) for k in range(7)]
    for k, law in enumerate(laws):
        assert require_pair_law(law) == law
        assert [above(law, other) for other in laws] == [other >= k for other in range(7)]
    assert all(u == v for _, u, v in laws[-1])
    assert above(laws[-1], ALIKE)


def test_apart_is_worse_in_a_product_and_in_a_mixture():
    near, far = (two_likelihoods(LOW, HIGH, LIKELY * share) for share in (Fraction(1, 2), 0))
    for other in (near, far, ALIKE):
        assert above(product_law([far, other]), product_law([near, other]))
        assert not above(product_law([near, other]), product_law([far, other]))
        one, rest = (
            mixed_law([(Fraction(1, 3), law), (Fraction(2, 3), other)]) for law in (far, near)
        )
        assert require_pair_law(one) == one
        assert above(one, rest)


def tables():
    """Three reports under three values, with equal steps, none below a step."""
    columns = [c for c in product(range(1, 7), repeat=3) if sum(c) == 8]
    for three in product(columns[::4], repeat=3):
        if len(set(three)) == 3:
            yield list(zip(*[[Fraction(n, 8) for n in column] for column in three], strict=True))


@pytest.mark.slow
def test_blanket_ratio_and_distance_are_enough():
    seen = 0
    for table in tables():
        omega = [min(row) for row in table]
        ratio = max(max(row) / min(row) for row in table)
        pairs = [(0, 1), (1, 2), (2, 0)]
        laws = [
            merged(
                PairClass(w, row[x] / w, row[z] / w) for row, w in zip(table, omega, strict=True)
            )
            for x, z in pairs
        ]
        apart = max(sum(abs(row[x] - row[z]) for row in table) / 2 for x, z in pairs)
        law = law_above(sum(omega), ratio, apart)
        assert require_pair_law(law) == law
        assert all(above(law, pair) for pair in laws)
        assert above(law_of_ratio(ratio), law)
        smaller = law_above(sum(omega), ratio, apart * Fraction(9, 10))
        seen += not all(above(smaller, pair) for pair in laws)
    assert seen  # that the distance is needed


def test_reports_that_say_nothing():
    assert law_above(Fraction(1), Fraction(1), Fraction(0)) == ALIKE == law_of_ratio(Fraction(1))


@pytest.mark.parametrize("values", [1, 2, 3, 4])
def test_inclusion_and_exclusion(values):
    """Of independent bits, of which each is likely with probability LIKELY."""
    found = of_two_likelihoods(values, LOW, HIGH, lambda chosen: LIKELY ** len(chosen))
    bit = [(LIKELY, HIGH), (1 - LIKELY, LOW)]
    alone = [
        joint_law_of(
            (p, [likelihood if k == place else Fraction(1) for k in range(values)])
            for p, likelihood in bit
        )
        for place in range(values)
    ]
    assert found == independent(alone)
    assert sum(p for p, _ in found) == 1
    for place in range(values):
        assert sum(p * likelihoods[place] for p, likelihoods in found) == 1

"""Divergences of two hypotheses: known optima, merged items, and many of them."""

import pytest

from mechdesign import Mechanism
from mechdesign.local import extremal
from mechdesign.losses import prior
from mechdesign.utilities import (
    ChiSquareDivergence,
    Hellinger,
    KullbackLeibler,
    Utility,
    total_variation,
)
from tests.mechdesign.local.examples import HALF, local, some_prior
from tests.mechdesign.utilities.worths import check_prices


@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger])
def test_at_high_privacy_two_outputs_are_best_for_any_divergence(kind):
    """Theorem 5 of the same: then the binary mechanism is optimal, which is the one of the total
    variation.
    """
    first, second = some_prior(8, 1), some_prior(8, 2)
    binary = extremal(8, local("999/1000"), total_variation(first, second)).mechanism
    assert set(extremal(8, local("999/1000"), kind(first, second)).mechanism.table) == set(
        binary.table
    )


def test_an_item_that_tells_nothing_changes_nothing():
    plain = extremal(2, local(HALF), ChiSquareDivergence(["1/3", "2/3"], ["3/4", "1/4"]))
    padded = extremal(3, local(HALF), ChiSquareDivergence(["1/3", "2/3", 0], ["3/4", "1/4", 0]))
    assert padded.value == plain.value == padded.bound


def test_merging_changes_nothing():
    class Plain(ChiSquareDivergence):
        def merged(self):
            return Utility.merged(self)

    first, second = prior([1, 2, 3, 4, 0, 1]), prior([2, 4, 1, 3, 1, 0])
    merged, plain = (
        extremal(6, local(HALF), kind(first, second)) for kind in (ChiSquareDivergence, Plain)
    )
    assert merged.value == plain.value
    assert merged.gap == plain.gap == 0
    check_prices(merged, HALF)
    assert all(row[0] == row[1] for row in merged.mechanism.table)


@pytest.mark.parametrize("kind", [KullbackLeibler, ChiSquareDivergence, Hellinger])
def test_a_divergence_of_many_items(kind):
    found = extremal(20, local(HALF), kind(some_prior(20, 1), some_prior(20, 2)))
    assert found.mechanism.audit().holds
    assert 0 <= found.gap <= found.value / 10**9


def test_a_mechanism_without_privacy_has_no_value():
    with pytest.raises(ValueError, match="no privacy at all"):
        KullbackLeibler([HALF, HALF], [1, 0]).of(Mechanism([[1, 0], [0, 1]], local(HALF)))

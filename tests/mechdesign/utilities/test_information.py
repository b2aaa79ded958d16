"""Mutual information: known optima, interchangeable items, and many of them."""

import math
from fractions import Fraction

import pytest

from mechdesign import named
from mechdesign.local import extremal
from mechdesign.losses import prior, prior_over
from mechdesign.utilities import MutualInformation, Utility
from tests.mechdesign.local.examples import HALF, local, some_prior
from tests.mechdesign.utilities.worths import check_prices


@pytest.mark.parametrize("items", [3, 5, 16])
def test_at_low_privacy_information_is_best_kept_by_randomised_response(items):
    found = extremal(items, local("1/1000"), MutualInformation(prior_over(items)))
    assert found.mechanism == named.krr(items, alpha="1/1000")


def subset_information(items, size, alpha):
    """I(X; Y) of subset selection under a uniform prior: a row has ``size`` entries in proportion 1
    and the others alpha.
    """
    mean = (size + (items - size) * alpha) / items
    return (size * math.log(1 / mean) + (items - size) * alpha * math.log(alpha / mean)) / (
        items * mean
    )


@pytest.mark.parametrize("items", [6, 20, 60])
@pytest.mark.parametrize("alpha", ["1/20", "1/3", "1/2", "9/10"])
def test_information_under_a_uniform_prior_is_kept_by_subsets_of_the_best_size(items, alpha):
    values = {
        size: subset_information(items, size, float(Fraction(alpha)))
        for size in range(1, items + 1)
    }
    best = max(values, key=values.get)
    found = extremal(items, local(alpha), MutualInformation(prior_over(items)))
    assert float(found.value) == pytest.approx(values[best], rel=1e-12)
    assert found.gap < Fraction(1, 10**30)
    assert {sum(entry == max(row) for entry in row) for row in found.mechanism.table} == {best}
    # Not all subsets: one in n/gcd shifts will do
    assert found.mechanism.outputs == items // math.gcd(items, best)


def test_interchangeable_items_change_nothing():
    """Two classes of interchangeable items, and the same items told apart by perturbing nothing but
    the classes.
    """

    class Plain(MutualInformation):
        def classes(self):
            return Utility.classes(self)

    weights = prior([1, 1, 1, 1, 3, 3, 3])
    for alpha in (Fraction(1, 10), HALF, Fraction(9, 10)):
        merged, plain = (
            extremal(7, local(alpha), kind(weights)) for kind in (MutualInformation, Plain)
        )
        assert float(merged.value) == pytest.approx(float(plain.value), rel=1e-15)
        assert merged.mechanism.outputs <= 7
        check_prices(merged, alpha)


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", [some_prior(30, 3), prior([1] * 10 + [2] * 20 + [3] * 15 + [4] * 25)]
)
def test_the_information_of_many_items(weights):
    found = extremal(len(weights), local(HALF), MutualInformation(weights))
    assert found.mechanism.audit().holds
    assert found.mechanism.outputs <= len(weights)
    assert 0 <= found.gap <= found.value / 10**4

"""The named mechanisms are the definitions of the thesis, for numbers and for alpha as a symbol."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

import pytest

from mechdesign import Privacy, named, symbolic
from mechdesign.named import explicit_fair_weights, geometric_weights, krr_weights
from mechdesign.standard_errors import StandardErrors

ALPHAS = [Q(1, 10**9), Q(1, 3), Q(9, 10), 1 - Q(1, 10**9), Q(1)]


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("n", [0, 1, 2, 5, 8])
def test_closed_forms_in_alpha_are_those_of_numbers(n: int, alpha: Q) -> None:
    assert symbolic.geometric(n).at(alpha).table == named.geometric(n, alpha).table
    assert symbolic.explicit_fair(n).at(alpha).table == named.explicit_fair(n, alpha).table
    assert symbolic.uniform(n).at(alpha).table == named.uniform(n).table
    assert symbolic.krr(n + 1).at(alpha).table == named.krr(n + 1, alpha).table


@pytest.mark.parametrize("alpha", ALPHAS[:-1])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_geometric_mechanism_is_clamped_two_sided_noise(n: int, alpha: Q) -> None:
    table = named.geometric(n, alpha).table
    far = 400  # of the noise beyond, alpha^400 / (1 + alpha) is left
    for i, j in product(range(n + 1), repeat=2):
        noise = {d: (1 - alpha) * alpha ** abs(d) / (1 + alpha) for d in range(-far, far + 1)}
        clamped = sum(p for d, p in noise.items() if min(max(j + d, 0), n) == i)
        assert 0 <= table[i][j] - clamped <= 2 * alpha**far


@pytest.mark.parametrize("alpha", ALPHAS)
def test_weights_and_denominators_make_columns_of_one(alpha: Q) -> None:
    for weights, denominator in (
        geometric_weights(4, alpha),
        explicit_fair_weights(5, alpha),
        krr_weights(3, alpha),
    ):
        for column in zip(*weights, strict=True):
            assert sum(column) == denominator


def test_recommendations_have_what_was_asked_for() -> None:
    for n, alpha, wanted in product((1, 3, 6), ("1/3", "9/10"), ((), ("WH",), ("CM",), ("F",))):
        found = named.recommend(n, alpha, wanted)
        held = found.mechanism.properties()
        assert all(held[short] for short in wanted)
        assert found.mechanism.audit().holds
        assert found.mechanism.privacy == Privacy(alpha)
        assert found.errors == StandardErrors.of(found.mechanism)
        assert str(found) == f"{found.name}: {found.reason}; {found.errors}"

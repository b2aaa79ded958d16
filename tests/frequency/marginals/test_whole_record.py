"""Protocols that report the whole record have the variances of the thesis."""

from __future__ import annotations

import math

import numpy as np
import pytest

from frequency.marginals import InpPS, InpRR, whole_record
from tests.contracts.oracle import LN3
from tests.frequency.marginals.examples import B4, INPUT, MIXED, make
from tests.frequency.marginals.twins import Enumerated


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
def test_theorem_4_variance_of_preferential_sampling(epsilon) -> None:
    """p_s (1 - p_s) (D / Delta)^2 for the record held, (1 - p_s) (D + p_s - 1) / Delta^2 for
    others; D / Delta as simplified.
    """
    D, e = 2**4 - 1, math.exp(epsilon)
    p = 1 / (1 + D / e)
    delta = D * p + p - 1
    assert D / delta == pytest.approx(1 / (1 - 1 / e) + D / (e - 1))
    own, other = p * (1 - p) * (D / delta) ** 2, (1 - p) * (D + p - 1) / delta**2
    protocol = InpPS(B4, 4, epsilon)
    np.testing.assert_allclose(
        protocol.cell_variances(50, list("abcd")), (own / 16 + other * 15 / 16) / 50, rtol=1e-6
    )
    held = np.eye(16)[5]
    twin = Enumerated(protocol, [tuple("abcd")], [10**12])
    np.testing.assert_allclose(
        np.diag(twin.covariance(held)), np.where(held, own, other), rtol=1e-6
    )


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
def test_theorem_3_variance_of_unary_encoding(epsilon) -> None:
    """OUE: 4 e^eps / (e^eps - 1)^2 for a record nobody holds, never more than the theorem's a / (a
    - 1)^2, a = e^(eps/2).

    (The theorem has four times that, for -1 and 1 in place of 0 and 1.) Bits are independent: the
    variance of a cell of 2^(d-k) records is the sum of theirs.
    """
    e, a = math.exp(epsilon), math.exp(epsilon / 2)
    other = 4 * e / (e - 1) ** 2
    assert other <= a / (a - 1) ** 2
    own = other + 1  # p = 1/2: 1 / (4 (p - q)^2) for the holder
    assert own == pytest.approx((e + 1) ** 2 / (e - 1) ** 2)
    for k in (1, 2, 3):
        protocol = InpRR(B4, k, epsilon)
        expected = 2 ** (4 - k) * other + (own - other) / 2**k
        np.testing.assert_allclose(
            protocol.cell_variances(1, list("abcd"[:k])), expected, rtol=1e-6
        )
        assert expected <= 2 ** (4 - k) * a / (a - 1) ** 2 + 1


@pytest.mark.parametrize("block", [1, 30, 1000])
@pytest.mark.parametrize("kind", INPUT)
def test_variances_do_not_depend_on_the_blocks(kind, block, monkeypatch) -> None:
    """All sums at a time, or one by one: of two records, of twelve, or of many at most."""
    protocol, names, rng = make(kind, MIXED, 3, 1.0), ("b", "d"), np.random.default_rng(1)
    weights = rng.normal(size=(7, 6))
    aggregate = protocol.simulate(rng.integers(0, 50, MIXED.size), rng)
    one_by_one = np.concatenate(
        [protocol.linear_variances_of(aggregate, names, row[None]) for row in weights]
    )
    cells = MIXED.cells(np.arange(MIXED.size), names)
    even = np.full(MIXED.size, 1 / MIXED.size)
    expected = [
        protocol.records.linear_variance(50, (cells == cell)[None].astype(float), even)[0]
        for cell in range(6)
    ]
    monkeypatch.setattr(whole_record, "_AT_ONCE", block)
    np.testing.assert_allclose(
        protocol.linear_variances_of(aggregate, names, weights), one_by_one, rtol=1e-12
    )
    assert protocol.linear_variances_of(aggregate, names, weights[:0]).shape == (0,)
    found = protocol.cell_variances(50, names)
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-12)

"""Estimates and variances of marginals are exactly those of the enumerated reports."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from frequency import Between
from frequency.marginals import Domain, InpHT, MarginalEstimate
from tests.contracts.oracle import close, some_weights
from tests.frequency.marginals.examples import (
    ALL,
    B4,
    INPUT,
    MIXED,
    SEVEN,
    all_cells,
    make,
    sets_of,
    small,
    users_of,
)
from tests.frequency.marginals.twins import Enumerated, parts_of


def some_population(domain, seed=0):
    """Not even, and not all records occur."""
    held = np.random.default_rng(seed).dirichlet(np.ones(domain.size))
    held[1::3] = 0
    return held / held.sum()


@small
def test_estimates_are_unbiased(protocol) -> None:
    """For every record and marginal, whatever the numbers of users of the parts; and affine in the
    counts.
    """
    sets, rng = sets_of(protocol), np.random.default_rng(1)
    parts = len(parts_of(protocol))
    for users in (list(range(1, parts + 1)), rng.integers(1, 40, parts).tolist()):
        twin = Enumerated(protocol, sets, users)
        close(twin.mean(), twin.truth(), 100)
        drawn = [
            rng.integers(len(p.reports), size=n) for p, n in zip(twin.parts, users, strict=True)
        ]
        reports = np.concatenate([p.reports[d] for p, d in zip(twin.parts, drawn, strict=True)])
        expected = twin.origin + sum(
            x[d].mean(axis=0) for x, d in zip(twin.effects, drawn, strict=True)
        )
        close(
            all_cells(protocol.estimate(protocol.aggregate(rng.permutation(reports))), sets),
            expected,
            100,
        )


@small
def test_variances_are_the_enumerated_ones(protocol) -> None:
    """Of cells, of sums and of answers, when what is plugged in is the truth: from counts that are
    as expected of 10^12 users.
    """
    n, sets, rng = 10**12, sets_of(protocol, 4), np.random.default_rng(2)
    twin, held = Enumerated(protocol, sets, users_of(protocol, n)), some_population(protocol.domain)
    estimate = MarginalEstimate(protocol, twin.aggregate(held))
    total = sum(twin.users)
    # Counts are rounded
    np.testing.assert_allclose(all_cells(estimate, sets), held @ twin.truth(), atol=1e-8)
    covariance, start = twin.covariance(held), 0
    for names in sets:
        marginal = estimate.marginal(names)
        own = covariance[start : start + marginal.size, start : start + marginal.size]
        start += marginal.size
        scale = np.diag(own).max() + 1e-3
        weights = some_weights(marginal.size)
        expected = ((weights @ own) * weights).sum(axis=1)
        for found, wanted in (
            (estimate.cells(names).variance.ravel(), np.diag(own)),
            (estimate.linear(names, weights).variance, expected),
        ):
            np.testing.assert_allclose(
                total * found, wanted, rtol=1e-7, atol=1e-7 * scale * (1 + (weights**2).sum())
            )
        where = {
            name: np.flatnonzero(rng.integers(0, 2, protocol.domain[name])).tolist()
            for name in names
        }
        chosen = np.zeros(marginal.shape)
        chosen[np.ix_(*where.values())] = 1
        value, variance = estimate.answer(where)
        assert value == pytest.approx((chosen * marginal).sum(), abs=1e-12)
        assert total * variance == pytest.approx(
            chosen.ravel() @ own @ chosen.ravel(), rel=1e-7, abs=1e-7 * scale * marginal.size
        )
    # A planted error: another population's variances are told apart.
    if protocol.domain.size > 1:
        other = np.diag(twin.covariance(some_population(protocol.domain, 1)))
        found = np.concatenate([estimate.cells(names).variance.ravel() for names in sets])
        assert not np.allclose(total * found, other, rtol=1e-7, atol=1e-9) or np.allclose(
            np.diag(covariance), other
        )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_orders_of_attributes(kind) -> None:
    protocol, rng = make(kind, MIXED, 3, 1.0), np.random.default_rng(1)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(rng.integers(0, MIXED.shape, size=(500, 4)), rng))
    )
    base = ("a", "b", "d")
    for order in permutations(range(3)):
        names = [base[place] for place in order]
        close(estimate.marginal(names), estimate.marginal(base).transpose(order), 10)
        close(
            estimate.cells(names).variance,
            estimate.cells(base).variance.transpose(order),
            10,
        )
        close(
            protocol.cell_variances(500, names),
            protocol.cell_variances(500, base).transpose(order),
            10,
        )
        where: dict[str, Any] = {"a": 1, "b": [0, 2], "d": 0}
        assert tuple(estimate.answer({name: where[name] for name in names})) == pytest.approx(
            tuple(estimate.answer(where))
        )
    assert not estimate.marginal("a").flags.writeable
    assert (estimate.marginal("a") == estimate.marginal(["a"])).all()
    assert estimate.distribution(base).sum() == pytest.approx(1)
    assert estimate.distribution(base).min() >= 0
    assert repr(estimate) == "<Estimate of marginals of up to 3 of 4 attributes from 500 reports>"


@pytest.mark.parametrize("kind", [*INPUT, InpHT], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("domain", [B4, SEVEN, MIXED], ids=["binary", "seven", "mixed"])
def test_marginals_of_overlapping_sets_agree(kind, domain) -> None:
    """They are of one estimate: of all records, or of coefficients. (Not so where every view is
    estimated by itself.)
    """
    if domain is SEVEN and kind is not InpHT:
        domain = Domain({"two": 2, "three": 3, "five": 5})
    k = min(3, len(domain))
    protocol, rng = make(kind, domain, k, 1.0), np.random.default_rng(2)
    estimate = protocol.estimate(
        protocol.aggregate(
            protocol.privatize(rng.integers(0, domain.shape, size=(20_000, len(domain))), rng)
        )
    )
    for names in list(domain.views(k))[:10]:
        for name in names:
            axes = tuple(k for k, other in enumerate(names) if other != name)
            np.testing.assert_allclose(
                estimate.marginal(names).sum(axis=axes), estimate.marginal([name]), atol=1e-11
            )
        if kind is InpHT:
            assert estimate.marginal(names).sum() == pytest.approx(1, abs=1e-12)
            assert (
                estimate.linear(names, np.ones((1, estimate.marginal(names).size))).variance[0]
                < 1e-15
            )


def test_answers_with_sets_of_values() -> None:
    protocol, rng = InpHT(Domain({"a": 5, "b": 3}), 2, 1.0), np.random.default_rng(0)
    estimate = protocol.estimate(
        protocol.aggregate(protocol.privatize(rng.integers(0, [5, 3], size=(400, 2)), rng))
    )
    table = estimate.marginal(["a", "b"])
    values: Any
    for values in ([1, 3], {1, 3}, range(1, 4, 2), [np.int8(1), 3, 3]):
        assert estimate.answer({"a": values, "b": 2}).value == pytest.approx(table[[1, 3], 2].sum())
    assert estimate.answer({"a": Between(1, 3), "b": 2}).value == pytest.approx(table[1:4, 2].sum())
    many = estimate.answer(
        {"a": Between(np.array([0, 1]), np.array([[3], [4]])), "b": np.array([2, 0])}
    )
    assert many.value.shape == many.variance.shape == (2, 2)
    assert many.value[1, 0] == pytest.approx(table[0:5, 2].sum())
    assert many.value[0, 1] == pytest.approx(table[1:4, 0].sum())
    assert many.interval().low.shape == (2, 2)
    assert tuple(estimate.answer({"a": [], "b": 2})) == (0, 0)
    everybody = estimate.answer({"a": range(5), "b": range(3)})
    assert tuple(everybody) == pytest.approx((1, 0), abs=1e-12)
    assert tuple(estimate.answer({"b": 0})) == pytest.approx(
        (estimate.marginal("b")[0], estimate.cells("b").variance[0])
    )

"""Protocols of views: their mixtures, and what several views tell together."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.core.mixture import weights_of
from frequency.marginals import MargHT, MargPS, MargRR, views
from frequency.marginals.views import Views
from tests.frequency.marginals.examples import B2, B4, MIXED


def test_smaller_marginals_of_views_use_all_that_hold_them() -> None:
    """More precise than any one view: as many times as there are, by and large."""
    protocol = MargPS(B4, 2, 1.0)
    single = MargPS(B2, 2, 1.0).cell_variances(1000, ["a"])
    np.testing.assert_allclose(protocol.cell_variances(6000, ["a"]), single / 3, rtol=0.05)


def test_mixtures_of_views_of_unlike_cells() -> None:
    """Some views only, each with an oracle of its own size."""
    channel = Views(MIXED.size, 1.0, MIXED, (("b", "a"), ("d",)), "GRR")
    assert [part.domain for part in channel.parts] == [6, 2]
    assert channel.part_weights == weights_of(2, None)
    reports = channel.privatize(np.arange(12), np.random.default_rng(0))
    assert channel.aggregate(reports).n == 12
    assert channel.audit().holds


@pytest.mark.parametrize("kind", [MargRR, MargPS, MargHT])
def test_cells_are_looked_at_some_at_a_time(kind, monkeypatch) -> None:
    protocol = kind(MIXED, 2, 1.0)
    names = MIXED.views(2)[0]
    expected = protocol.cell_variances(100, names)
    monkeypatch.setattr(views, "_AT_ONCE", 1)
    # Sums of blocks are rounded in another order
    np.testing.assert_allclose(protocol.cell_variances(100, names), expected, rtol=1e-11)

"""Protocols of views: their mixtures, and what several views tell together."""

from __future__ import annotations

import numpy as np

from frequency.core.mixture import weights_of
from frequency.marginals import MargPS
from frequency.marginals.views import Views
from tests.frequency.marginals.examples import B2, B4, MIXED


def test_smaller_marginals_of_views_use_all_that_hold_them() -> None:
    """More precise than any one view: as many times as there are, by and large."""
    protocol = MargPS(B4, 2, 1.0)
    single = MargPS(B2, 2, 1.0).cell_variances(1000, ["a"])
    np.testing.assert_allclose(protocol.cell_variances(6000, ["a"]), single / 3, rtol=0.05)


def test_mixtures_of_views_of_unlike_cells() -> None:
    """Some views only, each with an oracle of its own size."""
    views = Views(MIXED.size, 1.0, MIXED, (("b", "a"), ("d",)), "GRR")
    assert [part.domain for part in views.parts] == [6, 2]
    assert views.part_weights == weights_of(2, None)
    reports = views.privatize(np.arange(12), np.random.default_rng(0))
    assert views.aggregate(reports).n == 12
    assert views.audit().holds

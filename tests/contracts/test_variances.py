"""Every public protocol is in a suite of `tests.contracts.variances`, or states no variances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tests.frequency.heavy.test_variances
import tests.frequency.marginals.test_variances
import tests.frequency.test_variances
import tests.rangeq.central.test_variances
import tests.rangeq.grids.test_variances
import tests.rangeq.test_variances
from frequency import Between, Survey, UnknownVariance
from frequency.heavy import OneBit
from frequency.heavy.sampled import Sampled
from rangeq import SquareWave
from rangeq.grids import (
    HIO,
    LHIO,
    MSW,
    HaarHRR2D,
    HierarchicalHistogram2D,
    Uniform,
    WaveGrid,
)
from rangeq.local.smoothed import Shaped
from tests.contracts.examples import CENTRAL, COLLECTED
from tests.contracts.test_answers import names_of
from tests.contracts.variances import VarianceContract

MODULES = (
    tests.frequency.test_variances,
    tests.frequency.heavy.test_variances,
    tests.frequency.marginals.test_variances,
    tests.rangeq.test_variances,
    tests.rangeq.central.test_variances,
    tests.rangeq.grids.test_variances,
)

BOUNDED = {HIO, LHIO, MSW, Uniform, HaarHRR2D, HierarchicalHistogram2D}
"""Whose estimates have intervals, by a bootstrap or a bound, and no variances."""

SILENT = {SquareWave} | BOUNDED
"""Whose estimates are processed so that nobody knows their variances."""

SMOOTHED = {Shaped, WaveGrid}
"""Which state posterior variances: on average over populations, see
`test_shaped_estimates_cover_on_average` and `test_intervals_of_waves_cover`.
"""

KINDS = {type(protocol) for protocol, _ in COLLECTED} | set(map(type, CENTRAL))


def suites(kind: Any = VarianceContract) -> Iterator[Any]:
    """The suites of these modules."""
    for below in kind.__subclasses__():
        if below.__module__ in {module.__name__ for module in MODULES}:
            yield below
        yield from suites(below)


def measured() -> set[type]:
    """The kinds of protocols that the suites have an entry for."""
    made = {
        type(entry.make(entry.epsilons[0], 0))
        for suite in suites()
        for entry in suite.entries.values()
    }
    return {OneBit if issubclass(kind, Sampled) else kind for kind in made}


def test_every_protocol_has_an_entry() -> None:
    found = measured()
    # A survey's are those of its protocol: see tests/frequency/schema/test_estimate.py
    assert found | SILENT | SMOOTHED | {Survey} == KINDS
    assert not found & (SILENT | SMOOTHED)


@pytest.mark.parametrize("suite", list(suites()), ids=lambda suite: suite.__name__)
def test_every_suite_measures_and_rejects(suite) -> None:
    """Even and heaped populations, small and large epsilons; a wrong variance is planted."""
    if not suite.entries:
        return
    assert len(suite.populations) > 1 or "three" in suite.populations
    for entry in suite.entries.values():
        assert len(entry.epsilons) > 1
    if suite.test_wrong_variances_are_rejected is not None:
        assert suite.planted
        assert set(suite.planted) <= set(suite.entries)


@pytest.mark.parametrize(
    "protocol", [one for one, _ in COLLECTED if type(one) in SILENT], ids=lambda p: type(p).__name__
)
def test_those_without_variances_say_so(protocol) -> None:
    values = next(held for one, held in COLLECTED if one is protocol)
    estimate = protocol.estimate(protocol.simulate(9, np.random.default_rng(1), values))
    names = list(names_of(protocol))
    questions = [{name: 0} for name in names] or [0, Between(0, 1), [0, 2]]
    questions += [{names[0]: 0, names[1]: 0}] if names else []
    for where in questions:
        answer = estimate.answer(where)
        assert np.isfinite(answer.value)
        with pytest.raises(UnknownVariance):
            _ = answer.variance
        if type(protocol) in BOUNDED:
            low, high = answer.interval()
            assert 0 <= low <= answer.value <= high <= 1
        else:
            with pytest.raises(UnknownVariance):
                answer.interval()


def test_a_missing_entry_is_found(monkeypatch) -> None:
    monkeypatch.delitem(tests.frequency.test_variances.TestRR.entries, "RR")
    with pytest.raises(AssertionError):
        test_every_protocol_has_an_entry()

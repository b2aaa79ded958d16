"""One of every public protocol that can be written to a file, and the curator's mechanisms.

And protocols with the values of some of their users.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import frequency
import rangeq
from frequency import heavy, marginals
from mechdesign import Privacy, named
from rangeq import central, grids

DOMAIN = marginals.Domain({"age": 3, "sex": 2})
KRR = named.krr(4, alpha=Privacy.from_epsilon(0.5, neighbours="all").alpha)

ORACLES = [
    *(
        kind(5, 0.5)
        for kind in (
            frequency.GRR,
            frequency.HRR,
            frequency.OLH,
            frequency.OUE,
            frequency.SUE,
            frequency.ProjectiveGeometry,
            frequency.AffineSelection,
            frequency.SubsetSelection,
        )
    ),
    frequency.RR(2, Fraction(1, 2)),
    frequency.CountMeanSketch(500, 0.5, 4, 16, seed=3),
    frequency.HadamardCountMeanSketch(500, 0.5, 4, 16, seed=3),
    frequency.JLOracle(500, 0.5, 64, seed=3),
    frequency.Tabular(KRR),
]
MARGINALS = [
    *(
        kind(DOMAIN, 2, 0.5)
        for kind in (
            marginals.CALM,
            marginals.InpEM,
            marginals.InpHT,
            marginals.InpOLH,
            marginals.InpPS,
            marginals.InpRR,
            marginals.MargHT,
            marginals.MargPS,
            marginals.MargRR,
        )
    ),
    marginals.InpHTCMS(DOMAIN, 2, 0.5, 3, 16),
]
HEAVY = [
    heavy.PrefixExtension(8, 0.5, seed=2),
    heavy.TreeHist(8, 0.5, text=True),
    heavy.UniqueHeavyHitter(8, 0.5),
    heavy.SuccinctHistogram(8, 0.5, n=500, hashes=2, channels=16, seed=1),
    heavy.OneBit(frequency.GRR(5, 0.5), seed=7),
    heavy.OneBit(heavy.TreeHist(8, 0.5)),
    heavy.OneBit(heavy.UniqueHeavyHitter(8, 0.5), seed=1),
    heavy.OneBit(marginals.InpEM(DOMAIN, 2, 0.5)),
    heavy.OneBit(rangeq.SquareWave(10, 1.5)),
    heavy.FewBits(grids.WaveGrid({"age": 8, "pay": 8}, 2.0), seed=2),
    heavy.FewBits(frequency.OLH(100, 2.0), bits=3),
]
RANGES = [
    rangeq.CircularHistogram(12, 0.5),
    rangeq.Composite(8, 0.5, KRR, (2,), ("OUE",), (Fraction(1, 3), Fraction(2, 3))),
    rangeq.DecomposedHistogram(10, 0.5, 3, "HRR"),
    rangeq.Flat(5, 0.5),
    rangeq.HaarHRR(8, 0.5, ("1/2", "1/4", "1/4")),
    rangeq.HierarchicalHistogram(8, 0.5, (2, 4), ("OUE", "GRR"), ("1/3", "2/3")),
    rangeq.PaddedSets(rangeq.HaarHRR(9, 0.5), 3, (1, 4)),
    rangeq.Paired(rangeq.HierarchicalHistogram(8, 0.5)),
    rangeq.PerAttribute.of(DOMAIN, 0.5, "sex"),
    rangeq.shaped(16, 0.5, 1000),
    rangeq.ShiftedHistogram(12, 0.5, (5, 2, 1), ("GRR", "OLH", "ProjectiveGeometry")),
    rangeq.SquareWave(10, 0.5),
]
GRIDS = [
    *(
        kind({"age": 8, "pay": 8}, 0.5, 1000)
        for kind in (
            grids.RangeCALM,
            grids.HDG,
            grids.HIO,
            grids.LHIO,
            grids.MSW,
            grids.TDG,
            grids.HaarHRR2D,
            grids.HierarchicalHistogram2D,
            grids.Uniform,
            grids.WaveGrid,
        )
    ),
    grids.WaveGrid({"age": 8, "job": 6}, 0.5, categorical=["job"]),
]
AGE = frequency.Numeric("age", low=0, high=29, whole=True, unit="years")
SURVEYS = [frequency.Survey(rangeq.HaarHRR(30, 1.0), frequency.Schema([AGE]))]
CENTRAL = [central.CentralFlat(5, 0.5), central.Hierarchy(9, 0.5, 3), central.Wavelet(8, 0.5)]

PROTOCOLS: list[Any] = [*ORACLES, *MARGINALS, *HEAVY, *RANGES, *GRIDS, *SURVEYS]
PACKAGES = (frequency, marginals, heavy, rangeq, grids)

RECORDS = {"a": 3, "b": 2, "c": 4}


def numbers(domain: int, n: int = 200, seed: int = 1) -> np.ndarray:
    """Items of so many users."""
    return np.random.default_rng(seed).integers(0, domain, n)


def records(n: int = 200, seed: int = 1) -> np.ndarray:
    """Records of so many users, with the attributes of `RECORDS`."""
    return np.random.default_rng(seed).integers(0, list(RECORDS.values()), (n, 3))


def collected() -> Iterator[tuple[Any, np.ndarray]]:
    """One of every public class, and some with unusual arguments; with values of their users."""
    domain = marginals.Domain(RECORDS)
    yield frequency.GRR(5, 1.0), numbers(5)
    yield frequency.GRR(1, 1.0), numbers(1)
    yield frequency.GRR(300, Fraction(7, 5)), numbers(300)
    yield frequency.RR(2, 1.0), numbers(2)
    yield frequency.HRR(100, 1.0), numbers(100)
    yield frequency.HRR(100, 3.0, coefficients=2), numbers(100)
    yield frequency.OLH(100, 1.0), numbers(100)
    yield frequency.OUE(20, 1.0), numbers(20)
    yield frequency.SUE(8, 1.0), numbers(8)
    yield frequency.SubsetSelection(20, 1.0), numbers(20)
    yield frequency.ProjectiveGeometry(100, 1.0), numbers(100)
    yield frequency.CountMeanSketch(1 << 30, 1.0, hashes=8, width=16), numbers(1 << 30)
    yield (
        frequency.HadamardCountMeanSketch(1 << 30, 1.0, hashes=8, width=16, seed=3),
        numbers(1 << 30),
    )
    yield frequency.JLOracle(1 << 20, 1.0, rows=64), numbers(1 << 20)
    yield frequency.Tabular(named.krr(4, alpha=Fraction(1, 3))), numbers(4)
    for kind in (
        "InpRR",
        "InpPS",
        "InpHT",
        "MargRR",
        "MargPS",
        "MargHT",
        "InpEM",
        "InpOLH",
        "InpHTCMS",
        "CALM",
    ):
        yield getattr(marginals, kind)(domain, 2, 1.1), records()
    yield heavy.PrefixExtension(24, 2.0), numbers(1 << 24)
    yield heavy.PrefixExtension(16, 2.0, text=True), np.array(["ab", "c"] * 100)
    yield heavy.PrefixExtension(8, Fraction(1, 2), lengths=(4, 8), seed=2), numbers(256)
    yield heavy.PrefixExtension(80, 2.0, text=True), np.array(["Reykjavík", "Garðabær"] * 100)
    yield heavy.TreeHist(6, 1.0), numbers(64)
    yield heavy.UniqueHeavyHitter(8, 1.0), numbers(256)
    yield heavy.SuccinctHistogram(8, 4.0, n=500), numbers(256)
    yield heavy.OneBit(frequency.GRR(4, 0.5)), numbers(4)
    yield heavy.OneBit(heavy.PrefixExtension(8, 0.5), seed=4), numbers(256)
    yield heavy.OneBit(rangeq.HaarHRR(30, 1.0), seed=4), numbers(30)
    yield heavy.OneBit(marginals.MargPS(domain, 2, 1.1)), records()
    yield heavy.OneBit(grids.HDG(RECORDS, 1.0, 200)), records()
    yield heavy.OneBit(rangeq.SquareWave(30, 1.0)), numbers(30)
    yield heavy.FewBits(frequency.GRR(4, 2.0)), numbers(4)
    yield heavy.FewBits(rangeq.DecomposedHistogram(30, 1.0), bits=3), numbers(30)
    yield heavy.FewBits(marginals.InpHT(domain, 2, 2.0), seed=3), records()
    yield heavy.FewBits(grids.WaveGrid(RECORDS, 1.0, 200)), records()
    yield heavy.FewBits(rangeq.PaddedSets(rangeq.HaarHRR(31, 1.0), 2)), records() + 20
    yield (
        heavy.OneBit(rangeq.Paired(frequency.GRR(60, 1.0))),
        np.stack([numbers(2), numbers(30)], axis=1),
    )
    yield rangeq.Flat(30, 1.0), numbers(30)
    yield (
        rangeq.HierarchicalHistogram(30, 1.0, branching=(5, 6), oracle=("OUE", "HRR")),
        numbers(30),
    )
    yield (
        rangeq.HierarchicalHistogram(16, 1.0, probabilities=(Fraction(1, 3), Fraction(2, 3))),
        numbers(16),
    )
    yield rangeq.DecomposedHistogram(30, 1.0), numbers(30)
    yield rangeq.HaarHRR(30, 1.0), numbers(30)
    yield rangeq.CircularHistogram(30, 1.0), numbers(30)
    yield rangeq.ShiftedHistogram(30, 1.0), numbers(30)
    yield rangeq.Composite(8, 2.0, named.krr(4, alpha=Fraction(1, 3)), (2,), ("HRR",)), numbers(8)
    yield rangeq.PaddedSets(rangeq.HaarHRR(31, 1.0), 2), records() + 20
    yield rangeq.Paired(frequency.OUE(60, 1.0)), np.stack([numbers(2), numbers(30)], axis=1)
    yield (
        rangeq.PerAttribute.of(marginals.Domain({"age": 12, "sex": 2}), 1.0, "sex"),
        np.stack([numbers(12), numbers(2)], axis=1),
    )
    yield rangeq.SquareWave(30, 1.0), numbers(30)
    yield SURVEYS[0], numbers(30)
    few = frequency.Numeric("few", range(5), whole=True)
    yield frequency.Survey(frequency.GRR(4, 1.0), frequency.Schema([few])), numbers(4)
    yield rangeq.shaped(30, 1.0, 200), numbers(30)
    for kind in ("TDG", "HDG", "HIO", "LHIO", "RangeCALM", "MSW", "Uniform", "WaveGrid"):
        yield getattr(grids, kind)(RECORDS, 1.0, 200), records()
    yield grids.WaveGrid(RECORDS, 1.0, categorical=["c"], pairs=[("a", "c"), ("b", "c")]), records()
    for kind in ("HaarHRR2D", "HierarchicalHistogram2D"):
        yield (
            getattr(grids, kind)({"x": 4, "y": 8}, 1.0, 200),
            np.stack([numbers(4), numbers(8)], axis=1),
        )
    yield (
        grids.HDG([1 << 20] * 6, 1.0, 200, line_share=Fraction(1, 4)),
        np.zeros((9, 6), dtype=int),
    )
    yield frequency.AffineSelection(100, 1.0), numbers(100)


def collecting(protocol: Any) -> Any:
    """The protocol itself, or the one of which public coins draw the reports."""
    return protocol.inner if isinstance(protocol, heavy.GenProt) else protocol


COLLECTED = list(collected())
WITH_VALUES = pytest.mark.parametrize(
    ("protocol", "values"),
    [
        pytest.param(protocol, values, id=f"{k}-{type(protocol).__name__}")
        for k, (protocol, values) in enumerate(COLLECTED)
    ],
)

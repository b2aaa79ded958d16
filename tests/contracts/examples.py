"""One of every public protocol that can be written to a file, and the curator's mechanisms."""

from fractions import Fraction

import frequency
import rangeq
from frequency import heavy, marginals
from mechdesign import Privacy, named
from rangeq import central, grids

DOMAIN = marginals.Domain({"age": 3, "sex": 2})
KRR = named.krr(4, Privacy.from_epsilon(0.5, neighbours="all").alpha)

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
    heavy.SuccinctHistogram(8, 0.5, n=500, seed=1),
    heavy.OneBit(frequency.GRR(5, 0.5), seed=7),
    heavy.OneBit(heavy.TreeHist(8, 0.5)),
    heavy.OneBit(heavy.UniqueHeavyHitter(8, 0.5), seed=1),
]
RANGES = [
    rangeq.CircularHistogram(12, 0.5),
    rangeq.Composite(8, 0.5, KRR, (2,), ("OUE",), (Fraction(1, 3), Fraction(2, 3))),
    rangeq.DecomposedHistogram(10, 0.5, 3, "HRR"),
    rangeq.Flat(5, 0.5),
    rangeq.HaarHRR(8, 0.5, ("1/2", "1/4", "1/4")),
    rangeq.HierarchicalHistogram(8, 0.5, (2, 4), ("OUE", "GRR"), ("1/3", "2/3")),
    rangeq.shaped(16, 0.5, 1000),
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
]
CENTRAL = [central.CentralFlat(5, 0.5), central.Hierarchy(9, 0.5, 3), central.Wavelet(8, 0.5)]

PROTOCOLS = [*ORACLES, *MARGINALS, *HEAVY, *RANGES, *GRIDS]
PACKAGES = (frequency, marginals, heavy, rangeq, grids)

"""Protocols with odd parameters, by family: what clients in other languages are compared on.

Beside those of every kind (`tests.contracts.examples`) there are domains of 1 and 2 and beyond
powers of two, the least and very large epsilon, fields of every kind, tables with zeros and ties,
lanes of many bits, and items of 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import frequency
import rangeq
from frequency import Boolean, Categorical, Dates, Numeric, Schema, Survey, Text, heavy, marginals
from frequency.core.protocol import channel_of
from frequency.longitudinal import Memoised
from mechdesign import Mechanism, Privacy, named
from rangeq import grids
from rangeq.grids.channel import LevelSketch
from tests.contracts.examples import COLLECTED, PROTOCOLS

LEAST = Fraction(1, 1 << 31)
HUGE = 60.0
LONG, TEXT = heavy.PrefixExtension(64, 2.0, lengths=(20, 35, 50, 64)), heavy.TreeHist(16, 1.0, True)
DOMAIN = marginals.Domain({"a": 3, "b": 1, "c": 5, "d": 2})
WIDE = (1 << 64) - 1


class Kept(NamedTuple):
    """A question that is asked every day, how often values may change, and values of some days."""

    question: Memoised
    changes: int
    values: Sequence[Any]


class Case(NamedTuple):
    """A protocol, values of users, and values that are refused; None: as of its kind."""

    protocol: Any
    values: Sequence[Any] | None = None
    refused: Sequence[Any] | None = None


def mechanism(*rows: Sequence[Any]) -> Mechanism:
    """The table with these rows, at most twice as likely for one input as for another."""
    return Mechanism(
        [list(map(Fraction, row)) for row in rows], Privacy(alpha="1/2", neighbours="all")
    )


RARE = Fraction(1, 3 << 66)
"""Several thresholds with this difference begin with the same word."""
RARER = Fraction(1, 5 << 130)

RANDOMISED_RESPONSE = [
    *(frequency.GRR(domain, 0.5) for domain in (1, 2, 3, 256, 257, 65537)),
    frequency.GRR(1 << 32, 20.0),
    frequency.GRR(3, LEAST),
    frequency.GRR(3, HUGE),
    frequency.RR(2, LEAST),
]
UNARY = [
    *(frequency.OUE(domain, 1.0) for domain in (1, 2, 8, 64, 65, 200)),
    *(frequency.SUE(domain, 0.5) for domain in (1, 3, 130)),
    frequency.OUE(3, Fraction(1, 1 << 20)),
    frequency.SUE(9, 30.0),
]
SUBSETS = [frequency.SubsetSelection(domain, 0.7) for domain in (1, 2, 3, 17, 64, 100)] + [
    frequency.SubsetSelection(9, Fraction(1, 1 << 20)),
    frequency.SubsetSelection(30, 3.0),
]
HADAMARD = [
    *(frequency.HRR(domain, 0.5) for domain in (1, 2, 3, 8, 1 << 20)),
    frequency.HRR(4, 1.0, coefficients=2),
    frequency.HRR(8, 5.0, coefficients=3),
    frequency.HRR(1000, 9.0, coefficients=7),
    frequency.HRR(5, LEAST),
    frequency.HRR(5, HUGE),
]
HASHING = [
    *(frequency.OLH(*of) for of in ((1, 1.0), (2, 0.2), (5, 0.4), (5, 0.9), (5, 1.3), (5, 1.9))),
    *(frequency.OLH(*of) for of in ((5, 2.1), (5, 2.6), (5, 3.2), (5, 3.9), (5, 4.8), (5, 5.5))),
    *(frequency.OLH(*of) for of in ((100000, 5.5), (1000, 3.0), (5, Fraction(1, 1 << 20)))),
]
GEOMETRY = [
    *(frequency.ProjectiveGeometry(*of) for of in ((1, 1.0), (2, 1.0), (5, 0.2), (17, 0.5))),
    *(frequency.ProjectiveGeometry(*of) for of in ((5, 0.5), (17, 1.7), (60, 1.6), (60, 2.2))),
    *(frequency.ProjectiveGeometry(*of) for of in ((17, 1.8), (100, 3.2), (100, 3.3), (100, 3.5))),
    *(frequency.ProjectiveGeometry(*of) for of in ((600, 3.9), (600, 4.8), (600, 5.3))),
]
AFFINE = [
    *(frequency.AffineSelection(*of) for of in ((1, 1.0), (2, 1.0), (5, 0.2), (24, 0.35))),
    *(frequency.AffineSelection(*of) for of in ((64, 1.5), (100, 1.0), (256, 1.0), (300, 2.1))),
    *(frequency.AffineSelection(*of) for of in ((1000, 5.0), (65536, 6.0), (65536, 9.0))),
]
TABLES = [
    frequency.Tabular(named.krr(1, alpha=Fraction(1, 2))),
    frequency.Tabular(named.krr(3, alpha=Fraction(1, 3))),
    frequency.Tabular(
        named.krr(5, alpha=Fraction(1, 4))
    ),  # eighths: thresholds end with the first word
    frequency.Tabular(mechanism(["1/2", "1/3"], [0, 0], ["1/2", "2/3"])),
    frequency.Tabular(mechanism([0, 0], ["1/4", "1/2"], [0, 0], ["3/4", "1/2"], [0, 0])),
    frequency.Tabular(
        mechanism(*[[RARE, RARE * (1 + k % 2)] for k in range(4)], [1 - 4 * RARE, 1 - 6 * RARE])
    ),
    frequency.Tabular(  # the second word ties as well
        mechanism(["1/3", "1/2"], [RARER] * 2, [Fraction(2, 3) - RARER, Fraction(1, 2) - RARER])
    ),
]
SKETCHES = [
    frequency.CountMeanSketch(1, 1.0, hashes=1, width=2),
    frequency.CountMeanSketch(1 << 64, 2.0, hashes=3, width=128, seed=9),
    frequency.HadamardCountMeanSketch(1 << 64, 0.5, hashes=5, width=64, seed=1),
    frequency.HadamardCountMeanSketch(3, 0.5, hashes=1, width=2),
    frequency.JLOracle(1, 1.0, rows=1),
    frequency.JLOracle(1 << 32, 1.0, rows=37, seed=5),
]
MARGINALS = [
    *(
        kind(DOMAIN, 2, 0.7)
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
    marginals.InpHTCMS(DOMAIN, 2, 0.7, 3, 8),
    marginals.InpEM(marginals.Domain({"a": 1}), 1, 1.0),
    marginals.InpHT(marginals.Domain({"one": 2}), 1, 1.0),
]
HEAVY = [
    LONG,
    heavy.PrefixExtension(1, 1.0),
    heavy.PrefixExtension(64, 3.0, text=True),
    heavy.PrefixExtension(80, 4.0, text=True),
    heavy.PrefixExtension(128, 5.5, text=True, seed=3),
    heavy.TreeHist(64, 1.0),
    TEXT,
    heavy.UniqueHeavyHitter(64, 0.5),
    heavy.UniqueHeavyHitter(1, 0.5),
    heavy.UniqueHeavyHitter(32, 0.5, text=True),
    heavy.SuccinctHistogram(64, 4.0, n=500, hashes=2, channels=4, rows=64),
    heavy.SuccinctHistogram(16, 4.0, text=True, hashes=1, channels=2, rows=5),
]
ONE_BIT = [
    heavy.OneBit(inner, seed=k)
    for k, inner in enumerate(
        (
            *(frequency.GRR(domain, 0.5) for domain in (1, 2, 300)),
            frequency.HRR(20, 1.0),
            frequency.HRR(20, 1.0, coefficients=3),
            frequency.OLH(50, 1.2),
            frequency.OLH(50, 2.1),
            frequency.OUE(70, 1.0),
            frequency.SUE(3, 1.0),
            frequency.SubsetSelection(9, 1.0),
            frequency.SubsetSelection(70, 2.0),
            frequency.ProjectiveGeometry(17, 0.5),
            frequency.ProjectiveGeometry(60, 1.6),
            frequency.ProjectiveGeometry(600, 5.3),
            *TABLES[1:5],
            frequency.JLOracle(100, 1.0, rows=9, seed=2),
            frequency.CountMeanSketch(100, 1.0, hashes=4, width=8, seed=2),
            frequency.HadamardCountMeanSketch(1 << 40, 1.0, hashes=4, width=8),
            *MARGINALS[:9],
            LONG,
            TEXT,
            heavy.UniqueHeavyHitter(64, 0.5),
            heavy.SuccinctHistogram(64, 4.0, n=500, hashes=2, channels=4, rows=64),
            rangeq.HaarHRR(30, 1.0),
            rangeq.HierarchicalHistogram(30, 1.0, branching=(5, 6), oracle=("OUE", "HRR")),
            rangeq.DecomposedHistogram(30, 1.0),
            rangeq.CircularHistogram(30, 1.0),
            rangeq.Composite(8, 2.0, named.krr(4, alpha=Fraction(1, 3)), (2,), ("HRR",)),
            rangeq.PaddedSets(rangeq.HaarHRR(9, 0.5), 3, (1, 4)),
            rangeq.Paired(frequency.OUE(60, 1.0)),
            rangeq.SquareWave(30, 1.0),
            rangeq.SquareWave(1, 1.0),
            grids.MSW({"x": 5, "y": 1, "z": 9}, 1.5, 10_000),
            rangeq.shaped(30, 1.0, 200),
            rangeq.PerAttribute.of(marginals.Domain({"age": 12, "sex": 2}), 1.0, "sex"),
            *(
                kind({"a": 5, "b": 6, "c": 2}, 1.0, 200)
                for kind in (grids.HDG, grids.HIO, grids.LHIO, grids.MSW, grids.WaveGrid)
            ),
            grids.WaveGrid({"a": 5, "b": 6, "c": 2}, 1.0, categorical=["b"]),
            frequency.AffineSelection(24, 0.35),
            frequency.AffineSelection(64, 1.5),
            frequency.AffineSelection(256, 1.0),
        )
    )
]
FEW_BITS = [
    heavy.FewBits(inner, bits=bits, seed=bits)
    for inner, bits in (
        (frequency.GRR(5, 2.0), 2),
        (frequency.GRR(300, 3.0), 5),
        (frequency.HRR(20, 1.0, coefficients=3), 4),
        (frequency.OLH(50, 1.2), 3),
        (frequency.OLH(50, 2.1), 3),
        (frequency.OUE(20, 2.0), 2),
        (frequency.SubsetSelection(70, 2.0), 3),
        (frequency.SubsetSelection(9, 1.0), 5),
        (frequency.ProjectiveGeometry(60, 1.6), 3),
        (TABLES[1], 2),
        (heavy.UniqueHeavyHitter(64, 0.5), 2),
        (LONG, 3),
        (rangeq.SquareWave(30, 2.0), 3),
        (rangeq.HaarHRR(30, 2.0), 2),
        (rangeq.PaddedSets(rangeq.HaarHRR(31, 1.0), 2), 3),
        (rangeq.shaped(16, 1.0, 1000), 2),
        (marginals.InpEM(DOMAIN, 2, 1.0), 2),
        (grids.WaveGrid({"a": 8, "b": 8}, 2.0, 1000), 9),
        (grids.HDG({"a": 8, "b": 8}, 2.0, 1000), 3),
        (rangeq.HierarchicalHistogram(30, 2.0, branching=(5, 6), oracle=("GRR", "HRR")), 4),
        (rangeq.HierarchicalHistogram(30, 2.0, branching=(3, 10), oracle=("HRR", "GRR")), 3),
        (grids.MSW({"x": 5, "y": 1, "z": 9}, 1.5, 10_000), 3),
    )
]
RANGES = [
    rangeq.Flat(1, 1.0),
    rangeq.Flat(70, 1.0, oracle="OLH"),
    rangeq.HierarchicalHistogram(1000, 1.0, branching=(10, 10, 10), oracle=("GRR", "OLH", "HRR")),
    rangeq.HierarchicalHistogram(8, 0.5, (2, 4), ("OUE", "GRR"), (0, 1)),
    rangeq.HaarHRR(9, 0.5, ("1/2", 0, "1/4", "1/4")),
    rangeq.HaarHRR(2, 0.5),
    rangeq.DecomposedHistogram(1 << 20, 1.0, 8, "HRR"),
    rangeq.CircularHistogram(7, 0.5),
    rangeq.ShiftedHistogram(7, 0.5, (4, 3, 1)),
    rangeq.ShiftedHistogram(1, 0.5),
    rangeq.SquareWave(1, 1.0),
    rangeq.SquareWave(2, 1.0),
    rangeq.SquareWave(1 << 20, 1.0),
    rangeq.SquareWave(9, LEAST),
    rangeq.SquareWave(9, 40.0),
    rangeq.Paired(rangeq.PaddedSets(rangeq.HaarHRR(9, 0.5), 3)),
    rangeq.shaped(100, 2.0, 100_000),
]
GRIDS = [
    LevelSketch(12, 1.0, marginals.Domain.of({"a": 4, "b": 3}), ((4, 2, 1), (3, 1)), 8),
    *(
        kind({"x": 5, "y": 1, "z": 9}, 1.5, 10_000)
        for kind in (
            grids.RangeCALM,
            grids.HDG,
            grids.HIO,
            grids.LHIO,
            grids.MSW,
            grids.TDG,
            grids.Uniform,
        )
    ),
    grids.WaveGrid({"x": 5, "y": 7, "z": 9}, 1.5, 10_000),
    grids.WaveGrid({"x": 100, "y": 1000}, 4.0, 1_000_000),
    grids.WaveGrid({"x": 5, "y": 7, "z": 3}, 0.5, categorical=["y", "z"]),
    grids.WaveGrid(
        {"x": 100, "y": 40, "z": 3}, 4.0, categorical=["y", "z"], pairs=[("x", "y"), ("y", "z")]
    ),
    grids.HaarHRR2D({"x": 16, "y": 2}, 1.0, 200),
]

UNEQUAL = {"a": 10, "b": 7, "c": 23}
ON_EDGES = [[5, 3, 8], [4, 3, 7], [8, 6, 20], [0, 0, 0], {"a": 9, "b": 6, "c": 22}]
CUT = [  # cells of unequal widths, with values where they begin and end
    Case(grids.HDG(UNEQUAL, 2.0, 1_000_000), ON_EDGES),
    Case(grids.TDG(UNEQUAL, 2.0, 1_000_000), ON_EDGES),
    Case(heavy.OneBit(grids.TDG(UNEQUAL, 2.0, 1_000_000)), ON_EDGES),
    Case(heavy.FewBits(grids.HDG(UNEQUAL, 2.0, 1_000_000), bits=4), ON_EDGES),
]

AGE = Numeric("age", low=0, high=31, whole=True, unit="years", outside="clip")
SEX = Categorical("sex", ["female", "male", "d\u00e9clin\u00e9 \U0001f600"], missing="item")
DELAY = Numeric("delay", [-60, 0, 15.5, 60, 600], missing="item", outside="item")
MASS = Numeric("mass", low=0.1, high=0.7, bins=6, outside="clip")
SKIPPED = Categorical("home", ["yes", "no"], missing="skip")
FLOWN = Dates("flown", "2013-01-29", "2013-02-03", "day", missing="item")
MONTHS = Dates("month", "2012-01-01", "2013-12-31", "month", outside="clip")
WORD = Text("word", 4)
SURVEYS = [
    Case(
        Survey(rangeq.HaarHRR(32, 1.0), Schema([AGE])),
        [0, 31, 17, -5, 99, {"age": 3}],
        [None, "old", 0.5, {}, {"sex": 3}],
    ),
    Case(
        Survey(frequency.GRR(SEX.size, 1.0), Schema([SEX])),
        ["female", "d\u00e9clin\u00e9 \U0001f600", None, {"sex": "male"}],
        ["Female", "none", {}, {"sex": "other"}],
    ),
    Case(
        Survey(frequency.GRR(DELAY.size, 1.0), Schema([DELAY])),
        [-60, -60.5, 0, 15.5, 15.49, 600, 600.5, None],
        ["late", {"delay": "late"}],
    ),
    Case(
        Survey(rangeq.SquareWave(6, 1.0), Schema([MASS])),
        [0.1, 0.2, 0.30000000000000004, 0.3, 0.7, 0.65, 9],
        [None, "much"],
    ),
    Case(
        Survey(frequency.HRR(FLOWN.size, 1.0), Schema([FLOWN])),
        ["2013-01-29", "2013-01-31 23:59", "2013-02-03", None],
        ["2013-01-28", "2013-02-04", "yesterday", "2013-02-30"],
    ),
    Case(
        Survey(frequency.GRR(24, 1.0), Schema([MONTHS])),
        ["2012-01-01", "2012-02-29", "2031-01-01"],
        [None, "2013-02-29"],
    ),
    Case(
        Survey(frequency.GRR(2, 1.0), Schema([Boolean("smokes")])), [True, False], [None, "perhaps"]
    ),
    Case(Survey(frequency.GRR(2, 1.0), Schema([SKIPPED])), ["yes", "no", None], ["perhaps", {}]),
    Case(
        Survey(heavy.PrefixExtension(32, 1.0, True), Schema([WORD])),
        ["", "way", "\u00e9\u00e9"],
        ["\u00e9a\u00e9", "a\0", None],
    ),
    Case(
        Survey(marginals.MargPS(Schema([AGE, SEX]).domain, 2, 1.0), Schema([AGE, SEX])),
        [{"age": 3, "sex": "male"}, {"age": 31, "sex": None}],
        [{"age": 3}, {"age": 3, "sex": "x"}],
    ),
    Case(
        Survey(grids.HDG(Schema([AGE, SEX]).domain, 1.0, 1000), Schema([AGE, SEX])),
        [{"age": 0, "sex": "female"}, {"age": 40, "sex": None}],
        [{"age": None, "sex": None}],
    ),
    Case(Survey(heavy.OneBit(frequency.HRR(32, "1/4")), Schema([AGE])), [0, 31], [None]),
]


ODD = [
    *RANDOMISED_RESPONSE,
    *UNARY,
    *SUBSETS,
    *HADAMARD,
    *HASHING,
    *GEOMETRY,
    *AFFINE,
    *TABLES,
    *SKETCHES,
    *MARGINALS,
    *HEAVY,
    *ONE_BIT,
    *FEW_BITS,
    *RANGES,
    *GRIDS,
]


KEPT = [
    *(
        Kept(Memoised(protocol, total=total), 1, values)
        for protocol, total, values in (
            (frequency.GRR(5, 1), 2, [3, 0, 3, 4, 0]),
            (frequency.GRR(1, 1), 1, [0, 0]),
            (frequency.GRR(300, "1/2"), 2, [299, 0, 1]),
            (frequency.OUE(9, 1), "3/2", [8, 0, 8, 3]),
            (frequency.SUE(70, 1), 4, [69, 64, 0]),
            (frequency.SubsetSelection(17, "7/10"), 2, [16, 8, 16, 7]),
            (frequency.SubsetSelection(3, "1/20"), 8, [2, 0, 2, 1]),
            (frequency.ProjectiveGeometry(17, "1/2"), 1, [16, 0, 16]),
            (frequency.ProjectiveGeometry(60, "8/5"), 3, [59, 0, 59]),
            (frequency.AffineSelection(64, "3/2"), 2, [63, 0, 63]),
            (frequency.AffineSelection(256, 1), 2, [255, 0, 255]),
            (frequency.OLH(50, "6/5"), 2, [49, 0, 49]),
            (frequency.OLH(50, "21/10"), 3, [49, 0, 49]),
            (frequency.HRR(8, 1), 2, [7, 1, 7, 2, 1]),
            (frequency.HRR(1000, 3, coefficients=3), 4, [999, 0, 999]),
            (frequency.CountMeanSketch(1 << 64, 2, hashes=3, width=16, seed=9), 4, [WIDE, 0, WIDE]),
            (
                frequency.HadamardCountMeanSketch(1 << 64, "1/2", hashes=5, width=64, seed=1),
                2,
                [WIDE, 1 << 53, (1 << 53) - 1],
            ),
            (frequency.JLOracle(100, 1, rows=9, seed=2), 2, [99, 0, 99]),
            (TABLES[3], 1, [0, 1, 0]),
            (TABLES[4], 1, [1, 0, 1]),
            (rangeq.SquareWave(30, 1), 2, [29, 0, 29]),
            (rangeq.HaarHRR(9, "1/2"), 2, [8, 0, 8]),
            (rangeq.CircularHistogram(7, "1/2"), 2, [6, 0, 6]),
            (
                rangeq.HierarchicalHistogram(30, 1, branching=(5, 6), oracle=("OUE", "HRR")),
                2,
                [29, 0, 29],
            ),
            (marginals.InpEM(DOMAIN, 2, "7/10"), 2, [[2, 0, 4, 1], [0, 0, 0, 0], [2, 0, 4, 1]]),
            (marginals.InpHT(DOMAIN, 2, "7/10"), 2, [[2, 0, 4, 1], [0, 0, 0, 0], [1, 0, 1, 1]]),
            (grids.HDG({"a": 8, "b": 8}, 1, 1000), 2, [[7, 7], [0, 0], [7, 7]]),
            (grids.WaveGrid({"a": 8, "b": 8}, 2, 1000), 4, [[7, 7], [0, 3], [7, 7]]),
            (heavy.PrefixExtension(64, 2), 4, [WIDE, 0, WIDE]),
            (heavy.PrefixExtension(80, 4, text=True), 5, ["caf\u00e9", "", "caf\u00e9"]),
            (heavy.UniqueHeavyHitter(8, 1), 2, [255, 0, 255]),
            (
                heavy.SuccinctHistogram(16, 4, text=True, hashes=2, channels=2, rows=5),
                5,
                ["ab", "", "ab"],
            ),
        )
    ),
    Kept(Memoised(frequency.GRR(4, 1), total=2), 0, [3, 1, 3, 0]),
    Kept(Memoised(frequency.HRR(1 << 20, 1), total=3), 4, [1 << 19, 0, 5, 0, 6, 7, 8]),
]
"""Of every step that is not about what users draw."""


def family_of(protocol: Any) -> str:
    """The file that holds a protocol's vectors: of most oracles, by its module."""
    package, *folder, module = type(protocol).__module__.split(".")
    own: dict[type, str] = {
        Survey: "surveys",
        heavy.OneBit: "one_bit",
        heavy.FewBits: "few_bits",
        frequency.JLOracle: "johnson_lindenstrauss",
        frequency.Tabular: "tabular_response",
    }
    if type(protocol) in own:
        return own[type(protocol)]
    if package == "rangeq":
        return "grids" if folder[0] == "grids" else "ranges"
    return module if folder[0] == "oracles" else folder[0]


def families() -> dict[str, list[Case]]:
    """All cases by the name of the file that holds their vectors."""
    result: dict[str, list[Case]] = {}
    every = [*PROTOCOLS, *(protocol for protocol, _ in COLLECTED), *ODD]
    cases = [Case(one) for one in every if not isinstance(one, Survey)] + CUT + SURVEYS
    known = set()
    for case in cases:
        mark = type(case.protocol), channel_of(case.protocol).signature
        if mark not in known:
            result.setdefault(family_of(case.protocol), []).append(case)
        known.add(mark)
    return result

"""Range queries, 4.2 to 4.4: ranges as sums of nodes."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np

from rangeq import DecomposedHistogram, Tree
from rangeq.core.levels import runs
from reproduction.ranges.variances import (
    SMALL,
    every_range,
    positions,
    predicted,
    printed_variance,
    unshifted,
)
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, judged, table


@claim(
    "Fact 1, Lemma 4.2 (8)",
    "average error of flat methods",
    "average over all C(D, 2) ranges. Paper: (D + 2) V_F / 3; thesis: (D^2 + 5) V_F / (3 (D -"
    " 1)), so O(D V_F)",
    tolerance="exact",
    kind=Kind.CONSTANT,
)
def flat_average(_: Settings) -> Outcome:
    rows, paper, thesis, corrected = [], True, True, True
    for d in (2, 8, 64, 1024):
        total = sum(r * (d - r + 1) for r in range(1, d + 1))
        true = Fraction(total, d * (d - 1) // 2)
        paper &= true == Fraction(d + 2, 3)
        thesis &= true == Fraction(d * d + 5, 3 * (d - 1))
        corrected &= true == Fraction((d + 1) * (d + 2), 3 * (d - 1)) and Fraction(
            total, d * (d + 1) // 2
        ) == Fraction(d + 2, 3)
        rows.append(
            [
                d,
                *(
                    f"{float(x):.3f}"
                    for x in (Fraction(d + 2, 3), Fraction(d * d + 5, 3 * (d - 1)), true)
                ),
            ]
        )
    return Outcome(
        "(D + 1)(D + 2) V_F / (3 (D - 1))",
        errs(paper or thesis, corrected),
        "Sums over lengths r = 1 .. D, as in both proofs. (D + 2) / 3 is the average over the D (D"
        " + 1) / 2 ranges of all lengths. The orders are right.",
        table(["D", "paper", "thesis", "exact"], rows),
    )


@cache
def nodes_of_ranges(domain: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """How many nodes make up each range, of which length."""
    first, last = every_range(domain)
    tree, total = Tree.of(domain, b), np.zeros(len(first), dtype=int)
    for level in range(tree.height):
        left, end, start, right = runs(tree, first, last, level)
        total += end - left + right - start
    return total, last - first + 1


TREES = ((256, 2), (256, 4), (81, 3), (256, 16))


def logarithm(length: np.ndarray, b: int) -> np.ndarray:
    return np.log(length) / math.log(b)


def rounded_up(length: np.ndarray, b: int) -> np.ndarray:
    return np.ceil(logarithm(length, b) - 1e-9)


@claim(
    "Facts 2, 3",
    "number of nodes of a range",
    "a range of length r is at most (B-1)(2 log_B r + 1) nodes (paper), (B-1)(2 ceil(log_B r) -"
    " 1) (thesis); [2, 22] is six",
    by="rangeq.Tree",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
)
def fact_3(_: Settings) -> Outcome:
    rows, paper, thesis, worst_paper, worst_thesis = [], True, True, True, True
    for d, b in TREES:
        used, length = nodes_of_ranges(d, b)
        by_paper = (b - 1) * (2 * logarithm(length, b) + 1)
        by_thesis = (b - 1) * (2 * rounded_up(length, b) - 1)
        h = round(math.log(d, b))
        paper &= bool((used <= by_paper + 1e-9).all())
        thesis &= bool((used <= by_thesis).all())
        worst_paper &= used.max() <= 2 * (b - 1) * (h + 0.5) - 1
        worst_thesis &= used.max() <= 2 * (b - 1) * (h - 1)
        over = [int((used > bound + 1e-9).sum()) for bound in (by_paper, by_thesis)]
        rows.append([d, b, used.max(), *over, 2 * (b - 1) * (h + 0.5) - 1, 2 * (b - 1) * (h - 1)])
    first, last = np.array([2]), np.array([22])
    six = sum(
        int((e - a + z - s)[0])
        for a, e, s, z in (runs(Tree.of(32, 2), first, last, level) for level in range(5))
    )
    return judged(
        f"[2, 22]: {six}; the paper's bounds hold for {'all' if paper else 'not all'} ranges, the"
        " thesis's fail, for single items first",
        {
            "paper, Fact 3: (B-1)(2 log_B r + 1)": paper,
            "paper, worst case: 2 (B-1)(log_B D + 1/2) - 1": worst_paper,
            "thesis, Fact 3: (B-1)(2 ceil(log_B r) - 1)": thesis,
            "thesis, worst case: 2 (B-1)(log_B D - 1)": worst_thesis,
            "[2, 22] of D = 32, B = 2 is six intervals": six == 6,
        },
        {
            "the paper's worst case holds": worst_paper,
            "a range is at most 2 (B-1) (ceil(log_B r) + 1) nodes": bounded_nodes(),
        },
        "Counted for all ranges. A single item is one node and ceil(log 1) = 0.",
        table(
            [
                "D",
                "B",
                "most nodes",
                "ranges above the paper's",
                "above the thesis's",
                "worst case, paper",
                "thesis",
            ],
            rows,
        ),
    )


def bounded_nodes() -> bool:
    found = [(*nodes_of_ranges(d, b), b) for d, b in TREES]
    return all(
        bool((used <= 2 * (b - 1) * (rounded_up(length, b) + 1)).all()) for used, length, b in found
    )


@claim(
    "Theorem 4.3 (6), (1) (5.1)",
    "worst case variance of HH_B",
    "V_r <= (2B-1) V_F h (ceil(log_B r) + 1) (paper, Theorem 4.3); 2(B-1) V_F h ceil(log_B r)"
    " (thesis, Theorem 6)",
    by="rangeq.Tree",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
    same_as="Facts 2, 3",
)
def theorem_4_3(_: Settings) -> Outcome:
    """The bounds as numbers of nodes.

    Each node has the variance h V_F when levels are drawn evenly.
    """
    rows, paper, thesis, prefixes = [], True, True, True
    for d, b in TREES:
        used, length = nodes_of_ranges(d, b)
        levels = rounded_up(length, b)
        over = [used > (2 * b - 1) * (levels + 1), used > 2 * (b - 1) * levels]
        paper &= not over[0].any()
        thesis &= not over[1].any()
        prefix = every_range(d)[0] == 0
        prefixes &= bool((used[prefix] <= (b - 1) * (levels[prefix] + 1)).all())
        rows.append([d, b, *(f"{share.mean():.1%}" for share in over)])
    return judged(
        "the paper's bound holds, the thesis's is 0 for single items",
        {
            "paper, Theorem 4.3 and (1)": paper,
            "thesis, Theorem 6 and (5.1)": thesis,
            "prefixes: B - 1 nodes a level": prefixes,
        },
        {
            "with ceil(log_B r) + 1 levels the thesis's bound holds as well": bounded_nodes(),
            "the paper's holds": paper,
        },
        "Counted for all ranges.",
        table(["D", "B", "ranges above the paper's bound", "above the thesis's"], rows),
    )


@claim(
    "Lemma 4.4 (9)",
    "probabilities of levels",
    "sum of 1 / p_l is least for p_l = 1/h",
    tolerance="exact",
    seed="1",
)
def even_levels(_: Settings) -> Outcome:
    rng = np.random.default_rng(1)
    least = min(float((1 / p).sum()) for p in rng.dirichlet(np.ones(8), size=20_000))
    return Outcome(
        f"h = 8: 64, and at least {least:.2f} in 20,000 random others",
        agrees(least >= 64),
        "Of the bound. For the average over all ranges other probabilities are better:"
        " `rangeq.optimise`.",
    )


@claim(
    "Section 4.4",
    "hierarchies against flat",
    "hierarchies win for r > 2 B log_B^2 D: 128 at D = 64, B = 2; 1024 at D = 2^16, about 1.5 %"
    " of it",
    by="rangeq.DecomposedHistogram",
    tolerance="the printed digits",
    kind=Kind.CONSTANT,
)
def against_flat(_: Settings) -> Outcome:
    """2 B log_B^2 D as printed, and where the exact averages cross."""
    small, large = (2 * 2 * math.log2(d) ** 2 for d in (64, 1 << 16))
    d = 1 << 16
    tree, flat = DecomposedHistogram(d, 1.1, 2, "OUE"), unshifted(d, 1.1)
    crossing = next(
        r
        for r in range(1, 4096)
        if predicted(tree, *positions(d, r)).mean() < predicted(flat, *positions(d, r)).mean()
    )
    return Outcome(
        f"{small:.0f} and {large:.0f} ({large / d:.2%}); exact variances cross at r = {crossing} at"
        " 2^16",
        errs(small == 128 and large == 1024, small == 144 and large == 1024 and crossing < 1024),
        "4 log2(64)^2 = 144; the conclusion, more than D, is the same. Exact crossing: averages"
        " over positions, OUE, epsilon = 1.1.",
    )


@claim(
    "Theorem 4.5 (7)",
    "average error of HH_B",
    "the worst case average error is about 2(B-1) V_F log_B D log_B(3D^2 / (1 + 2D))",
    by="rangeq.DecomposedHistogram.average_rmse",
    tolerance="exact",
)
def theorem_4_5(_: Settings) -> Outcome:
    rows, holds = [], True
    apart: dict[tuple[int, int], float] = {}
    for bits, b in ((8, 2), (8, 4), (8, 16), (16, 2), (16, 4), (16, 16)):
        d = 1 << bits
        levels = math.log(d, b)
        printed = 2 * (b - 1) * levels * math.log(3 * d * d / (1 + 2 * d), b)
        r = np.arange(1, d + 1, dtype=float)
        bound = (
            2
            * (b - 1)
            * levels
            * float((np.log(r) / math.log(b) * (d - r + 1)).sum())
            / (d * (d - 1) / 2)
        )
        one = DecomposedHistogram(d, SMALL, b, "OUE")
        exact = one.average_rmse(1) ** 2 / printed_variance(SMALL)
        holds &= exact <= bound <= printed
        apart[b, bits] = printed / exact
        rows.append([f"2^{bits}", b, f"{printed:.1f}", f"{bound:.1f}", f"{exact:.1f}"])
    return Outcome(
        f"a bound, {apart[2, 16]:.1f} times the exact average for B = 2 at"
        f" 2^16, {apart[16, 16]:.1f} times for B = 16",
        agrees(holds),
        "In units of V_F; the sum is the proof's second line. All ranges a < b, without"
        " consistency.",
        table(["D", "B", "printed", "its sum over lengths", "exact average"], rows),
    )


CLAIMS = (
    flat_average,
    fact_3,
    theorem_4_3,
    even_levels,
    against_flat,
    theorem_4_5,
)

"""Yang et al., 4.6 and table 2: granularities."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.optimize import minimize_scalar

from examples.grid_figures import truth
from rangeq.grids import HDG, granularities
from rangeq.grids.cells import ALPHA1, ALPHA2
from reproduction.grids.studies import DATA, study
from reproduction.report import Kind, Number, Outcome, Settings, agrees, claim, judged, table


@claim(
    "Section 4.6",
    "granularities that minimise the errors",
    "g1 = (n1 (e^eps - 1)^2 alpha1^2 / (2 m1 e^eps))^(1/3), g2 = sqrt(2 alpha2 (e^eps - 1)"
    " sqrt(n2 / (m2 e^eps))) minimise the errors",
    by="rangeq.grids.granularities",
    tolerance="0.1 %",
    kind=Kind.CONSTANT,
)
def guideline(_: Settings) -> Outcome:
    apart: dict[str, list[float]] = {"g1": [], "g1, twice": [], "g2": []}

    def least(cost: Callable[[float], float]) -> float:
        return float(
            minimize_scalar(cost, bounds=(0.1, 1e4), method="bounded", options={"xatol": 1e-9}).x
        )

    def error_1(noise: float, g: float) -> float:
        return 2 * g * noise + (ALPHA1 / g) ** 2

    def error_2(noise: float, g: float) -> float:
        return g * g * noise + (2 * ALPHA2 / g) ** 2

    for epsilon in (0.2, 1.0, 2.0):
        users, e = 1e6 / 21, math.exp(epsilon)
        noise = e / (users * (e - 1) ** 2)
        g1 = least(partial(error_1, noise))
        g2 = least(partial(error_2, noise))
        cube = users * (e - 1) ** 2 * ALPHA1**2 / (2 * e)
        apart["g1"].append(g1 / cube ** (1 / 3))
        apart["g1, twice"].append(g1 / (2 * cube) ** (1 / 3))
        apart["g2"].append(g2 / math.sqrt(2 * ALPHA2 * (e - 1) * math.sqrt(users / e)))
    right = {name: all(abs(ratio - 1) < 1e-3 for ratio in ratios) for name, ratios in apart.items()}
    return judged(
        f"the least sum is at {apart['g1'][0]:.3f} times the printed g1, {apart['g2'][0]:.3f} times"
        " the printed g2",
        {"g1": right["g1"], "g2": right["g2"]},
        {"without the 2, g1 is the minimum; g2 as printed": right["g1, twice"] and right["g2"]},
        "Numerical minima of the printed sums, 2 g1 m1 e^eps / (n1 (e^eps - 1)^2) + (alpha1 / g1)^2"
        " and the other; the cube root of 2 is 1.26. Table 2 follows the printed formula, and so do"
        " `TDG` and `HDG`; rounding to powers of two hides most of it.",
    )


PRINTED_TABLE = """3 6 8, 2 16, 4 32, 4 32, 4 32, 4 32, 4 32, 8 64, 8 64, 8 64, 8
4 6 8, 2 16, 2 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4 32, 8 64, 8
5 6 8, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4 32, 8
6 6 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4
7 6 8, 2 8, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4
8 6 8, 2 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4
9 6 8, 2 8, 2 16, 2 16, 2 16, 4 16, 4 16, 4 32, 4 32, 4 32, 4
10 6 4, 2 8, 2 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4
6 5.0 4, 2 4, 2 8, 2 8, 2 8, 2 16, 2 16, 2 16, 2 16, 2 16, 4
6 5.2 4, 2 8, 2 8, 2 8, 2 16, 2 16, 2 16, 2 16, 4 16, 4 16, 4
6 5.4 4, 2 8, 2 8, 2 16, 2 16, 2 16, 2 16, 4 16, 4 16, 4 32, 4
6 5.6 4, 2 8, 2 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4
6 5.8 8, 2 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4
6 6.0 8, 2 16, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4
6 6.2 8, 2 16, 2 16, 4 16, 4 32, 4 32, 4 32, 4 32, 4 32, 4 32, 8
6 6.4 8, 2 16, 2 16, 4 32, 4 32, 4 32, 4 32, 4 32, 8 64, 8 64, 8
6 6.6 16, 2 16, 4 32, 4 32, 4 32, 4 32, 4 32, 8 64, 8 64, 8 64, 8
6 6.8 16, 2 16, 4 32, 4 32, 4 32, 4 64, 8 64, 8 64, 8 64, 8 64, 8
6 7.0 16, 2 32, 4 32, 4 32, 4 64, 8 64, 8 64, 8 64, 8 64, 8 64, 8"""
"""Table 2: d, lg n, and (g1, g2) for epsilon = 0.2, 0.4 .. 2.0."""


@claim(
    "Table 2",
    "recommended granularities",
    "recommended (g1, g2) for d and n; from d = 9 to 10 they change from (16, 4) to (16, 2)",
    by="rangeq.grids.granularities",
    tolerance="exact",
)
def table_2(_: Settings) -> Outcome:
    numbers = []
    for line in PRINTED_TABLE.splitlines():
        d, lg, *printed = re.split(r" (?=\d+,)| ", line, maxsplit=2)
        cells = re.findall(r"\d+, \d+", printed[0])
        for tenths, text in zip(range(2, 21, 2), cells, strict=True):
            own = granularities(int(d), round(10 ** float(lg)), tenths / 10, 64)
            place = f"d = {d}, lg n = {lg}, epsilon = {tenths / 10}"
            numbers.append(Number(place, text, f"{own[0]}, {own[1]}"))
    same = sum(number.printed == number.computed for number in numbers)
    outlier = [granularities(d, 10**6, 1.0, 64) for d in (9, 10)]
    return judged(
        f"{same} of {len(numbers)} cells the same; d = 9, 10: {outlier[0]}, {outlier[1]}",
        {
            "all nineteen rows": same == len(numbers),
            "section 5.3: (16, 4) at d = 9, (16, 2) at 10": outlier == [(16, 4), (16, 2)],
        },
        remarks="The power of two nearest to the formula.",
        numbers=tuple(numbers),
    )


def guideline_figure(several: tuple[int, ...], settings: Settings) -> Outcome:
    """HDG of every granularity, and of the guideline's."""
    at = study(settings, 21)
    epsilons = (1.0,) if settings.quick else (0.4, 1.0, 2.0)
    rows, ratios = [], []
    for kind in at.kinds if len(several) == 1 else at.kinds[:1]:
        for d in several:
            records, asked = at.records(kind, d=d), [at.asked(2, d=d)]
            true = [truth(records, asked[0])]
            for epsilon in epsilons:
                found = {
                    (g1, g2): at.errors(
                        HDG([at.c] * d, epsilon, granularity=g2, line_granularity=g1),
                        records,
                        asked,
                        true,
                    )[0]
                    for g2 in (2, 4, 8)
                    for g1 in ((4, 16, 64) if settings.quick else (4, 8, 16, 32, 64))
                    if g1 >= g2
                }
                chosen = granularities(d, at.n, epsilon, at.c)
                own = at.errors(HDG([at.c] * d, epsilon, at.n), records, asked, true)[0]
                best = min(found, key=found.__getitem__)
                ratios.append(own / found[best])
                rows.append(
                    [
                        kind,
                        d,
                        epsilon,
                        chosen,
                        f"{own:.4f}",
                        best,
                        f"{found[best]:.4f}",
                        f"{max(found.values()):.4f}",
                    ]
                )
    return Outcome(
        f"{np.median(ratios):.2f} times the error of the best (median), at most {max(ratios):.2f}",
        agrees(float(np.median(ratios)) < 1.6 and max(ratios) < 3),
        "Two attributes. Tolerance: a median of 1.6 and at most 3 times; the best is chosen"
        " afterwards, and has luck on its side. " + DATA,
        table(
            ["data", "d", "epsilon", "guideline", "its error", "best", "its error", "worst error"],
            rows,
        ),
    )


@claim(
    "Figure 15",
    "users on 1-D grids",
    "shares of 0.2 to 0.6 of the users on 1-D grids are nearly the best; the default is 0.2857",
    by="rangeq.grids.HDG",
    tolerance="a factor 1.5",
    seed="26",
)
def figure_15(settings: Settings) -> Outcome:
    at = study(settings, 26)
    shares = [Fraction(k, 10) for k in (1, 2, 4, 6, 9)]
    rows, near = [], []
    for kind in at.kinds:
        records, asked = at.records(kind), [at.asked(2)]
        true = [truth(records, asked[0])]
        for epsilon in (1.0,) if settings.quick else (0.2, 1.0, 2.0):
            errors = [
                at.errors(HDG([at.c] * at.d, epsilon, at.n, line_share=s), records, asked, true)[0]
                for s in shares
            ]
            near.append(max(errors[1:4]) / min(errors))
            rows.append([kind, epsilon, *(f"{x:.4f}" for x in errors)])
    return judged(
        f"the worst of 0.2, 0.4, 0.6 is {np.median(near):.2f} times the best of all (median)",
        {
            "2 / (d + 1) = 0.2857": abs(2 / 7 - 0.2857) < 5e-5,
            "0.2 to 0.6 within a factor of 1.5 of the best (median)": float(np.median(near)) < 1.5,
        },
        remarks="Two attributes. " + DATA,
        detail=table(["data", "epsilon", *(f"share {float(s)}" for s in shares)], rows),
    )


figure_7 = claim(
    "Figure 7",
    "the guideline, d = 6",
    "the guideline's granularities are very close to the best",
    by="rangeq.grids.granularities",
    tolerance="a median of 1.6, at most 3",
    seed="21",
)(partial(guideline_figure, (6,)))

figure_16 = claim(
    "Figure 16",
    "the guideline, d = 4, 8, 10",
    "the guideline's granularities are very close to the best",
    by="rangeq.grids.granularities",
    tolerance="a median of 1.6, at most 3",
    seed="21",
)(partial(guideline_figure, (4, 8, 10)))


CLAIMS = (
    guideline,
    figure_7,
    figure_15,
    figure_16,
    table_2,
)

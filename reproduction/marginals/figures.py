"""Thesis 4.4: errors of marginals."""

from __future__ import annotations

import math
from itertools import combinations, pairwise

import numpy as np

from examples.marginal_figures import LN3, Population
from frequency.marginals import InpHT, InpPS, pearson
from reproduction.marginals.studies import (
    MARG,
    of_trips,
    panels,
    ratio,
    shape,
    study,
    sweep,
    typical,
    watching,
    worst_for,
)
from reproduction.report import (
    Kind,
    Outcome,
    Settings,
    claim,
    figures,
    judged,
    most,
    near,
    series,
    table,
)


@claim(
    "Figure 4.2",
    "correlations of trips",
    "pick-up and drop-off places, and times, tip and card are strongly correlated; most others"
    " negatively or weakly",
    by="frequency.marginals.pearson",
    tolerance="0.4 for strong",
    seed="4",
    kind=Kind.DATA,
)
@of_trips
def figure_4_2(settings: Settings, trips: Population) -> Outcome:
    work, names = study(settings), trips.attributes
    counts = trips.draw(1 << 18, work.rng)
    protocol = InpHT(trips.domain, 2, LN3)
    seen = pearson(protocol.estimate(protocol.simulate(counts, work.rng)))
    true = {
        (a, b): float(pearson(trips.marginal(counts, (a, b)))) for a, b in combinations(names, 2)
    }
    strong = [("Night_pick", "Night_drop"), ("M_pick", "M_drop"), ("CC", "Tip"), ("Toll", "Far")]
    rest = [value for pair, value in true.items() if pair not in strong]
    at = {name: k for k, name in enumerate(names)}
    error = max(abs(seen[at[a], at[b]] - value) for (a, b), value in true.items())
    return judged(
        ", ".join(f"{a}-{b} {true[a, b]:.2f}" for a, b in strong),
        {
            "M_pick and M_drop strongly correlated (> 0.4)": true["M_pick", "M_drop"] > 0.4,
            "CC and Tip (> 0.4)": true["CC", "Tip"] > 0.4,
            "Toll and Far (> 0.4)": true["Toll", "Far"] > 0.4,
            "Night_pick and Night_drop (> 0.4)": true["Night_pick", "Night_drop"] > 0.4,
            "all others below 0.3": max(rest) < 0.3,
            "most others negative or weak (< 0.1)": (
                sum(value < 0.1 for value in rest) > len(rest) / 2
            ),
        },
        remarks=(
            "trips of March 2019. By their definitions the two nights nearly exclude each other: a"
            " trip begun from 8 PM on seldom ends between midnight and 3 AM. Private reports"
            f" (InpHT, N = 2^18, e^ε = 3) give all correlations to {error:.2f}"
        ),
        detail="Above the diagonal the true correlation, below it that of private reports\n\n"
        + table(
            ["", *names],
            (
                [
                    a,
                    *(
                        (
                            ""
                            if a == b
                            else f"{(true[a, b] if at[a] < at[b] else seen[at[a], at[b]]):.2f}"
                        )
                        for b in names
                    ),
                ]
                for a in names
            ),
        ),
    )


@claim(
    "Figure 4.3",
    "error against N, d, k",
    "error ~ 1/√N, growing with d and k; InpHT least or nearly; InpPS large from d = 4 on,"
    " InpRR at 16; k = 1: MargPS, MargRR, MargHT, InpHT alike; MargPS better than MargRR, near"
    " MargHT",
    by="frequency.marginals.MarginalProtocol.simulate",
    tolerance="15 to 30 % for words",
    seed="4",
    kind=Kind.UNEXPLAINED,
)
def figure_4_3(settings: Settings) -> Outcome:
    powers = (16, 18) if settings.quick else (16, 18, 19)
    dims, ways = shape(settings)
    found = sweep(settings, [(1 << power, LN3) for power in powers], dims, ways)
    root = math.sqrt(2 ** (powers[-1] - powers[0]))
    falls = {
        name: np.mean([rows[name][0] / rows[name][-1] / root for rows in found.values()])
        for name in found[8, 2]
        if name != "InpPS"
    }
    large = dims[-1]
    marg_rr = [ratio(rows, "MargRR", "InpHT") for (_, k), rows in found.items() if k == 1]
    apart = [ratio(rows, "MargPS", "MargHT") for rows in found.values()]
    return judged(
        f"d = {large}, k = 2: "
        + ", ".join(
            f"{name} {values[powers.index(18)]:.4f}" for name, values in found[large, 2].items()
        )
        + f"; MargRR / InpHT at k = 1: {np.mean(marg_rr):.2f}",
        {
            "1/√N within 25 %, but for InpPS": all(
                abs(value - 1) < 0.25 for value in falls.values()
            ),
            "errors of InpRR and InpPS grow with d": all(
                typical(found[d, k][name]) < typical(found[e, k][name])
                for d, e in pairwise(dims)
                for k in ways
                for name in ("InpRR", "InpPS")
            ),
            "errors of InpHT and the marginal methods grow with d and with k": (
                all(
                    typical(found[d, k][name]) < typical(found[e, k][name])
                    for d, e in pairwise(dims)
                    for k in ways
                    for name in ("InpHT", *MARG)
                )
                and all(
                    typical(found[d, k][name]) < typical(found[d, m][name])
                    for k, m in pairwise(ways)
                    for d in dims
                    for name in ("InpHT", *MARG)
                )
            ),
            "InpHT within 15 % of the least in every panel": all(
                worst_for(rows, "InpHT") < 1.15 for rows in found.values()
            ),
            "InpPS has the largest error for k >= 2 and d >= 8": all(
                max(rows, key=lambda name: typical(rows[name])) == "InpPS"
                for (d, k), rows in found.items()
                if k > 1 and d > 4
            ),
            f"d = {large}: InpRR above all marginal methods": all(
                ratio(found[large, k], "InpRR", name) > 1 for k in ways for name in MARG
            ),
            "k = 1: MargPS, MargHT, InpHT within a factor 1.3": all(
                max(abs(math.log(ratio(rows, a, "InpHT"))) for a in ("MargPS", "MargHT"))
                < math.log(1.3)
                for (_, k), rows in found.items()
                if k == 1
            ),
            "k = 1: MargRR within a factor 1.3 of InpHT": max(marg_rr) < 1.3,
            "MargPS better than MargRR in most panels": most(
                ratio(rows, "MargPS", "MargRR") < 1 for rows in found.values()
            ),
            "MargPS and MargHT within 25 %": max(max(apart), 1 / min(apart)) < 1.25,
        },
        remarks=(
            f"{watching().name}, N = {', '.join(f'2^{p}' for p in powers)}, e^ε = 3, 2 repeats (20"
            " for d <= 8). MargRR perturbs two cells where one bit would do: for k = 1 its error"
            " is twice that of the others, by its variance too"
        ),
        detail=panels(found, "N", [f"2^{p}" for p in powers]),
    )


@claim(
    "Section 4.4.2, InpPS",
    "whether its error falls with N",
    '"InpPS\'s error does not reduce with N"',
    by="frequency.marginals.InpPS",
    tolerance="1.5 to 2.7 for a half",
    seed="4",
    kind=Kind.FALSE_CLAIM,
)
def input_sampling(settings: Settings) -> Outcome:
    work, population = study(settings), watching()
    powers, rows = (14, 16, 18), {}
    for d in (4, 8):
        rows[f"d = {d}"] = [
            work.error(
                InpPS, population.some(d), 1 << power, 2, LN3, repeats=6 if settings.quick else 20
            )[0]
            for power in powers
        ]
    halves = [a / b for values in rows.values() for a, b in pairwise(values)]
    return judged(
        "four times the users: error / " + ", ".join(figures(halves, 2)),
        {"the error stays (falls by less than 1.3 for four times the users)": max(halves) < 1.3},
        {
            "it halves, as its Theorem 4 has it (1.5 to 2.7)": all(
                1.5 < value < 2.7 for value in halves
            )
        },
        remarks=(
            f"{population.name}. The same section says that the error of all six falls as"
            " 1/√N. An error over 1, at small N or large d, may have been cut off in the plot"
        ),
        detail=series("InpPS, k = 2", "N", [f"2^{p}" for p in powers], rows),
    )


@claim(
    "Sections 4.4.2 and 4.4.3, numbers",
    "values, bits, error of an entry",
    "d = 8, k = 2: InpPS builds 256 values, marginal methods 112; InpRR sends 28 times the bits"
    " of InpHT at d = 8, nearly 4000 at 16; error 0.125 at k = 5 is 0.125/32 = 0.004 an entry",
    tolerance="the printed digits",
    kind=Kind.CONSTANT,
)
def counted(settings: Settings) -> Outcome:
    views = math.comb(8, 2) * 4
    costs = {d: 2**d / (d + 1) for d in (8, 16)}
    inside = 2 * 0.125 / 32
    return judged(
        f"{2**8}, {views}; {costs[8]:.1f}, {costs[16]:.0f}; {inside:.4f}",
        {
            "256 and 112": 2**8 == 256 and views == 112,
            "28": round(costs[8]) == 28,
            "nearly 4000": 3800 < costs[16] < 4000,
            "mean absolute error an entry = total variation / 32": near(inside, 0.125 / 32),
        },
        {
            "256 and 112, 28 and nearly 4000": (
                views == 112 and round(costs[8]) == 28 and 3800 < costs[16] < 4000
            ),
            (
                "by Definition 15 total variation is half the sum of 32 absolute errors: "
                "0.0078 an entry"
            ): near(inside, 0.0078125),
        },
        remarks="ratios of 2^d and d + 1, Table 4.1",
    )


CLAIMS = (figure_4_2, figure_4_3, input_sampling, counted)

"""Thesis figures 6.14 to 6.17: mechanisms for other losses."""

from __future__ import annotations

from fractions import Fraction as Q
from functools import cache, partial
from itertools import product

import numpy as np

from mechdesign import Mechanism, named
from mechdesign.losses import L1, L2, binomial
from reproduction.count_mechanisms.programs import PANELS, SHORT, by_input, optimum, panels
from reproduction.report import Kind, Outcome, Settings, claim, judged, most, series

SETS = {"UCM": (), "WM": ("WH",), "FM": ("F",), "AM": SHORT}


@cache
def others(loss: str, n: int, alpha: Q) -> dict[str, Mechanism]:
    """The mechanisms of section 6.7.4."""
    cost = {"L1": L1, "L2": L2}[loss]()
    return {
        **{name: optimum(n, alpha, names, cost).mechanism for name, names in SETS.items()},
        "UM": named.uniform(n),
    }


def of_groups(loss: str, settings: Settings) -> Outcome:
    found = by_input(lambda m, w: m.error_distribution(w).rmse, partial(others, loss))
    best = [
        rows["UCM"][k] <= 1.05 * min(v[k] for v in rows.values())
        for rows in found.values()
        for k in range(11)
    ]
    central = [rows["AM"][5] / rows["UCM"][5] for rows in found.values()]
    relative = {
        n: np.mean(
            [rows["FM"].mean() / rows["UCM"].mean() for (_, m), rows in found.items() if m == n]
        )
        for n in (4, 8, 12)
    }
    close = max(rows["WM"].mean() / rows["UCM"].mean() for (_, n), rows in found.items() if n == 4)
    gaps = [rows["AM"] / rows["WM"] for rows in found.values()]
    return judged(
        f"WM / UCM at n = 4 at most {close:.2f}; FM / UCM "
        + ", ".join(f"{r:.2f} (n = {n})" for n, r in relative.items())
        + f"; AM / UCM at p = 1/2 {min(central):.2f} to {max(central):.2f}",
        {
            "UCM within 5 % of the least at most points": most(best),
            "WM avoids outputs that never occur": all(
                min(map(min, others(loss, n, a)["WM"].table)) > 0 for a, n in PANELS
            ),
            "n = 4: WM within 30 % of UCM on average": close < 1.3,
            "AM: lower at p = 1/2 than at 0 and 1, in most panels": most(
                r["AM"][5] < min(r["AM"][0], r["AM"][10]) for r in found.values()
            ),
            "FM / UCM falls from n = 4 to 12": relative[12] < relative[4],
        },
        remarks=(
            "exact expectations; optima for the uniform prior, not always unique. Against WM, AM"
            f" does not gain at p = 1/2: AM / WM is on average {np.mean([g[5] for g in gaps]):.3f}"
            f" there and {np.mean([g[0] for g in gaps]):.3f} at p = 0"
        ),
        detail=panels(found, f"RMSE, mechanisms for {loss}"),
    )


def of_tails(loss: str, settings: Settings) -> Outcome:
    power = {"L1": 1, "L2": 2}[loss]
    found = {
        (a, p): {
            name: np.array(
                [
                    float(
                        sum(
                            abs(e) ** power * q
                            for e, q in m.error_distribution(binomial(8, p)).histogram.items()
                            if abs(e) > d
                        )
                    )
                    for d in range(8)
                ]
            )
            for name, m in others(loss, 8, a).items()
        }
        for a, p in product((Q(91, 100), Q(67, 100)), (Q(1, 10), Q(6, 10)))
    }
    skew, even = ({a: found[a, p] for a in (Q(91, 100), Q(67, 100))} for p in (Q(1, 10), Q(6, 10)))
    widest = {
        a: max(
            np.ptp([found[a, p][k][d] for k in ("AM", "FM", "WM")]) / found[a, p]["UM"][0]
            for p in (Q(1, 10), Q(6, 10))
            for d in range(8)
        )
        for a in (Q(91, 100), Q(67, 100))
    }
    low = skew[Q(91, 100)]
    half = [
        float(sum(others(loss, 8, Q(91, 100))["UCM"].table[i][j] for i in (3, 4, 5)))
        for j in range(9)
    ]
    detail = "\n\n".join(
        series(f"{loss},d, n = 8, α = {float(a):.2f}, p = {float(p):.1f}", "d", range(8), rows)
        for (a, p), rows in found.items()
    )
    return judged(
        "p = 0.1, α = 0.91, d = 1: "
        + ", ".join(f"{k} {v[1]:.2f}" for k, v in low.items() if k != "UM"),
        {
            "p = 0.1, α = 0.91: UCM worst of the four at d = 0 or 1": any(
                low["UCM"][d] == max(low[k][d] for k in SETS) for d in (0, 1)
            ),
            "p = 0.1, α = 0.91: UCM least for d >= 4": all(
                low["UCM"][d] == min(low[k][d] for k in SETS) for d in range(4, 8)
            ),
            "α = 0.91: UCM answers 3, 4 or 5 with at least 0.6 whatever the input": (
                min(half) >= 0.6
            ),
            "p = 0.6: UCM least at every d": all(
                r["UCM"][d] == min(r[k][d] for k in SETS) for r in even.values() for d in range(8)
            ),
            "AM, FM, WM within 15 % of UM's error of each other": max(widest.values()) < 0.15,
            "... and nearer for α = 0.67": widest[Q(67, 100)] < widest[Q(91, 100)],
        },
        remarks="exact; n = 8 (the text names no n)",
        detail=detail,
    )


figure_6_14 = claim(
    "Figure 6.14",
    "RMSE of mechanisms for L1",
    "UCM among the best; for small groups WM similar; AM good near p = 1/2, weaker when skewed;"
    " FM better as groups grow",
    by="mechdesign.design",
    tolerance="5 %, 30 % for words",
)(partial(of_groups, "L1"))

figure_6_15 = claim(
    "Figure 6.15",
    "RMSE of mechanisms for L2",
    "UCM among the best; for small groups WM similar; AM good near p = 1/2, weaker when skewed;"
    " FM better as groups grow",
    by="mechdesign.design",
    tolerance="5 %, 30 % for words",
)(partial(of_groups, "L2"))

figure_6_16 = claim(
    "Figure 6.16",
    "L1,d of mechanisms for L1",
    "p = 0.1, large α, small d: UCM worst, reversed for larger d; UCM maps to about n/2; p ="
    " 0.6: UCM best; AM, FM, WM nearly alike, more so for small α",
    by="mechdesign.design",
    tolerance="15 % for words",
)(partial(of_tails, "L1"))

figure_6_17 = claim(
    "Figure 6.17",
    "L2,d of mechanisms for L2",
    "p = 0.1, large α, small d: UCM worst, reversed for larger d; UCM maps to about n/2; p ="
    " 0.6: UCM best; AM, FM, WM nearly alike, more so for small α",
    by="mechdesign.design",
    tolerance="15 % for words",
    kind=Kind.UNEXPLAINED,
)(partial(of_tails, "L2"))


CLAIMS = (
    figure_6_14,
    figure_6_15,
    figure_6_16,
    figure_6_17,
)

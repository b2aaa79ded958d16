"""Thesis 6.8 and chapter 7: the programs under local privacy, conclusions."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

from frequency import GRR, HRR, OLH, OUE
from mechdesign import named
from mechdesign.losses import L1, L2, binomial
from reproduction.count_mechanisms.programs import SHORT, WM, optimum, scaled
from reproduction.report import Outcome, Settings, claim, judged


@claim(
    "Section 6.8, L0",
    "the program under LDP",
    "under LDP the L0 optimum is GRR, p = 1 / (1 + (n-1) α), with all properties; forcing them"
    " changes nothing",
    by="mechdesign.design",
    tolerance="exact",
)
def local_program(settings: Settings) -> Outcome:
    grid = list(product((2, 3, 5), (Q(1, 3), Q(9, 10))))
    same = [
        optimum(k - 1, a, names, None, "all").mechanism.table == named.krr(k, alpha=a).table
        for k, a in grid
        for names in ((), SHORT)
    ]
    return judged(
        f"the same table in {sum(same)} of {len(same)} programs",
        {
            "the optimum is GRR, with none and with all seven properties": all(same),
            "p = 1 / (1 + (n-1) α)": all(
                named.krr(k, alpha=a).table[0][0] == 1 / (1 + (k - 1) * a) for k, a in grid
            ),
            "GRR has all seven": all(
                all(named.krr(k, alpha=a).properties().values()) for k, a in grid
            ),
        },
        remarks="n = 2, 3, 5 items; eqs. 6.17 to 6.20",
    )


@claim(
    "Section 6.8, L1 and L2",
    "other losses under LDP",
    "L1 and L2 under LDP give pathological mechanisms too; properties remove that",
    by="mechdesign.design",
    tolerance="exact",
)
def local_others(settings: Settings) -> Outcome:
    cases = {
        (name, n): optimum(n, Q(62, 100), (), loss, "all").mechanism.table
        for name, loss in (("L1", L1()), ("L2", L2()))
        for n in (4, 7)
    }
    starved = {case: sum(not any(row) for row in t) for case, t in cases.items()}
    forced = {
        case: optimum(case[1], Q(62, 100), ("WH",), loss, "all").mechanism
        for case, loss in zip(cases, (L1(), L1(), L2(), L2()), strict=True)
    }
    return judged(
        "outputs never given: "
        + ", ".join(f"{loss} n = {n}: {count}" for (loss, n), count in starved.items()),
        {
            "every one of them starves outputs": all(count > 0 for count in starved.values()),
            "none with WH": all(min(map(min, m.table)) > 0 for m in forced.values()),
        },
        remarks="α = 0.62",
    )


@claim(
    "Section 6.8, GRR",
    "GRR and its rivals",
    "GRR is significantly less accurate than OUE, OLH and HRR, which are not square",
    by="frequency.GRR",
    tolerance="a factor of ten for words",
)
def local_rivals(settings: Settings) -> Outcome:
    variances = {kind.__name__: float(kind(1024, 1.1).variance(1)) for kind in (GRR, OUE, OLH, HRR)}
    return judged(
        "variance of one report, D = 1024, eps = 1.1: "
        + ", ".join(f"{k} {v:.2f}" for k, v in variances.items()),
        {
            "GRR has more than ten times the variance of each": (
                variances["GRR"] > 10 * max(variances[k] for k in ("OUE", "OLH", "HRR"))
            )
        },
    )


@claim(
    "Section 7.1.3",
    "which mechanism to choose",
    "GM is often not the mechanism of choice for α above 0.7; EM and WM often perform alike",
    by="mechdesign.named.geometric",
    tolerance="0.7 to 0.9, and 5 %, for words",
)
def conclusions(settings: Settings) -> Outcome:
    crossing = {}
    for n in (4, 8, 12):
        grid = [Q(k, 100) for k in range(50, 100)]
        balanced = binomial(n, Q(1, 2))
        crossing[n] = next(
            float(a)
            for a in grid
            if named.geometric(n, alpha=a).error_distribution(balanced).rmse
            > named.uniform(n).error_distribution(balanced).rmse
        )
    gaps = [
        float(scaled(n, a, ("F",)) / scaled(n, a, WM) - 1)
        for n, a in product(
            (4, 8) if settings.quick else (4, 8, 12), (Q(7, 10), Q(8, 10), Q(9, 10), Q(99, 100))
        )
    ]
    return judged(
        "balanced counts: GM's RMSE exceeds a guess's from α = "
        + ", ".join(f"{a:.2f} (n = {n})" for n, a in crossing.items())
        + " on",
        {
            "the crossing lies in 0.7 .. 0.9 for n = 4, 8, 12": all(
                0.7 <= a <= 0.9 for a in crossing.values()
            ),
            f"EM's L0 exceeds WM's by at most 5 % for α = 0.7 .. 0.99 (at most {max(gaps):.1%})": (
                max(gaps) < 0.05
            ),
        },
        remarks="the limits are ours; p = 1/2",
    )


CLAIMS = (
    local_program,
    local_others,
    local_rivals,
    conclusions,
)

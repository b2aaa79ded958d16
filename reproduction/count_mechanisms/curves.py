"""Thesis 6.7 and 6.7.1: costs of properties."""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction as Q
from itertools import pairwise, product

from reproduction.count_mechanisms.programs import em_y, gm_l0, optimum, scaled, threshold
from reproduction.report import Kind, Outcome, Settings, claim, judged, series

NINE = (
    (),
    ("RH",),
    ("RM",),
    ("CH",),
    ("CM",),
    ("RH", "CH"),
    ("RH", "CM"),
    ("RM", "CH"),
    ("RM", "CM"),
)


@claim(
    "Section 6.7, time",
    "time of the programs",
    "the time to solve the programs was negligible (sub-second)",
    by="mechdesign.design",
    tolerance="one second",
)
def seconds(settings: Settings) -> Outcome:
    took = {}
    for n in (8, 16) if settings.quick else (8, 16, 32, 64):
        begun = time.perf_counter()
        optimum(n, Q(9, 10), ("WH", "RM", "CM"))
        took[n] = time.perf_counter() - begun
    return judged(
        ", ".join(f"n = {n}: {s:.2f} s" for n, s in took.items()),
        {"n = 8 and 16 in less than a second": took[8] < 1 and took[16] < 1},
        remarks=(
            "L0 with WH, RM, CM, α = 9/10; here the time includes the exact proof of optimality."
            " Depends on the machine"
        ),
    )


@claim(
    "Section 6.7.1",
    "nine combinations, two behaviours",
    "nine combinations with WH have two behaviours: with and without CH or CM; without, the"
    " cost of GM from n >= 2α/(1-α) on",
    by="mechdesign.design",
    tolerance="exact",
)
def nine_combinations(settings: Settings) -> Outcome:
    sizes = (2, 4, 8) if settings.quick else (2, 3, 4, 5, 7, 8, 12)
    alphas = (
        [Q(1, 2), Q(2, 3), Q(9, 10)]
        if settings.quick
        else [Q(1, 2), Q(62, 100), Q(2, 3), Q(76, 100), Q(9, 10), Q(10, 11), Q(99, 100)]
    )
    two, lower, coincide = [], [], []
    for n, alpha in product(sizes, alphas):
        values = {names: scaled(n, alpha, ("WH", *names)) for names in NINE}
        row = {v for names, v in values.items() if not {"CH", "CM"} & set(names)}
        column = {v for names, v in values.items() if {"CH", "CM"} & set(names)}
        two.append(len(row) == len(column) == 1)
        lower.append(max(row) <= min(column) and (row == {gm_l0(alpha)}) == (n >= threshold(alpha)))
        coincide.append((row == column) == (n <= 2 or alpha <= Q(1, 2)))
    return judged(
        f"exactly two at all {len(two)} points",
        {
            "one optimum without, one with column properties": all(two),
            "the lower one is GM's exactly where n >= 2α/(1-α)": all(lower),
            "they coincide only for n <= 2 or α <= 1/2": all(coincide),
        },
        remarks=f"n = {', '.join(map(str, sizes))}; α = {', '.join(map(str, alphas))}; proved",
    )


@claim(
    "Figure 6.7(a)",
    "combinations with WH against n",
    "α = 0.76: threshold 6.33, cost 0.864 from there on for WH alone; higher with column"
    " properties",
    by="mechdesign.design",
    tolerance="exact",
)
def figure_6_7a(settings: Settings) -> Outcome:
    alpha = Q(76, 100)
    sizes = range(2, 9 if settings.quick else 13)
    sets = {
        "WH": (),
        "WH + RM": ("RM",),
        "WH + CH": ("CH",),
        "WH + CM": ("CM",),
        "WH + RM + CM": ("RM", "CM"),
    }
    curves = {
        name: [scaled(n, alpha, ("WH", *extra)) for n in sizes] for name, extra in sets.items()
    }
    gm = gm_l0(alpha)
    return judged(
        f"threshold {float(threshold(alpha)):.2f}, 2α/(1+α) = {float(gm):.4f}; WH first costs that"
        f" at n = {sizes[curves['WH'].index(gm)]}",
        {
            "2α/(1-α) = 6.33": f"{float(threshold(alpha)):.2f}" == "6.33",
            "2α/(1+α) = 0.864": f"{float(gm):.3f}" == "0.864",
            "WH alone costs that exactly from n = 7 on": all(
                (v == gm) == (n >= 7) for n, v in zip(sizes, curves["WH"], strict=True)
            ),
            "row properties cost nothing": curves["WH"] == curves["WH + RM"],
            "column properties cost more, for n > 2": all(
                a > b for a, b in zip(curves["WH + CM"][1:], curves["WH"][1:], strict=True)
            ),
        },
        detail=series("Scaled L0, α = 0.76", "n", sizes, curves, 5),
    )


@claim(
    "Figure 6.7(b)",
    "combinations with WH against α",
    "for large α all combinations of WH cost the same, and the same as EM; for smaller α two"
    " behaviours, the lower that of GM",
    by="mechdesign.design",
    tolerance="1e-4, what a plot can show",
)
def figure_6_7b(settings: Settings) -> Outcome:
    n = 8
    alphas = [Q(k, 20) for k in range(8, 20, 2 if settings.quick else 1)] + [
        Q(99, 100),
        Q(999, 1000),
        Q(99999, 100000),
    ]
    curves = {
        "GM": [gm_l0(a) for a in alphas],
        "WH": [scaled(n, a, ("WH",)) for a in alphas],
        "WH + CM": [scaled(n, a, ("WH", "CM")) for a in alphas],
        "EM": [scaled(n, a, ("F",)) for a in alphas],
    }
    last = {name: values[alphas.index(Q(99, 100))] for name, values in curves.items()}
    return judged(
        "α = 0.99: " + ", ".join(f"{name} {float(v):.6f}" for name, v in last.items()),
        {
            "from α = 0.99 on they are the same to 1e-4": all(
                e - w < Q(1, 10**4)
                for a, w, e in zip(alphas, curves["WH"], curves["EM"], strict=True)
                if a >= Q(99, 100)
            ),
            "the lower one is GM's for α <= 4/5 (n >= 2α/(1-α))": all(
                (w == g) == (a <= Q(4, 5))
                for a, w, g in zip(alphas, curves["WH"], curves["GM"], strict=True)
            ),
            "WH < WH + CM < EM at every α in (1/2, 1) of the grid, up to 1 - 1e-5": all(
                w < c < e
                for a, w, c, e in zip(
                    alphas, curves["WH"], curves["WH + CM"], curves["EM"], strict=True
                )
                if a > Q(1, 2)
            ),
        },
        remarks="n = 8; exactly they differ, by less than a plot can show",
        detail=series("Scaled L0, n = 8", "α", map(float, alphas), curves, 7),
    )


def curves_6_8(alpha: Q, sizes: Sequence[int]) -> dict[str, list[Q]]:
    return {
        "GM": [gm_l0(alpha)] * len(sizes),
        "WH": [scaled(n, alpha, ("WH",)) for n in sizes],
        "WH + RM + CM": [scaled(n, alpha, ("WH", "RM", "CM")) for n in sizes],
        "EM": [scaled(n, alpha, ("F",)) for n in sizes],
        "UM": [Q(1)] * len(sizes),
    }


@claim(
    "Figure 6.8(a)",
    "L0 against n, α = 2/3",
    "α = 2/3, threshold 4: WM is GM over the whole range, EM higher but decreasing",
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.AMBIGUOUS,
    same_as="Sections 6.6, 6.7.1: WM",
)
def figure_6_8a(settings: Settings) -> Outcome:
    alpha, sizes = Q(2, 3), list(range(4, 13 if settings.quick else 25, 2))
    c = curves_6_8(alpha, sizes)
    same = {
        name: all(a == b for a, b in zip(c[name], c["GM"], strict=True))
        for name in ("WH", "WH + RM + CM")
    }
    return judged(
        f"n = 8: GM {float(c['GM'][0]):.4f}, WH {float(c['WH'][2]):.4f}, with RM and CM"
        f" {float(c['WH + RM + CM'][2]):.4f}, EM {float(c['EM'][2]):.4f}",
        {
            "2α/(1-α) = 4": threshold(alpha) == 4,
            "WM as defined in 6.7.1 (WH + RM + CM) costs what GM costs": same["WH + RM + CM"],
            "EM is higher, and decreasing": (
                all(a > b for a, b in pairwise(c["EM"])) and c["EM"][-1] > c["GM"][-1]
            ),
        },
        {
            "true of WH alone": same["WH"],
            "WH + RM + CM is above GM for every n": all(
                a > b for a, b in zip(c["WH + RM + CM"], c["GM"], strict=True)
            ),
        },
        remarks="from n = 4 on",
        detail=series("Scaled L0, α = 2/3", "n", sizes, c, 5),
    )


@claim(
    "Figure 6.8(b)",
    "L0 against n, α = 10/11",
    "α = 10/11: threshold 20, WM meets GM at n = 20",
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.AMBIGUOUS,
    same_as="Sections 6.6, 6.7.1: WM",
)
def figure_6_8b(settings: Settings) -> Outcome:
    alpha, sizes = (
        Q(10, 11),
        [2, 8, 14, 19, 20] if settings.quick else [2, 4, 6, 8, 10, 12, 14, 16, 18, 19, 20, 22, 24],
    )
    c = curves_6_8(alpha, sizes)
    at = sizes.index(20)
    return judged(
        f"n = 20: GM {float(c['GM'][at]):.5f}, WH {float(c['WH'][at]):.5f}, with RM and CM"
        f" {float(c['WH + RM + CM'][at]):.5f}",
        {
            "2α/(1-α) = 20": threshold(alpha) == 20,
            "WM as defined in 6.7.1 (WH + RM + CM) meets GM at 20": (
                c["WH + RM + CM"][at] == c["GM"][at]
            ),
        },
        {
            "WH alone meets GM exactly from n = 20 on": all(
                (w == g) == (n >= 20) for n, w, g in zip(sizes, c["WH"], c["GM"], strict=True)
            ),
            "WH + RM + CM is more than 0.01 above": c["WH + RM + CM"][at] - c["GM"][at] > Q(1, 100),
        },
        detail=series("Scaled L0, α = 10/11", "n", sizes, c, 5),
    )


@claim(
    "Figure 6.8(c)",
    "L0 against n, α = 99/100",
    "α = 99/100, threshold 198: WM does not meet GM; EM's y is above 1/(n+1); WM costs what EM"
    " costs",
    by="mechdesign.design",
    tolerance="1e-4, what a plot can show",
)
def figure_6_8c(settings: Settings) -> Outcome:
    alpha, sizes = Q(99, 100), [2, 4, 8, 12] if settings.quick else list(range(2, 25, 2))
    c = curves_6_8(alpha, sizes)
    less = [e - w for e, w in zip(c["EM"], c["WH + RM + CM"], strict=True)]
    return judged(
        f"WM is less than EM by {float(min(less)):.1e} to {float(max(less)):.1e}",
        {
            "2α/(1-α) = 198": threshold(alpha) == 198,
            "WM above GM": all(w > g for w, g in zip(c["WH"], c["GM"], strict=True)),
            "EM is weakly honest": all(em_y(n, alpha) >= Q(1, n + 1) for n in sizes),
            "WM = EM to 1e-4": all(0 < x < Q(1, 10**4) for x in less),
        },
        remarks="exactly WM is less, by less than a plot can show",
        detail=series("Scaled L0, α = 99/100", "n", sizes, c, 6),
    )


CLAIMS = (
    seconds,
    nine_combinations,
    figure_6_7a,
    figure_6_7b,
    figure_6_8a,
    figure_6_8b,
    figure_6_8c,
)

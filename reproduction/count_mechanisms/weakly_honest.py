"""Thesis 6.6.3: the weakly honest mechanism, and the four side by side."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import pairwise, product

from mechdesign import Mechanism, named
from reproduction.count_mechanisms.programs import (
    WM,
    Derivable,
    family,
    gm_l0,
    optimum,
    scaled,
    threshold,
)
from reproduction.report import Kind, Outcome, Settings, claim, figures, judged, table


@claim(
    "Sections 6.6, 6.7.1: WM",
    "what WM is",
    "WM: section 6.6.3, WH alone or WH and CM; from 6.7.1 on, WH, RM and CM",
    by="mechdesign.named.weakly_honest",
    tolerance="exact",
    kind=Kind.AMBIGUOUS,
)
def two_meanings(settings: Settings) -> Outcome:
    n, alpha = 8, Q(9, 10)
    rows = [
        [
            a,
            *figures(
                [
                    gm_l0(a),
                    scaled(n, a, ("WH",)),
                    scaled(n, a, ("WH", "CM")),
                    scaled(n, a, WM),
                    scaled(n, a, ("F",)),
                ],
                6,
            ),
        ]
        for a in (Q(1, 2), Q(62, 100), Q(2, 3), Q(76, 100), alpha, Q(10, 11), Q(99, 100))
    ]
    apart = [
        (scaled(m, a, ("WH",)) < scaled(m, a, WM)) == (a > Q(1, 2) and m > 2)
        for m, a in product((2, 3, 5, 8), (Q(1, 3), Q(1, 2), Q(3, 5), Q(9, 10)))
    ]
    return judged(
        f"n = 8, α = 9/10: WH {float(scaled(n, alpha, ('WH',))):.5f}, WH + RM + CM"
        f" {float(scaled(n, alpha, WM)):.5f}, GM {float(gm_l0(alpha)):.5f}, EM"
        f" {float(scaled(n, alpha, ('F',))):.5f}",
        {"one mechanism, by L0": scaled(n, alpha, ("WH",)) == scaled(n, alpha, WM)},
        {
            "two, which differ exactly for α > 1/2 and n > 2": all(apart),
            "RM and S cost nothing with either": (
                scaled(n, alpha, ("WH", "RM", "S")) == scaled(n, alpha, ("WH",))
                and scaled(n, alpha, WM) == scaled(n, alpha, ("WH", "CM"))
            ),
        },
        remarks=(
            "the name is used for both below; each entry says which one its statement is true of"
        ),
        detail="Scaled L0, n = 8\n\n"
        + table(["α", "GM", "WH", "WH + CM", "WH + RM + CM + S", "EM"], rows),
    )


@claim(
    "Figure 6.5",
    "properties of named mechanisms",
    "S, RM, CM, F, WH of GM (Y Y - N -), WM (Y Y - N Y), EM, UM (all Y); L0 2α/(1+α), no less,"
    " about 2α/(1+α) (n+1)/n, 1",
    by="mechdesign.Mechanism.properties",
    tolerance="exact",
)
def figure_6_5(settings: Settings) -> Outcome:
    grid = list(product((3, 4, 6), (Q(1, 3), Q(3, 5), Q(3, 4), Q(9, 10))))
    gm = {(n, a): named.geometric(n, alpha=a).properties() for n, a in grid}
    em = [named.explicit_fair(n, alpha=a) for n, a in grid]
    wm = {(n, a): named.weakly_honest(n, alpha=a) for n, a in grid}
    um = [named.uniform(n) for n, _ in grid]
    excess = [
        gm_l0(Q(9, 10)) * Q(n + 1, n) - named.explicit_fair(n, alpha=Q(9, 10)).scaled_l0()
        for n in (4, 8, 16, 32, 64)
    ]
    unfair = [scaled(n, a, ("WH",)) < scaled(n, a, ("F",)) for n, a in grid]
    return judged(
        "EM against its approximation, α = 9/10, n = 4 .. 64: less by"
        f" {', '.join(figures(excess, 4))}",
        {
            "GM: S, RM, not F; CM iff α <= 1/2; WH iff n >= 2α/(1-α)": all(
                (h["S"], h["RM"], h["F"], h["CM"], h["WH"])
                == (True, True, False, a <= Q(1, 2), n >= threshold(a))
                for (n, a), h in gm.items()
            ),
            "WM: S, RM, WH, not F (no weakly honest optimum is fair)": (
                all(
                    (h["S"], h["RM"], h["WH"], h["F"]) == (True, True, True, False)
                    for h in (m.properties() for m in wm.values())
                )
                and all(unfair)
            ),
            "WM's CM costs nothing iff α <= 1/2": all(
                (scaled(n, a, WM) == scaled(n, a, ("WH",))) == (a <= Q(1, 2)) for n, a in grid
            ),
            "EM and UM have all seven": all(all(m.properties().values()) for m in em + um),
            "L0: GM <= WM <= EM <= UM = 1": all(
                gm_l0(a)
                <= wm[n, a].scaled_l0()
                <= scaled(n, a, WM)
                < named.explicit_fair(n, alpha=a).scaled_l0()
                < 1
                for n, a in grid
            ),
            "EM's approximation improves with n": all(a > b > 0 for a, b in pairwise(excess)),
        },
        remarks="n = 3, 4, 6; α = 1/3, 3/5, 3/4, 9/10; for n = 2 CM costs nothing at any α",
    )


@claim(
    "Figure 6.6",
    "heat maps of GM, EM, WM",
    "n = 4, α = 0.9: EM is concentrated on a uniform diagonal; GM and WM favour 0 and 4"
    " whatever the input, GM more",
    by="mechdesign.named.weakly_honest",
    tolerance="exact",
)
def figure_6_6(settings: Settings) -> Outcome:
    tables = {**family(4, Q(9, 10)), "WH alone": named.weakly_honest(4, alpha=Q(9, 10))}
    ends = {
        name: [float(m.table[0][j] + m.table[4][j]) for j in range(5)] for name, m in tables.items()
    }
    em = tables["EM"].table
    return judged(
        "probability of 0 or 4, least over inputs: "
        + ", ".join(f"{name} {min(row):.2f}" for name, row in ends.items()),
        {
            "EM's diagonal is uniform, and the largest entry of every column": (
                len({em[j][j] for j in range(5)}) == 1
                and all(em[j][j] == max(row[j] for row in em) for j in range(5))
            ),
            "GM gives 0 or 4 more often than any other mechanism, for every input": all(
                ends["GM"][j] > max(ends[name][j] for name in ends if name != "GM")
                for j in range(5)
            ),
            "WM gives 0 or 4 more often than a blind guess whatever the input (0.4), WH alone": (
                min(ends["WH alone"]) > 0.4
            ),
            "WM, with RM and CM, gives 0 or 4 at least as often as a blind guess": (
                min(ends["WM"]) >= 0.4
            ),
        },
        remarks="of the two meanings of WM, WH alone shows it clearly",
        detail="\n\n".join(
            f"{name}, rows are outputs:\n\n"
            + table(
                ["", *map(str, range(5))], ([i, *figures(row)] for i, row in enumerate(m.table))
            )
            for name, m in tables.items()
            if name != "UM"
        ),
    )


def remaps_geometric(mechanism: Mechanism) -> bool:
    """Whether this is the geometric mechanism with its output remapped.

    The test is that of Gupte and Sundararajan (thesis 6.6.3): every three adjacent entries of a row
    satisfy (1 + alpha^2) P[i, j] >= alpha (P[i, j-1] + P[i, j+1]), and the mechanism is
    alpha-private between adjacent counts, whatever neighbours it claims.
    """
    alpha = mechanism.privacy.alpha
    return all(
        all(alpha * near <= far <= near / alpha for near, far in pairwise(row))
        and all(
            (1 + alpha**2) * here >= alpha * (before + after)
            for before, here, after in zip(row, row[1:], row[2:], strict=False)
        )
        for row in mechanism.table
    )


@claim(
    "Section 6.6.3, derivability",
    "EM and WM against GM",
    "EM and WM are not derivable from GM for n > 1",
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
)
def derivable(settings: Settings) -> Outcome:
    em = {
        (n, a): remaps_geometric(named.explicit_fair(n, alpha=a))
        for n, a in product(range(1, 8), (Q(1, 3), Q(1, 2), Q(9, 10)))
    }
    grid = [
        (2, Q(1, 2)),
        (2, Q(9, 10)),
        (3, Q(3, 5)),
        (3, Q(9, 10)),
        (4, Q(3, 5)),
        (4, Q(9, 10)),
        (5, Q(9, 10)),
        (8, Q(9, 10)),
    ]
    exists = {
        properties: [
            optimum(n, a, (*properties, Derivable())).certificate.objective
            == optimum(n, a, properties).certificate.objective
            for n, a in grid
        ]
        for properties in (("WH",), WM)
    }
    detail = table(
        ["n", "α", "WH", "WH + RM + CM + S"],
        (
            [n, a, *("yes" if exists[p][k] else "no" for p in exists)]
            for k, (n, a) in enumerate(grid)
        ),
    )
    return judged(
        f"EM never; of WM some optimum is at {sum(exists[('WH',)])} (WH) and {sum(exists[WM])}"
        f" (with RM, CM, S) of {len(grid)} points",
        {
            "EM is not, for n > 1": all(holds == (n == 1) for (n, _), holds in em.items()),
            "WM (WH alone) is not": not any(exists["WH",]),
            "WM (WH + RM + CM + S) is not": not any(exists[WM]),
        },
        {
            "some optimum for WH alone is derivable, at every point tried": all(exists["WH",]),
            "with RM, CM and S none is for n >= 3 and α = 9/10": not any(
                e for e, (n, a) in zip(exists[WM], grid, strict=True) if n >= 3 and a == Q(9, 10)
            ),
        },
        remarks=(
            "optima are not unique: proved by asking for Gupte and Sundararajan's condition. EM's"
            " proof divides by 1 - α, so α < 1"
        ),
        detail="Whether some optimum is derivable from GM\n\n" + detail,
    )


CLAIMS = (
    two_meanings,
    figure_6_5,
    figure_6_6,
    derivable,
)

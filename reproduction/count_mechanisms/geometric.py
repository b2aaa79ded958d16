"""Thesis 6.6.1: the geometric mechanism."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

from mechdesign import named
from mechdesign.losses import Costs
from reproduction.count_mechanisms.programs import gm_l0, optimum, scaled, threshold
from reproduction.report import Outcome, Settings, claim, judged


@claim(
    "Figure 6.2",
    "structure of GM",
    "rows x α^|i-j| at the ends, y α^|i-j| between; x = 1/(1+α), y = (1-α)/(1+α)",
    by="mechdesign.named.geometric",
    tolerance="exact",
)
def figure_6_2(settings: Settings) -> Outcome:
    found = []
    for n, alpha in product((2, 3, 6), (Q(1, 3), Q(9, 10))):
        x, y = 1 / (1 + alpha), (1 - alpha) / (1 + alpha)
        # Definition 14, clamped
        noise = [[y * alpha ** abs(i - j) for i in range(-400, 401)] for j in range(n + 1)]
        clamped = [[row[400 + i] for row in noise] for i in range(1, n)]
        expected = [
            [(x if i in (0, n) else y) * alpha ** abs(i - j) for j in range(n + 1)]
            for i in range(n + 1)
        ]
        found.append(
            [list(row) for row in named.geometric(n, alpha=alpha).table] == expected
            and clamped == expected[1:n]
        )
    return judged(
        "the same, exactly",
        {"GM has this structure, and it is the clamped noise": all(found)},
    )


@claim(
    "Theorem 12",
    "GM is optimal",
    "GM is the unique optimum of L0 under BASICDP; L0 = 2α/(1+α)",
    by="mechdesign.design",
    tolerance="exact",
)
def theorem_12(settings: Settings) -> Outcome:
    grid = list(product((2, 3, 5, 8), (Q(1, 3), Q(3, 5), Q(9, 10))))
    step, n, alpha = Q(1, 1000), 2, Q(4, 5)
    unique = []
    for i, j, sign in product(range(n + 1), range(n + 1), (-1, 1)):
        costs = [
            [Q(2) * (r != c) + 1 + sign * step * ((r, c) == (i, j)) for c in range(n + 1)]
            for r in range(n + 1)
        ]
        unique.append(
            optimum(n, alpha, (), Costs(costs)).mechanism.table
            == named.geometric(n, alpha=alpha).table
        )
    return judged(
        "attained at every n and α tried",
        {
            "2α/(1+α) is the proved optimum": all(
                scaled(m, a) == gm_l0(a) == named.geometric(m, alpha=a).scaled_l0() for m, a in grid
            ),
            "and with S, RM, RH as well": all(
                scaled(m, a, ("S", "RM", "RH")) == gm_l0(a) for m, a in grid
            ),
            "unique for n = 2, α = 4/5: GM stays optimal when any one cost moves": all(unique),
        },
        remarks=(
            "for α < 1: at α = 1, which Definition 20 admits, every mechanism with equal columns is"
            " optimal"
        ),
    )


@claim(
    "Lemma 13",
    "when GM is weakly honest",
    "GM is weakly honest iff n >= 2α/(1-α)",
    by="mechdesign.named.geometric",
    tolerance="exact",
)
def lemma_13(settings: Settings) -> Outcome:
    grid = list(
        product(range(1, 31), (Q(1, 3), Q(1, 2), Q(3, 5), Q(2, 3), Q(3, 4), Q(4, 5), Q(10, 11)))
    )
    found = {
        (n, a): named.geometric(n, alpha=a).properties()["WH"] == (n >= threshold(a))
        for n, a in grid
    }
    return judged(
        f"true at {sum(found.values())} of {len(found)} points, false at "
        + str(len(found) - sum(found.values()))
        + ", all n = 1",
        {
            "for n > 1, as the section's title has it": all(
                holds for (n, _), holds in found.items() if n > 1
            )
        },
        remarks="n = 1 .. 30, seven α. For n = 1 GM is RR, which always is (Fact 4)",
    )


@claim(
    "Lemma 14",
    "when GM is column monotone",
    "GM is column monotone iff α <= 1/2; always symmetric and row monotone",
    by="mechdesign.named.geometric",
    tolerance="exact",
)
def lemma_14(settings: Settings) -> Outcome:
    tiny = Q(1, 10**9)
    grid = list(product(range(2, 9), (Q(1, 3), Q(1, 2) - tiny, Q(1, 2), Q(1, 2) + tiny, Q(9, 10))))
    held = {(n, a): named.geometric(n, alpha=a).properties() for n, a in grid}
    return judged(
        f"{len(grid)} points, α = 1/2 ± 1e-9 among them",
        {
            "CM iff α <= 1/2": all(has["CM"] == (a <= Q(1, 2)) for (_, a), has in held.items()),
            "S and RM always": all(has["S"] and has["RM"] for has in held.values()),
            "never fair": not any(has["F"] for has in held.values()),
        },
        remarks="for n > 1. The proof prints Pr[1|1] <= Pr[0|1] where >= is meant",
    )


CLAIMS = (
    figure_6_2,
    theorem_12,
    lemma_13,
    lemma_14,
)

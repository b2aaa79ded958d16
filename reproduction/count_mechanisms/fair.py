"""Thesis 6.6.2: the explicit fair mechanism."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

from mechdesign import named
from reproduction.count_mechanisms.programs import SHORT, SUBSETS, em_y, optimum, scaled, threshold
from reproduction.report import Kind, Outcome, Settings, claim, judged, table


@claim(
    "Lemma 15, eq. 6.14",
    "the largest fair diagonal",
    "y <= (1-α) / (1+α-2α^(n/2+1)) for every fair mechanism; EM attains it",
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
)
def lemma_15(settings: Settings) -> Outcome:
    rows: list[tuple[int, Q, Q, Q]] = []
    odd: list[tuple[int, Q, Q, Q]] = []
    bound, attained = [], []
    for n, root in product(range(2, 6 if settings.quick else 10), (Q(1, 2), Q(9, 10))):
        alpha = root**2  # half powers are exact
        printed = (1 - alpha) / (1 + alpha - 2 * root ** (n + 2))
        y = 1 - optimum(n, alpha, ["F"]).certificate.objective
        half = n // 2
        formula = 1 / (
            1
            + 2 * sum(alpha**k for k in range(1, half + 1))
            + (alpha ** (half + 1) if n % 2 else 0)
        )
        bound.append(y <= printed)
        attained.append(y == formula == em_y(n, alpha))
        (odd if n % 2 else rows).append((n, alpha, y, printed))
    example = em_y(3, Q(9, 10))
    detail = table(
        ["n", "α", "largest y (proved)", "eq. 6.14"],
        ([n, a, f"{float(y):.6f}", f"{float(p):.6f}"] for n, a, y, p in sorted(rows + odd)),
    )
    return judged(
        f"exceeded for every odd n; n = 3, α = 9/10: y = {example} = {float(example):.6f} against"
        f" {0.1 / (1.9 - 2 * 0.9**2.5):.6f}",
        {
            "a bound for all n": all(bound),
            "EM's y is 6.14 for all n": all(y == p for _, _, y, p in rows + odd),
        },
        {
            "for even n it holds and EM attains it": all(y == p for _, _, y, p in rows),
            (
                "for odd n the best y is 1 / (1 + 2(α + .. + α^((n-1)/2)) + α^((n+1)/2)), "
                "EM's, and larger"
            ): (all(attained) and all(y > p for _, _, y, p in odd)),
        },
        remarks='"without loss of generality, take n even" loses generality',
        detail=detail,
    )


@claim(
    "Figure 6.3, eq. 6.15",
    "EM for n = 7",
    "EM for n = 7: the powers of α; diagonal slightly larger than GM's, but for the corners",
    by="mechdesign.named.explicit_fair",
    tolerance="exact",
)
def figure_6_3(settings: Settings) -> Outcome:
    powers = [
        "01234444",
        "10123333",
        "11012333",
        "22101222",
        "22210122",
        "33321011",
        "33332101",
        "44443210",
    ]
    printed = [[int(c) for c in row] for row in powers]
    mine = [[named.explicit_fair_power(i, j, 7) for j in range(8)] for i in range(8)]
    inside, ends = [], []
    for n, a in product((2, 4, 7, 12), (Q(1, 2), Q(9, 10))):
        y = em_y(n, a)
        inside.append(y > (1 - a) / (1 + a))
        ends.append(y < 1 / (1 + a))
    return judged(
        "all 64 powers the same" if mine == printed else "powers differ",
        {
            "the 64 powers": mine == printed,
            "larger inside than GM's": all(inside),
            "smaller at the corners": all(ends),
        },
    )


@claim(
    "Theorem 13",
    "EM is optimal with all properties",
    "EM has all seven properties, for all n, and the best L0 among fair mechanisms, (n+1)/n (1-y)",
    by="mechdesign.design",
    tolerance="exact",
)
def theorem_13(settings: Settings) -> Outcome:
    sizes = (1, 2, 3, 4, 7, 8) if settings.quick else (1, 2, 3, 4, 7, 8, 12, 16)
    grid = list(product(sizes, (Q(1, 3), Q(1, 2), Q(9, 10), Q(99, 100))))
    large = product((5, 10, 15, 20) if settings.quick else range(5, 41), (Q(1, 10**9), Q(9, 10)))
    return judged(
        "proved optimal at " + str(len(grid)) + " points",
        {
            "all seven, up to n = 40": all(
                all(named.explicit_fair(n, alpha=a).properties().values()) for n, a in large
            ),
            "private, exactly": all(named.explicit_fair(n, alpha=a).audit().holds for n, a in grid),
            "optimal with F, and with all seven": all(
                scaled(n, a, ("F",))
                == scaled(n, a, SHORT)
                == named.explicit_fair(n, alpha=a).scaled_l0()
                for n, a in grid
            ),
            "L0 = (n+1)/n (1-y)": all(
                named.explicit_fair(n, alpha=a).scaled_l0() == Q(n + 1, n) * (1 - em_y(n, a))
                for n, a in grid
            ),
        },
    )


@claim(
    "Figure 6.4",
    "flowchart of 128 subsets",
    "128 subsets of properties lead to four approaches: EM, GM, and two programs (WH; WH + CM)",
    by="mechdesign.named.recommend",
    tolerance="exact",
)
def figure_6_4(settings: Settings) -> Outcome:
    grid = (
        ((3, Q(9, 10)),)
        if settings.quick
        else tuple(product((2, 3, 5), (Q(1, 3), Q(1, 2), Q(3, 5), Q(9, 10))))
    )
    right, names = [], []
    for (n, alpha), subset in product(grid, SUBSETS):
        choice = named.recommend(n, alpha=alpha, properties=subset)
        held = choice.mechanism.properties()
        right.append(
            all(held[p] for p in subset)
            and choice.mechanism.scaled_l0() == scaled(n, alpha, subset)
        )
        column, weak = {"CM", "CH"} & set(subset), "WH" in subset
        if "F" in subset:
            expected = "EM"
        elif alpha <= Q(1, 2) or not (column or weak) or (not column and n >= threshold(alpha)):
            expected = "GM"
        else:
            expected = "WM"
        names.append(choice.name == expected)
    return judged(
        f"{len(right)} cases, {sum(right)} optimal",
        {
            "the flowchart's mechanism has the properties and the proved optimal L0, every time": (
                all(right)
            ),
            "as the flowchart": all(names),
        },
        remarks="(n, α): " + ", ".join(f"({n}, {a})" for n, a in grid),
    )


CLAIMS = (
    lemma_15,
    figure_6_3,
    theorem_13,
    figure_6_4,
)

"""Thesis figure 6.1: optima without constraints."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction as Q

from mechdesign.losses import L0, L1, L2, Loss
from reproduction.count_mechanisms.programs import Often, optimum
from reproduction.report import Kind, Outcome, Settings, claim, figures, judged, table


def some_optimum(n: int, alpha: Q, loss: Loss, outputs: Iterable[int], probability: Q) -> bool:
    """Whether *some* optimal mechanism gives one of the outputs with this probability.

    For every input.
    """
    asked = optimum(n, alpha, [Often(outputs, probability)], loss).certificate.objective
    return asked == optimum(n, alpha, (), loss).certificate.objective


@claim(
    "Figure 6.1",
    "unconstrained optima",
    "α = 0.62: the L2 optimum always reports 2; L1, n = 7: 2 or 5 with at least 0.7; L0,1, n ="
    " 5: 1 or 4 with over 0.9; outputs that never occur",
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
)
def figure_6_1(settings: Settings) -> Outcome:
    alpha = Q(62, 100)
    panels = {
        "L0,1, n = 5": (5, L0(1)),
        "L1, n = 7": (7, L1()),
        "L2, n = 4": (4, L2()),
        "L2, n = 7": (7, L2()),
    }
    tables = {
        name: optimum(n, alpha, (), loss).mechanism.table for name, (n, loss) in panels.items()
    }
    starved = all(not any(t[0]) and not any(t[-1]) for t in tables.values())
    near_two = float(
        min(a + b for a, b in zip(tables["L1, n = 7"][2], tables["L1, n = 7"][5], strict=True))
    )
    near_one = min(
        a + b for a, b in zip(tables["L0,1, n = 5"][1], tables["L0,1, n = 5"][4], strict=True)
    )
    grid = (62, 70, 74, 75, 80, 84, 85, 90) if settings.quick else range(50, 100)
    two_or_five = [k for k in grid if some_optimum(7, Q(k, 100), L1(), (2, 5), Q(7, 10))]
    one_or_four = [k for k in grid if some_optimum(5, Q(k, 100), L0(1), (1, 4), Q(9, 10))]
    always_two = [k for k in grid if some_optimum(4, Q(k, 100), L2(), (2,), Q(1))]
    detail = "\n\n".join(
        f"{name}, α = 0.62, rows are outputs:\n\n"
        + table(["", *map(str, range(len(t)))], ([i, *figures(row, 2)] for i, row in enumerate(t)))
        for name, t in tables.items()
    )
    return judged(
        f"L1: at least {near_two:.2f}; L0,1: at least {float(near_one):.2f} = α; outputs 0 and n"
        " never occur",
        {
            "some outputs are never reported, 0 and n": starved,
            "some L2 optimum for n = 3, 4 or 5 always reports 2": any(
                some_optimum(n, alpha, L2(), (2,), Q(1)) for n in (3, 4, 5)
            ),
            "some L1 optimum for n = 7 reports 2 or 5 with at least 0.7": 62 in two_or_five,
            "some L0,1 optimum for n = 5 reports 1 or 4 with over 0.9": 62 in one_or_four,
        },
        {
            "outputs 0 and n are never reported": starved,
            f'"always 2" (n = 4) is optimal at other α: hundredths from {always_two[0]} on': (
                always_two[0] > 62
            ),
            f'"2 or 5" is true at hundredths {", ".join(map(str, two_or_five))} only': bool(
                two_or_five
            ),
            f'"1 or 4" has probability α, so it is true from {one_or_four[0]} on': (
                near_one == alpha and one_or_four[0] >= 90
            ),
            "no hundredth makes all three true": (
                not set(two_or_five) & set(one_or_four) & set(always_two)
            ),
        },
        remarks=(
            "optima are not unique: each remark is tested by asking for it and comparing proved"
            " optima"
        ),
        detail=detail,
    )


CLAIMS = (figure_6_1,)

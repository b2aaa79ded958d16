"""Qardaji, Yang and Li, 3.1 and 3.2: errors of hierarchies without inference."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

from scipy.optimize import brentq

from rangeq.central import CentralFlat
from rangeq.central.regions import FewestNodes
from rangeq.core.boxes import tree_over
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, table

CASES = ((2, 3), (2, 6), (3, 3), (4, 4), (16, 2), (16, 3))
"""Branching and height of the trees that formulas are checked on, exactly."""


def names(cases: tuple[tuple[int, int], ...]) -> str:
    return ", ".join(f"{b}^{h}" for b, h in cases)


def nodes_used(b: int, h: int) -> list[int]:
    """How many nodes of each level all ranges of b^h cells use, from the top."""
    return FewestNodes(tree_over((b**h,), b), [1] * h).used()


@cache
def plain(b: int, h: int) -> Fraction:
    """The average variance of H_b over b^h cells without inference, in units of V_u: exact."""
    n = b**h
    return Fraction(2 * sum(nodes_used(b, h)) * h**2, n * (n + 1))


@claim(
    "Section 3.1",
    "average MSE of the flat method",
    "(N + 2) / 3 V_u",
    by="rangeq.central.CentralFlat.average_variance",
    tolerance="exact",
)
def flat(_: Settings) -> Outcome:
    sizes = (1, 2, 16, 1000)
    holds = all(
        CentralFlat(n, 1).average_variance(exact=True) == Fraction(n + 2, 3) * 2 for n in sizes
    )
    return Outcome(
        f"the same, exactly, for N = {', '.join(map(str, sizes))}",
        agrees(holds),
        "V_u = 2 / epsilon^2.",
    )


def printed_uses(b: int, h: int, level: int) -> Fraction:
    """Equation (2); level 1 is that of the leaves."""
    n = b**h
    return (b - 1) * (Fraction(n * n, 2) - Fraction(n * (b + 1) * b ** (level - 1), 3) + n)


@claim(
    "Equation (2)",
    "how often nodes of a level are used",
    "M(l) = (b-1) (N^2/2 - N (b+1) b^(l-1) / 3 + N)",
    tolerance="exact",
    kind=Kind.CONSTANT,
)
def uses(_: Settings) -> Outcome:
    """The printed number of nodes of each level that all ranges use, and their count.

    The root is not asked.
    """
    lower, top, short = True, True, set()
    for b, h in CASES:
        used = nodes_used(b, h)[::-1]
        lower &= all(used[level - 1] == printed_uses(b, h, level) for level in range(1, h))
        top &= used[-1] == printed_uses(b, h, h)
        short.add(used[-1] - printed_uses(b, h, h) == b)
    return Outcome(
        "exact below the top level; there b nodes more: the range of everything",
        errs(lower and top, lower and short == {True}),
        "The root is not asked (section 3.2), so its children answer the whole range; the formula"
        f" lets the root do it. Counted for b^h = {names(CASES)}.",
    )


@claim(
    "Proposition 1, (1)",
    "average MSE of H_b",
    "average = N/(N+1) ((b-1) h^3 - 2(b+1) h^2 / 3 + O(b h / N)) V_u",
    tolerance="exact",
    kind=Kind.CONSTANT,
)
def proposition_1(_: Settings) -> Outcome:
    """What is left over equation (1)'s leading terms, in units of b h / N and of b h^3 / N."""
    rows, ratios, bounded = [], [], True
    for b in (2, 4, 16):
        for h in (4, 8, 16, 32):
            n = b**h
            total = sum(nodes_used(b, h))
            leading = Fraction(n, n + 1) * ((b - 1) * h**3 - Fraction(2 * (b + 1) * h**2, 3))
            rest = Fraction(2, n * (n + 1)) * total * h**2 - leading
            ratios.append((h, rest / Fraction(b * h, n)))
            bounded &= abs(rest) <= Fraction(5 * b * h**3, n)
            rows.append(
                [b, h, f"{float(ratios[-1][1]):.4g}", f"{float(rest / Fraction(b * h**3, n)):.4g}"]
            )
    grows = all(
        later[1] > 3 * earlier[1] for earlier, later in pairwise(ratios) if later[0] > earlier[0]
    )
    return Outcome(
        "leading terms as printed; what is left is of order b h^3 / N",
        errs(not grows, bounded),
        "What is left is at most 5 b h^3 / N, and over b h / N it more than triples whenever h"
        " doubles.",
        table(["b", "h", "rest / (b h / N)", "rest / (b h^3 / N)"], rows),
    )


def approximation(b: int, h: int) -> float:
    """Equation (3)."""
    return (b - 1) * h**3 - 2 * (b + 1) * h**2 / 3


@claim(
    "Equations (3), (4)",
    "its approximation",
    "(b-1) h^3 - 2(b+1) h^2 / 3; b = 2: h^3 - 2 h^2",
    tolerance="5 %",
)
def equation_3(_: Settings) -> Outcome:
    cases = ((2, 8), (2, 10), (2, 16), (4, 8), (16, 2), (16, 4))
    rows = [
        [f"{b}^{h}", f"{approximation(b, h):.2f}", f"{float(plain(b, h)):.2f}"] for b, h in cases
    ]
    worst = max(abs(approximation(b, h) / float(plain(b, h)) - 1) for b, h in cases)
    binary = all(approximation(2, h) == h**3 - 2 * h**2 for h in range(1, 20))
    return Outcome(
        f"within {worst:.1%} of the exact average",
        agrees(worst < 0.05 and binary),
        "Tolerance 5 %, N = 2^8 to 2^16.",
        table(["N", "equation (3), V_u", "exact, V_u"], rows),
    )


@claim(
    "Section 3.2, optimal b",
    "branching for very large N",
    "b near 16.8, where (-3b + b log b + 3) / (b log^3 b) = 0",
    tolerance="0.05; the slope 1e-6",
    kind=Kind.MISPRINT,
)
def branching_of_large_domains(_: Settings) -> Outcome:
    """The root of the derivative, and its denominator by a difference quotient."""
    found = brentq(lambda b: b * math.log(b) - 3 * (b - 1), 2, 100)
    b, step = 10.0, 1e-6
    slope = (
        (b + step - 1) / math.log(b + step) ** 3 - (b - step - 1) / math.log(b - step) ** 3
    ) / (2 * step)
    third, fourth = (
        (-3 * b + b * math.log(b) + 3) / (b * math.log(b) ** power) for power in (3, 4)
    )
    return Outcome(
        f"b = {found:.3f}; the derivative has log^4 b below",
        errs(
            math.isclose(slope, third, rel_tol=1e-6),
            math.isclose(slope, fourth, rel_tol=1e-6) and abs(found - 16.8) < 0.05,
        ),
        f"The root is right (tolerance 0.05). Slope at b = 10: {slope:.5f}; printed formula"
        f" {third:.5f}, with log^4 {fourth:.5f}.",
    )


@claim(
    "Section 3.2, 16 against 2",
    "what b = 16 gains",
    "(log2 16)^3 / (16 - 1) = 4.27; MSE less by a factor of more than 4",
    tolerance="the printed digits",
)
def gain_of_16(_: Settings) -> Outcome:
    rows, ratios = [], []
    for bits in (8, 16, 24, 32):
        ratios.append(float(plain(2, bits) / plain(16, bits // 4)))
        rows.append([f"2^{bits}", f"{ratios[-1]:.3f}"])
    return Outcome(
        f"64/15 = {64 / 15:.2f}; exactly {ratios[0]:.2f} at N = 2^8, {ratios[1]:.2f} at 2^16,"
        f" {ratios[-1]:.2f} at 2^32",
        agrees(round(64 / 15, 2) == 4.27 and min(ratios) > 4),
        "Without inference. 4.27 is the limit for large N.",
        table(["N", "MSE of H_2 over that of H_16"], rows),
    )


CLAIMS = (
    flat,
    uses,
    proposition_1,
    equation_3,
    branching_of_large_domains,
    gain_of_16,
)

"""Qardaji, Yang and Li, 3.3: constrained inference."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from rangeq.central import Hierarchy
from rangeq.core.boxes import tree_over
from rangeq.core.tree_inference import LevelInference
from reproduction.central.hierarchies import CASES, names, plain
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, table


@claim(
    "Figure 1",
    "weights after inference, N = 8",
    "n7' = 13/21 n7 + 5/21 n3 + 1/7 n1 - ...; Var[q] = 399/441 V_O, instead of 2 V_O",
    tolerance="exact",
)
def figure_1(_: Settings) -> Outcome:
    """Rational least squares on the tree of eight leaves: nodes n1 .. n14, level by level."""
    blocks = [(start, size) for size in (4, 2, 1) for start in range(0, 8, size)]
    rows = [[int(start <= cell < start + size) for cell in range(8)] for start, size in blocks]
    information = [[sum(row[i] * row[k] for row in rows) for k in range(8)] for i in range(8)]
    cells = solved(information, [[row[i] for row in rows] for i in range(8)])

    def weights(**printed: Fraction) -> list[Fraction]:
        return [printed.get(f"n{k}", Fraction(0)) for k in range(1, 15)]

    f = Fraction
    shared = {"n3": f(5, 21), "n1": f(1, 7), "n4": f(-2, 21), "n9": f(-1, 21), "n10": f(-1, 21)}
    ninth = {"n4": f(5, 21), "n1": f(1, 7), "n3": f(-2, 21), "n7": f(-1, 21), "n8": f(-1, 21)}
    query = {
        "n1": f(3, 7),
        "n3": f(8, 21),
        "n4": f(1, 21),
        "n7": f(4, 21),
        "n8": f(4, 21),
        "n9": f(11, 21),
        "n10": f(-10, 21),
    }
    leaves = cells[0] == weights(**shared, n7=f(13, 21), n8=f(-8, 21)) and cells[1] == weights(
        **shared, n8=f(13, 21), n7=f(-8, 21)
    )
    leaves &= cells[2] == weights(**ninth, n9=f(13, 21), n10=f(-8, 21))
    first_three = [sum(column, f(0)) for column in zip(*cells[:3], strict=True)]
    variance = sum((w * w for w in first_three), f(0))
    return Outcome(
        f"all weights of n7', n8', n9' and q; Var[q] = {variance} V_O",
        agrees(leaves and first_three == weights(**query) and variance == f(399, 441)),
        "Exactly, by rational least squares; 19/21 = 399/441. The text names q = n7 + n8 + n9, its"
        " first three leaves.",
    )


def solved(matrix: list[list[int]], right: list[list[int]]) -> list[list[Fraction]]:
    """Gauss-Jordan elimination over the rationals."""
    n = len(matrix)
    rows = [[Fraction(x) for x in (*row, *extra)] for row, extra in zip(matrix, right, strict=True)]
    for i in range(n):
        # The matrix is positive definite: no pivot is 0
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def from_below(b: int, variances: list[Fraction]) -> list[Fraction]:
    """Algorithm 1, lines 5 to 8: the best estimate of a node from itself and its subtree.

    From the leaves up.
    """
    found = [variances[0]]
    for own in variances[1:]:
        found.append(own * b * found[-1] / (own + b * found[-1]))
    return found


def from_above(b: int, variances: list[Fraction], below: list[Fraction]) -> list[Fraction]:
    """Algorithm 1, lines 9 to 12: from the rest of the hierarchy and the node itself.

    From the leaves up.
    """
    found = [variances[-1]]
    for own, siblings in zip(variances[-2::-1], below[-2::-1], strict=True):
        parent = found[0] + (b - 1) * siblings
        found.insert(0, own * parent / (own + parent))
    return found


def node_variances(b: int, variances: list[Fraction]) -> list[Fraction]:
    """The exact variances of nodes after inference, from the leaves up."""
    h = len(variances)
    errors = LevelInference(tree_over((b**h,), b), variances[::-1])
    last = np.array([[b**level - 1 for level in range(h)]])
    found: list[Fraction] = errors.variance(np.zeros_like(last), last).tolist()
    return found


@claim(
    "Proposition 3",
    "weighted averaging",
    "b^(l-1) / (1 + b + ... + b^(l-1)) V_O; b = 2: 1, 2/3, 4/7, 8/15",
    tolerance="exact",
)
def proposition_3(_: Settings) -> Outcome:
    holds = True
    for b, h in CASES:
        found = from_below(b, [Fraction(1)] * h)
        for level, variance in enumerate(found, 1):
            holds &= variance == Fraction(b ** (level - 1), sum(b**i for i in range(level)))
            holds &= variance > Fraction(b - 1, b) and (
                level == 1 or variance <= Fraction(b, b + 1)
            )
    series = from_below(2, [Fraction(1)] * 4)
    return Outcome(
        ", ".join(map(str, series)),
        agrees(holds and series == [1, Fraction(2, 3), Fraction(4, 7), Fraction(8, 15)]),
        f"Exactly, with its two bounds, for b^h = {names(CASES)}.",
    )


@claim(
    "Proposition 4",
    "variances of nodes after inference",
    "every node has at least (b-1)/(b+1) V_O; in deep trees middle levels come near it, the"
    " ends are nearer (b-1)/b",
    tolerance="0.02 for words",
)
def proposition_4(_: Settings) -> Outcome:
    rows, bound, middle, ends = [], True, True, True
    for b, h in ((2, 11), (3, 7), (4, 6), (16, 4)):
        found = node_variances(b, [Fraction(1)] * h)
        low, high = Fraction(b - 1, b + 1), Fraction(b - 1, b)
        bound &= min(found) > low
        if h > 4:
            middle &= min(found) - low < Fraction(1, 50) and 0 < found.index(min(found)) < h - 1
            ends &= all(abs(end - high) < end - low for end in (found[0], found[-1]))
        rows.append(
            [f"{b}^{h}", *(f"{float(x):.4f}" for x in (found[0], min(found), found[-1], low, high))]
        )
    return Outcome(
        "so they are",
        agrees(bound and middle and ends),
        "Exact variances. Near: within 0.02 V_O of the bound, in the trees of more than four"
        " levels.",
        table(["N", "leaves", "least", "top", "(b-1)/(b+1)", "(b-1)/b"], rows),
    )


@claim(
    "Section 3.3, two levels",
    "variance of the sums of k children",
    "1/(b-1) sum of Var(Z_k) = (b(b-1)(b+1) V^2 + 3b(b-1) V' V) / (6 (V' + b V)); in all"
    " (b-1)(b+4) / (3b(b+1))",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def two_levels(_: Settings) -> Outcome:
    printed, corrected, last = True, True, True
    for b in (2, 3, 16):
        v, above = Fraction(3, 7), Fraction(5, 11)
        total = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b))
        right = (b * (b - 1) * (b + 1) * v * v + 3 * b * (b - 1) * above * v) / (
            6 * (above + b * v)
        )
        printed &= total / (b - 1) == right
        corrected &= total == right
        v = above = Fraction(b - 1, b)
        mean = sum(k * v * (above + (b - k) * v) / (above + b * v) for k in range(1, b)) / (b - 1)
        last &= mean / Fraction(b, 2) == Fraction((b - 1) * (b + 4), 3 * b * (b + 1))
    return Outcome(
        "the right-hand side is the sum, without 1/(b-1); the last factor is right",
        errs(printed, corrected and last),
        "Exactly, for b = 2, 3, 16. Two slips that cancel: the next line has the factor again.",
    )


@claim(
    "Section 3.3, factor 3",
    "what inference gains",
    "inference reduces the variance by about 3 for large b: an over- and an underestimate, the"
    " latter for b = 2",
    by="rangeq.central.Hierarchy.average_variance",
    tolerance="2 to 3 for words",
)
def gain_of_inference(_: Settings) -> Outcome:
    rows, at_16 = [], 0.0
    for b, h in ((2, 12), (4, 6), (8, 4), (16, 3), (64, 2)):
        with_it = float(Hierarchy(b**h, 1, b).average_variance()) / 2
        ratio, estimated = float(plain(b, h)) / with_it, 3 * b * (b + 1) / ((b - 1) * (b + 4))
        at_16 = ratio if b == 16 else at_16
        rows.append([f"{b}^{h}", f"{estimated:.2f}", f"{ratio:.2f}"])
    return Outcome(
        f"exactly, at N = 2^12: {rows[0][2]} for b = 2, {at_16:.2f} for b = 16",
        agrees(float(rows[0][2]) > float(rows[0][1]) and 2 < at_16 < 3),
        "The two-level estimate against the exact ratio of averages over all ranges: too low for"
        " small b, too high for large b.",
        table(["N", "estimated factor", "exact factor"], rows),
    )


@claim(
    "Algorithm 1",
    "variances from below and from above",
    "variances from below and from above, level by level",
    tolerance="exact",
)
def algorithm_1(_: Settings) -> Outcome:
    """With unequal budgets as well: both passes together give the variances of least squares."""
    holds = True
    for b, h in CASES:
        for budgets in ([1] * h, list(range(1, h + 1))):
            variances = [Fraction(1, share**2) for share in budgets]
            below = from_below(b, variances)
            above = from_above(b, variances, below)
            combined = [above[0]] + [
                b * v * a / (b * v + a) for v, a in zip(below, above[1:], strict=False)
            ]
            holds &= combined == node_variances(b, variances)
    return Outcome(
        "combined, those of least squares",
        agrees(holds),
        f"Exactly, for equal and for linearly growing budgets, b^h = {names(CASES)}.",
    )


CLAIMS = (
    figure_1,
    proposition_3,
    proposition_4,
    two_levels,
    gain_of_inference,
    algorithm_1,
)

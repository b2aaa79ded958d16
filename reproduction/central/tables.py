"""Qardaji, Yang and Li, table 3, and the claims of the introduction."""

from __future__ import annotations

from functools import cache, partial

from rangeq.central import CentralFlat, Hierarchy, Wavelet, best_branching
from reproduction.report import (
    Kind,
    Number,
    Outcome,
    Settings,
    agrees,
    claim,
    errs,
    not_reproduced,
    table,
)

PRINTED_TABLE = {
    "Wavelet": ("221.62", "306.31", "410.29", "536.32"),
    "HH16c": ("79.23", "164.48", "185.94", "213.87"),
    "HH2c": ("220.06", "305.54", "409.48", "535.63"),
}
"""Average variances over all ranges, epsilon = 1, D = 2^8 to 2^11 (thesis, table 5.4; range
queries, figure 7).
"""


@cache
def exact_table() -> dict[str, list[float]]:
    sizes = [1 << k for k in range(8, 12)]
    return {
        "Wavelet": [Wavelet(n, 1).average_variance() for n in sizes],
        "HH16c": [Hierarchy(n, 1, 16).average_variance() for n in sizes],
        "HH2c": [Hierarchy(n, 1, 2).average_variance() for n in sizes],
    }


def row(name: str, off: tuple[int, ...], most: float, remarks: str, _: Settings) -> Outcome:
    """A row of the table: right but for the columns `off`, where it is `most` off at most."""
    found, printed = exact_table()[name], PRINTED_TABLE[name]
    right = [f"{value:.2f}" == text for value, text in zip(found, printed, strict=True)]
    apart = [float(text) / value - 1 for value, text in zip(found, printed, strict=True)]
    return Outcome(
        ", ".join(f"{value:.2f}" for value in found),
        errs(
            all(right),
            all(
                (0 < abs(far) < most) if k in off else same
                for k, (same, far) in enumerate(zip(right, apart, strict=True))
            ),
        ),
        "Printed over exact: " + ", ".join(f"{far:+.2%}" for far in apart) + ". " + remarks,
        numbers=tuple(
            Number(f"{name}, 2^{k}", text, f"{value:.2f}")
            for k, text, value in zip(range(8, 12), printed, found, strict=True)
        ),
    )


EXACT = "The table is said to be exact."
table_of_hierarchies = claim(
    "Table 3, H_2",
    "exact average variances",
    "HH2: 220.06, 305.54, 409.48, 535.63",
    by="rangeq.central.Hierarchy.average_variance",
    tolerance="the printed digits",
    kind=Kind.CONSTANT,
    same_as="Figure 7 (Table 5.4), HH2c",
)(partial(row, "HH2c", (2, 3), 0.003, EXACT))

table_of_sixteen = claim(
    "Table 3, H_16",
    "exact average variances",
    "HH16: 79.23, 164.48, 185.94, 213.87",
    by="rangeq.central.Hierarchy.average_variance",
    tolerance="the printed digits",
    kind=Kind.CONSTANT,
    same_as="Figure 7 (Table 5.4), HH16c",
)(
    partial(
        row,
        "HH16c",
        (1, 2, 3),
        0.01,
        EXACT + " 16 does not divide 2^9 to 2^11; here the top level has the smaller branching."
        " At 2^9 orders [2, 16, 16], [16, 2, 16], [16, 16, 2] have 163.48, 158.67, 150.74; the"
        " printed 164.48 is the first and 1, and the ratios below it are computed with it.",
    )
)

table_of_wavelets = claim(
    "Table 3, wavelet",
    "exact average variances",
    "Wavelet: 221.62, 306.31, 410.29, 536.32",
    by="rangeq.central.Wavelet.average_variance",
    tolerance="the printed digits",
    kind=Kind.CONSTANT,
    same_as="Figure 7 (Table 5.4), wavelet",
)(
    partial(
        row,
        "Wavelet",
        (0, 1, 3),
        0.003,
        EXACT + " Over ranges of two cells and more it would be 222.44, 306.88 at 2^8, 2^9.",
    )
)


@claim(
    "Table 3, ratios",
    "wavelet and H_2 against H_16",
    "Wavelet over HH16: 2.7971, 1.8622, 2.20, 2.5077; HH2 over HH16: 2.777, 1.8576, 2.202, 2.5044",
    by="rangeq.central.Hierarchy.average_variance",
    tolerance="1 %",
)
def ratios(_: Settings) -> Outcome:
    found = exact_table()
    wavelet, two = (
        [value / sixteen for value, sixteen in zip(found[name], found["HH16c"], strict=True)]
        for name in ("Wavelet", "HH2c")
    )
    printed = {
        "Wavelet": ("2.7971", "1.8622", "2.20", "2.5077"),
        "HH2c": ("2.777", "1.8576", "2.202", "2.5044"),
    }
    both = {"Wavelet": wavelet, "HH2c": two}
    return Outcome(
        "; ".join(", ".join(f"{x:.4f}" for x in own) for own in both.values()),
        agrees(
            all(
                abs(value / float(text) - 1) < 0.01
                for name, own in both.items()
                for value, text in zip(own, printed[name], strict=True)
            )
        ),
        "They inherit the numbers above. The thesis: at least 1.86 and 1.8576 in all columns; so"
        " they are.",
        numbers=tuple(
            Number(f"{name} over HH16c, 2^{k}", text, f"{value:.4f}")
            for name, own in both.items()
            for k, text, value in zip(range(8, 12), printed[name], own, strict=True)
        ),
    )


@claim(
    "Introduction, budgets",
    "equal, geometric and optimal budgets",
    "with the optimal branching and inference, equal budgets suffice",
    by="rangeq.central.Hierarchy.average_variance",
    tolerance="5 % for words",
)
def budgets(_: Settings) -> Outcome:
    rows, losses = [], {}
    for b, h in ((2, 12), (4, 6), (16, 3), (64, 2)):
        kinds = [
            Hierarchy(b**h, 1, b, budget=kind).average_variance()
            for kind in ("equal", "geometric", "optimal")
        ]
        losses[b] = kinds[0] / kinds[2] - 1
        rows.append(
            [f"{b}^{h}", *(f"{value:.2f}" for value in kinds), f"{kinds[0] / kinds[2]:.3f}"]
        )
    return Outcome(
        f"b = 16: {losses[16]:.1%} above the best budgets; b = 2: {losses[2]:.0%}",
        agrees(losses[16] < 0.05),
        "N = 2^12, tolerance 5 %. For small b they do not suffice; the best budgets of all"
        " branchings are nearly the same trees.",
        table(["N", "equal", "geometric (2^(1/3))", "optimal", "equal over optimal"], rows),
    )


@claim(
    "Introduction, dimensions",
    "hierarchies against flat in several dimensions",
    "one dimension: far better than flat; two: much less so; three and more: flat is almost"
    " always better",
    by="rangeq.central.best_branching",
    tolerance="none",
)
def dimensions(settings: Settings) -> Outcome:
    cases = [
        (1 << 12, 1, 40),
        (1 << 6, 2, 64),
        (1 << 4, 3, 16),
        (1 << 5, 3, 32),
        (1 << 6, 3, 64),
        (1 << 7, 3, 40),
        (1 << 3, 4, 8),
    ]
    rows, found = [], {}
    for side, d, most in cases:
        shape = (side,) * d
        unequal = best_branching(shape, 1, drawn=False).best
        every = ((Hierarchy(shape, 1, b).average_variance(), b) for b in range(2, most))
        (variance, best), one = min(every), CentralFlat(shape, 1).average_variance()
        found[side, d] = variance / one
        lists = " x ".join(map(str, unequal.fanouts))
        ratio = f"{unequal.average_variance / one:.3f}"
        rows.append([d, f"{side}^{d}", best, f"{found[side, d]:.3f}", lists, ratio])
    small = [ratio for (side, d), ratio in found.items() if d >= 3 and side < 128]
    return Outcome(
        f"2^12 cells: {found[1 << 12, 1]:.2f}, {found[64, 2]:.2f}, {found[16, 3]:.2f},"
        f" {found[8, 4]:.2f} of the variance of flat",
        agrees(found[1 << 12, 1] < 0.2 and 0.5 < found[64, 2] < 1 and min(small) > 1),
        "The best equal branching, with inference. In three dimensions such a hierarchy wins only"
        " from 128^3 cells on; with few children at the bottom and many at the top, which the paper"
        " does not consider, from 32^3 on (0.86 of flat; 64^3: 0.58).",
        table(
            [
                "dimensions",
                "cells",
                "best equal branching",
                "variance over that of flat",
                "best of unequal ones",
                "variance over that of flat",
            ],
            rows,
        ),
    )


sections_3_4_to_5 = claim(
    "Sections 3.4 to 5",
    "the other tables and figures, among them those on real data",
    "-",
    tolerance="none",
    kind=Kind.DATA,
)(not_reproduced("The text used does not have them, and no other source quotes them."))


CLAIMS = (
    table_of_hierarchies,
    table_of_sixteen,
    table_of_wavelets,
    ratios,
    budgets,
    dimensions,
    sections_3_4_to_5,
)

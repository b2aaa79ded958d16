"""Thesis 4.3: orders of errors, and bits of reports."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise, product

from examples.marginal_figures import LN3, SIX
from frequency.marginals import InpHT, InpPS, InpRR, MargHT, MarginalProtocol, MargPS, MargRR
from reproduction.marginals.studies import binary
from reproduction.report import Outcome, Settings, claim, figures, judged, table


def of_order(
    kind: type[MarginalProtocol], formula: str, bound: Callable[[int, int], float]
) -> Callable[[Settings], Outcome]:
    """The predicted error over a bound of its order, for growing d.

    The error is the total variation, times epsilon sqrt(N).
    """

    def outcome(settings: Settings) -> Outcome:
        n, dims = 1 << 18, (4, 6, 8) if settings.quick else (4, 6, 8, 12, 16)
        rows: dict[tuple[int, int], list[float]] = {}
        for d, k in product(dims, (1, 2, 3)):
            domain, scale = binary(d), math.sqrt(n) / bound(d, k)
            rows[d, k] = [
                kind(domain, k, epsilon).total_variation(n, list(domain)[:k]) * epsilon * scale
                for epsilon in (0.2, 1.1)
            ]
        largest = [max(max(rows[d, k]) for k in (1, 2, 3)) for d in dims]
        detail = table(
            ["d", "k", "ε = 0.2", "ε = 1.1"], ([d, k, *figures(v, 3)] for (d, k), v in rows.items())
        )
        return judged(
            f"predicted error over that: at most {max(largest):.2f}",
            {
                "with a constant of at most 1": max(largest) <= 1,
                "the ratio does not grow with d": all(b <= 1.02 * a for a, b in pairwise(largest)),
            },
            remarks=(
                f"{kind.__name__}, even records, k = 1, 2, 3; predictions agree with what is"
                " measured (Figure 4.3)"
            ),
            detail=(
                f"{kind.__name__}: expected total variation, times ε √N / ({formula})\n\n{detail}"
            ),
        )

    return outcome


@claim(
    "Section 4.3.3, comparison",
    "all six by their bounds",
    "InpHT best in theory; InpPS worse than InpRR by 2^(d/2); MargPS and MargRR close for small"
    " k, whatever the factor 2^(k/2)",
    by="frequency.marginals.MarginalProtocol.total_variation",
    tolerance="a factor 2 for words",
)
def comparison(settings: Settings) -> Outcome:
    dims = (8, 12) if settings.quick else (8, 12, 16)
    rows = {}
    for d, k in product(dims, (1, 2, 3)):
        domain = binary(d)
        rows[d, k] = {
            kind.__name__: kind(domain, k, LN3).total_variation(1 << 18, list(domain)[:k])
            for kind in SIX
        }
    factor = [rows[d, k]["MargPS"] / rows[d, k]["MargRR"] for d in dims for k in (2, 3)]
    return judged(
        f"InpPS / InpRR at d = {dims[-1]}, k = 2:"
        f" {rows[dims[-1], 2]['InpPS'] / rows[dims[-1], 2]['InpRR']:.0f}; MargPS / MargRR"
        f" {min(factor):.2f} to {max(factor):.2f}",
        {
            "InpHT has the least predicted error for k = 2, 3": all(
                rows[d, k]["InpHT"] == min(rows[d, k].values()) for d in dims for k in (2, 3)
            ),
            "InpPS / InpRR within a factor 2 of 2^(d/2) / 4": all(
                0.5 < rows[d, 2]["InpPS"] / rows[d, 2]["InpRR"] / 2 ** (d / 2) * 4 < 2 for d in dims
            ),
            "MargPS has less error than MargRR for k = 2, 3, though its bound is larger": (
                max(factor) < 1
            ),
        },
        remarks=(
            "predictions for even records, N = 2^18, e^ε = 3; at that ε the ratio of InpPS and"
            " InpRR has the factor 1/4 to 1/3"
        ),
        detail=table(
            ["d", "k", *(kind.__name__ for kind in SIX)],
            ([d, k, *figures(row.values())] for (d, k), row in rows.items()),
        ),
    )


@claim(
    "Table 4.1",
    "bits of a report",
    "bits: InpRR 2^d, InpPS d, InpHT d+1, MargRR d+2^k, MargPS d+k, MargHT d+k+1",
    by="frequency.marginals.MarginalProtocol.report_bits",
    tolerance="exact",
)
def table_4_1(settings: Settings) -> Outcome:
    printed: dict[type[MarginalProtocol], Callable[[int, int], int]] = {
        InpRR: lambda d, k: 2**d,
        InpPS: lambda d, k: d,
        InpHT: lambda d, k: d + 1,
        MargRR: lambda d, k: d + 2**k,
        MargPS: lambda d, k: d + k,
        MargHT: lambda d, k: d + k + 1,
    }
    rows = {
        (d, k): {kind: kind(binary(d), k, 1.0).report_bits for kind in printed}
        for d, k in ((4, 2), (8, 2), (8, 3), (16, 2), (16, 3))
    }
    return judged(
        "d = 8, k = 2: "
        + ", ".join(f"{kind.__name__} {bits}" for kind, bits in rows[8, 2].items()),
        {
            f"{kind.__name__} at most that": all(
                bits[kind] <= allowed(d, k) for (d, k), bits in rows.items()
            )
            for kind, allowed in printed.items()
        },
        remarks=(
            "fewer where log2 of the number of marginals or coefficients is less than d. The errors"
            " are those of Theorems 3 to 5 and Lemma 7"
        ),
        detail=table(
            ["d", "k", *(kind.__name__ for kind in printed)],
            ([d, k, *bits.values()] for (d, k), bits in rows.items()),
        ),
    )


theorem_3 = claim(
    "Theorem 3",
    "error of InpRR",
    "error Õ(2^((d+k)/2) / (ε √N))",
    by="frequency.marginals.InpRR",
    tolerance="a constant of at most 1",
)(of_order(InpRR, "2^((d+k)/2)", lambda d, k: 2 ** ((d + k) / 2)))

theorem_4 = claim(
    "Theorem 4",
    "error of InpPS",
    "error Õ(2^(d+k/2) / (ε √N))",
    by="frequency.marginals.InpPS",
    tolerance="a constant of at most 1",
)(of_order(InpPS, "2^(d+k/2)", lambda d, k: 2 ** (d + k / 2)))

theorem_5 = claim(
    "Theorem 5",
    "error of InpHT",
    "error Õ((2d)^(k/2) / (ε √N))",
    by="frequency.marginals.InpHT",
    tolerance="a constant of at most 1",
)(of_order(InpHT, "(2d)^(k/2)", lambda d, k: (2 * d) ** (k / 2)))

lemma_7_margrr = claim(
    "Lemma 7, MargRR",
    "error of MargRR",
    "error Õ(2^k d^(k/2) / (ε √N))",
    by="frequency.marginals.MargRR",
    tolerance="a constant of at most 1",
)(of_order(MargRR, "2^k d^(k/2)", lambda d, k: 2**k * d ** (k / 2)))

lemma_7_margps = claim(
    "Lemma 7, MargPS",
    "error of MargPS",
    "error Õ(2^(3k/2) d^(k/2) / (ε √N))",
    by="frequency.marginals.MargPS",
    tolerance="a constant of at most 1",
)(of_order(MargPS, "2^(3k/2) d^(k/2)", lambda d, k: 2 ** (1.5 * k) * d ** (k / 2)))

lemma_7_marght = claim(
    "Lemma 7, MargHT",
    "error of MargHT",
    "error Õ(2^(3k/2) d^(k/2) / (ε √N))",
    by="frequency.marginals.MargHT",
    tolerance="a constant of at most 1",
)(of_order(MargHT, "2^(3k/2) d^(k/2)", lambda d, k: 2 ** (1.5 * k) * d ** (k / 2)))


CLAIMS = (
    theorem_3,
    theorem_4,
    theorem_5,
    lemma_7_margrr,
    lemma_7_margps,
    lemma_7_marght,
    comparison,
    table_4_1,
)

"""Thesis 4.3: variances and tail bounds."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.stats import binom

from examples.marginal_figures import LN3
from frequency.marginals import InpHT, InpPS
from reproduction.marginals.studies import binary
from reproduction.report import Kind, Outcome, Settings, claim, judged, near, table


def variance_of_sampled(ps: float, pr: float) -> float:
    """Of z* for z = 1, from its three outcomes."""
    x = 1 / (2 * pr - 1) / ps
    return ps * pr * (x - 1) ** 2 + ps * (1 - pr) * (x + 1) ** 2 + (1 - ps)


@claim(
    "Eq. 4.4",
    "variance with sampling",
    "Var[Y] <= 4 pr (1-pr) / (ps (2pr-1)²) + 1 - ps",
    tolerance="relative 1e-6",
    kind=Kind.FALSE_CLAIM,
)
def equation_4_4(settings: Settings) -> Outcome:
    grid = list(product((1.0, 0.5, 0.1, 1 / 36), (0.55, 0.75, 0.9)))
    printed = {(ps, pr): 4 * pr * (1 - pr) / (ps * (2 * pr - 1) ** 2) + 1 - ps for ps, pr in grid}
    true = {(ps, pr): 4 * pr * (1 - pr) / (ps * (2 * pr - 1) ** 2) + 1 / ps - 1 for ps, pr in grid}
    at = (1 / 36, 0.75)
    return judged(
        f"ps = 1/36 (InpHT, d = 8, k = 2), pr = 3/4: {variance_of_sampled(*at):.0f} against"
        f" {printed[at]:.0f}",
        {
            "a bound of the variance": all(
                variance_of_sampled(*c) <= v + 1e-9 for c, v in printed.items()
            )
        },
        {
            "4 pr (1-pr) / (ps (2pr-1)²) + 1/ps - 1 is the variance": all(
                near(variance_of_sampled(*c), v) for c, v in true.items() if v
            )
        },
        remarks=(
            "the estimate of those who are sampled is scaled by 1/ps after its error is taken, not"
            " before"
        ),
    )


@claim(
    "Theorem 2",
    "a tail bound for all protocols",
    "Pr[error >= c] <= 2 exp(-N c² ps (2pr-1) / (2pr (2 (1-pr)/(2pr-1) + c/3)))",
    tolerance="exact",
    kind=Kind.CONSTANT,
)
def theorem_2(settings: Settings) -> Outcome:
    n, pr = 10_000, 0.75
    x, rows = 1 / (2 * pr - 1), []
    for s in (1.0, 2.0, 3.0, 4.0):
        c = s * math.sqrt(variance_of_sampled(1, pr) / n)
        # All hold 1 and all are sampled: the mean of z* is x (2 T / n - 1), T binomial.
        low, high = n * (1 + (1 - c) / x) / 2, n * (1 + (1 + c) / x) / 2
        exact = float(
            binom.cdf(math.floor(low + 1e-9), n, pr) + binom.sf(math.ceil(high - 1e-9) - 1, n, pr)
        )
        variance, largest = variance_of_sampled(1, pr), 2 * pr / (2 * pr - 1)
        printed = 2 * math.exp(
            -n * c**2 * (2 * pr - 1) / (2 * pr * (2 * (1 - pr) / (2 * pr - 1) + c / 3))
        )
        bernstein = 2 * math.exp(-n * c**2 / (2 * variance + 2 * c * largest / 3))
        rows.append((s, c, exact, printed, bernstein))
    return judged(
        f"at 3 deviations {rows[2][2]:.1e}, printed bound {rows[2][3]:.1e}",
        {"the bound holds": all(exact <= printed for _, _, exact, printed, _ in rows)},
        {
            "Bernstein's, with 2σ² in the exponent and not σ², holds": all(
                exact <= true for *_, exact, _, true in rows
            )
        },
        remarks=(
            "N = 10^4, ps = 1, pr = 3/4, exact binomial tails. A factor of two is lost before eq."
            " 4.5; orders of magnitude do not change"
        ),
        detail=table(
            ["deviations", "c", "exact", "printed bound", "Bernstein"],
            ([s, f"{c:.4f}", *(f"{v:.2e}" for v in rest)] for s, c, *rest in rows),
        ),
    )


@claim(
    "Theorem 3, proof",
    "steps of the proof",
    "Var = 4α/(1-α)² = 4 exp(-ε/2) / (exp(ε/2) - 1)²; 1/(exp(ε/2) - 1) <= 1/ε and 1 < exp(ε/2)"
    " < 4 for 0 < ε < 2",
    tolerance="relative 1e-6",
    kind=Kind.MISPRINT,
)
def theorem_3_proof(settings: Settings) -> Outcome:
    epsilons = (0.2, 0.6, 1.0, 1.4, 1.9)
    steps = {e: 4 * math.exp(e / 2) / math.expm1(e / 2) ** 2 for e in epsilons}
    found = {}
    for e in epsilons:
        pr = math.exp(e / 2) / (1 + math.exp(e / 2))
        found[e] = variance_of_sampled(1, pr)
    return judged(
        f"ε = 1: variance {found[1.0]:.2f}, printed"
        f" {4 * math.exp(-0.5) / math.expm1(0.5) ** 2:.2f}; 1/(exp(1/2) - 1) ="
        f" {1 / math.expm1(0.5):.2f} > 1",
        {
            "the variance is 4 exp(-ε/2) / (exp(ε/2) - 1)²": all(
                near(found[e], 4 * math.exp(-e / 2) / math.expm1(e / 2) ** 2) for e in epsilons
            ),
            "1/(exp(ε/2) - 1) <= 1/ε": all(1 / math.expm1(e / 2) <= 1 / e for e in epsilons),
            "1 < exp(ε/2) < 4": all(1 < math.exp(e / 2) < 4 for e in epsilons),
        },
        {
            "the variance is 4 exp(+ε/2) / (exp(ε/2) - 1)²": all(
                near(found[e], steps[e]) for e in epsilons
            ),
            "1/(exp(ε/2) - 1) <= 2/ε": all(1 / math.expm1(e / 2) <= 2 / e for e in epsilons),
        },
        remarks="constants only: the theorem's order stands",
    )


@claim(
    "Theorem 4, proof",
    "variances of InpPS",
    "errors ps (1-ps) (D/Δ)² where the record is held and (1-ps) (D+ps-1)/Δ² elsewhere; D/Δ ="
    " 1/(1-e^-ε) + D/(e^ε-1)",
    by="frequency.marginals.InpPS",
    tolerance="relative 1e-6",
)
def theorem_4_proof(settings: Settings) -> Outcome:
    d, found = 4, []
    for epsilon in (0.2, LN3, 2.0):
        size, e = 2**d - 1, math.exp(epsilon)
        p = 1 / (1 + size / e)
        delta = size * p + p - 1
        own, other = p * (1 - p) * (size / delta) ** 2, (1 - p) * (size + p - 1) / delta**2
        mean = (own + size * other) / (size + 1)
        found.append(
            near(size / delta, 1 / (1 - 1 / e) + size / (e - 1))
            and bool(
                np.allclose(
                    InpPS(binary(d), d, epsilon).cell_variances(50, [f"a{k}" for k in range(d)]),
                    mean / 50,
                    rtol=1e-6,
                )
            )
        )
    return judged(
        f"{sum(found)} of {len(found)} ε",
        {"these are the variances of InpPS": all(found)},
        remarks="d = 4, relative 1e-6. Here D is the number of records less one",
    )


@claim(
    "Eq. 4.6",
    "variance of a coefficient of InpHT",
    "variance of a coefficient 4 T e^ε / (e^ε - 1)² + 1",
    by="frequency.marginals.InpHT",
    tolerance="relative 1e-6",
    kind=Kind.FALSE_CLAIM,
    same_as="Eq. 4.4",
)
def equation_4_6(settings: Settings) -> Outcome:
    printed, true = [], []
    for (d, k), epsilon in product(((2, 1), (3, 3), (4, 4)), (0.2, LN3, 2.0)):
        count = sum(math.comb(d, j) for j in range(1, k + 1))
        e = math.exp(epsilon)
        mine = float(4 * 1000 * InpHT(binary(d), k, epsilon).cell_variances(1000, ["a0"])[0])
        printed.append(near(mine, 4 * count * e / (e - 1) ** 2 + 1))
        true.append(near(mine, 4 * count * e / (e - 1) ** 2 + count - 1))
    t = 36
    return judged(
        f"T = 36, ε = ln 3: {4 * t * 3 / 4 + t - 1:.0f} against {4 * t * 3 / 4 + 1:.0f}",
        {"that is InpHT's": all(printed)},
        {"4 T e^ε / (e^ε - 1)² + T - 1 is": all(true)},
        remarks=(
            "each user reports one of T coefficients, and that choice has a variance of its own;"
            " the order stands"
        ),
    )


CLAIMS = (
    equation_4_4,
    theorem_2,
    theorem_3_proof,
    theorem_4_proof,
    equation_4_6,
)

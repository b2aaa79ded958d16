"""Range queries, section 3: frequency oracles."""

from __future__ import annotations

import math

import numpy as np

from frequency import HRR, OLH, OUE
from reproduction.ranges.variances import printed_variance
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, table


@claim(
    "Section 3.2",
    "variances of the oracles",
    "V_F = 4 e^eps / (N (e^eps - 1)^2) of OUE, OLH and HRR alike",
    by="frequency.HRR",
    tolerance="0.1 %; OLH 3 %",
    kind=Kind.FALSE_CLAIM,
)
def oracles(_: Settings) -> Outcome:
    rows, equal, corrected = [], True, True
    for epsilon in (0.2, 0.6, 1.1, 1.4):
        one = printed_variance(epsilon)
        found = [float(oracle(1 << 14, epsilon).variance(1, 0.0)) for oracle in (OUE, OLH, HRR)]
        equal &= all(abs(value / one - 1) < 0.03 for value in found)
        corrected &= (
            abs(found[0] / one - 1) < 1e-3
            and abs(found[1] / one - 1) < 0.03
            and abs(found[2] / (one + 1) - 1) < 1e-3
        )
        rows.append([f"{epsilon:g}", *(f"{value:.4f}" for value in (one, *found, one + 1))])
    return Outcome(
        f"HRR: that and 1/N; at epsilon = 1.1 {rows[2][4]} and not {rows[2][1]}",
        errs(equal, corrected),
        "The choice of one of D coefficients has a variance too. OUE to 0.1 %, OLH to 3 % (its hash"
        " has a prime power of values). Paper, 3.2; thesis, 5.2.",
        table(["epsilon", "printed, N V_F", "OUE", "OLH", "HRR", "printed + 1"], rows),
    )


@claim(
    "Section 3.2, OUE",
    "its estimator",
    "OUE: (sum / N + N / (e^eps + 1)) / (1/2 - 1 / (e^eps + 1))",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def estimator(_: Settings) -> Outcome:
    """The mean of the printed estimator for an item of frequency f.

    Reports of ones have the mean q + f (1/2 - q).
    """
    n, f = 1000, 0.2
    q = 1 / (math.exp(1.1) + 1)
    ones = q + f * (0.5 - q)
    printed, corrected = (ones + n * q) / (0.5 - q), (ones - q) / (0.5 - q)
    return Outcome(
        f"minus 1 / (e^eps + 1): at f = 0.2, N = 1000 the mean is {corrected:.3f}, of the printed"
        f" estimator {printed:.1f}",
        errs(abs(printed - f) < 1e-9, abs(corrected - f) < 1e-9),
        "Paper, 3.2; not in chapter 5.",
    )


@claim(
    "Figure 1",
    "Hadamard matrix",
    "the Hadamard matrix of D = 8",
    by="frequency.HRR",
    tolerance="exact",
)
def hadamard(_: Settings) -> Outcome:
    printed = """
        1 1 1 1 1 1 1 1  1 -1 1 -1 1 -1 1 -1  1 1 -1 -1 1 1 -1 -1  1 -1 -1 1 1 -1 -1 1
        1 1 1 1 -1 -1 -1 -1  1 -1 1 -1 -1 1 -1 1  1 1 -1 -1 -1 -1 1 1  1 -1 -1 1 -1 1 1 -1
    """
    matrix = np.array([int(x) for x in printed.split()]).reshape(8, 8)
    own = [[1 - 2 * ((i & j).bit_count() & 1) for j in range(8)] for i in range(8)]
    return Outcome(
        "(-1)^<i, j>, entry by entry; "
        + f"HRR reports {HRR(8, 1.0).report_bits} bits (log2 D + 1)",
        agrees(bool((matrix == own).all()) and HRR(8, 1.0).report_bits == 4),
        "Paper only.",
    )


CLAIMS = (
    oracles,
    estimator,
    hadamard,
)

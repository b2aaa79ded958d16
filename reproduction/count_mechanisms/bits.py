"""Thesis chapter 2: the Laplace mechanism, and reports of a user's item."""

from __future__ import annotations

import math
from fractions import Fraction as Q
from itertools import product

import numpy as np
from scipy.optimize import minimize_scalar

from frequency import GRR, OLH, OUE, SUE
from mechdesign.noise.discrete import DiscreteLaplace
from reproduction.report import Kind, Outcome, Settings, claim, figures, judged, near

EPSILONS = (0.2, 0.6, 1.1, 1.4)


@claim(
    "Theorem 1",
    "the Laplace mechanism",
    "noise of density Lap(sensitivity / epsilon) gives epsilon",
    by="mechdesign.noise.discrete.DiscreteLaplace",
    tolerance="exact",
)
def theorem_1(settings: Settings) -> Outcome:
    found = []
    for epsilon in EPSILONS:
        alpha = Q(math.exp(-epsilon))
        noise = DiscreteLaplace(alpha=alpha)
        found.append(noise.alpha == alpha)
    densities = [
        max(abs(abs(x - 1) - abs(x)) for x in np.linspace(-9, 9, 181)) * epsilon
        for epsilon in EPSILONS
    ]
    return judged(
        "log ratio of densities " + ", ".join(figures(densities, 2)),
        {
            "log ratio of shifted densities is at most epsilon (on a grid)": all(
                d <= e + 1e-12 for d, e in zip(densities, EPSILONS, strict=True)
            ),
            "the discrete noise that is drawn here has powers of exp(-epsilon)": all(found),
        },
        remarks=(
            "prior work; continuous noise is not drawn here (`rangeq.central` draws discrete"
            " Laplace noise)"
        ),
    )


@claim(
    "Lemma 1",
    "unbiased estimate of a bit",
    "f = (O - p + 1) / (2p - 1) is unbiased; a user reports the truth with probability p,"
    " otherwise a bit drawn uniformly",
    by="frequency.GRR",
    tolerance="exact",
    seed="1",
    kind=Kind.MISPRINT,
)
def lemma_1(settings: Settings) -> Outcome:
    """The estimator of a bit, in exact arithmetic."""
    grid = list(product((Q(3, 5), Q(3, 4), Q(9, 10)), (Q(0), Q(1, 3), Q(1))))
    observed = {(p, f): p * f + (1 - p) * (1 - f) for p, f in grid}
    oracle = GRR(2, 1.1)
    p = float(oracle.p)
    mine = oracle.estimate(oracle.simulate(np.array([700, 300]), np.random.default_rng(1)))
    told = float(oracle.simulate(np.array([700, 300]), np.random.default_rng(1)).counts[1]) / 1000
    return judged(
        f"p = 3/4, f = 1/3: printed {float((observed[Q(3, 4), Q(1, 3)] + Q(1, 4)) / Q(1, 2)):.3f},"
        " corrected 0.333",
        {
            "E (O - p + 1) / (2p - 1) = f": all(
                (o - p + 1) / (2 * p - 1) == f for (p, f), o in observed.items()
            ),
            "truth with p and else a uniform bit has the ratio p / (1 - p)": all(
                (p + (1 - p) / 2) / ((1 - p) / 2) == p / (1 - p) for p, _ in grid
            ),
        },
        {
            "E (O + p - 1) / (2p - 1) = f": all(
                (o + p - 1) / (2 * p - 1) == f for (p, f), o in observed.items()
            ),
            (
                "truth with p and else the other bit has the ratio p / (1 - p), "
                "and GRR(2) is that, with that estimator"
            ): near(mine.frequencies[1], (told + p - 1) / (2 * p - 1), 1e-9),
        },
        remarks=(
            "with the 1 outside the fraction, as the last step of the proof takes it, the estimator"
            " is right. The variance (Lemma 2) is of the corrected ones"
        ),
    )


@claim(
    "Lemma 2",
    "variance of randomised response",
    "Var = e^eps / (e^eps - 1)^2, whatever f",
    by="frequency.GRR",
    tolerance="relative 1e-6",
)
def lemma_2(settings: Settings) -> Outcome:
    values = {epsilon: math.exp(epsilon) / math.expm1(epsilon) ** 2 for epsilon in EPSILONS}
    return judged(
        ", ".join(figures((GRR(2, epsilon).variance(1, 0.3) for epsilon in EPSILONS), 3)),
        {
            f"f = {f}": all(
                near(float(GRR(2, epsilon).variance(1, f)), value)
                for epsilon, value in values.items()
            )
            for f in (0, 0.3, 1)
        },
        remarks=(
            f"eps = {', '.join(map(str, EPSILONS))}; relative 1e-6, for probabilities are multiples"
            " of 2^-64"
        ),
    )


@claim(
    "Lemma 3",
    "variance of unary encoding",
    "Var = O(e^(eps/2) / (1 + e^(eps/2))^2)",
    by="frequency.SUE",
    tolerance="relative 1e-6",
    kind=Kind.MISPRINT,
)
def lemma_3(settings: Settings) -> Outcome:
    printed, true = [], []
    for epsilon in EPSILONS:
        half = math.exp(epsilon / 2)
        variance = SUE(100, epsilon).variance(1)
        printed.append(variance < 1.2 * half / (half + 1) ** 2)
        true.append(near(float(variance), half / (half - 1) ** 2))
    growth = SUE(100, 0.01).variance(1) / (math.exp(0.005) / (1 + math.exp(0.005)) ** 2)
    return judged(
        f"at eps = 0.01 the variance is {growth:.0f} times that, and unbounded as eps tends to 0",
        {"of the order e^(eps/2) / (1 + e^(eps/2))^2 (within a factor 1.2)": all(printed)},
        {"exactly e^(eps/2) / (e^(eps/2) - 1)^2, its own eq. 2.6": all(true)},
        remarks="SUE, at f = 0",
    )


@claim(
    "Eqs. 2.5 to 2.7",
    "the best unary encoding",
    "least variance 4 e^eps / (e^eps - 1)^2 at p = 1/2, q = 1 / (e^eps + 1); 2.6 is not"
    " significantly more",
    by="frequency.OUE",
    tolerance="relative 1e-6",
)
def equation_2_7(settings: Settings) -> Outcome:
    oue, best = [], []
    for epsilon in EPSILONS:
        e = math.exp(epsilon)
        oue.append(near(float(OUE(100, epsilon).variance(1)), 4 * e / (e - 1) ** 2))
        least = minimize_scalar(
            lambda q, e=e: ((e - 1) * q + 1) ** 2 / ((e - 1) ** 2 * q * (1 - q)),
            bounds=(1e-6, 0.5),
            method="bounded",
        )
        best.append(abs(least.x - 1 / (e + 1)) < 1e-4)
    excess = [
        SUE(100, epsilon).variance(1) / OUE(100, epsilon).variance(1) - 1 for epsilon in EPSILONS
    ]
    return judged(
        "2.6 is more by " + ", ".join(f"{x:.1%}" for x in excess),
        {
            "q = 1 / (e^eps + 1) minimises eq. 2.5": all(best),
            "OUE has this variance": all(oue),
            "symmetric p, q cost at most 15 % more": max(excess) < 0.15,
        },
        remarks=f"eps = {', '.join(map(str, EPSILONS))}, f = 0",
    )


@claim(
    "Section 2.4.2, example",
    "truth probability of GRR",
    "eps = 1.1, D = 100: the truth probability is only 0.02",
    by="frequency.GRR",
    tolerance="the printed digits, cut off",
)
def grr_truth(settings: Settings) -> Outcome:
    p = float(GRR(100, 1.1).p)
    return judged(
        f"{p:.4f}",
        {
            "0.02, cut off after two places": math.floor(100 * p) == 2,
            "e^eps / (e^eps + D - 1), as defined there": near(
                p, math.exp(1.1) / (math.exp(1.1) + 99)
            ),
        },
        remarks="rounded it would be 0.03",
    )


@claim(
    "Lemma 4",
    "variance of GRR",
    "Var = e^eps (f (D-2) + 1) / (e^eps - 1)^2 <= e^eps (D-1) / (e^eps - 1)^2",
    by="frequency.GRR",
    tolerance="relative 1e-6",
    kind=Kind.FALSE_CLAIM,
)
def lemma_4(settings: Settings) -> Outcome:
    printed, true, final = [], [], []
    for epsilon, domain, f in product(EPSILONS, (3, 20, 1000), (0.0, 0.3, 1.0)):
        e, variance = math.exp(epsilon), float(GRR(domain, epsilon).variance(1, f))
        printed.append(near(variance, e * (f * (domain - 2) + 1) / (e - 1) ** 2))
        true.append(near(variance, (e + domain - 2 + f * (domain - 2) * (e - 1)) / (e - 1) ** 2))
        final.append(variance <= (1 + 1e-6) * e * (domain - 1) / (e - 1) ** 2)
    ratio = float(GRR(1000, 1.1).variance(1)) / (math.exp(1.1) / math.expm1(1.1) ** 2)
    return judged(
        f"at f = 0, D = 1000, eps = 1.1 the variance is {ratio:.0f} times the printed",
        {
            "the variance is e^eps (f (D-2) + 1) / (e^eps - 1)^2": all(printed),
            "the final bound": all(final),
        },
        {
            "the variance is (e^eps + D - 2 + f (D-2)(e^eps - 1)) / (e^eps - 1)^2": all(true),
            "the final bound still holds": all(final),
        },
        remarks="a lie has variance q (1 - q), not p (1 - p) / (D - 1)",
    )


@claim(
    "Section 2.4.2, GRR",
    "where GRR beats OUE",
    "GRR is among the best when D < 3 e^eps + 2",
    by="frequency.GRR",
    tolerance="exact",
)
def grr_against_oue(settings: Settings) -> Outcome:
    found = []
    for epsilon in EPSILONS:
        border = 3 * math.exp(epsilon) + 2
        found += [
            (GRR(domain, epsilon).variance(1) < OUE(domain, epsilon).variance(1))
            == (domain < border)
            for domain in range(3, 40)
        ]
    return judged(
        f"{sum(found)} of {len(found)} domains on the right side",
        {"GRR has less variance than OUE exactly where D < 3 e^eps + 2": all(found)},
        remarks=f"D = 3 .. 39, eps = {', '.join(map(str, EPSILONS))}, f = 0",
    )


@claim(
    "Section 2.4.2, OLH",
    "variance of OLH",
    "with g = e^eps + 1 the variance is OUE's",
    by="frequency.OLH",
    tolerance="relative 1e-6; 3 % where g is rounded",
)
def olh_variance(settings: Settings) -> Outcome:
    e = 3.0
    ratio = OLH(1024, math.log(e)).variance(1) / OUE(1024, math.log(e)).variance(1)
    rounded = {
        epsilon: OLH(1024, epsilon).variance(1) / OUE(1024, epsilon).variance(1)
        for epsilon in EPSILONS
    }
    return judged(
        f"ratio {ratio:.6f} at e^eps = 3; "
        + ", ".join(f"{r:.3f} at {epsilon}" for epsilon, r in rounded.items()),
        {
            "equal at e^eps = 3, g = 4": near(ratio, 1),
            "within 3 % elsewhere": all(r < 1.03 for r in rounded.values()),
        },
        remarks="g is a prime power here, which e^eps + 1 is not in general",
    )


CLAIMS = (
    theorem_1,
    lemma_1,
    lemma_2,
    lemma_3,
    equation_2_7,
    grr_truth,
    lemma_4,
    grr_against_oue,
    olh_variance,
)

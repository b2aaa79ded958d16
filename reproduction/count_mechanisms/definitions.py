"""Thesis 6.2 to 6.4: losses and properties, and what follows from their definitions."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

import numpy as np

from mechdesign import Mechanism, Privacy, named
from mechdesign.losses import L0, L1, L2, binomial
from reproduction.count_mechanisms.programs import SUBSETS, em_y, gm_l0, optimum, scaled
from reproduction.report import Kind, Outcome, Settings, claim, figures, judged


@claim(
    "Definition 22",
    "noise of GM",
    "Pr[X = d] = (1-α)^|d| / (1+α)",
    by="mechdesign.named.geometric",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def definition_22(settings: Settings) -> Outcome:
    alpha = Q(9, 10)
    printed = 1 / (1 + alpha) + 2 * sum((1 - alpha) ** d / (1 + alpha) for d in range(1, 400))
    true = (1 - alpha) / (1 + alpha) * (1 + 2 * alpha / (1 - alpha))
    n = 4
    middle = [(1 - alpha) / (1 + alpha) * alpha ** abs(i - 2) for i in range(1, n)]
    table_ = named.geometric(n, alpha=alpha).table
    return judged(
        f"α = 9/10: sums to {float(printed):.3f}",
        {"the probabilities sum to 1": abs(printed - 1) < Q(1, 1000)},
        {
            "(1-α) α^|d| / (1+α) sums to 1 (Definition 14 has it so)": true == 1,
            "clamped to 0 .. n it is GM": (
                [table_[i][2] for i in range(1, n)] == middle
                and table_[0][2]
                == sum((1 - alpha) / (1 + alpha) * alpha**d for d in range(2, 900))
                + alpha**900 / (1 + alpha)
            ),
        },
        remarks="an exponent misplaced",
    )


@claim(
    "Eq. 6.1",
    "the scaled L0 and L0,d",
    "L0 = (n+1)/n - trace/n; L0,d sums |i-j| >= d, so that L0 = L0,0",
    by="mechdesign.Mechanism.scaled_l0",
    tolerance="exact",
    kind=Kind.AMBIGUOUS,
)
def equation_6_1(settings: Settings) -> Outcome:
    cases = [
        named.geometric(5, alpha=Q(2, 3)),
        named.explicit_fair(8, alpha=Q(9, 10)),
        named.uniform(4),
    ]
    losses = [(m, m.inputs - 1, m.error_distribution().histogram) for m in cases]
    as_words = all(
        m.scaled_l0(d) == Q(n + 1, n) * sum(p for e, p in h.items() if abs(e) > d)
        for m, n, h in losses
        for d in (0, 1, 2)
    )
    return judged(
        "with >= L0,0 is (n+1)/n for every mechanism",
        {
            "(n+1)/n times the uniform O_0 is (n+1)/n - trace/n": all(
                m.scaled_l0() == Q(n + 1, n) - sum(m.table[i][i] for i in range(n + 1)) / n
                for m, n, _ in losses
            ),
            "L0 = L0,0 with |i-j| >= d": all(
                m.scaled_l0() == Q(n + 1, n) * sum(h.values()) for m, n, h in losses
            ),
        },
        {'L0 = L0,0 with |i-j| > d, as the words "more than d steps" say': as_words},
    )


@claim(
    "Example 1",
    "GM for two respondents",
    "n = 2, α = 9/10: 0.47 and 0.47, 0.05, 0.53; wrong eighteen times more probable; inner"
    " outputs vanish as α tends to 1",
    by="mechdesign.named.geometric",
    tolerance="the printed digits",
)
def example_1(settings: Settings) -> Outcome:
    t = named.geometric(2, alpha=Q(9, 10)).table
    inner = [
        max(max(row) for row in named.geometric(4, alpha=1 - Q(1, 10**k)).table[1:4])
        for k in (1, 2, 3)
    ]
    return judged(
        ", ".join(figures([t[0][1], t[2][1], t[1][1], t[0][0]]))
        + f"; wrong over right {(t[0][1] + t[2][1]) / t[1][1]}",
        {
            "the three probabilities, to two places": (
                figures([t[0][1], t[2][1], t[1][1], t[0][0]], 2) == ["0.47", "0.47", "0.05", "0.53"]
            ),
            "eighteen times": (t[0][1] + t[2][1]) / t[1][1] == 18,
            "the largest inner probability at n = 4 falls tenfold with 1 - α": (
                inner[0] > 8 * inner[1] > 64 * inner[2]
            ),
        },
    )


@claim(
    "Eqs. 6.2 to 6.9",
    "how the properties imply each other",
    "CM => CH => WH, RM => RH, F + RH => CH, F + CH => RH; RM and privacy independent",
    by="mechdesign.Mechanism.properties",
    tolerance="exact",
)
def section_6_4(settings: Settings) -> Outcome:
    """The implications among properties, over all 3 x 3 tables of quarters."""
    columns = [weights for weights in product(range(5), repeat=3) if sum(weights) == 4]
    tables = product(columns, repeat=3)
    held = [
        Mechanism(
            [[Q(c[i], 4) for c in chosen] for i in range(3)], Privacy(alpha=Q(1, 10**9))
        ).properties()
        for chosen in tables
    ]
    rules = [
        (("CM",), "CH"),
        (("CH",), "WH"),
        (("RM",), "RH"),
        (("F", "RH"), "CH"),
        (("F", "CH"), "RH"),
    ]
    converses = [("CH", "CM"), ("RH", "RM")]
    printed = {
        f"{' and '.join(causes)} imply {effect}": all(
            h[effect] for h in held if all(h[c] for c in causes)
        )
        for causes, effect in rules
    }
    printed["CH does not imply CM, nor RH RM"] = all(
        any(h[a] and not h[b] for h in held) for a, b in converses
    )
    steep = Mechanism([[1, 0], [0, 1]], Privacy(alpha=Q(1, 10**9)))
    bumpy = Mechanism(
        [[Q(entry, 10) for entry in row] for row in ([4, 3, 4], [3, 4, 3], [3, 3, 3])],
        Privacy(alpha=Q(1, 2)),
    )
    printed["row monotone without privacy, and private without row monotonicity"] = (
        steep.properties()["RM"]
        and not steep.audit().holds
        and bumpy.audit().holds
        and not bumpy.properties()["RM"]
    )
    return judged(
        "",
        printed,
        remarks=f"over {len(held)} tables",
    )


@claim(
    "Lemma 11",
    "fair optima do not depend on the prior",
    "with fairness an optimum of O_0 is one for all weights: 1 - y",
    by="mechdesign.design",
    tolerance="exact",
)
def lemma_11(settings: Settings) -> Outcome:
    n, alpha = 4, Q(4, 5)
    priors = [
        None,
        binomial(n, Q(1, 10)),
        (Q(1), Q(0), Q(0), Q(0), Q(0)),
        (Q(0), Q(1, 2), Q(1, 3), Q(0), Q(1, 6)),
    ]
    fair = {optimum(n, alpha, ("F",), L0(prior=p)).certificate.objective for p in priors}
    free = {optimum(n, alpha, (), L0(prior=p)).certificate.objective for p in priors}
    return judged(
        f"n = 4, α = 4/5: {' or '.join(figures(fair, 4))} under {len(priors)} priors",
        {
            "one value under all priors, 1 - y of EM": fair == {1 - em_y(n, alpha)},
            "without fairness it depends on them": len(free) > 1,
        },
    )


@claim(
    "Theorem 8",
    "symmetry is free",
    "the symmetrised mechanism has privacy, properties and (symmetric) objective value of the"
    " original",
    by="mechdesign.Mechanism.loss",
    tolerance="exact",
    seed="1",
)
def theorem_8(settings: Settings) -> Outcome:
    rng, kept, same, worst = np.random.default_rng(1), [], [], []
    for n in (2, 3, 4):
        for _ in range(20):
            weights = rng.integers(0, 5, (n + 1, n + 1)) + np.eye(n + 1, dtype=int) * rng.integers(
                1, 9
            )
            m = [
                [Q(int(w), int(weights[:, j].sum())) for j, w in enumerate(row)] for row in weights
            ]
            average = [
                [(m[i][j] + m[n - i][n - j]) / 2 for j in range(n + 1)] for i in range(n + 1)
            ]
            before, after = (Mechanism(t, Privacy(alpha=Q(1, 10**9))) for t in (m, average))
            has = after.properties()
            kept.append(
                has["S"]
                and all(has[k] for k, v in before.properties().items() if v)
                and after.audit().ratio <= before.audit().ratio
            )
            same.append(all(before.loss(loss) == after.loss(loss) for loss in (L0(), L1(), L2())))
            worst.append(after.loss(L0(worst_case=True)) <= before.loss(L0(worst_case=True)))
    skew = binomial(3, Q(1, 10))
    free, symmetric = (
        optimum(3, Q(4, 5), p, L0(prior=skew)).certificate.objective for p in ((), ("S",))
    )
    return judged(
        "the same, exactly",
        {
            "privacy and properties are kept": all(kept),
            "a symmetric objective, of the uniform prior, is kept": all(same),
            "the worst case does not grow": all(worst),
        },
        remarks=(
            "sixty random tables. The text before it says that objective functions are symmetric;"
            " without that symmetry may cost: counts Binomial(3, 1/10), α = 4/5:"
            f" {float(free):.4f} -> {float(symmetric):.4f}"
        ),
    )


@claim(
    "Theorem 9",
    "every subset of properties is feasible",
    "every subset of the properties has an optimum; UM has all, at cost n/(n+1)",
    by="mechdesign.design",
    tolerance="exact",
)
def theorem_9(settings: Settings) -> Outcome:
    n, alpha = 3, Q(4, 5)
    values = [scaled(n, alpha, subset) for subset in SUBSETS[:: 4 if settings.quick else 1]]
    um = named.uniform(n)
    return judged(
        f"n = 3, α = 4/5: {len(values)} subsets, scaled L0 {float(min(values)):.4f} to"
        f" {float(max(values)):.4f}",
        {
            "all subsets feasible, between GM and EM": all(
                gm_l0(alpha) <= v <= named.explicit_fair(n, alpha=alpha).scaled_l0() for v in values
            ),
            "UM has all seven": all(um.properties().values()) and um.audit().ratio == 1,
            "UM: O_0 = n/(n+1), scaled 1 (Definition 23)": (
                um.loss(L0()) == Q(n, n + 1) and um.scaled_l0() == 1
            ),
        },
        remarks="optima proved, gap 0",
    )


CLAIMS = (
    definition_22,
    equation_6_1,
    example_1,
    section_6_4,
    lemma_11,
    theorem_8,
    theorem_9,
)

"""Thesis 6.5: one bit."""

from __future__ import annotations

from fractions import Fraction as Q
from itertools import product

from mechdesign import Mechanism, Privacy, named
from mechdesign.losses import L0, L1, L2
from reproduction.count_mechanisms.programs import optimum
from reproduction.report import Kind, Outcome, Settings, claim, judged


@claim(
    "Theorem 10",
    "RR is optimal for one bit",
    "RR with p = 1/(1+α) is the unique optimum for α <= w1/w0 <= 1/α; proof: trivial if w1/w0 <"
    ' 1/α (or "symmetrically")',
    by="mechdesign.design",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def theorem_10(settings: Settings) -> Outcome:
    inside, between, true = [], [], []
    for alpha, loss in product((Q(1, 3), Q(9, 10)), (L0, L1, L2)):
        rr = named.randomized_response(alpha=alpha).table
        for ratio in ((alpha + 1) / 2, Q(1), 2 / (alpha + 1)):
            found = optimum(1, alpha, (), loss(prior=(1 / (1 + ratio), ratio / (1 + ratio))))
            inside.append(found.mechanism.table == rr and rr[0][0] == 1 / (1 + alpha))
        for ratio in (alpha / 2, (alpha + 1) / 2):
            found = optimum(1, alpha, (), loss(prior=(1 / (1 + ratio), ratio / (1 + ratio))))
            blind = found.mechanism.table == ((Q(1), Q(1)), (Q(0), Q(0)))
            between.append(blind == (ratio < 1 / alpha))
            true.append(blind == (ratio < alpha))
    return judged(
        "as stated inside; blind below α",
        {
            "RR is the optimum for α < w1/w0 < 1/α, t = 0, 1, 2": all(inside),
            "blind answers where w1/w0 < 1/α": all(between),
        },
        {
            "RR is the optimum for α < w1/w0 < 1/α, t = 0, 1, 2": all(inside),
            "blind answers where w1/w0 < α": all(true),
        },
        remarks=(
            "the theorem holds but for the two ends, where the optimum is not unique; its proof"
            " prints the condition of the trivial case wrongly"
        ),
    )


@claim(
    "Fact 4",
    "properties of RR",
    "for p >= 1/2 RR has all seven properties",
    by="mechdesign.named.randomized_response",
    tolerance="exact",
)
def fact_4(settings: Settings) -> Outcome:
    honest = all(
        all(named.randomized_response(alpha=alpha).properties().values())
        for alpha in (Q(1, 3), Q(9, 10), Q(1))
    )
    lying = Mechanism([[Q(1, 3), Q(2, 3)], [Q(2, 3), Q(1, 3)]], Privacy(alpha=Q(1, 2))).properties()
    return judged(
        "all seven; for p = 1/3: " + " ".join(k for k, v in lying.items() if v),
        {
            "all seven": honest,
            "for p = 1/3 F and S are left": [k for k, v in lying.items() if v] == ["F", "S"],
        },
    )


@claim(
    "Theorem 11",
    "the binary exponential mechanism",
    "the binary exponential mechanism is RR with p = e^(eps/2) / (1 + e^(eps/2)); Pr[0|0] /"
    " Pr[1|0] = exp(-eps/2)",
    by="mechdesign.named.randomized_response",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def theorem_11(settings: Settings) -> Outcome:
    """With alpha = root^2, e^(eps/2) = 1 / root is exact."""
    found, ratio, reverse = [], [], []
    for root in (Q(1, 3), Q(4, 5)):
        # Exp(eps Q / (2 s)) of qualities that differ by s, a common factor apart
        up, down = 1 / root, Q(1)
        m = Mechanism(
            [[up / (up + down), down / (up + down)], [down / (up + down), up / (up + down)]],
            Privacy(alpha=root**2),
        )
        found.append(m.table == named.randomized_response(alpha=root).table)
        ratio.append(m.table[0][0] / m.table[1][0] == 1 / root)
        reverse.append(m.table[0][0] / m.table[1][0] == root)
    return judged(
        "RR; the ratio is exp(+eps/2)",
        {"RR with that p": all(found), "the ratio is exp(-eps/2)": all(reverse)},
        {"RR with that p": all(found), "the ratio is exp(eps/2)": all(ratio)},
        remarks="a sign in the proof",
    )


@claim(
    "Lemma 12",
    "binary GM",
    "GM for n = 1 is RR with p = 1/(1+α)",
    by="mechdesign.named.geometric",
    tolerance="exact",
)
def lemma_12(settings: Settings) -> Outcome:
    alphas = (Q(1, 3), Q(1, 2), Q(9, 10))
    return judged(
        "the same table",
        {
            "equal tables": all(
                named.geometric(1, alpha=a).table
                == ((1 / (1 + a), a / (1 + a)), (a / (1 + a), 1 / (1 + a)))
                for a in alphas
            )
        },
    )


CLAIMS = (
    theorem_10,
    fact_4,
    theorem_11,
    lemma_12,
)

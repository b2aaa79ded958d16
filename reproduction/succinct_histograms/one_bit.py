"""Bassily and Smith, section 4: one bit a user."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from heavy_hitters import one_bit

from frequency import GRR, HRR, JLOracle
from frequency.heavy import OneBit, SuccinctHistogram
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, judged, table


@claim(
    "Theorem 4.1",
    "privacy of the one-bit transformation",
    "accepting with probability Pr[y | v] / (2 Pr[y | none]) is epsilon-private: the ratio of"
    " rejections is in [e^-eps, e^eps]",
    by="frequency.heavy.OneBit",
    tolerance="exact",
    kind=Kind.FALSE_CLAIM,
)
def one_bit_privacy(_: Settings) -> Outcome:
    rows, printed, corrected = [], True, True
    for epsilon in (0.1, 0.5, 0.69):
        oracle = GRR(10**7, epsilon)
        low, high = (float(ratio) for ratio in oracle.likelihoods[0])
        zeros = (1 - low / 2) / (1 - high / 2)
        printed &= zeros <= math.exp(epsilon)
        wrapped = OneBit(oracle)
        corrected &= wrapped.audit().holds and abs(zeros * (2 - math.exp(epsilon)) - 1) < 1e-3
        loss = math.log(wrapped.audit().ratio)
        rows.append(
            [
                epsilon,
                f"{math.exp(epsilon):.4f}",
                f"{zeros:.4f}",
                f"{float(wrapped.kept):.4f}",
                f"{loss:.6f}",
            ]
        )
    return Outcome(
        "rejections have the ratio 1 / (2 - e^eps): "
        + "; ".join(f"{row[2]} against {row[1]}" for row in rows),
        errs(printed, corrected),
        "Of GRR with 10^7 items and a uniform default: one item e^eps as probable as the mean,"
        " others as probable as it; infinite at ln 2. `OneBit` accepts with the largest c <= 1/2"
        " that keeps epsilon, exactly audited.",
        table(["epsilon", "e^eps", "ratio of rejections with 1/2", "c here", "loss here"], rows),
    )


@claim(
    "Section 4.1",
    "what is kept by rejection sampling",
    "given acceptance reports are distributed as in the original protocol; a user accepts with"
    " probability 1/2",
    by="frequency.heavy.OneBit",
    tolerance="exact",
)
def conditional(_: Settings) -> Outcome:
    """Given acceptance, the blank report is distributed like a real one.

    Exactly, for all reports and items of GRR.
    """
    oracle = GRR(5, 0.5)
    low, high = oracle.likelihoods[0]
    kept = OneBit(oracle).channel.kept
    blank, exact = Fraction(1, 5), True
    for ratio, real in ((high, oracle.p), (low, oracle.q)):
        exact &= blank * kept * ratio / kept == real
    accepted = blank * kept * (high + 4 * low)
    halves = [OneBit(kind(1000, 0.5)).kept for kind in (HRR, JLOracle)]
    return judged(
        f"so they are; c = {float(kept):.4f} for GRR of 5 items, 1/2 for single signs",
        {
            "Pr[y | accepted, v] = Pr[y | v], GRR of 5 items": exact,
            "the probability to accept does not depend on the item": accepted == kept,
            "it is 1/2 for one sign against a fair coin": all(
                abs(half - Fraction(1, 2)) < 1e-6 for half in halves
            ),
        },
        remarks="Rational arithmetic. 1/2 for all protocols would not be private: see Theorem 4.1.",
    )


@cache
def one_bit_rows(quick: bool) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(row) for row in one_bit(50_000, 3 if quick else 12))


@claim(
    "Theorem 4.2",
    "error under sampling",
    "one-bit versions have the original's error up to a constant: that of half of the users,"
    " sqrt 2",
    by="frequency.heavy.OneBit",
    tolerance="5 % and three standard errors",
    seed="1",
)
def sampling_resilience(settings: Settings) -> Outcome:
    rows = one_bit_rows(settings.quick)[:3]
    ratios = [
        (float(row[5].split(" ± ")[0]), float(row[7]), float(row[5].split(" ± ")[1]))
        for row in rows
    ]
    return Outcome(
        "; ".join(f"{row[0]}: {row[5]} (c: {row[7]})" for row in rows),
        agrees(
            all(abs(ratio / predicted - 1) < 0.05 + 3 * error for ratio, predicted, error in ratios)
        ),
        "RMSE over that of the original, 50,000 users, epsilon = ln 2; predicted 1 / sqrt(c)."
        " Tolerance 5 % and 3 standard errors.",
        one_bit_table(settings),
    )


def one_bit_table(settings: Settings) -> str:
    head = [
        "protocol",
        "bits",
        "repeats",
        "RMSE x 1000",
        "one bit: RMSE x 1000",
        "ratio",
        "kept",
        "1 / sqrt(kept)",
    ]
    return table(head, one_bit_rows(settings.quick))


@claim(
    "Theorem 4.4",
    "its error",
    "the same guarantee as without: the additional error is swamped",
    by="frequency.heavy.OneBit",
    tolerance="5 % and three standard errors",
    seed="1",
)
def one_bit_histogram(settings: Settings) -> Outcome:
    row = one_bit_rows(settings.quick)[3]
    ratio, error = (float(part) for part in row[5].split(" ± "))
    return Outcome(
        f"RMSE {row[5]} times the original's, with {row[1]} bits instead of 1",
        agrees(abs(ratio / float(row[7]) - 1) < 0.05 + 3 * error),
        f"SuccinctHistogram of 16 bits and 64 channels, T = 1; predicted {row[7]}. Tolerance 5 %"
        " and three standard errors.",
    )


def one_bit_protocol(epsilon: float) -> OneBit:
    return OneBit(SuccinctHistogram(16, epsilon, hashes=2, channels=64, rows=64))


@claim(
    "Theorem 4.3",
    "privacy of the one-bit succinct histogram",
    "epsilon-private, epsilon <= ln 2; one bit a user",
    by="frequency.heavy.OneBit",
    tolerance="exact",
)
def privacy_of_one_bit(_: Settings) -> Outcome:
    losses = {
        epsilon: math.log(one_bit_protocol(epsilon).audit().ratio)
        for epsilon in (0.1, 0.5, math.log(2))
    }
    return Outcome(
        ", ".join(f"{loss:.6f}" for loss in losses.values()),
        agrees(
            all(loss <= epsilon for epsilon, loss in losses.items())
            and one_bit_protocol(0.5).report_bits == 1
        ),
        f"With c = {float(one_bit_protocol(0.5).kept):.4f} at epsilon = 0.5, not 1/2: exact losses"
        " for epsilon = 0.1, 0.5, ln 2.",
    )


CLAIMS = (
    one_bit_privacy,
    conditional,
    sampling_resilience,
    privacy_of_one_bit,
    one_bit_histogram,
)

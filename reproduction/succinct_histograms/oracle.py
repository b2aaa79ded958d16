"""Bassily and Smith, section 2: the frequency oracle."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

import numpy as np

from frequency import JLOracle
from frequency.heavy import Code, UniqueHeavyHitter
from reproduction.report import Outcome, Settings, agrees, claim, judged, table

EPSILONS = (0.1, 0.5, 1.0, 2.0)


@claim(
    "Theorem 2.1",
    "the basic randomiser",
    "epsilon-private; unbiased with c = (e^eps + 1) / (e^eps - 1); one bit and the place",
    by="frequency.heavy.UniqueHeavyHitter",
    tolerance="exact",
)
def basic_randomiser(_: Settings) -> Outcome:
    """Each sign's mean times c is the true sign, and reports are private.

    No two probabilities of a report have a ratio above e^epsilon.
    """
    rows, private, unbiased = [], True, True
    for epsilon in EPSILONS:
        channel = UniqueHeavyHitter(8, epsilon).channel
        c = (math.exp(epsilon) + 1) / math.expm1(epsilon)
        loss = math.log(channel.audit().ratio)
        private &= channel.audit().holds and loss <= epsilon
        unbiased &= abs(c * channel.contrast - 1) < 1e-6
        rows.append([f"{epsilon:g}", f"{c:.5f}", f"{1 / channel.contrast:.5f}", f"{loss:.9f}"])
    return Outcome(
        "exactly so",
        agrees(private and unbiased),
        "The audit is exact, of the integer weights that are sampled; c to 1e-6.",
        table(["epsilon", "c", "1 / mean of a true sign", "loss, exactly"], rows),
    )


@claim(
    "Theorem 2.2",
    "Johnson-Lindenstrauss projection by random signs",
    "random signs, m = O(log(points / beta) / gamma^2) rows: squared distances within a factor"
    " 1 +- gamma",
    by="frequency.JLOracle",
    tolerance="30 %",
    seed="0 to 9",
)
def isometry(settings: Settings) -> Outcome:
    """The distances between all pairs of some columns.

    These are what the oracle needs of the projection.
    """
    found = {}
    for rows in (256, 1024, 4096):
        worst = []
        for seed in range(2 if settings.quick else 10):
            columns = signs(JLOracle(1 << 16, 1.0, rows=rows, seed=seed), 200) / math.sqrt(rows)
            squares = (
                ((columns[:, :, None] - columns[:, None]) ** 2).sum(axis=0)
                if rows <= 256
                else 2 - 2 * columns.T @ columns
            )
            worst.append(np.abs(squares[np.triu_indices(200, 1)] / 2 - 1).max())
        found[rows] = float(np.mean(worst))
    scaled = {
        rows: value / math.sqrt(math.log(200 * 199 / 2) / rows) for rows, value in found.items()
    }
    return Outcome(
        "; ".join(f"m = {rows}: gamma = {value:.3f}" for rows, value in found.items()),
        agrees(max(scaled.values()) < 1.6 and max(scaled.values()) < 1.3 * min(scaled.values())),
        "200 columns of the 5-wise independent matrix. Over sqrt(ln pairs / m):"
        f" {', '.join(f'{x:.2f}' for x in scaled.values())}; tolerance: at most 1.6, and the same"
        " within 30 %.",
    )


def signs(oracle: JLOracle, items: int) -> np.ndarray:
    """The oracle's matrix, times the root of its rows: shape (rows, items)."""
    row, item = np.meshgrid(np.arange(oracle.rows), np.arange(items), indexing="ij")
    reports = np.zeros(row.size, dtype=oracle.report_dtype)
    reports["row"], reports["sign"] = row.ravel(), 1
    return 2 * oracle.likelihood(reports, item.ravel()).reshape(row.shape) - 1


@claim(
    "Definition 2.3",
    "codes of constant rate and distance",
    "binary codes of constant rate and relative distance, decoded from any share of errors"
    " below half of it",
    by="frequency.heavy.Code",
    tolerance="exact",
    seed="1",
)
def codes(_: Settings) -> Outcome:
    rows, holds = [], True
    for bits in (8, 16, 32, 64):
        code = Code.best(bits)
        holds &= code.distance > Fraction(1, 4)
        rows.append([bits, code.length, f"{bits / code.length:.4f}", f"{float(code.distance):.3f}"])
    same = [Code(bits, 8) for bits in (64, 16, 32)]
    rates = {Fraction(code.bits, code.length) for code in same}
    words = np.random.default_rng(1).integers(0, 1 << 32, 50, dtype=np.uint64)
    corrected = 0
    for word in words:
        code = Code.best(32)
        sent = 1 - 2 * code.minus(word[None, None], np.arange(code.length)[None])[0]
        wrong = np.random.default_rng(int(word)).choice(
            code.length, math.ceil(code.length * float(code.distance) / 2) - 1, replace=False
        )
        sent[wrong] *= -1
        corrected += code.decode(sent[None])[0] == word
    return judged(
        f"distance above 1/4; rate 1/32 for symbols of 8 bits; {corrected} of 50 words corrected",
        {
            "the relative distance is above 1/4 for 8 to 64 bits": holds,
            "the rate does not depend on the bits (symbols of 8 bits)": len(rates) == 1,
            "with nearly half of the distance in errors, 32-bit words are decoded": corrected == 50,
        },
        remarks="Reed-Solomon and first-order Reed-Muller codes; the paper names no code.",
        detail=table(["bits", "signs", "rate", "distance, at least"], rows),
    )


def private(
    make: Callable[[float], JLOracle | UniqueHeavyHitter], what: str, _: Settings
) -> Outcome:
    audits = {epsilon: make(epsilon).audit() for epsilon in EPSILONS}
    losses = {epsilon: math.log(audit.ratio) for epsilon, audit in audits.items()}
    return Outcome(
        ", ".join(f"{loss:.6f}" for loss in losses.values()),
        agrees(
            all(audit.holds for audit in audits.values())
            and all(loss <= epsilon for epsilon, loss in losses.items())
        ),
        f"{what}: the exact loss for epsilon = {', '.join(map(str, EPSILONS))}.",
    )


def rows_of_theory(n: int, d: int, epsilon: float, beta: float) -> int:
    """Section 2.2."""
    return math.ceil(math.log(d + 1) * math.log(2 / beta) * epsilon**2 * n / math.log(2 * d / beta))


@cache
def largest_errors(n: int, d: int, epsilon: float, repeats: int) -> tuple[float, ...]:
    """Of all items, in each repeat: a quarter of the users hold one item, the others any."""
    found = []
    for seed in range(repeats):
        oracle = JLOracle(d, epsilon, rows=rows_of_theory(n, d, epsilon, 0.1), seed=seed)
        rng = np.random.default_rng([n, d, seed])
        values = np.where(np.arange(n) < n // 4, 3, rng.integers(0, d, n))
        estimate = oracle.estimate(oracle.aggregate(oracle.privatize(values, rng))).frequencies
        found.append(float(np.abs(estimate - np.bincount(values, minlength=d) / n).max()))
    return tuple(found)


@claim(
    "Theorem 2.5",
    "error of the frequency oracle",
    "largest error O(sqrt(log(d / beta) / (epsilon^2 n))) with probability 1 - beta",
    by="frequency.JLOracle",
    tolerance="40 %",
    seed="0 to 19",
)
def error_of_oracle(settings: Settings) -> Outcome:
    beta, repeats = 0.1, 5 if settings.quick else 20
    rows, constants = [], []
    for n, d, epsilon in (
        (2_000, 256, 1.0),
        (8_000, 256, 1.0),
        (32_000, 256, 1.0),
        (8_000, 4096, 1.0),
        (8_000, 256, 0.5),
    ):
        worst = float(np.quantile(largest_errors(n, d, epsilon, repeats), 1 - beta))
        order = math.sqrt(math.log(2 * d / beta) / n) / epsilon
        constants.append(worst / order)
        rows.append([n, d, epsilon, f"{worst:.4f}", f"{order:.4f}", f"{constants[-1]:.2f}"])
    return Outcome(
        f"{min(constants):.2f} to {max(constants):.2f} times that",
        agrees(max(constants) < 1.4 * min(constants)),
        f"beta = 0.1, {repeats} runs of real reports, rows as in section 2.2. Tolerance: the same"
        " constant within 40 %.",
        table(
            [
                "users",
                "items",
                "epsilon",
                "90 % quantile of the largest error",
                "order",
                "constant",
            ],
            rows,
        ),
    )


@claim(
    "Claim 2.6",
    "concentration of inner products",
    "the inner product with a sign vector is off by more than O(c sqrt(log(1/beta) / n)) with"
    " probability at most beta",
    by="frequency.JLOracle",
    tolerance="Hoeffding's constant",
    seed="5",
)
def hoeffding(settings: Settings) -> Outcome:
    """Claim 2.6 by its proof: n independent numbers in [-c, c]."""
    runs, n, d, epsilon = 100 if settings.quick else 1000, 500, 64, 1.0
    oracle = JLOracle(d, epsilon, rows=256, seed=1)
    rng, c = np.random.default_rng(5), 1 / oracle.contrast
    columns = signs(oracle, d)
    values = rng.integers(0, d, n)
    mean = (columns.T @ columns[:, values] / oracle.rows).mean(axis=1)
    deviations = []
    for _ in range(runs):
        estimate = oracle.estimate(oracle.aggregate(oracle.privatize(values, rng))).frequencies
        deviations.append(np.abs(estimate - mean))
    exceed = {
        beta: float((np.array(deviations) > c * math.sqrt(2 * math.log(2 / beta) / n)).mean())
        for beta in (0.5, 0.1, 0.01)
    }
    return Outcome(
        ", ".join(f"beta = {beta}: {share:.4f}" for beta, share in exceed.items()),
        agrees(all(share <= beta for beta, share in exceed.items())),
        f"With Hoeffding's constant, c sqrt(2 ln(2/beta) / n); {runs} runs, {d} vectors each. The"
        " constant in the text is lost.",
    )


theorem_2_4 = claim(
    "Theorem 2.4",
    "privacy of the frequency oracle",
    "epsilon-private",
    by="frequency.JLOracle",
    tolerance="exact",
)(partial(private, lambda e: JLOracle(1000, e, rows=64), "JLOracle"))

theorem_3_1 = claim(
    "Theorem 3.1",
    "privacy of the unique heavy hitter",
    "epsilon-private",
    by="frequency.heavy.UniqueHeavyHitter",
    tolerance="exact",
)(partial(private, partial(UniqueHeavyHitter, 16), "UniqueHeavyHitter"))


CLAIMS = (
    basic_randomiser,
    isometry,
    codes,
    theorem_2_4,
    hoeffding,
    error_of_oracle,
    theorem_3_1,
)

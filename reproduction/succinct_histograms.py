"""Bassily and Smith 2015: succinct histograms.

The statements have no printed numbers; orders of magnitude are measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from itertools import product

import numpy as np
from heavy_hitters import literal, one_bit

from frequency import GRR, HRR, JLOracle, SubsetSelection
from frequency.heavy import (
    Code,
    OneBit,
    SuccinctHistogram,
    UniqueHeavyHitter,
    degraded,
    information_bound,
    lower_bound,
)
from reproduction.report import (
    Claim,
    Outcome,
    Settings,
    Source,
    agrees,
    errs,
    judged,
    not_reproduced,
    table,
)

EPSILONS = (0.1, 0.5, 1.0, 2.0)


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
        "epsilon-private; unbiased with c = (e^eps + 1) / (e^eps - 1); one bit and the place",
        "exactly so",
        agrees(private and unbiased),
        "The audit is exact, of the integer weights that are sampled; c to 1e-6.",
        table(["epsilon", "c", "1 / mean of a true sign", "loss, exactly"], rows),
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
        "random signs, m = O(log(points / beta) / gamma^2) rows: squared distances within a factor"
        " 1 +- gamma",
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
        "binary codes of constant rate and relative distance, decoded from any share of errors"
        " below half of it",
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
        "epsilon-private",
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
        "largest error O(sqrt(log(d / beta) / (epsilon^2 n))) with probability 1 - beta",
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
        "the inner product with a sign vector is off by more than O(c sqrt(log(1/beta) / n)) with"
        " probability at most beta",
        ", ".join(f"beta = {beta}: {share:.4f}" for beta, share in exceed.items()),
        agrees(all(share <= beta for beta, share in exceed.items())),
        f"With Hoeffding's constant, c sqrt(2 ln(2/beta) / n); {runs} runs, {d} vectors each. The"
        " constant in the text is lost.",
    )


def rounding(_: Settings) -> Outcome:
    """Lemma 3.2 in the form of its proof.

    A coordinate whose sign is wrong adds at least 1/m to the squared distance.
    """
    rng, worst = np.random.default_rng(2), -1.0
    for scale in np.linspace(0.1, 3, 300):
        word = rng.choice([-1.0, 1.0], 128) / math.sqrt(128)
        near = word + scale * rng.normal(size=128) / math.sqrt(128)
        near /= np.linalg.norm(near)
        share = float((np.sign(near) != np.sign(word)).mean())
        worst = max(worst, share - (2 - 2 * float(near @ word)))
    return Outcome(
        "a unit vector near a codeword is rounded to within its Hamming distance",
        f"share of wrong signs minus squared distance: at most {worst:.3f}",
        agrees(worst <= 0),
        "300 random vectors; the constants of the text are lost, the inequality is that of its"
        " proof.",
    )


def half_decoded(bits: int, n: int, epsilon: float, soft: bool, repeats: int) -> float:
    """The share of users at which the item is decoded in half of the runs.

    Interpolated between the two nearest shares of a grid.
    """
    protocol, before = UniqueHeavyHitter(bits, epsilon, soft=soft), (0.0, 0.0)
    for share in np.geomspace(0.5, 16, 24) * math.sqrt(bits * math.log(2) / n) / epsilon:
        counts, items = [], []
        for seed in range(repeats):
            rng = np.random.default_rng([bits, n, seed])
            item = rng.integers(0, 1 << bits, dtype=np.uint64)
            values = np.ma.array(np.full(n, item), mask=np.arange(n) >= round(share * n))
            counts.append(protocol.aggregate(protocol.privatize(values, rng)).counts)
            items.append(item)
        rate = float((protocol.code.decode(np.array(counts), soft) == np.array(items)).mean())
        if rate >= 0.5:
            low, at_low = before
            return float(low + (share - low) * (0.5 - at_low) / (rate - at_low))
        before = (float(share), rate)
    return math.nan


def unique_heavy_hitter(settings: Settings) -> Outcome:
    repeats = 4 if settings.quick else 24
    cases = [(16, 10_000, 1.0), (16, 40_000, 1.0), (64, 40_000, 1.0), (16, 40_000, 0.5)]
    rows, constants, gains = [], [], []
    for bits, n, epsilon in cases:
        soft, hard = (half_decoded(bits, n, epsilon, kind, repeats) for kind in (True, False))
        order = math.sqrt(bits * math.log(2) / n) / epsilon
        constants.append(hard / order)
        gains.append(hard / soft)
        rows.append([bits, n, epsilon, f"{hard:.3f}", f"{hard / order:.2f}", f"{soft:.3f}"])
    return Outcome(
        "an item of O(sqrt(log(d / beta) / (epsilon^2 n))) of the users is found",
        f"by half of the runs at {min(constants):.2f} to {max(constants):.2f} times sqrt(ln d / n)"
        " / epsilon",
        agrees(max(constants) < 1.7 * min(constants)),
        f"{repeats} runs of real reports; tolerance: the same constant within 70 %. Decoding the"
        f" sums and not their signs, as here by default, needs {np.mean(gains):.2f} times fewer"
        " holders.",
        table(
            [
                "bits",
                "users",
                "epsilon",
                "half found, signs (the paper)",
                "over the order",
                "half found, sums",
            ],
            rows,
        ),
    )


def privacy_of_histogram(_: Settings) -> Outcome:
    """A protocol whose shares are those of the paper has a smaller loss than it is allowed."""
    rows, holds, spent = [], True, []
    for hashes in (1, 2, 3, 8):
        protocol = SuccinctHistogram(8, 1.0, hashes=hashes, channels=64, rows=64)
        loss = math.log(protocol.audit().ratio)
        share = 1.0 / (2 * hashes + 1)
        spent.append((hashes + 1) * math.log(JLOracle(256, share, rows=64).audit().ratio))
        holds &= protocol.audit().holds and spent[-1] <= 1
        rows.append(
            [hashes, f"{spent[-1]:.4f}", f"{(hashes + 1) / (2 * hashes + 1):.4f}", f"{loss:.6f}"]
        )
    return Outcome(
        "epsilon-private with epsilon / (2T + 1) for each sign",
        f"true, but it spends (T + 1) / (2T + 1) of epsilon: {spent[2]:.3f} for T = 3; epsilon / (T"
        " + 1) suffices",
        agrees(holds),
        "A channel that only one of two items uses tells p against 1/2, or 1/2 against q; the two"
        " together p / q, one sign's loss. `SuccinctHistogram` uses epsilon / (T + 1); its audit is"
        " exact, by enumeration in the tests.",
        table(
            ["T", "loss with the paper's shares, epsilon = 1", "(T+1) / (2T+1)", "loss here"], rows
        ),
    )


def isolation(settings: Settings) -> Outcome:
    """Whether every heavy item has a channel without any other user's item.

    For sqrt(n) heavy items, under one of T hash functions.
    """
    n, beta, runs = 200, 0.3, 20 if settings.quick else 300
    failures, hashes, channels = 0, 0, 0
    for seed in range(runs):
        t, k = SuccinctHistogram.theory_sizes(n, beta)
        protocol = SuccinctHistogram(16, 1.0, n=n, beta=beta, hashes=t, channels=k, seed=seed)
        channel = protocol.channel
        hashes, channels = channel.hashes, channel.channels
        words = np.random.default_rng([3, seed]).choice(1 << 16, n, replace=False).astype(np.uint64)
        cells = channel.channel_of(words)
        heavy = cells[: math.isqrt(n)]
        met = (heavy[:, None] == cells[None]).sum(axis=1) > 1  # itself is one
        failures += bool(met.all(axis=1).any())
    return Outcome(
        "T hash functions into K channels leave every heavy item alone in one of them, but for"
        " beta / 3",
        f"K = {channels}, T = {hashes}: {failures} of {runs} runs fail (beta / 3 = {beta / 3:.2f})",
        agrees(failures <= beta / 3 * runs + 3 * math.sqrt(beta / 3 * runs)),
        f"n = {n} users of different items, sqrt(n) of them heavy, beta = {beta}. The formulas of T"
        " and K are lost; used are K = n^(3/2), in powers of two, and T = 1 + log(3 / beta) /"
        " log(K / n).",
    )


def error_of_histogram(settings: Settings) -> Outcome:
    n, epsilons = (200, [16.0]) if settings.quick else (500, [4.0, 8.0, 12.0])
    found = list(literal(n, epsilons, 2 if settings.quick else 4))
    head = [
        "epsilon",
        "bits",
        "threshold of theory",
        "items named",
        "both first",
        "both listed",
        "others listed",
    ]
    clear = [row for row in found if 3 * float(row[2]) < 0.3]
    return Outcome(
        "all items above O(sqrt(log(d / beta) / (epsilon^2 n))) are listed",
        "; ".join(
            f"epsilon = {row[0]}: threshold {row[2]}, both listed in {float(row[5]):.0%}"
            for row in found
        ),
        agrees(bool(clear) and all(float(row[5]) == 1 for row in clear)),
        f"n = {n} users, 12 bits, items of 40 % and 30 % of the users, with the paper's sizes."
        " Threshold (T + 1) / eps sqrt(ln d ln(1/beta) / n), that of Algorithm 5. Tolerance: items"
        " above three times that are always listed. A user sends n^(3/2) signs: not practical"
        " beyond a thousand users.",
        table(head, [row[:7] for row in found]),
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
        "accepting with probability Pr[y | v] / (2 Pr[y | none]) is epsilon-private: the ratio of"
        " rejections is in [e^-eps, e^eps]",
        "rejections have the ratio 1 / (2 - e^eps): "
        + "; ".join(f"{row[2]} against {row[1]}" for row in rows),
        errs(printed, corrected),
        "Of GRR with 10^7 items and a uniform default: one item e^eps as probable as the mean,"
        " others as probable as it; infinite at ln 2. `OneBit` accepts with the largest c <= 1/2"
        " that keeps epsilon, exactly audited.",
        table(["epsilon", "e^eps", "ratio of rejections with 1/2", "c here", "loss here"], rows),
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
        "given acceptance reports are distributed as in the original protocol; a user accepts with"
        " probability 1/2",
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


def sampling_resilience(settings: Settings) -> Outcome:
    rows = one_bit_rows(settings.quick)[:3]
    ratios = [
        (float(row[5].split(" ± ")[0]), float(row[7]), float(row[5].split(" ± ")[1]))
        for row in rows
    ]
    return Outcome(
        "one-bit versions have the original's error up to a constant: that of half of the users,"
        " sqrt 2",
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


def one_bit_histogram(settings: Settings) -> Outcome:
    row = one_bit_rows(settings.quick)[3]
    ratio, error = (float(part) for part in row[5].split(" ± "))
    return Outcome(
        "the same guarantee as without: the additional error is swamped",
        f"RMSE {row[5]} times the original's, with {row[1]} bits instead of 1",
        agrees(abs(ratio / float(row[7]) - 1) < 0.05 + 3 * error),
        f"SuccinctHistogram of 16 bits and 64 channels, T = 1; predicted {row[7]}. Tolerance 5 %"
        " and three standard errors.",
    )


def lower(settings: Settings) -> Outcome:
    rows, holds, constants = [], True, []
    for n, d, epsilon in ((1_000, 64, 1.0), (4_000, 64, 1.0), (4_000, 1024, 1.0), (4_000, 64, 0.5)):
        bound, order = lower_bound(n, d, epsilon), math.sqrt(math.log(d) / n) / epsilon
        best, runs = SubsetSelection(d, epsilon), 10 if settings.quick else 60
        factor, rate = 1 - math.log(2) / math.log(d), n * math.sinh(epsilon / 2) ** 2 / math.log(d)
        t, worst = min(1.0, math.sqrt(factor / (3 * rate))), []
        for seed in range(runs):
            rng = np.random.default_rng([n, d, seed])
            p = np.full(d, (1 - t) / d)
            p[rng.integers(d)] += t
            estimate = best.estimate(best.simulate(rng.multinomial(n, p), rng)).frequencies
            worst.append(float(np.abs(estimate - p).max()))
        holds &= float(np.mean(worst)) > bound
        constants.append(bound / order)
        rows.append(
            [n, d, epsilon, f"{bound:.4f}", f"{constants[-1]:.3f}", f"{np.mean(worst):.4f}"]
        )
    far = lower_bound(10**9, 1 << 60, 0.01) / (math.sqrt(math.log(1 << 60) / 10**9) / 0.01)
    return Outcome(
        "every protocol errs by Omega(sqrt(log d / (epsilon^2 n)))",
        f"{min(constants):.2f} to {max(constants):.2f} times that; in the limit 0.385 (2^60 items:"
        f" {far:.3f})",
        agrees(holds and min(constants) > 0.1),
        "The constant is derived here. On the proof's hardest instances subset selection errs by"
        f" more than the bound. With delta = 1e-9 it is {lower_bound(4000, 64, 1.0, 1e-9):.4f}"
        f" instead of {lower_bound(4000, 64, 1.0):.4f} (4,000 users, 64 items, epsilon = 1).",
        table(
            [
                "users",
                "items",
                "epsilon",
                "lower bound",
                "over the order",
                "largest error of subset selection",
            ],
            rows,
        ),
    )


def mutual_information(table_: np.ndarray) -> float:
    """Of a uniform item and its report, in nats; rows are reports."""
    mean = table_.mean(axis=1, keepdims=True)
    return float((table_ * np.log(np.where(table_ > 0, table_, 1) / mean)).mean(axis=1).sum())


def channels_of(epsilon: float) -> dict[str, np.ndarray]:
    """Some private channels as tables of probabilities, rows are reports."""
    ratio = math.exp(epsilon)
    tables = {
        f"GRR of {d}": (np.ones((d, d)) + (ratio - 1) * np.eye(d)) / (ratio + d - 1)
        for d in (2, 5, 50)
    }
    signs_of_8 = np.array([[1 - 2 * ((i & j).bit_count() & 1) for j in range(8)] for i in range(8)])
    truth = ratio / (ratio + 1)
    tables["Hadamard signs of 8"] = (
        np.concatenate([np.where(signs_of_8 == s, truth, 1 - truth) for s in (1, -1)]) / 8
    )
    return tables


def aloud(channel: np.ndarray, delta: float) -> np.ndarray:
    """A channel that tells the item itself with probability delta."""
    told = delta * np.eye(channel.shape[1])
    return np.concatenate([(1 - delta) * channel, told]) if delta else channel


def excess(channel: np.ndarray, ratio: float) -> float:
    """The least delta for a likelihood ratio, over all pairs of items."""
    pairs = channel[:, :, None] - ratio * channel[:, None, :]
    return float(np.maximum(pairs, 0).sum(axis=0).max())


def information(_: Settings) -> Outcome:
    rows, holds = [], True
    for epsilon, delta in product((0.1, 0.5, 1.0, 2.0), (0.0, 1e-3, 1e-1)):
        found = {
            name: (
                mutual_information(aloud(channel, delta)),
                information_bound(channel.shape[1], epsilon, delta),
            )
            for name, channel in channels_of(epsilon).items()
        }
        holds &= all(told <= bound for told, bound in found.values())
        rows.append(
            [epsilon, delta, *(f"{told:.5f} of {bound:.5f}" for told, bound in found.values())]
        )
    return Outcome(
        "a private report tells O(epsilon^2 + (delta / epsilon) log(d epsilon / delta)) about a"
        " uniform item",
        "at most x - 1 - ln x, x = epsilon / (1 - e^-epsilon), without delta; with delta about"
        " epsilon^2 / 2 + delta ln d: nats, without 1 / epsilon",
        agrees(holds),
        "Exact mutual information of four channels, which tell the item itself with probability"
        " delta, and what `information_bound` allows. The formula of the text used is lost; the"
        " bound is derived here.",
        table(["epsilon", "delta", *channels_of(1.0)], rows),
    )


def degrading(_: Settings) -> Outcome:
    rows, holds = [], True
    for epsilon, delta in product((0.5, 1.0), (0.0, 1e-2)):
        for eta in (0.05, 0.2, 0.5):
            loss, allowed = degraded(epsilon, delta, eta)
            worst = 0.0
            for channel in channels_of(epsilon).values():
                own = aloud(channel, delta)
                mixed = eta * own + (1 - eta) * own.mean(axis=1, keepdims=True)
                worst = max(worst, excess(mixed, math.exp(loss)))
            holds &= worst <= allowed + 1e-12
            rows.append([epsilon, delta, eta, f"{loss:.4f}", f"{allowed:.5f}", f"{worst:.5f}"])
    return Outcome(
        "an eta-degrading channel before an (epsilon, delta)-private one is (O(eta epsilon),"
        " O(eta delta))-private",
        "(ln(1 + eta (e^epsilon - 1)), eta delta)-private",
        agrees(holds),
        "`degraded`, against the exact delta of four channels; the formula is derived here.",
        table(["epsilon", "delta", "eta", "epsilon'", "delta' allowed", "delta' found"], rows),
    )


def one_bit_protocol(epsilon: float) -> OneBit:
    return OneBit(SuccinctHistogram(16, epsilon, hashes=2, channels=64, rows=64))


def privacy_of_one_bit(_: Settings) -> Outcome:
    losses = {
        epsilon: math.log(one_bit_protocol(epsilon).audit().ratio)
        for epsilon in (0.1, 0.5, math.log(2))
    }
    return Outcome(
        "epsilon-private, epsilon <= ln 2; one bit a user",
        ", ".join(f"{loss:.6f}" for loss in losses.values()),
        agrees(
            all(loss <= epsilon for epsilon, loss in losses.items())
            and one_bit_protocol(0.5).report_bits == 1
        ),
        f"With c = {float(one_bit_protocol(0.5).kept):.4f} at epsilon = 0.5, not 1/2: exact losses"
        " for epsilon = 0.1, 0.5, ln 2.",
    )


SOURCE = Source(
    "Succinct histograms, heavy hitters",
    "Bassily, Smith: Local, Private, Efficient Protocols for Succinct Histograms, STOC 2015. No"
    " experiments: one diagram, and theorems, whose formulas are lost in the text used and were"
    " derived again.",
    (
        Claim("Figure 1", "the local model", not_reproduced("-", "A diagram.")),
        Claim("Theorem 2.1", "the basic randomiser", basic_randomiser),
        Claim("Theorem 2.2", "Johnson-Lindenstrauss projection by random signs", isometry),
        Claim("Definition 2.3", "codes of constant rate and distance", codes),
        Claim(
            "Theorem 2.4",
            "privacy of the frequency oracle",
            partial(private, lambda e: JLOracle(1000, e, rows=64), "JLOracle"),
        ),
        Claim("Claim 2.6", "concentration of inner products", hoeffding),
        Claim("Theorem 2.5", "error of the frequency oracle", error_of_oracle),
        Claim(
            "Theorem 3.1",
            "privacy of the unique heavy hitter",
            partial(private, partial(UniqueHeavyHitter, 16), "UniqueHeavyHitter"),
        ),
        Claim("Lemma 3.2", "rounding to signs", rounding),
        Claim("Theorem 3.3", "the unique heavy hitter is found", unique_heavy_hitter),
        Claim("Theorem 3.4", "privacy of the succinct histogram", privacy_of_histogram),
        Claim("Claim 3.6", "isolation of heavy hitters", isolation),
        Claim("Theorem 3.5", "error of the succinct histogram", error_of_histogram),
        Claim("Theorem 4.1", "privacy of the one-bit transformation", one_bit_privacy),
        Claim("Section 4.1", "what is kept by rejection sampling", conditional),
        Claim("Theorem 4.2", "error under sampling", sampling_resilience),
        Claim("Theorem 4.3", "privacy of the one-bit succinct histogram", privacy_of_one_bit),
        Claim("Theorem 4.4", "its error", one_bit_histogram),
        Claim("Theorem 5.2, Lemma 5.1", "lower bound on the error", lower),
        Claim("Claim 5.4", "mutual information of a private report", information),
        Claim("Claim 5.5, Lemma 5.3", "privacy of a degraded channel", degrading),
    ),
)

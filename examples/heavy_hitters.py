"""Find the frequent strings, and draw how far the list of each protocol is from the truth.

    python examples/heavy_hitters.py --quick --out demo
    python examples/heavy_hitters.py --out figures

First users type the name of a town, or nothing; the server learns the frequent names without a
list of towns. Then the error of lists, the largest of |estimate - true frequency| over all items
where an item that is not listed has the estimate 0, is drawn against the number of users, against
the number of items, and for one bit from each user.
"""

from __future__ import annotations

import argparse
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from frequency import HRR, OLH, Oracle
from frequency.heavy import (
    Found,
    HeavyHitterProtocol,
    InvalidString,
    OneBit,
    PrefixExtension,
    SuccinctHistogram,
    TreeHist,
    UniqueHeavyHitter,
    lower_bound,
    plot,
)
from mechdesign.evaluate import add_arguments, apart, sweep
from mechdesign.plot import look, mark_numbers, save, style

Array = npt.NDArray[Any]
Protocol = Oracle | HeavyHitterProtocol | OneBit
SITES = 3
LN2 = math.log(2)
BATCH = 100_000
SUPPORT = 1 << 16
TOWNS = (
    "",
    "Zürich",
    "Łódź",
    "Málaga",
    "Київ",
    "Praha",
    "Genève",
    "Århus",
    "Κως",
    "Roma",
    "Tromsø",
    "Braga",
    "Győr",
)
NAMES = (
    "OLH",
    "PrefixExtension",
    "HRR",
    "TreeHist",
    "UniqueHeavyHitter",
    "OneBit(HRR)",
    "SuccinctHistogram",
    "OneBit(PrefixExtension)",
    "OneBit(SuccinctHistogram)",
)
STYLES = {name: look(series) for series, name in enumerate(NAMES)}


# ---------------------------------------------------------------------------------------- strings


def typed(n: int, rng: np.random.Generator) -> list[str]:
    """What users type: a town in two cases of three, otherwise a string of their own."""
    weights = 1 / np.arange(2, len(TOWNS) + 2)
    names = [
        TOWNS[place] for place in rng.choice(len(TOWNS), n, p=weights / weights.sum()).tolist()
    ]
    rare = rng.random(n) < 1 / 3
    return [
        f"é{number:x}" if other else name
        for name, other, number in zip(names, rare, rng.integers(0, 1 << 24, n), strict=True)
    ]


def strings(n: int, epsilon: float, out: Path, rng: np.random.Generator) -> None:
    """Strings in, strings out; every site sends on an aggregate."""
    values = typed(n, rng)
    protocol = PrefixExtension(64, epsilon, text=True)
    assert protocol.audit().holds
    messages = [
        protocol.aggregate(protocol.privatize(values[site::SITES], rng)).to_bytes()
        for site in range(SITES)
    ]
    found = protocol.find(reduce(operator.add, map(protocol.aggregate_from_bytes, messages)))
    print(
        f"{n} users type a town's name, epsilon = {epsilon:g}, {protocol.report_bits} bits each,"
        f" {SITES} sites\n"
    )
    print(found.table())
    try:
        protocol.privatize(["Zürich", "Reykjavík"])
    except InvalidString as error:
        print(f"\nrefused: {error}")
    else:
        raise AssertionError("a string of 10 bytes does not fit into 64 bits")

    truth = {name: count / n for name, count in Counter(values).items()}
    listed, above = set(found.items.tolist()), found.complete_above
    assert all(name in listed for name, share in truth.items() if share >= above)
    assert "" in listed
    assert listed <= set(TOWNS)
    true = np.array([truth[name] for name in found.items])
    held = int(((found.interval().low <= true) & (true <= found.interval().high)).sum())
    print(
        f"{held} of {len(found)} intervals contain the truth; {len(listed)} of {len(TOWNS)} towns"
        " are listed, and nothing else"
    )
    assert held >= len(found) - 1
    save(plot.heavy_hitters(found, truth), out / "heavy-strings.png")


# ----------------------------------------------------------------------------------------- errors


@dataclass(frozen=True)
class Population:
    """Users with Zipf-distributed items, exponent 1.1: at most 2^16 items out of 2^bits."""

    bits: int
    counts: Array

    @classmethod
    def draw(cls, bits: int, n: int, rng: np.random.Generator) -> Population:
        weights = np.arange(1, min(SUPPORT, 1 << bits) + 1) ** -1.1
        return cls(bits, rng.multinomial(n, weights / weights.sum()))

    @property
    def n(self) -> int:
        return int(self.counts.sum())

    @property
    def items(self) -> Array:
        """The item of each rank: multiples of an odd number, so that no two are equal."""
        odd = int((1 << self.bits) * (math.sqrt(5) - 1) / 2) | 1
        return np.arange(len(self.counts), dtype=np.uint64) * np.uint64(odd) & np.uint64(
            (1 << self.bits) - 1
        )

    def batches(self) -> Iterator[Array]:
        items, ends = self.items, np.cumsum(self.counts)
        for start in range(0, self.n, BATCH):
            users = np.arange(start, min(start + BATCH, self.n))
            yield items[np.searchsorted(ends, users, side="right")]

    def error(self, found: Found) -> float:
        """The largest over all items; an item that is not listed has the estimate 0."""
        estimates = dict(zip(found.items.tolist(), found.frequencies.tolist(), strict=True))
        shares = zip(self.items.tolist(), (self.counts / self.n).tolist(), strict=True)
        held = [abs(share - estimates.pop(item, 0.0)) for item, share in shares]
        return max(*held, *map(abs, estimates.values()))


def error(protocol: Protocol, population: Population, rng: np.random.Generator) -> float:
    """Of one collection."""
    if isinstance(protocol, Oracle):
        held = np.zeros(protocol.domain, dtype=np.int64)
        held[population.items.astype(np.int64)] = population.counts
        estimate = protocol.estimate(protocol.simulate(held, rng))
        return float(np.abs(estimate.frequencies - held / population.n).max())
    aggregates = (
        protocol.aggregate(protocol.privatize(batch, rng)) for batch in population.batches()
    )
    total = reduce(operator.add, aggregates)
    if isinstance(protocol, OneBit) and isinstance(protocol.inner, Oracle):
        truth = np.zeros(protocol.inner.domain)
        truth[population.items.astype(np.int64)] = population.counts / population.n
        return float(np.abs(protocol.estimate(total).frequencies - truth).max())
    return population.error(protocol.find(total))


def unique_error(bits: int, epsilon: float, n: int, rng: np.random.Generator) -> float:
    """The error of `UniqueHeavyHitter` where some users have one item and the others none.

    The worst of several shares.
    """
    protocol, item = UniqueHeavyHitter(bits, epsilon), (1 << bits) // 3

    def find(share: float) -> Found:
        values = np.ma.array(
            np.full(n, item, dtype=np.uint64), mask=np.arange(n) >= round(share * n)
        )
        return protocol.find(protocol.privatize(values, rng))

    noise, errors = 0.0, []
    # Of what noise alone may reach: fewer are not listed, more are found for sure
    for factor in (0.0, 0.7, 0.95, 1.2, 1.5):
        share = min(1.0, factor * noise)
        found = find(share)
        noise, sure = float(np.max(found.noise)), found.significant
        estimates = dict(
            zip(found.items[sure].tolist(), found.frequencies[sure].tolist(), strict=True)
        )
        errors.append(
            max(abs(share - estimates.pop(item, 0.0)), *map(abs, estimates.values()), 0.0)
        )
    return max(errors)


@dataclass(frozen=True)
class Curve:
    """An error to be measured against x some times; of panel 0, 1 or 2."""

    panel: int
    name: str
    x: Sequence[int]
    measure: Callable[[int, np.random.Generator], float]
    repeats: int

    def cases(self, rng: np.random.Generator) -> list[tuple[Any, ...]]:
        """Each with its own generator."""
        return [
            (self.measure, x, apart(rng, self.panel, self.name, x, k))
            for x in self.x
            for k in range(self.repeats)
        ]


class Study:
    """Curves of mean errors over a few repeats, with bars from the least to the largest."""

    def __init__(self, figure: Figure) -> None:
        self.panels = figure.subplots(1, 3, sharey=True)
        self.curves: dict[tuple[int, str], dict[float, float]] = {}

    def draw(self, curve: Curve, errors: Array) -> None:
        """``errors`` has a row for each x."""
        mean = errors.mean(axis=1)
        # Rounding may go below
        arms = np.maximum(np.stack([mean - errors.min(axis=1), errors.max(axis=1) - mean]), 0.0)
        self.panels[curve.panel].errorbar(
            curve.x,
            mean,
            yerr=arms,
            **STYLES[curve.name],
            linewidth=1.3,
            capsize=2,
            label=curve.name,
        )
        self.curves[curve.panel, curve.name] = dict(zip(curve.x, mean.tolist(), strict=True))

    def bound(self, panel: int, x: Sequence[float], bound: Callable[[float], float]) -> None:
        dense = np.geomspace(x[0], x[-1], 60) if panel != 1 else np.arange(x[0], x[-1] + 1)
        self.panels[panel].plot(
            dense,
            [bound(value) for value in dense],
            color="black",
            linestyle="-",
            marker="",
            linewidth=2.5,
            label="lower bound of any protocol",
        )
        for (where, name), curve in self.curves.items():
            # The bound is for all distributions; that has a promise
            if where == panel and name != "UniqueHeavyHitter":
                assert all(error > bound(value) for value, error in curve.items()), name


def practical(bits: int, epsilon: float) -> SuccinctHistogram:
    """A channel for each of some dozens of items, instead of n^(3/2)."""
    return SuccinctHistogram(bits, epsilon, n=10**6, hashes=1, channels=64)


@style()
def errors(
    quick: bool, out: Path, rng: np.random.Generator, swept: Callable[..., list[Any]] = sweep
) -> None:
    exponents = (4, 5, 6) if quick else (4, 4.5, 5, 5.5, 6, 6.5, 7)
    users = [round(10**exponent) for exponent in exponents]
    bits = [4, 16, 40] if quick else [4, 8, 12, 16, 20, 24, 32, 40, 48, 56, 64]
    many, repeats = 10**5 if quick else 10**6, 1 if quick else 3
    fewer = [n for n in users if n <= many]  # for what goes through users one at a time
    listable, some = [b for b in bits if b <= 20], [b for b in bits if b in (4, 8, 16, 32, 40, 64)]

    def by_users(
        panel: int, name: str, make: Callable[[], Protocol], x: Sequence[int] = users
    ) -> Curve:
        return Curve(
            panel, name, x, lambda n, rng: error(make(), Population.draw(16, n, rng), rng), repeats
        )

    def by_bits(
        name: str, make: Callable[[int], Protocol], x: Sequence[int], times: int = repeats
    ) -> Curve:
        return Curve(
            1, name, x, lambda b, rng: error(make(b), Population.draw(b, many, rng), rng), times
        )

    curves = [
        by_users(0, "OLH", lambda: OLH(1 << 16, 1.0)),
        by_users(0, "HRR", lambda: HRR(1 << 16, 1.0)),
        by_users(0, "PrefixExtension", lambda: PrefixExtension(16, 1.0)),
        by_users(0, "TreeHist", lambda: TreeHist(16, 1.0)),
        by_users(0, "SuccinctHistogram", lambda: practical(16, 1.0), fewer),
        Curve(0, "UniqueHeavyHitter", fewer, lambda n, rng: unique_error(16, 1.0, n, rng), repeats),
        by_bits("OLH", lambda b: OLH(1 << b, 1.0), listable),
        by_bits("HRR", lambda b: HRR(1 << b, 1.0), listable),
        by_bits("PrefixExtension", lambda b: PrefixExtension(b, 1.0), bits),
        by_bits("TreeHist", lambda b: TreeHist(b, 1.0), bits),
        by_bits(
            "SuccinctHistogram",
            lambda b: practical(b, 1.0),
            some[::2] if not quick else some[1:2],
            1,
        ),
        Curve(
            1, "UniqueHeavyHitter", some, lambda b, rng: unique_error(b, 1.0, many, rng), repeats
        ),
        by_users(2, "HRR", lambda: HRR(1 << 16, LN2)),
        by_users(2, "OneBit(HRR)", lambda: OneBit(HRR(1 << 16, LN2))),
        by_users(2, "PrefixExtension", lambda: PrefixExtension(16, LN2)),
        by_users(2, "OneBit(PrefixExtension)", lambda: OneBit(PrefixExtension(16, LN2))),
        by_users(2, "OneBit(SuccinctHistogram)", lambda: OneBit(practical(16, LN2)), fewer),
    ]
    found = iter(
        swept(
            operator.call,
            [case for curve in curves for case in curve.cases(rng)],
            description="errors",
        )
    )
    figure = Figure(figsize=(11, 5.2))
    study = Study(figure)
    for curve in curves:
        study.draw(curve, np.array([[next(found) for _ in range(curve.repeats)] for _ in curve.x]))
    study.bound(0, users, lambda n: lower_bound(round(n), 1 << 16, 1.0))
    study.bound(1, bits, lambda b: lower_bound(many, 1 << int(b), 1.0))
    study.bound(2, users, lambda n: lower_bound(round(n), 1 << 16, LN2))

    for name in ("HRR", "PrefixExtension"):  # 1 / sqrt(n)
        first, last = study.curves[0, name][users[0]], study.curves[0, name][users[-1]]
        assert 0.5 < first / last / math.sqrt(users[-1] / users[0]) < 2
    # sqrt(log d), until users are split over prefix lengths; half of the users are lost to one bit.
    assert study.curves[1, "PrefixExtension"][bits[-1]] < 5 * study.curves[1, "PrefixExtension"][16]
    assert 1 < study.curves[2, "OneBit(HRR)"][users[-1]] / study.curves[2, "HRR"][users[-1]] < 2

    finish(figure, study, many)
    save(figure, out / "heavy-errors.png")
    table(study, users, bits)


def finish(figure: Figure, study: Study, many: int) -> None:
    first = study.panels[0]
    shares = [1 / (np.arange(1, min(SUPPORT, 1 << b) + 1) ** -1.1).sum() for b in range(65)]
    titles = (
        "ε = 1, d = $2^{16}$ items",
        f"ε = 1, n = {many:,} users",
        "ε = ln 2, d = $2^{16}$ items",
    )
    for panel, axes in enumerate(study.panels):
        axes.set_title(titles[panel])
        axes.set_yscale("log")
        mark_numbers(axes.yaxis, logarithmic=True)
        axes.tick_params(labelleft=True)
        axes.set_xlabel("d, items" if panel == 1 else "n, users")
        if panel == 1:
            axes.plot(range(4, 65), shares[4:], color="0.6", linestyle="--", marker="")
            axes.set_xticks(range(4, 65, 12), [f"$2^{{{b}}}$" for b in range(4, 65, 12)])
        else:
            axes.set_xscale("log")
            mark_numbers(axes.xaxis, logarithmic=True)
            axes.axhline(
                shares[16],
                color="0.6",
                linestyle="--",
                label="nothing listed: the largest share",
            )
    first.set_ylabel("largest |estimate − frequency| over all items")
    handles: dict[str, Any] = {}
    for axes in study.panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(
                "UniqueHeavyHitter (one item or none)" if label == "UniqueHeavyHitter" else label,
                handle,
            )
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=4,
    )


def table(study: Study, users: Sequence[int], bits: Sequence[int]) -> None:
    """The curves as numbers."""
    for panel, (title, x) in enumerate(
        (("n", users), ("bits", bits), ("n, epsilon = ln 2", users))
    ):
        print(f"\n{title:26s}" + "".join(f"{value:>9}" for value in x))
        for (where, name), curve in study.curves.items():
            if where == panel:
                print(
                    f"{name:26s}"
                    + "".join(f"{curve[value]:9.4f}" if value in curve else " " * 9 for value in x)
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("figures"),
        help="directory for the pictures (default: figures)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer users, points and repeats: seconds instead of minutes",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="of the items and the reports (default: 1)"
    )
    add_arguments(parser)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(options.seed)
    strings(200_000, 2.0, options.out, rng)
    errors(
        options.quick,
        options.out,
        rng,
        partial(sweep, workers=options.workers, scheduler=options.scheduler),
    )
    print(f"\nwrote heavy-strings.png and heavy-errors.png to {options.out}")


if __name__ == "__main__":
    main()

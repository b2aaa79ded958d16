"""Longitudinal collection: what a day's estimates err, memoised and by the published systems.

Prints Markdown tables.

python benchmarks/longitudinal.py [--quick] [--picture FILE]

The mean square error of an item's frequency, all items equally frequent: predicted exactly, and
measured from reports of a second day, of users who keep their permanent reports. And what two weeks
of reports show to an attacker: that a value has changed, and whose reports they are. At last the
trade-off of error and linkage: the best protocol for every share of users that may be linked, and
the share that the attack links.
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from range_queries import one_core, table
from tqdm import tqdm

from frequency import GRR, SubsetSelection
from frequency.longitudinal import Memoised, linkage_curve
from frequency.longitudinal.published import (
    LGRR,
    LOSUE,
    OLOLOHA,
    RAPPOR,
    BiLOLOHA,
    DBitFlipPM,
)

USERS = {16: 320, 64: 640, 1024: 2048}
"""Of one collection, by the number of items: a multiple of it."""
EPSILONS = ((1.0, 0.5), (2.0, 0.5), (1.5, 0.75), (2.0, 1.0), (3.0, 1.5), (4.0, 1.0), (4.0, 2.0))
ERRORS = 40_000
"""So many squared errors are measured: their mean is known to about 0.7 %."""

SYSTEMS: dict[str, Callable[[int, float, float], Any]] = {
    "RAPPOR": RAPPOR,
    "L-OSUE": LOSUE,
    "L-GRR": LGRR,
    "BiLOLOHA": BiLOLOHA,
    "OLOLOHA": OLOLOHA,
    # Of one round, which must keep the epsilon of a day
    "bBitFlipPM": lambda domain, total, day: DBitFlipPM(domain, day, domain),
}


def memoised(domain: int, total: float, day: float) -> Memoised:
    return Memoised(SubsetSelection(domain, day), total)


def predicted(question: Any, domain: int) -> float:
    """The variance of an item's frequency, for one user."""
    return float(question.protocol.variance(1, 1 / domain))


def measured(question: Any, domain: int, errors: int, rng: np.random.Generator) -> float:
    """The mean square error, times the number of users."""
    users, repeats = USERS[domain], -(-errors // domain)
    protocol, values, total = question.protocol, np.arange(USERS[domain]) % domain, 0.0
    together = max(1, (1 << 17) // users)
    for start in range(0, repeats, together):
        some = min(together, repeats - start)
        held = np.tile(values, some)
        state = question.start(held, rng)
        question.privatize(state, held, rng)
        today = question.privatize(state, held, rng).reshape(some, users)
        for reports in today:
            told = protocol.estimate(protocol.aggregate(reports)).frequencies
            total += float(((told - 1 / domain) ** 2).mean())
    return users * total / repeats


# ------------------------------------------------------------------------------------ the attacker

ATTACKED: dict[str, Callable[[int, float, float], Any]] = {
    "Memoised(SubsetSelection)": memoised,
    "Memoised(GRR), L-GRR": lambda domain, total, day: Memoised(GRR(domain, day), total),
    **{name: make for name, make in SYSTEMS.items() if name != "L-GRR"},
}
DAYS, LINKED, FALSE_ALARMS = 7, 500, 0.1
CURVES = ((64, 1.0, 0.5), (64, 4.0, 2.0), (16, 4.0, 2.0))


def features(question: Any, weeks: list[np.ndarray]) -> list[np.ndarray]:
    """A vector for each user and week, such that weeks of one permanent report have large products.

    Bits that are changed one by one: how often each was set, less than usual; otherwise how often
    each kind of report was sent. Hash functions that last count for more than all else.
    """
    if isinstance(question, RAPPOR | LOSUE):
        bits = [
            np.unpackbits(week["bits"], axis=2, bitorder="little").mean(axis=0) for week in weeks
        ]
        usual = np.mean(np.concatenate(bits), axis=0)
        return [found - usual for found in bits]
    own = (
        [weeks]
        if "hash" not in (weeks[0].dtype.names or ())
        else [weeks, [w["hash"] for w in weeks]]
    )
    found = []
    for told in own:
        codes = np.unique(np.stack(told), return_inverse=True)[1].reshape(2, DAYS, -1)
        counts = np.zeros((2, codes.shape[2], codes.max() + 1), dtype=np.float32)
        for week in range(2):
            for day in range(DAYS):
                counts[week, np.arange(codes.shape[2]), codes[week, day]] += 1
        found.append(counts)
    return [
        np.concatenate([found[0][week], *(10 * more[week] for more in found[1:])], axis=1)
        for week in range(2)
    ]


def two_weeks(question: Any, users: int, changed: np.ndarray, rng: np.random.Generator) -> Any:
    """The features of each user's two weeks, between which some values change."""
    domain = question.protocol.domain
    values = rng.integers(0, domain, users)
    moved = np.where(changed, (values + rng.integers(1, domain, users)) % domain, values)
    state = question.start(values, rng)
    weeks = [
        np.stack([question.privatize(state, held, rng) for _ in range(DAYS)])
        for held in (values, moved)
    ]
    return features(question, weeks)


def noticed(question: Any, users: int, rng: np.random.Generator) -> float:
    """The fraction of changes that are noticed, by the products, with so many false alarms."""
    changed = np.arange(users) % 2 == 1
    first, second = two_weeks(question, users, changed, rng)
    alike = (first * second).sum(axis=1) + 1e-6 * rng.random(users)  # ties are broken at random
    threshold = np.quantile(alike[~changed], FALSE_ALARMS)
    return float((alike[changed] < threshold).mean())


def linked(question: Any, times: int, rng: np.random.Generator) -> float:
    """The fraction of users whose second week is the one most like their first, of 500."""
    right = []
    for _ in range(times):
        first, second = two_weeks(question, LINKED, np.zeros(LINKED, dtype=bool), rng)
        alike = first @ second.T + 1e-3 * rng.random((LINKED, LINKED))
        right.append((alike.argmax(axis=1) == np.arange(LINKED)).mean())
    return float(np.mean(right))


def attacks(quick: bool, rng: np.random.Generator) -> list[list[str]]:
    rows = []
    for domain in (16,) if quick else (16, 64):
        for total, day in ((1.0, 0.5), (4.0, 2.0)):
            for name, make in ATTACKED.items():
                question = make(domain, total, day)
                seen = noticed(question, 1_000 if quick else 4_000, rng)
                who = linked(question, 1 if quick else 4, rng)
                rows.append(
                    [str(domain), f"{total:g}", f"{day:g}", name, f"{seen:.0%}", f"{who:.1%}"]
                )
    return rows


def trade_offs(quick: bool, rng: np.random.Generator) -> list[list[str]]:
    """The curves: of each point the variance over the least, who is linked at most, and who is."""
    rows = []
    for domain, total, day in CURVES[:1] if quick else CURVES:
        curve = linkage_curve(domain, total, day, LINKED, DAYS)
        points = sorted((*curve.points, *curve.others), key=lambda point: point.linked)
        least = curve.points[-1].error
        for point in tqdm(points, leave=False):
            measured = linked(point.question, 1 if quick else 8, rng)
            assert measured <= point.linked + (0.05 if quick else 0.02), "more than at most"
            rows.append(
                [
                    *(str(domain), f"{total:g}", f"{day:g}"),
                    f"**{point.name}**" if point in curve.points else point.name,
                    f"{(point.error / least) ** 2:.3f}",
                    f"{point.linked:.1%}",
                    f"{measured:.1%}",
                ]
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture", help="where to draw the first trade-off of error and linkage")
    options = parser.parse_args()
    quick = options.quick
    if options.picture:
        figure = linkage_curve(*CURVES[0], LINKED, DAYS).plot()
        figure.savefig(options.picture, bbox_inches="tight")
        return
    one_core()
    rng = np.random.default_rng(28)
    rows: list[list[str]] = []
    domains, epsilons = (16,) if quick else USERS, EPSILONS[:2] if quick else EPSILONS
    errors = 2_000 if quick else ERRORS
    cells = [(domain, *each) for domain in domains for each in epsilons]
    for domain, total, day in tqdm(cells, leave=False):
        made = {"Memoised": memoised(domain, total, day)}
        made |= {name: make(domain, total, day) for name, make in SYSTEMS.items()}
        told = {name: predicted(question, domain) for name, question in made.items()}
        found = {
            name: measured(question, domain, errors, rng) / told[name]
            for name, question in made.items()
        }
        least = told.pop("Memoised")
        assert least <= min(told.values()), "a named system has less variance"
        ours = found.pop("Memoised")
        rows.append(
            [
                str(domain),
                f"{total:g}",
                f"{day:g}",
                f"{least:.3g}",
                *(f"{variance / least:.3f}" for variance in told.values()),
                f"{ours:.3f}",
                f"{min(found.values()):.3f} - {max(found.values()):.3f}",
            ]
        )
    head = ["items", "total", "day", "Memoised", *SYSTEMS]
    print("\n# Longitudinal collection: the error of a day")
    table(
        "The variance of an item for one user, and that of the systems over it",
        [*head, "measured / predicted", "of the systems"],
        rows,
    )
    table(
        "Two weeks of reports: changes noticed with 10 % false alarms, users linked among 500",
        ["items", "total", "day", "system", "changes noticed", "users linked"],
        attacks(quick, np.random.default_rng(28)),
    )
    table(
        "Error and linkage: two weeks of 500 users; in bold, the best for their linkage",
        ["items", "total", "day", "protocol", "variance", "linked at most", "linked"],
        trade_offs(quick, np.random.default_rng(28)),
    )


if __name__ == "__main__":
    main()

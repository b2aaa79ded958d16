"""Collect a categorical answer under local privacy at several sites, and publish frequencies.

    python examples/collect_frequencies.py --out demo
    python examples/collect_frequencies.py --csv adult.csv --column education \\
        --items levels.txt --epsilon 1

By default the users are the 6,366 respondents of Redbook's 1974 survey (Fair, Journal of Political
Economy 86(1), 1978), as shipped by statsmodels (install this project with the extra ``data``), and
the answer is education crossed with religiousness.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import Counter
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import numpy.typing as npt

from frequency import Estimate, plot, postprocess
from mechdesign import plan
from mechdesign.plot import save

SITES = 3

SCHOOLING = {
    9: "grade school",
    12: "high school",
    14: "some college",
    16: "college",
    17: "some graduate",
    20: "advanced",
}
FAITH = {1: "not", 2: "mildly", 3: "fairly", 4: "strongly"}
"""The codes of the survey and their meaning, which are public."""


def survey() -> list[str]:
    """One answer for each respondent."""
    try:
        from statsmodels.datasets import fair
    except ImportError:
        sys.exit(
            "this example needs statsmodels, which ships the data: pip install '.[data]' in a clone"
            " (or: make demo)"
        )
    data = fair.load_pandas().data
    return [
        f"{SCHOOLING[e]}, {FAITH[r]} religious"
        for e, r in zip(data["educ"], data["religious"], strict=True)
    ]


def possible(text: str) -> list[str]:
    """The items of a list with commas, or of the lines of a file of that name."""
    path = Path(text)
    given = path.read_text(encoding="utf-8-sig").splitlines() if path.is_file() else text.split(",")
    items = [item.strip() for item in given if item.strip()]
    if len(items) < 2 or len(set(items)) < len(items):
        raise argparse.ArgumentTypeError(
            f"at least two different items, with commas or in the lines of a file, got {items[:9]}"
        )
    return items


def column(path: Path, name: str) -> list[str]:
    """One answer for each row of a CSV file with a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(stream)
            if name not in (rows.fieldnames or []):
                sys.exit(
                    f"{path} has no column {name!r}; it has {', '.join(rows.fieldnames or [])}"
                )
            return [(row[name] or "").strip() for row in rows]
    except OSError as error:
        sys.exit(f"cannot read {path}: {error.strerror}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--csv", type=Path, help="a CSV file with a header (default: the survey of statsmodels)"
    )
    parser.add_argument("--column", help="the column with the answers, with --csv")
    parser.add_argument(
        "--items",
        type=possible,
        help="with --csv: what may be answered, with commas or a file with an item a line",
    )
    parser.add_argument(
        "--epsilon", type=float, default=2.0, help="privacy loss of a report (default: 2)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="directory for the figure (default: demo)"
    )
    parser.add_argument(
        "--seed", type=int, help="reproducible randomness (default: the operating system's)"
    )
    options = parser.parse_args()
    if len({value is None for value in (options.csv, options.column, options.items)}) > 1:
        parser.error("--csv, --column and --items go together: the list of items must be public")
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    # Public: the possible answers, in their order, and the oracle. A list that is read off the data
    # would tell which answers occur.
    if options.csv is None:
        given = survey()
        labels = sorted(f"{e}, {r} religious" for e in SCHOOLING.values() for r in FAITH.values())
    else:
        given, labels = column(options.csv, options.column), options.items
    place = {label: k for k, label in enumerate(labels)}
    values = np.array([place[answer] for answer in given if answer in place], dtype=np.int64)
    if len(values) < len(given):
        print(
            f"{len(given) - len(values)} of {len(given)} answers are no items and were left out\n"
        )
    if not len(values):
        sys.exit(f"no answer in column {options.column!r} of {options.csv} is an item")
    choice = plan("frequencies", len(labels), epsilon=options.epsilon, n=len(values))
    oracle = choice.best.protocol
    audit = oracle.audit()
    print(f"{choice}\n\n{oracle}")
    print(
        f"largest likelihood ratio of the draws: e^{math.log(audit.ratio):.9f}, proved <="
        f" e^{options.epsilon:g}: {audit.holds}"
    )
    assert audit.holds

    # Every user sends one report to one of the sites; a site sends its aggregate on. One message
    # of the survey is damaged.
    tally: Counter[str] = Counter()
    aggregates = []
    for site in range(SITES):
        message = oracle.reports_to_bytes(oracle.privatize(values[site::SITES], rng))
        received = message[:-1] if options.csv is None and site == 0 else message
        aggregates.append(oracle.aggregate(oracle.reports_from_bytes(received, tally)).to_bytes())
    total = reduce(add, map(oracle.aggregate_from_bytes, aggregates))
    estimate = oracle.estimate(total)
    print(
        f"\n{SITES} sites, {estimate.n} reports, refused: {dict(tally)}; an aggregate takes"
        f" {len(aggregates[0])} bytes"
    )
    assert estimate.n == len(values) - tally.total()

    truth = np.bincount(values, minlength=len(labels)) / len(values)
    report(estimate, truth, labels)
    figure = plot.frequencies(estimate, truth, labels)
    save(figure, options.out / "frequencies.png")
    print(f"wrote {options.out / 'frequencies.png'}")


def report(estimate: Estimate, truth: npt.NDArray[np.float64], labels: list[str]) -> None:
    """Print the largest frequencies and how good all of them are, and assert it."""
    low, high = estimate.interval()
    width = max(map(len, labels))
    print(f"\n{'':{width}}  estimate  95% interval         truth (a check, not for publication)")
    for k in np.argsort(-estimate.frequencies)[:8]:
        print(
            f"{labels[k]:{width}}   {estimate.frequencies[k]:7.4f}  [{low[k]:7.4f}, {high[k]:7.4f}]"
            f"  {truth[k]:7.4f}"
        )

    covered = int(((low <= truth) & (truth <= high)).sum())
    print(f"\n{covered} of {len(labels)} intervals contain the truth")
    # Fails by chance about once in a million runs, whatever the number of items
    assert covered >= 0.5 * len(labels) - 2

    college = np.array([label.startswith(("college", "Bachelors", "Masters")) for label in labels])
    if college.any():  # a sum of some items, with the error of the sum
        value, variance = estimate.linear(college.astype(float))
        print(
            f"college: {value:.4f} +- {1.96 * math.sqrt(variance):.4f}, truth"
            f" {truth[college].sum():.4f}"
        )

    published = postprocess.empirical_bayes(estimate).frequencies
    before, after = (
        math.sqrt(np.mean((f - truth) ** 2)) for f in (estimate.frequencies, published)
    )
    print(f"RMSE {before:.4f}; by empirical Bayes, a distribution: {after:.4f}")
    assert math.isclose(published.sum(), 1)
    assert after <= 1.25 * before  # with few items there is little to learn from, and it may err


if __name__ == "__main__":
    main()

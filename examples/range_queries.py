"""Collect a number under local privacy, and publish ranges, the cdf and the deciles.

    python examples/range_queries.py --out demo
    python examples/range_queries.py --csv adult.csv --column age --domain 100

By default the users are the 20,190 person-years of the RAND health insurance experiment, as
shipped by statsmodels (install this project with the extra ``data``), and the attribute is how
often a respondent saw a doctor in the year, 0 .. 63 (more count as 63).
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechdesign.plot import save
from rangeq import Between, RangeEstimate, optimise, plot


def visits() -> npt.NDArray[np.int64]:
    """Visits to a doctor of each respondent in a year."""
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        sys.exit(
            "this example needs statsmodels, which ships the data: pip install '.[data]' in a clone"
            " (or: make demo)"
        )
    return randhie.load_pandas().data["mdvis"].to_numpy().astype(np.int64)


def column(path: Path, name: str) -> npt.NDArray[np.int64]:
    """A column of whole numbers of a CSV file with a header."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = csv.DictReader(stream)
            if name not in (rows.fieldnames or []):
                sys.exit(
                    f"{path} has no column {name!r}; it has {', '.join(rows.fieldnames or [])}"
                )
            return np.array([int(row[name]) for row in rows], dtype=np.int64)
    except OSError as error:
        sys.exit(f"cannot read {path}: {error.strerror}")
    except ValueError as error:
        sys.exit(f"column {name!r} of {path} must hold whole numbers: {error}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--csv", type=Path, help="a CSV file with a header (default: the data of statsmodels)"
    )
    parser.add_argument("--column", help="the column with the numbers, with --csv")
    parser.add_argument(
        "--domain",
        type=int,
        default=64,
        help="numbers are 0 .. domain-1, which must be known without looking (default: 64)",
    )
    parser.add_argument(
        "--clamp", action="store_true", help="move numbers beyond the domain to its ends"
    )
    parser.add_argument(
        "--epsilon", type=float, default=1.0, help="privacy loss of a report (default: 1)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="directory for the figure (default: demo)"
    )
    parser.add_argument(
        "--seed", type=int, help="reproducible randomness (default: the operating system's)"
    )
    options = parser.parse_args()
    if (options.csv is None) != (options.column is None):
        parser.error("--csv and --column go together")
    if options.domain < 4:
        parser.error("the domain must have at least 4 numbers for ranges to be of interest")
    given = visits() if options.csv is None else column(options.csv, options.column)
    if not len(given):
        sys.exit(f"{options.csv} has no records")
    numbers = given.clip(0, options.domain - 1)
    if (beyond := int((numbers != given).sum())) and options.csv is not None:
        found = f"{beyond} of {len(given)} numbers are not in 0 .. {options.domain - 1}"
        if not options.clamp:
            sys.exit(f"{found}: give a larger --domain, or --clamp to move them to the ends")
        print(f"{found} and were moved to the ends\n")
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)

    best = optimise(options.domain, options.epsilon, n=len(numbers))
    print(f"predicted error of a range, the five best of {len(best.alternatives)} protocols")
    print("\n".join(str(best).splitlines()[:6]))
    protocol = best.protocol
    audit = protocol.audit()
    print(
        f"\nlargest likelihood ratio of the draws: e^{math.log(audit.ratio):.9f}, proved <="
        f" e^{options.epsilon:g}: {audit.holds}"
    )
    assert audit.holds

    reports = protocol.privatize(numbers, rng)  # on the users' devices
    estimate = protocol.estimate(protocol.aggregate(reports))  # on the server
    truth = np.bincount(numbers, minlength=options.domain) / len(numbers)
    report(estimate, truth, best.rmse)
    label = "visits to a doctor in a year" if options.csv is None else options.column
    save(plot.cdf(estimate, truth, xlabel=label), options.out / "cdf.png")
    print(f"wrote {options.out / 'cdf.png'}")


def report(estimate: RangeEstimate, truth: npt.NDArray[np.float64], predicted: float) -> None:
    """Print some ranges and the deciles with the truth, and check the errors."""
    domain = len(truth)
    sums = np.concatenate([[0.0], np.cumsum(truth)])
    ends = sorted({0, 1, 2, domain // 16, domain // 8, domain // 4, domain // 2, domain - 1})
    first, last = np.array(
        [(a, b) for a in ends for b in ends if a < b][:: max(1, len(ends) // 3)]
    ).T
    low, high = estimate.answer(Between(first, last)).interval()
    print(
        f"\n{estimate.n} reports\nfrom    to  estimate  95% interval         truth (a check, not"
        " for publication)"
    )
    for a, b, value, start, end in zip(
        first, last, estimate.range(first, last), low, high, strict=True
    ):
        print(
            f"{a:4d}  {b:4d}   {value:7.4f}  [{start:7.4f}, {end:7.4f}] "
            f" {sums[b + 1] - sums[a]:7.4f}"
        )

    phi = np.arange(1, 10) / 10
    left, right = estimate.quantile_interval(phi)
    print("\ndecile      " + " ".join(f"{p:7.0%}" for p in phi))
    print("estimate    " + " ".join(f"{q:7d}" for q in estimate.quantile(phi)))
    print(
        (
            "95% interval" + " ".join(f"{a:3d}-{b:<3d}" for a, b in zip(left, right, strict=True))
        ).rstrip()
    )
    print("truth       " + " ".join(f"{q:7d}" for q in np.searchsorted(sums[1:], phi - 1e-12)))

    a, b = np.triu_indices(domain, 1)
    rmse = math.sqrt(np.mean((estimate.range(a, b) - (sums[b + 1] - sums[a])) ** 2))
    print(f"\nRMSE over all {len(a)} ranges: predicted {predicted:.4f}, measured {rmse:.4f}")
    # Errors of ranges are few independent numbers: the ratio varies, but not as much
    assert rmse <= 3 * predicted + 1e-9


if __name__ == "__main__":
    main()

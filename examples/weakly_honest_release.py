"""Design the weakly honest, column monotone mechanism for groups of 8, and release real counts.

    python examples/weakly_honest_release.py --out demo

The individuals are the 6,366 respondents of Redbook's 1974 survey on extramarital affairs (Fair,
Journal of Political Economy 86(1), 1978), as shipped by statsmodels (install this project with the
extra ``data``). The sensitive bit is whether a respondent reported an affair. The file is sorted by
that bit, so respondents are shuffled (always the same way) before they form groups of 8; the count
of each group is released.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mechdesign import Design, Mechanism, Privacy, design, losses, named, plot
from mechdesign.losses import L0
from mechdesign.mechanism.comparison import compare
from mechdesign.properties import ColumnMonotone, WeakHonesty

GROUP = 8
ALPHA = "9/10"


def group_counts() -> npt.NDArray[np.int64]:
    """How many of each group of 8 respondents reported an affair: shape (795,).

    The last 6 respondents are left out.
    """
    try:
        from statsmodels.datasets import fair
    except ImportError:
        sys.exit(
            "this example needs statsmodels, which ships the data: pip install '.[data]' in a clone"
            " (or: make demo)"
        )
    bits = fair.load_pandas().data["affairs"].to_numpy() > 0
    bits = np.random.default_rng(1974).permutation(bits)
    whole = len(bits) // GROUP * GROUP
    return bits[:whole].reshape(-1, GROUP).sum(axis=1)


def designed() -> tuple[Design, dict[str, Mechanism]]:
    found = design(GROUP, Privacy(alpha=ALPHA), L0(), [WeakHonesty(), ColumnMonotone()])
    table = {
        "WH+CM": found.mechanism,
        "GM": named.geometric(GROUP, alpha=ALPHA),
        "EM": named.explicit_fair(GROUP, alpha=ALPHA),
        "UM": named.uniform(GROUP),
    }
    return found, table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="directory for the files (default: demo)"
    )
    parser.add_argument(
        "--seed", type=int, help="reproducible randomness (default: the operating system's)"
    )
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    found, table = designed()
    certificate = found.certificate
    print(f"certificate: {certificate}")
    print(f"  objective {certificate.objective}, bound {certificate.bound}, gap {certificate.gap}")
    assert certificate.gap == 0
    assert certificate.verify(found.mechanism)
    print(
        f"\nfor uniformly distributed counts of 0 .. {GROUP}, alpha = {ALPHA} (worst ratio allowed:"
        f" 1.11111):\n{compare(table)}"
    )

    found.save(options.out / "wm.json")
    assert Mechanism.load(options.out / "wm.json") == found.mechanism
    plot.save(plot.heatmaps(table), options.out / "heatmaps.png")

    truth = group_counts()
    prior = losses.prior(np.bincount(truth, minlength=GROUP + 1).tolist())
    rng = None if options.seed is None else np.random.default_rng(options.seed)
    released = found.mechanism.release(truth, rng)
    print(
        f"\n{len(truth)} groups of {GROUP} survey respondents; how many of each group reported an"
        " affair"
    )
    print("group     " + " ".join(f"{k:2d}" for k in range(1, 21)))
    print("true      " + " ".join(f"{count:2d}" for count in truth[:20]))
    print(
        "released  "
        + " ".join(f"{count:2d}" for count in released[:20])
        + "   (only this row may be published)"
    )

    # This looks at the truth again: it is a check of the library, and no part of what may be
    # published.
    print(
        "\nerror of the released counts, predicted exactly from the table and the true group counts"
        " (a check, not for publication):"
    )
    distribution = found.mechanism.error_distribution(prior)
    errors = released - truth
    deviations = []
    for name, predicted, each in (
        ("wrong", float(distribution.tail(0)), errors != 0),
        ("off by more than 1", float(distribution.tail(1)), abs(errors) > 1),
        ("mean squared error", float(distribution.mean_square), errors**2),
    ):
        standard_error = float(np.std(each)) / math.sqrt(len(each))
        deviations.append(abs(each.mean() - predicted) / standard_error)
        print(
            f"  {name:20s} predicted {predicted:7.4f}   measured {each.mean():7.4f} +-"
            f" {standard_error:.4f}"
        )
    # Seven standard errors: about 1e-11 for each of the three normal approximations.
    assert max(deviations) < 7, deviations
    # For publication: a prior that does not depend on the data, with a third of the bits set.
    public = losses.binomial(GROUP, "1/3")
    figure = plot.error_histograms(table, public)
    figure.suptitle(f"groups of {GROUP}, alpha = {ALPHA}, counts Binomial({GROUP}, 1/3)")
    plot.save(figure, options.out / "errors.png")

    written = ("wm.json", "heatmaps.png", "errors.png")
    print("\nwrote " + ", ".join(str(options.out / name) for name in written))


if __name__ == "__main__":
    main()

"""Draw the figures of thesis chapter 6 from exact values, and check what its text says about them.

    python examples/thesis_figures.py --out figures

Figures 6.1, 6.6, 6.7, 6.8 and 6.10 - 6.13. Where the text and the exact values disagree,
docs/notation.md says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

from matplotlib.figure import Figure

from mechdesign import Mechanism, Privacy, design, losses, named, plot
from mechdesign.losses import L0, L1, L2
from mechdesign.mechanism.table import ErrorDistribution

SCALED = "scaled L0 (eq. 6.1)"


@cache
def weakly_honest(n: int, alpha: Fraction, *extra: str) -> Mechanism:
    return design(n, Privacy(alpha=alpha), L0(), ["WH", *extra]).mechanism


def family(n: int, alpha: Fraction) -> dict[str, Mechanism]:
    """The four mechanisms of Figure 6.5, WM as in section 6.7."""
    return {
        "GM": named.geometric(n, alpha=alpha),
        "WM": named.weakly_honest(n, alpha=alpha, column_monotone=True),
        "EM": named.explicit_fair(n, alpha=alpha),
        "UM": named.uniform(n),
    }


def l0_against_n(curves: Mapping[str, Callable[[int], Mechanism]], ns: Sequence[int]) -> Figure:
    """The scaled L0 (eq. 6.1) for groups of different sizes at fixed privacy (6.7a, 6.8)."""
    scores = {name: [float(curve(n).scaled_l0()) for n in ns] for name, curve in curves.items()}
    return plot.lines("number of respondents n", SCALED, ns, scores, whole=True)


def l0_against_alpha(
    curves: Mapping[str, Callable[[Fraction], Mechanism]], alphas: Sequence[Fraction]
) -> Figure:
    """The scaled L0 (eq. 6.1) against alpha for one number of respondents (6.7b)."""
    scores = {name: [float(curve(a).scaled_l0()) for a in alphas] for name, curve in curves.items()}
    label = "privacy parameter α = exp(−ε) (1 is perfect privacy)"
    return plot.lines(label, SCALED, [float(alpha) for alpha in alphas], scores)


def against_p(
    mechanisms: Mapping[str, Mechanism],
    ps: Sequence[Fraction],
    label: str,
    error: Callable[[ErrorDistribution], float],
) -> Figure:
    """An error against p, when the count is of n independent bits, each 1 with probability p."""
    n = next(iter(mechanisms.values())).inputs - 1
    values = {
        name: [error(mechanism.error_distribution(losses.binomial(n, p))) for p in ps]
        for name, mechanism in mechanisms.items()
    }
    xlabel = f"probability p of each bit, input ~ Binomial({n}, p)"
    return plot.lines(xlabel, label, [float(p) for p in ps], values)


def l0d_against_p(
    mechanisms: Mapping[str, Mechanism], ps: Sequence[Fraction], d: int = 1
) -> Figure:
    """The chance of an answer more than d steps off, not scaled as in eq. 6.1 (6.10)."""
    label = f"Pr[ |output − input| > {d} ]"
    return against_p(mechanisms, ps, label, lambda errors: float(errors.tail(d)))


def rmse_against_p(mechanisms: Mapping[str, Mechanism], ps: Sequence[Fraction]) -> Figure:
    """The root mean square error (6.12)."""
    return against_p(mechanisms, ps, "root mean square error", lambda errors: errors.rmse)


def figure_6_1() -> Figure:
    privacy = Privacy(alpha="62/100")
    panels = {
        "L0, d = 1, n = 5": (5, L0(1)),
        "L1, n = 7": (7, L1()),
        "L2, n = 4": (4, L2()),
        "L2, n = 7": (7, L2()),
    }
    tables = {name: design(n, privacy, loss).mechanism for name, (n, loss) in panels.items()}
    # "all these optimal mechanisms never report some outputs": here the two ends.
    assert all(
        not any(table.weights[0]) and not any(table.weights[-1]) for table in tables.values()
    )
    return plot.heatmaps(tables)


def figure_6_6() -> Figure:
    tables = family(4, Fraction(9, 10))
    del tables["UM"]
    assert all(tables["EM"].properties().values())
    return plot.heatmaps(tables)


def figure_6_7a() -> Figure:
    alpha = Fraction(76, 100)
    sets = {
        "WH": (),
        "WH + RM": ("RM",),
        "WH + CH": ("CH",),
        "WH + CM": ("CM",),
        "WH + RM + CM": ("RM", "CM"),
    }
    curves: dict[str, Callable[[int], Mechanism]] = {
        name: partial(lambda extra, n: weakly_honest(n, alpha, *extra), extra)
        for name, extra in sets.items()
    }
    # Two behaviours; from n > 2 alpha / (1 - alpha) = 6.33 on, WH alone costs what GM costs.
    for n in range(2, 13):
        assert weakly_honest(n, alpha).scaled_l0() == weakly_honest(n, alpha, "RM").scaled_l0()
        assert (
            weakly_honest(n, alpha, "CH").scaled_l0()
            == weakly_honest(n, alpha, "RM", "CM").scaled_l0()
        )
        assert (weakly_honest(n, alpha).scaled_l0() == 2 * alpha / (1 + alpha)) == (n >= 7)
    return l0_against_n(curves, range(2, 13))


def figure_6_7b() -> Figure:
    curves: dict[str, Callable[[Fraction], Mechanism]] = {
        "GM": lambda alpha: named.geometric(8, alpha=alpha),
        "WH": lambda alpha: weakly_honest(8, alpha),
        "WH + CM": lambda alpha: weakly_honest(8, alpha, "CM"),
        "EM": lambda alpha: named.explicit_fair(8, alpha=alpha),
    }
    return l0_against_alpha(curves, [Fraction(k, 20) for k in range(8, 20)])


def figure_6_8(alpha: Fraction) -> Figure:
    curves: dict[str, Callable[[int], Mechanism]] = {
        "GM": lambda n: named.geometric(n, alpha=alpha),
        "WH": lambda n: weakly_honest(n, alpha),
        "WH + RM + CM": lambda n: weakly_honest(n, alpha, "RM", "CM"),
        "EM": lambda n: named.explicit_fair(n, alpha=alpha),
        "UM": named.uniform,
    }
    return l0_against_n(curves, range(2, 25, 2))


NUMBERS = ("6.1", "6.6", "6.7a", "6.7b", "6.8a", "6.8b", "6.8c", "6.10", "6.11", "6.12", "6.13")
"""Of the figures that are drawn, in order."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("figures"),
        help="directory for the pictures (default: figures)",
    )
    parser.add_argument(
        "--figure",
        action="append",
        choices=NUMBERS,
        metavar="NUMBER",
        help="only this one, such as 6.7a; may be repeated",
    )
    options = parser.parse_args(arguments)

    private, loose = family(8, Fraction(91, 100)), family(8, Fraction(67, 100))
    grid = [Fraction(k, 10) for k in range(11)]
    figures: dict[str, Callable[[], Figure]] = {
        "6.1": figure_6_1,
        "6.6": figure_6_6,
        "6.7a": figure_6_7a,
        "6.7b": figure_6_7b,
        "6.8a": lambda: figure_6_8(Fraction(2, 3)),
        "6.8b": lambda: figure_6_8(Fraction(10, 11)),
        "6.8c": lambda: figure_6_8(Fraction(99, 100)),
        "6.10": lambda: l0d_against_p(private, grid, d=1),
        "6.11": lambda: plot.l0d_against_d(private, losses.binomial(8, "1/2")),
        "6.12": lambda: rmse_against_p(private, grid),
        "6.13": lambda: plot.error_histograms(
            {name: loose[name] for name in ("GM", "WM", "EM")}, losses.binomial(8, "7/10")
        ),
    }
    assert tuple(figures) == NUMBERS
    wanted = options.figure or list(figures)
    # Section 6.7.3: at alpha = 0.91 GM has a larger error than a blind guess on balanced data, EM a
    # smaller one.
    balanced = losses.binomial(8, "1/2")
    rmse = {
        name: mechanism.error_distribution(balanced).rmse for name, mechanism in private.items()
    }
    assert rmse["EM"] < rmse["UM"] < rmse["GM"]
    options.out.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        plot.save(figures[name](), options.out / f"figure-{name}.png")
    print(f"wrote {len(wanted)} figure{'s' if len(wanted) > 1 else ''} to {options.out}")


if __name__ == "__main__":
    main()

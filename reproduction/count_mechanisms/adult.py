"""Thesis figure 6.9: errors on groups of Adult."""

from __future__ import annotations

import csv
import math
from fractions import Fraction as Q
from functools import cache, partial
from pathlib import Path

import numpy as np

from mechdesign import named
from mechdesign.losses import prior
from reproduction.count_mechanisms.programs import family
from reproduction.report import Kind, Outcome, Settings, claim, judged, of_data, series


@cache
def adults(path: Path) -> dict[str, np.ndarray]:
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    bits = {
        "young": [int(row["age"]) < 30 for row in rows],
        "gender": [row["sex"] == "Female" for row in rows],
        "income": [row["income"].startswith(">") for row in rows],
    }
    return {name: np.array(values, dtype=np.int64) for name, values in bits.items()}


def figure_6_9(target: str, settings: Settings, data: Path) -> Outcome:
    alpha, sizes, repeats = (
        Q(9, 10),
        (2, 4, 8, 12) if settings.quick else (2, 3, 4, 5, 6, 7, 8, 9, 10, 12),
        5 if settings.quick else 50,
    )
    bits, rng = adults(data / "adult.csv")[target], np.random.default_rng(9)
    exact: dict[str, list[float]] = {}
    standard: list[float] = []
    for n in sizes:
        groups = bits[: len(bits) // n * n].reshape(-1, n).sum(axis=1)
        weights = prior(np.bincount(groups, minlength=n + 1).tolist())
        mechanisms = {**family(n, alpha), "WH alone": named.weakly_honest(n, alpha=alpha)}
        for name, m in mechanisms.items():
            p = float(m.error_distribution(weights).tail())
            exact.setdefault(name, []).append(p)
            measured = [np.mean(m.release(groups, rng) != groups) for _ in range(repeats)]
            standard.append(
                (np.mean(measured) - p) / math.sqrt(p * (1 - p) / len(groups) / repeats)
            )
    gm, wm, wh, em, um = (np.array(exact[name]) for name in ("GM", "WM", "WH alone", "EM", "UM"))
    worse = [n for n, a, b in zip(sizes, gm, um, strict=True) if a > b]
    size = sizes.index(8)
    # "Tracks UM quite closely": nearer to UM than to EM, in large groups.
    large = np.array(sizes) >= 10
    tracks = {
        name: bool((abs(x - um) < abs(x - em))[large].all())
        for name, x in (("WM", wm), ("WH alone", wh))
    }
    always = len(worse) == len(sizes)
    printed = {
        "UM errs with 1 - 1/(n+1)": np.allclose(um, [n / (n + 1) for n in sizes]),
        "GM errs more than UM": always,
        "WM, with RM and CM as 6.7.1 has it, is nearer to UM than to EM (n >= 10)": tracks["WM"],
        "EM errs least": bool((em <= np.minimum.reduce([gm, wm, um])).all()),
        f"what {repeats} repetitions give is what the tables say (within 5 standard errors)": (
            max(map(abs, standard)) < 5
        ),
    }
    # The corrections are of WM's name alone: where GM beats a guess it is the data that differ, not
    # the words.
    true = {
        "WH alone is nearer to UM than to EM (n >= 10): the words fit the WM of 6.6": tracks[
            "WH alone"
        ],
        "EM errs least but for WM with RM and CM": bool(
            (em <= np.minimum.reduce([gm, wh, um])).all()
        ),
        "GM errs more than UM": always,
    }
    low = "" if always else f"GM errs more than UM at n = {', '.join(map(str, worse))} only. "
    return judged(
        f"n = 8: GM {gm[size]:.3f}, WM {wm[size]:.3f} (WH alone {wh[size]:.3f}), EM {em[size]:.3f},"
        f" UM {um[size]:.3f}",
        printed,
        true,
        remarks=(
            f"{low}{len(bits)} respondents in the order of the file, {bits.mean():.1%} with the"
            " bit; the thesis has 32 K"
        ),
        detail=series(
            "Probability of a wrong answer, exact for these groups", "n", sizes, exact, 4
        ),
    )


figure_6_9_a = claim(
    "Figure 6.9(a)",
    "errors on Adult, young",
    "α = 0.9: UM errs 1 - 1/(n+1); GM appreciably more; WM tracks UM; EM least",
    by="mechdesign.Mechanism.error_distribution",
    tolerance="exact; five standard errors for the draws",
    seed="9",
    kind=Kind.AMBIGUOUS,
    same_as="Sections 6.6, 6.7.1: WM",
)(of_data(partial(figure_6_9, "young")))

figure_6_9_b = claim(
    "Figure 6.9(b)",
    "errors on Adult, gender",
    "α = 0.9: UM errs 1 - 1/(n+1); GM appreciably more; WM tracks UM; EM least",
    by="mechdesign.Mechanism.error_distribution",
    tolerance="exact; five standard errors for the draws",
    seed="9",
    kind=Kind.AMBIGUOUS,
    same_as="Sections 6.6, 6.7.1: WM",
)(of_data(partial(figure_6_9, "gender")))

figure_6_9_c = claim(
    "Figure 6.9(c)",
    "errors on Adult, income",
    "α = 0.9: UM errs 1 - 1/(n+1); GM appreciably more; WM tracks UM; EM least",
    by="mechdesign.Mechanism.error_distribution",
    tolerance="exact; five standard errors for the draws",
    seed="9",
    kind=Kind.DATA,
)(of_data(partial(figure_6_9, "income")))


CLAIMS = (
    figure_6_9_a,
    figure_6_9_b,
    figure_6_9_c,
)

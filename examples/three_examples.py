"""The figure of the README: a count, frequencies and a distribution of ages, each with its error.

    python examples/three_examples.py [--out FOLDER]

Data are made up, and drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from frequency import OLH
from mechdesign import Privacy, design
from mechdesign.plot import look, save, style
from mechdesign.properties import ColumnMonotone, WeakHonesty
from rangeq import Between, optimise

ESTIMATE, TRUTH, BAND = (look(series)["color"] for series in (0, 1, 5))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the picture")
    options = parser.parse_args()

    rng = np.random.default_rng(1)
    with style():
        figure = Figure(figsize=(11.0, 3.6))
        for axes, draw in zip(figure.subplots(1, 3), (published_count, answers, ages), strict=True):
            draw(axes, rng)
    options.out.mkdir(parents=True, exist_ok=True)
    save(figure, options.out / "three-examples.png")
    print(f"wrote {options.out / 'three-examples.png'}")


def published_count(axes: Axes, rng: np.random.Generator) -> None:
    """What may be published when three of eight patients tested positive."""
    privacy = Privacy.from_epsilon(0.5)
    mechanism = design(8, privacy, properties=[WeakHonesty(), ColumnMonotone()]).mechanism
    assert mechanism.audit().holds
    chances = mechanism.matrix[:, 3]
    assert chances.argmax() == 3  # column monotone: the truth is the most probable answer
    colours = [TRUTH if answer == 3 else BAND for answer in range(9)]
    bars = axes.bar(range(9), chances, color=colours)
    bars[3].set(hatch="///", edgecolor="white", linewidth=0)
    axes.grid(False, axis="x")
    axes.set(xlabel="published count, of 8; the truth is 3", ylabel="probability", xticks=range(9))
    axes.set_title("A count, published (ε = 0.5)")


def answers(axes: Axes, rng: np.random.Generator) -> None:
    """The most frequent of 1024 answers, from one private report of each user."""
    users, shown = 100_000, 12
    held = np.minimum(rng.geometric(0.1, size=users) - 1, 1023)
    protocol = OLH(domain=1024, epsilon=1.0)
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(held, rng)))
    low, high = estimate.interval(0.95)
    truth = np.bincount(held, minlength=1024) / users
    # Three misses of twelve 95 % intervals have probability 0.02; the seed is fixed.
    assert ((low <= truth) & (truth <= high))[:shown].sum() >= shown - 2
    items = np.arange(shown)
    middle = estimate.frequencies[:shown]
    bars = np.abs(np.stack([low[:shown], high[:shown]]) - middle)
    axes.errorbar(
        items,
        middle,
        bars,
        fmt="o",
        color=ESTIMATE,
        ecolor=BAND,
        elinewidth=3,
        label="estimate, 95 % interval",
    )
    axes.plot(
        items, truth[:shown], "_", color=TRUTH, markersize=13, markeredgewidth=2, label="truth"
    )
    axes.set(xlabel="answer, the first 12 of 1024", ylabel="fraction of users", ylim=(0, None))
    axes.set_title("Answers, collected privately (ε = 1)")
    axes.legend()


def ages(axes: Axes, rng: np.random.Generator) -> None:
    """The distribution of ages, from one private report of each user."""
    users = 100_000
    held = np.minimum(rng.gamma(6, 7, size=users).astype(int), 127)
    protocol = optimise(domain=128, epsilon=1.0, n=users).protocol
    estimate = protocol.estimate(protocol.aggregate(protocol.privatize(held, rng)))
    age = np.arange(128)
    low, high = estimate.answer(Between(np.zeros_like(age), age)).interval()
    truth = np.bincount(held, minlength=128).cumsum() / users
    assert ((low <= truth) & (truth <= high)).mean() > 0.8
    axes.fill_between(age, low, high, step="post", color=BAND, alpha=0.45, linewidth=0)
    for k, (cdf, label) in enumerate(((estimate.cdf(), "estimate, 95 % band"), (truth, "truth"))):
        axes.step(age, cdf, where="post", **look(k) | {"marker": ""}, label=label)
    axes.set(xlabel="age", ylabel="fraction at or below (not clipped)", xlim=(0, 110))
    axes.set_title("Ages, collected privately (ε = 1)")
    axes.legend()


if __name__ == "__main__":
    main()

"""Draw what trust is worth: error against central epsilon, by whom users trust.

    python examples/three_trusts.py --quick --out demo
    python examples/three_trusts.py --out figures

The best protocol of each plan, for the same promise: (epsilon, delta) for whatever is published of
n users, where datasets are neighbours if they differ in one user's value. Who trusts nobody sends a
report of that epsilon; who trusts a shuffler, a report of a larger local epsilon, certified by
`mechdesign.accounting.shuffled`; who trusts a curator, the value itself.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from mechdesign import plan
from mechdesign.base.files import replacing
from mechdesign.plot import look, mark_numbers, save, style

N, DELTA = 100_000, Fraction(1, 10**8)
TRUSTED = {"local": "nobody", "shuffled": "a shuffler", "curator": "a curator"}
QUESTIONS: dict[str, tuple[str, Any]] = {
    "counts: frequency of one of 2 items": ("frequencies", 2),
    "frequencies of 64 items": ("frequencies", 64),
    "ranges over 64 items": ("ranges", 64),
    "marginals of 2 of 4 attributes, 4 values each": ("marginals", [4, 4, 4, 4]),
}


@dataclass(frozen=True)
class Point:
    """The best candidate of a plan."""

    question: str
    trust: str
    epsilon: Fraction
    name: str
    local_epsilon: float | None
    error: float


def best(question: str, trust: str, epsilon: Fraction) -> Point:
    """What the planner finds: the least error, as a fraction of the users.

    Of errors that do not rest on the population: a curator's have no smoothed rival here.
    """
    task, domain = QUESTIONS[question]
    delta = DELTA if trust == "shuffled" else None
    ranked = plan(task, domain, n=N, epsilon=epsilon, delta=delta, trust=trust).candidates
    found = next(item for item in ranked if not item.populations)
    local = None if found.local_epsilon is None else float(found.local_epsilon)
    return Point(question, trust, epsilon, found.name, local, found.error)


@style()
def drawn(points: list[Point]) -> Figure:
    """A panel for each question."""
    figure = Figure(figsize=(9.6, 7.2))
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, question in zip(panels.flat, QUESTIONS, strict=True):
        for k, (trust, whom) in enumerate(TRUSTED.items()):
            own = [one for one in points if (one.question, one.trust) == (question, trust)]
            axes.plot(
                [float(one.epsilon) for one in own],
                [one.error for one in own],
                **look(k),
                label=f"trust {whom} ({trust})",
            )
        axes.set(xscale="log", yscale="log")
        axes.set_title(question)
        for axis in (axes.xaxis, axes.yaxis):
            mark_numbers(axis, logarithmic=True)
        axes.tick_params(labelbottom=True)
    figure.supxlabel(
        f"central epsilon, for {N:,} users; delta = {float(DELTA):g} with a shuffler, else 0"
    )
    figure.supylabel("predicted error of the best protocol, fraction of the users")
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def main() -> None:
    """Plan, draw, and check what the picture is to show."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--out", type=Path, default=Path("figures"), help="folder (default: figures)"
    )
    parser.add_argument("--quick", action="store_true", help="three epsilons instead of seven")
    options = parser.parse_args()
    epsilons = [Fraction(2**step, 32) for step in range(0, 7, 3 if options.quick else 1)]
    points = [
        best(question, trust, epsilon)
        for question in QUESTIONS
        for trust in TRUSTED
        for epsilon in epsilons
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    lines = ["question,trust,central epsilon,candidate,local epsilon,error"]
    for one in points:
        local = "" if one.local_epsilon is None else f"{one.local_epsilon:g}"
        cells = (f'"{one.question}"', one.trust, float(one.epsilon), f'"{one.name}"', local)
        lines.append(",".join(map(str, (*cells, f"{one.error:.6g}"))))
    with replacing(options.out / "three_trusts.csv") as stream:
        stream.write("\n".join([*lines, ""]).encode())
    save(drawn(points), options.out / "three_trusts.png")
    errors = {(one.question, one.trust, one.epsilon): one.error for one in points}
    for question in QUESTIONS:
        for epsilon in epsilons:
            nobody, shuffler, curator = (errors[question, trust, epsilon] for trust in TRUSTED)
            assert nobody > shuffler > curator > 0, (question, epsilon)
        least = epsilons[0]
        gain = errors[question, "local", least] / errors[question, "shuffled", least]
        left = errors[question, "shuffled", least] / errors[question, "curator", least]
        assert gain > 10, "a shuffler is worth an order of magnitude for a strong promise"
        print(
            f"{question}, central epsilon {float(least):g}: a shuffler divides the error by"
            f" {gain:.0f}; a curator's is {left:.1f} times smaller still"
        )
    print(f"wrote {options.out / 'three_trusts.png'} and {options.out / 'three_trusts.csv'}")


if __name__ == "__main__":
    main()

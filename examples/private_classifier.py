"""Learn a naive Bayes classifier from private records, the class public or private too.

    python examples/private_classifier.py --out demo
    python examples/private_classifier.py --csv adult.csv --out demo

By default people are made up: age, income and hours of work of those who will or will not take an
offer. With the table of the UCI Adult census (30,162 rows), the class is an income above 50,000.
Each user sends one report on one attribute. Half of the rows are kept to measure the accuracy on.
"""

from __future__ import annotations

import argparse
import csv
import sys
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from frequency.marginals import Domain
from rangeq import HierarchicalHistogram, NaiveBayes, PerAttribute

EPSILONS = (0.5, 1.0, 2.0, 4.0)
TREE = partial(HierarchicalHistogram, branching=4, oracle="OUE")
TRUTH, PRIVATE, PUBLIC = "#D55E00", "#0072B2", "#56B4E9"

Numbers = npt.NDArray[np.int64]


def made_up(rng: np.random.Generator, n: int = 200_000) -> tuple[Domain, Numbers, Numbers]:
    """Attributes that are independent within each class."""
    takes = (rng.random(n) < 0.35).astype(np.int64)
    age = np.clip(rng.normal(38 + 10 * takes, 11, n), 0, 95)
    income = np.clip(rng.gamma(4 + 2 * takes, 4, n), 0, 63)
    hours = np.clip(rng.normal(36 + 4 * takes, 8, n), 0, 63)
    values = np.stack([age, income, hours], axis=1).astype(np.int64)
    return Domain({"age": 96, "income": 64, "hours": 64}), values, takes


def adult(path: Path) -> tuple[Domain, Numbers, Numbers]:
    """Ages, years of education and hours of work a week, and who earns more than 50,000."""
    domain = Domain({"age": 96, "education_num": 17, "hr_per_week": 100})
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream))
        values = np.array([[int(row[name]) for name in domain] for row in rows])
        rich = np.array([row["income"].strip().startswith(">") for row in rows])
    except OSError as error:
        sys.exit(f"cannot read {path}: {error.strerror}")
    except (KeyError, ValueError) as error:
        sys.exit(f"{path} is no table of the Adult census with {', '.join(domain)}: {error}")
    return domain, values, rich.astype(np.int64)


def without_privacy(domain: Domain, values: Numbers, kind: Numbers) -> NaiveBayes:
    """The same model from the data themselves."""
    tables = {}
    for column, name in zip(values.T, domain, strict=True):
        counts = [np.bincount(column[kind == c], minlength=domain[name]) + 0.5 for c in (0, 1)]
        tables[name] = np.array([one / one.sum() for one in counts])
    return NaiveBayes(domain, np.bincount(kind) / len(kind), tables)


def private_class(
    domain: Domain, values: Numbers, kind: Numbers, epsilon: float, rng: np.random.Generator
) -> NaiveBayes:
    """From reports on the class and an attribute, jointly."""
    whole = Domain({"class": 2, **{name: domain[name] for name in domain}})
    protocol = PerAttribute.of(whole, epsilon, "class", TREE)
    reports = protocol.privatize(np.column_stack([kind, values]), rng)
    return NaiveBayes.private(protocol.estimate(protocol.aggregate(reports)), whole, "class")


def public_class(
    domain: Domain, values: Numbers, kind: Numbers, epsilon: float, rng: np.random.Generator
) -> NaiveBayes:
    """From reports on an attribute, of users whose class the server knows."""
    protocol = PerAttribute.of(domain, epsilon, None, TREE)
    groups = [values[kind == c] for c in (0, 1)]
    estimates = [
        protocol.estimate(protocol.aggregate(protocol.privatize(group, rng))) for group in groups
    ]
    return NaiveBayes.public(estimates, domain, [len(group) for group in groups])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--csv", type=Path, help="the Adult census, with a header line")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the picture")
    options = parser.parse_args()

    rng = np.random.default_rng(options.seed)
    domain, values, kind = made_up(rng) if options.csv is None else adult(options.csv)
    order = rng.permutation(len(kind))
    learn, test = np.split(order, [len(order) // 2])

    def accuracy(model: NaiveBayes) -> float:
        return float((model.predict(values[test]) == kind[test]).mean())

    plain = without_privacy(domain, values[learn], kind[learn])
    best, majority = accuracy(plain), max(kind[test].mean(), 1 - kind[test].mean())
    print(f"{len(learn)} users; right for {best:.3f} of others without privacy,")
    print(f"and for {majority:.3f} by always naming the more frequent class")
    print("\nepsilon  class private  class public")
    found = {}
    for epsilon in EPSILONS:
        found[epsilon] = [
            make(domain, values[learn], kind[learn], epsilon, rng)
            for make in (private_class, public_class)
        ]
        hidden, known = (accuracy(model) for model in found[epsilon])
        print(f"{epsilon:>7}  {hidden:>13.3f}  {known:>12.3f}")
    assert best - hidden < 0.03, "at the largest epsilon little is lost"
    assert hidden > majority - 0.01

    names, epsilon = list(domain), EPSILONS[-2]
    figure = Figure(figsize=(3.6 * len(names), 3.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(names)), names, strict=True):
        for c, style in ((0, "-"), (1, "--")):
            for model, colour, label in (
                (plain, TRUTH, "truth"),
                (found[epsilon][0], PRIVATE, "class private"),
                (found[epsilon][1], PUBLIC, "class public"),
            ):
                text = label if c == 0 else None
                axes.plot(model.densities[name][c], style, color=colour, label=text, lw=1.2)
        axes.set(xlabel=name, ylabel="density", ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.suptitle(f"Densities of both classes (the second dashed), ε = {epsilon}", fontsize=11)
    options.out.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out / "classifier.png", dpi=140)
    print(f"\nwrote {options.out / 'classifier.png'}")


if __name__ == "__main__":
    main()

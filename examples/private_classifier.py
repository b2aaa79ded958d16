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
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from frequency.marginals import Domain
from mechdesign.plot import look, save, style
from rangeq import HierarchicalHistogram, NaiveBayes, PerAttribute

EPSILONS = (0.5, 1.0, 2.0, 4.0)
TREE = partial(HierarchicalHistogram, branching=4, oracle="OUE")

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


@style()
def drawn(models: Mapping[str, NaiveBayes], epsilon: float) -> Figure:
    """A row for each class, a panel for each attribute, a line for each model."""
    names = list(next(iter(models.values())).densities)
    figure = Figure(figsize=(3.4 * len(names), 5.2))
    panels = figure.subplots(2, len(names), sharex="col", sharey="col")
    for c, row in enumerate(panels):
        for axes, name in zip(row, names, strict=True):
            for series, (model, known) in enumerate(models.items()):
                own = look(series) | {"marker": "", "linewidth": 1.6 - 0.3 * series}
                axes.plot(known.densities[name][c], **own, label=model)
            axes.set_title(f"class {c}")
            axes.set_ylim(0)
    for axes, name in zip(panels[-1], names, strict=True):
        axes.set_xlabel(name)
    figure.supylabel("density in the class")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=3, title=f"ε = {epsilon}")
    return figure


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

    epsilon = EPSILONS[-2]
    hidden_class, known_class = found[epsilon]
    models = {"truth": plain, "class private": hidden_class, "class public": known_class}
    figure = drawn(models, epsilon)
    options.out.mkdir(parents=True, exist_ok=True)
    save(figure, options.out / "classifier.png")
    print(f"\nwrote {options.out / 'classifier.png'}")


if __name__ == "__main__":
    main()

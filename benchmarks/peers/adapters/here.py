"""This project."""

from __future__ import annotations

from fractions import Fraction
from itertools import count
from math import exp
from typing import TYPE_CHECKING

from peers.adapters import choice

if TYPE_CHECKING:
    from mechdesign import Mechanism

SEEDS = count(1)
ALPHA = Fraction(9, 10)  # of counts, where errors are compared


def prepared(values):
    import numpy as np

    return np.array(values)


class Client:
    """An oracle with its source of randomness: a seeded generator, or the operating system's."""

    def __init__(self, inner, secure):
        import numpy as np

        self.inner, self.rng = inner, None if secure else np.random.default_rng(next(SEEDS))

    def privatize(self, values):
        return self.inner.privatize(values, self.rng)

    def estimate(self, reports):
        return self.inner.estimate(self.inner.aggregate(reports)).frequencies


class Distribution(Client):
    """Estimates made a distribution, as other libraries' always are."""

    def estimate(self, reports):
        from frequency import postprocess

        estimate = self.inner.estimate(self.inner.aggregate(reports))
        return postprocess.empirical_bayes(estimate).frequencies


class OneByOne(Client):
    """As other libraries are called: a user a call, here by the client that devices run."""

    def privatize(self, values):
        report = self.inner.privatize_one
        for value in values.tolist():
            report(value)


def oracle(kind, domain, epsilon):
    import frequency

    kind, _, how = kind.partition(", ")
    sketch = {"hashes": 64, "width": 1024, "seed": next(SEEDS)}
    made = {
        "GRR": lambda: frequency.GRR(domain, epsilon),
        "OUE": lambda: frequency.OUE(domain, epsilon),
        "SUE": lambda: frequency.SUE(domain, epsilon),
        "OLH": lambda: frequency.OLH(domain, epsilon),
        "HRR": lambda: frequency.HRR(domain, epsilon),
        "Subset selection": lambda: frequency.SubsetSelection(domain, epsilon),
        "CMS": lambda: frequency.CountMeanSketch(domain, epsilon, **sketch),
        "HCMS": lambda: frequency.HadamardCountMeanSketch(domain, epsilon, **sketch),
    }
    return {"one by one": OneByOne, "empirical_bayes": Distribution}.get(how, Client)(
        choice(made, kind)(), how == "secure"
    )


def theory(kind: str, domain: int, epsilon: float, counts: list[int]) -> float:
    """The mean squared error that theory has for this oracle."""
    import numpy as np

    inner, users = oracle(kind, domain, epsilon).inner, sum(counts)
    shares = np.array(counts) / users
    more = {"second_moment": float((shares**2).sum())} if "CMS" in kind else {}
    return float(np.mean(inner.variance(users, shares, **more)))


def alpha_of(epsilon):
    """The exact alpha: of 9/10 itself where that is meant."""
    from mechdesign import Privacy

    return ALPHA if abs(exp(-epsilon) - ALPHA) < 1e-12 else Privacy.from_epsilon(epsilon).alpha


def table(kind: str, n: int, alpha: Fraction) -> Mechanism:
    """A mechanism of mechdesign for counts 0 .. n."""
    from mechdesign import Privacy, design, named
    from mechdesign.losses import L1, L2
    from mechdesign.properties import ColumnMonotone

    made = {
        "truncated": lambda: named.geometric(n, alpha=alpha),
        "WM": lambda: named.weakly_honest(n, alpha=alpha),
        "EM": lambda: named.explicit_fair(n, alpha=alpha),
        "L1 and CM": lambda: design(n, Privacy(alpha=alpha), L1(), [ColumnMonotone()]).mechanism,
        "L2 and CM": lambda: design(n, Privacy(alpha=alpha), L2(), [ColumnMonotone()]).mechanism,
    }
    return choice(made, kind)()


def noise(kind, epsilon, n):
    import numpy as np

    kind, _, how = kind.rpartition(", ") if kind.endswith(", secure") else (kind, "", "")
    rng = None if how == "secure" else np.random.default_rng(next(SEEDS))
    if kind == "unbounded":
        from mechdesign.base.numbers import bit_source
        from mechdesign.noise.discrete import DiscreteLaplace

        law, source = DiscreteLaplace(alpha=alpha_of(epsilon)), bit_source(rng)
        return lambda true, draws: true + law.draw(draws, source)
    mechanism = table(kind, n, alpha_of(epsilon))
    return lambda true, draws: mechanism.release(np.full(draws, true), rng)


def ranges(kind, domain, epsilon):
    import numpy as np

    import rangeq
    from rangeq import central

    rng = np.random.default_rng(next(SEEDS))
    trees = {
        "cells": lambda: central.CentralFlat(domain, epsilon),
        "tree, b = 4": lambda: central.Hierarchy(domain, epsilon, branching=4),
        "tree, b = 16": lambda: central.Hierarchy(domain, epsilon, branching=16),
        "tree, best": lambda: central.Hierarchy(
            domain,
            epsilon,
            branching=central.best_branching(domain, epsilon)[0].fanouts,
            budget="optimal",
        ),
    }
    if kind in trees:
        tree = trees[kind]()
        return lambda counts: tree.release(np.array(counts), rng).counts.tolist()
    local = {
        "local tree, b = 4": lambda: rangeq.HierarchicalHistogram(
            domain, epsilon, branching=4, oracle="OUE"
        ),
        "local, best": lambda: rangeq.optimise(domain=domain, epsilon=epsilon, n=10_000).protocol,
    }
    protocol = choice(local, kind)()

    def release(counts):
        values = np.repeat(np.arange(domain), counts)
        estimate = protocol.estimate(protocol.aggregate(protocol.privatize(values, rng)))
        return (np.diff(estimate.prefix(np.arange(domain)), prepend=0.0) * len(values)).tolist()

    return release


def quantiles(kind, domain, epsilon, probabilities):
    import numpy as np
    from scipy.optimize import isotonic_regression

    from rangeq import central

    rng = np.random.default_rng(next(SEEDS))
    trees = {
        "tree, b = 4": lambda: central.Hierarchy(domain, epsilon, branching=4),
        "tree, b = 16": lambda: central.Hierarchy(domain, epsilon, branching=16),
    }
    tree = choice(trees, kind)()

    def release(counts):
        rising = isotonic_regression(tree.release(np.array(counts), rng).cdf()).x
        return np.searchsorted(rising, probabilities).tolist()

    return release


class Finder:
    def __init__(self, protocol):
        import numpy as np

        self.protocol, self.rng = protocol, np.random.default_rng(next(SEEDS))

    def privatize(self, values):
        return self.protocol.privatize(values, self.rng)

    def find(self, reports, k):
        return self.protocol.find(reports, k=k).items.tolist()


def heavy(kind, bits, epsilon):
    from frequency.heavy import PrefixExtension, TreeHist

    return Finder(choice({"PEM": PrefixExtension, "TreeHist": TreeHist}, kind)(bits, epsilon))


def _privacy():
    import frequency

    audit = frequency.OUE(64, 1.0).audit()
    return "exact audit of what is sampled: holds" if audit.holds else "audit fails"


def _error():
    import numpy as np

    grr = frequency_of_two()
    low, high = grr.interval(0.95)
    return f"variances and intervals, ± {float(np.mean(high - low)) / 2:.3f}"


def frequency_of_two():
    import numpy as np

    import frequency

    grr = frequency.GRR(2, 1.0)
    return grr.estimate(grr.aggregate(grr.privatize([0, 1] * 500, np.random.default_rng(1))))


def _refused():
    import numpy as np

    import frequency

    grr = frequency.GRR(64, 1.0)
    reports = grr.privatize([0, 1], np.random.default_rng(1))
    reports.view("u1")[0] = 200
    try:
        grr.aggregate(reports)
    except frequency.InvalidReport:
        return "refused: InvalidReport"
    return "counted"


def _merged():
    import numpy as np

    import frequency

    grr = frequency.GRR(64, 1.0)
    reports = grr.privatize([0] * 100, np.random.default_rng(1))
    whole = (
        grr.aggregate(reports).to_bytes()
        == (grr.aggregate(reports[:50]) + grr.aggregate(reports[50:])).to_bytes()
    )
    return "yes, to the same bytes" if whole else "no"


def _randomness():
    return "the operating system's, or a seeded generator"


def _optimal():
    from mechdesign import Privacy, design
    from mechdesign.losses import L0
    from mechdesign.properties import WeakHonesty

    return (
        f"certificate, gap {design(8, Privacy(alpha=ALPHA), L0(), [WeakHonesty()]).certificate.gap}"
    )


PROBES = {
    "privacy of what runs": _privacy,
    "error of an answer": _error,
    "optimality": _optimal,
    "a report that cannot be": _refused,
    "two servers' sums": _merged,
    "randomness": _randomness,
}

FEATURES = {
    "import": lambda: __import__("frequency") and __import__("rangeq") and __import__("mechdesign"),
    "frequency oracles": lambda: oracle("OLH", 64, 1.0).privatize([1, 2, 3]),
    "sketches": lambda: oracle("HCMS", 64, 1.0).privatize([1, 2, 3]),
    "counts": lambda: noise("truncated", 1.0, 8)(3, 10),
    "trees": lambda: ranges("tree, b = 4", 64, 1.0)([10] * 64),
    "heavy hitters": lambda: heavy("PEM", 16, 3.0).privatize([1, 2, 3]),
}

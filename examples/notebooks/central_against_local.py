# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A curator, or nobody: what does trust buy?
#
# A histogram of ordered cells is to answer every range. Either a *trusted curator* holds
# everybody's answer and publishes noisy counts once (`rangeq.central`), or users randomise their
# answers themselves and trust nobody (`rangeq`). The ε is the same. How much worse are the answers,
# and does what works for one work for the other?
#
# ![Three panels: the cumulative distribution of visits to a doctor with a wide band if nobody is
# trusted and hardly any with a curator; the error in people, flat for the curator and growing
# with the number of people otherwise; and the variance against the children of a node, least at
# 16 for the curator and at 2 or 8 locally](attachment:picture.png)
#
# One thing is not the same: the curator hides whether a person is *in* the data, the local protocol
# which of the answers it is. To hide an answer that changes, the curator's noise must be twice as
# large: then halve the prices below.
#
# Sources: Qardaji, Yang and Li, *Understanding Hierarchical Methods for Differentially Private
# Histograms* (central), and Kulkarni's thesis, sections 5.4 and 5.5 (local).

# %% tags=["hide-input"]
# %matplotlib inline
import math

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar
from settings import arguments

# isort: split
import range_queries

from mechdesign.plot import look, mark_numbers, style
from rangeq import Between, DecomposedHistogram, HaarHRR, HierarchicalHistogram, central

full, data = arguments()
rng = np.random.default_rng(3)
epsilon = 1.0

if data is None:  # how often each of 20,190 people saw a doctor in a year: shipped by statsmodels
    values, label, domain = range_queries.visits(), "visits to a doctor in a year", 64
else:
    values, label, domain = range_queries.column(data / "adult.csv", "age"), "age", 128
truth = np.bincount(values.clip(0, domain - 1), minlength=domain) / len(values)

# %% [markdown]
# ## The same people, with and without trust
#
# The curator's tree has 8 children a node, the local one 4: below is why. Both answer ranges,
# prefixes and intervals; the curator in people, the local protocol in fractions of them.

# %%
n = len(values)
curator = central.Hierarchy(domain, epsilon, 8)
protocol = HierarchicalHistogram(domain, epsilon, 4, "OUE")

held = np.rint(truth * n).astype(int)
trusted = curator.release(held, rng)
untrusted = protocol.estimate(
    protocol.aggregate(protocol.privatize(values.clip(0, domain - 1), rng))
)
cells = np.arange(domain)
print(f"{n} people, ε = {epsilon:g}; the fraction of people in a .. b, with 95% intervals\n")
print("a   b   truth    curator                    nobody trusted")
for a, b in ((0, 0), (1, 3), (4, 15), (16, 47)):
    (low, high), (left, right) = (
        trusted.answer(Between(a, b)).interval(),
        untrusted.answer(Between(a, b)).interval(),
    )
    print(
        f"{a:2d}  {b:2d}  {held[a : b + 1].sum() / n:.4f}   {trusted.range(a, b) / n:.4f}"
        f" [{low / n:.4f}, {high / n:.4f}]   {untrusted.range(a, b):7.4f} [{left:7.4f},"
        f" {right:7.4f}]"
    )

# %% tags=["remove-cell"]
for low, high in (
    np.array(trusted.answer(Between(0, cells)).interval(1 - 1e-9)) / n,
    untrusted.answer(Between(0 * cells, cells)).interval(1 - 1e-9),
):
    assert ((low - 1e-12 <= np.cumsum(held) / n) & (np.cumsum(held) / n <= high + 1e-12)).all()

# %% tags=["remove-cell"]
assert curator.audit().holds
assert protocol.audit().holds

# %% [markdown]
# ## The price is √n
#
# A curator adds noise once, whatever the number of people: the error in people does not grow.
# Without trust everybody adds noise, and that of n users adds up to √n times that of one.


# %%
def mean_square(error):
    """Over all ranges a <= b, from the errors of the prefixes."""
    d, e = len(error), np.concatenate([[0.0], error])
    return ((d + 1) * (e @ e) - e.sum() ** 2) / (d * (d + 1) / 2)


def measured(n, repeats=20):
    """The RMSE in people of both, when n people are drawn from the population."""
    squares = []
    for _ in range(repeats):
        counts = rng.multinomial(n, truth)
        release, estimate = (
            curator.release(counts, rng),
            protocol.estimate(protocol.simulate(counts, rng)),
        )
        squares.append(
            [
                mean_square(answers - np.cumsum(counts))
                for answers in (release.prefix(cells), estimate.cdf() * n)
            ]
        )
    return np.sqrt(np.mean(squares, axis=0))


central_rmse = math.sqrt(curator.sampled_average_variance())
# Of one person; of n it is √n times as much, in people
local_rmse = protocol.average_rmse(1, "all ranges")
users = [10**k for k in range(3, 9 if full else 8)]
errors = np.array([measured(n) for n in users])
print("n           RMSE in people: curator  predicted   nobody trusted  predicted   price")
for n, (a, b) in zip(users, errors, strict=True):
    print(
        f"{n:<11,d} {a:23.1f}  {central_rmse:9.1f}  {b:15.0f}  {local_rmse * math.sqrt(n):9.0f} "
        f" {b / a:6.0f}"
    )
ratios = errors / np.stack([np.full(len(users), central_rmse), local_rmse * np.sqrt(users)], axis=1)

# %% tags=["remove-cell"]
assert ratios.min() > 0.5  # squares of 20 x 2.5 degrees of freedom or more
assert ratios.max() < 1.6

# %% [markdown]
# Turned around: to answer as well as a curator who has m people, a protocol that trusts nobody
# needs users in the order of m².

# %%
m = 1000
needed = round((local_rmse / central_rmse * m) ** 2)
with_trust, without = measured(m)[0] / m, measured(needed)[1] / needed
print(
    f"curator, {m} people: RMSE {with_trust:.4f} of the people; nobody trusted, {needed:,} people:"
    f" {without:.4f}"
)

# %% tags=["remove-cell"]
assert 0.4 < with_trust / without < 2.5

# %% [markdown]
# ## Why the best tree is another one
#
# A tree of h levels splits what there is: the curator its ε, so that noise has h² times the
# variance; the local protocol its people, so that noise has h times the variance. Height is dearer
# for the curator, who takes more children a node: an average range uses about (b - 1) h nodes, h =
# log D / log b, so that the curator minimises (b - 1) / log³ b and the others (b - 1) / log² b.

# %%
for power, best in ((3, 16.8), (2, 4.92)):
    found = minimize_scalar(
        lambda b, power=power: (b - 1) / math.log(b) ** power, bounds=(1.5, 100), method="bounded"
    ).x
    print(f"(b - 1) / log^{power} b is least at b = {found:.2f}; printed: {best}")

# %% [markdown]
# Those are for sums of the fewest nodes. With *constrained inference*, least squares over all
# levels, every node helps, most of all in deep trees. Exact average variances over all ranges, no
# simulation:

# %%
many = 4096
branchings = [2, 4, 8, 16, 64]
rows = {
    "curator": [
        central.Hierarchy(many, epsilon, b, inference=False).average_variance() for b in branchings
    ],
    "curator, inference": [
        central.Hierarchy(many, epsilon, b).average_variance() for b in branchings
    ],
    "local": [
        DecomposedHistogram(many, epsilon, b, "OUE").average_rmse(1, "all ranges") ** 2
        for b in branchings
    ],
    "local, consistent": [
        HierarchicalHistogram(many, epsilon, b, "OUE").average_rmse(1, "all ranges") ** 2
        for b in branchings
    ],
}
print(
    f"D = {many}, ε = {epsilon:g}: variance in people², local ones for each user\nb            "
    "     " + "".join(f"{b:9d}" for b in branchings)
)
for name, row in rows.items():
    print(f"{name:18s}" + "".join(f"{value:9.1f}" for value in row))
best = {name: branchings[int(np.argmin(row))] for name, row in rows.items()}
gains = {
    name: np.array(rows[name]) / rows[inferred]
    for name, inferred in (("curator", "curator, inference"), ("local", "local, consistent"))
}
for name, gain in gains.items():
    print(f"gain of inference, {name:8s}" + "".join(f"{value:8.2f}" for value in gain))

# %% tags=["remove-cell"]
for gain in gains.values():
    assert (np.diff(gain) < 0).all()
    assert gain.min() > 1.9
assert best == {"curator": 16, "curator, inference": 16, "local": 8, "local, consistent": 2}

# %% [markdown]
# The curator's choice is not free: with b = 2 inference leaves 2.6 times the variance of b = 16.
# For local protocols with consistency 2, 4 and 8 are within an eighth of each other; the thesis's b
# = 9.18 is the minimum of an upper bound. Wavelets are binary trees in both worlds: as good as b =
# 2 for the curator, so never the best; within a tenth of the best tree locally, in reports of a few
# bits.

# %%
wavelet = central.Wavelet(many, epsilon).average_variance()
haar = HaarHRR(many, epsilon).average_rmse(1, "all ranges") ** 2
print(
    "over the best tree's variance: curator's wavelet"
    f" {wavelet / min(rows['curator, inference']):.2f}, ",
    end="",
)
print(f"HaarHRR {haar / min(rows['local, consistent']):.2f}")

# %% tags=["remove-cell"]
assert wavelet > 2 * min(rows["curator, inference"])
assert haar < 1.1 * min(rows["local, consistent"])
assert max(rows["local, consistent"][:3]) < 1.125 * min(rows["local, consistent"])
assert 2.6 < rows["curator, inference"][0] / rows["curator, inference"][3] < 2.65

# %% [markdown]
# ## The picture
#
# Left, the cdf of the real answers from both, bands of 95 %; middle, the price; right, why one does
# not copy the other's tree.

# %% tags=["hide-input", "picture"]
blue, red = look(0)["color"], look(1)["color"]
with style():
    figure = Figure(figsize=(12.5, 4.3))
    left, middle, right = figure.subplots(1, 3)
    n = len(values)
    for name, colour, cdf, (low, high) in (
        (
            "nobody trusted",
            red,
            untrusted.cdf(),
            untrusted.answer(Between(0 * cells, cells)).interval(),
        ),
        (
            "curator",
            blue,
            trusted.prefix(cells) / n,
            np.array(trusted.answer(Between(0, cells)).interval()) / n,
        ),
    ):
        left.fill_between(cells, low, high, step="post", color=colour, alpha=0.25, linewidth=0)
        left.step(cells, cdf, "-", where="post", color=colour, label=name)
    left.step(cells, np.cumsum(held) / n, "k:", where="post", linewidth=1.2, label="truth")
    left.set(
        xlabel=label,
        ylabel="fraction at or below (not clipped)",
        title=f"{n:,} people, ε = 1, b = 8 and 4",
    )
    left.legend(loc="lower right")
    middle.plot(users, local_rmse * np.sqrt(users), "--", color=red)
    middle.plot(users, [central_rmse] * len(users), "-", color=blue)
    middle.plot(users, errors[:, 1], "s", color=red, label="nobody trusted")
    middle.plot(users, errors[:, 0], "o", color=blue, label="curator")
    middle.set(
        xscale="log",
        yscale="log",
        xlabel="people",
        ylabel="RMSE of a range, people",
        title="lines predicted, dots measured",
    )
    middle.legend()
    for axis in (middle.xaxis, middle.yaxis):
        mark_numbers(axis, logarithmic=True)
    for series, (name, row) in enumerate(rows.items()):
        right.plot(branchings, np.array(row) / min(row), **look(series), label=name)
    right.set_xscale("log", base=2)
    right.set_xticks(branchings, [str(b) for b in branchings])
    right.set(
        xlabel="b, children of a node",
        ylabel="variance over that of the best b",
        title=f"variances of trees, D = {many}",
        ylim=(0.8, 5),
    )
    right.legend()
figure

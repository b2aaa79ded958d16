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
# # An age histogram, published once: what should be measured?
#
# *I hold a table of people and publish, once, how many there are by age. Readers will ask for all
# kinds of age groups. Noise must hide every single person. Which numbers should get the noise, so
# that the answers are as good as they can be, and how do I know that nothing better exists?*
#
# ![Standard errors in people against the years in a range: noise on ages is best for one year and
# grows to 20, that of a binary tree stays below 8, and that of the best strategy below 6.5;
# measured dots lie near the lines](attachment:picture.png)
#
# The noisy numbers need not be the cells. They may be any sums of cells: a *strategy*. Answers
# follow by least squares. For a given set of questions, the *workload*, the matrix mechanism looks
# for the strategy whose answers have the least variance (Li, Miklau, Hay, McGregor and Rastogi
# 2015). Under zero-concentrated differential privacy (zCDP) that is a convex program: the best
# strategy is found, and it comes with a proof.

# %% tags=["hide-input"]
# %matplotlib inline
import math

import numpy as np
from matplotlib.figure import Figure
from settings import arguments
from statsmodels.datasets import anes96

from frequency import Between
from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.plot import look, style
from rangeq.central import (
    DenseStrategy,
    Hierarchy,
    MatrixMechanism,
    Workload,
    best_branching,
    workload_optimal,
)

full, _ = arguments()
rng = np.random.default_rng(96)  # reproducible, for this page; leave it out in earnest

survey = anes96.load_pandas().data  # 944 respondents of the American National Election Study 1996
ages, oldest = survey["age"].to_numpy().astype(int), 97
held = np.bincount(ages - 18, minlength=oldest - 17)  # of 18 .. 97 years
cells = len(held)
promise = ZCDP("1/10")
print(f"{held.sum()} people, {cells} ages; {promise}")

# %% [markdown]
# ## Three strategies, one promise
#
# Noise on every age by itself; on every node of a binary tree; and on what is best for all ranges
# of ages. A person more or less moves the numbers by a column of the strategy: the noise is in
# proportion to its length. The strategies are matrices of integers, so that this length is exact.

# %%
widths = [2**k for k in range(7, -1, -1)]
nodes = [np.arange(cells) // w == k for w in widths for k in range(-(-cells // w))]
design = workload_optimal("ranges", cells, promise)
releases = {
    "ages": MatrixMechanism(DenseStrategy(np.eye(cells, dtype=int)), promise),
    "binary tree": MatrixMechanism(DenseStrategy(np.array(nodes, dtype=int)), promise),
    "best strategy": design.mechanism,
}
print("noise on          numbers  standard error of a range, in people  of prefixes")
for name, release in releases.items():
    errors = [math.sqrt(release.workload_variance(what)) for what in ("ranges", "prefixes")]
    print(f"{name:15s} {release.strategy.rows:9d} {errors[0]:38.2f} {errors[1]:12.2f}")
print(f"no strategy of real noise has less than {math.sqrt(design.continuous_bound):.4f}: proved")

# %% tags=["remove-cell"]
assert all(release.audit().holds for release in releases.values())  # no float decides
assert design.continuous_gap < 1e-3

# %% [markdown]
# The picture: noise on the ages is good for single years, and bad for everything else. The best
# strategy gives up a little there. Dots are measured, over releases.

# %% tags=["hide-input", "picture"]
repeats = 400 if full else 60
lengths = np.arange(1, cells + 1)
with style():
    figure = Figure(figsize=(7.5, 4.2))
    axes = figure.subplots()
    ratios = []
    for series, (name, release) in enumerate(releases.items()):
        own = look(series)
        first = [np.arange(cells - length + 1) for length in lengths]
        variances = [
            np.mean(release.variance(Between(start, start + length - 1)))
            for start, length in zip(first, lengths, strict=True)
        ]
        axes.plot(lengths, np.sqrt(variances), **own | {"marker": ""}, label=f"noise on {name}")
        sums = np.concatenate([[0], np.cumsum(held)])
        some = lengths[4::12]
        squares = np.zeros(len(some))
        for _ in range(repeats):
            found = release.release(held, rng)
            off = np.concatenate([[0], np.cumsum(found.counts)]) - sums
            squares += [np.mean((off[length:] - off[:-length]) ** 2) for length in some]
        measured = np.sqrt(squares / repeats)
        axes.plot(some, measured, own["marker"], color=own["color"])
        ratios.append(measured / np.sqrt(np.array(variances)[some - 1]))
    axes.set(xlabel="years in the range", ylabel="standard error, people", ylim=(0, None))
    axes.legend()
figure

# %% tags=["remove-cell"]
assert (np.abs(np.array(ratios) - 1) < 5 / math.sqrt(2 * repeats)).all()

# %% [markdown]
# ## Answers from one release
#
# Any range, any list of ages, any weights: each with its exact variance, from the same noisy
# numbers. The noise is drawn exactly, and normal intervals cover what they say.

# %%
estimate = design.release(held, rng)
for name, where, truth in (
    ("18 to 29", Between(0, 11), held[:12].sum()),
    ("65 and over", Between(47, cells - 1), held[47:].sum()),
    ("round ages 20, 30, ..", list(range(2, cells, 10)), held[2::10].sum()),
):
    answer = estimate.answer(where)
    low, high = answer.interval(0.95)
    print(f"{name:22s} {answer.value:6.1f}, 95 % from {low:6.1f} to {high:6.1f}; truly {truth}")
mean_age = estimate.linear(np.arange(18, oldest + 1) / held.sum())  # as if their number were known
print(f"mean age {mean_age.value:.2f} ± {mean_age.variance**0.5:.2f}; truly {ages.mean():.2f}")
print(f"median age {18 + estimate.quantile(0.5):.0f}; truly {np.median(ages):.0f}")

# %% [markdown]
# ## Your questions, not all questions
#
# A bureau knows what its readers ask: ten-year groups, those of 65 and over, and sometimes another
# range. Weights say how much each matters. What is asked for gets better, the rest a little worse,
# and the bound says how much could be gained at all.

# %%
groups = np.array([(np.arange(18, oldest + 1) // 10 == k) * 1.0 for k in range(1, 10)])
pensioners = (np.arange(18, oldest + 1) >= 65)[None] * 1.0
asked = Workload.of(np.concatenate([groups, pensioners]), cells)
mixed = workload_optimal([(1000.0, asked), (1.0, "ranges")], cells, promise)
only = workload_optimal(asked, cells, promise)
print("designed for         the groups   all ranges")
for name, one in (("all ranges", design), ("mostly the groups", mixed)):
    errors = [math.sqrt(one.mechanism.workload_variance(what)) for what in (asked, "ranges")]
    print(f"{name:20s} {errors[0]:10.2f} {errors[1]:12.2f}")
print(f"{'the groups alone':20s} {math.sqrt(only.variance):10.2f}      refused")

# %% tags=["remove-cell"]
assert only.variance < mixed.mechanism.workload_variance(asked)
assert mixed.mechanism.workload_variance(asked) < design.mechanism.workload_variance(asked)
assert design.variance < mixed.mechanism.workload_variance("ranges")

# %% [markdown]
# What the groups alone do not tell is refused, and not guessed:

# %%
try:
    only.release(held, rng).range(3, 5)
except ValueError as error:
    print(f"{type(error).__name__}: {error}")

# %% [markdown]
# ## Two attributes
#
# Age by schooling (seven levels, the last two a degree). Readers ask for ranges of ages, at one
# level and of everybody, the second seven times as much in all. Of one product of workloads the
# best strategy is a product, and so is its proof; of sums of products it is searched, and the gap
# says how well that went.

# %%
schooling = survey["educ"].to_numpy().astype(int) - 1
table = np.zeros((cells, 7), dtype=int)
np.add.at(table, (ages - 18, schooling), 1)
by_level = Workload.of(["ranges", "cells"], table.shape)
of_all = Workload.of(["ranges", "total"], table.shape)
each = MatrixMechanism(DenseStrategy(np.eye(table.size, dtype=int), table.shape), promise)
print("standard error of      a range at a level   of everybody   gap, %")
for name, two in (
    ("noise on the cells", None),
    ("best at a level", workload_optimal(by_level, table.shape, promise)),
    ("best for both", workload_optimal(by_level + 7.0 * of_all, table.shape, promise)),
):
    release = two.mechanism if two else each
    errors = [math.sqrt(release.workload_variance(what)) for what in (by_level, of_all)]
    gap = f"{100 * two.continuous_gap:.2f}" if two else "–"
    print(f"{name:20s} {errors[0]:20.2f} {errors[1]:14.2f} {gap:>8s}")

# %% tags=["remove-cell"]
assert release.audit().holds
assert each.audit().holds
assert two.variance < 0.3 * each.workload_variance(two.workload)

# %% [markdown]
# ## What is published
#
# One release of the table: people with a degree and without, by ten years of age, with intervals of
# 95 %. Lines are the truth, which nobody sees but here.

# %% tags=["hide-input"]
published = two.release(table, rng)
starts = np.arange(2, cells - 8, 10)
with style():
    figure = Figure(figsize=(7.5, 3.8))
    axes = figure.subplots()
    misses = 0
    for series, (levels, name, shift) in enumerate(
        (([0, 1, 2, 3, 4], "without a degree", -0.8), ([5, 6], "with a degree", 0.8))
    ):
        own = look(series)
        for start in starts.tolist():
            answer = published.answer({0: Between(start, start + 9), 1: levels})
            low, high = answer.interval(0.95)
            truth = table[start : start + 10, levels].sum()
            misses += not low <= truth <= high
            axes.plot([start + 23 + shift] * 2, [low, high], "-", color=own["color"], linewidth=1.5)
            axes.plot(start + 23 + shift, answer.value, own["marker"], color=own["color"])
        truths = [table[start : start + 10, levels].sum() for start in starts]
        axes.plot(starts + 23 + shift, truths, **own | {"marker": ""}, label=name)
    axes.set(
        xlabel="age, ten years around", ylabel="people", title=f"{held.sum()} people, {promise}"
    )
    axes.legend()
figure

# %% tags=["remove-cell"]
assert misses <= 5  # of 16, which miss with a chance of 1 in 20 each

# %% [markdown]
# ## Another promise
#
# rho adds up over all that is released of the same people, and says which epsilon holds for which
# delta. Whoever must promise an epsilon and a delta takes the same strategy: for Gaussian noise it
# does not depend on the promise, and only the noise changes. A pure epsilon, without delta, needs
# Laplace noise, and for that another strategy is best: no proof of the optimum there, but never
# more error than the best tree.

# %%
cost = design.mechanism.cost  # what a ledger spends
for delta in ("1e-6", "1e-9"):
    print(f"{promise!r}: epsilon {cost.epsilon(delta):.3f} at delta {delta}")

# %%
strict = Privacy.from_epsilon(1)
releases = {
    repr(kept): MatrixMechanism(design.strategy, kept)
    for kept in (promise, ApproximateDP(3, "1e-6"), ApproximateDP(1, "1e-6"))
} | {"epsilon = 1": workload_optimal("ranges", cells, strict).mechanism}
print("promise                  standard error of a range, in people")
for name, release in releases.items():
    print(f"{name:24s} {math.sqrt(release.workload_variance('ranges')):.2f}")
tree = Hierarchy(cells, 1.0, best_branching(cells, 1.0).best.fanouts, budget="optimal")
print(f"epsilon = 1, best tree   {math.sqrt(tree.average_variance()):.2f}")

# %% tags=["remove-cell"]
assert all(release.audit().holds for release in releases.values())
assert release.workload_variance("ranges") < tree.average_variance()

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
# # Choosing a frequency oracle
#
# *Every user answers once, on their own device, and trusts nobody. There are ten protocols for
# estimating how frequent each answer is. Which one?*
#
# Thesis, section 2.4, and *Answering Range Queries Under Local Differential Privacy*, section 3.2.
# The short answer is `mechdesign.plan`; this page shows what it weighs, and checks that what is
# predicted is what is measured.

# %%
# %matplotlib inline
import csv
import math

import numpy as np
from matplotlib.figure import Figure
from settings import arguments

# isort: split
import collect_frequencies

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    ProjectiveGeometry,
    SubsetSelection,
    plot,
    postprocess,
)
from mechdesign import plan

full, data = arguments()
rng = np.random.default_rng(4)  # reproducible, for this page; leave it out in earnest

# %% [markdown]
# ## The short answer
#
# Errors are those of one frequency, as fractions of the population; the bits are those of a report;
# the steps are orders of growth.

# %%
n = 10_000
for domain in (4, 1024):
    print(plan("frequencies", domain, epsilon=1.0, n=n), end="\n\n")
assert plan("frequencies", 4, epsilon=1.0, n=n).best.name == "GRR"
assert plan("frequencies", 1024, epsilon=1.0, n=n).best.name == "ProjectiveGeometry"

# %% [markdown]
# ## Error against the number of items
#
# GRR tells an item, and its error grows with their number: below 3 e^epsilon + 2 items it beats OUE
# for a rare item (thesis 2.4.2), far beyond it is hopeless. The error of the others hardly changes.
# SubsetSelection has the least of all, at every size; for 2 items it is GRR.

# %%
domains = [2**k for k in range(1, 13)]
epsilons = [0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]
kinds = (GRR, HRR, SUE, OUE, OLH, ProjectiveGeometry, SubsetSelection)


def rmse(kind: type, domain: int, epsilon: float) -> float:
    return math.sqrt(kind(domain, epsilon).variance(n, 1 / domain))


by_domain = {kind.__name__: [rmse(kind, domain, 1.0) for domain in domains] for kind in kinds}
by_epsilon = {kind.__name__: [rmse(kind, 256, epsilon) for epsilon in epsilons] for kind in kinds}
for curves in (by_domain, by_epsilon):
    table = np.array(list(curves.values()))
    assert (table >= np.array(curves["SubsetSelection"]) * (1 - 1e-12)).all()
    assert (np.array(curves["OUE"]) <= np.array(curves["SUE"]) * (1 + 1e-12))[3:].all()
for epsilon in (0.5, 1.0, 2.0):
    few, many = math.floor(3 * math.exp(epsilon) + 1), math.ceil(3 * math.exp(epsilon) + 4)
    assert GRR(few, epsilon).variance(n) < OUE(few, epsilon).variance(n)
    assert GRR(many, epsilon).variance(n) > OUE(many, epsilon).variance(n)

# %% [markdown]
# HRR sends a single sign and is as good as OUE at small epsilon only: a user who reports one of D
# coefficients leaves the others to chance, which is a variance of its own (the sources leave it
# out, see docs/notation.md). ProjectiveGeometry has reports as short as OLH's, and the error of
# SubsetSelection to within a few per cent.

# %%
for epsilon in epsilons:
    ratio = math.exp(epsilon)
    expected = (ratio + 1) / (ratio - 1) / math.sqrt(n)
    assert math.isclose(rmse(HRR, 1 << 16, epsilon), expected, rel_tol=1e-3)
excess = {
    epsilon: rmse(ProjectiveGeometry, 256, epsilon) / rmse(SubsetSelection, 256, epsilon) - 1
    for epsilon in epsilons
}
print({epsilon: f"{100 * more:.1f} %" for epsilon, more in excess.items()})
assert max(excess.values()) < 0.05
hadamard = [a / b for a, b in zip(by_epsilon["HRR"], by_epsilon["OUE"], strict=True)]
assert hadamard[0] < 1.02
assert hadamard[-1] > 2

# %% [markdown]
# ## Bits, and what the server keeps
#
# SubsetSelection and OUE send a bit for each item: no matter for 256 items, too much for a million.
# An aggregate is a few counts, however many users there are. `benchmarks/frequency_oracles.py`
# measures the time that clients and servers take.

# %%
users = 200_000 if full else 20_000
values = rng.integers(0, 256, users)
print(f"{'256 items':20}{'bits':>6}{'aggregate':>11}")
for kind in kinds:
    oracle = kind(256, 1.0)
    aggregate = oracle.aggregate(oracle.privatize(values, rng))
    bits, size = oracle.report_bits, len(aggregate.to_bytes())
    print(f"{kind.__name__:20}{bits:6d}{size:9d} B")
    assert bits == 256 if kind in (SUE, OUE, SubsetSelection) else bits <= 10
    assert size < 4096

# %% [markdown]
# ## Predicted and measured
#
# With `--data` the users are those of the census extract Adult, and the items schooling and marital
# status; without, the respondents of statsmodels's survey, and schooling and faith. `simulate`
# draws an aggregate directly from the true counts. The mean square error of many runs must be the
# predicted one, within seven standard errors.


# %%
def answers() -> list[str]:
    if data is None:
        return collect_frequencies.survey()
    with open(data / "adult.csv", encoding="utf-8") as file:
        return [f"{row['education']}, {row['marital']}" for row in csv.DictReader(file)]


labels, held = np.unique(answers(), return_counts=True)
truth = held / held.sum()
domain, epsilon, repeats = len(labels), 2.0, 2000 if full else 300
print(f"{held.sum()} people, {domain} items")
oracles = [kind(domain, epsilon) for kind in kinds]
for oracle in oracles:
    errors = np.empty(repeats)
    for run in range(repeats):
        estimate = oracle.estimate(oracle.simulate(held, rng))
        errors[run] = np.mean((estimate.frequencies - truth) ** 2)
    predicted = float(np.mean(oracle.variance(int(held.sum()), truth)))
    deviation = (errors.mean() - predicted) / (errors.std() / math.sqrt(repeats))
    name = type(oracle).__name__
    pair = f"RMSE predicted {math.sqrt(predicted):.5f}, measured {math.sqrt(errors.mean()):.5f}"
    print(f"{name:20} {pair} ({deviation:+.1f} standard errors)")
    assert abs(deviation) < 7
    # A mean square error that is 30 % off does not pass for right
    assert 7 * errors.std() / math.sqrt(repeats) < 0.3 * predicted

# %% [markdown]
# ## Intervals, and estimates that are a distribution
#
# 95 % intervals cover the truth as often as they say, item by item, rare items included.

# %%
oracle = plan("frequencies", domain, epsilon=epsilon, n=int(held.sum())).best.protocol
covered = np.empty((repeats, domain))
methods = ("base_pos", "norm", "norm_mul", "norm_sub", "norm_cut")
squares: dict[str, list[float]] = {name: [] for name in ("as estimated", *methods)}
for run in range(repeats):
    estimate = oracle.estimate(oracle.simulate(held, rng))
    low, high = estimate.interval(0.95)
    covered[run] = (low <= truth) & (truth <= high)
    for name in squares:
        published = (
            getattr(postprocess, name)(estimate.frequencies)
            if name in methods
            else estimate.frequencies
        )
        squares[name].append(float(np.mean((published - truth) ** 2)))
print(f"{oracle}: {100 * covered.mean():.1f} % of the intervals cover the truth")
assert abs(covered.mean() - 0.95) < 0.015

# %% [markdown]
# Unbiased estimates may be negative and need not sum to 1. Postprocessing costs no privacy.
# `norm_sub` is the nearest distribution: since the truth is a distribution, too, it is never
# farther from it, in any run. It is biased, and the intervals are not its.

# %%
for name, values in squares.items():
    print(f"{name:14} RMSE {math.sqrt(np.mean(values)):.5f}")
assert all(
    after <= before * (1 + 1e-9)
    for before, after in zip(squares["as estimated"], squares["norm_sub"], strict=True)
)
assert (
    np.mean(squares["norm_sub"]) < np.mean(squares["base_pos"]) < np.mean(squares["as estimated"])
)

estimate = oracle.estimate(
    oracle.aggregate(oracle.privatize(np.repeat(np.arange(domain), held), rng))
)
fig = plot.frequencies(estimate, truth, list(labels), largest=12)
fig

# %% [markdown]
# ## Which one?
#
# A few items: GRR. Many: ProjectiveGeometry, the least error that fits in a few bytes;
# SubsetSelection if the bits are no matter. The others when something else speaks for them: HRR for
# one sign and for linear transforms, OUE for the simplest client, OLH for comparison with the
# literature.

# %%
colours = dict(
    zip(
        by_domain,
        ("#0072B2", "#CC79A7", "0.6", "#009E73", "#56B4E9", "#D55E00", "#000000"),
        strict=True,
    )
)
markers = dict(zip(by_domain, "osv^DXP", strict=True))
by_bits = {
    kind.__name__: (
        kind(256, 3.0).report_bits,
        rmse(kind, 256, 3.0) / rmse(SubsetSelection, 256, 3.0),
    )
    for kind in kinds
}
fig = Figure(figsize=(12, 4), layout="constrained")
left, middle, right = fig.subplots(1, 3, sharey=True)
for name, colour in colours.items():
    style = {"color": colour, "marker": markers[name], "markerfacecolor": "none", "linewidth": 1.2}
    left.loglog(
        domains, np.divide(by_domain[name], by_domain["SubsetSelection"]), label=name, **style
    )
    middle.plot(epsilons, np.divide(by_epsilon[name], by_epsilon["SubsetSelection"]), **style)
    right.semilogx(*by_bits[name], **{**style, "markersize": 9})
left.set(
    title="epsilon = 1", xlabel="items", ylabel="error, relative to SubsetSelection", ylim=(0.95, 6)
)
middle.set(title="256 items", xlabel="epsilon")
right.set(title="256 items, epsilon = 3", xlabel="bits of a report", xlim=(5, 400))
for axes in (left, middle, right):
    axes.set_yticks([1, 1.5, 2, 3, 4, 5], ["1", "1.5", "2", "3", "4", "5"])
    axes.minorticks_off()
    axes.grid(color="0.9")
fig.legend(loc="outside right center", frameon=False)
fig

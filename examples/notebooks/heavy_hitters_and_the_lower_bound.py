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
# # What do users type, and could anybody find out more?
#
# Words, addresses, identifiers: the answers cannot be listed beforehand, and nobody trusts the
# server with theirs. Which are frequent? What may the list have missed? And is that the protocol's
# fault, or would every protocol miss it?
#
# ![Three panels: errors fall as the lower bound does with the number of users, at six to nine
# times its height; they grow with the length of an item, below the line of an empty list; and the
# probability to be listed rises from 0 to 1 between one and five per cent of the
# users](attachment:picture.png)
#
# Source: Bassily and Smith, *Local, Private, Efficient Protocols for Succinct Histograms* (STOC
# 2015): protocols in sections 3 and 4, the lower bound of Theorem 5.2. It has no figures; those
# here draw its theorems.

# %% tags=["hide-input"]
# %matplotlib inline
import csv
import math
from collections import Counter

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binom
from settings import arguments

# isort: split
from heavy_hitters import STYLES, Population, error, typed

from frequency import HRR, OLH
from frequency.heavy import OneBit, PrefixExtension, lower_bound, plot
from mechdesign.plot import look, mark_numbers, style

full, data = arguments()
rng = np.random.default_rng(4)

# %% [markdown]
# ## Strings in, strings out
#
# `PrefixExtension` asks each user for the first bits of what they type, how many of them at random;
# the server keeps the heavy prefixes and extends them. Any string of up to 8 bytes is possible. The
# list says how far to trust it.

# %%
if data is None:
    # Names of towns, and in one case of three a string that hardly anybody else types
    values = typed(200_000, rng)
else:
    with (data / "adult.csv").open(newline="", encoding="utf-8") as stream:
        values = rng.choice(
            [row["occupation"][:8] for row in csv.DictReader(stream)], 200_000
        ).tolist()
truth = {name: count / len(values) for name, count in Counter(values).items()}

protocol = PrefixExtension(bits=64, epsilon=2.0, text=True)
found = protocol.find(protocol.aggregate(protocol.privatize(values, rng)))
print(found.table())

true = np.array([truth.get(name, 0.0) for name in found.items])
sure = found.recall(list(truth.values())) > 1 - 1e-8
plot.heavy_hitters(found, truth)

# %% tags=["remove-cell"]
assert protocol.audit().holds
assert (np.abs(found.frequencies - true) < 7 * np.sqrt(found.variances)).all()
assert np.isin(np.array(list(truth))[sure], found.items).all()
assert sure.sum() >= 5

# %% [markdown]
# ## What the list misses
#
# `found.recall(f)` is a lower bound on the probability that an item which a fraction f of the users
# have is on the list. Items planted at many frequencies show how low it is: integers of 16 bits
# here, everybody else with a random one.

# %%
n, epsilon, bits = 100_000, 1.0, 16
shares = np.linspace(0.01, 0.05, 9)
held = np.rint(shares * n).astype(int)
planted = rng.choice(1 << bits, len(shares), replace=False)
protocol = PrefixExtension(bits, epsilon)
runs, hits, promised = 200 if full else 40, np.zeros(len(shares)), np.zeros(len(shares))
for _ in range(runs):
    items = np.concatenate([np.repeat(planted, held), rng.integers(0, 1 << bits, n - held.sum())])
    found = protocol.find(protocol.aggregate(protocol.privatize(items, rng)))
    hits += np.isin(planted, found.items) / runs
    promised += found.recall(shares) / runs
print("held by   " + "".join(f"{share:7.1%}" for share in shares))
print("promised  " + "".join(f"{value:7.0%}" for value in promised))
print("listed    " + "".join(f"{value:7.0%}" for value in hits))

# %% tags=["remove-cell"]
assert (binom.cdf(np.rint(hits * runs), runs, promised) > 1e-7).all()
assert hits[0] < 0.5  # 1 % of 100,000 users are too few

# %% [markdown]
# ## Could anybody do better?
#
# Theorem 5.2: whatever the protocol, for some distribution of the items the largest error of all
# frequencies is on average at least a constant times √(log d / n) / ε. `lower_bound` has the
# constant (its docstring, the proof). The error of a list is the largest
# |estimate - frequency| over all items, unlisted ones being estimated 0.

# %%
users = [round(10**e) for e in (4, 4.5, 5, 5.5, 6, 6.5, 7)] if full else [10**4, 10**5, 10**6]
repeats = 5 if full else 2


def mean_error(make, bits, n):
    """Over a few collections from users with items of a Zipf distribution."""
    return float(
        np.mean([error(make(), Population.draw(bits, n, rng), rng) for _ in range(repeats)])
    )


systems = {
    "OLH": lambda: OLH(1 << bits, epsilon),
    "PrefixExtension": lambda: PrefixExtension(bits, epsilon),
}
by_users = {name: [mean_error(make, bits, n) for n in users] for name, make in systems.items()}
bound = [lower_bound(n, 1 << bits, epsilon) for n in users]
print(
    f"d = 2^{bits} items, ε = {epsilon:g}\nn          lower bound  "
    + "".join(f"{name:>17s}" for name in systems)
)
for k, n in enumerate(users):
    print(
        f"{n:<10,d} {bound[k]:12.5f} "
        + "".join(
            f"{by_users[name][k]:10.4f} ({by_users[name][k] / bound[k]:4.1f})" for name in systems
        )
    )

# %% tags=["remove-cell"]
for name in systems:
    assert all(1 < e / b < 15 for e, b in zip(by_users[name], bound, strict=True))
    # √n: a hundred times the users, a tenth of the error, as the bound has it.
    assert 0.4 < by_users[name][0] / by_users[name][-1] / math.sqrt(users[-1] / users[0]) < 2

# %% [markdown]
# OLH needs a list of all items; the prefixes need none, and that costs hardly anything. The bound
# is for the worst distribution, of which the Zipf distribution here need not be one; against that,
# nobody can gain more than the factor in brackets.
#
# ## Longer strings
#
# The bound grows with √log d: strings of 64 bits instead of 8 may cost a factor of 3. They do, with
# some loss for the several lengths of prefix that the users are split over.

# %%
lengths = (4, 8, 12, 16, 24, 32, 40, 48, 56, 64) if full else (8, 16, 32, 64)
many = 10**6 if full else 10**5
by_bits = [mean_error(lambda b=b: PrefixExtension(b, epsilon), b, many) for b in lengths]
bound_bits = [lower_bound(many, 1 << b, epsilon) for b in lengths]
for b, e, least in zip(lengths, by_bits, bound_bits, strict=True):
    print(
        f"{b:2d} bits, n = {many:,}: error {e:.4f}, lower bound {least:.4f}, factor {e / least:.1f}"
    )

# %% tags=["remove-cell"]
assert all(1 < e / least < 20 for e, least in zip(by_bits, bound_bits, strict=True))

# %% [markdown]
# ## One bit from each
#
# Section 4.1 of the source: with public coins one private bit from each user is enough for any of
# these, if ε ≤ ln 2. The coins draw a report, and the bit says whether to keep it. About half are
# kept, so that errors grow by √2 for signs such as those of HRR.

# %%
whole = HRR(1 << 10, math.log(2))
single = OneBit(whole)
drawn = rng.integers(0, 1 << 10, 100_000)
shares_of = np.bincount(drawn, minlength=whole.domain) / len(drawn)
rmse = []
for one in (whole, single):
    estimates = [one.estimate(one.aggregate(one.privatize(drawn, rng))) for _ in range(4)]
    rmse.append(
        np.sqrt(np.mean([(estimate.frequencies - shares_of) ** 2 for estimate in estimates]))
    )
print(
    f"{whole.report_bits} bits: RMSE {rmse[0]:.5f}; {single.report_bits} bit: {rmse[1]:.5f},"
    f" {rmse[1] / rmse[0]:.3f} times as much"
)
one_bit = [mean_error(lambda: OneBit(PrefixExtension(bits, math.log(2))), bits, n) for n in users]

# %% tags=["remove-cell"]
assert single.audit().holds
assert abs(rmse[1] / rmse[0] - math.sqrt(2)) < 0.15

# %% [markdown]
# ## The picture
#
# Left and middle, errors against users and length, and the dotted bound. The grey line is where
# nothing is listed: the share of the most frequent item. Right, what the list promises and what it
# keeps.

# %% tags=["hide-input", "picture"]
with style():
    figure = Figure(figsize=(13, 4.4))
    left, middle, right = figure.subplots(1, 3)
    for name, curve in by_users.items():
        left.plot(users, curve, **STYLES[name], label=name)
    left.plot(users, one_bit, **STYLES["OneBit(PrefixExtension)"], label="OneBit of it, ε = ln 2")
    left.plot(users, bound, "k-", linewidth=2.5, label="lower bound of\nany protocol, ε = 1")
    middle.plot(lengths, by_bits, **STYLES["PrefixExtension"], label="PrefixExtension")
    middle.plot(lengths, bound_bits, "k-", linewidth=2.5, label="lower bound of any protocol")
    nothing = [1 / (np.arange(1, min(1 << b, 1 << 16) + 1) ** -1.1).sum() for b in lengths]
    middle.plot(lengths, nothing, "--", color="0.6", label="nothing listed")
    left.set(
        xscale="log",
        yscale="log",
        xlabel="users",
        ylabel="largest |estimate − frequency|",
        title=f"$2^{{{bits}}}$ items, ε = 1",
    )
    middle.set(
        yscale="log",
        xlabel="bits of an item",
        ylabel="largest |estimate − frequency|",
        title=f"{many:,} people, ε = 1",
        xticks=lengths,
    )
    right.plot(shares, hits, **look(0), label=f"listed, of {runs} times")
    right.plot(shares, promised, **look(1), label="promised")
    right.set(
        xlabel="fraction of the users who have the item",
        ylabel="probability to be listed",
        title="100,000 people, $2^{16}$ items, ε = 1",
    )
    for axes, where in ((left, "lower left"), (middle, "lower right"), (right, "lower right")):
        axes.legend(loc=where)
        axes.margins(x=0.08)
    left.set_ylim(bottom=1e-4)
    middle.set_ylim(bottom=5e-4)
    for axes in (left, middle):
        mark_numbers(axes.yaxis, logarithmic=True)
    mark_numbers(left.xaxis, logarithmic=True)
figure

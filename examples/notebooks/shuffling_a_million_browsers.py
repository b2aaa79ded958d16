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
# # A million browsers: what does it help to trust a shuffler?
#
# *A browser's maker wants to know which of 64 languages its users have set, and how many tabs they
# have open. Nobody outside is to learn more than (0.25, 1e-8) about any one user. The users may
# trust nobody, or a shuffler that removes who sent what, or the maker with their data. How accurate
# are the answers, and what is lost if that trust is not deserved?*
#
# ![Three panels: estimates of 64 languages, with wide intervals if nobody is trusted and hardly
# any by a shuffler or a curator; standard errors of open tabs, at most a fifth of that with a
# shuffler; and the error against what a failing shuffler loses, which falls as the local epsilon
# grows](attachment:picture.png)
#
# The page on shuffled reports (docs/shuffling.md) has the proof, LIMITS.md what a shuffler must do.
# The data are made up.

# %% tags=["hide-input"]
# %matplotlib inline
import math

import numpy as np
from matplotlib.figure import Figure
from settings import arguments

from frequency import GRR
from mechdesign import Ledger, plan
from mechdesign.accounting import shuffled
from mechdesign.plot import look, mark_numbers, style
from rangeq import Between, HierarchicalHistogram
from rangeq.central import Hierarchy

full, data = arguments()
rng = np.random.default_rng(7)  # reproducible, for this page; leave it out in earnest

n, epsilon, delta = 1_000_000, 0.25, 1e-8
weights = np.arange(1, 65) ** -1.6
languages = rng.choice(64, n, p=weights / weights.sum())
tabs = np.minimum(rng.lognormal(2.2, 1.1, n).astype(int), 255)
share = np.bincount(languages, minlength=64) / n
below = np.cumsum(np.bincount(tabs, minlength=256)) / n

# %% [markdown]
# ## How much noise must a report have?
#
# The reports hide each other. For n of them and a central (epsilon, delta), the devices may use the
# largest *local epsilon* with which all reports together are proved to keep that promise. Two
# questions share 0.25: as they compose, each can have more than half, 0.17 at the same delta.

# %%
planned = plan("frequencies", 64, n=n, epsilon=0.17, delta=delta, trust="shuffled")
print(planned)

# %% [markdown]
# The tabs are counted in a tree, whose nodes are reported by the same randomised response.

# %%
oracle = planned.best.protocol
tree = HierarchicalHistogram(256, planned.best.local_epsilon, 16, "GRR")
collections = {"language": shuffled(oracle, n), "tabs": shuffled(tree, n)}
for name, collection in collections.items():
    central = collection.epsilon(delta)
    print(f"{name}: local epsilon {collection.local_epsilon:.2f}, central epsilon {central:.3f}")

# %% tags=["remove-cell"]
for collection in collections.values():
    assert collection.epsilon(delta) < 0.18
    assert 5 < collection.local_epsilon < 9
    assert collection.delta_at_least(0.97 * collection.epsilon(delta)) > delta

# %% [markdown]
# Nearly all of that is real: with all other users at one value, the reports do tell 97 % of these
# epsilons, so that no better proof could allow much more.
#
# ## The ledger
#
# It keeps both currencies: what the collections tell their readers, composed, and what the reports
# tell whoever sees them with their sender, which adds up.

# %%
ledger = Ledger(str(epsilon), delta="1e-8")
for name, collection in collections.items():
    ledger.spend(collection, name)
print(ledger)

# %% tags=["remove-cell"]
assert 0.17 < ledger.spent <= 0.25
assert ledger.local > 10

# %% [markdown]
# ## Collect, three times
#
# Each device sends two reports, apart from each other. The shuffler waits for all of one kind and
# permutes them; the maker estimates. For comparison: devices that trust nobody answer one of the
# questions at a local epsilon of 0.25, by protocols that are best there, half of the users each. A
# curator adds noise to the true counts, with half of 0.25 for each question, and half of that for
# each of the two counts that change with a user's value.

# %%
reports = oracle.privatize(languages, rng)  # on the devices
shuffled_reports = rng.permutation(reports)  # by the shuffler
collections["language"].require(len(shuffled_reports))
by_language = oracle.estimate(oracle.aggregate(shuffled_reports))  # by the maker
by_tabs = tree.estimate(tree.aggregate(rng.permutation(tree.privatize(tabs, rng))))

half = rng.permutation(n)
first, second = half[: n // 2], half[n // 2 :]
alone = {
    "language": plan("frequencies", 64, n=n // 2, epsilon=epsilon).best.protocol,
    "tabs": plan("prefixes", 256, n=n // 2, epsilon=epsilon).best.protocol,
}
print("local protocols:", *(type(protocol).__name__ for protocol in alone.values()))
by_nobody = {
    name: protocol.estimate(protocol.aggregate(protocol.privatize(values, rng)))
    for (name, protocol), values in zip(
        alone.items(), (languages[first], tabs[second]), strict=True
    )
}
flat = plan("frequencies", 64, n=n, epsilon="1/8", trust="curator").best.protocol
print("a curator's:", flat)
curated = flat.release(np.bincount(languages, minlength=64), rng)
tree_of_curator = Hierarchy(256, "1/16", 16).release(np.bincount(tabs, minlength=256), rng)

trusts = ("nobody", "a shuffler", "a curator")
answers = [curated.answer(Between(k, k)) for k in range(64)]
language = {
    "nobody": (
        by_nobody["language"].frequencies,
        np.sqrt(by_nobody["language"].variances + share / n),  # half of the users were drawn
    ),
    "a shuffler": (by_language.frequencies, np.sqrt(by_language.variances)),
    "a curator": (
        np.array([answer.value for answer in answers]) / n,
        np.sqrt([answer.variance for answer in answers]) / n,
    ),
}
places = np.unique(np.geomspace(1, 250, 16).astype(int))
curves = {}
for trust, estimate, scale in (
    ("nobody", by_nobody["tabs"], 1),
    ("a shuffler", by_tabs, 1),
    ("a curator", tree_of_curator, n),
):
    found = [estimate.answer(Between(0, int(place))) for place in places]
    curves[trust] = (
        np.array([answer.value for answer in found]) / scale,
        np.sqrt([answer.variance for answer in found]) / scale,
    )
print(f"{'standard errors':18}{'a language':>12}{'up to k tabs':>14}")
for trust in trusts:
    errors = [math.sqrt(np.mean(found[trust][1] ** 2)) for found in (language, curves)]
    print(f"{trust:18}{errors[0]:12.6f}{errors[1]:14.6f}")

# %% tags=["remove-cell"]
for trust in trusts:
    assert (np.abs(language[trust][0] - share) < 7 * language[trust][1]).all()
    assert (np.abs(curves[trust][0] - below[places]) < 7 * curves[trust][1] + 2 / n).all()
noise = [float(np.median(language[trust][1])) for trust in trusts]
assert planned.best.name == "GRR"
assert noise[0] > 50 * noise[1] > 50 * noise[2]

# %% [markdown]
# ## What a shuffler that fails loses
#
# The same promise to the readers, but not the same promise to the users: at this local epsilon a
# report is nearly always the truth. If the shuffler keeps a log, or works for the maker, each user
# has told what the local epsilon says, and no more than that is proved. Less local epsilon costs
# accuracy. Nobody but the users' advocates can say where on this line to be.

# %%
line = []
print("local epsilon   report is true   central epsilon   standard error")
for local in (0.5, 1, 2, 4, 5.5, oracle.epsilon):
    choice = GRR(64, local)
    central = shuffled(choice, n).epsilon(delta)
    line.append((float(local), central, math.sqrt(choice.variance(n, 1 / 64))))
    print(f"{float(local):13.2f}{float(choice.p):17.1%}{central:18.4f}{line[-1][2]:17.6f}")
locals_, centrals, errors = np.array(line).T

# %% tags=["remove-cell"]
assert (centrals < locals_).all()
assert oracle.p > 0.8  # "nearly always"
assert (np.diff(centrals) > 0).all()
assert (np.diff(errors) < 0).all()

# %% [markdown]
# ## The picture
#
# Left, estimates of languages, the most frequent first, with 95 % intervals; those below 0 are not
# shown. Middle, standard errors of the share of users with up to k tabs; the curator's tree does
# not take the number of users as known. Right, the line above.

# %% tags=["hide-input", "picture"]
with style():
    figure = Figure(figsize=(13.5, 4.4))
    left, middle, right = figure.subplots(1, 3)
    order = np.argsort(share)[::-1]
    ranks = np.unique(np.geomspace(1, 64, 14).astype(int)) - 1
    left.plot(np.arange(1, 65), share[order], "-", color="0.6", label="truth")
    for series, (trust, shift) in enumerate(zip(trusts, (0.93, 1, 1.07), strict=True)):
        own = look(series)
        estimates, deviations = language[trust]
        values, reach = estimates[order[ranks]], 1.96 * deviations[order[ranks]]
        seen = values > 0
        ends = [np.minimum(reach, values - 1e-5)[seen], reach[seen]]
        left.errorbar(
            ((ranks + 1) * shift)[seen],
            values[seen],
            np.maximum(ends, 0),
            **own | {"linestyle": ""},
            elinewidth=1,
            label=trust,
        )
        middle.plot(places, curves[trust][1], **own, label=trust)
    left.set(
        xscale="log",
        yscale="log",
        ylim=(1e-4, 1),
        xlabel="rank of the language",
        ylabel="fraction of the users",
        title="64 languages, (0.25, 1e-8) in all",
    )
    middle.set(
        xscale="log",
        yscale="log",
        xlabel="k tabs",
        ylabel="standard error of the users with up to k",
        title="open tabs",
    )
    right.plot(locals_, errors, **look(0))
    for local, central, error in line:
        right.annotate(f"{central:.2g}", (local, error), textcoords="offset points", xytext=(6, 5))
    right.set(
        yscale="log",
        xlabel="local epsilon: what a failing shuffler loses",
        ylabel="standard error of a language",
        title="a shuffler: numbers are central epsilons",
    )
    right.margins(x=0.15)
    for axes in (left, middle, right):
        mark_numbers(axes.yaxis, logarithmic=True)
    for axes in (left, middle):
        mark_numbers(axes.xaxis, logarithmic=True)
    left.legend()
    middle.legend()
figure

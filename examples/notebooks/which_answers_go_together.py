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
# # Which answers go together?
#
# Everybody has eight yes-or-no answers and sends *one* private report. Which answers depend on each
# other, and which of the dependences that show are only noise?
#
# ![Three panels: errors of six protocols against epsilon, InpHT's the least; the chi-square
# statistic of independent attributes, most often beyond the textbook's critical value and seldom
# beyond the one that knows the noise; and the tree of the attributes that is learned, nearly the
# true one](attachment:picture.png)
#
# Source: Kulkarni's thesis, chapter 4 (Figures 4.2 to 4.9). Its taxi trips are used where `--data`
# names a directory with them, otherwise trips made up with the associations that it reports.

# %% tags=["hide-input"]
# %matplotlib inline
import math

import numpy as np
from matplotlib.figure import Figure
from settings import arguments

# isort: split
from marginal_figures import (
    DEPENDENT,
    INDEPENDENT,
    SIX,
    STYLES,
    Study,
    figure_4_2,
    figure_4_8,
    logarithmic,
    taxi,
    trips,
)

from frequency.marginals import InpHT, MargPS, chi_square, chow_liu, pearson
from frequency.marginals.association import statistic
from mechdesign.plot import look, style

full, data = arguments()
rng = np.random.default_rng(2)
population = trips(rng) if data is None else taxi(data / "taxis.csv")
study = Study(rng, repeats=10 if full else 3, quick=not full)
n, epsilon = 1 << 18, math.log(3)
print(
    f"{n:,} users are drawn from {len(population.records):,} {population.name}:"
    f" {', '.join(population.attributes)}"
)

# %% [markdown]
# ## One report for all pairs
#
# A record has 2^8 possible values, a marginal of two attributes 4, and there are 28 of those.
# `InpHT` reports one random Walsh-Hadamard coefficient of the record, among those that marginals of
# up to two attributes need: seven bits, of use to every marginal.

# %%
held = population.draw(1 << 20, rng)  # how many users hold each record
protocol = InpHT(population.domain, k=2, epsilon=epsilon)
estimate = protocol.estimate(protocol.simulate(held, rng))

low, high = estimate.cells(["CC", "Tip"]).interval()
table, true = estimate.marginal(["CC", "Tip"]), population.marginal(held, ["CC", "Tip"])
print(
    f"{protocol.report_bits} bits from each of {estimate.n:,} users\nCC Tip  estimate  95% interval"
    "        truth"
)
for cell in np.ndindex(2, 2):
    print(
        f" {cell[0]}   {cell[1]}   {table[cell]:7.4f}  [{low[cell]:.4f}, {high[cell]:.4f}] "
        f" {true[cell]:7.4f}"
    )
tips, variance = estimate.answer({"CC": 1, "Tip": 1})
cards, _ = estimate.answer({"CC": 1})
print(
    f"of those who pay by card {tips / cards:.1%} tip a quarter or more; truly"
    f" {true[1, 1] / true[1].sum():.1%}"
)

# %% tags=["remove-cell"]
assert protocol.audit().holds
assert (np.abs(table - true) < 6 * np.sqrt(estimate.cells(["CC", "Tip"]).variance)).all()

# %% [markdown]
# ## Which protocol?
#
# All six of the thesis predict their error before anybody reports. Figure 4.4's setting for k = 2:

# %%
epsilons = (0.4, 0.8, epsilon, 1.4)
predicted, measured = {}, {}
print(
    "mean total variation distance of the 2-way marginals at ε = 1.1\nprotocol  bits  predicted "
    " measured"
)
for kind in SIX:
    name = kind.__name__
    for e in epsilons:
        system = kind(population.domain, 2, e)
        predicted[name, e] = np.mean(
            [system.total_variation(n, view) for view in population.domain.views(2)]
        )
        measured[name, e] = study.error(kind, population, n, 2, e)[0]
    print(
        f"{name:8s}  {system.report_bits:4d}  {predicted[name, epsilon]:9.4f} "
        f" {measured[name, epsilon]:8.4f}"
    )
order = sorted((kind.__name__ for kind in SIX), key=lambda name: predicted[name, epsilon])

# %% tags=["remove-cell"]
# Predicted for uniform records
assert all(0.5 < error / predicted[key] < 1.7 for key, error in measured.items())
assert order == ["InpHT", "MargPS", "MargHT", "MargRR", "InpRR", "InpPS"]

# %% [markdown]
# Reporting about the whole record (InpPS, InpRR) pays for 256 cells; reporting on one marginal of
# the 28 (Marg...) splits the users; InpHT does neither.
#
# ## Correlations (Figure 4.2)

# %%
figure_4_2(study, population)

# %% [markdown]
# ## Dependent, or noise? (Figure 4.8)
#
# The χ² statistic of a textbook is compared to 3.84, which noise-free counts of independent
# attributes exceed one time in twenty. A private estimate is far noisier. Take attributes that
# *are* independent, many times:

# %%
independent = population.some(2).domain
shares = np.outer([0.7, 0.3], [0.6, 0.4]).ravel()
once = InpHT(independent, 2, epsilon)
tests = []
for _ in range(400):
    estimated = once.estimate(once.simulate(rng.multinomial(n, shares), rng))
    tests.append(chi_square(estimated, *population.attributes[:2]))
naive = np.mean([test.statistic > test.critical_without_noise for test in tests])
aware = np.mean([test.dependent for test in tests])
print(
    f"independent attributes found dependent: {naive:.0%} by the textbook's critical value,"
    f" {aware:.1%} by `chi_square`'s"
)

# %% tags=["remove-cell"]
assert 0.005 < aware < 0.12  # of 400 tests of size 0.05
assert naive > 0.4

# %% [markdown]
# `chi_square` therefore computes a critical value of its own, from the protocol's errors. The
# factor between the two is the price of privacy: so many times more users are needed to see the
# same dependence. Of the thesis's six pairs:

# %%
figure_4_8(study, population)

# %% [markdown]
# All 28 pairs, from 2^20 users. At 95 % one or two independent pairs of so many would be called
# dependent; each is tested at a 28th of 5 % instead.

# %%
pairs = population.domain.views(2)
found = {pair: chi_square(estimate, *pair, confidence=1 - 0.05 / len(pairs)) for pair in pairs}
exact = {pair: statistic(population.marginal(held, pair), estimate.n) for pair in pairs}
print("pairs called dependent       statistic  from exact counts    critical    p-value")
for pair in sorted(pairs, key=lambda pair: found[pair].p_value):
    test = found[pair]
    if test.dependent:
        print(
            f"{', '.join(pair):26s}  {test.statistic:10.0f}  {exact[pair]:17.0f} "
            f" {test.critical:10.0f}  {test.p_value:9.1e}"
        )

# %% tags=["remove-cell"]
for pair, test in found.items():
    scale = test.critical / test.critical_without_noise
    # Of the noise, from independence: of chance 3 pass the test, and it would have to hide 6 of 9
    assert test.dependent or math.sqrt(exact[pair] / scale) < 9
if data is None:
    assert all(chi_square(estimate, a, b).dependent for a, b in DEPENDENT)
    assert all(chi_square(estimate, a, b).p_value > 1e-7 for a, b in INDEPENDENT)

# %% [markdown]
# ## A tree of attributes (Figure 4.9)
#
# The Chow-Liu tree joins all attributes by the pairs of the largest mutual information: the best
# distribution in which each attribute depends on one other. What a tree learned from reports loses
# is measured by the *true* information of its edges.


# %%
def marginals(a, b):
    """What a curator would know."""
    return population.marginal(held, (a, b))


ideal, learned = chow_liu(marginals, population.attributes), chow_liu(estimate)
pairwise = MargPS(population.domain, 2, epsilon)
worse = chow_liu(pairwise.estimate(pairwise.simulate(held, rng)))
print(f"information of the true tree {ideal.total():.4f} nats")
for name, tree in (("InpHT", learned), ("MargPS", worse)):
    print(f"{name:6s} claims {tree.total():.4f}, has {tree.total(marginals):.4f}")
print(learned)

# %% tags=["remove-cell"]
assert max(tree.total(marginals) for tree in (learned, worse)) <= ideal.total() + 1e-12
# What carries most of the information is many deviations above the noise; only weak edges are
# exchanged for others.
assert learned.total(marginals) > 0.7 * ideal.total()

# %% [markdown]
# ## The picture
#
# Left, which protocol: lines predicted, dots measured. Middle, what independent attributes look
# like. Right, the tree: the wider an edge, the stronger the true correlation; dashed edges belong
# to the true tree alone.

# %% tags=["hide-input", "picture"]
with style():
    figure = Figure(figsize=(13, 4.6))
    left, middle, right = figure.subplots(1, 3)
    for name in order:
        own = STYLES[name]
        left.plot(epsilons, [predicted[name, e] for e in epsilons], **own | {"marker": ""})
        left.plot(
            epsilons, [measured[name, e] for e in epsilons], **own | {"linestyle": ""}, label=name
        )
    logarithmic(left)
    left.set(
        xlabel="ε",
        ylabel="total variation distance",
        title=f"2-way marginals, n = $2^{{18}}$ {population.name}",
    )
    left.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.14))
    values = [test.statistic for test in tests]
    middle.hist(values, bins=np.geomspace(0.02, max(values), 40), color="0.7")
    middle.axvline(
        tests[0].critical_without_noise,
        color=look(0)["color"],
        linestyle="--",
        label=f"textbook: exceeded by {naive:.0%}",
    )
    middle.axvline(
        tests[0].critical, color=look(1)["color"], label=f"with the noise: by {aware:.0%}"
    )
    middle.set(
        xscale="log",
        xlabel="χ² statistic of independent attributes",
        ylabel="of 400 collections",
        title="95 % critical values",
    )
    middle.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14))
    angle = dict(
        zip(
            population.attributes,
            np.linspace(0, 2 * np.pi, len(population.attributes), endpoint=False),
            strict=True,
        )
    )
    place = {name: (np.cos(a), np.sin(a)) for name, a in angle.items()}
    for tree, dashes, colour in ((ideal, "--", "0.6"), (learned, "-", look(2)["color"])):
        for edge in tree.edges:
            if dashes == "-" or set(edge) not in [set(other) for other in learned.edges]:
                width = 1.0 if dashes == "--" else 1 + 5 * math.sqrt(abs(pearson(marginals(*edge))))
                right.plot(
                    *zip(*(place[name] for name in edge), strict=True),
                    dashes,
                    color=colour,
                    linewidth=width,
                    marker="",
                )
    for name, (x, y) in place.items():
        right.plot(x, y, "o", color="k", markersize=5)
        side = "center" if abs(x) < 0.1 else "left" if x > 0 else "right"
        right.annotate(name, (1.08 * x, 1.12 * y), ha=side, va="center")
    kept = learned.total(marginals) / ideal.total()
    right.set(
        xlim=(-1.8, 1.7),
        ylim=(-1.3, 1.3),
        title=f"tree, with {kept:.1%} of the best one's information",
    )
    right.set_axis_off()
figure

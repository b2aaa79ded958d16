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
# # Suppression or a mechanism
#
# *An office publishes a table of small counts. It suppresses those below 7, and prints every
# total. What can readers work out about the suppressed counts, and what would it cost to publish
# by a mechanism instead?*
#
# ![A table of counts by education and age, twice: on the left as published, with stars for counts
# below 7; on the right as readers can work it out, with nearly all of the stars replaced by exact
# counts](attachment:picture.png)
#
# The table is of the 6,366 respondents of Redbook's 1974 survey, as shipped by statsmodels: how
# many of them call their marriage poor or very poor, by education, age, and whether they have
# children. On the left is what is published, on the right what follows from it.

# %% tags=["hide-input"]
# %matplotlib inline
import math

import numpy as np
from matplotlib.figure import Figure
from statsmodels.datasets import fair

from mechdesign import Privacy
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.plot import look, style
from mechdesign.tables import SuppressionRule, compare_suppression, reconstruct

EDUCATION = {
    9: "grade school",
    12: "high school",
    14: "some college",
    16: "college",
    17: "graduate school",
    20: "advanced degree",
}
AGE = {17.5: "to 19", 22: "20-24", 27: "25-29", 32: "30-34", 37: "35-39", 42: "from 40"}
CHILDREN = ["no children", "children"]

survey = fair.load_pandas().data
unhappy = survey[survey["rate_marriage"] <= 2]
counts = np.zeros((len(EDUCATION), len(AGE), len(CHILDREN)), dtype=int)
for education, age, children in zip(
    unhappy["educ"], unhappy["age"], unhappy["children"], strict=True
):
    counts[[*EDUCATION].index(education), [*AGE].index(age), int(children > 0)] += 1
print(f"{counts.sum()} of {len(survey)}; {(counts < 7).sum()} of {counts.size} cells are below 7")

# %%
rule = SuppressionRule(threshold=7)  # zeros and all totals are published
published = rule.publish(counts)
found = reconstruct(published)

# %% tags=["hide-cell", "picture"]
exact, within = look(1)["color"], look(5)["color"]
with style():
    fig = Figure(figsize=(11, 7.4))
    for row, title in enumerate(CHILDREN):
        for column, when in enumerate(("what is published", "what follows")):
            axes = fig.add_subplot(2, 2, 2 * row + column + 1)
            axes.set_title(f"{title}: {when}")
            axes.grid(False)
            for i, j in np.ndindex(7, 7):
                low, high = found.low[i, j, row], found.high[i, j, row]
                hidden = published.suppressed[i, j, row]
                text = str(low) if low == high else f"{low}-{high}"
                colour = exact if column and low == high else within
                axes.text(
                    j,
                    i,
                    "*" if hidden and not column else text,
                    ha="center",
                    va="center",
                    color="white" if hidden and column and low == high else "black",
                    bbox={
                        "boxstyle": "round",
                        "facecolor": colour if hidden else "none",
                        "edgecolor": "none",
                    },
                )
            axes.set(xlim=(-0.6, 6.6), ylim=(6.5, -0.5))
            axes.set_xticks(range(7), [*AGE.values(), "total"])
            axes.set_yticks(
                range(7), ["" if column else name for name in (*EDUCATION.values(), "total")]
            )
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
            axes.axhline(5.5, color="0.7", linewidth=0.8)
            axes.axvline(5.5, color="0.7", linewidth=0.8)
fig

# %% [markdown]
# Blue counts are suppressed, orange ones are recovered exactly. `reconstruct` knows only what is
# published, the rule, and that counts are whole numbers of at least 0. For each count it finds the
# least and the largest that any table with these totals could have, and proves it: a table that
# has the count, and multipliers of a linear program, checked in integers, that rule out any beyond.

# %%
cells = (slice(-1),) * 3
suppressed = published.suppressed[cells]
recovered, near = (each[cells] & suppressed for each in (found.recovered, found.within_one))
print(f"{suppressed.sum()} cells are suppressed, {recovered.sum()} of them are recovered exactly")

# %% tags=["remove-cell"]
assert found.tight.all()  # proved: no reader can narrow an interval further
assert ((found.low[cells] <= counts) & (counts <= found.high[cells])).all()
assert (found.low[cells] == counts)[recovered].all()
assert (suppressed.sum(), recovered.sum(), near.sum()) == (34, 30, 34)

# %% [markdown]
# The other four are known to within one person. There are so many totals that suppression hides
# nearly nothing.
#
# ## What else offices do
#
# They round, totals too; they suppress further counts, so that no row or column has exactly one;
# or they leave out the totals. What each leaves to find out, and how far off a reader is who takes
# the published numbers, and for a suppressed one the middle of what is possible:

# %%
RULES = {
    "suppression": SuppressionRule(7),
    "+ rounding to 5": SuppressionRule(7, 5),
    "+ rounded totals": SuppressionRule(7, 5, totals="rounded"),
    "+ random rounding": SuppressionRule(7, 5, "random", totals="rounded"),
    "complementary suppression": SuppressionRule(7, complementary=True),
    "all of these, zeros too": SuppressionRule(7, 5, "random", True, True, "rounded"),
    "rounding to 5, no totals": SuppressionRule(7, 5, totals="none"),
}
epsilon = 1
privacy = Privacy.from_epsilon(epsilon)
compared = {
    name: compare_suppression(counts, rule, privacy, rng=np.random.default_rng(7))
    for name, rule in RULES.items()
}
print(f"{'':26}suppressed  recovered  within 1    error of a cell  of a total")
for name, one in compared.items():
    said = one.disclosed()
    errors = one.rmse()[0], one.rmse(totals=True)[0]
    print(
        f"{name:26}{said.entries:10}{said.recovered:11}{said.within_one:10}"
        f"{errors[0]:19.2f}{errors[1]:12.2f}"
    )
errors = compared["suppression"].rmse()[1], compared["suppression"].rmse(totals=True)[1]
print(f"{'mechanism, epsilon = 1':55}{errors[0]:19.2f}{errors[1]:12.2f}")

# %% tags=["remove-cell"]
assert all(one.reconstruction.tight.all() for one in compared.values())
assert compared["complementary suppression"].disclosed().recovered == 14

# %% [markdown]
# Complementary suppression follows the usual rule, two suppressed counts in each line of the table,
# and still a third of its cells is recovered. Rounding the totals as well protects better, and
# everything at once hides all small counts, at an error of six persons for each.
#
# ## Beside a mechanism
#
# At epsilon = 1 each cell has discrete Laplace noise: whoever knows anything about anybody, one
# person's answer changes the likelihood of what is published by a factor of at most e = 2.72. The
# figure draws both ways for the table of education and children, with everything published.

# %%
rows = compare_suppression(
    counts.sum(axis=1), SuppressionRule(7, 5), privacy, labels=[[*EDUCATION.values()], CHILDREN]
)
print(rows)
fig = rows.plot()
fig

# %% [markdown]
# The bars are the counts that readers of a suppressed table cannot exclude; circles are counts that
# are published as they are. The line of the mechanism is no such limit, it is how far its noise
# usually reaches. For cells the errors are alike. Totals are another
# matter: published exactly they have no error, and that of the mechanism grows with the root of
# the number of cells.

# %%
mechanism = compared["+ rounding to 5"].rmse()[1]
grand_total = compared["+ rounding to 5"].rows[-1]
print(f"a cell is off by {mechanism:.2f}, the total of all {counts.size} by {grand_total.rmse:.1f}")

# %% tags=["remove-cell"]
assert mechanism is not None
assert math.isclose(mechanism, math.sqrt(DiscreteLaplace(alpha=privacy.alpha).variance))
assert grand_total.error == 0
assert grand_total.rmse is not None
assert math.isclose(grand_total.rmse, mechanism * math.sqrt(counts.size))

# %% [markdown]
# ## What suppression does not promise
#
# All this is about readers who have one table. One respondent withdraws, a woman of a large cell,
# and the office publishes again. The counts that change tell which answer was hers.

# %%
later = counts.copy()
later[1, 2, 1] -= 1  # high school, 25 to 29, with children: 33 before
again = rule.publish(later)
changed = (again.values != published.values) & ~published.suppressed & ~again.suppressed
print(f"{changed.sum()} published numbers change, all by one: her cell and its totals")

# %% tags=["remove-cell"]
assert changed[1, 2, 1]
assert changed.sum() == 8
assert (published.values - again.values)[changed].tolist() == [1] * 8

# %% [markdown]
# The mechanism publishes twice at twice the epsilon, and says so: what can be concluded from both
# is bounded by a factor of e^2.
#
# ## Where suppression is better
#
# Where counts are large and nobody attacks. How the respondents rate their marriage, by whether
# they have children: no count is below 7, so that the table is published as it is, without error.
# The mechanism's error is the same as before: less than half a percent of most of these counts.

# %%
ratings = np.array(
    [
        [((survey["rate_marriage"] == r) & ((survey["children"] > 0) == c)).sum() for c in (0, 1)]
        for r in range(1, 6)
    ]
)
large = compare_suppression(ratings, rule, privacy)
print(ratings.tolist())
print("\n".join(str(large).splitlines()[-4:-2]))

# %% tags=["remove-cell"]
assert large.rmse()[0] == large.rmse(totals=True)[0] == 0
assert large.disclosed().entries == 0
assert mechanism / np.median(ratings) < 0.005

# %% [markdown]
# ## Which one
#
# The two rules that leave readers in doubt about every suppressed cell of the large table have a
# larger error than the mechanism at epsilon = 1, one of them by little, and without its totals.
# Those with a smaller error give counts away. For small counts with many totals, suppression hides
# little, or costs more accuracy than a mechanism. For a few large counts, or totals that must be
# exact, a mechanism costs accuracy, and buys a promise that suppression cannot make.

# %%
cell_errors = {name: one.rmse()[0] for name, one in compared.items()}
safest = [name for name, one in compared.items() if not one.disclosed().within_one]

# %% tags=["remove-cell"]
assert cell_errors["+ rounded totals"] < mechanism < cell_errors["+ random rounding"]
assert safest == ["all of these, zeros too", "rounding to 5, no totals"]
assert all(mechanism < cell_errors[name] for name in safest)

# %% [markdown]
# The same for a table of your own, which is confidential, since it is computed from true counts:
#
#     mechdesign compare-suppression table.csv --threshold 7 --round 5 --epsilon 1
#
# How much epsilon buys which error of a cell: every rule is a horizontal line, with the number of
# suppressed cells that readers know to within one person.

# %% tags=["hide-input"]
grid = np.geomspace(0.25, 4, 33)
errors = [math.sqrt(DiscreteLaplace(alpha=Privacy.from_epsilon(e).alpha).variance) for e in grid]
with style():
    fig = Figure(figsize=(9, 4.6))
    axes = fig.add_subplot()
    axes.plot(grid, errors, "-", color=look(1)["color"], linewidth=2)
    axes.annotate("mechanism", (grid[2], errors[2]), xytext=(8, 4), textcoords="offset points")
    height = 0.0
    for name, one in sorted(compared.items(), key=lambda item: item[1].rmse()[0]):
        said, error = one.disclosed(), one.rmse()[0]
        height = max(error, 1.24 * height)  # lines may be nearer to each other than their names
        axes.axhline(error, color=look(0)["color"], linewidth=1)
        axes.annotate(
            f"{name}: {said.within_one} of {said.entries}",
            (4, error),
            xytext=(4.5, height),
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.6, "shrinkB": 0},
        )
    axes.set(xscale="log", yscale="log", xlim=(0.25, 4), xlabel="epsilon")
    axes.set_ylabel("root mean square error of a cell (persons)")
    axes.set_xticks([0.25, 0.5, 1, 2, 4], ["0.25", "0.5", "1", "2", "4"], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_yticks([0.1, 0.3, 1, 3, 10], ["0.1", "0.3", "1", "3", "10"])
    axes.set_yticks([], minor=True)
fig

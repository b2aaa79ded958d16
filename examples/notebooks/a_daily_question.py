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
# # A question every day for a month: what does it cost, and what does it show?
#
# *100,000 people tell every day for a month which of 16 sites they used most, each behind
# randomised reports of their own. Fresh reports each day share one epsilon among 30 days, and say
# next to nothing. Permanent reports, of which each day sends a noisy copy, cost the same once. How
# much better is a day, a mean over the month, and a change; and what do they not hide?*
#
# ![Two panels over 30 days: estimates from fresh reports scatter between -0.1 and 0.3 around a
# truth of about 0.1, while those from permanent reports lie on the truth and show its rise on day
# 16](attachment:picture.png)
#
# The picture has one site of 16, on every day, with 95 % intervals. In the middle of the month
# some of the users of the first site move to it. All three ways lose at most epsilon = 2 about an
# answer that does not change.

# %% tags=["hide-input"]
# %matplotlib inline
import numpy as np
from matplotlib.figure import Figure
from settings import arguments

from frequency import SubsetSelection
from frequency.longitudinal import (
    Memoised,
    change_of_days,
    day_covariance,
    least_change,
    mean_of_days,
)
from mechdesign.plot import look, style

full, _ = arguments()

# %%
rng = np.random.default_rng(30)  # reproducible, for this page; leave it out in earnest

users, days, sites, total = 100_000, 30, 16, 2
site, middle = 3, 15
shares = 1 / np.arange(2, sites + 2)
values = rng.choice(sites, users, p=shares / shares.sum())
moved = values.copy()
leavers = np.flatnonzero(values == 0)
moved[leavers[: users // 25]] = site  # one in 25 changes, once
answers = [values if day < middle else moved for day in range(days)]
true = np.array([(today == site).mean() for today in answers])

memoised = Memoised(SubsetSelection(sites, 1), total=total)  # 1 a day, 2 for ever
fresh = SubsetSelection(sites, f"{total}/{days}")
once = SubsetSelection(sites, total)

state = memoised.start(values, rng)  # on the devices
kept = [memoised.protocol.aggregate(memoised.privatize(state, today, rng)) for today in answers]
anew = [fresh.aggregate(fresh.privatize(today, rng)) for today in answers]
single = once.estimate(once.aggregate(once.privatize(values, rng)))


def days_of(oracle, aggregates):
    """The site's estimates, and its 95 % intervals."""
    estimates = [oracle.estimate(aggregate) for aggregate in aggregates]
    ends = np.array([[end[site] for end in estimate.interval(0.95)] for estimate in estimates])
    return np.array([estimate.frequencies[site] for estimate in estimates]), ends


ways = {
    "fresh reports, ε = 2/30 each day": days_of(fresh, anew),
    "permanent reports, ε = 1 a day, 2 for ever": days_of(memoised.protocol, kept),
}

# %% tags=["hide-cell", "picture"]
with style():
    figure = Figure(figsize=(11, 4.4))
    series = range(1, days + 1)
    low, high = (end[site] for end in single.interval(0.95))
    asked = single.frequencies[site]
    reach = [[asked - low], [high - asked]]
    one_time = look(2) | {"linestyle": "", "capsize": 3, "label": "asked once, ε = 2"}
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (way, (found, ends)) in zip(panels, ways.items(), strict=True):
        own = look(0)["color"]
        axes.fill_between(
            series, *ends.T, color=own, alpha=0.2, linewidth=0, label="95 % intervals"
        )
        axes.plot(series, found, "o", color=own, label="estimates")
        axes.step(series, true, "-", where="mid", color="black", linewidth=1.2, label="truth")
        axes.errorbar(-1, asked, reach, **one_time)
        axes.set(title=way, xlabel="day", ylim=(-0.3, 0.5))
    figure.axes[0].set_ylabel(f"fraction of users of site {site}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4)
figure

# %% [markdown]
# The black line is the truth. With fresh reports a month cannot be told from noise. With permanent
# ones every day has an error of a sixteenth of that, and the change is seen on the day it happens.
#
# ## A day, and the whole month
#
# A permanent report is in all of a user's days, so that its error does not average out: the mean
# over the month is better than a day, and stays worse than a single question with all of epsilon.
# Users who are asked once cannot show a change, of course.

# %%
one = memoised.protocol.variance(users)
month = (one + (days - 1) * day_covariance(memoised, users)) / days
errors = {
    "fresh": (fresh.variance(users), fresh.variance(users) / days),
    "permanent": (one, month),
    "once": (once.variance(users), once.variance(users)),
}
print("standard errors of a rare site, in percent of the users")
print("             a day   the month")
for way, (a_day, a_month) in errors.items():
    print(f"{way:10s} {100 * a_day**0.5:7.2f} {100 * a_month**0.5:11.2f}")

first = mean_of_days(memoised, kept[:middle])  # nobody changes in these days
low, high = first.interval(0.95)
print(f"mean of the first {middle} days: {low[site]:.3f} to {high[site]:.3f}, truly {true[0]:.3f}")
measured = np.std(ways["permanent reports, ε = 1 a day, 2 for ever"][0] - true)

# %% tags=["remove-cell"]
assert errors["fresh"][0] > 200 * one
assert errors["fresh"][1] > 30 * month
assert once.variance(users) < month < one
assert low[site] - 0.005 < true[0] < high[site] + 0.005
assert measured < 3 * one**0.5

# %% [markdown]
# ## The change
#
# Between two days the permanent reports of those who stay cancel. Who knows how many stay has
# shorter intervals, and finds smaller changes.

# %%
for stayed in (0, 0.9):
    change = change_of_days(memoised, kept[middle - 1], kept[middle], stayed)
    low, high = change.interval(0.95)
    needed = least_change(memoised, users, true[0], stayed)
    print(
        f"at least {stayed:.0%} stay: {low[site]:+.3f} to {high[site]:+.3f}, truly"
        f" {true[middle] - true[0]:+.3f}; changes of {needed:.3f} are found 4 times in 5"
    )

# %% tags=["remove-cell"]
for stayed in (0, 0.9):
    low, high = change_of_days(memoised, kept[middle - 1], kept[middle], stayed).interval(0.95)
    assert 0 < low[site] < true[middle] - true[0] < high[site]

# %% [markdown]
# ## What it costs, and what shows
#
# Who changed has two permanent reports. If all users who changed had done so on the same day, all
# reports together would lose at most twice epsilon about both answers. But *that* somebody changed
# is not hidden at all: who sees all reports of a user looks whether the most frequent report of the
# first days is that of the last. And the most frequent report is as good as a name.

# %%
spent, counts = np.unique(state.held, return_counts=True)
print("values a user has had:", dict(zip(spent.tolist(), counts.tolist(), strict=True)))

some = np.concatenate([leavers[:500], np.flatnonzero(values == 5)[:500]])
question = Memoised(SubsetSelection(sites, 1), total=total)
devices = question.start(values[some], rng)
weeks = [
    np.stack([question.privatize(devices, held[some], rng) for _ in range(7)])
    for held in (values, moved)
]


def most_frequent(week):
    kinds, codes = np.unique(week, return_inverse=True)
    codes = codes.reshape(week.shape)
    return kinds[[np.bincount(mine).argmax() for mine in codes.T]]


before, after = map(most_frequent, weeks)
noticed, alarms = (before != after)[:500].mean(), (before != after)[500:].mean()
print(f"from two weeks of reports: {noticed:.0%} of changes noticed, {alarms:.0%} false alarms")

# %% tags=["remove-cell"]
assert counts[1] == users // 25
assert noticed > 0.8
assert alarms < 0.5

# %% [markdown]
# So permanent reports are for servers that know whose reports they get, about answers whose changes
# are no secret. LIMITS.md and the page on longitudinal collection (docs/longitudinal.md) say more.

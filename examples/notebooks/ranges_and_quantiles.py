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
# # How many are between a and b, and where is the median?
#
# Users have a number each and trust nobody with it. Each sends one private report; the server wants
# every range, every prefix and the quantiles. Which protocol, and how wrong will the answers be?
#
# ![On the left errors against the length of a range: Flat is best for single items and five to
# fourteen times worse than the others for the longest ranges, which the optimised circular
# hierarchy answers best; on the right the errors of deciles, of which a tree makes a tenth of
# Flat's](attachment:picture.png)
#
# Sources: Kulkarni's thesis, chapter 5 (Tables 5.2 to 5.4, Figures 5.3 to 5.5), and *Answering
# Range Queries Under Local Differential Privacy*, "range queries" below. Its people come from a
# Cauchy distribution with centre P D and height D / 10.

# %% tags=["hide-input"]
# %matplotlib inline
import csv
import math
from datetime import datetime

import numpy as np
from matplotlib.figure import Figure
from settings import arguments

from mechdesign.plot import look, mark_numbers, style
from rangeq import (
    Between,
    DecomposedHistogram,
    Flat,
    HaarHRR,
    HierarchicalHistogram,
    central,
    optimise,
)

full, data = arguments()
rng = np.random.default_rng(5)
epsilon = math.log(3)
n = 1 << (26 if full else 20)


def cauchy(domain, users, centre=0.4):
    """How many users hold each item; nobody is outside the domain."""
    density = 1 / (1 + ((np.arange(domain) - centre * domain) / (0.1 * domain)) ** 2)
    return rng.multinomial(users, density / density.sum())


def systems(domain):
    """The four of Tables 5.2 and 5.3: a consistent tree of B children over OUE is the thesis's
    HHc_B.
    """
    trees = {f"HHc_{b}": HierarchicalHistogram(domain, epsilon, b, "OUE") for b in (2, 4, 16)}
    return {**trees, "HaarHRR": HaarHRR(domain, epsilon)}


# %% [markdown]
# ## Predicted, published, measured (Tables 5.2 and 5.3)
#
# Every protocol predicts its error before anybody reports: `average_rmse`. The thesis prints "mean
# squared error × 1000" for N = 2^26 users; by size and by how it falls with ε it is the *root* mean
# squared error. Here is its row for ε = 1.1 beside the prediction, and beside what comes out when
# reports are drawn. `simulate` draws the aggregate of all users at once, with the distribution that
# their reports would have.

# %%
PRINTED = {  # D: (Table 5.2, all ranges; Table 5.3, all prefixes)
    1 << 8: ((0.722, 0.667, 0.820, 0.748), (0.684, 0.533, 0.666, 0.626)),
    1 << 16: ((1.303, 1.270, 1.597, 1.345), (1.202, 1.051, 1.259, 1.120)),
}
repeats = 20
ratios = []


def mean_squares(error):
    """Over all ranges a < b, and over all prefixes, from the errors of the prefixes."""
    d, e = len(error), np.concatenate([[0.0], error])
    # All a <= b, less the single items
    ranges = (d + 1) * (e @ e) - e.sum() ** 2 - (np.diff(e) ** 2).sum()
    return ranges / (d * (d - 1) / 2), error @ error / d


print(
    "RMSE x 1000 at N = 2^26, printed and predicted; measured over predicted at N ="
    f" 2^{n.bit_length() - 1}\n"
)
print("D     queries   protocol  printed  predicted  measured / predicted")
for domain, printed in PRINTED.items():
    held = cauchy(domain, n)
    truth = np.cumsum(held) / n
    for column, (name, protocol) in enumerate(systems(domain).items()):
        errors = [
            protocol.estimate(protocol.simulate(held, rng)).cdf() - truth for _ in range(repeats)
        ]
        measured = np.sqrt(np.mean([mean_squares(error) for error in errors], axis=0))
        for workload, row, rmse in zip(("ranges", "prefixes"), printed, measured, strict=True):
            theirs, ours = row[column], 1000 * protocol.average_rmse(1 << 26, workload)
            ratio = rmse / protocol.average_rmse(n, workload)
            print(
                f"2^{domain.bit_length() - 1:<3d} {workload:9s} {name:8s}  {theirs:7.3f} "
                f" {ours:9.3f}  {ratio:9.2f}"
            )
            ratios.append((ratio, theirs / ours))

# %% tags=["remove-cell"]
for ratio, to_printed in ratios:
    # Its square has 20 x 2.5 degrees of freedom or more: by chance once in 10^6 such tables
    assert 0.5 < ratio < 1.6
    assert 0.8 < to_printed < 1.25

# %% [markdown]
# In this row the thesis's numbers for ranges at 2^16 are 8 to 13 % below the prediction, and agree
# with that for ranges that begin at every 2^8th item; those for prefixes of HHc_2 are 19 % (2^8)
# and 12 % above it (see docs/notation.md). What holds: the four are within a quarter of each other,
# so that nobody is punished much for a bad branching.
#
# For a *trusted* curator that is not so, as the thesis points out in Table 5.4: at D = 2^8, B = 16
# has 36 % of the variance of B = 2, 60 % of its RMSE.

# %%
close = []
printed = {256: (221.62, 79.23, 220.06), 512: (306.31, 164.48, 305.54)}
print("D     average variance of a range, ε = 1, trusted curator (printed)")
for domain, theirs in printed.items():
    sixteen = central.Hierarchy(domain, 1.0, 16 if domain == 256 else [2, 16, 16])
    curators = (central.Wavelet(domain, 1.0), sixteen, central.Hierarchy(domain, 1.0, 2))
    ours = [curator.average_variance() for curator in curators]
    print(
        domain,
        "  "
        + "   ".join(
            f"{a} {b:.2f} ({c})"
            for a, b, c in zip(("wavelet", "HHc_16", "HHc_2"), ours, theirs, strict=True)
        ),
    )
    close.append(np.allclose(ours, theirs, rtol=0.01))

# %% tags=["remove-cell"]
assert all(close)  # the printed 164.48 is 163.48, and the wavelet's are off by 0.4

# %% [markdown]
# ## Length decides (Figure 5.3)
#
# A histogram adds up one error for each item of a range; a tree uses large nodes. So the flat
# method is best for single items and by far the worst for long ranges.
# `estimate.answer(Between(a, b)).variance` knows the error of each range; the answers agree.
# Consistency, one least-squares estimate from all levels, never harms.

# %%
domain = 1 << (22 if full else 14)
held = cauchy(domain, n)
truth = np.concatenate([[0.0], np.cumsum(held) / n])
contenders = {
    "Flat": Flat(domain, epsilon),
    "HH_4, not consistent": DecomposedHistogram(domain, epsilon, 4, "OUE"),
    "HHc_4": HierarchicalHistogram(domain, epsilon, 4, "OUE"),
    "HaarHRR": HaarHRR(domain, epsilon),
    "optimised circular hierarchy": optimise(domain, epsilon, n).protocol,
}
lengths = [1 << k for k in range(0, domain.bit_length() - 1, 2)]
estimates = {
    name: protocol.estimate(protocol.simulate(held, rng)) for name, protocol in contenders.items()
}
predicted, measured = {}, {}
for name, estimate in estimates.items():
    for length in lengths:
        first = rng.integers(0, domain - length + 1, 4096)
        last = first + length - 1
        predicted[name, length] = math.sqrt(np.mean(estimate.answer(Between(first, last)).variance))
        measured[name, length] = math.sqrt(
            np.mean((estimate.range(first, last) - (truth[last + 1] - truth[first])) ** 2)
        )

print("RMSE x 1000\nlength" + "".join(f"{length:>9d}" for length in lengths))
for name in contenders:
    print(
        f"{name}\n      " + "".join(f"{1000 * predicted[name, length]:9.3f}" for length in lengths)
    )
crossing = next(
    length for length in lengths if predicted["HaarHRR", length] < predicted["Flat", length]
)
print(f"\nfrom ranges of {crossing} items on HaarHRR errs less than Flat")

# %% tags=["remove-cell"]
for name in contenders:
    # One collection: an error that long ranges share can be small or, six deviations, large.
    assert all(measured[name, length] < 6 * predicted[name, length] for length in lengths)
    assert 0.8 < measured[name, 1] / predicted[name, 1] < 1.25
for length in lengths:
    assert predicted["HHc_4", length] <= predicted["HH_4, not consistent", length]
assert min(contenders, key=lambda name: predicted[name, 1]) == "Flat"
assert predicted["Flat", lengths[-1]] > 5 * predicted["HaarHRR", lengths[-1]]

# %% [markdown]
# ## Where users are hardly matters (range queries, Figure 8)
#
# The error is that of the protocol's noise, which does not look at the data. `average_rmse` takes a
# population, too: exact, for the Cauchy centre P D anywhere.

# %%
least_and_most = []
for name, protocol in systems(1 << 8).items():
    populations = [cauchy(256, 1 << 26, p / 10) / (1 << 26) for p in range(1, 10)]
    rmse = [1000 * protocol.average_rmse(1 << 26, "ranges", f) for f in populations]
    even = 1000 * protocol.average_rmse(1 << 26)
    print(
        f"{name:8s} RMSE x 1000 for P = 0.1 .. 0.9: {min(rmse):.3f} to {max(rmse):.3f}; even"
        f" population {even:.3f}"
    )
    least_and_most.append((min(rmse), max(rmse)))

# %% tags=["remove-cell"]
assert all(most < 1.01 * least for least, most in least_and_most)

# %% [markdown]
# So the *relative* error falls with the number of users in the range (Figure 5.4): a heavy range is
# nearly exact.

# %%
first, last = np.sort(rng.integers(0, domain, (2, 100_000)), axis=0)
mass = truth[last + 1] - truth[first]
relative = []
print("mean relative error of ranges that hold at least x of the people, x = 10%, 50%, 90%")
for name in ("Flat", "HHc_4", "HaarHRR"):
    error = np.abs(estimates[name].range(first, last) / mass - 1)
    # The mean of a normal error's size
    expected = np.sqrt(2 / math.pi * estimates[name].answer(Between(first, last)).variance) / mass
    seen, foreseen = (
        [np.mean(values[mass >= x]) for x in (0.1, 0.5, 0.9)] for values in (error, expected)
    )
    print(
        f"{name:13s}"
        + "".join(f"{value:8.2%}" for value in seen)
        + "   predicted"
        + "".join(f"{v:8.2%}" for v in foreseen)
    )
    relative.append((seen, foreseen))

# %% tags=["remove-cell"]
for seen, foreseen in relative:
    assert foreseen[0] > foreseen[1] > foreseen[2]
    assert all(a < 6 * b for a, b in zip(seen, foreseen, strict=True))

# %% [markdown]
# ## Quantiles (thesis Figure 5.5, range queries Figure 9)
#
# A quantile is where the estimated cdf reaches φ. Its *value* may be far off where hardly anybody
# is; the fraction of users below it, the *quantile error*, is that of a prefix. `quantile_interval`
# says between which items the true one is.

# %%
phi = np.arange(1, 10) / 10
deciles, largest = {}, []
print("five collections; value error in parts of D\n")
print("P    protocol          value error: median, largest    quantile error: median, largest")
for centre in (0.1, 0.5):
    held = cauchy(domain, n, centre)
    cdf = np.cumsum(held) / n
    true = np.searchsorted(cdf, phi - 1e-12)
    for name in ("Flat", "HHc_4", "HaarHRR", "optimised circular hierarchy"):
        found = []
        for _ in range(5):
            estimate = contenders[name].estimate(contenders[name].simulate(held, rng))
            found.append(estimate.quantile(phi))
        values, off = np.abs(np.array(found) - true) / domain, np.abs(cdf[np.array(found)] - phi)
        numbers = (np.median(values), values.max(), np.median(off), off.max())
        print(f"{centre}  {name:16s}  {'    '.join(f'{number:11.4f}' for number in numbers)}")
        prefixes = estimate.answer(Between(np.zeros(domain, dtype=int), np.arange(domain)))
        largest.append((off.max(), math.sqrt(prefixes.variance.max()), held.max() / n))
        deciles[centre, name] = np.sqrt(np.mean(off**2, axis=0))

# %% tags=["remove-cell"]
# No prefix is off by eight deviations, so that no quantile is, but for the users on one item
assert all(off < 8 * deviation + one for off, deviation, one in largest)

# %% [markdown]
# With real data: when taxi trips begin, in slots of half an hour of a month, users drawn with
# replacement as the thesis does.

# %%
if data is None:
    print("without --data: no taxi trips")
else:
    with (data / "taxis.csv").open(newline="", encoding="utf-8") as stream:
        begins = [datetime.fromisoformat(row["pickup"]) for row in csv.DictReader(stream)]
    month = [t for t in begins if (t.year, t.month) == (2019, 3)]
    slots = np.array([(t.day - 1) * 48 + t.hour * 2 + t.minute // 30 for t in month])
    held = np.bincount(rng.choice(slots, n), minlength=31 * 48)
    best = optimise(31 * 48, epsilon, n).protocol
    estimate = best.estimate(best.simulate(held, rng))
    found, true = estimate.quantile(phi), np.searchsorted(np.cumsum(held) / n, phi - 1e-12)
    print(
        "deciles of the begin, in days:",
        (found / 48).round(2),
        "\ntruth:                        ",
        (true / 48).round(2),
    )

# %% tags=["remove-cell"]
if data is not None:
    low, high = estimate.quantile_interval(phi, 1 - 1e-9)
    assert ((low <= true) & (true <= high)).all()

# %% [markdown]
# ## The picture
#
# Left, what a range of each length costs: lines predicted, dots measured. Right, the deciles of
# users centred at D / 2. Take what `optimise` recommends, unless reports must be short: then
# HaarHRR. Take Flat for single items and very short ranges only.

# %% tags=["hide-input", "picture"]
with style():
    figure = Figure(figsize=(10.5, 4.6))
    left, right = figure.subplots(1, 2)
    for series, name in enumerate(("HHc_4", "HaarHRR", "optimised circular hierarchy", "Flat")):
        own = look(series)
        left.plot(lengths, [predicted[name, length] for length in lengths], **own | {"marker": ""})
        left.plot(
            lengths, [measured[name, length] for length in lengths], **own | {"linestyle": ""}
        )
        right.plot(phi, deciles[0.5, name], **own, label=name)
    name = "HH_4, not consistent"
    left.plot(
        lengths, [predicted[name, length] for length in lengths], "-", color="0.6", label=name
    )
    left.plot(lengths, [measured[name, length] for length in lengths], "v", color="0.6")
    left.set_xscale("log", base=2)
    left.set(
        xlabel="items in the range",
        ylabel="RMSE, fraction of the users",
        title=f"D = $2^{{{domain.bit_length() - 1}}}$, n = $2^{{{n.bit_length() - 1}}}$, ε = 1.1",
    )
    right.set(
        xlabel="φ",
        ylabel="RMS quantile error, fraction of the users",
        title="deciles, centre D / 2",
        xticks=phi,
    )
    for axes in (left, right):
        axes.set_yscale("log")
        mark_numbers(axes.yaxis, logarithmic=True)
    figure.legend(loc="outside lower center", ncols=5)
figure

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
# # Proofs for every alpha
#
# *Others will decide how much privacy there has to be. What can be said of my mechanism now, for
# every alpha, and where does the best design change?*
#
# ![On the left the least scaled L0 of weakly honest mechanisms for two, three and four people,
# which leaves GM's curve at a dot; on the right the loss beyond GM's: weak honesty costs at most
# five per cent, fairness up to seventeen](attachment:picture.png)
#
# `mechdesign.symbolic` treats tables whose entries are rational functions of alpha. What it says of
# all alpha in (0, 1) is proved by exact algebra, not by trying many. Thesis, sections 6.5 and 6.6.

# %% tags=["hide-input"]
# %matplotlib inline
from dataclasses import replace
from fractions import Fraction

from matplotlib.figure import Figure
from settings import arguments

from mechdesign import Privacy, design, named, symbolic
from mechdesign.losses import L0, L2
from mechdesign.plot import look, style

full, _ = arguments()  # nothing here needs data
largest = 8 if full else 6

# %% [markdown]
# ## The named mechanisms
#
# GM is private for every alpha, weakly honest up to n / (n + 2) (Lemma 13, solved for alpha), and
# column honest and monotone up to 1/2 (Lemma 14). EM has all seven properties at every alpha.

# %%
gm = symbolic.geometric(4)
print(gm)
print({name: str(region) for name, region in gm.properties().items()})

# %% tags=["remove-cell"]
for n in range(2, largest + 1):
    gm, em = symbolic.geometric(n), symbolic.explicit_fair(n)
    assert gm.audit().holds
    assert gm.audit().tight
    assert em.audit().holds
    assert str(gm.where("WH")) == f"0 < α ≤ {Fraction(n, n + 2)}"
    assert str(gm.where("CM")) == str(gm.where("CH")) == "0 < α ≤ 1/2"
    assert not gm.where("F")
    assert all(region.everywhere for region in em.properties().values())
    assert gm.at("9/10") == named.geometric(n, alpha="9/10")

# %% [markdown]
# A formula may be misprinted, and then it is wrong for every alpha. Equation 6.14 gives EM's
# diagonal, and holds for even n only: at n = 3 and alpha = 9/10 EM has 100/361, more than that
# "bound".

# %%
odd = symbolic.explicit_fair(3)[0, 0]
print(odd, "=", odd("9/10"), "at 9/10")
alpha = 0.9

# %% tags=["remove-cell"]
assert odd("9/10") == Fraction(100, 361)
assert float(odd("9/10")) > (1 - alpha) / (1 + alpha - 2 * alpha ** (3 / 2 + 1))
assert str(symbolic.explicit_fair(4)[0, 0]) == "1/(1 + 2α + 2α^2)"

# %% [markdown]
# The same for local privacy: GRR, OUE, HRR and subset selection, where every two items are
# neighbours, are private for every alpha, and use all of it.

# %%
oracles = (
    symbolic.krr(5),
    symbolic.optimized_unary(4),
    symbolic.hadamard(8),
    symbolic.subset_selection(6, 2),
)
for table in oracles:
    audit = table.audit()
    print(
        f"{table.outputs} outputs for {table.inputs} items: private for {audit.private}, tight:"
        f" {audit.tight}"
    )

# %% tags=["remove-cell"]
assert all(table.audit().holds and table.audit().tight for table in oracles)

# %% [markdown]
# ## The rational functions behind a design
#
# `explain` follows a design that was made for one alpha as far as it is optimal. The proof is a set
# of multipliers, rational functions as well, and `verify` checks it all again from scratch.

# %%
found = design(2, Privacy(alpha="9/10"), L0(), ["WH"])
piece = symbolic.explain(found)
print(piece)
piece

# %% tags=["remove-cell"]
assert piece.verify()
assert piece.mechanism.at("9/10") == found.mechanism
assert Fraction(9, 10) in piece.interval
assert str(piece.objective) == "2(4α - 1)/(9α)"

# %% [markdown]
# A false proof is refused: a smaller loss than the true one, or an interval that is too long.

# %%
lies = (
    replace(piece, objective=symbolic.geometric(2).loss(L0())),
    replace(piece, interval=symbolic.AlphaInterval.of(Fraction(2, 5), piece.interval.high)),
)
for lie in lies:
    print(lie.verify().reason)

# %% tags=["remove-cell"]
assert not any(lie.verify() for lie in lies)

# %% [markdown]
# ## From one piece to the next
#
# Section 6.6.3 has no closed form for the least L0 of weakly honest mechanisms. `parametric` covers
# all of (0, 1): up to n / (n + 2) it is GM's, and from there on another rational function. The
# table may change more often than the loss does. Which of several optimal tables is shown is the
# solver's choice; the loss is not.

# %%
honest = {n: symbolic.parametric(n, L0(), ["WH"]) for n in range(2, largest + 1)}
for n, pieces in honest.items():
    for piece in pieces:
        print(f"n = {n}, {piece.interval}: {piece.objective}")

# %% tags=["remove-cell"]
stated = {
    2: ["4α/(3(1 + α))", "2(4α - 1)/(9α)"],
    3: ["3α/(2(1 + α))", "(7α^2 + 8α - 3)/(8α(1 + α))"],
    4: ["8α/(5(1 + α))", "2(11α^2 + α - 2)/(25α^2)"],
}
for n, pieces in honest.items():
    assert all(piece.verify() for piece in pieces)
    assert pieces[0].interval.high == Fraction(n, n + 2)
    assert pieces[0].objective == symbolic.geometric(n).loss(L0())
    formulas = [str(formula) for formula in dict.fromkeys(piece.objective for piece in pieces)]
    assert len(formulas) == 2
    assert n not in stated or formulas == stated[n]

# %% [markdown]
# `design` at single alphas says the same, exactly.

# %% tags=["remove-cell"]
for n, pieces in honest.items():
    for alpha in (Fraction(1, 3), Fraction(7, 10), Fraction(19, 20)):
        formula = next(piece.objective for piece in pieces if alpha in piece.interval)
        assert formula(alpha) == design(n, Privacy(alpha=alpha), L0(), ["WH"]).certificate.objective

# %% [markdown]
# Squared error shows more of it. With four people and no properties, the ends 0 and 4 are never
# answered from alpha = 0.344 on, and from 0.773 on the optimum always answers 2: the end of one
# piece is the root of a polynomial, exactly.

# %%
squared = symbolic.parametric(4, L2())
for piece in squared:
    weights = piece.mechanism.weights
    silent = [i for i, row in enumerate(weights) if all(weight.is_zero() for weight in row)]
    print(f"{piece.interval}: {piece.objective}; never answers {silent or 'nothing: all occur'}")

# %% tags=["remove-cell"]
assert silent == [0, 1, 3, 4]
assert str(squared[-1].objective) == "2"
assert str(piece.interval.low) == "0.773303... (where 5α^4 + 3α^3 + α^2 - α - 3 = 0)"

# %% [markdown]
# ## The optimum as a function of alpha
#
# Left: the least scaled L0 (a blind guess scores 1) of weakly honest mechanisms; a dot is where one
# critical region ends and the next begins. Right: what weak honesty costs beyond GM, and what
# fairness does, by EM. Weak honesty is free up to n / (n + 2), and costs a few per cent at most.
# Fairness costs something at every alpha, but towards 1 both come to the same. All curves are
# rational functions.

# %% tags=["hide-input", "picture"]
grid = [Fraction(k, 200) for k in range(80, 200)]
x = [float(alpha) for alpha in grid]
with style():
    fig = Figure(figsize=(10, 4))
    left, right = fig.subplots(1, 2)
    costs = {}
    for series, n in enumerate((2, 3, 4)):
        own = look(series)
        gm, em = symbolic.geometric(n).loss(L0()), symbolic.explicit_fair(n).loss(L0())
        best = [
            next(piece.objective for piece in honest[n] if alpha in piece.interval)(alpha)
            for alpha in grid
        ]
        left.plot(
            x,
            [float(value * (n + 1) / n) for value in best],
            **own | {"marker": ""},
            label=f"n = {n}, weakly honest",
        )
        change = Fraction(n, n + 2)
        left.plot(
            float(change),
            float(gm(change) * (n + 1) / n),
            own["marker"],
            color=own["color"],
            markersize=8,
        )
        honesty = [100 * (value / gm(alpha) - 1) for value, alpha in zip(best, grid, strict=True)]
        fairness = [100 * (em(alpha) / gm(alpha) - 1) for alpha in grid]
        costs[n] = honesty, fairness
        for line, name, marker in (
            (honesty, "weakly honest", ""),
            (fairness, "fair", own["marker"]),
        ):
            shown = own | {"marker": marker, "markevery": 10, "label": f"n = {n}, {name}"}
            right.plot(x, [float(value) for value in line], **shown)
    left.plot(
        x,
        [float(2 * alpha / (1 + alpha)) for alpha in grid],
        "-",
        color="0.4",
        linewidth=1,
        label="GM, every n",
    )
    left.set(xlabel="alpha (nearer 1 is more private)", ylabel="scaled L0 (eq. 6.1)")
    right.set(xlabel="alpha (nearer 1 is more private)", ylabel="loss beyond GM's, per cent")
    for axes in (left, right):
        axes.legend()
fig

# %% tags=["remove-cell"]
for n, (honesty, fairness) in costs.items():
    free = [alpha <= Fraction(n, n + 2) for alpha in grid]
    assert [value == 0 for value in honesty] == free
    assert max(honesty) < 5
    assert all(value < other for value, other in zip(honesty, fairness, strict=True))
    assert fairness[-1] - honesty[-1] < Fraction(1, 100)

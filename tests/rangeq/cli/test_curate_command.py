"""The command curate: the release that Python makes, and no word more about the table."""

import itertools
import json
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from frequency import Between
from frequency.schema import Categorical, Numeric, Schema, Text
from frequency.schema.column import Column
from mechdesign import ZCDP, ApproximateDP, Ledger, Privacy, plan
from mechdesign.cli import main
from rangeq.central import (
    CentralFlat,
    DistinctValues,
    GroupedSums,
    KeysOfPersons,
    MatrixMechanism,
    NumbersOfRows,
    QuantileRelease,
    Release,
    ReleasedKeys,
    ReleasedQuantiles,
    RowsOfPersons,
    count_cells,
    count_keys,
    for_each_row,
    key_rules,
    load_release,
    load_strategy,
    posterior_optimal,
    workload_optimal,
)
from tests.killing import killed

SCHEMA = Schema(
    [
        Numeric("age", low=0, high=99, whole=True, unit="years", missing="item", outside="clip"),
        Numeric("income", [0, 100, 1000, 10000], missing="skip", outside="clip"),
        Categorical("sex", ["female", "male"], outside="item"),
        Numeric("height", low=50, high=250, bins=20),
        Text("word"),
    ]
)


def people(n, seed=1):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "sex": np.array(["female", "male", "x"])[rng.integers(0, 3, n)],
            "age": pd.array(rng.integers(-2, 104, n), dtype="Int64"),
            "income": rng.uniform(0, 12000, n).round(2),
            "height": rng.uniform(100, 200, n).round(1),
        }
    )
    table.loc[rng.random(n) < 0.1, "age"] = pd.NA
    table.loc[rng.random(n) < 0.1, "income"] = np.nan
    return table


@pytest.fixture
def curate(tmp_path, monkeypatch, capsys):
    """Runs the command in a folder with a schema and a table; returns exit code and output."""
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("people.toml")

    def run(*more, table="people.csv", out="a.release", attributes=("age",), epsilon="1"):
        named = itertools.chain(*(("--attribute", one) for one in attributes))
        given = [table, "--schema", "people.toml", "--out", out, "--epsilon", epsilon]
        code = main(["curate", *map(str, [*given, *named, *more])])
        return code, *capsys.readouterr()

    return run


ALL = ("age", "sex", "income")


def loaded(path: str) -> Any:
    """What is in a file, of any kind."""
    return load_release(path)


@pytest.mark.slow
@pytest.mark.parametrize("attributes", [("age",), ("sex",), ("sex", "age"), ALL])
@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.parquet"])
def test_the_release_is_that_of_python(curate, attributes, name):
    table = people(700)
    getattr(table, "to_parquet" if name.endswith("parquet") else "to_csv")(name, index=False)
    code, _, err = curate("--seed", 7, table=name, attributes=attributes)
    assert (code, "not private" in err) == (0, True)
    schema = SCHEMA.project(attributes)
    task = "curated-ranges" if len(attributes) < 3 else "curated-attributes"
    mechanism = plan(task, schema, epsilon="1").best.protocol
    counts = count_cells(schema, [table])
    assert load_release("a.release") == Release.draw(
        schema, mechanism, counts, np.random.default_rng(7)
    )


@pytest.mark.parametrize("quantiles", [("0.5",), ("0.9", "0.25"), tuple(map(str, range(2)))])
def test_quantiles_are_those_of_python(curate, quantiles):
    table = people(700)
    table.to_csv("people.csv", index=False)
    asked = itertools.chain(*(("--quantile", one) for one in quantiles))
    code, out, _ = curate("--seed", 7, *asked)
    assert code == 0
    schema = SCHEMA.project("age")
    found = plan("curated-quantiles", schema, epsilon="1", q=quantiles).best.protocol
    counts = count_cells(schema, [table])
    expected = ReleasedQuantiles.draw(schema, found, counts, np.random.default_rng(7))
    assert load_release("a.release") == expected
    assert str(expected) in out


@pytest.mark.slow
def test_nothing_is_printed_that_depends_on_the_table(curate):
    """Also of an empty one, and of those whose rows are clipped, left out or neither."""
    printed = set()
    fitting = people(0)
    fitting.loc[0] = ["male", 5, 50.0, 100.0]
    for k, table in enumerate([people(0), people(1), people(3000), fitting]):
        table.to_csv("people.csv", index=False)
        for kind in (["--force"], ["--force", "--quantile", "0.5"]):
            attributes = ALL if kind == ["--force"] else ["age"]
            code, out, err = curate(*kind, attributes=attributes)
            assert code == 0
            assert not err or err.startswith("strategy: "), err  # progress, where that takes long
            shown = out if kind == ["--force"] else out.split("quantile  age")[0]
            printed.add((len(kind), shown))
        assert load_release("a.release") is not None, k
    assert len(printed) == 2
    text = next(out for kind, out in printed if kind == 1)
    assert "rows without income are left out: how many is not said" in text
    assert "values outside of age, income are in the end bins: how many is not said" in text


@pytest.mark.slow
def test_an_empty_table_is_released(curate):
    people(0).to_csv("people.csv", index=False)
    assert curate()[0] == 0
    answer = Release.load("a.release").estimate.answer(Between(None, None))
    assert abs(answer.value) < 6 * answer.variance**0.5
    people(0).to_parquet("people.parquet")
    assert curate("--force", table="people.parquet")[0] == 0


@pytest.mark.slow
def test_another_mechanism_may_be_named(curate):
    people(20).to_csv("people.csv", index=False)
    code, out, _ = curate("--mechanism", "flat")
    assert (code, "* strategy: error" in out) == (0, True)
    assert "mechanism: CentralFlat(shape=(101,), epsilon=Fraction(1, 1))" in out
    assert isinstance(loaded("a.release").mechanism, CentralFlat)
    quantile = ("--quantile", 0.5, "--force", "--mechanism")
    assert curate(*quantile, "exponential")[0] == 0
    assert isinstance(loaded("a.release").mechanism, QuantileRelease)
    for wrong, message in (("best", "here there are"), ("wavelet", "for ordered attributes only")):
        code, _, err = curate("--mechanism", wrong, out="b.release", attributes=["age", "sex"])
        assert (code, message in err) == (2, True)


@pytest.fixture
def strategic(curate):
    """The command with options instead of an epsilon."""

    def run(*more, attributes=("age",), out="a.release"):
        named = itertools.chain(*(("--attribute", one) for one in attributes))
        given = ["people.csv", "--schema", "people.toml", "--out", out]
        return main(["curate", *map(str, [*given, *named, *more])])

    return run


OF_PROMISES = pytest.mark.parametrize(
    ("promise", "options"),
    [
        (ZCDP("0.1"), ("--rho", "0.1")),
        (ApproximateDP("1", "1e-9"), ("--epsilon", "1", "--delta", "1e-9")),
        (Privacy.from_epsilon("1"), ("--epsilon", "1")),
    ],
    ids=repr,
)


@OF_PROMISES
def test_what_suits_the_posterior_is_that_of_python(strategic, promise, options, capsys):
    table = people(300)
    table.to_csv("people.csv", index=False)
    assert strategic(*options, "--users", 250, "--seed", 3, attributes=ALL) == 0
    schema = SCHEMA.project(ALL)
    mechanism = posterior_optimal(schema.sizes, promise, 250)
    expected = Release.draw(
        schema, mechanism, count_cells(schema, [table]), np.random.default_rng(3)
    )
    assert load_release("a.release") == expected
    capsys.readouterr()
    assert main(["query", "a.release", "--where", "age 18: and sex female", "--fitted"]) == 0
    out, err = capsys.readouterr()
    fitted = expected.estimate.fitted().answer({"age": Between(18, None), "sex": "female"})
    assert out.splitlines()[1].startswith(f"age 18: and sex female,{float(fitted.value)!r}"[:40])
    assert "hold on average over questions" in err


def test_many_attributes_are_released_as_marginals(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"q{k}" for k in range(10)]
    Schema([Numeric(name, low=0, high=3, whole=True) for name in names]).save("many.toml")
    rows = np.random.default_rng(4).integers(0, 4, (200, 10))
    pd.DataFrame(rows, columns=names).to_csv("many.csv", index=False)
    given = ["curate", "many.csv", "--schema", "many.toml", "--out", "many.release", "--force"]
    given += itertools.chain(*(("--attribute", name) for name in names))
    marginals = ["--strategy", "best", "--workload", "3-way marginals"]
    users = ["--users", "200"]
    adaptive = ["--rho", "1", *users, "--adaptive"]
    for more in (["--epsilon", "1", *users], ["--rho", "1", *marginals], adaptive):
        assert main([*given, *more]) == 0
        capsys.readouterr()
        assert main(["query", "many.release", "--where", "q1 2 and q7 0:1"]) == 0
        low, high = map(float, capsys.readouterr().out.splitlines()[1].split(",")[3:5])
        truth = np.sum((rows[:, 1] == 2) & (rows[:, 7] <= 1))
        assert low - (high - low) < truth < high + (high - low)
    for wrong, said in (
        (["--epsilon", "1"], "--users N, or --strategy best"),
        (["--epsilon", "1", *marginals], "at most 8 attributes"),
        (["--rho", "1", "--strategy", "best", "--workload", "ranges"], "at most 8 attributes"),
        (["--epsilon", "1", "--users", "0"], "users must be"),
        (["--epsilon", "1", "--users", "9", "--workload", "cells"], "leave out --workload"),
        (["--epsilon", "1", "--users", "9", "--quantile", "0.5"], "leave out --quantile"),
        (["--epsilon", "1", "--users", "9", "--adaptive"], "has Gaussian noise"),
        (["--rho", "1", *marginals, "--adaptive"], "--adaptive is for --users"),
    ):
        assert main([*given, *wrong]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("rows", [1, 3])
def test_quantiles_of_rows_of_persons_are_those_of_python(curate, rows):
    table = people(700).assign(who=np.arange(700) // 5)
    table.to_csv("people.csv", index=False)
    given = ["--quantile", "0.5", "--person", "who", "--max-rows", rows]
    code, out, _ = curate("--seed", 7, *given)
    schema, rng = SCHEMA.project("age"), np.random.default_rng(7)
    chosen = RowsOfPersons(rows, rng)
    chosen.add(Column("who", table["who"]), schema.encode(table))
    counts = count_cells(schema, chosen.kept())
    mechanism = plan("curated-quantiles", schema, epsilon=Fraction(1, rows), q=("0.5",)).best
    expected = ReleasedQuantiles.draw(schema, mechanism.protocol, counts, rng, rows)
    assert (code, load_release("a.release")) == (0, expected)
    assert f"epsilon 1 for each person{', with up to 3 rows' * (rows > 1)}" in out
    assert counts.sum() == 140 * rows


@OF_PROMISES
def test_rows_of_persons_count_and_the_promise_is_for_each(strategic, promise, options, capsys):
    table = people(600)
    table["who"] = np.arange(600) % 100
    table.loc[::7, "who"] = np.nan
    table.to_csv("people.csv", index=False)
    workload = ["--strategy", "best", "--workload", "cells"]
    assert strategic(*options, *workload, "--person", "who", "--max-rows", 2) == 0
    out = capsys.readouterr().out
    assert "for each person, with up to 2 rows" in out
    assert "rows without who" in out
    release: Any = load_release("a.release")
    assert (release.rows, release.mechanism.promise) == (2, for_each_row(promise, 2))
    counted = table.dropna(subset="who").groupby("who").size().clip(upper=2).sum()
    told = release.estimate.answer({"age": Between(0, 120)})
    assert abs(told.value - counted) < 6 * told.variance**0.5
    for wrong, said in (
        (["--max-rows", 2], "--max-rows is for --person"),
        (["--person", "who", "--max-rows", 0], "--max-rows"),
        (["--person", "nobody"], "nobody"),
    ):
        assert strategic(*options, *workload, *wrong, "--force") == 2
        assert said in capsys.readouterr().err


@pytest.mark.slow
@OF_PROMISES
def test_the_best_strategy_is_that_of_python(strategic, promise, options, capsys):
    table = people(300)
    table.to_csv("people.csv", index=False)
    assert strategic(*options, "--strategy", "best", "--workload", "prefixes", "--seed", 3) == 0
    out = capsys.readouterr().out
    assert "% above the least" in out
    schema = SCHEMA.project(["age"])
    design = workload_optimal("prefixes", 101, promise)
    expected = Release.draw(
        schema, design.mechanism, count_cells(schema, [table]), np.random.default_rng(3)
    )
    assert load_release("a.release") == expected


def test_a_strategy_is_saved_and_used_again(strategic, capsys):
    people(300).to_csv("people.csv", index=False)
    asked = ("--attribute", "sex", "--strategy", "best", "--workload", "marginals")
    assert strategic("--rho", 1, *asked, "--save-strategy", "s.npz") == 0
    strategy = load_strategy("s.npz").strategy
    first = loaded("a.release").mechanism
    assert first == MatrixMechanism(strategy, ZCDP(1))
    again = ("--attribute", "sex", "--strategy", "s.npz", "--epsilon", 1, "--delta", "1e-6")
    assert strategic(*again, out="b.release") == 0
    assert loaded("b.release").mechanism == MatrixMechanism(strategy, ApproximateDP(1, "1e-6"))
    assert "epsilon 1, delta 1e-06 for each row" in capsys.readouterr().out
    # Of other attributes it is no strategy, which costs nothing
    budget = Ledger.open("budget.json", epsilon="9", delta="1e-6")
    other = ("--strategy", "s.npz", "--rho", "0.1", "--ledger", "budget.json")
    assert strategic(*other, out="c.release") == 2
    assert "s.npz: a strategy for (101, 3) cells" in capsys.readouterr().err
    assert Ledger.open("budget.json").entries == budget.entries == ()


@pytest.mark.slow
def test_a_delta_ranks_gaussian_noise_with_the_others(strategic, capsys):
    people(20).to_csv("people.csv", index=False)
    promise = ("--epsilon", "1", "--delta", "1e-6")
    assert strategic(*promise) == 0
    out = capsys.readouterr().out
    assert "from a curator, delta = 1e-06, epsilon = 1" in out
    assert "gaussian" in out
    assert strategic(*promise, "--mechanism", "gaussian", out="b.release") == 0
    mechanism = loaded("b.release").mechanism
    assert isinstance(mechanism, MatrixMechanism)
    assert mechanism.promise == ApproximateDP("1", "1e-6")


def test_gaussian_noise_is_spent_from_a_ledger_with_a_delta(strategic, capsys):
    people(20).to_csv("people.csv", index=False)
    budget = Ledger.open("budget.json", epsilon="1", delta="1e-6")
    asked = ("--strategy", "best", "--ledger", "budget.json")
    assert strategic("--epsilon", "1", "--delta", "1e-6", *asked) == 0
    assert 0 <= budget.left() < 1e-6
    assert strategic("--rho", "0.1", *asked, out="b.release") == 1
    assert "remains" in capsys.readouterr().err
    # So little noise is best on small integers, and paid for on large ones
    large = Ledger.open("large.json", epsilon="60", delta="1e-6")
    words = ("--strategy", "best", "--workload", "cells", "--ledger", "large.json")
    assert strategic("--rho", "8", *words, out="c.release") == 0
    assert 0 < large.left() < 50
    pure = Ledger.open("pure.json", epsilon="1")
    refused = ("--strategy", "best", "--ledger", "pure.json")
    assert strategic("--rho", "0.1", *refused, out="b.release") == 2
    assert "Gaussian noise, which keeps no epsilon" in capsys.readouterr().err
    assert pure.entries == ()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rho", "1"), "--rho takes --strategy"),
        (("--rho", "0", "--strategy", "best"), "rho must be"),
        (("--rho", "1", "--delta", "1e-6", "--strategy", "best"), "--delta is for --epsilon"),
        (("--rho", "1", "--epsilon", "1", "--strategy", "best"), "not allowed with"),
        (("--strategy", "best"), "one of the arguments --epsilon --rho is required"),
        (("--epsilon", "1", "--strategy", "best", "--quantile", "0.5"), "instead of --quantile"),
        (("--epsilon", "1", "--strategy", "best", "--mechanism", "flat"), "instead of --quantile"),
        (("--epsilon", "1", "--workload", "cells"), "for --strategy best"),
        (("--epsilon", "1", "--save-strategy", "s.npz"), "for --strategy best"),
        (("--rho", "1", "--strategy", "best", "--workload", "rings"), "got 'rings'"),
        (("--rho", "1", "--strategy", "best", "--workload", "cells,cells"), "2 names"),
        (("--rho", "1", "--strategy", "none.npz"), "none.npz"),
        (("--rho", "1", "--strategy", "people.toml"), "no strategy"),
        (("--epsilon", "1", "--delta", "1e-6", "--quantile", "0.5"), "leave out --delta"),
        (("--epsilon", "1", "--delta", "2"), "delta"),
        (("--rho", "1", "--strategy", "best", "--save-strategy", "a.txt"), ".npz"),
    ],
)
def test_wrong_promises_and_strategies(strategic, options, message, capsys, tmp_path):
    people(20).to_csv("people.csv", index=False)
    before = sorted(tmp_path.iterdir())
    try:
        code = strategic(*options)
    except SystemExit as stop:
        code = stop.code
    assert code in (1, 2)
    assert message in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_the_ledger_is_spent_from_once_before_anything_is_drawn(curate, tmp_path):
    people(20).to_csv("people.csv", index=False)
    budget = Ledger.open("budget.json", epsilon="1.5")
    assert curate("--ledger", "budget.json", epsilon="0.9")[0] == 0
    assert [(entry.what, str(entry.epsilon)) for entry in budget.entries] == [("a.release", "9/10")]
    before = (tmp_path / "a.release").read_bytes()
    code, _, err = curate("--ledger", "budget.json", "--force", epsilon="0.1")
    assert (code, "'a.release' is spent already" in err) == (2, True)
    # Too much is refused before the table is looked at
    code, _, err = curate("--ledger", "budget.json", table="none.csv", out="b.release")
    assert (code, "0.6 that remains" in err) == (1, True)
    assert len(budget.entries) == 1
    assert (tmp_path / "a.release").read_bytes() == before
    assert not (tmp_path / "b.release").exists()
    code, _, err = curate("--ledger", "none.json", out="b.release")
    assert (code, "none.json" in err) == (2, True)


@pytest.mark.parametrize(
    ("row", "message"),
    [("male,30,5,x", "line 2"), ("male,30,5,10", "line 2"), ("male,30,5", "line 2")],
)
def test_a_bad_table_costs_nothing(curate, row, message, tmp_path):
    (tmp_path / "people.csv").write_text(f"sex,age,income,height\n{row}\n")
    budget = Ledger.open("budget.json", epsilon="1")
    code, _, err = curate("--ledger", "budget.json", attributes=["height"])
    assert (code, message in err, err.count("\n")) == (2, True, 1), err
    assert budget.spent == 0
    assert not (tmp_path / "a.release").exists()


@pytest.mark.parametrize("more", [(), ("--mechanism", "flat"), ("--strategy", "best")])
@pytest.mark.parametrize(
    ("table", "message"),
    [(None, "people.csv"), ("size\n1\n", "no column 'height'"), ("height\ntall\n", "line 2")],
)
def test_a_bad_table_is_refused_before_a_mechanism_is_chosen(
    curate, more, table, message, tmp_path, monkeypatch
):
    """Choosing takes half a minute for three attributes."""
    for slow in ("plan", "workload_optimal"):
        monkeypatch.setattr(f"rangeq.cli.curate_command.{slow}", None)
    if table is not None:
        (tmp_path / "people.csv").write_text(table)
    code, out, err = curate(*more, attributes=["height"])
    assert (code, message in err, err.count("\n"), out) == (2, True, 1, "")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"attributes": ["size"]}, "no attribute 'size'"),
        ({"attributes": ["word"]}, "takes --delta"),
        ({"epsilon": "0"}, "epsilon must be above 0"),
        ({"epsilon": "much"}, "epsilon must be a finite rational number"),
        ({"epsilon": "1e-30"}, "noise would drown everything"),
        ({"table": "none.csv"}, "none.csv"),
        ({"table": "people.toml"}, "must end in .csv"),
        ({"out": "a.json"}, "must end in .release"),
        ({"out": "none/a.release"}, "none is not a directory"),
        ({"out": "there.release"}, "there.release exists; use --force"),
        ({"quantile": "2"}, "numbers from 0 to 1"),
        ({"quantile": "half"}, "'half'"),
        ({"quantile": "0.5", "attributes": ["sex"]}, "one ordered attribute"),
        ({"quantile": "0.5", "attributes": ["age", "height"]}, "one ordered attribute"),
    ],
)
def test_wrong_requests(curate, more, message, tmp_path):
    people(20).to_csv("people.csv", index=False)
    (tmp_path / "there.release").write_text("precious")
    given = [] if "quantile" not in more else ["--quantile", more["quantile"]]
    found = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = curate(
        *given, **{key: value for key, value in more.items() if key != "quantile"}
    )
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert "wrote" not in out
    assert sorted(path.name for path in tmp_path.iterdir()) == found
    assert (tmp_path / "there.release").read_text() == "precious"


def test_the_help_shows_the_chain(capsys):
    with pytest.raises(SystemExit):
        main(["curate", "--help"])
    out = capsys.readouterr().out
    assert "mechdesign query age.release" in out
    assert "no number of rows is said" in out


@pytest.mark.parametrize("quantile", [[], ["--quantile", "0.5"]])
@pytest.mark.parametrize("seed", [[], ["--seed", "5"]])
def test_what_was_curated_with_a_seed_says_so_and_so_do_its_answers(curate, capsys, quantile, seed):
    people(50).to_csv("people.csv", index=False)
    code, out, _ = curate(*quantile, *seed)
    assert code == 0
    assert ("SEEDED and therefore not private" in out) == bool(seed)
    for form in ([], ["--table"], ["--json"]):
        assert main(["query", "a.release", *form]) == 0
        output = capsys.readouterr()
        assert ("made with a seed" in output.out + output.err) == bool(seed)


# ------------------------------------------------------------------------------------------------
# Sums and means.


@pytest.fixture
def summed(curate, capsys):
    """Runs curate with sums and means: returns exit code and output."""

    def run(*more, out="a.release", epsilon="1"):
        return curate(*more, out=out, attributes=(), epsilon=epsilon)

    return run


@pytest.mark.parametrize(
    ("more", "names", "numbers", "squares"),
    [
        (["--mean", "height"], ["height"], 1, False),
        (["--mean", "age", "--sum", "age", "--by", "sex"], ["sex", "age"], 1, False),
        (
            ["--variance", "age", "--sum", "income", "--by", "sex", "--by", "height"],
            ["sex", "height", "income", "age"],
            2,
            True,
        ),
    ],
)
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_sums_are_those_of_python(summed, more, names, numbers, squares, delta, capsys):
    table = people(700)
    table.to_csv("people.csv", index=False)
    privacy = [] if delta is None else ["--delta", delta]
    code, out, _ = summed("--seed", 7, *more, *privacy)
    sums = GroupedSums(SCHEMA.project(names), numbers, squares)
    # Noise without a delta is less, of so few numbers
    mechanism = sums.mechanism(Privacy.from_epsilon(1))
    counts = sums.count([table], mechanism)
    expected = Release.draw(sums.schema, mechanism, counts, np.random.default_rng(7), sums=sums)
    assert (code, load_release("a.release")) == (0, expected)
    assert sums.statement(mechanism) in out
    assert main(["query", "a.release", "--table"]) == 0
    printed = capsys.readouterr().out
    assert all(f"mean {name}" in printed for name in sums.added)
    assert "*" not in printed  # nothing is interpolated


def test_means_of_groups_are_told_and_drawn(summed, capsys, tmp_path):
    table = people(3000)
    table.to_csv("people.csv", index=False)
    assert summed("--variance", "age", "--by", "sex", "--person", "height", epsilon="9")[0] == 0
    for question in ("--mean", "--sum", "--variance"):
        asked = ["query", "a.release", question, "age", "--by", "sex", "--json", "--plot", "a.svg"]
        assert main([*asked, "--force"]) == 0
        told = json.loads(capsys.readouterr().out)["answers"]
        assert [row["question"] for row in told] == [
            f"{question[2:]} age where sex {label}" for label in ("female", "male", "outside")
        ]
        assert all(row["low"] <= row["value"] <= row["high"] for row in told)
        assert told[0]["unit"] == ("(years)^2" if question == "--variance" else "years")
        assert f"{question[2:]} age by sex" in (tmp_path / "a.svg").read_text()
    assert main(["query", "a.release", "--plot", "b.svg"]) == 0
    assert "mean age by sex" in (tmp_path / "b.svg").read_text()


def test_sums_are_spent_from_a_ledger_once(summed, tmp_path):
    people(50).to_csv("people.csv", index=False)
    budget = Ledger.open("all.json", epsilon="3")
    assert summed("--mean", "age", "--ledger", "all.json")[0] == 0
    assert summed("--mean", "age", "--ledger", "all.json", out="b.release")[0] == 0
    assert [str(entry.epsilon) for entry in budget.entries] == ["1", "1"]
    code, _, err = summed("--mean", "age", "--ledger", "all.json", out="c.release", epsilon="2")
    assert (code, len(budget.entries), err.count("\n")) == (1, 2, 1)
    assert not (tmp_path / "c.release").exists()


@pytest.mark.parametrize(
    ("more", "epsilon", "message"),
    [
        ([], "1", "--attribute, or --mean"),
        (["--by", "sex"], "1", "--by is for --mean"),
        (["--mean", "age", "--attribute", "sex"], "1", "leave out --attribute"),
        (["--mean", "age", "--quantile", "0.5"], "1", "leave out --quantile"),
        (["--mean", "age", "--strategy", "best"], "1", "leave out --strategy"),
        (["--mean", "age", "--users", "9"], "1", "leave out --users"),
        (["--mean", "age", "--adaptive"], "1", "leave out --adaptive"),
        (["--mean", "age", "--save-strategy", "s.npz"], "1", "leave out --save-strategy"),
        (["--mean", "age", "--by", "age"], "1", "say it in one of them"),
        (["--mean", "sex"], "1", "sex is not numeric"),
        (["--mean", "size"], "1", "no attribute 'size'"),
        (["--mean", "age", "--by", "word"], "1", "whose items can be listed"),
        (["--mean", "age"], "1e-9", "epsilon"),
        (["--mean", "age", "--max-rows", "2"], "1", "--max-rows is for --person"),
    ],
)
def test_wrong_sums(summed, more, epsilon, message, tmp_path):
    people(20).to_csv("people.csv", index=False)
    found = sorted(path.name for path in tmp_path.iterdir())
    code, out, err = summed(*more, epsilon=epsilon)
    assert (code, err.count("\n"), out) == (2, 1, "")
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == found


def test_nothing_that_is_printed_about_sums_depends_on_the_table(summed):
    printed = set()
    for table in (people(0), people(1), people(300)):
        table.to_csv("people.csv", index=False)
        code, out, err = summed("--mean", "income", "--by", "age", "--force")
        assert (code, err) == (0, "")
        printed.add(out)
    assert len(printed) == 1


@pytest.mark.parametrize(
    "asked",
    [
        ["--attribute", "age", "--attribute", "sex"],
        ["--mean", "age", "--by", "sex"],
        ["--attribute", "word", "--delta", "1e-3"],
        ["--users", "100", *(f"--attribute={name}" for name in ALL)],
    ],
)
def test_processes_count_the_same(curate, asked):
    table = people(600).assign(word="often")
    table.to_csv("people.csv", index=False)
    for workers in (1, 2):
        given = [*asked, "--seed", 3, "--workers", workers]
        assert curate(*given, out=f"{workers}.release", attributes=())[0] == 0
    assert load_release("1.release") == load_release("2.release")
    table[:0].to_csv("people.csv", index=False)
    assert curate(*asked, "--workers", 2, "--force", attributes=())[0] == 0
    given = [*asked, "--workers", 2, "--person", "height"]
    code, _, err = curate(*given, out="b.release", attributes=())
    assert (code, "--workers is not for --person" in err) == (2, True)


# ------------------------------------------------------------------------------------------------
# Limits, bounds and labels that were released before; and different values.


def visits(n=3000, seed=2):
    rng = np.random.default_rng(seed)
    table = people(n).assign(who=rng.zipf(1.6, n) % 400, word=[f"w{k}" for k in rng.zipf(2, n)])
    table["word"] = table["word"].str.slice(0, 8)
    table["age"] = table["age"].fillna(30).clip(0, 99)
    return table


def test_rows_of_a_person_are_released_and_taken_as_a_limit(curate):
    table = visits()
    table.to_csv("people.csv", index=False)
    asked = ["--person", "who", "--rows-per-person", 60, "--quantile", "0.9", "--seed", 3]
    code, out, _ = curate(*asked, out="rows.release", attributes=())
    assert (code, "epsilon 1 for each person, SEEDED" in out) == (0, True)
    numbers = NumbersOfRows(60)
    numbers.add(Column("who", table["who"]))
    mechanism = plan("curated-quantiles", numbers.schema, epsilon=1, q=("0.9",)).best.protocol
    rng = np.random.default_rng(3)
    expected = ReleasedQuantiles.draw(numbers.schema, mechanism, numbers.counts(), rng, 1)
    assert load_release("rows.release") == expected
    most = int(expected.ends[1][0])
    assert curate("--person", "who", "--max-rows", "rows.release")[0] == 0
    assert loaded("a.release").rows == most


@pytest.mark.parametrize(
    "given",
    [
        ["--attribute", "age"],
        ["--mean", "income", "--by", "sex"],
        ["--attribute", "age", "--quantile", "0.5"],
        ["--count-distinct", "age"],
        ["--person", "who", "--rows-per-person", "9", "--quantile", "0.9"],
        ["--attribute", "age", "--strategy", "best", "--save-strategy", "best.npz"],
    ],
)
def test_a_dry_run_draws_writes_and_spends_nothing(curate, tmp_path, capsys, given):
    people(200).assign(who=np.arange(200) % 50).to_csv("people.csv", index=False)
    assert main(["ledger", "ledger.json", "--epsilon", "2"]) == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    given = [*given, "--ledger", "ledger.json"]
    code, out, err = curate(*given, "--dry-run", attributes=())
    assert (code, "dry run: nothing was drawn, written or spent" in out) == (0, True), err
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert curate(*given, attributes=())[0] == 0


@pytest.mark.parametrize("rows", [None, 1, 3])
def test_answers_say_whether_they_are_of_rows_or_of_people(curate, capsys, rows):
    people(600).assign(who=np.arange(600) % 100).to_csv("people.csv", index=False)
    given = [] if rows is None else ["--person", "who", "--max-rows", rows]
    assert curate(*given)[0] == 0
    assert main(["query", "a.release", "--where", "age 30:", "--table"]) == 0
    head, _, row, *notes = capsys.readouterr().out.splitlines()
    unit = "rows" if rows == 3 else "users"
    assert head.startswith("about ")
    assert head.endswith(f" {unit}")
    assert row.endswith(f" {unit}")
    assert ("of each person up to 3 rows. Where people have more" in " ".join(notes)) == (rows == 3)
    assert ("Of each person one row is counted" in " ".join(notes)) == (rows == 1)
    assert main(["query", "a.release", "--where", "age 30:", "--shares", "--table"]) == 0
    assert f"fraction of the {unit}\n" in capsys.readouterr().out
    estimate = loaded("a.release").estimate
    assert unit in estimate.columns(["age"])
    assert estimate.plot(["age"]).axes[0].get_ylabel().startswith(unit)


@pytest.mark.parametrize("promise", [["--rho", "0.5"], ["--delta", "1e-6"], []])
def test_groups_of_a_person_are_limited(curate, promise):
    table = visits()
    table.to_csv("people.csv", index=False)
    schema = SCHEMA.project(["sex", "age"])
    sums = GroupedSums(schema)
    given = [*promise, "--person", "who", "--max-groups", 2, "--max-per-group", 3, "--seed", 5]
    epsilon = [] if promise[:1] == ["--rho"] else ["--epsilon", "1"]

    def run(*more):
        table = ["curate", "people.csv", "--schema", "people.toml"]
        assert main([*table, *map(str, [*epsilon, *more])]) == 0

    run("--mean", "age", "--by", "sex", *given, "--out", "a.release")
    rng = np.random.default_rng(5)
    rows = RowsOfPersons(6, rng, groups=2, by=1)
    rows.add(Column("who", table["who"]), sums.encode(table))
    found = loaded("a.release")
    expected = Release.draw(
        schema,
        found.mechanism,
        sums.count(rows.kept(), found.mechanism),
        rng,
        rows=6,
        groups=2,
        sums=sums,
        delta=found.delta,
    )
    assert found == expected
    said = found.promised
    assert said.endswith("for each person, with up to 3 rows in each of 2 groups")
    assert said.startswith("rho 0.5" if "--rho" in promise else "epsilon ")
    run("--attribute", "sex", *given, "--out", "b.release")
    cells = loaded("b.release")
    assert (cells.rows, cells.groups) == (6, 2)
    if "--rho" in promise:  # as much noise as for the root of 2 times 3^2
        assert cells.mechanism.workload_variance("cells") == pytest.approx(18, rel=1e-3)


def test_bounds_and_keys_of_other_releases_make_sums(curate, capsys):
    table = visits()
    table.to_csv("people.csv", index=False)
    word, income = SCHEMA.project("word"), SCHEMA.project("income")
    quantiles = ["--quantile", "0.01", "--quantile", "0.9"]
    assert curate(*quantiles, out="bounds.release", attributes=["income"])[0] == 0
    assert curate("--delta", "1e-3", out="keys.release", attributes=["word"])[0] == 0
    keys, bounds = loaded("keys.release"), loaded("bounds.release")
    assert (keys.schema, bounds.schema) == (word, income)
    given = ["--mean", "income", "--by", "word", "--keys", "keys.release"]
    given += ["--bounds", "bounds.release"]
    assert curate(*given, "--force", attributes=())[0] == 0
    found = loaded("a.release")
    assert found.schema.attributes == (keys.categorical, bounds.bounds)
    low, high = (int(end) for end in found.schema["income"].bounds)
    assert [low, high] == [bounds.ends[0].min(), bounds.ends[1].max()]
    assert main(["query", "a.release", "--mean", "income", "--by", "word"]) == 0
    assert f"where word {keys.labels[0]}" in capsys.readouterr().out


def test_different_values_are_those_of_python(curate, capsys):
    table = visits()
    table.to_csv("people.csv", index=False)
    asked = ["--count-distinct", "word", "--by", "sex", "--person", "who", "--max-rows", 2]
    code, out, _ = curate(*asked, "--seed", 4, attributes=())
    rng = np.random.default_rng(4)
    values = DistinctValues(SCHEMA.project(["sex", "word"]), 2, rng)
    values.add(table, Column("who", table["who"]))
    mechanism = CentralFlat(values.schema.sizes, Fraction(1, 2))
    told = {"rows": 2, "measure": "values"}
    expected = Release.draw(values.schema, mechanism, values.counts(), rng, **told)
    assert (code, load_release("a.release")) == (0, expected)
    assert "epsilon 1 for each person, with up to 2 values" in out
    assert main(["query", "a.release", "--table"]) == 0
    told = capsys.readouterr().out
    assert "number of users was not released" in told
    assert "sex male and word different values" in told
    ledger = Ledger.open("budget.json", epsilon="1.5")
    spent = ["--count-distinct", "word", "--ledger", "budget.json"]
    assert curate(*spent, "--force", attributes=())[0] == 0
    assert [str(entry.epsilon) for entry in ledger.entries] == ["1"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--count-distinct", "income"], "bins"),
        (["--count-distinct", "word", "--mean", "age"], "leave out --mean"),
        (["--count-distinct", "word", "--delta", "1e-6"], "takes --epsilon alone"),
        (["--count-distinct", "word", "--workers", "2"], "--workers is not for"),
        (["--rows-per-person", "9"], "takes --person and --quantile"),
        (["--rows-per-person", "9", "--attribute", "age"], "leave out --attribute"),
        (["--rows-per-person", "0", "--person", "who", "--quantile", "0.5"], "rows of a person"),
        (["--attribute", "age", "--max-groups", "2"], "--max-groups is for --person"),
        (["--attribute", "age", "--person", "who", "--max-per-group", "2"], "for --max-groups"),
        (
            ["--attribute", "age", "--person", "who", "--max-rows", "2", "--max-groups", "2"],
            "instead of --max-rows",
        ),
        (["--mean", "age", "--person", "who", "--max-groups", "2"], "is for --by"),
        (
            ["--attribute", "age", "--person", "who", "--max-groups", "2", "--quantile", "0.5"],
            "leave out --quantile",
        ),
        (["--attribute", "age", "--bounds", "people.csv"], "--bounds is for --mean"),
        (["--mean", "age", "--bounds", "people.csv"], "people.csv"),
        (["--mean", "age", "--keys", "no.release"], "no.release"),
        (["--mean", "income", "--bounds", "age.release"], "is of another age"),
        (["--attribute", "age", "--person", "who", "--max-rows", "age.release"], "no release of"),
    ],
)
def test_wrong_limits_and_releases(curate, more, message, tmp_path):
    visits(200).to_csv("people.csv", index=False)
    age = Schema([Numeric("age", low=0, high=9, whole=True)])
    ReleasedQuantiles(age, QuantileRelease(10, ("0.5",), 1), [3]).save("age.release")
    found = sorted(path.name for path in tmp_path.iterdir())
    code, _, err = curate(*more, attributes=())
    refused = 1 if message == "people.csv" else 2  # a file that is not what it should be
    assert (code, message in err) == (refused, True), err
    assert sorted(path.name for path in tmp_path.iterdir()) == found


# ------------------------------------------------------------------------------------------------
# Keys that nobody listed.


def towns(n, seed=1):
    rng = np.random.default_rng(seed)
    names = [f"t{k}" for k in rng.zipf(1.5, n).tolist()] if n else []
    return pd.DataFrame({"who": rng.integers(0, max(n // 3, 1), n), "word": names})


@pytest.mark.parametrize(
    ("more", "rows"),
    [([], 0), (["--person", "who"], 1), (["--person", "who", "--max-rows", "4"], 4)],
)
@pytest.mark.parametrize("name", [None, "optimal", "gaussian"])
def test_keys_are_those_of_python(curate, more, rows, name, capsys):
    table = towns(2000)
    table.to_csv("people.csv", index=False)
    schema = SCHEMA.project("word")
    chosen = [] if name is None else ["--mechanism", name]
    code, out, _ = curate("--seed", 7, "--delta", "1e-5", *more, *chosen, attributes=["word"])
    rules = {rule.kind: rule for rule in key_rules(1, "1e-5", max(rows, 1))}
    rule = next(iter(rules.values())) if name is None else rules[name]
    rng = np.random.default_rng(7)
    if rows:
        keys = KeysOfPersons(schema, rows, rng)
        keys.add(Column("who", table["who"]), table)
        counts = keys.counts()
    else:
        counts = count_keys(schema, [table])
    expected = ReleasedKeys.draw(schema, rule, counts, rng, persons=bool(rows))
    assert (code, load_release("a.release")) == (0, expected)
    assert all(str(each) in out for each in rules.values())
    assert main(["query", "a.release", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["question"] for row in told["answers"]] == [
        f"word {label}" for label in expected.labels
    ]
    best = told["answers"][0]
    assert best["low"] <= counts[expected.labels[0]] <= best["high"]


def test_keys_are_asked_for_and_drawn(curate, capsys):
    towns(2000).to_csv("people.csv", index=False)
    assert curate("--delta", "1e-5", attributes=["word"])[0] == 0
    assert main(["query", "a.release", "--where", "t1", "--plot", "k.svg"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("t1,")
    for asked in (["--where", "t99999"], ["--mean", "word"], ["--quantile", "0.5"]):
        assert main(["query", "a.release", *asked]) == 2
    assert main(["sample", "a.release", "--rows", "5", "--out", "s.csv"]) == 2


def test_keys_cost_epsilon_and_delta(curate, tmp_path):
    towns(300).to_csv("people.csv", index=False)
    budget = Ledger.open("budget.json", epsilon="1.5", delta="1e-4")
    given = ["--delta", "1e-5", "--ledger", "budget.json"]
    assert curate(*given, attributes=["word"])[0] == 0
    assert 0.9 < budget.spent <= 1
    code, _, err = curate(*given, attributes=["word"], out="b.release")
    assert (code, err.count("\n")) == (1, 1)
    assert not (tmp_path / "b.release").exists()
    Ledger.open("pure.json", epsilon="1.5")
    code, _, err = curate(
        "--delta", "1e-5", "--ledger", "pure.json", attributes=["word"], out="b.release"
    )
    assert (code, "no epsilon with a delta of 0" in err) == (2, True)
    assert not (tmp_path / "b.release").exists()


@pytest.mark.parametrize(
    ("more", "attributes", "message"),
    [
        ([], ["word"], "takes --delta"),
        (["--rho", "1"], ["word"], "not --rho"),
        (["--delta", "1e-6"], ["word", "sex"], "one attribute of the kind text"),
        (["--delta", "1e-6", "--mechanism", "tree"], ["word"], "here there are optimal, gaussian"),
        (["--delta", "1e-6", "--quantile", "0.5"], ["word"], "leave out --quantile"),
        (["--delta", "1e-6", "--strategy", "best"], ["word"], "leave out --strategy"),
        (["--delta", "1e-6", "--users", "9"], ["word"], "leave out --users"),
        (["--delta", "2"], ["word"], "delta"),
        (["--delta", "1e-6", "--max-rows", "2"], ["word"], "--max-rows is for --person"),
        (["--delta", "1e-6", "--person", "whose"], ["word"], "whose"),
    ],
)
def test_wrong_keys(curate, more, attributes, message, tmp_path, capsys):
    towns(50).to_csv("people.csv", index=False)
    found = sorted(path.name for path in tmp_path.iterdir())
    if "--rho" in more:
        given = ["people.csv", "--schema", "people.toml", "--out", "a.release", *more]
        code = main(["curate", *given, "--attribute", "word"])
        err = capsys.readouterr().err
    else:
        code, _, err = curate(*more, attributes=attributes)
    assert (code, err.count("\n")) == (2, 1)
    assert message in err
    assert sorted(path.name for path in tmp_path.iterdir()) == found


def test_a_release_without_keys_says_so(curate, capsys):
    printed = set()
    for table in (towns(0), towns(3)):
        table.to_csv("people.csv", index=False)
        code, out, err = curate("--delta", "1e-9", "--force", attributes=["word"])
        assert (code, err) == (0, "")
        printed.add(out)
        assert load_release("a.release").labels == ()  # type: ignore[union-attr]
        assert main(["query", "a.release"]) == 2
        assert "no key has enough users" in capsys.readouterr().err
    assert len(printed) == 1


@pytest.mark.parametrize(
    "asked",
    [
        ["--attribute", "age"],
        ["--attribute", "age", "--quantile", "0.5"],
        ["--mean", "height", "--by", "sex"],
        ["--attribute", "word", "--delta", "1e-3"],
    ],
)
def test_wherever_it_is_killed_what_is_released_is_spent_and_no_more(tmp_path, asked):
    """Of each kind of release: before each change of a file the process ends."""
    table = people(40).assign(word="w")
    SCHEMA.save(tmp_path / "people.toml")
    table.to_csv(tmp_path / "people.csv", index=False)
    words = ["../people.csv", "--schema", "../people.toml", "--out", "a.release", *asked]
    words += ["--epsilon", "1", "--ledger", "budget.json"]
    act = f"""
    os.chdir(folder)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    assert main({["curate", *words]!r}) == 0
"""
    imports = "from mechdesign.cli import main\nimport rangeq.cli.curate_command, pyarrow.csv"
    found = []
    for folder in killed(tmp_path, act, imports, delta="1e-2" if "--delta" in asked else 0):
        spent = [entry.what for entry in Ledger.open(folder / "budget.json").entries]
        found.append((folder / "a.release").exists())
        assert spent == ["a.release"] * found[-1]
        if found[-1]:
            assert load_release(folder / "a.release").promised
        assert not list(folder.glob(".a.release.*.unspent/*"))
    assert {*found} == {False, True}

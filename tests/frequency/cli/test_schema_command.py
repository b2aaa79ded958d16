"""The command schema: drafts of what is declared public, and files checked and shown."""

import pytest

from frequency import Dates, Numeric, Schema
from mechdesign.cli import main

TABLE = "age,sex\n31,female\n45,\n31,male\n"


@pytest.fixture
def run(capsys, tmp_path):
    (tmp_path / "people.csv").write_text(TABLE)

    def run(*arguments):
        code = main(["schema", *(str(one) for one in arguments)])
        return code, *capsys.readouterr()

    return run


def test_a_draft_is_there_to_be_changed(run, tmp_path):
    target = tmp_path / "people.toml"
    code, out, err = run(tmp_path / "people.csv", "--public", "--out", target)
    assert (code, err) == (0, "")
    assert "look through it" in out
    text = target.read_text()
    assert "digest" not in text
    assert 'public_source = "people.csv, which was declared public"' in text
    target.write_text(text.replace("high = 45", "high = 120"))
    assert Schema.load(target)["age"].size == 90
    assert Schema.load(target)["sex"].missing == "item"
    code, out, _ = run(target)
    assert code == 0
    assert "an integer from 31 to 120" in out
    assert f"digest: {Schema.load(target).digest}" in out


def test_bins_are_shown_where_questions_may_end_within_them(run, tmp_path):
    age = Numeric("age", low=0, high=120, whole=True)
    pay = Numeric("pay", low=1, high=1000, bins=6, spacing="logarithmic")
    seen = Dates("seen", "2013-01-01", "2013-03-31", "month")
    Schema([age, pay, seen]).save(tmp_path / "bins.json")
    code, out, _ = run(tmp_path / "bins.json")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("bins")] == [
        "bins of pay: 1 to 3.16228, 3.16228 to 10, 10 to 31.6228, ..., 316.228 to 1000",
        "bins of seen: 2013-01, 2013-02, 2013-03",
    ]


def test_a_draft_may_be_of_some_columns_and_is_printed(run, tmp_path):
    code, out, _ = run(tmp_path / "people.csv", "--public", "--attribute", "sex")
    assert code == 0
    (tmp_path / "printed.toml").write_text(out)
    assert Schema.load(tmp_path / "printed.toml").names == ("sex",)


def test_nothing_is_read_off_what_is_not_declared_public(run, tmp_path):
    code, out, err = run(tmp_path / "people.csv", "--out", tmp_path / "people.toml")
    assert (code, out) == (2, "")
    assert "a schema is public" in err
    assert "female" not in err
    assert not (tmp_path / "people.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.csv", "--public"], 2, "no such file: "),
        (["people.csv", "--public", "--attribute", "pay"], 2, "no column 'pay'"),
        (["people.csv", "--public", "--out", "people.yaml"], 2, "must end in .toml, .json"),
        (["people.csv", "--public", "--out", "people.csv"], 2, "would replace what it is made"),
        (["bad.toml"], 1, "not a schema file"),
        (["bad.toml", "--public"], 2, "takes no other options"),
        (["people.doc", "--public"], 2, "the name of a table's file must end in"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments, code, message, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.toml").write_text("x = 1\n")
    (tmp_path / "people.doc").write_text(TABLE)
    found, out, err = run(*arguments)
    assert (found, out) == (code, "")
    assert message in err
    assert err.count("\n") == 1
    assert (tmp_path / "people.csv").read_text() == TABLE


def test_what_is_doubtful_in_a_draft_is_said(run, tmp_path):
    table = tmp_path / "orders.csv"
    rows = [f'{7000 + k},"{k % 3},467",01/02/2024' for k in range(30)]
    table.write_text("\n".join(["id,pay,day", *rows, ""]))
    code, _, err = run(table, "--public", "--out", tmp_path / "orders.toml")
    assert code == 0
    assert [line.partition("?")[0] for line in err.splitlines()] == [
        "look at id: every row has another value: an identifier",
        "look at pay: numbers",
        "look at day: dates: as %m/%d/%Y or as %d/%m/%Y",
    ]

"""The commands collect and query: from files of reports to answers, without a line of Python."""

import csv
import io

import numpy as np
import pytest

import frequency
import frequency.heavy
import frequency.marginals
import rangeq
import rangeq.grids
from frequency.storage import load_aggregate, save_aggregate, save_protocol, write_reports
from mechdesign.cli import main

RECORDS = {"a": 4, "b": 6}


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    output = capsys.readouterr()
    return code, output.out, output.err


def table(text):
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["query", "estimate", "low", "high"]
    return {row[0]: [float(value) if value else None for value in row[1:]] for row in rows[1:]}


@pytest.fixture
def asked(tmp_path, capsys):
    """Saves a protocol and an aggregate of the values, and asks for answers."""

    def ask(protocol, values, *questions):
        aggregate = protocol.aggregate(protocol.privatize(values, np.random.default_rng(1)))
        save_protocol(tmp_path / "protocol.json", protocol)
        save_aggregate(tmp_path / "aggregate.ldp", aggregate)
        return (
            run(
                capsys,
                "query",
                tmp_path / "aggregate.ldp",
                "--protocol",
                tmp_path / "protocol.json",
                *questions,
            ),
            aggregate,
        )

    return ask


NUMBERS = np.arange(4000) % 30 % 20


def test_collect_then_query(tmp_path, capsys):
    protocol = rangeq.HaarHRR(32, 2.0)
    reports = protocol.privatize(NUMBERS, np.random.default_rng(1))
    save_protocol(tmp_path / "protocol.json", protocol)
    for k, part in enumerate(np.array_split(reports, 3)):
        write_reports(tmp_path / "reports" / f"{k}.parquet", protocol, part)
    collect = [
        "collect",
        tmp_path / "reports",
        "--protocol",
        tmp_path / "protocol.json",
        "--out",
        tmp_path / "aggregate.ldp",
    ]
    code, out, _ = run(capsys, *collect, "--resume", tmp_path / "state")
    assert (code, "4000 reports of 3 files counted, 0 files refused" in out) == (0, True)
    assert load_aggregate(tmp_path / "aggregate.ldp", protocol) == protocol.aggregate(reports)

    code, _, err = run(capsys, *collect)
    assert (code, "exists; use --force" in err) == (2, True)
    (tmp_path / "reports" / "3.parquet").write_text("hello")
    code, _, _ = run(
        capsys,
        *collect,
        "--force",
        "--resume",
        tmp_path / "state",
        "--refused",
        tmp_path / "refused.csv",
    )
    assert code == 1
    rows = list(csv.reader((tmp_path / "refused.csv").read_text().splitlines()))
    assert rows[0] == ["file", "reports left out", "reason"]
    assert rows[1][:2] == [str(tmp_path / "reports" / "3.parquet"), "all"]
    assert load_aggregate(tmp_path / "aggregate.ldp", protocol).n == 4000

    query = ["query", tmp_path / "aggregate.ldp", "--protocol", tmp_path / "protocol.json"]
    code, out, _ = run(
        capsys,
        *query,
        "--range",
        "0:9",
        "--range",
        "3",
        "--quantile",
        "0.5",
        "--out",
        tmp_path / "answers.csv",
    )
    assert (code, "3 answers from 4000 reports" in out) == (0, True)
    answers = table((tmp_path / "answers.csv").read_text())
    estimate = protocol.estimate(protocol.aggregate(reports))
    assert answers["range 0:9"] == pytest.approx(
        [estimate.range(0, 9), *estimate.answer((0, 9)).interval()]
    )
    assert answers["range 3:3"] == pytest.approx(
        [estimate.range(3, 3), *estimate.answer((3, 3)).interval()]
    )
    assert answers["quantile 0.5"] == [estimate.quantile(0.5), *estimate.quantile_interval(0.5)]


def test_items(asked):
    for protocol in (
        frequency.GRR(20, 2.0),
        frequency.HadamardCountMeanSketch(20, 2.0),
        rangeq.HierarchicalHistogram(20, 2.0),
    ):
        (code, out, _), aggregate = asked(protocol, NUMBERS, "--item", "3", "--item", "17:19")
        estimate = protocol.estimate(aggregate)
        low, high = estimate.interval()
        assert code == 0
        expected = {
            f"item {x}": pytest.approx([estimate.frequencies[x], low[x], high[x]])
            for x in (3, 17, 18, 19)
        }
        assert table(out) == expected


def test_items_of_a_domain_that_is_too_large_to_list(asked):
    sketch = frequency.HadamardCountMeanSketch(1 << 40, 2.0)
    (code, out, _), aggregate = asked(sketch, NUMBERS, "--item", "3:4")
    expected = sketch.estimate(aggregate, [3, 4]).frequencies
    assert code == 0
    assert [answer[0] for answer in table(out).values()] == pytest.approx(expected)


def test_without_a_question(asked):
    (code, out, _), _ = asked(frequency.GRR(20, 2.0), NUMBERS)
    assert code == 0
    assert list(table(out)) == [f"item {x}" for x in range(20)]
    (code, out, _), _ = asked(rangeq.shaped(20, 2.0, 4000), NUMBERS)
    assert list(table(out)) == [f"quantile 0.{k}" for k in range(1, 10)]
    protocol = frequency.marginals.InpHT(frequency.marginals.Domain(RECORDS), 1, 2.0)
    (code, out, _), _ = asked(protocol, np.stack([NUMBERS % 4, NUMBERS % 6], axis=1))
    assert list(table(out)) == [f"where a={x}" for x in range(4)] + [
        f"where b={x}" for x in range(6)
    ]


def test_heavy_hitters(asked):
    for protocol in (
        frequency.heavy.PrefixExtension(16, 3.0),
        frequency.heavy.OneBit(frequency.heavy.PrefixExtension(8, 0.6)),
    ):
        (code, out, _), aggregate = asked(protocol, np.repeat([7, 200], [30_000, 10_000]))
        found = protocol.find(aggregate)
        assert (code, list(table(out))) == (0, list(map(str, found.items)))
        assert "7" in table(out)
        (code, _, err), _ = asked(protocol, [7], "--item", "7")
        assert (code, "ask no other question" in err) == (2, True)
    (code, out, _), _ = asked(
        frequency.heavy.OneBit(frequency.GRR(5, 0.6)), NUMBERS % 5, "--item", "2"
    )
    assert (code, list(table(out))) == (0, ["item 2"])


def test_conditions(asked):
    people = np.stack([NUMBERS % 4, NUMBERS % 6], axis=1)
    protocol = frequency.marginals.MargPS(frequency.marginals.Domain(RECORDS), 2, 2.0)
    (code, out, _), aggregate = asked(protocol, people, "--where", "b=1:4,a=2", "--marginal", "a")
    estimate = protocol.estimate(aggregate)
    value, variance = estimate.answer({"b": [1, 2, 3, 4], "a": 2})
    assert table(out)["where b=1:4,a=2"] == pytest.approx(
        [value, value - 1.959964 * variance**0.5, value + 1.959964 * variance**0.5]
    )
    assert table(out)["where a=3"][0] == pytest.approx(estimate.marginal(["a"])[3])
    system = rangeq.grids.best(RECORDS, 2.0, 4000)
    (code, out, _), aggregate = asked(system, people, "--where", "b=1:4,a=2")
    ranged = system.estimate(aggregate)
    assert isinstance(ranged, rangeq.grids.WaveEstimate)
    low, high = ranged.answer({"b": (1, 4), "a": 2}).interval()
    assert table(out)["where b=1:4,a=2"] == pytest.approx(
        [ranged.answer({"b": (1, 4), "a": (2, 2)}).value, low, high]
    )
    (code, out, err), _ = asked(rangeq.grids.TDG(RECORDS, 2.0, 4000), people, "--where", "a=1:2")
    assert (code, table(out)["where a=1:2"][1:]) == (0, [None, None])
    assert "TDG has no confidence intervals" in err


@pytest.mark.parametrize(
    ("protocol", "question", "message"),
    [
        (
            frequency.GRR(20, 2.0),
            ["--range", "1:2"],
            "GRR does not answer --range; it answers --item",
        ),
        (frequency.GRR(20, 2.0), ["--item", "20"], "items are 0 .. 19"),
        (
            frequency.GRR(20, 2.0),
            ["--item", "-1"],
            "expected one argument|a value or a closed range",
        ),
        (frequency.GRR(20, 2.0), ["--item=3:2"], "the left end is above the right one"),
        (frequency.GRR(20, 2.0), ["--confidence", "1"], "confidence"),
        (frequency.GRR(20, 2.0), ["--out", "x.txt"], "must end in .csv"),
        (rangeq.HaarHRR(20, 2.0), ["--range", "5:20"], "20"),
        (rangeq.HaarHRR(20, 2.0), ["--quantile", "x"], "a fraction from 0 to 1"),
        (rangeq.HaarHRR(20, 2.0), ["--quantile", "1.5"], "1.5"),
        (rangeq.SquareWave(20, 2.0), ["--where", "a=1"], "does not answer --where"),
    ],
)
def test_wrong_questions(protocol, question, message, asked, capsys):
    try:
        (code, out, err), _ = asked(protocol, NUMBERS, *question)
    except SystemExit as error:  # of argparse
        code, (out, err) = error.code, capsys.readouterr()
    assert (code, out) == (2, "")
    assert any(part in err for part in message.split("|"))


def test_nothing_that_is_read_is_replaced(tmp_path, capsys):
    protocol = frequency.GRR(4, 1.0)
    place, reports = tmp_path / "protocol.json", tmp_path / "reports" / "a.parquet"
    save_protocol(place, protocol)
    write_reports(reports, protocol, protocol.privatize([1, 2], np.random.default_rng(1)))
    before = {path: path.read_bytes() for path in (place, reports)}
    collect = ["collect", "--force", tmp_path / "reports", "--protocol", place, "--out"]
    same = tmp_path / "x.csv"
    for wrong in (
        [reports],
        [place],
        [same, "--refused", same],
        [same, "--resume", same],
        [tmp_path / "y", "--resume", reports],
    ):
        code, _, err = run(capsys, *collect, *wrong)
        assert (code, "would replace" in err) == (2, True)
    assert {path: path.read_bytes() for path in (place, reports)} == before
    assert not same.exists()


def test_odd_names_reach_neither_terminal_nor_table(tmp_path, capsys):
    save_protocol(tmp_path / "protocol.json", frequency.GRR(4, 1.0))
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "a\x1b[31m\udcff.parquet").write_text("x")
    collect = [
        "collect",
        tmp_path / "reports",
        "--protocol",
        tmp_path / "protocol.json",
        "--out",
        tmp_path / "x",
    ]
    code, out, _ = run(capsys, *collect, "--refused", tmp_path / "refused.csv")
    assert (code, "\x1b" in out, "a\\x1b[31m\\udcff.parquet" in out) == (1, False, True)
    assert "\\udcff" in (tmp_path / "refused.csv").read_text()


def test_files_that_are_not_what_they_should_be(tmp_path, capsys, asked):
    protocol = frequency.GRR(20, 2.0)
    asked(protocol, NUMBERS)
    place, aggregate = tmp_path / "protocol.json", tmp_path / "aggregate.ldp"
    save_protocol(tmp_path / "other.json", frequency.GRR(20, 1.0))
    assert run(capsys, "query", aggregate, "--protocol", tmp_path / "other.json")[0] == 1
    assert run(capsys, "query", place, "--protocol", place)[0] == 1
    assert run(capsys, "query", aggregate, "--protocol", aggregate)[0] == 1
    assert run(capsys, "query", tmp_path / "missing", "--protocol", place)[0] == 2
    assert (
        run(capsys, "collect", tmp_path / "missing", "--protocol", place, "--out", tmp_path / "x")[
            0
        ]
        == 2
    )
    (tmp_path / "empty").mkdir()
    assert (
        run(capsys, "collect", tmp_path / "empty", "--protocol", place, "--out", tmp_path / "x")[0]
        == 2
    )
    assert not (tmp_path / "x").exists()
    _, _, err = run(capsys, "query", aggregate, "--protocol", tmp_path / "other.json")
    assert (
        f"{aggregate}: not an aggregate of this protocol: of GRR and of GRR, which differ in alpha"
        in err
    )


@pytest.mark.parametrize(
    ("protocol", "shape"),
    [
        (rangeq.HaarHRR(32, 2.0), 0),
        (frequency.OLH(32, 2.0), 0),
        (frequency.heavy.PrefixExtension(8, 2.0), 0),
        (rangeq.grids.MSW([8, 8], 2.0, n=1000), (0, 2)),
    ],
)
def test_an_aggregate_of_nobody_has_no_answers(protocol, shape, asked):
    (code, out, err), _ = asked(protocol, np.zeros(shape, int))
    assert code == 2
    assert out == ""
    assert "aggregate.ldp holds no reports" in err

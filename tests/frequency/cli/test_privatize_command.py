"""The command privatize: the reports that the slow way gives, in a file that is whole or absent."""

import csv
import itertools
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frequency import GRR, HRR, Boolean, Categorical, Numeric, Schema, Survey
from frequency.cli import collection_commands as privatize_command
from frequency.marginals import InpHT
from frequency.storage import parquet as reports_file
from frequency.storage import protocol_file as formats
from frequency.storage import read_reports, save_protocol, table
from frequency.storage import table as shuffle
from mechdesign.base import files
from mechdesign.cli import main

SPECIES = Categorical("species", ["Adelie", "Chinstrap", "Gentoo"], missing="item")
AGE = Numeric("age", low=0, high=61, whole=True, missing="item", outside="clip")
WEIGHT = Numeric("weight", edges=[1, 2.5, 4, 8, 9], missing="skip", outside="item")
SICK = Boolean("sick", missing="skip")


def survey_of(*attributes):
    schema = Schema(attributes)
    if len(attributes) > 1:
        return Survey(InpHT(schema.domain, 2, 2.0), schema)
    return Survey(HRR(schema.sizes[0], 2.0), schema)


def cells(n):
    """Rows as text: ages, species, weights and a bit, of which some are missing or outside."""
    rng = np.random.default_rng(1)
    ages = np.array([*map(str, range(-2, 65)), "7.0", "", "NA"])
    species = np.array(["Adelie", "Chinstrap", "Gentoo", ""])
    weights = np.array(["1", "2.5", "9", "1e0", "3.25", "12", "", "0.1"])
    sick = np.array(["yes", "no", "1", "FALSE", ""])
    columns = [each[rng.integers(0, len(each), n)] for each in (ages, species, weights, sick)]
    return {
        name: column.tolist()
        for name, column in zip(("age", "species", "weight", "sick"), columns, strict=True)
    }


@pytest.fixture
def privatize(tmp_path, monkeypatch, capsys):
    """Runs the command in an empty folder; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(source, survey, *more, out="reports/day1.parquet"):
        save_protocol("protocol.json", survey)
        code = main(
            ["privatize", *map(str, [source, "--protocol", "protocol.json", "--out", out, *more])]
        )
        return code, *capsys.readouterr()

    return run


def written(columns, name="people.csv"):
    if name.endswith(".parquet"):
        whole = pa.table(
            {key: [cell or None for cell in column] for key, column in columns.items()}
        )
        pq.write_table(whole, name)
        return name
    with Path(name).open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([list(columns), *zip(*columns.values(), strict=True)])
    return name


def in_order(reports):
    """What they are but for their order, which is random."""
    return np.sort(reports)


@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("attributes", [[AGE], [SPECIES], [WEIGHT], [SPECIES, AGE, SICK]])
def test_the_reports_are_those_of_the_slow_way(name, attributes, privatize, monkeypatch):
    """Encoded all at once from the standard library's reader, and drawn with the same seed."""
    monkeypatch.setattr(table, "_ROWS", 100)
    columns, survey = cells(1234), survey_of(*attributes)
    code, out, err = privatize(written(columns, name), survey, "--seed", 7)
    assert (code, "reproducible and therefore not private" in err) == (0, True)

    rng, tally = np.random.default_rng(7), Counter[str]()
    with open(written(columns), newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    read = {one.name: [row[one.name] or None for row in rows] for one in attributes}
    encoded = survey.schema.encode(read)
    slow = [
        survey.privatize(
            {key: column[start : start + 100] for key, column in read.items()}, rng, tally
        )
        for start in range(0, 1234, 100)
    ]
    found = read_reports("reports/day1.parquet", survey)
    assert np.array_equal(in_order(found), in_order(np.concatenate(slow)))
    assert len(found) == len(encoded.columns[0]) == 1234 - encoded.skipped
    assert f"1234 rows: {len(found)} reports" in out
    assert ("since a value is missing" in out) == any(one.missing == "skip" for one in attributes)
    if encoded.skipped:
        assert f"since a value is missing: {encoded.skipped} rows" in out
    assert ("since they are outside" in out) == (AGE in attributes)
    for key, count in encoded.clipped.items():
        assert f"since they are outside: {f'{count} of {key}' if count else 'none'}\n" in out


@pytest.mark.slow
def test_blocks_leave_no_trace_in_the_reports(privatize):
    """Without users who are left out they are those of one call for all, block ends or not."""
    columns, survey = {"age": cells(300_000)["age"]}, survey_of(AGE)
    assert privatize(written(columns), survey, "--seed", 7)[0] == 0
    whole = survey.channel.privatize(
        survey.schema.encode(columns).columns[0], np.random.default_rng(7)
    )
    found = read_reports("reports/day1.parquet", survey)
    assert np.array_equal(in_order(found), in_order(whole))


@pytest.mark.parametrize("name", ["a.ldp", "reports/a.b64", "A.parquet"])
def test_the_name_says_how_reports_are_written(name, privatize):
    source, survey = written(cells(1000)), survey_of(AGE)
    assert privatize(source, survey, "--seed", 7)[0] == 0
    expected = read_reports("reports/day1.parquet", survey)
    assert privatize(source, survey, "--seed", 7, out=name)[0] == 0
    assert np.array_equal(read_reports(name, survey), expected)
    content = Path(name).read_bytes()
    begin = {".ldp": b"LDPF", ".b64": b"# mechdesign reports ", ".parquet": b"PAR1"}
    assert content.startswith(begin[Path(name).suffix])


def test_reports_are_secret_without_a_seed(privatize):
    source, survey = written(cells(500)), survey_of(AGE)
    for out in ("a.parquet", "b.parquet"):
        assert privatize(source, survey, out=out)[::2] == (0, "")
    a, b = (read_reports(out, survey) for out in ("a.parquet", "b.parquet"))
    assert not np.array_equal(in_order(a), in_order(b))


def test_the_order_of_the_rows_is_not_that_of_the_reports(privatize):
    """Of a sorted table: at this epsilon reports are what the rows are."""
    schema = Schema([Categorical("side", ["left", "right"])])
    survey = Survey(GRR(2, 40.0), schema)
    table = {"side": ["left"] * 5000 + ["right"] * 5000}
    assert privatize(written(table), survey, "--seed", 3)[0] == 0
    items = read_reports("reports/day1.parquet", survey)["item"]
    assert items.sum() == 5000
    # Of 5000 draws from the 10000: a false alarm in 10^6 beyond 5 deviations of 25
    assert abs(int(items[:5000].sum()) - 2500) < 125


def test_what_is_wrong_is_one_line_and_leaves_nothing(privatize, tmp_path):
    rows = "\n".join(["secret,species"] + ["x,Adelie"] * 15)
    for content, reason in [
        (rows + "\nx,Gento\nx,Adelie\n", "people.csv, line 17, column 'species': 'Gento' is not"),
        (rows + "\nx\n", "people.csv, line 17: 1 cells under a header of 2"),
        (
            rows.replace("species", "Species"),
            "no column 'species'; its columns are 'secret', 'Spec",
        ),
        ("secret,species\n", "people.csv has no rows"),
        ("", "people.csv is empty"),
    ]:
        Path("people.csv").write_text(content)
        code, out, err = privatize("people.csv", survey_of(SPECIES), out="a/b/c.parquet")
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert reason in err
        assert err.endswith("nothing was written\n")
        assert "x,Adelie" not in err
        assert {path.name for path in tmp_path.iterdir()} == {"people.csv", "protocol.json"}


def test_a_file_is_replaced_by_a_whole_one_or_not_at_all(privatize):
    source, survey = written(cells(1000)), survey_of(AGE)
    assert privatize(source, survey, "--seed", 1)[0] == 0
    before = Path("reports/day1.parquet").read_bytes()
    code, _, err = privatize(source, survey)
    assert (code, "exists; use --force" in err) == (2, True)
    with open(source, "a") as stream:
        stream.write("seven,Adelie,1,yes\n")
    code, _, err = privatize(source, survey, "--force")
    assert (code, "line 1002, column 'age': 'seven' is not" in err) == (2, True)
    assert Path("reports/day1.parquet").read_bytes() == before
    assert privatize(written(cells(999)), survey, "--force")[0] == 0
    assert len(read_reports("reports/day1.parquet", survey)) == 999


def test_what_cannot_or_must_not_be_written_is_refused_before_any_work(privatize):
    source, survey = written(cells(10), "people.parquet"), survey_of(AGE)
    for out, more, reason in [
        ("reports.csv", [], "must end in .parquet, .ldp, .b64"),
        (source, ["--force"], "would replace what it is made from"),
        ("people.parquet/a/b.parquet", [], "people.parquet is not a directory"),
        ("protocol.json/b.parquet", [], "protocol.json is not a directory"),
    ]:
        code, stdout, err = privatize(source, survey, *more, out=out)
        assert (code, stdout, reason in err) == (2, "", True)
    assert len(pq.read_table(source)) == 10


def test_a_protocol_without_a_schema_is_refused_with_the_way_to_one(privatize):
    code, _, err = privatize(written(cells(10)), GRR(4, 1.0))
    assert code == 2
    assert "protocol.json has no schema" in err
    assert "mechdesign schema" in err
    assert not Path("reports").exists()


def test_nobody_may_be_left(privatize):
    survey = survey_of(SICK)
    code, out, _ = privatize(written({"sick": ["", ""], "id": ["1", "2"]}), survey)
    assert code == 0
    assert "2 rows: 0 reports\nleft out, since a value is missing: 2 rows\n" in out
    assert len(read_reports("reports/day1.parquet", survey)) == 0


@pytest.mark.slow  # two processes
def test_memory_does_not_grow_with_the_table(tmp_path):
    """A hundred MB of text would show: a table is read a block at a time."""
    program = """
import resource, sys
from pathlib import Path
from mechdesign.cli import main
with Path("people.csv").open("w") as stream:
    stream.write("weight,note\\n")
    for _ in range(int(sys.argv[1])):
        stream.write(f"7.5,{'x' * 50}\\n" * 1000)
command = "privatize people.csv --protocol protocol.json --out out.parquet --force"
assert main(command.split()) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    note = Categorical("note", ["x" * 50])
    save_protocol(tmp_path / "protocol.json", survey_of(note, WEIGHT))
    peaks = [
        int(
            subprocess.run(
                [sys.executable, "-c", program, thousands],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()[-1]
        )
        for thousands in ("600", "2600")
    ]
    assert peaks[1] - peaks[0] < 50_000  # KB


WATCHED = (privatize_command, table, shuffle, formats, reports_file, files)


class Interrupt:
    """Interrupts at one of the lines of some files, if there are as many: a context manager."""

    def __init__(self, line, *modules):
        self.left, self.files = line, {module.__file__ for module in modules}

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, *error):
        sys.settrace(None)

    def trace(self, frame, event, _):
        code = frame.f_code
        if code.co_filename not in self.files:
            return None
        if event == "line":
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self.trace


@pytest.mark.slow  # a run for each line
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # not closed in time
def test_an_interrupt_at_any_line_leaves_a_whole_file_or_none(privatize, monkeypatch, tmp_path):
    monkeypatch.setattr(table, "_ROWS", 2)
    monkeypatch.setattr(shuffle, "_PILES", 2)
    source, survey = written(cells(3)), survey_of(AGE)
    save_protocol("protocol.json", survey)
    command = f"privatize {source} --protocol protocol.json --out reports/day1.parquet"
    outcomes = Counter[tuple[int, bool]]()
    for line in itertools.count(1):
        with Interrupt(line, *WATCHED) as interrupt:
            code = main(command.split())
        if there := Path("reports").exists():
            assert [path.name for path in Path("reports").iterdir()] == ["day1.parquet"]
            assert len(read_reports("reports/day1.parquet", survey)) == 3
            shutil.rmtree("reports")
        assert {path.name for path in tmp_path.iterdir()} == {source, "protocol.json"}
        outcomes[code, there] += 1
        if interrupt.left > 0:
            break
    assert outcomes[0, True] == 1
    assert outcomes[130, False] > 100
    assert set(outcomes) <= {(0, True), (130, True), (130, False)}


@pytest.mark.parametrize("command", ["privatize", "collect"])
def test_help_shows_the_way_to_answers(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    out = capsys.readouterr().out
    for command in ("schema", "protocol", "privatize", "collect", "query"):
        assert f"\n  mechdesign {command} " in out

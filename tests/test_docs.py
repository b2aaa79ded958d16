"""The pages of the site say what the code does: their examples run, and no protocol is without a
page.
"""

from __future__ import annotations

import doctest
import re
import runpy
import tomllib
from importlib.metadata import entry_points
from inspect import isabstract, isclass
from pathlib import Path
from pydoc import locate
from types import ModuleType, SimpleNamespace
from typing import Any

import pandas as pd
import pyreadstat
import pytest

import frequency.heavy
import frequency.marginals
import rangeq.grids
from mechdesign import Privacy, named, plan
from mechdesign.accounting import shuffled
from mechdesign.cli import main
from mechdesign.cli.program import parser
from mechdesign.planning.planner import GROUP
from tests.conftest import LONG_EXAMPLES
from tests.flights_table import commands_in, write_flights
from tests.mechdesign.perturbation.random_tables import published_rule

DOCS = Path(__file__).parent.parent / "docs"
PAGES = {
    str(path.relative_to(DOCS)): path
    for path in sorted(DOCS.rglob("*.md"))
    if "_build" not in path.parts
}
TUTORIALS = "tutorials/"
"""Pages whose blocks need what the blocks before them leave: `tests/test_tutorials.py`."""


LONG = {
    *(
        "attack.md",
        "contingency.md",
        "evaluate.md",
        "longitudinal.md",
        "shuffling.md",
        "tables.md",
        "add/range-protocol.md",
    ),
    *("packages/rangeq.central.md", "protocols/counts/requirements.md"),
    *("protocols/grids/index.md", "protocols/grids/wave-grid.md"),
    *(
        "protocols/heavy/prefix-extension.md",
        "protocols/heavy/succinct-histogram.md",
        "protocols/heavy/unique.md",
    ),
    *("protocols/ranges/index.md", "protocols/ranges/haar-hrr.md"),
    *("protocols/ranges/item-sets.md", "protocols/ranges/shaped.md"),
}
"""Pages whose examples take seconds."""


@pytest.mark.of_rounding  # results are printed, some of them next to where digits change
@pytest.mark.every_case
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.slow if page in LONG else ())
        for page in sorted({*PAGES} - {"planning.md"})  # below, with its commands
    ],
)
def test_examples_print_what_is_shown(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    # The end of a block of code would be taken for output.
    text = re.sub("^```.*$", "", PAGES[page].read_text(encoding="utf-8"), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(
        text, {"__name__": "__main__"}, page, str(PAGES[page]), 0
    )
    failed = doctest.DocTestRunner(verbose=False).run(test).failed
    assert not failed, capsys.readouterr().out


def test_pages_and_docstrings_that_take_long_are_there() -> None:
    assert {*PAGES} > LONG
    assert all(locate(name) is not None for name in LONG_EXAMPLES)


@pytest.mark.slow
def test_commands_of_the_page_on_planning_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In order, on the schema and the data that its examples write."""
    page = "planning.md"
    test_examples_print_what_is_shown(page, tmp_path, monkeypatch, capsys)
    text = PAGES[page].read_text(encoding="utf-8")
    commands = commands_in(text)
    assert len(commands) == 6
    for command in commands:
        assert main(command) == 0, capsys.readouterr().err
    assert {"age.json", "errors.csv"} < {path.name for path in tmp_path.iterdir()}


def test_commands_of_the_page_on_suppression_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGES["suppression.md"].read_text(encoding="utf-8")
    table, shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "table.csv").write_text(table)
    (tmp_path / "cells.csv").write_text("ward,ill,residents\nA,3,8\nB,7,9\n")
    first, second = commands_in(text)
    assert main(first) == 0
    assert capsys.readouterr().out.startswith(shown)
    assert (tmp_path / "compared.png").exists()
    assert main(second) == 0, capsys.readouterr().err


@pytest.mark.slow
def test_commands_of_the_page_on_perturbation_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGES["perturbation.md"].read_text(encoding="utf-8")
    published_rule().write("table.csv")
    people = "north,young\nnorth,old\nsouth,old\nsouth,old\n" * 20
    (tmp_path / "people.csv").write_text(f"region,age\n{people}")
    shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    commands = commands_in(text)
    assert [command[0] for command in commands] == [
        *("audit", "design-perturbation", "compare-perturbation"),
        *("draw-record-keys", "perturb-table"),
        *("export-perturbation", "export-perturbation"),
    ]
    for number, command in enumerate(commands):
        assert main(command) == 0, capsys.readouterr().err
        printed = capsys.readouterr().out
        assert number >= len(shown) or printed.startswith(shown[number])
    assert len((tmp_path / "published.csv").read_text().splitlines()) == 1 + 9


def test_commands_of_the_page_on_tables_of_counts_print_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGES["count-tables.md"].read_text(encoding="utf-8")
    table, shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (tmp_path / "wards.csv").write_text(table)
    frame = pd.DataFrame({"ward": [1.0, 2, 1, 2, 1], "ill": [1.0, 2, 2, 1, 9]})
    pyreadstat.write_sav(
        frame,
        tmp_path / "people.sav",
        variable_value_labels={"ward": {1: "A", 2: "B"}, "ill": {1: "yes", 2: "no"}},
        missing_ranges={"ill": [9]},
    )
    first, *others = commands_in(text)
    assert main(first) == 0
    assert capsys.readouterr().out.startswith(shown)
    for command in others:
        assert main(command) == 0, capsys.readouterr().err
    written = ["released.csv", "released.json", "estimated.csv", "ill.xlsx", "ill.json", "true.csv"]
    assert {*written} < {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_the_tables_of_the_page_on_shuffled_reports_are_what_is_computed() -> None:
    text = PAGES["shuffling.md"].read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| (\d+) \| (.*) \|$", text, flags=re.MULTILINE)
    assert len(rows) == 6
    for local, answers, cells in rows:
        response = named.krr(int(answers), alpha=Privacy.from_epsilon(float(local)).alpha)
        for n, cell in zip((10, 100, 1000, 10**4, 10**6), cells.split(" | "), strict=True):
            upper, lower = map(float, re.findall(r"[\d.]+", cell))
            collection = shuffled(response, n)
            assert collection.epsilon("1e-8") == pytest.approx(upper, rel=1e-2, abs=6e-5)
            assert collection.epsilon_at_least("1e-8") == pytest.approx(lower, rel=1e-2, abs=6e-5)
    lines = re.findall(r"^\| `(\w+\(.*ε₀.*\))` \| (.*) \|$", text, flags=re.MULTILINE)
    assert len(lines) == 9
    names = {
        name: getattr(package, name) for package in (frequency, rangeq) for name in package.__all__
    }
    for code, cells in lines:
        for local, cell in zip(("1", "4"), cells.split(" | "), strict=True):
            protocol = eval(code.replace("ε₀", local), names)
            upper, lower = map(float, re.findall(r"[\d.]+", cell))
            collection = shuffled(protocol, 10**5)
            assert collection.epsilon("1e-8") == pytest.approx(upper, rel=1e-2, abs=6e-5)
            assert collection.epsilon_at_least("1e-8") == pytest.approx(lower, rel=1e-2, abs=6e-5)


@pytest.mark.slow
def test_commands_of_the_page_on_requirements_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What cannot be done is refused in the lines that are shown."""
    monkeypatch.chdir(tmp_path)
    text = PAGES["protocols/counts/requirements.md"].read_text(encoding="utf-8")
    commands = commands_in(text)
    codes = [main([command, *words]) for command, *words in commands]
    assert codes == [0, 0, 0, 0, 1, 1, 1]
    (shown,) = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    errors = capsys.readouterr().err.splitlines()
    assert [line for line in errors if line.startswith("mechdesign: ")] == shown.splitlines()


LONGEST = 400
"""Lines of a page: what is longer is not read to its end, and is split by subject."""


def too_long(folder: Path) -> list[str]:
    """The pages of a repository that have too many lines."""
    pages = [
        *(path for path in folder.glob("docs/**/*.md") if "_build" not in path.parts),
        *folder.glob("benchmarks/*.md"),
        *(folder / name for name in ("LIMITS.md", "README.md") if (folder / name).exists()),
    ]
    return [
        str(path.relative_to(folder))
        for path in sorted(pages)
        if len(path.read_text(encoding="utf-8").splitlines()) > LONGEST
    ]


def test_every_style_sheet_and_script_is_used() -> None:
    conf = runpy.run_path(str(DOCS / "conf.py"))
    used = [*conf["html_css_files"], *conf["html_js_files"]]
    assert sorted(used) == sorted(path.name for path in (DOCS / "_static").iterdir())


def test_pages_are_plain_markdown() -> None:
    """What only the site's generator reads is in `docs/rendering.py` and `docs/reference`."""
    marks = re.compile(r"\{(py:|doc\}|ref\}|math\}|eval-rst|toctree)|automodule")
    assert [page for page, path in PAGES.items() if marks.search(path.read_text("utf-8"))] == []


def test_no_page_is_too_long() -> None:
    assert too_long(DOCS.parent) == []


def test_a_page_that_is_too_long_is_found(tmp_path: Path) -> None:
    for name, lines in [("docs/a/long.md", 401), ("docs/a/short.md", 400), ("LIMITS.md", 401)]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n" * lines)
    assert too_long(tmp_path) == ["LIMITS.md", "docs/a/long.md"]


def dead_links(folder: Path) -> list[str]:
    """Links to nowhere on pages that are not of the site, which would not build with any."""
    pages = [
        path
        for pattern in ("*.md", "benchmarks/*.md", "examples/**/*.md", "clients/**/*.md")
        for path in sorted(folder.glob(pattern))
    ]
    dead = []
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            file, _, anchor = target.partition("#")
            path = page.parent / file if file else page
            if ":" in target or (not anchor and path.exists()):
                continue
            headings = path.read_text(encoding="utf-8") if path.is_file() else ""
            found = re.findall(r"^#+ (.*)$", headings, re.MULTILINE)
            if anchor not in [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in found]:
                dead.append(f"{page.relative_to(folder)}: {target}")
    return dead


def test_links_lead_somewhere() -> None:
    assert dead_links(DOCS.parent) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "[a](#here) [b](#there) [c](OTHER.md) [d](https://example.org) [e](README.md#here)\n# Here"
    )
    assert dead_links(tmp_path) == ["README.md: #there", "README.md: OTHER.md"]


def test_every_block_is_run() -> None:
    """Sessions here, the others by `tests/test_docs_oracle.py`, `tests/test_tutorials.py`
    and `tests/clients/test_clients_page.py`.
    """
    text = {page: path.read_text(encoding="utf-8") for page, path in PAGES.items()}
    found = [page for page in text if "```python\n" in text[page]]
    assert [page for page in found if not page.startswith(TUTORIALS)] == [
        "add/oracle.md",
        "clients.md",
    ]


def test_the_schema_of_the_page_on_tables_is_shown_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PAGES["tables.md"].read_text(encoding="utf-8")
    (content,), (shown, *_) = (
        re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL) for language in ("toml", "text")
    )
    (tmp_path / "people.toml").write_text(content)
    assert main(["schema", str(tmp_path / "people.toml")]) == 0
    assert capsys.readouterr().out.startswith(f"{shown}digest: ")


@pytest.mark.slow
def test_commands_of_the_page_on_tables_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_flights(tmp_path, 336_776)
    (tmp_path / "public.csv").write_text("species,mass\nGentoo,5000\nAdelie,NA\n")
    text = PAGES["tables.md"].read_text(encoding="utf-8")
    commands = commands_in(text)
    assert [command[0] for command in commands] == [
        *("schema", "schema", "protocol", "privatize", "collect", "query"),
        *("curate", "query", "curate", "query"),
    ]
    for command in commands:
        assert main(command) == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(\d+ users reported.*?)```", text, re.DOTALL)
    for line in shown.splitlines():  # the numbers are others each time
        assert f"{line}\n" in printed or f"\n{line.partition('  ')[0]}  " in printed


def test_every_command_has_its_place() -> None:
    commands: Any
    (commands,) = (one for one in parser([])._actions if isinstance(one.choices, dict))
    choices, text = (
        commands.choices,
        "".join(
            path.read_text(encoding="utf-8")
            for page, path in PAGES.items()
            if page.startswith("commands/")
        ),
    )
    headings = re.findall("^## mechdesign (.*)$", text, re.MULTILINE)
    assert sorted(headings) == sorted(choices)
    for command in commands._get_subactions():  # what --help lists
        told = f"{command.help[0].upper()}{command.help[1:]}."
        assert f"## mechdesign {command.dest}\n\n{told}\n" in text
    table = PAGES["commands.md"].read_text(encoding="utf-8")
    assert [name for name in choices if f"`{name}`" not in table] == []


def test_names_on_pages_are_links_or_errors() -> None:
    pytest.importorskip("sphinx")
    objects = {
        name: SimpleNamespace(aliased=False)
        for name in ("mechdesign.Ledger", "a.Answer", "b.Answer", "mechdesign.plan", "a.C.plan")
    }
    domain = SimpleNamespace(objects=objects)
    app = SimpleNamespace(env=SimpleNamespace(get_domain=lambda name: domain))
    names = runpy.run_path(str(DOCS / "rendering.py"))["Names"](app)
    assert names.whole("mechdesign.Ledger") == "mechdesign.Ledger"
    assert names.whole("mechdesign.lp") == ""  # is there, and is no entry
    assert names.whole("mechdesign.gone") is None
    assert names.short("Ledger", None) == "mechdesign.Ledger"
    assert names.short("Answer", None) == ""  # which of them?
    assert names.short("plan", "()") == ""
    assert names.short("C.plan", None) == "a.C.plan"
    assert names.short("plan", None) == ""


def test_every_extra_is_described() -> None:
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    page = PAGES["install.md"].read_text(encoding="utf-8")
    extras = project["project"]["optional-dependencies"]
    assert [name for name in extras if f"`{name}`" not in page] == []


def protocols(package: ModuleType, base: type[Any]) -> list[str]:
    found = [getattr(package, name) for name in package.__all__]
    return [
        f"{package.__name__}.{kind.__name__}"
        for kind in found
        if isclass(kind) and issubclass(kind, base) and not isabstract(kind)
    ]


@pytest.mark.parametrize(
    "name",
    [
        *protocols(frequency, frequency.Oracle),
        *protocols(frequency.marginals, frequency.marginals.MarginalProtocol),
        *protocols(frequency.heavy, frequency.heavy.HeavyHitterProtocol),
        *protocols(rangeq, rangeq.RangeProtocol),
        *protocols(rangeq.central, rangeq.central.CentralMechanism),
        *protocols(rangeq.grids, rangeq.grids.ConjunctionProtocol),
    ],
)
def test_every_protocol_has_a_page(name: str) -> None:
    facts = [
        line
        for page in PAGES.values()
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("| code |")
    ]
    assert any(f"`{name}`" in line for line in facts)


@pytest.mark.parametrize(
    "page",
    [
        page
        for page in PAGES
        if re.match("protocols/(oracles|ranges|heavy|marginals|grids)/(?!index)", page)
    ],
)
def test_every_page_of_a_protocol_says_at_the_top_what_a_user_sends(page: str) -> None:
    top = PAGES[page].read_text(encoding="utf-8").partition("```")[0]
    assert re.search(r"\b[Uu]ser (sends|draws .* and sends)\b", top)


@pytest.mark.parametrize("task", [point.name for point in entry_points(group=GROUP)])
def test_the_candidates_of_every_task_are_described_where_it_says(task: str) -> None:
    (point,) = (point for point in entry_points(group=GROUP) if point.name == task)
    pages = re.findall(r"docs/([\w./-]*[\w])", point.load().described)
    assert pages
    for page in pages:
        place = DOCS / page
        assert place.is_file() or (place / "index.md").is_file()


def test_the_last_line_of_a_plan_says_where_its_candidates_are_described() -> None:
    for asked in ({}, {"trust": "curator"}, {"trust": "shuffled", "delta": "1e-6"}):
        shown = str(plan("frequencies", 4, n=1000, epsilon=1, **asked)).splitlines()[-1]
        page = "central; strategy, gaussian: docs/workload-release.md"
        expected = page if asked.get("trust") == "curator" else "oracles"
        assert shown == f"candidates: docs/protocols/{expected}"

"""The notebooks with outputs, examples/notebooks/*.ipynb, are their scripts as they ran."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks are read with the extra 'docs'")
jupytext = pytest.importorskip("jupytext", reason="notebooks are read with the extra 'docs'")
notebooks = pytest.importorskip("tools.notebooks", reason="they run with the extra 'docs'")

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
SCRIPTS = [path for path in sorted(FOLDER.glob("*.py")) if path.name != "settings.py"]

UNSEEDED = {"from_program_to_device"}
"""Draws come from the operating system's randomness."""

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
TRACES = re.compile(r"(?<![\w.])/(?:home|root|tmp|usr|var|work|Users)/|[A-Z]:\\|\bat 0x[0-9a-f]+")
"""A path of the machine that ran a notebook, or an address in its memory."""
TAGS = ("picture", "remove-cell")


def notebook(script: Path) -> dict[str, Any]:
    return json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))


def test_every_notebook_has_a_script() -> None:
    assert [path.with_suffix(".py") for path in sorted(FOLDER.glob("*.ipynb"))] == SCRIPTS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_cells_are_those_of_the_script(script: Path) -> None:
    """`make notebooks` writes them."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook(script)["cells"]]
    assert cells == [(cell.cell_type, cell.source) for cell in jupytext.read(script).cells]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_cell_ran_without_an_error_or_a_trace_of_the_machine(script: Path) -> None:
    code = [cell for cell in notebook(script)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    for output in outputs:
        data = {kind: text for kind, text in output.get("data", {}).items() if kind != "image/png"}
        assert not TRACES.search(json.dumps([output.get("text"), data]))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_picture_comes_after_the_question(script: Path) -> None:
    """The first cell has it, and says in words what one sees; assertions are out of sight."""
    first, *others = notebook(script)["cells"]
    opening = re.fullmatch(
        r"# .+\n\n((?:.+\n)+)\n!\[([^]]+)\]\(attachment:picture.png\)(?:\n\n(?:.|\n)+)?",
        "".join(first["source"]),
    )
    assert opening
    assert "?" in first["source"][0] + opening[1]
    assert len(opening[2]) > 60
    tagged = {tag: [c for c in others if tag in c["metadata"].get("tags", ())] for tag in TAGS}
    (drawn,) = tagged["picture"]
    pictures = [output["data"].get("image/png") for output in drawn["outputs"]]
    assert first["attachments"] == {"picture.png": {"image/png": pictures[-1]}}
    shown = [c for c in others if c["cell_type"] == "code" and c not in tagged["remove-cell"]]
    for cell in shown:
        assert not re.search(r"^ *assert ", "".join(cell["source"]), re.MULTILINE)
    for cell in tagged["remove-cell"]:
        assert not cell["outputs"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_draws_is_folded_and_in_the_common_style(script: Path) -> None:
    for cell in notebook(script)["cells"]:
        source = "".join(cell["source"])
        if " = Figure(" in source:
            assert "with style():" in source
            assert {"hide-input", "hide-cell"} & set(cell["metadata"]["tags"])
        assert not re.search(r"#[0-9A-Fa-f]{6}\b", source), "a colour of its own"


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_says_what_its_notebook_shows(script: Path) -> None:
    """Its assertions hold, and nothing is written to standard error but progress."""
    run = notebooks.executed(script)
    outputs = [output for cell in run.cells for output in cell.get("outputs", ())]
    assert not [output for output in outputs if output.get("name") == "stderr"]
    shown = notebooks.texts(nbformat.read(script.with_suffix(".ipynb"), 4))
    for old, new in zip(map(parted, shown), map(parted, notebooks.texts(run)), strict=True):
        assert old[0] == new[0], f"run python tools/notebooks.py {script.name}"
        if script.stem not in UNSEEDED:
            assert old[1] == pytest.approx(new[1], rel=0.02), "that wrote other numbers"


def parted(texts: list[str]) -> tuple[list[str], list[float]]:
    """The words and the numbers of texts: the last digits of some depend on the processor."""
    parts = [part for text in texts for part in NUMBER.split(text)]
    numbers = [float(one) for text in texts for one in NUMBER.findall(text)]
    return [" ".join(part.split()) for part in parts], numbers


def test_other_words_and_numbers_would_be_found() -> None:
    words, numbers = parted(["error 0.25, 3 of\n", "  1e-3"])
    assert (words, numbers) == (["error", ",", "of", "", ""], [0.25, 3, 1e-3])
    assert parted(["errors 0.25, 3 of\n", "1e-3"])[0] != words
    assert parted(["error 0.26, 3 of\n", "1e-3"])[1] != pytest.approx(numbers, rel=0.02)


@pytest.mark.parametrize(
    ("name", "text", "progress"),
    [
        ("stderr", "strategy: 0% [00:05<?]\nstrategy: 25% [00:10<00:30]\n", True),
        ("stderr", "strategy: 0% [00:05<?]\nWarning: [x]\n", False),
        ("stderr", "UserWarning: no terms\n", False),
        ("stdout", "strategy: 0% [00:05<?]\n", False),
    ],
)
def test_only_progress_is_left_out(name: str, text: str, progress: bool) -> None:
    output = nbformat.v4.new_output("stream", name=name, text=text)
    assert notebooks.is_progress(output) == progress


def test_a_notebook_without_one_picture_is_refused() -> None:
    question = "# A title\n\nA question?\n\n![What one sees](attachment:picture.png)"
    for source, tags, pictures in (
        (question, ["picture"], 0),
        (question, ["picture"], 2),
        (question, [], 1),
        ("# A title", ["picture"], 1),
    ):
        drawn = nbformat.v4.new_code_cell(metadata={"tags": tags})
        drawn.outputs = [nbformat.v4.new_output("display_data", {"image/png": "eA=="})] * pictures
        cells = [nbformat.v4.new_markdown_cell(source), drawn]
        with pytest.raises(ValueError, match="one cell tagged picture"):
            notebooks.place_picture(nbformat.v4.new_notebook(cells=cells))


def test_a_trace_would_be_found() -> None:
    for text in ("/home/me/file.json", "<Figure at 0x7f12ab>", "in /tmp/x"):
        assert TRACES.search(text)
    assert not TRACES.search("1/2 and/or a/home/b 3/tmp")


def test_together_they_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.glob("*.ipynb")) < 3_000_000

"""Run the scripts of examples/notebooks, and write each with its outputs into its `.ipynb` file.

    python tools/notebooks.py [SCRIPT ...]

The output of the cell tagged ``picture`` becomes the attachment `PICTURE` of the first cell, which
shows it below the question.

What depends on the machine (times, versions, random names of cells) is left out. Draws are seeded,
except for those of the device in `from_program_to_device`, which takes the operating system's
randomness.
"""

from __future__ import annotations

import base64
import io
import re
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
PICTURE = "picture.png"
"""What the first cell of a notebook calls its picture, as ``![...](attachment:picture.png)``."""


_PROGRESS = re.compile(r"(.+ \[\d\d:\d\d[^\]\n]*\]\n)+")
"""What a `ProgressMeter` writes where a computation takes seconds."""


def scripts() -> list[Path]:
    """The scripts that are notebooks: those with a header of jupytext's."""
    return [path for path in sorted(FOLDER.glob("*.py")) if path.read_text().startswith("# ---\n")]


def smaller(png: str) -> str:
    """A figure in base64 with at most 64 colours, and without the name of what drew it."""
    packed = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        image.convert("RGB").quantize(64).save(packed, format="PNG", optimize=True)
    return base64.b64encode(packed.getvalue()).decode()


def executed(script: Path) -> nbformat.NotebookNode:
    """The notebook of a script, with its outputs.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        A cell failed.
    ValueError
        Not one picture, or none in the first cell.
    """
    notebook = jupytext.read(script)
    NotebookClient(
        notebook,
        timeout=600,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": script.parent}},
    ).execute()
    notebook.metadata.pop("language_info")
    notebook.metadata.jupytext.text_representation.pop("jupytext_version", None)
    for number, cell in enumerate(notebook.cells):
        cell.id = str(number)
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_progress(output)]
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", ()):
                output.data["image/png"] = smaller(output.data["image/png"])
    place_picture(notebook)
    return notebook


def is_progress(output: nbformat.NotebookNode) -> bool:
    """Whether an output only says how far a computation was: that depends on the machine."""
    return output.get("name") == "stderr" and bool(_PROGRESS.fullmatch(output.text))


def texts(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell of code printed, and the texts of what it showed."""
    return [
        [
            output.text if output.output_type == "stream" else output.data.get("text/plain", "")
            for output in cell.outputs
        ]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def place_picture(notebook: nbformat.NotebookNode) -> None:
    """Show the picture where the notebook begins."""
    pictures = [
        output.data["image/png"]
        for cell in notebook.cells
        if "picture" in cell.metadata.get("tags", ())
        for output in cell.outputs
        if "image/png" in output.get("data", ())
    ]
    if len(pictures) != 1 or f"](attachment:{PICTURE})" not in notebook.cells[0].source:
        raise ValueError(
            f"a notebook has one cell tagged picture, whose figure its first cell shows as"
            f" attachment:{PICTURE}; here are {len(pictures)}"
        )
    notebook.cells[0].attachments = {PICTURE: {"image/png": pictures[0]}}


def main() -> None:
    for script in [Path(name) for name in sys.argv[1:]] or scripts():
        nbformat.write(executed(script), script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()

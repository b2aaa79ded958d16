"""Run the scripts of examples/notebooks, and write each with its outputs into its `.ipynb` file.

    python tools/notebooks.py [SCRIPT ...]

What depends on the machine (times, versions, random names of cells) is left out. Draws are seeded,
except for those of the device in `from_program_to_device`, which takes the operating system's
randomness.
"""

from __future__ import annotations

import base64
import io
import sys
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from PIL import Image

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"


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
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", ()):
                output.data["image/png"] = smaller(output.data["image/png"])
    return notebook


def main() -> None:
    for script in [Path(name) for name in sys.argv[1:]] or scripts():
        nbformat.write(executed(script), script.with_suffix(".ipynb"))


if __name__ == "__main__":
    main()

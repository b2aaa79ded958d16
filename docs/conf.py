"""The site: `make docs` writes it to docs/_build/html, without a network."""

from __future__ import annotations

import importlib.metadata
import logging
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE))

project = "mechdesign, frequency, rangeq"
copyright = ""  # no year to keep up to date
html_show_copyright = html_show_sphinx = False
html_theme = "furo"
release = importlib.metadata.version("mechdesign")
html_title = f"mechdesign {release}"
html_static_path = ["_static"]
html_css_files = ["site.css", "wide.css"]
html_js_files = ["accessible.js"]
html_show_sourcelink = html_copy_source = False
templates_path = ["_templates"]
html_search_scorer = str(HERE / "scorer.js")  # prose before entries of the reference
extensions = ["sphinx.ext.autodoc", "sphinx_copybutton", "myst_nb", "rendering"]

# Pages named like a file at the root of the repository include that file: links between such files
# then work here too.
mirrors = [
    "LIMITS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "benchmarks/README.md",
]
exclude_patterns = [
    "_build",
    "**.py",
    *(name for name in mirrors if not (HERE.parent / name).exists()),
]

# Pages are MyST. Formulas are Unicode, or TeX between dollars where there is more than a line of
# them; that, and what notebooks print, becomes MathML, which needs no script from elsewhere.
html_math_renderer = "mathml"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "dollarmath"]

# Notebooks are those of examples/notebooks, a link to which is beside this file, with the outputs
# of their last run; a word on standard error is an error of the build.
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. ", True
nb_execution_mode = "off"
nb_output_stderr = "error"
nb_ipywidgets_js: dict[str, object] = {}
logging.getLogger("traitlets").setLevel(
    logging.WARNING
)  # a theme of the code's colours switches all messages on

# Docstrings name things in single backticks and write formulas as plain text.
default_role = "py:obj"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False  # what a class does as its base does stands there
autodoc_preserve_defaults = True
autodoc_type_aliases = {
    name: name for name in ("npt.ArrayLike", "Floats", "Items", "Reports", "Number", "Words")
}
python_maximum_signature_line_length = 100
autodoc_mock_imports = [
    "dask",
    "distributed",
    "pyarrow",
]  # large, and not needed to document what uses them
# A member's type may have namesakes; the first of them is linked.
suppress_warnings = ["ref.python"]

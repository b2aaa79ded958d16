"""What `conf.py` cannot say in settings: how docstrings, formulas and the gallery are rendered."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from html import escape
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

from docutils import nodes
from latex2mathml.converter import convert
from PIL import Image
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

from mechdesign.cli.program import parser

logger = logging.getLogger(__name__)

THUMBNAIL = 400
"""Pixels of the longer side of a picture in the gallery."""

ENTRIES = {"Parameters": "``{}``", "Attributes": "``{}``", "Raises": "`{}`"}
"""Headings over definition lists, and how their terms are set."""


def escaped(line: str) -> str:
    """A line of a docstring, with what reStructuredText would take for markup outside of backticks
    taken as it is.
    """
    parts = re.split(r"(``.*?``|`[^`]*`)", line)
    return "".join(
        part if k % 2 else re.sub(r"([*|]|_(?!\w))", r"\\\1", part) for k, part in enumerate(parts)
    )


def plain(app, what, name, obj, options, lines):
    """Docstrings as reStructuredText: underlined headings as rubrics, whose entries are definition
    lists as they are.
    """
    found, code, section = [], False, ""
    for line, below in pairwise([*lines, ""]):
        if line and set(line) == {"-"} and found:
            section = found.pop()
            found += [f".. rubric:: {section}", ""]
            continue
        code = line.lstrip().startswith(">>>") or (code and bool(line.strip()))
        if code:
            found.append(line)
        elif section in ENTRIES and re.match(r"\w", line) and below.startswith("    "):
            names, colon, kind = line.partition(" : ")
            terms = ", ".join(ENTRIES[section].format(name) for name in names.split(", "))
            found.append(terms + colon + escaped(kind))
        else:
            found.append(escaped(line))
    lines[:] = found


def linked(app, env, node, contnode):
    """What a docstring calls by the end of its name: a link if one object is called so, plain code
    otherwise.
    """
    if node.get("refdomain") != "py" or not node.get("py:module"):
        return None  # pages give whole names, and what is wrong with them is an error
    ending = "." + node["reftarget"].lstrip(".")
    objects = env.get_domain("py").objects
    names = [name for name, entry in objects.items() if name.endswith(ending) and not entry.aliased]
    if len(names) > 1:
        package = (node.get("py:module") or "").split(".")[0]
        names = [name for name in names if name.split(".")[0] == package]
    if len(names) != 1:
        return contnode
    entry = objects[names[0]]
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, names[0]
    )


def formula(translator, node):
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    text = (
        node.astext()
        .replace(r"\begin{aligned}", r"\begin{array}{rl}")
        .replace(r"\end{aligned}", r"\end{array}")
    )
    result = convert(text, display=display)
    if "\\" in result:  # what is not known is left as it is
        logger.warning("a formula with a command that is not known: %s", text, location=node)
    if display == "block":
        result = f'<div class="formula">{result}</div>'
    translator.body.append(result)
    raise nodes.SkipNode


def gallery(app, docname, content):
    """The gallery lists each notebook with what its first cell has: a title, a question, and a
    picture with a text that says what one sees.
    """
    if docname == "gallery":
        content[0] += "\n::::{container} cards\n"
        for path in sorted(Path(app.srcdir).glob("notebooks/*.ipynb")):
            first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
            title, question, seen = re.match(
                r"# (.+)\n\n((?:.+\n)+)\n!\[([^]]+)\]\(attachment:", "".join(first["source"])
            ).groups()
            title, seen = title.replace("*", ""), escape(" ".join(seen.split()))
            content[0] += (
                f":::{{container}} card\n"
                f'```{{raw}} html\n<a href="notebooks/{path.stem}.html"><img alt="{seen}"'
                f' title="{seen}" src="data:image/png;base64,{thumbnail(picture_of(first))}"></a>'
                f"\n```\n\n{{doc}}`{title} <notebooks/{path.stem}>`\\\n"
                f"{question.strip().strip('*')}\n:::\n"
            )
        content[0] += "::::\n"


def picture_of(cell):
    """The picture that a cell has attached, in base64."""
    (picture,) = cell["attachments"].values()
    return picture["image/png"]


def attached(app, docname, content):
    """Notebooks show what their first cells have attached: that is no file beside them. Where it is
    drawn it has the same text; what other figures have, `described` says.
    """
    if docname.startswith("notebooks/"):
        notebook = json.loads(content[0])
        first = notebook["cells"][0]
        source = "".join(first["source"])
        data = f"data:image/png;base64,{picture_of(first)}"
        seen = " ".join(re.search(r"!\[([^]]+)\]", source)[1].split())  # lines would be joined bare
        first["source"] = re.sub(
            r"!\[[^]]+\]\(attachment:[\w.]+\)", lambda _: f"![{seen}]({data})", source
        )
        for cell in notebook["cells"]:
            if "picture" in cell["metadata"].get("tags", ()):
                cell["metadata"]["mystnb"] = {"image": {"alt": seen}}
        content[0] = json.dumps(notebook)


def thumbnail(picture):
    """A picture in base64, smaller."""
    packed = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        small = image.convert("RGB")
        small.thumbnail((2 * THUMBNAIL, 2 * THUMBNAIL))  # sharp on screens of two dots a pixel
        small.quantize(64).save(packed, format="PNG", optimize=True)
    return base64.b64encode(packed.getvalue()).decode()


def commands(app, docname, content):
    """The pages on commands have below the heading of each what it prints with ``--help``."""
    if docname.split("/")[0] == "commands":
        with patch.dict(os.environ, {"COLUMNS": "100"}):
            program = parser([])
            (choices,) = (one.choices for one in program._actions if one.choices)
            content[0] = re.sub(
                r"^## mechdesign ?(\S*)\n",
                lambda heading: (
                    f"{heading[0]}\n```text\n{choices.get(heading[1], program).format_help()}```\n"
                ),
                content[0],
                flags=re.MULTILINE,
            )


def shortened(app, what, name, obj, options, signature, returns):
    """Names of types that stay names are not to be told from others."""
    return tuple(
        text and re.sub(r"TypeAliasForwardRef\('(.*?)'\)", r"\1", text)
        for text in (signature, returns)
    )


def without_object(app, doctree):
    """Every class has the base object: those that have no other need not say it."""
    for paragraph in [
        node for node in doctree.findall(nodes.paragraph) if node.astext() == "Bases: object"
    ]:
        paragraph.parent.remove(paragraph)


def described(app, doctree):
    """Pictures that notebooks draw have the heading above them as alternative text."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            section = image
            while not isinstance(section, nodes.section):
                section = section.parent
            image["alt"] = f"A picture of: {section.next_node(nodes.title).astext()}"


def setup(app):
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("source-read", gallery)
    app.connect("source-read", attached)
    app.connect("source-read", commands)
    app.connect("autodoc-process-signature", shortened)
    app.connect("autodoc-process-docstring", plain)
    app.connect("doctree-read", without_object)
    app.connect("doctree-read", described)
    app.connect("missing-reference", linked)

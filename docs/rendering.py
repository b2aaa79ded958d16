"""What `conf.py` cannot say in settings: how docstrings, formulas and the gallery are rendered."""

from __future__ import annotations

import base64
import io
import json
import os
import re
from functools import cached_property
from html import escape
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isclass, isroutine
from itertools import pairwise
from pathlib import Path
from pydoc import locate
from unittest.mock import patch

from docutils import nodes
from latex2mathml.converter import convert
from PIL import Image
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from mechdesign.cli.program import parser

logger = logging.getLogger(__name__)

THUMBNAIL = 1200
"""Pixels of the longer side of a picture in the gallery, in which words can be read."""

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


NAME = re.compile(r"(\w+(?:\.\w+)*)(\([\w, ]*\))?")
"""Inline code that may name an object: dotted words, perhaps with the names of arguments."""

PACKAGES = ("mechdesign.", "frequency.", "rangeq.")

OF_THE_PAST = ("CHANGELOG", "renamed")
"""Pages with names that are gone."""


INSIDE = (nodes.reference, nodes.title, nodes.rubric)
"""Where code is no link."""


class Names:
    """The objects that the reference has, by whole names and by the ends of these."""

    def __init__(self, app):
        self.app = app

    @cached_property
    def objects(self):
        return self.app.env.get_domain("py").objects

    @cached_property
    def endings(self):
        """By their last one or two words the whole names, of which aliases are none."""
        found = {}
        for name, entry in self.objects.items():
            if not entry.aliased:
                words = name.split(".")
                for ending in {".".join(words[-k:]) for k in (1, 2)}:
                    found.setdefault(ending, []).append(name)
        return found

    def whole(self, name):
        """The name under which the reference has an object: empty if it has none, and None if
        there is no such object.
        """
        if name in self.objects:
            return name
        found = locate(name)
        if found is None:
            return None
        home = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"
        return home if home in self.objects else ""

    def short(self, name, called):
        """The only object whose name ends so; empty if there is none, or several."""
        found = self.endings.get(name, []) if called or "." in name or name[0].isupper() else []
        return found[0] if len(found) == 1 else ""

    def link(self, app, doctree, docname):
        """Pages are plain Markdown: inline code that is the whole name of an object is a link to
        it, and where it is first mentioned so is the end of the name, of a class or before
        parentheses.
        """
        if docname.startswith("reference/"):
            return  # docstrings have their own way
        groups, seen = entry_points().groups, set()
        for literal in list(doctree.findall(nodes.literal)):
            match = NAME.fullmatch(literal.astext())
            if not match or any(isinstance(node, INSIDE) for node in around(literal)):
                continue
            name, called = match.groups()
            if name.startswith(PACKAGES):
                target = self.whole(name)
                if target is None and docname not in OF_THE_PAST and name not in groups:
                    logger.warning("there is no %s", name, location=literal)
            else:
                target = "" if name in seen else self.short(name, called)
                seen.add(name)
            if target:
                entry = self.objects[target]
                place = docname, entry.docname, entry.node_id
                literal.replace_self(make_refnode(app.builder, *place, literal.deepcopy(), target))


def around(node):
    while node.parent is not None:
        node = node.parent
        yield node


class Entries(SphinxDirective):
    """The public classes and functions of a module: first those that its page in `packages` names,
    in that order, then the others by name, and errors last.
    """

    required_arguments, optional_arguments, final_argument_whitespace = 1, 1, True

    def run(self):
        name, *without = " ".join(self.arguments).split()
        module = import_module(name)
        page = Path(self.env.srcdir, "packages", f"{name}.md")
        if not page.exists():
            page = page.with_name(f"{name.split('.')[0]}.md")
        self.env.note_dependency(str(page))
        text = page.read_text(encoding="utf-8")

        public = {word: getattr(module, word) for word in module.__all__ if word not in without}
        kinds = {}
        for word, one in public.items():
            if isclass(one):
                kinds[word] = "exception" if issubclass(one, Exception) else "class"
            elif isroutine(one):
                kinds[word] = "function"

        def place(word):
            found = re.search(rf"`(?:[\w.]+\.)?{word}[`(]", text)
            return kinds[word] == "exception", found.start() if found else len(text), word

        lines = [f".. automodule:: {name}", "   :no-members:", ""]
        for word in sorted(kinds, key=place):
            lines += [f".. auto{kinds[word]}:: {name}.{word}", ""]
        return self.parse_text_to_nodes("\n".join(lines))


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


def contents(app, docname, content):
    """The pages below a page, in the order and by the names of the list on the page of contents."""
    listed = Path(app.srcdir, "contents.md")
    path, below = ["index"], []
    for indent, title, page in re.findall(
        r"^( *)- \[(.+)\]\((.+)\.\w+\)", listed.read_text(encoding="utf-8"), re.MULTILINE
    ):
        page = page.removeprefix("../").removeprefix("examples/")
        path[1 + len(indent) // 2 :] = [page]
        if path[-2] == docname:
            below.append(f"{title} </{page}>")
    if below and not docname.startswith("notebooks/"):
        app.env.note_dependency(str(listed), docname=docname)
        pages = "\n".join(below)
        content[0] += f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"


def elsewhere(app, docname, content):
    """Pages link to notebooks and to files at the root of the repository where these are; the site
    has them in its own folder.
    """
    if not docname.startswith("notebooks/"):
        ups = r"(\]\((?:\.\./)*)\.\./"
        text = re.sub(ups + r"examples/(notebooks/\w+)\.ipynb", r"\1\2", content[0])
        content[0] = re.sub(ups + r"(?=(?:benchmarks/)?[A-Z]+\.md)", r"\1", text)


def gallery(app, docname, content):
    """The gallery lists notebooks: with what the first cell of each has, a question, and a picture
    with a text that says what one sees.
    """
    if docname == "gallery":
        line = r"- (\[.+\])\(notebooks/(\w+)\)\n"
        listed = re.findall(line, content[0])
        there = {path.stem for path in Path(app.srcdir).glob("notebooks/*.ipynb")}
        if left := {name for _, name in listed} ^ there:
            logger.warning("not listed, or not there: %s", left, location=docname)
        cards = "".join(card(app, *one) for one in listed)
        content[0] = re.sub(
            f"({line})+", lambda _: f"::::{{container}} cards\n{cards}::::\n", content[0], count=1
        )


def card(app, title, name):
    """A notebook in the gallery."""
    path = Path(app.srcdir, "notebooks", f"{name}.ipynb")
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    question, seen = re.match(
        r"# .+\n\n((?:.+\n)+)\n!\[([^]]+)\]\(attachment:", "".join(first["source"])
    ).groups()
    seen = escape(" ".join(seen.split()))
    return (
        f":::{{container}} card\n"
        f'```{{raw}} html\n<a href="notebooks/{name}.html"><img alt="{seen}"'
        f' title="{seen}" src="data:image/png;base64,{thumbnail(picture_of(first))}"></a>'
        f"\n```\n\n{title}(notebooks/{name})\\\n"
        f"{question.strip().strip('*')}\n:::\n"
    )


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
        small.thumbnail((THUMBNAIL, THUMBNAIL))
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
    app.add_directive("entries", Entries)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("source-read", contents)
    app.connect("source-read", elsewhere)
    app.connect("source-read", gallery)
    app.connect("source-read", attached)
    app.connect("source-read", commands)
    app.connect("autodoc-process-signature", shortened)
    app.connect("autodoc-process-docstring", plain)
    app.connect("doctree-read", without_object)
    app.connect("doctree-read", described)
    app.connect("missing-reference", linked)
    app.connect("doctree-resolved", Names(app).link)

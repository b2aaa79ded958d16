"""Docstrings of what is public have the sections of numpydoc that they need."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.sources import statements

ROOTS = ("mechdesign", "frequency", "rangeq")
MODULES = [
    name
    for root in ROOTS
    for name in (
        root,
        *(
            info.name
            for info in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}.")
            if not info.name.endswith(".__main__")
        ),
    )
    if hasattr(importlib.import_module(name), "__all__")
]
"""Those that say by an ``__all__`` what is public."""


def has(something: Any, *sections: str) -> bool:
    doc = inspect.getdoc(something) or ""
    return any(f"{section}\n{'-' * len(section)}" in doc for section in sections)


def arguments(function: Callable[..., Any]) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def lacks(function: Callable[..., Any]) -> bool:
    """Of a function of two arguments or more: a section of them, or of what it returns."""
    if len(arguments(function)) < 2:
        return not inspect.getdoc(function)
    returned = inspect.signature(function).return_annotation not in (None, "None")
    return not has(function, "Parameters") or (returned and not has(function, "Returns", "Yields"))


def class_lacks(cls: type) -> bool:
    """Of a class made from two arguments or more: a section of them, or of its attributes."""
    if issubclass(cls, BaseException) or "__init__" not in vars(cls):
        return False
    return len(arguments(cls)) >= 2 and not has(cls, "Parameters", "Attributes")


def incomplete(name: str, value: Any) -> Iterator[str]:
    """Of a class itself and its public methods, or of a function: those that lack a section."""
    if inspect.isclass(value):
        if class_lacks(value):
            yield name
        for key, member in vars(value).items():
            method = getattr(member, "__func__", member)
            # As bound to the class, a class method has the docstring that it inherits, too
            if (
                not key.startswith("_")
                and inspect.isfunction(method)
                and lacks(getattr(value, key))
            ):
                yield f"{name}.{key}"
    elif inspect.isfunction(value) and lacks(value):
        yield name


def public() -> dict[str, Any]:
    """Every exported class and function of these packages, by where it is defined."""
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.split(
                "."
            )[0] in ROOTS:
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return found


def test_public_docstrings_have_their_sections() -> None:
    lacking = {name for item in public().items() for name in incomplete(*item)}
    assert lacking == set()


def test_a_missing_section_is_found() -> None:
    def described(a: int, b: int) -> int:
        """Adds.

        Parameters
        ----------
        a, b : int
            Numbers.

        Returns
        -------
        int
            Their sum.
        """
        return a + b

    def partly(a: int, b: int) -> int:
        """Adds.

        Parameters
        ----------
        a, b : int
            Numbers.
        """
        return a + b

    class Pair:
        """Two numbers."""

        def __init__(self, a: int, b: int) -> None:
            self.a, self.b = a, b

        def plus(self, other: Pair) -> None: ...

        def _private(self, other: Pair, more: int) -> None: ...

    assert list(incomplete("described", described)) == []
    assert list(incomplete("partly", partly)) == ["partly"]
    assert list(incomplete("Pair", Pair)) == ["Pair", "Pair.plus"]


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """The names and docstrings of a file, of its classes and of its functions."""
    for node in statements(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (
            text := ast.get_docstring(node)
        ):
            yield getattr(node, "name", "file"), text


@cache
def documented() -> list[tuple[str, str, str]]:
    """The files, names and docstrings of all packages."""
    return [
        (str(path), name, text)
        for root in ROOTS
        for path in sorted((Path(__file__).parent.parent / root).rglob("*.py"))
        for name, text in docstrings(path.read_text(encoding="utf-8"))
    ]


def spills(text: str) -> bool:
    """Whether the summary of a docstring goes on below its first line."""
    return "\n" in text.partition("\n\n")[0]


def untyped(text: str) -> list[str]:
    """The entries of parameters and attributes that do not say their types."""
    found = []
    for _, entries in re.findall(
        r"(Parameters|Attributes)\n-+\n(.*?)(?=\n\n\w+\n-|\Z)", text, flags=re.DOTALL
    ):
        for line, below in pairwise([*entries.split("\n"), ""]):
            if re.match(r"[\w*]", line) and below.startswith("    ") and " : " not in line:
                found.append(line)
    return found


def test_summaries_are_one_line() -> None:
    spilling = [f"{path}: {name}" for path, name, text in documented() if spills(text)]
    assert spilling == []


def test_parameters_and_attributes_have_types() -> None:
    found = [
        f"{path}: {name}: {entry}" for path, name, text in documented() for entry in untyped(text)
    ]
    assert found == []


def test_a_missing_type_and_a_long_summary_are_found() -> None:
    entries = "Adds.\n\nParameters\n----------\na, b : int\n    Numbers.\nc\n    Another.\n\n"
    assert untyped(entries + "Returns\n-------\nint\n    Their sum.") == ["c"]
    assert spills("Adds two numbers,\nand a third.\n\nExactly.")
    assert not spills("Adds.\n\nExactly,\nand fast.")

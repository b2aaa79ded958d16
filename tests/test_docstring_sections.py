"""Docstrings of what is public have the sections of numpydoc that they need."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

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
            if not key.startswith("_") and inspect.isfunction(method) and lacks(method):
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

        def _private(self, other: Pair, more: int) -> int: ...

    assert list(incomplete("described", described)) == []
    assert list(incomplete("partly", partly)) == ["partly"]
    assert list(incomplete("Pair", Pair)) == ["Pair", "Pair.plus"]

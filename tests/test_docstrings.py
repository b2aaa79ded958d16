"""Every public name says what it is."""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

ROOTS = ("mechdesign", "frequency", "rangeq")
FOUND = [
    info
    for root in ROOTS
    for info in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}.")
]
MODULES = sorted(info.name for info in FOUND if not info.name.endswith(".__main__"))
PACKAGES = [*ROOTS, *sorted(info.name for info in FOUND if info.ispkg)]


def ours(something: Any) -> bool:
    return str(something.__module__).partition(".")[0] in ROOTS


def commented(body: list[ast.stmt], source: str) -> set[str]:
    """Names that are assigned or annotated, with a comment ``#:`` in the same line or above it."""
    lines, found = ["", *source.splitlines()], set()
    for statement in body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            above, ending = lines[statement.lineno - 1], lines[statement.end_lineno or 0]
            if isinstance(target, ast.Name) and (
                above.lstrip().startswith("#:") or "  #: " in ending
            ):
                found.add(target.id)
    return found


@functools.cache
def described(cls: type) -> tuple[str, set[str]]:
    """The docstrings of a class and what it inherits from, and the attributes with a comment."""
    family = [base for base in cls.__mro__ if ours(base)]
    own: set[str] = set()
    for source in (textwrap.dedent(inspect.getsource(base)) for base in family):
        (tree,) = ast.parse(source).body
        if isinstance(tree, ast.ClassDef):
            own |= commented(tree.body, source)
    return "\n".join(base.__doc__ or "" for base in family if is_described(base)), own


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Public ones that are defined in these packages: the first definition of each."""
    for name, member in inspect.getmembers_static(cls):
        owner = next(base for base in cls.__mro__ if name in base.__dict__)
        if not name.startswith("_") and ours(owner):
            yield name, member


def is_code(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(
        member, (classmethod, staticmethod, property, functools.cached_property)
    )


def silent_code(cls: type) -> set[str]:
    """Methods and properties that neither this class nor one that it inherits from describes."""
    family = [base for base in cls.__mro__ if base is not object]
    return {
        name
        for name, member in members(cls)
        if is_code(member)
        and not any(base.__dict__[name].__doc__ for base in family if name in base.__dict__)
    }


def silent_attributes(cls: type) -> set[str]:
    """Fields and other attributes that no docstring of the class names and that have no
    comment.
    """
    fields = (
        [field.name for field in dataclasses.fields(cls)]
        if dataclasses.is_dataclass(cls)
        else getattr(cls, "_fields", ())
    )
    names = {name for name in fields if not name.startswith("_")} | {
        name for name, member in members(cls) if not is_code(member)
    }
    text, own = described(cls)
    return {name for name in names - own if not re.search(rf"\b{name}\b", text)}


def is_described(cls: type) -> bool:
    """Not only by what `dataclass` writes of itself."""
    return cls.__doc__ is not None and not cls.__doc__.startswith(f"{cls.__name__}(")


@pytest.mark.parametrize("name", [*ROOTS, *MODULES])
def test_modules_and_their_public_names_are_described(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    for public, value in vars(module).items():
        if not public.startswith("_") and getattr(value, "__module__", None) == name:
            if inspect.isclass(value):
                assert is_described(value), f"{name}.{public}"
                assert silent_code(value) == set(), f"{name}.{public}"
            elif inspect.isfunction(value):
                assert value.__doc__, f"{name}.{public}"


def exported(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a package exports, and what the modules define that it exports."""
    for name in getattr(
        module,
        "__all__",
        [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", None) == module.__name__
        ],
    ):
        value = getattr(module, name)
        if inspect.ismodule(value) and not hasattr(value, "__path__"):
            yield from exported(value)
        yield f"{module.__name__}.{name}", value


@pytest.mark.parametrize("package", PACKAGES)
def test_attributes_of_exported_classes_are_described(package: str) -> None:
    for name, value in exported(importlib.import_module(package)):
        if inspect.isclass(value) and not name.rpartition(".")[2].startswith("_"):
            assert silent_attributes(value) == set(), name


@pytest.mark.parametrize("package", PACKAGES)
def test_exported_constants_are_described(package: str) -> None:
    constants = {
        name.rpartition(".")[2]
        for name, value in exported(importlib.import_module(package))
        if not (inspect.isclass(value) or inspect.isfunction(value) or inspect.ismodule(value))
        and name.startswith(f"{package}.")
    }
    found: set[str] = set()
    for module in MODULES:
        if constants and module.startswith(package):
            source = inspect.getsource(importlib.import_module(module))
            found |= commented(ast.parse(source).body, source)
    assert constants <= found


def test_what_is_not_described_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclasses.dataclass
    class Base:
        """Has a ``size``."""

        size: int
        colour: str  #: Of its outside.
        weight: float

        limit = 3

        def grow(self) -> None:
            """Larger it gets."""

        def shrink(self) -> None: ...

    @dataclasses.dataclass
    class Derived(Base):
        price: int = 0

        def grow(self) -> None: ...

        @property
        def cheap(self) -> None: ...

    monkeypatch.setitem(globals(), "ROOTS", ("tests",))
    assert is_described(Base)
    assert not is_described(Derived)
    assert silent_code(Derived) == {"shrink", "cheap"}
    assert silent_attributes(Derived) == {"weight", "limit", "price"}

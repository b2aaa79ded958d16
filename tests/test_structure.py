"""The structure of the packages: no import circles, and names that mean one thing."""

from __future__ import annotations

import ast
import collections
import graphlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest

from tests.sources import statements, trees

ROOT = Path(__file__).parent.parent
PACKAGES = ("mechdesign", "frequency", "rangeq")


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@cache
def trees_of_packages() -> dict[str, ast.Module]:
    """Of every file, the faces of packages too, whose names end in ``.__init__``."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return dict(zip(map(dotted, paths), trees(paths), strict=True))


ROOMS = (
    "mechdesign.base",
    "frequency.algebra",
    "frequency.core",
    "frequency.oracles",
    "rangeq.core",
)


@cache
def faces() -> dict[str, str]:
    """Every name that a face passes on, and the module that defines it."""
    return {
        f"{package}.{alias.asname or alias.name}": f"{package}.{node.module}"
        for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.pyi"))
        for package in [dotted(path.parent)]
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def imported(tree: ast.Module, files: Iterable[str]) -> set[str]:
    """Those of the files that a file imports anywhere: within functions and for types too.

    A name that a face passes on counts as the module that defines it.
    """
    names: set[str] = set()
    for node in statements(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports are absolute"
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    names |= {faces()[name] for name in names if name in faces()}
    return names & set(files)


def circle(trees: Mapping[str, ast.Module]) -> list[str]:
    """A circle of files that import each other, or nothing."""
    files = [name for name in trees if not name.endswith(".__init__")]
    graph = {name: imported(trees[name], files) - {name} for name in files}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_files_import_each_other(package: str) -> None:
    assert (
        circle(
            {name: tree for name, tree in trees_of_packages().items() if name.startswith(package)}
        )
        == []
    )


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_internals_are_entered_by_their_face(room: str) -> None:
    inside = [name for name in trees_of_packages() if name.startswith(f"{room}.")]
    direct = {
        name
        for name, tree in trees_of_packages().items()
        if name not in inside
        for node in statements(tree)
        if isinstance(node, ast.ImportFrom) and node.module in inside
    }
    assert direct == set()
    assert any(name.startswith(f"{room}.") for name in faces())


@pytest.mark.parametrize(
    "source",
    [
        "from p.b import g",
        "from p import b",
        "import p.b",
        "def f():\n    from p.b import g",
        "if TYPE_CHECKING:\n    from p.b import g",
    ],
)
def test_every_way_of_importing_counts_as_circular(source: str) -> None:
    trees = {"p.__init__": "from p.a import f", "p.a": source, "p.b": "from p.c import h"}
    trees |= {"p.c": "from p import f"}
    assert circle({name: ast.parse(text) for name, text in trees.items()}) == []
    trees["p.c"] = "from p.a import f"
    found = circle({name: ast.parse(text) for name, text in trees.items()})
    assert set(found) == {"p.a", "p.b", "p.c"}


def defined(kind: type[ast.FunctionDef] | type[ast.ClassDef]) -> list[tuple[str, str]]:
    """Module and name of what is public at the top of a file."""
    return [
        (module, node.name)
        for module, tree in trees_of_packages().items()
        for node in tree.body
        if isinstance(node, kind) and not node.name.startswith("_")
    ]


def beside(module: str, name: str) -> str:
    return f"{module.rpartition('.')[0]}.{name}"


FUNCTIONS: set[str] = set()
"""Functions that do share their names with modules: to be renamed."""


def test_no_function_shares_its_name_with_a_module_beside_it() -> None:
    modules = {module.removesuffix(".__init__") for module in trees_of_packages()}
    shared = {
        f"{module}.{name}"
        for module, name in defined(ast.FunctionDef)
        if beside(module, name) in modules
    }
    assert shared == FUNCTIONS


CLASSES: set[str] = set()
"""Names that do belong to several public classes: to be renamed."""


def test_no_two_public_classes_share_a_name() -> None:
    owners = collections.defaultdict(list)
    for module, name in defined(ast.ClassDef):
        if not any(part.startswith("_") for part in module.removesuffix(".__init__").split(".")):
            owners[name].append(module)
    assert {name for name, modules in owners.items() if len(modules) > 1} == CLASSES

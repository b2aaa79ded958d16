"""Statements of sources, which are few beside the expressions in them."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterable, Iterator
from pathlib import Path


def trees(paths: Iterable[Path]) -> list[ast.Module]:
    """What is written in files: millions of objects, of which nothing is garbage yet."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    finally:
        if enabled:
            gc.enable()


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The file itself and all statements of it, in classes, functions and branches too."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, name, [])

"""Statements of sources, which are few beside the expressions in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The file itself and all statements of it, in classes, functions and branches too."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            left += getattr(node, name, [])

"""Results of linear algebra that are off by 1e-13, relative to each entry, as on other processors.

Each processor sums the terms of a product in an order of its own. So the packages are imported with
every product of matrices and every call of linear algebra wrapped, and each numerical test runs a
second time in which these results are off. By how much follows from value and place alone: the same
product has the same result, and symmetric matrices stay so. What is exact in every order, products
of whole numbers, stays exact.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

SIZE = 1e-13
"""How far results are off at most, relative to each."""

_PRODUCTS = {"dot", "einsum", "inner", "matmul", "tensordot", "vdot"}
"""Functions of numpy."""

_SOLUTIONS = {
    *("cho_factor", "cho_solve", "cholesky", "eigh", "eigvalsh", "inv", "lstsq", "pinv", "qr"),
    *("solve", "solve_triangular"),
}
"""Functions of numpy.linalg and scipy.linalg."""


class _State:
    """How many results could be off so far, and the number of the perturbation, if there is one."""

    results = 0
    number: int | None = None


def results() -> int:
    """How many results there were so far that another processor may round in another way."""
    return _State.results


@contextmanager
def perturbed(number: int | None) -> Iterator[None]:
    """Results are off within, each number in another way; None: they are as they are."""
    before, _State.number = _State.number, number
    try:
        yield
    finally:
        _State.number = before


def install(packages: Sequence[str]) -> None:
    """Wrap what is imported of these packages from now on."""
    sys.meta_path.insert(0, _Finder(packages))


def wrapped(source: str, filename: str) -> ast.Module:
    """A module whose products of matrices and calls of linear algebra are wrapped."""
    return ast.fix_missing_locations(_Wrapping().visit(ast.parse(source, filename)))


NAMES: dict[str, Callable[..., Any]] = {}
"""What a wrapped module calls."""


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    NAMES[f"_perturbation{function.__name__}"] = function
    return function


@_named
def _matrix_product(left: Any, right: Any) -> Any:
    """``left @ right``; sparse matrices sum in one order everywhere."""
    found = left @ right
    both = isinstance(left, np.ndarray) and isinstance(right, np.ndarray)
    return found if not both or _exact(found, left, right) else _off(found)


@_named
def _product(function: Callable[..., Any], *factors: Any, **options: Any) -> Any:
    found = function(*factors, **options)
    arrays = [each for each in factors if isinstance(each, np.ndarray)]
    return found if _exact(found, *arrays) else _off(found)


@_named
def _solution(function: Callable[..., Any], *matrices: Any, **options: Any) -> Any:
    found = function(*matrices, **options)
    if isinstance(found, tuple):
        parts = [_off(part) for part in found]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return _off(found)


def _exact(*arrays: Any) -> bool:
    """Whether all are whole numbers, and so small that sums of them are not rounded."""
    for array in map(np.asarray, arrays):
        if array.dtype.kind in "fc" and not bool(
            ((array == np.rint(array)) & (np.abs(array) < 2.0**53)).all()
        ):
            return False
    return True


def _off(found: Any) -> Any:
    """A result as it is, or a little off if that is asked for."""
    if not isinstance(found, (np.ndarray, np.inexact)) or found.dtype.kind not in "fc":
        return found
    _State.results += 1
    if _State.number is None:
        return found
    places = np.full(found.shape, _State.number, dtype=np.uint64)
    for place in np.ogrid[tuple(slice(size) for size in found.shape)]:
        places += place.astype(np.uint64)
    mixed = np.abs(found).astype(np.float64).reshape(-1).view(np.uint64)
    mixed = mixed ^ (places.reshape(-1) * np.uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(0x94D049BB133111EB)
    share = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1
    moved = np.asarray(found * (1 + SIZE * share.reshape(found.shape)), dtype=found.dtype)
    return moved if isinstance(found, np.ndarray) else moved[()]


class _Wrapping(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return self._call(node, "_matrix_product", [node.left, node.right], [])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        assert not isinstance(node.op, ast.MatMult), "products in place are not wrapped"
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(ast.Name("np"), name) if name in _PRODUCTS:
                return self._call(node, "_product", [node.func, *node.args], node.keywords)
            case ast.Attribute(ast.Attribute(_, "linalg"), name) if name in _SOLUTIONS:
                return self._call(node, "_solution", [node.func, *node.args], node.keywords)
        return node

    @staticmethod
    def _call(
        old: ast.expr, name: str, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> ast.AST:
        function = ast.Name(f"_perturbation{name}", ast.Load())
        return ast.copy_location(ast.Call(function, arguments, keywords), old)


class _Loader(importlib.machinery.SourceFileLoader):
    """Modules are compiled anew if they have anything to wrap."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        source = self.get_data(self.path).decode("utf-8")
        if not any(word in source for word in (" @ ", "linalg", *(f"np.{f}" for f in _PRODUCTS))):
            return super().get_code(fullname)
        code: types.CodeType = compile(
            wrapped(source, self.path), self.path, "exec", dont_inherit=True
        )
        return code

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(NAMES)
        super().exec_module(module)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = set(packages)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.split(".")[0] not in self._packages:
            return None
        found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if found is not None and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            found.loader = _Loader(found.loader.name, found.loader.path)
        return found

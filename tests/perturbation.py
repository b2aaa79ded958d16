"""Results of linear algebra that are off by 1e-13, relative to each entry, as on other processors.

Each processor sums the terms of a product in an order of its own. So the packages are imported with
every product of matrices and every call of linear algebra wrapped, and each numerical test runs a
second time in which these results are off. By how much follows from value and place alone: the same
product has the same result, and symmetric matrices stay so. What is exact in every order, products
of whole numbers, stays exact. Eigenvectors have another sign, or another basis where eigenvalues
are equal but for rounding.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import marshal
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SIZE = 1e-13
"""How far results are off at most, relative to each."""

SAME = 1e-12
"""How far apart eigenvalues are whose vectors are known, in units of the largest."""

_PRODUCTS = {"dot", "einsum", "inner", "matmul", "tensordot", "vdot"}
"""Functions of numpy."""

_SOLUTIONS = {
    *("cho_factor", "cho_solve", "cholesky", "eigh", "eigvalsh", "inv", "lstsq", "pinv", "qr"),
    *("solve", "solve_triangular"),
}
"""Functions of numpy.linalg and scipy.linalg."""


class _State:
    """Whether a result could be off since `begin`, and the number of the perturbation."""

    numerical = False
    number: int | None = None


def begin() -> None:
    """Forget the results that there were so far."""
    _State.numerical = False


def numerical() -> bool:
    """Whether there was a result since `begin` that another processor may round in another way."""
    return _State.numerical


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
    if _known() or not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
        return found
    return found if _exact(found, left, right) else _off(found)


@_named
def _product(function: Callable[..., Any], *factors: Any, **options: Any) -> Any:
    found = function(*factors, **options)
    if _known():
        return found
    arrays = [each for each in factors if isinstance(each, np.ndarray)]
    return found if _exact(found, *arrays) else _off(found)


@_named
def _solution(function: Callable[..., Any], *matrices: Any, **options: Any) -> Any:
    found = function(*matrices, **options)
    if _known():
        return found
    if isinstance(found, tuple):
        turned = function.__name__ == "eigh" and _State.number is not None
        parts = [_off(part) for part in (_turned(*found) if turned else found)]
        return type(found)(*parts) if hasattr(found, "_fields") else tuple(parts)
    return _off(found)


def _known() -> bool:
    """Whether a result is to be left as it is, and there was one before that counts."""
    return _State.numerical and _State.number is None


def _exact(*arrays: Any) -> bool:
    """Whether all are whole numbers, and so small that sums of them are not rounded."""
    for array in map(np.asarray, arrays):
        if array.dtype.kind not in "fc" or not array.size:
            continue
        first = array.item(0)  # mostly tells
        if first.imag or not first.real.is_integer():
            return False
        if not bool(((array == np.rint(array)) & (np.abs(array) < 2.0**53)).all()):
            return False
    return True


def _off(found: Any) -> Any:
    """A result as it is, or a little off if that is asked for."""
    if not isinstance(found, (np.ndarray, np.inexact)) or found.dtype.kind not in "fc":
        return found
    _State.numerical = True
    if _State.number is None:
        return found
    mixed = np.abs(found).astype(np.float64).reshape(-1).view(np.uint64)
    mixed = (mixed ^ _places(found.shape, _State.number)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed >>= np.uint64(11)
    share = mixed.reshape(found.shape) * (SIZE * 2.0**-52) + (1 - SIZE)
    moved = np.asarray(found * share, dtype=found.dtype)
    return moved if isinstance(found, np.ndarray) else moved[()]


def _turned(values: Any, vectors: Any) -> tuple[Any, Any]:
    """Eigenvalues, shape (..., k), and other eigenvectors, shape (..., n, k)."""
    rng, vectors = np.random.default_rng(_State.number), vectors.copy()
    for place in np.ndindex(values.shape[:-1]):
        level = SAME * max(np.abs(values[place]).max(initial=0), 1e-300)
        starts = [0, *(np.flatnonzero(np.diff(values[place]) > level) + 1), values.shape[-1]]
        for start, stop in itertools.pairwise(starts):
            basis = np.linalg.qr(rng.normal(size=(stop - start, stop - start)))[0]
            vectors[place][:, start:stop] = vectors[place][:, start:stop] @ basis
    return values, vectors


@lru_cache(maxsize=256)
def _places(shape: tuple[int, ...], number: int) -> Any:
    """A number for each entry, the same for an entry and that across the diagonal."""
    places = np.full(shape, number, dtype=np.uint64)
    for place in np.ogrid[tuple(slice(size) for size in shape)]:
        places += place.astype(np.uint64)
    return places.reshape(-1) * np.uint64(0x9E3779B97F4A7C15)


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


_HOW = importlib.util.MAGIC_NUMBER + Path(__file__).read_bytes()
"""What code that is kept depends on, beside its source."""


class _Loader(importlib.machinery.SourceFileLoader):
    """Modules are compiled in a way of their own if they have anything to wrap."""

    def get_code(self, fullname: str) -> types.CodeType | None:
        written = self.get_data(self.path)
        source = written.decode("utf-8")
        if not any(word in source for word in (" @ ", "linalg", *(f"np.{f}" for f in _PRODUCTS))):
            return super().get_code(fullname)
        # Kept beside what Python compiles, since every run and every worker imports all of them
        kept = importlib.util.cache_from_source(self.path, optimization="wrapped")
        mark = hashlib.sha256(_HOW + self.path.encode() + b"\0" + written).digest()
        try:
            found = self.get_data(kept)
        except OSError:
            found = b""
        if found.startswith(mark):
            return marshal.loads(memoryview(found)[len(mark) :])
        code: types.CodeType = compile(
            wrapped(source, self.path), self.path, "exec", dont_inherit=True
        )
        if not sys.dont_write_bytecode:
            self.set_data(kept, mark + marshal.dumps(code))
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

"""Workload: the linear queries that a release shall answer well, and their Gram matrices.

A query gives a weight to each cell; a workload is a weighted set of queries. Of several attributes
it is a sum of products: each term asks every combination of one query of each attribute.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import Floats, Integers, is_whole, set_fields, shown
from rangeq.central.inputs import (
    LARGEST_DIMENSION,
    LARGEST_DOMAIN,
    LARGEST_MARGINALS,
    checked_shape,
)

LARGEST_GRAM = 1 << 12  #: The most cells of an attribute whose Gram matrix is written out: 128 MB.

LARGEST_MATRIX = 1 << 27  #: The most entries of a matrix of queries: 1 GB.

#: The largest weight in a query where the queries cannot tell all cells apart.
LARGEST_BASIS = 1 << 20

#: The largest weight, of a query or in it; the least is its inverse, so that floats suffice.
LARGEST_WEIGHT = 1 << 100

# The residual of a query, relative to it, below which it is taken for dependent on others.
_DEPENDENT = 1e-7

_NAMES = ("ranges", "prefixes", "cells", "total")

_WIDTH = re.compile(r"width-([1-9][0-9]{0,8})")

_MARGINALS = re.compile(r"(?:([1-9])-way )?marginals|([1-9])-way (ranges|prefixes)")


class InvalidWorkload(ValueError):
    """The error for what is no workload over these cells. Nothing was designed."""


@dataclass(frozen=True, eq=False)
class QuerySet:
    """Linear queries over the cells of one attribute.

    By name: "ranges", all ranges, single cells included; "prefixes", the cells 0 .. b for every b;
    "cells"; "total", one query, of all cells; "width-k", all ranges of k cells; "matrix".
    """

    name: str
    size: int  # the number of cells
    # For "matrix": shape (queries, size), finite numbers, of which no row is all 0
    matrix: npt.NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.name == "matrix":
            set_fields(self, matrix=_checked_matrix(self.matrix, self.size))
        elif self.name not in _NAMES and not _WIDTH.fullmatch(self.name):
            raise InvalidWorkload(
                "queries of an attribute are a matrix, or one of ranges, prefixes, cells, total,"
                f" width-k such as width-32; got {shown(self.name)}"
            )
        elif self.width > self.size:
            raise InvalidWorkload(f"{self.name} of {self.size} cells: there is no such range")

    @property
    def width(self) -> int:
        """The number k of "width-k"; otherwise 1."""
        match = _WIDTH.fullmatch(self.name)
        return int(match[1]) if match else 1

    @property
    def count(self) -> int:
        """The number of queries."""
        if self.matrix is not None:
            return len(self.matrix)
        return {
            "ranges": self.size * (self.size + 1) // 2,
            "prefixes": self.size,
            "cells": self.size,
            "total": 1,
        }.get(self.name, self.size - self.width + 1)

    @property
    def exchangeable(self) -> bool:
        """Whether the cells may be put in any order: "cells" and "total", and of one cell all."""
        return self.name in ("cells", "total") or (self.size == 1 and self.matrix is None)

    @cached_property
    def gram(self) -> Floats:
        """W'W for the queries' matrix W: shape (size, size), read-only; exact but for matrices."""
        if self.size > LARGEST_GRAM:
            raise InvalidWorkload(
                f"{self.size} cells have a Gram matrix of {8 * self.size**2 / 1e9:.3g} GB: it is"
                f" written out for at most {LARGEST_GRAM}"
            )
        gram = self._gram()
        gram.setflags(write=False)
        return gram

    def _gram(self) -> Floats:
        if self.matrix is not None:
            return self.matrix.T @ self.matrix
        cell = np.arange(self.size, dtype=np.float64)
        first, last = np.minimum.outer(cell, cell), np.maximum.outer(cell, cell)
        # G[i, j] counts the queries that cover both cells: a range begins at or before the first of
        # the two, and ends at or after the last
        if self.name == "ranges":
            return (first + 1) * (self.size - last)
        if self.name == "prefixes":
            return self.size - last
        if self.name == "total":
            return np.ones((self.size, self.size))
        # A range of k cells begins at 0 .. size - k, and no earlier than k - 1 cells before last
        k = self.width
        covering = np.minimum(first, self.size - k) - np.maximum(last - k + 1, 0) + 1
        return np.maximum(covering, 0.0)

    @cached_property
    def gram_error(self) -> float:
        """A bound on the spectral norm of the rounding error of `gram`: 0 for the names."""
        if self.matrix is None:
            return 0.0
        # A sum of k products of floats is off by gamma_k times the sum of absolute values, in any
        # order (Higham 2002, section 3.1). For a symmetric matrix the spectral norm is at most the
        # largest row sum
        terms = (len(self.matrix) + 2) * 2.0**-53
        row_sums = np.abs(self.matrix).T @ np.abs(self.matrix).sum(axis=1)
        # |G - W'W| <= terms / (1 - terms) |W|'|W|, whose norm is at most its largest row sum
        return 2 * terms * float(row_sums.max())

    @property
    def rank(self) -> int:
        """The number of linearly independent queries."""
        return len(self.basis)

    @cached_property
    def basis(self) -> Integers:
        """Linearly independent queries of integers that span all: (rank, size); of full rank I."""
        if self.name == "total":
            return np.ones((1, self.size), dtype=np.int64)
        if self.matrix is not None:
            return _basis(self.matrix)
        # Windows of k cells at different starts are independent, each has a first cell of its own;
        # integers, so that an optimum that is rounded keeps exactly this row space
        k, start = self.width, np.arange(self.size - self.width + 1)[:, None]
        place = np.arange(self.size)
        windows = (place >= start) & (place < start + k)
        identity = np.eye(self.size, dtype=np.int64)
        return windows.astype(np.int64) if k > 1 else identity

    @property
    def total(self) -> float:
        """The sum over all queries of their squared answer for one user in each cell."""
        if self.matrix is not None:
            return float(self.gram.sum())
        n = self.size
        return {
            "ranges": n * (n + 1) ** 2 * (n + 2) / 12,
            "prefixes": n * (n + 1) * (2 * n + 1) / 6,
            "total": float(n * n),
        }.get(self.name, float(self.width**2 * self.count))

    @property
    def trace(self) -> float:
        """The sum over all queries of their squared weights."""
        if self.matrix is not None:
            return float(np.trace(self.gram))
        n = self.size
        return {
            "ranges": n * (n + 1) * (n + 2) / 6,
            "prefixes": n * (n + 1) / 2,
            "total": float(n),
        }.get(self.name, float(self.width * self.count))

    def rows(self) -> Floats:
        """The queries themselves, shape (count, size): for small workloads and tests."""
        if self.count * self.size > LARGEST_MATRIX:
            raise InvalidWorkload(
                f"{self.count} queries of {self.size} cells are too many to write out"
            )
        if self.matrix is not None:
            return self.matrix
        place = np.arange(self.size)
        if self.name == "ranges":
            first, last = np.triu_indices(self.size)
        elif self.name == "prefixes":
            first, last = np.zeros_like(place), place
        elif self.name == "total":
            first, last = np.array([0]), np.array([self.size - 1])
        else:
            first = np.arange(self.count)
            last = first + self.width - 1
        inside = (place >= first[:, None]) & (place <= last[:, None])
        return inside.astype(np.float64)

    def __repr__(self) -> str:
        if self.matrix is not None:
            return f"{self.count} queries of {self.size} cells"
        return f"{self.name} of {self.size} cells"


@dataclass(frozen=True, eq=False)
class Term:
    """All products of one query of each attribute, with a weight for their squared errors."""

    weight: float  # above 0
    factors: tuple[QuerySet, ...]  # one for each attribute

    @property
    def count(self) -> int:
        """The number of queries."""
        return math.prod(factor.count for factor in self.factors)


Asked: TypeAlias = Any  #: The type of what `Workload.of` takes.


@dataclass(frozen=True, eq=False)
class Workload:
    """Queries over the cells of one attribute or several, and how much each of them matters.

    What is made small is the weighted mean of the queries' variances. ``a + b`` asks both, and
    ``2 * a`` gives every squared error twice the weight.

    Parameters
    ----------
    sizes : tuple of int
        The number of cells along each attribute.
    terms : tuple of Term
        At least one.

    Examples
    --------
    >>> workload = Workload.of("ranges", 256) + 10 * Workload.of("prefixes", 256)
    >>> workload.count, len(workload.terms)
    (33152, 2)
    """

    sizes: tuple[int, ...]
    terms: tuple[Term, ...]

    @classmethod
    def of(cls, workload: Asked, domain: int | Sequence[int]) -> Workload:
        """A workload from what describes it.

        Parameters
        ----------
        workload : str, array_like, sequence or Workload
            A name: "ranges", "prefixes", "cells", "total" or "width-32", which is asked along
            every attribute, so that "ranges" of two attributes are all their boxes; "marginals" or
            "3-way marginals": all cells of all marginals of two, or so many, attributes; "2-way
            ranges" or "2-way prefixes": those along two attributes, of all two. A
            sequence with a name or a `numpy.ndarray` of shape (queries, cells) for each attribute.
            Of one attribute also such a matrix itself, in any form. A sequence of pairs (weight,
            workload).
        domain : int or sequence of int
            The number of cells of one attribute, or along each of several, up to 100.

        Returns
        -------
        Workload
            Over these cells.

        Raises
        ------
        InvalidWorkload
            Anything else: an unknown name, NaN, a query that asks nothing, other sizes, a weight
            that is not above 0.
        ValueError
            A domain that is none, as for `CentralMechanism`.

        Examples
        --------
        >>> Workload.of(["ranges", "total"], (100, 4)).count
        5050
        """
        sizes = checked_shape(domain, LARGEST_MARGINALS)
        if isinstance(workload, Workload):
            if workload.sizes != sizes:
                raise InvalidWorkload(
                    f"the workload is over {_across(workload.sizes)} cells, not {_across(sizes)}"
                )
            return workload
        if isinstance(workload, str):
            return cls._named(workload, sizes)
        if isinstance(workload, (list, tuple)) and workload:
            if all(
                isinstance(entry, str)
                or (len(sizes) > 1 and isinstance(entry, np.ndarray) and entry.ndim == 2)
                for entry in workload
            ):
                return cls._product(tuple(workload), sizes)
            if all(_is_weighted(entry) for entry in workload):
                parts = [weight * cls.of(part, sizes) for weight, part in workload]
                return cls(sizes, tuple(term for part in parts for term in part.terms))
        cells = math.prod(sizes)
        queries = QuerySet("matrix", cells, workload)
        if len(sizes) > 1:
            raise InvalidWorkload(
                "a matrix is for one attribute: give the number of cells in all as the domain, or"
                " names for each attribute"
            )
        return cls(sizes, (Term(1.0, (queries,)),))

    @classmethod
    def _named(cls, name: str, sizes: tuple[int, ...]) -> Workload:
        marginals = _MARGINALS.fullmatch(name)
        if not marginals:
            return cls._product((name,) * len(sizes), sizes)
        k = int(marginals[1] or marginals[2] or 2)
        if k > len(sizes):
            raise InvalidWorkload(
                f"{name} need {k} attributes at least, and there are {len(sizes)}"
            )
        kinds = marginals[3] or "cells", "total"
        inside, totals = ([QuerySet(kind, n) for n in sizes] for kind in kinds)
        terms = [
            Term(1.0, tuple(inside[i] if i in view else totals[i] for i in range(len(sizes))))
            for view in combinations(range(len(sizes)), k)
        ]
        return cls(sizes, tuple(terms))

    @classmethod
    def _product(cls, names: tuple[Any, ...], sizes: tuple[int, ...]) -> Workload:
        if len(names) != len(sizes):
            raise InvalidWorkload(
                f"{len(names)} names are for {len(names)} attributes, and there are {len(sizes)}"
            )
        factors = (
            QuerySet(queries, size)
            if isinstance(queries, str)
            else QuerySet("matrix", size, queries)
            for queries, size in zip(names, sizes, strict=True)
        )
        return cls(sizes, (Term(1.0, tuple(factors)),))

    @property
    def count(self) -> int:
        """The number of queries."""
        return sum(term.count for term in self.terms)

    @property
    def weight(self) -> float:
        """The weight of all queries together."""
        return sum(term.weight * term.count for term in self.terms)

    @property
    def cells(self) -> int:
        """The number of cells."""
        return math.prod(self.sizes)

    @property
    def has_table(self) -> bool:
        """Whether there may be a table of all cells."""
        return len(self.sizes) <= LARGEST_DIMENSION and self.cells <= LARGEST_DOMAIN

    def __add__(self, other: Workload) -> Workload:
        if not isinstance(other, Workload):
            return NotImplemented
        if other.sizes != self.sizes:
            raise InvalidWorkload(
                f"workloads over {_across(self.sizes)} and {_across(other.sizes)} cells do not"
                " add up"
            )
        return Workload(self.sizes, self.terms + other.terms)

    def __rmul__(self, factor: float) -> Workload:
        if not _is_weight(factor):
            raise InvalidWorkload(
                f"a weight is a number above 0, from 2^-100 to 2^100, got {shown(factor)}"
            )
        weights = [term.weight * float(factor) for term in self.terms]
        if not all(map(_is_weight, weights)):
            raise InvalidWorkload("a product of weights is not between 2^-100 and 2^100")
        scaled = (Term(w, term.factors) for w, term in zip(weights, self.terms, strict=True))
        return Workload(self.sizes, tuple(scaled))

    def __repr__(self) -> str:
        def said(term: Term) -> str:
            weight = "" if term.weight == 1 else f"{term.weight:g} * "
            return weight + " x ".join(map(repr, term.factors))

        if len(self.sizes) > LARGEST_DIMENSION:
            products = f"{len(self.terms)} products" if len(self.terms) > 1 else "a product"
            return f"<Workload: {products} of queries of {len(self.sizes)} attributes>"
        shown_terms = [said(term) for term in self.terms[:4]]
        more = ["..."] if len(self.terms) > 4 else []
        return f"<Workload: {' + '.join(shown_terms + more)}>"


def gram_of(workload: Workload) -> tuple[Floats, float]:
    """The weighted Gram matrix of all queries, and a bound on the norm of its error."""
    if workload.cells > LARGEST_GRAM:
        raise InvalidWorkload(
            f"{workload.cells} cells have a Gram matrix of {8 * workload.cells**2 / 1e9:.3g} GB: it"
            f" is written out for at most {LARGEST_GRAM}"
        )
    parts = [
        term.weight * kronecker([factor.gram for factor in term.factors]) for term in workload.terms
    ]
    gram = parts[0]
    for part in parts[1:]:
        gram = gram + part
    roundings = len(parts) + len(workload.sizes) + 1
    # Products and sums of integers below 2^52 are exact in floats; otherwise each operation rounds
    # by 2^-53, relative to entries that are all bounded by the Frobenius norm
    rounded = 0.0 if _is_exact(workload) else roundings * 2.0**-52 * float(np.linalg.norm(gram))
    # |(G_1 + E_1) x .. - G_1 x ..| is at most the product of the |G_i| + |E_i| less that of the
    # |G_i|; a trace is above the spectral norm, and takes no decomposition. Twice it covers its own
    # rounding
    products = [
        Fraction(term.weight)
        * (
            math.prod(
                Fraction(float(np.trace(f.gram))) + Fraction(f.gram_error) for f in term.factors
            )
            - math.prod(Fraction(float(np.trace(f.gram))) for f in term.factors)
        )
        for term in workload.terms
    ]  # exact, as the errors may be less than the roundings of the products
    return gram, rounded + 2 * float(sum(products))


def kronecker(matrices: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The Kronecker product of some matrices, one at least."""
    product = matrices[0]
    for matrix in matrices[1:]:
        product = np.kron(product, matrix)
    return product


def _is_exact(workload: Workload) -> bool:
    """Whether all entries of the Gram matrix are integers that floats hold."""
    named = all(f.matrix is None for term in workload.terms for f in term.factors)
    largest = sum(
        term.weight * math.prod(float(f.gram.max()) for f in term.factors)
        for term in workload.terms
    )
    return named and largest < 2.0**52 and all(term.weight % 1 == 0 for term in workload.terms)


def basis_of(workload: Workload) -> Integers:
    """Return independent integer queries that span all of a workload's: shape (rank, cells)."""
    parts = [kronecker([f.basis for f in term.factors]) for term in workload.terms]
    full = next((part for part in parts if len(part) == workload.cells), None)
    if full is not None or len(parts) == 1:
        return parts[0] if full is None else np.eye(workload.cells, dtype=np.int64)
    return _basis(np.concatenate(parts).astype(np.float64))


def _across(sizes: tuple[int, ...]) -> str:
    return " x ".join(map(str, sizes))


def _is_weight(value: object) -> bool:
    if isinstance(value, (float, np.floating)):
        return bool(1 / LARGEST_WEIGHT <= value <= LARGEST_WEIGHT)
    return is_whole(value) and 0 < value <= LARGEST_WEIGHT


def _is_weighted(one: object) -> bool:
    pair = isinstance(one, (tuple, list)) and len(one) == 2
    return pair and isinstance(one[1], (str, Workload, tuple, list))  # type: ignore[index]


def _checked_matrix(given: Any, size: int) -> Floats:
    if isinstance(given, np.ndarray) and given.size > LARGEST_MATRIX:
        raise InvalidWorkload(
            f"a matrix of shape {given.shape} would take {8 * given.size / 1e9:.3g} GB: at most"
            f" {8 * LARGEST_MATRIX / 1e9:.3g} are taken; name the queries, or ask fewer"
        )
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidWorkload(
            "a workload is a name, one name an attribute, pairs (weight, workload), or a matrix of"
            f" numbers of shape (queries, cells); got {shown(given)}"
        ) from None
    if matrix.ndim != 2 or matrix.shape[1] != size or not len(matrix):
        raise InvalidWorkload(
            f"the matrix of a workload over {size} cells has shape (queries, {size}), got"
            f" {matrix.shape}"
        )
    bad = ~np.isfinite(matrix)
    if bad.any():
        query, cell = np.argwhere(bad)[0].tolist()
        raise InvalidWorkload(f"query {query} has the weight {matrix[query, cell]} at cell {cell}")
    largest = np.abs(matrix).max(axis=1)
    if largest.max() > LARGEST_WEIGHT:
        raise InvalidWorkload("a weight in a query is more than 2^100")
    nothing = ~matrix.any(axis=1)
    if nothing.any():
        raise InvalidWorkload(
            f"query {int(np.argmax(nothing))} is all 0: it asks nothing, and its answer is 0"
        )
    if largest.min() < 1 / LARGEST_WEIGHT:
        query = int(np.argmin(largest))
        raise InvalidWorkload(f"query {query} has no weight of 2^-100 or more")
    matrix.setflags(write=False)
    return matrix


def _basis(matrix: Floats) -> Integers:
    """Rows that span the others, as integers; the identity if they have full rank."""
    size = matrix.shape[1]
    # Squares lose half of the digits: a quick answer only where rounding cannot have made it
    values = np.linalg.eigvalsh(matrix.T @ matrix)
    if values[0] > 1e-10 * values[-1]:
        return np.eye(size, dtype=np.int64)
    # Of rows of length 1, so that a query's scale does not decide whether it counts. QR with
    # pivoting takes the query that is farthest from those before; its diagonal is how far
    scaled = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    triangle, order = scipy.linalg.qr(scaled.T, mode="r", pivoting=True)
    pivots = np.abs(np.diag(triangle))
    # In the order in which they were asked, so that equal workloads have equal bases
    chosen = matrix[np.sort(order[: int((pivots > _DEPENDENT * pivots[0]).sum())])]
    if len(chosen) == size:
        return np.eye(size, dtype=np.int64)
    integers = [_whole_weights(query) for query in chosen]
    if any(weights is None for weights in integers):
        raise InvalidWorkload(
            f"the queries cannot tell all {size} cells apart, as only {len(chosen)} of them are"
            " independent: then the weights of each must be integers up to 2^20, or such integers"
            " times a number"
        )
    return np.array(integers, dtype=np.int64)


def _whole_weights(query: Floats) -> Integers | None:
    """The smallest integers in the proportions of the weights; None if they exceed 2^20."""
    values, places = np.unique(query, return_inverse=True)
    # Floats are fractions with powers of two as denominators, so that proportions are exact, and no
    # tolerance decides what is an integer
    pairs = [value.as_integer_ratio() for value in values.tolist()]
    common = max(denominator for _, denominator in pairs)  # powers of two
    numbers = [numerator * (common // denominator) for numerator, denominator in pairs]
    unit = math.gcd(*numbers)
    reduced = [number // unit for number in numbers]
    if max(map(abs, reduced)) > LARGEST_BASIS:
        return None
    return np.array(reduced, dtype=np.int64)[places.reshape(-1)]

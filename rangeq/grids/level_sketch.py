"""LevelSketch: combinations of tree levels, too many for tables, in a few numbers each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.algebra import PublicBits, binary_basis, features, walsh_hadamard
from frequency.core import Aggregate
from frequency.oracles import SignChannel
from mechdesign import Audit
from mechdesign.base import Floats, Items
from rangeq.core import RecordChannel


@dataclass(frozen=True)
class LevelSketch(RecordChannel, SignChannel):
    """A random combination of levels, and one bit about the record's nodes there.

    Every attribute has a tree; a d-dim level is a level of each, its cells are combinations of
    nodes. Public random functions hash the nodes of every level of every tree to 0 .. width - 1,
    and a cell to the bitwise sum modulo 2 of what its nodes are hashed to: two cells agree with
    probability 1 / width, over the ``seed``. A report is the number of a ``level``, the ``index``
    of a Walsh-Hadamard coefficient of the record's hash there, and its ``sign`` by randomised
    response.

    As the coefficients of a sum are products of those of the nodes, those of a union of boxes are
    put together attribute by attribute: an answer never lists its cells, nor its levels one by one.

    Parameters
    ----------
    domain, epsilon, attributes : as of `RecordChannel`
        Of the whole records.
    widths : tuple of tuple of int
        For each attribute the values that a node of each level stands for, from the root.
    width : int
        How many numbers a level is kept in: a power of two, at least 2.
    seed : int, default 0
        Of the public functions.
    """

    widths: tuple[tuple[int, ...], ...]
    width: int
    seed: int = 0

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.3"

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of the tree of each attribute."""
        return tuple(map(len, self.widths))

    @property
    def _indices(self) -> dict[str, range]:
        return {"level": range(math.prod(self.levels)), "index": range(1, self.width)}

    @property
    def _public(self) -> PublicBits:
        return PublicBits("level", self.seed, sum(self.levels) * self._places)

    @property
    def _places(self) -> int:
        """The bits of a hash."""
        return self.width.bit_length() - 1

    @cached_property
    def hashes(self) -> tuple[tuple[Items, ...], ...]:
        """The hash of every node, for each attribute and each level of its tree."""
        places, public = self._places, self._public
        rows = iter(range(public.rows))
        result = []
        for size, widths in zip(self.attributes.sizes, self.widths, strict=True):
            of_levels = []
            for width in widths:
                nodes = features(np.arange(-(-size // width)))
                cell = np.zeros(len(nodes[0]), dtype=np.int64)
                for place in range(places):
                    cell |= public.bits(np.array(next(rows)), nodes).astype(np.int64) << place
                of_levels.append(cell)
            result.append(tuple(of_levels))
        return tuple(result)

    def cell_of(self, records: Items, levels: Items) -> Items:
        """Return the hash of each record at a d-dim level of its own: 0 .. width - 1.

        Parameters
        ----------
        records, levels : numpy.ndarray of int64
            Shapes (users, attributes) and (users,): a level's number counts its last attribute
            fastest.

        Returns
        -------
        numpy.ndarray of int64
            Shape (users,).
        """
        result = np.zeros(len(records), dtype=np.int64)
        for place, level in enumerate(np.unravel_index(levels, self.levels)):
            starts = np.cumsum([0, *map(len, self.hashes[place][:-1])])
            nodes = records[:, place] // np.array(self.widths[place])[level]
            result ^= np.concatenate(self.hashes[place])[starts[level] + nodes]
        return result

    @property
    def _expression(self) -> list[Any]:
        public = self._public
        return ["levels", public.text, self._places, [list(widths) for widths in self.widths]]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        level, coefficient = (numbers.astype(np.int64) for numbers in index)
        return np.bitwise_count(coefficient & self.cell_of(items, level)) & 1

    def _details(self) -> dict[str, Any]:
        return {
            **super()._details(),
            "attributes": [list(self.attributes.names), list(self.attributes.sizes)],
            "widths": [list(widths) for widths in self.widths],
            "width": self.width,
            "seed": self.seed,
        }

    def share_alike(self, items: Items) -> Fraction:
        # Coefficients orthogonal to the differences of the hashes, at each level
        levels = np.arange(math.prod(self.levels))
        cells = [self.cell_of(np.repeat(item[None], len(levels), axis=0), levels) for item in items]
        differences = np.array([cell ^ cells[0] for cell in cells]).T.tolist()
        alike = sum((self.width >> len(binary_basis(row))) - 1 for row in differences)
        return Fraction(alike, len(levels) * (self.width - 1))

    @property
    def least_alike(self) -> Fraction:
        # Records with different hashes at all levels but those of a single cell
        alone = math.prod(
            sum(width >= size for width in widths)
            for widths, size in zip(self.widths, self.attributes.sizes, strict=True)
        )
        share, apart = Fraction(alone, math.prod(self.levels)), self.width // 2 - 1
        return share + (1 - share) * Fraction(apart, self.width - 1)

    def audit(self) -> Audit:
        # Level and index do not depend on the record; given them, one sign has weight ``truth`` and
        # the other ``lie``.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        where = "a level and index where the signs of the first and last record differ"
        return Audit(self._choice.ratio, self.max_ratio, where, (0, self.domain - 1))

    # ----------------------------------------------------------------------------- the server half

    def tensor(self, aggregate: Aggregate, places: Sequence[int]) -> Floats:
        """Return estimated coefficients of all levels of some attributes, at the others' roots.

        Parameters
        ----------
        aggregate : Aggregate
            Of this channel's reports, at least one.
        places : sequence of int
            The attributes, increasing.

        Returns
        -------
        numpy.ndarray of float64
            Shape (levels of each, width), unbiased over the users' choice of levels too, and
            divided by width - 1, such that an answer is the sum of products. That of index 0 is 0.
        """
        chosen = tuple(slice(None) if k in places else 0 for k in range(len(self.levels)))
        sums = aggregate.counts.reshape(*self.levels, self.width)[chosen].astype(np.float64)
        root = 0
        for place, hashes in enumerate(self.hashes):
            root ^= 0 if place in places else int(hashes[0][0])
        # Attributes that are not asked about stand at the root, whose hash is the same for every
        # record: its coefficients are signs
        signs = 1.0 - 2 * (np.bitwise_count(np.arange(self.width) & root) & 1)
        result: Floats = sums * signs * (math.prod(self.levels) / (aggregate.n * self.contrast))
        return result

    def coefficients(self, place: int, runs: Sequence[tuple[int, int, int]]) -> Floats:
        """Return the coefficients of a union of an attribute's nodes at each level of its tree.

        Parameters
        ----------
        place : int
            The attribute.
        runs : sequence of (int, int, int)
            A level, its first node, and up to but without the last.

        Returns
        -------
        numpy.ndarray of float64
            Shape (levels, width).
        """
        counts = np.zeros((self.levels[place], self.width))
        for level, start, end in runs:
            counts[level] += np.bincount(self.hashes[place][level][start:end], minlength=self.width)
        # The transform is linear, and turns the sum modulo 2 of hashes into a product of
        # coefficients: so attributes are put together by products, and no cell is listed
        return walsh_hadamard(counts)

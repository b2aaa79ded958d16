"""Contingency tables of small counts: their privacy, and how cells and margins are released.

The table says how many people are in each cell; each person is in one. Neighbouring tables are one
of two kinds.

``"changed"``: one person moves to another cell of the same group, such as a region. How many people
each group has is public. Two cells of the group change, one up and one down, both by one; and so do
two sums of every family of margins, unless the two cells have the same sum or the family adds up
whole groups, whose sums are public. Cells are released independently. So if each has a likelihood
ratio of at most 1 / alpha for counts that differ by one, and each margin of at most 1 / beta, the
ratio of all that is released is at most 1 / (alpha^2 beta^2).

``"added"``: one person is added or removed, or changes whether they are counted. Each cell has a
public cap, and is counted up to it; no number of people is public. One cell changes, by at most
one, and so does one sum of every family of margins, which are sums of the capped cells. The ratio
is at most 1 / (alpha beta).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import (
    FRACTION_TEXT,
    INTEGERS,
    TEXT,
    Document,
    Format,
    Integers,
    Rational,
    bit_source,
    checked_counts,
    list_of,
    listed,
    optional,
    row_of,
    set_fields,
    shown,
    whole,
)
from mechdesign.exceptions import InvalidTable
from mechdesign.losses import Loss
from mechdesign.mechanism.files import Work
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike
from mechdesign.tables.axes import Axes, Where
from mechdesign.tables.consistent_table import (
    ConsistentTable,
    LeastSquares,
    Measured,
    Sparse,
    WholeTable,
    indicators,
    nearest_whole,
)
from mechdesign.tables.estimates import MeasuredCells, MeasurementErrors, WeightedEstimate
from mechdesign.tables.table_release import ContingencyStatement, TableRelease, release

_LEAST_VARIANCE = 2.0**-1000  # only sums that are public have none

_MOST = 1 << 31  # the largest count


@dataclass(frozen=True, eq=False, repr=False)
class Margin:
    """The released sums of a contingency table over all axes but some.

    Parameters
    ----------
    names : tuple of str
        The axes that are kept, in the table's order; none for the total.
    alpha : Fraction
        Of the discrete Laplace noise of each sum.
    released : numpy.ndarray of int64
        With these axes: the sums and their noise, which may be negative.
    """

    names: tuple[str, ...]
    alpha: Fraction
    released: Integers

    @property
    def variance(self) -> float:
        """The variance of the noise of each sum; above 0 also where floats would underflow."""
        return max(float(DiscreteLaplace(alpha=self.alpha).variance), _LEAST_VARIANCE)


@dataclass(frozen=True, eq=False, repr=False)
class ContingencyRelease(Document):
    """The public parts of a released contingency table: cells, margins, and whom it protects.

    `release_contingency` makes it.

    Parameters
    ----------
    axes : Axes
        The attributes of the table.
    cells : TableRelease
        The released cells, in the order of a flat array.
    within : sequence of str or None
        The axes of the groups whose numbers of people are public, and the sizes of their cells, as
        for `release_contingency`; None: the sizes are caps.
    margins : sequence of Margin, optional
        The released families of sums.

    Raises
    ------
    InvalidTable
        Parts that do not belong together.
    """

    form: ClassVar[Format] = Format(
        "mechdesign.contingency",
        {
            1: {
                "axes": list_of(row_of(TEXT, list_of(TEXT))),
                "within": optional(list_of(TEXT)),
                "cells": TableRelease.form.part,
                "margins": list_of(row_of(list_of(TEXT), FRACTION_TEXT, INTEGERS)),
            }
        },
    )

    axes: Axes
    cells: TableRelease
    within: Sequence[str] | None
    margins: Sequence[Margin] = ()

    def __post_init__(self) -> None:
        axes, cells = self.axes, self.cells
        within = None if self.within is None else _groups(axes, self.within)
        set_fields(self, within=within, margins=tuple(self.margins))
        _families(axes, within, [margin.names for margin in self.margins])
        for margin in self.margins:
            shape = tuple(axes.shape[i] for i in axes.kept(margin.names))
            if margin.released.shape != shape:
                raise InvalidTable(
                    f"the sums by {listed(margin.names) or 'nothing'} have the shape {shape}, got"
                    f" {margin.released.shape}"
                )
        if len(cells.sizes) != axes.size or cells.overlap != self.statement.changed:
            raise InvalidTable(
                f"{axes.size} cells are expected, {self.statement.changed} of one person, got"
                f" {len(cells.sizes)}, {cells.overlap} of one person"
            )
        if self.public_sums is not None and (
            (self.public_sums.ravel()[axes.groups(self.within or ())] != cells.sizes).any()
        ):
            raise InvalidTable("cells of one group have different sizes")

    @cached_property
    def statement(self) -> ContingencyStatement:
        """The statement of who is protected, and how."""
        return ContingencyStatement(
            "added" if self.within is None else "changed",
            tuple(self.within or ()),
            self.cells.statement.privacy.alpha,
            {margin.names: margin.alpha for margin in self.margins},
            self.cells.statement.reproducible,
        )

    @cached_property
    def public_sums(self) -> Integers | None:
        """The number of people of each group, with the axes `within`; None: not public."""
        if self.within is None:
            return None
        sizes = self.cells.sizes.reshape(self.axes.shape)
        kept = self.axes.kept(self.within)
        others = tuple(i for i in range(sizes.ndim) if i not in kept)
        return np.asarray(sizes.max(axis=others), dtype=np.int64)

    @property
    def released(self) -> Integers:
        """The released cells, of the table's shape."""
        return self.cells.released.reshape(self.axes.shape)

    @property
    def mechanisms(self) -> Mapping[int, Mechanism]:
        """The mechanism of the cells of each size."""
        return self.cells.mechanisms

    @property
    def questions(self) -> Axes:
        """The questions that `answer` takes."""
        return self.axes

    def answer(self, where: Where) -> WeightedEstimate:
        """Return the number of people in all cells that have some labels, from `consistent`.

        Parameters
        ----------
        where : mapping of str to str or sequence of str
            As for `Axes.where`; nothing for the total.

        Raises
        ------
        InvalidTable
            There is no such axis or label.
        """
        return self._consistent.estimate(where)

    @cached_property
    def _consistent(self) -> ConsistentTable:
        return self.consistent()

    def consistent(self) -> ConsistentTable:
        """Return the least squares estimate: unbiased; cells, margins and public sums agree.

        Each measurement is weighted by its largest variance, over all true counts. So weights are
        public, and the estimate is linear in what was measured: of all such estimates without bias
        it has the smallest `WeightedEstimate.worst_variance`.
        """
        measured = self._measured
        alphas: list[Fraction | None] = [None] * len(measured.sum_values)
        noisy = [margin.alpha for margin in self.margins for _ in range(margin.released.size)]
        alphas[: len(noisy)] = noisy
        shape = self.axes.shape
        return ConsistentTable(
            self.axes,
            self._fit,
            self._fit.fit(measured.values, measured.sum_values).reshape(shape),
            self._laws.errors(self.cells.released).and_then(MeasurementErrors.of_noise(alphas)),
            self.cells.sizes.reshape(shape),
            None if self.within is None else self.statement.within,
        )

    def whole(self, draws: int = 100, rng: np.random.Generator | None = None) -> WholeTable:
        """Return the nearest consistent table of whole numbers: **biased**, see `WholeTable`.

        Parameters
        ----------
        draws : int, default 100
            How many further draws the bias is measured from, at least 2; each takes as long as the
            table itself.
        rng : numpy.random.Generator, optional
            For these draws; None for the operating system's randomness.

        Returns
        -------
        WholeTable

        Raises
        ------
        ValueError
            Fewer than two draws.
        SolverFailure
            The solver found no optimum.
        """
        whole(draws, "draws", 2)
        table = self._nearest(self._measured)
        sums = self._measured.sums @ table
        errors = np.empty((draws, len(table)))
        source = bit_source(rng)
        for draw in range(draws):
            outputs = self._laws.draw(table, source)
            noise = [
                DiscreteLaplace(alpha=margin.alpha).draw(margin.released.size, source)
                for margin in self.margins
            ]
            again = self._measured._replace(
                values=self._laws.values(outputs),
                sum_values=sums + np.concatenate([*noise, np.zeros(self._measured.known.sum())]),
            )
            errors[draw] = self._nearest(again) - table
        shape = self.axes.shape
        return WholeTable(
            self.axes,
            table.reshape(shape),
            draws,
            errors.mean(axis=0).reshape(shape),
            (errors.std(axis=0, ddof=1) / math.sqrt(draws)).reshape(shape),
        )

    def _nearest(self, measured: Measured) -> Integers:
        start = self._fit.fit(measured.values, measured.sum_values)
        return nearest_whole(measured, self.cells.sizes, start)

    @cached_property
    def _laws(self) -> MeasuredCells:
        return MeasuredCells(self.cells.sizes, self.cells.mechanisms)

    @cached_property
    def _fit(self) -> LeastSquares:
        measured = self._measured
        return LeastSquares(measured.variances, measured.sums, measured.sum_variances)

    @cached_property
    def _measured(self) -> Measured:
        """The measurements of cells and of sums, public sums last."""
        families = [(margin.names, margin.released, margin.variance) for margin in self.margins]
        if self.public_sums is not None:
            families.append((self.statement.within, self.public_sums, 0.0))
        sums: list[Sparse] = [scipy.sparse.csr_array((0, self.axes.size), dtype=np.float64)]
        sums += [indicators(self.axes.groups(names)) for names, _, _ in families]
        return Measured(
            self._laws.values(self.cells.released),
            self._laws.worst,
            scipy.sparse.csr_array(scipy.sparse.vstack(sums)),
            np.concatenate([np.zeros(0), *(values.ravel() for _, values, _ in families)]),
            np.concatenate(
                [np.zeros(0), *(np.full(v.size, variance) for _, v, variance in families)]
            ),
        )

    def content(self) -> dict[str, Any]:
        return {
            "axes": [*zip(self.axes.names, self.axes.labels, strict=True)],
            "within": self.within,
            "cells": self.cells.content(),
            "margins": [(margin.names, margin.alpha, margin.released) for margin in self.margins],
        }

    @classmethod
    def of_content(cls, content: dict[str, Any], where: str) -> ContingencyRelease:
        cells = TableRelease.of_content(content["cells"], where, Work(content))
        stated = cls.form.read(content)
        axes = Axes(dict(stated["axes"]))
        if len(axes.names) < len(stated["axes"]):
            raise ValueError("an axis comes twice")
        margins = [
            Margin(names, DiscreteLaplace(alpha=alpha).alpha, released)
            for names, alpha, released in stated["margins"]
        ]
        return cls(axes, cells, stated["within"], margins)

    def __str__(self) -> str:
        return f"{self!r}\n{self.statement}"

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.axes.shape))
        return f"<ContingencyRelease of {shape} cells, epsilon {self.statement.epsilon:.6g}>"


def release_contingency(
    counts: npt.ArrayLike,
    axes: Axes | Mapping[str, Sequence[str]],
    privacy: Privacy | float | Rational,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    within: Sequence[str] | None = None,
    caps: npt.ArrayLike | None = None,
    margins: Mapping[tuple[str, ...], Privacy | float | Rational] | None = None,
    rng: np.random.Generator | None = None,
    cache: bool = True,
) -> ContingencyRelease:
    """Release a table of counts of people by several attributes, once.

    Each cell is released by the best mechanism for counts from 0 to the largest that is possible.
    What it protects is derived in `mechdesign.tables.contingency`, and stated by the result.

    Parameters
    ----------
    counts : array_like
        Integers of at least 0, with an axis for each attribute: the people in each cell.
    axes : Axes, or mapping of str to sequence of str
        The names of the attributes, and their labels.
    privacy : Privacy, or float, Fraction, int, str or Decimal
        Of each cell, for counts that differ by one, "adjacent"; or its epsilon. What the whole
        release costs is `ContingencyStatement.total_alpha`.
    loss : Loss, optional
        What mechanisms minimise, as in `design`; `L0()` unless given.
    properties : iterable of Property, type or str, optional
        What mechanisms have: ``["WH"]``.
    within : sequence of str, optional
        One person is protected who moves to another cell with the same labels along these axes.
        How many people there are with each combination of these labels is public, and the largest
        possible count of each of its cells; with no axes, the number of all people is.
    caps : array_like, optional
        One person is protected who is added or removed, or changes whether they are counted.
        Integers of at least 0, of a shape that broadcasts to the table's, such as the sizes of the
        groups of which each cell counts some: a count above its cap is taken for it. Public, and
        not chosen by the counts. Either ``within`` or ``caps`` is given.
    margins : mapping of tuple of str to Privacy or number, optional
        Families of sums that are released as well, with discrete Laplace noise: for the axes that
        are kept, no axes for the total, the privacy of each sum.
    rng : numpy.random.Generator, optional
        None for the operating system's randomness; a generator's draws can be repeated: not
        private.
    cache : bool, default True
        As for `release`.

    Returns
    -------
    ContingencyRelease

    Raises
    ------
    InvalidTable
        Counts, axes, caps or margins that do not go together. Nothing was released.
    ValueError
        A privacy that is out of range, or not between adjacent counts.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> counts = [[3, 4, 1], [0, 5, 2]]
    >>> axes = Axes({"region": ["north", "south"], "answer": ["yes", "no", "unknown"]})
    >>> found = release_contingency(counts, axes, Privacy(alpha="1/2"), within=["region"], rng=rng)
    >>> found.statement.total_alpha
    Fraction(1, 4)
    >>> found.consistent().margin(["region"]).round(9).tolist()
    [8.0, 7.0]
    """
    axes = axes if isinstance(axes, Axes) else Axes(axes)
    exactly = _counted(counts, axes)
    cell_privacy = adjacent(privacy)
    if within is not None and caps is None:
        within = _groups(axes, within)
        sizes = axes.margin(exactly, within).ravel()[axes.groups(within)]
    elif caps is not None and within is None:
        sizes = _capped(caps, axes)
        exactly = np.minimum(exactly, sizes.reshape(axes.shape))
    else:
        raise InvalidTable("either within is given, whose numbers of people are public, or caps")
    asked = margins or {}
    alphas = [adjacent(margin_privacy).alpha for margin_privacy in asked.values()]
    laws = dict(
        zip(
            _families(axes, within, list(asked)),
            [DiscreteLaplace(alpha=alpha) for alpha in alphas],
            strict=True,
        )
    )
    released = release(
        exactly.ravel(),
        sizes,
        cell_privacy,
        loss,
        properties,
        names=[" / ".join(labels) for labels in axes.cells()],
        overlap=1 if within is None else 2,
        rng=rng,
        cache=cache,
    )
    source = bit_source(rng)
    parts = []
    for kept, law in laws.items():
        sums = axes.margin(exactly, kept)
        noisy = sums + law.draw(sums.size, source).reshape(sums.shape)
        parts.append(Margin(kept, law.alpha, noisy))
    return ContingencyRelease(axes, released, within, parts)


def _groups(axes: Axes, within: Sequence[str]) -> tuple[str, ...]:
    """The axes of groups with public sizes, in order."""
    groups = tuple(axes.names[i] for i in axes.kept(within))
    if len(groups) == len(axes.names):
        raise InvalidTable("within names every axis: then each cell is public")
    return groups


def _families(
    axes: Axes, within: Sequence[str] | None, families: Sequence[Sequence[str]]
) -> list[tuple[str, ...]]:
    """The axes that families of margins keep, in order; InvalidTable for what none can keep."""
    result: list[tuple[str, ...]] = []
    for names in families:
        kept = tuple(axes.names[i] for i in axes.kept(names))
        if kept in result or len(kept) == len(axes.names):
            raise InvalidTable(f"a family of margins keeps some axes, once; got {shown(names)}")
        if within is not None and set(kept) <= set(within):
            raise InvalidTable(
                f"the sums by {listed(kept) or 'nothing'} are public: they add up whole groups"
            )
        result.append(kept)
    return result


def _counted(counts: npt.ArrayLike, axes: Axes) -> Integers:
    """The counts of the cells; InvalidTable for anything else."""

    def refusal(index: int | tuple[int, ...], value: object, largest: int) -> InvalidTable:
        return InvalidTable(
            f"counts{np.ravel(index).tolist()} = {shown(value)} is not a count of people"
        )

    cells = checked_counts(counts, _MOST, refusal)
    if cells.shape != axes.shape:
        raise InvalidTable(f"counts have the shape {cells.shape}, the axes {axes.shape}")
    return cells


def _capped(caps: npt.ArrayLike, axes: Axes) -> Integers:
    """The cap of each cell, flat."""
    cells = checked_counts(caps, _MOST)
    try:
        return np.broadcast_to(cells, axes.shape).ravel()
    except ValueError:
        raise InvalidTable(f"caps have the shape {cells.shape}, the axes {axes.shape}") from None


def adjacent(privacy: Privacy | float | Rational) -> Privacy:
    """Return a privacy between counts that differ by one, or that of an epsilon.

    ValueError for other neighbours.
    """
    result = Privacy.of(privacy)
    if result.neighbours != "adjacent":
        raise ValueError(
            "privacy must be between counts that differ by one, as one person changes them by one:"
            f" neighbours='adjacent', got {shown(result.neighbours)}"
        )
    return result

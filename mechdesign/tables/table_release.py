"""release(...): a table of counts, one optimal mechanism for each size of a group."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import (
    ANYTHING,
    FLAG,
    TEXT,
    Document,
    Format,
    Integers,
    ProgressMeter,
    Rational,
    aligned,
    brief,
    checked_counts,
    list_of,
    listed,
    optional,
    rounded_up,
    shown,
    whole,
    whole_number,
)
from mechdesign.exceptions import InvalidCount, NoUnbiasedEstimate
from mechdesign.losses import L0, Costs, Loss, Prior, prior_for
from mechdesign.mechanism import files
from mechdesign.mechanism.files import Work
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.values import Counts
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike
from mechdesign.tables.axes import Axes, Where
from mechdesign.tables.design_cache import TOTAL, DesignCache, designed
from mechdesign.tables.estimates import (
    CellEstimate,
    TotalEstimate,
    cells_of,
    count_interval,
    group_errors,
)
from mechdesign.tables.totals import refuse_totals

# ------------------------------------------------------------------------------------------------
# Statements of what the release of a whole table reveals about one person, exactly.


#: One person moves to another cell of their group; or is in the counts or not.
Neighbours: TypeAlias = Literal["changed", "added"]


@dataclass(frozen=True)
class TableStatement:
    """The privacy of those in a released table; ``str()`` is for readers.

    A released table is a product of independent draws, one for each cell. If one person's answer
    changes, so do the counts of at most ``overlap`` cells, and the probability of every possible
    table changes by a factor of at most (1 / alpha)^overlap.

    Attributes
    ----------
    cells : int
        How many counts are released.
    overlap : int
        In how many cells one person can be. That is the one assumption about the data.
    privacy : Privacy
        That of each cell.
    ratio : Fraction
        The largest factor between neighbouring counts in ``overlap`` cells, as audited: at most
        1 / `alpha`.
    reproducible : bool
        Whether the draws were seeded: they then protect nobody who knows the seed.
    """

    cells: int
    overlap: int
    privacy: Privacy
    ratio: Fraction
    reproducible: bool

    @cached_property
    def alpha(self) -> Fraction:
        """The alpha of a person over all cells, exact."""
        return self.privacy.alpha**self.overlap

    @property
    def epsilon(self) -> float:
        """-ln of `alpha`, rounded up."""
        return Privacy(alpha=self.alpha).epsilon

    def __str__(self) -> str:
        alpha = self.privacy.alpha
        change = {"adjacent": "by at most one", "all": "to any other"}.get(
            str(self.privacy.neighbours), f"by at most {self.privacy.neighbours}"
        )
        cells = "one cell" if self.overlap == 1 else f"at most {self.overlap:,} cells"
        power = "" if self.overlap == 1 else f"^{self.overlap}"
        exactly = f"({alpha}){power}, exactly" if power else f"{alpha}, exactly"
        if alpha.denominator >= 10**20:
            exactly = f"about {brief(self.alpha, 12)}"
        rows = [
            ("protected", f"a person who is counted in {cells}: each of these counts may change"),
            ("", f"{change} with their answer"),
            (
                "loss",
                f"no table of {self.cells:,} counts is more than {rounded_up(1 / self.alpha, 9)}"
                " times as likely with one answer as with another",
            ),
            ("", f"(alpha{power} = {exactly}; epsilon at most {self.epsilon:.9g}, rounded up)"),
            (
                "audited",
                f"every mechanism, exactly: the worst factor is {rounded_up(self.ratio, 9)}",
            ),
            ("public", "the sizes of groups, and which cells there are"),
            ("randomness", randomness(self.reproducible)),
        ]
        return "\n".join(aligned(rows))


@dataclass(frozen=True)
class ContingencyStatement:
    """Whom the release of a contingency table protects, and by how much, exactly.

    Attributes
    ----------
    neighbours : str
        ``"changed"`` or ``"added"``: see `release_contingency`.
    within : tuple of str
        The axes of the groups whose sizes are public; of ``"changed"``.
    alpha : Fraction
        Of each cell: its likelihood ratio is at most 1 / alpha for counts that differ by one.
    margins : mapping of tuple of str to Fraction
        The alpha of each family of margins, by the axes that it keeps.
    reproducible : bool
        Whether the draws were seeded: they then protect nobody who knows the seed.
    """

    neighbours: Neighbours
    within: tuple[str, ...]
    alpha: Fraction
    margins: Mapping[tuple[str, ...], Fraction]
    reproducible: bool = False

    @property
    def changed(self) -> int:
        """The number of cells that one person changes: 2 or 1."""
        return 2 if self.neighbours == "changed" else 1

    @property
    def total_alpha(self) -> Fraction:
        """The alpha of the whole release: likelihood ratios are at most one over it, exactly."""
        return (self.alpha * math.prod(self.margins.values())) ** self.changed

    @property
    def epsilon(self) -> float:
        """-ln of `total_alpha`, rounded up."""
        return Privacy(alpha=self.total_alpha).epsilon

    def __str__(self) -> str:
        each = "two" if self.changed == 2 else "one"
        changes = [f"{each} of the cells"]
        changes += [
            f"{each} of the sums by {listed(names)}" if names else f"{each} total"
            for names in self.margins
        ]
        factors = [exactly(self.alpha), *map(exactly, self.margins.values())]
        product = " * ".join(f"({factor})^2" if self.changed == 2 else factor for factor in factors)
        total = exactly(self.total_alpha)
        if self.neighbours == "changed":
            groups = f"group ({listed(self.within)})" if self.within else "table"
            who = f"one person who changes to another cell of the same {groups}"
            public = "the number of people of each group" if self.within else "their number"
        else:
            who, public = "one person more or less in the counts", "the caps of cells"
        above = "counts above their caps are taken for these: a cap stands for that or more people"
        rows = [
            ("protected", who),
            *([("counted", above)] if self.neighbours == "added" else []),
            ("changed by one", ", ".join(changes)),
            ("loss", "likelihoods change by a factor of at most 1/alpha,"),
            ("", f"alpha = {' = '.join(dict.fromkeys([product, total]))}, exactly;"),
            ("", f"epsilon at most {self.epsilon:.9g}, rounded up"),
            ("public", public),
            ("randomness", randomness(self.reproducible)),
        ]
        return "\n".join(aligned(rows))


def randomness(reproducible: bool) -> str:
    """Return what a statement says of draws that were seeded, or were not."""
    if reproducible:
        return "SEEDED: reproducible, and therefore not private"
    return "of the operating system"


def exactly(alpha: Fraction) -> str:
    """An alpha for a statement: as the fraction that it is, unless that is long."""
    return str(alpha) if alpha.denominator < 10**30 else f"about {brief(alpha, 12)}"


_LARGEST = (1 << 62) - 1  # the largest size of a group: far beyond what can be designed

_COUNTS = list_of(whole_number(0, _LARGEST))


class TableRelease(Document):
    """Released counts, and the mechanisms that they were drawn from; no true count is kept.

    Parameters are kept under their names: arrays as int64, read-only, mechanisms by ascending size.
    ``statement`` says who is protected, and how well.

    Parameters
    ----------
    released : array_like
        What the mechanisms gave, one output for each cell, shape (cells,), at least one.
    sizes : array_like
        The public size of the group of each cell, integers of at least 0, shape (cells,).
    mechanisms : mapping of int to Mechanism
        For each size n that occurs a mechanism for the counts 0 .. n, all with the same privacy.
    overlap : int, default 1
        In how many cells one person can be.
    names : sequence of str, optional
        Of the cells, shape (cells,).
    reproducible : bool, default False
        Whether the draws were seeded.

    Raises
    ------
    PrivacyViolation
        A mechanism does not keep its privacy.
    ValueError
        There are no cells, shapes differ, a mechanism is missing or does not fit its size, or a
        released count is impossible; the message names it.
    """

    form: ClassVar[Format] = Format(
        "mechdesign.table",
        {
            1: {
                "mechanisms": list_of(ANYTHING),  # which `mechdesign.mechanism.files` checks
                "sizes": _COUNTS,
                "released": _COUNTS,
                "names": optional(list_of(TEXT)),
                "overlap": whole_number(1),
                "reproducible": FLAG,
            }
        },
    )

    def __init__(
        self,
        released: npt.ArrayLike,
        sizes: npt.ArrayLike,
        mechanisms: Mapping[int, Mechanism],
        overlap: int = 1,
        names: Sequence[str] | None = None,
        reproducible: bool = False,
    ) -> None:
        self.sizes = _integers(sizes, "sizes")
        self.released = _integers(released, "released", len(self.sizes))
        self.names = _names(names, len(self.sizes))
        occurring = np.unique(self.sizes).tolist()
        if occurring != sorted(mechanisms):
            raise ValueError(
                f"the groups have the sizes {occurring}, the mechanisms are for"
                f" {sorted(mechanisms)}"
            )
        self.mechanisms = MappingProxyType({size: mechanisms[size] for size in occurring})
        self.overlap = whole(overlap, "overlap", 1, what="a number of cells")
        privacy, cells = self.mechanisms[occurring[0]].privacy, cells_of(self.sizes)
        for size, mechanism in self.mechanisms.items():
            if mechanism.inputs != size + 1 or mechanism.privacy != privacy:
                raise ValueError(
                    f"the mechanism of size {size} has {mechanism.inputs} inputs and"
                    f" {mechanism.privacy!r}; {size + 1} and {privacy!r} were expected"
                )
            if mechanism.output_values != Counts(0, mechanism.outputs - 1):
                raise ValueError(
                    f"the outputs of the mechanism of size {size} are no counts from 0"
                )
            mechanism.audit().require()
            outputs = self.released[cells[size]]
            bad = outputs >= mechanism.outputs
            if mechanism.closed is None:
                possible = np.array([any(row) for row in mechanism.weights])
                bad |= ~possible[np.minimum(outputs, mechanism.outputs - 1)]
            if bad.any():
                raise ValueError(
                    f"the mechanism of size {size} never gives {outputs[bad][0]}, which was"
                    " released"
                )
        self.statement = TableStatement(
            len(self.sizes), self.overlap, privacy, self._worst_ratio(), bool(reproducible)
        )
        self.released.setflags(write=False)
        self.sizes.setflags(write=False)

    def _worst_ratio(self) -> Fraction:
        """The product of the largest audited ratios of as many cells as one person can be in."""
        ratio, left = Fraction(1), self.overlap
        ratios = {size: Fraction(kept.audit().ratio) for size, kept in self.mechanisms.items()}
        many = Counter(self.sizes.tolist())
        for size in sorted(ratios, key=ratios.__getitem__, reverse=True):
            cells = min(left, many[size])
            ratio, left = ratio * ratios[size] ** cells, left - cells
        return ratio

    def total(self, mask: npt.ArrayLike | None = None) -> TotalEstimate:
        """The sum of the true counts, or of some of them, estimated without bias.

        Parameters
        ----------
        mask : array_like of bool, optional
            Which cells are summed, shape (cells,); None: all.

        Returns
        -------
        TotalEstimate
            With ``value``, ``variance`` and ``interval(confidence)``.

        Raises
        ------
        NoUnbiasedEstimate
            The mechanism of a group in the sum has none.
        ValueError
            The mask is not of type bool, or has another shape.
        """
        chosen = np.ones(len(self.sizes), dtype=bool) if mask is None else np.asarray(mask)
        if chosen.dtype != np.bool_ or chosen.shape != self.sizes.shape:
            raise ValueError(
                f"a mask has a bool for each of {len(self.sizes)} cells, got {chosen.dtype} of"
                f" shape {chosen.shape}"
            )
        sizes, released = self.sizes[chosen], self.released[chosen]
        return TotalEstimate(
            [
                (group_errors(self.mechanisms[size]), released[cells])
                for size, cells in cells_of(sizes).items()
            ]
        )

    @cached_property
    def questions(self) -> Axes:
        """The questions that `answer` takes: cells, by their names or else their rows."""
        return Axes({"cell": [*dict.fromkeys(self._labels)]})

    @property
    def _labels(self) -> list[str]:
        """The name of each cell; several may have one."""
        names = self.names or [""] * len(self.sizes)
        return [name if name.strip() else f"row {row}" for row, name in enumerate(names, 1)]

    def answer(self, where: Where) -> TotalEstimate:
        """Return how many people are in some cells together.

        Parameters
        ----------
        where : mapping of str to str or sequence of str
            ``{"cell": names}``, as `questions` has them; nothing for all cells.

        Returns
        -------
        TotalEstimate
            As of `total`.

        Raises
        ------
        InvalidTable
            There is no such cell.
        NoUnbiasedEstimate
            The mechanism of one of them has none.
        """
        places = np.flatnonzero(self.questions.where(where)).tolist()
        chosen = {self.questions.labels[0][place] for place in places}
        return self.total(np.array([label in chosen for label in self._labels]))

    def cells(self, confidence: float = 0.95) -> list[CellEstimate]:
        """Return what is known about each true count.

        Parameters
        ----------
        confidence : float, default 0.95
            Of the interval of each cell, strictly between 0 and 1; see `count_intervals`.

        Returns
        -------
        list of CellEstimate
            Shape (cells,), in the order of the table.

        Raises
        ------
        ValueError
            Another confidence.
        """
        estimates: list[float | None] = [None] * len(self.sizes)
        intervals = [(0, 0)] * len(self.sizes)
        for size, cells in cells_of(self.sizes).items():
            mechanism, outputs = self.mechanisms[size], self.released[cells]
            known = {i: count_interval(mechanism, i, confidence) for i in set(outputs.tolist())}
            with suppress(NoUnbiasedEstimate):
                values = group_errors(mechanism).layers.estimates(outputs).tolist()
                for cell, value in zip(cells.tolist(), values, strict=True):
                    estimates[cell] = value
            for cell, output in zip(cells.tolist(), outputs.tolist(), strict=True):
                intervals[cell] = known[output]
        names = [None] * len(self.sizes) if self.names is None else self.names
        lists = self.sizes.tolist(), self.released.tolist()
        columns = zip(names, *lists, estimates, intervals, strict=True)
        return [
            CellEstimate(name, size, output, estimate, low, high)
            for name, size, output, estimate, (low, high) in columns
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        if Path(path).suffix != ".json":
            raise ValueError(f"a release is saved as .json, not as {Path(path).name!r}")
        super().save(path)

    def content(self) -> dict[str, Any]:
        return {
            "mechanisms": [files.described(each, None) for each in self.mechanisms.values()],
            "sizes": self.sizes.tolist(),
            "released": self.released.tolist(),
            "names": self.names,
            "overlap": self.overlap,
            "reproducible": self.statement.reproducible,
        }

    @classmethod
    def of_content(
        cls, content: dict[str, Any], where: str, work: Work | None = None
    ) -> TableRelease:
        # The certificates of optimality are not in the file: `DesignCache.mechanism` has them
        left = Work(content) if work is None else work
        stated = cls.form.read(content)
        mechanisms = [
            Mechanism.from_parts(*files.checked(kept, where, left))
            for kept in stated.pop("mechanisms")
        ]
        by_size = {mechanism.inputs - 1: mechanism for mechanism in mechanisms}
        if len(by_size) < len(mechanisms):
            raise ValueError("two mechanisms are for groups of the same size")
        return cls(mechanisms=by_size, **stated)

    def __repr__(self) -> str:
        return f"<TableRelease of {len(self.sizes):,} counts, {self.statement.privacy!r}>"


def release(
    counts: npt.ArrayLike,
    sizes: npt.ArrayLike,
    privacy: Privacy | float | Rational,
    loss: Loss | Literal["total"] | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    prior: Prior | None = None,
    names: Sequence[str] | None = None,
    overlap: int = 1,
    totals: bool = True,
    rng: np.random.Generator | None = None,
    cache: bool = True,
    progress: bool = False,
) -> TableRelease:
    """Release a table of counts: each through the best mechanism for the size of its group.

    Parameters
    ----------
    counts : array_like
        The true counts, integers, shape (cells,): ``counts[g]`` of ``sizes[g]`` people.
    sizes : array_like
        The public sizes of the groups, integers of at least 0, shape (cells,).
    privacy : Privacy, float, Fraction, int, str or Decimal
        That of one cell, or its epsilon: see `Privacy.from_epsilon`. Neighbours are "adjacent",
        "all" or a distance.
    loss : Loss or "total", optional
        What is minimised for each size; `L0()` unless given. "total": the variance of the unbiased
        estimate of a count, see `mechdesign.optimisation.unbiased_design.least_variance`. A table
        of `Costs` is for the largest size; of smaller ones its first rows and columns count.
    properties : iterable of Property, type or str, optional
        What each mechanism has: ``["WH", "CM"]``.
    prior : callable or sequence, optional
        How likely the counts are, in place of a loss's own: from a size n to n + 1 weights, such as
        ``lambda n: binomial(n, "1/10")``; or weights for the largest size, of which smaller ones
        take the first. Uniform unless given.
    names : sequence of str, optional
        Of the cells, shape (cells,).
    overlap : int, default 1
        In how many cells one person can be, whose losses add up: 1 if in one group, k if in one
        group of each of k tables.
    totals : bool, default True
        False: release also where some mechanism has no unbiased estimate, so that totals with its
        groups cannot be estimated.
    rng : numpy.random.Generator, optional
        None: the operating system's randomness. A Generator: reproducible, *not* private, as
        stated.
    cache : bool, default True
        Whether designs are kept in the folder of `DesignCache`, and read from there.
    progress : bool, default False
        Show what is going on, on standard error.

    Returns
    -------
    TableRelease

    Raises
    ------
    InvalidCount
        A count that is not an integer in 0 .. the size of its group; the first is named.
    NoUnbiasedEstimate
        Some mechanism has no unbiased estimate, and ``totals`` is True; the size is named.
    Infeasible, TooLarge, SolverFailure
        As `design`.
    InvalidPrior, NotSquare
        Too few weights, or too few costs, for the largest size; or weights that are all 0.
    InvalidTable
        A row adds up others, so that somebody is in more cells than ``overlap``.
    ValueError
        There are no cells, shapes differ, a size is no integer of at least 0, or the other
        arguments are not what `design` accepts. Nothing has been drawn, as for all errors.
    """
    groups = _integers(sizes, "sizes")
    true = _true_counts(counts, groups)
    names = _names(names, len(groups))
    overlap = whole(overlap, "overlap", 1, what="a number of cells")
    privacy = Privacy.of(privacy)
    if not isinstance(properties, str):
        properties = [*properties]  # it may be read only once
    refuse_totals(true, groups, [] if names is None else [names], overlap)
    occurring = np.unique(groups).tolist()
    designer = DesignCache().mechanism if cache else designed
    sought = {size: _sought(size, loss, prior) for size in occurring}
    mechanisms: dict[int, Mechanism] = {}
    with ProgressMeter("designs", len(occurring), "sizes", shown=progress) as meter:
        for size in occurring:
            meter.say(f"groups of {size}")
            wanted, weights = sought[size]
            mechanisms[size] = designer(size, privacy, wanted, properties, prior=weights)
            if totals:
                _require_estimate(mechanisms[size])
            meter.update()
    released = np.empty_like(groups)
    for size, cells in cells_of(groups).items():
        released[cells] = mechanisms[size].release(true[cells], rng)
    return TableRelease(released, groups, mechanisms, overlap, names, rng is not None)


def _sought(
    size: int, loss: Loss | Literal["total"] | None, prior: Prior | None
) -> tuple[Loss | Literal["total"] | None, tuple[Fraction, ...] | None]:
    """What is minimised for groups of a size; of "total" with the weights of counts."""
    weights = prior_for(size, prior)
    if loss == TOTAL:
        return TOTAL, weights
    if isinstance(loss, Costs):
        if min(len(loss.table), len(loss.table[0])) > size:
            corner = tuple(row[: size + 1] for row in loss.table[: size + 1])
            loss = replace(loss, table=corner)
        loss.costs(size + 1, size + 1)  # too few are refused before any design
    return (loss if weights is None else replace(loss or L0(), prior=weights)), None


def _require_estimate(mechanism: Mechanism) -> None:
    try:
        group_errors(mechanism)
    except NoUnbiasedEstimate as error:
        raise NoUnbiasedEstimate(
            f"{error}; nothing was released. Ask for the loss 'total' or the property F"
        ) from error


def _integers(values: npt.ArrayLike, name: str, cells: int | None = None) -> Integers:
    """Integers of at least 0 in one dimension; ValueError for others, which it names."""

    def refusal(index: int | tuple[int, ...], value: object, largest: int) -> ValueError:
        return ValueError(f"{name}[{index}] = {shown(value)} is not an integer of at least 0")

    checked = checked_counts(values, _LARGEST, refusal)
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} must have one dimension and at least one cell")
    if cells is not None and len(checked) != cells:
        raise ValueError(f"there are {cells} sizes, but {len(checked)} {name}")
    return checked


def _true_counts(counts: npt.ArrayLike, sizes: Integers) -> Integers:
    """The true counts; InvalidCount for the first that its group cannot have."""
    checked = checked_counts(counts, int(sizes.max()))
    if checked.shape != sizes.shape:
        raise ValueError(f"there are {len(sizes)} sizes, but counts of shape {checked.shape}")
    if (bad := checked > sizes).any():
        first = int(bad.argmax())
        raise InvalidCount(first, int(checked[first]), int(sizes[first]))
    return checked


def _names(names: Sequence[str] | None, cells: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise TypeError("names must be a list of strings, one for each cell")
    if len(names) != cells:
        raise ValueError(f"there are {cells} sizes, but {len(names)} names")
    return tuple(names)

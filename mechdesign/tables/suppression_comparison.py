"""compare_suppression(...): suppression and rounding beside a mechanism, for one table.

All of it is computed from true counts: it is for those who may see them, not for publication.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign import named
from mechdesign.base import (
    Booleans,
    Floats,
    Integers,
    Rational,
    aligned,
    brief,
    checked_counts,
    to_text,
)
from mechdesign.exceptions import NoUnbiasedEstimate
from mechdesign.losses import Loss
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.perturbation import PerturbationTable
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike
from mechdesign.tables.design_cache import DesignCache
from mechdesign.tables.perturbed_errors import PerturbedErrors
from mechdesign.tables.suppression import LARGEST_TOTAL, SuppressionRule, totals_of, with_totals
from mechdesign.tables.suppression_reconstruction import TableReconstruction, reconstruct

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Up to this size of a group the geometric mechanism takes the place of noise.
LARGEST_TRUNCATED = 100

TOTAL = "total"  #: What stands for an axis in the name of a total.


# Kinds of protected entries: whether they are totals, and whether they are suppressed.
_KINDS = (
    ("suppressed cells", False, True),
    ("rounded cells", False, False),
    ("suppressed totals", True, True),
    ("rounded totals", True, False),
)


class ComparedEntry(NamedTuple):
    """A cell or a total, as both ways of publishing have it.

    Attributes
    ----------
    labels : tuple of str
        One for each axis; "total" where it is summed over.
    is_total : bool
        Whether it is a total.
    published : str
        What suppression and rounding show: a number, "*", or "" for a total that is left out.
    low, high : int
        Between which the count is, for readers of the whole table.
    tight : bool
        Whether both are possible.
    taken : float
        The published number, or without one the middle between ``low`` and ``high``.
    error : float
        That minus the true count.
    mean_absolute : float or None
        The expected distance of what the mechanism releases from the true count; None of a total.
    rmse : float or None
        The root mean square error of what the mechanism releases, of a total that of the sum of
        unbiased estimates; None if there is no unbiased estimate.
    """

    labels: tuple[str, ...]
    is_total: bool
    published: str
    low: int
    high: int
    tight: bool
    taken: float
    error: float
    mean_absolute: float | None
    rmse: float | None

    @property
    def name(self) -> str:
        """The labels in one text."""
        several = len(self.labels) > 1 and set(self.labels) == {TOTAL}
        return "grand total" if several else ", ".join(self.labels)


class Disclosed(NamedTuple):
    """The numbers of entries of one kind, and of those that are given away.

    Attributes
    ----------
    entries : int
        Entries that are suppressed, or rounded.
    recovered : int
        Those of them with one possible count.
    within_one : int
        Those of them that some number is at most 1 away from, for certain.
    open : int
        Those of the others that could be narrower than they are proved to be.
    """

    entries: int
    recovered: int
    within_one: int
    open: int


@dataclass(frozen=True, eq=False)
class SuppressionComparison:
    """Suppression and rounding beside a mechanism: errors, and what readers can conclude.

    Attributes
    ----------
    reconstruction : TableReconstruction
        What is published, and what it gives away.
    privacy : Privacy
        What the mechanism promises for one cell.
    mechanism : str
        What the counts are released by.
    rows : tuple of ComparedEntry
        First the cells, then the totals, in the order of the table.
    perturbed : tuple of PerturbedErrors
        How far the perturbation tables that were given are off, and what they reveal.
    """

    reconstruction: TableReconstruction
    privacy: Privacy
    mechanism: str
    rows: tuple[ComparedEntry, ...]
    perturbed: tuple[PerturbedErrors, ...] = ()

    def disclosed(self, *, totals: bool = False, suppressed: bool = True) -> Disclosed:
        """Count the protected entries, and those that readers recover.

        Parameters
        ----------
        totals : bool, default False
            Of totals, not of cells.
        suppressed : bool, default True
            Of those that are suppressed, not of those that are rounded.

        Returns
        -------
        Disclosed
        """
        reconstruction = self.reconstruction
        published = reconstruction.published
        kind: Booleans = published.protected & (published.suppressed == suppressed)
        kind &= totals_of(kind.shape) == totals
        recovered, near = kind & reconstruction.recovered, kind & reconstruction.within_one
        return Disclosed(
            *(
                int(each.sum())
                for each in (kind, recovered, near, kind & ~reconstruction.tight & ~recovered)
            )
        )

    def rmse(self, *, totals: bool = False) -> tuple[float, float | None]:
        """The root mean square errors of suppression with rounding and of the mechanism.

        Parameters
        ----------
        totals : bool, default False
            Over the totals, not over the cells.

        Returns
        -------
        suppression, mechanism : float
            In persons; the second is None if totals have no unbiased estimate.
        """
        rows = [row for row in self.rows if row.is_total == totals]
        first = math.sqrt(sum(row.error**2 for row in rows) / len(rows))
        errors = [row.rmse for row in rows if row.rmse is not None]
        if len(errors) < len(rows):
            return first, None
        return first, math.sqrt(sum(error**2 for error in errors) / len(rows))

    def to_dict(self) -> dict[str, Any]:
        """Everything as numbers, texts, lists and mappings, for JSON."""
        rule = self.reconstruction.published.rule
        return {
            "rule": {name: getattr(rule, name) for name in rule.__dataclass_fields__},
            "alpha": to_text(self.privacy.alpha),
            "epsilon": self.privacy.epsilon,
            "mechanism": self.mechanism,
            "disclosed": {
                name: self.disclosed(totals=totals, suppressed=suppressed)._asdict()
                for name, totals, suppressed in _KINDS
            },
            "rmse": {
                name: dict(zip(("suppression", "mechanism"), self.rmse(totals=totals), strict=True))
                for name, totals in (("cells", False), ("totals", True))
            },
            "perturbation": {each.name: each.to_dict() for each in self.perturbed},
            "entries": [row._asdict() for row in self.rows],
        }

    def __str__(self) -> str:
        return "\n".join([*self._table(), *self._summary()])

    def _table(self) -> list[str]:
        heading = ("", "published", "possible", "off by", "mechanism: off by", "RMSE")
        return aligned(
            [
                heading,
                *(
                    (
                        row.name,
                        row.published,
                        _interval(row),
                        f"{row.error:+g}" if row.error else "0",
                        "" if row.mean_absolute is None else f"{row.mean_absolute:.2f}",
                        "" if row.rmse is None else f"{row.rmse:.2f}",
                    )
                    for row in self.rows
                ),
            ]
        )

    def _summary(self) -> list[str]:
        said = []
        for name, totals, suppressed in _KINDS:
            counts = self.disclosed(totals=totals, suppressed=suppressed)
            if counts.entries:
                said.append(
                    f"{name}: {counts.entries}, of which readers recover {counts.recovered} exactly"
                    f" and {counts.within_one} to within 1"
                    + (f"; {counts.open} more perhaps, the search was cut off" * (counts.open > 0))
                )
        for name, totals in (("cells", False), ("totals", True)):
            suppression, mechanism = self.rmse(totals=totals)
            said.append(
                f"root mean square error over {name}: suppression {suppression:.2f}, mechanism "
                + ("without an unbiased estimate" if mechanism is None else f"{mechanism:.2f}")
            )
        alpha = self.privacy.alpha
        return [
            *said,
            "suppression: taken are published numbers, else the middle of what is possible; it"
            " promises nothing about readers who know more",
            f"mechanism: {self.mechanism}; whatever readers know, one person more or less in a cell"
            f" changes no likelihood by more than a factor of {brief(1 / alpha)}, one who moves to"
            f" another cell by more than its square (alpha = {to_text(alpha)}, epsilon at most"
            f" {self.privacy.epsilon:.6g})",
            *map(str, self.perturbed),
        ]

    def plot(self) -> Figure:
        """Draw what is possible behind each entry and what is taken, and the mechanism's error.

        Returns
        -------
        matplotlib.figure.Figure
            One line an entry; `mechdesign.plot.save` writes it.

        Raises
        ------
        ValueError
            There are more than 150 entries.
        """
        from mechdesign.tables.suppression_plot import intervals_and_errors

        truth = np.array([row.taken - row.error for row in self.rows])
        # The rows are the cells, then the totals
        protected = self.reconstruction.published.protected
        totals = totals_of(protected.shape)
        return intervals_and_errors(
            [row.name for row in self.rows],
            np.array([(row.low, row.high) for row in self.rows]) - truth[:, None],
            np.concatenate([protected[~totals], protected[totals]]),
            np.array([row.error for row in self.rows]),
            np.array([math.nan if row.rmse is None else row.rmse for row in self.rows]),
            sum(not row.is_total for row in self.rows),
            perturbed={
                each.name: np.sqrt(np.concatenate([each.squares[~totals], each.squares[totals]]))
                for each in self.perturbed
            },
        )


def compare_suppression(
    counts: npt.ArrayLike,
    rule: SuppressionRule,
    privacy: Privacy | float | Rational,
    sizes: npt.ArrayLike | None = None,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    labels: Sequence[Sequence[str]] | None = None,
    perturbation: Mapping[str, PerturbationTable] | None = None,
    rng: np.random.Generator | None = None,
    progress: bool = False,
) -> SuppressionComparison:
    """Publish a table by suppression and rounding, attack it, and compare with a mechanism.

    If a loss or properties are asked for, each cell has the mechanism designed for the size of its
    group, which `DesignCache` keeps. Otherwise it has discrete Laplace noise, or with the size of
    its group the geometric mechanism, which is that noise cut to the possible counts and the best
    for `L0`; above `LARGEST_TRUNCATED` the difference does not matter. Totals are sums of unbiased
    estimates of the cells. Expected errors are exact, for the true counts.

    Parameters
    ----------
    counts : array_like of int
        The true counts, one axis or more; each person is in at most one cell.
    rule : SuppressionRule
        What is suppressed and rounded.
    privacy : Privacy, float, Fraction, int, str or Decimal
        Of one cell, or its epsilon, between counts that differ by one: see `Privacy.of`.
    sizes : array_like of int, optional
        The public sizes of the groups, of the same shape.
    loss : Loss, optional
        The loss that the mechanisms minimise.
    properties : iterable of Property, type or str, optional
        What designs minimise, and what they must have, as in `mechdesign.design`.
    labels : sequence of sequence of str, optional
        Names along each axis; numbers from 0 unless given.
    perturbation : mapping of str to PerturbationTable, optional
        Perturbation tables of cell keys, by name: how far they would be off, totals too, each of
        which has noise of its own.
    rng : numpy.random.Generator, optional
        For random rounding; None: one seeded by the operating system.
    progress : bool, default False
        Show what is going on, on standard error.

    Returns
    -------
    SuppressionComparison
        Confidential.

    Raises
    ------
    InvalidCount
        A count is no integer from 0 to the size of its group.
    ValueError
        Shapes or numbers of labels differ; a loss or properties without sizes, or neither though
        neighbours are not adjacent counts.

    Examples
    --------
    >>> rule = SuppressionRule(threshold=7)
    >>> found = compare_suppression([[3, 12], [20, 31]], rule, Privacy.from_epsilon(1))
    >>> found.disclosed()
    Disclosed(entries=1, recovered=1, within_one=1, open=0)
    """
    privacy = Privacy.of(privacy)
    wanted = tuple(properties)
    if sizes is None and (loss is not None or wanted):
        raise ValueError("a loss or properties ask for a design, which takes the sizes of groups")
    published = rule.publish(counts, sizes, rng)
    truth = with_totals(checked_counts(counts, LARGEST_TOTAL))
    names = _names(truth.shape, labels)
    cells = (slice(-1),) * truth.ndim
    mechanism, errors = _errors(truth[cells], published.sizes, privacy, loss, wanted)
    squares = with_totals(errors[2])
    squares[cells] = errors[1]
    reconstruction = reconstruct(published, progress=progress)
    rows = []
    for place, is_total in np.ndenumerate(totals_of(truth.shape)):
        low, high, value = (
            int(each[place]) for each in (reconstruction.low, reconstruction.high, published.values)
        )
        mark = "*" if published.suppressed[place] else ""
        shown = "" if mark or (is_total and rule.totals == "none") else str(value)
        taken = float(value) if shown else (low + high) / 2
        rows.append(
            ComparedEntry(
                tuple(axis_labels[k] for axis_labels, k in zip(names, place, strict=True)),
                bool(is_total),
                shown or mark,
                low,
                high,
                bool(reconstruction.tight[place]),
                taken,
                taken - int(truth[place]),
                None if is_total else float(errors[0][place]),
                None if np.isnan(squares[place]) else math.sqrt(squares[place]),
            )
        )
    rows.sort(key=lambda row: row.is_total)
    perturbed = tuple(
        PerturbedErrors.of(name, table, truth, privacy)
        for name, table in (perturbation or {}).items()
    )
    return SuppressionComparison(reconstruction, privacy, mechanism, tuple(rows), perturbed)


def _names(shape: tuple[int, ...], labels: Sequence[Sequence[str]] | None) -> list[list[str]]:
    """The labels along each axis, with that of the totals; ``shape`` includes them."""
    if labels is None:
        labels = [[str(k) for k in range(length - 1)] for length in shape]
    lengths = tuple(len(axis_labels) + 1 for axis_labels in labels)
    if lengths != shape:
        raise ValueError(
            f"labels must be as many as the table has along each axis, {[n - 1 for n in shape]},"
            f" got {[n - 1 for n in lengths]}"
        )
    return [[*axis_labels, TOTAL] for axis_labels in labels]


def _errors(
    counts: Integers,
    sizes: Integers | None,
    privacy: Privacy,
    loss: Loss | None,
    properties: tuple[PropertyLike, ...],
) -> tuple[str, Floats]:
    """Return what each cell's mechanism is, and its errors at the true counts.

    Shapes: `counts` (a, b, ...); returns (3, a, b, ...): the expected distance, the expected
    square, and the variance of the unbiased estimate, NaN where there is none.
    """
    noise = "discrete Laplace noise"
    designed = loss is not None or bool(properties)
    limit = LARGEST_TOTAL if designed else LARGEST_TRUNCATED
    largest = 0 if sizes is None else int(sizes.max())
    cells = np.zeros((3, counts.size))
    cache = DesignCache()
    of_size: dict[int, tuple[Mechanism, UnbiasedEstimate | None]] = {}
    if not designed and privacy.neighbours != "adjacent":
        raise ValueError(
            "noise and the geometric mechanism are for neighbours that are adjacent counts; ask for"
            " a loss or properties"
        )
    if sizes is None or largest > limit:
        alpha = privacy.alpha
        variance = float(DiscreteLaplace(alpha=alpha).variance)
        cells[:] = [[float(2 * alpha / (1 - alpha**2))], [variance], [variance]]
    if sizes is None:
        return noise, cells.reshape(3, *counts.shape)
    for place, (count, size) in enumerate(
        zip(counts.ravel().tolist(), sizes.ravel().tolist(), strict=True)
    ):
        if size > limit:
            continue
        if size not in of_size:
            made = (
                cache.mechanism(size, privacy, loss, properties)
                if designed
                else named.geometric(size, alpha=privacy.alpha)
            )
            of_size[size] = made, None
            with suppress(NoUnbiasedEstimate):
                of_size[size] = made, UnbiasedEstimate(made)
        made, estimate = of_size[size]
        column = [(abs(i - count), row[count]) for i, row in enumerate(made.weights)]
        cells[:, place] = (
            Fraction(sum(d * weight for d, weight in column), made.denominator),
            Fraction(sum(d * d * weight for d, weight in column), made.denominator),
            math.nan if estimate is None else estimate.variances[count],
        )
    name = "designed for the size of each group" if designed else "the geometric one of each size"
    if largest > limit:
        name += f" up to {limit}, above {noise}"
    return name, cells.reshape(3, *counts.shape)


def _interval(row: ComparedEntry) -> str:
    text = str(row.low) if row.low == row.high else f"{row.low} to {row.high}"
    return text if row.tight else f"within {text}"

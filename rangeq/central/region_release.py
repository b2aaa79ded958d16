"""Small counts of regions in regions: designed mechanisms for the leaves, noise above, inference.

One person's answer changes the count of one leaf by one, and that of each region which the leaf is
a part of. The counts of leaves, of public sizes, are released by the best mechanisms for such
sizes; those of the regions above with discrete Laplace noise. Each level has an alpha of its own,
and the product of them all is exactly the alpha of the release: the ratio of the likelihoods of all
that is released is at most one over it. All counts are then combined by least squares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, ConfidenceInterval
from frequency.exceptions import InvalidQuestion
from mechdesign.base import (
    FRACTION_TEXT,
    TEXT,
    Document,
    Floats,
    Format,
    Integers,
    Rational,
    aligned,
    bit_source,
    list_of,
    optional,
    set_fields,
    shown,
    whole_number,
)
from mechdesign.exceptions import InvalidTable
from mechdesign.losses import Loss
from mechdesign.mechanism.files import Work
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike
from mechdesign.tables import Axes, TableRelease, WeightedEstimate, Where, release
from mechdesign.tables.contingency import adjacent
from mechdesign.tables.estimates import MeasuredCells, MeasurementErrors
from mechdesign.tables.table_release import exactly, randomness
from rangeq.central import mechanism as budgets
from rangeq.central.matrix_mechanism.mechanism import nearest_counts, whole_counts
from rangeq.central.regions import Region, Regions
from rangeq.core import TreeInference


@dataclass(frozen=True)
class RegionStatement:
    """A statement of whom a release of regions protects, and by how much, exactly.

    Attributes
    ----------
    levels : tuple of (Fraction or None)
        The alphas of each depth of regions with parts, from the top, and of the leaves; None: not
        asked.
    reproducible : bool
        Whether the draws were seeded: they then protect nobody who knows the seed.
    """

    levels: tuple[Fraction | None, ...]
    reproducible: bool = False

    @property
    def alpha(self) -> Fraction:
        """The product: likelihood ratios of all that is released are at most one over it."""
        product = Fraction(1)
        for alpha in self.levels:
            product *= 1 if alpha is None else alpha
        return product

    @property
    def epsilon(self) -> float:
        """-ln of `alpha`, rounded up."""
        return Privacy(alpha=self.alpha).epsilon

    def __str__(self) -> str:
        names = [f"depth {depth}" for depth in range(len(self.levels) - 1)] + ["leaves"]
        factors = [
            f"{name} {'not asked' if alpha is None else exactly(alpha)}"
            for name, alpha in zip(names, self.levels, strict=True)
        ]
        rows = [
            ("protected", "one person's answer: the count of one leaf may change by one, and that"),
            ("", "of each region above it"),
            ("loss", "likelihoods change by a factor of at most 1/alpha,"),
            ("", f"alpha = {exactly(self.alpha)}, exactly, the product of: {', '.join(factors)};"),
            ("", f"epsilon at most {self.epsilon:.9g}, rounded up"),
            ("public", "the sizes of leaves"),
            ("randomness", randomness(self.reproducible)),
        ]
        return "\n".join(aligned(rows))


@dataclass(frozen=True, eq=False, repr=False)
class RegionRelease(Document):
    """A release of regions: the counts of all levels, and whom it protects.

    All of it is public. `release_regions` makes it.

    Parameters
    ----------
    regions : Regions
        The tree.
    leaves : TableRelease
        The released counts of the leaves.
    noisy : numpy.ndarray of int64
        Shape (regions,): the counts of the regions with parts, and noise; 0 where there is none.
    levels : sequence of (Fraction or None)
        The alpha of each depth of regions with parts, from the top; None where it is not asked.

    Raises
    ------
    InvalidTable
        Parts that do not belong together.
    """

    form: ClassVar[Format] = Format(
        "mechdesign.regions",
        {
            1: {
                "leaves": TableRelease.form.part,
                "regions": list_of(list_of(TEXT)),
                "levels": list_of(optional(FRACTION_TEXT)),
                "noisy": list_of(whole_number()),
            }
        },
    )

    regions: Regions
    leaves: TableRelease
    noisy: Integers
    levels: Sequence[Fraction | None]

    def __post_init__(self) -> None:
        regions = self.regions
        set_fields(self, levels=tuple(self.levels))
        if self.leaves.sizes.shape != regions.leaves.shape or self.leaves.overlap != 1:
            raise InvalidTable(
                f"{len(regions.leaves)} leaves are expected, one of one person, got"
                f" {len(self.leaves.sizes)}, {self.leaves.overlap} of one person"
            )
        if len(self.levels) != regions.inner_depths or self.noisy.shape != (len(regions),):
            raise InvalidTable(
                f"{regions.inner_depths} depths of regions with parts and {len(regions)} counts are"
                f" expected, got {len(self.levels)} and the shape {self.noisy.shape}"
            )

    @cached_property
    def statement(self) -> RegionStatement:
        """Who is protected, and how."""
        statement = self.leaves.statement
        return RegionStatement((*self.levels, statement.privacy.alpha), statement.reproducible)

    def estimate(self) -> RegionEstimate:
        """Return the least squares estimates of all regions: unbiased, and parts add up.

        Each count is weighted by its variance, that of a leaf by the largest for all true counts.
        So the weights are public, and the estimate is linear in what was released: of all such
        estimates without bias it has the smallest `worst_variances`.

        Returns
        -------
        RegionEstimate
            Of all regions.
        """
        regions, leaves = self.regions, self.regions.leaves
        cells = MeasuredCells(self.leaves.sizes, self.leaves.mechanisms)
        alphas = [
            self.levels[depth] if inner else None
            for depth, inner in zip(regions.depths.tolist(), regions.inner.tolist(), strict=True)
        ]
        errors = MeasurementErrors.of_noise(alphas)
        for of_regions, of_leaves in zip(errors, cells.errors(self.leaves.released), strict=True):
            of_regions[leaves] = of_leaves
        counts = self.noisy.astype(np.float64)
        counts[leaves] = cells.values(self.leaves.released)
        asked = np.array([alpha is not None for alpha in alphas]) | ~regions.inner
        inference = TreeInference(regions.parents, np.where(asked, errors.worst, np.inf))
        sizes = regions.sums(self.leaves.sizes)
        return RegionEstimate(regions, inference, inference.estimate(counts), errors, sizes)

    @property
    def mechanisms(self) -> Mapping[int, Mechanism]:
        """The mechanism of the leaves of each size."""
        return self.leaves.mechanisms

    @cached_property
    def questions(self) -> Axes:
        """The subjects of `answer`: regions by their paths, such as "Kent / Dover"."""
        return Axes({"region": [" / ".join(path) for path in self.regions.paths]})

    def answer(self, where: Where) -> Answer:
        """Return how many people are in a region, or in several that have nobody in common.

        Parameters
        ----------
        where : mapping of str to str or sequence of str
            ``{"region": names}``, as `questions` has them; nothing for all people.

        Returns
        -------
        Answer
            Of `estimate`.

        Raises
        ------
        InvalidTable
            There is no such region.
        InvalidQuestion
            Two have people in common.
        """
        numbers = np.flatnonzero(self.questions.where(where) if where else self.regions.depths == 0)
        asked: list[Region] = [self.regions.paths[number] for number in numbers]
        return self._estimate.answer(asked)

    @cached_property
    def _estimate(self) -> RegionEstimate:
        return self.estimate()

    def content(self) -> dict[str, Any]:
        return {
            "leaves": self.leaves.content(),
            "regions": [self.regions.paths[number] for number in self.regions.leaves],
            "levels": self.levels,
            "noisy": self.noisy.tolist(),
        }

    @classmethod
    def of_content(cls, content: dict[str, Any], where: str) -> RegionRelease:
        leaves = TableRelease.of_content(content["leaves"], where, Work(content))
        stated = cls.form.read(content)
        levels = [
            None if alpha is None else DiscreteLaplace(alpha=alpha).alpha
            for alpha in stated["levels"]
        ]
        noisy = np.array(stated["noisy"], np.int64)
        result = cls(Regions(stated["regions"]), leaves, noisy, levels)
        cls.form.require_same(result.content(), content, but="leaves")
        return result

    def __str__(self) -> str:
        return f"{self!r}\n{self.statement}"

    def __repr__(self) -> str:
        return f"<RegionRelease of {self.regions!r}, epsilon {self.statement.epsilon:.6g}>"


@dataclass(frozen=True, eq=False, repr=False)
class RegionEstimate:
    """The numbers of people in all regions, estimated together: unbiased, and parts add up.

    Parameters
    ----------
    regions : Regions
        The tree.
    inference : TreeInference
        How counts were combined.
    values : numpy.ndarray of float64
        Shape (regions,): the estimates, in the order of ``regions.paths``.
    sizes : numpy.ndarray of int64
        Shape (regions,): the largest possible numbers.
    errors : MeasurementErrors
        Of the released counts of the regions.
    """

    regions: Regions
    inference: TreeInference
    values: Floats
    errors: MeasurementErrors
    sizes: Integers

    @cached_property
    def variances(self) -> Floats:
        """Unbiased estimates of the variances of `values`, shape (regions,); maybe negative."""
        return self.inference.variances(self.errors.variances)

    @cached_property
    def worst_variances(self) -> Floats:
        """The variances of `values` in the worst case, whatever the true counts."""
        return self.inference.variances(self.errors.worst)

    @property
    def standard_errors(self) -> Floats:
        """The roots of `variances`, each moved to the least or largest possible one beyond it."""
        least = self.inference.variances(self.errors.least)
        return np.sqrt(np.minimum(np.maximum(self.variances, least), self.worst_variances))

    def answer(self, where: Region | list[Region] | AbstractSet[Region]) -> Answer:
        """The number of people in a region, or in several together.

        Parameters
        ----------
        where : str or sequence of str, or list or set of these
            A region by its name, or by its path as a tuple; or a list or set of regions, none of
            which is a part of another.

        Returns
        -------
        Answer
            Its value, an unbiased estimate of its variance, and confidence intervals.

        Raises
        ------
        InvalidQuestion
            There is no such region, or two have people in common.
        """
        asked = where if isinstance(where, (list, AbstractSet)) else [where]
        numbers = [self.regions.number(region) for region in asked]
        chosen = np.zeros(len(self.regions))
        chosen[numbers] = 1
        inside = self.regions.covered(numbers)
        if inside.max(initial=0) > 1:
            raise InvalidQuestion(
                f"regions that are asked for together have nobody in common, got {shown(where)}"
            )
        coefficients = self.inference.coefficients(chosen)
        people = int(self.sizes[numbers].sum())
        estimate = WeightedEstimate(float(chosen @ self.values), coefficients, self.errors, people)

        def interval(confidence: float) -> ConfidenceInterval[Any]:
            low, high = estimate.interval(confidence)
            return ConfidenceInterval(np.array(float(low)), np.array(float(high)))

        return Answer(estimate.value, estimate.variance, _interval=interval)

    def whole(self) -> Integers:
        """Return whole numbers near the estimates, from 0 to the sizes, of which parts add up.

        The nearest such numbers without rounding, by the precision of what was released, are
        rounded so that they add up. They are biased, and no intervals are stated for them: so ask
        the estimates about several regions together.

        Returns
        -------
        numpy.ndarray of int64
            Shape (regions,).
        """
        inference, leaves = self.inference, self.regions.leaves
        # Leaves of nobody have no noise: their bounds say all of them
        noisy = inference.noise > 0
        weights = np.where(noisy, 1 / np.where(noisy, inference.noise, 1.0), 0.0)

        def of_nodes(values: Any) -> Any:
            nodes = np.zeros(len(self.regions))
            nodes[leaves] = values
            return nodes

        def metric(values: Floats) -> Floats:
            summed = inference.sums(of_nodes(values))
            return np.asarray(inference.above(weights * summed)[leaves])

        most = self.sizes[leaves].astype(np.float64)
        near = nearest_counts(self.values[leaves], metric, most=most)
        return np.rint(inference.sums(of_nodes(whole_counts(near)))).astype(np.int64)

    def __str__(self) -> str:
        rows = [("region", "estimate", "standard error")]
        for path, value, error in zip(
            self.regions.paths, self.values, self.standard_errors, strict=True
        ):
            rows.append((" / ".join(path), f"{value:.1f}", f"{error:.1f}"))
        return "\n".join(aligned(rows))

    def __repr__(self) -> str:
        return f"<RegionEstimate of {self.regions!r}>"


def release_regions(
    regions: Regions,
    counts: npt.ArrayLike,
    sizes: npt.ArrayLike,
    privacy: Privacy | float | Rational,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    budget: Literal["equal", "leaves"] | Sequence[float | Rational] = "equal",
    rng: np.random.Generator | None = None,
    cache: bool = True,
) -> RegionRelease:
    """Release the counts of regions in regions, once.

    Parameters
    ----------
    regions : Regions
        The tree.
    counts, sizes : array_like
        Shape (leaves,), in the order of ``regions.leaves``: integers from 0 to the sizes, and the
        largest possible counts, which are public.
    privacy : Privacy, or float, Fraction, int, str or Decimal
        Of the whole release, for one person's answer; or its epsilon. Of a `Privacy`, between
        adjacent counts, the product of the levels' alphas is exactly the alpha.
    loss : Loss, optional
        What the mechanisms of the leaves minimise, as in `design`; `L0()` unless given.
    properties : iterable of Property, type or str, optional
        What they have: ``["WH"]``.
    budget : str or sequence of numbers, default "equal"
        How epsilon is split: "equal" over the depths of regions with parts, and the leaves;
        "leaves": only these are asked; or weights of at least 0, one for each depth from the top
        and one for the leaves, which is above 0. A depth of weight 0 is not asked.
    rng : numpy.random.Generator, optional
        None for the operating system's randomness; a generator's results can be repeated, and are
        not private.
    cache : bool, default True
        As for `mechdesign.tables.release`.

    Returns
    -------
    RegionRelease
        What may be published.

    Raises
    ------
    InvalidTable
        Not a count and a size for each leaf. Nothing was released.
    InvalidCount
        A count that is not an integer from 0 to its size. Nothing was released.
    ValueError
        A privacy or a budget that is out of range.

    Examples
    --------
    >>> tree = Regions([("south", "Kent"), ("south", "Surrey"), ("north", "Durham")])
    >>> rng = np.random.default_rng(1)
    >>> found = release_regions(tree, [3, 0, 5], [8, 8, 6], Privacy(alpha="1/4"), rng=rng)
    >>> found.statement.levels, found.statement.alpha
    ((Fraction(1, 2), Fraction(1, 2)), Fraction(1, 4))
    >>> estimate = found.estimate()
    >>> south, kent, surrey = (estimate.answer(name).value for name in ("south", "Kent", "Surrey"))
    >>> abs(south - kent - surrey) < 1e-9
    True
    """
    levels = regions.inner_depths + 1
    given = adjacent(privacy)
    if given.alpha == 1:
        raise ValueError("an epsilon of 0 allows nothing to be released")
    if isinstance(budget, str):
        if budget not in ("equal", "leaves"):
            raise ValueError(f"budget must be 'equal', 'leaves' or weights, got {budget!r}")
        weights = [Fraction(budget == "equal")] * (levels - 1) + [Fraction(1)]
    else:
        weights = [budgets.weight(share) for share in budget]
        if len(weights) != levels or not weights[-1]:
            raise ValueError(
                f"budget must be {levels} weights >= 0, for each depth of regions with parts and"
                f" for the leaves, the last above 0; got {shown(budget)}"
            )
    alphas = budgets.exact_split(given.alpha, weights)
    exactly, largest = np.asarray(counts), np.asarray(sizes)
    if exactly.shape != regions.leaves.shape or largest.shape != regions.leaves.shape:
        raise InvalidTable(
            f"a count and a size for each of the {len(regions.leaves)} leaves, got shapes"
            f" {exactly.shape} and {largest.shape}"
        )
    laws = [None if alpha is None else DiscreteLaplace(alpha=alpha) for alpha in alphas[:-1]]
    leaf_alpha = alphas[-1]
    assert leaf_alpha is not None  # its weight is above 0
    names = [" / ".join(regions.paths[number]) for number in regions.leaves]
    released = release(
        exactly,
        largest,
        Privacy(alpha=leaf_alpha),
        loss,
        properties,
        names=names,
        rng=rng,
        cache=cache,
    )
    sums = regions.sums(exactly.astype(np.int64))
    noisy, source = np.zeros(len(regions), dtype=np.int64), bit_source(rng)
    for depth, law in enumerate(laws):
        if law is not None:
            asked = np.flatnonzero(regions.inner & (regions.depths == depth))
            noisy[asked] = sums[asked] + law.draw(len(asked), source)
    return RegionRelease(regions, released, noisy, alphas[:-1])

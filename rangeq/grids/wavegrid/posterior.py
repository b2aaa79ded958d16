"""The posterior of all attributes and pairs, from what reports tell of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frequency.schema import Domain
from mechdesign._support.arrays import Floats
from mechdesign._support.blas import one_thread
from rangeq.grids.cells import Edges
from rangeq.grids.wavegrid.density import CATEGORIES, KERNELS, Kernel, Told, posterior_densities
from rangeq.grids.wavegrid.distributions import COARSE, Axis, FittedJoint, Joint, balanced
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.interactions import Pair, fitted
from rangeq.grids.wavegrid.likelihoods import Key, Likelihoods
from rangeq.grids.wavegrid.local_terms import (
    ALONE,
    PairCandidates,
    TermBasis,
    bases,
    category_bases,
    smooth_bases,
)
from rangeq.grids.wavegrid.pair_tree import implied

SMOOTH = 32
"""Cells along each axis in which smooth terms are fitted, at most."""


@one_thread
def estimated(
    attributes: Domain,
    n: int,
    likelihoods: Likelihoods,
    categorical: Sequence[bool],
    kernels: Sequence[tuple[Kernel, ...]] | None = None,
    independent: float | None = None,
) -> WaveEstimate:
    """The estimate from what reports tell.

    Parameters
    ----------
    attributes : Domain
        Those of the protocol.
    n : int
        The number of reports, at least 1.
    likelihoods : Likelihoods
        What they tell.
    categorical : sequence of bool
        For each attribute whether its values are categories.
    kernels : sequence of tuple of Kernel, optional
        For each attribute what is averaged; None: `KERNELS`, of categories `CATEGORIES`.
    independent : float, optional
        The prior probability that a pair of ordered attributes has no smooth terms; None: that of
        `rangeq.grids.wavegrid.local_terms`.

    Returns
    -------
    WaveEstimate
        With the distributions of all attributes and pairs.
    """
    if kernels is None:
        kernels = [CATEGORIES if kind else KERNELS for kind in categorical]
    axes = _axes(likelihoods.told, likelihoods.edges, categorical, kernels)
    if len(attributes) == 1:
        return WaveEstimate(attributes, n, axes, {}, categorical)
    grams = [_merged(gram, axis, axis) for gram, axis in zip(likelihoods.grams, axes, strict=True)]
    pairs: dict[Key, Pair] = {}
    for (j, k), scores, precision, halves in likelihoods.pairs:
        left, right = axes[j].merged(halves.left), axes[k].merged(halves.right)
        pair = Pair(
            _merged(scores, axes[j], axes[k]),
            precision,
            (grams[j], grams[k]),
            (axes[j].mass, axes[k].mass),
            replace(halves, left=left, right=right),
        )
        pairs[j, k] = pairs[j, k].with_more(pair) if (j, k) in pairs else pair
    ordered = {key: pair for key, pair in pairs.items() if not any(categorical[k] for k in key)}
    mixed = {key: pair for key, pair in pairs.items() if key not in ordered}
    smooth = _of_ordered(ordered, axes, grams)
    if independent is not None:
        smooth = replace(smooth, prior=(independent, 1 - independent))
    candidates = (
        smooth,
        _with_categories(mixed, axes, grams, categorical),
    )
    alone = {
        key: FittedJoint(pairs[key], one)
        for each in candidates
        for key, one in each.explained().items()
    }
    by_tree = implied(alone, axes)
    joints: dict[Key, Joint] = {**by_tree, **alone}
    for each in candidates:
        tables = {key: by_tree[key].cells for key in each.pairs if key in by_tree}
        for key, found in each.with_tables(tables).explained().items():
            joints[key] = FittedJoint(pairs[key], found, by_tree[key])
    return WaveEstimate(attributes, n, axes, joints, categorical)


def _axes(
    told: Sequence[Told],
    edges: Sequence[Edges],
    categorical: Sequence[bool],
    kernels: Sequence[tuple[Kernel, ...]],
) -> list[Axis]:
    """The distributions of single attributes."""
    found: dict[int, Axis] = {}
    for alike in dict.fromkeys(kernels):
        places = [place for place, own in enumerate(kernels) if own == alike]
        densities = posterior_densities([told[place] for place in places], alike)
        for place, density in zip(places, densities, strict=True):
            most = len(density.frequencies) if categorical[place] else COARSE
            found[place] = Axis.of(edges[place], density, most)
    return [found[place] for place in range(len(told))]


def _of_ordered(
    pairs: dict[Key, Pair], axes: Sequence[Axis], grams: Sequence[Floats]
) -> PairCandidates[Key]:
    """Smooth terms, and local ones for what they leave."""
    local = {
        place: bases(axes[place].mass, axes[place].starts, grams[place])
        for place in sorted({place for key in pairs for place in key})
    }
    coarse = {place: balanced(axes[place].mass, SMOOTH) for place in local}
    fits, scales = fitted(
        {(j, k): pair.merged((coarse[j], coarse[k])) for (j, k), pair in pairs.items()}
    )
    return PairCandidates.of(
        pairs,
        {key: pair.refined(fits[key]) for key, pair in pairs.items()},
        scales,
        {(j, k): (local[j], local[k]) for j, k in pairs},
    )


def _with_categories(
    pairs: dict[Key, Pair],
    axes: Sequence[Axis],
    grams: Sequence[Floats],
    categorical: Sequence[bool],
) -> PairCandidates[Key]:
    """Terms of every category by itself, and all kinds of those of an ordered attribute."""
    kinds: dict[int, list[TermBasis]] = {}
    places = sorted({place for key in pairs for place in key})
    for place in places:
        if not categorical[place]:
            own = axes[place].mass, grams[place]
            kinds[place] = [*smooth_bases(*own), *bases(own[0], axes[place].starts, own[1])]
    many = max(map(len, kinds.values()), default=1)
    for place in places:
        if categorical[place]:
            kinds[place] = category_bases(axes[place].mass, grams[place], many)
    return PairCandidates.of(
        pairs,
        {key: pair.independent() for key, pair in pairs.items()},
        None,
        {(j, k): (kinds[j], kinds[k]) for j, k in pairs},
        ALONE,
    )


def _merged(table: Floats, rows: Axis, columns: Axis) -> Floats:
    """A table over fine cells as one over coarse ones: shape (cells, cells)."""
    return rows.merged(columns.merged(table).T).T

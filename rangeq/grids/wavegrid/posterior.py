"""The posterior of all attributes and pairs, from what the reports of square waves say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from frequency.schema import Domain
from mechdesign._support.arrays import Floats
from mechdesign._support.blas import one_thread
from rangeq.grids.cells import equal_cells
from rangeq.grids.wavegrid.density import CATEGORIES, KERNELS, Told, posterior_densities
from rangeq.grids.wavegrid.distributions import COARSE, Axis, FittedJoint, Joint, balanced
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.interactions import Halves, Pair, fitted
from rangeq.grids.wavegrid.local_terms import (
    ALONE,
    PairCandidates,
    TermBasis,
    bases,
    category_bases,
    smooth_bases,
)
from rangeq.grids.wavegrid.pair_tree import implied
from rangeq.grids.wavegrid.partitions import Partition
from rangeq.grids.wavegrid.square_waves import FINE, Heard, half_of
from rangeq.grids.wavegrid.value_sets import ValueSets

SMOOTH = 32
"""Cells along each axis in which smooth terms are fitted, at most."""

Key = tuple[int, int]


@one_thread
def estimated(
    attributes: Domain,
    n: int,
    waves: Sequence[ValueSets],
    heard: Sequence[Heard],
    halves: Sequence[Heard],
) -> WaveEstimate:
    """The estimate from the reports of all parts.

    Parameters
    ----------
    attributes : Domain
        Those of the protocol.
    n : int
        The number of reports, at least 1.
    waves : sequence of Wave or Partition
        The wave of each attribute.
    heard : sequence of Heard
        What the reports on waves say: of a pair there may be several.
    halves : sequence of Heard
        What those on halves say: counts of shape (2, 2).

    Returns
    -------
    WaveEstimate
        With the distributions of all attributes and pairs.
    """
    edges = [equal_cells(size, FINE) for size in attributes.sizes]
    categorical = [isinstance(wave, Partition) for wave in waves]
    functions = [wave.shares(cut) - 1 / wave.arcs for wave, cut in zip(waves, edges, strict=True)]
    grams = [_gram(wave, function) for wave, function in zip(waves, functions, strict=True)]
    sides = [half_of(cut) for cut in edges]
    scores = [np.zeros(len(cut) - 1) for cut in edges]
    precisions = [np.zeros((len(score), len(score))) for score in scores]
    for part in heard:
        told = part.information * float(part.held.sum())
        for axis, place in enumerate(part.places):
            others = tuple(
                k for k in range(part.held.ndim) if k not in (axis, axis + len(part.places))
            )
            arcs = waves[place].arcs * part.information * part.held.sum(axis=others)
            scores[place] += np.tensordot(arcs, functions[place], axes=2)
            precisions[place] += told * grams[place]
    for part in halves:
        told = part.information * float(part.held.sum())
        for axis, place in enumerate(part.places):
            lower, upper = part.information * part.held.sum(axis=1 - axis)
            scores[place] += (lower - upper) * sides[place]
            precisions[place] += told * np.outer(sides[place], sides[place])
    told_of = [
        Told(score, precision, np.diff(cut).astype(np.float64))
        for cut, score, precision in zip(edges, scores, precisions, strict=True)
    ]
    axes = _axes(told_of, edges, categorical)
    if len(attributes) == 1:
        return WaveEstimate(attributes, n, axes, {}, categorical)
    merged = [axis.merged(function) for axis, function in zip(axes, functions, strict=True)]
    grams = [_gram(wave, function) for wave, function in zip(waves, merged, strict=True)]
    sides = [axis.merged(side) for axis, side in zip(axes, sides, strict=True)]
    alike: dict[Key, Floats] = {}
    for part in halves:
        j, k = part.places
        (a, b), (c, d) = part.information * part.held
        alike[j, k] = alike.get((j, k), np.zeros(2)) + np.array([a - b - c + d, a + b + c + d])
    pairs: dict[Key, Pair] = {}
    for part in heard:
        j, k = part.places
        half = np.tensordot(merged[j], part.held, axes=([0, 1], [0, 2]))
        products = (
            waves[j].arcs * waves[k].arcs * np.tensordot(half, merged[k], axes=([1, 2], [0, 1]))
        )
        pair = Pair(
            part.information * products,
            part.information * float(part.held.sum()),
            (grams[j], grams[k]),
            (axes[j].mass, axes[k].mass),
            Halves(sides[j], sides[k], *alike.pop((j, k), np.zeros(2)).tolist()),
        )
        pairs[j, k] = pairs[j, k].with_more(pair) if (j, k) in pairs else pair
    ordered = {key: pair for key, pair in pairs.items() if not any(categorical[k] for k in key)}
    mixed = {key: pair for key, pair in pairs.items() if key not in ordered}
    candidates = (
        _of_ordered(ordered, axes, grams),
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
    told: Sequence[Told], edges: Sequence[tuple[int, ...]], categorical: Sequence[bool]
) -> list[Axis]:
    """The distributions of single attributes."""
    found: dict[int, Axis] = {}
    for kind, kernels in ((False, KERNELS), (True, CATEGORIES)):
        places = [place for place, own in enumerate(categorical) if own == kind]
        densities = posterior_densities([told[place] for place in places], kernels)
        for place, density in zip(places, densities, strict=True):
            most = len(density.frequencies) if kind else COARSE
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


def _gram(wave: ValueSets, functions: Floats) -> Floats:
    """E f f' over the configurations and the orthonormal functions of the arcs.

    That is g times that of centred indicators.
    """
    gram: Floats = wave.arcs * np.einsum(
        "k,kax,kay->xy", wave.probabilities, functions, functions, optimize=True
    )
    return gram

"""The posterior of all attributes and pairs, from the likelihoods of reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from frequency.schema import Domain
from mechdesign.base import Floats, one_thread
from rangeq.core import CATEGORIES, FEW, KERNELS, WITH_HEAPS, Kernel, cumulated, posterior_densities
from rangeq.grids.wavegrid.distributions import COARSE, Axis, FittedJoint, Joint, balanced
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.interactions import DEGREE, Pair, Scales, fitted, refitted
from rangeq.grids.wavegrid.likelihoods import Key, Likelihoods
from rangeq.grids.wavegrid.local_terms import INDEPENDENT, PairCandidates, PairTerms, SmoothPrior
from rangeq.grids.wavegrid.partitions import implied
from rangeq.grids.wavegrid.shrinkage import (
    DEGREES,
    KINDS,
    SCALES,
    Shrinkage,
    TermBasis,
    TermCells,
    bases,
    each_cell,
    scores_of,
    smooth_bases,
    turned,
)

SMOOTH = 32  #: The most cells along each axis in which smooth terms are fitted.

# The scales of smooth terms beside those learnt from all pairs: what most pairs are alike in,
# independence or a normal law, would be taken for true of the few that are not. Any terms, or
# mostly those of the location of one attribute, which goes up and down with the other.
_SCALES = (
    Scales.of(DEGREE, 0.7, 0.25),
    *(Scales.of(DEGREE, 0.5, 0.1).along(axis, 0.5) for axis in (0, 1)),
)

# The prior probability of the scales learnt from all pairs, for pairs that are not independent:
# weak dependence is told by these alone.
_ALIKE = 0.85

_FEW_CELLS = 8  # the most cells of an attribute that is averaged over `FEW`

# The most cells of which points of their own do for steps, too
_SEVERAL_CELLS = 32

# The most values apart of an attribute that have terms of their own in its pairs: the last ones, if
# it has more.
_APART = 8

_NONE = 0.5  # the prior probability that smooth terms leave no local ones to a pair

_ALONE = 0.1  # the prior probability that a pair with a category has no terms at all

# The prior probability of smooth functions among the kinds of a pair with a category: such pairs
# depend on one another smoothly more often than in any other way.
_SMOOTH = 0.7


def chosen_kernels(
    likelihoods: Likelihoods, categorical: Sequence[bool], many: tuple[Kernel, ...] = WITH_HEAPS
) -> list[tuple[Kernel, ...]]:
    """Return the kernels that are averaged for each attribute, those given for many cells."""
    found = []
    for kind, likelihood in zip(categorical, likelihoods.told, strict=True):
        cells = len(likelihood.scores)
        several = many if cells > _SEVERAL_CELLS else KERNELS
        found.append(CATEGORIES if kind else FEW if cells <= _FEW_CELLS else several)
    return found


@one_thread
def estimated(
    attributes: Domain,
    n: int,
    likelihoods: Likelihoods,
    categorical: Sequence[bool],
    kernels: Sequence[tuple[Kernel, ...]] | None = None,
    independent: float = INDEPENDENT,
) -> WaveEstimate:
    """Estimate attributes and pairs from the likelihoods of reports."""
    if kernels is None:
        kernels = chosen_kernels(likelihoods, categorical)
    apart = [min(likelihood.apart, _APART) for likelihood in likelihoods.told]
    axes = _axes(likelihoods, categorical, kernels, apart)
    if len(attributes) == 1:
        return WaveEstimate(attributes, n, axes, {}, categorical, likelihoods.told)
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
            (apart[j], apart[k]),
        )
        # Rounds that asked about the same pair have the same functions: scores and precisions add
        # up
        pairs[j, k] = pairs[j, k].with_more(pair) if (j, k) in pairs else pair
    ordered = {key: pair for key, pair in pairs.items() if not any(categorical[k] for k in key)}
    named = {key: pair for key, pair in pairs.items() if all(categorical[k] for k in key)}
    mixed = {key: pair for key, pair in pairs.items() if key not in {*ordered, *named}}
    candidates = (
        _of_ordered(ordered, axes, independent),
        _of_mixed(mixed, axes, categorical),
        _of_categories(named, axes),
    )
    alone = {
        key: FittedJoint(pairs[key], explanations)
        for each in candidates
        for key, explanations in each.explained().items()
    }
    # Twice: the tree needs the pairs as they are alone, and what it implies is then one more
    # explanation of every pair that is not in it
    by_tree = implied(alone, axes)
    # The later entry counts: pairs that nobody was asked about stay as the tree implies
    joints: dict[Key, Joint] = {**by_tree, **alone}
    for each in candidates:
        tables = {key: by_tree[key].cells for key in each.pairs if key in by_tree}
        for key, with_implied in each.with_tables(tables).explained().items():
            joints[key] = FittedJoint(pairs[key], with_implied, by_tree[key])
    return WaveEstimate(attributes, n, axes, joints, categorical, likelihoods.told)


def _axes(
    likelihoods: Likelihoods,
    categorical: Sequence[bool],
    kernels: Sequence[tuple[Kernel, ...]],
    apart: Sequence[int],
) -> list[Axis]:
    """The distributions of single attributes."""
    axes: dict[int, Axis] = {}
    # Probabilities of kernels are learnt from all attributes that choose among the same ones
    for alike in dict.fromkeys(kernels):
        places = [place for place, choice in enumerate(kernels) if choice == alike]
        densities = posterior_densities([likelihoods.told[place] for place in places], alike)
        for place, density in zip(places, densities, strict=True):
            # Coarse cells are for pairs
            fine = categorical[place] or len(kernels) == 1
            most = len(density.frequencies) if fine else COARSE
            axes[place] = Axis.of(likelihoods.edges[place], density, most, apart[place])
    return [axes[place] for place in range(len(apart))]


def _of_ordered(
    pairs: dict[Key, Pair], axes: Sequence[Axis], independent: float
) -> PairCandidates[Key]:
    """The candidates of ordered pairs: smooth terms, and local ones for what they leave."""
    cells = _cells(pairs, axes)
    local = {place: bases(term_cells) for place, term_cells in cells.items()}
    # Smooth terms do not need fine cells, and a step costs their square: fitted in few, and refined
    # once at the end
    coarse = {
        place: balanced(term_cells.mass, SMOOTH, term_cells.apart)
        for place, term_cells in cells.items()
    }
    merged = {(j, k): pair.merged((coarse[j], coarse[k])) for (j, k), pair in pairs.items()}
    fits, scales = fitted(merged)
    fitted_all = [fits, *(refitted(merged, fits, fixed) for fixed in _SCALES)]
    apart = [SmoothPrior(fixed, (1 - _ALIKE) / len(_SCALES)) for fixed in _SCALES]
    return PairCandidates.of(
        pairs,
        {(j, k): PairTerms(local[j], local[k]) for j, k in pairs},
        _likely(_NONE, (1.0, KINDS)),
        [SmoothPrior(scales, _ALIKE), *apart],
        {
            key: pair.refined([fits_of[key] for fits_of in fitted_all])
            for key, pair in pairs.items()
        },
        independent,
    )


def _of_mixed(
    pairs: dict[Key, Pair], axes: Sequence[Axis], categorical: Sequence[bool]
) -> PairCandidates[Key]:
    """The candidates of mixed pairs: each category by itself, all kinds of an ordered attribute."""
    kinds = {
        place: [*smooth_bases(term_cells), *bases(term_cells)]
        for place, term_cells in _cells(pairs, axes).items()
        if not categorical[place]
    }
    details = {}
    for key, pair in pairs.items():
        axis = 0 if categorical[key[0]] else 1
        details[key] = category_terms(pair, kinds[key[1 - axis]], axis)
    likely = _likely(_ALONE, (_SMOOTH, len(DEGREES)), (1 - _SMOOTH, KINDS))
    return PairCandidates.of(pairs, details, likely)


def _of_categories(pairs: dict[Key, Pair], axes: Sequence[Axis]) -> PairCandidates[Key]:
    """The candidates of pairs of categories: terms of every two, all alike."""
    cells = _cells(pairs, axes)
    kinds = {
        place: [turned(each_cell(term_cells.mass), term_cells.gram)[0]]
        for place, term_cells in cells.items()
    }
    details = {(j, k): PairTerms(kinds[j], kinds[k]) for j, k in pairs}
    return PairCandidates.of(pairs, details, _likely(_ALONE, (1.0, 1)))


def _cells(pairs: dict[Key, Pair], axes: Sequence[Axis]) -> dict[int, TermCells]:
    """The cells of each attribute of some pairs."""
    return {
        place: TermCells(mass, axes[place].starts, gram, apart)
        for key, pair in pairs.items()
        for place, mass, gram, apart in zip(key, pair.margins, pair.grams, pair.apart, strict=True)
    }


def _likely(none: float, *kinds: tuple[float, int]) -> Floats:
    """Prior probabilities of no terms, and of as many kinds which share a part of what is left."""
    every = [part * (1 - none) / count for part, count in kinds for _ in range(count)]
    return np.array([none, *every])


def _merged(table: Floats, rows: Axis, columns: Axis) -> Floats:
    """A table over fine cells as one over coarse ones: shape (cells, cells)."""
    return rows.merged(columns.merged(table).T).T


# ------------------------------------------------------------------------------------------------
# Local terms of an ordered attribute with categories, of which few may be unlike all others.
#
# Categories have no order: the functions of such an attribute raise one category each. The
# coefficients of function i of the partner and category j are c_ij ~ N(0, (tau s_j)^2), where the
# scales s_j maximise the evidence (MacKay 1992) together with a weak prior, as if one coefficient
# of s_j = 1 had been seen. With one tau for all, the few categories that depend on the partner
# would be shrunk as much as the many that do not.
#
# The evidence is that of the best scales, not a mean over all: weak dependence is seen sooner, and
# many categories that are independent of the partner are answered with more noise.


#: The most steps towards the scales, and the changes of the logarithms of their squares that end
#: them.
_TURNS, _SETTLED = 20, 0.2


def category_terms(pair: Pair, ordered: Sequence[TermBasis], axis: int) -> PairTerms:
    """The kinds of terms of a pair with categories."""
    unexplained = pair.unexplained(pair.independent().joint)
    # Kinds of the partner are similar, so the scales of one are a warm start for the next
    squares = np.ones(len(pair.margins[axis]))  # s^2, from one kind to the next
    categories, scaled = [], []
    for partner in ordered:
        for _ in range(_TURNS):
            before, squares = squares, _improved(pair, unexplained, partner, squares, axis)
            if np.abs(np.log(squares / before)).max() < _SETTLED:
                break
        categories.append(_categories(pair, squares, axis)[0])
        # The log prior of s^2, 0 at its mode s = 1: scales fitted to the pair itself pay for it
        scaled.append(0.5 * float((1 - np.log(squares) - 1 / squares).sum()))
    left, right = (categories, ordered) if axis == 0 else (ordered, categories)
    return PairTerms(left, right, np.array(scaled))


def _categories(pair: Pair, squares: Floats, axis: int) -> tuple[TermBasis, Floats]:
    """Functions of the categories with these scales, and each one's part in every function."""
    return turned(each_cell(pair.margins[axis]) * np.sqrt(squares), pair.grams[axis])


def _improved(
    pair: Pair, unexplained: Floats, partner: TermBasis, squares: Floats, axis: int
) -> Floats:
    """Step the squares of the scales towards where the evidence is stationary."""
    # s_j^2 = sum c_ij^2 / tau^2 / sum (1 - variance / (tau s_j)^2), over i, for the likeliest tau:
    # the denominator is the effective number of known coefficients of a category. No reports on
    # halves are about categories, so that the coefficients are independent.
    categories, parts = _categories(pair, squares, axis)
    # Functions of both attributes in the order of the pair
    both = (categories, partner) if axis == 0 else (partner, categories)
    shrinkage, scores = Shrinkage.of(pair, both), scores_of(unexplained, both)
    # At the best tau alone: a mean over all would make the fixed point one of no single evidence
    likeliest = int(np.argmax(shrinkage.evidence(scores)))
    mean, variance = (part[likeliest] for part in shrinkage.posterior(scores))
    if axis == 0:
        mean, variance = mean.T, variance.T
    tau = SCALES[likeliest]
    seen = ((mean / tau @ parts.T) ** 2).sum(axis=0)
    known = ((1 - variance / tau**2) @ (parts**2).T).sum(axis=0)
    # The additional 1 on both sides is the prior, as if one coefficient with s = 1 had been seen
    return np.asarray((squares * seen + 1) / (np.maximum(known, 0.0) + 1))


# ------------------------------------------------------------------------------------------------
# Which pairs of attributes matter: what a first round of reports tells for a second one.
#
# A second round on fewer pairs has more reports on each than one on all pairs. With s^2 the mean
# square by which answers about a pair differ from what the tree of the most dependent pairs implies
# (from those of independent attributes, for the pairs of the tree itself), and u what a report
# tells of that difference, answers still err by about s^2 J / (J + u N) after N reports on the
# pair, where J coefficients are to be told: the number of pairs is the one of least sum.


_COEFFICIENTS = 4.0  # the number J of coefficients

# The least number of pairs of each attribute: with one it would have half as many reports as in a
# round on all pairs, and answers about it alone would err more.
_PARTNERS = 2


def chosen_pairs(
    estimate: WaveEstimate, told_by_all: float, most: int | None = None
) -> tuple[tuple[int, int], ...]:
    """The pairs for a second round to ask about."""
    keys, signals, informations, before = [], [], [], []
    for key, joint in estimate.joints.items():
        if isinstance(joint, FittedJoint):
            other = joint.implied.cells if joint.implied else np.outer(*joint.margins)
            apart = joint.mean - other
            seen = joint.pair.grams[0] @ apart @ joint.pair.grams[1]
            keys.append(key)
            signals.append(float((cumulated(apart, (-2, -1)) ** 2).mean()))
            informations.append(float((apart * seen).sum()))
            before.append(joint.pair.precision + joint.pair.halves.precision)
    order = np.argsort(-np.array(signals), kind="stable")
    ranked = [keys[k] for k in order]
    signal, seen_of, precision = (
        np.array(values)[order] for values in (signals, informations, before)
    )
    # Every number of pairs is tried: pairs that are not chosen keep their error, and chosen ones
    # share the users
    left = []
    for m in range(1, len(keys) + 1):
        told = precision + np.where(np.arange(len(keys)) < m, told_by_all / m, 0.0)
        left.append((signal * _COEFFICIENTS / (_COEFFICIENTS + seen_of * told)).sum())
    number = int(np.argmin(left)) + 1
    chosen = ranked[: number if most is None else min(number, most)]
    for place in range(len(estimate.attributes)):
        partners = [key for key in ranked if place in key]
        lacking = min(_PARTNERS, len(partners)) - sum(place in key for key in chosen)
        others = [key for key in partners if key not in chosen]
        # An attribute in fewer pairs would have fewer reports than in a round on all of them
        chosen += others[: max(lacking, 0)]
    return tuple(sorted(chosen))

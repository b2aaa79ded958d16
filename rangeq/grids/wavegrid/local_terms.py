"""What smooth terms leave: local terms, of which the reports choose, with a scale of their own.

The joint distribution of a pair is P + D: P that of independent attributes or the fit of smooth
terms, and D(x, y) = p(x) q(y) sum_ij c_ij w_i(x) v_j(y) with margins 0, c_ij ~ N(0, tau^2). The
scores that P leaves unexplained have the mean I N G D H and the covariance I N G x H. In functions
orthogonal under G and under H coefficients are told one by one, so that posteriors and evidence
have closed forms, for every kind of terms and every tau: kinds and both P are averaged with their
evidence as weights. A ratio of evidence to no local terms that is above r is seen in at most one of
r data sets that P explains (Markov's inequality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mechdesign._support.arrays import Floats, Items
from rangeq.grids.wavegrid.density import adapted
from rangeq.grids.wavegrid.interactions import Interaction, Key, Pair, Scales, terms

LEVELS = 6
"""Of dyadic intervals of an attribute's values: down to a 64th."""

_LENGTHS = (0.1, 0.4)
"""Of rough functions of the rank, with correlations exp(-distance / length)."""

_DEGREES = (1, 2, 4)
"""Smooth terms along an attribute, for its pairs with categories."""

_SCALES = np.geomspace(0.02, 16.0, 12)
"""tau, each as likely: relative deviations of a density from P."""

NONE, _INDEPENDENT = 0.95, 0.9
"""The prior probabilities that a pair has no local terms, and that it has no smooth ones."""

ALONE = 0.5
"""The prior probability that a pair with categories has no terms at all: it has no smooth ones."""

_RANK = 1e-9
"""Functions of less than this part of the largest square are left out."""

_NEGLIGIBLE = 0.01
"""Explanations of less weight are left out."""


class TermBasis(NamedTuple):
    """Functions of an attribute of one kind, orthogonal under its Gram matrix.

    Attributes
    ----------
    functions : numpy.ndarray of float64
        p w: shape (cells, functions), of sum 0 each.
    told : numpy.ndarray of float64
        Shape (functions,): their squares under the Gram matrix.
    """

    functions: Floats
    told: Floats


def bases(mass: Floats, starts: Items, gram: Floats) -> list[TermBasis]:
    """The kinds of local terms of an attribute, in the same order for all.

    Attributes of few cells have fewer different ones.

    Parameters
    ----------
    mass : numpy.ndarray of float64
        Shape (cells,): the distribution of the attribute.
    starts : numpy.ndarray of int64
        Shape (cells + 1,): where the cells begin, and the size.
    gram : numpy.ndarray of float64
        Shape (cells, cells).

    Returns
    -------
    list of TermBasis
        Dyadic levels down to each, every level by itself, rough functions, single cells.
    """
    levels = dyadic(mass, starts)
    rank = np.cumsum(mass) - mass / 2
    apart = np.abs(rank[:, None] - rank)
    centred = np.diag(mass) - np.outer(mass, mass)
    roots = [np.concatenate(levels[: deepest + 1], axis=1) for deepest in range(LEVELS)]
    roots += [levels[min(level, len(levels) - 1)] for level in range(1, LEVELS)]
    roots += [centred @ _root(np.exp(-apart / length)) for length in _LENGTHS]
    roots.append(centred)
    return [_basis(root, gram) for root in roots]


def smooth_bases(mass: Floats, gram: Floats) -> list[TermBasis]:
    """More kinds of terms of an ordered attribute, for pairs with categories: smooth ones.

    Parameters
    ----------
    mass : numpy.ndarray of float64
        Shape (cells,): the distribution of the attribute.
    gram : numpy.ndarray of float64
        Shape (cells, cells).

    Returns
    -------
    list of TermBasis
        The functions of `rangeq.grids.wavegrid.interactions.terms`, up to each of `_DEGREES`.
    """
    return [_basis(mass[:, None] * terms(mass, degree), gram) for degree in _DEGREES]


def category_bases(mass: Floats, gram: Floats, kinds: int) -> list[TermBasis]:
    """The terms of categories: of every one by itself, all alike, whatever those of its partner.

    Parameters
    ----------
    mass : numpy.ndarray of float64
        Shape (categories,): the distribution of the attribute.
    gram : numpy.ndarray of float64
        Shape (categories, categories).
    kinds : int
        How many kinds of terms other attributes have.

    Returns
    -------
    list of TermBasis
        The same one for each.
    """
    return [_basis(np.diag(mass) - np.outer(mass, mass), gram)] * kinds


def _basis(root: Floats, gram: Floats) -> TermBasis:
    told, turned = np.linalg.eigh(root.T @ gram @ root)
    kept = told > _RANK * told.max(initial=1e-300)
    return TermBasis(root @ turned[:, kept], told[kept])


def dyadic(mass: Floats, starts: Items) -> list[Floats]:
    """For each level of halving the functions that move mass between both halves of an interval.

    Relative to the distribution they are 2 p_2 / (p_1 + p_2) in the first half, of mass p_1, and -2
    p_1 / (p_1 + p_2) in the second.

    Parameters
    ----------
    mass : numpy.ndarray of float64
        Shape (cells,): the distribution of the attribute.
    starts : numpy.ndarray of int64
        Shape (cells + 1,): where the cells begin, and the size.

    Returns
    -------
    list of numpy.ndarray of float64
        Shape (cells, functions) each: as many levels as tell cells apart, at least 1, up to
        `LEVELS`.
    """
    middles, found = (starts[1:] + starts[:-1]) / 2, []
    for level in range(LEVELS):
        part = np.minimum((middles * (2 << level) / starts[-1]).astype(np.int64), (2 << level) - 1)
        columns = []
        for node in np.unique(part >> 1):
            first, second = part == 2 * node, part == 2 * node + 1
            both = mass[first].sum(), mass[second].sum()
            if min(both) > 0:
                relative = 2 * (both[1] * first - both[0] * second) / sum(both)
                columns.append(mass * relative)
        if columns:
            found.append(np.array(columns).T)
    return found or [np.zeros((len(mass), 0))]


@dataclass(frozen=True, eq=False)
class PairExplanation:
    """One of those that are averaged.

    Attributes
    ----------
    weight : float
        Its posterior probability.
    fit : Interaction
        P.
    left, right : numpy.ndarray of float64
        Functions of both attributes: shapes (cells, a) and (cells, b).
    mean, variance : numpy.ndarray of float64
        Of the coefficients: shape (a, b).
    """

    weight: float
    fit: Interaction
    left: Floats
    right: Floats
    mean: Floats
    variance: Floats

    @property
    def joint(self) -> Floats:
        """P + D: shape (cells, cells)."""
        return np.asarray(self.fit.joint + self.left @ self.mean @ self.right.T)


class _Kind(NamedTuple):
    evidence: tuple[float, ...]  # of each P, against no local terms
    bases: tuple[TermBasis, TermBasis]


def explained(
    pairs: Mapping[Key, Pair],
    fits: Mapping[Key, Interaction],
    scales: Scales | None,
    details: Mapping[Key, tuple[Sequence[TermBasis], Sequence[TermBasis]]],
    none: float = NONE,
) -> dict[Key, list[PairExplanation]]:
    """Explanations of all pairs, of weights 1 in sum.

    Parameters
    ----------
    pairs : mapping of Pair
        What is known of each pair.
    fits : mapping of Interaction
        Their fits, at posterior modes.
    scales : Scales, optional
        The prior of these; None where no fit has any terms.
    details : mapping of (sequence of TermBasis, sequence of TermBasis)
        The kinds of local terms of both attributes of each.
    none : float, default NONE
        The prior probability that a pair has no such terms.

    Returns
    -------
    dict of list of PairExplanation
        For each pair those of more than negligible weight.
    """
    if not pairs:
        return {}
    smooth = {
        key: (pair.independent(), fits[key]) if fits[key].theta.size else (pair.independent(),)
        for key, pair in pairs.items()
    }
    found = {
        key: [_evidence(pair, smooth[key], both) for both in zip(*details[key], strict=True)]
        for key, pair in pairs.items()
    }
    keys, kinds = list(pairs), len(next(iter(found.values())))
    logarithms = np.full((len(keys), 2, kinds + 1), -np.inf)
    for row, key in enumerate(keys):
        for place, fit in enumerate(smooth[key]):
            own = scales.pair_evidence(fit) if scales and fit.theta.size else fit.likelihood
            logarithms[row, place] = own + np.array([0.0, *(kind[place] for kind in found[key])])
    prior = np.multiply.outer(
        [_INDEPENDENT, 1 - _INDEPENDENT], [none, *[(1 - none) / kinds] * kinds]
    )
    weights = adapted(logarithms.reshape(len(keys), -1), prior.ravel()).reshape(logarithms.shape)
    result: dict[Key, list[PairExplanation]] = {}
    for row, key in enumerate(keys):
        kept = np.argwhere(weights[row] > _NEGLIGIBLE)
        total = sum(weights[row][tuple(at)] for at in kept)
        result[key] = [
            _explanation(
                pairs[key],
                smooth[key][place],
                (details[key][0][kind - 1], details[key][1][kind - 1]) if kind else None,
                float(weights[row, place, kind] / total),
            )
            for place, kind in kept.tolist()
        ]
    return result


def _seen(pair: Pair, fit: Interaction, both: tuple[TermBasis, TermBasis]) -> tuple[Floats, Floats]:
    """Scores of coefficients that the fit leaves unexplained, and their precisions."""
    left, right = both
    scores = left.functions.T @ pair.unexplained(fit.joint) @ right.functions
    return scores, pair.precision * np.outer(left.told, right.told)


def _evidence(
    pair: Pair, smooth: Sequence[Interaction], both: tuple[TermBasis, TermBasis]
) -> tuple[float, ...]:
    """Logarithms of the evidence of local terms against none, for each P."""
    found, shrunk = [], None
    for fit in smooth:
        scores, precision = _seen(pair, fit, both)
        if shrunk is None:
            grown = 1 + np.multiply.outer(_SCALES**2, precision)
            shrunk = (_SCALES**2)[:, None, None] / grown
            lost = np.log(grown).sum(axis=(1, 2))
        each = 0.5 * (np.tensordot(shrunk, scores**2, axes=2) - lost)
        found.append(float(np.logaddexp.reduce(each) - np.log(len(each))))
    return tuple(found)


def _explanation(
    pair: Pair, fit: Interaction, both: tuple[TermBasis, TermBasis] | None, weight: float
) -> PairExplanation:
    if both is None:
        none = np.zeros((0, 0))
        nothing = [np.zeros((len(mass), 0)) for mass in pair.margins]
        return PairExplanation(weight, fit, nothing[0], nothing[1], none, none)
    scores, precision = _seen(pair, fit, both)
    grown = 1 + np.multiply.outer(_SCALES**2, precision)
    variances = (_SCALES**2)[:, None, None] / grown
    each = 0.5 * (np.tensordot(variances, scores**2, axes=2) - np.log(grown).sum(axis=(1, 2)))
    shares = np.exp(each - each.max())
    shares /= shares.sum()
    means = variances * scores
    mean = np.tensordot(shares, means, axes=1)
    variance = np.tensordot(shares, variances + (means - mean) ** 2, axes=1)
    return PairExplanation(weight, fit, both[0].functions, both[1].functions, mean, variance)


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

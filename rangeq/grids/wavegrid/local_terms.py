"""What smooth terms leave: local terms, of which the reports choose, with a scale of their own.

The joint distribution of a pair is P + D: P that of independent attributes, the fit of smooth terms
or what other pairs imply, and D(x, y) = p(x) q(y) sum_ij c_ij w_i(x) v_j(y) with margins 0, c_ij ~
N(0, tau^2). The scores that P leaves unexplained have the mean I N G D H and the covariance I N G x
H. In functions orthogonal under G and under H coefficients are told one by one, so that posteriors
and evidence have closed forms, for every kind of terms and every tau: kinds and all P are averaged
with their evidence as weights. A ratio of evidence to no local terms that is above r is seen in at
most one of r data sets that P explains (Markov's inequality).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple

import numpy as np

from mechdesign._support.arrays import Floats, Items
from rangeq.grids.wavegrid.density import STRENGTH, adapted
from rangeq.grids.wavegrid.interactions import Interaction, Key, Pair, Scales, terms

LEVELS = 6
"""Of dyadic intervals of an attribute's values: down to a 64th."""

_LENGTHS = (0.1, 0.4)
"""Of rough functions of the rank, with correlations exp(-distance / length)."""

_DEGREES = (1, 2, 4)
"""Smooth terms along an attribute, for its pairs with categories."""

_SCALES = np.geomspace(0.02, 16.0, 12)
"""tau, each as likely: relative deviations of a density from P."""

NONE, _INDEPENDENT, _IMPLIED = 0.95, 0.3, 0.05
"""The prior probabilities that a pair has no local terms, that it has no smooth ones, and that its
attributes are independent given others: that is part of the second. With a larger second, pairs
whose dependence is about as large as its error would be answered as if they had none; a smaller one
costs even data and patterns of halves precision.
"""

ALONE = 0.5
"""The prior probability that a pair with categories has no terms at all: it has no smooth ones."""

_PER_PAIR = 0.25
"""Prior probabilities count as this part of all pairs, at least. Where no pair tells anything by
itself all together seem to say that others imply them, whatever they are.
"""

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
    implied : bool
        Whether P is what other pairs imply.
    """

    weight: float
    fit: Interaction
    left: Floats
    right: Floats
    mean: Floats
    variance: Floats
    implied: bool

    @property
    def joint(self) -> Floats:
        """P + D: shape (cells, cells)."""
        return np.asarray(self.fit.joint + self.left @ self.mean @ self.right.T)


@dataclass(frozen=True, eq=False)
class PairCandidates(Generic[Key]):
    """What may explain pairs: some P, each with every kind of local terms or none.

    Attributes
    ----------
    pairs : mapping of Pair
        What is known of each pair.
    fits : mapping of tuple of Interaction
        The P of each pair: as many for all.
    logarithms : mapping of numpy.ndarray of float64
        Their evidence, for none and each kind of terms: shape (P, kinds + 1).
    details : mapping of (sequence of TermBasis, sequence of TermBasis)
        The kinds of local terms of both attributes of each.
    prior : tuple of float
        The prior probability of each P.
    none : float
        The prior probability that a pair has no local terms.
    """

    pairs: Mapping[Key, Pair]
    fits: Mapping[Key, tuple[Interaction, ...]]
    logarithms: Mapping[Key, Floats]
    details: Mapping[Key, tuple[Sequence[TermBasis], Sequence[TermBasis]]]
    prior: tuple[float, ...]
    none: float

    @classmethod
    def of(
        cls,
        pairs: Mapping[Key, Pair],
        fits: Mapping[Key, Interaction],
        scales: Scales | None,
        details: Mapping[Key, tuple[Sequence[TermBasis], Sequence[TermBasis]]],
        none: float = NONE,
    ) -> PairCandidates[Key]:
        """Independent attributes, and the fits of smooth terms.

        Parameters
        ----------
        pairs : mapping of Pair
            What is known of each pair.
        fits : mapping of Interaction
            Their fits, at posterior modes.
        scales : Scales, optional
            The prior of these; None where no fit has any terms.
        details : mapping of (sequence of TermBasis, sequence of TermBasis)
            The kinds of local terms of both attributes of each: as many for all.
        none : float, default NONE
            The prior probability that a pair has no such terms.

        Returns
        -------
        PairCandidates
            With two P.
        """
        both, logarithms = {}, {}
        for key, pair in pairs.items():
            both[key] = pair.independent(), fits[key]
            own = _logarithms(pair, both[key], details[key])
            if scales and fits[key].theta.size:
                own[1] += scales.pair_evidence(fits[key]) - fits[key].likelihood
            else:  # that is independent attributes again
                own[1] = -np.inf
            logarithms[key] = own
        return cls(pairs, both, logarithms, details, (_INDEPENDENT, 1 - _INDEPENDENT), none)

    def with_tables(self, tables: Mapping[Key, Floats]) -> PairCandidates[Key]:
        """One more P for some pairs, a table that others imply; the others are left out.

        Parameters
        ----------
        tables : mapping of numpy.ndarray of float64
            Shape (cells, cells) each, with the margins of the pair.

        Returns
        -------
        PairCandidates
            Of three P.
        """
        pairs = {key: pair for key, pair in self.pairs.items() if key in tables}
        fits, logarithms = {}, {}
        for key, pair in pairs.items():
            other = replace(
                pair.independent(), joint=tables[key], likelihood=pair.likelihood(tables[key])
            )
            fits[key] = *self.fits[key], other
            own = _logarithms(pair, [other], self.details[key])
            logarithms[key] = np.concatenate([self.logarithms[key], own])
        prior = (self.prior[0] - _IMPLIED, *self.prior[1:], _IMPLIED)
        return replace(self, pairs=pairs, fits=fits, logarithms=logarithms, prior=prior)

    def explained(self) -> dict[Key, list[PairExplanation]]:
        """Explanations of all pairs, of weights 1 in sum.

        Returns
        -------
        dict of list of PairExplanation
            For each pair those of more than negligible weight.
        """
        if not self.pairs:
            return {}
        evidence = np.array([self.logarithms[key] for key in self.pairs])
        kinds = evidence.shape[2] - 1
        prior = np.multiply.outer(self.prior, [self.none, *[(1 - self.none) / kinds] * kinds])
        strength = max(STRENGTH, _PER_PAIR * len(evidence))
        flat = adapted(evidence.reshape(len(evidence), -1), prior.ravel(), strength)
        result: dict[Key, list[PairExplanation]] = {}
        for (key, pair), weights in zip(
            self.pairs.items(), flat.reshape(evidence.shape), strict=True
        ):
            kept = np.argwhere(weights > _NEGLIGIBLE)
            total = sum(weights[tuple(at)] for at in kept)
            left, right = self.details[key]
            result[key] = [
                _explanation(
                    pair,
                    self.fits[key][place],
                    (left[kind - 1], right[kind - 1]) if kind else None,
                    float(weights[place, kind] / total),
                    implied=place > 1,
                )
                for place, kind in kept.tolist()
            ]
        return result


def _scores(unexplained: Floats, both: tuple[TermBasis, TermBasis]) -> Floats:
    """Of the coefficients of local terms, of what a fit leaves unexplained in the table."""
    left, right = both
    return np.asarray(left.functions.T @ unexplained @ right.functions)


class _Shrinkage(NamedTuple):
    """What reports tell of the coefficients of a kind of local terms, whatever they say.

    For each tau of `_SCALES`. The precision of the coefficients is diagonal but for the outer
    product of what reports on halves tell (Sherman and Morrison).

    Attributes
    ----------
    alone : numpy.ndarray of float64
        Their variances without reports on halves: shape (scales, a, b).
    along : numpy.ndarray of float64
        These times what reports on halves tell: shape (scales, a, b).
    stretched, lost : numpy.ndarray of float64
        The factor that halves add to the determinant of tau^2 times the precision, and the
        logarithm of that: shape (scales,).
    """

    alone: Floats
    along: Floats
    stretched: Floats
    lost: Floats

    @classmethod
    def of(cls, pair: Pair, both: tuple[TermBasis, TermBasis]) -> _Shrinkage:
        left, right = both
        precision = pair.precision * np.outer(left.told, right.told)
        halves = np.sqrt(pair.halves.precision) * np.outer(
            left.functions.T @ pair.halves.left, right.functions.T @ pair.halves.right
        )
        grown = 1 + np.multiply.outer(_SCALES**2, precision)
        alone = (_SCALES**2)[:, None, None] / grown
        along = alone * halves
        stretched = 1 + _sums(along, halves)
        return cls(alone, along, stretched, np.log(grown).sum(axis=(1, 2)) + np.log(stretched))

    def evidence(self, scores: Floats) -> Floats:
        """The logarithms of it, beyond that of no terms: shape (scales,)."""
        pulled = _sums(self.along, scores) ** 2 / self.stretched
        told = _sums(self.alone, scores**2)
        return np.asarray(0.5 * (told - pulled - self.lost))

    def posterior(self, scores: Floats) -> tuple[Floats, Floats]:
        """Means and variances of the coefficients: shape (scales, a, b)."""
        stretched = self.stretched[:, None, None]
        pulled = _sums(self.along, scores)[:, None, None]
        means = self.alone * scores - self.along * pulled / stretched
        return means, self.alone - self.along**2 / stretched


def _logarithms(
    pair: Pair,
    fits: Sequence[Interaction],
    details: tuple[Sequence[TermBasis], Sequence[TermBasis]],
) -> Floats:
    """Of the evidence of each P without terms, as if it were known, and with each kind of them."""
    found = np.empty((len(fits), len(details[0]) + 1))
    found[:, 0] = [fit.likelihood for fit in fits]
    unexplained = [pair.unexplained(fit.joint) for fit in fits]
    for kind, both in enumerate(zip(*details, strict=True), start=1):
        shrinkage = _Shrinkage.of(pair, both)
        for place, left in enumerate(unexplained):
            each = shrinkage.evidence(_scores(left, both))
            found[place, kind] = np.logaddexp.reduce(each) - np.log(len(each))
    found[:, 1:] += found[:, :1]
    return found


def _explanation(
    pair: Pair,
    fit: Interaction,
    both: tuple[TermBasis, TermBasis] | None,
    weight: float,
    implied: bool,
) -> PairExplanation:
    if both is None:
        none = np.zeros((0, 0))
        nothing = [np.zeros((len(mass), 0)) for mass in pair.margins]
        return PairExplanation(weight, fit, nothing[0], nothing[1], none, none, implied)
    shrinkage = _Shrinkage.of(pair, both)
    unexplained = _scores(pair.unexplained(fit.joint), both)
    logarithms = shrinkage.evidence(unexplained)
    means, variances = shrinkage.posterior(unexplained)
    shares = np.exp(logarithms - logarithms.max())
    shares /= shares.sum()
    mean = np.tensordot(shares, means, axes=1)
    variance = np.tensordot(shares, variances + (means - mean) ** 2, axes=1)
    return PairExplanation(
        weight, fit, both[0].functions, both[1].functions, mean, variance, implied
    )


def _sums(tables: Floats, weights: Floats) -> Floats:
    """Of the products of each table with the weights: shape (tables,)."""
    return np.asarray(tables.reshape(len(tables), -1) @ weights.ravel())


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

"""The likelihoods of attributes and of pairs: all that the posterior needs of the reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, zip_longest
from typing import NamedTuple, TypeAlias

import numpy as np

from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Floats
from rangeq.core import ContrastLaw, Told
from rangeq.grids.cells import Edges, equal_cells
from rangeq.grids.wavegrid.interactions import Halves
from rangeq.grids.wavegrid.partitions import ValueSets
from rangeq.grids.wavegrid.square_waves import FINE, Heard, half_of

Key = tuple[int, int]


class PairLikelihood(NamedTuple):
    """The likelihood of a pair, over its fine cells.

    The log-likelihood of a table P is <scores, P> - precision tr(P' G P H) / 2, with the Gram
    matrices G and H of both attributes, and what halves add.
    """

    key: Key  # the places of both attributes, the first before the second
    scores: Floats  # shape (cells, cells)
    precision: float  # at least 0
    halves: Halves  # of reports on the halves of both


class Likelihoods(NamedTuple):
    """The likelihoods of attributes and pairs, over fine cells of the attributes."""

    edges: list[Edges]  # the cells of each attribute: see `fine_cells`
    told: list[Told]  # of each attribute by itself
    grams: list[Floats]  # G of each attribute in all its pairs: shapes (cells, cells)
    # Of a pair there may be several. Made when asked for: many attributes have many pairs.
    pairs: Iterator[PairLikelihood]


def fine_cells(attributes: Domain, apart: Sequence[int] = ()) -> list[Edges]:
    """Return the cells in which the distribution of each attribute is estimated: `FINE` at most."""
    # Each of the last values that are no neighbours of others is a cell
    return [
        (
            *equal_cells(size - number_apart, FINE - number_apart),
            *range(size - number_apart + 1, size + 1),
        )
        for size, number_apart in zip_longest(attributes.sizes, apart, fillvalue=0)
    ]


class Singles:
    """The likelihoods of attributes by themselves, over their fine cells: sums, see `Told`."""

    def __init__(self, attributes: Domain, apart: Sequence[int] = ()) -> None:
        self.edges = fine_cells(attributes, apart)
        self.apart = apart or [0] * len(self.edges)
        self.scores = [np.zeros(len(cut) - 1) for cut in self.edges]
        self.precisions = [np.zeros((len(score), len(score))) for score in self.scores]

    def add(self, place: int, scores: Floats, precision: Floats) -> None:
        """Add to the likelihood of one attribute: shapes (cells,) and (cells, cells)."""
        self.scores[place] += scores
        self.precisions[place] += precision

    @property
    def told(self) -> list[Told]:
        """The likelihood of each attribute."""
        return [
            Told(score, precision, np.diff(cut).astype(np.float64), number_apart)
            for cut, score, precision, number_apart in zip(
                self.edges, self.scores, self.precisions, self.apart, strict=True
            )
        ]


def least_squares(
    cells: Floats, held: Floats, likely: Floats, counts: Floats, law: ContrastLaw, users: Floats
) -> tuple[Floats, Floats]:
    """Return the scores and precision of an attribute from sums of an oracle's items: see `Told`.

    Shapes: `cells` (cuts, sums, cells), `held` and `likely` (cuts, sums), `counts` (sums,), `users`
    (cuts,).
    """
    # By generalised least squares in weights of sum 0: their covariance from one user is V - f f',
    # V diagonal
    inverse = 1 / (law.noise * counts + law.held * likely)
    across = (inverse * likely)[..., None]
    # 1 - f'V^-1 f is above 0 wherever there is noise; at a huge epsilon it may round to below
    left = np.maximum(1 - (likely**2 * inverse).sum(axis=1), 1e-12)[:, None, None]

    def solved(columns: Floats) -> Floats:
        """(V - f f')^-1 of columns, by Sherman and Morrison."""
        inside = np.swapaxes(across, 1, 2) @ columns
        return np.asarray(inverse[..., None] * columns + across * (inside / left))

    ones = solved(np.ones((*held.shape, 1)))
    every = solved(np.concatenate([held[..., None], cells * users[:, None, None]], axis=2))
    # A free constant in each cut: the sum over its sets is the number of users, whatever the
    # distribution, so only weights of sum 0 tell anything
    every -= ones * (every.sum(axis=1) / ones.sum(axis=1))[:, None]
    solution: Floats = np.tensordot(cells, every, axes=([0, 1], [0, 1]))
    return solution[:, 0], solution[:, 1:]


def weighted_functions(cells: Floats, larger: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return functions of an attribute whose products with another's have equal precision.

    Shapes: `cells` (cuts, sums, cells), `larger` (cuts, sums), `counts` (sums,).
    """
    # The variance of a cell of a pair is about 1 / (u v), for weights u and v along both
    # attributes: u is one over the number of items, and over the root of how much larger the
    # variance of one is than its noise
    weights = 1 / (counts * np.sqrt(1 + larger))
    # The constant is taken off under the weights, so that functions have no part in the total
    means = np.einsum("ks,ksx->kx", weights, cells) / weights.sum(axis=1, keepdims=True)
    roots = np.sqrt(weights)
    return roots[..., None] * (cells - means[:, None]), roots


def of_waves(
    attributes: Domain,
    waves: Sequence[ValueSets],
    heard: Sequence[Heard],
    halves: Sequence[Heard],
    apart: Sequence[int] = (),
) -> Likelihoods:
    """Return the likelihoods of the reports of `WaveGrid`."""
    # Where the privacy loss is large, counts of cells with few users are more precise than those
    # with many: so attributes are estimated first as if all cells were alike. Of pairs it matters
    # less which cells are heavy, and they are taken to be independent for it.
    singles = Singles(attributes, apart)
    edges = singles.edges
    sides = [half_of(cut) for cut in edges]
    alike: dict[Key, Floats] = {}
    for part in halves:
        information = part.law.information(4)
        for axis, place in enumerate(part.places):
            # (1 or -1) in the lower and the upper half: the score of a single function, and its
            # square as the precision
            lower, upper = information * part.held.sum(axis=1 - axis)
            squares = information * part.held.sum() * np.outer(sides[place], sides[place])
            singles.add(place, (lower - upper) * sides[place], squares)
        j, k = part.places
        # The interaction of halves: both lower or both upper against the rest
        (a, b), (c, d) = information * part.held
        alike[j, k] = alike.get((j, k), np.zeros(2)) + np.array([a - b - c + d, a + b + c + d])
    sums = _sums(heard)
    about = [(place, wave) for place, wave, _, _ in sums]
    cells = {
        (place, wave): wave.shares(edges[place]) for place, wave in (*enumerate(waves), *about)
    }
    # Variances depend on the frequencies that are sought: estimated once with equal variances, then
    # used as weights, and not iterated, as weights need not be exact
    first = _first_estimates(singles, cells, sums)

    def frequent(place: int, wave: ValueSets) -> Floats:
        """Rough frequencies of the sets of an attribute: shape (cuts, sets), above 0."""
        users, frequencies = first[place]
        # One more user in each set, so that no frequency is 0 and no variance is
        return (users * (cells[place, wave] @ frequencies) + 1) / (users + wave.arcs)

    for (place, wave, items, law), in_sets in sums.items():
        shares, counts = cells[place, wave], np.full(in_sets.shape[1], float(items))
        likelihood = least_squares(
            shares, in_sets, frequent(place, wave), counts, law, in_sets.sum(axis=1)
        )
        singles.add(place, *likelihood)
    likely = [frequent(place, wave) for place, wave in enumerate(waves)]
    paired = [part for part in heard if len(part.places) == 2]
    larger = [np.zeros(frequencies.shape) for frequencies in likely]
    concentrated = [
        wave.probabilities @ (frequencies_of**2).sum(axis=1)
        for wave, frequencies_of in zip(waves, likely, strict=True)
    ]
    for part in paired:
        for this, other in permutations(part.places, 2):
            # The part of a report's variance that comes from the users in a cell, relative to that
            # of the noise, as if the other attribute were independent
            larger[this] += part.law.held / part.law.noise * likely[this] * concentrated[other]
    number = Counter(place for part in paired for place in part.places)
    weighted = [
        weighted_functions(
            cells[place, wave], larger[place] / max(number[place], 1), np.ones(wave.arcs)
        )
        for place, wave in enumerate(waves)
    ]
    grams = [_gram(wave, functions) for wave, (functions, _) in zip(waves, weighted, strict=True)]

    def pairs() -> Iterator[PairLikelihood]:
        for part in paired:
            (left, rows), (right, columns) = (weighted[place] for place in part.places)
            weighted_users = (
                part.held * rows[:, None, :, None] * columns[:, None, :] / part.law.noise
            )
            # <scores, P> over products of functions, one attribute after the other: products of all
            # cells of both are never written out
            half = np.tensordot(left, weighted_users, axes=([0, 1], [0, 2]))
            j, k = part.places
            yield PairLikelihood(
                (j, k),
                np.tensordot(half, right, axes=([1, 2], [0, 1])),
                float(part.held.sum()) / part.law.noise,
                Halves(sides[j], sides[k], *alike.pop((j, k), np.zeros(2)).tolist()),
            )

    return Likelihoods(edges, singles.told, grams, pairs())


def _gram(wave: ValueSets, functions: Floats) -> Floats:
    """The mean of f f' over the configurations and their functions: (cuts, sets, cells)."""
    return np.einsum("k,kax,kay->xy", wave.probabilities, functions, functions, optimize=True)


# Users in each set of an attribute, (cuts, sets): by it, its wave, items in a set, and law.
_Sums: TypeAlias = dict[tuple[int, ValueSets, int, ContrastLaw], Floats]


def _sums(heard: Sequence[Heard]) -> _Sums:
    """Sums of the reports on waves over all but one attribute, for each."""
    sums: _Sums = {}
    for part in heard:
        d = len(part.places)
        for axis, (place, wave) in enumerate(zip(part.places, part.waves, strict=True)):
            others = tuple(k for k in range(part.held.ndim) if k not in (axis, axis + d))
            items = math.prod(other.arcs for other in part.waves) // wave.arcs
            key = place, wave, items, part.law
            sums[key] = sums.get(key, 0.0) + part.held.sum(axis=others)
    return sums


def _first_estimates(
    singles: Singles, cells: Mapping[tuple[int, ValueSets], Floats], sums: _Sums
) -> list[tuple[float, Floats]]:
    """Return the users that reported on each attribute, and frequencies by ridge regression."""
    # As if all sets were equally precise, towards equal frequencies of values
    scores = [score.copy() for score in singles.scores]
    precisions = [precision.copy() for precision in singles.precisions]
    users = np.ones(len(scores))
    for (place, wave, items, law), in_sets in sums.items():
        known, functions = wave.arcs * law.information(items * wave.arcs), cells[place, wave]
        # Beside the constant, as the sum over sets is known
        functions = functions - 1 / wave.arcs
        scores[place] += known * np.tensordot(in_sets, functions, axes=2)
        precisions[place] += known * in_sets.sum() * _gram(wave, functions)
        users[place] += in_sets.sum()
    estimates = []
    for cut, score, precision, known in zip(
        singles.edges, scores, precisions, users.tolist(), strict=True
    ):
        even = np.diff(cut) / cut[-1]
        # Ridge: p = even + d with d of prior deviation `even`, a Newton step of a quadratic, so one
        # solution is exact. Norm-sub then removes what is below 0
        apart = np.linalg.solve(precision + np.diag(even**-2.0), score - precision @ even)
        estimates.append((known, norm_sub(even + apart)))
    return estimates

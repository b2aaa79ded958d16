"""What reports tell of attributes and of pairs: all that the posterior needs to know of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations, zip_longest
from typing import NamedTuple, TypeAlias

import numpy as np

from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base.linear_algebra import Floats
from rangeq.core.node_law import ContrastLaw
from rangeq.grids.cells import Edges, equal_cells
from rangeq.grids.wavegrid.density import Told
from rangeq.grids.wavegrid.interactions import Halves
from rangeq.grids.wavegrid.partitions import ValueSets
from rangeq.grids.wavegrid.square_waves import FINE, Heard, half_of

Key = tuple[int, int]


class PairLikelihood(NamedTuple):
    """What reports tell of a pair, over its fine cells.

    The log-likelihood of a table P is <scores, P> - precision tr(P' G P H) / 2, with the Gram
    matrices G and H of both attributes, and what halves add.

    Attributes
    ----------
    key : tuple of (int, int)
        The places of both attributes, the first before the second.
    scores : numpy.ndarray of float64
        Shape (cells, cells).
    precision : float
        At least 0.
    halves : Halves
        What reports on the halves of both tell besides.
    """

    key: Key
    scores: Floats
    precision: float
    halves: Halves


class Likelihoods(NamedTuple):
    """What reports tell, over fine cells of the attributes.

    Attributes
    ----------
    edges : list of tuple of int
        The cells of each attribute: see `fine_cells`.
    told : list of Told
        Of each attribute by itself.
    grams : list of numpy.ndarray of float64
        G of each attribute in all its pairs: shapes (cells, cells).
    pairs : iterator of PairLikelihood
        Of a pair there may be several. Made when asked for: many attributes have many pairs.
    """

    edges: list[Edges]
    told: list[Told]
    grams: list[Floats]
    pairs: Iterator[PairLikelihood]


def fine_cells(attributes: Domain, apart: Sequence[int] = ()) -> list[Edges]:
    """The cells in which the distribution of each attribute is estimated: `FINE` at most.

    Each of the last values that are no neighbours of others is a cell.
    """
    return [
        (*equal_cells(size - own, FINE - own), *range(size - own + 1, size + 1))
        for size, own in zip_longest(attributes.sizes, apart, fillvalue=0)
    ]


class Singles:
    """What is told of attributes by themselves, over their fine cells: added up, see `Told`.

    Parameters
    ----------
    attributes : Domain
        Names and sizes.
    apart : sequence of int, default ()
        How many of the last values of each are no neighbours of others; (): none.
    """

    def __init__(self, attributes: Domain, apart: Sequence[int] = ()) -> None:
        self.edges = fine_cells(attributes, apart)
        self.apart = apart or [0] * len(self.edges)
        self.scores = [np.zeros(len(cut) - 1) for cut in self.edges]
        self.precisions = [np.zeros((len(score), len(score))) for score in self.scores]

    def add(self, place: int, scores: Floats, precision: Floats) -> None:
        """More about one attribute: shapes (cells,) and (cells, cells)."""
        self.scores[place] += scores
        self.precisions[place] += precision

    @property
    def told(self) -> list[Told]:
        """What is known of each attribute."""
        return [
            Told(score, precision, np.diff(cut).astype(np.float64), own)
            for cut, score, precision, own in zip(
                self.edges, self.scores, self.precisions, self.apart, strict=True
            )
        ]


def least_squares(
    cells: Floats, held: Floats, likely: Floats, counts: Floats, law: ContrastLaw, users: Floats
) -> tuple[Floats, Floats]:
    """What sums of an oracle's items tell of an attribute: scores and precision, see `Told`.

    By generalised least squares in weights of sum 0: their covariance from one user is V - f f', V
    diagonal.

    Shapes: `cells` (cuts, sums, cells), `held` (cuts, sums), `likely` (cuts, sums), `counts`
    (sums,), `users` (cuts,).
    """
    inverse = 1 / (law.noise * counts + law.held * likely)
    across = (inverse * likely)[..., None]
    left = np.maximum(1 - (likely**2 * inverse).sum(axis=1), 1e-12)[:, None, None]

    def solved(columns: Floats) -> Floats:
        """(V - f f')^-1 of columns, by Sherman and Morrison."""
        inside = np.swapaxes(across, 1, 2) @ columns
        return np.asarray(inverse[..., None] * columns + across * (inside / left))

    ones = solved(np.ones((*held.shape, 1)))
    every = solved(np.concatenate([held[..., None], cells * users[:, None, None]], axis=2))
    every -= ones * (every.sum(axis=1) / ones.sum(axis=1))[:, None]
    told: Floats = np.tensordot(cells, every, axes=([0, 1], [0, 1]))
    return told[:, 0], told[:, 1:]


def weighted_functions(cells: Floats, larger: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Functions of an attribute of which products with those of another are told alike.

    The variance of a cell of a pair is about 1 / (u v), for weights u and v along both attributes:
    u is one over the number of items, and over the root of how much larger the variance of one is
    than its noise.

    Shapes: `larger` (cuts, sums), `counts` (sums,).
    """
    weights = 1 / (counts * np.sqrt(1 + larger))
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
    """What the reports of `WaveGrid` tell.

    Where the privacy loss is large, few users in a cell are told of more precisely than many: so
    attributes are estimated first as if all cells were alike. Of pairs it matters less which cells
    are heavy, and they are taken to be independent for it.

    Shapes: `halves` (2, 2).
    """
    singles = Singles(attributes, apart)
    edges = singles.edges
    sides = [half_of(cut) for cut in edges]
    alike: dict[Key, Floats] = {}
    for part in halves:
        information = part.law.information(4)
        for axis, place in enumerate(part.places):
            lower, upper = information * part.held.sum(axis=1 - axis)
            squares = information * part.held.sum() * np.outer(sides[place], sides[place])
            singles.add(place, (lower - upper) * sides[place], squares)
        j, k = part.places
        (a, b), (c, d) = information * part.held
        alike[j, k] = alike.get((j, k), np.zeros(2)) + np.array([a - b - c + d, a + b + c + d])
    sums = _sums(heard)
    about = [(place, wave) for place, wave, _, _ in sums]
    cells = {
        (place, wave): wave.shares(edges[place]) for place, wave in (*enumerate(waves), *about)
    }
    first = _first_estimates(singles, cells, sums)

    def frequent(place: int, wave: ValueSets) -> Floats:
        """About how frequent the sets of an attribute are: shape (cuts, sets), above 0."""
        users, frequencies = first[place]
        return (users * (cells[place, wave] @ frequencies) + 1) / (users + wave.arcs)

    for (place, wave, items, law), held in sums.items():
        own, counts = cells[place, wave], np.full(held.shape[1], float(items))
        told = least_squares(own, held, frequent(place, wave), counts, law, held.sum(axis=1))
        singles.add(place, *told)
    likely = [frequent(place, wave) for place, wave in enumerate(waves)]
    paired = [part for part in heard if len(part.places) == 2]
    larger = [np.zeros(one.shape) for one in likely]
    concentrated = [
        wave.probabilities @ (one**2).sum(axis=1) for wave, one in zip(waves, likely, strict=True)
    ]
    for part in paired:
        for one, other in permutations(part.places, 2):
            larger[one] += part.law.held / part.law.noise * likely[one] * concentrated[other]
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
            held = part.held * rows[:, None, :, None] * columns[:, None, :] / part.law.noise
            half = np.tensordot(left, held, axes=([0, 1], [0, 2]))
            j, k = part.places
            yield PairLikelihood(
                (j, k),
                np.tensordot(half, right, axes=([1, 2], [0, 1])),
                float(part.held.sum()) / part.law.noise,
                Halves(sides[j], sides[k], *alike.pop((j, k), np.zeros(2)).tolist()),
            )

    return Likelihoods(edges, singles.told, grams, pairs())


def _gram(wave: ValueSets, functions: Floats) -> Floats:
    """E f f' over the configurations and their functions, of shape (cuts, sets, cells)."""
    gram: Floats = np.einsum(
        "k,kax,kay->xy", wave.probabilities, functions, functions, optimize=True
    )
    return gram


_Sums: TypeAlias = dict[tuple[int, ValueSets, int, ContrastLaw], Floats]
"""Users in each set of an attribute, (cuts, sets): by it, its wave, items in a set, and law."""


def _sums(heard: Sequence[Heard]) -> _Sums:
    """What the reports on waves say of single attributes."""
    found: _Sums = {}
    for part in heard:
        d = len(part.places)
        for axis, (place, wave) in enumerate(zip(part.places, part.waves, strict=True)):
            others = tuple(k for k in range(part.held.ndim) if k not in (axis, axis + d))
            items = math.prod(other.arcs for other in part.waves) // wave.arcs
            key = place, wave, items, part.law
            found[key] = found.get(key, 0.0) + part.held.sum(axis=others)
    return found


def _first_estimates(
    singles: Singles, cells: Mapping[tuple[int, ValueSets], Floats], sums: _Sums
) -> list[tuple[float, Floats]]:
    """Of each attribute how many users told of its sets, and about its frequencies.

    As if all sets were equally precise, by ridge regression towards equal frequencies of values.
    """
    scores = [score.copy() for score in singles.scores]
    precisions = [precision.copy() for precision in singles.precisions]
    users = np.ones(len(scores))
    for (place, wave, items, law), held in sums.items():
        told, functions = wave.arcs * law.information(items * wave.arcs), cells[place, wave]
        functions = functions - 1 / wave.arcs
        scores[place] += told * np.tensordot(held, functions, axes=2)
        precisions[place] += told * held.sum() * _gram(wave, functions)
        users[place] += held.sum()
    found = []
    for cut, score, precision, told in zip(
        singles.edges, scores, precisions, users.tolist(), strict=True
    ):
        even = np.diff(cut) / cut[-1]
        apart = np.linalg.solve(precision + np.diag(even**-2.0), score - precision @ even)
        found.append((told, norm_sub(even + apart)))
    return found

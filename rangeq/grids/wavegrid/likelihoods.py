"""What reports tell of attributes and of pairs: all that the posterior needs to know of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from frequency.schema import Domain
from mechdesign._support.arrays import Floats
from rangeq.grids.cells import Edges, equal_cells
from rangeq.grids.wavegrid.density import Told
from rangeq.grids.wavegrid.interactions import Halves
from rangeq.grids.wavegrid.square_waves import FINE, Heard, half_of
from rangeq.grids.wavegrid.value_sets import ValueSets

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


def fine_cells(attributes: Domain) -> list[Edges]:
    """The cells in which the distribution of each attribute is estimated: `FINE` at most."""
    return [equal_cells(size, FINE) for size in attributes.sizes]


class Singles:
    """What is told of attributes by themselves, over their fine cells: added up, see `Told`.

    Parameters
    ----------
    attributes : Domain
        Names and sizes.
    """

    def __init__(self, attributes: Domain) -> None:
        self.edges = fine_cells(attributes)
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
            Told(score, precision, np.diff(cut).astype(np.float64))
            for cut, score, precision in zip(self.edges, self.scores, self.precisions, strict=True)
        ]


def of_waves(
    attributes: Domain, waves: Sequence[ValueSets], heard: Sequence[Heard], halves: Sequence[Heard]
) -> Likelihoods:
    """What the reports of `WaveGrid` tell.

    Parameters
    ----------
    attributes : Domain
        Those of the protocol.
    waves : sequence of Wave or Partition
        The wave of each attribute.
    heard : sequence of Heard
        What the reports on waves say: of a pair there may be several.
    halves : sequence of Heard
        What those on halves say: counts of shape (2, 2), of pairs that are heard of.

    Returns
    -------
    Likelihoods
        Of all of them.
    """
    singles = Singles(attributes)
    edges = singles.edges
    functions = [wave.shares(cut) - 1 / wave.arcs for wave, cut in zip(waves, edges, strict=True)]
    grams = [_gram(wave, function) for wave, function in zip(waves, functions, strict=True)]
    sides = [half_of(cut) for cut in edges]
    alike: dict[Key, Floats] = {}
    for part in heard:
        told = part.information * float(part.held.sum())
        for axis, place in enumerate(part.places):
            others = tuple(
                k for k in range(part.held.ndim) if k not in (axis, axis + len(part.places))
            )
            arcs = waves[place].arcs * part.information * part.held.sum(axis=others)
            singles.add(place, np.tensordot(arcs, functions[place], axes=2), told * grams[place])
    for part in halves:
        told = part.information * float(part.held.sum())
        for axis, place in enumerate(part.places):
            lower, upper = part.information * part.held.sum(axis=1 - axis)
            squares = np.outer(sides[place], sides[place])
            singles.add(place, (lower - upper) * sides[place], told * squares)
        j, k = part.places
        (a, b), (c, d) = part.information * part.held
        alike[j, k] = alike.get((j, k), np.zeros(2)) + np.array([a - b - c + d, a + b + c + d])

    def pairs() -> Iterator[PairLikelihood]:
        for part in heard:
            if len(part.places) == 2:
                j, k = part.places
                half = np.tensordot(functions[j], part.held, axes=([0, 1], [0, 2]))
                products = np.tensordot(half, functions[k], axes=([1, 2], [0, 1]))
                yield PairLikelihood(
                    (j, k),
                    part.information * waves[j].arcs * waves[k].arcs * products,
                    part.information * float(part.held.sum()),
                    Halves(sides[j], sides[k], *alike.pop((j, k), np.zeros(2)).tolist()),
                )

    return Likelihoods(edges, singles.told, grams, pairs())


def _gram(wave: ValueSets, functions: Floats) -> Floats:
    """E f f' over the configurations and the orthonormal functions of the arcs.

    That is g times that of centred indicators.
    """
    gram: Floats = wave.arcs * np.einsum(
        "k,kax,kay->xy", wave.probabilities, functions, functions, optimize=True
    )
    return gram

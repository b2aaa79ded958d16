"""The list of those that are found, from candidates with estimates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy

from frequency.heavy.errors import ItemErrors
from frequency.heavy.found import Found, Gate, NamedItems
from frequency.heavy.universe import Universe
from mechdesign.base.linear_algebra import Floats, Words


def listed(
    universe: Universe,
    words: Words,
    estimates: Floats,
    considered: int,
    errors: ItemErrors,
    gates: Sequence[Callable[[Any], Any]],
    k: int | None,
    threshold: float | None,
    confidence: float,
    estimated: Callable[[Words], Floats] | None = None,
) -> Found:
    """Return the candidates that are frequent enough.

    Shapes: `words` (candidates,), `estimates` (candidates,).
    """
    # The union bound over all items that were considered, not only over the candidates.
    noise = errors.beyond((1 - confidence) / considered)
    least = (
        threshold
        if threshold is not None
        else -np.inf
        if k is not None
        else np.nextafter(noise, np.inf)
    )
    order = np.argsort(-estimates, kind="stable")
    order = order[estimates[order] >= least][:k]
    # The k-th estimate was the cut of this run: what is below it has been lost there.
    if k is not None and len(order) == k:
        least = max(least, float(estimates[order[-1]]))
    chosen = estimates[order]
    deviations = errors.deviation(chosen)
    return Found(
        universe.values(words[order]),
        chosen,
        deviations**2,
        partial(half_of, errors, considered, chosen),
        errors.population,
        considered,
        noise,
        confidence,
        (*gates, Gate(least, errors.deviation)),
        named=None if estimated is None else partial(_named, universe, errors, estimated),
    )


def _named(
    universe: Universe, errors: ItemErrors, estimated: Callable[[Words], Floats], items: list[Any]
) -> NamedItems:
    """Return the estimates of items that nobody chose by their estimates."""
    frequencies = estimated(universe.words(items))
    half = partial(half_of, errors, len(frequencies), frequencies)
    return NamedItems(frequencies, errors.deviation(frequencies) ** 2, half)


class EstimateErrors(Protocol):
    """The errors of estimates of items: `ItemErrors`, or errors that differ between items."""

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviations of the estimates, if items have these frequencies."""

    def beyond(self, alpha: float) -> float | Floats:
        """Return what estimates exceed with probability ``alpha`` at most, for absent items."""


def half_of(
    errors: EstimateErrors | None, considered: int, frequencies: Floats, confidence: float
) -> Floats:
    """Return half of the lengths of the intervals of items that were chosen from so many.

    Shapes: `frequencies` (items,); returns (items,).
    """
    if errors is None or not len(frequencies):
        return np.zeros(len(frequencies))
    # The false coverage rate (Benjamini and Yekutieli 2005): of k selected from m, each interval at
    # the level 1 - (1 - confidence) k / m, half of it on either side.
    level = (1 - confidence) * len(frequencies) / considered / 2
    # Intervals are that much wider than normal ones as noise reaches further at this level.
    normal = -float(scipy.special.ndtri(level)) * errors.deviation(np.zeros(len(frequencies)))
    wider = np.maximum(1.0, errors.beyond(level) / normal)
    result: Floats = wider * -float(scipy.special.ndtri(level)) * errors.deviation(frequencies)
    return result


def nothing(universe: Universe, confidence: float, n: int) -> Found:
    """Return the list from too few reports to say anything."""
    none = np.zeros(0)
    words = np.zeros(0, dtype=np.uint64)
    return Found(
        universe.values(words),
        none,
        none,
        partial(half_of, None, 0, none),
        n,
        0,
        np.inf,
        confidence,
        (),
    )

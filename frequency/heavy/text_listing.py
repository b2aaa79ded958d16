"""The list of frequent texts, whose estimates are from different numbers of users."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from frequency.exceptions import InvalidQuestion
from frequency.heavy.errors import ItemErrors
from frequency.heavy.found import Found, Gate, NamedItems
from frequency.heavy.listing import half_of, nothing
from frequency.heavy.spelt_prefixes import Walk
from frequency.heavy.universe import Universe
from mechdesign.base.linear_algebra import Floats, Items


@dataclass(frozen=True)
class PooledErrors:
    """The errors of estimates of items, each from a number of users of its own.

    Parameters
    ----------
    kinds : sequence of ItemErrors
        The different ones.
    which : numpy.ndarray of int64
        Shape (items,): whose errors each item's estimate has.
    """

    kinds: Sequence[ItemErrors]
    which: Items

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviations of the estimates, if items have these frequencies."""
        result = np.empty(len(self.which))
        for kind in np.unique(self.which).tolist():
            mine = self.which == kind
            result[mine] = self.kinds[kind].deviation(frequency[mine])
        return result

    def beyond(self, alpha: float) -> Floats:
        """Return what estimates exceed with probability ``alpha`` at most, for absent items."""
        result = np.empty(len(self.which))
        for kind in np.unique(self.which).tolist():
            result[self.which == kind] = self.kinds[kind].beyond(alpha)
        return result


def listed_texts(
    universe: Universe, walk: Walk, k: int | None, threshold: float | None, confidence: float
) -> Found:
    """Return the texts that were reached and are frequent enough.

    Of k at most those are listed whose estimates stand out most from their noise: what is found of
    long texts is found by few users.
    """
    if not walk.users[0]:
        return nothing(universe, confidence, walk.population)
    kinds = [walk.errors(number) if users else None for number, users in enumerate(walk.users)]
    known = [errors for errors in kinds if errors is not None]
    considered = max(walk.considered, 1)
    alpha = (1 - confidence) / considered
    there = walk.users[walk.ends] > 0
    words, ends = walk.words[there], walk.ends[there]
    estimates = walk.estimated(words, ends)
    noise = PooledErrors(known, ends).beyond(alpha)
    # Estimates of long texts have more noise: ranked by frequency alone they would fill the list.
    out = estimates / noise
    if threshold is not None:
        least = np.full(len(words), float(threshold))
    else:
        least = np.nextafter(noise, np.inf) if k is None else np.full(len(words), -np.inf)
    order = np.argsort(-out, kind="stable")
    order = order[(estimates >= least)[order]][:k]
    full = k is not None and len(order) == k
    beyond = float(out[order[-1]]) if full else -np.inf
    order = order[np.argsort(-estimates[order], kind="stable")]
    errors, chosen = PooledErrors(known, ends[order]), estimates[order]
    last = int(ends[order].max(initial=0))
    top = known[last].beyond(alpha)
    cut = threshold if threshold is not None else top if k is None else -np.inf
    return Found(
        universe.values(words[order]),
        chosen,
        errors.deviation(chosen) ** 2,
        partial(half_of, errors, considered, chosen),
        walk.population,
        considered,
        noise[order],
        confidence,
        (*walk.gates[: last + 1], Gate(max(cut, beyond * top), known[last].deviation)),
        f"it is spelt in at most {walk.channel.lengths[last]} bits",
        partial(_named, universe, walk, known),
    )


def _named(
    universe: Universe, walk: Walk, kinds: Sequence[ItemErrors], texts: list[Any]
) -> NamedItems:
    """Return the estimates of texts that nobody chose by their estimates."""
    words = universe.words(texts)
    ends = walk.ends_of(words)
    if not walk.users[ends].all():
        text = texts[int(np.argmin(walk.users[ends]))]
        raise InvalidQuestion(f"nobody reported on texts as long as {text!r:.80}")
    frequencies = walk.estimated(words, ends)
    errors = PooledErrors(kinds, ends)
    half = partial(half_of, errors, len(frequencies), frequencies)
    return NamedItems(frequencies, errors.deviation(frequencies) ** 2, half)

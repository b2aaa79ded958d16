"""Quantiles of a distribution function that falls here and there, by noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.answer import ConfidenceInterval, place_of, plain
from frequency.exceptions import InvalidQuestion
from mechdesign.base import Floats, Integers, Items, listed, shown, whole


def quantile(cdf: Floats, phi: npt.ArrayLike) -> Any:
    """Return the least items with at least the fraction phi at or below them, monotone in phi.

    An estimated cdf may reach phi more than once. Then it is the middle between the first item that
    reaches it and the first after which all do; the first alone would be biased low by the noise.
    Shapes: `cdf` (items,); returns like `phi`.
    """
    if np.isnan(cdf[-1]):
        raise ValueError("no reports: there are no quantiles")
    wanted = fractions(phi)
    return plain((first_reaching(cdf, wanted) + reaching_for_good(cdf, wanted)) // 2)


def woodruff(band: ConfidenceInterval, phi: npt.ArrayLike) -> tuple[Any, Any]:
    """Return the items between which the phi-quantile lies: where the cdf's band crosses phi.

    Woodruff's interval, from the first item where the band's upper end reaches phi to the first
    from which on its lower end does. An end is beyond the quantile only if the band misses the cdf
    right there: noise elsewhere widens it but never makes it wrong.
    Shapes: `band` (items,); returns like `phi`.
    """
    wanted = fractions(phi)
    return (
        plain(first_reaching(band.high, wanted)),
        plain(reaching_for_good(band.low, wanted)),
    )


def place_along(attribute: str | int | None, names: Sequence[str]) -> int:
    """Return the place of the attribute of which quantiles are wanted."""
    if attribute is not None:
        return place_of(attribute, names)
    if len(names) > 1:
        raise InvalidQuestion(
            f"there are {len(names)} attributes: say which one, of {listed(names)}"
        )
    return 0


def first_reaching(cdf: Floats, phi: Floats) -> Integers:
    """Return the first items with at least phi at or below them: shaped like `phi`."""
    # A cdf summed up in floats may end just below 1
    places = np.searchsorted(np.maximum.accumulate(cdf), phi - 1e-12)
    # Past the end where the whole cdf is below phi: the last item then.
    return np.minimum(places, len(cdf) - 1)


def reaching_for_good(cdf: Floats, phi: Floats) -> Integers:
    """Return the first items with at least phi at or below them and all later ones."""
    # The running minimum from the right: the largest monotone function below the cdf, as the
    # running maximum is the least one above.
    return first_reaching(np.minimum.accumulate(cdf[::-1])[::-1], phi)


def fractions(phi: npt.ArrayLike) -> Floats:
    """Return numbers from 0 to 1; ValueError for others."""
    wanted = np.asarray(phi, dtype=np.float64)
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(f"phi must lie in [0, 1], got {shown(phi)}")
    return wanted


# ------------------------------------------------------------------------------------------------
# Synthetic records of an estimated distribution: they are nobody's.


def shared_out(weights: Floats, n: int, rng: np.random.Generator) -> Items:
    """Items in random order, (n,), of which each has its share, rounded at random.

    The numbers of items in any run from the first one on are off by less than one, and not by the
    root of n as if they were drawn one by one. Shapes: `weights` (items,).
    """
    parts = np.cumsum(weights)
    parts = parts / parts[-1] * n
    parts[-1] = n
    counts = np.diff(np.floor(parts + rng.random()), prepend=0).astype(np.int64)
    return rng.permutation(np.repeat(np.arange(len(weights)), counts))


def checked_sample(
    n: int, number: int, reports: int, rng: np.random.Generator | None
) -> tuple[int, int, np.random.Generator]:
    """Return the numbers of records and samples asked for, and the generator, checked."""
    records = whole(n, "n", 1, what="a number of records")
    samples = whole(number, "number", 1, what="a number of samples")
    if not reports:
        raise ValueError("no reports: there is no distribution to sample from")
    return records, samples, np.random.default_rng() if rng is None else rng

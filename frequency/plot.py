"""Figures of estimates, `matplotlib.figure.Figure` objects like those of `mechdesign.plot`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from frequency.core import Estimate
from frequency.schema.plot import bars


def frequencies(
    estimate: Estimate,
    truth: npt.ArrayLike | None = None,
    labels: Sequence[str] | None = None,
    confidence: float = 0.95,
    largest: int = 40,
) -> Figure:
    """Draw the estimated frequencies with confidence intervals, largest first.

    Shapes: `truth` (items,).
    """
    count = len(estimate.frequencies)
    items = np.arange(count) if estimate.items is None else estimate.items
    names = [str(item) for item in items] if labels is None else list(labels)
    known = None if truth is None else np.asarray(truth, dtype=np.float64)
    if estimate.n == 0 or largest < 1:
        raise ValueError("there is nothing to draw: no reports, or no items asked for")
    if len(names) != count or (known is not None and known.shape != (count,)):
        raise ValueError(f"labels and truth must have one entry for each of the {count} items")
    return bars(
        names,
        estimate.frequencies,
        estimate.interval(confidence),
        measure="fraction of the population",
        truth=known,
        largest=largest,
        confidence=confidence,
    )

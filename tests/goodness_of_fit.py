"""Goodness of fit of what is drawn.

False alarms: a statistical test compares its p-value with `FALSE_ALARM`, divided by the number of
comparisons that it makes. It is seeded, so that what passes once passes always, and it is shown to
reject a wrong distribution.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

FALSE_ALARM = 1e-6
"""The largest chance that a right program fails a statistical test."""


def goodness(observed: np.ndarray, probabilities: npt.ArrayLike) -> float:
    """The p-value of a chi-square test; cells of fewer than 10 expected are pooled.

    Parameters
    ----------
    observed : ndarray of int
        How often each outcome came.
    probabilities : array_like of float
        Of the same outcomes, up to a factor; an outcome of probability 0 must not have come.
    """
    probabilities = np.asarray(probabilities, dtype=float)
    if observed[probabilities == 0].any():
        return 0.0
    expected = probabilities / probabilities.sum() * observed.sum()
    order = np.argsort(expected)
    observed, expected = observed[order], expected[order]
    poor = int((expected < 10).sum())
    if poor and expected[:poor].sum() < 10:
        poor = min(int(np.searchsorted(np.cumsum(expected), 10)) + 1, len(expected))
    if poor:
        observed = np.concatenate([[observed[:poor].sum()], observed[poor:]])
        expected = np.concatenate([[expected[:poor].sum()], expected[poor:]])
    return 1.0 if len(expected) == 1 else float(stats.chisquare(observed, expected).pvalue)


def at_most(successes: int, trials: int, probability: float) -> float:
    """The p-value of so many successes in independent trials of at most this probability."""
    return float(stats.binom.sf(successes - 1, trials, probability))

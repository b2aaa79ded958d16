"""Estimates about a population of which only a random part reported."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mechdesign.base.linear_algebra import Floats
from mechdesign.base.numbers import whole


class OfPopulation:
    """An estimate about the users who reported, or about all of whom they are a random part.

    Attributes
    ----------
    n : int
        The number of users that the estimate is about.
    reports : int
        How many of them it is from: all, unless it is made by `of_population`.
    """

    n: int
    reports: int

    def _about(self, reports: int) -> None:
        """The estimate is from so many reports, and about their senders."""
        self.n = self.reports = reports

    def of_population(self, n: int) -> Self:
        """The same estimate, about more users, of whom those who reported are a random part.

        Variances grow by what drawing the part without replacement adds: for an answer v that is
        v (1 - v) (1 / reports - 1 / n).

        Parameters
        ----------
        n : int
            The number of users, at least that of the reports.

        Returns
        -------
        OfPopulation
            Another estimate of the same kind.

        Raises
        ------
        ValueError
            Fewer users than reports.
        """
        result = copy.copy(self)
        result.n = whole(n, "n", self.reports, what="a number of users")
        vars(result).pop("variances", None)  # which may have been computed already
        return result

    @property
    def _drawn(self) -> float:
        """What drawing the users who reported multiplies a variance among all users with."""
        return 1 / self.reports - 1 / self.n if self.n > self.reports > 0 else 0.0

    def _of_drawing(self, values: npt.ArrayLike) -> Floats:
        """What drawing the users who reported adds to the variances of these fractions."""
        if not self._drawn:
            return np.zeros(np.shape(values))
        f = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
        result: Floats = f * (1 - f) * self._drawn
        return result

    def _of_drawing_sums(self, weights: Any, frequencies: Floats) -> Floats:
        """The same of weighted sums of fractions: weights have shape (sums, items)."""
        if not self._drawn:
            return np.zeros(len(weights))
        f = np.clip(frequencies, 0.0, 1.0)
        f = f / max(float(f.sum()), 1.0)  # of noise, which may be more than everybody
        mean = np.asarray(weights @ f)
        # About the mean, where who has none of the items has weight 0: squares, and no difference
        others = max(1.0 - float(f.sum()), 0.0) * mean**2
        result: Floats = ((weights - mean[:, None]) ** 2 @ f + others) * self._drawn
        return result

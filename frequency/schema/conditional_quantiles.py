"""Quantiles among the users who meet a condition, from the answers of any estimate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core import Answer, fractions, normal_quantile, quantile
from mechdesign.base import Between, Floats, Integers


class ConditionalQuantiles:
    """The bins of an ordered attribute in which quantiles of some of the users lie.

    The answer up to a bin, less the fraction phi of the answer to all bins, is (1 - phi) times the
    answer up to the bin, less phi times that of the bins beyond it: it crosses 0 at the quantile.

    ``answer`` takes a mapping of attributes' places to items, ranges or arrays of the ends of
    ranges; ``condition`` is such a mapping of the others, for the users who count.
    """

    def __init__(
        self,
        answer: Callable[[Mapping[int, Any]], Answer],
        condition: Mapping[int, Any],
        place: int,
        bins: int,
    ) -> None:
        last = np.arange(bins)
        self._up = answer({**condition, place: Between(np.zeros_like(last), last)})
        self.cumulative: Floats = np.asarray(self._up.value, dtype=np.float64)
        # Of the last bin there is nothing beyond
        beyond = Between(last[1:], np.full(bins - 1, bins - 1))
        self._rest = answer({**condition, place: beyond}) if bins > 1 else None

    def bins(self, phi: npt.ArrayLike) -> Integers:
        """Return the bins of quantiles, shaped like `phi`.

        Where the answers cross more than once, it is the middle.
        """
        self._require_users()
        return np.asarray(quantile(self.cumulative / self.cumulative[-1], phi))

    def _require_users(self) -> None:
        if not self.cumulative[-1] > 0:
            raise ValueError("by the estimate nobody meets the condition: there are no quantiles")

    def ends(self, phi: npt.ArrayLike, confidence: float) -> tuple[Integers, Integers]:
        """Return the bins between which quantiles lie, with at least about this probability.

        They are shaped like `phi`.
        """
        self._require_users()
        z, wanted = normal_quantile(confidence), fractions(phi)[..., None]
        rest, error = np.zeros((2, self.cumulative.size))
        if self._rest is not None:
            rest[:-1] = self._rest.value
            error[:-1] = np.sqrt(np.asarray(self._rest.variance))
        lead = (1 - wanted) * self.cumulative - wanted * rest
        half = z * ((1 - wanted) * np.sqrt(np.asarray(self._up.variance)) + wanted * error)
        # Where the interval of the difference holds 0. Its standard error is taken as if both of
        # its answers erred together, whatever their correlation
        could = lead + half >= 0
        could[..., -1] = True
        behind = lead - half < 0
        behind[..., -1] = False
        return np.asarray(could.argmax(axis=-1)), _after_the_last(behind)


def _after_the_last(marked: npt.NDArray[np.bool_]) -> Integers:
    """The place after the last mark along the last axis; 0 if there is none."""
    last = marked.shape[-1] - marked[..., ::-1].argmax(axis=-1)
    return np.where(marked.any(axis=-1), last, 0)

"""Quantiles of one attribute, by the answers about its prefixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from frequency.core.answer import Answer, ConfidenceInterval, normal_quantile
from frequency.core.channel import LARGEST_LIST
from frequency.core.quantiles import fractions, place_along, quantile, woodruff
from frequency.schema import Domain
from mechdesign.base.numbers import whole

_BATCH = 1 << 16
"""How many prefixes are asked for at a time."""


class AttributeQuantiles(ABC):
    """Estimates about records, which have quantiles along each of their attributes."""

    @property
    @abstractmethod
    def _records(self) -> Domain:
        """The attributes."""

    @abstractmethod
    def answer(self, where: Mapping[Any, Any]) -> Answer:
        """The fraction of the population with some values: arrays of questions too."""

    def quantile(self, phi: npt.ArrayLike, attribute: str | int | None = None) -> Any:
        """The least value with at least the fraction phi of the population at or below it.

        An estimated cdf may reach phi more than once: see `frequency.core.quantiles.quantile`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        attribute : str or int, optional
            By name or by place; None: the only one.

        Returns
        -------
        int or numpy.ndarray
            Values of the attribute, of the shape of ``phi``.

        Raises
        ------
        ValueError
            For a phi outside of [0, 1], an attribute of more than 2^26 values, or if there are no
            reports.
        InvalidQuestion
            No such attribute, or none where there are several.
        """
        wanted = fractions(phi)
        prefixes = self._prefixes(attribute)
        return quantile(np.concatenate([told.value for told in prefixes]), wanted)

    def quantile_interval(
        self, phi: npt.ArrayLike, confidence: float = 0.95, attribute: str | int | None = None
    ) -> tuple[Any, Any]:
        """The values between which the phi-quantile lies: `frequency.core.quantiles.woodruff`.

        Parameters
        ----------
        phi : array_like
            In [0, 1]: a number, or an array.
        confidence : float, default 0.95
            In (0, 1), of the band at each value.
        attribute : str or int, optional
            By name or by place; None: the only one.

        Returns
        -------
        tuple
            The first and the last value, ints or arrays of the shape of ``phi``.

        Raises
        ------
        UnknownVariance
            The error of an answer about a prefix is not known.
        ValueError
            For a phi outside of [0, 1], a confidence outside of (0, 1), or an attribute of more
            than 2^26 values.
        InvalidQuestion
            No such attribute, or none where there are several.
        """
        wanted, _ = fractions(phi), normal_quantile(confidence)
        ends = [told.interval(confidence) for told in self._prefixes(attribute)]
        band = ConfidenceInterval(*(np.concatenate(end) for end in zip(*ends, strict=True)))
        return woodruff(band, wanted)

    def _prefixes(self, attribute: str | int | None) -> Iterator[Answer]:
        """The answers about all prefixes of an attribute, in order."""
        place = place_along(attribute, self._records.names)
        size = whole(
            self._records.sizes[place], "an attribute's size", 1, LARGEST_LIST, what="a number"
        )
        for start in range(0, size, _BATCH):
            yield self.answer({place: (0, np.arange(start, min(start + _BATCH, size)))})

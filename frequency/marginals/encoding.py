"""Attributes of several values as several binary ones (thesis 4.5.3)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from frequency.marginals.domain import Domain
from frequency.marginals.estimate import MarginalEstimate
from mechdesign._support.arrays import Floats, Items


class BinaryEncoding:
    """Every attribute of r values as ceil(log2 r) binary ones, the most significant first.

    ``age`` becomes ``age.0``, ``age.1`` ...

    A marginal of k attributes is one of up to `way` (k) binary attributes. Codes of r and beyond
    are not used: no record has them.

    >>> BinaryEncoding(Domain({"age": 5, "smokes": 2})).bits
    Domain({'age.0': 2, 'age.1': 2, 'age.2': 2, 'smokes.0': 2})
    """

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        if not any(size > 1 for size in domain.shape):
            raise ValueError("every attribute has a single value: there is nothing to encode")

    @cached_property
    def bits(self) -> Domain:
        """The binary attributes: what a protocol is made for."""
        return Domain.binary(*(bit for name in self.domain for bit in self._bits(name)))

    def _bits(self, name: str) -> list[str]:
        return [f"{name}.{place}" for place in range((self.domain[name] - 1).bit_length())]

    def way(self, k: int) -> int:
        """How many binary attributes the marginals of k attributes take at most.

        Parameters
        ----------
        k : int
            How many attributes of the domain, at least 0.

        Returns
        -------
        int
            At most the number of `bits`.
        """
        return sum(
            sorted(((size - 1).bit_length() for size in self.domain.shape), reverse=True)[:k]
        )

    def records(self, records: Any) -> Items:
        """Records of the domain as records of `bits`.

        Parameters
        ----------
        records : array_like, DataFrame or mapping
            See `Domain.records`.

        Returns
        -------
        numpy.ndarray of int64
            Shape (n, binary attributes): 0 and 1.

        Raises
        ------
        InvalidValue
            The first value that its attribute does not have.
        """
        table = self.domain.records(records)
        columns = []
        for value, size in zip(table.T, self.domain.shape, strict=True):
            columns += [value >> place & 1 for place in reversed(range((size - 1).bit_length()))]
        return np.stack(columns, axis=1).astype(np.int64)

    def marginal(self, estimate: MarginalEstimate, attributes: Sequence[str]) -> Floats:
        """The marginal of attributes of the domain, from an estimate about `bits`.

        Unused codes are left out, and what the others lack of 1 is shared equally: least squares,
        when errors of cells are alike.

        Parameters
        ----------
        estimate : MarginalEstimate
            Of marginals of enough binary attributes.
        attributes : sequence of str
            Distinct names of the domain.

        Returns
        -------
        numpy.ndarray
            Fractions, one axis an attribute.
        """
        names = self.domain.checked(attributes)
        bits = [bit for name in names for bit in self._bits(name)]
        shape = self.domain.project(names).shape
        cells = estimate.marginal(bits) if bits else np.ones(1)
        codes: Floats = cells.reshape([1 << (size - 1).bit_length() for size in shape])
        used = codes[tuple(slice(size) for size in shape)]
        result: Floats = used + (1 - used.sum()) / used.size
        return result

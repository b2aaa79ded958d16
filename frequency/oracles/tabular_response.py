"""Any mechanism as an oracle: whatever `mechdesign` designs can be deployed."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from frequency.core.aggregate import Aggregate
from frequency.core.channel import Reports, smallest_integer
from frequency.core.oracle import Oracle, spread_out, variance_of, variance_of_scores
from frequency.exceptions import NotIdentifiable
from mechdesign import Audit, Mechanism, Privacy
from mechdesign._support.arrays import Floats, Items
from mechdesign._support.frozen import set_fields
from mechdesign._support.randomness import BitSource

_PRIME = (1 << 61) - 1

_TOLERANCE = 1e-6
"""How far the reconstruction, in floats, may be from unbiased."""


@dataclass(frozen=True, init=False)
class Tabular(Oracle):
    """Any `Mechanism` as an oracle: its inputs are the items.

    A report is the ``output`` drawn for the user's item.

    Frequencies are reconstructed by weighted least squares: of all the linear estimators that are
    unbiased for every population, the one of least variance when all items are equally frequent, f
    = (P' M^-1 P)^-1 P' M^-1 (counts / n) with M the diagonal of the outputs' probabilities then.

    The privacy is the mechanism's: with ``neighbours="all"`` that is local privacy; a mechanism for
    adjacent counts, or at limited precision k, protects only items at most 1, or k, apart from each
    other to that degree. ``epsilon`` is -ln of its alpha, rounded up; under a `Metric` that is for
    one unit of distance, and ``audit().allowed`` is a power of `max_ratio`.

    Parameters
    ----------
    mechanism : Mechanism
        One input for each item; its columns must be linearly independent.

    Raises
    ------
    PrivacyViolation
        The table does not keep the privacy it claims.
    NotIdentifiable
        The columns of the table are linearly dependent (fewer outputs than items, or a uniform
        mechanism), or nearly so.
    """

    mechanism: Mechanism

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism must be a mechdesign.Mechanism, got {type(mechanism).__name__}"
            )
        mechanism.audit().require()
        set_fields(
            self, mechanism=mechanism, domain=mechanism.inputs, epsilon=mechanism.privacy.epsilon
        )
        # Full rank modulo a prime is full rank.
        table = flint.nmod_mat(
            mechanism.outputs,
            mechanism.inputs,
            [w % _PRIME for row in mechanism.weights for w in row],
            _PRIME,
        )
        rank = table.rank()
        if rank < mechanism.inputs:
            raise NotIdentifiable(
                f"the {mechanism.inputs} columns of the table have rank {rank}: reports do not"
                " determine the frequencies"
            )
        error = np.abs(self.reconstruction @ mechanism.matrix - np.eye(self.domain)).max()
        if not error < _TOLERANCE:
            raise NotIdentifiable(
                "the columns of the table are too nearly dependent to estimate in floats: off by"
                f" {error:.1e}"
            )

    @property
    def privacy(self) -> Privacy:
        return self.mechanism.privacy

    @cached_property
    def reconstruction(self) -> Floats:
        """The estimator: frequencies are this matrix times the fractions of the outputs.

        Shape (domain, outputs).
        """
        matrix = self.mechanism.matrix
        root = np.sqrt(matrix.mean(axis=1))
        # Outputs that never occur do not matter
        scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        result: Floats = np.linalg.pinv(matrix * scale[:, None]) * scale
        return result

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("output", smallest_integer(self.mechanism.outputs - 1))])

    @property
    def report_bits(self) -> int:
        return (self.mechanism.outputs - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        text = repr((self.mechanism.weights, self.mechanism.denominator, self.privacy.neighbours))
        return {"table": hashlib.sha256(text.encode()).hexdigest()}

    def _privatize(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["output"] = self.mechanism.sampler.outputs(items, source)

    @cached_property
    def _sendable(self) -> npt.NDArray[np.bool_]:
        """Which outputs ever occur: shape (outputs,)."""
        return np.array([any(row) for row in self.mechanism.weights])

    def _possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        output, last = reports["output"], self.mechanism.outputs - 1
        return (output <= last) & self._sendable[np.minimum(output, last)]

    def _consistent(self, aggregate: Aggregate) -> bool:
        return super()._consistent(aggregate) and not aggregate.counts[~self._sendable].any()

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.mechanism.outputs,)

    def _aggregate(self, reports: Reports) -> npt.NDArray[np.int64]:
        return np.bincount(reports["output"], minlength=self.mechanism.outputs)

    def _simulate(self, held: Items, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        total = np.zeros(self._shape, dtype=np.int64)
        for item in np.flatnonzero(held):
            column = self.mechanism.matrix[:, item]
            total += rng.multinomial(held[item], column / column.sum())
        return total

    def _frequencies(self, aggregate: Aggregate, items: Items | None) -> Floats:
        result: Floats = self.reconstruction @ (aggregate.counts / aggregate.n)
        return result if items is None else result[items]

    def variance(self, n: int, frequency: npt.ArrayLike = 0.0) -> Any:
        """The mean over items of the variance, when all other items are equally frequent.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1; a number or an array.

        Returns
        -------
        float or numpy.ndarray
            Variances of fractions of the population, shaped like ``frequency``.
        """
        # Given the frequencies f, n times the variance for x is the sum over outputs of R[x, y]^2
        # (P f)[y], less f_x.
        square, others = self.reconstruction**2 @ self.mechanism.matrix, max(self.domain - 1, 1)
        own = np.trace(square) / self.domain
        other = (square.sum() / self.domain - own) / others
        f = np.asarray(frequency, dtype=np.float64)
        return variance_of(n, f * own + (1 - f) * other - f)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        """The mean over pairs of items, from the trace of the estimates' covariance.

        See `Oracle.difference_variance`.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        held : int, optional
            How many items occur, the first ones, at least 2, all equally frequent; None: all of the
            domain.

        Returns
        -------
        float
            The variance of a difference of two estimated fractions.

        Raises
        ------
        ValueError
            ``n`` is no number of users.
        """
        # The mean over pairs of (e_x - e_z)' C (e_x - e_z) is 2 (tr C - 1'C1 / d) / (d - 1).
        d = held or self.domain
        flat, chosen = self.mechanism.matrix[:, :d].mean(axis=1), self.reconstruction[:d]
        centred = chosen - chosen.mean(axis=0)
        trace = float((centred**2 @ flat).sum()) - (1 - 1 / d)
        return float(variance_of(n, 2 * trace / (d - 1)))

    def _variances(self, aggregate: Aggregate, frequencies: Floats, items: Items | None) -> Floats:
        chosen = self.reconstruction if items is None else self.reconstruction[items]
        weights = np.eye(len(frequencies))
        return variance_of_scores(chosen, aggregate, weights, frequencies)

    def _slope(self, n: int) -> float:
        return 0.0  # the variance depends on all frequencies: intervals use its estimate

    def _kinds(self, frequencies: Floats) -> Floats:
        return self.mechanism.matrix @ frequencies

    def _linear_variance(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        scores = spread_out(weights, items, self.domain) @ self.reconstruction
        return variance_of_scores(scores, aggregate, weights, frequencies)

    def audit(self) -> Audit:
        return self.mechanism.audit()

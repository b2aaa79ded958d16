"""Any mechanism as an oracle: whatever `mechdesign` designs can be deployed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate

import numpy as np

from frequency.algebra.exact_draws import WORD
from frequency.algebra.hash_functions import Coins
from frequency.core.channel import Reports
from frequency.core.enumerated_oracle import EnumeratedOracle
from frequency.core.public_coins import PublicCoinChannel
from mechdesign import Mechanism, Privacy
from mechdesign._support.arrays import Items
from mechdesign._support.frozen import set_fields


@dataclass(frozen=True, init=False)
class Tabular(EnumeratedOracle, PublicCoinChannel):
    """Any `Mechanism` as an oracle: its inputs are the items.

    A report is the ``output`` drawn for the user's item.

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
        self._require_identifiable()

    @property
    def privacy(self) -> Privacy:
        return self.mechanism.privacy

    @property
    def law(self) -> Mechanism:
        return self.mechanism

    # Without an item a report has the mean of its probabilities, in units of 2^-64.

    @cached_property
    def _blank_weights(self) -> list[int]:
        """The probability of each output for users without an item, in units of 2^-64."""
        law = self.mechanism
        means = [WORD * sum(row) // (law.denominator * law.inputs) for row in law.weights]
        means[means.index(max(means))] += WORD - sum(means)
        if any(not mean and any(row) for mean, row in zip(means, law.weights, strict=True)):
            raise TypeError("an output of the mechanism is too rare for public coins")
        return means

    @cached_property
    def _ratios(self) -> tuple[tuple[tuple[Fraction, ...], ...], Items]:
        """The likelihoods of each output that occurs, and the place of each item's among all."""
        law = self.mechanism
        if self.privacy.neighbours != "all":
            raise TypeError("public coins are for local mechanisms, neighbours='all'")
        kinds, places = [], np.zeros((law.outputs, law.inputs), dtype=np.int64)
        first = 0
        for output, (row, mean) in enumerate(zip(law.weights, self._blank_weights, strict=True)):
            if mean:
                own = [Fraction(weight * WORD, law.denominator * mean) for weight in row]
                values = sorted(set(own))
                order = {value: place for place, value in enumerate(values, first)}
                places[output] = [order[value] for value in own]
                kinds.append(tuple(values))
                first += len(values)
        return tuple(kinds), places

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return self._ratios[0]

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        sent = np.flatnonzero(self._sendable)
        ends = list(accumulate(self._blank_weights[output] for output in sent.tolist()))[:-1]
        drawn = np.searchsorted(np.array(ends, dtype=np.uint64), coins.words(0), side="right")
        reports["output"] = sent[drawn]
        return reports

    def likelihood(self, reports: Reports, items: Items) -> Items:
        result: Items = self._ratios[1][reports["output"], items]
        return result

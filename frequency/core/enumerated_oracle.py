"""Oracles whose kinds of reports can be listed, each with its exact probability for every item."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD, Coins
from frequency.core.aggregate import Aggregate
from frequency.core.blanket import ALIKE, JointLaw, joint_law_of, law_above
from frequency.core.channel import Reports, smallest_integer
from frequency.core.oracle import Oracle, spread_out, variance_of, variance_of_scores
from frequency.core.transport import Step, json_integer, json_integers
from frequency.exceptions import NotIdentifiable
from mechdesign import Audit, Mechanism
from mechdesign.accounting.pair_law import PairLaw, PairLaws, TableLaws, attack_laws_of
from mechdesign.base import BitSource, Floats, Items, shown
from mechdesign.symbolic.table_proof import TableProof, in_alpha

_PRIME = (1 << 61) - 1

_TOLERANCE = 1e-6  # how far the reconstruction, in floats, may be from unbiased


class EnumeratedOracle(Oracle):
    """Oracles that state the exact probability of each kind of report.

    From this `law` follows everything, exactly but at a cost of kinds x items: a report is the
    ``output`` drawn for the user's item, by the integers that the audit reads; the counts are those
    of the outputs; and with these all estimates and variances.

    A subclass with a layout or a faster draw of its own writes ``report_dtype``, `fill`, `possible`
    and `kinds_of`; and `reports_of`, unless a report is the number of its kind alone. Then the
    audit, which reads the law, sees nothing of what is drawn: a test must, word by word.

    Frequencies are reconstructed by weighted least squares: of all the linear estimators that are
    unbiased for every population, the one of least variance when all items are equally frequent, f
    = (P' M^-1 P)^-1 P' M^-1 (counts / n) with P the law and M the diagonal of the reports'
    probabilities then.
    """

    @property
    @abstractmethod
    def law(self) -> Mechanism:
        """The probability of each kind of report (output) under each item (input)."""

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("output", smallest_integer(self.law.outputs - 1))])

    @property
    def report_bits(self) -> int:
        return (self.law.outputs - 1).bit_length()

    @property
    def client_half(self) -> Step:
        if type(self).fill is not EnumeratedOracle.fill:
            return super().client_half
        return {
            "do": "table",
            "denominator": json_integer(self.law.denominator),
            "columns": [json_integers(column) for column in zip(*self.law.weights, strict=True)],
            "width": self.report_dtype.itemsize,
        }

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["output"] = self.law.sampler.outputs(items, source)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        output, last = reports["output"], self.law.outputs - 1
        return (output <= last) & self._sendable[np.minimum(output, last)]

    def kinds_of(self, reports: Reports) -> Items:
        """The kind of each valid report: shape (users,), outputs of `law`."""
        return reports["output"].astype(np.int64)

    def reports_of(self, kinds: Items) -> Reports:
        """A report of each kind, an output of `law`, for public coins: the inverse of `kinds_of`.

        TypeError where the layout is not the number of the kind alone. Shapes: (users,).
        """
        names = self.report_dtype.names or ()
        reports = np.zeros(len(kinds), dtype=self.report_dtype)
        if len(names) != 1 or reports[names[0]].shape != kinds.shape:
            raise TypeError(
                f"{type(self).__name__} does not state which report is of a kind: see reports_of"
            )
        reports[names[0]] = kinds
        return reports

    def __post_init__(self) -> None:
        super().__post_init__()
        self._require_identifiable()

    def _require_identifiable(self) -> None:
        law = self.law
        # Full rank modulo a prime is full rank.
        weights = [w % _PRIME for row in law.weights for w in row]
        rank = flint.nmod_mat(law.outputs, law.inputs, weights, _PRIME).rank()
        if rank < law.inputs:
            raise NotIdentifiable(
                f"the {law.inputs} columns of the table have rank {rank}: reports do not"
                " determine the frequencies"
            )
        error = np.abs(self.reconstruction @ law.matrix - np.eye(self.domain)).max()
        if not error < _TOLERANCE:
            raise NotIdentifiable(
                "the columns of the table are too nearly dependent to estimate in floats: off by"
                f" {error:.1e}"
            )

    @cached_property
    def reconstruction(self) -> Floats:
        """The estimator: frequencies are this matrix times the fractions of the kinds of reports.

        Shape (domain, kinds).
        """
        matrix = self.law.matrix
        root = np.sqrt(matrix.mean(axis=1))
        # Reports that never occur do not matter
        scale = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        return np.linalg.pinv(matrix * scale[:, None]) * scale

    @cached_property
    def _sendable(self) -> npt.NDArray[np.bool_]:
        """Whether each kind of report ever occurs: shape (kinds,)."""
        return np.array([any(row) for row in self.law.weights])

    def _details(self) -> dict[str, Any]:
        text = repr((self.law.weights, self.law.denominator, self.law.privacy.neighbours))
        return {"table": hashlib.sha256(text.encode()).hexdigest()}

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.law.outputs,)

    def cells_of(self, reports: Reports) -> Items:
        return self.kinds_of(reports)[:, None]

    def held_of(self, counts: npt.NDArray[np.int64]) -> Floats:
        return counts @ self.reconstruction.T

    def consistent(self, aggregate: Aggregate) -> bool:
        return super().consistent(aggregate) and not aggregate.counts[~self._sendable].any()

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        user_counts = self._held(items, counts)
        total = np.zeros(self.counts_shape, dtype=np.int64)
        for item in np.flatnonzero(user_counts):
            column = self.law.matrix[:, item]
            total += rng.multinomial(user_counts[item], column / column.sum())
        return total

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        result: Floats = self.reconstruction @ (aggregate.counts / aggregate.n)
        return result if items is None else result[items]

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        kinds = self.law.matrix @ frequencies
        return variance_of_scores(n, weights @ self.reconstruction, kinds, weights, frequencies)

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        # From the reports themselves: where privacy is strong, the frequencies are too noisy for
        # floats
        scores = spread_out(weights, items, self.domain) @ self.reconstruction
        kinds = aggregate.counts / aggregate.n
        return variance_of_scores(aggregate.n, scores, kinds, weights, frequencies)

    @cached_property
    def _own_and_other(self) -> tuple[float, float]:
        square = self.reconstruction**2 @ self.law.matrix
        diagonal = np.trace(square) / self.domain
        return diagonal - 1, (square.sum() / self.domain - diagonal) / max(self.domain - 1, 1)

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # As `Oracle` has it, without the variances of the single sums
        d = held or self.domain
        flat, chosen = self.law.matrix[:, :d].mean(axis=1), self.reconstruction[:d]
        centred = chosen - chosen.mean(axis=0)
        trace = float((centred**2 @ flat).sum()) - (1 - 1 / d)
        return float(variance_of(n, 2 * trace / (d - 1)))

    # Without an item a report has the mean of its probabilities, in units of 2^-64.

    @cached_property
    def _blank_weights(self) -> list[int]:
        """The probability of each kind for users without an item, in units of 2^-64."""
        law = self.law
        means = [WORD * sum(row) // (law.denominator * law.inputs) for row in law.weights]
        means[means.index(max(means))] += WORD - sum(means)
        if any(not mean and any(row) for mean, row in zip(means, law.weights, strict=True)):
            raise TypeError("an output of the mechanism is too rare for public coins")
        return means

    @cached_property
    def _ratios(self) -> tuple[tuple[tuple[Fraction, ...], ...], Items]:
        """The likelihoods of each kind that occurs, and the place of each item's among all."""
        law = self.law
        if law.privacy.neighbours != "all":
            raise TypeError("public coins are for local mechanisms, neighbours='all'")
        kinds, places = [], np.zeros((law.outputs, law.inputs), dtype=np.int64)
        first = 0
        for output, (row, mean) in enumerate(zip(law.weights, self._blank_weights, strict=True)):
            if mean:
                ratios = [Fraction(weight * WORD, law.denominator * mean) for weight in row]
                values = sorted(set(ratios))
                order = {value: place for place, value in enumerate(values, first)}
                places[output] = [order[value] for value in ratios]
                kinds.append(tuple(values))
                first += len(values)
        every = np.arange(law.outputs)
        if not np.array_equal(self.kinds_of(self.reports_of(every)), every):
            raise TypeError(f"{type(self).__name__} does not read its own kinds of reports")
        return tuple(kinds), places

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return self._ratios[0]

    def blank(self, coins: Coins) -> Reports:
        sent = np.flatnonzero(self._sendable)
        ends = list(accumulate(self._blank_weights[kind] for kind in sent.tolist()))[:-1]
        drawn = np.searchsorted(np.array(ends, dtype=np.uint64), coins.words(0), side="right")
        return self.reports_of(sent[drawn])

    def likelihood(self, reports: Reports, items: Items) -> Items:
        return self._ratios[1][self.kinds_of(reports), items]

    # Among the reports of others: by the weights that are drawn

    @property
    def _drawn(self) -> list[list[int]]:
        """The weights of the kinds of reports that occur."""
        if self.law.privacy.neighbours != "all":
            raise ValueError(
                "reports are private locally: the table needs a Privacy with"
                f" neighbours='all', got {shown(self.law.privacy)}"
            )
        return [list(row) for row in self.law.sampler.weights if any(row)]

    def joint_law(self, items: Items) -> JointLaw:
        rows, chosen = self._drawn, items.tolist()
        total = sum(row[0] for row in rows)
        return joint_law_of(
            (
                Fraction(sum(row), total * len(row)),
                [Fraction(len(row) * row[item], sum(row)) for item in chosen],
            )
            for row in rows
        )

    def dominating_law(self) -> PairLaw:
        if self.domain == 1:
            return ALIKE
        rows = self._drawn
        laws = TableLaws(rows)
        if len(laws) == 1:  # which all pairs have, and their reverse
            return laws[0]
        total, matrix = sum(row[0] for row in rows), np.array(rows, dtype=np.float64)
        matrix /= total
        apart = max(
            float(np.abs(matrix - matrix[:, item : item + 1]).sum(axis=0).max())
            for item in range(self.domain)
        )
        rounding = Fraction(len(rows) + 4, 1 << 50)
        blanket = Fraction(sum(map(min, rows)), total)
        return law_above(blanket, laws.largest_ratio, Fraction(apart) / 2 + rounding)

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        return TableLaws(self._drawn)  # none for one item

    def attack_laws(self) -> tuple[PairLaw, ...]:
        return attack_laws_of(self._drawn) if self.domain > 1 else ()

    def audit(self) -> Audit:
        return self.law.audit()

    def proof(self) -> TableProof:
        return TableProof(in_alpha(self.law), name=type(self).__name__)

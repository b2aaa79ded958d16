"""Mechanism: an exact column-stochastic table, its privacy audit, its loss, and what follows from
them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mechdesign._support.numbers import Rational, exact
from mechdesign._support.text import brief
from mechdesign.error_distribution import Spread
from mechdesign.exceptions import InvalidMechanism, NotSquare, PrivacyViolation
from mechdesign.losses import L0, Loss, prior_over
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN
from mechdesign.sampling import Sampler

if TYPE_CHECKING:
    from mechdesign.certificate import Certificate


@dataclass(frozen=True)
class Audit:
    """What an exact check of every output and every two neighbouring inputs found.

    Attributes
    ----------
    ratio
        The largest P[i, j] / P[i, j'] over outputs i and neighbours j, j': an exact Fraction >= 1
        (1 without neighbours), or ``math.inf`` when an output is possible under one input and
        impossible under a neighbour. Under a `Metric`, the one that is largest when compared to
        what is allowed.
    allowed
        The largest ratio that the claimed privacy permits there: 1 / alpha, to the power of the
        distance under a `Metric`.
    output, inputs
        Where ``ratio`` is reached: the output i (in words, where outputs are not numbered) and the
        pair (j, j').
    """

    ratio: Fraction | float
    allowed: Fraction
    output: int | str
    inputs: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether the claimed privacy is kept; exact."""
        return self.ratio <= self.allowed

    def require(self) -> None:
        """Raise PrivacyViolation unless the claimed privacy is kept."""
        if not self.holds:
            raise PrivacyViolation(self.ratio, self.allowed, self.output, self.inputs)


class Mechanism:
    """A randomised answer to a count: ``P[i, j] = Pr[output i | input j]``, exact, with the privacy
    that it claims.

    Immutable; equal when the tables and the claims are equal. A table may be rectangular; columns
    sum to exactly one. Constructing one does not check the claim: `audit` does, and `release`
    refuses when it fails.

    Parameters
    ----------
    table
        Rows are outputs, columns are inputs; entries are exact rationals (floats are refused).
    privacy
        The claim.
    certificate
        A proof of optimality to keep with the table, see `mechdesign.certificate`. Not part of
        equality.

    Raises
    ------
    InvalidMechanism
        A ragged or empty table, a negative entry, or a column that does not sum to one; the message
        names it.

    >>> m = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy("1/2"))
    >>> m.audit().ratio, m.audit().holds
    (Fraction(2, 1), True)
    """

    __slots__ = ("__dict__", "certificate", "denominator", "privacy", "weights")

    weights: tuple[tuple[int, ...], ...]
    """Integer numerators over `denominator`, in lowest terms as a whole."""
    denominator: int
    """At least 1."""
    privacy: Privacy
    certificate: Certificate | None

    def __init__(
        self,
        table: Iterable[Iterable[Rational]],
        privacy: Privacy,
        certificate: Certificate | None = None,
    ) -> None:
        rows = [[exact(entry, "a table entry") for entry in row] for row in table]
        common = math.lcm(*(entry.denominator for row in rows for entry in row))
        self._set(
            [[int(entry * common) for entry in row] for row in rows], common, privacy, certificate
        )

    @classmethod
    def from_weights(
        cls,
        weights: Sequence[Sequence[int]],
        denominator: int,
        privacy: Privacy,
        certificate: Certificate | None = None,
    ) -> Mechanism:
        """The table ``weights[i][j] / denominator``."""
        mechanism = cls.__new__(cls)
        mechanism._set(weights, denominator, privacy, certificate)
        return mechanism

    def _set(
        self,
        weights: Sequence[Sequence[int]],
        denominator: int,
        privacy: Privacy,
        certificate: Certificate | None,
    ) -> None:
        if hasattr(self, "weights"):
            raise AttributeError("a Mechanism is immutable; it cannot be initialised again")
        weights = [[index(weight) for weight in row] for row in weights]
        denominator = index(denominator)
        if not weights or not weights[0] or len({len(row) for row in weights}) != 1:
            raise InvalidMechanism(
                "a mechanism needs at least one output, one input, and rows of one length"
            )
        if denominator < 1:
            raise InvalidMechanism(
                f"the common denominator must be positive, got {brief(Fraction(denominator))}"
            )
        for i, row in enumerate(weights):
            for j, weight in enumerate(row):
                if weight < 0:
                    raise InvalidMechanism(
                        f"P[{i}, {j}] = {brief(Fraction(weight, denominator))} is negative"
                    )
        for j, total in enumerate(map(sum, zip(*weights, strict=True))):
            if total != denominator:
                off = Fraction(total, denominator) - 1
                raise InvalidMechanism(
                    f"column {j} sums to 1 {'+' if off > 0 else '-'} {brief(abs(off), 3)}, not to"
                    " exactly 1"
                )
        common = math.gcd(denominator, *(weight for row in weights for weight in row))
        store = object.__setattr__
        store(self, "weights", tuple(tuple(weight // common for weight in row) for row in weights))
        store(self, "denominator", denominator // common)
        store(self, "privacy", privacy)
        store(self, "certificate", certificate)
        privacy.pairs(self.inputs)  # an explicit neighbour list must fit the table

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Mechanism is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a Mechanism is immutable; cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Mechanism.from_weights, (
            self.weights,
            self.denominator,
            self.privacy,
            self.certificate,
        )

    @property
    def outputs(self) -> int:
        """The number of outputs (rows)."""
        return len(self.weights)

    @property
    def inputs(self) -> int:
        """The number of inputs (columns): n + 1 for a count of n people."""
        return len(self.weights[0])

    @cached_property
    def table(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact table, rows are outputs."""
        return tuple(
            tuple(Fraction(weight, self.denominator) for weight in row) for row in self.weights
        )

    @cached_property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The table as floats, shape (outputs, inputs), read-only: for plots and other tools, never
        for privacy.
        """
        matrix = np.array(
            [[weight / self.denominator for weight in row] for row in self.weights],
            dtype=np.float64,
        )
        matrix.setflags(write=False)
        return matrix

    def audit(self) -> Audit:
        """The exact worst ratio over all outputs and neighbouring inputs, and where it is reached.

        It is that of `sampler`: of the very thresholds that `release` compares random words with.
        """
        return self._audit

    @cached_property
    def _audit(self) -> Audit:
        pairs, distances = (
            self.privacy.pairs(self.inputs).tolist(),
            self.privacy.distances(self.inputs).tolist(),
        )
        alpha, least = self.privacy.alpha, min(distances, default=1)
        # A ratio times alpha^(d - least) is the larger, the more of what is allowed it uses.
        scale = {d: (alpha ** (d - least)).as_integer_ratio() for d in set(distances)}
        edges = [(*pair, d, *scale[d]) for pair, d in zip(pairs, distances, strict=True)]
        first, second, distance, top, bottom = edges[0] if edges else (0, 0, 1, 1, 1)
        where = (0, (first, second))
        # Where all inputs are neighbours, and equally far, it is enough to look at one row.
        alike = len(pairs) == math.comb(self.inputs, 2) and len(scale) == 1
        weights = self.sampler.weights
        for i in [_widest(weights)] if alike else range(self.outputs):
            row = weights[i]
            for first, second, d, up, down in edges:
                for j, k in ((first, second), (second, first)):
                    if row[j] * up * bottom > top * row[k] * down:
                        top, bottom, where, distance = row[j] * up, row[k] * down, (i, (j, k)), d
        ratio = Fraction(top, bottom) / alpha ** (distance - least) if bottom else math.inf
        return Audit(ratio, 1 / alpha**distance, *where)

    def loss(self, loss: Loss) -> Fraction:
        """The exact expected cost under the loss's prior, or the worst expected cost over inputs
        (Definition 21).

        This is the plain loss; for the scaled L0 of eq. 6.1 see `scaled_l0`.
        """
        costs, prior = loss.costs(self.outputs, self.inputs), loss.weights(self.inputs)
        scale = math.lcm(*(cost.denominator for row in costs for cost in row))
        columns = [0] * self.inputs
        for row, prices in zip(self.weights, costs, strict=True):
            for j, (weight, price) in enumerate(zip(row, prices, strict=True)):
                columns[j] += weight * int(price * scale)
        whole = scale * self.denominator
        if loss.worst_case:
            return Fraction(max(columns), whole)
        return (
            sum(
                (weight * column for weight, column in zip(prior, columns, strict=True)),
                Fraction(0),
            )
            / whole
        )

    def scaled_l0(self, d: int = 0) -> Fraction:
        """The thesis's L0,d (eq. 6.1): (n + 1)/n times the plain L0,d under the uniform prior. L0,0
        of the uniform mechanism is 1.

        Raises NotSquare for rectangular tables, and for a single input (n = 0), where nothing can
        be wrong.
        """
        if self.outputs != self.inputs or self.inputs < 2:
            raise NotSquare(
                f"the scaled L0 is for square tables with n >= 1, this one is {self.outputs} x"
                f" {self.inputs}"
            )
        return self.loss(L0(d)) * Fraction(self.inputs, self.inputs - 1)

    def properties(self) -> dict[str, bool]:
        """Which of the seven properties of thesis 6.4 hold, exactly, by short name. None does for a
        rectangular table but S.
        """
        square = self.outputs == self.inputs
        return {item.short: (square or item.short == "S") and item.holds(self) for item in SEVEN}

    def derivable_from_geometric(self) -> bool:
        """Whether this is the geometric mechanism with its output remapped (Gupte and
        Sundararajan's test, thesis 6.6.3).

        Every three adjacent entries of a row must satisfy (1 + alpha^2) P[i, j] >= alpha (P[i, j-1]
        + P[i, j+1]), and the mechanism must be alpha-private between adjacent counts, whatever
        neighbours it claims.
        """
        top, bottom = self.privacy.alpha.numerator, self.privacy.alpha.denominator
        for row in self.weights:
            for near, far in pairwise(row):
                if bottom * near < top * far or bottom * far < top * near:
                    return False
            for before, here, after in zip(row, row[1:], row[2:], strict=False):
                if (top * top + bottom * bottom) * here < top * bottom * (before + after):
                    return False
        return True

    def spread(self, prior: Sequence[Rational] | None = None) -> Spread:
        """The distribution of the error (output minus input) for inputs drawn from ``prior``
        (uniform if None).
        """
        weights = prior_over(self.inputs, prior)
        return Spread.of(self.weights, self.denominator, weights)

    def posterior(
        self, prior: Sequence[Rational] | None = None
    ) -> tuple[tuple[Fraction, ...] | None, ...]:
        """Pr[input j | output i] for inputs drawn from ``prior`` (uniform if None): a row for each
        output.

        The row of an output that never occurs is None.
        """
        weights = prior_over(self.inputs, prior)
        rows: list[tuple[Fraction, ...] | None] = []
        for row in self.weights:
            joint = [weight * entry for weight, entry in zip(weights, row, strict=True)]
            total = sum(joint, Fraction(0))
            rows.append(tuple(value / total for value in joint) if total else None)
        return tuple(rows)

    def release(
        self, counts: npt.ArrayLike, rng: np.random.Generator | None = None
    ) -> npt.NDArray[np.int64]:
        """One draw for each true count, exactly distributed as the table says; no float is
        involved.

        Parameters
        ----------
        counts
            Integers in 0 .. inputs-1, any shape.
        rng
            None: randomness from the operating system. A Generator: reproducible, for experiments,
            *not* private against someone who knows its state.

        Returns
        -------
        An int64 array of the same shape.

        Raises
        ------
        PrivacyViolation
            The table does not keep the privacy it claims.
        InvalidCount
            Names the first bad count; nothing has been drawn.
        """
        self.audit().require()
        return self.sampler.draw(counts, rng)

    @cached_property
    def sampler(self) -> Sampler:
        """What draws outputs, and states the law of what it draws."""
        return Sampler(self.weights, self.denominator)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, replacing it in one step. ``.json`` is exact and can be loaded; ``.csv``
        and ``.npz`` are float views.
        """
        from mechdesign import files as formats

        formats.save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Mechanism:
        """Read a JSON file and check it all again: digest, table, privacy, certificate.

        Raises InvalidFile, InvalidMechanism, PrivacyViolation or CertificateRejected, with the
        reason.
        """
        from mechdesign import files as formats

        return formats.load(path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanism):
            return NotImplemented
        return (self.weights, self.denominator, self.privacy) == (
            other.weights,
            other.denominator,
            other.privacy,
        )

    def __hash__(self) -> int:
        return hash((self.weights, self.denominator, self.privacy))

    def __repr__(self) -> str:
        kept = (
            "".join(f" {name}" for name, holds in self.properties().items() if holds)
            if self.inputs <= 33
            else " ..."
        )
        verdict = "private" if self.audit().holds else "NOT PRIVATE"
        return f"<Mechanism {self.outputs}x{self.inputs}, {self.privacy!r}, {verdict}; properties:{kept or ' none'}>"


def _widest(rows: Sequence[Sequence[int]]) -> int:
    """The row whose largest number is the most times its smallest; the first of them."""
    top, bottom, widest = 1, 1, 0
    for i, row in enumerate(rows):
        low, high = min(row), max(row)
        if high * bottom > top * low:
            top, bottom, widest = high, low, i
    return widest

"""Table: an exact column-stochastic table with the privacy that it claims, its audit and its loss.

Properties, certificates and files of mechanisms are built on this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from operator import index
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from mechdesign.approximate_privacy import ApproximatePrivacy, Promise
from mechdesign.base import (
    BitSource,
    Booleans,
    Integers,
    Rational,
    aligned,
    bit_source,
    brief,
    checked_counts,
    exact,
    percent,
    set_fields,
)
from mechdesign.exceptions import (
    DeltaViolation,
    InvalidMechanism,
    NotPure,
    NotSquare,
    PrivacyViolation,
    TooLarge,
)
from mechdesign.losses import L0, Loss, Power, prior_over
from mechdesign.mechanism.closed_form import SMALL, Law
from mechdesign.mechanism.values import (
    CountPairs,
    Counts,
    Unbounded,
    Values,
    distances,
    errors,
    values_of,
)
from mechdesign.noise.sampling import Sampler
from mechdesign.privacy import Privacy

# ------------------------------------------------------------------------------------------------
# The exact distribution of the error, output minus input (thesis Figures 6.9-6.13).


_ALL_UP_TO = 10  # below this distance a printed table has every error

# From it on, those of these distances that occur, and the largest.
_BEYOND = tuple(step * 10**power for power in range(1, 19) for step in (1, 2, 5))

# Of more steps, those are left out within which there are fewer errors than that.
_MOST_STEPS, _RARE = 30, Fraction(1, 1000)

_COMPARED = 513  # a closed form with so many inputs at most is compared with a table entry by entry

_LISTED = 100_000  # a closed form's errors are listed up to this n


@dataclass(frozen=True, repr=False)
class ErrorDistribution:
    """The distribution of the error of a mechanism for one distribution of inputs.

    ``str()`` is a table of percentages, rounded down, with the bias and the root mean square.

    Attributes
    ----------
    histogram : dict of int to Fraction
        error (output minus input) -> exact probability; errors of probability zero inside the range
        are present.
    """

    histogram: dict[int, Fraction]

    @classmethod
    def of(
        cls,
        weights: Sequence[Sequence[int]],
        denominator: int,
        prior: Sequence[Fraction],
        errors: Sequence[Sequence[int]],
    ) -> ErrorDistribution:
        """Return the error distribution of a table with integer weights, over its range of errors.

        Parameters
        ----------
        weights : sequence of sequence of int
            Integer numerators, shape (outputs, inputs): ``weights[i][j] / denominator`` is
            Pr[output i | input j].
        denominator : int
            What every column of ``weights`` sums to, at least 1.
        prior : sequence of Fraction
            Exact probabilities of the inputs, shape (inputs,), which sum to 1.
        errors : sequence of sequence of int
            The error of each output for each input, shape (outputs, inputs).

        Returns
        -------
        ErrorDistribution
        """
        least, largest = min(map(min, errors)), max(map(max, errors))
        totals = dict.fromkeys(range(least, largest + 1), Fraction(0))
        for j, share in enumerate(prior):
            if share:
                for row, apart in zip(weights, errors, strict=True):
                    totals[apart[j]] += share * row[j]
        return cls({error: total / denominator for error, total in totals.items()})

    def probability(self, error: int) -> Fraction:
        """Return the probability of an error."""
        return self.histogram.get(error, Fraction(0))

    def tail(self, d: int = 0) -> Fraction:
        """Pr[|error| > d], the plain L0,d; ``tail(0)`` is the chance of a wrong answer."""
        return sum((p for error, p in self.histogram.items() if abs(error) > d), Fraction(0))

    @property
    def bias(self) -> Fraction:
        """The expected error."""
        return sum((error * p for error, p in self.histogram.items()), Fraction(0))

    @property
    def mean_square(self) -> Fraction:
        """The expected squared error, exact."""
        return sum((error**2 * p for error, p in self.histogram.items()), Fraction(0))

    @property
    def rmse(self) -> float:
        """The square root of `mean_square`."""
        return math.sqrt(self.mean_square)

    @property
    def _largest(self) -> int:
        """The largest size of an error that occurs."""
        return max((abs(error) for error, p in self.histogram.items() if p), default=0)

    def __str__(self) -> str:
        largest = self._largest
        steps = [d for d in (*range(_ALL_UP_TO), *_BEYOND) if d < largest]
        within = {d: 1 - self.tail(d) for d in (*steps, largest)}
        if len(steps) > _MOST_STEPS:  # errors so large that small ones hardly occur
            steps = [d for d in steps if within[d] >= _RARE]
        rows = [("d", "error -d", "error +d", "|error| <= d")]
        for d in (*steps, largest):
            below, above = (percent(self.probability(error), 2) for error in (-d, d))
            rows.append((str(d), below if d else "", above, percent(within[d], 2)))
        return "\n".join([*aligned(rows), self._summary()])

    def __repr__(self) -> str:
        return f"<ErrorDistribution up to {self._largest} either way: {self._summary()}>"

    def _summary(self) -> str:
        return f"bias {brief(self.bias, 4)}, RMSE {brief(self.rmse, 4)}"


class LawErrors(ErrorDistribution):
    """The error distribution of a closed form, for counts that are equally likely.

    Its numbers are those of `Law`. The printed table ends where larger errors have a probability
    below `NEGLIGIBLE`.
    """

    NEGLIGIBLE = Fraction(1, 10**6)

    def __init__(self, law: Law) -> None:
        set_fields(self, law=law)

    law: Law

    @property
    def histogram(self) -> dict[int, Fraction]:
        """error -> probability, where they are few enough to be listed; else raises TooLarge."""
        if isinstance(self.law.outputs, Unbounded) or self.law.n > _LISTED:
            raise TooLarge(self.law.n, 0.001 * self.law.n, 1000 * self.law.n, "probability(error)")
        most = self.law.outputs.size - 1 - getattr(self.law, "margin", 0)
        return {error: self.probability(error) for error in range(-most, most + 1)}

    def probability(self, error: int) -> Fraction:
        return self.law.chance(error)

    def tail(self, d: int = 0) -> Fraction:
        return self.law.moment(0, d)

    @property
    def bias(self) -> Fraction:
        return Fraction(0)

    @property
    def mean_square(self) -> Fraction:
        return self.law.moment(2)

    @property
    def _largest(self) -> int:
        return next(d for k in range(63) if self.tail(d := 1 << k) < self.NEGLIGIBLE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LawErrors) and self.law == other.law

    __hash__ = None  # type: ignore[assignment]


# ------------------------------------------------------------------------------------------------
# IndexTable: the variables of a mechanism's program, by output and input.


class IndexTable(np.ndarray[tuple[int, ...], np.dtype[np.int64]]):
    """The numbers of variables: ``at[i, j]`` is that of P[i, j] = Pr[output i | input j].

    It is an integer array of shape (outputs, inputs), to be sliced freely, which knows what its
    rows and columns stand for; a slice of it is an ordinary array that does not. An integer k
    stands for the counts 0 .. k-1.
    """

    outputs: Values
    inputs: Values

    def __new__(cls, outputs: Values | int, inputs: Values | int) -> IndexTable:
        rows, columns = values_of(outputs), values_of(inputs)
        numbers = np.arange(rows.size * columns.size).reshape(rows.size, columns.size)
        table = numbers.view(cls)
        table.outputs, table.inputs = rows, columns
        return table

    def __getitem__(self, key: Any) -> Any:
        return self.view(np.ndarray)[key]

    @property
    def distances(self) -> Integers:
        """The distances of output i from input j, 0 where it is the truth: (outputs, inputs)."""
        return distances(self.outputs, self.inputs)

    @property
    def truth(self) -> Integers:
        """The numbers of the cells in which the output is true, one for each input."""
        true = self._true()
        cells: Integers = self[true.argmax(axis=0), np.arange(self.inputs.size)]
        return cells

    @property
    def aligned(self) -> bool:
        """Whether output i and input i are the same count, for every i."""
        return isinstance(self.inputs, Counts) and self.outputs == self.inputs

    def require_ordered(self) -> None:
        """Raise NotSquare for pairs of counts, or where some input has no true output."""
        if isinstance(self.inputs, CountPairs):
            raise NotSquare("this property is about counts in order; pairs of counts have none")
        self._true()

    def _true(self) -> Booleans:
        """The outputs that are true for inputs, if every input has such an output."""
        true: Booleans = self.distances == 0
        if not true.any(axis=0).all():
            raise NotSquare(
                "this property compares outputs with the truth, but some inputs have no true"
                f" output: the table is {self.outputs.size} x {self.inputs.size}"
            )
        return true


@dataclass(frozen=True)
class Audit:
    """The result of an exact check of every output and every two neighbouring inputs.

    Attributes
    ----------
    ratio : Fraction or float
        The largest P[i, j] / P[i, j'] over outputs i and neighbours j, j': an exact Fraction >= 1
        (1 without neighbours), or ``math.inf`` when an output is possible under one input and
        impossible under a neighbour. Under a `Metric`, the largest compared to what is allowed.
    allowed : Fraction
        The largest ratio that the claimed privacy permits there: 1 / alpha, to the power of the
        distance under a `Metric`.
    output : int or str
        The output i where ``ratio`` is reached; in words, where outputs are not numbered.
    inputs : tuple of int
        The pair (j, j') where ``ratio`` is reached, shape (2,).
    """

    ratio: Fraction | float
    allowed: Fraction
    output: int | str
    inputs: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether the claimed privacy is kept; exact."""
        return self.ratio <= self.allowed

    @property
    def failure(self) -> str:
        """What is wrong where the claim does not hold, in words."""
        return (
            f"not private: ratio {brief(self.ratio, 12)} at output {self.output}, inputs"
            f" {self.inputs}"
        )

    def require(self) -> None:
        """Raise PrivacyViolation unless the claimed privacy is kept."""
        if not self.holds:
            raise PrivacyViolation(self.ratio, self.allowed, self.output, self.inputs)


@dataclass(frozen=True)
class DeltaAudit(Audit):
    """The result of an exact check of a promise with a delta.

    Attributes
    ----------
    ratio, allowed, output : object
        As of `Audit`: delta is what excuses a ratio beyond the allowed one.
    inputs : tuple of int
        The pair (j, j') where that ratio is reached, shape (2,).
    delta : Fraction
        The least delta that holds with the epsilon of the claim, for all neighbours both ways.
    allowed_delta : Fraction
        The one that is claimed.
    worst : tuple of int
        The pair (j, j') where ``delta`` is reached, shape (2,).
    """

    delta: Fraction
    allowed_delta: Fraction
    worst: tuple[int, int]

    @property
    def holds(self) -> bool:
        """Whether the claimed privacy is kept; exact."""
        return self.delta <= self.allowed_delta

    @property
    def failure(self) -> str:
        """What is wrong where the claim does not hold, in words."""
        return f"not private: delta {brief(self.delta, 12)} between inputs {self.worst}"

    def require(self) -> None:
        """Raise DeltaViolation unless the claimed privacy is kept."""
        if not self.holds:
            raise DeltaViolation(
                self.delta, self.allowed_delta, self.worst, self.ratio, self.allowed, self.output
            )


class Table:
    """``P[i, j] = Pr[output i | input j]``, exact, with the privacy that it claims.

    Immutable; equal when the entries and the claims are equal. A table may be rectangular; columns
    sum to exactly one. Constructing one does not check the claim: `audit` does.

    Parameters
    ----------
    table : iterable of iterable of Fraction, int, str or Decimal
        Shape (outputs, inputs): rows are outputs, columns are inputs. Entries are exact rationals;
        floats are refused (`InexactNumber`).
    privacy : Privacy or ApproximatePrivacy
        The claim.
    outputs, inputs : Values, optional
        What rows and columns stand for; counts from 0 unless given. Inputs are `Counts` from 0, or
        `CountPairs`, whose neighbours ``privacy`` must list.

    Raises
    ------
    InvalidMechanism
        A ragged or empty table, a negative entry, or a column that does not sum to one; the message
        names it. Or outputs and inputs that do not fit the table, or each other.
    """

    __slots__ = ("__dict__", "input_values", "law", "output_values", "promise")

    law: Law | None  #: The closed form, if it is known: then n may be large.
    promise: Promise  #: The claim; with a delta of 0 it is the `Privacy` of the same epsilon.
    output_values: Values  #: What the rows stand for.
    input_values: Values  #: What the columns stand for.

    def __init__(
        self,
        table: Iterable[Iterable[Rational]],
        privacy: Promise,
        *,
        outputs: Values | None = None,
        inputs: Values | None = None,
    ) -> None:
        rows = [[exact(entry, "a table entry") for entry in row] for row in table]
        common = math.lcm(*(entry.denominator for row in rows for entry in row))
        weights = [[int(entry * common) for entry in row] for row in rows]
        self._set(weights, common, privacy, outputs, inputs)

    @classmethod
    def from_weights(
        cls,
        weights: Sequence[Sequence[int]],
        denominator: int,
        privacy: Promise,
        *,
        outputs: Values | None = None,
        inputs: Values | None = None,
    ) -> Table:
        """The table ``weights[i][j] / denominator``."""
        table = cls.__new__(cls)
        table._set(weights, denominator, privacy, outputs, inputs)
        return table

    def _set(
        self,
        weights: Sequence[Sequence[int]],
        denominator: int,
        privacy: Promise,
        outputs: Values | None,
        inputs: Values | None,
    ) -> None:
        if hasattr(self, "promise"):
            raise AttributeError(
                f"a {type(self).__name__} is immutable; it cannot be initialised again"
            )
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
        set_fields(
            self,
            weights=tuple(tuple(weight // common for weight in row) for row in weights),
            denominator=denominator // common,
            law=None,
            promise=privacy if privacy.delta else privacy.pure,
            output_values=values_of(len(weights) if outputs is None else outputs),
            input_values=values_of(len(weights[0]) if inputs is None else inputs),
        )
        privacy.pairs(len(weights[0]))  # an explicit neighbour list must fit the table
        _require_fitting(self)

    @classmethod
    def from_law(cls, law: Law, privacy: Privacy) -> Self:
        """Return the mechanism of a closed form, without a table.

        Parameters
        ----------
        law : Law
            The distributions of its outputs, see `mechdesign.mechanism.closed_form`.
        privacy : Privacy
            The claim, between adjacent counts; of a `UniformLaw` any.

        Raises
        ------
        ValueError
            Other neighbours.
        """
        if privacy.neighbours != "adjacent" and law.ratio > 1:
            raise ValueError(
                "the privacy of a closed form is between adjacent counts, got"
                f" {privacy.neighbours!r:.60}"
            )
        if not isinstance(privacy.neighbours, (str, int)):
            privacy.pairs(law.n + 1)  # a list or a metric must fit
        mechanism = cls.__new__(cls)
        set_fields(
            mechanism,
            law=law,
            promise=privacy,
            output_values=law.outputs,
            input_values=Counts(0, law.n),
        )
        return mechanism

    @property
    def privacy(self) -> Privacy:
        """The claim, where it is of epsilon alone; raises NotPure where it has a delta."""
        if isinstance(self.promise, ApproximatePrivacy):
            raise NotPure(
                f"this mechanism promises {self.promise!r}, a delta besides its epsilon, which does"
                " not do here; its attribute promise is what it claims"
            )
        return self.promise

    @property
    def closed(self) -> Law | None:
        """The closed form, where it is asked instead of the table: above n = `SMALL`."""
        law = self.law
        return None if law is None or (law.n <= SMALL and self.bounded) else law

    @property
    def bounded(self) -> bool:
        """Whether there are finitely many outputs."""
        return not isinstance(self.output_values, Unbounded)

    @cached_property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """Integer numerators over `denominator`, without a common factor of all.

        Raises TooLarge if a closed form is too large for a table.
        """
        return self._listed[0]

    @cached_property
    def denominator(self) -> int:
        """What each column of `weights` sums to, at least 1."""
        return self._listed[1]

    @cached_property
    def _listed(self) -> tuple[tuple[tuple[int, ...], ...], int]:
        """The table of a closed form."""
        assert self.law is not None
        weights, denominator = self.law.weights()
        common = math.gcd(denominator, *(weight for row in weights for weight in row))
        listed = tuple(tuple(weight // common for weight in row) for row in weights)
        return listed, denominator // common

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        if self.law is not None:
            return Table.from_law, (self.law, self.promise)
        make = partial(Table.from_weights, outputs=self.output_values, inputs=self.input_values)
        return make, (
            self.weights,
            self.denominator,
            self.promise,
        )

    @property
    def outputs(self) -> int:
        """The number of outputs (rows). Raises NotSquare if any integer is one."""
        return self.output_values.size

    @property
    def inputs(self) -> int:
        """The number of inputs (columns): n + 1 for a count of n respondents."""
        return self.input_values.size

    @cached_property
    def table(self) -> tuple[tuple[Fraction, ...], ...]:
        """The exact table, rows are outputs."""
        return tuple(
            tuple(Fraction(weight, self.denominator) for weight in row) for row in self.weights
        )

    @cached_property
    def matrix(self) -> npt.NDArray[np.float64]:
        """The table as floats, shape (outputs, inputs), read-only.

        It is for plots and other tools, never for privacy.
        """
        matrix = np.array(
            [[weight / self.denominator for weight in row] for row in self.weights],
            dtype=np.float64,
        )
        matrix.setflags(write=False)
        return matrix

    def audit(self) -> Audit:
        """Return the exact worst ratio over outputs and neighbouring inputs, and where it is found.

        It is computed from the thresholds of `sampler` that `release` compares random words with.
        Of a claim with a delta it is a `DeltaAudit`, with the exact delta as well.
        """
        return self._audit

    @cached_property
    def _audit(self) -> Audit:
        audit, promise = self._audit_of_ratios, self.promise
        if not isinstance(promise, ApproximatePrivacy):
            return audit
        # What is drawn decides, as for ratios; the numbers of a column add up to the same in all.
        columns = list(zip(*self.sampler.weights, strict=True))
        total, worst = sum(columns[0]), (Fraction(0), audit.inputs)
        for first, second in promise.pairs(self.inputs).tolist():
            for j, k in ((first, second), (second, first)):
                delta = promise.delta_between(columns[j], columns[k], total)
                worst = max(worst, (delta, (j, k)), key=lambda found: found[0])
        return DeltaAudit(
            **vars(audit), delta=worst[0], allowed_delta=promise.delta, worst=worst[1]
        )

    @property
    def _audit_of_ratios(self) -> Audit:
        if self.closed is not None:
            return Audit(self.closed.ratio, 1 / self.promise.alpha, 0, (0, 1))
        pairs = self.promise.pairs(self.inputs).tolist()
        distances = self.promise.distances(self.inputs).tolist()
        alpha, least = self.promise.alpha, min(distances, default=1)
        # Ratios at different distances d are compared relative to what each is allowed.
        scale = {d: (alpha ** (d - least)).as_integer_ratio() for d in set(distances)}
        compared = [(*pair, *scale[d], d) for pair, d in zip(pairs, distances, strict=True)]
        first, second, top, bottom, distance = compared[0] if compared else (0, 0, 1, 1, 1)
        where = (0, (first, second))
        weights = self.sampler.weights
        alike = len(pairs) == math.comb(self.inputs, 2) and len(scale) == 1
        for i in [_widest(weights)] if alike else range(self.outputs):
            row = weights[i]
            for first, second, up, down, d in compared:
                for j, k in ((first, second), (second, first)):
                    if row[j] * up * bottom > top * row[k] * down:
                        top, bottom, where, distance = row[j] * up, row[k] * down, (i, (j, k)), d
        ratio = Fraction(top, bottom) / alpha ** (distance - least) if bottom else math.inf
        return Audit(ratio, 1 / alpha**distance, *where)

    def loss(self, loss: Loss) -> Fraction:
        """Return the exact expected cost under the loss's prior, or the worst one (Definition 21).

        The worst case is the largest expected cost over inputs, times their weights if there is a
        prior. This is the plain loss; for the scaled L0 of eq. 6.1 see `scaled_l0`. That of a large
        closed form is rounded up, by less than 2^-80 of it, where the exact number is too long.
        """
        if self.closed is not None and isinstance(loss, Power) and loss.p.denominator == 1:
            prior = None if loss.prior is None else prior_over(self.inputs, loss.prior)
            return self.closed.loss(loss.p.numerator, loss.d, prior, loss.worst_case)
        entries = self.weights  # before all else: a closed form may be too large for a table
        costs = loss.costs(self.output_values, self.input_values)
        weights = loss.weights(self.inputs)
        scale = math.lcm(*(cost.denominator for row in costs for cost in row))
        columns = [0] * self.inputs
        for row, prices in zip(entries, costs, strict=True):
            for j, (weight, price) in enumerate(zip(row, prices, strict=True)):
                columns[j] += weight * int(price * scale)
        whole = scale * self.denominator
        weighed = [weight * column for weight, column in zip(weights, columns, strict=True)]
        total = max(weighed) if loss.worst_case else sum(weighed, Fraction(0))
        return Fraction(total) / whole

    def scaled_l0(self, d: int = 0) -> Fraction:
        """Return the scaled L0,d (eq. 6.1): (n + 1)/n times the plain L0,d under the uniform prior.

        L0,0 of the uniform mechanism is 1. Raises NotSquare for rectangular tables, and for a
        single input (n = 0), where nothing can be wrong.
        """
        if not self.bounded or self.outputs != self.inputs or self.inputs < 2:
            size = f"{self.outputs} x {self.inputs}" if self.bounded else "not clamped"
            raise NotSquare(f"the scaled L0 is for square tables with n >= 1, this one is {size}")
        return self.loss(L0(d)) * Fraction(self.inputs, self.inputs - 1)

    def error_distribution(self, prior: Sequence[Rational] | None = None) -> ErrorDistribution:
        """Return the distribution of output minus input, for inputs drawn from ``prior``.

        The prior is uniform if None. The error of a band is that of its nearest count. Raises
        InvalidMechanism for pairs of counts, whose errors have no sign.
        """
        if self.closed is not None and prior is None:
            return LawErrors(self.closed)
        weights = prior_over(self.inputs, prior)
        apart = errors(self.output_values, self.input_values).tolist()
        return ErrorDistribution.of(self.weights, self.denominator, weights, apart)

    def posterior(
        self, prior: Sequence[Rational] | None = None
    ) -> tuple[tuple[Fraction, ...] | None, ...]:
        """Return Pr[input j | output i] for inputs drawn from ``prior``: a row for each output.

        The prior is uniform if None. The row of an output that never occurs is None.
        """
        weights = prior_over(self.inputs, prior)
        rows: list[tuple[Fraction, ...] | None] = []
        for row in self.weights:
            joint = [weight * entry for weight, entry in zip(weights, row, strict=True)]
            total = sum(joint, Fraction(0))
            rows.append(tuple(value / total for value in joint) if total else None)
        return tuple(rows)

    @cached_property
    def sampler(self) -> Sampler | LawSampler:
        """The sampler of the outputs, which also states the exact distribution of its draws."""
        if self.closed is not None:
            return LawSampler(self)
        return Sampler(self.weights, self.denominator)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        if self._about != other._about:
            return False
        if self.law is not None and self.law == other.law:
            return True
        if self.closed is not None and other.closed is not None:
            return False
        listed = self.weights == other.weights if self.inputs <= _COMPARED else False
        return listed and self.denominator == other.denominator

    def __hash__(self) -> int:
        return hash(self._about)

    @property
    def _about(self) -> tuple[object, ...]:
        return self.promise, self.output_values, self.input_values


class LawSampler:
    """Draws from the columns of a closed form; outputs are numbered from 0, as rows are."""

    def __init__(self, table: Table) -> None:
        assert table.closed is not None
        self._table, self._law = table, table.closed
        outputs = self._law.outputs
        self._low = outputs.low if isinstance(outputs, Counts) else 0

    @property
    def weights(self) -> tuple[tuple[int, ...], ...]:
        """The distribution of draws; raises TooLarge if it is too large for a table."""
        return self._table.weights

    def draw(self, counts: npt.ArrayLike, rng: np.random.Generator | None = None) -> Integers:
        """Return one output for each input in ``counts``, of the same shape.

        Raises InvalidCount before anything is drawn.
        """
        source = bit_source(rng)
        inputs = checked_counts(counts, self._law.n)
        return self.outputs(inputs.ravel(), source).reshape(inputs.shape)

    def outputs(self, inputs: Integers, source: BitSource) -> Integers:
        """One output for each input of a one-dimensional array of valid ones."""
        return self._law.draw(inputs, source) - self._low


def _require_fitting(table: Table) -> None:
    """Raise InvalidMechanism for values that do not fit the table, its privacy, or each other."""
    outputs, inputs, neighbours = table.output_values, table.input_values, table.promise.neighbours
    rows, columns = len(table.weights), len(table.weights[0])
    if not table.bounded:
        raise InvalidMechanism("the outputs of a table are not all integers")
    if (outputs.size, inputs.size) != (rows, columns):
        raise InvalidMechanism(
            f"the table is {rows} x {columns}, but there are {outputs.size} outputs"
            f" and {inputs.size} inputs"
        )
    if isinstance(inputs, CountPairs):
        if neighbours == "adjacent" or isinstance(neighbours, int):
            raise InvalidMechanism(
                "the neighbours of pairs of counts must be listed: CountPairs.neighbours() lists"
                " those that differ by one"
            )
    elif not isinstance(inputs, Counts) or inputs.low != 0:
        raise InvalidMechanism("inputs are the counts from 0, or pairs of counts")
    distances(outputs, inputs)


def _widest(rows: Sequence[Sequence[int]]) -> int:
    """The first row with the largest ratio of its largest number to its smallest."""
    top, bottom, widest = 1, 1, 0
    for i, row in enumerate(rows):
        low, high = min(row), max(row)
        if high * bottom > top * low:
            top, bottom, widest = high, low, i
    return widest

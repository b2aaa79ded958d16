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
from typing import Any

import numpy as np
import numpy.typing as npt

from mechdesign.base import Booleans, Integers, Rational, aligned, brief, exact, percent, set_fields
from mechdesign.exceptions import InvalidMechanism, NotSquare, PrivacyViolation
from mechdesign.losses import L0, Loss, prior_over
from mechdesign.mechanism.values import CountPairs, Counts, Values, distances, errors, values_of
from mechdesign.noise.sampling import Sampler
from mechdesign.privacy import Privacy

# ------------------------------------------------------------------------------------------------
# The exact distribution of the error, output minus input (thesis Figures 6.9-6.13).


_ALL_UP_TO = 10  # below this distance a printed table has every error

# From it on, those of these distances that occur, and the largest.
_BEYOND = tuple(step * 10**power for power in range(1, 11) for step in (1, 2, 5))


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

    def __str__(self) -> str:
        largest = max((abs(error) for error, p in self.histogram.items() if p), default=0)
        steps = (d for d in (*range(_ALL_UP_TO), *_BEYOND) if d < largest)
        rows = [("d", "error -d", "error +d", "|error| <= d")]
        for d in (*steps, largest):
            below, above = (percent(self.histogram.get(error, Fraction(0)), 2) for error in (-d, d))
            rows.append((str(d), below if d else "", above, percent(1 - self.tail(d), 2)))
        return "\n".join([*aligned(rows), self._summary()])

    def __repr__(self) -> str:
        ends = f"{min(self.histogram)} .. {max(self.histogram)}"
        return f"<ErrorDistribution over {ends}: {self._summary()}>"

    def _summary(self) -> str:
        return f"bias {brief(self.bias, 4)}, RMSE {brief(self.rmse, 4)}"


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

    def require(self) -> None:
        """Raise PrivacyViolation unless the claimed privacy is kept."""
        if not self.holds:
            raise PrivacyViolation(self.ratio, self.allowed, self.output, self.inputs)


class Table:
    """``P[i, j] = Pr[output i | input j]``, exact, with the privacy that it claims.

    Immutable; equal when the entries and the claims are equal. A table may be rectangular; columns
    sum to exactly one. Constructing one does not check the claim: `audit` does.

    Parameters
    ----------
    table : iterable of iterable of Fraction, int, str or Decimal
        Shape (outputs, inputs): rows are outputs, columns are inputs. Entries are exact rationals;
        floats are refused (`InexactNumber`).
    privacy : Privacy
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

    __slots__ = ("__dict__", "denominator", "input_values", "output_values", "privacy", "weights")

    #: Integer numerators over `denominator`, without a common factor of all.
    weights: tuple[tuple[int, ...], ...]
    denominator: int  #: At least 1.
    privacy: Privacy
    output_values: Values  #: What the rows stand for.
    input_values: Values  #: What the columns stand for.

    def __init__(
        self,
        table: Iterable[Iterable[Rational]],
        privacy: Privacy,
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
        privacy: Privacy,
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
        privacy: Privacy,
        outputs: Values | None,
        inputs: Values | None,
    ) -> None:
        if hasattr(self, "weights"):
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
            privacy=privacy,
            output_values=values_of(len(weights) if outputs is None else outputs),
            input_values=values_of(len(weights[0]) if inputs is None else inputs),
        )
        privacy.pairs(self.inputs)  # an explicit neighbour list must fit the table
        _require_fitting(self)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} is immutable; cannot delete {name!r}")

    def __reduce__(self) -> tuple[Any, ...]:
        make = partial(Table.from_weights, outputs=self.output_values, inputs=self.input_values)
        return make, (
            self.weights,
            self.denominator,
            self.privacy,
        )

    @property
    def outputs(self) -> int:
        """The number of outputs (rows)."""
        return len(self.weights)

    @property
    def inputs(self) -> int:
        """The number of inputs (columns): n + 1 for a count of n respondents."""
        return len(self.weights[0])

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
        """
        return self._audit

    @cached_property
    def _audit(self) -> Audit:
        pairs = self.privacy.pairs(self.inputs).tolist()
        distances = self.privacy.distances(self.inputs).tolist()
        alpha, least = self.privacy.alpha, min(distances, default=1)
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
        prior. This is the plain loss; for the scaled L0 of eq. 6.1 see `scaled_l0`.
        """
        costs = loss.costs(self.output_values, self.input_values)
        weights = loss.weights(self.inputs)
        scale = math.lcm(*(cost.denominator for row in costs for cost in row))
        columns = [0] * self.inputs
        for row, prices in zip(self.weights, costs, strict=True):
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
        if self.outputs != self.inputs or self.inputs < 2:
            raise NotSquare(
                f"the scaled L0 is for square tables with n >= 1, this one is {self.outputs} x"
                f" {self.inputs}"
            )
        return self.loss(L0(d)) * Fraction(self.inputs, self.inputs - 1)

    def error_distribution(self, prior: Sequence[Rational] | None = None) -> ErrorDistribution:
        """Return the distribution of output minus input, for inputs drawn from ``prior``.

        The prior is uniform if None. The error of a band is that of its nearest count. Raises
        InvalidMechanism for pairs of counts, whose errors have no sign.
        """
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
    def sampler(self) -> Sampler:
        """The sampler of the outputs, which also states the exact distribution of its draws."""
        return Sampler(self.weights, self.denominator)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[object, ...]:
        values = self.output_values, self.input_values
        return (self.weights, self.denominator, self.privacy, *values)


def _require_fitting(table: Table) -> None:
    """Raise InvalidMechanism for values that do not fit the table, its privacy, or each other."""
    outputs, inputs, neighbours = table.output_values, table.input_values, table.privacy.neighbours
    if (outputs.size, inputs.size) != (table.outputs, table.inputs):
        raise InvalidMechanism(
            f"the table is {table.outputs} x {table.inputs}, but there are {outputs.size} outputs"
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

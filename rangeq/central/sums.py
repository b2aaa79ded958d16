"""Sums and means of numbers by groups: every user is shared among the ends of an attribute.

A user whose number is the part t of the way from the least to the largest value counts as 1 - t
users of the least, and as t of the largest: one user in all. So the table of groups by the two ends
is a histogram of users, whose sums over the ends are the numbers of users, and whose sums with the
ends as values are exactly those of the numbers. One user more or less moves it by 1 in all, where a
count and a sum by themselves, each with half of epsilon, have twice the variance. It is the K-norm
mechanism of what one user adds to a count and a sum (Hardt and Talwar, STOC 2010): of the numbers
of users n and the sums s of 2 t - 1, |n| + |s| there is at most 2 max(|n|, |s|).

For variances users are shared among three places, as (1 - t)^2, 2 t (1 - t) and t^2, the Bernstein
polynomials: the last has the sums of squares.

Shares are whole numbers of parts of a user. What one adds is a mixture of what users of the places
add, so that it has no larger norm than the largest of these, and a mechanism for histograms keeps
what it promises.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from frequency.schema import Encoded, Numeric, Schema
from mechdesign import Privacy
from mechdesign.base import Floats, Integers, listed, printable, set_fields, whole
from rangeq.central.inputs import (
    LARGEST_DOMAIN,
    LARGEST_MARGINALS,
    MarginalCounts,
    cells_along,
    flat_cells,
)
from rangeq.central.matrix_mechanism.design import entry_bits
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.strategy import LARGEST_ENTRY

#: The most numbers of one release.
MOST_ADDED = 16


class SharedPlaces(NamedTuple):
    """The places among which users are shared: arrays (places,).

    Attributes
    ----------
    values : numpy.ndarray of float64
        In the attribute's unit: users at them have the sum of the numbers.
    squares : numpy.ndarray of float64
        Likewise that of squares of numbers, less the least value each; NaN without variances.
    """

    values: Floats
    squares: Floats


@dataclass(frozen=True)
class GroupedSums:
    """What is counted for sums and means of numbers, by groups.

    Parameters
    ----------
    schema : Schema
        The attributes by which users are grouped, and after them those whose numbers are added up.
        Bounds are theirs; what becomes of numbers outside, and of missing ones, is their policy.
    numbers : int, default 1
        How many are of the last kind, 1 to 16: `Numeric`.
    squares : bool, default False
        Whether variances are wanted, too: counts and sums then have more noise.

    Raises
    ------
    ValueError
        No such attributes, or too many cells.

    Examples
    --------
    >>> from frequency.schema import Boolean
    >>> schema = Schema([Boolean("smokes"), Numeric("age", low=0, high=100, whole=True)])
    >>> sums = GroupedSums(schema)
    >>> mechanism = sums.mechanism(Privacy.from_epsilon(1))
    >>> people = {"smokes": ["no", "no", "yes"], "age": [20, 50, 100]}
    >>> counts = sums.count([people], mechanism)
    >>> (counts.tables[0, 1] / counts.parts[0, 1]).tolist()
    [[1.3, 0.7], [0.0, 1.0]]
    """

    schema: Schema
    numbers: int = 1
    squares: bool = False

    def __post_init__(self) -> None:
        number = whole(self.numbers, "numbers", 1, min(MOST_ADDED, len(self.schema)))
        set_fields(self, numbers=number)
        for attribute in self.schema.attributes[-number:]:
            if not isinstance(attribute, Numeric):
                raise ValueError(f"{printable(attribute.name)} is not numeric: it has no sums")
        if self.groups:
            cells_along(self.schema.project(self.groups), LARGEST_MARGINALS)
        cells = max(math.prod(self.sizes[i] for i in view) for view in self.views)
        if cells > LARGEST_DOMAIN:
            raise ValueError(f"there are {cells} groups and places of numbers, more than 2^26")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes: see `added` and `groups`."""
        return self.schema.names

    @property
    def added(self) -> tuple[str, ...]:
        """Whose numbers are added up."""
        return self.schema.names[-self.numbers :]

    @property
    def groups(self) -> tuple[str, ...]:
        """By which users are grouped."""
        return self.schema.names[: -self.numbers]

    @property
    def places(self) -> int:
        """The number of places among which the users with a number are shared."""
        return 3 if self.squares else 2

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells along each attribute: of numbers places, and those of policies."""
        (*sizes,) = self.schema.sizes[: -self.numbers]
        sizes += [self.places + len(self[name].extra) for name in self.added]
        return tuple(sizes)

    @property
    def views(self) -> list[tuple[int, ...]]:
        """The tables that are measured: all groups, and the places of a number."""
        groups = len(self.groups)
        return [(*range(groups), groups + k) for k in range(self.numbers)]

    def __getitem__(self, name: str) -> Numeric:
        attribute = self.schema[name]
        assert isinstance(attribute, Numeric)
        return attribute

    def step(self, name: str) -> Fraction:
        """Return to whose multiples, from the least value on, a number is rounded: a power of ten.

        Whole numbers are not, if there are at most 2^25; of others at least seven digits are kept.

        Parameters
        ----------
        name : str
            One of `added`.

        Returns
        -------
        Fraction
            In the number's unit.
        """
        low, high = self[name].bounds
        step = Fraction(1)
        while (high - low) / step > LARGEST_ENTRY:
            step *= 10
        while not self[name].whole and (high - low) / step * 10 <= LARGEST_ENTRY:
            step /= 10
        return step

    def steps(self, name: str) -> int:
        """Return how many steps there are from the least to the largest value of a number.

        Parameters
        ----------
        name : str
            One of `added`.

        Returns
        -------
        int
            At least 1: of an attribute of one value the second place stands beside it.
        """
        low, high = self[name].bounds
        return max(math.ceil((high - low) / self.step(name)), 1)

    def of(self, name: str) -> SharedPlaces:
        """Return the places among which the users with a number are shared.

        Parameters
        ----------
        name : str
            One of `added`.

        Returns
        -------
        SharedPlaces
            Arrays (places,).
        """
        low, width = self[name].bounds[0], self.steps(name) * self.step(name)
        along = np.linspace(0.0, 1.0, self.places)
        squares = np.array([0.0, 0.0, 1.0]) if self.squares else np.full(2, np.nan)
        return SharedPlaces(float(low) + along * float(width), squares * float(width) ** 2)

    def _parts(self, name: str, most: int) -> int:
        """Into how many parts a user is divided, nearly as many as allowed.

        They share users exactly, if there may be so many: the sums are then those of the numbers.
        """
        steps = self.steps(name) ** (self.places - 1)
        return steps * (most // steps) if steps <= most else most

    # ------------------------------------------------------------------------------------- counting

    def encode(self, table: Any) -> Encoded:
        """Return the rows of a table as items of groups, and as steps of numbers.

        Parameters
        ----------
        table : DataFrame or mapping
            As for `Schema.encode`.

        Returns
        -------
        Encoded
            For `count`.

        Raises
        ------
        InvalidCell, UnknownColumn
            As for `Schema.encode`.
        """
        return self.schema.encode(table, {name: self.step(name) for name in self.added})

    def count(self, tables: Iterable[Any], mechanism: MatrixMechanism) -> MarginalCounts:
        """The tables of users shared among places: exact, and private.

        Parameters
        ----------
        tables : iterable of DataFrame, mapping or Encoded
            Parts of the table, as `encode` takes or gives them. Only one is held at a time.
        mechanism : MatrixMechanism
            What releases them, of `mechanism`.

        Returns
        -------
        MarginalCounts
            In parts of users.

        Raises
        ------
        InvalidCell
            The first value that no policy takes.
        ValueError
            The mechanism measures something else.
        """
        strategy = mechanism.strategy
        if not isinstance(strategy, MarginalStrategy) or strategy.views != tuple(self.views):
            raise ValueError("the mechanism is not for these sums")
        groups, parts = len(self.groups), strategy.weights
        shapes = [tuple(self.sizes[i] for i in view) for view in self.views]
        totals = [np.zeros(math.prod(shape), dtype=np.int64) for shape in shapes]
        for table in tables:
            encoded = table if isinstance(table, Encoded) else self.encode(table)
            columns = [np.asarray(column, dtype=np.int64) for column in encoded.columns]
            for k, name in enumerate(self.added):
                taken, steps = columns[groups + k], self.steps(name)
                apart = taken > steps
                first = np.where(apart, taken - steps - 1 + self.places, 0)
                cells = flat_cells([*columns[:groups], first], shapes[k])
                np.add.at(totals[k], cells[apart], parts[k])
                shared = self._shared(taken[~apart] / steps, parts[k])
                for place, share in enumerate(shared):
                    np.add.at(totals[k], cells[~apart] + place, share)
        tables_of = zip(self.views, totals, shapes, strict=True)
        return MarginalCounts(
            self.sizes,
            {view: total.reshape(shape) for view, total, shape in tables_of},
            dict(zip(self.views, parts, strict=True)),
        )

    def _shared(self, along: Floats, parts: int) -> Sequence[Integers]:
        """The parts of users at each place: whole numbers, at least 0, of the sum ``parts``."""
        last = np.rint(parts * along ** (self.places - 1)).astype(np.int64)
        if not self.squares:
            return parts - last, last
        # The two are at most ``parts`` before they are rounded, and so after it
        first = np.rint(parts * (1 - along) ** 2).astype(np.int64)
        return first, parts - first - last, last

    # ------------------------------------------------------------------------------------ mechanism

    def mechanism(self, promise: Promise) -> MatrixMechanism:
        """Return what releases these tables.

        Parameters
        ----------
        promise : Privacy, ZCDP or ApproximateDP
            What a release keeps, for one user more or less.

        Returns
        -------
        MatrixMechanism
            It measures the table of each number, and all alike.
        """
        most = LARGEST_ENTRY
        if not isinstance(promise, Privacy):
            most = min(most, 1 << entry_bits(promise.noise_ratio * self.numbers))
        weights = [self._parts(name, most) for name in self.added]
        return MatrixMechanism(MarginalStrategy(self.sizes, self.views, weights), promise)

    def best(self, promises: Sequence[Promise]) -> MatrixMechanism:
        """Return the mechanism of least noise among those that keep one of some promises.

        Parameters
        ----------
        promises : sequence of Privacy, ZCDP or ApproximateDP
            One at least: of (epsilon, delta), noise with no delta is often less.

        Returns
        -------
        MatrixMechanism
            As of `mechanism`.
        """
        each = [self.mechanism(promise) for promise in promises]
        return min(each, key=lambda mechanism: mechanism.errors.variance_of(self._of_a_group()))

    def _of_a_group(self, name: str | None = None) -> list[Floats]:
        """The users of one group, or the sum of one number over them, as a query."""
        weights = [np.ones(size) for size in self.sizes]
        for place in range(len(self.groups)):
            weights[place] = np.eye(1, self.sizes[place])[0]
        if name is not None:
            values = self.of(name).values
            weights[self.names.index(name)] = np.zeros(self.sizes[self.names.index(name)])
            weights[self.names.index(name)][: self.places] = values
        return weights

    def standard_errors(self, mechanism: MatrixMechanism) -> list[tuple[str, float, str]]:
        """Return what the errors of answers are, for any data.

        Parameters
        ----------
        mechanism : MatrixMechanism
            Of `mechanism` or `best`.

        Returns
        -------
        list of (str, float, str)
            What is asked, its standard error, and the unit of that.
        """
        of = "a group" if self.groups else "all"
        users = math.sqrt(mechanism.errors.variance_of(self._of_a_group()))
        found = [(f"the number of users of {of}", users, "")]
        for name in self.added:
            error = math.sqrt(mechanism.errors.variance_of(self._of_a_group(name)))
            found.append((f"the sum of {name}", error, self[name].unit))
        return found

    def error_of_mean(self, mechanism: MatrixMechanism, name: str, users: float) -> float:
        """Return the standard error of a group's mean, if that is in the middle of the bounds.

        If it is at one of them, it is up to sqrt(2) times as large.

        Parameters
        ----------
        mechanism : MatrixMechanism
            Of `mechanism` or `best`.
        name : str
            One of `added`.
        users : float
            How many of the group have a number: many more than the error of their number.

        Returns
        -------
        float
            In the number's unit.
        """
        # To first order the mean T / N errs by (T - m N) / N, and both are sums over places
        weights, place = self._of_a_group(name), self.names.index(name)
        values = self.of(name).values
        weights[place][: self.places] = values - (values[0] + values[-1]) / 2
        return math.sqrt(mechanism.errors.variance_of(weights)) / users

    def statement(self, mechanism: MatrixMechanism) -> str:
        """Say what the errors of answers are, for any data.

        Parameters
        ----------
        mechanism : MatrixMechanism
            Of `mechanism` or `best`.

        Returns
        -------
        str
            A sentence.
        """
        parts = [
            f"{f'{error:.4g} {unit}'.strip()} for {what}"
            for what, error, unit in self.standard_errors(mechanism)
        ]
        return f"standard errors: {listed(parts)}"

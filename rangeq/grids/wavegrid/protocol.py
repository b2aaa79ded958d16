"""WaveGrid: conjunctions of ranges from square waves over pairs, with priors that adapt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from frequency.core import Aggregate, checked_users, place_of
from frequency.schema import Domain, Ordered, Schema
from mechdesign.base import Rational, listed, set_fields, shown, whole
from rangeq.grids.protocol import ConjunctionProtocol, Miniature, Simulation
from rangeq.grids.wavegrid.estimate import WaveEstimate
from rangeq.grids.wavegrid.likelihoods import Likelihoods, of_waves
from rangeq.grids.wavegrid.posterior import chosen_pairs, estimated
from rangeq.grids.wavegrid.square_waves import FINE, LARGEST, Heard, WaveChannel

# Numbers in an aggregate, 128 megabytes: all pairs of 23 attributes of 256 or more values, or of 46
# of 64.
_MOST_COUNTS = 1 << 24


def best(
    sizes: Any, epsilon: float | Rational, n: int, categorical: Sequence[Any] = ()
) -> WaveGrid:
    """The protocol to take for about ``n`` users where nothing is known of the data: `WaveGrid`.

    On normal, Laplace, skewed and heaped data answers err 1.2 to 16 times less than those of HDG,
    TDG and MSW. It does not err least on all data: see `WaveGrid`.

    Parameters
    ----------
    sizes, epsilon, categorical : as of `WaveGrid`
        The sizes of the attributes, the privacy loss of one report, and the attributes whose values
        are categories.
    n : int
        The number of users expected, at least 1.

    Returns
    -------
    WaveGrid
        The protocol.

    Raises
    ------
    ValueError
        For parameters out of range.

    Examples
    --------
    >>> from frequency import Between
    >>> import numpy as np
    >>> protocol = best(sizes={"age": 100, "income": 64}, epsilon=1.0, n=100_000)
    >>> rng = np.random.default_rng(1)
    >>> age = rng.binomial(99, 0.4, size=100_000)
    >>> records = np.stack([age, rng.binomial(63, age / 99)], axis=1)
    >>> estimate = protocol.estimate(protocol.aggregate(protocol.privatize(records, rng)))
    >>> truth = np.mean((age < 40) & (records[:, 1] < 25))
    >>> answer = estimate.answer({"age": Between(0, 39), "income": Between(0, 24)})
    >>> bool(abs(answer.value - truth) < 0.04)
    True
    """
    return WaveGrid(sizes, epsilon, checked_users(n), categorical)


@dataclass(frozen=True)
class WaveGrid(ConjunctionProtocol):
    """Users report on a pair of attributes: the record's cell of two random square waves.

    A wave is a function of one attribute, and the product of two is one of both: a report on four
    cells has information about all three. From an epsilon of 2.5 on cells are sixteen or more, and
    a fifth of the users report on one attribute by itself, in finer cells. Random phases leave no
    borders of cells that answers would be interpolated across. The estimate consists of a
    distribution of every attribute, as smooth as the reports support, or even; the dependence of
    every two, as smooth or as local as the reports support, or none; and for more attributes the
    distribution of most entropy: see `WaveEstimate`. Waves of all lengths are collected, down to
    single values, so that errors fall with epsilon and the number of users on any pairs. A sixth of
    those asked about two ordered attributes of 8 values or more report on their lower and upper
    halves instead: about patterns of halves waves of random phases have hardly any information.

    Values of categorical attributes have no order, and none are neighbours: users report the set
    that holds theirs of a random partition into a few, and the estimate of each category is its
    own, as far from that of others as the reports support. So is that of values that stand for
    missing ones.

    No report has information about the dependence of three attributes beyond that of their pairs.
    See ``docs/benchmarks/grids.md``.

    Parameters
    ----------
    sizes : Schema, sequence of int, mapping or Domain
        The number of values of each attribute. Sizes up to 2^31: the estimate has at most 256 cells
        along an attribute, and 64 along each of two, about equally frequent. An aggregate has at
        most 2^24 numbers, all pairs of 23 such attributes. See `ConjunctionProtocol`. Of a
        `frequency.Schema` the categorical attributes are known.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int, optional
        Not used.
    categorical : sequence of str or int, default ()
        The attributes, by name or by place, whose values are categories: at most 256 each. With one
        or two values order does not matter.
    pairs : sequence of pairs of str or int, optional
        Public: the pairs of attributes that users report on, each attribute in one at least. None:
        all pairs. With many attributes fewer pairs have more reports each; the others are estimated
        from what these imply, without errors. See also `second_round`.
    apart : mapping of str or int to int, default ()
        By name or by place, how many of the last values of an ordered attribute are no neighbours
        of others, such as those that stand for missing ones. Clients do not depend on it.

    Raises
    ------
    ValueError
        What the protocol cannot do.

    Examples
    --------
    >>> WaveGrid(sizes=[64, 10], epsilon=1.0).report_bits
    15
    """

    categorical: Any = ()
    pairs: Any = None
    apart: Any = ()

    def __post_init__(self) -> None:
        known: dict[str, int] = {}
        if isinstance(self.sizes, Schema):
            known = self.sizes.apart
            named = [
                attribute.name for attribute in self.sizes if not isinstance(attribute, Ordered)
            ]
            set_fields(self, categorical=(*self.categorical, *named), sizes=self.sizes.domain)
        attributes = Domain.of(self.sizes)
        set_fields(
            self,
            categorical=checked_categorical(self.categorical, attributes),
            pairs=None if self.pairs is None else _checked_pairs(self.pairs, attributes),
            apart=checked_apart(self.apart, attributes, known),
        )
        if max(attributes.sizes) > LARGEST:
            raise ValueError(
                f"WaveGrid takes attributes of up to {LARGEST} values, got {max(attributes.sizes)}"
            )
        set_fields(self, sizes=attributes)
        each = [wave.configurations * wave.arcs for wave in self.channel.waves]
        pairs = self.channel.asked_pairs
        counts = sum(math.prod(each[place] for place in pair) for pair in pairs)
        if counts > _MOST_COUNTS:
            raise ValueError(
                f"{len(pairs)} pairs of attributes of such sizes need {counts}"
                f" counts, more than {_MOST_COUNTS}"
            )
        super().__post_init__()

    simulation = Simulation(step=1)

    def miniature(self, places: tuple[int, ...], sizes: tuple[int, ...]) -> Miniature:
        # Parts have the users of this protocol, in proportion to what they are with few attributes
        named = [k for k, i in enumerate(places) if self.attributes.names[i] in self.categorical]
        small = replace(self, sizes=list(sizes), categorical=named, pairs=None, apart=())
        many, few = self.channel, small.channel
        alone, few_alone = float(many.chance_alone), float(few.chance_alone)
        pairs = len(small.attributes.pairs) / max(len(many.asked_pairs), 1)
        return Miniature(
            small,
            alone / (few_alone or 1) * len(sizes) / len(self.attributes),
            (1 - alone) / ((1 - few_alone) or 1) * pairs,
        )

    @cached_property
    def channel(self) -> WaveChannel:
        names = self.attributes.names
        categorical = tuple(
            name in self.categorical and size > 2
            for name, size in zip(names, self.attributes.sizes, strict=True)
        )
        pairs = self.pairs and tuple((names.index(a), names.index(b)) for a, b in self.pairs)
        return WaveChannel(self.attributes.size, self.epsilon, self.attributes, categorical, pairs)

    def second_round(self, aggregate: Aggregate, n: int, most: int | None = None) -> WaveGrid:
        """The protocol for other users to report on the pairs that matter.

        These are, by the reports so far, those of which further reports lower the errors of answers
        most. `estimate` then takes the reports of both rounds. What this spends is users: those of
        the first round, a fifth of all if nothing speaks for another part.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.
        n : int
            How many users the second round will have, at least 1.
        most : int, optional
            How many pairs at most, at least 1, but for those with which each attribute is in two;
            None: as many as are predicted to err least.

        Returns
        -------
        WaveGrid
            The same, with fewer pairs, unless all matter.

        Raises
        ------
        ValueError
            Numbers out of range, no reports, or one attribute only.
        IncompatibleAggregate
            The aggregate is of another protocol.
        """
        users = checked_users(n)
        if most is not None:
            most = whole(most, "most", 1, what="a number of pairs")
        self._require_pairs()
        estimate = self.estimate(aggregate)
        if not estimate.reports:
            raise ValueError("no reports: nothing tells which pairs matter")
        information = users * self.channel.mean_information
        names = self.attributes.names
        pairs = [(names[j], names[k]) for j, k in chosen_pairs(estimate, information, most)]
        return replace(self, n=users, pairs=pairs)

    def estimate(
        self, aggregate: Aggregate, earlier: Sequence[tuple[WaveGrid, Aggregate]] = ()
    ) -> WaveEstimate:
        """Estimate answers to conjunctions of ranges.

        Parameters
        ----------
        aggregate : Aggregate
            Of this protocol's reports.
        earlier : sequence of (WaveGrid, Aggregate), default ()
            Rounds of other users before, about the same attributes.

        Returns
        -------
        WaveEstimate
            Of all reports; all answers are NaN with none. Intervals of answers about one attribute
            or two hold for each question, of more on average over questions: see `WaveEstimate`.

        Raises
        ------
        IncompatibleAggregate
            An aggregate is of another protocol.
        ValueError
            A round about other attributes, or at an epsilon so different that other questions were
            asked.
        """
        if not earlier:
            return cast(WaveEstimate, super().estimate(aggregate))
        heard, halves, n = [], [], 0
        for protocol, reports in (*earlier, (self, aggregate)):
            if (protocol.attributes, protocol.channel.waves) != (
                self.attributes,
                self.channel.waves,
            ):
                raise ValueError(
                    "rounds must be about the same attributes, cut in the same ways: with the same"
                    " epsilon they are"
                )
            checked = protocol.channel.require_own(reports)
            waves, split = protocol.channel.heard(checked)
            heard += waves
            halves += split
            n += checked.n
        return self._from(n, heard, halves)

    def _likelihoods(self, aggregate: Aggregate) -> Likelihoods:
        return self._told(*self.channel.heard(aggregate))

    def _told(self, heard: Sequence[Heard], halves: Sequence[Heard]) -> Likelihoods:
        known = dict(self.apart)
        apart = [
            0 if categories else known.get(name, 0)
            for name, categories in zip(
                self.attributes.names, self.channel.categorical, strict=True
            )
        ]
        return of_waves(self.attributes, self.channel.waves, heard, halves, apart)

    def _estimate(self, aggregate: Aggregate) -> WaveEstimate:
        return self._from(aggregate.n, *self.channel.heard(aggregate))

    def _from(self, n: int, heard: Sequence[Heard], halves: Sequence[Heard]) -> WaveEstimate:
        if not n:
            return WaveEstimate(self.attributes, 0, (), {}, self.channel.categorical)
        likelihoods = self._told(heard, halves)
        return estimated(self.attributes, n, likelihoods, self.channel.categorical)


def checked_categorical(categorical: Any, attributes: Domain) -> tuple[str, ...]:
    """The names of categorical attributes, in order; ValueError for what is none."""
    places = {place_of(name, attributes.names, ValueError) for name in categorical}
    for place in places:
        if attributes.sizes[place] > FINE:
            raise ValueError(
                f"{shown(attributes.names[place])} has {attributes.sizes[place]} categories,"
                f" more than {FINE}: join the rare ones"
            )
    return tuple(attributes.names[place] for place in sorted(places))


def checked_apart(
    apart: Any, attributes: Domain, known: Mapping[str, int]
) -> tuple[tuple[str, int], ...]:
    """The names and numbers, in the attributes' order: those given before those known."""
    try:
        given = {**known, **dict(apart)}
    except (TypeError, ValueError):
        raise ValueError(
            f"apart is a mapping of attributes to numbers of values, got {shown(apart)}"
        ) from None
    numbers = {
        place_of(name, attributes.names, ValueError): whole(
            number, "apart", 0, what="a number of values"
        )
        for name, number in given.items()
    }
    for place, number in numbers.items():
        if number >= min(attributes.sizes[place], FINE):
            raise ValueError(
                f"of {shown(attributes.names[place])} fewer than"
                f" {min(attributes.sizes[place], FINE)} values are apart, got {number}"
            )
    return tuple(
        (attributes.names[place], numbers[place]) for place in sorted(numbers) if numbers[place]
    )


def _checked_pairs(pairs: Any, attributes: Domain) -> tuple[tuple[str, str], ...]:
    """The pairs of names, in the attributes' order."""
    places = set()
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"a pair is two attributes, got {shown(pair)}")
        j, k = sorted(place_of(name, attributes.names, ValueError) for name in pair)
        if j == k:
            raise ValueError(f"a pair is two different attributes, got {shown(pair)}")
        places.add((j, k))
    missing = [
        name
        for place, name in enumerate(attributes.names)
        if not any(place in pair for pair in places)
    ]
    if missing:
        raise ValueError(f"no pair asks about {listed(missing)}")
    return tuple((attributes.names[j], attributes.names[k]) for j, k in sorted(places))

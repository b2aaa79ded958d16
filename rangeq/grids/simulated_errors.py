"""Errors of answers about two attributes, which rest on the data: predicted by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np

from frequency.algebra import WORD
from frequency.core import Aggregate
from frequency.schema import Domain
from mechdesign.base import Floats, Items, Rational, one_thread
from rangeq.core import cumulated
from rangeq.grids.channel import GroupChannel
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.grids.sampling import REFERENCE_RECORDS, ExpectedRecords
from rangeq.grids.wavegrid.square_waves import WaveCells, WaveChannel

_QUERIES = 100  # the number of queries of each collection

_USERS = 10_000  # the users of each group, where errors fall with their number as noise does

System: TypeAlias = Callable[..., ConjunctionProtocol]

#: A function from one or two axes to the shares of their values: shape (sizes of these).
Shares: TypeAlias = Callable[[tuple[int, ...]], Floats]


def conjunction_errors(
    system: System,
    attributes: Domain,
    epsilon: float | Rational,
    n: int,
    like: ExpectedRecords | None = None,
    categorical: tuple[int, ...] = (),
) -> tuple[tuple[str, float], ...]:
    """Return the root mean square errors of queries of two attributes, on some populations.

    A query is a range of each of two attributes, all pairs of attributes being as likely, and all
    ranges but that of all values; of one attribute, a range of that; of a categorical one a single
    value. Errors are those of
    collections with fixed seeds: of the system over three attributes, where one pair has as many
    users as a pair of all has, and the others stand for the information of the other attributes
    about the two. Attributes of more than 64 values are simulated with 64. `WaveGrid` is simulated
    at epsilons that are powers of the square root of 2, and 1, 3, 10, 30, ... users; in between a
    power law is assumed. A protocol's `Simulation` says how far it is another one there.

    Parameters
    ----------
    system : callable
        What makes the protocol from attributes, epsilon and n: a class, or a function.
    attributes : Domain
        The sizes of the attributes.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int
        The number of users.
    like : ExpectedRecords, optional
        The population to expect; None: those of `rangeq.grids.sampling.REFERENCE_RECORDS`.
    categorical : tuple of int, default ()
        The places of the attributes whose values have no order.

    Returns
    -------
    tuple of (str, float)
        The populations' names, "like" for that one, and the errors as fractions of the users; none
        for a system of which nothing is known, and of unbiased ones only the first, since theirs
        are nearly the same on all.

    Raises
    ------
    ValueError
        The system cannot serve these attributes.
    """
    protocol = system(attributes, epsilon, n)
    simulation = protocol.simulation
    if simulation is None:
        return ()
    step = simulation.step
    simulated = _USERS * protocol.groups if protocol.errs_as_noise else 0
    epsilons, users = [(float(epsilon), 1.0)], [(float(simulated or n), 1.0)]
    if step:
        epsilons = _around(float(epsilon), _epsilon_node, _gain, step)
    if step and not simulated:
        users = _around(min(n, simulation.most_users), _user_node, math.log, step)
    nodes = [
        (near, round(number), weight * share)
        for near, weight in epsilons
        for number, share in users
    ]
    simulations = [
        _errors(system, attributes, near, number, like, categorical) for near, number, _ in nodes
    ]
    # Interpolation of logarithms in logarithms: a power law between the nodes
    logs = np.array(
        [[math.log(max(error, 1e-300)) for _, error in simulation] for simulation in simulations]
    )
    errors = np.exp(np.array([weight for *_, weight in nodes]) @ logs)
    if simulated:
        errors *= math.sqrt(simulated / n)
    return tuple(
        (name, error) for (name, _), error in zip(simulations[0], errors.tolist(), strict=True)
    )


def _epsilon_node(k: int) -> float:
    return float(2.0 ** (k / 2))


def _user_node(k: int) -> float:
    return float(10 ** (k // 2) * (3 if k % 2 else 1))


def _gain(epsilon: float) -> float:
    """The logarithm of what noise falls with: e^(eps / 2) - e^(-eps / 2)."""
    return epsilon / 2 + math.log(-math.expm1(-epsilon))


def _around(
    value: float,
    node: Callable[[int], float],
    scale: Callable[[float], float],
    step: int,
) -> list[tuple[float, float]]:
    """The nodes next to a value, with their weights; a single one where the value is at it."""
    k = step * math.ceil(2 * math.log2(value) / step)  # at least that of the node below
    while node(k) > value * (1 + 1e-9):
        k -= step
    low, high = node(k), node(k + step)
    if value <= low * (1 + 1e-9):
        return [(low, 1.0)]
    share = (scale(value) - scale(low)) / (scale(high) - scale(low))
    return [(low, 1 - share), (high, share)]


@lru_cache(maxsize=4096)
@one_thread
def _errors(
    system: System,
    attributes: Domain,
    epsilon: float,
    n: int,
    like: ExpectedRecords | None,
    categorical: tuple[int, ...],
) -> tuple[tuple[str, float], ...]:
    protocol = system(attributes, epsilon, n)
    squares: dict[str, list[float]] = {}
    on_any = protocol.errs_as_noise
    assert protocol.simulation is not None
    runs = 4 if on_any else 1 if protocol.simulation.step else 2  # as they take time
    for run, places in enumerate(_chosen(attributes, like, runs)):
        small = _Miniature(protocol, places, n, [place in categorical for place in places])
        populations = list(_populations(small.sizes, places, like))
        for number, (name, shares) in enumerate(populations[:1] if on_any else populations):
            square = small.squared_error(shares, np.random.default_rng([run, number]))
            squares.setdefault(name, []).append(square)
    return tuple((name, math.sqrt(np.mean(squared))) for name, squared in squares.items())


def _chosen(attributes: Domain, like: ExpectedRecords | None, runs: int) -> list[tuple[int, ...]]:
    """Pairs of attributes that stand for all, each with another one, if there are so many."""
    d = len(attributes)
    if d == 1:
        return [(0,)] * (4 * runs)  # of which one is simulated soon
    # More where they are not alike
    if like is not None:
        runs *= 4
    elif len(set(attributes.sizes)) > 1:
        runs *= 2
    pairs = sorted(attributes.pairs, key=lambda pair: math.prod(attributes.sizes[j] for j in pair))
    if len(pairs) <= runs:  # each as often as any other
        runs = -(-runs // len(pairs)) * len(pairs)
    chosen = [pairs[(2 * run + 1) * len(pairs) // (2 * runs)] for run in range(runs)]
    others = [[place for place in range(d) if place not in pair] for pair in chosen]
    return [
        (*pair, *other[run % max(len(other), 1) :][:1])
        for run, (pair, other) in enumerate(zip(chosen, others, strict=True))
    ]


def _populations(
    sizes: tuple[int, ...], places: tuple[int, ...], like: ExpectedRecords | None
) -> Iterator[tuple[str, Shares]]:
    if like is None:
        for name, given in REFERENCE_RECORDS.items():
            yield name, partial(_shares_given, [given(size) for size in sizes])
        return
    places = places[: len(sizes)]
    full = np.array(like.attributes.sizes)[[*places]]
    yield "like", partial(_shares_of, like.records[:, places] * np.array(sizes) // full, sizes)


def _shares_given(given: list[Floats], axes: tuple[int, ...]) -> Floats:
    """The shares of attributes that are independent given what is hidden."""
    first, *others = (given[axis] for axis in axes)
    shares = first.T @ others[0] if others else first.sum(axis=0)
    return np.asarray(shares / shares.sum())


def _shares_of(records: Items, sizes: tuple[int, ...], axes: tuple[int, ...]) -> Floats:
    shape = tuple(sizes[axis] for axis in axes)
    cells = np.ravel_multi_index(tuple(records[:, axis] for axis in axes), shape)
    return np.asarray(np.bincount(cells, minlength=math.prod(shape)).reshape(shape) / len(records))


class _Miniature:
    """A protocol over a pair of its attributes, and perhaps a third that stands for the others.

    The protocol's channel must be a mixture of parts that tell of one attribute or of a pair each.
    Of its places the first two are asked about, one value where they are `named`; it has `n` users
    in all.
    """

    def __init__(
        self,
        protocol: ConjunctionProtocol,
        places: tuple[int, ...],
        n: int,
        named: Sequence[bool],
    ) -> None:
        assert protocol.simulation is not None
        if not protocol.simulation.others:
            places = places[:2]
        most, full = protocol.simulation.largest, protocol.attributes.sizes
        self.sizes = tuple(min(full[place], most) for place in places)
        self._small = protocol.miniature(places, self.sizes)
        self._n, self._d, self._named = n, len(protocol.attributes), named

    @property
    def _channel(self) -> GroupChannel:
        channel = self._small.protocol.channel
        assert isinstance(channel, GroupChannel)
        return channel

    def squared_error(self, shares: Shares, rng: np.random.Generator) -> float:
        """The mean squared error of queries, from one collection."""
        asked = tuple(range(min(len(self.sizes), 2)))
        users = rng.multinomial(self._n, shares(asked).ravel()).reshape(self.sizes[:2])
        estimate = self._small.protocol.estimate(self._collected(shares, users, rng))
        left, right = (
            np.stack(ends, axis=1)
            for ends in zip(
                *(
                    _ranges(size, rng, single)
                    for size, single in zip(self.sizes[:2], self._named, strict=False)
                ),
                strict=True,
            )
        )
        true = _inside(users / self._n, left, right)
        answers = estimate.answers(asked, left, right)
        even = ((right - left + 1) / self.sizes[:2]).prod(axis=1)
        answers = np.where(np.isnan(answers), even, answers)  # nobody may have reported
        return self._small.coarser * float(np.mean((answers - true) ** 2))

    def _collected(self, shares: Shares, held: Items, rng: np.random.Generator) -> Aggregate:
        """Simulate the reports of the parts' users."""
        counted, left, rest = {}, held, float(self._n)
        for part, oracle in enumerate(self._channel.parts):
            places = self._channel.part_places[part]
            share = self._small.alone if len(places) == 1 else self._small.together
            users = self._n * share
            if max(places) > 1 and len(places) > 1:
                users *= self._d - 2
            if isinstance(self._channel, WaveChannel):
                users *= self._channel.part_weights[part] / WORD
            if isinstance(oracle, WaveCells):
                if max(places) < 2:  # the users whose records are known
                    others = tuple(axis for axis in range(held.ndim) if axis not in places)
                    of = held.sum(axis=others) / self._n
                else:
                    of = shares(places)
                number = min(rng.poisson(users), self._n)
                counted[part] = number, oracle.drawn_counts(of, number, rng)
                continue
            if max(places) < 2:  # some of the users whose records are known
                # Without replacement: what one part has used is not there for the next, so that
                # parts are samples of the same users
                here = rng.binomial(left, min(users / rest, 1.0))
                left, rest = left - here, max(rest - users, 1e-9)
                if len(places) < left.ndim:
                    here = here.sum(axis=1 - places[0])
            else:
                here = rng.multinomial(rng.poisson(users), shares(places).ravel())
            cells = np.flatnonzero(here)
            if not len(cells):
                continue
            records = np.zeros((len(cells), len(self.sizes)), dtype=np.int64)
            values = np.unravel_index(cells, [self.sizes[place] for place in places])
            records[:, places] = np.stack(values, axis=1)
            counts, items = here.ravel()[cells], self._channel.part_items(part, records)
            counted[part] = int(counts.sum()), oracle.simulated_counts(items, counts, rng)
        return self._channel.joined(counted)


def _ranges(size: int, rng: np.random.Generator, single: bool = False) -> tuple[Items, Items]:
    """Ends of ranges, each as likely, but not that of all values if there are others."""
    if single:
        values = rng.integers(0, size, _QUERIES)
        return values, values
    first, last = np.triu_indices(size)
    proper = np.flatnonzero(last - first < max(size - 1, 1))
    chosen = proper[rng.integers(0, len(proper), _QUERIES)]
    return first[chosen], last[chosen]


def _inside(table: Floats, left: Items, right: Items) -> Floats:
    """The sums over ranges of one axis, or of each of two."""
    sums = cumulated(table)
    if table.ndim == 1:
        return np.asarray(sums[right[:, 0] + 1] - sums[left[:, 0]])
    (a, b), (c, d) = ((left[:, axis], right[:, axis] + 1) for axis in range(2))
    return np.asarray(sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c])

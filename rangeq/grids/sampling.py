"""Synthetic records with the pairs of attributes that a grid estimate answers: they are nobody's.

A tree of the most dependent pairs is sampled first. Then records exchange values of single
attributes, by Metropolis' rule for a distribution of most entropy, whose terms are fitted on the
way until every pair has its estimated table of blocks (persistent Monte Carlo likelihood: Younes,
"Parametric inference for imperfectly observed Gibbsian fields", 1989). So single attributes keep
their distributions exactly, whatever the pairs have, and no record counts more than another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from frequency.core import Aggregate, shared_out
from frequency.postprocess import norm_sub
from frequency.schema import Domain
from mechdesign.base import Floats, Items, ProgressMeter
from rangeq.core import reference_shares
from rangeq.grids.cells import Edges, Rectangles
from rangeq.grids.fitting import nonnegative, with_margins

_BLOCKS = 32  # the most blocks of an attribute: of about equal shares

#: The most records that begin; and how many each becomes once they have the tables.
_FEW, _TIMES = 1 << 15, 4

#: The sweeps of exchanges of the records that begin, and whenever there are more.
_SWEEPS, _MORE_SWEEPS = 20, 5

# Parts of the records that exchange in the last sweeps: the fewer, the more what tables are off
# counts, so that they are nearer than those of as many people drawn one by one.
_LAST = (0.5, 0.5, 0.25, 0.25, 0.12, 0.12, 0.06, 0.06, 0.03, 0.03)

# At the end few records exchange at a time, so that what each changes is known, and only for the
# better: so many for each cell of a table, in so many sweeps, of so many records.
_FINE, _FINE_SWEEPS, _FINE_RECORDS = (3.0, 0.2), 200, 1 << 16

_RATE = 0.5  # the part of a table's misfit that terms take over in a sweep

_SMOOTHING = 2.0  # records added to cells before logarithms: from one more or less little follows

_TINY = 1e-9  # A positive number that keeps logarithms of empty cells finite

Pair = tuple[int, int]
#: A function from places of attributes, and ends of blocks of values from 0 on, to a table.
Tables = Callable[[tuple[int, ...], list[Items]], Floats]


def blocks_of(frequencies: Floats) -> Items:
    """The starts of blocks of an attribute's values, and the number of values: ascending."""
    size = len(frequencies)
    if size <= _BLOCKS:
        return np.arange(size + 1)
    # Half by shares, half by values, so that no block is wide where few users are
    mixed = np.cumsum((frequencies + 1 / size) / 2)
    inner = np.searchsorted(mixed, np.arange(1, _BLOCKS) / _BLOCKS)
    return np.unique(np.concatenate([[0], inner, [size]]))


def records_of(attributes: Domain, tables: Tables, n: int, rng: np.random.Generator) -> Items:
    """Draw records, shape (n, attributes), whose pairs of attributes follow these tables."""
    places = range(len(attributes))
    singles = [norm_sub(tables((j,), [np.arange(1, attributes.shape[j] + 1)])) for j in places]
    edges = [blocks_of(frequencies) for frequencies in singles]
    shares = [
        np.add.reduceat(frequencies, edge[:-1])
        for frequencies, edge in zip(singles, edges, strict=True)
    ]
    pairs: dict[Pair, Floats] = {}
    for j, k in combinations(places, 2):
        table = tables((j, k), [edges[j][1:], edges[k][1:]])
        # The sum by a constant, then margins: single attributes are known from all their pairs, and
        # better
        table = table + (1 - table.sum()) / table.size
        pairs[j, k] = with_margins(nonnegative(table), shares[j], shares[k])
    records = np.empty((n, len(attributes)), dtype=np.int64)
    blocks = _of_pairs(shares, pairs, n, rng)
    for place, (single, edge) in enumerate(zip(singles, edges, strict=True)):
        for block, (first, end) in enumerate(pairwise(edge)):
            rows, inside = np.flatnonzero(blocks[place] == block), single[first:end]
            inside = inside if inside.sum() > 0 else np.ones(end - first)
            records[rows, place] = first + shared_out(inside, len(rows), rng)
    return records


def of_users(records: Items, users: int, rng: np.random.Generator) -> Items:
    """Give records the sampling error that users drawn from their distribution have."""
    # So many users have a share f of the distribution up to a variance of f (1 - f) / users. Of
    # fewer records a random part takes values of any of them, drawn one by one; more are copies of
    # users.
    n = len(records)
    if n > users:
        drawn = np.bincount(rng.integers(n, size=users), minlength=n).astype(np.float64)
        return records[shared_out(drawn, n, rng)]
    # A part r of the n that is left out and drawn again has a variance of r (2 - r) f (1 - f) / n
    part = 1 - np.sqrt(1 - n / users)
    again = rng.random(n) < part
    result = records.copy()
    result[again] = records[rng.integers(n, size=int(again.sum()))]
    return result


def _of_pairs(
    shares: list[Floats], pairs: dict[Pair, Floats], n: int, rng: np.random.Generator
) -> Items:
    """The blocks of records with these tables: shape (attributes, n), in random order."""
    links = _tree(shares, pairs)
    if len(pairs) < 2:
        return _of_tree(shares, pairs, links, n, rng)
    terms = {pair: np.zeros_like(table) for pair, table in pairs.items()}
    # The tree's own terms are those of its tables: records begin near their distribution, and only
    # the other pairs have to be learnt
    for near, far in links:
        j, k = sorted((near, far))
        alone = np.outer(shares[j], shares[k])
        terms[j, k] = np.log((pairs[j, k] + _TINY) / (alone + _TINY))
    # Few records find the terms at little cost, and the many begin as copies of them
    sizes = [n]
    while sizes[0] > _FEW:
        sizes.insert(0, -(-sizes[0] // _TIMES))
    blocks = _of_tree(shares, pairs, links, sizes[0], rng)
    sweeps = dict.fromkeys(sizes, _MORE_SWEEPS) | {sizes[0]: _SWEEPS}
    work = sum(size * times for size, times in sweeps.items()) + int(n * sum(_LAST))
    with ProgressMeter("synthetic records", work, "exchanges") as meter:
        for size, times in sweeps.items():
            blocks = _with_shares(blocks[:, np.arange(size) % blocks.shape[1]], shares, rng)
            for _ in range(times):
                for pair, off in _misfit(blocks, pairs).items():
                    terms[pair] += _RATE * off
                _exchange(blocks, terms, size, rng)
                meter.update(size)
        for part in _LAST:
            misfit = _misfit(blocks, pairs)
            # A part r of the records must make up the whole misfit, so its terms take it 1 / r
            # times
            strong = {pair: term + misfit[pair] / part for pair, term in terms.items()}
            _exchange(blocks, strong, int(n * part), rng)
            meter.update(int(n * part))
        _settle(blocks, pairs, rng)
    return blocks


def _settle(blocks: Items, pairs: dict[Pair, Floats], rng: np.random.Generator) -> None:
    """Exchange values where that brings tables nearer to those wanted."""
    n = blocks.shape[1]
    some = np.ascontiguousarray(blocks[:, :_FINE_RECORDS])  # records are in random order
    others = {
        pair: _counts(blocks[:, _FINE_RECORDS:], pair, table.shape) - n * table
        for pair, table in pairs.items()
    }
    cells = float(np.mean([table.size for table in pairs.values()]))
    for each in np.geomspace(*_FINE, _FINE_SWEEPS):
        # Squares of what cells are off change by 2 (off + 1) with a record more, and by
        # 2 (1 - off) with one less
        terms = {
            pair: -2.0 * (off + _counts(some, pair, off.shape)) for pair, off in others.items()
        }
        _exchange(some, terms, min(max(int(each * cells), 8), n), rng, 4.0 * (len(blocks) - 1))
    blocks[:, :_FINE_RECORDS] = some


def _counts(blocks: Items, pair: Pair, shape: tuple[int, ...]) -> Floats:
    """The records in each cell of a pair's table."""
    cells = blocks[pair[0]] * shape[1] + blocks[pair[1]]
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def _misfit(blocks: Items, pairs: dict[Pair, Floats]) -> dict[Pair, Floats]:
    """Return the misfit of each cell: the logarithm of wanted records over those that are there."""
    # Summed over cells, 2 x 2 of them, 4 x 4 and so on: of larger sums noise is less
    misfit = {}
    for (j, k), table in pairs.items():
        present = _counts(blocks, (j, k), table.shape)
        wanted = blocks.shape[1] * table
        misfit[j, k] = np.zeros(table.shape)
        for length in 2 ** np.arange(max(table.shape).bit_length()):
            row, column = (np.arange(0, size, length) for size in table.shape)
            logs = [
                np.log(np.add.reduceat(np.add.reduceat(counts, row, 0), column, 1) + _SMOOTHING)
                for counts in (wanted, present)
            ]
            row, column = (np.arange(size) // length for size in table.shape)
            misfit[j, k] += (logs[0] - logs[1])[np.ix_(row, column)]
    return misfit


def _tree(shares: list[Floats], pairs: dict[Pair, Floats]) -> list[Pair]:
    """The most dependent pairs that link all attributes: of each link one that is linked before."""
    dependence = np.zeros((len(shares), len(shares)))
    for (j, k), table in pairs.items():
        information = scipy.special.rel_entr(table, np.outer(shares[j], shares[k])).sum()
        dependence[j, k] = dependence[k, j] = information
    links: list[Pair] = []
    done, left = [0], list(range(1, len(shares)))
    while left:
        links.append(max(product(done, left), key=dependence.__getitem__))
        done.append(links[-1][1])
        left.remove(links[-1][1])
    return links


def _of_tree(
    shares: list[Floats],
    pairs: dict[Pair, Floats],
    links: list[Pair],
    n: int,
    rng: np.random.Generator,
) -> Items:
    """The blocks of records in which each attribute depends on one before."""
    blocks = np.zeros((len(shares), n), dtype=np.int64)
    blocks[0] = shared_out(shares[0], n, rng)
    for near, far in links:
        table = pairs[near, far] if near < far else pairs[far, near].T
        for block in range(len(table)):
            rows = np.flatnonzero(blocks[near] == block)
            some = table[block] if table[block].sum() > 0 else shares[far]
            blocks[far, rows] = shared_out(some, len(rows), rng)
    return blocks


def _with_shares(blocks: Items, shares: list[Floats], rng: np.random.Generator) -> Items:
    """Records in random order, of which every block has its share: as few as can be are moved."""
    blocks = blocks[:, rng.permutation(blocks.shape[1])]
    for values, share in zip(blocks, shares, strict=True):
        # Sorted shares onto sorted values: the assignment that changes the fewest records
        values[np.argsort(values, kind="stable")] = np.sort(shared_out(share, len(values), rng))
    return blocks


def _exchange(
    blocks: Items,
    terms: dict[Pair, Floats],
    some: int,
    rng: np.random.Generator,
    least: float = 0.0,
) -> None:
    """Exchange values of every attribute between the halves of some records, or not: one sweep."""
    # Metropolis' rule: as likely as the sum of terms is larger after it, as a logarithm, by more
    # than the least
    half = some // 2
    chosen = rng.permutation(blocks.shape[1])[: 2 * half]
    ones, others = blocks[:, chosen[:half]], blocks[:, chosen[half:]]
    for axis in range(len(blocks) if half else 0):
        others = np.roll(others, rng.integers(half), axis=1)  # other partners every time
        change = np.full(half, -least)
        for place in range(len(blocks)):
            if place != axis:
                term = terms[axis, place] if axis < place else terms[place, axis].T
                # Of an own value, another one instead, and a value of the other attribute
                # One table of all differences of two rows: `take` finds the change for all pairs of
                # records at once
                gains = (term - term[:, None]).ravel()
                start = (ones[axis] * len(term) + others[axis]) * term.shape[1]
                change += gains.take(start + ones[place]) - gains.take(start + others[place])
        # An exchange keeps every single attribute's counts, whatever is accepted: that is why
        # single attributes stay exact
        changed = np.log(rng.random(half)) < change
        ones[axis], others[axis] = (
            np.where(changed, others[axis], ones[axis]),
            np.where(changed, ones[axis], others[axis]),
        )
    blocks[:, chosen] = np.concatenate([ones, others], axis=1)


# ------------------------------------------------------------------------------------------------
# Public populations of several attributes, and guesses of one, to predict errors on.


_HIDDEN = 33  # the number of values of what attributes have in common


def _alike(margin: str, correlation: float) -> Callable[[int], Floats]:
    """A distribution of attributes whose normal scores have all the same correlation."""

    def given(size: int) -> Floats:
        common = scipy.special.ndtri((np.arange(_HIDDEN) + 0.5) / _HIDDEN)[:, None]
        sums = np.concatenate([[0.0], np.cumsum(reference_shares(margin, size))])
        scores = scipy.special.ndtri(np.clip(sums / sums[-1], 0.0, 1.0))
        # A one-factor Gaussian copula: given the common score an attribute's score is normal, with
        # the rest of the variance
        conditional = (scores - np.sqrt(correlation) * common) / np.sqrt(1 - correlation)
        return np.diff(scipy.special.ndtr(conditional), axis=1)

    return given


def _clusters(size: int) -> Floats:
    x = (np.arange(size) + 0.5) / size
    bells = np.exp(-(((x - np.array([[0.25], [0.7]])) / 0.05) ** 2) / 2) + 1e-9
    return np.asarray(bells / bells.sum(axis=1, keepdims=True))


#: Attributes that are independent of each other given a hidden value: the distribution of one
#: attribute under each hidden value, all as likely, as functions of the attribute's size, to arrays
#: of shape (hidden values, size).
#:
#: All records alike; and the others of `rangeq.core.workload_sums.REFERENCE_POPULATIONS`, whose
#: normal scores are correlated by 0.8, 0.6, 0.5 and 0.6; in clusters every attribute is near a
#: quarter or near seven tenths of its domain, with a deviation of a twentieth, and in all
#: attributes on the same side.
REFERENCE_RECORDS: dict[str, Callable[[int], Floats]] = {
    "even": _alike("even", 0.0),
    "normal": _alike("smooth", 0.8),
    "skewed": _alike("skewed", 0.6),
    "clusters": _clusters,
    "spiky": _alike("spiky", 0.5),
    "heaped": _alike("heaped", 0.6),
}


def drawn_records(name: str, attributes: Domain, n: int, rng: np.random.Generator) -> Items:
    """Draw records from a reference population: shape (n, attributes)."""
    given = {size: REFERENCE_RECORDS[name](size) for size in set(attributes.sizes)}
    hidden = rng.integers(0, len(next(iter(given.values()))), n)
    columns = []
    for size in attributes.sizes:
        # Row k of the cumulative distributions is shifted by k, so that one search draws for all
        # hidden values
        sums = np.minimum(given[size].cumsum(axis=1), 1.0)
        sums += np.arange(len(sums))[:, None]
        drawn = np.searchsorted(sums.ravel(), hidden + rng.random(n), side="right")
        columns.append(np.clip(drawn - hidden * size, 0, size - 1))
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class ExpectedRecords:
    """Records that stand for those to come: a guess of the population."""

    attributes: Domain
    held: bytes = field(repr=False)  # as rows of 64-bit integers

    @classmethod
    def of(cls, like: Any, attributes: Domain) -> ExpectedRecords:
        """Check records from a table of shape (records, attributes)."""
        if isinstance(like, ExpectedRecords):
            like = like.records
        none = isinstance(like, (list, tuple)) and not like  # whose shape says nothing
        records = np.zeros((0, len(attributes))) if none else attributes.records(like)
        if not len(records):
            raise ValueError("like must have a record at least, got none")
        return cls(attributes, records.tobytes())

    @property
    def records(self) -> Items:
        """The records, shape (records, attributes)."""
        return np.frombuffer(self.held, dtype=np.int64).reshape(-1, len(self.attributes))


# ------------------------------------------------------------------------------------------------
# Errors of answers by parametric bootstrap: the protocol run again on users like the estimate.
#
# Where no theory gives the error of a post-processed answer, or of one that cuts cells, users are
# drawn from the estimate, report by the same protocol, and are estimated in the same way; answers
# then err against a truth that is known (Efron and Tibshirani 1993). Within cells, about which
# reports have no information, users are drawn from densities as uneven as exp(+-`UNEVEN`): an
# assumption, which the guideline of the grids makes too, by a number for all queries.


REPLICATES = (
    20  #: The number of collections: errors have Student's t of as many degrees of freedom.
)

UNEVEN = 3.0  #: The deviation of slope and curvature of the logarithm of a density within a cell.

_RECORDS = 1 << 16  # the most different records of a collection: each may be several users'

# The most numbers in an aggregate for which replicates are kept, not made anew each time.
_KEPT = 1 << 20

_STEPS = 16  # the number of steps of the cumulative distribution within a cell

_NUMBERS = 1 << 24  # the most comparisons of records with queries at a time


class Likeness:
    """Users like an estimate: the first attribute, and each other given the first.

    Shapes: `first` (cells,); each of `others` (cells of the first, cells), or (1, cells) where
    it is independent of the first. Rows need not have sum 1.
    """

    def __init__(self, edges: Sequence[Edges], first: Floats, others: Sequence[Floats]) -> None:
        self._edges = [np.array(cut) for cut in edges]
        self._first = np.cumsum(norm_sub(np.asarray(first)))
        self._others = []
        for table in others:
            rows = np.maximum(table, 0.0)
            total = rows.sum(axis=1, keepdims=True)
            even = np.full(rows.shape, 1 / rows.shape[1])
            shares = np.divide(rows, total, out=even, where=total > 0)
            # Row k of the cumulative distributions is shifted by k: all rows are one increasing
            # sequence, and one search draws from any of them
            sums = np.arange(len(rows))[:, None] + np.minimum(shares.cumsum(axis=1), 1.0)
            self._others.append(sums)

    def records(self, n: int, rng: np.random.Generator) -> Items:
        """Draw records: values, shape (n, attributes)."""
        cell = np.minimum(np.searchsorted(self._first, rng.random(n)), len(self._first) - 1)
        cells = [cell]
        for sums in self._others:
            row, width = (cell if len(sums) > 1 else np.zeros_like(cell)), sums.shape[1]
            drawn = np.searchsorted(sums.ravel(), row + rng.random(n))
            cells.append(np.clip(drawn - row * width, 0, width - 1))
        return np.stack(
            [
                _within(edges, cell_of, rng)
                for edges, cell_of in zip(self._edges, cells, strict=True)
            ],
            axis=1,
        )


def _within(edges: Items, cell: Items, rng: np.random.Generator) -> Items:
    """Draw a value in each cell: each cell of an attribute has one density, drawn anew."""
    widths = np.diff(edges)
    if (widths == 1).all():
        return edges[cell]
    # Slope and curvature on -1 .. 1: the first two Legendre polynomials
    x = (np.arange(_STEPS) + 0.5) / _STEPS * 2 - 1
    slope, curve = UNEVEN * rng.normal(size=(2, len(widths), 1))
    density = np.exp(slope * x + curve * (1.5 * x**2 - 0.5))
    sums = density.cumsum(axis=1) / density.sum(axis=1, keepdims=True)
    flat = (np.arange(len(widths))[:, None] + sums).ravel()
    step = np.clip(np.searchsorted(flat, cell + rng.random(len(cell))) - cell * _STEPS, 0, None)
    part = (np.minimum(step, _STEPS - 1) + rng.random(len(cell))) / _STEPS
    return np.minimum(edges[cell] + (part * widths[cell]).astype(np.int64), edges[cell + 1] - 1)


class Replicate(NamedTuple):
    """Users, and the estimate from their reports."""

    records: Items  # shape (records, attributes)
    counts: Items  # the number of users of each record
    estimate: Any  # a `ConjunctionEstimate`


class CollectionBootstrap:
    """Collections by a protocol from users like the estimate of an aggregate of its reports."""

    def __init__(self, protocol: Any, aggregate: Aggregate, like: Likeness) -> None:
        self._protocol, self._n, self._like = protocol, aggregate.n, like
        self._few = aggregate.counts.size <= _KEPT

    def squared_errors(self, places: Sequence[int], boxes: Sequence[tuple[Items, Items]]) -> Floats:
        """The mean squared error of answers over replicates, each the sum of those about boxes.

        Shapes: `boxes` (queries, attributes); returns (queries,).
        """
        total = np.zeros(len(boxes[0][0]))
        for records, counts, estimate in self._replicates():
            values, off = records[:, list(places)], np.zeros(len(total))
            for left, right in boxes:
                off += estimate.answers(places, left, right) - _shares(values, counts, left, right)
            total += off**2
        return total / REPLICATES

    def squared_error_of_region(
        self, places: tuple[int, int], mask: npt.NDArray[np.bool_], boxes: Rectangles
    ) -> float:
        """The mean squared error of the answer about a region over replicates.

        Shapes: `mask` (values of one, values of the other).
        """
        total = 0.0
        for records, counts, estimate in self._replicates():
            inside = mask[records[:, places[0]], records[:, places[1]]]
            true = counts[inside].sum() / counts.sum()
            total += (estimate.answers(places, *boxes).sum() - true) ** 2
        return float(total) / REPLICATES

    def _replicates(self) -> Iterator[Replicate]:
        for number in range(REPLICATES):
            yield self._kept[number] if self._few else self._replicate(number)

    @cached_property
    def _kept(self) -> list[Replicate]:
        return [self._replicate(number) for number in range(REPLICATES)]

    def _replicate(self, number: int) -> Replicate:
        """A replicate: records, their users, and the estimate from these, the same every time."""
        # The seed is the replicate's number and the number of users: the same interval at every
        # call, and as many draws as records, not users
        rng = np.random.default_rng([number, self._n])
        different = min(self._n, _RECORDS)
        records = self._like.records(different, rng)
        counts = np.full(different, self._n // different)
        counts[: self._n % different] += 1
        aggregate = self._protocol.simulate(counts, rng, records)
        return Replicate(records, counts, self._protocol.estimate(aggregate))


def _shares(records: Items, counts: Items, left: Items, right: Items) -> Floats:
    """The part of the users that lies in each box: shape (queries,)."""
    total, shares = counts.sum(), np.empty(len(left))
    if records.shape[1] == 1:
        order = np.argsort(records[:, 0])
        sums = np.concatenate([[0], counts[order].cumsum()]) / total
        values = records[order, 0]
        last = np.searchsorted(values, right[:, 0], side="right")
        return np.asarray(sums[last] - sums[np.searchsorted(values, left[:, 0])])
    columns = np.ascontiguousarray(records.T)
    weights = counts.astype(np.float64)
    step = max(1, _NUMBERS // len(records))
    for start in range(0, len(left), step):
        block = slice(start, start + step)
        inside = np.ones((len(left[block]), len(records)), dtype=bool)
        for column, a, b in zip(columns, left[block].T, right[block].T, strict=True):
            inside &= (column >= a[:, None]) & (column <= b[:, None])
        shares[block] = inside @ weights / total
    return shares


def student_quantile(confidence: float) -> float:
    """The half-width of a central interval, in root mean squares of replicates' errors."""
    return float(scipy.special.stdtrit(REPLICATES, (1 + confidence) / 2))

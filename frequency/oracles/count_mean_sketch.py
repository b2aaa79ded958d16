"""Count-mean sketches: items hashed into few cells, for domains too large for a table."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from frequency.algebra import (
    FEW,
    MOST_FUNCTIONS,
    Coins,
    PublicBits,
    UnaryBits,
    binary_basis,
    features,
    uniform,
    walsh_hadamard,
)
from frequency.core import (
    Aggregate,
    Fingerprints,
    Likelihood,
    Oracle,
    Reports,
    Sample,
    Step,
    bits,
    checked_users,
    coin,
    of_signs,
    public,
    smallest_integer,
    tossed,
    variance_of,
)
from frequency.oracles.hadamard_response import SignChannel
from frequency.oracles.unary_encoding import (
    between,
    bits_at,
    column_sums,
    packed,
    symmetric_proof,
    unary_step,
    within,
)
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, Words, exact_sum, set_fields, shown, whole
from mechdesign.symbolic import PublicDrawProof


@dataclass(frozen=True)
class Sketch(Oracle):
    """Oracles with a public random function, the same for all users, under which items collide.

    Estimates are unbiased, and variances stated, over the seed as well as the reports: ``seed`` is
    public, and must be chosen without looking at the data. Confusion does not average out over
    users; it adds `confusion` times the sum of the squared frequencies of the other items to the
    variance, however many users there are. `Oracle.estimate` takes ``items``: ask for the
    candidates you care about, since the domain may be too large to list.
    """

    largest_domain: ClassVar[int] = 1 << 64

    @property
    @abstractmethod
    def confusion(self) -> Fraction:
        """The variance, over the seed, of what one item's frequency adds to another's estimate."""

    @abstractmethod
    def _user_variance(self, squares: Any, total: Any, own: Any) -> Any:
        """n times the part of the variance of a weighted sum that averages out.

        ``squares`` and ``total`` are the sums of w_x^2 and w_x, ``own`` that of f_x w_x^2.
        """

    @abstractmethod
    def second_moment(self, aggregate: Aggregate) -> float:
        """An estimate, in [1/domain, 1], of the sum of squared frequencies; 1 for no reports."""

    def variance(
        self, n: int, frequency: npt.ArrayLike = 0.0, second_moment: float | None = None
    ) -> Any:
        """As `Oracle.variance`, over the seed too.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        frequency : array_like, default 0.0
            The fraction of the users with the item, 0 to 1.
        second_moment : float, optional
            The sum of the squared frequencies of all items, this one included; None: the worst
            case, all others are one item.

        Returns
        -------
        float or numpy.ndarray
            As `Oracle.variance`.
        """
        f = np.asarray(frequency, dtype=np.float64)
        others = (1 - f) ** 2 if second_moment is None else second_moment - f**2
        return variance_of(n, self._user_variance(1.0, 1.0, f)) + float(self.confusion) * others

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # The mean over pairs of items, over the seed too. The confusion of two items with each
        # other cancels
        d = held or self.domain
        flat = 1 / d
        users = float(variance_of(n, self._user_variance(2.0, 0.0, 2 * flat)))
        # Of the two items with each other, nothing remains; with all others, of either.
        return users + float(self.confusion) * 2 * flat**2 * (d - 2)

    def variances_of(
        self, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        """Estimates of variances; infinite where the confusion is 1, as nothing tells them."""
        users, variances = self._estimated_variances(aggregate, frequencies)
        return np.maximum(variances, users)

    def _estimated_variances(
        self, aggregate: Aggregate, frequencies: Floats
    ) -> tuple[Floats, Floats]:
        """The part of variances that averages out, and all of them: unbiased, maybe below it."""
        # V = U + c (M - f^2), and the square of an estimate is f^2 + V on average
        users = np.asarray(self._user_variance(1.0, 1.0, frequencies) / aggregate.n)
        share = float(self.confusion)
        if share == 1.0:
            return users, np.full(users.shape, np.inf)
        others = self.second_moment(aggregate) - frequencies**2
        return users, (users + share * others) / (1 - share)

    def variance_slope(self, n: int) -> float:
        return float(self._user_variance(1.0, 1.0, 1.0) - self._user_variance(1.0, 1.0, 0.0)) / n

    def linear_variances_of(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats, items: Items | None
    ) -> Floats:
        users, variances = self._estimated_of_sums(weights, aggregate, frequencies)
        return np.maximum(variances, users)

    def _estimated_of_sums(
        self, weights: Floats, aggregate: Aggregate, frequencies: Floats
    ) -> tuple[Floats, Floats]:
        """As `_estimated_variances`, of sums."""
        share, n = float(self.confusion), aggregate.n
        users, pairs = self._of_sums(weights, frequencies, self.second_moment(aggregate))
        if share == 1.0:
            return users / n, np.where((weights != 0).any(axis=1), np.inf, 0.0)
        # The square of an estimated sum, too, is larger by its variance on average
        _, each = self._estimated_variances(aggregate, frequencies)
        pairs = pairs + 2 * (weights**2 @ each)
        return users / n, (users / n + share * pairs) / (1 + share)

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        # As `Oracle.linear_variance`, over the seed too
        moment = float(frequencies @ frequencies)
        users, pairs = self._of_sums(weights, frequencies, moment)
        return users / checked_users(n) + float(self.confusion) * np.maximum(pairs, 0.0)

    def _of_sums(
        self, weights: Floats, frequencies: Floats, second_moment: float
    ) -> tuple[Floats, Floats]:
        """n times the part of variances that averages out, and what confusion multiplies."""
        squares = (weights**2).sum(axis=1)
        users = self._user_variance(squares, weights.sum(axis=1), weights**2 @ frequencies)
        # The sum over pairs x < z of (w_x f_z + w_z f_x)^2: the confusions of different pairs are
        # uncorrelated.
        pairs = (
            squares * second_moment + (weights @ frequencies) ** 2 - 2 * weights**2 @ frequencies**2
        )
        return np.asarray(users), pairs

    def _all(self, items: Items | None) -> Items:
        return np.arange(self.domain) if items is None else items


class SignSketch(SignChannel):
    """What sketches by public random signs, of which each user draws a row, have in common."""

    @property
    @abstractmethod
    def confusion(self) -> Fraction:
        """As of `Sketch`."""

    def _user_variance(self, squares: Any, total: Any, own: Any) -> Any:
        return squares / self.contrast**2 - own - float(self.confusion) * (squares - own)

    def second_moment(self, aggregate: Aggregate) -> float:
        """As of `Sketch`."""
        # The square of a row's sum is, on average, its number of reports and a share of every pair
        # of users with the same item.
        n, rows = aggregate.n, math.prod(map(len, self._indices.values()))
        if not n:
            return 1.0
        square = float((aggregate.counts.astype(np.float64) ** 2).sum())
        moment = (rows * (square - n) / self.contrast**2 + n) / n**2
        return min(1.0, max(moment, 1 / self.domain))

    def audit(self) -> Audit:
        # The row does not depend on the item; given it, one sign has weight ``truth`` and the other
        # ``lie``.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        output = "a row whose signs of 0 and 1 differ, the sign of 0"
        return Audit(self._choice.ratio, self.max_ratio, output, (0, 1))


def checked_size(name: str, value: object, least: int, most: int = 1 << 32) -> int:
    """``value`` as Python's integer."""
    return whole(value, name, least, most)


class CellHashes(NamedTuple):
    """Public functions that hash items into a power of two of cells."""

    public: PublicBits  # of all functions, one after the other: a row for each bit of a cell
    hashes: int  # functions
    places: int  # bits of a cell

    def cells_of(self, hash_: Items, items: Items) -> Items:
        """The cell of each item under each hash function (broadcast against each other)."""
        return self._hashed(hash_, features(items))

    def _hashed(self, hash_: Items, of: tuple[Words, Words]) -> Items:
        """The same for the features of the items."""
        (x, cube), shape = of, np.broadcast_shapes(hash_.shape, of[0].shape)
        if math.prod(shape) <= FEW:
            places = np.arange(self.places)
            rows = hash_[..., None] * self.places + places
            return self.public.bits(rows, (x[..., None], cube[..., None])) @ (1 << places)
        cell = np.zeros(shape, dtype=np.int64)
        for place in range(self.places):
            here = self.public.bits(hash_ * self.places + place, (x, cube))
            cell |= here.astype(np.int64) << place
        return cell

    @property
    def described(self) -> list[Any]:
        """As descriptions of client halves have them: see ``docs/wire.md``."""
        return [self.public.text, self.hashes, self.places]

    def look_up(self, table: Floats, items: Items) -> Floats:
        """The sum over hash functions of table[hash, cell], for each item."""
        chosen = features(items)
        total = np.zeros(len(items))
        for hash_ in range(self.hashes):
            total += table[hash_, self._hashed(np.array(hash_), chosen)]
        return total


def checked_hashes(hashes: int, width: int, seed: int) -> dict[str, int]:
    """The sizes and the seed of `CellHashes` as integers; ValueError if one is out of range."""
    width = checked_size("width", width, 2)
    if width & (width - 1):
        raise ValueError(f"width must be a power of two, got {shown(width)}")
    seed, most = checked_size("seed", seed, 0), MOST_FUNCTIONS // (width.bit_length() - 1)
    return {"hashes": checked_size("hashes", hashes, 1, most), "width": width, "seed": seed}


@dataclass(frozen=True)
class _HashedCells:
    """Public hash functions from items to a number of cells: a report is about one of these."""

    privacy_source: ClassVar[str] = "Apple 2017"

    hashes: int = 256
    width: int = 1024
    seed: int = 0

    @property
    def confusion(self) -> Fraction:
        return Fraction(1, self.hashes * (self.width - 1))

    @cached_property
    def _public(self) -> PublicBits:
        return PublicBits("hash", self.seed, self.hashes * (self.width.bit_length() - 1))

    @property
    def _hashing(self) -> CellHashes:
        return CellHashes(self._public, self.hashes, self.width.bit_length() - 1)


@dataclass(frozen=True)
class HadamardCountMeanSketch(_HashedCells, SignSketch, Sketch):
    """HCMS, InpHTCMS: one Walsh-Hadamard coefficient of the hashed item, as one bit.

    Source: Apple, Learning with Privacy at Scale, 2017; thesis 4.4.6.

    The user picks a hash function and one of the width - 1 coefficients that are not constant. A
    report is ``hash``, ``index`` and ``sign`` (+1 or -1).

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    hashes : int, default 256
        The number of hash functions, at least 1; times log2(width), at most 2^24.
    width : int, default 1024
        The number of cells, a power of two, 2 to 2^32.
    seed : int, default 0
        Of the public functions, 0 to 2^32, chosen without looking at the data.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **checked_hashes(self.hashes, self.width, self.seed))

    def _details(self) -> dict[str, Any]:
        sizes = {"hashes": self.hashes, "width": self.width, "seed": self.seed}
        return {**sizes, **super()._details()}

    @property
    def _indices(self) -> dict[str, range]:
        return {"hash": range(self.hashes), "index": range(1, self.width)}

    @property
    def _expression(self) -> list[Any]:
        return ["sketch", *self._hashing.described]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        hash_, coefficient = index
        return np.bitwise_count(coefficient & self._hashing.cells_of(hash_, items)) & 1

    def share_alike(self, items: Items) -> Fraction:
        # Coefficients orthogonal to the differences of the cells, of each hash function
        cells = self._hashing.cells_of(np.arange(self.hashes), items[:, None])
        ranks = [len(binary_basis(column)) for column in (cells[1:] ^ cells[0]).T.tolist()]
        alike = sum((self.width >> rank) - 1 for rank in ranks)
        return Fraction(alike, self.hashes * (self.width - 1))

    @property
    def least_alike(self) -> Fraction:
        return Fraction(self.width // 2 - 1, self.width - 1)  # cells that are all different

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        table = walsh_hadamard(aggregate.counts.astype(np.float64))
        return self._hashing.look_up(table, self._all(items)) / (aggregate.n * self.contrast)

    def likelihood_of(self, aggregate: Aggregate) -> Likelihood:
        drawn, items = aggregate.n / (self.hashes * (self.width - 1)), np.arange(self.domain)
        cells = [self._hashing.cells_of(np.array(hash_), items) for hash_ in range(self.hashes)]

        def means(frequencies: Floats) -> Floats:
            rows = [np.bincount(cell, frequencies, minlength=self.width) for cell in cells]
            return np.concatenate([walsh_hadamard(row)[1:] for row in rows])

        def transposed(numbers: Floats) -> Floats:
            rows = np.pad(numbers.reshape(self.hashes, -1), ((0, 0), (1, 0)))
            table = walsh_hadamard(rows)
            return np.sum([row[cell] for row, cell in zip(table, cells, strict=True)], axis=0)

        sums = aggregate.counts[:, 1:].ravel().astype(np.float64)
        return of_signs(self.domain, drawn, sums, self.contrast, means, transposed)


@dataclass(frozen=True)
class CountMeanSketch(_HashedCells, Sketch):
    """CMS: the symmetric unary encoding of the hashed item.

    Source: Apple, Learning with Privacy at Scale, 2017, Algorithms A_client-CMS and A_CMS.

    The user picks a hash function. A report is ``hash`` and ``bits``, one for each cell, packed,
    least significant bit first. Noise like SUE's; `HadamardCountMeanSketch` reports far less.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    hashes, width, seed : int
        As of `HadamardCountMeanSketch`.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, **checked_hashes(self.hashes, self.width, self.seed))

    @property
    def batch_size(self) -> int:
        return max(1, (1 << 22) // self.width)

    @cached_property
    def _bits(self) -> UnaryBits:
        """The draw of the bits of the cells."""
        return UnaryBits.symmetric(self.max_ratio)

    def _details(self) -> dict[str, Any]:
        sizes = {"hashes": self.hashes, "width": self.width, "seed": self.seed}
        return {**sizes, "p": str(self._bits.own), "q": str(self._bits.other)}

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype(
            [("hash", smallest_integer(self.hashes - 1)), ("bits", "u1", (-(-self.width // 8),))]
        )

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self.hashes, self.width, self._bits.p, self._bits.q)

    @property
    def report_bits(self) -> int:
        return (self.hashes - 1).bit_length() + self.width

    @property
    def client_half(self) -> Step:
        cell = ["cell", *self._hashing.described]
        return tossed([coin(range(self.hashes))], cell, unary_step(self._bits, self.width))

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        hash_ = uniform(len(items), self.hashes, source)
        words = self._bits.draw(self._hashing.cells_of(hash_, items), self.width, source)
        reports["hash"], reports["bits"] = hash_, packed(words, self.width)

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return (reports["hash"] < self.hashes) & within(reports["bits"], self.width)

    # The counts of a hash function: ones in each cell, and then its number of reports.

    @property
    def counts_shape(self) -> tuple[int, ...]:
        return (self.hashes, self.width + 1)

    def counts_of(self, reports: Reports) -> npt.NDArray[np.int64]:
        counts = np.zeros(self.counts_shape, dtype=np.int64)
        order = np.argsort(reports["hash"], kind="stable")
        counts[:, -1] = np.bincount(reports["hash"], minlength=self.hashes)
        ends = np.cumsum(counts[:, -1])
        for hash_ in np.flatnonzero(counts[:, -1]):
            mine = order[ends[hash_] - counts[hash_, -1] : ends[hash_]]
            counts[hash_, :-1] = column_sums(reports["bits"][mine], self.width)
        return counts

    def consistent(self, aggregate: Aggregate) -> bool:
        cells, users = aggregate.counts[:, :-1], aggregate.counts[:, -1]
        return between(cells, users[:, None]) and exact_sum(users) == aggregate.n

    def samples(self, n: int, counts: npt.NDArray[np.int64]) -> list[Sample]:
        samples = [bits(int(row[-1]), row[:-1], float(self._bits.q)) for row in counts]
        return [public(n, counts[:, -1], np.full(self.hashes, 1 / self.hashes)), *samples]

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        true = np.zeros((self.hashes, self.width), dtype=np.int64)
        for start in range(0, len(items), 4096):
            some = items[start : start + 4096]
            users = rng.multinomial(
                counts[start : start + 4096], np.full(self.hashes, 1 / self.hashes)
            )
            for hash_ in range(self.hashes):
                np.add.at(
                    true[hash_], self._hashing.cells_of(np.array(hash_), some), users[:, hash_]
                )
        users = true.sum(axis=1, keepdims=True)
        p, q = float(self._bits.p), float(self._bits.q)
        return np.hstack([rng.binomial(true, p) + rng.binomial(users - true, q), users])

    @cached_property
    def _bit_variance(self) -> float:
        """The variance of one report's bit, scaled to be unbiased: the same for all cells."""
        return float(self._bits.p * self._bits.q / (self._bits.p - self._bits.q) ** 2)

    def _cells(self, aggregate: Aggregate) -> Floats:
        """Unbiased estimates of how many users each hash function puts into each cell."""
        return (aggregate.counts[:, :-1] - aggregate.counts[:, -1:] * float(self._bits.q)) / float(
            self._bits.p - self._bits.q
        )

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        share = self._hashing.look_up(self._cells(aggregate), self._all(items)) / aggregate.n
        return (share - 1 / self.width) * self.width / (self.width - 1)

    def _user_variance(self, squares: Any, total: Any, own: Any) -> Any:
        w, g = self.width, self.hashes
        bits = (w / (w - 1)) ** 2 * self._bit_variance * (squares * (1 - 1 / w) + total**2 / w)
        return bits + (squares - own) * (1 - 1 / g) / (w - 1)  # and the choice of the hash function

    def second_moment(self, aggregate: Aggregate) -> float:
        # The sum of squared cells is its noise, one for each user, and one for each two users who
        # agree in hash function and cell.
        n, w, g = aggregate.n, self.width, self.hashes
        if not n:
            return 1.0
        agree = float((self._cells(aggregate) ** 2).sum()) - n * w * self._bit_variance - n
        moment = (g * agree + n - n**2 / w) / (n**2 * (1 - 1 / w))
        return min(1.0, max(moment, 1 / self.domain))

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        p, q = self._bits.p, self._bits.q
        return (((1 - p) / (1 - q), p / q),)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["hash"] = coins.uniform(0, self.hashes)
        step, cells = max(1, self.batch_size >> 6), np.arange(1, self.width + 1)[None]
        for start in range(0, len(coins), step):
            ones = coins[start : start + step].words(cells) < np.uint64(self._bits.other)
            reports["bits"][start : start + step] = np.packbits(ones, axis=1, bitorder="little")
        return reports

    def likelihood(self, reports: Reports, items: Items) -> Items:
        cell = self._hashing.cells_of(reports["hash"].astype(np.int64), items)
        return bits_at(reports["bits"], cell)

    def _likely_together(self, items: Items) -> Fraction:
        cells = np.sort(self._hashing.cells_of(np.arange(self.hashes), items[:, None]), axis=0)
        different = 1 + (np.diff(cells, axis=0) != 0).sum(axis=0)
        numbers, times = np.unique(different, return_counts=True)
        chances = (
            self._bits.q**number * count
            for number, count in zip(numbers.tolist(), times.tolist(), strict=True)
        )
        return sum(chances, Fraction(0)) / self.hashes

    @property
    def _least_together(self) -> Fraction:
        return self._bits.q**2  # of items that never collide

    def audit(self) -> Audit:
        # The hash function does not depend on the item; given it, two items differ in at most two
        # bits, told independently.
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(
            self._bits.ratio,
            self.max_ratio,
            "a hash that parts 0 and 1, the bit of 0 set, that of 1 clear",
            (0, 1),
        )

    def proof(self) -> PublicDrawProof:
        return PublicDrawProof(
            symmetric_proof(self.width, "the bits of the cells"),
            ((self.hashes, Fraction(1, self.hashes)),),
            name=type(self).__name__,
            source=self.privacy_source,
        )


# ------------------------------------------------------------------------------------------------
# The Johnson-Lindenstrauss oracle: one bit about a random projection of the holder's item.


_LARGEST_PRODUCT = 1 << 25  # how many products of signs are added up to compare all pairs of items


@dataclass(frozen=True)
class JLOracle(SignSketch, Sketch):
    """PROT-FO: one sign of a random projection of the item, by randomised response.

    Source: Bassily and Smith, STOC 2015, section 2.2, Algorithms 1 to 3.

    The public matrix has ``rows`` rows and a column of signs for each item, divided by sqrt(rows);
    its entries are 5-wise independent, computed from ``seed`` when needed and never stored. The
    user picks a row and tells, by randomised response, the sign of the item there: a report is
    ``row`` and ``sign`` (+1 or -1), one bit where the row is fixed by other means. Section 2.2
    takes log(d + 1) log(2/b) e^2 n / log(2d/b) rows for n users, failure probability b and domain
    d, so that the confusion of items is no larger than the noise; the server's cost for an item is
    the number of rows.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.
    rows : int, default 16384
        The rows of the public matrix, 1 to 2^24.
    seed : int, default 0
        Of the matrix, 0 to 2^32, chosen without looking at the data.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    privacy_source: ClassVar[str] = "succinct histograms, Theorem 2.4"

    rows: int = 1 << 14
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = checked_size("rows", self.rows, 1, MOST_FUNCTIONS)
        set_fields(self, rows=rows, seed=checked_size("seed", self.seed, 0))

    @property
    def confusion(self) -> Fraction:
        return Fraction(1, self.rows)

    @cached_property
    def _matrix(self) -> PublicBits:
        return PublicBits("projection", self.seed, self.rows)

    def _details(self) -> dict[str, Any]:
        return {"rows": self.rows, "seed": self.seed, **super()._details()}

    @property
    def _indices(self) -> dict[str, range]:
        return {"row": range(self.rows)}

    @property
    def _expression(self) -> list[Any]:
        return ["projection", self._matrix.text, self.rows]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        (row,) = index
        return self._matrix.bits(row, features(items))

    @property
    def least_alike(self) -> Fraction:
        # Of all pairs, if they are few
        if self.domain**2 * self.rows > _LARGEST_PRODUCT:
            return Fraction(0)
        minus = self._minus(np.arange(self.domain)[:, None], np.arange(self.rows))
        signs = 1 - 2 * minus.astype(np.float64)  # of which sums are whole numbers
        return Fraction(self.rows + int((signs @ signs.T).min()), 2 * self.rows)

    def frequencies_of(self, aggregate: Aggregate, items: Items | None) -> Floats:
        chosen, total = self._all(items), aggregate.counts.sum().astype(np.float64)
        result = np.empty(len(chosen))
        rows = np.flatnonzero(aggregate.counts)
        sums = aggregate.counts[rows].astype(np.float64)
        step = max(1, (1 << 22) // max(len(rows), 1))
        for start in range(0, len(chosen), step):
            x, cube = features(chosen[start : start + step])
            minus = self._matrix.bits(rows[:, None], (x[None], cube[None]))
            result[start : start + step] = total - 2 * (sums @ minus)
        return result / (aggregate.n * self.contrast)

"""Patterns: the sets of inputs that rows of an extremal mechanism favour, and a search for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Rational, shown, whole
from mechdesign.local.extremal_mechanism import local_privacy, whole_domain
from mechdesign.local.optimality import Criterion
from mechdesign.losses import Loss
from mechdesign.optimisation.optimal import Design, design
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike

#: The type of patterns, shape (outputs, domain): True where an output favours an input.
Patterns: TypeAlias = npt.NDArray[np.bool_]

# A balanced set of patterns favours every input equally often: its rows, with equal weights, are a
# mechanism.


def flat(size: int, ratio: float, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return a subset of a cycle, about 1 / (ratio + 1) of it, that is nearly a difference set."""
    # That is: its differences are about equally frequent.
    count = max(1, min(size - 1, round(size / (1 + ratio))))

    def unevenness(chosen: npt.NDArray[np.bool_]) -> int:
        # The number of pairs at each distance is the autocorrelation (Wiener-Khinchin), rounded to
        # the integers that it consists of. Their sum is fixed: the sum of squares is least where
        # they are all equal, as in a difference set.
        differences = np.rint(np.fft.irfft(np.abs(np.fft.rfft(chosen)) ** 2, size)).astype(np.int64)
        return int((differences[1:] ** 2).sum())

    best = np.arange(size) < count
    for _ in range(3):
        chosen = np.zeros(size, dtype=np.bool_)
        chosen[rng.permutation(size)[:count]] = True
        value, stale = unevenness(chosen), 0
        # Exchanges keep the size. A local search from three starts: difference sets exist for few
        # sizes.
        while stale < 3 * size:
            other = chosen.copy()
            other[rng.choice(np.flatnonzero(chosen))] = False
            other[rng.choice(np.flatnonzero(~chosen))] = True
            new = unevenness(other)
            chosen, value, stale = (other, new, 0) if new < value else (chosen, value, stale + 1)
        if value < unevenness(best):
            best = chosen
    return best


def turned(pattern: npt.NDArray[np.bool_]) -> Patterns:
    """Return all rotations of a pattern around the domain, a balanced set."""
    place = np.arange(len(pattern))
    result: Patterns = pattern[(place[None, :] + place[:, None]) % len(pattern)]
    return result


def balanced(domain: int, ratio: float, rng: np.random.Generator) -> Iterator[Patterns]:
    """Yield balanced sets from which mechanisms are mixed and the search starts."""
    # There are three families: blocks of adjacent items, of all sizes and in all rotations, as in
    # `rangeq.CircularHistogram`; partitions of the items into cells of all widths and offsets,
    # where the rotations of one pattern of cells are taken; and, for powers of two, the parities of
    # subsets of the bits.
    item, doublings = np.arange(domain), (domain - 1).bit_length()
    offsets = 16 if domain <= 128 else 8  # each costs an information matrix of domain^2 numbers
    for number in sorted({min(2**step, domain) for step in range(1, doublings + 1)}):
        for _ in range(2):
            yield turned(flat(number, ratio, rng)[item * number // domain])
    cyclic: dict[int, npt.NDArray[np.bool_]] = {}
    for width in sorted({round(2 ** (step / 2)) for step in range(2 * doublings + 1)}):
        for offset in sorted(
            {int(part) for part in np.linspace(0, width, min(width, offsets), endpoint=False)}
        ):
            cell = (item + offset) // width
            number = int(cell[-1]) + 1
            if number > 1:
                cyclic[number] = cyclic[number] if number in cyclic else flat(number, ratio, rng)
                yield turned(cyclic[number])[:, cell]
    if domain & (domain - 1) == 0 and domain <= 128:
        for mask in range(1, domain):
            even = np.bitwise_count(item & mask) % 2 == 0
            yield np.stack([even, ~even])


def climb(
    criterion: Criterion, slope: Floats, multipliers: Floats, pattern: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return a local maximum of `Criterion.priced` under changes of an input, from a pattern."""
    # No exchange of two inputs increases the value either.
    p, extra, chosen = criterion.prior, criterion.ratio - 1, pattern.copy()
    row = 1 + extra * chosen
    diagonal, by_slope = np.diag(slope), slope @ row
    # Invariant: q'S q, S q, l'q and p'q of the current row q = 1 + (r - 1) b. From them the value
    # of each neighbour takes constant time, and a whole sweep of exchanges k^2 instead of k^4.
    square, linear, mass = float(row @ by_slope), float(multipliers @ row), float(p @ row)

    def value(squares: Floats, linears: Floats, masses: Floats) -> Floats:
        return squares / masses**2 - linears / masses

    best = square / mass**2 - linear / mass
    while True:
        step = np.where(chosen, -extra, extra)
        single = value(
            square + 2 * step * by_slope + step**2 * diagonal,
            linear + step * multipliers,
            mass + step * p,
        )
        # The empty pattern is the constant row, as the full one is, and informs of nothing.
        single[chosen.sum() + np.where(chosen, -1, 1) == 0] = -np.inf
        out, into = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        gained = by_slope[into][None, :] - by_slope[out][:, None]
        crossed = diagonal[out][:, None] + diagonal[into][None, :] - 2 * slope[np.ix_(out, into)]
        double = value(
            square + 2 * extra * gained + extra**2 * crossed,
            linear + extra * (multipliers[into][None, :] - multipliers[out][:, None]),
            mass + extra * (p[into][None, :] - p[out][:, None]),
        )
        flip, swap = int(np.argmax(single)), int(np.argmax(double)) if double.size else -1
        best_double = double.flat[swap] if swap >= 0 else -np.inf
        # More than rounding, so that the search ends.
        if max(single[flip], best_double) <= best + 1e-12 * abs(best):
            return chosen
        changed = (
            [flip]
            if single[flip] >= best_double
            else [out[swap // len(into)], into[swap % len(into)]]
        )
        best = max(float(single[flip]), float(best_double))
        for place in changed:
            move = -extra if chosen[place] else extra
            square += 2 * move * by_slope[place] + move**2 * diagonal[place]
            by_slope = by_slope + move * slope[:, place]
            linear, mass = linear + move * multipliers[place], mass + move * p[place]
            chosen[place] = not chosen[place]


def turn_climb(
    criterion: Criterion, slope: Floats, pattern: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return a local maximum for all rotations of a pattern together, keeping its size."""
    # All rotations are taken to have the same mass.
    k, chosen = len(pattern), pattern.copy()
    place = np.arange(k)
    kernel = np.zeros(k)
    # The sum over all rotations of b'S b depends on S through its sums along cyclic diagonals: a
    # circulant matrix, symmetrised.
    np.add.at(kernel, (place[:, None] - place[None, :]) % k, slope)
    turns = kernel[(place[:, None] - place[None, :]) % k]
    turns = (turns + turns.T) / 2
    by_turns = turns @ chosen
    for _ in range(4 * k):
        out, into = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        # Half of the change of b'T b when `out` leaves and `into` enters.
        gain = (
            by_turns[into][None, :]
            - by_turns[out][:, None]
            + turns[0, 0]
            - turns[np.ix_(out, into)]
        )
        most = int(np.argmax(gain))
        if gain.flat[most] <= 1e-12 * abs(turns[0, 0]):
            break
        a, b = out[most // len(into)], into[most % len(into)]
        chosen[a], chosen[b] = False, True
        by_turns += turns[:, b] - turns[:, a]
    return chosen


def best_of(new: Patterns, worth: Floats, enough: float, present: Patterns, count: int) -> Patterns:
    """Return the ``count`` patterns of largest value above a threshold that are not present."""
    known = {bytes(pattern) for pattern in present}
    better = [place for place in np.flatnonzero(worth > enough) if bytes(new[place]) not in known]
    best: Patterns = np.unique(new[sorted(better, key=worth.__getitem__)[-count:]], axis=0)
    return best


# ------------------------------------------------------------------------------------------------
# square(...): the locally private mechanism of least loss whose outputs are the items.


def square(
    domain: int,
    privacy: Privacy | float | Rational,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    progress: bool = False,
) -> Design:
    """Return the best locally private mechanism whose outputs are the items, with a proof.

    For `L0` and the uniform prior this is generalised randomized response, `named.krr`; `L1` and
    `L2` alone leave outputs unused, which properties forbid. Source: thesis 6.8, eqs. 6.17-6.20.

    Parameters
    ----------
    domain : int
        The number of items 0 .. domain-1, at least 1; the table is domain x domain.
    privacy : Privacy, float, Fraction, int, str or Decimal
        ``Privacy(alpha=alpha, neighbours="all")``, or epsilon as a number.
    loss : Loss, optional
        `L0()` unless given.
    properties : iterable of Property, type or str, optional
        As for `design`, which solves it and whose errors it raises.
    progress : bool, default False
        Show what is going on, on standard error.

    Returns
    -------
    Design

    Raises
    ------
    ValueError
        A domain that is not a whole number of at least 1, or other neighbours than all.

    Examples
    --------
    >>> d = square(4, Privacy(alpha="1/2", neighbours="all"))
    >>> d.certificate.objective, d.certificate.gap
    (Fraction(3, 5), Fraction(0, 1))
    """
    return design(
        whole_domain(domain) - 1, local_privacy(privacy), loss, properties, progress=progress
    )


# ------------------------------------------------------------------------------------------------
# Workloads: sets of linear queries over the frequencies of items, and their Gram matrices.


#: The names of workloads: all single items; 0 .. b for all b; a .. b for all a <= b.
NAMES = ("histogram", "prefixes", "ranges")


def gram(workload: str | npt.ArrayLike, domain: int) -> tuple[Floats, int]:
    """Return the Gram matrix W'W of a workload (queries, domain), and its number of queries."""
    if isinstance(workload, str):
        item = np.arange(domain, dtype=np.float64)
        least, most = np.minimum.outer(item, item), np.maximum.outer(item, item)
        # In closed form: entry (x, y) is the number of queries that contain both items, b >= max(x,
        # y) for prefixes, and a <= min(x, y) besides for ranges, of which there are domain^2 / 2.
        if workload == "histogram":
            return np.eye(domain), domain
        if workload == "prefixes":
            return domain - most, domain
        if workload == "ranges":
            return (least + 1) * (domain - most), domain * (domain + 1) // 2
        raise ValueError(
            f"workload must be a matrix or one of {', '.join(NAMES)}, got {shown(workload)}"
        )
    matrix = np.asarray(workload, dtype=np.float64)
    if (
        matrix.ndim != 2
        or matrix.shape[1] != domain
        or not len(matrix)
        or not np.isfinite(matrix).all()
    ):
        raise ValueError(
            f"a workload must be a matrix of finite numbers with {domain} columns, got shape"
            f" {matrix.shape}"
        )
    result: Floats = matrix.T @ matrix
    if not np.isfinite(result).all():
        raise ValueError(
            "a workload's numbers are so large that the sums of their squares overflow"
        )
    return result, len(matrix)


def marginals(cardinalities: Sequence[int], way: int) -> Floats:
    """Return all cells of all marginals of ``way`` attributes, (cells, items), last one fastest."""
    sizes = _sizes(cardinalities)
    way = whole(way, "way", 0, len(sizes), what="a number of attributes")
    blocks = []
    for chosen in combinations(range(len(sizes)), way):
        block: Floats = np.ones((1, 1))
        for attribute, size in enumerate(sizes):
            block = np.asarray(
                np.kron(block, np.eye(size) if attribute in chosen else np.ones((1, size))),
                dtype=np.float64,
            )
        blocks.append(block)
    return np.concatenate(blocks)


def parities(attributes: int, way: int) -> Floats:
    """Return all parities of 1 .. ``way`` bits, Walsh-Hadamard rows of shape (queries, items)."""
    # A query is the sum over items of (-1)^(the sum of the chosen bits).
    attributes = whole(attributes, "attributes", 1, 16)
    way = whole(way, "way", 1, attributes, what="a number of attributes")
    sets = [
        chosen for size in range(1, way + 1) for chosen in combinations(range(attributes), size)
    ]
    masks = np.array([sum(1 << bit for bit in chosen) for chosen in sets])
    bits = np.bitwise_count(masks[:, None] & np.arange(1 << attributes)) & 1
    return np.asarray(1.0 - 2.0 * bits, dtype=np.float64)


def product(*workloads: npt.ArrayLike) -> Floats:
    """Return queries on several attributes, the last fastest: products of one query of each."""
    result: Floats = np.ones((1, 1))
    for workload in workloads:
        matrix = np.asarray(workload, dtype=np.float64)
        if matrix.ndim != 2:
            raise ValueError(
                f"every workload must be a matrix of queries, got shape {matrix.shape}"
            )
        result = np.asarray(np.kron(result, matrix), dtype=np.float64)
    return result


def _sizes(cardinalities: Sequence[int]) -> tuple[int, ...]:
    sizes = tuple(
        whole(size, "each cardinality", 1, what="a number of values") for size in cardinalities
    )
    if not sizes:
        raise ValueError("cardinalities must be numbers of values, at least one, got none")
    return sizes

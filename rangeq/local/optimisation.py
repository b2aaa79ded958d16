"""Hierarchies, oracles and levels of least predicted error for a workload, and a lower bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from textwrap import shorten

import numpy as np

from frequency.algebra import WORD
from frequency.core import Oracle
from frequency.oracles import NAMED, AffineSelection, choices_of, name_of
from mechdesign import Mechanism, Privacy
from mechdesign.base import Floats, Integers, ProgressMeter, Rational, ordered
from rangeq.core import RangeProtocol, Tree, checked_workload, even_rmse
from rangeq.local.circle import ToeplitzInverse
from rangeq.local.circular import (
    CircularHistogram,
    default_blocks,
    per_user_of_blocks,
    round_up,
    seen,
)
from rangeq.local.composite import Composite, ShiftedHistogram, bins_of, checked_local, powers_below
from rangeq.local.haar import HaarHRR
from rangeq.local.hierarchy import Flat, HierarchicalHistogram, LevelHistograms, per_user

# The most bits of a report that are still little to send: where the best oracle for a level takes
# more, the best of the others is taken.
_LONGEST = 256

# By how much the variance of the best of the others must be larger for `AffineSelection` to be
# taken: its reports are longer, and of each one the server looks at all accepted values.
_WORTH = 1.05

# The most bits for circular hierarchies, where the server looks at the bits of every user.
_FEW = 64

#: The largest domain whose shifted histograms are weighed level by level; in larger ones, levels
#: are added above so many of the finest.
_RESOLVED, _FINE = 1024, 3

#: The number of prefixes that stand for all, the most steps, and the tolerance that ends them.
_PREFIXES, _SHIFTED_STEPS, _ALIKE = 128, 200, 0.003

_SAMPLE = 4096  # the number of lowest frequencies of a circular domain that are weighed one by one

_STEPS = 10_000_000  # the most contrasts that the search for probabilities looks at in all

_LINE = 150  # the most characters of `describe` that are printed: large domains have many levels

# The branchings tried: levels left out make those of powers, which need no trees of their own.
_BRANCHINGS = (2, 3, 5, 7)


@dataclass(frozen=True)
class Optimised:
    """The result of `optimise`; ``print`` shows the table.

    Attributes
    ----------
    protocol : RangeProtocol
        The one with the least predicted error.
    rmse : float
        Its root of the average variance over the workload.
    alternatives : tuple of (RangeProtocol, float)
        (protocol, rmse), the best first: optimised circular hierarchies and trees, and the
        published protocols.
    bound : float
        The error that no protocol can go below: `least_rmse`.
    """

    protocol: RangeProtocol
    rmse: float
    alternatives: tuple[tuple[RangeProtocol, float], ...]
    bound: float

    def __str__(self) -> str:
        lines = [f"{'RMSE':>10}  {'ratio':>6}  {'bits':>6}  protocol"]
        for protocol, rmse in self.alternatives:
            ratio = rmse / self.rmse if self.rmse else 1.0
            lines.append(
                f"{rmse:>10.4g}  {ratio:>6.3f}  {protocol.report_bits:>6} "
                f" {shorten(describe(protocol), _LINE, placeholder=' ...')}"
            )
        ratio = self.bound / self.rmse if self.rmse else 1.0
        lines.append(f"{self.bound:>10.4g}  {ratio:>6.3f}  {'':>6}  no protocol is below this")
        return "\n".join(lines)


def describe(protocol: RangeProtocol) -> str:
    """A protocol in a line."""
    if isinstance(protocol, CircularHistogram):
        shares = _shares(map(str, protocol.blocks or ()), protocol)
        return f"Circular, {protocol.circle} items: {shares}"
    if isinstance(protocol, ShiftedHistogram):
        return f"Shifted: {_shares(map(str, protocol.widths or ()), protocol)}"
    if isinstance(protocol, Composite):
        return f"Composite {_shares(('mechanism', *map(name_of, protocol.oracle)), protocol)}"
    if not isinstance(protocol, LevelHistograms):
        return type(protocol).__name__
    if isinstance(protocol, Flat):
        return f"Flat, {_names(protocol)[0]}"
    shape = "x".join(map(str, protocol.tree.branching))
    name = "HH" if isinstance(protocol, HierarchicalHistogram) else "Decomposed"
    if not isinstance(protocol.oracle, tuple):
        return f"{name} {shape}, {_names(protocol)[0]}"
    return f"{name} {shape}: {_shares(_names(protocol), protocol)}"


def _names(protocol: LevelHistograms) -> list[str]:
    return list(map(name_of, choices_of(protocol.oracle, protocol.tree.height)))


def _shares(names: Iterable[str], protocol: RangeProtocol) -> str:
    return ", ".join(
        f"{name} {weight / WORD:.3f}"
        for name, weight in zip(names, protocol.part_weights, strict=True)
    )


def optimise(
    domain: int,
    epsilon: float | Rational,
    n: int,
    workload: str = "ranges",
    *,
    progress: bool = False,
) -> Optimised:
    """The protocol of least average variance over a workload, of those known here.

    Circular hierarchies, trees and, for prefixes, shifted histograms are optimised, with an oracle
    and a probability for each level; the published protocols are compared with them. The average
    variance of a consistent tree is a sum over levels of parents of a constant of the workload over
    a precision, that of a circular hierarchy a sum over frequencies, and that of a shifted
    histogram a trace of the inverse of the precisions; precisions are linear in the probabilities:
    a convex problem, solved by multiplicative updates. Levels that get next to no users are left
    out. Each level has the oracle of least variance among its nodes.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: as for every oracle.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int
        The number of users.
    workload : str, default "ranges"
        "ranges", "all ranges" or "prefixes", see `rangeq.core.tree.WORKLOADS`; a population without
        heavy nodes.
    progress : bool, default False
        Show how far it is, on standard error.

    Returns
    -------
    Optimised
        The best protocol, the alternatives, and a lower bound.

    Raises
    ------
    ValueError
        For an unknown workload, or a domain, epsilon or n out of range.
    """
    checked_workload(workload)
    candidates = [
        *_published(domain, epsilon),
        *_trees(domain, epsilon, workload),
        *_circular_hierarchies(domain, epsilon, workload),
        *_shifted_histograms(domain, epsilon, workload),
    ]
    rated = []
    with ProgressMeter("protocols", len(candidates), shown=progress) as meter:
        for candidate in candidates:
            rated.append((candidate, candidate.average_rmse(n, workload)))
            meter.update()
    rated = ordered(rated, lambda pair: pair[1], lambda pair: pair[0].report_bits)
    return Optimised(*rated[0], tuple(rated), least_rmse(domain, epsilon, n, workload))


def _published(domain: int, epsilon: float | Rational) -> Iterator[RangeProtocol]:
    yield Flat(domain, epsilon, oracle="OUE")
    yield HaarHRR(domain, epsilon)
    for branching in (2, 4, 8, 16):
        for name in ("OUE", "HRR"):
            yield HierarchicalHistogram(domain, epsilon, branching, name)


def _trees(domain: int, epsilon: float | Rational, workload: str) -> Iterator[RangeProtocol]:
    trees = {Tree.of(domain, branching) for branching in _BRANCHINGS}
    trees.add(Tree(domain, (max(2, domain),)))
    for tree in sorted(trees, key=lambda tree: tree.branching):
        oracles = [
            best_oracle(nodes, occupied, epsilon)
            for nodes, occupied in zip(tree.nodes, tree.occupied, strict=True)
        ]
        shares = probabilities(tree, np.array([variance for _, variance in oracles]), workload)
        kept = [
            level
            for level in range(tree.height)
            if shares[level] > 1e-4 or level == tree.height - 1
        ]
        nodes = [1, *(tree.nodes[level] for level in kept)]
        branching = tuple(below // above for above, below in pairwise(nodes))
        names = tuple(type(oracles[level][0]).__name__ for level in kept)
        yield HierarchicalHistogram(domain, epsilon, branching, names, _exact(shares[kept]))


def _exact(shares: Floats) -> tuple[Fraction, ...]:
    whole = [Fraction(round(share * 2**32)) for share in shares]
    return tuple(share / sum(whole) for share in whole)


@dataclass(frozen=True, eq=False)
class CircleLevels:
    """The levels that a circular hierarchy may have, to choose their shares of the users by."""

    domain: int
    epsilon: float | Rational
    circle: int  # the number of items with padding: as for `CircularHistogram`
    blocks: Integers  # shape (levels,): the number of blocks of each level of the circle
    oracles: tuple[str, ...]  # the best oracle of each level
    frequencies: Integers  # the frequencies of the circular domain that are looked at
    # Shape (frequencies,): the cost of a unit of variance at each in the mean over a workload
    costs: Floats
    gains: Floats  # shape (frequencies, levels): the precision there that a user on each level adds

    @classmethod
    def of(cls, domain: int, epsilon: float | Rational, circle: int, workload: str) -> CircleLevels:
        """The levels of all default numbers of blocks: divisors of the circular domain's size."""
        blocks = np.array(default_blocks(circle))
        oracles, variances = _of_blocks(
            domain, epsilon, [(m, circle // m) for m in blocks.tolist()]
        )
        frequencies, costs = _circular_costs(domain, circle, workload)
        gains = (
            np.array([seen(circle, circle // m)[frequencies] for m in blocks.tolist()])
            / variances[:, None]
        )
        return cls(domain, epsilon, circle, blocks, oracles, frequencies, costs, gains.T)

    def histogram(self, shares: Floats) -> CircularHistogram:
        """The protocol with these shares of the users; levels with next to none are left out."""
        levels = _kept(shares, self.oracles, self.blocks, self.circle)
        return CircularHistogram(self.domain, self.epsilon, self.circle, *levels)


def _circular_hierarchies(
    domain: int, epsilon: float | Rational, workload: str
) -> Iterator[RangeProtocol]:
    if domain > CircularHistogram.largest_domain:
        return
    for circle in sorted({max(domain, 2), round_up(domain), round_up(domain + domain // 8)}):
        levels = CircleLevels.of(domain, epsilon, circle, workload)
        yield levels.histogram(least_shares(levels.costs, levels.gains))


def _of_blocks(
    domain: int, epsilon: float | Rational, levels: Sequence[tuple[int, int]]
) -> tuple[tuple[str, ...], Floats]:
    """Return the best oracles for levels of so many blocks of some width, and their variances."""
    short = {name: kind for name, kind in NAMED.items() if kind(2, 1.0).cells}
    oracles = [
        best_oracle(blocks, -(-domain // width), epsilon, short, _FEW)[0]
        for blocks, width in levels
    ]
    variances = [
        per_user_of_blocks(oracle, domain, width)
        for oracle, (_, width) in zip(oracles, levels, strict=True)
    ]
    return tuple(type(oracle).__name__ for oracle in oracles), np.array(variances)


def _kept(
    shares: Floats, names: Sequence[str], sizes: Integers, finest: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[Fraction, ...]]:
    """Return the levels, their oracles and their shares, without levels that get next to none."""
    kept = np.flatnonzero((shares > 1e-3) | (sizes == finest))
    return (
        tuple(sizes[kept].tolist()),
        tuple(names[level] for level in kept.tolist()),
        _exact(shares[kept]),
    )


def _shifted_histograms(
    domain: int, epsilon: float | Rational, workload: str
) -> Iterator[RangeProtocol]:
    if workload != "prefixes" or domain > ShiftedHistogram.largest_domain:
        return
    widths = powers_below(domain)
    levels = [(bins_of(domain, width), width) for width in widths]
    names, variances = _of_blocks(domain, epsilon, levels)
    shares = _shifted_shares(domain, np.array(widths), variances)
    yield ShiftedHistogram(domain, epsilon, *_kept(shares, names, np.array(widths), 1))


def _shifted_shares(domain: int, widths: Integers, variances: Floats) -> Floats:
    """Return shares of levels of least mean variance of prefixes, which a sample stands for."""
    # Large domains have more levels of small bins, which all have about the same share
    if domain > _RESOLVED:
        middle = len(widths) - _FINE
        fewer = np.append(np.arange(middle - 1), np.arange(middle, len(widths)))
        shares = _shifted_shares(-(-domain // 2), -(-widths[:-1] // 2), variances[fewer])
        more = np.insert(shares, middle, shares[middle - 1 : middle + 1].mean())
        return np.asarray(more / more.sum())
    last = np.unique(np.linspace(0, domain - 2, min(max(domain - 1, 1), _PREFIXES)).astype(int))
    prefixes = (np.arange(domain) <= last[:, None]).astype(np.float64)
    columns = np.maximum(1 - np.arange(domain) / widths[:, None], 0.0) / variances[:, None]
    around = np.fft.rfft(np.concatenate([columns, 0 * columns[:, :1], columns[:, :0:-1]], axis=1))

    def gains(shares: Floats) -> Floats:
        inverse = ToeplitzInverse.of(shares @ columns)
        solved = inverse.times(prefixes)
        every = inverse.times(np.ones(domain))
        # The sum of all items is known: the covariance's part along it is taken off (Schur
        # complement)
        solved -= solved.sum(axis=1, keepdims=True) / every.sum() * every
        # x'T x of a Toeplitz matrix T is a sum over frequencies of its spectrum times |x|^2: gains
        # of all levels at once
        power = (np.abs(np.fft.rfft(solved, 2 * domain)) ** 2).sum(axis=0)
        power[1:-1] *= 2
        return np.asarray(around.real @ power)

    # Prefixes are a sample, so a part in 300 is as good as it gets
    even = np.full(len(widths), 1 / len(widths))
    return falling_shares(gains, even, _SHIFTED_STEPS, _ALIKE)


def _circular_costs(domain: int, circle: int, workload: str) -> tuple[Integers, Floats]:
    """Return the frequencies 1 .. circle // 2, or a sample, and the cost of variance at each."""
    # In the mean over a workload
    length = np.arange(1, domain + 1)
    often = {
        "prefixes": np.ones(domain),
        "all ranges": domain + 1.0 - length,
        "ranges": (domain + 1.0 - length) * (length > 1),
    }
    lengths = np.bincount(length % circle, weights=often[workload], minlength=circle)
    # The mean over lengths of |1 - e^(i angle length)|^2 / 2: a range is a difference of two
    # prefixes, whose sums divide the spectrum by 4 sin^2
    power = (lengths.sum() - np.fft.rfft(lengths).real)[1:] / max(lengths.sum(), 1.0)
    frequency = np.arange(1, circle // 2 + 1)
    costs = power / (circle * np.sin(np.pi * frequency / circle) ** 2)
    if circle % 2 == 0:
        costs[-1] /= 2
    if len(frequency) <= 4 * _SAMPLE:
        return frequency, costs
    # High frequencies: one of each stratum stands for all of it.
    edges = np.unique(np.geomspace(_SAMPLE, len(frequency), 2 * _SAMPLE).astype(np.int64))
    within = np.arange(len(edges) - 1) * ((math.sqrt(5) - 1) / 2) % 1
    chosen = edges[:-1] + (within * np.diff(edges)).astype(np.int64)
    sums = np.add.reduceat(costs, edges[:-1])
    return np.concatenate([frequency[:_SAMPLE], frequency[chosen]]), np.concatenate(
        [costs[:_SAMPLE], sums]
    )


def compose(
    mechanism: Mechanism, domain: int, epsilon: float | Rational, workload: str = "ranges"
) -> Composite:
    """A mechanism over equal blocks of items, and below it the best binary tree.

    The oracles and the probabilities of the levels are those of least average variance.

    Parameters
    ----------
    mechanism : Mechanism
        Local, of at most ``epsilon``; its inputs times a power of two are the domain. See
        `mechdesign.local.workload_optimal`.
    domain, epsilon, workload : as of `optimise`
        The number of items, the privacy loss of one report, and "ranges", "all ranges" or
        "prefixes".

    Returns
    -------
    Composite
        The protocol.

    Raises
    ------
    ValueError
        For an unknown workload, or a mechanism that does not fit: see `Composite`.
    PrivacyViolation, NotIdentifiable
        See `Composite`.
    """
    checked_workload(workload)
    below = (2,) * max(0, (domain // checked_local(mechanism).inputs).bit_length() - 1)
    nodes = [mechanism.inputs << level for level in range(1, len(below) + 1)]
    names = tuple(type(best_oracle(number, number, epsilon)[0]).__name__ for number in nodes)
    composite = Composite(domain, epsilon, mechanism, below, names)
    # Of a user of each level
    information = np.array([composite.precisions(unit) for unit in np.eye(composite.tree.height)]).T
    return replace(
        composite, probabilities=_exact(least_shares(composite.costs(workload), information))
    )


def best_oracle(
    nodes: int,
    held: int,
    epsilon: float | Rational,
    kinds: Mapping[str, type[Oracle]] = NAMED,
    bits: int = _LONGEST,
) -> tuple[Oracle, float]:
    """The oracle of least variance for a level with so many nodes, but for what is not worth it."""
    made = [kind(nodes, epsilon) for kind in kinds.values()]
    rated = [
        (per_user(oracle, held), oracle.report_bits, oracle)
        for oracle in made
        if oracle.report_bits <= bits
    ]

    def weighed(item: tuple[float, int, Oracle]) -> float:
        return item[0] * (_WORTH if isinstance(item[2], AffineSelection) else 1)

    variance, _, oracle = ordered(rated, weighed, itemgetter(1))[0]
    return oracle, variance


def probabilities(tree: Tree, variances: Floats, workload: str) -> Floats:
    """The probabilities of levels that minimise a tree's average variance over a workload."""
    height = tree.height
    # What one user on a level adds to the precision of the contrasts of each level of parents
    gains = np.zeros((height, height))
    for above in range(height):
        for level in range(above, height):
            gains[above, level] = tree.nodes[above] / tree.nodes[level] / variances[level]
    return least_shares(tree.costs(workload), gains)


def least_shares(costs: Floats, information: Floats) -> Floats:
    """Return the shares of least costs @ 1 / (information @ shares), to one part in 10^9.

    Shapes: `costs` (contrasts,), `information` (contrasts, levels); returns (levels,).
    """

    def gains(shares: Floats) -> Floats:
        precision = information @ shares
        slope = np.divide(costs, precision**2, out=np.zeros_like(costs), where=precision > 0)
        return np.asarray(slope @ information)

    start = np.full(information.shape[1], 1 / information.shape[1])
    return falling_shares(gains, start, _STEPS // len(costs) + 200, 1e-9)


def falling_shares(
    gains_of: Callable[[Floats], Floats], start: Floats, steps: int, tolerance: float
) -> Floats:
    """The shares of least variance, adding up to 1, by multiplicative steps: a convex problem.

    Gains are minus the derivatives of the cost by the shares. Shapes: (levels,).
    """
    shares = start
    for _ in range(steps):
        gains = gains_of(shares)
        # KKT condition: gains are equal to their mean where a share is above 0, and no larger
        # anywhere
        mean = float(shares @ gains)
        if mean == 0 or gains.max() <= mean * (1 + tolerance):
            break  # no level would gain from another's users
        # The multiplicative algorithm of optimal design (Silvey, Titterington and Torgersen 1978)
        # with the power 1/2, with which the cost never rises for such criteria (Torsney 1983)
        shares = shares * np.sqrt(gains / mean)
        shares /= shares.sum()
    return shares


def least_rmse(domain: int, epsilon: float | Rational, n: int, workload: str = "ranges") -> float:
    """The least root of the average variance over a workload of any protocol, whatever users send.

    For an even population, local privacy, and unbiased estimates from one report a user. Let s be
    the rows of a mechanism, D = domain. The information about frequencies (which add up to 1) has
    the trace sum |s - mean s|^2 / mean s: convex in every row, so that it is the largest for rows
    of two values, 1 and e^eps, where it is at most D (e^eps - 1)^2 / (4 e^eps). The sum of the
    squared errors of queries with the Gram matrix G is tr(G I^-1) >= (tr G^(1/2))^2 / tr I. With P
    the prefixes, G is (D + 1) |P - mean P|^2 for all ranges, at least that of a circular domain,
    with the eigenvalues (D + 1) / (4 sin^2(pi f / D)); 1 less without single items; and |P|^2 for
    prefixes, with the eigenvalues 1 / (4 sin^2(pi f / (2 D))).

    Parameters
    ----------
    domain, epsilon, n, workload : as of `optimise`
        The numbers of items and of users, the privacy loss of a report, and what is asked.

    Returns
    -------
    float
        A fraction of the population; 0 for a single item.
    """
    if domain == 1:
        return 0.0
    ratio = float(
        min(1 / Privacy.from_epsilon(epsilon, neighbours="all").alpha, Fraction(1 << 500))
    )
    f, ranges = np.arange(1, domain), domain * (domain + 1) / 2
    if workload == "prefixes":
        # Singular values of prefix sums, with one free end and with none
        queries, roots = float(domain), 1 / (2 * np.sin(np.pi * f / (2 * domain)))
    else:
        single = workload == "ranges"
        queries = ranges - domain * single
        roots = np.sqrt(
            np.maximum((domain + 1) / (4 * np.sin(np.pi * f / domain) ** 2) - single, 0.0)
        )
    variance = float(roots.sum()) ** 2 / (domain * queries) * 4 * ratio / (ratio - 1) ** 2
    return even_rmse(domain, n, workload, variance / n)

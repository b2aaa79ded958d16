"""What the subjects of ranges share: predicted variances of ranges."""

from __future__ import annotations

import math

import numpy as np
from range_queries import N

from rangeq import DecomposedHistogram, RangeProtocol
from rangeq.core.protocol import before

SMALL = 0.001
"""An epsilon at which the variance of an oracle is V_F and nothing else: the other terms are below
10^-6 of it.
"""


def printed_variance(epsilon: float) -> float:
    """V_F from one user."""
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


def every_range(domain: int) -> tuple[np.ndarray, np.ndarray]:
    first, last = np.triu_indices(domain)
    return first, last


def predicted(one: RangeProtocol, first: np.ndarray, last: np.ndarray, n: int = N) -> np.ndarray:
    """Variances for an even population."""
    users = one.channel.expected_users(n)
    if isinstance(one, DecomposedHistogram):
        held = one.tree.padded(np.full(one.domain, 1 / one.domain))
        r = (last - first + 1) / one.domain
        even = [before(one.tree.sums(held, level)) for level in range(one.tree.height)]
        return one._of_ranges(n, users, even, first, last) + r * (1 - r) / n
    assert one.even is not None
    return one.even.ranges(first, last, users)


def unshifted(domain: int, epsilon: float) -> DecomposedHistogram:
    """Flat as in the paper: the items' estimates need not sum to 1."""
    return DecomposedHistogram(domain, epsilon, domain)


def geometric_mean(values: list[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))


def positions(domain: int, r: int, most: int = 4096) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of length r, at all positions or at ``most`` random ones."""
    count = domain - r + 1
    first = np.arange(count) if count <= most else np.random.default_rng(r).integers(0, count, most)
    return first, first + r - 1


def population(
    domain: int, users: int, rng: np.random.Generator, centre: float = 0.4
) -> np.ndarray:
    """The paper's: Cauchy, height D / 10, nothing outside of the domain."""
    density = 1 / (1 + ((np.arange(domain) - centre * domain) / (0.1 * domain)) ** 2)
    return rng.multinomial(users, density / density.sum())

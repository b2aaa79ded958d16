"""The named mechanisms in closed form, for every alpha at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from flint import fmpz_poly

from mechdesign.base import whole
from mechdesign.named import explicit_fair_weights, geometric_weights, krr_weights
from mechdesign.privacy import Neighbours
from mechdesign.symbolic.semialgebraic import ALPHA, ONE
from mechdesign.symbolic.table import SymbolicMechanism


def geometric(n: int) -> SymbolicMechanism:
    """Return GM for counts 0 .. n, see `named.geometric`."""
    n = _counts(n) - 1
    return _mechanism(*geometric_weights(n, ALPHA)) if n else uniform(0)


def explicit_fair(n: int) -> SymbolicMechanism:
    """Return EM for counts 0 .. n, see `named.explicit_fair`.

    Its exponents are whole numbers for odd n, too.
    """
    n = _counts(n) - 1
    return _mechanism(*explicit_fair_weights(n, ALPHA))


def uniform(n: int) -> SymbolicMechanism:
    """Return UM for counts 0 .. n (Definition 23), which is private for every alpha."""
    size = _counts(n)
    return _mechanism([[ONE] * size] * size, size * ONE)


def randomized_response() -> SymbolicMechanism:
    """Return RR on one bit, see `named.randomized_response`."""
    return geometric(1)


def krr(k: int) -> SymbolicMechanism:
    """Return GRR over k items, local privacy, see `named.krr`."""
    return _mechanism(*krr_weights(_items(k), ALPHA), "all")


def optimized_unary(k: int) -> SymbolicMechanism:
    """Return OUE over k items (thesis 2.4).

    The user's own bit is reported truthfully with probability 1/2; every other bit is 1 with
    probability alpha / (1 + alpha). Output o is the vector of the binary digits of o, 2^k in all;
    local privacy.
    """
    k = _items(k)
    # Bits of other items that are 1 are alpha times as likely as 0, each by itself; the bit of the
    # user's item is fair whatever it is, so that it is masked out of the exponent.
    weights = [
        [ALPHA ** (output & ~(1 << j)).bit_count() for j in range(k)] for output in range(1 << k)
    ]
    return _mechanism(weights, 2 * (1 + ALPHA) ** (k - 1), "all")


def hadamard(order: int) -> SymbolicMechanism:
    """Return HRR over ``order`` items, a power of two >= 2 (thesis 4.7).

    A user reports one of order - 1 Walsh-Hadamard coefficients, its sign by randomized response.
    Output 2 (r - 1) + s is coefficient r with sign (-1)^s; the constant coefficient, r = 0, is left
    out. Local privacy.
    """
    order = _items(order)
    if order < 2 or order & (order - 1):
        raise ValueError(
            f"the order of a Hadamard matrix here is a power of two, at least 2, got {order}"
        )
    # Row 0 of the Walsh-Hadamard matrix is constant: its sign says nothing about the item.
    reports = [(r, s) for r in range(1, order) for s in (0, 1)]
    weights = [
        [ONE if (r & j).bit_count() % 2 == s else ALPHA for j in range(order)] for r, s in reports
    ]
    return _mechanism(weights, (order - 1) * (1 + ALPHA), "all")


def subset_selection(k: int, size: int) -> SymbolicMechanism:
    """Return subset selection over k items (Ye and Barg 2018).

    A user reports a set of ``size`` items. Sets without the user's item are alpha times as probable
    as sets with it. Outputs are the sets in lexicographic order; local privacy. With size 1 this is
    GRR.

    Parameters
    ----------
    k : int
        The number of items, at least 1.
    size : int
        The number of items in a set, 1 .. k.

    Returns
    -------
    SymbolicMechanism
        A table of shape (binomial(k, size), k), with ``neighbours="all"``.

    Raises
    ------
    ValueError
        ``k`` is not a whole number of at least 1, or ``size`` is out of range.
    """
    k = _items(k)
    size = whole(size, "the size of a set", 1, k, what="a number of items")
    weights = [
        [ONE if j in chosen else ALPHA for j in range(k)] for chosen in combinations(range(k), size)
    ]
    # Sets with the item, of weight 1, and sets without it, of weight alpha.
    denominator = math.comb(k - 1, size - 1) + math.comb(k - 1, size) * ALPHA
    return _mechanism(weights, denominator, "all")


def _mechanism(
    weights: Sequence[Sequence[fmpz_poly]],
    denominator: fmpz_poly,
    neighbours: Neighbours = "adjacent",
) -> SymbolicMechanism:
    return SymbolicMechanism(tuple(map(tuple, weights)), denominator, neighbours)


def _counts(n: int) -> int:
    """Return the number of possible counts of n respondents."""
    return whole(n, "n", what="a whole number of respondents") + 1


def _items(k: int) -> int:
    return whole(k, "k", 1, what="a number of items")

"""Average variances over all boxes of grids, for trees that split every dimension."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, overload

from mechdesign._support.numbers import Rational, whole
from rangeq.central.flat import CentralFlat
from rangeq.central.hierarchy import Hierarchy
from rangeq.central.spectrum import average_of_nodes, tree_spectrum


@overload
def flat_average_variance(
    side: int, d: int, epsilon: float | Rational, exact: Literal[False] = False
) -> float: ...
@overload
def flat_average_variance(
    side: int, d: int, epsilon: float | Rational, exact: Literal[True]
) -> Fraction: ...
def flat_average_variance(
    side: int, d: int, epsilon: float | Rational, exact: bool = False
) -> float | Fraction:
    """The mean variance over all boxes of a grid whose cells have noise of their own.

    ``((side + 2) / 3)^d * 2 / epsilon^2`` (Qardaji et al., section 3.1, for each dimension), for
    Laplace noise of variance 2 / epsilon^2 on each of the side^d cells.

    Parameters
    ----------
    side, d
        The cells along each dimension, and the number of dimensions.
    epsilon
        The privacy loss of the release.
    exact
        Whether to return a Fraction.

    Returns
    -------
    float or Fraction
        In squared users.

    Raises
    ------
    ValueError
        For numbers out of range.
    """
    value = _grid(side, d, epsilon)[1] * Fraction(side + 2, 3) ** d
    return value if exact else float(value)


@overload
def hierarchy_average_variance(
    side: int,
    d: int,
    branching: int | Sequence[int],
    epsilon: float | Rational,
    inference: bool = True,
    exact: Literal[False] = False,
) -> float: ...
@overload
def hierarchy_average_variance(
    side: int,
    d: int,
    branching: int | Sequence[int],
    epsilon: float | Rational,
    inference: bool = True,
    *,
    exact: Literal[True],
) -> Fraction: ...
def hierarchy_average_variance(
    side: int,
    d: int,
    branching: int | Sequence[int],
    epsilon: float | Rational,
    inference: bool = True,
    exact: bool = False,
) -> float | Fraction:
    """The mean variance over all boxes of a grid, for a tree that splits every dimension.

    A node has branching^d children (Qardaji et al., section 2.2); the root is not asked; epsilon is
    split equally; Laplace noise of variance 2 / epsilon_l^2. For d = 1 it is
    `Hierarchy.average_variance`.

    Parameters
    ----------
    side, d, epsilon, exact
        As for `flat_average_variance`.
    branching
        In each dimension; as for `Hierarchy`.
    inference
        Least squares, or the fewest nodes that make up a box.

    Returns
    -------
    float or Fraction
        In squared users.

    Raises
    ------
    ValueError
        For numbers out of range.
    """
    side, unit = _grid(side, d, epsilon)
    tree = Hierarchy(side, epsilon, branching)._tree
    variances = [unit * tree.height**2] * tree.height
    value = (
        tree_spectrum(tree, variances, d).mean(tree.moments(), d)
        if inference
        else average_of_nodes(tree, variances, d)
    )
    return value if exact else float(value)


def _grid(side: int, d: int, epsilon: float | Rational) -> tuple[int, Fraction]:
    """The side, checked, and the variance 2 / epsilon^2."""
    whole(d, "d", 1, 64)
    flat = CentralFlat(side, epsilon)
    return flat.domain, 2 / flat.given_epsilon**2

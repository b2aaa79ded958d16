"""A matrix mechanism as files of releases hold it: JSON, and the integers of its strategy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mechdesign import ZCDP, ApproximateDP, Privacy
from mechdesign.base.arrays import Integers
from mechdesign.base.fields import (
    FRACTION_TEXT,
    TEXT,
    one_of,
    record,
    row_of,
    table_of,
    whole_number,
)
from mechdesign.base.text import to_text
from rangeq.central.inputs import stored_number
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.strategy_file import kind_of

NAME = MatrixMechanism.__name__

_SIZE = whole_number(1, 1 << 26)

MATRIX_MECHANISM = record(
    {
        "name": one_of(NAME),
        "promise": record({"alpha": FRACTION_TEXT})
        | record({"rho": FRACTION_TEXT})
        | record({"epsilon": FRACTION_TEXT, "delta": FRACTION_TEXT}),
        "strategy": TEXT,
        "arrays": table_of(row_of(_SIZE) | row_of(_SIZE, _SIZE)),
    }
)
"""What `mechanism_content` makes."""


def mechanism_content(mechanism: MatrixMechanism) -> dict[str, Any]:
    """What JSON says of it.

    Parameters
    ----------
    mechanism : MatrixMechanism
        Any.

    Returns
    -------
    dict
        With the sizes of the arrays that `strategy_numbers` gives.
    """
    arrays = mechanism.strategy.arrays()
    return {
        "name": NAME,
        "promise": _promise_content(mechanism.promise),
        "strategy": mechanism.strategy.kind,
        "arrays": {name: list(array.shape) for name, array in sorted(arrays.items())},
    }


def strategy_numbers(mechanism: MatrixMechanism) -> list[Integers]:
    """The integers of its strategy.

    Parameters
    ----------
    mechanism : MatrixMechanism
        Any.

    Returns
    -------
    list of numpy.ndarray of int64
        Its arrays, each in one row, in the order of their names.
    """
    arrays = sorted(mechanism.strategy.arrays().items())
    return [array.astype(np.int64).ravel() for _, array in arrays]


def mechanism_of_content(
    content: dict[str, Any], sizes: tuple[int, ...], numbers: Integers
) -> tuple[MatrixMechanism, Integers]:
    """The mechanism that a file holds; its strategy and its noise are made again.

    Parameters
    ----------
    content : dict
        A `MATRIX_MECHANISM`.
    sizes : tuple of int
        The number of cells along each attribute.
    numbers : numpy.ndarray of int64
        Of which the last are those that `strategy_numbers` gave.

    Returns
    -------
    tuple of (MatrixMechanism, numpy.ndarray)
        And the numbers before them.

    Raises
    ------
    ValueError, TypeError
        It is no such mechanism.
    """
    shapes = content["arrays"]
    counts = {name: math.prod(shape) for name, shape in sorted(shapes.items())}
    held = len(numbers) - sum(counts.values())
    if held < 0:
        raise ValueError(f"{len(numbers)} numbers are fewer than those of the strategy")
    parts = np.split(numbers[held:], np.cumsum(list(counts.values()))[:-1])
    arrays = {name: part.reshape(shapes[name]) for name, part in zip(counts, parts, strict=True)}
    strategy = kind_of(content["strategy"]).of_arrays(sizes, arrays)
    return MatrixMechanism(strategy, _promise_of(content["promise"])), numbers[:held]


def _promise_content(promise: Promise) -> dict[str, str]:
    if isinstance(promise, Privacy):
        return {"alpha": to_text(promise.alpha)}
    if isinstance(promise, ZCDP):
        return {"rho": to_text(promise.rho)}
    return {"epsilon": to_text(promise.epsilon), "delta": to_text(promise.delta)}


def _promise_of(content: dict[str, str]) -> Promise:
    if "alpha" in content:
        return Privacy(alpha=stored_number(content["alpha"]))
    if "rho" in content:
        return ZCDP(stored_number(content["rho"]))
    return ApproximateDP(stored_number(content["epsilon"]), stored_number(content["delta"]))

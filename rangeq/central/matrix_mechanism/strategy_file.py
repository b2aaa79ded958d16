"""Strategies as files: reusable, with digests, and the bounds that they were designed with.

A file is a ZIP archive of NumPy's ``.npz`` kind: an array of integers for each part of a strategy,
and ``strategy.json``, which says what they are and holds their SHA-256 digests, and its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign import InvalidFile, Privacy
from mechdesign.accounting import ZCDP, ApproximateDP
from mechdesign.base import (
    FRACTION_TEXT,
    TEXT,
    Format,
    Integers,
    from_json,
    list_of,
    one_of,
    opened,
    optional,
    reason,
    record,
    replacing,
    row_of,
    shown,
    table_of,
    to_text,
    whole_number,
)
from mechdesign.noise.discrete import DiscreteGaussian
from rangeq.central.inputs import checked_shape, stored_number
from rangeq.central.matrix_mechanism.dense_strategy import DenseStrategy, ProductStrategy
from rangeq.central.matrix_mechanism.grouped_strategy import GroupedStrategy
from rangeq.central.matrix_mechanism.marginal_strategy import MarginalStrategy
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism, Promise
from rangeq.central.matrix_mechanism.residual_strategy import ResidualStrategy
from rangeq.central.matrix_mechanism.spectral_strategy import SpectralStrategy
from rangeq.central.matrix_mechanism.staircase_strategy import StaircaseStrategy
from rangeq.central.matrix_mechanism.strategy import Strategy

_KINDS: dict[str, type[Strategy]] = {
    kind.kind: kind
    for kind in (
        DenseStrategy,
        GroupedStrategy,
        MarginalStrategy,
        ProductStrategy,
        ResidualStrategy,
        SpectralStrategy,
        StaircaseStrategy,
    )
}

# The exceptions that damaged archives and arrays raise.
_MISTAKES = (
    ValueError,
    TypeError,
    KeyError,
    ArithmeticError,
    EOFError,
    MemoryError,  # a shape that no memory holds
    tokenize.TokenError,  # a header that is no Python literal
    RuntimeError,  # encrypted, or a method of compression that is not there
    zipfile.BadZipFile,
    zlib.error,
)

_CONTENT = "strategy.json"


def _bound(text: str | None) -> float | None:
    if text is None:
        return None
    value = float.fromhex(text)
    if not (math.isfinite(value) and value >= 0 and value.hex() == text):
        raise ValueError(f"a bound is a finite number as float.hex writes it, got {shown(text)}")
    return value


_FORM = Format(
    "mechdesign.strategy",
    {
        1: {
            "kind": TEXT,
            "sizes": list_of(whole_number(1)),
            "bound": replace(optional(TEXT), read=_bound),
            "arrays": table_of(TEXT),
        }
    },
)

_LARGEST_CONTENT = 1 << 20

_LARGEST_ARRAYS = 1 << 29  # the most bytes of all arrays of a file together

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the time of all members, so that equal strategies have equal files


def kind_of(name: object) -> type[Strategy]:
    """The class of strategies of a name in files."""
    if not isinstance(name, str) or name not in _KINDS:
        raise ValueError(f"a strategy is one of {', '.join(sorted(_KINDS))}, got {shown(name)}")
    return _KINDS[name]


class StoredStrategy(NamedTuple):
    """The content of a file.

    Attributes
    ----------
    strategy : Strategy
        What is measured.
    bound : float or None
        What it was designed with: a lower bound on the mean variance of its workload, per unit of
        noise variance and squared sensitivity; as the file says it.
    """

    strategy: Strategy
    bound: float | None


def save_strategy(
    path: str | os.PathLike[str], strategy: Strategy, bound: float | None = None
) -> None:
    """Write a strategy, replacing a file in one step or not at all.

    Parameters
    ----------
    path : str or os.PathLike
        Where, such as ``ages.npz``; what is there is replaced.
    strategy, bound : as of `StoredStrategy`
        What is measured, and its lower bound, if there is one.
    """
    content, members = _written(strategy, bound)
    with replacing(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, data in {_CONTENT: content, **members}.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)


def load_strategy(path: str | os.PathLike[str]) -> StoredStrategy:
    """The strategy in a file.

    Its sensitivities are computed from its integers, so a file that was forged cannot weaken the
    privacy of a release; its digests are there to find what was damaged.

    Parameters
    ----------
    path : str or os.PathLike
        What `save_strategy` wrote.

    Returns
    -------
    StoredStrategy
        The strategy, equal to the one that was saved, and its bound.

    Raises
    ------
    InvalidFile
        It is no such file, was cut short or changed, or holds no strategy.
    OSError
        It cannot be read.
    """
    with opened(path) as stream:
        # Read at once: what cannot be read is an OSError, and what is read and wrong an InvalidFile
        data = io.BytesIO(stream.read())
    try:
        with zipfile.ZipFile(data) as archive:
            return _read(archive)
    except _MISTAKES as error:
        raise InvalidFile(f"{path}: no strategy: {reason(error):.300}") from error


def digest(strategy: Strategy) -> str:
    """The digest of a strategy: equal for equal ones, in hexadecimal digits."""
    content, _ = _written(strategy, None)
    return json.loads(content)["digest"]


def _written(strategy: Strategy, bound: float | None) -> tuple[bytes, dict[str, bytes]]:
    members = {f"{name}.npy": _bytes(array) for name, array in strategy.arrays().items()}
    content = _FORM.written(
        {
            "kind": strategy.kind,
            "sizes": strategy.sizes,
            "bound": None if bound is None else bound.hex(),
            "arrays": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
        }
    )
    return (json.dumps(content, indent=1) + "\n").encode(), members


def _bytes(array: npt.NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.ascontiguousarray(array, dtype="<i8"), (1, 0), False)
    return stream.getvalue()


def _read(archive: zipfile.ZipFile) -> StoredStrategy:
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    # Those of other methods have errors of their own, and larger tables
    usual = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    if not {info.compress_type for info in archive.infolist()} <= usual:
        raise ValueError("compressed in another way than strategies are")
    # Sizes as the directory states them, before anything is unpacked: a small archive may hold
    # gigabytes of zeros
    if sizes.get(_CONTENT, _LARGEST_CONTENT + 1) > _LARGEST_CONTENT:
        raise ValueError(f"it has no {_CONTENT}, or a huge one")
    stated = _FORM.read(_FORM.require(from_json(archive.read(_CONTENT))))
    kind, digests = kind_of(stated["kind"]), stated["arrays"]
    if {*digests, _CONTENT} != set(sizes):
        raise ValueError("its members are not those that it lists")
    if sum(sizes[name] for name in digests) > _LARGEST_ARRAYS:
        raise ValueError("its arrays are larger than those of any strategy")
    arrays = {}
    for name, expected in digests.items():
        data = archive.read(name)
        if hashlib.sha256(data).hexdigest() != expected:
            raise ValueError(f"changed: the digest of {shown(name)} does not match")
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        if array.dtype != np.dtype("<i8"):
            raise ValueError(f"{shown(name)} is not of 64-bit integers")
        arrays[name.removesuffix(".npy")] = array
    return StoredStrategy(kind.of_arrays(checked_shape(stated["sizes"]), arrays), stated["bound"])


# ------------------------------------------------------------------------------------------------
# A matrix mechanism as files of releases hold it: JSON, and the integers of its strategy.


NAME = MatrixMechanism.__name__

_SIZE = whole_number(1, 1 << 26)

# What a file says of each promise.
_PROMISES: dict[Callable[..., Promise], tuple[str, ...]] = {
    Privacy: ("alpha",),
    ZCDP: ("rho",),
    ApproximateDP: ("epsilon", "delta"),
}

#: The form of what `mechanism_content` makes.
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


def mechanism_content(mechanism: MatrixMechanism) -> dict[str, Any]:
    """Describe a mechanism as JSON."""
    arrays, promise = mechanism.strategy.arrays(), mechanism.promise
    return {
        "name": NAME,
        "promise": {name: to_text(getattr(promise, name)) for name in _PROMISES[type(promise)]},
        "strategy": mechanism.strategy.kind,
        "arrays": {name: list(array.shape) for name, array in sorted(arrays.items())},
    }


def strategy_numbers(mechanism: MatrixMechanism) -> list[Integers]:
    """The integers of the strategy of a mechanism."""
    arrays = sorted(mechanism.strategy.arrays().items())
    return [array.astype(np.int64).ravel() for _, array in arrays]


def mechanism_of_content(
    content: dict[str, Any],
    sizes: tuple[int, ...],
    numbers: Integers,
    sigma2: Fraction | None = None,
) -> tuple[MatrixMechanism, Integers]:
    """The mechanism that a file holds; its strategy is made again, and its noise.

    Older files have sigma^2 of Gaussian noise rounded up to an integer; where numbers were chosen
    after others, it is that of the most that could have been chosen,
    at most twice theirs.
    """
    shapes = content["arrays"]
    counts = {name: math.prod(shape) for name, shape in sorted(shapes.items())}
    measured = len(numbers) - sum(counts.values())
    # The last numbers are the strategy's; those before them are what was measured
    if measured < 0:
        raise ValueError(f"{len(numbers)} numbers are fewer than those of the strategy")
    parts = np.split(numbers[measured:], np.cumsum(list(counts.values()))[:-1])
    arrays = {name: part.reshape(shapes[name]) for name, part in zip(counts, parts, strict=True)}
    strategy = kind_of(content["strategy"]).of_arrays(sizes, arrays)
    promised = {name: stored_number(text) for name, text in content["promise"].items()}
    kind = next(kind for kind, names in _PROMISES.items() if promised.keys() == {*names})
    promise = kind(**promised)
    mechanism = MatrixMechanism(strategy, promise)
    noise = mechanism.noise
    if (
        isinstance(noise, DiscreteGaussian)
        and sigma2
        and (noise.sigma2 < sigma2 <= 2 * noise.sigma2 or sigma2 == math.ceil(noise.sigma2))
    ):
        mechanism = MatrixMechanism(strategy, promise, sigma2)
    return mechanism, numbers[:measured]

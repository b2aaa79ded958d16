"""Where random words come from: the operating system, or a seeded generator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mechdesign.base.linear_algebra import Words

BitSource: TypeAlias = Callable[[int], Words]
"""Given k, k uniform 64-bit words."""

_OF_WORDS = (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)
"""Bit generators whose raw outputs are the words that `numpy.random.Generator.integers` gives.

For a few words `integers` takes ten times as long.
"""


def bit_source(rng: np.random.Generator | None) -> BitSource:
    """Words from the operating system (None) or from a seeded generator."""
    if rng is None:
        return lambda size: np.frombuffer(os.urandom(8 * size), np.uint64)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be None or a numpy.random.Generator, got {type(rng).__name__}")
    if type(rng) is np.random.Generator and type(rng.bit_generator) in _OF_WORDS:
        return rng.bit_generator.random_raw
    return lambda size: rng.integers(0, 1 << 64, size=size, dtype=np.uint64)

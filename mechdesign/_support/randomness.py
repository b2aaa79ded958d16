"""Where random words come from: the operating system, or a seeded generator."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mechdesign._support.arrays import Words

BitSource: TypeAlias = Callable[[int], Words]
"""Given k, k uniform 64-bit words."""


def bit_source(rng: np.random.Generator | None) -> BitSource:
    """Words from the operating system (None) or from a seeded generator."""
    if rng is None:
        return lambda size: np.frombuffer(os.urandom(8 * size), dtype=np.uint64)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be None or a numpy.random.Generator, got {type(rng).__name__}")
    return lambda size: rng.integers(0, 1 << 64, size=size, dtype=np.uint64)

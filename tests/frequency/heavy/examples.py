"""Protocols for heavy hitters, for their tests."""

from collections.abc import Callable
from typing import Any

from frequency.heavy import OneBit, PrefixExtension, SuccinctHistogram, TreeHist, UniqueHeavyHitter

PROTOCOLS: dict[str, Callable[..., Any]] = {
    "extension": lambda text=False: PrefixExtension(16, 3.0, text),
    "tree": lambda text=False: TreeHist(8, 3.0, text),
    "unique": lambda text=False: UniqueHeavyHitter(16, 3.0, text),
    "succinct": lambda text=False: SuccinctHistogram(16, 30.0, text, hashes=1, channels=4, rows=64),
    "one bit": lambda text=False: OneBit(PrefixExtension(8, 0.6, text)),
}

"""Sources of bits that play back given words, for tests of exact draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

WORD = 1 << 64
"""The number of words of 64 bits."""


class Tape:
    """A source of bits that plays back given words.

    Parameters
    ----------
    words : iterable of int
        From 0 to ``WORD`` - 1.
    rest : Generator, optional
        Draws the words after these; by default it is an error to ask for more.
    """

    def __init__(self, words: Iterable[int], rest: np.random.Generator | None = None) -> None:
        self.words, self.used, self.rest = list(words), 0, rest

    def __call__(self, size: int) -> np.ndarray:
        taken = self.words[self.used : self.used + size]
        self.used += size
        played = np.array(taken, dtype=np.uint64)
        if self.rest is None:
            assert len(taken) == size, "more words were drawn than expected"
            return played
        more = self.rest.integers(0, WORD, size=size - len(taken), dtype=np.uint64)
        return np.concatenate([played, more])


class Constant:
    """A source of bits that gives the same word for the first calls and then goes on at random."""

    def __init__(self, word: int, calls: int) -> None:
        self.word, self.calls, self.rng = word, calls, np.random.default_rng(1)

    def __call__(self, size: int) -> np.ndarray:
        self.calls -= 1
        if self.calls >= 0:
            return np.full(size, self.word, dtype=np.uint64)
        return self.rng.integers(0, WORD, size=size, dtype=np.uint64)


def played(function: Callable[..., Any], words: Iterable[int]) -> Any:
    """What the function makes of these words; all of them must be used."""
    tape = Tape(words)
    result = function(tape)
    assert tape.used == len(tape.words), "words were left over"
    return result

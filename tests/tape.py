"""A played-back source of words, for tests of exact draws."""

from __future__ import annotations

import numpy as np


class Tape:
    """A source of bits that plays back given words, and says so when it is asked for more."""

    def __init__(self, words):
        self.words, self.used = list(words), 0

    def __call__(self, size):
        assert self.used + size <= len(self.words), "more words were drawn than expected"
        taken = self.words[self.used : self.used + size]
        self.used += size
        return np.array(taken, dtype=np.uint64)


def played(function, words):
    """What the function makes of these words; all of them must be used."""
    tape = Tape(words)
    result = function(tape)
    assert tape.used == len(words), "words were left over"
    return result

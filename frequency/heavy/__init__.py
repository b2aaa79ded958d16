"""Heavy hitters under local privacy: the frequent items of a universe too large to list.

>>> import numpy as np
>>> protocol = PrefixExtension(bits=64, epsilon=4.0, text=True)
>>> words = ["ja"] * 9_000 + ["nein"] * 5_000 + ["jein", "doch"] * 20
>>> found = protocol.find(protocol.privatize(words, np.random.default_rng(1)))
>>> found.items.tolist()
['ja', 'nein']
"""

from frequency.algebra.error_correcting_codes import Code
from frequency.heavy import plot
from frequency.heavy.error_bound import degraded, information_bound, lower_bound
from frequency.heavy.found import Found, Gate, NamedItems
from frequency.heavy.one_bit import FewBits, GenProt, OneBit
from frequency.heavy.prefix_tree import PrefixExtension, TreeHist
from frequency.heavy.protocol import HeavyHitterProtocol
from frequency.heavy.succinct_histogram import SuccinctHistogram
from frequency.heavy.unique_heavy_hitter import UniqueHeavyHitter
from frequency.heavy.universe import InvalidString, Universe

__all__ = [
    "Code",
    "FewBits",
    "Found",
    "Gate",
    "GenProt",
    "HeavyHitterProtocol",
    "InvalidString",
    "NamedItems",
    "OneBit",
    "PrefixExtension",
    "SuccinctHistogram",
    "TreeHist",
    "UniqueHeavyHitter",
    "Universe",
    "degraded",
    "information_bound",
    "lower_bound",
    "plot",
]

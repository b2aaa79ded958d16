from . import plot
from .error_bound import degraded, information_bound, lower_bound
from .found import Found, Gate, NamedItems
from .listing import InvalidString, Universe
from .prefix_tree import HeavyHitterProtocol, PrefixExtension, TreeHist
from .published.one_bit import FewBits, GenProt, OneBit
from .published.succinct_histogram import Code, SuccinctHistogram
from .published.unique_heavy_hitter import UniqueHeavyHitter

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

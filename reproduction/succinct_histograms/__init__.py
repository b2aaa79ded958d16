"""Bassily and Smith 2015: succinct histograms.

The statements have no printed numbers; orders of magnitude are measured."""

from __future__ import annotations

from reproduction.report import Part, Source
from reproduction.succinct_histograms import heavy, lower_bound, one_bit, oracle

SOURCE = Source(
    "Succinct histograms, heavy hitters",
    "Bassily, Smith: Local, Private, Efficient Protocols for Succinct Histograms, STOC 2015. No"
    " experiments: one diagram, and theorems, whose formulas are lost in the text used and were"
    " derived again.",
    (
        Part(
            "oracle-and-heavy-hitters",
            "The frequency oracle, and heavy hitters",
            (*oracle.CLAIMS, *heavy.CLAIMS),
        ),
        Part(
            "one-bit-and-lower-bound",
            "One-bit reports, and the lower bound",
            (*one_bit.CLAIMS, *lower_bound.CLAIMS),
        ),
    ),
    ("succinct-histograms-ldp",),
    "Figure 1 is a diagram.",
)

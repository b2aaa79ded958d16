"""Qardaji, Yang, Li 2013: hierarchies of counts from a trusted curator.

Variances are exact; nothing is simulated."""

from __future__ import annotations

from reproduction.central import hierarchies, inference, matrix_mechanism, tables
from reproduction.report import Part, Source

SOURCE = Source(
    "Hierarchical histograms, trusted curator",
    "Qardaji, Yang, Li: Understanding Hierarchical Methods for Differentially Private"
    " Histograms, PVLDB 6(14), 2013. The text used ends with Algorithm 1; of what follows only"
    " what others quote could be compared.",
    (
        Part("hierarchies", "Hierarchies and inference", (*hierarchies.CLAIMS, *inference.CLAIMS)),
        Part(
            "comparisons",
            "Tables, budgets, dimensions, and the matrix mechanism",
            (*tables.CLAIMS, *matrix_mechanism.CLAIMS),
        ),
    ),
    ("hierarchical-histograms-central", "thesis-marginal-range-count"),
)

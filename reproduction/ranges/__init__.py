"""Cormode, Kulkarni, Srivastava 2019, and thesis chapter 5: ranges, prefixes and quantiles."""

from __future__ import annotations

from reproduction.ranges import (
    conclusions,
    consistency,
    decompositions,
    large_domains,
    lengths,
    oracles,
    populations,
    tables,
)
from reproduction.report import Part, Source

SOURCE = Source(
    "Range queries, local privacy",
    "Cormode, Kulkarni, Srivastava: Answering Range Queries Under Local Differential Privacy,"
    " PVLDB 12, 2019 (paper); Kulkarni's thesis, chapter 5 (thesis). Tables 5.2 and 5.3 of the"
    " thesis are Figures 5 and 6 of the paper and have the same numbers, digit by digit; where"
    " the two differ both are shown.",
    (
        Part(
            "variances",
            "Oracles, hierarchies and consistency",
            (*oracles.CLAIMS, *decompositions.CLAIMS, *consistency.CLAIMS),
        ),
        Part("lengths", "Errors by the length of a range (figure 4)", lengths.CLAIMS),
        Part("tables", "Errors of ranges and prefixes (tables 5.2 and 5.3)", tables.CLAIMS),
        Part("curators", "Beside a trusted curator (table 5.4)", tables.OF_CURATORS),
        Part("large-domains", "Large domains (tables 5.2 and 5.3)", large_domains.CLAIMS),
        Part(
            "populations",
            "Conclusions, populations and quantiles",
            (*conclusions.CLAIMS, *populations.CLAIMS),
        ),
    ),
    ("range-queries-ldp", "thesis-marginal-range-count"),
    "Figure 2 (5.1) is a diagram.",
)

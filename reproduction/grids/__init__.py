"""Yang et al. 2020: conjunctions of ranges over several attributes.

Of its data sets, the two that can be generated are used; other records stand in for two more."""

from __future__ import annotations

from reproduction.grids import algorithms, cells, figures, formulas, guideline, real_records, sizes
from reproduction.report import Part, Source

SOURCE = Source(
    "Ranges over several attributes, local privacy",
    "Yang, Wang, Li, Cheng, Su: Answering Multi-Dimensional Range Queries under Local"
    " Differential Privacy, PVLDB 14(3), 2020. Its figures have no numbers in the text; what is"
    " compared is what the text says of them, and what could be read off Figure 1.",
    (
        Part("formulas", "Formulas", formulas.CLAIMS),
        Part("guideline", "The choice of granularities", guideline.CLAIMS),
        Part("algorithms", "Algorithms, and what each of them changes", algorithms.CLAIMS),
        Part("errors", "Errors by epsilon and volume (figures 1 and 2)", figures.CLAIMS),
        Part(
            "sizes",
            "Errors by the sizes of queries and data (figures 3 to 6, 23 to 27)",
            sizes.CLAIMS,
        ),
        Part(
            "cells",
            "All ranges, answers of zero, and dependence (figures 11 to 14 and 28)",
            cells.CLAIMS,
        ),
        Part("real-records", "Real records (figures 19 to 21)", real_records.CLAIMS),
    ),
    ("multidim-range-queries-ldp",),
    "Table 1 is a list of symbols, Figure 22 a diagram (its numbers are below).",
)

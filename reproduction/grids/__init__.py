"""Yang et al. 2020: conjunctions of ranges over several attributes.

Of its data sets, the two that can be generated are used; other records stand in for two more."""

from __future__ import annotations

from reproduction.grids import algorithms, cells, figures, formulas, guideline, real_records, sizes
from reproduction.report import Source

SOURCE = Source(
    "Ranges over several attributes, local privacy",
    "Yang, Wang, Li, Cheng, Su: Answering Multi-Dimensional Range Queries under Local"
    " Differential Privacy, PVLDB 14(3), 2020. Its figures have no numbers in the text; what is"
    " compared is what the text says of them, and what could be read off Figure 1.",
    (
        *formulas.CLAIMS,
        *guideline.CLAIMS,
        *algorithms.CLAIMS,
        *figures.CLAIMS,
        *sizes.CLAIMS,
        *cells.CLAIMS,
        *real_records.CLAIMS,
    ),
    ("multidim-range-queries-ldp",),
    "Table 1 is a list of symbols, Figure 22 a diagram (its numbers are below).",
)

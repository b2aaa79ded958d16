"""What follows from the law of an oracle, and from the variances of its sums alone."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, OUE, SUE, NotIdentifiable, Oracle, SubsetSelection, Tabular
from frequency.core.enumerated_oracle import EnumeratedOracle
from mechdesign import Mechanism
from tests.contracts.oracle import OracleContract, Twin, reports_of
from tests.frequency.oracles import twins
from tests.own_oracles import Bare, Exclusion, lopsided
from tests.tape import WORD


class TestExclusion(OracleContract):
    domains = (2, 3, 5)
    big_domains = (20,)
    symmetric = False

    def make(self, domain, epsilon):
        return Exclusion(domain, epsilon)

    def twin(self, oracle):
        own, items = Fraction(oracle.own, WORD), range(oracle.domain)
        other = (1 - own) / (oracle.domain - 1)
        table = [[own if x == v else other for v in items] for x in items]
        return Twin(reports_of(oracle, [(x,) for x in items]), table)


class TestBare(OracleContract):
    """The general defaults: of eight members an oracle is made that keeps every promise."""

    big_domains = (20,)
    symmetric = False

    def make(self, domain, epsilon):
        return Bare(domain, epsilon)

    def twin(self, oracle):
        grr = GRR(oracle.domain, oracle.epsilon)
        table = twins.TestGRR().twin(grr).table
        return Twin(reports_of(oracle, [(x,) for x in range(oracle.domain)]), table)


def test_an_oracle_has_eight_members() -> None:
    own = {name for name in vars(Bare) if not name.startswith("_")}
    assert own - {"choice"} == {
        "report_dtype",
        "fill",
        "possible",
        "counts_shape",
        "counts_of",
        "frequencies_of",
        "linear_variance",
        "audit",
    }
    assert not Bare.__abstractmethods__


@pytest.mark.parametrize(
    "oracle",
    [
        GRR(6, 1.0),
        OUE(6, 1.0),
        SUE(6, 1.0),
        SubsetSelection(6, 0.5),
        OLH(4, 1.0),
        HRR(8, 1.0, 2),
        Tabular(lopsided(1.0)),
        Exclusion(6, 1.0),
    ],
    ids=repr,
)
def test_general_variances_are_those_stated(oracle: Any) -> None:
    """The slow defaults are the twins of what oracles state in closed forms."""

    def general(name: str, *given: Any) -> Any:
        return getattr(Oracle, name)(oracle, *given)

    d, grid = oracle.domain, np.array([0.0, 0.3, 1.0])
    slow = Oracle.__dict__["_own_and_other"].func(oracle)
    assert oracle._own_and_other == pytest.approx(slow, rel=1e-9)
    assert general("variance", 7, grid) == pytest.approx(oracle.variance(7, grid), rel=1e-9)
    for held in (None, 2, 3):
        found = general("difference_variance", 7, held)
        assert found == pytest.approx(oracle.difference_variance(7, held), rel=1e-9)
    rng = np.random.default_rng(1)
    aggregate = oracle.aggregate(oracle.privatize(rng.integers(0, d, 500), rng))
    weights, items = rng.normal(size=(3, 3)), np.array([2, 0, 3])
    chosen = oracle.frequencies_of(aggregate, items)
    sums = general("linear_variances_of", weights, aggregate, chosen, items)
    told = oracle.linear_variances_of(weights, aggregate, chosen, items)
    if not isinstance(oracle, Tabular):  # which has more kinds of reports than items
        assert sums == pytest.approx(told, rel=1e-6)
    single = general("variances_of", aggregate, chosen, items)
    if oracle.symmetric:
        expected = oracle.variance(500, chosen)
    else:
        expected = oracle.linear_variances_of(np.eye(3), aggregate, chosen, items)
    assert single == pytest.approx(expected, rel=1e-9)


@dataclass(frozen=True)
class Vague(EnumeratedOracle):
    """Reports that tell only one item from the others."""

    @property
    def law(self) -> Mechanism:
        half = Fraction(1, 2)
        return Mechanism([[half] * self.domain] * 2, self.privacy)

    @property
    def report_dtype(self) -> Any:
        return np.dtype([("output", "u1")])

    def fill(self, items: Any, reports: Any, source: Any) -> None: ...
    def possible(self, reports: Any) -> Any: ...
    def kinds_of(self, reports: Any) -> Any: ...


def test_a_law_that_does_not_determine_the_frequencies() -> None:
    with pytest.raises(NotIdentifiable, match="rank 1"):
        Vague(3, 1.0)

"""Oracles by name, by class, as they are, and designed mechanisms; what is none is refused."""

from __future__ import annotations

from typing import Any

import pytest

from frequency import GRR, HRR, Tabular
from frequency.oracles.randomized_response import NAMED, choices_of, name_of, oracle_over
from mechdesign import Privacy, PrivacyViolation, named
from tests.own_oracles import Exclusion, lopsided


def test_every_kind_of_choice() -> None:
    for name, kind in NAMED.items():
        assert oracle_over(name, 5, 1.0) == oracle_over(kind, 5, 1.0) == kind(5, 1.0)
    assert oracle_over(Exclusion, 5, 1.0) == Exclusion(5, 1.0)
    assert oracle_over(GRR(5, 0.5), 5, 1.0) == GRR(5, 0.5)  # it may lose less
    assert oracle_over(lopsided(1.0), 4, 1.0) == Tabular(lopsided(1.0))
    two = oracle_over(lambda domain, epsilon: HRR(domain, epsilon, coefficients=2), 8, 1.0)
    assert two == HRR(8, 1.0, 2)
    assert choices_of("GRR", 3) == ("GRR",) * 3
    assert choices_of(["GRR", Exclusion], 2) == ("GRR", Exclusion)
    assert [name_of(choice) for choice in ("GRR", Exclusion, GRR(5, 1.0), lopsided(1.0))] == [
        "GRR",
        "Exclusion",
        "GRR",
        "Mechanism",
    ]


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        ("Nothing", ValueError, "unknown"),
        ("CountMeanSketch", ValueError, "unknown"),
        (None, ValueError, "must be a name"),
        (7, ValueError, "must be a name"),
        (GRR(6, 1.0), ValueError, "oracle of 6 items"),
        (lopsided(0.5), ValueError, "oracle of 4 items"),
        (lambda domain, epsilon: None, TypeError, "made no oracle"),
        (lambda domain, epsilon: GRR(domain, 2.0), PrivacyViolation, "not private"),
        (named.geometric(4, alpha=Privacy.from_epsilon(1.0).alpha), ValueError, "neighbours='all'"),
    ],
)
def test_what_is_none(choice: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        oracle_over(choice, 5, 1.0)


def test_a_mechanism_that_loses_more() -> None:
    with pytest.raises(PrivacyViolation):
        oracle_over(lopsided(1.001), 4, 1.0)


def test_other_numbers_of_choices() -> None:
    with pytest.raises(ValueError, match="2 for 3 levels"):
        choices_of(("GRR", "OUE"), 3)

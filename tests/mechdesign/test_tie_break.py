"""Canonical designs: the least squared error among all optima, and no other where that is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mechdesign import (
    Bands,
    CountPairs,
    Counts,
    Design,
    Mechanism,
    Privacy,
    design,
)
from mechdesign.losses import L0, L1, L2, Costs, Loss, Power, binomial
from mechdesign.optimisation.diagonal_program import is_unique, no_worse


def extremes(found: Design, i: int, j: int) -> tuple[Fraction, Fraction]:
    """The least and the largest P[i, j] of all optima of least squared error, by two designs.

    Of the centrally symmetric ones, if the design is.
    """
    mechanism, claim = found.mechanism, found.canonical
    assert claim is not None
    wanted: list[Any] = [*claim.properties, *no_worse(mechanism, claim)]
    cells = [weight for row in mechanism.weights for weight in row]
    wanted += ["S"] if cells == cells[::-1] and "S" not in [each.text for each in wanted] else []
    ends = []
    for wish in (0, 1):
        table = [
            [int(((a, b) == (i, j)) != wish) if b == j else 0 for b in range(mechanism.inputs)]
            for a in range(mechanism.outputs)
        ]
        least = design(
            mechanism.input_values,
            claim.privacy,
            Costs(table),
            wanted,
            outputs=mechanism.output_values,
        )
        ends.append(least.mechanism.table[i][j])
    return ends[0], ends[1]


CASES: dict[str, tuple[Any, Privacy, Loss, list[str], Any]] = {
    "WH": (2, Privacy(alpha="9/10"), L0(), ["WH"], None),
    "CM": (3, Privacy(alpha="2/3"), L0(), ["CM"], None),
    "F, distance": (2, Privacy(alpha="1/2", neighbours=2), L1(), ["F"], None),
    "worst case": (2, Privacy(alpha="3/5"), L0(worst_case=True), [], None),
    "all": (3, Privacy(alpha="1/2", neighbours="all"), L0(), ["F"], None),
    "all, nearly free": (3, Privacy(alpha="2/3", neighbours="all"), L0(1), ["RM"], None),
    "prior": (2, Privacy(alpha="4/5"), L0(prior=binomial(2, "1/3")), ["CH"], None),
    "prior of a point": (
        2,
        Privacy(alpha="4/5", neighbours=[(0, 1)]),
        L1(prior=[0, 1, 0]),
        [],
        None,
    ),
    "squared": (3, Privacy(alpha="3/5"), L2(), ["WH"], None),
    "wide": (2, Privacy(alpha="1/2"), L0(), ["unbiased"], Counts(-1, 3)),
    "bands": (3, Privacy(alpha="1/2"), L0(), ["CH"], Bands([(0, 1), (2, 3)])),
    "pairs": (CountPairs(1, 1), Privacy(alpha="2/3"), L0(), ["WH"], None),
    "perfect": (2, Privacy(alpha=1), L0(), [], None),
}


@pytest.fixture(scope="module")
def canonical() -> dict[str, Design]:
    return {
        name: design(inputs, privacy, loss, wanted, outputs=outputs, canonical=True)
        for name, (inputs, privacy, loss, wanted, outputs) in CASES.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_both_certificates_are_about_the_mechanism(name: str, canonical: dict[str, Design]) -> None:
    inputs, privacy, loss, wanted, outputs = CASES[name]
    found = canonical[name]
    plain = design(inputs, privacy, loss, wanted, outputs=outputs)
    assert plain.canonical is None
    assert not plain.unique
    assert found.certificate == plain.certificate == found.mechanism.certificate
    assert found.certificate.verify(found.mechanism)
    assert found.mechanism.loss(loss) == plain.mechanism.loss(loss)
    assert found.canonical is not None
    assert found.canonical.optimal
    assert found.canonical.verify(found.mechanism)
    squared = L2(prior=loss.prior)
    assert found.canonical.objective == found.mechanism.loss(squared)
    assert found.mechanism.loss(squared) <= plain.mechanism.loss(squared)


@pytest.mark.parametrize("name", CASES)
def test_there_is_no_other_where_that_is_said(name: str, canonical: dict[str, Design]) -> None:
    found = canonical[name]
    table, size = found.mechanism.table, len(found.mechanism.table) * found.mechanism.inputs
    some = range(0, size, 1 + size // 9)
    for i, j in (divmod(v, found.mechanism.inputs) for v in some):
        least, most = extremes(found, i, j)
        assert least <= table[i][j] <= most
        assert least == most or not found.unique


def test_some_are_unique_and_some_are_not(canonical: dict[str, Design]) -> None:
    unique = {name for name, found in canonical.items() if found.unique}
    assert {"WH", "CM", "worst case", "wide", "squared"} <= unique
    assert "prior of a point" not in unique
    least, most = extremes(canonical["prior of a point"], 0, 2)
    assert least < most


def test_the_order_of_properties_and_what_they_imply_make_no_difference() -> None:
    privacy = Privacy(alpha="9/10")
    first = design(4, privacy, properties=["WH", "CM"], canonical=True)
    other = design(4, privacy, properties=["CM", "CH", "S"], canonical=True)
    assert first.unique
    assert other.unique
    assert first.mechanism == other.mechanism


def test_one_certificate_alone_does_not_make_the_optimum_unique() -> None:
    """Of an optimum among many, as a solver may find it."""
    plain = design(2, Privacy(alpha="9/10"), L0(), ["WH"])
    found = design(2, Privacy(alpha="9/10"), L0(), ["WH"], canonical=True)
    assert found.canonical is not None
    assert not is_unique(plain.mechanism, [plain.certificate])
    assert is_unique(found.mechanism, [found.certificate, found.canonical])


def test_a_program_that_is_too_large_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.optimisation.diagonal_program._MOST_VARIABLES", 8)
    assert not design(2, Privacy(alpha="9/10"), canonical=True).unique
    assert design(1, Privacy(alpha="9/10"), canonical=True).unique


def test_where_nothing_costs_anything_nothing_is_required() -> None:
    found = design(0, Privacy(alpha="1/2"), canonical=True)
    assert found.unique
    assert no_worse(found.mechanism, found.certificate) == []


def test_the_second_certificate_can_be_saved(tmp_path: Path) -> None:
    found = design(3, Privacy(alpha="2/3"), Power("1/2", worst_case=True), ["WH"], canonical=True)
    kept = Mechanism.from_parts(found.mechanism, found.canonical)
    kept.save(tmp_path / "canonical.json")
    back = Mechanism.load(tmp_path / "canonical.json")
    assert back == found.mechanism
    assert back.certificate == found.canonical
    found.save(tmp_path / "first.json")
    assert Mechanism.load(tmp_path / "first.json").certificate == found.certificate

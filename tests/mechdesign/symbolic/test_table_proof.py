"""Tables in alpha are proved entry by entry; tables of numbers are followed where they can be."""

from fractions import Fraction as Q

import pytest

from mechdesign import Mechanism, Privacy, design
from mechdesign.local import extremal
from mechdesign.losses import L1, L2
from mechdesign.symbolic import (
    ALPHA,
    explain,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    subset_selection,
    uniform,
)
from mechdesign.symbolic.table import SymbolicMechanism
from mechdesign.symbolic.table_proof import TableProof, in_alpha
from mechdesign.utilities import MutualInformation
from tests.mechdesign.symbolic.alphas import ALL


@pytest.mark.parametrize("alpha", [Q(1, 3), Q(7, 10)])
@pytest.mark.parametrize(
    "table",
    [krr(2), krr(6), hadamard(4), subset_selection(5, 2), geometric(3), geometric(1)],
)
def test_tables_are_found_again(table, alpha):
    assert in_alpha(table.at(alpha)) == table


def test_what_has_one_law_for_all_alpha():
    assert in_alpha(uniform(3).at("1/2")) == uniform(3)


@pytest.mark.parametrize("prior", [[Q(1, 4)] * 4, [Q(1, 2), Q(1, 4), Q(1, 8), Q(1, 8)]])
def test_extremal_mechanisms_are_followed(prior):
    mechanism = extremal(
        4, Privacy(alpha="1/3", neighbours="all"), MutualInformation(prior)
    ).mechanism
    table = in_alpha(mechanism)
    assert table.at("1/3") == mechanism
    assert TableProof(table).holds


@pytest.mark.parametrize(
    ("n", "alpha", "neighbours", "loss", "properties"),
    [
        (4, "2/3", "all", L2(), ["F"]),
        (3, "1/3", "all", L1(), []),
        (4, "9/10", "adjacent", L1(), ["WH"]),
    ],
)
def test_designs_are_explained(n, alpha, neighbours, loss, properties):
    mechanism = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss, properties).mechanism
    table = in_alpha(mechanism)
    assert table.at(alpha) == mechanism
    assert Q(alpha) in TableProof(table).region
    assert TableProof(table).holds == (neighbours == "all")
    assert any(entry("19/20") != entry("18/20") for row in table.table for entry in row)


def test_other_tables_are_constants():
    tables = [
        Mechanism([["1/2", "1/3"], ["1/2", "2/3"]], Privacy(alpha="1/2", neighbours="all")),
        Mechanism([["1/2", "1/3"], [0, 0], ["1/2", "2/3"]], Privacy(alpha="2/3")),
        Mechanism([[1, 1]], Privacy(alpha=1)),
    ]
    for mechanism in tables:
        table = in_alpha(mechanism)
        assert all(entry("1/5") == entry("4/5") for row in table.table for entry in row)
        assert table.table[0][0]("1/5") == mechanism.table[0][0]


def test_a_claim_that_is_not_used_in_full():
    """A ratio of 2 under the claim of 1/3: constants, which hold up to 1/2."""
    mechanism = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy(alpha="1/3", neighbours="all"))
    assert str(TableProof(in_alpha(mechanism)).region) == "0 < α ≤ 1/2"


@pytest.mark.parametrize("table", [krr(3), krr(40), optimized_unary(3), geometric(4)])
def test_tables(table):
    proof = TableProof(table, name="table")
    assert proof.verify()
    assert proof.region == ALL == table.audit().private


def test_wrong_tables_are_refused_as_by_their_audit():
    weights = [[1 + 0 * ALPHA, ALPHA**2], [ALPHA, 1 + ALPHA - ALPHA**2]]
    for neighbours in ("all", "adjacent"):
        table = SymbolicMechanism(weights, 1 + ALPHA, neighbours)
        proof = TableProof(table, name="table")
        assert not proof.holds
        assert proof.region == table.audit().private
        assert "private only for" in proof.verify().reason


def test_constants_hold_up_to_their_own_alpha():
    third = [[Q(3, 4), Q(1, 4)], [Q(1, 4), Q(3, 4)]]
    weights = [[int(4 * p) + 0 * ALPHA for p in row] for row in third]
    assert str(TableProof(SymbolicMechanism(weights, 4 + 0 * ALPHA, "all")).region) == "0 < α ≤ 1/3"


def test_designed_mechanisms_are_proved_by_their_explanation():
    """The table of a design as rational functions, on the interval where it is private."""
    found = explain(design(3, Privacy(alpha="9/10"), properties=["WH"]))
    proof = TableProof(found.mechanism, name="designed")
    assert proof.region.covers(found.interval)
    assert proof.holds == found.mechanism.audit().holds

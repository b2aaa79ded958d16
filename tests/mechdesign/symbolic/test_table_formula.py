"""Tables of numbers are followed in alpha where their entries tell how."""

from fractions import Fraction as Q

import pytest

from mechdesign import Mechanism, Privacy, design
from mechdesign.local import extremal
from mechdesign.losses import L1, L2
from mechdesign.symbolic import geometric, hadamard, krr, subset_selection, uniform
from mechdesign.symbolic.privacy_proof import TableProof
from mechdesign.symbolic.table_formula import in_alpha
from mechdesign.utilities import MutualInformation


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
    mechanism = extremal(4, Privacy("1/3", "all"), MutualInformation(prior)).mechanism
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
    mechanism = design(n, Privacy(alpha, neighbours), loss, properties).mechanism
    table = in_alpha(mechanism)
    assert table.at(alpha) == mechanism
    assert Q(alpha) in TableProof(table).region
    assert TableProof(table).holds == (neighbours == "all")
    assert any(entry("19/20") != entry("18/20") for row in table.table for entry in row)


def test_other_tables_are_constants():
    tables = [
        Mechanism([["1/2", "1/3"], ["1/2", "2/3"]], Privacy("1/2", "all")),
        Mechanism([["1/2", "1/3"], [0, 0], ["1/2", "2/3"]], Privacy("2/3")),
        Mechanism([[1, 1]], Privacy(1)),
    ]
    for mechanism in tables:
        table = in_alpha(mechanism)
        assert all(entry("1/5") == entry("4/5") for row in table.table for entry in row)
        assert table.table[0][0]("1/5") == mechanism.table[0][0]


def test_a_claim_that_is_not_used_in_full():
    """A ratio of 2 under the claim of 1/3: constants, which hold up to 1/2."""
    mechanism = Mechanism([["2/3", "1/3"], ["1/3", "2/3"]], Privacy("1/3", "all"))
    assert str(TableProof(in_alpha(mechanism)).region) == "0 < α ≤ 1/2"

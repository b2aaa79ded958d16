"""Mechanisms for local privacy that answer with an item: the square program of thesis 6.8."""

from fractions import Fraction

import pytest

from mechdesign import Privacy, named
from mechdesign.local import square
from mechdesign.losses import L1, L2, binomial
from mechdesign.properties import ColumnHonesty, ColumnMonotone, Fairness, WeakHonesty
from tests.mechdesign.local.examples import HALF, local


@pytest.mark.parametrize("domain", [1, 2, 3, 5, 9, 16])
@pytest.mark.parametrize("alpha", ["1/100", "1/2", "9/10"])
def test_the_square_optimum_for_l0_is_generalised_randomised_response(domain, alpha):
    found = square(domain, local(alpha))
    assert found.mechanism == named.krr(domain, alpha=alpha)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.objective == 1 - 1 / (1 + (domain - 1) * Fraction(alpha))


def test_perfect_privacy_leaves_a_blind_guess():
    assert square(4, local(1)).certificate.objective == Fraction(3, 4)


def test_properties_do_not_change_generalised_randomised_response():
    """Thesis 6.8: it has all of them already."""
    plain, asked = (
        square(6, local(HALF)),
        square(6, local(HALF), properties=["RM", "CM", "F", "WH", "S"]),
    )
    assert asked.mechanism == plain.mechanism == named.krr(6, alpha=HALF)
    assert asked.certificate.gap == 0


@pytest.mark.parametrize("loss", [L1(), L2()])
def test_l1_and_l2_leave_most_outputs_unused(loss):
    """Thesis 6.8, last paragraph: pathological mechanisms as in Figure 6.1."""
    found = square(9, local(HALF), loss)
    used = [any(row) for row in found.mechanism.table]
    assert found.certificate.gap == 0
    assert used == [False, False, False, True, False, True, False, False, False]
    # The middle item is the only one between the sides
    assert len(set(zip(*found.mechanism.table, strict=True))) == 3


@pytest.mark.parametrize("loss", [L1(), L2()])
def test_at_high_privacy_l1_and_l2_answer_the_middle_whatever_the_item(loss):
    found = square(5, local("9/10"), loss)
    assert [sum(row) for row in found.mechanism.table] == [0, 0, 5, 0, 0]


@pytest.mark.parametrize("loss", [L1(), L2()])
@pytest.mark.parametrize(
    "wanted", [[WeakHonesty()], [ColumnHonesty()], [ColumnMonotone()], [Fairness()]]
)
def test_properties_repair_l1_and_l2(loss, wanted):
    plain, repaired = square(7, local(HALF), loss), square(7, local(HALF), loss, wanted)
    assert not all(map(any, plain.mechanism.table))
    assert all(map(any, repaired.mechanism.table))
    assert repaired.certificate.gap == 0
    assert repaired.certificate.objective > plain.certificate.objective


def test_the_prior_and_the_worst_case_are_those_of_the_loss():
    skewed, worst = L1(prior=binomial(4, "1/10")), L1(worst_case=True)
    assert (
        square(5, local(HALF), skewed).certificate.objective
        < square(5, local(HALF), L1()).certificate.objective
    )
    assert (
        square(5, local(HALF), worst).certificate.objective
        > square(5, local(HALF), L1()).certificate.objective
    )


def test_epsilon_stands_for_local_privacy():
    found = square(3, 1.0)
    assert found.mechanism.privacy == Privacy.from_epsilon(1.0, neighbours="all")

"""Tables of formulas in alpha: losses, audits, and what breaks privacy."""

from itertools import product

import pytest
from flint import fmpz_poly

from mechdesign import InvalidMechanism, Metric
from mechdesign.losses import L0, L1, L2, binomial
from mechdesign.symbolic import (
    ALPHA,
    SymbolicMechanism,
    explicit_fair,
    geometric,
    hadamard,
    krr,
    randomized_response,
    subset_selection,
    uniform,
)
from tests.mechdesign import brute
from tests.mechdesign.symbolic.alphas import NEAR, ONE, PARTLY, RAMP, moved, near, rationals


def test_losses_as_formulas():
    for n, loss in product((0, 1, 4), (L0(), L1(), L2(d=1), L0(prior=[1]))):
        if loss.prior is not None and n:
            loss = L2(prior=binomial(n, "1/3"))
        for table in (geometric(n), explicit_fair(n), uniform(n)):
            formula = table.loss(loss)
            assert all(formula(alpha) == table.at(alpha).loss(loss) for alpha in rationals(n, 5))
    assert str(geometric(5).loss(L0())) == "5α/(3(1 + α))"
    with pytest.raises(ValueError, match="worst case"):
        geometric(2).loss(L0(worst_case=True))


@pytest.mark.parametrize(
    ("wrong", "description"),
    [
        (
            moved(geometric(3), 1, 2, 0, ALPHA * (1 - ALPHA) ** 2),
            "alpha^2 - alpha^3 where alpha - alpha^2 belongs: never private",
        ),
        (moved(geometric(2), 0, 1, 0, (1 - 3 * ALPHA) * ALPHA**2), "private for some alpha only"),
        (moved(krr(3), 1, 0, 0, (2 * ALPHA - 1) ** 2 * ALPHA**5), "private at alpha = 1/2 only"),
        (moved(uniform(2), 0, 1, 1, 3 * ALPHA - 1), "a negative entry"),
    ],
)
def test_a_wrong_entry_is_found_with_the_alpha_at_which_it_breaks_privacy(wrong, description):
    """Mass moved within a column keeps the sums; the audit must say for which alpha privacy is
    lost, and in which entries.
    """
    audit = wrong.audit()
    assert not audit.holds, description
    assert audit.violations
    for alpha in rationals(5, 40) + [a for point in audit.private.points for a in near(point)]:
        values = [[entry(alpha) for entry in row] for row in wrong.table]
        negative = min(min(row) for row in values) < 0
        private = not negative and brute.is_private(values, alpha, wrong.neighbours)
        assert (alpha in audit.private) == private
        for i, (j, k), region in audit.violations:
            assert (alpha in region) == (values[i][k] < alpha * values[i][j])
        if negative:
            with pytest.raises(InvalidMechanism, match="negative"):
                wrong.at(alpha)
        else:
            assert wrong.at(alpha).audit().holds == private


@pytest.mark.parametrize("metric", [RAMP, NEAR, PARTLY], ids=["ramp", "near", "partly"])
@pytest.mark.parametrize(
    "table", [geometric(2), uniform(2), krr(3), explicit_fair(2)], ids=["GM", "UM", "GRR", "EM"]
)
def test_under_a_metric_the_audit_allows_a_power_of_alpha(table, metric):
    table = SymbolicMechanism(table.weights, table.denominator, metric)
    audit = table.audit()
    for alpha in rationals(11, 20) + [a for point in audit.private.points for a in near(point)]:
        values = [[entry(alpha) for entry in row] for row in table.table]
        broken = {
            (i, (j, k))
            for i, j, k in product(range(3), repeat=3)
            if metric.distances[j][k] is not None
            and values[i][k] < alpha ** metric.distances[j][k] * values[i][j]
        }
        assert {(i, pair) for i, pair, region in audit.violations if alpha in region} == broken
        assert (alpha in audit.private) == (not broken) == table.at(alpha).audit().holds


def test_what_is_tight_under_a_metric():
    line = Metric([[abs(j - k) for k in range(4)] for j in range(4)])
    doubled = Metric([[2 * abs(j - k) for k in range(4)] for j in range(4)])
    for metric, tight in ((line, True), (doubled, False)):
        audit = SymbolicMechanism(geometric(3).weights, geometric(3).denominator, metric).audit()
        assert audit.holds
        assert audit.tight == tight


def test_planted_errors_leave_exactly_the_alpha_that_they_should():
    third = moved(krr(3), 1, 0, 0, (2 * ALPHA - 1) ** 2 * ALPHA**5)
    assert str(third.audit().private) == "α = 1/2"
    assert not moved(geometric(3), 1, 2, 0, ALPHA * (1 - ALPHA) ** 2).audit().private


def test_tables_that_are_none_are_refused():
    with pytest.raises(InvalidMechanism, match=r"column 1 sums to 2α/\(1 \+ α\)"):
        SymbolicMechanism(((ONE, ALPHA), (ALPHA, ALPHA)), 1 + ALPHA)
    with pytest.raises(InvalidMechanism, match="rows of one length"):
        SymbolicMechanism(((ONE,), (ALPHA, ALPHA)), 1 + ALPHA)
    with pytest.raises(InvalidMechanism, match="0"):
        SymbolicMechanism(((fmpz_poly([0]),),), fmpz_poly([0]))
    with pytest.raises(ValueError, match="names input 7"):
        SymbolicMechanism(((ONE,),), ONE, [(0, 7)])
    for call in (
        lambda: geometric(-1),
        lambda: explicit_fair(True),
        lambda: krr(0),
        lambda: hadamard(6),
        lambda: hadamard(1),
    ):
        with pytest.raises(ValueError, match="at least"):
            call()
    with pytest.raises(ValueError, match="the size of a set must be a number of items, 1 to 3"):
        subset_selection(3, 4)


def test_equal_tables_are_equal_whatever_their_denominator():
    doubled = SymbolicMechanism(
        tuple(tuple(2 * w for w in row) for row in geometric(3).weights),
        2 * geometric(3).denominator,
    )
    assert doubled == geometric(3)
    assert hash(doubled) == hash(geometric(3))
    assert doubled != explicit_fair(3)
    assert geometric(1) == explicit_fair(1) == randomized_response()
    assert krr(2) != randomized_response()  # neighbours differ in name
    assert subset_selection(4, 1).table == krr(4).table

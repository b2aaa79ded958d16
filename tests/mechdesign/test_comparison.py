"""Mechanisms side by side: the numbers are those of the mechanisms, and names are escaped."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from mechdesign import Mechanism, Privacy, design, named
from mechdesign.losses import L0, L1, L2, binomial
from mechdesign.mechanism.comparison import compare
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.requirements import AtLeast


@pytest.mark.parametrize("prior", [None, binomial(4, "1/3")])
def test_a_row_has_the_numbers_of_its_mechanism(prior: tuple[object, ...] | None) -> None:
    tables = {"GM": named.geometric(4, alpha="9/10"), "EM": named.explicit_fair(4, alpha="9/10")}
    rows = compare(tables, prior).rows
    assert [row["mechanism"] for row in rows] == ["GM", "EM"]
    for row, mechanism in zip(rows, tables.values(), strict=True):
        assert float(row["L0"]) == pytest.approx(float(mechanism.loss(L0(prior=prior))), abs=1e-5)
        assert float(row["L1"]) == pytest.approx(float(mechanism.loss(L1(prior=prior))), abs=1e-4)
        assert float(row["RMSE"]) == pytest.approx(
            mechanism.error_distribution(prior).rmse, rel=1e-4
        )
        assert float(row["unbiased SE"]) == pytest.approx(
            UnbiasedEstimate(mechanism).standard_error(prior), rel=1e-4
        )
        assert float(row["scaled L0"]) == pytest.approx(float(mechanism.scaled_l0()), abs=1e-5)
        assert {short: row[short] == "yes" for short in mechanism.properties()} == (
            mechanism.properties()
        )


def test_losses_and_properties_of_ones_own_are_columns() -> None:
    tables = {"GM": named.geometric(4, alpha="9/10"), "UM": named.uniform(4)}
    worst = L2(worst_case=True)
    rows = compare(
        tables, losses={"worst L2": worst}, properties=["OR:1", AtLeast(0, 0, "2/5")]
    ).rows
    for row, mechanism in zip(rows, tables.values(), strict=True):
        assert float(row["worst L2"]) == pytest.approx(float(mechanism.loss(worst)), abs=1e-4)
        assert (row["OR:1"], row["at-least:0,0=2/5"]) == (
            ("-", "yes") if row["mechanism"] == "GM" else ("yes", "-")
        )
    with pytest.raises(ValueError, match="unknown property 'mine'"):
        compare(tables, properties=["mine"])


def test_a_table_that_is_not_private_and_a_rectangular_one_say_so() -> None:
    leaky = Mechanism([[1, 0], [0, 1]], Privacy(alpha="1/2"))
    wide = Mechanism([["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]], Privacy(alpha="1/2"))
    text = str(compare({"leaky": leaky, "wide": wide}))
    assert "NOT PRIVATE" in text.splitlines()[1]
    assert compare({"wide": wide}).rows[0]["scaled L0"] == "-"


def test_single_cells_and_totals_ask_for_different_mechanisms() -> None:
    """Standard errors of one group's unbiased estimate; untruncated noise has 13.4 and 1.4."""
    weakly_honest = design(8, Privacy(alpha="9/10"), L0(), ["WH", "CM"]).mechanism
    small = {"GM": named.geometric(8, alpha="9/10"), "WM": weakly_honest}
    small |= {"EM": named.explicit_fair(8, alpha="9/10"), "UM": named.uniform(8)}
    rows = {row["mechanism"]: row for row in compare(small).rows}
    shown = {name: float(row["unbiased SE"]) for name, row in rows.items() if name != "UM"}
    assert {name: round(error, 1) for name, error in shown.items()} == {
        "GM": 10.7,  # 10.748
        "WM": 19.5,
        "EM": 35.4,  # 35.447
    }
    assert rows["UM"]["unbiased SE"] == "-"
    assert min(rows, key=lambda name: float(rows[name]["RMSE"])) == "WM"
    assert round(discrete_laplace(Fraction(9, 10)), 1) == 13.4
    alpha = Privacy.from_epsilon(1).alpha
    large = {"GM": named.geometric(20, alpha=alpha), "EM": named.explicit_fair(20, alpha=alpha)}
    large["WM"] = named.weakly_honest(20, alpha=alpha, column_monotone=True)
    errors = [float(row["unbiased SE"]) for row in compare(large).rows]
    assert all(1.3 < error < 1.9 for error in [*errors, discrete_laplace(alpha)])


def discrete_laplace(alpha: Fraction) -> float:
    """The standard deviation of noise with probabilities in proportion to alpha^|d|."""
    return math.sqrt(2 * alpha) / float(1 - alpha)


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="no mechanism"):
        compare({})
    with pytest.raises(ValueError, match="as many inputs"):
        compare({"a": named.uniform(2), "b": named.uniform(3)})

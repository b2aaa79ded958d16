"""Mechanisms side by side: the numbers are those of the mechanisms, and names are escaped."""

from __future__ import annotations

import pytest

from mechdesign import Mechanism, Privacy, named
from mechdesign.comparison import compare
from mechdesign.losses import L0, L1, binomial


@pytest.mark.parametrize("prior", [None, binomial(4, "1/3")])
def test_a_row_has_the_numbers_of_its_mechanism(prior: tuple[object, ...] | None) -> None:
    tables = {"GM": named.geometric(4, "9/10"), "EM": named.explicit_fair(4, "9/10")}
    rows = compare(tables, prior).rows
    assert [row["mechanism"] for row in rows] == ["GM", "EM"]
    for row, mechanism in zip(rows, tables.values(), strict=True):
        assert float(row["L0"]) == pytest.approx(float(mechanism.loss(L0(prior=prior))), abs=1e-5)
        assert float(row["L1"]) == pytest.approx(float(mechanism.loss(L1(prior=prior))), abs=1e-4)
        assert float(row["RMSE"]) == pytest.approx(
            mechanism.error_distribution(prior).rmse, abs=1e-4
        )
        assert float(row["scaled L0"]) == pytest.approx(float(mechanism.scaled_l0()), abs=1e-5)
        assert {short: row[short] == "yes" for short in mechanism.properties()} == (
            mechanism.properties()
        )


def test_a_table_that_is_not_private_and_a_rectangular_one_say_so() -> None:
    leaky = Mechanism([[1, 0], [0, 1]], Privacy("1/2"))
    wide = Mechanism([["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]], Privacy("1/2"))
    text = str(compare({"leaky": leaky, "wide": wide}))
    assert "NOT PRIVATE" in text.splitlines()[1]
    assert compare({"wide": wide}).rows[0]["scaled L0"] == "-"


def test_what_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="no mechanism"):
        compare({})
    with pytest.raises(ValueError, match="as many inputs"):
        compare({"a": named.uniform(2), "b": named.uniform(3)})

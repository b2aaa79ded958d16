"""Suppression beside a mechanism: errors are those of the publications, exactly."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from mechdesign import InvalidCount, Privacy, UnbiasedEstimate, design, named
from mechdesign.tables import suppression_comparison
from mechdesign.tables.suppression import SuppressionRule
from mechdesign.tables.suppression_comparison import SuppressionComparison, compare_suppression

PRIVACY = Privacy(alpha="1/2")
COUNTS = [[3, 12, 9], [20, 31, 0]]
LABELS = [["north", "south"], ["young", "middle", "old"]]


def compared(
    rule: SuppressionRule | None = None, counts: object = COUNTS, **more: object
) -> SuppressionComparison:
    return compare_suppression(counts, rule or SuppressionRule(7, 5), PRIVACY, **more)


def test_errors_of_suppression_are_those_of_what_is_taken() -> None:
    found = compared(labels=LABELS)
    by_name = {row.labels: row for row in found.rows}
    assert len(by_name) == 12
    taken = {
        ("north", "young"): ("*", 3, 3, 0),  # 23 are young, and 18 to 22 of them in the south
        ("south", "middle"): ("30", 31, 31, -1),
        ("south", "old"): ("0", 0, 0, 0),
        ("north", "total"): ("24", 24, 24, 0),
    }
    for labels, (published, low, high, error) in taken.items():
        row = by_name[labels]
        assert row.published == published, labels
        assert row.low <= low <= high <= row.high
        middle = (row.low + row.high) / 2
        truth = {"*": 3}.get(published, low)
        assert row.error == (middle - truth if published == "*" else error)
    assert [row.is_total for row in found.rows] == [False] * 6 + [True] * 6
    assert (found.rows[0].name, found.rows[-1].name) == ("north, young", "grand total")
    errors = [row.error for row in found.rows[:6]]
    assert found.rmse()[0] == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert found.rmse(totals=True)[0] == 0


def test_totals_that_are_not_published_are_taken_from_what_is_possible() -> None:
    found = compared(SuppressionRule(7, totals="none"), [3, 12])
    total = found.rows[-1]
    assert (total.published, total.low, total.high) == ("", 13, 18)
    assert total.error == 15.5 - 15


def test_designed_mechanisms_have_their_exact_errors() -> None:
    sizes = np.add(COUNTS, [1, 2, 3])
    found = compared(sizes=sizes, labels=LABELS)
    variances = np.zeros((2, 3))
    for row, count, size in zip(found.rows, np.ravel(COUNTS), sizes.flat, strict=False):
        mechanism = named.geometric(int(size), alpha="1/2")  # the best for L0
        column = mechanism.matrix[:, count]
        distance = abs(np.arange(size + 1) - count)
        assert row.mean_absolute == pytest.approx(column @ distance)
        assert row.rmse == pytest.approx(math.sqrt(column @ distance**2))
        variances.flat[found.rows.index(row)] = UnbiasedEstimate(mechanism).variances[count]
    totals = [row.rmse for row in found.rows[6:]]
    expected = [*variances.sum(1), *variances.sum(0), variances.sum()]
    assert totals == pytest.approx(np.sqrt(expected))
    assert found.rmse(totals=True)[1] == pytest.approx(math.sqrt(np.mean(expected)))
    assert "mechanism: the geometric one of each size; whatever" in str(found)


def test_without_sizes_counts_have_discrete_laplace_noise() -> None:
    found = compared()
    x = np.arange(-60, 61)
    weights = 0.5 ** abs(x) / 3
    for row in found.rows[:6]:
        assert row.mean_absolute == pytest.approx(weights @ abs(x))
        assert row.rmse == pytest.approx(math.sqrt(weights @ x**2))
    assert found.rows[-1].rmse == pytest.approx(math.sqrt(6 * weights @ x**2))
    assert found.mechanism == "discrete Laplace noise"


def test_large_groups_have_noise_unless_a_design_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suppression_comparison, "LARGEST_TRUNCATED", 5)
    found = compared(counts=[3, 7], sizes=[5, 8])
    assert found.mechanism == (
        "the geometric one of each size up to 5, above discrete Laplace noise"
    )
    assert found.rows[1].rmse == pytest.approx(2)  # sqrt(2 alpha) / (1 - alpha)
    found = compared(counts=[3, 7], sizes=[5, 8], properties=["WH", "CM"])
    mechanism = design(8, PRIVACY, properties=["WH", "CM"]).mechanism
    assert found.mechanism == "designed for the size of each group"
    assert found.rows[1].mean_absolute == pytest.approx(
        mechanism.matrix[:, 7] @ abs(np.arange(9) - 7)
    )


def test_a_mechanism_without_an_unbiased_estimate_says_so() -> None:
    found = compare_suppression([1, 2], SuppressionRule(2), Privacy(alpha="1"), sizes=[2, 3])
    assert [row.rmse is None for row in found.rows] == [False, False, True]
    assert found.rmse(totals=True)[1] is None
    assert "over totals: suppression 0.00, mechanism without an unbiased estimate" in str(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_what_is_disclosed_is_counted_by_kind() -> None:
    found = compared(SuppressionRule(7, 5, totals="rounded"), [[3, 7], [20, 1]])
    assert found.disclosed().entries == 2
    rounded = found.disclosed(suppressed=False)
    assert (rounded.entries, rounded.recovered) == (2, 1)  # a 5 is rounded from 7: 6 has a mark
    assert found.disclosed(totals=True).entries == 0
    assert found.disclosed(totals=True, suppressed=False).entries == 5
    text = str(found)
    assert "suppressed cells: 2, of which readers recover" in text
    assert "suppressed totals" not in text


def test_a_search_that_is_cut_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mechdesign.tables.suppression_reconstruction._NODES", 0)
    found = compared()
    assert found.disclosed().open > 0
    assert "more perhaps, the search was cut off" in str(found)
    assert "within 3 to 4" in str(found)


def test_the_dictionary_has_it_all() -> None:
    found = compared(labels=LABELS)
    read = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert read["rule"] == {
        "threshold": 7,
        "base": 5,
        "rounding": "nearest",
        "zeros": False,
        "complementary": False,
        "totals": "exact",
    }
    assert (read["alpha"], read["mechanism"]) == ("1/2", "discrete Laplace noise")
    assert len(read["entries"]) == 12
    assert read["entries"][0]["labels"] == ["north", "young"]
    assert read["disclosed"]["suppressed cells"] == found.disclosed()._asdict()
    assert read["rmse"]["cells"]["suppression"] == found.rmse()[0]


def test_the_text_is_safe_to_print() -> None:
    text = str(compared(labels=[["no\x1b[2Jrth", "south"], *LABELS[1:]]))
    assert "\x1b" not in text


def test_wrong_requests() -> None:
    with pytest.raises(ValueError, match=r"along each axis, \[2, 3\], got \[3\]"):
        compared(labels=LABELS[1:])
    with pytest.raises(ValueError, match="takes the sizes of groups"):
        compared(properties=["WH"])
    with pytest.raises(InvalidCount):
        compared(sizes=np.zeros((2, 3), int))
    with pytest.raises(ValueError, match="adjacent"):
        compare_suppression(COUNTS, SuppressionRule(7), Privacy(alpha="1/2", neighbours="all"))

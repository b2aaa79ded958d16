"""The figure of suppression beside a mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign import Privacy
from mechdesign.tables.suppression import SuppressionRule
from mechdesign.tables.suppression_comparison import compare_suppression
from tests.pictures import collisions, legend, ticks


def test_it_has_a_line_for_each_entry_and_texts_have_room() -> None:
    labels = [["north", "a rather long name of the other region"], ["$18^39$", "40+", "unknown"]]
    counts = [[3, 12, 9], [20, 31, 0]]
    found = compare_suppression(counts, SuppressionRule(7, 5), Privacy("1/2"), labels=labels)
    figure = found.plot()
    assert collisions(figure) == []
    assert len(ticks(figure, "y")) == 12
    assert "north, $18^39$" in ticks(figure, "y")
    assert legend(figure)[-1] == "mechanism: root mean square error"


def test_a_small_and_a_large_table() -> None:
    rule = SuppressionRule(7)
    assert collisions(compare_suppression([3], rule, Privacy("1/2")).plot()) == []
    large = np.full((12, 11), 9)
    with pytest.raises(ValueError, match="1 to 150 cells and totals, this table 156"):
        compare_suppression(large, rule, Privacy("1/2")).plot()

"""The figure of suppression beside a mechanism."""

from __future__ import annotations

import numpy as np
import pytest

from mechdesign import Privacy
from mechdesign.tables.suppression import SuppressionRule
from mechdesign.tables.suppression_comparison import compare_suppression
from tests.pictures import collisions, legend, ticks


@pytest.mark.slow
def test_it_has_a_line_for_each_entry_and_texts_have_room() -> None:
    labels = [["north", "a rather long name of the other region"], ["$18^39$", "40+", "unknown"]]
    counts = [[3, 12, 9], [20, 31, 0]]
    found = compare_suppression(counts, SuppressionRule(7, 5), Privacy(alpha="1/2"), labels=labels)
    figure = found.plot()
    assert collisions(figure) == []
    assert len(ticks(figure, "y")) == 12
    assert "north, $18^39$" in ticks(figure, "y")
    assert legend(figure)[-1] == "mechanism: root mean square error"


RECOVERED, PUBLISHED = (
    "suppression: hidden, but recovered exactly",
    "suppression: published as it is",
)


def marked(figure, label: str) -> set[str]:
    """The entries with a mark of some look."""
    found = set()
    for axes in figure.axes:
        names = [text.get_text() for text in axes.get_yticklabels()]
        for line in axes.lines:
            if line.get_label() == label:
                found |= {names[round(y + 0.16)] for y in np.asarray(line.get_ydata()).tolist()}
    return found


@pytest.mark.parametrize(
    ("rule", "recovered", "published"),
    [
        (SuppressionRule(7), {"a, x", "c, x", "c, y"}, 13),
        (SuppressionRule(7, 5), set(), 8),
        (SuppressionRule(7, 5, totals="none"), set(), 1),
        (SuppressionRule(1), set(), 16),
    ],
)
def test_only_what_was_hidden_is_marked_as_recovered(rule, recovered, published) -> None:
    labels = [["a", "b", "c"], ["x", "y", "z"]]
    counts = [[3, 12, 9], [20, 31, 0], [5, 2, 11]]
    found = compare_suppression(counts, rule, Privacy.from_epsilon(1), labels=labels)
    figure = found.plot()
    assert marked(figure, RECOVERED) == recovered
    assert len(recovered) == sum(found.disclosed(totals=k).recovered for k in (False, True))
    shown = marked(figure, PUBLISHED)
    assert len(shown) == published
    exact = {row.name for row in found.rows if row.low == row.high}
    assert shown | recovered == exact
    assert not shown & recovered
    assert (RECOVERED in legend(figure)) == bool(recovered)
    assert PUBLISHED in legend(figure)
    assert collisions(figure) == []


@pytest.mark.slow
def test_the_legend_names_what_any_of_the_panels_shows() -> None:
    counts = np.array([2, *[9] * 58, 3])  # two are hidden: the sum of both is known
    rule = SuppressionRule(7)
    figure = compare_suppression(counts, rule, Privacy(alpha="1/2")).plot()
    assert legend(figure)[0] == "suppression: possible counts"
    assert RECOVERED not in legend(figure)
    counts[0] = 9  # the last one alone is hidden, in the second panel
    figure = compare_suppression(counts, rule, Privacy(alpha="1/2")).plot()
    assert marked(figure, RECOVERED) == {"59"}
    assert set(legend(figure)) == {RECOVERED, PUBLISHED, "mechanism: root mean square error"}
    assert collisions(figure) == []


@pytest.mark.slow
@pytest.mark.parametrize(("cells", "panels"), [(39, 1), (60, 2), (120, 4)])
def test_many_entries_are_in_panels_beside_each_other(cells: int, panels: int) -> None:
    counts = np.random.default_rng(1).poisson(8, cells)
    found = compare_suppression(counts, SuppressionRule(7), Privacy(alpha="1/2"))
    figure = found.plot()
    assert collisions(figure) == []
    names = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert (len(figure.axes), len(names), names[-1]) == (panels, cells + 1, "total")
    assert len({axes.get_xlim() for axes in figure.axes}) == 1
    assert figure.get_figheight() < 12
    below = [line for axes in figure.axes for line in axes.lines if line.get_linestyle() == "--"]
    assert [np.asarray(line.get_ydata())[0] for line in below] == [
        len(figure.axes[-1].get_yticks()) - 1.5
    ]


def test_a_small_and_a_large_table() -> None:
    rule = SuppressionRule(7)
    assert collisions(compare_suppression([3], rule, Privacy(alpha="1/2")).plot()) == []
    large = np.full((12, 11), 9)
    with pytest.raises(ValueError, match="1 to 150 cells and totals, this table 156"):
        compare_suppression(large, rule, Privacy(alpha="1/2")).plot()

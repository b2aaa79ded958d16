"""The distribution of the error of an answer, by its definition."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechdesign import Mechanism, named
from mechdesign.losses import L0, prior
from tests.mechdesign.drawn_tables import tables
from tests.mechdesign.programs import HALF

SETTINGS = settings(derandomize=True, deadline=None, max_examples=80)


@SETTINGS
@given(tables(), st.data())
def test_error_distribution_by_definition(table, data):
    inputs = len(table[0])
    weights = data.draw(
        st.one_of(
            st.none(),
            st.lists(st.integers(0, 4), min_size=inputs, max_size=inputs).filter(any).map(prior),
        )
    )
    chances = weights or (Fraction(1, inputs),) * inputs
    cells = [(i - j, chances[j] * table[i][j]) for i in range(len(table)) for j in range(inputs)]
    spread = Mechanism(table, HALF).error_distribution(weights)
    assert list(spread.histogram) == list(range(1 - inputs, len(table)))
    for error, chance in spread.histogram.items():
        assert chance == sum(p for e, p in cells if e == error)
    assert sum(spread.histogram.values()) == 1
    for d in range(5):
        assert spread.tail(d) == sum(p for e, p in cells if abs(e) > d)
        assert spread.tail(d) == Mechanism(table, HALF).loss(L0(d, weights))
    assert spread.bias == sum(e * p for e, p in cells)
    assert spread.mean_square == sum(e * e * p for e, p in cells)
    assert spread.rmse == pytest.approx(math.sqrt(sum(e * e * p for e, p in cells)), rel=1e-14)


def columns(text: str) -> list[list[str]]:
    """The cells of a printed table, without its heading and its last line."""
    first, *lines, _ = text.split("\n")
    starts = [first.index(name) for name in ("d ", "error -d", "error +d", "|error|")]
    ends = [*starts[1:], len(first) + 9]
    return [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in lines]


@SETTINGS
@given(tables(), st.integers(0, 3))
def test_the_printed_table_states_the_distribution_and_never_too_much(table, shift):
    spread = Mechanism([[Fraction(0)] * len(table[0])] * shift + table, HALF).error_distribution()
    rows = columns(str(spread))
    largest = max(abs(error) for error, p in spread.histogram.items() if p)
    assert [int(row[0]) for row in rows] == list(range(largest + 1))
    for d, (_, *cells) in enumerate(rows):
        chances = [spread.histogram.get(-d, 0), spread.histogram.get(d, 0), 1 - spread.tail(d)]
        assert (cells[0] == "") == (d == 0)
        for chance, cell in list(zip(chances, cells, strict=True))[d == 0 :]:
            shown = Fraction(cell.removesuffix(" %").lstrip("<>")) / 100
            assert abs(shown - chance) <= Fraction(1, 10**4)
            assert (shown in (0, 1)) == (chance in (0, 1))
            assert shown <= chance or cell[0] == "<"
    assert rows[-1][-1] == "100 %"


@pytest.mark.slow
def test_long_tables_skip_errors_and_all_end_with_the_moments():
    spread = named.geometric(200, alpha="9/10").error_distribution()
    first = [row[0] for row in columns(str(spread))]
    assert first == [*map(str, range(11)), "20", "50", "100", "128"]  # beyond, hardly any
    assert max(map(len, str(spread).split("\n"))) < 60
    end = f"bias 0, RMSE {spread.rmse:.4g}"
    assert str(spread).endswith("\n" + end)
    assert repr(spread) == f"<ErrorDistribution up to 128 either way: {end}>"
    assert columns(str(named.uniform(0).error_distribution())) == [["0", "", "100 %", "100 %"]]

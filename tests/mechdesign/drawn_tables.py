"""Tables that tests draw."""

from fractions import Fraction

from hypothesis import strategies as st


@st.composite
def tables(draw, square=False):
    """Column-stochastic tables with many zeros and ties."""
    rows = draw(st.integers(1, 5))
    columns = rows if square else draw(st.integers(1, 5))
    drawn = [
        draw(
            st.lists(st.sampled_from([0, 0, 1, 1, 2, 3, 7]), min_size=rows, max_size=rows).filter(
                any
            )
        )
        for _ in range(columns)
    ]
    return [[Fraction(column[i], sum(column)) for column in drawn] for i in range(rows)]

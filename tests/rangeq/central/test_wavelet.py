"""The central wavelet against the published numbers."""

import pytest

from rangeq.central import Hierarchy, Wavelet


@pytest.mark.parametrize(
    ("domain", "printed", "found"), [(1 << 8, 221.62, 221.13), (1 << 9, 306.31, 305.95)]
)
def test_table_of_average_variances_of_wavelets(domain, printed, found):
    """What is printed is 0.2 % and 0.1 % more than the exact average over all ranges."""
    m = Wavelet(domain, 1.0)
    assert round(m.average_variance(), 2) == found
    assert 0.3 < printed - m.average_variance() < 0.5


def test_an_epsilon_for_too_many_levels_is_refused():
    with pytest.raises(ValueError, match="too small for a level"):
        Wavelet((8,) * 8, 2.0**-32)
    Wavelet((4,) * 8, 2.0**-28)


def test_conclusions_of_the_table():
    """The wavelet does as well as H_2 and worse than H_16 by a factor (thesis, section 5.5.2: at
    least 1.86).
    """
    for k, ratio in ((8, 2.79), (9, 1.86), (10, 2.1), (11, 2.4)):
        wavelet, two, sixteen = (
            m.average_variance()
            for m in (Wavelet(1 << k, 1.0), Hierarchy(1 << k, 1.0, 2), Hierarchy(1 << k, 1.0, 16))
        )
        assert wavelet / sixteen > ratio
        assert abs(wavelet / two - 1) < 0.01

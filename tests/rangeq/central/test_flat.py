"""The central histogram without a hierarchy."""

import numpy as np

from rangeq.central import CentralFlat


def test_short_ranges_of_large_domains():
    """The variance of the few cells in a very wide node is not the difference of large numbers."""
    m = CentralFlat((1 << 26) - 5, 1.0)
    a = np.array([0, 1 << 25, m.domain // 3, m.domain - 3])
    (noise,) = m.noise
    assert noise is not None
    np.testing.assert_allclose(m.range_variance(a, a + 2), 3 * float(noise.variance), rtol=1e-13)

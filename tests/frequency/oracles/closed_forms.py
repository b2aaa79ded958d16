"""Comparison with closed forms of the literature."""

import numpy as np

from tests.contracts.oracle import LN3

EPSILONS = (0.1, 1.0, LN3, 3.0, 10.0)


def is_near(found, expected):
    """The weights are rounded to the private side, by less than one part in 10^6 of epsilon."""
    np.testing.assert_allclose(found, expected, rtol=1e-4)

"""The figure of a list of heavy hitters shows what it says."""

import numpy as np
import pytest

from frequency.heavy import PrefixExtension, plot


def test_figure():
    protocol = PrefixExtension(8, 2.0)
    found = protocol.find(protocol.privatize(np.arange(3000) % 3, np.random.default_rng(1)), k=5)
    (axes,) = plot.heavy_hitters(found, {0: 1 / 3, 1: 1 / 3, 2: 1 / 3}, largest=3).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        str(item) for item in found.items[:3]
    ]
    assert "3 largest of 5" in axes.get_title(loc="left")
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.heavy_hitters(found, largest=0)
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.heavy_hitters(protocol.find(np.zeros(0, dtype=protocol.report_dtype)))

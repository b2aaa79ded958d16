"""Maps of users who send no positions: densities, and counts in regions of any shape.

>>> from rangeq.grids import best
>>> grid = SpatialGrid.covering([(-74.05, 40.68), (-73.9, 40.88)], cell=500, geographic=True)
>>> protocol = best(grid.domain, epsilon=1.0, n=100_000)
>>> protocol.attributes
Domain({'x': 26, 'y': 45})
"""

from rangeq.spatial.disk_area import DiskArea
from rangeq.spatial.estimate import SpatialEstimate
from rangeq.spatial.grid import InvalidPoint, SpatialGrid
from rangeq.spatial.optimal_transport import wasserstein
from rangeq.spatial.square_wave_2d import SquareWave2D

__all__ = [
    "DiskArea",
    "InvalidPoint",
    "SpatialEstimate",
    "SpatialGrid",
    "SquareWave2D",
    "wasserstein",
]

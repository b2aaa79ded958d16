"""Maps of users who send no positions: densities, and counts in regions of any shape.

>>> from rangeq.spatial import SpatialGrid
>>> from rangeq.grids import best
>>> grid = SpatialGrid.covering([(-74.05, 40.68), (-73.9, 40.88)], cell=500, geographic=True)
>>> protocol = best(grid.domain, epsilon=1.0, n=100_000)
>>> protocol.attributes
Domain({'x': 26, 'y': 45})
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

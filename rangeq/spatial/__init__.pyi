from .disk_area import DiskArea
from .grid import InvalidPoint, SpatialGrid, wasserstein
from .likelihood import SpatialEstimate, SquareWave2D

__all__ = [
    "DiskArea",
    "InvalidPoint",
    "SpatialEstimate",
    "SpatialGrid",
    "SquareWave2D",
    "wasserstein",
]

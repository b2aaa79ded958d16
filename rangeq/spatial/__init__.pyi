from .disk_area import DiskArea
from .estimate import SpatialEstimate
from .grid import InvalidPoint, SpatialGrid
from .optimal_transport import wasserstein
from .square_wave_2d import SquareWave2D

__all__ = [
    "DiskArea",
    "InvalidPoint",
    "SpatialEstimate",
    "SpatialGrid",
    "SquareWave2D",
    "wasserstein",
]

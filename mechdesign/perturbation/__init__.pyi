from .disclosure import DeltaCurve, Disclosure, OneSided, Piece
from .table import PerturbationTable

__all__ = [
    "DeltaCurve",
    "Disclosure",
    "OneSided",
    "PerturbationTable",
    "Piece",
]

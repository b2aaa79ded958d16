from .axes import Axes, Where
from .consistent_table import ConsistentTable, WholeTable
from .contingency import (
    ContingencyRelease,
    Margin,
    release_contingency,
)
from .design_cache import DesignCache
from .estimates import CellEstimate, TotalEstimate, WeightedEstimate
from .publication import PublishedTable
from .suppression import SuppressedTable, SuppressionRule
from .suppression_comparison import (
    ComparedEntry,
    Disclosed,
    SuppressionComparison,
    compare_suppression,
)
from .suppression_reconstruction import TableReconstruction, reconstruct
from .table_release import ContingencyStatement, Neighbours, TableRelease, TableStatement, release

__all__ = [
    "Axes",
    "CellEstimate",
    "ComparedEntry",
    "ConsistentTable",
    "ContingencyRelease",
    "ContingencyStatement",
    "DesignCache",
    "Disclosed",
    "Margin",
    "Neighbours",
    "PublishedTable",
    "SuppressedTable",
    "SuppressionComparison",
    "SuppressionRule",
    "TableReconstruction",
    "TableRelease",
    "TableStatement",
    "TotalEstimate",
    "WeightedEstimate",
    "Where",
    "WholeTable",
    "compare_suppression",
    "reconstruct",
    "release",
    "release_contingency",
]

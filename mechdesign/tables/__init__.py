"""Tables of counts: released with a statement of privacy and totals; and what suppression hides."""

from mechdesign.tables.axes import Axes, Where
from mechdesign.tables.consistent_table import ConsistentTable, WholeTable
from mechdesign.tables.contingency import (
    ContingencyRelease,
    Margin,
    release_contingency,
)
from mechdesign.tables.design_cache import DesignCache
from mechdesign.tables.estimates import CellEstimate, TotalEstimate
from mechdesign.tables.statement import ContingencyStatement, Neighbours, TableStatement
from mechdesign.tables.suppression import SuppressedTable, SuppressionRule
from mechdesign.tables.suppression_comparison import (
    ComparedEntry,
    Disclosed,
    SuppressionComparison,
    compare_suppression,
)
from mechdesign.tables.suppression_reconstruction import TableReconstruction, reconstruct
from mechdesign.tables.table_release import TableRelease, release
from mechdesign.tables.weighted_estimate import WeightedEstimate

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

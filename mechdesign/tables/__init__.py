"""Tables of counts: released with a statement of privacy and totals; and what suppression hides."""

from mechdesign.tables.design_cache import DesignCache
from mechdesign.tables.estimates import CellEstimate, TotalEstimate
from mechdesign.tables.statement import TableStatement
from mechdesign.tables.suppression import SuppressedTable, SuppressionRule
from mechdesign.tables.suppression_comparison import (
    ComparedEntry,
    Disclosed,
    SuppressionComparison,
    compare_suppression,
)
from mechdesign.tables.suppression_reconstruction import TableReconstruction, reconstruct
from mechdesign.tables.table_release import TableRelease, release

__all__ = [
    "CellEstimate",
    "ComparedEntry",
    "DesignCache",
    "Disclosed",
    "SuppressedTable",
    "SuppressionComparison",
    "SuppressionRule",
    "TableReconstruction",
    "TableRelease",
    "TableStatement",
    "TotalEstimate",
    "compare_suppression",
    "reconstruct",
    "release",
]

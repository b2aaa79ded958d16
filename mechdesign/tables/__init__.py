"""Tables of counts: what suppression and rounding give away, beside a mechanism."""

from mechdesign.tables.suppression import SuppressedTable, SuppressionRule
from mechdesign.tables.suppression_comparison import (
    ComparedEntry,
    Disclosed,
    SuppressionComparison,
    compare_suppression,
)
from mechdesign.tables.suppression_reconstruction import TableReconstruction, reconstruct

__all__ = [
    "ComparedEntry",
    "Disclosed",
    "SuppressedTable",
    "SuppressionComparison",
    "SuppressionRule",
    "TableReconstruction",
    "compare_suppression",
    "reconstruct",
]

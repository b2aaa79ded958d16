from .boxes import BoxSums, BoxTree, halved, tree_over
from .cuts import Cuts
from .estimate import (
    AttributeQuantiles,
    Distribution,
    EstimatedDistribution,
    InvalidRange,
    RangeEstimate,
    checked_ends,
)
from .haar import Haar, blocks, cells_of
from .levels import ContrastLaw, Levels, NodeLaw, NodeSums, average_nodes, runs, squared_nodes
from .protocol import ConsistentTree, EvenErrors, RangeProtocol, before, even_rmse, level_estimates
from .record_channel import RecordChannel
from .tree import Tree, checked_workload, inverse, mean_over, padded, spread
from .tree_errors import TreeErrors
from .tree_inference import LevelInference, TreeInference, consistent, contrast_precisions
from .workload_sums import (
    REFERENCE_POPULATIONS,
    blocks_inside,
    checked_shares,
    pairs_in_blocks,
    pairs_together,
    queries,
    reference_shares,
)

__all__ = [
    "REFERENCE_POPULATIONS",
    "AttributeQuantiles",
    "BoxSums",
    "BoxTree",
    "ConsistentTree",
    "ContrastLaw",
    "Cuts",
    "Distribution",
    "EstimatedDistribution",
    "EvenErrors",
    "Haar",
    "InvalidRange",
    "LevelInference",
    "Levels",
    "NodeLaw",
    "NodeSums",
    "RangeEstimate",
    "RangeProtocol",
    "RecordChannel",
    "Tree",
    "TreeErrors",
    "TreeInference",
    "average_nodes",
    "before",
    "blocks",
    "blocks_inside",
    "cells_of",
    "checked_ends",
    "checked_shares",
    "checked_workload",
    "consistent",
    "contrast_precisions",
    "even_rmse",
    "halved",
    "inverse",
    "level_estimates",
    "mean_over",
    "padded",
    "pairs_in_blocks",
    "pairs_together",
    "queries",
    "reference_shares",
    "runs",
    "spread",
    "squared_nodes",
    "tree_over",
]

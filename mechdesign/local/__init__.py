"""Mechanisms for local privacy, where every two items are neighbours.

- `square`: outputs that are the items, at the least expected loss;
- `extremal`: any outputs, of the largest utility: information, divergences, decisions
  (`mechdesign.utilities`);
- `workload_optimal`: any outputs, of the least variance for a set of linear queries
  (`mechdesign.local.linear_queries`);
- `shuffle_optimal`: the same for reports that are shuffled, whose collection is to be private.
"""

from mechdesign.local.extremal_mechanism import Extremal, extremal
from mechdesign.local.shuffled_mechanism import ShuffleDesign, shuffle_optimal
from mechdesign.local.square_mechanism import square
from mechdesign.local.workload_mechanism import WorkloadDesign, workload_optimal

__all__ = [
    "Extremal",
    "ShuffleDesign",
    "WorkloadDesign",
    "extremal",
    "shuffle_optimal",
    "square",
    "workload_optimal",
]

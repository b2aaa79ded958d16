"""Mechanisms for local privacy, where every two items are neighbours.

- `square`: outputs that are the items, at the least expected loss;
- `extremal`: any outputs, of the largest utility: information, divergences, decisions
  (`mechdesign.utilities`);
- `workload_optimal`: any outputs, of the least variance for a set of linear queries
  (`mechdesign.local.patterns`);
- `shuffle_optimal`: the same for reports that are shuffled, whose collection is to be private.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

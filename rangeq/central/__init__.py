"""Histograms of ordered cells from a trusted curator: one noisy release answers every query.

The curator holds the exact number of users in each of D ordered cells, or in each cell of a table
of several attributes, and adds noise; users' data reach the curator as they are (the local
protocols of `rangeq` need no such trust). Two data sets are neighbours when one has one user more.
Then one count of every level of a tree changes, by one.

`CentralFlat` asks for the cells alone (`rangeq.Flat` is its local namesake); `Hierarchy` for the
nodes of a tree over them, all but the root (Qardaji, Yang, Li 2013; Hay et al. 2010); `Wavelet` for
Haar coefficients (Xiao, Wang, Gehrke 2010). Noise is drawn exactly, see
`mechdesign.noise.discrete`.

>>> import numpy as np
>>> from rangeq.central import Hierarchy, Wavelet, best_branching, workload_optimal
>>> tree = Hierarchy(256, epsilon=1.0, branching=16)
>>> round(tree.average_variance(), 2), round(Wavelet(256, 1.0).average_variance(), 2)
(79.23, 221.13)
>>> estimate = tree.release(np.full(256, 1000), rng=np.random.default_rng(1))
>>> abs(estimate.range(0, 99) - 100_000) < 100
True

Of several attributes every box is answered, with its exact variance:

>>> from frequency import Between
>>> table = Hierarchy((100, 37), epsilon=1.0, branching=best_branching((100, 37), 1.0).best.fanouts)
>>> people = np.random.default_rng(1).integers(0, 50, (100, 37))
>>> answer = table.release(people).answer({0: Between(18, 64), 1: [3, 7, 20]})
>>> bool(abs(answer.value - people[18:65, [3, 7, 20]].sum()) < 6 * answer.variance**0.5)
True

What suits given queries best is designed: `workload_optimal` finds what to measure, and with which
noise, with proved bounds on what could be gained, by strategies of real noise or by any mechanism.

>>> from mechdesign import ZCDP
>>> design = workload_optimal("ranges", 256, ZCDP("1/2"))
>>> round(design.variance, 2), round(design.continuous_bound, 2), round(design.bound, 2)
(8.42, 8.42, 6.52)

Quantiles alone are had with less noise from `quantiles`: a few by the exponential mechanism, many
from a smoothed tree. Small counts of regions in regions, such as wards in counties, are released by
`release_regions`. Of a table with a `frequency.schema.Schema`, what is published is a `Release`: an
object and a file that answer in labels and units. `count_cells` counts the table; ``mechdesign
curate`` does it all in a shell.

Unlike the fractions of local protocols, all answers here are numbers of users. The total number of
users is not taken as known.

Literature
----------
Qardaji, Yang, Li 2013: Understanding hierarchical methods for differentially private histograms
(PVLDB 6(14)). Hay, Rastogi, Miklau, Suciu 2010: Boosting the accuracy of differentially private
histograms through consistency. Xiao, Wang, Gehrke 2010: Differential privacy via wavelet
transforms. Cormode, Procopiuc, Srivastava, Shen, Yu 2012: Differentially private spatial
decompositions.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

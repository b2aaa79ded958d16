"""CALM as a system for ranges: the marginals of all pairs, summed up value by value.

Multi-dimensional ranges, section 3.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from frequency.core.aggregate import Aggregate
from mechdesign.base.linear_algebra import Floats
from rangeq.grids.cells import MOST_CELLS
from rangeq.grids.errors import GridErrors
from rangeq.grids.fitting import agreeing
from rangeq.grids.systems.tdg import TDG


@dataclass(frozen=True)
class RangeCALM(TDG):
    """CALM over pairs: TDG whose cells are single values.

    Zhang et al., CCS 2018, as in section 3.2. By default marginals agree on single attributes, and
    are not made non-negative before they are summed up: answers about one or two attributes are
    unbiased, and may be negative. As the paper compares with it, CALM is ``nonnegative``.

    `frequency.marginals.CALM` chooses its own sets of attributes and answers any marginals; this
    one looks at all pairs, has no bound on the number of different records, and answers ranges like
    the other systems here. A pair may have 2^22 cells.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: see `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    n : int, optional
        Not used.
    granularity : int or tuple of int, optional
        Not to be chosen: the sizes.
    oracle : str, class, Oracle or Mechanism, default "OLH"
        As for `TDG`.
    nonnegative : bool, default False
        The published post-processing: norm-sub and consistency by turns, as in `TDG` (section 4.2).
        Marginals are then distributions, answers biased, and their errors not stated
        (`frequency.UnknownVariance`). Norm-sub over thousands of cells that are mostly noise leaves
        mostly noise: at 64 values, an epsilon of 1 and 10^6 users answers about two attributes err
        four times as much (`python benchmarks/published_grids.py`).

    Examples
    --------
    >>> RangeCALM(sizes=[64, 10], epsilon=1.0).granularity
    (64, 10)
    """

    privacy_source: ClassVar[str] = "multi-dimensional ranges, section 3.2"

    nonnegative: bool = False

    def _check(self) -> None:
        super()._check()
        sizes = self.attributes.sizes
        if max(sizes[j] * sizes[k] for j, k in self.attributes.pairs) > MOST_CELLS:
            raise ValueError(f"a pair of attributes has more than {MOST_CELLS} cells")

    def _granularities(self, name: str, places: int) -> tuple[int, ...]:
        if self.granularity not in (None, self.attributes.sizes):
            raise ValueError(
                "the cells of CALM are single values: its granularity cannot be chosen"
            )
        return self.attributes.sizes

    def _agreeing(self, tables: list[Floats], precisions: Floats) -> list[Floats]:
        if self.nonnegative:
            return super()._agreeing(tables, precisions)
        return agreeing(self.channel.grids, tables, precisions)

    def _errors(self, aggregate: Aggregate, tables: list[Floats]) -> GridErrors | None:
        return None if self.nonnegative else super()._errors(aggregate, tables)

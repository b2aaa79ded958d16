"""Which system to take: the noise of each for an average query, and a recommendation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from frequency.core.oracle import checked_users
from mechdesign._support.numbers import Rational
from mechdesign._support.text import aligned
from rangeq.grids.attributes import Attributes
from rangeq.grids.cells import Grid
from rangeq.grids.channel import GridChannel, cell_variance
from rangeq.grids.protocol import ConjunctionProtocol
from rangeq.grids.systems.calm import RangeCALM
from rangeq.grids.systems.hdg import HDG
from rangeq.grids.systems.hio import HIO
from rangeq.grids.systems.lhio import LHIO
from rangeq.grids.systems.msw import MSW
from rangeq.grids.systems.tdg import TDG
from rangeq.grids.systems.uniform import Uniform
from rangeq.grids.wavegrid.protocol import WaveGrid

_WORSE_THAN_A_GUESS = 0.25
"""A query with half of each of two attributes is answered by 1/4 without any reports: noise above
that makes estimates worse than that.
"""

_NOTHING_TO_GAIN = 0.002
"""Unbiased answers of single values as cells that are this good are as good as those of any system:
attributes have few values.
"""


@dataclass(frozen=True)
class SystemCandidate:
    """A system with the standard deviation of noise and sampling of an average query.

    That query covers half of the cells along each of two attributes (of the only one, for one
    attribute), of grids before post-processing; of what hierarchies make of theirs it is an upper
    bound of little use, so that they have none. That of square waves depends on the data.

    Attributes
    ----------
    system : ConjunctionProtocol
        The protocol.
    groups : int
        How many groups users are divided into.
    deviation : float
        As a fraction of the population; NaN where it is unknown.
    """

    system: ConjunctionProtocol
    groups: int
    deviation: float


@dataclass(frozen=True)
class SystemChoice:
    """What `plan` found; ``print(plan)`` shows the table.

    Attributes
    ----------
    candidates : tuple of SystemCandidate
        Every system that these attributes allow.
    recommended : ConjunctionProtocol
        The system to take, unless there are other requirements than accuracy and length.
    reason : str
        Why it is that one.
    """

    candidates: tuple[SystemCandidate, ...]
    recommended: ConjunctionProtocol
    reason: str

    def __str__(self) -> str:
        rows = [("system", "groups", "deviation")]
        for item in self.candidates:
            mark = "*" if item.system == self.recommended else " "
            known = "" if math.isnan(item.deviation) else f"{item.deviation:.3g}"
            rows.append((f"{mark} {type(item.system).__name__}", str(item.groups), known))
        return "\n".join([*aligned(rows), f"* {type(self.recommended).__name__}: {self.reason}"])


def plan(sizes: Any, epsilon: float | Rational, n: int) -> SystemChoice:
    """Every system of this package that can serve these attributes, and the one to take.

    Parameters
    ----------
    sizes : sequence of int, mapping or Domain
        The number of values of each attribute: as for `ConjunctionProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int
        The number of users expected, at least 1.

    Returns
    -------
    SystemChoice
        The candidates, and a recommendation with its reason.

    Raises
    ------
    ValueError
        For sizes, an epsilon or an n out of range.

    Examples
    --------
    >>> print(plan([64] * 6, 1.0, 10**6).reason)
    square waves tell of attributes and of pairs at once, and estimates are as smooth as the data
    """
    attributes, users = Attributes.of(sizes), checked_users(n)
    found: dict[str, SystemCandidate] = {}
    for kind in (WaveGrid, HDG, TDG, RangeCALM, LHIO, HIO, MSW, Uniform):
        try:
            system = kind(attributes, epsilon, users)
        except ValueError:
            continue  # too many cells or levels, or too few attributes
        found[kind.__name__] = SystemCandidate(
            system, len(system.channel.parts), _deviation(system, users)
        )
    chosen, reason = _choose(attributes, found)
    return SystemChoice(tuple(found.values()), found[chosen].system, reason)


def _choose(attributes: Attributes, found: dict[str, SystemCandidate]) -> tuple[str, str]:
    if "RangeCALM" in found and found["RangeCALM"].deviation <= _NOTHING_TO_GAIN:
        return (
            "RangeCALM",
            (
                f"noise of {found['RangeCALM'].deviation:.3g} with single values as cells leaves"
                " nothing for assumptions to gain"
            ),
        )
    if "WaveGrid" in found:
        return (
            "WaveGrid",
            (
                "square waves tell of attributes and of pairs at once, and estimates are as smooth"
                " as the data"
            ),
        )
    if len(attributes) == 1:
        return "MSW", "there is one attribute, and the square wave needs no cells"
    grids = found["HDG"]
    if grids.deviation > _WORSE_THAN_A_GUESS:
        return (
            "MSW",
            (
                f"noise of {grids.deviation:.3g} would drown how attributes go together; their"
                " distributions are left"
            ),
        )
    if "RangeCALM" in found and found["RangeCALM"].deviation <= grids.deviation:
        return (
            "RangeCALM",
            (
                f"single values as cells have noise of {found['RangeCALM'].deviation:.3g}, no more"
                " than grids that merge them"
            ),
        )
    return (
        "HDG",
        (
            f"noise of {grids.deviation:.3g} is small enough to tell how attributes go together; "
            f"1-D grids of up to {_finest(grids.system)} cells show what 2-D cells hide"
        ),
    )


def _finest(system: ConjunctionProtocol) -> int:
    return max((grid.cells for grid in _grids(system) if len(grid.places) == 1), default=1)


def _grids(system: ConjunctionProtocol) -> tuple[Grid, ...]:
    return system.channel.grids if isinstance(system.channel, GridChannel) else ()


def _deviation(system: ConjunctionProtocol, n: int) -> float:
    """The deviation of an average query, from the largest grid of up to two attributes.

    That query covers half of the cells along each axis.
    """
    if isinstance(system, Uniform):
        return 0.0
    if not isinstance(system, TDG):
        return math.nan
    several = min(len(system.attributes), 2)
    variances = [
        grid.cells / 2**several * cell_variance(part) * len(system.channel.parts) / n
        for grid, part in zip(_grids(system), system.channel.parts, strict=True)
        if len(grid.places) == several
    ]
    return math.sqrt(max(variances))

"""The choice of an oracle for a domain, a privacy loss and a number of users."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from frequency.core.oracle import Oracle
from frequency.oracles.count_mean_sketch import CountMeanSketch, HadamardCountMeanSketch
from frequency.oracles.hadamard_response import HRR
from frequency.oracles.johnson_lindenstrauss import JLOracle
from frequency.oracles.local_hashing import OLH
from frequency.oracles.projective_geometry import ProjectiveGeometry
from frequency.oracles.randomized_response import GRR
from frequency.oracles.subset_selection import SubsetSelection
from frequency.oracles.unary_encoding import OUE, SUE
from mechdesign._support.numbers import Rational
from mechdesign._support.text import aligned

_COSTS: dict[type[Oracle], tuple[str, str]] = {
    GRR: ("1", "n + D"),
    SUE: ("D", "n D"),
    OUE: ("D", "n D"),
    SubsetSelection: ("D", "n D"),
    OLH: ("log D", "n + q D log D"),
    ProjectiveGeometry: ("log D", "n + q D log D"),
    HRR: ("1", "n + D log D"),
    CountMeanSketch: ("width", "n width + hashes D"),
    HadamardCountMeanSketch: ("log width", "n + hashes (width log width + D)"),
    JLOracle: ("log D", "n + rows D"),
}
"""Elementary steps up to a constant, to make one report and to turn n of them into estimates of the
whole domain.
"""

_SHORT = 64
"""Bits of a report that costs nothing worth mentioning to send."""

_MEMORY = 1 << 32
"""Bytes of a server's table beyond which an oracle is left out."""


@dataclass(frozen=True)
class OracleCandidate:
    """An oracle with its predicted error and its costs.

    Attributes
    ----------
    rmse : float
        The root mean square error over the domain: exact, whatever the frequencies, but for
        sketches the worst case over them.
    bits : int
        Information in a report.
    client, server : str
        Steps to make a report, and to estimate all frequencies from n reports: orders of growth.
    memory : int
        Bytes of an aggregate.
    """

    oracle: Oracle
    rmse: float
    bits: int
    client: str
    server: str
    memory: int


@dataclass(frozen=True)
class Choice:
    """What `choose` found; ``print(choice)`` shows the table.

    Attributes
    ----------
    candidates : tuple of OracleCandidate
        Most accurate first.
    recommended : Oracle
        The oracle to take, unless there are other requirements than accuracy and length.
    reason : str
        Why it is that one.
    """

    candidates: tuple[OracleCandidate, ...]
    recommended: Oracle
    reason: str

    def __str__(self) -> str:
        rows = [("oracle", "RMSE", "bits", "client", "server", "memory")]
        for item in self.candidates:
            mark = "*" if item.oracle == self.recommended else " "
            name = f"{mark} {type(item.oracle).__name__}"
            rows.append(
                (
                    name,
                    f"{item.rmse:.3g}",
                    str(item.bits),
                    item.client,
                    item.server,
                    _bytes(item.memory),
                )
            )
        return "\n".join([*aligned(rows), f"* {type(self.recommended).__name__}: {self.reason}"])


def choose(domain: int, epsilon: float | Rational, n: int) -> Choice:
    """Every oracle that can serve this domain, and the one to take.

    GRR below 3 exp(epsilon) + 2 items (thesis 2.4.2); otherwise the most accurate whose report is a
    few bytes and whose table fits the server, the shortest report where two are within one per
    cent.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: as for `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    n : int
        The number of users expected, at least 1.

    Returns
    -------
    Choice
        The oracles with their errors and costs, and the recommended one.

    Raises
    ------
    ValueError
        A domain, epsilon or number of users out of range.

    >>> print(choose(domain=1024, epsilon=1.0, n=1_000_000).reason)
    RMSE 0.00192 is 0.2% above the least, that of SubsetSelection, with 11 bits instead of 1024
    """
    found = sorted(_candidates(domain, epsilon, n), key=lambda item: (item.rmse, item.bits))
    best = found[0]
    small = 3 * math.exp(min(float(epsilon), 700.0)) + 2
    if domain < small:
        chosen = next(item for item in found if isinstance(item.oracle, GRR))
        why = (
            f"the domain, {domain}, is below 3 e^epsilon + 2 = {small:.4g}, so the simplest oracle"
            " is good"
        )
        return Choice(tuple(found), chosen.oracle, f"{why}: {_against(chosen, best)}")
    short = [item for item in found if item.bits <= _SHORT]
    chosen = min(
        (item for item in short if item.rmse <= 1.01 * short[0].rmse), key=lambda item: item.bits
    )
    return Choice(tuple(found), chosen.oracle, _against(chosen, best))


def _against(chosen: OracleCandidate, best: OracleCandidate) -> str:
    if chosen.rmse <= best.rmse:
        return f"RMSE {chosen.rmse:.3g} is the least"
    gap, name = f"{100 * (chosen.rmse / best.rmse - 1):.1f}%", type(best.oracle).__name__
    return (
        f"RMSE {chosen.rmse:.3g} is {gap} above the least, that of {name}, with {chosen.bits} bits"
        f" instead of {best.bits}"
    )


def _candidates(domain: int, epsilon: float | Rational, n: int) -> Iterator[OracleCandidate]:
    JLOracle(domain, epsilon)  # refuses what no oracle takes
    for kind, (client, server) in _COSTS.items():
        if domain <= kind.largest_domain:
            oracle = kind(domain, epsilon)
            memory = 8 * math.prod(oracle._shape)
            if memory <= _MEMORY:
                yield OracleCandidate(
                    oracle,
                    math.sqrt(oracle.variance(n, 1 / domain)),
                    oracle.report_bits,
                    client,
                    server,
                    memory,
                )


def _bytes(number: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if number < 1024:
            return f"{number:.3g} {unit}"
        number /= 1024
    return f"{number:.3g} GiB"

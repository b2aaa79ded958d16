"""extremal(...): the local mechanism of largest utility with any outputs, and its proof.

Kairouz, Oh and Viswanath, Extremal mechanisms for local differential privacy, JMLR 17, 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import fmpq

from mechdesign.base import Rational, brief, precision, whole
from mechdesign.local.column_generation import Candidates, generated
from mechdesign.lp.basis import Program, to_fmpq, to_fraction
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.privacy import Privacy
from mechdesign.utilities.sublinear_utility import PRECISION, Pattern, Utility


@dataclass(frozen=True)
class Extremal:
    """A locally private mechanism, its utility, and a proved bound on that of all others.

    Attributes
    ----------
    mechanism : Mechanism
        Exact, its privacy audited; no more outputs than items.
    utility : Utility
        What the mechanism maximises.
    value : Fraction
        The utility of the mechanism: exact where that is rational, else proved and rounded down in
        the 30th digit or beyond.
    bound : Fraction
        A proved upper bound for every mechanism with this privacy, with any number of outputs.
    prices : tuple of Fraction
        The proof, shape (domain,): ``sum(prices) == bound``, and no row with entries in
        {alpha, 1} has a utility above ``sum_x prices[x] row[x]``.
    """

    mechanism: Mechanism
    utility: Utility
    value: Fraction
    bound: Fraction
    prices: tuple[Fraction, ...] = field(repr=False)

    @property
    def gap(self) -> Fraction:
        """The difference bound - value >= 0: exactly 0 for rational utilities; see `extremal`."""
        return self.bound - self.value

    @property
    def optimal(self) -> bool:
        """Whether no mechanism has a greater utility: the gap is exactly 0."""
        return self.gap == 0

    def __str__(self) -> str:
        proof = (
            "proved optimal, gap exactly 0"
            if self.optimal
            else f"gap at most {brief(self.gap, 3)} (proved)"
        )
        return (
            f"{self.utility!r} = {brief(self.value, 10)} under {self.mechanism.privacy!r}, "
            f"{self.mechanism.outputs} outputs for {self.mechanism.inputs} items: {proof}"
        )


def extremal(
    domain: int, privacy: Privacy | float | Rational, utility: Utility, *, progress: bool = False
) -> Extremal:
    """Return the locally private mechanism of largest utility, with any number of outputs.

    Some optimal mechanism has only rows with entries 1 and alpha, up to a factor, and no more
    outputs than items (Kairouz, Oh and Viswanath, JMLR 17, 2016): a linear program over 2^domain
    patterns. Items that the utility cannot tell apart are merged, and patterns that it finds
    equally good are counted as one. Where at most `mechdesign.local.column_generation.ENUMERATED`
    patterns are left, ``gap`` is exactly 0 for rational utilities, and for others below 10^-30 of
    the utility of a row. If more are left, patterns are generated as needed: the gap of a
    `BestDecision` is still exactly 0 and that of a `Divergence` tiny; for `MutualInformation` it is
    what a relaxation proves, which is tight where no item has a large probability compared to
    exp(-epsilon).

    Parameters
    ----------
    domain : int
        The number of items 0 .. domain-1, at least 1.
    privacy : Privacy, float, Fraction, int, str or Decimal
        ``Privacy(alpha=alpha, neighbours="all")``, or epsilon as a number.
    utility : Utility
        One of `mechdesign.utilities`, over as many items.
    progress : bool, default False
        Show what is going on, on standard error.

    Returns
    -------
    Extremal

    Raises
    ------
    ValueError
        No item, a utility over another number of items, or other neighbours than all.
    SolverFailure
        No exact answer could be computed.

    Examples
    --------
    >>> from mechdesign.utilities import total_variation
    >>> distance = total_variation(["1/2", "1/2", 0], [0, "1/2", "1/2"])
    >>> found = extremal(3, Privacy(alpha="1/2", neighbours="all"), distance)

    The value is (1 - alpha) / (1 + alpha) times the distance of the hypotheses:

    >>> found.value, found.gap, found.mechanism.outputs
    (Fraction(1, 6), Fraction(0, 1), 2)
    """
    domain, privacy = whole_domain(domain), local_privacy(privacy)
    if not isinstance(utility, Utility):
        raise TypeError(
            f"utility must be a Utility, such as MutualInformation(prior), got {utility!r:.60}"
        )
    if utility.items != domain:
        raise ValueError(f"the utility is about {utility.items} items, not {domain}")
    alpha = to_fmpq(privacy.alpha)
    merged = utility.merged()
    # Near alpha = 1 all rows are nearly constant, and utilities cancel in their leading digits:
    # four bits for each bit of 1 - alpha are twice what the square loses.
    # The differences between rows shrink with the square of 1 - alpha.
    with precision(
        PRECISION + 4 * max(0, int(alpha.q).bit_length() - int(alpha.q - alpha.p).bit_length())
    ):
        patterns = Candidates(merged.utility, alpha)
        weights, prices = generated(patterns, progress)
    rows = _pruned(patterns.rows(weights), alpha)
    table = [[levels[number] for number in merged.label] for levels in rows]
    mechanism = Mechanism(table, privacy)
    mechanism.audit().require()
    shared = tuple(
        share * to_fraction(prices[number])
        for number, share in zip(merged.label, merged.share, strict=True)
    )
    return Extremal(mechanism, utility, utility.of(mechanism)[0], sum(shared, Fraction(0)), shared)


def _pruned(rows: dict[Pattern, Fraction], alpha: fmpq) -> list[list[Fraction]]:
    """Return a table with these patterns, reweighted to have no more outputs than items."""
    # All the patterns have reduced cost 0, so all weights that make a mechanism are optimal.
    chosen = sorted(rows, reverse=True)
    levels = [
        [Fraction(1) if high else to_fraction(alpha) for high in pattern] for pattern in chosen
    ]
    weights = [rows[pattern] for pattern in chosen]
    if len(chosen) > len(chosen[0]):
        cells = np.arange(len(chosen))[None, :]
        program = (
            Constraints(cells, column, Fraction(1), True, f"item {x}")
            for x, column in enumerate(zip(*levels, strict=True))
        )
        # A vertex of a program with one equation per item has at most that many positive weights
        # (Caratheodory): any feasible basic solution will do, hence the objective 0.
        weights = certify(Program((Fraction(0),) * len(chosen), tuple(program))).x
    return [
        [weight * level for level in row]
        for weight, row in zip(weights, levels, strict=True)
        if weight
    ]


def whole_domain(domain: int) -> int:
    """Return the number of items; ValueError for what is none."""
    return whole(domain, "the domain", 1, what="a whole number of items")


def local_privacy(privacy: Privacy | float | Rational) -> Privacy:
    """Return the privacy, given as such or by epsilon; ValueError unless all are neighbours."""
    if not isinstance(privacy, Privacy):
        return Privacy.from_epsilon(privacy, neighbours="all")
    if privacy.neighbours != "all":
        raise ValueError(
            'local privacy is between every two items: Privacy(alpha=alpha, neighbours="all"), got'
            f" {privacy!r:.80}"
        )
    return privacy

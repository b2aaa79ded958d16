"""Generalised randomised response: the item itself, or another one.

Binary randomised response is the same for two items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from frequency.algebra import Coins, TruthOrLie
from frequency.core import (
    Aggregate,
    EnumeratedOracle,
    Fingerprints,
    Likelihood,
    Menu,
    Oracle,
    Reports,
    Step,
    Support,
    lies,
    local_privacy,
    smallest_integer,
    variance_of,
    variance_of_scores,
)
from frequency.oracles.affine_selection import AffineSelection
from frequency.oracles.hadamard_response import HRR
from frequency.oracles.local_hashing import OLH
from frequency.oracles.projective_geometry import ProjectiveGeometry
from frequency.oracles.subset_selection import SubsetSelection
from frequency.oracles.unary_encoding import OUE, SUE
from mechdesign import Audit, Mechanism, Privacy, PrivacyViolation, named
from mechdesign.accounting.pair_law import PairLaw, PairLaws, TableLaws
from mechdesign.base import BitSource, Floats, Items, Rational, set_fields, shown
from mechdesign.symbolic.proof_rules import Randomiser, favouring

_SMALL = 8  # the domain up to which the table itself is stated to be shuffled


@dataclass(frozen=True)
class GRR(Oracle):
    """GRR, k-ary randomised response, INPPS: the truth, or a uniform other item.

    Source: thesis 2.4.2. The most accurate when the domain is small: below about 3 exp(epsilon) + 2
    items. A report is an item.

    Parameters
    ----------
    domain : int
        The number of items, at least 1: see `Oracle`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.

    Examples
    --------
    >>> GRR(domain=4, epsilon=1.0).audit().holds
    True
    """

    privacy_source: ClassVar[str] = "thesis, section 2.4.2"

    @cached_property
    def _choice(self) -> TruthOrLie:
        return TruthOrLie.within(self.max_ratio, self.domain)

    @cached_property
    def support(self) -> Support:
        return Support(self._choice.p, self._choice.q if self.domain > 1 else Fraction(0))

    def pair_laws(self) -> Sequence[PairLaw] | PairLaws:
        if not 2 <= self.domain <= _SMALL:
            return super().pair_laws()
        # Of bits, and of few users' reports, privacy is known exactly from the table.
        return TableLaws(self.mechanism.sampler.weights)

    @property
    def mechanism(self) -> Mechanism:
        """The same as a table of domain^2 entries, whose rows are reports.

        It is `mechdesign.named.krr` for the likelihood ratio that is sampled.
        """
        return named.krr(self.domain, alpha=1 / self._choice.ratio)

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype([("item", smallest_integer(self.domain - 1))])

    @property
    def fingerprints(self) -> Fingerprints:
        return Fingerprints(self.domain)

    @property
    def report_bits(self) -> int:
        return (self.domain - 1).bit_length()

    def _details(self) -> dict[str, Any]:
        return {"truth": str(self._choice.truth), "lie": str(self._choice.lie)}

    @property
    def client_half(self) -> Step:
        return lies(self.domain, self._choice.lie, self.report_dtype.itemsize)

    def fill(self, items: Items, reports: Reports, source: BitSource) -> None:
        reports["item"] = (items + self._choice.draw(len(items), source)) % self.domain

    def possible(self, reports: Reports) -> npt.NDArray[np.bool_]:
        return reports["item"] <= self.domain - 1

    def cells_of(self, reports: Reports) -> Items:
        return reports["item"].astype(np.int64)[:, None]

    def reports_of(self, kinds: Items) -> Reports:
        """A report of each kind: the inverse of `cells_of`.

        Parameters
        ----------
        kinds : numpy.ndarray of int64
            Shape (users,), items.

        Returns
        -------
        structured numpy.ndarray
            Shape (users,), of ``report_dtype``.
        """
        reports = np.zeros(len(kinds), dtype=self.report_dtype)
        reports["item"] = kinds
        return reports

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        user_counts = self._held(items, counts)
        # With probability p - q the truth, otherwise any item, the true one included, all equally
        # likely.
        kept = rng.binomial(user_counts, float(self.p - self.q))
        return kept + rng.multinomial(
            int((user_counts - kept).sum()), np.full(self.domain, 1 / self.domain)
        )

    def likelihood_of(self, aggregate: Aggregate) -> Likelihood:
        q, more = float(self.q), float(self.p - self.q)
        return Likelihood(
            self.domain,
            aggregate.counts.astype(np.float64),
            lambda frequencies: q + more * frequencies,
            lambda numbers: more * numbers + q * numbers.sum(),
        )

    def difference_variance(self, n: int, held: int | None = None) -> float:
        # (2 (p + (d - 1) q) / (d (p - q)^2) - 2 / d) / n for d items that occur
        # The square of what a report contributes, [x] - [z] over p - q, is 1 / (p - q)^2 for two of
        # the reports.
        p, q, d = self.p, self.q, held or self.domain
        return float(variance_of(n, 2 * (p + (d - 1) * q) / d / (p - q) ** 2 - Fraction(2, d)))

    @property
    def likelihoods(self) -> tuple[tuple[Fraction, ...], ...]:
        return (self._choice.likelihoods,)

    def blank(self, coins: Coins) -> Reports:
        reports = np.zeros(len(coins), dtype=self.report_dtype)
        reports["item"] = coins.uniform(0, self.domain)
        return reports

    def menus(self, largest: int) -> tuple[Menu, ...]:
        return (Menu.of(self.domain, 1, largest),)

    def candidate(self, reports: Reports, numbers: Items, largest: int) -> Reports:
        result = reports.copy()
        result["item"] = (reports["item"].astype(np.int64) + numbers) % self.domain
        return result

    def likelihood(self, reports: Reports, items: Items) -> Items:
        return (reports["item"] == items).astype(np.int64)

    def _likely_together(self, items: Items) -> Fraction:
        return Fraction(len(items) == 1, self.domain)

    def audit(self) -> Audit:
        # Report y has weight ``truth`` under value y and ``lie`` under every other value.
        return Audit(self._choice.ratio, self.max_ratio, 0, (0, min(1, self.domain - 1)))

    def proof(self) -> Randomiser:
        name, source = type(self).__name__, self.privacy_source
        return favouring(1, self.domain - 1, name=name, source=source)

    def linear_variance(self, n: int, weights: Floats, frequencies: Floats) -> Floats:
        p, q = float(self.p), float(self.q)
        # The report x contributes the sum over items z of w_z ([x = z] - q) / (p - q).
        scores = (weights - q * weights.sum(axis=1, keepdims=True)) / (p - q)
        return variance_of_scores(n, scores, q + (p - q) * frequencies, weights, frequencies)


@dataclass(frozen=True)
class RR(GRR):
    """Binary randomised response: GRR for the two items 0 and 1.

    Source: Warner 1965; thesis 2.4.1.

    Parameters
    ----------
    domain : int
        The number of items: 2.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report, at least 2^-32.

    Raises
    ------
    ValueError
        Another domain.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain != 2:
            raise ValueError(f"RR is for two items, got domain {self.domain}; GRR takes any number")


# ------------------------------------------------------------------------------------------------
# Any mechanism as an oracle: whatever `mechdesign` designs can be deployed.


@dataclass(frozen=True, init=False)
class Tabular(EnumeratedOracle):
    """Any `Mechanism` as an oracle: its inputs are the items.

    A report is the ``output`` drawn for the user's item.

    The privacy is the mechanism's: with ``neighbours="all"`` that is local privacy; a mechanism for
    adjacent counts, or at limited precision k, protects only items at most 1, or k, apart from each
    other to that degree. ``epsilon`` is -ln of its alpha, rounded up; under a `Metric` that is for
    one unit of distance, and ``audit().allowed`` is a power of `max_ratio`.

    Parameters
    ----------
    mechanism : Mechanism
        One input for each item; its columns must be linearly independent.

    Raises
    ------
    PrivacyViolation
        The table does not keep the privacy it claims.
    NotIdentifiable
        The columns of the table are linearly dependent (fewer outputs than items, or a uniform
        mechanism), or nearly so.
    """

    mechanism: Mechanism

    def __init__(self, mechanism: Mechanism) -> None:
        if not isinstance(mechanism, Mechanism):
            raise TypeError(
                f"mechanism must be a mechdesign.Mechanism, got {type(mechanism).__name__}"
            )
        mechanism.audit().require()
        set_fields(
            self, mechanism=mechanism, domain=mechanism.inputs, epsilon=mechanism.privacy.epsilon
        )
        self._require_identifiable()

    @property
    def privacy(self) -> Privacy:
        return self.mechanism.privacy

    @property
    def law(self) -> Mechanism:
        return self.mechanism


# ------------------------------------------------------------------------------------------------
# Which oracle tells of the parts of a protocol: by name, by class, or a designed mechanism.


#: The oracles that a protocol may be given by name.
NAMED: dict[str, type[Oracle]] = {
    kind.__name__: kind
    for kind in (GRR, SUE, OUE, SubsetSelection, ProjectiveGeometry, OLH, HRR, AffineSelection)
}

#: A name of `NAMED`; a class of oracles, or any function that makes one from a number of items and
#: an epsilon; or, for as many items as it has, an oracle or a mechanism of `mechdesign`.
OracleChoice: TypeAlias = str | Callable[[int, Any], Oracle] | Oracle | Mechanism


def require_choice(choice: Any) -> None:
    """Refuse what is no choice of an oracle."""
    if isinstance(choice, str):
        if choice not in NAMED:
            raise ValueError(f"oracle must be one of {', '.join(NAMED)}; unknown: {shown(choice)}")
    elif not callable(choice) and not isinstance(choice, (Oracle, Mechanism)):
        raise ValueError(
            "oracle must be a name, a class of oracles, an oracle or a mechanism, got"
            f" {shown(choice)}"
        )


def choices_of(oracle: Any, levels: int) -> tuple[OracleChoice, ...]:
    """A choice for each of some levels."""
    given = tuple(oracle) if isinstance(oracle, (tuple, list)) else (oracle,) * levels
    for choice in given:
        require_choice(choice)
    if len(given) != levels:
        raise ValueError(
            f"oracle must be one of {', '.join(NAMED)}, or one for each level; {len(given)} for"
            f" {levels} levels"
        )
    return given


def name_of(choice: OracleChoice) -> str:
    """A short name for a choice."""
    if isinstance(choice, str):
        return choice
    return getattr(choice, "__name__", type(choice).__name__)


def oracle_over(choice: OracleChoice, domain: int, epsilon: float | Rational) -> Oracle:
    """The oracle that is meant."""
    require_choice(choice)
    if isinstance(choice, str):
        return NAMED[choice](domain, epsilon)
    if isinstance(choice, Mechanism):
        oracle: Any = Tabular(choice)
    else:
        oracle = choice if isinstance(choice, Oracle) else choice(domain, epsilon)
    if not isinstance(oracle, Oracle):
        raise TypeError(f"{shown(choice)} made no oracle, but a {type(oracle).__name__}")
    if oracle.domain != domain:
        raise ValueError(f"an oracle of {oracle.domain} items cannot tell of {domain}")
    if oracle.privacy.neighbours != "all":
        raise ValueError(
            "the mechanism must be a local one, neighbours='all', to tell of single users"
        )
    audit, allowed = oracle.audit(), 1 / local_privacy(epsilon).alpha
    if audit.ratio > allowed:
        raise PrivacyViolation(audit.ratio, allowed, audit.output, audit.inputs)
    return oracle

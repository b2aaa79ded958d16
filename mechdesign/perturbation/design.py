"""design_perturbation(...): the best noise for each count under stated rules, with a proof.

A linear program is solved exactly; its multipliers prove that no noise does better.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from mechdesign.base import Rational, brief, shown, whole
from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.exceptions import CertificateRejected, TooLarge
from mechdesign.lp.basis import unreduced
from mechdesign.lp.exact_solution import certify
from mechdesign.optimisation.certificate import Verification, dual_bound, exact_multipliers
from mechdesign.perturbation.disclosure import EmptyKey
from mechdesign.perturbation.entropy import greatest_entropy
from mechdesign.perturbation.noise_rules import (
    LINEAR,
    NoiseRules,
    Objective,
    Unbiased,
    broken_rules,
    objective_of,
    program_of,
    refuse_conflict,
    table_of,
)
from mechdesign.perturbation.rounding import RoundedDesign, rounded_design, rounded_table
from mechdesign.perturbation.table import MOST_KEYS, PerturbationTable

# The most probabilities of a program with privacy, and the seconds and bytes of one of 2,000
_MOST_ENTRIES, _SECONDS, _BYTES = 12_000, 7.0, 1 << 28


@dataclass(frozen=True)
class PerturbationCertificate:
    """A claim that a noise is the best one under some rules, with its proof.

    Attributes
    ----------
    rules : NoiseRules
        The rules that every competing noise keeps.
    objective : str
        What they are compared by, see `Objective`.
    value : Fraction
        The objective of the noise; of the entropy, rounded up.
    bound : Fraction
        A proved lower bound on that of every noise that keeps the rules.
    multipliers : mapping of str to (mapping of int to Fraction)
        The proof of a linear objective: name of a group of constraints -> number of the constraint
        in it -> multiplier.
    convex : tuple of ConvexCertificate
        The proofs of the entropy.
    """

    rules: NoiseRules
    objective: Objective
    value: Fraction
    bound: Fraction
    multipliers: Mapping[str, Mapping[int, Fraction]]
    convex: tuple[ConvexCertificate, ...] = ()

    @property
    def gap(self) -> Fraction:
        """The difference value - bound >= 0; 0 proves that nothing is better."""
        return self.value - self.bound

    def verify(self, table: PerturbationTable) -> Verification:
        """Check the rules, the objective and a linear bound from scratch, in exact arithmetic.

        Parameters
        ----------
        table : PerturbationTable
            The noise that the claim is about.

        Returns
        -------
        Verification
        """
        wrong = broken_rules(self.rules, table)
        if wrong:
            return Verification(False, f"the noise does not keep {', '.join(wrong)}")
        if self.objective == "entropy":
            close = abs(objective_of(self.rules, "entropy", table) - self.value) < Fraction(
                1, 10**9
            )
            return Verification(close and self.gap >= 0, f"within {brief(self.gap, 3)} of optimal")
        value = objective_of(self.rules, self.objective, table)
        if value != self.value:
            return Verification(False, f"the objective is {brief(value)}, not {brief(self.value)}")
        try:
            bound = dual_bound(program_of(self.rules, self.objective), self.multipliers)
        except ValueError as error:
            return Verification(False, f"the multipliers prove nothing: {error}")
        if bound != self.bound or bound > value:
            return Verification(False, f"the multipliers prove the bound {brief(bound)}")
        return Verification(True, "optimal" if bound == value else f"within {brief(self.gap, 3)}")


@dataclass(frozen=True)
class PerturbationDesign:
    """A noise and the certificate that it is the best one under its rules.

    Attributes
    ----------
    table : PerturbationTable
        The noise, exact: its number of keys is whatever the fractions need. For use, `rounded`.
    certificate : PerturbationCertificate
        The rules, the objective, a lower bound and its proof.
    """

    table: PerturbationTable
    certificate: PerturbationCertificate

    def rounded(self, keys: int = 256) -> RoundedDesign:
        """Return the best table with so many keys that keeps all rules exactly.

        Parameters
        ----------
        keys : int, default 256
            2 to 65,536.

        Returns
        -------
        RoundedDesign

        Raises
        ------
        Unroundable
            There is no such table, for instance since there are too few keys for the rules.
        SolverFailure
            No such table was found in time.
        """
        return rounded_to_keys(self, keys)


def design_perturbation(
    largest: int,
    *,
    noise: int,
    objective: Objective = "L2",
    variance: Rational | None = None,
    unbiased: Unbiased = "everywhere",
    blocked: int = 0,
    keep_zeros: bool = False,
    stay: Rational = 0,
    monotone: bool = False,
    epsilon: Rational | None = None,
    delta: Rational | None = None,
    protected: int = 0,
    empty_key: EmptyKey = "zero",
    exact_variance: bool = False,
) -> PerturbationDesign:
    """Return the noise of least objective for each count under the rules, and the proof.

    Parameters
    ----------
    largest, noise, variance, unbiased, blocked : object
        The rules, see `NoiseRules`. Numbers are exact: int, Fraction, str or Decimal.
    keep_zeros, stay, monotone, epsilon, delta, protected, empty_key, exact_variance : object
        The others.
    objective : str, default "L2"
        "L0", "L1", "L2", "delta" (needs an epsilon and no delta) or "entropy", see `Objective`.

    Returns
    -------
    PerturbationDesign

    Raises
    ------
    Incompatible
        No noise keeps the rules; it names the fewest of them that contradict each other, and holds
        a proof. Of those a largest noise is no rule: it is taken for granted.
    TooLarge
        More than 12,000 probabilities with privacy between them.
    ValueError
        A number out of range, or an objective that does not fit the rules.

    Examples
    --------
    >>> best = design_perturbation(
    ...     2, noise=2, variance="1/2", objective="delta", epsilon=1, protected=2
    ... )
    >>> best.certificate.gap, f"{float(best.certificate.value):.4f}"
    (Fraction(0, 1), '0.1891')
    """
    rules = NoiseRules(
        largest,
        noise,
        variance,  # type: ignore[arg-type]
        unbiased,
        blocked,
        keep_zeros,
        stay,  # type: ignore[arg-type]
        monotone,
        epsilon,  # type: ignore[arg-type]
        delta if delta is not None or epsilon is None or objective == "delta" else 0,  # type: ignore[arg-type]
        protected,
        empty_key,
        exact_variance,
    )
    if objective not in (*LINEAR, "entropy"):
        raise ValueError(f"an objective is L0, L1, L2, delta or entropy, got {shown(objective)}")
    if objective == "delta" and (rules.epsilon is None or rules.delta is not None):
        raise ValueError("the objective delta needs an epsilon, and no delta")
    size = len(rules.cells)
    if rules.epsilon is not None and size > _MOST_ENTRIES:
        growth = size / 2000
        remedy = "the row of a smaller largest count stands for all above it"
        raise TooLarge(largest, _SECONDS * growth**3, int(_BYTES * growth**2), remedy)
    if objective == "entropy":
        table, value, bound, proofs = greatest_entropy(rules)
        return _checked(PerturbationCertificate(rules, objective, value, bound, {}, proofs), table)
    program = program_of(rules, objective)
    reduced = unreduced(program)
    solution = certify(reduced.program, denied=lambda: refuse_conflict(rules, objective == "delta"))
    names = [group.name for group in program.constraints]
    multipliers = dict(zip(names, reduced.expand(solution.multipliers), strict=True))
    cells = rules.cells
    table = table_of(
        [{v: solution.x[cells[c, v]] for v in rules.noises(c)} for c in range(rules.largest + 1)]
    )
    certificate = PerturbationCertificate(
        rules,
        objective,
        objective_of(rules, objective, table),
        dual_bound(program, multipliers),
        exact_multipliers(multipliers),
    )
    return _checked(certificate, table)


def _checked(certificate: PerturbationCertificate, table: PerturbationTable) -> PerturbationDesign:
    """Return the design, whose certificate has been checked from scratch."""
    verdict = certificate.verify(table)
    if not verdict:
        raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    return PerturbationDesign(table, certificate)


def rounded_to_keys(
    found: PerturbationDesign | PerturbationTable, keys: int = 256
) -> RoundedDesign:
    """Return the best table with a given number of keys.

    Parameters
    ----------
    found : PerturbationDesign or PerturbationTable
        Of a design all rules are kept exactly, and its objective is the least that is found; of the
        greatest entropy, the sum of distances of probabilities is. Of a table the outputs and the
        bias are kept, the latter to the nearest multiple of 1 / keys, and that sum is least;
        ``value`` and ``lost`` are then the mean of it over the counts.
    keys : int, default 256
        2 to 65,536.

    Returns
    -------
    RoundedDesign

    Raises
    ------
    Unroundable
        There is no such table.
    SolverFailure
        No such table was found in time.
    """
    keys = whole(keys, "the number of keys", 2, MOST_KEYS)
    if isinstance(found, PerturbationTable):
        return rounded_table(found, keys)
    proved = found.certificate
    return rounded_design(proved.rules, proved.objective, found.table, proved.bound, keys)

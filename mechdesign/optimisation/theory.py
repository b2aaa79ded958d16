"""The optima for L0 that theory knows, for any n (thesis 6.5, 6.6, Figure 6.4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from mechdesign.base import Rational, shown, whole
from mechdesign.mechanism.closed_form import FairLaw, GeometricLaw, Law, UniformLaw
from mechdesign.mechanism.values import LARGEST
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, PropertyLike, implied, resolve

#: The largest group for which mechanisms other than GM are searched for, in some minutes, whose
#: unbiased estimate has a small variance.
LARGEST_GROUP = 32

# The bounds for honest mechanisms are evaluated where alpha^n has at most so many bits.
_LONG = 1 << 16


@dataclass(frozen=True)
class ClosedForm:
    """A named mechanism in closed form, and how much less any other can lose.

    Attributes
    ----------
    name : str
        "GM", "EM" or "UM": see `geometric`, `explicit_fair` and `uniform`.
    loss : Fraction
        Its plain L0.
    bound : Fraction
        No mechanism with the properties asked for has a smaller L0 (proved).
    """

    name: str
    loss: Fraction
    bound: Fraction

    def law(self, n: int, privacy: Privacy) -> Law:
        """Return the mechanism's distributions for counts up to n."""
        if self.name == "UM" or n == 0:
            return UniformLaw(n)
        return GeometricLaw(n, privacy.alpha) if self.name == "GM" else FairLaw(n, privacy.alpha)

    @property
    def excess(self) -> Fraction:
        """The loss at most from not solving a program: 0 where the mechanism is optimal."""
        return self.loss - self.bound


def closed_form(
    n: int,
    privacy: Privacy | float | Rational | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    alpha: Rational | None = None,
) -> ClosedForm:
    """Return the better of GM and EM for L0 with these properties, for any n, without a table.

    It is what is left where the table of `recommend` is too large. GM is taken if it is optimal,
    and else EM, which has all seven properties and loses at most 2 alpha / ((1 + alpha) (n + 1))
    more. The bound is the loss of GM, the least without properties, or that of the notation page
    ("Closed forms of the weakly honest mechanism"), which is attained from alpha = n / (n + 2) on
    with WH, and from alpha = m / (m + 1) on, m = floor(n / 2), with WH and CM.

    Parameters
    ----------
    n : int
        The number of respondents, 0 .. 2^62. The numbers have about n digits; of the loss of EM
        see `Law`, and above about 2^16 bits the bound is that of GM.
    privacy : Privacy, float, Fraction, int, str or Decimal, optional
        Between counts that differ by one; or its epsilon.
    properties : iterable of Property, type or str, optional
        Among the seven of thesis 6.4.
    alpha : Fraction, int, str or Decimal, optional
        Instead of ``privacy``: an exact rational in (0, 1].

    Returns
    -------
    ClosedForm

    Raises
    ------
    ValueError
        Arguments out of range, or another property.

    Examples
    --------
    >>> found = closed_form(5000, alpha="99/100", properties=["WH", "CM"])
    >>> found.name, round(float(found.loss), 4), round(float(found.excess), 4)
    ('EM', 0.995, 0.0002)
    """
    n, a, wanted = respondents(n), stated_privacy(privacy, alpha).alpha, of_the_seven(properties)
    name, _ = by_theory(n, a, wanted)
    if name == "UM" or n == 0:
        return ClosedForm(name, Fraction(n, n + 1), Fraction(n, n + 1))
    least = GeometricLaw(n, a).moment(0)
    if name == "GM":
        return ClosedForm(name, least, least)
    loss = FairLaw(n, a).moment(0)
    if name == "EM":
        return ClosedForm(name, loss, loss)
    bound = least
    if n * a.denominator.bit_length() <= _LONG:
        bound = max(least, _weakly_honest_bound(n, a))
        if "CH" in implied(wanted):
            bound = max(bound, _column_honest_bound(n, a))
    return ClosedForm("EM", loss, bound)


def _powers(a: Fraction, count: int) -> Fraction:
    """Return 1 + a + ... + a^(count - 1), for a other than 1."""
    return (1 - a**count) / (1 - a)


def _weakly_honest_bound(n: int, a: Fraction) -> Fraction:
    """The least L0 with WH is at least that: notation page, for alpha below 1."""
    half, odd = divmod(n, 2)
    if odd:
        ends = (2 - 2 * (1 + a) * _powers(a, half) / (n + 1)) / (a**half * (1 + a))
    else:
        ends = (1 - (2 * _powers(a, half) - 1) / (n + 1)) / a**half
    return 1 - (ends + Fraction(n - 1, n + 1)) / (n + 1)


def _column_honest_bound(n: int, a: Fraction) -> Fraction:
    """The least L0 with CH is at least that: notation page, for alpha below 1."""
    half, odd = divmod(n, 2)
    powers = _powers(1 / a, half + 1)
    trace = 4 * powers / (1 + a) if odd else 2 * powers - 1
    return 1 - trace / (n + 1) ** 2


def of_the_seven(properties: Iterable[PropertyLike]) -> frozenset[str]:
    """The short names of properties; ValueError for those that Figure 6.4 is not about."""
    wanted = frozenset(resolve(item).text for item in properties)
    unknown = wanted - {item.short for item in SEVEN}
    if unknown:
        raise ValueError(
            "Figure 6.4 is about the seven properties of section 6.4, not"
            f" {', '.join(sorted(unknown))}; use design()"
        )
    return wanted


def by_theory(n: int, a: Fraction, wanted: frozenset[str]) -> tuple[str, str]:
    """The name of the best mechanism for L0 by the flowchart of Figure 6.4, and why."""
    needed = implied(wanted)
    if a == 1:
        return (
            "UM",
            "alpha = 1: no output may depend on the input, and guessing has every property",
        )
    if "F" in needed:
        return (
            "EM",
            "fairness is asked for: EM is optimal among fair mechanisms and has all seven"
            " (Theorem 13)",
        )
    column = bool(needed & {"CM", "CH"})
    if needed <= {"S", "RM", "RH"}:
        return (
            "GM",
            "GM is optimal without further properties, and symmetric and row monotone (Theorem 12)",
        )
    if n <= 1:
        return (
            "GM",
            "n <= 1: GM is randomized response, which has all seven properties (Lemma 12, Fact 4)",
        )
    if 2 * a <= 1:
        return (
            "GM",
            "alpha <= 1/2: GM is column monotone, hence column and weakly honest (Lemma 14)",
        )
    if column:
        return "WM", "column properties and alpha > 1/2"
    if n >= 2 * a / (1 - a):
        return "GM", "n >= 2 alpha / (1 - alpha): GM is weakly honest (Lemma 13)"
    return "WM", "weak honesty and n < 2 alpha / (1 - alpha)"


def stated_privacy(
    privacy: Privacy | float | Rational | None,
    alpha: Rational | None,
    neighbours: Literal["adjacent", "all"] = "adjacent",
) -> Privacy:
    """The privacy that is asked for, between the neighbours for which the mechanism has it."""
    result = Privacy.of(privacy, alpha=alpha, neighbours=neighbours)
    if result.neighbours != neighbours:
        raise ValueError(
            f"this mechanism has its privacy between neighbours={neighbours!r}, got"
            f" {shown(result.neighbours)}"
        )
    return result


def respondents(n: int) -> int:
    """n, if it is a number of respondents."""
    return whole(n, "n", 0, LARGEST, what="a whole number of respondents")

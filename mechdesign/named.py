"""The named mechanisms in closed form, exact (thesis 6.5, 6.6, 6.8).

Each takes a `Privacy` or the epsilon of one, or ``alpha=`` by its name. `recommend` says which of
them is optimal according to theory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias, TypeVar

from flint import fmpz_poly

from mechdesign.base import Rational, shown, whole
from mechdesign.losses import L0
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.optimisation.optimal import design
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, PropertyLike, implied, resolve

Number = TypeVar("Number", Fraction, fmpz_poly)
Weights: TypeAlias = tuple[list[list[Number]], Number]


def geometric(
    n: int, privacy: Privacy | float | Rational | None = None, *, alpha: Rational | None = None
) -> Mechanism:
    """GM, the range-restricted geometric mechanism (Definition 22, Figure 6.2).

    It adds two-sided geometric noise, clamped to 0 .. n. The unique optimum for L0 with no further
    properties (Theorem 12); its scaled L0 is 2 alpha / (1 + alpha). (Definition 22 prints the noise
    as (1-alpha)^|d|/(1+alpha); it is (1-alpha) alpha^|d|/(1+alpha).)
    """
    n, privacy = _respondents(n), _privacy(privacy, alpha)
    if n == 0:
        return uniform(0, privacy)
    return _mechanism(*geometric_weights(n, privacy.alpha), privacy)


def geometric_weights(n: int, a: Number) -> Weights[Number]:
    """Return the entries of GM times their common denominator, (n + 1, n + 1), and that."""
    unit = a**0
    weights = [
        [(unit if i in (0, n) else unit - a) * a ** abs(i - j) for j in range(n + 1)]
        for i in range(n + 1)
    ]
    return weights, unit + a


def explicit_fair(
    n: int, privacy: Privacy | float | Rational | None = None, *, alpha: Rational | None = None
) -> Mechanism:
    """EM, the explicit fair mechanism (eq. 6.15, Figure 6.3): optimal for L0 among fair ones.

    It has all seven properties. Every column holds the same powers of alpha: 0 once, and 1, 2, ...
    twice each; for odd n the last, (n+1)/2, only once. So 1/y = 1 + 2 (alpha + ... + alpha^(n/2))
    for even n, eq. 6.14, and 1/y = 1 + 2 (alpha + ... + alpha^((n-1)/2)) + alpha^((n+1)/2) for odd
    n, where eq. 6.14 does not hold.
    """
    n, privacy = _respondents(n), _privacy(privacy, alpha)
    return _mechanism(*explicit_fair_weights(n, privacy.alpha), privacy)


def explicit_fair_weights(n: int, a: Number) -> Weights[Number]:
    """Return the entries of EM times their common denominator, (n + 1, n + 1), and that."""
    weights = [[a ** explicit_fair_power(i, j, n) for j in range(n + 1)] for i in range(n + 1)]
    return weights, sum((row[0] for row in weights), 0 * a)


def explicit_fair_power(i: int, j: int, n: int) -> int:
    """The power of alpha in entry i, j of EM (eq. 6.15), rounded up to a whole one for odd n."""
    distance, margin = abs(i - j), min(j, n - j)
    return distance if distance < margin else -(-(distance + margin) // 2)


def uniform(n: int, privacy: Privacy | float | Rational | None = None) -> Mechanism:
    """UM (Definition 23): a uniformly distributed output, whatever the input.

    It claims perfect privacy, alpha = 1, unless ``privacy`` is given.
    """
    n = _respondents(n)
    claimed = Privacy(alpha=1) if privacy is None else Privacy.of(privacy)
    return Mechanism([[Fraction(1, n + 1)] * (n + 1)] * (n + 1), claimed)


def randomized_response(
    privacy: Privacy | float | Rational | None = None, *, alpha: Rational | None = None
) -> Mechanism:
    """RR on one bit: the truth with probability 1 / (1 + alpha) (Theorem 10).

    GM and EM for n = 1 are the same mechanism.
    """
    return geometric(1, privacy, alpha=alpha)


def krr(
    k: int, privacy: Privacy | float | Rational | None = None, *, alpha: Rational | None = None
) -> Mechanism:
    """k-ary (generalised) randomized response, GRR: local privacy over items 0 .. k-1 (thesis 6.8).

    The truth with probability 1 / (1 + (k - 1) alpha), every other item with alpha times that.
    """
    k = whole(k, "k", 1, what="a number of items")
    privacy = _privacy(privacy, alpha, "all")
    return _mechanism(*krr_weights(k, privacy.alpha), privacy)


def krr_weights(k: int, a: Number) -> Weights[Number]:
    """Return the entries of GRR times their common denominator, (k, k), and that."""
    unit = a**0
    weights = [[unit if i == j else a for j in range(k)] for i in range(k)]
    return weights, unit + (k - 1) * a


def weakly_honest(
    n: int,
    privacy: Privacy | float | Rational | None = None,
    *,
    alpha: Rational | None = None,
    column_monotone: bool = False,
) -> Mechanism:
    """WM: the least L0 among weakly honest mechanisms, solved and certified by `design`.

    The thesis uses the name for two mechanisms. By default this is WH, with row monotonicity
    and symmetry, which do not raise the loss; with ``column_monotone`` it is WH + RM + CM, which
    the thesis plots from section 6.7.1 on. They differ only for alpha > 1/2.
    """
    n, privacy = _respondents(n), _privacy(privacy, alpha)
    return design(
        n, privacy, L0(), ["WH", "RM", "S", *(["CM"] if column_monotone else [])]
    ).mechanism


@dataclass(frozen=True)
class Recommendation:
    """A mechanism with the least L0 among those with the properties asked for.

    ``str()`` tells its errors, too: least L0 does not mean that they are small.

    Attributes
    ----------
    name : str
        "GM", "EM", "UM" or "WM" (a linear program, certified).
    mechanism : Mechanism
        Exact; its privacy is the one asked for.
    reason : str
        The theorem or lemma that says so.
    """

    name: str
    mechanism: Mechanism
    reason: str

    @property
    def errors(self) -> StandardErrors:
        """The errors of one count and of one unbiased estimate, for uniform counts."""
        return StandardErrors.of(self.mechanism)

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}; {self.errors}"


def recommend(
    n: int,
    privacy: Privacy | float | Rational | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    alpha: Rational | None = None,
) -> Recommendation:
    """Return the best mechanism for L0 with these properties, by the flowchart of Figure 6.4.

    It is in closed form where theory has one. Raises ValueError for properties other than the seven
    of thesis 6.4; use `design` for those.
    """
    n, privacy = _respondents(n), _privacy(privacy, alpha)
    a, wanted = privacy.alpha, _of_the_seven(properties)
    name, reason = _by_theory(n, a, wanted)
    if name != "WM":
        made = geometric if name == "GM" else explicit_fair
        mechanism = uniform(n) if a == 1 else made(n, privacy)
        return Recommendation(name, mechanism, reason)
    asked = {"S", "RM", *wanted, *({"CM"} if "CH" in implied(wanted) else ())}
    mechanism = design(n, privacy, L0(), sorted(asked)).mechanism
    return Recommendation(
        name, mechanism, f"{reason}: a linear program, solved and certified (Figure 6.4)"
    )


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
        The number of respondents, at least 0. The numbers have about n digits.
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
    n, a, wanted = _respondents(n), _privacy(privacy, alpha).alpha, _of_the_seven(properties)
    name, _ = _by_theory(n, a, wanted)
    if name == "UM" or n == 0:
        return ClosedForm(name, Fraction(n, n + 1), Fraction(n, n + 1))
    least = 1 - (2 + (n - 1) * (1 - a)) / ((1 + a) * (n + 1))
    if name == "GM":
        return ClosedForm(name, least, least)
    half, odd = divmod(n, 2)
    truth = 1 / (2 * _powers(a, half + 1) - 1 + odd * a ** (half + 1))
    if name == "EM":
        return ClosedForm(name, 1 - truth, 1 - truth)
    bound = max(least, _weakly_honest_bound(n, a))
    if "CH" in implied(wanted):
        bound = max(bound, _column_honest_bound(n, a))
    return ClosedForm("EM", 1 - truth, bound)


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


def _of_the_seven(properties: Iterable[PropertyLike]) -> frozenset[str]:
    """The short names of properties; ValueError for those that Figure 6.4 is not about."""
    wanted = frozenset(resolve(item).text for item in properties)
    unknown = wanted - {item.short for item in SEVEN}
    if unknown:
        raise ValueError(
            "Figure 6.4 is about the seven properties of section 6.4, not"
            f" {', '.join(sorted(unknown))}; use design()"
        )
    return wanted


def _by_theory(n: int, a: Fraction, wanted: frozenset[str]) -> tuple[str, str]:
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


def _mechanism(weights: list[list[Fraction]], denominator: Fraction, privacy: Privacy) -> Mechanism:
    return Mechanism([[weight / denominator for weight in row] for row in weights], privacy)


def _privacy(
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


def _respondents(n: int) -> int:
    return whole(n, "n", what="a whole number of respondents")

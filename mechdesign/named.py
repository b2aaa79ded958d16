"""The named mechanisms in closed form, exact (thesis 6.5, 6.6, 6.8).

`recommend` says which of them is optimal according to theory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from flint import fmpz_poly

from mechdesign._support.numbers import Rational, whole
from mechdesign.losses import L0
from mechdesign.mechanism import Mechanism
from mechdesign.optimal import design
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, PropertyLike, implied, resolve
from mechdesign.standard_errors import StandardErrors

Number = TypeVar("Number", Fraction, fmpz_poly)
Weights: TypeAlias = tuple[list[list[Number]], Number]


def geometric(n: int, alpha: Rational) -> Mechanism:
    """GM, the range-restricted geometric mechanism (Definition 22, Figure 6.2).

    It adds two-sided geometric noise, clamped to 0 .. n.

    The unique optimum for L0 with no further properties (Theorem 12); its scaled L0 is 2 alpha / (1
    + alpha). (Definition 22 prints the noise as (1-alpha)^|d|/(1+alpha); it is (1-alpha) alpha^|d|
    / (1+alpha).)
    """
    privacy = _privacy(n, alpha)
    if n == 0:
        return uniform(0, privacy)
    return _mechanism(*geometric_weights(n, privacy.alpha), privacy)


def geometric_weights(n: int, a: Number) -> Weights[Number]:
    """The entries of GM times their common denominator, and that denominator.

    Parameters
    ----------
    n : int
        The number of respondents, at least 1.
    a : Fraction or flint.fmpz_poly
        alpha, as a number or as a polynomial in alpha.

    Returns
    -------
    weights : list of list of Fraction or flint.fmpz_poly
        Shape (n + 1, n + 1): rows are outputs.
    denominator : Fraction or flint.fmpz_poly
        What every column of the weights sums to.
    """
    one = a**0
    weights = [
        [(one if i in (0, n) else one - a) * a ** abs(i - j) for j in range(n + 1)]
        for i in range(n + 1)
    ]
    return weights, one + a


def explicit_fair(n: int, alpha: Rational) -> Mechanism:
    """EM, the explicit fair mechanism (eq. 6.15, Figure 6.3).

    It is optimal for L0 among fair mechanisms, and has all seven properties.

    Every column holds the same powers of alpha: 0 once, and 1, 2, ... twice each; for odd n the
    last, (n+1)/2, only once. So y = 1 / (1 + 2 (alpha + ... + alpha^(n/2))) for even n, which is
    eq. 6.14, and y = 1 / (1 + 2 (alpha + ... + alpha^((n-1)/2)) + alpha^((n+1)/2)) for odd n, where
    eq. 6.14 does not hold.
    """
    privacy = _privacy(n, alpha)
    return _mechanism(*explicit_fair_weights(n, privacy.alpha), privacy)


def explicit_fair_weights(n: int, a: Number) -> Weights[Number]:
    """The entries of EM times their common denominator, and that denominator.

    Parameters
    ----------
    n : int
        The number of respondents, at least 0.
    a : Fraction or flint.fmpz_poly
        alpha, as a number or as a polynomial in alpha.

    Returns
    -------
    weights : list of list of Fraction or flint.fmpz_poly
        Shape (n + 1, n + 1): rows are outputs.
    denominator : Fraction or flint.fmpz_poly
        What every column of the weights sums to.
    """
    weights = [[a ** explicit_fair_power(i, j, n) for j in range(n + 1)] for i in range(n + 1)]
    return weights, sum((row[0] for row in weights), 0 * a)


def explicit_fair_power(i: int, j: int, n: int) -> int:
    """The power of alpha in entry i, j of EM (eq. 6.15), rounded up to a whole one for odd n."""
    distance, margin = abs(i - j), min(j, n - j)
    return distance if distance < margin else -(-(distance + margin) // 2)


def uniform(n: int, privacy: Privacy | None = None) -> Mechanism:
    """UM (Definition 23): a uniformly distributed output, whatever the input.

    It claims perfect privacy, alpha = 1, unless ``privacy`` is given.
    """
    _check(n)
    return Mechanism([[Fraction(1, n + 1)] * (n + 1)] * (n + 1), privacy or Privacy(1))


def randomized_response(alpha: Rational) -> Mechanism:
    """RR on one bit: the truth with probability 1 / (1 + alpha) (Theorem 10).

    GM and EM for n = 1 are the same mechanism.
    """
    return geometric(1, alpha)


def krr(k: int, alpha: Rational) -> Mechanism:
    """k-ary (generalised) randomized response, GRR: local privacy over items 0 .. k-1 (thesis 6.8).

    The truth with probability 1 / (1 + (k - 1) alpha), every other item with alpha times that.
    """
    k = whole(k, "k", 1, what="a number of items")
    privacy = Privacy(alpha, neighbours="all")
    return _mechanism(*krr_weights(k, privacy.alpha), privacy)


def krr_weights(k: int, a: Number) -> Weights[Number]:
    """The entries of GRR times their common denominator, and that denominator.

    Parameters
    ----------
    k : int
        The number of items, at least 1.
    a : Fraction or flint.fmpz_poly
        alpha, as a number or as a polynomial in alpha.

    Returns
    -------
    weights : list of list of Fraction or flint.fmpz_poly
        Shape (k, k): rows are outputs.
    denominator : Fraction or flint.fmpz_poly
        What every column of the weights sums to.
    """
    one = a**0
    weights = [[one if i == j else a for j in range(k)] for i in range(k)]
    return weights, one + (k - 1) * a


def weakly_honest(n: int, alpha: Rational, *, column_monotone: bool = False) -> Mechanism:
    """WM: the least L0 among weakly honest mechanisms, solved and certified by `design`.

    The thesis uses the name for two mechanisms. By default this is WH, with row monotonicity
    and symmetry, which do not raise the loss; with ``column_monotone`` it is WH + RM + CM, which
    the thesis plots from section 6.7.1 on. They differ only for alpha > 1/2.
    """
    privacy = _privacy(n, alpha)
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
        """How far off one count is and one unbiased estimate, for uniform counts."""
        return StandardErrors.of(self.mechanism)

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}; {self.errors}"


def recommend(n: int, alpha: Rational, properties: Iterable[PropertyLike] = ()) -> Recommendation:
    """The best mechanism for L0 with these properties, by the flowchart of Figure 6.4.

    It is in closed form where theory has one.

    Raises ValueError for properties other than the seven of thesis 6.4; use `design` for those.
    """
    privacy = _privacy(n, alpha)
    a = privacy.alpha
    wanted = frozenset(resolve(item).text for item in properties)
    unknown = wanted - {item.short for item in SEVEN}
    if unknown:
        raise ValueError(
            "Figure 6.4 is about the seven properties of section 6.4, not"
            f" {', '.join(sorted(unknown))}; use design()"
        )
    needed = implied(wanted)
    if a == 1:
        return Recommendation(
            "UM",
            uniform(n),
            "alpha = 1: no output may depend on the input, and guessing has every property",
        )
    if "F" in needed:
        reason = (
            "fairness is asked for: EM is optimal among fair mechanisms and has all seven"
            " (Theorem 13)"
        )
        return Recommendation("EM", explicit_fair(n, a), reason)
    column = bool(needed & {"CM", "CH"})
    if needed <= {"S", "RM", "RH"}:
        reason = (
            "GM is optimal without further properties, and symmetric and row monotone (Theorem 12)"
        )
    elif n <= 1:
        reason = (
            "n <= 1: GM is randomized response, which has all seven properties (Lemma 12, Fact 4)"
        )
    elif 2 * a <= 1:
        reason = "alpha <= 1/2: GM is column monotone, hence column and weakly honest (Lemma 14)"
    elif not column and n >= 2 * a / (1 - a):
        reason = "n >= 2 alpha / (1 - alpha): GM is weakly honest (Lemma 13)"
    else:
        reason = ""
    if reason:
        return Recommendation("GM", geometric(n, a), reason)
    found = design(
        n, privacy, L0(), sorted({"S", "RM", *wanted, *({"CM"} if "CH" in needed else ())})
    ).mechanism
    reason = (
        "column properties and alpha > 1/2"
        if column
        else "weak honesty and n < 2 alpha / (1 - alpha)"
    )
    return Recommendation(
        "WM",
        found,
        f"{reason}: a linear program without a closed form, solved and certified (Figure 6.4)",
    )


def _mechanism(weights: list[list[Fraction]], denominator: Fraction, privacy: Privacy) -> Mechanism:
    return Mechanism([[weight / denominator for weight in row] for row in weights], privacy)


def _privacy(n: int, alpha: Rational) -> Privacy:
    _check(n)
    return Privacy(alpha)


def _check(n: int) -> None:
    whole(n, "n", what="a whole number of respondents")

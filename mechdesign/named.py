"""The named mechanisms in closed form, exact (thesis 6.5, 6.6, 6.8).

Each takes a `Privacy` or the epsilon of one, or ``alpha=`` by its name. `recommend` says which of
them is optimal according to theory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias, TypeVar

from flint import fmpz_poly

from mechdesign.base import Rational, whole
from mechdesign.losses import L0
from mechdesign.mechanism.closed_form import FairLaw, GeometricLaw, UniformLaw
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.optimisation.optimal import design
from mechdesign.optimisation.theory import ClosedForm as ClosedForm
from mechdesign.optimisation.theory import by_theory, of_the_seven, respondents, stated_privacy
from mechdesign.optimisation.theory import closed_form as closed_form
from mechdesign.privacy import Privacy
from mechdesign.properties import PropertyLike, implied

Number = TypeVar("Number", Fraction, fmpz_poly)
# GM of alpha = 1 has two outputs, 0 and n, whatever the count: a table, up to this n.
_TWO_OUTPUTS = 1024

Weights: TypeAlias = tuple[list[list[Number]], Number]


def geometric(
    n: int,
    privacy: Privacy | float | Rational | None = None,
    *,
    alpha: Rational | None = None,
    margin: int | None = 0,
) -> Mechanism:
    """GM, the range-restricted geometric mechanism (Definition 22, Figure 6.2), for any n to 2^62.

    It adds two-sided geometric noise, clamped to 0 .. n. The unique optimum for L0 with no further
    properties (Theorem 12); its scaled L0 is 2 alpha / (1 + alpha). (Definition 22 prints the noise
    as (1-alpha)^|d|/(1+alpha); it is (1-alpha) alpha^|d|/(1+alpha).) With a ``margin`` the noise
    is clamped to -margin .. n + margin; with None it is not, and the output any integer (also
    called discrete Laplace noise).
    """
    n, privacy = respondents(n), stated_privacy(privacy, alpha)
    if n == 0 and margin == 0:
        return uniform(n, privacy)
    if privacy.alpha == 1 and n <= _TWO_OUTPUTS and margin == 0:
        return _mechanism(*geometric_weights(n, privacy.alpha), privacy)
    return Mechanism.from_law(GeometricLaw(n, privacy.alpha, margin), privacy)


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
    n, where eq. 6.14 does not hold. n is at most 2^62.
    """
    n, privacy = respondents(n), stated_privacy(privacy, alpha)
    if privacy.alpha == 1 or n == 0:
        return uniform(n, privacy)
    return Mechanism.from_law(FairLaw(n, privacy.alpha), privacy)


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

    It claims perfect privacy, alpha = 1, unless ``privacy`` is given. n is at most 2^62.
    """
    claimed = Privacy(alpha=1) if privacy is None else Privacy.of(privacy)
    return Mechanism.from_law(UniformLaw(respondents(n)), claimed)


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
    privacy = stated_privacy(privacy, alpha, "all")
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
    n, privacy = respondents(n), stated_privacy(privacy, alpha)
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
    n, privacy = respondents(n), stated_privacy(privacy, alpha)
    a, wanted = privacy.alpha, of_the_seven(properties)
    name, reason = by_theory(n, a, wanted)
    if name != "WM":
        made = geometric if name == "GM" else explicit_fair
        mechanism = uniform(n) if a == 1 else made(n, privacy)
        return Recommendation(name, mechanism, reason)
    asked = {"S", "RM", *wanted, *({"CM"} if "CH" in implied(wanted) else ())}
    mechanism = design(n, privacy, L0(), sorted(asked)).mechanism
    return Recommendation(
        name, mechanism, f"{reason}: a linear program, solved and certified (Figure 6.4)"
    )


def _mechanism(weights: list[list[Fraction]], denominator: Fraction, privacy: Privacy) -> Mechanism:
    return Mechanism([[weight / denominator for weight in row] for row in weights], privacy)

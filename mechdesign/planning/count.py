"""The task "count" of the planner: a curator's count, by the mechanisms of this package."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from mechdesign import named
from mechdesign.base.frozen import set_fields
from mechdesign.base.numbers import whole
from mechdesign.base.text import brief, shown
from mechdesign.losses import L0, L1, L2, Loss
from mechdesign.mechanism import Mechanism
from mechdesign.optimal import design
from mechdesign.planning.task import Offer, Task
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, resolve
from mechdesign.standard_errors import UNBIASED, StandardErrors

LARGEST_GROUP = 128
"""The largest group whose count the task "count" plans for.

Tables are exact, and a search makes many.
"""

_PROGRAMS = 24
"""The largest group of which linear programs are among the candidates.

A search solves a few of them at every step, which still takes a second or so.
"""


@dataclass(frozen=True)
class Count(Task):
    """A curator's count of the respondents in a group, 0 .. ``domain``.

    Candidates are the named mechanisms and, for small groups, linear programs. The table shows both
    `StandardErrors` of each.

    Attributes
    ----------
    domain : int
        How many respondents the group has, 1 to 128.
    loss : str, default "RMSE"
        The error: "RMSE", "L0" for the chance to be wrong, or "L1" for the mean absolute error; for
        uniformly distributed counts.
    properties : str or iterable of str, optional
        What the mechanism must have: short names of the seven properties, such as ["WH", "CM"], or
        "WH,CM".
    """

    loss: str = "RMSE"
    properties: Any = ()

    users_report: ClassVar[bool] = False
    other_errors_are: ClassVar[str] = UNBIASED
    described: ClassVar[str] = (
        "docs/protocols/counts; L1+CM, L2+CM: designs of least absolute and squared error with CM"
    )

    def __post_init__(self) -> None:
        whole(self.domain, "domain", 1, LARGEST_GROUP, what="the size of the group")
        if self.loss not in _LOSSES:
            raise ValueError(f"loss must be one of {', '.join(_LOSSES)}, got {shown(self.loss)}")
        given = self.properties.split(",") if isinstance(self.properties, str) else self.properties
        names = tuple(
            resolve(item.strip() if isinstance(item, str) else item).text for item in given
        )
        unknown = [name for name in names if name not in {item.short for item in SEVEN}]
        if unknown:
            raise ValueError(
                f"properties must be among {' '.join(item.short for item in SEVEN)}, got"
                f" {', '.join(unknown)}"
            )
        set_fields(self, domain=int(self.domain), properties=names)

    @property
    def question(self) -> str:
        asked = f", with {' '.join(self.properties)}" if self.properties else ""
        return f"the count of a group of {self.domain}{asked}"

    @property
    def error_is(self) -> str:
        return f"{_LOSSES[self.loss]}, for uniformly distributed counts"

    @property
    def names(self) -> tuple[str, ...]:
        return ("GM", "EM", "UM", *(_DESIGNS if self.domain <= _PROGRAMS else ()))

    def offer(self, name: str, epsilon: float | Fraction, n: int) -> Offer:
        mechanism = _count_mechanism(
            name, self.domain, Privacy.from_epsilon(epsilon).alpha, self.properties
        )
        return self._offer(name, mechanism, epsilon)

    def offer_of(self, candidate: Callable[..., Any], epsilon: float | Fraction, n: int) -> Offer:
        privacy = Privacy.from_epsilon(epsilon)
        mechanism = candidate(self.domain, privacy)
        if not isinstance(mechanism, Mechanism) or mechanism.inputs != self.domain + 1:
            raise ValueError(f"a candidate is a mechanism of counts 0 .. {self.domain}")
        return self._offer("a candidate", mechanism, epsilon)

    def _offer(self, name: str, mechanism: Mechanism, epsilon: float | Fraction) -> Offer:
        properties = mechanism.properties()
        lacking = [short for short in self.properties if not properties[short]]
        if lacking:
            raise ValueError(
                f"{name} does not have {' '.join(lacking)} for a group of {self.domain} at epsilon"
                f" {brief(epsilon)}"
            )
        errors = mechanism.error_distribution()
        error = (
            errors.rmse
            if self.loss == "RMSE"
            else float(errors.tail() if self.loss == "L0" else mechanism.loss(L1()))
        )
        return Offer(mechanism, error)

    def other_errors(self, protocol: Mechanism, n: int | None) -> tuple[tuple[str, float], ...]:
        errors = StandardErrors.of(protocol)
        unbiased = math.nan if errors.unbiased is None else errors.unbiased
        both = ("RMSE", errors.published), ("unbiased SE", unbiased)
        return both[1:] if self.loss == "RMSE" else both

    def preferred(self, epsilon: float | Fraction, n: int) -> tuple[str, str]:
        if self.loss != "L0" or self.domain > _PROGRAMS:
            return "", ""
        chosen = named.recommend(
            self.domain, alpha=Privacy.from_epsilon(epsilon).alpha, properties=self.properties
        )
        return chosen.name, chosen.reason


_LOSSES = {
    "RMSE": "root mean square error",
    "L0": "chance to be wrong",
    "L1": "mean absolute error",
}

_DESIGNS: dict[str, Loss] = {"WM": L0(), "L1+CM": L1(), "L2+CM": L2()}
"""The losses that linear programs minimise, by the name of the candidate.

They have the properties asked for, and WH (WM) or CM as well: without those, some counts are never
reported.
"""


@lru_cache(maxsize=256)
def _count_mechanism(name: str, n: int, alpha: Fraction, properties: tuple[str, ...]) -> Mechanism:
    if name == "UM":
        return named.uniform(n)
    if name in _DESIGNS:
        wanted = {"WH", "RM", "S"} if name == "WM" else {"CM"}
        if "CH" in properties:
            wanted.add("CM")  # the loss is the same then, and the program shorter
        return design(
            n, Privacy(alpha=alpha), _DESIGNS[name], sorted(wanted.union(properties))
        ).mechanism
    return {"GM": named.geometric, "EM": named.explicit_fair}[name](n, alpha=alpha)

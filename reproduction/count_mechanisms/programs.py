"""The programs of chapter 6: optima that are proved, and what several figures share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction as Q
from functools import cache
from itertools import chain, combinations, product
from typing import Literal

import numpy as np

from examples import thesis_figures
from mechdesign import Constraints, Design, Mechanism, Privacy, Property, design, named
from mechdesign.losses import L0, Loss, binomial
from mechdesign.properties import SEVEN
from reproduction.report import figures, series

SHORT = tuple(item.short for item in SEVEN)


SUBSETS = tuple(chain.from_iterable(combinations(SHORT, size) for size in range(8)))


WM = ("WH", "RM", "CM", "S")


TENTHS = tuple(Q(k, 10) for k in range(11))


PANELS = tuple(product((Q(91, 100), Q(67, 100)), (4, 8, 12)))
"""Of Figures 6.10 and 6.12 to 6.15: alpha and n."""


family = cache(thesis_figures.family)


class Often(Property):
    """One of these outputs is given with at least a probability, whatever the input."""

    short = "OFTEN"

    def __init__(self, outputs: Iterable[int], probability: Q) -> None:
        self.outputs, self.probability = tuple(outputs), probability

    def constraints(self, at: np.ndarray, privacy: Privacy) -> Iterator[Constraints]:
        yield Constraints(
            at[list(self.outputs)].T.copy(), (Q(1),) * len(self.outputs), self.probability, False
        )


class Derivable(Property):
    """A remapping of GM's outputs: (1 + alpha^2) P[i, j] >= alpha (P[i, j-1] + P[i, j+1])."""

    short = "DERIVABLE"

    def constraints(self, at: np.ndarray, privacy: Privacy) -> Iterator[Constraints]:
        cells = np.stack([at[:, 1:-1].ravel(), at[:, :-2].ravel(), at[:, 2:].ravel()], axis=1)
        yield Constraints(
            cells, (1 + privacy.alpha**2, -privacy.alpha, -privacy.alpha), Q(0), False
        )


def optimum(
    n: int,
    alpha: Q,
    properties: Iterable[str | Property] = (),
    loss: Loss | None = None,
    neighbours: Literal["adjacent", "all"] = "adjacent",
) -> Design:
    found: Design = design(n, Privacy(alpha=alpha, neighbours=neighbours), loss or L0(), properties)
    if found.certificate.gap:
        raise ArithmeticError(f"n = {n}, alpha = {alpha}: not proved optimal")
    return found


@cache
def scaled(n: int, alpha: Q, properties: tuple[str, ...] = ()) -> Q:
    """The least scaled L0 (eq. 6.1)."""
    return optimum(n, alpha, properties).certificate.objective * Q(n + 1, n)


def gm_l0(alpha: Q) -> Q:
    return 2 * alpha / (1 + alpha)


def em_y(n: int, alpha: Q) -> Q:
    return named.explicit_fair(n, alpha=alpha).table[0][0]


def threshold(alpha: Q) -> Q:
    """From this n on GM is weakly honest."""
    return 2 * alpha / (1 - alpha)


def by_input(
    of: Callable[[Mechanism, tuple[Q, ...]], float],
    mechanisms: Callable[[int, Q], dict[str, Mechanism]],
    p: Sequence[Q] = TENTHS,
) -> dict[tuple[Q, int], dict[str, np.ndarray]]:
    """(alpha, n) -> mechanism -> what is measured, at every p of binomial counts."""
    return {
        (alpha, n): {
            name: np.array([of(m, binomial(n, q)) for q in p])
            for name, m in mechanisms(n, alpha).items()
        }
        for alpha, n in PANELS
    }


def panels(found: Mapping[tuple[Q, int], Mapping[str, np.ndarray]], title: str) -> str:
    return "\n\n".join(
        series(f"{title}, α = {float(alpha):.2f}, n = {n}", "p", figures(TENTHS, 1), rows)
        for (alpha, n), rows in found.items()
    )

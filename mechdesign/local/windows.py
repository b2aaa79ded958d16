"""Windows: reports that name one item or several adjacent ones, some of them sent at random.

A window of some width is at any place where it covers an item. A truthful report is a window that
covers the user's item; how likely, depends on the width and on where in the window the item is, not
on the item. With probability gamma a report is drawn from the blanket instead: for each width a
share, all places alike. So the likelihoods of two items depend on how far apart they are alone,
and for all far enough apart they are the same. Windows of width 1 alone are randomised response.

W = R_x(y) / omega(y) - e^epsilon R_z(y) / omega(y), for y drawn with probability omega(y) and 0
otherwise, is what `mechdesign.accounting.shuffled` sums. By the central limit theorem its second
moment decides delta for many users; with R = gamma b + (1 - gamma) s and e = e^epsilon it is

    (1 - gamma)^2 / gamma * sum_y (s_x - e s_z)^2 / b + (e - 1)^2 (2 - gamma).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from mechdesign.base import Floats, Integers

# The exponents of the norms that take the place of the maximum over pairs, one after another.
_SHARPNESS = (30, 200, 2000)

_STEPS = 500

_WIDTHS = (1, 2, 4, 8, 16, 32, 64)

# The widest windows to start from: where few are drawn at random, wide ones lead astray.
_WIDEST = (8, 64)

# The likelihood of truthful reports, relative to the blanket, below which they are left out; where
# none is likelier than the blanket, relative to the likeliest.
_NEGLIGIBLE = 0.05

_RARE = 1e-3  # the share of truthful reports below which a width is left out

_LOWEST = -28.0  # the least logarithm of a share or a height, relative to the largest


class Target(NamedTuple):
    """A target: the workload whose variance is minimised, and the constraint on the moment."""

    gram: Floats  # the Gram matrix of the queries, shape (domain, domain)
    ratio: float  # e^epsilon, of the collection
    moment: float  # the largest second moment of W that two items may have

    def blanket(self, apart: float) -> tuple[float, float]:
        """Return the least gamma for which the moment is reached, and its derivative."""
        # ``apart`` is the largest sum of (s_x - e s_z)^2 / b.
        drift = (self.ratio - 1) ** 2
        half = apart - drift + self.moment / 2
        # (A - D) gamma^2 - 2 half gamma + A = 0, where D = (e - 1)^2. The usual formula would
        # subtract nearly equal numbers for a small gamma, and divide by A - D, which may be 0.
        gamma = apart / (half + np.sqrt(max(half**2 - apart * (apart - drift), 0.0)))
        # Minus the derivative of the moment by gamma; that by A is (1 - gamma)^2 / gamma (implicit
        # function).
        slope = apart * (1 - gamma**2) / gamma**2 + drift
        return gamma, (1 - gamma) ** 2 / gamma / slope


@dataclass(frozen=True)
class Windows:
    """Windows of some widths over a domain, with their probabilities."""

    domain: int  # the number of items, at least 1
    widths: tuple[int, ...]  # at least 1 each
    # Shape (sum of the widths,): how likely a truthful report is the window of each width that has
    # the user's item at each of its places; the sum is 1.
    heights: Floats
    # Shape (widths,): how likely a report of the blanket has each width; the sum is 1.
    shares: Floats

    @property
    def places(self) -> Integers:
        """The number of windows of each width."""
        return np.array(self.widths) + self.domain - 1

    @property
    def part(self) -> Integers:
        """The number of the width of each output: shape (outputs,)."""
        return np.repeat(np.arange(len(self.widths)), self.places)

    @property
    def index(self) -> Integers:
        """The number of the height that each output has for each item: shape (outputs, domain)."""
        # Where a window does not cover an item it is the number of heights.
        item, blocks, before = np.arange(self.domain), [], 0
        for width in self.widths:
            place = item - np.arange(width + self.domain - 1)[:, None] + width - 1
            covered = (place >= 0) & (place < width)
            blocks.append(np.where(covered, place + before, sum(self.widths)))
            before += width
        return np.concatenate(blocks)

    @property
    def truth(self) -> Floats:
        """The distribution of truthful reports, for each item: shape (outputs, domain)."""
        # The height after the last is 0: a window that does not cover the item is never truthful.
        return np.append(self.heights, 0.0)[self.index]

    @property
    def blanket(self) -> Floats:
        """The distribution of the blanket: shape (outputs,)."""
        return (self.shares / self.places)[self.part]

    def apart(self, ratio: float) -> float:
        """Return the largest sum of (s_x - e s_z)^2 / b over pairs, of at least two items."""
        return float(_pairs(self.truth, self.blanket, ratio).max())

    def weights(self, gamma: float, units: int) -> list[list[int]]:
        """Return the table with a blanket of about ``gamma``; each column adds up to ``units``."""
        # The rounding is the same for all items, so that what is alike stays alike.
        low = [
            # At least one unit each, so that every output is possible under every item: alpha is
            # above 0.
            max(1, round(gamma * share / count * units))
            for share, count in zip(self.shares.tolist(), self.places.tolist(), strict=True)
        ]
        left = units - sum(map(int.__mul__, low, self.places.tolist()))
        heights = [int(height * left) for height in self.heights.tolist()]
        # Columns are sums of the same heights: one correction, where it is relatively least, makes
        # all of them exact.
        heights[int(self.heights.argmax())] += left - sum(heights)
        heights.append(0)
        return [
            [low[part] + heights[place] for place in row]
            for part, row in zip(self.part.tolist(), self.index.tolist(), strict=True)
        ]

    def most(self) -> float:
        """Return the largest likelihood of a truthful report, relative to the blanket."""
        part = np.repeat(np.arange(len(self.widths)), self.widths)
        return float((self.heights * (self.places / self.shares)[part]).max())

    def trimmed(self, gamma: float) -> Windows:
        """Return the same without windows and ends of windows that are hardly ever sent."""
        least = _NEGLIGIBLE * min(1.0, (1 - gamma) / gamma * self.most())
        widths, heights, shares, before = [], [], [], 0
        for width, share, count in zip(self.widths, self.shares, self.places, strict=True):
            mine = self.heights[before : before + width]
            before += width
            kept = np.flatnonzero((1 - gamma) * mine > least * gamma * share / count)
            if len(kept) and mine.sum() > _RARE:
                # Only ends are cut: a window stays an interval.
                mine = mine[kept[0] : kept[-1] + 1]
                widths.append(len(mine))
                heights.append(mine)
                shares.append(share)
        heights_, shares_ = np.concatenate(heights), np.array(shares)
        return Windows(
            self.domain, tuple(widths), heights_ / heights_.sum(), shares_ / shares_.sum()
        )


def randomised_response(domain: int) -> Windows:
    """Return windows of one item each."""
    return Windows(domain, (1,), np.ones(1), np.ones(1))


def optimised(target: Target) -> Windows:
    """Return windows of little variance: the best local minimum from a few starts."""
    minima = [
        _descended(target, [width for width in _WIDTHS if width <= min(most, len(target.gram))])
        for most in _WIDEST
    ]
    return min(minima, key=lambda pair: pair[0])[1]


def _descended(target: Target, widths: Sequence[int]) -> tuple[float, Windows]:
    """Return a local minimum and its value, from windows of these widths, nearly even."""
    domain = len(target.gram)
    rng = np.random.default_rng(0)  # so that a design is reproducible
    # Slightly uneven: from windows that are their own mirror images the gradient would lead to such
    # ones only, if the workload is symmetric, too.
    heights = np.concatenate([rng.uniform(0.8, 1.2, size=width) / width for width in widths])
    shares = np.full(len(widths), 1 / len(widths))
    windows, value = Windows(domain, tuple(widths), heights / heights.sum(), shares), np.inf
    # The second descent is over fewer windows: those that the first has driven to almost nothing
    # would be outputs of the table all the same.
    for _ in range(2):
        program = _Program(target, windows)
        z = np.log(np.maximum(np.concatenate([windows.shares, windows.heights]), 1e-12))
        for sharpness in _SHARPNESS:
            descent = minimize(
                program.objective,
                z,
                args=(sharpness,),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": _STEPS, "maxcor": 30, "ftol": 1e-11, "gtol": 1e-10},
            )
            z, value = descent.x, float(descent.fun)
        shares, heights = program.split(z)
        windows = Windows(domain, windows.widths, heights, shares)
        windows = windows.trimmed(target.blanket(windows.apart(target.ratio))[0])
    return value, windows


class _Program:
    """The variance as a function of the logarithms of shares and heights, up to constants."""

    def __init__(self, target: Target, windows: Windows) -> None:
        self.target, self.domain = target, windows.domain
        self.index, self.part, self.places = windows.index, windows.part, windows.places
        # The added identity keeps every frequency estimable, also if the workload does not need it.
        self.gram = target.gram + np.eye(self.domain) * (
            1e-9 * np.trace(target.gram) / self.domain or 1e-9
        )

    def split(self, z: Floats) -> tuple[Floats, Floats]:
        """Shares and heights, each adding up to 1."""
        parts = np.split(z, [len(self.places)])
        shares, heights = (np.exp(np.maximum(part - part.max(), _LOWEST)) for part in parts)
        return shares / shares.sum(), heights / heights.sum()

    def objective(self, z: Floats, sharpness: float) -> tuple[float, Floats]:
        """The logarithm of tr(G M^-1) less what is known, and its gradient."""
        k, ratio = self.domain, self.target.ratio
        shares, heights = self.split(z)
        truth = np.append(heights, 0.0)[self.index]
        blanket = (shares / self.places)[self.part]
        # The maximum over pairs, and its gradient
        sums = _pairs(truth, blanket, ratio)
        most = float(sums.max())
        powers = (sums / most) ** sharpness
        mean = float(powers.sum()) / (k * (k - 1))
        apart = most * mean ** (1 / sharpness)
        # The power mean of all pairs in place of their maximum: smooth, at most the maximum, and
        # equal to it in the limit. Divided by the maximum first, so that no power overflows.
        by_sums = np.divide(powers, sums, out=np.zeros_like(sums), where=sums > 0)
        by_sums *= apart / mean / (k * (k - 1))
        # The variance, and its gradient by the table
        gamma, by_apart = self.target.blanket(apart)
        table = gamma * blanket[:, None] + (1 - gamma) * truth
        u = table / table.mean(axis=1)[:, None]
        inverse = np.linalg.inv(table.T @ u)
        value = float(np.sum(self.gram * inverse) - np.trace(self.gram) / k)
        by_slope = u @ (inverse @ self.gram @ inverse)
        # M depends on each entry directly, and through the mean of its row.
        by_table = np.einsum("ij,ij->i", by_slope, u)[:, None] / k - 2 * by_slope
        # And by truth and blanket: through the table, gamma and the pairs
        by_sums *= by_apart * float(np.sum(by_table * (blanket[:, None] - truth)))
        # sums[x, z] = P_xx + e^2 P_zz - 2 e P_xz for the products P = s'(s / b): chain rule,
        # backwards.
        by_products = -2 * ratio * by_sums
        by_products[np.diag_indices(k)] += by_sums.sum(axis=1) + ratio**2 * by_sums.sum(axis=0)
        scaled = truth / blanket[:, None]
        by_truth = (1 - gamma) * by_table + scaled @ (by_products + by_products.T)
        by_blanket = gamma * by_table.sum(axis=1) - np.einsum(
            "ij,ij->i", scaled @ by_products, scaled
        )
        by_heights = np.bincount(self.index.ravel(), by_truth.ravel())[: len(heights)]
        by_shares = np.bincount(self.part, by_blanket) / self.places
        gradient = [
            # The derivative of the softmax.
            shares * (by_shares - by_shares @ shares),
            heights * (by_heights - by_heights @ heights),
        ]
        return float(np.log(value)), np.concatenate(gradient) / value


def _pairs(laws: Floats, blanket: Floats, ratio: float) -> Floats:
    """Return the sums over outputs of (p_x - e p_z)^2 / b for all pairs, 0 on the diagonal."""
    products = (laws.T / blanket) @ laws
    squares = np.diag(products)
    sums: Floats = squares[:, None] + ratio**2 * squares - 2 * ratio * products
    sums[np.diag_indices(len(squares))] = 0.0
    return sums


def largest_moment(table: Floats, ratio: float) -> float:
    """Return the largest second moment of W over pairs of inputs, under the largest blanket.

    Shapes: `table` (outputs, inputs).
    """
    # The blanket, unnormalised: the least entry of each row, which all inputs share.
    return float(_pairs(table, table.min(axis=1), ratio).max())

"""Blocks: a circle of items cut into equal blocks, turned by a random angle for each user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from frequency.core.channel import smallest_integer
from frequency.core.deployable import coin
from frequency.core.oracle import Oracle
from frequency.core.public_draw import PublicDraw
from frequency.oracles.choice import OracleChoice, oracle_over
from mechdesign.base.linear_algebra import Floats, Items
from rangeq.core.node_law import NodeLaw


@dataclass(frozen=True)
class Blocks(PublicDraw):
    """A circular domain, turned by a random angle and cut into equal blocks.

    A report is the ``angle``, uniform in 0 .. width - 1 and public, and ``block``, the report of an
    oracle over the blocks: item x is in block ((x + angle) mod domain) // width.

    Parameters
    ----------
    domain : int
        The number of items of the circular domain.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    blocks : int
        The number of blocks: a divisor of the domain.
    oracle : str, class, Oracle or Mechanism
        One that counts cells, over the blocks: see `frequency.oracles.choice`.

    Raises
    ------
    ValueError
        The blocks do not cut the domain into equal parts, or the oracle does not count cells.
    """

    blocks: int
    oracle: OracleChoice

    fields: ClassVar[tuple[str, str]] = ("angle", "block")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.domain % self.blocks:
            raise ValueError(
                f"{self.blocks} blocks do not cut a circular domain of {self.domain} items into"
                " equal parts"
            )
        _ = self.base

    @property
    def width(self) -> int:
        """The items of a block."""
        return self.domain // self.blocks

    @cached_property
    def base(self) -> Oracle:
        """The oracle over the blocks."""
        oracle = oracle_over(self.oracle, self.blocks, self.epsilon)
        if not oracle.cells:
            raise ValueError(
                "blocks can be told by an oracle that counts cells, such as GRR or"
                f" ProjectiveGeometry, not {type(oracle).__name__}"
            )
        return oracle

    @cached_property
    def report_dtype(self) -> np.dtype[np.void]:
        return np.dtype(
            [("angle", smallest_integer(self.width - 1)), ("block", self.base.report_dtype)]
        )

    @property
    def _settings(self) -> tuple[int, ...]:
        return (self.width,)

    @property
    def _probabilities(self) -> tuple[Floats, ...]:
        return (np.full(self.width, 1 / self.width),)

    @property
    def _chances(self) -> tuple[tuple[int, Fraction], ...]:
        return ((self.width, Fraction(1, self.width)),)

    @property
    def _coins(self) -> list[dict[str, Any]]:
        return [coin(range(self.width))]

    @property
    def _expression(self) -> list[Any]:
        return ["turn", self.domain, self.width]

    def _draw(self, number: Callable[[int], Items]) -> tuple[Items, ...]:
        return (number(self.width),)

    def _cell(self, items: Items, setting: tuple[Items, ...]) -> Items:
        (angle,) = setting
        return (items + angle) % self.domain // self.width

    def cells_together(self, items: Items) -> tuple[Items, Items]:
        # At these angles an item comes into another block
        angles = np.unique(np.append(-items % self.width, 0))
        times = np.diff(angles, append=self.width)
        return self._cell(items[None], (angles[:, None],)), times

    def _details(self) -> dict[str, Any]:
        return {"width": self.width, "blocks": {**self.base.parameters}}

    def held_of(self, counts: npt.NDArray[np.int64]) -> Floats:
        """Estimates of the users in the block that begins at each item: shape (domain,).

        Of users of the angle by which the block begins there.
        """
        # At angle a, block b begins at item b width - a
        by_begin = self.base.held_of(counts)[::-1].T.ravel()
        return np.roll(by_begin, 1 - self.width)

    @property
    def alike(self) -> bool:
        """Whether the oracle treats all blocks alike, so that `law` is right."""
        return self.base.symmetric

    @cached_property
    def law(self) -> NodeLaw:
        """The errors of the oracle's estimates."""
        return NodeLaw.of(self.base)

    def added_variance(self, weights: Floats, held: Floats, known: Floats) -> Floats:
        """The variance of what a random user's report adds to sums of the blocks' estimates.

        The report is on the blocks of a random angle, and what is known of them is taken off.

        Parameters
        ----------
        weights : numpy.ndarray of float64
            Shape (sums, domain): of the block that begins at each item. Those of the same angle sum
            to 0.
        held, known : numpy.ndarray of float64
            Shape (domain,): the fraction of the users in that block, and what is taken off.

        Returns
        -------
        numpy.ndarray of float64
            Shape (sums,).
        """
        # Where all blocks are alike the mean square over reports is linear in the user's block:
        # `NodeLaw`; other oracles are asked angle by angle
        if self.alike:
            squares = weights**2 @ (self.law.contrast + self.law.held * held)
        else:
            squares = weights**2 @ held
            for angle in range(self.width):
                begins = (np.arange(self.blocks) * self.width - angle) % self.domain
                squares += self.base.linear_variance(1, weights[:, begins], held[begins])
        # By angle
        mean, off = (
            (weights * each).reshape(len(weights), -1, self.width).sum(axis=1)
            for each in (held, known)
        )
        result: Floats = squares / self.width + (off**2 - 2 * off * mean).mean(axis=-1)
        # The variance over angles: the mean square less the square of the mean
        return result - (mean - off).mean(axis=-1) ** 2

    def reporting(self, counts: npt.NDArray[np.int64], users: float) -> Floats:
        """The number of users who report on the block that begins at each item.

        Users of the same angle count alike for all of its blocks.

        Parameters
        ----------
        counts : numpy.ndarray of int64
            Of an aggregate of this channel.
        users : float
            The number of users that the counts are of.

        Returns
        -------
        numpy.ndarray of float64
            Shape (domain,).
        """
        total = counts.reshape(self.width, -1).sum(axis=1)
        result: Floats = (total * (users / total.sum()))[-np.arange(self.domain) % self.width]
        return result


def per_user_of_blocks(oracle: Oracle, domain: int, width: int) -> float:
    """The variance of a unit contrast between blocks, from one user drawn at random."""
    occupied = max(-(-domain // width), 2)
    return oracle.difference_variance(1, occupied) / 2 + width / domain

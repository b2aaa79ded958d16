"""reconstruct(...): the suppressed and rounded counts that the totals of a table give away.

Readers know what each entry can stand for (`SuppressedTable.known`), and that every total is the
sum of its line. The tables that fit both are the integer points of a polytope. For one and two axes
its constraint matrix is that of a network flow, totally unimodular, so that linear programs give
the extreme counts themselves; for more axes branch and bound takes their place.

Floats only suggest. That a count is possible is shown by a whole table, checked in integers; that
none beyond is possible by multipliers of a linear program, whose bound is computed in integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from mechdesign.base import Booleans, Floats, Integers, ProgressMeter
from mechdesign.tables.suppression import SuppressedTable, with_totals

_NODES = 200  # the most linear programs for one end of one interval

_ROUNDS = 100  # the most rounds of tightening bounds by lines

# Multipliers are rounded to fractions of this denominator.
#
# With one or two axes they are whole.
_SCALE = 5040


@dataclass(frozen=True, eq=False)
class TableReconstruction:
    """The possible counts behind each entry of a published table, cells and totals.

    Attributes
    ----------
    published : SuppressedTable
        What readers see, with the rule; nothing else is used.
    low, high : numpy.ndarray of int64
        The least and the largest possible count, with totals, shape (a + 1, b + 1, ...). It is
        proved that no table with a count outside would have been published so.
    tight : numpy.ndarray of bool
        Both ends are counts of tables that fit. With one or two axes always, and then every count
        between is possible, too; with more it is False where the search was cut off.
    """

    published: SuppressedTable
    low: Integers
    high: Integers
    tight: Booleans

    @property
    def recovered(self) -> Booleans:
        """The protected entries with one possible count, shape (a + 1, b + 1, ...)."""
        known: Booleans = self.low == self.high
        return self.published.protected & known

    @property
    def within_one(self) -> Booleans:
        """The protected entries that some number is at most 1 away from, for certain."""
        near: Booleans = self.high - self.low <= 2
        return self.published.protected & near


def reconstruct(published: SuppressedTable, *, progress: bool = False) -> TableReconstruction:
    """Bound each count of a table by what is published, as tightly as can be.

    The reader who does so knows the rule and the sizes of the groups, if they are public, but does
    not guess why complements were chosen.

    Parameters
    ----------
    published : SuppressedTable
        Made by `SuppressionRule.publish`, or typed in from a publication.
    progress : bool, default False
        Show how far it is, on standard error.

    Returns
    -------
    TableReconstruction

    Raises
    ------
    ValueError
        No table of counts would be published so.
    """
    search = _Search(published)
    size = published.values.size
    with ProgressMeter("bound the counts", size, "entries", shown=progress) as meter:
        for entry in range(size):
            for sign in (1, -1):
                search.maximise(entry, sign)
            meter.update()
    shape = published.values.shape
    low, high = -search.proved[-1].reshape(shape), search.proved[1].reshape(shape)
    tight = np.logical_and(*(search.proved[sign] == search.found[sign] for sign in (1, -1)))
    return TableReconstruction(published, low, high, tight.reshape(shape))


class _Node(NamedTuple):
    """A node: tables between two others, and a bound of what is maximised among them."""

    low: Integers
    high: Integers
    bound: int


class _Search:
    """A search among the tables that fit, flattened with their totals, for extreme counts.

    For sign 1 and -1, ``sign * count`` is at most ``proved[sign]`` in every table that fits, and
    ``found[sign]`` in one of them; it is below all of them as long as no table was found.
    """

    def __init__(self, published: SuppressedTable) -> None:
        self._shape = published.values.shape
        self._sums = _sums(self._shape)
        low, high = published.known()
        if not _propagate(low, high):
            raise _inconsistent()
        self.proved = {1: high.ravel(), -1: -low.ravel()}
        self.found = {1: low.ravel() - 1, -1: -high.ravel() - 1}

    def maximise(self, entry: int, sign: int) -> None:
        """Improve ``proved[sign][entry]`` and ``found[sign][entry]`` until they meet, if they do.

        Raises ValueError if it turns out that no table fits.
        """
        proved, known = self.proved[sign], self.found[sign]
        nodes = [_Node(-self.proved[-1], self.proved[1].copy(), int(proved[entry]))]
        open_bounds = []
        for _ in range(_NODES):
            # Branch and bound: nothing in this node exceeds a table that is known.
            while nodes and nodes[-1].bound <= known[entry]:
                nodes.pop()
            if not nodes:
                break
            node = nodes.pop()
            relaxed = self._relaxed(node, entry, sign)
            if relaxed is None:
                continue
            x, bound = relaxed
            # A table that fits may be extreme for other entries, too, and spares their programs.
            self._take(x)
            place = int(np.argmax(np.abs(x - np.rint(x))))
            if abs(x[place] - np.rint(x[place])) < 1e-6:
                open_bounds.append(bound)
                continue
            low, high = node.low.copy(), node.high.copy()
            high[place] = np.floor(x[place])
            low[place] = high[place] + 1
            for part in (_Node(node.low.copy(), high, bound), _Node(low, node.high.copy(), bound)):
                if _propagate(part.low.reshape(self._shape), part.high.reshape(self._shape)):
                    nodes.append(part)
        proved[entry] = max([known[entry], *open_bounds, *(node.bound for node in nodes)])
        if proved[entry] < -self.proved[-sign][entry]:
            raise _inconsistent()

    def _take(self, x: Floats) -> None:
        """Learn from the whole table nearest to ``x``, if it fits."""
        cells = np.rint(x).astype(np.int64).reshape(self._shape)[(slice(-1),) * len(self._shape)]
        table = with_totals(cells).ravel()
        if all((sign * table <= self.proved[sign]).all() for sign in (1, -1)):
            for sign in (1, -1):
                np.maximum(self.found[sign], sign * table, out=self.found[sign])

    def _relaxed(self, node: _Node, entry: int, sign: int) -> tuple[Floats, int] | None:
        """Return an optimum in real numbers, and a proved bound; None: the node is proved empty."""
        # Counts above their lower bounds are small numbers, of which floats are exact
        width, right = node.high - node.low, -(self._sums @ node.low)
        goal = np.zeros(len(width), dtype=np.int64)
        goal[entry] = -sign
        solved = _solved(goal, self._sums, right, np.stack([0 * width, width], axis=1))
        if solved.status == 0:
            least = self._least(goal, _whole(solved.eqlin.marginals), right, width)
            # `least` bounds the scaled objective from below: its negative, floored to a whole
            # count, bounds the count from above.
            bound = sign * int(node.low[entry]) + -least // _SCALE
            return node.low + solved.x, min(bound, node.bound)
        if solved.status == 2 and self._is_empty(right, width):
            return None
        return node.low.astype(np.float64), node.bound

    def _is_empty(self, right: Integers, width: Integers) -> bool:
        """Whether it is proved that nothing between 0 and ``width`` has the sums ``right``."""
        unit = scipy.sparse.eye_array(len(right), format="csr")
        slack = np.full(2 * len(right), np.inf)
        bounds = np.stack([np.zeros(len(width) + len(slack)), np.append(width, slack)], axis=1)
        # Phase 1: the least total by which sums are missed. If a bound on it is above 0, none fits
        # (Farkas).
        solved = _solved(
            np.repeat([0, 1], [len(width), len(slack)]),
            scipy.sparse.hstack([self._sums, unit, -unit], format="csr"),
            right,
            bounds,
        )
        return solved.status == 0 and (
            self._least(0 * width, _whole(solved.eqlin.marginals), right, width) > 0
        )

    def _least(
        self, goal: Integers, multipliers: Integers, right: Integers, width: Integers
    ) -> int:
        """Return a lower bound of ``_SCALE * goal @ x``, for x in 0 .. ``width``.

        The sums of x are ``right``. It holds whatever the multipliers are, by weak duality.
        """
        costs = _SCALE * goal - self._sums.T @ multipliers
        # min over 0 <= x <= width of c'x + y'(right - A x): each x is 0 or, where its reduced cost
        # is negative, the width.
        negative = np.minimum(costs, 0).astype(object)  # products may exceed 64 bits
        return int(multipliers.astype(object) @ right + negative @ width)


def _solved(costs: Integers, sums: Any, right: Integers, bounds: npt.NDArray[Any]) -> Any:
    """Return a vertex of least cost between the bounds, shape (n, 2), with these sums."""
    solve: Any = scipy.optimize.linprog  # its types know no sparse matrices
    # The dual simplex method, since it ends at a vertex: for a totally unimodular matrix that is
    # whole.
    return solve(costs, A_eq=sums, b_eq=right, bounds=bounds, method="highs-ds")


def _whole(multipliers: Floats) -> Integers:
    """Return multipliers times `_SCALE`, rounded; any are valid, so large ones are cut."""
    return np.rint(np.clip(multipliers, -1e6, 1e6) * _SCALE).astype(np.int64)


def _sums(shape: tuple[int, ...]) -> scipy.sparse.csr_array:
    """Return the matrix whose product with a flattened table is 0 if its totals are right."""
    # One line for each total is enough: the others follow.
    numbers = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    rows, columns, signs = [], [], []
    start = 0
    for axis, length in enumerate(shape):
        # Totals of several axes are summed along the first
        lines = np.moveaxis(numbers[(slice(-1),) * axis], axis, -1).reshape(-1, length)
        rows.append(np.repeat(np.arange(start, start + len(lines)), length))
        columns.append(lines.ravel())
        signs.append(np.tile(np.where(np.arange(length) < length - 1, 1, -1), len(lines)))
        start += len(lines)
    entries = (np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns)))
    return scipy.sparse.csr_array(entries, shape=(start, numbers.size))


def _propagate(low: Integers, high: Integers) -> bool:
    """Tighten bounds by the lines of a table with totals, in place; False: no table fits."""
    for _ in range(_ROUNDS):
        before = low.sum() - high.sum()
        for axis in range(low.ndim):
            least, most = np.moveaxis(low, axis, -1), np.moveaxis(high, axis, -1)
            lows, highs = least[..., :-1], most[..., :-1]
            low_sum, high_sum = lows.sum(-1, keepdims=True), highs.sum(-1, keepdims=True)
            np.maximum(least[..., -1:], low_sum, out=least[..., -1:])
            np.minimum(most[..., -1:], high_sum, out=most[..., -1:])
            # A cell is at most the largest total less the least of all others (bounds propagation).
            above = most[..., -1:] - (low_sum - lows)
            below = least[..., -1:] - (high_sum - highs)
            np.minimum(highs, above, out=highs)
            np.maximum(lows, below, out=lows)
        if (low > high).any():
            return False
        if low.sum() - high.sum() == before:
            break
    return True


def _inconsistent() -> ValueError:
    return ValueError("no table of counts would be published so: check the numbers and the rule")

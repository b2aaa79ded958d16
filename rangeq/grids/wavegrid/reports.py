"""What reports alone tell of questions about one attribute, or two: no prior, and no smoothing.

The likelihood of an attribute's frequencies p is exp(s'p - p'A p / 2) (`rangeq.core.Told`), and
their sum is known to be 1. So for weights f of the cells f'p has the unbiased estimate f'(e + C^+
(s - A e)) and the variance f'C^+ f, with C the matrix A with both sides centred, for any e of sum
1, as far as f less its mean lies in the range of C. The table of a pair is the product of both
margins, and an interaction D whose rows and columns have the sum 0. Of this f'D g has the variance
f'G^+ f g'H^+ g / u in u reports on waves, with both Gram matrices centred; those on halves, which
are about one number v'D w, are joined by generalised least squares.

What lies outside of these ranges nobody reported on: of two square waves of opposite signs some
frequencies are in none. That part of an answer is the model's, with its variance. But of cells that
no report tells apart, as within those of a grid, none is taken to be as the model has it: what is
asked for has at least those groups of them that lie in it, and at most those that it has a part of.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter1d

from frequency.core import Condition, ConfidenceInterval, normal_quantile
from mechdesign.base import Floats, Items
from rangeq.core import Told, contrasts
from rangeq.grids.cells import overlap
from rangeq.grids.wavegrid.distributions import Axis, FittedJoint, Joint, parts_before

_ROUNDED = 1e-9  # relative differences below it are rounding

_KNOWN = 1e-9  # the part of the largest eigenvalue below which there is no information

# The part of the error of a pair's upper bound that those of both attributes by themselves have.
_MARGINS = 0.1

# The deviations of upper bounds that are compared: the same for all confidences, so that intervals
# grow with these.
_BOUND = 2.0


class UnbiasedAnswers(NamedTuple):
    """Answers to questions, and their variances."""

    values: Floats  # shape (questions,)
    variances: Floats  # shape (questions,)


class _Range(NamedTuple):
    """The range of a centred matrix of information C, by its eigenvectors."""

    vectors: Floats  # shape (cells, rank)
    values: Floats  # shape (rank,): the eigenvalues, above 0

    @classmethod
    def of(cls, information: Floats) -> _Range:
        values, vectors = np.linalg.eigh(contrasts(information))
        kept = values > _KNOWN * max(float(values[-1]), 0.0)
        return cls(vectors[:, kept], values[kept])

    def split(self, weights: Floats) -> tuple[Floats, Floats]:
        """Weights of cells, (questions, cells), as coordinates in C^-1/2, and what is outside."""
        apart = contrasts(weights, (-1,))
        inside = apart @ self.vectors
        return inside / np.sqrt(self.values), apart - inside @ self.vectors.T

    def scores(self, scores: Floats, axis: int = 0) -> Floats:
        """Scores along one axis in these coordinates, in which their covariance is the identity."""
        turned = np.moveaxis(scores, axis, -1) @ self.vectors / np.sqrt(self.values)
        return np.moveaxis(turned, -1, axis)


class ReportsAlone:
    """Unbiased answers from the likelihoods of attributes and pairs.

    Parameters
    ----------
    told : sequence of Told
        Of each attribute by itself, over its fine cells.
    axes : sequence of Axis
        How cells are joined for pairs, and how users are distributed within coarse ones.
    joints : mapping of (int, int) to Joint
        Those that users reported on are `FittedJoint`, with the likelihoods of pairs.
    categorical : sequence of bool
        Of which attributes the values have no neighbours.
    """

    def __init__(
        self,
        told: Sequence[Told],
        axes: Sequence[Axis],
        joints: Mapping[tuple[int, int], Joint],
        categorical: Sequence[bool],
    ) -> None:
        self._told, self._axes, self._joints = told, axes, joints
        self._categorical = categorical
        self._singles: dict[int, tuple[_Range, Floats]] = {}
        self._pairs: dict[tuple[int, int], tuple[_Range, _Range, Floats]] = {}

    def alone(self, place: int, weights: Floats) -> UnbiasedAnswers:
        """Return sums over the fine cells of an attribute.

        Shapes: `weights` (questions, cells).
        """
        axis = self._axes[place]
        likely = axis.line.cells
        if place not in self._singles:
            scores, precision, _, _ = self._told[place]
            known = _Range.of(precision)
            self._singles[place] = known, known.scores(scores - precision @ likely)
        known, scores = self._singles[place]
        inside, outside = known.split(weights)
        variances = (inside**2).sum(axis=-1) + ((outside @ axis.changes) * outside).sum(axis=-1)
        return UnbiasedAnswers(weights @ likely + inside @ scores, np.maximum(variances, 0.0))

    def _least(self, place: int, weights: Floats, told: UnbiasedAnswers) -> UnbiasedAnswers:
        """Of sums over cells, (questions, cells), those over no fewer of the least upper bound.

        Which are taken is told by the model: of narrow ranges reports tell much less than of wide
        ones, in which no fewer users are. `told` has the sums themselves.
        """
        apart, likely = self._told[place].apart, self._axes[place].line.cells
        near, wider = weights.shape[-1] - apart, [told]
        bounds = [weights @ likely + _BOUND * np.sqrt(told.variances)]
        for doubling in range(0 if self._categorical[place] else (near - 1).bit_length()):
            # So many cells more on both sides of every range
            more = weights.copy()
            size = (2 << doubling) + 1
            more[:, :near] = maximum_filter1d(weights[:, :near], size, mode="constant")
            wider.append(self.alone(place, more))
            bounds.append(more @ likely + _BOUND * np.sqrt(wider[-1].variances))
        least, asked = np.argmin(bounds, axis=0), np.arange(len(weights))
        values, variances = zip(*wider, strict=True)
        return UnbiasedAnswers(np.array(values)[least, asked], np.array(variances)[least, asked])

    def together(
        self,
        places: tuple[int, int],
        rows: Floats,
        columns: Floats,
        margins: Sequence[UnbiasedAnswers],
    ) -> UnbiasedAnswers:
        """Return sums over the coarse cells of a pair, of products of weights.

        Shapes: `rows` and `columns` (questions, cells). `margins` has what is told of both by
        themselves.
        """
        joint = self._joints[places]
        left, right = margins
        if not (isinstance(joint, FittedJoint) and joint.pair.precision):
            nothing = np.full(len(rows), np.nan)
            return UnbiasedAnswers(nothing, nothing)
        pair, likely = joint.pair, joint.mean
        if places not in self._pairs:
            known, other = _Range.of(pair.grams[0]), _Range.of(pair.grams[1])
            scores = pair.scores - pair.precision * (pair.grams[0] @ likely @ pair.grams[1])
            scores = other.scores(known.scores(scores), 1) / pair.precision
            self._pairs[places] = known, other, scores
        known, other, scores = self._pairs[places]
        (f, outside), (g, beyond) = known.split(rows), other.split(columns)
        values = ((f @ scores) * g).sum(axis=1)
        variances = (f**2).sum(axis=1) * (g**2).sum(axis=1) / pair.precision
        halves = pair.halves
        if halves.precision:
            (v, _), (w, _) = known.split(halves.left), other.split(halves.right)
            # What the waves tell of the halves, its variance, and its covariance with each answer
            shared = (f @ v) * (g @ w) / pair.precision
            spread = float((v @ v) * (w @ w)) / pair.precision
            off = halves.score / halves.precision - halves.difference(likely) - v @ scores @ w
            gain = shared / (1 / halves.precision + spread)
            values, variances = values + gain * off, np.maximum(variances - gain * shared, 0.0)
        # f g' less what is inside of both is two products
        within = contrasts(rows, (-1,)) - outside
        variances = variances + joint.product_variances(outside, contrasts(columns, (-1,)))
        variances = variances + joint.product_variances(within, beyond)
        alone = [
            weights @ mass for weights, mass in zip((rows, columns), pair.margins, strict=True)
        ]
        values = values + ((rows @ likely) * columns).sum(axis=1)
        values = values + left.values * right.values - alone[0] * alone[1]
        # That of a product of independent estimates
        variances = variances + right.values**2 * left.variances + left.values**2 * right.variances
        return UnbiasedAnswers(values, variances + left.variances * right.variances)

    def interval(
        self,
        asked: Sequence[Condition],
        shape: tuple[int, ...],
        drawing: Callable[[Floats], Any],
        confidence: float,
    ) -> ConfidenceInterval[Floats]:
        """Return intervals of answers about one attribute, or about two.

        Their ends are NaN where nobody was asked about the pair. `drawing` is the variance that
        drawing the users who reported adds to fractions.
        """
        places = [condition.place for condition in asked]
        inside, touched, most = [], [], []
        for condition in asked:
            within, beyond = self._fine(condition, shape)
            inside.append(self.alone(condition.place, within))
            touched.append(self.alone(condition.place, beyond))
            most.append(self._least(condition.place, beyond, touched[-1]))
        parts = [1.0]
        if len(asked) == 2:
            pair = places[0], places[1]
            rows, columns = (self._coarse(one, shape, pair) for one in asked)
            both = zip(rows, columns, (inside, touched), strict=True)
            inside, touched = ([self.together(pair, *one)] for one in both)
            # No more than has either value by itself: all bounds hold together (Bonferroni)
            most, parts = [*touched, *most], [1 - 2 * _MARGINS, _MARGINS, _MARGINS]

        def half(found: UnbiasedAnswers, part: float) -> Floats:
            z = normal_quantile(1 - part * (1 - confidence))
            return np.asarray(z * np.sqrt(found.variances + drawing(found.values)))

        low = inside[0].values - half(inside[0], 1.0)
        highs = [one.values + half(one, part) for one, part in zip(most, parts, strict=True)]
        # NaN where the pair has no answer
        return ConfidenceInterval(low.reshape(shape), np.min(highs, axis=0).reshape(shape))

    def _fine(self, condition: Condition, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
        """The fine cells that lie in what is asked for, and those that have a part in it."""
        edges = self._axes[condition.place].line.edges
        parts = _summed(condition, shape, lambda first, last: overlap(edges, first, last))
        least, most, _ = _by_group(parts, self._told[condition.place].precision)
        return (least > 1 - _ROUNDED).astype(np.float64), (most > 0).astype(np.float64)

    def _coarse(
        self, condition: Condition, shape: tuple[int, ...], pair: tuple[int, int]
    ) -> tuple[Floats, Floats]:
        """The same of coarse cells: that part of one by itself that its users by margins are."""
        axis, joint = self._axes[condition.place], self._joints[pair]

        def between(first: Items, last: Items) -> Floats:
            start, end = axis.place(first), axis.place(last + 1)
            cells = len(axis.mass)
            return parts_before(end, cells) - parts_before(start, cells)

        parts = _summed(condition, shape, between)
        if not isinstance(joint, FittedJoint):
            return parts, parts
        least, most, one = _by_group(parts, joint.pair.grams[pair.index(condition.place)])
        whole = (least > 1 - _ROUNDED).astype(np.float64), (most > _ROUNDED).astype(np.float64)
        return np.where(one, parts, whole[0]), np.where(one, parts, whole[1])


def _by_group(parts: Floats, information: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """The least and the largest part in each group of cells that no report tells apart.

    And which cells are groups by themselves. Shapes: `parts` (questions, cells), as the first two.
    """
    # Neighbours that all functions of reports have in common have the same columns
    apart = np.abs(np.diff(information, axis=1)).max(axis=0) > _ROUNDED * np.abs(information).max()
    starts = np.flatnonzero(np.append(True, apart))
    sizes = np.diff(np.append(starts, len(information)))
    least, most = (
        np.repeat(chosen.reduceat(parts, starts, axis=1), sizes, axis=1)
        for chosen in (np.minimum, np.maximum)
    )
    return least, most, np.repeat(sizes == 1, sizes)


def _summed(
    condition: Condition, shape: tuple[int, ...], between: Callable[[Items, Items], Floats]
) -> Floats:
    """Weights of cells, (questions, cells), that are sums over the ranges of a condition."""
    weights = [
        between(*(np.broadcast_to(end, shape).reshape(-1).astype(np.int64) for end in run))
        for run in condition.runs()
    ]
    return np.asarray(np.sum(weights, axis=0))

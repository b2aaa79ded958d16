"""CALM: marginals of any attributes from consistent marginals of a few overlapping sets.

Source: Zhang et al., CCS 2018; thesis 4.6.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import ClassVar, NamedTuple

import numpy as np
import scipy

from frequency.core import Aggregate, Oracle, checked_users
from frequency.marginals.consistency import ConsistentEstimate, Overlap
from frequency.marginals.estimate import MarginalEstimate
from frequency.marginals.views import ViewProtocol, Views, _spread
from frequency.oracles import GRR, OUE
from frequency.schema import Domain as Domain
from mechdesign.base import Floats, Items, Rational, listed, set_fields, shown, whole

Names = tuple[str, ...]

#: The largest number of cells of a view, or of a marginal that is put together from views.
MOST_CELLS = 1 << 20

# The largest number of sets of ``covered`` attributes, times the sets in each.
#
# The time to choose views grows with it.
_MOST_SETS = 1 << 15

_TOLERANCE = 1e-9
_LEAST = 1e-10
_MOST_ROUNDS = 10_000


def covering(attributes: int, covered: int, size: int) -> tuple[tuple[int, ...], ...]:
    """Return sets of ``size`` attributes such that any ``covered`` of them are together in one.

    >>> covering(4, 2, 3)
    ((0, 1, 2), (0, 1, 3), (0, 2, 3))
    """
    left = dict.fromkeys(combinations(range(attributes), covered))
    blocks = []
    # Greedy: each begins with the first set that is not covered yet, and takes the attribute that
    # covers most until it is full
    while left:
        first, block = next(iter(left)), list[int]()
        gains = [int((more,) in left) for more in range(attributes)]  # sets that each would cover
        while len(block) < size:
            outside = (more for more in range(attributes) if more not in block)
            place = len(block)
            last = first[place] if place < covered else max(outside, key=gains.__getitem__)
            # Gains are updated, not counted anew: only sets that contain the attribute added last
            # are new, with it as the last but one member.
            for others in combinations(block, covered - 2) if covered > 1 else ():
                for more in range(attributes):
                    gains[more] += tuple(sorted((*others, last, more))) in left
            block.append(last)
        for names in combinations(sorted(block), covered):
            left.pop(names, None)
        blocks.append(tuple(sorted(block)))
    return tuple(blocks)


def adaptive(cells: int, epsilon: float | Rational) -> Oracle:
    """Return GRR or OUE, whichever has the lower variance for so many cells."""
    grr, oue = GRR(cells, epsilon), OUE(cells, epsilon)
    return grr if cells == 1 or grr.difference_variance(1) <= oue.difference_variance(1) else oue


@dataclass(frozen=True)
class AdaptiveViews(Views):
    """A channel of views, each by the better oracle for its number of cells."""

    def _oracle(self, cells: int) -> Oracle:
        return adaptive(cells, self.epsilon)


class _Errors:
    """The variances of the consistent fit to views, at even frequencies.

    They are for one user, and as many users on each view.
    """

    def __init__(
        self, domain: Domain, views: Sequence[Names], epsilon: float | Rational, largest: int
    ) -> None:
        self.domain = domain
        self._precisions: dict[Names, float] = {}
        variances = {1: 1.0}
        for view in views:
            cells = domain.project(view).size
            if cells not in variances:
                oracle = adaptive(cells, epsilon)
                variances[cells] = oracle.difference_variance(1) / 2 + 1 / cells
            variance = variances[cells]
            for size in range(1, min(largest, len(view)) + 1):
                for names in combinations(view, size):
                    weight = math.prod(domain[name] for name in names) / (
                        cells * variance * len(views)
                    )
                    self._precisions[names] = self._precisions.get(names, 0.0) + weight

    def cell(self, names: Names) -> float:
        """Return the variance of a cell of the marginal of attributes in the domain's order."""
        total, cells = 0.0, self.domain.project(names).size
        # Effects are orthogonal: variances add up. Each is the inverse of the precisions of all
        # views that hold it, less what users have in common, and a cell has a share of it by its
        # contrasts.
        for size in range(1, len(names) + 1):
            for subset in combinations(names, size):
                part = math.prod(self.domain[name] for name in subset)
                contrasts = math.prod(1 - 1 / self.domain[name] for name in subset)
                total += contrasts * (1 / self._precisions[subset] - 1 / part) * (part / cells) ** 2
        return total


class Reconstruction(NamedTuple):
    """A report of how a marginal was put together.

    Attributes
    ----------
    iterations : int
        Rounds of iterative scaling; 0 for a marginal that a view holds.
    converged : bool
        Whether it has the views' marginals, up to 1e-9. It cannot if no distribution has them all,
        which noise can cause.
    discrepancy : float
        The largest difference of a cell from a view's.
    """

    iterations: int
    converged: bool
    discrepancy: float


class CALMEstimate(MarginalEstimate):
    """A biased estimate, by distributions of most entropy given consistent, non-negative views.

    The views are the nearest, by weighted least squares, to the noisy ones that agree where they
    overlap and are not negative. A marginal that no view holds has the entropy-maximising
    dependence between what views hold of it. `consistent` gives unbiased marginals, within views.

    Variances are those of the noise, by linear propagation: through the least squares fit, and
    through the derivative of the distribution of most entropy for a marginal that no view holds.
    They are as if no cell had to be raised to 0, which makes errors smaller, above all in rare
    cells; what most entropy errs by, for attributes that depend on each other beyond what views
    hold, is not in them.
    """

    def __init__(self, protocol: CALM, aggregate: Aggregate) -> None:
        super().__init__(protocol, aggregate)
        self._calm = protocol
        self._found: dict[Names, tuple[Floats, Reconstruction]] = {}

    def marginal(self, attributes: Sequence[str]) -> Floats:
        """Return the marginal, one axis an attribute in the order asked for."""
        names = self._calm.checked(attributes)
        return (
            self._reconstructed(names)[0]
            if self.reports
            else np.full(self.domain.project(names).shape, np.nan)
        )

    def report(self, attributes: Sequence[str]) -> Reconstruction:
        """Return how a marginal was put together. ValueError with no reports."""
        names = self._calm.checked(attributes)
        if not self.reports:
            raise ValueError("no reports: there is nothing to put together")
        return self._reconstructed(names)[1]

    @cached_property
    def _held(self) -> dict[Names, Floats]:
        """The consistent, non-negative marginals of the views that somebody reported on."""
        fit = ConsistentEstimate(self._calm, self.aggregate)
        some = [part for part, precision in enumerate(fit.overlap.precisions) if precision]
        views, precisions = (
            [self._calm.views[part] for part in some],
            [fit.overlap.precisions[part] for part in some],
        )
        tables = nonnegative(
            Overlap(self.domain, views, precisions), [fit.tables[part] for part in some]
        )
        return dict(zip(views, tables, strict=True))

    def _known(self, key: Names) -> dict[Names, Floats]:
        """Return the largest marginals of some attributes that views hold, in domain order."""
        known = {}
        for view, table in self._held.items():
            shared = tuple(name for name in view if name in key)
            if shared:
                known[shared] = table.sum(
                    axis=tuple(axis for axis, name in enumerate(view) if name not in key)
                )
        return {
            part: table
            for part, table in known.items()
            if not any(set(part) < set(other) for other in known)
        }

    def _variances(self, names: Names, weights: Floats) -> Floats:
        fit = ConsistentEstimate(self._calm, self.aggregate)
        joint, known = self._reconstructed(names)[0].ravel(), self._known(self._key(names))
        for view in self._calm.views:
            if not any(set(view) & set(names) <= set(part) for part in known):
                return np.full(len(weights), np.inf)  # nobody reported on it
        domain = self.domain.project(names)
        parts = [tuple(name for name in names if name in part) for part in known]
        cells = [domain.cells(np.arange(domain.size), part) for part in parts]
        sizes = [domain.project(part).size for part in parts]
        # The delta method: to first order the distribution of most entropy is a linear function of
        # the marginals that it was made from, and variances propagate through its slopes.
        # A view that holds all of the attributes is one part
        slopes = _slopes(joint, cells, sizes, weights) if len(parts) > 1 else [weights]
        linear = np.zeros((len(weights), domain.size))
        for slope, cell in zip(slopes, cells, strict=True):
            linear += slope[:, cell]
        shared = _spread(linear, joint)
        return fit.noise_of(list(zip(parts, slopes, strict=True))) - shared / fit.reports

    def _key(self, names: Names) -> Names:
        return tuple(name for name in self.domain if name in names)

    def _reconstructed(self, names: Names) -> tuple[Floats, Reconstruction]:
        key = self._key(names)
        if key not in self._found:
            known = self._known(key)
            self._found[key] = (
                (known[key], Reconstruction(0, True, 0.0))
                if key in known
                else most_entropy(self.domain.project(key), known)
            )
            self._found[key][0].setflags(write=False)
        table, how = self._found[key]
        return np.transpose(table, [key.index(name) for name in names]), how


def _slopes(held: Floats, cells: list[Items], sizes: list[int], weights: Floats) -> list[Floats]:
    """Return the slopes of sums of cells of a distribution of most entropy by its marginals.

    Shapes: `weights` (sums, cells); returns (sums, its cells).
    """
    # The distribution is proportional to a product of one factor for each marginal. So the changes
    # that the marginals allow are those of the factors, and the slopes are the sum of functions of
    # the marginals' cells that is nearest to the weights, in mean square over the distribution
    starts = np.cumsum([0, *sizes])
    columns = np.concatenate([start + cell for start, cell in zip(starts, cells, strict=False)])
    rows = np.tile(np.arange(len(held)), len(cells))
    members = scipy.sparse.csr_array(
        (np.ones(len(rows)), (rows, columns)), shape=(len(held), int(starts[-1]))
    )
    weighted = scipy.sparse.csr_array((held[rows], (rows, columns)), shape=members.shape)
    moments = (members.T @ weighted).toarray()
    sides = np.asarray(weighted.T @ weights.T)
    # Normal equations of that least squares problem. They are singular, since overlapping marginals
    # share totals: the pseudoinverse takes the smallest of the solutions, which are all equivalent.
    slopes: Floats = np.linalg.pinv(moments, rcond=_LEAST, hermitian=True) @ sides
    return np.split(slopes.T, starts[1:-1], axis=1)


def nonnegative(overlap: Overlap, tables: Sequence[Floats]) -> list[Floats]:
    """Return the proper marginals that agree, and are nearest to some by weighted least squares.

    Dykstra's algorithm alternates between marginals that agree and tables that are not negative.
    """
    domain, views = overlap.domain, overlap.views
    shapes = [table.shape for table in tables]
    starts = np.cumsum([0] + [table.size for table in tables])
    alike = {
        shape: [part for part, other in enumerate(shapes) if other == shape] for shape in shapes
    }
    cells = {
        shape: starts[parts, None] + np.arange(math.prod(shape)) for shape, parts in alike.items()
    }
    # Orthonormal rows, a constant one first.
    bases = {
        size: np.asarray(scipy.linalg.helmert(size, full=True))
        for shape in shapes
        for size in shape
    }

    # A coefficient of a view is that of the joint distribution with the same number, times its
    # scale: to agree is to share them.
    numbers, scales = [], []
    for view, shape in zip(views, shapes, strict=True):
        values = np.zeros((math.prod(shape), len(domain)), dtype=np.int64)
        places = list(domain.places(view))
        values[:, places] = np.indices(shape).reshape(len(shape), -1).T
        numbers.append(domain.items(values))
        scales.append(np.where(values[:, places] == 0, 1 / np.sqrt(shape), 1.0).prod(axis=1))
    shared, which = np.unique(np.concatenate(numbers), return_inverse=True)
    scale, weight = np.concatenate(scales), np.repeat(overlap.precisions, np.diff(starts))
    norms = np.bincount(which, weight * scale**2)

    # Views of the same shape are transformed in one stack: there may be thousands of small ones.
    def transform(flat: Floats, back: bool) -> Floats:
        result = np.empty_like(flat)
        for shape, where in cells.items():
            stack = flat[where].reshape(-1, *shape)
            for axis, size in enumerate(shape, start=1):
                basis = bases[size].T if back else bases[size]
                stack = np.moveaxis(np.tensordot(stack, basis, axes=(axis, 1)), -1, axis)
            result[where] = stack.reshape(where.shape)
        return result

    def agreeing(flat: Floats) -> Floats:
        coefficients = np.bincount(which, weight * scale * transform(flat, False)) / norms
        # Coefficient 0 is the total, which is known.
        coefficients[shared == 0] = 1.0
        return transform(scale * coefficients[which], True)

    fit = agreeing(np.concatenate([table.ravel() for table in tables]))
    owed, apart = np.zeros_like(fit), float(-fit.min())
    for _ in range(_MOST_ROUNDS):
        if apart <= _TOLERANCE:
            break
        # Dykstra, not plain alternation: the correction `owed` makes the limit the nearest point of
        # both sets, not just some common point. Only the cone needs one; for a linear space it has
        # no effect. Clipping is the projection in the weighted norm, too, as the weights are
        # diagonal.
        positive = np.maximum(fit + owed, 0.0)
        owed = fit + owed - positive
        fit = agreeing(positive)
        apart = float(np.abs(fit - positive).max())
    even = np.concatenate([np.full(table.size, 1 / table.size) for table in tables])
    below = fit < 0
    # What is left below 0 is mixed away with the uniform marginals, which keeps the agreement
    # The least share with (1 - share) fit + share even >= 0; uniform marginals agree with each
    # other.
    mixed = float((-fit[below] / (even - fit)[below]).max()) if below.any() else 0.0
    fit = np.maximum((1 - mixed) * fit + mixed * even, 0.0)
    return [
        part.reshape(shape) for part, shape in zip(np.split(fit, starts[1:-1]), shapes, strict=True)
    ]


def most_entropy(domain: Domain, known: dict[Names, Floats]) -> tuple[Floats, Reconstruction]:
    """Return the distribution of most entropy with these marginals, by iterative scaling."""
    result = np.full(domain.shape, 1 / domain.size)
    places = [
        tuple(axis for axis, name in enumerate(domain) if name not in names) for names in known
    ]
    # No cell becomes 0 and is lost to a marginal that needs it, as may happen where no distribution
    # has them all.
    targets = [
        np.expand_dims((1 - _LEAST) * table + _LEAST / table.size, axes)
        for table, axes in zip(known.values(), places, strict=True)
    ]
    iterations, discrepancy, before = 0, math.inf if known else 0.0, math.inf
    while iterations < _MOST_ROUNDS and discrepancy > _TOLERANCE:
        discrepancy = 0.0
        for target, axes in zip(targets, places, strict=True):
            current = result.sum(axis=axes, keepdims=True)
            discrepancy = max(discrepancy, float(np.abs(current - target).max()))
            # Iterative proportional fitting (Deming and Stephan 1940) from the uniform
            # distribution: each factor depends on one marginal's cells, so that the product form is
            # invariant.
            result = result * (target / np.maximum(current, 1e-300))
        iterations += 1
        if iterations % 100 == 0:
            if discrepancy > 0.99 * before:
                break  # the steps repeat: no distribution has all of these marginals
            before = discrepancy
    return result, Reconstruction(iterations, discrepancy <= _TOLERANCE, discrepancy)


@dataclass(frozen=True)
class CALM(ViewProtocol):
    """CALM: marginals of any k attributes from those of a few sets, with one of them per user.

    Source: Zhang et al., CCS 2018. Each set has GRR or OUE, whichever is better for its number of
    cells. A set may have 2^20 cells, as may a marginal.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.
    k : int
        How many attributes a marginal may have; more than ``covered`` are put together by the
        principle of maximum entropy.
    covered : int, default 2
        Any so many attributes are together in one of the sets: pairs, unless three or more
        attributes depend on each other in ways that pairs do not tell.
    size : int, optional
        How many attributes a set has, ``covered`` to all. None: the number with the least predicted
        error of the marginals of ``covered`` attributes: of the noise and of the sampling of users,
        as in the paper, but exactly, for the consistent fit at even frequencies. The third error of
        the paper, of reconstruction, depends on the population and is not predicted.

    Examples
    --------
    >>> protocol = CALM(Domain.binary("a", "b", "c", "d", "e", "f", "g", "h"), k=4, epsilon=3.0)
    >>> len(protocol.views), protocol.views[:2]
    (11, (('a', 'b', 'c'), ('a', 'd', 'e')))
    """

    privacy_source: ClassVar[str] = "thesis, section 4.6.1"
    oracle: ClassVar[str] = "GRR or OUE"

    covered: int = 2
    size: int | None = None

    def __post_init__(self) -> None:
        attributes = len(self.domain) if isinstance(self.domain, Domain) else 0
        for name, value, low in (("covered", self.covered, 1), ("size", self.size, self.covered)):
            if value is None and name == "size":
                continue
            value = whole(value, name, low, attributes, what="a number of attributes")
            set_fields(self, **{name: value})
        sets = math.comb(attributes, self.covered)
        if sets << self.covered > _MOST_SETS:
            raise ValueError(
                f"{shown(sets)} sets of {self.covered} attributes are too many to cover, "
                f"more than {_MOST_SETS >> self.covered}"
            )
        super().__post_init__()

    @cached_property
    def channel(self) -> AdaptiveViews:
        return AdaptiveViews(self.domain.size, self.epsilon, self.domain, self.views, self.oracle)

    @cached_property
    def views(self) -> tuple[Names, ...]:
        """The sets of attributes that users report on."""
        best, least = None, math.inf
        wanted = self.domain.views(self.covered)
        for size in (
            range(self.covered, len(self.domain) + 1) if self.size is None else (self.size,)
        ):
            blocks = covering(len(self.domain), self.covered, size)
            names = self.domain.attributes
            candidate = tuple(tuple(names[place] for place in block) for block in blocks)
            if max(self.domain.project(view).size for view in candidate) > MOST_CELLS:
                break
            errors = _Errors(self.domain, candidate, self.epsilon, self.covered)
            error = sum(self.domain.project(names).size * errors.cell(names) for names in wanted)
            if best is None or error < least:
                best, least = candidate, error
            elif error > 4 * least:
                # A view's cells multiply with its size, the number of views falls with its square
                break
        if best is None:
            raise ValueError(f"a set of attributes would have more than {MOST_CELLS} cells")
        return best

    def checked(self, attributes: Sequence[str]) -> Names:
        """Return names of 1 .. k attributes of at most 2^20 cells; ValueError for others."""
        names = super().checked(attributes)
        if self.domain.project(names).size > MOST_CELLS:
            raise ValueError(f"the marginal of {listed(names)} has more than {MOST_CELLS} cells")
        return names

    def estimate(self, aggregate: Aggregate) -> CALMEstimate:
        """Return marginals of up to k attributes, put together when asked for."""
        return CALMEstimate(self, self.channel.require_own(aggregate))

    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        """Return the variance of each cell of the consistent fit, for attributes that a view holds.

        That the fit is made non-negative makes errors smaller.

        Parameters
        ----------
        n : int
            The number of users, at least 1.
        attributes : sequence of str
            Distinct names, that a view holds.

        Returns
        -------
        numpy.ndarray
            One axis an attribute, in the order asked for.

        Raises
        ------
        ValueError
            No view holds the attributes: errors of reconstruction depend on the population.
        """
        names = self.checked(attributes)
        self.inside(names)
        ordered = tuple(name for name in self.domain if name in names)
        errors = _Errors(self.domain, self.views, self.epsilon, len(names))
        return np.full(self.domain.project(names).shape, errors.cell(ordered) / checked_users(n))

"""InpHT: one Fourier coefficient of low order of the record, as one bit.

Source: thesis 4.3.2, Theorem 5; 7.1.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from frequency.algebra import WORD
from frequency.core import (
    Aggregate,
    Likelihood,
    Mixture,
    json_integers,
    of_signs,
    two_likelihoods,
    weights_of,
)
from frequency.marginals.protocol import MarginalProtocol, Table
from frequency.oracles import SignChannel
from frequency.schema import Domain
from frequency.schema.domain import LARGEST_RECORDS
from mechdesign import Audit
from mechdesign.accounting.pair_law import PairLaw
from mechdesign.base import Floats, Items, listed, shown

#: The type of the index c of a Fourier coefficient: a number for each attribute, 0 for most.
#:
#: The coefficient of a record x is exp(2 pi i sum_j c_j x_j / r_j).
Index = tuple[int, ...]

#: The largest number of coefficients: the parameters, and every message, name them.
LARGEST_COEFFICIENTS = 1 << 16

LARGEST_COUNTS = 1 << 22  #: The largest number of counts in an aggregate of them.

_LARGEST_LIST = 1 << 20  # the number of phases together up to which the differences are listed

LARGEST_DENSE = 1 << 24  #: The largest number of signs that the likelihood of a marginal may list.


@dataclass(frozen=True)
class Phase(SignChannel):
    """The half of all phases in which the user's phase lies, counted from a random phase on.

    There are ``domain`` phases; one bit by randomised response. A report is the ``shift``, uniform
    and public (0 for two), and the ``sign`` of (phase + shift) mod domain: + in the first half.
    """

    @property
    def _shifts(self) -> int:
        return 1 if self.domain <= 2 else self.domain

    @property
    def _indices(self) -> dict[str, range]:
        return {"shift": range(self._shifts)}

    @property
    def _expression(self) -> list[Any]:
        return ["half", self.domain]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        (shift,) = index
        return (items + shift) % self.domain >= self.half

    @property
    def half(self) -> int:
        """The number of phases, from 0 on, in the first half: the larger one of an odd number."""
        return (self.domain + 1) // 2

    def simulated_counts(
        self, items: Items, counts: Items, rng: np.random.Generator
    ) -> npt.NDArray[np.int64]:
        truths = self._held(items, counts)
        truth = float(self._choice.p)
        users = rng.multinomial(truths, np.full(self._shifts, 1 / self._shifts))  # (phases, shifts)
        place = (np.arange(self.domain)[:, None] + np.arange(self._shifts)) % self.domain
        plus = rng.binomial(users, np.where(place < self.half, truth, 1 - truth))
        return (2 * plus - users).sum(axis=0)

    @cached_property
    def signs(self) -> Floats:
        """The signs of the phases at each shift: shape (shifts, domain)."""
        phases = np.arange(self.domain)
        minus = self._minus(phases, np.arange(self._shifts)[:, None])
        return np.where(minus, -1.0, 1.0)

    @cached_property
    def gains(self) -> Floats:
        """The factors by which multiples of the phase are seen, before randomised response."""
        # |mean over shifts of sign * exp(-2 pi i m shift / domain)| for each multiple m.
        # A square wave has no even harmonics where the domain is even: these multiples are
        # invisible here and are estimated by directions of their own.
        result: Floats = np.abs(np.fft.fft(self.signs[0])) / self.domain
        result[0] = 0.0
        return result

    def coefficients(self, aggregate: Aggregate) -> npt.NDArray[np.complex128]:
        """Return unbiased estimates of the mean of exp(2 pi i m phase / domain), m with a gain.

        Others are 0.
        """
        sums = aggregate.counts.astype(np.float64)
        if self._shifts < self.domain:  # with two phases the other shift would tell the opposite
            sums = np.array([sums[0], -sums[0]]) / 2
        # Sign sums by shift are a cyclic convolution of the phases' frequencies with the square
        # wave: deconvolved by dividing their transforms, where the wave's is not 0.
        seen = np.fft.fft(sums) / (aggregate.n * self.contrast)
        signal = np.fft.fft(self.signs[0]) / self.domain
        some = self.gains > 1e-9
        result = np.zeros(self.domain, dtype=np.complex128)
        result[some] = seen[some] / signal[some]
        return result

    @property
    def least_alike(self) -> Fraction:
        return Fraction(self.domain % 2, self.domain)  # of phases as far apart as can be

    def audit(self) -> Audit:
        if self.domain == 1:
            return Audit(Fraction(1), self.max_ratio, "any report", (0, 0))
        return Audit(self._choice.ratio, self.max_ratio, "shift 0, sign +1", (0, self.domain - 1))


def _symmetric(numbers: Sequence[Any], largest: int) -> list[Any]:
    """Return the elementary symmetric polynomials, sums of products, of degree 0 .. largest."""
    result = [1, *[0] * largest]
    for number in numbers:
        # Downwards, so that each number enters a product once: the coefficients of prod (1 + number
        # t).
        for degree in range(largest, 0, -1):
            result[degree] += number * result[degree - 1]
    return result


@dataclass(frozen=True)
class Directions(Mixture):
    """A mixture of directions, of coefficients of low order, and the record's phase along one."""

    attributes: Domain  # of the records
    k: int  # attributes that a coefficient involves at most

    kind: ClassVar[str] = "direction"
    largest_domain: ClassVar[int] = LARGEST_RECORDS

    @cached_property
    def directions(self) -> tuple[Index, ...]:
        """The coefficients that involve 1 .. k attributes, one of each conjugate pair."""
        shape = self.attributes.shape
        some = [place for place, size in enumerate(shape) if size > 1]
        indices = []
        for size in range(1, min(self.k, len(some)) + 1):
            for places in combinations(some, size):
                for values in product(*(range(1, shape[place]) for place in places)):
                    index = dict(zip(places, values, strict=True))
                    conjugate = tuple(
                        (shape[place] - value) % shape[place] for place, value in index.items()
                    )
                    if values <= conjugate:
                        indices.append(tuple(index.get(place, 0) for place in range(len(shape))))
        return tuple(indices) or ((0,) * len(shape),)

    @cached_property
    def phases(self) -> tuple[int, ...]:
        """The number of phases of each direction: the order of its coefficient."""
        shape = self.attributes.shape
        return tuple(
            math.lcm(*(r // math.gcd(r, c) for r, c in zip(shape, direction, strict=True)))
            for direction in self.directions
        )

    @cached_property
    def parts(self) -> tuple[Phase, ...]:
        kinds = {order: Phase(order, self.epsilon) for order in set(self.phases)}
        return tuple(kinds[order] for order in self.phases)

    @cached_property
    def part_weights(self) -> tuple[int, ...]:
        # The sum over cells of the variance of all marginals of k attributes is the sum over
        # coefficients of their variances, times the sum of 1 / cells over the marginals that
        # involve them: best in proportion to the root of that. It depends only on how many values
        # the coefficient's attributes have.
        shape, roots, known = self.attributes.shape, [], dict[tuple[int, ...], int]()
        for direction in self.directions:
            kind = tuple(sorted(r for r, value in zip(shape, direction, strict=True) if value))
            if kind not in known:
                others = list(shape)
                for r in kind:
                    others.remove(r)
                shares = _symmetric([Fraction(1, r) for r in others], self.k - len(kind))
                cost = Fraction(shares[-1]) / math.prod(kind)
                # An integer root, the same on every machine: clients and server must agree on
                # weights.
                known[kind] = math.isqrt((cost.numerator << 80) // cost.denominator)
            # A direction that is not its own conjugate stands for two coefficients.
            pair = any(2 * value % r for r, value in zip(shape, direction, strict=True))
            roots.append(known[kind] * (1 + pair))
        total = sum(roots)
        return weights_of(len(roots), [Fraction(root, total) for root in roots], "direction")

    def _details(self) -> dict[str, Any]:
        return {
            "attributes": list(self.attributes),
            "characters": [list(direction) for direction in self.directions],
            **super()._details(),
        }

    @cached_property
    def _masks(self) -> Items | None:
        """The bits of an item whose parity is the phase, for each direction.

        None unless all phases are parities of bits.
        """
        # They are where values count in steps of powers of two: if all attributes are binary, for
        # one
        shape, steps = self.attributes.shape, self.attributes.steps
        masks = []
        for direction, order in zip(self.directions, self.phases, strict=True):
            some = [place for place, value in enumerate(direction) if value]
            if order != 2 or any(
                shape[place] % 2 or steps[place].bit_count() > 1 for place in some
            ):
                return None
            masks.append(sum(steps[place] for place in some))
        return np.array(masks, dtype=np.int64)

    def _nodes_of(self, parts: npt.NDArray[Any], items: Items) -> Items:
        if self._masks is None:
            return super()._nodes_of(parts, items)
        return (np.bitwise_count(items & self._masks[parts]) & 1).astype(np.int64)

    def dominating_law(self) -> PairLaw:
        # Only the phases' differences matter: those of record 0 and all others, if they are few
        if self.domain == 1 or self.domain * len(self.parts) > _LARGEST_LIST:
            return super().dominating_law()
        unit, records = math.lcm(*self.phases), np.arange(self.domain)
        alike: Any = np.zeros(self.domain, dtype=object)
        for k, (order, weight) in enumerate(zip(self.phases, self.part_weights, strict=True)):
            phase = self.part_items(k, records)
            shifts = order - 2 * np.minimum(phase, order - phase)  # with the same sign, of `order`
            alike += shifts.astype(object) * (weight * (unit // order))
        together = Fraction(int(alike[1:].min()), 2 * unit * WORD)
        return two_likelihoods(*self.parts[0].low_and_high, together)

    def part_expression(self, part: int) -> list[Any]:
        order, steps = self.phases[part], []
        for value, size, step in zip(
            self.directions[part], self.attributes.shape, self.attributes.steps, strict=True
        ):
            if value:
                steps.append(json_integers([step, size, value * order // size]))
        return ["phase", steps, order]

    def part_items(self, part: int, items: Items) -> Items:
        order, result = self.phases[part], np.zeros(len(items), dtype=np.int64)
        for place, value in enumerate(self.directions[part]):
            if value:
                result += self.attributes.values(items, [self.attributes.attributes[place]])[
                    :, 0
                ] * (value * order // self.attributes.shape[place])
        return result % order


@dataclass(frozen=True)
class InpHT(MarginalProtocol):
    """InpHT: one coefficient of the record that involves at most k attributes, as one bit.

    Source: thesis 4.3.2, Theorem 5; 7.1.1.

    For binary attributes the coefficients are those of the Hadamard transform; for others the
    Fourier coefficients of the product of cyclic groups, which is the orthogonal decomposition that
    thesis 7.1.1 asks for: every attribute costs as many coefficients as it has values, less one,
    and no power of two. Marginals share coefficients, and so are consistent with each other.

    Parameters
    ----------
    domain : Domain
        The attributes and their numbers of values.
    k : int
        How many attributes a marginal may have at most, 1 to all.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report: of the whole record.

    Raises
    ------
    ValueError
        There would be more than 2^22 coefficients, or counts in an aggregate.
    """

    privacy_source: ClassVar[str] = "thesis, Theorem 5"

    @cached_property
    def channel(self) -> Directions:
        coefficients = sum(_symmetric([r - 1 for r in self.domain.shape], self.k)[1:])
        if coefficients > LARGEST_COEFFICIENTS:
            raise ValueError(
                f"marginals of {self.k} of these attributes have {shown(coefficients)}"
                f" coefficients, more than {LARGEST_COEFFICIENTS}"
            )
        directions = Directions(self.domain.size, self.epsilon, self.domain, self.k)
        if sum(directions.phases) > LARGEST_COUNTS:
            raise ValueError(
                f"an aggregate would have {sum(directions.phases)} counts, more than"
                f" {LARGEST_COUNTS}"
            )
        return directions

    @cached_property
    def _seen(self) -> dict[Index, list[tuple[int, int]]]:
        """The directions, and the multiples of them, that each coefficient is."""
        shape = self.domain.shape
        seen: dict[Index, list[tuple[int, int]]] = {}
        for part, (direction, phase) in enumerate(
            zip(self.channel.directions, self.channel.parts, strict=True)
        ):
            for multiple in range(1, phase.domain):
                if phase.gains[multiple] > 1e-9:
                    index = tuple(multiple * c % r for c, r in zip(direction, shape, strict=True))
                    seen.setdefault(index, []).append((part, multiple))
        return seen

    @cached_property
    def _precision(self) -> list[list[float]]:
        """The precision with which one user of a direction tells each multiple of it."""
        return [((part.contrast * part.gains) ** 2).tolist() for part in self.channel.parts]

    def _precisions(self, index: Index, users: Floats) -> list[tuple[int, int, float]]:
        return [
            (part, multiple, users[part] * self._precision[part][multiple])
            for part, multiple in self._seen[index]
        ]

    def _indices(self, attributes: tuple[str, ...]) -> list[tuple[tuple[int, ...], Index]]:
        """Return the coefficients of a marginal but the constant one.

        They are given as places in its transform, and as coefficients of the domain.
        """
        places, indices = self.domain.places(attributes), []
        for values in product(*(range(self.domain[name]) for name in attributes)):
            if any(values):
                chosen = dict(zip(places, values, strict=True))
                indices.append(
                    (values, tuple(chosen.get(place, 0) for place in range(len(self.domain))))
                )
        return indices

    def _coefficients(self, aggregate: Aggregate) -> list[npt.NDArray[np.complex128]]:
        """Return the estimates by each direction of its multiples."""
        # For the last aggregate, which cannot change, they are kept
        last: tuple[Aggregate, list[npt.NDArray[np.complex128]]] | None = vars(self).get("_last")
        if last is None or last[0] is not aggregate:
            channel = self.channel
            levels = [channel.part_aggregate(aggregate, part) for part in range(len(channel.parts))]
            last = (
                aggregate,
                [
                    p.coefficients(level) if level.n else np.zeros(p.domain, complex)
                    for p, level in zip(channel.parts, levels, strict=True)
                ],
            )
            vars(self)["_last"] = last
        return last[1]

    def _transform(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> npt.NDArray[np.complex128]:
        """Return the transform of the marginal: NaN where nobody reported on a coefficient."""
        users, coefficients = self.channel.part_users(aggregate), self._coefficients(aggregate)
        result = np.zeros(self.domain.project(attributes).shape, dtype=np.complex128)
        result[(0,) * len(attributes)] = 1.0
        for values, index in self._indices(attributes):
            seen = self._precisions(index, users)
            total = sum(precision for *_, precision in seen)
            # The mean of all directions' estimates, weighted by the inverses of their variances.
            result[values] = (
                sum(p * coefficients[part][m] for part, m, p in seen) / total if total else np.nan
            )
        return result

    def marginal_of(self, aggregate: Aggregate, attributes: tuple[str, ...]) -> Floats:
        transform = self._transform(aggregate, attributes)
        return np.fft.fftn(transform).real.ravel() / transform.size

    def tables_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...]
    ) -> list[tuple[Table, Items, float]]:
        # The marginal itself, from all reports about its attributes alone
        table = tuple(name for name in self.domain if name in attributes)
        domain = self.domain.project(table)
        users = self.channel.part_users(aggregate)[self._inside(table)].sum()
        return [(table, domain.cells(np.arange(domain.size), attributes), float(users > 0))]

    def _inside(self, attributes: tuple[str, ...]) -> list[int]:
        """Return the directions that involve none but these attributes."""
        others = set(range(len(self.domain))) - set(self.domain.places(attributes))
        return [
            part
            for part, direction in enumerate(self.channel.directions)
            if not any(direction[place] for place in others)
        ]

    def likelihood_of(self, aggregate: Aggregate, table: Table) -> Likelihood:
        names, channel = cast(tuple[str, ...], table), self.channel
        view, inside = self.domain.project(names), self._inside(names)
        kinds = sum(len(channel.parts[part].signs) for part in inside)
        if kinds * view.size > LARGEST_DENSE:
            raise ValueError(
                f"the likelihood of {listed(names)} has {kinds} signs of each of {view.size} cells,"
                f" more than {LARGEST_DENSE} together"
            )
        records = np.zeros((view.size, len(self.domain)), dtype=np.int64)
        records[:, list(self.domain.places(names))] = view.values(np.arange(view.size))
        items, users = self.domain.items(records), channel.part_users(aggregate)
        signs, drawn, sums = [], [], []
        for part in inside:
            phase, level = channel.parts[part], channel.part_aggregate(aggregate, part)
            signs.append(phase.signs[:, channel.part_items(part, items)])
            drawn.append(np.full(len(phase.signs), users[part] / len(phase.signs)))
            sums.append(level.counts[: len(phase.signs)].astype(np.float64))
        matrix = np.concatenate(signs)
        return of_signs(
            view.size,
            np.concatenate(drawn),
            np.concatenate(sums),
            channel.parts[inside[0]].contrast,
            lambda frequencies: matrix @ frequencies,
            lambda numbers: numbers @ matrix,
        )

    def _second_moments(self, attributes: tuple[str, ...], users: Floats) -> Floats:
        """Return the mean square errors of a marginal's coefficients."""
        result = np.zeros(self.domain.project(attributes).shape)
        for values, index in self._indices(attributes):
            total = sum(precision for *_, precision in self._precisions(index, users))
            # What users have in common is not taken off
            result[values] = 1 / total if total else np.inf
        return result

    def linear_variances_of(
        self, aggregate: Aggregate, attributes: tuple[str, ...], weights: Floats
    ) -> Floats:
        return self._variance_of(
            attributes,
            weights,
            self.channel.part_users(aggregate),
            self._transform(aggregate, attributes),
        )

    def _variance_of(
        self,
        attributes: tuple[str, ...],
        weights: Floats,
        users: Floats,
        transform: npt.NDArray[np.complex128],
    ) -> Floats:
        shape = transform.shape
        # A weighted sum of cells is one of coefficients, with the weights' own transform
        # (Parseval).
        along = (
            np.fft.fftn(weights.reshape(-1, *shape), axes=range(1, len(shape) + 1)) / transform.size
        )
        along = along.reshape(len(weights), -1)
        moments = self._second_moments(attributes, users)
        flat = np.abs(along) ** 2
        # A coefficient that nobody reported on has infinite error, which must not meet a weight of
        # 0.
        total = np.where(
            flat > 1e-30, flat * np.where(flat > 1e-30, moments.ravel(), 0.0), 0.0
        ).sum(axis=1)
        # A report's contribution has a mean, the same for all users of its direction; and no user
        # reports on two directions.
        means = np.zeros((len(weights), len(users)))
        for values, index in self._indices(attributes):
            if not transform[values] or not np.isfinite(transform[values]):
                continue
            seen = self._precisions(index, users)
            precision = sum(p for *_, p in seen)
            for part, _, weight in seen:
                if precision:
                    means[:, part] += (
                        (along[:, np.ravel_multi_index(values, shape)] * transform[values]).real
                        * weight
                        / precision
                    )
        some = users > 0
        total = total - (means[:, some] ** 2 / users[some]).sum(axis=1)
        shares = np.maximum(np.nan_to_num(np.fft.fftn(transform).real.ravel()), 0.0)
        shares = shares / max(float(shares.sum()), 1e-300)
        # The sampling variance of a user, which the population's own n users have in common.
        shared: Floats = weights**2 @ shares - (weights @ shares) ** 2
        return np.maximum(total - shared / max(float(users.sum()), 1.0), 0.0)

    def cell_variances(self, n: int, attributes: Sequence[str]) -> Floats:
        # From the variances of its coefficients, on all of which each cell depends alike: with the
        # same absolute weight on each, so that one cell tells of all.
        names = self.checked(attributes)
        users = self.channel.expected_users(n)
        even = np.zeros(self.domain.project(names).shape, dtype=np.complex128)
        even[(0,) * len(names)] = 1.0
        (variance,) = self._variance_of(names, np.eye(1, even.size), users, even)
        return np.full(even.shape, variance)

"""The linear program of a mechanism: privacy, loss and properties as exact linear constraints.

Variable ``i * inputs + j`` is P[i, j]; a worst-case loss adds one more, the largest expected cost,
at the end. Privacy with a delta adds a slack for each output and each two neighbours, both ways:
after the entries, slack (pair, direction, i) is at least P[i, j] - P[i, j'] / alpha, and those of
two neighbours one way add up to delta at most. Nothing here depends on how a program is solved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from mechdesign.approximate_privacy import ApproximatePrivacy, Promise
from mechdesign.base import Floats, Integers
from mechdesign.losses import Loss
from mechdesign.lp.basis import Places, Program
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Values
from mechdesign.privacy import Privacy
from mechdesign.properties import Property, irredundant

PRIVACY = "privacy"  #: The kind of the constraints that state privacy.


def mechanism_program(
    outputs: Values | int,
    inputs: Values | int,
    privacy: Promise,
    loss: Loss,
    properties: Iterable[Property],
) -> Program:
    """Return the linear program of the best mechanism with these properties.

    Source: thesis 6.3, 6.4, Theorem 9. An integer k stands for the counts 0 .. k-1.
    """
    # Constraints that the properties asked for already imply are left out: CH under CM, RH under
    # RM, WH under CH or CM, and the half of the privacy constraints that row monotonicity implies.
    at = IndexTable(outputs, inputs)
    size = at.inputs.size
    groups = stated_constraints(at, privacy, properties)
    costs, weights = loss.costs(at.outputs, at.inputs), loss.weights(size)
    if min(map(min, costs)) < 0:
        raise ValueError("costs must be at least 0; add a constant to make them so")
    if not loss.worst_case:
        flat = tuple(
            cost * weight for row in costs for cost, weight in zip(row, weights, strict=True)
        )
        return Program(flat + (Fraction(0),) * slacks_of(at, privacy).size, tuple(groups))
    largest = at.size + slacks_of(at, privacy).size
    for j in range(size):
        cells = np.append(at[:, j], largest)[None, :]
        coefficients = (*(-row[j] * weights[j] for row in costs), Fraction(1))
        groups += _named(f"worst case {j}", [Constraints(cells, coefficients, Fraction(0), False)])
    return Program((Fraction(0),) * largest + (Fraction(1),), tuple(groups))


def stated_constraints(
    at: IndexTable, privacy: Promise, properties: Iterable[Property]
) -> list[Constraints]:
    """The named constraints of `mechanism_program`, without those of a worst-case loss."""
    wanted = irredundant(properties, at.aligned)
    groups = list(_named("column sums", [Constraints.equal_to(at.T, 1)]))
    row_monotone = at.aligned and any(p.short == "RM" for p in wanted)
    if isinstance(privacy, ApproximatePrivacy):
        groups += _named("privacy", _with_slacks(at, privacy))
    else:
        distances = np.unique(privacy.distances(at.inputs.size)).tolist()
        groups += _named(
            "privacy",
            [privacy_constraints(at, privacy, row_monotone, distance) for distance in distances],
        )
    for item in wanted:
        alone = sum(other.short == item.short for other in wanted) == 1
        groups += _named(item.short if alone else item.text, item.constraints(at, privacy.pure))
    return groups


def slacks_of(at: IndexTable, privacy: Promise) -> Integers:
    """Return the numbers of the slacks of privacy with a delta: shape (pairs, 2, outputs).

    Along the second axis are the two directions, of the smaller input first. Without a delta there
    are none.
    """
    outputs, inputs = at.shape
    pairs = privacy.pair_count(inputs) if isinstance(privacy, ApproximatePrivacy) else 0
    return at.size + np.arange(pairs * 2 * outputs).reshape(pairs, 2, outputs)


def _with_slacks(at: IndexTable, privacy: ApproximatePrivacy) -> list[Constraints]:
    """Return the constraints of privacy with a delta."""
    pairs, slacks = privacy.pairs(at.inputs.size), slacks_of(at, privacy)
    columns = at[:].T
    mine = columns[pairs]  # of shape (pairs, 2, outputs), as the slacks
    # Times alpha, so that no coefficient is large: alpha slack >= alpha P[i, j] - P[i, j']
    cells = np.stack([mine[:, ::-1], mine, slacks], axis=-1).reshape(-1, 3)
    alpha = privacy.alpha
    stated = Constraints(cells, (Fraction(1), -alpha, alpha), Fraction(0), False)
    sums = Constraints.sum_at_most(slacks.reshape(-1, len(at)), privacy.delta)
    return [replace(group, kind=PRIVACY) for group in (stated, sums)]


def privacy_constraints(
    at: Integers, privacy: Privacy, row_monotone: bool = False, distance: int = 1
) -> Constraints:
    """Return the privacy constraints of the neighbours j, j' at one ``distance`` d.

    They are P[i, j] >= alpha^d P[i, j'] and the reverse, or P[i, j] = P[i, j'] when alpha = 1.
    """
    # When the table is row monotone and the neighbours lie on one side of output i, only one of the
    # two is needed: the nearer entry is at least as large as the farther one, hence at least
    # alpha^d times it.
    outputs, inputs = at.shape
    pairs = privacy.pairs(inputs)[privacy.distances(inputs) == distance]
    low, high = at[:, pairs[:, 0]], at[:, pairs[:, 1]]
    if privacy.alpha == 1:
        return replace(Constraints.equal(low, high), kind=PRIVACY)
    output = np.arange(outputs)[:, None]
    low_is_nearer = row_monotone & (output <= pairs[None, :, 0])
    high_is_nearer = row_monotone & (output >= pairs[None, :, 1])
    larger = np.concatenate([low[~low_is_nearer], high[~high_is_nearer]])
    smaller = np.concatenate([high[~low_is_nearer], low[~high_is_nearer]])
    constraints = Constraints.at_least(larger, smaller, privacy.alpha**distance)
    return replace(constraints, kind=PRIVACY)


def reflection(
    outputs: int, inputs: int, variables: int, privacy: Promise | None = None
) -> Integers:
    """Return the central symmetry P[i, j] <-> P[n-i, n-j] (eq. 6.9), permuting variables."""
    # Variables of the program beyond the entries follow these, and stay, but for the slacks of
    # privacy with a delta. They go with the two inputs that they are about.
    size = outputs * inputs
    image = np.concatenate([np.arange(size)[::-1], np.arange(size, variables)])
    if not isinstance(privacy, ApproximatePrivacy):
        return image
    slacks = slacks_of(IndexTable(outputs, inputs), privacy)
    number = {pair: k for k, pair in enumerate(map(tuple, privacy.pairs(inputs).tolist()))}
    for (j, k), pair in number.items():
        # Where the neighbours are not symmetric, the slacks stay: the program is not, either.
        opposite = number.get((inputs - 1 - k, inputs - 1 - j))
        if opposite is not None:
            image[slacks[pair]] = slacks[opposite, ::-1, ::-1]
    return image


def _named(name: str, groups: Iterable[Constraints]) -> list[Constraints]:
    kept = [group for group in groups if len(group.cells)]
    return [group.named(name if len(kept) == 1 else f"{name} {k}") for k, group in enumerate(kept)]


# ------------------------------------------------------------------------------------------------
# A shorter program with the same optimum, and how its multipliers prove the original one.
#
# `mechanism_program` states privacy as it is defined, by a constraint for every output and every
# two neighbours: about n^3 constraints when all inputs are neighbours. Most of them are implied by
# fewer:
#
# - those of a pair of inputs, by those of a chain of pairs whose distances add up to no more than
# its own;
# - in a row monotone table, P[i, j] >= alpha^d P[i, j'], by the same with j farther from output i,
# or with j' nearer to it;
# - where s inputs are all within distance d of each other, the s (s - 1) constraints of an output,
# by 2 s constraints with one auxiliary variable more: every P[i, j] is at least the auxiliary
# variable, which is at least alpha^d times every P[i, j].
#
# Combining constraints of the last kind so that the auxiliary variable cancels gives back the
# constraints of the statement (Fourier-Motzkin elimination), and so do their multipliers: hence a
# certificate never mentions auxiliary variables.


# The distance of inputs that are not neighbours: more than any chain of neighbours has.
_UNRELATED = 1 << 40

_LEAST = 1e-6  # the probability below which floats need not tell one from 0


@dataclass(frozen=True)
class Clique:
    """A clique: inputs, in order, that are all within ``distance`` of each other."""

    inputs: tuple[int, ...]
    distance: int


@dataclass(frozen=True)
class Compact:
    """A compact program: shorter than the stated one, to which its multipliers are translated."""

    # Its groups are those of ``stated``, with only the constraints ``kept`` of each, and then two
    # for each clique: entries are at least the auxiliary variable, and that is at least alpha^d
    # times every entry. Its variables are those of ``stated`` and then the auxiliary ones: one for
    # each output, clique by clique.
    program: Program
    symmetry: Integers  # the central reflection of all variables
    stated: Program
    kept: tuple[Integers, ...]
    cliques: tuple[Clique, ...]
    inputs: int
    sizes: Floats  #: The scaling of the variables: about as large as they are where that is known.
    alpha: Fraction
    places: (
        Places | None
    )  #: Where chains are to be looked for, of counts whose neighbours are next.

    def restored(
        self, multipliers: Sequence[Mapping[int, Fraction]]
    ) -> dict[str, dict[int, Fraction]]:
        """Return dual values of the stated program by name of group, from those by its number."""
        # Both prove the same bound. An auxiliary variable costs nothing, so the multipliers of the
        # constraints above it sum to at least as much as those below it. Each pair of such
        # multipliers becomes a multiplier of the constraint of the statement that the two
        # constraints imply.
        stated = [
            {int(kept[r]): value for r, value in chosen.items()}
            for kept, chosen in zip(self.kept, multipliers[: len(self.kept)], strict=True)
        ]
        translated: dict[tuple[int, int], Fraction] = {}
        for c, clique in enumerate(self.cliques):
            above, below = multipliers[len(self.kept) + 2 * c : len(self.kept) + 2 * c + 2]
            for i in {r // len(clique.inputs) for r in below}:
                for (j, k), value in _matched(clique, i, above, below).items():
                    cell = i * self.inputs + j, i * self.inputs + k
                    translated[cell] = translated.get(cell, Fraction(0)) + value
        for group, chosen in zip(self.stated.constraints, stated, strict=True):
            if translated and group.kind == PRIVACY:
                for r, value in _located(group, translated, self.stated.variables):
                    chosen[r] = chosen.get(r, Fraction(0)) + value
        return {
            group.name: chosen
            for group, chosen in zip(self.stated.constraints, stated, strict=True)
        }


def compact(
    program: Program, outputs: int, inputs: int, privacy: Promise, row_monotone: bool
) -> Compact:
    """Return the shorter form of a program of `mechanism_program`, which had these arguments."""
    if isinstance(privacy, ApproximatePrivacy):
        # Nothing is implied by chains, whose deltas add up, nor by an auxiliary variable.
        everything = tuple(np.arange(len(group.cells)) for group in program.constraints)
        image = reflection(outputs, inputs, program.variables, privacy)
        sizes = np.ones(program.variables)
        return Compact(program, image, program, everything, (), inputs, sizes, privacy.alpha, None)
    distance = _distances(privacy, inputs)
    needed = _unchained(distance) if privacy.alpha < 1 else _connecting(distance)
    cliques = _cliques(distance, needed) if privacy.alpha < 1 and not row_monotone else []
    for clique in cliques:
        inside = np.ix_(clique.inputs, clique.inputs)
        # The clique's constraints imply those of its pairs at exactly its distance; closer pairs
        # have stronger ones, which stay.
        needed[inside] &= distance[inside] != clique.distance
    ordered = row_monotone and privacy.alpha < 1
    kept = [
        _irredundant(group, inputs, distance, needed, ordered)
        if group.kind == PRIVACY
        else np.arange(len(group.cells))
        for group in program.constraints
    ]
    groups = [
        replace(group, cells=group.cells[numbers])
        for group, numbers in zip(program.constraints, kept, strict=True)
    ]
    size = len(cliques), outputs
    auxiliary = program.variables + np.arange(math.prod(size)).reshape(size)
    for c, clique in enumerate(cliques):
        groups += _around(auxiliary[c], clique, inputs, privacy.alpha, f"auxiliary {c}")
    cost = program.cost + (Fraction(0),) * auxiliary.size
    symmetry = np.concatenate(
        [
            reflection(outputs, inputs, program.variables),
            auxiliary[_mirror_images(cliques, inputs), ::-1].ravel(),
        ]
    )
    shorter = Program(cost, tuple(groups))
    sizes = np.ones(shorter.variables)
    # Where monotonicity orders the entries, too, scaling gains nothing
    only_privacy = all(
        group.kind == PRIVACY or group.equality or group.cells.shape[1] == 1
        for group in program.constraints
    )
    adjacent = outputs == inputs and privacy.neighbours == "adjacent" and privacy.alpha < 1
    if adjacent and only_privacy:
        steps = np.abs(np.subtract.outer(np.arange(outputs), np.arange(inputs)))
        # Privacy alone makes an optimum decay like alpha^|i - j| from the diagonal, as GM does: the
        # interior point method would take the far entries for 0.
        sizes[: steps.size] = np.maximum(float(privacy.alpha) ** steps, _LEAST).ravel()
    return Compact(
        shorter,
        symmetry,
        program,
        tuple(kept),
        tuple(cliques),
        inputs,
        sizes,
        privacy.alpha,
        _places(program.variables, inputs) if adjacent and not cliques else None,
    )


def _places(variables: int, size: int) -> Places:
    """Return the places of the entries of a square table, and the exponents of GM and EM."""
    numbers = np.arange(variables)
    outputs, inputs = np.where(numbers < size**2, np.divmod(numbers, size), -1)
    steps = np.abs(outputs - inputs)
    # thesis eq. 6.15: from the nearer end of the inputs on, only every second step
    near = np.minimum(inputs, size - 1 - inputs)
    fair = np.where(steps < near, steps, (steps + near + 1) // 2)
    return Places(outputs, inputs, (steps, fair))


def _distances(privacy: Privacy, inputs: int) -> Integers:
    """Return the distances of every two inputs: shape (inputs, inputs)."""
    pairs, lengths = privacy.pairs(inputs), privacy.distances(inputs)
    distance = np.full((inputs, inputs), _UNRELATED)
    distance[pairs[:, 0], pairs[:, 1]] = distance[pairs[:, 1], pairs[:, 0]] = lengths
    return distance


def _irredundant(
    group: Constraints,
    inputs: int,
    distance: Integers,
    needed: npt.NDArray[np.bool_],
    row_monotone: bool,
) -> Integers:
    """Return the numbers of the privacy constraints that others do not imply."""
    # P[i, j] >= alpha^d P[i, k] is kept for ``needed`` pairs; in a row monotone table it is implied
    # where a pair with j farther from output i, or k nearer to it, is needed and no closer.
    (i, j), k = np.divmod(group.cells[:, 0], inputs), group.cells[:, 1] % inputs
    keep = needed[j, k]
    if row_monotone:
        among = np.where(needed, distance, _UNRELATED)
        farther, nearer = np.clip(j + np.sign(j - i), 0, inputs - 1), k + np.sign(i - k)
        keep &= (farther == j) | (among[farther, k] > distance[j, k])
        keep &= (nearer == k) | (among[j, nearer] > distance[j, k])
    return np.flatnonzero(keep)


def _around(
    auxiliary: Integers, clique: Clique, inputs: int, alpha: Fraction, name: str
) -> tuple[Constraints, Constraints]:
    """Return the constraints above and below a clique's auxiliary variables, for each output."""
    cells = np.arange(len(auxiliary))[:, None] * inputs + np.array(clique.inputs)
    above = Constraints.at_least(cells, auxiliary[:, None])
    below = Constraints.at_least(auxiliary[:, None], cells, alpha**clique.distance)
    return above.named(f"above {name}"), below.named(f"below {name}")


def _mirror_images(cliques: list[Clique], inputs: int) -> list[int]:
    """Return the number of the image of each clique under the central reflection."""
    # A clique without an image is its own image: then the program is not symmetric, which
    # `reduce_by_symmetry` finds out.
    images = [
        Clique(tuple(inputs - 1 - j for j in reversed(each.inputs)), each.distance)
        for each in cliques
    ]
    return [cliques.index(each) if each in cliques else c for c, each in enumerate(images)]


def _unchained(distance: Integers) -> npt.NDArray[np.bool_]:
    """Return the pairs of neighbours that no chain of other pairs implies."""
    # A chain implies a pair if its distances add up to no more than that of the pair. Distances are
    # positive, so chains of the pairs that are left imply all others.
    needed = distance < _UNRELATED
    # Chains of two pairs: those of a metric are all found so, as their parts are pairs themselves.
    # Of others some pairs are kept in vain, which does no harm.
    for via in range(len(distance)):
        needed &= distance[:, via, None] + distance[None, via, :] > distance
    return needed


def _connecting(distance: Integers) -> npt.NDArray[np.bool_]:
    """Return the pairs to equate when neighbours must have equal columns."""
    # These are each input and the next, where those are all neighbours; else all pairs.
    needed = distance < _UNRELATED
    following = np.eye(len(distance), k=1, dtype=np.bool_)
    return needed & (following | following.T) if needed[following].all() else needed


def _cliques(distance: Integers, needed: npt.NDArray[np.bool_]) -> list[Clique]:
    """Return cliques whose auxiliary variables at least halve the number of constraints."""
    # The search is among the sets of an input and all its neighbours within some distance.
    cliques = dict[Clique, None]()
    for length in np.unique(distance[needed]).tolist():
        near = (distance <= length) | np.eye(len(distance), dtype=np.bool_)
        for row in near:
            inputs = np.flatnonzero(row)
            inside = np.ix_(inputs, inputs)
            saved = np.count_nonzero(needed[inside] & (distance[inside] == length))
            if saved >= 4 * len(inputs) and near[inside].all():
                cliques[Clique(tuple(inputs.tolist()), length)] = None
    return list(cliques)


def _matched(
    clique: Clique, output: int, above: Mapping[int, Fraction], below: Mapping[int, Fraction]
) -> dict[tuple[int, int], Fraction]:
    """Return the multipliers of P[i, j] >= alpha^d P[i, j'], without auxiliary variable.

    ``above`` and ``below`` are those of the constraints around the auxiliary variable of
    ``output``.
    """
    size = len(clique.inputs)
    supply = [
        (j, above[r])
        for j, r in zip(clique.inputs, range(output * size, (output + 1) * size), strict=True)
        if r in above
    ]
    matched: dict[tuple[int, int], Fraction] = {}
    for k, r in zip(clique.inputs, range(output * size, (output + 1) * size), strict=True):
        need = below.get(r, Fraction(0))
        while need > 0:
            j, left = supply.pop()
            # A transport plan: each unit of multiplier below is matched with one above. There is
            # enough, since the auxiliary variable has cost 0 and its reduced cost is at least 0.
            taken = min(need, left)
            need -= taken
            if left > taken:
                supply.append((j, left - taken))
            if j != k:  # P[i, j] >= alpha^d P[i, j] always holds
                matched[j, k] = matched.get((j, k), Fraction(0)) + taken
    return matched


def _located(
    group: Constraints, multipliers: Mapping[tuple[int, int], Fraction], variables: int
) -> list[tuple[int, Fraction]]:
    """Return multipliers by the number of the constraint in a group, not by its variables."""
    # Those of constraints of other groups are left out.
    codes = group.cells[:, 0] * variables + group.cells[:, 1]
    order = np.argsort(codes)
    wanted = np.array([a * variables + b for a, b in multipliers])
    place = order[np.minimum(np.searchsorted(codes, wanted, sorter=order), len(codes) - 1)]
    return [
        (r, value)
        for r, code, value in zip(place.tolist(), wanted, multipliers.values(), strict=True)
        if codes[r] == code
    ]

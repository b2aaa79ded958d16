"""The noise of greatest entropy under rules, by convex programs with proved gaps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.convex.reading import load
from mechdesign.mechanism.values import Counts
from mechdesign.optimisation.optimal import design
from mechdesign.perturbation.noise_rules import (
    NoiseRules,
    directions,
    refuse_conflict,
    request_of,
    rules_of_noise,
    table_of,
    variable_of,
)
from mechdesign.perturbation.table import PerturbationTable
from mechdesign.privacy import Privacy


def greatest_entropy(
    rules: NoiseRules,
) -> tuple[PerturbationTable, Fraction, Fraction, tuple[ConvexCertificate, ...]]:
    """Return the noise of greatest entropy, minus that, a lower bound on it, and the proofs."""
    # The probabilities of all counts, divided by the number of counts, are one distribution: a
    # mechanism with a single input, which convex programs are solved and certified for. Without
    # privacy each count is a program of its own.
    refuse_conflict(rules)
    joint = rules.epsilon is not None
    counts = range(rules.largest + 1)
    parts = [tuple(counts)] if joint else [(c,) for c in counts]
    laws: dict[int, dict[int, Fraction]] = {}
    proofs = list[ConvexCertificate]()
    alike: tuple[dict[int, Fraction], ConvexCertificate] | None = None
    for part in parts:
        # Counts whose noise and outputs nothing cuts have the same program.
        inner = not joint and part[0] >= rules.noise + rules.blocked
        if sum(len(rules.possible(c)) for c in part) == len(part):
            laws |= {c: {rules.possible(c)[0]: Fraction(1)} for c in part}  # the entropy is 0
            continue
        if inner and alike is not None:
            laws[part[0]], proof = alike
        else:
            found, proof = _entropy_of(rules, part)
            laws |= found
            alike = (laws[part[0]], proof) if inner else alike
        proofs.append(proof)
    table = table_of([laws[c] for c in counts])
    value, bound = (
        sum(numbers, Fraction(0)) / len(parts)
        for numbers in ([p.objective for p in proofs], [p.bound for p in proofs])
    )
    return table, value, bound, tuple(proofs)


def _entropy_of(
    rules: NoiseRules, counts: Sequence[int]
) -> tuple[dict[int, dict[int, Fraction]], ConvexCertificate]:
    """Return the noise of greatest entropy of some counts, and its proof."""
    cvxpy = load()
    allowed = [(c, v) for c in counts for v in rules.possible(c)]
    place = {rules.cells[pair]: k for k, pair in enumerate(allowed)}
    owner = {number: c for (c, _), number in rules.cells.items()}
    groups = [*request_of(rules).columns, *(g for r in rules_of_noise(rules) for g in r.groups)]

    def lines(flat: Any) -> list[Any]:
        """Return the constraints on these counts, each of which is about one, as those of cvxpy."""
        found = []
        for group in groups:
            # In whole numbers, so that an equation is exact
            scale = group.bound.denominator if group.equality else 1
            for row in group.cells.tolist():
                # Variables of blocked outputs are 0 and are left out
                terms = [
                    float(a * scale) * flat[place[v]]
                    for v, a in zip(row, group.coefficients, strict=True)
                    if v in place and a
                ]
                if terms and owner[row[0]] in counts:
                    left, bound = sum(terms), _decimal_above(group.bound * scale)
                    found.append(left == bound if group.equality else left >= bound)
        return found

    def near(flat: Any) -> list[Any]:
        found, ratio = [], -_decimal_above(-rules.ratio)
        assert rules.delta is not None
        for one, other in directions(rules):
            slacks = []
            for v in rules.noises(one):
                p, q = variable_of(rules, one, one + v), variable_of(rules, other, one + v)
                if p in place:
                    hidden = ratio * flat[place[q]] if q in place else 0
                    slacks.append(cvxpy.pos(flat[place[p]] - hidden))
            found.append(sum(slacks) <= -_decimal_above(-rules.delta))
        return found

    def flattened(table: Any) -> Any:
        return table[:, 0] * len(counts)

    def constraints(table: Any) -> list[Any]:
        flat = flattened(table)
        return lines(flat) + (near(flat) if rules.epsilon is not None else [])

    def objective(table: Any) -> Any:
        return -cvxpy.sum(cvxpy.entr(flattened(table))) / len(counts)

    found = design(
        0,
        Privacy(alpha=1),
        outputs=Counts(0, len(allowed) - 1),
        objective=objective,
        constraints=constraints,
    )
    assert found.convex is not None
    laws: dict[int, dict[int, Fraction]] = {c: {} for c in counts}
    for (c, v), row in zip(allowed, found.mechanism.table, strict=True):
        laws[c][v] = row[0] * len(counts)
    return laws, found.convex


def _decimal_above(value: Fraction) -> float:
    """Return a float whose shortest decimal is at least a number, and equal if one is."""
    # Constants of cvxpy are read as the shortest decimals that print them.
    near = float(value)
    return near if Fraction(repr(near)) >= value else math.nextafter(near, math.inf)

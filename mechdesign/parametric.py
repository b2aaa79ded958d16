"""Optimal mechanisms as functions of alpha: the linear programs of `design` solved for all alpha in (0, 1).

A design at one alpha is a vertex of its program: the solution of a square system of tight rows. Solved over the rational
functions of alpha, the system gives every entry, and every multiplier of the proof, as a formula. The formulas are
feasible, hence optimal, exactly as long as certain polynomials keep their signs. Beyond the end of one piece another
design is taken, until (0, 1) is covered: parametric linear programming, with proofs.

>>> for piece in parametric(2, properties=["WH"]):
...     print(piece.interval, piece.objective, sep=": ")
0 < α ≤ 1/2: 4α/(3(1 + α))
1/2 ≤ α < 1: 2(4α - 1)/(9α)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from flint import fmpq, fmpq_mat, fmpz, fmpz_mat, fmpz_poly

from mechdesign.certificate import Verification
from mechdesign.design import Design, design
from mechdesign.exact import to_fmpq
from mechdesign.exceptions import NotSquare, SolverFailure
from mechdesign.losses import Loss
from mechdesign.privacy import Neighbours, Privacy
from mechdesign.program import Folded, fold, mechanism_program, reflection, unfolded
from mechdesign.properties import Property, PropertyLike, resolve
from mechdesign.symbolic import (
    NIL,
    SAMPLES,
    Endpoint,
    Formula,
    Interval,
    Polynomials,
    Region,
    SymbolicMechanism,
    between,
    nonnegative,
    rows_in_alpha,
)


@dataclass(frozen=True, eq=False)
class Proof:
    """Multipliers ``numerators[r] / denominator`` of the rows of the folded program; what they bound is optimal on ``interval``."""

    interval: Interval
    numerators: tuple[fmpz_poly, ...]
    denominator: fmpz_poly


@dataclass(frozen=True, eq=False)
class Piece:
    """A formula for the best mechanism, and the alpha for which it is the best.

    Attributes
    ----------
    interval
        Where the table keeps its privacy and the properties, and no other mechanism that does has a smaller loss.
    mechanism
        The table. An optimum need not be unique: this is one of them for every alpha of the interval.
    objective
        Its loss, the least possible, whichever optimum was taken.
    loss, properties
        The statement.
    proofs
        Bounds on the loss of every competitor, on intervals that together cover ``interval``.
    """

    interval: Interval
    mechanism: SymbolicMechanism
    objective: Formula
    loss: Loss
    properties: tuple[Property, ...]
    proofs: tuple[Proof, ...]

    def verify(self) -> Verification:
        """Check everything from scratch, for all alpha of the interval: signs, privacy, properties, loss and bounds."""
        table = self.mechanism
        program = _Program(table.outputs, table.neighbours, self.loss, self.properties)
        point = program.point(table, self.objective)
        if point is None:
            return Verification(False, "the table is not symmetric, the proofs are about those that are")
        numerators, denominator = point
        feasible = program.feasible(numerators, denominator)
        if not feasible.covers(self.interval):
            return Verification(False, f"the table is private and has the properties only for {feasible}")
        if program.value(numerators, denominator) != self.objective:
            return Verification(False, f"the loss is {program.value(numerators, denominator)}, not {self.objective}")
        reached = self.interval.low
        for proof in self.proofs:
            if program.bound(proof.numerators, proof.denominator) != self.objective:
                return Verification(False, f"the multipliers do not prove the bound {self.objective}")
            valid = program.valid(proof.numerators, proof.denominator)
            if proof.interval != Interval.of(proof.interval.low, proof.interval.high) or not valid.covers(proof.interval):
                return Verification(False, f"the multipliers prove a bound only for {valid}")
            if proof.interval.low <= reached:
                reached = max(reached, proof.interval.high)
        if reached < self.interval.high:
            return Verification(False, f"nothing is proved beyond {reached}")
        return Verification(True, "optimal")

    def __str__(self) -> str:
        wanted = " ".join(item.text for item in self.properties) or "no properties"
        return (
            f"The least {self.loss!r} with {wanted}, n = {self.mechanism.inputs - 1}, where {self.interval}, is {self.objective}:\n"
            f"{self.mechanism}\n"
            f"properties: {', '.join(self._kept(latex=False)) or 'none'}"
        )

    def latex(self) -> str:
        """Table, loss, interval and properties as a LaTeX ``aligned`` block, without dollar signs."""
        kept = r",\;".join(self._kept(latex=True)) or r"\text{none}"
        lines = (
            rf"P &= {self.mechanism.latex()}",
            rf"\text{{loss}} &= {self.objective.latex()}",
            rf"\text{{where}} &\quad {self.interval.latex()}",
            rf"\text{{properties}} &\quad {kept}",
        )
        return "\\begin{aligned}\n" + " \\\\\n".join(lines) + "\n\\end{aligned}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def _kept(self, latex: bool) -> Iterator[str]:
        """The properties that hold in the interval; with the part of it in parentheses where it is not all."""
        for short, region in self.mechanism.properties().items():
            part = region & self.interval.region
            if part:
                whole = part == self.interval.region
                name, alphas = (rf"\text{{{short}}}", part.latex()) if latex else (short, str(part))
                yield name if whole else f"{name} ({alphas})"


def explain(design: Design) -> Piece:
    """The formula behind a design, and all the alpha around the design's for which it is optimal.

    At an alpha where one optimal formula gives way to another, the one is given of which the design is a value. Where it is a
    value of neither, but lies between, the interval is that single alpha.

    Raises
    ------
    ValueError
        The design is for alpha = 1, the end of all pieces.
    SolverFailure
        The design is no vertex of its program, or not proved optimal (its certificate has a gap).
    NotPolynomial
        A property of your own depends on alpha in another way than a polynomial of degree at most two.
    """
    statement, mechanism = design.certificate, design.mechanism
    if mechanism.outputs != mechanism.inputs:
        raise NotSquare(f"only square designs can be followed in alpha, this one is {mechanism.outputs} x {mechanism.inputs}")
    walk = _Walk(_Program(mechanism.inputs, mechanism.privacy.neighbours, statement.loss, statement.properties))
    alpha = mechanism.privacy.alpha
    piece = walk.piece(walk.program.vertex(design))
    if piece.interval.low == piece.interval.high:
        for limit in (Fraction(0), Fraction(1)):
            beside = walk.piece(walk.beside(alpha, limit))
            if beside.mechanism.at(alpha) == mechanism:
                return beside
    return piece


def parametric(
    n: int, loss: Loss | None = None, properties: Iterable[PropertyLike] = (), *, neighbours: Neighbours = "adjacent"
) -> tuple[Piece, ...]:
    """The best mechanisms for counts 0 .. n for every alpha in (0, 1): pieces in order, each beginning where the last ends.

    At their common ends two pieces are both optimal. What is asked is as in `design`, for all alpha at once; from one piece to
    the next the objective changes, or the table would cease to be feasible. Errors are those of `design` and `explain`.
    """
    wanted = tuple(dict.fromkeys(resolve(item) for item in properties))
    first = design(n, Privacy(SAMPLES[1], neighbours), loss, wanted)  # which checks the question, too
    program = _Program(first.mechanism.inputs, first.mechanism.privacy.neighbours, first.certificate.loss, wanted)
    return tuple(_Walk(program).cover())


class _Line(NamedTuple):
    """``sum terms[v] x[v] >= bound``, or ``==``: polynomials in alpha, ``scale`` times those of the program."""

    terms: Mapping[int, fmpz_poly]
    bound: fmpz_poly
    equality: bool
    scale: int


@dataclass(frozen=True, eq=False)
class _Vertex:
    """A solution of one basis for all alpha, and where it is optimal."""

    interval: Interval
    numerators: tuple[fmpz_poly, ...]
    denominator: fmpz_poly
    mechanism: SymbolicMechanism
    objective: Formula
    proof: Proof


class _Program:
    """The program of a statement, folded by symmetry, with coefficients that are polynomials in alpha."""

    def __init__(self, size: int, neighbours: Neighbours, loss: Loss, properties: tuple[Property, ...]) -> None:
        self.size, self.neighbours, self.loss, self.properties = size, neighbours, loss, properties

        def folded(privacy: Privacy) -> Folded:
            program = mechanism_program(size, size, privacy, loss, properties)
            return fold(program, reflection(size, size, program.variables)) or unfolded(program)

        privacy = Privacy(SAMPLES[0], neighbours)
        self.names = [group.name for group in mechanism_program(size, size, privacy, loss, properties).rows]
        self.folded = folded(privacy)
        self.orbit: list[int] = self.folded.orbit.tolist()
        self.lines = list[_Line]()
        for rows in rows_in_alpha(lambda privacy: folded(privacy).program.rows, neighbours):
            for cells in rows.cells.tolist():
                terms = dict.fromkeys(cells, NIL)
                for v, coefficient in zip(cells, rows.coefficients, strict=True):
                    terms[v] += coefficient
                self.lines.append(_Line({v: a for v, a in terms.items() if a}, rows.bound, rows.equality, rows.scale))
        cost = self.folded.program.cost
        self.scale = math.lcm(*(value.denominator for value in cost))
        self.cost = [int(value * self.scale) for value in cost]

    def feasible(self, x: Sequence[fmpz_poly], denominator: fmpz_poly) -> Region:
        """Where ``x / denominator`` satisfies everything."""
        slacks = [sum((a * x[v] for v, a in line.terms.items()), -line.bound * denominator) for line in self.lines]
        negated = (-slack for slack, line in zip(slacks, self.lines, strict=True) if line.equality)
        return nonnegative([*x, *slacks, *negated], denominator)

    def valid(self, y: Sequence[fmpz_poly], denominator: fmpz_poly) -> Region:
        """Where the multipliers ``y / denominator`` prove a bound."""
        reduced = [cost * denominator for cost in self.cost]
        for value, line in zip(y, self.lines, strict=True):
            if value:
                for v, a in line.terms.items():
                    reduced[v] -= a * value
        signed = (value for value, line in zip(y, self.lines, strict=True) if not line.equality)
        return nonnegative([*reduced, *signed], denominator)

    def value(self, x: Sequence[fmpz_poly], denominator: fmpz_poly) -> Formula:
        return Formula(sum((c * p for c, p in zip(self.cost, x, strict=True)), NIL), denominator * self.scale)

    def bound(self, y: Sequence[fmpz_poly], denominator: fmpz_poly) -> Formula:
        total = sum((line.bound * value for value, line in zip(y, self.lines, strict=True)), NIL)
        return Formula(total, denominator * self.scale)

    def point(self, table: SymbolicMechanism, objective: Formula) -> tuple[list[fmpz_poly], fmpz_poly] | None:
        """The point of a table and its worst case, if there is one; None if symmetry is broken."""
        flat = [weight * objective.denominator for row in table.weights for weight in row]
        denominator = table.denominator * objective.denominator
        flat += [objective.numerator * table.denominator] * (len(self.orbit) - len(flat))
        x = [NIL] * len(self.cost)
        for v, weight in zip(self.orbit, flat, strict=True):
            x[v] = weight
        return (x, denominator) if all(x[v] == weight for v, weight in zip(self.orbit, flat, strict=True)) else None

    def vertex(self, design: Design) -> _Vertex:
        """The formulas of which an optimal design and its multipliers are the values at its alpha."""
        alpha = design.mechanism.privacy.alpha
        if alpha == 1:
            raise ValueError("formulas are for alpha in (0, 1), the design is for alpha = 1")
        rows, columns = self._basis(design)
        place = {v: k for k, v in enumerate(columns)}
        square = [[NIL] * len(columns) for _ in rows]
        for entries, r in zip(square, rows, strict=True):
            for v, a in self.lines[r].terms.items():
                if v in place:
                    entries[place[v]] = a
        solution, denominator = _solved(square, [self.lines[r].bound for r in rows])
        transposed = [list(column) for column in zip(*square, strict=True)]
        multipliers, scale = _solved(transposed, [fmpz_poly([self.cost[v]]) for v in columns])
        x, y = [NIL] * len(self.cost), [NIL] * len(self.lines)
        for v, value in zip(columns, solution, strict=True):
            x[v] = value
        for r, value in zip(rows, multipliers, strict=True):
            y[r] = value
        objective = self.value(x, denominator)
        primal, dual = self.feasible(x, denominator).around(alpha), self.valid(y, scale).around(alpha)
        if primal is None or dual is None or self.bound(y, scale) != objective:
            raise SolverFailure("the design is not optimal, or the formulas that fit it are not")
        if any(part != Interval.of(part.low, part.high) for part in (primal, dual)):
            raise SolverFailure("the formulas have a pole where they cease to be optimal")
        interval = Interval.of(max(primal.low, dual.low), min(primal.high, dual.high))
        cells = [x[v] for v in self.orbit[: self.size**2]]
        table = tuple(tuple(cells[k : k + self.size]) for k in range(0, len(cells), self.size))
        mechanism = SymbolicMechanism(table, denominator, self.neighbours)
        return _Vertex(interval, tuple(x), denominator, mechanism, objective, Proof(interval, tuple(y), scale))

    def _basis(self, design: Design) -> tuple[list[int], list[int]]:
        """As many tight rows as columns, independent, among them those that the design's table and multipliers need."""
        alpha, size = to_fmpq(design.mechanism.privacy.alpha), self.size
        flat = [to_fmpq(entry) for row in design.mechanism.table for entry in row]
        flat += [to_fmpq(design.certificate.objective)] * (len(self.orbit) - size**2)
        x = dict(zip(self.orbit, flat, strict=True))
        y = [fmpq(0)] * len(self.lines)
        for name, origin, sign in zip(self.names, self.folded.origin, self.folded.sign, strict=True):
            for r, value in design.certificate.multipliers.get(name, {}).items():
                if origin[r] >= 0:
                    y[origin[r]] += int(sign[r]) * to_fmpq(value) * self.scale / self.lines[origin[r]].scale
        reduced = [fmpq(cost) for cost in self.cost]
        tight = dict[int, dict[int, fmpq]]()
        for r, line in enumerate(self.lines):
            terms = {v: a(alpha) for v, a in line.terms.items()}
            for v, a in terms.items():
                reduced[v] -= a * y[r]
            if sum((a * x[v] for v, a in terms.items()), -line.bound(alpha)) == 0:
                tight[r] = terms
        # Those that must be basic come first, equalities that say what others say last; -1 - r is the slack of row r.
        needed = [v for v, value in x.items() if value > 0]
        idle = [r for r in tight if y[r] == 0]
        order = needed + [-1 - r for r in idle if not self.lines[r].equality]
        order += [v for v, value in x.items() if value == 0 and reduced[v] == 0]
        order += [-1 - r for r in idle if self.lines[r].equality]
        entries = [terms.get(v, fmpq(0)) if v >= 0 else fmpq(v == -1 - r) for r, terms in tight.items() for v in order]
        echelon, rank = fmpq_mat(len(tight), len(order), entries).rref()
        basic = {order[next(k for k in range(len(order)) if echelon[row, k] != 0)] for row in range(rank)}
        if rank < len(tight) or not basic.issuperset(needed):
            raise SolverFailure("the design is no vertex of its program, so that it does not determine a formula")
        return [r for r in tight if -1 - r not in basic], [v for v in order if v >= 0 and v in basic]


def _solved(square: Sequence[Polynomials], right: Polynomials) -> tuple[list[fmpz_poly], fmpz_poly]:
    """Numerators and the common denominator of the solution of a linear system of polynomials, in lowest terms.

    By Cramer's rule they are determinants, whose coefficients the row sums below bound. A polynomial with coefficients
    less than half of b in size can be read off its value at b, in base b: one system of integers is all there is to solve.
    """
    bound = math.prod(sum(int(abs(c)) for p in (*row, side) for c in p.coeffs()) for row, side in zip(square, right, strict=True))
    bits = bound.bit_length() + 1
    base, size = fmpz(1) << bits, len(square)
    matrix = fmpz_mat(size, size, [p(base) for row in square for p in row])
    determinant = matrix.det()
    values = fmpq_mat(matrix).solve(fmpq_mat(size, 1, [fmpq(p(base)) for p in right])).entries()
    numerators, denominator = [_digits(int((value * determinant).p), bits) for value in values], _digits(int(determinant), bits)
    common = denominator
    for numerator in numerators:
        common = common.gcd(numerator)
    return [numerator // common for numerator in numerators], denominator // common


def _digits(value: int, bits: int) -> fmpz_poly:
    """The polynomial with this value at 2^bits whose coefficients are less than half of that in size."""
    digits, base = list[int](), 1 << bits
    while value:
        digit = value & (base - 1)
        if digit >> (bits - 1):
            digit -= base
        digits.append(digit)
        value = (value - digit) >> bits
    return fmpz_poly(digits)


class _Walk:
    """Vertices of one program, found as they are needed, and the pieces they make up."""

    def __init__(self, program: _Program) -> None:
        self.program, self.known = program, list[_Vertex]()

    def sample(self, start: Endpoint, end: Endpoint) -> _Vertex:
        """A vertex that is optimal somewhere strictly between two numbers, and not only in a point."""
        low, high = min(start, end), max(start, end)
        while True:
            alpha = between(low, high)
            for vertex in self.known:
                if vertex.interval.low < alpha < vertex.interval.high:
                    return vertex
            program = self.program
            privacy = Privacy(alpha, program.neighbours)
            vertex = program.vertex(design(program.size - 1, privacy, program.loss, program.properties))
            if vertex.interval.low < vertex.interval.high:
                self.known.append(vertex)
                return vertex
            high = alpha

    def beside(self, alpha: Fraction, limit: Endpoint) -> _Vertex:
        """The vertex that is optimal from ``alpha`` on in the direction of ``limit``."""
        upwards = limit > alpha
        while True:
            vertex = self.sample(alpha, limit)
            limit = vertex.interval.low if upwards else vertex.interval.high
            if (limit <= alpha) if upwards else (limit >= alpha):
                return vertex

    def piece(self, vertex: _Vertex) -> Piece:
        """All that is around a vertex where its table is feasible and its objective optimal."""
        low, high = vertex.interval.low, vertex.interval.high
        feasible = self.program.feasible(vertex.numerators, vertex.denominator)
        room = feasible.around(low if low == high else between(low, high))
        if room is None:
            raise SolverFailure("a vertex is not feasible where it was found to be optimal")
        proofs = [vertex.proof]
        interval = Interval.of(
            self._reach(vertex.objective, low, room.low, proofs), self._reach(vertex.objective, high, room.high, proofs)
        )
        return Piece(
            interval,
            vertex.mechanism,
            vertex.objective,
            self.program.loss,
            self.program.properties,
            tuple(sorted(proofs, key=lambda proof: proof.interval.low)),
        )

    def _reach(self, objective: Formula, start: Endpoint, limit: Endpoint, proofs: list[Proof]) -> Endpoint:
        """How far from ``start`` towards ``limit`` an objective remains the optimum; ``proofs`` collects why."""
        upwards = limit > start
        while start != limit:
            vertex = self.sample(start, limit)
            near, far = vertex.interval.low, vertex.interval.high
            if not upwards:
                near, far = far, near
            if vertex.objective != objective:
                limit = near
                continue
            if (near > start) if upwards else (near < start):
                reached = self._reach(objective, start, near, proofs)
                if reached != near:
                    return reached
            proofs.append(vertex.proof)
            start = min(far, limit) if upwards else max(far, limit)
        return start

    def pieces(self, low: Endpoint, high: Endpoint) -> list[Piece]:
        """As many pieces as it takes to cover everything between two numbers; they overlap."""
        if low >= high:
            return []
        piece = self.piece(self.sample(low, high))
        return [piece, *self.pieces(low, piece.interval.low), *self.pieces(piece.interval.high, high)]

    def cover(self) -> Iterator[Piece]:
        """A partition of (0, 1), each piece the one that reaches farthest."""
        found = self.pieces(Fraction(0), Fraction(1))
        reached: Endpoint = Fraction(0)
        while reached < 1:
            best = max((piece for piece in found if piece.interval.low <= reached), key=lambda piece: piece.interval.high)
            yield replace(best, interval=Interval.of(reached, best.interval.high))
            reached = best.interval.high

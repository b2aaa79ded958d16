"""Programs of large tables, solved in few variables: chains of entries of known ratios.

In an optimal table nearly every entry is alpha times its neighbour in the row, or 1/alpha times, or
equal to it: rows change their course at few places. Entries in known ratios are one variable, a
chain. The program in chains is small, and its optimum is that of the whole program where no chain
gains by a cut: where the multipliers of the constraints that hold it together are at least 0.
Others are cut, and the program is solved again (delayed column generation: Desaulniers, Desrosiers
and Solomon, Column Generation, 2005, chapter 1). Floats choose the chains; the small program is
solved exactly, and its multipliers, carried back, prove the optimum of the whole one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from flint import fmpq
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from mechdesign.base import Booleans, Floats, Integers
from mechdesign.exceptions import Infeasible, SolverFailure
from mechdesign.lp.basis import ONE, ZERO, Places, Program, SingularBasis, to_fmpq, to_fraction
from mechdesign.lp.exact_solution import Solution, refined
from mechdesign.lp.highs import FloatProgram, Optimum, Progress, solve, to_float
from mechdesign.lp.simplex import Basis, LinearConstraint, Problem, Vertex

# Rounds of cutting, in floats; and exact programs, when the last ones still had to be cut.
_ROUNDS, _EXACT_ROUNDS = 60, 20

# Multipliers and differences of the cost that floats tell from 0, and coefficients that they need
# not.
_MULTIPLIER, _GAIN, _COEFFICIENT = 1e-8, 1e-9, 1e-11

_CUTS = 5  # of a chain in one round

_TOLERANCE = 1e-10  # of HiGHS: the least that it takes

# Beyond entries as small as that beside those of the diagonal floats do not look for a cut.
_LEAST = 1e-6


@dataclass(frozen=True)
class _Pairs:
    """The constraints ``a x[u] + b x[v] >= 0``, a > 0 > b, as arrays of shape (pairs,)."""

    number: Integers  # in the program, through all groups
    u: Integers
    v: Integers
    ratio: Floats  # log(-b / a): the constraint is x[u] >= exp(ratio) x[v]

    @classmethod
    def of(cls, program: Program) -> _Pairs:
        """Return those of a program: the constraints of two variables that join chains."""
        parts, start = [np.zeros((0, 4))], 0
        for group in program.constraints:
            size, signs = len(group.cells), [c > 0 for c in group.coefficients]
            if not group.equality and group.bound == 0 and sorted(signs) == [False, True]:
                high, low = signs.index(True), signs.index(False)
                numbers = np.arange(start, start + size)
                u, v = group.cells[:, high], group.cells[:, low]
                ratio = np.log(float(-group.coefficients[low] / group.coefficients[high]))
                columns = numbers, u, v, np.full(size, ratio)
                parts.append(np.column_stack(columns)[u != v])
            start += size
        number, u, v, ratio = np.concatenate(parts).T
        number, u, v = (each.astype(np.int64) for each in (number, u, v))
        return cls(number, u, v, ratio)


class _Chains:
    """The chains of a forest of pairs that are tight."""

    def __init__(self, pairs: _Pairs, tight: Booleans, variables: int) -> None:
        self.tight = tight
        self.edges = np.flatnonzero(tight)
        self.u, self.v = pairs.u[self.edges], pairs.v[self.edges]
        count = len(self.edges)
        joined = sparse.csr_array((np.ones(count), (self.u, self.v)), shape=(variables, variables))
        self.count, self.chain = connected_components(joined, directed=False)
        if count + self.count != variables:
            raise SingularBasis("chains are no forest")
        numbers = np.tile(np.arange(count), 2), np.concatenate([self.u, self.v])
        ends = np.repeat([1.0, -1.0], count)
        self.incidence = sparse.csc_array((ends, numbers), shape=(count, variables))
        # The logarithm of each entry in units of the largest of its chain, its root: first from any
        # entry, then from the largest, since an entry far away is too small to measure others by.
        log = np.zeros(variables)
        inner = self._inner(log)
        if count:
            log[inner] = splu(self.incidence[:, inner]).solve(pairs.ratio[self.edges])
        largest = np.full(self.count, -np.inf)
        np.maximum.at(largest, self.chain, log)
        self.log = log - largest[self.chain]
        self.inner = self._inner(self.log)

    def _inner(self, log: Floats) -> Booleans:
        """Return the entries that are not the root of their chain, as a mask."""
        order = np.lexsort((-log, self.chain))
        first = order[np.searchsorted(self.chain[order], np.arange(self.count))]
        inner = np.ones(len(log), dtype=np.bool_)
        inner[first] = False
        return inner

    def multipliers(self, costs: Floats) -> Floats:
        """Return those of the tight pairs, in units of the roots, from the costs of the entries."""
        if not len(self.edges):
            return np.zeros(0)
        scaled: Floats = (np.exp(self.log) * costs)[self.inner]
        found: Floats = splu(sparse.csc_array(self.incidence[:, self.inner].T)).solve(scaled)
        return found

    def walk(self) -> Iterator[tuple[int, int, int]]:
        """Yield (pair, known entry, entry), from the roots to the ends."""
        incident: dict[int, list[tuple[int, int]]] = {}
        for edge, u, v in zip(self.edges.tolist(), self.u.tolist(), self.v.tolist(), strict=True):
            incident.setdefault(u, []).append((edge, v))
            incident.setdefault(v, []).append((edge, u))
        stack = [(v, -1) for v in np.flatnonzero(~self.inner).tolist() if v in incident]
        while stack:
            known, by = stack.pop()
            for edge, v in incident[known]:
                if edge != by:
                    yield edge, known, v
                    stack.append((v, edge))


@dataclass(frozen=True)
class _Round:
    """An optimum of the program in chains, in floats."""

    chains: _Chains
    kept: Integers  # the pairs between chains that imply the others
    optimum: Optimum  # rows: the other constraints of the program, then these pairs
    multipliers: Floats  # of these pairs, of which x[u] has the coefficient 1


class _Search:
    """The search for chains that need no cut."""

    def __init__(
        self, program: Program, places: Places, alpha: Fraction, progress: Progress | None
    ) -> None:
        self.program, self.progress, self.alpha = program, progress, to_fmpq(alpha)
        self.pairs = _Pairs.of(program)
        pairs = self.pairs
        # Neighbours in a row; the places of two entries are those of either or of its reflection.
        outputs, inputs = places.outputs, places.inputs
        self.in_row = (outputs[pairs.u] == outputs[pairs.v]) & (outputs[pairs.u] >= 0)
        self.in_row &= np.abs(inputs[pairs.u] - inputs[pairs.v]) == 1
        sizes = [len(group.cells) for group in program.constraints]
        self.start = np.cumsum([0, *sizes])
        self.others = np.setdiff1d(np.arange(self.start[-1]), pairs.number)
        self.coefficients = [tuple(map(to_fmpq, g.coefficients)) for g in program.constraints]
        self.bounds = [to_fmpq(group.bound) for group in program.constraints]
        self.costs = list(map(to_fmpq, program.cost))

    @cached_property
    def combined(self) -> list[dict[int, fmpq]]:
        """The constraints other than pairs, as combinations of those of the program."""
        # Sums over columns are taken to what differs from GM in them, by the inverse of its table:
        # a chain has a part in those alone where its row changes its course, instead of a high
        # power of alpha in each.
        rows = {r: {r: ONE} for r in self.others.tolist()}
        a, unit = self.alpha, 1 / (1 - self.alpha**2)
        for start, stop, group in zip(
            self.start[:-1].tolist(), self.start[1:].tolist(), self.program.constraints, strict=True
        ):
            if group.equality and len(group.coefficients) > 2 and stop - start > 1:
                for r in range(start, stop):
                    beside = [s for s in (r - 1, r + 1) if start <= s < stop]
                    own = 1 + a**2 if len(beside) == 2 else ONE
                    rows[r] = {r: unit * own, **dict.fromkeys(beside, -unit * a)}
        return list(rows.values())

    @cached_property
    def floats(self) -> FloatProgram:
        """The program without the pairs, in combined constraints."""
        data, rows, cells = list[Floats](), list[Integers](), list[Integers]()
        for start, group in zip(self.start.tolist(), self.program.constraints, strict=False):
            size, terms = group.cells.shape
            data.append(np.tile([float(c) for c in group.coefficients], size))
            rows.append(np.repeat(np.arange(start, start + size), terms))
            cells.append(group.cells.ravel())
        shape = int(self.start[-1]), self.program.variables
        matrix = sparse.csr_array(
            (np.concatenate(data), (np.concatenate(rows), np.concatenate(cells))), shape=shape
        )
        bounds = np.repeat(
            [float(group.bound) for group in self.program.constraints], np.diff(self.start)
        )
        equal = np.repeat([g.equality for g in self.program.constraints], np.diff(self.start))
        terms = [(k, r, to_float(a)) for k, row in enumerate(self.combined) for r, a in row.items()]
        k, r, a = np.array(terms).T
        combination = sparse.csr_array((a, (k, r)), shape=(len(self.others), shape[0]))
        bounds, equal = combination @ bounds, equal[self.others]
        cost = np.array([float(c) for c in self.program.cost])
        return FloatProgram(
            sparse.csr_array(combination @ matrix),
            bounds,
            np.where(equal, bounds, np.inf),
            np.zeros(len(cost)),
            cost,
        )

    def first(self, exponents: Integers, places: Places) -> Booleans:
        """Return the pairs in a row that are tight at alpha^exponents, but for some places."""
        pairs = self.pairs
        steps = exponents[pairs.u] - exponents[pairs.v]
        tight = self.in_row & (
            np.abs(pairs.ratio - steps * np.log(to_float(self.alpha))) < _MULTIPLIER
        )
        nearer = np.minimum(places.distances[pairs.u], places.distances[pairs.v])
        # Rows may change their course near the diagonal, and ever more rarely far from it.
        loose, distance = list[int](), 0
        while distance <= nearer.max(initial=0):
            loose.append(distance)
            distance = max(distance + 1, distance * 3 // 2)
        lowest = np.maximum(exponents[pairs.u], exponents[pairs.v])
        seen = lowest * np.log(to_float(self.alpha)) > np.log(_LEAST)
        tight &= ~(np.isin(nearer, loose) & seen)
        return self._forest(tight)

    def _forest(self, tight: Booleans) -> Booleans:
        """Return the tight pairs without those that join the same two entries again."""
        numbers = np.flatnonzero(tight)
        ends = np.sort(np.column_stack([self.pairs.u, self.pairs.v])[numbers], axis=1)
        first = np.unique(ends, axis=0, return_index=True)[1]
        result = np.zeros_like(tight)
        result[numbers[first]] = True
        return result

    def searched(self, tight: Booleans) -> _Round | None:
        """Return the last round: chains that no multiplier cuts; None if none is feasible."""
        last: _Round | None = None
        joining = able = True
        for number in range(_ROUNDS):
            if self.progress is not None:
                self.progress(f"chains, round {number + 1}")
            try:
                now = self._solved(_Chains(self.pairs, tight, self.program.variables), last is None)
            except (Infeasible, SolverFailure, SingularBasis):
                if last is None or not able:
                    return None
                # What was joined is feasible in exact numbers, not always in floats.
                able, tight = False, last.chains.tight & ~self._cuts(last)
                continue
            cuts, joins = self._cuts(now), self._joins(now)
            # What is joined is cut again at the next rounds, without end, where nothing is gained.
            joining = able and (last is None or now.optimum.value < last.optimum.value - _GAIN)
            if not cuts.any() and not (joining and joins.any()):
                return now
            tight = now.chains.tight & ~cuts
            if joining:
                tight = self._forest(tight | joins)
            last = now
        return last

    def _between(self, chains: _Chains) -> tuple[Integers, Floats]:
        """Return pairs between chains that imply the others, and the logarithms of their ratios."""
        pairs = self.pairs
        between = np.flatnonzero(chains.chain[pairs.u] != chains.chain[pairs.v])
        high, low = chains.chain[pairs.u[between]], chains.chain[pairs.v[between]]
        ratio = pairs.ratio[between] + chains.log[pairs.v[between]] - chains.log[pairs.u[between]]
        # Of all constraints between two chains the strongest implies the others.
        key = high * chains.count + low
        order = np.lexsort((-ratio, key))
        strongest = order[np.diff(key[order], prepend=-1) != 0]
        return between[strongest], ratio[strongest]

    def _solved(self, chains: _Chains, first: bool) -> _Round:
        """The optimum of the program in chains, in floats."""
        pairs, floats = self.pairs, self.floats
        kept, ratio = self._between(chains)
        joined = chains.chain[np.concatenate([pairs.u[kept], pairs.v[kept]])]
        numbers = np.tile(np.arange(len(kept)), 2), joined
        # x[high] >= exp(ratio) x[low], divided by the larger coefficient
        ends = np.exp(-np.maximum(ratio, 0)), -np.exp(np.minimum(ratio, 0))
        rows = sparse.csr_array((np.concatenate(ends), numbers), shape=(len(kept), chains.count))
        size = len(chains.chain)
        slopes = sparse.csr_array(
            (np.exp(chains.log), (np.arange(size), chains.chain)), shape=(size, chains.count)
        )
        matrix = sparse.csr_array(sparse.vstack([floats.matrix @ slopes, rows]))
        matrix.data[np.abs(matrix.data) < _COEFFICIENT] = 0
        matrix.eliminate_zeros()
        zeros = np.zeros(len(kept))
        program = FloatProgram(
            matrix,
            np.concatenate([floats.row_lower, zeros]),
            np.concatenate([floats.row_upper, zeros + np.inf]),
            np.zeros(chains.count),
            slopes.T @ floats.cost,
        )
        # It takes long to find that a first guess has no solution.
        most = 1000 + (1 if first else 2) * matrix.shape[0]
        try:
            optimum = solve(program, tolerance=_TOLERANCE, iterations=most)
        except (Infeasible, SolverFailure):
            if first:
                raise
            optimum = solve(program, presolve=False, tolerance=_TOLERANCE, iterations=most)
        # Those of the pairs themselves, whose coefficient of x[u] is 1 here
        scale = np.exp(-chains.log[pairs.u[kept]]) * ends[0]
        return _Round(chains, kept, optimum, optimum.y[len(self.others) :] * scale)

    def _cuts(self, now: _Round) -> Booleans:
        """Return the pairs within chains whose multipliers are below 0."""
        pairs, chains = self.pairs, now.chains
        pulled = self.floats.matrix.T @ now.optimum.y[: len(self.others)]
        np.add.at(pulled, pairs.u[now.kept], now.multipliers)
        ratios = np.exp(pairs.ratio[now.kept])
        np.add.at(pulled, pairs.v[now.kept], -ratios * now.multipliers)
        cuts = np.zeros(len(pairs.u), dtype=np.bool_)
        multipliers = chains.multipliers(self.floats.cost - pulled)
        below = np.flatnonzero(multipliers < -_MULTIPLIER)
        # In order of chains, and of multipliers within each: the first few of each are enough.
        chain = chains.chain[chains.u[below]]
        order = np.lexsort((multipliers[below], chain))
        rank = np.arange(len(order)) - np.searchsorted(chain[order], chain[order])
        cuts[chains.edges[below[order[rank < _CUTS]]]] = True
        return cuts

    def _joins(self, now: _Round) -> Booleans:
        """Return the pairs in a row that are tight at the optimum."""
        tight = ~now.optimum.basis.rows[len(self.others) :]
        joins = np.zeros(len(self.pairs.u), dtype=np.bool_)
        joins[now.kept[tight]] = True
        joins &= self.in_row
        return joins

    def exact(self, found: _Round) -> Solution | None:
        """Return the exact optimum, or None where it is not found."""
        chains, kept, basis = found.chains, found.kept, found.optimum.basis
        for _ in range(_EXACT_ROUNDS):
            steps = list(chains.walk())
            slope = [ONE] * self.program.variables
            for pair, known, v in steps:
                terms = self._terms(int(self.pairs.number[pair]))
                slope[v] = -terms[known] * slope[known] / terms[v]
            rows = [*self.combined, *({r: ONE} for r in self.pairs.number[kept].tolist())]
            problem = self._joined(rows, chains.chain.tolist(), slope)
            vertex, _ = refined(Vertex(problem, basis), FloatProgram.of(problem))
            if not vertex.optimal:
                return None
            y, cuts = self._multipliers(rows, vertex, steps)
            if not cuts.any():
                chain = chains.chain.tolist()
                x = [to_fraction(each * vertex.x[k]) for each, k in zip(slope, chain, strict=True)]
                # Of several constraints between two chains floats have kept the strongest, up to
                # rounding.
                return (
                    Solution(x, list(map(to_fraction, y)), 0) if _obeyed(self.program, x) else None
                )
            chains, kept, basis = self._cut(chains, kept, vertex.basis, cuts)
        return None

    def _joined(
        self, rows: Sequence[Mapping[int, fmpq]], chain: list[int], slope: list[fmpq]
    ) -> Problem:
        """Return the program in chains, exactly."""
        costs = [ZERO] * (max(chain) + 1)
        for v, cost in enumerate(self.costs):
            costs[chain[v]] += cost * slope[v]
        constraints = []
        for row in rows:
            terms, bound = dict[int, fmpq](), ZERO
            for r, share in row.items():
                for v, a in self._terms(r).items():
                    terms[chain[v]] = terms.get(chain[v], ZERO) + share * a * slope[v]
                bound += share * self.bounds[self._group(r)]
            equality = self.program.constraints[self._group(next(iter(row)))].equality
            constraints.append(
                LinearConstraint({k: a for k, a in terms.items() if a != 0}, bound, equality)
            )
        return Problem(constraints, costs)

    def _multipliers(
        self, rows: Sequence[Mapping[int, fmpq]], vertex: Vertex, steps: list[tuple[int, int, int]]
    ) -> tuple[list[fmpq], Booleans]:
        """Return those of the whole program, and the pairs where they are below 0."""
        y, need = [ZERO] * int(self.start[-1]), list(self.costs)
        for row, value in zip(rows, vertex.y, strict=True):
            for r, share in row.items():
                y[r] += share * value
        for r, value in enumerate(y):
            if value != 0:
                for v, a in self._terms(r).items():
                    need[v] -= a * value
        cuts = np.zeros(len(self.pairs.u), dtype=np.bool_)
        # Ends first: each entry then has one constraint left, that with the entry before it.
        for pair, known, v in reversed(steps):
            number = int(self.pairs.number[pair])
            terms = self._terms(number)
            y[number] = need[v] / terms[v]
            need[known] -= terms[known] * y[number]
            cuts[pair] = y[number] < 0
        return y, cuts

    def _cut(
        self, chains: _Chains, kept: Integers, basis: Basis, cuts: Booleans
    ) -> tuple[_Chains, Integers, Basis]:
        """Return the chains after these cuts, with the same vertex: its pairs and its basis."""
        cut = _Chains(self.pairs, chains.tight & ~cuts, self.program.variables)
        tight = np.zeros(len(cuts), dtype=np.bool_)
        tight[kept] = ~basis.rows[len(self.others) :]
        tight |= cuts
        after = np.union1d(self._between(cut)[0], np.flatnonzero(tight))
        # The piece with the root is what the chain was; the others are basic, and tied by the cut.
        columns = np.ones(cut.count, dtype=np.bool_)
        roots = np.flatnonzero(~chains.inner)
        columns[cut.chain[roots]] = basis.columns[chains.chain[roots]]
        return (
            cut,
            after,
            Basis(columns, np.concatenate([basis.rows[: len(self.others)], ~tight[after]])),
        )

    def _group(self, number: int) -> int:
        """Return the number of the group of a constraint."""
        return int(np.searchsorted(self.start, number, side="right")) - 1

    def _terms(self, number: int) -> dict[int, fmpq]:
        """Return the coefficients of a constraint by variable."""
        group = self._group(number)
        cells = self.program.constraints[group].cells[number - self.start[group]].tolist()
        terms = dict[int, fmpq]()
        for v, a in zip(cells, self.coefficients[group], strict=True):
            terms[v] = terms.get(v, ZERO) + a
        return terms


def _obeyed(program: Program, x: Sequence[Fraction]) -> bool:
    """Whether a point obeys all constraints."""
    common = lcm(*(value.denominator for value in x))
    numerators = [value.numerator * (common // value.denominator) for value in x]
    return not any(
        True for each in program.constraints for _ in each.violations(numerators, common)
    )


def solve_by_chains(
    program: Program, places: Places, alpha: Fraction, progress: Progress | None = None
) -> Solution | None:
    """Solve the program of a table exactly; None where that does not succeed."""
    if not float(alpha):
        return None
    search = _Search(program, places, alpha, progress)
    for exponents in places.guesses:
        # Powers of a small alpha are 0 and their inverses infinite: what is exact decides.
        with (
            suppress(Infeasible, SolverFailure, SingularBasis),
            np.errstate(over="ignore", invalid="ignore"),
        ):
            found = search.searched(search.first(exponents, places))
            solution = None if found is None else search.exact(found)
            if solution is not None:
                return solution
    return None

"""Optimal mechanisms for all alpha in (0, 1), as functions of alpha in critical regions.

The table of a design as a rational function of alpha, see `mechdesign.symbolic.program`, is optimal
on an interval: a critical region. Beyond the end of one region another design is taken, until
(0, 1) is covered: parametric linear programming, with proofs.

>>> for region in parametric(2, properties=["WH"]):
...     print(region.interval, region.objective, sep=": ")
0 < α ≤ 1/2: 4α/(3(1 + α))
1/2 ≤ α < 1: 2(4α - 1)/(9α)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from mechdesign.base import ProgressMeter
from mechdesign.exceptions import NotSquare, SolverFailure
from mechdesign.losses import Loss
from mechdesign.optimisation.certificate import Verification
from mechdesign.optimisation.optimal import Design, checked, design
from mechdesign.privacy import Neighbours, Privacy
from mechdesign.properties import Property, PropertyLike
from mechdesign.symbolic.program import AlphaProgram, ParametricVertex, Proof
from mechdesign.symbolic.semialgebraic import AlphaInterval, Endpoint, RationalFunction, between
from mechdesign.symbolic.table import SymbolicMechanism

_TRIES = 8  # the number of alphas between two numbers that may fail before the search there ends


@dataclass(frozen=True, eq=False)
class CriticalRegion:
    """A critical region: the best mechanism in rational functions of alpha, and where it is best.

    Attributes
    ----------
    interval : AlphaInterval
        Where the table keeps its privacy and the properties, and no other mechanism that does has a
        smaller loss.
    mechanism : SymbolicMechanism
        One optimum, of several perhaps, for every alpha of the interval.
    objective : RationalFunction
        Its loss, the least possible, whichever optimum was taken.
    loss : Loss
        The loss that is minimised.
    properties : tuple of Property
        Those that every competing mechanism has.
    proofs : tuple of Proof
        Bounds on the loss of every competitor, on intervals that together cover ``interval``.
    """

    interval: AlphaInterval
    mechanism: SymbolicMechanism
    objective: RationalFunction
    loss: Loss
    properties: tuple[Property, ...]
    proofs: tuple[Proof, ...]

    def verify(self) -> Verification:
        """Check everything from scratch, for all alpha of the interval.

        That is signs, privacy, properties, loss and bounds.
        """
        table = self.mechanism
        program = AlphaProgram(table.outputs, table.neighbours, self.loss, self.properties)
        point = program.point(table, self.objective)
        if point is None:
            return Verification(
                False, "the table is not symmetric, the proofs are about those that are"
            )
        numerators, denominator = point
        # Optimality for all alpha of the interval is primal feasibility, dual feasibility and equal
        # objectives, as identities and signs of polynomials: no alpha is sampled.
        feasible = program.feasible(numerators, denominator)
        if not feasible.covers(self.interval):
            return Verification(
                False, f"the table is private and has the properties only for {feasible}"
            )
        if program.value(numerators, denominator) != self.objective:
            return Verification(
                False, f"the loss is {program.value(numerators, denominator)}, not {self.objective}"
            )
        # Proofs come in order of their lower ends: together they have to leave no gap. Touching
        # ends are enough, as each proof includes its own.
        reached = self.interval.low
        for proof in self.proofs:
            if program.bound(proof.numerators, proof.denominator) != self.objective:
                return Verification(
                    False, f"the multipliers do not prove the bound {self.objective}"
                )
            valid = program.valid(proof.numerators, proof.denominator)
            if proof.interval != AlphaInterval.of(
                proof.interval.low, proof.interval.high
            ) or not valid.covers(proof.interval):
                return Verification(False, f"the multipliers prove a bound only for {valid}")
            if proof.interval.low <= reached:
                reached = max(reached, proof.interval.high)
        if reached < self.interval.high:
            return Verification(False, f"nothing is proved beyond {reached}")
        return Verification(True, "optimal")

    def __str__(self) -> str:
        wanted = " ".join(item.text for item in self.properties) or "no properties"
        return (
            f"The least {self.loss!r} with {wanted}, n = {self.mechanism.inputs - 1}, "
            f"where {self.interval}, is {self.objective}:\n"
            f"{self.mechanism}\n"
            f"properties: {', '.join(self._kept(latex=False)) or 'none'}"
        )

    def latex(self) -> str:
        """Return table, loss, interval and properties as a LaTeX ``aligned`` block."""
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
        """Yield the properties that hold in the interval, or in the part of it in parentheses."""
        for short, region in self.mechanism.properties().items():
            part = region & self.interval.region
            if part:
                whole = part == self.interval.region
                name, alphas = (rf"\text{{{short}}}", part.latex()) if latex else (short, str(part))
                yield name if whole else f"{name} ({alphas})"


@dataclass(frozen=True)
class Unproved:
    """An interval of alphas for which `parametric` has no proof, in place of critical regions.

    Attributes
    ----------
    interval : AlphaInterval
        Between two critical regions, or before the first or after the last of them.
    reason : str
        What went wrong, and at which alpha.
    """

    interval: AlphaInterval
    reason: str

    def verify(self) -> Verification:
        """Return a verification that fails, with the reason: nothing is claimed."""
        return Verification(False, f"nothing is proved where {self.interval}: {self.reason}")

    def __str__(self) -> str:
        return self.verify().reason


def explain(design: Design) -> CriticalRegion:
    """Return a design as rational functions in alpha, and all alpha around where it is optimal.

    If the design is at a common end of two critical regions, the one whose table equals the design
    there is returned; if neither table does, the interval is that single alpha. A design that is
    not a vertex of the program, or not symmetric although the program is, is replaced by an
    optimal vertex with the same loss.

    Raises
    ------
    ValueError
        The design is for alpha = 1, which no critical region includes.
    SolverFailure
        The design is not proved optimal (its certificate has a gap).
    NotPolynomial
        A property of your own depends on alpha in another way than a polynomial of degree at most
        two, or inputs are at distances beyond `mechdesign.symbolic.table.MAX_DEGREE`.
    """
    statement, mechanism = design.certificate, design.mechanism
    if mechanism.outputs != mechanism.inputs:
        raise NotSquare(
            "only square designs can be followed in alpha, "
            f"this one is {mechanism.outputs} x {mechanism.inputs}"
        )
    verdict = statement.verify(mechanism)
    if not (verdict and statement.optimal):
        raise SolverFailure(f"the design is not proved optimal: {verdict.reason}")
    walk = _Walk(
        AlphaProgram(
            mechanism.inputs, mechanism.privacy.neighbours, statement.loss, statement.properties
        ),
        ProgressMeter("explain", shown=False),
    )
    alpha = mechanism.privacy.alpha
    region = walk.region(walk.program.vertex(design))
    if region.interval.low == region.interval.high:
        # A degenerate vertex has several bases, and the one taken may be optimal at this alpha
        # only: the regions on either side are tried instead.
        for limit in (Fraction(0), Fraction(1)):
            vertex = walk.beside(alpha, limit)
            if vertex is not None and vertex.mechanism.at(alpha) == mechanism:
                return walk.region(vertex)
    return region


def parametric(
    n: int,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    neighbours: Neighbours = "adjacent",
    progress: bool = False,
) -> tuple[CriticalRegion | Unproved, ...]:
    """Return the best mechanisms for counts 0 .. n for every alpha in (0, 1), by critical regions.

    Each begins where the last ends, and at their common end both are optimal. What is asked is as
    in `design`, for all alpha at once; from one region to the next the objective changes, or the
    table would cease to be feasible. Where `design` fails at some alphas others nearby are tried;
    if they fail, too, an `Unproved` interval fills the gap, and the regions on both sides of it are
    proved all the same.

    Parameters
    ----------
    n : int
        The largest count, the number of respondents: at least 0.
    loss : Loss, optional
        `L0()` unless given.
    properties : iterable of Property, type or str, optional
        Instances, classes or short names, as in `design`.
    neighbours : str, int, tuple of pairs of int, or Metric, default "adjacent"
        Which counts are neighbours, as in `Privacy`.
    progress : bool, default False
        Show on standard error how many designs were solved.

    Returns
    -------
    tuple of (CriticalRegion or Unproved)
        A partition of (0, 1), in order.

    Raises
    ------
    TypeError, ValueError
        As in `design`.
    Infeasible
        No mechanism has all the properties at some alpha.
    NotPolynomial
        As in `explain`.
    SolverFailure
        Nothing could be proved for any alpha.
    """
    inputs, loss, wanted = checked(n, loss, properties)
    neighbours = Privacy(alpha=1, neighbours=neighbours).neighbours
    program = AlphaProgram(inputs.size, neighbours, loss, wanted)
    with ProgressMeter(f"parametric n = {n}", unit="designs", shown=progress) as meter:
        return tuple(_Walk(program, meter).cover())


class _Walk:
    """A walk over (0, 1): vertices, found as they are needed, and the regions that they form."""

    def __init__(self, program: AlphaProgram, meter: ProgressMeter) -> None:
        self.program, self.meter = program, meter
        self.known, self.failed = list[ParametricVertex](), dict[Fraction, str]()

    def sample(self, start: Endpoint, end: Endpoint) -> ParametricVertex | None:
        """Return a vertex optimal on an interval strictly between two numbers, or None."""
        # It is optimal on more than a point.
        # Breadth first: alphas spread over the whole interval before they come close together. One
        # that yields a point only lies between two regions by bad luck, and the next one does not.
        intervals = deque([(min(start, end), max(start, end))])
        failures = 0
        while failures < _TRIES:
            low, high = intervals.popleft()
            alpha = between(low, high)
            intervals += [(low, alpha), (alpha, high)]
            for known in self.known:
                if known.interval.low < alpha < known.interval.high:
                    return known
            vertex = self._vertex(alpha)
            if vertex is None:
                failures += 1
            elif vertex.interval.low < vertex.interval.high:
                self.known.append(vertex)
                return vertex
        return None

    def _vertex(self, alpha: Fraction) -> ParametricVertex | None:
        program = self.program
        if alpha not in self.failed:
            self.meter.update()
            try:
                privacy = Privacy(alpha=alpha, neighbours=program.neighbours)
                return program.vertex(
                    design(program.size - 1, privacy, program.loss, program.properties)
                )
            except SolverFailure as error:
                self.failed[alpha] = f"{error} (at alpha = {alpha})"
        return None

    def beside(self, alpha: Fraction, limit: Endpoint) -> ParametricVertex | None:
        """Return the vertex that is optimal from ``alpha`` on towards ``limit``, or None."""
        upwards = limit > alpha
        while (vertex := self.sample(alpha, limit)) is not None:
            # A vertex whose interval begins farther away moves the search to the part before it.
            limit = vertex.interval.low if upwards else vertex.interval.high
            if (limit <= alpha) if upwards else (limit >= alpha):
                break
        return vertex

    def region(self, vertex: ParametricVertex) -> CriticalRegion:
        """Return the largest interval around a vertex where its table is feasible and optimal."""
        low, high = vertex.interval.low, vertex.interval.high
        feasible = self.program.feasible(vertex.numerators, vertex.denominator)
        widest = feasible.around(low if low == high else between(low, high))
        if widest is None:
            raise SolverFailure("a vertex is not feasible where it was found to be optimal")
        # The table may stay optimal where its first multipliers cease to be dual feasible, as they
        # do at a degenerate vertex: other vertices with the same objective go on with the proof.
        proofs = [vertex.proof]
        interval = AlphaInterval.of(
            self._reach(vertex.objective, low, widest.low, proofs),
            self._reach(vertex.objective, high, widest.high, proofs),
        )
        return CriticalRegion(
            interval,
            vertex.mechanism,
            vertex.objective,
            self.program.loss,
            self.program.properties,
            tuple(sorted(proofs, key=lambda proof: proof.interval.low)),
        )

    def _reach(
        self, objective: RationalFunction, start: Endpoint, limit: Endpoint, proofs: list[Proof]
    ) -> Endpoint:
        """Return how far from ``start`` towards ``limit`` an objective remains the optimum."""
        # The proofs are appended to ``proofs``.
        upwards = limit > start
        while start != limit and (vertex := self.sample(start, limit)) is not None:
            near, far = vertex.interval.low, vertex.interval.high
            if not upwards:
                near, far = far, near
            # Equal rational functions are equal for all alpha, and different ones at finitely many
            # only: this vertex has the smaller objective on its interval, and the search ends
            # before it.
            if vertex.objective != objective:
                limit = near
                continue
            # A gap between what is proved and this vertex is closed first.
            if (near > start) if upwards else (near < start):
                reached = self._reach(objective, start, near, proofs)
                if reached != near:
                    return reached
            proofs.append(vertex.proof)
            start = min(far, limit) if upwards else max(far, limit)
        return start

    def regions(self, low: Endpoint, high: Endpoint) -> list[CriticalRegion]:
        """Return regions that cover what can be proved between two numbers; they may overlap."""
        if low >= high or (vertex := self.sample(low, high)) is None:
            return []
        region = self.region(vertex)
        return [
            region,
            *self.regions(low, region.interval.low),
            *self.regions(region.interval.high, high),
        ]

    def cover(self) -> Iterator[CriticalRegion | Unproved]:
        """Yield a partition of (0, 1); of overlapping regions the one that reaches farthest."""
        regions = self.regions(Fraction(0), Fraction(1))
        if not regions:
            raise SolverFailure(next(iter(self.failed.values())))
        reached: Endpoint = Fraction(0)
        while reached < 1:
            best = max(
                (region for region in regions if region.interval.low <= reached),
                key=lambda region: region.interval.high,
                default=None,
            )
            if best is not None and best.interval.high > reached:
                yield replace(best, interval=AlphaInterval.of(reached, best.interval.high))
                reached = best.interval.high
                continue
            beyond = min(
                (region.interval.low for region in regions if region.interval.low > reached),
                default=Fraction(1),
            )
            gap = AlphaInterval(reached, beyond, (False, False))
            reasons = [why for alpha, why in self.failed.items() if alpha in gap]
            yield Unproved(gap, [*reasons, *self.failed.values()][0])
            reached = beyond

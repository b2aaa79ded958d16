"""design(...): the best mechanism with the properties asked for, and the proof that it is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np

from mechdesign.accounting.promises import ApproximateDP
from mechdesign.approximate_privacy import ApproximatePrivacy, Promise
from mechdesign.base import ProgressMeter, Rational, whole
from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.exceptions import CertificateRejected, NotPure, SolverFailure, TooLarge
from mechdesign.losses import L0, L2, Loss
from mechdesign.lp.basis import Program, reduce_by_symmetry, unreduced
from mechdesign.mechanism.closed_form import SMALL, FairLaw, GeometricLaw, Law
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.mechanism.values import LARGEST, CountPairs, Counts, Values
from mechdesign.optimisation.certificate import Certificate, dual_bound
from mechdesign.optimisation.diagonal_program import DiagonalProgram, is_unique, no_worse
from mechdesign.optimisation.formulation import Compact, compact, mechanism_program
from mechdesign.optimisation.theory import closed_form
from mechdesign.privacy import Privacy
from mechdesign.properties import SEVEN, Property, PropertyLike, irredundant, resolve

_SECONDS_OF_SLACKS = 5.0  # of a design with a delta that has 8,000 slacks

#: The most seconds and bytes that a design may be expected to take.
_SECONDS, _BYTES = 86400, 1 << 34


# What decides a design: the variables of the program of the diagonal, those of chains, or the whole
# table.
Method: TypeAlias = Literal["diagonal", "chains", "whole table"]

# Those of the stated program, by name of group and number of the constraint.
_Multipliers: TypeAlias = dict[str, dict[int, Fraction]]


@dataclass(frozen=True)
class Design:
    """A mechanism and the certificate that it is optimal among those with its properties.

    Attributes
    ----------
    mechanism : Mechanism
        The exact table, with an audited claim of privacy; it keeps the certificate, too.
    certificate : Certificate
        The exact loss of the mechanism, a lower bound on that of every other, and its proof. For an
        objective that is not linear, the loss is a plane below it, and the gap is above 0.
    canonical : Certificate or None
        Where it was asked for: the proof that no mechanism of the same loss, which is one more of
        the properties here, has a smaller expected squared error. It is not in the file that `save`
        writes; ``Mechanism.from_parts(mechanism, canonical)`` keeps it.
    unique : bool
        Whether it is proved besides that there is no other such mechanism (no other that is
        centrally symmetric, where the request is): then it does not depend on the solver.
    convex : ConvexCertificate or None
        The objective that was given, in its own units, a lower bound on it, and its proof. None
        where only a loss was given, or with it only linear constraints. It is not in the file that
        `save` writes.
    """

    mechanism: Mechanism
    certificate: Certificate
    canonical: Certificate | None = None
    unique: bool = False
    convex: ConvexCertificate | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """The same as ``mechanism.save(path)``, which keeps the certificate."""
        self.mechanism.save(path)


def design(
    n: int | Values,
    privacy: Promise | ApproximateDP | float | Rational,
    loss: Loss | None = None,
    properties: Iterable[PropertyLike] = (),
    *,
    outputs: Values | None = None,
    objective: Callable[[Any], Any] | None = None,
    constraints: Callable[[Any], Iterable[Any]] | None = None,
    canonical: bool = False,
    progress: bool = False,
    however_large: bool = False,
) -> Design:
    """Return the mechanism for counts 0 .. n of least loss with this privacy and properties.

    The linear program of thesis 6.3-6.4 is solved by HiGHS and then exactly; the table is exact,
    its privacy audited and its certificate checked before it is returned: ``certificate.gap`` is
    exactly 0. With adjacent counts as neighbours it has few variables above n = 64: those of the
    diagonal for L0 and the seven properties (`mechdesign.optimisation.diagonal_program`), else
    those of chains of entries (`mechdesign.lp.chains`); and there is none,
    for any n, where a closed form is known to be optimal (`mechdesign.optimisation.theory`).

    Parameters
    ----------
    n : int, Counts or CountPairs
        The largest count, the number of respondents: at least 0; the table is (n+1) x (n+1). Or
        what the inputs are: `Counts` from 0, or `CountPairs`.
    privacy : Privacy, ApproximatePrivacy, ApproximateDP, float, Fraction, int, str or Decimal
        Or its epsilon, between counts that differ by one: see `Privacy.of`. Of pairs of counts
        "adjacent" are those in which one count differs by one, and a distance k is that of both.
        With a delta, `ApproximateDP` is between counts that differ by one, and `ApproximatePrivacy`
        between any; the program is that of the whole table with two slacks for each entry and
        neighbour.
    loss : Loss, optional
        `L0()` unless given.
    properties : iterable of Property, type or str, optional
        Instances, classes or texts: ``[WeakHonesty(), "CM", "within:3=9/10"]``; see
        `mechdesign.properties` and `mechdesign.requirements`.
    outputs : Values, optional
        What may be released: the inputs unless given. Wider `Counts`, such as ``Counts(-5, 25)``,
        allow unbiased mechanisms; `Bands` are coarser.
    objective : callable, optional
        In place of a loss: from the table, a ``cvxpy.Variable`` P of shape (outputs, inputs), to a
        convex expression of cvxpy that is minimised. Numbers in it are read as the shortest
        decimals that print them. An affine one is a loss like others; ``convex`` then states it in
        its own units. Others leave a gap, which is proved: mostly about 1e-8 of the objective.
    constraints : callable, optional
        From the table to a list of constraints of cvxpy, convex ones. Affine ones hold exactly and
        keep the gap 0. Both need the extra ``convex``.
    canonical : bool, default False
        Of all optimal mechanisms, take the one of least expected squared error under the same
        prior, by a second program with a proof of its own: so that it does not depend on the
        version of the solver. See `Design` for what is proved.
    progress : bool, default False
        Show what is going on, on standard error.
    however_large : bool, default False
        Solve the program even if it is expected to take more than a day or 16 GiB.

    Returns
    -------
    Design

    Raises
    ------
    TypeError
        A loss and an objective were given, or they do not make what they should;
        ``privacy`` is neither a `Privacy` nor a number, ``loss`` not a `Loss`, or ``properties`` a
        string.
    InvalidExpression
        An objective or a constraint is not convex, or cannot be read exactly.
    ValueError
        n is not a whole number of at least 0, or a property is not known.
    TooLarge
        The program is expected to take more than a day or 16 GiB: from about n = 2000 with adjacent
        counts as neighbours, from 600 with all. For L0 `mechdesign.named.closed_form` tells there
        how little is lost by taking GM or EM.
    Incompatible
        No mechanism has all the properties (the seven of the thesis are always compatible). The
        error has the proof, which of them conflict, and from which epsilon on they do not.
    SolverFailure
        No exact answer could be computed.

    Examples
    --------
    >>> d = design(2, Privacy(alpha="9/10"), properties=["WH"])
    >>> d.certificate.objective, d.certificate.gap
    (Fraction(52, 81), Fraction(0, 1))
    """
    privacy = _promised(privacy)
    if objective is not None and loss is not None:
        raise TypeError("give a loss or an objective, not both")
    inputs, loss, wanted = checked(n, loss, properties)
    outputs = inputs if outputs is None else outputs
    if not isinstance(outputs, Values):
        raise TypeError(f"outputs must be Values, such as Counts(-5, 25), got {outputs!r:.60}")
    plain = objective is None and constraints is None
    aligned = outputs == inputs and isinstance(inputs, Counts)
    if plain and aligned and not canonical and isinstance(privacy, Privacy):
        known = by_closed_form(inputs.size - 1, privacy, loss, wanted)
        if known is not None and known.certificate is not None:
            return Design(known, known.certificate)
    adjacent = privacy.neighbours == "adjacent" and privacy.alpha < 1 and not privacy.delta
    method: Method = "chains" if plain and aligned and adjacent else "whole table"
    if not however_large:
        only_diagonal = plain and _only_diagonal(privacy, loss, wanted)
        refuse_huge(
            outputs.size, inputs.size, privacy, "diagonal" if only_diagonal else method, _TRY
        )
    privacy = _between(inputs, privacy)
    statement = None
    if objective is not None or constraints is not None:
        # Imported here: it loads solvers, too.
        from mechdesign.convex.minimise import minimised
        from mechdesign.convex.statement import stated

        statement = stated(loss if objective is None else objective, constraints, outputs, inputs)
        wanted = statement.properties(wanted)
        if statement.loss is None or statement.constraints:
            mechanism, proof = minimised(statement, _for_convex(privacy, canonical), wanted)
            return Design(mechanism, proof.linear, convex=proof)
        loss = statement.loss
    with ProgressMeter(f"design n = {inputs.size - 1}", shown=progress) as meter:
        meter.say("building the program")
        program = mechanism_program(outputs, inputs, privacy, loss, wanted)
        say = meter.say if progress else None

        def denied() -> None:
            # Imported here: it loads the solver, which most imports of the package do not need.
            from mechdesign.optimisation.infeasibility import Request, incompatible

            with suppress(SolverFailure):
                conflict = incompatible(Request(outputs, inputs, privacy, wanted), meter.say)
                if conflict is not None:
                    raise conflict

        solved = _by_diagonal(program, inputs.size, privacy, say) if aligned else None
        if solved is None:
            if not however_large:
                refuse_huge(outputs.size, inputs.size, privacy, method, _TRY)
            monotone = aligned and any(item.short == "RM" for item in irredundant(wanted))
            shorter = compact(program, outputs.size, inputs.size, privacy, monotone)
            x, multipliers = _solved(shorter, say, denied)
            solved = [x[i * inputs.size :][: inputs.size] for i in range(outputs.size)], multipliers
        meter.say("checking the certificate")
        table, multipliers = solved
        mechanism = _in_closed_form(Mechanism(table, privacy, outputs=outputs, inputs=inputs))
        certificate = Certificate(
            privacy,
            loss,
            wanted,
            mechanism.loss(loss),
            dual_bound(program, multipliers),
            multipliers,
        )
        verdict = certificate.verify(mechanism)
        if not verdict:
            raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    result = Design(Mechanism.from_parts(mechanism, certificate), certificate)
    result = _canonical(result, progress, however_large) if canonical else result
    if statement is None or objective is None:
        return result
    return replace(
        result,
        convex=ConvexCertificate.of(
            statement.program, result.mechanism, (), (), result.certificate
        ),
    )


def _in_closed_form(mechanism: Mechanism) -> Mechanism:
    """Return the closed form of a mechanism whose table is that of GM or of EM, or itself."""
    n, privacy = mechanism.inputs - 1, mechanism.promise
    if isinstance(privacy, ApproximatePrivacy):
        return mechanism
    if not 0 < n <= SMALL or privacy.neighbours != "adjacent" or privacy.alpha == 1:
        return mechanism
    laws: tuple[Law, ...] = GeometricLaw(n, privacy.alpha), FairLaw(n, privacy.alpha)
    named = (Mechanism.from_law(law, privacy) for law in laws)
    return next((each for each in named if each == mechanism), mechanism)


def by_closed_form(
    n: int, privacy: Privacy, loss: Loss, wanted: tuple[Property, ...]
) -> Mechanism | None:
    """Return the optimum above n = 64 where theory knows that a closed form is one, or None."""
    if n <= SMALL or loss != L0() or not _only_diagonal(privacy, loss, wanted):
        return None
    found = closed_form(n, privacy, wanted)
    if found.excess:
        return None
    certificate = Certificate(privacy, loss, wanted, found.loss, found.bound, {})
    mechanism = Mechanism.from_law(found.law(n, privacy), privacy, certificate)
    verdict = certificate.verify(mechanism)
    if not verdict:
        raise CertificateRejected(f"the closed form failed its own check: {verdict.reason}")
    return mechanism


def _canonical(first: Design, progress: bool, however_large: bool) -> Design:
    """The optimum of least expected squared error, with both certificates."""
    mechanism, certificate = first.mechanism, first.certificate
    second = design(
        mechanism.input_values,
        mechanism.promise,
        L2(prior=certificate.loss.prior),
        [*certificate.properties, *no_worse(mechanism, certificate)],
        outputs=mechanism.output_values,
        progress=progress,
        however_large=however_large,
    )
    verdict = certificate.verify(second.mechanism)
    if not verdict:
        raise CertificateRejected(f"the canonical design is not optimal: {verdict.reason}")
    return Design(
        Mechanism.from_parts(second.mechanism, certificate),
        certificate,
        second.certificate,
        is_unique(second.mechanism, (certificate, second.certificate)),
    )


def _by_diagonal(
    program: Program, size: int, privacy: Promise, progress: Callable[[str], None] | None
) -> tuple[list[list[Fraction]], _Multipliers] | None:
    """Return the optimal table and its proof by the program of the diagonal, if it applies."""
    # None also where it fails, and for few counts, where the whole table's is solved as quickly.
    shorter = DiagonalProgram.of(program, size, privacy) if size > SMALL else None
    if shorter is None:
        return None
    x, multipliers = _solved(shorter, progress)
    table = shorter.table(x)
    return None if table is None else (table, multipliers)


def _solved(
    shorter: Compact | DiagonalProgram,
    progress: Callable[[str], None] | None,
    denied: Callable[[], None] | None = None,
) -> tuple[list[Fraction], _Multipliers]:
    """The exact optimum of a shorter program, and the proof for the one that it stands for."""
    # Imported here: it loads the solver, which most imports of the package do not need.
    from mechdesign.lp.chains import solve_by_chains
    from mechdesign.lp.exact_solution import certify

    reduced = reduce_by_symmetry(shorter.program, shorter.symmetry) or unreduced(shorter.program)
    sizes = np.ones(reduced.program.variables)
    sizes[reduced.orbit] = shorter.sizes
    solution = None
    if isinstance(shorter, Compact) and shorter.places is not None and shorter.inputs > SMALL:
        places = shorter.places.renumbered(reduced.orbit)
        solution = solve_by_chains(reduced.program, places, shorter.alpha, progress)
    if solution is None:
        solution = certify(reduced.program, progress, denied=denied, sizes=sizes)
    x = [solution.x[v] for v in reduced.orbit.tolist()]
    return x, shorter.restored(reduced.expand(solution.multipliers))


def checked(
    n: int | Values, loss: Loss | None, properties: Iterable[PropertyLike]
) -> tuple[Values, Loss, tuple[Property, ...]]:
    """Return the arguments of `design` besides privacy, or raise TypeError or ValueError."""
    if not isinstance(n, Values):
        n = Counts(0, whole(n, "n", 0, LARGEST, what="a whole number of respondents"))
    loss = L0() if loss is None else loss
    if not isinstance(loss, Loss):
        raise TypeError(f"loss must be a Loss, such as L0() or Power('1/2'), got {loss!r:.60}")
    if isinstance(properties, str):
        raise TypeError(
            f"properties must be a list, such as ['WH', 'CM'], got the string {properties!r:.60}"
        )
    wanted = tuple(dict.fromkeys(resolve(item) for item in properties))
    texts = [item.text for item in wanted]
    if len(set(texts)) < len(texts):
        raise ValueError(f"two different properties have the same text: {', '.join(texts)}")
    return n, loss, wanted


def _for_convex(privacy: Promise, canonical: bool) -> Privacy:
    """Return the privacy, and refuse what convex programs that are not linear cannot do."""
    if canonical:
        raise ValueError("only designs by linear programs have canonical ones")
    if isinstance(privacy, ApproximatePrivacy):
        raise NotPure(
            "objectives and constraints that are not linear are for a promise without a delta, got"
            f" {privacy!r}: take a loss, and linear constraints"
        )
    return privacy


def _promised(privacy: Promise | ApproximateDP | float | Rational) -> Promise:
    """Return what a table has to promise; without a delta, if that is 0."""
    if isinstance(privacy, ApproximateDP):
        privacy = privacy.between("adjacent")
    if isinstance(privacy, ApproximatePrivacy):
        return privacy if privacy.delta else privacy.pure
    return Privacy.of(privacy)


def _between(inputs: Values, privacy: Promise) -> Promise:
    """The privacy, with the neighbours of pairs of counts listed."""
    neighbours = privacy.neighbours
    if not isinstance(inputs, CountPairs) or not (
        neighbours == "adjacent" or isinstance(neighbours, int)
    ):
        return privacy
    listed = inputs.neighbours(1 if neighbours == "adjacent" else neighbours)
    return privacy.between(listed or "all")  # none: a single pair, 0,0


def _only_diagonal(privacy: Promise, loss: Loss, wanted: Iterable[Property]) -> bool:
    """Whether `DiagonalProgram` is expected to solve the program."""
    plain = loss == L0(prior=loss.prior) and set(wanted) <= set(SEVEN)
    adjacent = privacy.neighbours == "adjacent" and privacy.alpha < 1
    return plain and adjacent and not privacy.delta


_TRY = "however_large=True, --however-large: try"


def expected_seconds(n: int, method: Method) -> float:
    """Return about how long a design takes, by a rule of thumb."""
    # One core took that up to n = 1000 where the diagonal decides, up to 512 in chains, which take
    # longest with row and column monotonicity, and else up to 256.
    if method == "whole table":
        return 5 * (n / 128) ** 5
    return (200 if method == "diagonal" else 1000) * (n / 1000) ** 3


def refuse_huge(
    outputs: int,
    inputs: int,
    privacy: Promise,
    method: Method = "whole table",
    remedy: str = "",
) -> None:
    """Raise TooLarge, with a remedy, for a program beyond the limits, by a rule of thumb."""
    # Memory is 4 kB an entry of the table and 75 bytes a privacy constraint.
    outputs, limited = (min(size, 1 << 30) for size in (outputs, inputs))  # or floats may overflow
    size = max(outputs, limited)
    seconds = expected_seconds(size, method)
    memory = 4000 * size**2 + 150 * size * privacy.pair_count(limited)
    if privacy.delta:
        # The dense part of the exact solution has a row for each slack that is above 0
        slacks = 2 * outputs * privacy.pair_count(limited)
        seconds, memory = _SECONDS_OF_SLACKS * (slacks / 8000) ** 6, memory + 100 * slacks
    if seconds > _SECONDS or memory > _BYTES:
        raise TooLarge(inputs - 1, seconds, memory, remedy)

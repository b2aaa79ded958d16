"""design_perturbation(...): the best noise for each count under stated rules, with a proof.

The variables are Pr[noise | count]. Privacy of neighbouring counts c and c + 1 with (epsilon,
delta) is linear with a slack for each output: ``s >= P - x Q`` and ``s >= 0``, x = e^epsilon, and
the slacks of a pair add up to delta at most. The program is solved exactly; its multipliers prove
that no noise does better.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np

from mechdesign.base import Rational, brief, exact, set_fields, shown, whole
from mechdesign.convex.certificate import ConvexCertificate
from mechdesign.convex.reading import load
from mechdesign.exceptions import CertificateRejected, SolverFailure
from mechdesign.lp.basis import Program, unreduced
from mechdesign.lp.constraints import Constraints
from mechdesign.lp.exact_solution import certify
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Counts
from mechdesign.optimisation.certificate import Verification, dual_bound, exact_multipliers
from mechdesign.optimisation.infeasibility import Request, incompatible, together
from mechdesign.optimisation.optimal import design
from mechdesign.perturbation.disclosure import Disclosure
from mechdesign.perturbation.table import MOST_KEYS, PerturbationTable
from mechdesign.privacy import Privacy
from mechdesign.properties import Property

#: What is minimised.
#:
#: "L0": the chance of any noise; "L1", "L2": its expected size and square; these are means over the
#: counts with a row. "delta": the delta of neighbouring counts at an epsilon. "entropy": minus the
#: entropy of the noise in nats, the mean over the counts.
Objective: TypeAlias = Literal["L0", "L1", "L2", "delta", "entropy"]

#: Where noise is to be unbiased: at every count; at those of at least ``noise``; or nowhere.
Unbiased: TypeAlias = Literal["everywhere", "interior", "nowhere"]

_POWERS = {"L0": 0, "L1": 1, "L2": 2}

LARGEST_COUNT, LARGEST_NOISE = 1000, 100  #: The largest ``largest`` and ``noise`` of a design.

# The seconds that rounding may take, and how far integers of floats may be from privacy
_SECONDS, _MARGIN = 12.0, 1e-6


@dataclass(frozen=True)
class NoiseRules:
    """The rules that a noise has to keep, whatever it costs.

    Attributes
    ----------
    largest : int
        The largest count with a row of its own, 0 to 1000; its row stands for all counts above, and
        privacy is required there, too.
    noise : int
        The largest size of a noise, 1 to 100.
    variance : Fraction or None, default None
        The largest expected square of a noise, above 0: the variance where it is unbiased.
    unbiased : str, default "everywhere"
        "everywhere": at every count, so that count 0 is not perturbed, as no output is below 0.
        "interior": at counts of at least ``noise``. "nowhere".
    blocked : int, default 0
        The outputs 1 .. blocked are never published (js in ptable), at least 0.
    keep_zeros : bool, default False
        Whether count 0 stays 0.
    stay : Fraction, default 0
        The least probability of no noise, at counts whose own number is not blocked (pstay).
    monotone : bool, default False
        Whether a noise is at most as likely as the next smaller one on its side of 0, blocked
        outputs left out.
    epsilon, delta : Fraction or None
        What is promised for two neighbouring counts; None: nothing.
    protected : int, default 0
        The least count c for which c and c + 1 are to be told apart no better than that: 0 to
        ``largest``.
    """

    largest: int
    noise: int
    variance: Fraction | None = None
    unbiased: Unbiased = "everywhere"
    blocked: int = 0
    keep_zeros: bool = False
    stay: Fraction = Fraction(0)
    monotone: bool = False
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    protected: int = 0

    def __post_init__(self) -> None:
        largest = whole(self.largest, "the largest count", 0, LARGEST_COUNT)
        set_fields(
            self,
            largest=largest,
            noise=whole(self.noise, "the largest noise", 1, LARGEST_NOISE),
            blocked=whole(self.blocked, "the number of blocked outputs"),
            protected=whole(self.protected, "the least protected count", 0, largest),
            stay=exact(self.stay, "the least probability of no noise"),
        )
        if self.unbiased not in ("everywhere", "interior", "nowhere"):
            raise ValueError(
                f"unbiased is everywhere, interior or nowhere, got {shown(self.unbiased)}"
            )
        for name, low, high in (("variance", 0, None), ("epsilon", 0, None), ("delta", 0, 1)):
            given = getattr(self, name)
            if given is not None:
                value = exact(given, name)
                if value < low or (high is not None and value >= high):
                    extent = f"at least {low}" if high is None else f"{low} to below {high}"
                    raise ValueError(f"{name} is {extent}, got {brief(value)}")
                set_fields(self, **{name: value})
        if not 0 <= self.stay <= 1:
            raise ValueError(f"the probability of no noise is 0 to 1, got {brief(self.stay)}")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("a delta needs an epsilon")

    @cached_property
    def ratio(self) -> Fraction:
        """The e^epsilon of the program: rational, at most that, by less than 10^-6 of epsilon."""
        assert self.epsilon is not None
        return 1 / Privacy.from_epsilon(self.epsilon).alpha

    def noises(self, count: int) -> range:
        """Return the noises that leave no output below 0."""
        return range(-min(count, self.noise), self.noise + 1)

    def shows(self, output: int) -> bool:
        """Whether an output is not blocked."""
        return not 1 <= output <= self.blocked

    def possible(self, count: int) -> list[int]:
        """Return the noises of a count that no rule about it excludes at once."""
        found = [v for v in self.noises(count) if self.shows(count + v)]
        least = {"everywhere": 0, "interior": self.noise}.get(self.unbiased, count + 1)
        one_side = count >= least and (min(found, default=0) >= 0 or max(found) <= 0)
        fixed = one_side or (self.keep_zeros and count == 0)
        return [v for v in found if v == 0 or not fixed]

    @cached_property
    def cells(self) -> dict[tuple[int, int], int]:
        """The number of the variable of each count and noise."""
        pairs = ((c, v) for c in range(self.largest + 1) for v in self.noises(c))
        return {pair: number for number, pair in enumerate(pairs)}


@dataclass(frozen=True)
class NoiseRule(Property):
    """A rule of a noise as named constraints on its program.

    Attributes
    ----------
    name : str
        The rule in words.
    groups : tuple of Constraints
        What it says of the variables of `NoiseRules.cells`, and of slacks after them.
    """

    name: str
    groups: tuple[Constraints, ...]

    def constraints(self, at: IndexTable, privacy: Privacy) -> tuple[Constraints, ...]:
        return self.groups

    @property
    def text(self) -> str:
        """The rule in words."""
        return self.name


@dataclass(frozen=True)
class PerturbationRequest(Request):
    """A request for a noise: the rules, as the properties that a table has to have.

    Attributes
    ----------
    columns : tuple of Constraints
        That probabilities add up to 1, which is no rule.
    size : int
        The number of variables, slacks among them.
    """

    columns: tuple[Constraints, ...] = ()
    size: int = 0

    def constraints(self) -> list[Constraints]:
        """Return all constraints, named."""
        return [*self.columns, *(group for rule in self.properties for group in _groups(rule))]

    @property
    def variables(self) -> int:
        """The number of variables, slacks among them."""
        return self.size

    def refusal(self, possible: Privacy | None, impossible: Privacy | None) -> str:
        """Say which rules no noise meets.

        Parameters
        ----------
        possible, impossible : None
            Of no meaning here.

        Returns
        -------
        str
        """
        return f"no noise meets {together([rule.text for rule in self.properties])} (proved)"


def _groups(rule: Property) -> tuple[Constraints, ...]:
    assert isinstance(rule, NoiseRule)
    return rule.groups


# ------------------------------------------------------------------------------------------------
# The rules as constraints.


def request_of(rules: NoiseRules, least_delta: bool = False) -> PerturbationRequest:
    """Return the request that rules make; of the least delta with that as the last variable."""
    cells = rules.cells
    columns = [
        Constraints.equal_to([cells[c, v] for v in rules.noises(c)], 1).named(f"count {c}")
        for c in range(rules.largest + 1)
    ]
    wanted = list(_rules_of_noise(rules))
    size = len(cells)
    if rules.epsilon is not None:
        groups, size = _privacy(rules, least_delta)
        text = f"delta {brief(rules.delta or Fraction(0))}"
        text = f"epsilon {brief(rules.epsilon)}, {'a least delta' if least_delta else text}"
        wanted.append(_rule(text, groups))
    outputs = 2 * rules.noise + 1
    return PerturbationRequest(
        Counts(0, outputs - 1),
        Counts(0, rules.largest),
        Privacy(alpha=1),
        tuple(wanted),
        private=False,
        columns=tuple(columns),
        size=size,
    )


def _rule(text: str, groups: Sequence[Constraints]) -> NoiseRule:
    kept = [group for group in groups if len(group.cells)]
    return NoiseRule(text, tuple(group.named(f"{text} {k}") for k, group in enumerate(kept)))


def _rules_of_noise(rules: NoiseRules) -> Iterator[NoiseRule]:
    """Yield the rules about single counts."""
    cells, counts = rules.cells, range(rules.largest + 1)

    def moments(power: int, count: int) -> tuple[list[int], tuple[Fraction, ...]]:
        noises = rules.noises(count)
        return [cells[count, v] for v in noises], tuple(Fraction(v**power) for v in noises)

    if rules.unbiased != "nowhere":
        least = rules.noise if rules.unbiased == "interior" else 0
        groups = [_linear(*moments(1, c), Fraction(0), True) for c in counts if c >= least]
        yield _rule(f"unbiased {rules.unbiased}", groups)
    if rules.variance is not None:
        groups = []
        for count in counts:
            variables, squares = moments(2, count)
            minus = tuple(-square for square in squares)
            groups.append(_linear(variables, minus, -rules.variance, False))
        yield _rule(f"variance at most {brief(rules.variance)}", groups)
    if rules.blocked:
        never = [number for (c, v), number in cells.items() if not rules.shows(c + v)]
        yield _rule(f"no outputs 1 to {rules.blocked}", [Constraints.at_most_value(never, 0)])
    if rules.keep_zeros:
        yield _rule("zeros kept", [Constraints.at_least_value([cells[0, 0]], 1)])
    if rules.stay:
        same = [cells[c, 0] for c in counts if rules.shows(c)]
        yield _rule(
            f"no change with probability at least {brief(rules.stay)}",
            [Constraints.at_least_value(same, rules.stay)],
        )
    if rules.monotone:
        pairs = []
        for count in counts:
            for sign in (-1, 1):
                side = [v for v in rules.noises(count) if v * sign >= 0 and rules.shows(count + v)]
                side.sort(key=abs)
                pairs += [(cells[count, a], cells[count, b]) for a, b in pairwise(side)]
        larger, smaller = zip(*pairs, strict=True)
        yield _rule("monotone", [Constraints.at_least(larger, smaller)])


def _linear(
    variables: Sequence[int], coefficients: tuple[Fraction, ...], bound: Fraction, equality: bool
) -> Constraints:
    return Constraints(np.array([variables], dtype=np.int64), coefficients, bound, equality)


def _privacy(rules: NoiseRules, least_delta: bool) -> tuple[list[Constraints], int]:
    """Return the constraints of privacy, and the number of variables with their slacks."""
    ratio, size = rules.ratio, len(rules.cells)
    slack = least_delta or bool(rules.delta)
    beside, alone = list[list[int]](), list[list[int]]()  # where the other count has the output
    sums = list[list[int]]()
    for one, other in _directions(rules):
        mine = list[int]()
        for v in rules.noises(one):
            output = one + v
            p, q = _variable(rules, one, output), _variable(rules, other, output)
            assert p is not None
            extra = [size] * slack
            (alone if q is None else beside).append([p, *([] if q is None else [q]), *extra])
            mine += extra
            size += slack
        sums.append(mine)
    bought = (Fraction(1),) * slack
    groups = [
        Constraints(np.array(cells), (*coefficients, *bought), Fraction(0), False)
        for cells, coefficients in (
            (beside, (Fraction(-1), ratio)),
            (alone, (Fraction(-1),)),
        )
        if cells
    ]
    if slack:
        # Grouped by length, as constraints of one group have the same coefficients
        for length in sorted({len(mine) for mine in sums}):
            cells = [[*mine, *[size] * least_delta] for mine in sums if len(mine) == length]
            coefficients = (Fraction(-1),) * length + (Fraction(1),) * least_delta
            bound = Fraction(0) if least_delta else -(rules.delta or Fraction(0))
            groups.append(Constraints(np.array(cells), coefficients, bound, False))
    return groups, size + least_delta


def _variable(rules: NoiseRules, count: int, output: int) -> int | None:
    """Return the variable of an output of a count, also above the largest; None: impossible."""
    return rules.cells.get((min(count, rules.largest), output - count))


def _directions(rules: NoiseRules) -> Iterator[tuple[int, int]]:
    """Yield neighbouring counts, both ways; those above the largest are all alike."""
    for count in range(rules.protected, rules.largest + 1):
        yield count, count + 1
        yield count + 1, count


# ------------------------------------------------------------------------------------------------
# The design and its certificate.


@dataclass(frozen=True)
class PerturbationCertificate:
    """A claim that a noise is the best one under some rules, with its proof.

    Attributes
    ----------
    rules : NoiseRules
        The rules that every competing noise keeps.
    objective : str
        What they are compared by, see `Objective`.
    value : Fraction
        The objective of the noise; of the entropy, rounded up.
    bound : Fraction
        A proved lower bound on that of every noise that keeps the rules.
    multipliers : mapping of str to (mapping of int to Fraction)
        The proof of a linear objective: name of a group of constraints -> number of the constraint
        in it -> multiplier.
    convex : tuple of ConvexCertificate
        The proofs of the entropy.
    """

    rules: NoiseRules
    objective: Objective
    value: Fraction
    bound: Fraction
    multipliers: Mapping[str, Mapping[int, Fraction]]
    convex: tuple[ConvexCertificate, ...] = ()

    @property
    def gap(self) -> Fraction:
        """The difference value - bound >= 0; 0 proves that nothing is better."""
        return self.value - self.bound

    def verify(self, table: PerturbationTable) -> Verification:
        """Check the rules, the objective and a linear bound from scratch, in exact arithmetic.

        Parameters
        ----------
        table : PerturbationTable
            The noise that the claim is about.

        Returns
        -------
        Verification
        """
        wrong = broken_rules(self.rules, table)
        if wrong:
            return Verification(False, f"the noise does not keep {', '.join(wrong)}")
        if self.objective == "entropy":
            close = abs(objective_of(self.rules, "entropy", table) - self.value) < Fraction(
                1, 10**9
            )
            return Verification(close and self.gap >= 0, f"within {brief(self.gap, 3)} of optimal")
        value = objective_of(self.rules, self.objective, table)
        if value != self.value:
            return Verification(False, f"the objective is {brief(value)}, not {brief(self.value)}")
        try:
            bound = dual_bound(program_of(self.rules, self.objective), self.multipliers)
        except ValueError as error:
            return Verification(False, f"the multipliers prove nothing: {error}")
        if bound != self.bound or bound > value:
            return Verification(False, f"the multipliers prove the bound {brief(bound)}")
        return Verification(True, "optimal" if bound == value else f"within {brief(self.gap, 3)}")


@dataclass(frozen=True)
class PerturbationDesign:
    """A noise and the certificate that it is the best one under its rules.

    Attributes
    ----------
    table : PerturbationTable
        The noise, exact: its number of keys is whatever the fractions need. For use, `rounded`.
    certificate : PerturbationCertificate
        The rules, the objective, a lower bound and its proof.
    """

    table: PerturbationTable
    certificate: PerturbationCertificate

    def rounded(self, keys: int = 256) -> RoundedDesign:
        """Return the best table with so many keys that keeps all rules exactly.

        Parameters
        ----------
        keys : int, default 256
            2 to 65,536.

        Returns
        -------
        RoundedDesign

        Raises
        ------
        SolverFailure
            No such table was found, for instance since there are too few keys for the rules.
        """
        return rounded_to_keys(self, keys)


@dataclass(frozen=True)
class RoundedDesign:
    """A table of a given number of keys, beside the design that it is rounded from.

    Attributes
    ----------
    table : PerturbationTable
        It keeps every rule, which is checked exactly. The noise rises with the key: see
        `mechdesign.perturbation.scattered` for an assignment of keys that leaks less.
    value : Fraction
        Its objective.
    lost : Fraction
        How much of the objective rounding costs at most: ``value`` less what no noise with any
        number of keys is below.
    """

    table: PerturbationTable
    value: Fraction
    lost: Fraction


def design_perturbation(
    largest: int,
    *,
    noise: int,
    objective: Objective = "L2",
    variance: Rational | None = None,
    unbiased: Unbiased = "everywhere",
    blocked: int = 0,
    keep_zeros: bool = False,
    stay: Rational = 0,
    monotone: bool = False,
    epsilon: Rational | None = None,
    delta: Rational | None = None,
    protected: int = 0,
) -> PerturbationDesign:
    """Return the noise of least objective for each count under the rules, and the proof.

    Parameters
    ----------
    largest, noise, variance, unbiased, blocked : object
        The rules, see `NoiseRules`. Numbers are exact: int, Fraction, str or Decimal.
    keep_zeros, stay, monotone, epsilon, delta, protected : object
        The others.
    objective : str, default "L2"
        "L0", "L1", "L2", "delta" (needs an epsilon and no delta) or "entropy", see `Objective`.

    Returns
    -------
    PerturbationDesign

    Raises
    ------
    Incompatible
        No noise keeps the rules; it names the fewest of them that contradict each other, and holds
        a proof. Of those a largest noise is no rule: it is taken for granted.
    ValueError
        A number out of range, or an objective that does not fit the rules.

    Examples
    --------
    >>> best = design_perturbation(
    ...     2, noise=2, variance="1/2", objective="delta", epsilon=1, protected=2
    ... )
    >>> best.certificate.gap, f"{float(best.certificate.value):.4f}"
    (Fraction(0, 1), '0.1891')
    """
    rules = NoiseRules(
        largest,
        noise,
        variance,  # type: ignore[arg-type]
        unbiased,
        blocked,
        keep_zeros,
        stay,  # type: ignore[arg-type]
        monotone,
        epsilon,  # type: ignore[arg-type]
        delta if delta is not None or epsilon is None or objective == "delta" else 0,  # type: ignore[arg-type]
        protected,
    )
    if objective not in (*_POWERS, "delta", "entropy"):
        raise ValueError(f"an objective is L0, L1, L2, delta or entropy, got {shown(objective)}")
    if objective == "delta" and (rules.epsilon is None or rules.delta is not None):
        raise ValueError("the objective delta needs an epsilon, and no delta")
    if objective == "entropy":
        return _greatest_entropy(rules)
    program = program_of(rules, objective)
    reduced = unreduced(program)
    solution = certify(reduced.program, denied=lambda: _refuse(rules, objective == "delta"))
    names = [group.name for group in program.constraints]
    multipliers = dict(zip(names, reduced.expand(solution.multipliers), strict=True))
    cells = rules.cells
    table = table_of(
        [{v: solution.x[cells[c, v]] for v in rules.noises(c)} for c in range(rules.largest + 1)]
    )
    certificate = PerturbationCertificate(
        rules,
        objective,
        objective_of(rules, objective, table),
        dual_bound(program, multipliers),
        exact_multipliers(multipliers),
    )
    verdict = certificate.verify(table)
    if not verdict:
        raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    return PerturbationDesign(table, certificate)


def _refuse(rules: NoiseRules, least_delta: bool = False) -> None:
    """Raise Incompatible with the smallest conflict, if rules have one."""
    refused = incompatible(request_of(rules, least_delta))
    if refused is not None:
        raise refused


def table_of(laws: Sequence[Mapping[int, Fraction]]) -> PerturbationTable:
    """Return the table of probabilities of noise for each count, with as many keys as they need."""
    keys = math.lcm(*(p.denominator for law in laws for p in law.values()))
    return PerturbationTable.of_laws(
        keys, [{v: int(p * keys) for v, p in law.items() if p} for law in laws]
    )


def program_of(rules: NoiseRules, objective: Objective) -> Program:
    """Return the linear program of an objective."""
    request = request_of(rules, objective == "delta")
    cost = [Fraction(0)] * request.size
    if objective == "delta":
        cost[-1] = Fraction(1)
    else:
        for (_, v), number in rules.cells.items():
            cost[number] = Fraction(_size(v, objective), rules.largest + 1)
    return Program(tuple(cost), tuple(request.constraints()))


def _size(noise: int, objective: Objective) -> int:
    return abs(noise) ** _POWERS[objective] if noise else 0


def objective_of(rules: NoiseRules, objective: Objective, table: PerturbationTable) -> Fraction:
    """Return the objective of a table, exactly; the entropy as the nearest float has it."""
    counts = range(rules.largest + 1)
    if objective == "delta":
        found = Disclosure(table)
        return max(found.curve_of(c).at_ratio(rules.ratio) for c in counts[rules.protected :])
    if objective == "entropy":
        parts = [
            keys / table.keys * math.log(keys / table.keys)
            for c in counts
            for keys in table.law(c).values()
        ]
        return Fraction(math.fsum(parts)) / len(counts)
    total = sum(_size(v, objective) * keys for c in counts for v, keys in table.law(c).items())
    return Fraction(total, table.keys * len(counts))


def broken_rules(rules: NoiseRules, table: PerturbationTable) -> list[str]:
    """Return the rules that a table does not keep, in words; exact."""
    counts = range(rules.largest + 1)
    if table.largest != rules.largest or table.period != 1:
        return [f"counts to {rules.largest}"]
    laws = [table.law(c) for c in counts]
    broken = []
    if any(abs(v) > rules.noise for law in laws for v in law):
        broken.append(f"noise of at most {rules.noise}")
    entries = [laws[c].get(v, 0) for c, v in rules.cells]
    for rule in _rules_of_noise(rules):
        if any(any(True for _ in g.violations(entries, table.keys)) for g in rule.groups):
            broken.append(rule.text)
    if rules.delta is not None and objective_of(rules, "delta", table) > rules.delta:
        broken.append("privacy")
    return broken


# ------------------------------------------------------------------------------------------------
# The greatest entropy.


def _greatest_entropy(rules: NoiseRules) -> PerturbationDesign:
    """Return the noise of greatest entropy, and the proof of how near it is."""
    # The probabilities of all counts, divided by the number of counts, are one distribution: a
    # mechanism with a single input, which convex programs are solved and certified for. Without
    # privacy each count is a program of its own.
    _refuse(rules)
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
    certificate = PerturbationCertificate(rules, "entropy", value, bound, {}, tuple(proofs))
    verdict = certificate.verify(table)
    if not verdict:
        raise CertificateRejected(f"the design failed its own check: {verdict.reason}")
    return PerturbationDesign(table, certificate)


def _entropy_of(
    rules: NoiseRules, counts: Sequence[int]
) -> tuple[dict[int, dict[int, Fraction]], ConvexCertificate]:
    """Return the noise of greatest entropy of some counts, and its proof."""
    cvxpy = load()
    allowed = [(c, v) for c in counts for v in rules.possible(c)]
    place = {rules.cells[pair]: k for k, pair in enumerate(allowed)}
    owner = {number: c for (c, _), number in rules.cells.items()}
    groups = [*request_of(rules).columns, *(g for r in _rules_of_noise(rules) for g in r.groups)]

    def lines(flat: Any) -> list[Any]:
        """Return the constraints on these counts, each of which is about one, as those of cvxpy."""
        found = []
        for group in groups:
            for row in group.cells.tolist():
                # Variables of blocked outputs are 0 and are left out
                terms = [
                    float(a) * flat[place[v]]
                    for v, a in zip(row, group.coefficients, strict=True)
                    if v in place and a
                ]
                if terms and owner[row[0]] in counts:
                    left, bound = sum(terms), _decimal_above(group.bound)
                    found.append(left == bound if group.equality else left >= bound)
        return found

    def near(flat: Any) -> list[Any]:
        found, ratio = [], -_decimal_above(-rules.ratio)
        assert rules.delta is not None
        for one, other in _directions(rules):
            slacks = []
            for v in rules.noises(one):
                p, q = _variable(rules, one, one + v), _variable(rules, other, one + v)
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


# ------------------------------------------------------------------------------------------------
# Rounding to keys: an integer program in floats, whose solution is checked exactly.


def rounded_to_keys(
    found: PerturbationDesign | PerturbationTable, keys: int = 256
) -> RoundedDesign:
    """Return the best table with a given number of keys.

    Parameters
    ----------
    found : PerturbationDesign or PerturbationTable
        Of a design all rules are kept exactly, and its objective is the least that is found; of the
        greatest entropy, the sum of distances of probabilities is. Of a table the outputs and the
        bias are kept, the latter to the nearest multiple of 1 / keys, and that sum is least;
        ``value`` and ``lost`` are then the mean of it over the counts.
    keys : int, default 256
        2 to 65,536.

    Returns
    -------
    RoundedDesign

    Raises
    ------
    SolverFailure
        No such table was found.
    """
    keys = whole(keys, "the number of keys", 2, MOST_KEYS)
    if isinstance(found, PerturbationTable):
        return _rounded_table(found, keys)
    rules, objective = found.certificate.rules, found.certificate.objective
    cells, exact_table = rules.cells, found.table
    near = None
    if objective == "entropy":
        near = [Fraction(exact_table.law(c).get(v, 0), exact_table.keys) for c, v in cells]
        program = program_of(rules, "L0")
    else:
        program = program_of(rules, objective)
    for margin in (0.0, _MARGIN):
        numbers = _integers(program, len(cells), keys, near, margin)
        laws: list[dict[int, int]] = [{} for _ in range(rules.largest + 1)]
        for (c, v), number in zip(cells, numbers, strict=True):
            if number:
                laws[c][v] = number
        table = PerturbationTable.of_laws(keys, laws)
        # Floats decide nothing: the integers keep the rules, or another try is made.
        if not broken_rules(rules, table):
            value = objective_of(rules, objective, table)
            return RoundedDesign(table, value, value - found.certificate.bound)
    raise SolverFailure(f"no table of {keys} keys that keeps the rules exactly was found")


def _rounded_table(table: PerturbationTable, keys: int) -> RoundedDesign:
    """Return the table nearest to another one, count by count."""
    known: dict[tuple[tuple[int, int], ...], tuple[dict[int, int], Fraction]] = {}
    laws, apart = [], Fraction(0)
    for count in range(table.largest + 1):
        law = tuple(table.law(count).items())
        if law not in known:
            known[law] = _rounded_law(law, table.keys, keys)
        laws.append(known[law][0])
        apart += known[law][1] / (table.largest + 1)
    return RoundedDesign(PerturbationTable.of_laws(keys, laws, table.period), apart, apart)


def _rounded_law(
    law: Sequence[tuple[int, int]], total: int, keys: int
) -> tuple[dict[int, int], Fraction]:
    size = len(law)
    bias = round(Fraction(sum(v * number for v, number in law), total) * keys)
    row = tuple(range(size))
    groups = (
        _linear(row, (Fraction(1),) * size, Fraction(1), True),
        _linear(row, tuple(Fraction(v) for v, _ in law), Fraction(bias, keys), True),
    )
    near = [Fraction(number, total) for _, number in law]
    numbers = _integers(Program((Fraction(0),) * size, groups), size, keys, near, 0.0)
    moments = sum(v * number for (v, _), number in zip(law, numbers, strict=True))
    if sum(numbers) != keys or moments != bias:
        raise SolverFailure(f"no noise of {keys} keys that keeps the bias was found")
    apart = sum((abs(n - p * keys) for n, p in zip(numbers, near, strict=True)), Fraction(0))
    return {v: n for (v, _), n in zip(law, numbers, strict=True) if n}, apart / keys


def _integers(
    program: Program,
    integers: int,
    keys: int,
    near: Sequence[Fraction] | None,
    margin: float,
) -> list[int]:
    """Return the numbers of keys for the first variables of a program, by an integer program.

    They are the nearest ones to the probabilities ``near`` where these are given. Inequalities are
    kept with a margin, in keys.
    """
    from scipy import sparse
    from scipy.optimize import Bounds, LinearConstraint, milp

    size = program.variables
    columns, values, rows = list[int](), list[float](), list[int]()
    low, high = list[float](), list[float]()

    def add(cells: Sequence[int], numbers: Sequence[float], bound: float, equality: bool) -> None:
        rows.extend([len(low)] * len(cells))
        columns.extend(cells)
        values.extend(numbers)
        low.append(bound)
        high.append(bound if equality else np.inf)

    for group in program.constraints:
        coefficients = [float(a) for a in group.coefficients]
        # Whole numbers need no margin
        whole_numbers = all(a.denominator == 1 for a in (*group.coefficients, group.bound))
        slack = 0.0 if group.equality or whole_numbers else margin
        for row in group.cells.tolist():
            add(row, coefficients, float(group.bound * keys) + slack, group.equality)
    cost = [float(price) for price in program.cost]
    if near is not None:
        cost = [0.0] * size + [1.0] * integers
        for k, p in enumerate(near):
            add([size + k, k], [1.0, -1.0], -float(p * keys), False)
            add([size + k, k], [1.0, 1.0], float(p * keys), False)
    shape = (len(low), len(cost))
    matrix = sparse.csr_array((values, (rows, columns)), shape=shape)
    result = milp(
        cost,
        constraints=LinearConstraint(matrix, low, high),
        integrality=(np.arange(len(cost)) < integers).astype(np.int64),
        bounds=Bounds(0, np.inf),
        options={"time_limit": _SECONDS, "mip_rel_gap": 1e-4},
    )
    if result.x is None:
        why = "there is none, by floats" if result.status == 2 else result.message
        raise SolverFailure(
            f"no table of {keys} keys that keeps the rules exactly was found ({why}): rules that"
            " leave no room, such as a variance, must be eased a little, or there must be other"
            " keys"
        )
    return [round(x) for x in result.x[:integers].tolist()]

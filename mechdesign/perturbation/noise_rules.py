"""The rules of a noise as exact linear constraints, and the programs that they make.

The variables are Pr[noise | count]. Privacy of neighbouring counts c and c + 1 with (epsilon,
delta) is linear with a slack for each output: ``s >= P - x Q`` and ``s >= 0``, x = e^epsilon, and
the slacks of a pair add up to delta at most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from mechdesign.approximate_privacy import Promise
from mechdesign.base import brief, exact, set_fields, shown, whole
from mechdesign.lp.basis import Program
from mechdesign.lp.constraints import Constraints
from mechdesign.mechanism.table import IndexTable
from mechdesign.mechanism.values import Counts
from mechdesign.optimisation.infeasibility import Request, incompatible, together
from mechdesign.perturbation.disclosure import Disclosure, EmptyKey, require_empty_key
from mechdesign.perturbation.table import PerturbationTable
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

LINEAR = (*_POWERS, "delta")  #: The objectives of linear programs.

_LARGEST_COUNT, _LARGEST_NOISE = 1000, 100  # of a design


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
    empty_key : str, default "zero"
        The key of a cell of nobody, as of `Disclosure`: "zero", so that count 0 stays 0 whatever
        the row says; or "drawn", by a table builder that can change zeros.
    exact_variance : bool, default False
        Whether the expected square of the noise is exactly ``variance``, at each count but a 0 that
        stays 0.
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
    empty_key: EmptyKey = "zero"
    exact_variance: bool = False

    def __post_init__(self) -> None:
        largest = whole(self.largest, "the largest count", 0, _LARGEST_COUNT)
        set_fields(
            self,
            largest=largest,
            noise=whole(self.noise, "the largest noise", 1, _LARGEST_NOISE),
            blocked=whole(self.blocked, "the number of blocked outputs"),
            protected=whole(self.protected, "the least protected count", 0, largest),
            stay=exact(self.stay, "the least probability of no noise"),
        )
        require_empty_key(self.empty_key)
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
        if self.exact_variance and self.variance is None:
            raise ValueError("an exact variance needs a variance")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("a delta needs an epsilon")

    @property
    def zeros_stay(self) -> bool:
        """Whether count 0 stays 0, by a rule or since a cell of nobody has key 0."""
        return self.keep_zeros or self.empty_key == "zero"

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
        fixed = one_side or (self.zeros_stay and count == 0)
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

    def refusal(self, possible: Promise | None, impossible: Promise | None) -> str:
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
    wanted = list(rules_of_noise(rules))
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


def rules_of_noise(rules: NoiseRules) -> Iterator[NoiseRule]:
    """Yield the rules about single counts."""
    cells, counts = rules.cells, range(rules.largest + 1)

    def moments(power: int, count: int) -> tuple[list[int], tuple[Fraction, ...]]:
        noises = rules.noises(count)
        return [cells[count, v] for v in noises], tuple(Fraction(v**power) for v in noises)

    if rules.unbiased != "nowhere":
        least = rules.noise if rules.unbiased == "interior" else 0
        groups = [linear(*moments(1, c), Fraction(0), True) for c in counts if c >= least]
        yield _rule(f"unbiased {rules.unbiased}", groups)
    if rules.variance is not None:
        groups = []
        for count in counts:
            variables, squares = moments(2, count)
            if not rules.exact_variance:
                minus = tuple(-square for square in squares)
                groups.append(linear(variables, minus, -rules.variance, False))
            elif count or not (rules.zeros_stay or rules.unbiased == "everywhere"):
                groups.append(linear(variables, squares, rules.variance, True))
        text = "exactly" if rules.exact_variance else "at most"
        yield _rule(f"variance {text} {brief(rules.variance)}", groups)
    if rules.blocked:
        never = [number for (c, v), number in cells.items() if not rules.shows(c + v)]
        yield _rule(f"no outputs 1 to {rules.blocked}", [Constraints.at_most_value(never, 0)])
    if rules.keep_zeros or (rules.zeros_stay and rules.unbiased != "everywhere"):
        text = "zeros kept" if rules.keep_zeros else "key 0 for a cell of nobody, which stays 0"
        yield _rule(text, [Constraints.at_least_value([cells[0, 0]], 1)])
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


def linear(
    variables: Sequence[int], coefficients: tuple[Fraction, ...], bound: Fraction, equality: bool
) -> Constraints:
    """Return one constraint: a weighted sum of variables equals a bound, or is at least it."""
    return Constraints(np.array([variables], dtype=np.int64), coefficients, bound, equality)


def _privacy(rules: NoiseRules, least_delta: bool) -> tuple[list[Constraints], int]:
    """Return the constraints of privacy, and the number of variables with their slacks."""
    ratio, size = rules.ratio, len(rules.cells)
    slack = least_delta or bool(rules.delta)
    beside, alone = list[list[int]](), list[list[int]]()  # where the other count has the output
    sums = list[list[int]]()
    for one, other in directions(rules):
        mine = list[int]()
        for v in rules.noises(one):
            output = one + v
            p, q = variable_of(rules, one, output), variable_of(rules, other, output)
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


def variable_of(rules: NoiseRules, count: int, output: int) -> int | None:
    """Return the variable of an output of a count, also above the largest; None: impossible."""
    return rules.cells.get((min(count, rules.largest), output - count))


def directions(rules: NoiseRules) -> Iterator[tuple[int, int]]:
    """Yield neighbouring counts, both ways; those above the largest are all alike."""
    for count in range(rules.protected, rules.largest + 1):
        yield count, count + 1
        yield count + 1, count


def refuse_conflict(rules: NoiseRules, least_delta: bool = False) -> None:
    """Raise Incompatible with the smallest conflict, if rules have one."""
    refused = incompatible(request_of(rules, least_delta))
    if refused is not None:
        raise refused


# ------------------------------------------------------------------------------------------------
# Programs, and what a table is worth by the rules.


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
        found = Disclosure(table, empty_key=rules.empty_key)
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
    for rule in rules_of_noise(rules):
        if any(any(True for _ in g.violations(entries, table.keys)) for g in rule.groups):
            broken.append(rule.text)
    if rules.delta is not None and objective_of(rules, "delta", table) > rules.delta:
        broken.append("privacy")
    return broken


def table_of(laws: Sequence[Mapping[int, Fraction]]) -> PerturbationTable:
    """Return the table of probabilities of noise for each count, with as many keys as they need."""
    keys = math.lcm(*(p.denominator for law in laws for p in law.values()))
    return PerturbationTable.of_laws(
        keys, [{v: int(p * keys) for v, p in law.items() if p} for law in laws]
    )

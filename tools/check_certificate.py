"""Check the file of a mechanism, or of a release of counts, with the standard library alone.

It shares no code with the library that wrote the file. All that the file claims is worked out again
in exact arithmetic, from docs/mechanism-file.md: that the table is one of probabilities, that it is
private, that it has the properties and the loss, and that no other such table has a smaller loss;
of a release that this holds for the mechanism of each size of a group, that the released counts are
outputs of theirs, and what all of it together tells about one person. Exit codes: 0, all that the
file claims is true; 1, something is false; 2, it is no such file, a damaged or a malformed one; 3,
table and privacy are as claimed, but the certificate names a property that is not known here, so
that the optimality was not checked.
"""

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from math import lcm, prod
from pathlib import Path
from typing import Any, TypeAlias

VALUES = ({"counts": [int]}, {"bands": [[int]]}, {"pairs": [int]})
WEIGHED = {"prior": (None, [str]), "worst_case": bool}
LOSS = ({"power": str, "d": int, **WEIGHED}, {"costs": [[str]], **WEIGHED})
PROOF = {"loss": LOSS, "properties": [str], "objective": str, "bound": str}
PROOF |= {"multipliers": {str: {str: str}}}
FILE = {"format": "mechdesign.mechanism", "version": 1, "digest": str, "alpha": str}
FILE |= {"neighbours": ("adjacent", "all", int, [[int]], {"distances": [[(int, None)]]})}
FILE |= {"denominator": str, "weights": [[str]], "certificate": (None, PROOF)}
LAWS = "geometric", "explicit fair", "uniform"
LAW = {key: form for key, form in FILE.items() if key not in ("denominator", "weights")}
LAW |= {"version": 3, "law": LAWS, "n": str, "law_alpha": str, "margin": (None, str)}
VALUED = FILE | {"version": 2, "inputs": VALUES, "outputs": VALUES}
PACKED = {key: form for key, form in VALUED.items() if key != "weights"}
PACKED |= {"version": 4, "rows": [str], "numbers": [str]}
APPROXIMATE = VALUED | {"version": 5, "delta": str}
FORMS = FILE, VALUED, LAW, PACKED, APPROXIMATE
"""The forms of a file: lists of such entries, objects of these keys, tuples of alternatives."""

TABLE = {"mechanisms": [dict], "sizes": [int], "released": [int], "names": (None, [str])}
TABLE |= {"overlap": int, "reproducible": bool}
WRITTEN = {"version": 1, "digest": str}
RELEASES: dict[str, dict[str, Any]] = {
    "mechdesign.table": TABLE,
    "mechdesign.contingency": {
        "axes": [[(str, [str])]],
        "within": (None, [str]),
        "cells": TABLE,
        "margins": [[(str, [str], list)]],
    },
    "mechdesign.regions": {
        "regions": [[str]],
        "leaves": TABLE,
        "levels": [(None, str)],
        "noisy": [int],
    },
}
"""Those of a release, by its format."""

Constraint: TypeAlias = tuple[list[tuple[int, Fraction]], Fraction, bool]
"""Variables and coefficients: their sum is at least a bound or, if True, equal to it."""


class Refused(Exception):
    """A reason, and the exit code."""


def require(fine: object, reason: str, code: int = 2) -> None:
    """Raise Refused unless ``fine``."""
    if not fine:
        raise Refused(reason, code)


LISTED = 200
"""Closed forms of larger n are checked without a table, and their certificates are not."""


class LawFile:
    """A closed form, as a file states it: of m outputs, infinitely many if m is 0, and n inputs."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.name, self.largest = content["law"], integer(content["n"])
        self.margin = None if content["margin"] is None else integer(content["margin"])
        self.alpha, self.ratio = fraction(content["alpha"]), fraction(content["law_alpha"])
        self.claim, outside = content["certificate"], self.margin or 0
        fine = 0 <= self.largest <= 1 << 62 and 0 <= outside <= (1 << 62) - self.largest
        require(fine and 0 < self.alpha <= 1, "n, the margin or alpha is out of range")
        self.n = self.largest + 1
        self.m = 0 if self.margin is None else self.n + 2 * outside
        fine = 0 < self.ratio < 1 and not self.largest == self.margin == 0
        if self.name != "geometric":
            fine = self.margin == 0 and (
                self.ratio == 1 if self.name == "uniform" else self.ratio > 0
            )
        require(
            fine and self.ratio <= 1, "the closed form has not such an alpha, or not such a margin"
        )
        self.neighbours = content["neighbours"]

    @property
    def counts(self) -> bool:
        return self.margin == 0

    def gives(self, output: int) -> bool:
        return True

    def claims(self) -> Iterator[str]:
        """Each claim in turn, as of `MechanismFile`."""
        yield f"counts 0 .. {self.largest}: {self.name}, with {self.ratio!s:.60}"
        near = self.neighbours == "adjacent" and self.ratio >= self.alpha
        require(near or self.name == "uniform", "not private", 1)
        yield "private"
        require(self.claim is None, "the optimality was not checked", 3)

    def table(self) -> tuple[list[list[int]], int]:
        """The integer weights, and what each column of them sums to."""
        a, n, margin = self.ratio, self.largest, self.margin or 0
        entries = []
        for i in range(-margin, n + margin + 1):
            if self.name == "uniform":
                entries.append([Fraction(1, n + 1)] * (n + 1))
            elif self.name == "geometric":
                inside = 1 if i in (-margin, n + margin) else 1 - a
                entries.append([inside * a ** abs(i - j) / (1 + a) for j in range(n + 1)])
            else:
                away = [(abs(i - j), min(j, n - j)) for j in range(n + 1)]
                entries.append([a ** (d if d < m else -(-(d + m) // 2)) for d, m in away])
        total = sum(row[0] for row in entries)
        common = lcm(*((entry / total).denominator for row in entries for entry in row))
        return [[int(entry / total * common) for entry in row] for row in entries], common


class MechanismFile:
    """What a file says; Refused or ValueError if it is no mechanism file.

    Entry (i, j) of the table, for output i and input j, is variable i * inputs + j.
    """

    def __init__(self, data: bytes) -> None:
        content = read(data)
        if "law" in content:
            law = LawFile(content)
            self.weights, self.denominator = law.table()
            low = -(law.margin or 0)
            content["outputs"] = {"counts": [low, low + law.m - 1]}
        else:
            if "rows" in content:
                self.weights = unpacked(
                    **{key: content[key] for key in ("rows", "numbers", "alpha")}
                )
            else:
                self.weights = [[integer(entry) for entry in row] for row in content["weights"]]
            self.denominator = integer(content["denominator"])
        self.m, self.n = m, n = len(self.weights), len([*self.weights, []][0])
        require(n > 0 and {len(row) for row in self.weights} == {n}, "the weights are no table")
        self.alpha = fraction(content["alpha"])
        require(0 < self.alpha <= 1 <= self.denominator, "alpha or the denominator is out of range")
        self.delta = fraction(content["delta"]) if "delta" in content else None
        fine = self.delta is None or 0 < self.delta <= 1
        require(fine, "delta is out of range")
        self.kind, self.rows = values(content.get("outputs", {"counts": [0, m - 1]}), m)
        kind, self.columns = values(content.get("inputs", {"counts": [0, n - 1]}), n)
        fine = (self.kind, kind) in (("counts", "counts"), ("bands", "counts"), ("pairs", "pairs"))
        require(fine and self.columns[0][0] == [0, 0], "outputs and inputs do not fit")
        self.apart = [
            [
                sum(max(a - x, x - b, 0) for (a, b), (x, _) in zip(i, j, strict=True))
                for j in self.columns
            ]
            for i in self.rows
        ]
        self.pairs, self.claim = pairs(content["neighbours"], n, kind), content["certificate"]
        if self.claim is not None:
            self.costs, self.worst_case = self.priced(**self.claim["loss"])
            self.properties = {text: self.stated(text) for text in self.claim["properties"]}
            self.objective = fraction(self.claim["objective"])
            self.bound = fraction(self.claim["bound"])
            groups = self.claim["multipliers"].items()
            terms = [(name, *each) for name, ys in groups for each in (ys or {"0": "0"}).items()]
            self.proof = [(f"{name} / {r}", fraction(y)) for name, r, y in terms]

    @property
    def counts(self) -> bool:
        """Whether the outputs are the counts from 0."""
        return self.kind == "counts" and self.rows[0][0] == [0, 0]

    def gives(self, output: int) -> bool:
        """Whether an output is ever given."""
        return any(self.weights[output])

    def claims(self) -> Iterator[str]:
        """Each claim in turn, in words, after it was found to be true; Refused if it is not."""
        for j, column in enumerate(zip(*self.weights, strict=True)):
            fine = min(column) >= 0 and sum(column) == self.denominator
            require(fine, f"the probabilities for input {j} are none", 1)
        yield f"{self.m} outputs x {self.n} inputs: every column is a distribution"
        if self.delta is not None:
            for j, k in self.ways():
                both = [(row[j], row[k]) for row in self.weights]
                beyond = sum(max(p * self.alpha - q, Fraction(0)) for p, q in both)
                fine = beyond <= self.delta * self.alpha * self.denominator
                require(fine, f"not private: delta is more between inputs {j} and {k}", 1)
        for distance, pairs in self.pairs.items() if self.delta is None else ():
            low, high = (self.alpha**distance).as_integer_ratio()
            for i, j, k in ((i, j, k) for i in range(self.m) for j, k in pairs):
                p, q = self.weights[i][j], self.weights[i][k]
                fine = high * p >= low * q and high * q >= low * p
                require(fine, f"not private: output {i} tells inputs {j} and {k} apart", 1)
        yield "private"
        if self.claim is None:
            return
        for text, groups in self.properties.items():
            fine = all(self.holds(*each) for group in groups or () for each in group)
            require(fine, f"the table has not the property {text!a:.60}", 1)
            yield f"property {text!a:.60}" + " IS NOT KNOWN HERE" * (groups is None)
        columns = [Fraction(0)] * self.n
        for row, costs in zip(self.weights, self.costs, strict=True):
            columns = [x + w * c for x, w, c in zip(columns, row, costs, strict=True)]
        loss = max(columns) if self.worst_case else sum(columns)
        require(self.objective * self.denominator == loss, "the loss is not the objective", 1)
        yield f"loss {self.claim['objective']:.60}"
        require(None not in self.properties.values(), "the optimality was not checked", 3)
        fine = self.proved() == self.bound <= self.objective
        require(fine, "the multipliers prove another bound, or it exceeds the objective", 1)
        optimal = "optimal: " if self.bound == self.objective else ""
        yield f"{optimal}no other has a loss below {self.claim['bound']:.60}"

    def ways(self) -> list[tuple[int, int]]:
        """The pairs of neighbours, each in both orders, for privacy with a delta."""
        require([*self.pairs] in ([], [1]), "a delta is between neighbours at distance 1")
        return [way for j, k in self.pairs.get(1, []) for way in ((j, k), (k, j))]

    def priced(
        self, prior: Any, worst_case: bool, costs: Any = None, power: str = "0", d: int = 0
    ) -> tuple[list[list[Fraction]], bool]:
        """The cost of each entry times the weight of its input, 1 in a worst case without prior."""
        weights = [Fraction(1, 1 if worst_case else self.n)] * self.n
        if prior is not None:
            weights = [fraction(weight) for weight in prior]
            fine = len(weights) == self.n and min(weights) >= 0 and sum(weights) == 1
            require(fine, "the prior is no distribution over the inputs")
        p = fraction(power)
        require(0 <= p <= 100 >= p.denominator and d >= 0, "the power is out of range")
        prices = {x: powered(x, p) if x > d else p * 0 for row in self.apart for x in row}
        table = [[prices[x] for x in row] for row in self.apart]
        if costs is not None:
            table = [[fraction(cost) for cost in row] for row in costs]
            fine = [len(row) for row in table] == [self.n] * self.m and min(map(min, table)) >= 0
            require(fine, "the costs do not fit the table, or are negative")
        return [[c * w for c, w in zip(row, weights, strict=True)] for row in table], worst_case

    def stated(self, text: str) -> list[list[Constraint]] | None:
        """The groups of constraints of a property; None if it is not known."""
        m, n, apart, (short, _, given) = self.m, self.n, self.apart, text.partition(":")
        cells = [(i, j) for i in range(m) for j in range(n)]
        if text in ("CH", "F", "WH"):
            true = [(i, j) for j in range(n) for i in range(m) if apart[i][j] == 0]
            require([j for _, j in true] == [*range(n)], f"not every input has an output: {text}")
            truth = [i * n + j for i, j in true]
            if text == "WH":
                return [[([(v, Fraction(1))], Fraction(1, m), False) for v in truth]]
            if text == "F":
                return [[pair(v, w, 1, True) for v, w in pairwise(truth)]]
            return [[pair(truth[j], i * n + j) for i, j in cells]]
        if text in ("RH", "RM", "CM"):
            near = [(i, j, k) for i, j in cells if not apart[i][j] for k in range(n)]
            honest = [pair(i * n + j, i * n + k) for i, j, k in near if j == k or apart[i][k]]
            if text == "RH":
                return [honest]
            require(self.kind != "pairs", "pairs of counts have no order")
            lines = [[(apart[i][j], i * n + j) for j in range(n)] for i in range(m)]
            lines = lines if text == "RM" else [list(line) for line in zip(*lines, strict=True)]
            steps = [sorted(two) for line in lines for two in pairwise(line)]
            monotone = [pair(v, w) for (a, v), (b, w) in steps if a < b]
            return [monotone, honest] if text == "RM" and self.kind == "bands" else [monotone]
        if text == "S":
            return [[pair(v, m * n - 1 - v, 1, True) for v in range((m * n + 1) // 2)]]
        if short == "OR":
            beta = self.alpha if text == "OR" else fraction(given)
            require(0 < beta <= 1, "OR takes a number in (0, 1]")
            return [[pair(v + s, v + n - s, beta) for v in range(m * n - n)] for s in (0, n)]
        if short in ("at-least", "at-most"):
            ((i, j, p),) = re.findall(r"^(-?[0-9]+),([0-9]+)=(\S+)$", given)
            sign = 1 if short == "at-least" else -1
            held = [sign * (row[0][0] <= int(i) <= row[0][1]) for row in self.rows]
            require(self.kind != "pairs" and any(held) and int(j) < n, f"no entry: {text!a:.60}")
            return [[self.column(int(j), held, sign * fraction(p))]]
        if short == "within":
            ((d, p),) = re.findall(r"^([0-9]+)=(\S+)$", given)
            within = [[row[j] <= int(d) for row in apart] for j in range(n)]
            return [[self.column(j, held, fraction(p))] for j, held in enumerate(within)]
        if short == "unbiased":
            sides: Iterable[Any] = ([each[k][0] for each in self.rows] for k in (0, -1))
            if text != short:
                sides = [[fraction(value) for value in given.split(",")]]
            require(text != short or self.kind != "bands", "bands have no mean")
            means = list(zip(zip(*self.columns, strict=True), sides, strict=False))
            fine = len(means[-1][1]) == m and (text == short or self.kind != "pairs")
            require(fine, "the values do not fit the outputs")
            return [
                [self.column(j, side, x, True)]
                for each, side in means
                for j, (x, _) in enumerate(each)
            ]
        return [[self.linear(each)] for each in given.split(";")] if short == "linear" else None

    def linear(self, text: str) -> Constraint:
        """Such as 1*P[0,0] -1/3*P[2,2] >= 1/2."""
        ((left, relation, bound),) = re.findall(r"^ ?(\S.*) (>=|<=|==) (\S+)$", text)
        sign, terms = -1 if relation == "<=" else 1, []
        for term in left.split(" "):
            ((c, i, j),) = re.findall(r"^\+?(\S+)\*P\[([0-9]+),([0-9]+)\]$", term)
            require(int(i) < self.m and int(j) < self.n, "the table has no such entry")
            terms.append((int(i) * self.n + int(j), sign * fraction(c)))
        return terms, sign * fraction(bound), relation == "=="

    def column(self, j: int, factors: Iterable[Any], bound: Any, equal: bool = False) -> Constraint:
        """A bound on a sum over the outputs of one input."""
        terms = [(i * self.n + j, Fraction(c)) for i, c in enumerate(factors)]
        return terms, Fraction(bound), equal

    def holds(self, terms: list[tuple[int, Fraction]], bound: Fraction, equality: bool) -> bool:
        """Whether the table obeys a constraint."""
        found = sum(c * self.weights[v // self.n][v % self.n] for v, c in terms)
        over = found - bound * self.denominator
        return over == 0 if equality else over >= 0

    def program(self) -> dict[str, Constraint]:
        """The constraints of the statement, by name of group and number."""
        m, n, names = self.m, self.n, [text.partition(":")[0] for text in self.properties]
        half = "RM" in names and self.kind == "counts" and self.rows == self.columns
        sums = [self.column(j, [1] * m, 1, True) for j in range(n)]
        stated: dict[str, list[list[Constraint]]] = {"column sums": [sums], "privacy": []}
        for r, (j, k) in enumerate(self.ways() if self.delta is not None else ()):
            stated["privacy"] = stated["privacy"] or [[], []]
            slacks = [m * n + r * m + i for i in range(m)]
            for i, slack in enumerate(slacks):
                terms = [(i * n + k, Fraction(1)), (i * n + j, -self.alpha), (slack, self.alpha)]
                stated["privacy"][0].append((terms, Fraction(0), False))
            minus = [(slack, Fraction(-1)) for slack in slacks]
            stated["privacy"][1].append((minus, -(self.delta or Fraction(0)), False))
        for distance, pairs in self.pairs.items() if self.delta is None else ():
            a, ends = self.alpha**distance, [(i, j, k) for i in range(m) for j, k in pairs]
            low = [(i, j, k) for i, j, k in ends if a == 1 or not half or i > j]
            high = [(i, k, j) for i, j, k in ends if a < 1 and (not half or i < k)]
            group = [pair(i * n + j, i * n + k, a, a == 1) for i, j, k in low + high]
            stated["privacy"].append(group)
        for (text, groups), name in zip(self.properties.items(), names, strict=True):
            stated[name if names.count(name) == 1 else text] = groups or []
        for j in range(n if self.worst_case else 0):  # the last variable is the largest cost
            terms = self.column(j, [-row[j] for row in self.costs], 0)[0]
            stated[f"worst case {j}"] = [
                [([*terms, (m * n + self.slacks, Fraction(1))], Fraction(0), False)]
            ]
        found: dict[str, Constraint] = {}
        for name, groups in stated.items():
            full = [group for group in groups if group]
            for k, group in enumerate(full):
                title = name if len(full) == 1 else f"{name} {k}"
                found |= {f"{title} / {r}": constraint for r, constraint in enumerate(group)}
        return found

    @property
    def slacks(self) -> int:
        """The number of slacks of privacy with a delta."""
        return 0 if self.delta is None else len(self.ways()) * self.m

    def proved(self) -> Fraction:
        """The lower bound on the loss of every such table that the multipliers prove."""
        prices = [cost for row in self.costs for cost in row] + [Fraction(0)] * self.slacks
        if self.worst_case:
            prices = [Fraction(0)] * len(prices) + [Fraction(1)]
        scale, program = lcm(*(y.denominator for _, y in self.proof)), self.program()
        used, bound = [Fraction(0)] * len(prices), Fraction(0)
        for name, y in self.proof:
            require(name in program, f"there is no constraint {name!a:.60}", 1)
            terms, least, equality = program[name]
            require(equality or y >= 0, f"the multiplier of {name!a:.60} is negative", 1)
            bound += y * least
            for v, c in terms:
                used[v] += c * int(y * scale)
        fine = all(u <= price * scale for u, price in zip(used, prices, strict=True))
        require(fine, "the multipliers prove nothing: they exceed a cost", 1)
        return bound


def mechanism_file(data: bytes) -> MechanismFile | LawFile:
    """What the file of a mechanism says, with its table if that is not large."""
    content = read(data)
    law = LawFile(content) if "law" in content else None
    return MechanismFile(data) if law is None or 0 < law.m <= LISTED else law


def claims(data: bytes) -> Iterator[str]:
    """Each claim of a file in turn, after it was found to be true; Refused if it is not."""
    content = parsed(data)
    kind = content.get("format") if isinstance(content, dict) else None
    if not isinstance(kind, str) or kind not in RELEASES:
        yield from mechanism_file(data).claims()
        return
    form = {"format": kind, **WRITTEN, **RELEASES[kind]}
    require(fits(content, form), f"it has not the form of a {kind} file of version 1")
    require(content["digest"] == digest(content), "the digest does not match: the file was changed")
    table = content.get("cells") or content.get("leaves") or content
    files: dict[int, MechanismFile | LawFile] = {}
    for given in table["mechanisms"]:
        version = 3 if "law" in given else 4 if "rows" in given else 1 + ("inputs" in given)
        described = {"format": FILE["format"], "version": version, **given}
        file = mechanism_file(json.dumps({**described, "digest": digest(described)}).encode())
        fine = file.claim is None and file.counts
        require(fine and file.n - 1 not in files, "it is not one mechanism of counts for each size")
        files[file.n - 1] = file
        for claim in file.claims():
            yield f"groups of {file.n - 1}: {claim}"
    alphas = {file.alpha for file in files.values()}
    neighbours = [given["neighbours"] for given in table["mechanisms"]]
    fine = len(alphas) == 1 and neighbours == neighbours[:1] * len(files)
    require(fine and files.keys() == {*table["sizes"]}, "the mechanisms do not fit the table")
    cells = list(zip(table["sizes"], table["released"], strict=True))
    fine = all(0 <= k < files[size].m and files[size].gives(k) for size, k in cells)
    require(fine, "a released count is never given by its mechanism")
    yield f"{len(cells)} released counts are outputs of these mechanisms"
    noise = [fraction(each[1]) for each in content.get("margins", [])]
    noise += [fraction(each) for each in content.get("levels", []) if each is not None]
    require(table["overlap"] > 0 and all(0 < each < 1 for each in noise), "a number out of range")
    changed = 2 if content.get("within") is not None else table["overlap"]
    total, by_one = prod([*alphas, *noise]) ** changed, neighbours[0] == "adjacent"
    person = "who changes each of their counts by one" if by_one else "between neighbouring counts"
    yield f"together alpha = {total} for a person {person}"
    if table["reproducible"]:
        yield "BUT THE DRAWS WERE SEEDED: nobody is protected from those who know the seed"


def parsed(data: bytes) -> Any:
    """What a JSON text says, if it can be read in one way only."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(pairs)) == len(pairs), "an object has a key twice")
        return dict(pairs)

    return json.loads(data.decode(), object_pairs_hook=once)


def digest(content: dict[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def read(data: bytes) -> Any:
    """What a mechanism file says, if it has the right form and digest."""
    content = parsed(data)
    require(fits(content, FORMS), "it has not the form of a mechanism file of version 1 to 5")
    require(content["digest"] == digest(content), "the digest does not match: the file was changed")
    return content


def unpacked(rows: list[str], numbers: list[str], alpha: str) -> list[list[int]]:
    """The weights of a packed table."""
    ratio, left, weights = fraction(alpha), iter(numbers), list[list[int]]()
    for i, row in enumerate(rows):
        weights.append([])
        for j, mark in enumerate(row):
            opposite = len(rows) - 1 - i, len(row) - 1 - j
            fine = {"#": True, "^": i > 0, "o": opposite < (i, j)}.get(
                mark, j > 0 and mark in "=<>"
            )
            require(fine, f"{mark!a} refers to no entry")
            if mark == "#":
                weights[i].append(integer(next(left, "-1")))
            elif mark in "^o":
                k, m = (i - 1, j) if mark == "^" else opposite
                require(m < len(weights[k]), "the rows are of several lengths")
                weights[i].append(weights[k][m])
            else:
                entry = weights[i][-1] * {"=": Fraction(1), "<": ratio, ">": 1 / ratio}[mark]
                require(entry.denominator == 1, "an entry is no integer")
                weights[i].append(int(entry))
    require(next(left, None) is None, "there are more numbers than entries that need one")
    return weights


def fits(value: Any, form: Any) -> bool:
    """Whether a value has one of `FORMS`."""
    if isinstance(form, tuple):
        return any(fits(value, each) for each in form)
    if isinstance(form, type) or type(value) is not type(form):
        return type(value) is form
    if isinstance(form, list):
        return all(fits(each, form[0]) for each in value)
    if isinstance(form, dict):
        forms = dict.fromkeys(value, form[str]) if str in form else form
        return value.keys() == forms.keys() and all(fits(value[key], forms[key]) for key in forms)
    return bool(value == form)


def values(described: dict[str, list[Any]], size: int) -> tuple[str, list[list[list[int]]]]:
    """The kind of the values, and each as intervals of counts: one, or of pairs two."""
    ((kind, given),) = described.items()
    found = [[band] for band in given]
    if kind != "bands":
        a, b = given
        require((b - a + 1 if kind == "counts" else (a + 1) * (b + 1)) == size, "values do not fit")
        found = [[[x, x]] for x in range(a if kind == "counts" else 0, b + 1)]
        found = [[[x, x], *y] for x in range(a + 1) for y in found] if kind == "pairs" else found
    bands = [(low, high) for value in found for low, high in value] if kind == "bands" else []
    fine = all(low <= high for low, high in bands) and all(
        a[1] + 1 == b[0] for a, b in pairwise(bands)
    )
    require(fine and len(found) == size, "bands overlap or leave a gap, or do not fit the table")
    return kind, found


def pairs(described: Any, n: int, kind: str) -> dict[int, list[tuple[int, int]]]:
    """The pairs of neighbours, the smaller input first, by distance."""
    if isinstance(described, dict):
        table, found = described["distances"], dict[int, list[tuple[int, int]]]()
        require([len(row) for row in table] == [n] * n, "the distances are not a square table")
        for j, k in ((j, k) for j in range(n) for k in range(n)):
            d = table[j][k]
            fine = (d == 0) == (j == k) and d == table[k][j] and 0 <= (d or 0) <= 1024
            require(fine, "a distance is 0, above 1024, or not symmetric")
            if j < k and d is not None:
                found.setdefault(d, []).append((j, k))
        require(found, "no inputs are neighbours")
        return dict(sorted(found.items()))
    if isinstance(described, list):
        listed = sorted({(min(j, k), max(j, k)) for j, k in described})
        fine = listed and all(0 <= j < k < n for j, k in listed)
        require(fine, "neighbours are pairs of different inputs")
        return {1: listed}
    reach = {"adjacent": 1, "all": n}.get(described, described)
    require(reach > 0 and (kind == "counts" or described == "all"), "neighbours must be listed")
    return {1: [(j, j + gap) for gap in range(1, min(reach + 1, n)) for j in range(n - gap)]}


def powered(base: int, power: Fraction) -> Fraction:
    """``base ** power``, rounded down to a multiple of 2^-64 if it is not rational."""
    degree = power.denominator
    value = base**power.numerator << 64 * degree
    root = 1 << -(-value.bit_length() // degree)
    while (better := ((degree - 1) * root + value // root ** (degree - 1)) // degree) < root:
        root = better  # Newton's method, from above
    return Fraction(root, 1 << 64)


def pair(v: int, w: int, factor: Fraction | int = 1, equality: bool = False) -> Constraint:
    """Variable v is at least so many times variable w, or equal."""
    return [(v, Fraction(1)), (w, Fraction(-factor))], Fraction(0), equality


def integer(text: str) -> int:
    require(re.fullmatch("-?([0-9]{1,4300}|0x[0-9a-f]+)", text), f"no integer: {text!a:.60}")
    return int(text, 16 if "x" in text else 10)


def fraction(text: str) -> Fraction:
    numerator, slash, denominator = text.partition("/")
    require(not slash or integer(denominator) > 0, "a denominator is below 1")
    return Fraction(integer(numerator), integer(denominator) if slash else 1)


def main() -> int:
    """Check the file that is named; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    path = parser.parse_args().file
    try:
        for claim in claims(path.read_bytes()):
            print(claim)
    except (Refused, ValueError, RecursionError, OSError) as error:
        reason, code = error.args if isinstance(error, Refused) else (error, 2)
        print(f"{str(path)!a}: {reason}", file=sys.stderr)
        return int(code)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The independent checker accepts what the library writes, and what one of them refuses the other
does, in thousands of files with an error.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign import (
    ApproximateDP,
    ApproximatePrivacy,
    Bands,
    Certificate,
    CountPairs,
    Counts,
    Infeasible,
    Mechanism,
    MechanismError,
    Metric,
    Privacy,
    design,
    named,
    tables,
)
from mechdesign.base.files import digest_of
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.properties import resolve
from rangeq.central import Regions, release_regions
from tests.mechdesign.relations import RELATIONS

pytest.importorskip("tools.check_certificate", reason="the tests may be of an installed package")
from tools import check_certificate
from tools.check_certificate import MechanismFile, Refused

APPROXIMATE = ApproximatePrivacy(alpha="1/2", delta="1/20")

LOSSES = {
    "L0": lambda n: L0(),
    "L1, prior": lambda n: L1(prior=binomial(n, "1/4")),
    "L0.5 beyond 1, worst case": lambda n: Power("1/2", 1, worst_case=True),
    "L2, worst case, prior": lambda n: L2(worst_case=True, prior=binomial(n, "1/3")),
    "L4/3": lambda n: Power("4/3"),
    "costs": lambda n: Costs([[abs(2 * i - j) for j in range(n + 1)] for i in range(n + 1)]),
}
PROPERTIES: list[list[str]] = [
    *([], ["WH"], ["RM"], ["CM"], ["F"], ["S", "RH"], ["F", "RH", "CH"], ["RM", "CM", "S"]),
    *(["OR"], ["CH", "OR:3/4"], ["WH", "CH", "CM"], ["RH", "RM", "F", "WH"]),
]


def verdict(data: bytes) -> tuple[int, list[str]]:
    """The exit code of the checker, and what it found to be true."""
    found = []
    try:
        for claim in check_certificate.claims(data):
            found.append(claim)
    except Refused as error:
        return error.args[1], found
    except (ValueError, RecursionError):
        return 2, found
    return 0, found


def sealed(content: dict[str, Any]) -> bytes:
    return json.dumps({**content, "digest": digest_of(content)}).encode()


def loaded(data: bytes, path: Path) -> Mechanism | None:
    """What the library reads, None if it refuses."""
    path.write_bytes(data)
    try:
        return Mechanism.load(path)
    except MechanismError:
        return None


def designs(step: int) -> Iterator[Mechanism]:
    """One of every so many designs, of every relation, loss and set of properties."""
    cases = [
        (n, alpha, relation, loss, wanted)
        for n in (1, 2, 3)
        for alpha in ("9/10", "1/2", 1)
        for relation in RELATIONS.values()
        for loss in LOSSES.values()
        for wanted in PROPERTIES
    ]
    for n, alpha, relation, loss, wanted in cases[::step]:
        try:
            yield design(n, Privacy(alpha=alpha, neighbours=relation(n)), loss(n), wanted).mechanism
        except Infeasible:  # OR and F, of a table with distances
            continue


WIDE, COARSE, PAIRS = Counts(-2, 5), Bands([(-1, 0), (1, 2), (3, 5)]), CountPairs(1, 2)
STATED: list[tuple[Any, Any, str, list[str]]] = [
    (3, WIDE, "adjacent", ["unbiased", "CH"]),
    (3, WIDE, "all", ["RM", "F", "RH"]),
    (3, WIDE, "capped", ["CM", "OR:1/9"]),
    (3, WIDE, "pairs", ["S", "WH", "RH"]),
    (3, Counts(1, 4), "2", []),
    (3, COARSE, "adjacent", ["RM", "CH", "RH"]),
    (3, COARSE, "all", ["CM", "at-least:-1,0=2/5", "at-most:4,0=1/5"]),
    (3, COARSE, "ring", ["RM", "OR"]),
    (3, None, "adjacent", ["at-least:0,0=3/5", "at-most:3,0=1/10", "at-most:0,3=1/9"]),
    (3, None, "all", ["within:1=3/5", "CH"]),
    (0, None, "adjacent", ["within:0=1", "RM"]),
    (3, None, "adjacent", ["linear:2*P[0,1] -1/3*P[2,2] >= 1/9; P[0,0] == 3/7"]),
    (3, WIDE, "adjacent", ["linear:1*P[7,0] <= 1/99", "within:2=2/3", "unbiased"]),
    (PAIRS, CountPairs(3, 4), "all", ["S"]),
    (3, None, "adjacent", ["unbiased:-5,-1/2,7/2,8", "linear:1*P[0,0] >= 1/9"]),
    (3, COARSE, "adjacent", ["unbiased:-9,1,9"]),
    (PAIRS, None, "adjacent", ["WH", "within:1=3/5"]),
    (PAIRS, CountPairs(2, 3), "all", ["CH", "RH", "F"]),
    (PAIRS, None, "2", ["OR:1/9", "S", "linear:1*P[0,0] -1*P[5,5] == 0"]),
]
"""Inputs, outputs, neighbours and properties that need version 2 of files, or new properties."""


@pytest.mark.parametrize("case", STATED, ids=lambda case: " ".join(case[3]) or "none")
@pytest.mark.parametrize("worst_case", [False, True])
def test_the_checker_knows_all_values_and_requirements(
    case: tuple[Any, Any, str, list[str]], worst_case: bool, tmp_path: Path
) -> None:
    inputs, outputs, relation, wanted = case
    privacy = Privacy(alpha="4/9", neighbours=RELATIONS[relation](3 if inputs else 0))
    loss = Power("3/2", worst_case=worst_case)
    found = design(inputs, privacy, loss, wanted, outputs=outputs)
    found.save(tmp_path / "m.json")
    code, claims = verdict((tmp_path / "m.json").read_bytes())
    assert code == 0, claims
    assert claims[-1].startswith("optimal: ")
    content = json.loads((tmp_path / "m.json").read_text())
    assert content["version"] == 1 + (inputs == PAIRS or outputs is not None)
    for name in {"inputs", "outputs"} & content.keys():
        for other in ({"counts": [0, 3]}, {"counts": [-2, 6]}, {"bands": [[0, 1], [3, 3]]}, {}):
            if other != content[name]:
                data = sealed({**content, name: other})
                assert verdict(data)[0], (name, other)
                assert loaded(data, tmp_path / "m.json") is None


TEXTS = [
    *("RH", "RM", "CH", "CM", "F", "WH", "S", "OR", "OR:2/3", "unbiased", "within:1=1/3"),
    *("at-least:1,0=1/5", "at-most:0,2=1/7", "linear:1*P[1,2] -2/3*P[2,0] <= 1/9; 1*P[0,0] == 1"),
    *("unbiased:1,2,3,4", "linear:1*P[1,1] >= 1/8", "within:0=1/9"),
]


@pytest.mark.parametrize("relation", ["adjacent", "all", "2", "pairs", "ring"])
@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (Counts(0, 3), Counts(0, 3)),
        (Counts(0, 3), WIDE),
        (Counts(0, 3), Bands([(-1, 0), (1, 1), (2, 3), (4, 6)])),
        (CountPairs(1, 1), CountPairs(1, 2)),
        (CountPairs(1, 1), CountPairs(1, 1)),
    ],
)
@pytest.mark.parametrize("with_delta", [False, True])
@pytest.mark.parametrize("alpha", ["1/2", 1])
def test_the_checker_states_the_same_constraints(
    inputs: Any, outputs: Any, relation: str, alpha: Any, with_delta: bool, tmp_path: Path
) -> None:
    """Of each property alone and of all together, by name and number, whether they hold or not."""
    n, neighbours = inputs.size - 1, RELATIONS[relation](inputs.size - 1)
    privacy: Any = Privacy(alpha=alpha, neighbours=neighbours)
    if with_delta:
        if isinstance(privacy.neighbours, Metric):
            pytest.skip("a delta is between neighbours at distance 1")
        privacy = ApproximatePrivacy(alpha=alpha, delta="1/9", neighbours=neighbours)
    if isinstance(inputs, CountPairs) and privacy.neighbours in ("adjacent", 2):
        pytest.skip("neighbours of pairs of counts are listed")
    assert privacy.delta == Fraction(with_delta, 9)
    table = [[Fraction(1, outputs.size)] * (n + 1)] * outputs.size
    mechanism = Mechanism(table, privacy, outputs=outputs, inputs=inputs)
    loss = Power("1/2", prior=binomial(n, "1/3"), worst_case=True)
    fitting: list[str] = []
    for texts in [*([text] for text in TEXTS), fitting]:
        wanted = [resolve(text) for text in texts]
        claim = Certificate(privacy, loss, tuple(wanted), Fraction(1), Fraction(1), {})
        Mechanism.from_parts(mechanism, claim).save(tmp_path / "m.json")
        data = (tmp_path / "m.json").read_bytes()
        try:
            program = mechanism_program(outputs, inputs, privacy, loss, wanted)
        except (MechanismError, ValueError):
            with pytest.raises((Refused, ValueError)):
                MechanismFile(data)
            continue
        if texts is not fitting:
            fitting.extend(texts)
        found = MechanismFile(data).program()
        stated: dict[str, Any] = {}
        for group in program.constraints:
            for r, cells in enumerate(group.cells.tolist()):
                terms = [*zip(cells, group.coefficients, strict=True)]
                stated[f"{group.name} / {r}"] = terms, group.bound, group.equality
        assert found.keys() >= stated.keys()
        for name, (terms, bound, equality) in stated.items():
            assert found[name][1:] == (bound, equality), name
            assert sorted(found[name][0]) == sorted(terms) or {
                v: c for v, c in found[name][0] if c
            } == {v: c for v, c in terms if c}, name
        implied = {name.partition(" ")[0] for name in found.keys() - stated.keys()}
        assert implied <= {"RH", "CH", "WH"}


def agree_on_designs(step: int, path: Path) -> int:
    """How many designs were found optimal by both."""
    path, count = path / "m.json", 0
    for mechanism in designs(step):
        count += 1
        mechanism.save(path)
        code, claims = verdict(path.read_bytes())
        assert code == 0, (path.read_text(), claims)
        assert claims[-1].startswith("optimal: ")
        assert Mechanism.load(path) == mechanism
    return count


@pytest.mark.slow
def test_the_checker_finds_designs_optimal(tmp_path: Path) -> None:
    assert agree_on_designs(401, tmp_path) > 15


@pytest.mark.slow
def test_the_checker_finds_designs_of_every_kind_optimal(tmp_path: Path) -> None:
    assert agree_on_designs(29, tmp_path) > 250


@pytest.mark.parametrize(
    ("mechanism", "last"),
    [
        (named.geometric(3, alpha="1/2"), "private"),
        (named.uniform(0), "private"),
        (
            Mechanism([["1/2", "1/3"], ["1/4", "1/3"], ["1/4", "1/3"]], Privacy(alpha="2/3")),
            "private",
        ),
        (design(0, Privacy(alpha="1/2")).mechanism, "optimal"),
        (design(2, Privacy.from_epsilon(1e-300), L0(), ["WH"]).mechanism, "optimal"),
        (named.geometric(1, alpha=Fraction(10**5000 - 1, 10**5000)), "private"),
        (design(3, APPROXIMATE, L2(), ["RM", "S"]).mechanism, "optimal"),
        (design(3, APPROXIMATE, Power("1/2", worst_case=True)).mechanism, "optimal"),
        (design(PAIRS, ApproximateDP(1, "1/100"), L1(), ["OR"]).mechanism, "optimal"),
    ],
)
def test_the_checker_reads_what_the_library_writes(
    mechanism: Mechanism, last: str, tmp_path: Path
) -> None:
    mechanism.save(tmp_path / "m.json")
    code, claims = verdict((tmp_path / "m.json").read_bytes())
    assert code == 0
    assert claims[-1].startswith(last)


def shifted(text: str, rng: random.Random) -> str:
    """Another number."""
    value = check_certificate.fraction(text)
    step = Fraction(rng.choice([1, -1]), rng.choice([1, 7, 10**30]))
    return str(value + step)


def of_weights(content: dict[str, Any], rng: random.Random) -> None:
    """Move some probability to an output at another distance, so that the loss changes."""
    apart = MechanismFile(sealed(content)).apart
    rows, scale = content["weights"], rng.choice([1, 2, 1000])
    for row in rows:
        row[:] = [str(int(entry) * scale) for entry in row]
    content["denominator"] = str(int(content["denominator"]) * scale)
    j, numbers = rng.randrange(len(rows[0])), range(len(rows))
    (i, k) = rng.choice([(i, k) for i in numbers for k in numbers if apart[i][j] != apart[k][j]])
    rows[i][j], rows[k][j] = str(int(rows[i][j]) + 1), str(int(rows[k][j]) - 1)


def of_sums(content: dict[str, Any], rng: random.Random) -> None:
    row = rng.choice([*content["weights"], None])
    if row is None:
        content["denominator"] = shifted(content["denominator"], rng)
    else:
        j = rng.randrange(len(row))
        row[j] = str(int(row[j]) + rng.choice([-1, 1, 10**9]))


def of_objective(content: dict[str, Any], rng: random.Random) -> None:
    for name in rng.choice([["objective"], ["bound"], ["objective", "bound"]]):
        content["certificate"][name] = shifted(content["certificate"][name], rng)


def of_sign(content: dict[str, Any], rng: random.Random) -> None:
    chosen = rng.choice(
        [
            chosen
            for name, chosen in content["certificate"]["multipliers"].items()
            if name != "column sums" and not name.startswith(("F", "S", "unbiased")) and chosen
        ]
    )
    chosen[rng.choice([*chosen])] = "-1/3"


def of_privacy(content: dict[str, Any], rng: random.Random) -> None:
    """More privacy than the table has: the designs here use all that they are allowed."""
    alpha = check_certificate.fraction(content["alpha"])
    content["alpha"] = str(alpha + (1 - alpha) * Fraction(1, rng.randint(1, 10**6)))


def of_bound(content: dict[str, Any], rng: random.Random) -> None:
    """The multipliers of the sums of columns prove the bound."""
    chosen = content["certificate"]["multipliers"]["column sums"]
    r = rng.choice([*chosen])
    change = rng.choice(["remove", "shift", "rename"])
    value = chosen.pop(r)
    if change == "shift":
        chosen[r] = shifted(value, rng)
    elif change == "rename":
        content["certificate"]["multipliers"]["row sums"] = {r: value}


def of_form(content: dict[str, Any], rng: random.Random) -> None:
    """What stands somewhere is of another type, absent, or written as no number is."""
    spots: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, (dict, list)):
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            spots.extend((value, key) for key in keys)
            for key in keys:
                walk(value[key])

    del content["digest"]  # which is computed again
    walk(content)
    holder, key = rng.choice(spots)
    value = holder[key]
    others: list[Any] = [0.5, float("nan"), True, [["1"]], {"1": "1"}, "", "x", "1/0", "1/-2"]
    if isinstance(value, str):
        others += [f" {value}", f"{value} ", f"+{value}", f"{value}_0", f"{value}.0", "١", "0X1"]
    if isinstance(value, list):
        others += [value * 2, value[:-1], "".join(map(str, value)), dict(enumerate(value))]
    if isinstance(value, dict):
        others += [{**value, "comment": "harmless"}, list(value.items())]
    holder[key] = rng.choice([each for each in others if each != value])


FALSE: dict[str, Callable[[dict[str, Any], random.Random], None]] = {
    "weights": of_weights,
    "sums": of_sums,
    "objective": of_objective,
    "sign": of_sign,
    "privacy": of_privacy,
    "bound": of_bound,
    "form": of_form,
}
"""Changes after which a file is false or malformed, whatever it said."""


def of_claim(content: dict[str, Any], rng: random.Random) -> None:
    """Another statement, which the table and the multipliers may still prove."""
    claim, n = content["certificate"], len(content["weights"][0]) - 1
    match rng.choice(["alpha", "neighbours", "loss", "properties", "multipliers", "weights"]):
        case "alpha":
            content["alpha"] = rng.choice(["1/3", "2/5", "1/2", "3/5", "9/10", "1"])
        case "neighbours":
            content["neighbours"] = rng.choice(["adjacent", "all", 2, [[0, n]], [[1, 0], [1, n]]])
        case "loss":
            claim["loss"] = {
                "power": rng.choice(["0", "1/2", "1", "2"]),
                "d": rng.choice([0, 1]),
                "prior": rng.choice([None, [str(weight) for weight in binomial(n, "1/3")]]),
                "worst_case": rng.random() < 0.5,
            }
        case "properties":
            claim["properties"] = rng.choice(PROPERTIES)
        case "multipliers":
            chosen = rng.choice([each for each in claim["multipliers"].values() if each])
            r = rng.choice([*chosen])
            value = chosen.pop(r)
            if rng.random() < 0.7:
                chosen[rng.choice([r, "0", "1", "99"])] = shifted(value, rng)
        case "weights":
            row, j = rng.choice(content["weights"]), rng.randrange(n + 1)
            other = rng.choice(content["weights"])
            row[j], other[j] = str(int(row[j]) + 1), str(int(other[j]) - 1)


def originals(path: Path) -> Iterator[dict[str, Any]]:
    half = Privacy(alpha="1/2")
    made = [
        design(2, half, L0(), ["WH", "CM"]),
        design(3, Privacy(alpha="9/10"), L1(prior=binomial(3, "1/4")), ["OR:1/2", "RM"]),
        design(3, Privacy(alpha="2/3", neighbours=2), Power("1/2", worst_case=True), ["S"]),
        design(2, Privacy(alpha="3/5", neighbours="all"), L2(), ["F", "RH"]),
        design(3, Privacy(alpha="1/2", neighbours=RELATIONS["capped"](3)), L1(), ["CM"]),
        design(3, Privacy(alpha="1/2", neighbours=[(0, 3), (1, 2)]), L1()),
        design(3, half, L2(), ["unbiased"], outputs=WIDE),
        design(3, half, L0(), ["RM", "CH", "within:1=1/2"], outputs=COARSE),
        design(PAIRS, half, L1(), ["linear:1*P[0,0] >= 1/3"]),
        design(3, APPROXIMATE, L1(), ["CM"]),
    ]
    for each in made:
        each.save(path)
        yield json.loads(path.read_text())


def true(mechanism: Mechanism) -> bool:
    """Whether a new design under the same statement is as good as the bound says."""
    claim = mechanism.certificate
    assert claim is not None
    inputs, outputs = mechanism.input_values, mechanism.output_values
    found = design(inputs, claim.privacy, claim.loss, claim.properties, outputs=outputs)
    return claim.bound <= found.certificate.objective <= mechanism.loss(claim.loss)


def refuse_alike(inputs: int, place: Path) -> Counter[str]:
    """How many files each change made that both refuse; what they accept must be true."""
    path, refused = place / "m.json", Counter[str]()
    files = [json.dumps(each) for each in originals(path)]
    for number in range(inputs):
        rng = random.Random(number)
        content = json.loads(rng.choice(files))
        name = rng.choice([*FALSE, "claim"])
        try:
            (of_claim if name == "claim" else FALSE[name])(content, rng)
        except (IndexError, KeyError):  # there is nothing of this sort to change
            continue
        data = sealed(content)
        found, (code, _) = loaded(data, path), verdict(data)
        if name != "claim":
            assert found is None, (number, name)
            assert code, (number, name)
        assert (found is None) == (code != 0), (number, name, code)
        refused[name] += found is None
        assert found is None or true(found), (number, name)
    return refused


@pytest.mark.slow
def test_both_refuse_files_that_were_changed(tmp_path: Path) -> None:
    assert min(refuse_alike(80, tmp_path).values()) > 2


@pytest.mark.slow
def test_both_refuse_thousands_of_files_that_were_changed(tmp_path: Path) -> None:
    refused = refuse_alike(1700, tmp_path)
    assert refused.keys() == {*FALSE, "claim"}
    assert min(refused.values()) > 130
    assert refused.total() > 1500


def test_names_that_are_not_known_leave_the_optimality_open(tmp_path: Path) -> None:
    design(2, Privacy(alpha="1/2"), L0(), ["WH"]).save(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    content["certificate"]["properties"].append("MINE")
    code, claims = verdict(sealed(content))
    assert code == 3
    assert [claim for claim in claims if claim.startswith("p")] == [
        *("private", "property 'WH'", "property 'MINE' IS NOT KNOWN HERE")
    ]
    content["alpha"] = "99/100"
    assert verdict(sealed(content))[0] == 1
    content["certificate"]["bound"] = "one"
    assert verdict(sealed(content))[0] == 2


@pytest.mark.parametrize(
    "data",
    [
        *(
            b"",
            b"[]",
            b"null",
            b"\xff",
            b"[" * 100_000,
            b'{"format": "mechdesign.mechanism"}',
        ),
        b'{"format": 1, "format": 1}',
    ],
)
def test_what_is_no_mechanism_file_is_malformed(data: bytes) -> None:
    assert verdict(data) == (2, [])


def test_closed_forms_and_packed_tables_are_checked(tmp_path: Path) -> None:
    """Those with few outputs as the tables that they are; of others the law and its alpha."""
    path = tmp_path / "m.json"
    packed = Mechanism(named.geometric(60, 0.5).table, Privacy.from_epsilon(0.5))
    for mechanism, code in (
        (named.geometric(30, 0.5), 0),
        (named.geometric(6, 0.5, margin=2), 0),
        (named.explicit_fair(9, 0.5), 0),
        (named.uniform(3), 0),
        (packed, 0),
        (named.geometric(1 << 62, 0.5), 0),
        (named.geometric(4, 0.5, margin=None), 0),
        (design(5, Privacy(alpha="1/2")).mechanism, 0),
        (design(500, Privacy(alpha="1/2"), properties=["F"]).mechanism, 3),
    ):
        mechanism.save(path)
        content = json.loads(path.read_text())
        assert content["version"] in (3, 4)
        assert verdict(path.read_bytes())[0] == code
        content["alpha"] = "999/1000"
        if mechanism.audit().ratio > 1:
            assert verdict(sealed(content))[0] in (1, 2)
            assert loaded(sealed(content), path) is None
    content = json.loads(packed_file(packed, path))
    rows = content["rows"]
    for i in range(0, len(rows), 7):
        for j in range(0, len(rows[i]), 5):
            for mark in "#=<>^o":
                changed = [*rows]
                changed[i] = rows[i][:j] + mark + rows[i][j + 1 :]
                data = sealed(content | {"rows": changed})
                assert (verdict(data)[0] == 0) == (loaded(data, path) is not None)


def packed_file(mechanism: Mechanism, path: Path) -> str:
    mechanism.save(path)
    return path.read_text()


def test_a_file_that_was_edited_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    named.geometric(2, alpha="1/2").save(path)
    for old, new in (
        ('"1/2"', '"1/3"'),
        ('"sha256:', '"sha512:'),
        ('"version": 3', '"version": 2'),
    ):
        changed = path.read_text().replace(old, new)
        assert changed != path.read_text()
        assert verdict(changed.encode()) == (2, [])


def releases(folder: Path) -> dict[str, Any]:
    """A release of each kind, as the content of its file; by the class that reads it."""
    rng = np.random.default_rng(3)
    table = tables.release([1, 4, 0], [3, 5, 3], 1, overlap=2, rng=rng, cache=False)
    axes = {"region": ["a", "b"], "answer": ["no", "yes"]}
    several = tables.release_contingency(
        [[3, 2], [1, 4]], axes, 1, within=["region"], margins={("answer",): 1}, rng=rng
    )
    tree = Regions([("a", "x"), ("a", "y"), ("b", "z")])
    regions = release_regions(tree, [1, 2, 3], [4, 4, 6], 1, budget=(1, 2), rng=rng)
    kept = {}
    every: tuple[Any, ...] = (table, several, regions)
    for number, each in enumerate(every):
        each.save(folder / f"{number}.json")
        kept[type(each).__name__] = (
            type(each),
            json.loads((folder / f"{number}.json").read_text()),
        )
    return kept


def set_alpha(content: dict[str, Any], table: dict[str, Any]) -> None:
    table["mechanisms"][0]["alpha"] = "99/100"


def set_output(content: dict[str, Any], table: dict[str, Any]) -> None:
    table["released"][0] = 9


def set_weight(content: dict[str, Any], table: dict[str, Any]) -> None:
    mechanism = table["mechanisms"][0]
    if "law" in mechanism:
        mechanism["law_alpha"] = "1"
    else:
        mechanism["weights"][0][0] += "0"


def repeat_mechanism(content: dict[str, Any], table: dict[str, Any]) -> None:
    table["mechanisms"] += table["mechanisms"][:1]


def forget_mechanism(content: dict[str, Any], table: dict[str, Any]) -> None:
    del table["mechanisms"][0]


def set_overlap(content: dict[str, Any], table: dict[str, Any]) -> None:
    table["overlap"] = 0


def set_noise(content: dict[str, Any], table: dict[str, Any]) -> None:
    if "levels" in content:
        content["levels"][0] = "3/2"
    elif "margins" in content:
        content["margins"][0][1] = "3/2"
    else:
        content["levels"] = []


@pytest.mark.parametrize("kind", ["TableRelease", "ContingencyRelease", "RegionRelease"])
def test_releases_are_checked_as_the_library_checks_them(kind: str, tmp_path: Path) -> None:
    read, content = releases(tmp_path)[kind]
    path = tmp_path / "checked.json"
    path.write_bytes(sealed(content))
    statement = read.load(path).statement
    code, claims = verdict(path.read_bytes())
    total = statement.total_alpha if kind == "ContingencyRelease" else statement.alpha
    assert code == 0
    assert any(claim.startswith(f"together alpha = {total} ") for claim in claims)
    assert claims[-1].startswith("BUT THE DRAWS WERE SEEDED")
    assert verdict(path.read_bytes().replace(b"sha256:", b"sha256:0"))[0] == 2
    for change in (
        *(set_alpha, set_output, set_weight, repeat_mechanism),
        *(forget_mechanism, set_overlap, set_noise),
    ):
        changed = copy.deepcopy(content)
        change(changed, changed.get("cells") or changed.get("leaves") or changed)
        path.write_bytes(sealed(changed))
        assert verdict(path.read_bytes())[0], change
        with pytest.raises(MechanismError):
            read.load(path)


def test_it_runs_without_any_package(tmp_path: Path) -> None:
    design(2, Privacy(alpha="1/2"), L0(), ["WH"]).save(tmp_path / "true.json")
    content = json.loads((tmp_path / "true.json").read_text())
    (tmp_path / "false.json").write_bytes(sealed({**content, "alpha": "2/3"}))
    content["certificate"]["properties"] = ["WH", "MINE"]
    (tmp_path / "open.json").write_bytes(sealed(content))
    program = tmp_path / "check.py"
    program.write_text(Path(check_certificate.__file__).read_text())
    for name, code in (("true", 0), ("false", 1), ("absent", 2), ("open", 3)):
        # -I -S: no site-packages, no environment; an import of numpy would fail.
        run = subprocess.run(
            [sys.executable, "-I", "-S", program, f"{name}.json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == code, run.stderr
        assert ("optimal" in run.stdout) == (code == 0)
        assert run.stderr.count("\n") == (code > 0)


def test_it_is_short_and_shares_no_code() -> None:
    """Below 480 lines, those that are empty or of a docstring apart."""
    text = Path(check_certificate.__file__).read_text()
    tree, lines = ast.parse(text), text.splitlines()
    spoken = {
        number
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for number in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    assert sum(bool(line) for k, line in enumerate(lines, 1) if k not in spoken) < 480
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in node.names
    }
    assert {str(name).partition(".")[0] for name in imported} <= sys.stdlib_module_names

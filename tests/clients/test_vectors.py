"""The committed vectors: the array code, the standard library's client and the one in JavaScript
make the same reports of the same words, and refuse the same values and files.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from frequency.clients import ClientError, RefusedValue, device, load_client
from frequency.core.protocol import channel_of
from tests.clients.cases import families
from tests.clients.node import CLIENT, NODE
from tests.clients.test_laws import WRONG

pytest.importorskip("tools.vectors", reason="the tests may be of an installed package")
from tools import vectors

FAMILIES = sorted(families())
QUICK = ("randomized_response", "surveys", "tabular_response")
every_family = pytest.mark.parametrize("family", FAMILIES)


@cache
def content(family: str) -> Any:
    """What is committed of a family."""
    return json.loads((vectors.FOLDER / f"{family}.json").read_text())["protocols"]


def reports(part: Any) -> Iterator[tuple[Any, str, str | None]]:
    """The value, the tape and the report of each of a protocol's vectors."""
    for of_value in part["vectors"]:
        for tape, report in of_value["reports"]:
            yield of_value["value"], tape, report


def words_of(tape: str) -> list[int]:
    data = bytes.fromhex(tape)
    return [int.from_bytes(data[k : k + 8], "little") for k in range(0, len(data), 8)]


class Words:
    """A tape for the standard library's client."""

    def __init__(self) -> None:
        self.left: Iterator[int] = iter(())

    def __call__(self) -> int:
        return next(self.left)


def refuses(take: Callable[[], object], error: type[Exception]) -> bool:
    """Whether there is such an error."""
    try:
        take()
    except error:
        return True
    return False


def refused_everywhere(kind: str, value: Any) -> bool:
    """Whether arrays refuse a value, too: they are tables, and truth values are integers."""
    if kind == "schema":
        return True
    if isinstance(value, list) and value:
        return refused_everywhere(kind, value[0])
    return not isinstance(value, bool | dict) and (kind != "set" or isinstance(value, list))


def of_device(part: Any) -> Callable[[Any, str], str | None]:
    """The function that makes a report of a value and a tape."""
    words = Words()
    client = load_client(part["client"], words)

    def made(value: Any, tape: str) -> str | None:
        words.left = iter(words_of(tape))
        report = client.report(vectors.value_of(value))
        assert next(words.left, None) is None, "words were left over"
        return report.hex() if report is not None else None

    return made


# ------------------------------------------------------------------------- what the vectors are of


def test_every_protocol_has_vectors() -> None:
    """In the order of the cases; the descriptions are those of today."""
    for family, cases in families().items():
        told = [case.protocol.client() for case in cases]
        assert [part["client"] for part in content(family)] == told
    files = {path.stem for path in vectors.FOLDER.glob("*.json")}
    assert files == {*families(), "damaged", "memoised", "values"}


def test_every_step_and_expression_has_vectors() -> None:
    """Also of the steps inside a choice, where public coins draw reports."""
    told = [part["client"]["report"] for family in FAMILIES for part in content(family)]
    every = [step for report in told for step in vectors.steps(report)]
    assert {step["do"] for step in every} == device._NODES.keys()
    cells = [step["cell"] for step in every if "cell" in step]
    maps = [one for step in every if step["do"] == "mixture" for one in step["maps"]]
    assert {one[0] for one in [*cells, *maps]} == device._EXPRESSIONS.keys()
    axes = [axis for step in every if step["do"] == "mixture" for axis in step["axes"]]
    assert {type(axis) for axis in axes} == {dict, list}
    inside = [step for step in every if step["do"] == "choice"]
    assert any(len(set(step["candidates"])) > 1 for step in inside)
    chosen = {step["do"] for choice in inside for step in vectors.steps(choice["then"])}
    assert chosen == device._NODES.keys() - {"choice"}
    assert {choice["most"] for choice in inside} >= {1, 3, 7, 31, 511}


def lengths(family: str, step: Callable[[Any], bool]) -> Iterator[tuple[Any, set[int]]]:
    """The protocols of a family with such a first step, and how many words reports take."""
    for part in content(family):
        if step(part["client"]["report"]):
            yield part["client"]["report"], {len(tape) // 16 for _, tape, _ in reports(part)}


def test_lies_are_seen_on_both_sides_of_their_thresholds() -> None:
    for part in content("randomized_response"):
        outcomes = int(part["client"]["report"]["outcomes"])
        lie = int(part["client"]["report"]["lie"])
        words = {words_of(tape)[0] for _, tape, _ in reports(part) if tape}
        ends = {lie - 1, lie, (outcomes - 1) * lie - 1, (outcomes - 1) * lie}
        assert ends <= words or outcomes == 1


def test_rejected_and_tied_words_are_among_them() -> None:
    """Every family has reports that take more words than others of the same value."""
    for step, taken in lengths("tabular_response", lambda step: True):
        total = int(step["denominator"])
        ties = total & (total - 1) and len(step["columns"]) > 1
        assert taken >= ({1, 2} if ties else {1})
    assert any(3 in taken for _, taken in lengths("tabular_response", lambda step: True))
    several = [*lengths("hadamard_response", lambda step: step["distinct"])]
    assert len(several) > 3
    for step, taken in several:  # coins that coincide are all drawn again
        count = len(step["coins"])
        assert {count + 1, 2 * count + 1} <= taken
    for step, taken in lengths("projective_geometry", lambda step: step["do"] == "hyperplane"):
        assert {2, 3} <= taken, step  # the vector of zeros
    hashed = [*lengths("local_hashing", lambda step: step["do"] == "public")]
    for step, taken in hashed:
        sizes = [int(step["coins"][0]["count"]), int(step["then"]["outcomes"])]
        rejects = sizes[0] & (sizes[0] - 1) != 0
        assert len(taken) > 1 or not rejects, sizes
    assert len(hashed) > 10


@pytest.mark.parametrize("family", ["subset_selection", "unary_encoding"])
def test_bits_are_undecided_to_the_last_place(family: str) -> None:
    found = 0
    for part in content(family):
        step = part["client"]["report"]
        weight = int(step["other" if step["do"] == "bits" else "start"])
        lanes, places = -(-step["places"] // 64), 64 - ((weight & -weight).bit_length() - 1)
        longest = max(len(tape) // 16 for _, tape, _ in reports(part))
        assert longest >= lanes * places
        found += lanes > 1 and longest > 64
    assert found


# --------------------------------------------------------------------------------- the array code


@every_family
def test_arrays_make_these_reports(family: str) -> None:
    for case, part in zip(families()[family], content(family), strict=True):
        assert part["client"]["wire"] == channel_of(case.protocol).wire.hex()
        for of_value in part["vectors"]:
            sent = vectors.sender(case.protocol, vectors.value_of(of_value["value"]))
            for tape, report in of_value["reports"]:
                words = words_of(tape)
                found, used = sent(words)
                assert (found and found.hex()) == report
                assert list(used) == words


@every_family
def test_arrays_refuse_these_values(family: str) -> None:
    for case, part in zip(families()[family], content(family), strict=True):
        for value in map(vectors.value_of, part["refused"]):
            if refused_everywhere(part["client"]["takes"]["kind"], value):
                take = partial(vectors.items_of, case.protocol, value)
                assert refuses(take, ValueError), (part["client"]["protocol"], value)


@pytest.mark.slow
@pytest.mark.parametrize("family", QUICK)
def test_writing_them_again_changes_nothing(family: str) -> None:
    written = vectors.text_of(family, families()[family])
    assert written == (vectors.FOLDER / f"{family}.json").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("family", sorted({*FAMILIES} - {*QUICK}))
def test_looking_for_tapes_again_finds_the_same(family: str) -> None:
    """Of every third protocol: a search takes half a second."""
    for case, part in [*zip(families()[family], content(family), strict=True)][::3]:
        assert json.loads(json.dumps(vectors.vectors(case))) == part["vectors"]


def test_writing_damaged_files_again_changes_nothing() -> None:
    assert vectors.text_of_damaged() == (vectors.FOLDER / "damaged.json").read_text()


# -------------------------------------------------------------------- the standard library's client


@every_family
def test_the_device_makes_these_reports(family: str) -> None:
    for part in content(family):
        made = of_device(part)
        for value, tape, report in reports(part):
            assert made(value, tape) == report, (part["client"]["protocol"], value, tape)


@every_family
def test_the_device_refuses_these_values(family: str) -> None:
    """And draws nothing: there are no words."""
    for part in content(family):
        made = of_device(part)
        for value in part["refused"]:
            take = partial(made, value, "")
            assert refuses(take, RefusedValue), (part["client"]["protocol"], value)


SHOWN_BY = {
    "GRR": "randomized_response",
    "HRR": "hadamard_response",
    "HaarHRR": "ranges",
    "SquareWave": "ranges",
    "Tabular": "tabular_response",
}


@pytest.mark.parametrize("name", WRONG)
def test_one_word_of_the_device_shows_in_vectors(name: str) -> None:
    case, function, wrong = WRONG[name]
    with (
        patch.object(device, function, wrong),
        pytest.raises((AssertionError, LookupError, ArithmeticError, ValueError, StopIteration)),
    ):
        test_the_device_makes_these_reports(SHOWN_BY[case])


def damaged() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((vectors.FOLDER / "damaged.json").read_text())["files"]
    return found


@pytest.mark.parametrize("file", damaged(), ids=lambda file: file["wrong"])
def test_the_device_refuses_damaged_files(file: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "protocol.json"
    path.write_text(file["text"])
    with pytest.raises(ClientError):
        load_client(path)


# --------------------------------------------------------------------------------------- JavaScript


def answers(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What one process makes of all requests: see clients/javascript/run.js."""
    text = "".join(f"{json.dumps(request)}\n" for request in requests)
    command = [NODE, CLIENT / "run.js"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_javascript_makes_these_reports_and_refuses_these_values(tmp_path: Path) -> None:
    requests, expected = [], []
    for family in FAMILIES:
        for number, part in enumerate(content(family)):
            path = tmp_path / f"{family}{number}.json"
            path.write_text(json.dumps(part["client"]))
            for value, tape, report in reports(part):
                requests.append({"protocol": str(path), "value": value, "tape": tape})
                expected.append({"report": report, "words": len(tape) // 16})
            for value in part["refused"]:
                requests.append({"protocol": str(path), "value": value, "tape": ""})
                expected.append({"error": "", "words": 0})
    found = answers(requests)
    for answer in found:
        if "error" in answer and "no more words" not in answer["error"]:
            answer["error"] = ""
    wrong = [
        (request, answer, right)
        for request, answer, right in zip(requests, found, expected, strict=True)
        if answer != right
    ]
    assert not wrong, f"{len(wrong)} of {len(found)}, such as {wrong[0]}"
    assert len(found) > 20_000


def test_javascript_refuses_damaged_files(tmp_path: Path) -> None:
    requests = []
    for number, file in enumerate(damaged()):
        path = tmp_path / f"{number}.json"
        path.write_text(file["text"])
        requests.append({"protocol": str(path), "value": 0, "tape": "00" * 64})
    for file, answer in zip(damaged(), answers(requests), strict=True):
        assert "error" in answer, file["wrong"]
        assert answer["words"] == 0, file["wrong"]

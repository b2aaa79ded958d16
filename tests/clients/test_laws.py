"""What the clients draw has exactly the law that is published, and its ratio is that of the audit.

The laws are measured from outside, word by word, as those of the array code are
(`tests.contracts.measure`), and a client that is wrong by one word of 2^64 is found out.
"""

from __future__ import annotations

import json
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import frequency
from frequency import heavy
from frequency.clients import device, load_client
from frequency.clients.device import canonical, sponge
from frequency.core.protocol import channel_of
from tests.clients import node
from tests.clients.node import Node
from tests.contracts.measure import law
from tests.contracts.published import probability
from tests.contracts.test_laws import CASES, coins_of, equal, of_ratio, worst
from tests.tape import WORD
from tools.vectors import steps

Draw = Callable[[Any], bytes]
"""A report of the words of a generator (`tests.contracts.measure.ScriptedGenerator`)."""


def by_device(description: dict[str, Any], value: Any) -> Draw:
    """The standard library's client."""
    source: list[Any] = [None]

    def word() -> int:
        return int(source[0].integers(0, WORD, 1, np.uint64)[0])

    client = load_client(description, word)

    def draw(rng: Any) -> bytes:
        source[0] = rng
        payload = client.privatize_one(value)
        assert payload is not None
        return payload

    return draw


def by_node(process: Node, folder: Path, description: dict[str, Any], value: Any) -> Draw:
    """The client in JavaScript."""
    path = folder / f"{description['digest'][-16:]}.json"
    path.write_text(json.dumps(description))

    def draw(rng: Any) -> bytes:
        size = 32
        while "report" not in (
            answer := process.ask(str(path), value, [*rng.prefix, *rng.continuation[:size]])
        ):
            assert "no more words" in answer["error"], answer
            size *= 8
        rng.used = answer["words"]
        report: bytes = answer["report"]
        return report[8:]

    return draw


def check_law(protocol: Any, value: Any, draw: Draw, bits: Any) -> dict[Any, Fraction]:
    """The law of a report; it must be the published one."""
    channel, dtype = channel_of(protocol), protocol.report_dtype
    item = protocol.items_of([value])[0]
    measured = law(draw, bits)
    equal(measured, lambda report: probability(channel, np.frombuffer(report, dtype)[0], item))
    found: dict[Any, Fraction] = measured
    return found


def check(name: str, draw_of: Callable[[dict[str, Any], Any], Draw] = by_device) -> None:
    """The laws of two values, and the largest ratio of theirs."""
    case = CASES[name]
    with of_ratio(case.ratio):
        protocol = case.make()
        description = protocol.client()
        laws = [
            check_law(protocol, value, draw_of(description, value), case.bits)
            for value in case.values
        ]
        assert worst(laws) == protocol.audit().ratio


@pytest.mark.parametrize("name", CASES)
def test_the_device_draws_what_is_published(name: str) -> None:
    check(name)


# ------------------------------------------------------------------------ one bit, given the coins

KEPT = {
    "GRR": frequency.GRR(3, 0.5),
    "OUE": frequency.OUE(3, 0.5),
    "HRR": frequency.HRR(4, 0.5),
    "SubsetSelection": frequency.SubsetSelection(4, 0.5),
    "UniqueHeavyHitter": heavy.UniqueHeavyHitter(2, 0.5),
    "SuccinctHistogram": heavy.SuccinctHistogram(2, 0.5, hashes=1, channels=2, rows=2),
}


def check_bit(
    protocol: heavy.OneBit, draw_of: Callable[[dict[str, Any], Any], Draw] = by_device
) -> None:
    """Whatever the coins, the bit is kept with the published weight of its likelihood."""
    channel, items = protocol.channel, np.array([0, 1])
    weights = list(map(int, channel.parameters["acceptance"]))
    description, reached = protocol.client(), Fraction(1)

    def bit(value: Any, user: int) -> dict[Any, Fraction]:
        draw = draw_of(description, value)
        found: dict[Any, Fraction] = law(lambda rng: draw(rng)[8], given=[user])
        return found

    for which, user in coins_of(channel, items).items():
        chances = [Fraction(weights[likelihood], WORD) for likelihood in which]
        measured = [bit(item, user) for item in items.tolist()]
        if isinstance(protocol.inner, heavy.UniqueHeavyHitter):
            measured.append(bit(None, user))
            chances.append(Fraction(sum(weights), 2 * WORD))
        for found, one in zip(measured, chances, strict=True):
            equal(found, {0: 1 - one, 1: one}.__getitem__)
        reached = max(reached, worst(measured))
    assert reached == protocol.audit().ratio


@pytest.mark.parametrize("name", KEPT)
def test_the_device_keeps_a_bit_as_is_published(name: str) -> None:
    check_bit(heavy.OneBit(KEPT[name]))


# -------------------------------------------------------------------------------------- JavaScript


@pytest.fixture(scope="module")
def in_node(tmp_path_factory: Any) -> Iterator[Callable[[dict[str, Any], Any], Draw]]:
    """The client in JavaScript, in one process."""
    with Node() as process:
        yield partial(by_node, process, tmp_path_factory.mktemp("laws"))


IN_NODE = (
    "GRR",
    "OUE",
    "OLH",
    "HRR, t = 2",
    "ProjectiveGeometry",
    "AffineSelection",
    "Tabular",
    "InpEM",
    "MargPS",
    "SquareWave",
    "PaddedSets",
    "LevelSketch",
)
"""One of every step; the others are slow tests."""


@pytest.mark.parametrize(
    "name",
    [name if name in IN_NODE else pytest.param(name, marks=pytest.mark.slow) for name in CASES],
)
def test_javascript_draws_what_is_published(name: str, in_node: Any) -> None:
    check(name, in_node)


@pytest.mark.parametrize("name", KEPT)
def test_javascript_keeps_a_bit_as_is_published(name: str, in_node: Any) -> None:
    check_bit(heavy.OneBit(KEPT[name]), in_node)


# ----------------------------------------------------------------------------------- planted errors


def changed(description: dict[str, Any], key: str, change: Callable[[Any], Any]) -> dict[str, Any]:
    """A description in which the first step with a key has another value; its digest matches."""
    copy = json.loads(json.dumps(description))
    del copy["digest"]
    step = next(step for step in steps(copy["report"]) if key in step)
    step[key] = change(step[key])
    return {**copy, "digest": f"shake256:{sponge(canonical(copy), 32).hex()}"}


def of_changed(draw_of: Any, key: str, change: Callable[[Any], Any]) -> Any:
    """A client of changed descriptions."""
    return lambda description, value: draw_of(changed(description, key, change), value)


def less(number: Any) -> str:
    """One word less than an integer of a description."""
    return str(int(number) - 1)


def first_less(numbers: Any) -> list[Any]:
    return [less(numbers[0]), *numbers[1:]]


CHANGED = {
    "a lie": ("GRR", "lie", less),
    "a lie of two": ("RR", "lie", less),
    "a lie of signs": ("HRR, t = 2", "lie", less),
    "a lie of inner products": ("ProjectiveGeometry", "lie", less),
    "a window": ("AffineSelection", "inside", less),
    "a wave": ("SquareWave", "far", less),
    "a set's own item": ("SubsetSelection", "inclusion", less),
    "the bit of the item": ("OUE", "own", less),
    "a column": (
        "Tabular",
        "columns",
        lambda rows: [[rows[0][0] - 1, rows[0][1] + 1, rows[0][2]], *rows[1:]],
    ),
}
"""Steps in which one number is one too small."""


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGED)
def test_one_word_of_a_description_shows(name: str, in_node: Any) -> None:
    case, key, change = CHANGED[name]
    for draw_of in (by_device, in_node):
        with pytest.raises(AssertionError):
            check(case, of_changed(draw_of, key, change))


def test_a_smaller_lie_is_beyond_what_is_allowed() -> None:
    """The ratio that is measured then is larger than e^epsilon's lower bound."""
    protocol = CASES["GRR"].make()
    description = changed(protocol.client(), "lie", less)
    laws = [law(by_device(description, value)) for value in (0, 1)]
    assert worst(laws) > protocol.audit().allowed >= protocol.audit().ratio


def test_one_word_of_a_kept_bit_shows(in_node: Any) -> None:
    for draw_of in (by_device, in_node):
        with pytest.raises(AssertionError):
            check_bit(heavy.OneBit(KEPT["GRR"]), of_changed(draw_of, "acceptance", first_less))


def biased_below(word: Any, size: int) -> Callable[[], int]:
    """What ought to be rejected is given to the first numbers."""
    return (lambda: word() // (WORD // size) % size) if size > 1 else lambda: 0


def shifted_lies(word: Any, outcomes: int, lie: int, honest: Any = device._lies) -> Any:
    """The first interval has one word more, and the truth one less."""
    return honest(lambda: max(word() - 1, 0), outcomes, lie)


def closed_chance(word: Any, weight: int) -> Callable[[], bool]:
    """A threshold counts as below itself."""
    return lambda: word() <= weight


WRONG = {
    "a biased number": ("HRR", "_below", biased_below),
    "a biased output": ("SquareWave", "_below", biased_below),
    "intervals off by one": ("GRR", "_lies", shifted_lies),
    "intervals of signs off by one": ("HRR", "_lies", shifted_lies),
    "a closed interval": ("SquareWave", "_chance", closed_chance),
    "ties that are not read on": ("Tabular", "bisect_left", bisect_right),
    "parts off by one": ("HaarHRR", "bisect_right", bisect_left),
}
"""The standard library's client with one of its functions replaced."""


@pytest.mark.parametrize("name", WRONG)
def test_one_word_of_the_device_shows(name: str) -> None:
    case, function, wrong = WRONG[name]
    with patch.object(device, function, wrong), pytest.raises(AssertionError):
        check(case)


WRONG_IN_NODE = {
    "a biased number": ("HRR", "draws.js", "while (number >= size)", "while (number > size)"),
    "intervals off by one": ("GRR", "draws.js", "word() / lie", "(word() + 1n) / lie"),
    "a closed interval": ("SquareWave", "draws.js", "word() < weight", "word() <= weight"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG_IN_NODE)
def test_one_word_of_javascript_shows(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    case, file, right, wrong = WRONG_IN_NODE[name]
    shutil.copytree(node.CLIENT, tmp_path / "client")
    path = tmp_path / "client" / file
    source = path.read_text()
    assert source.count(right) == 1
    path.write_text(source.replace(right, wrong))
    monkeypatch.setattr(node, "CLIENT", tmp_path / "client")
    with Node() as process, pytest.raises(AssertionError):
        check(case, partial(by_node, process, tmp_path))

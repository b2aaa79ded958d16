"""Devices that keep reports: those of arrays, word by word; and a file that is never half written.

The reports of a user on several days are those that `Memoised` makes of the same words.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from frequency import GRR, HRR, SubsetSelection, heavy
from frequency.clients import ClientError, RefusedValue, device, load_client, load_memoised
from frequency.longitudinal import Memoised
from frequency.longitudinal import memoised as arrays
from mechdesign.exceptions import UnstatedLikelihoods
from tests.clients.cases import KEPT, families
from tests.clients.node import CLIENT, evaluated
from tests.tape import Tape

QUESTION = Memoised(SubsetSelection(6, 1), total=2)


class Recorded:
    """Random words, and a list of those that were asked for; some are extreme."""

    def __init__(self, seed: int) -> None:
        self.words: list[int] = []
        self._random = random.Random(seed)

    def __call__(self) -> int:
        word = self._random.getrandbits(64)
        self.words.append(word if len(self.words) % 5 else word >> word % 64)
        return self.words[-1]


def of_arrays(question: Memoised, values: Sequence[Any], words: Sequence[int]) -> list[bytes]:
    """One user's reports that the array code makes of these words, all of which it uses."""
    tape, wire = Tape(words), question.protocol.wire
    with patch.object(arrays, "bit_source", lambda rng: tape):
        state = question.start(values[:1])
        sent = [wire + question.privatize(state, [value]).tobytes() for value in values]
    assert tape.used == len(words)
    return sent


def memoised_cases() -> Iterator[Memoised]:
    """Of every kind of protocol that can be kept, some of each."""
    for cases in families().values():
        for case in cases:
            protocol = case.protocol
            try:
                yield Memoised(protocol, total=2 * float(protocol.privacy.epsilon))
            except (UnstatedLikelihoods, TypeError, ValueError):
                continue


def values_of(takes: dict[str, Any]) -> list[Any] | None:
    """Three days' values: the last one, the first, and the last again."""
    if takes["kind"] == "item":
        return [int(takes["size"]) - 1, 0, int(takes["size"]) - 1]
    if takes["kind"] in ("string", "spelt"):
        return ["a", "", "a"]
    if takes["kind"] == "record":
        last = [int(size) - 1 for size in takes["sizes"]]
        return [last, [0 for _ in last], last]
    return None


@pytest.mark.slow
def test_reports_of_days_are_those_of_arrays(tmp_path: Path) -> None:
    """Of every step that a description may have, and of what has been kept."""
    steps = set()
    for number, question in enumerate(memoised_cases()):
        description = question.client(changes=1)
        values = values_of(description["takes"])
        if values is None:
            continue
        words = Recorded(number)
        client = load_memoised(description, tmp_path / str(number), 1, words)
        reports = [client.report(value) for value in values]
        assert reports == of_arrays(question, values, words.words), question
        assert client.held == 1 + (values[0] != values[1])
        steps |= {step["do"] for step in every_step(description["report"])}
    assert steps == device._NODES.keys() - {"choice", "slots"}


def every_step(content: Any) -> Iterator[dict[str, Any]]:
    if isinstance(content, dict):
        if "do" in content:
            yield content
        content = [*content.values()]
    if isinstance(content, list):
        for part in content:
            yield from every_step(part)


def test_a_day_has_the_law_of_arrays_without_a_description_of_its_own(tmp_path: Path) -> None:
    """A state is of its question alone, and old clients refuse the description."""
    description = QUESTION.client()
    with pytest.raises(ClientError, match="use load_memoised"):
        load_client(description)
    with pytest.raises(ClientError, match="use load_client"):
        load_memoised(QUESTION.protocol.client(), tmp_path / "state", 1)
    assert description["wire"] == QUESTION.protocol.wire.hex()
    assert (description["epsilon"], description["memoised"]["day"]) == ("2", "1")
    client = load_memoised(description, tmp_path / "state", 1)
    reports = [client.report(3) for _ in range(20)]
    assert QUESTION.protocol.aggregate(
        QUESTION.protocol.single_reports_from_bytes(reports)
    ).n == len(reports)
    assert (client.epsilon, client.day, client.odds) == ("2", "1", "7.39")


def test_what_is_kept_outlives_the_process(tmp_path: Path) -> None:
    """With what was drawn before: the second process draws nothing permanent of that value."""
    path, description = tmp_path / "state", QUESTION.client(changes=1)
    (tmp_path / "question.json").write_text(json.dumps(description))
    words = Recorded(3)
    load_memoised(description, path, 1, words).report(5)
    first = path.read_text()
    more = Recorded(4)
    again = load_memoised(tmp_path / "question.json", path, words=more)
    reports = [again.report(value) for value in (5, 2, 5, 2)]
    assert json.loads(first)["kept"] == json.loads(path.read_text())["kept"][:1]
    assert again.held == 2
    kept = {bytes.fromhex(payload) for _, payload in json.loads(path.read_text())["kept"]}
    assert kept & {report[8:] for report in reports if report}
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in sorted(tmp_path.iterdir())] == ["question.json", "state"]


def test_a_value_beyond_the_limit_is_reported_as_the_newest(tmp_path: Path) -> None:
    values, told = [1, 4, 2, 1, 5], [1, 4, 4, 1, 4]
    words = Recorded(8)
    client = load_memoised(QUESTION.client(changes=1), tmp_path / "state", 1, words)
    reports = [client.report(value) for value in values]
    assert client.held == 2
    assert reports == of_arrays(QUESTION, told, words.words)
    assert [item for item, _ in json.loads((tmp_path / "state").read_text())["kept"]] == [1, 4]


def test_a_lost_state_is_never_made_anew_unasked(tmp_path: Path) -> None:
    """Each start has a number, up to the largest that was agreed on."""
    path, description = tmp_path / "state", QUESTION.client(starts=2)
    with pytest.raises(ClientError, match="no state"):
        load_memoised(description, path)
    assert not path.exists()
    client = load_memoised(description, path, 1)
    assert load_memoised(description, path, 1).start == load_memoised(description, path).start == 1
    client.report(0)
    path.unlink()
    with pytest.raises(ClientError, match="the state is lost"):
        client.report(0)
    with pytest.raises(ClientError, match="no state"):
        load_memoised(description, path)
    for wrong in (0, 3, True, "2", 1.0):
        with pytest.raises(ClientError, match=r"is not one of 1 \.\. 2"):
            load_memoised(description, path, wrong)
    assert load_memoised(description, path, 2).start == 2
    with pytest.raises(ClientError, match="a state of start 2, not 1"):
        load_memoised(description, path, 1)


def test_nothing_is_drawn_for_a_value_that_is_refused(tmp_path: Path) -> None:
    words = Recorded(1)
    client = load_memoised(QUESTION.client(), tmp_path / "state", 1, words)
    for value in (6, -1, "1", None, [1]):
        with pytest.raises(RefusedValue):
            client.report(value)
    users = Memoised(heavy.UniqueHeavyHitter(8, 1), total=2)
    nobody = load_memoised(users.client(), tmp_path / "nobody", 1, words)
    with pytest.raises(RefusedValue, match="no item"):
        nobody.report(None)
    assert words.words == []
    assert client.held == nobody.held == 0


def rewritten(text: str, **changes: Any) -> str:
    """A state that was changed, with the digest that it then has."""
    state = {**json.loads(text), **changes}
    return json.dumps({**state, "digest": device.digest_of(state)})


DAMAGES: dict[str, tuple[str, Callable[[str], str]]] = {
    "nothing": ("state: ", lambda text: ""),
    "cut off": ("state: ", lambda text: text[:-3]),
    "a changed report": ("digest", lambda text: text.replace('"kept":[[3,"', '"kept":[[2,"')),
    "a list": ("no state", lambda text: "[]"),
    "a description": ("no state", lambda text: json.dumps(QUESTION.client())),
    "another version": ("version 2", lambda text: rewritten(text, version=2)),
    "a version that is no number": ("version", lambda text: rewritten(text, version=True)),
    "another question": (
        "another question",
        lambda text: rewritten(text, client=QUESTION.client(changes=5)["digest"]),
    ),
    "a start beyond": ("did not write", lambda text: rewritten(text, start=2)),
    "no start": ("did not write", lambda text: rewritten(text, start=None)),
    "a short report": ("did not write", lambda text: rewritten(text, kept=[[3, ""]])),
    "a report of no digits": ("state: ", lambda text: rewritten(text, kept=[[3, "xy"]])),
    "an item twice": ("did not write", lambda text: rewritten(text, kept=[[3, "07"], [3, "07"]])),
    "too many": ("did not write", lambda text: rewritten(text, kept=[[k, "07"] for k in range(3)])),
    "another key": ("did not write", lambda text: rewritten(text, more=1)),
    "too deep": ("state: ", lambda text: "[" * 100_000),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_state_that_is_damaged_or_foreign_is_refused(damage: str, tmp_path: Path) -> None:
    """By a new client and by one that runs; and it stays as it is."""
    message, damaged = DAMAGES[damage]
    path, words = tmp_path / "state", Recorded(1)
    client = load_memoised(QUESTION.client(changes=1), path, 1, words)
    client.report(3)
    before, drawn = path.read_text(), len(words.words)
    path.write_text(damaged(before))
    for refused in (
        lambda: client.report(3),
        lambda: load_memoised(QUESTION.client(changes=1), path),
        lambda: load_memoised(QUESTION.client(changes=1), path, 1),
    ):
        with pytest.raises(ClientError, match=message):
            refused()
    assert len(words.words) == drawn
    assert path.read_text() == damaged(before)


def test_a_state_is_read_as_it_is_written_or_refused(tmp_path: Path) -> None:
    """Hundreds of changed ones, with the digests that they then have; what is right is accepted."""
    question = Memoised(heavy.PrefixExtension(64, 2.0), total=4)
    description, path, generator = question.client(changes=9), tmp_path / "state", random.Random(1)
    client = load_memoised(description, path, 1)
    for value in ((1 << 64) - 1, 7):
        client.report(value)
    good, accepted = path.read_text(), 0
    odd: list[Any] = [0, 1, -1, 7.0, 1.5, True, None, "", "7", "07", "A1", "a b", [], {}]
    odd += [1 << 53, str(1 << 53)]
    for _ in range(400):
        state = json.loads(good)
        pair, other = state["kept"]
        where: tuple[tuple[Any, Any], ...] = (
            (pair, 0),
            (pair, 1),
            (state["kept"], 1),
            (state, "kept"),
            (state, "start"),
            (state, "version"),
            (state, "more"),
        )
        place, key = generator.choice(where)
        new = generator.choice([*odd, pair[1].upper(), pair[1], list(other)])
        place[key] = new
        path.write_text(rewritten(json.dumps(state)))
        try:
            start, kept = client._read()
        except ClientError:
            continue
        accepted += 1
        assert [[json.loads(name), payload.hex()] for name, payload in kept.items()] == state[
            "kept"
        ]
        assert device.canonical(start) == device.canonical(state["start"])
        assert key != "more"
    assert 10 < accepted < 200


class Interrupted(BaseException):
    """What a signal raises."""


def interrupting(call: Callable[[], Any], line: int) -> bool:
    """Whether there was a line of this number in the client's code, before which it was stopped."""
    left = line

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != device.__file__:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise Interrupted
        return trace

    sys.settrace(trace)
    try:
        call()
    except Interrupted:
        return True
    finally:
        sys.settrace(None)
    return False


# Where even the closing of a file is interrupted, the garbage collector closes it, and says so
left_open = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.slow
@left_open
def test_an_interrupt_at_any_line_leaves_the_old_state_or_the_new_one(tmp_path: Path) -> None:
    path, description = tmp_path / "state", QUESTION.client(changes=2)
    load_memoised(description, path, 1, Recorded(1)).report(3)
    old, seen, line = path.read_text(), set[int](), 0
    while True:
        path.write_text(old)
        words = Recorded(2)
        client = load_memoised(description, path, words=words)
        stopped = interrupting(partial(client.report, 5), line)
        found = load_memoised(description, path)  # an intact state
        assert found.held in (1, 2)
        assert (found.held == 1) == (path.read_text() == old)
        seen.add(found.held)
        # What goes on, goes on: with what is in the file, whatever was drawn
        kept = json.loads(path.read_text())["kept"]
        assert client.report(5) is not None
        assert json.loads(path.read_text())["kept"][: len(kept)] == kept
        if not stopped:
            break
        line += 1
    assert seen == {1, 2}
    assert line > 30
    # A file that was not finished is removed, but where the removal itself is interrupted
    assert {file.name for file in tmp_path.iterdir()} == {"state"}


@pytest.mark.slow
@left_open
def test_a_start_is_interrupted_at_any_line(tmp_path: Path) -> None:
    description, line, seen = QUESTION.client(), 0, set[bool]()
    while True:
        path = tmp_path / str(line)
        stopped = interrupting(partial(load_memoised, description, path, 1), line)
        seen.add(path.exists())
        assert load_memoised(description, path, 1).held == 0
        if not stopped:
            break
        line += 1
    assert seen == {False, True}


def test_a_process_that_is_killed_leaves_an_intact_state(tmp_path: Path) -> None:
    """While it writes one new value after another."""
    path, description = tmp_path / "state", Memoised(GRR(10_000, 1), total=2).client(changes=9_999)
    (tmp_path / "question.json").write_text(json.dumps(description))
    source = (
        "from device import load_memoised\n"
        f"client = load_memoised({str(tmp_path / 'question.json')!r}, {str(path)!r}, 1)\n"
        "for value in range(client.held, 10_000):\n"
        "    print(client.report(value).hex(), flush=True)\n"
    )
    held = 0
    for wait in range(1, 6):
        with subprocess.Popen(
            [sys.executable, "-S", "-c", source],
            cwd=Path(device.__file__).parent,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            sent = [process.stdout.readline() for _ in range(wait)]
            process.kill()
        assert all(sent)
        before, held = held, load_memoised(description, path).held
        assert held >= before + wait  # whatever was sent has been stored


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails(call: str, tmp_path: Path) -> None:
    """The report was not sent: a further one is drawn when there is room again."""
    path = tmp_path / "state"
    client = load_memoised(QUESTION.client(), path, 1)
    before = path.read_text()
    full = OSError(28, "No space left on device")
    with patch.object(os, call, side_effect=full), pytest.raises(OSError, match="No space"):
        client.report(3)
    assert path.read_text() == before
    assert {file.name for file in tmp_path.iterdir()} == {"state"}
    assert client.report(3) is not None


def test_large_items_and_records(tmp_path: Path) -> None:
    """Integers that JavaScript would round are texts; lists are items, too."""
    question = Memoised(heavy.PrefixExtension(64, 2.0), total=4)
    client = load_memoised(question.client(changes=9), tmp_path / "state", 1)
    for value in ((1 << 64) - 1, (1 << 53) - 1, 1 << 53, (1 << 64) - 1):
        client.report(value)
    kept = json.loads((tmp_path / "state").read_text())["kept"]
    assert [item for item, _ in kept] == [str((1 << 64) - 1), (1 << 53) - 1, str(1 << 53)]


def test_the_standard_library_alone(tmp_path: Path) -> None:
    """One file, copied, in a Python without packages."""
    (tmp_path / "device.py").write_bytes(Path(device.__file__).read_bytes())
    (tmp_path / "question.json").write_text(json.dumps(Memoised(HRR(8, 1), total=2).client()))
    source = (
        "import device\n"
        "for day in range(3):\n"
        "    client = device.load_memoised('question.json', 'state', 1)\n"
        "    print(client.report(3).hex())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, '.')\n{source}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    reports = [bytes.fromhex(line) for line in done.stdout.split()]
    assert HRR(8, 1).aggregate(HRR(8, 1).single_reports_from_bytes(reports)).n == 3


@pytest.mark.slow
def test_a_client_of_two_days_has_the_joint_law(tmp_path: Path) -> None:
    """By words that are drawn at random: how often both days send the same report.

    It is kept^2 of the permanent ones, and the rest by chance: within 5 standard deviations, a
    false-alarm rate below 1e-6. Fresh reports on both days are told from them.
    """
    question = Memoised(GRR(8, "1/2"), total=1)
    users = 600
    generator = random.Random(5)
    same = 0
    description = question.client()
    made = load_memoised(description, tmp_path / "state", 1, lambda: generator.getrandbits(64))
    empty = (tmp_path / "state").read_text()
    with patch.object(os, "fsync"):
        for _ in range(users):
            (tmp_path / "state").write_text(empty)
            same += made.report(2) == made.report(2)
    kept = float(question.kept)
    day = GRR(8, "1/2").mechanism.matrix[:, 2]
    blank = np.full(8, 1 / 8)
    permanent = blank + (day - blank) / kept
    expected = kept**2 + 2 * kept * (1 - kept) * permanent @ blank + (1 - kept) ** 2 * blank @ blank
    deviation = np.sqrt(expected * (1 - expected) / users)
    assert abs(same / users - expected) < 5 * deviation
    assert expected - day @ day > 7 * deviation


# ---------------------------------------------------------------- the vectors, in both languages


@cache
def committed() -> Any:
    """What is committed of reports of several days."""
    path = CLIENT.parent / "vectors" / "memoised.json"
    return json.loads(path.read_text(encoding="utf-8"))


def words_of(tape: str) -> list[int]:
    data = bytes.fromhex(tape)
    return [int.from_bytes(data[k : k + 8], "little") for k in range(0, len(data), 8)]


def value_of(content: Any) -> Any:
    """Marked texts as the integers that they spell."""
    if isinstance(content, list):
        return [value_of(one) for one in content]
    marked = isinstance(content, dict) and content.keys() == {"integer"}
    return int(content["integer"]) if marked else content


def test_the_vectors_are_of_today_and_of_every_step() -> None:
    """And of ties: where one more word is drawn than for the words beside."""
    told = [case.question.client(case.changes, 2) for case in KEPT]
    parts = committed()["protocols"]
    assert [part["client"] for part in parts] == told
    steps = {step["do"] for part in parts for step in every_step(part["client"]["report"])}
    assert steps == device._NODES.keys() - {"choice", "slots"}
    for part in parts[:8]:
        assert len({len(one["tape"]) for one in part["days"]}) > 1 or part["client"]["bytes"] == 1
    assert any(
        len(one["values"]) > len(json.loads(one["state"])["kept"]) + 1
        for part in parts
        for one in part["days"]
    )


def test_arrays_make_the_vectors() -> None:
    """Again, of some protocols."""
    vectors = pytest.importorskip("tools.vectors", reason="the tests may be of a package")
    for case, part in list(zip(KEPT, committed()["protocols"], strict=True))[::4]:
        for one in part["days"][:3]:
            found = vectors.days_of(case, words_of(one["tape"]))
            assert [report.hex() for report in found.reports] == one["reports"]
            assert list(found.words) == words_of(one["tape"])
            assert vectors.state_of(case, one["start"], found.kept) == one["state"]
    told = [{"wrong": wrong, "text": text} for wrong, text in vectors.damaged_states()]
    assert told == committed()["states"]


def test_the_device_makes_the_vectors(tmp_path: Path) -> None:
    """And refuses what is to be refused, without a word being drawn."""
    path = tmp_path / "state"
    with patch.object(os, "fsync"):
        for part in committed()["protocols"]:
            for one in part["days"]:
                words = iter(words_of(one["tape"]))
                client = load_memoised(part["client"], path, one["start"], words.__next__)
                reports = [client.report(value_of(value)) for value in one["values"]]
                assert [report and report.hex() for report in reports] == one["reports"]
                assert next(words, None) is None, "words were left over"
                assert path.read_text() == one["state"]
                path.unlink()
            client = load_memoised(part["client"], path, 1, iter(()).__next__)
            for value in map(value_of, part["refused"]):
                with pytest.raises(RefusedValue):
                    client.report(value)
            path.unlink()
    for state in committed()["states"]:
        path.write_text(state["text"])
        with pytest.raises(ClientError):
            load_memoised(committed()["protocols"][0]["client"], path)


def test_javascript_makes_the_vectors() -> None:
    """With the states of the other client, byte for byte."""
    wrong = evaluated(
        """
        import { readFileSync } from "node:fs";
        const { ClientError, loadMemoised } = await import("CLIENT/index.js");
        const { hex } = await import("CLIENT/description.js");
        const file = readFileSync(new URL("CLIENT/../vectors/memoised.json"), "utf8");
        const { protocols, states } = JSON.parse(file);
        const valueOf = (given) => {
          if (Array.isArray(given)) return given.map(valueOf);
          const marked = given && typeof given === "object" && given.integer;
          return marked ? BigInt(marked) : given;
        };
        const kept = (text) => {
          const store = { text, read: () => store.text, write: (more) => { store.text = more; } };
          return store;
        };
        const refused = (take) => {
          try {
            take();
          } catch (error) {
            return error instanceof ClientError;
          }
          return false;
        };
        const wrong = [];
        for (const { client, days, refused: values } of protocols) {
          for (const [place, one] of days.entries()) {
            const bytes = Uint8Array.from(one.tape.match(/../g), (byte) => parseInt(byte, 16));
            const tape = new BigUint64Array(bytes.buffer);
            let used = 0;
            const store = kept(null);
            const made = loadMemoised(client, store, one.start, () => tape[used++]);
            const reports = one.values.map((value) => hex(made.report(valueOf(value))));
            if (`${reports}` !== `${one.reports}` || used !== tape.length) {
              wrong.push([client.protocol, place, "reports"]);
            }
            if (store.text !== one.state) wrong.push([client.protocol, place, "state"]);
            // It goes on with the state of the other client, and writes nothing for old values
            const again = { read: () => one.state, write: () => wrong.push("written") };
            loadMemoised(client, again).report(valueOf(one.values[0]));
          }
          const made = loadMemoised(client, kept(null), 1, () => wrong.push("drawn"));
          for (const value of values.map(valueOf)) {
            if (!refused(() => made.report(value))) wrong.push([client.protocol, value]);
          }
        }
        for (const { wrong: damage, text } of states) {
          if (!refused(() => loadMemoised(protocols[0].client, kept(text)))) wrong.push(damage);
        }
        console.log(JSON.stringify(wrong));
        """
    )
    assert wrong == []


def test_javascript_begins_only_if_asked() -> None:
    """As the other client; and what a store throws is thrown on, and nothing kept."""
    found = evaluated(
        """
        const { ClientError, load, loadMemoised } = await import("CLIENT/index.js");
        const message = (take) => {
          try {
            return take() && "";
          } catch (error) {
            return `${error.name}: ${error.message}`;
          }
        };
        let text = null;
        let full = false;
        const write = (more) => {
          if (full) throw new Error("the store is full");
          text = more;
        };
        const store = { read: () => text, write };
        const found = [
          message(() => load(given)),
          message(() => loadMemoised(given, store)),
          ...[0, 3, "1", null].map((start) => message(() => loadMemoised(given, store, start))),
          text,
        ];
        const client = loadMemoised(given, store, 2);
        const begun = text;
        full = true;
        found.push(message(() => client.report(1)), text === begun);
        full = false;
        found.push(message(() => client.report(1)), text === begun);
        found.push(message(() => loadMemoised(given, store, 1)), client.start, client.day);
        text = null;
        found.push(message(() => client.report(1)));
        console.log(JSON.stringify(found));
        """,
        QUESTION.client(starts=2),
    )
    assert found[0].startswith("ClientError: version 2: use loadMemoised")
    assert found[1].startswith("ClientError: no state. To begin")
    assert all("is not one of 1 .. 2" in message for message in found[2:6])
    assert found[6] is None
    assert found[7:11] == ["Error: the store is full", True, "", False]
    assert found[11:] == [
        "ClientError: a state of start 2, not 1",
        2,
        "1",
        "ClientError: the state is lost",
    ]


def test_the_script_of_the_page_on_many_days() -> None:
    """A browser's store: the first visit asks for a number, and the second does not."""
    text = (CLIENT.parents[1] / "docs" / "longitudinal-devices.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"^```js\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    imports, rest = script.split("\n", 1)
    visit = f"{{ {rest} reports.push(report); }}"
    found = evaluated(
        imports.replace("./client", "CLIENT")
        + """
        const kept = new Map();
        globalThis.localStorage = {
          getItem: (name) => kept.get(name) ?? null,
          setItem: (name, text) => kept.set(name, text),
        };
        const asked = [];
        globalThis.fetch = async (address) => {
          asked.push(address);
          return { text: async () => JSON.stringify(given), json: async () => 1 };
        };
        const reports = [];
        """
        + visit
        + visit
        + "const { kept: held } = JSON.parse(kept.get('mood'));"
        + "console.log(JSON.stringify([asked, reports, held.length]));",
        QUESTION.client(),
    )
    asked, reports, held = found
    assert asked == ["mood.json", "next-start", "mood.json"]
    assert held == 1
    sent = [base64.b64decode(report) for report in reports]
    assert QUESTION.protocol.aggregate(QUESTION.protocol.single_reports_from_bytes(sent)).n == 2

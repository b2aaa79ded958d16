"""Write the vectors that clients in every language are compared with: clients/vectors/*.json.

    python -m tools.vectors            all families
    python -m tools.vectors grids      those named
    python -m tools.vectors memoised   reports of several days

A vector is a value of a user, a tape of random words, all of which are used, and the report. What
is right is what the array code of the server's package does for one user (`Channel.fill`), and
never what a client does. Tapes are random ones, and ones found by looking for changes: where
another word gives another report, the words on both sides of the change are kept, and where it
makes the draw read more words, as when a word is rejected or ties with a threshold, so are those
behind it.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate, islice, pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from frequency import HRR, Survey
from frequency.clients.device import canonical
from frequency.core.protocol import Protocol, channel_of
from frequency.core.transport import json_integer
from tests.clients.cases import KEPT, Case, Kept, families

FOLDER = Path(__file__).resolve().parents[1] / "clients" / "vectors"
WORD = 1 << 64
_MOST_WORDS = 1 << 13
_LONG = 64
_EXACT = 1 << 53

Outcome = tuple[bytes | None, tuple[int, ...]]
"""A report and the words that it took."""


@cache
def random_words(seed: int) -> tuple[int, ...]:
    """Words that look random, and are the same everywhere."""
    stream = hashlib.shake_256(f"vectors:{seed}".encode()).digest(8 * _MOST_WORDS)
    return struct.unpack(f"<{_MOST_WORDS}Q", stream)


class Tape:
    """A source of given words, and of random ones behind them."""

    def __init__(self, words: Sequence[int]) -> None:
        self.words, self.used = np.array(words, dtype=np.uint64), 0

    def __call__(self, size: int) -> np.ndarray:
        start, self.used = self.used, self.used + size
        if self.used <= len(self.words):
            return self.words[start : self.used]
        rest = max(start, len(self.words))
        more = np.array(random_words(0)[rest : self.used], dtype=np.uint64)
        return np.concatenate([self.words[start:], more])


def items_of(protocol: Any, value: Any) -> Any:
    """One user's value as `Channel.fill` takes it; None for a user who does not report."""
    if isinstance(protocol, Survey):
        row = value if isinstance(value, dict) else {protocol.schema.names[0]: value}
        encoded = protocol.schema.encode({name: [cell] for name, cell in row.items()})
        return None if encoded.skipped else protocol.inner_items(encoded)
    value = _listed(value)
    given = protocol.items_of([value]) if isinstance(protocol, Protocol) else [value]
    return channel_of(protocol).items_of(given)


def _listed(value: Any) -> Any:
    """A record by names, whose order is that of its attributes, as a list."""
    if isinstance(value, dict):
        return [*value.values()]
    return [*map(_listed, value)] if isinstance(value, list) else value


def sender(protocol: Any, value: Any) -> Callable[[Sequence[int]], Outcome]:
    """What makes one user's report of words, and says which it took, by the code for arrays."""
    channel = channel_of(protocol)
    wire = hashlib.shake_256(channel.signature.encode()).digest(8)
    idle = value is None and not isinstance(protocol, Survey)
    items = None if idle else items_of(protocol, value)

    def sent(words: Sequence[int]) -> Outcome:
        tape = Tape(words)
        if idle:
            reports = channel.idle(1, tape)  # type: ignore[attr-defined]
        elif items is None:
            return None, ()
        else:
            reports = np.zeros(1, dtype=channel.report_dtype)
            channel.fill(items, reports, tape)
        played = (*words[: tape.used], *random_words(0)[len(words) : tape.used])
        return wire + reports.tobytes(), played

    return sent


# ------------------------------------------------------------------------------- what users have


def values_of(takes: dict[str, Any]) -> list[Any]:
    """The first value, a middle one, the last, and others that are unlike these."""
    kind = takes["kind"]
    if kind == "item":
        size = int(takes["size"])
        found: list[Any] = [*dict.fromkeys((size // 2, 0, size - 1, min(1 << 53, size - 1)))]
    elif kind in ("string", "spelt"):
        longest = "\u00e9\U0001f600yz"
        while len(longest.encode()) > takes["bytes"]:
            longest = longest[1:]
        found = [longest.ljust(takes["bytes"] // 2, "~"), "", "a"]
    elif kind == "record":
        rows = ([int(s) // 2 for s in takes["sizes"]], [0 for _ in takes["sizes"]])
        last = [int(size) - 1 for size in takes["sizes"]]
        found = [*rows, dict(zip(takes["names"], last, strict=True))]
    elif kind == "set":
        one = values_of(takes["of"] or {"kind": "item", "size": takes["size"]})
        kept = [] if takes["kept"] is None else [[*takes["kept"], 0]]
        found = [one[:1], [], one, *kept]
        if takes["of"] is None:
            found.append([*range(min(int(takes["size"]), 7))][::-1])
    else:
        raise AssertionError(f"values of {kind} are to be given")
    return [*found, None] if takes.get("none", False) else found


def refused_of(takes: dict[str, Any]) -> list[Any]:
    """Values that are not taken."""
    kind = takes["kind"]
    if kind == "item":
        found: list[Any] = [-1, int(takes["size"]), 0.5, "0", True, [0], {}, WORD, -0.5, 1e300]
    elif kind in ("string", "spelt"):
        found = ["a" * (takes["bytes"] + 1), "a\0", "\ud83d", 5, ["a"], False, {}]
    elif kind == "record":
        first = [0 for _ in takes["sizes"]]
        over = [*first[:-1], int(takes["sizes"][-1])]
        found = [first[:-1], [*first, 0], over, [*first[:-1], "0"], [*first[:-1], None], 0, "0", {}]
        found.append(dict(zip([*takes["names"][:-1], "other"], first, strict=True)))
        found.append({**dict(zip(takes["names"], first, strict=True)), "other": 0})
    elif kind == "set":
        one = takes["of"] or {"kind": "item", "size": takes["size"]}
        found = [0, "0", {}, *([bad] for bad in refused_of(one))]
    else:
        raise AssertionError(f"values of {kind} are to be given")
    return found if takes.get("none", False) else [*found, None]


# ---------------------------------------------------------------------------------------- tapes


def steps(content: Any) -> Iterator[dict[str, Any]]:
    """All steps of a description."""
    if isinstance(content, dict):
        if "do" in content:
            yield content
        content = [*content.values()]
    if isinstance(content, list):
        for part in content:
            yield from steps(part)


def undecided(half: dict[str, Any]) -> Iterator[tuple[int, ...]]:
    """Words by which bits stay undecided to the last place, or to the one before."""
    for step in steps(half):
        if step["do"] not in ("bits", "subset"):
            continue
        weight = int(step["other" if step["do"] == "bits" else "start"])
        lanes = -(-int(step["places"]) // 64)
        for number, before in product((weight, weight - 1, weight ^ 1 << 9), range(4)):
            planes = [(WORD - 1) * (number >> place & 1) for place in range(63, -1, -1)]
            words = (word for word in planes for _ in range(lanes))
            yield (*random_words(1)[:before], *words)


def thresholds(half: dict[str, Any]) -> set[int]:
    """Words with which draws are compared, from the integers of a description's steps."""
    found: set[int] = set()
    for step in steps(half):
        lies = [(step["outcomes"], step["lie"])] if step["do"] == "lie" else []
        lies += step["attributes"] if step["do"] == "attributes" else []
        lies += [(step["field"][0] ** step["field"][1], step["lie"])] if "dimension" in step else []
        coins = [coin for coin in step.get("coins", ()) if "count" in coin]
        sizes = [coin["count"] for coin in coins] + [step.get("length", 1)]
        sizes += [2 * step["reach"] + 1, step["places"] - 1] if step["do"] == "wave" else []
        lies += [(int(size) + 1, WORD // int(size)) for size in sizes if size]
        for outcomes, lie in ((int(outcomes), int(lie)) for outcomes, lie in lies):
            found |= {lie, 2 * lie, (outcomes - 2) * lie, (outcomes - 1) * lie}
        weights = [step["acceptance"]] if step["do"] == "choice" else []
        weights += [step["weights"]] if step.get("weights") else []
        weights += [[step[name]] for name in ("own", "inclusion", "far") if name in step]
        found |= {end for row in weights for end in accumulate(map(int, row))}
        if step["do"] == "mixture":
            parts = len(step["kinds"])
            found |= {WORD // parts, (parts - 1) * WORD // parts}
        if step["do"] == "table":
            total = int(step["denominator"])
            rows = (accumulate(map(int, row)) for row in step["columns"])
            found |= {end * WORD // total for row in rows for end in row}
    return {word for word in found if 0 < word < WORD}


def coins(half: dict[str, Any]) -> Iterator[tuple[int, ...]]:
    """Users whose public coins are at the thresholds that these are compared with.

    The word behind keeps the reports of the largest likelihood alone.
    """
    if half["do"] != "choice":
        return
    found = {0, WORD - 1}
    for step in steps(half["then"]):
        if step["do"] == "bits":
            found |= {int(step["other"]), int(step["other"]) - 1}
        weights = step.get("weights") or ()
        if step["do"] == "table":
            rows = [sum(map(int, row)) for row in zip(*step["columns"], strict=True)]
            weights = [WORD * row // sum(rows) for row in rows if row]
            weights[weights.index(max(weights))] += WORD - sum(weights)
        ends = {end for end in accumulate(map(int, weights)) if 0 < end < WORD}
        found |= ends | {end - 1 for end in ends}
    kept = min(map(int, half["acceptance"]))
    for word, place in product(sorted(found)[:12], range(2)):
        user = _stirred_back(_stirred_back(word) - (place + 1) * 0x9E3779B97F4A7C15)
        yield (user - int(half["seed"])) % WORD, kept, kept


def _stirred_back(word: int) -> int:
    """The word of which SplitMix64 makes this one."""
    word = _shifted_back(word % WORD, 31) * pow(0x94D049BB133111EB, -1, WORD) % WORD
    word = _shifted_back(word, 27) * pow(0xBF58476D1CE4E5B9, -1, WORD) % WORD
    return _shifted_back(word, 30)


def _shifted_back(word: int, shift: int) -> int:
    return word ^ word >> shift ^ word >> 2 * shift


def starts(half: dict[str, Any]) -> Iterator[tuple[int, ...]]:
    """How tapes begin that are not found by looking for changes."""
    chosen = any(step["do"] == "choice" for step in steps(half))
    for seed in range(2, 26 if chosen else 6):
        yield random_words(seed)[:_LONG]
    yield from product((0, WORD - 1), repeat=3)
    yield (0,) * 8
    yield (WORD - 1,) * 4


def changes(
    run: Callable[[Sequence[int]], Outcome], words: Sequence[int], near: set[int]
) -> Iterator[list[Outcome]]:
    """Outcomes on both sides of changes, where one word is another: of those ``near``, of some."""
    close = {word + k for word in near for k in (-1, 0)}
    seen = [(len(words), 0, tuple(words))]
    for length, first, base in seen:
        places = [place for place in range(length) if place < 6 or place > length - 3]
        for place in places:
            if place < first:
                continue

            def at(word: int, place: int = place, base: tuple[int, ...] = base) -> Outcome:
                return run((*base[:place], word, *base[place + 1 :]))

            def kind(word: int, at: Any = at) -> tuple[bytes | None, int]:
                report, used = at(word)
                return report, len(used)

            half, some = WORD // 2, random_words(2)[place : place + 6]
            grid = sorted({0, 1, half - 1, half, WORD - 2, WORD - 1, base[place], *some, *close})
            kinds = [kind(word) for word in grid]
            ends = [
                pair for pair, (a, b) in zip(pairwise(grid), pairwise(kinds), strict=True) if a != b
            ]
            if len(set(kinds)) == len(grid):  # whatever the word, another report: a public coin
                ends = []
            known = [pair for pair in ends if pair[1] in near]
            wide = [pair for pair in ends if pair[1] not in near]
            wide = [*wide[:1], *wide[len(wide) // 2 :][:1], *wide[-1:]]
            for low, high in dict.fromkeys([*known[:4], *known[-4:], *wide]):
                below = kind(low)
                while high - low > 1:
                    middle = (low + high) // 2
                    if kind(middle) == below:
                        low = middle
                    else:
                        high = middle
                around = [at(word) for word in (low, high, min(high + 1, WORD - 1))]
                yield around
                for _, used in around:
                    mine = len(used), place + 1
                    if len(seen) < 6 and len(used) != length and mine not in {s[:2] for s in seen}:
                        seen.append((*mine, used))


def tapes(
    run: Callable[[Sequence[int]], Outcome], half: dict[str, Any], explored: bool
) -> Iterator[Outcome]:
    """Outcomes with the tapes that lead to them; ``explored``: of one value of several."""
    first = run(random_words(1)[:_LONG])
    if explored or len(first[1]) <= 4 * _LONG:
        yield first
    if len(first[1]) > 4 * _LONG:
        return
    yield from map(run, coins(half))
    begun = map(run, starts(half))
    yield from begun if explored else islice(begun, 8)
    if explored:
        rare = [found for found in map(run, undecided(half)) if len(found[1]) > 3 * _LONG // 4]
        yield from sorted(rare, key=lambda found: len(found[1]))[:4]
    if first[1] and (explored or len(first[1]) <= 4):
        found = [*changes(run, first[1], thresholds(half))]
        for around in found[:: 1 + len(found) // (16 if explored else 6)]:
            yield from around


def vectors(case: Case) -> list[dict[str, Any]]:
    """For each value of a user the tapes and reports: most of the first value."""
    protocol, half = case.protocol, case.protocol.client_half
    values = values_of(protocol.client()["takes"]) if case.values is None else case.values
    result = []
    for number, value in enumerate(values):
        found = dict.fromkeys(tapes(sender(protocol, value), half, number == 0))
        result.append(
            {
                "value": plain(value),
                "reports": [
                    [struct.pack(f"<{len(words)}Q", *words).hex(), report and report.hex()]
                    for report, words in found
                ],
            }
        )
    return result


# ------------------------------------------------------------------------------- reports of days


class Played(np.random.Generator):
    """A generator whose words are those of a tape."""

    def __init__(self, words: Sequence[int]) -> None:
        super().__init__(np.random.PCG64(0))
        self.tape = Tape(words)

    def integers(self, low: int, high: int, size: int, dtype: Any) -> Any:  # type: ignore[override]
        """The next words, whatever the interval."""
        return self.tape(size)


class Days(NamedTuple):
    """What one user sends on some days, and then keeps: items, and their reports."""

    reports: tuple[bytes, ...]
    kept: tuple[tuple[Any, bytes], ...]
    words: tuple[int, ...]


def days_of(case: Kept, words: Sequence[int]) -> Days:
    """By the code for arrays, which knows nothing of a largest number of values."""
    question, told, known = case.question, list[Any](), list[Any]()
    for value in case.values:
        if value not in known and len(known) <= case.changes:
            known.append(value)
        told.append(value if value in known else known[-1])
    rng, wire = Played(words), question.protocol.wire
    state = question.start(told[:1], rng)
    sent = tuple(wire + question.privatize(state, [one], rng).tobytes() for one in told)
    items = state.items[: len(known), 0].tolist()
    kept = zip(items, (one.tobytes() for one in state.reports[: len(known), 0]), strict=True)
    used = (*words[: rng.tape.used], *random_words(0)[len(words) : rng.tape.used])
    return Days(sent, tuple(kept), used)


def state_of(case: Kept, start: int, kept: Sequence[tuple[Any, bytes]]) -> str:
    """The text of a state."""
    client = case.question.client(case.changes, 2)["digest"]
    reports = [[_integers(item), payload.hex()] for item, payload in kept]
    return signed(
        format="mechdesign.permanent_reports", version=1, client=client, start=start, kept=reports
    )


def signed(**content: Any) -> str:
    """Canonical JSON with its digest."""
    digest = hashlib.shake_256(canonical(content).encode()).hexdigest(32)
    return canonical({**content, "digest": f"shake256:{digest}"})


def _integers(item: Any) -> Any:
    """An item of arrays, whose words have signs, as a state has it."""
    return [*map(_integers, item)] if isinstance(item, list) else json_integer(item % WORD)


def tapes_of_days(case: Kept) -> Iterator[Days]:
    """Of random words, and on both sides of the chances to keep a report, and at them."""
    told = case.question.client()["memoised"]
    chances = [told["kept"], *told["permanent"][:2], *told["blank"][:2]]
    near = {WORD * int(above) // int(below) for above, below in chances}
    ends = sorted(word for word in near if 0 < word < WORD - 1)
    base = days_of(case, random_words(1)[:_LONG])
    yield base
    yield days_of(case, random_words(2)[:_LONG])
    found = dict[tuple[int, str], Days]()
    for place, end in product(range(min(12, len(base.words))), ends):
        for word in (end - 1, end, end + 1):
            changed = (*base.words[:place], word, *base.words[place + 1 :])
            one = days_of(case, changed)
            found.setdefault((len(one.words), str(one.kept)), one)
    yield from [*found.values()][:: 1 + len(found) // 8]


def damaged_states() -> Iterator[tuple[str, str]]:
    """States that the client of the first question must refuse: what is wrong, and the text."""
    case = KEPT[0]
    kept = days_of(case, random_words(1)[:_LONG]).kept
    good = state_of(case, 1, kept)
    content = {key: value for key, value in json.loads(good).items() if key != "digest"}
    (item, report), other = content["kept"]
    yield "nothing", ""
    yield "cut off", good[:-2]
    yield "bytes behind it", f"{good}x"
    yield "a list", "[]"
    yield "a description", json.dumps(case.question.client(case.changes, 2))
    yield "a changed report", good.replace(f'[[{item},"{report}"', f'[[{item},"0{4 - item}"')
    yield "another digest", json.dumps({**json.loads(good), "digest": "shake256:00"})
    yield "no digest", json.dumps(content)
    yield "another format", signed(**{**content, "format": "mechdesign.client"})
    yield "another version", signed(**{**content, "version": 2})
    yield "a version that is no number", signed(**{**content, "version": "1"})
    yield "another question", state_of(KEPT[1], 1, ())
    yield "more changes", state_of(case._replace(changes=2), 1, kept)
    for start in (0, 3, -1, "1", None, True):
        yield f"start {start!r}", signed(**{**content, "start": start})
    yield "a third value", signed(**{**content, "kept": [[item, report], other, [4, "00"]]})
    for beyond in (case.question.protocol.domain, -1, 1 << 70, [0], "x", True):
        yield f"an item {beyond!r:.9}", signed(**{**content, "kept": [[beyond, report]]})
    yield "an item twice", signed(**{**content, "kept": [[item, report], [item, report]]})
    for wrong in ("", "0", "0000", "xy", 5, None):
        yield f"a report {wrong!r}", signed(**{**content, "kept": [[item, wrong]]})
    odd: tuple[Any, ...] = (None, 7, [7], [[]], [[item]], [[item, report, 1]])
    for pairs in odd:
        yield f"reports {pairs!r}", signed(**{**content, "kept": pairs})
    yield "another key", signed(**content, more=1)
    yield "nested too deeply", "[" * 10_000


def text_of_days() -> str:
    """The file of reports of several days."""
    parts = []
    for case in KEPT:
        client = case.question.client(case.changes, 2)
        days = [
            {
                "values": plain(list(case.values)),
                "start": 1 + number % 2,
                "tape": struct.pack(f"<{len(one.words)}Q", *one.words).hex(),
                "reports": [report.hex() for report in one.reports],
                "state": state_of(case, 1 + number % 2, one.kept),
            }
            for number, one in enumerate(tapes_of_days(case))
        ]
        refused = [plain(one) for one in refused_of({**client["takes"], "none": False})]
        parts.append(
            f'{{"client":{lines([client])},\n"refused":{lines([refused])},\n'
            f'"days":[\n{lines(days)}\n]}}'
        )
    together = ",\n".join(parts)
    states = lines([{"wrong": wrong, "text": text} for wrong, text in damaged_states()])
    head = '"format":"mechdesign.vectors","version":1,"family":"memoised"'
    return f'{{{head},"states":[\n{states}\n],\n"protocols":[\n{together}\n]}}\n'


# ---------------------------------------------------------------------------------------- files


def plain(value: Any) -> Any:
    """A value as the files have it: integers that JavaScript would round are marked texts."""
    if isinstance(value, int) and abs(value) >= _EXACT:
        return {"integer": str(value)}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value


def value_of(content: Any) -> Any:
    """What `plain` wrote."""
    if isinstance(content, dict):
        if content.keys() == {"integer"}:
            return int(content["integer"])
        return {name: value_of(one) for name, one in content.items()}
    return [value_of(one) for one in content] if isinstance(content, list) else content


def lines(entries: Sequence[Any]) -> str:
    """A list of JSON, an entry a line."""
    return ",\n".join(json.dumps(one, sort_keys=True, separators=(",", ":")) for one in entries)


def text_of(family: str, cases: Sequence[Case]) -> str:
    """A family's file."""
    parts = []
    for case in cases:
        client = case.protocol.client()
        refused = case.refused or refused_of(client["takes"])
        parts.append(
            f'{{"client":{lines([client])},\n"refused":{lines([plain(refused)])},\n'
            f'"vectors":[\n{lines(vectors(case))}\n]}}'
        )
    together = ",\n".join(parts)
    head = f'"format":"mechdesign.vectors","version":1,"family":"{family}"'
    return f'{{{head},"protocols":[\n{together}\n]}}\n'


def damaged() -> Iterator[tuple[str, str]]:
    """Files of which no client is to be made: what is wrong with each, and its text."""
    good = HRR(5, 1.0).client()
    steps, lie = good["report"], good["report"]["then"]

    def changed(**entries: Any) -> str:
        """With a digest that matches; entries that are None are left out."""
        rest = {key: value for key, value in {**good, **entries}.items() if value is not None}
        del rest["digest"]
        digest = hashlib.shake_256(canonical(rest).encode()).hexdigest(32)
        return json.dumps({**rest, "digest": f"shake256:{digest}"})

    text = json.dumps(good)
    yield "nothing", ""
    yield "cut off", text[:-20]
    yield "bytes behind it", text + "}"
    for other in ("null", "[]", "{}", "7", json.dumps([good])):
        yield "no description", other
    yield "another format", changed(format="mechdesign.oracle")
    for version in (0, 2, "1", True, [1]):
        yield f"version {version!r}", changed(version=version)
    for key in ("format", "version", "takes", "report", "protocol", "epsilon", "odds", "wire"):
        yield f"no {key}", changed(**{key: None})
    yield "no digest", json.dumps({key: value for key, value in good.items() if key != "digest"})
    yield "another digest", json.dumps({**good, "digest": good["digest"][:-1] + "x"})
    more = {**lie, "lie": str(int(lie["lie"]) - 1)}
    yield "a changed lie", json.dumps({**good, "report": {**steps, "then": more}})
    yield "a changed size", json.dumps({**good, "takes": {"kind": "item", "size": 6}})
    yield "values of an unknown kind", changed(takes={"kind": "graph", "size": 5})
    yield "values without a kind", changed(takes={"size": 5})
    yield "values without a size", changed(takes={"kind": "item"})
    yield "an unknown step", changed(report={"do": "noise", "scale": 1})
    yield "a step without a name", changed(report={"lie": 1})
    yield "an unknown step inside", changed(report={**steps, "then": {"do": "noise"}})
    yield "an unknown expression", changed(report={**steps, "cell": ["square"]})
    yield "a list of steps", changed(report=[steps])
    rest = {key: value for key, value in lie.items() if key != "lie"}
    yield "no lie", changed(report={**steps, "then": rest})
    yield "a lie that is no number", changed(report={**steps, "then": {**lie, "lie": "much"}})
    for number in (0, -1, WORD):
        wrong = {**lie, "lie": number}
        yield f"a lie of {number} words", changed(report={**steps, "then": wrong})
    yield "nested too deeply", "[" * 10_000
    yield "a protocol without one", json.dumps({"format": "mechdesign.protocol", "client": None})
    inside = {"format": "mechdesign.protocol", "version": 2, "client": {**good, "bytes": 9}}
    yield "a protocol file with a changed one", json.dumps(inside)


def text_of_damaged() -> str:
    """The file of damaged files."""
    entries = lines([{"wrong": wrong, "text": text} for wrong, text in damaged()])
    return f'{{"format":"mechdesign.vectors","version":1,"files":[\n{entries}\n]}}\n'


def main(names: list[str]) -> int:
    """Write the files of the families named, or of all, and of damaged files."""
    for family, cases in families().items():
        if not names or family in names:
            (FOLDER / f"{family}.json").write_text(text_of(family, cases))
    if not names or "memoised" in names:
        (FOLDER / "memoised.json").write_text(text_of_days())
    (FOLDER / "damaged.json").write_text(text_of_damaged())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

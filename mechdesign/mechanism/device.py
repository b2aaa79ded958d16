"""Release counts from a saved mechanism with nothing but the standard library.

This file depends on no other: copy it to a device that has Python and no packages, beside the
mechanism's JSON file. It checks the digest, the table and the privacy of the file, and draws
exactly, by integers.

    python device.py wm.json 3 5 2
    python device.py wm.json < counts.txt

Other users of the machine can see true counts on a command line, but not those in a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import stat
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

_KEYS = {
    "format",
    "version",
    "alpha",
    "neighbours",
    "denominator",
    "weights",
    "certificate",
    "digest",
}


_VALUES = {"inputs", "outputs"}
"""The keys of version 2 besides: what inputs and outputs stand for."""

_LAW = {"law", "n", "law_alpha", "margin"}
"""The keys of version 3, of closed forms, in place of the table."""

_PACKED = {"rows", "numbers"}
"""The keys of version 4 in place of the weights, besides those of version 2."""

_DELTA = {"delta"}
"""The keys of version 5, of privacy with a delta, besides those of version 2."""

_UNPACKED = 50_000_000
"""The most characters of a packed table that count as those of the file."""

_WORK = 1_000_000_000
"""Nanoseconds, estimated, that the comparisons may take for each full or partial megabyte."""


class Device:
    """A mechanism read from ``path``.

    Raises ValueError, with the reason, for a file that is damaged or makes a false claim.

    ``below(m)`` must return a uniform integer in 0 .. m-1; the default is the operating system's
    randomness.
    """

    def __init__(self, path: str, below: Callable[[int], int] = secrets.randbelow) -> None:
        try:
            self.size = Path(path).stat().st_size
            columns = self._checked(_read(path))
        except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
            raise ValueError(f"malformed: {error!r:.100}") from error
        self.cumulative = [list(accumulate(column)) for column in columns or ()]
        self.below = below

    def _checked(self, content: Any) -> list[list[int]] | None:
        """The columns of integer weights, after everything that was claimed has been checked.

        None for a closed form, which is kept as ``law``.
        """
        self.law: DeviceLaw | None = None
        version = content["version"]
        if (
            content["format"] != "mechdesign.mechanism"
            or type(version) is not int
            or version not in (1, 2, 3, 4, 5)
        ):
            raise ValueError("not a mechanism file of version 1 to 5")
        keys = _KEYS if version == 1 else _KEYS | _VALUES
        if version == 3:
            keys = _KEYS - {"denominator", "weights"} | _LAW
        if version == 4:
            keys = _KEYS - {"weights"} | _VALUES | _PACKED
        if version == 5:
            keys = _KEYS | _VALUES | _DELTA
        if set(content) != keys:
            raise ValueError(f"the keys are not {', '.join(sorted(keys))}")
        rest = {key: value for key, value in content.items() if key != "digest"}
        digest = hashlib.sha256(
            json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()
        ).hexdigest()
        if content["digest"] != f"sha256:{digest}":
            raise ValueError("the digest does not match: the file was changed after it was written")
        if version == 3:
            self.law = DeviceLaw(content)
            return None
        self.denominator = _integer(content["denominator"])
        if version == 4:
            rows, long = content["rows"], len(content["denominator"])
            self.size += min(sum(map(len, rows)) * long, _UNPACKED)
            weights = _unpacked(rows, content["numbers"], _alpha(content["alpha"]))
        else:
            weights = [[_integer(entry) for entry in row] for row in content["weights"]]
        columns = [list(column) for column in zip(*weights, strict=True)]
        if (
            not columns
            or self.denominator < 1
            or any(sum(column) != self.denominator or min(column) < 0 for column in columns)
        ):
            raise ValueError("a column is not a probability distribution")
        top, bottom = _alpha(content["alpha"])
        delta = _alpha(content["delta"], "delta") if version == 5 else None
        self._check_private(columns, content["neighbours"], top, bottom, delta)
        self._set_labels(content, len(columns), len(columns[0]))
        return columns

    def _set_labels(self, content: dict[str, Any], inputs: int, outputs: int) -> None:
        """The texts of true counts and of what is released; they are numbers in version 1."""
        counts = {"inputs": {"counts": [0, inputs - 1]}, "outputs": {"counts": [0, outputs - 1]}}
        described = {name: content.get(name, counts[name]) for name in counts}
        if "pairs" not in described["inputs"] and described["inputs"] != counts["inputs"]:
            raise ValueError("the inputs are not the counts from 0, nor pairs of counts")
        self.numbers = {
            label: number for number, label in enumerate(_labels(described["inputs"], inputs))
        }
        self.labels = _labels(described["outputs"], outputs)

    def _check_private(
        self,
        columns: list[list[int]],
        neighbours: Any,
        top: int,
        bottom: int,
        delta: tuple[int, int] | None,
    ) -> None:
        """Compare all neighbours; ValueError if that takes more than about a second a megabyte."""
        inputs, outputs, entry = len(columns), len(columns[0]), _limbs(self.denominator)
        left = _WORK * max(1, -(-self.size // 1_000_000))
        every = neighbours == "all" or (type(neighbours) is int and neighbours >= inputs > 1)
        if every and delta is None:
            # The inputs of largest and of smallest probability of each output are enough.
            rows = zip(*columns, strict=True)
            ends = {(row.index(min(row)), row.index(max(row)), 1) for row in rows}
            pairs: Iterator[tuple[int, int, int]] = iter(ends)
        else:
            pairs = _distances(neighbours, inputs)
        powers: dict[int, tuple[int, int]] = {}
        for j, k, distance in pairs:
            power = distance * _limbs(bottom)
            left -= 1500 + outputs * (120 + 3 * entry * power)
            left -= 3 * power**2 if distance not in powers else 0
            if left < 0:
                raise ValueError("it would take too long to check: too long, or too many, numbers")
            if distance not in powers:
                powers[distance] = top**distance, bottom**distance
            low, high = powers[distance]
            compared = list(zip(columns[j], columns[k], strict=True))
            if delta is None:
                apart = any(high * p < low * q or high * q < low * p for p, q in compared)
            else:
                # How much of the one is beyond 1 / alpha times the other, both ways
                most = max(
                    sum(max(0, low * p - high * q) for p, q in compared),
                    sum(max(0, low * q - high * p) for p, q in compared),
                )
                apart = most * delta[1] > delta[0] * low * self.denominator
            if apart:
                raise ValueError(
                    f"not private: inputs {j} and {k} can be told apart better than alpha"
                    f" {'allows' if delta is None else 'and delta allow'}"
                )

    def release(self, count: object) -> int:
        """One exact draw for a true count: the number of the output, of a closed form itself."""
        largest = len(self.cumulative) - 1 if self.law is None else self.law.n
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= largest:
            raise ValueError(f"{count!r} is not an integer between 0 and {largest}")
        if self.law is not None:
            return self.law.release(count, self.below)
        return bisect_right(self.cumulative[count], self.below(self.denominator))

    def answer(self, text: str) -> str:
        """One exact draw, as a text, for the text of a true count; of a pair of counts 3,5."""
        if self.law is not None:
            if not re.fullmatch("[0-9]{1,20}", text):
                raise ValueError(f"{text!r:.40} is not among 0 .. {self.law.n}")
            return str(self.release(int(text)))
        number = self.numbers.get(",".join(part.lstrip("0") or "0" for part in text.split(",")))
        if number is None:
            first, *_, last = self.numbers
            raise ValueError(f"{text!r:.40} is not among {first} .. {last}")
        return self.labels[self.release(number)]


class DeviceLaw:
    """The distributions of a closed form for the counts 0 .. n, as a file states them.

    Raises ValueError for a false claim.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self.name, self.n = content["law"], _integer(content["n"])
        margin = content["margin"]
        self.margin = None if margin is None else _integer(margin)
        self.top, self.bottom = _alpha(content["law_alpha"])
        top, bottom = _alpha(content["alpha"])
        largest = 1 << 62
        if not 0 <= self.n <= largest or not 0 <= (self.margin or 0) <= largest - self.n:
            raise ValueError("n or the margin is not a number from 0 to 2^62")
        if self.name == "uniform":
            known = self.top == self.bottom and self.margin == 0
        elif self.name == "explicit fair":
            known = self.margin == 0
        else:
            known = self.name == "geometric" and self.top < self.bottom
        if not known or (self.name == "geometric" and self.n == 0 == self.margin):
            raise ValueError("not a closed form that is known here")
        if self.name != "uniform":
            # Counts that differ by one change probabilities by a factor of at most 1/alpha.
            if content["neighbours"] != "adjacent" or self.top * bottom < top * self.bottom:
                raise ValueError("not private: neighbours can be told apart better than alpha says")
        elif content["neighbours"] not in ("adjacent", "all"):
            raise ValueError("neighbours are adjacent or all")

    def release(self, count: int, below: Callable[[int], int]) -> int:
        """One exact draw for a true count."""
        n = self.n
        if self.name == "uniform":
            return below(n + 1)
        if self.name == "geometric":
            output = count + self._geometric(below) - self._geometric(below)
            if self.margin is None:
                return output
            return min(max(output, -self.margin), n + self.margin)
        # The powers of alpha are 0 once, and 1, 2, .. twice each: noise that is drawn until it is
        # within n / 2; or, where that would be seldom, uniform numbers that are kept so often.
        half, rare = n // 2, n * (self.bottom - self.top) < self.bottom
        while True:
            if rare:
                power = below(n + 1) - half
                kept = self._geometric(below) >= abs(power)
            else:
                power = self._geometric(below) - self._geometric(below)
                kept = -half <= power <= n - half
            if kept:
                break
        mirrored = count > half
        margin = n - count if mirrored else count
        output = margin + power
        if abs(power) > margin:  # two by two on the longer side
            output = 2 * abs(power) - (power > 0)
        return n - output if mirrored else output

    def _geometric(self, below: Callable[[int], int]) -> int:
        """A number that is at least k with probability alpha^k, exactly."""
        # The largest k with U <= alpha^k for a uniform U, of as many bits as are needed.
        bits = 128
        prefix = below(1 << bits)

        def within(power: int) -> bool:
            nonlocal bits, prefix
            while True:
                low, high = self._power(power, bits)
                if prefix + 1 <= low:
                    return True
                if prefix >= high:
                    return False
                prefix, bits = (prefix << 64) | below(1 << 64), bits + 64

        most = 1
        while within(most):
            most *= 2
        least = most // 2
        while most - least > 1:
            middle = (least + most) // 2
            least, most = (middle, most) if within(middle) else (least, middle)
        return least

    def _power(self, exponent: int, bits: int) -> tuple[int, int]:
        """Integers on both sides of alpha^exponent 2^bits, by squaring."""
        work = bits + 2 * exponent.bit_length() + 8
        below = (self.top << work) // self.bottom
        above = -((-self.top << work) // self.bottom)
        low = high = 1 << work
        for digit in f"{exponent:b}":
            low, high = (low * low) >> work, -((-high * high) >> work)
            if digit == "1":
                low, high = (low * below) >> work, -((-high * above) >> work)
        return low >> (work - bits), -(-high >> (work - bits))


def _unpacked(rows: list[str], numbers: list[str], alpha: tuple[int, int]) -> list[list[int]]:
    """The weights of a table whose entries are mostly told by others."""
    top, bottom = alpha
    factors = {"=": (1, 1), "<": (top, bottom), ">": (bottom, top)}
    left = iter(numbers)
    weights: list[list[int]] = []
    for i, row in enumerate(rows):
        weights.append([])
        for j, mark in enumerate(row):
            if mark == "#":
                weight = _integer(next(left, "-1"))
            elif mark in factors and j:
                weight, rest = divmod(weights[i][-1] * factors[mark][0], factors[mark][1])
                if rest:
                    raise ValueError("an entry is no integer")
            elif mark == "^" and i:
                weight = weights[i - 1][j]
            elif mark == "o":
                weight = weights[len(rows) - 1 - i][len(row) - 1 - j]  # or IndexError
            else:
                raise ValueError(f"{mark!r} refers to no entry")
            weights[i].append(weight)
    if next(left, None) is not None:
        raise ValueError("there are too many numbers")
    return weights


def _alpha(text: str, name: str = "alpha") -> tuple[int, int]:
    """The numerator and the denominator of an alpha, or of a delta."""
    numerator, slash, denominator = text.partition("/")
    top, bottom = _integer(numerator), _integer(denominator) if slash else 1
    if not 0 < top <= bottom:
        raise ValueError(f"{name} is not in (0, 1]")
    return top, bottom


def _read(path: str) -> Any:
    """A JSON file that can be read in one way only."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("an object has a key twice")
        return content

    def refused(text: str) -> None:
        raise ValueError(f"{text:.20} is not in a mechanism file")

    def regular(path: str, flags: int) -> int:
        handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe may never end
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise ValueError("not a regular file")
        return handle

    with open(path, encoding="utf-8", opener=regular) as stream:
        return json.load(
            stream, object_pairs_hook=once, parse_float=refused, parse_constant=refused
        )


def _limbs(value: int) -> int:
    """The number of 30-bit digits in which Python stores a number."""
    return value.bit_length() // 30 + 1


def _integer(text: str) -> int:
    if not re.fullmatch("-?(?:[0-9]+|0x[0-9a-f]+)", text):
        raise ValueError(f"expected an integer, got {text!r:.40}")
    return int(text, 16 if "x" in text else 10)


def _labels(described: Any, size: int) -> list[str]:
    """The texts of counts, of bands or of pairs of counts."""
    (kind,) = described
    given = described[kind]
    ends = given if kind == "bands" else [given]
    if type(given) is not list or not all(
        len(each) == 2 and type(each[0]) is int and type(each[1]) is int for each in ends
    ):
        raise ValueError(f"the {kind} are not given by two integers")
    low, high = ends[0]
    broken, labels = kind not in ("counts", "bands", "pairs"), list[str]()
    if kind == "counts":
        broken = high - low + 1 != size
        labels = [str(low + k) for k in range(size)]
    elif kind == "pairs":
        broken = min(low, high) < 0 or (low + 1) * (high + 1) != size
        labels = [f"{k // (high + 1)},{k % (high + 1)}" for k in range(0 if broken else size)]
    elif kind == "bands":
        gaps = any(after[0] != before[1] + 1 for before, after in pairwise(ends))
        broken = len(ends) != size or gaps or any(low > high for low, high in ends)
        labels = [str(low) if low == high else f"{low}-{high}" for low, high in ends]
    if broken:
        raise ValueError(f"the {kind!r:.20} are not those of a table with {size}")
    return labels


def _distances(described: Any, inputs: int) -> Iterator[tuple[int, int, int]]:
    """Each pair of neighbours with its distance, the loss allowed as a multiple of epsilon."""
    if not isinstance(described, dict):
        yield from ((j, k, 1) for j, k in _neighbours(described, inputs))
        return
    table = described["distances"]
    if (
        len(described) != 1
        or len(table) != inputs
        or any(type(row) is not list or len(row) != inputs for row in table)
    ):
        raise ValueError(f"the distances are not a table of {inputs} x {inputs}")
    if all(entry is None for j, row in enumerate(table) for entry in row[:j]):
        raise ValueError("no inputs are neighbours")
    for j, row in enumerate(table):
        for k, entry in enumerate(row):
            if j != k and entry is None and table[k][j] is None:
                continue
            least, most = (0, 0) if j == k else (1, 1024)
            if type(entry) is not int or not least <= entry <= most or entry != table[k][j]:
                raise ValueError(f"{entry!r:.40} is not a distance from input {j} to {k}, and back")
            if j < k:
                yield j, k, entry


def _neighbours(described: Any, inputs: int) -> Iterator[tuple[int, int]]:
    if isinstance(described, list) and described:
        for j, k in described:
            if (
                type(j) is not int
                or type(k) is not int
                or j == k
                or not (0 <= j < inputs and 0 <= k < inputs)
            ):
                raise ValueError(f"{j!r}, {k!r} is not a pair of different inputs")
            yield j, k
    elif described in ("adjacent", "all") or (type(described) is int and described >= 1):
        reach = {"adjacent": 1, "all": inputs}.get(described, described)
        yield from ((j, k) for j in range(inputs) for k in range(j + 1, min(inputs, j + reach + 1)))
    else:
        raise ValueError(
            "neighbours must be adjacent, all, a distance, pairs of inputs or distances, got"
            f" {described!r:.40}"
        )


def main(arguments: list[str]) -> int:
    """Release the counts named after the file, or those on standard input.

    Returns the exit code: 2, after a message, if anything is wrong.
    """
    if not arguments or arguments[0].startswith("-"):
        print(
            "usage: device.py MECHANISM.json [COUNT ...]   (without counts: read from standard"
            " input)",
            file=sys.stderr,
        )
        return 2
    try:
        device = Device(arguments[0])
        texts = arguments[1:] or sys.stdin.read().split()
        released = [device.answer(text) for text in texts]
    except (ValueError, OSError) as error:
        print(f"device.py: {arguments[0]!r}: {error}", file=sys.stderr)
        return 2
    print(*released)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

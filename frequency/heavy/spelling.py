"""Spelling: texts of up to 64 bytes as bits, such that frequent letters take few of them.

A text's bytes of UTF-8, and an end, are spelt one after the other by a public prefix code. Zeros
follow. So texts that begin alike have words that begin alike, and what follows the end of a short
text costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from mechdesign.base import Words, set_fields, whole

LONGEST = 64  #: The length of the longest texts in bytes.

# The bytes at the beginning of a character, and 0 for the end of the text, by the lengths of their
# codes: a Huffman code for a mixture of names and words in many languages, numbers and addresses.
_CODES = {
    4: b"\0aeino",
    5: b"cdhlrstu",
    6: b" bgkmpy",
    7: b"-.fvwz\xc3\xd0\xd1",
    8: b"/0123456789_jx\xd8\xe0\xe3\xe5\xe6\xec\xf0",
    9: b",:@ABCDEFGHIJKLMNOPRSTVWq\xc4\xc5\xce\xcf\xd7\xd9\xe2\xe4\xe7\xe8\xe9\xea\xeb\xed",
    10: b"!#&'()+?QUXYZ\xe1\xef",
    11: b'"$%*;<=>[\\]^`{|}~\xc2',
}

_RAREST = 12  # the length of the other codes, and the most bits that a byte takes

_INSIDE = 6  # the length of the code of any other byte: what it is after its two highest bits, 10


def code_lengths() -> list[int]:
    """Return the code length of each byte at the beginning of a character, 0 where there is none.

    Codes are numbers in ascending order of their lengths, and of bytes among those of one length:
    first 0, then each one more than the one before, with zeros behind it if it is longer.
    """
    known = {byte: length for length, some in _CODES.items() for byte in some}
    rare = dict.fromkeys((*range(128), *range(194, 245)), _RAREST)
    every = {**rare, **known}
    return [every.get(byte, 0) for byte in range(256)]


@cache
def _codes() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the code of each byte at the beginning of a character, and its length."""
    lengths = np.array(code_lengths())
    codes, code, before = np.zeros(256, dtype=np.uint64), 0, 0
    # A canonical prefix code: lengths alone decide it, so that clients need no table of codes.
    for byte in np.lexsort((np.arange(256), lengths)).tolist():
        if length := int(lengths[byte]):
            code <<= length - before
            codes[byte], code, before = code, code + 1, length
    return codes, lengths


class _Machine(NamedTuple):
    """A machine over bits: which may follow. Node 0: between characters; node 1: after the end."""

    following: npt.NDArray[np.int16]  #: Shape (nodes, 2): the node after each bit, or -1.
    begun: npt.NDArray[np.int8]  #: Shape (nodes, 2): 1 if a byte is spelt to its end, else 0.
    missing: npt.NDArray[np.int8]  #: Shape (nodes,): bytes, at least, until the text can end.


@cache
def _machine() -> _Machine:
    following, begun, missing = [[-1, -1], [1, -1]], [[0, 0], [0, 0]], [0, 0]

    def node(needed: int) -> int:
        following.append([-1, -1])
        begun.append([0, 0])
        missing.append(needed)
        return len(following) - 1

    def inside(kept: str, then: int, needed: int) -> int:
        """Return the node from which six bits, the first one of those kept, lead to another."""
        starts = kept.split()
        nodes = {"": node(needed)}
        for depth in range(_INSIDE):
            for path in [path for path in nodes if len(path) == depth]:
                for bit in (0, 1):
                    longer = path + str(bit)
                    if not any(s.startswith(longer) or longer.startswith(s) for s in starts):
                        continue
                    if depth == _INSIDE - 1:
                        following[nodes[path]][bit], begun[nodes[path]][bit] = then, 1
                        continue
                    nodes[longer] = node(needed)
                    following[nodes[path]][bit] = nodes[longer]
        return nodes[""]

    # UTF-8 (RFC 3629, section 4): after E0, ED, F0 and F4 the next byte is restricted
    last = inside("0 1", 0, 1)
    middle = inside("0 1", last, 2)
    first = inside("0 1", middle, 3)
    special = {
        0xE0: inside("1", last, 2),
        0xED: inside("0", last, 2),
        0xF0: inside("01 1", middle, 3),
        0xF4: inside("00", middle, 3),
    }
    codes, lengths = _codes()
    for byte in np.flatnonzero(lengths).tolist():
        plain = 0 if byte < 0x80 else last if byte < 0xE0 else middle if byte < 0xF0 else first
        then = special.get(byte, plain) if byte else 1
        needed, here = (0 if not byte else 1 + missing[then]), 0
        for place in range(int(lengths[byte]) - 1, -1, -1):
            bit = int(codes[byte]) >> place & 1
            if not place:
                following[here][bit], begun[here][bit] = then, int(byte > 0)
                break
            if following[here][bit] < 0:
                following[here][bit] = node(needed)
            here = following[here][bit]
            missing[here] = min(missing[here], needed)
    return _Machine(
        np.array(following, dtype=np.int16),
        np.array(begun, dtype=np.int8),
        np.array(missing, dtype=np.int8),
    )


@cache
def _steps(node: int, step: int) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]:
    """Return the node after each sequence of ``step`` bits, or -1, and how many bytes they end."""
    machine, every = _machine(), np.arange(1 << step)
    nodes = np.full(len(every), node, dtype=np.int16)
    used = np.zeros(len(every), dtype=np.int8)
    for place in range(step - 1, -1, -1):
        bit = every >> place & 1
        used += np.where(nodes >= 0, machine.begun[nodes, bit], 0).astype(np.int8)
        nodes = np.where(nodes >= 0, machine.following[nodes, bit], -1).astype(np.int16)
    return nodes, used


class Prefixed(NamedTuple):
    """A group of prefixes of words, all of one length, and where they lead."""

    rows: Words  #: Shape (prefixes, limbs): zeros follow the prefix.
    nodes: npt.NDArray[np.int16]  #: Shape (prefixes,): -1 where no text begins like this.
    used: npt.NDArray[np.int8]  #: Shape (prefixes,): bytes that are spelt to their end.

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """The prefixes that are a whole text's: shape (prefixes,)."""
        return self.nodes == 1

    def only(self, chosen: Any) -> Prefixed:
        """Return some of them, by a mask, a slice or their places."""
        return Prefixed(self.rows[chosen], self.nodes[chosen], self.used[chosen])


@dataclass(frozen=True)
class Spelling:
    """A spelling of texts as words of 64 bits times `limbs`.

    They have up to ``size`` bytes of UTF-8, 1 .. 64: ValueError for another size.
    """

    size: int

    def __post_init__(self) -> None:
        set_fields(self, size=whole(self.size, "size", 1, LONGEST))

    @cached_property
    def limbs(self) -> int:
        """The number of integers of 64 bits of a word: it has room for any text."""
        return -(-self.most // 64)

    @cached_property
    def most(self) -> int:
        """The length of the longest word in bits, with its end."""
        return _RAREST * self.size + code_lengths()[0]

    @property
    def described(self) -> dict[str, Any]:
        """The description by which clients spell: see ``docs/wire.md``."""
        return {"kind": "spelt", "bytes": self.size, "limbs": self.limbs, "codes": code_lengths()}

    def words(self, texts: Sequence[bytes]) -> Words:
        """Return the words of texts.

        Parameters
        ----------
        texts : sequence of bytes
            UTF-8, of at most ``size`` bytes, none of them 0.

        Returns
        -------
        numpy.ndarray of uint64
            Shape (texts, limbs), the first bits in the highest places of the first limb.
        """
        codes, lengths = _codes()
        sizes = np.array([len(text) for text in texts], dtype=np.int64)
        width = int(sizes.max(initial=0)) + 1  # and the end, a byte 0
        padded = b"".join(text.ljust(width, b"\0") for text in texts)
        table = np.frombuffer(padded, dtype=np.uint8).reshape(len(sizes), width)
        rows = np.zeros((len(sizes), self.limbs + 1), dtype=np.uint64)
        bits = np.zeros(len(sizes), dtype=np.int64)
        for place in range(width):
            mine = np.flatnonzero(sizes >= place)
            byte = table[mine, place]
            follows = (byte >= 0x80) & (byte < 0xC0)
            length = np.where(follows, _INSIDE, lengths[byte])
            code = np.where(follows, byte & 0x3F, codes[byte]).astype(np.uint64)
            limb, room = bits[mine] >> 6, 64 - (bits[mine] & 63)
            # A code may go on in the next limb
            over = np.maximum(length - room, 0).astype(np.uint64)
            left = np.maximum(room - length, 0).astype(np.uint64)
            rows[mine, limb] |= code >> over << left
            rows[mine, limb + 1] |= np.where(
                over > 0, code << (np.uint64(64) - np.maximum(over, np.uint64(1))), 0
            ).astype(np.uint64)
            bits[mine] += length
        return rows[:, :-1]

    def texts(self, rows: Words) -> list[str]:
        """Return the texts of words.

        Parameters
        ----------
        rows : numpy.ndarray of uint64
            Shape (words, limbs), those of texts.

        Returns
        -------
        list of str
            Shape (words,).
        """
        codes, lengths = _codes()
        known = {
            (int(lengths[byte]), int(codes[byte])): byte
            for byte in np.flatnonzero(lengths).tolist()
        }
        texts = []
        for row in rows.tolist():
            bits, spelt = "".join(f"{limb:064b}" for limb in row), bytearray()
            place = 0
            while True:
                length = next(
                    size
                    for size in range(4, _RAREST + 1)
                    if (size, int(bits[place : place + size], 2)) in known
                )
                byte = known[length, int(bits[place : place + length], 2)]
                place += length
                if not byte:
                    break
                spelt.append(byte)
                for _ in range((byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)):
                    spelt.append(0x80 | int(bits[place : place + _INSIDE], 2))
                    place += _INSIDE
            texts.append(spelt.decode())
        return texts

    def bits(self, rows: Words) -> npt.NDArray[np.int64]:
        """Return how many bits of words spell their texts and the ends of these: shape (words,)."""
        nodes = np.zeros(len(rows), dtype=np.int16)
        bits = np.zeros(len(rows), dtype=np.int64)
        for place in range(self.most):
            bit = (rows[:, place >> 6] >> np.uint64(63 - (place & 63))) & np.uint64(1)
            bits += nodes != 1
            nodes = _machine().following[nodes, bit.astype(np.int64)]
            if (nodes == 1).all():
                break
        return bits

    @property
    def root(self) -> Prefixed:
        """The empty prefix."""
        none = np.zeros((1, self.limbs), dtype=np.uint64)
        return Prefixed(none, np.zeros(1, dtype=np.int16), np.zeros(1, dtype=np.int8))

    def children(
        self, parents: Prefixed, step: int
    ) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int8]]:
        """Return where all that ``step`` bits make of some prefixes leads.

        Parameters
        ----------
        parents : Prefixed
            The prefixes.
        step : int
            How many bits are appended, at least 1.

        Returns
        -------
        tuple of numpy.ndarray
            Shape (parents, 2^step) each: the nodes, -1 where no text of at most ``size`` bytes
            begins like this; and the bytes used.
        """
        missing = _machine().missing
        if not len(parents.nodes):
            none = np.zeros((0, 1 << step))
            return none.astype(np.int16), none.astype(np.int8)
        tables = [_steps(node, step) for node in parents.nodes.tolist()]
        nodes = np.stack([node for node, _ in tables])
        used = np.stack([more for _, more in tables]) + parents.used[:, None]
        nodes[(nodes >= 0) & (used + missing[nodes] > self.size)] = -1
        return nodes, used

    @staticmethod
    def ends(limbs: int, step: int, length: int) -> Words:
        """Return all sequences of ``step`` bits, as the last ones of prefixes of this length.

        Parameters
        ----------
        limbs : int
            Of the words.
        step : int
            How many bits, at least 0.
        length : int
            Of the prefixes that end with them, in bits.

        Returns
        -------
        numpy.ndarray of uint64
            Shape (2^step, limbs).
        """
        rows = np.zeros((1 << step, limbs), dtype=np.uint64)
        every = np.arange(1 << step, dtype=np.uint64)
        limb, here = divmod(length - 1, 64)
        rows[:, limb] = every << np.uint64(63 - here)
        if here + 1 < step:  # the first ones are in the limb before
            rows[:, limb - 1] = every >> np.uint64(here + 1)
        return rows

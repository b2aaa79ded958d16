"""The list of those that are found, from candidates with estimates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy

from frequency.algebra import WORD_BITS
from frequency.exceptions import InvalidQuestion, InvalidValue
from frequency.heavy.error_bound import ItemErrors
from frequency.heavy.found import Found, Gate, NamedItems
from frequency.heavy.prefixes import Walk
from frequency.heavy.spelling import LONGEST, Spelling
from mechdesign.base import Floats, Items, Words, checked_counts, is_whole, set_fields, shown, whole


def listed(
    universe: Universe,
    words: Words,
    estimates: Floats,
    *,
    considered: int,
    errors: ItemErrors,
    gates: Sequence[Callable[[Any], Any]],
    k: int | None,
    threshold: float | None,
    confidence: float,
    estimated: Callable[[Words], Floats] | None = None,
) -> Found:
    """Return the candidates, shapes (candidates,), that are frequent enough."""
    # The union bound over all items that were considered, not only over the candidates.
    noise = errors.beyond((1 - confidence) / considered)
    least = (
        threshold
        if threshold is not None
        else -np.inf
        if k is not None
        else np.nextafter(noise, np.inf)
    )
    order = np.argsort(-estimates, kind="stable")
    order = order[estimates[order] >= least][:k]
    # The k-th estimate was the cut of this run: what is below it has been lost there.
    if k is not None and len(order) == k:
        least = max(least, float(estimates[order[-1]]))
    chosen = estimates[order]
    deviations = errors.deviation(chosen)
    return Found(
        universe.values(words[order]),
        chosen,
        deviations**2,
        partial(half_of, errors, considered, chosen),
        errors.population,
        considered,
        noise,
        confidence,
        (*gates, Gate(least, errors.deviation)),
        named=None if estimated is None else partial(_named, universe, errors, estimated),
    )


def _named(
    universe: Universe, errors: ItemErrors, estimated: Callable[[Words], Floats], items: list[Any]
) -> NamedItems:
    """Return the estimates of items that nobody chose by their estimates."""
    frequencies = estimated(universe.words(items))
    half = partial(half_of, errors, len(frequencies), frequencies)
    return NamedItems(frequencies, errors.deviation(frequencies) ** 2, half)


class EstimateErrors(Protocol):
    """The errors of estimates of items: `ItemErrors`, or errors that differ between items."""

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviations of the estimates, if items have these frequencies."""

    def beyond(self, alpha: float) -> float | Floats:
        """Return what estimates exceed with probability ``alpha`` at most, for absent items."""


def half_of(
    errors: EstimateErrors | None, considered: int, frequencies: Floats, confidence: float
) -> Floats:
    """Return half of the lengths of the intervals of items, (items,), chosen from so many."""
    if errors is None or not len(frequencies):
        return np.zeros(len(frequencies))
    # The false coverage rate (Benjamini and Yekutieli 2005): of k selected from m, each interval at
    # the level 1 - (1 - confidence) k / m, half of it on either side.
    level = (1 - confidence) * len(frequencies) / considered / 2
    # Intervals are that much wider than normal ones as noise reaches further at this level.
    normal = -float(scipy.special.ndtri(level)) * errors.deviation(np.zeros(len(frequencies)))
    wider = np.maximum(1.0, errors.beyond(level) / normal)
    return wider * -float(scipy.special.ndtri(level)) * errors.deviation(frequencies)


def nothing(universe: Universe, confidence: float, n: int) -> Found:
    """Return the list from too few reports to say anything."""
    none = np.zeros(0)
    words = np.zeros(0, dtype=np.uint64)
    return Found(
        universe.values(words),
        none,
        none,
        partial(half_of, None, 0, none),
        n,
        0,
        np.inf,
        confidence,
        (),
    )


# ------------------------------------------------------------------------------------------------
# The list of frequent texts, whose estimates are from different numbers of users.


@dataclass(frozen=True)
class PooledErrors:
    """The errors of estimates of items, each from a number of users of its own."""

    kinds: Sequence[ItemErrors]
    which: Items  # shape (items,): whose errors each item's estimate has

    def deviation(self, frequency: Floats) -> Floats:
        """Return the standard deviations of the estimates, if items have these frequencies."""
        result = np.empty(len(self.which))
        for kind in np.unique(self.which).tolist():
            mine = self.which == kind
            result[mine] = self.kinds[kind].deviation(frequency[mine])
        return result

    def beyond(self, alpha: float) -> Floats:
        """Return what estimates exceed with probability ``alpha`` at most, for absent items."""
        result = np.empty(len(self.which))
        for kind in np.unique(self.which).tolist():
            result[self.which == kind] = self.kinds[kind].beyond(alpha)
        return result


def listed_texts(
    universe: Universe, walk: Walk, k: int | None, threshold: float | None, confidence: float
) -> Found:
    """Return the texts that were reached and are frequent enough.

    Of k at most those are listed whose estimates stand out most from their noise: what is found of
    long texts is found by few users.
    """
    if not walk.users[0]:
        return nothing(universe, confidence, walk.population)
    kinds = [walk.errors(number) if users else None for number, users in enumerate(walk.users)]
    known = [errors for errors in kinds if errors is not None]
    considered = max(walk.considered, 1)
    alpha = (1 - confidence) / considered
    there = walk.users[walk.ends] > 0
    words, ends = walk.words[there], walk.ends[there]
    estimates = walk.estimated(words, ends)
    noise = PooledErrors(known, ends).beyond(alpha)
    # Estimates of long texts have more noise: ranked by frequency alone they would fill the list.
    out = estimates / noise
    if threshold is not None:
        least = np.full(len(words), float(threshold))
    else:
        least = np.nextafter(noise, np.inf) if k is None else np.full(len(words), -np.inf)
    order = np.argsort(-out, kind="stable")
    order = order[(estimates >= least)[order]][:k]
    full = k is not None and len(order) == k
    beyond = float(out[order[-1]]) if full else -np.inf
    order = order[np.argsort(-estimates[order], kind="stable")]
    errors, chosen = PooledErrors(known, ends[order]), estimates[order]
    last = int(ends[order].max(initial=0))
    top = known[last].beyond(alpha)
    cut = threshold if threshold is not None else top if k is None else -np.inf
    return Found(
        universe.values(words[order]),
        chosen,
        errors.deviation(chosen) ** 2,
        partial(half_of, errors, considered, chosen),
        walk.population,
        considered,
        noise[order],
        confidence,
        (*walk.gates[: last + 1], Gate(max(cut, beyond * top), known[last].deviation)),
        f"it is spelt in at most {walk.channel.lengths[last]} bits",
        partial(_named_texts, universe, walk, known),
    )


def _named_texts(
    universe: Universe, walk: Walk, kinds: Sequence[ItemErrors], texts: list[Any]
) -> NamedItems:
    """Return the estimates of texts that nobody chose by their estimates."""
    words = universe.words(texts)
    ends = walk.ends_of(words)
    if not walk.users[ends].all():
        text = texts[int(np.argmin(walk.users[ends]))]
        raise InvalidQuestion(f"nobody reported on texts as long as {text!r:.80}")
    frequencies = walk.estimated(words, ends)
    errors = PooledErrors(kinds, ends)
    half = partial(half_of, errors, len(frequencies), frequencies)
    return NamedItems(frequencies, errors.deviation(frequencies) ** 2, half)


# ------------------------------------------------------------------------------------------------
# Universe: the integers or strings that users may hold, as words of bits.


@dataclass(frozen=True)
class Universe:
    """A universe: the integers 0 .. 2^bits - 1, or strings of up to bits / 8 bytes of UTF-8.

    A string's word is its bytes, the first one in front, filled up with zeros: strings that begin
    alike have words that begin alike, as protocols over prefixes need. U+0000, like the filling, is
    in no string. Of more than 8 bytes the word is spelt by a code, in which frequent letters take
    fewer bits: see `frequency.heavy.spelling`.

    Parameters
    ----------
    bits : int
        The length of a word, 1 .. 64; of strings a multiple of 8, up to 512 (64 bytes of UTF-8).
    text : bool, default False
        True: the values are strings, the empty one included.

    Raises
    ------
    ValueError
        A parameter out of range.
    """

    bits: int
    text: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.text, bool):
            raise ValueError(
                f"text must be True for strings or False for integers, got {shown(self.text)}"
            )
        set_fields(self, bits=whole(self.bits, "bits", 1, 8 * LONGEST if self.text else WORD_BITS))
        if self.text and self.bits % 8:
            raise ValueError(
                f"strings are whole bytes: bits must be a multiple of 8, got {self.bits}"
            )

    @cached_property
    def spelling(self) -> Spelling | None:
        """The spelling of strings of more than 8 bytes; None for other values."""
        return Spelling(self.bits // 8) if self.bits > WORD_BITS else None

    def words(self, values: Any) -> Words:
        """Return the words of some values.

        Parameters
        ----------
        values : array_like
            Integers, or strings, one-dimensional (or a single one).

        Returns
        -------
        numpy.ndarray of uint64
            Shape (values,); of strings of more than 8 bytes (values, limbs): see `Spelling`.

        Raises
        ------
        InvalidValue
            The first value that is no integer or string of this universe.
        """
        if self.text:
            return self._of_strings(values)
        if self.bits <= 53:
            words = checked_counts(values, (1 << self.bits) - 1, InvalidValue).astype(np.uint64)
        else:
            words = self._of_long_integers(values)
        if words.ndim > 1:
            raise ValueError(
                f"values must be one-dimensional, one item a user, got shape {words.shape}"
            )
        return words.reshape(-1)

    def _of_long_integers(self, values: Any) -> Words:
        # Neither floats nor int64 hold them all, and numpy makes floats of lists that mix both
        # signs of 2^63.
        largest = (1 << self.bits) - 1
        array = (
            values
            if isinstance(values, np.ndarray) and values.dtype.kind in "iu"
            else np.array(values, dtype=object)
        )
        if isinstance(values, np.ma.MaskedArray):
            array = np.asarray(np.ma.filled(values.astype(object), None))
        if array.dtype.kind in "iu":
            bad = (array < 0) | (array > largest)
        else:
            good = [is_whole(v) and 0 <= v <= largest for v in array.ravel()]
            bad = ~np.array(good, dtype=np.bool_).reshape(array.shape)
        if bad.any():
            place = int(np.argmax(bad.ravel()))
            raise InvalidValue(place, array.flat[place], largest)
        return array.astype(np.uint64)

    def _of_strings(self, values: Any) -> Words:
        if isinstance(values, str):
            values = [values]
        size, spelt = self.bits // 8, []
        for place, value in enumerate(_listed(values)):
            try:
                encoded = value.encode() if isinstance(value, str) and "\0" not in value else None
            except UnicodeEncodeError:  # half of a surrogate pair
                encoded = None
            if encoded is None or len(encoded) > size:
                raise InvalidString(place, value, size)
            spelt.append(encoded)
        if self.spelling is not None:
            return self.spelling.words(spelt)
        spelt = [encoded.ljust(size, b"\0") for encoded in spelt]
        table = np.frombuffer(b"".join(spelt), dtype=np.uint8).reshape(len(spelt), size)
        result = np.zeros(len(spelt), dtype=np.uint64)
        for column in table.T:
            result = result << np.uint64(8) | column
        return result

    def values(self, words: Words) -> npt.NDArray[Any]:
        """Return the values that have these words.

        Parameters
        ----------
        words : numpy.ndarray of uint64
            As `words` makes them; for strings possible ones: see `possible`.

        Returns
        -------
        numpy.ndarray
            Shape (values,): integers (uint64 only where bits is 64), or strings as objects.
        """
        if not self.text:
            return words.astype(np.int64) if self.bits < 64 else words
        size = self.bits // 8
        result = np.empty(len(words), dtype=object)
        if self.spelling is not None:
            result[:] = self.spelling.texts(words)
            return result
        result[:] = [int(word).to_bytes(size, "big").rstrip(b"\0").decode() for word in words]
        return result

    def possible(self, prefixes: Words, length: int) -> npt.NDArray[np.bool_]:
        """Return which prefixes some value's word has: all of integers, not all bytes are UTF-8.

        Parameters
        ----------
        prefixes : numpy.ndarray of uint64
            Shape (prefixes,).
        length : int
            Of each prefix in bits, 0 .. bits.

        Returns
        -------
        numpy.ndarray of bool
            Shape (prefixes,).
        """
        good = np.ones(len(prefixes), dtype=np.bool_)
        if not self.text:
            return good
        whole, rest = divmod(length, 8)
        state = self._states(prefixes, length)
        if rest:
            # Of the bytes that begin with these bits, one must be able to follow, with room for its
            # character to end.
            room = self.bits // 8 - whole - 1
            fits = (_NEXT != _NONE) & (_MISSING[_NEXT] <= room)
            some = fits.reshape(len(_NEXT), 1 << rest, -1).any(axis=2)
            good = some[state, prefixes.astype(np.int64) & ((1 << rest) - 1)]
        return good & (state != _NONE) & (_MISSING[state] <= self.bits // 8 - whole)

    def _states(self, prefixes: Words, length: int) -> npt.NDArray[np.int64]:
        """Return where the whole bytes of prefixes of this length lead."""
        state = np.zeros(len(prefixes), dtype=np.int64)
        for place in range(length // 8):
            byte = (prefixes >> np.uint64(length - 8 * place - 8)).astype(np.int64) & 0xFF
            state = _NEXT[state, byte]
        return state

    def possible_children(self, parents: Words, length: int, step: int) -> npt.NDArray[np.bool_]:
        """Return which prefixes that are ``step`` bits longer some value's word has.

        Parameters
        ----------
        parents : numpy.ndarray of uint64
            Shape (parents,): prefixes.
        length, step : int
            Bits of the parents, 0 .. bits - step; and how many follow, at least 0.

        Returns
        -------
        numpy.ndarray of bool
            Shape (parents, 2^step): of all that can follow, in order.
        """
        every = np.arange(1 << step, dtype=np.uint64)
        if not self.text:
            return np.ones((len(parents), len(every)), dtype=np.bool_)
        # It depends on where the whole bytes lead, and on the bits after them
        rest = length % 8
        kinds = self._states(parents, length) << rest | parents.astype(np.int64) & (1 << rest) - 1
        _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
        children = parents[first, None] << np.uint64(step) | every
        return self.possible(children.ravel(), length + step).reshape(children.shape)[kind]

    @cached_property
    def size(self) -> int:
        """The number of words."""
        return 1 << (self.bits if self.spelling is None else WORD_BITS * self.spelling.limbs)


class InvalidString(InvalidValue):
    """The error for a user's value that is no string of the universe. Nothing has been drawn."""

    def __str__(self) -> str:
        return (
            f"values[{self.index}] = {shown(self.value)} is not a string of at most {self.largest}"
            " bytes of UTF-8 without U+0000; nothing was drawn"
        )


def _listed(values: Any) -> Iterable[Any]:
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(
            f"values must be one-dimensional, one item a user, got shape {values.shape}"
        )
    return values.tolist() if isinstance(values, np.ndarray) else values


# UTF-8 (RFC 3629, section 4) as a machine over bytes. State 0: between characters; 1, 2, 3: that
# many continuation bytes are missing; 4 .. 7: after E0, ED, F0, F4, whose next byte is restricted;
# 8: after the end, where only zeros follow.

_NONE = 9
_MISSING = np.array([0, 1, 2, 3, 2, 2, 3, 3, 0, 0])


def _machine() -> npt.NDArray[np.int64]:
    table = np.full((10, 256), _NONE, dtype=np.int64)
    table[0, 0x01:0x80] = 0
    table[0, 0xC2:0xE0] = 1
    table[0, 0xE0:0xF0] = 2
    table[0, 0xF0:0xF5] = 3
    table[0, [0xE0, 0xED, 0xF0, 0xF4]] = [4, 5, 6, 7]
    for missing in (1, 2, 3):
        table[missing, 0x80:0xC0] = missing - 1
    table[4, 0xA0:0xC0] = 1
    table[5, 0x80:0xA0] = 1
    table[6, 0x90:0xC0] = 2
    table[7, 0x80:0x90] = 2
    table[[0, 8], 0] = 8
    return table


_NEXT = _machine()

"""PROT-PP: the one item that many hold, when all others hold none, from one sign a user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import scipy

from frequency.algebra import Code
from frequency.core import Aggregate, Reports
from frequency.exceptions import InvalidValue
from frequency.heavy.error_bound import ItemErrors, noise_of_signs, null_of_signs
from frequency.heavy.found import Found
from frequency.heavy.listing import listed, nothing
from frequency.heavy.prefix_tree import HeavyHitterProtocol
from frequency.oracles import SignChannel
from mechdesign import Audit
from mechdesign.base import BitSource, Floats, Items, Words, bit_source
from mechdesign.symbolic import ItemLaw, Randomiser, ReportKind
from mechdesign.symbolic.semialgebraic import rational


class IdleReporting(Protocol):
    """A channel that has reports for users without an item, too."""

    def idle(self, users: int, source: BitSource) -> Reports:
        """Return the reports of users without an item: (users,)."""

    def privatize(self, values: Any, rng: np.random.Generator | None) -> Reports:
        """Return a private report for each item: (users,)."""


@dataclass(frozen=True)
class CodeSign(SignChannel):
    """A channel of the sign of the item's codeword at a random place, by the basic randomiser.

    Source: Bassily and Smith, STOC 2015, Algorithm 1. With c = (e^eps + 1) / (e^eps - 1) and m
    places the server reads the report (j, sign) as the vector c sqrt(m) sign e_j, whose mean is the
    codeword divided by sqrt(m): multiplying by c is what makes randomised response unbiased.
    Without an item the sign is a fair coin, and the mean is 0.
    """

    privacy_source: ClassVar[str] = "succinct histograms, Theorem 3.1"

    code: Code  # of the items
    text: bool = False  # whether items are strings

    largest_domain: ClassVar[int] = 1 << 64

    @property
    def _indices(self) -> dict[str, range]:
        return {"index": range(self.code.length)}

    @property
    def _sign(self) -> Randomiser:
        response = super()._sign
        fair = ReportKind(rational(2), rational(Fraction(1, 2)))
        (item,) = response.laws
        laws = (item._replace(items="an item"), ItemLaw("no item", ((fair,),)))
        return replace(response, laws=laws)

    @property
    def _expression(self) -> list[Any]:
        return ["code", *self.code.described]

    def _minus(self, items: Items, *index: Items) -> npt.NDArray[Any]:
        return self.code.minus(items.astype(np.uint64), *index)

    def _details(self) -> dict[str, Any]:
        return {
            "bits": self.code.bits,
            "symbol": self.code.symbol,
            "text": self.text,
            **super()._details(),
        }

    def audit(self) -> Audit:
        # The place does not depend on the item; given it, one sign has weight ``truth`` and the
        # other ``lie``; idle, both a half.
        return Audit(
            self._choice.ratio,
            self.max_ratio,
            "a place where the codewords of 0 and 1 differ, the sign of 0",
            (0, 1),
        )


@dataclass(frozen=True)
class CodeGate:
    """A gate of decoding: a wrong word must not win over the right one.

    For two codewords that differ in a share d of the places, the difference of the scores has mean
    2 d f and variance at most 4 d / (contrast^2 users). The union bound over all words, for the
    decoder of highest score. Of sums that were rounded to signs nothing is claimed.
    """

    code: Code
    contrast: float  # the mean of a reported sign times the true one, 0 to 1
    users: int  # signs
    soft: bool = True  # whether the sums themselves are decoded

    def __call__(self, frequency: Floats) -> Floats:
        """Return at most the probability that an item of this frequency is not decoded."""
        if not self.soft:
            return np.ones(np.shape(frequency))
        z = frequency * self.contrast * np.sqrt(float(self.code.distance) * self.users)
        return np.minimum(1.0, ((1 << self.code.bits) - 1) * scipy.special.ndtr(-z))


@dataclass(frozen=True)
class UniqueHeavyHitter(HeavyHitterProtocol):
    """PROT-PP, for the unique heavy hitter.

    Source: Bassily and Smith, STOC 2015, section 3.1, Algorithm 4.

    The promise is that users hold one and the same item, or none (``None``, or a masked entry).
    Privacy holds in any case; the answer means something under the promise only. Each user tells a
    sign of the item's codeword at a random place; the server decodes the sums of each place.

    Parameters
    ----------
    bits : int
        The length of an item, 1 .. 64. See `HeavyHitterProtocol`.
    epsilon : float, Fraction, int, str or Decimal
        The privacy loss of one report.
    text : bool, default False
        True: items are strings of up to bits / 8 bytes of UTF-8.
    symbol : int, optional
        The symbols of the code, in bits: see `frequency.heavy.Code`. None: `Code.best`.
    soft : bool, default True
        Decode the sums themselves. False: round them to signs first, as the paper does; 1.2 times
        the holders are needed then.
    """

    symbol: int | None = None
    soft: bool = True

    @cached_property
    def code(self) -> Code:
        """The code."""
        return code_of(self.universe.bits, self.symbol)

    @cached_property
    def channel(self) -> CodeSign:
        """The channel by which an item becomes a report."""
        return CodeSign(self.universe.size, self.epsilon, self.code, self.text)

    @property
    def takes(self) -> dict[str, Any]:
        return {**super().takes, "none": True}

    def privatize(self, values: Any, rng: np.random.Generator | None = None) -> Reports:
        """Return a private report for each user, also for users without an item.

        Parameters
        ----------
        values : array_like
            The users' items, one-dimensional; None, or a masked entry, for a user without one.
        rng : numpy.random.Generator, optional
            See `Channel.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of ``report_dtype``.

        Raises
        ------
        InvalidValue
            Names the first bad value; nothing has been drawn.
        """
        return self.privatized(self.channel, values, rng)

    def privatized(
        self, channel: IdleReporting, values: Any, rng: np.random.Generator | None
    ) -> Reports:
        """Return as `privatize`, by another channel with reports for users without an item.

        Parameters
        ----------
        channel : IdleReporting
            Of the same items.
        values : array_like
            The users' items: see `privatize`.
        rng : numpy.random.Generator or None
            See `Channel.privatize`.

        Returns
        -------
        numpy.ndarray
            Shape (users,), of the channel's ``report_dtype``.
        """
        words, holding = self.held_words(values)
        idle = channel.idle(int((~holding).sum()), bit_source(rng))
        reports = np.zeros(len(holding), dtype=idle.dtype)
        reports[~holding], reports[holding] = idle, channel.privatize(words, rng)
        return reports

    def held_words(self, values: Any) -> tuple[Words, npt.NDArray[np.bool_]]:
        """Return the words of the users who hold an item, and who does.

        Parameters
        ----------
        values : array_like
            As for `privatize`.

        Returns
        -------
        tuple
            Shape (holders,), uint64; and shape (users,), bool.

        Raises
        ------
        InvalidValue
            The first value that is no item: its index is among all users.
        """
        given, holding = _held(values)
        try:
            return self.items_of(given), holding
        except InvalidValue as error:  # say where it stands among all users
            raise type(error)(
                int(np.flatnonzero(holding)[error.index]), error.value, error.largest
            ) from None

    def _find(
        self,
        aggregate: Aggregate,
        population: int,
        k: int | None,
        threshold: float | None,
        confidence: float,
    ) -> Found:
        users = aggregate.n
        if not users:
            return nothing(self.universe, confidence, population)
        contrast = self.channel.contrast
        word = self.code.decode(aggregate.counts[None], self.soft)
        good = self.universe.possible(word, self.bits)
        signs = 1 - 2 * self.code.minus(word[:, None], np.arange(self.code.length)[None])
        estimate = (signs @ aggregate.counts) / (users * contrast)
        noise, null = (
            partial(errors_of, 1 / contrast, users) for errors_of in (noise_of_signs, null_of_signs)
        )
        errors = ItemErrors(users, population, noise, null)
        gates = [CodeGate(self.code, contrast, users, self.soft)]
        hitters = listed(
            self.universe,
            word[good],
            estimate[good],
            considered=self.universe.size,
            errors=errors,
            gates=gates,
            k=k,
            threshold=threshold,
            confidence=confidence,
        )
        return replace(hitters, promise="all who hold an item hold the same one")


def code_of(bits: int, symbol: int | None) -> Code:
    """Return the code of these symbols, or the best one. ValueError for symbols without room."""
    return Code.best(bits) if symbol is None else Code(bits, symbol)


def _held(values: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return the items among values, and who holds one."""
    if isinstance(values, np.ndarray) and values.ndim > 1:
        raise ValueError(
            f"values must be one-dimensional, one item a user, got shape {values.shape}"
        )
    if isinstance(values, np.ma.MaskedArray):
        return values.compressed(), ~np.ma.getmaskarray(values).reshape(-1)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values, np.ones(values.size, dtype=np.bool_)
    users = [values] if isinstance(values, str) or np.ndim(values) == 0 else list(values)
    holding = np.array([value is not None for value in users], dtype=np.bool_)
    return [value for value in users if value is not None], holding

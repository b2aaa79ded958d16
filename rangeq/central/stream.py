"""CountStream: counts of days that are released as they come, for totals and ranges of days.

Prefixes of a stream are continual counting. What is measured is a triangle C of integers: the
number of a day is a sum of the counts up to it, with Gaussian noise of its own, so that a day is
released when it ends. With C'C = X every X has such a triangle, Cholesky's factor from the last day
on, and the covariance of the estimates depends on X alone: so a stream has the errors of the design
that is best for all days together. Its square root of Toeplitz form (Henzinger, Upadhyay and
Upadhyay 2023) has 1.11 times the variance on average at 1,024 days.

A user is in the count of one day. That changes a column of C, and each number has noise of its own:
whatever later counts depend on, the release keeps the promise (Denisov, McMahan, Rush, Smith and
Thakurta 2022, for Gaussian noise; here by the composition of concentrated privacy).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy

from frequency.core import normal_quantile, unsealed, write_sealed
from mechdesign import Ledger
from mechdesign.accounting import ZCDP, ApproximateDP
from mechdesign.base import (
    FLAG,
    TEXT,
    Floats,
    Integers,
    bit_source,
    intact,
    list_of,
    locked,
    opened,
    printable,
    replacing,
    shown,
    whole,
)
from rangeq.central.estimate import CentralEstimate
from rangeq.central.matrix_mechanism.dense_strategy import SCALE_BITS, DenseStrategy
from rangeq.central.matrix_mechanism.design import entry_bits
from rangeq.central.matrix_mechanism.gram_optimum import optimal_gram
from rangeq.central.matrix_mechanism.mechanism import MatrixMechanism
from rangeq.central.matrix_mechanism.strategy import LARGEST_USERS
from rangeq.central.matrix_mechanism.strategy_file import (
    MATRIX_MECHANISM,
    mechanism_content,
    mechanism_of_content,
    strategy_numbers,
)
from rangeq.central.matrix_mechanism.workload import Workload, gram_of
from rangeq.core import cumulated

#: The most days of a stream.
MOST_DAYS = 1 << 11

KIND, VERSION = "count-stream", 1

_FIELDS = {"mechanism": MATRIX_MECHANISM, "days": list_of(TEXT), "reproducible": FLAG}

_LONGEST = 200  # characters of the name of a day

_TOLERANCE = 1e-4  # of the design


class StreamErrors:
    """The variances of sums over days.

    Parameters
    ----------
    inverse : numpy.ndarray of float64
        C^-1 of the days so far: shape (days, days).
    noise : float
        The variance of the noise of a number.
    """

    def __init__(self, inverse: Floats, noise: float) -> None:
        self._inverse, self._noise = inverse, noise
        self._sums = cumulated(inverse, (0,))

    def variance(self, first: Integers, last: Integers) -> Floats:
        """Return those of ranges of days: see `rangeq.central.answers.Errors`.

        Parameters
        ----------
        first, last : numpy.ndarray of int64
            Shape (1, ranges): closed ends.

        Returns
        -------
        numpy.ndarray of float64
            Shape (ranges,): squared users.
        """
        rows = self._sums[last[0] + 1] - self._sums[first[0]]
        return self._noise * np.einsum("ij,ij->i", rows, rows)

    def variance_of(self, weights: Sequence[Floats]) -> float:
        """Return that of a sum over a set of days: see `rangeq.central.answers.Errors`.

        Parameters
        ----------
        weights : sequence of numpy.ndarray of float64
            One array: 1 for the days in the set, else 0.

        Returns
        -------
        float
            Squared users.
        """
        row = weights[0] @ self._inverse
        return self._noise * float(row @ row)

    def mean(self) -> float:
        """The mean over all ranges of days, in squared users."""
        first, last = np.triu_indices(len(self._inverse))
        return float(self.variance(first[None], last[None]).mean())


class Days(NamedTuple):
    """The days that a `StreamEstimate` is about.

    Attributes
    ----------
    sizes : tuple of int
        How many there are.
    errors : StreamErrors
        The variances of sums over them.
    """

    sizes: tuple[int, ...]
    errors: StreamErrors


class StreamEstimate(CentralEstimate):
    """Answers about the days so far: unbiased numbers of users.

    Days are numbered from 0; ``range(3, 9)`` is the number of users from the fourth to the tenth.
    Those of earlier days change, and become more precise, when later ones are released.

    Parameters
    ----------
    noisy : numpy.ndarray of int64
        The numbers so far: shape (days,).
    matrix : numpy.ndarray of int64
        The triangle that they are of: shape (days, days).
    noise : float
        The variance of the noise of a number.
    """

    def __init__(self, noisy: Integers, matrix: Integers, noise: float) -> None:
        triangle = matrix.astype(np.float64)
        inverse = scipy.linalg.solve_triangular(triangle, np.eye(len(triangle)), lower=True)
        self.mechanism = Days((len(noisy),), StreamErrors(inverse, noise))  # type: ignore[assignment]
        self._cells = inverse @ noisy
        self._cells.setflags(write=False)

    def box_sums(self, first: Integers, last: Integers) -> Floats:
        sums = cumulated(self._cells)
        return np.asarray(sums[last[0] + 1] - sums[first[0]])

    def weighted(self, weights: Sequence[Floats]) -> float:
        return float(weights[0] @ self._cells)

    @property
    def step(self) -> float:
        return 0.0

    def deviations(self, confidence: float) -> float:
        return normal_quantile(confidence)


class CountStream:
    """Counts of days, or of any steps, that are released as they come.

    Its file holds the true counts: it is as private as they are, and only its owner may read it.
    What `estimate` says may be published.

    Every step a user may be in one count; what is promised is for one user more or less in all of
    the stream. The errors of prefixes, or of ranges, are on average those of the best design for
    all days at once, and the ledger is charged once, when the stream is made.

    Attributes
    ----------
    path : Path
        The file.
    mechanism : MatrixMechanism
        A triangle of integers with Gaussian noise.
    days : tuple of str
        The names of the days that were released, in order.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._load()

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        days: int,
        promise: ZCDP | ApproximateDP,
        workload: str = "prefixes",
        ledger: Ledger | None = None,
    ) -> CountStream:
        """Make a stream, and its file, which must not exist.

        Parameters
        ----------
        path : str or os.PathLike
            Where the state is kept.
        days : int
            How many days it will have at most, 1 to 2048. More make each day's errors larger, by
            little.
        promise : ZCDP or ApproximateDP
            What all releases keep together, for one user more or less.
        workload : {"prefixes", "ranges"}, default "prefixes"
            Which sums have the least errors: the totals since the beginning, or over any days.
        ledger : Ledger, optional
            Spent from once, under the name of the file.

        Returns
        -------
        CountStream
            Without any days yet.

        Raises
        ------
        ValueError, TypeError
            Another number of days, workload or promise.
        FileExistsError
            There is such a file.
        BudgetExceeded
            The ledger has not so much: there is no file then.
        """
        days = whole(days, "days", 1, MOST_DAYS)
        if workload not in ("prefixes", "ranges"):
            raise ValueError(f"workload must be prefixes or ranges, got {shown(workload)}")
        if not isinstance(promise, (ZCDP, ApproximateDP)):
            raise TypeError(
                "a stream has Gaussian noise: its promise is a ZCDP or an ApproximateDP, got a"
                f" {type(promise).__name__}"
            )
        bits = min(entry_bits(promise.noise_ratio), SCALE_BITS)
        mechanism = MatrixMechanism(_triangle(days, workload, bits), promise)
        mechanism.audit().require()
        if ledger is None:
            cls._begun(path, mechanism)
        elif os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(path))
        else:
            with ledger.publishing(mechanism.cost, Path(path).name, path) as aside:
                cls._begun(aside, mechanism)
        return cls(path)

    @staticmethod
    def _begun(path: str | os.PathLike[str], mechanism: MatrixMechanism) -> None:
        """Write a stream without any days."""
        # Only the owner may read the true counts: a file that is replaced keeps its permissions
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        try:
            _write(path, mechanism, (), np.zeros((2, 0), dtype=np.int64), False)
        except BaseException:
            Path(path).unlink()
            raise

    def _load(self) -> None:
        with opened(self.path) as stream:
            message = stream.read()
        with intact(self.path, "no stream of counts"):
            header, body = unsealed(message, KIND, {VERSION: _FIELDS})
            numbers = np.frombuffer(body[: len(body) // 8 * 8], dtype="<i8").astype(np.int64)
            self.days, self.reproducible = tuple(header["days"]), header["reproducible"]
            kept, rest = numbers[: 2 * len(self.days)], numbers[2 * len(self.days) :]
            (shape,) = header["mechanism"]["arrays"].values()
            mechanism, none = mechanism_of_content(header["mechanism"], (shape[-1],), rest)
            if len(none) or len(body) % 8 or not isinstance(mechanism.strategy, DenseStrategy):
                raise ValueError("its numbers are not those of a stream")
            if (np.triu(mechanism.strategy.matrix, 1) != 0).any():
                raise ValueError("what is measured of a day depends on later ones")
            mechanism.audit().require()
        self.mechanism, self._matrix = mechanism, mechanism.strategy.matrix
        self._counts, self._noisy = kept.reshape(2, -1)
        vars(self).pop("estimate", None)

    @property
    def most(self) -> int:
        """How many days the stream will have at most."""
        return len(self._matrix)

    @cached_property
    def estimate(self) -> StreamEstimate:
        """Answers about the days that were released; ValueError before the first."""
        t = len(self.days)
        if not t:
            raise ValueError("no day was released yet")
        noise = self.mechanism.noise_variance
        return StreamEstimate(self._noisy, self._matrix[:t, :t], noise)

    def add(
        self, count: int, day: str | None = None, rng: np.random.Generator | None = None
    ) -> StreamEstimate:
        """Release the count of one more day, once.

        The file is replaced before anything is returned: whoever is interrupted has released
        nothing, or finds the day released.

        Parameters
        ----------
        count : int
            The users of the day, at least 0. In all days together 2^33 at most.
        day : str, optional
            Its name, such as "2026-11-29", which is public. None: its number, from 1 on.
        rng : numpy.random.Generator, optional
            None for the operating system's randomness; a generator's results can be repeated, and
            are not private.

        Returns
        -------
        StreamEstimate
            `estimate`, with the day.

        Raises
        ------
        ValueError
            The day was released before, there are no days left, or what is no count. Nothing was
            drawn.
        PrivacyViolation
            Never, unless the audit fails.
        """
        source = bit_source(rng)
        with locked(self.path):
            self._load()  # another process may have added a day
            t = len(self.days)
            name = str(t + 1) if day is None else day
            if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST:
                raise ValueError(
                    f"a day has a name of 1 to {_LONGEST} characters, got {shown(day)}"
                )
            if name in self.days:
                raise ValueError(f"the day {printable(name)} was released before: nothing is drawn")
            if t == self.most:
                raise ValueError(f"all {t} days of the stream were released: make another one")
            most = LARGEST_USERS - int(self._counts.sum())
            users = whole(count, "count", 0, most, what="a number of users")
            counts = np.append(self._counts, users)
            exactly = int(self._matrix[t, : t + 1] @ counts)
            noisy = np.append(self._noisy, exactly + self.mechanism.noise.draw(1, source))
            seeded = self.reproducible or rng is not None
            _write(self.path, self.mechanism, (*self.days, name), [counts, noisy], seeded)
            self._load()
        return self.estimate

    def __repr__(self) -> str:
        return f"<CountStream of {len(self.days)} of {self.most} days, {self.mechanism.promise!r}>"


def _triangle(days: int, workload: str, bits: int) -> DenseStrategy:
    """The triangle of integers for the least mean variance of prefixes or ranges of days."""
    gram, error = gram_of(Workload.of(workload, days))
    optimum = optimal_gram(gram, _TOLERANCE, error).gram
    # From the last day on: Cholesky's factor L L' of the days in reverse is C'C for C = L' reversed
    factor = np.linalg.cholesky(optimum[::-1, ::-1]).T[::-1, ::-1]
    rounded = np.rint(np.tril(factor) * 2.0**bits).astype(np.int64)
    return DenseStrategy(rounded)


def _write(
    path: str | os.PathLike[str],
    mechanism: MatrixMechanism,
    days: Sequence[str],
    kept: Any,
    reproducible: bool,
) -> None:
    header = {
        "kind": KIND,
        "version": VERSION,
        "mechanism": mechanism_content(mechanism),
        "days": list(days),
        "reproducible": reproducible,
    }
    numbers = [*kept, *strategy_numbers(mechanism)]
    with replacing(path) as stream:
        write_sealed(stream, header, *(each.astype("<i8").tobytes() for each in numbers))

"""Which keys have which noise: what an assignment gives away, and one that gives little away.

Let H_v be the set of n_v keys with noise v in a row of a table of K keys, and

    rho(f) = (1 / K) sum over v of |H_v^(f)|^2 / n_v

its mean squared Fourier coefficient at the frequency f, which is 1 at 0. By Parseval the mean of
rho over f != 0 is (classes - 1) / (K - 1), whatever the order of the keys: a flat rho leaks least.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechdesign.base import Floats, Integers
from mechdesign.perturbation.table import PerturbationTable

MOST_SUMMED = 4096  #: The most keys whose sums are followed.

_SWAPS = 10_000  # that a search for an assignment of keys tries for a row


def spectrum(table: PerturbationTable, count: int) -> Floats:
    """Return rho(f) of the row of a count, in floats, for each frequency.

    Parameters
    ----------
    table : PerturbationTable
        Of at most `MOST_KEYS` keys.
    count : int
        At least 0.

    Returns
    -------
    numpy.ndarray of float64
        Shape (keys,), of 0 to 1.

    Raises
    ------
    ValueError
        A table of more keys.
    """
    keys = np.arange(table.keys)
    return _spectrum(table.noise(np.full(table.keys, count), keys))


def _spectrum(noise: Integers) -> Floats:
    _, places, sizes = np.unique(noise, return_inverse=True, return_counts=True)
    classes = (places == np.arange(len(sizes))[:, None]).astype(np.float64)
    squares = np.abs(np.fft.fft(classes)) ** 2
    total: Floats = (squares / sizes[:, None]).sum(axis=0) / len(noise)
    return total


@dataclass(frozen=True)
class KeyLeak:
    """What the assignment of keys of a row gives away of two cells by their total.

    Attributes
    ----------
    chi_squared : float
        The sum of rho(f)^2 over f != 0: how far from uniform the key of the total of two cells is.
    least : float
        What it is at least for any assignment, by the inequality of Cauchy and Schwarz: all rho(f)
        would be equal.
    """

    chi_squared: float
    least: float


def key_leak(table: PerturbationTable, count: int) -> KeyLeak:
    """Return what the assignment of keys of a count gives away.

    Parameters
    ----------
    table : PerturbationTable
        Of at most `MOST_KEYS` keys.
    count : int
        At least 0.

    Returns
    -------
    KeyLeak

    Raises
    ------
    ValueError
        A table of more keys.
    """
    rho = spectrum(table, count)[1:]
    classes = len(table.law(count))
    return KeyLeak(float((rho**2).sum()), (classes - 1) ** 2 / max(1, table.keys - 1))


def scattered(table: PerturbationTable) -> PerturbationTable:
    """Return the same noise with keys assigned so that sums of keys give little away.

    The assignment is found by swaps that lower the sum of rho(f)^2, from a random one. It is
    public, and the same whenever this is called. For one cell nothing changes.

    Parameters
    ----------
    table : PerturbationTable
        Of at most 4,096 keys.

    Returns
    -------
    PerturbationTable
        With the laws of the table.

    Raises
    ------
    ValueError
        A table of more keys.
    """
    require_few_keys(table)
    known: dict[tuple[tuple[int, int], ...], list[int]] = {}
    rows = []
    for count in range(table.largest + 1):
        law = tuple(table.law(count).items())
        if law not in known:
            known[law] = _scattered_row(np.repeat(*np.array(law).T)).tolist()
        rows.append(known[law])
    return PerturbationTable.of_noise(np.array(rows), table.period)


def _scattered_row(noise: Integers) -> Integers:
    """Return a row with its keys in an order of small Fourier coefficients."""
    rng = np.random.default_rng(len(noise))
    _, places, sizes = np.unique(rng.permutation(noise), return_inverse=True, return_counts=True)
    values, keys = np.unique(noise), len(noise)
    if len(sizes) == 1:
        return noise
    waves = np.exp(-2j * np.pi * np.outer(np.arange(keys), np.arange(1, keys // 2 + 1)) / keys)
    # Frequencies f and -f are alike; that of K / 2 is its own
    twice = np.full(keys // 2, 2.0)
    twice[-1] -= keys % 2 == 0
    classes = np.array([waves[places == k].sum(axis=0) for k in range(len(sizes))])
    rho = (np.abs(classes) ** 2 / sizes[:, None]).sum(axis=0)
    best = float((rho**2) @ twice)
    for i, j in rng.integers(0, keys, size=(_SWAPS, 2)).tolist():
        a, b = places[i], places[j]
        if a == b:
            continue
        change = waves[j] - waves[i]
        one, other = classes[a] + change, classes[b] - change
        new = rho + (np.abs(one) ** 2 - np.abs(classes[a]) ** 2) / sizes[a]
        new += (np.abs(other) ** 2 - np.abs(classes[b]) ** 2) / sizes[b]
        value = float((new**2) @ twice)
        if value < best:
            best, rho, places[i], places[j] = value, new, b, a
            classes[a], classes[b] = one, other
    row: Integers = values[places]
    return row


def require_few_keys(table: PerturbationTable) -> None:
    """Raise ValueError for a table of more than 4,096 keys."""
    if table.keys > MOST_SUMMED:
        raise ValueError(
            f"sums of keys are followed for {MOST_SUMMED} keys at most, the table has"
            f" {table.keys}: round it with `rounded_to_keys` first"
        )


def convolved(
    one: npt.NDArray[np.object_], other: npt.NDArray[np.object_]
) -> npt.NDArray[np.object_]:
    """Return the cyclic convolution of two arrays of integers of at least 0, exactly."""
    # As the product of two long integers, which have a number in each so many bits (Kronecker)
    keys = len(one)
    size = (int(one.max()) * int(other.max()) * keys).bit_length() // 8 + 1
    numbers = (
        int.from_bytes(b"".join(int(x).to_bytes(size, "little") for x in each), "little")
        for each in (one, other)
    )
    product_ = math.prod(numbers).to_bytes(2 * keys * size, "little")
    flat = [int.from_bytes(product_[k * size :][:size], "little") for k in range(2 * keys)]
    return np.array([flat[k] + flat[k + keys] for k in range(keys)], dtype=object)

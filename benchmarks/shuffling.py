"""What shuffling is worth: published bounds, evaluated here in floats, beside the proved ones.

Prints Markdown tables: the central epsilon of n shuffled reports at some delta,

- by the closed forms of the privacy blanket (Balle, Bell, Gascon and Nissim, CRYPTO 2019), with
  Hoeffding's and Bennett's inequality,
- by the clones of Feldman, McMillan and Talwar (FOCS 2021; stronger ones: SODA 2023) and the
  variation ratio of Wang et al. (VLDB 2024), summed numerically,
- by the blanket's own sum, by fast Fourier transform in floats (as Su, Cheng and Wang do,
  arXiv:2504.07414, who show that no decomposition of the reports gives less),
- and by `mechdesign.accounting.shuffled`: proved upper and lower bounds, and the processor's
  seconds for the upper one.

The columns marked * are not proved for every randomiser. Both let what is left of the user's
report, when it is in neither of two components, hide among what is left of the others' reports, as
if all of it were one symbol. It is not: what is left depends on the values, and the reports in it
tell how likely the user's is among them. (The authors of the stronger clones have published an
erratum: lemma 3.5 of arXiv:2208.04591. The clones of 2021 have no such rest, and hold.)

For the variation ratio this is no gap of a proof: its numbers are below the truth. The first table
lists all datasets of a few users of generalised randomised response in exact fractions. With three
symbols, probabilities 1/2, 1/4 and 1/4, and three users, of whom one changes from 0 to 1 and the
others hold 0 and 2, the divergence at e^epsilon = 3/2 is 5/128; the formula says 1/32, and the
blanket 5/128. The second table has larger collections: a proved lower bound on delta where the
formula says 10^-6. With 16 symbols, local epsilon 4 and 100 users it is twenty times as much.
From 10^4 users on, the formula and the blanket are nearly the same.

python benchmarks/shuffling.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import numpy as np
from range_queries import one_core, table
from scipy import fft, stats
from scipy.optimize import brentq

from frequency import GRR, HRR, OLH, OUE, SUE, SubsetSelection
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import PairLaw

Delta = Callable[[float], float]
"""delta as a function of epsilon."""

Law: TypeAlias = "defaultdict[tuple[int, ...], Fraction]"
"""Numbers of reports of each kind, and the probability of each."""

EPSILONS, DELTAS = (0.5, 1.0, 2.0, 4.0, 8.0), (1e-6, 1e-8)
LARGEST_TRANSFORM = 1 << 23
TERMS = 4001


def epsilon_of(delta_at: Delta, delta: float, most: float) -> float:
    """The epsilon at which a falling delta reaches the target, or the local one."""
    if delta_at(most * (1 - 1e-9)) >= delta:
        return most
    if delta_at(1e-9) <= delta:
        return 0.0
    return float(
        brentq(lambda epsilon: delta_at(epsilon) - delta, 1e-9, most * (1 - 1e-9), rtol=1e-5)
    )


def concentration(law: PairLaw, n: int, bennett: bool) -> Delta:
    """1 / (gamma n) times the mean of the bound on E (L_1 + ... + L_M)_+, M binomial.

    L = gamma W of the blanket's reports has the mean -a. By Hoeffding E (sum of m)_+ is at most
    b^2 / 4a e^(-2 m a^2 / b^2), b the length of the range; by Bennett, for L + a of at most c and a
    variance of v, c / ln(1 + u) e^(-m v / c^2 ((1 + u) ln(1 + u) - u)), u = a c / v.
    """
    weights, first, second = np.array([[float(x) for x in item] for item in law]).T
    gamma = weights.sum()

    def delta(epsilon: float) -> float:
        a = math.expm1(epsilon)
        values = gamma * (first - math.exp(epsilon) * second)
        if bennett:
            c, v = values.max() + a, float(weights / gamma @ (values + a) ** 2)
            u = a * c / v
            front, rate = c / math.log1p(u), v / c**2 * ((1 + u) * math.log1p(u) - u)
        else:
            b = np.ptp(values)
            front, rate = b**2 / (4 * a), 2 * a**2 / b**2
        return float(front / (gamma * n) * math.exp(n * math.log1p(gamma * math.expm1(-rate))))

    return delta


def merged(p: float, alpha: float, share: float, n: int) -> Delta:
    """The clones and the variation ratio: (A + D_1, C - A + D_2) against (A + D_2, C - A + D_1).

    C is binomial with n - 1 and ``share``, A with C and 1/2; (D_1, D_2) is (1, 0) with probability
    p alpha, (0, 1) with alpha, and otherwise (0, 0). The total is summed over; for each the ratio
    rises with the first count, so that binomial tails are enough.
    """
    mean, deviation = (n - 1) * share, math.sqrt((n - 1) * share * (1 - share))
    low, high = max(0, mean - 9 * deviation - 30), min(n, mean + 9 * deviation + 30)
    totals = np.unique(np.linspace(math.ceil(low), math.floor(high), TERMS).round())
    steps = np.gradient(totals)
    steps[[0, -1]] = 1
    rest = 1 - alpha - p * alpha
    here = stats.binom.pmf(totals, n - 1, share) * rest
    one_less = stats.binom.pmf(totals - 1, n - 1, share)

    def delta(epsilon: float) -> float:
        e = math.exp(epsilon)
        # P - e Q at (a, t - a) is C(t, a) / 2^t times
        # here (1 - e) + 2 one_less alpha ((p - e) a + (1 - e p) (t - a)) / t
        with np.errstate(divide="ignore", invalid="ignore"):
            at_none = here * (1 - e) + 2 * one_less * (1 - e * p) * alpha
            rise = 2 * one_less * alpha * (p - e - 1 + e * p) / totals
            first = np.nan_to_num(np.floor(-at_none / rise) + 1, nan=0, posinf=n + 1)
        tails = [
            stats.binom.sf(first - 1, totals, 0.5),
            stats.binom.sf(first - 2, totals - 1, 0.5),
            stats.binom.sf(first - 1, totals - 1, 0.5),
        ]
        parts = [here * (1 - e), one_less * alpha * (p - e), one_less * alpha * (1 - e * p)]
        gained = sum(a * np.nan_to_num(b) for a, b in zip(parts, tails, strict=True))
        return float(np.maximum(gained, 0) @ steps)

    return delta


def transformed(law: PairLaw, n: int) -> Delta | None:
    """The blanket's sum, (1/n) E (W_1 + ... + W_n)_+, W on a lattice; None if that is large."""
    weights, first, second = np.array([[float(x) for x in item] for item in law]).T

    def delta(epsilon: float) -> float:
        values = np.append(first - math.exp(epsilon) * second, 0.0)
        masses = np.append(weights, 1 - weights.sum())
        mean = float(masses @ values)
        deviation = math.sqrt(float(masses @ (values - mean) ** 2))
        step = deviation / 64
        size = fft.next_fast_len(int(20 * math.sqrt(n) * 64 + 2 * np.ptp(values) / step))
        places = (values - mean) / step
        below = np.floor(places)
        lattice = np.zeros(size)
        # A mean-preserving spread, up to the rounding of floats
        np.add.at(lattice, below.astype(int) % size, masses * (1 - places + below))
        np.add.at(lattice, (below.astype(int) + 1) % size, masses * (places - below))
        law_of_sum = fft.irfft(fft.rfft(lattice) ** n, size)
        sums = fft.fftfreq(size, 1 / size) * step + n * mean
        return float(np.maximum(law_of_sum, 0) @ np.maximum(sums, 0)) / n

    return delta if 20 * math.sqrt(n) * 64 <= LARGEST_TRANSFORM else None


def published(laws: Sequence[PairLaw], local: float, n: int, delta: float) -> Iterator[str]:
    """The epsilons of the columns."""
    e = math.exp(local)

    def blanket(make: Callable[[PairLaw], Delta | None]) -> str:
        found = [make(law) for law in laws]
        if None in found:
            return ""
        return f"{max(epsilon_of(one, delta, local) for one in found if one):.4g}"

    # The total variation of the first and the second value
    beta = max(float(sum(w * max(a - b, Fraction(0)) for w, a, b in law)) for law in laws)
    yield blanket(lambda law: concentration(law, n, bennett=False))
    yield blanket(lambda law: concentration(law, n, bennett=True))
    for p, alpha, share in (
        (e, 1 / (e + 1), 1 / e),
        (e, 1 / (e + 1), 2 / (e + 1)),
        (e, beta / (e - 1), 2 * beta / (e - 1)),
    ):
        yield f"{epsilon_of(merged(p, alpha, share, n), delta, local):.4g}"
    yield blanket(lambda law: transformed(law, n))


def compared(
    protocols: Sequence[Any], sizes: Sequence[int], deltas: Sequence[float]
) -> Iterator[Sequence[str]]:
    for protocol in protocols:
        laws = protocol.pair_laws()
        for n in sizes:
            for delta in deltas:
                bounds = shuffled(protocol, n)
                start = time.process_time()
                above = bounds.epsilon(delta)
                took = time.process_time() - start
                below = bounds.epsilon_at_least(delta)
                yield (
                    type(protocol).__name__,
                    str(protocol.domain),
                    f"{bounds.local_epsilon:.3g}",
                    f"10^{round(math.log10(n))}",
                    f"{delta:.0e}",
                    *published(laws, bounds.local_epsilon, n, delta),
                    f"{above:.4g}",
                    f"{below:.4g}",
                    f"{took:.2f}",
                )


def histogram_law(columns: Sequence[Sequence[Fraction]]) -> Law:
    """The exact law of how many reports there are of each kind."""
    law: Law = defaultdict(Fraction, {(0,) * len(columns[0]): Fraction(1)})
    for column in columns:
        longer: Law = defaultdict(Fraction)
        for counts, probability in law.items():
            for y, p in enumerate(column):
                longer[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += probability * p
        law = longer
    return law


def variation_ratio(p: Fraction, beta: Fraction, q: Fraction, n: int, e: Fraction) -> Fraction:
    """The formula of Wang et al. in exact fractions."""
    alpha = beta / (p - 1)
    r = alpha * p / q
    first: Law = defaultdict(Fraction)
    for c in range(n):
        chance = math.comb(n - 1, c) * (2 * r) ** c * (1 - 2 * r) ** (n - 1 - c)
        for a in range(c + 1):
            here = chance * math.comb(c, a) / 2**c
            first[a + 1, c - a] += here * p * alpha
            first[a, c - a + 1] += here * alpha
            first[a, c - a] += here * (1 - alpha - p * alpha)
    return sum((max(w - e * first[b, a], Fraction(0)) for (a, b), w in first.items()), Fraction(0))


def listed(symbols: Sequence[int], users: Sequence[int]) -> Iterator[Sequence[str]]:
    """Generalised randomised response with e^local epsilon = 2; the dataset that shows the most."""
    p, e = Fraction(2), Fraction(3, 2)
    for k in symbols:
        columns = [
            [(p if x == y else Fraction(1)) / (p + k - 1) for y in range(k)] for x in range(k)
        ]
        for n in users:
            worst, others = max(
                (
                    divergence(
                        histogram_law([columns[0], *held]), histogram_law([columns[1], *held]), e
                    ),
                    at,
                )
                for at in combinations_with_replacement(range(k), n - 1)
                for held in [[columns[x] for x in at]]
            )
            formula = variation_ratio(p, (p - 1) / (p + k - 1), p, n, e)
            yield (
                str(k),
                str(n),
                ", ".join(map(str, others)),
                f"{worst} = {float(worst):.6f}",
                f"{formula} = {float(formula):.6f}",
                "too small" if formula < worst else "",
            )


def promised(cases: Sequence[tuple[int, float, int]]) -> Iterator[Sequence[str]]:
    """What is proved of the epsilons that the variation ratio gives at delta = 10^-6."""
    for domain, local, n in cases:
        bounds, e = shuffled(GRR(domain, local), n), math.exp(local)
        r = 1 / (e + domain - 1)
        epsilon = epsilon_of(merged(e, r, 2 * r, n), DELTAS[0], local)
        yield (
            *(str(domain), f"{local:g}", str(n), f"{epsilon:.4f}"),
            f"{bounds.delta_at_least(epsilon):.4g}",
            f"{bounds.delta(epsilon):.4g}",
        )


def divergence(first: Law, second: Law, e: Fraction) -> Fraction:
    return sum((max(p - e * second[y], Fraction(0)) for y, p in first.items()), Fraction(0))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a part of each table")
    quick = parser.parse_args().quick
    one_core()
    table(
        "All datasets of n users, local ln 2, one changes from 0 to 1, delta at ln 3/2",
        ("symbols", "n", "the others hold", "exact", "variation ratio", ""),
        listed((2, 3, 4, 5), (2, 3, 4) if quick else (2, 3, 4, 5)),
    )
    table(
        "Generalised randomised response, where the variation ratio says delta = 1e-06",
        ("symbols", "local", "n", "epsilon", "delta at least", "delta at most"),
        promised([(16, 4.0, 100), (64, 4.0, 100), (64, 4.0, 1000), (64, 4.0, 10**5)]),
    )
    head = [
        *("protocol", "domain", "local", "n", "delta", "Hoeffding", "Bennett", "clones"),
        *("stronger clones*", "variation ratio*", "FFT", "here", "at least", "s"),
    ]
    many = [10**4, 10**6] if quick else [10**k for k in (3, 4, 5, 6, 8, 10)]
    table(
        "Central epsilon by n, local epsilon 1",
        head,
        compared([GRR(2, 1.0), GRR(64, 1.0)], many, DELTAS[:1] if quick else DELTAS),
    )
    table(
        "Central epsilon by local epsilon, n = 10^6",
        head,
        compared([GRR(k, e) for k in (16, 1024) for e in EPSILONS], [10**6], DELTAS[:1]),
    )
    table(
        "Central epsilon by protocol, n = 10^6",
        head,
        compared(
            [make(64, e) for make in (SUE, OUE, SubsetSelection, OLH, HRR) for e in EPSILONS[1:4]],
            [10**6],
            DELTAS[:1],
        ),
    )


if __name__ == "__main__":
    main()

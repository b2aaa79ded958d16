"""What exactness is worth: shuffled bits by the blanket, as stated, and for one dataset at least.

Prints Markdown tables: the central epsilon of n reports by randomised response at delta = 1e-6,

- by the privacy blanket, the best bound that rests on a decomposition of reports,
- as `mechdesign.accounting.shuffled` states it, and its lower bound, with the processor's seconds,
- and by convolution of binomial laws in floats, the largest over compositions of the other users:
  all of them for few users, those within three users of either end for many;

the local epsilon that a central promise allows, by the blanket and as stated, and by how much the
variance of an estimate falls; and both bounds for other protocols, the upper one the blanket's.

python benchmarks/shuffled_bits.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
from range_queries import one_core, table
from scipy import stats
from scipy.optimize import brentq

from frequency import GRR, HRR, OLH, OUE, SUE, SubsetSelection
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import PairLaws, TableLaws
from mechdesign.accounting.shuffling import Shuffled

DELTA = 1e-6
CASES = [
    *((local, n) for n in (10, 300) for local in (0.5, 1.0, 2.0, 4.0)),
    *((local, n) for n in (20_000, 200_000, 10**9) for local in (0.5, 1.0, 2.0, 4.0, 8.0)),
]
ALL = 2000  # the most users of whom all compositions are convolved
FLOATS = 10**6  # the most users whose laws are listed in floats


def by_blanket(local: float, n: int) -> Shuffled:
    """The bounds of the pair laws alone, without what is known of bits."""
    laws = TableLaws(GRR(2, local).mechanism.sampler.weights)
    return Shuffled(PairLaws([laws[k] for k in range(len(laws))]), (), n)


def convolved(local: float, n: int) -> float:
    """The exact epsilon in floats; NaN for too many users."""
    if n > FLOATS:
        return math.nan
    p = math.exp(local) / (1 + math.exp(local))
    ends = range(min(4, n)), range(max(0, n - 4), n)
    laws = []
    for m in range(n) if n <= ALL else sorted({*ends[0], *ends[1]}):
        ones = stats.binom.pmf(np.arange(m + 1), m, p)
        zeros = stats.binom.pmf(np.arange(n - m), n - 1 - m, 1 - p)
        laws.append(np.convolve(ones, zeros))

    def delta(epsilon: float) -> float:
        t = math.exp(epsilon)
        gain, loss = p - t * (1 - p), t * p - (1 - p)
        return max(
            float(np.maximum(gain * np.append(0, f) - loss * np.append(f, 0), 0).sum())
            for f in laws
        )

    return float(brentq(lambda e: delta(e) - DELTA, 0, local, rtol=1e-7))


def bits(cases: Sequence[tuple[float, int]]) -> Iterator[Sequence[str]]:
    for local, n in cases:
        many = shuffled(GRR(2, local), n)
        start = time.process_time()
        above = many.epsilon(DELTA)
        took = time.process_time() - start
        below, blanket = many.epsilon_at_least(DELTA), by_blanket(local, n).epsilon(DELTA)
        yield (
            *(f"{local:g}", str(n), f"{blanket:.4g}", f"{above:.5g}", f"{below:.5g}"),
            *(f"{convolved(local, n):.5g}", f"{above / below - 1:.1e}", f"{blanket / above:.2f}"),
            f"{took:.2f}",
        )


def allowed(cases: Sequence[tuple[float, int]]) -> Iterator[Sequence[str]]:
    for local, n in cases:
        promise = by_blanket(local, n).epsilon(DELTA)
        more = brentq(
            lambda e, n=n, promise=promise: shuffled(GRR(2, e), n).epsilon(DELTA) - promise,
            local,
            2 * local,
            rtol=1e-3,
        )
        # Of an estimate of a rare answer: p (1 - p) / (2 p - 1)^2 = 1 / (4 sinh^2(e / 2))
        gained = (math.sinh(more / 2) / math.sinh(local / 2)) ** 2
        yield f"{local:g}", str(n), f"{promise:.4g}", f"{more:.3f}", f"{gained:.2f}"


def others(locals_: Sequence[float]) -> Iterator[Sequence[str]]:
    for make in (OUE, SUE, SubsetSelection, OLH, HRR):
        for local in locals_:
            many = shuffled(make(64, local), 200_000)
            above, below = many.epsilon(DELTA), many.epsilon_at_least(DELTA)
            yield (
                *(make.__name__, f"{local:g}", f"{above:.5f}", f"{below:.5f}"),
                f"{above / below:.2f}",
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a part of each table")
    quick = parser.parse_args().quick
    one_core()
    table(
        "Shuffled bits, delta = 1e-06",
        ("local", "n", "blanket", "stated", "at least", "convolution", "apart", "ratio", "s"),
        bits(CASES[:6] if quick else CASES),
    )
    promises = [(1.0, 20_000), (4.0, 200_000)]
    table(
        "The local epsilon of bits at the blanket's promise",
        ("local by the blanket", "n", "promise", "local as stated", "variance by"),
        allowed(promises[:1] if quick else promises),
    )
    table(
        "Other protocols, 64 items, n = 200000, delta = 1e-06",
        ("protocol", "local", "stated", "at least", "ratio"),
        others([4.0] if quick else [0.5, 1.0, 2.0, 4.0]),
    )


if __name__ == "__main__":
    main()

"""What k releases tell together: proved bounds, and what dp_accounting finds in the same run.

Prints Markdown tables: the epsilon of k releases of small tables at delta = 1e-6, whose own
epsilons are such that the totals are of about the same size. "dp_accounting" is its pessimistic
distribution of privacy losses, in steps of 10^-4 (its default) and of a twentieth of the loss of
one release; its optimistic one bounds the truth from below, up to its floating-point arithmetic.
"rho" is the least rho of zero-concentrated privacy, followed by what the Renyi accountant of
dp_accounting makes of it.

Times are the processor's seconds, of all ordered pairs of neighbours. Needs the extra `accounting`.

python benchmarks/composition.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import TypeVar

import dp_accounting
import numpy as np
from range_queries import one_core, table

from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import PrivacyLoss, compose
from mechdesign.accounting.composition import Composition, Release

T = TypeVar("T")

DELTA, TOTAL = 1e-6, 3.0
LARGEST = 2e6
"""How many steps a distribution of dp_accounting may take: more is minutes."""

TABLES: dict[str, Callable[[float], Mechanism]] = {
    "randomised response": lambda e: named.krr(2, alpha=Privacy.from_epsilon(e).alpha),
    "GM": lambda e: named.geometric(8, alpha=Privacy.from_epsilon(e).alpha),
    "EM": lambda e: named.explicit_fair(8, alpha=Privacy.from_epsilon(e).alpha),
    "WM": lambda e: named.weakly_honest(8, alpha=Privacy.from_epsilon(e).alpha),
}


def timed(run: Callable[..., T], *arguments: object) -> tuple[T, float]:
    start = time.process_time()
    found = run(*arguments)
    return found, time.process_time() - start


def theirs(mechanism: Mechanism, k: int, interval: float, pessimistic: bool) -> float:
    """The largest epsilon over all ordered pairs of neighbours."""
    logs = [dict(enumerate(column)) for column in np.log(mechanism.matrix.T).tolist()]
    pairs = mechanism.privacy.pairs(mechanism.inputs).tolist()
    return max(
        dp_accounting.pld.privacy_loss_distribution.from_two_probability_mass_functions(
            logs[second], logs[first], pessimistic, interval
        )
        .self_compose(k)
        .get_epsilon_for_delta(DELTA)
        for pair in pairs
        for first, second in (pair, pair[::-1])
    )


def compared(sizes: Sequence[int], tables: Sequence[str]) -> Iterator[Sequence[str]]:
    for name in tables:
        for k in sizes:
            one = TOTAL / math.sqrt(k)
            mechanism = TABLES[name](one)
            composed, prepared = timed(compose, [mechanism] * k)
            above, took = timed(composed.epsilon, DELTA)
            below, below_took = timed(composed.epsilon_at_least, DELTA)
            row = [name, str(k), f"{one:.3g}", f"{above:.4f}", f"{below:.4f}"]
            row += [f"{prepared + took:.2f}", f"{below_took:.2f}"]
            for interval in (1e-4, one / 20):
                if k * one / interval > LARGEST:
                    row += ["", "", ""]
                    continue
                high, took = timed(theirs, mechanism, k, interval, True)
                low = theirs(mechanism, k, interval, False)
                row += [f"{high:.4f}", f"{low:.4f}", f"{took:.2f}"]
            rho, took = timed(getattr, composed, "rho")
            accountant = dp_accounting.rdp.RdpAccountant().compose(composed.to_dp_event())
            yield (*row, f"{rho:.4f}", f"{accountant.get_epsilon(DELTA):.4f}", f"{took:.3f}")


def told_epsilon(composed: Composition) -> float:
    """What dp_accounting finds from the distribution that it is given."""
    return float(composed.to_dp_accounting().get_epsilon_for_delta(DELTA))


def unlike(sizes: Sequence[int]) -> Iterator[Sequence[str]]:
    """GM, EM, WM and a mechanism of which only epsilon is known, k of each."""
    for k in sizes:
        one = TOTAL / math.sqrt(4 * k)
        kinds: list[Release] = [TABLES[name](one) for name in ("GM", "EM", "WM")]
        kinds.append(PrivacyLoss.pure(one))
        composed = compose(kinds * k)
        above, took = timed(composed.epsilon, DELTA)
        below, below_took = timed(composed.epsilon_at_least, DELTA)
        row = [str(4 * k), f"{above:.4f}", f"{below:.4f}", f"{took:.2f}", f"{below_took:.2f}"]
        if 4 * k * one / 1e-4 <= LARGEST:
            told, their = timed(told_epsilon, composed)
            row += [f"{told:.4f}", f"{their:.2f}"]
        yield (*row, *[""] * (7 - len(row)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small k only")
    quick = parser.parse_args().quick
    one_core()
    print(f"dp-accounting {version('dp-accounting')}, numpy {np.__version__}")
    sizes = [10**power for power in ((0, 1, 2) if quick else range(7))]
    table(
        "k releases of one table, epsilon at delta = 1e-6",
        (
            *("table", "k", "epsilon of one", "here", "at least", "s", "s"),
            *("dp_accounting, 10^-4", "optimistic", "s"),
            *("dp_accounting, one / 20", "optimistic", "s"),
            *("rho", "Renyi", "s"),
        ),
        compared(sizes, list(TABLES)[: 2 if quick else None]),
    )
    table(
        "k releases of four kinds",
        ("k", "here", "at least", "s", "s", "told to dp_accounting", "s"),
        unlike([max(1, k // 4) for k in sizes]),
    )


if __name__ == "__main__":
    main()

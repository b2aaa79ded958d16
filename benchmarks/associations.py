"""How often tests of independence reject, by critical values that include the noise or do not.

python benchmarks/associations.py [--quick]
"""

from __future__ import annotations

import os

os.environ.update(
    dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
)

import argparse
import math

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from frequency.marginals import Domain, InpHT, InpRR, MargHT, MarginalProtocol, MargPS, chi_square

Table = npt.NDArray[np.float64]
MARGINS: dict[str, tuple[list[float], list[float]]] = {
    "2 x 2, even": ([0.5, 0.5], [0.5, 0.5]),
    "2 x 2, 0.1 and 0.2": ([0.1, 0.9], [0.2, 0.8]),
    "2 x 2, 0.02 and 0.3": ([0.02, 0.98], [0.3, 0.7]),
    "3 x 4, skewed": ([0.6, 0.3, 0.1], [0.4, 0.3, 0.2, 0.1]),
}


def population(
    rows: list[float], columns: list[float], others: int, effect: float = 0.0
) -> tuple[Domain, Table]:
    """Probabilities of all records: attributes a and b with these margins, and even ones.

    ``effect`` is the root of sum (p - r c)^2 / (r c), Cramer's phi for two binary attributes: it
    couples the first values.
    """
    r, c = np.array(rows), np.array(columns)
    shift = np.outer(
        np.r_[1 - r[0], -r[1:] / r[1:].sum() * (1 - r[0])],
        np.r_[1 - c[0], -c[1:] / c[1:].sum() * (1 - c[0])],
    )
    shift *= effect / math.sqrt((shift**2 / np.outer(r, c)).sum())
    joint = np.outer(r, c) + shift
    assert joint.min() >= 0
    domain = Domain({"a": len(r), "b": len(c), **{f"o{k}": 2 for k in range(others)}})
    return domain, np.kron(joint.ravel(), np.full(2**others, 0.5**others))


def rates(
    protocol: MarginalProtocol, table: Table, n: int, repeats: int, rng: np.random.Generator
) -> tuple[float, float, float]:
    """How often the two tests reject, and the mean ratio of their critical values."""
    plain, aware, ratio = 0, 0, 0.0
    for _ in range(repeats):
        found = chi_square(
            protocol.estimate(protocol.simulate(rng.multinomial(n, table), rng)), "a", "b"
        )
        plain += found.statistic > found.critical_without_noise
        aware += found.dependent
        ratio += found.critical / found.critical_without_noise
    return plain / repeats, aware / repeats, ratio / repeats


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    repeats = 100 if parser.parse_args().quick else 400
    rng, n, others, epsilon, effect = np.random.default_rng(1), 1 << 18, 4, 1.1, 0.1
    rows = []
    kinds = (InpHT, MargPS, MargHT, InpRR)
    for kind, (name, margins) in tqdm(
        [(kind, item) for kind in kinds for item in MARGINS.items()], disable=None
    ):
        domain, table = population(*margins, others)
        protocol = kind(domain, 2, epsilon)
        plain, aware, ratio = rates(protocol, table, n, repeats, rng)
        _, power, _ = rates(protocol, population(*margins, others, effect)[1], n, repeats // 2, rng)
        rows.append(
            [kind.__name__, name, f"{plain:.3f}", f"{aware:.3f}", f"{ratio:.0f}", f"{power:.2f}"]
        )
    title = (
        f"Independence at level 0.05: N = 2^18, d = {others + 2}, k = 2, epsilon = {epsilon},"
        f" {repeats} repeats"
    )
    head = [
        "protocol",
        "margins",
        "rejected though true, textbook",
        "rejected though true, here",
        "ratio of critical values",
    ]
    head.append(f"rejected at effect {effect}, here")
    print(f"\n## {title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()

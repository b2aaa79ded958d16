"""Statements of the sources about range queries: those that hold, and what is true where they do
not (docs/notation.md).
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from rangeq import Between, DecomposedHistogram, HaarHRR, HierarchicalHistogram
from tests.rangeq.core.trees import all_ranges

N = 1 << 26
EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0, 1.1, 1.2, 1.4)

# Tables 5.2 and 5.3 of the thesis (range queries, figures 5 and 6), parts (a) and (b): columns HH4
# and HaarHRR.
PRINTED = {
    ("ranges", 8): {
        "HH4": (4.037, 2.193, 1.341, 0.950, 0.744, 0.667, 0.658, 0.542),
        "Haar": (3.684, 1.831, 1.278, 0.987, 0.811, 0.748, 0.732, 0.601),
    },
    ("ranges", 16): {
        "HH4": (7.129, 3.424, 2.360, 1.728, 1.377, 1.270, 1.140, 0.995),
        "Haar": (6.666, 3.526, 2.342, 1.711, 1.484, 1.345, 1.201, 1.130),
    },
    ("prefixes", 8): {
        "HH4": (2.968, 1.439, 0.957, 0.778, 0.561, 0.533, 0.437, 0.420),
        "Haar": (2.857, 1.377, 1.031, 0.758, 0.613, 0.626, 0.568, 0.494),
    },
    ("prefixes", 16): {
        "HH4": (6.172, 3.101, 2.176, 1.503, 1.220, 1.051, 0.978, 0.848),
        "Haar": (5.870, 2.880, 2.018, 1.511, 1.244, 1.120, 1.054, 0.973),
    },
}


def made(kind: str, bits: int, epsilon: float) -> HaarHRR | HierarchicalHistogram:
    return (
        HaarHRR(1 << bits, epsilon)
        if kind == "Haar"
        else HierarchicalHistogram(1 << bits, epsilon, 4, "OUE")
    )


@pytest.mark.parametrize("kind", ["HH4", "Haar"])
@pytest.mark.parametrize(("workload", "bits"), PRINTED)
def test_tables_5_2_and_5_3(workload: str, bits: int, kind: str) -> None:
    """The captions say mean squared error, times 1000; the sizes, and that halving epsilon doubles
    them, show the root of it.

    The printed numbers are means of five runs and scatter: 0.82 to 1.07 of the prediction. The
    printed theory leaves out the 1/N of choosing a coefficient (and a level's users), which the
    prediction has.
    """
    ratios = []
    for epsilon, printed in zip(EPSILONS, PRINTED[workload, bits][kind], strict=True):
        predicted = made(kind, bits, epsilon).average_rmse(N, workload) * 1000
        ratios.append(printed / predicted)
        assert printed > 100 * predicted**2 / 1000  # not the mean square, times 1000
    assert min(ratios) > 0.8
    assert max(ratios) < 1.1
    mean = math.exp(np.mean(np.log(ratios)))
    if (workload, bits) == ("ranges", 16):
        # A seventh less than predicted, for all ranges of 2^16 items alone: see the next test
        assert 0.84 < mean < 0.88
    else:
        assert 0.9 < mean < 1.01


HH2 = {
    ("ranges", 16): (6.745, 3.616, 2.333, 1.644, 1.356, 1.303, 1.090, 0.922),
    ("prefixes", 16): (7.701, 3.266, 2.402, 1.663, 1.338, 1.202, 1.080, 0.973),
}
"""Column HH2 of part (b) of the two tables."""


@pytest.mark.parametrize(
    ("branching", "printed"),
    [
        (2, HH2["ranges", 16]),
        (2, HH2["prefixes", 16]),
        (4, PRINTED["ranges", 16]["HH4"]),
        (0, PRINTED["ranges", 16]["Haar"]),
    ],
)
def test_ranges_of_2_16_items_begin_at_every_256th(
    branching: int, printed: tuple[float, ...]
) -> None:
    """The numbers are not those of all ranges but of those that begin at multiples of 2^8, which
    cut few large nodes.

    So does the paper sample larger domains. The column HH2 of the table for prefixes is of such
    ranges too.
    """
    domain, rng = 1 << 16, np.random.default_rng(8)
    first = np.arange(0, domain, 256)
    first = rng.choice(first, 1 << 15, p=(domain - 1 - first) / (domain - 1 - first).sum())
    last = first + 1 + rng.integers(0, domain - 1 - first)
    ratios = []
    for epsilon, value in zip(EPSILONS, printed, strict=True):
        protocol = (
            HierarchicalHistogram(domain, epsilon, branching, "OUE")
            if branching
            else HaarHRR(domain, epsilon)
        )
        variance = protocol._own_range_variance(
            first, last, protocol.channel.expected_users(N)
        ).mean()
        ratios.append(value / 1000 / math.sqrt(variance))
    assert math.exp(np.mean(np.log(ratios))) == pytest.approx(1, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["HH4", "Haar"])
@pytest.mark.parametrize("epsilon", [0.2, 1.1])
def test_predictions_of_the_tables_are_those_of_simulation(epsilon: float, kind: str) -> None:
    """Cauchy users as in range queries 5 (centre 0.4 D, height D/10), scaled from 2^12 to N = 2^26;
    standard errors below 1.3%.
    """
    protocol, repeats, rng = made(kind, 8, epsilon), 600, np.random.default_rng(7)
    x = np.arange(256)
    density = 1 / (1 + ((x - 0.4 * 256) / 25.6) ** 2)
    held = rng.multinomial(1 << 12, density / density.sum())
    truth = np.cumsum(held) / (1 << 12)
    squares = np.zeros((2, repeats))
    for k in range(repeats):
        error = np.concatenate(
            [[0.0], protocol.estimate(protocol.simulate(held, rng)).cdf() - truth]
        )
        pairs = 257 * (error**2).sum() - error.sum() ** 2 - (np.diff(error) ** 2).sum()
        squares[:, k] = pairs / (256 * 255 / 2), (error[1:] ** 2).mean()
    for workload, of_runs in zip(("ranges", "prefixes"), squares, strict=True):
        found = math.sqrt(of_runs.mean() * (1 << 12) / N)
        deviation = of_runs.std(ddof=1) / math.sqrt(repeats) / (2 * of_runs.mean())
        assert deviation < 0.013
        assert protocol.average_rmse(N, workload) == pytest.approx(found, rel=0.04)


def test_optimal_branchings_are_roots_of_the_printed_derivatives() -> None:
    """Range queries 4.4 and 4.5: without consistency B ln B - 2B + 2 = 0, with it B ln B - 2B - 2 =
    0.
    """
    for sign, root in ((2, 4.922), (-2, 9.18)):
        found = brentq(lambda b, sign=sign: b * math.log(b) - 2 * b + sign, 2, 50)
        assert found == pytest.approx(root, abs=7e-3)

        def cost(b, sign=sign):
            return (b - sign / 2) / math.log(b) ** 2

        assert cost(found) < min(cost(found - 0.1), cost(found + 0.1))


def frequency_variance(epsilon: float) -> float:
    return 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2


@pytest.mark.parametrize("epsilon", [0.2, 1.1])
@pytest.mark.parametrize(("domain", "b"), [(64, 2), (256, 4), (81, 3), (256, 16)])
def test_theorem_4_3_and_equation_1_are_bounds(domain: int, b: int, epsilon: float) -> None:
    """(2B - 1) V_F h (ceil(log_B r) + 1), where V_F is a node's whole variance.

    It includes the node's share of the sampling of levels.
    """
    protocol = DecomposedHistogram(domain, epsilon, b, "OUE")
    first, last = all_ranges(domain)
    h, n = protocol.tree.height, 1 << 30
    aggregate = protocol.simulate(np.full(domain, n // domain), np.random.default_rng(0))
    variance = protocol.estimate(aggregate).answer(Between(first, last)).variance * n
    alpha = np.ceil(np.log(last - first + 1) / math.log(b) - 1e-9) + 1
    node = frequency_variance(epsilon) + 1 / b  # at most
    bound = (2 * b - 1) * node * h * alpha
    assert (variance <= bound).all()
    assert variance.max() > 0.15 * bound.max()  # and of the right size
    # Prefixes: B - 1 nodes a level.
    assert (variance[first == 0] <= (b - 1) * node * h * alpha[first == 0] * 1.01).all()


@pytest.mark.parametrize("epsilon", [0.2, 1.1])
@pytest.mark.parametrize(("domain", "b"), [(64, 2), (256, 4), (81, 3), (256, 16), (64, 8)])
def test_lemma_4_6_and_equation_2_are_bounds(domain: int, b: int, epsilon: float) -> None:
    """With consistency: single nodes by B / (B+1), ranges (B+1)/2 V_F h for every level touched,
    ceil(log_B r) + 1 of them.
    """
    protocol = HierarchicalHistogram(domain, epsilon, b, "OUE")
    first, last = all_ranges(domain)
    h, n = protocol.tree.height, 1 << 30
    aggregate = protocol.simulate(np.full(domain, n // domain), np.random.default_rng(0))
    variance = protocol.estimate(aggregate).answer(Between(first, last)).variance * n
    # Levels have nearly as many users as expected
    node = (frequency_variance(epsilon) + 1 / b) * 1.001
    length = last - first + 1
    for width in protocol.tree.widths:
        is_node = (length == width) & (first % width == 0)
        assert (variance[is_node] <= b / (b + 1) * node * h).all()
    levels = np.ceil(np.log(length) / math.log(b) - 1e-9) + 1
    bound = (b + 1) / 2 * node * h * levels
    assert (variance <= bound).all()
    assert variance.max() > 0.15 * bound.max()


@pytest.mark.parametrize("epsilon", [0.2, 1.1, 3.0])
@pytest.mark.parametrize("bits", [3, 6, 8])
def test_equation_3_is_a_bound_with_the_whole_variance(bits: int, epsilon: float) -> None:
    """h^2 V_F / 2 for every range, h^2 V_F / 4 for prefixes: where V_F is HRR's with the 1/N of
    choosing a coefficient.

    With the printed V_F, without it, the bound fails for larger epsilon.
    """
    protocol = HaarHRR(1 << bits, epsilon)
    first, last = all_ranges(1 << bits)
    # Of independent samples: a little more.
    variance = protocol.tree.range_variance(
        first, last, protocol._contrasts(protocol.channel.expected_users(1))
    )
    whole = (frequency_variance(epsilon) + 1) * 1.001
    assert whole == pytest.approx(1 / math.tanh(epsilon / 2) ** 2, rel=2e-3)
    assert (variance <= bits**2 * whole / 2).all()
    assert (variance[first == 0] <= bits**2 * whole / 4 + 1e-9).all()
    assert variance.max() > bits**2 * whole / 8
    if epsilon == 3:
        assert variance.max() > bits**2 * frequency_variance(epsilon) / 2


def test_fact_1_and_lemma_4_2() -> None:
    """Flat: r V_F, and (D + 2) V_F / 3 on average... over the r D - r + 1 ranges of all lengths,
    divided by those of at least 2.
    """
    domain, epsilon, n = 64, 1.1, 1 << 30
    protocol = DecomposedHistogram(domain, epsilon, domain, "OUE")
    first, last = all_ranges(domain)
    estimate = protocol.estimate(
        protocol.simulate(np.full(domain, n // domain), np.random.default_rng(0))
    )
    inner = last - first + 1 < domain
    node = frequency_variance(epsilon) / n
    found = estimate.answer(Between(first, last)).variance
    assert found[inner] == pytest.approx(((last - first + 1) * node)[inner], rel=0.02)
    every = ((last - first + 1) * node).sum() / (domain * (domain - 1) / 2)
    assert every == pytest.approx((domain + 2) * node / 3 * (domain + 1) / (domain - 1), rel=1e-9)
    assert protocol.average_rmse(n) ** 2 == pytest.approx(
        (every - 2 * node / (domain - 1)), rel=0.04
    )

"""Formulas and numbers of the notation pages against the code.

Each entry of the table below has a text that stands on the page, and what it says beside what the
code says. Rows that another test evaluates are listed with that test. A row with a formula that is
in neither list fails.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from frequency import GRR, HRR, OLH, OUE, SUE
from frequency.heavy import degraded, information_bound, lower_bound
from frequency.longitudinal.published import LGRR, RAPPOR
from frequency.marginals import InpHT, mutual_information
from frequency.schema import Domain
from mechdesign import Mechanism, Privacy, named
from mechdesign.accounting import shuffled
from mechdesign.losses import L0
from mechdesign.optimisation.unbiased_design import least_unbiased_variances
from rangeq import HaarHRR, HierarchicalHistogram
from rangeq.central import Hierarchy, Wavelet
from rangeq.grids.cells import ALPHA1, ALPHA2
from rangeq.local.square_wave import bandwidth
from rangeq.spatial.disk_area import disk_radius

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "notation"
N = 1000
RATIOS = (1.5, 3.0, 9.0)
"""e^epsilon."""
SHARES = (0.0, 0.3, 1.0)
ALPHAS = (Fraction(7, 10), Fraction(9, 10))

Pair = tuple[float | Fraction, float | Fraction]
"""What the page says, and what the code does."""


class Formula(NamedTuple):
    """A text of a page, and pairs of numbers over several parameters that are equal by it."""

    page: str
    text: str
    pairs: Callable[[], Iterator[Pair]]
    within: float = 1e-6


FORMULAS: list[Formula] = []


def formula(
    page: str, *texts: str, within: float = 1e-6
) -> Callable[[Callable[[], Iterator[Pair]]], Callable[[], Iterator[Pair]]]:
    """Enter what evaluates these texts of a page."""

    def entered(pairs: Callable[[], Iterator[Pair]]) -> Callable[[], Iterator[Pair]]:
        FORMULAS.extend(Formula(f"{page}.md", text, pairs, within) for text in texts)
        return pairs

    return entered


# ------------------------------------------------------------------------------------------ counts


@formula("counts", "(n+1)/n times the plain L0, uniform prior: UM scores 1")
def _scaled_l0() -> Iterator[Pair]:
    for n, alpha in product((2, 5, 8), ALPHAS):
        for mechanism in (named.geometric(n, alpha=alpha), named.explicit_fair(n, alpha=alpha)):
            yield Fraction(n + 1, n) * mechanism.loss(L0()), mechanism.scaled_l0()
        yield 1, named.uniform(n).scaled_l0()


@formula("counts", "(1-α) α^\\|δ\\| / (1+α)")
def _geometric_noise() -> Iterator[Pair]:
    for alpha, j in product(ALPHAS, (3, 4)):
        table = named.geometric(7, alpha=alpha).table
        for i in range(1, 7):
            yield (1 - alpha) * alpha ** abs(i - j) / (1 + alpha), table[i][j]


def _of_weak_honesty(n: int, a: Fraction) -> tuple[Fraction, Fraction]:
    """The plain L0 of WH as the page has it, up to n / (n + 2) and from there on."""
    return {
        2: (4 * a / (3 * (1 + a)), 2 * (4 * a - 1) / (9 * a)),
        3: (3 * a / (2 * (1 + a)), (7 * a**2 + 8 * a - 3) / (8 * a * (1 + a))),
        4: (8 * a / (5 * (1 + a)), 2 * (11 * a**2 + a - 2) / (25 * a**2)),
    }[n]


@formula(
    "counts",
    "| n | up to α = n/(n+2) | from α = n/(n+2) |",
    "| 2 | 4α / (3(1+α)), α ≤ 1/2 | 2(4α - 1) / (9α) |",
    "| 3 | 3α / (2(1+α)), α ≤ 3/5 | (7α² + 8α - 3) / (8α(1+α)) |",
    "| 4 | 8α / (5(1+α)), α ≤ 2/3 | 2(11α² + α - 2) / (25α²) |",
)
def _weak_honesty() -> Iterator[Pair]:
    for n, alpha in product((2, 3, 4), map(Fraction, ("2/5", "1/2", "5/8", "7/10", "9/10"))):
        before, after = _of_weak_honesty(n, alpha)
        said = before if alpha <= Fraction(n, n + 2) else after
        yield said, named.weakly_honest(n, alpha=alpha).loss(L0())


@formula("counts", "P_{0,0} + P_{n,n} = \\frac{1}{α^m} \\left( 1 - \\frac{1 + 2 (α + \\dots")
def _ends_of_even_tables() -> Iterator[Pair]:
    for m, alpha in product((1, 2, 4), ALPHAS):
        n = 2 * m
        if alpha < Fraction(n, n + 2):
            continue
        ends = (1 - (1 + 2 * sum(alpha**k for k in range(1, m))) / Fraction(n + 1)) / alpha**m
        trace = ends + Fraction(n - 1, n + 1)
        yield 1 - trace / (n + 1), named.weakly_honest(n, alpha=alpha).loss(L0())


@formula("counts", "(2 - 2(1+α)(1 + α + ... + α^(m-1)) / (n+1)) / (α^m (1+α))")
def _ends_of_odd_tables() -> Iterator[Pair]:
    for m, alpha in product((1, 2, 3), ALPHAS):
        n = 2 * m + 1
        if alpha < Fraction(n, n + 2):
            continue
        powers = sum(alpha**k for k in range(m))
        ends = (2 - 2 * (1 + alpha) * powers / (n + 1)) / (alpha**m * (1 + alpha))
        yield (
            1 - (ends + Fraction(n - 1, n + 1)) / (n + 1),
            named.weakly_honest(n, alpha=alpha).loss(L0()),
        )


@formula(
    "counts",
    "1 - (2(1 + α^-1 + ... + α^-m) - 1) / (n+1)² for even n",
    "1 - 4(1 + α^-1 + ... + α^-m) / ((1+α)(n+1)²)",
)
def _column_monotone() -> Iterator[Pair]:
    for n, alpha in product((2, 3, 4, 5), (Fraction(3, 4), Fraction(9, 10))):
        m = n // 2
        powers = sum(alpha**-k for k in range(m + 1))
        trace = 4 * powers / (1 + alpha) if n % 2 else 2 * powers - 1
        mechanism = named.weakly_honest(n, alpha=alpha, column_monotone=True)
        yield 1 - trace / (n + 1) ** 2, mechanism.loss(L0())


@formula(
    "counts",
    "the scaled L0 is 0.96169 for WH and 0.96551 for WH + CM (GM 0.94737, EM\n0.96854)",
    within=6e-6,
)
def _eight_respondents() -> Iterator[Pair]:
    alpha = Fraction(9, 10)
    yield 0.96169, named.weakly_honest(8, alpha=alpha).scaled_l0()
    yield 0.96551, named.weakly_honest(8, alpha=alpha, column_monotone=True).scaled_l0()
    yield 0.94737, named.geometric(8, alpha=alpha).scaled_l0()
    yield 0.96854, named.explicit_fair(8, alpha=alpha).scaled_l0()


@formula("counts", "with CM it is 0.96414 against 0.95238", within=6e-6)
def _twenty_respondents() -> Iterator[Pair]:
    yield 0.96414, named.weakly_honest(20, alpha="10/11", column_monotone=True).scaled_l0()
    yield 0.95238, named.geometric(20, alpha="10/11").scaled_l0()
    yield 0.95238, named.weakly_honest(20, alpha="10/11").scaled_l0()


@formula("counts", "\\left( 2 - \\frac{α^j + α^{n-j}}{1 + α} \\right) \\frac{α}{(1 - α)^2}")
def _least_variance() -> Iterator[Pair]:
    for n, alpha in product((1, 4, 8), ALPHAS):
        for j, found in enumerate(least_unbiased_variances(n, alpha=alpha)):
            yield (
                (2 - (alpha**j + alpha ** (n - j)) / (1 + alpha)) * alpha / (1 - alpha) ** 2,
                found,
            )


@formula(
    "counts",
    "| n = 8, α = 9/10 |",
    "| no property, S, RM | 10.75 (GM) | 10.75 | 10.75 |",
    within=5e-4,
)
def _standard_errors() -> Iterator[Pair]:
    yield 10.75, math.sqrt(np.mean(list(map(float, least_unbiased_variances(8, alpha="9/10")))))


@formula(
    "counts", "For odd n EM has 1/y = 1 + 2(α + ... + α^((n-1)/2)) + α^((n+1)/2)", "y = 100/361"
)
def _explicit_fair_of_odd_n() -> Iterator[Pair]:
    for n, alpha in product((1, 3, 5, 7), ALPHAS):
        half = (n + 1) // 2
        said = 1 + 2 * sum(alpha**k for k in range(1, half)) + alpha**half
        yield 1 / said, named.explicit_fair(n, alpha=alpha).table[0][0]
    yield Fraction(100, 361), named.explicit_fair(3, alpha="9/10").table[0][0]


@formula("counts", "`Shuffled.local_epsilon`, `.largest_ratio` (e^ε₀, exact)")
def _local_epsilon() -> Iterator[Pair]:
    for alpha in ALPHAS:
        collection = shuffled(
            Mechanism(named.krr(3, alpha=alpha).table, Privacy(alpha=alpha, neighbours="all")), 10
        )
        yield 1 / alpha, collection.largest_ratio
        yield -math.log(alpha), collection.local_epsilon


# ------------------------------------------------------------------------------------- frequencies


@formula(
    "frequencies",
    "[c² (1 - 1/D)² - 1/D²] / N at f = 0 with c = (e^ε + 1) / (e^ε - 1)",
    "(c² - 1) (1 - 1/D)² / N at f = 1",
)
def _hadamard_response() -> Iterator[Pair]:
    for domain, e in product((4, 8, 64), RATIOS):
        c, oracle = (e + 1) / (e - 1), HRR(domain, math.log(e))
        none = (c**2 * (1 - 1 / domain) ** 2 - 1 / domain**2) / N
        yield none, float(oracle.variance(N, 0.0))
        yield (c**2 - 1) * (1 - 1 / domain) ** 2 / N, float(oracle.variance(N, 1.0))


@formula("frequencies", "at e^ε = 3 it is 4 against 3, and 3.046875 at D = 8", within=1e-5)
def _hadamard_numbers() -> Iterator[Pair]:
    yield 4, float(HRR(1 << 20, math.log(3)).variance(1))
    yield 3, float(OUE(1 << 20, math.log(3)).variance(1))
    yield 3.046875, float(HRR(8, math.log(3)).variance(1))


@formula("frequencies", "`Oracle.max_ratio` is a rational ≤ e^ε")
def _ratios() -> Iterator[Pair]:
    for e in RATIOS:
        for oracle in (GRR(8, math.log(e)), OUE(8, math.log(e)), OLH(8, math.log(e))):
            yield e, oracle.max_ratio
            yield min(oracle.max_ratio, oracle.audit().ratio), oracle.audit().ratio


@formula("frequencies", "(f p(1-p) + (1-f) q(1-q)) / (n (p-q)²)")
def _pure_protocols() -> Iterator[Pair]:
    for e, f in product(RATIOS, SHARES):
        for oracle in (GRR(8, math.log(e)), OUE(8, math.log(e)), SUE(8, math.log(e))):
            p, q = float(oracle.p), float(oracle.q)
            said = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (N * (p - q) ** 2)
            yield said, float(oracle.variance(N, f))


@formula("frequencies", "(e^ε + D - 2 + f (D-2)(e^ε - 1)) / (e^ε - 1)²")
def _generalised_randomised_response() -> Iterator[Pair]:
    for domain, e, f in product((2, 8, 100), RATIOS, SHARES):
        said = (e + domain - 2 + f * (domain - 2) * (e - 1)) / (e - 1) ** 2 / N
        yield said, float(GRR(domain, math.log(e)).variance(N, f))


@formula("frequencies", "too small by the factor (e^ε + D - 2) / e^ε")
def _printed_variance_of_lies() -> Iterator[Pair]:
    for domain, e in product((2, 8, 100), RATIOS):
        printed = e / (e - 1) ** 2
        yield printed * (e + domain - 2) / e, float(GRR(domain, math.log(e)).variance(1, 0.0))


@formula("frequencies", r"\operatorname{Var} = \frac{(e^ε + q - 1)^2}{n (e^ε - 1)^2 (q - 1)}")
def _local_hashing() -> Iterator[Pair]:
    for e in RATIOS:
        oracle = OLH(1000, math.log(e))
        q = oracle.hashes_to
        yield (e + q - 1) ** 2 / (N * (e - 1) ** 2 * (q - 1)), float(oracle.variance(N, 0.0))


@formula("frequencies", "For e^ε = 3 it is 4, which is e^ε + 1", within=0)
def _range_of_hashes() -> Iterator[Pair]:
    yield 4, OLH(1000, math.log(3)).hashes_to


def _cost_of_hashes(epsilon: float, domain: int = 1 << 10) -> float:
    best = 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    return float(OLH(domain, epsilon).variance(1)) / best


@formula(
    "frequencies",
    "The worst case is near ε = 0.35, between 2 and 3: 3% more variance",
    "(ε = 8 at D = 65,536: 4% more variance; ε = 9: 56%)",
    within=6e-3,
)
def _costs_of_hashes() -> Iterator[Pair]:
    yield 1.03, max(_cost_of_hashes(epsilon) for epsilon in np.arange(0.05, 5.5, 0.05).tolist())
    yield 1.03, _cost_of_hashes(0.35)
    yield 1.04, _cost_of_hashes(8.0, 1 << 16)
    yield 1.56, _cost_of_hashes(9.0, 1 << 16)


@formula("frequencies", "e^(ε/2) / (e^(ε/2) - 1)² |")
def _symmetric_unary_encoding() -> Iterator[Pair]:
    for e in RATIOS:
        half = math.sqrt(e)
        yield half / (half - 1) ** 2, float(SUE(100, math.log(e)).variance(1))


@formula("frequencies", "- 1 / (e^ε + 1), after dividing by N")
def _optimised_unary_encoding() -> Iterator[Pair]:
    for e in RATIOS:
        yield 1 / (e + 1), float(OUE(100, math.log(e)).q)


@formula("frequencies", "(e^ε + 2^t - 1)² / (t (e^ε - 1)²) for large D", within=1e-4)
def _several_coefficients() -> Iterator[Pair]:
    for e, t in product(RATIOS, (1, 2, 3)):
        said = (e + 2**t - 1) ** 2 / (t * (e - 1) ** 2)
        yield said, float(HRR(1 << 20, math.log(e), t).variance(1))


@formula("frequencies", "ε = ln(1 + 2√2) = 1.342", within=5e-4)
def _two_coefficients() -> Iterator[Pair]:
    border = math.log(1 + 2 * math.sqrt(2))
    yield 1.342, border
    one, two = (float(HRR(1 << 20, border, t).variance(1)) for t in (1, 2))
    yield one, two


@formula("frequencies", "(1 + kept) / 2, kept = `p - q` of the pattern")
def _true_signs() -> Iterator[Pair]:
    for e, t in product(RATIOS, (1, 2, 3)):
        kept = float(HRR(1 << 10, math.log(e), t)._contrast)
        yield (1 + kept) / 2, (e + 2 ** (t - 1) - 1) / (e + 2**t - 1)


@formula("frequencies", "+ T - 1: a user reports one of T coefficients")
def _marginal_coefficients() -> Iterator[Pair]:
    for e, d in product(RATIOS, (2, 4)):
        protocol = InpHT(Domain.binary(*"abcd"[:d]), d, math.log(e))
        p, several = e / (e + 1), 2**d - 1
        said = 4 * several * p * (1 - p) / (2 * p - 1) ** 2 + several - 1
        yield said, 4 * N * float(np.ravel(protocol.cell_variances(N, ["a"]))[0])


@formula("frequencies", "`mutual_information(m)` | in nats")
def _mutual_information() -> Iterator[Pair]:
    for several in (2, 3, 8):
        yield math.log(several), mutual_information(np.eye(several) / several)


@formula("frequencies", "(b (a + k - 2) - (k - 1)) / (a - b), with a = e^ε_∞, b = e^ε_1")
def _second_round() -> Iterator[Pair]:
    for k, (total, day) in product((2, 3, 16), ((1.0, 0.5), (3.0, 1.0))):
        a, b = math.exp(total), math.exp(day)
        kept = float(LGRR(k, total, day).kept)
        stays, changes = kept + (1 - kept) / k, (1 - kept) / k
        yield (b * (a + k - 2) - (k - 1)) / (a - b), stays / changes
        if k == 2:
            yield (a * b - 1) / (a - b), stays / changes


@formula(
    "frequencies",
    "(p1 p2 + (k-1) q1 q2) / (p1 q2 + q1 p2 + (k-2) q1 q2), which is less for k > 2",
    "At (1, 0.5), L-GRR of 16 items loses 0.18",
    within=0.03,
)
def _what_a_printed_second_round_loses() -> Iterator[Pair]:
    a, b = math.e, math.exp(0.5)
    for k, said in ((2, 0.5), (16, 0.18), (1024, 0.00376)):
        p1, q1 = a / (a + k - 1), 1 / (a + k - 1)
        ratio = (b * p1 - q1) / (p1 - b * q1)  # as printed
        p2, q2 = ratio / (ratio + k - 1), 1 / (ratio + k - 1)
        more, less = p1 * p2 + (k - 1) * q1 * q2, p1 * q2 + q1 * p2 + (k - 2) * q1 * q2
        yield said, math.log(more / less)


@formula("frequencies", "(1 + tanh(ε_1/4) / tanh(ε_∞/4)) / 2")
def _second_round_of_rappor() -> Iterator[Pair]:
    for total, day in ((1.0, 0.5), (3.0, 1.0), (8.0, 2.0)):
        said = (1 + math.tanh(day / 4) / math.tanh(total / 4)) / 2
        yield said, (1 + float(RAPPOR(16, total, day).kept)) / 2


# ----------------------------------------------------------------------------------- heavy hitters


@formula("heavy-hitters", "0.385 √(ln d / n) / ε for small ε", within=2e-3)
def _lower_bound() -> Iterator[Pair]:
    n, d, epsilon = 10**12, 2**4096, 1e-3
    yield 0.385 * math.sqrt(math.log(d) / n) / epsilon, lower_bound(n, d, epsilon)


@formula("heavy-hitters", "about ε² / 8 for δ = 0, else ε² / 2 + δ ln d", within=0.02)
def _information_bound() -> Iterator[Pair]:
    for epsilon in (0.001, 0.01):
        yield epsilon**2 / 8, information_bound(10**6, epsilon)
        for delta in (1e-9, 1e-6):
            said = epsilon**2 / 2 + delta * math.log(10**6)
            yield said, information_bound(10**6, epsilon, delta)


@formula("heavy-hitters", "(ln(1 + η (e^ε - 1)), η δ)")
def _degraded() -> Iterator[Pair]:
    for e, delta, kept in product(RATIOS, (0.0, 1e-3), (0.1, 0.7)):
        found = degraded(math.log(e), delta, kept)
        yield math.log(1 + kept * (e - 1)), found[0]
        yield kept * delta, found[1]


# ------------------------------------------------------------------------------------------ ranges


@formula(
    "ranges",
    "HaarHRR 3.800, 1.299, 0.755, 0.625; HH4c with OUE 4.199, 1.385, 0.734, 0.563",
    within=2e-3,
)
def _errors_of_ranges() -> Iterator[Pair]:
    haar, tree = (3.800, 1.299, 0.755, 0.625), (4.199, 1.385, 0.734, 0.563)
    for epsilon, one, other in zip((0.2, 0.6, 1.1, 1.4), haar, tree, strict=True):
        # Of ranges a < b: single items are none
        yield one, 1000 * HaarHRR(256, epsilon).average_rmse(1 << 26)
        yield other, 1000 * HierarchicalHistogram(256, epsilon, 4, "OUE").average_rmse(1 << 26)


@formula("ranges", "OUE at a node with a fraction f: V_F + 2f / N")
def _nodes() -> Iterator[Pair]:
    for e, f in product(RATIOS, SHARES):
        noise = float(OUE(64, math.log(e)).variance(1, f))
        yield 4 * e / (e - 1) ** 2 + 2 * f, noise + f  # and the sampling of levels


@formula(
    "ranges",
    "163.48; and [16, 16, 2] has 150.74, [8, 8, 8] 118.98, of any branchings [24, 22] 113.97",
    within=5e-5,
)
def _table_5_4_of_unequal_branchings() -> Iterator[Pair]:
    for branching, said in (
        ([2, 16, 16], 163.48),
        ([16, 16, 2], 150.74),
        ([8, 8, 8], 118.98),
        ([24, 22], 113.97),
    ):
        yield said, Hierarchy(512, 1, branching).average_variance()


@formula("ranges", "221.13, 305.95, 536.14; 410.29 is right", within=2e-5)
def _table_5_4_of_wavelets() -> Iterator[Pair]:
    for power, said in ((8, 221.13), (9, 305.95), (10, 410.29), (11, 536.14)):
        yield said, Wavelet(1 << power, 1).average_variance()


@formula("ranges", "410.58, 537.18; 185.99, 214.14", within=3e-5)
def _table_5_4_of_trees() -> Iterator[Pair]:
    for power, branching, said in (
        (10, 2, 410.58),
        (11, 2, 537.18),
        (10, 16, 185.99),
        (11, 16, 214.14),
    ):
        yield said, Hierarchy(1 << power, 1, branching).average_variance()


@formula("ranges", "log⁴; the root 16.8 is right", within=1e-3)
def _branching_without_inference() -> Iterator[Pair]:
    def slope(b: float) -> float:  # of (b - 1) / log^3 b, times log^4 b
        return math.log(b) - 3 * (b - 1) / b

    low, high = 10.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    yield 16.8, low


@formula(
    "ranges",
    "2^16 gives 136 M; 69 M is every 2^17. At 2^20, every 2^15 and 17 M agree",
    within=0.02,
)
def _numbers_of_ranges() -> Iterator[Pair]:
    for power, every, said in ((22, 16, 136e6), (22, 17, 69e6), (20, 15, 17e6)):
        yield said, sum((1 << power) - start for start in range(0, 1 << power, 1 << every))


@formula("ranges", "half hours of four months: 2^17 | 5856", within=0)
def _half_hours() -> Iterator[Pair]:
    yield 5856, 48 * (31 + 31 + 30 + 30)


@formula("ranges", "16335: a pair has 33² ranges and not 32²", within=0)
def _ranges_of_pairs() -> Iterator[Pair]:
    yield 16335, math.comb(6, 2) * 33**2
    yield 15360, math.comb(6, 2) * 32**2


@formula("ranges", "| `rangeq.grids.cells` | 0.7 and 0.03", within=0)
def _non_uniformity() -> Iterator[Pair]:
    yield 0.7, ALPHA1
    yield 0.03, ALPHA2


@formula("ranges", "the minimum is at 2^(1/3) = 1.26 times g1", within=1e-4)
def _cells_of_lines() -> Iterator[Pair]:
    # (alpha / g)^2 + g noise is least at the cube root of 2 alpha^2 / noise
    for noise in (1e-6, 1e-4):
        printed = (ALPHA1**2 / noise) ** (1 / 3)
        grid = printed * np.linspace(1.2, 1.3, 100_001)
        yield 2 ** (1 / 3), float(grid[((ALPHA1 / grid) ** 2 + grid * noise).argmin()]) / printed


@formula("ranges", "π b² / (XY + 2b(X + Y)) = 2 δ for sides X and Y")
def _radius_of_a_disk() -> Iterator[Pair]:
    for epsilon, (x, y) in product((0.5, 2.0, 5.0), ((8, 8), (10, 30))):
        b = disk_radius(epsilon, x, y)
        yield 2 * bandwidth(epsilon), math.pi * b**2 / (x * y + 2 * b * (x + y))


@formula("ranges", "(D = 20, b = 16: 25.68;", within=2e-4)
def _padded_tree() -> Iterator[Pair]:
    yield 25.68, Hierarchy(20, 1, 16).average_variance()


# --------------------------------------------------------------------------------------- elsewhere

THESIS = "mechdesign/test_thesis.py::test_"
LOCAL = "mechdesign/local/test_workload_mechanism.py::test_"
EXTREMAL = "mechdesign/local/test_extremal_mechanism.py::test_"
ACCOUNTING = "mechdesign/accounting/test_"
UNBIASED = "mechdesign/test_unbiased_design.py::test_"
MARGINALS = "frequency/marginals/test_"
LONGITUDINAL = "frequency/longitudinal/published/test_"
HEAVY = "frequency/heavy/published/test_"
RANGES = "rangeq/test_sources.py::test_"
MATRIX = "rangeq/central/matrix_mechanism/test_"
CLAIMS = "test_reproduction.py::test_every_claim_can_be_computed"

ELSEWHERE = {
    "counts.md": {
        "| O_{p,Σ} (Def. 21) |": THESIS + "definition_21_losses_and_eq_6_1",
        "| RH RM CH CM F WH S |": THESIS + "eqs_6_2_to_6_9_are_what_properties_checks",
        "ratio at most α^-d(j, j')": "mechdesign/test_privacy.py::test_pairs_and_their_distances",
        "| e^ε | `a_optimality.Criterion.ratio` |": LOCAL + "rounding_keeps_privacy_exactly",
        "| s, staircase pattern |": EXTREMAL + "rows_have_two_levels",
        "| θ_s | weights (`theta`)": EXTREMAL + "rows_have_two_levels",
        "| y (prices) |": EXTREMAL + "against_all_patterns",
        "| W, G = W'W | `workload`": LOCAL + "variance_is_that_of_least_squares",
        "| π_s, u |": LOCAL + "variance_is_that_of_least_squares",
        "| M = Σ π_s u u' |": LOCAL + "variance_is_that_of_least_squares",
        "| ω, γ |": ACCOUNTING + "shuffling.py::test_upper_bounds_are_those_of_the_blanket",
        "| W | `first": ACCOUNTING + "shuffling.py::test_upper_bounds_are_those_of_the_blanket",
        "| δ(ε) = E_P(1 - e^(ε-L))_+ |": ACCOUNTING
        + "against_enumeration.py::test_a_report_alone_tells_what_its_table_says",
        "| Wang et al., PVLDB 2024": ACCOUNTING + "published_reductions.py"
        "::test_merging_the_rest_of_a_user_with_that_of_others_is_no_bound",
        "| Feldman, McMillan and Talwar": ACCOUNTING
        + "published_reductions.py::test_it_is_a_bound_where_the_user_has_no_rest",
        "| WH | 159 | 10.78 |": UNBIASED + "the_table_of_the_notation_page",
        "| WH + CM | 19.45 (WM) |": UNBIASED + "the_table_of_the_notation_page",
        "| F | 20.76 (EM: 35.5) |": UNBIASED + "the_table_of_the_notation_page",
        "| all seven | 42.5": UNBIASED + "the_table_of_the_notation_page",
        "| Definition of L0,d |": "mechdesign/test_losses.py::test_threshold_is_more_than_d_steps",
        "| Theorem 12 |": THESIS + "theorem_12_gm_is_the_only_l0_optimum",
        "| Lemma 13, Lemma 14, Figure 6.5 |": THESIS
        + "lemma_13_gm_is_weakly_honest_from_the_threshold_on",
        "| Section 6.6.3 | WM is": THESIS + "wm_not_derivable_from_gm_only_sometimes",
        "| Section 6.7.1 |": THESIS + "section_6_7_1_nine_combinations_have_two_behaviours",
        "| Figure 6.1, α = 0.62 |": THESIS
        + "figure_6_1_absolute_error_reports_two_or_five_only_at_other_alphas",
    },
    "frequencies.md": {
        "| C_β(t), C^β": MARGINALS + "fourier.py::test_lemma_6_marginals_from_coefficients",
        "| χ², p (thesis 2.5.2) |": MARGINALS
        + "association.py::test_without_noise_it_is_the_test_of_the_textbooks",
        "| Thesis 2.5.2 | χ²": MARGINALS
        + "association.py::test_without_noise_it_is_the_test_of_the_textbooks",
        "| Thesis 4.5.1, Figure 4.8 |": MARGINALS + "association.py"
        "::test_the_size_is_what_was_asked_for_and_that_of_the_textbook_s_value_is_not",
        "| Thesis Table 2.1 | Night_pick": CLAIMS,
        "| Thesis Table 2.1 | Tip": CLAIMS,
        "| Thesis Theorem 2 |": CLAIMS,
        "| Thesis eqs. 4.2 to 4.4 |": CLAIMS,
        "| Thesis Theorem 3, proof |": MARGINALS
        + "whole_record.py::test_theorem_3_variance_of_unary_encoding",
        "| Thesis Algorithms 1, 2 |": CLAIMS,
        "| Thesis 4.4.2, 4.4.3 |": MARGINALS
        + "whole_record.py::test_theorem_4_variance_of_preferential_sampling",
        "| LOLOHA, the best g |": LONGITUDINAL + "published.py::test_the_best_range_of_a_hash",
        "| L-GRR, L-OSUE, variance of a frequent item |": LONGITUDINAL
        + "published.py::test_the_variance_of_frequent_items",
        "| all of them: k ε_∞": LONGITUDINAL
        + "systems.py::test_values_that_change_on_the_same_days",
    },
    "heavy-hitters.md": {
        "| c = (e^ε + 1) / (e^ε - 1) |": HEAVY
        + "unique_heavy_hitter.py::test_estimates_are_unbiased_with_the_stated_variance",
        "| (2^m, m, ζ)-code |": HEAVY
        + "succinct_histogram.py::test_isolation_and_decoding_succeed_as_often_as_is_said",
        "| Theorem 4.1, GenProt |": HEAVY + "one_bit.py::test_a_half_of_the_paper_is_too_much",
        "| Theorem 3.4, PROT-S-Hist |": HEAVY
        + "succinct_histogram.py::test_reports_lose_no_more_than_is_allowed",
    },
    "ranges.md": {
        "| HH^c_B, TreeOUECI": "rangeq/core/test_tree_inference.py"
        "::test_equal_variances_give_the_printed_passes",
        "| Table 5.2 (b), D = 2^16 |": RANGES + "ranges_of_2_16_items_begin_at_every_256th",
        "| Table 5.3, column HH2 |": RANGES + "tables_5_2_and_5_3",
        "| the same at 2^20 and 2^22 |": CLAIMS,
        "| the same, section 3.3, two levels |": "rangeq/central/test_hierarchy.py"
        "::test_proposition_1_and_equations_1_to_4",
        "| Thesis Lemma 8; range queries Lemma 4.2 |": RANGES + "fact_1_and_lemma_4_2",
        "| Thesis Fact 3, Theorem 6 |": "rangeq/core/test_node_decomposition.py"
        "::test_fact_3_and_the_bounds_after_it",
        "| Range queries, eq. (2) |": RANGES + "lemma_4_6_and_equation_2_are_bounds",
        "| Range queries 5.2, text |": CLAIMS,
        "| Algorithm 2 |": CLAIMS,
        "| Sections 3, 5, CALM and LHIO |": CLAIMS,
        "| MSW | square wave with EM": CLAIMS,
        "| p, q | `DiskChannel.likelihood_of` |": "rangeq/spatial/test_disk_area.py"
        "::test_what_is_proved_for_points_is_what_is_drawn_for_cells",
        "| W, G = W'W | `Workload`": MATRIX + "workload.py::test_a_matrix_asks_its_rows",
        "| A, X = A'A |": MATRIX + "strategy.py::test_normal_is_the_matrix_twice",
        "| Δ₁, Δ₂ |": MATRIX + "strategy.py::test_sensitivities_are_those_of_the_columns",
        "| σ² | `MatrixMechanism": MATRIX
        + "mechanism.py::test_noise_keeps_the_promise_by_the_columns_themselves",
        "| σ² tr(G X⁺) / queries |": MATRIX + "strategy.py::test_workload_variances_are_means",
        "| V | `least_cell_variance`": MATRIX
        + "staircase_strategy.py::test_of_one_cell_the_bound_is_the_variance",
        "| S, α^d(x, S) |": "mechdesign/test_staircase.py::test_draws_have_the_probabilities",
        "| μ | `dual_bound": MATRIX
        + "gram_optimum.py::test_no_multipliers_give_more_than_a_strategy_has",
    },
}
"""For each page texts on it, and the test that evaluates what they say."""

# ------------------------------------------------------------------------------------------- tests


@pytest.mark.every_case
@pytest.mark.parametrize("entry", FORMULAS, ids=lambda one: f"{one.page}-{one.text[:40]}")
def test_pages_say_what_the_code_does(entry: Formula) -> None:
    assert entry.text in (PAGES / entry.page).read_text(encoding="utf-8")
    pairs = list(entry.pairs())
    assert pairs
    for said, found in pairs:
        assert float(found) == pytest.approx(float(said), rel=entry.within, abs=1e-12)


_LAW = re.compile(r"[=≥≤√Σ∞²]|\^|\d/\d|\d %|\b(ln|log) ")
_DECIMAL = re.compile(r"\d\.\d")


def rows_with_a_formula(page: str) -> Iterator[str]:
    """Rows of tables that state a law or a number; sections and names of code are none."""
    lines = (PAGES / page).read_text(encoding="utf-8").splitlines()
    for line in lines:
        if not line.startswith("|") or line.startswith(("| ---", "| symbol", "| where")):
            continue
        bare = re.sub(r"`[^`]*`|\]\([^)]*\)|(thesis|section|Table) [0-9.]*", "", line)
        if _LAW.search(bare) or _DECIMAL.search(bare.split("|", 2)[2]):
            yield line


@pytest.mark.every_case
@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("*.md")))
def test_every_row_with_a_formula_is_evaluated(page: str) -> None:
    texts = [one.text for one in FORMULAS if one.page == page] + list(ELSEWHERE[page])
    content = (PAGES / page).read_text(encoding="utf-8")
    assert [text for text in texts if text not in content] == []
    rows = list(rows_with_a_formula(page))
    assert rows
    assert [row for row in rows if not any(text in row for text in texts)] == []


def test_a_row_with_a_new_formula_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "PAGES", tmp_path)
    (tmp_path / "new.md").write_text("| a | b |\n| --- | --- |\n| x | f = 2 |\n| y | `z` |\n")
    assert list(rows_with_a_formula("new.md")) == ["| x | f = 2 |"]


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_tests_elsewhere_are_there(page: str) -> None:
    for place in ELSEWHERE[page].values():
        path, _, name = place.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
        assert name in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}, place

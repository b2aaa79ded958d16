"""Central hierarchies against brute force over all ranges, and the published numbers."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from frequency import Between
from rangeq.central import CentralFlat, Hierarchy, InvalidRange
from rangeq.core.boxes import tree_over
from rangeq.core.tree_inference import LevelInference
from tests.rangeq.central.examples import PLAIN, design, name, ranges, uses

# --------------------------------------------------------------------------- against brute force


def fewest(m, a, b):
    """The nodes (level, index) that make up a .. b, by the definition: inside, with the parent not
    inside.
    """
    inside = set()
    for level in range(len(m.fanouts)):
        size = math.prod(m.fanouts[level + 1 :])
        for k in range(-(-m.domain // size)):
            if a <= k * size and min((k + 1) * size, m.domain) - 1 <= b:
                inside.add((level, k))
    return {
        (level, k)
        for level, k in inside
        if level == 0 or (level - 1, k // m.fanouts[level]) not in inside
    }


@pytest.mark.parametrize("m", PLAIN, ids=name)
def test_without_inference_the_fewest_nodes_are_added(m):
    rng = np.random.default_rng(4)
    noisy = [rng.integers(-50, 50, nodes) for nodes in m.tree.nodes[1:]]
    estimate = m.estimate(noisy)
    cells = np.arange(m.domain)
    np.testing.assert_array_equal(estimate.counts, estimate.range(cells, cells))
    a, b = ranges(m.domain)
    values, variances = estimate.range(a, b), m.range_variance(a, b)
    used = [0] * len(m.fanouts)
    for k, (first, last) in enumerate(zip(a, b, strict=True)):
        nodes = fewest(m, first, last)
        assert values[k] == sum(noisy[level][i] for level, i in nodes)
        assert variances[k] == pytest.approx(
            sum(float(m.noise_variances[level]) for level, _ in nodes)
        )
        for level, _ in nodes:
            used[level] += 1
    assert used == uses(m.domain, m.branching)
    assert m.sampled_average_variance() == pytest.approx(variances.mean())
    ideal = sum(
        n * 2 / (m.given_epsilon * share) ** 2 for n, share in zip(used, m.shares, strict=True)
    ) / len(a)
    assert m.average_variance(exact=True) == ideal


def test_inference_never_makes_a_range_worse():
    for m in PLAIN:
        with_inference = Hierarchy(
            m.domain, m.epsilon, m.branching, budget=[float(s) for s in m.shares]
        )
        a, b = ranges(m.domain)
        assert np.all(with_inference.range_variance(a, b) <= m.range_variance(a, b) * (1 + 1e-9))


# ------------------------------------------------------------------------------ published numbers


@pytest.mark.parametrize(
    ("domain", "branching", "printed"),
    [
        (1 << 8, 2, "220.06"),
        (1 << 9, 2, "305.54"),
        (1 << 8, 16, "79.23"),
        (1 << 8, [16, 16], "79.23"),
    ],
)
def test_table_of_average_variances(domain, branching, printed):
    """Qardaji et al., table 3 (thesis, table 5.4), epsilon = 1: to the last digit with continuous
    noise, and not with discrete.
    """
    m = Hierarchy(domain, 1.0, branching)
    assert f"{m.average_variance():.2f}" == printed
    assert f"{m.sampled_average_variance():.2f}" != printed
    assert m.sampled_average_variance() < m.average_variance()


def test_table_of_average_variances_where_sixteen_does_not_divide():
    """Printed is 164.48 for 2^9; 16 as an integer is [2, 16, 16], with 163.48. The better order is
    not the one of the table.
    """
    assert Hierarchy(512, 1.0, 16).fanouts == (2, 16, 16)
    assert f"{Hierarchy(512, 1.0, 16).average_variance():.2f}" == "163.48"
    assert f"{Hierarchy(512, 1.0, [2, 16, 16]).average_variance():.2f}" == "163.48"
    assert f"{Hierarchy(512, 1.0, [16, 16, 2]).average_variance():.2f}" == "150.74"
    assert f"{Hierarchy(512, 1.0, [16, 2, 16]).average_variance():.2f}" != "164.48"


def ideal(b, h):
    """V_Avg of H_b in units of V_u, without inference, exactly."""
    return Hierarchy(b**h, 1, b, inference=False).average_variance(exact=True) / 2


@pytest.mark.parametrize(("b", "h"), [(2, 3), (2, 6), (3, 3), (4, 4), (16, 2), (16, 3)])
def test_proposition_1_and_equations_1_to_4(b, h):
    n = b**h
    # Equation (2): uses of each level by all ranges, of which the paper's count lets the root
    # answer the range of everything.
    used = uses(n, (b,) * h)
    for level in range(1, h + 1):  # the paper's levels: 1 is the leaves
        printed = (b - 1) * (Fraction(n * n, 2) - Fraction(n * (b + 1) * b ** (level - 1), 3) + n)
        brute = 0
        for j in range(1, n // b**level + 1):
            for k in range(1, b + 1):
                left, right = (
                    (j - 1) * b**level + (k - 1) * b ** (level - 1) + 1,
                    (j - 1) * b**level + k * b ** (level - 1),
                )
                brute += left * (n - right + 1) - ((j - 1) * b**level + 1) * (n - j * b**level + 1)
        assert printed == brute
        assert used[h - level] == brute + (b if level == h else 0)
    # Equation (1), with what the O() hides, and with the b nodes that answer the range of
    # everything when the root is not asked.
    total = (
        (b - 1) * Fraction(h * n * n, 2)
        - Fraction((b + 1) * n * n, 3)
        + (b - 1) * n * h
        + Fraction((b + 1) * n, 3)
    )
    leading = (b - 1) * h**3 - Fraction(2 * (b + 1) * h**2, 3)
    hidden = Fraction(2 * (b - 1) * h**3, n) + Fraction(2 * (b + 1) * h**2, 3 * n)
    assert sum(used) == total + b
    assert Fraction(n, n + 1) * (leading + hidden) == Fraction(2, n * (n + 1)) * total * h**2
    assert ideal(b, h) == Fraction(2, n * (n + 1)) * (total + b) * h**2
    # Equation (3) leaves out a term of order b h^3 / N (not b h / N, as printed).
    assert abs(ideal(b, h) - Fraction(n, n + 1) * leading) <= Fraction(5 * b * h**3, n)
    if b == 2:
        assert leading == h**3 - 2 * h**2  # equation (4)


def test_the_hidden_term_is_not_of_order_b_h_over_n():
    for b in (2, 4, 16):
        ratios = []
        for h in (4, 8, 16, 32):
            n = b**h
            leading = Fraction(n, n + 1) * ((b - 1) * h**3 - Fraction(2 * (b + 1) * h**2, 3))
            total = sum(uses(n, (b,) * h))
            ratios.append((Fraction(2, n * (n + 1)) * total * h**2 - leading) / Fraction(b * h, n))
        assert all(later > 3 * earlier for earlier, later in pairwise(ratios))


def solve(matrix, right):
    """Gauss-Jordan elimination over the rationals."""
    n = len(matrix)
    rows = [
        [Fraction(x) for x in row] + [Fraction(x) for x in extra]
        for row, extra in zip(matrix, right, strict=True)
    ]
    for i in range(n):
        pivot = next(k for k in range(i, n) if rows[k][i])
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for k in range(n):
            if k != i and rows[k][i]:
                rows[k] = [x - rows[k][i] * y for x, y in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


def test_figure_1():
    """N = 8, b = 2, nodes n1 .. n14 level by level: the printed weights, exactly, from rational
    least squares.
    """
    rows = [[int(x) for x in row] for row in design(Hierarchy(8, 1.0, 2))[0]]
    information = [[sum(row[i] * row[k] for row in rows) for k in range(8)] for i in range(8)]
    # Weight of n1 .. n14 in each leaf
    cells = solve(information, [[row[i] for row in rows] for i in range(8)])

    def weights(**printed):
        return [printed.get(f"n{k}", Fraction(0)) for k in range(1, 15)]

    f = Fraction
    shared = {"n3": f(5, 21), "n1": f(1, 7), "n4": f(-2, 21), "n9": f(-1, 21), "n10": f(-1, 21)}
    assert cells[0] == weights(**shared, n7=f(13, 21), n8=f(-8, 21))
    assert cells[1] == weights(**shared, n8=f(13, 21), n7=f(-8, 21))
    ninth = {"n4": f(5, 21), "n1": f(1, 7), "n3": f(-2, 21), "n7": f(-1, 21), "n8": f(-1, 21)}
    assert cells[2] == weights(**ninth, n9=f(13, 21), n10=f(-8, 21))
    q = [sum(column) for column in zip(*cells[:3], strict=True)]
    assert q == weights(
        n1=f(3, 7), n3=f(8, 21), n4=f(1, 21), n7=f(4, 21), n8=f(4, 21), n9=f(11, 21), n10=f(-10, 21)
    )
    assert sum(w * w for w in q) == f(399, 441)
    # The same variance from the recurrences, and the same weights from the two passes.
    errors = LevelInference(tree_over((8,), 2), [f(1)] * 3)
    assert errors.variance(np.array([[0]]), np.array([[2]]))[0] == f(399, 441)
    tree = Hierarchy(8, 1.0, 2)
    for node in range(14):
        noisy = np.eye(14, dtype=np.int64)[node]
        found = tree.estimate([noisy[:2], noisy[2:6], noisy[6:]]).counts
        np.testing.assert_allclose(found, [float(cell[node]) for cell in cells], atol=1e-12)


# ------------------------------------------------------------------------- what answers look like


def test_padding_does_not_show():
    m = Hierarchy(17, 50.0, 4)
    assert m.fanouts == (2, 4, 4)
    estimate = m.release(np.ones(17, dtype=int), np.random.default_rng(0))
    np.testing.assert_allclose(estimate.counts, 1, atol=0.1)
    assert estimate.range(0, 16) == pytest.approx(17, abs=0.5)
    with pytest.raises(InvalidRange):
        estimate.range(0, 17)


@pytest.mark.slow
def test_a_domain_of_a_million():
    """A release of 2^20 cells and a million questions, each within seconds; the mean square of the
    errors is the predicted one.
    """
    m = Hierarchy(1 << 20, 1.0, 16)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 1000, 1 << 20)
    estimate = m.release(counts, rng)
    a, b = np.sort(rng.integers(0, 1 << 20, (2, 1_000_000)), axis=0)
    starts = np.concatenate([[0], np.cumsum(counts)])
    scaled = (estimate.range(a, b) - (starts[b + 1] - starts[a])) ** 2 / estimate.answer(
        Between(a, b)
    ).variance
    assert 0.3 < scaled.mean() < 2.5  # the top levels are shared by all questions
    short = rng.integers(0, (1 << 20) - 8, 100_000)
    scaled = (
        estimate.range(short, short + 7) - (starts[short + 8] - starts[short])
    ) ** 2 / estimate.answer(Between(short, short + 7)).variance
    assert abs(scaled.mean() - 1) < 0.05
    assert m.average_variance() == pytest.approx(1196.3504, abs=1e-4)


# -------------------------------------------------------------------------------- what is refused


def test_refused_trees():
    for branching in (0, 1, -2, True, 2.0, None, "2", [], [2, 1, 2], [2.0, 2], {2, 4}):
        with pytest.raises(ValueError, match="branching must be"):
            Hierarchy(4, 1.0, branching)
    for branching in ([2, 3], [3], [2, 8], [4, 4, 4]):
        with pytest.raises(ValueError, match="product of the branchings"):
            Hierarchy(8, 1.0, branching)
    with pytest.raises(TypeError, match="inference"):
        Hierarchy(8, 1.0, 2, inference="yes")
    for budget in ("even", [1, 2], [1, 2, 0], [1, -1, 1], [1, 1, math.nan], []):
        with pytest.raises(ValueError, match=r"budget must be|weight"):
            Hierarchy(8, 1.0, 2, budget=budget)
    with pytest.raises(ValueError, match="budget must be"):
        Hierarchy(8, 1.0, 2, inference=False, budget=[1, 0, 1])
    with pytest.raises(ValueError, match="too small for a level"):
        Hierarchy(8, 2.0**-32, 2, budget=[1, 1e-9, 1])


def test_short_ranges_of_large_domains():
    """The variance of the few cells in a very wide node is not the difference of large numbers."""
    m = CentralFlat((1 << 26) - 5, 1.0)
    a = np.array([0, 1 << 25, m.domain // 3, m.domain - 3])
    (noise,) = m.noise
    assert noise is not None
    np.testing.assert_allclose(m.range_variance(a, a + 2), 3 * float(noise.variance), rtol=1e-13)


@pytest.mark.parametrize("free", [(0,), (2,), (0, 2), (0, 1, 2)])
def test_attributes_that_no_box_restricts_are_looked_at_by_fewer_kinds(free):
    """The same variances as among boxes of which one cuts every attribute."""
    sizes = np.array([5, 9, 4])
    errors = Hierarchy((5, 9, 4), 1, [(2, 3), (3, 3), (4, 1)], budget=(2, 1)).errors
    rng = np.random.default_rng(1)
    ends = np.sort(rng.integers(0, sizes[:, None], (2, 3, 40)), axis=0)
    for axis in free:
        ends[0, axis], ends[1, axis] = 0, sizes[axis] - 1
    beside = np.concatenate([ends, np.ones((2, 3, 1), dtype=np.int64)], axis=2)
    expected = errors.variance(*beside)[:-1]
    np.testing.assert_allclose(errors.variance(*ends), expected, rtol=1e-9)

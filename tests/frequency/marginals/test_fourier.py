"""Fourier coefficients: phases, directions and marginals by their definitions."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from frequency import Aggregate
from frequency.marginals import Domain, InpHT, MarginalEstimate
from frequency.marginals.fourier import Phase
from tests.contracts.oracle import LN3, close, ratio_of
from tests.frequency.marginals.examples import B3, B4, MIXED, SEVEN
from tests.frequency.marginals.twins import phase_twin
from tests.tape import WORD


@pytest.mark.parametrize("order", [1, 2, 3, 4, 5, 6, 7, 12])
def test_phases(order) -> None:
    """Every multiple that has a gain is told without bias; its second moment is 1 / (contrast
    gain)^2 for any phase.
    """
    channel = Phase(order, 1.0)
    twin = phase_twin(channel)
    P = np.array([[float(p) for p in row] for row in twin.table])
    X = np.array(
        [channel.coefficients(channel.aggregate(twin.reports[r : r + 1])) for r in range(len(P))]
    )
    wave = np.exp(2j * np.pi * np.outer(np.arange(order), np.arange(order)) / order)
    some = channel.gains > 1e-9
    assert some[0] == (order == 0)
    assert some[1 : order // 2 + 1 : 2].all()
    close((P.T @ X)[:, some], wave[:, some], X.real)
    close(
        (P.T @ np.abs(X) ** 2)[:, some],
        np.tile((channel.contrast * channel.gains[some]) ** -2, (order, 1)),
        np.abs(X) ** 2,
    )
    assert not X[:, ~some].any()
    assert channel.audit().ratio == ratio_of(twin.table, list(combinations(range(order), 2)))


def test_parity_of_bits() -> None:
    """Where phases are parities of an item's bits they are counted as such: for the halves of even
    attributes too.
    """
    masks = InpHT(Domain.binary(*map(str, range(62))), 1, 1.0).channel._masks
    assert masks is not None
    assert masks.tolist() == [1 << 61 - k for k in range(62)]
    masks = InpHT(B3, 2, 1.0).channel._masks
    assert masks is not None
    assert masks.tolist() == [4, 2, 1, 6, 5, 3]
    assert InpHT(MIXED, 2, 1.0).channel._masks is None
    assert InpHT(Domain({"a": 2, "b": 4}), 1, 1.0).channel._masks is None


# -------------------------------------------------------------------------------------- published


@pytest.mark.parametrize("epsilon", [0.2, LN3, 2.0])
@pytest.mark.parametrize(("d", "k"), [(2, 1), (3, 3), (4, 4)])
def test_theorem_5_variance_of_a_coefficient(d, k, epsilon) -> None:
    """A coefficient of mean 0 has variance T / (2p - 1)^2 - 1 = 4 T p (1-p) / (2p-1)^2 + T - 1,
    times 1 / n, for p_s = 1 / T.

    Where the thesis has 4 T e^eps / (e^eps - 1)^2 + 1 (4.6), by (4.4): there the users who sample
    another coefficient count as an error of 1, but the estimate of those who sample it is scaled
    after its error is taken, not before. By enumeration the right one is the larger. (Coefficients
    are equally likely when all are needed by as many marginals.)
    """
    T, protocol = (
        sum(math.comb(d, j) for j in range(1, k + 1)),
        InpHT(Domain.binary(*"abcd"[:d]), k, epsilon),
    )
    assert (
        max(protocol.channel.part_weights) - min(protocol.channel.part_weights) <= 2**64 / T * 1e-9
    )
    p = Fraction(int(protocol.channel.parts[0].parameters["truth"]), WORD)
    outcomes = [
        (Fraction(1, T) * p, T / (2 * p - 1)),
        (Fraction(1, T) * (1 - p), -T / (2 * p - 1)),
        (1 - Fraction(1, T), Fraction(0)),
    ]
    assert sum(chance * value for chance, value in outcomes) == 1
    variance = sum(chance * (value - 1) ** 2 for chance, value in outcomes)
    assert variance == 4 * T * p * (1 - p) / (2 * p - 1) ** 2 + T - 1
    e = math.exp(epsilon)
    assert float(variance) == pytest.approx(4 * T * e / (e - 1) ** 2 + T - 1)
    assert variance > 4 * T * p * (1 - p) / (2 * p - 1) ** 2 + 1 - Fraction(1, T) or T < 2
    for name in protocol.domain:  # a cell of a marginal of one attribute is (1 +- coefficient) / 2
        np.testing.assert_allclose(
            4 * 1000 * protocol.cell_variances(1000, [name]), float(variance), rtol=1e-9
        )


def test_lemma_6_marginals_from_coefficients() -> None:
    """The marginal of beta is 2^-k times the sum over alpha inside beta of (-1)^<alpha, gamma>
    theta_alpha: of no others.
    """
    protocol, rng = InpHT(B4, 3, 1.0), np.random.default_rng(7)
    records = rng.integers(0, 2, size=(3000, 4)) * rng.integers(0, 2, size=(3000, 4))
    reports = protocol.privatize(records, rng)
    theta, contrast = {(0, 0, 0, 0): 1.0}, protocol.channel.parts[0].contrast
    for part, alpha in enumerate(protocol.channel.parameters["characters"]):
        # After the shift, which is 0
        signs = reports["body"][reports["direction"] == part][:, 1].view("i1")
        theta[tuple(alpha)] = signs.mean() / contrast
    assert len(theta) == 1 + 4 + 6 + 4
    estimate = protocol.estimate(protocol.aggregate(reports))
    for names in [view for k in (1, 2, 3) for view in permutations("abcd", k)]:
        places, found = ["abcd".index(name) for name in names], estimate.marginal(names)
        for gamma in product((0, 1), repeat=len(names)):
            total = 0.0
            for inside in product((0, 1), repeat=len(names)):
                alpha = [0, 0, 0, 0]
                for place, value in zip(places, inside, strict=True):
                    alpha[place] = value
                total += (-1) ** sum(a * g for a, g in zip(inside, gamma, strict=True)) * theta[
                    tuple(alpha)
                ]
            assert found[gamma] == pytest.approx(total / 2 ** len(names), abs=1e-12)


# ----------------------------------------------------------------------------------- coefficients


@pytest.fixture(scope="module")
def of_many() -> tuple[InpHT, np.ndarray, Aggregate]:
    """What is expected of 10^12 users with these records: sums of signs by the definition of
    phases.
    """
    protocol, rng = InpHT(SEVEN, 2, 1.0), np.random.default_rng(9)
    records = rng.binomial(np.array(SEVEN.shape) - 1, 0.3, size=(60, 7))
    channel, n = protocol.channel, 10**12
    counts, contrast = [], channel.parts[0].contrast
    users = [round(n * weight / WORD) for weight in channel.part_weights]
    for part, (phase, mine) in enumerate(zip(channel.parts, users, strict=True)):
        m = phase.domain
        c = channel.directions[part]
        held = Counter(
            int(
                sum(Fraction(a * x, r) for a, x, r in zip(c, row, SEVEN.shape, strict=True)) % 1 * m
            )
            for row in records.tolist()
        )
        for shift in range(m if m > 2 else 1):
            mean = sum(k / 60 * (1 if 2 * ((p + shift) % m) < m else -1) for p, k in held.items())
            counts.append(round(mine * contrast * mean / (m if m > 2 else 1)))
    aggregate = Aggregate(
        channel.signature, sum(users), np.array([*users, *counts], dtype=np.int64)
    )
    return protocol, records, aggregate


def test_coefficients_of_mixed_cardinalities(of_many) -> None:
    """The transform of every marginal is the mean of exp(2 pi i sum_j c_j x_j / r_j), by complex
    sums over the records.
    """
    protocol, records, aggregate = of_many
    estimate = MarginalEstimate(protocol, aggregate)
    for names in [view for k in (1, 2) for view in permutations(SEVEN, k)]:
        columns, shape = records[:, SEVEN.places(names)], [SEVEN[name] for name in names]
        found = protocol._transform(aggregate, names)
        for c in product(*map(range, shape)):
            expected = np.exp(2j * np.pi * (columns * np.array(c) / shape).sum(axis=1)).mean()
            assert abs(found[c] - expected) < 1e-8
            if any(c):
                assert (
                    abs(
                        found[c]
                        - np.exp(
                            2j * np.pi * (columns * (np.array(c) + 1) / shape).sum(axis=1)
                        ).mean()
                    )
                    > 1e-8
                    or max(shape) == 1
                )
        np.testing.assert_allclose(
            estimate.marginal(names), SEVEN.marginal(records, names), atol=1e-8
        )


def test_a_planted_error_is_rejected(of_many) -> None:
    """One sum of signs of one direction in another place."""
    protocol, records, aggregate = of_many
    part = next(
        k
        for k, c in enumerate(protocol.channel.directions)
        if sum(map(bool, c)) == 2 and c[2] and c[5]
    )
    counts = aggregate.counts.copy()
    place = protocol.channel._places[part]
    assert np.ptp(counts[place])
    counts[place] = np.roll(counts[place], 1)
    wrong = MarginalEstimate(protocol, Aggregate(aggregate.parameters, aggregate.n, counts))
    assert (
        np.abs(wrong.marginal(("four", "six")) - SEVEN.marginal(records, ("four", "six"))).max()
        > 1e-4
    )


@pytest.mark.parametrize("domain", [B4, SEVEN, Domain({"a": 5, "b": 2, "c": 6})], ids=repr)
def test_directions_are_the_coefficients_of_low_order(domain) -> None:
    """One of every conjugate pair; all that marginals need are seen; and no more are asked than
    there are.
    """
    for k in (1, 2, 3):
        protocol, shape = InpHT(domain, k, 1.0), domain.shape
        directions = protocol.channel.directions
        assert directions == protocol.channel.directions
        low = [c for c in product(*map(range, shape)) if 1 <= sum(map(bool, c)) <= k]
        conjugate = [tuple(-a % r for a, r in zip(c, shape, strict=True)) for c in low]
        assert set(directions) | {
            tuple(-a % r for a, r in zip(c, shape, strict=True)) for c in directions
        } == set(low)
        assert len(directions) == sum(c <= d for c, d in zip(low, conjugate, strict=True))
        assert set(low) <= set(protocol._seen)
        for coefficient, ways in protocol._seen.items():
            for part, multiple in ways:
                assert (
                    tuple(multiple * a % r for a, r in zip(directions[part], shape, strict=True))
                    == coefficient
                )


@pytest.mark.parametrize("domain", [B4, MIXED, Domain({"a": 5, "b": 2, "c": 6})], ids=repr)
def test_part_weights_are_the_roots_of_what_they_cost(domain) -> None:
    """By summing over all marginals of k attributes 1 / cells for each coefficient of one of them,
    and counting conjugates.
    """
    for k in range(1, len(domain) + 1):
        channel = InpHT(domain, k, 1.0).channel
        roots = []
        for direction in channel.directions:
            involved = {name for name, c in zip(domain, direction, strict=True) if c}
            cost = sum(
                1 / domain.project(view).size for view in domain.views(k) if involved <= set(view)
            )
            own = all(2 * c % r == 0 for c, r in zip(direction, domain.shape, strict=True))
            # Else it stands for its conjugate, too
            roots.append(math.sqrt(cost) * (1 if own else 2))
        np.testing.assert_allclose(
            np.array(channel.part_weights, dtype=float) / WORD,
            np.array(roots) / sum(roots),
            rtol=1e-11,
        )
        assert sum(channel.part_weights) == WORD


@pytest.mark.slow
def test_attributes_of_many_values_cost_less_than_as_bits() -> None:
    """d = 6, k = 2: the root of the mean variance of the cells of all marginals, at most 0.9 of
    that over binary attributes.

    There an attribute is ceil(log2 r) bits, and the marginal of two is one of twice as many; codes
    that are not used are left out.
    """
    rivals = {}
    for r in (3, 5, 6, 7):
        bits, n = (r - 1).bit_length(), 1 << 20
        if bits not in rivals:
            binary = InpHT(
                Domain.binary(*(f"{a}{b}" for a in range(6) for b in range(bits))), 2 * bits, 1.1
            )
            rivals[bits] = math.sqrt(
                binary.cell_variances(n, binary.domain.attributes[: 2 * bits]).mean()
            )
        own = InpHT(Domain({f"a{k}": r for k in range(6)}), 2, 1.1)
        variances = [own.cell_variances(n, view) for view in own.domain.views(2)]
        assert np.ptp(variances) < 1e-9 * np.mean(variances)
        assert math.sqrt(np.mean(variances)) <= 0.9 * rivals[bits]


@pytest.mark.parametrize(("domain", "k"), [(B3, 2), (MIXED, 2), (SEVEN, 1)], ids=repr)
def test_all_cells_err_alike_on_even_populations(domain, k) -> None:
    """What is found for one cell is right for each."""
    protocol, n = InpHT(domain, k, 1.0), 500
    for names in domain.views(k):
        even = np.zeros(domain.project(names).shape, dtype=complex)
        even[(0,) * k] = 1.0
        each = protocol._variance_of(
            names, np.eye(even.size), protocol.channel.expected_users(n), even
        )
        np.testing.assert_allclose(protocol.cell_variances(n, names).ravel(), each, rtol=1e-12)

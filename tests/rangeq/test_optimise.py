"""`rangeq.optimise`: never worse than what is published, optimal in the probabilities, and as good as it says."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

from rangeq import Flat, HaarHRR, HierarchicalHistogram, Optimised, Tree, optimise
from rangeq.optimise import ORACLES, best_oracle, describe, per_user, probabilities

N = 1 << 26
DOMAINS = (2, 3, 5, 17, 100, 256, 1000)
EPSILONS = (0.1, 0.2, 0.6, 1.1, 1.4, 3, 5)


@cache
def found(domain: int, epsilon: float, workload: str) -> Optimised:
    return optimise(domain, epsilon, N, workload)


def published(domain: int, epsilon: float) -> list:
    trees = [HierarchicalHistogram(domain, epsilon, b, name) for b in (2, 4, 8, 16) for name in ("OUE", "HRR")]
    return [Flat(domain, epsilon), HaarHRR(domain, epsilon), *trees]


@pytest.mark.parametrize("workload", ["ranges", "prefixes"])
@pytest.mark.parametrize("domain", DOMAINS)
def test_never_worse_than_the_best_published(domain: int, workload: str) -> None:
    for epsilon in EPSILONS:
        result = found(domain, epsilon, workload)
        best = min(protocol.average_rmse(N, workload) for protocol in published(domain, epsilon))
        assert result.rmse <= best * (1 + 1e-9), (epsilon, result.rmse / best)
        assert result.rmse == result.protocol.average_rmse(N, workload)
        errors = [rmse for _, rmse in result.alternatives]
        assert errors == sorted(errors)
        assert result.alternatives[0] == (result.protocol, result.rmse)
        assert result.protocol.domain == domain
        assert result.protocol.epsilon == epsilon
        assert result.protocol.audit().holds
        if domain >= 16:  # an optimised tree, not a published one
            trees = [rmse for protocol, rmse in result.alternatives if getattr(protocol, "probabilities", None)]
            assert min(trees) < best


@pytest.mark.parametrize(("epsilon", "ratio"), [(0.2, 0.975), (0.6, 0.94), (1.1, 0.88), (1.4, 0.875)])
def test_gains_at_256_items(epsilon: float, ratio: float) -> None:
    best = min(protocol.average_rmse(N) for protocol in published(256, epsilon))
    assert found(256, epsilon, "ranges").rmse <= ratio * best
    assert found(256, epsilon, "ranges").rmse >= (ratio - 0.03) * best  # and no better than can be true


def test_the_prediction_is_confirmed() -> None:
    """256 items, epsilon 1.1, all 32640 ranges; the root mean square over 500 repeats, with a standard error below 1.2%."""
    protocol, n, repeats = found(256, 1.1, "ranges").protocol, 1 << 11, 500
    rng, even = np.random.default_rng(4), np.full(256, 1 / 256)
    squares = np.zeros(repeats)
    for k in range(repeats):
        sums = np.concatenate(
            [[0], np.cumsum(protocol.estimate(protocol.simulate(np.full(256, n // 256), rng)).frequencies - even)]
        )
        # Over all pairs of cuts, less single items; see `rangeq.tree`.
        pairs = len(sums) * (sums**2).sum() - sums.sum() ** 2
        squares[k] = (pairs - (np.diff(sums) ** 2).sum()) / (256 * 255 / 2)
    assert squares.std(ddof=1) / math.sqrt(repeats) / 2 < 0.012 * squares.mean()
    assert math.sqrt(squares.mean()) == pytest.approx(protocol.average_rmse(n), rel=0.03)


def average(tree: Tree, variances: np.ndarray, workload: str, shares: np.ndarray) -> float:
    """The mean variance for these probabilities, from the precisions of `rangeq.consistency`."""
    q = np.array(shares / variances)
    for level in range(tree.height - 2, -1, -1):
        q[level] += q[level + 1] / tree.branching[level + 1]
    return float((tree.costs(workload) / q).sum())


@pytest.mark.parametrize("workload", ["ranges", "all ranges", "prefixes"])
@pytest.mark.parametrize(("domain", "branching"), [(8, 2), (100, 2), (256, 2), (243, 3), (256, 4), (17, 3)])
def test_probabilities_are_optimal(domain: int, branching: int, workload: str) -> None:
    """The first-order conditions of a convex problem, by differences; and nothing at random is better."""
    tree, rng = Tree.of(domain, branching), np.random.default_rng(domain)
    for variances in (np.ones(tree.height), rng.uniform(0.5, 4, tree.height), 2.0 + np.arange(tree.height)):
        shares = probabilities(tree, variances, workload)
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
        least = average(tree, variances, workload, shares)
        step = 1e-6
        gains = []
        for level in range(tree.height):
            moved = shares * (1 - step) + step * (np.arange(tree.height) == level)
            gains.append((average(tree, variances, workload, moved) - least) / step / least)
        gains = np.array(gains)
        assert (gains > -1e-4).all()  # no level would gain
        assert np.abs(gains[shares > 1e-3]).max() < 1e-3  # and all that have users are alike
        for other in [*rng.dirichlet(np.ones(tree.height), 100), np.full(tree.height, 1 / tree.height)]:
            assert average(tree, variances, workload, other) >= least * (1 - 1e-9)
            near = 0.99 * shares + 0.01 * other
            assert average(tree, variances, workload, near) >= least * (1 - 1e-9)
        # The test can fail: these are not optimal.
        assert average(tree, variances, workload, 0.7 * shares + 0.3 / tree.height * np.arange(tree.height, 0, -1)) != least


def test_each_level_has_the_best_short_oracle() -> None:
    for nodes, held in ((2, 2), (5, 5), (16, 11), (1000, 1000)):
        for epsilon in (0.1, 1.1, 3.0):
            oracle, variance = best_oracle(nodes, held, epsilon)
            rated = [(per_user(kind(nodes, epsilon), held), kind(nodes, epsilon).report_bits) for kind in ORACLES.values()]
            assert variance == min(v for v, bits in rated if bits <= 256) == per_user(oracle, held)
            assert oracle.report_bits <= 256


# The prediction of HaarHRR on which all rests.


@pytest.mark.parametrize(("epsilon", "printed"), [(0.2, 3.800), (0.6, 1.300), (1.1, 0.757), (1.4, 0.627)])
def test_haar_hrr_for_users_spread_out(epsilon: float, printed: float) -> None:
    """The figures are for independent samples; the users themselves are estimated better, by the mean of f(1-f)/n."""
    contrast = math.tanh(epsilon / 2)
    tree = Tree.of(256, 2)
    by_hand = tree.costs("ranges").sum() * 8 / (2 * contrast**2) / N
    assert math.sqrt(by_hand) * 1000 == pytest.approx(printed, abs=6e-4)
    f = np.arange(2, 257) / 256
    shared = (f * (1 - f) * (257 - 256 * f)).sum() / (257 - 256 * f).sum() / N
    assert HaarHRR(256, epsilon).average_rmse(N) ** 2 == pytest.approx(by_hand - shared, rel=1e-3)


def test_wrong_arguments() -> None:
    for arguments in [
        (0, 1.0, N),
        (16, 0.0, N),
        (16, 1.0, 0),
        (16, 1.0, 1.5),
        (16, 1.0, N, "all"),
        (16, 1.0, N, ""),
        (16, -1, N),
        ("16", 1.0, N),
    ]:
        with pytest.raises((ValueError, TypeError)):
            optimise(*arguments)


def test_smallest_domains() -> None:
    result = optimise(1, 1.0, 100)
    assert result.rmse == 0
    str(result)
    assert optimise(2, 1.0, 100, "all ranges").rmse > 0


def test_number_of_users_changes_only_the_scale() -> None:
    few, many = optimise(17, 1.0, 100), optimise(17, 1.0, 10_000)
    assert few.protocol == many.protocol
    assert few.rmse == pytest.approx(10 * many.rmse)


def test_the_table(capsys) -> None:
    result = found(256, 1.1, "ranges")
    lines = str(result).splitlines()
    assert len(lines) == 1 + len(result.alternatives)
    assert "1.000" in lines[1]
    assert any("HaarHRR" in line for line in lines)
    assert describe(Flat(8, 1.0)) == "Flat, OUE"
    assert describe(HierarchicalHistogram(8, 1.0, 2, "HRR")) == "HH 2x2x2, HRR"
    optimise(5, 1.0, 100)
    assert capsys.readouterr() == ("", "")
    optimise(5, 1.0, 100, progress=True)
    assert capsys.readouterr().out == ""


def test_what_is_found_is_a_protocol_like_any_other() -> None:
    protocol = found(17, 1.1, "ranges").protocol
    again = type(protocol)(protocol.domain, protocol.epsilon, protocol.branching, protocol.oracle, True, protocol.probabilities)
    assert again == protocol
    reports = protocol.privatize(np.arange(17), np.random.default_rng(0))
    assert protocol.reports_from_bytes(protocol.reports_to_bytes(reports)).tobytes() == reports.tobytes()
    assert sum(protocol.level_weights) == 1 << 64

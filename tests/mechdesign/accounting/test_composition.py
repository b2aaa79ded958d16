"""Composition: bounds on both sides of exact enumeration, and distributions of privacy losses."""

import math
import time
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

from mechdesign import Mechanism, Metric, Privacy, named
from mechdesign.accounting import PrivacyLoss, compose
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.accounting.inversion import Mean
from mechdesign.accounting.pair_law import exp_above, exp_below
from mechdesign.accounting.privacy_loss import NO_LOSS
from mechdesign.base.numbers import ball
from tests.mechdesign.accounting.enumerated import composed_delta, counted
from tests.mechdesign.accounting.test_shuffling import random_table

RESPONSE = Mechanism([["3/4", "1/4"], ["1/4", "3/4"]], Privacy(alpha="1/3", neighbours="all"))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_equal_pairs_are_exact(k):
    columns = list(zip(*RESPONSE.table, strict=True))
    composed = compose([RESPONSE] * k)
    for epsilon in (0.0, 0.2, 1.0, 2.0, 3.0):
        exact = composed_delta([columns] * k, Fraction(math.exp(epsilon)))
        assert composed.delta(epsilon) >= exact - 1e-12
        assert composed.delta(epsilon) <= 1.02 * exact + 1e-12
        assert 0.96 * exact - 1e-12 <= composed.delta_at_least(epsilon) <= exact + 1e-12


@pytest.mark.slow
def test_different_tables_with_several_pairs():
    rng = np.random.default_rng(3)
    tables = [random_table(rng, 3, 2), random_table(rng, 2, 3), random_table(rng, 4, 2)]
    composed = compose(tables)
    columns = [list(zip(*table.table, strict=True)) for table in tables]
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        ratio = Fraction(math.exp(epsilon))
        exact = max(
            composed_delta([(a[i], a[j]), (b[k], b[m]), (c[x], c[y])], ratio)
            for a, b, c in [columns]
            for i, j in [(0, 1), (1, 0)]
            for k in range(3)
            for m in range(3)
            if k != m
            for x, y in [(0, 1), (1, 0)]
        )
        assert composed.delta_at_least(epsilon) - 1e-12 <= exact <= composed.delta(epsilon) + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("name", ["geometric", "explicit_fair", "weakly_honest"])
def test_two_releases_of_named_tables(name):
    """Whatever neighbours the second is about."""
    table = getattr(named, name)(8, "1/2")
    columns = list(zip(*table.table, strict=True))
    pairs = [pair for j in range(8) for pair in permutations(columns[j : j + 2])]
    composed = compose([table] * 2)
    for epsilon in (0.0, 0.5, 1.2):
        ratio = Fraction(math.exp(epsilon))
        exact = max(composed_delta(both, ratio) for both in product(pairs, repeat=2))
        assert exact - 1e-12 <= composed.delta(epsilon) <= 1.01 * exact
        assert 0.97 * exact <= composed.delta_at_least(epsilon) <= exact + 1e-12


@pytest.mark.parametrize("k", [10, 1000, 10**6])
def test_many_releases_of_randomised_response(k):
    """Against the binomial distribution of the number of truths."""
    epsilon = 1 / math.sqrt(k)
    composed = compose([PrivacyLoss.pure(epsilon)] * k)
    truths, p = np.arange(k + 1), 1 / (1 + math.exp(-epsilon))
    for target in (0.5, 2.0, 4.0):
        gained = -np.expm1(np.minimum(target - (2 * truths - k) * epsilon, 0))
        exact = float(stats.binom.pmf(truths, k, p) @ gained)
        if exact > 1e-12:
            assert exact * (1 - 1e-6) <= composed.delta(target) <= 1.02 * exact
            assert 0.9 * exact <= composed.delta_at_least(target) <= exact * (1 + 1e-6)


@pytest.mark.slow
def test_basic_composition_is_an_upper_bound_and_delta_helps():
    composed = compose([named.geometric(8, alpha="9/10")] * 100)
    pure = 100 * math.log(10 / 9)
    assert composed.epsilon_at_least("1e-6") <= composed.epsilon("1e-6") < pure / 2
    assert composed.delta(pure) == 0


def test_a_million_releases_of_several_kinds():
    """Whose largest likelihood ratio has millions of digits."""
    alpha = Privacy.from_epsilon(0.002).alpha
    composed = compose([named.geometric(8, alpha=alpha), named.krr(3, alpha=alpha)] * 500_000)
    assert composed.largest_epsilon == pytest.approx(2000, rel=1e-6)
    start = time.process_time()
    assert 9.8 < composed.epsilon("1e-6") < 9.9
    assert time.process_time() - start < 3


@pytest.mark.slow
def test_totals_beyond_what_is_searched_without_an_end():
    composed = compose([PrivacyLoss.pure(5)] * 1000)
    assert composed.epsilon("1e-6") == pytest.approx(5000)  # every answer may well be true
    lies = stats.binom.ppf(0.5, 1000, 1 / (1 + math.exp(5)))
    assert composed.epsilon("0.5") == pytest.approx(5000 - 10 * lies, abs=10)


def test_an_impossible_output():
    table = Mechanism([["1/2", "0"], ["1/2", "1"]], Privacy(alpha="1/2"))
    loss = PrivacyLoss.of(table)
    assert loss.infinite == Fraction(1, 2)
    composed = compose([table] * 2)
    assert composed.largest_epsilon == math.inf
    assert 0.75 <= composed.delta(5) <= 0.76
    assert composed.epsilon("0.5") == math.inf
    assert composed.epsilon_at_least("0.5") >= 1000


@pytest.mark.parametrize("name", ["geometric", "explicit_fair"])
def test_the_loss_of_a_table_is_never_below_any_pair(name):
    table = getattr(named, name)(6, "2/3")
    loss = PrivacyLoss.of(table)
    columns = list(zip(*table.table, strict=True))
    for ratio in (Fraction(1), Fraction(5, 4), Fraction(7, 5)):
        above = sum((p * max(Fraction(0), 1 - ratio / r) for r, p in loss.ratios), loss.infinite)
        pairs = [(j, j + step) for j in range(7) for step in (-1, 1) if 0 <= j + step < 7]
        exact = max(composed_delta([(columns[j], columns[k])], ratio) for j, k in pairs)
        assert exact <= above <= exact * (1 + Fraction(1, 10**9)) + Fraction(1, 10**12)


def test_nothing_composed():
    assert compose([]).delta(0) == 0
    assert compose([NO_LOSS] * 3).epsilon("1e-9") == 0
    assert PrivacyLoss.of(named.geometric(0, alpha="1/2")) == NO_LOSS
    assert PrivacyLoss.pure(0) == NO_LOSS


def test_what_is_refused():
    with pytest.raises(TypeError, match="mechanisms, privacy losses or shuffled"):
        compose([3])
    metric = Privacy(
        alpha="1/2", neighbours=Metric([[abs(j - k) for k in range(3)] for j in range(3)])
    )
    with pytest.raises(ValueError, match="several distances"):
        compose([Mechanism(named.geometric(2, alpha="1/2").table, metric)])
    for points in ([], [(Fraction(1, 2), Fraction(0))], [(Fraction(1), Fraction(2))]):
        with pytest.raises(ValueError, match="a profile has"):
            PrivacyLoss.from_profile(points)
    with pytest.raises(ValueError, match="a privacy loss has"):
        PrivacyLoss(((Fraction(2), Fraction(1, 2)),))


LISTED = [
    [PrivacyLoss.pure("1/2")],
    [PrivacyLoss.pure("1/2")] * 5,
    [PrivacyLoss.pure(Fraction(k, 10)) for k in range(1, 7)],
    [PrivacyLoss.of(RESPONSE), PrivacyLoss(((Fraction(1), Fraction(9, 10)),), Fraction(1, 10))],
    [PrivacyLoss.pure(1500), PrivacyLoss.pure(1)],
    [NO_LOSS] * 3,
]


@pytest.mark.slow
@pytest.mark.parametrize("losses", LISTED)
def test_few_losses_are_listed_exactly(losses):
    together = PrivacyLoss.together(Counter(losses))
    assert together is not None
    found: dict[Fraction, Fraction] = defaultdict(Fraction)
    infinite = Fraction(1)
    for outcome in product(*(loss.ratios for loss in losses)):
        found[math.prod((r for r, _ in outcome), start=Fraction(1))] += math.prod(
            (p for _, p in outcome), start=Fraction(1)
        )
    infinite -= sum(found.values())
    assert dict(together.ratios) == {ratio: p for ratio, p in found.items() if p}
    assert together.infinite == infinite
    composed = compose(losses)
    for delta in (Fraction(1, 10**9), Fraction(1, 1000), Fraction(1, 5), Fraction(9, 10)):
        epsilon = composed.epsilon(delta)
        if infinite > delta:
            assert epsilon == math.inf
            continue
        # The least: it holds there, and not a little below it
        assert together.delta(exp_below(Fraction(epsilon) * (1 + Fraction(1, 10**12)))) <= delta
        if epsilon:
            assert together.delta(exp_above(Fraction(epsilon) * (1 - Fraction(1, 10**9)))) > delta
        assert composed.delta(epsilon) <= float(delta) * (1 + 1e-9)
        assert composed.epsilon_at_least(delta) <= epsilon


def test_too_many_losses_are_not_listed():
    assert PrivacyLoss.together(Counter({PrivacyLoss.pure("1/2"): 16})) is not None
    assert PrivacyLoss.together(Counter({PrivacyLoss.pure("1/2"): 17})) is None
    many = Counter(PrivacyLoss.pure(Fraction(k, 10)) for k in range(1, 8))
    assert PrivacyLoss.together(many) is None
    profile = PrivacyLoss.from_profile([(Fraction(1), Fraction(1, 2)), (Fraction(3), Fraction(0))])
    assert PrivacyLoss.together({profile: 1}) == profile


@pytest.mark.slow
@pytest.mark.parametrize(
    "losses",
    [[Fraction(k, 30) for k in range(1, 10)], [Fraction(1, 20)] * 40, [Fraction(1, 3), 2] * 9],
)
def test_what_floats_find_is_proved_and_near_the_least(losses):
    composed = compose([PrivacyLoss.pure(epsilon) for epsilon in losses])
    for delta in ("1e-9", "1e-4", "0.1"):
        found = composed.quick_epsilon(delta)
        assert composed.holds(Fraction(found), Fraction(delta), 0.02)
        slow = composed.epsilon(delta)  # by bounds in balls alone
        assert composed.epsilon_at_least(delta) <= found <= slow * 1.001
        assert slow <= found * 1.001


@pytest.mark.slow
def test_floats_that_err_do_not_decide(monkeypatch):
    losses = [PrivacyLoss.pure(Fraction(k, 30)) for k in range(1, 10)]
    right = compose(losses).quick_epsilon("1e-6")
    for wrong in (0.0, 1e-3, 0.5, math.nan, math.inf):
        monkeypatch.setattr(Mean, "nearly", lambda self, smoothing, wrong=wrong: wrong)
        found = compose(losses).quick_epsilon("1e-6")
        assert right * 0.999 <= found <= right * 1.001 or found == float(sum(range(1, 10))) / 30
        assert compose(losses).holds(Fraction(found), Fraction("1e-6"), 0.02)


@pytest.mark.slow
def test_gaussian_noise_with_few_losses_is_averaged_over_them():
    noise, mu = GaussianLoss("1/50"), math.sqrt(1 / 50)
    losses = [PrivacyLoss.pure("0.5"), PrivacyLoss.pure("0.1"), PrivacyLoss.of(RESPONSE)]
    composed = compose([noise, *losses])
    together = PrivacyLoss.together(Counter(losses))
    assert together is not None
    slow = compose([noise.profile, *losses])  # the noise by a profile, which is above it
    for epsilon in (0.0, 0.7, 1.4, 2.0):
        normal = 0.0
        for ratio, p in together.ratios:
            rest = epsilon - math.log(ratio)
            first, second = (stats.norm.cdf(half - rest / mu) for half in (mu / 2, -mu / 2))
            normal += float(p) * (first - math.exp(rest) * second)
        assert normal <= composed.delta(epsilon) <= normal * 1.001 + 1e-12
        assert composed.delta(epsilon) <= slow.delta(epsilon)
    assert composed.epsilon("1e-6") <= slow.epsilon("1e-6") <= composed.epsilon("1e-6") * 1.01


@pytest.mark.parametrize(
    ("squared_mu", "delta"), [("1/50", "1e-6"), ("100", "1e-12"), ("1e-4", "0.001")]
)
def test_the_epsilon_of_gaussian_noise_needs_two_bounds(squared_mu, delta, monkeypatch):
    noise, above = GaussianLoss(squared_mu), GaussianLoss.above
    calls: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(GaussianLoss, "above", counted(calls, above))
        found = noise.epsilon(delta)
    assert len(calls) <= 3
    monkeypatch.setattr(GaussianLoss, "_near", lambda self, delta: 0.0)
    assert found == pytest.approx(noise.epsilon(delta), rel=2.0**-34)
    assert noise.above(exp_below(Fraction(found)), 0.0) <= ball(Fraction(delta))

"""The privacy of discrete Gaussian noise on a fine grid, against sums over the grid."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from flint import arb, ctx

from mechdesign import ZCDP, ApproximateDP, BudgetExceeded, InvalidFile, Ledger, named
from mechdesign.accounting import compose
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.noise.discrete import DiscreteGaussian


def normal_delta(squared_mu, epsilon):
    """Balle and Wang 2018, theorem 8, with digits that do not cancel."""
    with ctx.workprec(300):
        mu = arb(squared_mu).sqrt()

        def below(x):
            return (-x / arb(2).sqrt()).erfc() / 2

        return float(
            below(mu / 2 - epsilon / mu) - arb(epsilon).exp() * below(-mu / 2 - epsilon / mu)
        )


@pytest.mark.parametrize("squared_mu", [1e-6, 0.01, 1, 4, 100, 400])
@pytest.mark.parametrize("epsilon", [0, 1e-3, 1, 7, 150])
def test_a_little_above_normal_noise(squared_mu, epsilon):
    found = GaussianLoss(Fraction(squared_mu)).delta(epsilon)
    expected = normal_delta(squared_mu, epsilon)
    assert found >= expected
    # e^-epsilon / mu'^2 and so on change by a factor of 1 + 2^-16 (epsilon / mu)^2
    relative = math.exp(min(2.0**-15 * (1 + epsilon**2 / squared_mu), 600.0))
    assert found <= expected * relative + 1e-300
    assert GaussianLoss(Fraction(squared_mu)).delta_at_least(epsilon) == 0


@pytest.mark.parametrize(("shift", "sigma"), [(1 << 16, 1 << 16), (200_000, 1 << 16), (3, 1 << 16)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_one_number_summed_over_the_grid(shift, sigma, epsilon):
    """delta of one discrete Gaussian number, in floats good to 1e-9 of it."""
    reach = 12 * sigma
    x = np.arange(-reach, reach + shift + 1, dtype=np.float64)
    loss = (shift * shift - 2 * x * shift) / (2.0 * sigma * sigma)
    weights = np.exp(-((x - shift) ** 2) / (2.0 * sigma * sigma))
    weights /= weights.sum()
    # Under the shifted law, of the law without the shift
    told = float(np.maximum(np.exp(loss) - math.exp(epsilon), 0) @ weights)
    bound = GaussianLoss(Fraction(shift, sigma) ** 2).delta(epsilon)
    assert told <= bound * (1 + 1e-9)
    assert bound <= told * (1 + 2e-4) + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_two_numbers_of_two_shifts_summed_over_the_grid(epsilon):
    sigma = 1 << 16
    shifts = np.array([30_000, -55_000])
    x = np.arange(-8 * sigma, 8 * sigma + 1, 64, dtype=np.float64)  # a coarser lattice is as good
    one, two = (-shift * x / sigma**2 for shift in shifts)
    weights = np.exp(-x * x / (2.0 * sigma * sigma))
    weights /= weights.sum()
    half = float((shifts.astype(float) ** 2).sum()) / (2.0 * sigma * sigma)
    order = np.argsort(two)
    sums = np.concatenate([[0.0], np.cumsum((weights * np.exp(two))[order][::-1])])
    mass = np.concatenate([[0.0], np.cumsum(weights[order][::-1])])
    count = len(x) - np.searchsorted(two[order], epsilon + half - one)
    told = float(weights @ (np.exp(one - half) * sums[count] - math.exp(epsilon) * mass[count]))
    bound = GaussianLoss(Fraction(30_000**2 + 55_000**2, sigma**2)).delta(epsilon)
    assert told == pytest.approx(bound, rel=1e-3)
    assert told <= bound * (1 + 1e-6)


def test_less_noise_would_be_found():
    """The bounds are tight enough to refuse noise that is two thousandths smaller."""
    for epsilon in (0.5, 2.0):
        assert normal_delta(1.002, epsilon) > GaussianLoss(1).delta(epsilon)


def test_epsilon_and_delta_are_inverse():
    loss = GaussianLoss("1/3")
    for delta in ("1e-3", "1e-9", "1e-40"):
        assert loss.delta(loss.epsilon(delta)) <= float(delta)
        assert loss.delta(loss.epsilon(delta) * 0.999) > float(delta)


def test_coarse_noise_tells_more_and_is_refused():
    """At sigma^2 = 1 delta is up to 1.8 times that of normal noise."""
    x = np.arange(-40, 41)
    weights = np.exp(-((x - 1.0) ** 2) / 2) / np.exp(-((x * 1.0**2) ** 2) / 2).sum()
    told = max(
        float(np.maximum(np.exp((1 - 2 * x) / 2) - math.exp(e), 0) @ weights)
        / GaussianLoss(1).delta(e)
        for e in np.arange(0, 6, 0.05).tolist()
    )
    assert told > 1.5
    with pytest.raises(ValueError, match="finer grid"):
        GaussianLoss.of(DiscreteGaussian(1), 1)
    with pytest.raises(ValueError, match="at most at 400"):
        GaussianLoss.of(DiscreteGaussian(1 << 32), 401 << 32)
    assert GaussianLoss.of(DiscreteGaussian(1 << 40), 1 << 38) == GaussianLoss("1/4")


def test_a_ledger_takes_no_promises():
    for promise in (ZCDP("1/2"), ApproximateDP(1, "1e-6")):
        with pytest.raises(TypeError, match="is a promise"):
            Ledger("9", "1e-6").spend(promise, "all")


def test_extreme_deltas():
    assert GaussianLoss(1).epsilon("0.9") == 0
    assert GaussianLoss(1).epsilon("1e-40000") == math.inf
    assert 600 < GaussianLoss(400).epsilon("1e-100") < 700
    assert GaussianLoss("1e-20").epsilon("1e-3") == 0
    with pytest.raises(ValueError, match="delta"):
        GaussianLoss(1).epsilon(0)


@pytest.mark.parametrize("squared_mu", [0, -1, "401", 1000])
def test_numbers_out_of_range_are_refused(squared_mu):
    with pytest.raises(ValueError, match="squared_mu must lie above 0 and at most at 400"):
        GaussianLoss(squared_mu)


def test_several_releases_of_gaussian_noise_add_up():
    many = compose([GaussianLoss("1/10")] * 10)
    assert many.epsilon("1e-6") == compose([GaussianLoss(1)]).epsilon("1e-6")
    assert many.epsilon("1e-6") == pytest.approx(GaussianLoss(1).epsilon("1e-6"), rel=1e-9)
    assert (GaussianLoss("1/4") + GaussianLoss("3/4")) == GaussianLoss(1)
    assert many.rho == pytest.approx(0.5)
    assert many.renyi(3) == pytest.approx(1.5)
    assert many.largest_epsilon == math.inf
    assert many.epsilon_at_least("1e-6") == 0


@pytest.mark.slow
def test_the_profile_is_above_everywhere_and_near():
    for squared_mu in ("1e-4", 1, 50):
        loss = GaussianLoss(squared_mu)
        assert isinstance(loss.profile, PrivacyLoss)
        for k in range(40):
            epsilon = Fraction(k, 7) * Fraction(math.sqrt(float(loss.squared_mu)))
            ratio = Fraction(math.exp(epsilon))
            exactly = normal_delta(float(loss.squared_mu), math.log(ratio))
            assert float(loss.profile.delta(ratio)) >= exactly * (1 - 1e-12)
            assert float(loss.profile.delta(ratio)) <= exactly * 1.05 + 1e-30


def test_with_other_mechanisms():
    """Between what the parts tell alone and what their epsilons add up to; against a sum."""
    geometric = named.geometric(4, alpha="1/2")
    both = compose([geometric, GaussianLoss("1/4")])
    told = both.delta(1)
    assert told > max(compose([geometric]).delta(1), GaussianLoss("1/4").delta(1))
    assert told < compose([geometric]).delta(0) + GaussianLoss("1/4").delta(1)
    # The worst of the geometric mechanism: L = +- ln 2 with probabilities 2/3, 1/3 (or nearer)
    loss = PrivacyLoss.of(geometric)
    slowly = sum(
        float(p) * normal_delta(0.25, 1 - math.log(ratio))
        if math.log(ratio) < 1
        else float(p) * (1 - math.exp(1 - math.log(ratio)))
        for ratio, p in loss.ratios
    )
    assert slowly <= told <= slowly * 1.02


@pytest.mark.parametrize("epsilon", ["0.01", "0.25", 1, 4, 20])
@pytest.mark.parametrize("delta", ["1e-3", "1e-6", "1e-12"])
def test_promises_take_the_least_noise(epsilon, delta):
    ratio = ApproximateDP(epsilon, delta).noise_ratio
    assert normal_delta(float(1 / ratio), float(Fraction(epsilon))) <= float(delta)
    assert normal_delta(1.0002 * float(1 / ratio), float(Fraction(epsilon))) > float(delta)
    told = scipy.optimize.brentq(
        lambda mu: normal_delta(mu * mu, float(Fraction(epsilon))) - float(delta),
        1e-4,
        10,
        xtol=1e-14,
    )
    assert float(1 / ratio) == pytest.approx(told**2, rel=1e-4)


def test_a_ledger_adds_gaussian_noise_exactly(tmp_path):
    path = tmp_path / "budget.json"
    promise = ApproximateDP("1", "1e-6")
    loss = GaussianLoss(1 / promise.noise_ratio)
    with Ledger.open(path, "1", "1e-6") as ledger:
        quarter = GaussianLoss(loss.squared_mu / 4 * Fraction(999, 1000))
        for k in range(4):
            ledger.spend(quarter, f"table {k}")
        assert 0 < ledger.left() < Fraction("0.001")
        with pytest.raises(BudgetExceeded):
            ledger.spend(quarter, "one more")
        text = str(ledger)
    again = Ledger.open(path)
    assert (again.entries[0].squared_mu or 0) >= quarter.squared_mu
    assert again.entries[0].epsilon is None
    assert str(again) == text
    assert "at delta" in text


@pytest.mark.parametrize("epsilon", ["1e-11", "1e-8", "1e-6", "1e-5", "1e-3", 1, 4, 100])
@pytest.mark.parametrize("delta", ["1e-6", "1e-12"])
def test_a_ledger_takes_a_release_that_is_its_whole_budget(epsilon, delta):
    ledger = Ledger(epsilon, delta)
    ledger.spend(GaussianLoss(1 / ApproximateDP(epsilon, delta).noise_ratio), "all")
    assert 0 <= ledger.remaining < Fraction(epsilon) / 1000


def test_a_ledger_composes_gaussian_noise_with_the_rest():
    ledger = Ledger("2", "1e-6")
    ledger.spend(GaussianLoss("1/50"), "by noise", users="north")
    ledger.spend("0.5", "by counts")
    spent = ledger.spent
    alone = GaussianLoss("1/50").epsilon("1e-6")
    assert alone < spent < alone + 0.5
    assert ledger.left("south") == Fraction("1.5")


def test_a_ledger_without_delta_refuses_gaussian_noise():
    ledger = Ledger("1")
    with pytest.raises(ValueError, match="Gaussian noise, which keeps no epsilon"):
        ledger.spend(GaussianLoss("1/50"), "noise")
    assert ledger.entries == ()


def test_files_that_lie_about_gaussian_noise_are_refused(tmp_path):
    path = tmp_path / "budget.json"
    ledger = Ledger("1", "1e-6")
    ledger.spend(GaussianLoss("1/50"), "noise")
    ledger.save(path)
    whole = path.read_text()
    for old, new in (
        ('"squared_mu": "', '"squared_mu": "-'),
        ('"epsilon": null', '"epsilon": "0.1"'),
        ('"version": 4', '"version": 2'),
    ):
        assert old in whole
        path.write_text(whole.replace(old, new))
        with pytest.raises(InvalidFile):
            Ledger.load(path)

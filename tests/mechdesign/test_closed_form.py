"""Closed forms: every number is that of the table, and any n is as good as a small one."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign import Mechanism, MechanismError, Privacy, design, named
from mechdesign.base import Integers
from mechdesign.base.files import digest_of
from mechdesign.exceptions import NotSquare, NoUnbiasedEstimate, TooLarge
from mechdesign.losses import L0, L1, L2, Power
from mechdesign.mechanism import closed_form
from mechdesign.mechanism.closed_form import FairLaw, GeometricLaw, Law, UniformLaw, series
from mechdesign.mechanism.comparison import StandardErrors, compare
from mechdesign.mechanism.device import Device
from mechdesign.mechanism.explanation import LIKELY, LawExplanation, explain
from mechdesign.mechanism.unbiased_estimate import (
    ApproximateEstimate,
    LawEstimate,
    mean_variance,
)
from mechdesign.mechanism.values import Counts
from mechdesign.properties import SEVEN
from mechdesign.tables.estimates import count_intervals
from tests.goodness_of_fit import FALSE_ALARM, goodness

Q = Fraction
LARGEST = 1 << 62
ALPHAS = (Q(1, 3), Q(1, 2), Q(3, 5), Q(9, 10), Q(99, 100))


def table_of(law: Law) -> Mechanism:
    """The table of a law, which knows of no closed form."""
    weights, denominator = law.weights()
    privacy = Privacy(alpha=law.alpha)
    return Mechanism.from_weights(weights, denominator, privacy, outputs=law.outputs)


def laws(alpha: Fraction) -> Iterator[Law]:
    for n in range(1, 11):
        yield GeometricLaw(n, alpha)
        yield FairLaw(n, alpha)
    for n in range(5):
        yield from (GeometricLaw(n, alpha, margin) for margin in (1, 2, 5))
        yield UniformLaw(n)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_number_is_that_of_the_table(alpha: Fraction) -> None:
    for law in laws(alpha):
        table = table_of(law)
        assert law.ratio == table.audit().ratio
        assert law.holds == {item.short for item in SEVEN if item.holds(table)}
        for p in range(4):
            for d in (0, 1, 2, 5, 12):
                assert law.moment(p, d) == table.loss(Power(p, d))
                assert law.loss(p, d, None, True) == table.loss(Power(p, d, worst_case=True))
        errors = table.error_distribution()
        assert errors.bias == 0
        assert all(law.chance(error) == errors.probability(error) for error in range(-20, 21))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_every_count_and_every_output_is_that_of_the_table(alpha: Fraction) -> None:
    for law in laws(alpha):
        table, low = table_of(law), getattr(law.outputs, "low", 0)
        told = explain(table)
        squares = [count.mean_square for count in told.true_counts]
        for j, count in enumerate(told.true_counts):
            stated = law.bias_of(j), law.moment_of(j, 2), law.entry(j, j)
            assert stated == (count.bias, count.mean_square, count.right)
        for chosen, square in zip(law.extreme_counts, (max(squares), min(squares)), strict=True):
            alike = [j for j in range(law.n + 1) if squares[j] == square]
            assert sorted(set(chosen)) == alike
        for i, value in enumerate(told.published_values):
            found = law.posterior(low + i, LIKELY)
            first, last, share = found.extent
            assert (found.chance, found.right) == (value.chance, value.right)
            assert (str(found.likeliest), found.most) == value.likeliest
            assert (str(first), str(last), share) == value.extent
        for confidence in (0.5, 0.8, 0.95, 0.99):
            half = (1 - Q(confidence)) / 2
            intervals = [law.interval(low + i, half) for i in range(table.outputs)]
            assert tuple(intervals) == count_intervals(table, confidence)


@pytest.mark.parametrize("alpha", [Q(1, 3), Q(3, 5), Q(9, 10), Q(99, 100)])
@pytest.mark.parametrize("kind", [GeometricLaw, FairLaw])
def test_the_unbiased_estimate_is_that_of_the_table(kind: type[Law], alpha: Fraction) -> None:
    for n in (1, 2, 3, 4, 5, 8, 9, 20, 21, 60):
        law = kind(n, alpha)
        table, found = table_of(law), LawEstimate.of(law)
        exact, outputs = ApproximateEstimate.of(table), np.arange(n + 1)
        worst = exact.variances.max()
        near = 1e-9 * worst
        np.testing.assert_allclose(found.estimates(outputs), exact.values, atol=1e-9 * worst**0.5)
        estimates = found.estimated_variances(outputs)
        np.testing.assert_allclose(estimates, exact.variance_estimates, rtol=0, atol=near)
        variances = np.append(found.variances, found.inner)
        places = np.minimum(np.minimum(outputs, n - outputs), len(found.variances))
        np.testing.assert_allclose(variances[places], exact.variances, rtol=0, atol=near)
        assert (found.least, found.worst) == pytest.approx((exact.variances.min(), worst))
        assert mean_variance(law) == pytest.approx(exact.variances.mean())
        apart = (exact.values[:, None] - outputs) ** 2
        tails = ((table.matrix * apart**2).sum(axis=0) - 3 * exact.variances**2).max()
        assert found.tails == pytest.approx(max(tails, 0.0), abs=1e-6 * worst**2)
        off = (exact.variance_estimates[:, None] - exact.variances) ** 2
        assert found.spread == pytest.approx(
            (table.matrix * off).sum(axis=0).max(), abs=1e-6 * worst**2
        )


@pytest.mark.parametrize("alpha", [Q(1, 2), Q(9, 10)])
def test_far_from_its_ends_an_estimate_does_not_depend_on_n(alpha: Fraction) -> None:
    """Each layer of EM is that of a larger n, and the noise of GM is all that matters between."""
    for kind in (GeometricLaw, FairLaw):
        small, large = LawEstimate.of(kind(2000, alpha)), LawEstimate.of(kind(LARGEST, alpha))
        np.testing.assert_array_equal(small.shifts, large.shifts)
        assert large.inner == pytest.approx(float(2 * alpha / (1 - alpha) ** 2))
        middle = np.array([LARGEST // 2])
        assert large.estimates(middle) == middle.astype(float)


def test_balls_round_up_and_agree_with_rational_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    some: list[Law] = [
        GeometricLaw(40, Q(9, 10)),
        GeometricLaw(30, Q(9, 10), 7),
        GeometricLaw(30, Q(9, 10), None),
        FairLaw(41, Q(9, 10)),
        FairLaw(40, Q(99, 100)),
    ]

    def numbers(law: Law) -> list[Fraction]:
        found = law.posterior(5, LIKELY)
        ends = [*law.interval(7, Q(1, 40)), *found.extent[:2], *law.extreme_counts[0]]
        moments = law.moment(2), law.moment(0, 3), law.moment_of(5, 2), law.chance(4)
        return [
            *map(Q, ends),
            *moments,
            law.bias_of(3),
            found.chance,
            found.right or Q(0),
            found.extent[2],
        ]

    exact = [numbers(law) for law in some]
    monkeypatch.setattr(closed_form, "_EXACT_BITS", 0)
    for law, wanted in zip(some, exact, strict=True):
        for got, value in zip(numbers(law), wanted, strict=True):
            assert value <= got <= value * (1 + Q(1, 1 << 79))


@pytest.mark.parametrize(
    "law",
    [
        GeometricLaw(70, Q(9, 10)),
        GeometricLaw(70, Q(9, 10), 3),
        GeometricLaw(5, Q(1, 2), None),
        FairLaw(70, Q(9, 10)),
        FairLaw(71, Q(2, 3)),
        FairLaw(71, Q(999, 1000)),  # outputs are proposed uniformly
        FairLaw(66, Q(999, 1000)),
        UniformLaw(80),
    ],
    ids=str,
)
def test_draws_have_the_law(law: Law, tmp_path: Path) -> None:
    """On the machine and on a device, for counts at the ends and between them."""
    mechanism = Mechanism.from_law(law, Privacy(alpha=law.alpha))
    mechanism.save(tmp_path / "m.json")
    rng = np.random.default_rng(7)
    device = Device(str(tmp_path / "m.json"), below=random.Random(7).randrange)
    for count in (0, 1, law.n // 2, law.n - 1, law.n):
        drawn = mechanism.release(np.full(40_000, count), rng)
        assert agreement(law, count, drawn) > FALSE_ALARM / 80
        slowly = np.array([device.release(count) for _ in range(2000)])
        assert agreement(law, count, slowly) > FALSE_ALARM / 80
    if law.alpha < Q(99, 100):
        assert agreement(law, law.n // 2, mechanism.release(drawn * 0 + 1, rng)) < FALSE_ALARM


def agreement(law: Law, count: int, drawn: Integers) -> float:
    """The p-value of draws for one count, whose errors are pooled beyond 12."""
    bounds = law.outputs
    low, high = (bounds.low, bounds.high) if isinstance(bounds, Counts) else (-99, law.n + 99)
    shown = range(max(low, count - 12), min(high, count + 12) + 1)
    chances = [float(law.entry(i, count)) for i in shown]
    chances.append(max(1 - sum(chances), 0.0) if len(shown) <= high - low else 0.0)
    places = np.where(np.isin(drawn, shown), drawn - shown[0], len(shown))
    return goodness(np.bincount(places, minlength=len(chances)), chances)


def test_few_counts_draw_as_their_table_does() -> None:
    """Bit for bit: the same words become the same outputs as ever."""
    for mechanism in (named.geometric(64, 0.5), named.explicit_fair(33, 0.5), named.uniform(20)):
        listed = Mechanism(mechanism.table, mechanism.privacy)
        counts = np.arange(1000) % mechanism.inputs
        draws = [m.release(counts, np.random.default_rng(3)) for m in (mechanism, listed)]
        np.testing.assert_array_equal(*draws)
        assert mechanism == listed
        assert hash(mechanism) == hash(listed)
        assert mechanism.audit() == listed.audit()
        assert str(explain(mechanism)) == str(explain(listed))


def test_a_table_of_more_counts_is_told_alike() -> None:
    """Up to what an explanation draws: what it says is what it says of the table."""
    for mechanism in (named.geometric(70, alpha="9/10"), named.explicit_fair(69, alpha="3/5")):
        listed = Mechanism(mechanism.table, mechanism.privacy)
        assert mechanism == listed
        assert isinstance(explain(mechanism), LawExplanation)
        assert str(explain(mechanism)) == str(explain(listed))
        assert str(compare({"m": mechanism})) == str(compare({"m": listed}))
        assert mechanism.properties("OR:1/2") == listed.properties("OR:1/2")
        both = mechanism.error_distribution(), listed.error_distribution()
        assert dict(both[0].histogram) == both[1].histogram
        assert mechanism.posterior()[3] == listed.posterior()[3]


@pytest.mark.parametrize("n", [65, 1000, 10**6, LARGEST])
@pytest.mark.parametrize("make", [named.geometric, named.explicit_fair])
def test_counts_of_any_size_have_what_a_table_has(make: Any, n: int, tmp_path: Path) -> None:
    mechanism = make(n, alpha="9/10")
    assert mechanism.audit().ratio == Q(10, 9)
    assert mechanism.properties()["RM"]
    assert 0 < mechanism.loss(L0()) < mechanism.loss(L1()) < mechanism.loss(L2())
    assert mechanism.loss(L2()) <= 3 * mechanism.error_distribution().mean_square
    assert "within 7 in 5" in str(explain(mechanism)) or n < 10**6
    assert "1.11111" in str(compare({"m": mechanism}))
    drawn = mechanism.release([0, n // 2, n], np.random.default_rng(1))
    assert ((drawn >= 0) & (drawn <= n)).all()
    assert (np.abs(drawn - np.array([0, n // 2, n])) < 400).all()
    mechanism.save(tmp_path / "m.json")
    assert (tmp_path / "m.json").stat().st_size < 500
    again = Mechanism.load(tmp_path / "m.json")
    assert again == mechanism == pickle.loads(pickle.dumps(mechanism))
    assert hash(again) == hash(mechanism)
    assert 0 <= int(Device(str(tmp_path / "m.json")).answer(str(n))) <= n
    assert StandardErrors.of(mechanism).published == pytest.approx(
        float(mechanism.loss(L2())) ** 0.5
    )


def test_what_would_need_a_table_says_so() -> None:
    mechanism = named.geometric(10**6, alpha="9/10")
    for ask in (
        lambda: mechanism.weights,
        lambda: mechanism.matrix,
        lambda: mechanism.loss(Power("1/2")),
        lambda: mechanism.loss(L2(worst_case=True)),
        lambda: mechanism.error_distribution().histogram,
    ):
        with pytest.raises(TooLarge):
            ask()
    free = named.geometric(10, alpha="9/10", margin=None)
    with pytest.raises(NotSquare, match="any integer"):
        _ = free.matrix
    with pytest.raises(NotSquare, match="not clamped"):
        free.scaled_l0()
    with pytest.raises(NoUnbiasedEstimate, match="does not depend"):
        LawEstimate.of(UniformLaw(5))


@pytest.mark.parametrize(
    "make",
    [
        lambda: named.geometric(LARGEST + 1, alpha="1/2"),
        lambda: named.geometric(-1, alpha="1/2"),
        lambda: named.uniform(2.0),
        lambda: named.explicit_fair(True, alpha="1/2"),
        lambda: named.geometric(5, alpha="1/2", margin=-1),
        lambda: named.geometric(5, alpha="1/2", margin=LARGEST),
        lambda: named.geometric(5, alpha=1, margin=None),
        lambda: named.geometric(5, Privacy(alpha="1/2", neighbours="all")),
        lambda: GeometricLaw(0, Q(1, 2)),
        lambda: UniformLaw(3, Q(1, 2)),
        lambda: FairLaw(3, Q(0)),
        lambda: Mechanism.from_law(FairLaw(3, Q(1, 2)), Privacy(alpha="1/2", neighbours=2)),
    ],
)
def test_what_is_no_closed_form_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"must|margin|needs|between|neighbours|has alpha"):
        make()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"n": str(LARGEST + 1)}, "n must"),
        ({"n": "-1"}, "n must"),
        ({"n": 70}, "string|text|integer"),
        ({"law": "normal"}, "law"),
        ({"law_alpha": "1/2"}, "not private"),
        ({"law_alpha": "3/2"}, r"\(0, 1\]"),
        ({"alpha": "99/100"}, "not private"),
        ({"neighbours": "all"}, "adjacent"),
        ({"law": "explicit fair", "margin": "3"}, "margin"),
        ({"margin": str(LARGEST)}, "margin"),
        ({"law": "uniform"}, "alpha = 1"),
    ],
)
def test_a_file_that_lies_about_a_closed_form_is_refused(
    changes: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    named.geometric(70, alpha="9/10").save(path)
    content = json.loads(path.read_text()) | changes
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(MechanismError, match=reason):
        Mechanism.load(path)
    with pytest.raises(ValueError, match=r"alpha|margin|malformed|closed form|private|neighbours"):
        Device(str(path))


def test_a_design_is_the_closed_form_where_theory_knows_one(tmp_path: Path) -> None:
    for n, alpha, properties, name in (
        (100, "9/10", [], "geometric"),
        (10**6, "9/10", ["WH"], "geometric"),
        (10**6, "9/10", ["F"], "explicit fair"),
        (LARGEST, "1/2", ["CM"], "geometric"),
    ):
        found = design(n, Privacy(alpha=alpha), properties=properties)
        assert found.mechanism.law is not None
        assert found.mechanism.law.name == name
        assert found.certificate.optimal
        assert found.certificate.verify(found.mechanism)
        found.save(tmp_path / "m.json")
        assert Mechanism.load(tmp_path / "m.json").certificate == found.certificate
        # A certificate that holds for another n proves nothing here.
        other = design(n - 1, Privacy(alpha=alpha), properties=properties).mechanism
        assert not found.certificate.verify(other)


def test_an_optimum_without_a_closed_form_is_still_designed() -> None:
    found = design(66, Privacy(alpha="99/100"), properties=["WH"])
    assert found.mechanism.law is None
    assert found.certificate.optimal


def test_a_sum_of_powers_is_added_up_as_by_hand() -> None:
    for a in (Q(1, 3), Q(1), Q(7, 5)):
        for degree in range(5):
            for first, last in ((0, 0), (1, 7), (3, 20), (5, 4)):
                wanted = sum((k**degree * a**k for k in range(first, last + 1)), Q(0))
                found = series(partial(_powered, degree), first, last, degree, a)
                assert found == wanted


def _powered(degree: int, base: int) -> int:
    return int(base**degree)

"""The precision of balls: the same numbers whatever the caller's is, which is found as it was."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest
from flint import arb, ctx

from mechdesign import Privacy, named
from mechdesign.accounting import PrivacyLoss, compose, shuffled
from mechdesign.accounting.dummy_counts import AmongDummies
from mechdesign.accounting.gaussian_loss import GaussianLoss
from mechdesign.accounting.promises import ApproximateDP
from mechdesign.base.numbers import ball, precision
from mechdesign.local import extremal
from mechdesign.mechanism.unbiased_estimate import ApproximateEstimate
from mechdesign.noise.discrete import DiscreteGaussian
from mechdesign.utilities import MutualInformation

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _precision() -> Iterator[None]:
    """The context is the same after each test, whatever that does."""
    before = ctx.prec
    yield
    ctx.prec = before


def numbers() -> dict[str, Any]:
    """Of everything that is computed in balls."""
    pure = compose([PrivacyLoss.pure(Fraction(1, 10))] * 100)
    geometric = named.geometric(8, alpha="9/10")
    mixed = compose([geometric] * 10 + [named.krr(4, alpha="1/2")])
    gaussian = GaussianLoss.of(DiscreteGaussian(1 << 40), 1 << 30)
    noisy = compose([gaussian, geometric])
    attack = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    dummies = AmongDummies.keeping(1, 1e-6, Fraction(1, 2), attack)
    collection = shuffled(named.krr(3, alpha="1/3"), 200)
    local = Privacy(alpha="1/2", neighbours="all")
    best = extremal(3, local, MutualInformation(["1/2", "1/4", "1/4"]))
    quick = ApproximateEstimate.of(named.geometric(6, alpha="9/10"))
    found: dict[str, Any] = {
        f"{name}.{verb}": getattr(each, verb)(at)
        for name, each in (("pure", pure), ("mixed", mixed), ("shuffled", collection))
        for verb, at in (("epsilon", 1e-6), ("delta", "1/2"), ("epsilon_at_least", 1e-6))
    }
    found |= {f"{verb} of pure": getattr(pure, verb) for verb in ("rho", "largest_epsilon")}
    return found | {
        "delta_at_least": mixed.delta_at_least(1),
        "renyi": pure.renyi(2),
        "renyi and rho of Gaussian": (noisy.renyi(3), noisy.rho),
        "gaussian": (gaussian.epsilon(1e-6), gaussian.delta("1/10"), noisy.epsilon(1e-5)),
        "promise": ApproximateDP(1, 1e-6).noise_ratio,
        "dummies": (dummies.counts, dummies.epsilon(1e-7), dummies.epsilon_at_least(1e-9)),
        "discrete Gaussian": DiscreteGaussian(Fraction(7, 3)).variance,
        "extremal": (best.value, best.gap, best.mechanism.table),
        "estimate": [
            part.tolist() for part in (quick.values, quick.variances, quick.variance_estimates)
        ],
    }


@pytest.mark.slow
def test_numbers_are_the_same_for_every_precision_of_the_caller() -> None:
    ctx.prec = 53
    alone = numbers()
    for bits in (2, 24, 1000):
        ctx.prec = bits
        assert numbers() == alone
        assert ctx.prec == bits


@pytest.mark.slow
def test_a_composition_is_the_same_while_another_thread_composes() -> None:
    stop = Event()

    def other() -> None:
        while not stop.is_set():
            compose([named.geometric(4, alpha="9/10")] * 30).epsilon(1e-9)

    thread = Thread(target=other)
    ctx.prec = 77
    thread.start()
    try:
        for _ in range(4):
            found = compose([PrivacyLoss.pure(Fraction(1, 10))] * 100).epsilon(1e-18)
            assert found == 8.307820355294373
    finally:
        stop.set()
        thread.join()
    assert ctx.prec == 77


def test_threads_take_turns_and_leave_the_precision_as_it_was() -> None:
    ctx.prec = 53
    both = Barrier(2)

    def third(bits: int) -> float:
        both.wait(10)
        with precision(bits):
            for _ in range(2000):
                assert ctx.prec == bits
                found = float(ball(Fraction(1, 3)).rad())
        return found

    with ThreadPoolExecutor(2) as pool:
        wide, narrow = pool.map(third, (30, 300))
    assert wide > 1e-12 > 1e-80 > narrow
    assert ctx.prec == 53


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_precision_is_as_it_was_after_an_error(error, monkeypatch) -> None:
    ctx.prec = 61
    monkeypatch.setattr(
        "mechdesign.accounting.inversion.Mean._trapezoids", lambda *_: (_ for _ in ()).throw(error)
    )
    with pytest.raises(error):
        compose([named.geometric(4, alpha="9/10")] * 100).epsilon(1e-6)
    assert ctx.prec == 61
    with ThreadPoolExecutor(1) as pool:  # and nothing is locked
        assert pool.submit(lambda: precision(40)(lambda: ctx.prec)()).result(10) == 40


def test_within_another_precision_it_is_that_again() -> None:
    with precision(100):
        with precision():
            assert ctx.prec == 53
            assert (arb(1) / 3).rad() > 1e-18
        assert ctx.prec == 100


def test_one_file_speaks_of_the_context() -> None:
    """Whatever sets the precision elsewhere would not take turns."""
    found = set()
    for package in ("mechdesign", "frequency", "rangeq"):
        for path in (ROOT / package).rglob("*.py"):
            source = path.read_text(encoding="utf-8")
            if "ctx" not in source and "workprec" not in source:
                continue  # nothing of it need be parsed
            for node in ast.walk(ast.parse(source)):
                names = node.names if isinstance(node, ast.ImportFrom) else []
                if any(alias.name == "ctx" for alias in names):
                    found.add(path.name)
                if isinstance(node, ast.Attribute) and node.attr in ("ctx", "workprec"):
                    found.add(path.name)
    assert found == {"numbers.py"}

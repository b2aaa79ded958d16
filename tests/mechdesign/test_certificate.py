"""Certificates: a forged one is refused, a weaker one has a gap."""

import math
import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mechdesign import Certificate, InexactNumber, Mechanism, Privacy, Verification, design, named
from mechdesign.losses import L0, L1, L2, Costs, Loss, binomial
from mechdesign.optimisation.certificate import dual_bound
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.properties import resolve
from tests.mechdesign.programs import HALF, NINE
from tests.mechdesign.relations import capped, line

BIG = 10**400


@pytest.fixture(scope="module")
def honest():
    found = design(4, NINE, L1(), ["WH", "CM"])
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.gap == 0
    return found


def refused(certificate, mechanism, reason):
    verdict = certificate.verify(mechanism)
    assert isinstance(verdict, Verification)
    assert not verdict
    assert reason in verdict.reason


def first_multiplier(certificate, name):
    r = min(r for r, value in certificate.multipliers[name].items() if value)
    return r, certificate.multipliers[name][r]


def with_multiplier(certificate, name, r, value):
    return replace(
        certificate,
        multipliers={
            **certificate.multipliers,
            name: {**certificate.multipliers.get(name, {}), r: value},
        },
    )


def test_tampered_multipliers(honest):
    good = honest.certificate
    for name in good.multipliers:
        if not any(good.multipliers[name].values()):
            continue
        r, value = first_multiplier(good, name)
        for other in (0, value * 2, value + Fraction(1, BIG), value - Fraction(1, BIG)):
            assert not with_multiplier(good, name, r, Fraction(other)).verify(honest.mechanism), (
                name,
                other,
            )
        refused(
            replace(good, multipliers={k: v for k, v in good.multipliers.items() if k != name}),
            honest.mechanism,
            "",
        )


def test_a_larger_column_multiplier_exceeds_a_cost(honest):
    r, value = first_multiplier(honest.certificate, "column sums")
    refused(
        with_multiplier(honest.certificate, "column sums", r, value + 1),
        honest.mechanism,
        "exceed the cost of variable",
    )


def test_negative_multipliers_of_inequalities(honest):
    good = honest.certificate
    names = [name for name in good.multipliers if name != "column sums"]
    assert any(name.startswith("privacy") for name in names)
    for name in names:
        refused(
            with_multiplier(good, name, 0, Fraction(-1, BIG)),
            honest.mechanism,
            f"a multiplier of the inequalities {name!r} is negative",
        )


def test_unknown_rows(honest):
    for name in ("F", "", "WHO", "worst case 0"):
        refused(
            with_multiplier(honest.certificate, name, 0, Fraction(0)),
            honest.mechanism,
            f"there are no constraints called {name!r}",
        )
    for r in (-1, 5, 10**30):
        refused(
            with_multiplier(honest.certificate, "column sums", r, Fraction(0)),
            honest.mechanism,
            "constraints 'column sums' are 0 .. 4",
        )


@pytest.mark.parametrize(
    "change", [1, -1, Fraction(1, BIG), Fraction(-1, BIG)], ids=["+1", "-1", "+tiny", "-tiny"]
)
def test_tampered_objective_and_bound(honest, change):
    good = honest.certificate
    refused(replace(good, objective=good.objective + change), honest.mechanism, "as certified")
    refused(
        replace(good, bound=good.bound + change),
        honest.mechanism,
        "the multipliers prove the bound",
    )
    refused(
        replace(good, objective=good.objective + change, bound=good.bound + change),
        honest.mechanism,
        "as certified",
    )


@pytest.mark.parametrize("field", ["objective", "bound"])
def test_tampered_beyond_floats(honest, field):
    refused(
        replace(honest.certificate, **{field: Fraction(BIG)}),
        honest.mechanism,
        "certified" if field == "objective" else "bound",
    )


def test_another_statement(honest):
    good = honest.certificate
    refused(replace(good, loss=L2()), honest.mechanism, "as certified")
    refused(replace(good, loss=L1(worst_case=True)), honest.mechanism, "as certified")
    refused(replace(good, privacy=HALF), honest.mechanism, "the certificate is about")
    refused(
        replace(good, privacy=Privacy(alpha="9/10", neighbours="all")),
        honest.mechanism,
        "the certificate is about",
    )
    # Without the rows of WH its multipliers have nothing to stand on.
    assert not replace(good, properties=(resolve("CH"),)).verify(honest.mechanism)
    refused(
        replace(good, properties=(*good.properties, resolve("F"))),
        honest.mechanism,
        "lacks the property F",
    )


def test_another_mechanism(honest):
    good = honest.certificate
    refused(good, named.uniform(4, NINE), "the loss is")
    refused(good, named.geometric(4, alpha="9/10"), "lacks the property")
    refused(good, Mechanism(honest.mechanism.table, HALF), "the mechanism claims")
    refused(good, Mechanism(np.eye(5, dtype=int).tolist(), NINE), "not private: ratio inf")
    refused(good, design(3, NINE, L1(), ["WH", "CM"]).mechanism, "")
    refused(good, design(5, NINE, L1(), ["WH", "CM"]).mechanism, "")
    # Another optimal table, if there is one, is proved by the same multipliers; a certificate is
    # about the program.
    assert good.verify(Mechanism(honest.mechanism.table, NINE))


@pytest.mark.parametrize(
    ("loss", "wanted", "table"),
    [
        (L0(), [], named.geometric(3, alpha="1/2").table),
        (L0(prior=binomial(2, "1/3")), [], named.geometric(3, alpha="1/2").table),
        (Costs([[0, 1, 2], [1, 0, 1], [2, 1, 0]]), [], named.geometric(3, alpha="1/2").table),
        (L0(), ["WH"], [["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]]),
    ],
    ids=["larger", "prior", "costs", "rectangular"],
)
def test_a_mechanism_of_another_size(loss, wanted, table):
    """A statement that does not fit the table is not proved about it; that is an answer, and no
    error.
    """
    certificate = design(2, HALF, loss, wanted).certificate
    refused(certificate, Mechanism(table, HALF), "")
    assert certificate.verify(Mechanism(table, HALF)).reason


@pytest.mark.parametrize("wanted", ["RH", "RM", "CH", "CM", "F", "WH", "S", "OR"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 1), (2, 3), (3, 2), (4, 4)], ids=str)
def test_a_mechanism_of_another_shape(wanted, shape):
    found = design(2, HALF, L1(), [wanted])
    outputs, inputs = shape
    refused(found.certificate, Mechanism([[Fraction(1, outputs)] * inputs] * outputs, HALF), "")
    explicit = design(
        2, Privacy(alpha="1/2", neighbours=[(0, 1), (1, 2)]), L1(worst_case=True), [wanted]
    )
    if inputs >= 3:
        refused(
            explicit.certificate,
            Mechanism([[Fraction(1, outputs)] * inputs] * outputs, explicit.certificate.privacy),
            "",
        )


def test_a_ratio_beyond_floats(honest):
    table = [[Fraction(1, BIG)] + [Fraction(1, 5)] * 4] + [
        [(1 - Fraction(1, BIG)) / 4] + [Fraction(1, 5)] * 4
    ] * 4
    refused(honest.certificate, Mechanism(table, NINE), "not private")


def test_a_weaker_proof_is_a_proof_with_a_gap(honest):
    """Scaling all multipliers down keeps them valid: the gap tells, and nothing is claimed to be
    optimal.
    """
    good = honest.certificate
    weaker = {
        name: {r: value / 2 for r, value in chosen.items()}
        for name, chosen in good.multipliers.items()
    }
    with_gap = replace(good, multipliers=weaker, bound=good.bound / 2)
    verdict = with_gap.verify(honest.mechanism)
    assert verdict
    assert not with_gap.optimal
    assert with_gap.gap == good.objective / 2
    assert "within" in verdict.reason
    nothing = replace(good, multipliers={}, bound=Fraction(0))
    assert nothing.verify(honest.mechanism)
    assert nothing.gap == good.objective


def test_dual_bound_by_hand():
    """n = 1, L0: 1/(1+alpha) is the best truth, so alpha/(1+alpha) the least error (Theorem 10)."""
    program = mechanism_program(2, 2, HALF, L0(), [])
    names = [group.name for group in program.constraints]
    assert dual_bound(program, {}) == 0
    assert dual_bound(program, {names[0]: {0: Fraction(0)}}) == 0
    with pytest.raises(ValueError, match="exceed the cost of variable"):
        dual_bound(program, {"column sums": {0: Fraction(1, BIG)}})
    with pytest.raises(ValueError, match="there are no constraints"):
        dual_bound(program, {"nothing": {}})
    assert design(1, HALF).certificate.bound == Fraction(1, 3)


def test_the_gap_is_exact_and_the_text_says_so(honest):
    assert isinstance(honest.certificate.gap, Fraction)
    assert math.isclose(float(honest.certificate.objective), float(honest.mechanism.loss(L1())))
    assert "proved optimal" in str(honest.certificate)
    assert honest.certificate.verify(honest.mechanism).reason == "optimal"


class TestNumbersOfCertificates:
    """The uniform mechanism is not optimal: every one of these would have to prove a bound that is
    false.
    """

    privacy = Privacy(alpha="1/2")
    uniform = Mechanism([["1/2"] * 2] * 2, privacy)

    def test_integers_do_not_wrap_around(self):
        huge = np.int64(2**63 - 1)
        multipliers = {"column sums": {0: 1, 1: 1}, "privacy": {0: huge, 3: huge}}
        assert not Certificate(self.privacy, Costs([[0, 4], [4, 0]]), (), 2, 2, multipliers).verify(
            self.uniform
        )

    def test_a_fraction_with_a_hidden_sign_is_negative(self):
        hidden: Any = Fraction(1)
        hidden._numerator, hidden._denominator = 1, -4
        multipliers = {
            "column sums": {0: Fraction(1, 4), 1: Fraction(1, 4)},
            "privacy": {0: hidden, 3: hidden},
        }
        assert not Certificate(
            self.privacy, L0(), (), Fraction(1, 2), Fraction(1, 2), multipliers
        ).verify(self.uniform)

    @pytest.mark.parametrize("numbers", [(0.5, 0, 0), (0, 0.5, 0), (0, 0, 0.5)])
    def test_floats_are_refused(self, numbers):
        objective, bound, multiplier = numbers
        with pytest.raises(InexactNumber):
            Certificate(self.privacy, L0(), (), objective, bound, {"column sums": {0: multiplier}})

    def test_multipliers_are_read_only_and_travel(self):
        certificate = design(2, Privacy(alpha="9/10"), L0(), ["WH"]).certificate
        with pytest.raises(TypeError):
            certificate.multipliers["privacy"] = {}  # type: ignore[index]  # read-only
        with pytest.raises(TypeError):
            certificate.multipliers["column sums"][0] = 1  # type: ignore[index]  # read-only
        assert pickle.loads(pickle.dumps(certificate)) == certificate

    def test_negative_costs_are_refused(self):
        class Gain(Loss):
            def cost(self, output, input):
                return Fraction(-(output == input))

        constant = Mechanism([[1, 1], [0, 0]], self.privacy)
        assert not Certificate(self.privacy, Gain(worst_case=True), (), 0, 0, {}).verify(constant)
        with pytest.raises(ValueError, match="at least 0"):
            design(1, self.privacy, Gain())


def test_a_certificate_of_a_metric_stands_for_that_metric_alone():
    found = design(4, Privacy(alpha="1/2", neighbours=capped(4, 2)), L1())
    assert isinstance(found.certificate, Certificate)
    for other in (line(4), capped(4, 3), "all"):
        claimed = Mechanism(found.mechanism.table, Privacy(alpha="1/2", neighbours=other))
        assert not found.certificate.verify(claimed)
        assert not replace(
            found.certificate, privacy=Privacy(alpha="1/2", neighbours=other)
        ).verify(claimed)

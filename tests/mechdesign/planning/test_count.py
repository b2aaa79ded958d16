"""Counts: predicted errors against released ones, and which mechanism is chosen.

False alarms: statistical tests compare means of thousands of draws with exact moments at five
deviations (6e-7), are seeded, and are shown to reject a planted error.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import mechdesign
from mechdesign import InvalidRequest, Ledger, Mechanism, Unreachable, named, plan
from mechdesign.mechanism.comparison import StandardErrors
from mechdesign.planning.task import Count


def moments(mechanism: Mechanism, loss: str):
    """The mean and the variance of the cost of one answer, for uniform counts: by summing over the
    table.
    """
    n = mechanism.inputs - 1
    cost = {"RMSE": lambda e: e**2, "L0": lambda e: float(e != 0), "L1": abs}[loss]
    weights = mechanism.matrix / (n + 1)
    costs = np.array([[cost(i - j) for j in range(n + 1)] for i in range(n + 1)])
    mean = float((weights * costs).sum())
    return mean, float((weights * costs**2).sum()) - mean**2


@pytest.mark.parametrize("loss", ["RMSE", "L0", "L1"])
def test_predicted_errors_of_counts_are_those_of_released_ones(loss):
    people, draws = 6, 20_000
    rng = np.random.default_rng(1)
    for item in plan("count", people, epsilon="0.7", loss=loss).candidates:
        truth = rng.integers(0, people + 1, draws)
        error = item.protocol.release(truth, rng) - truth
        cost = {"RMSE": error**2, "L0": error != 0, "L1": np.abs(error)}[loss].mean()
        predicted = item.error**2 if loss == "RMSE" else item.error
        deviation = math.sqrt(moments(item.protocol, loss)[1] / draws)
        assert abs(cost - predicted) < 5 * deviation, item.name
        assert abs(cost - 1.1 * predicted) > 5 * deviation, (
            "a planted error of a tenth would be seen"
        )
        assert item.protocol.audit().holds
        assert item.protocol.privacy.epsilon <= 0.7 or item.name == "UM"


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["RMSE", "L0", "L1"])
def test_searching_for_a_counts_error_inverts_its_prediction(loss):
    forward = plan("count", 3, epsilon="0.7", loss=loss)
    for item in forward.candidates:
        back = {
            c.name: c for c in plan("count", 3, error=item.error * (1 + 1e-9), loss=loss).candidates
        }
        if item.name != "UM":
            assert back[item.name].epsilon == Fraction(7, 10)
    cheaper = plan("count", 3, error=forward.best.error * (1 + 1e-9), loss=loss)
    assert cheaper.best.epsilon <= Fraction(7, 10)
    task = Count(3, loss=loss)
    for item in cheaper.candidates:
        assert item.error <= forward.best.error * (1 + 1e-9)
        if item.epsilon > Fraction(1, 1000):
            step = Fraction(1, 10**4) if item.epsilon < 1 else Fraction(1, 10**3)
            assert task.offer(item.name, item.epsilon - step, 0).error > forward.best.error


def test_l0_follows_the_flowchart():
    for epsilon, properties in [
        ("0.1", "WH,CM"),
        ("0.1", ["F"]),
        ("0.1", ()),
        ("0.1", "WH"),
        (2, "WH"),
        ("0.5", ["CH"]),
    ]:
        found = plan("count", 8, epsilon=epsilon, loss="L0", properties=properties)
        alpha = mechdesign.Privacy.from_epsilon(epsilon).alpha
        wanted = properties.split(",") if isinstance(properties, str) else properties
        expected = named.recommend(8, alpha=alpha, properties=wanted)
        assert found.best.name == expected.name
        assert found.reason == expected.reason
        assert found.best.protocol.loss(mechdesign.losses.L0()) == expected.mechanism.loss(
            mechdesign.losses.L0()
        )
        held = [item.protocol.properties() for item in found.candidates]
        assert all(each[short] for each in held for short in wanted)


@pytest.mark.slow
def test_small_errors_need_column_monotone_programs_and_large_groups_have_closed_forms():
    assert plan("count", 8, epsilon="0.1").best.name == "L2+CM"
    assert plan("count", 8, epsilon="0.1", loss="L1").best.name == "L1+CM"
    assert {item.name for item in plan("count", 40, epsilon=1).candidates} == {"GM", "EM", "UM"}
    assert plan("count", 40, epsilon=1, loss="L0").best.name == "GM"
    blind = plan("count", 8, error=4)
    assert blind.best.epsilon == Fraction(1, 1000), "a guess would do"


@pytest.mark.parametrize("domain", [0, -1, 129, 2.0, True, "8", None, [3]])
def test_a_group_has_1_to_128_respondents(domain):
    with pytest.raises(InvalidRequest, match="count: domain must be the size of the group"):
        plan("count", domain, epsilon=1)


@pytest.mark.parametrize(
    "given_",
    [
        {"epsilon": 1, "n": 8},
        {},
        {"epsilon": 1, "error": 1},
        {"epsilon": 1, "loss": "L3"},
        {"epsilon": 1, "properties": "XX"},
        {"epsilon": 1, "properties": ["OR"]},
        {"epsilon": 1, "properties": 3},
        {"epsilon": 1, "k": 2},
    ],
)
def test_a_count_needs_no_n_and_one_number(given_):
    with pytest.raises(InvalidRequest):
        plan("count", 8, **given_)


def test_extremes_of_counts():
    assert plan("count", 1, epsilon=1e-6).best.error == pytest.approx(math.sqrt(0.5), rel=1e-3)
    assert plan("count", 1, epsilon=1000, loss="L0").best.error < 1e-100
    with pytest.raises(Unreachable):
        plan("count", 1, error=1e-9, loss="L0")
    ledger = Ledger("0.25")
    assert plan("count", 4, ledger=ledger).best.epsilon == Fraction(1, 4)


@pytest.mark.parametrize("loss", ["RMSE", "L1"])
def test_the_table_shows_the_errors_of_one_count_and_of_an_unbiased_estimate(loss):
    found = plan("count", 8, epsilon="0.1", loss=loss)
    heading, *lines = str(found).splitlines()[1:]
    columns = (["RMSE"] if loss != "RMSE" else []) + ["unbiased SE"]
    assert heading.split("error")[1].split("  ")[1:] == [name for name in ["", *columns] if name]
    for item, line, row in zip(found.candidates, lines, found.rows(), strict=False):
        errors = StandardErrors.of(item.protocol)
        unbiased = math.nan if errors.unbiased is None else errors.unbiased
        expected = dict(zip(("RMSE", "unbiased SE"), (errors.published, unbiased), strict=True))
        assert dict(item.other_errors) == pytest.approx(
            {name: expected[name] for name in columns}, nan_ok=True
        )
        assert line.split()[-1] == ("-" if errors.unbiased is None else f"{unbiased:.3g}")
        assert row["unbiased SE"] == pytest.approx(unbiased, nan_ok=True)
    assert "nan" not in found.csv()
    assert str(found).splitlines()[-2].startswith("unbiased SE: of one group's")

"""Totals and intervals of released tables: unbiased, and covering what they say.

False alarms: an interval that covers often enough fails with a chance of at most 1e-6, shared by
the comparisons of a test; all are seeded.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechdesign import Mechanism, NoUnbiasedEstimate, Privacy, design, named
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.tables.estimates import TotalEstimate, count_intervals, group_errors, whole_ends
from tests.goodness_of_fit import FALSE_ALARM, at_most


def total_of(outputs):
    """Of pairs (mechanism, outputs that it gave)."""
    return TotalEstimate([(group_errors(m), np.array(given)) for m, given in outputs])


def listed(outputs):
    """Outputs of which it is known how often each occurred."""
    return np.repeat(np.arange(len(outputs)), outputs)


def test_a_total_is_unbiased_with_the_variance_that_it_states() -> None:
    """All true counts and all outputs of three groups of two sizes, exactly."""
    small, large = named.geometric(1, alpha="1/2"), named.explicit_fair(2, alpha="2/3")
    totals = {
        given: total_of([(small, [given[0]]), (large, [*given[1:]])])
        for given in product(range(2), range(3), range(3))
    }
    exact = UnbiasedEstimate(small), UnbiasedEstimate(large)
    for truth in product(range(2), range(3), range(3)):
        law = {
            given: small.matrix[given[0], truth[0]]
            * large.matrix[given[1], truth[1]]
            * large.matrix[given[2], truth[2]]
            for given in totals
        }
        mean = sum(p * totals[given].value for given, p in law.items())
        assert mean == pytest.approx(sum(truth))
        variance = exact[0].variances[truth[0]] + sum(exact[1].variances[j] for j in truth[1:])
        found = sum(p * (totals[given].value - mean) ** 2 for given, p in law.items())
        assert found == pytest.approx(float(variance))
        for total in totals.values():
            least = min(exact[0].variances) + 2 * min(exact[1].variances)
            assert float(least) - 1e-9 <= total.variance <= total.worst_variance + 1e-9
            assert total.standard_error == total.variance**0.5
    worst = max(exact[0].variances) + 2 * max(exact[1].variances)
    assert totals[0, 0, 0].worst_variance == pytest.approx(float(worst))
    assert (totals[0, 0, 0].cells, totals[0, 0, 0].people) == (3, 5)


def test_the_variance_is_estimated_without_bias() -> None:
    """Of so many groups that its bounds do not matter."""
    m, truth = named.explicit_fair(8, alpha="1/2"), [300, 0, 0, 100, 0, 0, 0, 0, 200]
    rng = np.random.default_rng(1)
    found = []
    for _ in range(200):
        outputs = sum(
            rng.multinomial(k, column / column.sum())
            for k, column in zip(truth, m.matrix.T, strict=True)
        )
        found.append(TotalEstimate([(group_errors(m), listed(outputs))]).variance)
    variances = np.array([*map(float, UnbiasedEstimate(m).variances)])
    error = np.std(found) / len(found) ** 0.5
    assert abs(np.mean(found) - variances @ truth) < 5 * error  # five deviations: 6e-7
    assert abs(np.mean(found) - variances.mean() * sum(truth)) > 5 * error  # planted


MECHANISMS = {
    "GM": named.geometric(6, alpha="1/2"),
    "strict GM": named.geometric(3, alpha="19/20"),
    "EM": named.explicit_fair(6, alpha="3/4"),
    "WM": design(8, Privacy(alpha="9/10"), properties=["WH", "CM"]).mechanism,
    "one bit": Mechanism(
        [[Fraction(j + 1, 6) for j in range(5)], [Fraction(5 - j, 6) for j in range(5)]],
        Privacy(alpha="1/5", neighbours="all"),
    ),
    "nobody": named.geometric(0, alpha="1/2"),
    "blind": named.uniform(4),
}


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
def test_intervals_of_a_cell_cover_whatever_is_true(name, confidence) -> None:
    m = MECHANISMS[name]
    intervals = count_intervals(m, confidence)
    shorter = 0
    for j in range(m.inputs):
        covered = [row[j] for row, (a, b) in zip(m.table, intervals, strict=True) if a <= j <= b]
        assert sum(covered) >= Fraction(confidence)
        inner = [row[j] for row, (a, b) in zip(m.table, intervals, strict=True) if a < j <= b]
        shorter += sum(inner) < Fraction(confidence)
    assert shorter  # if intervals began later, that would be seen


def test_intervals_of_a_cell_narrow_with_epsilon() -> None:
    assert count_intervals(named.geometric(6, alpha="1/1000"))[3] == (3, 3)
    assert count_intervals(named.geometric(6, alpha="99/100"))[3] == (0, 6)


def misses(mechanism, truth, confidence, trials, rng, *, factor=1.0):
    """How often the interval of a total lies beside the truth, in seeded trials.

    ``truth`` has the number of groups with each true count; of intervals that are changed by a
    factor this is what a wrong one would do.
    """
    errors = group_errors(mechanism)
    drawn = np.zeros((trials, mechanism.outputs), dtype=np.int64)
    for count, column in zip(truth, mechanism.matrix.T, strict=True):
        drawn += rng.multinomial(count, column / column.sum(), size=trials)
    total = int(np.arange(mechanism.inputs) @ truth)
    missed = 0
    for outputs in drawn:
        low, high = TotalEstimate([(errors, listed(outputs))]).interval(confidence)
        middle, half = (low + high) / 2, factor * (high - low) / 2
        missed += not middle - half <= total <= middle + half
    return missed


def populations(inputs, groups):
    """Numbers of groups with each true count: heaped at the ends, in the middle, spread."""
    last = inputs - 1
    both = np.arange(groups) % 2 * last
    heaps = [np.zeros(groups, int), np.full(groups, last), np.full(groups, last // 2), both]
    return [
        np.bincount(counts, minlength=inputs)
        for counts in (*heaps, np.arange(groups) % inputs, np.arange(groups) % 3 // 2)
    ]


@pytest.mark.parametrize("groups", [1, 2, 5, 40, 2000])
def test_intervals_of_totals_cover(groups) -> None:
    rng = np.random.default_rng(groups)
    m, confidence, trials = MECHANISMS["EM"], 0.95, 60
    for truth in populations(m.inputs, groups):
        missed = misses(m, truth, confidence, trials, rng)
        assert at_most(missed, trials, 1 - confidence) > FALSE_ALARM / 6


def test_intervals_of_groups_of_different_sizes_cover() -> None:
    """One large group among small ones, whose errors are much smaller."""
    rng, trials, confidence = np.random.default_rng(7), 300, 0.9
    small, large = named.geometric(2, alpha="1/20"), named.explicit_fair(30, alpha="9/10")
    for groups, truth in ((3, 0), (100, 0), (3, 15), (100, 30)):
        column = large.matrix[:, truth]
        one = rng.multinomial(1, column / column.sum(), size=trials)
        many = rng.multinomial(groups, small.matrix[:, 1], size=trials)
        missed = 0
        for pair in zip(many, one, strict=True):
            kinds = zip(map(group_errors, (small, large)), map(listed, pair), strict=True)
            low, high = TotalEstimate([*kinds]).interval(confidence)
            missed += not low <= truth + groups <= high
        assert at_most(missed, trials, 1 - confidence) > FALSE_ALARM / 4


def test_intervals_that_are_too_short_are_seen() -> None:
    rng = np.random.default_rng(1)
    truth = np.full(7, 100)
    missed = misses(MECHANISMS["EM"], truth, 0.95, 300, rng, factor=0.5)
    assert at_most(missed, 300, 0.05) < FALSE_ALARM


@pytest.mark.parametrize(("groups", "most"), [(2, 3.0), (10, 2.5), (100, 2.2)])
def test_intervals_are_little_longer_than_those_of_normal_errors(groups, most) -> None:
    """In standard errors, of which normal errors need 1.96 each way."""
    m, rng = named.geometric(20, alpha="3/4"), np.random.default_rng(groups)
    errors, column = group_errors(m), m.matrix[:, 10]
    lengths = []
    for outputs in rng.multinomial(groups, column / column.sum(), size=200):
        low, high = TotalEstimate([(errors, listed(outputs))]).interval()
        lengths.append((high - low) / 2)
    deviation = float(groups * UnbiasedEstimate(m).variances[10]) ** 0.5
    assert 1.96 < np.mean(lengths) / deviation < most


def often_blind(mechanism):
    """Every other output is a guess."""
    share = Fraction(1, 2 * mechanism.outputs)
    return Mechanism([[p / 2 + share for p in row] for row in mechanism.table], mechanism.privacy)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["1/20", "1/2", "2", "5"])
@pytest.mark.parametrize("n", [1, 2, 8, 30])
def test_intervals_of_totals_cover_everywhere(epsilon, n) -> None:
    """Different mechanisms, few groups and many, several levels."""
    privacy = Privacy.from_epsilon(epsilon)
    mechanisms = [
        named.geometric(n, alpha=privacy.alpha),
        named.explicit_fair(n, alpha=privacy.alpha),
        often_blind(named.geometric(n, alpha=privacy.alpha)),
    ]
    trials, rng = 150, np.random.default_rng(n)
    for m, groups, confidence in product(mechanisms, (1, 2, 3, 10, 100, 5000), (0.8, 0.95, 0.99)):
        for truth in populations(n + 1, groups):
            missed = misses(m, truth, confidence, trials, rng)
            assert at_most(missed, trials, 1 - confidence) > FALSE_ALARM / 2000


def test_a_total_of_one_group_has_the_interval_of_the_cell() -> None:
    m = MECHANISMS["WM"]
    for output, interval in enumerate(count_intervals(m, 0.9)):
        total = total_of([(MECHANISMS["nobody"], [0, 0, 0]), (m, [output])])
        assert total.interval(0.9) == interval


def test_groups_of_nobody_add_nothing() -> None:
    total = total_of([(MECHANISMS["nobody"], [0] * 5)])
    assert (total.value, total.variance, total.people, total.cells) == (0, 0, 0, 5)
    assert total.interval() == (0, 0)
    nothing = TotalEstimate([])
    assert (nothing.value, nothing.cells, nothing.interval()) == (0, 0, (0, 0))


def test_intervals_stay_within_what_is_possible() -> None:
    m = MECHANISMS["strict GM"]
    for output in (0, 3):
        low, high = total_of([(m, [output] * 40)]).interval()
        assert 0 <= low <= high <= 120


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 95, float("nan")])
def test_confidence_lies_between_0_and_1(confidence) -> None:
    m = named.geometric(2, alpha="1/2")
    for ask in (total_of([(m, [0])]).interval, lambda level: count_intervals(m, level)):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            ask(confidence)


def test_what_cannot_be_estimated_names_the_size() -> None:
    with pytest.raises(NoUnbiasedEstimate, match="groups of 4: there is no unbiased"):
        group_errors(MECHANISMS["blind"])
    faint = named.geometric(3, alpha=1 - Fraction(1, 10**60))
    with pytest.raises(NoUnbiasedEstimate, match=r"groups of 3: .* variance above 1e\+100"):
        group_errors(faint)


@pytest.mark.parametrize(
    ("value", "half", "ends"),
    [
        (4.0, 0.0, (4, 4)),
        (4 + 1e-10, 0.0, (4, 4)),
        (4.3, 0.1, (4, 4)),
        (4.3, 0.8, (4, 5)),
        (-7.0, 2.0, (0, 0)),
        (-7.0, 9.5, (0, 2)),
        (40.0, 2.0, (9, 9)),
    ],
)
def test_ends_are_whole_numbers_that_are_possible(value, half, ends) -> None:
    assert whole_ends(value, half, 9) == ends

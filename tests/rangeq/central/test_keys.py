"""Keys that nobody listed: the optimal rule, Gaussian thresholds, and what is published."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy

from frequency.exceptions import InvalidQuestion
from frequency.schema import Categorical, Numeric, Schema, Text
from frequency.schema.column import Column
from mechdesign import InvalidFile, Ledger, Privacy
from mechdesign.exceptions import MechanismError
from rangeq.central import (
    CentralFlat,
    DistinctValues,
    GaussianKeys,
    InvalidHistogram,
    KeyRule,
    KeysOfPersons,
    OptimalKeys,
    Release,
    ReleasedKeys,
    count_keys,
    key_rules,
    load_release,
)
from tests.goodness_of_fit import FALSE_ALARM, at_most, goodness

PROMISES = [("1", "1e-6"), ("1/10", "1e-3"), ("3", "1/20"), ("1/2", "1e-9"), ("1", "2/5")]


def by_recursion(epsilon, delta, most):
    """The largest probabilities that a private rule keeps keys with, from 0 users on."""
    alpha = Privacy.from_epsilon(epsilon).alpha
    found = [Fraction(0)]
    while len(found) <= most:
        before = found[-1]
        found.append(min(before / alpha + delta, 1 - alpha * (1 - before - delta), Fraction(1)))
    return found


@pytest.mark.parametrize(("epsilon", "delta"), PROMISES)
def test_keys_are_kept_as_often_as_privacy_allows(epsilon, delta):
    rule = OptimalKeys(epsilon, delta)
    most = len(rule.weights) + 3
    best = by_recursion(Fraction(epsilon), Fraction(delta), most)
    sums = [Fraction(0), *itertools.accumulate(Fraction(w, rule.whole) for w in rule.weights)]
    sums += [Fraction(1)] * (most + 1 - len(sums))
    for kept, possible in zip(sums, best, strict=True):
        assert kept <= possible
        assert possible - kept <= Fraction(1, 1 << 28) * possible
    users = np.arange(1, most + 1)
    assert rule.kept(users) == pytest.approx([float(p) for p in sums[1:]], rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.01), (0.5, 0.05), (2.0, 0.1)])
@pytest.mark.parametrize("outputs", [2, 5])
def test_no_private_rule_keeps_more_whatever_it_tells(epsilon, delta, outputs):
    """A linear program over all rules with so many outputs, of which the first keeps nothing."""
    most, ratio = 6, math.exp(epsilon)
    counts = most + 1
    pairs = [(n, n + 1) for n in range(most)] + [(n + 1, n) for n in range(most)]
    rules, size = counts * outputs, counts * outputs + len(pairs) * outputs
    upper, limits = [], []
    for k, (first, second) in enumerate(pairs):
        total = np.zeros(size)
        for y in range(outputs):  # what the first exceeds e^epsilon times the second by
            row = np.zeros(size)
            over = rules + k * outputs + y
            row[first * outputs + y], row[second * outputs + y], row[over] = 1, -ratio, -1
            upper.append(row)
            limits.append(0.0)
            total[over] = 1
        upper.append(total)
        limits.append(delta)
    equal = np.zeros((counts + 1, size))
    for n in range(counts):
        equal[n, n * outputs : (n + 1) * outputs] = 1
    equal[counts, 0] = 1  # of a key that nobody has nothing is told
    best = by_recursion(Fraction(epsilon), Fraction(delta), most)
    for n in range(1, counts):
        aim = np.zeros(size)
        aim[n * outputs] = 1  # the probability that it is not kept
        found = scipy.optimize.linprog(aim, upper, limits, equal, np.ones(counts + 1))
        assert 1 - float(found.fun) == pytest.approx(float(best[n]), abs=1e-7)


def outcomes(rule: OptimalKeys, users: int) -> dict[Any, Fraction]:
    """What is released of a key with so many users, from what is drawn: None if nothing is."""
    drawn = [row[0] for row in rule._sampler.weights]
    whole, law = sum(drawn), dict[Any, Fraction]()
    for noise, weight in enumerate(drawn):
        number = users - noise if users else 0  # a key that nobody has is not there
        told = number if number >= rule.least else None
        law[told] = law.get(told, Fraction(0)) + Fraction(weight, whole)
    return law


@pytest.mark.parametrize(
    ("epsilon", "delta", "most", "before", "after"),
    [
        ("1/2", "1/10", 1, (0,), (1,)),
        ("1/2", "1/10", 1, (2,), (3,)),
        ("1", "1/50", 1, (4, 2), (5, 2)),
        ("1", "1/10", 2, (0, 1), (1, 2)),
        ("1", "1/10", 2, (3, 0, 2), (4, 1, 2)),
        ("2", "1/5", 3, (0, 0, 1), (1, 1, 2)),
    ],
)
def test_two_tables_that_differ_in_a_person_are_as_near_as_promised(
    epsilon, delta, most, before, after
):
    """Every set of keys with every number, exactly: all that may be released of both."""
    rule = OptimalKeys(epsilon, delta, most)
    assert rule.audit()
    ratio = Fraction(math.exp(Fraction(epsilon))).limit_denominator(10**12) + Fraction(1, 10**11)
    laws = [[outcomes(rule, users) for users in each] for each in (before, after)]
    told = [sorted({*a, *b}, key=str) for a, b in zip(*laws, strict=True)]
    for first, second in (laws, laws[::-1]):
        over = Fraction(0)
        for outcome in itertools.product(*told):
            p, q = (
                math.prod(law.get(one, Fraction(0)) for law, one in zip(each, outcome, strict=True))
                for each in (first, second)
            )
            over += max(p - ratio * q, Fraction(0))
        assert over <= Fraction(delta)


def test_the_largest_delta_is_what_is_promised():
    rule = OptimalKeys(1, "1e-3")
    laws = [outcomes(rule, users) for users in (0, 1)]
    assert laws[1][1] == pytest.approx(1e-3, rel=1e-6)
    assert laws[1][1] <= Fraction(1, 1000)


def test_an_audit_finds_rules_that_keep_too_much():
    for change in (lambda w: [w[0] + w[1], *w[2:]], lambda w: [*w[:-1], w[-1] + 1]):
        rule = OptimalKeys(1, "1e-6")
        rule.__dict__["weights"] = tuple(change(list(rule.weights)))
        assert not rule.audit()
        with pytest.raises(MechanismError, match="promise"):
            rule.release(np.array([3]))
    gaussian = GaussianKeys(1, "1e-6", 4)
    least, noise, part = gaussian._parts
    for parts in [(least - 1000, noise, part), (least, noise, part / 2)]:
        gaussian.__dict__["_parts"] = parts
        assert not gaussian.audit()


@pytest.mark.parametrize("most", [1, 7, 300])
def test_gaussian_thresholds_keep_both_parts_of_the_promise(most):
    rule = GaussianKeys("1/2", "1e-4", most)
    assert rule.audit()
    least, noise, part = rule._parts
    sigma = math.sqrt(noise.sigma2)
    alone = most * scipy.special.ndtr(-(least - rule.unit) / sigma)
    assert alone <= 1e-4 - float(part)
    assert alone == pytest.approx(1e-4 - float(part), rel=1e-3)  # and no higher than needed
    # The noise of a person's keys together: delta of a Gaussian of these means (Balle and Wang)
    mu = math.sqrt(most) * rule.unit / sigma
    exact = scipy.special.ndtr(mu / 2 - 0.5 / mu) - math.exp(0.5) * scipy.special.ndtr(
        -mu / 2 - 0.5 / mu
    )
    assert exact <= float(part) * (1 + 1e-9)


def test_what_is_drawn_is_the_law():
    rule = OptimalKeys(1, "1/100")
    rng = np.random.default_rng(3)
    kept, numbers = rule.release(np.full(200_000, 4), rng)
    found = np.bincount(numbers, minlength=5)
    found[0] = (~kept).sum()
    law = outcomes(rule, 4)
    expected = [float(law[None]), *(float(law.get(k, 0)) for k in range(1, 5))]
    assert goodness(found, expected) > FALSE_ALARM
    assert goodness(found, [expected[0] + 0.05, *expected[1:]]) < FALSE_ALARM


@pytest.mark.parametrize(
    "rule",
    [OptimalKeys(1, "1e-4"), OptimalKeys(2, "1e-3", 3), GaussianKeys(2, "1e-3", 9)],
    ids=repr,
)
def test_intervals_hold_of_keys_that_were_kept(rule):
    rng = np.random.default_rng(1)
    for users in {rule.from_users(p) for p in (0.01, 0.3, 0.9)} | {10 * rule.from_users(0.5)}:
        kept, numbers = rule.release(np.full(100_000, users), rng)
        low, high = rule.interval(numbers)
        missed = int(((low > users) | (high < users)).sum())
        assert kept.sum() > 100
        assert at_most(missed, len(numbers), 0.0505) > FALSE_ALARM / 20
        # Without the choice numbers are unbiased, which is checked where all are kept
        if users > 5 * rule.from_users(0.95):
            error = rule.deviation / math.sqrt(len(numbers))
            assert abs(rule.estimates(numbers).mean() - users) < 6 * error


def test_the_best_rule_comes_first():
    assert [rule.kind for rule in key_rules(1, "1e-6")] == ["optimal", "gaussian"]
    assert [rule.kind for rule in key_rules(1, "1e-6", 50)] == ["gaussian", "optimal"]
    # Where a part of epsilon would need more steps than there may be
    assert [rule.kind for rule in key_rules("1/1000", "1e-6", 1000)] == ["gaussian"]


def test_more_is_kept_than_by_a_threshold_on_laplace_noise():
    for epsilon, delta in itertools.product((0.5, 1, 2), ("1e-5", "1e-8")):
        laplace = 1 + math.log(1 / (2 * float(delta))) / epsilon
        assert OptimalKeys(epsilon, delta).from_users(0.5) <= math.ceil(laplace) + 1


@pytest.mark.parametrize(
    ("epsilon", "delta", "most", "error"),
    [
        (0, "1e-6", 1, ValueError),
        (1, 0, 1, ValueError),
        (1, 1, 1, ValueError),
        (1, "1e-6", 0, ValueError),
        (1, "1e-6", 1.5, (ValueError, TypeError)),
        (1, "1e-6", (1 << 16) + 1, ValueError),
        ("1e-7", "1e-6", 1, ValueError),
    ],
)
def test_promises_that_no_rule_keeps(epsilon, delta, most, error):
    with pytest.raises(error):
        OptimalKeys(epsilon, delta, most)


@pytest.mark.parametrize("users", [[0], [-1], [1.5], [[1]], [1 << 40]])
def test_wrong_numbers_of_users(users):
    for rule in (OptimalKeys(1, "1e-6"), GaussianKeys(1, "1e-6")):
        with pytest.raises(InvalidHistogram):
            rule.release(users)


def test_rules_are_equal_by_their_numbers():
    rule: KeyRule = OptimalKeys(1, "1e-6")
    assert rule == OptimalKeys("1", Fraction(1, 10**6))
    assert rule != OptimalKeys(1, "1e-6", 2)
    assert rule != GaussianKeys(1, "1e-6")
    assert repr(rule) == "OptimalKeys(1, 1e-06, 1)"


# ------------------------------------------------------------------------------------------------
# What is published.


TOWNS = Schema([Text("town", bytes=16, missing="skip")])


def test_keys_are_counted_in_any_number_of_parts():
    column = ["b", "a", "b", None, "Köln", "b", 3]
    counts = count_keys(TOWNS, [{"town": column[:3]}, {"town": []}, {"town": column[3:]}])
    assert counts == {"a": 1, "b": 3, "Köln": 1, "3": 1}
    for schema in (Schema([Categorical("town", ["a"])]), Schema([*TOWNS, Text("word")])):
        with pytest.raises(ValueError, match="of the kind text"):
            count_keys(schema, [])


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_person_counts_once_for_each_of_so_many_keys(most):
    rng = np.random.default_rng(2)
    who, town = rng.integers(0, 40, 1000), rng.integers(0, 8, 1000)
    counter = KeysOfPersons(TOWNS, most, np.random.default_rng(5))
    for k in range(0, 1000, 77):
        names = [f"t{number}" for number in town[k : k + 77]]
        counter.add(Column("who", who[k : k + 77]), {"town": names})
    counts = counter.counts()
    different = [len(set(town[who == person].tolist())) for person in range(40)]
    assert sum(counts.values()) == sum(min(each, most) for each in different)
    if most == 5:
        assert max(counts.values()) <= 40
    assert KeysOfPersons(TOWNS, 1).counts() == {}


@pytest.mark.parametrize("most", [0, 1, 3])
@pytest.mark.parametrize("texts", [False, True])
def test_different_values_are_counted_once_a_group(most, texts):
    rng = np.random.default_rng(3)
    who, sex, town = rng.integers(0, 30, 400), rng.integers(0, 2, 400), rng.integers(0, 50, 400)
    labels = [f"t{k}" for k in range(50)]
    listed, unlisted = Categorical("town", labels, missing="item"), Text("town", missing="item")
    last = unlisted if texts else listed
    schema = Schema([Categorical("sex", ["f", "m"]), last])
    table: dict[str, list[Any]]
    table = {"sex": ["fm"[k] for k in sex], "town": [labels[k] if k else None for k in town]}

    def counted(rows):
        values = DistinctValues(schema, most, np.random.default_rng(4))
        for k in range(0, len(rows), 31):
            part = {name: [column[i] for i in rows[k : k + 31]] for name, column in table.items()}
            values.add(part, Column("who", who[rows[k : k + 31]]) if most else None)
        assert values.schema.names == ("sex", "town")
        assert values.schema.sizes == values.counts().shape == (2, 1)
        return values.counts()

    everybody = np.arange(400)
    pairs = {(s, t) for s, t in zip(sex.tolist(), town.tolist(), strict=True) if t}
    if not most:
        assert counted(everybody).ravel().tolist() == [
            len([t for s, t in pairs if s == group]) for group in range(2)
        ]
        return
    # One person more or less: so many pairs at most, of others the same ones
    assert counted(everybody).sum() <= len(pairs)
    for person in range(4):
        own = everybody[who == person]
        different = {(sex[i], town[i]) for i in own if town[i]}
        assert counted(own).sum() == min(most, len(different))


def test_different_values_are_of_attributes_that_tell_them_apart():
    assert DistinctValues(TOWNS).counts().tolist() == [0]
    with pytest.raises(ValueError, match="bins"):
        DistinctValues(Schema([Numeric("income", low=0, high=9, bins=3)]))
    values = DistinctValues(Schema([Numeric("age", low=0, high=9, whole=True, outside="item")]))
    values.add({"age": [3, 3, 12, 13, 4]})
    assert values.counts().tolist() == [2]
    mechanism = CentralFlat(1, "0.5")
    told = {"rows": 2, "measure": "values"}
    release = Release.draw(values.schema, mechanism, values.counts(), **told)
    assert release.promised == "epsilon 1 for each person, with up to 2 values"
    assert release.estimate.measure == "values"
    assert "not users" in release.estimate.caveats()[-1]


def test_keys_are_labels_of_another_release(released):
    attribute = released.categorical
    assert (attribute.labels, attribute.missing, attribute.outside) == (("a", "b"), "skip", "item")
    assert attribute.coded(["b", "Köln", "a"]).items.tolist() == [1, 2, 0]
    none = ReleasedKeys(TOWNS, OptimalKeys(1, "1e-6"), (), ())
    with pytest.raises(ValueError, match="labels"):
        none.categorical  # noqa: B018


@pytest.fixture
def released():
    counts = {"b": 500, "a": 40, "Köln": 3, "": 100}
    return ReleasedKeys.draw(TOWNS, OptimalKeys(1, "1e-6"), counts, np.random.default_rng(1))


def test_a_release_answers_in_labels(released):
    assert released.labels == ("b", "", "a")
    estimate = released.estimate
    answer = estimate.answer({"town": "b"})
    low, high = answer.interval()
    assert low <= 500 <= high
    assert answer.value == pytest.approx(500, abs=10)
    assert answer.variance == pytest.approx(released.rule.deviation**2)
    assert estimate.columns()["town"] == ["b", "", "a"]
    with pytest.raises(InvalidQuestion, match="not among"):
        estimate.answer({"town": "Köln"})
    with pytest.raises(InvalidQuestion):
        estimate.sample(3)


def test_files_are_read_as_they_were_written_and_lies_are_refused(released, tmp_path):
    path = tmp_path / "a.release"
    released.save(path)
    assert load_release(path) == released == ReleasedKeys.load(path)
    text = path.read_text()
    for old, new in [
        ('"least": 1', '"least": 2'),
        ('"delta": "1/1000000"', '"delta": "1/1000001"'),
        ('"rule": "optimal"', '"rule": "gaussian"'),
        ('"b"', '"a"'),
        ('"keys": 1', '"keys": 2'),
        ('"persons": false', '"persons": 0'),
    ]:
        assert old in text, old
        path.write_text(text.replace(old, new))
        with pytest.raises(InvalidFile):
            ReleasedKeys.load(path)


def test_parts_that_do_not_belong_together():
    one, two = OptimalKeys(1, "1e-6"), OptimalKeys(1, "1e-6", 2)
    for schema, rule, labels, numbers in [
        (Schema([Categorical("town", ["a"])]), one, ["a"], [1]),
        (TOWNS, two, ["a"], [1]),
        (TOWNS, one, ["a"], [1, 2]),
        (TOWNS, one, ["a", "b"], [1, 2]),
        (TOWNS, one, ["b", "a"], [2, 2]),
        (TOWNS, one, ["a", "a"], [2, 1]),
        (TOWNS, one, ["a"], [0]),
        (TOWNS, one, ["a" * 17], [1]),
    ]:
        with pytest.raises(ValueError):  # noqa: PT011
            ReleasedKeys(schema, rule, labels, numbers)
    wrong: Any = "optimal"
    with pytest.raises(TypeError, match="a rule is"):
        ReleasedKeys(TOWNS, wrong, [], [])
    assert repr(ReleasedKeys(TOWNS, two, [], [], True)).endswith("with up to 2 keys>")


def test_a_ledger_composes_what_keys_cost():
    ledger = Ledger("2", "1e-5")
    ledger.spend(OptimalKeys(1, "1e-6").cost, "towns")
    ledger.spend("1/2", "ages")
    assert 1.4 < ledger.spent <= 1.5
    (entry, _) = ledger.entries
    assert entry.epsilon is None
    with pytest.raises(ValueError, match="a delta above 0, which keeps no epsilon"):
        Ledger("2").spend(OptimalKeys(1, "1e-6").cost, "towns")

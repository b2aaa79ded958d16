"""Releases with a schema: answers in units, files that are read as they were written, and lies."""

import hashlib
import json
from fractions import Fraction

import numpy as np
import pytest

from frequency.core.aggregate import pack, unpack
from frequency.exceptions import UnknownVariance
from frequency.schema import Boolean, Categorical, Dates, Numeric, Schema, Survey, Text
from mechdesign import ZCDP, ApproximateDP, InvalidFile, Privacy
from mechdesign.base.fields import ANYTHING
from rangeq import Between, HaarHRR
from rangeq.central import (
    CentralFlat,
    CentralMechanism,
    DenseStrategy,
    Hierarchy,
    InvalidHistogram,
    MatrixMechanism,
    Release,
    Wavelet,
    count_cells,
    load_release,
    workload_optimal,
)
from rangeq.central.matrix_mechanism.dense_strategy import ProductStrategy
from rangeq.central.matrix_mechanism.spectral_strategy import SpectralStrategy
from tests.goodness_of_fit import FALSE_ALARM, at_most

AGE = Numeric("age", low=0, high=19, whole=True, unit="years", missing="item")
PAY = Numeric("pay", [0, 1, 2.5, 10, 100], outside="clip")
SEX = Categorical("sex", ["female", "male"], outside="item")
SEEN = Dates("seen", "2020-01-01", "2020-12-31", "month")
ONE = Schema([Boolean("alive")]), Schema([Categorical("only", ["x"])])

PRODUCT = ProductStrategy(
    [
        DenseStrategy(np.random.default_rng(size).integers(-9, 10, (size + 1, size)))
        for size in (4, 3, 12)
    ]
)

PREFIXES = DenseStrategy(3 * np.tri(21, dtype=np.int64) + np.eye(21, dtype=np.int64))

CASES: list[tuple[Schema, CentralMechanism]] = [
    (Schema([AGE]), CentralFlat(21, 1.0)),
    (Schema([AGE]), Hierarchy(21, "1/3", 4)),
    (Schema([AGE]), Hierarchy(21, 0.1, [3, 7], budget="optimal")),
    (Schema([AGE]), Hierarchy(21, 1, 2, budget="geometric", inference=False)),
    (Schema([AGE]), Hierarchy(21, 1, 3, budget=[0, 1, 2])),
    (Schema([AGE]), Wavelet(21, 5000)),
    (Schema([AGE, SEX]), Hierarchy((21, 3), 1, [[4, 6], [3, 1]], budget=(1, 2))),
    (Schema([PAY, SEEN]), Wavelet((4, 12), 1)),
    (Schema([PAY, SEX, SEEN]), CentralFlat((4, 3, 12), 2.0**-20)),
    (ONE[0], CentralFlat(2, 1)),
    (ONE[1], CentralFlat(1, 1)),
    (ONE[1], Wavelet(1, 1)),
    (ONE[1], Hierarchy(1, 1, 2)),
]


BY_MATRIX: list[tuple[Schema, MatrixMechanism]] = [
    (Schema([AGE]), workload_optimal("ranges", 21, ZCDP("1/3")).mechanism),
    (Schema([AGE]), MatrixMechanism(PREFIXES, Privacy(alpha="2/3"))),
    (
        Schema([AGE, SEX]),
        workload_optimal("marginals", (21, 3), ApproximateDP(1, "1e-6")).mechanism,
    ),
    (Schema([PAY, SEX, SEEN]), MatrixMechanism(PRODUCT, ZCDP("1/8"))),
    (Schema([AGE]), MatrixMechanism(SpectralStrategy.of_workload("ranges", 21), ZCDP(2))),
]


def drawn(schema, mechanism, seed=1):
    rng = np.random.default_rng(seed)
    return Release.draw(schema, mechanism, rng.integers(0, 50, schema.sizes), rng)


@pytest.mark.parametrize("case", [*CASES, *BY_MATRIX], ids=lambda c: repr(c[1]).replace(" ", ""))
def test_what_is_saved_is_loaded(case, tmp_path):
    schema, mechanism = case
    release = drawn(schema, mechanism)
    release.save(tmp_path / "a.release")
    found = Release.load(tmp_path / "a.release")
    assert found == release
    assert found.mechanism.audit() == mechanism.audit()
    if isinstance(mechanism, CentralMechanism):
        assert isinstance(found.mechanism, CentralMechanism)
        assert found.mechanism.shares == mechanism.shares
    # Least squares are solved again, and machines differ in the last digits
    counts = release.estimate.estimate.counts
    np.testing.assert_allclose(found.estimate.estimate.counts, counts, rtol=1e-9, atol=1e-9)
    everything = dict(enumerate(np.ix_(*map(np.arange, schema.sizes))))
    # What a mechanism has computed once it keeps: sums in another order may differ
    np.testing.assert_allclose(
        found.mechanism.variance(everything), mechanism.variance(everything), rtol=1e-11
    )
    assert load_release(tmp_path / "a.release") == release
    other = drawn(schema, mechanism, seed=2)
    assert other != release
    other.save(tmp_path / "b.release")  # as long, whatever was counted
    assert (tmp_path / "b.release").stat().st_size == (tmp_path / "a.release").stat().st_size


def test_what_is_drawn_is_what_the_mechanism_releases():
    schema, mechanism = CASES[6]
    counts = np.arange(63).reshape(21, 3)
    release = Release.draw(schema, mechanism, counts, np.random.default_rng(5))
    estimate = mechanism.release(counts, np.random.default_rng(5))
    np.testing.assert_array_equal(release.estimate.estimate.counts, estimate.counts)
    assert repr(release) == "<Release of age, sex by Hierarchy, epsilon 1 for each row, SEEDED>"
    with pytest.raises(ValueError, match="read-only"):
        release.levels[0][0] = 1


def people(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.binomial(19, 0.4, n).astype(object)
    age[rng.random(n) < 0.1] = None
    return {"age": age, "sex": np.array(["female", "male", "x"])[rng.integers(0, 3, n)]}


def test_answers_are_in_users_and_units():
    schema = Schema([AGE, SEX])
    table = people(3000, 1)
    exact = Hierarchy(schema.sizes, 500, [[4, 6], [3, 1]])  # whose noise is nearly always 0
    estimate = Release.draw(schema, exact, count_cells(schema, [table])).estimate
    age, sex = table["age"], table["sex"]
    told = np.array([-1 if one is None else one for one in age])
    women = (told >= 5) & (told <= 9) & (sex == "female")
    assert estimate.measure == "users"
    assert estimate.answer({"age": Between(5, 9), "sex": "female"}).value == pytest.approx(
        women.sum()
    )
    assert estimate.answer({"age": "missing"}).value == pytest.approx((told == -1).sum())
    assert estimate.answer({"sex": "outside"}).value == pytest.approx((sex == "x").sum())
    assert estimate.answer({"age": Between(None, None)}).value == pytest.approx((told >= 0).sum())
    assert estimate.quantile(0.5, "age") == int(np.quantile(told[told >= 0], 0.5, method="higher"))
    wide = Schema([PAY])
    pay = Release.draw(wide, CentralFlat(4, 500), [10, 20, 30, 40]).estimate
    assert pay.answer(Between(1, 2.5)).value == pytest.approx(20)
    assert pay.answer(Between(1, 1.75)).value == pytest.approx(10)
    with pytest.raises(UnknownVariance):
        _ = pay.answer(Between(1, 1.75)).variance


THIRDS = Fraction(1, 3), Fraction(2, 3)


def missed(less, runs=400):
    """How many intervals of 0.9, in units, are off; of releases with so many times less epsilon."""
    schema, rng, off = Schema([AGE, SEX]), np.random.default_rng(3), 0
    counts = count_cells(schema, [people(500, 2)])
    said, true = (
        Hierarchy(schema.sizes, Fraction(1, one), [[4, 6], [3, 1]], budget=THIRDS)
        for one in (1, less)
    )
    for _ in range(runs):
        low, high = np.sort(rng.integers(0, 20, 2)).tolist()
        estimate = Release(schema, said, true.noisy_levels(counts, rng)).estimate
        ends = estimate.answer({"age": Between(low, high), "sex": "male"}).interval(0.9)
        off += not ends.low <= counts[low : high + 1, 1].sum() <= ends.high
    return off


@pytest.mark.slow
def test_intervals_in_units_cover():
    """False alarms: intervals are off independently, each with a probability of at most 0.1."""
    assert at_most(missed(1), 400, 0.1) > FALSE_ALARM
    assert at_most(missed(3), 400, 0.1) < FALSE_ALARM, "a planted error is seen"


@pytest.mark.parametrize("n", [0, 1])
def test_nobody_and_one_user(n, tmp_path):
    schema = Schema([AGE])
    counts = count_cells(schema, [{"age": [7] * n}])
    release = Release.draw(schema, Hierarchy(21, 1, 5), counts, np.random.default_rng(1))
    release.save(tmp_path / "a.release")
    answer = Release.load(tmp_path / "a.release").estimate.answer(Between(0, 19))
    assert abs(answer.value - n) < 6 * answer.variance**0.5


def test_parts_that_do_not_belong_together():
    schema, mechanism = CASES[0]
    counts = np.zeros(21, dtype=int)
    with pytest.raises(ValueError, match=r"has \(21,\) items, and the mechanism is for \(20,\)"):
        Release.draw(schema, CentralFlat(20, 1), np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match="not those that the mechanism releases"):
        Release(schema, mechanism, [counts, counts])
    with pytest.raises(ValueError, match="not those that the mechanism releases"):
        Release(schema, mechanism, [counts + 0.5])
    with pytest.raises(ValueError, match="too large"):
        Release(schema, mechanism, [counts - (2**63 - 1)])
    with pytest.raises(ValueError, match="a histogram is of attributes whose items"):
        Release.draw(Schema([Text("word", 1)]), CentralFlat(256, 1), np.zeros(256, dtype=int))
    with pytest.raises(InvalidHistogram):
        Release.draw(schema, mechanism, counts - 1)

    class Mine(CentralFlat):
        pass

    with pytest.raises(
        TypeError, match="one of CentralFlat, Hierarchy, Wavelet, MatrixMechanism, got a Mine"
    ):
        Release.draw(schema, Mine(21, 1), counts)


def forged(path, header=lambda content: None, body=lambda data: data, seal=True):
    """A file that says something else, its digest made anew."""
    data = path.read_bytes()
    keys = ("schema", "mechanism", "alphas", "reproducible")
    content, numbers = unpack(data[:-32], "release", {2: dict.fromkeys(keys, ANYTHING)})
    content = json.loads(json.dumps(content))
    header(content)
    changed = pack(content, body(bytes(numbers)))
    path.write_bytes(changed + (hashlib.sha256(changed).digest() if seal else data[-32:]))


def test_a_release_says_whether_it_is_reproducible(tmp_path):
    """A file of the first version does not say it, and loads."""
    schema, mechanism = CASES[6]
    counts, path = np.zeros(schema.sizes, dtype=int), tmp_path / "a.release"
    for rng in (None, np.random.default_rng(1)):
        release = Release.draw(schema, mechanism, counts, rng)
        release.save(path)
        assert Release.load(path).reproducible == release.reproducible == (rng is not None)
    forged(path, lambda content: content.update(reproducible=1))
    with pytest.raises(InvalidFile, match="reproducible must be true or false"):
        Release.load(path)

    def older(content):
        del content["reproducible"]
        content["version"] = 1

    release.save(path)
    forged(path, older)
    assert Release.load(path) == Release(schema, mechanism, release.levels)


MATRIX_LIES = {
    "of a smaller rho": {"header": lambda c: c["mechanism"]["promise"].update(rho="1/10")},
    "of another promise": {"header": lambda c: c["mechanism"].update(promise={"alpha": "1/2"})},
    "of a promise that is none": {"header": lambda c: c["mechanism"].update(promise={"rho": "0"})},
    "of no promise": {"header": lambda c: c["mechanism"].update(promise=None)},
    "of two promises": {"header": lambda c: c["mechanism"]["promise"].update(alpha="1/2")},
    "of other noise": {"header": lambda c: c["alphas"].__setitem__(0, "1")},
    "of an unknown strategy": {"header": lambda c: c["mechanism"].update(strategy="sparse")},
    "of another strategy": {"header": lambda c: c["mechanism"].update(strategy="product")},
    "of no arrays": {"header": lambda c: c["mechanism"].update(arrays={})},
    "of other arrays": {"header": lambda c: c["mechanism"].update(arrays={"matrix": [20, 21]})},
    "of huge arrays": {"header": lambda c: c["mechanism"].update(arrays={"matrix": [1 << 20] * 2})},
    "of arrays that are none": {"header": lambda c: c["mechanism"].update(arrays={"matrix": 7})},
    "of a larger matrix": {"body": lambda data: data[:-8] + (1 << 24).to_bytes(8, "little")},
    "of a number less": {"body": lambda data: data[8:]},
    "of a number more": {"body": lambda data: data + data[:8]},
    "of half a number": {"body": lambda data: data[:-4]},
}


@pytest.mark.parametrize("lie", sorted(MATRIX_LIES))
def test_a_matrix_mechanism_that_lies_is_refused(lie, tmp_path):
    path = tmp_path / "a.release"
    drawn(*BY_MATRIX[0]).save(path)
    forged(path)
    Release.load(path)
    forged(path, **MATRIX_LIES[lie])
    with pytest.raises(InvalidFile, match="no release"):
        Release.load(path)


def test_a_matrix_mechanism_answers_in_units(tmp_path):
    schema, mechanism = BY_MATRIX[2]
    counts = count_cells(schema, [people(500, 2)])
    release = Release.draw(schema, mechanism, counts, np.random.default_rng(1))
    release.save(tmp_path / "a.release")
    estimate = Release.load(tmp_path / "a.release").estimate
    answer = estimate.answer({"age": Between(3, 12), "sex": "male"})
    assert abs(answer.value - counts[3:13, 1].sum()) < 6 * answer.variance**0.5
    assert "epsilon 1, delta 1e-06" in repr(release)


LIES = {
    "of another kind": {"header": lambda c: c.update(kind="aggregate")},
    "with more in it": {"header": lambda c: c.update(more=1)},
    "of a smaller epsilon": {"header": lambda c: c["mechanism"].update(epsilon="1/10")},
    "of an epsilon that is none": {"header": lambda c: c["mechanism"].update(epsilon="much")},
    "of a negative epsilon": {"header": lambda c: c["mechanism"].update(epsilon="-1")},
    "of a long epsilon": {"header": lambda c: c["mechanism"].update(epsilon="9" * 5000)},
    "of other noise": {"header": lambda c: c["alphas"].__setitem__(0, "1/2")},
    "of less noise": {"header": lambda c: c["alphas"].pop()},
    "of noise that is no list": {"header": lambda c: c.update(alphas=7)},
    "of other branchings": {"header": lambda c: c["mechanism"].update(branching=[7, 3])},
    "of no branchings": {"header": lambda c: c["mechanism"].update(branching=None)},
    "of another budget": {"header": lambda c: c["mechanism"].update(budget=["1/2", "1/2"])},
    "of a budget by name": {"header": lambda c: c["mechanism"].update(budget="optimal")},
    "without inference": {"header": lambda c: c["mechanism"].update(inference=0)},
    "of another mechanism": {"header": lambda c: c["mechanism"].update(name="Wavelet")},
    "of an unknown mechanism": {"header": lambda c: c["mechanism"].update(name="Mine")},
    "of no mechanism": {"header": lambda c: c.update(mechanism=[])},
    "of a shorter schema": {"header": lambda c: c["schema"]["attributes"][0].update(high=18)},
    "of a huge schema": {"header": lambda c: c["schema"]["attributes"][0].update(high=1 << 23)},
    "of no schema": {"header": lambda c: c.update(schema={})},
    "cut short": {"body": lambda data: data[:-8]},
    "cut within a number": {"body": lambda data: data[:-3]},
    "longer": {"body": lambda data: data + bytes(8)},
    "empty": {"body": lambda data: b""},
    "of huge numbers": {"body": lambda data: b"\xff" * 7 + b"\x7f" + data[8:]},
    "changed": {"body": lambda data: b"\1" + data[1:], "seal": False},
}


@pytest.mark.parametrize("lie", LIES)
def test_files_that_lie_are_refused(lie, tmp_path):
    path = tmp_path / "a.release"
    drawn(Schema([AGE]), Hierarchy(21, 1, [3, 7], budget=(1, 2))).save(path)
    forged(path)
    Release.load(path)
    forged(path, **LIES[lie])
    with pytest.raises(InvalidFile, match=r"a\.release: no release"):
        load_release(path)


@pytest.mark.parametrize("content", [b"", b"{", b"LDPF", b"age,sex\n", bytes(40), b"{}"])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "a.release"
    path.write_bytes(content)
    with pytest.raises(InvalidFile, match=r"a\.release"):
        load_release(path)


@pytest.mark.slow
def test_shares_cover_and_are_those_of_the_total():
    """At 80 %: 300 releases cover too seldom for that with probability below 1e-6."""
    rng, covered, trials = np.random.default_rng(8), 0, 300
    schema = Schema([AGE])
    counts = rng.integers(0, 30, schema.sizes)
    mechanism = CentralFlat(schema.sizes, Fraction(1, 10))
    true = counts[3:9].sum() / counts.sum()
    for _ in range(trials):
        estimate = Release.draw(schema, mechanism, counts, rng).estimate
        answer = estimate.answer(Between(3, 8))
        share = estimate.shares(answer)
        assert share.value == pytest.approx(answer.value / estimate.n)
        low, high = share.interval(0.8)
        covered += low <= true <= high
    assert at_most(trials - covered, trials, 0.2) > FALSE_ALARM
    exact = Release.draw(schema, CentralFlat(schema.sizes, 40), counts, rng).estimate
    assert exact.shares(exact.answer(Between(3, 8))).value == pytest.approx(true)
    nobody = Release(schema, mechanism, [np.full(schema.sizes, -1)]).estimate
    with pytest.raises(ValueError, match="there are no users"):
        nobody.shares(nobody.answer(Between(3, 8)))


def test_shares_of_reports_are_as_they_are():
    schema = Schema([AGE])
    survey = Survey(HaarHRR(schema.sizes[0], 2.0), schema)
    reports = survey.privatize({"age": [3, 5, 8]}, np.random.default_rng(1))
    estimate = survey.estimate(survey.aggregate(reports))
    answer = estimate.answer(Between(3, 8))
    assert estimate.shares(answer) is answer

"""Several rows a person: so many of each count, at random, and the promise is for a person."""

from fractions import Fraction

import numpy as np
import pytest

from frequency.schema import Categorical, Encoded, Numeric, Schema
from frequency.schema.column import Column
from mechdesign import ZCDP, ApproximateDP, InvalidFile, Privacy
from mechdesign.accounting.gaussian_loss import GaussianLoss
from rangeq.central import (
    CentralFlat,
    MarginalStrategy,
    MatrixMechanism,
    NumbersOfRows,
    Release,
    RowsOfPersons,
    for_each_row,
    load_release,
    persons,
    workload_optimal,
)
from rangeq.central.matrix_mechanism.mechanism import Promise
from tests.goodness_of_fit import FALSE_ALARM, goodness


def kept_of(blocks, most, seed=1, **limits):
    """The rows that count, as pairs of a person's number and an item."""
    rows = RowsOfPersons(most, np.random.default_rng(seed), **limits)
    for names, items in blocks:
        numbers = np.asarray(names)
        rows.add(Column("who", names), Encoded((np.asarray(items), numbers), {}, 0))
    (kept,) = rows.kept()
    return kept.columns


@pytest.mark.parametrize("most", [1, 2, 5, 1000])
@pytest.mark.parametrize("pending", [1 << 22, 7])
def test_of_each_person_so_many_rows_count_wherever_they_are(most, pending, monkeypatch):
    monkeypatch.setattr(persons, "_PENDING", pending)
    rng = np.random.default_rng(2)
    who, items = rng.integers(0, 60, 1000), np.arange(1000)
    blocks = [(who[k : k + 13], items[k : k + 13]) for k in range(0, 1000, 13)]
    found, whose = kept_of(blocks, most)
    assert len(set(found.tolist())) == len(found)
    assert (who[found] == whose).all()
    expected = np.minimum(np.bincount(who, minlength=60), most)
    assert np.bincount(whose, minlength=60).tolist() == expected.tolist()


@pytest.mark.parametrize("pending", [1 << 22, 3])
def test_every_set_of_a_persons_rows_is_as_probable(pending, monkeypatch):
    """Two of four rows of one, whatever another person has."""
    monkeypatch.setattr(persons, "_PENDING", pending)
    blocks = [([1, 2, 1], [0, 9, 1]), ([2, 2], [8, 7]), ([1, 1], [2, 3])]
    pairs = {(a, b): k for k, (a, b) in enumerate((a, b) for a in range(4) for b in range(a))}
    counts = np.zeros(6)
    for seed in range(1200):
        items, whose = kept_of(blocks, 2, seed)
        first, second = sorted(items[whose == 1].tolist())
        counts[pairs[second, first]] += 1
    assert goodness(counts, np.full(6, 1 / 6)) > FALSE_ALARM


def test_a_person_changes_no_rows_of_others():
    """With the same priorities: histograms differ by the rows of that person that count."""
    rng = np.random.default_rng(3)
    who, items = rng.integers(0, 20, 300), rng.integers(0, 8, 300)
    words = rng.integers(0, 1 << 63, 300).astype(np.uint64)

    def histogram(rows):
        taken = RowsOfPersons(3, np.random.default_rng(0))
        taken._words = lambda size: words[rows]
        taken.add(Column("who", who[rows]), Encoded((items[rows],), {}, 0))
        (kept,) = taken.kept()
        return np.bincount(kept.columns[0], minlength=8)

    everybody = histogram(np.arange(300))
    for person in range(20):
        difference = everybody - histogram(np.flatnonzero(who != person))
        assert (difference >= 0).all()
        assert difference.sum() == min(3, np.sum(who == person))


@pytest.mark.parametrize(("groups", "each"), [(1, 2), (2, 1), (3, 2), (9, 1)])
@pytest.mark.parametrize("pending", [1 << 22, 11])
def test_of_each_person_so_many_groups_count_with_so_many_rows(groups, each, pending, monkeypatch):
    monkeypatch.setattr(persons, "_PENDING", pending)
    rng = np.random.default_rng(4)
    who, items = rng.integers(0, 40, 900), rng.integers(0, 6, 900)
    items[who < 5] = 0  # of one group alone
    blocks = [(who[k : k + 13], items[k : k + 13]) for k in range(0, 900, 13)]
    found, whose = kept_of(blocks, groups * each, groups=groups, by=1)
    for person in range(40):
        there = np.bincount(items[who == person], minlength=6)
        kept = np.bincount(found[whose == person], minlength=6)
        assert (kept <= np.minimum(there, each)).all()
        chosen = kept > 0
        assert chosen.sum() == min(groups, (there > 0).sum())
        assert (kept[chosen] == np.minimum(there[chosen], each)).all()


def test_every_set_of_a_persons_groups_is_as_probable_whatever_their_rows():
    """Two of four groups, of 1, 3, 9 and 27 rows."""
    items = np.repeat(np.arange(4), [1, 3, 9, 27])
    pairs = {(a, b): k for k, (a, b) in enumerate((a, b) for a in range(4) for b in range(a))}
    counts = np.zeros(6)
    for seed in range(1500):
        found, _ = kept_of([(np.zeros(40, dtype=int), items)], 2, seed, groups=2, by=1)
        first, second = sorted(found.tolist())
        counts[pairs[second, first]] += 1
    assert goodness(counts, np.full(6, 1 / 6)) > FALSE_ALARM


def test_a_person_changes_a_table_by_what_noise_is_for():
    """The squares of what a person adds to the cells are at most those that are promised for."""
    rng = np.random.default_rng(5)
    for groups, each in ((1, 3), (2, 1), (3, 2)):
        items = rng.integers(0, 5, 60)
        found, _ = kept_of([(np.zeros(60, dtype=int), items)], groups * each, groups=groups, by=1)
        moved = np.bincount(found, minlength=5)
        assert (moved**2).sum() == persons.squared_change(groups * each, groups)
    rho = for_each_row(ZCDP(1), 6, 3)
    assert isinstance(rho, ZCDP)
    assert rho.rho * (2**2 + 2**2 + 2**2) == 1
    assert for_each_row(Privacy.from_epsilon(1), 6, 3) == for_each_row(Privacy.from_epsilon(1), 6)


@pytest.mark.parametrize("pending", [1 << 22, 5])
def test_rows_of_each_person_are_counted_wherever_they_are(pending, monkeypatch):
    monkeypatch.setattr(persons, "_PENDING", pending)
    rng = np.random.default_rng(6)
    who = rng.zipf(1.7, 400) % 30
    numbers = NumbersOfRows(8)
    for k in range(0, 400, 17):
        numbers.add(Column("who", [*who[k : k + 17].tolist(), None]))
    expected = np.bincount(np.minimum(np.bincount(who)[np.bincount(who) > 0], 8), minlength=9)
    assert numbers.counts().tolist() == expected[1:].tolist()
    assert numbers.schema.sizes == (8,)
    assert NumbersOfRows(3).counts().tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="rows of a person"):
        NumbersOfRows(0)


def test_persons_are_the_same_however_a_block_holds_their_names():
    rows = RowsOfPersons(1)
    for names in ([7, 8], [7.0, None], ["7", "9"], np.array([8, 9])):
        rows.add(Column("who", names), Encoded((np.zeros(2, dtype=np.int64),), {}, 0))
    (kept,) = rows.kept()
    assert len(kept.columns[0]) == 3
    assert list(RowsOfPersons(1).kept()) == []
    nobody = RowsOfPersons(1)
    nobody.add(Column("who", [None, None]), Encoded((np.zeros(2, dtype=np.int64),), {}, 0))
    assert list(nobody.kept()) == []


def test_rows_that_a_policy_skips_are_nobodys():
    schema = Schema([Numeric("age", low=0, high=9, whole=True, missing="skip")])
    table = {"age": [1, None, 3, None], "who": ["a", "b", "c", "a"]}
    rows = RowsOfPersons(5)
    rows.add(Column("who", table["who"]), schema.encode(table))
    (kept,) = rows.kept()
    assert sorted(kept.columns[0].tolist()) == [1, 3]
    with pytest.raises(ValueError, match="max_rows"):
        RowsOfPersons(0)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize(
    "promise", [Privacy.from_epsilon("0.7"), ZCDP("1/3"), ApproximateDP(1, "1e-6")], ids=repr
)
def test_rows_of_one_cell_keep_the_promise_to_a_person(promise: Promise, rows: int):
    """By the exact loss when so many users more are in one cell."""
    each = for_each_row(promise, rows)
    mechanism = MatrixMechanism(
        workload_optimal("ranges", 4, promise, cache=False).mechanism.strategy, each
    )
    audit = mechanism.audit()
    assert audit.holds
    if isinstance(promise, Privacy):
        assert audit.noise**rows <= 1 / promise.alpha
        assert float(audit.noise) ** rows > 0.99 / float(promise.alpha)
    elif isinstance(promise, ZCDP):
        assert rows**2 * audit.noise <= 2 * promise.rho
    else:
        assert GaussianLoss(rows**2 * audit.noise).delta(promise.epsilon) <= promise.delta
        assert rows**2 * audit.noise > 0.99 / promise.noise_ratio


def test_a_release_says_to_whom_it_promises_and_is_kept(tmp_path):
    schema = Schema([Categorical("town", ["a", "b"])])
    promise = ApproximateDP(1, "1e-6")
    gaussian = MatrixMechanism(
        workload_optimal("cells", 2, ZCDP("1/8"), cache=False).mechanism.strategy,
        for_each_row(promise, 4),
    )
    cases = [
        (CentralFlat(2, Fraction(1, 3)), 3, None, "epsilon 1 for each person, with up to 3 rows"),
        (CentralFlat(2, 1), 1, None, "epsilon 1 for each person"),
        (CentralFlat(2, 1), 0, None, "epsilon 1 for each row"),
        (gaussian, 4, promise.delta, "delta 1e-06 for each person, with up to 4 rows"),
    ]
    for mechanism, rows, delta, said in cases:
        rng = np.random.default_rng(1)
        release = Release.draw(schema, mechanism, [30, 40], rng, rows=rows, delta=delta)
        assert said in release.promised
        assert said in repr(release)
        path = tmp_path / "a.release"
        release.save(path)
        found = load_release(path)
        assert found == release
        assert isinstance(found, Release)
        assert (found.rows, found.delta) == (rows, delta)
        assert any("not people" in line for line in found.estimate.caveats()) == (rows > 1)
    assert "epsilon 1, delta" in release.promised or "epsilon 0.99999" in release.promised
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"rows":4', b'"rows":3'))
    if path.read_bytes() != content:
        with pytest.raises(InvalidFile):
            load_release(path)


def test_groups_of_persons_are_for_tables_of_all_groups(tmp_path):
    schema = Schema([Categorical("town", ["a", "b"]), Categorical("sex", ["f", "m"])])
    counts = np.array([[3, 4], [5, 6]])
    promise = for_each_row(ZCDP(1), 6, 3)
    mechanism = MatrixMechanism(MarginalStrategy((2, 2), [(0, 1)], [1 << 20]), promise)
    told = {"rows": 6, "groups": 3}
    release = Release.draw(schema, mechanism, counts, np.random.default_rng(1), **told)
    assert release.promised == "rho 1 for each person, with up to 2 rows in each of 3 groups"
    path = tmp_path / "a.release"
    release.save(path)
    assert load_release(path) == release
    own = {key: getattr(release, key) for key in ("groups", "measure", "rows", "delta")}
    assert own == {"groups": 3, "measure": "users", "rows": 6, "delta": None}
    once = Release.draw(schema, mechanism, counts, rows=6, groups=6)
    assert once.promised == "rho 0.5 for each person, with up to 1 row in each of 6 groups"
    # Of one attribute by itself, or of a tree, a person's rows are not apart
    for views in ([(0,)], [(0, 1), (1,)]):
        other = MatrixMechanism(MarginalStrategy((2, 2), views, [1] * len(views)), promise)
        with pytest.raises(ValueError, match="tables of all groups"):
            Release.draw(schema, other, counts, **told)
    with pytest.raises(ValueError, match="tables of all groups"):
        Release.draw(schema, CentralFlat((2, 2), 1), counts, **told)
    for rows, groups in ((6, 4), (0, 2), (3, 0)):
        with pytest.raises(ValueError, match="groups"):
            Release.draw(schema, mechanism, counts, rows=rows, groups=groups)
    with pytest.raises(ValueError, match="measure"):
        Release.draw(schema, mechanism, counts, measure="dogs")
    with pytest.raises(ValueError, match="told apart"):
        RowsOfPersons(4, groups=2)

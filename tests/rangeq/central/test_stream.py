"""Counts that are released day by day."""

import stat
import threading
from fractions import Fraction

import numpy as np
import pytest

from frequency import Between
from mechdesign import ZCDP, ApproximateDP, BudgetExceeded, Ledger, Privacy
from mechdesign.exceptions import InvalidFile
from rangeq.central import CountStream, DenseStrategy, MatrixMechanism, workload_optimal
from rangeq.central import stream as streams
from tests.killing import killed

COUNTS = np.random.default_rng(0).integers(0, 60, 24)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "visits.stream"


def filled(path, counts=COUNTS, days=24, promise=ZCDP("1/2"), workload="prefixes", seed=1):  # noqa: B008
    stream = CountStream.create(path, days, promise, workload)
    rng = np.random.default_rng(seed)
    for count in counts.tolist():
        stream.add(count, rng=rng)
    return stream


@pytest.mark.parametrize("workload", ["prefixes", "ranges"])
def test_all_days_are_the_offline_release_of_the_same_numbers(path, workload):
    stream = filled(path, workload=workload)
    matrix = stream.mechanism.strategy.matrix
    np.testing.assert_array_equal(matrix, np.tril(matrix))
    noisy = stream._noisy
    offline = MatrixMechanism(DenseStrategy(matrix), ZCDP("1/2")).estimate(noisy)
    estimate = stream.estimate
    assert estimate.counts == pytest.approx(offline.counts)
    first, last = np.triu_indices(24)
    asked = Between(first, last)
    assert estimate.answer(asked).value == pytest.approx(offline.answer(asked).value)
    assert estimate.answer(asked).variance == pytest.approx(offline.answer(asked).variance)
    some = [2, 3, 11]
    assert estimate.answer(some).value == pytest.approx(offline.answer(some).value)
    assert estimate.answer(some).variance == pytest.approx(offline.answer(some).variance)
    assert estimate.mechanism.errors.mean() == pytest.approx(offline.mechanism.errors.mean())
    # The errors are those of the best design for all days at once
    best = workload_optimal(workload, 24, ZCDP("1/2"), cache=False)
    assert stream.mechanism.workload_variance(workload) == pytest.approx(best.variance, rel=1e-3)


def test_a_day_depends_on_nothing_later(path, tmp_path):
    whole = filled(path)
    other = COUNTS.copy()
    other[15:] = 0
    part = filled(tmp_path / "other.stream", other)
    np.testing.assert_array_equal(whole._noisy[:15], part._noisy[:15])
    early = streams.StreamEstimate(
        whole._noisy[:15], whole.mechanism.strategy.matrix[:15, :15], whole.mechanism.noise_variance
    )
    prefix = early.prefix(np.arange(15))
    # A total is the best that the numbers up to the day say: later ones add nothing to it
    assert whole.estimate.prefix(np.arange(15)) == pytest.approx(prefix)


def test_numbers_are_exact_sums_with_noise_of_the_sensitivity(path):
    stream = filled(path, promise=ZCDP(200))
    matrix = stream.mechanism.strategy.matrix.astype(object)
    exact = matrix @ COUNTS.astype(object)
    noise = np.array([int(number) for number in stream._noisy]) - exact
    sigma2 = stream.mechanism.noise.sigma2
    assert np.abs(noise.astype(float)).max() < 7 * float(sigma2) ** 0.5
    norms = (matrix**2).sum(axis=0)
    assert stream.mechanism.audit().noise == Fraction(max(norms)) / sigma2
    assert stream.mechanism.audit().holds
    assert stream.estimate.prefix(23) == pytest.approx(COUNTS.sum(), abs=2)


def test_answers_err_as_they_say(path, tmp_path):
    errors = []
    for seed in range(40):
        stream = filled(tmp_path / f"{seed}.stream", days=30, seed=seed)
        answer = stream.estimate.answer(Between(np.zeros(24, int), np.arange(24)))
        errors.append((answer.value - np.cumsum(COUNTS)) / np.sqrt(answer.variance))
    # 960 dependent squares of mean 1, as if 40 were independent
    assert 0.5 < np.mean(np.square(errors)) < 1.6
    low, high = stream.estimate.quantile_interval(0.5)
    assert low <= stream.estimate.quantile(0.5) <= high
    assert stream.estimate.posterior().counts.min() >= 0


def test_the_state_is_kept_and_is_private(path):
    stream = filled(path, COUNTS[:3])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = CountStream(path)
    assert again.days == ("1", "2", "3")
    assert again.reproducible
    assert again.estimate.counts == pytest.approx(stream.estimate.counts)
    again.add(5, "Thursday")
    # The other object finds the day when it adds its own
    with pytest.raises(ValueError, match="Thursday was released before"):
        stream.add(5, "Thursday")
    assert stream.add(6, "Friday").counts.shape == (5,)
    assert stream.days == ("1", "2", "3", "Thursday", "Friday")
    assert repr(stream) == "<CountStream of 5 of 24 days, ZCDP(0.5)>"


def test_whoever_is_interrupted_has_released_nothing_or_the_day(path, monkeypatch):
    stream = filled(path, COUNTS[:3])
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(streams, "write_sealed", interrupted)  # drawn, and not written yet
    with pytest.raises(KeyboardInterrupt):
        stream.add(7, "Sunday")
    assert path.read_bytes() == before
    monkeypatch.undo()
    monkeypatch.setattr(CountStream, "estimate", property(interrupted))  # written, and not told
    with pytest.raises(KeyboardInterrupt):
        stream.add(7, "Sunday")
    monkeypatch.undo()
    assert CountStream(path).days[-1] == "Sunday"
    with pytest.raises(ValueError, match="released before"):
        stream.add(7, "Sunday")
    assert sorted(each.name for each in path.parent.iterdir()) == [path.name, f"{path.name}.lock"]


def test_threads_add_a_day_each(path):
    CountStream.create(path, 24, ZCDP(1))
    names, refused = [f"day {k % 12}" for k in range(24)], []

    def add(name):
        try:
            CountStream(path).add(3, name)
        except ValueError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stream = CountStream(path)
    assert sorted(stream.days) == sorted(set(names))
    assert len(refused) == 12
    assert all("released before" in message for message in refused)


def test_the_ledger_is_charged_once(path, tmp_path):
    ledger = Ledger("1", delta="1e-6")
    promise = ApproximateDP("0.5", "1e-6")
    stream = CountStream.create(path, 10, promise, ledger=ledger)
    left = ledger.remaining
    for count in (3, 4):
        stream.add(count)
    assert ledger.remaining == left
    with pytest.raises(BudgetExceeded):
        CountStream.create(tmp_path / "more.stream", 9, ApproximateDP(3, "1e-6"), ledger=ledger)
    assert not (tmp_path / "more.stream").exists()
    with pytest.raises(FileExistsError):
        CountStream.create(path, 10, promise, ledger=ledger)
    assert ledger.remaining == left


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ((0, ZCDP(1)), ValueError, "days"),
        ((5000, ZCDP(1)), ValueError, "days"),
        ((1.5, ZCDP(1)), ValueError, "days"),
        ((5, Privacy.from_epsilon(1)), TypeError, "Gaussian noise"),
        ((5, ZCDP(1), "cells"), ValueError, "prefixes or ranges"),
    ],
)
def test_what_is_no_stream_is_said(path, arguments, error, said):
    with pytest.raises(error, match=said):
        CountStream.create(path, *arguments)
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((-1,), "count"),
        ((1.0,), "count"),
        ((2**33,), "count"),
        ((1, ""), "characters"),
        ((1, "x" * 300), "characters"),
        ((1, 7), "characters"),
        ((1, "1"), "released before"),
    ],
)
def test_what_is_no_day_is_said_and_nothing_drawn(path, arguments, said):
    stream = filled(path, COUNTS[:1], days=3)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=said):
        stream.add(*arguments)
    assert path.read_bytes() == before


def test_the_days_end(path):
    stream = CountStream.create(path, 1, ZCDP(1))
    with pytest.raises(ValueError, match="no day was released"):
        stream.estimate  # noqa: B018
    assert stream.add(40).n == pytest.approx(40, abs=6)
    with pytest.raises(ValueError, match="all 1 days"):
        stream.add(1)


def test_files_that_were_changed_are_refused(path):
    filled(path, COUNTS[:2])
    data = path.read_bytes()
    for wrong in (data[:-1], data[:200] + b"x" + data[201:], b"", b"{}"):
        path.write_bytes(wrong)
        with pytest.raises(InvalidFile):
            CountStream(path)


def test_wherever_it_is_killed_a_stream_is_there_if_it_is_spent(tmp_path):
    act = """
    with Ledger.open(folder / "budget.json") as ledger:
        CountStream.create(folder / "day.stream", 8, ZCDP("1/50"), ledger=ledger)
"""
    imports = "from mechdesign import ZCDP\nfrom rangeq.central import CountStream"
    found = set()
    for folder in killed(tmp_path, act, imports, delta="1e-2"):
        entries = Ledger.open(folder / "budget.json").entries
        path = folder / "day.stream"
        found.add(path.exists())
        assert [entry.what for entry in entries] == ["day.stream"] * path.exists()
        if path.exists():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert CountStream(path).days == ()
    assert found == {False, True}

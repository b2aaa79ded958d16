"""evaluate: what it measures against what is known, and what an interrupt leaves."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frequency import GRR, OUE, Between
from mechdesign.evaluate import ErrorTable, EstimatedBy, evaluate, mean_absolute
from mechdesign.evaluate.measures import Population, truth
from rangeq.grids import WaveGrid

ZIPF = np.array([600, 300, 200, 150, 120, 100])
ITEMS = {"items": list(range(6)), "prefixes": [Between(0, np.arange(5))]}
PROTOCOLS: dict[str, Callable[[float], Any]] = {
    "GRR": lambda epsilon: GRR(6, epsilon),
    "OUE": lambda epsilon: OUE(6, epsilon),
}


@dataclass(frozen=True)
class Told:
    """An answer without an error."""

    value: Any


@dataclass(frozen=True)
class Shifted:
    """A protocol of one's own: everybody tells the truth, and answers are off by a constant."""

    off: float

    def privatize(self, values: Any, rng: np.random.Generator) -> Any:
        return values

    def aggregate(self, reports: Any) -> Any:
        return reports

    def estimate(self, aggregate: Any) -> Any:
        return self

    def answer(self, where: Any) -> Told:
        asked = where if isinstance(where, Between) else Between(where, where)
        counts = ZIPF / ZIPF.sum()
        first, last = np.asarray(asked.first), np.asarray(asked.last)
        below = np.concatenate([[0.0], np.cumsum(counts)])
        return Told(below[last + 1] - below[first] + self.off)


def small(**more: Any) -> ErrorTable:
    given: dict[str, Any] = {
        "protocols": PROTOCOLS,
        "populations": {"Zipf": ZIPF},
        "queries": ITEMS,
        "epsilons": [1.0],
        "repeats": 3,
    }
    return evaluate(**{**given, **more})


def test_a_known_error_is_measured() -> None:
    found = small(protocols={"mine": lambda epsilon: Shifted(epsilon / 100)}, epsilons=[1, 2])
    for row in found.summary():
        assert row.error == pytest.approx(row.epsilon / 100)
        assert row.standard_error == pytest.approx(0, abs=1e-9)
        assert math.isnan(row.covered)
        assert math.isnan(row.stated)
    assert [row.largest for row in found.rows] == pytest.approx(6 * [0.01] + 6 * [0.02])
    assert [(row.queries, row.number) for row in found.rows[:2]] == [("items", 6), ("prefixes", 5)]


def test_errors_are_those_that_are_stated() -> None:
    """Of 300 repeats the root mean square is off by less than 3 %, and so by 15 % hardly ever."""
    found = small(repeats=300, queries={"items": list(range(6))})
    for row, kind in zip(found.summary(), (GRR, OUE), strict=True):
        told = np.mean(kind(6, 1.0).variance(1470, ZIPF / 1470))
        assert row.error == pytest.approx(math.sqrt(told), rel=0.15)
        assert row.stated == pytest.approx(row.error, rel=0.15)
        assert row.covered == pytest.approx(0.95, abs=0.03)
        assert 0 < row.standard_error < 0.05 * row.error


def test_results_do_not_depend_on_other_cases() -> None:
    whole, part = small(), small(protocols={"OUE": PROTOCOLS["OUE"]}, repeats=2)
    expected = [row for row in whole.rows if row.protocol == "OUE" and row.repeat < 2]
    assert [row._replace(seconds=0) for row in part.rows] == [
        row._replace(seconds=0) for row in expected
    ]
    other = small(seed=2)
    assert [row.squared for row in other.rows] != [row.squared for row in whole.rows]


def test_intervals_need_not_be_asked_for() -> None:
    found = small(confidence=None)
    assert all(math.isnan(row.covered) for row in found.rows)
    assert [row.squared for row in found.rows] == [row.squared for row in small().rows]


def test_measures_are_of_answers_and_truth(tmp_path: Path) -> None:
    measures: dict[str, Callable[..., float]] = {
        "mean absolute": mean_absolute,
        "least": lambda answers, truth: (answers / truth).min(),
    }
    given: dict[str, Any] = {
        "protocols": {"mine": lambda epsilon: Shifted(epsilon / 100)},
        "epsilons": [1.0, 2.0],
        "out": tmp_path / "errors.csv",
        "measures": measures,
    }
    found = small(**given)
    top = {"items": ZIPF[0] / ZIPF.sum(), "prefixes": ZIPF[:5].sum() / ZIPF.sum()}
    for row in found.rows + tuple(found.summary()):
        off = row.epsilon / 100
        assert row.measures["mean absolute"] == pytest.approx(off)
        assert row.measures["least"] == pytest.approx(1 + off / top[row.queries])
    assert str(found).splitlines()[0].split()[-3:] == ["mean", "absolute", "least"]
    assert list(found.to_frame().columns[-3:]) == ["key", *measures]
    again = small(**given)
    assert [row[-2:] for row in again.rows] == [row[-2:] for row in found.rows]
    assert [row.seconds for row in again.rows] == [row.seconds for row in found.rows]
    with pytest.raises(ValueError, match="other columns"):
        small(**{**given, "measures": None})


def test_the_mean_of_a_measure_is_over_the_repeats() -> None:
    found = small(measures={"mean absolute": mean_absolute}, repeats=4)
    for row in found.summary():
        own = [
            one.measures["mean absolute"]
            for one in found.rows
            if (one.protocol, one.queries) == (row.protocol, row.queries)
        ]
        assert len(set(own)) == 4
        assert row.measures["mean absolute"] == pytest.approx(np.mean(own))


def test_a_function_draws_a_population_for_each_repeat() -> None:
    drawn: list[np.ndarray] = []

    def shares(rng: np.random.Generator) -> np.ndarray:
        drawn.append(rng.dirichlet(np.ones(6)))
        return drawn[-1]

    given: dict[str, Any] = {"populations": {"any": shares}, "users": 400}
    found = small(**given)
    assert len(drawn) == 4  # to check it; then once a repeat, for both protocols
    assert len({tuple(one) for one in drawn}) == 4
    assert {row.users for row in found.rows} == {400}
    part = small(**given, protocols={"OUE": PROTOCOLS["OUE"]}, repeats=2)
    expected = [row for row in found.rows if row.protocol == "OUE" and row.repeat < 2]
    assert [row._replace(seconds=0) for row in part.rows] == [
        row._replace(seconds=0) for row in expected
    ]
    records = small(
        protocols={"waves": lambda epsilon: WaveGrid([4, 4], epsilon)},
        populations={"records": lambda rng: rng.integers(0, 4, size=(700, 2))},
        queries={"pairs": [{0: 1, 1: Between(0, 2)}]},
        repeats=1,
    )
    assert [row.users for row in records.rows] == [700]


def test_a_protocol_may_have_another_estimate() -> None:
    inner = Shifted(0.25)
    assert not hasattr(EstimatedBy(inner, Shifted), "simulate")
    found = small(protocols={"less": lambda epsilon: EstimatedBy(inner, lambda _: Shifted(0.1))})
    assert [row.error for row in found.summary()] == pytest.approx([0.1, 0.1])
    # Simulated, and with the same reports as by itself
    given: dict[str, Any] = {"repeats": 1}
    oracle = GRR(6, 1.0)
    again = small(protocols={"GRR": lambda _: EstimatedBy(oracle, oracle.estimate)}, **given)
    alone = small(protocols={"GRR": lambda _: oracle}, **given)
    assert [row.squared for row in again.rows] == [row.squared for row in alone.rows]
    copy = pickle.loads(pickle.dumps(EstimatedBy(oracle, oracle.estimate)))
    assert copy.protocol == oracle


def test_what_is_exact_is_inside_its_interval() -> None:
    class ToldExactly(Told):
        def interval(self, confidence: float) -> tuple[Any, Any]:
            return self.value, self.value

    class Exact(Shifted):
        def answer(self, where: Any) -> Told:
            return ToldExactly(super().answer(where).value)

    found = small(protocols={"mine": lambda _: Exact(1e-12), "off": lambda _: Exact(1e-6)})
    assert [row.covered for row in found.summary()] == [1, 0] * 2


def test_shares_are_drawn_from() -> None:
    found = small(populations={"even": np.full(6, 1 / 6)}, users=500)
    assert {row.users for row in found.rows} == {500}


def test_records_and_tables_are_populations() -> None:
    rng = np.random.default_rng(3)
    records = rng.integers(0, 4, size=(3000, 2))
    table = {"a": records[:, 0], "b": records[:, 1]}
    both = {"a": 1, "b": Between(0, 2)}
    found = evaluate(
        {"waves": lambda epsilon: WaveGrid({"a": 4, "b": 4}, epsilon)},
        {"table": table},
        {"pairs": [both, {"b": [0, 3]}]},
        [4.0],
        repeats=2,
        users=2000,
    )
    assert all(0 < row.squared < 0.01 for row in found.rows)
    again = evaluate(
        {"waves": lambda epsilon: WaveGrid([4, 4], epsilon)},
        {"records": records},
        {"pairs": [{0: 1, 1: Between(0, 2)}]},
        [4.0],
        repeats=1,
    )
    assert again.rows[0].users == 3000


@pytest.mark.parametrize("kind", ["counts", "records"])
def test_the_truth_is_counted(kind: str) -> None:
    rng = np.random.default_rng(4)
    values = rng.integers(0, 6, 500)
    held = np.bincount(values, minlength=6) if kind == "counts" else values[:, None]
    first, last = np.array([0, 2, 5]), np.array([3, 2, 5])
    cases: list[tuple[Any, Any]] = [
        (4, values == 4),
        ([1, 5], np.isin(values, [1, 5])),
        ({0, 2}, np.isin(values, [0, 2])),
        (Between(1, 4), (values >= 1) & (values <= 4)),
    ]
    for where, inside in cases:
        assert truth(where if kind == "counts" else {0: where}, held) == pytest.approx(
            inside.mean()
        )
    within = Between(first, last)
    asked = within if kind == "counts" else {0: within}
    expected = [np.mean((values >= a) & (values <= b)) for a, b in zip(first, last, strict=True)]
    np.testing.assert_allclose(truth(asked, held), expected)


def test_what_was_computed_is_kept(tmp_path: Path) -> None:
    path, made = tmp_path / "errors.csv", []

    def counted(epsilon: float) -> Any:
        protocol = GRR(6, epsilon)

        class Counted:
            parameters = protocol.parameters

            def simulate(self, counts: Any, rng: Any) -> Any:
                made.append(epsilon)
                return protocol.simulate(counts, rng)

            estimate = staticmethod(protocol.estimate)

        return Counted()

    given = {"protocols": {"GRR": counted}, "out": path}
    first = small(**given)
    assert len(made) == 3
    assert small(**given).rows == first.rows
    assert len(made) == 3
    more = small(**given, epsilons=[1.0, 2.0], repeats=4)
    assert len(made) == 8
    assert [row for row in more.rows if row.epsilon == 1 and row.repeat < 3] == list(first.rows)
    # Other queries under the same names are another evaluation, and the file holds both
    small(**given, queries={"items": [0, 1], "prefixes": [Between(0, 1)]})
    assert len(made) == 11
    assert small(**given, epsilons=[1.0, 2.0], repeats=4).rows == more.rows
    assert len(path.read_text().splitlines()) == 1 + 2 * 11


def test_a_class_that_says_nothing_of_itself_is_known_by_its_name(tmp_path: Path) -> None:
    class Plain:
        def __init__(self, epsilon: float) -> None:
            self.inner = Shifted(epsilon / 100)

        privatize = staticmethod(lambda values, rng: values)
        aggregate = staticmethod(lambda reports: reports)

        def estimate(self, aggregate: Any) -> Any:
            return self.inner

    path = tmp_path / "errors.csv"
    given = {"protocols": {"mine": Plain}, "out": path, "epsilons": [1.0, 2.0]}
    first, text = small(**given), path.read_text()
    assert [row.squared for row in small(**given).rows] == [row.squared for row in first.rows]
    assert path.read_text() == text
    assert len({row.key for row in first.rows}) == 2


def test_what_was_computed_for_other_parameters_is_computed_again(tmp_path: Path) -> None:
    class Plain:  # says nothing of itself
        def __init__(self, off: Any) -> None:
            self.inner = {"off": off}

        def simulate(self, counts: Any, rng: Any) -> Any:
            return counts

        def estimate(self, aggregate: Any) -> Any:
            return Shifted(float(np.sum(self.inner["off"]))).estimate(aggregate)

    @dataclass(frozen=True)
    class Shrunk(GRR):  # what it sends, its `parameters`, do not tell how it estimates
        factor: float = 1.0

        def frequencies_of(self, aggregate: Any, items: Any = None) -> Any:
            return self.factor * super().frequencies_of(aggregate, items)

    long = np.zeros(2000)
    long[1000] = 0.5  # what repr leaves out
    for first, second in (
        (lambda _: Plain(0.0), lambda _: Plain(0.5)),
        (lambda _: Plain(np.zeros(2000)), lambda _: Plain(long)),
        (lambda epsilon: Shrunk(6, epsilon), lambda epsilon: Shrunk(6, epsilon, 0.0)),
    ):
        path = tmp_path / "errors.csv"
        for make in (first, second):
            given: dict[str, Any] = {"protocols": {"mine": make}, "confidence": None}
            assert [row.squared for row in small(out=path, **given).rows] == [
                row.squared for row in small(**given).rows
            ]
        path.unlink()


def test_the_order_of_a_set_is_no_other_question(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    assert repr({0, 8}) != repr({8, 0})  # as sets of text between two processes
    given = {"protocols": {"GRR": lambda epsilon: GRR(9, epsilon)}, "out": path, "repeats": 1}
    for asked in ({0, 8}, {8, 0}):
        small(**given, populations={"even": np.full(9, 100)}, queries={"two": [asked]})
    assert len(path.read_text().splitlines()) == 2


@pytest.mark.slow
def test_an_interrupt_at_any_byte_loses_one_case_at_most(tmp_path: Path) -> None:
    path = tmp_path / "errors.csv"
    given = {"protocols": {"GRR": PROTOCOLS["GRR"]}, "out": path, "repeats": 2}
    complete = [row._replace(seconds=0) for row in small(**given).rows]
    text = path.read_bytes()
    for end in range(0, len(text), 7):
        path.write_bytes(text[:end])
        if 0 < end < text.index(b"\n"):
            path.unlink()  # no evaluation leaves a part of its head: the file is made in one step
        assert [row._replace(seconds=0) for row in small(**given).rows] == complete
        assert len(path.read_bytes().splitlines()) == 5


def test_an_interrupt_keeps_what_is_done(tmp_path: Path) -> None:
    path, left = tmp_path / "errors.csv", [3]

    class Interrupted(Shifted):
        def estimate(self, aggregate: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return self

    given = {"protocols": {"mine": lambda epsilon: Interrupted(0.1)}, "out": path, "repeats": 5}
    with pytest.raises(KeyboardInterrupt):
        small(**given)
    assert len(path.read_text().splitlines()) == 1 + 2 * 3
    left[0] = 2
    assert len(small(**given).rows) == 10


def test_another_file_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("name,age\nEve,33\n")
    with pytest.raises(ValueError, match="no table of an evaluation"):
        small(out=path)
    assert path.read_text() == "name,age\nEve,33\n"


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"protocols": {}}, "protocols"),
        ({"protocols": [GRR]}, "protocols"),
        ({"populations": {}}, "populations"),
        ({"populations": {"none": []}}, "none"),
        ({"populations": {"none": [0, 0]}}, "not all 0"),
        ({"populations": {"less": [3, -1]}}, "at least 0"),
        ({"populations": {"nan": [0.5, math.nan]}, "users": 5}, "at least 0"),
        ({"populations": {"shares": [0.5, 0.5]}}, "how many users"),
        ({"populations": {"a": [0.7, 0.5]}, "users": 9}, "a' has shares, .* sum to 1.2, not to 1"),
        ({"populations": {"a": [0.5, 0.49999]}, "users": 9}, "sum to 0.99999, not to 1"),
        ({"populations": {"a": [300.0, 200.0]}, "users": 9}, "sum to 500, .* counts are integers"),
        ({"populations": {"texts": ["a"]}}, "counts or shares"),
        ({"populations": {"table": {"a": [1, 2], "b": [1]}}}, "equally long"),
        ({"populations": {"records": np.ones((2, 2), dtype=int)}}, "a mapping"),
        ({"queries": {}}, "no queries"),
        ({"queries": {"items": []}}, "queries"),
        ({"queries": {"items": [6]}}, "items are 0 to 5"),
        ({"queries": {"items": [[0, -1]]}}, "items are 0 to 5"),
        ({"queries": {"ranges": [(np.array([0, 1]), np.array([2, 6]))]}}, "items are 0 to 5"),
        ({"protocols": {"made": GRR(6, 1.0)}}, "'made' must be a function of epsilon"),
        ({"epsilons": []}, "epsilons is no list"),
        ({"epsilons": 1.0}, "epsilons is no list"),
        ({"repeats": 0}, "repeats"),
        ({"users": 0}, "users"),
        ({"seed": -1}, "seed"),
        ({"confidence": 1.0}, "confidence"),
        ({"measures": {"mine": 3.0}}, "measure 'mine' must be a function"),
        ({"measures": {"squared": mean_absolute}}, "measure 'squared' must be .* no column's"),
        ({"populations": {"none": lambda rng: rng}}, "none"),
        ({"epsilons": [-1.0]}, "epsilon"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_computed(
    more: dict[str, Any], match: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=match):
        small(out=tmp_path / "errors.csv", **more)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("made", [True, False])
def test_an_exception_says_whose_it_is(made: bool) -> None:
    class Broken(Shifted):
        def estimate(self, aggregate: Any) -> Any:
            raise ZeroDivisionError

    make = (lambda _: Broken(0.1)) if made else (lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        small(protocols={**PROTOCOLS, "mine": make}, epsilons=[0.5])
    (note,) = caught.value.__notes__
    assert note == "protocol 'mine', epsilon 0.5" + (", population 'Zipf'" if made else "")


def test_a_population_is_the_same_whatever_it_is_named() -> None:
    drawn = [Population(name, ZIPF, 50).drawn(np.random.default_rng(1)) for name in "ab"]
    assert drawn[0].tolist() == drawn[1].tolist()
    assert drawn[0].sum() == 50


def test_the_picture_has_a_panel_for_each_population() -> None:
    found = small(populations={"Zipf": ZIPF, "even": np.full(6, 200)}, epsilons=[0.5, 1, 2])
    figure = found.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["Zipf", "even"]
    drawn = [np.asarray(bars[0].get_ydata(), float) for bars in figure.axes[0].containers]
    expected = [
        [row.error for row in found.summary() if (*row[:2], row.queries) == (name, "Zipf", "items")]
        for name in PROTOCOLS
    ]
    np.testing.assert_allclose(drawn, expected)
    assert found.plot("prefixes").legends[0].get_title().get_text() == "prefixes"
    with pytest.raises(ValueError, match="queries are"):
        found.plot("ranges")
    with pytest.raises(ValueError, match="nothing"):
        ErrorTable(()).plot()


def test_tables_are_read_by_people_and_programs() -> None:
    found = small(repeats=1)
    lines = str(found).splitlines()
    assert lines[0].split()[:4] == ["population", "queries", "epsilon", "protocol"]
    assert len(lines) == 5
    assert " -  " in lines[1]  # no spread of one repeat
    frame = found.to_frame()
    assert list(frame.columns[:3]) == ["protocol", "population", "epsilon"]
    assert len(frame) == 4


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = small(repeats=1)
    for package in ("pandas", "loky"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_frame()
    with pytest.raises(ImportError, match="of the extra 'storage'"):
        small(repeats=1, workers=2)


@pytest.mark.slow
@pytest.mark.of_rounding  # workers are not perturbed
def test_processes_compute_the_same(tmp_path: Path) -> None:
    pytest.importorskip("loky")
    path = tmp_path / "errors.csv"
    one, two = small(), small(workers=2, out=path)
    assert [row._replace(seconds=0) for row in two.rows] == [
        row._replace(seconds=0) for row in one.rows
    ]
    assert small(out=path).rows == two.rows

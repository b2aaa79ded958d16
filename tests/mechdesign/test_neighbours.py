"""Limited precision and metrics: the audit by definition, designs, and files."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from mechdesign import (
    InvalidFile,
    Mechanism,
    MechanismError,
    Metric,
    Privacy,
    PrivacyViolation,
    design,
    named,
)
from mechdesign.base.files import digest_of
from mechdesign.losses import L0, L1, L2, Power
from mechdesign.mechanism import device
from tests.mechdesign.relations import RELATIONS, arbitrary, capped, distance, equal, line, ring

SETTINGS = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# The audit.


def by_definition(table, alpha, neighbours):
    """The largest ratio times alpha^d, and the places where it is reached, over all ordered pairs;
    infinite where one is 0.
    """
    uses = {}
    for i, row in enumerate(table):
        for j in range(len(row)):
            for k in range(len(row)):
                d = None if j == k else distance(neighbours, j, k)
                if d is not None and (row[j] or row[k]):
                    uses[i, j, k] = row[j] / row[k] * alpha**d if row[k] else math.inf
    worst = max(uses.values(), default=0)
    return worst, [where for where, use in uses.items() if use == worst]


@st.composite
def tables(draw):
    n = draw(st.integers(1, 4))
    outputs = draw(st.integers(1, 4))
    columns = []
    for _ in range(n + 1):
        weights = draw(st.lists(st.integers(0, 3), min_size=outputs, max_size=outputs).filter(any))
        columns.append([Fraction(weight, sum(weights)) for weight in weights])
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.slow
@SETTINGS
@given(
    tables(),
    st.sampled_from([Fraction(1, 3), Fraction(9, 10), Fraction(1)]),
    st.sampled_from(sorted(RELATIONS)),
    st.integers(0, 9),
)
def test_audit_by_definition(table, alpha, relation, seed):
    n = len(table[0]) - 1
    neighbours = arbitrary(n, seed) if relation == "arbitrary" else RELATIONS[relation](n)
    audit = Mechanism(table, Privacy(alpha=alpha, neighbours=neighbours)).audit()
    worst, places = by_definition(table, alpha, neighbours)
    assert audit.holds == (worst <= 1)
    j, k = audit.inputs
    assert audit.allowed == 1 / alpha ** distance(neighbours, j, k)
    assert audit.ratio / audit.allowed == worst
    assert (audit.output, j, k) in places or table[audit.output][j] == table[audit.output][k] == 0
    if audit.holds:
        return
    with pytest.raises(PrivacyViolation) as caught:
        audit.require()
    assert (caught.value.ratio, caught.value.allowed) == (audit.ratio, audit.allowed)


def test_the_geometric_mechanism_uses_all_that_the_line_allows():
    table = named.geometric(4, alpha="1/2").table
    assert Mechanism(table, Privacy(alpha="1/2", neighbours=line(4))).audit().holds
    # At precision k it keeps alpha^k, and no more.
    for k in range(1, 5):
        assert (
            Mechanism(table, Privacy(alpha=Fraction(1, 2) ** k, neighbours=k)).audit().ratio == 2**k
        )
        assert (
            not Mechanism(
                table, Privacy(alpha=Fraction(1, 2) ** k + Fraction(1, 1000), neighbours=k)
            )
            .audit()
            .holds
        )
    assert not Mechanism(table, Privacy(alpha="1/2", neighbours=capped(4, 3))).audit().holds
    audit = Mechanism(table, Privacy(alpha="1/2", neighbours=capped(4, 3))).audit()
    assert (audit.ratio, audit.allowed) == (16, 8)
    assert sorted(audit.inputs) == [0, 4]


# Designs.


def plain_optimum(n, alpha, neighbours, p, wanted):
    """The least mean |i - j|^p by a dense program in floats."""
    size = n + 1
    rows, equal_to, right = [], [], []

    def row(*terms):
        found = np.zeros(size * size)
        for i, j, value in terms:
            found[i * size + j] += value
        return found

    for i in range(size):
        for j in range(size):
            for k in range(size):
                d = None if j == k else distance(neighbours, j, k)
                if d is not None:
                    rows.append(row((i, k, alpha**d), (i, j, -1)))
            if "RM" in wanted and j != i:
                rows.append(row((i, j, 1), (i, j + (1 if j < i else -1), -1)))
            if "CM" in wanted and j != i:
                rows.append(row((i, j, 1), (i + (1 if i < j else -1), j, -1)))
    for j in range(size):
        equal_to.append(row(*((i, j, 1) for i in range(size))))
        right.append(1)
        if "F" in wanted and j:
            equal_to.append(row((j, j, 1), (0, 0, -1)))
            right.append(0)
    cost = [abs(i - j) ** p / size if i != j else 0 for i in range(size) for j in range(size)]
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), np.array(equal_to), right)
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("n", [1, 3, 6])
def test_designs_agree_with_a_plain_program(relation, n):
    neighbours = RELATIONS[relation](n)
    for alpha, p, wanted in (
        ("9/10", 0, []),
        ("1/3", 1, []),
        ("4/5", 2, ["RM"]),
        ("9/10", 1, ["CM", "F"]),
        (1, 1, []),
    ):
        found = design(n, Privacy(alpha=alpha, neighbours=neighbours), Power(p), wanted)
        assert found.certificate.gap == 0
        assert found.certificate.verify(found.mechanism)
        worst, _ = by_definition(found.mechanism.table, Fraction(alpha), neighbours)
        assert worst <= 1
        expected = plain_optimum(n, float(Fraction(alpha)), neighbours, p, wanted)
        assert float(found.certificate.objective) == pytest.approx(expected, abs=1e-7), (
            alpha,
            p,
            wanted,
        )


@pytest.mark.parametrize("n", [1, 2, 5, 8])
@pytest.mark.parametrize("wanted", [[], ["RM"], ["WH", "CM"]], ids=str)
def test_relations_that_ask_for_the_same_have_the_same_optimum(n, wanted):
    for loss in (L0(), L1(), L2(worst_case=True)):

        def best(neighbours, loss=loss):
            return design(
                n, Privacy(alpha="3/4", neighbours=neighbours), loss, wanted
            ).certificate.objective

        assert best("all") == best(n) == best(n + 5) == best(equal(n)) == best(capped(n, 1))
        assert best("adjacent") == best(1) == best(line(n)) == best(capped(n, n))
        assert best("adjacent") <= best(capped(n, 2)) <= best("all")
        assert best("adjacent") <= best(2) <= best("all")


def test_distances_multiply_the_budget():
    twice = Metric([[2 * d for d in row] for row in ring(5).distances])
    assert (
        design(5, Privacy(alpha="1/2", neighbours=twice), L1()).certificate.objective
        == design(5, Privacy(alpha="1/4", neighbours=ring(5)), L1()).certificate.objective
    )


def test_the_geometric_mechanism_is_optimal_on_the_line():
    found = design(5, Privacy(alpha="9/10", neighbours=line(5)))
    assert found.mechanism.table == named.geometric(5, alpha="9/10").table


def test_all_inputs_being_neighbours_has_the_optimum_of_krr():
    assert design(15, Privacy(alpha="1/3", neighbours="all")).mechanism == named.krr(
        16, alpha="1/3"
    )


@pytest.mark.slow
@pytest.mark.parametrize("loss", [L0(), L1(), L2(), L1(worst_case=True)], ids=repr)
@pytest.mark.parametrize(
    "neighbours",
    ["all", 10, 24, capped(32, 3), arbitrary(32, 7)],
    ids=lambda value: f"{value!r:.12}",
)
def test_larger_designs_are_proved_optimal(loss, neighbours):
    found = design(32, Privacy.from_epsilon(1, neighbours), loss)
    assert found.certificate.gap == 0
    assert found.certificate.verify(found.mechanism)


# Files.


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.json"
    design(
        3,
        Privacy(
            alpha="1/2",
            neighbours=Metric([[0, 1, 3, None], [1, 0, 2, 5], [3, 2, 0, 1], [None, 5, 1, 0]]),
        ),
        L1(),
    ).save(path)
    return path


@pytest.mark.parametrize("relation", RELATIONS)
def test_files_round_trip(relation, tmp_path):
    found = design(4, Privacy(alpha="2/3", neighbours=RELATIONS[relation](4)), L1(), ["WH"])
    path = tmp_path / "m.json"
    found.save(path)
    back = Mechanism.load(path)
    assert back == found.mechanism
    assert back.certificate == found.certificate
    back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    assert device.Device(str(path)).denominator == found.mechanism.denominator


def test_a_metric_in_a_file(saved, tmp_path):
    content = json.loads(saved.read_text())
    assert content["neighbours"] == {
        "distances": [[0, 1, 3, None], [1, 0, 2, 5], [3, 2, 0, 1], [None, 5, 1, 0]]
    }
    mechanism = Mechanism.load(saved)
    mechanism.save(tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        assert set(arrays) == {"matrix", "alpha", "distances"}
        assert arrays["distances"].tolist() == [
            [0, 1, 3, math.inf],
            [1, 0, 2, 5],
            [3, 2, 0, 1],
            [math.inf, 5, 1, 0],
        ]
    mechanism.save(tmp_path / "m.csv")
    assert len((tmp_path / "m.csv").read_text().splitlines()) == 5


def forged(path, neighbours):
    content = json.loads(path.read_text())
    content["neighbours"] = neighbours
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


def with_entry(j, k, *values):
    """The table of `saved` with an entry, and that across the diagonal, replaced."""
    table = [[0, 1, 3, None], [1, 0, 2, 5], [3, 2, 0, 1], [None, 5, 1, 0]]
    table[j][k], table[k][j] = values[0], values[-1]
    return {"distances": table}


@pytest.mark.parametrize(
    "neighbours",
    [
        {},
        {"distances": []},
        {"distances": None},
        {"distances": "0123"},
        {"distances": 4},
        {"distances": [[0, 1], [1, 0]]},
        {"distances": [[0, 1, 1, 1]] * 3},
        {"distances": [[0, 1, 1, 1], [1, 0, 1], [1, 1, 0, 1], [1, 1, 1, 0]]},
        {"distances": [None] * 4},
        {"distances": ["0123"] * 4},
        {"distances": [[0 if j == k else None for k in range(4)] for j in range(4)]},
        {**with_entry(0, 1, 1), "more": 1},
        {"other": with_entry(0, 1, 1)["distances"]},
        *(with_entry(0, 1, value) for value in (0, -1, 1.0, 1025, True, "1", [1], 10**400)),
        *(with_entry(0, 0, value) for value in (1, None, False, 0.0)),
        *(
            with_entry(1, 2, *values)
            for values in ((2, 3), (2, None), (None, 2), (2, 2.0), (2.0, 2), (True, 1))
        ),
        with_entry(0, 1, 10**9),
    ],
    ids=lambda value: f"{value!r:.70}",
)
def test_the_device_and_the_library_refuse_the_same_metrics(neighbours, saved):
    forged(saved, neighbours)
    with pytest.raises(InvalidFile):
        Mechanism.load(saved)
    with pytest.raises(ValueError, match=r"."):
        device.Device(str(saved))


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_file_that_claims_more_than_its_table_keeps_is_refused(relation, saved):
    """Both look at every pair, with its own distance: for each relation whichever verdict the
    definition gives.
    """
    neighbours = Privacy(alpha="1/2", neighbours=RELATIONS[relation](3)).neighbours
    described = (
        {"distances": neighbours.distances} if isinstance(neighbours, Metric) else neighbours
    )
    table = Mechanism.load(saved).table
    forged(saved, described)
    worst, _ = by_definition(table, Fraction(1, 2), neighbours)
    if worst <= 1:
        assert device.Device(str(saved)).denominator
        return
    with pytest.raises(MechanismError, match="not private"):
        Mechanism.load(saved)
    with pytest.raises(ValueError, match="not private"):
        device.Device(str(saved))

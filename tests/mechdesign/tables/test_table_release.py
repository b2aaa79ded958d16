"""Tables of counts are released by independent draws, from mechanisms that are checked."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mechdesign import (
    InexactNumber,
    InvalidCount,
    InvalidFile,
    NoUnbiasedEstimate,
    Privacy,
    PrivacyViolation,
    TooLarge,
    design,
    named,
)
from mechdesign.base.files import digest_of
from mechdesign.exceptions import InvalidPrior, NotSquare
from mechdesign.losses import L0, L2, Costs, binomial
from mechdesign.losses import prior as weighted
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.optimisation.unbiased_design import least_variance
from mechdesign.tables import TableRelease, release
from tests.goodness_of_fit import FALSE_ALARM, goodness

HALF = Privacy(alpha="1/2")


def test_every_size_has_the_mechanism_of_design() -> None:
    sizes = [2, 0, 1, 2, 5]
    found = release([1, 0, 1, 2, 5], sizes, HALF, L2(), ["WH", "S"])
    assert [*found.mechanisms] == [0, 1, 2, 5]
    for size, mechanism in found.mechanisms.items():
        assert mechanism == design(size, HALF, L2(), ["WH", "S"]).mechanism
    assert (found.released >= 0).all()
    assert (found.released <= found.sizes).all()
    assert found.sizes.tolist() == sizes
    assert found.statement.cells == 5


def test_priors_and_costs_are_those_of_each_size() -> None:
    """Against `design` for one size after the other."""
    sizes, counts, tenth = [3, 1, 2, 0], [1, 0, 2, 0], Fraction(1, 10)
    costs = [[abs(i - j) * (1 + (i < j)) for j in range(4)] for i in range(4)]
    weights = [4, 3, 2, 1]

    def corner(size: int) -> Costs:
        return Costs([row[: size + 1] for row in costs[: size + 1]])

    for prior, of in (
        (lambda n: binomial(n, tenth), lambda n: binomial(n, tenth)),
        (weights, lambda n: weighted(weights[: n + 1])),
    ):
        for loss in (None, L2(), Costs(costs)):
            found = release(counts, sizes, HALF, loss, ["F"], prior=prior, totals=False)
            for size, mechanism in found.mechanisms.items():
                wanted = corner(size) if isinstance(loss, Costs) else loss or L0()
                expected = design(size, HALF, replace(wanted, prior=of(size)), ["F"])
                assert mechanism == expected.mechanism
        for cache in (True, False):
            found = release(counts, sizes, HALF, "total", prior=prior, cache=cache)
            for size, mechanism in found.mechanisms.items():
                assert mechanism == least_variance(size, HALF, prior=of(size)).mechanism
    plain = release(counts, sizes, HALF, "total").mechanisms
    assert plain[3] == least_variance(3, HALF).mechanism  # the cache keeps them apart
    with pytest.raises(InvalidPrior, match=r"3 weights for the counts 0 .. 3"):
        release(counts, sizes, HALF, prior=weights[:3])
    with pytest.raises(InvalidPrior):
        release(counts, sizes, HALF, prior=[0, 0, 0, 1])
    with pytest.raises(NotSquare):
        release(counts, sizes, HALF, corner(2))


def test_epsilon_is_the_privacy_of_a_cell() -> None:
    for epsilon in (1, 1.0, "1", Fraction(1)):
        assert release([1], [2], epsilon).statement.privacy == Privacy.from_epsilon(1)


def test_what_is_cached_changes_nothing() -> None:
    arguments = [3, 1, 2, 2], [4, 2, 2, 3], HALF
    found = [
        release(*arguments, properties=["WH"], rng=np.random.default_rng(5), cache=cache)
        for cache in (True, False, True)
    ]
    assert len({one.released.tobytes() for one in found}) == 1
    assert found[0].mechanisms == found[1].mechanisms == found[2].mechanisms
    other = release(*arguments, properties=["WH"], rng=np.random.default_rng(6))
    assert other.statement.reproducible
    assert not release(*arguments).statement.reproducible


def test_properties_may_be_read_once() -> None:
    found = release([1, 1], [2, 3], HALF, properties=iter(["F"]))
    assert all(m.properties()["F"] for m in found.mechanisms.values())


def test_cells_are_drawn_independently() -> None:
    """Pairs of neighbouring cells have the product law; draws that go together are seen."""
    cells = 40_000
    found = release([1] * cells, [2] * cells, HALF, rng=np.random.default_rng(3))
    column = found.mechanisms[2].matrix[:, 1]
    pairs = np.bincount(found.released[0::2] * 3 + found.released[1::2], minlength=9)
    assert goodness(pairs, np.outer(column, column).ravel()) > FALSE_ALARM
    together = np.bincount(found.released[0::2] * 4, minlength=9)
    assert goodness(together, np.outer(column, column).ravel()) < FALSE_ALARM


def test_each_count_goes_through_its_own_column() -> None:
    cells = 30_000
    sizes, counts = np.resize([1, 3], cells), np.resize([1, 2, 0, 3], cells)
    counts = np.minimum(counts, sizes)
    found = release(counts, sizes, HALF, properties=["WH"], rng=np.random.default_rng(4))
    for size, count in {*zip(sizes.tolist(), counts.tolist(), strict=True)}:
        outputs = found.released[(sizes == size) & (counts == count)]
        observed = np.bincount(outputs, minlength=size + 1)
        column = found.mechanisms[size].matrix[:, count]
        assert goodness(observed, column) > FALSE_ALARM / 8


@pytest.mark.parametrize(
    ("counts", "sizes", "index", "largest"),
    [
        ([1, 3, 9], [1, 2, 2], 1, 2),
        ([0, -1], [3, 3], 1, 3),
        ([0, 1.5], [3, 3], 1, 3),
        ([0, None], [3, 3], 1, 3),
        ([0, "1"], [3, 3], 1, 3),
        ([1, 10**30], [3, 3], 1, 3),
        ([float("nan")], [3], 0, 3),
        ([1], [0], 0, 0),
    ],
)
def test_a_count_that_its_group_cannot_have_is_named(counts, sizes, index, largest) -> None:
    with pytest.raises(InvalidCount) as caught:
        release(counts, sizes, HALF)
    assert (caught.value.index, caught.value.largest) == (index, largest)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"counts": [], "sizes": []}, "at least one cell"),
        ({"counts": [[1]], "sizes": [[1]]}, "one dimension"),
        ({"counts": [1, 2]}, "1 sizes, but counts of shape"),
        ({"sizes": [-1]}, r"sizes\[0\] = -1 is not an integer of at least 0"),
        ({"sizes": ["3"]}, r"sizes\[0\] = '3' is not an integer"),
        ({"sizes": [2.5]}, r"sizes\[0\] = 2.5 is not an integer"),
        ({"names": ["a", "b"]}, "1 sizes, but 2 names"),
        ({"overlap": 0}, "overlap must be a number of cells, at least 1"),
        ({"overlap": 1.5}, "overlap must be"),
        ({"privacy": -1}, "must not be negative"),
        ({"privacy": Privacy(alpha="1/2", neighbours=[(0, 1)])}, "fit groups of any size"),
        ({"properties": ["unknown"]}, "unknown property"),
    ],
)
def test_wrong_requests_are_refused(changed, reason) -> None:
    request = {"counts": [1], "sizes": [3], "privacy": HALF, **changed}
    with pytest.raises(ValueError, match=reason):
        release(request.pop("counts"), request.pop("sizes"), request.pop("privacy"), **request)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"names": "a"}, TypeError),
        ({"names": [1]}, TypeError),
        ({"loss": "L0"}, TypeError),
        ({"properties": "WH"}, TypeError),
        ({"privacy": None}, InexactNumber),
        ({"rng": 5}, TypeError),
        ({"sizes": [10**6], "properties": ["OR"]}, TooLarge),
    ],
)
def test_other_wrong_requests(changed, error) -> None:
    request = {"counts": [1], "sizes": [3], "privacy": HALF, **changed}
    with pytest.raises(error):
        release(request.pop("counts"), request.pop("sizes"), request.pop("privacy"), **request)


def test_groups_of_any_size_go_through_one_release(tmp_path) -> None:
    """Of 3 and of 3 million: drawn, stated, written and read back."""
    rng = np.random.default_rng(2)
    sizes = np.array([2, 40, 900, 3_000_000, (1 << 62) - 1])
    counts = sizes // 3
    for loss in (None, L2(), "total"):
        made = release(
            counts,
            sizes,
            Privacy(alpha="4/5"),
            loss,
            ["WH", "CM"],
            totals=loss != L2(),
            rng=rng,
            cache=False,
        )
        apart = made.released - counts
        assert (np.abs(apart) <= np.minimum(sizes, 200)).all()
        assert made.statement.ratio <= Fraction(5, 4)
        assert all(m.properties()["CM"] for m in made.mechanisms.values())
        made.save(tmp_path / "r.json")
        again = TableRelease.load(tmp_path / "r.json")
        assert again.mechanisms == made.mechanisms
        for cell in again.cells()[2:]:
            assert cell.estimate is not None
            assert abs(cell.estimate - cell.released) < 1e-3 * max(1, cell.size / 1e6)
            assert cell.low <= cell.released <= cell.high
    total = made.total(sizes < 1 << 60)
    assert abs(total.value - counts[:4].sum()) < 8 * total.standard_error


SINGULAR = {"privacy": Privacy.from_epsilon("1/10"), "properties": ["WH", "CM"]}
"""The optimal mechanism for groups of 5 has dependent columns."""


def test_mechanisms_without_unbiased_estimates_are_refused_before_the_draw() -> None:
    with pytest.raises(NoUnbiasedEstimate, match=r"groups of 5: .* rank 4"):
        release([1, 1], [2, 5], **SINGULAR)
    found = release([1, 1], [2, 5], **SINGULAR, totals=False)
    assert found.total([True, False]).cells == 1
    with pytest.raises(NoUnbiasedEstimate, match="groups of 5"):
        found.total()
    with_estimate, without = found.cells()
    assert with_estimate.estimate is not None
    assert without.estimate is None
    assert (without.low, without.high) == (0, 5)


@pytest.fixture
def some() -> TableRelease:
    sizes = [3, 1, 0, 3, 8, 3]
    return release(
        [2, 1, 0, 3, 5, 0],
        sizes,
        Privacy(alpha="1/3"),
        names=[*"abcdef"],
        overlap=2,
        rng=np.random.default_rng(1),
    )


def test_totals_are_sums_over_cells(some) -> None:
    values = {size: UnbiasedEstimate(m).values for size, m in some.mechanisms.items()}
    exact = [values[n][i] for n, i in zip(some.sizes.tolist(), some.released.tolist(), strict=True)]
    assert some.total().value == pytest.approx(float(sum(exact)))
    mask = some.sizes == 3
    assert some.total(mask).value == pytest.approx(float(exact[0] + exact[3] + exact[5]))
    assert (some.total(mask).cells, some.total(mask).people) == (3, 9)
    assert some.total(np.zeros(6, dtype=bool)).value == 0
    cells = some.cells()
    assert [cell.estimate for cell in cells] == pytest.approx([*map(float, exact)])
    assert [cell.name for cell in cells] == [*"abcdef"]
    assert [cell.released for cell in cells] == some.released.tolist()
    alone = some.total(np.arange(6) == 4)
    assert alone.interval() == (cells[4].low, cells[4].high)


@pytest.mark.parametrize("mask", [[1, 0, 0, 0, 0, 0], [True], [[True] * 6], "all", [0, 3]])
def test_masks_are_bools_of_the_cells(some, mask) -> None:
    with pytest.raises(ValueError, match="a mask has a bool for each of 6 cells"):
        some.total(mask)


def test_what_was_released_cannot_be_changed(some) -> None:
    with pytest.raises(ValueError, match="read-only"):
        some.released[0] = 1
    with pytest.raises(TypeError):
        some.mechanisms[3] = some.mechanisms[8]
    with pytest.raises(AttributeError):
        some.statement.overlap = 1


def test_a_file_is_what_was_saved(some, here) -> None:
    some.save("table.json")
    found = TableRelease.load("table.json")
    assert found.released.tolist() == some.released.tolist()
    assert found.sizes.tolist() == some.sizes.tolist()
    assert found.mechanisms == some.mechanisms
    assert found.statement == some.statement
    assert found.names == some.names
    assert found.total().interval(0.9) == some.total().interval(0.9)
    assert found.statement.reproducible
    with pytest.raises(ValueError, match=r"saved as \.json"):
        some.save("table.csv")


def test_no_true_count_is_in_the_file(here) -> None:
    """Two tables with other counts and the same draws have the same file."""
    for name, count in (("a.json", 0), ("b.json", 60)):
        blind = named.uniform(60, HALF)
        drawn = blind.release([count], np.random.default_rng(1))
        TableRelease(drawn, [60], {60: blind}).save(name)
    assert (here / "a.json").read_bytes() == (here / "b.json").read_bytes()


def altered(path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (lambda c: c["released"].append(1), InvalidFile, "6 sizes, but 7 released"),
        (lambda c: c["released"].__setitem__(0, 4), InvalidFile, "size 3 never gives 4"),
        (lambda c: c["sizes"].__setitem__(0, 2), InvalidFile, "the groups have the sizes"),
        (lambda c: c["sizes"].__setitem__(0, "3"), InvalidFile, "must be an integer"),
        (lambda c: c.update(overlap=0), InvalidFile, "overlap"),
        (lambda c: c.update(overlap=True), InvalidFile, "overlap"),
        (lambda c: c.update(names=["a"]), InvalidFile, "6 sizes, but 1 names"),
        (lambda c: c.update(names=3), InvalidFile, "malformed"),
        (lambda c: c.update(reproducible="no"), InvalidFile, "true or false"),
        (lambda c: c.update(mechanisms=[]), InvalidFile, "the groups have the sizes"),
        (lambda c: c.update(mechanisms={}), InvalidFile, "must be a list"),
        (lambda c: c.update(mechanisms=3), InvalidFile, "malformed"),
        (lambda c: c["mechanisms"].pop(), InvalidFile, "the groups have the sizes"),
        (lambda c: c["mechanisms"].append(c["mechanisms"][0]), InvalidFile, "the same size"),
        (lambda c: c["mechanisms"][2].update(alpha="1/2"), PrivacyViolation, "not private"),
        (lambda c: c["mechanisms"][2].update(alpha="1/4"), InvalidFile, "were expected"),
        (lambda c: c["mechanisms"][2].pop("alpha"), InvalidFile, "alpha"),
        (lambda c: c.pop("sizes"), InvalidFile, "the key 'sizes' is missing"),
        (lambda c: c.update(version=2), InvalidFile, "version 2"),
    ],
)
def test_a_file_that_lies_is_refused(some, here, change, error, reason) -> None:
    some.save("table.json")
    altered(here / "table.json", change)
    with pytest.raises(error, match=reason):
        TableRelease.load("table.json")


def test_a_file_that_was_changed_is_refused(some, here) -> None:
    some.save("table.json")
    text = (here / "table.json").read_text()
    (here / "table.json").write_text(text.replace('"overlap": 2', '"overlap": 1'))
    with pytest.raises(InvalidFile, match="digest"):
        TableRelease.load("table.json")
    (here / "table.json").write_text(text[:-100])
    with pytest.raises(InvalidFile, match="cut short"):
        TableRelease.load("table.json")


def test_an_output_that_never_occurs_was_not_released() -> None:
    gapped = design(2, Privacy(alpha="9/10")).mechanism
    never = [i for i, row in enumerate(gapped.weights) if not any(row)]
    for output in never:
        with pytest.raises(ValueError, match="never gives"):
            TableRelease([output], [2], {2: gapped})

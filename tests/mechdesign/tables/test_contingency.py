"""Contingency tables: privacy by enumeration of all tables, estimates by expectation."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from mechdesign import InvalidCount, Privacy, named
from mechdesign.base.files import digest_of
from mechdesign.base.numbers import bit_source
from mechdesign.exceptions import InvalidFile, InvalidTable
from mechdesign.mechanism.unbiased_estimate import UnbiasedEstimate
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.tables.axes import Axes
from mechdesign.tables.contingency import (
    ContingencyRelease,
    Margin,
    release_contingency,
)
from mechdesign.tables.table_release import ContingencyStatement, TableRelease

AXES = Axes({"region": ["n", "s"], "answer": ["yes", "no", "?"]})
COUNTS = [[2, 0, 1], [0, 3, 1]]


def laplace(alpha, noise):
    """The probability of discrete Laplace noise."""
    return (1 - alpha) / (1 + alpha) * alpha ** abs(noise)


@cache
def geometric(n, alpha):
    return named.geometric(n, alpha=alpha).table


def likelihoods(table, sizes, alpha, margins):
    """Pr[all that is released | a table], by what is released: every output of every cell.

    A margin is given by the cells that it adds up, and its alpha; its noise is looked at from one
    below to one above all sums, beyond which ratios stay the same.
    """
    result = {}
    ends = range(-1, sum(sizes) + 2)
    for outputs in product(*(range(n + 1) for n in sizes)):
        chance = Fraction(1)
        for n, output, count in zip(sizes, outputs, table, strict=True):
            chance *= geometric(n, alpha)[output][count]
        for noisy in product(ends, repeat=len(margins)):
            told = chance
            for value, (cells, own) in zip(noisy, margins, strict=True):
                told *= laplace(own, value - sum(table[cell] for cell in cells))
            result[outputs, noisy] = told
    return result


def worst(tables, neighbours, sizes, alpha, margins):
    """The largest ratio of likelihoods of neighbouring tables over all that may be released."""
    known = {table: likelihoods(table, sizes(table), alpha, margins) for table in tables}
    return max(
        known[first][seen] / known[second][seen]
        for first in tables
        for second in neighbours(first)
        if second in known
        for seen in known[first]
    )


def moves(groups):
    """The tables in which one person is in another cell of the same group."""

    def found(table):
        for group in groups:
            for source, target in product(group, repeat=2):
                if source != target and table[source]:
                    moved = list(table)
                    moved[source] -= 1
                    moved[target] += 1
                    yield tuple(moved)

    return found


def additions(table):
    """The tables with one person more or less."""
    for cell, step in product(range(len(table)), (-1, 1)):
        changed = list(table)
        changed[cell] += step
        yield tuple(changed)


HALF, THIRDS = Fraction(1, 2), Fraction(2, 3)


def test_one_person_who_moves_changes_two_cells():
    tables = [table for table in product(range(3), repeat=3) if sum(table) == 2]
    found = worst(tables, moves([(0, 1, 2)]), lambda table: (2, 2, 2), HALF, [])
    assert found == 1 / ContingencyStatement("changed", (), HALF, {}).total_alpha == 4
    # The statement for one cell alone would be wrong
    assert found > 1 / ContingencyStatement("added", (), HALF, {}).total_alpha


def test_one_person_who_moves_changes_two_sums_of_each_margin():
    """Two groups of one and two people with two answers; the sums by answer are released, too."""
    tables = [t for t in product(range(3), repeat=4) if (t[0] + t[1], t[2] + t[3]) == (1, 2)]
    margins = [((0, 2), THIRDS), ((1, 3), THIRDS)]
    found = worst(tables, moves([(0, 1), (2, 3)]), lambda table: (1, 1, 2, 2), HALF, margins)
    statement = ContingencyStatement("changed", ("region",), HALF, {("answer",): THIRDS})
    assert found == 1 / statement.total_alpha == 9
    assert found > 1 / ContingencyStatement("changed", ("region",), HALF, {}).total_alpha


def test_one_person_more_changes_one_cell_and_one_sum_of_each_margin():
    """Counts beyond the caps, too: those of neighbours differ by one at most when capped."""
    caps = (1, 2)
    tables = list(product(range(4), repeat=2))

    def capped(table):
        return tuple(map(min, table, caps))

    known = {t: likelihoods(capped(t), caps, HALF, [((0, 1), THIRDS)]) for t in tables}
    found = max(
        known[first][seen] / known[second][seen]
        for first in tables
        for second in additions(first)
        if second in known
        for seen in known[first]
    )
    statement = ContingencyStatement("added", (), HALF, {(): THIRDS})
    assert found == 1 / statement.total_alpha == 3
    # Sums of what is beyond the caps would be a second change of the same size, no larger one
    assert found > 1 / ContingencyStatement("added", (), HALF, {}).total_alpha


def test_what_is_released_is_what_the_statement_says():
    """Without noise, as epsilon is large: capped cells, their sums, and public sums."""
    axes, counts = (
        {"a": ["x", "y"], "b": ["u", "v"], "c": ["1", "2"]},
        np.array([[[0, 1], [2, 1]], [[0, 0], [1, 2]]]),
    )
    margins = {("c", "a"): 300, (): 300}
    found = release_contingency(counts, axes, 300, caps=[[1], [2]], margins=margins)
    capped = np.minimum(counts, np.array([[1, 1], [2, 2]]))
    assert found.released.tolist() == capped.tolist()
    assert [margin.names for margin in found.margins] == [("a", "c"), ()]
    assert found.margins[0].released.tolist() == capped.sum(axis=1).tolist()
    assert found.margins[1].released.tolist() == capped.sum()
    assert (found.public_sums, found.statement.changed) == (None, 1)
    assert found.statement.epsilon <= 900
    found = release_contingency(counts, axes, 300, within=["b"], margins={("c", "b"): 300})
    assert found.released.tolist() == counts.tolist()
    assert found.public_sums is not None
    assert found.public_sums.tolist() == counts.sum(axis=(0, 2)).tolist()
    assert found.cells.sizes.reshape(2, 2, 2)[0, :, 1].tolist() == [1, 6]
    assert (found.statement.within, found.statement.changed) == (("b",), 2)


def given(sizes, alpha, outputs, margins, public):
    """A release in which these outputs came out."""
    mechanisms = {n: named.geometric(n, alpha=alpha) for n in set(sizes.tolist())}
    cells = TableRelease(outputs, sizes, mechanisms, overlap=2 if public else 1)
    return ContingencyRelease(AXES, cells, ["region"] if public else None, margins)


@pytest.mark.slow
@pytest.mark.parametrize("public", [True, False])
def test_estimates_and_their_variances_are_unbiased_over_all_outputs(public):
    counts = np.array([[1, 0, 0], [0, 1, 1]])
    sizes = np.repeat(counts.sum(axis=1), 3)
    sums = counts.sum(axis=0)
    # The estimate is linear in the noise: two of its values of mean 0 and its variance are enough
    noise = float(2 * THIRDS / (1 - THIRDS) ** 2) ** 0.5
    tables = [geometric(n, HALF) for n in sizes.tolist()]
    mean, second, told, weight = np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)), 0.0
    margin = Margin(("answer",), THIRDS, sums)
    fit = given(sizes, HALF, [0] * 6, (margin,), public).consistent()
    for outputs in product(*(range(n + 1) for n in sizes.tolist())):
        chance = 1.0
        for table, output, count in zip(tables, outputs, counts.ravel(), strict=True):
            chance *= float(table[output][count])
        for sign in (-1, 1):
            margin = Margin(("answer",), THIRDS, sums + sign * noise * np.array([1, 0, 0]))
            release = given(sizes, HALF, outputs, (margin,), public)
            # The same as release.consistent() of each, which would take longer
            parts = release._measured
            cells = fit.fit.fit(parts.values, parts.sum_values)
            mean += chance / 2 * cells.reshape(2, 3)
            second += chance / 2 * cells.reshape(2, 3) ** 2
            weight += chance / 2
            if sign == 1 and weight < 0.1:
                assert release.consistent().cells.ravel() == pytest.approx(cells)
        told += chance * replace_variances(fit, release)
    assert weight == pytest.approx(1)
    np.testing.assert_allclose(mean, counts, atol=1e-9)
    # Noise of one sum only was moved: that of the other two is in what is told as well
    exact = second - mean**2
    coefficients = np.concatenate(list(fit.fit.cell_coefficients()))
    exact += (coefficients[:, 7:9] ** 2).sum(axis=1).reshape(2, 3) * noise**2
    np.testing.assert_allclose(told, exact, atol=1e-9)
    assert (exact <= fit.worst_variances + 1e-9).all()


def replace_variances(fit, release):
    return replace(fit, errors=release.consistent().errors).variances


def brute(axes, release):
    """The cells by dense restricted least squares."""
    sizes = release.cells.sizes
    laws = {n: UnbiasedEstimate(m) for n, m in release.cells.mechanisms.items()}
    y = [laws[n].values[i] for n, i in zip(sizes.tolist(), release.cells.released, strict=True)]
    design, z = [np.eye(axes.size)], [np.array(y, dtype=float)]
    weights = [1 / np.array([float(max(laws[n].variances)) for n in sizes.tolist()])]
    for margin in release.margins:
        design.append(np.equal.outer(np.arange(margin.released.size), axes.groups(margin.names)))
        z.append(margin.released.ravel())
        weights.append(np.full(margin.released.size, 1 / margin.variance))
    A, W = np.vstack(design).astype(float), np.diag(np.concatenate(weights))
    normal, right = A.T @ W @ A, A.T @ W @ np.concatenate(z)
    if release.public_sums is None:
        return np.linalg.solve(normal, right)
    groups = release.statement.within
    B = np.equal.outer(np.arange(release.public_sums.size), axes.groups(groups)).astype(float)
    system = np.block([[normal, B.T], [B, np.zeros((len(B), len(B)))]])
    right = np.concatenate([right, release.public_sums.ravel()])
    return np.linalg.solve(system, right)[: axes.size]


@pytest.mark.parametrize(
    "options",
    [
        {"within": ["region"]},
        {"within": [], "margins": {("region",): 1, ("answer",): 2}},
        {"within": ["region"], "margins": {("answer",): "0.5"}},
        {"caps": 3},
        {"caps": 3, "margins": {("region",): 1, ("answer",): 2, (): "1/3"}},
    ],
)
def test_it_is_dense_least_squares_and_everything_agrees(options):
    rng = np.random.default_rng(3)
    release = release_contingency(COUNTS, AXES, 1, rng=rng, **options)
    table = release.consistent()
    np.testing.assert_allclose(table.cells.ravel(), brute(AXES, release), atol=1e-8)
    assert table.margin(["region"]).sum() == pytest.approx(table.margin([]))
    assert table.margin(["answer"]).sum() == pytest.approx(table.margin([]))
    if release.public_sums is not None:
        public = table.margin(release.statement.within)
        np.testing.assert_allclose(public, release.public_sums, atol=1e-9)
        total = table.estimate({})
        assert total.value == pytest.approx(7)
        assert total.variance == pytest.approx(0, abs=1e-9)
    for k, labels in enumerate(AXES.cells()):
        one = table.estimate(dict(zip(AXES.names, labels, strict=True)))
        assert one.value == pytest.approx(table.cells.ravel()[k])
        assert one.standard_error == pytest.approx(table.standard_errors.ravel()[k])
        assert one.worst_variance == pytest.approx(table.worst_variances.ravel()[k])
        squares = one.coefficients**2
        assert table.variances.ravel()[k] == pytest.approx(squares @ one.errors.variances)
    whole = release.whole(2, rng)
    assert whole.cells.dtype.kind == "i"
    assert (whole.cells >= 0).all()
    assert (whole.cells.ravel() <= release.cells.sizes).all()
    if release.public_sums is not None:
        assert whole.margin(release.statement.within).tolist() == release.public_sums.tolist()


@pytest.mark.parametrize("epsilon", [30, 1000, 5000])
def test_margins_with_hardly_any_noise_are_kept(epsilon):
    """Their sums are known from several sides, which must not be one equation too many."""
    margins = {("region",): epsilon, ("answer",): epsilon, (): epsilon}
    release = release_contingency(COUNTS, AXES, 1, caps=4, margins=margins)
    for table in (release.consistent(), release.whole(2)):
        assert table.margin(["region"]) == pytest.approx([3, 4], abs=1e-6)
        assert table.margin(["answer"]) == pytest.approx([2, 3, 2], abs=1e-6)
    assert release.consistent().estimate({"answer": "no"}).interval() == (3, 3)


def test_margins_and_public_sums_make_estimates_better():
    rng = np.random.default_rng(1)
    plain = release_contingency(COUNTS, AXES, 1, caps=3, rng=rng).consistent()
    margins = {("answer",): 1}
    better = release_contingency(COUNTS, AXES, 1, caps=3, margins=margins, rng=rng).consistent()
    assert (better.worst_variances < plain.worst_variances).all()
    public = release_contingency([[2, 1, 0], [0, 3, 0]], AXES, 1, within=["region"], rng=rng)
    third = public.consistent().worst_variances
    np.testing.assert_allclose(third, plain.worst_variances * 2 / 3)


@pytest.mark.slow
def test_intervals_cover():
    """A binomial count of 400 draws is below 351 with probability 4e-9 if each has 95%."""
    rng = np.random.default_rng(5)
    asked = [{}, {"answer": "no"}, {"region": "s"}, {"region": "n", "answer": ["yes", "?"]}]
    true = [7, 3, 4, 3]
    covered, narrow = np.zeros(4), np.zeros(4)
    first = release_contingency(COUNTS, AXES, 1, caps=4, margins={(): 1}, rng=rng)
    for _ in range(400):
        drawn = first.cells.mechanisms[4].release(np.ravel(COUNTS), rng)
        cells = TableRelease(drawn, first.cells.sizes, first.cells.mechanisms)
        (margin,) = first.margins
        noisy = 7 + DiscreteLaplace(alpha=margin.alpha).draw(1, bit_source(rng)).reshape(())
        table = replace(first, cells=cells, margins=(replace(margin, released=noisy),)).consistent()
        for k, (where, value) in enumerate(zip(asked, true, strict=True)):
            found = table.estimate(where)
            low, high = found.interval(0.95)
            covered[k] += low <= value <= high
            narrow[k] += abs(found.value - value) <= found.standard_error
    assert (covered >= 351).all()
    # Intervals of one standard error are found out
    assert (narrow < 351).all()


@pytest.mark.slow
def test_whole_numbers_are_biased_as_they_say():
    """One cell of 0 .. 2 by itself: its bias, exactly, for the table that came out."""
    axes = Axes({"answer": ["yes"]})
    release = release_contingency(
        [1], axes, Privacy(alpha="1/2"), caps=2, rng=np.random.default_rng(4)
    )
    law = UnbiasedEstimate(release.cells.mechanisms[2])
    whole = release.whole(100, np.random.default_rng(6))
    count = int(whole.cells[0])
    assert count == min(max(round(law.values[release.cells.released[0]]), 0), 2)
    chances = [row[count] for row in release.cells.mechanisms[2].table]
    nearest = [min(max(round(value), 0), 2) for value in law.values]
    bias = float(sum(p * value for p, value in zip(chances, nearest, strict=True))) - count
    assert abs(whole.bias[0] - bias) < 5 * whole.standard_errors[0]
    assert abs(bias) > 5 * whole.standard_errors[0]
    assert "biased: whole numbers of at least 0; measured over 100 draws" in str(whole)
    assert "biased by" in repr(whole)


def test_the_statement_says_who_is_protected():
    margins = {("answer",): Privacy(alpha="2/3")}
    found = release_contingency(
        COUNTS, AXES, Privacy(alpha="1/2"), within=["region"], margins=margins
    )
    assert str(found.statement).splitlines() == [
        "protected       one person who changes to another cell of the same group (region)",
        "changed by one  two of the cells, two of the sums by answer",
        "loss            likelihoods change by a factor of at most 1/alpha,",
        "                alpha = (1/2)^2 * (2/3)^2 = 1/9, exactly;",
        "                epsilon at most 2.19722458, rounded up",
        "public          the number of people of each group",
        "randomness      of the operating system",
    ]
    rng = np.random.default_rng(1)
    total = {(): Privacy(alpha="1/3")}
    found = release_contingency(COUNTS, AXES, Privacy(alpha="1/2"), caps=2, margins=total, rng=rng)
    assert str(found).splitlines()[1:] == [
        "protected       one person more or less in the counts",
        "counted         counts above their caps are taken for these: a cap stands for that or more"
        " people",
        "changed by one  one of the cells, one total",
        "loss            likelihoods change by a factor of at most 1/alpha,",
        "                alpha = 1/2 * 1/3 = 1/6, exactly;",
        "                epsilon at most 1.79175947, rounded up",
        "public          the caps of cells",
        "randomness      SEEDED: reproducible, and therefore not private",
    ]
    alone = release_contingency(COUNTS, AXES, Privacy(alpha="1/2"), caps=2, rng=rng)
    assert "alpha = 1/2, exactly;" in str(alone)  # one factor is not repeated as their product


OPTIONS = [
    {"within": ["region"], "margins": {("answer",): "0.5"}},
    {"caps": [2, 3, 1], "margins": {(): 1, ("region",): "1/3"}},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_a_file_holds_all_that_was_released(options, tmp_path):
    path, rng = tmp_path / "table.json", np.random.default_rng(1)
    saved = release_contingency(COUNTS, AXES, 1, rng=rng, **options)
    saved.save(path)
    loaded = ContingencyRelease.load(path)
    assert loaded.released.tolist() == saved.released.tolist()
    assert loaded.axes == saved.axes
    assert str(loaded) == str(saved)
    assert loaded.consistent().cells.tolist() == saved.consistent().cells.tolist()
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def changed(path, change):
    """The file with something in it changed, and a digest to match."""
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps({**content, "digest": digest_of(content)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["axes"].pop(),
        lambda content: content["axes"].append(content["axes"][0]),
        lambda content: content.update(within=None),
        lambda content: content.update(within=["answer"]),
        lambda content: content.update(within=["region", "answer"]),
        lambda content: content.update(axes=3),
        lambda content: content["cells"].update(overlap=1),
        lambda content: content["cells"].update(sizes=[4, 4, 3, 3, 4, 4]),
        lambda content: content["cells"].update(released=[9] * 6),
        lambda content: content["cells"].pop("names"),
        lambda content: content.update(cells=None),
        lambda content: content["margins"][0].pop(),
        lambda content: content["margins"].append(content["margins"][0]),
        lambda content: content["margins"][0].__setitem__(0, ["region"]),
        lambda content: content["margins"][0].__setitem__(1, "3/2"),
        lambda content: content["margins"][0].__setitem__(1, 0.5),
        lambda content: content["margins"][0].__setitem__(2, [1, 2]),
        lambda content: content["margins"][0].__setitem__(2, [1, 2, 0.5]),
        lambda content: content["margins"][0].__setitem__(2, [1, 2, 1 << 70]),
    ],
)
def test_a_file_that_does_not_hold_together_is_refused(change, tmp_path):
    path = tmp_path / "table.json"
    release_contingency(COUNTS, AXES, 1, **OPTIONS[0]).save(path)
    changed(path, lambda content: None)
    ContingencyRelease.load(path)
    changed(path, change)
    with pytest.raises(InvalidFile):
        ContingencyRelease.load(path)


def test_a_file_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "table.json"
    release_contingency(COUNTS, AXES, 1, **OPTIONS[0]).save(path)
    path.write_text(path.read_text().replace('"north"', '"south"').replace('"n"', '"m"'))
    with pytest.raises(InvalidFile, match="digest"):
        ContingencyRelease.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"within": None}, "either within is given"),
        ({"caps": 3}, "either within is given"),
        ({"within": ["region", "answer"]}, "within names every axis"),
        ({"within": ["sex"]}, "axes are some of"),
        ({"within": None, "caps": [1, 2]}, "caps have the shape"),
        ({"counts": [[1, 2], [3, 4]]}, "counts have the shape"),
        ({"counts": [[1, 2, 3], [3, 4, -1]]}, r"counts\[1, 2\] = -1 is not a count of people"),
        ({"counts": [[1, 2, 3], [3, 4, 0.5]]}, r"counts\[1, 2\] = 0.5 is not"),
        ({"margins": {("region",): 1}}, "the sums by region are public"),
        ({"margins": {(): 1}}, "the sums by nothing are public"),
        ({"margins": {("answer", "region"): 1}}, "a family of margins keeps some axes"),
        ({"within": None, "caps": 3, "margins": {("sex",): 1}}, "axes are some of"),
    ],
)
def test_what_does_not_go_together_is_refused(change, message):
    options = {"counts": COUNTS, "axes": AXES, "privacy": 1, "within": ["region"]} | change
    with pytest.raises(InvalidTable, match=message):
        release_contingency(**options)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(InvalidCount):
        release_contingency(COUNTS, AXES, 1, caps=-1)
    for privacy in (0, Privacy(alpha="1/2", neighbours=[(0, 1)])):
        with pytest.raises(ValueError, match=r"above 0|differ by one"):
            release_contingency(COUNTS, AXES, 1, within=["region"], margins={("answer",): privacy})
    for neighbours in ("all", 2, [(0, 1)]):
        with pytest.raises(ValueError, match="differ by one"):
            release_contingency(
                COUNTS, AXES, Privacy(alpha="1/2", neighbours=neighbours), within=["region"]
            )
    with pytest.raises(ValueError, match="draws"):
        release_contingency(COUNTS, AXES, 1, within=["region"]).whole(1)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", ["9/10", "1/2"])
@pytest.mark.parametrize("counts", [[[5, 0], [0, 0]], [[4, 4], [4, 4]], [[1, 2], [0, 4]]])
@pytest.mark.parametrize("public", [True, False])
def test_intervals_cover_at_the_ends_of_ranges_and_between(alpha, counts, public):
    """A binomial count of 600 draws is below 540 with probability 2e-7 if each has 95%."""
    axes, rng = Axes({"a": ["1", "2"], "b": ["x", "y"]}), np.random.default_rng(3)
    options = {"within": ["a"]} if public else {"caps": 5}
    margins = {("b",): Privacy(alpha=alpha)}
    first = release_contingency(
        counts, axes, Privacy(alpha=alpha), margins=margins, rng=rng, **options
    )
    (margin,), true = first.margins, np.array(counts)
    asked = [{}, {"b": "x"}, {"a": "1"}, {"a": "1", "b": "x"}, {"a": "2", "b": "y"}]
    covered = np.zeros(len(asked))
    for _ in range(600):
        drawn = np.array(
            [
                first.cells.mechanisms[n].release([j], rng)[0]
                for n, j in zip(first.cells.sizes.tolist(), true.ravel(), strict=True)
            ]
        )
        overlap = first.cells.overlap
        cells = TableRelease(drawn, first.cells.sizes, first.cells.mechanisms, overlap)
        noisy = true.sum(axis=0) + DiscreteLaplace(alpha=margin.alpha).draw(2, bit_source(rng))
        table = replace(first, cells=cells, margins=[replace(margin, released=noisy)]).consistent()
        for k, where in enumerate(asked):
            low, high = table.estimate(where).interval(0.95)
            covered[k] += low <= true[axes.where(where)].sum() <= high
    assert (covered >= 540).all()

"""Posteriors of released histograms."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from frequency import Between
from frequency.exceptions import UnknownVariance
from frequency.postprocess import norm_sub
from frequency.schema import Boolean, Categorical, Numeric, Schema
from mechdesign import ZCDP, ApproximateDP, Privacy
from rangeq.central import (
    CentralFlat,
    CentralMechanism,
    Hierarchy,
    MarginalStrategy,
    MatrixMechanism,
    NoPosterior,
    Release,
    UnanswerableQuery,
    Wavelet,
    best_branching,
    posterior,
    posterior_optimal,
    released_noise,
    workload_optimal,
)
from rangeq.central.matrix_mechanism import posterior_design
from rangeq.central.matrix_mechanism.posterior_design import (
    _left_open,
    histogram_for_posterior,
)
from rangeq.central.matrix_mechanism.workload import QuerySet
from rangeq.central.released_noise import ReleasedNoise
from rangeq.core import KERNELS, posterior_densities
from tests.rangeq.central.matrix_mechanism.strategies import EXAMPLES

CELLS = 32
EVEN = np.full(CELLS, 30)


@pytest.fixture(scope="module")
def design():
    return workload_optimal("ranges", CELLS, Privacy.from_epsilon("0.5"))


def test_it_is_a_distribution_of_the_users_that_were_estimated(design):
    estimate = design.release(EVEN, np.random.default_rng(1))
    posterior = estimate.posterior()
    assert posterior.counts.shape == (CELLS,)
    assert posterior.counts.min() > 0
    assert posterior.n == pytest.approx(estimate.n)
    assert not posterior.counts.flags.writeable
    low, high = posterior.interval()
    assert (low >= 0).all()
    assert (low <= posterior.counts).all()
    assert (posterior.counts <= high).all()
    assert posterior.range(3, 9) == pytest.approx(posterior.counts[3:10].sum())
    assert 0 < posterior.quantile(0.5) < CELLS - 1
    first, last = posterior.quantile_interval(0.5)
    assert first <= posterior.quantile(0.5) <= last
    rows = np.bincount(posterior.sample(1000, np.random.default_rng(1)), minlength=CELLS)
    assert np.abs(rows - 1000 / posterior.n * posterior.counts).max() < 2


def test_only_what_was_released_is_looked_at(design):
    noisy = design.mechanism.noisy_numbers(EVEN, np.random.default_rng(1))
    first, second = (design.mechanism.estimate(noisy.copy()).posterior() for _ in range(2))
    assert first.counts == pytest.approx(second.counts, rel=1e-6)


BUMP = np.round(400 * np.exp(-(((np.arange(CELLS) - 12) / 5.0) ** 2) / 2) + 3).astype(int)


@pytest.mark.parametrize(("truth", "most"), [(20 * EVEN, 0.8), (BUMP, 0.95)])
def test_it_errs_less_where_noise_is_large_and_its_intervals_hold(truth, most):
    design = workload_optimal("ranges", CELLS, Privacy.from_epsilon("0.1"))
    first, last = np.triu_indices(CELLS)
    prefix = np.concatenate([[0], np.cumsum(truth)])
    exactly = prefix[last + 1] - prefix[first]
    errors, own, held, widths = 0.0, 0.0, [], []
    for seed in range(10):
        estimate = design.release(truth, np.random.default_rng(seed))
        posterior = estimate.posterior()
        ask = Between(first, last)
        answer, unbiased = posterior.answer(ask), estimate.answer(ask)
        errors += float(np.mean((answer.value - exactly) ** 2))
        own += float(np.mean((unbiased.value - exactly) ** 2))
        low, high = answer.interval(on_average=True)
        held.append(float(np.mean((low <= exactly) & (exactly <= high))))
        other = unbiased.interval()
        wide = answer.interval()  # which hold for each range, as the unbiased ones do
        assert (wide.low <= other.low.clip(0)).all()
        assert (wide.high >= other.high).all()
        assert ((wide.low <= answer.value) & (answer.value <= wide.high)).all()
        widths.append(float(np.median((high - low) / (other.high - other.low))))
    assert errors < most * own
    assert np.mean(held) > 0.85
    assert np.mean(widths) < 0.97


def test_steps_err_less_than_by_smooth_functions_alone(monkeypatch):
    cells, users, first, last = 128, 100_000, *np.triu_indices(128)
    truth = np.random.default_rng(4).multinomial(
        users, np.repeat([0.02, 0.48, 0.02, 0.48], 32) / 32
    )
    mechanism = posterior_optimal(cells, Privacy.from_epsilon("0.1"), users)
    prefix = np.concatenate([[0], np.cumsum(truth)])
    exactly = prefix[last + 1] - prefix[first]
    released = [mechanism.release(truth, np.random.default_rng(seed)) for seed in range(4)]

    def answers():
        return [estimate.posterior().answer(Between(first, last)) for estimate in released]

    def error_of(answers):
        return np.mean([(answer.value - exactly) ** 2 for answer in answers]) ** 0.5

    found = answers()
    monkeypatch.setattr(posterior, "WITH_STEPS", KERNELS)
    assert error_of(found) < 0.9 * error_of(answers())
    intervals = [answer.interval(on_average=True) for answer in found]
    assert np.mean([(low <= exactly) & (exactly <= high) for low, high in intervals]) > 0.9


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(s, id=n)
        for n, s in EXAMPLES.items()
        if s.full_rank and len(s.sizes) == 1 and s.noise is None
    ],
)
def test_with_little_noise_it_is_what_was_released(strategy):
    """Whatever the strategy: its numbers are the data."""
    mechanism = MatrixMechanism(strategy, ZCDP(50))
    truth = np.random.default_rng(2).integers(500, 5000, strategy.sizes)
    estimate = mechanism.release(truth, np.random.default_rng(3))
    posterior = estimate.posterior()
    deviations = np.sqrt(estimate.variances)
    assert (np.abs(posterior.counts - estimate.counts) < 1 + deviations).all()


def released(kind, sizes, seed=0):
    counts = np.random.default_rng(seed).integers(0, 50, sizes)
    kinds: dict[str, Callable[..., CentralMechanism]] = {
        "flat": CentralFlat,
        "tree": partial(Hierarchy, branching=3),
        "wavelet": Wavelet,
    }
    return kinds[kind](sizes, epsilon=1).release(counts, np.random.default_rng(seed))


def of_strategy(name, seed=0):
    strategy = EXAMPLES[name]
    counts = np.random.default_rng(seed).integers(0, 50, strategy.sizes)
    return MatrixMechanism(strategy, ZCDP(1)).release(counts, np.random.default_rng(seed))


@pytest.mark.parametrize(
    "estimate",
    [
        *(released(kind, sizes) for kind in ("flat", "tree", "wavelet") for sizes in (9, (4, 5))),
        *(of_strategy(name) for name, s in EXAMPLES.items() if s.full_rank and s.noise is None),
    ],
    ids=repr,
)
def test_the_likelihood_is_that_of_the_covariances_written_out(estimate):
    """Of every mechanism: moments of its answers, from variances of single queries alone."""
    sizes, errors = estimate.mechanism.sizes, estimate.mechanism.errors
    users = 500.0
    noise = ReleasedNoise(estimate, users, [0] * len(estimate.mechanism.sizes))
    for place, size in enumerate(sizes):
        told = noise.alone(place)
        # Of noise and of drawing the users, without what both say of the total
        counts = estimate.counts.sum(axis=others(sizes, place))
        rough = (norm_sub(counts / users) + 1 / size) / 2
        drawing = users * (np.diag(rough) - np.outer(rough, rough))
        for weights in np.random.default_rng(1).normal(size=(4, size)):
            without = weights - weights @ rough
            product = [np.ones(n) for n in sizes]
            product[place] = without
            expected = errors.variance_of(product) + without @ drawing @ without
            centred = weights - weights.mean()
            found = centred @ np.linalg.inv(told.precision) @ centred * users**2
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert told.scores == pytest.approx(told.precision @ (counts / users))


def others(sizes, *places):
    return tuple(i for i in range(len(sizes)) if i not in places)


def test_a_tree_without_inference_has_the_posterior_of_the_same_numbers_with_it():
    plain = Hierarchy(9, epsilon=1, branching=2, inference=False)
    noisy = plain.noisy_levels(np.arange(9) * 9, np.random.default_rng(1))
    consistent = Hierarchy(9, epsilon=1, branching=2).estimate(noisy).posterior()
    assert plain.estimate(noisy).posterior().counts == pytest.approx(consistent.counts)


@pytest.mark.parametrize(
    "strategy",
    [
        pytest.param(MarginalStrategy((3, 4, 2), [(0, 1), (1, 2), (0, 2)], [3, 1, 2]), id="pairs"),
        EXAMPLES["residuals"],
        EXAMPLES["residuals by matrices"],
        EXAMPLES["product"],
    ],
    ids=repr,
)
def test_pairs_have_the_covariance_of_the_product_of_their_contrasts(strategy):
    mechanism = MatrixMechanism(strategy, ZCDP(1))
    counts = np.random.default_rng(5).integers(0, 50, strategy.sizes)
    estimate, users = mechanism.release(counts, np.random.default_rng(6)), 700.0
    noise = ReleasedNoise(estimate, users, [0] * len(estimate.mechanism.sizes))
    (pair, *_) = noise.pairs()
    j, k = pair.key
    left, right = (np.linalg.pinv(noise.grams[i], rcond=1e-9, hermitian=True) for i in (j, k))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        u, v = (rng.normal(size=strategy.sizes[place]) for place in (j, k))
        product = [np.ones(n) for n in strategy.sizes]
        product[j], product[k] = u - u.mean(), v - v.mean()
        expected = mechanism.errors.variance_of(product)
        # Less what drawing the users adds, in the same proportions
        parts = [(1 - 1 / len(side)) / np.trace(side) for side in (left, right)]
        variance = users**2 / pair.precision - users * np.prod(parts)
        found = variance * (u @ left @ u) * (v @ right @ v)
        assert found == pytest.approx(expected, rel=1e-6)


def test_a_table_of_several_attributes_errs_less_than_its_unbiased_answers():
    sizes, users = (6, 5, 4), 2000
    rng = np.random.default_rng(7)
    age = rng.integers(0, 6, users)
    income = np.clip(age + rng.integers(-1, 2, users), 0, 4)
    records = np.stack([age, income, rng.integers(0, 4, users)])
    truth = np.zeros(sizes, dtype=int)
    np.add.at(truth, tuple(records), 1)
    mechanism = posterior_optimal(sizes, ApproximateDP("0.3", "1e-6"), users)
    errors = np.zeros(2)
    for seed in range(5):
        estimate = mechanism.release(truth, np.random.default_rng(seed))
        posterior = estimate.posterior()
        assert posterior.n == estimate.n
        for j, k in ((0, 1), (0, 2), (1, 2)):
            cells = np.indices((sizes[j], sizes[k])).reshape(2, -1)
            exactly = truth.sum(axis=3 - j - k).ravel()
            where = {j: cells[0], k: cells[1]}
            for each, asked in enumerate((estimate, posterior)):
                errors[each] += float(((asked.answer(where).value - exactly) ** 2).mean())
    assert errors[1] < 0.5 * errors[0]
    answer = posterior.answer({0: [1, 3], 1: Between(0, 2), 2: 1})
    low, high = answer.interval(on_average=True)
    assert 0 <= low <= answer.value <= high
    assert posterior.counts.min() >= 0
    assert posterior.counts.sum() == pytest.approx(posterior.n, rel=0.01)
    assert posterior.sample(100, rng).shape == (100, 3)
    assert [rows.shape for rows in posterior.samples(50, 2, rng)] == [(50, 3)] * 2
    assert posterior.weighted([np.ones(6), np.ones(5), np.arange(4) > 1]) == pytest.approx(
        posterior.answer({2: [2, 3]}).value
    )


def test_pairs_that_were_not_released_are_as_the_others_imply():
    strategy = MarginalStrategy((4, 4, 3), [(0, 1), (1, 2)], [1, 1])
    rng = np.random.default_rng(8)
    middle = rng.integers(0, 4, 30_000)
    truth = np.zeros((4, 4, 3), dtype=int)
    np.add.at(truth, (middle, middle, np.minimum(middle, 2)), 1)
    estimate = MatrixMechanism(strategy, ZCDP(5)).release(truth, rng)
    posterior = estimate.posterior()
    expected = truth[1, :, 1].sum()
    with pytest.raises(UnanswerableQuery):
        estimate.answer({0: 1, 2: 1})
    assert posterior.answer({0: 1, 2: 1}).value == pytest.approx(expected, rel=0.1)
    with pytest.raises(UnknownVariance):
        posterior.answer({0: 1, 2: 1}).variance  # noqa: B018


def test_labels_without_an_order_and_items_without_neighbours_are_taken_as_such():
    schema = Schema(
        [
            Numeric("age", low=0, high=9, whole=True, missing="item"),
            Categorical("town", list("abcde")),
        ]
    )
    truth = np.random.default_rng(9).integers(0, 200, schema.sizes)
    mechanism = posterior_optimal(schema.sizes, ApproximateDP(1, "1e-6"), truth.sum())
    release = Release.draw(schema, mechanism, truth, np.random.default_rng(10))
    fitted = release.estimate.fitted()
    assert fitted.estimate.shares.categorical == (False, True)
    answer = fitted.answer({"town": ["a", "c"], "age": Between(3, 7)})
    assert answer.value == pytest.approx(truth[3:8, [0, 2]].sum(), rel=0.2)
    assert fitted.answer({"age": "missing"}).value == pytest.approx(truth[-1].sum(), rel=0.2)
    assert set(fitted.sample(50)) == {"age", "town"}


@pytest.mark.parametrize("workload", ["marginals", "cells"])
def test_rows_agree_with_the_answers_of_their_release(workload):
    """Of a table with few people in most cells, where clipped noise would put thousands."""
    rng = np.random.default_rng(12)
    town = rng.choice(5, 4000, p=[0.55, 0.3, 0.15, 0.0, 0.0])
    age = np.clip(rng.normal(20 + 10 * town, 6), 0, 59).astype(int)
    ill = rng.random(4000) < age / 100
    schema = Schema(
        [
            Categorical("town", ["Nord", "Sued", "West", "Ost", "none"]),
            Numeric("age", low=0, high=59, whole=True),
            Boolean("ill"),
        ]
    )
    truth = np.zeros(schema.sizes, dtype=int)
    np.add.at(truth, (town, age, ill.astype(int)), 1)
    mechanism = workload_optimal(workload, schema.sizes, ZCDP("1/8"), cache=False).mechanism
    held, errors = [], np.zeros(2)
    for seed in range(4):
        release = Release.draw(schema, mechanism, truth, np.random.default_rng(seed))
        estimate = release.estimate
        number = round(estimate.n)
        rows = estimate.sample(number, np.random.default_rng(seed))
        items = dict(zip(schema.names, schema.encode(rows).columns, strict=True))
        for names in (["town"], ["ill"], ["town", "ill"], ["age", "ill"], ["age", "town"]):
            answer = estimate.cells(names)
            found = np.zeros(answer.value.shape)
            np.add.at(found, tuple(items[name] for name in names), 1)
            low, high = answer.interval(on_average=True)
            held.append(((low <= found) & (found <= high)).mean())
            axes = tuple(i for i, name in enumerate(schema.names) if name not in names)
            exactly = truth.sum(axis=axes)
            if names == ["age", "town"]:
                exactly = exactly.T
            errors += [((each - exactly) ** 2).mean() for each in (answer.value, found)]
        tables = estimate.samples(number, 2, np.random.default_rng(seed))
        assert [len(one["age"]) for one in tables] == [number] * 2
    assert np.mean(held) > 0.93
    assert errors[1] < 1.05**2 * errors[0]


def test_rows_of_what_has_no_posterior_are_rounded_answers():
    schema = Schema([Numeric("euros", low=0, high=4999, whole=True)])
    truth = np.zeros(5000, dtype=int)
    truth[1000:1100] = 50
    release = Release.draw(schema, CentralFlat(5000, 1), truth, np.random.default_rng(1))
    rows = release.estimate.sample(5000, np.random.default_rng(2))["euros"]
    assert abs(np.mean((rows >= 1000) & (rows < 1100)) - 1) < 0.5
    nobody = Release.draw(schema, CentralFlat(5000, 1), 0 * truth, np.random.default_rng(3))
    if nobody.estimate.n <= 0:
        with pytest.raises(ValueError, match="there are no rows"):
            nobody.estimate.sample(10)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((4, 4), ZCDP(1), 0), "users must be"),
        (((4, 4), ZCDP(1), float("nan")), "users must be"),
        (((4, 1), ZCDP(1), 9), "no pairs"),
        ((1, ZCDP(1), 9), "2 to 4096 cells"),
        ((4097, ZCDP(1), 9), "2 to 4096 cells"),
    ],
)
def test_what_cannot_be_designed_is_said(arguments, said):
    with pytest.raises(ValueError, match=said):
        posterior_optimal(*arguments)
    with pytest.raises(TypeError, match="a promise is"):
        posterior_optimal((4, 4), 1.0, 9)


@pytest.mark.parametrize("promise", [Privacy.from_epsilon(1), ZCDP("1/2")])
def test_little_noise_is_shared_out_as_for_unbiased_answers_and_much_for_singles(promise):
    sizes = (8, 8, 8)
    many, few = (posterior_optimal(sizes, promise, users) for users in (10**7, 100))
    assert many.audit().holds
    assert few.audit().holds
    least = workload_optimal("2-way marginals", sizes, promise, cache=False)
    assert many.workload_variance("2-way marginals") < 1.3 * least.variance
    singles = [["cells", "total", "total"]]
    assert all(few.workload_variance(s) < many.workload_variance(s) for s in singles)


@pytest.mark.parametrize("promise", [Privacy.from_epsilon("0.1"), ZCDP("1/200")])
def test_a_histogram_for_the_posterior_errs_less_where_few_numbers_tell_anything(promise):
    cells, users = 32, 500
    suited = posterior_optimal(cells, promise, users)
    assert suited.audit().holds
    assert suited.strategy.full_rank
    least = workload_optimal("ranges", cells, promise).mechanism
    assert suited.workload_variance("total") < 0.8 * least.workload_variance("total")
    truth = np.bincount(np.minimum(np.arange(users) // 25, cells - 1), minlength=cells)
    first, last = np.triu_indices(cells)
    prefix = np.concatenate([[0], np.cumsum(truth)])
    exactly = prefix[last + 1] - prefix[first]
    errors = np.zeros(2)
    for seed in range(12):
        for each, mechanism in enumerate((suited, least)):
            posterior = mechanism.release(truth, np.random.default_rng(seed)).posterior()
            answer = posterior.answer(Between(first, last))
            errors[each] += float(np.mean((answer.value - exactly) ** 2))
    assert errors[0] < 0.9 * errors[1]


@pytest.fixture
def grouped(monkeypatch):
    """Attributes of more than 264 cells are measured in so many groups."""
    for module in (released_noise, posterior_design):
        monkeypatch.setattr(module, "LARGEST", 264)


@pytest.mark.parametrize("promise", [Privacy.from_epsilon(1), ZCDP("1/2")])
@pytest.mark.parametrize("cells", [300, 1056])
def test_groups_of_many_cells_and_these_are_one_release(grouped, promise, cells, tmp_path):
    users = 1000
    mechanism = posterior_optimal(cells, promise, users)
    assert mechanism.audit().holds
    schema = Schema([Numeric("euros", low=0, high=cells - 1, whole=True)])
    truth = np.random.default_rng(1).multinomial(users, np.full(cells, 1 / cells))
    release = Release.draw(schema, mechanism, truth, np.random.default_rng(2))
    release.save(tmp_path / "a.release")
    found = Release.load(tmp_path / "a.release").estimate
    assert found.answer(Between(3, 99)).value == release.estimate.answer(Between(3, 99)).value
    first, second = (each.fitted().answer(Between(3, 99)) for each in (found, release.estimate))
    assert first.value == pytest.approx(second.value)
    assert abs(first.value - truth[3:100].sum()) < 5 * first.variance**0.5


def test_groups_err_less_than_a_tree_and_spikes_within_them_are_seen(grouped):
    cells, users = 1056, 2000
    tree = Hierarchy(cells, 1, best_branching(cells, 1).best.fanouts)
    suited = posterior_optimal(cells, Privacy.from_epsilon(1), users)
    truth = np.random.default_rng(4).multinomial(users - 800, np.full(cells, 1 / cells))
    truth[501] += 800
    first, last = np.triu_indices(cells)
    prefix = np.concatenate([[0], np.cumsum(truth)])
    exactly, errors = prefix[last + 1] - prefix[first], np.zeros(2)
    for seed in range(3):
        for each, mechanism in enumerate((suited, tree)):
            posterior = mechanism.release(truth, np.random.default_rng(seed)).posterior()
            errors[each] += np.mean((posterior.range(first, last) - exactly) ** 2)
            if mechanism is suited:
                assert posterior.counts[501] > 700
    assert errors[0] < 0.8 * errors[1]


def test_single_cells_have_more_of_the_budget_the_more_users_there_are(grouped):
    strategies = [posterior_optimal(1056, ZCDP(1), users).strategy for users in (500, 10**7)]
    few, many = (int(s.arrays()["weight"][0, 0]) ** 2 / s.l2_squared for s in strategies)
    assert few == pytest.approx(0.1, rel=0.01)
    assert many > 0.2


def test_with_many_users_it_is_nearly_the_design_of_least_variance():
    promise = ZCDP(1)
    suited = posterior_optimal(16, promise, 10**9)
    least = workload_optimal("ranges", 16, promise, cache=False)
    assert suited.workload_variance("ranges") < 1.05 * least.variance


def test_the_budget_of_a_histogram_is_where_the_risk_is_least():
    """Beside designs with a little more, or less, for each direction of the prior."""
    cells, users, unit = 12, 300.0, 400.0
    queries = histogram_for_posterior(cells, unit, users)
    assert np.linalg.matrix_rank(queries) == cells
    ranges = QuerySet("ranges", cells).gram
    x = 2 * (np.arange(cells) + 0.5) / cells - 1
    smooth = np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2) + np.outer(x, x)
    centring = np.eye(cells) - 1 / cells
    prior = (users / cells) ** 2 * (centring @ (smooth + np.eye(cells)) @ centring + 0.25)

    def risk(gram):
        # In proportion to the root of the queries' weights, which unbiased designs have
        gram = gram * cells / unit / np.trace(gram)
        return float(np.trace(ranges @ np.linalg.inv(np.linalg.inv(prior) + gram)))

    found, _ = _left_open(ranges, prior, unit)
    root = np.linalg.cholesky(prior)
    _, turns = np.linalg.eigh(root.T @ ranges @ root)
    back = np.linalg.solve(root.T, turns)
    costs = (back**2).mean(axis=0)
    told = np.sqrt(np.maximum(np.diag(turns.T @ root.T @ found @ root @ turns), 0.0) / costs)
    best = risk((back * told) @ back.T)
    for place in range(cells):
        for factor in (0.8, 1.25):
            other = told.copy()
            other[place] = other[place] * factor + (0.01 if told[place] == 0 else 0.0)
            assert risk((back * other) @ back.T) >= best * (1 - 1e-9)


@pytest.fixture
def coarse(monkeypatch):
    """Attributes of more than 11 cells have 11 of the model."""
    monkeypatch.setattr(released_noise, "LARGEST", 11)


WIDE = np.random.default_rng(13).poisson(300 * np.exp(-(((np.arange(44) - 15) / 8.0) ** 2) / 2))


@pytest.mark.parametrize("epsilon", [0.1, 1, 20])
def test_cells_within_those_of_the_model_have_what_is_told_of_them(coarse, epsilon):
    tree = Hierarchy(44, epsilon, branching=3)
    first, last = np.triu_indices(44)
    prefix = np.concatenate([[0], np.cumsum(WIDE)])
    exactly, errors, held, own = prefix[last + 1] - prefix[first], [], [], []
    for seed in range(10):
        estimate = tree.release(WIDE, np.random.default_rng(seed))
        posterior = estimate.posterior()
        answer = posterior.answer(Between(first, last))
        low, high = answer.interval(on_average=True)
        held.append(np.mean((low <= exactly) & (exactly <= high)))
        errors.append(np.mean((answer.value - exactly) ** 2))
        own.append(np.mean((estimate.answer(Between(first, last)).value - exactly) ** 2))
        assert posterior.counts.min() >= 0
        assert posterior.counts.sum() == pytest.approx(posterior.n)
        # Sums of cells are those of the model, and a list of them has a variance, too
        whole = posterior.answer([0, 1, 2, 3, 4])
        assert whole.variance == pytest.approx(posterior.answer(Between(0, 4)).variance, rel=1e-6)
    assert np.mean(held) > 0.82  # those of a release go together
    assert np.mean(errors) < 1.05 * np.mean(own)


def test_many_cells_are_nearly_as_if_the_model_had_them_all(monkeypatch):
    tree = Hierarchy(44, 0.3, branching=3)
    estimate = tree.release(WIDE, np.random.default_rng(3))
    full = estimate.posterior()
    monkeypatch.setattr(released_noise, "LARGEST", 22)
    few = estimate.posterior()
    deviations = np.sqrt(full.answer(Between(np.zeros(44, int), np.arange(44))).variance)
    assert (np.abs(few.prefix(np.arange(44)) - full.prefix(np.arange(44))) < deviations).all()


def test_pairs_of_wide_attributes_are_asked_in_all_cells(coarse):
    sizes = (20, 5)
    truth = np.random.default_rng(14).poisson(20, sizes)
    mechanism = posterior_optimal(sizes, ApproximateDP(2, "1e-6"), 2000)
    posterior = mechanism.release(truth, np.random.default_rng(15)).posterior()
    answer = posterior.answer({0: Between(3, 11), 1: 2})
    assert abs(answer.value - truth[3:12, 2].sum()) < 5 * answer.variance**0.5
    assert posterior.counts.shape == sizes


def test_what_has_no_posterior_is_said(design):
    wide = CentralFlat(5000, 1).release(np.ones(5000, dtype=int))
    with pytest.raises(NoPosterior, match="at most 4096 cells"):
        wide.posterior()
    names = Schema([Categorical("town", [f"t{i}" for i in range(600)])])
    with pytest.raises(NoPosterior, match="at most 512 categories"):
        CentralFlat(600, 1).release(np.ones(600, dtype=int)).posterior(names)
    nobody = design.mechanism.estimate(np.full(design.mechanism.strategy.rows, -5))
    with pytest.raises(NoPosterior, match="noise hides that there are any"):
        nobody.posterior()


def test_the_table_that_was_counted_lies_between_its_population_and_the_noisy_one():
    """Of normal draws and normal noise, as the conditional distribution of both together."""
    rng = np.random.default_rng(11)
    truth = rng.multinomial(4000, np.full(12, 1 / 12))
    mechanism = workload_optimal("cells", 12, ZCDP("1/200"))
    estimate = mechanism.release(truth, rng)
    posterior, users = estimate.posterior(), estimate.n
    noise = ReleasedNoise(estimate, users, [0] * len(estimate.mechanism.sizes))
    told = noise.alone(0)
    (density,) = posterior_densities([told], KERNELS)
    expected = users * density.frequencies
    drawing = users * (np.diag(density.frequencies) - np.outer(*[density.frequencies] * 2))
    covariance = np.eye(12) * float(estimate.variances[0])
    joint = np.block([[drawing, drawing], [drawing, drawing + covariance]])
    gain = joint[:12, 12:] @ np.linalg.inv(joint[12:, 12:])
    mean = expected + gain @ (estimate.counts - expected)
    assert posterior.counts == pytest.approx(mean, rel=1e-6)
    # Of the noise, of the draw, and of what is not known of the population
    rest = np.eye(12) - gain
    heard = gain + rest @ np.outer(density.frequencies, np.ones(12))
    given = heard @ covariance @ heard.T
    given += rest @ (drawing + users**2 * density.covariance) @ rest.T
    assert posterior.variances == pytest.approx(np.diag(given), rel=1e-6)
    # The total is as it was measured
    everybody = posterior.answer(Between(0, 11))
    assert everybody.value == pytest.approx(users)
    assert everybody.variance == pytest.approx(estimate.answer(Between(0, 11)).variance, rel=1e-6)


@pytest.mark.parametrize(("users", "epsilon"), [(2000, "0.5"), (50_000, "2")])
def test_intervals_of_independent_attributes_hold_though_their_table_is_a_draw(users, epsilon):
    """The model knows them for independent; what a table holds by chance is not in it."""
    rng = np.random.default_rng(12)
    truth = rng.multinomial(users, np.full(64, 1 / 64)).reshape(8, 8)
    mechanism = posterior_optimal((8, 8), ApproximateDP(epsilon, "1e-6"), users)
    cells, held, errors = np.indices((8, 8)).reshape(2, -1), [], []
    for seed in range(10):
        posterior = mechanism.release(truth, np.random.default_rng(seed)).posterior()
        answer = posterior.answer({0: cells[0], 1: cells[1]})
        low, high = answer.interval(on_average=True)
        held.append(np.mean((low <= truth.ravel()) & (truth.ravel() <= high)))
        errors.append(np.mean((answer.value - truth.ravel()) ** 2 / answer.variance))
    assert 0.9 < np.mean(held) < 0.995
    assert 0.5 < np.mean(errors) < 1.5

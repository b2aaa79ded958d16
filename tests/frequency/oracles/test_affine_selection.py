"""Affine selection keeps the contract of oracles."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from frequency import AffineSelection, SubsetSelection
from frequency.oracles.affine_selection import BlockDesign
from frequency.storage import load_protocol, save_protocol
from tests.contracts.oracle import OracleContract, Twin, reports_of, uniform_words, weights_of
from tests.frequency.oracles.huge_counts import huge
from tests.frequency.oracles.slow_field import SlowField
from tests.tape import WORD


def of_design(q, t, size, domain, epsilon=1.0):
    return AffineSelection(domain, epsilon, blocks=(q, t, size))


def slow_blocks(oracle):
    """The points of every block, from the definition: hash functions in their order, then y."""
    q, t, size = (oracle.parameters[name] for name in ("field", "dimension", "accepted"))
    field = SlowField(q)

    def leading(a):
        while a >= q:
            a //= q
        return a

    directions = [a for a in range(1, q**t) if leading(a) == 1]
    factors = [1] if size == 1 else range(1, (q - 1) // 2 + 1)
    blocks = []
    for a in directions:
        hashes = [field.dot(a, x, t) for x in range(q**t)]
        for c in factors:
            for y in range(q):
                accepted = {field.add(y, told) for told in range(size)}
                blocks.append([x for x in range(q**t) if field.multiply(c, hashes[x]) in accepted])
    return blocks


class TestAffineSelection(OracleContract):
    """A uniform function, and a value with the own item's hash in its window more often."""

    make = staticmethod(AffineSelection)

    def fits(self, domain, epsilon):
        return epsilon <= 3

    def twin(self, oracle):
        (inside,) = weights_of(oracle, "inside")
        blocks = slow_blocks(oracle)
        v, k = oracle.design.points, oracle.design.block
        assert {len(block) for block in blocks} == {k}
        near = Fraction(inside, WORD) / (Fraction(len(blocks) * k, v))
        far = (1 - Fraction(inside, WORD)) / (Fraction(len(blocks) * (v - k), v))
        table = [[near if x in block else far for x in range(oracle.domain)] for block in blocks]
        rows = [divmod(r, oracle.design.q) for r in range(len(blocks))]
        return Twin(reports_of(oracle, rows), table)

    def tapes(self, oracle):
        (inside,) = weights_of(oracle, "inside")
        q, blocks = oracle.design.q, slow_blocks(oracle)
        for v in {0, oracle.domain - 1}:
            for function in {0, oracle.functions - 1}:
                for draw in (
                    uniform_words(function, oracle.functions) if oracle.functions > 1 else ()
                ):
                    for word, on in ((inside - 1, True), (inside, False)):
                        yield (
                            v,
                            [draw, word],
                            lambda report, v=v, f=function, on=on: (
                                report["function"] == f
                                and (v in blocks[f * q + int(report["value"])]) is on
                            ),
                        )


class TestSeveralAcceptedValues(TestAffineSelection):
    """Designs that few items and a moderate epsilon do not have, by the class's own choice."""

    make = staticmethod(partial(AffineSelection, blocks=(5, 2, 2)))
    domains: tuple[int, ...] = (2, 5, 20)
    big_domains: tuple[int, ...] = (20,)
    simulations = 40_000  # there are many pairs of reports


class TestProgressions(TestSeveralAcceptedValues):
    """Arithmetic progressions of four of eleven items."""

    make = staticmethod(partial(AffineSelection, blocks=(11, 1, 4)))
    domains = (2, 3, 5, 11)
    big_domains = ()


@pytest.mark.parametrize(
    "design", [(4, 2, 1), (9, 1, 1), (3, 3, 1), (7, 2, 3), (5, 2, 2), (11, 1, 4), (13, 1, 6)]
)
def test_pairs_of_points_are_in_equally_many_blocks(design: tuple[int, int, int]) -> None:
    oracle = of_design(*design, domain=2)
    blocks, v, k = slow_blocks(oracle), oracle.design.points, oracle.design.block
    assert len(blocks) == oracle.design.blocks == len({frozenset(block) for block in blocks})
    on = np.zeros((len(blocks), v), dtype=np.int64)
    for row, block in zip(on, blocks, strict=True):
        row[block] = 1
    together = on.T @ on
    assert (np.diag(together) * v == len(blocks) * k).all()
    off = together[~np.eye(v, dtype=bool)]
    assert (off * v * (v - 1) == len(blocks) * k * (k - 1)).all()
    for items in ([0], [0, 1], [v - 1, 0, v // 2]):
        likely = Fraction(int(on[:, items].all(axis=1).sum()), len(blocks))
        assert oracle._likely_together(np.array(items)) == likely


@pytest.mark.parametrize("design", [(4, 2, 1), (7, 2, 3), (11, 1, 4), (31, 1, 9), (257, 2, 1)])
@pytest.mark.parametrize("users", [3, 20_000])
def test_the_server_counts_as_all_users_and_items_do(
    design: tuple[int, int, int], users: int
) -> None:
    """Few reports and many are counted in two ways: both are the definition's counts."""
    q, t, _ = design
    oracle = of_design(*design, domain=min(q**t, 300))
    items = np.random.default_rng(3).integers(0, oracle.domain, users)
    reports = oracle.privatize(items, np.random.default_rng(4))
    aggregate = oracle.aggregate(reports)
    assert oracle.require_own(aggregate) is aggregate
    expected = np.array(
        [oracle.likelihood(reports, np.full(users, x)).sum() for x in range(oracle.domain)]
    )
    assert (oracle._supporters(aggregate.counts) == expected).all()
    direct = np.bincount(oracle.cells_of(reports).ravel(), minlength=aggregate.counts.size)
    assert (aggregate.counts.ravel() == direct).all()


@pytest.mark.parametrize("n", [2**39 + 1, 2**53 + 1, 2**61 + 12345])
@pytest.mark.parametrize("design", [(2, 3, 1), (3, 2, 1), (4, 2, 1), (5, 2, 2)])
def test_estimates_from_huge_counts_are_those_of_exact_integers(
    design: tuple[int, int, int], n: int
) -> None:
    q, t, _ = design
    oracle = of_design(*design, domain=q**t)
    field = SlowField(q)
    directions = [q**j + low for j in range(t) for low in range(q**j)]
    for flat in huge(len(directions) * q, n, np.random.default_rng(8)):
        counts = np.asarray(flat).reshape(len(directions), q)
        on = [
            sum(int(row[field.dot(a, x, t)]) for a, row in zip(directions, counts, strict=True))
            for x in range(q**t)
        ]
        assert oracle._supporters(counts).tolist() == on


GRID = [0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.8, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 6.5, 7, 8, 9, 10]


@pytest.mark.parametrize("domain", [4, 64, 1024, 65_536, 1 << 20])
def test_the_variance_is_that_of_subset_selection_at_every_epsilon(domain: int) -> None:
    for epsilon in GRID:
        oracle = AffineSelection(domain, epsilon)
        e = math.exp(epsilon)
        # The best sets have about domain / (e + 1) items: fewer where that is few
        sizes = {
            max(1, math.floor(domain / (e + 1) * part) + more)
            for part in (0.6, 0.8, 0.9, 1)
            for more in (0, 1)
        }
        least = min(subset_variance(domain, size, e) for size in sizes)
        assert least * (1 - 1e-6) <= oracle.variance(1) <= 1.02 * least, (epsilon, oracle.design)


def subset_variance(domain: int, size: int, e: float) -> float:
    p = e * size / (e * size + domain - size)
    q = (size - p) / (domain - 1)
    return q * (1 - q) / (p - q) ** 2


def test_the_formula_of_subsets_is_that_of_the_oracle() -> None:
    for domain, epsilon in ((4, 1.0), (64, 3.0), (1024, 0.1)):
        oracle = SubsetSelection(domain, epsilon)
        found = subset_variance(domain, oracle.size, math.exp(epsilon))
        assert oracle.variance(1) == pytest.approx(found, rel=1e-6)


def test_sums_of_many_blocks_have_the_mean_variance_over_numberings() -> None:
    """The formula for large designs against all numberings' mean, by the listed blocks."""
    oracle, rng = of_design(7, 1, 3, domain=7), np.random.default_rng(0)
    weights, frequencies = rng.normal(size=(3, 7)), rng.dirichlet(np.ones(7))
    found = []
    for _ in range(4000):
        order = rng.permutation(7)
        found.append(oracle.linear_variance(5, weights[:, order], frequencies[order]))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(len(found))
    formula = oracle._mean_variance(5, weights, frequencies)
    assert (np.abs(mean - formula) < 6 * error + 1e-12).all()
    single = np.eye(7)
    np.testing.assert_allclose(
        oracle._mean_variance(5, single, frequencies),
        oracle.linear_variance(5, single, frequencies),
        rtol=1e-9,
    )


def test_blocks_that_are_given_are_taken_kept_and_shown(tmp_path):
    chosen, given = AffineSelection(64, 0.5), AffineSelection(64, 0.5, blocks=[3, 4, 1])
    assert given.design == BlockDesign(3, 4, 1) != chosen.design
    assert repr(given) == "AffineSelection(domain=64, epsilon=0.5, blocks=(3, 4, 1))"
    assert "blocks" not in repr(chosen)
    assert given.audit().holds
    assert given.parameters != chosen.parameters
    same = AffineSelection(64, 0.5, blocks=tuple(chosen.design))
    assert same.signature == chosen.signature
    assert same.estimate(chosen.aggregate(chosen.privatize([1, 2]))).n == 2
    for oracle in (chosen, given):
        save_protocol(tmp_path / "oracle.json", oracle)
        assert load_protocol(tmp_path / "oracle.json") == oracle
        assert ("blocks" in (tmp_path / "oracle.json").read_text()) is (oracle is given)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ((3, 4), "3 numbers"),
        ((3, 3, 1), "room for 64 items"),
        ((6, 3, 1), "order of a field"),
        ((512, 1, 1), "order of a field"),
        ((2, 40, 1), "at most 4194304 vectors"),
        ((1, 64, 1), "order of a field"),
        ((9, 2, 2), "half of a prime"),
        ((11, 2, 6), "half of a prime"),
        ((11, 2, 0), "1 to"),
        ((11.0, 2, 1), "an integer"),
    ],
)
def test_blocks_that_there_are_not(blocks, message):
    with pytest.raises(ValueError, match=message):
        AffineSelection(64, 1.0, blocks=blocks)

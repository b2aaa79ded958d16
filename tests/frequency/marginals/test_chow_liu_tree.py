"""Chow-Liu trees against the enumeration of all spanning trees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from frequency.exceptions import InvalidEstimates
from frequency.marginals import Domain, InpHT, MargPS, chow_liu, mutual_information

Edges = tuple[tuple[str, str], ...]


def spanning_trees(names: str) -> Iterator[Edges]:
    """All sets of len(names) - 1 pairs that connect all names."""
    for edges in combinations(combinations(names, 2), len(names) - 1):
        reached = {names[0]}
        for _ in names:
            reached |= {end for edge in edges if reached & set(edge) for end in edge}
        if len(reached) == len(names):
            yield edges


def chain(rng: np.random.Generator, d: int) -> npt.NDArray[np.float64]:
    """A distribution of d binary attributes, each a noisy copy of a random earlier one."""
    table = np.array([0.4, 0.6])
    for k in range(1, d):
        parent, kept = int(rng.integers(k)), rng.uniform(0.6, 0.9)
        copy = np.array([[kept, 1 - kept], [1 - kept, kept]])
        table = np.stack(
            [
                table * copy[:, v].reshape([-1 if axis == parent else 1 for axis in range(k)])
                for v in (0, 1)
            ],
            axis=-1,
        )
    return table


def marginals_of(table: npt.NDArray[np.float64], names: str):
    def marginal(a: str, b: str) -> npt.NDArray[np.float64]:
        places = [names.index(a), names.index(b)]
        rest = tuple(axis for axis in range(table.ndim) if axis not in places)
        joint = table.sum(axis=rest)
        return joint if places[0] < places[1] else joint.T

    return marginal


def test_there_are_as_many_spanning_trees_as_cayley_says() -> None:
    assert [sum(1 for _ in spanning_trees("abcde"[:d])) for d in (2, 3, 4, 5)] == [1, 3, 16, 125]


@pytest.mark.parametrize("d", [2, 3, 4, 5])
def test_the_tree_is_the_best_of_all(d: int) -> None:
    rng, names = np.random.default_rng(d), "abcde"[:d]
    for _ in range(5):
        marginal = marginals_of(rng.dirichlet(np.full(2**d, 0.5)).reshape((2,) * d), names)
        tree = chow_liu(marginal, names)
        best = max(
            sum(mutual_information(marginal(*edge)) for edge in edges)
            for edges in spanning_trees(names)
        )
        assert tree.total() == pytest.approx(best, abs=1e-12)
        assert tree.total(marginal) == pytest.approx(best, abs=1e-12)
        assert set(tree.edges) in [set(edges) for edges in spanning_trees(names)]
        assert list(tree.informations) == sorted(tree.informations, reverse=True)


@pytest.mark.parametrize("kind", [InpHT, MargPS])
def test_a_tree_is_learned_from_private_reports(kind: type[InpHT] | type[MargPS]) -> None:
    rng, names = np.random.default_rng(6), "abcde"
    table = chain(rng, 5)
    truth = marginals_of(table, names)
    protocol = kind(Domain.binary(*names), 2, 2.0)
    estimate = protocol.estimate(protocol.simulate(rng.multinomial(2_000_000, table.ravel()), rng))
    best, tree = chow_liu(truth, names), chow_liu(estimate)
    assert tree.total(truth) == pytest.approx(best.total(), abs=1e-3)
    assert tree.total(truth) <= best.total() + 1e-12
    assert set(chow_liu(estimate, ["c", "a"]).edges) == {("c", "a")}


def test_independent_attributes_have_a_tree_too() -> None:
    tree = chow_liu(lambda a, b: np.full((2, 3), 1 / 6), "abcd")
    assert len(tree.edges) == 3
    assert tree.total() == pytest.approx(0, abs=1e-12)
    assert len(str(tree).splitlines()) == 3
    alone = chow_liu(lambda a, b: np.eye(2), ["x"])
    assert (alone.edges, alone.total()) == ((), 0.0)


def test_what_is_no_tree_is_refused() -> None:
    even = np.full((2, 2), 0.25)
    for names in (None, [], ["a", "a"]):
        with pytest.raises(ValueError, match="distinct"):
            chow_liu(lambda a, b: even, names)
    with pytest.raises(InvalidEstimates):
        chow_liu(lambda a, b: 2 * even, "ab")
    protocol = InpHT(Domain.binary("a", "b"), 2, 1.0)
    with pytest.raises(ValueError, match="is none"):
        chow_liu(protocol.estimate(protocol.simulate([1, 1, 1, 1])), ["a", "c"])
    with pytest.raises(ValueError, match="no reports"):
        chow_liu(protocol.estimate(protocol.simulate([0, 0, 0, 0])))

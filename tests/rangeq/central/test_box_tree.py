"""Trees of boxes: sizes that are no products, branchings for each attribute, and section 5."""

import math

import numpy as np
import pytest

from rangeq.central import CentralFlat, Hierarchy, Wavelet, best_branching
from rangeq.central.box_tree import tree_over


@pytest.mark.parametrize(
    ("shape", "branching", "fanouts"),
    [
        ((8,), 2, [(2,), (2,), (2,)]),
        ((20,), 16, [(2,), (16,)]),
        ((1,), 2, [(1,)]),
        ((16, 4), 4, [(4, 1), (4, 4)]),
        ((1000, 10, 1), 10, [(10, 1, 1), (10, 1, 1), (10, 10, 1)]),
        ((6, 4), [2, 3], [(2, 2), (3, 3)]),
        ((6, 3), [2, 3], [(2, 1), (3, 3)]),
        ((6, 4), [[3, 2], [1, 4]], [(3, 1), (2, 4)]),
        ((5, 9), [[8, 2], [3, 3]], [(3, 3), (2, 3)]),
    ],
)
def test_into_how_many_nodes_are_split(shape, branching, fanouts):
    assert list(tree_over(shape, branching).fanouts) == fanouts


@pytest.mark.parametrize(
    ("branching", "message"),
    [
        ([[2, 3]], "a list for each of the 2 attributes"),
        ([[2, 3], [2]], "all of one length"),
        ([[2, 2], [2, 2]], "product of the branchings"),
        ([[2, 6], [2, 4]], "that of all but the first must not"),
        ([[6, 1, 1], [4, 1, 1]], "every level must split"),
    ],
)
def test_refused_branchings(branching, message):
    with pytest.raises(ValueError, match=message):
        tree_over((6, 4), branching)


@pytest.mark.parametrize(("shape", "branching"), [((7, 5), 2), ((9, 4, 3), 3), ((11,), [2, 3, 2])])
def test_nodes_and_sums_by_definition(shape, branching):
    tree = tree_over(shape, branching)
    counts = np.random.default_rng(1).integers(0, 9, shape)
    for level, sums in enumerate(tree.sums(counts), 1):
        assert sums.shape == tree.nodes[level]
        for node in np.ndindex(sums.shape):
            inside = tuple(
                slice(k * width, (k + 1) * width)
                for k, width in zip(node, tree.widths[level], strict=True)
            )
            assert sums[node] == counts[inside].sum()
    for level in range(tree.height):
        for i in tree.attributes:
            before = (tree.nodes[level][i] - 1) * tree.fanouts[level][i]
            assert before + tree.children_of_last(level, i) == tree.nodes[level + 1][i]


def test_cells_beyond_the_end_are_known_to_be_empty():
    """Twenty cells, 16 children: 28.53 where what lies beyond is asked as well."""
    assert Hierarchy(20, 1.0, 16).average_variance() == pytest.approx(25.6762, abs=1e-4)
    for tree, more in (
        (Hierarchy(20, 1.0, 16), Hierarchy(32, 1.0, 16)),
        (Wavelet(20, 1.0), Wavelet(32, 1.0)),
    ):
        a, b = np.triu_indices(20)
        assert np.all(tree.range_variance(a, b) <= more.range_variance(a, b) * (1 + 1e-12))


def best_ratio(shape):
    """The best hierarchy of equal branchings, over flat."""
    best = min(Hierarchy(shape, 1.0, b).average_variance() for b in range(2, min(shape[0], 40)))
    return best / CentralFlat(shape, 1.0).average_variance()


def test_hierarchies_hardly_help_in_three_dimensions():
    """Section 5 and the abstract: in one dimension a hierarchy wins by far, with 3 or more
    dimensions flat is almost always better.

    Measured at 2^12 cells, with inference and the best branching: 0.10 of flat in one dimension,
    0.89 in two, 1.86 in three, 2.39 in four. In three dimensions flat is still better with 2^18
    cells; with 2^21 the best hierarchy gains 6 %.
    """
    assert best_ratio((1 << 12,)) == pytest.approx(0.0959, abs=1e-4)
    assert best_ratio((64, 64)) == pytest.approx(0.894, abs=1e-3)
    assert best_ratio((16,) * 3) == pytest.approx(1.859, abs=1e-3)
    assert best_ratio((8,) * 4) == pytest.approx(2.390, abs=1e-3)
    assert best_ratio((64,) * 3) == pytest.approx(1.204, abs=1e-3)
    assert best_ratio((128,) * 3) == pytest.approx(0.944, abs=1e-3)
    # Without inference flat wins there by far.
    plain = Hierarchy((128,) * 3, 1.0, 12, inference=False)
    assert plain.average_variance() > 2 * CentralFlat((128,) * 3, 1.0).average_variance()


def test_unequal_branchings_do_help_in_three_dimensions():
    """What the paper does not consider: few children below, many above. At 32^3 cells 0.865 of
    flat, at 64^3 0.576, at 128^3 0.369; at 16^3 flat is best.
    """
    for size, ratio in ((16, 1.0), (32, 0.865), (64, 0.576), (128, 0.369)):
        shape = (size,) * 3
        best = best_branching(shape, 1.0).best
        flat = CentralFlat(shape, 1.0).average_variance()
        assert best.average_variance / flat == pytest.approx(ratio, abs=1e-3)


def test_flat_of_several_attributes():
    """((size + 2) / 3)^d times the noise of a cell (section 3.1, for each attribute)."""
    for shape in ((4,), (5, 7), (3, 3, 2)):
        expected = math.prod((n + 2) / 3 for n in shape) * 2 / 0.25
        assert CentralFlat(shape, 0.5).average_variance() == pytest.approx(expected)


def test_best_of_several_attributes_is_no_worse_than_integers():
    for shape in ((64, 64), (50, 12), (16, 16, 16)):
        found = best_branching(shape, 1.0)
        every = [Hierarchy(shape, 1.0, b).average_variance() for b in range(2, max(shape))]
        least = min(*every, CentralFlat(shape, 1.0).average_variance())
        assert found.best.average_variance <= least * (1 + 1e-12)
        again = Hierarchy(shape, 1.0, found.best.fanouts).average_variance()
        assert again == pytest.approx(found.best.average_variance)
    with pytest.raises(ValueError, match="padded=False"):
        best_branching((4, 4), 1.0, padded=False)

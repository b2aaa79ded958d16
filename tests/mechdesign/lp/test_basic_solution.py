"""Basic solutions against their definition: feasible, zero where the point was, of full rank."""

from random import Random

import pytest
from flint import fmpq, fmpq_mat

from mechdesign.lp.basis import basic, pivots


def rank(rows, width):
    return fmpq_mat(len(rows), width, [a for row in rows for a in row]).rank()


@pytest.mark.parametrize("seed", range(30))
def test_a_vertex_of_the_face_of_a_random_point(seed):
    """A simplex cut by random rows through a random point: what was 0 stays 0, and all that is 0
    afterwards determines the vertex. A vertex is left as it is.
    """
    random = Random(seed)
    width = random.randint(2, 7)
    point = {v: fmpq(random.choice([0, 1, 2, 3])) for v in range(width)}
    rows = [{v: fmpq(-1) for v in range(width)}]
    rows += [
        {v: fmpq(random.randint(-2, 2)) for v in random.sample(range(width), min(3, width))}
        for _ in range(random.randint(0, 6))
    ]
    rows = [{v: a for v, a in row.items() if a != 0} for row in rows]
    room = [0, *(random.choice([0, 0, 1, 5]) for _ in rows[1:])]
    bounds = [
        sum((a * point[v] for v, a in row.items()), fmpq(-gap))
        for row, gap in zip(rows, room, strict=True)
    ]
    found, slack = basic(point, rows, bounds)
    assert slack == [
        sum((a * found[v] for v, a in row.items()), -bound)
        for row, bound in zip(rows, bounds, strict=True)
    ]
    assert min(*found.values(), *slack) >= 0
    assert all(found[v] == 0 for v in point if point[v] == 0)
    assert all(value == 0 for value, gap in zip(slack, room, strict=True) if gap == 0)
    active = [[fmpq(v == w) for w in range(width)] for v in found if found[v] == 0]
    active += [
        [row.get(v, fmpq(0)) for v in range(width)]
        for row, value in zip(rows, slack, strict=True)
        if value == 0
    ]
    assert rank(active, width) == width
    assert basic(found, rows, bounds) == (found, slack)


def test_free_variables_give_way_only_where_nothing_else_does():
    """x + y + z = 6 with x free: (1, 2, 3) goes to a vertex that keeps x, as y or z reaches 0."""
    one = fmpq(1)
    rows = [{0: one, 1: one, 2: one}, {0: -one, 1: -one, 2: -one}]
    found, slack = basic({0: one, 1: 2 * one, 2: 3 * one}, rows, [6 * one, -6 * one], {0})
    assert slack == [0, 0]
    assert found[1] == found[2] == 0
    assert found[0] == 6
    pair = [{0: one, 1: one}]
    assert basic({0: one, 1: one}, pair, [2 * one], {0, 1})[0] in ({0: 2, 1: 0}, {0: 0, 1: 2})


@pytest.mark.parametrize("seed", range(10))
def test_pivots_are_the_columns_that_raise_the_rank(seed):
    random = Random(seed)
    width = random.randint(1, 6)
    matrix = [
        [fmpq(random.choice([0, 0, 1, -1, 2])) for _ in range(width)]
        for _ in range(random.randint(0, 5))
    ]
    ranks = [rank([row[:k] for row in matrix], k) for k in range(width + 1)]
    assert pivots(matrix) == [k for k in range(width) if ranks[k + 1] > ranks[k]]

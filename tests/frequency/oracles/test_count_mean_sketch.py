"""Count-mean sketches keep the contract of sketches."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from frequency import CountMeanSketch, HadamardCountMeanSketch
from frequency.algebra.hash_functions import FEW
from tests.contracts.oracle import (
    LN3,
    SketchContract,
    Twin,
    choice_words,
    planes,
    public_bit,
    rejected_words,
    reports_of,
    subset_bytes,
    subsets,
    uniform_words,
    weights_of,
)
from tests.tape import WORD


class HashedContract(SketchContract):
    sizes = ("hashes", "width")

    def make(self, domain, epsilon):
        small = not isinstance(domain, int) or domain <= 5
        return (
            self.kind(domain, epsilon, hashes=3, width=4, seed=5)
            if small
            else self.kind(domain, epsilon, hashes=8, width=64)
        )

    def families(self):
        yield self.kind(3, 1.0, hashes=1, width=4), 2
        yield self.kind(3, LN3, hashes=2, width=2), 2

    def seeded(self, seed):
        return self.kind(20, 3.0, hashes=4, width=32, seed=seed)

    def cells(self, oracle, public):
        """cells[hash][item]: the bits of ``log2 width`` consecutive public functions, least
        significant first.
        """
        g, places = oracle.parameters["hashes"], oracle.parameters["width"].bit_length() - 1

        def bit(row, item):
            return (
                public_bit("hash", oracle.parameters["seed"], g * places, row, item)
                if public is None
                else public(row, item)
            )

        return [
            [sum(bit(h * places + k, x) << k for k in range(places)) for x in range(oracle.domain)]
            for h in range(g)
        ]

    @pytest.mark.parametrize("width", [1, 3, 6, 1000])
    def test_width_is_a_power_of_two(self, width):
        with pytest.raises(ValueError, match="width must be"):
            self.kind(3, 1.0, width=width)


class TestHadamardCountMeanSketch(HashedContract):
    """A hash function and a coefficient, uniform; the sign of the cell's coefficient by randomised
    response (Apple 2017).
    """

    kind = HadamardCountMeanSketch

    def twin(self, oracle, public=None):
        truth, lie = weights_of(oracle, "truth", "lie")
        g, w, cells = oracle.hashes, oracle.width, self.cells(oracle, public)
        rows = list(product(range(g), range(1, w), (1, -1)))

        def chance(h, j, sign, v):
            true = 1 - 2 * ((j & cells[h][v]).bit_count() % 2)
            return Fraction(truth if sign == true else lie, WORD * g * (w - 1))

        return Twin(
            reports_of(oracle, rows),
            [[chance(*row, v) for v in range(oracle.domain)] for row in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        cells = self.cells(oracle, None)
        for v, h, j in product({0, oracle.domain - 1}, range(3), range(1, 4)):
            true = 1 - 2 * ((j & cells[h][v]).bit_count() % 2)
            for word, flip in choice_words(2, truth, lie):
                yield (
                    v,
                    [
                        *rejected_words(3),
                        uniform_words(h, 3)[0],
                        *rejected_words(3),
                        uniform_words(j - 1, 3)[1],
                        word,
                    ],
                    (h, j, -true if flip else true),
                )


class TestCountMeanSketch(HashedContract):
    """A hash function, uniform; every cell's bit by itself, as in SUE (Apple 2017)."""

    kind = CountMeanSketch
    simulations = 8000

    def twin(self, oracle, public=None):
        p, q = (Fraction(x, WORD) for x in weights_of(oracle, "p", "q"))
        g, w, cells = oracle.hashes, oracle.width, self.cells(oracle, public)
        rows = list(product(range(g), subsets(range(w))))

        def chance(h, chosen, v):
            chances = [p if cell == cells[h][v] else q for cell in range(w)]
            return math.prod(o if cell in chosen else 1 - o for cell, o in enumerate(chances)) / g

        table = [[chance(*row, v) for v in range(oracle.domain)] for row in rows]
        return Twin(reports_of(oracle, [(h, subset_bytes(chosen, w)) for h, chosen in rows]), table)

    def tapes(self, oracle):
        p, q = weights_of(oracle, "p", "q")
        cells = self.cells(oracle, None)
        for v, h, number, own in product(
            {0, oracle.domain - 1}, range(3), (q - 1, q), (p - 1, p, 0, WORD - 1)
        ):
            chosen = (set(range(4)) - {cells[h][v]} if number < q else set()) | (
                {cells[h][v]} if own < p else set()
            )
            yield v, [uniform_words(h, 3)[1], *planes(number, q), own], (h, subset_bytes(chosen, 4))


def test_few_cells_are_those_of_many() -> None:
    """A client's one cell, and a collector's, are found in two ways."""
    oracle, rng = (
        HadamardCountMeanSketch(1 << 20, 1.0, hashes=5, width=16),
        np.random.default_rng(1),
    )
    items, hashes = rng.integers(0, 1 << 20, 2 * FEW), rng.integers(0, 5, 2 * FEW)
    many = oracle._hashing.cells_of(hashes, items)
    assert many.min() >= 0
    assert many.max() < 16
    one = [oracle._hashing.cells_of(hashes[k : k + 1], items[k : k + 1]) for k in range(len(items))]
    assert np.concatenate(one).tolist() == many.tolist()
    table = oracle._hashing.cells_of(np.arange(5)[:, None], items)
    for few in (items[:3], items[:0]):
        found = oracle._hashing.cells_of(np.arange(5)[:, None], few)
        assert found.dtype == table.dtype
        assert np.array_equal(found, table[:, : len(few)])
        assert np.array_equal(oracle._hashing.cells_of(np.array(2), few), table[2, : len(few)])

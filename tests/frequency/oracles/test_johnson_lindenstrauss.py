"""The oracle of Johnson and Lindenstrauss keeps the contract of sketches."""

from fractions import Fraction
from itertools import product

from frequency import JLOracle
from tests.contracts.oracle import (
    LN3,
    SketchContract,
    Twin,
    choice_words,
    public_bit,
    rejected_words,
    reports_of,
    uniform_words,
    weights_of,
)
from tests.tape import WORD


class TestJLOracle(SketchContract):
    """A row, uniform; the sign of the item there by randomised response (Bassily and Smith 2015,
    Algorithm 1).
    """

    kind, patched, sizes = JLOracle, "_matrix", ("rows",)

    def make(self, domain, epsilon):
        return JLOracle(
            domain, epsilon, rows=6 if not isinstance(domain, int) or domain <= 5 else 100, seed=5
        )

    def families(self):
        yield JLOracle(3, 1.0, rows=1), 1
        yield JLOracle(3, LN3, rows=2), 2

    def seeded(self, seed):
        return JLOracle(20, 3.0, rows=64, seed=seed)

    def public(self, oracle, row, item):
        return public_bit(
            "projection", oracle.parameters["seed"], oracle.parameters["rows"], row, item
        )

    def twin(self, oracle, public=None):
        truth, lie = weights_of(oracle, "truth", "lie")
        bit = public or (lambda row, item: self.public(oracle, row, item))
        rows = list(product(range(oracle.rows), (1, -1)))

        def chance(row, sign, v):
            return Fraction(truth if sign == 1 - 2 * bit(row, v) else lie, WORD * oracle.rows)

        return Twin(
            reports_of(oracle, rows),
            [[chance(*row, v) for v in range(oracle.domain)] for row in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        for v, row in product({0, oracle.domain - 1}, range(oracle.rows)):
            true = 1 - 2 * self.public(oracle, row, v)
            for word, flip in choice_words(2, truth, lie):
                yield (
                    v,
                    [*rejected_words(oracle.rows), uniform_words(row, oracle.rows)[flip], word],
                    (row, -true if flip else true),
                )

"""Unary encodings keep the contract of oracles."""

import math
from fractions import Fraction
from itertools import product

from frequency import OUE, SUE
from tests.contracts.oracle import (
    OracleContract,
    Twin,
    planes,
    reports_of,
    subset_bytes,
    subsets,
    weights_of,
)
from tests.tape import WORD


class UnaryContract(OracleContract):
    """Every bit by itself: 1 with probability p for the own item, q for others."""

    def twin(self, oracle):
        p, q = (Fraction(w, WORD) for w in weights_of(oracle, "p", "q"))
        sets = subsets(range(oracle.domain))

        def chance(chosen, v):
            chances = [p if x == v else q for x in range(oracle.domain)]
            return math.prod(o if x in chosen else 1 - o for x, o in enumerate(chances))

        rows = [(subset_bytes(chosen, oracle.domain),) for chosen in sets]
        return Twin(
            reports_of(oracle, rows),
            [[chance(chosen, v) for v in range(oracle.domain)] for chosen in sets],
        )

    def tapes(self, oracle):
        p, q = weights_of(oracle, "p", "q")
        for v in range(oracle.domain):
            others = set(range(oracle.domain)) - {v}
            for number, own in product((q - 1, q, 0, WORD - 1), (p - 1, p, 0, WORD - 1)):
                if number in (q - 1, q):
                    chosen = (others if number < q else set()) | ({v} if own < p else set())
                    yield v, [*planes(number, q), own], (subset_bytes(chosen, oracle.domain),)


class TestSUE(UnaryContract):
    make = staticmethod(SUE)


class TestOUE(UnaryContract):
    make = staticmethod(OUE)

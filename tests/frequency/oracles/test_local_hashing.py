"""Local hashing keeps the contract of oracles."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from frequency import OLH
from tests.contracts.oracle import (
    OracleContract,
    Twin,
    choice_words,
    close,
    rejected_words,
    reports_of,
    uniform_words,
    weights_of,
)
from tests.frequency.oracles.huge_counts import check_exact, huge, inner_product
from tests.frequency.oracles.slow_field import SlowField
from tests.tape import WORD


class TestOLH(OracleContract):
    """a uniform in F_q^t, and <a, v> with weight truth, every other element with weight lie (Wang
    et al. 2017).
    """

    make = staticmethod(OLH)
    epsilons = (
        *OracleContract.epsilons,
        math.log(2),
        math.log(4),
        math.log(6),
        math.log(7),
        math.log(8),
    )

    def fits(self, domain, epsilon):
        return epsilon <= 3

    def twin(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field, rows = SlowField(q), list(product(range(q**t), range(q)))

        def chance(a, y, v):
            return Fraction(truth if field.dot(a, v, t) == y else lie, WORD * q**t)

        return Twin(
            reports_of(oracle, rows),
            [[chance(a, y, v) for v in range(oracle.domain)] for a, y in rows],
        )

    def tapes(self, oracle):
        truth, lie = weights_of(oracle, "truth", "lie")
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field, size = SlowField(q), q**t
        told = [
            (word, outcome)
            for word, outcome in choice_words(q, truth, lie)
            if outcome in (0, 1, q - 1)
        ]
        for v, a in product({0, oracle.domain - 1}, {0, 1, size - 1}):
            for word, outcome in told:
                for draw in uniform_words(a, size):
                    yield (
                        v,
                        [*rejected_words(size), draw, word],
                        (a, field.add(field.dot(a, v, t), outcome)),
                    )

    def test_audit_of_large_fields(self):
        for q, epsilon in ((22027, 10), (101, math.log(100))):
            oracle = OLH(3, epsilon)
            assert oracle.hashes_to == q
            assert oracle.audit().ratio == Fraction(*weights_of(oracle, "truth", "lie"))

    @pytest.mark.parametrize("q", [2, 3, 4, 5, 7, 8, 9, 11, 16, 25])
    def test_the_transform_counts_as_all_users_and_items_do(self, q):
        """To the last bit: the server's shortcut against the definition, n x D inner products."""
        oracle, domain, n = OLH(200, math.log(q - 1) if q > 2 else 0.01), 200, 400
        assert oracle.hashes_to == q
        reports = oracle.privatize(self.values(domain, n), np.random.default_rng(q))
        field, t = SlowField(q), oracle.parameters["dimension"]
        table = np.array([[field.multiply(a, b) for b in range(q)] for a in range(q)])
        sums = np.array([[field.add(a, b) for b in range(q)] for a in range(q)])
        total = np.zeros((n, domain), dtype=np.int64)
        for j in range(t):
            a, x = (
                np.asarray(u, dtype=np.int64) // q**j % q
                for u in (reports["hash"], np.arange(domain))
            )
            total = sums[total, table[a[:, None], x]]
        support = (total == reports["value"][:, None]).sum(axis=0)
        assert oracle._supporters(oracle.aggregate(reports).counts).tolist() == support.tolist()
        p, share = float(oracle.p), support / n
        close(
            oracle.estimate(oracle.aggregate(reports)).frequencies,
            (share - 1 / q) / (p - 1 / q),
            [1.0],
        )


@pytest.mark.parametrize("n", [2**39 + 1, 2**53 + 1, 2**62 + 12345, 2**63 - 1])
@pytest.mark.parametrize(
    ("oracle", "order"),
    [(OLH(9, 0.5), 3), (OLH(12, 1.0), 4), (OLH(2, 1.0), 4), (OLH(60, 1.0), 4)],
    ids=repr,
)
def test_olh_estimates_from_huge_counts_as_exact_integers_do(
    oracle: OLH, order: int, n: int
) -> None:
    q, t = oracle.parameters["field"], oracle.parameters["dimension"]
    assert q == order
    reports = np.array([(a, y) for a in range(q**t) for y in range(q)], dtype=oracle.report_dtype)
    of_cell = {
        int(np.argmax(oracle.aggregate(reports[k : k + 1]).counts)): tuple(map(int, reports[k]))
        for k in range(len(reports))
    }
    for counts in huge(len(of_cell), n, np.random.default_rng(7)):
        held = [
            sum(counts[c] for c, (a, y) in of_cell.items() if inner_product(q, t, a, x) == y)
            for x in range(oracle.domain)
        ]
        check_exact(oracle, n, counts, held)

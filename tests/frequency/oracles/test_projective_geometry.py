"""Projective geometry keeps the contract of oracles."""

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from frequency import ProjectiveGeometry, SubsetSelection
from frequency.storage import load_protocol, save_protocol
from tests.contracts.oracle import LN3, OracleContract, Twin, choice_words, reports_of, weights_of
from tests.frequency.core.messages import some_reports
from tests.frequency.oracles.huge_counts import check_exact, huge, inner_product
from tests.frequency.oracles.slow_field import SlowField
from tests.tape import WORD


class TestProjectiveGeometry(OracleContract):
    """Hyperplanes of the projective space of F_q^t, those through the own point likelier (Feldman
    et al. 2022).

    Points and hyperplanes are the vectors whose leading digit is 1, in their order.
    """

    make = staticmethod(ProjectiveGeometry)

    def fits(self, domain, epsilon):
        return epsilon <= 3

    def geometry(self, oracle):
        q, t = oracle.parameters["field"], oracle.parameters["dimension"]
        field = SlowField(q)

        def leading(a):
            while a >= q:
                a //= q
            return a

        points = [a for a in range(1, q**t) if leading(a) == 1]
        incident = [[field.dot(h, x, t) == 0 for x in points[: oracle.domain]] for h in points]
        return q, t, points, incident

    def twin(self, oracle):
        through, beside = weights_of(oracle, "through", "beside")
        q, t, points, incident = self.geometry(oracle)
        assert through + (q - 1) * beside == WORD
        m = (q ** (t - 1) - 1) // (q - 1)
        assert all(sum(row[v] for row in incident) == m for v in range(oracle.domain))
        near, far = (
            Fraction(through, WORD * m),
            Fraction((q - 1) * beside, WORD * (len(points) - m)),
        )
        table = [[near if on else far for on in row] for row in incident]
        return Twin(reports_of(oracle, [(h,) for h in range(len(points))]), table)

    def tapes(self, oracle):
        through, beside = weights_of(oracle, "through", "beside")
        _, _, _, incident = self.geometry(oracle)
        q = oracle.parameters["field"]
        for v in {0, oracle.domain - 1}:
            for word, outcome in choice_words(q, through, beside):
                yield (
                    v,
                    [word],
                    lambda report, v=v, on=outcome == 0: incident[report["hyperplane"]][v] is on,
                )

    @pytest.mark.parametrize("domain", [1000, 65_536])
    @pytest.mark.parametrize("epsilon", [1, LN3, 3])
    def test_near_subset_selection(self, domain, epsilon):
        least = SubsetSelection(domain, epsilon).variance(1)
        assert least * (1 - 1e-9) <= ProjectiveGeometry(domain, epsilon).variance(1) <= 1.05 * least

    def test_pairs_of_points_lie_on_equally_many_hyperplanes(self):
        for domain, epsilon in ((5, 1), (20, 1), (20, 0.1)):
            oracle = ProjectiveGeometry(domain, epsilon)
            q, t, points, incident = self.geometry(oracle)
            lam = (q ** (t - 2) - 1) // (q - 1)
            on = np.array(incident, dtype=int)
            assert ((on.T @ on)[~np.eye(domain, dtype=bool)] == lam).all()
            (through,) = weights_of(oracle, "through")
            p, m = Fraction(through, WORD), (q ** (t - 1) - 1) // (q - 1)
            assert oracle.p == p
            assert oracle.q == p * Fraction(lam, m) + (1 - p) * Fraction(m - lam, len(points) - m)


class TestGivenOrder(TestProjectiveGeometry):
    """Another geometry than the class chooses."""

    make = staticmethod(partial(ProjectiveGeometry, order=(3, 3)))
    domains: tuple[int, ...] = (2, 5, 13)
    big_domains: tuple[int, ...] = (13,)


def test_an_order_that_is_given_is_taken_kept_and_shown(tmp_path):
    chosen, given = ProjectiveGeometry(64, 1), ProjectiveGeometry(64, 1, order=(8, 3))
    assert (given.parameters["field"], given.parameters["dimension"]) == (8, 3)
    assert repr(given) == "ProjectiveGeometry(domain=64, epsilon=1, order=(8, 3))"
    assert "order" not in repr(chosen)
    for oracle in (chosen, given):
        save_protocol(tmp_path / "oracle.json", oracle)
        assert load_protocol(tmp_path / "oracle.json") == oracle
    for order in ((8, 2), (6, 4), (8,), (8, 3, 1), (8, 1)):
        with pytest.raises(ValueError, match="order must"):
            ProjectiveGeometry(64, 1.0, order=order)


@pytest.mark.parametrize("n", [2**39 + 1, 2**53 + 1, 2**62 + 12345, 2**63 - 1])
@pytest.mark.parametrize(
    ("oracle", "order"),
    [
        (ProjectiveGeometry(7, 0.4), 2),
        (ProjectiveGeometry(11, 1.0), 3),
        (ProjectiveGeometry(21, 1.2), 4),
        (ProjectiveGeometry(6, 1.6), 5),
    ],
    ids=repr,
)
def test_projective_geometry_estimates_from_huge_counts_as_exact_integers_do(
    oracle: ProjectiveGeometry, order: int, n: int
) -> None:
    q, t = oracle.parameters["field"], oracle.parameters["dimension"]
    assert q == order
    points = [q**j + low for j in range(t) for low in range(q**j)]  # leading digit 1, in order
    for counts in huge(len(points), n, np.random.default_rng(8)):
        on = [
            sum(c for a, c in zip(points, counts, strict=True) if inner_product(q, t, a, x) == 0)
            for x in points[: oracle.domain]
        ]
        check_exact(oracle, n, counts, on)


def test_projective_geometry_is_for_small_epsilon_too() -> None:
    oracle = ProjectiveGeometry(3, 0.2)
    assert oracle.audit().holds
    assert oracle.aggregate(some_reports(oracle, 5)).n == 5

"""Candidates of one's own: in every task, ranked with the others, or refused before any work."""

from __future__ import annotations

from functools import partial

import pytest

from frequency import GRR, OUE
from frequency.heavy import TreeHist, UniqueHeavyHitter
from frequency.marginals import InpEM, InpHT, MargPS
from mechdesign import InvalidRequest, Privacy, PrivacyViolation, named, plan
from rangeq import DecomposedHistogram, Flat, HierarchicalHistogram
from rangeq.grids import HIO, TDG
from tests.own_oracles import Exclusion


def found(task, domain, candidates, **given):
    plan_ = plan(task, domain, epsilon=1.0, n=100_000, candidates=candidates, **given)
    return {item.name: item for item in plan_.candidates}


def test_frequencies() -> None:
    items = found("frequencies", 8, [Exclusion])
    assert items["Exclusion"].protocol == Exclusion(8, 1.0)
    assert items["Exclusion"].error > items["GRR"].error
    two = found("frequencies", 8, {"half": lambda d, e: GRR(d, e / 2), "OUE again": OUE})
    assert two["half"].error > two["GRR"].error
    assert two["OUE again"].error == two["OUE"].error
    least = plan("frequencies", 8, epsilon=1.0, error=0.01, candidates={"own": Exclusion})
    assert {item.name for item in least.candidates} >= {"GRR", "own"}
    assert all((item.n or 0) > 0 for item in least.candidates)


@pytest.mark.slow
def test_an_oracle_is_no_range_protocol() -> None:
    plan_ = plan("prefixes", 4, epsilon=1.0, n=1000, candidates=[Exclusion])
    ((name, why),) = plan_.refused
    assert name == "Exclusion"
    assert why.startswith("Exclusion is no range protocol")


def test_a_function_without_a_name_needs_one() -> None:
    with pytest.raises(InvalidRequest, match="mapping of names to these; got a partial without"):
        plan("frequencies", 8, epsilon=1.0, n=1000, candidates=[partial(OUE)])


def test_a_candidate_that_cannot_serve_is_named_with_the_reason() -> None:
    def choosy(domain, epsilon):
        raise ValueError("not for so few")

    plan_ = plan("frequencies", 8, epsilon=1.0, n=1000, candidates=[choosy])
    assert plan_.refused == (("choosy", "not for so few"),)
    assert "cannot serve: choosy: not for so few" in str(plan_)
    assert plan("frequencies", 8, epsilon=1.0, n=1000).refused == ()
    searched = plan("frequencies", 8, epsilon=1.0, error=0.1, candidates=[choosy])
    assert "choosy" in searched.unreachable


@pytest.mark.slow
def test_ranges() -> None:
    own = {"own": partial(HierarchicalHistogram, branching=4, oracle="GRR")}
    for task in ("ranges", "prefixes", "quantiles"):
        items = found(task, 64, own)
        assert items["own"].error >= min(item.error for item in items.values())
    items = found("ranges", 64, [DecomposedHistogram])
    assert items["DecomposedHistogram"].protocol == DecomposedHistogram(64, 1.0)
    assert items["DecomposedHistogram"].error == DecomposedHistogram(64, 1.0).average_rmse(100_000)
    assert found("ranges", 16, {"own": partial(Flat, oracle=Exclusion)})["own"].bits == 4


@pytest.mark.slow
def test_marginals_conjunctions_and_heavy_hitters() -> None:
    sizes = {"a": 3, "b": 2, "c": 2}
    items = found("marginals", sizes, {"own": MargPS, "em": InpEM, "again": InpHT})
    assert items["own"].error == pytest.approx(items["MargPS"].error)
    assert items["again"].error == pytest.approx(items["InpHT"].error)
    assert items["em"].error > items["MargPS"].error
    items = found("conjunctions", [16, 16], {"own": TDG, "hio": HIO})
    assert items["own"].error == items["TDG"].error
    items = found("heavy hitters", 16, {"own": TreeHist, "one": UniqueHeavyHitter})
    assert items["own"].error == items["TreeHist"].error
    assert items["one"].error != items["one"].error


def test_counts() -> None:
    def own(n, privacy):
        return named.geometric(n, alpha=privacy.alpha)

    def leaky(n, privacy):
        return named.geometric(n, alpha=Privacy.from_epsilon(2.0).alpha)

    items = {item.name: item for item in plan("count", 6, epsilon=1.0, candidates=[own]).candidates}
    assert items["own"].error == items["GM"].error
    with pytest.raises(PrivacyViolation):
        plan("count", 6, epsilon=1.0, candidates=[leaky])


@pytest.mark.parametrize(
    "candidates", [[5], [GRR], {"": Exclusion}, {"GRR": Exclusion}, [Exclusion, Exclusion], ["GRR"]]
)
def test_what_is_no_candidate(candidates) -> None:
    with pytest.raises(InvalidRequest, match="candidate"):
        plan("frequencies", 8, epsilon=1.0, n=1000, candidates=candidates)


@pytest.mark.slow
def test_a_candidate_that_loses_more_is_refused() -> None:
    for task, domain, candidate in (
        ("frequencies", 8, lambda d, e: GRR(d, 2 * e)),
        ("ranges", 8, lambda d, e: Flat(d, 2 * e)),
        ("conjunctions", [16, 16], lambda sizes, e, n: TDG(sizes, 2 * e, n)),
        ("heavy hitters", 16, lambda d, e, text: TreeHist(d, 2 * e, text)),
    ):
        with pytest.raises(PrivacyViolation):
            found(task, domain, {"leaky": candidate})

"""The integers of numpy are taken where those of Python are, and never overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mechdesign import (
    Bands,
    Constraints,
    CountPairs,
    Counts,
    InexactNumber,
    Mechanism,
    Metric,
    Privacy,
    design,
    losses,
    named,
    properties,
    symbolic,
)
from mechdesign.local import patterns
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial
from mechdesign.requirements import AtLeast, Within
from mechdesign.symbolic import table as closed_forms

HALF = Privacy(alpha="1/2")
GM = named.geometric(3, alpha="1/2")
CASES: dict[str, Callable[[Callable[[int], Any]], Any]] = {
    "design": lambda i: design(i(2), HALF).mechanism,
    "counts": lambda i: design(Counts(i(0), i(2)), HALF, outputs=Counts(i(0), i(3))).mechanism,
    "bands": lambda i: Bands([(i(0), i(1)), (i(2), i(100))]),
    "pairs": lambda i: (CountPairs(i(1), i(2)).size, CountPairs(1, 2).neighbours(i(2))),
    "requirements": lambda i: [AtLeast(i(1), i(2), i(1)), Within(i(100), i(1))],
    "distances": lambda i: Metric([[i(abs(j - k)) for j in range(3)] for k in range(3)]),
    "neighbours": lambda i: [
        Privacy(alpha="1/2", neighbours=i(2)),
        Privacy(alpha="1/2", neighbours=[(i(0), i(2))]),
    ],
    "alpha": lambda i: [Privacy(alpha=i(1)), Privacy.from_epsilon(i(1))],
    "Privacy.pairs": lambda i: HALF.pairs(i(100)).tolist(),
    "Privacy.pair_count": lambda i: Privacy(alpha="1/2", neighbours="all").pair_count(i(100)),
    "Privacy.distances": lambda i: HALF.distances(i(100)).tolist(),
    "Privacy.steps": lambda i: Privacy(alpha="1/2", neighbours=2).steps(i(101)),
    "table": lambda i: Mechanism([[i(1), i(0)], [i(0), i(1)]], HALF).table,
    "weights": lambda i: Mechanism.from_weights([[i(99), i(1)], [i(1), i(99)]], i(100), HALF),
    "posterior": lambda i: GM.posterior([i(1), i(0), i(0), i(0)]),
    "scaled L0": lambda i: GM.scaled_l0(i(1)),
    "losses": lambda i: [L0(i(1)), L1(i(1)), L2(i(1)), Power(i(2), i(1))],
    "costs": lambda i: [Power(2).cost(i(1), i(100)), Power("1/2").cost(i(100), i(1))],
    "cost table": lambda i: Power(i(2)).costs(i(100), i(2)),
    "table of costs": lambda i: Costs([[i(0), i(1)], [i(1), i(0)]]),
    "loss weights": lambda i: [L0().weights(i(3)), L0(worst_case=True).weights(i(3))],
    "prior": lambda i: losses.prior([i(100), i(100), i(100)]),
    "binomial": lambda i: binomial(i(100), "1/3"),
    "uniform prior": lambda i: losses.prior_over(i(3)),
    "GM": lambda i: named.geometric(i(40), alpha="1/2"),
    "EM": lambda i: named.explicit_fair(i(41), alpha="1/2"),
    "UM": lambda i: named.uniform(i(127)),
    "GRR": lambda i: named.krr(i(40), alpha="1/2"),
    "WM": lambda i: named.weakly_honest(i(3), alpha="9/10"),
    "recommend": lambda i: named.recommend(i(40), alpha="9/10", properties=["F"]),
    "closed form": lambda i: named.closed_form(i(127), alpha="9/10", properties=["WH"]),
    "OR": lambda i: properties.OutputRatio(i(1)),
    "constraints": lambda i: Constraints.at_least([i(1)], [i(2)], i(2)).cells.tolist(),
    "bounds": lambda i: Constraints.equal_to([i(1)], i(2)).bound,
    "GM, every alpha": lambda i: closed_forms.geometric(i(20)),
    "EM, every alpha": lambda i: closed_forms.explicit_fair(i(21)),
    "UM, every alpha": lambda i: closed_forms.uniform(i(40)),
    "GRR, every alpha": lambda i: closed_forms.krr(i(40)),
    "OUE, every alpha": lambda i: closed_forms.optimized_unary(i(5)),
    "HRR, every alpha": lambda i: closed_forms.hadamard(i(4)),
    "sets, every alpha": lambda i: closed_forms.subset_selection(i(9), i(4)),
    "parametric": lambda i: str(symbolic.parametric(i(1))),
    "marginals": lambda i: patterns.marginals([i(2), i(3)], i(1)).tolist(),
    "parities": lambda i: patterns.parities(i(3), i(2)).tolist(),
}


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8])
@pytest.mark.parametrize("name", CASES)
def test_a_result_is_the_same(name: str, kind: Callable[[int], Any]) -> None:
    found, expected = CASES[name](kind), CASES[name](int)
    assert found == expected
    assert repr(found) == repr(expected)


OTHERS = {
    *("alpha", "weights", "posterior", "costs", "constraints"),  # numbers or indices of any kind
    *("table", "table of costs", "prior", "OR", "bounds", "requirements", "losses"),
}
"""What does not take counts alone: `exact` has tests of its own."""


@pytest.mark.parametrize("wrong", [bool, float, np.bool_, np.float64, np.array, str])
@pytest.mark.parametrize("name", [name for name in CASES if name not in OTHERS])
def test_nothing_else_is_taken_for_an_integer(name: str, wrong: Callable[[int], Any]) -> None:
    """Neither is an array without axes."""
    with pytest.raises((ValueError, TypeError)):
        CASES[name](wrong)


@pytest.mark.parametrize("wrong", [bool, float, np.bool_, np.float64, np.array])
@pytest.mark.parametrize("name", ["alpha", "table", "table of costs", "prior", "OR"])
def test_nor_for_an_exact_number(name: str, wrong: Callable[[int], Any]) -> None:
    with pytest.raises(InexactNumber):
        CASES[name](wrong)

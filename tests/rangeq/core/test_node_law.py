"""The variance of a sum of nodes, against that of each oracle."""

from __future__ import annotations

import numpy as np
import pytest

from frequency.oracles.randomized_response import NAMED
from rangeq.core.levels import NodeLaw
from rangeq.core.tree import spread

SYMMETRIC = ("GRR", "SUE", "OUE", "SubsetSelection", "HRR")


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 8.0])
@pytest.mark.parametrize("domain", [2, 3, 4, 9, 16])
@pytest.mark.parametrize("name", NAMED)
def test_the_law_of_a_node_is_that_of_its_oracle(name, domain, epsilon) -> None:
    """Every set of nodes, from every population: exactly where an oracle treats nodes alike."""
    oracle, rng = NAMED[name](domain, epsilon), np.random.default_rng(domain)
    law, populations = NodeLaw.of(oracle), rng.dirichlet(np.full(domain, 0.3), size=5)
    for number in range(1, domain):
        # Over finite fields: the mean over many ways to choose them, nearly.
        sets = [rng.permutation(domain) < number for _ in range(1 if name in SYMMETRIC else 300)]
        w = np.array(sets, dtype=float)
        for f in populations if name in SYMMETRIC else [np.full(domain, 1 / domain)]:
            exact = oracle.linear_variance(1, w, f) + spread(w, f)
            found = law.drawn(number, w @ f)
            near = {"rel": 1e-6} if name in SYMMETRIC else {"rel": 0.15}
            assert found.mean() == pytest.approx(exact.mean(), **near), (number, f)
    centred = rng.normal(size=(4, domain))
    centred -= centred.mean(axis=1, keepdims=True)
    if name in SYMMETRIC:
        for f in populations:
            exact = oracle.linear_variance(1, centred, f) + spread(centred, f)
            square = (centred**2).sum(axis=1)
            found = law.contrast * square + law.held * (centred**2 @ f) - (centred @ f) ** 2
            assert found == pytest.approx(exact, rel=1e-6)
            assert found + 1e-3 * square * law.contrast != pytest.approx(exact, rel=1e-6)

"""Protocols for marginals, and domains, for their tests."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from frequency.marginals import (
    Domain,
    InpHT,
    InpHTCMS,
    InpOLH,
    InpPS,
    InpRR,
    MargHT,
    MargPS,
    MargRR,
)
from tests.contracts.oracle import LN3
from tests.frequency.marginals.twins import parts_of

INPUT, VIEW = (InpRR, InpPS, InpOLH, InpHTCMS), (MargRR, MargPS, MargHT)
ALL = (*INPUT, *VIEW, InpHT)
B2, B3, B4 = (Domain.binary(*"abcd"[:d]) for d in (2, 3, 4))
MIXED = Domain({"a": 2, "b": 3, "c": 1, "d": 2})
SEVEN = Domain({"two": 2, "three": 3, "four": 4, "one": 1, "five": 5, "six": 6, "seven": 7})
SMALL = [
    *[kind(B3, 2, 1.0) for kind in (InpRR, InpPS, InpOLH, MargRR, MargPS, MargHT, InpHT)],
    *[
        kind(B4, k, 0.5)
        for kind in (InpPS, MargRR, MargPS, MargHT, InpHT)
        for k in (1, 2, 4)
        if (kind, k) != (MargRR, 4)
    ],
    *[
        kind(Domain({"a": 3, "b": 2}), 2, LN3)
        for kind in (InpRR, InpPS, InpOLH, MargPS, MargHT, InpHT)
    ],
    *[kind(MIXED, 3, 2.0) for kind in (InpPS, MargHT, InpHT)],
    *[kind(MIXED, 2, 0.1) for kind in (MargRR, MargPS, MargHT, InpHT)],
    InpHT(Domain({"a": 5, "b": 4}), 2, 1.0),
    InpHT(Domain({"a": 6, "b": 4, "c": 2}), 2, 1.0),
    InpHT(Domain({"a": 7}), 1, 1.0),
    *[kind(Domain({"a": 1}), 1, 1.0) for kind in (InpPS, MargPS, InpHT)],
]


def named(protocol) -> str:
    return f"{type(protocol).__name__}-{'x'.join(map(str, protocol.domain.shape))}-k{protocol.k}"


small = pytest.mark.parametrize("protocol", SMALL, ids=named)


def make(kind, domain, k, epsilon, **more):
    return kind(
        domain, k, epsilon, **({"hashes": 3, "width": 4} if kind is InpHTCMS else {}), **more
    )


def sets_of(protocol, largest=6):
    """Sets of up to k attributes: all, and some in another order than the domain's."""
    names = list(protocol.domain)
    found = [view for size in range(1, protocol.k + 1) for view in combinations(names, size)]
    return [*found[-largest:], found[0], *([found[-1][::-1]] if protocol.k > 1 else [])]


def users_of(protocol, n):
    return [round(n * part.weight) for part in parts_of(protocol)]


def all_cells(estimate, sets):
    return np.concatenate([estimate.marginal(names).ravel() for names in sets])

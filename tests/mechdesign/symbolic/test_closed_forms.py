"""Named mechanisms for every alpha against their definitions at single alphas."""

from fractions import Fraction as Q
from itertools import combinations

import pytest

from mechdesign import Privacy, named
from mechdesign.properties import SEVEN
from mechdesign.symbolic import (
    explicit_fair,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    randomized_response,
    subset_selection,
    uniform,
)
from mechdesign.symbolic.semialgebraic import Region
from tests.mechdesign import brute
from tests.mechdesign.symbolic.alphas import ALL, NONE, TINY, near, rationals


def unary(k, a):
    """OUE from its definition: bits are independent, the own one is fair, every other is set with
    probability a/(1+a).
    """
    table = []
    for bits in range(1 << k):
        row = []
        for j in range(k):
            p = Q(1, 2)
            for y in range(k):
                if y != j:
                    p *= a / (1 + a) if bits >> y & 1 else 1 / (1 + a)
            row.append(p)
        table.append(row)
    return table


def hadamard_response(order, a):
    """HRR from Sylvester's construction of the matrix."""
    matrix = [[1]]
    while len(matrix) < order:
        matrix = [row + row for row in matrix] + [row + [-x for x in row] for row in matrix]
    return [
        [(1 if sign == x else a) / (1 + a) / (order - 1) for x in row]
        for row in matrix[1:]
        for sign in (1, -1)
    ]


def subsets(k, w, a):
    raw = [[Q(1) if j in chosen else a for j in range(k)] for chosen in combinations(range(k), w)]
    return [[entry / sum(row[0] for row in raw) for entry in row] for row in raw]


NAMED = [
    *(
        (f"GM {n}", geometric(n), lambda a, n=n: brute.geometric(n, a), "adjacent")
        for n in (0, 1, 2, 3, 5, 8, 12)
    ),
    *(
        (f"EM {n}", explicit_fair(n), lambda a, n=n: brute.explicit_fair(n, a), "adjacent")
        for n in (0, 1, 2, 3, 5, 8, 12)
    ),
    *((f"UM {n}", uniform(n), lambda a, n=n: brute.uniform(n), "adjacent") for n in (0, 1, 4)),
    (
        "RR",
        randomized_response(),
        lambda a: [[1 / (1 + a), a / (1 + a)], [a / (1 + a), 1 / (1 + a)]],
        "adjacent",
    ),
    *((f"GRR {k}", krr(k), lambda a, k=k: named.krr(k, alpha=a).table, "all") for k in (1, 2, 5)),
    *((f"OUE {k}", optimized_unary(k), lambda a, k=k: unary(k, a), "all") for k in (1, 2, 4)),
    *((f"HRR {k}", hadamard(k), lambda a, k=k: hadamard_response(k, a), "all") for k in (2, 4, 8)),
    *(
        (f"SS {k} {w}", subset_selection(k, w), lambda a, k=k, w=w: subsets(k, w, a), "all")
        for k, w in ((1, 1), (4, 1), (5, 2), (6, 3))
    ),
]


named_mechanisms = pytest.mark.parametrize(
    ("table", "twin", "neighbours"), [case[1:] for case in NAMED], ids=[case[0] for case in NAMED]
)


@named_mechanisms
def test_named_mechanisms_are_what_their_definitions_say(table, twin, neighbours):
    for alpha in [*rationals(1, 4), TINY, 1 - TINY, Q(1)]:
        mechanism = table.at(alpha)
        assert [list(row) for row in mechanism.table] == [list(row) for row in twin(alpha)]
        assert mechanism.privacy == Privacy(alpha=alpha, neighbours=neighbours)
        assert tuple(tuple(entry(alpha) for entry in row) for row in table.table) == mechanism.table


@named_mechanisms
def test_named_mechanisms_are_private_for_every_alpha(table, twin, neighbours):
    audit = table.audit()
    assert audit.holds
    assert audit.private == ALL
    assert audit.violations == ()
    for alpha in rationals(2, 4):
        single = table.at(alpha).audit()
        assert brute.is_private(twin(alpha), alpha, neighbours)
        assert audit.tight == (single.ratio == 1 / alpha)


@named_mechanisms
def test_properties_solved_for_alpha_agree_with_the_check_at_one_alpha(table, twin, neighbours):
    found = table.properties()
    ends = [alpha for region in found.values() for point in region.points for alpha in near(point)]
    for alpha in rationals(3, 12) + ends:
        mechanism = table.at(alpha)
        assert {short: alpha in region for short, region in found.items()} == mechanism.properties()


@pytest.mark.parametrize("n", range(2, 13))
def test_conditions_of_gm_and_em(n):
    """Lemmas 12 - 15, for all alpha at once: GM is CM and CH iff alpha <= 1/2, WH iff n >= 2
    alpha/(1 - alpha), never fair.
    """
    half = Region.of((Q(1, 2),), (True, True, False))
    threshold = Region.of((Q(n, n + 2),), (True, True, False))
    assert geometric(n).properties() == {
        "RH": ALL,
        "RM": ALL,
        "CH": half,
        "CM": half,
        "F": NONE,
        "WH": threshold,
        "S": ALL,
    }
    assert set(explicit_fair(n).properties().values()) == {ALL}
    for item in SEVEN:
        for alpha in near(Q(1, 2)) + near(Q(n, n + 2)):
            assert (alpha in geometric(n).where(item)) == item.holds(
                named.geometric(n, alpha=alpha)
            )

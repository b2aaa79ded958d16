"""Formulas in alpha against the exact mechanisms and designs at single alphas, which know nothing
of formulas.
"""

from dataclasses import replace
from fractions import Fraction as Q
from itertools import combinations, pairwise, product
from random import Random
from typing import Any

import matplotlib.mathtext
import pytest
from flint import fmpq, fmpq_mat, fmpz_poly

from mechdesign import (
    Constraints,
    Design,
    InvalidMechanism,
    Mechanism,
    Metric,
    NotSquare,
    Privacy,
    Property,
    SolverFailure,
    design,
    named,
)
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial, prior
from mechdesign.lp.basis import to_fmpq, to_fraction
from mechdesign.properties import SEVEN, OutputRatio
from mechdesign.symbolic import (
    ALPHA,
    NotPolynomial,
    RationalFunction,
    SymbolicMechanism,
    explain,
    explicit_fair,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    parametric,
    randomized_response,
    subset_selection,
    uniform,
)
from mechdesign.symbolic.program import solved
from mechdesign.symbolic.semialgebraic import (
    AlphaInterval,
    Region,
    Root,
    between,
    nonnegative,
    roots,
    where,
)
from tests.mechdesign import brute

ONE = fmpz_poly([1])
ALL, NONE = Region((), (True,)), Region((), (False,))
TINY = Q(1, 10**9)


def rationals(seed, size, largest=60):
    """Random rational numbers in (0, 1)."""
    random = Random(seed)
    return [
        Q(random.randint(1, d - 1), d) for d in (random.randint(2, largest) for _ in range(size))
    ]


def near(point):
    """Rational numbers in (0, 1) very close to a point on both sides, and the point if it is
    rational.
    """
    low, high = point.bracket(TINY) if isinstance(point, Root) else (point, point)
    return [alpha for alpha in (low - TINY, low, high, high + TINY) if 0 < alpha < 1]


def evaluated(polynomial, alpha):
    return to_fraction(fmpq(1) * polynomial(to_fmpq(alpha)))


# --- numbers, sets and formulas -------------------------------------------------------------------


def random_polynomial(random):
    """A product of small factors, with rational, irrational and repeated roots."""
    polynomial = ONE
    for _ in range(random.randint(1, 3)):
        factor = fmpz_poly([random.randint(-9, 9) for _ in range(random.randint(1, 4))])
        polynomial *= factor ** random.choice([1, 1, 2, 3])
    return polynomial


@pytest.mark.parametrize("seed", range(40))
def test_where_is_right_at_every_alpha_tried(seed):
    """The region of random conditions contains an alpha if and only if the conditions hold there,
    in plain arithmetic.
    """
    random = Random(seed)
    conditions = [random_polynomial(random) for _ in range(random.randint(1, 3))]
    nonzero = [p for p in [random_polynomial(random)] if p]
    region = where(conditions, nonzero)
    for alpha in rationals(seed, 60) + [a for point in region.points for a in near(point)]:
        holds = all(evaluated(p, alpha) >= 0 for p in conditions) and all(
            evaluated(p, alpha) != 0 for p in nonzero
        )
        assert (alpha in region) == holds
        assert (alpha in region.complement()) == (not holds)
        assert any(alpha in interval for interval in region.intervals) == holds
    assert region & region.complement() == NONE
    assert region & ALL == region == region.complement().complement()
    assert region == where([p * 7 for p in conditions[::-1]], nonzero)
    assert all(
        region.covers(interval) and interval == region.around(interval.low)
        for interval in region.intervals
        if all(interval.closed)
    )


@pytest.mark.parametrize("seed", range(20))
def test_the_denominator_decides_signs(seed):
    random = Random(seed)
    top, bottom = random_polynomial(random), random_polynomial(random) or ONE
    region = nonnegative([top], bottom)
    for alpha in rationals(seed, 50) + [a for point in region.points for a in near(point)]:
        value = evaluated(bottom, alpha)
        assert (alpha in region) == (value != 0 and evaluated(top, alpha) / value >= 0)


def test_roots_that_are_close_are_told_apart():
    """Mignotte's polynomial has two roots within 1e-5 of 1/10; a change of sign proves that there
    is one in each bracket.
    """
    polynomial = fmpz_poly([0] * 9 + [1]) - 2 * fmpz_poly([-1, 10]) ** 2
    first, second = sorted(roots(polynomial))
    assert first < Q(1, 10) < second
    assert 0 < float(second) - float(first) < 1e-5
    for root in (first, second):
        low, high = root.bracket(Q(1, 10**30))
        assert high - low <= Q(1, 10**30)
        assert evaluated(polynomial, low) * evaluated(polynomial, high) < 0
    assert first < between(first, second) < second
    assert first != second
    assert first in {first}
    assert where([polynomial]).intervals == (AlphaInterval.of(first, second),)


def test_single_points_and_printing():
    golden = fmpz_poly([-1, 1, 1])
    square = where([-(golden**2) * fmpz_poly([-1, 3]) ** 2])
    assert str(square) == "α = 1/3 or α = 0.618033... (where α^2 + α - 1 = 0)"
    assert [interval.low == interval.high for interval in square.intervals] == [True, True]
    assert square.points[1] in square
    assert square.intervals[0].latex() == r"\alpha = \frac{1}{3}"
    assert str(ALL) == "all α"
    assert str(NONE) == "no α"
    assert NONE.latex() == r"\emptyset"
    assert not NONE
    half_open = where([ONE], [golden])
    assert str(half_open).startswith("0 < α < 0.618033...")
    assert half_open.intervals[0].closed == (False, False)
    assert not half_open.covers(AlphaInterval.of(Q(1, 2), Q(2, 3)))
    assert half_open.covers(half_open.intervals[0])


@pytest.mark.parametrize(
    ("top", "bottom", "text", "latex"),
    [
        ([0, 2, -2], [1, 0, -1], "2α/(1 + α)", r"\frac{2\alpha}{1 + \alpha}"),
        ([0], [3, 1], "0", "0"),
        ([3], [-6], "-1/2", r"\frac{-1}{2}"),
        ([-2, 8], [0, 9], "2(4α - 1)/(9α)", r"\frac{2(4\alpha - 1)}{9\alpha}"),
        ([1, 2, 1], [1], "(1 + α)^2", r"(1 + \alpha)^{2}"),
        ([1, 1], [1], "1 + α", r"1 + \alpha"),
        ([0, 0, -1], [2], "-α^2/2", r"\frac{-\alpha^{2}}{2}"),
        ([1], [1, -2], "-1/(2α - 1)", r"\frac{-1}{2\alpha - 1}"),
        ([-1, -1], [1], "-(1 + α)", r"-(1 + \alpha)"),
        ([-1, 3, -1], [0, 3], "(-1 + 3α - α^2)/(3α)", r"\frac{-1 + 3\alpha - \alpha^{2}}{3\alpha}"),
    ],
)
def test_formulas_in_text_and_latex(top, bottom, text, latex):
    formula = RationalFunction(fmpz_poly(top), fmpz_poly(bottom))
    assert str(formula) == text
    assert formula.latex() == latex
    assert formula._repr_latex_() == f"${latex}$"
    assert formula == RationalFunction(
        fmpz_poly(top) * fmpz_poly([-5, 7]), fmpz_poly(bottom) * fmpz_poly([-5, 7])
    )
    assert formula("1/3") == evaluated(fmpz_poly(top), Q(1, 3)) / evaluated(
        fmpz_poly(bottom), Q(1, 3)
    )
    matplotlib.mathtext.MathTextParser("path").parse(f"${latex}$")


def test_a_pole_has_no_value():
    with pytest.raises(ZeroDivisionError):
        RationalFunction(ONE, 1 - 2 * ALPHA)("1/2")
    with pytest.raises(ZeroDivisionError):
        RationalFunction(ONE, fmpz_poly([]))


# --- the named mechanisms -------------------------------------------------------------------------


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
    *((f"GRR {k}", krr(k), lambda a, k=k: named.krr(k, a).table, "all") for k in (1, 2, 5)),
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
        assert mechanism.privacy == Privacy(alpha, neighbours)
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
            assert (alpha in geometric(n).where(item)) == item.holds(named.geometric(n, alpha))


def test_losses_as_formulas():
    for n, loss in product((0, 1, 4), (L0(), L1(), L2(d=1), L0(prior=[1]))):
        if loss.prior is not None and n:
            loss = L2(prior=binomial(n, "1/3"))
        for table in (geometric(n), explicit_fair(n), uniform(n)):
            formula = table.loss(loss)
            assert all(formula(alpha) == table.at(alpha).loss(loss) for alpha in rationals(n, 5))
    assert str(geometric(5).loss(L0())) == "5α/(3(1 + α))"
    with pytest.raises(ValueError, match="worst case"):
        geometric(2).loss(L0(worst_case=True))


def moved(table, source, target, j, amount):
    """The table with some of column j moved from one output to another."""
    weights = [list(row) for row in table.weights]
    weights[source][j] -= amount
    weights[target][j] += amount
    return SymbolicMechanism(weights, table.denominator, table.neighbours)


@pytest.mark.parametrize(
    ("wrong", "description"),
    [
        (
            moved(geometric(3), 1, 2, 0, ALPHA * (1 - ALPHA) ** 2),
            "alpha^2 - alpha^3 where alpha - alpha^2 belongs: never private",
        ),
        (moved(geometric(2), 0, 1, 0, (1 - 3 * ALPHA) * ALPHA**2), "private for some alpha only"),
        (moved(krr(3), 1, 0, 0, (2 * ALPHA - 1) ** 2 * ALPHA**5), "private at alpha = 1/2 only"),
        (moved(uniform(2), 0, 1, 1, 3 * ALPHA - 1), "a negative entry"),
    ],
)
def test_a_wrong_entry_is_found_with_the_alpha_at_which_it_breaks_privacy(wrong, description):
    """Mass moved within a column keeps the sums; the audit must say for which alpha privacy is
    lost, and in which entries.
    """
    audit = wrong.audit()
    assert not audit.holds, description
    assert audit.violations
    for alpha in rationals(5, 40) + [a for point in audit.private.points for a in near(point)]:
        values = [[entry(alpha) for entry in row] for row in wrong.table]
        negative = min(min(row) for row in values) < 0
        private = not negative and brute.is_private(values, alpha, wrong.neighbours)
        assert (alpha in audit.private) == private
        for i, (j, k), region in audit.violations:
            assert (alpha in region) == (values[i][k] < alpha * values[i][j])
        if negative:
            with pytest.raises(InvalidMechanism, match="negative"):
                wrong.at(alpha)
        else:
            assert wrong.at(alpha).audit().holds == private


RAMP = Metric([[0, 1, 3], [1, 0, 2], [3, 2, 0]])  # at distance d, alpha^d is allowed
NEAR = Metric([[0, 1, 1], [1, 0, 1], [1, 1, 0]])
PARTLY = Metric([[0, 5, None], [5, 0, 2], [None, 2, 0]])


@pytest.mark.parametrize("metric", [RAMP, NEAR, PARTLY], ids=["ramp", "near", "partly"])
@pytest.mark.parametrize(
    "table", [geometric(2), uniform(2), krr(3), explicit_fair(2)], ids=["GM", "UM", "GRR", "EM"]
)
def test_under_a_metric_the_audit_allows_a_power_of_alpha(table, metric):
    table = SymbolicMechanism(table.weights, table.denominator, metric)
    audit = table.audit()
    for alpha in rationals(11, 20) + [a for point in audit.private.points for a in near(point)]:
        values = [[entry(alpha) for entry in row] for row in table.table]
        broken = {
            (i, (j, k))
            for i, j, k in product(range(3), repeat=3)
            if metric.distances[j][k] is not None
            and values[i][k] < alpha ** metric.distances[j][k] * values[i][j]
        }
        assert {(i, pair) for i, pair, region in audit.violations if alpha in region} == broken
        assert (alpha in audit.private) == (not broken) == table.at(alpha).audit().holds


def test_what_is_tight_under_a_metric():
    line = Metric([[abs(j - k) for k in range(4)] for j in range(4)])
    doubled = Metric([[2 * abs(j - k) for k in range(4)] for j in range(4)])
    for metric, tight in ((line, True), (doubled, False)):
        audit = SymbolicMechanism(geometric(3).weights, geometric(3).denominator, metric).audit()
        assert audit.holds
        assert audit.tight == tight


def test_planted_errors_leave_exactly_the_alpha_that_they_should():
    third = moved(krr(3), 1, 0, 0, (2 * ALPHA - 1) ** 2 * ALPHA**5)
    assert str(third.audit().private) == "α = 1/2"
    assert not moved(geometric(3), 1, 2, 0, ALPHA * (1 - ALPHA) ** 2).audit().private


def test_tables_that_are_none_are_refused():
    with pytest.raises(InvalidMechanism, match=r"column 1 sums to 2α/\(1 \+ α\)"):
        SymbolicMechanism(((ONE, ALPHA), (ALPHA, ALPHA)), 1 + ALPHA)
    with pytest.raises(InvalidMechanism, match="rows of one length"):
        SymbolicMechanism(((ONE,), (ALPHA, ALPHA)), 1 + ALPHA)
    with pytest.raises(InvalidMechanism, match="0"):
        SymbolicMechanism(((fmpz_poly([0]),),), fmpz_poly([0]))
    with pytest.raises(ValueError, match="names input 7"):
        SymbolicMechanism(((ONE,),), ONE, [(0, 7)])
    for call in (
        lambda: geometric(-1),
        lambda: explicit_fair(True),
        lambda: krr(0),
        lambda: hadamard(6),
        lambda: hadamard(1),
    ):
        with pytest.raises(ValueError, match="at least"):
            call()
    with pytest.raises(ValueError, match="from 1 to k = 3"):
        subset_selection(3, 4)


def test_equal_tables_are_equal_whatever_their_denominator():
    doubled = SymbolicMechanism(
        tuple(tuple(2 * w for w in row) for row in geometric(3).weights),
        2 * geometric(3).denominator,
    )
    assert doubled == geometric(3)
    assert hash(doubled) == hash(geometric(3))
    assert doubled != explicit_fair(3)
    assert geometric(1) == explicit_fair(1) == randomized_response()
    assert krr(2) != randomized_response()  # neighbours differ in name
    assert subset_selection(4, 1).table == krr(4).table


class Quadratic(Property):
    """(1 + alpha^2) P[0, 0] >= 2 alpha P[1, 1]: a coefficient of degree two, as in the test of
    section 6.6.3.
    """

    short = "QUADRATIC"

    def constraints(self, at, privacy):
        yield Constraints(
            at[[0, 1], [0, 1]].reshape(1, 2),
            (1 + privacy.alpha**2, -2 * privacy.alpha),
            Q(0),
            False,
        )


class Rational(Property):
    """A coefficient that is no polynomial in alpha."""

    short = "RATIONAL"

    def constraints(self, at, privacy):
        yield Constraints.at_least(at[0, 0], at[0, 0], 1 / privacy.alpha)


class Moving(Property):
    """Rows about other entries for other alpha."""

    short = "MOVING"

    def constraints(self, at, privacy):
        i = int(privacy.alpha > Q(1, 2))
        yield Constraints.at_least(at[i, i], at[0, 0])


class Counting(Property):
    """More rows for larger alpha."""

    short = "COUNTING"

    def constraints(self, at, privacy):
        for _ in range(1 + int(privacy.alpha > Q(1, 2))):
            yield Constraints.at_least(at[0, 0], at[1, 1])


def test_properties_of_your_own():
    for item, table in product(
        (OutputRatio(), OutputRatio(Q(1, 2)), Quadratic()),
        (geometric(3), explicit_fair(4), optimized_unary(2)),
    ):
        region = table.where(item)
        for alpha in rationals(7, 15) + [a for point in region.points for a in near(point)]:
            assert (alpha in region) == item.holds(table.at(alpha))
    for item in (Rational(), Moving(), Counting()):
        with pytest.raises(NotPolynomial):
            geometric(2).where(item)
        with pytest.raises(NotPolynomial):
            parametric(2, properties=[item])


def test_distances_are_followed_up_to_a_power():
    far = Metric([[0, 33], [33, 0]])
    for ask in (
        lambda: parametric(1, neighbours=far),
        lambda: explain(design(1, Privacy("9/10", far))),
    ):
        with pytest.raises(NotPolynomial, match="degree at most 32"):
            ask()
    # Which no distance enters
    assert SymbolicMechanism(uniform(1).weights, uniform(1).denominator, far).where("F") == ALL
    (piece,) = parametric(1, neighbours=Metric([[0, 32], [32, 0]]))
    assert piece.objective == RationalFunction(ALPHA**32, 1 + ALPHA**32)  # randomized response


# --- optimal mechanisms ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_systems_of_polynomials_aresolved(seed):
    """Substitution: the matrix times the solution is the right side, identically."""
    random = Random(seed)
    size = random.randint(1, 6)
    square = [
        [
            fmpz_poly([random.randint(-3, 3) for _ in range(random.randint(0, 3))])
            for _ in range(size)
        ]
        for _ in range(size)
    ]
    for k in range(size):
        square[k][k] += fmpz_poly([0, 0, 0, 5])
    right = [fmpz_poly([random.randint(-3, 3), 1]) for _ in range(size)]
    solution, denominator = solved(square, right)
    for row, side in zip(square, right, strict=True):
        assert (
            sum((a * x for a, x in zip(row, solution, strict=True)), fmpz_poly([0]))
            == side * denominator
        )
    alpha = fmpq(2, 7)
    numbers = fmpq_mat(size, size, [p(alpha) for row in square for p in row])
    values = numbers.solve(fmpq_mat(size, 1, [p(alpha) for p in right])).entries()
    assert values == [x(alpha) / denominator(alpha) for x in solution]


STATEMENTS = [
    (0, L1(), ["WH"], "adjacent"),
    (1, L0(), [], "adjacent"),
    (1, L2(), ["WH", "CM"], "all"),
    (2, L0(), ["WH"], "adjacent"),
    (2, L1(), ["WH", "RM", "CM"], "adjacent"),
    (3, L2(), ["CM", "RM", "S"], "adjacent"),
    (4, L0(), ["WH"], "adjacent"),
    (4, L1(), [], "adjacent"),
    (4, L2(), ["WH"], "adjacent"),
    (4, L0(), ["F"], "adjacent"),
    (4, L0(), [], "all"),
    (4, L0(d=1), ["WH", "CM"], 2),
    (4, L0(), ["OR"], "adjacent"),
    (4, L0(), ["OR:1/2"], "adjacent"),
    (4, L1(prior=binomial(4, "1/3")), ["S", "F"], "adjacent"),
    (4, L1(prior=prior([1, 0, 0, 0, 0])), [], "adjacent"),
    (4, L2(worst_case=True), ["WH"], "adjacent"),
    (4, Power("3/2", worst_case=True), ["CH"], "adjacent"),
    (3, Power("1/2"), ["OR:1/3"], ((0, 1), (2, 3))),
    (4, L0(), [], ((0, 1), (3, 4))),
    (2, L0(), ["WH"], RAMP),
    (2, L1(), ["OR"], PARTLY),
    (3, L0(), ["S"], Metric([[min(abs(j - k), 2) for k in range(4)] for j in range(4)])),
    (3, Costs([[0, 1, 2, 3], [2, 0, 1, 5], [3, 1, 0, 1], [4, 2, 7, 0]]), ["RH"], "adjacent"),
    (6, L0(), ["WH", "RM", "CM", "S"], "adjacent"),
    (8, L0(), ["WH"], "adjacent"),
    (8, L1(), ["WH", "RM", "CM", "S"], "adjacent"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "loss", "properties", "neighbours"), STATEMENTS)
def test_pieces_are_certified_optima_at_every_alpha_tried(n, loss, properties, neighbours):
    """Random alphas, and alphas within 1e-9 of every breakpoint on both sides: a certified design
    costs exactly as much.
    """
    pieces = parametric(n, loss, properties, neighbours=neighbours)
    assert pieces[0].interval.low == 0
    assert pieces[-1].interval.high == 1
    assert all(before.interval.high == after.interval.low for before, after in pairwise(pieces))
    assert all(piece.verify() for piece in pieces)
    for piece in pieces:
        assert piece.interval == AlphaInterval.of(piece.interval.low, piece.interval.high)
        inside = [between(piece.interval.low, piece.interval.high)]
        inside += [
            a
            for end in (piece.interval.low, piece.interval.high)
            for a in near(end)
            if a in piece.interval
        ][:4]
        for alpha in inside[: 3 if n == 8 else 5]:
            best = design(n, Privacy(alpha, neighbours), loss, properties)
            mechanism = piece.mechanism.at(alpha)
            assert best.certificate.gap == 0
            assert piece.objective(alpha) == best.certificate.objective == mechanism.loss(loss)
            assert mechanism.audit().holds
            assert all(item.holds(mechanism) for item in best.certificate.properties)
    for alpha in rationals(n, 4):
        values = {piece.objective(alpha) for piece in pieces if alpha in piece.interval}
        assert values == {
            design(n, Privacy(alpha, neighbours), loss, properties).certificate.objective
        }


@pytest.mark.parametrize("seed", range(12))
def test_random_costs_in_the_worst_case(seed):
    """No symmetry, fractional costs, zeros in the table, ties: most bases are degenerate."""
    random = Random(seed)
    n = random.randint(2, 3)
    table = [
        [0 if i == j else Q(random.randint(0, 6), random.randint(1, 3)) for j in range(n + 1)]
        for i in range(n + 1)
    ]
    loss, properties = (
        Costs(table, worst_case=True),
        random.choice([[], ["CH"], ["RH"], ["F"], ["S"]]),
    )
    pieces = parametric(n, loss, properties)
    assert all(piece.verify() for piece in pieces)
    for alpha in rationals(seed, 3):
        values = {piece.objective(alpha) for piece in pieces if alpha in piece.interval}
        assert values == {design(n, Privacy(alpha), loss, properties).certificate.objective}


@pytest.mark.parametrize("properties", [["WH"], ["WH", "CM"], ["OR:1/2"], []])
@pytest.mark.parametrize("loss", [L0(), L1(), L1(worst_case=True)])
@pytest.mark.parametrize("alpha", [Q(1, 3), Q(1, 2), Q(2, 3), Q(9, 10)])
def test_explain_is_the_design_and_its_interval_is_maximal(alpha, loss, properties):
    """Half and two thirds are breakpoints. Just beyond an end the table is no longer feasible, or
    no longer the best.
    """
    found = design(4, Privacy(alpha), loss, properties)
    piece = explain(found)
    assert alpha in piece.interval
    assert piece.interval.low < piece.interval.high
    assert piece.mechanism.at(alpha) == found.mechanism
    assert piece.objective(alpha) == found.certificate.objective
    assert piece.verify()
    for end, outside in ((piece.interval.low, min), (piece.interval.high, max)):
        if 0 < end < 1:
            beyond = outside(near(end))
            best = design(4, Privacy(beyond), loss, properties)
            mechanism = (
                piece.mechanism.at(beyond) if beyond in piece.mechanism.audit().private else None
            )
            assert (
                mechanism is None
                or not all(item.holds(mechanism) for item in best.certificate.properties)
                or mechanism.loss(loss) > best.certificate.objective
            )


def test_explain_shows_table_interval_objective_and_properties():
    piece = explain(design(2, Privacy("2/5"), properties=["WH"]))
    assert (
        str(piece) == "The least L0() with WH, n = 2, where 0 < α ≤ 1/2, is 4α/(3(1 + α)):\n"
        "P[0, 0] = P[2, 2] = 1/(1 + α)\n"
        "P[0, 1] = P[2, 1] = α/(1 + α)\n"
        "P[0, 2] = P[2, 0] = α^2/(1 + α)\n"
        "P[1, 0] = P[1, 2] = α(1 - α)/(1 + α)\n"
        "P[1, 1] = (1 - α)/(1 + α)\n"
        "properties: RH, RM, CH, CM, WH, S"
    )
    wide = explain(design(4, Privacy("2/5"), properties=["WH"]))
    assert "properties: RH, RM, CH (0 < α ≤ 1/2), CM (0 < α ≤ 1/2), WH, S" in str(wide)
    for text in (piece.latex(), wide.latex(), wide.mechanism.latex()):
        assert text.count("{") == text.count("}")
        assert text.count(r"\begin{") == text.count(r"\end{") > 0
        assert text.count(r"\left(") == text.count(r"\right)") == 1
        assert "$" not in text
    assert r"\frac{\alpha(1 - \alpha)}{1 + \alpha} & \frac{1 - \alpha}{1 + \alpha}" in piece.latex()
    assert r"\text{CM} (0 < \alpha \le \frac{1}{2})" in wide.latex()
    assert piece._repr_latex_() == rf"$\displaystyle {piece.latex()}$"
    assert piece.mechanism._repr_latex_() == rf"$\displaystyle {piece.mechanism.latex()}$"
    parser = matplotlib.mathtext.MathTextParser("path")
    for entry in {entry for row in wide.mechanism.table for entry in row}:
        parser.parse(entry._repr_latex_())


def test_what_cannot_be_explained_is_refused():
    with pytest.raises(ValueError, match="alpha = 1"):
        explain(design(2, Privacy(1)))
    found = design(2, Privacy("9/10"), properties=["WH"])
    # Half of the optimum, half of another mechanism: feasible, but neither optimal nor a vertex.
    other = named.explicit_fair(2, "9/10").table
    mixed = Mechanism(
        [
            [(a + b) / 2 for a, b in zip(*rows, strict=True)]
            for rows in zip(found.mechanism.table, other, strict=True)
        ],
        found.mechanism.privacy,
    )
    certificate = replace(found.certificate, objective=mixed.loss(L0()))
    with pytest.raises(SolverFailure):
        explain(Design(mixed, certificate))
    tall = Mechanism([["1/2", "1/2"], ["1/4", "1/4"], ["1/4", "1/4"]], Privacy("9/10"))
    with pytest.raises(NotSquare):
        explain(Design(tall, found.certificate))


def test_pieces_that_lie_do_not_verify():
    """Each part of a piece replaced by something plausible and wrong."""
    low, high = parametric(3, L0(), ["WH"])[:2]
    proof, linear = low.proofs[0], parametric(3, L1())[0]
    lies = {
        "only for": replace(low, interval=AlphaInterval.of(Q(1, 10), Q(7, 10))),
        "the loss is": replace(low, mechanism=explicit_fair(3)),
        "the multipliers do not prove": replace(low, proofs=high.proofs),
        "prove a bound only for": replace(
            linear, proofs=(replace(linear.proofs[0], interval=AlphaInterval.of(Q(0), Q(9, 10))),)
        ),
        "nothing is proved beyond": replace(
            low, proofs=(replace(proof, interval=AlphaInterval.of(Q(0), Q(1, 2))),)
        ),
        "not symmetric": replace(low, mechanism=moved(low.mechanism, 0, 1, 0, ALPHA)),
    }
    for reason, piece in lies.items():
        verdict = piece.verify()
        assert not verdict
        assert reason in verdict.reason
    gap = tuple(replace(proof, interval=AlphaInterval.of(Q(k, 5), Q(k + 1, 5))) for k in (0, 2))
    assert "nothing is proved beyond 1/5" in replace(low, proofs=gap).verify().reason
    # Nothing protects input 2, so that only the signs of its own entries are left to break.
    unprotected = parametric(4, L0(), neighbours=[(0, 1), (3, 4)])[0]
    negative = moved(moved(unprotected.mechanism, 0, 2, 2, ALPHA), 4, 2, 2, ALPHA)
    assert replace(unprotected, mechanism=negative).verify().reason.endswith("only for no α")
    doubled = replace(
        proof, numerators=tuple(2 * y for y in proof.numerators), denominator=2 * proof.denominator
    )
    assert replace(low, proofs=(doubled,)).verify()


# --- closed forms ---------------------------------------------------------------------------------


def polynomial(*coefficients):
    return fmpz_poly(list(coefficients))


WEAKLY_HONEST = {
    2: [
        ((polynomial(0, 4), 3 * (1 + ALPHA)), 0, Q(1, 2)),
        ((2 * polynomial(-1, 4), 9 * ALPHA), Q(1, 2), 1),
    ],
    3: [
        ((polynomial(0, 3), 2 * (1 + ALPHA)), 0, Q(3, 5)),
        ((polynomial(-3, 8, 7), 8 * ALPHA * (1 + ALPHA)), Q(3, 5), 1),
    ],
    4: [
        ((polynomial(0, 8), 5 * (1 + ALPHA)), 0, Q(2, 3)),
        ((2 * polynomial(-2, 1, 11), 25 * ALPHA**2), Q(2, 3), 1),
    ],
}
"""n -> (loss, from alpha, to alpha): the closed forms of the weakly honest mechanism.

As docs/notation.md prints them.
"""


def objectives(pieces):
    """The least loss, piece by piece: pieces that differ in the table only are one."""
    merged: list[Any] = []
    for piece in pieces:
        if merged and merged[-1][0] == piece.objective:
            merged[-1] = (piece.objective, merged[-1][1], piece.interval.high)
        else:
            merged.append((piece.objective, piece.interval.low, piece.interval.high))
    return merged


@pytest.mark.parametrize("n", [2, 3, 4])
def test_closed_forms_of_the_weakly_honest_mechanism(n):
    assert objectives(parametric(n, L0(), ["WH"])) == [
        (RationalFunction(*pair), low, high) for pair, low, high in WEAKLY_HONEST[n]
    ]


def by_symmetry(denominator, *rows):
    """The table whose first rows, the middle one included, are given."""
    flat = [weight for row in rows for weight in row]
    size = len(rows[0])
    flat = flat[: (size**2 + 1) // 2]
    whole = flat + flat[: size**2 // 2][::-1]
    return SymbolicMechanism([whole[k : k + size] for k in range(0, size**2, size)], denominator)


HALF_OF_4 = (
    [c * ALPHA**2 for c in (ALPHA, ONE, ALPHA, ALPHA**2, ALPHA**3)],
    [c * ALPHA**2 for c in (ALPHA**2, ALPHA, ONE)],
)
TOP_OF_4 = [(2 - ALPHA) * c for c in (ONE, ALPHA, ALPHA**2)] + [ALPHA * polynomial(-2, 5, -1, -1)]

PUBLISHED = [
    (by_symmetry(3 * ALPHA, [ONE, ALPHA, ALPHA**2], [polynomial(-1, 3, -1), ALPHA]), "1/2 ≤ α < 1"),
    (
        by_symmetry(
            4 * ALPHA * (1 + ALPHA),
            [*((3 - ALPHA) * ALPHA**k for k in range(3)), polynomial(-3, 5, 3, -2, -1)],
            [c * ALPHA * (1 + ALPHA) for c in (ALPHA, ONE, ALPHA, ALPHA**2)],
        ),
        "3/5 ≤ α < 1",
    ),
    (
        by_symmetry(5 * ALPHA**2, [*TOP_OF_4, polynomial(-2, 1, 5, -1, -1, -1)], *HALF_OF_4),
        "2/3 ≤ α ≤ 0.881239... (where α^3 + 2α^2 + 2α - 4 = 0)",
    ),
    (
        by_symmetry(
            5 * ALPHA**2,
            [*TOP_OF_4, polynomial(-2, 5, -1, -1)],
            [*HALF_OF_4[0][:4], ALPHA * (2 - ALPHA) * polynomial(-2, 2, 1)],
            HALF_OF_4[1],
        ),
        "0.881239... (where α^3 + 2α^2 + 2α - 4 = 0) ≤ α < 1",
    ),
]
"""The tables of docs/notation.md beyond GM, and where they are optimal."""


@pytest.mark.parametrize(("table", "alphas"), PUBLISHED)
def test_published_tables_of_the_weakly_honest_mechanism(table, alphas):
    """Private and weakly honest exactly where docs/notation.md says, at the least possible loss."""
    n = table.inputs - 1
    assert str(table.audit().private & table.where("WH")) == alphas
    assert table.where("S") == ALL
    assert table.loss(L0()) == RationalFunction(*WEAKLY_HONEST[n][1][0])


def bound_for_weak_honesty(n, alpha):
    """docs/notation.md: the middle column, or the mean of the middle two, bounds P[0, 0] + P[n, n];
    other diagonal entries are least.
    """
    m, odd = divmod(n, 2)
    inner = sum(alpha**k for k in range(1, m))
    if odd:
        ends = (2 - Q(2, n + 1) * (1 + alpha) * sum(alpha**k for k in range(m))) / (
            alpha**m * (1 + alpha)
        )
    else:
        ends = (1 - Q(1, n + 1) * (1 + 2 * inner)) / alpha**m
    return 1 - (Q(n - 1, n + 1) + ends) / (n + 1)


def bound_for_column_monotonicity(n, alpha):
    m, odd = divmod(n, 2)
    powers = [alpha**-k for k in range(m + 1)]
    trace = 4 * sum(powers) / (1 + alpha) if odd else 2 * sum(powers) - 1
    return 1 - trace / (n + 1) ** 2


@pytest.mark.parametrize("n", range(2, 11))
def test_the_closed_form_for_every_number_of_people(n):
    """WH alone: GM's loss up to n/(n+2), from there on the bound of docs/notation.md, which is thus
    attained. Asking for RM and S as well never costs anything, at no alpha.
    """
    low, high = objectives(parametric(n, L0(), ["WH"]))
    threshold = Q(n, n + 2)
    assert low == (geometric(n).loss(L0()), 0, threshold)
    assert high[1:] == (threshold, 1)
    # Rational functions of these degrees that agree at so many points are one.
    alphas = [Q(k, 3 * n + 7) for k in range(1, 3 * n + 7)]
    assert all(high[0](alpha) == bound_for_weak_honesty(n, alpha) for alpha in alphas)
    if n <= 6:
        assert objectives(parametric(n, L0(), ["WH", "RM", "S"])) == [low, high]


@pytest.mark.parametrize("n", range(2, 9))
def test_the_closed_form_with_column_monotonicity(n):
    """WH + RM + CM: GM's loss up to 1/2, the bound of docs/notation.md from m/(m+1) on, m = n // 2.

    Between them the formulas are others.
    """
    pieces = objectives(parametric(n, L0(), ["WH", "RM", "CM", "S"]))
    m = n // 2
    assert pieces[0] == (geometric(n).loss(L0()), 0, Q(1, 2))
    assert pieces[-1][1:] == (Q(m, m + 1), 1)
    assert all(
        pieces[-1][0](Q(k, 3 * n + 7)) == bound_for_column_monotonicity(n, Q(k, 3 * n + 7))
        for k in range(1, 3 * n + 7)
    )
    assert len(pieces) == {2: 2, 3: 2, 4: 3, 5: 3}.get(n, len(pieces))


@pytest.mark.parametrize("n", [2, 3, 5])
def test_weakly_honest_is_less_than_fair_at_every_alpha(n):
    """Section 6.7.1 says that they become equal for large alpha; the difference is positive on all
    of (0, 1), and 0 only at 1.
    """
    fair = explicit_fair(n).loss(L0())
    for piece in parametric(n, L0(), ["WH", "RM", "CM"]):
        worse = (
            piece.objective.numerator * fair.denominator
            - fair.numerator * piece.objective.denominator
        )
        assert (
            not nonnegative([worse], piece.objective.denominator * fair.denominator)
            & piece.interval.region
        )

"""Structural properties: names, implications, and constraints against their definitions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mechdesign.properties as properties
from mechdesign import (
    CertificateRejected,
    Constraints,
    InexactNumber,
    Mechanism,
    NotSquare,
    Privacy,
    Property,
    design,
    named,
)
from mechdesign.losses import L0, L1
from mechdesign.optimisation.formulation import mechanism_program
from mechdesign.properties import (
    SEVEN,
    ColumnHonesty,
    ColumnMonotone,
    Fairness,
    OutputRatio,
    RowHonesty,
    RowMonotone,
    Symmetry,
    WeakHonesty,
    implied,
    irredundant,
    resolve,
)
from tests.mechdesign.programs import HALF

SETTINGS = settings(derandomize=True, deadline=None, max_examples=150)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("RH", RowHonesty()),
        ("RM", RowMonotone()),
        ("CH", ColumnHonesty()),
        ("CM", ColumnMonotone()),
        ("F", Fairness()),
        ("WH", WeakHonesty()),
        ("S", Symmetry()),
        ("OR", OutputRatio()),
        ("OR:9/10", OutputRatio("9/10")),
        ("OR:0.9", OutputRatio(Fraction(9, 10))),
        (WeakHonesty, WeakHonesty()),
        (OutputRatio, OutputRatio()),
        (Symmetry(), Symmetry()),
        (OutputRatio("1/2"), OutputRatio("2/4")),
    ],
    ids=str,
)
def test_resolve(item, expected):
    found = resolve(item)
    assert found == expected
    assert type(found) is type(expected)
    assert hash(found) == hash(expected)
    assert resolve(found.text) == found


def test_different_properties_differ():
    every = [*SEVEN, OutputRatio(), OutputRatio("1/2"), OutputRatio("1/3")]
    for a, b in itertools.combinations(every, 2):
        assert a != b
    assert len(set(every)) == len(every)


@pytest.mark.parametrize(
    "item", ["XX", "", "wh", "WH ", ":", 3, None, int, b"WH", ["WH"]], ids=repr
)
def test_unknown_names(item):
    with pytest.raises(ValueError, match="unknown property"):
        resolve(item)
    with pytest.raises(ValueError, match="unknown property"):
        design(1, HALF, properties=[item])


@pytest.mark.parametrize("item", ["OR:", "OR:x", "OR:0", "OR:2", "OR:-1/2", "OR:1/0"])
def test_bad_parameters(item):
    with pytest.raises(ValueError, match="beta must"):
        resolve(item)


def test_float_parameters():
    with pytest.raises(InexactNumber):
        OutputRatio(0.9)


@pytest.mark.parametrize("item", ["WH:1", "S:"])
def test_parameters_where_there_are_none(item):
    with pytest.raises(ValueError, match=r"WH|S"):
        resolve(item)


def test_a_very_long_parameter_has_a_text():
    item = OutputRatio(Fraction(1, 10**5000))
    assert resolve(item.text) == item


def test_asking_twice_is_asking_once():
    once = design(2, Privacy(alpha="9/10"), L1(), ["WH"])
    twice = design(2, Privacy(alpha="9/10"), L1(), ["WH", WeakHonesty, WeakHonesty(), "WH"])
    assert twice.certificate == once.certificate
    assert twice.certificate.properties == (WeakHonesty(),)


def test_two_parameters_of_one_property():
    both, narrow = (
        design(2, HALF, properties=names) for names in (["OR:1/2", "OR:2/3"], ["OR:2/3"])
    )
    assert both.certificate.objective == narrow.certificate.objective
    assert {"OR:1/2 0", "OR:2/3 1"} <= {
        group.name
        for group in mechanism_program(
            3, 3, HALF, L0(), [OutputRatio("1/2"), OutputRatio("2/3")]
        ).constraints
    }
    assert both.certificate.verify(both.mechanism)


# The definitions of thesis 6.4, entry by entry, by a pair of loops each.


def row_honest(p, n):
    return all(p[i][i] >= p[i][j] for i in range(n) for j in range(n))


def row_monotone(p, n):
    return all(
        p[i][j] >= p[i][k]
        for i in range(n)
        for j in range(n)
        for k in range(n)
        if k < j <= i or i <= j < k
    )


def column_honest(p, n):
    return all(p[j][j] >= p[i][j] for i in range(n) for j in range(n))


def column_monotone(p, n):
    return all(
        p[i][j] >= p[k][j]
        for j in range(n)
        for i in range(n)
        for k in range(n)
        if k < i <= j or j <= i < k
    )


def fair(p, n):
    return len({p[i][i] for i in range(n)}) == 1


def weakly_honest(p, n):
    return all(p[i][i] >= Fraction(1, n) for i in range(n))


def symmetric(p, n):
    return all(p[i][j] == p[n - 1 - i][n - 1 - j] for i in range(n) for j in range(n))


def output_ratio(p, n, beta):
    return all(
        beta * p[i][j] <= p[i + s][j]
        for s in (1, -1)
        for i in range(n)
        for j in range(n)
        if 0 <= i + s < n
    )


DEFINITIONS = dict(
    zip(
        ("RH", "RM", "CH", "CM", "F", "WH", "S"),
        (row_honest, row_monotone, column_honest, column_monotone, fair, weakly_honest, symmetric),
        strict=True,
    )
)


@st.composite
def square_tables(draw):
    """Tables that have a property often enough: named ones, small random ones, blends, symmetrised
    ones, one entry moved.
    """
    n = draw(st.integers(1, 5))

    def random():
        columns = [
            draw(st.lists(st.integers(0, 4), min_size=n, max_size=n).filter(any)) for _ in range(n)
        ]
        return [[Fraction(c[i], sum(c)) for c in columns] for i in range(n)]

    def known():
        alpha = draw(st.sampled_from(["1/3", "1/2", "2/3", "9/10"]))
        make = draw(
            st.sampled_from(
                [named.geometric, named.explicit_fair, lambda k, alpha: named.uniform(k)]
            )
        )
        return [list(row) for row in make(n - 1, alpha=alpha).table]

    table = draw(st.sampled_from([random, known, known]))()
    if draw(st.booleans()):
        share, other = (
            draw(st.sampled_from([Fraction(1, 2), Fraction(1, 100)])),
            draw(st.sampled_from([random, known]))(),
        )
        table = [
            [(1 - share) * a + share * b for a, b in zip(r, s, strict=True)]
            for r, s in zip(table, other, strict=True)
        ]
    if draw(st.booleans()):
        table = [
            [(table[i][j] + table[n - 1 - i][n - 1 - j]) / 2 for j in range(n)] for i in range(n)
        ]
    if draw(st.booleans()):
        j, i, k = (draw(st.integers(0, n - 1)) for _ in range(3))
        moved = table[i][j] * draw(st.sampled_from([Fraction(1), Fraction(1, 10**30)]))
        table[i][j] -= moved
        table[k][j] += moved
    return table


@pytest.mark.slow
@SETTINGS
@given(square_tables(), st.sampled_from([Fraction(1, 2), Fraction(9, 10), Fraction(1)]))
def test_checks_follow_the_definitions(table, beta):
    n = len(table)
    mechanism = Mechanism(table, Privacy(alpha="2/3"))
    assert mechanism.properties() == {name: holds(table, n) for name, holds in DEFINITIONS.items()}
    assert OutputRatio(beta).holds(mechanism) == output_ratio(table, n, beta)
    assert OutputRatio().holds(mechanism) == output_ratio(table, n, Fraction(2, 3))


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_definitions_above_see_both_sides(name):
    """Every property has a table that has it and one that has not, by the definition and by the
    check.
    """
    have = named.uniform(2).table
    have_not = [
        [Fraction(0), Fraction(1), Fraction(0)],
        [Fraction(1), Fraction(0), Fraction(0)],
        [Fraction(0), Fraction(0), Fraction(1)],
    ]
    assert DEFINITIONS[name](have, 3)
    assert not DEFINITIONS[name](have_not, 3)
    assert resolve(name).holds(Mechanism(have, HALF))
    assert not resolve(name).holds(Mechanism(have_not, HALF))


@pytest.mark.slow
@SETTINGS
@given(square_tables())
def test_implications_are_true(table):
    """irredundant() leaves out rows because of these: a wrong one would be a wrong optimum."""
    mechanism = Mechanism(table, HALF)
    holding = {name for name, holds in mechanism.properties().items() if holds}
    assert implied(holding) <= holding


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("", ""),
        ("RM", "RM RH"),
        ("CM", "CM CH WH"),
        ("CH", "CH WH"),
        ("F", "F"),
        ("F RH", "F RH CH WH"),
        ("F CH", "F CH RH WH"),
        ("F CM", "F CM CH RH WH"),
        ("F RM", "F RM RH CH WH"),
        ("S", "S"),
        ("WH", "WH"),
        ("S RH", "S RH"),
    ],
)
def test_implied(names, expected):
    assert implied(names.split()) == set(expected.split())


@pytest.mark.parametrize(
    "subset", [subset for k in range(8) for subset in itertools.combinations(range(7), k)]
)
def test_closure_keeps_the_meaning(subset):
    wanted = [SEVEN[k] for k in subset]
    kept = irredundant(wanted)
    assert implied(p.short for p in kept) == implied(p.short for p in wanted)
    assert kept == [p for p in wanted if p in kept]
    for dropped in kept:
        assert dropped.short not in implied(p.short for p in kept if p is not dropped)


def test_closure_of_properties_that_imply_each_other():
    class Heads(Property):
        short = "HEADS"
        implies = frozenset({"TAILS"})

        def constraints(self, at, privacy):
            yield Constraints.equal(at[0], at[-1])

    class Tails(Heads):
        short = "TAILS"
        implies = frozenset({"HEADS"})

    assert len(irredundant([Heads(), Tails()])) == 1
    assert irredundant([OutputRatio("1/2"), OutputRatio("1/2"), OutputRatio("1/3")]) == [
        OutputRatio("1/2"),
        OutputRatio("1/3"),
    ]


@pytest.mark.parametrize(
    "name",
    ["RH", "RM", "CH", "CM", "F", "WH"],
)
def test_comparing_outputs_with_inputs_needs_a_square(name):
    with pytest.raises(NotSquare, match="2 x 3"):
        resolve(name).holds(Mechanism([["1/2"] * 3] * 2, HALF))


def test_rectangular_symmetry():
    assert Symmetry().holds(Mechanism([["1/3", "1/2", "2/3"], ["2/3", "1/2", "1/3"]], HALF))
    assert not Symmetry().holds(Mechanism([["1/3", "1/2", "1/3"], ["2/3", "1/2", "2/3"]], HALF))
    assert not Symmetry().holds(Mechanism([["1/3", "1/3", "2/3"], ["2/3", "2/3", "1/3"]], HALF))


class Definite(Property):
    """A property for the tests: a share of the truth that every input keeps."""

    short = "DEFINITE"

    def __init__(self, share="1/2"):
        self.share = Fraction(share)

    def constraints(self, at, privacy):
        yield Constraints.at_least_value(np.diagonal(at), self.share)

    @property
    def text(self):
        return f"DEFINITE:{self.share}"


def test_a_property_of_ones_own_end_to_end():
    assert resolve("DEFINITE:1/3") == Definite("1/3")
    assert Definite("1/3") != Definite("1/4")
    plain = design(4, Privacy(alpha="9/10"), L1())
    found = design(4, Privacy(alpha="9/10"), L1(), ["DEFINITE:1/5"])
    assert found.certificate.optimal
    assert found.certificate.verify(found.mechanism)
    assert "DEFINITE:1/5" in str(found.certificate)
    assert min(found.mechanism.table[i][i] for i in range(5)) >= Fraction(1, 5)
    assert found.certificate.objective > plain.certificate.objective
    # The certificate does not cover a better mechanism without the property.
    verdict = found.certificate.verify(plain.mechanism)
    assert not verdict
    assert "DEFINITE:1/5" in verdict.reason


def test_a_property_only_on_one_side():
    """Not symmetric, so the program cannot be reduced; the answer is still proved."""

    class Sure(Property):
        short = "SURE"

        def constraints(self, at, privacy):
            yield Constraints.at_least_value(at[0, 0], Fraction(2, 3))

    for loss in (L0(), L1(worst_case=True)):
        found = design(3, Privacy(alpha="9/10"), loss, [Sure()])
        assert found.mechanism.table[0][0] >= Fraction(2, 3)
        assert found.certificate.optimal
        assert found.certificate.verify(found.mechanism)
        assert not Symmetry().holds(found.mechanism)


@pytest.mark.parametrize(
    "privacy",
    [Privacy(alpha="9/10"), Privacy(alpha="9/10", neighbours=[(0, 1), (1, 2)])],
    ids=["reduced", "not reduced"],
)
@pytest.mark.parametrize("loss", [L0(), L1(), L1(worst_case=True)], ids=repr)
@pytest.mark.parametrize(
    "pairs", ["10", "01", "10 01", "01 01", "10 32", "01 32", "10 23 01 12", "03 30 10"]
)
def test_an_equality_may_be_written_either_way_and_twice(privacy, loss, pairs):
    """Truths a = truths b, in any order and number: the optimum is that of the same equalities
    written once, small first.
    """

    def fair(text):
        class Same(Property):
            short = "SAME"

            def constraints(self, at, privacy):
                for a, b in text.split():
                    yield Constraints.equal(at[int(a), int(a)], at[int(b), int(b)])

        return Same()

    tidy = " ".join(sorted({"".join(sorted(pair)) for pair in pairs.split()}))
    found, plain = design(3, privacy, loss, [fair(pairs)]), design(3, privacy, loss, [fair(tidy)])
    assert found.certificate.optimal
    assert found.certificate.verify(found.mechanism)
    assert found.certificate.objective == plain.certificate.objective


@pytest.mark.parametrize("loss", [L0(), L1(worst_case=True)], ids=repr)
@pytest.mark.parametrize("wanted", [[], ["WH"], ["WH", "S"]], ids=" ".join)
def test_a_row_may_be_asked_for_more_than_once(wanted, loss):
    """In one group, in two, by two properties, on one side of the symmetry only: the proof is found
    all the same.
    """

    class Middle(Property):
        short = "MIDDLE"

        def constraints(self, at, privacy):
            yield Constraints.at_least_value([at[1, 1], at[1, 1], at[2, 2]], Fraction(1, len(at)))
            yield Constraints.at_least_value(at[1, 1], Fraction(1, len(at)))

    class Ends(Property):
        short = "ENDS"

        def constraints(self, at, privacy):
            yield Constraints.at_least(
                [at[0, 0], at[0, 0], at[-1, -1]], [at[0, 1], at[0, 1], at[-1, -2]], privacy.alpha
            )

    found = design(3, Privacy(alpha="9/10"), loss, [*wanted, Middle(), Ends()])
    assert found.certificate.optimal
    assert found.certificate.verify(found.mechanism)


def test_a_wrong_implication_is_caught():
    class Careless(Property):
        short = "CARELESS"
        implies = frozenset({"F"})

        def constraints(self, at, privacy):
            yield Constraints.at_least_value(at[0, 0], Fraction(1, 100))

    with pytest.raises(CertificateRejected, match="lacks the property F"):
        design(4, Privacy(alpha="9/10"), L0(), [Careless(), "F"])


def test_short_names_are_unique():
    with pytest.raises(ValueError, match="'WH' already belongs to WeakHonesty"):

        class Wrong(Property):
            short = "WH"

            def constraints(self, at, privacy):
                return []

    assert resolve("WH") == WeakHonesty()


def test_a_class_may_be_defined_again():
    """As happens when a notebook's cell is run twice."""

    def define(share):
        class Cell(Property):
            short = "CELL"

            def constraints(self, at, privacy):
                yield Constraints.at_least_value(np.diagonal(at), share)

        return Cell

    first, second = define(Fraction(1, 3)), define(Fraction(1, 4))
    assert type(resolve("CELL")) is second
    assert first is not second


@pytest.mark.parametrize(
    "name", ["privacy", "column sums", "worst case 0", "", "A:B", "A B", "A\n", "\t", ":", " WH"]
)
def test_reserved_short_names(name):
    """Groups of rows are found by name, and a colon separates the parameter: such names are refused
    when the class is made.
    """
    with pytest.raises(ValueError, match="a short name has neither spaces nor colons"):

        class Taken(Property):
            short = name

            def constraints(self, at, privacy):
                return []

    assert name not in properties._REGISTRY


@pytest.mark.parametrize("name", ["privacy-ish", "Privacy", "column-sums", "0", "é", "a/b", "WH,"])
def test_other_short_names_are_found(name):
    class Free(Property):
        short = name

        def constraints(self, at, privacy):
            yield Constraints.at_least_value(np.diagonal(at), Fraction(1, len(at)))

    found = design(3, Privacy(alpha="9/10"), properties=[name])
    assert found.certificate.optimal
    assert (
        found.certificate.objective
        == design(3, Privacy(alpha="9/10"), properties=["WH"]).certificate.objective
    )
    assert found.certificate.verify(found.mechanism)


def test_properties_that_differ_in_a_slot_differ():
    class Slotted(Property):
        short = "SLOTTED"
        __slots__ = ("value",)

        def __init__(self, value="1/10"):
            self.value = value

        def constraints(self, at, privacy):
            yield Constraints.at_least_value(at[0, 0], self.value)

    assert Slotted("1/10") == Slotted("1/10")
    with pytest.raises(ValueError, match="have the same text"):
        design(2, Privacy(alpha="1/2"), L0(), [Slotted("1/10"), Slotted("2/10")])


def test_a_parameter_that_the_text_forgets_is_refused():
    class Needs(Property):
        short = "NEEDS"

        def __init__(self, factor):
            self.factor = Fraction(factor)

        def constraints(self, at, privacy):
            yield Constraints.at_least(at[1], at[0], self.factor)

    class Tells(Needs):
        short = "TELLS"

        @property
        def text(self):
            return f"TELLS:{self.factor}"

    with pytest.raises(ValueError, match="NEEDS does not tell its parameter '3/2'"):
        resolve("NEEDS:3/2")
    with pytest.raises(ValueError, match="the property NEEDS needs a parameter, after a colon"):
        resolve("NEEDS")
    assert resolve(Tells("1.5").text) == resolve("TELLS:3/2") == Tells("3/2")


def test_a_property_needs_a_short_name_of_its_own():
    class Stricter(RowHonesty):
        pass

    for item in (Stricter, Stricter()):
        with pytest.raises(ValueError, match="short name of its own"):
            resolve(item)

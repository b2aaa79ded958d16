"""A published reduction whose number is below what shuffled reports tell."""

from collections import Counter
from fractions import Fraction
from math import comb, log

from mechdesign import named
from mechdesign.accounting import shuffled
from tests.mechdesign.accounting.enumerated import divergence, shuffled_delta


def variation_ratio(p, beta, q, n, ratio):
    """The divergence of PVLDB 2024, with one symbol for all reports outside of two components.

    Of the others each is in the first or the second with probability r each; the user's report is
    in the first with p alpha and in the second with alpha, or the other way round.
    """
    alpha = Fraction(beta) / (p - 1)
    r = alpha * p / q
    laws: list[Counter[tuple[int, int]]] = []
    for first, second in ((p * alpha, alpha), (alpha, p * alpha)):
        law: Counter[tuple[int, int]] = Counter()
        for both in range(n):
            for one in range(both + 1):
                chance = comb(n - 1, both) * (2 * r) ** both * (1 - 2 * r) ** (n - 1 - both)
                chance *= Fraction(comb(both, one), 2**both)
                law[one + 1, both - one] += chance * first
                law[one, both - one + 1] += chance * second
                law[one, both - one] += chance * (1 - first - second)
        laws.append(law)
    return divergence(laws[0], laws[1], ratio)


def test_merging_the_rest_of_a_user_with_that_of_others_is_no_bound():
    """Three answers, of which the true one is twice as likely as each other one."""
    table, n, ratio = named.krr(3, alpha=Fraction(1, 2)), 3, Fraction(3, 2)
    formula = variation_ratio(Fraction(2), Fraction(1, 4), Fraction(2), n, ratio)
    assert formula == Fraction(1, 32)
    assert shuffled_delta(table.table, n, ratio) == Fraction(5, 128) > formula
    assert shuffled(table, n).delta(log(1.5)) >= 5 / 128 - 1e-9


def test_it_is_a_bound_where_the_user_has_no_rest():
    for n in (1, 2, 3, 4):
        table = named.krr(2, alpha=Fraction(1, 3))
        formula = variation_ratio(Fraction(3), Fraction(1, 2), Fraction(3), n, Fraction(3, 2))
        assert formula >= shuffled_delta(table.table, n, Fraction(3, 2))

"""Blankets, which hide a report among others: pair laws of reports with two likelihoods.

Write u and v for the likelihoods of a report under two values of a user, relative to a blanket: a
measure omega of mass gamma that is at most the probability of the report under every value. Let W =
u - r v for a report y drawn with the probability omega(y), and W = 0 otherwise. Privacy among n
shuffled reports is bounded by E(W_1 + ... + W_n)_+, see `mechdesign.accounting.shuffled`; this
grows with the law of W in convex order. Four facts, for any r >= 1 and any convex f:

1. *Apart is worse.* If u and v have the values low < high, and marginals that are the same for all
   pairs, then E f(W) falls as the probability that both are high rises. For moving mass to (high,
   high) and (low, low) from (high, low) and (low, high) changes a sum of two values of W into
   another with the same total, and high - r low is the largest value, low - r high the least. In
   particular a pair of equal values, u = v, is the best hidden. It stays true with factors that do
   not depend on the two, W = u U - r v V with U, V >= 0, and so for products of such reports, one
   factor after the other.
2. *Other marginals.* If 1 <= u, v <= rho, they may be replaced by 1 and rho with the same means,
   given y; W then has the same mean given y. The most that both can be rho together is the lesser
   of the two probabilities, whose sum over y is (1 - TV - gamma) / (rho - 1), with TV the total
   variation distance of the two laws. By 1, the largest such distance is the worst. So the numbers
   gamma, rho and TV give a law above that of every pair.
3. *The ratio alone.* With nothing but rho known: all W lie between 1 - r rho and rho - r, their
   mean is 1 - r, and by 2 E W_+ is at most (rho - r) TV / (rho - 1), with TV at most (rho - 1) /
   (rho + 1).
   Binary randomised response of ratio rho has this mean, this E W_+, and no other values than the
   two ends and 0: between these its E (W - t)_+ is linear in t, and that of any other law below.
4. *Mixtures.* Public parts, drawn whatever the value, keep the order part by part. If the part, or
   what is told in it, is not public, W is the conditional mean of the one that knows it: smaller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import chain, combinations
from typing import NamedTuple, TypeAlias

from mechdesign.accounting.pair_law import PairClass, PairLaw, merged

#: The pair law of reports that say nothing.
ALIKE: PairLaw = (PairClass(Fraction(1), Fraction(1), Fraction(1)),)


class JointClass(NamedTuple):
    """A class of reports with the same likelihoods under some values."""

    probability: Fraction  #: under a law of reports that depends on no value
    likelihoods: tuple[Fraction, ...]  #: under each value, relative to that law


JointLaw: TypeAlias = tuple[JointClass, ...]  #: The type of all reports in classes.


def joint_law_of(classes: Iterable[tuple[Fraction, Sequence[Fraction]]]) -> JointLaw:
    """Return the classes, those of equal likelihoods made one, in order of these."""
    total: defaultdict[tuple[Fraction, ...], Fraction] = defaultdict(Fraction)
    for probability, likelihoods in classes:
        total[tuple(likelihoods)] += probability
    return tuple(JointClass(mass, key) for key, mass in sorted(total.items()) if mass)


def mixed(parts: Iterable[tuple[Fraction, JointLaw]]) -> JointLaw:
    """Return the law of reports on public parts: each part's probability, and its own law."""
    return joint_law_of(
        (share * probability, likelihoods)
        for share, law in parts
        for probability, likelihoods in law
    )


def independent(laws: Iterable[JointLaw]) -> JointLaw:
    """Return the law of several independent reports, at least one: likelihoods are multiplied."""
    first, *others = laws
    for law in others:
        # Equal products are merged at each step: classes of exchangeable reports grow polynomially
        # with their number, not exponentially.
        first = joint_law_of(
            (p * q, [a * b for a, b in zip(before, other, strict=True)])
            for p, before in first
            for q, other in law
        )
    return first


def of_two_likelihoods(
    values: int,
    low: Fraction,
    high: Fraction,
    together: Callable[[tuple[int, ...]], Fraction],
) -> JointLaw:
    """Return the joint law of different values, by inclusion and exclusion."""
    numbers = range(values)
    chances = {
        chosen: together(chosen) if chosen else Fraction(1)
        for chosen in chain.from_iterable(combinations(numbers, size) for size in range(values + 1))
    }
    return joint_law_of(
        (
            # Pr[exactly these are high] from Pr[all of these are high], over all supersets.
            sum(
                (
                    (-1) ** (len(more) - len(chosen)) * chance
                    for more, chance in chances.items()
                    if set(chosen) <= set(more)
                ),
                Fraction(0),
            ),
            [high if number in chosen else low for number in numbers],
        )
        for chosen in chances
    )


def attack_law(joint: JointLaw) -> PairLaw:
    """Return the pair law of the first two of three values where all others hold the third."""
    return merged(
        PairClass(probability * third, first / third, second / third)
        for probability, (first, second, third) in joint
    )


def two_likelihoods(
    low: Fraction, high: Fraction, together: Fraction, always: Fraction = Fraction(0)
) -> PairLaw:
    """Return the pair law of reports that are likely or unlikely under a value, by fact 1."""
    likely, ratio, unit = (1 - low) / (high - low), high / low, Fraction(1)
    # `likely` is Pr[high], from the mean 1 of the likelihoods. Two events of that probability
    # overlap by 2 likely - 1 at least (Bonferroni's inequality).
    together = max(together, 2 * likely - 1)
    return merged(
        [
            PairClass(high * always, unit, unit),
            PairClass(low * (together - always), ratio, ratio),
            PairClass(low * (likely - together), ratio, unit),
            PairClass(low * (likely - together), unit, ratio),
            PairClass(low * (1 - 2 * likely + together), unit, unit),
        ]
    )


def law_above(blanket: Fraction, ratio: Fraction, apart: Fraction) -> PairLaw:
    """Return a pair law above those of all pairs of values, by fact 2."""
    if ratio == 1:
        return ALIKE
    likely = (1 - blanket) / ((ratio - 1) * blanket)
    together = max((1 - apart - blanket) / ((ratio - 1) * blanket), Fraction(0))
    return two_likelihoods(blanket, blanket * ratio, min(together, likely))


def law_of_ratio(ratio: Fraction) -> PairLaw:
    """Return a pair law above those of all reports with at most this likelihood ratio: fact 3."""
    return (
        two_likelihoods(2 / (ratio + 1), 2 * ratio / (ratio + 1), Fraction(0))
        if ratio > 1
        else ALIKE
    )


def product_law(laws: Iterable[PairLaw]) -> PairLaw:
    """Return the pair law of several independent reports."""
    product = ALIKE
    for law in laws:
        product = merged(
            PairClass(w * weight, u * first, v * second)
            for w, u, v in product
            for weight, first, second in law
        )
    return product


def mixed_law(parts: Iterable[tuple[Fraction, PairLaw]]) -> PairLaw:
    """Return the pair law of reports on public parts: each part's probability, and its own law."""
    return merged(
        PairClass(share * weight, first, second)
        for share, law in parts
        for weight, first, second in law
    )

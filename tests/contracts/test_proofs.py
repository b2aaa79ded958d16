"""Every public protocol proves its privacy for all alpha, by likelihoods that are those of its law.

The law of a report is enumerated, each report with its published probability (`published`), at
several alphas: it must be the one that the proof's formulas give, report by report, but for the
rounding to units of 2^-64; and the audit of what is drawn must come to the ratio that is proved.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial, singledispatch
from inspect import isabstract, isclass
from itertools import pairwise, product
from math import comb
from typing import Any

import numpy as np
import pytest

import frequency
import rangeq
from frequency import heavy
from frequency.algebra.exact_draws import root
from frequency.core.channel import Channel
from frequency.core.mixture import Mixture
from frequency.core.public_draw import PublicDraw
from mechdesign import named
from mechdesign.symbolic import (
    ALPHA,
    Acceptance,
    BudgetShare,
    CompositionProof,
    ExponentialProof,
    MixtureProof,
    OneBitProof,
    PrivacyProof,
    ProcessedProof,
    PublicDrawProof,
    Randomiser,
    TableProof,
    geometric,
    hadamard,
    krr,
    optimized_unary,
    subset_selection,
)
from mechdesign.symbolic.proof_rules import favouring
from mechdesign.symbolic.semialgebraic import rational
from rangeq import central, grids
from tests.contracts.examples import CENTRAL, PACKAGES, PROTOCOLS, WITH_VALUES
from tests.contracts.published import probability
from tests.contracts.test_laws import CASES, COMPARISONS, channel_of, laplace, of_ratio, subclasses
from tests.own_oracles import Bare, Exclusion
from tests.rangeq.central.examples import SEVERAL
from tests.tape import WORD

CLOSE = Fraction(1, 1 << 48)
"""How far probabilities may be from their formulas, relatively, by rounding to units of 2^-64."""

SHARES = Fraction(1, 1 << 20)
"""And how far where a part's share of epsilon is a float."""

RATIOS = (Fraction(3, 2), Fraction(3), Fraction(9))


EVERY = pytest.mark.parametrize(
    "protocol",
    [
        *PROTOCOLS,
        *CENTRAL,
        central.Hierarchy((5, 6), 0.5, 2, budget="geometric"),
        central.Wavelet((5, 3, 2), 0.5),
        central.QuantileRelease(16, (0.5,), 0.5),
        central.TreeQuantiles(16, (0.1, 0.5), 0.5),
        central.QuantileRelease(16, (0.1, 0.2, 0.5, 0.9), 0.5),
        rangeq.ItemSets(8, 0.5, 3, 2),
    ],
    ids=lambda protocol: type(protocol).__name__,
)


# ------------------------------------------------------------------------------ formulas as numbers


def power(alpha: Fraction, exponent: Fraction) -> Fraction:
    """alpha^exponent, within one part in 2^60; exactly for whole exponents."""
    if exponent.denominator == 1:
        return alpha**exponent.numerator
    return 1 / root(1 / alpha**exponent.numerator, exponent.denominator)


Kinds = list[tuple[int, Fraction]]
"""How many reports have which likelihood, under one item."""


@singledispatch
def classes(proof: PrivacyProof, alpha: Fraction, sets: int) -> list[tuple[int, Kinds, set]]:
    """Classes of reports: how many alike, the kinds of each, and all likelihoods that they have.

    ``sets`` is how many reports a relative randomiser has.
    """
    raise NotImplementedError(type(proof).__name__)


@classes.register
def _(proof: Randomiser, alpha, sets):
    found = []
    number = sets if proof.relative else 1
    for laws in zip(*(law.classes for law in proof.laws), strict=True):
        kinds = [
            (kind.reports(alpha) * number, kind.likelihood(alpha) / number) for kind in laws[0]
        ]
        every = {kind.likelihood(alpha) / number for law in laws for kind in law}
        found.append((1, kinds, every))
    return found


@classes.register
def _(proof: TableProof, alpha, sets):
    table = [[entry(alpha) for entry in row] for row in proof.table.table]
    return [(1, [(1, row[0])], set(row)) for row in table]


@classes.register
def _(proof: PublicDrawProof, alpha, sets):
    return [
        (times * number, [(many, value * chance) for many, value in kinds], scaled(every, chance))
        for number, chance in proof.settings
        for times, kinds, every in classes(proof.part, alpha, sets)
    ]


def scaled(values, chance):
    return {value * chance for value in values}


@classes.register
def _(proof: MixtureProof, alpha, sets):
    return [
        (times * number, [(many, value * chance) for many, value in kinds], scaled(every, chance))
        for number, chance, part in proof.parts
        for times, kinds, every in classes(part, alpha, sets)
    ]


@classes.register
def _(proof: CompositionProof, alpha, sets):
    found = [(1, [(1, Fraction(1))], {Fraction(1)})]
    for share, times, part in proof.parts:
        own = classes(part, power(alpha, share), sets)
        for _ in range(times):
            found = [
                (
                    one * other,
                    [(a * b, x * y) for (a, x), (b, y) in product(kinds, more)],
                    {x * y for x, y in product(every, others)},
                )
                for (one, kinds, every), (other, more, others) in product(found, own)
            ]
    return found


def subsets(channel: Channel) -> int:
    """How many reports a part by subset selection has; 1 if there is none."""
    if isinstance(channel, frequency.SubsetSelection):
        return comb(channel.domain, channel.size)
    inner = [channel.base] if isinstance(channel, PublicDraw) else []
    inner += channel.parts if isinstance(channel, Mixture) else []
    return max((subsets(part) for part in inner), default=1)


# --------------------------------------------------------------------------------- laws, enumerated


def every_report(protocol: Any, value: Any) -> dict[bytes, Fraction]:
    """All reports of a value with their probabilities, which sum to 1: so none is missing."""
    channel, item = channel_of(protocol), protocol.items_of([value])[0]
    found: dict[bytes, Fraction] = {}
    for seed in range(64):
        drawn = protocol.privatize([value] * 2000, np.random.default_rng(seed))
        for report in np.unique(drawn):
            text = report.tobytes()
            if text not in found:
                found[text] = probability(channel, report, item)
        if sum(found.values()) == 1:
            return found
    raise AssertionError("some reports are too rare")


def check_law(
    protocol: Any, values: tuple[Any, ...], proof: PrivacyProof, close: Fraction = CLOSE
) -> None:
    """Report by report, the law of each value is the proof's; so are the likelihoods of a report
    under two values those of a class.
    """
    alpha = channel_of(protocol).privacy.alpha
    laws = [every_report(protocol, value) for value in values]
    found = classes(proof, alpha, subsets(channel_of(protocol)))
    stated = sorted(
        value
        for times, kinds, _ in found
        for many, value in kinds
        for _ in range(int(many * times))
    )

    def near(one: Fraction, other: Fraction) -> bool:
        return abs(one - other) <= close * other

    for law in laws:
        assert len(law) == len(stated)
        assert all(map(near, sorted(law.values()), stated))
    pairs = {tuple(law[report] for law in laws) for report in laws[0]}
    for pair in pairs:
        assert any(
            all(any(near(one, value) for value in every) for one in pair) for _, _, every in found
        )


def check_ratio(protocol: Any, proof: PrivacyProof, close: Fraction = CLOSE) -> None:
    """The audit of what is drawn comes to what is proved, and not above."""
    alpha, ratio = channel_of(protocol).privacy.alpha, protocol.audit().ratio
    proved = 1 / power(alpha, proof.loss)
    assert ratio <= protocol.audit().allowed
    assert 1 - close <= ratio / proved <= 1 + Fraction(1, 1 << 60)


def table(ratio: Fraction, items: int = 3):
    return named.krr(items, alpha=1 / ratio)


OWN = {
    "Tabular": (lambda ratio: frequency.Tabular(table(ratio)), (0, 1)),
    "Composite": (
        lambda ratio: rangeq.Composite(4, 3.0, table(ratio, 2), branching=(2,), oracle=("GRR",)),
        (0, 3),
    ),
}
"""Those with a table of their own, which must be for the same alpha."""


def made(name: str, ratio: Fraction) -> tuple[Any, tuple[Any, Any]]:
    if name in OWN:
        make, values = OWN[name]
        return make(ratio), values
    case = {**CASES, **COMPARISONS}[name]
    return case.make(), case.values


ENUMERATED = [name for name in CASES if not name.startswith(("SuccinctHistogram", "PaddedSets"))]
"""A set has a mixture of the laws that `PaddedSets` is proved by; and a cell the sum of those of
points that `DiskArea` is: see `test_what_is_proved_for_points_is_what_is_drawn_for_cells`.
"""


def every_value(protocol: Any, values: tuple[Any, Any]) -> tuple[Any, ...]:
    """All values of a protocol of a few items or records, of which these are two."""
    if isinstance(values[0], tuple):
        of_grids = getattr(protocol, "attributes", None)
        sizes = of_grids.sizes if of_grids else protocol.domain.shape
        return tuple(product(*map(range, sizes)))
    size = getattr(protocol, "domain", None) or channel_of(protocol).domain
    return tuple(range(size))


@pytest.mark.parametrize("name", [*ENUMERATED, "SquareWave2D"])
def test_the_proof_states_the_law(name):
    """Of two values that differ as much as any, at several alphas; and of all values at one."""
    for ratio in RATIOS:
        with of_ratio(ratio):
            protocol, values = made(name, ratio)
            proof = protocol.proof()
            assert proof.verify(), proof.verify().reason
            check_law(protocol, values, proof)
            check_ratio(protocol, proof)
            if ratio == RATIOS[1]:
                check_law(protocol, every_value(protocol, values), proof)


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_the_proof_states_the_law_without_an_item(epsilon):
    """All reports are as likely then; and that is at most alpha apart from those of an item."""
    protocol = heavy.UniqueHeavyHitter(2, epsilon)
    proof: Any = protocol.proof()
    channel, ((number, chance),) = protocol.channel, proof.settings
    assert number == channel.code.length
    items, idle = proof.part.laws
    ((fair,),) = idle.classes
    law = every_report(protocol, 1)
    drawn = np.unique(protocol.privatize([None] * 4000, np.random.default_rng(1)))
    assert {report.tobytes() for report in drawn} == set(law)
    for report in drawn:
        assert probability(channel, report, None) == fair.likelihood(Fraction(1, 2)) * chance
    assert sum(probability(channel, report, None) for report in drawn) == 1
    assert items.items == "an item"


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("PaddedSets")])
def test_the_law_of_a_random_item_lies_between_those_of_items(name):
    """What a set's report is likely to be is no more than what some item's is, and no less."""
    for ratio in RATIOS:
        with of_ratio(ratio):
            protocol = CASES[name].make()
            proof: Any = protocol.proof()
            assert proof.verify()
            ((_, _, every),) = classes(proof.part, channel_of(protocol).privacy.alpha, 1)
            sets = [(), (0,), (2,), (0, 1), (1, 2), (0, 1, 2)]
            laws = [every_report(protocol, value) for value in sets]
            for law in laws:
                assert min(every) * (1 - CLOSE) <= min(law.values())
                assert max(law.values()) <= max(every) * (1 + CLOSE)
            assert max(law[r] / other[r] for law in laws for other in laws for r in law) <= ratio
            check_ratio(protocol, proof)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.5])
def test_the_proof_of_succinct_histograms_states_the_law(epsilon):
    """Whose parts have shares of epsilon itself."""
    protocol = heavy.SuccinctHistogram(1, epsilon, hashes=1, channels=2, rows=2, symbol=1)
    proof = protocol.proof()
    assert proof.holds
    check_law(protocol, (0, 1), proof, SHARES)
    check_ratio(protocol, proof, SHARES)


def test_what_is_drawn_converges_to_the_formulas():
    """The fewer the reports, the finer their probabilities are in units of 2^-64."""
    alpha = frequency.GRR(5, 1.0).privacy.alpha
    (kinds,) = (kinds for _, kinds, _ in classes(frequency.GRR(5, 1.0).proof(), alpha, 1))
    drawn = frequency.GRR(5, 1.0)
    assert abs(drawn.p - kinds[0][1]) < Fraction(5, 1 << 64)
    assert abs(drawn.q - kinds[1][1]) < Fraction(1, 1 << 64)


@pytest.mark.parametrize(
    "inner",
    [
        frequency.GRR(5, 0.5),
        frequency.SUE(5, 0.5),
        frequency.OUE(5, 0.3),
        frequency.SubsetSelection(7, 0.3),
        frequency.ProjectiveGeometry(30, 0.5),
        frequency.Tabular(named.krr(4, alpha=Fraction(2, 3))),
        frequency.CountMeanSketch(5, 0.5, hashes=3, width=4),
        heavy.TreeHist(8, 0.5),
        heavy.UniqueHeavyHitter(8, 0.5),
        heavy.SuccinctHistogram(4, 0.5, hashes=2, channels=4, rows=8),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_one_bit_keeps_reports_as_its_proof_says(inner):
    """Reports are kept with at most the probability of the formula, which is reached."""
    protocol = heavy.OneBit(inner)
    alpha = protocol.channel.privacy.alpha
    proof: Any = protocol.proof()
    assert proof.verify()
    ((_, largest),) = ([of(alpha) for of in kind[:2]] for kind in proof.kinds)
    drawn = [Fraction(int(weight), WORD) for weight in protocol.channel.parameters["acceptance"]]
    assert largest * (1 - SHARES) <= max(drawn) <= largest * (1 + SHARES)
    check_ratio(protocol, proof, SHARES)


@pytest.mark.parametrize(
    "inner",
    [frequency.GRR(5, 1.0), frequency.OLH(9, 1.0), frequency.SubsetSelection(9, 0.5)],
    ids=lambda inner: type(inner).__name__,
)
@pytest.mark.parametrize("bits", [2, 3])
def test_few_bits_keep_reports_as_their_proof_says(inner, bits):
    protocol = heavy.FewBits(inner, bits=bits)
    alpha = protocol.channel.privacy.alpha
    proof: Any = protocol.proof()
    assert proof.verify()
    (kind,) = proof.kinds
    drawn = [Fraction(int(weight), WORD) for weight in protocol.channel.parameters["acceptance"]]
    assert kind.largest(alpha) * (1 - SHARES) <= max(drawn) <= kind.largest(alpha) * (1 + SHARES)
    check_ratio(protocol, proof, SHARES)


def test_the_source_keeps_too_many_reports():
    """Half of the likelihood relative to a random report (Algorithm 6) is right for signs alone."""
    for items in (2, 3, 5):
        proof: Any = heavy.OneBit(frequency.GRR(items, 0.5)).proof()
        truth = proof.part.laws[0].classes[0][0].likelihood * Fraction(items, 2)
        wrong = replace(proof, kinds=(Acceptance(truth * ALPHA, truth),))
        assert wrong.holds == (items == 2)
        assert items == 2 or "a 0 loses more than epsilon" in {
            fault.reason.partition("but ")[2] for fault in wrong.faults()
        }


# --------------------------------------------------------------------------- every public protocol


@EVERY
def test_every_protocol_is_proved_for_all_alpha(protocol):
    proof = protocol.proof()
    assert proof.verify(), proof.verify().reason
    assert proof.region.everywhere
    first = str(proof).splitlines()[0]
    assert first.startswith(type(protocol).__name__)
    assert len(str(proof).splitlines()) < 60


def test_no_channel_is_forgotten():
    abstract = [kind for kind in subclasses(Channel) if isabstract(kind)]
    stated = {kind for kind in subclasses(Channel) if kind.proof is not Channel.proof}
    own = {kind for kind in subclasses(Channel) if kind.__module__.startswith("tests.")}
    assert subclasses(Channel) - stated - own <= set(abstract)


def test_no_protocol_is_forgotten():
    """Whatever is audited, privatizes or has an epsilon of its own, but for what is only said.

    A matrix mechanism keeps other promises, too: its audit is about the noise that it has. Rules
    for keys have a delta.
    """
    without = {central.RegionStatement, central.MatrixMechanism}
    without |= {central.KeyRule, central.OptimalKeys, central.GaussianKeys}
    for package in (*PACKAGES, central):
        for kind in map(partial(getattr, package), package.__all__):
            if (
                isclass(kind)
                and kind not in without
                and any(
                    hasattr(kind, name) or name in getattr(kind, "__annotations__", {})
                    for name in ("audit", "privatize", "epsilon")
                )
            ):
                assert hasattr(kind, "proof"), kind


@WITH_VALUES
def test_the_audit_comes_to_what_is_proved(protocol, values):
    proof = protocol.proof()
    assert proof.verify(), proof.verify().reason
    ratio, proved = protocol.audit().ratio, 1 / power(protocol.privacy.alpha, proof.loss)
    assert ratio <= proved * (1 + Fraction(1, 1 << 60))
    if ratio > 1 and not isinstance(protocol, rangeq.Composite):  # whose table has its own alpha
        assert ratio >= proved * (1 - SHARES)


@pytest.mark.parametrize(
    "make",
    [
        lambda: frequency.OLH(1 << 20, 1.1),
        lambda: frequency.OUE(1 << 20, 1.1),
        lambda: frequency.SUE(1 << 20, 1.1),
        lambda: frequency.GRR(1 << 30, 1.1),
        lambda: frequency.HRR(1 << 30, 1.1),
        lambda: frequency.SubsetSelection(1 << 16, 1.1),
        lambda: rangeq.SquareWave(1 << 20, 1.1),
        lambda: heavy.PrefixExtension(64, 1.1),
        lambda: grids.HDG([1 << 20] * 6, 1.0, 200),
    ],
)
def test_proofs_do_not_grow_with_the_domain(make):
    proof = make().proof()
    assert proof.holds
    assert len(str(proof)) < 3000


@pytest.mark.parametrize("domain", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [Fraction(1, 1 << 30), 1, 1000])
def test_extremes(domain, epsilon):
    names = ("GRR", "OUE", "SUE", "OLH", "HRR", "SubsetSelection", "ProjectiveGeometry")
    for kind in (*(getattr(frequency, name) for name in names), rangeq.SquareWave):
        try:
            protocol = kind(domain, epsilon)
        except ValueError:
            continue  # too small an epsilon for the units of 2^-64
        assert protocol.proof().holds
        assert protocol.audit().ratio <= 1 / power(protocol.privacy.alpha, protocol.proof().loss)


# -------------------------------------------------------------------------------------- the curator

CURATORS = [*CENTRAL, *SEVERAL]


@pytest.mark.parametrize("alpha", [Fraction(1, 1000), Fraction(2, 3)])
def test_the_proof_states_the_law_of_noise(alpha):
    """That of a number c and of c + 1, on both sides: `test_laws` measures it."""
    proof: Any = central.CentralFlat(5, 1.0).proof()
    (of,) = proof.parts
    for law, c in zip(of.part.laws, (0, 1), strict=True):
        for (kind,), side in zip(law.classes, ((0, -1, -2, -3), (1, 2, 3, 4)), strict=True):
            stated = [kind.likelihood(alpha) * alpha**k for k in range(4)]
            assert stated == [laplace(alpha)(number - c) for number in side]


@pytest.mark.parametrize("mechanism", CURATORS, ids=repr)
def test_levels_have_the_noise_of_their_shares(mechanism):
    proof, epsilon = mechanism.proof(), float(mechanism.given_epsilon)
    assert proof.verify()
    assert sum(of.times for of in proof.parts) == sum(
        noise is not None for noise in mechanism.noise
    )
    shares = Counter({of.share: of.times for of in proof.parts})
    for share, noise in zip(mechanism.shares, mechanism.noise, strict=True):
        if noise is not None:
            shares[share] -= 1
            step = -math.expm1(-epsilon * float(share))
            assert abs(float(1 - noise.alpha) - step) <= 2.0**-20 * step
    assert set(shares.values()) == {0}
    ratio = mechanism.audit().ratio
    assert 1 - SHARES <= ratio * mechanism.privacy.alpha <= 1


@pytest.mark.parametrize("mechanism", CURATORS, ids=repr)
def test_one_user_changes_one_number_of_each_level(mechanism):
    empty = np.zeros(mechanism.sizes, dtype=np.int64)
    before = mechanism.levels(empty)
    for cell in np.ndindex(*mechanism.sizes):
        held = empty.copy()
        held[cell] = 1
        for old, new in zip(before, mechanism.levels(held), strict=True):
            assert np.abs(new - old).sum() <= 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 6.0])
@pytest.mark.parametrize("q", [(0.5,), (0.25, 0.5, 0.75), (0.1, 0.2, 0.3, 0.4, 0.5)])
def test_weights_of_quantiles_are_powers(q, epsilon):
    """In integers, rounded up; and over their sum they change by beta^2 at most."""
    release = central.QuantileRelease(64, q, epsilon)
    proof, weights = release.proof(), release.weights(40)
    assert proof.verify()
    (of,) = proof.parts
    assert (of.share, of.times) == (Fraction(1, release.rounds), release.rounds)
    for k, (one, other) in enumerate(pairwise(weights)):
        assert one >= other >= release.beta * one
        power_of = release.beta ** (k + 1)
        assert 0 <= Fraction(other, weights[0]) - power_of <= Fraction(k + 1, weights[0])
    exact = -math.log(release.beta) * 2 * release.rounds
    assert exact <= epsilon
    assert abs(exact - epsilon) <= 2.0**-16 * epsilon
    worst = Fraction(1)
    for losses in ((0, 1, 2, 5), (3, 0, 0, 1), (0, 30, 31, 39)):
        for change in product((-1, 0, 1), repeat=4):
            others = [abs(loss + more) for loss, more in zip(losses, change, strict=True)]
            of_one = [weights[min(loss, len(weights) - 1)] for loss in losses]
            of_other = [weights[min(loss, len(weights) - 1)] for loss in others]
            for a, b in zip(of_one, of_other, strict=True):
                worst = max(worst, Fraction(a * sum(of_other), b * sum(of_one)))
    assert worst <= 1 / release.beta**2


# --------------------------------------------------------------- the likelihoods of tables in alpha


def column(proof: PrivacyProof, alpha: Fraction, sets: int) -> list[Fraction]:
    return sorted(
        value
        for times, kinds, _ in classes(proof, alpha, sets)
        for many, value in kinds
        for _ in range(int(many * times))
    )


@pytest.mark.parametrize("alpha", [Fraction(1, 4), Fraction(9, 25), Fraction(81, 100)])
@pytest.mark.parametrize(
    ("oracle", "formulas"),
    [
        (frequency.GRR(5, 1.0), krr(5)),
        (frequency.OUE(4, 1.0), optimized_unary(4)),
        (frequency.HRR(8, 1.0), hadamard(8)),
        (frequency.SubsetSelection(5, 0.5), subset_selection(5, 2)),
        (frequency.RR(2, 1.0), geometric(1)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_likelihoods_are_those_of_the_tables(oracle, formulas, alpha):
    stated = column(oracle.proof(), alpha, subsets(oracle))
    assert stated == sorted(formulas[i, 0](alpha) for i in range(formulas.outputs))


# --------------------------------------------------------------------------------- planted mistakes


def nodes(proof: Any) -> Iterator[Any]:
    """All steps of a proof that are about something that is lost."""
    yield proof
    if isinstance(proof, (PublicDrawProof, OneBitProof, ProcessedProof)):
        yield from nodes(proof.part)
    elif isinstance(proof, (MixtureProof, CompositionProof)):
        for of in proof.parts:
            if of.times and of.part.loss:
                yield from nodes(of.part)


def swapped(proof: Any, node: Any, other: Any) -> Any:
    """The proof with another step in the place of one."""
    if proof is node:
        return other
    if isinstance(proof, (PublicDrawProof, OneBitProof, ProcessedProof)):
        return replace(proof, part=swapped(proof.part, node, other))
    if isinstance(proof, (MixtureProof, CompositionProof)):
        parts: Any = (of._replace(part=swapped(of.part, node, other)) for of in proof.parts)
        return replace(proof, parts=tuple(parts))
    return proof


def factor(leaf: Randomiser, value: Any, place: int = 0) -> Randomiser:
    """One likelihood multiplied by something."""
    law, *rest = leaf.laws
    (kind, *kinds), *others = law.classes
    kind = kind._replace(**{kind._fields[place]: kind[place] * value})
    return replace(leaf, laws=(law._replace(classes=((kind, *kinds), *others)), *rest))


PLANTED = {
    "a smaller exponent": lambda leaf: replace(leaf, exponent=leaf.exponent - 1),
    "a larger exponent": lambda leaf: replace(leaf, exponent=leaf.exponent + 1),
    "a factor": lambda leaf: factor(leaf, 2, 1),
    "alpha too often": lambda leaf: factor(leaf, krr(2)[0, 1], 1),
    "a report more": lambda leaf: factor(leaf, 3),
    "a negative likelihood": lambda leaf: factor(leaf, -1, 1),
    "no law": lambda leaf: replace(leaf, laws=()),
}


@pytest.mark.parametrize("planted", PLANTED)
@EVERY
def test_a_mistake_in_any_leaf_is_refused(protocol, planted):
    proof = protocol.proof()
    for leaf in nodes(proof):
        if isinstance(leaf, Randomiser) and leaf.loss:
            refused(swapped(proof, leaf, PLANTED[planted](leaf)))


def refused(wrong: PrivacyProof) -> None:
    assert not wrong.holds
    assert wrong.verify().reason
    assert not wrong.region.everywhere


def test_an_oracle_of_ones_own_states_a_proof_or_says_so():
    assert Exclusion(4, 1.0).proof().verify().reason.startswith("Exclusion: the table is private")
    with pytest.raises(TypeError, match="Bare does not state the likelihoods"):
        Bare(4, 1.0).proof()


def first(parts: Any, **changed: Any) -> Any:
    """With something else of the first part that loses anything."""
    place = next(k for k, of in enumerate(parts) if of.times and of.part.loss)
    return (*parts[:place], parts[place]._replace(**changed), *parts[place + 1 :])


def wrong_rules(step: Any) -> Iterator[Any]:
    """A step with every kind of mistake in its rule: a part forgotten or counted twice, .."""
    if isinstance(step, PublicDrawProof):
        (number, chance), *others = step.settings
        yield replace(step, settings=((number + 1, chance), *others))
        yield replace(step, settings=((number, chance / 2), *others))
        yield replace(step, settings=tuple(others))
    elif isinstance(step, MixtureProof):
        of = next(of for of in step.parts if of.part.loss)
        yield replace(step, parts=tuple(part for part in step.parts if part is not of))
        yield replace(step, parts=first(step.parts, times=of.times + 1))
        yield replace(step, parts=first(step.parts, times=of.times - 1))
        yield replace(step, parts=first(step.parts, chance=-of.chance))
    elif isinstance(step, CompositionProof):
        losing = [of for of in step.parts if of.times and of.part.loss]
        for change in (1, -1) if sum(of.times for of in losing) > 1 else (1,):
            yield replace(step, parts=first(step.parts, times=losing[0].times + change))
        yield replace(step, parts=first(step.parts, share=losing[0].share / 2))
        yield replace(step, parts=first(step.parts, share=losing[0].share * 2))
    elif isinstance(step, OneBitProof):
        kind, *rest = step.kinds
        twice = kind._replace(least=kind.least * 2, largest=kind.largest * 2)
        yield replace(step, kinds=(twice, *rest))
        yield replace(step, kinds=(kind._replace(largest=kind.least), *rest))
        if {one.least / one.largest for one in rest} != step.part.spreads:
            yield replace(step, kinds=tuple(rest))
    elif isinstance(step, ExponentialProof):
        yield replace(step, share=2 * step.share)
        yield replace(step, share=step.share / 2)
        yield replace(step, weights=(*step.weights, (rational(1), rational(ALPHA**2))))


@EVERY
def test_a_mistake_in_any_rule_is_refused(protocol):
    proof = protocol.proof()
    for step in nodes(proof):
        if step.loss:
            for wrong in wrong_rules(step):
                refused(swapped(proof, step, wrong))


@pytest.mark.parametrize("name", [name for name in ENUMERATED if name != "Uniform"])
def test_the_proof_of_another_law_is_found_out(name):
    """It may hold; but its likelihoods are those of no report, or its ratio is not the audit's."""
    with of_ratio(RATIOS[1]):
        protocol, values = made(name, RATIOS[1])
        proof = protocol.proof()
        for leaf in {node for node in nodes(proof) if not list(nodes(node))[1:] and node.loss}:
            wrong = swapped(proof, leaf, favouring(2, 5, getattr(leaf, "relative", False)))
            with pytest.raises(AssertionError):
                check_law(protocol, values, wrong)
        wrong = BudgetShare(Fraction(1, 2), 2, proof)
        with pytest.raises(AssertionError):
            check_law(protocol, values, CompositionProof((wrong,)))
        half = CompositionProof((BudgetShare(Fraction(1, 2), 1, proof),))
        with pytest.raises(AssertionError):
            check_ratio(protocol, half)


def test_forgotten_channels_of_a_succinct_histogram_are_found_out():
    """With T parts of the budget in the place of T + 1 the rules are kept, but not the law."""
    protocol = heavy.SuccinctHistogram(1, 1.0, hashes=1, channels=2, rows=2, symbol=1)
    proof: Any = protocol.proof()
    of_channels, idle, oracle = proof.parts
    wrong = replace(proof, parts=(of_channels._replace(share=Fraction(1)), idle))
    assert wrong.holds
    with pytest.raises(AssertionError):
        check_law(protocol, (0, 1), wrong, SHARES)
    wrong = replace(proof, parts=(idle, oracle._replace(share=Fraction(1))))
    assert wrong.holds
    with pytest.raises(AssertionError):
        check_law(protocol, (0, 1), wrong, SHARES)

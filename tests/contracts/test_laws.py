"""What every protocol draws has exactly the law that it publishes, and a leak of 1/256 anywhere
shows.

The law that is drawn is measured from outside, word by word (`measure`); the one that is published
is written down apart from the code that draws (`published`). Both are fractions, and equal; and the
largest ratio of what was measured is that of the audit.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from fractions import Fraction
from functools import partial
from inspect import isabstract
from math import prod
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import frequency
import rangeq
from frequency import heavy as hh
from frequency import marginals as mg
from frequency.algebra import exact_draws as draws
from frequency.algebra.exact_draws import TruthOrLie, bernoulli, bernoulli_bits, uniform
from frequency.algebra.hash_functions import Coins
from frequency.core.channel import Channel
from frequency.core.mixture import Mixture, Relabelled
from frequency.core.protocol import Protocol
from frequency.heavy.prefixes import SpeltPrefixes
from frequency.heavy.sampled import Sampled, SampledOracle
from frequency.longitudinal import published
from frequency.marginals.views import ViewProtocol
from frequency.marginals.whole_record import InputProtocol
from frequency.oracles import hadamard_response as hadamard
from frequency.oracles import local_hashing as olh
from frequency.oracles import projective_geometry as geometry
from frequency.oracles import subset_selection as subset
from frequency.schema import Domain, Survey
from frequency.schema.survey import SurveyChannel
from mechdesign import Mechanism, Privacy, PrivacyViolation, named
from mechdesign.base.numbers import bit_source
from mechdesign.noise import discrete
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.noise.sampling import Sampler
from rangeq import central, grids, spatial
from rangeq.grids.channel import LevelSketch
from rangeq.local import square_wave as squarewave
from rangeq.spatial.likelihood import PartWave
from tests.contracts.measure import UNSETTLED, law, law_of_bit
from tests.contracts.published import probability
from tests.tape import WORD


class Case(NamedTuple):
    """A protocol of few reports.

    ``values`` are two that differ as much as any two do. ``bits`` are those of `measure.law`;
    ``ratio``, if given, takes the place of e^epsilon: the weights of unary encodings then have two
    or three binary digits, and few words decide a report.
    """

    make: Callable[[], Any]
    values: tuple[Any, Any] = (0, 1)
    bits: tuple[int, int, int] = (0, 0, 0)
    ratio: Fraction | None = None


PAIR = mg.Domain({"a": 2, "b": 2})
THREE = mg.Domain({"a": 3, "b": 2})
FAR = ((0, 0), (1, 1))
SIZES = {"x": 2, "y": 2}
OUE, SUE = Fraction(3), Fraction(9)  # q = 1/4

CASES = {
    "RR": Case(lambda: frequency.RR(2, 1.0)),
    "GRR": Case(lambda: frequency.GRR(5, 1.0)),
    "OUE": Case(lambda: frequency.OUE(3, 1.0), bits=(0, 2, 3), ratio=OUE),
    "SUE": Case(lambda: frequency.SUE(3, 1.0), bits=(0, 2, 3), ratio=SUE),
    "SubsetSelection": Case(lambda: frequency.SubsetSelection(4, 0.3), bits=(0, 1, 4)),
    "OLH": Case(lambda: frequency.OLH(4, 1.0)),
    "BLH": Case(lambda: published.BLH(4, 1.0)),
    "HRR": Case(lambda: frequency.HRR(4, 1.0)),
    "HRR, t = 2": Case(lambda: frequency.HRR(4, 1.0, coefficients=2)),
    "AffineSelection": Case(lambda: frequency.AffineSelection(3, 1.0)),
    "ProjectiveGeometry": Case(lambda: frequency.ProjectiveGeometry(3, 1.0)),
    "HadamardCountMeanSketch": Case(
        lambda: frequency.HadamardCountMeanSketch(5, 1.0, hashes=3, width=4)
    ),
    "CountMeanSketch": Case(
        lambda: frequency.CountMeanSketch(5, 1.0, hashes=2, width=2), bits=(1, 2, 2), ratio=SUE
    ),
    "JLOracle": Case(lambda: frequency.JLOracle(5, 1.0, rows=5)),
    "Tabular": Case(lambda: frequency.Tabular(named.krr(3, alpha=Fraction(1, 3)))),
    "InpRR": Case(lambda: mg.InpRR(PAIR, 1, 1.0), FAR, (0, 2, 4), OUE),
    "InpPS": Case(lambda: mg.InpPS(THREE, 2, 1.0), FAR),
    "InpOLH": Case(lambda: mg.InpOLH(PAIR, 2, 1.0), FAR),
    "InpHTCMS": Case(lambda: mg.InpHTCMS(PAIR, 2, 1.0, hashes=2, width=4), FAR),
    "InpHT": Case(lambda: mg.InpHT(THREE, 1, 1.0), ((0, 0), (2, 1))),
    "InpEM": Case(lambda: mg.InpEM(THREE, 2, 1.0), FAR),
    "MargRR": Case(lambda: mg.MargRR(PAIR, 1, 1.0), FAR, (1, 2, 2), OUE),
    "MargPS": Case(lambda: mg.MargPS(THREE, 1, 1.0), FAR),
    "MargHT": Case(lambda: mg.MargHT(THREE, 1, 1.0), FAR),
    "CALM of marginals": Case(lambda: mg.CALM(THREE, 2, 1.0), FAR),
    "UniqueHeavyHitter": Case(lambda: hh.UniqueHeavyHitter(2, 1.0)),
    "PrefixExtension": Case(lambda: hh.PrefixExtension(3, 1.0), (0, 7)),
    "TreeHist": Case(lambda: hh.TreeHist(2, 1.0), (0, 3)),
    "SuccinctHistogram": Case(
        lambda: hh.SuccinctHistogram(1, 1.0, hashes=1, channels=2, rows=2, symbol=1)
    ),
    "Flat": Case(lambda: rangeq.Flat(4, 1.0, oracle="GRR"), (0, 3)),
    "HierarchicalHistogram": Case(
        lambda: rangeq.HierarchicalHistogram(4, 1.0, branching=2, oracle=("GRR", "HRR")), (0, 3)
    ),
    "DecomposedHistogram": Case(
        lambda: rangeq.DecomposedHistogram(4, 1.0, branching=2, oracle=("GRR", "HRR")), (0, 3)
    ),
    "HaarHRR": Case(lambda: rangeq.HaarHRR(4, 1.0), (0, 3)),
    "CircularHistogram": Case(
        lambda: rangeq.CircularHistogram(4, 1.0, blocks=(2, 4), oracle="GRR"), (0, 2)
    ),
    "ShiftedHistogram": Case(
        lambda: rangeq.ShiftedHistogram(4, 1.0, widths=(3, 1), oracle="GRR"), (0, 3)
    ),
    "Composite": Case(
        lambda: rangeq.Composite(
            4, 1.2, named.krr(2, alpha=Fraction(1, 3)), branching=(2,), oracle=("GRR",)
        ),
        (0, 3),
    ),
    "PaddedSets": Case(lambda: rangeq.PaddedSets(frequency.GRR(4, 1.0), 2), ([], [2, 0])),
    "PaddedSets, of some items": Case(
        lambda: rangeq.PaddedSets(rangeq.Flat(4, 1.0, oracle="GRR"), 1, (0, 2)), ([1], [2, 1, 0])
    ),
    "Paired": Case(lambda: rangeq.Paired(frequency.GRR(4, 1.0)), FAR),
    "PerAttribute": Case(
        lambda: rangeq.PerAttribute.of(THREE, 1.0, "b", partial(rangeq.Flat, oracle="GRR")), FAR
    ),
    "Shaped": Case(lambda: rangeq.shaped(4, 1.0, n=1000), (0, 2)),
    "SquareWave": Case(lambda: rangeq.SquareWave(4, 1.0), (0, 3)),
    "Uniform": Case(lambda: grids.Uniform(SIZES, 1.0), FAR),
    "HDG": Case(lambda: grids.HDG(SIZES, 1.0, 1000), FAR),
    "TDG": Case(lambda: grids.TDG(SIZES, 1.0, 1000), FAR),
    "HIO": Case(lambda: grids.HIO(SIZES, 1.0, 1000), FAR),
    "LevelSketch": Case(lambda: LevelSketch(4, 1.0, Domain.of(SIZES), ((2, 1), (2, 1)), 4), FAR),
    "LHIO": Case(lambda: grids.LHIO(SIZES, 1.0, 1000), FAR),
    "HierarchicalHistogram2D": Case(lambda: grids.HierarchicalHistogram2D(SIZES, 1.0, 1000), FAR),
    "CALM of grids": Case(lambda: grids.RangeCALM(SIZES, 1.0, 1000), FAR),
    "HaarHRR2D": Case(lambda: grids.HaarHRR2D(SIZES, 1.0, 1000), FAR),
    "MSW": Case(lambda: grids.MSW({"x": 3, "y": 2}, 1.0, 1000), ((0, 0), (2, 1))),
    "WaveGrid": Case(
        lambda: grids.WaveGrid({"x": 3, "y": 2}, 0.3), ((0, 0), (2, 1)), bits=(2, 1, 4)
    ),
}

COMPARISONS = {
    "DiskArea": Case(lambda: spatial.DiskArea({"x": 3, "y": 1}, 2.0), ((0, 0), (2, 0))),
    "SquareWave2D": Case(lambda: spatial.SquareWave2D({"x": 3, "y": 2}, 4.0), ((0, 0), (2, 1))),
}
"""Which nothing is built on: devices have no description, and public coins draw no reports."""


@contextmanager
def of_ratio(ratio):
    if ratio is None:
        yield
    else:
        privacy = Privacy(alpha=1 / ratio, neighbours="all")
        with patch("frequency.core.channel.local_privacy", lambda epsilon: privacy):
            yield


def channel_of(protocol):
    return getattr(protocol, "channel", protocol)


def equal(measured, published):
    """Exactly; what a measure leaves unsettled, with a probability below 2^-90, may be added."""
    measured = dict(measured)
    rest = measured.pop(UNSETTLED, Fraction(0))
    assert rest < Fraction(1, 1 << 90)
    assert sum(measured.values()) == 1 - rest
    for outcome, chance in measured.items():
        assert 0 <= published(outcome) - chance <= rest, outcome
    assert 1 - rest <= sum(map(published, measured)) <= 1


def worst(laws):
    """The largest ratio of the probabilities of an outcome."""
    assert len({frozenset(found) for found in laws}) == 1
    return max(max(found[r] for found in laws) / min(found[r] for found in laws) for r in laws[0])


def check_value(protocol, value, bits):
    """The law of a report, measured; it must be the published one."""
    item = protocol.items_of([value])[0]
    channel, dtype = channel_of(protocol), protocol.report_dtype
    measured = law(lambda rng: protocol.privatize([value], rng).tobytes(), bits)
    equal(measured, lambda report: probability(channel, np.frombuffer(report, dtype)[0], item))
    return measured


def check(case):
    """And the largest ratio of the two laws is that of the audit."""
    with of_ratio(case.ratio):
        protocol = case.make()
        laws = [check_value(protocol, value, case.bits) for value in case.values]
        assert worst(laws) == protocol.audit().ratio
        assert protocol.audit().holds


def check_one(case):
    with of_ratio(case.ratio):
        check_value(case.make(), case.values[0], case.bits)


@pytest.mark.parametrize("name", [*CASES, *COMPARISONS])
def test_what_is_drawn_is_what_is_published(name):
    check({**CASES, **COMPARISONS}[name])


def subclasses(kind):
    return {kind, *(found for below in kind.__subclasses__() for found in subclasses(below))}


def test_no_protocol_is_forgotten():
    known: set[type] = {
        Sampled,
        SampledOracle,
        hh.OneBit,
        hh.FewBits,
        rangeq.Flat,
    }  # of one bit: below
    known.add(SpeltPrefixes)  # a mixture of what is here, of hashes: test_spelt_prefixes
    known |= {InputProtocol, ViewProtocol}  # of which oracle is for their subclasses to say
    known.add(PartWave)  # of which a pair's law is the product
    known.add(published.DBitFlip)  # in a system: tests/frequency/longitudinal/published
    known |= {Survey, SurveyChannel, Relabelled}  # the very reports of what they hold: test_survey
    for case in (*CASES.values(), *COMPARISONS.values()):
        protocol = case.make()
        channel = channel_of(protocol)
        parts = channel.parts if isinstance(channel, Mixture) else [channel]
        inner = [getattr(part, name, None) for part in parts for name in ("base", "oracle")]
        known |= {type(found) for found in (protocol, channel, *parts, *inner)}
    written = {
        kind
        for kind in subclasses(Channel) | subclasses(Protocol)
        if kind.__module__.split(".")[0] in ("frequency", "rangeq") and not isabstract(kind)
    }
    assert written <= known


# ------------------------------------------------------------------------ one bit, given the coins


def coins_of(channel, items):
    """Coins for every way in which the likelihoods of the items may go together."""
    found: dict = {}
    for word in range(200):
        coins = Coins(np.full(len(items), word, dtype=np.uint64), channel.seed)
        found.setdefault(tuple(channel.inner.coins_likelihood(coins, items).tolist()), word)
    return found


@pytest.mark.parametrize(
    "inner",
    [
        frequency.GRR(3, 0.5),
        frequency.OUE(3, 0.5),
        frequency.HRR(4, 0.5),
        frequency.SubsetSelection(4, 0.5),
        hh.UniqueHeavyHitter(2, 0.5),
        hh.SuccinctHistogram(2, 0.5, hashes=1, channels=2, rows=2),
    ],
    ids=lambda inner: type(inner).__name__,
)
def test_one_bit(inner):
    """Whatever the coins: they are the first word; the bit is all that is measured given them."""
    protocol = hh.OneBit(inner)
    channel, allowed = protocol.channel, protocol.audit().ratio
    items, unique = np.array([0, 1]), isinstance(inner, hh.UniqueHeavyHitter)
    reached = Fraction(1)
    for which, word in coins_of(channel, items).items():
        measured = []
        for item, likelihood in zip(items.tolist(), which, strict=True):
            found = law(
                lambda rng, v=item: int(protocol.privatize([v], rng)["bit"][0]),
                given=[word],
            )
            one = Fraction(int(channel.parameters["acceptance"][likelihood]), WORD)
            equal(found, {0: 1 - one, 1: one}.get)
            measured.append(found)
        if unique:
            idle = law(lambda rng: int(protocol.privatize([None], rng)["bit"][0]), given=[word])
            one = Fraction(sum(map(int, channel.parameters["acceptance"])), 2 * WORD)
            equal(idle, {0: 1 - one, 1: one}.get)
            measured.append(idle)
        reached = max(reached, worst(measured))
    assert reached == allowed


# -------------------------------------------------------------------------------------- mechanisms

MECHANISMS = {
    "krr": named.krr(3, alpha=Fraction(1, 3)),
    "geometric": named.geometric(3, alpha=Fraction(2, 3)),
    "explicit fair": named.explicit_fair(4, alpha=Fraction(9, 10)),
    "zeros": Mechanism([["1/2", "1/3"], [0, 0], ["1/2", "2/3"]], Privacy(alpha="2/3")),
    "one output": Mechanism([[1, 1]], Privacy(alpha=1)),
}


def check_mechanism(mechanism):
    table = mechanism.table
    for j in range(mechanism.inputs):
        found = law(lambda rng, j=j: int(mechanism.release([j], rng)[0]))
        equal(found, lambda i, j=j: table[i][j])


@pytest.mark.parametrize("name", MECHANISMS)
def test_release_has_exactly_the_law_of_the_table(name):
    """Also where thresholds are no multiples of 2^-64, and ties are decided by further words."""
    check_mechanism(MECHANISMS[name])


def test_the_audit_of_a_mechanism_reads_the_thresholds():
    """A threshold that is off by one unit of 2^-64 shows in the audit, and the mechanism releases
    nothing.
    """
    for shift in (1, 1 << 40, WORD >> 8):
        mechanism = named.geometric(3, alpha=Fraction(2, 3))
        assert mechanism.audit().ratio == Fraction(3, 2)
        mechanism = named.geometric(3, alpha=Fraction(2, 3))
        sampler = mechanism.sampler
        assert isinstance(sampler, Sampler)
        sampler._thresholds[1][0] -= np.uint64(shift)
        assert not mechanism.audit().holds
        with pytest.raises(PrivacyViolation):
            mechanism.release([0, 1])
        with pytest.raises(PrivacyViolation):
            frequency.Tabular(mechanism)
        # What is drawn by then is what the audit says.
        weights = mechanism.sampler.weights
        total = sum(row[1] for row in weights)
        found = law(lambda rng, m=mechanism: int(m.sampler.draw([1], rng)[0]))
        equal(found, lambda i, t=total, w=weights: Fraction(w[i][1], t))


# ------------------------------------------------------------------------------ noise of a curator


def laplace(alpha):
    return lambda x: (1 - alpha) / (1 + alpha) * alpha ** abs(x)


def geometric(alpha):
    return lambda x: (1 - alpha) * alpha**x


def near(measured, published):
    """As `equal`, where the measure ends at numbers of a probability below 2^-60: what is left
    unsettled is theirs.
    """
    measured = dict(measured)
    rest = measured.pop(UNSETTLED, Fraction(0))
    assert rest < Fraction(1, 1 << 56)
    assert all(0 <= published(x) - chance <= rest for x, chance in measured.items())
    assert 1 - sum(measured.values()) == rest


def law_of_noise(draw):
    return law(lambda rng: int(draw(1, bit_source(rng))[0]), negligible=Fraction(1, 1 << 60))


@pytest.mark.parametrize("alpha", [Fraction(1, 1000), Fraction(1, 1 << 12)])
def test_discrete_laplace(alpha):
    near(law_of_noise(DiscreteLaplace(alpha=alpha).draw), laplace(alpha))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [Fraction(1, 2), Fraction(2, 3)])
def test_one_side_of_discrete_laplace(alpha):
    near(law_of_noise(DiscreteLaplace(alpha=alpha).geometric), geometric(alpha))


@pytest.mark.slow
def test_one_side_in_two_parts(monkeypatch):
    """G = U + 4 T: the law of U is measured, in digits of one bit; T is a table's, as above, and
    the sum is seen.
    """
    monkeypatch.setattr(discrete, "_DIGIT", 1)
    alpha = Fraction(199, 200)
    noise = DiscreteLaplace(alpha=alpha)
    assert (noise._stride, len(noise._digits)) == (4, 2)
    near(law_of_noise(noise._remainders), lambda u: geometric(alpha)(u) / (1 - alpha**4))
    for seed in range(20):
        source = bit_source(np.random.default_rng(seed))
        found = noise.geometric(1, bit_source(np.random.default_rng(seed)))
        multiple = noise._table_draw(source(1), source)
        assert multiple < noise._length
        assert found == 4 * multiple + noise._remainders(1, source)


CURATORS = {
    "Flat": lambda: central.CentralFlat(2, 9.0),
    "Hierarchy": lambda: central.Hierarchy(4, 20.0, branching=2),
    "Wavelet": lambda: central.Wavelet(2, 20.0),
    "Hierarchy of two attributes": lambda: central.Hierarchy((3, 4), 20.0, branching=2),
    "Wavelet of two attributes": lambda: central.Wavelet((2, 3), 20.0),
}


def noisy(mechanism, counts, rng):
    """What a release adds noise to, and what it is with the noise."""
    with patch.object(type(mechanism), "estimate", lambda self, noisy: noisy):
        return mechanism.release(counts, rng)


@pytest.mark.parametrize("name", CURATORS)
def test_a_release_is_its_levels_and_their_noise(name):
    """The same words make the same numbers: their law is that of independent draws of the noise."""
    mechanism = CURATORS[name]()
    counts = np.arange(mechanism.domain).reshape(mechanism.sizes)
    for seed in range(20):
        found = noisy(mechanism, counts, np.random.default_rng(seed))
        source = bit_source(np.random.default_rng(seed))
        for level, noise, told in zip(
            mechanism.levels(counts), mechanism.noise, found, strict=True
        ):
            expected = level.ravel()[:0]
            if noise:
                expected = level + noise.draw(level.size, source).reshape(level.shape)
            assert told.tolist() == expected.tolist()


@pytest.mark.parametrize("name", CURATORS)
def test_the_audit_of_a_release_is_that_of_its_noise(name):
    """One number of each level changes by one: what was measured of x and of x + 1 differs by no
    more than that level's ratio.
    """
    mechanism = CURATORS[name]()
    asked = [noise for noise in mechanism.noise if noise]
    for noise in {noise.alpha: noise for noise in asked}.values():
        measured = law_of_noise(noise.draw)
        near(measured, laplace(noise.alpha))
        for x in (1, -1):
            assert abs(measured[0] / measured[x] * noise.alpha - 1) < Fraction(1, 1 << 30)
    assert mechanism.audit().ratio == 1 / prod(noise.alpha for noise in asked)


# ----------------------------------------------------------------------------------- planted leaks


def cut(number, part=256):
    return number - number // part


def leaky_choice(self, size, source, honest=TruthOrLie.draw):
    return honest(TruthOrLie(self.k, cut(self.lie)), size, source)


def generous_choice(self, size, source, honest=TruthOrLie.draw):
    return honest(TruthOrLie.within(self.ratio * Fraction(1043, 1000), self.k), size, source)


def leaky_bernoulli(size, numerator, source, part=256):
    return bernoulli(size, cut(numerator, part), source)


def leaky_bits(size, numerator, source):
    return bernoulli_bits(size, cut(numerator), source)


def leaky_uniform(size, k, source):
    """The first number has 1/256 more words than it should, and the last as many fewer."""
    step = WORD // k
    last = np.uint64(k * step - 1)

    def moved(count):
        words = source(count)
        return np.where(last - words < np.uint64(step // 256), np.uint64(0), words)

    return uniform(size, k, moved if k > 1 else source)


def leaky_outputs(self, inputs, source, honest=Sampler.outputs):
    return honest(self, inputs, lambda size: (words := source(size)) - (words >> np.uint64(8)))


def leaky_part(self, words, honest=Mixture._part):
    return honest(self, words - (words >> np.uint64(8)))


HONEST_POWERS = vars(DiscreteLaplace)["_powers"].func


def leaky_powers(self):
    powers = HONEST_POWERS(self)
    return powers - powers // np.uint64(256)


HONEST_KEEP = Sampled._keep


def leaky_keep(self, reports, likelihoods, words):
    HONEST_KEEP(self, reports, likelihoods, words + (words >> np.uint64(8)))


def everywhere(name, honest, leaky):
    """In all modules that have it by name."""
    return [
        patch.object(module, name, leaky)
        for title, module in list(sys.modules.items())
        if title.split(".")[0] in ("frequency", "rangeq") and vars(module).get(name) is honest
    ]


PRIVATE = [
    patch.object(TruthOrLie, "draw", leaky_choice),
    patch.object(Sampler, "outputs", leaky_outputs),
    *everywhere("bernoulli", bernoulli, leaky_bernoulli),
]
"""What decides with which probability a report is sent; by 1/256 off."""


@contextmanager
def planted(patches):
    with ExitStack() as stack:
        for each in patches:
            stack.enter_context(each)
        yield


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CASES if name != "Uniform"])
def test_a_leak_of_one_in_256_shows_in_every_protocol(name):
    """In the law of one value, measured; the audit, which reads honest numbers, cannot know.
    (`Uniform` has no secrets.)
    """
    with planted(PRIVATE), pytest.raises(AssertionError):
        check_one(CASES[name])


LEAKS = {
    "TruthOrLie.draw": ("GRR", [patch.object(TruthOrLie, "draw", leaky_choice)]),
    "TruthOrLie.draw, 1.043": ("GRR", [patch.object(TruthOrLie, "draw", generous_choice)]),
    "TruthOrLie.draw of two, 1.043": ("RR", [patch.object(TruthOrLie, "draw", generous_choice)]),
    "uniform hashes": ("OLH", [patch.object(olh, "uniform", leaky_uniform)]),
    "uniform indices": ("HRR", [patch.object(hadamard, "uniform", leaky_uniform)]),
    "uniform vectors": ("ProjectiveGeometry", [patch.object(geometry, "uniform", leaky_uniform)]),
    "uniform items of a set": ("SubsetSelection", [patch.object(subset, "uniform", leaky_uniform)]),
    "inclusion": ("SubsetSelection", [patch.object(subset, "bernoulli", leaky_bernoulli)]),
    "own bit": ("OUE", [patch.object(draws, "bernoulli", leaky_bernoulli)]),
    "far, 1/256": ("SquareWave", [patch.object(squarewave, "bernoulli", leaky_bernoulli)]),
    "far, 1/128": (
        "SquareWave",
        [patch.object(squarewave, "bernoulli", partial(leaky_bernoulli, part=128))],
    ),
    "uniform outputs": ("SquareWave", [patch.object(squarewave, "uniform", leaky_uniform)]),
    "Sampler": ("Tabular", [patch.object(Sampler, "outputs", leaky_outputs)]),
    "part of a mixture": ("HaarHRR", [patch.object(Mixture, "_part", leaky_part)]),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_in_what_draws_shows(name):
    case, patches = LEAKS[name]
    with planted(patches), pytest.raises(AssertionError):
        check_one(CASES[case])


@pytest.mark.parametrize("part", [128, 256])
def test_a_cut_of_the_number_itself_shows_in_the_audit(part):
    """The audit and the draw read one number: where it leaks, the audit says so, and what is
    measured is what the audit says.
    """
    protocol = rangeq.SquareWave(4, 1.0)
    assert protocol.audit().holds
    vars(protocol)["_far_weight"] = cut(protocol._far_weight, part)
    laws = [law(lambda rng, v=v: int(protocol.privatize([v], rng)["output"][0])) for v in (0, 3)]
    assert worst(laws) == protocol.audit().ratio
    assert not protocol.audit().holds


def test_a_leak_of_one_bit_shows():
    with patch.object(Sampled, "_keep", leaky_keep), pytest.raises(AssertionError):
        test_one_bit(frequency.GRR(3, 0.5))


def test_a_leak_of_a_release_shows():
    with patch.object(Sampler, "outputs", leaky_outputs), pytest.raises(AssertionError):
        check_mechanism(MECHANISMS["krr"])


@pytest.mark.slow
def test_a_leak_of_noise_shows():
    with patch.object(DiscreteLaplace, "_powers", property(leaky_powers)):
        for noise in (
            DiscreteLaplace(alpha=Fraction(1, 2)),
            DiscreteLaplace(alpha=Fraction(1, 1000)),
        ):
            with pytest.raises(AssertionError):
                near(law_of_noise(noise.geometric), geometric(noise.alpha))
    with patch.object(discrete, "_DIGIT", 1):
        noise = DiscreteLaplace(alpha=Fraction(199, 200))
        tables = noise._digits
        tables[0] -= tables[0] // np.uint64(256)
        with pytest.raises(AssertionError):
            near(
                law_of_noise(noise._remainders),
                lambda u: geometric(noise.alpha)(u) / (1 - noise.alpha**4),
            )


# ----------------------------------------------------------------------------- bits of many digits


def law_of_other(oracle):
    """Of the bit of item 0 under item 1, which the lowest bits of up to 64 words decide."""
    return law_of_bit(lambda rng: int(oracle.privatize([1], rng)["bits"][0, 0]) & 1)


@pytest.mark.slow
@pytest.mark.parametrize("oracle", [frequency.OUE(3, 1.0), frequency.SUE(3, 1.0)])
def test_bits_of_many_digits(oracle):
    """Of the weights for epsilon itself; that all bits of a word are alike and apart from each
    other is seen in `test_draws`.
    """
    assert law_of_other(oracle) == {1: oracle.q, 0: 1 - oracle.q}
    with patch.object(draws, "bernoulli_bits", leaky_bits):
        leaky = Fraction(cut(int(oracle.q * WORD)), WORD)
        assert law_of_other(oracle) == {1: leaky, 0: 1 - leaky}


@pytest.mark.slow
@pytest.mark.parametrize("numerator", [0, 1, WORD // 3, WORD - 1])
def test_bits_of_any_digits(numerator):
    def draw(rng):
        return int(bernoulli_bits(1, numerator, bit_source(rng))[0]) & 1

    assert law_of_bit(draw).get(1, 0) == Fraction(numerator, WORD)

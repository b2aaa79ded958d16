"""One central promise for three trusts: certified local epsilons, a curator's errors, the text."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from fractions import Fraction

import pytest

from frequency import GRR, SUE
from mechdesign import InvalidRequest, Ledger, plan
from mechdesign.accounting import shuffled
from mechdesign.accounting.pair_law import PairClass
from mechdesign.noise.discrete import DiscreteLaplace
from mechdesign.planning.task import Offer, Task
from mechdesign.planning.trust import largest_local_epsilon
from mechdesign.privacy import Privacy

N, EPSILON, DELTA = 100_000, 0.25, Fraction(1, 10**8)


@pytest.fixture(scope="module")
def items():
    return plan("frequencies", 64, n=N, epsilon=EPSILON, delta=DELTA, trust="shuffled")


@pytest.mark.slow
def test_the_promise_holds_for_every_candidate_and_a_per_cent_more_would_not(items):
    for item in items.candidates:
        collection = shuffled(item.protocol, N)
        assert collection.epsilon(DELTA) <= EPSILON == item.epsilon
        assert collection.delta(EPSILON) <= DELTA
        assert float(item.protocol.epsilon) == pytest.approx(float(item.local_epsilon), abs=0)
        more = shuffled(type(item.protocol)(64, item.local_epsilon * Fraction(101, 100)), N)
        assert more.epsilon(DELTA) > EPSILON, f"{item.name}: a per cent more is too much"


@pytest.mark.slow
def test_the_ranking_is_another_than_the_local_one(items):
    local = plan("frequencies", 64, n=N, epsilon=EPSILON)
    assert [item.name for item in local.candidates][-1] == "GRR" == items.best.name
    protocols = {item.name: item.protocol for item in items.candidates}

    def apart(frequency):
        ratio = protocols["SUE"].variance(N, frequency) / protocols["GRR"].variance(N, frequency)
        return math.sqrt(ratio)

    # Standard errors of an item that nobody holds, and of one of an even population
    assert apart(0.0) == pytest.approx(3.57, abs=0.03)
    assert apart(1 / 64) == pytest.approx(2.72, abs=0.03)
    errors = {item.name: item.error for item in items.candidates}
    assert errors["GRR"] < errors["OUE"] < errors["SUE"] < local.best.error


def local_epsilon(item) -> float:
    assert item.local_epsilon is not None
    return float(item.local_epsilon)


def law(protocol, k):
    """Generalised randomised response, with the protocol's own exact probabilities."""
    p, q = Fraction(protocol.p), Fraction(protocol.q)
    one, ratio = Fraction(1), p / q
    return (PairClass(q, ratio, one), PairClass(q, one, ratio), PairClass((k - 2) * q, one, one))


@dataclass(frozen=True)
class Stated:
    """A protocol of the tests' own, which states the law of `law` itself."""

    domain: int
    own_epsilon: float | Fraction

    def pair_laws(self):
        return (law(GRR(self.domain, self.own_epsilon), self.domain),)

    def attack_laws(self):
        return ()


@dataclass(frozen=True)
class Mixed(Task):
    """One candidate that states its likelihoods, and two that cannot serve."""

    @property
    def question(self):
        return "what tests ask"

    @property
    def error_is(self):
        return "e^-epsilon"

    @property
    def names(self):
        return ("stated", "unstated", "broken")

    def offer(self, name, epsilon, n):
        if name == "broken":
            raise ValueError("broken")
        protocol = Stated(self.domain, epsilon) if name == "stated" else object()
        return Offer(protocol, math.exp(-epsilon))


@pytest.fixture
def mixed(monkeypatch):
    entry = type("Entry", (), {"load": staticmethod(lambda: Mixed)})
    monkeypatch.setattr("mechdesign.planning.planner._entries", lambda: {"mixed": entry})


@pytest.mark.usefixtures("mixed")
def test_the_text_says_whom_it_trusts_with_what_and_who_is_refused_and_why():
    found = plan("mixed", 64, n=1000, epsilon="0.5", delta="1e-6", trust="shuffled")
    (only,) = found.candidates
    assert str(found).splitlines() == [
        "what tests ask, n = 1000, central epsilon = 0.5, delta = 1e-06, trust = shuffled; error:"
        " e^-epsilon",
        "   candidate  local epsilon  error",
        f"*  stated     {float(only.local_epsilon):.4g}          {only.error:.3g}",
        f"* stated: error {only.error:.4g} is the least",
        "cannot serve: unstated: object does not state how likely its reports are: it must"
        " implement pair_laws() and attack_laws(), see"
        " mechdesign.accounting.shuffling.StatesLikelihoods",
        "cannot serve: broken: broken",
        "The shuffler is trusted to drop who sent what, when and from where, and to publish only"
        " the whole collection, in random order. If it does not, what holds is the local epsilon of"
        " each report.",
    ]
    assert 3 < local_epsilon(only) < 4
    (row,) = csv.DictReader(io.StringIO(found.csv()))
    assert (row["trust"], row["central epsilon"], row["delta"]) == ("shuffled", "0.5", "1e-06")
    assert float(row["local epsilon"]) == local_epsilon(only)
    assert only.error == math.exp(-local_epsilon(only))
    assert "trust = shuffled" in found.plot([0.25, 0.5]).axes[0].get_title(loc="left")


@pytest.mark.usefixtures("mixed")
@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_reports_have_the_central_epsilon_which_always_serves(n):
    found = plan("mixed", 64, n=n, epsilon=0.25, delta=1e-8, trust="shuffled")
    assert 0.25 <= local_epsilon(found.best) < 0.252
    assert shuffled(found.best.protocol, n).epsilon(1e-8) <= 0.25


@pytest.mark.slow
@pytest.mark.usefixtures("mixed")
def test_the_largest_local_epsilon_is_16_or_the_central_one():
    for epsilon, largest in ((4, 16), (20, 20)):
        found = plan("mixed", 8, n=10**12, epsilon=epsilon, delta="1e-3", trust="shuffled")
        assert local_epsilon(found.best) == pytest.approx(largest, rel=1e-3)
        assert local_epsilon(found.best) <= largest


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_the_search_agrees_with_bisection(n, epsilon):
    delta = Fraction(1, 100 * n)

    def collection(local):
        return shuffled(Stated(5, local), n)

    found = largest_local_epsilon(collection, epsilon, delta, n)
    low, high = epsilon, 16.0
    while high / low > 1.002:
        middle = math.sqrt(low * high)
        kept = collection(middle).delta(epsilon) <= delta
        low, high = (middle, high) if kept else (low, middle)
    assert float(found) == pytest.approx(low, rel=0.01)
    assert found <= low * 1.002


def test_a_candidate_that_cannot_serve_beyond_an_epsilon_keeps_below_it():
    def collection(local):
        if local > 2:
            raise ValueError("too much")
        return shuffled(Stated(5, local), 10**6)

    found = largest_local_epsilon(collection, 0.25, DELTA, 10**6)
    assert 1.9 < found <= 2


@pytest.mark.parametrize("domain", [2, 64])
def test_a_curator_adds_discrete_laplace_noise_to_counts(domain):
    found = plan("frequencies", domain, n=N, epsilon=EPSILON, trust="curator", delta=DELTA)
    # A changed value changes one of two counts that add up to n, and two of more
    own = EPSILON if domain == 2 else EPSILON / 2
    noise = DiscreteLaplace(alpha=Privacy.from_epsilon(own).alpha).variance
    assert found.best.error == pytest.approx(math.sqrt(noise) / N, rel=1e-6)
    assert found.best.epsilon == EPSILON
    ratio = found.best.protocol.audit().ratio ** (1 if domain == 2 else 2)
    assert ratio <= 1 / Privacy.from_epsilon(EPSILON).alpha
    assert str(found).splitlines()[-2].startswith("The curator is trusted with every user's true")
    assert "delta = 1e-08, trust = curator" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "domain"), [("frequencies", 2), ("ranges", 16), ("quantiles", 16)]
)
def test_who_trusts_more_errs_less(task, domain):
    given_ = {"n": N, "epsilon": EPSILON}
    local = plan(task, domain, **given_)
    amplified = plan(task, domain, **given_, delta=DELTA, trust="shuffled")
    curated = plan(task, domain, **given_, trust="curator")
    assert local.best.error > 5 * amplified.best.error > 5 * curated.best.error > 0
    assert local.task.error_is == amplified.task.error_is == curated.task.error_is


def test_a_curator_may_be_asked_for_an_error():
    found = plan("frequencies", 64, n=N, error=1e-4, trust="curator")
    assert found.best.error <= 1e-4 < 1.01 * found.best.error
    more = plan("frequencies", 64, epsilon=0.25, error=1e-4, trust="curator")
    assert N < (more.best.n or 0) < 2 * N


def test_where_a_curator_knows_the_truth_nothing_changes():
    assert str(plan("count", 8, epsilon=1, trust="curator")) == str(plan("count", 8, epsilon=1))


def test_local_is_the_default():
    for trust in ({}, {"trust": "local"}):
        found = plan("frequencies", 8, n=100, epsilon=1, **trust)
        assert "trust" not in str(found)
        assert found.best.local_epsilon is None
        assert "epsilon" in found.rows()[0]
        assert "trust" not in found.rows()[0]


SHUFFLED = {"trust": "shuffled", "n": 100, "epsilon": 1}


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({**SHUFFLED}, "needs a delta strictly between 0 and 1"),
        *(
            ({**SHUFFLED, "delta": delta}, "delta must be strictly between 0 and 1")
            for delta in (0, 1, -0.1, 2, math.nan, math.inf, "x", True, [1])
        ),
        ({"n": 100, "epsilon": 1, "delta": 1e-6}, "delta is for a central promise"),
        ({**SHUFFLED, "delta": 1e-6, "trust": "nobody"}, "trust must be one of local, shuffled"),
        ({**SHUFFLED, "delta": 1e-6, "trust": None}, "trust must be one of"),
        ({**SHUFFLED, "delta": 1e-6, "trust": ["local"]}, "trust must be one of"),
        ({"trust": "shuffled", "epsilon": 1, "delta": 1e-6}, "two of n, epsilon and error"),
        ({"trust": "shuffled", "n": 5, "delta": 1e-6}, "two of n, epsilon and error"),
        ({"trust": "shuffled", "n": 5, "delta": 1e-6, "error": 1}, "give no error and no ledger"),
        ({**SHUFFLED, "delta": 1e-6, "ledger": Ledger("2")}, "give no error and no ledger"),
        ({**SHUFFLED, "delta": 1e-6, "n": 0}, "n must be"),
        ({"trust": "curator", "epsilon": 1}, "two of n, epsilon and error"),
        ({"trust": "curator", "epsilon": 1, "n": 9, "candidates": {"b": SUE}}, "are not ranked"),
    ],
)
def test_what_is_refused_and_why(given_, message):
    with pytest.raises(InvalidRequest, match=message):
        plan("frequencies", 8, **given_)


def test_what_nobody_can_shuffle_or_curate():
    with pytest.raises(InvalidRequest, match="no user reports"):
        plan("count", 8, epsilon=1, delta=1e-6, trust="shuffled")
    for task in ("heavy hitters", "shaped"):
        with pytest.raises(InvalidRequest, match="no mechanism of a curator is known"):
            plan(task, 16, n=100, epsilon=1, trust="curator")


@pytest.mark.slow
@pytest.mark.parametrize(("task", "domain"), [("ranges", 64), ("marginals", (4, 3, 5))])
def test_a_curator_with_a_delta_may_add_gaussian_noise(task, domain):
    """A changed value is a user less and one more: both steps together keep the promise."""
    found = plan(task, domain, n=100, epsilon=1, delta="1e-6", trust="curator")
    (gaussian,) = (item for item in found.candidates if item.name == "gaussian")
    loss = gaussian.protocol.cost
    half, delta = 0.5, loss.delta(0.5)
    assert delta * (1 + math.exp(half)) <= 1e-6
    assert loss.delta(0.499) * (1 + math.exp(half)) > 1e-6
    without = plan(task, domain, n=100, epsilon=1, trust="curator")
    assert "gaussian" not in {item.name for item in without.candidates}


@pytest.mark.slow
def test_a_candidate_of_ones_own_is_shuffled_too():
    found = plan("frequencies", 8, **SHUFFLED, delta=1e-6, candidates={"again": GRR})
    items = {item.name: item for item in found.candidates}
    assert local_epsilon(items["again"]) == local_epsilon(items["GRR"]) > 1

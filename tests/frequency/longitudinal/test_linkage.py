"""How many users permanent reports link: by enumeration of every attack, and by attacks."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from frequency import (
    GRR,
    HRR,
    OLH,
    OUE,
    SUE,
    AffineSelection,
    ProjectiveGeometry,
    SubsetSelection,
    Tabular,
)
from frequency.core import Fingerprints, channel_of
from frequency.longitudinal import Memoised, linkage_curve, linked_share
from frequency.longitudinal.linkage import KINDS, with_parameters
from frequency.longitudinal.published import (
    LGRR,
    LOSUE,
    OLOLOHA,
    RAPPOR,
    BiLOLOHA,
    DBitFlipPM,
)
from mechdesign import InvalidRequest, plan
from mechdesign.cli.program import main
from tests.frequency.oracles import twins

UNIFORM = Fingerprints(3)
TWO_BITS = Fingerprints(1, 2, Fraction(2, 3), Fraction(1, 5))
BEHIND_A_SET = Fingerprints(2, 1, Fraction(3, 4), Fraction(1, 4), Fraction(1, 2))


def law_of(prints: Fingerprints) -> list[Fraction]:
    """The probability of each report, one by one, of evenly spread values."""
    public, places, own, other, told = prints
    if not places:
        return [Fraction(1, public)] * public
    law = []
    for bits in product((0, 1), repeat=places):
        chance = [(other if bit else 1 - other) for bit in bits]
        none = math.prod(chance)
        held = [none / chance[place] * (own if bit else 1 - own) for place, bit in enumerate(bits)]
        law.append((1 - told) * none + told * sum(held) / places)
    return [chance / public for chance in law] * public


def best_attack(
    law: Sequence[Fraction], n: int, seen: Callable[[int], dict[Any, Fraction]]
) -> Fraction:
    """The chance of the best guess which of n second periods is that of a first one.

    ``law`` is that of states, and ``seen`` what a period shows of a state: all of it is listed.
    """
    shows = [seen(state) for state in range(len(law))]
    kinds = list(dict.fromkeys(kind for show in shows for kind in show))
    alone = {
        kind: sum(p * show.get(kind, 0) for p, show in zip(law, shows, strict=True))
        for kind in kinds
    }
    both = {
        (one, two): sum(
            p * show.get(one, 0) * show.get(two, 0) for p, show in zip(law, shows, strict=True)
        )
        for one, two in product(kinds, repeat=2)
    }
    total = Fraction(0)
    for first, *second in product(kinds, repeat=n + 1):
        total += max(
            both[first, second[own]]
            * math.prod(alone[kind] for user, kind in enumerate(second) if user != own)
            for own in range(n)
        )
    return total / n


@pytest.mark.parametrize("prints", [UNIFORM, TWO_BITS, BEHIND_A_SET])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_best_attack_on_permanent_reports(prints: Fingerprints, n: int) -> None:
    law = law_of(prints)
    assert sum(law) == 1
    exact = best_attack(law, n, lambda state: {state: Fraction(1)})
    assert exact == sum(1 - (1 - p) ** n for p in law) / n
    assert 0 <= prints.linked(n) - exact < 1e-12


@pytest.mark.parametrize("prints", [UNIFORM, TWO_BITS, BEHIND_A_SET])
@pytest.mark.parametrize(
    ("missed", "days"), [(Fraction(1, 3), 1), (Fraction(2, 3), 2), (Fraction(1), 1)]
)
def test_the_best_attack_if_it_is_told_which_reports_are_permanent(
    prints: Fingerprints, missed: Fraction, days: int
) -> None:
    law, hidden = law_of(prints), Fraction(missed**days)
    for n in (1, 2, 3):
        exact = best_attack(law, n, lambda state: {state: 1 - hidden, None: hidden})
        assert abs(prints.linked(n, missed, days) - exact) < 1e-12


def test_all_users_at_once_are_linked_no_better() -> None:
    """Whatever matching of equal reports is taken: the mean of right ones is the same."""
    law, n = law_of(TWO_BITS), 3
    total = Fraction(0)
    for labels in product(range(len(law)), repeat=n):
        chance = math.prod(law[label] for label in labels)
        # The second period shows the same labels, as somebody else orders them; each order that
        # gives what is seen is as probable as another
        alike = [p for p in permutations(range(n)) if [labels[k] for k in p] == list(labels)]
        right = {
            sum(Fraction(sum(a == b for a, b in zip(p, guess, strict=True))) for p in alike)
            / len(alike)
            for guess in alike
        }
        assert right == {len(set(labels))}
        total += chance * len(set(labels))
    assert abs(float(total / n) - TWO_BITS.linked(n)) < 1e-12


@pytest.mark.parametrize("days", [1, 2])
def test_a_few_days_show_no_more(days: int) -> None:
    """The best attack on the reports of few days, which does not know when they are permanent."""
    question = Memoised(GRR(3, 1), total=3)
    law = [Fraction(1, 3)] * 3
    kept, other, one = question.kept, question.missed / 3, Fraction(1)

    def seen(state: int) -> dict[Any, Fraction]:
        return {
            reports: math.prod((other + kept * (report == state) for report in reports), start=one)
            for reports in product(range(3), repeat=days)
        }

    exact = best_attack(law, 2, seen)
    bound = linked_share(question, 2, days)
    assert exact < bound < linked_share(question, 2, days + 1) < linked_share(question, 2)
    assert exact > Fraction(1, 2)


def cases() -> Iterator[Any]:
    """Contracts with a list of all reports, and how many items the oracle has room for."""
    for name, domain, epsilon, points in (
        ("GRR", 5, 1, 5),
        ("SubsetSelection", 5, 1, 5),
        ("OUE", 3, 1, 3),
        ("SUE", 5, 1, 5),
        ("ProjectiveGeometry", 4, 1, 4),
        ("ProjectiveGeometry", 5, 0.1, 7),
        ("AffineSelection", 4, 0.1, 4),
        ("AffineSelection", 3, 0.1, 4),
        ("OLH", 3, 1, 0),  # one of its functions is the same for all items
        ("OLH", 2, 1, 0),
        ("HRR1", 4, 1, 4),
        ("HRR2", 3, 1, 4),
        ("CountMeanSketch", 3, 1, 0),
        ("HadamardCountMeanSketch", 3, 1, 0),
        ("JLOracle", 3, 1, 0),
    ):
        yield pytest.param(name, domain, epsilon, points, id=f"{name}-{domain}-{points}")


@pytest.mark.parametrize(("name", "domain", "epsilon", "points"), list(cases()))
def test_no_population_has_more_linked_users(
    name: str, domain: int, epsilon: float, points: int
) -> None:
    """From the exact laws of all reports, of permanent ones as `Memoised` defines them."""
    contract = getattr(twins, f"Test{name}")()
    oracle = contract.make(domain, epsilon)
    reports, table = contract.twin(oracle)
    question = Memoised(oracle, total=3)
    likelihoods = [value for kind in oracle.likelihoods for value in kind]
    permanent = []
    for item in range(domain):
        places = oracle.likelihood(reports, np.full(len(reports), item)).tolist()
        column = [
            row[item] / likelihoods[place] * question.stretched(likelihoods[place])
            for row, place in zip(table, places, strict=True)
        ]
        assert abs(sum(column) - 1) < 1e-9
        permanent.append(np.array(column, dtype=float))
    rng = np.random.default_rng(2)
    even = np.full(domain, 1 / domain)
    populations = [even, *np.eye(domain)[:2], *rng.dirichlet(np.full(domain, 0.5), 20)]
    for n in (1, 7, 300):
        bound = linked_share(question, n)
        share = [
            (1 - (1 - np.minimum(population @ permanent, 1)) ** n).sum() / n
            for population in populations
        ]
        assert max(share) <= bound * (1 + 1e-9)
        assert max(share) == pytest.approx(share[0], rel=1e-9) or points != domain
        if points == domain:
            assert share[0] == pytest.approx(bound, rel=1e-9)


QUESTIONS: list[Any] = [
    Memoised(GRR(8, 1), 2),
    Memoised(SUE(3, 1), 2),
    Memoised(OUE(4, 1), 3),
    Memoised(SubsetSelection(7, 1), 2),
    Memoised(AffineSelection(9, 1, blocks=(3, 2, 1)), 2),
    Memoised(AffineSelection(7, 1, blocks=(7, 1, 2)), 2),
    Memoised(ProjectiveGeometry(13, 1, order=(3, 3)), 2),
    Memoised(HRR(8, 1), 2),
    Memoised(OLH(9, 1), 2),
    LGRR(8, 2, 1),
    LOSUE(4, 2, 1),
    RAPPOR(3, 2, 1),
    BiLOLOHA(8, 2, 1),
    OLOLOHA(9, 2, 1),
    DBitFlipPM(6, 1, 1),
    DBitFlipPM(6, 1, 3),
    DBitFlipPM(4, 1, 4),
]


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_as_many_permanent_reports_are_different_as_is_said(question: Any) -> None:
    """The number changes by one with a user at most, so that by McDiarmid the mean over the
    collections is off by more than .018 with a probability below 1e-6.
    """
    n, repeats, rng = 30, 800, np.random.default_rng(7)
    values = rng.integers(0, question.protocol.domain, n * repeats)
    reports = question.start(values, rng).reports[0].reshape(repeats, n)
    different = [len({report.tobytes() for report in row}) for row in reports]
    linked = linked_share(question, n)
    assert np.mean(different) / n <= linked + 0.018
    same = 0.03 if "OL" in str(question) else 0  # one function is the same for all items
    assert np.mean(different) / n >= linked - 0.018 - same


@pytest.mark.slow
@pytest.mark.parametrize(
    "question",
    [
        Memoised(GRR(4, 1), 2),
        Memoised(AffineSelection(9, 1, blocks=(3, 2, 1)), 2),
        Memoised(SubsetSelection(5, 2), 3),
    ],
    ids=str,
)
def test_an_attack_links_what_is_said(question: Memoised) -> None:
    """The most frequent report of a period is its fingerprint: of many days, nearly always.

    Of 3000 collections one user is looked for in each: the share of those found is off by more than
    .05 with a probability below 1e-6 (Hoeffding).
    """
    n, repeats, days, rng = 6, 3000, 60, np.random.default_rng(5)
    values = rng.integers(0, question.protocol.domain, n * repeats)
    state = question.start(values, rng)

    def period(length: int) -> np.ndarray:
        days_of = np.stack([question.privatize(state, values, rng) for _ in range(length)])
        kinds, codes = np.unique(days_of, return_inverse=True)
        codes = codes.reshape(length, -1)
        counts = np.zeros((codes.shape[1], len(kinds)), dtype=np.int64)
        for day in codes:
            counts[np.arange(codes.shape[1]), day] += 1
        return counts.reshape(repeats, n, -1)

    def found(length: int) -> float:
        first, second = period(length), period(length)
        alike = np.einsum("rk,ruk->ru", first[:, 0], second) + 1e-3 * rng.random((repeats, n))
        return float((alike.argmax(axis=1) == 0).mean())

    assert found(days) == pytest.approx(linked_share(question, n), abs=0.06)
    for length in (1, 2, 4):
        assert found(length) <= linked_share(question, n, length) + 0.05


def test_more_days_link_more_and_more_users_fewer() -> None:
    question = Memoised(SubsetSelection(64, "1/2"), 1)
    by_days = [linked_share(question, 500, days) for days in (1, 2, 7, 100, 10**6)]
    assert by_days == sorted(by_days)
    assert by_days[-1] <= linked_share(question, 500) == pytest.approx(1, abs=1e-14)
    short = Memoised(AffineSelection(64, "1/2", blocks=(3, 4, 1)), 1)
    by_users = [linked_share(short, n) for n in (1, 2, 500, 10**6, 10**12)]
    assert by_users == sorted(by_users, reverse=True)
    assert by_users[0] == 1
    assert by_users[-1] == pytest.approx(120 / 10**12, rel=1e-9)
    assert linked_share(Memoised(GRR(1, 1), 1), 500) == pytest.approx(1 / 500, rel=1e-12)
    assert linked_share(Memoised(OUE(9000, 1), 1), 10**12) == 1


def test_what_is_measured_with_64_items_is_below_what_is_said() -> None:
    """The figures of the benchmark of a week: 98.0, 10.2, 23.6 and 36.5 %."""
    measured = (
        (Memoised(SubsetSelection(64, "1/2"), 1), 0.980, 0.01),
        (Memoised(GRR(64, "1/2"), 1), 0.102, 0.03),
        (BiLOLOHA(64, 1, "1/2"), 0.236, 0.02),
        (OLOLOHA(64, 1, "1/2"), 0.365, 0.07),
    )
    for question, share, near in measured:
        assert share <= linked_share(question, 500, 7) <= share + near


# ------------------------------------------------------------------------------------- the curve


def test_what_is_on_the_curve() -> None:
    for domain, total, day, n, days in (
        (16, 2, 1, 1000, None),
        (64, 1, "1/2", 500, 7),
        (300, 4, 2, 10**5, None),
    ):
        curve = linkage_curve(domain, total, day, n, days)
        assert len(curve.points) > 1
        for point in (*curve.points, *curve.others):
            question = point.question
            assert point.linked == linked_share(question, n, days)
            assert point.error == math.sqrt(question.protocol.variance(n, 1 / domain))
            assert question.audit().holds
            assert question.protocol.audit().holds
        linked = [point.linked for point in curve.points]
        errors = [point.error for point in curve.points]
        assert linked == sorted(set(linked))
        assert errors == sorted(set(errors), reverse=True)
        for other in curve.others:
            assert curve.best(other.linked).error <= other.error * (1 + 1e-9)
        # No oracle that is compared is below it, by itself
        for kind in KINDS:
            for name, oracle in with_parameters(kind, domain, day):
                assert name.startswith(kind.__name__)
                share = linked_share(Memoised(oracle, total), n, days)
                error = math.sqrt(oracle.variance(n, 1 / domain))
                assert curve.best(share).error <= error * (1 + 1e-9)
        assert channel_of(curve.points[0].question.protocol).fingerprints.public >= domain


def test_a_point_is_found_by_its_linkage() -> None:
    curve = linkage_curve(64, 1, "1/2", 500)
    assert curve.best(1) == curve.points[-1]
    assert curve.best("1/4").name == "AffineSelection(3, 4, 1)"
    # Four times fewer are linked than by the most accurate, with 1.7 % more variance
    assert curve.best("1/4").linked < 0.24 * curve.best(1).linked
    assert (curve.best("1/4").error / curve.best(1).error) ** 2 < 1.02
    with pytest.raises(ValueError, match=r"at most 0\.1 of 500 users: the least is 0\.128, of GRR"):
        curve.best("1/10")
    for bad in (0, 1.5, "2", -1, float("nan")):
        with pytest.raises(ValueError, match="linked must be"):
            curve.best(bad)
    assert str(curve).splitlines()[2].split() == ["*", "GRR", "0.128", "0.553", "10.068", "6"]
    rows = list(csv.DictReader(io.StringIO(curve.csv())))
    assert [row["protocol"] for row in rows[: len(curve.points)]] == [
        point.name for point in curve.points
    ]
    assert float(rows[0]["linked"]) == curve.points[0].linked
    assert {row["best"] for row in rows} == {"True", "False"}


def test_the_picture_shows_the_curve_and_the_others() -> None:
    curve = linkage_curve(64, 1, "1/2", 500, 7)
    (axes,) = curve.plot().axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert list(axes.lines[1].get_xdata()) == [point.linked for point in curve.points]
    assert list(axes.lines[1].get_ydata()) == [point.error for point in curve.points]
    told = ", ".join(text.get_text() for text in axes.texts).split(", ")
    for point in (*curve.points, *curve.others):
        assert point.name.partition("(")[0] in [text.partition("(")[0] for text in told]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 2, 1, 100), "domain"),
        ((8, 1, 2, 100), "total must be at least"),
        ((8, 2, 1, 0), "n must be"),
        ((8, 2, 1, 100, 0), "days must be"),
    ],
)
def test_curves_that_there_are_not(given: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        linkage_curve(*given)


def test_protocols_whose_reports_are_not_known() -> None:
    with pytest.raises(TypeError, match="Tabular does not state"):
        linked_share(Memoised(Tabular(GRR(3, 1).mechanism), 2), 10)


# -------------------------------------------------------------------------------------- the plan


def test_plans_show_and_limit_who_is_linked(capsys: pytest.CaptureFixture[str]) -> None:
    asked: dict[str, Any] = {"n": 500, "epsilon": 1, "days": 7, "day": "1/2"}
    free = plan("frequencies", 64, **asked)
    for item in free.candidates:
        assert dict(item.other_errors)["linked"] == linked_share(item.protocol, 500, 7)
    few = plan("frequencies", 64, **asked, linked="1/4")
    assert few.best.protocol.protocol == AffineSelection(64, "1/2", blocks=(3, 4, 1))
    assert few.best.error < 1.01 * free.candidates[0].error
    assert {item.name for item in few.candidates} == {
        *("AffineSelection", "GRR", "HRR", "ProjectiveGeometry")
    }
    assert ("SubsetSelection", "SubsetSelection links 0.986 of the users at least") in few.refused
    curve = linkage_curve(64, 1, "1/2", 500, 7)
    for most in (0.13, 0.15, 0.2, 0.9, 1):
        found = plan("frequencies", 64, **asked, linked=most).best
        assert found.error == pytest.approx(curve.best(most).error, rel=1e-12)
    command = "plan frequencies --domain 64 --n 500 --epsilon 1 --days 7 --day 1/2"
    assert main([*command.split(), "--detail", "linked=1/4"]) == 0
    assert capsys.readouterr().out == f"{few}\n"
    with pytest.raises(ValueError, match=r"links 0\.12"):
        plan("frequencies", 64, **asked, linked="1/10")
    with pytest.raises(InvalidRequest, match="linked is of reports of several days"):
        plan("frequencies", 64, n=500, epsilon=1, linked="1/4")
    with pytest.raises(InvalidRequest, match="linked must be above 0"):
        plan("frequencies", 64, **asked, linked=2)


def test_candidates_of_ones_own_are_not_known_to_link_few() -> None:
    def own(domain: int, epsilon: Any) -> Tabular:
        return Tabular(GRR(domain, epsilon).mechanism)

    asked: dict[str, Any] = {"n": 500, "epsilon": 1, "days": 7, "candidates": {"own": own}}
    (item,) = (item for item in plan("frequencies", 8, **asked).candidates if item.name == "own")
    assert math.isnan(dict(item.other_errors)["linked"])
    refused = dict(plan("frequencies", 8, **asked, linked=1).refused)
    assert refused["own"] == "of Tabular it is not known how many users it links"

"""What design(...) refuses to begin."""

from __future__ import annotations

import pickle
import sys

import pytest

from mechdesign import MechanismError, Metric, Privacy, TooLarge, design

ADJACENT, ALL = Privacy("9/10"), Privacy("9/10", "all")


@pytest.mark.parametrize(
    ("n", "privacy"),
    [(1000, ADJACENT), (100_000, ADJACENT), (100_000, ALL), (700, ALL), (10**400, ADJACENT)],
)
def test_what_is_too_large_is_refused_before_any_work(n: int, privacy: Privacy) -> None:
    with pytest.raises(TooLarge, match=r"would take about .* GiB; nothing was done") as error:
        design(n, privacy)
    assert isinstance(error.value, MechanismError)
    assert error.value.seconds > 86400 or error.value.bytes > 1 << 34
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


def test_the_estimate_is_that_of_the_neighbours() -> None:
    with pytest.raises(TooLarge, match=r"24 hours and 54\.1 GiB"):
        design(900, ALL)
    with pytest.raises(TooLarge, match=r"41 hours and 3\.9 GiB"):
        design(1000, ADJACENT)


@pytest.mark.parametrize(
    "neighbours",
    ["adjacent", "all", 3, 100, [(0, 1), (2, 3)], Metric([[0, 1, None], [1, 0, 2], [None, 2, 0]])],
)
def test_pairs_are_counted_without_being_listed(neighbours: object) -> None:
    privacy = Privacy("1/2", neighbours)
    for inputs in [3] if isinstance(neighbours, Metric) else [4, 5, 17]:
        assert privacy.pair_count(inputs) == len(privacy.pairs(inputs))
    if not isinstance(neighbours, (list, Metric)):
        assert privacy.pair_count(1) == 0


def test_what_is_asked_for_all_the_same_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["mechdesign.optimal"], "_SECONDS", 0)
    with pytest.raises(TooLarge):
        design(2, ADJACENT)
    assert design(2, ADJACENT, however_large=True).certificate.gap == 0

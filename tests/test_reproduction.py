"""The page that holds the sources against what is computed here can be made, and its verdicts are
computed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mechdesign import Mechanism, Privacy, named
from reproduction.__main__ import SOURCES, load, outcome, page
from reproduction.count_mechanisms import remaps_geometric
from reproduction.report import Settings, Verdict, judged

PLACES = [(name, k) for name in SOURCES for k in range(len(load(name).claims))]
QUICK = Settings(quick=True, data=None)
ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.parametrize("name", SOURCES)
def test_every_claim_can_be_computed(name: str) -> None:
    mine = [place for place in PLACES if place[0] == name]
    outcomes = {place: outcome(*place, QUICK) for place in mine}
    text = page([name], outcomes, QUICK)
    for place, found in outcomes.items():
        claim = load(name).claims[place[1]]
        assert f"**{claim.label}**" in text
        assert found.theirs
        assert found.ours
        if found.verdict is not Verdict.REPRODUCED:
            assert found.remarks or found.detail, claim.label


def test_labels_are_distinct() -> None:
    for name in SOURCES:
        labels = [claim.label for claim in load(name).claims]
        assert len(set(labels)) == len(labels)


def test_the_page_of_the_repository_is_of_these_claims() -> None:
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \*\*(.*?)\*\* \|", text, re.MULTILINE) == [
        load(name).claims[k].label for name, k in PLACES
    ]
    assert "quick run" not in text


def test_a_verdict_follows_from_statements() -> None:
    assert judged("a", "b", {"holds": True}, {}).verdict is Verdict.REPRODUCED
    assert judged("a", "b", {"holds": True, "fails": False}, {}).verdict is Verdict.DIFFERS
    assert judged("a", "b", {"fails": False}, {"corrected": True}).verdict is Verdict.SOURCE_ERRS
    assert judged("a", "b", {"fails": False}, {"corrected": False}).verdict is Verdict.DIFFERS


def test_remapped_geometric_mechanisms() -> None:
    assert remaps_geometric(named.geometric(4, "2/3"))
    assert remaps_geometric(named.uniform(4, Privacy("2/3")))
    # Remapping outputs of the geometric mechanism keeps it derivable ...
    rows = named.geometric(3, "2/3").table
    merged = [[a + b for a, b in zip(rows[0], rows[1], strict=True)], rows[2], rows[3]]
    assert remaps_geometric(Mechanism(merged, Privacy("2/3")))
    # ... a mechanism that is not even private is not, and EM is private but not derivable.
    assert not remaps_geometric(Mechanism([[1, 0], [0, 1]], Privacy("1/2")))
    assert not remaps_geometric(named.explicit_fair(4, "9/10"))

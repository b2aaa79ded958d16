"""What the commands share: the statement of privacy, and which files may be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from mechdesign import Mechanism, named
from mechdesign.cli import main


def test_nothing_is_overwritten_without_force(wm: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = wm.read_bytes()
    command = ["design", "--n", "2", "--alpha", "1/2", "--out", "wm.json"]
    assert main(command) == 2
    assert "--force" in capsys.readouterr().err
    assert wm.read_bytes() == before
    assert main([*command, "--force"]) == 0
    assert Mechanism.load(wm) == named.geometric(2, alpha="1/2")


def test_epsilon_is_rounded_to_the_private_side(here: Path) -> None:
    assert main(["design", "--n", "2", "--epsilon", "0.1", "--out", "m.json"]) == 0
    assert Mechanism.load("m.json").privacy.epsilon <= 0.1


@pytest.mark.parametrize("command", ["design", "compare"])
@pytest.mark.parametrize("budget", ["--epsilon 0", "--epsilon 0.0", "--alpha 1"])
def test_epsilon_0_needs_a_word_of_its_own(
    command: str, budget: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--n", "3", *budget.split()]) == 2
    assert "--allow-zero-epsilon if that is wanted" in capsys.readouterr().err
    assert main([command, "--n", "3", *budget.split(), "--allow-zero-epsilon"]) == 0


def test_a_symbolic_link_that_leads_nowhere_is_refused_before_any_work(
    wm: Path, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "link.png").symlink_to(here / "absent.png")
    assert main(["plot", "wm.json", "--out", "link.png", "--force"]) == 2
    assert "leads nowhere" in capsys.readouterr().err
    assert not (here / "absent.png").exists()

"""A task of the tests' own, in place of those that packages add."""

import math
from dataclasses import dataclass

import pytest

from mechdesign.planning.task import Offer, Task


@dataclass(frozen=True)
class Toy(Task):
    """Three candidates: noise, noise over a floor, and one of unknown error; ``broken`` ones serve
    nobody.
    """

    scale: float = 1.0
    broken: bool = False

    @property
    def question(self):
        return f"toys of {self.domain}"

    @property
    def error_is(self):
        return "how wrong"

    @property
    def names(self):
        return ("noise", "floor", "mystery", "large epsilon only")

    def offer(self, name, epsilon, n):
        if self.broken or (name == "large epsilon only" and epsilon < 2):
            raise ValueError(f"{name} cannot serve")
        noise = self.scale / (float(epsilon) * math.sqrt(n))
        error = {
            "noise": 2 * noise,
            "floor": math.hypot(noise, 0.01),
            "mystery": math.nan,
            "large epsilon only": noise,
        }[name]
        return Offer((name, epsilon), error, 8 if name == "floor" else 3, "1", "n")


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setattr(
        "mechdesign.planning.planner._entries",
        lambda: {"toy": type("Entry", (), {"load": staticmethod(lambda: Toy)})},
    )

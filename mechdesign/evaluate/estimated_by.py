"""EstimatedBy: a protocol with another estimate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class EstimatedBy:
    """A protocol for `evaluate`, with another way to estimate from the same reports.

    Parameters
    ----------
    protocol : object
        Makes and aggregates the reports, or simulates them.
    estimate : callable
        From an aggregate an estimate, that has ``answer(where)``: post-processed, as fitted.
    """

    def __init__(self, protocol: Any, estimate: Callable[[Any], Any]) -> None:
        self.protocol = protocol
        self.estimate = estimate

    def __getattr__(self, name: str) -> Any:
        if name in ("privatize", "aggregate", "simulate"):
            return getattr(self.protocol, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

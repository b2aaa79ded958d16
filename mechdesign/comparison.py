"""Mechanisms side by side: losses, errors and properties in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign._support.numbers import Rational
from mechdesign._support.text import aligned, brief, printable
from mechdesign.losses import L0, L1
from mechdesign.mechanism import Mechanism
from mechdesign.standard_errors import UNBIASED, StandardErrors


@dataclass(frozen=True)
class Comparison:
    """A table; ``str()`` lays it out, ``rows`` are for code (column name -> text)."""

    rows: tuple[dict[str, str], ...]

    def __str__(self) -> str:
        names = list(self.rows[0])
        lines = aligned([names, *([row[name] for name in names] for row in self.rows)])
        return "\n".join([*lines, UNBIASED])


def compare(
    mechanisms: Mapping[str, Mechanism], prior: Sequence[Rational] | None = None
) -> Comparison:
    """One row a mechanism, for inputs drawn from ``prior`` (uniform if None).

    Columns: ``L0`` (plain, the chance of a wrong answer), ``scaled L0`` (eq. 6.1; always for
    uniform inputs), ``L1``, both `StandardErrors`: that of a published count (``RMSE``) and that of
    its unbiased estimate (``unbiased SE``, "-" where there is none), the worst privacy ratio (at
    most 1/alpha), and which of the seven properties hold. Raises ValueError when there is nothing
    to compare, or the mechanisms differ in the number of inputs.
    """
    if not mechanisms:
        raise ValueError("no mechanism to compare")
    if len({mechanism.inputs for mechanism in mechanisms.values()}) > 1:
        sizes = ", ".join(
            f"{printable(name)}: {mechanism.inputs}" for name, mechanism in mechanisms.items()
        )
        raise ValueError(f"only mechanisms with as many inputs can be compared ({sizes})")
    return Comparison(tuple(_row(name, mechanism, prior) for name, mechanism in mechanisms.items()))


def _row(name: str, mechanism: Mechanism, prior: Sequence[Rational] | None) -> dict[str, str]:
    audit = mechanism.audit()
    held = mechanism.properties()
    return {
        "mechanism": name,
        "L0": f"{float(mechanism.loss(L0(prior=prior))):.5f}",
        "scaled L0": (
            f"{float(mechanism.scaled_l0()):.5f}"
            if mechanism.outputs == mechanism.inputs > 1
            else "-"
        ),
        "L1": f"{float(mechanism.loss(L1(prior=prior))):.4f}",
        **StandardErrors.of(mechanism, prior).cells(),
        "worst ratio": brief(audit.ratio) + ("" if audit.holds else " NOT PRIVATE"),
        **{short: "yes" if holds else "-" for short, holds in held.items()},
    }

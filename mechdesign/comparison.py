"""Mechanisms side by side: losses, errors and properties in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mechdesign.base.numbers import Rational
from mechdesign.base.text import aligned, brief, printable
from mechdesign.losses import L0, L1, Loss
from mechdesign.mechanism import Mechanism
from mechdesign.properties import Property, PropertyLike, resolve
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
    mechanisms: Mapping[str, Mechanism],
    prior: Sequence[Rational] | None = None,
    *,
    losses: Mapping[str, Loss] | None = None,
    properties: Sequence[PropertyLike] = (),
) -> Comparison:
    """One row a mechanism, for inputs drawn from ``prior`` (uniform if None).

    Columns: ``L0`` (plain, the chance of a wrong answer), ``scaled L0`` (eq. 6.1; always for
    uniform inputs), ``L1``, both `StandardErrors`: that of a published count (``RMSE``) and that of
    its unbiased estimate (``unbiased SE``, "-" where there is none), the worst privacy ratio (at
    most 1/alpha), and which of the seven properties hold.

    Parameters
    ----------
    mechanisms : mapping of str to Mechanism
        By the names of their rows.
    prior : sequence of exact numbers, optional
        How likely each input is.
    losses : mapping of str to Loss, optional
        More columns, by their names; each with the prior of its own.
    properties : sequence of Property, type or str, default ()
        More properties.

    Returns
    -------
    Comparison
        To print.

    Raises
    ------
    ValueError
        There is nothing to compare, the mechanisms differ in the number of inputs, or a property
        is not known.
    """
    if not mechanisms:
        raise ValueError("no mechanism to compare")
    if len({mechanism.inputs for mechanism in mechanisms.values()}) > 1:
        sizes = ", ".join(
            f"{printable(name)}: {mechanism.inputs}" for name, mechanism in mechanisms.items()
        )
        raise ValueError(f"only mechanisms with as many inputs can be compared ({sizes})")
    more, asked = losses or {}, [resolve(one) for one in properties]
    return Comparison(
        tuple(_row(name, one, prior, more, asked) for name, one in mechanisms.items())
    )


def _row(
    name: str,
    mechanism: Mechanism,
    prior: Sequence[Rational] | None,
    losses: Mapping[str, Loss],
    properties: Sequence[Property],
) -> dict[str, str]:
    audit = mechanism.audit()
    held = mechanism.properties(*properties)
    return {
        "mechanism": name,
        "L0": f"{float(mechanism.loss(L0(prior=prior))):.5f}",
        "scaled L0": (
            f"{float(mechanism.scaled_l0()):.5f}"
            if mechanism.outputs == mechanism.inputs > 1
            else "-"
        ),
        "L1": f"{float(mechanism.loss(L1(prior=prior))):.4f}",
        **{title: f"{float(mechanism.loss(loss)):.4f}" for title, loss in losses.items()},
        **StandardErrors.of(mechanism, prior).cells(),
        "worst ratio": brief(audit.ratio) + ("" if audit.holds else " NOT PRIVATE"),
        **{short: "yes" if holds else "-" for short, holds in held.items()},
    }

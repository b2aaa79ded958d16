"""What dp_accounting (Google) is told of composed privacy losses: never less than is lost."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from flint import arb

from mechdesign.accounting.privacy_curve import float_above
from mechdesign.accounting.privacy_loss import PrivacyLoss
from mechdesign.base.balls import ball, precision

_BITS = 128


def pessimistic_pld(parts: Sequence[tuple[PrivacyLoss, int]], interval: float) -> Any:
    """A privacy loss distribution of dp_accounting whose delta is at least that of the losses.

    A privacy loss between two multiples of ``interval`` is moved to both of them such that the
    means of 1 and of e^-loss under the first distribution are kept: a mean-preserving spread of the
    likelihood ratio, which raises delta at every epsilon, and far less than rounding all losses
    upwards would (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, PETS 2022). Probabilities are
    rounded up to floats. What dp_accounting makes of it is in its own floating-point arithmetic.

    Parameters
    ----------
    parts : sequence of (PrivacyLoss, int)
        At least one loss, and how many times each is composed.
    interval : float
        The step of the losses, above 0.

    Returns
    -------
    dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
        Pessimistic, and the same for both orders of neighbours.

    Raises
    ------
    ImportError
        The package dp-accounting is not installed.
    ValueError
        An interval that is not a number above 0.
    """
    if not 0 < interval < math.inf:
        raise ValueError(f"the step of privacy losses must be a number above 0, got {interval}")
    distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    make = distributions.PrivacyLossDistribution.create_from_rounded_probability
    found = None
    for loss, times in parts:
        with precision(_BITS):
            one = make(_on_multiples(loss, interval), float_above(ball(loss.infinite)), interval)
        many = one if times == 1 else one.self_compose(times)
        found = many if found is None else found.compose(many)
    return found


def dp_event(rho: float) -> Any:
    """The event of dp_accounting that promises rho-zCDP, or nothing if rho is infinite.

    Raises ImportError if the package dp-accounting is not installed.
    """
    events = import_module("dp_accounting.dp_event")
    return events.NonPrivateDpEvent() if rho == math.inf else events.ZCDpEvent(rho)


def _on_multiples(loss: PrivacyLoss, interval: float) -> dict[int, float]:
    """The probabilities, rounded up, of multiples of the interval."""
    step = arb(interval)
    found: defaultdict[int, arb] = defaultdict(arb)
    for ratio, p in loss.ratios:
        probability, value = ball(p), ball(ratio).log()
        below = int((value / step).upper().floor().fmpz())
        # One too many, where the loss is a multiple, moves up what belongs to it
        up = ((step * below - value).exp() - 1) / ((-step).exp() - 1)
        up = up.nonnegative_part()
        found[below] += probability * (1 - up).nonnegative_part()
        found[below + 1] += probability * up
    return {place: float_above(mass) for place, mass in found.items() if mass.upper() > 0}

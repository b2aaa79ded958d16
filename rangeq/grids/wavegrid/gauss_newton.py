"""Damped Gauss-Newton: the maximum of a log-posterior that is a function of least squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from mechdesign.base.arrays import Floats

State = TypeVar("State")
Known = TypeVar("Known")

_TRIES = 8
"""How often a step that gains nothing is damped more, at most."""


class Expansion(NamedTuple, Generic[Known]):
    """What is known around a point, of P parameters.

    Attributes
    ----------
    known : object
        What the caller keeps of it.
    gradient : numpy.ndarray of float64
        Of the function: shape (P,).
    hessian : numpy.ndarray of float64
        That of least squares, negated so that it is positive definite: shape (P, P).
    """

    known: Known
    gradient: Floats
    hessian: Floats


def climb(
    point: Floats,
    objective: Callable[[Floats, State | None], tuple[float, State]],
    expansion: Callable[[Floats, State], Expansion[Known]],
    steps: int,
    least_gain: float,
) -> tuple[Floats, float, State, Expansion[Known]]:
    """Steps of damped Gauss-Newton (Levenberg and Marquardt) uphill.

    Parameters
    ----------
    point : numpy.ndarray of float64
        Where to begin: shape (P,).
    objective : callable
        The function's value at a point, and what the caller keeps of it; it is given what was kept
        at the last point, None at first.
    expansion : callable
        What is known around a point, from what was kept there.
    steps : int
        How many at most.
    least_gain : float
        A step that gains less is the last.

    Returns
    -------
    tuple
        The point reached, its value, what was kept and what is known there.
    """
    value, state = objective(point, None)
    here, damping = expansion(point, state), 1e-3
    for _ in range(steps):
        for _ in range(_TRIES):
            damped = here.hessian + damping * np.diag(np.diag(here.hessian))
            step = np.linalg.solve(damped, here.gradient)
            new, moved = objective(point + step, state)
            if new > value:
                break
            damping = max(10 * damping, 1e-2)
        else:
            break
        gain, value, state, point, damping = new - value, new, moved, point + step, damping / 10
        here = expansion(point, state)
        if gain < least_gain:
            break
    return point, value, state, here

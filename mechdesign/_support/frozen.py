"""Fields of frozen dataclasses, set while the instance is made."""

from __future__ import annotations

from typing import Any


def set_fields(instance: Any, **values: Any) -> None:
    """Store values, as a frozen dataclass may in ``__init__`` and ``__post_init__`` alone.

    Parameters
    ----------
    instance : object
        An instance that nobody else has seen yet.
    **values
        The normalised values of its fields.
    """
    for name, value in values.items():
        object.__setattr__(instance, name, value)

"""Fields of frozen dataclasses, set while the instance is made."""

from __future__ import annotations

from typing import Any


def set_fields(instance: Any, **values: Any) -> None:
    """Store values in a frozen dataclass; only for ``__init__`` and ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)

"""Finite fields take half a second to make and are all alike: the tests here make each once."""

from functools import cache

import pytest

from frequency.field import Field

_made = cache(Field)


@pytest.fixture(autouse=True)
def _fields_are_made_once(monkeypatch):
    monkeypatch.setattr("frequency.heavy.codes.Field", _made, raising=False)

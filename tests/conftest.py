"""Fixtures of all tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


def pytest_collection() -> None:
    """Millions of objects are made of tests, and all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What stays is not looked through again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _cache_of_designs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Designs are kept in a folder of the tests, not in that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHDESIGN_CACHE", str(tmp_path_factory.mktemp("designs")))
        yield

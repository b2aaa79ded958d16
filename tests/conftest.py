"""Fixtures of all tests."""

from __future__ import annotations

import errno
import gc
import hashlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from _pytest.doctest import DoctestModule
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings

from tests import perturbation

perturbation.install(("mechdesign", "frequency", "rangeq"))

# Machines that run other work at the same time are slow at times
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")


_AS_IT_IS = pytest.StashKey[bool]()
"""Of tests that are not repeated."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Parts of the tests, which do not depend on the order of these."""
    group = parser.getgroup("parts of the tests")
    group.addoption(
        "--cases",
        type=int,
        metavar="N",
        help="of every parametrised test N cases at most, the same at every run",
    )
    group.addoption(
        "--part",
        metavar="K/N",
        help="of all that is selected the K-th of N parts, K = 0 .. N - 1",
    )
    group.addoption(
        "--once",
        action="store_true",
        help="do not repeat numerical tests with results of linear algebra that are a little off",
    )


def _number(nodeid: str) -> int:
    return int.from_bytes(hashlib.sha256(nodeid.encode()).digest()[:8], "big")


def _place(item: pytest.Item) -> tuple[bool, int]:
    """The order in which cases are chosen: slow ones after those that always run."""
    return item.get_closest_marker("slow") is not None, _number(item.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for no examples in the docstrings of tests, which have none."""
    found = yield
    return [one for one in found if not isinstance(one, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> Iterator[None]:
    """Make no items of the cases that ``--cases`` leaves out: most of tens of thousands."""
    yield
    most, calls = metafunc.config.getoption("--cases"), metafunc._calls
    if not most or len(calls) <= most or metafunc.definition.get_closest_marker("every_case"):
        return
    own = metafunc.definition.nodeid
    marks = {call.id: {mark.name for mark in call.marks} for call in calls}
    chosen = sorted(marks, key=lambda case: ("slow" in marks[case], _number(f"{own}[{case}]")))[
        :most
    ]
    metafunc._calls = [
        call for call in calls if call.id in chosen or "every_case" in marks[call.id]
    ]


LONG_EXAMPLES = {
    "frequency.heavy",
    "frequency.heavy.prefix_tree.PrefixExtension",
    "frequency.planning.measured_errors.measure_errors",
    "mechdesign.accounting.composition.compose",
    "rangeq.grids.wavegrid.protocol.best",
    "rangeq.local.smoothed.shaped",
}
"""Docstrings with examples that take seconds, which are slow tests: they can have no mark."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``--cases`` and ``--part`` do."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name in LONG_EXAMPLES:
            item.add_marker(pytest.mark.slow)
    kept = set(items)
    if most := config.getoption("--cases"):
        cases = defaultdict(list)
        for item in items:
            cases[item.nodeid.split("[")[0]].append(item)
        kept = {
            item
            for own in cases.values()
            for k, item in enumerate(sorted(own, key=_place))
            if k < most or item.get_closest_marker("every_case")
        }
        for own in cases.values():  # of each test one case is repeated
            for item in sorted(own, key=_place)[1:]:
                item.stash[_AS_IT_IS] = True
    if part := config.getoption("--part"):
        place, parts = map(int, part.split("/"))
        kept = {item for item in kept if _number(item.nodeid) % parts == place}
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = [item for item in items if item in kept]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat each numerical test with results of linear algebra that are off by 1e-13 relative.

    A test is numerical if the packages multiply matrices of floats while it runs, or solve or
    factor any. If it passes it is run again, and reported again only if it fails then; with --cases
    that is done with one case of each. Fixtures of modules, and what caches hold, are those of the
    first run.
    """
    once = item.config.getoption("--once") or item.get_closest_marker("of_rounding")
    if once or item.stash.get(_AS_IT_IS, False) or not isinstance(item, pytest.Function):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    perturbation.begin()
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    if perturbation.numerical() and all(report.passed for report in reports):
        item._initrequest()
        with perturbation.perturbed(_number(item.nodeid) % 2**32):
            again = runtestprotocol(item, nextitem=nextitem, log=False)
        if any(report.failed for report in again):
            reports = again
            for report in reports:
                report.sections.append(
                    ("perturbation", "results of linear algebra are off by 1e-13")
                )
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_collection() -> None:
    """Millions of objects are made of tests, and all of them stay."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What stays is not looked through again, nor once now for the little of it that does not."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _cache_of_designs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Designs are kept in a folder of the tests, not in that of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MECHDESIGN_CACHE", str(tmp_path_factory.mktemp("designs")))
        yield


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Within, what is written does not fit on the disk."""

    @contextmanager
    def full() -> Iterator[None]:
        def fails(handle: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("mechdesign.base.files.os.fsync", fails)
            yield

    return full

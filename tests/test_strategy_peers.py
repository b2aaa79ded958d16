"""The strategies that benchmarks/workload_release.py compares with have their published errors."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the comparison, which is no installed package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = ("hdmm_figures", "strategy_peers")
    return SimpleNamespace(**{name: import_module(name) for name in names})


def queries(workload: str, cells: int) -> np.ndarray:
    """The workload, written out."""
    place = np.arange(cells)
    if workload == "ranges":
        first, last = np.triu_indices(cells)
    elif workload == "prefixes":
        first, last = np.zeros_like(place), place
    else:
        first = np.arange(cells - 31)
        last = first + 31
    return ((place >= first[:, None]) & (place <= last[:, None])).astype(np.float64)


@pytest.mark.parametrize("cells", [128, 256])
@pytest.mark.parametrize(
    ("workload", "norm"),
    [("prefixes", 1), ("ranges", 1), ("prefixes", 2), ("ranges", 2), ("width-32", 2)],
)
def test_errors_are_the_published_ones(
    modules: SimpleNamespace, workload: str, cells: int, norm: int
) -> None:
    peers, figures = modules.strategy_peers, modules.hdmm_figures
    published = (figures.LAPLACE if norm == 1 else figures.GAUSSIAN)[workload, cells]
    asked = queries(workload, cells)
    gram = asked.T @ asked
    for name, strategy in (
        ("identity", peers.identity(cells)),
        ("binary tree", peers.tree(cells, 2)),
        ("wavelet", peers.wavelet(cells)),
        ("H_b", peers.hb(cells)),
    ):
        found = peers.error(strategy, gram, len(asked), norm)
        assert found == pytest.approx(published[name], rel=1e-8)
        assert peers.error(1.01 * strategy, gram, len(asked), norm) == pytest.approx(found)
    greedy = peers.error(peers.greedy(gram, norm), gram, len(asked), norm)
    if norm == 1:  # its weights are found in another way here
        assert greedy == pytest.approx(published["greedy"], rel=0.02)
    assert greedy > published["HDMM"]


def test_the_greedy_strategy_has_columns_of_norm_one(modules: SimpleNamespace) -> None:
    peers = modules.strategy_peers
    for cells in (1, 2, 5, 13, 16):
        asked = queries("ranges", cells)
        for norm in (1, 2):
            found = peers.greedy(asked.T @ asked, norm)
            assert np.linalg.norm(found, norm, axis=0) == pytest.approx(np.ones(cells))

"""Errors of perturbation tables, totals too: as listing all keys of all cells has them."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from mechdesign import Privacy
from mechdesign.cli import main
from mechdesign.perturbation import Disclosure, PerturbationTable
from mechdesign.tables.perturbed_errors import PerturbedErrors
from mechdesign.tables.suppression import SuppressionRule, totals_of, with_totals
from mechdesign.tables.suppression_comparison import compare_suppression

EVEN = Privacy(alpha="1/2")


def by_every_key(table: PerturbationTable, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean squares of the noise, and of totals less sums of cells."""
    choices = [range(table.keys) if count else range(1) for count in counts.ravel()]
    truth, number = with_totals(counts), 0
    squares, apart = np.zeros(truth.shape), np.zeros(truth.shape)
    for assigned in product(*choices):
        keys = with_totals(np.array(assigned).reshape(counts.shape))
        noise = table.noise(truth, keys)
        cells = noise[(slice(-1),) * counts.ndim]
        squares = squares + noise**2
        apart = apart + (with_totals(cells) - noise) ** 2
        number += 1
    return squares / number, apart / number


@pytest.mark.parametrize(
    "counts", [[1, 2], [0, 3, 0], [0, 0], [[1, 2], [3, 1]], [[0, 2], [1, 0]], [[0, 0], [1, 2]]]
)
@pytest.mark.parametrize("seed", range(4))
def test_errors_are_those_of_all_keys(counts, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = [rng.integers(-min(c, 2), 3, size=4) for c in range(4)]
    table = PerturbationTable.of_noise(np.array(rows))  # biased, and at a count of 0 as well
    found = PerturbedErrors.of("t", table, with_totals(counts), EVEN)
    squares, apart = by_every_key(table, np.array(counts))
    totals = totals_of(squares.shape)
    assert found.squares == pytest.approx(squares)
    assert found.apart[totals] == pytest.approx(apart[totals])
    assert np.isnan(found.apart[~totals]).all()
    assert found.rmse(totals=True) == pytest.approx(np.sqrt(squares[totals].mean()))
    assert found.additivity == pytest.approx(np.sqrt(apart[totals].mean()))
    assert found.delta == Disclosure(table).curve.at_ratio(1 / EVEN.alpha) >= found.from_one


def test_the_comparison_takes_perturbation_tables(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = PerturbationTable.of_laws(4, [{0: 4}, {-1: 1, 0: 2, 1: 1}])
    rule = SuppressionRule(threshold=5)
    found = compare_suppression([3, 12, 9], rule, EVEN, perturbation={"mine": table})
    assert "mine: root mean square error over cells 0.71, over totals 0.71" in str(found)
    assert "totals and sums of cells are 1.41 apart" in str(found)
    assert found.to_dict()["perturbation"]["mine"]["delta"] == "3/4"
    labels = {text.get_text() for text in found.plot().legends[0].get_texts()}
    assert "mine: root mean square error" in labels
    table.write("p.csv")
    (here / "t.csv").write_text("ward,count\na,3\nb,12\nc,9\n")
    words = "compare-suppression t.csv --threshold 5 --alpha 1/2 --perturbation p.csv --json"
    assert main(words.split()) == 0
    assert json.loads(capsys.readouterr().out)["perturbation"].keys() == {"p.csv"}

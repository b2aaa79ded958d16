"""Perturbation tables beside rounding and unbounded noise."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mechdesign.cli import main
from mechdesign.perturbation import (
    Disclosure,
    PerturbationTable,
    compare_perturbation,
    rounding_table,
)
from mechdesign.perturbation.alternatives import COMPARED

SMALL = PerturbationTable.of_laws(4, [{0: 4}, {-1: 1, 0: 2, 1: 1}])


@pytest.mark.parametrize("base", [2, 3, 5])
def test_rounding_is_a_perturbation_table(base: int) -> None:
    nearest, fair = rounding_table(base), rounding_table(base, at_random=True)
    for count in range(4 * base):
        ((noise, keys),) = nearest.law(count).items()
        assert keys == nearest.keys
        assert (count + noise) % base == 0
        assert abs(noise) <= base / 2
        assert fair.bias(count) == 0
        assert {(count + noise) % base for noise in fair.law(count)} == {0}
    assert Disclosure(nearest).curve.unbounded == 1
    assert Disclosure(fair).curve.unbounded == Fraction(1, base)
    with pytest.raises(ValueError, match="the base"):
        rounding_table(1)


def test_rows_say_what_the_tables_do() -> None:
    rows = compare_perturbation({"small": SMALL}, protected=1).rows
    names = [row.name for row in rows]
    assert names[:2] == ["small", "rounding to 3"]
    curve = Disclosure(SMALL, protected=1).curve
    assert rows[0].deltas == tuple(curve.delta(e) for e in COMPARED)
    assert rows[0][2:] == (Fraction(1, 4), 0, Fraction(1, 2), Fraction(11, 2))
    nearest = rows[1]
    assert nearest.name == "rounding to 3"
    assert nearest.apart == 11**2  # each cell one too many, and the total one too few
    table = rounding_table(3)
    for cells in ([2] * 9 + [1], [1, 2] * 5, [1] * 10, [5] * 10):
        published = sum(n + next(iter(table.law(n))) for n in cells)
        total = sum(cells) + next(iter(table.law(sum(cells))))
        assert (total - published) ** 2 <= nearest.apart
    alone = compare_perturbation({"none": PerturbationTable.of_laws(1, [{0: 1}])})
    assert len(alone.rows) == 5
    with pytest.raises(ValueError, match="at least one table"):
        compare_perturbation({})


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(2), Fraction(50)])
def test_unbounded_noise_is_that_of_its_distribution(variance: Fraction) -> None:
    """Summed up over a thousand outputs, in floats."""
    side = int(2 * variance * 4)
    scale = int(4 * variance * side**2 / variance)
    keys = scale // 2 * 2
    each = int(variance * keys / (2 * side**2))
    law = {-side: each, 0: keys - 2 * each, side: each}
    table = PerturbationTable.of_laws(keys, [{0: keys}] * side + [law])
    assert table.variance(side) == pytest.approx(variance, rel=0.3)
    row = compare_perturbation({"a": table}).rows[-1]
    assert float(row.mean_square) == pytest.approx(float(table.variance(side)), rel=1e-6)
    alpha = np.exp(-float(row.name.rpartition(" ")[2]))
    places = np.arange(-1000, 1002)
    one, other = ((1 - alpha) / (1 + alpha) * alpha ** np.abs(places - centre) for centre in (0, 1))
    for epsilon, delta in zip((0.5, 1, 2), row.deltas, strict=True):
        expected = np.maximum(one - np.exp(epsilon) * other, 0).sum()
        assert float(delta) == pytest.approx(expected, abs=2e-3)
    assert row.certain == row.bias == 0


def test_the_command_prints_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    SMALL.write("a.csv")
    SMALL.write("b.txt", "sas")
    compared = compare_perturbation({"a.csv": SMALL, "b.txt": SMALL}, protected=1)
    arguments = "compare-perturbation a.csv b.txt --protected 1"
    assert main(arguments.split()) == 0
    assert capsys.readouterr().out == f"{compared}\n"
    assert main(f"{arguments} --json --plot c.png".split()) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out) == compared.json()
    assert shown.err == "wrote c.png\n"
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")

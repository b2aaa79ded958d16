"""Formulas of the notation pages, as they are written there, against the code."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from frequency import GRR, HRR, OLH, OUE, SUE

PAGES = Path(__file__).parent.parent / "docs" / "notation"
N = 1000


def said(page: str, *texts: str) -> None:
    """The page has these words."""
    content = (PAGES / page).read_text(encoding="utf-8")
    for text in texts:
        assert text in content, text


@pytest.mark.parametrize("domain", [4, 8, 64])
@pytest.mark.parametrize("e", [1.5, 3.0, 9.0])
def test_hadamard_response(domain: int, e: float) -> None:
    said(
        "frequencies.md",
        "[c² (1 - 1/D)² - 1/D²] / N at f = 0 with c = (e^ε + 1) / (e^ε - 1)",
        "(c² - 1) (1 - 1/D)² / N at f = 1",
        "3.046875 at D = 8",
    )
    c, oracle = (e + 1) / (e - 1), HRR(domain, math.log(e))
    none = (c**2 * (1 - 1 / domain) ** 2 - 1 / domain**2) / N
    every = (c**2 - 1) * (1 - 1 / domain) ** 2 / N
    assert float(oracle.variance(N, 0.0)) == pytest.approx(none, rel=1e-6)
    assert float(oracle.variance(N, 1.0)) == pytest.approx(every, rel=1e-6)
    if (domain, e) == (8, 3.0):
        assert none * N == pytest.approx(3.046875)


@pytest.mark.parametrize("e", [1.5, 3.0, 9.0])
@pytest.mark.parametrize("f", [0.0, 0.3, 1.0])
def test_pure_protocols(e: float, f: float) -> None:
    said("frequencies.md", "(f p(1-p) + (1-f) q(1-q)) / (n (p-q)²)")
    for oracle in (GRR(8, math.log(e)), OUE(8, math.log(e)), SUE(8, math.log(e))):
        p, q = float(oracle.p), float(oracle.q)
        expected = (f * p * (1 - p) + (1 - f) * q * (1 - q)) / (N * (p - q) ** 2)
        assert float(oracle.variance(N, f)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("domain", [2, 8, 100])
@pytest.mark.parametrize("f", [0.0, 0.3, 1.0])
def test_generalised_randomised_response(domain: int, f: float) -> None:
    said("frequencies.md", "(e^ε + D - 2 + f (D-2)(e^ε - 1)) / (e^ε - 1)²")
    e = 3.0
    expected = (e + domain - 2 + f * (domain - 2) * (e - 1)) / (e - 1) ** 2 / N
    assert float(GRR(domain, math.log(e)).variance(N, f)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("e", [1.5, 3.0, 9.0])
def test_local_hashing(e: float) -> None:
    said("frequencies.md", r"\operatorname{Var} = \frac{(e^ε + q - 1)^2}{n (e^ε - 1)^2 (q - 1)}")
    oracle = OLH(1000, math.log(e))
    q = oracle.hashes_to
    expected = (e + q - 1) ** 2 / (N * (e - 1) ** 2 * (q - 1))
    assert float(oracle.variance(N, 0.0)) == pytest.approx(expected, rel=1e-6)

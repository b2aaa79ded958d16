"""The figures of the thesis that only an example draws show the numbers of its definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from examples.thesis_figures import l0_against_alpha, l0_against_n, l0d_against_p, rmse_against_p
from mechdesign import Mechanism, named
from mechdesign.losses import binomial
from tests.mechdesign.test_plot import ALPHA, PS, error_shares, legend, lines, trio


def test_l0_against_n() -> None:
    """GM scores 2 alpha / (1 + alpha) and UM 1 (Figure 6.5); EM scores ((n + 1) - trace) / n (eq.
    6.1).
    """
    ns = [1, 2, 3, 8]
    curves = {
        "GM": lambda n: named.geometric(n, alpha=ALPHA),
        "EM": lambda n: named.explicit_fair(n, alpha=ALPHA),
        "UM": named.uniform,
    }
    figure = l0_against_n(curves, ns)
    fair = [named.explicit_fair(n, alpha=ALPHA).table for n in ns]
    expected = {
        "GM": [18 / 19] * 4,
        "EM": [
            float((n + 1 - sum(table[i][i] for i in range(n + 1))) / n)
            for n, table in zip(ns, fair, strict=True)
        ],
        "UM": [1.0] * 4,
    }
    drawn = lines(figure)
    assert list(drawn) == legend(figure) == list(expected)
    for name, (x, y) in drawn.items():
        assert x.tolist() == ns
        assert y.tolist() == expected[name]
    assert figure.axes[0].get_ylabel() == "scaled L0 (eq. 6.1)"


def test_l0_against_alpha() -> None:
    alphas = [Fraction(1, 2), Fraction(2, 3), ALPHA]
    seen: list[Fraction] = []

    def geometric(alpha: Fraction) -> Mechanism:
        seen.append(alpha)
        return named.geometric(5, alpha=alpha)

    figure = l0_against_alpha({"GM": geometric, "UM": lambda alpha: named.uniform(5)}, alphas)
    assert seen == [Fraction(1, 2), Fraction(2, 3), Fraction(9, 10)]
    (x, y), (_, flat) = lines(figure).values()
    assert x.tolist() == [0.5, 2 / 3, 0.9]
    assert y.tolist() == [float(2 * alpha / (1 + alpha)) for alpha in seen]
    assert flat.tolist() == [1.0, 1.0, 1.0]
    assert figure.axes[0].get_ylabel() == "scaled L0 (eq. 6.1)"


@pytest.mark.parametrize("n", [1, 4, 8])
def test_rmse_against_p(n: int) -> None:
    mechanisms = trio(n)
    figure = rmse_against_p(mechanisms, PS)
    drawn = lines(figure)
    assert list(drawn) == legend(figure) == list(mechanisms)
    for name, (x, y) in drawn.items():
        shares = [error_shares(mechanisms[name], binomial(n, p)) for p in PS]
        assert x.tolist() == [float(p) for p in PS]
        assert y == pytest.approx(
            [math.sqrt(sum(e * e * share for e, share in row.items())) for row in shares], rel=1e-12
        )
    assert figure.axes[0].get_ylabel() == "root mean square error"


@pytest.mark.parametrize("d", [0, 1, 3])
def test_l0d_against_p(d: int) -> None:
    mechanisms = trio(4)
    figure = l0d_against_p(mechanisms, PS, d) if d != 1 else l0d_against_p(mechanisms, PS)
    for name, (x, y) in lines(figure).items():
        shares = [error_shares(mechanisms[name], binomial(4, p)) for p in PS]
        assert x.tolist() == [float(p) for p in PS]
        assert y.tolist() == [
            float(sum(share for e, share in row.items() if abs(e) > d)) for row in shares
        ]
    assert f"> {d}" in figure.axes[0].get_ylabel()

"""Thesis 4.2: marginals from Hadamard coefficients."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.linalg import hadamard
from scipy.stats import binom

from frequency.marginals import InpHT
from reproduction.marginals.studies import binary
from reproduction.report import Kind, Outcome, Settings, claim, judged, near


def transform(d: int) -> np.ndarray:
    """Definition 16, bit by bit."""
    return np.array(
        [[(-1) ** (i & j).bit_count() for j in range(1 << d)] for i in range(1 << d)]
    ) / 2 ** (d / 2)


def below(d: int, k: int) -> list[int]:
    return [a for a in range(1 << d) if a.bit_count() <= k]


def rebuilt(d: int, theta: Mapping[int, float], beta: int) -> dict[int, float]:
    """Eq. 4.1."""
    phi = transform(d)
    return {
        gamma: sum(
            theta[a] * sum(phi[a, e] for e in range(1 << d) if e & beta == gamma)
            for a in range(1 << d)
            if a & beta == a
        )
        for gamma in range(1 << d)
        if gamma & beta == gamma
    }


def summed(d: int, z: np.ndarray, beta: int) -> dict[int, float]:
    """Eq. 2.1."""
    return {
        gamma: sum(z[e] for e in range(1 << d) if e & beta == gamma)
        for gamma in range(1 << d)
        if gamma & beta == gamma
    }


def same(a: Mapping[int, float], b: Mapping[int, float]) -> bool:
    return a.keys() == b.keys() and all(abs(a[key] - b[key]) < 1e-12 for key in a)


@claim(
    "Figure 4.1, Definition 16",
    "the Hadamard transform",
    "the Hadamard matrix for D = 8: symmetric, orthonormal",
    tolerance="exact",
)
def figure_4_1(settings: Settings) -> Outcome:
    phi = transform(3)
    return judged(
        "entries ±" + f"{abs(phi).max():.4f}",
        {
            "entries are ±2^(-d/2)": bool(np.allclose(abs(phi), 8**-0.5)),
            "symmetric": bool((phi == phi.T).all()),
            "rows orthonormal": bool(np.allclose(phi @ phi.T, np.eye(8))),
            "Sylvester's": bool(np.allclose(phi * 8**0.5, hadamard(8))),
        },
        remarks="a drawing of the matrix; Definition 16 is what is checked",
    )


@claim(
    "Lemma 5",
    "the transform is linear",
    "the transform of the mean is the mean of the transforms",
    tolerance="1e-8",
    seed="5",
)
def lemma_5(settings: Settings) -> Outcome:
    held = np.random.default_rng(5).integers(0, 16, 100)
    phi = transform(4)
    whole = phi @ (np.bincount(held, minlength=16) / 100)
    return judged(
        f"largest difference {abs(whole - phi[:, held].mean(axis=1)).max():.0e}",
        {"equal": bool(np.allclose(whole, phi[:, held].mean(axis=1)))},
    )


@claim(
    "Lemma 6, eq. 4.1",
    "marginals from few coefficients",
    "coefficients of at most k bits give every k-way marginal: 11 of 16 for d = 4, k = 2; 0000,"
    " 0001, 0100, 0101 for β = 0101",
    by="frequency.marginals.InpHT",
    tolerance="1e-12",
    seed="6",
)
def lemma_6(settings: Settings) -> Outcome:
    d, z = 4, np.random.default_rng(6).dirichlet(np.ones(16))
    theta = transform(d) @ z
    low = {a: theta[a] if a in below(d, 2) else math.nan for a in range(16)}
    betas = [b for b in range(16) if b.bit_count() <= 2]
    used = [a for a in range(16) if a & 0b0101 == a]
    return judged(
        f"{len(below(d, 2))} of 16; {', '.join(f'{a:04b}' for a in used)}",
        {
            "eq. 4.1 gives all marginals of up to two attributes from them": all(
                same(rebuilt(d, low, b), summed(d, z, b)) for b in betas
            ),
            "there are 11": len(below(d, 2)) == 11,
            "the four for β = 0101": used == [0b0000, 0b0001, 0b0100, 0b0101],
            "InpHT asks for all but the constant one": (
                len(InpHT(binary(d), 2, 1.0).channel.parts) == 10
            ),
        },
    )


@claim(
    "Definition 17",
    "tail bounds",
    "tails of a mean: Bernstein 2 exp(-Nc² / (2σ² + 2cM/3)), Hoeffding 2 exp(-N²c² / (2 ΣM²))",
    tolerance="exact",
)
def definition_17(settings: Settings) -> Outcome:
    """Tails of means of N signs, exactly."""
    n, cs = 400, (0.02, 0.05, 0.1, 0.2)
    tails = [2 * float(binom.sf(math.ceil(n * (1 + c) / 2) - 1, n, 0.5)) for c in cs]
    hoeffding = [2 * math.exp(-((n * c) ** 2) / (2 * n)) for c in cs]
    bernstein = [2 * math.exp(-n * c**2 / (2 + 2 * c / 3)) for c in cs]
    return judged(
        "exact " + ", ".join(f"{t:.1e}" for t in tails),
        {
            "Hoeffding's bound holds": all(t <= b for t, b in zip(tails, hoeffding, strict=True)),
            "Bernstein's bound holds": all(t <= b for t, b in zip(tails, bernstein, strict=True)),
        },
        remarks=(
            f"N = {n} fair signs, c = {', '.join(map(str, cs))}; known results, checked at these"
            " points only"
        ),
    )


@claim(
    "Eqs. 4.2 and 4.3",
    "unbiased values of a sign",
    "p x + (1-p) y = -1 and p y + (1-p) x = 1; x = 1/(2p-1), y = -x",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def equations_4_2_4_3(settings: Settings) -> Outcome:
    p, x = 0.75, 1 / (2 * 0.75 - 1)
    y = -x
    return judged(
        f"p = 3/4: p x + (1-p) y = {p * x + (1 - p) * y:g}",
        {
            "the solution solves the equations": (
                near(p * x + (1 - p) * y, -1) and near(p * y + (1 - p) * x, 1)
            )
        },
        {
            "with 1 and -1 exchanged, as the two cases above them have it": (
                near(p * x + (1 - p) * y, 1) and near(p * y + (1 - p) * x, -1)
            )
        },
    )


@claim(
    "Algorithms 1 and 2",
    "InpHT",
    "Θ[0] = 1, Θ[j] = 2^-d ΣH / (N_j (2p-1)); marginals by eq. 4.1",
    tolerance="1e-12",
    seed="2",
    kind=Kind.CONSTANT,
)
def algorithms_1_2(settings: Settings) -> Outcome:
    d, z, beta = 4, np.random.default_rng(2).dirichlet(np.ones(16)), 0b0101
    scaled = 2 ** (d / 2) * (transform(d) @ z)  # what users' signs have as their mean
    printed = {a: 1.0 if a == 0 else 2.0**-d * scaled[a] for a in range(16)}
    true = {a: 2 ** (-d / 2) * scaled[a] for a in range(16)}
    return judged(
        f"d = 4, without noise: the marginal sums to {sum(rebuilt(d, printed, beta).values()):g}",
        {
            "without noise it gives the marginal": same(
                rebuilt(d, printed, beta), summed(d, z, beta)
            )
        },
        {
            "with 2^(-d/2) for all, the constant one too, it does": same(
                rebuilt(d, true, beta), summed(d, z, beta)
            )
        },
        remarks="the scale of Definition 16",
    )


CLAIMS = (
    figure_4_1,
    lemma_5,
    lemma_6,
    definition_17,
    equations_4_2_4_3,
    algorithms_1_2,
)

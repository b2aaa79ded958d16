"""Yang et al., sections 3 and 4, A.9: formulas."""

from __future__ import annotations

import math
from fractions import Fraction

from examples.grid_figures import truth
from frequency import OUE
from rangeq import SquareWave
from rangeq.grids import MSW
from reproduction.grids.studies import study
from reproduction.report import Kind, Outcome, Settings, agrees, claim, errs, judged, table


@claim(
    "Section 3.5, (8)",
    "square wave",
    "delta = (eps e^eps - e^eps + 1) / (2 e^eps (e^eps - 1 - eps)), p = e^eps / (2 delta e^eps"
    " + 1); the distribution by EM",
    by="rangeq.SquareWave",
    tolerance="0.1 %",
    seed="1",
)
def square_wave(settings: Settings) -> Outcome:
    """The formulas of equation (8), and what smoothing does to 64 values."""
    rows, formulas = [], True
    for epsilon in (0.2, 1.0, 2.0):
        e = math.exp(epsilon)
        delta = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
        wave = SquareWave(1 << 16, epsilon)
        p = float(wave.p) * wave.domain
        formulas &= (
            abs(wave.reach / wave.domain - delta) < 2e-5
            and abs(p * (2 * delta * e + 1) / e - 1) < 1e-3
        )
        rows.append(
            [
                epsilon,
                f"{delta:.5f}",
                f"{wave.reach / wave.domain:.5f}",
                f"{e / (2 * delta * e + 1):.4f}",
                f"{p:.4f}",
            ]
        )
    at = study(settings, 1)
    records, asked = at.records("normal"), [at.asked(2)]
    true = [truth(records, asked[0])]
    plain, smooth = (
        at.errors(MSW([64] * 6, 0.2, at.n, smooth=s), records, asked, true)[0]
        for s in (False, True)
    )
    return judged(
        f"the formulas hold; MSW at epsilon = 0.2: error {plain:.3f} with EM, {smooth:.3f} with the"
        " smoothing of its source, EMS",
        {
            "delta and p": formulas,
            "EM, as this paper has it, is better than EMS at 64 values": plain < smooth / 2,
        },
        remarks="EMS widens a distribution of 64 values to three times its width at epsilon = 0.2.",
        detail=table(["epsilon", "delta", "reach / domain", "p", "p of the sampled wave"], rows),
    )


@claim(
    "Equation (9)",
    "noise and sampling error",
    "4 m e^eps / (n (e^eps - 1)^2) + m f / n for noise, (m-1)/(n-1) f (1-f) for sampling",
    by="frequency.OUE",
    tolerance="exact",
)
def equation_9(_: Settings) -> Outcome:
    rows, noise, sampling = [], True, True
    for epsilon in (0.2, 1.0, 2.0):
        m, n = 21, 1_000_000
        e, p, q = math.exp(epsilon), 0.5, 1 / (math.exp(epsilon) + 1)
        for f in (0.0, 0.1):
            left = m * (q * (1 - q) + f * (p - q) * (1 - p - q)) / (n * (p - q) ** 2)
            right = 4 * m * e / (n * (e - 1) ** 2) + m / n * f
            own = float(OUE(16, epsilon).variance(round(n / m), f)) if f == 0 else right
            noise &= abs(left / right - 1) < 1e-9 and abs(own / right - 1) < 1e-3
            rows.append([epsilon, f, f"{left:.3e}", f"{right:.3e}"])
    # A group of n / m of n users, of whom `held` have the value
    for n, m, held in ((12, 3, 5), (20, 4, 6)):
        size, share = n // m, Fraction(held, n)
        chances = [
            Fraction(math.comb(held, k) * math.comb(n - held, size - k), math.comb(n, size))
            for k in range(size + 1)
        ]
        variance = sum(
            chance * (Fraction(k, size) - share) ** 2 for k, chance in enumerate(chances)
        )
        sampling &= variance == Fraction(m - 1, n - 1) * share * (1 - share)
    return Outcome(
        "both, exactly",
        agrees(noise and sampling),
        "p = 1/2 and q = 1 / (e^eps + 1); the sampling by counting all samples. OLH here hashes to"
        " a prime power of values: up to 3 % more.",
        table(["epsilon", "f", "of p and q", "printed"], rows),
    )


@claim(
    "Figure 12, number",
    "how many ranges",
    "all C(6,2) 32^2 = 15360 ranges of half of the domain",
    tolerance="exact",
    kind=Kind.CONSTANT,
)
def figure_12_count(_: Settings) -> Outcome:
    places = 64 - 32 + 1
    return Outcome(
        f"C(6,2) {places}^2 = {15 * places**2}",
        errs(places**2 == 32**2, 15 * 32**2 == 15360 and places == 33),
        "A side of 32 of 64 values begins at one of 33.",
    )


@claim(
    "Figures 13, 14, captions",
    "attributes",
    "d = 6, queries of 6 to 10 attributes",
    tolerance="exact",
    kind=Kind.MISPRINT,
)
def caption_13(_: Settings) -> Outcome:
    return Outcome(
        "no query of a table of six attributes has ten",
        errs(math.comb(6, 10) > 0, math.comb(10, 10) > 0),
        "Captions of Figures 13 and 14; d = 10, as in Figure 5, is used below.",
    )


@claim(
    "Figure 22, A.9",
    "an example of errors",
    "one cell: 1 * 4 m2 e^eps / (n2 (e^eps - 1)^2) = m2 e^eps / (n2 (e^eps - 1)^2); a quarter"
    " of a cell's values: 4/16 of its frequency",
    by="frequency.OUE",
    tolerance="0.1 %",
    kind=Kind.MISPRINT,
)
def appendix_9(_: Settings) -> Outcome:
    """The example's squared noise of one cell."""
    users, e = 1000.0, math.exp(1.0)
    one = float(OUE(4, 1.0).variance(1000, 0.0))
    return Outcome(
        f"epsilon = 1, n2 / m2 = 1000: {one:.5f}; left {4 * e / (users * (e - 1) ** 2):.5f}, right "
        f"{e / (users * (e - 1) ** 2):.5f}",
        errs(
            abs(one * users * (e - 1) ** 2 / e - 1) < 1e-3,
            abs(one * users * (e - 1) ** 2 / (4 * e) - 1) < 1e-3,
        ),
        "The right-hand side lost the 4. Figure 22 itself is a diagram.",
    )


CLAIMS = (
    square_wave,
    equation_9,
    figure_12_count,
    caption_13,
    appendix_9,
)

"""Range queries, 5.3 to 5.6: what follows from the tables."""

from __future__ import annotations

import math

from published_ranges import NAMES
from range_queries import N
from scipy.optimize import brentq

from rangeq import HaarHRR, HierarchicalHistogram
from reproduction.ranges.printed import expected, expected_of_some
from reproduction.report import Kind, Outcome, Settings, claim, errs, judged, table


@claim(
    "Section 5.6",
    "wavelet or tree",
    "the wavelet is preferred below epsilon of about 0.8, consistent trees above; the threshold"
    " falls slightly with D; the loss by the wrong choice is at most about 10 %",
    by="rangeq.RangeProtocol.average_rmse",
    tolerance="15 % for words",
    kind=Kind.UNEXPLAINED,
)
def crossover(settings: Settings) -> Outcome:
    rows, crossings, regret = [], [], 0.0
    sizes = (8, 16) if settings.quick else (8, 16, 20, 22)

    def ahead(epsilon: float, bits: int) -> float:
        """HaarHRR over the best tree."""
        haar = HaarHRR(1 << bits, epsilon).average_rmse(N)
        return (
            haar
            / min(
                HierarchicalHistogram(1 << bits, epsilon, b, "OUE").average_rmse(N)
                for b in (2, 4, 8, 16)
            )
            - 1
        )

    for bits in sizes:
        crossings.append(float(brentq(ahead, 0.2, 1.4, args=(bits,), xtol=0.01)))
        ends = [ahead(0.2, bits), ahead(1.4, bits)]
        regret = max(regret, *map(abs, ends))
        rows.append([f"2^{bits}", f"{crossings[-1]:.2f}", *(f"{end:+.1%}" for end in ends)])
    return judged(
        f"crossing at {crossings[0]:.2f} (2^8), {crossings[-1]:.2f} (2^{sizes[-1]}); at most"
        f" {regret:.0%}",
        {
            "crossing between 0.6 and 1.1 at all sizes": all(0.6 < x < 1.1 for x in crossings),
            "lower for larger domains": crossings[-1] < crossings[0],
            "at most 15 % at epsilon from 0.2 to 1.4": regret < 0.15,
        },
        remarks=(
            "Predicted, HaarHRR against the best of HH2c, HH4c, HH8c, HH16c with OUE, all ranges."
            " 'Typically no more than 10 %': tolerance 15 %."
        ),
        detail=table(["D", "equal at epsilon", "HaarHRR over the best tree, 0.2", "1.4"], rows),
    )


@claim(
    "Sections 4.7, 5.3 (5.5.3)",
    "prefixes against ranges",
    "prefixes: up to 30 % less than ranges; theory: half of the variance, 1/sqrt 2 = 0.707 of"
    " the error; less noticeable for larger D, perhaps through the sampling of ranges",
    by="rangeq.RangeProtocol.average_rmse",
    tolerance="none",
    seed="6",
)
def prefixes(_: Settings) -> Outcome:
    rows, ratio = [], {}
    for bits in (8, 16, 20, 22):
        for name in NAMES:
            ratio[bits, name] = expected("5.3", bits, name, 1.1) / expected("5.2", bits, name, 1.1)
        some = (
            [expected("5.3", 16, name, 1.1) / expected_of_some(name, 1.1) for name in NAMES]
            if bits == 16
            else []
        )
        rows.append(
            [
                f"2^{bits}",
                *(f"{ratio[bits, name]:.3f}" for name in NAMES),
                *(f"{x:.3f}" for x in some),
            ]
        )
    rows = [row + [""] * (9 - len(row)) for row in rows]
    large = [expected("5.3", 16, name, 1.1) / expected_of_some(name, 1.1) for name in NAMES]
    return judged(
        f"{min(ratio.values()):.3f} to {max(ratio.values()):.3f} of the error of all ranges, the"
        f" same for all D; {min(large):.2f} to {max(large):.2f} of that of sampled ranges",
        {
            "less than ranges everywhere": max(ratio.values()) < 1,
            "20 to 30 % less at 2^8 with HH2c, HH4c and HaarHRR": all(
                0.7 < ratio[8, n] < 0.8 for n in ("HH2c", "HH4c", "HaarHRR")
            ),
            "the sampling explains what is less noticeable": (
                min(large) > 0.8 and max(ratio[22, n] for n in NAMES) < 0.76
            ),
        },
        remarks="Predicted, epsilon = 1.1. 1/sqrt 2 is 0.7071.",
        detail=table(
            ["D", *NAMES, *(f"{name}, of ranges from every 2^8th" for name in NAMES)], rows
        ),
    )


@claim(
    "Section 5, sampling",
    "numbers of ranges",
    "paper: 2^20 from every 2^15th item 17 M ranges, 2^22 from every 2^16th 69 M; thesis: 33.3"
    " M (2^17 to 2^21) and 67.1 M (2^22, 2^17th)",
    tolerance="5 %",
    kind=Kind.MISPRINT,
)
def sampling(_: Settings) -> Outcome:
    def million(bits: int, step: int) -> float:
        starts = range(0, (1 << bits) - 1, 1 << step)
        return sum((1 << bits) - 1 - start for start in starts) / 1e6

    paper = {(20, 15): 17, (22, 16): 69}
    thesis = {(17, 8): 33.3, (18, 10): 33.3, (20, 14): 33.3, (21, 16): 33.3, (22, 17): 67.1}
    found = {place: million(*place) for place in (*paper, *thesis)}
    rows = [
        [
            f"2^{bits}",
            f"every 2^{step}",
            paper.get((bits, step), ""),
            thesis.get((bits, step), ""),
            f"{count:.1f}",
        ]
        for (bits, step), count in found.items()
    ]
    return Outcome(
        "; ".join(f"2^{bits}, 2^{step}: {count:.1f} M" for (bits, step), count in found.items()),
        errs(
            all(abs(found[place] / count - 1) < 0.05 for place, count in paper.items()),
            abs(found[22, 17] / 69 - 1) < 0.01 and abs(found[20, 15] / 17 - 1) < 0.02,
        ),
        "69 M is the number from every 2^17th item. The thesis's are within 6 %: D^2 / (2 step),"
        " without the ends.",
        table(["D", "starts", "paper, M", "thesis, M", "counted, M"], rows),
    )


@claim(
    "Table 5.1",
    "data sets",
    "stackoverflow: 2774 days, 12 min., D = 2^18; NYC taxis: 9/2017 to 12/2017, 30 min., D = 2^17",
    tolerance="a factor 1.5",
    kind=Kind.MISPRINT,
)
def datasets(_: Settings) -> Outcome:
    """What the stated spans and buckets make of the number of buckets."""
    stack, taxi = 2774 * 24 * 60 / 12, (30 + 31 + 30 + 31) * 24 * 60 / 30
    return Outcome(
        f"2^{math.log2(stack):.1f} and 2^{math.log2(taxi):.1f} buckets",
        errs(
            abs(math.log2(taxi) - 17) < 0.6 and abs(math.log2(stack) - 18) < 0.6,
            math.log2(taxi) < 13,
        ),
        "Thesis only. Four months have 5856 half hours; 2^17 buckets would be of 80 seconds. The"
        " four data sets are not part of this repository; Gowalla's and movielens's sizes cannot be"
        " checked without them.",
    )


CLAIMS = (
    sampling,
    datasets,
    crossover,
    prefixes,
)

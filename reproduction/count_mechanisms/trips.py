"""Thesis chapter 2: attributes of taxi trips, and marginals."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from examples.marginal_figures import taxi
from frequency.marginals import Domain, pearson
from reproduction.report import Outcome, Settings, claim, judged, near, of_data


@claim(
    "Table 2.1",
    "attributes of taxi trips",
    "definitions of CC, Toll, Far, Night_pick, Night_drop, M_pick, M_drop, Tip",
    tolerance="no share below 0.01 or above 0.99",
)
@of_data
def table_2_1(settings: Settings, data: Path) -> Outcome:
    trips = taxi(data / "taxis.csv")
    shares = dict(zip(trips.attributes, trips.records.mean(axis=0), strict=True))
    with (data / "taxis.csv").open(newline="", encoding="utf-8") as stream:
        of_total = np.mean(
            [float(row["tip"]) >= 0.25 * float(row["total"]) for row in csv.DictReader(stream)]
        )
    return judged(
        "shares " + ", ".join(f"{name} {share:.3f}" for name, share in shares.items()),
        {
            "all eight attributes can be derived, and none is constant": all(
                0.01 < share < 0.99 for share in shares.values()
            )
        },
        remarks=(
            f"{len(trips.records)} trips of March 2019 (the thesis: 3 M of 2013-16). Tip is of the"
            f" fare without tip and charges: of the total, as printed, {of_total:.2%} of the trips"
            " have so large a tip, nothing to find associations with"
        ),
    )


@claim(
    "Table 2.3",
    "a marginal of two attributes",
    "M_pick, M_drop: YY 0.55, YN 0.15, NY 0.10, NN 0.20; most trips stay in Manhattan, strong"
    " correlation",
    by="frequency.marginals.pearson",
    tolerance="most trips; correlation above 0.4",
)
@of_data
def table_2_3(settings: Settings, data: Path) -> Outcome:
    trips = taxi(data / "taxis.csv")
    pick, drop = (trips.records[:, trips.attributes.index(name)] for name in ("M_pick", "M_drop"))
    cells = [float(((pick == a) & (drop == b)).mean()) for a in (1, 0) for b in (1, 0)]
    printed = np.array([[0.55, 0.15], [0.10, 0.20]])
    mine = np.array(cells).reshape(2, 2)
    return judged(
        "YY {:.2f}, YN {:.2f}, NY {:.2f}, NN {:.2f}".format(*cells)
        + f"; correlation {pearson(mine):.2f}",
        {
            "the printed cells sum to 1": near(printed.sum(), 1),
            "most trips begin and end in Manhattan": cells[0] > 0.5,
            (
                "pick-up and drop-off are strongly correlated "
                f"(over 0.4; the printed table: {pearson(printed):.2f})"
            ): float(pearson(mine)) > 0.4,
        },
        remarks=(
            "Trips of March 2019; the printed table is called a sample. Its NN of 0.20 does not go"
            ' with section 4.4.1, which selects trips "having pickup and/or drop-off locations'
            ' inside Manhattan"'
        ),
    )


@claim(
    "Example 2.2.1",
    "a marginal operator",
    "which four of 16 records each cell of C^0101 sums",
    by="frequency.schema.Domain",
    tolerance="exact",
)
def example_2_2_1(settings: Settings) -> Outcome:
    domain = Domain.binary("a", "b", "c", "d")
    printed = {
        (0, 0): "0000 0010 1000 1010",
        (0, 1): "0001 0011 1001 1011",
        (1, 0): "0100 0110 1100 1110",
        (1, 1): "0101 0111 1101 1111",
    }
    cells = domain.cells(np.arange(16), ("b", "d"))
    found = {
        (b, d): " ".join(f"{z:04b}" for z in range(16) if cells[z] == 2 * b + d) for b, d in printed
    }
    return judged(
        "the same sixteen",
        {
            "all four cells as listed": found == printed,
            "every record is in one cell": len(cells) == 16,
        },
    )


CLAIMS = (
    table_2_1,
    table_2_3,
    example_2_2_1,
)

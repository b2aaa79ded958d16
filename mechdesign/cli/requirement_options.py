"""The options that state what a mechanism is for: its counts, its requirements, its costs."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from mechdesign.base.csv_rows import headless_rows
from mechdesign.base.numbers import exact
from mechdesign.cli.options import add_properties, member_of, prior_of
from mechdesign.exceptions import InexactNumber, InvalidTable
from mechdesign.losses import Costs, Loss, Power
from mechdesign.values import Bands, CountPairs, Counts, Values

_RANGE = re.compile(r"(-?[0-9]{1,10}):(-?[0-9]{1,10})", re.ASCII)
_BAND = re.compile(r"(-?[0-9]{1,10})(?:-(-?[0-9]{1,10}))?", re.ASCII)
_LARGEST = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_POWER = re.compile(r"L(-?[0-9][0-9./e]*)", re.ASCII)

REQUIREMENTS = """requirements:
  OUT and IN are counts: with --at-least 0,0=0.6 the answer to 0 is 0 at least six times in ten;\
 --at-most alike
  within D=P: whatever the count, the error is at most D with probability at least P
  others: --property "linear:P[0,0] -2*P[1,1] >= 1/2", rows and columns numbered from 0
  numbers are exact: 0.6, 3/5"""


def add_requirements(parser: argparse.ArgumentParser) -> None:
    """Add what `properties_of` looks at."""
    add_properties(
        parser, "RH RM CH CM F WH S OR or OR:beta, see below, or one of your own (--import)"
    )
    for name, form, what in (
        ("at-least", "OUT,IN=P", "the answer to count IN is OUT with probability at least P"),
        ("at-most", "OUT,IN=P", "the answer to count IN is OUT with probability at most P"),
        ("within", "D=P", "errors are at most D with probability at least P"),
    ):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar=form, help=f"{what}; may be repeated"
        )
    parser.add_argument(
        "--unbiased",
        action="store_true",
        help="the expected answer is the true count; ask for wider --outputs, too",
    )


def properties_of(options: argparse.Namespace) -> list[str]:
    """The properties asked for, as `mechdesign.properties.resolve` reads them."""
    return [
        *options.properties,
        *(f"at-least:{text}" for text in options.at_least),
        *(f"at-most:{text}" for text in options.at_most),
        *(f"within:{text}" for text in options.within),
        *["unbiased"] * options.unbiased,
    ]


def add_values(parser: argparse.ArgumentParser) -> None:
    """Add what `inputs_of` and `outputs_of` look at."""
    parser.add_argument(
        "--n",
        required=True,
        metavar="N",
        help="number of respondents; counts are 0 .. n. 3,4: pairs of counts 0 .. 3 and 0 .. 4",
    )
    parser.add_argument(
        "--outputs",
        metavar="LOW:HIGH",
        help="what may be answered: whole numbers, such as -5:25, or bands of them, such as"
        " 0-4,5-9,10-20 (default: the counts)",
    )


def inputs_of(options: argparse.Namespace) -> int | CountPairs:
    """The largest count, or the pairs of counts.

    Raises ValueError for a text that is neither.
    """
    parts = options.n.split(",")
    if len(parts) > 2 or not all(map(_LARGEST.fullmatch, parts)):
        raise ValueError(f"--n is a whole number, or two such as 3,4, got {options.n[:40]!r}")
    return int(parts[0]) if len(parts) == 1 else CountPairs(*map(int, parts))


def outputs_of(options: argparse.Namespace) -> Values | None:
    """The outputs asked for; None: the inputs.

    Raises ValueError for a text that names none.
    """
    if options.outputs is None:
        return None
    whole = _RANGE.fullmatch(options.outputs)
    if whole is not None:
        return Counts(int(whole[1]), int(whole[2]))
    bands = [_BAND.fullmatch(text) for text in options.outputs.split(",")]
    found = [(int(each[1]), int(each[2] or each[1])) for each in bands if each is not None]
    if len(found) < len(bands):
        raise ValueError(
            "--outputs is LOW:HIGH, such as -5:25, or bands, such as 0-4,5-9,10-20, got"
            f" {options.outputs[:40]!r}"
        )
    return Bands(found)


def add_loss(parser: argparse.ArgumentParser) -> None:
    """Add what `loss_of` looks at, without the prior."""
    parser.add_argument(
        "--loss",
        help="L0 (default), L1, L2, or Lp for any p >= 0, such as L0.5 or L3/2; total, for the"
        " unbiased estimate of totals; or MODULE.NAME, a class of yours",
    )
    parser.add_argument(
        "--cost",
        type=Path,
        metavar="CSV",
        help="instead of a loss: a table of exact costs >= 0, a line for each output, a cell for"
        " each input; maybe with labels around it, those of --outputs and of the counts",
    )
    parser.add_argument(
        "--distance",
        type=int,
        default=0,
        metavar="D",
        help="errors of at most D steps cost nothing (default 0)",
    )
    parser.add_argument(
        "--worst-case",
        action="store_true",
        help="minimise the worst expected loss over inputs, not the average; with --prior the worst"
        " weighted one",
    )


def loss_of(options: argparse.Namespace, outputs: Values, inputs: Values) -> Loss:
    """The loss asked for."""
    prior, worst = prior_of(options, inputs.size), options.worst_case
    if options.cost is not None:
        if options.loss is not None or options.distance:
            raise ValueError("--cost takes the place of --loss and --distance")
        return Costs(_costs(options.cost, outputs, inputs), prior, worst)
    text = "L0" if options.loss is None else options.loss
    power = _POWER.fullmatch(text)
    if power is not None:
        return Power(exact(power[1], "the p of --loss"), options.distance, prior, worst)
    if "." not in text:
        raise ValueError(f"a loss is L0, L1, L2, Lp or MODULE.NAME, got {text[:40]!r}")
    kind = member_of(text, "--loss")
    if not (isinstance(kind, type) and issubclass(kind, Loss)):
        raise ValueError(f"--loss {text}: it is no class of losses")
    if options.distance:
        raise ValueError("--distance fits L0, L1, L2 and Lp only")
    return kind(prior=prior, worst_case=worst)


def cells_of(path: Path) -> list[list[str]]:
    """The cells of a CSV file without a header, stripped; empty lines are left out.

    Raises InvalidTable for a file that is none.
    """
    return [[cell.strip() for cell in row] for row, _ in headless_rows(path) if row]


def _costs(path: Path, outputs: Values, inputs: Values) -> list[list[str]]:
    """The cells of a table of costs, checked to be numbers, without the labels around them."""
    rows = cells_of(path)
    labelled = len(rows) == outputs.size + 1 and len(rows[0]) == inputs.size + 1
    if labelled:
        for what, expected, labels in (
            ("the first line", inputs.labels, rows[0][1:]),
            ("the first column", outputs.labels, [row[0] for row in rows[1:] if row]),
        ):
            if tuple(labels) != expected:
                wanted = ", ".join(expected)
                raise InvalidTable(f"{path}: {what} is {', '.join(labels)}, expected {wanted}")
        rows = [row[1:] for row in rows[1:]]
    if len(rows) != outputs.size:
        raise InvalidTable(f"{path}: {len(rows)} lines of costs for {outputs.size} outputs")
    for number, row in enumerate(rows, 1 + labelled):
        if len(row) != inputs.size:
            raise InvalidTable(f"{path}: {len(row)} costs for {inputs.size} inputs in row {number}")
        for cell in row:
            try:
                if exact(cell, "a cost") >= 0:
                    continue
            except (ValueError, InexactNumber):
                pass
            raise InvalidTable(
                f"{path}: {cell[:40]!r} in row {number} is no cost: an exact number of at least 0,"
                " such as 1.5 or 3/2"
            )
    return rows

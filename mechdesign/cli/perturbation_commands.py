"""The commands about perturbation tables of cell keys: designed, written for others, applied."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mechdesign.base import brief, headless_rows, percent, printable, rounded_up, to_text
from mechdesign.cli.options import (
    FORCE,
    SEED,
    SPREADSHEET,
    TABLE,
    command,
    generator_of,
    read_options,
    save_figure,
    say,
)
from mechdesign.perturbation import (
    CellGuess,
    DeltaCurve,
    Disclosure,
    JointDisclosure,
    KeyLeak,
    PerturbationTable,
    best_guess,
    compare_perturbation,
    joint_curve,
    key_leak,
    perturb,
    read_people,
    scattered,
    write_with_keys,
)
from mechdesign.perturbation.disclosure import EmptyKey
from mechdesign.perturbation.key_assignment import MOST_SUMMED

#: How names of files end that may hold perturbation tables.
SUFFIXES = (".csv", ".txt")

_SIDE = 10  # rows and columns of the table with margins that is looked at

#: Options of commands that take perturbation tables beside files of mechanisms.
CELL_KEYS = """
--threshold N [int]  of perturbation tables: outputs below it are not published (default 0; that of
    cell_key_perturbation is 10)
--protected C [int]  of perturbation tables: the least count that is compared with the next one; 1
    where it may be seen that a count is 0 (default 0)
--empty-key KEY  of perturbation tables: zero, as tools have it, where a cell of nobody has key 0
    and always the same noise; or drawn, where it gets a key (default zero)
"""

_FORM = """
--form [ons|tau-argus|sas, default ons]  the tool that reads it: cell_key_perturbation, tau-Argus
    (and cellKey), or SAS
"""


def disclosure_in(path: Path, options: argparse.Namespace) -> Disclosure:
    """Return what the perturbation table in a file reveals, under the options of `CELL_KEYS`."""
    key: EmptyKey = options.empty_key or "zero"
    protected = options.protected or 0
    return Disclosure(PerturbationTable.read(path), options.threshold or 0, protected, key)


def print_disclosure(found: Disclosure, words: bool = False, as_json: bool = False) -> None:
    """Print what a perturbation table reveals."""
    if as_json:
        content = {**found.json(), "keys_in_use": _keys_json(found.table)}
        print(json.dumps(content, indent=1, allow_nan=False))
    elif words:
        print(f"{found.words}\n\n{_keys_in_words(found.table)}")
    else:
        print(f"{found}\n\n{_keys_in_words(found.table)}")


def plot_disclosure(options: argparse.Namespace, found: Disclosure) -> None:
    """Draw delta against epsilon: of the worst counts, and of some pairs of them."""
    last = found.counts[-1]
    picked = sorted({found.protected, found.protected + 1, found.table.largest} & {*found.counts})
    curves = {"the worst counts": found.curve}
    curves |= {f"{c} beside {c + 1}": found.curve_of(c) for c in picked if c <= last}
    _plot(options, curves)


def _perturbed_count(table: PerturbationTable) -> int | None:
    """Return the largest count whose noise varies, if sums of its keys can be followed."""
    if table.keys > MOST_SUMMED:
        return None
    varied = (c for c in range(table.largest, -1, -1) if len(table.law(c)) > 1)
    return next(varied, None)


def _keys_in_words(table: PerturbationTable) -> str:
    count = _perturbed_count(table)
    if count is None:
        many = table.keys > MOST_SUMMED
        why = f"there are more than {MOST_SUMMED} keys" if many else "no noise varies with the key"
        return f"what totals give away by the order of keys is not computed: {why}"
    found = _Leaks.of(table, count)
    guess, leak, distance = found.guess, found.leak, found.distance
    joint, alone = (rounded_up(delta, 4) for delta in found.deltas)
    return (
        f"two cells with the noise of {count} and their total: the best guess of a cell is right"
        f" {percent(guess.right, 2)} of the\ntime, {percent(guess.right_if_independent, 2)} if the"
        " key of a total were independent of those of its cells; the order of the\nkeys leaks"
        f" {leak.chi_squared:.3g} (chi squared), any order at least {leak.least:.3g}\n"
        f"one person more in one of two cells of {found.cell} that are published with their total:"
        f" delta at epsilon 1 is\n{joint}, and {alone} with independent noise\n"
        f"{_SIDE} x {_SIDE} such cells with all margins: "
        + (
            f"within {distance:.2g} of independent noise, and never less given away, proved"
            if distance < 1
            else "no less given away than by independent noise, proved; how much more is not known"
        )
    )


class _Leaks(NamedTuple):
    """What totals give away of cells of a count, by the keys in use."""

    cell: int  # the count of cells
    guess: CellGuess
    leak: KeyLeak
    distance: float
    deltas: tuple[Fraction, Fraction]  # at epsilon 1: of two cells, and with independent noise

    @classmethod
    def of(cls, table: PerturbationTable, count: int) -> _Leaks:
        cell = max(count, 1)
        two = np.array([cell, cell])
        return cls(
            cell,
            best_guess(table, 2, count),
            key_leak(table, count),
            JointDisclosure(table, np.full((_SIDE, _SIDE), cell)).dependence,
            (
                joint_curve(table, two, 0).delta(1),
                JointDisclosure(table, two).independent.delta(1),
            ),
        )


def _keys_json(table: PerturbationTable) -> dict[str, Any] | None:
    count = _perturbed_count(table)
    if count is None:
        return None
    found = _Leaks.of(table, count)
    joint, alone = map(to_text, found.deltas)
    return {
        "count": count,
        **{name: to_text(value) for name, value in vars(found.guess).items()},
        "chi_squared": found.leak.chi_squared,
        "least_chi_squared": found.leak.least,
        "delta_of_two_cells": {"1": joint},
        "delta_if_independent": {"1": alone},
        f"distance_of_{_SIDE}_x_{_SIDE}_cells": found.distance,
    }


def _write(options: argparse.Namespace, table: PerturbationTable) -> None:
    if options.order == "scattered":
        table = scattered(table)
    elif options.order == "rising":
        laws = map(table.law, range(table.largest + 1))
        table = PerturbationTable.of_laws(table.keys, laws, table.period)
    table.write(options.out, options.form)
    say(f"wrote {options.out}: {repr(table)[1:-1].partition(': ')[2]}, for {options.form}")


@command(
    "compare-perturbation",
    "what perturbation tables reveal and how far off they are, beside rounding and unbounded noise",
    "compare-perturbation table.csv new.csv --protected 1 --plot compared.png",
    """
    files [file, repeated]  tables: of cell_key_perturbation, tau-Argus, or SAS
    --threshold N [int, default 0]  outputs of them below it are not published
    --protected C [int, default 0]  the least count that is compared with the next one
    --json  print JSON
    --plot FILE [.png .pdf .svg]  draw delta against epsilon
    """,
    FORCE,
)
def run_compare_perturbation(options: argparse.Namespace) -> None:
    tables = {printable(str(path)): PerturbationTable.read(path) for path in options.files}
    compared = compare_perturbation(
        tables, protected=options.protected, threshold=options.threshold
    )
    print(json.dumps(compared.json(), indent=1) if options.json else compared)
    if options.plot is not None:
        curves = {
            name: Disclosure(table, options.threshold, options.protected).curve
            for name, table in tables.items()
        }
        _plot(options, curves)


def _plot(options: argparse.Namespace, curves: Mapping[str, DeltaCurve]) -> None:
    """Draw delta against epsilon for each table."""
    from mechdesign import plot  # it loads Matplotlib

    epsilons = [k / 20 for k in range(81)]
    values = {name: [float(curve.delta(x)) for x in epsilons] for name, curve in curves.items()}
    figure = plot.lines(
        "epsilon", "delta, the worst neighbouring counts", epsilons, values, whole=False
    )
    figure.axes[0].set(yscale="log", ylim=(min(1e-3, *_positive(values)) / 2, 1.5))
    save_figure(figure, options.plot, stream=sys.stderr if options.json else None)


def _positive(values: Mapping[str, Sequence[float]]) -> list[float]:
    return [value for each in values.values() for value in each if value > 1e-12]


@command(
    "export-perturbation",
    "write a perturbation table for another tool, with fewer keys, or with scattered keys",
    "export-perturbation table.csv --keys 256 --form tau-argus --out table.txt",
    """
    file [file]  the table: of cell_key_perturbation, of tau-Argus, or of SAS
    --keys N [int]  round the probabilities to multiples of 1 / N, the bias to the nearest
        (default: as they are)
    --order [kept|scattered|rising, default kept]  which keys have which noise. Anything but kept
        changes what is published; scattered gives less away by totals; rising: in the order of the
        noise
    --out FILE [.csv .txt, required]  the file to write
    """,
    _FORM,
    FORCE,
)
def run_export_perturbation(options: argparse.Namespace) -> None:
    table = PerturbationTable.read(options.file)
    if options.keys is not None:
        from mechdesign.perturbation import rounded_to_keys  # it loads the solver

        rounded = rounded_to_keys(table, options.keys)
        moved = brief(rounded.lost, 3)
        say(f"rounded to {options.keys} keys: probabilities move by {moved} a count")
        table = rounded.table
    _write(options, table)


@command(
    "design-perturbation",
    "find the best perturbation table under stated rules, prove that it is, and write it",
    "design-perturbation --largest 12 --noise 5 --variance 5/2 --blocked 2 --protected 1"
    " --epsilon 1 --out table.csv",
    """
    --largest N [int, required]  the largest count with a row of its own; all above have the last
    --noise D [int, required]  the largest size of a noise
    --objective [L0|L1|L2|delta|entropy, default delta]  what is least: the chance of noise, its
        size, its square, or the delta of neighbouring counts; entropy: the greatest one
    --epsilon EPSILON [epsilon]  between counts that differ by one person; not needed for entropy
    --delta DELTA  besides; to be given unless it is the objective (default 0 then)
    --variance V  the largest variance
    --exact-variance  exactly that, at each count but 0
    --unbiased [everywhere|interior|nowhere, default everywhere]  at which counts the noise is 0 on
        average; interior: from D on
    --blocked J [int, default 0]  never publish 1 .. J
    --stay P [default 0]  the least probability of no noise
    --keep-zeros  never change a 0
    --monotone  a larger noise is never more likely than a smaller one of the same sign
    --protected C [int, default 0]  the least count that is protected from the next one; 1 where
        it may be seen that a count is 0
    --empty-key [zero|drawn, default zero]  the key of a cell of nobody: 0, as tools have it, so
        that zeros stay; or drawn, by a table builder that can change them
    --keys N [int, default 256]  the number of keys
    --order [scattered|rising, default scattered]  which keys have which noise: scattered gives less
        away by totals; rising: in the order of the noise
    --out FILE [.csv .txt]  write the table
    """,
    _FORM,
    FORCE,
)
def run_design_perturbation(options: argparse.Namespace) -> None:
    from mechdesign.perturbation import design_perturbation  # it loads the solver

    design = design_perturbation(
        options.largest,
        noise=options.noise,
        objective=options.objective,
        variance=options.variance,
        unbiased=options.unbiased,
        blocked=options.blocked,
        keep_zeros=options.keep_zeros,
        stay=options.stay,
        monotone=options.monotone,
        epsilon=options.epsilon,
        delta=options.delta,
        protected=options.protected,
        empty_key=options.empty_key,
        exact_variance=options.exact_variance,
    )
    certificate = design.certificate
    gap = "gap exactly 0" if not certificate.gap else f"gap {brief(certificate.gap, 3)}"
    name = "minus the entropy" if options.objective == "entropy" else options.objective
    print(f"optimum      {name} {brief(certificate.value)}, proved: {gap}")
    rounded = design.rounded(options.keys)
    lost = brief(max(rounded.lost, Fraction(0)), 3)
    print(
        f"{f'{options.keys} keys':<12} {name} {brief(rounded.value)}: all rules are kept exactly,"
        f" rounding costs {lost} at most"
        + (
            ""
            if rounded.least is None
            else f"; by floats no table of {options.keys} keys is below {brief(rounded.least, 6)}"
        )
    )
    key: EmptyKey = options.empty_key
    print(f"\n{Disclosure(rounded.table, protected=options.protected, empty_key=key)}")
    if options.out is not None:
        print()
        _write(options, rounded.table)


@command(
    "draw-record-keys",
    "add a column of secret record keys to a file of people, once and for all of its tables",
    "draw-record-keys people.csv --record-key rkey --out keyed.csv",
    """
    file [file]  a row for each person (.csv with a header line, .xlsx, .sav, .parquet and others)
    --record-key COLUMN [required]  what the new column is called
    --keys N [int, default 256]  the number of keys, that of the perturbation table
    --out FILE [.csv, required]  the same rows with their keys: as secret as what they hold
    """,
    TABLE,
    SEED,
    FORCE,
)
def run_draw_record_keys(options: argparse.Namespace) -> None:
    number = write_with_keys(
        options.file,
        options.out,
        options.record_key,
        options.keys,
        read_options(options),
        generator_of(options, "these keys"),
    )
    say(
        f"wrote {options.out}: {number} rows with secret keys; whoever learns them can take the"
        " noise away"
    )


@command(
    "perturb-table",
    "publish a table of people with the noise that the keys of its cells give",
    "perturb-table keyed.csv --table table.csv --by region --by age --record-key rkey --totals"
    " --out published.csv",
    """
    file [file]  a row for each person (.csv with a header line, .xlsx, .sav, .parquet and others)
    --table FILE [file, required]  the perturbation table: of cell_key_perturbation, tau-Argus, SAS
    --by COLUMN [repeated, required]  a column by which people are counted
    --record-key COLUMN [required]  the column of record keys
    --threshold N [int, default 0]  outputs below it are published as *
    --totals  publish sums over columns, too
    --impossible FILE [file]  a .csv file without a header: cells in which nobody can be, a label
        for each column; they are left out, while other cells of nobody are published
    --out FILE [.csv, required]  the file to write, which may be published
    """,
    TABLE,
    SPREADSHEET,
    FORCE,
)
def run_perturb_table(options: argparse.Namespace) -> None:
    table = PerturbationTable.read(options.table)
    labels, keys = read_people(options.file, options.by, options.record_key, read_options(options))
    impossible = []
    if options.impossible is not None:
        impossible = [
            [cell.strip() for cell in row] for row, _ in headless_rows(options.impossible) if row
        ]
    published = perturb(
        table,
        labels,
        keys,
        columns=options.by,
        threshold=options.threshold,
        totals=options.totals,
        impossible=impossible,
    )
    published.write(options.out, options.spreadsheet)
    hidden = sum(output is None for output in published.cells.values())
    say(f"wrote {options.out}: {len(published.cells)} cells, {hidden} of them below the threshold")

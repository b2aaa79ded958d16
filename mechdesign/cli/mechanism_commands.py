"""The commands about count mechanisms: design, audit, compare, plot, explain and release."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, cast

from mechdesign import losses, named
from mechdesign.approximate_privacy import ApproximatePrivacy
from mechdesign.base import brief, exact, headless_rows, printable
from mechdesign.cli.options import (
    COPIED,
    FORCE,
    PRIOR,
    PRIVACY,
    PROPERTIES,
    SEED,
    SPREADSHEET,
    command,
    generator_of,
    member_of,
    prior_of,
    privacy_of,
    read_options,
    release_in,
    save_figure,
    say,
    warn_of_epsilon,
)
from mechdesign.cli.perturbation_commands import (
    CELL_KEYS,
    SUFFIXES,
    disclosure_in,
    plot_disclosure,
    print_disclosure,
)
from mechdesign.exceptions import InexactNumber, InvalidTable, PrivacyViolation
from mechdesign.losses import L0, Costs, Loss, Power
from mechdesign.mechanism.comparison import UNBIASED, StandardErrors, compare
from mechdesign.mechanism.explanation import explain
from mechdesign.mechanism.mechanism import Mechanism, release_column
from mechdesign.mechanism.table import DeltaAudit
from mechdesign.mechanism.values import Bands, CountPairs, Counts, Values
from mechdesign.optimisation.optimal import checked, design
from mechdesign.perturbation import Disclosure
from mechdesign.privacy import Metric, Neighbours, Privacy
from mechdesign.properties import SEVEN, OutputRatio

# ------------------------------------------------------------------------------------------------
# The options that state what a mechanism is for: its counts, its requirements, its costs.


_RANGE = re.compile(r"(-?[0-9]{1,10}):(-?[0-9]{1,10})", re.ASCII)
_EVEN = Privacy(alpha=1)  # the claim of perturbation tables that are drawn: delta alone
_DRAWN = 50  # counts of a perturbation table that are drawn, at most
_BAND = re.compile(r"(-?[0-9]{1,10})(?:-(-?[0-9]{1,10}))?", re.ASCII)
_POWER = re.compile(r"L(-?[0-9][0-9./e]*)", re.ASCII)
_LARGEST = re.compile(r"-?[0-9]{1,18}", re.ASCII)

_NOTES_OF_REQUIREMENTS = """requirements:
  OUT and IN are counts: with --at-least 0,0=0.6 the answer to 0 is 0 at least six times in ten;\
 --at-most alike
  within D=P: whatever the count, the error is at most D with probability at least P
  others: --property "linear:P[0,0] -2*P[1,1] >= 1/2", rows and columns numbered from 0
  numbers are exact: 0.6, 3/5"""


_REQUIREMENTS = """
--at-least OUT,IN=P [repeated]  the answer to count IN is OUT with probability at least P
--at-most OUT,IN=P [repeated]  the answer to count IN is OUT with probability at most P
--within D=P [repeated]  errors are at most D with probability at least P
--unbiased  the expected answer is the true count; ask for wider --outputs, too
"""

_LOSS = """
--loss LOSS  L0 (default), L1, L2, or Lp for any p >= 0, such as L0.5 or L3/2; total, for the
    unbiased estimate of totals; or MODULE.NAME, a class of yours
--cost CSV [file]  instead of a loss: a table of exact costs >= 0, a line for each output, a cell
    for each input; maybe with labels around it, those of --outputs and of the counts
--distance D [int, default 0]  errors of at most D steps cost nothing
--worst-case  minimise the worst expected loss over inputs, not the average; with --prior the worst
    weighted one
"""


def properties_of(options: argparse.Namespace) -> list[str]:
    """The properties asked for, as `mechdesign.properties.resolve` reads them."""
    return [
        *options.property,
        *(f"at-least:{text}" for text in options.at_least),
        *(f"at-most:{text}" for text in options.at_most),
        *(f"within:{text}" for text in options.within),
        *["unbiased"] * options.unbiased,
    ]


def inputs_of(options: argparse.Namespace) -> int | CountPairs:
    """Return the largest count, or the pairs of counts; ValueError for a text that is neither."""
    parts = options.n.split(",")
    if len(parts) > 2 or not all(map(_LARGEST.fullmatch, parts)):
        raise ValueError(f"--n is a whole number, or two such as 3,4, got {options.n[:40]!r}")
    return int(parts[0]) if len(parts) == 1 else CountPairs(*map(int, parts))


def outputs_of(options: argparse.Namespace) -> Values | None:
    """Return the outputs asked for, or None: the inputs. ValueError for a text that names none."""
    if options.outputs is None:
        return None
    whole = _RANGE.fullmatch(options.outputs)
    if whole is not None:
        return Counts(int(whole[1]), int(whole[2]))
    bands = [_BAND.fullmatch(text) for text in options.outputs.split(",")]
    ends = [(int(each[1]), int(each[2] or each[1])) for each in bands if each is not None]
    if len(ends) < len(bands):
        raise ValueError(
            "--outputs is LOW:HIGH, such as -5:25, or bands, such as 0-4,5-9,10-20, got"
            f" {options.outputs[:40]!r}"
        )
    return Bands(ends)


def loss_of(options: argparse.Namespace, outputs: Values, inputs: Values) -> Loss:
    """The loss asked for."""
    prior, worst = prior_of(options, inputs.size), options.worst_case
    if options.cost is not None:
        if options.loss is not None or options.distance:
            raise ValueError("--cost takes the place of --loss and --distance")
        return Costs(costs_in(options.cost, outputs, inputs), prior, worst)
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
    """Return the cells of a CSV file without a header, stripped; InvalidTable if it is none."""
    # Empty lines are left out.
    return [[cell.strip() for cell in row] for row, _ in headless_rows(path) if row]


def costs_in(path: Path, outputs: Values, inputs: Values) -> list[list[str]]:
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


_DISTANCES = """neighbours:
  with a distance K, counts that differ by at most K are neighbours; a .csv file is a square\
 table of distances: a cell
  is the privacy loss allowed between two counts as a multiple of epsilon, 0 on the diagonal, empty\
 if the counts are not
  neighbours"""


_MEANINGS = "\n".join(
    f"  {(kind.__doc__ or '').splitlines()[0]}" for kind in (*map(type, SEVEN), OutputRatio)
)


@command(
    "design",
    "find the best mechanism with the given properties, and prove that it is",
    "design --n 8 --alpha 9/10 --loss L0 --property WH --property CM --out wm.json --plot wm.png",
    """
    --n N [required]  number of respondents; counts are 0 .. n. 3,4: pairs of counts 0 .. 3 and
        0 .. 4
    --outputs LOW:HIGH  what may be answered: whole numbers, such as -5:25, or bands of them, such
        as 0-4,5-9,10-20 (default: the counts)
    """,
    PRIVACY,
    """
    --delta DELTA [default 0]  what privacy may leave out of the bound by epsilon: the total of how
        far probabilities are beyond it
    --neighbours WHICH [default adjacent]  adjacent, all, a distance, or a .csv file, see below
    """,
    _LOSS,
    PRIOR,
    """
    --property NAME [repeated]  RH RM CH CM F WH S OR or OR:beta, see below, or one of your own
        (--import)
    """,
    _REQUIREMENTS,
    """
    --out FILE [.json .csv .npz]  write the mechanism; .json is exact, with the certificate
    --plot FILE [.png .pdf .svg]  write a heatmap
    --canonical  of all optimal mechanisms the one of least expected squared error, with a second
        proof
    --however-large  try also what would take more than a day or 16 GiB
    """,
    FORCE,
    notes=f"properties:\n{_MEANINGS}\n\n{_NOTES_OF_REQUIREMENTS}\n\n{_DISTANCES}",
)
def run_design(options: argparse.Namespace) -> None:
    mechanism, note = _designed(options)
    _describe(mechanism, prior_of(options, mechanism.inputs))
    if note:
        say(note)
    if options.out is not None:
        mechanism.save(options.out)
        say(f"wrote {options.out}")
    if options.plot is not None:
        from mechdesign import plot

        title = f"n = {options.n}, alpha = {mechanism.promise.alpha}"
        save_figure(plot.heatmaps({title: mechanism}), options.plot)


def _designed(options: argparse.Namespace) -> tuple[Mechanism, str]:
    """The mechanism asked for, and what is to be said of it besides its description."""
    privacy = privacy_of(options, _neighbours(options.neighbours))
    delta = exact(options.delta or 0, "delta")
    promised = (
        ApproximatePrivacy(alpha=privacy.alpha, delta=delta, neighbours=privacy.neighbours)
        if delta
        else privacy
    )
    n, outputs, properties = inputs_of(options), outputs_of(options), properties_of(options)
    if options.loss == "total":
        from mechdesign.optimisation.unbiased_design import least_variance  # it loads the solver

        if options.distance or options.worst_case or options.cost or options.canonical or delta:
            raise ValueError(
                "--distance, --worst-case, --cost, --canonical and --delta do not fit --loss total"
            )
        if outputs is not None or not isinstance(n, int):
            raise ValueError("--loss total is for one count, and answers that are counts 0 .. n")
        prior = prior_of(options, n + 1)
        optimum = least_variance(n, privacy, properties, prior=prior, progress=True)
        return optimum.mechanism, f"total        {optimum}"
    inputs, _, _ = checked(n, None, properties)
    designed = design(
        inputs,
        promised,
        loss_of(options, outputs or inputs, inputs),
        properties,
        outputs=outputs,
        canonical=options.canonical,
        progress=True,
        however_large=options.however_large,
    )
    if designed.canonical is None:
        return designed.mechanism, ""
    others = "there is no other (proved)" if designed.unique else "others are not excluded"
    return designed.mechanism, (
        f"canonical    expected squared error {brief(designed.canonical.objective, 10)}, the least"
        f" of all optimal mechanisms (proved); {others}"
    )


def _neighbours(text: str) -> Neighbours:
    if text in ("adjacent", "all"):
        return cast(Neighbours, text)
    if text.isdecimal():
        return int(text)
    if not text.endswith(".csv"):
        raise ValueError(f"--neighbours is adjacent, all, a distance or a .csv file, got {text!r}")
    rows = cells_of(Path(text))
    for cell in (cell for row in rows for cell in row):
        if cell and not (cell.isascii() and cell.isdigit()):
            raise ValueError(f"{text}: {cell[:40]!r} is not a distance")
    return Metric([[int(cell) if cell else None for cell in row] for row in rows])


def _describe(mechanism: Mechanism, prior: Sequence[Fraction] | None = None) -> None:
    """Print what a mechanism is, its errors for true counts from a prior; None: uniform ones."""
    audit = mechanism.audit()
    size = f"{mechanism.outputs} outputs" if mechanism.bounded else "any integer"
    form = f" ({mechanism.law.name}, closed form)" if mechanism.closed and mechanism.law else ""
    print(f"mechanism    {size} x {mechanism.inputs} inputs, {mechanism.promise!r}{form}")
    print(f"epsilon      {mechanism.promise.epsilon:.9g}  (-ln alpha)")
    verdict = "holds, exactly" if audit.holds else "DOES NOT HOLD"
    answers, counts = mechanism.output_values, mechanism.input_values
    answer = answers.label(audit.output) if isinstance(audit.output, int) else audit.output
    first, second = (f"Pr[{answer} | {counts.label(j)}]" for j in audit.inputs)
    print(
        f"privacy      {verdict}: worst ratio {brief(audit.ratio, 9)} of at most"
        f" {brief(audit.allowed, 9)}, at {first} / {second}"
    )
    if isinstance(audit, DeltaAudit):
        j, k = map(counts.label, audit.worst)
        print(
            f"delta        {brief(audit.delta, 9)} of at most {brief(audit.allowed_delta, 9)}, for"
            f" {j} beside {k}: what lies beyond that ratio"
        )
    print(
        "properties   "
        + " ".join(
            f"{short}:{'yes' if holds else 'no'}" for short, holds in mechanism.properties().items()
        )
    )
    assumed = "uniformly distributed counts" if prior is None else "counts from the prior"
    print(f"errors       {StandardErrors.of(mechanism, prior)}  (for {assumed})")
    say(f"             {UNBIASED}")
    listed = () if mechanism.closed is not None else mechanism.weights
    never = [answers.label(k) for k, row in enumerate(listed) if not any(row)]
    if never:
        print(
            f"warning      never reports {', '.join(never)}: ask for properties such as CM to avoid"
            " this"
        )
    if mechanism.output_values == mechanism.input_values and mechanism.inputs > 1:
        if prior is None:
            scaled = f"{float(mechanism.scaled_l0()):.9f}  (eq. 6.1: a blind guess scores 1)"
            print(f"scaled L0    {scaled}")
        else:
            wrong = float(mechanism.loss(L0(prior=prior)))
            print(f"L0           {wrong:.9f}  (the chance of a wrong answer, for {assumed})")
    if mechanism.certificate is None:
        print("certificate  none")
    else:
        say(f"certificate  {mechanism.certificate}")


def _perturbation(options: argparse.Namespace, **how: bool) -> Disclosure | None:
    """Print what a perturbation table reveals, if the file is text, and return that."""
    if options.file.suffix not in SUFFIXES:
        _refuse_cell_keys(options)
        return None
    found = disclosure_in(options.file, options)
    print_disclosure(found, **how)
    return found


def _refuse_cell_keys(options: argparse.Namespace) -> None:
    """Raise ValueError for options of perturbation tables where there is none."""
    if any(each is not None for each in (options.threshold, options.protected, options.empty_key)):
        raise ValueError(
            "--threshold, --protected and --empty-key are for perturbation tables: .csv or .txt"
        )


def _mechanisms(
    options: argparse.Namespace, largest: int | None = None, privacy: Privacy = _EVEN
) -> dict[str, Mechanism]:
    """Return the mechanisms in files; of perturbation tables one cell, for counts to a largest."""
    found = dict[str, Mechanism]()
    for path in options.files:
        if path.suffix in SUFFIXES:
            cell = disclosure_in(path, options)
            last = min(cell.table.largest, _DRAWN) if largest is None else largest
            mechanism = cell.mechanism(last, privacy)
        else:
            mechanism = Mechanism.load(path)
        found[printable(str(path))] = mechanism
    if not any(path.suffix in SUFFIXES for path in options.files):
        _refuse_cell_keys(options)
    return found


@command(
    "audit",
    "check the file of a mechanism or of a release of counts: digest, tables, privacy, certificate;"
    " of a perturbation table, what it reveals",
    "audit wm.json",
    "file [file]  .json; or .csv, .txt: a perturbation table of cell keys",
    CELL_KEYS,
)
def run_audit(options: argparse.Namespace) -> int:
    if _perturbation(options):
        return 0
    try:
        release = release_in(options.file)
        if release is None:
            _describe(Mechanism.load(options.file))
            parts = "digest, table, privacy and certificate"
        else:
            print(release.statement)
            parts = "digest, mechanisms, privacy and released counts"
    except PrivacyViolation as error:  # which knows of a table, and of no file
        say(f"mechdesign: {options.file}: {error}", sys.stderr)
        return 1
    say(f"{options.file}: {parts} checked")
    return 0


_PROGRAMS = 256  # above it `compare` leaves out what a program would have to find


@command(
    "compare",
    "a table of the named mechanisms GM, EM, UM, WM, and of files",
    "compare --n 8 --alpha 9/10 wm.json",
    "--n N [int, required]  number of respondents; counts are 0 .. n",
    PRIVACY,
    "files [file, repeated, optional]  mechanisms to add to the table: .json; or .csv, .txt: a cell"
    " of a perturbation table",
    CELL_KEYS,
    PRIOR,
    _LOSS,
    PROPERTIES,
    _REQUIREMENTS,
)
def run_compare(options: argparse.Namespace) -> None:
    alpha, prior = privacy_of(options).alpha, prior_of(options, options.n + 1)
    table = {
        "GM": named.geometric(options.n, alpha=alpha),
        "EM": named.explicit_fair(options.n, alpha=alpha),
    }
    for name, honest in {"WM (WH)": ["WH"], "WM (WH+CM)": ["WH", "CM"]}.items():
        excess = named.closed_form(options.n, alpha=alpha, properties=honest).excess
        if options.n <= _PROGRAMS or not excess:
            column = "CM" in honest
            table[name] = named.weakly_honest(options.n, alpha=alpha, column_monotone=column)
        else:
            say(f"{name} is left out: a program. EM's L0 is at most {brief(excess, 3)} above it")
    table["UM"] = named.uniform(options.n)
    asked = {}
    named_loss = options.loss is not None or options.cost is not None
    if named_loss or options.distance or options.worst_case:
        counts = Counts(0, options.n)
        title = options.loss or ("L0" if options.cost is None else options.cost.name)
        within = f" beyond {options.distance}" if options.distance else ""
        worst = "worst " if options.worst_case else ""
        asked[f"{worst}{title}{within}"] = loss_of(options, counts, counts)
    table |= _mechanisms(options, options.n, Privacy(alpha=alpha))
    compared = compare(table, prior, losses=asked, properties=properties_of(options))
    print(f"for {'uniformly distributed counts' if prior is None else 'counts from the prior'}")
    print(compared)


@command(
    "plot",
    "draw mechanism files",
    "plot wm.json --kind errors --out errors.png",
    """
    files [file, repeated]  .json; or .csv, .txt: a cell of a perturbation table, for counts to 50,
        as a heatmap
    --kind [heatmap|errors|tail, default heatmap]  the table; the distribution of errors; or the
        chance of an error above d, for uniform inputs
    --out FILE [.png .pdf .svg, required]
    """,
    CELL_KEYS,
    FORCE,
)
def run_plot(options: argparse.Namespace) -> None:
    from mechdesign import plot

    mechanisms = _mechanisms(options)
    if options.kind == "heatmap":
        figure = plot.heatmaps(mechanisms)
    else:
        uniform = losses.prior([1] * next(iter(mechanisms.values())).inputs)
        figure = (plot.error_histograms if options.kind == "errors" else plot.l0d_against_d)(
            mechanisms, uniform
        )
        figure.suptitle(f"counts uniform on 0 .. {len(uniform) - 1}")
    save_figure(figure, options.out)


@command(
    "explain",
    "say in words how far off published counts are, what they tell, and what one person risks",
    "explain wm.json --prior binomial:1/3 --plot wm-explained.png",
    "file [file]  the mechanism, or a released table of counts (.json); or a perturbation table of"
    " cell keys (.csv, .txt)",
    PRIOR,
    CELL_KEYS,
    """
    --json  print JSON: exact fractions beside decimals
    --plot FILE [.png .pdf .svg]  draw one page
    """,
    FORCE,
)
def run_explain(options: argparse.Namespace) -> None:
    if options.file.suffix in SUFFIXES and options.prior is not None:
        raise ValueError("--prior is for the file of one mechanism")
    disclosed = _perturbation(options, words=True, as_json=options.json)
    if disclosed is not None:
        if options.plot is not None:
            plot_disclosure(options, disclosed)
        return
    release = release_in(options.file)
    if release is not None:
        _explain_release(options, release)
        return
    mechanism = Mechanism.load(options.file)
    explanation = explain(mechanism, prior_of(options, mechanism.inputs))
    print(
        json.dumps(explanation.to_dict(), indent=1, allow_nan=False)
        if options.json
        else explanation
    )
    if options.plot is not None:
        from mechdesign import plot

        figure = plot.explanation_page(explanation)
        save_figure(figure, options.plot, stream=sys.stderr if options.json else None)


def _explain_release(options: argparse.Namespace, release: Any) -> None:
    """Explain a released table: whom it protects, and the mechanisms of its groups."""
    if options.plot is not None or options.prior is not None:
        raise ValueError("--plot and --prior are for the file of one mechanism, not of a table")
    explanations = {size: explain(mechanism) for size, mechanism in release.mechanisms.items()}
    if options.json:
        groups = [
            {"size": size, **explanation.to_dict()} for size, explanation in explanations.items()
        ]
        content = {"statement": str(release.statement), "groups": groups}
        print(json.dumps(content, indent=1, allow_nan=False))
        return
    print(release.statement)
    sizes = list(explanations)
    shown = dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]])
    for size in shown:
        print(f"\n--- groups of at most {size}\n\n{explanations[size]}")
    if len(shown) < len(sizes):
        print(f"\n{len(sizes)} sizes in all; --json explains each")


@command(
    "release",
    "apply a mechanism to a column of true counts",
    "release wm.json --input true.csv --column count --out released.csv",
    """
    file [file]  the mechanism (.json); a certificate in it is not read
    --input FILE [file, required]  table (.csv with a header line, .xlsx, .sav, .parquet and others)
    --column COLUMN [required]  the column of true counts; it is replaced, never copied. Of pairs of
        counts: A,B
    --out FILE [.csv, required]  the file to write
    """,
    COPIED,
    SEED,
    SPREADSHEET,
    FORCE,
)
def run_release(options: argparse.Namespace) -> None:
    mechanism = Mechanism.load(options.file, certificate=False)
    warn_of_epsilon(mechanism.promise.epsilon)
    pairs = isinstance(mechanism.input_values, CountPairs)
    columns = options.column.split(",") if pairs else [options.column]
    for column in columns:
        if column in options.keep:
            raise ValueError(f"--keep {column} would publish the true counts")
    read = release_column(
        mechanism,
        options.input,
        options.out,
        columns,
        options.keep,
        options=read_options(options),
        rng=generator_of(options, "these counts"),
        spreadsheet=options.spreadsheet,
    )
    say(
        f"mechdesign: read {read.rows} rows of {options.input}, "
        f"separator {read.separator!r}, column {options.column!r}",
        sys.stderr,
    )
    say(f"wrote {options.out}: {read.rows} counts")

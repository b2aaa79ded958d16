"""The command line: design, audit, release, compare, plot, plan.

Exit codes: 0 done; 1 the answer is no (a file makes a false claim, no such mechanism exists, a
target is out of reach, a budget is spent); 2 the request was wrong, nothing was done.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import NoReturn, TextIO, TypeAlias, cast

import numpy as np

from mechdesign import __version__, losses, named
from mechdesign._support.files import replacing
from mechdesign._support.numbers import exact
from mechdesign._support.text import brief, printable
from mechdesign.accounting.ledger import BudgetExceeded, Ledger
from mechdesign.column_release import SEPARATORS, release_column
from mechdesign.comparison import compare
from mechdesign.exceptions import (
    CertificateRejected,
    Infeasible,
    InvalidFile,
    InvalidMechanism,
    MechanismError,
    PrivacyViolation,
)
from mechdesign.losses import Loss, Power
from mechdesign.mechanism import Mechanism
from mechdesign.optimal import design
from mechdesign.planning.planner import plan
from mechdesign.planning.search import Unreachable
from mechdesign.privacy import Metric, Neighbours, Privacy
from mechdesign.properties import SEVEN, OutputRatio

_NO = (
    PrivacyViolation,
    CertificateRejected,
    InvalidFile,
    InvalidMechanism,
    Infeasible,
    Unreachable,
    BudgetExceeded,
)
"""Errors that answer the request, for exit code 1; others mean that the request was wrong."""

_PICTURES = (".png", ".pdf", ".svg")

_EXAMPLES = """examples:
  mechdesign design --n 8 --alpha 9/10 --loss L0 --property WH --property CM --out wm.json\
 --plot wm.png
  mechdesign audit wm.json
  mechdesign release wm.json --input true.csv --column count --out released.csv
  mechdesign compare --n 8 --alpha 9/10 wm.json
  mechdesign plot wm.json --kind errors --out errors.png
  mechdesign plan ranges --domain 128 --n 100000 --error 0.01
"""

_DISTANCES = """neighbours:
  a distance K makes neighbours of counts that differ by at most K; a .csv file has a line for\
 each count and a distance
  in each cell: how many times epsilon those two counts may be told apart by, 0 on the diagonal,\
 empty where they are no
  neighbours"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser(given).parse_args(given)
    try:
        return int(options.run(options))
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("mechdesign: interrupted; nothing was written", file=sys.stderr)
        return 130
    except _NO as error:
        say(f"mechdesign: {error}", sys.stderr)
        return 1
    except MemoryError as error:
        say(f"mechdesign: this takes more memory than there is. {error}", sys.stderr)
        return 2
    except (MechanismError, ValueError, OSError, ImportError) as error:
        say(f"mechdesign: {error}", sys.stderr)
        return 2


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line, to standard output if None: escaped, whoever named what is in it."""
    print(printable(line), file=stream)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


AddCommand: TypeAlias = Callable[
    [str, Callable[[argparse.Namespace], int], str, str], argparse.ArgumentParser
]
"""Adds a command, given its name, a function that runs it, a description and an example.

The function returns the exit code.
"""


def _parser(given: Sequence[str]) -> argparse.ArgumentParser:
    formatter = argparse.RawDescriptionHelpFormatter
    parser = _Parser(
        prog="mechdesign",
        description="Design, certify and deploy differentially private count mechanisms.",
        epilog=_EXAMPLES
        + "\nexit codes: 0 done; 1 the answer is no (a file lies, nothing does what was asked); 2"
        " the request was wrong",
        formatter_class=formatter,
    )
    parser.add_argument("--version", action="version", version=f"mechdesign {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(
        name: str, run: Callable[[argparse.Namespace], int], text: str, example: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            help=text,
            description=text,
            epilog=f"example:\n  mechdesign {example}",
            formatter_class=formatter,
        )
        added.set_defaults(run=run)
        return added

    chosen = command(
        "design",
        _design,
        "find the best mechanism with the given properties, and prove that it is",
        "design --n 8 --alpha 9/10 --loss L0 --property WH --property CM --out wm.json --plot"
        " wm.png",
    )
    meanings = "\n".join(
        f"  {(kind.__doc__ or '').splitlines()[0]}" for kind in (*map(type, SEVEN), OutputRatio)
    )
    chosen.epilog = f"properties:\n{meanings}\n\n{_DISTANCES}\n\n{chosen.epilog}"
    _statement(chosen)
    chosen.add_argument(
        "--neighbours",
        default="adjacent",
        help="adjacent (default), all, a distance, or a .csv file, see below",
    )
    chosen.add_argument(
        "--loss",
        default="L0",
        help="L0 (default), L1, L2, or Lp for any p >= 0, such as L0.5 or L3/2",
    )
    chosen.add_argument(
        "--distance",
        type=int,
        default=0,
        metavar="D",
        help="errors of at most D steps cost nothing (default 0)",
    )
    chosen.add_argument(
        "--worst-case",
        action="store_true",
        help="minimise the worst expected loss over inputs, not the average",
    )
    chosen.add_argument(
        "--prior",
        metavar="W0,W1,...",
        help="weights of the inputs 0 .. n, scaled to sum to one (default uniform)",
    )
    chosen.add_argument(
        "--property",
        action="append",
        default=[],
        dest="properties",
        metavar="NAME",
        help="RH RM CH CM F WH S OR or OR:beta, see below; may be repeated",
    )
    chosen.add_argument(
        "--out",
        type=Path,
        help="write the mechanism: .json (exact, with the certificate), .csv or .npz",
    )
    chosen.add_argument("--plot", type=Path, help="write a heatmap (.png, .pdf, .svg)")
    chosen.add_argument(
        "--however-large",
        action="store_true",
        help="try also what would take more than a day or 16 GiB",
    )
    add_force(chosen)

    chosen = command(
        "audit",
        _audit,
        "check a mechanism file: digest, table, privacy, certificate",
        "audit wm.json",
    )
    chosen.add_argument("file", type=Path)

    chosen = command(
        "release",
        _release,
        "apply a mechanism to a column of true counts",
        "release wm.json --input true.csv --column count --out released.csv",
    )
    chosen.add_argument("file", type=Path, help="the mechanism (.json)")
    chosen.add_argument("--input", type=Path, required=True, help="CSV file with a header line")
    chosen.add_argument(
        "--column", required=True, help="the column of true counts; it is replaced, never copied"
    )
    chosen.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="NAME",
        help="a column to copy unchanged; may be repeated",
    )
    chosen.add_argument(
        "--separator",
        choices=["tab" if each == "\t" else each for each in SEPARATORS],
        help="between cells, in both files (default: what splits the header line the most)",
    )
    chosen.add_argument("--out", type=Path, required=True, help="CSV file to write")
    chosen.add_argument(
        "--seed", type=_seed, help="reproducible randomness, for experiments only: NOT private"
    )
    add_force(chosen)

    chosen = command(
        "compare",
        _compare,
        "a table of the named mechanisms GM, EM, UM, WM, and of files",
        "compare --n 8 --alpha 9/10 wm.json",
    )
    _statement(chosen)
    chosen.add_argument("files", type=Path, nargs="*", help="mechanisms to add to the table")

    chosen = command(
        "plot", _plot, "draw mechanism files", "plot wm.json --kind errors --out errors.png"
    )
    chosen.add_argument("files", type=Path, nargs="+")
    chosen.add_argument(
        "--kind",
        choices=["heatmap", "errors", "tail"],
        default="heatmap",
        help=(
            "the table; the distribution of errors; or the chance of an error above d, for uniform"
            " inputs"
        ),
    )
    chosen.add_argument("--out", type=Path, required=True, help=".png, .pdf or .svg")
    add_force(chosen)

    chosen = command(
        "plan",
        _plan,
        "rank the protocols for a task: by error, or by the epsilon or the number of users that an"
        " error takes",
        "plan ranges --domain 128 --n 100000 --epsilon 1\n  mechdesign plan marginals --domain"
        " age=5,smokes=2,works=2 --n 10000 --error 0.05 --detail k=3\n  mechdesign plan count"
        " --domain 8 --error 0.3 --detail loss=L0 --detail properties=WH,CM",
    )
    chosen.add_argument(
        "task",
        help=(
            "count, frequencies, marginals, heavy-hitters, ranges, prefixes, quantiles,"
            " conjunctions, ..."
        ),
    )
    chosen.add_argument(
        "--domain",
        required=True,
        help=(
            "items, respondents in the group, or bits of an item; several attributes: 5,2,2 or"
            " age=5,smokes=2"
        ),
    )
    chosen.add_argument(
        "--n", type=int, help="number of users who report; of n, epsilon and error give two"
    )
    chosen.add_argument("--epsilon", help="privacy loss of a report")
    chosen.add_argument(
        "--error", help="target, in the task's unit, which the first line of the table states"
    )
    chosen.add_argument(
        "--detail",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the task; may be repeated",
    )
    chosen.add_argument(
        "--ledger",
        type=Path,
        help="a budget (.json): take epsilon from what remains; nothing is spent",
    )
    chosen.add_argument("--out", type=Path, help="write the table (.csv)")
    chosen.add_argument("--plot", type=Path, help="draw error against epsilon (.png, .pdf, .svg)")
    add_force(chosen)

    # Of other packages
    others = {point.name: point for point in entry_points(group="mechdesign.commands")}
    asked = given[0] if given else ""
    if asked not in (*commands.choices, "--version"):  # they are loaded only when they are needed
        for name in [asked] if asked in others else others:
            others[name].load()(command)
    return parser


def _statement(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--n", type=int, required=True, help="number of respondents; counts are 0 .. n"
    )
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--alpha", help="exact, such as 9/10; alpha = exp(-epsilon)")
    budget.add_argument("--epsilon", help="rounded to the private side")
    parser.add_argument(
        "--allow-zero-epsilon",
        action="store_true",
        help="take epsilon 0 (alpha 1): answers that do not depend on the count",
    )


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, which `check_targets` looks at."""
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")


def _privacy(options: argparse.Namespace, neighbours: Neighbours = "adjacent") -> Privacy:
    privacy = (
        Privacy.from_epsilon(options.epsilon, neighbours)
        if options.alpha is None
        else Privacy(options.alpha, neighbours)
    )
    if privacy.alpha == 1 and not options.allow_zero_epsilon:
        raise ValueError(
            "at epsilon 0, that is alpha 1, answers do not depend on the count; "
            "--allow-zero-epsilon if that is wanted"
        )
    return privacy


def _loss(options: argparse.Namespace) -> Loss:
    if not options.loss.startswith("L"):
        raise ValueError(f"a loss is L0, L1, L2 or Lp, got {options.loss!r}")
    prior = None if options.prior is None else losses.prior(options.prior.split(","))
    return Power(
        exact(options.loss[1:], "the p of --loss"), options.distance, prior, options.worst_case
    )


def check_targets(options: argparse.Namespace, *targets: Path | None) -> None:
    """Raise ValueError, before any work, for a file that cannot or must not be written.

    An existing file is overwritten only if the options say so.
    """
    for target in targets:
        if target is None:
            continue
        if target.is_dir() or not target.name:
            raise ValueError(f"{target} is a directory")
        if target.is_symlink() and not target.exists():
            raise ValueError(f"{target} is a symbolic link that leads nowhere")
        if target.exists() and not options.force:
            raise ValueError(f"{target} exists; use --force to overwrite it")
        if not target.parent.is_dir():
            raise ValueError(f"{target.parent} is not a directory")


def check_suffix(target: Path | None, *allowed: str) -> None:
    """ValueError for a file to write of another kind."""
    if target is not None and target.suffix not in allowed:
        raise ValueError(f"{target}: the file name must end in {', '.join(allowed)}")


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is an integer >= 0, got {text!r}")
    return int(text)


def _design(options: argparse.Namespace) -> int:
    check_targets(options, options.out, options.plot)
    check_suffix(options.out, ".json", ".csv", ".npz")
    check_suffix(options.plot, *_PICTURES)
    found = design(
        options.n,
        _privacy(options, _neighbours(options.neighbours)),
        _loss(options),
        options.properties,
        progress=True,
        however_large=options.however_large,
    )
    _describe(found.mechanism)
    if options.out is not None:
        found.save(options.out)
        say(f"wrote {options.out}")
    if options.plot is not None:
        from mechdesign import plot

        title = f"n = {options.n}, alpha = {found.mechanism.privacy.alpha}"
        plot.save(plot.heatmaps({title: found.mechanism}), options.plot)
        say(f"wrote {options.plot}")
    return 0


def _neighbours(text: str) -> Neighbours:
    if text in ("adjacent", "all"):
        return cast(Neighbours, text)
    if text.isdecimal():
        return int(text)
    if not text.endswith(".csv"):
        raise ValueError(f"--neighbours is adjacent, all, a distance or a .csv file, got {text!r}")
    lines = Path(text).read_text(encoding="utf-8-sig").splitlines()
    rows = [[cell.strip() for cell in line.split(",")] for line in lines if line]
    for cell in (cell for row in rows for cell in row):
        if cell and not (cell.isascii() and cell.isdigit()):
            raise ValueError(f"{text}: {cell[:40]!r} is not a distance")
    return Metric([[int(cell) if cell else None for cell in row] for row in rows])


def _describe(mechanism: Mechanism) -> None:
    audit = mechanism.audit()
    print(
        f"mechanism    {mechanism.outputs} outputs x {mechanism.inputs} inputs,"
        f" {mechanism.privacy!r}"
    )
    print(f"epsilon      {mechanism.privacy.epsilon:.9g}  (-ln alpha)")
    verdict = "holds, exactly" if audit.holds else "DOES NOT HOLD"
    reached = f"Pr[{audit.output} | {audit.inputs[0]}] / Pr[{audit.output} | {audit.inputs[1]}]"
    print(
        f"privacy      {verdict}: worst ratio {brief(audit.ratio, 9)} of at most"
        f" {brief(audit.allowed, 9)}, at {reached}"
    )
    print(
        "properties   "
        + " ".join(
            f"{short}:{'yes' if held else 'no'}" for short, held in mechanism.properties().items()
        )
    )
    never = [str(i) for i, row in enumerate(mechanism.weights) if not any(row)]
    if never:
        print(
            f"warning      never reports {', '.join(never)}: ask for properties such as CM to avoid"
            " this"
        )
    if mechanism.outputs == mechanism.inputs > 1:
        print(f"scaled L0    {float(mechanism.scaled_l0()):.9f}  (eq. 6.1: a blind guess scores 1)")
    if mechanism.certificate is None:
        print("certificate  none")
    else:
        say(f"certificate  {mechanism.certificate}")


def _audit(options: argparse.Namespace) -> int:
    _describe(Mechanism.load(options.file))
    say(f"{options.file}: digest, table, privacy and certificate checked")
    return 0


def _release(options: argparse.Namespace) -> int:
    check_targets(options, options.out)
    check_suffix(options.out, ".csv")
    if options.out.exists() and any(
        options.out.samefile(path) for path in (options.file, options.input) if path.exists()
    ):
        raise ValueError(f"{options.out} would replace what it is made from")
    if options.column in options.keep:
        raise ValueError(f"--keep {options.column} would publish the true counts")
    read = release_column(
        Mechanism.load(options.file),
        options.input,
        options.out,
        options.column,
        options.keep,
        "\t" if options.separator == "tab" else options.separator,
        None if options.seed is None else np.random.default_rng(options.seed),
    )
    say(
        f"mechdesign: read {read.rows} rows of {options.input}, "
        f"separator {read.separator!r}, column {options.column!r}",
        sys.stderr,
    )
    say(f"wrote {options.out}: {read.rows} counts")
    if options.seed is not None:
        print(
            "mechdesign: --seed was given: these counts are reproducible and therefore not private",
            file=sys.stderr,
        )
    return 0


def _compare(options: argparse.Namespace) -> int:
    alpha = _privacy(options).alpha
    table = {
        "GM": named.geometric(options.n, alpha),
        "EM": named.explicit_fair(options.n, alpha),
        "WM (WH)": named.weakly_honest(options.n, alpha),
        "WM (WH+CM)": named.weakly_honest(options.n, alpha, column_monotone=True),
        "UM": named.uniform(options.n),
    }
    print("for uniformly distributed counts")
    print(compare({**table, **{str(path): Mechanism.load(path) for path in options.files}}))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from mechdesign import plot

    check_targets(options, options.out)
    check_suffix(options.out, *_PICTURES)
    mechanisms = {printable(str(path)): Mechanism.load(path) for path in options.files}
    if options.kind == "heatmap":
        figure = plot.heatmaps(mechanisms)
    else:
        uniform = losses.prior([1] * next(iter(mechanisms.values())).inputs)
        figure = (plot.error_histograms if options.kind == "errors" else plot.l0d_against_d)(
            mechanisms, uniform
        )
        figure.suptitle(f"counts uniform on 0 .. {len(uniform) - 1}")
    plot.save(figure, options.out)
    say(f"wrote {options.out}")
    return 0


def _plan(options: argparse.Namespace) -> int:
    check_targets(options, options.out, options.plot)
    check_suffix(options.out, ".csv")
    check_suffix(options.plot, *_PICTURES)
    details: dict[str, int | bool | str] = {}
    for name, value in map(_detail, options.detail):
        if name in details or hasattr(options, name):
            raise ValueError(
                f"--detail {name}: give it once, and what has an option of its own by that"
            )
        details[name] = value
    found = plan(
        options.task,
        _domain(options.domain),
        n=options.n,
        epsilon=options.epsilon,
        error=options.error,
        ledger=None if options.ledger is None else Ledger.open(options.ledger),
        **details,
    )
    print(found)
    if options.out is not None:
        with replacing(options.out) as stream:
            stream.write(found.csv().encode())
        say(f"wrote {options.out}")
    if options.plot is not None:
        from mechdesign import plot

        plot.save(found.plot(), options.plot)
        say(f"wrote {options.plot}")
    return 0


def _domain(text: str) -> int | list[int] | dict[str, int]:
    if "=" in text:
        pairs = [part.split("=", 1) for part in text.split(",")]
        if any(len(pair) < 2 for pair in pairs) or len({name for name, *_ in pairs}) < len(pairs):
            raise ValueError(
                "--domain: attributes are distinct names with numbers of values, such as"
                f" age=5,smokes=2, got {text!r}"
            )
        return {name.strip(): _whole(size) for name, size in pairs}
    return [_whole(size) for size in text.split(",")] if "," in text else _whole(text)


def _whole(text: str) -> int:
    if not (text.isascii() and text.strip().isdigit()):
        raise ValueError(f"--domain: {text[:40]!r} is not a number of values")
    return int(text)


def _detail(text: str) -> tuple[str, int | bool | str]:
    name, given, value = text.partition("=")
    if not given:
        raise ValueError(f"--detail is NAME=VALUE, got {text!r}")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    return name, int(value) if value.isascii() and value.isdigit() else value


if __name__ == "__main__":
    sys.exit(main())

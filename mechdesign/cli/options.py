"""The parts that commands share: their options, and checks of what they are to write."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from fractions import Fraction
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, TextIO, TypeAlias

import numpy as np

from mechdesign import losses
from mechdesign.accounting import Ledger
from mechdesign.base import SEPARATORS, Rational, exact, format_of, headless_rows, printable
from mechdesign.privacy import Neighbours, Privacy, exact_epsilon

PICTURES = (".png", ".pdf", ".svg")

#: Adds a command, given its name, a function that runs it, a description and an example.
#:
#: The function returns the exit code.
AddCommand: TypeAlias = Callable[
    [str, Callable[[argparse.Namespace], int], str, str], argparse.ArgumentParser
]


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line, to standard output if None, with unsafe characters escaped."""
    print(printable(line), file=stream)


def add_statement(parser: argparse.ArgumentParser) -> None:
    """Add what `privacy_of` looks at, and ``--n``."""
    parser.add_argument(
        "--n", type=int, required=True, help="number of respondents; counts are 0 .. n"
    )
    add_privacy(parser)


def add_privacy(parser: argparse.ArgumentParser) -> None:
    """Add what `privacy_of` looks at."""
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--alpha", help="exact, such as 9/10; alpha = exp(-epsilon)")
    budget.add_argument("--epsilon", help="alpha is rounded so that privacy is at least as strong")
    parser.add_argument(
        "--allow-zero-epsilon",
        action="store_true",
        help="take epsilon 0 (alpha 1): answers that do not depend on the count",
    )


def add_confidence(parser: argparse.ArgumentParser) -> None:
    """Add ``--confidence``, which `confidence_of` looks at."""
    parser.add_argument(
        "--confidence", default="0.95", help="of the intervals, such as 0.95 (default)"
    )


def confidence_of(options: argparse.Namespace) -> float:
    """The confidence that is asked for."""
    confidence = float(exact(options.confidence, "--confidence"))
    if not 0 < confidence < 1:
        raise ValueError(f"--confidence lies strictly between 0 and 1, got {options.confidence}")
    return confidence


def import_modules(names: Sequence[str]) -> None:
    """Import modules, also of the folder that the command runs in, or files that end in ``.py``."""
    if names and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    for name in names:
        try:
            if name.endswith(".py"):
                _import_file(Path(name))
            else:
                import_module(name)
        except (ImportError, OSError):
            raise
        except Exception as error:
            raise ImportError(f"{name}: {type(error).__name__}: {error}") from error


def _import_file(path: Path) -> None:
    """Import a file as the module of its name, so that its classes can be found and copied."""
    known = sys.modules.get(path.stem)
    if known is not None:
        origin = getattr(known, "__file__", None)
        if origin is None or not path.samefile(origin):
            raise ImportError(f"{path}: there is another module {path.stem}; rename the file")
        return
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = sys.modules[path.stem] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def member_of(text: str, option: str) -> Any:
    """Return what MODULE.NAME stands for, and import the module; ValueError if there is none."""
    # ImportError is raised as by `import_modules`.
    module, _, name = text.rpartition(".")
    if not module:
        raise ValueError(f"{option} is a module and a name, such as mine.Oracle, got {text!r}")
    import_modules([module])
    member = getattr(sys.modules[module], name, None)
    if member is None:
        raise ValueError(f"{option} {text}: {module} has no {name}")
    return member


def add_prior(parser: argparse.ArgumentParser, what: str = "the true counts") -> None:
    """Add ``--prior``, which `prior_of` looks at."""
    parser.add_argument(
        "--prior",
        metavar="W0,W1,...",
        help=f"how likely {what} are: weights of all of them in order, scaled to sum to one, or"
        " binomial:P for respondents who count with probability P each (default: all alike)",
    )


def prior_of(options: argparse.Namespace, inputs: int) -> tuple[Fraction, ...] | None:
    """The prior over so many inputs that is asked for; None: uniform."""
    if options.prior is None:
        return None
    kind, colon, p = options.prior.partition(":")
    if kind == "binomial" and colon:
        return losses.binomial(inputs - 1, p)
    return losses.prior_over(inputs, losses.prior(options.prior.split(",")))


def add_force(parser: argparse.ArgumentParser) -> None:
    """Add ``--force``, which `check_targets` looks at."""
    parser.add_argument("--force", action="store_true", help="overwrite files that exist")


def add_properties(
    parser: argparse.ArgumentParser, text: str = "what the mechanisms must have, as in design"
) -> None:
    """Add ``--property``."""
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        dest="properties",
        metavar="NAME",
        help=f"{text}; may be repeated",
    )


def add_labelled_counts(parser: argparse.ArgumentParser, name: str) -> None:
    """Add a table, and ``--count``, as `mechdesign.tables.axes.read_counts` reads it."""
    parser.add_argument(
        name,
        type=Path,
        help="CSV file without totals: a row for each row of the table, or with --count for each"
        " cell",
    )
    parser.add_argument(
        "--count", metavar="COLUMN", help="the column of counts; the others are labels"
    )


def add_copied(parser: argparse.ArgumentParser) -> None:
    """Add ``--keep``, and ``--separator``, which `separator_of` looks at."""
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column to copy unchanged; may be repeated",
    )
    parser.add_argument(
        "--separator",
        choices=["tab" if each == "\t" else each for each in SEPARATORS],
        help="what separates cells, in both files (default: found from the header line)",
    )


def separator_of(options: argparse.Namespace) -> str | None:
    """Return what separates cells; None: what the header line tells."""
    return "\t" if options.separator == "tab" else options.separator


def add_release_files(parser: argparse.ArgumentParser, table: str) -> None:
    """Add ``--out`` and ``--table``, which `check_release` looks at, and how they are written."""
    parser.add_argument(
        "--out", type=Path, required=True, help="write the release (.json), which may be published"
    )
    parser.add_argument("--table", type=Path, help=table)
    add_confidence(parser)
    add_seed(parser)
    add_spreadsheet(parser)
    add_force(parser)


def check_release(options: argparse.Namespace, source: Path) -> None:
    """Raise ValueError for a release or a table that cannot or must not be written."""
    check_written(options, options.out, ".json", sources=[source])
    check_written(options, options.table, ".csv", sources=[source])


def add_details(parser: argparse.ArgumentParser) -> None:
    """Add ``--detail``, ``--like`` and ``--ledger``: see `details_of` and `ledger_of`."""
    parser.add_argument(
        "--detail",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the task; may be repeated",
    )
    parser.add_argument(
        "--like",
        type=Path,
        metavar="FILE",
        help=(
            "a population to predict errors on (.csv): for each item in order a line that ends in"
            " how many hold it, of tasks about ranges, prefixes and quantiles; of conjunctions"
            " records, each a line of the attributes' values as numbers from 0 on"
        ),
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        help="a budget (.json): take epsilon from what remains; nothing is spent",
    )


def ledger_of(options: argparse.Namespace) -> Ledger | None:
    """Return the ledger of ``--ledger``, if it is given."""
    return None if options.ledger is None else Ledger.open(options.ledger)


def details_of(options: argparse.Namespace, attributes: int = 0) -> dict[str, Any]:
    """The details of a task: of those that spell a number or true or false, the value."""
    details: dict[str, Any] = {}
    if options.like is not None:
        details["like"] = _population(options.like, attributes)
    for name, value in map(_detail, options.detail):
        if name in details or hasattr(options, name):
            raise ValueError(
                f"--detail {name}: give it once, and what has an option of its own by that"
            )
        details[name] = value
    return details


def _population(path: Path, attributes: int) -> list[float] | list[list[int]]:
    """The last number of every line, or so many integers of it; the first line may be a header."""

    def numbers(row: list[str]) -> Any:
        if not attributes:
            return float(row[-1])
        values = [int(field) for field in row]
        if len(values) != attributes:
            raise ValueError
        return values

    what = f"is not {attributes} integers" if attributes else "does not end in a number"
    population = []
    for place, (row, line) in enumerate(headless_rows(path)):
        try:
            population.append(numbers(row))
        except (ValueError, IndexError):
            if place:
                raise ValueError(f"--like {path}: line {line} {what}") from None
    return population


def _detail(text: str) -> tuple[str, int | bool | str]:
    name, given, value = text.partition("=")
    if not given:
        raise ValueError(f"--detail is NAME=VALUE, got {text!r}")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    return name, int(value) if value.isascii() and value.isdigit() else value


def add_seed(
    parser: argparse.ArgumentParser,
    text: str = "reproducible randomness, for experiments only: NOT private. A seed of its own: a"
    " table drawn with the same one would share its random numbers",
) -> None:
    """Add ``--seed``, which `generator_of` looks at where privacy depends on it."""
    parser.add_argument("--seed", type=_seed, help=text)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is an integer >= 0, got {text!r}")
    return int(text)


def generator_of(options: argparse.Namespace, what: str) -> np.random.Generator | None:
    """Secure randomness (None), or that of ``--seed``: ``what`` is then said not to be private."""
    if options.seed is None:
        return None
    say(
        f"mechdesign: --seed was given: {what} are reproducible and therefore not private",
        sys.stderr,
    )
    return np.random.default_rng(options.seed)


def add_spreadsheet(parser: argparse.ArgumentParser) -> None:
    """Add ``--spreadsheet``."""
    parser.add_argument(
        "--spreadsheet",
        action="store_true",
        help="put an apostrophe before texts in .csv files that a spreadsheet would take for"
        " formulas, such as a label =A1",
    )


def privacy_of(options: argparse.Namespace, neighbours: Neighbours = "adjacent") -> Privacy:
    """The privacy asked for; ValueError for epsilon 0 without ``--allow-zero-epsilon``."""
    privacy = (
        Privacy.from_epsilon(options.epsilon, neighbours)
        if options.alpha is None
        else Privacy(alpha=options.alpha, neighbours=neighbours)
    )
    if privacy.alpha == 1 and not options.allow_zero_epsilon:
        raise ValueError(
            "at epsilon 0, that is alpha 1, answers do not depend on the count; "
            "--allow-zero-epsilon if that is wanted"
        )
    return privacy


_WEAK = 10  # epsilons above it are warned of


def warn_of(options: argparse.Namespace) -> None:
    """Warn of every epsilon above 10 that a command is given; what is none is for it to say."""
    asked = vars(options)
    given: list[Any] = [asked.get(name) for name in ("epsilon", "local", "spend")]
    given += [epsilon for _, epsilon in asked.get("margins", [])]
    for text in given:
        with suppress(ValueError, TypeError):
            warn_of_epsilon(text)
    alpha: Any = asked.get("alpha")
    with suppress(ValueError, TypeError):
        warn_of_epsilon(Privacy(alpha=alpha).epsilon)


def warn_of_epsilon(epsilon: float | Rational) -> None:
    """Say on standard error that an epsilon above 10 protects nobody."""
    value = exact_epsilon(epsilon)
    if value > _WEAK:
        text = f"{float(min(value, Fraction(10**9))):.6g}"
        say(
            f"mechdesign: warning: epsilon {text} is above {_WEAK}: what is published may be"
            f" e^{text} times as likely with one answer of a person as with another, which protects"
            " hardly anybody",
            sys.stderr,
        )


def release_kinds() -> dict[str, EntryPoint]:
    """Return what reads releases of counts, by the format that their files name."""
    return {point.name: point for point in entry_points(group="mechdesign.releases")}


def release_in(path: Path) -> Any:
    """The release of counts in a file, checked again; None for another file."""
    kind = release_kinds().get(format_of(path))
    return None if kind is None else kind.load().load(path)


def check_written(
    options: argparse.Namespace,
    target: Path | None,
    *suffixes: str,
    sources: Iterable[Path | None] = (),
) -> None:
    """Raise ValueError, before any work, for a file that cannot or must not be written."""
    # A good one is not read, has one of these suffixes, and passes `check_targets`.
    if target is not None:
        check_apart(target, *(source for source in sources if source is not None))
        check_targets(options, target)
        check_suffix(target, *suffixes)


def save_figure(figure: Any, target: Path, note: str = "", stream: TextIO | None = None) -> None:
    """Write a picture, and say so with a note."""
    from mechdesign import plot  # which loads Matplotlib

    plot.save(figure, target)
    say(f"wrote {target}{note}", stream)


def check_targets(options: argparse.Namespace, *targets: Path | None) -> None:
    """Raise ValueError, before any work, for a file that cannot or must not be written."""
    # An existing file is overwritten only if the options say so.
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


def check_apart(target: Path, *sources: Path) -> None:
    """Raise ValueError for a file to write that is one of those that are read."""
    if target.exists() and any(target.samefile(path) for path in sources if path.exists()):
        raise ValueError(f"{target} would replace what it is made from")


def check_suffix(target: Path | None, *allowed: str) -> None:
    """Raise ValueError unless the name of a file to write has one of these suffixes."""
    if target is not None and target.suffix not in allowed:
        raise ValueError(f"{target}: the file name must end in {', '.join(allowed)}")

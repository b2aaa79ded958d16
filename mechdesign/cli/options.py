"""Commands as tables of options, and the parts that they share: options, checks and messages."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import module_from_spec, spec_from_file_location
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any, TextIO, TypeAlias

import numpy as np

from mechdesign import losses
from mechdesign.accounting import Ledger
from mechdesign.base import (
    SEPARATORS,
    Rational,
    ReadOptions,
    exact,
    format_of,
    headless_rows,
    printable,
    replacing,
)
from mechdesign.exceptions import InexactNumber, InvalidTable
from mechdesign.privacy import Neighbours, Privacy, exact_epsilon

# ------------------------------------------------------------------------------------------------
# Tables of options, of which commands are made.

# A row of a table is the name of an option, what its value is called, its properties in brackets,
# and after two spaces its help, which goes on in indented lines:
#
#     --out FILE [.json .csv, required]  write the mechanism, exact in .json, for others to read
#         and to audit
#
# Options without a value are true or false. The properties are
#
#     int, float, file, seed, ...  the type of the value, one of `_KINDS` or of the command's own
#     a|b|c                        what may be chosen
#     .json .csv                   the endings of a file that is written; before any work it is
#                                  checked, also not to be a `file` of another option
#     required, default X          as they say
#     repeated                     a list; each use without a value stands for an empty text
#     optional                     of an argument: there may be none
#     as NAME                      the name of the value in the namespace
#
# Rows that begin with "|" exclude each other; if one is required, one of them is.

_ROW = re.compile(r"([a-z][a-z-]*|--[a-z-]+)(?: ([^ \[]+))?(?: \[(.+?)\])?(?:  (.*))?")

Kind: TypeAlias = Callable[[str], Any]


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is an integer >= 0, got {text!r}")
    return int(text)


def _separator(text: str) -> str:
    names = ["tab" if each == "\t" else each for each in SEPARATORS]
    if text not in names:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {' '.join(names)}")
    return "\t" if text == "tab" else text


def epsilon_in(text: str) -> str:
    """Return a text, and warn if it is an epsilon above 10; what is none is for others to say."""
    with suppress(ValueError, TypeError):
        warn_of_epsilon(text)
    return text


def _alpha(text: str) -> str:
    with suppress(ValueError, TypeError):
        warn_of_epsilon(Privacy(alpha=text).epsilon)
    return text


_KINDS: Mapping[str, Kind] = {
    "int": int,
    "file": Path,
    "seed": _seed,
    "separator": _separator,
    "epsilon": epsilon_in,
    "alpha": _alpha,
}


@dataclass(frozen=True)
class Command:
    """A command: its options, and the function that carries it out and returns the exit code."""

    name: str
    text: str  # what it does
    example: str
    tables: Sequence[str]  # of options
    notes: str  # the help ends with them and the example
    kinds: Mapping[str, Kind]
    carry_out: Callable[[argparse.Namespace], int | None]  # None stands for 0

    def add_to(self, commands: Any) -> None:
        """Add the command to the subparsers of the program."""
        parser = commands.add_parser(
            self.name,
            help=self.text,
            description=self.text,
            epilog=f"{self.notes}\n\nexample:\n  mechdesign {self.example}".strip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        files: dict[str, list[str]] = {}  # names of options, and endings of what is written
        for table in (*self.tables, _IMPORT):
            rows = filter(None, re.sub(r"\n +", " ", dedent(table)).splitlines())
            for excluding, group in groupby(rows, lambda row: row.startswith("| ")):
                options = [_option(row.removeprefix("| "), self.kinds) for row in group]
                target = parser
                if excluding:
                    required = any("required" in given for _, _, given in options)
                    target = parser.add_mutually_exclusive_group(required=required)
                for name, endings, given in options:
                    if excluding:
                        given.pop("required", None)
                    action = target.add_argument(name, **given)
                    if action.type is Path:
                        files[action.dest] = endings
        parser.set_defaults(run=partial(self._run, files), parser=parser)

    def _run(self, files: Mapping[str, Sequence[str]], options: argparse.Namespace) -> int:
        """Check the files to write, and carry out the command."""
        paths: list[tuple[str, Path]] = []
        for name in files:
            given = getattr(options, name)
            paths += [(name, path) for path in (given if isinstance(given, list) else [given])]
        paths = [(name, path) for name, path in paths if path is not None]
        for name, target in paths:
            if files[name]:
                check_apart(target, *(path for other, path in paths if other != name))
                check_target(target, options.force)
                check_suffix(target, *files[name])
        return self.carry_out(options) or 0


def command(
    name: str, text: str, example: str, *tables: str, notes: str = "", **kinds: Kind
) -> Callable[[Callable[[argparse.Namespace], int | None]], Command]:
    """Make a command of a function, with options from tables, perhaps of types of its own."""
    return partial(Command, name, text, example, tables, notes, {**_KINDS, **kinds})


def _option(row: str, kinds: Mapping[str, Kind]) -> tuple[str, list[str], dict[str, Any]]:
    """Return an option's name, the endings of a file to write, and what argparse is given."""
    found = _ROW.fullmatch(row)
    if found is None:
        raise ValueError(f"not an option of a command: {row}")
    name, metavar, properties, text = found.groups(default="")
    given: dict[str, Any] = {"metavar": metavar} if metavar else {}
    endings: list[str] = []
    words = properties.split(", ") if properties else []
    for each in words:
        word, _, value = each.partition(" ")
        if word in kinds:
            given["type"] = kinds[word]
        elif word.startswith("."):
            given["type"], endings = Path, each.split()
            text += f" ({', '.join(endings)})"
        elif "|" in word:
            given["choices"] = word.split("|")
        elif word == "as":
            given["dest"] = value
        elif word == "default":
            given["default"] = value
            text += f" (default {value})"
        elif word == "required":
            given["required"] = True
        elif word not in ("repeated", "optional"):
            raise ValueError(f"no property of an option: {each}")
    repeated = "repeated" in words
    if not name.startswith("--"):
        nargs = {(True, True): "*", (True, False): "+", (False, True): "?"}
        many = nargs.get((repeated, "optional" in words))
        given |= {"nargs": many} if many else {}
    elif repeated:
        given |= {"action": "append", "default": []}
        if not metavar:
            given |= {"action": "append_const", "const": given.pop("type")("")}
        text += "; may be repeated"
    elif not (metavar or "choices" in given):
        given["action"] = "store_true"
    return name, endings, given | {"help": text.strip() or None}


# ------------------------------------------------------------------------------------------------
# Options that commands share, and what is made of their values.

_IMPORT = """
--import MODULE [repeated, as imports]  import a module, installed or of this folder, or a file
    mine.py, whose classes options and files name
"""

PRIVACY = """
| --alpha ALPHA [alpha, required]  exact, such as 9/10; alpha = exp(-epsilon)
| --epsilon EPSILON [epsilon]  alpha is rounded so that privacy is at least as strong
--allow-zero-epsilon  take epsilon 0 (alpha 1): answers that do not depend on the count
"""

CONFIDENCE = """
--confidence P [default 0.95]  of the intervals
"""

PRIOR = """
--prior W0,W1,...  how likely the true counts are: weights of all of them in order, scaled to sum
    to one, or a .csv file with one at the end of each line; or binomial:P for respondents who
    count with probability P each (default: all alike)
"""

FORCE = """
--force  overwrite files that exist
"""

PROPERTIES = """
--property NAME [repeated]  what the mechanisms must have, as in design
"""

TABLE = """
--separator MARK [separator]  what separates cells of text: a tab (tab) or one of , ; | (default:
    found from the header line); text that is written has the same
--encoding NAME  of text that is not in UTF-8, such as windows-1252 or utf-16
--sheet NAME  of a workbook, or of a transport file of SAS, that has several
--query SQL  of a database (.sqlite, .duckdb): the name of a table, or a query (default: the only
    table)
"""

LABELLED_COUNTS = f"""
counts [file]  table without totals (.csv, .xlsx, .sav, .parquet and others): a row for each row of
    the table, or with --count for each cell
--count COLUMN  the column of counts; the others are labels
{TABLE}
"""

COPIED = f"""
--keep COLUMN [repeated]  a column to copy unchanged
{TABLE}
"""

SEED = """
--seed SEED [seed]  reproducible randomness, for experiments only: NOT private. A seed of its own: a
    table drawn with the same one would share its random numbers
"""

SPREADSHEET = """
--spreadsheet  put an apostrophe before texts in .csv files that a spreadsheet would take for
    formulas, such as a label =A1
"""

RELEASE = f"""
--out FILE [.json, required]  write the release, which may be published
{CONFIDENCE}{SEED}{SPREADSHEET}{FORCE}
"""

DETAILS = """
--detail NAME=VALUE [repeated]  of the task
--like FILE [file]  a population to predict errors on (.csv): for each item in order a line that
    ends in how many hold it, of tasks about ranges, prefixes and quantiles; of conjunctions
    records, each a line of the attributes' values as numbers from 0 on
--ledger FILE [file]  a budget (.json): take epsilon from what remains; nothing is spent
"""


def read_options(options: argparse.Namespace) -> ReadOptions:
    """What `TABLE` says of a file; ValueError for an encoding that is not known."""
    return ReadOptions(
        options.encoding or "", options.separator, options.sheet, options.query
    ).require()


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


def prior_of(options: argparse.Namespace, inputs: int) -> tuple[Fraction, ...] | None:
    """The prior over so many inputs that is asked for; None: uniform."""
    given = prior_in(options)
    if given is None:
        return None
    weights = given(inputs - 1) if callable(given) else losses.prior(given)
    return losses.prior_over(inputs, weights)


def prior_in(options: argparse.Namespace) -> losses.Prior | None:
    """The weights of ``--prior``, or what gives them for a largest count; None: uniform."""
    if options.prior is None:
        return None
    kind, colon, p = options.prior.partition(":")
    if kind == "binomial" and colon:
        return partial(losses.binomial, p=p)
    if not options.prior.lower().endswith((".csv", ".tsv", ".txt")):
        weights: list[str] = options.prior.split(",")
        return weights

    def weight(row: list[str]) -> str:
        exact(row[-1].strip(), "a weight")
        return row[-1].strip()

    return _read_lines(Path(options.prior), "--prior", weight, _NO_NUMBER)


# What is wrong with a line of which the last cell is read
_NO_NUMBER = "does not end in a number"


def _read_lines(path: Path, option: str, read: Callable[[list[str]], Any], wrong: str) -> list[Any]:
    """What is read of every line of a file; the first line may be a header."""
    found = []
    for place, (row, line) in enumerate(headless_rows(path)):
        try:
            found.append(read(row))
        except (ValueError, InexactNumber, IndexError):
            if place:
                raise InvalidTable(f"{option} {path}: line {line} {wrong}") from None
    return found


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

    wrong = f"is not {attributes} integers" if attributes else _NO_NUMBER
    return _read_lines(path, "--like", numbers, wrong)


def _detail(text: str) -> tuple[str, int | bool | str]:
    name, given, value = text.partition("=")
    if not given:
        raise ValueError(f"--detail is NAME=VALUE, got {text!r}")
    if value.lower() in ("true", "false"):
        return name, value.lower() == "true"
    return name, int(value) if value.isascii() and value.isdigit() else value


def generator_of(options: argparse.Namespace, what: str) -> np.random.Generator | None:
    """Secure randomness (None), or that of ``--seed``: ``what`` is then said not to be private."""
    if options.seed is None:
        return None
    say(
        f"mechdesign: --seed was given: {what} are reproducible and therefore not private",
        sys.stderr,
    )
    return np.random.default_rng(options.seed)


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


# ------------------------------------------------------------------------------------------------
# What commands print and write.


def say(line: str, stream: TextIO | None = None) -> None:
    """Print a line, to standard output if None, with unsafe characters escaped."""
    print(printable(line), file=stream)


def write_text(target: Path, text: str, note: str = "", stream: TextIO | None = None) -> None:
    """Write a text, and say so with a note."""
    with replacing(target) as file:
        file.write(text.encode())
    say(f"wrote {target}{note}", stream)


def save_figure(figure: Any, target: Path, note: str = "", stream: TextIO | None = None) -> None:
    """Write a picture, and say so with a note."""
    from mechdesign import plot  # which loads Matplotlib

    plot.save(figure, target)
    say(f"wrote {target}{note}", stream)


def check_target(target: Path, force: bool) -> None:
    """Raise ValueError, before any work, for a file that cannot or must not be written."""
    if target.is_dir() or not target.name:
        raise ValueError(f"{target} is a directory")
    if target.is_symlink() and not target.exists():
        raise ValueError(f"{target} is a symbolic link that leads nowhere")
    if target.exists() and not force:
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

"""The command line: design, audit, explain, release, compare, plot, plan, ledger.

Exit codes: 0 done; 1 the answer is no (a file makes a false claim, no such mechanism exists, a
target is out of reach, a budget is spent); 2 the request was wrong, nothing was done.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import EntryPoint, entry_points
from typing import NoReturn

from mechdesign import __version__
from mechdesign.base import meant, printable, reason
from mechdesign.exceptions import MechanismError

# Where each command is. None is loaded before it is asked for: that takes longer than the others.
_COMMANDS = {
    name: EntryPoint(name, f"mechdesign.cli.{file}:run_{name.replace('-', '_')}", "")
    for name, file in {
        "design": "mechanism_commands",
        "audit": "mechanism_commands",
        "explain": "mechanism_commands",
        "release": "mechanism_commands",
        "release-table": "release_commands",
        "release-contingency": "release_commands",
        "compare": "mechanism_commands",
        "compare-suppression": "release_commands",
        "plot": "mechanism_commands",
        "design-perturbation": "perturbation_commands",
        "compare-perturbation": "perturbation_commands",
        "export-perturbation": "perturbation_commands",
        "draw-record-keys": "perturbation_commands",
        "perturb-table": "perturbation_commands",
        "plan": "plan_command",
        "ledger": "plan_command",
    }.items()
}

_EXAMPLES = """examples:
  mechdesign design --n 8 --alpha 9/10 --loss L0 --property WH --property CM --out wm.json\
 --plot wm.png
  mechdesign audit wm.json
  mechdesign explain wm.json --plot wm-explained.png
  mechdesign release wm.json --input true.csv --column count --out released.csv
  mechdesign release-table schools.csv --count ill --size pupils --epsilon 1 --out released.csv
  mechdesign compare --n 8 --alpha 9/10 wm.json
  mechdesign compare-suppression table.csv --threshold 7 --round 5 --epsilon 1
  mechdesign design-perturbation --largest 12 --noise 5 --variance 5/2 --protected 1 --epsilon 1\
 --out table.csv
  mechdesign plot wm.json --kind errors --out errors.png
  mechdesign plan ranges --domain 128 --n 100000 --error 0.01
  mechdesign ledger budget.json --epsilon 1 --spend 0.4 --what "ages, in spring" --reports
  mechdesign protocol ranges --schema people.toml --attribute age --epsilon 1 --n 100000\
 --out age.json
  mechdesign privatize people.csv --protocol age.json --out reports/day1.parquet
  mechdesign collect reports --protocol age.json --out age.agg
  mechdesign query age.agg --protocol age.json --where "age 18:64" --table
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if "_ARGCOMPLETE" in os.environ:  # a shell asks how to complete a line
        _complete()
    options, unknown = parser(given).parse_known_args(_joined(given))
    if unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    from mechdesign.cli.options import import_modules, say  # which every command has loaded

    try:
        import_modules(options.imports)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        print("mechdesign: interrupted; nothing was written", file=sys.stderr)
        return 130
    except (MechanismError, ValueError, OSError, ImportError, MemoryError, RecursionError) as error:
        say(f"mechdesign: {reason(error)}", sys.stderr)
        if isinstance(error, MechanismError) and error.is_answer:
            return 1
        try:
            sys.stdout.flush()
        except OSError:  # nor is what it still holds to be written when Python ends
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2


def _joined(given: Sequence[str]) -> list[str]:
    """Return the words, with those such as ``-5:25`` joined to the option before them."""
    # argparse takes what begins with a minus sign, and is not just a number, for an option.
    joined: list[str] = []
    for k, word in enumerate(given):
        if word == "--":
            return [*joined, *given[k:]]
        option = re.fullmatch("--[a-z][a-z-]*", joined[-1]) if joined else None
        if option and re.fullmatch("-[0-9].*[^0-9.].*", word):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _complete() -> None:
    """Tell the shell and exit, where argcomplete is installed."""
    with suppress(ImportError):
        import argcomplete

        argcomplete.autocomplete(parser([]))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        if re.match("unrecognized arguments: [^-]", message):
            message += '; what holds spaces needs quotes, such as --where "age 18:64"'
        # What was written, and what could have been: options of the command, or choices
        option = re.match("unrecognized arguments: --([^ =]+)", message)
        choice = re.search("invalid choice: '(.+?)' [(]choose from (.*)[)]", message)
        if option:
            message += meant(option[1], (name[2:] for name in self._option_string_actions), "--")
        elif choice:
            message += meant(choice[1], re.findall(r"[^', ]+", choice[2]))
        super().error(printable(message))


def parser(given: Sequence[str]) -> argparse.ArgumentParser:
    """The command line: only with the command that is given, or with all."""
    program = _Parser(
        prog="mechdesign",
        description="Publish or collect counts about people under differential privacy.",
        epilog=_EXAMPLES
        + "\nexit codes: 0 done; 1 the answer is no (a false claim in a file, nothing meets the"
        " request); 2 the request was wrong",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    program.add_argument("--version", action="version", version=f"mechdesign {__version__}")
    asked = given[0] if given else ""
    if asked == "--version":
        return program
    subparsers = program.add_subparsers(required=True, metavar="command")
    known = {asked: _COMMANDS[asked]} if asked in _COMMANDS else _all_commands()
    for name in [asked] if asked in known else known:
        known[name].load().add_to(subparsers)
    return program


def _all_commands() -> dict[str, EntryPoint]:
    """The commands of this package, and of others."""
    return _COMMANDS | {each.name: each for each in entry_points(group="mechdesign.commands")}

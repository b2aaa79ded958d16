"""The command ``ledger``: the privacy budget of users in a file, and what was spent of it."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from mechdesign.accounting.ledger import Ledger
from mechdesign.accounting.pair_law import exp_above
from mechdesign.base.text import rounded_up
from mechdesign.cli.options import AddCommand, release_in, say
from mechdesign.mechanism import Mechanism

_LARGEST_IN_ODDS = 20
"""Factors beyond e to this are no help to anybody."""


def add_ledger(add: AddCommand) -> None:
    """Add ``ledger``."""
    chosen = add(
        "ledger",
        _ledger,
        "keep the privacy budget of users in a file: make it, show it, spend from it",
        "ledger budget.json --epsilon 1\n  mechdesign ledger budget.json --spend 0.4 --what ages"
        " --reports\n  mechdesign ledger budget.json",
    )
    chosen.add_argument("file", type=Path, help="the ledger (.json)")
    budget = chosen.add_argument_group("to make it")
    budget.add_argument("--epsilon", help="the budget of each user, in all")
    budget.add_argument("--delta", help="of (epsilon, delta)-privacy (default 0)")
    budget.add_argument("--local", help="the budget of what the reports of a user tell, in all")
    spent = chosen.add_argument_group("to spend from it, before users report or counts are drawn")
    spent.add_argument(
        "--spend",
        metavar="COST",
        help="an epsilon, or the file of a mechanism for counts or of a release of a table",
    )
    spent.add_argument("--what", metavar="NAME", help="what is collected or released: a new name")
    spent.add_argument(
        "--users",
        action="append",
        metavar="GROUP",
        help="from this group only, which shares no user with groups of other names; may be"
        " repeated; default: all users",
    )
    spent.add_argument(
        "--reports",
        action="store_true",
        help="users randomise what they report: the epsilon is that of each report, too",
    )


def _ledger(options: argparse.Namespace) -> int:
    if (options.spend is None) != (options.what is None):
        raise ValueError("--spend and --what go together: what is spent, and on what")
    if options.spend is None and (options.users or options.reports):
        raise ValueError("--users and --reports belong to --spend")
    budget = options.epsilon, options.delta or 0, options.local
    if options.epsilon is None and budget != (None, 0, None):
        raise ValueError("--delta and --local belong to --epsilon, with which a ledger is made")
    spend = None
    if options.spend is not None:
        cost = _cost(options.spend)
        local = cost if options.reports else None
        spend = partial(
            Ledger.spend, cost=cost, what=options.what, users=options.users, local=local
        )
        if options.epsilon is not None:
            spend(Ledger(*budget))  # what is refused makes no file
    ledger = Ledger.open(options.file, *budget)
    if spend is not None:
        spend(ledger)
    print(ledger)
    if not ledger.delta and ledger.epsilon <= _LARGEST_IN_ODDS:
        spent, most = (rounded_up(exp_above(each), 4) for each in (ledger.spent, ledger.epsilon))
        say(
            f"in odds: all that was spent changes those for a fact about one user by a factor of at"
            f" most {spent}, the whole budget by {most}"
        )
    return 0


def _cost(text: str) -> Any:
    """An epsilon; or what a file describes."""
    path = Path(text)
    if not path.is_file():
        return text
    release = release_in(path)
    return Mechanism.load(path) if release is None else release.statement.epsilon

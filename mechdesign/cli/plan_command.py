"""The commands ``plan`` and ``ledger``: protocols for a task, and the budget they are paid from."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from mechdesign.accounting import Ledger
from mechdesign.accounting.pair_law import exp_above
from mechdesign.base import rounded_up
from mechdesign.cli.options import (
    DETAILS,
    FORCE,
    command,
    details_of,
    ledger_of,
    member_of,
    release_in,
    save_figure,
    say,
    write_text,
)
from mechdesign.mechanism.mechanism import Mechanism
from mechdesign.planning.planner import known_task, plan, task_key, task_names
from mechdesign.planning.trust import LOCAL


@command(
    "plan",
    "rank the protocols for a task: by error, or by the epsilon or the number of users that an"
    " error takes",
    """plan ranges --domain 128 --n 100000 --epsilon 1
  mechdesign plan marginals --domain age=5,smokes=2,works=2 --n 10000 --error 0.05 --detail k=3
  mechdesign plan count --domain 8 --error 0.3 --detail loss=L0 --detail properties=WH,CM
  mechdesign plan frequencies --domain 64 --n 100000 --epsilon 0.25 --delta 1e-8 --trust shuffled
  mechdesign plan frequencies --domain 16 --n 100000 --epsilon 4 --days 30 --changes 1""",
    f"""
    task [optional]  count, frequencies, marginals, heavy-hitters, ranges, prefixes, quantiles,
        shaped, conjunctions, curated-ranges, curated-attributes, curated-marginals,
        curated-quantiles, ...; none: list them, with an example each
    --domain DOMAIN  items, respondents in the group, or bits of an item; several attributes: 5,2,2
        or age=5,smokes=2
    --n N [int]  number of users who report; of n, epsilon and error give two; of count the
        respondents in the group, instead of --domain
    --epsilon EPSILON [epsilon]  privacy loss of a report; with --trust that of what is published of
        all
    --trust WHOM [default {LOCAL}]  local: nobody; shuffled: a shuffler, who publishes reports
        without their senders, needs --delta; curator: one who knows all values
    --delta DELTA  of the promise about all users, with --trust shuffled or a curator: far below 1/n
    --error ERROR  target, in the task's unit, which the first line of the table states
    --days DAYS [int]  of frequencies: on how many days the same users are asked; epsilon is then
        that of all days together
    --changes CHANGES [int]  how often a user's value changes at most; with --days
    --day EPSILON  epsilon of one day; with --days, which chooses one if not
    --candidate MODULE.NAME [repeated]  a class of yours to rank with the others
    --out FILE [.csv]  write the table
    --plot FILE [.png .pdf .svg]  draw error against epsilon
    """,
    DETAILS,
    FORCE,
)
def run_plan(options: argparse.Namespace) -> None:
    if options.task is None:
        for name in task_names():
            kind = known_task(name).load()
            first, _, _ = (kind.__doc__ or "").partition("\n")
            print(f"{name}: {first.replace('`', '')}\n    mechdesign plan {name} {kind.example}")
        return
    domain, n = _asked(options)
    details = details_of(options, 0 if isinstance(domain, int) else len(domain))
    for name in ("days", "changes", "day"):
        if getattr(options, name) is not None:
            details[name] = getattr(options, name)
    candidates = [member_of(text, "--candidate") for text in options.candidate]
    result = plan(
        options.task,
        domain,
        n=n,
        epsilon=options.epsilon,
        error=options.error,
        delta=options.delta,
        trust=options.trust,
        ledger=ledger_of(options),
        candidates=candidates,
        **details,
    )
    print(result)
    if options.out is not None:
        write_text(options.out, result.csv())
    if options.plot is not None:
        save_figure(result.plot(), options.plot)


def _asked(options: argparse.Namespace) -> tuple[int | list[int] | dict[str, int], int | None]:
    """The domain, and how many users report: of count n is the group, as in other commands."""
    if options.domain is not None:
        return _domain(options.domain), options.n
    known_task(options.task)  # an unknown one is named first
    if task_key(options.task) != "count":
        raise ValueError(
            f"plan {options.task} needs --domain: the items of frequencies, ranges and the like,"
            " the attributes of marginals and conjunctions, the bits of heavy-hitters"
        )
    if options.n is None:
        raise ValueError("plan count needs --domain (or --n): the respondents in the group")
    return options.n, None


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


_LARGEST_IN_ODDS = 20  # factors beyond e to this are no help to anybody


@command(
    "ledger",
    "keep the privacy budget of users in a file: make it, show it, spend from it",
    """ledger budget.json --epsilon 1
  mechdesign ledger budget.json --spend 0.4 --what ages --reports
  mechdesign ledger budget.json""",
    """
    file [file]  the ledger (.json)
    --epsilon EPSILON [epsilon]  to make it: the budget of each user, in all
    --delta DELTA  to make it: that of (epsilon, delta)-privacy (default 0)
    --local EPSILON [epsilon]  to make it: the budget of what the reports of a user tell, in all
    --spend COST [epsilon]  to spend from it, before users report or counts are drawn: an epsilon,
        or the file of a mechanism for counts or of a release of a table
    --what NAME  what is collected or released: a new name; with --spend
    --users GROUP [repeated]  spend from this group only, which shares no user with groups of other
        names (default: all users)
    --reports  users randomise what they report: the epsilon that is spent is that of each report,
        too
    """,
)
def run_ledger(options: argparse.Namespace) -> None:
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
            Ledger.spend, cost=cost, what=options.what, users=options.users or None, local=local
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


def _cost(text: str) -> Any:
    """An epsilon; or what a file describes."""
    path = Path(text)
    if not path.is_file():
        return text
    release = release_in(path)
    return Mechanism.load(path) if release is None else release.statement.epsilon

"""The command ``mechdesign schema``: drafts a schema, or checks and shows one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from frequency.schema import Ordered, Schema
from frequency.schema.draft import draft_schema
from frequency.schema.schema_file import save_content, text_of
from mechdesign.base.progress import ProgressMeter
from mechdesign.base.text import printable
from mechdesign.cli.options import AddCommand, add_force, check_written, say

_CHAIN = """from a table to answers, by reports that are private before they are collected:
  mechdesign schema public.csv --public --out people.toml
  mechdesign protocol ranges --schema people.toml --attribute age --epsilon 1 \\
      --n 100000 --out age.json
  mechdesign simulate public.csv --protocol age.json
  mechdesign privatize people.csv --protocol age.json --out reports/day1.parquet
  mechdesign collect reports/ --protocol age.json --out age.agg
  mechdesign query age.agg --protocol age.json --where "age 18:64"
or by a curator who is trusted with the table:
  mechdesign curate people.csv --schema people.toml --attribute age --epsilon 1 --out age.release
  mechdesign query age.release --where "age 18:64"
"""
_FILES = (".toml", ".json")


def add_schema(add: AddCommand) -> None:
    """Add the command."""
    chosen = add(
        "schema",
        _schema,
        "check and show a schema, or draft one from a table that you declare public",
        "schema people.toml\n  mechdesign schema public.csv --public --out people.toml",
    )
    chosen.add_argument(
        "file", type=Path, help="a schema (.toml, .json), or a table (.csv, .tsv, .parquet)"
    )
    chosen.add_argument(
        "--public",
        action="store_true",
        help="anybody may know what is in the table: a draft tells its labels and extremes",
    )
    chosen.add_argument(
        "--attribute",
        action="append",
        metavar="NAME",
        help="a column to draft an attribute of; may be repeated (default: all)",
    )
    chosen.add_argument(
        "--out", type=Path, help="write the draft (.toml, .json); default: print it as TOML"
    )
    add_force(chosen)
    show_chain(chosen)


def _schema(options: argparse.Namespace) -> int:
    if options.file.suffix.lower() in _FILES:
        if options.public or options.attribute or options.out:
            raise ValueError(
                f"{options.file} is a schema: it is checked and shown, which takes no other options"
            )
        schema = Schema.load(options.file)
        print(schema)
        for one in schema:
            if isinstance(one, Ordered) and not one.single:
                print(f"bins of {printable(one.name)}: {_bins(one)}")
        print(f"digest: {schema.digest}")
        return 0
    return _draft(options)


def _bins(one: Ordered) -> str:
    """The first bins and the last one: how a question meets them is seen from these."""
    first = [one.label(item) for item in range(min(one.bins, 4))]
    return ", ".join(first if one.bins <= 4 else [*first[:3], "...", one.label(one.bins - 1)])


def _draft(options: argparse.Namespace) -> int:
    check_written(options, options.out, *_FILES)
    if not options.public:
        raise ValueError(
            f"a schema is public, and a draft tells what is in {options.file}. If anybody may know"
            " that: --public. If not, write the schema by hand; an example is in"
            " docs/tables.md"
        )
    from frequency.storage.table import blocks  # pyarrow only for those who need it

    with ProgressMeter("draft", unit="rows") as meter:

        def read() -> Iterator[Any]:
            for block in blocks(options.file, options.attribute):
                yield block
                meter.update(len(block))

        found = draft_schema(read(), f"{options.file.name}, which was declared public")
    content = found.schema.content()  # without a digest: it is there to be changed
    if options.out is None:
        print(text_of(content, "draft.toml"), end="")
    else:
        save_content(options.out, content)
        print(found.schema)
        say(f"wrote {options.out}: look through it, and change what does not fit")
    for name, reason in found.left_out.items():
        print(f"left out: {printable(name)}: {reason}", file=sys.stderr)
    for name, reason in found.doubts.items():
        print(f"look at {printable(name)}: {reason}", file=sys.stderr)
    return 0


def add_users(parser: argparse.ArgumentParser) -> None:
    """Add ``table``, which `frequency.storage.table` reads."""
    parser.add_argument(
        "table",
        type=Path,
        help="one row a user: .csv or .tsv (in UTF-8 with a header line, perhaps .gz) or .parquet",
    )


def show_chain(parser: argparse.ArgumentParser) -> None:
    """Let the help of a command end with the commands before and after it."""
    parser.epilog = f"{parser.epilog}\n\n{_CHAIN}"

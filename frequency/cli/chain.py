"""The commands that lead from a table of users to answers, for the help of each of them."""

from __future__ import annotations

import argparse

CHAIN = """from a table to answers, by reports that are private before they are collected:
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


def show_chain(parser: argparse.ArgumentParser) -> None:
    """Let the help of a command end with the commands before and after it."""
    parser.epilog = f"{parser.epilog}\n\n{CHAIN}"

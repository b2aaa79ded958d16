"""Five questions, answered by the examples beside this file: each its answer, and its picture.

    python examples/demo.py --out demo

What an example prints in full is in a text file beside its pictures.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent


class Question(NamedTuple):
    """A question, and where its answer is found.

    Attributes
    ----------
    asked : str
        The question.
    script : str
        The example that answers it.
    arguments : tuple of str
        Of the example.
    pattern : str
        A regular expression of what it prints, with groups.
    answer : str
        A sentence with a place for each group.
    picture : str
        The file's name.
    shows : str
        What is on it.
    """

    asked: str
    script: str
    arguments: tuple[str, ...]
    pattern: str
    answer: str
    picture: str
    shows: str


QUESTIONS = (
    Question(
        "How many of each group of eight had an affair? (to publish counts that you hold)",
        "weakly_honest_release.py",
        (),
        r"wrong +predicted +([\d.]+) +measured +([\d.]+).*?mean squared error +predicted +([\d.]+)",
        "published counts are wrong with probability {0} (measured: {1}), mean squared error {2}",
        "errors.png",
        "how far off a published count is, for four mechanisms with the same privacy",
    ),
    Question(
        "How late do flights leave? (from a table to answers in minutes; nobody is trusted)",
        "flights.py",
        (),
        r"first=15, last=None\)\} +([\d.]+) +([\d.]+ to [\d.]+) +([\d.]+)",
        "a quarter of an hour or more: {0} of them, 95 % interval {1}, truth {2}",
        "flights.png",
        "the estimated distribution of delays with its intervals, and the truth",
    ),
    Question(
        "What are they, of 24 kinds of people? (one report of five bits from each)",
        "collect_frequencies.py",
        (),
        r"(\d+ of \d+) intervals contain the truth\ncollege: ([\d.]+ \+- [\d.]+), truth ([\d.]+)",
        "college: {1}, truth {2}; {0} intervals hold the truth",
        "frequencies.png",
        "every frequency with its interval, and the truth",
    ),
    Question(
        "Which towns do people type? (words that nobody listed before)",
        "heavy_hitters.py",
        ("--quick",),
        r"'Zürich' +([\d.]+) +[\d.]+ +\[([\d.]+), ([\d.]+)\].*?(\d+ of \d+) towns are listed",
        "Zürich by {0}, 95 % interval {1} to {2}; {3} towns are found",
        "heavy-strings.png",
        "the words that were found, with intervals that hold after the search",
    ),
    Question(
        "Can a class be learnt from private answers about age and schooling?",
        "private_classifier.py",
        (),
        r"right for ([\d.]+) of others.*?\n +1\.0 +([\d.]+)",
        "with epsilon 1 it is right for {1} of other people, without privacy for {0}",
        "classifier.png",
        "each attribute in each class: the truth, and what was learnt",
    ),
)


def answered(question: Question, out: Path) -> list[str]:
    """What the demonstration prints of a question.

    Raises
    ------
    subprocess.CalledProcessError
        The example failed.
    LookupError
        It printed something else.
    """
    command = [sys.executable, str(HERE / question.script), *question.arguments]
    ran = subprocess.run(
        [*command, "--out", str(out)], check=True, stdout=subprocess.PIPE, encoding="utf-8"
    )
    (out / Path(question.script).with_suffix(".txt")).write_text(ran.stdout, encoding="utf-8")
    found, picture = re.search(question.pattern, ran.stdout, re.DOTALL), out / question.picture
    if found is None or not picture.exists():
        raise LookupError(f"{question.script} has no answer, or no picture:\n{ran.stdout}")
    return [
        question.asked,
        f"  {question.answer.format(*found.groups())}",
        f"  {picture}: {question.shows}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("demo"),
        help="directory for the pictures (default: demo)",
    )
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for lines in pool.map(lambda question: answered(question, out), QUESTIONS):
            print(*lines, sep="\n", end="\n\n", flush=True)


if __name__ == "__main__":
    main()

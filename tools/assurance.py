"""Run the tests behind every promise, and write the page about them: docs/assurance.md.

    python tools/assurance.py [--cases N]

The page has the tests that would fail if a promise did not hold, how many of their cases passed in
this run, and the versions that they ran with.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "assurance.md"


class Promise(NamedTuple):
    """What is promised, how it is tested, and the tests.

    Attributes
    ----------
    says : str
        The promise.
    how : str
        What the tests compare with what, and the planted errors that they find.
    tests : tuple of str
        Files of tests.
    """

    says: str
    how: str
    tests: tuple[str, ...]


PROMISES = (
    Promise(
        "What is drawn is private.",
        "The law of every draw, measured on chosen random words, against the published one in exact"
        " fractions, and its worst likelihood ratio against e^ε. A leak of one in 256, and of one"
        " bit, is planted in every protocol, and found.",
        ("tests/contracts/test_laws.py", "tests/contracts/test_pair_laws.py"),
    ),
    Promise(
        "Privacy is proved for every α.",
        "The laws of the reports of all protocols, enumerated at several α, against the formulas of"
        " their proofs, and the audits of what is drawn against the ratios that these prove.",
        ("tests/contracts/test_proofs.py",),
    ),
    Promise(
        "Designs are optimal.",
        "Certificates in exact arithmetic, checked by the library and by a program that does not"
        " use it; both refuse thousands of files with an error. So are released tables.",
        ("tests/mechdesign/test_certificate.py", "tests/test_check_certificate.py"),
    ),
    Promise(
        "Errors are as stated, and intervals cover.",
        "Variances and intervals of all protocols against repeated collections; variances that are"
        " too large by 40 % or too small by 30 % are rejected, and intervals that miss a seventh"
        " more.",
        (
            "tests/contracts/test_variances.py",
            "tests/frequency/heavy/test_variances.py",
            "tests/rangeq/test_variances.py",
            "tests/rangeq/grids/test_variances.py",
            "tests/rangeq/central/matrix_mechanism/test_mechanism.py",
            "tests/mechdesign/tables/test_estimates.py",
            "tests/mechdesign/tables/test_weighted_estimate.py",
        ),
    ),
    Promise(
        "Every report is counted exactly once.",
        "Collections that are interrupted before any line, lose workers, or are given files twice;"
        " collectors that are killed.",
        ("tests/frequency/storage/test_collection.py", "tests/survey/test_collector.py"),
    ),
    Promise(
        "Clients send the bytes that are described.",
        "Python and JavaScript against vectors that the server's code made, and the description of"
        " the wire against both.",
        (
            "tests/clients/test_vectors.py",
            "tests/clients/test_javascript.py",
            "tests/clients/test_wire_page.py",
        ),
    ),
    Promise(
        "Damaged and forged files are refused.",
        "Files of every format with changed, missing and repeated bytes: a typed error, or what the"
        " format says.",
        ("tests/test_fuzz.py", "tests/mechdesign/test_limits.py"),
    ),
)


INTRODUCTION = (
    "Some statements of this project are proved, some are tested, and some are neither."
    " [All guarantees](guarantees.md) are listed with what proves each.\n"
    "\n"
    "| | which | what stands behind it |\n"
    "| --- | --- | --- |\n"
    "| proved | a table of probabilities is private, exactly for its α; the formulas of"
    " protocols are, for every α; a design is the best of all with its properties; what"
    " readers can conclude from a suppressed table; the interval of one released count |"
    " exact arithmetic in the program, and for files of mechanisms and of released tables a"
    " [second program](mechanism-file.md) that shares no code with it |\n"
    "| tested | the code draws with these probabilities; variances, intervals of totals and"
    " of estimates are as stated; reports are counted once; damaged files are refused | the"
    " tests below, with errors that are planted to see that they fail |\n"
    "| neither | users are honest; one person is in as many counts as you said; nobody"
    " releases the same counts twice; randomness and devices are sound; smoothed and fitted"
    " estimates fit data like yours | what you know of your own survey; [what is not"
    " promised](../LIMITS.md) has the list |\n"
    "\n"
    "## The tests\n"
    "\n"
    "Paths are of files in the repository.\n"
    "\n"
)
"""What is proved, what is tested, and what is neither."""


def outcomes(promise: Promise, cases: int | None) -> tuple[int, int, int]:
    """How many cases passed, failed, and were skipped."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-m", "slow or not slow"]
        command += ["-n", "auto", "--dist", "worksteal", f"--junitxml={path}", *promise.tests]
        command += [] if cases is None else ["--cases", str(cases)]
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        found = list(ET.parse(path).iter("testcase"))
    failed = sum(any(one.find(tag) is not None for tag in ("failure", "error")) for one in found)
    skipped = sum(one.find("skipped") is not None for one in found)
    return len(found) - failed - skipped, failed, skipped


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, help="of every test, at most (default: all)")
    cases = parser.parse_args().cases
    rows, wrong = [], 0
    for promise in PROMISES:
        passed, failed, skipped = outcomes(promise, cases)
        wrong += failed + (not passed)
        count = f"{passed} passed" + (f", **{failed} failed**" if failed else "")
        count += f", {skipped} skipped" if skipped else ""
        files = "<br>".join(f"`{path}`" for path in promise.tests)
        rows.append(f"| **{promise.says}** {promise.how} | {files} | {count} |")
        print(f"{promise.says} {count}", flush=True)
    which = "all cases" if cases is None else f"at most {cases} of the cases of every test"
    names = ("mechdesign", "numpy", "scipy", "highspy")
    versions = ", ".join(f"{name} {version(name)}" for name in names)
    PAGE.write_text(
        "# What is proved, and what is tested\n\n"
        + INTRODUCTION
        + "| promise, and how it is tested | tests | last run |\n| --- | --- | --- |\n"
        + "\n".join(rows)
        + f"\n\nLast run: {which}; {versions}, Python {platform.python_version()}. Again:"
        " `python tools/assurance.py`.\n",
        encoding="utf-8",
    )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

"""The command ``explain``: what a mechanism does, in words, as JSON, and as a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from mechdesign.cli.options import (
    PICTURES,
    AddCommand,
    add_force,
    add_prior,
    check_suffix,
    check_targets,
    prior_of,
    say,
)
from mechdesign.explanation import explain
from mechdesign.mechanism import Mechanism


def add_explain(add: AddCommand) -> None:
    """Add ``explain``."""
    chosen = add(
        "explain",
        _explain,
        "say in words how far off published counts are, what they tell, and what one person risks",
        "explain wm.json --prior binomial:1/3 --plot wm-explained.png",
    )
    chosen.add_argument("file", type=Path, help="the mechanism (.json)")
    add_prior(chosen)
    chosen.add_argument(
        "--json", action="store_true", help="print JSON: exact fractions beside decimals"
    )
    chosen.add_argument("--plot", type=Path, help="draw one page (.png, .pdf, .svg)")
    add_force(chosen)


def _explain(options: argparse.Namespace) -> int:
    check_targets(options, options.plot)
    check_suffix(options.plot, *PICTURES)
    mechanism = Mechanism.load(options.file)
    told = explain(mechanism, prior_of(options, mechanism.inputs))
    print(json.dumps(told.to_dict(), indent=1, allow_nan=False) if options.json else told)
    if options.plot is not None:
        from mechdesign import plot

        plot.save(plot.explanation_page(told), options.plot)
        say(f"wrote {options.plot}", sys.stderr if options.json else None)
    return 0

"""The command ``explain``: what a mechanism does, in words, as JSON, and as a page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from mechdesign.cli.options import (
    PICTURES,
    AddCommand,
    add_force,
    add_prior,
    check_suffix,
    check_targets,
    prior_of,
    release_in,
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
    chosen.add_argument(
        "file", type=Path, help="the mechanism, or a released table of counts (.json)"
    )
    add_prior(chosen)
    chosen.add_argument(
        "--json", action="store_true", help="print JSON: exact fractions beside decimals"
    )
    chosen.add_argument("--plot", type=Path, help="draw one page (.png, .pdf, .svg)")
    add_force(chosen)


def _explain(options: argparse.Namespace) -> int:
    check_targets(options, options.plot)
    check_suffix(options.plot, *PICTURES)
    release = release_in(options.file)
    if release is not None:
        return _explain_release(options, release)
    mechanism = Mechanism.load(options.file)
    told = explain(mechanism, prior_of(options, mechanism.inputs))
    print(json.dumps(told.to_dict(), indent=1, allow_nan=False) if options.json else told)
    if options.plot is not None:
        from mechdesign import plot

        plot.save(plot.explanation_page(told), options.plot)
        say(f"wrote {options.plot}", sys.stderr if options.json else None)
    return 0


def _explain_release(options: argparse.Namespace, release: Any) -> int:
    """Explain a released table: whom it protects, and the mechanisms of its groups."""
    if options.plot is not None or options.prior is not None:
        raise ValueError("--plot and --prior are for the file of one mechanism, not of a table")
    told = {size: explain(mechanism) for size, mechanism in release.mechanisms.items()}
    if options.json:
        groups = [{"size": size, **one.to_dict()} for size, one in told.items()]
        content = {"statement": str(release.statement), "groups": groups}
        print(json.dumps(content, indent=1, allow_nan=False))
        return 0
    print(release.statement)
    sizes = list(told)
    shown = dict.fromkeys([sizes[0], sizes[len(sizes) // 2], sizes[-1]])
    for size in shown:
        print(f"\n--- groups of at most {size}\n\n{told[size]}")
    if len(shown) < len(sizes):
        print(f"\n{len(sizes)} sizes in all; --json explains each")
    return 0

"""What the notebooks share: one flag for thoroughness, one for real data.

    python examples/notebooks/ranges_and_quantiles.py [--full] [--data DIR]

In Jupyter, where there are no flags, set `full` and `data` by hand instead.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# What the scripts in examples/ compute can be imported
sys.path.append(str(Path(__file__).resolve().parents[1]))


def arguments() -> tuple[bool, Path | None]:
    """Whether to run with the settings of the sources instead of small ones, and the directory of
    real data, if given.
    """
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument(
        "--full", action="store_true", help="the settings of the sources, instead of small ones"
    )
    parser.add_argument("--data", type=Path, help="directory with adult.csv and taxis.csv")
    options, _ = parser.parse_known_args()  # Jupyter passes flags of its own
    if options.data is not None and not options.data.is_dir():
        parser.error(f"--data {options.data}: no such directory")
    return options.full, options.data

"""Every table and figure of the sources, recomputed: see `reproduction.__main__`."""

import sys
from pathlib import Path

# Which import each other as the scripts that they are
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

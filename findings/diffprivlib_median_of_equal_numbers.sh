#!/usr/bin/env bash
# The median of many equal numbers cannot be had from diffprivlib.
#
# Seen with diffprivlib 0.6.6: tools.median draws one of the gaps between neighbouring numbers.
# Where many people share the median (children of a family, grades, ages in years), all gaps that
# are wider than 0 are so far from it that their weights underflow to 0: at epsilon 1 and 100,000
# people with five values this is a division of 0 by 0, and a RuntimeError of NaN after it. With a
# smaller epsilon there is an answer, and so there is for numbers that differ. A small random number
# added to each helps.
#
# Output seen:
#   diffprivlib 0.6.6, 100000 people, epsilon 1: RuntimeError
#   diffprivlib 0.6.6, 100000 people, epsilon 0.01: an answer
#   diffprivlib 0.6.6, 100000 people, epsilon 1, numbers that differ: an answer
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "diffprivlib==0.6.6" "scikit-learn==1.7.2" "numpy==2.4.6"
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from diffprivlib.tools import median

children = np.repeat(np.arange(5), [20_000, 20_000, 30_000, 20_000, 10_000])
spread = children + np.linspace(-0.5, 0.5, len(children))
for numbers, epsilon, expected in (
    (children, 1, "RuntimeError"),
    (children, 0.01, "an answer"),
    (spread, 1, "an answer"),
):
    try:
        seen = "an answer" if -1 <= median(numbers, epsilon=epsilon, bounds=(-1, 15)) <= 15 else "?"
    except RuntimeError as error:
        seen = type(error).__name__
    differ = ", numbers that differ" if numbers is spread else ""
    name = f"diffprivlib {version('diffprivlib')}, {len(numbers)} people"
    print(f"{name}, epsilon {epsilon}{differ}: {seen}")
    assert seen == expected, "diffprivlib has changed"
PYTHON

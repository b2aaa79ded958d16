#!/usr/bin/env bash
# A rational number of python-flint equals no Fraction, and says so without an error.
#
# Seen with python-flint 0.9.0: fmpq(1, 2) == Fraction(1, 2) and fmpq(1, 2) == 0.5 are False, in
# both directions, though the hashes of the first two are the same, so that neither is found in a
# dict or a set of the other, and a check of exact results passes or fails for nothing. Comparing by
# < raises TypeError in place of it. Integers are equal: fmpq(2) == 2. Compare fmpq(f.numerator,
# f.denominator).
#
# Output seen:
#   python-flint 0.9.0: equal to Fraction False, to 0.5 False, to fmpq True; hashes equal True
#   python-flint 0.9.0: fmpq(1, 2) < Fraction(2, 3): TypeError
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet python-flint==0.9.0
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from fractions import Fraction
from importlib.metadata import version

from flint import fmpq

name = f"python-flint {version('python-flint')}"
half = fmpq(1, 2)
equal = half == Fraction(1, 2), half == 0.5, half == fmpq(2, 4)
hashes = hash(half) == hash(Fraction(1, 2))
print(f"{name}: equal to Fraction {equal[0]}, to 0.5 {equal[1]}, to fmpq {equal[2]};", end=" ")
print(f"hashes equal {hashes}")
assert (*equal, hashes) == (False, False, True, True), "comparisons have changed"
assert Fraction(1, 2) != half, "comparisons the other way round have changed"
assert fmpq(2) == 2, "integers have changed"
assert half not in {Fraction(1, 2)}, "sets have changed"
try:
    half < Fraction(2, 3)
except TypeError as error:
    print(f"{name}: fmpq(1, 2) < Fraction(2, 3): {type(error).__name__}")
else:
    raise SystemExit("comparing by < has changed")
PYTHON

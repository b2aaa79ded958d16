#!/usr/bin/env bash
# Eight discrete Laplace mechanisms have a pure epsilon, and ten have none.
#
# Seen with dp-accounting 0.6.0: the privacy loss distribution of eight discrete Laplace mechanisms
# of epsilon 1 says epsilon 8 at delta 0, and that of ten says infinity, though theirs is 10. From
# some size on an array with tails cut off takes the place of the exact table, and 1e-15 of
# probability counts as an infinite loss. PLDAccountant says infinity after a single Laplace
# mechanism. At delta 1e-14 all are right: who wants pure epsilon adds the epsilons, or asks for a
# delta as small as that.
#
# Output seen:
#   dp-accounting 0.6.0, 8 of epsilon 1: 8 at delta 0, 8.000000 at delta 1e-14
#   dp-accounting 0.6.0, 10 of epsilon 1: inf at delta 0, 10.000000 at delta 1e-14
#   dp-accounting 0.6.0, PLDAccountant, 1 of epsilon 1: inf at delta 0, 1.000000 at delta 1e-14
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet dp-accounting==0.6.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import math
from importlib.metadata import version

from dp_accounting import LaplaceDpEvent
from dp_accounting.pld import PLDAccountant, privacy_loss_distribution

name = f"dp-accounting {version('dp-accounting')}"
one = privacy_loss_distribution.from_discrete_laplace_mechanism(1.0)
accountant = PLDAccountant().compose(LaplaceDpEvent(1.0))
for label, count, ask in (
    ("8", 8, one.self_compose(8).get_epsilon_for_delta),
    ("10", 10, one.self_compose(10).get_epsilon_for_delta),
    ("PLDAccountant, 1", 1, accountant.get_epsilon),
):
    pure, nearly = ask(0), ask(1e-14)
    print(f"{name}, {label} of epsilon 1: {pure:g} at delta 0, {nearly:.6f} at delta 1e-14")
    expected = 8 if label == "8" else math.inf
    assert math.isclose(pure, expected), "dp-accounting has changed"
    assert math.isclose(nearly, count, rel_tol=1e-6), "dp-accounting has changed"
PYTHON

#!/usr/bin/env bash
# A linear program of SciPy is solved without its small coefficients, and is called a success.
#
# Seen with scipy 1.17.1: linprog leaves out every coefficient of at most 1e-9 (an option of HiGHS,
# small_matrix_value, which linprog cannot set), and so finds another program's solution: status 0,
# no warning, and a residual of the constraint that is computed without it, too. The solution below
# is 1000 times what the constraint allows. A coefficient a little above is kept. highspy 1.16.0
# answers a row with such a coefficient with a warning. Ratios of probabilities are as small as that
# from an epsilon of 20.8 on: scale the columns.
#
# Output seen:
#   scipy 1.17.1: the most x with 1e-09 x <= 1: 1e+12, success True, residual 1
#   scipy 1.17.1: the most x with 1.1e-09 x <= 1: 9.09091e+08, success True, residual 0
#   highspy 1.16.0: a row with 1e-09: HighsStatus.kWarning
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1 highspy==1.16.0 numpy==2.4.6
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
from importlib.metadata import version

import highspy
import numpy as np
import scipy
from scipy.optimize import linprog

for coefficient, expected in ((1e-9, (1e12, True, 1.0)), (1.1e-9, (1 / 1.1e-9, True, 0.0))):
    found = linprog([-1.0], A_ub=[[coefficient]], b_ub=[1.0], bounds=[(0, 1e12)])
    seen = found.x[0], found.success, found.ineqlin.residual[0]
    print(
        f"scipy {scipy.__version__}: the most x with {coefficient:g} x <= 1: {seen[0]:g},", end=" "
    )
    print(f"success {seen[1]}, residual {seen[2]:g}")
    assert np.allclose(seen, expected), "scipy has changed"
solver = highspy.Highs()
solver.silent()
solver.addVar(0, 1e12)
status = solver.addRow(-highspy.kHighsInf, 1.0, 1, np.array([0]), np.array([1e-9]))
print(f"highspy {version('highspy')}: a row with 1e-09: {status}")
assert status == highspy.HighsStatus.kWarning, "highspy has changed"
PYTHON

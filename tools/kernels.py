"""The numerical tests under every kernel of OpenBLAS that this processor can run: a table.

Each kernel sums in an order of its own. ``python tools/kernels.py [pytest's options]``
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent

TESTS = (
    "tests/rangeq",
    "tests/frequency/marginals",
    "tests/frequency/test_posterior.py",
    "tests/frequency/test_postprocess.py",
    "tests/frequency/test_nonparametric.py",
    "tests/mechdesign/base/test_definite.py",
    "tests/mechdesign/convex",
    "tests/mechdesign/local",
)
"""Those that do much linear algebra."""

NEEDED = {
    "Prescott": "pni",
    "Core2": "ssse3",
    "Nehalem": "sse4_2",
    "Barcelona": "sse4a",
    "Bobcat": "sse4a",
    "Sandybridge": "avx",
    "Bulldozer": "fma4",
    "Excavator": "fma4 avx2",
    "Haswell": "avx2 fma",
    "Zen": "avx2 fma",
    "SkylakeX": "avx512f avx512dq avx512bw avx512vl",
    "Cooperlake": "avx512f avx512dq avx512bw avx512vl avx512_bf16",
    "SapphireRapids": "avx512f avx512dq avx512bw avx512vl avx512_bf16 amx_bf16",
    "NEOVERSEN1": "asimd",
    "NEOVERSEV1": "sve",
    "ARMV8": "asimd",
}
"""Names for OPENBLAS_CORETYPE, and the instructions that each takes, as in /proc/cpuinfo."""

_PROBE = """
import json, numpy, scipy.linalg
from threadpoolctl import threadpool_info
numpy.linalg.inv(numpy.eye(65) + numpy.ones((65, 65)) @ numpy.ones((65, 65)))
blas = [each for each in threadpool_info() if each["internal_api"] == "openblas"]
print(json.dumps(sorted({each["architecture"] for each in blas})))
"""


def instructions() -> set[str] | None:
    """Those of this processor, None where the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return {
        flag
        for line in lines
        if line.lower().startswith(("flags", "features"))
        for flag in line.partition(":")[2].split()
    }


def kernels(found: set[str] | None, needed: Mapping[str, str] = NEEDED) -> Iterator[str]:
    """The names that a processor with these instructions can run, whether they are built or not."""
    for name, flags in needed.items():
        if found is None or set(flags.split()) <= found:
            yield name


def loaded(name: str) -> str | None:
    """What OpenBLAS takes if asked for a kernel; None if it does not run."""
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], env=_environment(name), capture_output=True, text=True
    )
    return " and ".join(json.loads(done.stdout)) if done.returncode == 0 else None


def main(options: list[str]) -> int:
    """Run the tests under each kernel, and print the table; how many kernels fail."""
    asked: dict[str, str] = {}
    for name in kernels(instructions()):
        if taken := loaded(name):
            asked.setdefault(taken, name)  # several names may stand for one kernel
    print(f"kernels of OpenBLAS here: {', '.join(asked) or 'none'}", flush=True)
    failing = 0
    for taken, name in asked.items():
        command = [sys.executable, "-m", "pytest", "--once", "--cases", "2", *TESTS, *options]
        done = subprocess.run(
            command, env=_environment(name), cwd=ROOT, capture_output=True, text=True
        )
        lines = done.stdout.splitlines()
        failed = [line.split()[1] for line in lines if line.startswith(("FAILED", "ERROR"))]
        failing += done.returncode != 0
        verdict = f"fails: {len(failed)} tests" if done.returncode else "passes"
        print("\n    ".join([f"{taken:12} {verdict}", *failed]), flush=True)
    return failing


def _environment(kernel: str) -> dict[str, str]:
    return {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Refuse requests that no mechanism meets: seconds until the proof, the conflict and the epsilon.

Prints a Markdown table.

python benchmarks/infeasible_requests.py [--quick]
"""

from __future__ import annotations

import argparse
import time

from range_queries import one_core, table

from mechdesign import Incompatible, Privacy, design

REQUESTS = (["unbiased"], ["within:1=9/10", "WH"], ["at-least:0,0=3/5", "at-most:0,0=1/2", "CM"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small groups only")
    sizes = (8, 20) if parser.parse_args().quick else (8, 20, 40, 60)
    one_core()
    found = []
    for n in sizes:
        for texts in REQUESTS:
            start = time.perf_counter()
            try:
                design(n, Privacy.from_epsilon(1), properties=texts)
            except Incompatible as error:
                seconds = time.perf_counter() - start
                enough = "-" if error.possible is None else f"{error.possible.epsilon:.6g}"
                conflict = ", ".join(error.conflict)
                found.append([str(n), " ".join(texts), f"{seconds:.1f}", conflict, enough])
    table(
        "Requests that no mechanism meets, at epsilon 1",
        ["n", "asked for", "seconds", "conflict", "possible from epsilon"],
        found,
    )


if __name__ == "__main__":
    main()

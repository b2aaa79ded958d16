"""Compare this project with other libraries, in one run: writes docs/benchmarks.md.

    python benchmarks/compare.py            about twenty minutes; makes new environments
    python benchmarks/compare.py --keep     ten minutes, in the environments that are there
    python benchmarks/compare.py --quick    a minute, in those, too

The quick run measures too little for its numbers to be quoted.
The libraries come from the index that pip is configured for. A failure becomes a row of the report.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from pathlib import Path

from peers.environments import PEERS, ROOT, THREADS, Worker, install, installed, python_of
from peers.page import page
from peers.tasks import FULL, QUICK, measured
from tqdm import tqdm

os.environ.update(THREADS)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="little of everything, with the environments that are there",
    )
    parser.add_argument(
        "--keep", action="store_true", help="measure in the environments that are there"
    )
    parser.add_argument(
        "--environments", type=Path, default=ROOT / ".venv-peers", help="where they are made"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks.md")
    options = parser.parse_args()

    size = QUICK if options.quick else FULL
    records = {}
    for peer in tqdm(PEERS, desc="environments", disable=None):
        records[peer.adapter] = (installed if options.quick or options.keep else install)(
            options.environments, peer
        )
    with ExitStack() as stack:
        workers = {
            peer.adapter: stack.enter_context(
                Worker(python_of(options.environments, peer), peer.adapter)
            )
            for peer in PEERS
            if "error" not in records[peer.adapter]
        }
        said = {name: worker.ask("probes").get("value", {}) for name, worker in workers.items()}
        with tqdm(desc="rows", disable=None) as bar:

            def report(row: str) -> None:
                bar.set_postfix_str(row)
                bar.update()

            results = measured(workers, size, report)
    options.out.write_text(page(PEERS, records, said, results, size))


if __name__ == "__main__":
    main()

"""What the packages draw, write and answer, as it was: ``python -m tests.frozen`` writes it anew.

A seed gives the same reports and releases in later versions, and a file stays readable. What
`tests/frozen.json` and `tests/frozen.zip` have changes only with an entry in the changelog.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from frequency import Between
from frequency.core.protocol import channel_of
from frequency.storage import save_protocol
from mechdesign import Privacy, named
from rangeq import central
from tests.contracts.examples import CENTRAL, COLLECTED
from tests.contracts.test_answers import estimate_of, lists, names_of
from tools.fuzz.runner import KINDS

PLACE = Path(__file__).parent
NUMBERS, FILES = PLACE / "frozen.json", PLACE / "frozen.zip"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def summary(values: Any) -> list[float]:
    """A few of many numbers, and sums that depend on all."""
    flat = np.asarray(values, dtype=float).ravel()
    flat = flat[np.isfinite(flat)]
    sums = flat.sum(), flat @ np.cos(np.arange(flat.size))
    return [float(f"{x:.12g}") for x in (*flat[:: max(1, flat.size // 3)][:3], *sums)]


def of_protocol(place: int) -> dict[str, Any]:
    """The file, the reports, the aggregate and the estimate of one of every protocol."""
    protocol, values = COLLECTED[place]
    reports = protocol.privatize(values, np.random.default_rng(place))
    aggregate = protocol.aggregate(reports)
    simulated = protocol.simulate(3, np.random.default_rng(place), values)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "protocol.json"
        save_protocol(path, protocol)
        kept: dict[str, Any] = {"file": digest(path.read_bytes())}
    kept |= {
        "reports": digest(np.ascontiguousarray(reports).tobytes()),
        "aggregate": digest(aggregate.to_bytes()),
        "simulated": digest(simulated.to_bytes()),
        "audit": str(protocol.audit()),
        "signature": digest(channel_of(protocol).signature.encode()),
    }
    estimate = estimate_of(protocol, aggregate, values)
    if lists(protocol):
        kept["found"] = [str(item) for item in estimate.items]
        kept["frequencies"] = summary(estimate.frequencies)
        return kept
    for name in ("counts", "frequencies", "variances"):
        try:
            value = getattr(estimate, name)
        except (AttributeError, ValueError):
            continue
        kept[name] = summary(value)
    if len(names := names_of(protocol)) > 1:
        asked = {name: Between(0, size // 2) for name, size in list(names.items())[:2]}
        for where in ({first: ends} for first, ends in asked.items()):
            kept.setdefault("answers", []).append(summary(estimate.answer(where).value))
        kept["answers"].append(summary(estimate.answer(asked).value))
    return kept


def of_mechanisms() -> dict[str, Any]:
    """Draws of count mechanisms and of the curator's, with a seed."""
    kept: dict[str, Any] = {}
    counts = [0, 1, 4, 8, 8, 3] * 20
    for name, mechanism in {
        "GM": named.geometric(8, alpha="9/10"),
        "EM": named.explicit_fair(8, alpha="9/10"),
        "WM": named.weakly_honest(8, alpha="9/10"),
        "UM": named.uniform(8),
        "KRR": named.krr(9, alpha=Privacy.from_epsilon(1.0, neighbours="all").alpha),
    }.items():
        drawn = mechanism.release(counts, np.random.default_rng(5))
        kept[name] = digest(np.asarray(drawn, dtype=np.int64).tobytes())
    for place, curator in enumerate([*CENTRAL, central.CentralFlat(7, Fraction(1, 3))]):
        release = curator.release(np.arange(curator.domain) * 3, np.random.default_rng(6))
        ends = [Between(0, item) for item in range(curator.domain)]
        kept[f"{place} {curator}"] = summary([release.answer(each).value for each in ends])
    tree = central.TreeQuantiles(64, ("1/4", "1/2"), 1.0)
    bins = tree.release(np.arange(640) // 10, np.random.default_rng(6))
    kept[str(tree)] = summary(bins)
    return kept


def files() -> Iterator[tuple[str, bytes]]:
    """Valid files of every format."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for place, data in enumerate(kind(Path(folder)).originals):
                if len(data) < 50_000:
                    yield f"{kind.name}-{place}", data


def main() -> None:
    kept = {
        "protocols": {
            f"{place} {type(protocol).__name__}": of_protocol(place)
            for place, (protocol, _) in enumerate(COLLECTED)
        },
        "mechanisms": of_mechanisms(),
    }
    text = json.dumps(kept, indent=1)
    text = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m[1]) + "]", text)
    NUMBERS.write_text(text + "\n")
    with zipfile.ZipFile(FILES, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main()

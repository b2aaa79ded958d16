"""The committed vectors: what was sent, stored and estimated means the same as ever.

``python -m tests.frequency.core.test_vectors`` rewrites them.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from frequency import GRR, InvalidReport
from tests.frequency.core.messages import (
    HOSTILE,
    ORACLES,
    batch_header,
    every_oracle,
    header_of,
    message,
)

VECTORS = Path(__file__).with_name("vectors.json")


def make_vectors() -> dict[str, Any]:
    """What today's code sends, stores and estimates; and messages that are wrong."""
    right: dict[str, Any] = {}
    for k, (name, oracle) in enumerate(ORACLES.items()):
        values = [0, 1, min(oracle.domain, 1 << 33) - 1]
        reports = oracle.privatize(values, np.random.Generator(np.random.PCG64(k)))
        aggregate = oracle.aggregate(reports)
        right[name] = {
            "parameters": oracle.parameters,
            "seed": k,
            "values": values,
            "reports": message(header_of(oracle), reports.tobytes()).hex(),
            "batch": message(batch_header(oracle), reports.tobytes()).hex(),
            "single": oracle.single_reports_to_bytes(reports)[0].hex(),
            "aggregate": aggregate.to_bytes().hex(),
            "items": values if oracle.domain > 1000 else None,
            "frequencies": [
                float(f"{f:.12g}")
                for f in oracle.estimate(
                    aggregate, None if oracle.domain <= 1000 else values
                ).frequencies
            ],
        }
    grr, body = ORACLES["GRR"], b"\0\1\2"
    wrong = [
        ("GRR", "malformed", 1, b""),
        ("GRR", "malformed", 1, message(header_of(grr), body, b"LDPX")),
        ("GRR", "malformed", 1, message(header_of(grr), body)[:20]),
        ("GRR", "malformed", 1, message(header_of(grr, version=2), body)),
        ("GRR", "malformed", 1, message(header_of(grr, kind="aggregate"), body)),
        ("GRR", "malformed", 1, message(header_of(grr, count=3.0), body)),
        ("GRR", "malformed", 2, message(header_of(grr), body + b"\0\0")),
        ("GRR", "malformed", 1, message(batch_header(grr, version=1), body)),
        ("GRR", "malformed", 1, message(batch_header(grr, id="0" * 31), body)),
        ("GRR", "malformed", 1, message(batch_header(grr, id="A" * 32), body)),
        ("GRR", "foreign", 3, message(batch_header(GRR(5, 2.0)), body)),
        ("GRR", "truncated", 2, message(batch_header(grr), body[:1])),
        ("GRR", "foreign", 3, message(header_of(GRR(5, 2.0)), body)),
        ("GRR", "malformed", 1, message(header_of(grr, parameters=grr.parameters), body)),
        ("GRR", "truncated", 1, message(header_of(grr), body[:2])),
        *(
            (
                name,
                "impossible",
                len(bad),
                message(
                    header_of(oracle, count=len(bad)), np.array(bad, oracle.report_dtype).tobytes()
                ),
            )
            for name, oracle in ORACLES.items()
            if (bad := HOSTILE[name][1])
        ),
    ]
    keys = ("oracle", "reason", "count", "message")
    return {
        "right": right,
        "wrong": [dict(zip(keys, (*case[:3], case[3].hex()), strict=True)) for case in wrong],
    }


def load_vectors() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VECTORS.read_text())
    return found


@every_oracle
def test_the_committed_vectors_still_mean_the_same(name: str) -> None:
    oracle, vector = ORACLES[name], load_vectors()["right"][name]
    assert oracle.parameters == vector["parameters"]
    data, stored = bytes.fromhex(vector["reports"]), bytes.fromhex(vector["aggregate"])
    reports, aggregate = oracle.reports_from_bytes(data), oracle.aggregate_from_bytes(stored)
    assert len(reports) == aggregate.n == 3
    assert oracle.aggregate(reports) == aggregate
    batch = bytes.fromhex(vector["batch"])
    assert oracle.reports_from_bytes(batch).tobytes() == reports.tobytes()
    sent = oracle.reports_to_bytes(reports)
    identity = str(oracle.transport.batch(sent).id).encode()
    assert sent == batch.replace(b"0123456789abcdef" * 2, identity)
    assert oracle.single_reports_to_bytes(reports)[0].hex() == vector["single"]
    assert aggregate.to_bytes() == stored
    assert oracle.estimate(aggregate, vector["items"]).frequencies == pytest.approx(
        vector["frequencies"], rel=1e-11, abs=1e-11
    )
    assert np.array_equal(
        oracle.privatize(vector["values"], np.random.Generator(np.random.PCG64(vector["seed"]))),
        reports,
    )


def test_the_committed_vectors_are_of_every_oracle() -> None:
    assert load_vectors()["right"].keys() == ORACLES.keys()
    reasons = {(case["oracle"], case["reason"]) for case in load_vectors()["wrong"]}
    assert {reason for _, reason in reasons} == {"malformed", "foreign", "truncated", "impossible"}
    assert {name for name, reason in reasons if reason == "impossible"} == {
        name for name in ORACLES if HOSTILE[name][1]
    }


@pytest.mark.parametrize(
    "case",
    load_vectors()["wrong"] if VECTORS.exists() else [],
    ids=lambda case: f"{case['oracle']}-{case['reason']}",
)
def test_the_committed_wrong_messages_are_refused_for_their_reason(case: dict[str, Any]) -> None:
    oracle, data = ORACLES[case["oracle"]], bytes.fromhex(case["message"])
    tally: Counter[str] = Counter()
    oracle.reports_from_bytes(data, tally)
    assert tally == Counter({case["reason"]: case["count"]})
    with pytest.raises(InvalidReport):
        oracle.reports_from_bytes(data)


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(make_vectors(), indent=1) + "\n")

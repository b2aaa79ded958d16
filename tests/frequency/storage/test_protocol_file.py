"""What a protocol file may ask for: a small one is loaded or refused at once."""

import json

import pytest

import frequency.marginals
import rangeq.grids
from frequency.core.protocol import channel_of
from frequency.marginals import CALM, Domain
from frequency.storage.protocol_file import FORMAT, VERSION, load_protocol, save_protocol
from mechdesign import InvalidFile
from mechdesign._support.strict_json import digest_of


def sizes(number, size):
    return {"sizes": [[f"a{k}", size] for k in range(number)]}


def domain(number, size):
    return {"attributes": [[f"a{k}", size] for k in range(number)]}


@pytest.mark.parametrize(
    ("name", "arguments", "bound"),
    [
        ("rangeq.grids.HDG", {"sizes": sizes(5000, 2), "n": 200}, "5000 attributes, more than 256"),
        ("rangeq.grids.HDG", {"sizes": sizes(256, 2), "n": 200}, "32896 groups, more than 16384"),
        ("rangeq.grids.TDG", {"sizes": sizes(256, 2), "n": 200}, "32640 groups, more than 16384"),
        (
            "rangeq.grids.TDG",
            {"sizes": sizes(2, 1 << 31), "granularity": 1 << 31},
            f"{1 << 62} cells, more than {1 << 22}",
        ),
        (
            "rangeq.grids.HDG",
            {"sizes": sizes(2, 1 << 31), "granularity": 2, "line_granularity": 1 << 31},
            f"{1 << 32} cells, more than {3 << 20}",
        ),
        ("rangeq.grids.HIO", {"sizes": sizes(20, 1 << 20)}, "levels, more than 8192"),
        (
            "rangeq.grids.HIO",
            {"sizes": sizes(2, 1 << 20), "branching": 2},
            f"{(1 << 22) - 2} nodes, more than {3 << 20}",
        ),
        ("rangeq.grids.LHIO", {"sizes": sizes(100, 256), "branching": 2}, "groups, more than"),
        ("rangeq.grids.HaarHRR2D", {"sizes": sizes(100, 256)}, "groups, more than 16384"),
        ("rangeq.grids.RangeCALM", {"sizes": sizes(250, 2)}, "31125 groups, more than 16384"),
        ("frequency.marginals.InpHT", {"domain": domain(5000, 1), "k": 2}, "more than 256"),
        ("frequency.marginals.InpEM", {"domain": domain(5000, 1), "k": 2500}, "more than 256"),
        ("frequency.marginals.InpHT", {"domain": domain(62, 2), "k": 4}, "more than 65536"),
        ("frequency.marginals.MargPS", {"domain": domain(62, 2), "k": 3}, "more than 16384"),
        ("frequency.marginals.CALM", {"domain": domain(62, 2), "k": 3, "covered": 3}, "too many"),
        ("frequency.marginals.CALM", {"domain": domain(14, 2), "k": 6, "covered": 6}, "too many"),
    ],
)
def test_a_small_file_cannot_ask_for_much(name, arguments, bound, tmp_path):
    content = {
        "format": FORMAT,
        "version": VERSION,
        "protocol": name,
        "arguments": {"epsilon": 1.0, **arguments},
        "agreed": {},
    }
    content["digest"] = digest_of(content)
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=bound):
        load_protocol(path)


@pytest.mark.parametrize(
    "protocol",
    [
        CALM(Domain.binary(*(f"a{k}" for k in range(62))), 2, 1.0),
        frequency.marginals.InpHT(Domain.binary(*(f"a{k}" for k in range(16))), 6, 1.0),
        frequency.marginals.MargPS(Domain.binary(*(f"a{k}" for k in range(16))), 6, 1.0),
        rangeq.grids.HDG([1 << 20] * 100, 1.0, 10**6),
        rangeq.grids.HIO([1 << 20] * 2, 1.0),
        rangeq.grids.LHIO([1 << 10] * 20, 1.0),
        rangeq.grids.RangeCALM([1 << 11] * 40, 1.0),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_protocols_of_practical_size_have_files(protocol, tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, protocol)
    assert channel_of(load_protocol(path)) == channel_of(protocol)

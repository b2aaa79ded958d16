"""Protocols as files: they come back as they were, what lies is refused, and at once if small."""

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import frequency
import frequency.marginals
import rangeq
import rangeq.grids
from frequency import GRR, HRR, Categorical, Schema, Survey, Tabular
from frequency.core.protocol import channel_of
from frequency.marginals import CALM, Domain
from frequency.storage.protocol_file import load_protocol, save_protocol
from mechdesign import InvalidFile, Privacy, named
from mechdesign.base.files import Format, digest_of
from mechdesign.local import extremal
from mechdesign.utilities import MutualInformation
from tests.contracts.examples import WITH_VALUES
from tests.own_oracles import Exclusion, lopsided


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
        ("rangeq.grids.HIO", {"sizes": sizes(20, 1 << 20)}, "levels, more than 1048576"),
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
        "format": "mechdesign.protocol",
        "version": 2,
        "protocol": name,
        "arguments": {"epsilon": 1.0, **arguments},
        "agreed": {},
        "client": None,
    }
    content["digest"] = digest_of(content)
    path = tmp_path / "protocol.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match=bound):
        load_protocol(path)


@pytest.mark.slow
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


@WITH_VALUES
def test_a_protocol_is_what_it_was(protocol, values, tmp_path):
    save_protocol(tmp_path / "protocol.json", protocol)
    again = load_protocol(tmp_path / "protocol.json")
    assert type(again) is type(protocol)
    assert channel_of(again) == channel_of(protocol)
    assert again.report_dtype == protocol.report_dtype
    drawn = [p.privatize(values, np.random.default_rng(5)) for p in (protocol, again)]
    assert np.array_equal(*drawn)
    assert again.aggregate(drawn[0]) == protocol.aggregate(drawn[1])


def rewritten(path, change):
    """A protocol file with other content and the right digest."""
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(format="x"), "not a protocol file"),
        (lambda c: c.update(version=3), "version 3"),
        (lambda c: c.update(version=True), "version True"),
        (lambda c: c.update(version=1.0), "version 1.0"),
        (lambda c: c.update(comment="harmless"), "unknown key 'comment'"),
        (lambda c: c["arguments"].update(domain={"fraction": "16", "more": 1}), "one key"),
        (lambda c: c["arguments"].update(domain={"number": "16"}), "unknown key 'number'"),
        (lambda c: c["agreed"].update(domain=16.0), "would draw reports otherwise.*domain"),
        (lambda c: c.update(protocol="os.system"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.Estimate"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.np"), "not a protocol of this library"),
        (lambda c: c.update(protocol="frequency.Oracle"), "not a protocol of this library"),
        (lambda c: c.update(protocol=5), "protocol must be a text, got 5"),
        (lambda c: c.pop("protocol"), "'protocol' is missing"),
        (lambda c: c.pop("arguments"), "'arguments' is missing"),
        (lambda c: c.pop("agreed"), "'agreed' is missing"),
        (lambda c: c["arguments"].update(domain=-1), "domain must be"),
        (
            lambda c: c["arguments"].update(domain={"fraction": "1/0"}),
            "a denominator must be positive",
        ),
        (lambda c: c["arguments"].update(more=1), "unknown key 'more'"),
        (lambda c: c["arguments"].update(epsilon=1.25), "would draw reports otherwise.*alpha"),
        (lambda c: c["agreed"].update(truth="1"), "would draw reports otherwise.*truth"),
        (lambda c: c.update(agreed=[]), "agreed must be an object"),
    ],
)
def test_a_protocol_file_that_lies_is_refused(change, message, tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    rewritten(path, lambda content: None)
    assert load_protocol(path) == HRR(16, 1.0)
    rewritten(path, change)
    with pytest.raises(InvalidFile, match=message):
        load_protocol(path)


def test_a_protocol_file_that_was_changed_or_cut_is_refused(tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    text = path.read_text()
    for damaged in (
        text[:-20],
        text.replace('"domain": 16', '"domain": 17'),
        "",
        "[" * 100_000,
        "null",
        "3",
    ):
        path.write_text(damaged)
        with pytest.raises(InvalidFile):
            load_protocol(path)


def test_the_mechanisms_of_a_protocol_file_share_what_checking_may_take(tmp_path):
    path, size = tmp_path / "protocol.json", 40
    save_protocol(path, Tabular(named.krr(size, alpha="1/2")))
    distances = [[abs(j - k) for k in range(size)] for j in range(size)]
    heavy = {
        "alpha": "1/2",
        "neighbours": {"distances": distances},
        "denominator": str(size),
        "weights": [["1"] * size] * size,
        "certificate": None,
    }
    for number, message in ((1, "unknown key 'x'"), (12, "too long to check")):
        more = [{"mechanism": heavy}] * number
        rewritten(path, lambda c, more=more: c["arguments"].update(x=more))
        with pytest.raises(InvalidFile, match=message):
            load_protocol(path)


def test_what_occurs_twice_in_a_protocol_file_is_refused(tmp_path):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    path.write_text(path.read_text().replace('"domain": 16', '"domain": 4, "domain": 16', 1))
    with pytest.raises(InvalidFile, match="'domain' occurs twice"):
        load_protocol(path)
    protocol = frequency.marginals.InpHT(frequency.marginals.Domain({"a": 2, "b": 3}), 2, 1.0)
    save_protocol(path, protocol)
    assert load_protocol(path) == protocol
    rewritten(path, lambda c: c["arguments"]["domain"]["attributes"].append(["a", 2]))
    with pytest.raises(InvalidFile, match="occurs twice"):
        load_protocol(path)


def test_attributes_in_the_form_of_older_files_are_read(tmp_path):
    path, protocol = tmp_path / "protocol.json", rangeq.grids.HDG({"a": 9, "b": 5}, 1.0, 10**4)
    save_protocol(path, protocol)
    assert '"attributes"' in path.read_text()

    def older(content):
        content["arguments"]["sizes"] = {"sizes": content["arguments"]["sizes"].pop("attributes")}

    rewritten(path, older)
    assert load_protocol(path) == protocol
    assert load_protocol(path).attributes == Domain({"a": 9, "b": 5})
    rewritten(path, lambda c: c["arguments"]["sizes"]["sizes"].append(["a", 2]))
    with pytest.raises(InvalidFile, match="occurs twice"):
        load_protocol(path)


def test_a_designed_mechanism_in_a_protocol_file_is_audited_again(tmp_path):
    design = extremal(3, Privacy(alpha="1/2", neighbours="all"), MutualInformation(["1/3"] * 3))
    path = tmp_path / "protocol.json"
    save_protocol(path, Tabular(design.mechanism))
    assert load_protocol(path).mechanism == design.mechanism

    def lie(content):
        content["arguments"]["mechanism"]["mechanism"]["alpha"] = "3/4"

    rewritten(path, lie)
    with pytest.raises(Exception, match="not private"):
        load_protocol(path)


def test_only_public_protocols_have_files(tmp_path):
    class Own(GRR):
        pass

    for wrong in (Own(3, 1.0), channel_of(frequency.heavy.PrefixExtension(24, 1.0)), 3, GRR):
        with pytest.raises(TypeError):
            save_protocol(tmp_path / "x.json", wrong)
    with pytest.raises(TypeError, match="expected a protocol"):
        save_protocol(GRR(3, 1.0), str(tmp_path / "x.json"))
    assert list(tmp_path.iterdir()) == []


OWN = [
    Exclusion(5, 1.0),
    rangeq.HierarchicalHistogram(16, 1.0, 4, (Exclusion, "OUE")),
    rangeq.HierarchicalHistogram(16, 1.0, 4, (lopsided(1.0), GRR(16, 0.5))),
    rangeq.HaarHRR(4, 1.0, oracle=Exclusion),
    rangeq.CircularHistogram(16, 1.0, 16, (4, 16), Exclusion),
    rangeq.grids.TDG([8, 8], 1.0, granularity=4, oracle=Exclusion),
]


@pytest.mark.parametrize("protocol", OWN, ids=lambda p: type(p).__name__)
def test_oracles_of_ones_own_come_back(protocol, tmp_path) -> None:
    path = tmp_path / "protocol.json"
    save_protocol(path, protocol)
    again = load_protocol(path)
    assert again == protocol
    assert channel_of(again).signature == channel_of(protocol).signature
    assert again.audit().holds


def test_a_file_names_classes_of_imported_modules_and_nothing_else(tmp_path, monkeypatch) -> None:
    path = tmp_path / "protocol.json"
    save_protocol(path, rangeq.Flat(8, 1.0, oracle=Exclusion))
    content = json.loads(path.read_text())

    def load(name):
        content["arguments"]["oracle"] = {"name": name}
        content["digest"] = digest_of({k: v for k, v in content.items() if k != "digest"})
        path.write_text(json.dumps(content))
        return load_protocol(path)

    assert load("tests.own_oracles.Exclusion") == rangeq.Flat(8, 1.0, oracle=Exclusion)
    for name in ("os.kill", "posix.kill", "builtins.exec", "tests.own_oracles.lopsided", "x"):
        with pytest.raises(InvalidFile, match="not a protocol of this library"):
            load(name)
    monkeypatch.delitem(sys.modules, "tests.own_oracles")
    with pytest.raises(InvalidFile, match=r"own_oracles' has not been imported .*--import tests"):
        load("tests.own_oracles.Exclusion")


def test_classes_that_no_file_can_name_are_refused(tmp_path) -> None:
    class Local(Exclusion):
        pass

    save_protocol(tmp_path / "protocol.json", rangeq.Flat(4, 1.0, oracle=GRR))  # which is public
    for oracle in (Local, lambda d, e: GRR(d, e)):
        with pytest.raises(TypeError, match="cannot be"):
            save_protocol(tmp_path / "refused.json", rangeq.Flat(4, 1.0, oracle=oracle))
    with pytest.raises(TypeError, match="cannot be"):
        save_protocol(tmp_path / "refused.json", Local(4, 1.0))
    assert not (tmp_path / "refused.json").exists()


def test_a_file_that_nobody_could_read_is_not_written(monkeypatch, tmp_path):
    question = Categorical("x", [f"label {k}" for k in range(99)])
    written: dict[str, Callable[[Path], None]] = {
        "schema.json": Schema([question]).save,
        "schema.toml": Schema([question]).save,
        "survey.json": partial(save_protocol, protocol=Survey(GRR(99, 1.0), Schema([question]))),
        "other.json": partial(Format("other", {1: {}}).save, values={}),
    }
    for name, save in written.items():
        path = tmp_path / name
        save(path)
        before = path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr("mechdesign.base.files.JSON_BYTES", len(before) - 1)
            with pytest.raises(ValueError, match=f"{len(before)} bytes, more than the"):
                save(path)
            assert path.read_bytes() == before
            patched.setattr("mechdesign.base.files.JSON_BYTES", len(before))
            save(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("protocol", "name", "sizes"),
    [
        (frequency.JLOracle(100, 1.0, rows=8), "rows", (1 << 24) + 1),
        (frequency.HadamardCountMeanSketch(100, 1.0, hashes=4, width=8), "hashes", 5592406),
        (frequency.CountMeanSketch(100, 1.0, hashes=4, width=8), "hashes", 5592406),
        (frequency.heavy.SuccinctHistogram(16, 2.0, n=10**5, hashes=1, channels=4), "hashes", 1025),
        (frequency.heavy.SuccinctHistogram(16, 2.0, n=10**5, rows=64), "rows", (1 << 24) + 1),
        (
            frequency.marginals.InpHTCMS(frequency.marginals.Domain({"a": 3}), 1, 1.0, width=8),
            "hashes",
            5592406,
        ),
    ],
)
def test_a_small_file_makes_no_large_table(protocol, name, sizes, tmp_path, monkeypatch):
    path = tmp_path / "protocol.json"
    save_protocol(path, protocol)

    def shake(text):
        class Sponge:
            def digest(self, size):
                assert size < 1 << 20
                sponge: Any = hashlib.new("shake_256", text)
                return sponge.digest(size)

            def hexdigest(self, size):
                return self.digest(size).hex()

        return Sponge()

    monkeypatch.setattr(hashlib, "shake_256", shake)
    assert load_protocol(path) == protocol
    for size in (sizes, 1 << 26, 1 << 32, 1 << 70):
        rewritten(path, lambda c, size=size: c["arguments"].update({name: size}))
        with pytest.raises(InvalidFile, match=f"{name} must be an integer, 1 to "):
            load_protocol(path)
    # The most that there may be are agreed on before any of them is computed
    rewritten(path, lambda c: c["arguments"].update({name: sizes - 1}))
    with pytest.raises(InvalidFile, match=f"draw reports otherwise.*{name}|too few|over 134217728"):
        load_protocol(path)


def test_what_clients_run_is_made_after_all_is_agreed_on(tmp_path, monkeypatch):
    path = tmp_path / "protocol.json"
    save_protocol(path, HRR(16, 1.0))
    monkeypatch.setattr(HRR, "client", lambda self: pytest.fail("it was made"))
    rewritten(path, lambda c: c["agreed"].update(domain=17))
    with pytest.raises(InvalidFile, match=r"would draw reports otherwise.*domain"):
        load_protocol(path)


def test_arguments_are_those_of_the_file_to_the_type(tmp_path):
    path = tmp_path / "protocol.json"
    protocol = frequency.heavy.SuccinctHistogram(16, 2.0, n=10**5, hashes=1, channels=4)
    for change, message in [
        ({"soft": 1}, "soft must be bool, got 1"),
        ({"text": 0}, "text must be bool, got 0"),
        ({"n": True}, "n must be int, got True"),
        ({"beta": "0.05"}, "beta must be float, got '0.05'"),
        ({"seed": None}, "seed must be int, got None"),
        ({"epsilon": {"fraction": "4/2"}}, "it holds '4/2' where '2' follows from the rest"),
        ({"epsilon": "2.0"}, None),
    ]:
        save_protocol(path, protocol)
        rewritten(path, lambda c, change=change: c["arguments"].update(change))
        if message is None:
            assert load_protocol(path).epsilon == "2.0"
        else:
            with pytest.raises(InvalidFile, match=message):
                load_protocol(path)
    assert load_protocol(path).privacy == protocol.privacy

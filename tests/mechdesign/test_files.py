"""Files: exact round trips, and a reason for every file that is refused."""

from __future__ import annotations

import csv
import json
import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign import (
    CertificateRejected,
    Constraints,
    InvalidFile,
    InvalidMechanism,
    Mechanism,
    MechanismError,
    Privacy,
    PrivacyViolation,
    Property,
    design,
    named,
)
from mechdesign.base import files as strict_json
from mechdesign.base.files import digest_of
from mechdesign.losses import L0, L1, L2, Costs, Power, binomial
from mechdesign.mechanism.device import Device

DESIGNS = {
    "plain": lambda: design(3, Privacy(alpha="9/10"), L0(), ["WH", "CM"]),
    "prior": lambda: design(3, Privacy(alpha="2/3"), L1(prior=binomial(3, "1/4")), ["OR:9/10"]),
    "worst case": lambda: design(
        2, Privacy(alpha="3/4", neighbours=2), Power("1/2", worst_case=True), ["S"]
    ),
    "costs": lambda: design(1, Privacy(alpha="1/2", neighbours=[(0, 1)]), Costs([[0, 3], [1, 0]])),
    "local": lambda: design(3, Privacy(alpha="1/2", neighbours="all")),
    "perfect": lambda: design(2, Privacy(alpha=1), L0(), ["F"]),
    "huge numbers": lambda: design(2, Privacy.from_epsilon(1e-300)),
}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "m.json"
    DESIGNS["plain"]().save(path)
    return path


def resealed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit a file as a forger would, with a digest that fits again."""
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = strict_json.digest_of(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("name", DESIGNS)
def test_round_trip_keeps_table_privacy_and_certificate(name: str, tmp_path: Path) -> None:
    found = DESIGNS[name]()
    path = tmp_path / "m.json"
    found.save(path)
    back = Mechanism.load(path)
    assert back == found.mechanism
    assert back.certificate == found.certificate
    assert back.certificate.verify(back)
    back.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_a_mechanism_without_certificate_round_trips(tmp_path: Path) -> None:
    named.krr(5, alpha="1/3").save(tmp_path / "krr.json")
    assert Mechanism.load(tmp_path / "krr.json") == named.krr(5, alpha="1/3")
    assert Mechanism.load(tmp_path / "krr.json").certificate is None


def test_a_rectangular_mechanism_round_trips(tmp_path: Path) -> None:
    table = Mechanism([["1/2", "1/3"], ["1/4", "1/3"], ["1/4", "1/3"]], Privacy(alpha="2/3"))
    table.save(tmp_path / "r.json")
    assert Mechanism.load(tmp_path / "r.json") == table


def test_numbers_beyond_the_decimal_limit_round_trip(tmp_path: Path) -> None:
    alpha = Fraction(10**5000 - 1, 10**5000)
    mechanism = named.geometric(1, alpha=alpha)
    mechanism.save(tmp_path / "big.json")
    assert Mechanism.load(tmp_path / "big.json") == mechanism


def test_truncation_anywhere_is_refused(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in range(0, len(whole) - 2, 7):
        saved.write_bytes(whole[:length])
        with pytest.raises(InvalidFile):
            Mechanism.load(saved)


def test_every_changed_digit_is_refused(saved: Path) -> None:
    whole = saved.read_text()
    places = [k for k, letter in enumerate(whole) if letter.isdigit()]
    for k in places[:: max(1, len(places) // 200)]:
        saved.write_text(whole[:k] + str((int(whole[k]) + 1) % 10) + whole[k + 1 :])
        with pytest.raises(InvalidFile):
            Mechanism.load(saved)


def test_a_table_that_is_not_private_is_refused_whatever_the_digest(saved: Path) -> None:
    resealed(saved, lambda content: content.update(alpha="99/100"))
    with pytest.raises(PrivacyViolation, match="not private"):
        Mechanism.load(saved)


def test_a_wider_neighbour_relation_than_the_table_keeps_is_refused(saved: Path) -> None:
    resealed(saved, lambda content: content.update(neighbours="all"))
    with pytest.raises(PrivacyViolation):
        Mechanism.load(saved)


def swap_rows(content: dict[str, Any]) -> None:
    content["weights"][0], content["weights"][-1] = content["weights"][-1], content["weights"][0]


@pytest.mark.parametrize(
    ("change", "error", "reason"),
    [
        (lambda c: c["weights"][0].__setitem__(0, "1"), InvalidMechanism, "column 0 sums"),
        (lambda c: c["weights"][0].__setitem__(0, "-1"), InvalidMechanism, "negative"),
        (lambda c: c["weights"].pop(), InvalidMechanism, "sums"),
        (lambda c: c["weights"][0].pop(), InvalidMechanism, "one length"),
        (lambda c: c.update(weights=[]), InvalidMechanism, "at least one"),
        (lambda c: c.update(denominator="0"), InvalidMechanism, "positive"),
        (lambda c: c.update(alpha="0"), InvalidFile, "alpha"),
        (lambda c: c.update(alpha=0.9), InvalidFile, "malformed"),
        (lambda c: c.update(alpha="1/0"), InvalidFile, "denominator"),
        (lambda c: c.update(neighbours="some"), InvalidFile, "neighbours"),
        (lambda c: c.update(neighbours=[[0, 9]]), InvalidFile, "input 9"),
        (lambda c: c.pop("certificate"), InvalidFile, "certificate"),
        (lambda c: c.update(version=2), InvalidFile, "key 'inputs' is missing"),
        (
            lambda c: c.update(version=6),
            InvalidFile,
            "version 6, this library reads version 1, 2, 3, 4, 5",
        ),
        (lambda c: c.update(format="else"), InvalidFile, "not a mechanism file"),
        (lambda c: c["certificate"].update(objective="1/2"), CertificateRejected, "loss is"),
        (lambda c: c["certificate"].update(bound="1/2"), CertificateRejected, "prove the bound"),
        (
            lambda c: c["certificate"]["properties"].append("F"),
            CertificateRejected,
            "lacks the property F",
        ),
        (lambda c: c["certificate"]["properties"].append("XX"), InvalidFile, "unknown property"),
        (lambda c: c["certificate"]["loss"].update(power="2"), CertificateRejected, "loss is"),
        (
            lambda c: c["certificate"]["multipliers"].update(nonsense={"0": "1"}),
            CertificateRejected,
            "no constraints called",
        ),
        (
            lambda c: c["certificate"]["multipliers"]["column sums"].update({"99": "1"}),
            CertificateRejected,
            "constraints",
        ),
        (
            lambda c: c["certificate"]["multipliers"]["column sums"].update({"0": "100"}),
            CertificateRejected,
            "exceed",
        ),
        (
            lambda c: c["certificate"]["multipliers"]["privacy"].update({"0": "-1"}),
            CertificateRejected,
            "negative",
        ),
        (lambda c: c["certificate"].update(multipliers=3), InvalidFile, "malformed"),
        (swap_rows, CertificateRejected, "lacks"),
    ],
)
def test_a_forged_file_is_refused_with_the_reason(
    change: Callable[[dict[str, Any]], None], error: type[Exception], reason: str, saved: Path
) -> None:
    resealed(saved, change)
    with pytest.raises(error, match=reason):
        Mechanism.load(saved)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        "3",
        '{"format": "mechdesign.mechanism"}',
        "[" * 100_000,
        "\x00\xff",
    ],
)
def test_what_is_no_mechanism_file_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(InvalidFile):
        Mechanism.load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(version=1.0),
        lambda c: c.update(version=True),
        lambda c: c.update(comment="harmless"),
        lambda c: c["certificate"].update(comment="harmless"),
        lambda c: c["certificate"]["loss"].update(comment="harmless"),
        lambda c: c["certificate"]["loss"].update(worst_case=0),
        lambda c: c["certificate"]["multipliers"]["column sums"].update({"00": "0"}),
        lambda c: c["certificate"]["multipliers"]["column sums"].update({"+1": "0"}),
        lambda c: c.update(neighbours={"distances": [[0, 1], [1, 0]], "pairs": []}),
    ],
)
def test_what_no_writer_writes_is_refused_even_where_it_is_harmless(
    change: Callable[[dict[str, Any]], None], saved: Path
) -> None:
    resealed(saved, change)
    with pytest.raises(InvalidFile):
        Mechanism.load(saved)


def test_a_key_that_occurs_twice_is_refused_whichever_of_them_the_digest_is_of(
    saved: Path,
) -> None:
    text = saved.read_text()
    for twice in (
        text.replace('"alpha": "9/10"', '"alpha": "99/100",\n "alpha": "9/10"'),
        text.replace('"alpha": "9/10"', '"alpha": "9/10",\n "alpha": "9/10"'),
        text.replace('"prior": null', '"prior": null, "prior": null'),
    ):
        assert twice != text
        saved.write_text(twice)
        with pytest.raises(InvalidFile, match="occurs twice"):
            Mechanism.load(saved)


def test_a_property_of_the_users_own_is_saved_by_name(tmp_path: Path) -> None:
    class Ends(Property):
        short = "FORMATS-ENDS"

        def constraints(self, at: np.ndarray, privacy: Privacy) -> list[Constraints]:
            return [Constraints.equal(at[0, 0], at[-1, -1])]

    found = design(2, Privacy(alpha="2/3"), L1(prior=binomial(2, "1/5")), [Ends])
    found.save(tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json").certificate == found.certificate


def test_a_property_whose_text_forgets_its_parameter_is_not_saved(tmp_path: Path) -> None:
    class Above(Property):
        short = "FORMATS-ABOVE"

        def __init__(self, factor: str = "3/2") -> None:
            self.factor = Fraction(factor)

        def constraints(self, at: np.ndarray, privacy: Privacy) -> list[Constraints]:
            return [Constraints.at_least(at[1], at[0], self.factor)]

    path = tmp_path / "m.json"
    design(2, Privacy(alpha="2/3"), L1(), [Above("3/2")]).save(path)
    loaded = Mechanism.load(path).certificate
    assert loaded is not None
    assert loaded.properties == (Above("3/2"),)
    path.unlink()
    for item in (Above("2"), Above("5/4")):  # the name alone would stand for 3/2
        found = design(2, Privacy(alpha="2/3"), L1(), [item])
        with pytest.raises(ValueError, match="'FORMATS-ABOVE', which stands for other constraints"):
            found.save(path)
        assert not path.exists()
        found.save(tmp_path / "m.csv")  # has no certificate
        Mechanism(found.mechanism.table, found.certificate.privacy).save(path)
        path.unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["certificate"]["properties"].append("NOT-DEFINED"),
        lambda c: c["certificate"].update(bound="1/2"),
        lambda c: c.update(certificate="nonsense"),
    ],
)
def test_a_table_is_read_without_its_certificate_and_never_without_its_privacy(
    change: Callable[[dict[str, Any]], None], saved: Path
) -> None:
    table = Mechanism.load(saved)
    resealed(saved, change)
    with pytest.raises((InvalidFile, CertificateRejected)):
        Mechanism.load(saved)
    found = Mechanism.load(saved, certificate=False)
    assert found == table
    assert found.certificate is None
    resealed(saved, lambda content: content.update(alpha="99/100"))
    with pytest.raises(PrivacyViolation):
        Mechanism.load(saved, certificate=False)
    saved.write_text(saved.read_text().replace("99/100", "9/10"))
    with pytest.raises(InvalidFile, match="digest"):
        Mechanism.load(saved, certificate=False)


def test_an_unprivate_mechanism_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(PrivacyViolation):
        Mechanism([[1, 0], [0, 1]], Privacy(alpha="1/2")).save(tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        named.uniform(2).save(saved)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_files_get_the_usual_permissions(saved: Path) -> None:
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(saved.stat().st_mode) == 0o666 & ~mask


def test_csv_and_npz_are_float_views(tmp_path: Path) -> None:
    mechanism = named.explicit_fair(3, alpha="9/10")
    mechanism.save(tmp_path / "m.csv")
    mechanism.save(tmp_path / "m.npz")
    with (tmp_path / "m.csv").open(newline="") as stream:
        head, *rows = csv.reader(stream)
    assert head == ["output", "input 0", "input 1", "input 2", "input 3"]
    assert [[float(entry) for entry in row[1:]] for row in rows] == mechanism.matrix.tolist()
    with np.load(tmp_path / "m.npz") as arrays:
        assert np.array_equal(arrays["matrix"], mechanism.matrix)
        assert arrays["alpha"] == 0.9
        assert arrays["neighbours"] == "adjacent"


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.json"):
        named.uniform(2).save(tmp_path / "m.xlsx")


def test_threads_may_save_to_one_path(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: named.uniform(n % 3 + 1).save(path), range(60)))
    assert Mechanism.load(path).inputs in (2, 3, 4)
    assert [left.name for left in tmp_path.iterdir()] == ["m.json"]


def test_a_large_table_is_packed_into_few_numbers(tmp_path: Path) -> None:
    """Read back as it was, by the library, by a device and by the checker."""
    path = tmp_path / "m.json"
    for mechanism in (
        design(40, Privacy.from_epsilon(0.5), L0(), ["WH", "CM"]).mechanism,
        design(32, Privacy.from_epsilon(0.5), L2(), ["WH", "CM"]).mechanism,
        Mechanism(named.explicit_fair(60, 0.5).table, Privacy.from_epsilon(0.5)),
    ):
        plain = Mechanism.from_parts(mechanism, None)
        plain.save(path)
        content = json.loads(path.read_text())
        assert content["version"] == 4
        assert len(content["numbers"]) <= 2 * mechanism.inputs
        legible = sum(len(str(weight)) for row in mechanism.weights for weight in row)
        assert path.stat().st_size < legible / 10
        assert Mechanism.load(path) == mechanism
        drawn = Device(str(path))
        columns = [[*accumulate(column)] for column in zip(*mechanism.weights, strict=True)]
        assert drawn.cumulative == columns


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows, numbers: numbers.append("1"), "more numbers"),
        (lambda rows, numbers: numbers.pop(), "no probability"),
        (lambda rows, numbers: rows.append(rows[-1][:-1]), "one length"),
        (lambda rows, numbers: rows.clear(), "one length"),
        (lambda rows, numbers: rows.__setitem__(0, "^" + rows[0][1:]), "refers to no entry"),
        (lambda rows, numbers: rows.__setitem__(0, "o" + rows[0][1:]), "refers to no entry"),
        (lambda rows, numbers: rows.__setitem__(0, "x" + rows[0][1:]), "row of a packed table"),
        (lambda rows, numbers: rows.__setitem__(3, rows[3][0] + "<" * 60), "no probability|sums"),
        (lambda rows, numbers: numbers.__setitem__(0, "-1"), "no probability"),
        (lambda rows, numbers: numbers.__setitem__(0, "7"), "no probability|sums"),
    ],
)
def test_a_packed_table_that_lies_is_refused(change: Any, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    Mechanism(named.explicit_fair(60, 0.5).table, Privacy.from_epsilon(0.5)).save(path)
    content = json.loads(path.read_text())
    change(content["rows"], content["numbers"])
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(MechanismError, match=reason):
        Mechanism.load(path)
    with pytest.raises(ValueError, match=r"."):
        Device(str(path))


def test_a_short_file_may_not_be_made_into_hours_of_work(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    Mechanism(named.explicit_fair(60, 0.5).table, Privacy.from_epsilon(0.5)).save(path)
    content = json.loads(path.read_text())
    content["rows"] = ["#" + "=" * 2999] * 3000
    content["denominator"] = "1" + "0" * 4000
    content["inputs"] = content["outputs"] = {"counts": [0, 2999]}
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidFile, match="too long"):
        Mechanism.load(path)

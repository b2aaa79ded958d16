"""Designs on disk: found again, checked whenever they are read, and never in the way."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from mechdesign import Constraints, Mechanism, Privacy, design, named
from mechdesign.base.files import digest_of
from mechdesign.losses import L1, L2, Costs
from mechdesign.properties import Property
from mechdesign.tables import DesignCache, design_cache

PRIVACY = Privacy(alpha="1/2")
WEAK = Privacy(alpha="9/10")  # where neither GM nor EM is the best weakly honest mechanism
HONEST = ["WH"]


@pytest.fixture
def cache(tmp_path: Path) -> DesignCache:
    return DesignCache(tmp_path / "designs")


@pytest.fixture
def only_files(monkeypatch: pytest.MonkeyPatch):
    """From when it is called on, nothing is designed."""

    def forbid() -> None:
        def fail(*arguments):
            raise AssertionError("designed anew")

        monkeypatch.setattr(design_cache, "design", fail)

    return forbid


def one_file(cache: DesignCache) -> Path:
    (path,) = cache.folder.iterdir()
    return path


def test_a_design_is_found_again(cache, only_files) -> None:
    first = cache.mechanism(4, PRIVACY, properties=["WH", "CM"])
    assert first == design(4, PRIVACY, properties=["WH", "CM"]).mechanism
    only_files()
    assert cache.mechanism(4, PRIVACY, properties=["WH", "CM"]) == first
    assert DesignCache(cache.folder).mechanism(4, PRIVACY, properties=("WH", "CM")) == first


def test_certificates_are_for_those_who_ask(cache) -> None:
    for asked in ((3, PRIVACY), (3, WEAK, None, HONEST)):
        assert cache.mechanism(*asked).certificate is None
        proved = cache.mechanism(*asked, certificate=True)
        assert proved.certificate is not None
        assert proved.certificate.verify(proved)
        assert cache.mechanism(*asked, certificate=True).certificate.optimal


@pytest.mark.parametrize(
    "asked",
    [
        (3, WEAK, None, HONEST),
        (2, Privacy(alpha="8/9"), None, HONEST),
        (2, Privacy(alpha="9/10", neighbours="all"), None, HONEST),
        (2, Privacy(alpha="9/10", neighbours=2), None, HONEST),
        (2, WEAK, L1(), HONEST),
        (2, WEAK, L2(1), HONEST),
        (2, WEAK, L2(prior=["1/2", "1/4", "1/4"]), HONEST),
        (2, WEAK, L2(worst_case=True), HONEST),
        (2, WEAK, Costs([[0, 1, 2], [1, 0, 1], [2, 1, 1]]), HONEST),
        (2, WEAK, None, ["CH"]),
        (2, WEAK, None, ["OR:1/2"]),
    ],
)
def test_other_requests_have_other_files(asked, cache) -> None:
    cache.mechanism(2, WEAK, properties=HONEST)
    found = cache.mechanism(*asked)
    assert len([*cache.folder.iterdir()]) == 2
    assert found == design(*asked).mechanism


def test_what_theory_knows_needs_no_file(cache, only_files) -> None:
    only_files()
    for n in (1, 8, 10**6):
        found = cache.mechanism(n, PRIVACY, properties=["WH"])
        assert found == named.geometric(n, PRIVACY)
        assert found.certificate is None
    proof = cache.mechanism(10**6, PRIVACY, properties=["WH"], certificate=True).certificate
    assert proof.optimal
    assert not cache.folder.exists()


def test_a_property_that_was_changed_has_another_file(cache) -> None:
    class Often(Property):
        short = "CHANGED"
        chance = "3/4"

        def constraints(self, at, privacy):
            yield Constraints.at_least_value(at[0, 0], self.chance)

    for chance in ("3/4", "4/5"):
        Often.chance = chance
        found = cache.mechanism(2, PRIVACY, L2(), [Often()])
        assert found.table[0][0] == Fraction(chance)
    assert len([*cache.folder.iterdir()]) == 2


def altered(path: Path, change) -> None:
    content = json.loads(path.read_text())
    change(content)
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))


def test_a_file_that_lies_is_replaced(cache) -> None:
    right = cache.mechanism(2, WEAK, properties=HONEST)
    path = one_file(cache)
    whole = path.read_bytes()
    named.geometric(3, alpha="1/2").save(cache.folder / "other.json")
    other = (cache.folder / "other.json").read_bytes()
    without_property = Mechanism(
        [["1/4", "1/4", "1/4"], ["1/4", "1/4", "1/4"], ["1/2", "1/2", "1/2"]], WEAK
    )
    without_property.save(cache.folder / "other.json")
    lacking = (cache.folder / "other.json").read_bytes()
    (cache.folder / "other.json").unlink()
    for wrong in (
        b"",
        whole[:-9],
        whole.replace(b'"alpha"', b'"alfa"'),
        b"\x00\xff",
        other,
        lacking,
    ):
        path.write_bytes(wrong)
        assert cache.mechanism(2, WEAK, properties=HONEST) == right
        assert path.read_bytes() == whole


def test_a_file_that_is_not_private_is_replaced(cache) -> None:
    right = cache.mechanism(1, WEAK, L1())
    path = one_file(cache)
    whole = path.read_bytes()

    def leak(content):
        content["weights"], content["denominator"] = [["9", "1"], ["1", "9"]], "10"
        content["certificate"] = None

    altered(path, leak)
    assert cache.mechanism(1, WEAK, L1()) == right
    assert path.read_bytes() == whole
    altered(path, lambda content: content.update(alpha="1/9"))  # private, but not as asked for
    assert cache.mechanism(1, WEAK, L1()) == right
    assert path.read_bytes() == whole


def test_a_certificate_of_something_else_is_replaced(cache) -> None:
    right = cache.mechanism(2, WEAK, properties=HONEST, certificate=True)
    path = one_file(cache)
    design(2, WEAK, L1()).mechanism.save(path)
    assert (
        cache.mechanism(2, WEAK, properties=HONEST, certificate=True).certificate
        == right.certificate
    )


@pytest.mark.parametrize("certificate", [False, True])
def test_a_folder_that_cannot_be_used_only_costs_time(certificate, tmp_path) -> None:
    (tmp_path / "file").write_text("not a folder")
    cache = DesignCache(tmp_path / "file" / "designs")
    found = cache.mechanism(2, PRIVACY, certificate=certificate)
    assert found == design(2, PRIVACY).mechanism


def test_an_interrupted_write_leaves_no_design(cache, monkeypatch) -> None:
    def interrupted(self, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache.mechanism(2, WEAK, properties=HONEST)
    assert [*cache.folder.iterdir()] == []
    # One that was killed leaves a part, which nobody reads.
    (cache.folder / ".abc.json.0123.part").write_text("{")
    found = cache.mechanism(2, WEAK, properties=HONEST)
    assert found == design(2, WEAK, properties=HONEST).mechanism


def test_a_full_disk_only_costs_time(cache, full_disk) -> None:
    with full_disk():
        found = cache.mechanism(2, WEAK, properties=HONEST)
    assert found == design(2, WEAK, properties=HONEST).mechanism
    assert [*cache.folder.iterdir()] == []


def test_an_interrupted_design_leaves_nothing(cache, monkeypatch) -> None:
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(design_cache, "design", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cache.mechanism(2, WEAK, properties=HONEST)
    assert not cache.folder.exists()


@pytest.mark.parametrize("neighbours", [[(0, 1)], [(0, 1), (1, 2)]])
def test_neighbours_that_fit_one_size_only_are_refused(neighbours, cache) -> None:
    with pytest.raises(ValueError, match="fit groups of any size"):
        cache.mechanism(2, Privacy(alpha="1/2", neighbours=neighbours))


def test_the_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("MECHDESIGN_CACHE", str(tmp_path / "own"))
    assert DesignCache().folder == tmp_path / "own"
    monkeypatch.delenv("MECHDESIGN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    for system, folder in (("linux", "xdg"), ("win32", "local")):
        monkeypatch.setattr(sys, "platform", system)
        assert DesignCache().folder == tmp_path / folder / "mechdesign"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert DesignCache().folder == Path.home() / "Library" / "Caches" / "mechdesign"
    assert DesignCache(tmp_path).folder == tmp_path


@pytest.mark.slow
def test_processes_share_a_folder(tmp_path) -> None:
    program = (
        "import sys\n"
        "from mechdesign import Privacy\n"
        "from mechdesign.tables import DesignCache\n"
        "cache = DesignCache(sys.argv[1])\n"
        "privacy = Privacy(alpha='9/10')\n"
        "for turn in range(3):\n"
        "    for n in range(7):\n"
        "        print(hash(cache.mechanism(n, privacy, properties=['WH']).weights))\n"
    )
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    first, *others = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len(first.split()) == 21
    assert others == [first, first]
    assert len([*tmp_path.iterdir()]) == 5  # of 0 and 1 theory knows all

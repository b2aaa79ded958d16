"""The standard-library sampler: the same distribution as the library's, exactly, and no package
needed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechdesign import Mechanism, MechanismError, Metric, Privacy, named
from mechdesign.base.files import digest_of
from mechdesign.mechanism import device
from mechdesign.noise.sampling import Sampler
from tests.mechdesign.relations import RELATIONS
from tests.tape import Tape


def listed(mechanism: Mechanism) -> Mechanism:
    """The table of a closed form."""
    return Mechanism(mechanism.table, mechanism.privacy)


TABLES = {
    "GM": listed(named.geometric(3, alpha="1/2")),
    "EM": listed(named.explicit_fair(4, alpha="2/3")),
    "GRR": named.krr(4, alpha="1/3"),
    "zeros": Mechanism(
        [["1/2", "1/2"], [0, 0], ["1/2", "1/2"]], Privacy(alpha="1/5", neighbours=[(0, 1)])
    ),
}


def threshold(sampler: Sampler, column: int, output: int) -> Fraction:
    """The probability of an answer below ``output``, found by bisection on what the library draws
    from a given U.
    """
    low, high, bits = 0, 1 << 24, 24
    while low < high:  # the least U = middle / 2**24 whose answer is at least ``output``
        middle = (low + high) // 2
        # The words that follow are zero, so that U is exactly this number.
        tape = Tape([middle << (64 - bits), *[0] * 10])
        (answer,) = sampler.outputs(np.array([column]), tape)
        low, high = (low, middle) if answer >= output else (middle + 1, high)
    return Fraction(low, 1 << bits)


@pytest.mark.parametrize("name", TABLES)
def test_device_has_exactly_the_distribution_of_the_table(name: str, tmp_path: Path) -> None:
    mechanism = TABLES[name]
    mechanism.save(tmp_path / "m.json")
    residues = iter(())
    drawn = device.Device(str(tmp_path / "m.json"), below=lambda bound: next(residues))
    for j in range(mechanism.inputs):
        # Every value that a uniform integer below the denominator can take, once: relative
        # frequencies are probabilities.
        residues = iter(range(drawn.denominator))
        answers = [drawn.release(j) for _ in range(drawn.denominator)]
        law = [Fraction(answers.count(i), drawn.denominator) for i in range(mechanism.outputs)]
        assert law == [row[j] for row in mechanism.table]


@pytest.mark.parametrize("name", TABLES)
def test_the_library_and_the_device_share_their_distribution(name: str, tmp_path: Path) -> None:
    """Both map U in [0, 1) to outputs by thresholds; the library's are, to the resolution probed,
    the device's own.
    """
    mechanism = TABLES[name]
    mechanism.save(tmp_path / "m.json")
    drawn = device.Device(str(tmp_path / "m.json"))
    sampler = mechanism.sampler
    for j in range(mechanism.inputs):
        for output in range(1, mechanism.outputs):
            exact = Fraction(drawn.cumulative[j][output - 1], drawn.denominator)
            assert exact <= threshold(sampler, j, output) < exact + Fraction(1, 1 << 24)


def test_it_runs_without_any_package(tmp_path: Path) -> None:
    listed(named.uniform(3)).save(tmp_path / "m.json")
    program = Path(device.__file__).read_text()
    (tmp_path / "device.py").write_text(program)
    # -I -S: no site-packages, no environment; an import of numpy would fail.
    run = subprocess.run(
        [sys.executable, "-I", "-S", "device.py", "m.json", "0", "1", "3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(0 <= int(answer) <= 3 for answer in run.stdout.split())
    assert len(run.stdout.split()) == 3


@pytest.mark.parametrize("wrong", [-1, 4, 1.0, True, "1", None])
def test_a_count_out_of_range_is_refused(wrong: object, tmp_path: Path) -> None:
    listed(named.uniform(3)).save(tmp_path / "m.json")
    with pytest.raises(ValueError, match="between 0 and 3"):
        device.Device(str(tmp_path / "m.json")).release(wrong)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("alpha", "99/100", "not private"),
        ("neighbours", "all", "not private"),
        ("neighbours", 2, "not private"),
        ("neighbours", [[0, 3]], "not private"),
        ("denominator", "5", "probability"),
        ("weights", [], "probability"),
        ("alpha", "0", "alpha"),
        ("version", 7, "version"),
    ],
)
def test_a_file_that_lies_is_refused(key: str, value: object, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    listed(named.geometric(3, alpha="1/2")).save(path)
    content = json.loads(path.read_text())
    content[key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"digest|version"):
        device.Device(str(path))
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=reason):
        device.Device(str(path))


def test_it_agrees_on_which_neighbours_there_are() -> None:
    for neighbours in ("adjacent", "all", 2, ((0, 2), (1, 3))):
        described = (
            [list(pair) for pair in neighbours] if isinstance(neighbours, tuple) else neighbours
        )
        library = {
            tuple(pair) for pair in Privacy(alpha="1/2", neighbours=neighbours).pairs(4).tolist()
        }
        assert set(device._neighbours(described, 4)) == library


@pytest.mark.parametrize(
    ("arguments", "stdin", "code"),
    [
        (["m.json"], "0 1\n3\n", 0),
        ([], "", 2),
        (["m.json", "4"], "", 2),
        (["absent.json", "1"], "", 2),
    ],
)
def test_the_program_reads_counts_and_reports_errors_in_a_line(
    arguments: list[str], stdin: str, code: int, tmp_path: Path
) -> None:
    listed(named.uniform(3)).save(tmp_path / "m.json")
    command = [sys.executable, "-I", "-S", device.__file__, *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, input=stdin, capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert len(done.stdout.split()) == (3 if code == 0 else 0)
    assert done.stderr.count("\n") == (0 if code == 0 else 1)


FORGERIES: dict[str, list[Any]] = {
    "neighbours": [
        *(0, -5, False, True, 1.0, None, {}, "x", []),
        *([[0, 0]], [[-1, 0]], [[0, 9]], [[0]], [0]),
    ],
    "alpha": ["-1/-2", "1/0", "0b1", " 1/2", "2", 0.5, None],
    "denominator": ["0", "-8", "1_6", 16],
    "weights": [[], [[]], "x", [["0"] * 4] * 4, [[1]], None],
}


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in FORGERIES.items() for value in values]
)
def test_the_device_and_the_library_refuse_the_same_forgeries(
    key: str, value: object, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    listed(named.geometric(3, alpha="1/2")).save(path)
    content = json.loads(path.read_text())
    content[key] = value
    content["digest"] = digest_of(content)
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"."):
        device.Device(str(path))
    with pytest.raises(MechanismError):
        Mechanism.load(path)


@pytest.mark.parametrize("content", ["[]", "null", "[" * 5000, "{}", '{"format": 1}'])
def test_what_is_no_mechanism_file_is_a_value_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(ValueError, match=r"."):
        device.Device(str(tmp_path / "m.json"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"alpha": "1/2"', '"alpha": "99/100", "alpha": "1/2"'),
        ('"alpha": "1/2"', '"alpha": "1/2", "comment": "harmless"'),
        ('"version": 1', '"version": 1.0'),
        ('"version": 1', '"version": true'),
        ('"certificate": null', '"certificate": {"a": 1, "a": 1}'),
        ('"certificate": null', '"certificate": NaN'),
    ],
)
def test_a_file_with_more_than_one_reading_is_refused(old: str, new: str, tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    listed(named.geometric(3, alpha="1/2")).save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    content = json.loads(path.read_text())
    path.write_text(path.read_text().replace(content["digest"], digest_of(content)))
    with pytest.raises(ValueError, match=r"twice|version 1|keys|not in a mechanism file"):
        device.Device(str(path))
    with pytest.raises(MechanismError):
        Mechanism.load(path)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_device_has_the_librarys_distances(relation):
    privacy = Privacy(alpha="1/2", neighbours=RELATIONS[relation](4))
    neighbours = privacy.neighbours
    described = (
        {"distances": neighbours.distances} if isinstance(neighbours, Metric) else neighbours
    )
    library = {
        (*pair, d)
        for pair, d in zip(privacy.pairs(5).tolist(), privacy.distances(5).tolist(), strict=True)
    }
    assert set(device._distances(json.loads(json.dumps(described)), 5)) == library

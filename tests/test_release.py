"""What is published: versions, licence, citation, the files of the packages, and the releases that
they run with.
"""

from __future__ import annotations

import importlib
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import mechdesign

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = PROJECT["version"]
OLDEST = ROOT / "tools" / "oldest.py"


def test_one_version_everywhere() -> None:
    assert mechdesign.__version__ == VERSION
    patterns = {
        "CITATION.cff": r"^version: (.*)$",
        "CHANGELOG.md": r"^## \[?([\d.]+)",
        "docs/citing.md": r"^  version = \{(.*)\},",
        "clients/javascript/package.json": r'^  "version": "(.*)",$',
    }
    for file, pattern in patterns.items():
        found = re.search(pattern, (ROOT / file).read_text(), re.MULTILINE)
        assert found is not None
        assert found[1] == VERSION


def test_one_date_of_the_release_everywhere() -> None:
    told = re.search(r"^date-released: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert told is not None
    assert f"## [{VERSION}] - {told[1]}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["-m", "mechdesign"], ["-c", "import sys; from mechdesign.cli import main; sys.exit(main())"]],
)
def test_the_command_line_says_which_version_it_is(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, *command, "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"mechdesign {VERSION}\n"


def test_the_licence_is_the_one_named() -> None:
    assert PROJECT["license"] == "Apache-2.0"
    (name,) = PROJECT["license-files"]
    text = " ".join((ROOT / name).read_text().split())
    assert text.startswith("Apache License Version 2.0, January 2004")
    assert "9. Accepting Warranty or Additional Liability." in text
    assert "license: Apache-2.0" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("package", ["mechdesign", "frequency", "rangeq"])
def test_packages_are_typed_and_every_folder_of_modules_is_one(package: str) -> None:
    folder = Path(importlib.import_module(package).__file__).parent
    assert (folder / "py.typed").is_file()
    for module in folder.rglob("*.py"):
        assert (module.parent / "__init__.py").is_file(), (
            f"{module} is in no package, so it would not be published"
        )


def test_the_oldest_releases_are_those_of_every_requirement() -> None:
    printed = subprocess.run(
        [sys.executable, OLDEST], capture_output=True, text=True, check=True
    ).stdout
    pinned = {
        requirement.name: requirement for requirement in map(Requirement, printed.splitlines())
    }
    every = [
        *PROJECT["dependencies"],
        *(item for extra in PROJECT["optional-dependencies"].values() for item in extra),
    ]
    asked = [item for item in map(Requirement, every) if item.name != PROJECT["name"]]
    assert set(pinned) == {item.name for item in asked}
    for item in asked:
        (pin,) = pinned[item.name].specifier
        assert pin.operator == "=="
        assert item.specifier.contains(pin.version)


@pytest.mark.parametrize("requirement", ["numpy", "numpy<3", "numpy==2.0", "numpy>=2.0,>=2.1"])
def test_a_requirement_without_one_lower_bound_is_refused(requirement: str) -> None:
    with pytest.raises(ValueError, match=r"numpy.* has no lower bound, or several"):
        runpy.run_path(str(OLDEST))["oldest"]([requirement], "here")


def test_names_are_compared_as_the_registry_does_and_the_higher_bound_counts() -> None:
    found = runpy.run_path(str(OLDEST))["oldest"](
        ["Some_Name[extra]>=1.9", "some-name>=1.10,!=1.11", "here[test]"], "Here"
    )
    assert {name: str(version) for name, version in found.items()} == {"some-name": "1.10"}

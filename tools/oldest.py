"""The oldest releases that pyproject.toml allows, as constraints for pip.

    python tools/oldest.py > oldest.txt

Every requirement, those of the extras too, is at its lower bound; of two bounds on one project the
higher counts.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


def oldest(requirements: Iterable[str], own: str) -> dict[str, Version]:
    """The lower bound of the requirement of each project.

    Requirements on ``own``, the project itself, are left out.

    Raises
    ------
    ValueError
        A requirement without a single lower bound, which would let any old release in.

    >>> dask = "Dask[dataframe]>=2024.8.0,!=2024.9.0"
    >>> oldest(["numpy>=2.0", dask, "numpy>=2.1", "here[extra]"], "here")
    {'numpy': <Version('2.1')>, 'dask': <Version('2024.8.0')>}
    """
    found: dict[str, Version] = {}
    for requirement in map(Requirement, requirements):
        name = canonicalize_name(requirement.name)
        if name == canonicalize_name(own):
            continue
        bounds = [Version(item.version) for item in requirement.specifier if item.operator == ">="]
        if len(bounds) != 1:
            raise ValueError(f"{requirement} has no lower bound, or several: write {name}>=...")
        found[name] = max(found.get(name, bounds[0]), bounds[0])
    return found


def main() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())[
        "project"
    ]
    extras = project["optional-dependencies"].values()
    every = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    for name, version in oldest(every, project["name"]).items():
        sys.stdout.write(f"{name}=={version}\n")


if __name__ == "__main__":
    main()

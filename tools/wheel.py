"""Build the wheel that would be published, and run the tests against it as installed.

The source distribution is built, the wheel from it, and the wheel is installed twice: with the
oldest releases that pyproject.toml allows of everything that the tests need (which exist for Python
3.11 and 3.12 only), and with the newest. The tests run in a copy of the checkout that has no
packages in it, so that they cannot find any but the installed ones.

    python tools/wheel.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).parent.parent
PACKAGES = ("mechdesign", "frequency", "rangeq")
QUICK = (
    "tests/test_imports.py",
    "tests/test_release.py",
    "tests/mechdesign/cli",
    "tests/mechdesign/test_device.py",
    "tests/mechdesign/test_files.py",
    "tests/frequency/core/test_aggregate.py",
    "tests/frequency/core/test_channel.py",
    "tests/frequency/core/test_vectors.py",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="some of the tests: a minute or two, mostly of installing",
    )
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory(prefix="wheel-") as name:
        folder = Path(name)
        _run(sys.executable, "-m", "build", "--outdir", folder / "dist", ROOT)
        (wheel,) = (folder / "dist").glob("*.whl")
        _complete(wheel)
        checkout = _copied(folder / "checkout")
        oldest = folder / "oldest.txt"
        oldest.write_text(
            subprocess.run(
                [sys.executable, ROOT / "tools" / "oldest.py"], check=True, text=True, stdout=-1
            ).stdout
        )
        for age, extras, options in (
            # Not mbi: what it needs has no upper bounds, and soon wants newer releases than ours
            ("oldest", "test", ["--constraint", oldest]),
            ("newest", "test,mbi", ["--upgrade"]),
        ):
            python = folder / age / "bin" / "python"
            _run(sys.executable, "-m", "venv", folder / age)
            _run(python, "-m", "pip", "install", "--quiet", *options, f"{wheel}[{extras}]")
            print(f"\nthe tests, with the {age} releases", flush=True)
            _run(python, "-c", _INSTALLED.format(PACKAGES, str(folder / age)), cwd=checkout)
            _run(
                python,
                "-m",
                "pytest",
                "-n",
                "auto",
                *(QUICK if quick else ["-m", "", "tests"]),  # all of them: the slow ones too
                "--pyargs",
                *PACKAGES,
                cwd=checkout,
            )


_INSTALLED = """
import importlib
for name in {0}:
    where = importlib.import_module(name).__file__
    assert where.startswith({1!r}), f"{{where}} is not the installed package"
"""


def _run(*command: str | Path, cwd: Path = ROOT) -> None:
    # Without what would make Python look elsewhere.
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME")
    }
    subprocess.run(command, cwd=cwd, env=environment, check=True)


def _sources() -> list[str]:
    """The files of the checkout that are, or will be, kept."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        text=True,
        stdout=-1,
    ).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def _complete(wheel: Path) -> None:
    """Whether the wheel has every file of the packages, and nothing else."""
    found = {name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name}
    expected = {name for name in _sources() if name.split("/")[0] in PACKAGES}
    if found != expected:
        sys.exit(
            f"{wheel.name} lacks {sorted(expected - found)} and has too many"
            f" {sorted(found - expected)}"
        )


def _copied(target: Path) -> Path:
    for name in _sources():
        if name.split("/")[0] not in PACKAGES:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)
    return target


if __name__ == "__main__":
    main()

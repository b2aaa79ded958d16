"""Talking with a process by lines."""

from __future__ import annotations

from subprocess import Popen


def tell(run: Popen[str], line: str) -> None:
    """Write a line to the process."""
    assert run.stdin is not None
    run.stdin.write(line + "\n")
    run.stdin.flush()


def heard(run: Popen[str]) -> str:
    """The next line of the process, without its end."""
    assert run.stdout is not None
    return run.stdout.readline().removesuffix("\n")

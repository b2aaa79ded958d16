"""The command line."""

from mechdesign.cli.program import main

__all__ = ["main"]

"""The progress of a long computation, on standard error."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self

from mechdesign.base.text import printable

_REDRAWN, _WRITTEN = 0.2, 5.0
"""Seconds after which a bar is drawn anew, and a line is written."""

_PERCENTAGE = "{desc}: {percentage:.0f}%{postfix} [{elapsed}<{remaining}]"
_STEPS, _NO_STEPS = "{desc}: {n_fmt} {unit}{postfix} [{elapsed}]", "{desc}{postfix} [{elapsed}]"


class ProgressMeter:
    """A bar on a terminal, a line every few seconds elsewhere. A context manager.

    It is redrawn at regular times, also when the computation reports nothing. A computation
    that ends within seconds writes no line.

    Parameters
    ----------
    description : str
        What is done.
    total : int, optional
        Steps in all, where they are known.
    unit : str, default ""
        The name of a step, such as "rows"; "B" for bytes. Without it and ``total`` steps are not
        shown.
    shown : bool, default True
        False: nothing is written.
    """

    def __init__(
        self, description: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        self._description, self._total, self._unit = description, total, unit
        self._steps, self._text, self._began = 0, "", time.monotonic()
        self._watch = threading.Thread(target=self._report, daemon=True) if shown else None
        self._done = threading.Event()

    def __enter__(self) -> Self:
        if self._watch is not None:
            self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._watch is not None:
            self._watch.join()

    def update(self, steps: int = 1) -> None:
        """Report that so many more steps are done."""
        self._steps += steps

    def say(self, text: str) -> None:
        """Set the text that says what is going on; calls are cheap."""
        self._text = text

    def _report(self) -> None:
        if not sys.stderr.isatty():
            while not self._done.wait(_WRITTEN):
                print(self._line(terminal=False), file=sys.stderr, flush=True)
            return
        width = 0
        while not self._done.wait(_REDRAWN):
            line = self._line(terminal=True)
            print(f"\r{line:{width}}", end="", file=sys.stderr, flush=True)
            width = len(line)
        print(end="\r" + " " * width + "\r" if width else "", file=sys.stderr, flush=True)

    def _line(self, terminal: bool) -> str:
        from tqdm import tqdm  # imported here: quick computations do not need it

        if self._total is not None:
            layout = "{l_bar}{bar}{r_bar}" if terminal else _PERCENTAGE
        else:
            layout = _STEPS if self._unit else _NO_STEPS
        return tqdm.format_meter(
            self._steps,
            self._total or 0,
            time.monotonic() - self._began,
            ncols=shutil.get_terminal_size().columns - 1 if terminal else None,
            prefix=printable(self._description),
            unit=self._unit,
            unit_scale=self._unit == "B",
            bar_format=layout,
            postfix=printable(self._text),
        )

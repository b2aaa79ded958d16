"""How far a long computation is, on standard error."""

from __future__ import annotations

import math
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self

if TYPE_CHECKING:
    from tqdm import tqdm

_REDRAWN, _WRITTEN = 0.2, 5.0
"""Seconds after which a bar is drawn anew, and a line is written."""


class ProgressMeter:
    """A bar on a terminal, a line every few seconds elsewhere. A context manager.

    It looks at the clock by itself: also what reports nothing for long is seen to go on. What is
    done within seconds writes no line.

    Parameters
    ----------
    description
        What is done.
    total
        Steps in all, where they are known.
    unit
        The name of a step, such as "rows"; "B" for bytes. Without it and ``total`` steps are not shown.
    shown
        False: nothing is.
    """

    def __init__(
        self, description: str, total: int | None = None, unit: str = "", *, shown: bool = True
    ) -> None:
        self._description, self._total, self._unit, self._shown = description, total, unit, shown
        self._bar: tqdm[Never] | None = None
        self._done = threading.Event()

    def __enter__(self) -> Self:
        if self._shown:
            from tqdm import tqdm  # here, as importing the packages does not need it

            terminal = sys.stderr.isatty()
            self._bar = tqdm(
                desc=self._description,
                total=self._total,
                unit=self._unit,
                unit_scale=self._unit == "B",
                bar_format=self._layout(terminal),
                delay=0 if terminal else math.inf,  # it never writes by itself
                leave=False,
            )
            self._watch = threading.Thread(
                target=self._redraw if terminal else self._write, args=(self._bar,), daemon=True
            )
            self._watch.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._done.set()
            self._watch.join()
            self._bar.close()

    def update(self, steps: int = 1) -> None:
        """So many more steps are done."""
        if self._bar is not None:
            self._bar.update(steps)

    def say(self, text: str) -> None:
        """What is going on; may be called as often as one likes."""
        if self._bar is not None:
            self._bar.set_postfix_str(text, refresh=False)

    def _layout(self, terminal: bool) -> str:
        if self._total is not None:
            bar, percentage = "{l_bar}{bar}{r_bar}", "{desc}: {percentage:.0f}%"
            return bar if terminal else percentage + " [{elapsed}<{remaining}{postfix}]"
        return (
            "{desc}: {n_fmt} {unit}{postfix} [{elapsed}]"
            if self._unit
            else "{desc}{postfix} [{elapsed}]"
        )

    def _redraw(self, bar: tqdm[Never]) -> None:
        while not self._done.wait(_REDRAWN):
            bar.refresh()

    def _write(self, bar: tqdm[Never]) -> None:
        while not self._done.wait(_WRITTEN):
            print(bar, file=sys.stderr, flush=True)

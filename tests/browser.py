"""A headless Chromium, driven through a pipe: what a page shows to a person, and what it sends."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
"""Where it is installed; None if it is not."""

FLAGS = (
    "--headless",
    "--no-sandbox",  # which root cannot have
    "--disable-gpu",
    "--hide-scrollbars",  # pictures are as wide as was asked
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-pipe",
)


class Pipe:
    """Messages to a browser and from it, which all of its tabs share."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing, self._number, self._rest = reading, writing, 0, b""

    def send(self, message: dict[str, Any]) -> int:
        """The number by which its answer is known."""
        self._number += 1
        message["id"] = self._number
        os.write(self._writing, json.dumps(message).encode() + b"\0")
        return self._number

    def message(self, seconds: float = 120.0) -> Any:
        """The next one."""
        while b"\0" not in self._rest:
            if not select.select([self._reading], [], [], seconds)[0]:
                raise TimeoutError(f"Chromium said nothing for {seconds} seconds")
            part = os.read(self._reading, 1 << 20)
            if not part:
                raise EOFError("Chromium has ended")
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)


class Browser:
    """One tab: made by `browser`, or another one of the same browser."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe
        self._session: str | None = None
        self.errors: list[str] = []
        """What came to the console."""
        self._target = self.command("Target.createTarget", url="about:blank")["targetId"]
        made = self.command("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = made["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.command(f"{domain}.enable")

    def command(self, method: str, **given: Any) -> Any:
        """What the browser answers to a command of its DevTools protocol."""
        message = {"method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        number = self.pipe.send(message)
        while True:
            answer = self.pipe.message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.errors.append(json.dumps(answer["params"]))

    def close(self) -> None:
        """End this tab."""
        self.command("Target.closeTarget", targetId=self._target)

    def open(self, address: str) -> None:
        """Go to a page."""
        self.command("Page.navigate", url=address)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.command(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait(self, script: str, seconds: float = 90.0) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + seconds
        while not (found := self.run(script)):
            if time.monotonic() > end:
                raise TimeoutError(f"not within {seconds} seconds: {script}\n{self.text()}")
            time.sleep(0.05)
        return found

    def text(self) -> str:
        """What a person can read."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def press(self, key: str, text: str = "") -> None:
        """Press a key, such as "Tab", where the focus is."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowDown": 40}
        given = {
            "key": key,
            "windowsVirtualKeyCode": codes[key],
            **({"text": text} if text else {}),
        }
        self.command("Input.dispatchKeyEvent", type="keyDown", **given)
        self.command("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Write where the focus is."""
        self.command("Input.insertText", text=text)

    def look(self, path: Path, width: int, dark: bool = False) -> None:
        """A picture of the whole page, of this width."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", features=[scheme])
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        shot = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A Chromium of its own, with an empty profile."""
    assert CHROMIUM is not None
    to_it, writing = os.pipe()
    reading, from_it = os.pipe()
    # It reads from 3 and writes to 4, which may be anything here
    ends = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (to_it, from_it)]
    shell = f'exec "$0" "$@" 3<&{ends[0]} 4>&{ends[1]}'
    run = subprocess.Popen(
        ["bash", "-c", shell, CHROMIUM, *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=ends,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    for file in (to_it, from_it, *ends):
        os.close(file)
    try:
        yield Browser(Pipe(reading, writing))
    finally:
        os.killpg(run.pid, signal.SIGKILL)  # with all of its processes
        run.wait()
        os.close(reading)
        os.close(writing)

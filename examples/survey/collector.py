"""Collect reports over HTTP: a reference to copy, with report_log.py, for one machine.

    python collector.py protocol.json reports/ --page page/
    mechdesign collect reports/ --protocol protocol.json --out survey.agg

POST /reports takes one report (its bytes as application/octet-stream, or base64 as text/plain) or
a batch (application/octet-stream), and a header ``Idempotency-Key``, 1 to 64 of A-Z a-z 0-9 . _ -
that a client draws once and sends again whenever it tries again. The answer 200 means that the
reports are on disk, each key once; 4xx that they never will be, and why; 5xx, or none, that the
same request should be sent again. A batch is known by its own id, too, whatever key it comes with.
Addresses of clients are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import re
import resource
from collections import Counter
from pathlib import Path
from typing import Any, cast

import uvicorn
from filelock import Timeout
from report_log import KeyTaken, NotStored, ReportLog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from uvicorn.protocols.http.h11_impl import H11Protocol

from frequency.core.protocol import channel_of
from frequency.storage import load_protocol

KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")
MOST, REPORTS, SECONDS = 1 << 20, 10_000, 30
"""How many bytes and reports a request may have, and how long a client may keep waiting."""
CONNECTIONS = 1000
"""How many there may be at a time."""


class Connection(H11Protocol):
    """A connection that does not keep others out while its client is what it waits for.

    It ends if a request does not begin within `SECONDS`, or the client does not read the answer.
    Where there are too many, the one ends whose client has kept waiting longest.
    """

    most = CONNECTIONS
    _since = 0.0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin()
        everyone = cast("set[Connection]", self.connections)
        if len(everyone) > self.most:
            others = [one for one in everyone if one is not self and one.waits(for_body=True)]
            # If all are being answered this one has to come again
            min(others, key=lambda one: one._since, default=self)._end()

    def waits(self, for_body: bool) -> bool:
        """Whether nothing goes on before the client reads or sends something."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self.flow.write_paused:
            return True
        return for_body and cycle.more_body

    def _begin(self) -> None:
        self._since = self.loop.time()
        self._watch()

    def _watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(SECONDS, self._overdue)

    def _overdue(self) -> None:
        if self.waits(for_body=False):  # the application looks at bodies itself
            self._end()

    def _end(self) -> None:
        self.connections.discard(self)
        self.transport.abort()  # what was not read yet is lost

    def on_response_complete(self) -> None:
        self._begin()
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()


def reports_of(protocol: Any, message: bytes) -> tuple[list[bytes], str | None]:
    """The reports in a message, one or a batch, in base64, and the id of a batch.

    ValueError unless all are possible.
    """
    wrong: Counter[str] = Counter()
    batch = message.startswith(b"LDPF")
    if batch:
        reports = protocol.reports_from_bytes(message, wrong)
        what = "batch"
    else:
        reports = protocol.single_reports_from_bytes([message], wrong)
        what = f"report of {len(message)} bytes, for {8 + protocol.report_dtype.itemsize}"
    if len(reports) + wrong.total() > REPORTS:
        raise HTTPException(413, f"more than {REPORTS} reports: send several batches")
    for kind in wrong:
        raise ValueError(f"{kind}: {where(protocol, kind, what)}")
    if not len(reports):
        raise ValueError("a batch without reports")
    texts = [base64.b64encode(one) for one in protocol.single_reports_to_bytes(reports)]
    return texts, channel_of(protocol).transport.batch(message).id if batch else None


def where(protocol: Any, kind: str, what: str) -> str:
    """Which part of a message is wrong, without anything that was in it."""
    if kind == "foreign":
        return f"the protocol (bytes 0 to 7 of a report) is not {protocol.wire.hex()}"
    if kind == "impossible":
        fields = ", ".join(protocol.report_dtype.names)
        return f"the payload of a report ({fields}: bytes 8 on) cannot have been sent"
    return f"the length, or the header of a batch: this is a {what}"


async def whole(request: Request) -> bytes:
    """The body of a request, if it is neither too large nor too slow."""
    body = bytearray()
    announced = int(request.headers.get("content-length", "0"))  # the server has checked it
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                body += chunk
                if max(len(body), announced) > MOST:
                    raise HTTPException(413, f"more than {MOST} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the request took longer than {SECONDS} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "the client has left") from None  # which nobody reads
    return bytes(body)


def application(protocol: Any, log: ReportLog, page: Path | None) -> Starlette:
    """The collector, for an ASGI server that runs it in one process."""

    async def take(request: Request) -> JSONResponse:
        key = request.headers.get("idempotency-key", "")
        if not KEY.fullmatch(key):
            raise HTTPException(400, f"a header Idempotency-Key is needed: {KEY.pattern}")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/octet-stream", "text/plain"):
            raise HTTPException(415, "reports are application/octet-stream, or text/plain: base64")
        body = await whole(request)
        try:
            text = kind == "text/plain"
            message = base64.b64decode(body.strip(), validate=True) if text else body
            reports, batch = reports_of(protocol, message)
            if batch is not None:
                first = log.key_of((batch, key), key)
                names = {batch: first, key: first}
            else:
                first, names = key, {}
            many = len(reports) > 1
            keys = [f"{first}.{place}" for place in range(len(reports))] if many else [first]
            if len(keys[-1]) > 64:
                raise ValueError("the Idempotency-Key of such a batch must be shorter")
            new = await log.add(dict(zip(keys, reports, strict=True)), names)
        except KeyTaken as error:
            raise HTTPException(409, str(error)) from None
        except NotStored as error:
            raise HTTPException(503, str(error), {"Retry-After": "5"}) from None
        except binascii.Error as error:
            raise HTTPException(422, f"no base64: {error}") from None
        except ValueError as error:
            raise HTTPException(422, str(error)[:300]) from None
        return JSONResponse({"new": new})

    routes: list[BaseRoute] = [Route("/reports", take, methods=["POST"])]
    if page is not None:
        routes.append(Mount("/", StaticFiles(directory=page, html=True)))
    return Starlette(routes=routes, lifespan=log.taking)


def connections() -> int:
    """How many connections the limit of open files leaves, which is raised as far as it may be.

    It leaves room for as many that are accepted before anything is read, and that are ending.
    """
    needed = 3 * CONNECTIONS + 100
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return CONNECTIONS
    soft = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return (soft - 100) // 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("protocol", type=Path, help="the protocol file")
    parser.add_argument("folder", type=Path, help="where files of reports are written")
    parser.add_argument("--page", type=Path, help="a folder that is served, too")
    parser.add_argument("--port", type=int, default=8000, help="default 8000; 0: any that is free")
    given = parser.parse_args()
    protocol = load_protocol(given.protocol)
    try:
        log = ReportLog(given.folder)
    except Timeout:
        raise SystemExit(f"{given.folder}: another collector writes there") from None
    # For this machine alone: others come through a server that encrypts
    app = application(protocol, log, given.page)
    Connection.most = connections()
    uvicorn.run(
        app,
        port=given.port,
        access_log=False,
        http=Connection,
        ws="none",
        backlog=Connection.most,
    )


if __name__ == "__main__":
    main()

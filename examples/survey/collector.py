"""Collect reports over HTTP: a reference to copy, with report_log.py, for one machine.

    python collector.py protocol.json reports/ --page page/
    mechdesign collect reports/ --protocol protocol.json --out survey.agg

POST /reports takes one report (its bytes as application/octet-stream, or base64 as text/plain) or
a batch (application/octet-stream), and a header ``Idempotency-Key``, 1 to 64 of A-Z a-z 0-9 . _ -
that a client draws once and sends again whenever it tries again. The answer 200 means that the
reports are on disk, each key once; 4xx that they never will be, and why; 5xx, or none, that the
same request should be sent again. Addresses of clients are not kept.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from filelock import Timeout
from report_log import KeyTaken, NotStored, ReportLog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from frequency.core.protocol import channel_of
from frequency.storage import load_protocol

KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")
SECONDS = 30
"""How long a request may take."""


def reports_of(protocol: Any, message: bytes) -> list[bytes]:
    """The reports in a message, which is one or a batch; ValueError unless all are possible."""
    wire, size = protocol.wire, protocol.report_dtype.itemsize
    if message.startswith(b"LDPF"):
        payloads = protocol.reports_from_bytes(message).tobytes()
    elif not message.startswith(wire):
        raise ValueError("foreign: not a report of this protocol")
    elif len(message) != 8 + size:
        raise ValueError(f"malformed: a report has {8 + size} bytes, this has {len(message)}")
    else:
        payloads = message[8:]
        channel_of(protocol).accepted(np.frombuffer(payloads, protocol.report_dtype), None)
    if not payloads:
        raise ValueError("malformed: a batch without reports")
    return [wire + payloads[start : start + size] for start in range(0, len(payloads), size)]


async def whole(request: Request, most: int) -> bytes:
    """The body of a request, if it is neither too large nor too slow."""
    body = bytearray()
    announced = request.headers.get("content-length", "0")  # a number, or the server refused it
    try:
        async with asyncio.timeout(SECONDS):
            async for chunk in request.stream():
                body += chunk
                if max(len(body), int(announced)) > most:
                    raise HTTPException(413, f"more than {most} bytes")
    except TimeoutError:
        raise HTTPException(408, f"the request took longer than {SECONDS} seconds") from None
    return bytes(body)


def application(
    protocol: Any, log: ReportLog, page: Path | None, origins: list[str], most: int
) -> Starlette:
    """The collector, for an ASGI server that runs it in one process."""

    async def take(request: Request) -> JSONResponse:
        key = request.headers.get("idempotency-key", "")
        if not KEY.fullmatch(key):
            raise HTTPException(400, f"a header Idempotency-Key is needed: {KEY.pattern}")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in ("application/octet-stream", "text/plain"):
            raise HTTPException(415, "reports are application/octet-stream, or text/plain: base64")
        body = await whole(request, most)
        try:
            text = kind == "text/plain"
            message = base64.b64decode(body.strip(), validate=True) if text else body
            reports = [base64.b64encode(report) for report in reports_of(protocol, message)]
            keys = (
                [f"{key}.{place}" for place in range(len(reports))] if len(reports) > 1 else [key]
            )
            if len(keys[-1]) > 64:
                raise ValueError("malformed: an Idempotency-Key of a batch is shorter")
            new = await log.add(dict(zip(keys, reports, strict=True)))
        except KeyTaken as error:
            raise HTTPException(409, str(error)) from None
        except NotStored as error:
            raise HTTPException(503, str(error), {"Retry-After": "5"}) from None
        except ValueError as error:
            raise HTTPException(422, str(error)[:300]) from None
        return JSONResponse({"new": new})

    routes: list[BaseRoute] = [Route("/reports", take, methods=["POST"])]
    if page is not None:
        routes.append(Mount("/", StaticFiles(directory=page, html=True)))
    elsewhere = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["POST"],
        allow_headers=["Idempotency-Key", "Content-Type"],
    )
    return Starlette(routes=routes, middleware=[elsewhere], lifespan=log.taking)


async def serve(app: Any, host: str, port: int) -> None:
    """Run until SIGTERM or SIGINT; the address is printed when it answers."""
    config = uvicorn.Config(
        app, host, port, access_log=False, log_level="warning", limit_concurrency=1000
    )
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    while not server.started and not running.done():
        await asyncio.sleep(0.01)
    if server.started:
        port = server.servers[0].sockets[0].getsockname()[1]
        print(f"http://{host}:{port}/", flush=True)
    await running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("protocol", type=Path, help="the protocol file")
    add("folder", type=Path, help="where files of reports are written")
    add("--page", type=Path, help="a folder that is served, too")
    add("--host", default="127.0.0.1", help="default: for this machine alone")
    add("--port", type=int, default=8000, help="default 8000; 0: any that is free")
    add("--origin", action="append", default=[], help="of pages elsewhere: https://example.org")
    add("--bytes", type=int, default=1 << 20, help="the most in a request, default 1 MiB")
    add("--lines", type=int, default=100_000, help="about how many in a file, default 100000")
    add("--seconds", type=float, default=3600.0, help="until a file is closed, default an hour")
    given = parser.parse_args()
    protocol = load_protocol(given.protocol)
    try:
        log = ReportLog(given.folder, given.lines, given.seconds)
    except Timeout:
        raise SystemExit(f"{given.folder}: another collector writes there") from None
    app = application(protocol, log, given.page, given.origin, given.bytes)
    asyncio.run(serve(app, given.host, given.port))


if __name__ == "__main__":
    main()

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
import binascii
import re
from collections import Counter
from pathlib import Path
from typing import Any

import uvicorn
from filelock import Timeout
from report_log import KeyTaken, NotStored, ReportLog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from frequency.storage import load_protocol

KEY = re.compile(r"[A-Za-z0-9._-]{1,64}")
MOST, SECONDS = 1 << 20, 30
"""How many bytes a request may have, and how long it may take."""


def reports_of(protocol: Any, message: bytes) -> list[bytes]:
    """The reports in a message, one or a batch, in base64; ValueError unless all are possible."""
    wrong: Counter[str] = Counter()
    if message.startswith(b"LDPF"):
        reports = protocol.reports_from_bytes(message, wrong)
        what = "batch"
    else:
        reports = protocol.single_reports_from_bytes([message], wrong)
        what = f"report of {len(message)} bytes, for {8 + protocol.report_dtype.itemsize}"
    for kind in wrong:
        raise ValueError(f"{kind}: {where(protocol, kind, what)}")
    if not len(reports):
        raise ValueError("a batch without reports")
    return [base64.b64encode(one) for one in protocol.single_reports_to_bytes(reports)]


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
            reports = reports_of(protocol, message)
            keys = (
                [f"{key}.{place}" for place in range(len(reports))] if len(reports) > 1 else [key]
            )
            if len(keys[-1]) > 64:
                raise ValueError("the Idempotency-Key of such a batch must be shorter")
            new = await log.add(dict(zip(keys, reports, strict=True)))
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
    uvicorn.run(app, port=given.port, access_log=False, limit_concurrency=1000)


if __name__ == "__main__":
    main()

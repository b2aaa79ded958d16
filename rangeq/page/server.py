"""The server of the page: on the loopback address, for one person, who has its secret.

What could let others in, and what stands against it: every address but the first needs a cookie
that is Strict and HttpOnly, with a secret that is printed once; the Host header must name the
loopback address, against rebinding of names; what changes anything is a POST, from this origin,
with a token of the form; pages load nothing of other hosts, and run no script but their own; bodies
are bounded; only files that lie in the folder are named; templates escape all text.
"""

from __future__ import annotations

import hmac
import math
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlencode

import jinja2
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from frequency.schema import Schema, Text
from mechdesign.base import replacing
from mechdesign.exceptions import MechanismError
from rangeq.central import load_release
from rangeq.cli.answering import (
    AnswerList,
    AskedText,
    EstimateSource,
    QuantileSource,
    by_labels,
    compared,
)
from rangeq.cli.collected import source_of
from rangeq.page.choices import (
    KINDS,
    RELEASES,
    SCHEMAS,
    TABLES,
    Choices,
    InvalidChoice,
    file_in,
    files_in,
)
from rangeq.page.example import example_table
from rangeq.page.schemas import schema_of_form

Form: TypeAlias = Mapping[str, Sequence[str]]  #: The values of each field.

_HERE = Path(__file__).parent

MOST_FORM, MOST_FILE = 1 << 20, 1 << 24  #: The most bytes of a form, and of a file that is dropped.

_MOST_JOBS = 4  # releases at once

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self';"
        " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # without any, browsers do not say where a form is from
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_DRAWING = threading.Lock()  # of pictures: matplotlib draws one at a time

#: What a person may have done, and is told in words.
_REFUSALS = (ValueError, TypeError, OSError, MechanismError, ImportError)


@dataclass
class Job:
    """A command that runs, once."""

    process: subprocess.Popen[bytes]
    output: Path
    written: str  # the file that it makes
    begun: float = field(default_factory=time.monotonic)
    cancelled: bool = False

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.process.poll() is None

    @property
    def state(self) -> str:
        """What has become of it: running, released, cancelled or failed."""
        if (code := self.process.poll()) is None:
            return "running"
        if code == 0:
            return "released"
        return "cancelled" if self.cancelled else "failed"

    @property
    def told(self) -> str:
        """What it has printed."""
        return self.output.read_text("utf-8", "replace")

    @property
    def seconds(self) -> int:
        """For how long it has run."""
        return round(time.monotonic() - self.begun)


class Page:
    """The page of a folder.

    Parameters
    ----------
    folder : Path
        Whose tables are read, and where releases are written. Nothing outside of it is.
    port : int
        Of the loopback address.

    Attributes
    ----------
    address : str
        With the secret: for the one who began it.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder.resolve(strict=True)
        self.secret = secrets.token_urlsafe(32)
        self.origin = f"http://127.0.0.1:{port}"
        self.address = f"{self.origin}/?key={self.secret}"
        self._cookie = f"mechdesign-{port}"
        self._token = hmac.digest(self.secret.encode(), b"forms", "sha256").hex()
        self._private = tempfile.TemporaryDirectory(prefix="mechdesign-")  # with rights for one
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        loader = jinja2.FileSystemLoader(_HERE / "templates")
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
        )
        self._templates.filters["digits"] = _digits
        routes: list[Any] = [
            Route("/", partial(self._show, self.table)),
            Route("/describe", partial(self._show, self.describe)),
            Route("/schema", partial(self._take, self.write_schema), methods=["POST"]),
            Route("/example", partial(self._take, self.write_example), methods=["POST"]),
            Route("/question", partial(self._show, self.question)),
            Route("/privacy", partial(self._show, self.privacy)),
            Route("/privacy", partial(self._take, self.privacy), methods=["POST"]),
            Route("/predicted", partial(self._show, self.predicted)),
            Route("/example.svg", partial(self._show, self.example)),
            Route("/release", partial(self._take, self.begin), methods=["POST"]),
            Route("/job/{press}", partial(self._show, self.job)),
            Route("/job/{press}/cancel", partial(self._take, self.cancel), methods=["POST"]),
            Route("/answers", partial(self._show, self.answers)),
            Route("/answers.svg", partial(self._show, self.picture)),
            Route("/download", partial(self._show, self.download)),
            Route("/script", partial(self._show, self.script)),
            Route("/explain", partial(self._show, self.explain)),
            Route("/explained", partial(self._take, self.explained), methods=["POST"]),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        self._app = Starlette(routes=routes)

    def close(self) -> None:
        """End what runs, and remove what is private."""
        for job in self._jobs.values():
            if job.running:
                job.process.kill()
                job.process.wait()
        self._private.cleanup()

    # ---------------------------------------------------------------------------------- who is let

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, as an application of ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # lifespan
            return
        request = Request(scope, receive)
        refused = self._refusal(request)

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *own]
            await send(message)

        await (self._app if refused is None else refused)(scope, receive, sent)

    def _refusal(self, request: Request) -> Response | None:
        """What is answered instead, to somebody who may not come in; None: come in."""
        host = request.headers.get("host", "")
        if f"http://{host}" != self.origin:
            return PlainTextResponse("This page has another address.", 421)
        given = request.query_params.get("key")
        if request.url.path == "/" and given is not None:
            if not hmac.compare_digest(given.encode(), self.secret.encode()):
                return PlainTextResponse("This is not the key of the page.", 403)
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self.secret, httponly=True, samesite="strict")
            return answer
        known = request.cookies.get(self._cookie, "")
        if not hmac.compare_digest(known.encode(), self.secret.encode()):
            return PlainTextResponse("Open the address that the command has printed.", 403)
        if request.method == "POST" and request.headers.get("origin") != self.origin:
            return PlainTextResponse("This form is not of this page.", 403)
        return None

    # ------------------------------------------------------------------------------------ requests

    async def _show(self, answer: Callable[..., Response], request: Request) -> Response:
        """Answer a request that changes nothing."""
        given = {name: request.query_params.getlist(name) for name in request.query_params}
        return await self._answered(answer, given, request)

    async def _take(self, answer: Callable[..., Response], request: Request) -> Response:
        """Answer a form."""
        body = bytearray()
        most = MOST_FILE if request.url.path == "/explained" else MOST_FORM
        async for part in request.stream():
            body += part
            if len(body) > most:
                return PlainTextResponse(f"This is more than {most >> 20} MiB.", 413)
        given: dict[str, Any]
        if request.url.path == "/explained" and "name" in request.query_params:
            token = request.headers.get("x-token", "")
            given = {"name": [request.query_params["name"]], "body": [bytes(body)]}
        else:
            try:
                given = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=20_000)
            except ValueError:
                return PlainTextResponse("This is no form.", 400)
            token = given.pop("token", [""])[-1]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("This form is not of this page: open it again.", 403)
        return await self._answered(answer, given, request)

    async def _answered(
        self, answer: Callable[..., Response], given: Mapping[str, Any], request: Request
    ) -> Response:
        given = {**given, **{name: [value] for name, value in request.path_params.items()}}
        try:
            return await run_in_threadpool(answer, given)
        except _REFUSALS as refusal:
            if request.url.path == "/predicted":
                return self._page("refused_part.html", Choices(), said=str(refusal))
            return self._page("refused.html", Choices(), 400, said=str(refusal))

    def _page(self, name: str, work: Choices, status: int = 200, **told: Any) -> HTMLResponse:
        """A template as a page."""
        text = self._templates.get_template(name).render(
            work=work, chosen=urlencode(work.pairs()), token=self._token, kinds=KINDS, **told
        )
        return HTMLResponse(text, status)

    # --------------------------------------------------------------------------------------- steps

    def table(self, given: Form) -> Response:
        """The first step: which table."""
        tables = files_in(self.folder, TABLES)
        return self._page("table.html", Choices.of(given), tables=tables, releases=self._released())

    def _released(self) -> list[tuple[str, str]]:
        """The releases in the folder, and what each promises."""
        found = []
        for name in files_in(self.folder, RELEASES):
            with suppress(*_REFUSALS):
                found.append((name, load_release(self.folder / name).promised))
        return found

    def write_example(self, given: Form) -> Response:
        """Write the public example, with its schema, into the folder."""
        names = example_table(self.folder)
        return RedirectResponse(f"/describe?{urlencode({'table': names[0]})}", 303)

    def describe(self, given: Form) -> Response:
        """What the columns hold."""
        work = Choices.of(given)
        columns = work.columns(self.folder)
        schemas = []
        for name in files_in(self.folder, SCHEMAS):
            with suppress(*_REFUSALS):
                schema = Schema.load(self.folder / name)
                if set(schema.names) <= set(columns):
                    schemas.append((name, str(schema)))
        return self._page("describe.html", work, columns=columns, schemas=schemas)

    def write_schema(self, given: Form) -> Response:
        """Write the schema that was described; of a public table a draft."""
        work = Choices.of(given)
        columns = work.columns(self.folder)
        stem = work.table.split(".")[0]
        names = (f"{stem}{f' {number}' if number > 1 else ''}.toml" for number in count(1))
        path = self.folder / next(name for name in names if not (self.folder / name).exists())
        if given.get("public"):
            arguments = ["schema", work.table, "--public", "--out", path.name]
            done = self._run(arguments)
            if done.returncode:
                raise InvalidChoice(done.stdout)
        else:
            schema_of_form(columns, given).save(path)
        chosen = replace(work, schema=path.name)
        return RedirectResponse(f"/question?{urlencode(chosen.pairs())}", 303)

    def question(self, given: Form) -> Response:
        """What is to be known."""
        work = Choices.of(given)
        schema = work.known(self.folder)
        return self._page(
            "question.html",
            work,
            schema=schema,
            texts=[each.name for each in schema if isinstance(each, Text)],
            columns=work.columns(self.folder),
        )

    def privacy(self, given: Form) -> Response:
        """How private it is, and how far off."""
        work = Choices.of(given)
        work.arguments(self.folder)  # refuses what cannot be released
        if any(given.get("error", ())):
            work = work.reaching(self.folder, given["error"][-1])
        if not work.out or (self.folder / work.written).exists():
            work = work.named_anew(self.folder)
        ledgers = files_in(self.folder, (".json",))
        return self._page(
            "privacy.html",
            work,
            ledgers=ledgers,
            press=secrets.token_hex(16),
            released=self._released(),
            **self._told(work),
        )

    def _told(self, work: Choices) -> dict[str, Any]:
        """What is predicted, for a template."""
        epsilon = float(work.loss)
        odds = 2.718281828459045**epsilon
        return {
            "prediction": work.predicted(self.folder),
            "odds": f"{odds:.3g}",
            "sure": f"{100 * odds / (1 + odds):.3g}",
            "command": work.shell(self.folder),
            "python": work.python(self.folder),
            "drawn": work.kind in ("counts", "means"),
        }

    def predicted(self, given: Form) -> Response:
        """The part of the page that is drawn again when a choice changes."""
        work = Choices.of(given)
        return self._page("predicted.html", work, **self._told(work))

    def example(self, given: Form) -> Response:
        """A picture of what an answer would look like, of people who are spread evenly."""
        estimate = Choices.of(given).example(self.folder)
        if estimate is None:
            raise InvalidChoice("nothing is drawn of this question")
        source = EstimateSource("an example", estimate, 0.95)
        schema = estimate.schema
        names = [name for name in schema.names if name not in estimate.numbers][:2]
        asked = [] if estimate.numbers else [AskedText("marginal", "", (names[0],))]
        return _svg(lambda: source.picture(asked))

    # ------------------------------------------------------------------------------------- release

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "mechdesign", *arguments],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )

    def begin(self, given: Form) -> Response:
        """Release, once for each form, however often it is sent."""
        work, press = Choices.of(given), given.get("press", [""])[-1]
        if not press.isalnum() or len(press) != 32:
            raise InvalidChoice("open the page on privacy again")
        arguments = work.arguments(self.folder)
        with self._lock:
            if press not in self._jobs:
                if (self.folder / work.written).exists():
                    raise InvalidChoice(f"{work.written} is there already: choose another name")
                if sum(job.running for job in self._jobs.values()) >= _MOST_JOBS:
                    raise InvalidChoice("other releases are not done yet")
                output = Path(self._private.name) / press
                with output.open("wb") as stream:
                    process = subprocess.Popen(
                        [sys.executable, "-m", "mechdesign", *arguments],
                        cwd=self.folder,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                self._jobs[press] = Job(process, output, work.written)
        return RedirectResponse(f"/job/{press}?{urlencode(work.pairs())}", 303)

    def job(self, given: Form) -> Response:
        """How far a release is."""
        press = given["press"][-1]
        if press not in self._jobs:
            raise InvalidChoice("there is no such release")
        work = Choices.of(given)
        statement = ""
        job = self._jobs[press]
        state = job.state
        if state == "released":
            statement = work.statement(self.folder)
        return self._page(
            "release.html",
            work,
            job=job,
            state=state,
            press=press,
            statement=statement,
            command=work.shell(self.folder),
            python=work.python(self.folder),
        )

    def cancel(self, given: Form) -> Response:
        """End a release that has not drawn yet; one that has is whole, or not there."""
        job = self._jobs.get(given["press"][-1])
        if job is not None and job.running:
            job.cancelled = True
            job.process.terminate()
            job.process.wait()
        return RedirectResponse("/", 303)

    # ------------------------------------------------------------------------------------- answers

    def _source(self, given: Form) -> Any:
        path = file_in(self.folder, given.get("file", [""])[-1], RELEASES)
        return source_of(path, None)

    def _asked(self, source: Any, given: Form) -> list[AskedText]:
        """The questions of the form; none: what is usually asked."""
        kinds = ("where", "mean", "quantile")
        kind = given.get("ask", [""])[-1]
        if kind not in kinds or isinstance(source, QuantileSource):
            return []
        conditions = [
            f"{name} {text}"
            for name in source.schema.names
            if (text := given.get(f"of:{name}", [""])[-1].strip())
        ]
        where = " and ".join(conditions)
        if kind == "where":
            text = where
        else:
            name = given.get("number", [""])[-1]
            asked = name if kind == "mean" else f"{given.get('phi', ['0.5'])[-1]} of {name}"
            text = f"{asked} where {where}" if where else asked
        one = AskedText(kind, text)
        by = [name for name in given.get("by", ()) if name]
        if not by and kind == "where" and not where:
            return []
        return by_labels([one], by, source.schema) if by else [one]

    def _answers(self, given: Form) -> tuple[Any, list[AskedText], AnswerList]:
        source = self._source(given)
        asked = self._asked(source, given)
        rows = source.answers(asked or source.usual())
        return source, asked, AnswerList(rows, source.n, 0.95, source.notes(rows))

    def answers(self, given: Form) -> Response:
        """Tables and pictures of a release."""
        name = given.get("file", [""])[-1]
        if not name:
            return self._page("answers.html", Choices(), file="", names=self._released())
        source, _, answers = self._answers(given)
        estimate = getattr(source, "estimate", None)
        schema = None if estimate is None else estimate.schema
        told = defaultdict(str, {name: values[-1] for name, values in given.items()})
        rows = answers.rows[:2000]
        return self._page(
            "answers.html",
            Choices(),
            file=name,
            answers=answers,
            rows=[(*answers.words(row), row.unit) for row in rows],
            schema=schema,
            numbers=() if estimate is None else estimate.numbers,
            given=told,
            query=urlencode([(k, v) for k, values in given.items() for v in values]),
            released=load_release(self.folder / name).promised,
        )

    def picture(self, given: Form) -> Response:
        """The picture of the answers."""
        source, asked, answers = self._answers(given)
        if asked and asked[0].group:
            labels = [one.group for one in asked]
            ordered = all(source.schema[name].ordered for name in given["by"] if name)
            title = f"{asked[0].kind} {asked[0].of}".removeprefix("where ")
            return _svg(lambda: compared(title, labels, answers.rows, 0.95, as_given=ordered))
        if asked and asked[0].kind != "marginal":
            raise InvalidChoice("one number has no picture")
        names = source.schema.names[:1] if len(source.schema) > 3 else ()
        return _svg(lambda: source.picture([AskedText("marginal", "", names)] if names else []))

    def download(self, given: Form) -> Response:
        """The answers as a file, or the release."""
        name, form = given.get("file", [""])[-1], given.get("form", [""])[-1]
        if form == "release":
            path = file_in(self.folder, name, RELEASES)
            return _attached(path.read_bytes(), name, "application/octet-stream")
        _, _, answers = self._answers(given)
        stem = name.removesuffix(RELEASES[0])
        if form == "json":
            return _attached(answers.json().encode(), f"{stem}.json", "application/json")
        if form == "csv":  # which spreadsheets open: texts in it are no formulas
            return _attached(answers.csv(spreadsheet=True).encode(), f"{stem}.csv", "text/csv")
        raise InvalidChoice("a file is csv, json or release")

    def script(self, given: Form) -> Response:
        """The command as a script or notebook."""
        form = given.get("form", [""])[-1]
        work = Choices.of(given)
        stem = work.written.removesuffix(RELEASES[0])
        if form == "sh":
            text = f"#!/bin/sh\nset -e\n{work.shell(self.folder)}\n"
            return _attached(text.encode(), f"{stem}.sh", "text/x-shellscript")
        if form == "py":
            return _attached(work.python(self.folder).encode(), f"{stem}.py", "text/x-python")
        if form == "ipynb":
            content = work.notebook(self.folder).encode()
            return _attached(content, f"{stem}.ipynb", "application/x-ipynb+json")
        raise InvalidChoice("a script is sh, py or ipynb")

    # ---------------------------------------------------------------------------------- understand

    def explain(self, given: Form) -> Response:
        """Where a file is dropped to see what it is, and whether its claims hold."""
        return self._page("explain.html", Choices.of(given), file="", said="", audited="")

    def explained(self, given: Mapping[str, Any]) -> Response:
        """What a file is."""
        name = Path(given.get("name", [""])[-1]).name
        body = given.get("body", [b""])[-1]
        suffix = "".join(Path(name).suffixes[-1:])
        if suffix not in (".json", ".csv", ".npz", ".release") or not isinstance(body, bytes):
            raise InvalidChoice("a mechanism or a release is a file .json, .csv, .npz or .release")
        with tempfile.TemporaryDirectory(dir=self._private.name) as folder:
            path = Path(folder) / f"file{suffix}"
            with replacing(path) as stream:
                stream.write(body)
            if suffix == RELEASES[0]:
                texts = _of_release(path)
            else:
                texts = [self._run([verb, str(path)]).stdout for verb in ("explain", "audit")]
        # By the name that the person knows
        texts = [text.replace(str(path), name) for text in texts]
        return self._page("explain.html", Choices(), file=name, said=texts[0], audited=texts[1])


def _of_release(path: Path) -> list[str]:
    """What a curator's release is, and that it keeps its promise."""
    released = load_release(path)  # which makes its mechanism, and audits it, anew
    source = source_of(path, None)
    rows = source.answers(source.usual())
    answers = AnswerList(rows, source.n, 0.95, source.notes(rows))
    said = f"Released once, with {released.promised}.\n\n{released.schema}\n\n{answers.table()}"
    return [said, "What was drawn is of a mechanism that keeps this promise, by exact numbers."]


def _digits(number: float) -> str:
    """A number to three digits, or whole."""
    if number == 0 or not math.isfinite(number):
        return str(number)
    places = max(2 - math.floor(math.log10(abs(number))), 0)
    return f"{number:,.{places}f}"


def _svg(draw: Callable[[], Any]) -> Response:
    """A picture, as SVG."""
    buffer = BytesIO()
    with _DRAWING:
        draw().savefig(buffer, format="svg")
    return Response(buffer.getvalue(), media_type="image/svg+xml")


def _attached(content: bytes, name: str, kind: str) -> Response:
    """A file to save."""
    plain = "".join(mark if mark.isascii() and mark not in '"\\' else "_" for mark in name)
    return Response(
        content, headers={"Content-Disposition": f'attachment; filename="{plain}"'}, media_type=kind
    )

"""The server of the page: on the loopback address, for one person, who has its secret.

What could let others in, and what stands against it: every address but the first needs a cookie
that is Strict and HttpOnly, with a secret that is printed once; the Host header must name the
loopback address, against rebinding of names; what changes anything is a POST, from this origin,
with a token of the form; pages load nothing of other hosts, and run no script but their own; bodies
are bounded; only files that lie in the folder are named; templates escape all text.
"""

from __future__ import annotations

import hmac
import json
import math
import re
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
from datetime import date
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
from mechdesign.accounting import Ledger
from mechdesign.base import ReadOptions, format_of, opened_rows, opened_table, printable, replacing
from mechdesign.exceptions import MechanismError
from rangeq.central import load_release
from rangeq.cli.answering import (
    AnswerList,
    AskedText,
    QuantileSource,
    by_labels,
    compared,
)
from rangeq.cli.collected import source_of
from rangeq.cli.published_answers import axes_of, published_table
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
from rangeq.page.predictions import drawn, pictured, predicted, reaching, statement
from rangeq.page.programs import asking, notebook, python
from rangeq.page.schemas import ColumnForm, blank_form, form_of, schema_of_form, told_in

Form: TypeAlias = Mapping[str, Sequence[str]]  #: The values of each field.

_HERE = Path(__file__).parent

MOST_FORM, MOST_FILE = 1 << 20, 1 << 24  #: The most bytes of a form, and of a file that is dropped.

_MOST_JOBS = 4  # releases at once

_MOST_ROWS = 2000  # of answers that are shown

#: Runs commands one after the other, until one fails.
_RUNNER = (
    "import json, sys; from mechdesign.cli import main;"
    " sys.exit(next(filter(None, map(main, json.loads(sys.argv[1]))), 0))"
)

#: Fields of the question: what is wrong with them is said there.
_OF_QUESTION = {"kind", "trust", "attribute", "by", "number", "quantile", "delta", "person", "rows"}
_OF_QUESTION |= {"largest", "noise", "blocked"}

#: How tables of answers are saved: the ending, and what it is called.
TABLE_FORMS = {"xlsx": "Excel", "px": "PX", "sdmx.csv": "SDMX", "parquet": "Parquet"}

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
    """Commands that run, once."""

    process: subprocess.Popen[bytes]
    output: Path
    written: Path  # the file that they make
    then: str = ""  # the page that goes on with it, if any
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
        if code == 0 or (self.cancelled and self.written.exists()):
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
    """The page of a folder, at a port of the loopback address: nothing outside of it is read."""

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
        self._templates.filters |= {"digits": _digits, "people": _people}
        routes: list[Any] = [
            Route("/", partial(self._show, self.table)),
            Route("/describe", partial(self._show, self.describe)),
            Route("/schema", partial(self._take, self.write_schema), methods=["POST"]),
            Route("/draft", partial(self._take, self.draft), methods=["POST"]),
            Route("/example", partial(self._take, self.write_example), methods=["POST"]),
            Route("/question", partial(self._show, self.question)),
            Route("/privacy", partial(self._show, self.privacy)),
            Route("/privacy", partial(self._take, self.privacy), methods=["POST"]),
            Route("/predicted", partial(self._show, self.predicted)),
            Route("/example.svg", partial(self._show, self.example)),
            Route("/release", partial(self._take, self.begin), methods=["POST"]),
            Route("/job/{press}", partial(self._show, self.job)),
            Route("/job/{press}/file", partial(self._show, self.job_file)),
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
        self._settle()

    def _settle(self) -> None:
        """Finish, or undo, releases that were cut off between their ledger and their file."""
        for name in self._ledgers():
            with suppress(*_REFUSALS):
                Ledger.open(self.folder / name)

    def _ledgers(self) -> list[str]:
        """The ledgers in the folder."""
        found = []
        for name in files_in(self.folder, (".json",)):
            with suppress(*_REFUSALS):
                if format_of(self.folder / name) == "mechdesign.ledger":
                    found.append(name)
        return found

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

    def _page(
        self,
        name: str,
        work: Choices,
        status: int = 200,
        refused: InvalidChoice | None = None,
        **told: Any,
    ) -> HTMLResponse:
        """A template as a page; what is refused stands beside its field."""
        told |= {"work": work, "chosen": urlencode(work.pairs()), "token": self._token}
        text = self._templates.get_template(name).render(kinds=KINDS, refused=refused, **told)
        return HTMLResponse(text, status if refused is None else 400)

    # --------------------------------------------------------------------------------------- steps

    def table(self, given: Form) -> Response:
        """The first step: which table."""
        tables = files_in(self.folder, TABLES)
        return self._page("table.html", Choices.of(given), tables=tables, releases=self._released())

    def _released(self) -> list[tuple[str, str, str]]:
        """The releases in the folder, what each promises, and the day when it was written."""
        found = []
        for name in files_in(self.folder, RELEASES):
            with suppress(*_REFUSALS):
                path = self.folder / name
                day = date.fromtimestamp(path.stat().st_mtime).isoformat()
                found.append((name, load_release(path).promised, day))
        return found

    def write_example(self, given: Form) -> Response:
        """Write the public example, with its schema, into the folder."""
        names = example_table(self.folder)
        return RedirectResponse(f"/describe?{urlencode({'table': names[0]})}", 303)

    def _columns(self, work: Choices, given: Form) -> tuple[list[ColumnForm], Schema | None]:
        """The columns as the form has them at first, and the description that it is filled with."""
        job = self._jobs.get(given.get("draft", [""])[-1])
        known, told = None, ""
        if job is not None and job.then:
            known, told = Schema.load(job.written), job.told
        elif work.schema:
            known = work.known(self.folder)
        lines = [line for line in told.splitlines() if line.startswith(("look at ", "left out: "))]
        with opened_table(file_in(self.folder, work.table, TABLES), ReadOptions()) as table:
            names, notes = table.names, {} if table.notes is None else table.notes()
        forms = []
        for name in names:
            starts = tuple(f"{verb} {printable(name)}: " for verb in ("look at", "left out:"))
            doubt = next((line for line in lines if line.startswith(starts)), "")
            if known is None or name not in known:
                forms.append(blank_form(name, notes.get(name, {}), doubt, used=known is None))
            else:
                forms.append(form_of(known[name], doubt))
        return forms, known

    def describe(self, given: Form, refused: InvalidChoice | None = None) -> Response:
        """What the columns hold."""
        work = Choices.of(given)
        forms, known = self._columns(work, given)
        if refused is not None:  # as it was sent
            forms = [form._replace(fields=told_in(k, given)) for k, form in enumerate(forms)]
        schemas = []
        for name in files_in(self.folder, SCHEMAS):
            with suppress(*_REFUSALS):
                schema = Schema.load(self.folder / name)
                if set(schema.names) <= {form.name for form in forms}:
                    schemas.append((name, str(schema)))
        told = {"columns": forms, "schemas": schemas, "filled": known is not None}
        draft = given.get("draft", [""])[-1]
        press = secrets.token_hex(16)
        return self._page("describe.html", work, 200, refused, **told, draft=draft, press=press)

    def draft(self, given: Form) -> Response:
        """Draft the description of a table that anybody may read."""
        work, press = Choices.of(given), given.get("press", [""])[-1]
        if not given.get("public"):
            raise InvalidChoice("a draft tells what is in the table: it has to be public")
        file_in(self.folder, work.table, TABLES)
        path = Path(self._private.name) / f"draft {secrets.token_hex(8)}.toml"
        then = f"/describe?{urlencode([*work.pairs(), ('draft', press)])}"
        words = ["schema", work.table, "--public", "--out", str(path)]
        return self._started(press, [words], path, work, then)

    def write_schema(self, given: Form) -> Response:
        """Write the description, in the place of the one that was changed."""
        work = Choices.of(given)
        forms, known = self._columns(work, given)
        try:
            schema = schema_of_form(forms, given, known)
        except InvalidChoice as refusal:
            return self.describe(given, refusal)
        stem = work.table.split(".")[0]
        names = (f"{stem}{f' {number}' if number > 1 else ''}.toml" for number in count(1))
        name = next(name for name in names if not (self.folder / name).exists())
        if work.schema and not self._is_used(work.known(self.folder), schema):
            name = work.schema
        schema.save(self.folder / name)
        return RedirectResponse(f"/question?{urlencode(replace(work, schema=name).pairs())}", 303)

    def _is_used(self, before: Schema, after: Schema) -> bool:
        """Whether something was released by a description that would not hold any more."""
        for name in files_in(self.folder, RELEASES):
            with suppress(*_REFUSALS):
                schema = load_release(self.folder / name).schema
                if [*schema] == [*self._part(before, schema)] != [*self._part(after, schema)]:
                    return True
        return False

    @staticmethod
    def _part(schema: Schema, of: Schema) -> list[Any]:
        return [schema[name] for name in of.names if name in schema]

    def question(self, given: Form, refused: InvalidChoice | None = None) -> Response:
        """What is to be known."""
        work = Choices.of(given)
        schema = work.known(self.folder)
        texts = [each.name for each in schema if isinstance(each, Text)]
        columns = work.columns(self.folder)
        told = {"schema": schema, "texts": texts, "columns": columns}
        return self._page("question.html", work, 200, refused, **told)

    def privacy(self, given: Form, refused: InvalidChoice | None = None) -> Response:
        """How private it is, and how far off."""
        work, told = Choices.of(given), dict[str, Any]()
        try:
            work.commands(self.folder)  # refuses what cannot be released
            if given.get("find"):
                error = given.get("error", [""])[-1]
                work = reaching(work, self.folder, error, given["find"][-1])
            if not refused and (not work.out or (self.folder / work.written).exists()):
                work = work.named_anew(self.folder)
            told = self._told(work)
        except InvalidChoice as refusal:
            if refusal.field in _OF_QUESTION:
                return self.question(given, refusal)
            if not refusal.field:
                raise
            refused = refused or refusal
        told |= {"ledgers": self._ledgers(), "press": secrets.token_hex(16)}
        told |= {"released": self._released(), "error": given.get("error", [""])[-1]}
        return self._page("privacy.html", work, 200, refused, **{"prediction": None, **told})

    def _told(self, work: Choices) -> dict[str, Any]:
        """What is predicted, for a template."""
        odds = math.exp(float(work.loss))
        prediction = predicted(work, self.folder)
        first = prediction.answers[0].error
        return {
            "prediction": prediction,
            "percent": 100 * first / work.expected,
            "odds": f"{odds:.3g}",
            "sure": f"{100 * odds / (1 + odds):.3g}",
            "command": work.shell(self.folder),
            "python": python(work, self.folder),
            "pictures": drawn(work, work.asked(self.folder)),
        }

    def predicted(self, given: Form) -> Response:
        """The part of the page that is drawn again when a choice changes."""
        work = Choices.of(given)
        return self._page("predicted.html", work, **self._told(work))

    def example(self, given: Form) -> Response:
        """A picture of what an answer would look like, of people who are spread evenly."""
        work, name = Choices.of(given), given.get("of", [""])[-1]
        return _svg(lambda: pictured(work, self.folder, name))

    # ------------------------------------------------------------------------------------- release

    def begin(self, given: Form) -> Response:
        """Release, once for each form, however often it is sent."""
        work, press = Choices.of(given), given.get("press", [""])[-1]
        try:
            commands = work.commands(self.folder)
            written = self.folder / work.written
            if press not in self._jobs and written.exists():
                raise InvalidChoice(f"{work.written} is there already: choose another name", "out")
        except InvalidChoice as refusal:
            if not refusal.field:
                raise
            return self.privacy(given, refusal)
        return self._started(press, commands, written, work)

    def _started(
        self, press: str, commands: Any, written: Path, work: Choices, then: str = ""
    ) -> Response:
        """Start commands, once, and show how far they are."""
        if not press.isalnum() or len(press) != 32:
            raise InvalidChoice("open the page again")
        with self._lock:
            if press not in self._jobs:
                if sum(job.running for job in self._jobs.values()) >= _MOST_JOBS:
                    raise InvalidChoice("other releases are not done yet")
                output = Path(self._private.name) / press
                with output.open("wb") as stream:
                    process = subprocess.Popen(
                        [sys.executable, "-c", _RUNNER, json.dumps(commands)],
                        cwd=self.folder,
                        stdin=subprocess.DEVNULL,
                        stdout=stream,
                        stderr=subprocess.STDOUT,
                    )
                self._jobs[press] = Job(process, output, written, then)
        return RedirectResponse(f"/job/{press}?{urlencode(work.pairs())}", 303)

    def _job(self, given: Form) -> Job:
        job = self._jobs.get(given["press"][-1])
        if job is None:
            raise InvalidChoice("there is no such release")
        return job

    def job(self, given: Form) -> Response:
        """How far a release is."""
        work, job = Choices.of(given), self._job(given)
        state = job.state
        if state == "released" and job.then:
            return RedirectResponse(job.then, 303)
        told: dict[str, Any] = {"command": "", "python": "", "statement": "", "rows": []}
        if not job.then:
            told |= {"command": work.shell(self.folder), "python": python(work, self.folder)}
        if state == "released" and work.ending == RELEASES[0]:
            told["statement"] = statement(work, self.folder)
        elif state == "released" and work.ending == ".csv":  # which was made to be published
            with opened_rows(job.written, ReadOptions()) as rows:
                told["rows"] = [rows.header, *(cells for cells, _ in rows.at_least_one())]
        # How many rows got secret keys is a true count
        lines = [ln for ln in job.told.splitlines() if not ln.startswith(f"wrote {work.aside[0]}")]
        told |= {"press": given["press"][-1], "most": _MOST_ROWS, "said": "\n".join(lines)}
        return self._page("release.html", work, job=job, state=state, **told)

    def job_file(self, given: Form) -> Response:
        """What was written, to be saved."""
        job = self._job(given)
        if job.then or job.state != "released":
            raise InvalidChoice("nothing was written")
        return _attached(job.written.read_bytes(), job.written.name, "application/octet-stream")

    def cancel(self, given: Form) -> Response:
        """End a release that has not drawn yet; one that has is whole, or not there."""
        job = self._jobs.get(given["press"][-1])
        if job is not None and job.running:
            job.cancelled = True
            job.process.terminate()
            job.process.wait()
            self._settle()
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
        if (than := given.get("than", [""])[-1].strip()) and asked and asked[0].group:
            rows = source.beside(asked, than, False)
            asked = [one for one in asked if one.group != than]
        else:
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
        rows = answers.rows[:_MOST_ROWS]
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
            forms=TABLE_FORMS if axes_of(source) else {},
            pictures=schema.names if schema is not None and len(schema) > 3 else [""],
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
        names = tuple(name for name in given.get("only", ()) if name in source.schema.names)
        return _svg(lambda: source.picture([AskedText("marginal", "", names)] if names else []))

    def download(self, given: Form) -> Response:
        """The answers as a file, or the release."""
        name, form = given.get("file", [""])[-1], given.get("form", [""])[-1]
        if form == "release":
            path = file_in(self.folder, name, RELEASES)
            return _attached(path.read_bytes(), name, "application/octet-stream")
        source, _, answers = self._answers(given)
        stem = name.removesuffix(RELEASES[0])
        if form in TABLE_FORMS:
            promised = load_release(self.folder / name).promised
            with tempfile.TemporaryDirectory(dir=self._private.name) as folder:
                path = Path(folder) / f"table.{form}"
                published_table(source, f"Released once, with {promised}.").save(path)
                content = path.read_bytes()
            return _attached(content, f"{stem}.{form}", "application/octet-stream")
        if form == "json":
            return _attached(answers.json().encode(), f"{stem}.json", "application/json")
        if form == "csv":  # which spreadsheets open: texts in it are no formulas
            return _attached(answers.csv(spreadsheet=True).encode(), f"{stem}.csv", "text/csv")
        raise InvalidChoice(f"a file is csv, json, {', '.join(TABLE_FORMS)} or release")

    def script(self, given: Form) -> Response:
        """The command as a script or notebook."""
        form = given.get("form", [""])[-1]
        work = Choices.of(given)
        stem = work.written.removesuffix(work.ending)
        if form == "sh":
            text = f"#!/bin/sh\nset -e\n{work.shell(self.folder)}\n"
            return _attached(text.encode(), f"{stem}.sh", "text/x-shellscript")
        if form == "py":
            content = python(work, self.folder).encode()
            return _attached(content, f"{stem}.py", "text/x-python")
        if form == "ipynb":
            content = notebook([python(work, self.folder), asking(work)]).encode()
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
                texts = [self._said(verb, path) for verb in ("explain", "audit")]
        # By the name that the person knows
        texts = [text.replace(str(path), name) for text in texts]
        return self._page("explain.html", Choices(), file=name, said=texts[0], audited=texts[1])

    def _said(self, verb: str, path: Path) -> str:
        """What a command says of a file."""
        command, both = [sys.executable, "-m", "mechdesign", verb, str(path)], subprocess.STDOUT
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=both, check=False)
        return done.stdout.decode("utf-8", "replace")


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


def _people(text: str) -> str:
    """A text of the library with the page's word for users."""
    return re.sub(r"\b(users|respondents)\b", "people", text)


def _svg(draw: Callable[[], Any]) -> Response:
    """A picture, as SVG."""
    from matplotlib.text import Text as Written  # loads matplotlib

    buffer = BytesIO()
    with _DRAWING:
        figure = draw()
        for text in figure.findobj(Written):
            text.set_text(_people(text.get_text()))
        figure.savefig(buffer, format="svg")
    return Response(buffer.getvalue(), media_type="image/svg+xml")


def _attached(content: bytes, name: str, kind: str) -> Response:
    """A file to save."""
    plain = "".join(mark if mark.isascii() and mark not in '"\\' else "_" for mark in name)
    return Response(
        content, headers={"Content-Disposition": f'attachment; filename="{plain}"'}, media_type=kind
    )

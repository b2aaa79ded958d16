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
from itertools import count
from mimetypes import guess_type
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
from frequency.schema.plot import rounded
from mechdesign.accounting import Ledger
from mechdesign.base import (
    ReadOptions,
    Stopped,
    Worker,
    format_of,
    opened_rows,
    opened_table,
    printable,
    replacing,
)
from rangeq.central import load_release
from rangeq.cli.answer_rows import AnswerList, compared
from rangeq.cli.answering import AskedText, QuantileSource, by_labels
from rangeq.cli.collected import source_of
from rangeq.cli.published_answers import axes_of, published_table
from rangeq.page import predictions
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
from rangeq.page.predictions import REFUSALS
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

#: Fields of the last step: what is wrong with others is said where they are.
_OF_PRIVACY = ("epsilon", "people", "error", "ledger", "out", "")

_SVG = "image/svg+xml"

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
        self._worker = Worker()
        self._lock = threading.Lock()
        loader = jinja2.FileSystemLoader(_HERE / "templates")
        self._templates = jinja2.Environment(
            loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
        )
        self._templates.filters |= {"digits": rounded, "people": predictions.of_people}
        show, take = partial(partial, self._show), partial(partial, self._take)
        shown = ("describe", "question", "predicted", "answers", "download", "script", "explain")
        taken = ("draft", "stop", "explained")
        own: dict[str, Any] = {"methods": ["POST"]}
        routes: list[Any] = [
            *(Route(f"/{name}", show(getattr(self, name))) for name in (*shown, "privacy")),
            *(Route(f"/{name}", take(getattr(self, name)), **own) for name in (*taken, "privacy")),
            Route("/", show(self.table)),
            Route("/schema", take(self.write_schema), **own),
            Route("/example", take(self.write_example), **own),
            Route("/example.svg", show(self.example)),
            Route("/release", take(self.begin), **own),
            Route("/job/{press}", show(self.job)),
            Route("/job/{press}/file", show(self.job_file)),
            Route("/job/{press}/cancel", take(self.cancel), **own),
            Route("/answers.svg", show(self.picture)),
            Mount("/static", StaticFiles(directory=_HERE / "static")),
        ]
        self._app = Starlette(routes=routes)
        self._settle()

    def _settle(self) -> None:
        """Finish, or undo, releases that were cut off between their ledger and their file."""
        for name in self._ledgers():
            with suppress(*REFUSALS):
                Ledger.open(self.folder / name)

    def _ledgers(self) -> list[str]:
        """The ledgers in the folder."""
        found = []
        for name in files_in(self.folder, (".json",)):
            with suppress(*REFUSALS):
                if format_of(self.folder / name) == "mechdesign.ledger":
                    found.append(name)
        return found

    def close(self) -> None:
        """End what runs, and remove what is private."""
        for job in self._jobs.values():
            if job.state == "running":
                job.process.kill()
                job.process.wait()
        self._worker.stop()
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
        except REFUSALS as refusal:
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
            with suppress(*REFUSALS):
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
            with suppress(*REFUSALS):
                schema = Schema.load(self.folder / name)
                if set(schema.names) <= {form.name for form in forms}:
                    schemas.append((name, str(schema)))
        told: dict[str, Any] = {"columns": forms, "schemas": schemas, "filled": known is not None}
        told |= {"draft": given.get("draft", [""])[-1], "press": secrets.token_hex(16)}
        return self._page("describe.html", work, 200, refused, **told)

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
            with suppress(*REFUSALS):
                schema = load_release(self.folder / name).schema
                old, new = ([of[n] for n in schema.names if n in of] for of in (before, after))
                if [*schema] == old != new:
                    return True
        return False

    def question(self, given: Form, refused: InvalidChoice | None = None) -> Response:
        """What is to be known."""
        self._worker.begin()  # which will be asked next
        work = Choices.of(given)
        schema = work.known(self.folder)
        texts = [each.name for each in schema if isinstance(each, Text)]
        told = {"schema": schema, "texts": texts, "columns": work.columns(self.folder)}
        return self._page("question.html", work, 200, refused, **told)

    def privacy(self, given: Form, refused: InvalidChoice | None = None) -> Response:
        """How private it is, and how far off."""
        work, told = Choices.of(given), dict[str, Any]()
        try:
            work.commands(self.folder)  # refuses what cannot be released
            if given.get("find"):
                wanted = given.get("error", [""])[-1], given["find"][-1]
                work = self._predicted(predictions.reaching, work, *wanted)
            if not refused and (not work.out or (self.folder / work.written).exists()):
                work = work.named_anew(self.folder)
            told |= self._predicted(predictions.summary, work)
        except InvalidChoice as refusal:
            if refusal.field not in _OF_PRIVACY:
                return self.question(given, refusal)
            if not refusal.field:
                raise
            refused = refused or refusal
        told |= {"ledgers": self._ledgers(), "press": secrets.token_hex(16)}
        told |= {"released": self._released(), "error": given.get("error", [""])[-1]}
        return self._page("privacy.html", work, 200, refused, **{"prediction": None, **told})

    def predicted(self, given: Form) -> Response:
        """The part of the page that is drawn again when a choice changes."""
        work = Choices.of(given)
        return self._page("predicted.html", work, **self._predicted(predictions.summary, work))

    def example(self, given: Form) -> Response:
        """A picture of what an answer would look like, of people who are spread evenly."""
        found = self._predicted(predictions.pictured, Choices.of(given), given.get("of", ()))
        return Response(found, media_type=_SVG)

    def _predicted(self, function: Callable[..., Any], work: Choices, *given: Any) -> Any:
        """What a function tells of choices, by a process that can be stopped."""
        try:
            return self._worker(predictions.foretold, function, work, self.folder, *given)
        except Stopped:
            raise InvalidChoice("stopped: nothing was predicted", "epsilon") from None

    def stop(self, given: Form) -> Response:
        """End a prediction that takes long."""
        self._worker.stop()
        return PlainTextResponse("Stopped.")

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
                if sum(job.state == "running" for job in self._jobs.values()) >= _MOST_JOBS:
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
            told["statement"] = self._predicted(predictions.statement, work)
        elif state == "released" and work.ending == ".csv":  # which was made to be published
            with opened_rows(job.written, ReadOptions()) as rows:
                told["rows"] = [rows.header, *(cells for cells, _ in rows.at_least_one())]
        # How many rows got secret keys is a true count
        lines = [ln for ln in job.told.splitlines() if not ln.startswith(f"wrote {work.aside[0]}")]
        told |= {"press": given["press"][-1], "most": _MOST_ROWS, "said": "\n".join(lines)}
        seconds = round(time.monotonic() - job.begun)
        return self._page("release.html", work, job=job, state=state, seconds=seconds, **told)

    def job_file(self, given: Form) -> Response:
        """What was written, to be saved."""
        job = self._job(given)
        if job.then or job.state != "released":
            raise InvalidChoice("nothing was written")
        return _attached(job.written.read_bytes(), job.written.name)

    def cancel(self, given: Form) -> Response:
        """End a release that has not drawn yet; one that has is whole, or not there."""
        job = self._job(given)
        if job.state == "running":
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
        return source, asked, AnswerList.of(source, rows, 0.95)

    def answers(self, given: Form) -> Response:
        """Tables and pictures of a release."""
        name = given.get("file", [""])[-1]
        if not name:
            return self._page("answers.html", Choices(), file="", names=self._released())
        source, asked, answers = self._answers(given)
        estimate: Any = getattr(source, "estimate", None)
        schema: Any = None if estimate is None else estimate.schema
        whole = schema is None or asked or estimate.numbers
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
            pictures=[()] if whole else predictions.panels(schema),
        )

    def picture(self, given: Form) -> Response:
        """The picture of the answers."""
        source, asked, answers = self._answers(given)
        names = tuple(name for name in given.get("only", ()) if name in source.schema.names)
        few = [AskedText("marginal", "", names)] if names else []
        draw = partial(source.picture, few)
        if asked and asked[0].group:
            labels = [one.group for one in asked]
            ordered = all(source.schema[name].ordered for name in given["by"] if name)
            title = f"{asked[0].kind} {asked[0].of}".removeprefix("where ")
            draw = partial(compared, title, labels, answers.rows, 0.95, as_given=ordered)
        elif asked and asked[0].kind != "marginal":
            raise InvalidChoice("one number has no picture")
        return Response(predictions.svg(draw), media_type=_SVG)

    def download(self, given: Form) -> Response:
        """The answers as a file, or the release."""
        name, form = given.get("file", [""])[-1], given.get("form", [""])[-1]
        if form == "release":
            path = file_in(self.folder, name, RELEASES)
            return _attached(path.read_bytes(), name)
        source, _, answers = self._answers(given)
        stem = name.removesuffix(RELEASES[0])
        if form in TABLE_FORMS:
            promised = load_release(self.folder / name).promised
            with tempfile.TemporaryDirectory(dir=self._private.name) as folder:
                path = Path(folder) / f"table.{form}"
                published_table(source, f"Released once, with {promised}.").save(path)
                content = path.read_bytes()
            return _attached(content, f"{stem}.{form}")
        if form == "json":
            return _attached(answers.json().encode(), f"{stem}.json")
        if form == "csv":  # which spreadsheets open: texts in it are no formulas
            return _attached(answers.csv(spreadsheet=True).encode(), f"{stem}.csv")
        raise InvalidChoice(f"a file is csv, json, {', '.join(TABLE_FORMS)} or release")

    def script(self, given: Form) -> Response:
        """The command as a script or notebook."""
        form, work = given.get("form", [""])[-1], Choices.of(given)
        program = python(work, self.folder)
        texts = {
            "sh": f"#!/bin/sh\nset -e\n{work.shell(self.folder)}\n",
            "py": program,
            "ipynb": notebook([program, asking(work)]),
        }
        if form not in texts:
            raise InvalidChoice(f"a script is {', '.join(texts)}")
        return _attached(texts[form].encode(), f"{work.written.removesuffix(work.ending)}.{form}")

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
    answers = AnswerList.of(source, source.answers(source.usual()), 0.95)
    said = f"Released once, with {released.promised}.\n\n{released.schema}\n\n{answers.table()}"
    return [said, "What was drawn is of a mechanism that keeps this promise, by exact numbers."]


def _attached(content: bytes, name: str) -> Response:
    """A file to save."""
    plain = "".join(mark if mark.isascii() and mark not in '"\\' else "_" for mark in name)
    headers = {"Content-Disposition": f'attachment; filename="{plain}"'}
    return Response(content, headers=headers, media_type=guess_type(name)[0])

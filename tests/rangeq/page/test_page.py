"""The page: who comes in, that a release is drawn once, and a walk with real clicks."""

from __future__ import annotations

import csv
import html
import http.client
import json
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlencode, urlsplit

import pandas as pd
import pytest

import rangeq.page
from frequency.schema import (
    Boolean,
    Categorical,
    Dates,
    MissingCode,
    Numeric,
    Ordinal,
    Schema,
    Text,
)
from mechdesign.accounting import Ledger
from mechdesign.base import write_csv
from mechdesign.cli import main
from rangeq.central import ReleasedKeys, ReleasedQuantiles, load_release
from rangeq.cli import page_command
from rangeq.page.schemas import form_of, schema_of_form
from tests.browser import CHROMIUM, browser
from tests.killing import killed

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

EVIL = "<script>alert(1)</script>"

SCHEMA = Schema(
    [
        Categorical("town", ["Nord", EVIL]),
        Numeric("age", low=0, high=9, whole=True, unit="years", outside="clip"),
        Text("word", bytes=8),
    ]
)


class Answered(NamedTuple):
    """What a server answers."""

    status: int
    headers: Any
    text: str


class Client:
    """A person at the page, with the cookie, or somebody else."""

    def __init__(self, address: str, folder: Path) -> None:
        parts = urlsplit(address)
        assert parts.port is not None
        self.address, self.folder = address, folder
        self.port, self.key = parts.port, parse_qs(parts.query)["key"][0]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.own = {"Cookie": f"mechdesign-{self.port}={self.key}"}

    def ask(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> Answered:
        """One request, with these headers alone."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        found = Answered(answer.status, answer.headers, answer.read().decode("utf-8", "replace"))
        connection.close()
        return found

    def get(self, path: str, **given: Any) -> Answered:
        """A page, as the person sees it."""
        query = f"?{urlencode(given, doseq=True)}" if given else ""
        return self.ask(path + query, **self.own)

    @property
    def token(self) -> str:
        """That of forms."""
        found = re.search(r'name="token" value="(\w+)"', self.get("/").text)
        assert found is not None
        return found[1]

    def post(self, path: str, **given: Any) -> Answered:
        """A form of the page."""
        body = urlencode({"token": self.token, **given}, doseq=True)
        return self.ask(path, "POST", body, **self.own, Origin=self.origin)

    def released(self, press: str = "0" * 32, **given: Any) -> str:
        """What the page says once a release is done."""
        return self.followed(self.post("/release", press=press, **given))

    def followed(self, answer: Answered) -> str:
        """What the page says once what was begun is done."""
        assert answer.status == 303, answer.text
        end = time.monotonic() + 60
        while True:
            found = self.ask(answer.headers["Location"], **self.own)
            answer = found if found.status == 303 else answer
            if found.status != 303 and "Reading the table" not in found.text:
                return found.text
            assert time.monotonic() < end
            time.sleep(0.1)


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Client]:
    folder = tmp_path / "folder"
    folder.mkdir()
    rows = [(["Nord", EVIL][k % 2], k % 10, f"w{k % 3}") for k in range(300)]
    write_csv(folder / "people.csv", [SCHEMA.names, *rows])
    SCHEMA.save(folder / "people.toml")
    (tmp_path / "secret.csv").write_text("town\nNord\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    command = [sys.executable, "-W", "error", "-m", "mechdesign", "page", "--no-browser"]
    run = subprocess.Popen(
        [*command, "--folder", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    client = Client(run.stdout.readline().strip(), folder)
    yield client
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=90)
    assert said == ""


GIVEN = {"table": "people.csv", "schema": "people.toml"}


def test_nobody_else_comes_in(page):
    assert page.ask("/").status == 403
    for path in (
        *("/answers", "/static/page.css", "/describe?table=people.csv", f"/job/{'0' * 32}/file"),
        *("/example.svg", "/download?file=a.release&form=px", "/script?form=py"),
    ):
        assert page.ask(path).status == 403
        assert page.ask(path, Cookie=f"mechdesign-{page.port}=wrong").status == 403
    assert page.ask("/?key=wrong").status == 403
    let = page.ask(f"/?key={page.key}")
    assert (let.status, let.headers["Location"]) == (303, "/")
    cookie = let.headers["Set-Cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    # A name that leads here, as after rebinding
    for host in (f"evil.example:{page.port}", "127.0.0.1", f"127.0.0.1:{page.port}.evil.example"):
        assert page.ask("/", Host=host, **page.own).status == 421
    assert page.get("/").status == 200
    assert page.key not in page.get("/").text


def test_forms_of_others_change_nothing(page):
    body = urlencode({"token": page.token})
    for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        assert page.ask("/example", "POST", body, **page.own, **headers).status == 403
    for body in ("", "token=wrong", "token="):
        assert page.ask("/example", "POST", body, **page.own, Origin=page.origin).status == 403
    assert page.ask("/example", **page.own).status == 405
    for path in ("/draft", "/schema", "/release", "/privacy", f"/job/{'0' * 32}/cancel"):
        for headers in ({}, {"Origin": "http://evil.example"}):
            assert (
                page.ask(path, "POST", "token=" + page.token, **page.own, **headers).status == 403
            )
        assert page.ask(path, "POST", "table=x", **page.own, Origin=page.origin).status == 403
    large = b"x" * ((1 << 20) + 1)
    assert page.ask("/example", "POST", large, **page.own, Origin=page.origin).status == 413
    assert not (page.folder / "example people.csv").exists()
    assert page.post("/example").status == 303
    assert (page.folder / "example people.csv").exists()


def test_pages_load_nothing_of_others_and_labels_are_no_markup(page):
    page.released(kind="counts", attribute="town", out="towns", **GIVEN)
    paths = [
        page.get("/"),
        page.get("/describe", table="people.csv"),
        page.get("/question", **GIVEN),
        page.get("/privacy", attribute="town", **GIVEN),
        page.get("/answers", file="towns.release"),
        page.get("/answers", file=EVIL),
        page.get("/explain"),
    ]
    for answer in paths:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        assert EVIL not in answer.text
        assert not re.search(r"(src|href)=.?(https?:)?//", answer.text)
        assert not re.search(r"<script>| style=| onclick=", answer.text)
    assert "&lt;script&gt;" in paths[4].text


@pytest.mark.parametrize(
    "name", ["../secret.csv", "link.csv", "/etc/passwd", "none.csv", "people.toml", ".", ""]
)
def test_no_file_is_read_outside_of_the_folder(page, name):
    answer = page.get("/describe", table=name)
    assert (answer.status, "no such file" in answer.text) == (400, True)
    for form in ("release", "px", "xlsx", "../x.px"):
        answer = page.get("/download", file=name, form=form)
        assert (answer.status, "no such file" in answer.text) == (400, True)
    answer = page.get("/question", table="people.csv", schema=name)
    assert answer.status == (200 if name == "people.toml" else 400)
    answer = page.post("/schema", table=name, schema="people.toml")
    assert (answer.status, "no such file" in answer.text) == (400, True)
    answer = page.post("/draft", press="5" * 32, table=name, public="yes")
    assert (answer.status, "no such file" in answer.text) == (400, True)
    for press in ("..", "0" * 32, "people.csv"):
        assert page.get(f"/job/{press}/file").status in (400, 404)
    for out in ("../x", "a/b", ".x", "x\ny", "-" * 200):
        said = page.post(
            "/release", press="1" * 32, kind="counts", attribute="town", out=out, **GIVEN
        )
        assert (said.status, "the file&#39;s name" in said.text) == (400, True)


def test_a_release_is_drawn_once_by_the_command_that_is_shown(page):
    Ledger.open(page.folder / "budget.json", epsilon=3)
    given = {"kind": "counts", "attribute": ["town", "age"], "epsilon": "0.5", "out": "towns"}
    given |= {"ledger": "budget.json", **GIVEN}
    text = page.released(**given)
    path = page.folder / "towns.release"
    content = path.read_bytes()
    assert load_release(path).promised == "epsilon 0.5 for each row"
    assert page.released(**given) == text
    assert path.read_bytes() == content
    other = page.post("/release", press="2" * 32, **given)
    assert (other.status, "is there already" in other.text) == (400, True)
    assert [
        str(e.epsilon) for e in Ledger.open(page.folder / "budget.json", epsilon=3).entries
    ] == ["1/2"]
    # The script that is saved does what was done
    script = page.get("/script", form="sh", **given).text.splitlines()[-1]
    words = shlex.split(script)
    assert words[0] == "mechdesign"
    assert words[-4:-2] == ["--ledger", "budget.json"]
    python = page.get("/script", form="py", **given).text
    assert "main(" not in python
    notebook = json.loads(page.get("/script", form="ipynb", **given).text)
    assert "".join(notebook["cells"][0]["source"]) == python


@pytest.mark.parametrize("person", [{}, {"person": "word", "rows": "2"}])
@pytest.mark.parametrize("ledger", ["", "budget.json"])
@pytest.mark.parametrize(
    "given",
    [
        {"kind": "counts", "attribute": ["town", "age"]},
        {"kind": "means", "number": "age", "by": "town"},
        {"kind": "quantiles", "attribute": "age", "quantile": "0.25, 0.5"},
        {"kind": "keys", "attribute": "word", "delta": "1e-3"},
    ],
)
def test_command_and_python_with_a_seed_draw_the_same(page, monkeypatch, given, person, ledger):
    """What the page runs is the command: all write the same, byte for byte."""
    monkeypatch.chdir(page.folder)
    given = {**given, **person, "epsilon": "0.5", "out": "a", "ledger": ledger, **GIVEN}

    def budget() -> None:
        (page.folder / "budget.json").unlink(missing_ok=True)
        Ledger.open(page.folder / "budget.json", epsilon=3, delta="0.1")

    budget()
    words = shlex.split(page.get("/script", form="sh", **given).text.splitlines()[-1])[1:]
    python = page.get("/script", form="py", **given).text
    assert main([*words, "--seed", "3"]) == 0
    first = (page.folder / "a.release").read_bytes()
    spent = [entry.epsilon for entry in Ledger.open(page.folder / "budget.json").entries]
    assert len(spent) == bool(ledger)
    budget()
    (page.folder / "a.release").unlink()
    assert python.count("rng = None") == 1
    seeded = re.sub("rng = None.*", "import numpy; rng = numpy.random.default_rng(3)", python)
    subprocess.run([sys.executable, "-c", seeded], check=True, cwd=page.folder)
    assert (page.folder / "a.release").read_bytes() == first
    assert spent == [entry.epsilon for entry in Ledger.open(page.folder / "budget.json").entries]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "counts", "attribute": "age"}, "people of one age"),
        ({"kind": "means", "number": "age", "by": "town"}, "the sum of age"),
        ({"kind": "quantiles", "attribute": "age", "quantile": "0.5"}, "the rank of a quantile"),
        ({"kind": "keys", "attribute": "word", "delta": "1e-3"}, "the number of people of a value"),
    ],
)
def test_every_question_is_predicted_released_and_answered(page, given, told):
    text = page.get("/privacy", people=300, **given, **GIVEN).text
    assert told in text
    assert "2.72 times as likely" in text
    again = page.get("/predicted", people=300, epsilon="0.5", **given, **GIVEN).text
    assert "1.65 times as likely" in again
    if given["kind"] in ("counts", "means"):
        drawn = page.get("/example.svg", people=300, **given, **GIVEN)
        assert drawn.headers["Content-Type"] == "image/svg+xml"
    for find in ("epsilon", "people"):
        wanted = {"error": "0.8", "find": find}
        found = page.get("/privacy", people=300, **wanted, **given, **GIVEN).text
        assert re.search(r"0\.(79|80|8)\d* %", found)
    text = page.released(**given, **GIVEN, out="a")
    assert "A paragraph on method" in text, text
    assert "errors of the table itself" in text
    released: Any = load_release(page.folder / "a.release")
    kinds = {"quantiles": ReleasedQuantiles, "keys": ReleasedKeys}
    assert isinstance(released, kinds.get(given["kind"], object))
    answers = page.get("/answers", file="a.release")
    assert (answers.status, "95 % interval" in answers.text) == (200, True)
    if given["kind"] == "counts":
        assert page.get("/download", file="a.release", form="px").text.startswith("CHARSET")
        for form in ("xlsx", "sdmx.csv", "parquet"):
            assert page.get("/download", file="a.release", form=form).status == 200
    if given["kind"] == "quantiles":
        assert page.get("/download", file="a.release", form="px").status == 400
    for form, kind in (("csv", "text/csv"), ("json", "application/json")):
        saved = page.get("/download", file="a.release", form=form)
        assert saved.headers["Content-Type"].startswith(kind)
        assert "attachment" in saved.headers["Content-Disposition"]
    if given["kind"] != "quantiles":
        assert "<svg" in page.get("/answers.svg", file="a.release").text


PERTURBED = {"kind": "perturbed", "attribute": ["town", "age"], "out": "p", **GIVEN}
ASKED = {"trust": "nobody", "attribute": "age", "people": "300", "out": "q", **GIVEN}


def test_a_perturbation_table_is_designed_and_applied(page):
    shown = page.get("/privacy", **PERTURBED).text
    assert "a count of 10 or more" in shown
    assert "the least there can be" in shown
    assert "times as likely" not in shown  # which no epsilon promises here
    assert page.get("/example.svg", **PERTURBED).text.count("Nord, 3") == 1
    narrow = page.get("/predicted", **PERTURBED, noise="2", epsilon="3").text
    assert "at most 2 either way" in narrow
    text = page.released(**PERTURBED)
    assert "people keyed.csv has the secret keys" in text
    assert "300 rows" not in text  # which is a true count
    assert "<caption>What was published</caption>" in text
    assert "&lt;script&gt;" in text
    assert EVIL not in text
    published = (page.folder / "p.csv").read_bytes()
    header, *cells = csv.reader(published.decode().splitlines())
    assert header == ["town", "age", "count"]
    assert len(cells) == 3 * 11
    inner = [int(n) for *where, n in cells if "total" not in where]
    assert all(n == 0 or abs(n - 30) <= 5 for n in inner)  # no town has all ages
    told = page.get(f"/job/{'0' * 32}/file")
    assert told.text.encode() == published
    # With the keys that are there both give the same table again
    for name in ("p.csv", "p noise.csv"):
        (page.folder / name).unlink()
    python = page.get("/script", form="py", **PERTURBED).text
    assert "write_with_keys" not in python
    subprocess.run([sys.executable, "-c", python], check=True, cwd=page.folder)
    assert (page.folder / "p.csv").read_bytes() == published
    blocked = page.released(press="6" * 32, **PERTURBED | {"out": "b"}, blocked="2")
    assert "<caption>What was published</caption>" in blocked
    lines = (page.folder / "b.csv").read_text().splitlines()
    assert not {"1", "2"} & {line.rpartition(",")[2] for line in lines}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "a range"),
        ({"kind": "quantiles"}, "the rank of a quantile"),
        ({"attribute": ["town", "age"]}, "a cell of a marginal"),
        ({"attribute": "town"}, "the share of a rare item"),
        ({"kind": "keys", "attribute": "word"}, "the rarest value that is found"),
    ],
)
def test_users_who_trust_nobody_are_asked_by_a_protocol(page, more, said):
    given = {**ASKED, **more}
    shown = page.get("/privacy", **given).text
    assert said in shown
    assert "no report is more than 2.72 times as likely for one answer" in shown
    if said == "a range":
        assert "<svg" in page.get("/example.svg", **given).text
        for find, name in (("people", "people"), ("epsilon", "epsilon")):
            found = page.get("/privacy", **given, error="3", find=find).text
            assert re.search(r">(2\.9\d|3|3\.0\d) %", found)
            assert not re.search(rf'name="{name}" value="(300|1)"', found)
            beyond = page.get("/privacy", **given, error="1e-300", find=find)
            assert (beyond.status, "reaches this error" in beyond.text) == (400, True)
    text = page.released(**given)
    assert "The protocol is written" in text
    assert "mechdesign privatize answers.csv --protocol q.json --out q.parquet" in text
    written = (page.folder / "q.json").read_bytes()
    (page.folder / "q.json").unlink()
    python = page.get("/script", form="py", **given).text
    subprocess.run([sys.executable, "-c", python], check=True, cwd=page.folder)
    assert (page.folder / "q.json").read_bytes() == written


def test_what_comes_after_a_protocol_leads_to_answers(page, monkeypatch):
    monkeypatch.chdir(page.folder)
    text = page.released(**ASKED)
    rows = [("age",), *((k % 10,) for k in range(300))]
    write_csv(page.folder / "answers.csv", rows)
    block = re.search("<pre[^>]*><code>(mechdesign privatize.*?)</code>", text, re.DOTALL)
    assert block is not None
    lines = [line for line in html.unescape(block[1]).splitlines() if line]
    assert [main(shlex.split(line)[1:]) for line in lines] == [0, 0, 0]


def test_a_long_prediction_is_stopped_and_the_next_is_there(page):
    """Whoever waits for it is told; what it had is not missed."""
    given = {"kind": "perturbed", "attribute": "town", "largest": 100, "noise": 20, "people": 300}
    found = []
    asking = threading.Thread(target=lambda: found.append(page.get("/privacy", **given, **GIVEN)))
    asking.start()
    end = time.monotonic() + 120
    while asking.is_alive():  # the first may come before it has begun
        assert page.post("/stop").text == "Stopped."
        assert time.monotonic() < end
        time.sleep(0.5)
    assert found[0].status == 400
    assert "stopped: nothing was predicted" in found[0].text
    assert 'name="epsilon"' in found[0].text  # where it is said, to be changed
    answer = page.get("/predicted", kind="counts", attribute="age", people=300, **GIVEN)
    assert "people of one age" in answer.text


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("width", [1280, 420])
def test_a_button_stops_a_long_prediction(page, tmp_path, width):
    asked = {"kind": "perturbed", "attribute": "town", "largest": 100, "noise": 20} | GIVEN
    with browser(tmp_path / "profile") as tab:
        tab.open(page.address)
        tab.wait("document.querySelector('h1')?.textContent == 'Which table?'")
        tab.open(f"{page.origin}/question?{urlencode(asked)}")
        tab.wait("location.pathname == '/question' && document.readyState == 'complete'")
        assert not tab.run("document.getElementById('busy').checkVisibility()")
        tab.run("document.getElementById('busy').hidden = false")
        tab.look(tmp_path / f"busy {width}.png", width)
        keeps_rules(tab)
        tab.run("document.getElementById('busy').hidden = true")
        # While it waits for an answer the browser tells nothing: the page itself presses
        tab.run(
            "setTimeout(() => { const busy = document.getElementById('busy');"
            " sessionStorage.seen = busy.checkVisibility(); busy.querySelector('button').click();"
            " }, 3000); document.querySelector('form button').click()"
        )
        tab.wait("document.body?.innerText.includes('stopped: nothing was predicted')")
        assert tab.run("sessionStorage.seen") == "true"
        tab.wait("document.activeElement?.name == 'epsilon'")  # set when the page is drawn
        assert tab.run("document.activeElement.name") == "epsilon"


def test_places_are_a_map(page):
    names = ("longitude", "latitude")
    bounds = ((-74.1, -73.9), (40.6, 40.9))
    attributes = [
        Numeric(name, low=low, high=high, bins=4)
        for name, (low, high) in zip(names, bounds, strict=True)
    ]
    Schema([*attributes, SCHEMA["town"]]).save(page.folder / "places.toml")
    rows = [(-74.05 + 0.001 * k, 40.65 + 0.001 * k, "Nord") for k in range(100)]
    write_csv(page.folder / "places.csv", [(*names, "town"), *rows])
    given = {"table": "places.csv", "schema": "places.toml", "epsilon": "2", "people": "100"}
    shown = page.get("/privacy", kind="counts", attribute=names, **given).text
    query = re.search(r'src="(/example\.svg\?[^"]*)"', shown)
    assert query is not None
    example = page.ask(html.unescape(query[1]), **page.own)
    assert example.headers["Content-Type"] == "image/svg+xml"
    page.released(kind="counts", attribute=[*names, "town"], out="all", **given)
    shown = page.get("/answers", file="all.release").text
    pictures = [html.unescape(each) for each in re.findall(r'src="(/answers\.svg[^"]*)"', shown)]
    only = [parse_qs(urlsplit(each).query)["only"] for each in pictures]
    assert only == [["longitude", "latitude"], ["town"]]
    for each in pictures:
        assert page.ask(each, **page.own).headers["Content-Type"] == "image/svg+xml"


def test_the_page_is_small():
    """The goal of it: 2,500 lines, templates and styles included; the script 200."""
    folder = Path(rangeq.page.__file__).parent
    sources = [path for path in folder.rglob("*.*") if path.suffix != ".pyc"]
    lines = {path.name: len(path.read_text().splitlines()) for path in sources}
    command = Path(page_command.__file__).read_text().splitlines()
    assert sum(lines.values()) + len(command) <= 2500
    assert lines["page.js"] <= 200


def test_what_was_cut_off_is_finished_when_the_page_begins(tmp_path):
    """Killed between the ledger and the file, by whoever draws."""
    act = """
    with Ledger.open(folder / "budget.json") as ledger:
        with ledger.publishing("0.4", "a.release", folder / "a.release") as aside:
            with replacing(aside) as stream:
                stream.write(b"whole")
"""
    from rangeq.page.server import Page

    for folder in killed(tmp_path, act):
        page = Page(folder, 1)
        page.close()
        entries = json.loads((folder / "budget.json").read_text())["entries"]
        assert [entry["what"] for entry in entries] == ["a.release"] * (
            folder / "a.release"
        ).exists()


def test_answers_are_filtered_and_compared(page):
    page.released(kind="counts", attribute=["town", "age"], epsilon="4", out="a", **GIVEN)
    asked = {"file": "a.release", "ask": "where", "of:age": "2:4"}
    assert "age 2:4" in page.get("/answers", **asked).text
    by = page.get("/answers", by="town", **asked).text
    assert "age 2:4 and town Nord" in by
    assert "<svg" in page.get("/answers.svg", by="town", **asked).text
    than = page.get("/answers", by="town", than="Nord", **asked).text
    assert re.search(r"age 2:4 and town &lt;script&gt;.* less Nord", than)
    assert "<svg" in page.get("/answers.svg", by="town", than="Nord", **asked).text
    wrong = page.get("/answers", by="town", than="Ost", **asked)
    assert (wrong.status, "there is no group" in wrong.text) == (400, True)
    mean = {"file": "a.release", "ask": "mean", "number": "age", "of:town": "Nord"}
    assert "mean age where town Nord" in page.get("/answers", **mean).text
    half = {"file": "a.release", "ask": "quantile", "number": "age", "phi": "0.5"}
    assert "quantile 0.5 of age" in page.get("/answers", **half).text


def test_columns_are_described_by_hand(page):
    given = {
        "kind:0": "labels",
        "labels:0": f"Nord\n {EVIL} \n\n",
        "missing:0": "item",
        "kind:1": "whole",
        "low:1": "0",
        "high:1": "9",
        "unit:1": "years",
        "outside:1": "clip",
        "kind:2": "text",
    }
    answer = page.post("/schema", table="people.csv", **given)
    assert answer.headers["Location"] == "/question?table=people.csv&schema=people+2.toml"
    schema = Schema.load(page.folder / "people 2.toml")
    assert schema["town"] == Categorical("town", ["Nord", EVIL], missing="item")
    assert schema["age"] == SCHEMA["age"]
    for wrong, field, said in (
        ({}, "kind:0", "describe one column"),
        ({"kind:1": "whole", "low:1": "a", "high:1": "9"}, "low:1", "is a number"),
        ({"kind:1": "number", "low:1": "3", "high:1": "2"}, "kind:1", "not above it"),
        ({"kind:0": "labels"}, "labels:0", "has two labels or more"),
        ({"kind:0": "labels", "labels:0": "Nord, Ost"}, "labels:0", "has two labels or more"),
        ({"kind:1": "whole", "low:1": "0.5", "high:1": "9"}, "low:1", "are whole numbers"),
        ({"kind:1": "number", "low:1": "0,5", "high:1": "9", "bins:1": "1.5"}, "bins:1", "whole"),
        ({"kind:1": "number", "edges:1": "1; 3; 2"}, "kind:1", "must ascend"),
        ({"kind:1": "whole", "edges:1": "1; 2.5"}, "edges:1", "are whole numbers"),
        ({"kind:1": "dates", "first:1": "x", "last:1": "2020-01-01"}, "kind:1", "are dates"),
        ({"kind:0": "dogs"}, "kind:0", "choose what town holds"),
        ({"kind:0": "kept"}, "kind:0", "choose what town holds"),
    ):
        answer = page.post("/schema", table="people.csv", **wrong)
        assert (answer.status, said in answer.text) == (400, True)
        # Beside the field, which has the focus, and all that was written is still there
        described = r'aria-invalid="true" aria-describedby="wrong" autofocus'
        assert re.search(rf'name="{field}"[^>]*{described}', answer.text)
        assert answer.text.count('id="wrong"') == 1
        for text in wrong.values():
            assert text in answer.text or text in ("dogs", "kept")
    assert not (page.folder / "people 3.toml").exists()


ATTRIBUTES = [
    Categorical("town", ["Nord", "Ost"], missing="item", missing_codes=[99, "97:98", ".a"]),
    Ordinal("town", ["low", "high"], unit="grade", title="How high?", outside="item"),
    Numeric("town", [0, 0.5, 18, 65.25], unit="EUR", outside="clip", heaps=[10.0]),
    Numeric("town", [0, 5, 100], whole=True, missing="skip"),
    Numeric("town", low=1, high=1e6, bins=12, spacing="logarithmic"),
    Numeric("town", low=-5, high=120, whole=True, bins=7, thousands=",", outside="item"),
    Numeric(
        "town",
        low=0,
        high=9,
        whole=True,
        missing="item",
        missing_codes=[
            MissingCode(98, "refused", "skip"),
            MissingCode(-1.5, "no = none"),
            97,
        ],
    ),
    Dates("town", "2013-01-01", "2013-12-31", "month", date_format=["%d.%m.%Y"]),
    Boolean("town", true=["ja", 1], false=["nein", 2], title="Smokes?"),
    Text("town", bytes=12, missing="item", outside="refuse"),
    Categorical("town", ["two\nlines", " blank "]),  # which no form has
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=lambda one: f"{one.kind} {one.size}")
def test_a_description_that_is_opened_again_is_what_was_said(attribute):
    form = form_of(attribute)
    given = {f"{what}:0": [text] for what, text in form.fields.items()}
    schema = schema_of_form([form], given, Schema([attribute]))
    assert schema == Schema([attribute])
    assert (form.fields["kind"] == "kept") == ("two\nlines" in getattr(attribute, "labels", ()))
    # A change is taken, and leaves all else
    if form.fields["kind"] in ("whole", "labels"):
        changed = {**given, "missing:0": ["item"], "unit:0": ["steps"]}
        (found,) = schema_of_form([form], changed, Schema([attribute]))
        assert found == replace(attribute, missing="item", unit="steps")


def test_what_was_said_is_changed_in_its_place(page):
    shown = page.get("/describe", **GIVEN).text
    assert re.search(r'name="low:1" value="0"', shown)
    assert re.search(r'name="unit:1" value="years"', shown)
    assert '<option value="labels" selected>' in shown
    fields = {f"{w}:{k}": t for k, a in enumerate(SCHEMA) for w, t in form_of(a).fields.items()}
    page.post("/schema", **GIVEN, **fields)
    assert Schema.load(page.folder / "people.toml") == SCHEMA
    answer = page.post("/schema", **GIVEN, **fields | {"high:1": "12"}, kind="means", number="age")
    assert "schema=people.toml" in answer.headers["Location"]
    assert "number=age" in answer.headers["Location"]  # what was chosen stays
    changed = Schema.load(page.folder / "people.toml")
    age: Any = SCHEMA["age"]
    assert changed["age"] == replace(age, high=12, bins=0)
    # But not if something was released by it that it would not describe any more
    page.released(kind="counts", attribute="age", out="ages", **GIVEN)
    answer = page.post("/schema", **GIVEN, **fields | {"high:1": "13"})
    assert "schema=people+2.toml" in answer.headers["Location"]
    assert Schema.load(page.folder / "people.toml") == changed
    answer = page.post("/schema", **GIVEN, **fields | {"high:1": "12", "missing:0": "item"})
    assert "schema=people.toml" in answer.headers["Location"]


def test_a_draft_is_looked_through_before_it_is_kept(page):
    (page.folder / "people.csv").write_text(
        "town,age,word\n" + "".join(f"Nord,{k % 5 * 10},x\nOst,99,y{k}\n" for k in range(300))
    )
    assert page.post("/draft", press="5" * 32, table="people.csv").status == 400
    answer = page.post("/draft", press="5" * 32, table="people.csv", public="yes")
    text = page.followed(answer)
    assert "codes of missing values" in text
    assert "look at age" in text
    assert sorted(path.name for path in page.folder.glob("*.toml")) == ["people.toml"]
    fields = dict(re.findall(r'name="(\w+:\d+)" value="([^"]*)"', text))
    fields |= {"kind:0": "labels", "labels:0": "Nord\nOst", "kind:1": "whole", "codes:1": "99"}
    kept = page.post("/schema", table="people.csv", draft="5" * 32, **fields)
    assert kept.headers["Location"].endswith("people+2.toml")
    schema = Schema.load(page.folder / "people 2.toml")
    assert schema.public_source == "people.csv, which was declared public"
    assert schema["age"].missing_codes == (99,)
    assert page.get(f"/job/{'5' * 32}/file").status == 400


def test_files_say_what_their_columns_hold_and_no_row_is_read(page, monkeypatch):
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"q1": [1.0, 2.0, 9.0], "q2": [18.0, 40.0, 99.0]})
    pyreadstat.write_sav(
        frame,
        str(page.folder / "survey.sav"),
        column_labels={"q1": f"How {EVIL}?", "q2": "Age"},
        variable_value_labels={"q1": {1.0: "well", 2.0: "badly", 9.0: "no answer"}},
        missing_ranges={"q1": [9.0], "q2": [{"lo": 97.0, "hi": 99.0}]},
        variable_measure={"q1": "ordinal"},
    )
    text = page.get("/describe", table="survey.sav").text
    assert "How &lt;script&gt;" in text
    assert re.search(r'name="labels:0"[^>]*>well\nbadly</textarea>', text)
    assert re.search(r'name="codes:0"[^>]*>9 = no answer</textarea>', text)
    assert re.search(r'name="codes:1"[^>]*>97:99</textarea>', text)
    assert '<option value="order" selected>' in text
    fields = {"kind:0": "order", "labels:0": "well\nbadly", "codes:0": "9 = no answer"}
    fields |= {"missing:0": "item", "kind:1": "whole", "low:1": "0", "high:1": "96"}
    page.post("/schema", table="survey.sav", **fields, **{"codes:1": "97:99", "missing:1": "skip"})
    given = {"table": "survey.sav", "schema": "survey.toml", "epsilon": "9"}
    text = page.released(kind="counts", attribute="q1", **given)
    assert "A paragraph on method" in text, text
    released: Any = load_release(page.folder / "survey counts.release")
    assert released.estimate.schema["q1"].item_labels == ("well", "badly", "missing")
    assert released.estimate.schema["q1"].title == f"How {EVIL}?"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "choose one column"),
        ({"attribute": "dogs"}, "no column dogs"),
        ({"kind": "means"}, "choose a number"),
        ({"kind": "dogs", "attribute": "age"}, "choose a question"),
        ({"kind": "quantiles", "attribute": ["age", "town"]}, "choose one column"),
        ({"kind": "quantiles", "attribute": "town"}, "has no order"),
        ({"kind": "quantiles", "attribute": "age", "quantile": "2"}, "quantiles are fractions"),
        ({"kind": "keys", "attribute": "age"}, "has a list of labels"),
        ({"kind": "keys", "attribute": "word", "delta": "1"}, "delta is"),
        ({"attribute": "word"}, "nobody listed"),
        ({"attribute": "age", "epsilon": "0"}, "epsilon is"),
        ({"attribute": "age", "epsilon": ""}, "epsilon is"),
        ({"attribute": "age", "rows": "3"}, "only if a column says"),
        ({"attribute": "age", "epsilon": "nan"}, "epsilon is"),
        ({"attribute": "age", "epsilon": "99"}, "epsilon is"),
        ({"attribute": "age", "people": "many"}, "a whole number"),
        ({"attribute": "age", "person": "dogs"}, "no column dogs"),
        ({"attribute": "age", "person": "word", "rows": "0"}, "rows of a person"),
        ({"attribute": "age", "error": "-1", "find": "epsilon"}, "a number above 0"),
        ({"attribute": "age", "error": "1e-9", "find": "epsilon"}, "no epsilon"),
        ({"attribute": "age", "error": "1e-9", "find": "people"}, "no number of people"),
        ({"kind": "perturbed", "attribute": "town", "noise": "0"}, "from 1 to 20"),
        ({"kind": "perturbed", "attribute": "town", "person": "word"}, "one row for each"),
        ({"kind": "means", "number": "age", "trust": "nobody"}, "devices are asked"),
        ({"attribute": "age", "trust": "dogs"}, "choose a question"),
    ],
)
def test_wrong_choices_are_told_and_draw_nothing(page, given, said):
    answers = [page.get("/privacy", **GIVEN, **given)]
    if not {"people", "error"} & set(given):  # which are no options of a release
        answers.append(page.post("/release", press="3" * 32, **GIVEN, **given))
    for answer in answers:
        assert (answer.status, said in answer.text) == (400, True), answer.text
    assert not list(page.folder.glob("*.release"))


def test_a_bad_table_and_an_interrupt_leave_nothing_behind(page):
    (page.folder / "people.csv").write_text("town,age,word\nNord,3,w1\nOst,4,w1\n")
    text = page.released(kind="counts", attribute="town", **GIVEN)
    assert "Nothing was released" in text
    assert "Ost" in text
    assert page.post(f"/job/{'0' * 32}/cancel").status == 303
    with (page.folder / "people.csv").open("w") as stream:
        stream.write("town,age,word\n" + "Nord,3,w1\n" * 3_000_000)
    answer = page.post("/release", press="4" * 32, kind="counts", attribute="town", **GIVEN)
    assert page.post(f"/job/{'4' * 32}/cancel").status == 303
    said = page.ask(answer.headers["Location"], **page.own).text
    assert "Cancelled" in said or "Released" in said
    left = sorted(path.name for path in page.folder.iterdir() if not path.name.startswith("link"))
    assert set(left) <= {"people.csv", "people.toml", "people counts.release"}


def test_a_file_that_is_dropped_is_explained(page):
    assert main(["design", "--n", "4", "--epsilon", "1", "--out", str(page.folder / "m.json")]) == 0
    headers = {**page.own, "Origin": page.origin, "X-Token": page.token}
    body = (page.folder / "m.json").read_bytes()
    page.released(kind="counts", attribute="town", out="a", **GIVEN)
    told = (page.folder / "a.release").read_bytes()
    answer = page.ask("/explained?name=a.release", "POST", told, **headers)
    assert (answer.status, "Released once, with epsilon 1 for each row" in answer.text) == (
        200,
        True,
    )
    answer = page.ask("/explained?name=a.release", "POST", told[:-9], **headers)
    assert (answer.status, "refused" in answer.text) == (400, True)
    answer = page.ask("/explained?name=m.json", "POST", body, **headers)
    assert answer.status == 200
    assert "Audit" in answer.text
    assert str(page.folder.parent) not in answer.text
    for name, said in (("m.exe", "is a file .json"), ("..%2Fm", "is a file .json")):
        answer = page.ask(f"/explained?name={name}", "POST", body, **headers)
        assert (answer.status, said in answer.text) == (400, True)
    del headers["X-Token"]
    assert page.ask("/explained?name=m.json", "POST", body, **headers).status == 403


def test_the_command_refuses_what_is_no_folder(tmp_path, capsys):
    assert main(["page", "--folder", str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err
    assert main(["page", "--port", "70000"]) == 2


# ------------------------------------------------------------------------------------------------
# By somebody with a mouse.


def click(tab: Any, selector: str) -> None:
    """Press the mouse where something is."""
    tab.wait(f"!!document.querySelector({selector!r})")
    place = tab.run(
        f"(() => {{ const one = document.querySelector({selector!r}); one.scrollIntoView("
        '{block: "center"}); const box = one.getBoundingClientRect();'
        " return [box.x + box.width / 2, box.y + box.height / 2] })()"
    )
    given = {"x": place[0], "y": place[1], "button": "left", "clickCount": 1}
    for kind in ("mousePressed", "mouseReleased"):
        tab.command("Input.dispatchMouseEvent", type=kind, **given)


def arrived(tab: Any, path: str) -> None:
    """Wait for a page, and that no rule of accessibility is broken, in light and dark."""
    tab.wait(f"location.pathname.startsWith({path!r}) && document.readyState == 'complete'")
    tab.wait("!!document.querySelector('h1') && !document.querySelector('progress')")
    keeps_rules(tab)


def keeps_rules(tab: Any) -> None:
    """No rule of axe-core is broken, in light and dark, and nothing is wider than the screen."""
    tab.run((files("axe_core_python") / "axe.min.js").read_text() + ";0")
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        tab.command("Emulation.setEmulatedMedia", features=[feature])
        found = tab.run(
            "axe.run().then(found => JSON.stringify(found.violations.map(one => [one.id,"
            " one.nodes.map(node => node.html)])))"
        )
        assert json.loads(found) == []
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")


@in_a_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 420])
def test_somebody_walks_from_the_example_to_an_answer(page, tmp_path, width):
    with browser(tmp_path / "profile") as tab:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.command("Emulation.setDeviceMetricsOverride", **size)
        tab.open(page.address)
        arrived(tab, "/")
        click(tab, "form[action='/example'] button")
        arrived(tab, "/describe")
        click(tab, "input[value='example people.toml']")
        click(tab, "form[action='/question'] button")
        arrived(tab, "/question")
        click(tab, "input[value=means]")
        assert tab.run("document.querySelector('input[name=attribute]').offsetParent === null")
        click(tab, "input[name=number][value=income]")
        click(tab, "input[name=by][value=district]")
        click(tab, "form[action='/privacy'] button")
        arrived(tab, "/privacy")
        assert "the sum of income" in tab.text()
        before = tab.run("document.querySelector('#part table').innerText")
        click(tab, "input[type=range]")
        tab.press("ArrowDown")
        tab.wait(f"document.querySelector('#part table').innerText != {json.dumps(before)}")
        epsilon = tab.run("document.querySelector('input[name=epsilon]').value")
        assert epsilon != "1"
        click(tab, "form[action='/release'] > button")
        arrived(tab, "/job/")
        assert "Released" in tab.text()
        click(tab, "a.button")
        arrived(tab, "/answers")
        assert "mean income where district Old Town" in tab.text()
        tab.wait("document.querySelector('figure img').naturalWidth > 100")
        assert not tab.errors
    released = load_release(page.folder / "example people means.release")
    assert released.promised.startswith(f"epsilon {epsilon}")


def test_what_stands_in_the_boxes_is_released_and_another_name_is_proposed(page):
    shown = page.post("/privacy", kind="counts", attribute="age", epsilon="0,25", **GIVEN).text
    assert 'value="people counts"' in shown
    assert "1.28 times as likely" in shown
    page.released(kind="counts", attribute="age", epsilon="0,25", out="people counts", **GIVEN)
    assert load_release(page.folder / "people counts.release").promised.startswith("epsilon 0.25")
    shown = page.get("/privacy", kind="counts", attribute="age", **GIVEN).text
    assert 'value="people counts 2"' in shown
    said = rf"people counts.release</a>, of {date.today()}: epsilon 0.25 for each row"
    assert said in shown
    assert "people counts.release" in page.get("/").text


@in_a_browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 420])
@pytest.mark.parametrize("path", ["draft", "survey", "perturbed", "nobody"])
def test_somebody_walks_from_a_table_to_what_is_published(page, tmp_path, width, path):
    """From a file that nobody described, in few clicks, each step without a broken rule."""
    (page.folder / "people.toml").unlink()
    if path == "survey":
        pyreadstat = pytest.importorskip("pyreadstat")
        frame = pd.DataFrame({"q1": [1.0, 2.0, 9.0] * 100, "age": [18.0, 40.0, 99.0] * 100})
        labels = {"q1": {1.0: "well", 2.0: "badly", 9.0: "no answer"}}
        missing = {"q1": [9.0], "age": [99.0]}
        file = str(page.folder / "survey.sav")
        pyreadstat.write_sav(frame, file, variable_value_labels=labels, missing_ranges=missing)
    table = "survey.sav" if path == "survey" else "people.csv"
    clicks: list[str] = []

    def pressed(selector: str) -> None:
        clicks.append(selector)
        click(tab, selector)

    begun = time.monotonic()
    with browser(tmp_path / "profile") as tab:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.command("Emulation.setDeviceMetricsOverride", **size)
        tab.open(page.address)
        arrived(tab, "/")
        pressed(f"input[value='{table}']")
        pressed("form[action='/describe'] button")
        arrived(tab, "/describe")
        if path == "survey":
            pressed("select[name='kind:1']")
            for _ in range(3):  # labels, labels in an order, whole numbers
                tab.press("ArrowDown")
            tab.press("Enter", "\r")
            tab.wait("document.querySelector('select[name=\"kind:1\"]').value == 'whole'")
            for name, text in (("low", "18"), ("high", "98")):
                pressed(f"input[name='{name}:1']")
                tab.type(text)
            look(tab, tmp_path, "described", width)
        else:
            pressed("input[name=public]")
            pressed("form[action='/draft'] button")
            tab.wait("location.search.includes('draft=')")
            arrived(tab, "/describe")
            assert "The draft: look through it" in tab.text()
        pressed("form[action='/schema'] button")
        arrived(tab, "/question")
        if path in ("perturbed", "nobody"):
            pressed({"perturbed": "input[value=perturbed]", "nobody": "input[value=nobody]"}[path])
        pressed("input[name=attribute][value=age]")
        pressed("form[action='/privacy'] button")
        arrived(tab, "/privacy")
        tab.wait("[...document.images].every(one => one.complete && one.naturalWidth)")
        look(tab, tmp_path, "privacy", width)
        pressed("form[action='/release'] > button")
        arrived(tab, "/job/")
        look(tab, tmp_path, "done", width)
        if path in ("draft", "survey"):
            pressed("a.button")
            arrived(tab, "/answers")
            tab.wait("[...document.images].every(one => one.complete && one.naturalWidth)")
            look(tab, tmp_path, "answers", width)
        else:
            assert "Save it" in tab.text()
        assert not tab.errors
    assert len(clicks) <= 25
    assert time.monotonic() - begun < 180


def look(tab: Any, folder: Path, name: str, width: int) -> None:
    """A picture for who looks."""
    tab.look(folder / f"{name}.png", width, dark=width < 1000)

"""The page of a survey, driven in a browser as a person would."""

from __future__ import annotations

import base64
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html import escape
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.survey import make_page
from examples.survey.make_page import write_page
from frequency import GRR, OLH, Boolean, Categorical, Dates, Numeric, Schema, Survey, Text
from frequency.heavy import PrefixExtension
from frequency.marginals import InpEM
from frequency.schema import Domain
from frequency.storage import save_protocol
from tests.browser import CHROMIUM, Browser, browser
from tests.survey.collector import Collector, lines_of

in_a_browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")

ORIGIN = Categorical("origin", ["EWR", "JFK", "LGA"])
EVERYTHING = Schema(
    [
        Categorical("carrier", ['<b>"&', "UA"], missing="item", outside="item"),
        Boolean("first", missing="skip"),
        Numeric("delay", low=-30, high=29, bins=3, whole=True, unit="minutes", missing="item"),
        Numeric("distance", [0, 0.5, 10], outside="item"),
        Dates("day", "2013-01-01", "2013-12-31", "month", outside="clip", missing="item"),
        Dates("hour", "2013-01-01 05:00", "2013-01-01 08:00", "hour"),
    ]
)
GIVEN = {"carrier": "UA", "first": "yes", "delay": "-7", "distance": "0.25"}
GIVEN |= {"day": "2013-02-28", "hour": "2013-01-01T06:30"}


def everything() -> Survey:
    domain = Domain(dict(zip(EVERYTHING.names, EVERYTHING.sizes, strict=True)))
    return Survey(InpEM(domain, 2, 150.0), EVERYTHING)  # 25 an attribute: always the truth


def written(survey: Any, place: Path, questions: dict[str, str] | None = None) -> Path:
    save_protocol(place / "protocol.json", survey)
    write_page(place / "protocol.json", place / "page", "A <survey>", questions or {})
    return place / "page"


class Parsed(HTMLParser):
    """The elements of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


def test_a_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = written(everything(), tmp_path, {"day": "Which <day>?"})
    elements = Parsed(page / "index.html").elements
    for tag, given in elements:
        for name in ("src", "href"):
            link = given.get(name)
            assert link is None or link == "data:," or (page / link).is_file(), (tag, link)
    text = (page / "index.html").read_text(encoding="utf-8")
    assert "A &lt;survey&gt;" in text
    assert "Which &lt;day&gt;?" in text
    assert "<b>" not in text
    for path in page.rglob("*.js"):
        assert "http" not in path.read_text(encoding="utf-8")
    assert (page / "protocol.json").read_bytes() == (tmp_path / "protocol.json").read_bytes()


def test_each_question_has_a_label_and_takes_what_the_schema_takes(tmp_path: Path) -> None:
    elements = Parsed(written(everything(), tmp_path) / "index.html").elements
    controls = {given["data-name"]: given for _, given in elements if "data-name" in given}
    labels = {given.get("for") for tag, given in elements if tag == "label"}
    assert list(controls) == list(EVERYTHING.names)
    assert {given["id"] for given in controls.values()} <= labels
    kinds = {
        name: (given.get("type"), given.get("min"), given.get("max"), given.get("step"))
        for name, given in controls.items()
    }
    assert kinds == {
        "carrier": (None,) * 4,
        "first": (None,) * 4,
        "delay": ("number", "-30", "29", "1"),
        "distance": ("number", None, None, "any"),
        "day": ("date", None, None, None),
        "hour": ("datetime-local", "2013-01-01T05:00", "2013-01-01T08:59", None),
    }


def test_what_is_no_survey_has_no_page(tmp_path: Path) -> None:
    save_protocol(tmp_path / "protocol.json", GRR(3, 1.0))
    with pytest.raises(SystemExit, match="a survey is needed"):
        write_page(tmp_path / "protocol.json", tmp_path / "page", "A survey", {})
    save_protocol(tmp_path / "protocol.json", Survey(GRR(3, 1.0), Schema([ORIGIN])))
    with pytest.raises(SystemExit, match="no attribute 'nothing'"):
        write_page(tmp_path / "protocol.json", tmp_path / "page", "A survey", {"nothing": "?"})
    for name, text in (("damaged.json", "{}"), ("none.json", None)):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(SystemExit, match=name):
            write_page(tmp_path / name, tmp_path / "page", "A survey", {})
    assert not (tmp_path / "page").exists()


TEXTS = Path(make_page.__file__).parent / "texts.en.json"


@pytest.mark.parametrize("language", ["de", "a file"])
def test_a_page_is_in_another_language(tmp_path: Path, language: str) -> None:
    """And says nothing in English: each text of it is of the file."""
    texts = json.loads(TEXTS.read_text(encoding="utf-8"))
    if language == "a file":  # of texts in capitals, but for their places
        shouted = {
            name: re.sub(r"(\{\w+\})|.", lambda one: one[1] or one[0].upper(), text)
            for name, text in texts.items()
        }
        (tmp_path / "loud.json").write_text(json.dumps(shouted | {"lang": "en-GB"}))
    save_protocol(tmp_path / "protocol.json", everything())
    name = "de" if language == "de" else str(tmp_path / "loud.json")
    write_page(tmp_path / "protocol.json", tmp_path / "page", "1", {}, name)
    text = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert f'<html lang="{"de" if language == "de" else "en-GB"}">' in text
    assert ">MAKE MY REPORT<" in text or ">Meinen Bericht erstellen<" in text
    for name, said in texts.items():
        parts = [part.strip() for part in re.split(r"\{\w+\}", escape(said))]
        longest = max(parts, key=len)
        assert len(longest) < 9 or longest not in text, name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"send": None}, "there is no text 'send', in English: Send"),
        ({"please": "Please."}, "'please' needs the places of the English one"),
        ({"greeting": "Hello"}, "no page says 'greeting'"),
        ({"send": 3}, "no record of texts"),
    ],
)
def test_texts_that_lack_something_are_refused(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    texts = json.loads(TEXTS.read_text(encoding="utf-8")) | change
    path = tmp_path / "texts.json"
    path.write_text(json.dumps({name: text for name, text in texts.items() if text is not None}))
    save_protocol(tmp_path / "protocol.json", everything())
    with pytest.raises(SystemExit, match=re.escape(said)):
        write_page(tmp_path / "protocol.json", tmp_path / "page", "1", {}, str(path))
    assert not (tmp_path / "page").exists()
    with pytest.raises(SystemExit, match="nowhere"):
        write_page(tmp_path / "protocol.json", tmp_path / "page", "1", {}, "nowhere")


# -------------------------------------------------------------------------------- in a browser

COUNTED = """
globalThis.draws = 0;
const real = Crypto.prototype.getRandomValues;
Crypto.prototype.getRandomValues = function (array) {
  globalThis.draws += 1;
  return real.call(this, array);
};
"""


class Server(ThreadingHTTPServer):
    """Serves a page, and answers reports as it is told: None ends the connection."""

    def __init__(self, page: Path) -> None:
        self.answers: list[int | None] = []
        self.posts: list[tuple[str, bytes]] = []
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(page)))


class Handler(SimpleHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.headers["Idempotency-Key"], body))
        status = self.server.answers.pop(0) if self.server.answers else 200
        if status is None:
            self.close_connection = True
            return
        self.send_response(status)
        self.end_headers()
        self.wfile.write(b"the reason")

    def log_message(self, *given: Any) -> None:
        pass


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as made:
        made.command("Page.addScriptToEvaluateOnNewDocument", source=COUNTED)
        yield made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    page = written(Survey(GRR(3, "1.0986"), Schema([ORIGIN])), tmp_path, {"origin": "Where from?"})
    with serving(page) as made:
        yield made


@pytest.fixture
def asking(tmp_path: Path) -> Iterator[Server]:
    """The page that asks everything."""
    with serving(written(everything(), tmp_path)) as made:
        yield made


@contextmanager
def serving(page: Path) -> Iterator[Server]:
    with Server(page) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()


def opened(tab: Browser, server: Server, part: str = "questions") -> None:
    tab.errors.clear()
    tab.open(f"http://127.0.0.1:{server.server_port}/")
    tab.wait(f"document.readyState === 'complete' && {visible(part)}")


def visible(part: str) -> str:
    return f"document.querySelector('#{part}')?.hidden === false"


def answer(tab: Browser, **given: str) -> None:
    """Fill in the form, and submit it."""
    for name, value in given.items():
        tab.run(f"document.querySelector('[data-name={name}]').value = {json.dumps(value)}")
    click(tab, "[type=submit]")


def click(tab: Browser, selector: str) -> None:
    tab.run(f"document.querySelector({json.dumps(selector)}).click()")


def told(tab: Browser) -> dict[str, str]:
    """What the page says that the report says, by question."""
    found = tab.run(
        "[...document.querySelectorAll('#said dt')].map((one) =>"
        " [one.textContent, one.nextSibling.textContent])"
    )
    return dict(found)


def travelling(tab: Browser) -> bytes:
    return bytes.fromhex(tab.run("document.querySelector('#bytes').textContent"))


@in_a_browser
def test_an_answer_is_asked_shown_sent_and_counted(tab: Browser, tmp_path: Path) -> None:
    survey = Survey(GRR(3, "1.0986"), Schema([ORIGIN]))
    page = written(survey, tmp_path, {"origin": "Where from?"})
    folder = tmp_path / "reports"
    with Collector(tmp_path / "protocol.json", folder, page) as collector:
        tab.errors.clear()
        tab.open(collector.address)
        tab.wait(visible("questions"))
        assert "Where from?" in tab.text()
        answer(tab, origin="JFK")
        tab.wait(visible("report"))
        report = travelling(tab)
        assert told(tab) == {"Where from?": ORIGIN.labels[report[-1]]}
        assert "at most a factor of 3.00" in tab.text()
        assert (
            "the true answer with a probability of 60 %, and each other one with 20 %" in tab.text()
        )
        click(tab, "#send")
        tab.wait(visible("thanks"))
        assert "Thank you" in tab.text()
        assert tab.errors == []
    ((stored, _),) = lines_of(folder)
    assert base64.b64decode(stored) == report
    assert survey.wire == report[:8]
    reports = np.frombuffer(report[8:], survey.report_dtype)
    assert survey.aggregate(reports).counts.tolist() == [int(k == report[8]) for k in range(3)]


@pytest.mark.slow
@in_a_browser
def test_wrong_answers_are_refused_before_anything_is_drawn(tab: Browser, asking: Server) -> None:
    opened(tab, asking)
    before = tab.run("draws")
    wrong = [
        {},
        GIVEN | {"carrier": ""},
        GIVEN | {"delay": "30"},
        GIVEN | {"delay": "2.5"},
        GIVEN | {"delay": "much"},
        GIVEN | {"distance": ""},
        GIVEN | {"day": ""},
        GIVEN | {"day": "2013-02-30"},
        GIVEN | {"hour": "2013-01-01T09:00"},
    ]
    for given in wrong:
        opened(tab, asking)
        answer(tab, **given)
        bad = tab.run("[...document.querySelectorAll('[aria-invalid=true]')].map((e) => e.id)")
        assert len(bad) == (len(GIVEN) if given == {} else 1), given
        errors = tab.run("[...document.querySelectorAll('.error')].filter((e) => !e.hidden).length")
        assert errors == len(bad)
        assert tab.run("document.activeElement.id") == bad[0]
        assert tab.run("draws") == before
        assert tab.run(visible("questions"))
    answer(tab, **GIVEN)  # and the last one, corrected
    tab.wait(visible("report"))
    assert tab.run("draws") > before
    assert asking.posts == []


@pytest.mark.slow
@in_a_browser
def test_answers_of_every_kind_mean_what_the_schema_says(tab: Browser, asking: Server) -> None:
    """At an epsilon at which a report says the truth."""
    others: list[tuple[dict[str, str], list[str], dict[str, str | None]]] = [
        ({}, [], {}),
        ({"carrier": "outside", "distance": "-3", "day": "2099-01-01"}, [], {}),
        ({"carrier": '<b>"&'}, ["delay", "day"], {"delay": None, "day": None}),
    ]
    for changed, absent, meant in others:
        opened(tab, asking)
        for name in absent:
            place = EVERYTHING.names.index(name)
            click(tab, f"#question-{place}-absent")
        answer(tab, **GIVEN) if not changed else answer(tab, **(GIVEN | changed))
        tab.wait(visible("report"))
        number = int.from_bytes(travelling(tab)[8:], "little")
        items = np.unravel_index(number, EVERYTHING.sizes)
        table: dict[str, list[Any]] = {
            name: [value] for name, value in (GIVEN | changed | meant).items()
        }
        for column in ("delay", "distance"):
            table[column] = [None if one is None else float(one) for one in table[column]]
        expected = [int(column[0]) for column in EVERYTHING.encode(table).columns]
        assert [int(item) for item in items] == expected
        attributes: list[Any] = list(EVERYTHING)
        labels = [one.item_labels[item] for one, item in zip(attributes, items, strict=True)]
        names = {"outside": "Something else", "missing": "No answer"}
        shown = [names.get(label, label) for label in labels]
        shown[2] += " minutes" if meant == {} else ""
        assert list(told(tab).values()) == shown


@in_a_browser
def test_who_skips_sends_nothing(tab: Browser, asking: Server) -> None:
    opened(tab, asking)
    before = tab.run("draws")
    tab.run("document.querySelector('[data-name=first] [data-absent]').selected = true")
    answer(tab, **{name: value for name, value in GIVEN.items() if name != "first"})
    tab.wait(visible("unsent"))
    assert tab.run("draws") == before
    assert asking.posts == []


@in_a_browser
@pytest.mark.parametrize(
    ("survey", "refused", "given"),
    [
        (Survey(OLH(3, 1.0), Schema([ORIGIN])), "", "JFK"),
        (
            Survey(PrefixExtension(16, 2.0, text=True), Schema([Text("word", bytes=2)])),
            "éa",  # of three bytes
            "é",
        ),
    ],
    ids=["OLH", "PrefixExtension"],
)
def test_bits_are_shown_of_reports_that_are_no_answers(
    tab: Browser, tmp_path: Path, survey: Survey, refused: str, given: str
) -> None:
    (name,) = survey.schema.names
    with serving(written(survey, tmp_path)) as server:
        opened(tab, server)
        answer(tab, **{name: refused})
        assert tab.run(visible("questions"))
        assert f"Please give {'a text of at most 2 bytes' if refused else 'one of'}" in tab.text()
        answer(tab, **{name: given})
        tab.wait(visible("report"))
        payload = travelling(tab)[8:]
        bits = " ".join(f"{byte:08b}" for byte in payload)
        assert told(tab) == {f"These {8 * len(payload)} bits": bits}


@pytest.mark.slow
@in_a_browser
def test_a_report_is_drawn_once_and_sent_until_it_is_acknowledged(
    tab: Browser, server: Server
) -> None:
    server.answers = [None, 503]
    opened(tab, server)
    answer(tab, origin="JFK")
    tab.wait(visible("report"))
    first, draws = travelling(tab), tab.run("draws")
    for _ in range(3):  # the same answers give the same report
        click(tab, "#back")
        answer(tab, origin="JFK")
        assert (travelling(tab), tab.run("draws")) == (first, draws)
    click(tab, "#send")
    tab.wait(visible("sending"))
    tab.wait(visible("thanks"), 25)
    assert len(server.posts) == 3
    assert len(set(server.posts)) == 1  # the same key with the same report
    assert server.posts[0][1] == first
    assert len(server.posts[0][0]) == 32
    assert tab.run("document.querySelector('[data-name=origin]').value") == ""


@pytest.mark.slow
@in_a_browser
def test_a_report_outlives_the_page(tab: Browser, server: Server) -> None:
    server.answers = [503]
    opened(tab, server)
    answer(tab, origin="LGA")
    first = travelling(tab)
    click(tab, "#send")
    while not server.posts:
        tab.run("new Promise((done) => setTimeout(done, 20))")
    assert "LGA" not in tab.run("JSON.stringify(localStorage)")  # no answers are stored
    opened(tab, server, "thanks")  # which sends it again
    assert len(server.posts) == 2
    assert set(server.posts) == {(server.posts[0][0], first)}
    opened(tab, server, "thanks")
    assert len(server.posts) == 2
    click(tab, "#next")
    answer(tab, origin="LGA")
    click(tab, "#send")
    tab.wait(visible("thanks"))
    assert server.posts[2][0] != server.posts[0][0]  # another person's


@pytest.fixture
def second(tab: Browser) -> Iterator[Browser]:
    """A second tab of the same browser."""
    made = Browser(tab.pipe)
    yield made
    made.close()


WITHOUT_LOCKS = "Object.defineProperty(Navigator.prototype, 'locks', { value: undefined });"


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize(
    "answers", [[], [503], [None, 503]], ids=["at once", "later", "much later"]
)
@pytest.mark.parametrize("locks", [True, False])
def test_two_tabs_send_one_report(
    tab: Browser, second: Browser, server: Server, answers: list[int | None], locks: bool
) -> None:
    server.answers = answers
    for one in (tab, second):
        if not locks:
            made = one.command("Page.addScriptToEvaluateOnNewDocument", source=WITHOUT_LOCKS)
        opened(one, server)
        if not locks:
            assert one.run("navigator.locks === undefined")
            one.command("Page.removeScriptToEvaluateOnNewDocument", **made)
        answer(one, origin="JFK")
        one.wait(visible("report"))
    shown = {travelling(tab), travelling(second)}
    for one in (tab, second):
        click(one, "#send")
    for one in (tab, second):
        one.wait(visible("thanks"), 25)
        assert one.run("document.querySelector('[data-name=origin]').value") == ""
    assert len(set(server.posts)) == 1  # either's, whichever stores its own first
    assert server.posts[0][1] in shown
    assert len(server.posts) > len(answers)


@in_a_browser
def test_a_tab_sees_what_another_one_has_sent(
    tab: Browser, second: Browser, server: Server
) -> None:
    for one in (tab, second):
        opened(one, server)
        answer(one, origin="JFK")
        one.wait(visible("report"))
    click(tab, "#send")
    for one in (tab, second):
        one.wait(visible("thanks"))
    assert len(server.posts) == 1
    click(second, "#next")
    tab.wait(visible("questions"))
    for one in (tab, second):
        answer(one, origin="LGA")
    click(second, "#send")
    for one in (second, tab):
        one.wait(visible("thanks"))
    assert len(server.posts) == 2
    assert server.posts[1][0] != server.posts[0][0]  # another person's


@pytest.mark.slow
@in_a_browser
def test_a_tab_goes_on_with_what_another_one_has_left(
    tab: Browser, second: Browser, server: Server
) -> None:
    server.answers = [503]
    opened(second, server)
    opened(tab, server)
    answer(second, origin="JFK")
    answer(tab, origin="LGA")
    first = travelling(second)
    click(second, "#send")
    while not server.posts:
        tab.run("new Promise((done) => setTimeout(done, 20))")
    click(tab, "#send")
    second.open("about:blank")  # before it tries again
    tab.wait(visible("thanks"), 25)
    assert set(server.posts) == {(server.posts[0][0], first)}


@in_a_browser
def test_what_the_collector_refuses_is_not_sent_again(tab: Browser, server: Server) -> None:
    server.answers = [422]
    opened(tab, server)
    answer(tab, origin="LGA")
    click(tab, "#send")
    tab.wait(visible("refused"))
    assert "the reason" in tab.text()
    opened(tab, server)
    assert len(server.posts) == 1


@in_a_browser
def test_a_changed_protocol_file_makes_no_report(
    tab: Browser, server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "page" / "protocol.json"
    path.write_text(path.read_text().replace("1.099", "0.999"))
    tab.open(f"http://127.0.0.1:{server.server_port}/")
    tab.wait("document.querySelector('#status')?.textContent.includes('No report can be made')")
    assert not tab.run(visible("questions"))


@pytest.mark.slow
@in_a_browser
def test_a_keyboard_is_enough(tab: Browser, server: Server) -> None:
    opened(tab, server)
    tab.press("Tab")
    assert tab.run("document.activeElement.dataset.name") == "origin"
    tab.press("ArrowDown")
    assert tab.run("document.activeElement.value") == "EWR"
    tab.press("Tab")
    tab.press("Enter", "\r")
    tab.wait(visible("report"))
    assert tab.run("document.activeElement.id") == "report-title"  # which is read aloud
    tab.press("Tab")
    tab.press("Tab")
    assert tab.run("document.activeElement.id") == "send"
    tab.press("Enter", "\r")
    tab.wait(visible("thanks"))
    assert len(server.posts) == 1


CONTRAST = """
(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = channels(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll("main *")]
    .filter((one) => one.checkVisibility() && one.innerText && !one.disabled)
    .map((one) => {
      const pair = [channels(getComputedStyle(one).color), behind(one)].map(light).sort();
      return [(Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05), one.innerText];
    });
})()
"""


@pytest.mark.slow
@in_a_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_can_be_read(
    tab: Browser, asking: Server, tmp_path: Path, width: int, dark: bool
) -> None:
    """On a phone and on a desk, in the light and in the dark."""
    opened(tab, asking)
    tab.look(tmp_path / "form.png", width, dark)
    for part in ("questions", "errors", "report"):
        if part == "errors":
            answer(tab)
        if part == "report":
            answer(tab, **GIVEN)
            tab.wait(visible("report"))
            tab.run("document.querySelector('details').open = true")
        assert tab.run("document.documentElement.scrollWidth <= innerWidth"), part
        contrasts = tab.run(CONTRAST)
        assert len(contrasts) > 5
        assert min(ratio for ratio, _ in contrasts) >= 4.5, min(contrasts)
    assert tab.run("document.documentElement.lang") == "en"
    assert tab.run("[...document.querySelectorAll('select, input')].every((e) => e.labels.length)")

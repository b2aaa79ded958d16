"""The site as a browser shows it: nothing wider than a screen, no picture without words, and a
search that finds.

`make docs` makes the site, and these tests leave pictures of it beside it, in
docs/_build/screenshots.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.browser import CHROMIUM, Browser, browser

BUILD = Path(__file__).parent.parent / "docs" / "_build"
SITE, PICTURES = BUILD / "html", BUILD / "screenshots"
PAGES = {  # with words that are on them
    "index": "Count people without exposing them",
    "gallery": "Gallery",
    "notebooks/central_against_local": "A curator, or nobody",
    "protocols/oracles/grr": "GRR and RR",
    "protocols/counts/index": "Which mechanism?",
    "packages/rangeq.grids": "rangeq.spatial",
    "reference/accounting": "The privacy accountant",
    "search": "Search",
    "benchmarks/maps": "Benchmarks",
    "LIMITS": "What is not promised",
}
WIDTHS = (1280, 400)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="there is no site: `make docs` makes it"
    ),
]

TOO_WIDE = "document.documentElement.scrollWidth - innerWidth"
WITHOUT_WORDS = """
[...document.images].filter((image) => !image.alt.trim() || /\\.(png|svg|jpe?g)$/.test(image.alt))
  .map((image) => image.src.slice(0, 100))
"""
SEARCHED = "/finished|did not match/.test(document.querySelector('#search-results')?.innerText)"
RULES = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
BROKEN = "[...document.images].filter((image) => !image.naturalWidth).map((image) => image.alt)"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


def shown(tab: Browser, page: str, width: int) -> None:
    """Open a page at a width, and wait until all of it is there."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    tab.command("Emulation.setDeviceMetricsOverride", **size)
    tab.open((SITE / page).as_uri() if "?" not in page else f"{SITE.as_uri()}/{page}")
    tab.wait("document.readyState === 'complete'")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_shown_whole(tab: Browser, page: str, width: int) -> None:
    shown(tab, f"{page}.html", width)
    PICTURES.mkdir(exist_ok=True)
    dark = width == WIDTHS[-1]  # one picture in either scheme
    tab.look(PICTURES / f"{page.replace('/', '-')}-{width}.png", width, dark)
    assert tab.run(TOO_WIDE) <= 0
    assert tab.run(WITHOUT_WORDS) == []
    assert tab.run(BROKEN) == []
    text = tab.text()
    assert PAGES[page] in text
    assert f"mechdesign {importlib.metadata.version('mechdesign')}" in " ".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_keeps_the_rules_of_accessibility(tab: Browser, page: str, width: int) -> None:
    shown(tab, f"{page}.html", width)
    tab.run(f"{RULES}; 0")
    found = tab.run("axe.run().then((found) => found.violations.map((rule) => rule.id))")
    assert found == []


@pytest.mark.slow
def test_no_page_is_wider_than_a_narrow_screen(tab: Browser) -> None:
    wrong = {}
    pages = [str(path.relative_to(SITE)) for path in sorted(SITE.rglob("*.html"))]
    for page in pages:
        if page.startswith(("reference/", "genindex")):  # long, and alike: one is looked at above
            continue
        shown(tab, page, WIDTHS[-1])
        found = tab.run(TOO_WIDE), tab.run(WITHOUT_WORDS), tab.run(BROKEN)
        if found[0] > 0 or found[1] or found[2]:
            wrong[page] = found
    assert wrong == {}


def test_what_is_wrong_with_a_page_is_found(tab: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text('<div style="width: 500px">wide</div><img src="none.png" alt="none.png">')
    shown(tab, str(page), 400)
    assert tab.run(TOO_WIDE) > 0
    assert len(tab.run(WITHOUT_WORDS)) == 1
    assert tab.run(BROKEN) == ["none.png"]


@pytest.mark.parametrize(
    ("words", "found", "among"),
    [
        ("epsilon", "limits/epsilon", 1),
        ("suppression", "suppression", 1),
        ("SPSS", "formats", 1),
        ("Excel", "formats", 1),
        ("mean", "means-and-keys", 1),
        ("cell key", "perturbation", 1),
        ("GDPR", "which-tool", 1),
        ("survey weights", "which-tool", 1),
        ("WaveGrid", "protocols/grids/wave-grid", 1),
        ("WaveGrid", "reference/grids", 2),
        ("Ledger", "reference/mechdesign", 3),
        ("geometric mechanism", "protocols/counts/geometric", 1),
        ("heavy hitters", "protocols/heavy/index", 1),
        ("shuffled", "shuffling", 3),
        ("release-table", "commands/tables", 12),
        ("HierarchicalHistogram", "protocols/ranges/hierarchical-histogram", 1),
    ],
)
def test_a_search_finds(tab: Browser, words: str, found: str, among: int) -> None:
    """Among so many first results."""
    shown(tab, f"search.html?q={quote(words)}", 1280)
    tab.wait(SEARCHED)
    links = tab.run("[...document.querySelectorAll('ul.search a')].map((link) => link.href)")
    assert f"{SITE.as_uri()}/{found}.html" in [
        link.partition("#")[0].partition("?")[0] for link in links[:among]
    ]


def test_a_search_for_nothing_finds_nothing(tab: Browser) -> None:
    shown(tab, "search.html?q=zebrafish", 1280)
    tab.wait(SEARCHED)
    assert tab.run("document.querySelectorAll('ul.search a').length") == 0


@pytest.mark.parametrize("width", [1280, 420])
def test_the_first_table_of_comparisons_is_within_its_column(tab: Browser, width: int) -> None:
    shown(tab, "benchmarks.html", width)
    box = "document.querySelector('.table-wrapper')"
    assert tab.run(f"{box}.scrollWidth - {box}.clientWidth") <= 0

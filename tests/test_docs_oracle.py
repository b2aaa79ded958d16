"""The oracle of docs/add/oracle.md passes the suite of all oracles, as the page says."""

from __future__ import annotations

import doctest
import re

from tests.test_docs import DOCS

PAGE = (DOCS / "add" / "oracle.md").read_text(encoding="utf-8")


def code(language: str, defines: str) -> str:
    """The first block of the page that has this definition."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return next(block for block in blocks if defines in block)


session = doctest.DocTestParser().get_examples(code("pycon", "class Exclusion"))
exec(
    "from fractions import Fraction\n"
    + "".join(example.source for example in session)
    + code("python", "class TestExclusion")
)

"""Write what clients in every language must make of values: clients/vectors/values.json.

    python -m tools.value_vectors

A client of a group is given the values of all groups, then the group's own. All words of randomness
are the same, that of which a lie is the truth: so the payload is the item. A result is a payload in
hexadecimal digits, null where the user does not report, or false where the value is refused. What
is right is what `Schema.encode` says of a table with one row, and never what a client does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.clients.value_cases import JSON_VALUES, TRUTH, payload_of, schemas, truthful

FILE = Path(__file__).resolve().parents[1] / "clients" / "vectors" / "values.json"


def text() -> str:
    """The file: a line for the values of all groups, and one for each group."""
    lines = [f'"words":"{TRUTH}"', f'"values":{_line(JSON_VALUES)}', '"groups":[']
    for name, schema, own in schemas():
        found = [payload_of(schema, value) for value in [*JSON_VALUES, *own]]
        results = [one.hex() if isinstance(one, bytes) else one for one in found]
        group = {"name": name, "client": truthful(schema), "own": own, "results": results}
        lines.append(f"{_line(group)},")
    return "{" + "\n".join([",\n".join(lines[:3]), *lines[3:]])[:-1] + "\n]}\n"


def _line(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"), allow_nan=False)


if __name__ == "__main__":
    FILE.write_text(text())

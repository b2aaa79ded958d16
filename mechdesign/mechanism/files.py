"""A mechanism as a file: JSON is exact, and trusted only after all in it has been checked again.

The JSON file holds integer ``weights`` over a common ``denominator`` (rows are outputs), the
claimed ``alpha`` and ``neighbours`` (a `Metric` as ``{"distances": table}``, with null for None),
the certificate, and a SHA-256 digest of the rest. Numbers are strings, decimal or (when long)
hexadecimal, because many JSON readers turn integers into floats. Version 2, which is written where
inputs or outputs are not the counts from 0, says what they are: ``{"counts": [low, high]}``,
``{"bands": [[low, high], ...]}`` or ``{"pairs": [first, second]}``. Version 3, of closed forms,
has in place of a table the name of one, its n, its alpha and its margin. Version 4, of large
tables, says of most entries that they are an entry beside them, or that times alpha, see `packed`.
Version 5, of tables that promise a ``delta`` beside epsilon, is version 2 with that. CSV and NPZ
are float views for other tools; they cannot be loaded.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from mechdesign.approximate_privacy import ApproximatePrivacy, Promise
from mechdesign.base import (
    ANYTHING,
    FLAG,
    FRACTION_TEXT,
    INTEGER_TEXT,
    TEXT,
    Format,
    comma_separated,
    digest_of,
    from_text,
    intact,
    list_of,
    matching,
    one_of,
    optional,
    record,
    replacing,
    row_of,
    shown,
    table_of,
    to_text,
    whole_number,
)
from mechdesign.exceptions import CertificateRejected, InvalidFile, MechanismError
from mechdesign.losses import Costs, Loss, Power
from mechdesign.mechanism.closed_form import LAWS, GeometricLaw, Law
from mechdesign.mechanism.table import IndexTable, Table
from mechdesign.mechanism.values import Bands, CountPairs, Counts, Values
from mechdesign.optimisation.certificate import Certificate
from mechdesign.privacy import DISTANCE_LIMIT, Metric, Privacy
from mechdesign.properties import Property, resolve

# ------------------------------------------------------------------------------------------------
# Limits on a mechanism in a file: the cost of checking it is estimated before it is checked.
#
# A short file can hold numbers that take hours to compare: a long alpha to the power of a distance,
# or denominators without a common factor. The estimates here are in nanoseconds of Python's
# integers on an ordinary machine, and rather too large than too small.


#: Estimated nanoseconds that checking a file may take, for each full or partial megabyte of it.
WORK = 1_000_000_000

MOST_PROPERTIES = 64  #: How many properties a certificate may name.

_PUNCTUATION = re.compile("[^0-9a-fx/]+")  # what separates the numbers in the text of a property

_UNPACKED = 50_000_000  # characters of packed tables, at most, that count as those of a file

_STEP = 400  # nanoseconds for a comparison or a sum of short numbers, and the loop around it

# Nanoseconds for a constraint of a certificate's program: to build it and to hold it in memory.
_CONSTRAINT = 500

_FORMULA = 2_000_000  # nanoseconds for a formula of a closed form, by a limb of its alpha

_ROOT = 700_000  # nanoseconds for the most expensive irrational cost


class Work:
    """The work left for checking the ``content`` of a JSON file: at first `WORK` a megabyte."""

    def __init__(self, content: Any) -> None:
        self._left: float = WORK * -(-len(json.dumps(content)) // 1_000_000)
        self._unpacked = 0

    def unpack(self, characters: int) -> None:
        """Add what a packed table of so many characters would add, up to `_UNPACKED` in all."""
        more = min(characters, _UNPACKED - self._unpacked)
        self._unpacked += more
        self._left += WORK * more // 1_000_000

    def spend(self, nanoseconds: float) -> None:
        """Deduct nanoseconds; ValueError if that is more than what is left."""
        self._left -= nanoseconds
        if self._left < 0:
            raise ValueError(
                "it would take too long to check: its numbers are too long, or too many"
            )

    def multiply(self, times: int, first: int, second: int) -> None:
        """Spend ``times`` products of numbers of so many limbs, and a comparison or sum of each."""
        self.spend(times * (_STEP + 1.5 * first * second))

    def gcd(self, first: int, second: int) -> None:
        """Spend a greatest common divisor of numbers of so many limbs."""
        self.spend(_STEP + 5 * first * second + 40 * (first + second))

    def common(self, fractions: Iterable[str]) -> int:
        """Read fractions; the limbs of the longest numerator over their common denominator."""
        scale, longest = 1, 1
        for text in fractions:
            half = limbs(text)
            self.gcd(half, half)
            value = from_text(text)
            self.gcd(_limbs(scale), _limbs(value.denominator))
            scale = math.lcm(scale, value.denominator)
            longest = max(longest, _limbs(value.numerator))
        return _limbs(scale) + longest


def limbs(text: Any) -> int:
    """An upper bound on the limbs (digits of Python's integers) of a number in this text."""
    return len(text) * 4 // 30 + 1 if isinstance(text, str) else 1


def _limbs(value: int) -> int:
    return value.bit_length() // 30 + 1


def check_affordable(content: dict[str, Any], work: Work) -> None:
    """Refuse a mechanism, as it is in a file, that would take too long to check."""
    if "law" in content:
        _check_closed(content, work)
        return
    rows = content["rows" if "rows" in content else "weights"]
    outputs, inputs = len(rows), max(map(len, rows), default=0)
    numbers = content["numbers"] if "rows" in content else (x for row in rows for x in row)
    entry = max(limbs(content["denominator"]), max(map(limbs, numbers), default=1))
    if "rows" in content:
        work.unpack(sum(map(len, rows)) * len(content["denominator"]))
        work.multiply(outputs * inputs, entry, limbs(content["alpha"]))
    pairs, distances = _pairs(content["neighbours"], inputs)
    alpha = limbs(content["alpha"])
    work.gcd(alpha, alpha)
    # The table: its sums, the common factor of its entries, and the number in a message.
    work.gcd(entry, entry)
    work.multiply(outputs * inputs, entry, entry // 4)
    # The audit. Where all inputs are neighbours, equally far, it looks at one row.
    power = alpha * max(distances, default=1)
    if "delta" in content:
        # Both ways for every two neighbours, and slacks in the program of a certificate
        delta = limbs(content["delta"])
        work.gcd(delta, delta)
        work.multiply(4 * pairs * outputs, entry, alpha)
        work.gcd(entry + alpha, entry + alpha)
        if content["certificate"] is not None:
            work.spend(12 * pairs * outputs * _CONSTRAINT)
    alike = pairs == math.comb(inputs, 2) and len(distances) == 1
    scale = alpha * (max(distances, default=1) - min(distances, default=1)) + 1
    work.spend(pairs * 1000)
    work.multiply(len(distances), power, power)
    work.gcd(entry + power, entry + power)
    compared = 2 * pairs * (1 if alike else outputs)
    work.multiply(compared, entry + scale, 2 * (entry + scale))
    if content["certificate"] is not None:
        work.spend(2 * pairs * outputs * _CONSTRAINT + 2 * len(distances) * inputs**2 * _STEP)
        _certificate(content["certificate"], work, outputs, inputs, entry, power)


def _check_closed(content: dict[str, Any], work: Work) -> None:
    """Refuse a closed form whose numbers are too long, or whose certificate takes too long."""
    alpha = max(map(limbs, (content["alpha"], content["law_alpha"], content["n"])))
    work.gcd(alpha, alpha)
    if content["certificate"] is not None:
        # With multipliers it is checked against the table, which only few counts have.
        n = int(from_text(content["n"])) if content["certificate"]["multipliers"] else 0
        pairs, _ = _pairs(content["neighbours"], n + 1)
        work.spend(2 * pairs * (n + 1) * _CONSTRAINT + _FORMULA * alpha)
        _certificate(content["certificate"], work, n + 1, n + 1, alpha * (n + 1), alpha)


def _certificate(
    content: dict[str, Any], work: Work, outputs: int, inputs: int, entry: int, power: int
) -> None:
    """Deduct the estimate for a certificate, whose constraints are built and combined exactly."""
    cells = outputs * inputs
    properties = content["properties"]
    if len(properties) > MOST_PROPERTIES:
        raise ValueError(f"a certificate with more than {MOST_PROPERTIES} properties")
    for text in properties:
        parameter = max(map(limbs, _PUNCTUATION.split(text)))
        terms = text.count("P[") if isinstance(text, str) else 0
        work.gcd(parameter, parameter)
        work.spend(6 * cells * _CONSTRAINT + 20 * terms * _CONSTRAINT)
        work.multiply(4 * cells + terms, entry, max(parameter, power))
    for name in ("objective", "bound"):
        work.gcd(limbs(content[name]), limbs(content[name]))
    loss = content["loss"]
    prior = work.common(loss["prior"] or ())
    if "costs" in loss:
        cost = work.common(value for row in loss["costs"] for value in row)
    else:
        work.gcd(limbs(loss["power"]), limbs(loss["power"]))
        cost = 100 * max(outputs, inputs).bit_length() // 30 + 4
        work.spend(max(outputs, inputs) * (_ROOT if "/" in loss["power"] else 0))
    work.multiply(cells, entry, cost)
    work.multiply(cells, cost, prior)
    work.gcd(entry + cost + prior, entry + cost + prior)
    chosen = [value for group in content["multipliers"].values() for value in group.values()]
    multiplier = work.common(chosen) + power
    work.multiply(2 * cells + 4 * len(chosen), multiplier, max(power, cost))
    work.multiply(cells, multiplier + cost, cost + prior)


def _pairs(neighbours: Any, inputs: int) -> tuple[int, set[int]]:
    """The number of pairs of neighbours, and their distances."""
    if isinstance(neighbours, dict):
        table = neighbours.get("distances", [])
        upper = [entry for j, row in enumerate(table) for entry in row[:j] if entry is not None]
        distances = {entry for entry in upper if type(entry) is int and 0 < entry <= DISTANCE_LIMIT}
        return len(upper), distances
    if isinstance(neighbours, list):
        return len(neighbours), {1}
    reach = {"adjacent": 1, "all": inputs}.get(neighbours, neighbours)
    reach = min(reach, inputs - 1) if isinstance(reach, int) else 0
    return max(0, reach * (2 * inputs - reach - 1) // 2), {1}


FORMAT = "mechdesign.mechanism"

_PAIR = row_of(whole_number(), whole_number())


def _values_to_json(values: Values) -> dict[str, Any]:
    if isinstance(values, Bands):
        return {"bands": [list(band) for band in values.bands]}
    if isinstance(values, CountPairs):
        return {"pairs": [values.first, values.second]}
    if isinstance(values, Counts):
        return {"counts": [values.low, values.high]}
    raise ValueError(f"{type(values).__name__} cannot be written to a file")


def _values_from_json(content: Any) -> Values:
    ((kind, given),) = content.items()
    if kind == "bands":
        return Bands([tuple(band) for band in given])
    return {"counts": Counts, "pairs": CountPairs}[kind](*given)


def _property(text: str) -> Property:
    try:
        item = resolve(text)
        if item.text != text:
            raise ValueError(f"{shown(text)} is written as {shown(item.text)}")
        return item
    except ValueError as error:
        raise InvalidFile(
            "the certificate needs a property that is not defined here; import what defines it"
            " (in the shell: --import MODULE), or load the table without its certificate:"
            f" {error!s:.200}"
        ) from error


_PRIOR = optional(list_of(FRACTION_TEXT))

_COSTS = list_of(list_of(FRACTION_TEXT))


def loss_to_json(loss: Loss, outputs: Values, inputs: Values) -> dict[str, Any]:
    """Return a loss as JSON values; of one that is no `Power` the costs of these values."""
    common = {"prior": _PRIOR.write(loss.prior), "worst_case": loss.worst_case}
    if isinstance(loss, Power):
        return {"power": to_text(loss.p), "d": loss.d, **common}
    return {"costs": _COSTS.write(loss.costs(outputs, inputs)), **common}


def _loss_from_json(content: Any) -> Loss:
    prior, worst_case = _PRIOR.read(content["prior"]), content["worst_case"]
    if "costs" in content:
        return Costs(_COSTS.read(content["costs"]), prior, worst_case)
    return Power(from_text(content["power"]), content["d"], prior, worst_case)


def _neighbours(given: Any) -> Any:
    if isinstance(given, dict):
        return Metric(given["distances"])
    return [tuple(pair) for pair in given] if isinstance(given, list) else given


_LOSS = {"prior": _PRIOR, "worst_case": FLAG}

_CERTIFICATE = record(
    {
        "loss": replace(
            record({"power": FRACTION_TEXT, "d": whole_number(0), **_LOSS})
            | record({"costs": _COSTS, **_LOSS}),
            read=_loss_from_json,
        ),
        "properties": list_of(replace(TEXT, read=_property, write=lambda item: item.text)),
        "objective": FRACTION_TEXT,
        "bound": FRACTION_TEXT,
        "multipliers": table_of(
            table_of(
                FRACTION_TEXT,
                replace(
                    matching("the number of a constraint", "0|[1-9][0-9]{0,18}"),
                    read=int,
                    write=str,
                ),
            )
        ),
    }
)

# What `described` makes for counts from 0: version 1 of the format.
_FIELDS = {
    "alpha": FRACTION_TEXT,
    "neighbours": replace(
        one_of("adjacent", "all")
        | whole_number(2)
        | list_of(_PAIR)
        | record({"distances": list_of(list_of(optional(whole_number(0))))}),
        read=_neighbours,
        write=lambda n: {"distances": n.distances} if isinstance(n, Metric) else n,
    ),
    "denominator": INTEGER_TEXT,
    "weights": list_of(list_of(INTEGER_TEXT)),
    "certificate": optional(_CERTIFICATE),
}

_COUNTS = replace(
    record({"counts": _PAIR}) | record({"pairs": _PAIR}) | record({"bands": list_of(_PAIR)}),
    read=_values_from_json,
    write=_values_to_json,
)

_VALUES = {"inputs": _COUNTS, "outputs": _COUNTS}  # the fields of version 2 besides

# The fields of version 3, of which those of a law are made one by `_law`
_LAW = {
    "law": one_of(*LAWS),
    "n": INTEGER_TEXT,
    "law_alpha": FRACTION_TEXT,
    "margin": optional(INTEGER_TEXT),
}

_CLOSED = {
    **{name: _FIELDS[name] for name in ("alpha", "neighbours", "certificate")},
    **_LAW,
}

_PACKED = {
    **{name: field for name, field in _FIELDS.items() if name != "weights"},
    **_VALUES,
    "rows": list_of(matching("a row of a packed table", "[#=<>^o]+")),
    "numbers": list_of(INTEGER_TEXT),
}

_VERSIONS = {
    1: _FIELDS,
    2: {**_FIELDS, **_VALUES},
    3: _CLOSED,
    4: _PACKED,
    5: {**_FIELDS, **_VALUES, "delta": FRACTION_TEXT},
}

_LEGIBLE, _CELLS = 100_000, 400  # a table of more characters, about, and more entries is packed

# The certificate is checked only where it is asked for, and all else by `checked`
_LOOSE = Format(
    FORMAT, {version: dict.fromkeys(fields, ANYTHING) for version, fields in _VERSIONS.items()}
)


def save(table: Table, certificate: Certificate | None, path: str | os.PathLike[str]) -> None:
    """Write ``path`` in the format of its suffix: .json, .csv or .npz.

    An existing file is replaced in one step or not at all.
    """
    writers: dict[str, Callable[[IO[bytes], Table], None]] = {
        ".json": partial(_json, certificate),
        ".csv": _csv,
        ".npz": _npz,
    }
    target = Path(path)
    if target.suffix not in writers:
        raise ValueError(
            "a mechanism is saved as .json (exact), .csv or .npz (float views), not as"
            f" {target.name!r}"
        )
    table.audit().require()
    if target.suffix == ".json" and certificate is not None and certificate.multipliers:
        _require_texts(certificate, table)
    with replacing(target) as stream:
        writers[target.suffix](stream, table)


def _require_texts(certificate: Certificate, table: Table) -> None:
    """Raise ValueError for a property whose text is read as other constraints, or not at all."""
    at = IndexTable(table.output_values, table.input_values)

    def stated(item: Property) -> list[tuple[object, ...]]:
        groups = item.constraints(at, certificate.privacy.pure)
        return [(g.cells.tolist(), g.coefficients, g.bound, g.equality) for g in groups]

    for item in certificate.properties:
        try:
            constraints = stated(item)
        except (MechanismError, ValueError):
            continue  # it does not fit the table, which `load` says
        try:
            right = stated(resolve(item.text)) == constraints
        except (MechanismError, ValueError):
            right = False
        if not right:
            raise ValueError(
                f"the file would name the property {type(item).__qualname__} by its text"
                f" {shown(item.text)}, which stands for other constraints, or none: let its text"
                " tell its parameters, as that of mechdesign.properties.OutputRatio does"
            )


def load(
    path: str | os.PathLike[str], *, certificate: bool = True
) -> tuple[Table, Certificate | None]:
    """Read a JSON file, and check digest, table, privacy and, if asked for, certificate."""
    content = _LOOSE.load(path)
    chosen = {key: content[key] for key in _VERSIONS[content["version"]]}
    if not certificate:
        chosen["certificate"] = None
    return checked(chosen, str(path), Work(content))


def checked(content: Any, place: str, work: Work) -> tuple[Table, Certificate | None]:
    """The table and certificate of a mechanism in a file, after every claim in it was checked."""
    with intact(place):
        version = _version(content) if isinstance(content, dict) else 1
        form = record(_VERSIONS[version])
        form.require(content)
        check_affordable(content, work)
        stated = form.read(content)
        alpha, neighbours = stated.pop("alpha"), stated.pop("neighbours")
        privacy: Promise = Privacy(alpha=alpha, neighbours=neighbours)
        if version == 5:
            delta = stated.pop("delta")
            if not delta:
                raise ValueError("a delta of 0 is not stated")
            privacy = ApproximatePrivacy(alpha=alpha, delta=delta, neighbours=neighbours)
        claim = stated.pop("certificate")
        if version == 4:
            packed_rows = stated.pop("rows"), stated.pop("numbers")
            stated["weights"] = unpacked(*packed_rows, stated["denominator"], privacy.alpha)
        if version == 3:
            table = Table.from_law(_law(**stated), privacy.pure)
        else:
            table = Table.from_weights(
                stated.pop("weights"), stated.pop("denominator"), privacy, **stated
            )
        certificate = None if claim is None else Certificate(privacy, **claim)
    table.audit().require()
    if certificate is not None:
        verdict = certificate.verify(table)
        if not verdict:
            raise CertificateRejected(f"{place}: {verdict.reason}")
    return table, certificate


def _version(content: dict[str, Any]) -> int:
    """The version of the format that has these fields."""
    if "law" in content or "rows" in content:
        return 3 if "law" in content else 4
    if "delta" in content:
        return 5
    return 1 if _VALUES.keys().isdisjoint(content) else 2


def packed(table: Table) -> tuple[list[str], list[int]]:
    """Return a character for each entry of a table, in rows, and the entries that need a number.

    Optimal tables are tight: most entries are alpha times that of the next input, or the reverse.
    In the order of rows, "=" is the entry of the input before, "<" alpha times it, ">" it over
    alpha, "^" the entry of the output before, "o" that of the last output and the last input in
    place of the first and so on, which has come already; "#" is the next of the numbers.
    """
    top, bottom = table.privacy.alpha.as_integer_ratio()
    weights, rows, numbers = table.weights, [], []
    for i, row in enumerate(weights):
        mirrored = weights[-1 - i][::-1]
        marks = []
        for j, weight in enumerate(row):
            before = row[j - 1] if j else None
            if before is not None and before == weight:
                mark = "="
            elif before is not None and before * top == weight * bottom:
                mark = "<"
            elif before is not None and before * bottom == weight * top:
                mark = ">"
            elif i and weights[i - 1][j] == weight:
                mark = "^"
            elif mirrored[j] == weight and _has_come(weights, i, j):
                mark = "o"
            else:
                mark = "#"
                numbers.append(weight)
            marks.append(mark)
        rows.append("".join(marks))
    return rows, numbers


def _has_come(weights: Sequence[Sequence[object]], i: int, j: int) -> bool:
    """Whether the entry opposite to entry (i, j) of a table comes before it."""
    return (len(weights) - 1 - i, len(weights[0]) - 1 - j) < (i, j)


def unpacked(
    rows: Sequence[str], numbers: Sequence[int], denominator: int, alpha: Fraction
) -> list[list[int]]:
    """Return the weights of a `packed` table.

    Raises
    ------
    ValueError
        Rows of several lengths, numbers that are too few or too many, a reference to an entry that
        does not exist, or one to a number that alpha does not divide.
    """
    top, bottom = alpha.as_integer_ratio()
    if len({len(row) for row in rows}) != 1:
        raise ValueError("the rows of a packed table are of one length, and one at least")
    left = iter(numbers)
    weights: list[list[int]] = []
    for i, row in enumerate(rows):
        entries: list[int] = []
        weights.append(entries)
        for j, mark in enumerate(row):
            if mark == "#":
                weight, rest = next(left, -1), 0
            elif mark in "=<>" and j:
                up, down = {"=": (1, 1), "<": (top, bottom), ">": (bottom, top)}[mark]
                weight, rest = divmod(entries[-1] * up, down)
            elif mark == "^" and i:
                weight, rest = weights[-2][j], 0
            elif mark == "o" and _has_come(rows, i, j):
                weight, rest = weights[len(rows) - 1 - i][len(row) - 1 - j], 0
            else:
                raise ValueError(f"{mark!r} at output {i}, input {j} refers to no entry")
            if rest or not 0 <= weight <= denominator:
                raise ValueError(f"the entry of output {i}, input {j} is no probability")
            entries.append(weight)
    if next(left, None) is not None:
        raise ValueError("there are more numbers than entries that need one")
    return weights


def _law(law: str, n: int, law_alpha: Fraction, margin: int | None) -> Law:
    """The closed form that a file states."""
    if law == GeometricLaw.name:
        return GeometricLaw(n, law_alpha, margin)
    if margin:
        raise ValueError(f"the closed form {law} has no margin")
    return LAWS[law](n, law_alpha)


def described(table: Table, certificate: Certificate | None) -> dict[str, Any]:
    """The content of a mechanism's JSON file; ValueError if its check would take too long."""
    outputs, inputs, law = table.output_values, table.input_values, table.law
    stated: dict[str, Any] = {
        "alpha": table.promise.alpha,
        "neighbours": table.promise.neighbours,
        "certificate": None,
    }
    delta = table.promise.delta
    if law is not None:
        margin = law.margin if isinstance(law, GeometricLaw) else 0
        stated |= {"law": law.name, "n": law.n, "law_alpha": law.alpha, "margin": margin}
    else:
        cells, bits = table.outputs * table.inputs, table.denominator.bit_length()
        stated |= {"denominator": table.denominator, "weights": table.weights}
        plain = (Counts(0, table.outputs - 1), Counts(0, table.inputs - 1))
        large = cells > _CELLS and cells * bits // 4 > _LEGIBLE and not delta
        if large:
            del stated["weights"]
            stated["rows"], stated["numbers"] = packed(table)
        if large or delta or (outputs, inputs) != plain:
            stated |= {"inputs": inputs, "outputs": outputs}
        if delta:
            stated["delta"] = delta
    if certificate is not None:
        loss = loss_to_json(certificate.loss, outputs, inputs)
        stated["certificate"] = {**vars(certificate), "loss": loss}
    content: dict[str, Any] = record(_VERSIONS[_version(stated)]).write(stated)
    check_affordable(content, Work(content))
    return content


def _json(certificate: Certificate | None, stream: IO[bytes], table: Table) -> None:
    stated = described(table, certificate)
    content = {"format": FORMAT, "version": _version(stated), **stated}
    content["digest"] = digest_of(content)
    if "weights" not in content:
        stream.write(f"{json.dumps(content, indent=1, sort_keys=True)}\n".encode())
        return
    # One row of the table a line, and not one number a line, so that the file is legible.
    rows = ",\n".join("  " + json.dumps(row) for row in content.pop("weights"))
    head, tail = json.dumps({**content, "weights": []}, indent=1, sort_keys=True).rsplit("[]", 1)
    stream.write(f"{head}[\n{rows}\n ]{tail}\n".encode())


def _csv(stream: IO[bytes], table: Table) -> None:
    rows = ([i, *(repr(entry) for entry in row)] for i, row in enumerate(table.matrix.tolist()))
    stream.write(
        comma_separated([["output", *(f"input {j}" for j in range(table.inputs))], *rows]).encode()
    )


def _npz(stream: IO[bytes], table: Table) -> None:
    neighbours = table.promise.neighbours
    described: dict[str, Any] = {"neighbours": neighbours}
    if isinstance(neighbours, Metric):
        described = {
            "distances": [
                [math.inf if d is None else d for d in row] for row in neighbours.distances
            ]
        }
    if table.promise.delta:
        described["delta"] = float(table.promise.delta)
    np.savez(stream, matrix=table.matrix, alpha=float(table.promise.alpha), **described)

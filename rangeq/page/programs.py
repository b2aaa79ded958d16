"""What a release is in Python: a program by the library that does what the commands do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rangeq.central.choice import usual_task
from rangeq.page.choices import KEYS, Choices, pointed

_RNG = "rng = None  # secret random numbers, of the operating system"

_RELEASES = {
    "counts": "Release.draw(schema, mechanism, counts, rng{rows})",
    "means": "Release.draw(schema, mechanism, counts, rng{rows}, sums=sums)",
    "quantiles": "ReleasedQuantiles.draw(schema, mechanism, counts, rng{rows})",
    "keys": "ReleasedKeys.draw(schema, mechanism, counts, rng, persons={persons})",
}


def python(work: Choices, folder: Path) -> str:
    """Return a program that does what the commands do."""
    schema = work.asked(folder)
    work.commands(folder)  # which refuses what cannot be released
    start = f"schema = Schema.load({_text(work.schema)}).project({_text([*schema.names])})"
    if work.trust == "nobody":
        task = _text(work.task(schema))
        return _program(
            {"frequency.planning.survey_plan": ["plan_survey"], "frequency.schema": ["Schema"]}
            | {"frequency.storage": ["save_protocol"]},
            start,
            f"found = plan_survey({task}, schema, n={work.expected}, epsilon={_epsilon(work)})",
            "print(found)",
            f"save_protocol({_text(work.written)}, found.survey)",
        )
    if work.kind == "perturbed":
        return _perturbing(work, folder, schema.names)
    return _releasing(work, usual_task(schema, work.kind == "quantiles"), start)


def notebook(cells: Sequence[str]) -> str:
    """Return programs as the cells of a Jupyter notebook."""
    empty: dict[str, Any] = {"metadata": {}, "execution_count": None, "outputs": []}
    return json.dumps(
        {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {},
            "cells": [
                {"id": f"cell-{k}", "cell_type": "code", **empty, "source": cell.splitlines(True)}
                for k, cell in enumerate(cells)
            ],
        },
        indent=1,
    )


def asking(work: Choices) -> str:
    """Return a program that asks what was released."""
    if work.ending != ".release":
        return f"print(open({_text(work.written)}).read())\n"
    of = {"means": "estimate", "counts": "estimate", "quantiles": "values", "keys": "estimate"}
    return (
        "from rangeq.central import load_release\n\n"
        f"released = load_release({_text(work.written)})\nprint(released.{of[work.kind]})\n"
    )


def _releasing(work: Choices, task: str, start: str) -> str:
    """A curator's release."""
    most, kind, epsilon = work.most, work.kind, _epsilon(work)
    of_row = f"Fraction({epsilon}) / {most}" if most > 1 else f"Fraction({epsilon})"
    lines, counted = [_RNG, start], "schema"
    central = [_RELEASES[kind].partition(".")[0]]
    names: dict[str, list[str]] = {"frequency.schema": ["Schema"], "fractions": ["Fraction"]}
    if kind == "means":
        counted = "sums"
        lines += [
            f"sums = GroupedSums(schema, {len(work.number)})",
            f"promise = for_each_row(Privacy.from_epsilon({epsilon}), {most})",
            "mechanism = sums.best([promise])",
        ]
        central += ["GroupedSums", "for_each_row"]
        names["mechdesign"], names["fractions"] = ["Privacy"], []
        count = "counts = sums.count({rows}, mechanism)"
    elif kind == "keys":
        delta = _text(pointed(work.delta))
        lines += [f"mechanism = key_rules({epsilon}, {delta}, {most})[0]  # the best"]
        central += ["KeysOfPersons" if work.person else "count_keys", "key_rules"]
        names["fractions"] = []
        count = "counts = count_keys(schema, {rows})"
    else:
        asked = f", q={work.fractions!r}" if kind == "quantiles" else ""
        lines += [f"found = plan({task!r}, schema, epsilon={of_row}{asked})", "print(found)"]
        lines += ["mechanism = found.best.protocol"]
        names["mechdesign"] = ["plan"]
        central += ["count_cells"]
        count = "counts = count_cells(schema, {rows})"
    names["frequency.storage.table"] = ["applied"]
    table = _text(work.table)
    if work.person:
        person = _text(work.person)
        columns = f"dict.fromkeys([*schema.names, {person}])"
        persons = "KeysOfPersons(schema, {}, rng)" if kind == "keys" else "RowsOfPersons({}, rng)"
        block = "block" if kind == "keys" else f"{counted}.encode(block)"
        add = f"persons.add(Column({person}, block[{person}]), {block})"
        names["frequency.schema.column"] = ["Column"]
        lines += [f"persons = {persons.format(most)}"]
        lines += [f"for _ in applied({table}, {columns}, lambda block: {add}):\n    pass"]
        if kind == "keys":
            count = "counts = persons.counts()"
        else:
            central += ["RowsOfPersons"]
        rows = "persons.kept()"
    else:
        rows = f"applied({table}, schema.names, {counted}.encode)"
    lines += [count.format(rows=rows)]
    out = _text(work.written)
    told = f", rows={most}" if work.person else ""
    draw = f"released = {_RELEASES[kind].format(rows=told, persons=bool(work.person))}"
    if work.ledger:
        names.setdefault("mechdesign", []).append("Ledger")
        cost = "mechanism.cost" if kind == "keys" else epsilon
        lines += [f"ledger = Ledger.open({_text(work.ledger)})"]
        lines += [f"with ledger.publishing({cost}, {out}, {out}) as path:"]
        lines += [f"    {draw}", "    released.save(path)"]
    else:
        lines += [draw, f"released.save({out})"]
    return _program({**names, "rangeq.central": central}, *lines, "print(released.promised)")


def _perturbing(work: Choices, folder: Path, by: Sequence[str]) -> str:
    """A table with the noise of cell keys."""
    (largest, noise, blocked), (keyed, table) = work.rules, work.aside
    rules = f'{largest}, noise={noise}, objective="delta", epsilon={_epsilon(work)}, protected=1'
    zeros = f", blocked={blocked}, keep_zeros=True" if blocked else ""
    lines = [
        f"design = design_perturbation({rules}{zeros})",
        f"table = scattered(design.rounded({KEYS}).table)",
        f"table.write({_text(table)})",
    ]
    names = ["design_perturbation", "perturb", "read_people", "scattered"]
    if not (folder / keyed).exists():
        names += ["write_with_keys"]
        key = f'"record key", {KEYS}'
        lines += [f"write_with_keys(Path({_text(work.table)}), Path({_text(keyed)}), {key})"]
    columns = _text([*by])
    lines += [
        f'labels, keys = read_people(Path({_text(keyed)}), {columns}, "record key")',
        f"published = perturb(table, labels, keys, columns={columns}, totals=True)",
        f"published.write({_text(work.written)})",
    ]
    return _program({"pathlib": ["Path"], "mechdesign.perturbation": names}, *lines)


def _program(names: dict[str, list[str]], *lines: str) -> str:
    """Imports, those of the standard library first, and lines."""
    standard = ("fractions", "pathlib")
    ordered = sorted(names, key=lambda module: (module not in standard, module))
    imports = {
        own: [
            f"from {m} import {', '.join(sorted(names[m]))}"
            for m in ordered
            if names[m] and (m in standard) == own
        ]
        for own in (True, False)
    }
    parts = [imports[True], imports[False], lines]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _epsilon(work: Choices) -> str:
    return _text(pointed(work.epsilon))

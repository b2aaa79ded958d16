"""The report, in Markdown: page.md is its text, and this file makes the tables."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from peers.environments import Peer
from peers.tasks import (
    EPSILON,
    FULL,
    LARGEST_COUNT,
    MANY,
    Answers,
    Results,
    Size,
    count_probabilities,
    oracle_theory,
)

NONE = "–"
TEMPLATE = Path(__file__).with_name("page.md")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def short(number: float) -> str:
    """Three digits, with k for thousands and M for millions."""
    for unit, letter in ((1e6, " M"), (1e3, " k")):
        if number >= 0.9995 * unit:
            return f"{number / unit:.3g}{letter}"
    return f"{number:.3g}"


def values(answers: Answers | None, name: str) -> list[float]:
    return [answer["value"][name] for answer in answers or [] if "value" in answer]


def error_of(answers: Answers | None) -> str | None:
    return next((answer["error"] for answer in answers or [] if "error" in answer), None)


def rate(answers: Answers | None) -> str:
    """Median, least and largest."""
    if error := error_of(answers):
        return f"fails: {error}"
    found = values(answers, "rate")
    return (
        f"{short(statistics.median(found))} ({short(min(found))} to {short(max(found))})"
        if found
        else NONE
    )


def root(answers: Answers | None, unit: float = 1.0) -> str:
    """RMSE with its standard error, and the number of repeats."""
    if error := error_of(answers):
        return f"fails: {error}"
    if not answers:
        return NONE
    mean, off = answers[0]["value"]["mse"]
    rmse = math.sqrt(mean)
    return f"{rmse / unit:.3g} ± {off / (2 * rmse) / unit:.1g}" if rmse else "0"


# --------------------------------------------------------------------------------------- sections


def machine() -> str:
    model = platform.processor() or platform.machine()
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            line.split(":")[1].strip() for line in cpuinfo if line.startswith("model name")
        )
    except (OSError, StopIteration):
        pass
    return (
        f"{model}, {os.cpu_count()} cores of which one is used, {platform.system()}, Python"
        f" {platform.python_version()}"
    )


def failures(features: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Features by the error that they fail with."""
    found: dict[str, list[str]] = {}
    for name, error in features.items():
        if error:
            found.setdefault(error, []).append(name)
    return found


def words(features: Mapping[str, str | None]) -> str:
    return (
        "; ".join(f"{', '.join(names)}: `{error}`" for error, names in failures(features).items())
        or "nothing"
    )


def glance(peers: Sequence[Peer], records: Mapping[str, dict[str, Any]]) -> str:
    rows = []
    for peer in peers:
        record = records[peer.adapter]
        if error := record.get("error"):
            rows.append([peer.package, NONE, f"**no**: `{error}`", NONE, NONE, NONE])
            continue
        features, versions = record["features"], record["versions"]
        works = sum(not error for error in features.values())
        steps = []
        for step in record["steps"]:
            left = failures(step["features"])
            steps.append(
                f"`{step['requirements']}`"
                + (f"; then fails: {words(step['features'])}" if left else ": all work")
            )
        rows.append(
            [
                peer.package + (" (here)" if peer.adapter == "here" else ""),
                f"{versions.get(peer.package, '?')}"
                + (f", numpy {versions['numpy']}" if "numpy" in versions else ""),
                f"yes, {record['seconds']:.0f} s",
                "**no**" if features["import"] else "yes",
                (
                    f"{works} of {len(features)} work; fails: {words(features)}"
                    if works < len(features)
                    else f"all {works} work"
                ),
                "; ".join(steps) or NONE,
            ]
        )
    return table(
        [
            "library",
            "version",
            "installs",
            "imports",
            "features, as installed",
            "measured after adding",
        ],
        rows,
    )


def probes(peers: Sequence[Peer], said: Mapping[str, dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for answers in said.values() for name in answers))
    rows = []
    for peer in peers:
        if answers := said.get(peer.adapter):
            cells = [answers.get(name, {}) for name in names]
            rows.append(
                [
                    peer.package,
                    *(
                        cell.get("value") or (f"`{cell['error']}`" if "error" in cell else NONE)
                        for cell in cells
                    ),
                ]
            )
    return table(["library", *names], rows)


def rates(rows: Mapping[str, Mapping[str, Answers]]) -> str:
    labels = dict.fromkeys(label for cells in rows.values() for label in cells)
    columns = sorted(labels, key=lambda label: not label.startswith("here"))
    return table(
        ["", *columns],
        ([name, *(rate(cells.get(label)) for label in columns)] for name, cells in rows.items()),
    )


def accuracy(rows: Mapping[str, Mapping[str, Answers]], size: Size) -> str:
    theory = oracle_theory(size)

    def lines() -> Iterator[list[str]]:
        for kind, cells in rows.items():
            for label, answers in cells.items():
                if error := error_of(answers):
                    yield [kind, label, f"fails: {error}", "", "", "", ""]
                    continue
                found = answers[0]["value"]
                ratio = math.sqrt(found["mse"][0]) / theory[kind]
                bias, off = found["bias"]
                # Six deviations of ten repeats or more: one false alarm in thousands.
                verdict = "no" if abs(bias) > 6 * off else "yes, as far as seen"
                verdict = verdict if found["repeats"] >= 10 else NONE
                measured = [root(answers, 0.01), f"{100 * theory[kind]:.3g}", f"{ratio:.3f}"]
                yield [
                    kind,
                    label,
                    *measured,
                    f"{100 * bias:+.3f} ± {100 * off:.3f}",
                    f"{verdict} ({found['repeats']})",
                ]

    head = [
        "oracle",
        "library",
        "RMSE, %",
        "theory, %",
        "ratio",
        "mean estimate of items no user has, %",
        "unbiased (repeats)",
    ]
    return table(head, lines())


def errors_and_times(rows: Mapping[str, Mapping[str, Answers]], unit: float) -> str:
    """RMSE and milliseconds of every library that has the kind."""

    def lines() -> Iterator[list[str]]:
        for kind, cells in rows.items():
            for label, answers in cells.items():
                times = answers[0]["value"]["times"] if "value" in answers[0] else []
                spent = (
                    f"{1e3 * statistics.median(times):.3g} ({1e3 * min(times):.3g} to"
                    f" {1e3 * max(times):.3g})"
                    if times
                    else NONE
                )
                yield [kind, label, root(answers, unit), spent, str(len(times))]

    return table(["", "library", "RMSE", "a release, ms", "repeats"], lines())


def heavy(rows: Mapping[str, Mapping[str, Answers]]) -> str:
    def lines() -> Iterator[list[str]]:
        for kind, cells in rows.items():
            for label, answers in cells.items():
                if error := error_of(answers):
                    yield [kind, label, f"fails: {error}", "", ""]
                    continue
                recalls, spent = values(answers, "recall"), values(answers, "server")
                clients = [{"value": {"rate": value}} for value in values(answers, "client")]
                recall = f"{statistics.mean(recalls):.2f} ({min(recalls):g} to {max(recalls):g})"
                yield [
                    kind,
                    label,
                    recall,
                    rate(clients),
                    f"{statistics.median(spent):.3f} ({min(spent):.3f} to {max(spent):.3f})",
                ]

    return table(
        ["protocol", "library", "recall of the top 10", "clients, users/s", "server, s"], lines()
    )


def draws(results: Results, size: Size) -> str:
    from scipy import stats

    def lines() -> Iterator[list[str]]:
        for kind, cells in results["draws"].items():
            law = count_probabilities(kind, EPSILON, 3, 16)
            for label, answers in cells.items():
                tested = results["distribution"][kind].get(label, [])
                fit = NONE
                if tested and "value" in tested[0]:
                    tally = {int(answer): count for answer, count in tested[0]["value"][0].items()}
                    common = [answer for answer, share in law.items() if share * size.draws >= 10]
                    seen = [tally.get(answer, 0) for answer in common]
                    expected = [law[answer] * size.draws for answer in common]
                    rest = size.draws - sum(seen), size.draws - sum(expected)
                    if rest[1] > 1e-9:
                        seen, expected = [*seen, rest[0]], [*expected, rest[1]]
                    fit = f"p = {stats.chisquare(seen, expected).pvalue:.2g}"
                yield [kind, label, rate(answers), fit]

    return table(
        ["geometric noise", "library", "draws/s", f"chi-square of {size.draws} draws"], lines()
    )


def counts(rows: Mapping[str, Mapping[str, Answers]]) -> str:
    from mechdesign.losses import L0, L1
    from peers.adapters import Absent, here

    def lines() -> Iterator[list[str]]:
        for kind, cells in rows.items():
            try:
                mechanism = here.table(kind, LARGEST_COUNT, here.ALPHA)
                exact = [f"{float(mechanism.loss(loss)):.4f}" for loss in (L0(), L1())]
            except Absent:
                exact = [NONE, NONE]
            for label, answers in cells.items():
                if error := error_of(answers):
                    yield [kind, label, f"fails: {error}", "", "", ""]
                    continue
                offs: dict[int, int] = {}
                for true, tally in enumerate(answers[0]["value"]):
                    for answer, count in tally.items():
                        off = abs(int(answer) - true)
                        offs[off] = offs.get(off, 0) + count
                total = sum(offs.values())
                means = [
                    sum(count * f(off) for off, count in offs.items()) / total
                    for f in (bool, float)
                ]
                seconds = [
                    sum(count * f(off) ** 2 for off, count in offs.items()) / total
                    for f in (bool, float)
                ]
                errors = [
                    math.sqrt((square - mean**2) / total)
                    for mean, square in zip(means, seconds, strict=True)
                ]
                shown = [
                    f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True)
                ]
                yield [kind, label, shown[0], exact[0], shown[1], exact[1]]

    return table(["mechanism", "library", "wrong", "exactly", "mean distance", "exactly"], lines())


# ---------------------------------------------------------------------------------------- remarks


LIKE = {
    "client": ("here", "here, one user a call"),
    "server": ("here",),
    "draws": ("here, secure",),
}
"""Our columns that others' speed is compared with; with secure randomness where theirs is."""


def faster(results: Results) -> list[str]:
    """Where another library has the larger median."""
    found: dict[str, list[str]] = {}
    for part, columns in LIKE.items():
        for name, cells in results.get(part, {}).items():
            for label in columns:
                for other, answers in cells.items():
                    ours = "here, secure" if label == "here" and other.endswith("secure") else label
                    theirs, own = values(answers, "rate"), values(cells.get(ours), "rate")
                    if other.startswith("here") or not theirs or not own:
                        continue
                    ratio = statistics.median(theirs) / statistics.median(own)
                    if ratio > 1:
                        found.setdefault(f'{part}: {other} beside "{ours}"', []).append(
                            f"{name}, {ratio:.3g} times"
                        )
    return [f"{pair}: {'; '.join(rows)}" for pair, rows in found.items()]


def nearer(results: Results) -> list[str]:
    """Where another library's mean squared error is significantly lower for the same kind.

    Significant is a difference of more than three standard errors.
    """
    found = []
    for part in ("accuracy", "local ranges", "ranges", "quantiles"):
        for name, cells in results.get(part, {}).items():
            errors = {
                label: answers[0]["value"]["mse"]
                for label, answers in cells.items()
                if "value" in answers[0]
            }
            ours = [label for label in ("here", "here, empirical_bayes") if label in errors]
            for other, (mean, off) in errors.items():
                if not other.startswith("here") and any(
                    mean < errors[label][0] - 3 * math.hypot(off, errors[label][1])
                    for label in ours
                ):
                    beside = (
                        f'{math.sqrt(mean / errors[label][0]):.2f} of "{label}"' for label in ours
                    )
                    found.append(f"{part}, {name}: {other}, RMSE {' and '.join(beside)}")
    return found


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "- nowhere in this run"


def page(
    peers: Sequence[Peer],
    records: Mapping[str, dict[str, Any]],
    said: Mapping[str, dict[str, Any]],
    results: Results,
    size: Size,
) -> str:
    return TEMPLATE.read_text().format(
        machine=machine(),
        size=size,
        trial=(
            ""
            if size == FULL
            else "**A trial: too little is measured for numbers to be quoted.**\n\n"
        ),
        many=MANY,
        glance=glance(peers, records),
        probes=probes(peers, said),
        client=rates(results["client"]),
        server=rates(results["server"]),
        accuracy=accuracy(results["accuracy"], size),
        local_ranges=errors_and_times(results["local ranges"], size.users / 100),
        heavy=heavy(results["heavy"]),
        draws=draws(results, size),
        counts=counts(results["counts"]),
        ranges=errors_and_times(results["ranges"], 1.0),
        quantiles=errors_and_times(results["quantiles"], 0.01),
        faster=bullets(faster(results)),
        nearer=bullets(nearer(results)),
    )

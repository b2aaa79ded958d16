"""The measurements. Repeats of the libraries alternate, so that a slow minute slows them all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from peers.adapters import here
from peers.environments import Worker
from peers.worker import zipf

EPSILON = 1.0  # page.md says it too
DOMAINS = (64, 1024)
FAST = "OLH, 1000 hash functions"
"""pure-ldp's own variant."""
ORACLES = ("GRR", "OUE", "SUE", "OLH", FAST, "HRR", "Subset selection", "CMS", "HCMS")
LARGEST_COUNT = 8
COUNT_EPSILON = -math.log(here.ALPHA)

Answers = list[dict[str, Any]]
Results = dict[str, dict[str, dict[str, Answers]]]
"""For every table, row and column (both as the page heads them) the answers of the worker."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    repeats: int
    budget: float  # seconds of a repeat of clients and draws
    patience: float  # seconds of measuring one accuracy
    users: int  # of accuracies
    heavy_users: int
    draws: int  # of a distribution
    least: int  # repeats of an accuracy
    share: float  # of the reports that servers are measured with

    def reports(self, kind: str, domain: int) -> int:
        """How many reports every server gets: the slowest takes some tenths of a second."""
        slow = kind == "OLH"
        return round(
            self.share
            * (2_000 if slow else 20_000)
            / (1 if domain == DOMAINS[0] else 10 if slow else 4)
        )


FULL = Size(
    repeats=5,
    budget=0.1,
    patience=1.5,
    users=5_000,
    heavy_users=50_000,
    draws=100_000,
    least=10,
    share=1.0,
)
QUICK = Size(
    repeats=2,
    budget=0.01,
    patience=0.0,
    users=1_000,
    heavy_users=5_000,
    draws=2_000,
    least=3,
    share=0.05,
)

LOCAL = {
    "here": ("here", ""),
    "here, secure": ("here", ", secure"),
    "here, one user a call": ("here", ", one by one"),
    "pure-ldp": ("pure_ldp", ""),
    "multi-freq-ldpy": ("multi_freq_ldpy", ""),
    "ldp-toolbox": ("ldp_toolbox", ""),
    "opendp, secure": ("opendp", ""),
}
"""Columns: whose worker is asked, and what is added to the kind."""

SERVERS = {label: column for label, column in LOCAL.items() if not column[1]}
ACCURACIES = {
    "here": ("here", ""),
    "here, empirical_bayes": ("here", ", empirical_bayes"),
    **SERVERS,
}
MANY = 100_000
"""Reports for which our servers are measured beside the few that the others can handle."""

COUNTS = {
    "here, seeded": ("here", ""),
    "here, secure": ("here", ", secure"),
    "opendp, secure": ("opendp", ", secure"),
    "diffprivlib, secure": ("diffprivlib", ", secure"),
    "python-dp, secure": ("python_dp", ", secure"),
    "tmlt.core, secure": ("tmlt_core", ", secure"),
}

CENTRAL = {
    name: (name.replace("-", "_"), "") for name in ("here", "opendp", "diffprivlib", "python-dp")
}
RANGES = {"here": ("here", ""), "ldp-hierarchical-mechanism": ("ldp_hierarchical", "")}
HEAVY = {"here": ("here", ""), "pure-ldp": ("pure_ldp", "")}


def measured(workers: Mapping[str, Worker], size: Size, report: Callable[[str], object]) -> Results:
    results: Results = {}

    def row(
        table: str,
        name: str,
        columns: Mapping[str, tuple[str, str]],
        do: str,
        repeats: int = 1,
        seeded: bool = False,
        **task: Any,
    ) -> None:
        report(f"{table}: {name}")
        cells = results.setdefault(table, {}).setdefault(name, {})
        ours = not name.startswith(FAST)
        asked = {
            label: column
            for label, column in columns.items()
            if column[0] in workers and (ours or column[0] != "here")
        }
        for repeat in range(repeats):
            for label, (adapter, suffix) in list(asked.items()):
                more = {"seed": repeat} if seeded else {}
                answer = workers[adapter].ask(do, **{**task, **more, "kind": task["kind"] + suffix})
                if answer.get("absent"):
                    del asked[label]
                    continue
                cells.setdefault(label, []).append(answer)
                if "error" in answer:
                    del asked[label]

    options: dict[str, Any]
    spent = {"users": size.users, "budget": size.patience, "least": size.least}
    for kind in ORACLES:
        for domain in DOMAINS:
            options = {"kind": kind, "domain": domain, "epsilon": EPSILON, "budget": size.budget}
            row("client", f"{kind}, D = {domain}", LOCAL, "client", size.repeats, **options)
            del options["budget"]
            reports = size.reports(kind, domain)
            name = f"{kind}, D = {domain}, {reports} reports"
            row("server", name, SERVERS, "server", size.repeats, users=reports, **options)
            if reports < MANY and size.share == 1:
                row(
                    "server",
                    name,
                    {f"here, {MANY} reports": ("here", "")},
                    "server",
                    size.repeats,
                    users=MANY,
                    **options,
                )
        options = {"kind": kind, "domain": DOMAINS[0], "epsilon": EPSILON, **spent}
        row("accuracy", kind, ACCURACIES, "accuracy", **options)
    for kind in ("local tree, b = 4", "local, best"):
        options = {"kind": kind, "domain": 64, "epsilon": EPSILON, **spent}
        row("local ranges", kind, RANGES, "ranges", **options)
    for kind in ("PEM", "TreeHist", "SFP"):
        options = {"kind": kind, "bits": 16, "epsilon": 3.0, "users": size.heavy_users, "k": 10}
        row("heavy", kind, HEAVY, "heavy", size.repeats, seeded=True, **options)
    for kind in ("unbounded", "truncated", "Laplace, rounded"):
        options = {"kind": kind, "epsilon": EPSILON, "n": 16}
        row("draws", kind, COUNTS, "draws", size.repeats, budget=size.budget, **options)
        row("distribution", kind, COUNTS, "distribution", true=[3], each=size.draws, **options)
    for kind in ("truncated", "folded", "WM", "EM", "L1 and CM", "L2 and CM"):
        columns = {
            label: column
            for label, column in COUNTS.items()
            if column[0] in ("here", "opendp", "diffprivlib")
        }
        del columns["here, secure"]
        options = {"kind": kind, "epsilon": COUNT_EPSILON, "n": LARGEST_COUNT}
        row(
            "counts",
            kind,
            columns,
            "distribution",
            true=list(range(LARGEST_COUNT + 1)),
            each=size.draws // 10,
            **options,
        )
    for domain in (256, 1024):
        for kind in ("cells", "tree, b = 4", "tree, b = 16", "tree, best"):
            options = {"kind": kind, "domain": domain, "epsilon": EPSILON, **spent}
            row("ranges", f"{kind}, D = {domain}", CENTRAL, "ranges", **options)
    for name, probabilities in (
        ("nine deciles", [k / 10 for k in range(1, 10)]),
        ("median", [0.5]),
    ):
        for kind in ("tree, b = 4", "tree, b = 16", "exponential mechanism", "binary search"):
            options = {"kind": kind, "domain": 256, "epsilon": EPSILON / 10, **spent}
            row(
                "quantiles",
                f"{name}, {kind}",
                CENTRAL,
                "quantiles",
                probabilities=probabilities,
                **options,
            )
    return results


# ----------------------------------------------------------------------------------------- theory


def oracle_theory(size: Size) -> dict[str, float]:
    """The RMSE that theory has for every oracle's accuracy."""
    counts = zipf(DOMAINS[0], size.users)
    named = {kind: kind.split(",")[0] for kind in ORACLES}
    return {
        kind: math.sqrt(here.theory(name, DOMAINS[0], EPSILON, counts))
        for kind, name in named.items()
    }


def count_probabilities(kind: str, epsilon: float, true: int, n: int) -> dict[int, float]:
    """The exact distribution of a private count, except answers below 1e-15."""
    a = math.exp(-epsilon)
    if kind == "Laplace, rounded":
        half = math.exp(-epsilon / 2)
        return {
            true + off: (half - a / half) / 2 * a ** (abs(off) - 1) if off else 1 - half
            for off in range(-40, 41)
        }
    law: dict[int, float] = {}
    for off in range(-40, 41):
        answer = true + off
        if kind == "truncated":
            answer = min(max(answer, 0), n)
        law[answer] = law.get(answer, 0.0) + (1 - a) / (1 + a) * a ** abs(off)
    return law

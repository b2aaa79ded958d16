"""A hundred thousand reports of clients with their own randomness, counted by the server.

The randomness is the system's, and not seeded. False alarms: see `tests.goodness_of_fit`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri

import frequency
import rangeq
from frequency import heavy
from frequency.algebra.hash_functions import Coins
from frequency.clients import load_client
from tests.clients.node import evaluated
from tests.clients.test_laws import changed
from tests.contracts.measure import law
from tests.goodness_of_fit import FALSE_ALARM, goodness
from tests.tape import WORD

pytestmark = pytest.mark.slow

USERS = 100_000


class Asked(NamedTuple):
    """A protocol, the value that all users have, and what a planted error changes."""

    protocol: Any
    value: int
    changed: str


ASKED = {
    "GRR": Asked(frequency.GRR(5, 1.0), 3, "lie"),
    "HRR": Asked(frequency.HRR(6, 1.0), 5, "lie"),
    "OLH": Asked(frequency.OLH(6, 1.0), 2, "lie"),
    "a mixture": Asked(rangeq.HaarHRR(8, 1.0), 5, "lie"),
    "OneBit": Asked(heavy.OneBit(frequency.GRR(4, 1.0), seed=3), 1, "acceptance"),
}
every_protocol = pytest.mark.parametrize("name", ASKED)

IN_NODE = """
import { load, batch, base64 } from "CLIENT/index.js";
const client = load(given.description);
const reports = Array.from({ length: given.users }, () => client.report(given.value));
console.log(JSON.stringify(base64(batch(client, reports))));
"""


def by_node(protocol: Any, description: Any, value: int) -> np.ndarray:
    """Reports that JavaScript makes, in a batch that the server reads."""
    given = {"description": description, "users": USERS, "value": value}
    reports: np.ndarray = protocol.reports_from_bytes(base64.b64decode(evaluated(IN_NODE, given)))
    return reports


def by_device(protocol: Any, description: Any, value: int) -> np.ndarray:
    """Reports of the standard library's client, one after the other."""
    client = load_client(description)
    payloads = (client.privatize_one(value) or b"" for _ in range(USERS))
    return np.frombuffer(b"".join(payloads), dtype=protocol.report_dtype)


every_client = pytest.mark.parametrize("client", [by_device, by_node])


@cache
def published(name: str) -> tuple[dict[Any, int], list[float]]:
    """The cells that reports are counted in, and their exact probabilities, as floats."""
    protocol, value, _ = ASKED[name]
    if name == "OneBit":  # whether the coins draw the item, and whether the report is kept
        lie, truth = (int(weight) / WORD for weight in protocol.channel.parameters["acceptance"])
        cells = {(0, 0): 3 * (1 - lie), (0, 1): 3 * lie, (1, 0): 1 - truth, (1, 1): truth}
        cells = {cell: chance / 4 for cell, chance in cells.items()}
    else:
        cells = law(lambda rng: protocol.privatize([value], rng).tobytes())
    return {cell: k for k, cell in enumerate(cells)}, [float(p) for p in cells.values()]


def cell_of(name: str, reports: np.ndarray) -> Callable[[int], Any]:
    """The cell of each report."""
    if name != "OneBit":
        return lambda user: reports[user : user + 1].tobytes()
    channel = ASKED[name].protocol.channel
    coins = Coins(reports["coins"], channel.seed)
    items = np.full(len(reports), ASKED[name].value)
    likely = channel.inner.coins_likelihood(coins, items).tolist()
    return lambda user: (likely[user], int(reports["bit"][user]))


def fit(name: str, reports: np.ndarray) -> float:
    """The p-value of the reports."""
    places, probabilities = published(name)
    cell, observed = cell_of(name, reports), np.zeros(len(places), dtype=np.int64)
    for user in range(len(reports)):
        observed[places[cell(user)]] += 1
    return goodness(observed, probabilities)


@every_client
@every_protocol
def test_reports_of_clients_have_the_published_law(name: str, client: Any) -> None:
    """And estimates from them are right."""
    protocol, value, _ = ASKED[name]
    reports = client(protocol, protocol.client(), value)
    assert fit(name, reports) > FALSE_ALARM
    estimate = protocol.estimate(protocol.aggregate(reports))
    error = estimate.frequencies - (np.arange(len(estimate.frequencies)) == value)
    alarm = -ndtri(FALSE_ALARM / 2 / len(error))
    assert (np.abs(error) < alarm * np.sqrt(estimate.variances)).all()


@every_client
@every_protocol
def test_a_planted_error_of_a_sixth_shows(name: str, client: Any) -> None:
    protocol, value, key = ASKED[name]

    def less(number: Any) -> Any:
        if isinstance(number, list):
            return [less(one) for one in number]
        return str(int(number) * 5 // 6)

    description = changed(protocol.client(), key, less)
    assert fit(name, client(protocol, description, value)) < FALSE_ALARM

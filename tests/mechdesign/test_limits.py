"""Files below a megabyte that ask for as much work as they can are soon loaded or refused."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest

from mechdesign import Ledger, Mechanism, Privacy, design, named
from mechdesign.base.files import digest_of
from mechdesign.losses import L1
from mechdesign.mechanism import device
from mechdesign.mechanism import files as formats
from mechdesign.mechanism import files as limits
from mechdesign.privacy import Metric
from tests.processes import heard, tell

SECONDS, MEGABYTES = 6, 200
"""Two seconds are promised; tests may share the machine. Of memory, beyond what loading takes."""


@cache
def primes() -> list[int]:
    found = (p for p in count(10007, 2) if all(p % k for k in range(3, 1 + int(p**0.5), 2)))
    return list(islice(found, 6000))


def long(digits: int, seed: int) -> str:
    return hex(pow(seed, digits) % 16**digits | 1 << 4 * digits - 1 | 1)


def uniform(outputs: int, inputs: int) -> dict[str, Any]:
    return {"denominator": str(outputs), "weights": [["1"] * inputs] * outputs}


def metric(inputs: int) -> dict[str, Any]:
    table = [[abs(j - k) for k in range(inputs)] for j in range(inputs)]
    return {"neighbours": {"distances": table}}


def claimed(
    power: str = "0",
    costs: Any = None,
    prior: Any = None,
    properties: Any = (),
    objective: str = "1",
    multipliers: Any = None,
) -> dict[str, Any]:
    loss = {"power": power, "d": 0} if costs is None else {"costs": costs}
    return {
        "certificate": {
            "loss": {**loss, "prior": prior, "worst_case": False},
            "properties": list(properties),
            "objective": objective,
            "bound": "1",
            "multipliers": multipliers or {},
        }
    }


@cache
def long_fraction() -> str:
    return f"{long(240_000, 3)}/{long(240_000, 5)}"


@cache
def coprime() -> list[str]:
    return [f"1/{p}" for p in primes()]


def mechanisms() -> dict[str, dict[str, Any]]:
    """Of files of mechanisms, what is not as usual: a second to make, and for slow tests."""
    return {
        "metric, long alpha": {"alpha": f"0x1/{long(6000, 3)}", **metric(60), **uniform(60, 60)},
        "metric, every distance": {**metric(200), **uniform(20, 200)},
        "metric, certificate": {**metric(250), **uniform(2, 250), **claimed()},
        "long alpha": {"alpha": long_fraction()},
        "long entry, wrong sum": {"denominator": long(400_000, 3), "weights": [[long(400_000, 5)]]},
        "long decimals": {"denominator": "9" * 900_000},
        "wide, all": {"neighbours": "all", **uniform(1, 180_000)},
        "wide, reach": {"neighbours": 1000, **uniform(1, 180_000)},
        "wide, fractional power": {**uniform(1, 100_000), **claimed("9999/100")},
        "square, reach": {"neighbours": 200, **uniform(400, 400)},
        "square, certificate": {**uniform(400, 400), **claimed()},
        "all, certificate": {"neighbours": "all", **uniform(1, 2000), **claimed()},
        "long objective": claimed(objective=long_fraction()),
        "long power": claimed(long_fraction()),
        "many properties": claimed(properties=["WH"] * 100_000),
        "different properties": {
            **uniform(300, 300),
            **claimed(properties=[f"OR:{x}" for x in coprime()]),
        },
        "short name of a long number": claimed(properties=["OR:1e-99999"] * 60),
        "coprime prior": {**uniform(1, len(primes())), **claimed(prior=coprime())},
        "coprime costs": {**uniform(1, len(primes())), **claimed(costs=[coprime()])},
        "coprime multipliers": {
            **uniform(1, len(primes())),
            **claimed(multipliers={"privacy": {str(r): x for r, x in enumerate(coprime())}}),
        },
    }


def ledgers() -> dict[str, list[Any]]:
    """Of files of ledgers, what was spent, and on whom."""
    return {
        "coprime": [(x, [x]) for x in coprime()],
        "long": [(long_fraction(), None)],
        "many": [("1/99991", None)] * 15_000,
        "groups": [(f"{k}/{2**2040 + 1:#x}", [f"{g:x}" for g in range(50_000)]) for k in (1, 2)],
    }


LOAD = """
import resource, sys, time
from mechdesign import Ledger, Mechanism
from mechdesign.mechanism import device
def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = memory()
for line in sys.stdin:
    read, path = line.split()
    read = {"library": Mechanism.load, "device": device.Device, "ledger": Ledger.load}[read]
    begun, said = time.process_time(), "loaded"
    try:
        read(path)
    except ValueError as error:
        said = str(error)[-200:]
    spent, taken = time.process_time() - begun, (memory() - before) / 1000
    print(spent, taken, said.replace("\\n", " "), flush=True)
"""


@pytest.mark.slow
def test_every_small_file_is_soon_loaded_or_refused(tmp_path: Path) -> None:
    usual = {"alpha": "1/2", "neighbours": "adjacent", "certificate": None, **uniform(2, 2)}
    texts = {}
    for name, change in mechanisms().items():
        content = {"format": formats.FORMAT, "version": 1, **usual, **change}
        content["digest"] = digest_of(content)
        texts["library", name] = texts["device", name] = json.dumps(content)
    for name, spends in ledgers().items():
        entries = [
            {"epsilon": epsilon, "what": str(k), "people": people}
            for k, (epsilon, people) in enumerate(spends)
        ]
        content = {"format": "mechdesign.ledger", "version": 1, "epsilon": "9", "entries": entries}
        texts["ledger", name] = json.dumps(content)
    run = subprocess.Popen(
        [sys.executable, "-c", LOAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for (read, name), text in texts.items():
        path = tmp_path / f"{name.replace(' ', '-')}.json"
        path.write_text(text)
        assert path.stat().st_size < 1_000_000, name
        tell(run, f"{read} {path}")
        seconds, megabytes, said = heard(run).split(" ", 2)
        assert float(seconds) < SECONDS, (read, name, said)
        assert float(megabytes) < MEGABYTES, (read, name, said)
    run.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["long denominators", "many inputs", "metric"])
def test_the_largest_designs_load(name: str, tmp_path: Path) -> None:
    mechanism = {
        "long denominators": lambda: named.geometric(128, alpha=Privacy.from_epsilon(0.1).alpha),
        "many inputs": lambda: named.krr(400, alpha="1/3"),
        "metric": lambda: (
            design(
                16,
                Privacy(
                    alpha=Privacy.from_epsilon(0.3).alpha,
                    neighbours=Metric([[abs(j - k) for k in range(17)] for j in range(17)]),
                ),
                L1(),
            ).mechanism
        ),
    }[name]()
    if name == "long denominators":
        assert mechanism.denominator.bit_length() > 2000
    mechanism.save(tmp_path / "m.json")
    assert Mechanism.load(tmp_path / "m.json") == mechanism
    device.Device(str(tmp_path / "m.json"))


def test_what_would_not_be_loaded_is_not_saved(tmp_path: Path) -> None:
    alpha = Fraction(2**600_000 - 1, 2**600_000)
    with pytest.raises(ValueError, match="too long to check"):
        Mechanism([["1/2", "1/2"]] * 2, Privacy(alpha=alpha)).save(tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_a_larger_file_may_take_longer() -> None:
    for letters, megabytes in ((999_998, 1), (999_999, 2)):  # and the quotes around them
        limits.Work("x" * letters).spend(megabytes * limits.WORK)
        with pytest.raises(ValueError, match="too long to check"):
            limits.Work("x" * letters).spend(megabytes * limits.WORK + 1)


def test_a_ledger_takes_no_epsilon_that_makes_its_sums_long() -> None:
    ledger, fit = Ledger(1), 152  # primes of 13 and 14 bits
    for p in primes()[:fit]:
        ledger.spend(Fraction(1, p), str(p))
    with pytest.raises(ValueError, match="more than 2048 bits"):
        ledger.spend(Fraction(1, primes()[fit] * primes()[fit + 1]), "one more")
    assert len(ledger.entries) == fit
    ledger.spend(Fraction(1, primes()[0]), "the same denominator")
    with pytest.raises(ValueError, match="more than 2048 bits"):
        Ledger(Fraction(1, 2**2048))

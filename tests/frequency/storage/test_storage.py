"""Aggregates as files, and which of them go on from others."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from frequency import HRR, OLH, IncompatibleAggregate
from frequency.storage import continues, load_aggregate, save_aggregate
from tests.contracts.examples import numbers

ROOT = Path(__file__).parents[3]


def test_an_aggregate_is_what_it_was(tmp_path):
    protocol = OLH(50, 1.0)
    aggregate = protocol.aggregate(protocol.privatize(numbers(50)))
    path = tmp_path / "aggregate"
    save_aggregate(path, aggregate)
    assert load_aggregate(path, protocol) == aggregate
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, OLH(50, 2.0))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(IncompatibleAggregate):
        load_aggregate(path, protocol)


def test_an_aggregate_that_continues_another():
    protocol = HRR(64, 1.0)
    reports = protocol.privatize(np.arange(3000) % 64, np.random.default_rng(1))
    first, both = protocol.aggregate(reports[:1000]), protocol.aggregate(reports)
    other = protocol.aggregate(protocol.privatize(np.arange(2900) % 7, np.random.default_rng(2)))
    assert continues(protocol, both, first)
    assert continues(protocol, both, both)
    assert not continues(protocol, first, both)
    assert not continues(protocol, both, other)
    foreign = HRR(64, 2.0).aggregate(reports[:10])
    for pair in ((both, foreign), (foreign, both)):
        with pytest.raises(ValueError, match="not an aggregate of this protocol"):
            continues(protocol, *pair)


def python(program, directory):
    """What a new process prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal(program, directory):
    """The last line of a new process that ends with an ImportError, after what it prints."""
    program = "\n".join("    " + line for line in program.splitlines())
    caught = f"try:\n{program}\nexcept ImportError as error:\n    print(error)"
    return python(caught, directory).splitlines()[-1]


USE = """
import numpy as np
from frequency import OLH
from frequency.storage import (
    continues, load_aggregate, load_protocol, save_aggregate, save_protocol
)

save_protocol("protocol.json", OLH(16, 1.0))
protocol = load_protocol("protocol.json")
aggregate = protocol.aggregate(protocol.privatize(np.arange(100) % 16))
save_aggregate("aggregate", aggregate)
assert load_aggregate("aggregate", protocol) == aggregate
assert continues(protocol, aggregate, aggregate)
"""


@pytest.mark.slow
def test_only_parquet_files_need_pyarrow(tmp_path):
    """In a process that has none: what is about them says what it needs."""
    program = f"""
import sys
sys.modules["pyarrow"] = None
{USE}
from frequency.storage import aggregate_files, parquet_header, read_reports, write_reports
"""
    assert "pip install '.[storage]'" in refusal(program, tmp_path)
    program = f"""
import sys
sys.modules["pyarrow"] = None
{USE}
from frequency.storage import RefusedFile, aggregate_files, read_reports, write_reports
reports = protocol.privatize(np.arange(100) % 16)
for name in ("reports/a.ldp", "reports/b.b64"):
    assert write_reports(name, protocol, reports) == 100
    assert np.array_equal(read_reports(name, protocol), reports)
print(aggregate_files(protocol, "reports").aggregate.n)
write_reports("reports/c.parquet", protocol, reports)
"""
    assert "need pyarrow, of the extra 'storage'" in refusal(program, tmp_path)
    assert sorted(os.listdir(tmp_path / "reports")) == ["a.ldp", "b.b64"]


def test_what_is_not_needed_is_not_loaded(tmp_path):
    large = "{'pyarrow', 'dask', 'distributed', 'loky', 'pandas'}"
    program = f"import sys\n{USE}\nprint(sorted({large} & set(sys.modules)))"
    assert python(program, tmp_path) == "[]\n"
    # And is seen where it is loaded
    named = "import sys; from frequency.storage import parquet_header"
    assert python(f"{named}; print('pyarrow' in sys.modules)", tmp_path) == "True\n"


def test_a_misspelt_name_is_an_error():
    with pytest.raises(ImportError, match="write_report"):
        exec("from frequency.storage import write_report")

"""Tables that several processes or a Dask cluster count: the same integers as one process."""

import os
from functools import partial
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from frequency.exceptions import UnknownColumn, WorkersLost
from frequency.schema import Boolean, Categorical, Numeric, Schema, Text
from frequency.storage import table as tables
from frequency.storage.table import count_table
from mechdesign import InvalidTable, NoRows, Privacy
from rangeq.central import (
    GroupedSums,
    InvalidHistogram,
    MarginalCounts,
    count_cells,
    count_keys,
    count_marginals,
)
from tests.frequency.storage.counting import dying, dying_once

SCHEMA = Schema(
    [
        Numeric("age", low=0, high=99, whole=True, missing="item"),
        Categorical("sex", ["f", "m"]),
        Boolean("smokes"),
    ]
)
TOWN = Schema([Text("town")])
SUMS = GroupedSums(SCHEMA.project(["sex", "age"]))
MECHANISM = SUMS.mechanism(Privacy.from_epsilon(1))

COUNTS: dict[str, tuple[Any, Any]] = {
    "cells": (SCHEMA.names, partial(count_cells, SCHEMA)),
    "marginals": (SCHEMA.names, partial(count_marginals, SCHEMA)),
    "keys": (TOWN.names, partial(count_keys, TOWN)),
    "sums": (SUMS.names, partial(SUMS.count, mechanism=MECHANISM)),
}


def people(n=5000, seed=1):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": pd.array(rng.integers(0, 100, n), dtype="Int64"),
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
            "smokes": rng.random(n) < 0.3,
            "town": [f"t{k}" for k in rng.integers(0, 30, n)],
        }
    )


def same(first, second):
    if isinstance(first, MarginalCounts):
        assert first.parts == second.parts
        return all((first.tables[v] == second.tables[v]).all() for v in first.tables)
    return first == second if isinstance(first, dict) else (first == second).all()


@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_count_as_one_does(kind, workers, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS", 700)
    columns, count = COUNTS[kind]
    given = people()
    expected = count([given])
    given.to_csv(tmp_path / "p.csv", index=False)
    pq.write_table(pa.Table.from_pandas(given), tmp_path / "p.parquet", row_group_size=900)
    for path in (tmp_path / "p.csv", tmp_path / "p.parquet", given):
        assert same(count_table(path, columns, count, workers=workers), expected)
    relation = duckdb.sql(f"select * from '{tmp_path / 'p.parquet'}'")
    assert same(count_table(relation, columns, count, workers=workers), expected)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COUNTS)
def test_a_cluster_counts_partitions_where_they_are(kind, client, tmp_path):
    columns, count = COUNTS[kind]
    given = people()
    frame = dd.from_pandas(given, npartitions=7)
    assert same(count_table(frame, columns, count, client=client), count([given]))
    given.to_csv(tmp_path / "p.csv", index=False)
    assert same(count_table(tmp_path / "p.csv", columns, count, client=client), count([given]))
    with pytest.raises(UnknownColumn):
        count_table(frame, ["agee"], count, client=client)
    with pytest.raises(NoRows):
        count_table(dd.from_pandas(given[:0], npartitions=1), columns, count, client=client)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_lost_worker_changes_nothing(client, tmp_path):
    given = people()
    frame = dd.from_pandas(given, npartitions=9)
    count = partial(dying_once, SCHEMA, str(tmp_path / "killed"))
    found = count_table(frame, SCHEMA.names, count, client=client)
    assert (tmp_path / "killed").exists()
    assert (found == count_cells(SCHEMA, [given])).all()
    client.wait_for_workers(2)


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_lost_process_is_an_error(tmp_path):
    with pytest.raises(WorkersLost):
        count_table(people(), SCHEMA.names, dying, workers=2)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_bad_cell_is_named_by_its_line(workers, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_ROWS", 300)
    given = people(2000)
    given["age"] = given["age"].astype(object)
    given.loc[1234, "age"] = 100
    given.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(InvalidTable, match=r"p.csv, line 1236, column 'age': '100'"):
        count_table(tmp_path / "p.csv", SCHEMA.names, partial(count_cells, SCHEMA), workers=workers)


def test_tables_of_marginals_add_up():
    first, second = (count_marginals(SCHEMA, [people(100, seed)]) for seed in (1, 2))
    both = count_marginals(SCHEMA, [people(100, 1), people(100, 2)])
    assert same(first + second, both)
    other = count_marginals(SCHEMA, [people(100, 1)], 1)
    with pytest.raises(InvalidHistogram, match="other attributes"):
        first + other

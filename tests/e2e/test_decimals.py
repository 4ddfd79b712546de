"""Decimals of every kind of input, as floats, text and whole numbers; in Python, on the command line, in a job file."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import akrunner
from tests import hosts
from tests.conftest import Script
from tests.servers.postgres import Postgres

pytestmark = pytest.mark.slow

COPY = """
def main(task_config):
    for batch in task_config.batches(1000, nulls="none"):
        task_config.output_writer.write_batch({"price": batch["price"]})
"""
VALUES = [Decimal("12.50"), None, Decimal("-0.05")]
TABLE = pa.table({"price": pa.array(VALUES, pa.decimal128(10, 2))})
WANTED = {
    "float64": ("price double", [12.5, None, -0.05]),
    "text": ("price string", ["12.50", None, "-0.05"]),
    "int64": ("price bigint", [1250, None, -5]),
}


def _parquet(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "t.parquet")
    return folder / "t.parquet"


def _arrow(folder: Path) -> Any:
    feather.write_feather(TABLE, folder / "t.feather")
    return [folder / "t.feather"]


def _duckdb(folder: Path) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute("CREATE OR REPLACE TABLE t (price DECIMAL(10, 2))")
        connection.executemany("INSERT INTO t VALUES (?)", [[value] for value in VALUES])
    return f"duckdb:///{folder}/t.duckdb"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "parquet": _parquet,
    "arrow": _arrow,
    "duckdb": _duckdb,
    "table": lambda folder: TABLE,
    "reader": lambda folder: TABLE.to_reader(),
    "relation": lambda folder: duckdb.from_arrow(TABLE),
    "pandas": lambda folder: pd.DataFrame({"price": VALUES}),
    "rows": lambda folder: [{"price": value} for value in VALUES],
}


@pytest.fixture
def copy(script: Script, leaves_nothing: Path) -> Iterator[Callable[..., Any]]:
    """Have a job copy the column."""
    path = script(COPY)
    yield lambda source, **options: akrunner.run(path, source, data_format="columns", **options)


@pytest.mark.parametrize("source", SOURCES)
def test_of_every_kind_of_input(source: str, copy: Callable[..., Any], tmp_path: Path) -> None:
    for way, (schema, wanted) in WANTED.items():
        result = copy(SOURCES[source](tmp_path), decimals=way, output_schema=schema)
        assert result.table.column("price").to_pylist() == wanted
    with pytest.raises(akrunner.SchemaError, match=r'; decimals="float64" \(--decimals float64\), "text" or "int64"'):
        copy(SOURCES[source](tmp_path))


@pytest.mark.parametrize("data_format", ["examples", "columns"])
def test_both_data_formats_and_defaults(data_format: str, script: Script, leaves_nothing: Path) -> None:
    result = akrunner.run(
        script(COPY), TABLE, decimals="int64", defaults={"price": 7}, data_format=data_format, output_schema="price bigint"
    )
    assert result.table.column("price").to_pylist() == [1250, 7, -5]


def test_numbers_that_a_float_does_not_keep_are_told(copy: Callable[..., Any]) -> None:
    long = pa.table({"price": pa.array([Decimal("12345678901234567.89")], pa.decimal128(38, 2))})
    result = copy(long, decimals="float64")
    assert [line for line in result.stats.warnings if "'price' (decimal128(38, 2))" in line and 'decimals="text"' in line]
    with pytest.raises(akrunner.ReadError, match=r'decimals="int64" .*row 1, column \'price\''):
        copy(pa.table({"price": pa.array([Decimal(1), Decimal(10) ** 18], pa.decimal128(38, 2))}), decimals="int64")


def test_a_numeric_of_postgres_without_digits(postgres: Postgres, copy: Callable[..., Any]) -> None:
    postgres.sql("CREATE TABLE t AS SELECT x::numeric AS price FROM (VALUES ('12.50'), (NULL), ('-0.05')) AS v (x)")
    for way in ("float64", "text"):
        schema, wanted = WANTED[way]
        assert copy(f"{postgres.url}?table=t", decimals=way, output_schema=schema).table.column("price").to_pylist() == wanted
        query = copy(postgres.url, select="SELECT price FROM t", decimals=way, output_schema=schema)
        assert query.table.column("price").to_pylist() == wanted
    with pytest.raises(akrunner.SourceError, match="numeric, which holds more digits"):
        copy(f"{postgres.url}?table=t", decimals="int64")


def test_on_the_command_line_and_in_a_job_file(script: Script, leaves_nothing: Path, tmp_path: Path) -> None:
    path = script(COPY)
    _parquet(tmp_path)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return hosts.run(
            [sys.executable, "-m", "akrunner", "run", *words], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    done = run(str(path), "-i", "t.parquet", "-o", "out.jsonl", "--decimals", "text", "--data-format", "columns")
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["price"] for one in said] == ["12.50", None, "-0.05"]
    (tmp_path / "job.toml").write_text(
        f'script = "{path}"\nsource = "t.parquet"\noutput = "o.parquet"\ndecimals = "int64"\ndata_format = "columns"\n'
    )
    done = run("job.toml")
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "o.parquet").column("price").to_pylist() == [1250, None, -5]
    done = run(str(path), "-i", "t.parquet", "--decimals", "float")
    assert done.returncode == 2 and "float64" in done.stderr

"""Tables of a real server of Flight SQL as inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import akrunner
from tests.conftest import Script
from tests.servers.flightsql import ROWS, table

pytestmark = pytest.mark.slow

COPY = """
def main(task_config):
    for batch in task_config.batches(1000, nulls="none"):
        task_config.output_writer.write_batch(batch)
"""
SCHEMA = "id bigint, s string, at timestamp(6), many array<int>"


@pytest.fixture
def copy(script: Script, leaves_nothing: Path) -> Iterator[Callable[..., Any]]:
    """Have a job copy a table."""
    path = script(COPY)
    yield lambda source, **options: akrunner.run(path, source, data_format="columns", **options)


def test_a_table_and_its_types(flightsql: str, copy: Callable[..., Any]) -> None:
    columns = ["id", "s", "at", "many"]
    result = copy(f"{flightsql}&table=sales", columns=columns, output_schema=SCHEMA)
    assert result.stats.rows_in == ROWS and result.table.sort_by("id").to_pylist() == table().select(columns).to_pylist()
    counted = copy(f"{flightsql}&table=public.sales", select="SELECT count(*) AS n FROM input", output_schema="n bigint")
    assert counted.table.to_pylist() == [{"n": ROWS}]


def test_the_server_runs_a_query(flightsql: str, copy: Callable[..., Any]) -> None:
    query = "SELECT id, CAST(price AS DOUBLE) AS price FROM sales WHERE id < 3 ORDER BY id DESC;"
    assert copy(flightsql, select=query).table.to_pylist() == [
        {"id": 2, "price": 0.02},
        {"id": 1, "price": 0.01},
        {"id": 0, "price": 0.0},
    ]


def test_what_is_wrong_is_told_before_anything_starts(flightsql: str, copy: Callable[..., Any]) -> None:
    with pytest.raises(akrunner.SourceError, match="cannot read flightsql://127.0.0.1.*nowhere"):
        copy(f"{flightsql}&table=nowhere")
    with pytest.raises(akrunner.SourceError, match="cannot read flightsql://127.0.0.1"):
        copy(f"{flightsql.replace('tls=off', 'tls=on')}&table=sales")
    with pytest.raises(akrunner.SinkError, match="this server has no transactions"):
        copy(f"{flightsql}&table=sales", output=f"{flightsql}&table=other", output_schema="id bigint")

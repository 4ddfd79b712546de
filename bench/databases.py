"""Tables in databases: a million rows in and out, against the driver alone."""

from __future__ import annotations

import contextlib
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as adbc_postgres
import adbc_driver_sqlite.dbapi as adbc_sqlite
import duckdb
import numpy as np
import pyarrow as pa

from akrunner.io.systems import system_of
from akrunner.spec import TaskSpec
from bench.measuring import CHUNK, Row, ratio_row
from tests.servers.postgres import PASSWORD, Postgres, binaries

ROWS = 1_000_000
#: how often ours and the driver's are measured, in turn, as the machine's speed drifts
_TURNS = 3


def _table() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.arange(ROWS),
            "x": rng.random(ROWS),
            "y": rng.random(ROWS, dtype=np.float32),
            "s": pa.array([f"customer {number}" for number in rng.integers(0, 100_000, ROWS)]),
        }
    )


def databases() -> list[Row]:
    """PostgreSQL, SQLite and DuckDB."""
    table = _table()
    with tempfile.TemporaryDirectory() as folder, _postgres() as server:
        rows = _compared("PostgreSQL", f"{server.url}?table={{}}&connections=1", table, *_adbc(lambda: _to(server)))
        read = system_of(server.url).open(f"{server.url}?table=ours0", None, None)
        alone = _adbc(lambda: _to(server))[0]
        rows.append(
            _row(
                "PostgreSQL: read, as many connections as it takes",
                lambda: _counted(read.batches()),
                alone,
                "ADBC alone, one connection",
            )
        )
        rows += _compared(
            "SQLite", f"sqlite:///{folder}/ours.db?table={{}}", table, *_adbc(lambda: adbc_sqlite.connect(f"{folder}/alone.db"))
        )
        return rows + _compared(
            "DuckDB", f"duckdb:///{folder}/ours.duckdb?table={{}}", table, *_duckdb(f"{folder}/alone.duckdb")
        )


@contextlib.contextmanager
def _postgres() -> Iterator[Postgres]:
    install = binaries()
    if install is None:
        raise SystemExit("databases: there is no PostgreSQL: pip install pgserver, or apt-get install postgresql")
    before = os.environ.get("PGPASSWORD")
    os.environ["PGPASSWORD"] = PASSWORD
    with tempfile.TemporaryDirectory() as base:
        os.chmod(base, 0o755)
        server = Postgres(install, Path(base))
        try:
            yield server
        finally:
            server.stop()
            if before is None:
                del os.environ["PGPASSWORD"]
            else:
                os.environ["PGPASSWORD"] = before


def _names(stem: str) -> Iterator[str]:
    return (f"{stem}{number}" for number in itertools.count())


def _to(server: Postgres) -> Any:
    return adbc_postgres.connect(server.url)


def _counted(batches: Any) -> None:
    assert sum(batch.num_rows for batch in batches) == ROWS


def _adbc(connect: Callable[[], Any]) -> tuple[Callable[[], None], Callable[[pa.Table], None]]:
    """Reading and writing by a driver alone; each table that is written is a new one."""
    names = _names("alone")

    def read() -> None:
        with contextlib.closing(connect()) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT * FROM alone0")
            _counted(cursor.fetch_record_batch())

    def write(table: pa.Table) -> None:
        with contextlib.closing(connect()) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(next(names), table.to_reader(CHUNK), mode="create")
            connection.commit()

    return read, write


def _duckdb(path: str) -> tuple[Callable[[], None], Callable[[pa.Table], None]]:
    names = _names("alone")

    def read() -> None:
        with duckdb.connect(path, read_only=True) as connection:
            _counted(connection.sql("SELECT * FROM alone0").to_arrow_reader(65536))

    def write(table: pa.Table) -> None:
        with duckdb.connect(path) as connection:
            connection.register("given", table)
            connection.execute(f"CREATE TABLE {next(names)} AS SELECT * FROM given")

    return read, write


def _compared(name: str, url: str, table: pa.Table, read: Callable[[], None], write: Callable[[pa.Table], None]) -> list[Row]:
    system, task = system_of(url), TaskSpec("worker", 0)
    batches, names = table.to_batches(CHUNK), _names("ours")

    def ours_out() -> None:
        sink = system.output(url.format(next(names)), table.schema, False)
        for batch in batches:
            sink.write(task, batch)
        sink.commit()

    out = _row(f"{name}: write", ours_out, lambda: write(table), "the driver alone")
    source = system.open(url.format("ours0"), None, None)
    return [_row(f"{name}: read", lambda: _counted(source.batches()), read, "the driver alone"), out]


def _row(what: str, ours: Callable[[], None], theirs: Callable[[], None], against: str) -> Row:
    taken: list[tuple[float, float]] = []
    for _ in range(_TURNS + 1):
        times = []
        for call in (ours, theirs):
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        taken.append((times[0], times[1]))
    # the first turn only warms up
    mine, other = (statistics.median(turn[which] for turn in taken[1:]) for which in (0, 1))
    return ratio_row(what, ROWS / mine, ROWS / other, 0.8, against)

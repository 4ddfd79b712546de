"""Ranges of a table of a real PostgreSQL, read as an agent of Flink's reads them, in this process and without Flink."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import adbc_driver_postgresql.dbapi as driver
import pytest

from akrunner import codec
from akrunner.engines.flink import control_pb2 as pb
from akrunner.engines.flink.host.databases import SharedTable
from akrunner.engines.flink.taskmanager import sight
from akrunner.engines.flink.taskmanager.feed import feed_of
from akrunner.io.sources import open_source
from akrunner.io.systems import pg_snapshot
from akrunner.io.systems.libpq import options_of
from akrunner.io.table import TableSource
from tests.servers.postgres import PASSWORD, Postgres

pytestmark = pytest.mark.slow
TASKS = 2
ROWS = 40000

Shared = Callable[..., SharedTable]


@pytest.fixture
def shared(postgres: Postgres) -> Iterator[Shared]:
    """Makes the state of a table."""
    held = []

    def made(url: str = postgres.url + "?table=t") -> SharedTable:
        source = open_source(url, read_examples=codec.read_examples)
        assert isinstance(source, TableSource)
        table = SharedTable.of(source, TASKS, trusted=True, must=True)
        assert table is not None
        held.append(table)
        return table

    yield made
    for one in held:
        one.close()
    assert not postgres.sql("SELECT query FROM pg_stat_activity WHERE application_name = 'akrunner'")


def read(table: SharedTable, slowly: float = 0.0) -> list[Any]:
    """What the tasks get of the column `i`, each chunk after so many seconds."""
    found = []
    for share in range(TASKS):
        place = sight.place_from(pb.Store.FromString(sight.word_of(table.place).SerializeToString()))
        order = pb.Order(files=table.order(share), chunk_rows=4000, chunk_bytes=1 << 20)
        for batch in feed_of(place)._chunks(order):
            time.sleep(slowly)
            found += batch["i"].to_pylist()
    return sorted(found)


def alone(postgres: Postgres, *statements: str) -> None:
    """Run statements that stand in no transaction."""
    with (
        driver.connect(postgres.url.replace("@", f":{PASSWORD}@"), autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        for statement in statements:
            cursor.execute(statement)


def filled(postgres: Postgres, *columns: str) -> None:
    postgres.sql(
        f"CREATE TABLE t (i bigint, {', '.join(f'{name} bigint' for name in columns) or 's text'})",
        f"INSERT INTO t SELECT i, {', '.join('0' for _ in columns) or repr('x' * 90)} FROM generate_series(1, {ROWS}) AS i",
    )


def test_no_row_leaves_its_page_once_the_size_is_known(postgres: Postgres, shared: Shared) -> None:
    filled(postgres)
    table = shared()
    # the table would have ten times as many pages
    with pytest.raises(driver.Error, match="lock timeout"):
        alone(postgres, "SET lock_timeout = '300ms'", "ALTER TABLE t SET (fillfactor = 10)", "VACUUM FULL t")
    assert read(table) == list(range(1, ROWS + 1))


@pytest.mark.parametrize("columns", [("b", "first"), ("akrunner_pages",)])
def test_columns_may_be_called_as_parts_of_the_query(postgres: Postgres, shared: Shared, columns: tuple[str, ...]) -> None:
    filled(postgres, *columns)
    assert read(shared()) == list(range(1, ROWS + 1))


def test_a_table_may_be_called_as_a_part_of_the_query(postgres: Postgres, shared: Shared) -> None:
    filled(postgres, "first")
    postgres.sql("ALTER TABLE t RENAME TO akrunner_pages")
    assert read(shared(postgres.url + "?table=akrunner_pages")) == list(range(1, ROWS + 1))


def test_a_task_may_be_slower_than_the_server_likes_transactions(postgres: Postgres, shared: Shared) -> None:
    filled(postgres)
    limits = ("idle_in_transaction_session_timeout", "statement_timeout")
    alone(postgres, f"ALTER ROLE akr SET {limits[0]} = '200ms'", f"ALTER ROLE akr SET {limits[1]} = '2s'")
    try:
        assert read(shared(), 0.4) == list(range(1, ROWS + 1))
    finally:
        alone(postgres, *(f"ALTER ROLE akr RESET {limit}" for limit in limits))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("PGREQUIREAUTH", "password", "authentication method requirement"),
        ("PGSSLMODE", "require", "SSL was required"),
        ("PGREQUIRESSL", "1", "SSL was required"),
        ("PGCHANNELBINDING", "require", "channel binding required"),
        ("PGTARGETSESSIONATTRS", "standby", "not in hot standby"),
    ],
)
def test_machines_are_as_strict_as_the_submitter(
    postgres: Postgres, shared: Shared, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    filled(postgres)
    # the submitter is satisfied with this server
    monkeypatch.setattr(pg_snapshot, "options_of", lambda environment: options_of({**environment, variable: value}))
    table = shared()
    assert words in sight.unseen(table.place, [pb.File()], lambda *_: None)

"""A PostgreSQL whose network says nothing any more: whoever waits for it can be ended, and leaves nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from akrunner.errors import AkrunnerError, JobStalledError, JobTimeoutError, WriteError
from akrunner.io import systems
from akrunner.io.limits import limited
from akrunner.io.systems.pg_connection import Connection
from tests.servers.postgres import USER, Postgres
from tests.servers.silent import silent

pytestmark = pytest.mark.slow

#: seconds within which a wait ends that would last for ever
_SOON = 30.0
committed = Connection.commit


@pytest.fixture
def strict(postgres: Postgres) -> Iterator[Postgres]:
    """A server whose administrator likes no long statements and transactions, as a user who writes and reads finds it."""
    limits = ("idle_in_transaction_session_timeout", "statement_timeout")
    postgres.sql(*(f"ALTER ROLE {USER} SET {limit} = '2s'" for limit in limits))
    yield postgres
    postgres.sql(*(f"ALTER ROLE {USER} RESET {limit}" for limit in limits))


@pytest.mark.parametrize("connections", [1, 2])
def test_a_job_may_be_slower_than_the_server_likes_statements(
    strict: Postgres, connections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("akrunner.io.systems.postgres._LARGE", 1 << 20)
    monkeypatch.setattr("akrunner.io.pg_ranges.BATCH_BYTES", 1 << 20)
    strict.sql("CREATE TABLE many AS SELECT i::bigint AS id, repeat('x', 200) AS t FROM generate_series(1, 100000) i")
    where = url(strict.port, "many") + f"&connections={connections}"
    rows = 0
    for number, batch in enumerate(systems.system_of(where).open(where, None, None).batches()):
        time.sleep(3.0 if number < 1 else 0.0)
        rows += batch.num_rows
    assert rows == 100000


def test_what_is_written_may_take_long(strict: Postgres) -> None:
    # the rows are cast on their way into the table, and each takes its time
    strict.sql(
        "CREATE TABLE slow (id int)",
        "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1.5); RETURN NEW; END'",
        "CREATE TRIGGER late BEFORE INSERT ON slow FOR EACH ROW EXECUTE FUNCTION late()",
    )
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
    sink = systems.system_of(url(strict.port, "slow")).output(url(strict.port, "slow"), rows.schema, False)
    sink.write_rows(rows)
    sink.commit()
    assert strict.sql("SELECT id FROM slow ORDER BY id") == [(1,), (2,)]


def url(port: int, table: str) -> str:
    return f"postgresql://{USER}@127.0.0.1:{port}/postgres?table={table}"


@pytest.mark.parametrize(
    ("timeout", "stall", "error"), [(3.0, None, JobTimeoutError), (None, 3.0, JobStalledError)], ids=["timeout", "stall"]
)
def test_a_write_ends(postgres: Postgres, timeout: float | None, stall: float | None, error: type[AkrunnerError]) -> None:
    rows = pa.record_batch({"id": pa.array(range(65536), pa.int64())})
    with silent(postgres.port, up=200_000) as proxy:
        sink = systems.system_of(url(proxy.port, "taken")).output(url(proxy.port, "taken"), rows.schema, False)
        began = time.monotonic()
        with pytest.raises(error, match="wait(s|ed) for postgresql://"), limited(timeout, stall):
            while True:
                sink.write_rows(rows)
        sink.abort()
        assert proxy.silent.is_set() and time.monotonic() - began < _SOON
    assert postgres.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'taken'") == [(0,)]


def test_a_commit_ends(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.io.commits._STEP_SECONDS", 1.0)
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
    with silent(postgres.port) as proxy:
        sink = systems.system_of(url(proxy.port, "taken")).output(url(proxy.port, "taken"), rows.schema, False)
        sink.write_rows(rows)
        # the rows arrive, and the word that commits them does not
        monkeypatch.setattr(Connection, "commit", lambda self: (proxy.silent.set(), committed(self)))
        with pytest.raises(WriteError, match="it is not known whether .* was written"), limited(3.0, None):
            sink.commit()
        transaction = sink._transaction
        assert transaction is not None
        # nothing is closed under a commit that may still succeed
        sink.abort()
    transaction.close()


def test_work_before_the_commit_ends(postgres: Postgres) -> None:
    rows = pa.record_batch({"id": pa.array([1, 2], pa.int64())})
    with silent(postgres.port) as proxy:
        sink = systems.system_of(url(proxy.port, "taken")).output(url(proxy.port, "taken"), rows.schema, False)
        sink.write_rows(rows)
        proxy.silent.set()
        with pytest.raises(AkrunnerError), limited(3.0, None):
            sink.commit()
        sink.abort()
    assert postgres.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'taken'") == [(0,)]


@pytest.mark.parametrize("connections", [1, 3])
def test_a_read_ends(postgres: Postgres, connections: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("akrunner.io.systems.postgres._LARGE", 1 << 20)
    postgres.sql("CREATE TABLE many AS SELECT i::bigint AS id, repeat('x', 200) AS t FROM generate_series(1, 60000) i")
    with silent(postgres.port, down=3_000_000) as proxy:
        where = url(proxy.port, "many") + f"&connections={connections}"
        source = systems.system_of(where).open(where, None, None)
        over: list[BaseException | None] = []

        def read() -> None:
            try:
                for _ in source.open():
                    pass
                over.append(None)
            except AkrunnerError as e:
                over.append(e)

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        assert proxy.silent.wait(_SOON)
        assert source.stop is not None
        source.stop()
        thread.join(_SOON)
        assert not thread.is_alive() and isinstance(over[0], AkrunnerError)

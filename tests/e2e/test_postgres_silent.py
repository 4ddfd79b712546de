"""A PostgreSQL whose network says nothing any more: whoever waits for it can be ended, and leaves nothing."""

from __future__ import annotations

import threading
import time

import pyarrow as pa
import pytest

from akrunner.errors import AkrunnerError, JobStalledError, JobTimeoutError, WriteError
from akrunner.io import systems
from akrunner.io.limits import limited
from akrunner.io.systems.pg_connection import Connection
from tests.servers.postgres import USER, Postgres
from tests.servers.silent import silent

#: seconds within which a wait ends that would last for ever
_SOON = 30.0
committed = Connection.commit


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

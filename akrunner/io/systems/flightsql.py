"""Servers of Arrow Flight SQL (Dremio, InfluxDB 3, Doris, GizmoSQL, ...), by its ADBC driver.

::

    flightsql://me@host:31337?table=sales              the table, over TLS
    flightsql://me@host:31337?tls=off, and a query     the server runs it; without TLS

The server takes all rows as a stream (CommandStatementIngest), which the driver sends outside of transactions. So they first go to
a table of their own, and from there to the output's by one transaction, which also drops that table.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import urllib.parse
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from akrunner.errors import ConfigError, SinkError
from akrunner.io.commits import closing, last_step, still_runs
from akrunner.io.paths import local_path
from akrunner.io.systems.adbc import asked, driver
from akrunner.io.systems.base import Url, quoted
from akrunner.io.systems.servers import Server, Target, parts_of, secret_of, unknown

_EXTRA = ("adbc_driver_flightsql", "flightsql")
#: what `?tls=` may say
_TLS = ("on", "off", "unverified")
_CLIENT = "adbc.flight.sql.client_option."


class _FlightSql(Server):
    called = "Flight SQL"
    options = ("database", "password_file", "token_file", "tls", "ca_file")

    def connect(self, place: Url) -> Any:
        parts, tls = parts_of(place), place.options.get("tls", "on")
        if tls not in _TLS:
            raise ConfigError(f"{place.shown}: tls= is {', '.join(_TLS)}, not {tls!r}")
        if parts.path.strip("/"):
            raise ConfigError(f"{place.shown}: the path says nothing to Flight SQL; write &database={parts.path.strip('/')}")
        host = parts.netloc.rpartition("@")[2]
        given = {"adbc.flight.sql.rpc.with_cookie_middleware": "true"}
        token = secret_of(place, "token_file", None, os.environ, "FLIGHTSQL_TOKEN")
        if token is not None:
            given["adbc.flight.sql.authorization_header"] = f"Bearer {token}"
        if parts.username:
            given["username"] = urllib.parse.unquote(parts.username)
            given["password"] = secret_of(place, "password_file", parts.password, os.environ, "FLIGHTSQL_PASSWORD") or ""
        if tls == "unverified":
            given[_CLIENT + "tls_skip_verify"] = "true"
        if "ca_file" in place.options:
            with open(local_path(place.options["ca_file"], "ca_file"), encoding="utf-8") as file:
                given[_CLIENT + "tls_root_certs"] = file.read()
        if "database" in place.options:
            given["adbc.flight.sql.rpc.call_header.database"] = place.options["database"]
        scheme = "grpc+tcp" if tls == "off" else "grpc+tls"
        return driver(*_EXTRA).connect(f"{scheme}://{host}", db_kwargs=given, autocommit=True)

    def rehearse(self, target: Target) -> None:
        # a server without transactions is refused before it gets anything
        with self._transaction(target.place):
            pass
        with self._sent(target, iter(())) as made, self._transaction(target.place) as (cursor, _):
            self._bring(cursor, target, made, " WHERE 1 = 0")

    def bring(self, target: Target, rows: pa.RecordBatchReader) -> None:
        with self._sent(target, rows) as made, self._transaction(target.place) as (cursor, transaction):
            self._bring(cursor, target, made)
            try:
                last_step(target.place.shown, transaction.commit, elsewhere=True)
            except Exception as e:
                if still_runs(e):
                    raise
                raise unknown(target.place.shown, e) from None

    def _bring(self, cursor: Any, target: Target, made: str, these: str = "") -> None:
        """Bring rows from the table that was made for them to the output's.

        Args:
            these: the condition for the old rows that are replaced; "": all of them.
        """
        name, source = self.named(target.place.table or ""), self.named(made)
        names = ", ".join(map(quoted, target.columns.names))
        if target.new:
            statements = [f"CREATE TABLE {name} AS SELECT {names} FROM {source}"]
        else:
            statements = [f"DELETE FROM {name}{these}"] if target.overwrite else []
            statements.append(f"INSERT INTO {name} ({names}) SELECT {names} FROM {source}")
        for statement in (*statements, f"DROP TABLE {source}"):
            asked(cursor, lambda text=statement: cursor.executescript(text))  # type: ignore[misc]

    @contextlib.contextmanager
    def _sent(self, target: Target, rows: Iterator[pa.RecordBatch]) -> Iterator[str]:
        """Send rows to a new table, whose name is yielded, and which is dropped if it is still there then.

        Raises:
            SinkError: the server takes no rows.
        """
        *where, _ = (target.place.table or "").split(".")
        places, name = dict(zip(("db_schema_name", "catalog_name"), reversed(where))), f"akrunner_{uuid.uuid4().hex}"
        with (
            closing(self.connected(target.place)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            dropped = True
            try:
                reader = _begun(target.columns, rows)
                asked(cursor, lambda: cursor.adbc_ingest(name, reader, mode="create", **places))
                yield ".".join([*where, name])
            except BaseException as e:
                dropped = not still_runs(e)
                if type(e).__name__ != "NotSupportedError":
                    raise
                raise SinkError(
                    f"output: {target.place.shown}: this server takes no rows as a stream (CommandStatementIngest of Flight SQL): {e}; "
                    "write Parquet, and load that"
                ) from None
            finally:
                # a cursor that has sent rows runs no statement any more
                with contextlib.suppress(Exception), closing(connection.cursor()) as another:
                    if dropped:
                        another.executescript(f"DROP TABLE IF EXISTS {self.named('.'.join([*where, name]))}")

    @contextlib.contextmanager
    def _transaction(self, place: Url) -> Iterator[tuple[Any, Any]]:
        """Yield a cursor, and the connection whose `commit` ends its transaction; what is not committed is rolled back.

        Raises:
            SinkError: the server has no transactions.
        """
        with closing(self.connected(place)) as connection:
            transaction = connection.adbc_connection
            try:
                transaction.set_autocommit(False)
            except Exception as e:
                if type(e).__name__ != "NotSupportedError":
                    raise
                raise SinkError(
                    f"output: {place.shown}: this server has no transactions, so that a job that fails could leave a part of its "
                    "rows there; write Parquet, and load that"
                ) from None
            try:
                with closing(connection.cursor()) as cursor:
                    yield cursor, transaction
            except BaseException as e:
                if not still_runs(e):
                    _end(transaction)
                raise
            _end(transaction)


def _end(transaction: Any) -> None:
    """Roll back what was not committed."""
    with contextlib.suppress(Exception):
        transaction.rollback()
        # behind its end ADBC has begun another transaction, which would stay on the server
        transaction.set_autocommit(True)


def _begun(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatchReader:
    """Return the batches behind an empty one: the driver cannot send a stream without any."""
    empty = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)
    return pa.RecordBatchReader.from_batches(schema, itertools.chain([empty], batches))


SYSTEM = _FlightSql()

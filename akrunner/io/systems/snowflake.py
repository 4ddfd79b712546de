"""Snowflake, by its ADBC driver.

::

    snowflake://me@account/database/schema?table=sales&warehouse=w

Snowflake commits each statement that makes a table, or a stage, by itself, also within a transaction; and its driver makes a
stage for the rows. So all rows first go to a temporary table, and from there to the output's by one transaction, or, if that
is new, by the statement that makes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import urllib.parse
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from akrunner.column_types import is_octets
from akrunner.errors import ConfigError, SinkError
from akrunner.io.commits import closing, last_step, still_runs
from akrunner.io.paths import local_path
from akrunner.io.systems.adbc import asked, driver
from akrunner.io.systems.base import Url, quoted
from akrunner.io.systems.servers import Server, Target, parts_of, secret_of, unknown

#: Snowflake's number, and state, of the error about a table that does not exist, or may not be seen
_MISSING = (2003, "42S02")
_EXTRA = ("adbc_driver_snowflake", "snowflake")
_SQL = "adbc.snowflake.sql."
#: an option of the URL -> the driver's
_GIVEN = {"warehouse": _SQL + "warehouse", "role": _SQL + "role", "authenticator": _SQL + "auth_type"}
#: names that Snowflake's SQL takes without quotes: it reads them as capitals
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*")


#: whether a type of Arrow is of a kind -> Snowflake's words for it, in a new table
_TYPES: Sequence[tuple[Callable[[pa.DataType], bool], str]] = (
    (pa.types.is_boolean, "BOOLEAN"),
    (pa.types.is_integer, "BIGINT"),
    (pa.types.is_floating, "DOUBLE"),
    (pa.types.is_string, "VARCHAR"),
    (pa.types.is_large_string, "VARCHAR"),
    (is_octets, "BINARY"),
    (pa.types.is_date, "DATE"),
    (pa.types.is_time, "TIME"),
)


class _Snowflake(Server):
    called = "Snowflake"
    options = ("warehouse", "role", "authenticator", "password_file", "private_key_file", "token_file")

    def named(self, table: str) -> str:
        return _quoted(self._parts(table))

    def _parts(self, table: str) -> list[str]:
        return [one.upper() if _PLAIN.fullmatch(one) else one for one in table.split(".")]

    def connect(self, place: Url) -> Any:
        parts = parts_of(place)
        path = [urllib.parse.unquote(one) for one in parts.path.strip("/").split("/") if one]
        if not parts.username or len(path) > 2:
            raise ConfigError(f"{place.shown}: write snowflake://USER@ACCOUNT/DATABASE/SCHEMA?table=NAME&warehouse=NAME")
        given = {
            # else the driver makes 1816 of the year 9999, without a word
            _SQL + "client_option.max_timestamp_precision": "nanoseconds_error_on_overflow",
            _SQL + "account": parts.netloc.rpartition("@")[2],
            "username": urllib.parse.unquote(parts.username),
            **dict(zip((_SQL + "db", _SQL + "schema"), path)),
            **{_GIVEN[name]: value for name, value in place.options.items() if name in _GIVEN},
        }
        password = secret_of(place, "password_file", parts.password, os.environ, "SNOWFLAKE_PASSWORD")
        if password is not None:
            given["password"] = password
        token = secret_of(place, "token_file", None, os.environ, "SNOWFLAKE_TOKEN")
        if token is not None:
            given[_SQL + "client_option.auth_token"] = token
        key = place.options.get("private_key_file")
        if key is not None:
            given[_SQL + "client_option.jwt_private_key"] = str(local_path(key, "private_key_file"))
            given.setdefault(_SQL + "auth_type", "auth_jwt")
        return driver(*_EXTRA).connect(db_kwargs=given, autocommit=True)

    def matched(self, names: Sequence[str], table: pa.Schema) -> list[str]:
        # a column that was declared as id is called ID
        capitals = {one.upper(): one for one in table.names}
        return [name if name in table.names else capitals.get(name.upper(), name) for name in names]

    def is_missing(self, error: Exception, table: str) -> bool:
        return (getattr(error, "vendor_code", None), getattr(error, "sqlstate", None)) == _MISSING

    def rehearse(self, target: Target) -> None:
        with self._staged(target) as (cursor, made):
            if not target.new:
                if target.overwrite:
                    asked(cursor, lambda: cursor.executescript(f"DELETE FROM {self._name(target)} WHERE 1 = 0"))
                asked(cursor, lambda: cursor.executescript(self._insert(target, made)))

    def bring(self, target: Target, rows: pa.RecordBatchReader) -> None:
        with self._staged(target) as (cursor, made):
            *where, name = made
            places = dict(zip(("db_schema_name", "catalog_name"), reversed(where)))
            asked(cursor, lambda: cursor.adbc_ingest(name, rows, mode="append", **places))
            if target.new:
                self._committed(cursor, target, f"CREATE TABLE {self._name(target)} AS SELECT * FROM {_quoted(made)}")
                return
            cursor.executescript("BEGIN")
            try:
                if target.overwrite:
                    asked(cursor, lambda: cursor.executescript(f"DELETE FROM {self._name(target)}"))
                asked(cursor, lambda: cursor.executescript(self._insert(target, made)))
            except BaseException:
                # on a lost connection this fails, too, and would hide why; its end rolls back
                with contextlib.suppress(Exception):
                    cursor.executescript("ROLLBACK")
                raise
            self._committed(cursor, target, "COMMIT")

    def _committed(self, cursor: Any, target: Target, statement: str) -> None:
        """Run the statement behind which the rows are there.

        Raises:
            WriteError: its answer did not come.
            Exception: whatever the driver raises if Snowflake has refused it.
        """
        try:
            last_step(target.place.shown, lambda: cursor.executescript(statement), elsewhere=True)
        except Exception as e:
            if still_runs(e):
                raise
            # Snowflake's own refusals have a code
            if getattr(e, "sqlstate", None) or getattr(e, "vendor_code", None):
                raise
            raise unknown(target.place.shown, e) from None

    @contextlib.contextmanager
    def _staged(self, target: Target) -> Iterator[tuple[Any, list[str]]]:
        """Yield a cursor, and the parts of the name of a new temporary table, which goes with the connection."""
        *where, _ = self._parts(target.place.table or "")
        made = [*where, f"AKRUNNER_{uuid.uuid4().hex.upper()}"]
        if target.new:
            declared = ", ".join(f"{quoted(one.name)} {_declared(one, target.place.shown)}" for one in target.columns)
            text = f"CREATE TEMPORARY TABLE {_quoted(made)} ({declared})"
        else:
            names = ", ".join(map(quoted, target.columns.names))
            text = f"CREATE TEMPORARY TABLE {_quoted(made)} AS SELECT {names} FROM {self._name(target)} WHERE 1 = 0"
        with (
            closing(self.connected(target.place)) as connection,
            closing(connection.cursor()) as cursor,
        ):
            asked(cursor, lambda: cursor.executescript(text))
            yield cursor, made

    def _name(self, target: Target) -> str:
        return self.named(target.place.table or "")

    def _insert(self, target: Target, made: Sequence[str]) -> str:
        names = ", ".join(map(quoted, target.columns.names))
        return f"INSERT INTO {self._name(target)} ({names}) SELECT {names} FROM {_quoted(made)}"


def _quoted(parts: Sequence[str]) -> str:
    return ".".join(map(quoted, parts))


def _declared(field: pa.Field, shown: str) -> str:
    """Return Snowflake's type for a column of a new table.

    Raises:
        SinkError: it has none.
    """
    kind = field.type
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP_LTZ" if kind.tz is not None else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return f"NUMBER({kind.precision}, {kind.scale})"
    found = next((words for is_one, words in _TYPES if is_one(kind)), None)
    if found is None:
        raise SinkError(
            f"output: {shown}: column {field.name!r} is of type {kind}, for which a new table of Snowflake has none here; write it as "
            "text, or make the table yourself"
        )
    return found


SYSTEM = _Snowflake()

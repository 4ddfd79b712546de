"""The calls of Snowflake's driver, answered by DuckDB's. It shows in which order statements come, and not what Snowflake makes
of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import adbc_driver_duckdb
import adbc_driver_manager
from adbc_driver_manager.dbapi import Connection, Cursor, Error, ProgrammingError

#: the variable that names DuckDB's file
FILE = "AKRUNNER_TEST_SNOWFLAKE"


def connect(db_kwargs: Mapping[str, str], autocommit: bool = False) -> Any:
    assert autocommit and db_kwargs["adbc.snowflake.sql.account"] == "account"
    database = adbc_driver_duckdb.connect(os.environ[FILE])
    return _Connection(database, adbc_driver_manager.AdbcConnection(database), autocommit=True)


class _Connection(Connection):
    def cursor(self, **options: Any) -> Any:
        return _Cursor(self, **options)


class _Cursor(Cursor):
    def adbc_execute_schema(self, operation: Any, parameters: Any = None) -> Any:
        try:
            return super().adbc_execute_schema(operation, parameters)
        except Error as e:
            raise _as_snowflake(e) from None

    def execute(self, operation: Any, parameters: Any = None) -> Any:
        try:
            return super().execute(operation, parameters)
        except Error as e:
            raise _as_snowflake(e) from None

    def adbc_ingest(self, table_name: str, data: Any, mode: Any = "create", **where: Any) -> Any:
        # DuckDB's driver does not look for a temporary table by itself
        assert table_name.startswith("AKRUNNER_") and mode == "append" and not where, (table_name, mode, where)
        return super().adbc_ingest(table_name, data, mode, temporary=True)


def _as_snowflake(error: Error) -> Error:
    """Return the error that Snowflake gives in the place of DuckDB's, if it is the one about a table that is not there."""
    if "does not exist" not in str(error):
        return error
    return ProgrammingError(
        "002003 (42S02): SQL compilation error: Object does not exist or not authorized.",
        status_code=error.status_code,
        vendor_code=2003,
        sqlstate="42S02",
    )

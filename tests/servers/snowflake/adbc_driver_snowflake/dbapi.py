"""The calls of Snowflake's driver, answered by DuckDB's. It shows in which order statements come, and not what Snowflake makes
of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import adbc_driver_duckdb
import adbc_driver_manager
from adbc_driver_manager.dbapi import Connection, Cursor

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
    def adbc_ingest(self, table_name: str, data: Any, mode: Any = "create", **where: Any) -> Any:
        # DuckDB's driver does not look for a temporary table by itself
        assert table_name.startswith("AKRUNNER_") and mode == "append" and not where, (table_name, mode, where)
        return super().adbc_ingest(table_name, data, mode, temporary=True)

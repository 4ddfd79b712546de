"""The DuckDB in which a process runs akrunner's own queries."""

from __future__ import annotations

import contextlib
import os
import warnings

import duckdb
import pyarrow as pa
import pytest

from akrunner.io.own_queries import connected


def test_connections_have_nothing_of_each_other() -> None:
    with contextlib.closing(connected()) as one, contextlib.closing(connected()) as other:
        one.register("rows", pa.table({"x": [1]}))
        other.register("rows", pa.table({"x": [2]}))
        one.execute("CREATE TEMP TABLE made AS FROM rows; SET SESSION TimeZone = 'Asia/Tokyo'")
        other.execute("CREATE TEMP TABLE made AS FROM rows; SET SESSION TimeZone = 'UTC'")
        for connection, x, zone in ((one, 1, "Asia/Tokyo"), (other, 2, "UTC")):
            assert connection.execute("SELECT x, current_setting('TimeZone') FROM made").fetchall() == [(x, zone)]
    with contextlib.closing(connected()) as later:
        assert later.execute("SELECT table_name FROM information_schema.tables").fetchall() == []


def test_no_file_is_read() -> None:
    with contextlib.closing(connected()) as connection, pytest.raises(duckdb.PermissionException):
        connection.execute(f"SELECT * FROM read_text('{__file__}')")


def test_a_process_that_is_forked_has_an_instance_of_its_own() -> None:
    with contextlib.closing(connected()) as connection:
        connection.execute("CREATE TABLE akrunner_parent (x INTEGER)")
        try:
            with warnings.catch_warnings():
                # libraries that other tests import warn of forks
                warnings.simplefilter("ignore")
                child = os.fork()
            if not child:
                status = 1
                try:
                    with contextlib.closing(connected()) as its:
                        status = len(its.execute("SELECT table_name FROM information_schema.tables").fetchall())
                finally:
                    os._exit(status)
            assert os.waitpid(child, 0)[1] == 0
        finally:
            connection.execute("DROP TABLE akrunner_parent")
